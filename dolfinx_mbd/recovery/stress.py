"""Stress and other fields of a deformed body from its elastic coordinates, in parallel on the mesh.

Linear quantities are evaluated once for each mode (`field_modes`); an instant is then a product
with the elastic coordinates, and what is not linear, such as von Mises stress, follows from the
components. Envelopes over time run in blocks and store no history (`body.stress_modes`). Each rank
works on its own cells; no rank waits for another but in what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.io import VTXWriter
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd import forms
from dolfinx_mbd.body.quantities import Quantity, quantity
from dolfinx_mbd.body.stress_modes import (
    Extreme,
    envelope_over_time,
    motion_of,
    rows_at,
    values_over_time,
)
from dolfinx_mbd.checks import array, choice, function, instance, refuse
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.fields import locate, output_folder
from dolfinx_mbd.fem.material_fields import body_materials
from dolfinx_mbd.forms import AnyMaterial, GradedMaterial, Material, Orthotropic, Plane
from dolfinx_mbd.forms.arguments import expression
from dolfinx_mbd.recovery.field_modes import Place, Points, field_modes, linear_in, points_of
from dolfinx_mbd.recovery.fields import Envelope, Fields, check_writable
from dolfinx_mbd.recovery.static_correction import residual_modes, unit_load_histories
from dolfinx_mbd.reduction.result import Reduction

__all__ = [
    "Recovery",
    "Stress",
    "What",
    "envelope",
    "recover",
    "recovery_of",
]

Array = NDArray[np.float64]
Stress: TypeAlias = Callable[[Any], Any]
"""σ(u) as UFL, Pa, shape (3, 3); of a plane body also (2, 2)."""
What: TypeAlias = "str | Callable[[Any], Any]"
"""A quantity by name (`body.quantities.QUANTITIES`), or a function of u that is linear in it."""

_FIELD_MODES: WeakKeyDictionary[Reduction, dict[str, dict[str, Any]]] = WeakKeyDictionary()
"""Field modes of each reduction by place and name; they live as long as the reduction."""


def _stress_of(space: fem.FunctionSpace, material: AnyMaterial, plane: Plane | None) -> Stress:
    """Return the stress of a material with all components, as that of a reduction.

    Raises:
        InputError: The body is plane, and `plane` is missing.
    """
    if space.dofmap.bs == 2 and plane not in forms.PLANES:
        raise InputError(
            f"the stress of a plane body needs plane='stress' or 'strain'; got {plane!r}",
            argument="plane",
            value=plane,
        )
    return body_materials(space.mesh, material, plane=plane).stress_in_space


class Recovery:
    """Fields of a reduced body on its mesh; what is linear is evaluated once, when first needed.

    Args:
        reduction: The reduced body with its mesh. With unit load cases (`static_correction=True`)
            the modes are followed by residual displacements, whose factors come from the angular
            velocity and the interface wrenches of a history.
        stress: σ(u) as UFL (shape (3, 3); of a plane body (2, 2) in plane stress), or a material;
            None: that of the reduction, which is unknown only for an own stiffness form. Only
            quantities that depend on stress need it.
        plane: With a material and a plane body, ``stress`` or ``strain``.
        where: ``nodes`` (default: of the cells, discontinuous), ``quadrature`` or ``cells``; see
            `field_modes`.

    Raises:
        ValueError: `where` is unknown.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        reduction: Reduction,
        *,
        stress: Stress | AnyMaterial | None = None,
        plane: Plane | None = None,
        where: Place = "nodes",
    ) -> None:
        instance("reduction", reduction, Reduction)
        if plane is not None:
            choice("plane", plane, forms.PLANES)
        if isinstance(stress, (Material, GradedMaterial, Orthotropic)):
            law: Stress | None = _stress_of(reduction.space, stress, plane)
        elif stress is None:
            law = reduction.stress
        else:
            law = function("stress", stress, "stress(u)")
        self.reduction = reduction
        self.points = points_of(reduction.space, where)
        cached = _FIELD_MODES.setdefault(reduction, {}) if stress is None else {}
        self._modes: dict[str, tuple[Array, tuple[int, ...]]] = cached.setdefault(where, {})
        self.stress = law

    @property
    def space(self) -> fem.FunctionSpace:
        """The displacement space."""
        return self.reduction.space

    @cached_property
    def displacements(self) -> Array:
        """Modes, then the residual displacements of static correction, shape (owned dofs, m)."""
        reduction = self.reduction
        if reduction.cases is None:
            return reduction.modes
        return np.hstack([reduction.modes, residual_modes(reduction, reduction.cases)])

    @property
    def num_fields(self) -> int:
        """Number m of columns of `displacements`."""
        return int(self.displacements.shape[1])

    def motion(self, history: Any) -> tuple[Array, Array]:
        """Return times (nt,) and the factors of `displacements` (nt, m).

        Args:
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n) or (n,), alone
                without the factors of static correction. See `unit_load_histories`.

        Raises:
            InputError: The history does not fit the body.
        """
        body, space = self.reduction.body, self.space
        time, eta = motion_of(history, body.num_modes)
        missing = self.num_fields - body.num_modes
        if not missing:
            return time, eta
        if hasattr(history, "eta"):
            return time, np.hstack([eta, unit_load_histories(body, history, space.dofmap.bs)])
        return time, np.hstack([eta, np.zeros((len(time), missing))])

    # ---- linear ingredients ---------------------------------------------------------------------
    def modes(self, name: What) -> Array:
        """A linear quantity for each displacement, shape (components, points of this rank, m).

        Args:
            name: ``displacement`` (3 components), ``stress`` or ``strain`` (6: xx, yy, zz, xy, yz,
                zx), or a function of u (the components of its value, row by row).

        Raises:
            ValueError: The function is not linear in u, or there is no stress law.
        """
        return self._ingredient(name)[0]

    def positions(self) -> Array:
        """x at the points of this rank, shape (np, 3), m."""
        mesh, points = self.space.mesh, self.points
        compiled = fem.Expression(ufl.SpatialCoordinate(mesh), points.reference)
        x = np.asarray(compiled.eval(mesh, points.cells)).reshape(-1, mesh.geometry.dim)
        return in_space(x)

    def _ingredient(self, name: What) -> tuple[Array, tuple[int, ...]]:
        if isinstance(name, str) and name in self._modes:
            return self._modes[name]
        functions: dict[str, Callable[[Any], Any]] = {
            "displacement": _displacement,
            "strain": lambda u: _six(forms.strain(u)),
            "stress": self.stress_components,
        }
        if isinstance(name, str):
            choice("name", name, functions)
        field = functions[name] if isinstance(name, str) else name
        label = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
        expression, shape = linear_in(self.space, field, label)
        values = field_modes(self.space, self.displacements, expression, self.points)
        if isinstance(name, str):
            self._modes[name] = values, shape
        return values, shape

    def stress_components(self, u: Any) -> Any:
        """Components xx, yy, zz, xy, yz, zx of σ(u) as UFL.

        Raises:
            ValueError: There is no stress law.
        """
        if self.stress is None:
            raise InputError(
                "the stress law is not known: give stress=, a material or a function of u that "
                "returns UFL, such as lambda u: forms.stress(u, STEEL)"
            )
        return _six(self.stress(expression("u", u, ((2,), (3,)))))

    def _quantity(self, what: What) -> tuple[list[Array], Quantity]:
        """Ingredients and the quantity that is made of them."""
        if isinstance(what, str):
            known = quantity(what)
            return [self._ingredient(name)[0] for name in known.needs], known
        if not callable(what):
            refuse("what", what, "the name of a quantity, or a function of u that returns UFL")
        values, shape = self._ingredient(what)
        label = getattr(what, "__name__", "expression")
        eye = np.eye(len(values))
        return [values], Quantity(label, "", (label,), eye, shape=shape)

    # ---- fields ---------------------------------------------------------------------------------
    def recover(
        self, what: What, history: Any, *, times: ArrayLike | None = None, stride: int = 1
    ) -> Fields:
        """Fields at instants of a history; each is made when it is looked at.

        Args:
            what: A quantity by name, or a function of u that is linear in it.
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n) or (n,).
            times: Instants, s; the nearest recorded ones are taken. None: all.
            stride: Without `times`, take every n-th instant.

        Raises:
            ValueError: The quantity is unknown or not linear, the history does not fit, or a time
                lies outside it.
        """
        time, eta = self.motion(history)
        rows = rows_at(time, times, stride)
        ingredients, known = self._quantity(what)
        modes = ingredients[0] if len(ingredients) == 1 else np.concatenate(ingredients)
        return Fields(self.points, modes, known, time[rows], eta[rows])

    def envelope(self, what: What, history: Any, *, extreme: Extreme = "greatest") -> Envelope:
        """The greatest (or least) value of a scalar over all instants at each point, and when.

        Args:
            what: A scalar quantity by name, or a scalar function of u that is linear in it.
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n), whose rows
                then count as times 0, 1, ...
            extreme: ``greatest`` or ``least``.

        Raises:
            ValueError: The quantity is unknown, not linear or no scalar, or the history does not
                fit.
        """
        choice("extreme", extreme, ("greatest", "least"))
        time, eta = self.motion(history)
        ingredients, known = self._quantity(what)
        value, row = envelope_over_time(ingredients, eta, known, extreme)
        space, made = self.points.space(), []
        for name, values in ((f"{extreme} {known.name}", value), ("time", time[row])):
            made.append(self.points.fill(fem.Function(space, name=name), values))
        return Envelope(known, made[0], made[1], self.points)

    def at(
        self,
        what: What,
        history: Any,
        points: ArrayLike | Mapping[str, ArrayLike],
        *,
        times: ArrayLike | None = None,
        stride: int = 1,
    ) -> Array:
        """A quantity at material points over time, shape (nt, points, *shape of the quantity).

        Between the nodes of a cell what is linear is interpolated, and the rest follows from it. On
        a face or at a node of several cells the value is that of one of them.

        Args:
            what: As in `recover`.
            history: As in `recover`.
            points: Shape (points, 3) or (3,), or by name, m; in the plane also two coordinates.
            times: As in `recover`.
            stride: As in `recover`.

        Raises:
            ValueError: A point is not in the mesh; or as in `recover`. The same on every rank.
        """
        if self.points.where == "quadrature":
            raise InputError("values at points need where='nodes' or 'cells'")
        time, eta = self.motion(history)
        rows = rows_at(time, times, stride)
        ingredients, known = self._quantity(what)
        weights, mine, cells, total = _interpolation(self.points, points)
        count = len(self.points.reference)
        local = np.zeros((sum(map(len, ingredients)), total, self.num_fields))
        columns = cells[:, None] * count + np.arange(count)
        local[:, mine] = np.einsum(
            "pi,cpin->cpn", weights, np.concatenate([m[:, columns] for m in ingredients])
        )
        comm = self.space.mesh.comm
        return values_over_time(comm.bcast(comm.reduce(local, root=0), root=0), eta[rows], known)

    def write(
        self,
        path: str | Path,
        history: Any,
        what: What | Sequence[What] = "von Mises",
        *,
        times: ArrayLike | None = None,
        stride: int = 1,
    ) -> None:
        """Write quantities over time as VTX for ParaView, with `displacement` to warp by.

        All are on the discontinuous space of the nodes (or cells).

        Args:
            path: A name that ends in ``.bp``; missing directories are made.
            history: As in `recover`.
            what: A quantity or several.
            times: As in `recover`.
            stride: As in `recover`.

        Raises:
            ValueError: As in `recover`.
            OSError: The directory cannot be made.
        """
        if not isinstance(what, (str, list, tuple)) and not callable(what):
            refuse("what", what, "a quantity or a list of quantities", InputTypeError)
        folder = output_folder(self.space.mesh.comm, path)
        wanted = [what] if isinstance(what, str) or callable(what) else list(what)
        kinds = ["displacement", *(w for w in wanted if w != "displacement")]
        check_writable(self.points)
        fields = [self.recover(w, history, times=times, stride=stride) for w in kinds]
        functions = [f.new() for f in fields]
        with VTXWriter(self.space.mesh.comm, str(folder), functions) as writer:
            for k, t in enumerate(fields[0].time):
                for f, function in zip(fields, functions, strict=True):
                    f.at_row(k, function)
                writer.write(float(t))


