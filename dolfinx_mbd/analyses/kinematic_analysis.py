"""Kinematic analysis of driven mechanisms, and inverse dynamics for known motions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.checks import choice, entries, increasing, instance, number, reject
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.redundancy import find_redundant, without_units
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.start.position_assembly import assemble, coordinates
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.loads import JointCoordinate
from dolfinx_mbd.mechanism.motions import check_drivers
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.integer]

_SINGULAR = 1e-7  # ratio of extreme singular values below which a position is singular
_MOVES = 1e-6  # smallest component of a motion that counts, relative to its largest ones
_CLOSED = 1e-6  # largest violation of a constraint, m or rad; relative to positions beyond 1 m
_RANK = 1e-9  # singular values below this fraction of the largest one count as zero


class KinematicError(SolverError, ValueError):
    """Error of a motion that the drivers do not determine.

    The attribute `time` is the time of the error, s; `solution` is the motion before this time, or
    None.
    """

    def __init__(self, message: str, time: float) -> None:
        super().__init__(message)
        self.time = time
        self.solution: Solution | None = None


def kinematic_analysis(
    system: System,
    times: Iterable[float],
    *,
    elastic_start: Literal["undeformed", "quasi-static"] = "undeformed",
    q: ArrayLike | None = None,
) -> Solution:
    """Compute the motion of a mechanism that is fully determined by its drivers.

    The constraints and their first two derivatives are solved at each time, starting from the
    previous position, without time integration. The solution contains the reactions, so that
    ``solution.joint("drive").moment`` is the torque of a driver.

    Args:
        system: The mechanism, with as many drivers as degrees of freedom; joints may be redundant.
        times: Increasing times, s. Each position is the solution nearest to the previous one, so
            that the times must be close to one another.
        elastic_start: Deformation at each time, as at the start of `simulate`. With ``undeformed``,
            bodies move as if they were rigid, and the forces belong to undeformed bodies. With
            ``quasi-static``, bodies deform under the forces of the motion without vibrations.
        q: Coordinates from which the first position is computed, shape (nq,); by default the
            initial coordinates of the bodies.

    Returns:
        The motion at the given times.

    Raises:
        KinematicError: Bodies are free to move, or the mechanism has passed a singular position.
            After a singular position, the drivers do not determine the motion.
        AssemblyError: The mechanism cannot be assembled at the first time.
        InputError: An argument is invalid, a load has states, or a joint restricts velocities but
            not positions, such as `rolling_ball`.

    Example:
        >>> run = mbd.analyses.kinematic_analysis(driven, [0.0, 0.1, 0.2])
        >>> print(run.joint("drive").moment[:, 2].round(3))  # N m
        [19.62  19.229 18.071]
    """
    instance("system", system, System).check_no_states("kinematic_analysis")
    system.check_holonomic("kinematic_analysis")
    choice("elastic_start", elastic_start, ("undeformed", "quasi-static"))
    instants = increasing("times", times, unit="s").tolist()
    if len(instants) > 1:
        check_drivers(system, instants[0], instants[-1])
    eqs = Assembler(system)
    eqs.q[:] = coordinates(system, q)
    if elastic_start == "undeformed":
        for body, part in zip(system.bodies, system.q_slices, strict=True):
            eqs.q[part.stop - body.num_elastic : part.stop] = 0.0
    states: list[State] = []
    rows: Index | None = None
    first_sign = 0.0
    try:
        for t in instants:
            limit = _solve_position(eqs, t, states)
            full_matrix = eqs.constraint_matrix()
            B = full_matrix[:, system.rigid]
            if rows is None:
                redundant = [
                    r.row for r in find_redundant(system, full_matrix, system.rigid, limit)
                ]
                rows = np.setdiff1d(np.arange(len(B)), redundant)
                _check_determined(eqs, B, len(rows), t)
            scaled, _, _ = without_units(system, full_matrix)
            # The sign differs between the assemblies that meet in a singular position
            sign = _orientation(scaled[rows][:, system.rigid])
            first_sign = first_sign or sign
            if sign != first_sign or not sign:
                interval = f" or between t = {states[-1].time:g} s and this time" if states else ""
                raise KinematicError(
                    f"the position at t = {t:g} s{interval} is singular or belongs to another "
                    "assembly: the drivers do not determine the motion after it. Drive another "
                    "joint, omit this time, or use shorter steps",
                    t,
                )
            undeformed = elastic_start == "undeformed"
            states.append(
                _moving_state(eqs, B, t, limit) if undeformed else _quasi_static_state(eqs, t)
            )
    except KinematicError as error:
        error.solution = Solution(system, states) if states else None
        raise
    return Solution(system, states)


def _solve_position(eqs: Assembler, t: float, states: list[State]) -> float:
    """Move to the position at t that is nearest to the extrapolated motion.

    Return the limit for redundant constraints at this position, see `assemble`.
    """
    s = eqs.system
    if states:
        last = states[-1]
        step = t - last.time
        delta = step * last.v + 0.5 * step * step * last.a
        delta[s.elastic] = 0.0
        eqs.angles[:] = last.angles
        eqs.move(last.q, delta)
    try:
        limit = assemble(eqs, t)
    except AssemblyError as error:
        if not states:
            raise
        raise KinematicError(
            f"the mechanism cannot follow its drivers from t = {states[-1].time:g} to {t:g} s, "
            f"past a singular position: {error}",
            t,
        ) from error
    eqs.update_poses(t)
    return limit


def _check_determined(eqs: Assembler, B: Array, rank: int, t: float) -> None:
    """Raise an error if the constraints do not determine all rigid motions."""
    s = eqs.system
    free = B.shape[1] - rank
    if free == 0:
        return
    free_motions = np.linalg.svd(B)[2][rank:] if len(B) else np.eye(B.shape[1])
    size = np.zeros(s.num_velocities)
    size[s.rigid] = np.linalg.norm(free_motions, axis=0)
    bodies = zip(s.bodies, s.v_slices, strict=True)
    names = [repr(body.name) for body, part in bodies if np.any(size[part] > _MOVES)]
    clearances = [repr(joint.name) for joint in s.joints if joint.clearance is not None]
    names_of_loose = ", ".join(clearances)
    cure = f", or system.ideal without the clearances of {names_of_loose}" if clearances else ""
    drivers = "1 driver leaves" if len(s.drivers) == 1 else f"{len(s.drivers)} drivers leave"
    raise KinematicError(
        f"{drivers} {free} degree{'s' * (free > 1)} of freedom at t = {t:g} s "
        f"(of {', '.join(names)}): the position is singular, or the mechanism needs more drivers. "
        f"Use simulate if forces determine the motion{cure}",
        t,
    )


def _orientation(rows: Array) -> float:
    """Return the sign of the constraint matrix's determinant, zero in a singular position."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.linalg.svd(rows, compute_uv=False)
    return 0.0 if values[-1] < _SINGULAR * values[0] else float(np.linalg.slogdet(rows)[0])


