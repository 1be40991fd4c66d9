"""Inputs and outputs of linearized mechanisms: a body's frequency response, closed forms, a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import Simulator, SteadyError, equilibrium, linearize
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.body.response.frequency_response import frequency_response
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import rotation_vector
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    JointLoad,
    JointSpring,
    RigidBody,
    constant_speed,
    fixed,
    force,
    prismatic,
    revolute,
    torque,
)
from dolfinx_mbd.results.histories import rotation_matrices
from tests.body.lattice import Lattice

ZERO = (0.0, 0.0, 0.0)


def motions(body: str) -> dict[str, Any]:
    """Return displacements, small rotations and accelerations of the interface on the right."""

    def rotation(run: Any, k: int) -> np.ndarray:
        history, interface = run.body(body), run.system.body(body).reduced.interface("right")
        turns = rotation_matrices(history.rotation)
        small = history.eta @ interface.motion[3:].T
        return np.array([rotation_vector(A)[k] for A in turns]) + small[:, k]

    outputs: dict[str, Any] = {}
    for k, axis in enumerate("xyz"):
        outputs[f"u{axis}"] = lambda run, k=k: run.sensor(body, "right")[:, k]
        outputs[f"r{axis}"] = lambda run, k=k: rotation(run, k)
        outputs[f"a{axis}"] = lambda run, k=k: run.sensor(body, "right", "acceleration")[:, k]
    return outputs


@pytest.mark.parametrize("held", [(), ("left",)], ids=["free", "held"])
def test_the_response_is_that_of_the_body(held: tuple[str, ...]) -> None:
    """Receptance and inertance agree with the reduced body in a mechanism (1e-8)."""
    body = Lattice().body(stiffening=True).with_damping(Rayleigh(20.0, 1e-6))
    beam = FlexibleBody("beam", body)
    point, axes = body.interface("left").point, body.interface("left").axes
    ground = Ground({"o": Frame(point, axes)})
    right = beam.frame("right")
    system = System(
        [ground, beam],
        [fixed("clamp", ground.frame("o"), beam.frame("left"))] if held else [],
        loads=[force("f", right, ZERO), torque("m", right, ZERO)],
    )
    f = np.array([20.0, 480.0, 3100.0, 7000.0])
    inputs = [f"{load}.{axis}" for load in "fm" for axis in "xyz"]
    outputs = motions("beam")
    result = linearize(system, consistent_state(system), inputs=inputs, outputs=outputs)
    A, B, C, D = result.matrices
    assert np.abs(D).max() > 0  # accelerations follow forces at once
    H = result.response(f)
    expected = frequency_response(body, f, held=held, inputs=["right"], outputs=["right"])
    for i, output in enumerate(outputs):
        name, derivative = output.replace("a", "u"), 2 * output.startswith("a")
        row = [expected.between(f"right {name}", force, derivative) for force in expected.inputs]
        reference = np.array(row).T
        for part in (slice(0, 3), slice(3, 6)):  # forces, moments
            scale = np.abs(reference[:, part]).max(axis=1, keepdims=True)
            assert (np.abs(H[:, i, part] - reference[:, part]) <= 1e-8 * scale).all(), output
    space = result.state_space()
    assert all(np.array_equal(*pair) for pair in zip((space.A, space.D), (A, D), strict=True))


def oscillator(speed: float | None = None, k: float = 50.0, c: float = 0.3) -> System:
    """Return a slider with spring and damper in a slot, which may turn at a constant speed."""
    ground = Ground({"o": Frame(), "x": Frame(axes=[(0, 0, 1), (1, 0, 0), (0, 1, 0)])})
    slider = RigidBody("slider", 2.0, [0.01] * 3, frames={"x": Frame(axes=ground.frames["x"].axes)})
    loads = [JointLoad("push", "slot", "displacement", 0.0), JointSpring("spring", "slot", k, c)]
    if speed is None:
        slot = prismatic("slot", ground.frame("x"), slider.frame("x"))
        return System([ground, slider], [slot], loads=loads)
    arm = RigidBody("arm", 1.0, [0.1] * 3, frames={"o": Frame(), "x": ground.frames["x"]})
    joints = [
        revolute("bearing", ground.frame("o"), arm.frame("o")),
        prismatic("slot", arm.frame("x"), slider.frame("x")),
    ]
    drive = Driver("drive", "bearing", constant_speed(speed))
    return System([ground, arm, slider], joints, drivers=[drive], loads=loads)


OUTPUTS: dict[str, Any] = {
    "x": lambda run: run.sensor("slider")[:, 0],
    "rate": lambda run: run.body("slider").velocity[:, 0],
    "acceleration": lambda run: run.body("slider").acceleration[:, 0],
}


def test_an_oscillator_has_its_closed_form() -> None:
    """The inputs are force, stiffness and free length of a spring stretched by 0.1 m."""
    system = oscillator()
    system = System(
        system.bodies, system.joints,
        loads=[JointLoad("push", "slot", "displacement", 5.0), system.loads[1]],
    )  # fmt: skip
    inputs = ["push", "spring.stiffness", "spring.free"]
    result = linearize(system, equilibrium(system), inputs=inputs, outputs=OUTPUTS)
    s = 2j
    _, B, C, D = result.matrices
    H = C @ np.linalg.solve(s * np.eye(2) - result.matrices[0], B) + D
    # s² m + s c + k with m = 2 kg; stiffness times −0.1 m and free length times 50 N/m are forces
    x = np.array([1.0, -0.1, 50.0]) / (2 * s * s + 0.3 * s + 50)
    assert np.allclose(H, [x, s * x, s * s * x], rtol=1e-9)
    assert np.allclose(D[2], [0.5, -0.05, 25.0], rtol=1e-9)
    assert result.inputs == tuple(inputs) and result.outputs == tuple(OUTPUTS)


def test_reactions_are_outputs() -> None:
    """The driver of the rotating arm exerts the moment 2 m Ω ẋ x₀ of the Coriolis force."""
    system = oscillator(speed=4.0)
    outputs = {"moment": lambda run: run.joint("drive").moment[:, 2]}
    radial = {"r": lambda run: run.sensor("slider", axes="arm")[:, 0]}
    result = linearize(system, consistent_state(system), inputs=["push"], outputs=outputs | radial)
    A, B, C, D = result.matrices
    s = 3j
    H = C @ np.linalg.solve(s * np.eye(2) - A, B) + D
    # On the axis, the Coriolis force has no lever arm; the spring loses m Ω² = 2 · 16 N/m.
    assert np.abs(H[0]).max() < 1e-9
    assert np.allclose(H[1], 1 / (2 * s * s + 0.3 * s + 50 - 2 * 16), rtol=1e-9)


def test_outputs_that_change_along_a_steady_motion_are_errors() -> None:
    system = oscillator(speed=4.0)
    outputs = {"x": lambda run: run.sensor("slider")[:, 0]}  # in axes that do not turn
    with pytest.raises(SteadyError):
        linearize(system, consistent_state(system), inputs=["push"], outputs=outputs)


def test_a_step_response_is_that_of_a_simulation() -> None:
    """A small torque moves a flexible pendulum about its equilibrium."""
    from scipy.signal import lsim

    body = Lattice().body().with_damping(Rayleigh(2.0, 1e-5))
    beam = FlexibleBody("beam", body)
    ground = Ground({"o": Frame(body.interface("left").point, body.interface("left").axes)})
    pin = revolute("pin", ground.frame("o"), beam.frame("left"))
    loads = [
        JointLoad("motor", "pin", "rotation", 0.0),
        JointSpring("spring", "pin", stiffness=50.0, damping=0.1),
    ]
    system = System([ground, beam], [pin], loads=loads)
    outputs = {"angle": lambda run: run.joint("pin").rotation}
    outputs |= {"tip": lambda run: run.sensor("beam", "right", "velocity")[:, 1]}
    state = equilibrium(system)
    result = linearize(system, state, inputs=["motor"], outputs=outputs)
    period = 2 * np.pi / np.abs(result.poles[0])
    dt = period / 2000
    simulator = Simulator(system, dt=dt, start=state, inputs=["motor"], outputs=outputs)
    steps = 600
    simulated = []
    for _ in range(steps):
        simulator.step({"motor": 1e-4})
        simulated.append([*simulator.outputs.values()])
    _, y, _ = lsim(result.state_space(), np.full(steps + 1, 1e-4), dt * np.arange(steps + 1))
    difference = np.abs(np.array(simulated) - y[1:]).max(axis=0)
    assert (difference < 2e-3 * np.abs(y).max(axis=0)).all()


def test_wrong_inputs() -> None:
    system = oscillator(speed=4.0)
    state = consistent_state(system)
    for inputs in (["drive"], ["pull"], ["push", "push"], "push"):
        with pytest.raises(InputError):
            linearize(system, state, inputs=inputs)
    with pytest.raises(InputError):
        linearize(system, state).state_space()
    with pytest.raises(InputError):
        linearize(system, state, outputs={"x": 3.0})  # type: ignore[dict-item]


def test_python_control() -> None:
    control = pytest.importorskip("control")
    system = oscillator()
    inputs = ["push", "spring.free"]
    result = linearize(system, equilibrium(system), inputs=inputs, outputs=OUTPUTS)
    named = result.to_control()
    assert named.input_labels == ["push", "spring_free"] and named.output_labels == [*OUTPUTS]
    assert np.allclose(control.evalfr(named, 2j)[0, 0], 1 / (2 * (2j) ** 2 + 0.6j + 50))
