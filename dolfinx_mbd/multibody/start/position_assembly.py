"""Assembly of the positions: bodies are moved until the constraints are fulfilled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, instance, number
from dolfinx_mbd.errors import PlacementWarning, warn
from dolfinx_mbd.kernels.rotations import rotation_vector
from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
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
    "MISFIT",
    "Move",
    "assemble",
    "coordinates",
    "fitted",
    "moves",
    "redundancies",
    "warn_of_moves",
]

Array = NDArray[np.float64]
Index = NDArray[np.integer]

#: Largest misfit of a redundant constraint, relative to the size of the mechanism, or in rad.
MISFIT = 1e-5

#: Motion of a body in the assembly above which there is a warning, relative to the size or in rad.
MOVED = 1e-3

_ITERATIONS = 50
_FULFILLED = 1e-13  # of a constraint, relative to the size of the mechanism, or in rad
_ROUND_OFF = 1e-11  # of a redundant constraint where the others are fulfilled
_NEAR = 1e-2  # farther than that, relative to the size, no body is moved to close a misfit


class Move(NamedTuple):
    """Motion of a body by the assembly.

    Attributes:
        body: Name of the body.
        distance: Largest displacement of its frames, m.
        angle: Largest rotation of its frames, rad.
        relative: The larger of the angle and the distance over the size of the mechanism.
    """

    body: str
    distance: float
    angle: float
    relative: float

    def __str__(self) -> str:
        return (
            f"body {self.body!r} was displaced by {self.distance:.3g} m and turned by "
            f"{np.degrees(self.angle):.3g}°"
        )


def assemble(at: Assembler, t: float, rigid: Index) -> float:
    """Fulfil the constraints by Newton's method with least-norm corrections.

    Constraints that depend on others are left out of the corrections. The joints of a real
    mechanism do not fit exactly: four parallel hinges whose planes differ by 1e-9 m fit at no
    position, and their constraints are dependent up to some 1e-8. Constraints that are nearly
    dependent are therefore redundant if only a large motion could fulfil them; their misfit may be
    up to `MISFIT`.

    Args:
        at: The assembler; its coordinates are changed.
        t: Time, s.
        rigid: Velocities in whose directions the coordinates may be moved.

    Returns:
        The limit with which `find_redundant` finds the redundant constraints here.

    Raises:
        AssemblyError: If the constraints cannot be fulfilled.
    """
    if at.system.num_constraints == 0:
        return DEPENDENT
    placed = at.q.copy()
    try:
        return _assemble(at, t, rigid)
    except AssemblyError:
        # Constraints that are dependent only where the bodies were placed: use all of them
        at.q[:], reached = placed, at.q.copy()
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
    near = remainders[redundant] > DEPENDENT
    if np.all(misfits <= np.where(near, _NEAR * remainders[redundant], _ROUND_OFF)):
        values, _, redundant = _newton(at, t, rigid, DEPENDENT)
        limit = DEPENDENT
    else:
        limit = NEARLY_DEPENDENT
    row = max(redundant, key=lambda k: abs(values[k]), default=-1)
    if row >= 0 and abs(values[row]) > MISFIT:
        raise _error(at, t, values, row, "its joints do not fit together")
    return limit


def _newton(at: Assembler, t: float, rigid: Index, limit: float) -> tuple[Array, Array, list[int]]:
    """Return values and remainders of all rows, and the redundant rows, when the others are zero.

    Lengths are relative to the size of the mechanism. With ``limit`` 0 no row is redundant.
    """
    s = at.system
    best, every = np.inf, range(s.num_constraints)
    at.update_poses(t)
    noise = 4 * np.finfo(float).eps * float(np.abs(at.position).max(initial=0.0)) / s.size
    for _ in range(_ITERATIONS):
        values = at.constraints(t)
        matrix, rows, columns = without_units(s, at.constraint_matrix(at.jacobians()))
        values = rows * values
        matrix = matrix[:, rigid]
        independent: list[int] = list(every)
        remainders: Array = np.ones(len(every))
        if limit:
            independent, remainders = independent_rows(s, matrix, limit)
        size = float(np.abs(values[independent]).max(initial=0.0))
        if size < max(_FULFILLED, noise) or (size < 1e-10 and size > 0.5 * best):
            return values, remainders, sorted(set(every) - set(independent))
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
        f"off by {misfit:.3g} {'rad' if turns else 'm'}{relative}. Check the lengths, and the "
        "positions and rotations that the bodies start from",
        joint=item.name,
        misfit=misfit,
    )


def moves(at: Assembler, t: float) -> list[Move]:
    """Return how far each body with frames is from where it was placed.

    Args:
        at: The assembler after `assemble`.
        t: Time, s.
    """
    s = at.system
    placed = Assembler(s)
    placed.q[:] = coordinates(s)
    for assembler in (placed, at):
        assembler.update_poses(t)
    result = []
    for body, frames in zip(s.bodies, s.frame_slices, strict=True):
        if body.num_velocities == 0 or frames.start == frames.stop:
            continue
        distance = np.linalg.norm(at.position[frames] - placed.position[frames], axis=1).max()
        turns = zip(placed.rotation[frames], at.rotation[frames], strict=True)
        angle = max(float(np.linalg.norm(rotation_vector(a.T @ b))) for a, b in turns)
        result.append(Move(body.name, float(distance), angle, max(distance / s.size, angle)))
    return result


def warn_of_moves(at: Assembler, t: float) -> None:
    """Warn if the assembly has moved a body by more than `MOVED`."""
    moved = sorted((m for m in moves(at, t) if m.relative > MOVED), key=lambda m: -m.relative)
    if not moved:
        return
    more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
    text = (
        f"the assembly of the joints moved bodies from where they were placed: {moved[0]}{more}; "
        "print(system) lists them. Place the bodies where they start, and let drivers count from "
        "there (offset=None)"
    )
    quantity = "motion of a body in the assembly"
    warn(PlacementWarning(text, quantity=quantity, value=moved[0].relative, limit=MOVED))


def coordinates(system: SystemData, q: ArrayLike | None = None) -> Array:
    """Return coordinates (nq,) to start from: those that are given, or the bodies' own.

    Raises:
        InputError: The coordinates are not ``nq`` finite numbers.
    """
    if q is None:
        return np.concatenate([body.initial_coordinates() for body in system.bodies])
    count = system.num_coordinates
    expected = f"{count} finite numbers, the coordinates of the system"
    return np.asarray(array("q", q, (count,), expected=expected), dtype=float)


def redundancies(
    system: SystemData, t: float = 0.0, q: ArrayLike | None = None
) -> list[Redundancy]:
    """Return the constraints that repeat each other where the mechanism is assembled at time t.

    Args:
        system: The mechanism.
        t: Time, s.
        q: Coordinates to start from, shape (nq,); None: the bodies' own.

    Raises:
        AssemblyError: If it cannot be assembled.
    """
    instance("system", system, SystemData)
    return fitted(system, number("t", t, unit="s"), q)[1]


def fitted(
    system: SystemData, t: float = 0.0, q: ArrayLike | None = None
) -> tuple[SystemData, list[Redundancy]]:
    """Return the system with its misfit taken as an offset, and its redundant constraints.

    See `redundancies`. The misfit, at most `MISFIT` relative to the size, is what is left of
    redundant constraints where the others are fulfilled, and it stays so.
    """
    if system.num_constraints == 0:
        return system, []
    at = Assembler(system)
    at.q[:] = coordinates(system, q)
    limit = assemble(at, t, system.rigid)
    at.update_poses(t)
    found = find_redundant(system, at.constraint_matrix(at.jacobians()), limit=limit)
    if limit == DEPENDENT:
        return system, found
    return system.with_misfit(system.misfit + at.constraints(t)), found
