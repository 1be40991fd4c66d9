"""Steps of mesh bodies that fail: halved, then an error that names the cell and the time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.stepping import halved_steps
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.forms import Material
from dolfinx_mbd.structures.mesh_bodies import MeshBody, Traction
from tests.structures.mesh_bodies.models import box, ends

SOFT = Material(1e5, 0.3, 1000.0)


def hit(**options: Any) -> tuple[MeshBody, mbd.System]:
    """Return a clamped block whose free end gets a force within a short time."""
    mesh, tags = box((0, -0.1, -0.1), (0.4, 0.1, 0.1), (3, 2, 2), "tetrahedron")
    model = ElasticModel(mesh, SOFT, facet_tags=tags, degree=1)
    body = MeshBody("pad", model, ends(0.0, 0.4, ("left",)), **options)
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    return body, mbd.System([ground, body], [clamp])


def press(size: float) -> dict[str, Any]:
    """Return a traction that compresses the block from t = 0 on."""
    return {"press": Traction(2, (-size, 0, 0))}


def test_a_step_that_fails_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long step under a sudden strong load fails; two or more halves reach its end."""
    body, system = hit(energy="neo-hookean", loads=press(2e4))
    with monkeypatch.context() as change:
        change.setattr(halved_steps, "_STEP_HALVINGS", 0)
        with pytest.raises(mbd.dynamics.StepError) as error:
            mbd.simulate(system, t_end=0.06, dt=0.01)
    run = mbd.simulate(system, t_end=0.06, dt=0.01)
    assert np.allclose(run.time, np.linspace(0, 0.06, 7))
    fine = mbd.simulate(system, t_end=0.06, dt=0.002)
    tips = [body.motion(r).position([(0.4, 0, 0)])[-1, 0, 0] for r in (run, fine)]
    assert abs(tips[0] - tips[1]) < 0.1 * abs(0.4 - tips[1])
    assert error.value.time > 0


@pytest.mark.parametrize("energy", ["saint-venant-kirchhoff", "neo-hookean"])
def test_inverted_cell_is_named(energy: str) -> None:
    """A driver pushes one end through the other; the error names body, cell and time."""
    mesh, tags = box((0, -0.1, -0.1), (0.4, 0.1, 0.1), (3, 2, 2), "tetrahedron")
    model = ElasticModel(mesh, SOFT, facet_tags=tags, degree=1)
    body = MeshBody("pad", model, ends(0.0, 0.4), energy=energy)
    along_x = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])  # z along x
    ground = mbd.Ground({"origin": mbd.Frame(), "end": mbd.Frame((0.4, 0, 0), along_x)})
    frames = {"guide": mbd.Frame((0, 0, 0), along_x), "centre": mbd.Frame()}
    plate = mbd.RigidBody("plate", 1.0, [0.01] * 3, frames=frames, position=(0.4, 0, 0))
    joints = [
        mbd.fixed("clamp", ground.frame("origin"), body.frame("left")),
        mbd.prismatic("guide", ground.frame("end"), plate.frame("guide")),
        mbd.fixed("bond", plate.frame("centre"), body.frame("right")),
    ]
    ram = mbd.Driver("ram", "guide", lambda t: (-200 * t * t, -400 * t, -400.0))
    system = mbd.System([ground, body, plate], joints, drivers=[ram])
    with pytest.raises(mbd.dynamics.StepError) as error:
        mbd.simulate(system, t_end=0.05, dt=0.005)
    assert 0 < error.value.time <= 0.05
    assert "body 'pad': its cell at (" in str(error.value)
    assert "is inverted" in str(error.value)
    solution = error.value.solution
    assert solution is not None


def test_steps_after_a_halved_step_continue_bitwise() -> None:
    body, system = hit(energy="neo-hookean", loads=press(2e4))
    whole = mbd.simulate(system, t_end=0.15, dt=0.03)
    simulator = mbd.Simulator(system, dt=0.03, t_end=0.15)
    simulator.advance()
    simulator.advance()
    saved = simulator._snapshot()
    continued = mbd.Simulator(system, dt=0.03, t_end=0.15)
    continued._return_to(saved)
    while not continued.steps.done:
        continued.advance()
    assert np.array_equal(continued.state.q, whole.final_state.q)


