"""Plane mesh bodies: statics, dynamics and stress, in any plane of space.

W1 and W5 are cases of the list in `models.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import mesh as dmesh
from mpi4py import MPI
from scipy.spatial.transform import Rotation

import dolfinx_mbd as mbd
from dolfinx_mbd.durability.recovery import MeshRecovery
from dolfinx_mbd.errors import InputError, PlacementWarning
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.hyperelastic import neo_hookean
from dolfinx_mbd.structures.mesh_bodies import (
    BodyForce,
    MeshBody,
    MeshMotion,
    Pressure,
    Traction,
)
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, ends, slider_crank
from tests.structures.mesh_bodies.test_mesh_bodies import W5, deflection

TILT = Rotation.from_rotvec([0.3, 1.0, -0.4]).as_matrix()


def strip(
    cells: tuple[int, int],
    kind: str = "quadrilateral",
    *,
    length: float = 1.0,
    width: float = 0.02,
    material: Material = RUBBER,
    plane: Any = "stress",
    degree: int = 2,
) -> mbd.ElasticModel:
    """Return a strip along x, as thick as wide, with the edges at its ends tagged 1 and 2."""
    corners = [np.array([0, -width / 2]), np.array([length, width / 2])]
    mesh = dmesh.create_rectangle(MPI.COMM_WORLD, corners, cells, dmesh.CellType[kind])
    edges = [
        dmesh.locate_entities_boundary(mesh, 1, lambda x, place=place: np.isclose(x[0], place))
        for place in (0.0, length)
    ]
    facets = np.concatenate(edges).astype(np.int32)
    values = np.repeat(np.array([1, 2], dtype=np.int32), [len(edge) for edge in edges])
    order = np.argsort(facets)
    tags = dmesh.meshtags(mesh, 1, facets[order], values[order])
    return mbd.ElasticModel(
        mesh, material, facet_tags=tags, plane=plane, thickness=width, degree=degree
    )


def interfaces(length: float, kind: str = "rigid") -> dict[str, Any]:
    """Return a rigid interface at the left end and one of the given kind at the right end."""
    left, right = ends(0.0, length).values()
    right = mbd.InterfaceSpec(2, point=(length, 0), axes=np.eye(3), kind=kind)  # type: ignore[arg-type]
    return {"left": left, "right": right}


@pytest.mark.parametrize(
    ("kind", "options", "end"),
    [
        ("triangle", {}, "rigid"),
        ("quadrilateral", {}, "averaged"),
        ("triangle", {"plane": "strain"}, "averaged"),
        ("quadrilateral", {"plane": "strain"}, "rigid"),
    ],
)
@pytest.mark.parametrize(
    ("load", "Q"),
    [
        (10, TILT),
        *(
            pytest.param(load, Q, marks=pytest.mark.slow)
            for load, Q in ((10, np.eye(3)), (1, TILT), (1, np.eye(3)), (3, TILT), (3, np.eye(3)))
        ),
    ],
)
def test_elastica(kind: str, options: Any, end: str, load: int, Q: Any) -> None:
    """A clamped strip with a dead tip load, in the plane z = 0 and in another plane."""
    expected = {
        1: (0.301720774, 0.056433236), 3: (0.603253441, 0.254420185), 10: (0.810609025, 0.554995598)
    }  # fmt: skip
    place, stiffness = np.array([1.0, 2.0, 3.0]), 5e7 * 0.02**4 / 12
    bar = MeshBody(
        "bar", strip((24, 1), kind, **options), interfaces(1.0, end), rotation=Q, position=place
    )
    pull = mbd.force("tip", bar.frame("right"), Q @ [0, -load * stiffness, 0])
    ground = mbd.Ground({"origin": mbd.Frame(place, Q)})
    clamp = mbd.fixed("clamp", ground.frame("origin"), bar.frame("left"))
    state = mbd.equilibrium(mbd.System([ground, bar], [clamp], loads=[pull]))
    x = Q.T @ (bar.frames_of(state.q)[1, :3] - place)
    assert np.allclose([-x[1], 1 - x[0], x[2]], [*expected[load], 0.0], atol=2e-3)
    assert abs(x[2]) < 1e-12
    moment = -load * (1 - expected[load][1])
    lam = state.lam / stiffness
    assert np.allclose(lam[:3], [0, -load, 0], atol=1e-8 * load)
    assert np.isclose(lam[5], moment, rtol=3e-3)


def test_elements_of_degree_one_converge() -> None:
    """The error of the deflection with linear elements decreases with the square of their size."""
    stiffness, errors = 5e7 * 0.1**4 / 12, []
    for cells in ((20, 2), (40, 4), (80, 8)):
        bar = MeshBody("bar", strip(cells, width=0.1, degree=1), interfaces(1.0))
        pull = mbd.force("tip", bar.frame("right"), (0, -stiffness, 0))
        ground = mbd.Ground({"origin": mbd.Frame()})
        clamp = mbd.fixed("clamp", ground.frame("origin"), bar.frame("left"))
        state = mbd.equilibrium(mbd.System([ground, bar], [clamp], loads=[pull]))
        errors.append(bar.frames_of(state.q)[1, 1])
    first, second = np.diff(errors)
    assert 3.5 < first / second < 4.5


def crank_run(
    cells: tuple[int, int], kind: str, dt: float, tolerance: float = 1e-8
) -> tuple[MeshBody, Any]:
    """Return the slender slider-crank W1 with a strip in place of the rod, and a revolution."""
    model = strip(cells, kind, length=0.3, width=0.008, material=STEEL)
    rod = MeshBody("rod", model, interfaces(0.3), position=(0.15, 0, 0))
    run = mbd.simulate(slider_crank(rod), t_end=2 * np.pi / 150, dt=dt, tolerance=tolerance)
    return rod, run


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "kind"), [((16, 1), "quadrilateral"), ((32, 2), "triangle")])
def test_slider_crank(cells: tuple[int, int], kind: str) -> None:
    """Case W1 against a geometrically exact beam."""
    rod, run = crank_run(cells, kind, 2e-4)
    w = deflection(rod, run)
    assert np.isclose(w.max(), 1.6371e-3, rtol=0.01)
    assert np.isclose(w.min(), -1.8659e-3, rtol=0.01)
    assert np.abs(run.joint("big_end").force[:, 2]).max() < 1e-6
    assert run.iterations < 7.5 * (len(run) - 1)


@pytest.mark.slow
def test_slider_crank_on_any_number_of_ranks() -> None:
    """Digits of case W1 that neither the ranks nor the sequence of factorizations change."""
    rod, run = crank_run((16, 1), "quadrilateral", 2e-4, 1e-11)
    w = deflection(rod, run)
    digits = w.max(), w.min(), run.joint("small_end").force[-1, 0]
    expected = 0.0016400970206344, -0.0018656639725454, -392.446699735
    assert np.allclose(digits, expected, rtol=1e-10, atol=0)


def pendulum_run(body: MeshBody, Q: Any = TILT) -> Any:
    """Return a run of a pendulum that falls in the plane with the axes Q."""
    ground = mbd.Ground({"origin": mbd.Frame(axes=Q)})
    hinge = mbd.revolute("hinge", ground.frame("origin"), body.frame("left"))
    system = mbd.System([ground, body], [hinge], gravity=Q @ [0, -9.81, 0])
    return mbd.simulate(system, t_end=0.4, dt=0.004)


def test_rubber_pendulum() -> None:
    """Case W5 in an inclined plane; energy, momenta and the force of the hinge."""
    left = {"left": interfaces(1.0)["left"]}
    bar = MeshBody("bar", strip((10, 1)), left, rotation=TILT)
    run = pendulum_run(bar)
    tip = bar.motion(run).position([(1, 0, 0)])[25::25, 0] @ TILT
    assert np.abs(tip[:, :2] - W5).max() < 2e-3
    assert np.abs(tip[:, 2]).max() < 1e-12
    energy = run.energies()
    total = energy.kinetic + energy.elastic + energy.gravity
    assert np.abs(total - total[0]).max() < 0.01 * np.ptp(energy.gravity)
    momentum = run.momenta()[:, :3]
    change = np.gradient(momentum, run.time, axis=0)[10:-10]
    force = change - bar.typical_mass * TILT @ [0, -9.81, 0]
    assert np.abs(momentum @ TILT[:, 2]).max() < 1e-10
    assert np.abs(force @ TILT - run.joint("hinge").force[10:-10]).max() < 0.05


def test_plane_strain_equals_volumes_without_normal_motion() -> None:
    """A layer without normal motion has the same energy, a user-defined energy the same forces."""
    material, energy = Material(1e6, 0.4, 1000.0), "neo-hookean"
    plane = MeshBody("bar", strip((6, 1), width=0.2, material=material, plane="strain"),
                     interfaces(1.0), energy=energy)  # fmt: skip
    user_defined = MeshBody(
        "bar", strip((6, 1), width=0.2, material=material, plane="strain"), interfaces(1.0),
        energy=lambda u: neo_hookean(u, material),
    )  # fmt: skip
    rng = np.random.default_rng(1)
    u = rng.normal(size=plane.nodes.shape) * [0.01, 0.01, 0.0]
    forces = []
    for body in (plane, user_defined):
        body.forces.set_state(u, np.zeros_like(u))
        forces.append(body.forces.elastic())
    assert np.allclose(*forces, rtol=1e-10, atol=1e-10 * np.abs(forces[0]).max())
    # a layer of hexahedra with the same nodes and no displacement along z
    mesh, _ = box((0, -0.1, 0), (1, 0.1, 0.2), (6, 1, 1))
    solid = MeshBody("bar", mbd.ElasticModel(mesh, material), energy=energy)
    sheet = {tuple(np.round(x[:2], 6)): d for x, d in zip(plane.nodes, u, strict=True)}
    moved = np.array([sheet[tuple(np.round(x[:2], 6))] for x in solid.nodes])
    solid.forces.set_state(moved, np.zeros_like(moved))
    assert np.isclose(plane.forces.energy(), solid.forces.energy(), rtol=1e-10)


@pytest.mark.parametrize("plane", ["stress", "strain"])
def test_stress_of_a_stretched_sheet(plane: str) -> None:
    """Stress and strain of a homogeneous deformation in closed form."""
    young, nu, stretch = 1e6, 0.3, np.array([1.1, 0.95])
    material = Material(young, nu, 1000.0)
    model = strip((2, 1), width=0.5, material=material, plane=plane)
    sheet = MeshBody("sheet", model, rotation=TILT, position=(0.1, 0.2, 0.3))
    run = mbd.simulate(mbd.System([sheet]), t_end=1e-6, dt=1e-6)
    X = sheet.nodes
    x = np.array([0.1, 0.2, 0.3]) + (X * [*stretch, 0.0]) @ TILT.T
    u = np.array([x - X] * 2)
    motion = MeshMotion(sheet, run.time, u, 0 * u, 0 * u)
    strains = (stretch**2 - 1) / 2
    normal = -nu / (1 - nu) * strains.sum() if plane == "stress" else 0.0
    E = np.array([*strains, normal])
    lame, shear = young * nu / (1 + nu) / (1 - 2 * nu), young / 2 / (1 + nu)
    S = 2 * shear * E + lame * E.sum()
    lengths = np.sqrt(1 + 2 * E)
    sigma = TILT @ np.diag(S * lengths**2 / lengths.prod()) @ TILT.T
    recovery = MeshRecovery(sheet)
    stress = recovery.fields(motion, "stress", lambda time: np.array([1])).values(0)
    tensors = stress.reshape(-1, 3, 3)
    assert np.allclose(tensors, sigma, rtol=1e-9, atol=1e-6)
    strain = recovery.fields(motion, "strain", lambda time: np.array([1])).values(0)
    assert np.allclose(strain.reshape(-1, 3, 3), np.diag(E), atol=1e-10)
    moved = recovery.fields(motion, "displacement", lambda time: np.array([1])).values(0)
    place = np.array([0.1, 0.2, 0.3]) + (recovery.positions() * [*stretch, 0.0]) @ TILT.T
    assert np.allclose(moved, place - recovery.positions(), atol=1e-12)


def test_discrete_gradient_between_two_states() -> None:
    """The work of the forces of a conserving step is the change of the energy, in any plane."""
    model = strip((3, 2), width=0.5, plane="strain")
    sheet = MeshBody("sheet", model, energy="neo-hookean", rotation=TILT, position=(1, 2, 3))
    start = sheet.reference_state()[0]
    rng = np.random.default_rng(3)
    states = [start + (0.01 * rng.normal(size=start.shape)) @ (TILT * [1, 1, 0]).T for _ in "ab"]
    energies = []
    for u in states:
        sheet.forces.set_state(u, np.zeros_like(u))
        energies.append(sheet.forces.energy())
    forces = sheet.forces.nodes.gathered_block(sheet.forces.elastic_between(*states))
    assert np.isclose(np.vdot(forces, states[1] - states[0]), np.diff(energies)[0], rtol=1e-9)


def test_loads_and_pressure() -> None:
    """Resultants of dead loads; a pressure on the whole edge of a sheet has none."""
    model = strip((4, 2), width=0.5, plane="strain")
    mesh = model.plain_mesh
    top = dmesh.locate_entities_boundary(mesh, 1, lambda x: np.isclose(x[1], 0.25))
    loads = {
        "wind": Traction(top, TILT @ [0, 300, 0]),
        "field": BodyForce(TILT @ [100, 0, 0]),
    }
    sheet = MeshBody("sheet", model, rotation=TILT, loads=loads)
    u, w, _ = sheet.reference_state()
    sheet.forces.set_state(u, w)
    total = sheet.forces.loads.forces(0.0).sum(axis=0) @ TILT
    assert np.allclose(total, [100 * 0.25, 300 * 0.5, 0], atol=1e-10)

    mesh.topology.create_connectivity(1, 2)
    edges = dmesh.exterior_facet_indices(mesh.topology)
    sheet = MeshBody("sheet", model, rotation=TILT, loads={"gas": Pressure(edges, 1e3)})
    u = u + (0.02 * np.sin(9 * sheet.nodes)) @ (TILT * [1, 1, 0]).T
    sheet.forces.set_state(u, w)
    forces = sheet.forces.loads.forces(0.0)
    assert np.abs(forces.sum(axis=0)).max() < 1e-9 * np.abs(forces).max()
    direction = np.random.default_rng(2).normal(size=u.shape) @ np.diag([1, 1, 0]) @ TILT.T
    areas = []
    for sign in (1.0, -1.0):
        sheet.forces.set_state(u + sign * 1e-6 * direction, w)
        areas.append(enclosed(sheet))
    expected = 1e3 * (areas[0] - areas[1]) / 2e-6
    assert np.isclose(-np.vdot(forces, direction), expected, rtol=1e-6)


def enclosed(sheet: MeshBody) -> float:
    """Return the deformed volume of a sheet in plane strain, m³."""
    from dolfinx import fem

    u = sheet.forces._u
    form = fem.form(ufl.det(ufl.Identity(2) + ufl.grad(u)) * ufl.dx)
    local = fem.assemble_scalar(form)
    return float(sheet.embedding.depth * sheet.forces.comm.allreduce(local))


def test_natural_frequencies_of_a_strip() -> None:
    """A clamped slender strip has the frequencies of a beam, and none out of its plane."""
    bar = MeshBody("bar", strip((24, 1), "triangle"), interfaces(1.0, "averaged"))
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), bar.frame("left"))
    system = mbd.System([ground, bar], [clamp])
    modes = mbd.structures.vibration_modes(system, mbd.equilibrium(system), 3)
    beam = np.array([1.8751, 4.6941, 7.8548]) ** 2 * np.sqrt(5e7 * 0.02**2 / 12 / 1100)
    assert np.allclose(2 * np.pi * modes.frequencies, beam, rtol=0.01)


def test_errors_name_cause_and_cure() -> None:
    with pytest.raises(InputError, match="plane stress needs the stretch"):
        MeshBody("bar", strip((2, 1)), energy="neo-hookean")
    with pytest.raises(InputError, match="plane stress needs the stretch"):
        MeshBody("bar", strip((2, 1)), energy=lambda u: neo_hookean(u, RUBBER))
    model = strip((2, 1), plane="strain")
    with pytest.raises(InputError, match="only, not on u"):
        MeshBody("bar", model, energy=lambda u: ufl.inner(ufl.grad(u), ufl.grad(u)) * (1 + u[0]))
    bar = MeshBody("bar", model, interfaces(1.0))
    with pytest.raises(InputError, match="must be in the plane") as error:
        mbd.simulate(mbd.System([bar], gravity=(0, 0, -9.81)), t_end=0.01, dt=0.005)
    assert error.value.argument == "gravity"
    loads = {"lift": BodyForce((0, 0, 1.0))}
    with pytest.raises(InputError, match="'lift'"):
        lifted = MeshBody("bar", model, interfaces(1.0), loads=loads)
        mbd.simulate(mbd.System([lifted]), t_end=0.01, dt=0.005)
    ground = mbd.Ground({"shelf": mbd.Frame((0, 0, 0.1))})
    hinge = mbd.revolute("hinge", ground.frame("shelf"), bar.frame("left"))
    with pytest.raises(InputError, match="out of this plane"), pytest.warns(PlacementWarning):
        mbd.simulate(mbd.System([ground, bar], [hinge]), t_end=0.01, dt=0.005)
