"""Checks whether a finished run is within the range of validity of the theory and the method.

Each check gives at most one warning, with the place, the time and the value. The work of loads and
drivers and the rates of drivers are recorded during the run; all other checks use the saved states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.static_errors import stretch_energies, warn_of_stretch
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.errors import AccuracyWarning, MbdWarning, ModelRangeWarning, warn
from dolfinx_mbd.kernels.columns import ABOUT_X, ETA, OMEGA
from dolfinx_mbd.mechanism.bodies import FlexibleBody
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.contact_steps import ContactSteps
from dolfinx_mbd.results.deformation_checks import (
    largest_deformations,
    warn_of_deformation,
)
from dolfinx_mbd.results.distributed_rows import local_row
from dolfinx_mbd.results.film_checks import FilmChecks
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]

# A value above one of these limits gives a warning
ROTATION_PER_STEP = 1.0  # rotation of a body in a time step, rad
# Square of the rotation per step, times the ratio of the distance between the origin of a body's
# frame and its centre of mass to its radius of gyration; checked for ratios above `FAR`
ORIGIN, FAR = 1e-4, 5.0
ENERGY_GAIN = 0.05  # unexplained gain of energy relative to the largest energy in the run
CONSTRAINTS = 1e-6  # violation of a constraint relative to the size of the mechanism, or in rad
MISFIT = 1e-5  # limit as `CONSTRAINTS`, for redundant constraints that are dropped
RATE_JUMP = 0.05  # jump of a driver's rate relative to its largest rate
# Ignored energy relative to the mass times (size of the mechanism / duration of the run)²
_ROUND_OFF = 1e-12
HALVINGS = 10  # number of steps with mesh bodies or oil films that were halved
_SAMPLES = 200  # largest number of saved states at which energies are evaluated
_CONSTRAINT_SAMPLES = 50  # about the number of states of a block whose constraints are evaluated


class RunChecks:
    """Sum of the work of loads and drivers (`work`, J), and warnings at the end of a run.

    The work excludes that of the elastic forces of springs, stops, bushings and contacts, whose
    stored energy is known. A quadrature of their power is wrong if the steps do not resolve them.
    The work of their damping forces in a step is counted with the smaller power at both ends,
    because an unresolved dissipation would otherwise look like a gain of energy.

    Call `update` after each step, while the assembler of the stepper is at the new state, and
    `inspect` with all saved states, which may come in several blocks.
    """

    def __init__(self, system: System, stepper: Stepper, state: State) -> None:
        self._system, self._assembler, self._stepper = system, stepper.assembler, stepper
        self._assembler.put(state)
        self._assembler.residual(state.time)
        self._time, self._power = state.time, self._powers(state.time)
        self._rates = self._driver_rates()
        self._largest_rate = [abs(rate) for rate, _ in self._rates]
        self._jump = [0.0] * len(system.drivers)
        self._jump_time = [state.time] * len(system.drivers)
        self.work, self._step = 0.0, 0.0
        self._contacts = ContactSteps(self._assembler, state.time)
        self._films = FilmChecks(self._assembler, state.time)
        self._open_films = stepper.corrector.films
        stored = self._assembler.loads.stored_energy(elastic=True)
        moving = [body for body in system.mechanical_bodies if body.num_velocities]
        # The internal work of other bodies is not known
        self._moving = moving if all(isinstance(b, FloatingBody) for b in moving) else []
        self._samples, self._saved, self._interval = [(state, 0.0, stored)], 0, 1
        self._worst: dict[str, tuple[float, str]] = {}
        self._stretch: dict[str, tuple[float, ...]] = {}

    def memory(self) -> dict[str, Any]:
        """Return plain values from which `restore` continues the checks of the saved states."""
        memory = {"worst": self._worst, "stretch": self._stretch, "step": self._step}
        return {**memory, "films": self._films.memory()}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Continue the checks of the saved states of an interrupted run."""
        self._step = float(memory["step"])
        self._worst = {key: (float(v), str(text)) for key, (v, text) in memory["worst"].items()}
        self._stretch = {name: (*map(float, e),) for name, e in memory["stretch"].items()}
        self._films.restore(memory.get("films", []))

    def update(self, state: State, *, saved: bool) -> None:
        """Record the work and the driver rates of the step that led to a state."""
        dt = state.time - self._time
        power = self._powers(state.time)
        (supplied, damping), (supplied_before, damping_before) = power, self._power
        self.work += 0.5 * dt * (supplied + supplied_before)
        if damping <= 0.0 and damping_before <= 0.0:
            self.work += dt * max(damping, damping_before)
        else:
            self.work += 0.5 * dt * (damping + damping_before)
        if saved:
            self._add_sample(state)
        self._step = max(self._step, dt)
        self._contacts.update(state.time, dt)
        if self._open_films:
            self._films.update(state.time, self._open_films.accepted_gaps)
        self._time, self._power = state.time, power
        rates = self._driver_rates()
        for k, ((before, slope), (rate, acceleration)) in enumerate(
            zip(self._rates, rates, strict=True)
        ):
            jump = abs(rate - before - 0.5 * dt * (slope + acceleration))
            if jump > self._jump[k]:
                self._jump[k], self._jump_time[k] = jump, state.time
            self._largest_rate[k] = max(self._largest_rate[k], abs(rate))
        self._rates = rates

    def _add_sample(self, state: State) -> None:
        """Keep every n-th saved state for the energies, so that the number of samples is limited.

        If there are too many samples, n is doubled and every second sample is deleted.
        """
        self._saved += 1
        if self._moving and self._saved % self._interval == 0:
            self._samples.append(
                (state, self.work, self._assembler.loads.stored_energy(elastic=True))
            )
        if len(self._samples) > 2 * _SAMPLES:
            self._samples, self._interval = self._samples[::2], 2 * self._interval

    def inspect(self, block: Solution) -> None:
        """Record the largest deformations, rates and constraint violations of saved states."""
        self._inspect_deformation(block)
        self._inspect_constraints(block)

    def warn(self) -> None:
        """Give the warnings of a run, at most one for each quantity but one for each thin film."""
        warn_of_deformation(self._worst)
        bodies = [b.reduced for b in self._system.bodies if isinstance(b, FlexibleBody)]
        names = [b.name for b in self._system.bodies if isinstance(b, FlexibleBody)]
        warn_of_stretch(
            (body, self._stretch[name])  # type: ignore[misc]
            for name, body in zip(names, bodies, strict=True)
            if name in self._stretch
        )
        self._check_steps()
        self._check_halvings()
        self._check_energy()
        for kind in (AccuracyWarning, ModelRangeWarning):
            self._warn_of_constraints(kind)
        self._check_jumps()
        self._contacts.warn()
        self._films.warn()

    def _powers(self, t: float) -> tuple[float, float]:
        """Return the power of drivers and loads without elements, and of damping forces, W."""
        power = self._assembler.power(t)
        if not self._system.loads:
            return power, 0.0
        elastic, damping = self._assembler.loads.element_power(t)
        return power - elastic - damping, damping

    def _driver_rates(self) -> list[tuple[float, float]]:
        """Return the rate and acceleration of each driver after the last step."""
        return [(rate, change) for _, rate, change in self._assembler.driver_motions(self._time)]

    def _record(self, quantity: str, value: float, text: str) -> None:
        """Keep the largest value of a quantity with a text about its place and time."""
        if value > self._worst.get(quantity, (0.0, ""))[0]:
            self._worst[quantity] = float(value), text

    def _inspect_deformation(self, block: Solution) -> None:
        """Record rotations per step, distances of origins and deformations of a block."""
        s = self._system
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            omega = block.v[:, vs][:, OMEGA]
            if isinstance(body, FloatingBody):
                # Rates: `_check_steps` multiplies them by the longest step, which the run finds
                speed = float(np.linalg.norm(omega, axis=1).max())
                self._record("rotation per step", speed, body.name)
                distance, size = body.origin_distance()
                if distance > FAR * size:
                    place = f"body {body.name!r} is {distance:.3g} m from its centre of mass"
                    self._record("distance of the origin", speed**2 * distance / size, place)
            if not isinstance(body, FlexibleBody) or not body.num_elastic:
                continue
            eta = block.q[:, qs][:, ETA]
            energies = stretch_energies(body.reduced, omega, eta)
            before = self._stretch.get(body.name, energies)
            self._stretch[body.name] = (*map(max, before, energies),)
        for quantity, (value, place) in largest_deformations(s, block.time, block.q, block.v):
            self._record(quantity, value, place)

    def _check_steps(self) -> None:
        """Warn if the bodies rotate far within a step, or far from their origins."""
        speed, name = self._worst.get("rotation per step", (0.0, ""))
        angle = speed * self._step
        text = (
            f"body {name!r} rotates by up to {angle:.3g} rad in a step of {self._step:g} s: the "
            "steps do not resolve the motion. Take dt below "
            f"{0.1 * self._step / max(angle, 1e-300):.2g} s, for at most 0.1 rad per step"
        )
        _warn(AccuracyWarning, "rotation per step", angle, ROTATION_PER_STEP, text)
        value, place = self._worst.get("distance of the origin", (0.0, ""))
        text = (
            f"the origin of the frame of {place}: errors of a time step grow with this distance, "
            "and forces may be wrong. Describe the body in a frame near its centre of mass"
        )
        _warn(AccuracyWarning, "distance of the origin", value * self._step**2, ORIGIN, text)

    def _check_halvings(self) -> None:
        """Warn if many steps failed and were halved."""
        count = self._stepper.halvings
        names = [b.name for b in self._system.bodies if hasattr(b, "step_solver")]
        names += [film.name for film in self._assembler.loads.films()]
        text = (
            f"steps failed and were halved {count} times (mesh bodies and oil films: "
            f"{', '.join(map(repr, names))}; longest step {self._step:g} s). Each failure costs a "
            f"multiple of a step: take steps below {0.5 * self._step:.2g} s, with a smaller dt or "
            "Adaptive(largest=...)"
        )
        _warn(AccuracyWarning, "halved steps", count, HALVINGS, text)

    def _check_energy(self) -> None:
        """Warn if the mechanism gains energy that no load and no driver supplied."""
        if not self._moving:
            return
        states, works, stored = zip(*self._samples, strict=True)
        rows = np.unique(np.linspace(0, len(states) - 1, _SAMPLES).astype(int))
        times = np.array([states[k].time for k in rows])
        if self._time == times[0]:
            return
        parts = Solution(self._system, [states[k] for k in rows])._body_energies(slice(None))
        kinetic, elastic, gravity = parts.T
        potential = gravity + np.array(stored)[rows]
        total = kinetic + elastic + potential
        scale = float((kinetic + elastic).max() + np.ptp(potential))
        gain = total - total[0] - np.array(works)[rows]
        n = int(np.argmax(gain))
        speed = self._system.size / (self._time - times[0])
        noise = _ROUND_OFF * sum(body.typical_mass for body in self._moving) * speed**2
        text = (
            f"at t = {times[n]:g} s the mechanism has gained {gain[n]:.3g} J that no load and "
            f"no driver supplied (largest energy {scale:.3g} J): the steps do not resolve the "
            "motion. Take a smaller dt or dt='adaptive'"
        )
        if gain[n] > noise:
            _warn(AccuracyWarning, "energy gain", gain[n], ENERGY_GAIN * scale, text)

    def _inspect_constraints(self, block: Solution) -> None:
        """Record the violations of constraints, also of those dropped as redundant."""
        whole = block.system.whole
        if not whole.num_constraints:
            return
        assembler = Assembler(whole)
        size = np.where(whole.row_motion < ABOUT_X, whole.size, 1.0)
        held = block.system.held
        for n in range(0, len(block), max(1, len(block) // _CONSTRAINT_SAMPLES)):
            assembler.q[:], assembler.angles[:] = local_row(block.q, n), block.angles[n]
            ratios = np.abs(assembler.constraints(float(block.time[n]))) / size
            for rows, kind in ((held, AccuracyWarning), (~held, ModelRangeWarning)):
                if rows.any():
                    row = int(np.argmax(np.where(rows, ratios, -1.0)))
                    unit = (
                        "of the size of the mechanism" if whole.row_motion[row] < ABOUT_X else "rad"
                    )
                    place = f"{whole.constraint_name(row)} is violated by {ratios[row]:.3g} {unit}"
                    text = f"{place} at t = {block.time[n]:g} s"
                    self._record(kind.__name__, ratios[row], text)

    def _warn_of_constraints(self, kind: type[MbdWarning]) -> None:
        """Warn of violated constraints, or of the misfit of redundant ones."""
        value, text = self._worst.get(kind.__name__, (0.0, ""))
        limit, quantity, advice = CONSTRAINTS, "constraint violation", "Decrease dt or tolerance"
        if kind is ModelRangeWarning:
            limit, quantity = MISFIT, "misfit of a redundant constraint"
            advice = (
                "It was dropped as redundant at the start, but it restrains a motion that "
                "no other constraint restrains"
            )
        _warn(kind, quantity, value, limit, f"{text}. {advice}")

    def _check_jumps(self) -> None:
        """Warn if the rate of a driver jumps within a step."""
        if not self._jump:
            return
        k = int(np.argmax(np.array(self._jump) / np.maximum(self._largest_rate, 1e-300)))
        driver = self._system.drivers[k]
        unit = "rad/s" if driver.along == "rotation" else "m/s"
        text = (
            f"driver {driver.name!r} changes its rate by {self._jump[k]:.3g} {unit} within the "
            f"step that ends at t = {self._jump_time[k]:g} s. Its acceleration does not explain "
            "this jump: the joint forces at this time are proportional to 1/dt and meaningless. "
            "Use a motion whose rate is continuous"
        )
        limit = RATE_JUMP * self._largest_rate[k]
        _warn(AccuracyWarning, "rate jump", self._jump[k], limit, text)


def _warn(kind: type[MbdWarning], quantity: str, value: float, limit: float, text: str) -> None:
    """Warn if a value is above its limit."""
    if value > limit:
        warn(kind(text, quantity=quantity, value=float(value), limit=float(limit)))