def test_nodes_converge_beside_a_frame_at_rest() -> None:
    """The corrections of a clamped frame vanish, but the nodes still need iterations."""
    body, system = hit(energy="neo-hookean", loads=press(1e4))
    runs = [mbd.simulate(system, t_end=0.05, dt=0.005, tolerance=tol) for tol in (1e-8, 1e-11)]
    tips = [body.motion(run).position([(0.4, 0.05, 0.05)])[-1, 0] for run in runs]
    assert np.abs(tips[0] - [0.4, 0.05, 0.05]).max() > 0.03
    assert np.abs(tips[0] - tips[1]).max() < 1e-8


def test_rotations_do_not_invert_cells() -> None:
    body, _ = hit()
    for turn in (1.0, 3.0):
        pose = np.array([0.0, 0, 0, np.cos(turn / 2), np.sin(turn / 2), 0, 0])
        q, _ = body.placed(pose, np.zeros(6))
        body.forces.set_state(*body.nodal_of(q)[:2])
        assert body.forces.inverted_cell() is None
    u = np.zeros_like(body.nodes)
    corner = np.argmin(np.linalg.norm(body.nodes - [0.4, 0.1, 0.1], axis=1))
    u[corner] = [-0.3, 0, 0]
    body.forces.set_state(u, 0 * u)
    place = body.forces.inverted_cell()
    assert place is not None
    assert np.linalg.norm(place - body.nodes[corner]) < 0.2


def test_errors_of_loads_are_not_halved() -> None:
    loads = {"gas": Traction(2, lambda t: (np.nan, 0, 0))}
    _, system = hit(loads=loads)
    with pytest.raises(InputError, match="'gas'"):
        mbd.simulate(system, t_end=0.01, dt=0.01)


def test_many_halvings_give_one_warning() -> None:
    """The warning has their number and a step; a run with short steps gives none."""
    body, system = hit(energy="neo-hookean", loads=press(2e4))
    simulator = mbd.Simulator(system, dt=0.03, t_end=0.45)
    while not simulator.steps.done:
        simulator.advance()
    count = simulator.stepper.halvings
    assert count > 10
    with pytest.warns(mbd.errors.AccuracyWarning, match="halved") as record:
        mbd.simulate(system, t_end=0.45, dt=0.03)
    assert len(record) == 1
    warning: Any = record[0].message
    assert (warning.quantity, warning.value) == ("halved steps", count)
    assert "below 0.015 s" in str(warning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbd.simulate(system, t_end=0.03, dt=0.002)


def test_viscous_rotation_is_not_halved() -> None:
    """The matrix contains the derivatives of viscous forces, so that iterations converge fast."""
    mesh, tags = box((0, -0.02, -0.02), (1, 0.02, 0.02), (8, 1, 1))
    model = ElasticModel(mesh, Material(5e7, 0.0, 1100.0), facet_tags=tags)
    body = MeshBody("bar", model, omega=(0, 0, 2.0), viscosity=0.01)
    simulator = mbd.Simulator(mbd.System([body]), dt=2e-3, t_end=0.04)
    simulator.advance()
    solver = simulator.stepper._internal._parts[0][0]
    solver.factorize_at(simulator.state.q)  # with the velocities of the rotation
    while not simulator.steps.done:
        simulator.advance()
    assert simulator.stepper.halvings == 0
    assert simulator.stepper.iterations < 20 * 8  # 20 steps


def test_the_number_of_halvings_is_restored() -> None:
    _, system = hit(energy="neo-hookean", loads=press(2e4))
    simulator = mbd.Simulator(system, dt=0.03)
    for _ in range(2):
        simulator.step()
    saved, count = simulator.save(), simulator.stepper.halvings
    assert count > 0
    simulator.step()
    restored = mbd.Simulator(system, dt=0.03)
    restored.restore(saved)
    assert restored.stepper.halvings == count
