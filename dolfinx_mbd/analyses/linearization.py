"""Linearization of a mechanism: frequencies, damping ratios, modes and stability.

About an equilibrium, or about a steady motion in axes that rotate with the mechanism, the equations
of small motions are linear with constant coefficients (see `small_motions`). The null space of the
constraints eliminates the multipliers. The stiffness includes the second derivatives of the
constraints times the reactions; these terms make a pendulum swing and a strut buckle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

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
from dolfinx_mbd.checks import array, choice, instance, integer, vector
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.consistent_state import check_state
from dolfinx_mbd.dynamics.stepping.convergence import (
    count_groups,
    largest_coordinate,
    row_groups,
)
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.optional import optional_module
from dolfinx_mbd.results.deformation_checks import check_deformation
from dolfinx_mbd.results.outputs import Outputs, Requests

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_ROUND_OFF = 16 * np.finfo(float).eps
_SMALL = 1e-10  # relative residuals without further checks for round-off
_BALANCE = 1e-6  # largest unbalanced force of a steady motion, relative to the acting forces
_CONSTANT = 1e-7  # largest change along a steady motion, relative to the largest coefficient
# Poles below this fraction of the largest may be zero; double zeros have errors of √(round-off)
_ZERO = 1e-7
_SINGULAR = 1e-11  # singular values of the stiffness below this fraction of the largest may be zero
_GROWTH = 1e-9  # real parts below this fraction of the largest pole count as zero


class SteadyError(SolverError, ValueError):
    """Error of a state that is neither an equilibrium nor part of a steady motion."""


@dataclass(frozen=True, eq=False)
class LinearizedSystem:
    """Equations M z̈ + (C + G) ż + K z = 0 for the m free coordinates, and their poles.

    Attributes:
        system: The mechanism.
        state: State about which the mechanism is linearized.
        mass: M, shape (m, m).
        damping: C, the symmetric part of the coefficients of ż, shape (m, m).
        gyroscopic: G, the skew-symmetric part of the coefficients of ż, shape (m, m).
        stiffness: K including geometric stiffness, shape (m, m); not symmetric for follower forces.
        basis: Increments of all coordinates per unit of z, shape (nv, m): translations in global
            components, rotations in body components, elastic coordinates.
        axes: Axes in which the coefficients are constant: ``body``, ``global`` or ``given``.
        poles: Exponents λ of z ∝ e^{λt} with Im λ ≥ 0, by increasing |λ|, shape (p,), 1/s.
        modes: Increments of all coordinates for each pole, largest component 1, shape (nv, p).
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        matrices: A, B, C, D of `state_space`, shapes (2m, 2m), (2m, nu), (ny, 2m) and (ny, nu).
        dominant: Name of the body with most of the kinetic energy of each mode, p names.
        displacements: Displacements of the nodes of each body on its mesh by name, (N, 3, p), in
            global components; empty without such bodies.

    If loads have states, the last coordinates z are the integrals of these states. They are not
    part of the state space and have no poles.

    With bodies on their mesh, z are the coordinates of the lowest natural modes, and `poles` are
    the lowest poles of the mechanism. `modes` then contains the increments of the frames of these
    bodies; the largest displacement of a node is 1.

    Example:
        >>> result = mbd.linearize(pendulum, mbd.equilibrium(pendulum))
        >>> print(result.frequencies.round(4), result.stability)
        [0.4972] stable
    """

    system: System
    state: State
    mass: Array
    damping: Array
    gyroscopic: Array
    stiffness: Array
    basis: Array
    axes: str
    poles: Complex
    modes: Complex
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    matrices: StateSpace
    dominant: tuple[str, ...]
    displacements: dict[str, Complex] = field(default_factory=dict)

    @classmethod
    def from_matrices(
        cls,
        system: System,
        state: State,
        matrices: tuple[Array, Array, Array],
        *,
        state_space: StateSpace | None = None,
        **fields: Any,
    ) -> LinearizedSystem:
        """Return the linearization with given coefficients of z̈, ż and z.

        Args:
            system: The mechanism.
            state: State about which it is linearized.
            matrices: M, C + G and K, shapes (m, m).
            state_space: A, B, C, D; without them, A of the coefficients, and no inputs and outputs.
            **fields: The other attributes of the class; `inputs` and `outputs` are empty by
                default.

        Example:
            >>> result = mbd.linearize(pendulum, mbd.equilibrium(pendulum))
            >>> names = ("basis", "axes", "poles", "modes", "dominant")
            >>> fields = {name: getattr(result, name) for name in names}
            >>> matrices = result.mass, result.damping + result.gyroscopic, result.stiffness
            >>> same = type(result).from_matrices(pendulum, result.state, matrices, **fields)
            >>> bool(abs(same.matrices[0] - result.matrices[0]).max() < 1e-12)
            True
        """
        M, rate, K = matrices
        return cls(
            system=system,
            state=state,
            mass=M,
            damping=0.5 * (rate + rate.T),
            gyroscopic=0.5 * (rate - rate.T),
            stiffness=K,
            matrices=_autonomous(M, rate, K) if state_space is None else state_space,
            **{"inputs": (), "outputs": (), **fields},
        )

    @property
    def frequencies(self) -> Array:
        """|λ|/2π of each pole, shape (p,), Hz."""
        return np.abs(self.poles) / (2 * np.pi)

    @property
    def damping_ratios(self) -> Array:
        """−Re λ/|λ| of each pole, shape (p,); 0 for λ = 0, ±1 for a real pole."""
        return 0.0 - self.poles.real / np.maximum(np.abs(self.poles), 1e-300)

    @property
    def stability(self) -> Literal["unstable", "neutral", "stable", "asymptotically stable"]:
        """Effect of a small disturbance.

        The disturbance grows (unstable), persists or drifts because a pole is zero (neutral),
        remains small (stable) or decays (asymptotically stable). With bodies on their mesh, this
        concerns the computed poles.
        """
        if grows(self.poles):
            return "unstable"
        limit = _GROWTH * np.abs(self.poles).max(initial=0.0)
        if (self.poles == 0).any():
            return "neutral"
        return "stable" if (self.poles.real >= -limit).any() else "asymptotically stable"

    def mode(self, body: str, number: int) -> Complex:
        """Return a mode of one body: δR in global components, δφ in body components, and δη.

        Args:
            body: Name of the body.
            number: Number of the mode, starting at 1.

        Returns:
            Shape (6+n,).

        Raises:
            InputError: The body or the mode does not exist.
        """
        part = self.system.v_slices[self.system.body_index(body)]
        return self.modes[part, integer("number", number, low=1, high=self.modes.shape[1]) - 1]

    def state_space(self) -> Any:
        """Return ẋ = A x + B u, y = C x + D u as a `scipy.signal.StateSpace`.

        The state x = (z, ż) contains the free coordinates and their rates. Inputs u and outputs y
        are deviations from their values at the state of the linearization, in the order of `inputs`
        and `outputs`.

        Raises:
            InputError: The linearization has no inputs or no outputs.
        """
        import scipy.signal

        return scipy.signal.StateSpace(*self._checked_matrices())

    def response(self, frequencies: ArrayLike) -> Complex:
        """Return the complex amplitudes of the outputs per unit amplitude of each input.

        They are more accurate than the amplitudes from `scipy.signal`, which computes polynomials.

        Args:
            frequencies: Frequencies, shape (nf,), Hz.

        Returns:
            Shape (nf, ny, nu).

        Raises:
            InputError: The linearization has no inputs or no outputs.
        """
        A, B, C, D = self._checked_matrices()
        s = 2j * np.pi * np.asarray(array("frequencies", frequencies, (None,)))
        x = np.linalg.solve(s[:, None, None] * np.eye(len(A)) - A, np.tile(B, (len(s), 1, 1)))
        return np.asarray(C @ x + D)

    def to_control(self) -> Any:
        """Return the state space as a `control.StateSpace` of python-control, with names.

        Dots in the names become underscores, because python-control does not allow dots.

        Raises:
            ImportError: python-control is not installed.
            InputError: The linearization has no inputs or no outputs.
        """
        control = optional_module("control", "models of python-control")
        names = {"inputs": self.inputs, "outputs": self.outputs}
        labels = {key: [name.replace(".", "_") for name in names[key]] for key in names}
        return control.ss(*self._checked_matrices(), **labels)

    def _checked_matrices(self) -> StateSpace:
        if not (self.inputs and self.outputs):
            raise InputError("a state space needs inputs and outputs: linearize(..., inputs=[...])")
        return self.matrices

    def summary(self) -> str:
        """Return a table of the poles, each with the body that has most of the kinetic energy."""
        states = len(self.system.states)
        count = len(self.mass) - states
        number = "1 coordinate" if count == 1 else f"{count} coordinates"
        number += f" and {states} state{'s' * (states > 1)} of loads" if states else ""
        lines = [f"{self.stability}; {number} ({self.axes} axes)"]
        lines.append(f"{'':>3}{'Hz':>14}{'damping':>10}{'pole, 1/s':>28}  mostly")
        rows = zip(self.poles, self.frequencies, self.damping_ratios, self.dominant, strict=True)
        for k, (pole, frequency, ratio, name) in enumerate(rows):
            value = f"{pole.real:.5g} {pole.imag:+.5g}i"
            lines.append(f"{k + 1:>3}{frequency:>14.6g}{ratio:>10.4f}{value:>28}  {name}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<LinearizedSystem: {len(self.poles)} poles, {self.stability}>"


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
        num_modes: Number of poles with Im λ ≥ 0 of a mechanism with bodies on their mesh, which may
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
            positions, such as `rolling_ball`; or a body is on its mesh and its motion, `axes` or
            `num_modes` are not possible.

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
    check_state("state", state, system)
    signals = Inputs(system, inputs), Outputs(outputs)
    check_inputs(signals[0])
    count = integer("num_modes", num_modes, low=1)
    for body in system.bodies:
        if hasattr(body, "linearization"):  # a body on its mesh
            _check_mesh_body(body, axes)
            try:
                return body.linearization(signals[0].system, state, count, *signals)  # type: ignore[no-any-return]
            except SteadyError as error:
                raise SteadyError(f"{error}{_note(signals[0])}") from error
    at = Assembler(signals[0].system)
    bodies, fixed = Axes.of_bodies(system, state.q, state.v), Axes.common(system, np.zeros(3))
    choices = {"body": bodies, "global": fixed}
    if not isinstance(axes, str):
        choices = {"given": Axes.common(system, vector("axes", axes, unit="rad/s"))}
    elif choice("axes", axes, ("auto", "body", "global")) != "auto":
        choices = {axes: choices[axes]}
    reasons = []
    for name, candidate in choices.items():
        _set_motion(at, state)
        try:
            if name != "body":
                candidate = _with_rotors(candidate, state, system)
            motions, basis, step = _steady_coefficients(at, state.time, candidate)
            matrices = _constant_matrices(at, state, candidate, step, basis, *signals)
        except SteadyError as error:
            reasons.append(f"in {name} axes {error}")
            continue
        coefficients = motions.reduced(basis)
        poles, vectors = poles_of(*coefficients, len(system.states))
        motion = basis @ vectors
        modes = motions.resolve @ motion
        largest = np.abs(modes).argmax(axis=0)
        check_deformation(system, [state])
        return LinearizedSystem.from_matrices(
            system,
            state,
            coefficients,
            state_space=matrices,
            basis=motions.resolve @ basis,
            axes=name,
            poles=poles,
            modes=modes / np.take_along_axis(modes, largest[None], axis=0),
            inputs=signals[0].names,
            outputs=signals[1].names,
            dominant=_dominant(system, motions.mass, motion),
        )
    raise SteadyError(
        f"the state at t = {state.time:g} s is neither an equilibrium nor part of a steady motion: "
        f"{'; '.join(reasons)}. Linearize about equilibrium(system), or a steady rotation"
        f"{_note(signals[0])}"
    )


def _note(inputs: Inputs) -> str:
    """Return a text about inputs that replace functions."""
    if not inputs.functions:
        return ""
    names = ", ".join(map(repr, inputs.functions))
    return f". The inputs {names} replace functions and are 0; use numbers in place of functions"


def _autonomous(M: Array, rate: Array, K: Array) -> StateSpace:
    """Return A, B, C, D of M z̈ + rate ż + K z = 0, without inputs and outputs."""
    size = 2 * len(M)
    lower = -np.linalg.solve(M, np.hstack([K, rate]))
    A = np.vstack([np.eye(len(M), size, len(M)), lower])
    return A, np.zeros((size, 0)), np.zeros((0, size)), np.zeros((0, 0))


def _check_mesh_body(body: Any, axes: Any) -> None:
    """Raise an InputError for axes that a body on its mesh does not permit."""
    if not isinstance(axes, str) or choice("axes", axes, ("auto", "body", "global")) == "global":
        raise InputError(
            f"body {body.name!r} is on its whole mesh; its linearization has axes='body' only: the "
            "mechanism rotates as a whole or is at rest. Reduce the body and use FlexibleBody",
            argument="axes",
            value=axes,
        )


def _dominant(system: System, mass: Array, motions: Complex) -> tuple[str, ...]:
    """Return the body with most of the kinetic energy of each motion (nv, p)."""
    shares = [
        np.einsum("ik,ij,jk->k", motions[s].conj(), mass[s, s], motions[s]).real
        for s in system.v_slices
    ]
    return tuple(system.bodies[k].name for k in np.argmax(shares, axis=0))


def _steady_coefficients(at: Assembler, t: float, axes: Axes) -> tuple[SmallMotions, Array, float]:
    """Return coefficients and free motions; raise an error if the motion is not steady.

    The third result is the time after which the coefficients were compared, s; 0 at rest.
    """
    s = at.system
    motions = _balanced_coefficients(at, t, axes)
    basis = free_directions(motions)
    if not basis.shape[1]:
        raise InputError("nothing is free to move: the constraints fix every coordinate")
    speeds = np.abs(at.v)
    speeds[s.states] = 0.0
    if not speeds.any():
        return motions, basis, 0.0
    s.check_holonomic("linearize, about a motion,")
    if s.num_constraints:
        row, speed = constraint_speed(at, t)
        if speed > _BALANCE * speeds.max():
            raise SteadyError(f"{s.constraint_name(row)} moves at {speed:.3g} (m/s or rad/s)")
    if len(s.elastic):
        errors = np.abs(at.v - elastic_rates(at, axes))[s.elastic]
        if errors.max() > _BALANCE * speeds.max():
            raise SteadyError("the deformation of bodies changes")
    fastest = float(speeds[s.rigid].max())
    step = 0.3 / fastest
    first = motions.reduced(basis)
    later = _balanced_coefficients(at, t + step, move_steadily(at, axes, step))
    if s.num_constraints:
        size = np.linalg.norm(later.constraints, axis=1)[:, None] * np.linalg.norm(basis, axis=0)
        if (np.abs(later.constraints @ basis) > _CONSTANT * size).any():
            raise SteadyError("the constraints change along the motion")
    names = ("inertia", "damping", "stiffness")
    second, noises = later.reduced(basis), motions.round_off(basis)
    for power, (name, one, two) in enumerate(zip(names, first, second, strict=True)):
        size = max(fastest**power, np.abs(one).max(), np.abs(two).max())
        if np.abs(one - two).max() > _CONSTANT * size + noises[power]:
            raise SteadyError(f"the {name} changes along the motion")
    return motions, basis, step


def _with_rotors(axes: Axes, state: State, system: System) -> Axes:
    """Return axes in which the deformations of rotating round bodies are constant."""
    try:
        return axes.with_rotors(system, state.q, state.v)
    except InputError as error:
        raise SteadyError(str(error)) from error


def _set_motion(at: Assembler, state: State) -> None:
    """Set positions and velocities; the state may have multipliers of fewer constraints."""
    at.q[:], at.v[:], at.angles[:] = state.q, state.v, state.angles


def _constant_matrices(
    at: Assembler,
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
    for time in (t, t + step)[: 2 if step else 1]:
        _set_motion(at, state)
        now = axes if time == t else move_steadily(at, axes, step)
        results.append(
            state_space(at, time, _balanced_coefficients(at, time, now), basis, inputs, outputs)
        )
    for name, one, two in zip("ABCD", results[0], results[-1], strict=True):
        size = np.abs(one).max(initial=0.0)
        if np.abs(one - two).max(initial=0.0) > _CONSTANT * size:
            raise SteadyError(f"matrix {name} of inputs and outputs changes along the motion")
    return results[0]


def _balanced_coefficients(at: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Return the coefficients for the accelerations and reactions of a steady motion."""
    s = at.system
    at.a[:] = steady_rates(at, axes)
    motions = balanced_motions(at, t, axes)
    if len(at.values) and np.abs(at.values).max() > _BALANCE * s.size:
        row = int(np.argmax(np.abs(at.values)))
        raise SteadyError(f"{s.constraint_name(row)} is off by {abs(at.values[row]):.3g}")
    row, share = unbalanced(at, t)
    if share > _BALANCE:
        raise SteadyError(
            f"{s.row_name(row)} is not in balance (residual {abs(at.rows[row]):.3g} N or N m)"
        )
    return motions


