"""Linearization of a mechanism: frequencies, damping ratios, modes and stability.

About an equilibrium, or about a steady motion in axes that rotate with the mechanism, the equations
of small motions are linear with constant coefficients (see `small_motions`). The null space of the
constraints eliminates the multipliers. The stiffness includes the second derivatives of the
constraints times the reactions; these terms make a pendulum swing and a strut buckle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.poles import poles_of
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.analyses.small_motions import (
    Axes,
    SmallMotions,
    balanced_motions,
    elastic_rates,
    free_directions,
    move_steadily,
    steady_rates,
)
from dolfinx_mbd.analyses.state_space import StateSpace, check_inputs, state_space
from dolfinx_mbd.analyses.unbalanced_forces import constraint_speed, unbalanced
from dolfinx_mbd.checks import choice, instance, integer, vector
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.deformation_checks import check_deformation
from dolfinx_mbd.results.outputs import Outputs, Requests

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_BALANCE = 1e-6  # largest unbalanced force of a steady motion, relative to the acting forces
_ANGLE = 0.3  # rotation after which the coefficients are compared, rad, or motion in m
_CONSTANT = 1e-7  # largest change along a steady motion, relative to the largest coefficient


class SteadyError(SolverError, ValueError):
    """Error of a state that is neither an equilibrium nor part of a steady motion."""


def linearize(
    system: System,
    state: State,
    *,
    axes: Literal["auto", "body", "global"] | ArrayLike = "auto",
    inputs: Sequence[str] = (),
    outputs: Requests | None = None,
    num_modes: int = 12,
) -> LinearizedSystem:
    """Linearize a mechanism about an equilibrium or a steady motion.

    Positions and velocities are taken from the state; accelerations and reactions are computed for
    the steady motion. Time-dependent loads, and the drivers of a mechanism at rest, are evaluated
    at the time of the state. Constraints may be redundant.

    Args:
        system: The mechanism.
        state: State from `equilibrium`, `consistent_state` or a simulation.
        axes: Axes in which the motion is steady and the coefficients are constant. ``body``: the
            axes of each body, if the mechanism rotates as a whole. ``global``: for rotors on fixed
            supports that may differ in two directions; flexible bodies that rotate must be round,
            see `dolfinx_mbd.body.axisymmetric`. An angular velocity in global components, shape
            (3,), rad/s: axes that rotate with it, for example for a top in steady precession.
            ``auto``: ``body`` if the motion is steady in the body axes, otherwise ``global``.
        inputs: Names of the inputs of the state space, as for `Simulator`. Drivers cannot be
            inputs.
        outputs: Outputs of the state space: names, or functions by name, as for `Simulator`.
        num_modes: Number of poles with Im λ ≥ 0 of a mechanism with mesh bodies, which may
            be strongly deformed; see `mbd.structures.vibration_modes`. Such mechanisms are at rest
            or rotate as a whole. With inputs, the last coordinates z are the static responses to
            them. Without such bodies, all poles are computed.

    Returns:
        Matrices, poles, modes and the state space.

    Warns:
        ModelRangeWarning: A body deforms too much for the linear theory, or has no geometric
            stiffening and rotates too fast.

    Raises:
        SteadyError: The forces do not balance, or the coefficients or the effects of inputs and
            outputs change along the motion.
        InputError: The state belongs to another system, the constraints fix every coordinate, an
            input or output is invalid, or the bodies move and a joint restricts velocities but not
            positions, such as `rolling_ball`; or the mechanism has a mesh body, and the motion,
            `axes` or `num_modes` are not possible.

    Example:
        >>> state = mbd.equilibrium(pendulum)
        >>> print(mbd.linearize(pendulum, state).summary())
        stable; 1 coordinate (body axes)
                       Hz   damping                   pole, 1/s  mostly
          1      0.497246    0.0000                  0 +3.1243i  bob

        The response of the angle to a torque, at the state of rest:

        >>> motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
        >>> arm = mbd.System([ground, bob], [pin], loads=[motor], gravity=(0, -9.81, 0))
        >>> angle = {"angle": lambda run: run.joint("pin").rotation}
        >>> result = mbd.linearize(arm, mbd.equilibrium(arm), inputs=["motor"], outputs=angle)
        >>> print(f"{result.response([0.0])[0, 0, 0].real:.5f} rad/(N m)")
        0.05097 rad/(N m)
    """
    instance("system", system, System)
    system.check_state("state", state)
    signals = checked, observed = Inputs(system, inputs), Outputs(outputs)
    check_inputs(checked)
    count = integer("num_modes", num_modes, low=1)
    for body in system.bodies:
        if hasattr(body, "linearization"):  # a mesh body
            _check_mesh_body(body, axes)
            try:
                return body.linearization(checked.system, state, count, *signals)  # type: ignore[no-any-return]
            except SteadyError as error:
                raise SteadyError(f"{error}{_note_on_functions(checked)}") from error
    eqs = Assembler(checked.system)  # loads that are inputs have numbers instead of functions
    bodies, fixed = Axes.of_bodies(system, state.q, state.v), Axes.common(system, np.zeros(3))
    choices = {"body": bodies, "global": fixed}
    if not isinstance(axes, str):
        choices = {"given": Axes.common(system, vector("axes", axes, unit="rad/s"))}
    elif choice("axes", axes, ("auto", "body", "global")) != "auto":
        choices = {axes: choices[axes]}
    reasons = []
    for name, candidate in choices.items():
        _set_motion(eqs, state)
        try:
            if name != "body":
                candidate = _with_rotors(candidate, state, system)
            motions, basis, step = _steady_coefficients(eqs, state.time, candidate)
            matrices = _constant_matrices(eqs, state, candidate, step, basis, *signals)
        except SteadyError as error:
            reasons.append(f"in {name} axes {error}")
            continue
        coefficients = motions.reduced(basis)
        poles, vectors = poles_of(*coefficients, len(system.states))
        free_motions = basis @ vectors
        modes = motions.to_increments @ free_motions
        largest = np.abs(modes).argmax(axis=0)
        check_deformation(system, [state])
        return LinearizedSystem.from_matrices(
            system,
            state,
            coefficients,
            state_space=matrices,
            basis=motions.to_increments @ basis,
            axes=name,
            poles=poles,
            modes=modes / np.take_along_axis(modes, largest[None], axis=0),
            inputs=checked.names,
            outputs=observed.names,
            dominant=_dominant(system, motions.mass, free_motions),
        )
    raise SteadyError(
        f"the state at t = {state.time:g} s is neither an equilibrium nor part of a steady motion: "
        f"{'; '.join(reasons)}. Linearize about equilibrium(system), or a steady rotation"
        f"{_note_on_functions(checked)}"
    )


def _note_on_functions(inputs: Inputs) -> str:
    """Return a text about the inputs of loads whose values are user-defined functions."""
    if not inputs.functions:
        return ""
    names = ", ".join(map(repr, inputs.functions))
    return (
        f". The loads of the inputs {names} are functions; the linearization replaces each by the "
        "number 0. Give these loads numbers instead"
    )


def _check_mesh_body(body: Any, axes: Any) -> None:
    """Raise an InputError for axes that a mesh body does not permit."""
    if not isinstance(axes, str) or choice("axes", axes, ("auto", "body", "global")) == "global":
        raise InputError(
            f"the linearization of mesh body {body.name!r} has axes='body' only: the mechanism "
            "rotates as a whole or is at rest. For other axes, reduce the body (FlexibleBody)",
            argument="axes",
            value=axes,
        )


def _dominant(system: System, mass: Array, motions: Complex) -> tuple[str, ...]:
    """Return the body with most of the kinetic energy of each motion (nv, p)."""
    energies = [
        np.einsum("ik,ij,jk->k", motions[s].conj(), mass[s, s], motions[s]).real
        for s in system.v_slices
    ]
    return tuple(system.bodies[k].name for k in np.argmax(energies, axis=0))


def _steady_coefficients(eqs: Assembler, t: float, axes: Axes) -> tuple[SmallMotions, Array, float]:
    """Return coefficients and free motions; raise an error if the motion is not steady.

    The third result is the time after which the coefficients were compared, s; 0 at rest.
    """
    s = eqs.system
    motions = _balanced_coefficients(eqs, t, axes)
    basis = free_directions(motions)
    if not basis.shape[1]:
        raise InputError("nothing is free to move: the constraints fix every coordinate")
    speeds = np.abs(eqs.v)
    speeds[s.states] = 0.0
    if not speeds.any():
        return motions, basis, 0.0
    s.check_holonomic("linearize, about a motion,")
    if s.num_constraints:
        row, speed = constraint_speed(eqs, t)
        if speed > _BALANCE * speeds.max():
            raise SteadyError(f"{s.constraint_name(row)} moves at {speed:.3g} (m/s or rad/s)")
    if len(s.elastic):
        errors = np.abs(eqs.v - elastic_rates(eqs, axes))[s.elastic]
        if errors.max() > _BALANCE * speeds.max():
            raise SteadyError("the deformation of bodies changes")
    fastest = float(speeds[s.rigid].max())
    step = _ANGLE / fastest
    first = motions.reduced(basis)
    later = _balanced_coefficients(eqs, t + step, move_steadily(eqs, axes, step))
    if s.num_constraints:
        size = np.linalg.norm(later.constraints, axis=1)[:, None] * np.linalg.norm(basis, axis=0)
        if (np.abs(later.constraints @ basis) > _CONSTANT * size).any():
            raise SteadyError("the constraints change along the motion")
    names = ("inertia", "damping", "stiffness")
    second, noises = later.reduced(basis), motions.round_off(basis)
    # The coefficients may have the order of the speed to the power 0, 1 or 2
    for power, (name, before, after) in enumerate(zip(names, first, second, strict=True)):
        size = max(fastest**power, np.abs(before).max(), np.abs(after).max())
        if np.abs(before - after).max() > _CONSTANT * size + noises[power]:
            raise SteadyError(f"the {name} changes along the motion")
    return motions, basis, step


def _with_rotors(axes: Axes, state: State, system: System) -> Axes:
    """Return axes in which the deformations of rotating round bodies are constant."""
    try:
        return axes.with_rotors(system, state.q, state.v)
    except InputError as error:
        raise SteadyError(str(error)) from error


def _set_motion(eqs: Assembler, state: State) -> None:
    """Set positions and velocities; accelerations and multipliers are computed later."""
    eqs.q[:], eqs.v[:], eqs.angles[:] = state.q, state.v, state.angles


def _constant_matrices(
    eqs: Assembler,
    state: State,
    axes: Axes,
    step: float,
    basis: Array,
    inputs: Inputs,
    outputs: Outputs,
) -> StateSpace:
    """Return the state space; raise an error if it is different after the time `step`."""
    if not (inputs.names or outputs.names):
        step = 0.0
    t, results = state.time, []
    for time in (t, t + step) if step else (t,):
        _set_motion(eqs, state)
        axes_then = axes if time == t else move_steadily(eqs, axes, step)
        results.append(
            state_space(
                eqs, time, _balanced_coefficients(eqs, time, axes_then), basis, inputs, outputs
            )
        )
    for name, before, after in zip("ABCD", results[0], results[-1], strict=True):
        size = np.abs(before).max(initial=0.0)
        if np.abs(before - after).max(initial=0.0) > _CONSTANT * size:
            raise SteadyError(f"matrix {name} of inputs and outputs changes along the motion")
    return results[0]


def _balanced_coefficients(eqs: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Return the coefficients for the accelerations and reactions of a steady motion."""
    s = eqs.system
    eqs.a[:] = steady_rates(eqs, axes)
    motions = balanced_motions(eqs, t, axes)
    if len(eqs.values) and np.abs(eqs.values).max() > _BALANCE * s.size:
        row = int(np.argmax(np.abs(eqs.values)))
        raise SteadyError(f"{s.constraint_name(row)} is off by {abs(eqs.values[row]):.3g} m or rad")
    row, ratio = unbalanced(eqs, t)
    if ratio > _BALANCE:
        raise SteadyError(
            f"{s.row_name(row)} is not in balance (residual {abs(eqs.rows[row]):.3g} N or N m)"
        )
    return motions
