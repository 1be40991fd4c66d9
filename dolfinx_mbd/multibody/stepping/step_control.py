"""Which step a simulation takes: a fixed one, or one that follows an estimate of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import number
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.floating_body import FloatingBody
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.stepping.integrators import StepError, Stepper

__all__ = ["Adaptive", "AdaptiveSteps", "FixedSteps", "Steps", "steps_from"]

Array = NDArray[np.float64]

_SAFETY = 0.9
_GROW, _MOST = 1.4, 2.0  # a change costs a factorization: not for less, and not by more
_LEAST = 0.25
_NEAR = 0.8  # of the tolerance: above, the next step is a little shorter
_DEFORMATION = 1e-6  # of the mechanism's length: deformations that count as none


@dataclass(frozen=True)
class Adaptive:
    """Steps whose local error stays below a tolerance.

    The error of a step in a body's position is measured against the mechanism's length, in its
    rotation against 1 rad, in its deformation (root mean square over its mass) against the largest
    deformation so far.  The method is of order two, so that the error of the result falls with
    tolerance^(2/3).

    Attributes:
        tolerance: Of the error of one step, relative as above.
        first: First step, s; None: a millionth of the whole time.
        smallest: Step below which the simulation is given up, s; None: 1e-10 of the whole time.
        largest: s; None: a tenth of the whole time.

    Raises:
        ValueError: If the tolerance is not above 0 and at most 1, or a step is not positive.
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


class FixedSteps:
    """A number of equal steps.

    Attributes:
        taken: How many were taken.
        total: How many there are, for a progress bar.
    """

    kind = "fixed"

    def __init__(self, dt: float, total: int, taken: int = 0) -> None:
        self.dt, self.total, self.taken = dt, total, taken

    def begin(self, stepper: Stepper, state: State) -> State:
        """The state made ready for the first step."""
        return stepper.begin(state, self.dt)

    def advance(self, stepper: Stepper, state: State) -> State:
        """The state after one more step."""
        state = stepper.step(state, self.dt)
        self.taken += 1
        return state

    @property
    def done(self) -> bool:
        """Whether the last step was taken."""
        return self.taken >= self.total

    @property
    def progress(self) -> int:
        """Of the total."""
        return self.taken

    def record(self) -> dict[str, Any]:
        """What brings the steps back to where they are: plain numbers."""
        return {"kind": self.kind, "dt": self.dt, "total": self.total, "taken": self.taken}


