"""Loads of mesh bodies as inputs of linearizations and simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses.linearization import SteadyError
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.structures.mesh_bodies import BodyForce, MeshBody, PointForce, Pressure, Traction
from tests.structures.mesh_bodies.models import ends
from tests.structures.mesh_bodies.test_inputs_and_outputs import linear_response, loaded, pulse
from tests.structures.mesh_bodies.test_linearize import SOFT, bar
from tests.structures.mesh_bodies.test_steady_spin import blade, on_a_hub

LENGTH = 0.4
NAMES = ["bar.air", "bar.wind.y", "bar.magnet.z", "bar.probe.x"]


def top(model: Any) -> Any:
    """Return the facets at the largest z."""
    highest = model.mesh.geometry.x[:, 2].max(initial=-np.inf)
    z = model.mesh.comm.allreduce(float(highest), op=MPI.MAX)
    return mbd.fem.pick(model.mesh, plane=((0, 0, z), (0, 0, 1)))


def loads_of(model: Any) -> dict[str, Any]:
    """Return one load of each kind; the pressure is zero."""
    return {
        "air": Pressure(top(model), 0.0),
        "wind": Traction(top(model), (0.0, 3.0, 1.0)),
        "magnet": BodyForce((0.0, 0.0, 20.0)),
        "probe": PointForce((0.3, 0.0, 0.0), (0.01, 0.0, 0.02)),
    }


def bent(cells: tuple[int, int, int] = (4, 1, 1)) -> tuple[MeshBody, mbd.System, mbd.State]:
    """Return a soft bar that a force and its loads bend strongly, with its equilibrium."""
    model = bar(LENGTH, cells, SOFT)
    options: dict[str, Any] = {"energy": "neo-hookean", "viscosity": 1e-4}
    body = MeshBody("bar", model, ends(0.0, LENGTH), loads=loads_of(model), **options)
    system = loaded(body, LENGTH, (-0.2, 0.3, 0.4), gravity=(0, 0, -4.0))
    return body, system, mbd.equilibrium(system)


def outputs_of(body: MeshBody) -> dict[str, Any]:
    """Return positions of the middle, and reactions."""

    def component(i: int) -> Any:
        return lambda run: body.motion(run).position([(0.2, 0.0, 0.0)])[:, 0, i]

    outputs: dict[str, Any] = {f"middle.{i}": component(i) for i in range(3)}
    outputs["force"] = lambda run: run.joint("clamp").force[:, 1]
    outputs["moment"] = lambda run: run.joint("clamp").moment[:, 1]
    outputs["bolt"] = lambda run: run.joint("bolt").force[:, 2]
    return outputs


def test_static_response_is_the_difference_of_equilibria() -> None:
    """The loads have different units, and responses of different magnitude."""
    body, system, state = bent()
    outputs = outputs_of(body)
    result = mbd.linearize(system, state, inputs=NAMES, outputs=outputs, num_modes=6)
    gains = result.response([0.0])[0].real
    exact = np.zeros_like(gains)
    for k, (name, h) in enumerate(zip(NAMES, (0.05, 0.02, 4.0, 1e-4), strict=True)):
        for sign in (1, -1):
            inputs = Inputs(system, NAMES)
            value = dict(zip(NAMES, inputs.values, strict=True))[name]
            inputs.put(inputs.merged({name: value + sign * h}))
            run = mbd.results.Solution(inputs.system, [mbd.equilibrium(inputs.system)])
            values = np.array([float(output(run)[0]) for output in outputs.values()])
            exact[:, k] += sign * values / (2 * h)
    assert np.allclose(gains, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max(axis=0))


def test_traction_on_an_interface_is_a_force_at_its_frame() -> None:
    """The gains are equal at all frequencies, because the resultant acts at the centre."""
    model = bar(LENGTH, (3, 1, 2), SOFT)
    right = mbd.fem.pick(model.mesh, plane=((LENGTH, 0, 0), (1, 0, 0)))
    unit = fem.Constant(model.mesh, 1.0)
    x = ufl.SpatialCoordinate(model.mesh)[0]
    form = fem.form(unit * ufl.conditional(ufl.gt(x, LENGTH - 1e-9), 1.0, 0.0) * ufl.ds)
    area = model.mesh.comm.allreduce(fem.assemble_scalar(form))
    end = {"end": Traction(right, (0.0, 0.0, 0.0))}
    body = MeshBody("bar", model, ends(0.0, LENGTH), loads=end, viscosity=2e-3)
    system = loaded(body, LENGTH)
    push = mbd.force("push", body.frame("right"), (0, 0, 0))
    system = mbd.System(system.bodies, system.joints, loads=[*system.loads[:1], push])
    outputs = ["weight.position.z", "weight.acceleration.y", "clamp.force.z", "bolt.moment.y"]
    inputs = [f"{name}.{x}" for name in ("push", "bar.end") for x in "xyz"]
    state = mbd.equilibrium(system)
    result = mbd.linearize(system, state, inputs=inputs, outputs=outputs, num_modes=5)
    response = result.response(result.frequencies[0] * np.array([0.0, 0.7, 1.0, 3.0]))
    force, traction = response[:, :, :3], response[:, :, 3:] / area
    sizes = np.abs(force).max(axis=(0, 2), keepdims=True)
    assert (np.abs(force - traction) < 1e-7 * sizes).all()


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("bar.air", 6e3),
        pytest.param("bar.wind.y", 1e4, marks=pytest.mark.slow),
        pytest.param("bar.probe.x", 10.0, marks=pytest.mark.slow),
    ],
)
def test_response_equals_a_simulation(name: str, size: float) -> None:
    """A small smooth pulse of a load of the bent bar; the error of a run is of order dt²."""
    body, system, state = bent()
    outputs = outputs_of(body)
    result = mbd.linearize(system, state, inputs=[name], outputs=outputs, num_modes=16)
    errors = []
    for dt in (1e-3, 5e-4):
        times = dt * np.arange(1, round(0.03 / dt) + 1)
        simulator = mbd.Simulator(system, dt=dt, inputs=[name], outputs=outputs, start=state)
        base, rows = np.array([*simulator.outputs.values()]), []
        start = simulator.inputs[name]
        for t in times:
            simulator.step({name: start + size * pulse(t, 15.0)})
            rows.append(np.array([*simulator.outputs.values()]) - base)
        exact = size * linear_response(result.matrices, times, 15.0)
        errors.append(np.abs(np.array(rows) - exact).max(axis=0) / np.abs(exact).max(axis=0))
    assert (errors[1] < 0.01).all()
    assert (errors[1] < 0.35 * errors[0]).all()


def test_names_and_copies() -> None:
    """The system and its bodies do not change; bodies that share a load have inputs of each."""
    body, system, state = bent((2, 1, 1))
    with pytest.raises(InputError, match=r"bar\.wind\.y"):
        Inputs(system, ["bar.gust"])
    inputs = Inputs(system, NAMES)
    assert inputs.values == (0.0, 3.0, 20.0, 0.01)
    assert [*inputs.units.values()] == ["Pa", "Pa", "N/m³", "N"]
    before = body.forces.loads.forces(0.0)
    inputs.put((5.0, 3.0, 20.0, 0.01))
    changed = inputs.system.body("bar")
    assert np.array_equal(body.forces.loads.forces(0.0), before)
    assert not np.allclose(changed.forces.loads.forces(0.0), before)
    assert changed.loads["air"].value == 5.0 and body.loads["air"].value == 0.0
    other = MeshBody("other", body.model, ends(0.0, LENGTH), loads=body.loads)
    both = Inputs(mbd.System([body, other]), ["other.air"])
    both.put((7.0,))
    assert both.system.body("bar").loads["air"].value == 0.0
    assert both.system.body("other").loads["air"].value == 7.0


def test_functions_are_replaced_by_zero() -> None:
    """With zero in place of a function, the state is not in balance; the error names the input."""
    model = bar(LENGTH, (2, 1, 1), SOFT)
    air = {"air": Pressure(top(model), lambda t: 5.0)}
    body = MeshBody("bar", model, ends(0.0, LENGTH), loads=air)
    system = loaded(body, LENGTH)
    state = mbd.equilibrium(system)
    with pytest.raises(SteadyError, match=r"'bar\.air' are functions"):
        mbd.linearize(system, state, inputs=["bar.air"], outputs=["weight.position.z"])


def test_steady_rotation() -> None:
    """A pressure rotates with the blade; a traction does not."""
    model, body = blade()
    face = top(model)
    loads = {"air": Pressure(face, 0.0), "wind": Traction(face, (0.0, 0.0, 0.0))}
    body = MeshBody(
        body.name, model, body.interfaces, energy=body.energy, loads=loads,
        position=body.position, rotation=body.rotation,
    )  # fmt: skip
    axis = (0, 0.6, 0.8)
    system = on_a_hub(body, axis, 3.0)
    state = mbd.equilibrium(system, spin=3.0 * np.array(axis))
    outputs = ["root.moment.y"]
    names = [f"{body.name}.air", f"{body.name}.wind.x"]
    result = mbd.linearize(system, state, inputs=names[:1], outputs=outputs, num_modes=4)
    gain = result.response([0.0])[0, 0, 0].real
    values = []
    for sign in (1, -1):
        inputs = Inputs(system, names[:1])
        inputs.put((sign * 1e-2,))
        changed = mbd.equilibrium(inputs.system, spin=3.0 * np.array(axis))
        run = mbd.results.Solution(inputs.system, [changed])
        values.append(float(run.joint("root").moment[0, 1]))
    assert np.isclose(gain, (values[0] - values[1]) / 2e-2, rtol=1e-3)
    with pytest.raises(SteadyError, match="rotate with the mechanism"):
        mbd.linearize(system, state, inputs=names[1:], outputs=outputs, num_modes=4)
