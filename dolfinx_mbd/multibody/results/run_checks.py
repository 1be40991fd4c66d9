"""Checks of a finished run: does it stay in the range of the theory and of the method?

Each check gives at most one warning, with the place, the time and the number. During the run only
the work of loads and drivers is summed; everything else is computed from the saved states.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.static_errors import warn_of_stretch
from dolfinx_mbd.errors import AccuracyWarning, MbdWarning, ModelRangeWarning, warn
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.bodies import FlexibleBody
from dolfinx_mbd.multibody.model.floating_body import FloatingBody
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.stepping.integrators import Stepper

__all__ = ["RunChecks"]

Array = NDArray[np.float64]

#: Limits above which a warning is given.
ELASTIC_ROTATION = 0.2  # rad; the error of the linear theory grows with its square, here 2 to 4 %
ELASTIC_DISPLACEMENT = 0.1  # of the size of the body
ROTATION_PER_STEP = 1.0  # rad
ENERGY_GAIN = 0.05  # of the largest energy in the run
CONSTRAINTS = 1e-6  # of the size of the mechanism, or rad
MISFIT = 1e-5  # the same of constraints that were left out as redundant
RATE_JUMP = 0.05  # of the largest rate of a driver
_ROUND_OFF = 1e-12  # of the energy of moving by the size of the mechanism during the run
_SAMPLES = 200  # saved states at which energies are evaluated


class RunChecks:
    """Sums the work of loads and drivers during a run, and warns of doubtful results at its end.

    Args:
        system: The mechanism.
        stepper: The stepper of the run; its assembler holds the state after each step.
        state: The state at the start.

    Attributes:
        work: Work of all loads and drivers since the start, J.
    """

    def __init__(self, system: SystemData, stepper: Stepper, state: State) -> None:
        self._system, self._at = system, stepper.assembler
        at = self._at
        at.put(state)
        at.residual(state.time)
        self._power = at.power(state.time)
        self._time = state.time
        self._rates = self._driver_rates()
        self.work, self._sums = 0.0, [(state.time, 0.0)]
        self._largest_rate = np.abs(self._rates[:, 0])
        self._jump = np.zeros(len(system.drivers))
        self._jump_time = np.full(len(system.drivers), state.time)
        self._step = 0.0

    def see(self, state: State, *, kept: bool) -> None:
        """Add the work of the step that led to a state.

        Args:
            state: The state after the step; the stepper's assembler is still there.
            kept: Whether the state is saved.
        """
        dt = state.time - self._time
        power = self._at.power(state.time)
        self.work += 0.5 * dt * (power + self._power)
        if kept:
            self._sums.append((state.time, self.work))
        self._step = max(self._step, dt)
        self._time, self._power = state.time, power
        if len(self._jump):
            before, self._rates = self._rates, self._driver_rates()
            smooth = 0.5 * dt * (before[:, 1] + self._rates[:, 1])
            jump = np.abs(self._rates[:, 0] - before[:, 0] - smooth)
            larger = jump > self._jump
            self._jump[larger], self._jump_time[larger] = jump[larger], state.time
            np.maximum(self._largest_rate, np.abs(self._rates[:, 0]), out=self._largest_rate)

    def warn(self, solution: Solution) -> None:
        """Warn, once for each kind of doubt, of what the run has left.

        Raises no error: the results are returned as they are.
        """
        self._warn_of_deformation(solution)
        self._warn_of_stretch(solution)
        self._warn_of_large_steps(solution)
        self._warn_of_energy(solution)
        self._warn_of_constraints(solution)
        self._warn_of_jumps()

    def _driver_rates(self) -> Array:
        """Return rate and acceleration of each driver after the last step, (drivers, 2)."""
        motions = self._at.driver_motions(self._time)
        return np.array(motions, dtype=float).reshape(-1, 3)[:, 1:]

    # ---- checks ---------------------------------------------------------------------------------
    def _warn_of_deformation(self, solution: Solution) -> None:
        worst_turn, worst_shift = (0.0, ""), (0.0, "")
        for k, body in enumerate(self._system.bodies):
            if not isinstance(body, FlexibleBody) or not body.num_elastic:
                continue
            eta = solution.q[:, self._system.q_slices[k]][:, 7:]
            for interface in body.reduced.interfaces:
                turn = np.linalg.norm(eta @ interface.motion[3:].T, axis=1)
                n = int(np.argmax(turn))
                where = f"interface {interface.name!r} of body {body.name!r}"
                at_time = f" at t = {solution.time[n]:g} s"
                worst_turn = max(worst_turn, (float(turn[n]), where + at_time))
            share, n = _largest_displacement(body, eta)
            where = f"body {body.name!r} at t = {solution.time[n]:g} s"
            worst_shift = max(worst_shift, (share, where))
        remedy = (
            "The theory of a reduced body is linear in its deformation: divide the body into "
            "several, or model it by a cable with large rotations"
        )
        value, where = worst_turn
        text = (
            f"{where} rotates elastically by {value:.2g} rad relative to the frame of the body, "
            f"more than {ELASTIC_ROTATION:g} rad. {remedy}"
        )
        _judge(ModelRangeWarning, "elastic rotation", value, ELASTIC_ROTATION, text)
        value, where = worst_shift
        text = (
            f"{where} deforms by {100 * value:.2g} % of its size, more than "
            f"{100 * ELASTIC_DISPLACEMENT:g} %. {remedy}"
        )
        _judge(ModelRangeWarning, "elastic displacement", value, ELASTIC_DISPLACEMENT, text)

    def _warn_of_stretch(self, solution: Solution) -> None:
        motions = []
        for k, body in enumerate(self._system.bodies):
            if isinstance(body, FlexibleBody) and body.num_elastic:
                omega = solution.v[:, self._system.v_slices[k]][:, 3:6]
                eta = solution.q[:, self._system.q_slices[k]][:, 7:]
                motions.append((body.reduced, omega, eta))
        warn_of_stretch(motions)

    def _warn_of_large_steps(self, solution: Solution) -> None:
        worst = (0.0, "")
        for body, part in zip(self._system.bodies, self._system.v_slices, strict=True):
            if isinstance(body, FloatingBody):
                speed = float(np.linalg.norm(solution.v[:, part][:, 3:6], axis=1).max())
                worst = max(worst, (speed * self._step, body.name))
        angle, name = worst
        text = (
            f"body {name!r} rotates by up to {angle:.3g} rad in a step of {self._step:g} s: the "
            "steps do not resolve the motion. Take dt below "
            f"{0.1 * self._step / max(angle, 1e-300):.2g} s, which is a tenth of a radian"
        )
        _judge(AccuracyWarning, "rotation per step", angle, ROTATION_PER_STEP, text)

    def _warn_of_energy(self, solution: Solution) -> None:
        moving = [body for body in self._system.bodies if body.num_velocities]
        if not all(isinstance(body, FloatingBody) for body in moving):
            return  # (the internal work of other bodies is not known)
        if self._time == self._sums[0][0]:
            return
        picked = np.unique(np.linspace(0, len(self._sums) - 1, _SAMPLES).astype(int))
        times, work = np.array(self._sums)[picked].T
        states = np.searchsorted(solution.time, times)
        parts = solution._body_energies(states)
        total = parts.sum(axis=1)
        scale = float((parts[:, 0] + parts[:, 1]).max() + np.ptp(parts[:, 2]))
        gain = total - total[0] - work
        n = int(np.argmax(gain))
        mass = sum(body.typical_mass for body in moving)
        size = self._at.system.size
        speed = size / (self._time - times[0])
        if gain[n] > max(ENERGY_GAIN * scale, _ROUND_OFF * mass * speed**2):
            text = (
                f"the mechanism has gained {gain[n]:.3g} J at t = {times[n]:g} s which no load and "
                f"no driver supplied (largest energy {scale:.3g} J): the steps do not resolve the "
                "motion. Take a smaller dt or dt='adaptive'"
            )
            _judge(AccuracyWarning, "energy gain", gain[n], ENERGY_GAIN * scale, text)

    def _warn_of_constraints(self, solution: Solution) -> None:
        whole = solution.system.whole
        if not whole.num_constraints:
            return
        at = Assembler(whole)
        size = np.where(whole.row_motion < 3, whole.size, 1.0)
        rows = set(zip(solution.system.row_entry, solution.system.row_motion, strict=True))
        kept = [pair in rows for pair in zip(whole.row_entry, whole.row_motion, strict=True)]
        limits = np.where(kept, CONSTRAINTS, MISFIT)
        for n in range(0, len(solution), max(1, len(solution) // 50)):
            at.q[:], at.angles[:] = solution.q[n], solution.angles[n]
            share = np.abs(at.constraints(float(solution.time[n]))) / size
            row = int(np.argmax(share / limits))
            if share[row] <= limits[row]:
                continue
            unit = "of the size of the mechanism" if whole.row_motion[row] < 3 else "rad"
            off = f"{whole.constraint_name(row)} is violated by {share[row]:.3g} {unit}"
            if kept[row]:
                text = f"{off} at t = {solution.time[n]:g} s. Decrease dt or tolerance"
                _judge(AccuracyWarning, "constraint violation", share[row], limits[row], text)
            else:
                quantity = "misfit of a redundant constraint"
                text = (
                    f"{off} at t = {solution.time[n]:g} s. It was left out as redundant at the "
                    "start, but it holds a motion that no other constraint holds"
                )
                _judge(ModelRangeWarning, quantity, share[row], limits[row], text)
            return

    def _warn_of_jumps(self) -> None:
        if not len(self._jump):
            return
        k = int(np.argmax(self._jump / np.maximum(self._largest_rate, 1e-300)))
        driver = self._system.drivers[k]
        unit = "rad/s" if driver.along == "rotation" else "m/s"
        text = (
            f"driver {driver.name!r} changes its rate by {self._jump[k]:.3g} {unit} within the "
            f"step that ends at t = {self._jump_time[k]:g} s, which its acceleration does not "
            "explain: the joint forces there are inversely proportional to dt and mean nothing. "
            "Give a motion whose rate is continuous"
        )
        limit = RATE_JUMP * self._largest_rate[k]
        _judge(AccuracyWarning, "rate jump", self._jump[k], limit, text)


def _judge(kind: type[MbdWarning], quantity: str, value: float, limit: float, text: str) -> None:
    """Warn if a value is above its limit."""
    if value > limit:
        warn(kind(text, quantity=quantity, value=float(value), limit=float(limit)))


def _largest_displacement(body: FlexibleBody, eta: Array) -> tuple[float, int]:
    """Largest elastic displacement over the size of a body, and the number of its instant."""
    reduced = body.reduced
    points = [interface.point for interface in reduced.interfaces]
    points += [station.position for station in reduced.points]
    shapes = [interface.motion[:3].T for interface in reduced.interfaces]
    shapes += [station.modes for station in reduced.points]
    if reduced.skin is not None:
        points += list(reduced.skin.points)
    if not points:
        return 0.0, 0
    radius = np.sqrt(0.5 * np.trace(reduced.central_inertia) / reduced.total_mass)
    size = max(float(np.ptp(np.array(points), axis=0).max()), float(radius))
    largest, instant = 0.0, 0
    for shape in shapes:
        shift = np.linalg.norm(eta @ shape, axis=1)
        n = int(np.argmax(shift))
        if shift[n] > largest:
            largest, instant = float(shift[n]), n
    if reduced.skin is not None:
        modes = reduced.skin.modes  # (modes, points, 3)
        bound = np.abs(eta) @ np.linalg.norm(modes, axis=2).max(axis=1)
        n = int(np.argmax(bound))
        if bound[n] > ELASTIC_DISPLACEMENT * size:
            shift = float(np.linalg.norm(np.tensordot(eta[n], modes, 1), axis=1).max())
            if shift > largest:
                largest, instant = shift, n
    return largest / size, instant