def _moving_state(eqs: Assembler, B: Array, t: float, limit: float) -> State:
    """Return the state with the velocities, accelerations and reactions of the rigid motion."""
    s = eqs.system
    eqs.v[:], eqs.a[:], eqs.lam[:] = 0.0, 0.0, 0.0
    rate, _ = eqs.constraint_rates(t)
    eqs.v[s.rigid] = np.linalg.lstsq(B, -rate, rcond=limit)[0]
    _, bias = eqs.constraint_rates(t)
    eqs.a[s.rigid] = np.linalg.lstsq(B, -bias, rcond=limit)[0]
    eqs.residual(t)
    eqs.lam[:] = np.linalg.lstsq(B.T, -eqs.rows[s.rigid], rcond=limit)[0]
    return eqs.state(t)


def _quasi_static_state(eqs: Assembler, t: float) -> State:
    """Return the quasi-static state near the assembler's position, with full turns counted."""
    state = consistent_state(eqs.system, t, q=eqs.q)
    eqs.q[:] = state.q
    eqs.update_poses(t)
    eqs.angles[:] = eqs.frames.joint_rotations()
    return replace(state, angles=eqs.angles.copy())


# ---- inverse dynamics ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Forces of a known motion.

    Attributes:
        solution: The motion, with the reactions of joints and drivers that the motion requires.
        efforts: Torque (N m) or force (N) of each actuator over time, (nt,), by actuator.
        unbalanced: Largest unbalanced force, relative to the largest acting force, (nt,).

    Example:
        >>> motion = mbd.analyses.kinematic_analysis(driven, [0.0, 0.1])
        >>> result = mbd.analyses.inverse_dynamics(pendulum, motion, actuators=["pin"])
        >>> bool(result.unbalanced.max() < 1e-9)
        True
    """

    solution: Solution
    efforts: Mapping[str | JointCoordinate, Array]
    unbalanced: Array

    __repr__ = short_repr


def inverse_dynamics(
    system: System,
    motion: Solution,
    *,
    actuators: Iterable[str | JointCoordinate] = (),
    tolerance: float = 1e-5,
) -> InverseDynamics:
    """Compute the forces of joints, drivers and actuators that a known motion requires.

    At each time the multipliers λ and efforts m are solved from r(q, v, a) + Bᵀλ = Eᵀm, where r is
    the residual of the equations of motion without reactions and efforts, B is the gradient of the
    constraints, and the rows of E are the gradients of the actuated coordinates.

    Args:
        system: The mechanism with the known loads, and with drivers for driven joints.
        motion: Positions, velocities and accelerations of the same bodies, from `simulate` (the
            joints and loads may differ) or `kinematic_analysis`.
        actuators: Joints with an unknown torque about (or force along) their axis. The torque acts
            on the second body, and the opposite torque on the first body.
        tolerance: Largest unbalanced force, relative to the largest acting force.

    Returns:
        The reactions and efforts.

    Raises:
        InputError: The motion belongs to other bodies, violates a constraint, or requires forces
            that no joint, driver or actuator exerts (the message names the equation); or a load has
            internal states.

    Example:
        >>> motion = mbd.analyses.kinematic_analysis(driven, [0.0, 0.1, 0.2])
        >>> forces = mbd.analyses.inverse_dynamics(pendulum, motion, actuators=["pin"])
        >>> print(forces.efforts["pin"].round(3))  # N m
        [19.62  19.229 18.071]
    """
    instance("system", system, System).check_no_states("inverse_dynamics")
    instance("motion", motion, Solution, "of simulate or kinematic_analysis")
    number("tolerance", tolerance, positive=True, high=1.0)
    if motion.q.shape[1] != system.num_coordinates or motion.v.shape[1] != system.num_velocities:
        raise InputError(
            f"the motion has {motion.q.shape[1]} coordinates, the system "
            f"{system.num_coordinates}: it belongs to other bodies"
        )
    actuators = list(entries("actuators", actuators, "a list of joints"))
    axes = [_actuated_coordinate(system, a) for a in actuators]
    if len(set(axes)) < len(axes):
        reject("actuators", actuators, "a list that names the axis of a joint only once")
    same_joints = [j.name for j in motion.system.joints] == [j.name for j in system.joints]
    eqs = Assembler(system)
    states: list[State] = []
    efforts, unbalanced_ratios = np.zeros((len(motion), len(axes))), np.zeros(len(motion))
    for k, t in enumerate(map(float, motion.time)):
        eqs.q[:], eqs.v[:], eqs.a[:] = motion.q[k], motion.v[k], motion.a[k]
        if same_joints:
            eqs.angles[:] = motion.angles[k]
        efforts[k] = _balance(eqs, t, axes)
        row, unbalanced_ratios[k] = unbalanced(eqs, t)
        if unbalanced_ratios[k] > tolerance:
            raise InputError(
                "no joint, driver or actuator carries a force that the motion requires at "
                f"t = {t:g} s: {system.row_name(row)}, {abs(eqs.rows[row]):.3g} (N or N m). Name "
                "the driven joints: actuators=[...]"
            )
        states.append(eqs.state(t))
        eqs.angles[:] = states[-1].angles
    return InverseDynamics(
        Solution(system, states, complete=motion.complete),
        dict(zip(actuators, efforts.T, strict=True)),
        unbalanced_ratios,
    )


def _actuated_coordinate(system: System, actuator: str | JointCoordinate) -> JointCoordinate:
    """Return the coordinate of a joint that an actuator drives."""
    instance("every entry of actuators", actuator, (str, JointCoordinate))
    name, motion = (
        (actuator, None) if isinstance(actuator, str) else (actuator.joint, actuator.motion)
    )
    return JointCoordinate(name, system.joint(name).free_motion(motion, "an actuator"))


def _balance(eqs: Assembler, t: float, axes: list[JointCoordinate]) -> Array:
    """Set the multipliers and the remaining residual; return the forces of the actuators."""
    eqs.lam[:] = 0.0
    eqs.residual(t)
    row = int(np.argmax(np.abs(eqs.values))) if len(eqs.values) else -1
    if row >= 0 and abs(eqs.values[row]) > _CLOSED * max(1.0, float(np.abs(eqs.position).max())):
        raise InputError(
            f"the motion violates {eqs.system.constraint_name(row)} at t = {t:g} s: it is "
            f"off by {abs(eqs.values[row]):.3g} (m or rad)"
        )
    acting = eqs.scale.copy()
    B = eqs.constraint_matrix()
    gradients = [eqs.frames.axis_gradient(c.joint, c.motion) for c in axes]
    rows = np.concatenate([B, *(-gradient[None] for gradient in gradients)])
    unknowns = np.linalg.lstsq(rows.T, -eqs.rows, rcond=_RANK)[0]
    eqs.lam[:], efforts = unknowns[: len(B)], unknowns[len(B) :]
    eqs.residual(t)
    for effort, gradient in zip(efforts, gradients, strict=True):
        eqs.rows -= effort * gradient
        eqs.scale += np.abs(effort * gradient)
    np.maximum(eqs.scale, acting, out=eqs.scale)
    return efforts