def unbalanced(at: Assembler, t: float) -> tuple[int, float]:
    """Return the index of the equation with the largest relative residual, and this residual.

    The scale is the largest sum of magnitudes of terms in equations of the same kind and body. It
    contains each load, because the loads on one frame may cancel.
    The round-off of lever arms is subtracted from the residuals of moments, and the round-off of
    coordinates in stiff springs from all residuals.
    """
    s, scale, jacobians = at.system, at.scale.copy(), at.frames.jacobians()
    for _, frames, wrench in at.loads.wrenches(t):
        for frame, part in zip(frames, np.reshape(wrench, (-1, 6)), strict=True):
            k = int(s.frame_body[frame])
            J = jacobians[k][frame - s.frame_slices[k].start]
            scale[s.v_slices[k]] += np.abs(J).T @ np.abs(part)
    groups = row_groups(s)
    if len(s.states):
        scale[s.states] += _state_scale(at, t, groups)
    sizes, noise = np.full(count_groups(s), 1e-300), np.zeros(count_groups(s))
    np.maximum.at(sizes, groups, scale)
    bodies = slice(3 * len(s.bodies))
    noise[bodies][1::3] = _ROUND_OFF * largest_coordinate(at) * sizes[bodies][0::3]
    rest = np.maximum(np.abs(np.nan_to_num(at.rows, nan=np.inf)) - noise[groups], 0.0)
    share = rest / sizes[groups]
    if share.max(initial=0.0) > _SMALL:
        share = np.maximum(rest - _spring_noise(at, t, groups), 0.0) / sizes[groups]
    row = int(np.argmax(share))
    return row, float(share[row])


