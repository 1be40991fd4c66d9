"""Stress and other fields of a mesh body, from the displacements of its nodes in a run.

The stress is the Cauchy stress of the body's own energy density W,

    σ = (1/J) P Fᵀ,   P = ∂W/∂F,

with the viscous stress added. It is evaluated at every instant, because it is not linear in u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.quantities import QUANTITIES, Quantity, quantity
from dolfinx_mbd.durability.recovery.cell_fields import Fields, Place, check_writable, points_of
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.field_files import SUFFIXES, field_file, frame_rows
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.structures.mesh_bodies import MeshBody, MeshMotion
from dolfinx_mbd.structures.mesh_bodies.embedding import energy_of_gradient
from dolfinx_mbd.structures.mesh_bodies.energies import HOOKE

__all__ = ["MeshRecovery"]

Rows = Callable[[Array], NDArray[np.int64]]  # indices of the requested times

_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
_UNSUPPORTED = "strain energy density"  # half of stress : strain holds for small strains only


@dataclass(frozen=True, eq=False)
class MeshFields(Fields):
    """A quantity of a mesh body at several instants; ``fields[k]`` returns a `fem.Function`.

    `modes` and `eta` of the base class are empty; the values are computed on access.
    """

    evaluate: Callable[[int], Array]

    __repr__ = short_repr

    def values(self, row: int) -> Array:
        """Return the values at the points of this rank at an instant, (points, *value shape)."""
        rows = self.quantity.matrix @ self.evaluate(row)
        return self.quantity.evaluate(rows)


class MeshRecovery:
    """A mesh body with the points at which fields are evaluated.

    Use it in place of the body in `mbd.recover`, `mbd.envelope`, `mbd.most_stressed` and
    `mbd.strength` to choose other points.

    The quantities have the names of `mbd.recover`. ``stress`` is the Cauchy stress in global
    components, and contains the stress of temperature and viscosity. ``strain`` is the
    Green-Lagrange strain in the axes of the undeformed body. ``displacement`` contains the motion
    of the whole body. A function of u may be any UFL expression.

    Args:
        body: The body.
        where: Points of evaluation: ``nodes``, ``quadrature`` or ``cells``; see `Recovery`.

    Raises:
        InputError: `where` is unknown.

    Note: The constructor and all methods are collective.

    Example:
        >>> rod = mbd.MeshBody("rod", box, {"left": left}, material=mbd.STEEL)
        >>> run = mbd.simulate(mbd.System([rod], gravity=(0, 0, -9.81)), t_end=0.01, dt=0.005)
        >>> middles = mbd.durability.recovery.MeshRecovery(rod, where="cells")
        >>> mbd.recover(middles, run, "von Mises")[-1].name
        'von Mises'
    """

    def __init__(self, body: MeshBody, *, where: Place = "nodes") -> None:
        self.body = checks.instance("body", body, MeshBody)
        self.space = body.forces.space
        self.points = points_of(self.space, where)
        self.materials = body.elastic_model.materials
        self.interfaces = body.interface_frames
        self._u, self._velocity = fem.Function(self.space), fem.Function(self.space)

    def positions(self) -> Array:
        """Return the undeformed positions of the points of this rank, (points, 3), m."""
        mesh, points = self.space.mesh, self.points
        compiled = compiled_expression(ufl.SpatialCoordinate(mesh), points.reference)
        values = np.asarray(compiled.eval(mesh, points.cells))
        return in_space(values.reshape(-1, mesh.geometry.dim))

    def motion(self, history: Any) -> MeshMotion:
        """Return the motion of this body; `history` may also be the run."""
        if hasattr(history, "final_state"):
            history = self.body.motion(history)
        if not isinstance(history, MeshMotion) or history.body is not self.body:
            checks.reject("history", history, f"body.motion(run) of body {self.body.name!r}")
        return history

    def fields(self, history: Any, what: Any, rows: Rows) -> MeshFields:
        """Return a quantity at the instants whose indices `rows` returns; see `mbd.recover`."""
        motion = self.motion(history)
        index = rows(motion.time)
        definition, evaluate = self._evaluation(what)
        empty = np.zeros((len(index), 0))
        return MeshFields(
            self.points, np.zeros((0, 0, 0)), definition, motion.time[index], empty,
            lambda row: evaluate(motion, int(index[row])),
        )  # fmt: skip

    def extremes(self, history: Any, what: Any, sign: float) -> tuple[Array, Array, Quantity]:
        """Return extreme values (points,) of a scalar, their times (points,) and its definition.

        Args:
            history: See `motion`.
            what: See `mbd.envelope`.
            sign: 1 for the greatest and −1 for the least value.
        """
        fields = self.fields(history, what, lambda time: np.arange(len(time), dtype=np.int64))
        if fields.quantity.shape:
            scalars = ", ".join(repr(q.name) for q in QUANTITIES.values() if not q.shape)
            checks.reject("quantity", fields.quantity.name, f"a scalar, one of {scalars}")
        best = np.full(len(self.points.dofs), -np.inf)  # greatest value of sign · quantity
        when = np.zeros(len(best))
        for row, t in enumerate(fields.time):
            values = sign * fields.values(row)
            better = values > best
            best[better], when[better] = values[better], t
        return sign * best, when, fields.quantity

    def write(
        self,
        path: str | Path,
        history: Any,
        what: Any = "von Mises",
        *,
        times: ArrayLike | None = None,
        stride: int | None = None,
    ) -> None:
        """Write quantities over time to a file for ParaView, always with `displacement`.

        Args:
            path: Path that ends with ``.bp`` or ``.pvd``; see `Recovery.write`.
            history: See `motion`.
            what: One quantity or a list of quantities; see `mbd.recover`.
            times: Requested times, s; the nearest saved instants are written. By default all
                instants are written or, if there are more than 200, the instants nearest to 200
                equidistant times.
            stride: Without `times`, every `stride`-th instant is written.

        Warns:
            FileWarning: The file takes more than 500 MB.

        Raises:
            InputError: A quantity is unknown, or values at quadrature points were requested.
            OSError: The file cannot be written.

        Example:
            >>> rod = mbd.MeshBody("rod", box, {"left": left}, material=mbd.STEEL)
            >>> run = mbd.simulate(mbd.System([rod]), t_end=0.002, dt=0.001)
            >>> MeshRecovery(rod).write("rod.bp", run, ["von Mises", "principal"])
        """
        check_writable(self.points)
        checks.file_path("path", path, SUFFIXES)
        rows = frame_rows(self.motion(history).time, times, stride)
        requested = list(what) if isinstance(what, (list, tuple)) else [what]
        others = [e for e in requested if not isinstance(e, str) or e != "displacement"]
        fields = [self.fields(history, e, lambda time: rows) for e in ("displacement", *others)]
        functions = [f.new() for f in fields]
        with field_file(path, functions, len(rows)) as write:
            for k, t in enumerate(fields[0].time):
                for f, function in zip(fields, functions, strict=True):
                    f.at_row(k, function)
                write(float(t))

    def stress(self) -> Expr:
        """Return the Cauchy stress of the functions u and u̇ of this object as UFL, (3, 3)."""
        u, body, embedding = self._u, self.body, self.body.embedding
        F = embedding.deformation(u)
        law = None
        if self.materials is not None:
            law = self.materials.law_in_space
        if embedding.is_plane and body.energy == HOOKE:
            assert law is not None
            first_piola = F * law(self._green())
        else:
            # H is the displacement gradient F − 1, with respect to which P = ∂W/∂H
            is_plane = embedding.is_plane
            H = ufl.variable(F - ufl.Identity(3) if is_plane else ufl.grad(u))
            energy = energy_of_gradient(body.energy_density, None if is_plane else u)
            first_piola = ufl.diff(energy(H), H)
        if body.viscosity:
            assert law is not None
            F_of_mesh = ufl.Identity(embedding.dim) + ufl.grad(u)  # F in the dimension of the mesh
            rate = F_of_mesh.T * ufl.grad(self._velocity)  # its symmetric part is the strain rate
            first_piola += body.viscosity * F * law((rate + rate.T) / 2)
        return embedding.rotated(first_piola * F.T / ufl.det(F))

    def _evaluation(self, what: Any) -> tuple[Quantity, Callable[[MeshMotion, int], Array]]:
        """Return the definition of a quantity, and the function of its components, (k, points)."""
        if callable(what):
            expressions = [checks.instance("what(u)", what(self._u), Expr)]
            shape, label = expressions[0].ufl_shape, getattr(what, "__name__", "expression")
            size = int(np.prod(shape, dtype=int))
            definition = Quantity(label, "", (label,), np.eye(size), shape=shape)
        else:
            definition = quantity(what)
            if what == _UNSUPPORTED:
                raise InputError(
                    f"{what!r} of a mesh body depends on its energy: give the energy as a function "
                    "of u in place of the name",
                    argument="what",
                    value=what,
                )
            parts: dict[str, Callable[[], Expr]] = {
                "displacement": self._displacement,
                "strain": lambda: _components(self._strain()),
                "stress": lambda: _components(self.stress()),
            }
            expressions = [parts[name]() for name in definition.needs]
        compiled = [compiled_expression(e, self.points.reference) for e in expressions]
        return definition, lambda motion, row: self._evaluate(compiled, motion, row)

    def _displacement(self) -> Expr:
        """Return the displacement in global axes, shape (3,)."""
        embedding = self.body.embedding
        if not embedding.is_plane:
            return self._u
        X = ufl.SpatialCoordinate(self.space.mesh)
        moved = embedding.rotation_matrix() * embedding.vector(X + self._u)
        return ufl.as_vector(embedding.origin.tolist()) + moved - embedding.vector(X)

    def _strain(self) -> Expr:
        """Return the Green-Lagrange strain, shape (3, 3), in the axes of the undeformed body."""
        F = self.body.embedding.deformation(self._u)
        return (F.T * F - ufl.Identity(3)) / 2 if self.body.embedding.is_plane else self._green()

    def _green(self) -> Expr:
        """Return the Green-Lagrange strain in the dimension of the mesh."""
        grad = ufl.grad(self._u)
        return (grad + grad.T + grad.T * grad) / 2

    def _evaluate(self, compiled: list[fem.Expression], motion: MeshMotion, row: int) -> Array:
        """Return the values of expressions at an instant, shape (components, points)."""
        nodes = self.body.forces.nodes
        nodes.displace_stored(self._u, motion.stored(motion.displacement, row))
        nodes.assign_stored(self._velocity, motion.stored(motion.velocity, row))
        mesh, cells = self.space.mesh, self.points.cells
        count = len(self.points.dofs)
        values = [np.asarray(c.eval(mesh, cells)).reshape(count, -1).T for c in compiled]
        stacked = np.concatenate(values)
        message = None
        if not np.isfinite(stacked).all():
            message = "an expression is not finite at some points; check it for a division by zero"
        raise_together(mesh.comm, message)
        return stacked


def _components(tensor: Expr) -> Expr:
    """Return the components xx, yy, zz, xy, yz, zx of a symmetric tensor."""
    return ufl.as_vector([tensor[i, j] for i, j in _PAIRS])
