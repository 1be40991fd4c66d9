"""Derivatives of the start and of the equations of a step with respect to parameters.

They are central differences of mechanisms at changed values, at fixed states. A parameter may
therefore belong to any part of the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dolfinx_mbd.analyses.small_motions import increment_between
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import function, instance, memory, number, reject
from dolfinx_mbd.design.runs.load_jumps import LoadJumps
from dolfinx_mbd.design.runs.mechanism_changes import (
    FACTORS,
    MechanismChange,
    States,
    central_difference,
)
from dolfinx_mbd.design.runs.quasi_static_slopes import QuasiStaticSlopes
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_control import Adaptive
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.mechanism.system import State, System

Build = Callable[[Mapping[str, float]], System]

_SHORTER = 0.25  # second step of a test of smoothness, relative to the first one
# Largest ratio of second differences with the second and the first step: it is 1/16 for smooth
# functions, 1/4 at a kink and 1 at a jump
_SMOOTH = 0.125
_SHORTEST = 1e-12  # shortest time step, s
_RANK_TOLERANCE = 1e-10  # singular values of constraints below this fraction count as zero
_LARGEST_ERROR = 1e-3  # largest relative error of differences of the equations without a warning
_DIFFERENCE_STEP = 1e-4  # step of differences relative to the value of a parameter


def checked_times(t_end: float, dt: float, size: float) -> tuple[float, int]:
    """Return the time step that divides `t_end`, and the number of steps.

    An error is raised if an argument is invalid, or if `size` bytes per step need too much memory.
    """
    if isinstance(dt, (str, Adaptive)):
        reject("dt", dt, "a number in s: derivatives need steps of constant length")
    t_end, dt = (number(k, v, low=_SHORTEST, unit="s") for k, v in (("t_end", t_end), ("dt", dt)))
    memory("t_end", t_end, size * (t_end / dt))
    count = max(1, round(t_end / dt))
    return t_end / count, count


def checked_rates(start: Mapping[str, float] | None) -> Mapping[str, float]:
    """Return the rates of joints at the start."""
    expected = "rates of joints by name, because a state would not depend on the parameters"
    return instance("start", {} if start is None else start, Mapping, expected)


def checked_values(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of parameters by name; raise an error if one is invalid."""
    for name, value in instance("values", values, Mapping).items():
        number(f"values: {name}", value)
    if not values:
        reject("values", values, "a mapping from at least one parameter to its value")
    return {name: float(value) for name, value in values.items()}


def checked_steps(
    values: Mapping[str, float],
    steps: Mapping[str, float] | None,
    default: float = _DIFFERENCE_STEP,
) -> dict[str, float]:
    """Return the steps of differences of all parameters; `default` is relative to the value."""
    steps = dict(instance("steps", {} if steps is None else steps, Mapping))
    for name, step in steps.items():
        if name not in values:
            known = ", ".join(map(repr, values))
            raise InputError(f"steps: unknown parameter {name!r}; known: {known}", argument="steps")
        number(f"steps: {name}", step, positive=True)
    for name, value in values.items():
        if name not in steps and value == 0.0:
            raise InputError(
                f"values: {name} is zero; specify the step of its differences, for example "
                f"steps={{{name!r}: 1e-4}}",
                argument="values",
                value=values,
            )
    return {name: steps.get(name, default * abs(value)) for name, value in values.items()}


