"""Laws of a reduced body: mass properties, rigid motions, completeness, convergence (V9).

V9 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, ReductionOptions
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.assembly import elastic_problem, rigid_motions
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec, mesh_interfaces
from dolfinx_mbd.fem.meshing import build_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL, elastic_stiffness
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.result import Reduction
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, rigid_mass
from tests.models.written import recorded

ENDS = ("left", "right")
MIDDLE = (LENGTH / 2, HEIGHT / 2, WIDTH / 2)


@pytest.fixture(scope="module")
def bar() -> Reduction:
    """Return a bar with both ends as interfaces and a point in its middle."""
    points = {"middle": MIDDLE, "end": (LENGTH, HEIGHT / 2, WIDTH / 2)}
    mesh = box(MPI.COMM_WORLD)
    return reduce(mesh, STEEL, interfaces=ENDS, num_modes=6, points=points, name="bar")


@pytest.mark.parametrize("cell", [CellType.tetrahedron, CellType.hexahedron])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_mass_properties_of_a_box(comm: MPI.Intracomm, cell: CellType, degree: int) -> None:
    """The mass, the centre and the inertia are exact on meshes of flat elements of any degree."""
    a, b, c = LENGTH, HEIGHT, WIDTH
    mesh = box(comm, cells=(3, 1, 1), cell=cell)
    body = reduce(ElasticModel(mesh, STEEL, degree=degree), interfaces=["left"], num_modes=1).body
    m = STEEL.density * a * b * c
    assert body.total_mass == pytest.approx(m, rel=1e-12)
    assert body.centre == pytest.approx(MIDDLE, rel=1e-12)
    J = np.diag([b * b + c * c, c * c + a * a, a * a + b * b]) * m / 12
    assert np.allclose(body.central_inertia, J, atol=1e-12 * m * a * a)


def test_mass_properties_of_a_cylinder(comm: MPI.Intracomm) -> None:
    """The geometric error of curved elements of second order has order four."""
    r, h = 0.01, 0.03

    def build(model: object) -> None:
        gmsh = pytest.importorskip("gmsh")
        volume = gmsh.model.occ.addCylinder(0, 0, 0, 0, 0, h, r)
        gmsh.model.occ.synchronize()
        gmsh.model.addPhysicalGroup(3, [volume], name="cylinder")
        base = gmsh.model.getBoundary([(3, volume)], oriented=False)
        flat = [t for _, t in base if gmsh.model.occ.getCenterOfMass(2, t)[2] < 1e-9]
        gmsh.model.addPhysicalGroup(2, flat, name="base")
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.005)
        gmsh.model.mesh.generate(3)
        gmsh.model.mesh.setOrder(2)

    body = reduce(build_mesh(build, comm), STEEL, interfaces=["base"], num_modes=1).body
    m = STEEL.density * np.pi * r * r * h
    assert body.total_mass == pytest.approx(m, rel=1e-4)
    assert body.centre == pytest.approx([0, 0, h / 2], abs=1e-4 * h)
    J = np.diag([3 * r * r + h * h] * 2 + [6 * r * r]) * m / 12
    assert np.allclose(body.central_inertia, J, atol=1e-4 * J.max())


def test_modes_are_orthonormal_and_mean_axis(bar: Reduction) -> None:
    """M = I = Σ H^aa, and no mode has linear or angular momentum (Tisserand)."""
    S, H = bar.body.first_moments, bar.body.second_moments
    n = bar.body.num_modes
    assert n == 6 * 2 + 6 - 6
    assert np.allclose(np.einsum("klaa->kl", H[1:, 1:]), bar.body.mass, atol=1e-10)
    assert np.array_equal(bar.body.mass, np.eye(n))
    mass, J = np.sqrt(bar.body.total_mass), np.sqrt(np.trace(bar.body.inertia))
    assert np.abs(S[1:]).max() < 1e-10 * mass
    angular = H[0, 1:] - H[0, 1:].transpose(0, 2, 1)
    assert np.abs(angular).max() < 1e-10 * J
    assert (np.diff(bar.body.frequencies) > 0).all()
    omega = 2 * np.pi * bar.body.frequencies
    assert np.allclose(np.diag(bar.body.stiffness), omega**2, rtol=1e-12)


def test_moments_of_a_rigid_motion(comm: MPI.Intracomm) -> None:
    """Contractions of S and H with rigid motions as modes are those of m, c and J."""
    problem = elastic_problem(ElasticModel(box(comm), STEEL))
    data = inertia(problem, rigid_motions(problem.positions))
    n = 0
    body = ReducedBody("box", data.total_mass, data.first_moments[:1], data.second_moments[:1, :1],
                       *[np.zeros((n, n))] * 3)  # fmt: skip
    assert np.allclose(data.mass, rigid_mass(body), atol=1e-13)
    skew = data.first_moments[4:]  # ∫ρ e_i×x = e_i×(mc)
    assert np.allclose(skew, np.cross(np.eye(3), data.first_moments[0]), atol=1e-14)


def test_constraint_modes_reproduce_rigid_motions(comm: MPI.Intracomm) -> None:
    """A common rigid motion of all interfaces moves the body without strain."""
    mesh = box(comm)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    interfaces = mesh_interfaces(mesh, problem.space, ENDS)
    basis = craig_bampton_basis(problem, interfaces, 2, prefix="test_")
    R = rigid_motions(problem.positions)
    C = np.zeros((14, 6))
    for k, interface in enumerate(interfaces):
        C[6 * k : 6 * k + 3] = rigid_motions(interface.point[None, :])
        C[6 * k + 3 : 6 * k + 6, 3:] = np.eye(3)
    assert np.abs(basis.vectors @ C - R).max(initial=0) < 1e-11
    held = np.concatenate([interface.dofs for interface in interfaces])
    assert not basis.vectors[held][:, 12:].any()
    labels = [column.label for column in basis.columns]
    assert labels[:2] == ["constraint left ux", "constraint left uy"]
    assert labels[12:] == ["fixed 1", "fixed 2"]


def test_motion_of_an_interface_is_that_of_its_facets(bar: Reduction) -> None:
    """The motion map gives the exact motion of the face's point on the mesh."""
    right, end = bar.body.interface("right"), bar.body.point("end")
    assert np.allclose(right.motion[:3].T, end.modes, atol=1e-9 * np.abs(end.modes).max())
    skin = bar.body.skin
    assert skin is not None
    on = np.isclose(skin.points[:, 0], LENGTH)
    r = skin.points[on] - right.point
    rigid = right.motion[:3].T[:, None] + np.cross(right.motion[3:].T[:, None], r)
    assert np.allclose(skin.modes[:, on], rigid, atol=1e-9 * np.abs(skin.modes).max())


