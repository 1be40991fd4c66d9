"""A run that leaves the range of the theory or of the method gives a warning with the number."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import Adaptive, StepError, Stepper, System
from dolfinx_mbd.errors import AccuracyWarning, MbdWarning, ModelRangeWarning
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    fixed,
    force,
    revolute,
    torque,
)
from dolfinx_mbd.results.run_checks import RunChecks
from tests.models.beams import slender_rod

GROUND = Ground({"o": Frame()})
FRAMES = {"o": Frame((-0.5, 0, 0)), "tip": Frame((0.5, 0, 0))}
BAR = RigidBody.box("bar", (1, 0.1, 0.1), mass=1.0, frames=FRAMES, position=(0.5, 0, 0))
PIVOT = revolute("pivot", GROUND.frame("o"), BAR.frame("o"))
GRAVITY = (0.0, -9.81, 0.0)


def pendulum(**options: Any) -> System:
    """Return a bar on a hinge under gravity, with drivers and loads."""
    return System([GROUND, BAR], [PIVOT], gravity=GRAVITY, **options)


def warnings_of(system: System, **options: Any) -> dict[str, MbdWarning]:
    """Return the warnings of a run, by quantity; a step that fails ends the run."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        try:
            simulate(system, **options)
        except StepError:
            pass
    messages = [r.message for r in records if isinstance(r.message, MbdWarning)]
    for record in records:
        assert record.filename == __file__  # the line that called simulate
    assert len({m.quantity for m in messages}) == len(messages), "a warning is given once"
    return {str(m.quantity): m for m in messages}


def speeding_up(t: float) -> tuple[float, float, float]:
    """Return a motion with constant acceleration, its rate and its acceleration."""
    return 2.5 * t * t, 5.0 * t, 5.0


def gust(t: float, motion: Any) -> tuple[float, float, float]:
    """Return a force that depends on time, with a constant component."""
    return float(np.sin(9 * t)), 1.0, 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"drivers": [Driver("d", "pivot", speeding_up)]},
        {"loads": [torque("T", BAR.frame("o"), (0, 0, 3.0)), force("F", BAR.frame("tip"), gust)]},
        {
            "drivers": [Driver("d", "pivot", speeding_up)],
            "loads": [force("F", BAR.frame("tip"), gust)],
        },
    ],
    ids=["driver", "loads", "driver and load"],
)
def test_work_of_loads_and_drivers_is_the_change_of_energy(options: Any) -> None:
    system = pendulum(**options)
    start = simulate(system, t_end=1e-3, dt=1e-3)
    stepper = Stepper(system)
    errors = []
    for steps in (200, 400):
        state = stepper.begin(start.final_state, 1 / steps)
        checks = RunChecks(system, stepper, state)
        for _ in range(steps):
            state = stepper.step(state, 1 / steps)
            checks.update(state, saved=False)
        before, after = (
            BAR.energies(s.q, s.v, system.gravity).sum() for s in (start.final_state, state)
        )
        assert abs(after - before) > 1.0
        errors.append(abs(after - before - checks.work))
    assert errors[1] < errors[0] / 3  # the steps have order two
    assert errors[1] < 1e-3


def test_a_resolved_run_gives_no_warning() -> None:
    assert not warnings_of(pendulum(), t_end=2.0, dt=0.005)
    assert not warnings_of(pendulum(), t_end=2.0, dt=Adaptive())
    assert not warnings_of(
        pendulum(drivers=[Driver("d", "pivot", speeding_up)]), t_end=1.0, dt=0.005
    )


def test_steps_that_rotate_by_more_than_a_radian() -> None:
    reported = warnings_of(pendulum(), t_end=20.0, dt=0.5)
    warning = reported["rotation per step"]
    assert isinstance(warning, AccuracyWarning)
    assert warning.value is not None and warning.value > 1.0


def test_energy_that_no_load_supplied() -> None:
    reported = warnings_of(pendulum(), t_end=20.0, dt=0.1)
    warning = reported["energy gain"]
    assert isinstance(warning, AccuracyWarning)
    assert warning.value is not None and warning.limit is not None
    assert warning.value > warning.limit


