"""Assembly of a mechanism: bodies are moved until the constraints are satisfied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, instance, number
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import accelerations, velocities
from dolfinx_mbd.dynamics.assembly.redundancy import (
    DEPENDENT,
    NEARLY_DEPENDENT,
    Redundancy,
    find_redundant,
    independent_rows,
    without_units,
)
from dolfinx_mbd.errors import PlacementWarning, warn
from dolfinx_mbd.kernels.columns import ABOUT_X
from dolfinx_mbd.kernels.rotations import rotation_vector
from dolfinx_mbd.mechanism.system import System

Index = NDArray[np.integer]

# Limits relative to the size of the mechanism, or in rad
_MAX_MISFIT = 1e-5  # largest accepted misfit of a redundant constraint
_WARNING_MOTION = 1e-3  # largest motion of a body by the assembly without a warning
_MISFIT_TOLERANCE = 1e-13  # largest misfit of a satisfied constraint
_ROUND_OFF_MISFIT = 1e-11  # largest misfit of a redundant constraint that counts as round-off
_MAX_CLOSING_MOTION = 1e-2  # largest motion of a body by which the assembly may remove a misfit
_MAX_ITERATIONS = 50


class Move(NamedTuple):
    """Motion of a body due to the assembly."""

    body: str
    distance: float  # largest displacement of its frames, m
    angle: float  # largest rotation of its frames, rad
    relative: float  # maximum of the angle and the distance relative to the mechanism's size

    def __str__(self) -> str:
        return (
            f"body {self.body!r} was displaced by {self.distance:.3g} m and rotated by "
            f"{np.degrees(self.angle):.3g}°"
        )


def assemble(eqs: Assembler, t: float, columns: Index | None = None) -> float:
    """Satisfy the constraints by Newton's method with minimum-norm corrections.

    Corrections move rigid bodies, or the coordinates whose velocities have the indices `columns`.
    Dependent constraints are ignored. The joints of a real mechanism do not fit exactly: four
    parallel hinges whose planes differ by 1e-9 m cannot close in any position, and their
    constraints are dependent to about 1e-8. Nearly dependent constraints are therefore treated as
    redundant if only a large motion could satisfy them; their misfit may be up to `_MAX_MISFIT`.
    Return the limit with which `find_redundant` must be called at this position.
    """
    if eqs.system.num_constraints == 0:
        return DEPENDENT
    initial = eqs.q.copy()
    columns = eqs.system.rigid if columns is None else columns
    try:
        return _assemble(eqs, t, columns)
    except AssemblyError:
        # Some constraints may be dependent only at the initial positions: use all constraints
        eqs.q[:], reached = initial, eqs.q.copy()
        try:
            _newton(eqs, t, columns, 0.0)
            return DEPENDENT
        except AssemblyError:
            eqs.q[:] = reached
        raise


def _assemble(eqs: Assembler, t: float, columns: Index) -> float:
    """Move the bodies until the joints fit; return the limit of dependent constraints."""
    values, remainders, redundant = _newton(eqs, t, columns, NEARLY_DEPENDENT)
    misfits = np.abs(values[redundant])
    if misfits.max(initial=0.0) <= _ROUND_OFF_MISFIT:
        return DEPENDENT
    limit = NEARLY_DEPENDENT
    nearly_dependent = remainders[redundant] > DEPENDENT
    # A row with the remainder r and the misfit m fits after a motion of about m / r
    if np.all(
        misfits
        <= np.where(
            nearly_dependent, _MAX_CLOSING_MOTION * remainders[redundant], _ROUND_OFF_MISFIT
        )
    ):
        values, _, redundant = _newton(eqs, t, columns, DEPENDENT)
        limit = DEPENDENT
    row = max(redundant, key=lambda k: abs(values[k]), default=-1)
    if row >= 0 and abs(values[row]) > _MAX_MISFIT:
        raise _error(eqs, t, values, row, "its joints do not fit together")
    return limit


def _newton(
    eqs: Assembler, t: float, columns: Index, limit: float
) -> tuple[Array, Array, list[int]]:
    """Satisfy the independent constraints; return all values, remainders and redundant rows.

    Lengths are relative to the size of the mechanism. With limit 0 no constraint is redundant.
    """
    s = eqs.system
    best, rows = np.inf, range(s.num_constraints)
    eqs.update_poses(t)
    # Round-off of the positions of frames far from the origin
    noise = 4 * np.finfo(float).eps * float(np.abs(eqs.position).max(initial=0.0)) / s.size
    for _ in range(_MAX_ITERATIONS):
        values = eqs.constraints(t)
        B = eqs.constraint_matrix()
        B[s.velocity_rows] = 0.0
        matrix, row_factors, factors = without_units(s, B)
        values, matrix = row_factors * values, matrix[:, columns]
        independent: list[int] = list(rows)
        remainders: Array = np.ones(len(rows))
        if limit:
            independent, remainders = independent_rows(s, matrix, limit)
        size = float(np.abs(values[independent]).max(initial=0.0))
        # Round-off is also reached if small values no longer decrease
        if size < max(_MISFIT_TOLERANCE, noise) or (size < 1e-10 and size > 0.5 * best):
            return values, remainders, sorted(set(rows) - set(independent))
        best = min(best, size)
        step = np.linalg.lstsq(matrix[independent], -values[independent], rcond=1e-10)[0]
        change = np.zeros(s.num_velocities)
        # A step is at most half the size of the mechanism, or 0.5 rad
        change[columns] = step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
        eqs.move(eqs.q.copy(), factors * change)
    raise _error(
        eqs, t, values, int(np.argmax(np.abs(values))), f"after {_MAX_ITERATIONS} iterations"
    )


def _error(eqs: Assembler, t: float, values: Array, row: int, reason: str) -> AssemblyError:
    """Return the error about the row with the largest misfit."""
    s = eqs.system
    item = (*s.joints, *s.drivers)[s.row_entry[row]]
    is_rotation = s.row_motion[row] >= ABOUT_X
    misfit = abs(float(values[row])) * (1.0 if is_rotation else s.size)
    relative = "" if is_rotation else f", {abs(values[row]):.2g} of the size of the mechanism"
    return AssemblyError(
        f"the mechanism cannot be assembled at t = {t:g} s: {reason}: {s.constraint_name(row)} is "
        f"off by {misfit:.3g} {'rad' if is_rotation else 'm'}{relative}. Check the lengths and the "
        "initial positions and rotations of the bodies",
        joint=item.name,
        misfit=misfit,
    )


def moves(eqs: Assembler, t: float) -> list[Move]:
    """Return how far `assemble` has moved each body with frames from its initial position."""
    s, q = eqs.system, eqs.q.copy()
    eqs.q[:] = coordinates(s)
    eqs.update_poses(t)
    position, rotation = eqs.position.copy(), eqs.rotation.copy()
    eqs.q[:] = q
    eqs.update_poses(t)
    result = []
    for body, frames in zip(s.bodies, s.frame_slices, strict=True):
        if body.num_velocities and frames.start < frames.stop:
            change = eqs.position[frames] - position[frames]
            distance = float(np.linalg.norm(change, axis=1).max())
            rotations = zip(rotation[frames], eqs.rotation[frames], strict=True)
            angle = max(float(np.linalg.norm(rotation_vector(a.T @ b))) for a, b in rotations)
            result.append(Move(body.name, distance, angle, max(distance / s.size, angle)))
    return result


def warn_of_moves(eqs: Assembler, t: float) -> None:
    """Warn if the assembly has moved a body by more than `_WARNING_MOTION`."""
    large = sorted(
        (m for m in moves(eqs, t) if m.relative > _WARNING_MOTION), key=lambda m: -m.relative
    )
    if large:
        more = f" (and {len(large) - 1} more)" if len(large) > 1 else ""
        text = (
            f"the assembly of the joints moved bodies from their initial positions: {large[0]}"
            f"{more}; print(system) lists them. Use the assembled positions as initial positions "
            "and drivers with offset=None"
        )
        quantity = "motion of a body in the assembly"
        warn(
            PlacementWarning(
                text, quantity=quantity, value=large[0].relative, limit=_WARNING_MOTION
            )
        )


def coordinates(system: System, q: ArrayLike | None = None) -> Array:
    """Return the start coordinates (nq,), by default the initial coordinates of the bodies."""
    if q is None:
        return np.concatenate([body.initial_coordinates() for body in system.bodies])
    expected = f"{system.num_coordinates} finite numbers, the coordinates of the system"
    return array("q", q, (system.num_coordinates,), expected=expected)  # type: ignore[no-any-return]


def redundant_rows(eqs: Assembler, limit: float, free: Index | None = None) -> list[Redundancy]:
    """Return the constraints that are redundant for the velocities `free`, by default all."""
    if eqs.system.num_constraints == 0:
        return []
    B = eqs.constraint_matrix()
    return find_redundant(eqs.system, B, free, limit)


def restore(
    eqs: Assembler, t: float, v: Array, rates: Mapping[str, float], free: Index | None = None
) -> None:
    """Satisfy the constraints, then their time derivatives by changing velocities.

    `free` are the indices of the velocities that may change, by default of all.
    """
    s = eqs.system
    free = np.arange(s.num_velocities) if free is None else free
    limit = assemble(eqs, t)
    redundant = redundant_rows(eqs, limit, free)
    if redundant:
        raise AssemblyError(
            f"{len(redundant)} of the {s.num_constraints} constraints are redundant in this "
            f"position: {'; '.join(map(str, redundant))}. Use joints with fewer constraints (in a "
            "planar mechanism one revolute, otherwise cylindrical and spherical joints) or "
            "simulate with redundant='drop' or 'keep'"
        )
    moving = free
    if len(free) > len(s.rigid) and s.num_constraints and not redundant_rows(eqs, limit, s.rigid):
        moving = s.rigid
    accelerations(eqs, t, free, velocities(eqs, t, v, moving, rates))


def redundancies(system: System, t: float = 0.0, q: ArrayLike | None = None) -> list[Redundancy]:
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
        >>> print(mbd.dynamics.redundancies(mbd.System([ground, rod], [hinge, second]))[0])
        revolute joint 'hinge', displacement along z (held by 'second' already)
    """
    instance("system", system, System)
    return _assembled_redundancies(Assembler(system), number("t", t, unit="s"), q)[1]


def _assembled_redundancies(
    eqs: Assembler, t: float, q: ArrayLike | None
) -> tuple[float, list[Redundancy]]:
    """Assemble the mechanism; return the limit of `assemble` and the redundant constraints."""
    eqs.q[:] = coordinates(eqs.system, q)
    limit = assemble(eqs, t)
    eqs.update_poses(t)
    return limit, redundant_rows(eqs, limit)


def independent_system(
    eqs: Assembler, t: float, q: ArrayLike | None = None, *, least_norm: bool = False
) -> System:
    """Return the system without redundant constraints; see `System.without_rows`.

    The offsets of its constraints equal their misfit, which is the violation of redundant
    constraints after the assembly, at most `_MAX_MISFIT`.
    """
    system = eqs.system
    limit, redundant = _assembled_redundancies(eqs, t, q)
    if limit != DEPENDENT:
        system = system.with_misfit(system.misfit + eqs.constraints(t))
    rows = [r.row for r in redundant]
    return system.without_rows(rows, least_norm=least_norm) if rows else system