@pytest.mark.parametrize("ends", [(), ("left",), ENDS])
def test_all_modes_kept_is_the_full_model(comm: MPI.Intracomm, ends: tuple[str, ...]) -> None:
    """A complete basis has every frequency of the mesh whose interfaces are rigid, to 1e-9."""
    mesh = box(MPI.COMM_SELF, cells=(2, 1, 1))
    problem = elastic_problem(ElasticModel(mesh, STEEL, degree=1))
    K, M = (A.convert("dense").getDenseArray().copy() for A in (problem.stiffness, problem.mass()))
    interfaces = mesh_interfaces(mesh, problem.space, ends)
    held = np.concatenate([i.dofs for i in interfaces] or [np.zeros(0, dtype=int)]).astype(int)
    free = np.setdiff1d(np.arange(len(K)), held)
    T = np.zeros((len(K), len(free) + 6 * len(ends)))
    T[free, np.arange(len(free))] = 1
    for k, i in enumerate(interfaces):
        columns = slice(len(free) + 6 * k, len(free) + 6 * k + 6)
        T[i.dofs, columns] = rigid_motions(problem.positions[i.blocks], i.point)
    exact = np.sqrt(scipy.linalg.eigh(T.T @ K @ T, T.T @ M @ T)[0][6:]) / (2 * np.pi)
    count = len(free) - (0 if ends else 6)
    body = reduce(
        ElasticModel(box(comm, cells=(2, 1, 1)), STEEL, degree=1), interfaces=ends, num_modes=count
    ).body
    assert body.num_modes == len(exact)
    assert body.frequencies == pytest.approx(exact, rel=1e-9)


