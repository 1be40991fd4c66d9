"""Stress and other fields of a deformed body on its mesh, from its elastic coordinates.

Linear quantities are evaluated once for each mode. Their product with the elastic coordinates gives
the values at an instant. Nonlinear quantities such as von Mises stress are computed from these
values.
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
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd import checks, forms
from dolfinx_mbd.body.quantities import Quantity, quantity
from dolfinx_mbd.body.stress_modes import (
    Extreme,
    envelope_over_time,
    motion_of,
    rows_at,
    values_over_time,
)
from dolfinx_mbd.durability.recovery.cell_fields import (
    Envelope,
    Fields,
    Place,
    Points,
    check_writable,
    field_modes,
    linear_in,
    points_of,
)
from dolfinx_mbd.durability.recovery.mesh_recovery import MeshRecovery
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.field_files import SUFFIXES, field_file, frame_rows
from dolfinx_mbd.fem.fields import locate
from dolfinx_mbd.fem.material_fields import body_materials
from dolfinx_mbd.forms import AnyMaterial, GradedMaterial, Material, Orthotropic, Plane
from dolfinx_mbd.forms.arguments import expression
from dolfinx_mbd.reduction.result import MESH_HINT, Reduction
from dolfinx_mbd.reduction.static_correction import unit_load_histories
from dolfinx_mbd.structures.mesh_bodies import MeshBody

__all__ = ["Recovery", "Stress", "What", "envelope", "recover", "recovery_of"]

Array = NDArray[np.float64]
Stress: TypeAlias = Callable[[Any], Any]
"""Function that returns σ(u) as UFL, Pa, shape (3, 3), or (2, 2) for a plane body."""
What: TypeAlias = "str | Callable[[Any], Any]"
"""A quantity by name (`body.quantities.QUANTITIES`), or a function of u that is linear in it."""
Source: TypeAlias = "Reduction | Recovery | MeshBody | MeshRecovery"
"""A reduction or a mesh body, or one of their recoveries."""

# Field modes by reduction, kind of points and name; they are deleted with the reduction
_FIELD_MODES: WeakKeyDictionary[Reduction, dict[str, dict[str, Any]]] = WeakKeyDictionary()


class Recovery:
    """A reduction with the stress law and the points at which fields are evaluated.

    Linear quantities are evaluated at their first use and stored.

    Args:
        reduction: The reduced body with its mesh. With `static_correction=True`, residual
            displacements follow the modes. Their factors are computed from the angular velocity and
            the interface wrenches of a history.
        stress: Function that returns σ(u) as UFL, shape (3, 3), or (2, 2) in plane stress; or a
            material. By default the stress law of the reduction; it is unknown if you gave your own
            stiffness form.
        plane: ``stress`` or ``strain``; required if `stress` is a material and the body is plane.
        where: Points of evaluation. ``nodes``: nodes of each cell, without averages over cells; on
            straight tetrahedra of degree 2 they are the corners, at which von Mises stress is
            largest. ``quadrature``: Gauss points inside the cells, at which stress is most
            accurate. ``cells``: midpoints.

    Raises:
        InputError: A value is invalid.

    Note: The constructor and all methods are collective.

    Example:
        >>> middle = mbd.durability.Recovery(bar, where="cells")
        >>> middle.at("stress", eta, [0.1, 0.01, 0.005]).shape
        (1, 1, 3, 3)
        >>> middle.write("bar.bp", eta, ["von Mises", "principal"])
    """

    def __init__(
        self,
        reduction: Reduction,
        *,
        stress: Stress | AnyMaterial | None = None,
        plane: Plane | None = None,
        where: Place = "nodes",
    ) -> None:
        space = checks.instance("reduction", reduction, Reduction, MESH_HINT).space
        checks.choice("plane", plane, forms.PLANES, none=True)
        self.stress: Stress | None = reduction.stress
        self.materials = None if reduction.model is None else reduction.model.materials
        if isinstance(stress, (Material, GradedMaterial, Orthotropic)):
            if space.dofmap.bs == 2 and plane is None:
                raise InputError(
                    f"the stress of a plane body needs plane='stress' or 'strain'; got {plane!r}",
                    argument="plane",
                    value=plane,
                )
            self.materials = body_materials(space.mesh, stress, plane=plane)
            self.stress = self.materials.stress_in_space
        elif stress is not None:
            self.stress = checks.function("stress", stress, "stress(u)")
        self.reduction, self.space = reduction, space
        self.interfaces = reduction.body.interfaces
        self.points = points_of(space, where)
        cached = _FIELD_MODES.setdefault(reduction, {}) if stress is None else {}
        self._modes: dict[str, tuple[Array, tuple[int, ...]]] = cached.setdefault(where, {})

    @cached_property
    def displacements(self) -> Array:
        """Modes, followed by residual displacements of static correction, shape (owned dofs, m)."""
        modes, residuals = self.reduction.modes, self.reduction.residuals
        return modes if residuals is None else np.hstack([modes, residuals])

    def motion(self, history: Any) -> tuple[Array, Array]:
        """Return times (nt,) and the factors of `displacements` (nt, m); see `recover`."""
        body, residuals = self.reduction.body, self.reduction.residuals
        time, eta = motion_of(history, body.num_modes)
        if residuals is None:
            return time, eta
        loads: Array = np.zeros((len(time), residuals.shape[1]))
        if hasattr(history, "eta"):
            loads = unit_load_histories(body, history, self.space.dofmap.bs)
        return time, np.hstack([eta, loads])

    def positions(self) -> Array:
        """Return the positions of the points of this rank, shape (points, 3), m."""
        mesh, points = self.space.mesh, self.points
        compiled = compiled_expression(ufl.SpatialCoordinate(mesh), points.reference)
        x = np.asarray(compiled.eval(mesh, points.cells)).reshape(-1, mesh.geometry.dim)
        return in_space(x)

    def stress_components(self, u: Any) -> Any:
        """Return the components xx, yy, zz, xy, yz, zx of σ(u) as UFL."""
        if self.stress is None:
            raise InputError(
                "the stress law is not known: give stress=, a material or a function of u that "
                "returns UFL, such as lambda u: forms.stress(u, STEEL)",
                argument="stress",
            )
        return six_components(self.stress(expression("u", u, ((2,), (3,)))))

    def ingredients(self, what: What, *, scalar: bool = False) -> tuple[list[Array], Quantity]:
        """Return linear quantities (components, points, m) and the quantity that they define.

        With `scalar`, an error about an unknown name lists scalar quantities only.
        """
        if isinstance(what, str):
            definition = quantity(what, lambda entry: not (scalar and entry.shape))
            return [self._linear_quantity(name)[0] for name in definition.needs], definition
        if not callable(what):
            checks.reject(
                "what", what, "the name of a quantity, or a function of u that returns UFL"
            )
        values, shape = self._linear_quantity(what)
        label = getattr(what, "__name__", "expression")
        return [values], Quantity(label, "", (label,), np.eye(len(values)), shape=shape)

    def extremes(self, history: Any, what: What, sign: float) -> tuple[Array, Array, Quantity]:
        """Return extreme values (points,) of a scalar, their times (points,) and its definition.

        A positive `sign` means the greatest and a negative one the least value.
        """
        time, factors = self.motion(history)
        modes, definition = self.ingredients(what, scalar=True)
        extreme: Extreme = "greatest" if sign > 0 else "least"
        value, row = envelope_over_time(modes, factors, definition, extreme)
        return value, time[row], definition

    def _linear_quantity(self, what: What) -> tuple[Array, tuple[int, ...]]:
        """Return a linear quantity per displacement, (components, points, m), and its shape."""
        if isinstance(what, str) and what in self._modes:
            return self._modes[what]
        functions: dict[str, Callable[[Any], Any]] = {
            "displacement": lambda u: u if u.ufl_shape == (3,) else ufl.as_vector([u[0], u[1], 0]),
            "strain": lambda u: six_components(forms.strain(u)),
            "stress": self.stress_components,
        }
        label = what if isinstance(what, str) else getattr(what, "__name__", repr(what))
        linear, shape = linear_in(
            self.space, functions[what] if isinstance(what, str) else what, label
        )
        values = field_modes(self.space, self.displacements, linear, self.points)
        if isinstance(what, str):
            self._modes[what] = values, shape
        return values, shape

    def at(
        self,
        what: What,
        history: Any,
        points: ArrayLike | Mapping[str, ArrayLike],
        *,
        times: ArrayLike | None = None,
        stride: int = 1,
    ) -> Array:
        """Return a quantity at material points over time, shape (nt, points, *shape of the value).

        Within a cell, linear quantities are interpolated, and other quantities are computed from
        the interpolated ones. On a face or at a node of several cells, the value is taken from one
        of these cells.

        Args:
            what: See `recover`.
            history: See `recover`.
            points: Positions, m, shape (points, 3) or (3,), or a mapping from names to positions,
                which may have two coordinates in a plane body.
            times: See `recover`.
            stride: See `recover`.

        Raises:
            InputError: A point is not in the mesh; see also `recover`. It is raised on every rank.
        """
        if self.points.where == "quadrature":
            raise InputError("values at points need where='nodes' or 'cells'", argument="where")
        time, eta = self.motion(history)
        rows = rows_at(time, times, stride)
        modes, definition = self.ingredients(what)
        weights, owned, cells, total = _interpolation(self.points, points)
        count = len(self.points.reference)
        columns = cells[:, None] * count + np.arange(count)
        in_cells = np.concatenate([m[:, columns] for m in modes])
        local = np.zeros((len(in_cells), total, eta.shape[1]))
        local[:, owned] = np.einsum("pi,cpin->cpn", weights, in_cells)
        comm = self.space.mesh.comm
        values = comm.bcast(comm.reduce(local, root=0), root=0)
        return values_over_time(values, eta[rows], definition)

    def write(
        self,
        path: str | Path,
        history: Any,
        what: What | Sequence[What] = "von Mises",
        *,
        times: ArrayLike | None = None,
        stride: int | None = None,
    ) -> None:
        """Write quantities over time to a file for ParaView, always with `displacement`.

        Args:
            path: Path that ends with ``.bp`` or ``.pvd``; see `Reduction.write`.
            history: See `recover`.
            what: One quantity or a list of quantities; see `recover`.
            times: See `recover`. By default all instants are written or, if there are more than
                200, the instants nearest to 200 equidistant times.
            stride: Without `times`, every `stride`-th instant is written.

        Warns:
            FileWarning: The file takes more than 500 MB.

        Raises:
            InputError: See `recover`; or values at quadrature points were requested.
            OSError: The file cannot be written.
        """
        check_writable(self.points)
        checks.file_path("path", path, SUFFIXES)
        time, _ = self.motion(history)
        times = time[frame_rows(time, times, stride)]
        requested: Sequence[Any] = what if isinstance(what, (list, tuple)) else [what]
        others = [e for e in requested if not isinstance(e, str) or e != "displacement"]
        fields = [recover(self, history, e, times=times) for e in ("displacement", *others)]
        functions = [f.new() for f in fields]
        with field_file(path, functions, len(times)) as write:
            for k, t in enumerate(fields[0].time):
                for f, function in zip(fields, functions, strict=True):
                    f.at_row(k, function)
                write(float(t))


def recovery_of(source: Reduction | Recovery) -> Recovery:
    """Return the `Recovery` of a reduction; a `Recovery` is returned unchanged."""
    return source if isinstance(source, Recovery) else Recovery(source)


def any_recovery_of(source: Source) -> Recovery | MeshRecovery:
    """Return the recovery of a reduction or a mesh body; a recovery is returned unchanged."""
    if isinstance(source, MeshBody):
        return MeshRecovery(source)
    return source if isinstance(source, MeshRecovery) else recovery_of(source)


def recover(
    source: Source,
    history: Any,
    what: What = "von Mises",
    *,
    times: ArrayLike | None = None,
    stride: int = 1,
) -> Fields:
    """Return a quantity on the mesh at instants of a history.

    The result is a sequence of functions on a discontinuous space; each is computed on access.

    Args:
        source: A reduction, or a `Recovery` with another stress law or other points; or a
            `MeshBody`, or a `MeshRecovery` with other points.
        history: For a mesh body, ``body.motion(run)`` or the run. For a reduction, motion of the
            body, for instance ``run.body("rod 1")``, with `time` (nt,), s, and
            `eta` (nt, n). Static correction also needs `omega` (nt, 3), rad/s, and `wrenches`, a
            mapping from interface names to (nt, 6), N and N m. Elastic coordinates alone, (nt, n)
            or (n,), are also valid.
        what: Name of a quantity, such as ``stress``, ``von Mises`` or ``greatest principal``; or a
            function of u that is linear in it and returns UFL.
        times: Requested times, s; the nearest recorded instants are used. By default all instants.
        stride: Every `stride`-th instant is used if `times` is None.

    Raises:
        InputError: The quantity is unknown or not linear, the history does not belong to the body,
            or a time is outside the history.

    Note: Collective.

    Example:
        >>> fields = mbd.recover(bar, eta, "von Mises")
        >>> len(fields), fields[0].name
        (1, 'von Mises')
    """
    recovery = any_recovery_of(source)
    if isinstance(recovery, MeshRecovery):
        return recovery.fields(history, what, lambda time: rows_at(time, times, stride))
    time, eta = recovery.motion(history)
    rows = rows_at(time, times, stride)
    modes, definition = recovery.ingredients(what)  # linear parts, and the function of them
    stacked = modes[0] if len(modes) == 1 else np.concatenate(modes)
    return Fields(recovery.points, stacked, definition, time[rows], eta[rows])


def envelope(
    source: Source,
    history: Any,
    what: What = "von Mises",
    *,
    extreme: Extreme = "greatest",
) -> Envelope:
    """Return the extreme value of a scalar over time at each point, and the time of this value.

    Args:
        source: See `recover`.
        history: See `recover`; for elastic coordinates alone, the times are 0, 1, ...
        what: A scalar quantity; see `recover`.
        extreme: ``greatest`` or ``least``.

    Raises:
        InputError: The quantity is unknown, not linear or not a scalar, or the history does not
            belong to the body.

    Note: Collective.

    Example:
        >>> greatest = mbd.envelope(bar, np.outer([0.0, 1.0, 0.5], eta))
        >>> float(greatest.time.x.array.max())
        1.0
        >>> greatest.write("greatest.bp")
    """
    recovery = any_recovery_of(source)
    checks.choice("extreme", extreme, ("greatest", "least"))
    value, when, definition = recovery.extremes(
        history, what, 1.0 if extreme == "greatest" else -1.0
    )
    points = recovery.points
    greatest = fem.Function(points.space(), name=f"{extreme} {definition.name}")
    time = fem.Function(greatest.function_space, name="time")
    return Envelope(definition, points.fill(greatest, value), points.fill(time, when), points)


def six_components(tensor: Any) -> Any:
    """Return the components xx, yy, zz, xy, yz, zx of a symmetric tensor (3, 3) or (2, 2)."""
    if tensor.ufl_shape == (2, 2):
        return ufl.as_vector([tensor[0, 0], tensor[1, 1], 0, tensor[0, 1], 0, 0])
    if tensor.ufl_shape != (3, 3):
        raise InputError(f"expected a tensor of shape (3, 3), got {tensor.ufl_shape}")
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))
    return ufl.as_vector([tensor[i, j] for i, j in pairs])


def _interpolation(
    points: Points, positions: ArrayLike | Mapping[str, ArrayLike]
) -> tuple[Array, NDArray[np.int64], NDArray[np.int32], int]:
    """Return weights, indices and cells of the positions on this rank, and the total number.

    The weights apply to the points of each cell, shape (positions on this rank, points of a cell).
    """
    if not isinstance(positions, Mapping):
        x = checks.array("points", positions)
        if x.ndim not in (1, 2):
            expected = "an array of shape (points, 3) or (3,), or points by name"
            checks.reject("points", positions, expected)
        positions = {f"number {k}": row for k, row in enumerate(np.atleast_2d(x))}
    if not positions:
        raise InputError("no points were given", argument="points", value=positions)
    x, cells, owned = locate(points.mesh, positions)
    count = len(points.reference)
    weights = np.zeros((len(owned), count))
    probe = fem.Function(points.space())
    dofs = points.dofs.reshape(-1, count)
    if len(owned):
        for i in range(count):
            probe.x.array[:] = 0.0
            probe.x.array[dofs[cells[owned], i]] = 1.0  # shape function of point i in each cell
            weights[:, i] = probe.eval(x[owned], cells[owned]).reshape(-1)
    return weights, owned, cells[owned], len(x)
