"""Loads of mesh bodies: pressures, tractions, forces at points, temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem, la
from dolfinx import mesh as dmesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.forms import Material, Temperature
from dolfinx_mbd.structures.mesh_bodies import BodyForce, MeshBody, PointForce, Pressure, Traction
from tests.structures.mesh_bodies.models import RUBBER, box, ends

SOFT = Material(1e6, 0.3, 1200.0, thermal_expansion=1e-4)


def block(loads: Any, kind: str = "tetrahedron", **options: Any) -> MeshBody:
    """Return a short bar with an interface at its left end and loads."""
    mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1), kind)
    model = ElasticModel(mesh, SOFT, facet_tags=tags, prestress=options.pop("prestress", None))
    return MeshBody("bar", model, ends(0.0, 0.5, ("left",)), loads=loads, **options)


def clamped(body: MeshBody, gravity: Any = (0, 0, 0)) -> mbd.System:
    """Return a system in which the left end of a body is fixed."""
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    return mbd.System([ground, body], [clamp], gravity=gravity)


def some_shape(body: MeshBody, seed: int) -> Any:
    """Return displacements of a strongly deformed and rotated body."""
    rng = np.random.default_rng(seed)
    x = body.nodes
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    G = Q * np.sign(np.linalg.det(Q)) @ (np.eye(3) + 0.2 * rng.normal(size=(3, 3)))
    return x @ G.T - x + 0.01 * rng.normal(size=x.shape)


@pytest.mark.parametrize("kind", ["tetrahedron", "hexahedron"])
def test_pressure_is_the_gradient_of_the_enclosed_volume(kind: str) -> None:
    """A pressure on the whole surface has the potential p V; its tangent is symmetric."""
    mesh, _ = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1), kind)
    mesh.topology.create_connectivity(2, 3)
    skin = dmesh.exterior_facet_indices(mesh.topology)
    model = ElasticModel(mesh, SOFT)
    body = MeshBody("bar", model, loads={"gas": Pressure(skin, lambda t: 3e4 * t)})
    u, forces = some_shape(body, 5), body.forces
    function = fem.Function(model.displacements)
    forces.nodes.assign(function, u)
    dx = ufl.dx(metadata={"quadrature_degree": 8})
    v, w = ufl.TestFunction(model.displacements), ufl.TrialFunction(model.displacements)
    volume = ufl.det(ufl.Identity(3) + ufl.grad(function)) * dx
    gradient = ufl.derivative(volume, function, v)
    b = fem.assemble_vector(fem.form(gradient))
    b.scatter_reverse(la.InsertMode.add)
    expected = forces.nodes.gathered(b.array[: 3 * len(forces.nodes.owned)])
    forces.set_state(u, 0 * u)
    pressed = forces.loads.forces(2.0)
    assert np.allclose(pressed, -6e4 * expected, atol=1e-12 * 6e4)
    assert np.abs(pressed.sum(axis=0)).max() < 1e-10 * np.abs(pressed).sum()
    moment = np.cross(body.nodes + u, pressed).sum(axis=0)
    assert np.abs(moment).max() < 1e-10 * np.abs(pressed).sum()
    # the tangent is the second derivative of the volume
    with_load = forces.matrix(0.0, 0.0)
    forces.loads.pressures = np.zeros(1)
    without = forces.matrix(0.0, 0.0)
    columns = np.random.default_rng(6).normal(size=(3 * len(forces.nodes.owned), 2))
    second = fem.petsc.assemble_matrix(fem.form(ufl.derivative(gradient, function, w)))
    second.assemble()
    change = multiply(with_load, columns) - multiply(without, columns)
    expected = 6e4 * multiply(second, columns)
    largest = mesh.comm.allreduce(np.abs(expected).max(initial=0.0), op=MPI.MAX)
    assert np.allclose(change, expected, atol=1e-9 * largest)
    for matrix in (with_load, without, second):
        matrix.destroy()


def test_dead_loads_against_closed_forms() -> None:
    """Resultants, moments and work of tractions, body forces and forces at points."""
    loads = {
        "wind": Traction(2, lambda t: (0, 100 * t, 50)),
        "magnet": BodyForce((0, 0, 1e3)),
        "probe": PointForce((0.5, 0.03, -0.04), lambda t: (1.0, -2.0, 3.0 * t)),
    }
    body = block(loads)
    u = some_shape(body, 7)
    body.forces.set_state(u, 0 * u)
    total = body.forces.loads.forces(2.0)
    area, volume = 0.04, 0.02
    expected = area * np.array([0, 200, 50]) + volume * np.array([0, 0, 1e3]) + [1, -2, 6]
    assert np.allclose(total.sum(axis=0), expected, rtol=1e-12)
    moment = np.cross(body.nodes, total).sum(axis=0)
    expected = np.cross([0.5, 0, 0], area * np.array([0, 200, 50]))
    expected = expected + np.cross([0.25, 0, 0], volume * np.array([0, 0, 1e3]))
    expected = expected + np.cross([0.5, 0.03, -0.04], [1.0, -2.0, 6.0])
    assert np.allclose(moment, expected, rtol=1e-11, atol=1e-12)
    mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1), "tetrahedron")
    model = ElasticModel(mesh, SOFT, facet_tags=tags)
    x = ufl.SpatialCoordinate(mesh)[0]
    graded = MeshBody("bar", model, loads={"ramp": BodyForce((0, 0, 1.0), distribution=x)})
    total = graded.forces.loads.forces(0.0)
    assert np.allclose(total.sum(axis=0), [0, 0, 0.04 * 0.5**2 / 2], atol=1e-15)
    assert np.isclose(graded.nodes[:, 0] @ total[:, 2], 0.04 * 0.5**3 / 3)  # linear in x


def test_pressed_bar_shortens_and_follows_its_surface() -> None:
    """Uniaxial pressure on the end: the bar turns with its clamp, and the stress with it."""
    lengths = []
    for turn in (0.0, 1.2):
        mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1))
        model = ElasticModel(mesh, RUBBER, facet_tags=tags)
        loads = {"gas": Pressure(2, 2e6)}
        rotation = (np.cos(turn / 2), 0, 0, np.sin(turn / 2))
        bar = MeshBody("bar", model, ends(0.0, 0.5, ("left",)), loads=loads, rotation=rotation)
        c, s = np.cos(turn), np.sin(turn)
        axes = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        ground = mbd.Ground({"origin": mbd.Frame((0, 0, 0), axes)})
        clamp = mbd.fixed("clamp", ground.frame("origin"), bar.frame("left"))
        state = mbd.equilibrium(mbd.System([ground, bar], [clamp]))
        tip = bar.nodal_of(state.q)[0] + bar.nodes
        end = tip[np.isclose(bar.nodes[:, 0], 0.5)].mean(axis=0)
        lengths.append(end @ axes[:, 0])
        assert np.abs(end @ axes[:, 1:]).max() < 1e-10
        # in the axes of the ground, at the tolerance of the equilibrium
        assert np.allclose(state.lam[:3], [-2e6 * 0.04, 0, 0], atol=1e-8 * 8e4)
    # nu = 0: P = stretch * S, with S = E (stretch² - 1)/2 and the nominal stress P = -p
    roots = np.roots([5e7 / 2, 0, -5e7 / 2, 2e6])
    stretch = roots[(roots.real > 0.8) & (abs(roots.imag) < 1e-9)].real.max()
    assert np.allclose(lengths, 0.5 * stretch, rtol=1e-10)


def test_loads_move_a_body_as_newton_says() -> None:
    """Free flight under a traction and a force at a point: the momenta are the impulses."""
    mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1))
    model = ElasticModel(mesh, SOFT, facet_tags=tags)
    loads = {"end": Traction(2, lambda t: (0, 500 * t, 0)), "tip": PointForce((0, 0, 0), (4, 0, 1))}
    body = MeshBody("bar", model, loads=loads)
    run = mbd.simulate(mbd.System([body]), t_end=0.05, dt=5e-4)
    t = run.time[-1]
    expected = np.array([4 * t, 0.04 * 500 * t * t / 2, t])
    assert np.allclose(run.momenta()[-1, :3], expected, rtol=1e-3)


def test_free_thermal_expansion_is_without_stress() -> None:
    """A heated bar expands by √(1 + 2 α ΔT) in each direction; a held bar has the stress E α ΔT."""
    rise = 80.0
    mesh, tags = box((0, -0.1, -0.1), (0.5, 0.1, 0.1), (2, 1, 1))
    material = Material(1e6, 0.0, 1200.0, thermal_expansion=1e-4)
    model = ElasticModel(mesh, material, facet_tags=tags, prestress=Temperature(rise))
    free = MeshBody("bar", model, ends(0.0, 0.5, ("left",)))
    stretch = np.sqrt(1 + 2e-4 * rise)
    u = (stretch - 1) * free.nodes
    free.forces.set_state(u, 0 * u)
    assert np.abs(free.forces.elastic()).max() < 1e-9
    held = MeshBody("bar", model, ends(0.0, 0.5))
    ground = mbd.Ground({"origin": mbd.Frame(), "end": mbd.Frame((0.5, 0, 0))})
    joints = [
        mbd.fixed("left", ground.frame("origin"), held.frame("left")),
        mbd.fixed("right", ground.frame("end"), held.frame("right")),
    ]
    state = mbd.equilibrium(mbd.System([ground, held], joints))
    # the force of the held bar of the same size: E α ΔT A, without lateral strain (nu = 0) but for
    # the clamped ends, whose effect is of the second order of the thermal strain
    assert np.allclose(np.abs(state.lam[[0, 6]]), 0.04 * 1e6 * 1e-4 * rise, rtol=0.02)


def test_errors_of_loads_name_cause_and_cure() -> None:
    for loads, argument in (
        ({"gas": Pressure(7, 1.0)}, "interfaces"),
        ({"probe": PointForce((2.0, 0, 0), (1, 0, 0))}, ""),
        ({"gas": 3.0}, "load 'gas'"),
    ):
        with pytest.raises(InputError) as error:
            block(loads)
        assert not argument or error.value.argument == argument
    with pytest.raises(InputError) as error:
        Traction(1, (1.0, 2.0))
    assert error.value.argument == "value"
    body = block({"gas": Pressure(2, lambda t: np.nan)})
    with pytest.raises(InputError, match="'gas' at t = "):
        mbd.simulate(clamped(body), t_end=1e-3, dt=1e-3)
    with pytest.raises(InputError, match="prestress") as error:
        block({}, prestress=Temperature(10.0), energy=lambda u: ufl.inner(ufl.grad(u), ufl.grad(u)))
    assert error.value.argument == "energy"
