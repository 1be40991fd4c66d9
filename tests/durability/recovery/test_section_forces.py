"""Section forces: loads at the ends, distributed loads, inclined cuts, plane bodies."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from dolfinx.mesh import CellType, create_rectangle, locate_entities_boundary, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.durability.recovery.sections import section_forces, section_modes
from dolfinx_mbd.durability.recovery.stress import Recovery
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.statics import static_cases, static_eta, with_correction

STEEL = mbd.STEEL
MIDDLE = np.array([LENGTH / 2, HEIGHT / 2, WIDTH / 2])
ENDS = ["left", "right"]


@pytest.fixture(scope="module")
def mesh() -> mbd.fem.TaggedMesh:
    """Return a box of tetrahedra."""
    return box(MPI.COMM_WORLD, cells=(12, 3, 2), cell=CellType.tetrahedron)


@pytest.fixture(scope="module")
def bar(mesh: mbd.fem.TaggedMesh) -> mbd.reduction.Reduction:
    """Return the reduction of the box."""
    return mbd.reduce(mesh, STEEL, interfaces=ENDS, num_modes=4, stiffening=False)


@pytest.fixture(scope="module")
def recovery(bar: mbd.reduction.Reduction) -> Recovery:
    """Return the recovery of stress of the box."""
    return Recovery(bar, stress=STEEL)


@pytest.fixture(scope="module")
def corrected(mesh: mbd.fem.TaggedMesh, bar: mbd.reduction.Reduction) -> mbd.reduction.Reduction:
    """Return the reduction with the static correction of unit loads at its ends."""
    problem = elastic_problem(mbd.ElasticModel(mesh, STEEL, space=bar.space))
    cases = static_cases(problem, mesh_interfaces(mesh, bar.space, ENDS))
    problem.destroy()
    return with_correction(bar, cases)


@pytest.mark.parametrize("normal", [(1, 0, 0), (-2, 0, 0), (3, 1, -1)])
def test_loads_at_the_ends_are_found_in_every_section(
    bar: mbd.reduction.Reduction, recovery: Recovery, normal: tuple[float, float, float]
) -> None:
    """Forces and moments about the point satisfy statics to round-off on any mesh."""
    force, moment = np.array([1000.0, -200.0, 300.0]), np.array([5.0, -7.0, 11.0])
    left_moment = -(moment + np.cross([LENGTH, 0, 0], force))
    wrenches = np.array([[[*-force, *left_moment], [*force, *moment]]])
    forces = section_forces(recovery, static_eta(bar.body, wrenches), MIDDLE, normal)
    sign = np.sign(normal[0])
    assert np.allclose(forces.force, sign * force, atol=1e-6)
    lever = bar.body.interface("right").point - MIDDLE
    moment_about_point = moment + np.cross(lever, force)
    assert np.allclose(forces.moment, sign * moment_about_point, atol=1e-7)
    n = np.array(normal) / np.linalg.norm(normal)
    assert forces.normal == pytest.approx(sign * force @ n, rel=1e-8)
    assert forces.torsion == pytest.approx(sign * moment_about_point @ n, rel=1e-7)
    assert np.allclose(forces.axes.T @ forces.axes, np.eye(3), atol=1e-14)
    assert np.linalg.det(forces.axes) == pytest.approx(1)
    components = np.concatenate([forces.normal, forces.shear[0]])
    assert np.linalg.norm(components) == pytest.approx(np.linalg.norm(force), rel=1e-8)
    assert forces.bending.shape == (1, 2)


def test_axes_of_the_section(recovery: Recovery) -> None:
    """The first axis of the section is the projection of the requested direction on its plane."""
    eta = np.zeros(recovery.displacements.shape[1])
    forces = section_forces(recovery, eta, MIDDLE, (2, 0, 0), axis=(5, 0, 1))
    assert np.allclose(forces.axes, [[1, 0, 0], [0, 0, -1], [0, 1, 0]])


@pytest.mark.parametrize("x", [LENGTH / 2, LENGTH / 3, 0.3 * LENGTH + 0.001])
def test_spinning_bar(corrected: mbd.reduction.Reduction, x: float) -> None:
    """N = ρAΩ²/2 ((l/2)² − (x − l/2)²) of a bar of length l that spins freely about its centre."""
    speed = 300.0
    body = corrected.body
    H = body.second_moments[1:, 0]  # ∫ρ ψ_k xᵀ
    centrifugal = (np.trace(H, axis1=1, axis2=2) - H[:, 2, 2]) * speed**2  # modal forces
    motion = SimpleNamespace(
        time=np.zeros(1),
        eta=np.linalg.solve(body.stiffness, centrifugal)[None],
        omega=np.array([[0, 0, speed]]),
    )
    point = [x, HEIGHT / 2, WIDTH / 2]
    forces = section_forces(Recovery(corrected, stress=STEEL), motion, point, (1, 0, 0))
    area, half = HEIGHT * WIDTH, LENGTH / 2
    expected = STEEL.density * area * speed**2 / 2 * (half**2 - (x - half) ** 2)
    assert forces.normal[0] == pytest.approx(expected, rel=1e-3)
    assert np.abs(forces.shear).max() < 1e-3 * expected
    assert np.abs(forces.moment).max() < 1e-3 * expected * HEIGHT


def test_the_width_of_the_band_has_little_effect(
    bar: mbd.reduction.Reduction, recovery: Recovery
) -> None:
    """With loads at the ends only, every width gives the same result."""
    modes = [section_modes(recovery, MIDDLE, (1, 0, 0), width=w) for w in (None, 0.01, 0.05)]
    end = np.array([100.0, 0, 0, 1, 2, 3])
    eta = static_eta(bar.body, np.stack([-end, end])[None])[0]
    assert np.allclose(modes @ eta, np.tile(end, (3, 1)), atol=1e-7)


def test_plane_body(comm: MPI.Intracomm) -> None:
    """A plate of some thickness is pulled and bent in its plane."""
    length, height, thickness = 0.2, 0.03, 0.004
    mesh = create_rectangle(comm, [[0, 0], [length, height]], [10, 3])
    ends = [
        locate_entities_boundary(mesh, 1, lambda x, a=a: np.isclose(x[0], a)) for a in (0, length)
    ]
    facets, order = np.concatenate(ends), np.argsort(np.concatenate(ends))
    values = np.repeat(np.array([1, 2], dtype=np.int32), [len(e) for e in ends])
    plate = mbd.reduce(
        mbd.ElasticModel(
            mesh,
            STEEL,
            facet_tags=meshtags(mesh, 1, facets[order], values[order]),
            plane="stress",
            thickness=thickness,
        ),
        interfaces={"left": 1, "right": 2},
        num_modes=3,
        stiffening=False,
    )
    end = np.array([100.0, 0, 0, 0, 0, 2.0])
    eta = static_eta(plate.body, np.stack([-end, end])[None])[0]
    recovery = Recovery(plate, stress=STEEL, plane="stress")
    point = [0.11, height / 2, 0]
    forces = section_forces(recovery, eta, point, (1, 0, 0), thickness=thickness)
    assert np.allclose(np.hstack([forces.force, forces.moment]), end, atol=1e-7)
    with pytest.raises(ValueError, match=r"thickness must be .* for a plane body; got None"):
        section_forces(recovery, eta, point, (1, 0, 0))


def test_bad_input(bar: mbd.reduction.Reduction, recovery: Recovery) -> None:
    eta = np.zeros(bar.body.num_modes)
    with pytest.raises(ValueError, match=r"does not cut the body, which extends from -0\.237 to"):
        section_forces(recovery, eta, (0.237, 0, 0), (1, 0, 0))
    with pytest.raises(ValueError, match="normal must be a vector that is not zero"):
        section_forces(recovery, eta, MIDDLE, (0, 0, 0))
    with pytest.raises(ValueError, match="point must be 3 finite numbers"):
        section_forces(recovery, eta, (0, 0), (1, 0, 0))
    with pytest.raises(ValueError, match=r"axis must be .* not along the normal"):
        section_forces(recovery, eta, MIDDLE, (1, 0, 0), axis=(2, 0, 0))
    with pytest.raises(ValueError, match="width must be a positive"):
        section_forces(recovery, eta, MIDDLE, (1, 0, 0), width=0.0)
    with pytest.raises(ValueError, match="section forces need the stress law"):
        section_forces(Recovery(replace(bar, stress=None)), eta, MIDDLE, (1, 0, 0))
    with pytest.raises(ValueError, match="elastic coordinates of shape"):
        section_forces(recovery, eta[1:], MIDDLE, (1, 0, 0))
