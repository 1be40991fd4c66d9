"""Periodic motions with friction, stops, and loads that have states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import periodic
from dolfinx_mbd.analyses.periodic import PeriodicError

SPEED, FORCE, STIFFNESS, DAMPING = 20.0, 5.0, 100.0, 1.0
PERIOD = 2 * np.pi / SPEED


def slider(*loads: Any, law: Any = None) -> mbd.System:
    """Return a mass of 1 kg on a spring and a damper that a force moves along z.

    `loads` are further loads, and `law` is that of an element with three states.
    """
    ground = mbd.Ground({"o": mbd.Frame()})
    body = mbd.RigidBody("body", 1.0, [0.1] * 3, frames={"o": mbd.Frame()})
    rail = mbd.prismatic("rail", ground.frame("o"), body.frame("o"))
    force = mbd.JointLoad(
        "force", "rail", "displacement",
        lambda t, x, v: FORCE * np.cos(SPEED * t) - STIFFNESS * x - DAMPING * v,
    )  # fmt: skip
    pair = ground.frame("o"), body.frame("o")
    extra = [mbd.PairLoad("element", *pair, law, states=(0.0, 0, 0))] if law else []
    return mbd.System([ground, body], [rail], loads=[force, *loads, *extra])


def test_load_with_states() -> None:
    """A Maxwell element has the stiffness k iωτ/(1 + iωτ); the error is of second order."""
    k, tau = 50.0, 0.05

    def law(motion: Any) -> tuple[Any, Any, Any]:
        stretch = motion.displacement - motion.states
        return -k * stretch * [0, 0, 1], np.zeros(3), stretch / tau

    s = 1j * SPEED
    exact = FORCE / (STIFFNESS + DAMPING * s + s**2 + k * s * tau / (1 + s * tau))
    errors = []
    for steps in (40, 80):
        cycle = periodic(slider(law=law), PERIOD, dt=PERIOD / steps)
        assert cycle.stability == "stable"
        assert len(cycle.multipliers) == 5  # position, velocity and three states
        c = cycle.harmonics(cycle.joint("rail").displacement[:, 2], 2)
        errors.append(abs(c[1] - exact) / abs(exact))
        assert abs(c[2]) < 1e-7 * abs(c[1])
    assert errors[1] < 3e-3
    assert np.isclose(errors[0] / errors[1], 4.0, rtol=0.1)


@pytest.mark.parametrize("limit", [0.4, 1.0])
def test_dry_friction(limit: float) -> None:
    """In a cycle, the force does the work that the damper and the friction dissipate.

    The friction R at the amplitude x̂, half of the peak-to-peak value, dissipates 4 R x̂.
    """
    friction = mbd.mechanism.JointFriction("friction", "rail", limit=limit, rate=3e-4)
    cycle = periodic(slider(friction), PERIOD, dt=PERIOD / 400)
    assert cycle.stability == "stable"
    x = cycle.joint("rail").displacement[:, 2]
    v = cycle.body("body").velocity[:, 2]
    assert np.abs(cycle.harmonics(x, 3)[3]) > 1e-3 * np.ptp(x)  # friction is not linear
    work = np.trapezoid(FORCE * np.cos(SPEED * cycle.time) * v, cycle.time)
    loss = np.trapezoid(DAMPING * v**2, cycle.time)
    assert np.isclose(work, loss + 2 * limit * np.ptp(x), rtol=2e-3)


def test_stops() -> None:
    """The mass hits both stops; the cycle repeats in a simulation and balances its work."""
    stop = mbd.mechanism.JointStop(
        "stop", "rail", mbd.ContactLaw(1e4, 1.0, 0.3), lower=-0.008, upper=0.008
    )
    system = slider(stop)
    cycle = periodic(system, PERIOD, dt=PERIOD / 600)
    x = cycle.joint("rail").displacement[:, 2]
    assert x.max() > 0.008
    assert x.min() < -0.008
    run = mbd.simulate(
        system, t_end=cycle.time[-1] + 2 * PERIOD, dt=PERIOD / 600,
        start=cycle.final_state, tolerance=1e-10,
    )  # fmt: skip
    simulated = run.joint("rail").displacement[-601:, 2]
    assert np.abs(simulated - x).max() < 1e-6 * np.ptp(x)


def test_impacts_that_are_too_short_for_the_step() -> None:
    stop = mbd.mechanism.JointStop(
        "stop", "rail", mbd.ContactLaw(1e5, 1.0, 0.3), lower=-0.004, upper=0.004
    )
    with pytest.raises(PeriodicError, match="impacts need a smaller dt"):
        periodic(slider(stop), PERIOD, dt=PERIOD / 100, max_corrections=3)