def bent(load: float) -> System:
    """Return a cantilever of 300×8×8 mm with a force at its end that is raised slowly."""
    bar = FlexibleBody("bar", slender_rod())
    ends = [interface.name for interface in bar.reduced.interfaces]

    def value(t: float, motion: Any) -> tuple[float, float, float]:
        return 0.0, load * min(t / 0.02, 1.0), 0.0

    return System(
        [GROUND, bar],
        [fixed("root", GROUND.frame("o"), bar.frame(ends[0]))],
        loads=[force("F", bar.frame(ends[1]), value)],
    )


@pytest.mark.parametrize("load", [10.0, 1e3])
def test_elastic_rotations_beyond_the_linear_theory(load: float) -> None:
    reported = warnings_of(bent(load), t_end=0.03, dt=1e-4)
    if load < 100:
        assert not reported
        return
    assert isinstance(reported["elastic rotation"], ModelRangeWarning)
    assert reported["elastic rotation"].value > 0.2  # type: ignore[operator]


@pytest.mark.parametrize("steps", [200, 400])
def test_a_driver_whose_rate_jumps(steps: int) -> None:
    def kink(t: float) -> tuple[float, float, float]:
        return (0.0, 0.0, 0.0) if t < 0.5 else (2 * (t - 0.5), 2.0, 0.0)

    reported = warnings_of(pendulum(drivers=[Driver("d", "pivot", kink)]), t_end=1.0, dt=1 / steps)
    assert isinstance(reported["rate jump"], AccuracyWarning)
    assert reported["rate jump"].value == pytest.approx(2.0)


def test_constraints_that_are_violated() -> None:
    system = pendulum()
    stepper = Stepper(system)
    run = simulate(system, t_end=0.01, dt=0.005)
    checks = RunChecks(system, stepper, run.final_state)
    run.q[-1, 0] += 1e-4  # as if the steps had left the pivot by 0.1 mm
    with pytest.warns(AccuracyWarning) as records:
        checks.inspect(run)
        checks.warn()
    message = records[0].message
    assert isinstance(message, MbdWarning) and message.quantity == "constraint violation"
    assert message.value == pytest.approx(1e-4 / system.size, rel=1e-3)


@pytest.mark.parametrize(("distance", "warns"), [(0.0, False), (1.0, False), (10.0, True)])
def test_a_frame_far_from_its_body(distance: float, warns: bool) -> None:
    """The origin is described at a distance from a bar of 1 m, which turns by 10 mrad per step."""
    ground = Ground({"o": Frame()})
    bar = RigidBody(
        "bar",
        1.0,
        [1e-3, 0.1, 0.1],
        (distance, 0, 0),
        frames={"o": Frame((distance, 0, 0))},
        position=(-distance, 0, 0),
    )
    pin = revolute("pin", ground.frame("o"), bar.frame("o"))
    drive = Driver("d", "pin", lambda t: (10.0 * t, 10.0, 0.0))
    reported = warnings_of(System([ground, bar], [pin], drivers=[drive]), t_end=0.1, dt=1e-3)
    assert ("distance of the origin" in reported) == warns


@pytest.mark.parametrize(("distance", "named"), [(50.0, True), (0.2, False)])
def test_a_failed_step_names_a_frame_far_from_its_body(distance: float, named: bool) -> None:
    """A load that is noise does not converge; the error names a possible cause beside it."""
    rng = np.random.default_rng(0)
    ground = Ground({"o": Frame()})
    offset = (distance, 0, 0)
    bar = RigidBody("bar", 1.0, [1e-3, 0.1, 0.1], offset, frames={"o": Frame(offset)})
    pin = revolute("pin", ground.frame("o"), bar.frame("o"))
    noise = force("noise", bar.frame("o"), lambda t, motion: 1e6 * rng.normal(size=3))
    spin = torque("torque", bar.frame("o"), lambda t, motion: 1e6 * rng.normal(size=3))
    system = System([ground, bar], [pin], loads=[noise, spin])
    with pytest.raises(StepError) as error, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulate(system, t_end=0.1, dt=1e-3)
    assert ("m from its centre of mass" in str(error.value)) == named
