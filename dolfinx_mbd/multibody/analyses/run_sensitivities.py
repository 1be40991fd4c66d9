"""Derivatives of a simulation with respect to parameters of the mechanism.

Each time step solves R(q, v, a, λ; p) = 0 and Φ(q; p) = 0 together with the formulas of the
generalized-α method. The derivatives of the step's results with respect to p therefore solve a
linear system with the exact tangent of the step. Only ∂R/∂p and ∂Φ/∂p are central differences, at a
fixed state. A parameter may therefore belong to any part of the mechanism. Symbols: residual R,
constraints Φ, coordinates q, velocities v, accelerations a, multipliers λ, parameters p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, function, instance, integer, number, reject
from dolfinx_mbd.checks import memory as check_memory
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_matrix, rotation_vector
from dolfinx_mbd.multibody.analyses.simulator import one_blas_thread
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.start.consistent_state import consistent_state
from dolfinx_mbd.multibody.stepping.integrators import Stepper
from dolfinx_mbd.time_integration import GeneralizedAlpha

Array = NDArray[np.float64]
Build = Callable[[Mapping[str, float]], SystemData]

DIFFERENCE_STEP, OUTPUT_STEP = 1e-3, 1e-2  # steps of differences, relative to the parameters
SHORTEST = 1e-12  # shortest time step, s
LARGEST_MOVE = 1e-3  # largest increment of a coordinate in a difference of outputs, m or rad
FOURTH_ORDER = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
"""Weights of a central difference of fourth order, by the multiple of the step."""


@dataclass(frozen=True, eq=False)
class RunSensitivities:
    """A simulation with its derivatives with respect to parameters.

    Attributes:
        run: The simulation at the given values.
        values: Values of the parameters by name.
        increments: Derivatives of the coordinates as increments: translations in global
            components, rotation vectors in body components, elastic coordinates, shape
            (nt, nv, parameters).

    Example:
        >>> def swing(p):
        ...     frames = {"pin": mbd.Frame((0, 0.5, 0))}
        ...     bob = mbd.RigidBody(
        ...         "bob", p["mass"], [0.01] * 3, position=(0, -0.5, 0), frames=frames
        ...     )
        ...     pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
        ...     return mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
        >>> result = mbd.run_sensitivities(swing, {"mass": 2.0}, t_end=0.1, dt=0.01)
        >>> force = result.derivative(lambda run: run.joint("pin").force[-1, 1])["mass"]
        >>> print(f"{force:.3f} N/kg")
        9.810 N/kg
    """

    run: Solution
    values: Mapping[str, float]
    increments: Array
    _changed: tuple[tuple[tuple[float, Solution], ...], ...]  # weights of runs to first order

    __repr__ = short_repr

    def derivative(self, output: Callable[[Solution], ArrayLike]) -> dict[str, Any]:
        """Return the derivatives of a result by the names of the parameters.

        Args:
            output: Function that returns a number or an array for a simulation, for example
                ``lambda run: run.joint("pin").force``.

        Returns:
            Derivatives of the shape of the output, per unit of each parameter.

        Raises:
            InputError: The output is not a function.
        """
        function("output", output, "output(run)")
        derivatives = {}
        for name, runs in zip(self.values, self._changed, strict=True):
            parts = [weight * array("output(run)", output(run)) for weight, run in runs]
            derivatives[name] = np.sum(parts, axis=0)
        return derivatives


@one_blas_thread()
def run_sensitivities(
    build: Build,
    values: Mapping[str, float],
    *,
    t_end: float,
    dt: float,
    method: GeneralizedAlpha | None = None,
    tolerance: float = 1e-8,
    start: Mapping[str, float] | None = None,
    stride: int = 1,
) -> RunSensitivities:
    """Simulate a mechanism, and differentiate the simulation with respect to parameters.

    The derivatives are those of the computed motion, with its errors of time integration. Loads and
    drivers must be smooth functions of time and of the parameters.

    Args:
        build: Function that returns the mechanism for values by name. All mechanisms must have the
            same bodies, joints and loads.
        values: Values of the parameters by name, not zero.
        t_end: End time, s.
        dt: Time step, s, adjusted so that a whole number of steps fits.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method; see `Stepper`.
        start: Rates of joints at t = 0 by name, as in `simulate`.
        stride: Number of steps between saved results.

    Returns:
        The simulation and its derivatives.

    Raises:
        InputError: A value is zero or not finite, or `build` returns mechanisms of different
            sizes.
        StepError: A step does not converge.

    Example:
        >>> def hanging(p):
        ...     frames = {"top": mbd.Frame()}
        ...     weight = mbd.RigidBody("bob", 2.0, [0.1] * 3, position=(0, -1, 0), frames=frames)
        ...     ends = ground.frame("pin"), weight.frame("top")
        ...     spring = mbd.SpringDamper("spring", *ends, p["k"], length=1.0)
        ...     return mbd.System([ground, weight], loads=[spring], gravity=(0, -9.81, 0))
        >>> result = mbd.run_sensitivities(hanging, {"k": 800.0}, t_end=0.05, dt=1e-3)
        >>> slope = result.derivative(lambda run: run.body("bob").position[-1, 1])["k"]
        >>> print(f"{slope:.3e} m per N/m")
        1.195e-06 m per N/m
    """
    function("build", build, "build(values)")
    for name, value in instance("values", values, Mapping).items():
        if number(f"values: {name}", value) == 0:
            raise InputError(f"values: {name} must not be zero", argument="values", value=values)
    if not values:
        reject("values", values, "a mapping from at least one parameter to its value")
    t_end, dt = (number(k, v, low=SHORTEST, unit="s") for k, v in (("t_end", t_end), ("dt", dt)))
    stride = integer("stride", stride, low=1)
    steps = max(1, round(t_end / dt))
    check_memory("t_end", t_end, 1000.0 * len(values) * (steps // stride))
    sweep = _Sweep(build, dict(values), t_end / steps, method, tolerance, start)
    states, increments = [sweep.state], [sweep.increments]
    saved = [sweep.rates]
    for k in range(1, steps + 1):
        sweep.advance()
        if k % stride == 0 or k == steps:
            states.append(sweep.state)
            increments.append(sweep.increments)
            saved.append(sweep.rates)
    run = Solution(
        sweep.system,
        states,
        iterations=sweep.stepper.iterations,
        factorizations=sweep.stepper.factorizations,
    )
    changed = []
    for k, (name, value) in enumerate(values.items()):
        h = OUTPUT_STEP * abs(value)
        h = min(h, LARGEST_MOVE / max(float(np.abs(np.array(increments)[:, :, k]).max()), 1e-300))
        runs = []
        for factor, weight in FOURTH_ORDER.items():
            system = build({**values, name: value + factor * h})
            moved = _moved(system, states, increments, saved, k, factor * h)
            runs.append((weight / h, moved))
        changed.append(tuple(runs))
    return RunSensitivities(run, dict(values), np.array(increments), tuple(changed))


class _Sweep:
    """One pass over time: the state, and its derivatives with respect to all parameters.

    `increments` are the derivatives of q, and `rates` are the derivatives of v, a and λ.
    """

    def __init__(
        self,
        build: Build,
        values: dict[str, float],
        dt: float,
        method: GeneralizedAlpha | None,
        tolerance: float,
        start: Mapping[str, float] | None,
    ) -> None:
        self.dt, self.system = dt, build(values)
        self.stepper = Stepper(self.system, method, tolerance=tolerance)
        self._size = self.system.num_velocities, self.system.num_constraints
        self._at = Assembler(self.system)
        self._terms: list[list[tuple[float, Assembler]]] = []
        self.state = self.stepper.begin(consistent_state(self.system, rates=start), dt)
        columns = []
        for name, value in values.items():
            h = DIFFERENCE_STEP * abs(value)

            def changed(step: float, name: str = name) -> SystemData:
                return self._checked(build({**values, name: values[name] + step}))

            systems = {factor: changed(factor * h) for factor in FOURTH_ORDER}
            self._terms.append([(w / h, Assembler(systems[k])) for k, w in FOURTH_ORDER.items()])
            column = np.zeros(5 * self._size[0] + self._size[1])
            for factor, weight in FOURTH_ORDER.items():
                stepper = Stepper(systems[factor], method)
                first = stepper.begin(consistent_state(systems[factor], rates=start), dt)
                column += weight / h * self._numbers(first)
            columns.append(column)
        nv, nc = self._size
        table = np.array(columns).T.reshape(5 * nv + nc, len(values))
        parts = np.split(table, np.cumsum([nv, nv, nv, nc, nv]))
        self.increments, v, a, lam, self._algorithmic, self._velocity = parts
        self.rates = v, a, lam

    def _checked(self, system: SystemData) -> SystemData:
        """Return a mechanism; raise an error if its size differs from that of the first one."""
        if (system.num_velocities, system.num_constraints) != self._size:
            raise InputError("build returns mechanisms of different sizes", argument="build")
        return system

    def _numbers(self, state: State) -> Array:
        """Return a state as one array; its coordinates are increments from the present state."""
        memory = state.memory
        parts = [state.v, state.a, state.lam, memory["algorithmic"], memory["velocity"]]
        return np.concatenate([increment_between(self.system, self.state.q, state.q), *parts])

    def advance(self) -> None:
        """Take one step."""
        before, dt, m = self.state, self.dt, self.stepper.method
        old = before.memory["algorithmic"]
        velocity = before.memory.get("velocity", before.v)
        self.state = after = self.stepper.step(before, dt)
        new = after.memory["algorithmic"]
        move = dt * velocity + dt * dt * ((0.5 - m.beta) * old + m.beta * new)
        v, a, _ = self.rates
        first = self._velocity if "velocity" in before.memory else v
        ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
        w = (m.alpha_f * a - m.alpha_m * self._algorithmic) / (1 - m.alpha_m)
        moved = dt * first + dt * dt * ((0.5 - m.beta) * self._algorithmic + m.beta * w)
        v = first + dt * ((1 - m.gamma) * self._algorithmic + m.gamma * w)
        T, carried = self._transported(move)
        q = carried @ self.increments + T @ moved
        by_a, by_speed = m.beta * dt * dt * ratio, m.gamma * dt * ratio
        self._at.put(after)
        self._at.residual(after.time)
        K, C, M, B = self._at.tangent(after.time)
        rows, values = self._explicit(after)
        upper, lower = -(rows + K @ q + C @ v), -(values + B @ q) / by_a
        n, scale = len(M), max(float(np.abs(np.diag(M)).max(initial=0.0)), 1e-300)
        S = np.zeros((n + len(B), n + len(B)))
        S[:n, :n], S[:n, n:] = M + by_speed * C + by_a * (K @ T), scale * B.T
        S[n:, :n] = scale * (B @ T)
        x = np.linalg.solve(S, np.vstack([upper, scale * lower]))
        a, lam = x[:n], scale * x[n:]
        self.increments = q + by_a * (T @ a)
        self.rates = v + by_speed * a, a, lam
        self._algorithmic = w + ratio * a

    def _transported(self, move: Array) -> tuple[Array, Array]:
        """Return the derivatives of q∘exp(move) with respect to `move` and to q, (nv, nv) each."""
        T, carried = np.eye(len(move)), np.eye(len(move))
        for body, part in zip(self.system.bodies, self.system.v_slices, strict=True):
            if body.num_coordinates > body.num_velocities:
                turn = slice(part.start + 3, part.start + 6)
                T[turn, turn] = body.increment_tangent(move[turn])
                carried[turn, turn] = exp_rotation(move[turn]).T
        return T, carried

    def _explicit(self, state: State) -> tuple[Array, Array]:
        """Return ∂R/∂p and ∂Φ/∂p at a fixed state."""
        nv, nc = self._size
        rows, values = np.zeros((nv, len(self._terms))), np.zeros((nc, len(self._terms)))
        for k, terms in enumerate(self._terms):
            for weight, at in terms:
                at.put(state)
                at.residual(state.time)
                rows[:, k] += weight * at.rows
                values[:, k] += weight * at.values
        return rows, values


def increment_between(system: SystemData, q: Array, other: Array) -> Array:
    """Return the increment (nv,) that leads from coordinates q to other coordinates (nq,)."""
    parts = []
    for body, part in zip(system.bodies, system.q_slices, strict=True):
        change = other[part] - q[part]
        if body.num_coordinates > body.num_velocities:
            turn = rotation_matrix(q[part][3:7]).T @ rotation_matrix(other[part][3:7])
            change = np.concatenate([change[:3], rotation_vector(turn), change[7:]])
        parts.append(change)
    return np.concatenate(parts)


def _moved(
    system: SystemData,
    states: list[State],
    increments: list[Array],
    rates: list[tuple[Array, Array, Array]],
    k: int,
    step: float,
) -> Solution:
    """Return the simulation to first order for a change of parameter k."""
    at, moved = Assembler(system), []
    for state, q, (v, a, lam) in zip(states, increments, rates, strict=True):
        at.put(state)
        at.move(state.q, step * q[:, k])
        at.update_poses(state.time)
        changes = {"v": v, "a": a, "lam": lam}
        values = {key: getattr(state, key) + step * d[:, k] for key, d in changes.items()}
        moved.append(replace(state, q=at.q.copy(), angles=at.joint_rotations(), **values))
    return Solution(system, moved)
