"""Inputs and outputs of linearized mechanisms with mesh bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses.linearization import SteadyError
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import STEEL, ends
from tests.structures.mesh_bodies.test_linearize import SOFT, bar
from tests.structures.mesh_bodies.test_steady_spin import blade, on_a_hub

OUTPUTS = [
    "weight.position.z", "weight.velocity.y", "weight.acceleration.z", "clamp.force.z",
    "clamp.moment.y", "bolt.force.x", "damper.force.z",
]  # fmt: skip


def loaded(body: Any, length: float, force: Any = (0, 0, 0), **options: Any) -> mbd.System:
    """Return a clamped body with a weight at its other end, a damper and a force."""
    frames = {"eye": mbd.Frame(), "side": mbd.Frame((0, 0, 0.02))}
    weight = mbd.RigidBody(
        "weight", 0.05, [2e-5, 3e-5, 4e-5], frames=frames, position=(length, 0, 0)
    )
    ground = mbd.Ground({"origin": mbd.Frame(), "wall": mbd.Frame((length, 0.1, 0.3))})
    joints = [
        mbd.fixed("clamp", ground.frame("origin"), body.frame("left")),
        mbd.fixed("bolt", body.frame("right"), weight.frame("eye")),
    ]
    damper = mbd.SpringDamper(
        "damper", ground.frame("wall"), weight.frame("side"), stiffness=20.0, damping=2.0
    )
    push = mbd.force("push", weight.frame("side"), force)
    bodies = [ground, body, weight]
    return mbd.System(bodies, joints, loads=[damper, push], **options)


@pytest.mark.parametrize(("length", "cells"), [(0.3, (6, 1, 1)), (0.5, (5, 1, 2))])
def test_transfer_function_equals_that_of_a_reduced_body(length: float, cells: Any) -> None:
    """They agree around the lowest resonance, with few and with many modes of the mesh body."""
    model = bar(length, cells, STEEL)
    system = loaded(MeshBody("rod", model, ends(0.0, length)), length)
    reduction = mbd.reduce(model, interfaces=ends(0.0, length), num_modes=30)
    reduced = loaded(mbd.FlexibleBody("rod", reduction.body, damping_ratio=0.0), length)
    inputs = ["push.x", "push.y", "push.z"]
    options: dict[str, Any] = {"inputs": inputs, "outputs": OUTPUTS}
    exact = mbd.linearize(reduced, mbd.equilibrium(reduced), **options)
    lowest = exact.frequencies[0]
    frequencies = lowest * np.array([0.0, 0.3, 0.97, 1.0, 1.02, 2.5])
    expected = exact.response(frequencies)
    sizes = np.abs(expected).max(axis=(0, 2), keepdims=True)
    for count in (6, 16):
        result = mbd.linearize(system, mbd.equilibrium(system), num_modes=count, **options)
        assert result.inputs == tuple(inputs) and result.outputs == tuple(OUTPUTS)
        assert result.matrices[0].shape == (2 * len(result.mass),) * 2
        error = np.abs(result.response(frequencies) - expected) / sizes
        assert error.max() < 5e-3
        assert error[0].max() < 1e-4  # the static responses are exact


def bent() -> tuple[MeshBody, mbd.System, mbd.State]:
    """Return a soft bar that is strongly bent, with its equilibrium."""
    model = bar(0.4, (4, 1, 1), SOFT)
    body = MeshBody("bar", model, ends(0.0, 0.4), energy="neo-hookean", viscosity=1e-4)
    system = loaded(body, 0.4, (-0.2, 0.3, 0.4), gravity=(0, 0, -4.0))
    return body, system, mbd.equilibrium(system)


def test_static_response_is_the_difference_of_equilibria() -> None:
    """Outputs about a bent state are a frame, points of the mesh and reactions."""
    body, system, state = bent()
    points = [(0.2, 0.01, 0.02), (0.37, -0.01, 0.0)]

    def component(k: int, i: int) -> Any:
        return lambda run: body.motion(run).position(points)[:, k, i]

    outputs: dict[str, Any] = {f"{k}{i}": component(k, i) for k in (0, 1) for i in range(3)}
    outputs["force"] = lambda run: run.joint("clamp").force[:, 2]
    outputs["moment"] = lambda run: run.joint("clamp").moment[:, 1]
    outputs["spring"] = lambda run: run.element("damper").force[:, 0]
    result = mbd.linearize(
        system, state, inputs=["push.y", "damper.stiffness"], outputs=outputs, num_modes=6
    )
    gains = result.response([0.0])[0].real
    values = []
    for h in (1e-3, -1e-3):
        for name, change in (("push.y", h), ("damper.stiffness", 20 * h)):
            inputs = mbd.analyses.signals.Inputs(system, ["push.y", "damper.stiffness"])
            inputs.put(
                inputs.merged(
                    {name: dict(zip(inputs.names, inputs.values, strict=True))[name] + change}
                )
            )
            moved = inputs.system
            run = mbd.results.Solution(moved, [mbd.equilibrium(moved)])
            values.append([float(output(run)[0]) for output in outputs.values()])
    up, stiff, down, loose = np.array(values)  # for greater and for smaller inputs
    exact = np.array([(up - down) / 2e-3, (stiff - loose) / 4e-2]).T
    assert np.allclose(gains, exact, rtol=2e-4, atol=2e-4 * np.abs(exact).max(axis=0))


@pytest.mark.parametrize("frequency", [15.0, 40.0])
def test_response_equals_a_simulation(frequency: float) -> None:
    """A small smooth pulse of the force on the bent bar; the error of a run is of order dt²."""
    body, system, state = bent()
    tip: Any = {
        "z": lambda run: run.body("weight").position[:, 2],
        "middle": lambda run: body.motion(run).position([(0.2, 0, 0)])[:, 0, 2],
        "moment": lambda run: run.joint("clamp").moment[:, 1],
    }
    result = mbd.linearize(system, state, inputs=["push.z"], outputs=tip, num_modes=12)
    errors = []
    for dt in (1e-3, 5e-4):
        times = dt * np.arange(1, round(0.03 / dt) + 1)
        simulator = mbd.Simulator(system, dt=dt, inputs=["push.z"], outputs=tip, start=state)
        base, rows = np.array([*simulator.outputs.values()]), []
        for t in times:
            simulator.step({"push.z": 0.4 + pulse(t, frequency)})
            rows.append(np.array([*simulator.outputs.values()]) - base)
        exact = linear_response(result.matrices, times, frequency)
        errors.append(np.abs(np.array(rows) - exact).max(axis=0) / np.abs(exact).max(axis=0))
    assert (errors[1] < 0.02).all()
    assert (errors[1] < 0.4 * errors[0]).all()


def pulse(t: Any, frequency: float) -> Any:
    """Return a force that begins smoothly, N."""
    return 1e-4 * np.sin(np.pi * frequency * t) ** 4


def linear_response(matrices: Any, times: Any, frequency: float) -> Any:
    """Return the outputs of a state space at equal steps for the pulse, by exponentials."""
    A, B, C, D = matrices
    parts = 8
    h = (times[1] - times[0]) / parts
    size = len(A)
    whole = np.zeros((size + 2, size + 2))  # the input is linear in a part of a step
    whole[:size, :size], whole[:size, size] = A, B[:, 0]
    whole[size, size + 1] = 1.0
    E = expm(h * whole)
    x, rows = np.zeros(size), []
    for n in range(1, parts * len(times) + 1):
        u = pulse(h * np.array([n - 1, n]), frequency)
        x = (E @ np.r_[x, u[0], (u[1] - u[0]) / h])[:size]
        if n % parts == 0:
            rows.append(C @ x + D[:, 0] * u[1])
    return np.array(rows)


def test_steady_rotation() -> None:
    """The torque of a motor on a blade in steady rotation, against the reduced body."""
    model, body = blade()
    reduced = mbd.reduce(model, interfaces=ends(0.1, 0.6, ("root",)), num_modes=20)
    axis = (0, 0.6, 0.8)
    results = []
    for part in (body, mbd.FlexibleBody("blade", reduced.body, damping_ratio=0.0)):
        system = on_a_hub(part, axis, None)
        motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
        brake = mbd.JointLoad("brake", "pin", "rotation", lambda t, x, v: -0.5 * (v - 3.0))
        system = mbd.System(system.bodies, system.joints, loads=[motor, brake])
        state = mbd.equilibrium(system, spin=3.0 * np.array(axis))
        outputs = ["pin.rotation_rate", "root.moment.z", "root.force.y"]
        results.append(
            mbd.linearize(
                system, state, axes="body", inputs=["motor"], outputs=outputs, num_modes=4
            )
        )
        if part is body:
            with pytest.raises(SteadyError):
                mbd.linearize(
                    system, state, inputs=["motor"], outputs=["hub.velocity.x"], num_modes=4
                )
    frequencies = [0.05, 0.4, 3.0]
    of_mesh, of_modes = (result.response(frequencies) for result in results)
    sizes = np.abs(of_modes).max(axis=0)
    assert (np.abs(of_mesh - of_modes) < 0.02 * sizes).all()