def recovery_of(source: Reduction | Recovery) -> Recovery:
    """Return the `Recovery` of a reduction, or the argument if it is one already."""
    return source if isinstance(source, Recovery) else Recovery(source)


def recover(
    source: Reduction | Recovery,
    history: Any,
    what: What = "von Mises",
    *,
    times: ArrayLike | None = None,
    stride: int = 1,
) -> Fields:
    """Return a quantity on the mesh at instants of a history; see `Recovery.recover`.

    Args:
        source: A reduction, or a `Recovery` with another stress law or other points.
        history: Motion of the body, for instance ``run.body("rod 1")``: `time` (nt,), `eta`
            (nt, n), and for static correction `omega` (nt, 3) and `wrenches`; or elastic
            coordinates (nt, n) or (n,).
        what: A quantity by name, or a function of u that is linear in it.
        times: Instants, s; the nearest recorded ones are taken. None: all.
        stride: Without `times`, take every n-th instant.

    Note: Collective.
    """
    return recovery_of(source).recover(what, history, times=times, stride=stride)


def envelope(
    source: Reduction | Recovery,
    history: Any,
    what: What = "von Mises",
    *,
    extreme: Extreme = "greatest",
) -> Envelope:
    """Return the extreme value over time at each point, and when; see `Recovery.envelope`.

    Args:
        source: As in `recover`.
        history: As in `recover`.
        what: A scalar quantity by name, or a scalar function of u that is linear in it.
        extreme: ``greatest`` or ``least``.

    Note: Collective.
    """
    return recovery_of(source).envelope(what, history, extreme=extreme)


