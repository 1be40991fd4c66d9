"""Loads on the surface and in the volume of a mesh body, as functions of time.

Dead loads (tractions, body forces, forces at points) keep their direction in the inertial frame and
refer to the undeformed area or volume; each is a constant vector of nodal weights times the value
at a time. A pressure follows the surface: with the deformation gradient F, its virtual work is

    −∫ p J F⁻ᵀN·v dA,

where J F⁻ᵀN dA is the deformed area vector (Nanson).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from dolfinx.mesh import meshtags
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import reproducible_matrix
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.facets import checked_key, facet_groups
from dolfinx_mbd.fem.fields import locate
from dolfinx_mbd.forms.arguments import nonzero
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.expressions.functions import expression, expressions
from dolfinx_mbd.mechanism.load_protocol import LoadInput
from dolfinx_mbd.structures.mesh_bodies.embedding import Embedding
from dolfinx_mbd.structures.mesh_bodies.nodal_vectors import NodalVectors

__all__ = ["BodyForce", "MeshLoad", "MeshLoads", "PointForce", "Pressure", "Traction"]


class _Vector:
    """A load whose value has three components."""

    unit: ClassVar[str]

    def inputs(self, label: str) -> Iterator[LoadInput]:
        """Yield the components of the value, with names that begin with a label."""
        for k, x in enumerate("xyz"):
            yield LoadInput(f"{label}.{x}", "value", k, self.unit)


@dataclass(frozen=True, eq=False)
class Pressure:
    """A pressure that follows a surface; positive pressure pushes.

    Attributes:
        facets: Group name, tag of facets, or array of this rank's local facets.
        value: Pressure, Pa; a number, a function of time, or an expression of the time `t`.
        distribution: Factor over the undeformed surface, a number or a scalar UFL expression.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> gas = Pressure("crown", lambda t: 6e6 * np.exp(-t / 0.01))
    """

    facets: str | int | NDArray[np.int32]
    value: float | str | Callable[[float], float]
    distribution: float | Expr = 1.0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        assign(self, facets=checked_key("facets", self.facets), value=_checked(self.value, ()))
        assign(self, distribution=nonzero("distribution", self.distribution))

    def inputs(self, label: str) -> Iterator[LoadInput]:
        """Yield the value, with a label as its name."""
        yield LoadInput(label, "value", unit="Pa")


@dataclass(frozen=True, eq=False)
class Traction(_Vector):
    """A force per undeformed area that keeps its direction in the inertial frame.

    Attributes:
        facets: Group name, tag of facets, or array of this rank's local facets.
        value: Force per area in global components, shape (3,), Pa; numbers, a function of time, or
            expressions such as ``("0", "300*sin(9*t)", "0")``.
        distribution: Factor over the undeformed surface, a number or a scalar UFL expression.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> wind = Traction("side", lambda t: (0, 300 * np.sin(t), 0))
    """

    facets: str | int | NDArray[np.int32]
    value: ArrayLike | Callable[[float], ArrayLike]
    distribution: float | Expr = 1.0

    unit = "Pa"
    __repr__ = short_repr

    def __post_init__(self) -> None:
        assign(self, facets=checked_key("facets", self.facets), value=_checked(self.value, (3,)))
        assign(self, distribution=nonzero("distribution", self.distribution))


@dataclass(frozen=True, eq=False)
class BodyForce(_Vector):
    """A force per undeformed volume that keeps its direction in the inertial frame.

    Attributes:
        value: Force per volume in global components, shape (3,), N/m³; numbers, a function of
            time, or expressions of the time `t`.
        distribution: Factor over the undeformed body, a number or a scalar UFL expression.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> magnet = BodyForce((0, 0, 1e3))
    """

    value: ArrayLike | Callable[[float], ArrayLike]
    distribution: float | Expr = 1.0

    unit = "N/m³"
    __repr__ = short_repr

    def __post_init__(self) -> None:
        assign(self, value=_checked(self.value, (3,)))
        assign(self, distribution=nonzero("distribution", self.distribution))


@dataclass(frozen=True, eq=False)
class PointForce(_Vector):
    """A force at a material point that keeps its direction in the inertial frame.

    Attributes:
        point: Position in the undeformed mesh, shape (3,), m.
        value: Force in global components, shape (3,), N; numbers, a function of time, or
            expressions of the time `t`.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> probe = PointForce((1.0, 0.1, 0.1), lambda t: (0, 0, -2.0 * t))
    """

    point: ArrayLike
    value: ArrayLike | Callable[[float], ArrayLike]

    unit = "N"
    __repr__ = short_repr

    def __post_init__(self) -> None:
        point = checks.vector("point", checks.metres(self.point), unit="m")
        assign(self, point=point, value=_checked(self.value, (3,)))


def _checked(value: Any, shape: tuple[int, ...]) -> Any:
    """Return a function of time, or numbers of a shape."""
    value = expressions(value, ("t",)) if shape else expression(value, ("t",))
    if callable(value):
        return checks.function("value", value, "value(t)")
    return checks.vector("value", value) if shape else checks.number("value", value)


MeshLoad = Pressure | Traction | BodyForce | PointForce
"""Loads of a mesh body."""


class MeshLoads:
    """Nodal forces of the loads of a body.

    Args:
        embedding: Mesh and space.
        u: Displacement, whose values the caller sets.
        nodes: Nodes of the space.
        loads: Loads by name.

    Raises:
        InputError: A load is invalid, has no facets on the surface or a point outside of the mesh;
            every rank raises the same error.

    Note: Collective.
    """

    def __init__(
        self, embedding: Embedding, u: fem.Function, nodes: NodalVectors, loads: Mapping[str, Any]
    ) -> None:
        self._embedding, self._model = embedding, embedding.model
        self._nodes, self._u = nodes, u
        depth = fem.Constant(u.function_space.mesh, default_scalar_type(embedding.depth))
        self._test = ufl.TestFunction(u.function_space)
        self._loads = dict(checks.instance("loads", loads, Mapping))
        self._dead: list[tuple[str, Array]] = []
        self._pressures: list[tuple[str, fem.Constant]] = []
        work: Any = None
        kinds = (Pressure, Traction, BodyForce, PointForce)
        for name, load in self._loads.items():
            checks.name("every name in loads", name)
            checks.instance(f"load {name!r}", load, kinds)
            if isinstance(load, PointForce):
                self._dead.append((name, self._point_weights(name, load)))
                continue
            measure = ufl.dx if isinstance(load, BodyForce) else self._surface(name, load)
            weights = self._weights(name, depth * load.distribution * self._test[0] * measure)
            if isinstance(load, Pressure):
                factor = fem.Constant(u.function_space.mesh, default_scalar_type(0.0))
                self._pressures.append((name, factor))
                part = -factor * depth * load.distribution * self._area_work() * measure
                work = part if work is None else work + part
            else:
                self._dead.append((name, weights))
        self._work = self._stiffness = None
        if work is not None:
            trial = ufl.TrialFunction(u.function_space)
            tangent = -ufl.derivative(work, u, trial)
            self._work = compiled_form(work)
            self._stiffness = compiled_form(0.5 * (tangent + ufl.adjoint(tangent)))

    def __bool__(self) -> bool:
        """Whether the body has loads."""
        return bool(self._dead or self._pressures)

    def copied(self) -> tuple[dict[str, Any], MeshLoads]:
        """Return copies of the loads by name, and the nodal forces of these copies."""
        result = copy.copy(self)
        result._loads = {name: copy.copy(load) for name, load in self._loads.items()}
        return result._loads, result

    def _value(self, name: str, t: float, shape: tuple[int, ...]) -> Array:
        """Return the value of a load by name at a time."""
        return _value(name, self._loads[name].value, t, shape)

    def forces(self, t: float) -> Array:
        """Return the forces (nodes, 3) at the nodes at a time and the present displacement, N."""
        total = np.zeros((len(self._nodes), 3))
        for name, weights in self._dead:
            force = self._value(name, t, (3,))
            self._embedding.check_vector(f"load {name!r}", force)
            total += weights[:, None] * force
        if self._work is not None:
            self.pressures = np.array([self._value(name, t, ()) for name, _ in self._pressures])
            b = fem.assemble_vector(self._work)
            b.scatter_reverse(la.InsertMode.add)
            count = self._embedding.dim * len(self._nodes.owned)
            total += self._nodes.gathered(b.array[:count])
        return total

    @property
    def pressures(self) -> Array:
        """The present values of the pressures, Pa, which `forces` sets."""
        return np.array([float(factor.value) for _, factor in self._pressures])

    @pressures.setter
    def pressures(self, values: Array) -> None:
        for (_, factor), value in zip(self._pressures, values, strict=True):
            factor.value = value

    def add_stiffness(self, A: PETSc.Mat) -> None:
        """Add the symmetric part of the derivative of the pressures' forces to a matrix.

        The rest of the derivative consists of integrals over the edge of the surface. Without it,
        Newton's method needs a few more iterations if the edge can move.
        """
        if self._stiffness is None or not self.pressures.any():
            return
        K = reproducible_matrix(self._stiffness)
        A.axpy(1.0, K, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
        K.destroy()

    def _surface(self, name: str, load: Pressure | Traction) -> ufl.Measure:
        """Return the measure of the facets of a load."""
        mesh = self._model.plain_mesh
        facets = facet_groups(self._model.mesh, {name: load.facets}, self._model.facet_tags)[name]
        tags = meshtags(mesh, mesh.topology.dim - 1, facets, np.ones(len(facets), dtype=np.int32))
        # Degree of the test function times two columns of F
        degree = 3 * self._u.function_space.ufl_element().degree
        metadata = {"quadrature_degree": degree} if isinstance(load, Pressure) else {}
        return ufl.Measure("ds", domain=mesh, subdomain_data=tags, metadata=metadata)(1)

    def _area_work(self) -> Expr:
        """Return the product of the deformed area vector and the test function."""
        F = self._embedding.deformation(self._u)
        N = self._embedding.vector(ufl.FacetNormal(self._u.function_space.mesh))
        # The columns of J F⁻ᵀ are products of the columns of F
        f = [F[:, k] for k in range(3)]
        parts = [N[k] * ufl.cross(f[(k + 1) % 3], f[(k + 2) % 3]) for k in range(3)]
        return ufl.inner(parts[0] + parts[1] + parts[2], self._embedding.vector(self._test))

    def _weights(self, name: str, form: ufl.Form) -> Array:
        """Return the nodal values (nodes,) of a form in component 0 of the test function."""
        b = fem.assemble_vector(compiled_form(form))
        b.scatter_reverse(la.InsertMode.add)
        dim, count = self._embedding.dim, len(self._nodes.owned)
        firsts = b.array[: dim * count].reshape(count, dim)[:, :1]
        weights = self._nodes.gathered_block(firsts)[:, 0]
        if not (np.isfinite(weights).all() and weights.any()):
            reason = "zero: does it act on facets inside the body?" if not weights.any() else "NaN"
            raise InputError(f"load {name!r} is {reason}", argument="loads", value=name)
        return weights.copy()

    def _point_weights(self, name: str, load: PointForce) -> Array:
        """Return the values (nodes,) of the shape functions at the point."""
        V = self._u.function_space
        x, cells, local = locate(V.mesh, {name: load.point})
        numbers: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        values: list[float] = []
        shape = fem.Function(V)  # collective
        if len(local):
            blocks = V.dofmap.cell_dofs(cells[0])
            numbers = self._nodes.numbers(blocks)
            for block in blocks:
                shape.x.array[:] = 0.0
                shape.x.array[self._embedding.dim * block] = 1.0
                values.append(float(shape.eval(x, cells[:1]).ravel()[0]))
        parts = V.mesh.comm.allgather((numbers, np.array(values)))
        weights = np.zeros(len(self._nodes))
        for index, part in parts:
            weights[index] = part
        return weights


def _value(name: str, value: Any, t: float, shape: tuple[int, ...]) -> Array:
    """Return the value of a load at a time."""
    numbers = np.asarray(value(t) if callable(value) else value, dtype=float)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        expected = "three finite numbers" if shape else "a finite number"
        checks.reject(f"load {name!r} at t = {t:g} s", numbers, expected)
    return numbers
