"""Adaptive steps: tolerance and order, changes of the step without transients, bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd import errors
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import (
    Adaptive,
    GeneralizedAlpha,
    StepError,
    Stepper,
    System,
    consistent_state,
)
from dolfinx_mbd.mechanism import Frame, Ground, JointLoad, RigidBody, revolute, torque
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import Solution
from tests.models.beams import slender_rod


def flexible_crank() -> System:
    """Return a driven slider-crank with a rod of two bending modes."""
    return slider_crank(
        slender_rod(bending=2, axial=0),
        crank_radius=0.15,
        crank_mass=0.36,
        piston_mass=0.0755,
        speed=150.0,
        damping_ratio=0.02,
    )


@pytest.fixture(scope="module")
def exact() -> Solution:
    """Return a run with very short steps."""
    return simulate(flexible_crank(), t_end=0.01, dt=2.5e-6, tolerance=1e-10, stride=4)


def test_error_follows_the_tolerance(exact: Solution) -> None:
    """The error of the result falls with tolerance^(2/3), steps grow with tolerance^(−1/3)."""
    runs = [
        simulate(flexible_crank(), t_end=0.01, dt=Adaptive(value), tolerance=1e-10)
        for value in (1e-4, 1e-6)
    ]
    for key in ("q", "v", "lam"):
        last = getattr(exact, key)[-1]
        coarse, fine = (float(np.abs(getattr(run, key)[-1] - last).max()) for run in runs)
        if key == "lam":  # the last step may be very short
            assert fine < 0.3 * coarse
        else:
            assert 0.5 < np.log10(coarse / fine) / 2 < 0.85, (key, coarse, fine)
    growth = np.log10(len(runs[1]) / len(runs[0])) / 2
    assert 0.25 < growth < 0.4  # a third
    # local errors add up; they are relative to the length of the mechanism, 0.45 m
    off = np.abs(runs[1].body("piston").position[-1] - exact.body("piston").position[-1]).max()
    assert off < len(runs[1]) * 1e-6 * 0.45


def test_changes_of_the_step_start_no_transient(exact: Solution) -> None:
    """After each change of the step, multipliers are as accurate as with equal steps."""

    def along(dts: list[float]) -> float:
        system = flexible_crank()
        stepper = Stepper(system, tolerance=1e-10)
        state = stepper.begin(consistent_state(system), dts[0])
        before, worst = dts[0], 0.0
        for dt in dts:
            ready = state if state.time == 0 else stepper.rescaled(state, before, dt)
            state, before = stepper.step(ready, dt), dt
            k = round(state.time / 1e-5)
            worst = max(worst, float(np.abs(state.lam - exact.lam[k]).max()))
        return worst

    equal = along([4e-5] * 100)
    changing = along(([4e-5] * 10 + [2e-5] * 10) * 6)
    assert changing < 1.1 * equal
    assert np.isclose(exact.time[1], 1e-5)


def pendulum(load=None) -> System:
    """Return a pendulum under gravity, with a load or without."""
    ground = Ground({"o": Frame()})
    bob = RigidBody("bob", 1.0, [1e-3] * 3, (1.0, 0, 0), frames={"o": Frame()})
    loads = [] if load is None else [load(bob)]
    joint = revolute("pivot", ground.frame("o"), bob.frame("o"))
    return System([ground, bob], [joint], loads=loads, gravity=(0, -9.81, 0))


def test_steps_follow_the_motion() -> None:
    """Steps are short only where a body hits a wall; the energy shows the error."""

    def wall(t: float, angle: float, rate: float) -> float:
        return -1e6 * min(angle + 2.0, 0.0)  # the wall, N m, is at −2 rad

    load = JointLoad("wall", "pivot", "rotation", wall)
    losses = []
    for value in (1e-5, 1e-7):
        control = Adaptive(value)
        run = simulate(pendulum(load=lambda bob: load), t_end=2.0, dt=control, tolerance=1e-10)
        steps, angle = np.diff(run.time), run.joint("pivot").rotation
        touching = angle[1:] < -2.0
        assert touching.any()
        assert steps[touching].max() < 0.3 * steps[~touching].max()
        dent = np.minimum(angle + 2.0, 0.0)
        energy = run.energies()
        total = energy.total + 0.5 * 1e6 * dent**2
        losses.append(np.ptp(total) / energy.kinetic.max())
    assert losses[1] < 0.2 * losses[0] < 0.02


def test_two_runs_are_bitwise_identical_and_end_at_the_end() -> None:
    first, second = (simulate(flexible_crank(), t_end=1e-3, dt="adaptive") for _ in range(2))
    for key in ("time", "q", "v", "a", "lam"):
        assert np.array_equal(getattr(first, key), getattr(second, key))
    assert first.time[-1] == pytest.approx(1e-3, rel=1e-12)


def test_bounds_of_the_step() -> None:
    control = Adaptive(1e-3, first=1e-4, largest=2e-3)
    run = simulate(pendulum(), t_end=0.1, dt=control)
    steps = np.diff(run.time)
    assert np.isclose(steps[0], 1e-4)
    assert steps.max() <= 2e-3 * (1 + 1e-9)
    trapezoidal = GeneralizedAlpha.newmark()
    assert simulate(pendulum(), t_end=0.1, dt=control, method=trapezoidal).complete


def test_error_of_a_motion_that_adaptive_steps_cannot_follow() -> None:
    def jumping(t: float, motion) -> tuple[float, float, float]:
        return 0.0, 0.0, 1e3 * float(np.sign(np.cos(1e9 * motion.rotation[1, 0])))

    with pytest.raises(StepError) as exc_info:
        simulate(
            pendulum(load=lambda bob: torque("push", bob.frame("o"), jumping)),
            t_end=1.0,
            dt=Adaptive(1e-4, first=1e-3, smallest=1e-4),
        )
    assert exc_info.value.solution is not None
    for field, value in (("tolerance", 2.0), ("largest", -1.0), ("first", "soon")):
        with pytest.raises(errors.InputError) as error:
            Adaptive(**{field: value})
        assert (error.value.argument, error.value.value) == (field, value)
    with pytest.raises(errors.InputTypeError) as error:
        simulate(pendulum(), t_end=1.0, dt="fast")  # type: ignore[arg-type]
    assert error.value.argument == "dt"