class AdaptiveSteps:
    """Steps of an :class:`Adaptive` control.

    Attributes:
        taken: How many were taken.
        rejected: How many were tried again with a shorter step.
        total: Units of a progress bar.
        done: Whether the end was reached.
    """

    kind = "adaptive"
    total = 1000

    def __init__(self, control: Adaptive, system: SystemData, start: State, t_end: float) -> None:
        self.control = control
        self.t_start, self.t_end, self._now = start.time, t_end, start.time
        span = t_end - start.time
        self._smallest = control.smallest or 1e-10 * span
        self._largest = control.largest or 0.1 * span
        self._dt = min(control.first or 1e-6 * span, self._largest)
        self._last: float | None = None  # the step that the state's memory belongs to
        self.taken = self.rejected = 0
        self.done = False
        self._system = system
        self._deformation: Array = np.zeros(len(system.bodies))
        self._length = _length(system, start)

    def begin(self, stepper: Stepper, state: State) -> State:
        """The state as it is: the first step is begun when it is tried."""
        return state

    def advance(self, stepper: Stepper, state: State) -> State:
        """The state after one more step, of a length that keeps the tolerance.

        Raises:
            StepError: If the smallest step does not converge, or does not keep the tolerance.
        """
        while True:
            dt = self._fitted(state.time)
            try:
                if self._last is None:
                    ready = stepper.begin(state, dt)
                else:
                    ready = stepper.rescaled(state, self._last, dt)
                after = stepper.step(ready, dt)
            except StepError:
                if dt <= self._smallest:
                    raise
                self._shorten(dt, _LEAST)
                continue
            error, deformation = self._error(stepper, ready, after, dt)
            if error <= 1.0:
                self._accept(after, dt, error, deformation)
                return after
            if dt <= self._smallest:
                raise StepError(
                    f"the smallest step {self._smallest:g} s at t = {state.time:.6g} s has an "
                    f"error of {error * self.control.tolerance:.3g}, above the tolerance "
                    f"{self.control.tolerance:g}: a load or a driver may jump there",
                    after.time,
                )
            self._shorten(dt, _SAFETY * error ** (-1 / 3))

    def _fitted(self, now: float) -> float:
        """The step, or what is left of the time, or half of that."""
        left = self.t_end - now
        if left <= self._dt * (1 + 1e-9):
            return left
        return 0.5 * left if left < 2 * self._dt else self._dt

    def _shorten(self, dt: float, factor: float) -> None:
        self.rejected += 1
        self._dt = max(dt * min(max(factor, _LEAST), _SAFETY), self._smallest)

    def _error(
        self, stepper: Stepper, before: State, after: State, dt: float
    ) -> tuple[float, Array]:
        """Error over its tolerance, and the deformation of each body (bodies,), m."""
        s = self._system
        local, mass = stepper.local_error(before, after, dt)
        error = 0.0
        deformation = self._deformation.copy()
        for k, (body, part, q) in enumerate(zip(s.bodies, s.v_slices, s.q_slices, strict=True)):
            if not body.num_velocities:
                continue
            e, M = local[part], mass[part, part]
            if not isinstance(body, FloatingBody):
                error = max(error, _mean(e, M, body.typical_mass) / self._length)
                continue
            error = max(error, float(np.abs(e[:3]).max()) / self._length)
            error = max(error, float(np.abs(e[3:6]).max()))
            if body.num_elastic:
                M = M[6:, 6:]
                size = _mean(after.q[q][7:], M, body.typical_mass)
                deformation[k] = max(deformation[k], size)
                allowed = max(deformation[k], _DEFORMATION * self._length)
                error = max(error, _mean(e[6:], M, body.typical_mass) / allowed)
        return error / self.control.tolerance, deformation

    def _accept(self, after: State, dt: float, error: float, deformation: Array) -> None:
        self.taken += 1
        self._last, self._now, self._deformation = dt, after.time, deformation
        self.done = bool(after.time >= self.t_end - 1e-9 * dt)
        factor = _SAFETY * max(error, 1e-9) ** (-1 / 3)
        if error > _NEAR:
            self._dt = max(_NEAR * dt, self._smallest)
        elif factor >= _GROW and dt >= self._dt:
            self._dt = min(dt * min(factor, _MOST), self._largest)

    @property
    def progress(self) -> int:
        """Of the total."""
        return int(self.total * (self._now - self.t_start) / (self.t_end - self.t_start))

    def record(self) -> dict[str, Any]:
        """What brings the steps back to where they are: plain numbers."""
        return {
            "kind": self.kind,
            "control": asdict(self.control),
            "t_start": self.t_start,
            "t_end": self.t_end,
            "now": self._now,
            "smallest": self._smallest,
            "largest": self._largest,
            "dt": self._dt,
            "last": self._last,
            "taken": self.taken,
            "rejected": self.rejected,
            "done": self.done,
            "deformation": self._deformation.tolist(),
            "length": self._length,
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go back to a record."""
        self.t_start, self._now = record["t_start"], record["now"]
        self._smallest, self._largest = record["smallest"], record["largest"]
        self._dt, self._last = record["dt"], record["last"]
        self.taken, self.rejected, self.done = record["taken"], record["rejected"], record["done"]
        self._deformation = np.array(record["deformation"], dtype=float)
        self._length = record["length"]


Steps = FixedSteps | AdaptiveSteps


def steps_from(record: Mapping[str, Any], system: SystemData, state: State) -> Steps:
    """The steps that :meth:`record` describes."""
    if record["kind"] == "fixed":
        return FixedSteps(record["dt"], record["total"], record["taken"])
    control = Adaptive(**record["control"])
    steps = AdaptiveSteps(control, system, state, record["t_end"])
    steps.restore(record)
    return steps


def _mean(u: Array, mass: Array, whole: float) -> float:
    """Root mean square over the mass of a displacement field with coordinates u, m."""
    return math.sqrt(max(float(u @ mass @ u), 0.0) / whole)


def _length(system: SystemData, state: State) -> float:
    """The size of a mechanism: of its frames and origins, or the widest body's radius, m."""
    at = Assembler(system)
    at.q[:] = state.q
    at.residual(state.time)
    M = at.tangent(state.time).M
    points, radius = [at.position], 1e-3
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        if isinstance(body, FloatingBody):
            points.append(at.q[q][None, :3])
            turning = float(np.trace(M[v, v][3:6, 3:6]))
            radius = max(radius, math.sqrt(0.5 * turning / body.typical_mass))
    return max(radius, float(np.ptp(np.concatenate(points), axis=0).max(initial=0.0)))