def test_convergence_from_above(comm: MPI.Intracomm) -> None:
    """V9: frequencies of a free beam with n modes in each plane exceed the exact ones."""
    mesh = box(comm, (1.0, 0.02, 0.02), (32, 1, 1))

    def bending(num_modes: int) -> np.ndarray:
        return reduce(
            mesh, STEEL, interfaces=ENDS, num_modes=num_modes, options=ReductionOptions(skin=False)
        ).body.frequencies

    full = bending(160)
    for n, published in ((2, [3.6e-3, 4.4e-3]), (4, [4.1e-4, 9.2e-4, 4.3e-3, 3.9e-3])):
        error = bending(2 * n)[: 2 * len(published)] / full[: 2 * len(published)] - 1
        assert (error > 0).all()
        # The solid has shear deformation, which the published beam has not.
        assert error == pytest.approx(np.repeat(published, 2), rel=0.06)


def test_free_body_without_interfaces(comm: MPI.Intracomm) -> None:
    """Without interfaces, modes are those of the modal analysis."""
    body = reduce(box(comm), STEEL, interfaces=(), num_modes=5).body
    modal = modal_analysis(box(comm), STEEL, num_modes=5)
    assert body.num_modes == 5
    assert body.frequencies == pytest.approx(modal.frequencies, rel=1e-9)
    assert body.interfaces == ()


def test_user_defined_space_stiffness_and_density(comm: MPI.Intracomm, bar: Reduction) -> None:
    """User-defined forms give the same body as the material."""
    mesh = box(comm)
    space = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    form = elastic_stiffness(ufl.TrialFunction(space), ufl.TestFunction(space), STEEL)
    density = fem.Function(fem.functionspace(mesh.mesh, ("DG", 0)))
    density.x.array[:] = STEEL.density
    custom = reduce(
        ElasticModel(mesh, space=space, stiffness=form, density=density),
        interfaces=ENDS,
        num_modes=6,
    )
    assert custom.space is space
    assert custom.body.frequencies == pytest.approx(bar.body.frequencies, rel=1e-9)
    heavy = reduce(
        ElasticModel(mesh, STEEL, density=4 * STEEL.density), interfaces=ENDS, num_modes=6
    ).body
    assert heavy.frequencies == pytest.approx(bar.body.frequencies / 2, rel=1e-9)
    assert heavy.total_mass == pytest.approx(4 * bar.body.total_mass, rel=1e-12)


def test_plain_mesh_with_tags(comm: MPI.Intracomm, bar: Reduction) -> None:
    """Interfaces are selected by tag, and may have other names."""
    mesh = box(comm)
    tags = {name: mesh.groups[name][1] for name in ENDS}
    plain = reduce(
        ElasticModel(mesh.mesh, STEEL, facet_tags=mesh.facet_tags),
        interfaces={"a": tags["left"], "b": InterfaceSpec(tags["right"])},
        num_modes=6,
    ).body
    assert [i.name for i in plain.interfaces] == ["a", "b"]
    assert plain.frequencies == pytest.approx(bar.body.frequencies, rel=1e-9)


def test_skin_is_closed_and_faces_outwards(bar: Reduction) -> None:
    """The volume inside it, by the divergence theorem, is the body's."""
    skin = bar.body.skin
    assert skin is not None
    x = skin.points[skin.triangles]
    volume = np.einsum("ki,ki->", x[:, 0], np.cross(x[:, 1], x[:, 2])) / 6
    assert volume == pytest.approx(LENGTH * HEIGHT * WIDTH, rel=1e-12)
    assert len(np.unique(skin.triangles)) == len(skin.points)