class ParameterTerms:
    """The mechanism of a run, and derivatives of its start and of its equations by parameters.

    Args:
        build: Function that returns the mechanism for values by name.
        values: Values of the parameters by name.
        steps: Steps of the differences by name; by default 1e-4 of the value.

    Attributes:
        values: The values of the parameters.
        steps: The steps of all parameters.
        system: The mechanism at the given values.

    Raises:
        InputError: An argument is invalid.
    """

    def __init__(
        self, build: Build, values: Mapping[str, float], steps: Mapping[str, float] | None = None
    ) -> None:
        self._build = function("build", build, "build(values)")
        self.values = checked_values(values)
        self.steps = checked_steps(self.values, steps)
        self.system = build(dict(self.values))
        instance("build(values)", self.system, System)
        _check_smooth(self.system)
        base = Assembler(self.system)
        self._changes = {
            name: MechanismChange(base, {k: self.changed(name, k * step) for k in FACTORS}, step)
            for name, step in self.steps.items()
        }
        for name, change in self._changes.items():
            self._check_bodies(name, change)
        neighbours = {name: [*c.assemblers.values()] for name, c in self._changes.items()}
        self._jumps = LoadJumps(Assembler(self.system), neighbours)
        self._closer: dict[str, MechanismChange] = {}  # with shorter steps
        self._next_check, self._inaccurate = -np.inf, set[str]()

    def load_values(self, eqs: Assembler, t: float) -> Array:
        """Return the values of loads and drivers that `check_jumps` compares; see `LoadJumps`."""
        return self._jumps.row(eqs, t)

    def check_jumps(
        self, states: Sequence[State], values: Sequence[Array | None] | None = None
    ) -> None:
        """Raise an error if the time of a jump of a load between some states may change.

        The first call, and calls at twice the time, also check that the equations are smooth
        functions of the parameters, and that the differences are accurate. `values` are results of
        `load_values`, or None where they are not known.
        """
        self._jumps.check(states, values)
        last = states[-1]
        if last.time >= self._next_check:
            for name, change in self._changes.items():
                self._check_equations(name, change, last, self._next_check < 0.0)
            self._next_check = 2 * last.time

    def _check_equations(
        self, name: str, change: MechanismChange, state: State, first: bool
    ) -> None:
        """Raise an error if the equations jump near the value of a parameter at the first check.

        Warn if the differences of the equations are inaccurate, for example because the angle of a
        driver changes too much over a long time.
        """
        rough = change.irregularity(state)
        if rough == 0.0 or name in self._inaccurate:
            return
        if name not in self._closer:
            step = _SHORTER * change.step
            systems = {k: self.changed(name, k * step) for k in FACTORS}
            self._closer[name] = MechanismChange(Assembler(self.system), systems, step)
        closer = self._closer[name]
        if first and closer.irregularity(state) > _SMOOTH * rough:
            raise InputError(
                f"the mechanism is not a smooth function of {name!r}: its forces or "
                "constraints jump or have a kink at the value",
                argument="build",
            )
        error = change.error(closer, state)
        if error > _LARGEST_ERROR:
            self._inaccurate.add(name)
            text = (
                f"at t = {state.time:.3g} s, the differences with respect to {name!r} have a "
                f"relative error of {error:.1g}, which may grow; specify a smaller step, for "
                f"example steps={{{name!r}: {0.01 * change.step:.1g}}}"
            )
            warn(AccuracyWarning(text, quantity=name, value=error, limit=_LARGEST_ERROR))

    def _check_bodies(self, name: str, change: MechanismChange) -> None:
        """Raise an error if a body is not a smooth function of a parameter.

        The second difference of a smooth function decreases with the square of the step.
        """
        step = _SHORTER * change.step
        rough = change.irregular_bodies()
        if rough:
            systems = {k: self.changed(name, k * step) for k in FACTORS}
            closer = MechanismChange(Assembler(self.system), systems, step).irregular_bodies()
            for body, size in rough.items():
                if closer.get(body, 0.0) > _SMOOTH * size:
                    raise InputError(
                        f"body {body!r} is not a smooth function of {name!r}: its data jump or "
                        "have a kink at the value. For a body of first order use "
                        "at(values, own_modes=False)",
                        argument="build",
                    )

    def changed(self, name: str, step: float) -> System:
        """Return the mechanism at a changed value; raise an error if its size differs."""
        system = self._build({**self.values, name: self.values[name] + step})
        sizes = [(s.num_velocities, s.num_constraints) for s in (system, self.system)]
        if sizes[0] != sizes[1]:
            raise InputError("build returns mechanisms of different sizes", argument="build")
        return system

    def system_at(self, name: str, factor: int) -> System:
        """Return the mechanism at a multiple (-1 or 1) of the step of a parameter."""
        return self._changes[name].systems[factor]

    def start(
        self, first: State, stepper: Stepper, dt: float, rates: Mapping[str, float] | None
    ) -> tuple[Array, Array, Array]:
        """Return the derivatives of the first state.

        Args:
            first: First state, prepared for the first step.
            stepper: The stepper of the run.
            dt: Time step, s.
            rates: Rates of joints at the start.

        Returns:
            Derivatives of q, v, a and w, (4, nv, parameters); of the multipliers, (nc, parameters);
            of the velocities in the memory of the method, (nv, parameters).
        """
        columns = []
        slopes = self._quasi_static(first, rates)
        for name, change in self._changes.items():
            if slopes is None:
                states = {k: consistent_state(s, rates=rates) for k, s in change.systems.items()}
            else:
                states = slopes.states(change.assemblers, self.steps[name])
            numbers = {}
            for k, state in states.items():
                other = Stepper(change.systems[k], stepper.method)
                numbers[k] = _numbers(self.system, first, other.begin(state, dt))
            columns.append(central_difference(numbers, self.steps[name]))
        # Rows: q, v, a, the algorithmic accelerations w, the velocities in the memory, multipliers
        table = np.array(columns).T
        n = len(first.v)
        table[:n] += self._closure(first, table[:n])
        return table[: 4 * n].reshape(4, n, -1), table[5 * n :], table[4 * n : 5 * n]

    def _closure(self, first: State, slopes: Array) -> Array:
        """Return the correction of derivatives of q (nv, parameters) that closes the constraints.

        The first step would divide the error of the differences by dt².
        """
        eqs = Assembler(self.system)
        eqs.put(first)
        eqs.update_poses(first.time)
        _, (values,) = self.equations([first])
        B = eqs.constraint_matrix()
        change = np.zeros(slopes.shape)
        for columns in (self.system.rigid, np.arange(len(slopes))):
            error = values + B @ (slopes + change)
            change[columns] -= np.linalg.lstsq(B[:, columns], error, rcond=_RANK_TOLERANCE)[0]
        return change

    def _quasi_static(
        self, first: State, rates: Mapping[str, float] | None
    ) -> QuasiStaticSlopes | None:
        """Return the equations of a quasi-static start, or None for any other start."""
        if rates or not QuasiStaticSlopes.applies(self.system):
            return None
        try:
            slopes = QuasiStaticSlopes(first, Assembler(self.system))
        except (AssemblyError, EquilibriumError):
            return None
        return slopes if slopes.valid else None

    def equations(self, states: Sequence[State]) -> tuple[Array, Array]:
        """Return ∂R/∂p (states, nv, parameters) and ∂Φ/∂p (states, nc, parameters)."""
        arrays = States(states)
        terms = [change.terms(arrays) for change in self._changes.values()]
        rows, values = (np.array(parts) for parts in zip(*terms, strict=True))
        return rows.transpose(1, 2, 0), values.transpose(1, 2, 0)

    def products(self, states: Sequence[State], rows: Array, values: Array) -> Array:
        """Return the sum of the products of adjoints with ∂R/∂p and ∂Φ/∂p, (parameters, columns).

        Args:
            states: States at the ends of steps.
            rows: Adjoints of ∂R/∂p, (states, nv, columns).
            values: Adjoints of ∂Φ/∂p, (states, nc, columns).
        """
        by_rows, by_values = self.equations(states)
        out = np.einsum("snp,snf->pf", by_rows, rows)
        return out + np.einsum("scp,scf->pf", by_values, values)


def _check_smooth(system: System) -> None:
    """Raise an error if a mechanism has contacts, end stops or constraints on velocities only."""
    system.check_holonomic("a derivative of a run")
    system.check_no_content("a derivative of a run")
    for body in system.bodies:
        if hasattr(body, "check_tangent"):  # a mesh body
            body.check_tangent()
    for load in system.loads:
        if load.has_contacts:
            raise InputError(
                f"load {load.name!r} acts only while a gap is closed; a run with contacts is not "
                "differentiable. Remove it, or replace it by a spring with a smooth law",
                argument="build",
            )


def _numbers(system: System, first: State, state: State) -> Array:
    """Return a state and its memory as one array; coordinates are increments from `first`."""
    memory = state.memory
    moved = increment_between(system, first.q, state.q)
    parts = [state.v, state.a, memory["algorithmic"], memory["velocity"], state.lam]
    return np.concatenate([moved, *parts])