def _state_scale(at: Assembler, t: float, groups: NDArray[np.int64]) -> Array:
    """Return the sizes of the terms of the rates of states, which cancel in an equilibrium."""
    tangent, states = at.tangent(t), at.system.states
    by_states = np.abs(tangent.C[np.ix_(states, states)]) @ np.abs(at.v[states])
    return np.asarray(by_states + np.abs(tangent.K[states]) @ _lengths(at, groups))


def _lengths(at: Assembler, groups: NDArray[np.int64]) -> Array:
    """Return the size of each rigid coordinate, m or rad, and zero for the others, (nv,)."""
    lengths = np.array([largest_coordinate(at), 1.0, 0.0])[groups % 3]
    lengths[at.system.states] = 0.0
    return lengths


def _spring_noise(at: Assembler, t: float, groups: NDArray[np.int64]) -> Array:
    """Return the forces (nv,) that stiffness assigns to the round-off of rigid coordinates."""
    return np.asarray(_ROUND_OFF * np.abs(at.tangent(t).K) @ _lengths(at, groups))


def constraint_speed(at: Assembler, t: float) -> tuple[int, float]:
    """Return the index of the constraint with the largest rate, and this rate, m/s or rad/s."""
    rates = at.constraint_matrix() @ at.v + at.constraint_rates(t)[0]
    row = int(np.argmax(np.abs(rates)))
    return row, float(np.abs(rates[row]))


