"""Mesh bodies in steady rotation: equilibria and vibrations with large deformation, case W8.

W8 and W11 are cases of the list in `models.py`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import gmsh
import numpy as np
import pytest
import ufl
from basix.ufl import element
from dolfinx import mesh as dmesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.compat import gmsh_io
from dolfinx_mbd.forms import Material
from dolfinx_mbd.structures.mesh_bodies import MeshBody, vibration_modes
from dolfinx_mbd.structures.rotating import rotating_structure, spinning_equilibrium
from tests.structures.mesh_bodies.models import box, ends

SOFT = Material(1e6, 0.3, 1000.0)
ROOT, LENGTH = 0.1, 0.5  # m


def blade(cells: tuple[int, int, int] = (5, 1, 1), **options: Any) -> tuple[ElasticModel, MeshBody]:
    """Return a soft blade along x whose root is at a hub."""
    mesh, tags = box((ROOT, -0.02, -0.03), (ROOT + LENGTH, 0.02, 0.03), cells)
    model = ElasticModel(mesh, SOFT, facet_tags=tags)
    specs = ends(ROOT, ROOT + LENGTH, ("root",))
    # exact for this energy and elements of degree 2
    return model, MeshBody("blade", model, specs, quadrature_degree=8, **options)


def on_a_hub(body: Any, axis: Any, speed: float | None, **options: Any) -> mbd.System:
    """Return a blade on a hub that rotates about an axis, with a motor if it has a speed."""
    ground = mbd.Ground({"pin": mbd.Frame(axes=axis)})
    frames = {"pin": mbd.Frame(axes=axis), "root": mbd.Frame((ROOT, 0, 0))}
    hub = mbd.RigidBody("hub", 0.3, [1e-3, 2e-3, 3e-3], frames=frames)
    joints = [
        mbd.revolute("pin", ground.frame("pin"), hub.frame("pin")),
        mbd.fixed("root", hub.frame("root"), body.frame("root")),
    ]
    motor = [] if speed is None else [mbd.Driver("motor", "pin", mbd.constant_speed(speed))]
    return mbd.System([ground, hub, body], joints, drivers=motor, **options)


@cache
def blade_at_rest() -> float:
    """Return the lowest frequency of the blade that does not rotate, Hz."""
    system = on_a_hub(blade()[1], (0, 0, 1), 0.0)
    return float(vibration_modes(system, mbd.equilibrium(system), 1).frequencies[0])


@pytest.mark.parametrize(
    ("axis", "speed"),
    [
        ((0, 0, 1), 40.0),
        ((0, 0.6, 0.8), 40.0),
        *(
            pytest.param(axis, speed, marks=pytest.mark.slow)
            for axis, speed in (
                ((0, 1, 0), 40.0), ((0, 0, 1), 2.0), ((0, 1, 0), 2.0), ((0, 0.6, 0.8), 2.0)
            )
        ),
    ],
)  # fmt: skip
def test_blade_equals_the_analysis_of_rotating_structures(axis: Any, speed: float) -> None:
    """At 40 rad/s the blade is over 10 % longer; `spinning_equilibrium` has matrices of a mesh."""
    model, body = blade()
    system = on_a_hub(body, axis, speed)
    state = mbd.equilibrium(system, spin=speed * np.array(axis))
    structure = rotating_structure(model, held={"root": 1}, axis=axis)
    reference = spinning_equilibrium(
        structure, lambda u: forms.saint_venant_kirchhoff(u, SOFT), speed, steps=4
    )
    count = 3 * len(body.forces.nodes.owned)
    u = body.forces.nodes.gathered(reference.displacement.x.array[:count])
    nodal = body.nodal_of(state.q[system.q_slices[2]])
    assert np.abs(nodal[0] - u).max() < 1e-8 * np.abs(u).max()
    x, spin = body.nodes + u, speed * np.array(axis)
    assert np.allclose(nodal[1], np.cross(spin, x), atol=1e-8 * speed)
    assert np.allclose(nodal[2], np.cross(spin, np.cross(spin, x)), atol=1e-8 * speed**2)
    modes = vibration_modes(system, state, 5)
    expected = reference.modes(5).frequencies
    assert np.allclose(modes.frequencies, expected, rtol=1e-7)
    assert np.abs(modes.damping_ratios).max() < 1e-9
    if speed > 20:
        assert np.ptp(nodal[0, :, 0]) > 0.1 * LENGTH
        assert modes.frequencies[0] > 1.05 * blade_at_rest()
    reference.destroy()
    structure.destroy()


def test_free_rotation_equals_that_with_a_motor() -> None:
    """Without a motor the angle is free; the motor of a steady rotation has no torque."""
    body = blade(viscosity=1e-3)[1]
    states = [
        mbd.equilibrium(on_a_hub(body, (0, 0, 1), speed), spin=(0, 0, 20.0))
        for speed in (20.0, None)
    ]
    assert np.allclose(states[0].q, states[1].q, atol=1e-8 * 400)
    assert np.allclose(states[0].lam[: len(states[1].lam)], states[1].lam, atol=1e-5)
    assert abs(states[0].lam[-1]) < 1e-6


def test_reaction_is_the_centrifugal_force() -> None:
    body = blade()[1]
    system = on_a_hub(body, (0, 0, 1), 20.0, gravity=(0, 0, -9.81))
    state = mbd.equilibrium(system, spin=(0, 0, 20.0))
    u = body.nodal_of(state.q[system.q_slices[2]])[0]
    centre = body.forces.lumped @ (body.nodes + u)
    force = mbd.results.Solution(system, [state]).joint("root").force[0]
    expected = np.array([-400 * centre[0], -400 * centre[1], 9.81 * body.typical_mass])
    assert np.allclose(np.abs(force), np.abs(expected), atol=1e-6 * np.abs(expected).max())


def test_steady_rotation_continues_in_a_simulation() -> None:
    """A run from the equilibrium turns without vibration."""
    body = blade()[1]
    system = on_a_hub(body, (0, 0, 1), 20.0)
    state = mbd.equilibrium(system, spin=(0, 0, 20.0))
    run = mbd.simulate(system, t_end=0.02, dt=1e-3, start=state)
    energy = run.energies()
    assert np.ptp(energy.elastic) < 1e-3 * energy.elastic[0]


def test_states_that_do_not_rotate_steadily() -> None:
    body = blade()[1]
    spin = (0, 0, 10.0)
    message = r"nodes of a body are left with 0\.\d+ of their forces unbalanced\. Gravity across"
    with pytest.raises(EquilibriumError, match=message):
        mbd.equilibrium(on_a_hub(body, (0, 0, 1), 10.0, gravity=(0, -9.81, 0)), spin=spin)
    with pytest.raises(InputError) as error:  # the motor has another speed
        mbd.equilibrium(on_a_hub(body, (0, 0, 1), 9.0), spin=spin)
    for part in (MeshBody("blade", blade()[0]), blade(mass_damping=1.0)[1]):
        system = mbd.System([part]) if not part.frame_names else on_a_hub(part, (0, 0, 1), None)
        with pytest.raises(InputError) as error:
            mbd.equilibrium(system, spin=spin)
        assert error.value.argument == "spin"
    system = on_a_hub(body, (0, 0, 1), None)
    state = mbd.equilibrium(system, spin=spin)
    body.nodal_of(state.q[system.q_slices[2]])[1, 3] += 1.0
    with pytest.raises(InputError) as error:
        vibration_modes(system, state)
    assert error.value.argument == "state"


def ring(count: int) -> tuple[dmesh.Mesh, Any]:
    """Return a thin ring about z with the mean radius 1 m, and its outer facets."""
    angle = 2 * np.pi * np.arange(count) / count
    corners = np.array([(r, z) for z in (-0.05, 0.05) for r in (0.95, 1.05)])
    x = np.array([[r * np.cos(a), r * np.sin(a), z] for a in angle for r, z in corners])
    corner = 4 * np.arange(count)
    next_corner = np.roll(corner, -1)
    cells = np.stack(
        [k + i for i in (0, 2) for j in (0, 1) for k in (corner + j, next_corner + j)], axis=1
    )
    if MPI.COMM_WORLD.rank:
        cells, x = cells[:0], x[:0]
    domain = ufl.Mesh(element("Lagrange", "hexahedron", 1, shape=(3,)))
    mesh = dmesh.create_mesh(MPI.COMM_WORLD, cells=cells, x=x, e=domain)
    mesh.topology.create_connectivity(2, 3)
    outer = dmesh.locate_entities_boundary(mesh, 2, lambda x: np.hypot(x[0], x[1]) > 1.0)
    return mesh, outer


@pytest.mark.parametrize("share", [0.1, pytest.param(0.3, marks=pytest.mark.slow)])
def test_thin_ring(share: float) -> None:
    """Case W11: λ³ = 1/(1 − ρω²R²/μ) for the stretch λ of a thin incompressible ring.

    The radius of the polygon is that whose mass has the radius of gyration 1.
    """
    mesh, outer = ring(24)
    rubber = Material(3e6, 0.4999, 1000.0)
    spec = mbd.InterfaceSpec(outer, point=(0, 0, 0), axes=np.eye(3), kind="averaged")
    body = MeshBody("ring", mesh, {"rim": spec}, material=rubber, energy="nearly-incompressible")
    ground = mbd.Ground({"pin": mbd.Frame()})
    system = mbd.System(
        [ground, body], [mbd.spherical("pin", ground.frame("pin"), body.frame("rim"))]
    )
    X = body.nodes
    square = body.forces.lumped @ (X[:, 0] ** 2 + X[:, 1] ** 2) / body.typical_mass
    speed = np.sqrt(share * rubber.shear / rubber.density / square)
    state = mbd.equilibrium(system, spin=(0, 0, speed))
    x = X + body.nodal_of(state.q)[0]
    stretched = body.forces.lumped @ (x[:, 0] ** 2 + x[:, 1] ** 2) / body.typical_mass
    assert np.isclose(np.sqrt(stretched / square), (1 - share) ** (-1 / 3), rtol=2e-3)


def top(size: float) -> MeshBody:
    """Return the top of case W8: a disc on a thin shaft, whose foot is at the origin."""
    gmsh.initialize()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        model, occ = gmsh.model, gmsh.model.occ
        if MPI.COMM_WORLD.rank == 0:
            # z, height and radius of shaft, disc and shaft, m
            parts = [(0.0, 0.035, 0.005), (0.035, 0.03, 0.14), (0.065, 0.035, 0.005)]
            solids = [(3, occ.addCylinder(0, 0, z, 0, 0, h, r)) for z, h, r in parts]
            occ.fragment(solids[:1], solids[1:])
            occ.synchronize()
            model.addPhysicalGroup(3, [tag for _, tag in model.getEntities(3)], 1)
            near = -0.006, -0.006, -1e-6, 0.006, 0.006, 1e-6
            foot = [tag for _, tag in model.getEntitiesInBoundingBox(*near, 2)]
            model.addPhysicalGroup(2, foot, 1)
            gmsh.option.setNumber("Mesh.MeshSizeMax", size)
            gmsh.option.setNumber("Mesh.MeshSizeMin", 0.004)
            shaft = model.getEntitiesInBoundingBox(-0.006, -0.006, -1, 0.006, 0.006, 1, 0)
            model.mesh.setSize(shaft, 0.005)
            model.mesh.generate(3)
            model.mesh.setOrder(2)
            model.mesh.optimize("HighOrder")
        mesh, _, tags = gmsh_io.model_to_mesh(model, MPI.COMM_WORLD, 0, gdim=3)[:3]
    finally:
        gmsh.finalize()
    steel = ElasticModel(mesh, Material(2.1e11, 0.3, 7850.0), facet_tags=tags, degree=2)
    specs = {"foot": mbd.InterfaceSpec(1, point=(0, 0, 0), axes=np.eye(3))}
    return MeshBody("top", steel, specs)


@pytest.mark.slow
@pytest.mark.parametrize("turns", [3.5, 5.0, 8.0])
def test_sleeping_top(turns: float) -> None:
    """Case W8 at 5 Hz against MBDyn within 2 %, and reduced bodies at all speeds."""
    body = top(0.03)
    ground = mbd.Ground({"origin": mbd.Frame()})
    spin = (0, 0, 2 * np.pi * turns)

    def standing(part: Any) -> mbd.System:
        pin = mbd.spherical("pin", ground.frame("origin"), part.frame("foot"))
        return mbd.System([ground, part], [pin], gravity=(0, 0, -9.81))

    system = standing(body)
    modes = vibration_modes(system, mbd.equilibrium(system, spin=spin), 4)
    assert modes.frequencies[0] == 0.0  # the rotation about the axis
    if turns == 5.0:
        assert np.allclose(modes.frequencies[1:3], (1.27458549, 4.73428636), rtol=0.02)
    specs = {"foot": mbd.InterfaceSpec(1, point=(0, 0, 0), axes=np.eye(3))}
    reduced = mbd.reduce(body.elastic_model, interfaces=specs, num_modes=12).body
    of_modes = standing(mbd.FlexibleBody("top", reduced, damping_ratio=0.0))
    expected = mbd.linearize(of_modes, mbd.equilibrium(of_modes, spin=spin)).frequencies
    assert np.allclose(modes.frequencies[1:], expected[1:4], rtol=1e-5)
