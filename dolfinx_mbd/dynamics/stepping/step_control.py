"""Control of the time step of a simulation: fixed, or adapted to an estimate of the error."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import number
from dolfinx_mbd.dynamics.stepping.contact_events import ContactEvents
from dolfinx_mbd.dynamics.stepping.halved_steps import step_or_halves
from dolfinx_mbd.dynamics.stepping.integrators import StepError, Stepper
from dolfinx_mbd.kernels.columns import ELASTIC, ETA, OMEGA, ORIGIN
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import State, System

_SAFETY = 0.9  # safety factor of a predicted step, which is proportional to error^(-1/3)
# Limits of the growth factor of a step; smaller growth is not worth a new factorization
_MIN_GROWTH, _MAX_GROWTH = 1.4, 2.0
_MIN_SHORTENING = 0.25  # smallest ratio of a repeated step to the rejected step
_CAUTION = 0.8  # an error above this fraction of the tolerance shortens the step by this factor
_MAX_REPEATS = 6  # largest number of repetitions of a step to locate a change of a gap's sign
_MAX_ROTATION = 0.5  # largest rotation of a body with contacts in a step, rad
_MIN_DEFORMATION = 1e-6  # minimum scale of deformation errors, relative to the mechanism's size


@dataclass(frozen=True)
class Adaptive:
    """Control of the time step that keeps the local error below a tolerance.

    The error in the position of a body is relative to the size of the mechanism, the error in its
    rotation to 1 rad, the error in its deformation (root mean square over its mass) to its largest
    deformation so far, and the error of the gap of a contact to a quarter of its largest
    penetration so far. Steps end where a gap changes its sign, including gaps that would close and
    open again within one step. The methods are of second order, so that the error of the result is
    proportional to tolerance^(2/3).

    Attributes:
        tolerance: Tolerance of the relative error of one step.
        first: First step, s; by default a millionth of the simulated time.
        smallest: Step below which an error is raised, s; by default 1e-10 of the simulated time.
        largest: Largest step, s; by default a tenth of the simulated time.

    Raises:
        InputError: The tolerance is not in (0, 1], or a step is not positive.

    Example:
        >>> run = mbd.simulate(pendulum, t_end=0.5, dt=mbd.Adaptive(1e-4, largest=0.05))
        >>> bool(np.diff(run.time).max() <= 0.05 + 1e-12)
        True
    """

    tolerance: float = 1e-5
    first: float | None = None
    smallest: float | None = None
    largest: float | None = None

    def __post_init__(self) -> None:
        number("tolerance", self.tolerance, positive=True, high=1.0)
        for name in ("first", "smallest", "largest"):
            value = getattr(self, name)
            if value is not None:
                number(name, value, positive=True, unit="s")


@dataclass
class FixedSteps:
    """Equal steps, with the number of steps that were taken so far."""

    dt: float
    total: int
    taken: int = 0

    def __copy__(self) -> FixedSteps:  # faster than that of `copy`
        return FixedSteps(self.dt, self.total, self.taken)

    def advance(self, stepper: Stepper, state: State) -> State:
        """Return the state after one more step."""
        state = step_or_halves(stepper, stepper.begin(state, self.dt), self.dt)
        self.taken += 1
        return state

    @property
    def done(self) -> bool:
        """Whether the last step was taken."""
        return self.taken >= self.total

    @property
    def progress(self) -> int:
        """Number of steps of `total` that were taken."""
        return self.taken

    def record(self) -> dict[str, Any]:
        """Return plain values from which `steps_from` restores the steps."""
        return {"kind": "fixed", **asdict(self)}


@dataclass
class AdaptiveSteps:
    """Steps that an `Adaptive` control determines, with their current state."""

    control: Adaptive
    t_start: float
    t_end: float
    now: float
    dt: float
    smallest: float
    largest: float
    length: float  # size of the mechanism, m
    deformation: list[float]  # largest deformation of each body so far, m
    last: float | None = None  # length of the step to which the memory of the state belongs
    taken: int = 0
    rejected: int = 0
    done: bool = False
    contacts: ContactEvents = field(default_factory=ContactEvents)
    total: ClassVar[int] = 1000  # number of units of a progress bar

    @classmethod
    def of(cls, control: Adaptive, system: System, start: float, end: float) -> AdaptiveSteps:
        """Return the steps from the time `start` to the time `end`."""
        span = end - start
        largest = control.largest or 0.1 * span
        return cls(
            control,
            t_start=start,
            t_end=end,
            now=start,
            dt=min(control.first or 1e-6 * span, largest),
            smallest=control.smallest or 1e-10 * span,
            largest=largest,
            length=system.size,
            deformation=[0.0] * len(system.bodies),
        )

    def advance(self, stepper: Stepper, state: State) -> State:
        """Return the state after one more step with an error within the tolerance."""
        repeats, event = 0, 0.0  # length of a repeated step that ends where a gap changes its sign
        if not self.taken:
            self.contacts = ContactEvents.at(stepper.assembler, state)
        while True:
            dt = event or self._next_step(state.time, stepper.assembler.loads.contact_spin(state.v))
            event = 0.0
            try:
                start = (
                    stepper.rescaled(state, self.last, dt)
                    if self.last
                    else stepper.begin(state, dt)
                )
                after = stepper.step(start, dt)
            except StepError:
                if dt <= self.smallest:
                    raise
                self._shorten(dt, _MIN_SHORTENING)
                continue
            error, deformation, contacts = self._error(stepper, start, after, dt)
            if error <= 1.0:
                fraction = self.contacts.fraction(contacts, dt, self.length)
                if fraction is not None and repeats < _MAX_REPEATS:
                    repeats, event = repeats + 1, max(fraction * dt, self.smallest)
                    continue
                self._accept(after, dt, error, deformation)
                if self.contacts.change(contacts):
                    # The rate of the accelerations jumps: do not use the rate before the event
                    after = replace(after, memory=after.memory | {"algorithmic": after.a})
                self.contacts = self.contacts.after(contacts)
                return after
            if dt <= self.smallest:
                raise StepError(
                    f"the smallest step {self.smallest:g} s at t = {state.time:.6g} s has an "
                    f"error of {error * self.control.tolerance:.3g}, above the tolerance "
                    f"{self.control.tolerance:g}: a load or a driver may jump",
                    after.time,
                )
            self._shorten(dt, _SAFETY * error ** (-1 / 3))

    def _next_step(self, time: float, spin: float) -> float:
        """Return the length of the next step from a time; the last two steps are equal.

        In one step, a body that may touch another one with the angular speed `spin` rotates by at
        most `_MAX_ROTATION`.
        """
        remaining = self.t_end - time
        dt = max(min(self.dt, _MAX_ROTATION / max(spin, 1e-300)), self.smallest)
        return remaining if remaining <= dt * (1 + 1e-9) else min(dt, 0.5 * remaining)

    def _shorten(self, dt: float, factor: float) -> None:
        self.rejected += 1
        self.dt = max(dt * min(max(factor, _MIN_SHORTENING), _SAFETY), self.smallest)

    def _error(
        self, stepper: Stepper, before: State, after: State, dt: float
    ) -> tuple[float, list[float], Array]:
        """Return error / tolerance, the largest deformations (m), and the states of contacts."""
        s = stepper.system
        local, mass = stepper.local_error(before, after, dt)
        contacts, gap_error = self.contacts.error(stepper.assembler, local, self.length)
        errors, deformation = [gap_error], list(self.deformation)
        errors.append(stepper.nodal_error(before, after, dt) / self.length)
        for k, (body, part, q) in enumerate(zip(s.bodies, s.v_slices, s.q_slices, strict=True)):
            if not body.num_velocities:
                continue
            e, M = local[part], mass[part, part]
            if not isinstance(body, FloatingBody):
                errors.append(_root_mean_square(e, M, body.typical_mass) / self.length)
                continue
            errors += [np.abs(e[ORIGIN]).max() / self.length, np.abs(e[OMEGA]).max()]
            if body.num_elastic:
                M = M[ELASTIC, ELASTIC]
                size = _root_mean_square(after.q[q][ETA], M, body.typical_mass)
                deformation[k] = max(deformation[k], size)
                scale = max(deformation[k], _MIN_DEFORMATION * self.length)
                errors.append(_root_mean_square(e[ELASTIC], M, body.typical_mass) / scale)
        return float(max(errors)) / self.control.tolerance, deformation, contacts

    def _accept(self, after: State, dt: float, error: float, deformation: list[float]) -> None:
        self.taken += 1
        self.last, self.now, self.deformation = dt, after.time, deformation
        self.done = bool(after.time >= self.t_end - 1e-9 * dt)
        factor = _SAFETY * max(error, 1e-9) ** (-1 / 3)
        if error > _CAUTION:
            self.dt = max(_CAUTION * dt, self.smallest)
        elif factor >= _MIN_GROWTH and dt >= self.dt:  # not after a step that an event shortened
            self.dt = min(dt * min(factor, _MAX_GROWTH), self.largest)

    @property
    def progress(self) -> int:
        """Number of units of `total` that are done."""
        return int(self.total * (self.now - self.t_start) / (self.t_end - self.t_start))

    def record(self) -> dict[str, Any]:
        """Return plain values from which `steps_from` restores the steps."""
        return {"kind": "adaptive", **asdict(self)}


Steps = FixedSteps | AdaptiveSteps


def steps_until(
    t_end: float | None, control: float | Adaptive, start: float, system: System
) -> Steps:
    """Return the steps from a time to the end, or without an end if `t_end` is None."""
    if isinstance(control, Adaptive):
        assert t_end is not None
        return AdaptiveSteps.of(control, system, start, t_end)
    if t_end is None:
        return FixedSteps(control, sys.maxsize)
    count = max(1, round(min((t_end - start) / control, sys.maxsize)))
    return FixedSteps((t_end - start) / count, count)


def steps_from(record: Mapping[str, Any]) -> Steps:
    """Return the steps that a `record` describes."""
    values = dict(record)
    if values.pop("kind") == "fixed":
        return FixedSteps(**values)
    contacts = ContactEvents(**values.pop("contacts", {}))
    control = Adaptive(**values.pop("control"))
    return AdaptiveSteps(control, contacts=contacts, **values)


def _root_mean_square(u: Array, mass: Array, total_mass: float) -> float:
    """Return the root mean square over the mass of the displacement due to coordinates u, m."""
    return math.sqrt(max(float(u @ mass @ u), 0.0) / total_mass)