def grows(poles: Complex) -> bool:
    """Return whether the real part of a pole is positive, beyond round-off."""
    return bool((poles.real > _GROWTH * np.abs(poles).max(initial=0.0)).any())


def poles_of(M: Array, rate: Array, K: Array, states: int = 0) -> tuple[Complex, Complex]:
    """Return the poles with Im λ ≥ 0 by increasing |λ|, and their eigenvectors (m, p).

    The last coordinates are the integrals of `states` states of loads. Nothing depends on them;
    the eigenvectors contain the states instead.
    """
    m, free = len(M), len(M) - states
    size = float(np.abs(K).max())
    scale = max(np.sqrt(size), float(np.abs(rate).max()), 1e-300)
    symmetric = np.abs(K - K.T).max() <= 1e-9 * size
    if symmetric and not states and np.abs(rate).max() <= 1e-13 * scale:
        squares, real = scipy.linalg.eigh(0.5 * (K + K.T), M)
        squares[np.abs(squares) <= _ZERO**2 * max(np.abs(squares).max(), 1e-300)] = 0.0
        roots = np.sqrt((-squares).astype(complex))  # iω, or the growth rate of an instability
        twice = np.flatnonzero(squares < 0)  # real poles occur in ± pairs
        values = np.concatenate([roots, -roots[twice]])
        vectors = np.concatenate([real, real[:, twice]], axis=1).astype(complex)
    else:
        inverse, zero = np.linalg.inv(M), np.zeros((m, m))
        A = np.block([[zero, scale * np.eye(m)], [-inverse @ K / scale, -inverse @ rate]])
        unknowns = np.r_[:free, m : 2 * m]
        values, whole = np.linalg.eig(A[np.ix_(unknowns, unknowns)])
        values, statics = values.astype(complex), K.copy()
        statics[:, free:] = rate[:, free:]
        values[_zero_poles(values, inverse @ statics)] = 0.0
        upper = values.imag >= 0
        whole[free + free :] *= scale
        vectors = whole[np.r_[:free, free + free : free + m], :][:, upper].astype(complex)
        values = values[upper]
        zeros = np.flatnonzero(values == 0)
        if len(zeros):  # the eigenvectors of a double zero are equal
            unit = vectors[:, zeros] / np.maximum(np.linalg.norm(vectors[:, zeros], axis=0), 1e-300)
            _, R, pivots = scipy.linalg.qr(unit, mode="economic", pivoting=True)
            same = zeros[pivots[int(np.sum(np.abs(np.diag(R)) > 1e-4)) :]]
            values, vectors = np.delete(values, same), np.delete(vectors, same, axis=1)
    order = np.argsort(np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _zero_poles(values: Complex, stiffness: Array) -> NDArray[np.int64]:
    """Return the indices of the poles that are zero, for the stiffness M⁻¹K.

    Each zero of the stiffness has one zero pole, or two without damping. If the stiffness is
    regular, no pole is zero, however small it is compared with the pole of a strong damper.
    """
    singular = np.linalg.svd(stiffness, compute_uv=False)
    nullity = int(np.sum(singular <= _SINGULAR * singular.max(initial=0.0)))
    sizes = np.abs(values)
    order = np.argsort(sizes, kind="stable")[: 2 * nullity]
    return order[sizes[order] <= _ZERO * sizes.max(initial=0.0)]