def test_displacement_is_the_sum_of_modes(comm: MPI.Intracomm, bar: Reduction) -> None:
    """Energy and momentum of the field on the mesh are those of the reduced body."""
    eta = np.linspace(-1, 1, bar.body.num_modes) * 1e-6
    u = bar.displacement(eta)
    energy = fem.form(0.5 * elastic_stiffness(u, u, STEEL))
    full = comm.allreduce(fem.assemble_scalar(energy))
    assert full == pytest.approx(eta @ bar.body.stiffness @ eta / 2, rel=1e-9)
    assert bar.displacement(0 * eta, out=u) is u
    assert not u.x.array.any()
    with pytest.raises(ValueError, match=r"^eta must be"):
        bar.displacement(eta[:-1])


@pytest.mark.parametrize("motion", ["global", "body"])
def test_written_motion(
    comm: MPI.Intracomm,
    tmp_path: Path,
    bar: Reduction,
    motion: Literal["global", "body"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a turn about z and a shift are written with and without the rigid motion."""
    written = recorded(monkeypatch)
    path = comm.bcast(tmp_path, root=0) / "sub" / f"{motion}.bp"
    n = bar.body.num_modes
    history = SimpleNamespace(
        time=np.array([0.0, 0.5, 1.0]),
        eta=np.vstack([np.zeros(n), np.ones(n), np.ones(n)]) * 1e-7,
        position=np.array([[0, 0, 0], [1, 0, 0], [1, 2, 3]], dtype=float),
        rotation=np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]], dtype=float),
    )
    bar.write(path, history, times=[0.1, 1], motion=motion, scale=10.0)
    comm.Barrier()
    assert path.is_dir()
    # more than three numbers of 8 bytes for each degree of freedom
    assert sum(f.stat().st_size for f in path.iterdir()) > 24 * bar.body.provenance["dofs"]
    (start, first), (end, last) = written
    assert (start, end) == (0.0, 1.0)
    assert not first["displacement"].any()
    total, elastic = (last[name].reshape(-1, 3) for name in ("displacement", "elastic"))
    u = bar.displacement(history.eta[2]).x.array.reshape(-1, 3)
    assert np.array_equal(elastic, u)
    x = fem.Function(bar.space)
    x.interpolate(lambda x: x)
    x = x.x.array.reshape(-1, 3)
    # half a turn about z
    expected = 10 * u if motion == "body" else [1, 2, 3] + (x + 10 * u) * [-1, -1, 1] - x
    assert np.allclose(total, expected, atol=1e-14)
    written.clear()
    bar.write(path, history, stride=2, motion=motion)
    assert [t for t, *_ in written] == [0.0, 1.0]


def test_write_refuses_a_history_of_another_body(tmp_path: Path, bar: Reduction) -> None:
    """The error is raised before a file is written."""
    history = SimpleNamespace(time=np.zeros(1), eta=np.zeros((1, 3)), position=None, rotation=None)
    with pytest.raises(ValueError, match="elastic coordinates of shape"):
        bar.write(tmp_path / "x.bp", history)


def test_rod_from_gmsh(comm: MPI.Intracomm) -> None:
    """The table of a curved connecting rod names every mode and its source."""
    mesh = build_mesh(ConnectingRod(size=0.012), comm)
    body = reduce(mesh, STEEL, interfaces=["big_end", "small_end"], num_modes=4, name="rod").body
    assert body.num_modes == 10
    assert [mode.label for mode in body.modes] == [f"elastic {k}" for k in range(1, 11)]
    assert body.provenance["ranks"] == comm.size
    assert body.provenance["material"] == STEEL.name
    assert "seconds, factorization" in body.provenance
    assert "rod" in body.summary()
