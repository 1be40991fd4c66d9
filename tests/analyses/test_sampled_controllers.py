"""Controllers that are unstable because they act once per step: warnings and errors name inputs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning
from tests.models.beams import slender_rod

STEP = 1e-3
INERTIA = 0.3


def wheel(names: tuple[str, ...] = ("motor",), dt: float = STEP) -> mbd.Simulator:
    """Return a wheel with motors about the same axis and a sensor of its speed."""
    ground = mbd.Ground({"o": mbd.Frame()})
    body = mbd.RigidBody("wheel", 1.0, [INERTIA] * 3, frames={"o": mbd.Frame()})
    axle = mbd.revolute("axle", ground.frame("o"), body.frame("o"), rate=1.0)
    loads = [mbd.JointLoad(name, "axle", "rotation", 0.0) for name in names]
    system = mbd.System([ground, body], [axle], loads=loads)
    outputs = ["axle.rotation", "axle.rotation_rate"]
    return mbd.Simulator(system, dt=dt, inputs=names, outputs=outputs)


@pytest.mark.parametrize("dt", [1e-3, 2e-5])
@pytest.mark.parametrize(
    ("gain", "stable"), [(0.3, True), (1.95, True), (2.05, False), (3.0, False)]
)
def test_the_limit_of_a_rate_feedback(gain: float, stable: bool, dt: float) -> None:
    """The speed of a wheel with the torque −c ω, held over a step, changes by 1 − c dt/J.

    The gain is c dt/J, so that the speed decays if it is less than 2.
    """
    simulator = wheel(dt=dt)
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        for _ in range(400):
            speed = simulator.outputs["axle.rotation_rate"]
            if abs(speed) > 1e12:
                break
            simulator.step({"motor": -gain * INERTIA / dt * speed})
    assert (abs(speed) < 1.0) == stable
    messages = [w.message for w in records]
    assert len(messages) == (not stable)
    if not stable:
        (warning,) = messages
        assert isinstance(warning, AccuracyWarning) and "'motor'" in str(warning)
        assert warning.quantity == "growth of an input" and warning.value > warning.limit


def test_stable_inputs_give_no_warning() -> None:
    """Noise, a reference that jumps, a bang-bang controller, and a signal that grows slowly."""
    rng = np.random.default_rng(5)
    signals = {
        "noise": rng.normal(size=600),
        "jumps": np.where(np.arange(600) % 150 < 75, 0.0, 1.0),
        "alternating": (-1.0) ** np.arange(600),
        "growing": np.exp(np.arange(600) / 100) * np.sin(np.arange(600) / 10),
        "decaying": 0.97 ** np.arange(600) * (-1.0) ** np.arange(600),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for signal in signals.values():
            simulator = wheel()
            for value in signal.tolist():
                simulator.step({"motor": value})


def arm() -> mbd.Simulator:
    """Return a flexible arm with a motor and an unused input."""
    ground = mbd.Ground({"o": mbd.Frame()})
    rod = mbd.FlexibleBody("rod", slender_rod())
    pin = mbd.revolute("pin", ground.frame("o"), rod.frame("big_end"))
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", 0.0),
        mbd.force("push", rod.frame("small_end"), (0.0, 0.0, 0.0)),
    ]
    system = mbd.System([ground, rod], [pin], loads=loads, gravity=(0, -9.81, 0))
    outputs = ["pin.rotation", "pin.rotation_rate"]
    return mbd.Simulator(system, dt=1e-4, inputs=["motor", "push.x"], outputs=outputs)


@pytest.mark.filterwarnings("ignore:input")
@pytest.mark.parametrize("damping", [10.0, 300.0])
def test_the_error_of_a_step_names_the_inputs_that_grew(damping: float) -> None:
    simulator = arm()
    with pytest.raises(
        mbd.dynamics.StepError, match=r"'motor' from .* Details: the step from"
    ) as error:
        for _ in range(2000):
            y = simulator.outputs
            simulator.step({"motor": -damping * (y["pin.rotation"] + y["pin.rotation_rate"])})
    assert "push" not in str(error.value)
    assert "gains" in str(error.value)
    assert error.value.time == pytest.approx(simulator.state.time + 1e-4)


def test_a_step_that_fails_for_another_reason_has_its_own_message() -> None:
    simulator = arm()
    for value in (0.0, 0.1, 0.2, 0.3, 0.2, 0.1):
        simulator.step({"motor": value})
    with pytest.raises(mbd.dynamics.StepError) as error:
        simulator.step({"motor": 1e30})
    assert "gains" not in str(error.value)
