"""Assembly of a mechanism: bodies are moved until the constraints are satisfied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, instance, number
from dolfinx_mbd.errors import PlacementWarning, warn
from dolfinx_mbd.kernels.rotations import rotation_vector
from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.multibody.assembly.rates import accelerations, velocities
from dolfinx_mbd.multibody.assembly.redundancy import (
    DEPENDENT,
    NEARLY_DEPENDENT,
    Redundancy,
    find_redundant,
    independent_rows,
    without_units,
)
from dolfinx_mbd.multibody.model.system import SystemData

__all__ = [
    "Move",
    "assemble",
    "coordinates",
    "fitted",
    "moves",
    "redundancies",
    "redundant_rows",
    "restore",
    "warn_of_moves",
]

Array = NDArray[np.float64]
Index = NDArray[np.integer]

# Limits relative to the size of the mechanism, or in rad
_MISFIT = 1e-5  # largest accepted misfit of a redundant constraint
_MOVED = 1e-3  # motion of a body by the assembly above which a warning is issued
_FULFILLED = 1e-13  # largest misfit of a satisfied constraint
_ROUND_OFF = 1e-11  # largest misfit of a redundant constraint that is mere round-off
_NEAR = 1e-2  # largest motion of a body that may close a misfit
_ITERATIONS = 50


class Move(NamedTuple):
    """Motion of a body due to the assembly."""

    body: str
    distance: float  # largest displacement of its frames, m
    angle: float  # largest rotation of its frames, rad
    relative: float  # the larger of the angle and the distance over the size of the mechanism

    def __str__(self) -> str:
        return (
            f"body {self.body!r} was displaced by {self.distance:.3g} m and turned by "
            f"{np.degrees(self.angle):.3g}°"
        )


def assemble(at: Assembler, t: float, rigid: Index) -> float:
    """Satisfy the constraints by Newton's method with minimum-norm corrections.

    Corrections change only the coordinates of the velocities with indices `rigid`. Dependent
    constraints are left out. The joints of a real mechanism do not fit exactly: four parallel
    hinges whose planes differ by 1e-9 m fit at no position, and their constraints are dependent up
    to about 1e-8. Nearly dependent constraints are therefore treated as redundant if only a large
    motion could satisfy them; their misfit may be up to `_MISFIT`. Return the limit with which
    `find_redundant` finds the redundant constraints at this position.
    """
    if at.system.num_constraints == 0:
        return DEPENDENT
    initial = at.q.copy()
    try:
        return _assemble(at, t, rigid)
    except AssemblyError:
        # Some constraints may be dependent only at the initial positions: use all of them
        at.q[:], reached = initial, at.q.copy()
        try:
            _newton(at, t, rigid, 0.0)
            return DEPENDENT
        except AssemblyError:
            at.q[:] = reached
        raise


def _assemble(at: Assembler, t: float, rigid: Index) -> float:
    values, remainders, redundant = _newton(at, t, rigid, NEARLY_DEPENDENT)
    misfits = np.abs(values[redundant])
    if misfits.max(initial=0.0) <= _ROUND_OFF:
        return DEPENDENT
    limit = NEARLY_DEPENDENT
    near = remainders[redundant] > DEPENDENT
    if np.all(misfits <= np.where(near, _NEAR * remainders[redundant], _ROUND_OFF)):
        values, _, redundant = _newton(at, t, rigid, DEPENDENT)
        limit = DEPENDENT
    row = max(redundant, key=lambda k: abs(values[k]), default=-1)
    if row >= 0 and abs(values[row]) > _MISFIT:
        raise _error(at, t, values, row, "its joints do not fit together")
    return limit


def _newton(at: Assembler, t: float, rigid: Index, limit: float) -> tuple[Array, Array, list[int]]:
    """Satisfy the independent constraints; return all values, remainders and redundant rows.

    Lengths are relative to the size of the mechanism. With limit 0 no constraint is redundant.
    """
    s = at.system
    best, rows = np.inf, range(s.num_constraints)
    at.update_poses(t)
    noise = 4 * np.finfo(float).eps * float(np.abs(at.position).max(initial=0.0)) / s.size
    for _ in range(_ITERATIONS):
        values = at.constraints(t)
        matrix, row_factors, columns = without_units(s, at.constraint_matrix(at.jacobians()))
        values, matrix = row_factors * values, matrix[:, rigid]
        independent: list[int] = list(rows)
        remainders: Array = np.ones(len(rows))
        if limit:
            independent, remainders = independent_rows(s, matrix, limit)
        size = float(np.abs(values[independent]).max(initial=0.0))
        if size < max(_FULFILLED, noise) or (size < 1e-10 and size > 0.5 * best):
            return values, remainders, sorted(set(rows) - set(independent))
        best = min(best, size)
        step = np.linalg.lstsq(matrix[independent], -values[independent], rcond=1e-10)[0]
        change = np.zeros(s.num_velocities)
        change[rigid] = step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
        at.move(at.q.copy(), columns * change)
    raise _error(at, t, values, int(np.argmax(np.abs(values))), f"after {_ITERATIONS} iterations")


def _error(at: Assembler, t: float, values: Array, row: int, reason: str) -> AssemblyError:
    s = at.system
    item = (*s.joints, *s.drivers)[s.row_entry[row]]
    turns = s.row_motion[row] >= 3
    misfit = abs(float(values[row])) * (1.0 if turns else s.size)
    relative = "" if turns else f", {abs(values[row]):.2g} of the size of the mechanism"
    return AssemblyError(
        f"the mechanism cannot be assembled at t = {t:g} s: {reason}: {s.constraint_name(row)} is "
        f"off by {misfit:.3g} {'rad' if turns else 'm'}{relative}. Check the lengths and the "
        "initial positions and rotations of the bodies",
        joint=item.name,
        misfit=misfit,
    )


def moves(at: Assembler, t: float) -> list[Move]:
    """Return how far `assemble` has moved each body with frames from its initial position."""
    s = at.system
    initial = Assembler(s)
    initial.q[:] = coordinates(s)
    for assembler in (initial, at):
        assembler.update_poses(t)
    result = []
    for body, frames in zip(s.bodies, s.frame_slices, strict=True):
        if body.num_velocities and frames.start < frames.stop:
            change = at.position[frames] - initial.position[frames]
            distance = float(np.linalg.norm(change, axis=1).max())
            turns = zip(initial.rotation[frames], at.rotation[frames], strict=True)
            angle = max(float(np.linalg.norm(rotation_vector(a.T @ b))) for a, b in turns)
            result.append(Move(body.name, distance, angle, max(distance / s.size, angle)))
    return result


def warn_of_moves(at: Assembler, t: float) -> None:
    """Warn if the assembly has moved a body by more than `_MOVED`."""
    moved = sorted((m for m in moves(at, t) if m.relative > _MOVED), key=lambda m: -m.relative)
    if moved:
        more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
        text = (
            f"the assembly of the joints moved bodies from their initial positions: {moved[0]}"
            f"{more}; print(system) lists them. Use the assembled positions as initial positions "
            "and drivers with offset=None"
        )
        quantity = "motion of a body in the assembly"
        warn(PlacementWarning(text, quantity=quantity, value=moved[0].relative, limit=_MOVED))


def coordinates(system: SystemData, q: ArrayLike | None = None) -> Array:
    """Return the start coordinates (nq,), by default the initial coordinates of the bodies."""
    if q is None:
        return np.concatenate([body.initial_coordinates() for body in system.bodies])
    expected = f"{system.num_coordinates} finite numbers, the coordinates of the system"
    return array("q", q, (system.num_coordinates,), expected=expected)  # type: ignore[no-any-return]


def redundant_rows(at: Assembler, limit: float, free: Index | None = None) -> list[Redundancy]:
    """Return the constraints that are redundant for the velocities `free`, by default all."""
    if at.system.num_constraints == 0:
        return []
    B = at.constraint_matrix(at.jacobians())
    return find_redundant(at.system, B, free, limit)


def restore(at: Assembler, t: float, v: Array, rates: Mapping[str, float], free: Index) -> None:
    """Satisfy the constraints, and their time derivatives by the velocities `free`."""
    s = at.system
    limit = assemble(at, t, s.rigid)
    redundant = redundant_rows(at, limit, free)
    if redundant:
        raise AssemblyError(
            f"{len(redundant)} of the {s.num_constraints} constraints are redundant in this "
            f"position: {'; '.join(map(str, redundant))}. Use joints with fewer constraints (in a "
            "planar mechanism one revolute, otherwise cylindrical and spherical joints) or "
            "simulate with redundant='drop' or 'keep'"
        )
    moving = free
    if len(free) > len(s.rigid) and s.num_constraints and not redundant_rows(at, limit, s.rigid):
        moving = s.rigid
    velocities(at, t, v, moving, rates)
    accelerations(at, t, free)


def redundancies(
    system: SystemData, t: float = 0.0, q: ArrayLike | None = None
) -> list[Redundancy]:
    """Return the redundant constraints of the assembled mechanism.

    Args:
        system: The mechanism.
        t: Time, s.
        q: Start coordinates, shape (nq,); by default the initial coordinates of the bodies.

    Returns:
        The redundant constraints, each with its name and the joints that already constrain the
        same motion.

    Raises:
        AssemblyError: The mechanism cannot be assembled.

    Example:
        >>> second = mbd.spherical("second", ground.frame("bearing"), rod.frame("left"))
        >>> print(mbd.redundancies(mbd.System([ground, rod], [hinge, second]))[0])
        revolute joint 'hinge', displacement along z (held by 'second' already)
    """
    instance("system", system, SystemData)
    return fitted(system, number("t", t, unit="s"), q)[1]


def fitted(
    system: SystemData, t: float = 0.0, q: ArrayLike | None = None
) -> tuple[SystemData, list[Redundancy]]:
    """Return the system with its misfit as constraint offsets, and its redundant constraints.

    The misfit, at most `_MISFIT`, is the violation of redundant constraints after the assembly.
    """
    if system.num_constraints == 0:
        return system, []
    at = Assembler(system)
    at.q[:] = coordinates(system, q)
    limit = assemble(at, t, system.rigid)
    at.update_poses(t)
    redundant = redundant_rows(at, limit)
    if limit == DEPENDENT:
        return system, redundant
    return system.with_misfit(system.misfit + at.constraints(t)), redundant