def _displacement(u: Any) -> Any:
    return u if u.ufl_shape == (3,) else ufl.as_vector([u[0], u[1], 0])


def _six(tensor: Any) -> Any:
    """Components xx, yy, zz, xy, yz, zx of a symmetric tensor of shape (3, 3) or (2, 2)."""
    if tensor.ufl_shape == (2, 2):
        return ufl.as_vector([tensor[0, 0], tensor[1, 1], 0, tensor[0, 1], 0, 0])
    if tensor.ufl_shape != (3, 3):
        raise InputError(f"expected a tensor of shape (3, 3), got {tensor.ufl_shape}")
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
    return ufl.as_vector([tensor[i, j] for i, j in pairs])


def _interpolation(
    points: Points, wanted: ArrayLike | Mapping[str, ArrayLike]
) -> tuple[Array, NDArray[np.int64], NDArray[np.int32], int]:
    """Weights of a cell's points for the wanted points of this rank, their numbers and cells."""
    if not isinstance(wanted, Mapping):
        x = array("points", wanted)
        if x.ndim not in (1, 2):
            refuse("points", wanted, "an array of shape (points, 3) or (3,), or points by name")
        wanted = {f"number {k}": row for k, row in enumerate(x[None] if x.ndim == 1 else x)}
    if not wanted:
        raise InputError("no points were given")
    x, cells, mine = locate(points.mesh, wanted)
    count = len(points.reference)
    weights = np.zeros((len(mine), count))
    probe = fem.Function(points.space())
    dofs = points.dofs.reshape(-1, count)
    for i in range(count):
        probe.x.array[:] = 0.0
        if len(mine):
            probe.x.array[dofs[cells[mine], i]] = 1.0
            weights[:, i] = probe.eval(x[mine], cells[mine]).reshape(-1)
    return weights, mine, cells[mine], len(x)
