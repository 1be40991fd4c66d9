"""Plane bodies: reduction of two-dimensional meshes into bodies that move in space.

V7 and V8 are cases of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_unit_interval
from mpi4py import MPI

from dolfinx_mbd import ElasticModel
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.fem.assembly import elastic_problem, rigid_motions
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec, mesh_interfaces
from dolfinx_mbd.fem.meshing import build_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL, Material, centrifugal_load, elastic_stiffness, euler_load, mass
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.result import Reduction
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.calls import flat
from tests.models.plates import plate
from tests.models.written import recorded

ENDS = ("left", "right")
PLATE: Mapping[str, Any] = {"plane": "stress", "thickness": WIDTH}


@pytest.fixture(scope="module")
def bar() -> Reduction:
    """Return a plane bar with both ends as interfaces and points with two or three coordinates."""
    points = {"middle": (LENGTH / 2, HEIGHT / 2), "end": (LENGTH, HEIGHT / 2, 0.0)}
    mesh = plate(MPI.COMM_WORLD)
    return reduce(ElasticModel(mesh, STEEL, **PLATE), interfaces=ENDS, num_modes=8, points=points)


@pytest.mark.parametrize("cell", [CellType.triangle, CellType.quadrilateral])
@pytest.mark.parametrize("plane", ["strain", "stress"])
def test_rigid_plate(comm: MPI.Intracomm, cell: CellType, plane: Any) -> None:
    """Mass, centre and inertia tensor are those of a plate with the specified thickness."""
    a, b, t = 0.3, 0.2, 0.05
    mesh = plate(comm, (a, b), (2, 2), cell, (-0.1, 0.4))
    body = reduce(
        ElasticModel(mesh, STEEL, plane=plane, thickness=t), interfaces=["left"], num_modes=1
    ).body
    m = STEEL.density * a * b * t
    assert body.total_mass == pytest.approx(m, rel=1e-12)
    assert body.centre == pytest.approx([-0.1 + a / 2, 0.4 + b / 2, 0.0], rel=1e-12)
    J = np.diag([b * b + t * t, t * t + a * a, a * a + b * b]) * m / 12
    assert np.allclose(body.central_inertia, J, atol=1e-12 * J.max())
    assert body.provenance["thickness (m)"] == t
    assert body.provenance["plane"] == plane


def test_nothing_moves_out_of_the_plane(bar: Reduction) -> None:
    """Rows of z are zero; k interfaces and n fixed modes give 3 k + n modes less 3 rigid ones."""
    body = bar.body
    n = body.num_modes
    assert n == 3 * 2 + 8 - 3
    assert body.modes[0].label == "elastic 1"
    assert not body.first_moments[:, 2].any()
    H = body.second_moments.copy()
    H[0, 0, 2, 2] = 0.0  # ∫ρ z² over the thickness
    assert not H[..., 2].any()
    assert not H[:, :, 2].any()
    for interface in body.interfaces:
        assert not interface.motion[[2, 3, 4]].any()
        assert np.abs(interface.motion[[0, 1, 5]]).max(axis=1).all()
        assert np.array_equal(interface.axes, np.eye(3))
        assert interface.point[2] == 0
    assert body.interface("right").point == pytest.approx([LENGTH, HEIGHT / 2, 0])
    for point in body.points:
        assert not point.modes[:, 2].any()
    assert body.skin is not None
    assert not body.skin.points[:, 2].any()
    assert not body.skin.modes[..., 2].any()


def test_modes_are_orthonormal_and_mean_axis(bar: Reduction) -> None:
    """M = I = Σ H^aa; no mode has momentum in the plane or angular momentum about z."""
    S, H = bar.body.first_moments, bar.body.second_moments
    M = np.einsum("klaa->kl", H[1:, 1:])
    assert np.allclose(M, np.eye(bar.body.num_modes), atol=1e-10)
    size = np.sqrt(bar.body.total_mass)
    assert np.abs(S[1:]).max() < 1e-10 * size
    # angular momenta of the modes: the antisymmetric part of ∫ρ x⊗ψ
    angular = H[0, 1:] - H[0, 1:].transpose(0, 2, 1)
    assert np.abs(angular).max() < 1e-10 * size * LENGTH


def test_motion_of_an_interface_is_that_of_its_edges(bar: Reduction) -> None:
    """The end moves as a rigid edge; its middle moves as the named point at this place."""
    right, end = bar.body.interface("right"), bar.body.point("end")
    assert np.allclose(right.motion[:3].T, end.modes, atol=1e-9 * np.abs(end.modes).max())
    skin = bar.body.skin
    assert skin is not None
    on = np.isclose(skin.points[:, 0], LENGTH)
    assert on.sum() == 3
    r = skin.points[on] - right.point
    rigid = right.motion[:3].T[:, None] + np.cross(right.motion[3:].T[:, None], r)
    assert np.allclose(skin.modes[:, on], rigid, atol=1e-9 * np.abs(skin.modes).max())


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_constraint_modes_reproduce_rigid_motions(comm: MPI.Intracomm, kind: str) -> None:
    """A common rigid motion of all interfaces moves the whole body; each interface has three."""
    mesh = plate(comm)
    problem = elastic_problem(ElasticModel(mesh, STEEL, **PLATE))
    interfaces = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(ENDS, kind))
    basis = craig_bampton_basis(problem, interfaces, 2, prefix="test_")
    labels = [column.label for column in basis.columns]
    assert labels[:3] == ["constraint left ux", "constraint left uy", "constraint left rz"]
    assert labels[6:] == ["fixed 1", "fixed 2"]
    R = rigid_motions(problem.positions)
    C = np.zeros((8, 3))
    for k, interface in enumerate(interfaces):
        C[3 * k : 3 * k + 2] = rigid_motions(interface.point[None, :2])
        C[3 * k + 2, 2] = 1.0
    assert np.abs(basis.vectors @ C - R).max(initial=0) < 1e-11


def test_plate_has_the_frequencies_of_a_bar(comm: MPI.Intracomm) -> None:
    """V8: in-plane bending of the bar 137×20×12 mm, within 1 % of Ritz values in space."""
    modes = modal_analysis(ElasticModel(plate(comm), STEEL, **PLATE), num_modes=3)
    assert modes.num_rigid == 3
    assert modes.frequencies[:2] == pytest.approx([5286.47, 13132.0], rel=0.01)


@pytest.mark.parametrize("cell", [CellType.triangle, CellType.quadrilateral])
def test_reduced_plate_against_reduced_bar(comm: MPI.Intracomm, cell: CellType) -> None:
    """With both ends rigid, the modes are the in-plane modes of the solid bar, within 1 %."""
    model = ElasticModel(plate(comm, cell=cell), STEEL, **PLATE)
    thin = reduce(model, interfaces=ENDS, num_modes=8).body
    solid = reduce(box(comm, cells=(12, 2, 1)), STEEL, interfaces=ENDS, num_modes=16).body
    H = np.einsum("kkaa->ka", solid.second_moments[1:, 1:])
    stays = H[:, 2] < 0.02  # share of z in the modal mass of 1
    inside = solid.frequencies[stays]
    assert thin.frequencies[:4] == pytest.approx(inside[:4], rel=0.01)
    alone = modal_analysis(model, num_modes=4).frequencies
    assert (thin.frequencies[:4] > 0.99 * alone).all()


def test_plane_strain_is_plane_stress_of_another_material(comm: MPI.Intracomm) -> None:
    """The material has E/(1-ν²) and ν/(1-ν); plane strain is stiffer than plane stress."""
    e, nu = STEEL.young, STEEL.poisson
    equivalent = Material(e / (1 - nu**2), nu / (1 - nu), STEEL.density)
    mesh = plate(comm, cells=(4, 1))
    strain, stress, soft = (
        reduce(
            ElasticModel(mesh, material, plane=plane, thickness=0.1),
            interfaces=["left"],
            num_modes=4,
        ).body
        for material, plane in ((STEEL, "strain"), (equivalent, "stress"), (STEEL, "stress"))
    )
    assert strain.frequencies == pytest.approx(stress.frequencies, rel=1e-9)
    assert (strain.frequencies > 1.01 * soft.frequencies).all()


def test_thickness_scales_mass_and_not_frequency(comm: MPI.Intracomm) -> None:
    mesh = plate(comm, cells=(4, 1))
    thin, thick = (
        reduce(
            ElasticModel(mesh, STEEL, plane="stress", thickness=t), interfaces=ENDS, num_modes=4
        ).body
        for t in (0.001, 0.02)
    )
    assert thick.total_mass == pytest.approx(20 * thin.total_mass, rel=1e-12)
    assert thick.frequencies == pytest.approx(thin.frequencies, rel=1e-8)


def test_user_defined_stiffness_and_density(comm: MPI.Intracomm) -> None:
    """A user-defined form, which includes the thickness, and a user-defined density."""
    mesh, t = plate(comm), WIDTH
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (2,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    form = elastic_stiffness(u, v, STEEL, plane="stress", thickness=t)
    rho = fem.Constant(mesh.mesh, STEEL.density) * (1 + 0 * ufl.SpatialCoordinate(mesh.mesh)[0])
    custom = reduce(
        ElasticModel(mesh, stiffness=form, space=V, density=rho, thickness=t),
        interfaces=ENDS,
        num_modes=4,
    ).body
    usual = reduce(ElasticModel(mesh, STEEL, **PLATE), interfaces=ENDS, num_modes=4).body
    assert custom.frequencies == pytest.approx(usual.frequencies, rel=1e-8)
    assert custom.total_mass == pytest.approx(usual.total_mass, rel=1e-12)
    assert custom.provenance["plane"] == "own stiffness"


def _clamped(load: str, young: float, slender: float) -> tuple[np.ndarray, float]:
    """Return the displacement of the tip of a clamped bar of length 1, and the density ρ.

    The load is that of a unit angular velocity ("spin") or acceleration ("euler"). With ν = 0, the
    bar is the one of beam theory. One rank is sufficient to test the forms.
    """
    bar = plate(MPI.COMM_SELF, (1.0, slender), (20, 1), origin=(0.0, -slender / 2)).mesh
    V = fem.functionspace(bar, ("Lagrange", 3, (2,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    material, t = Material(young, 0.0, 7850.0), 0.3
    K = (
        fem.assemble_matrix(
            fem.form(elastic_stiffness(u, v, material, plane="stress", thickness=t))
        )
        .to_scipy()
        .tocsr()
    )
    areal = t * material.density
    form = {"spin": centrifugal_load, "euler": euler_load}[load](v, areal, 1.0)
    b = fem.assemble_vector(fem.form(form)).array
    held = fem.locate_dofs_geometrical(V, lambda x: np.isclose(x[0], 0))
    free = np.setdiff1d(np.arange(len(b)), (2 * held[:, None] + [0, 1]).ravel())
    solution = np.zeros_like(b)
    solution[free] = scipy.sparse.linalg.spsolve(K[free][:, free].tocsc(), b[free])
    tip = fem.locate_dofs_geometrical(V, lambda x: np.isclose(x[0], 1) & (abs(x[1]) <= slender / 2))
    return solution.reshape(-1, 2)[tip].mean(axis=0), material.density


def test_centrifugal_stretch_of_a_clamped_bar() -> None:
    """V7: u(L) = ρΩ²L³/3E."""
    tip, rho = _clamped("spin", 1e9, 0.02)
    assert tip[0] == pytest.approx(rho / 3e9, rel=1e-3)
    assert abs(tip[1]) < 1e-5 * tip[0]  # (bending is 1e4 times softer than tension)


def test_angular_acceleration_of_a_clamped_bar() -> None:
    """V7: w(L) = -11ρAαL⁵/120EI, against the acceleration; I/A = h²/12."""
    h = 0.02
    tip, rho = _clamped("euler", 1e9, h)
    assert tip[1] == pytest.approx(-11 * rho * 12 / (120 * 1e9 * h**2), rel=2e-3)


def test_centrifugal_stretch_of_a_reduced_bar(comm: MPI.Intracomm) -> None:
    """V7: a free bar spinning about its centre, u(L/2) = ρΩ²L³/24E, with a load from H."""
    cork = Material(1e9, 0.0, 1000.0)
    L, h = 1.0, 0.02
    mesh = plate(comm, (L, h), (20, 1), origin=(-L / 2, -h / 2))
    model = ElasticModel(mesh, cork, plane="stress", thickness=0.1)
    body = reduce(model, interfaces=ENDS, num_modes=30, points={"tip": (L / 2, 0)}).body
    H = body.second_moments[0, 1:]
    load = H[:, 0, 0] + H[:, 1, 1]  # -∫ρψ·(ω×(ω×x)) of ω = 1 about z
    eta = np.linalg.solve(body.stiffness, load)
    tip = eta @ body.point("tip").modes
    assert tip[0] == pytest.approx(cork.density * L**3 / 24 / cork.young, rel=2e-3)
    assert tip[2] == 0


def test_skin_is_the_plate(bar: Reduction) -> None:
    """The skin has the area of the plate; its normals are along z."""
    skin = bar.body.skin
    assert skin is not None
    x = skin.points[skin.triangles]
    normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    assert (normal[:, 2] > 0).all()
    assert normal[:, 2].sum() / 2 == pytest.approx(LENGTH * HEIGHT, rel=1e-12)
    assert len(np.unique(skin.triangles)) == len(skin.points) == 13 * 3


def test_displacement_and_energy(comm: MPI.Intracomm, bar: Reduction) -> None:
    """Energy and mass of the field on the mesh are those of the reduced body."""
    eta = np.linspace(-1, 1, bar.body.num_modes) * 1e-6
    u = bar.displacement(eta)
    stiffness = elastic_stiffness(u, u, STEEL, plane="stress", thickness=WIDTH)
    inertia = mass(u, u, STEEL.density * WIDTH)
    for form, matrix in ((stiffness, bar.body.stiffness), (inertia, bar.body.mass)):
        full = comm.allreduce(fem.assemble_scalar(fem.form(form)))
        assert full == pytest.approx(eta @ matrix @ eta, rel=1e-9)


def test_written_motion_may_leave_the_plane(
    comm: MPI.Intracomm, tmp_path: Path, bar: Reduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has three components: a rotation by π/2 about x moves the plate out of its plane."""
    written = recorded(monkeypatch)
    path = comm.bcast(tmp_path, root=0) / "plate.bp"
    n = bar.body.num_modes
    history = SimpleNamespace(
        time=np.array([0.0, 1.0]),
        eta=np.ones((2, n)) * 1e-7,
        position=np.array([[0, 0, 0], [1, 2, 3]], dtype=float),
        rotation=np.array([[1, 0, 0, 0], [np.sqrt(0.5), np.sqrt(0.5), 0, 0]]),
    )
    bar.write(path, history)
    comm.Barrier()
    u = bar.displacement(history.eta[0]).x.array.reshape(-1, 2)
    x = fem.Function(bar.space)
    x.interpolate(lambda x: x[:2])
    x = x.x.array.reshape(-1, 2)
    values = [v.reshape(-1, 3) for _, functions in written for v in functions.values()]
    total, elastic, lifted, second_elastic = values
    assert np.array_equal(elastic, np.column_stack([u, 0 * u[:, 0]]))
    assert np.array_equal(elastic, second_elastic)
    assert np.allclose(total, elastic, atol=1e-14)
    moved = np.column_stack([x[:, 0] + u[:, 0], 0 * x[:, 0], x[:, 1] + u[:, 1]])
    start = np.column_stack([x, 0 * x[:, 0]])
    assert np.allclose(lifted, np.array([1, 2, 3]) + moved - start, atol=1e-14)
    nodes = bar.space.dofmap.index_map.size_global
    # two times, two fields, three components of eight bytes
    assert sum(f.stat().st_size for f in path.iterdir()) > 2 * 2 * 3 * 8 * nodes


def test_same_body_on_any_number_of_ranks(comm: MPI.Intracomm, bar: Reduction) -> None:
    points = {"middle": (LENGTH / 2, HEIGHT / 2), "end": (LENGTH, HEIGHT / 2)}
    model = ElasticModel(plate(MPI.COMM_SELF), STEEL, **PLATE)
    alone = reduce(model, interfaces=ENDS, num_modes=8, points=points).body
    body = bar.body
    assert body.frequencies == pytest.approx(alone.frequencies, rel=1e-9)
    for serial, shared in zip(alone.interfaces, body.interfaces, strict=True):
        assert np.allclose(serial.motion, shared.motion, atol=1e-6 * np.abs(serial.motion).max())
    for p, q in zip(alone.points, body.points, strict=True):
        assert np.allclose(p.modes, q.modes, atol=1e-6 * np.abs(p.modes).max())
    assert alone.skin is not None and body.skin is not None
    assert np.array_equal(alone.skin.triangles, body.skin.triangles)


@pytest.mark.parametrize("options", [{"interfaces": ()}, {"attached_to": "left"}])
def test_other_ways_to_reduce(comm: MPI.Intracomm, options: dict[str, Any]) -> None:
    """Bodies without interfaces or attached to one have no rigid motions among their modes."""
    arguments: dict[str, Any] = {"interfaces": ENDS, "num_modes": 4} | options
    body = reduce(ElasticModel(plate(comm), STEEL, **PLATE), **arguments).body
    # Three rigid motions are not among the modes.
    assert body.num_modes == (3 * len(arguments["interfaces"]) or 3) + 4 - 3
    assert body.frequencies.min() > 100
    if "attached_to" in options:
        assert np.abs(body.interface("left").motion).max() < 1e-9


def _holes(model: Any) -> None:
    """Add a plane rod to a model: 24 mm by 160 mm with a hole for a pin near each end."""
    occ = model.occ
    outline = occ.addRectangle(-0.012, -0.012, 0, 0.161, 0.024)
    holes = [occ.addDisk(x, 0, 0, 0.007, 0.007) for x in (0.0, 0.137)]
    (surface,), _ = occ.cut([(2, outline)], [(2, hole) for hole in holes])
    occ.synchronize()
    model.addPhysicalGroup(2, [surface[1]], name="rod")
    curves = [tag for _, tag in model.getBoundary([surface], oriented=False)]
    for name, x in (("big_end", 0.0), ("small_end", 0.137)):
        bore = [
            c for c in curves
            if model.getType(1, c) != "Line" and abs(occ.getCenterOfMass(1, c)[0] - x) < 1e-6
        ]  # fmt: skip
        model.addPhysicalGroup(1, bore, name=name)
    model.mesh.setSize(model.getEntities(0), 0.006)
    model.mesh.generate(2)
    model.mesh.setOrder(2)


def test_plane_rod_in_a_slider_crank(comm: MPI.Intracomm) -> None:
    """A rod from a curved plane mesh runs in a mechanism in space and stays in its plane."""
    rod = reduce(
        ElasticModel(build_mesh(_holes, comm), STEEL, **PLATE),
        interfaces=["big_end", "small_end"], num_modes=4, points={"middle": (0.0685, 0.0)},
    ).body  # fmt: skip
    for interface, x in zip(rod.interfaces, (0.0, 0.137), strict=True):
        assert interface.point == pytest.approx([x, 0, 0], abs=1e-8)
    area = 0.161 * 0.024 - 2 * np.pi * 0.007**2
    assert rod.total_mass == pytest.approx(STEEL.density * area * WIDTH, rel=1e-4)
    crank = {"crank_radius": 0.04, "crank_mass": 1.0, "piston_mass": 0.2, "speed": 300.0}
    run, stiff = (
        simulate(slider_crank(body, **crank), t_end=2e-3, dt=2e-5) for body in (rod, rod.rigid())
    )
    moved = run.body("rod")
    assert np.abs(moved.position[:, 2]).max() < 1e-12
    assert np.abs(moved.rotation[:, 1:3]).max() < 1e-12
    assert np.abs(moved.eta).max() > 0
    for name in ("middle", "small_end"):
        elastic, rigid = (r.sensor("rod", name) for r in (run, stiff))
        assert np.abs(elastic[:, 2]).max() < 1e-12
        assert 1e-9 < np.abs(elastic - rigid).max() < 1e-4
    assert run.constraint_violation().max() < 1e-9


def test_plane_and_solid_bar_deflect_alike(comm: MPI.Intracomm) -> None:
    """Deflections of the middle of a slider-crank's rod agree within 2 %."""
    size = (0.3, 0.008, 0.008)
    middle = {"middle": (0.15, 0.004, 0.004)}
    solid = reduce(
        box(comm, size, (16, 1, 1)), STEEL, num_modes=3, points=middle,
        interfaces={name: InterfaceSpec(axes=(0, 0, 1)) for name in ENDS},
    ).body  # fmt: skip
    model = ElasticModel(plate(comm, size[:2], (16, 1)), STEEL, plane="stress", thickness=0.008)
    thin = reduce(model, interfaces=ENDS, num_modes=3, points={"middle": (0.15, 0.004)}).body
    crank = {"crank_radius": 0.075, "crank_mass": 1.0, "piston_mass": 0.2, "speed": 100.0}
    sag = []
    for rod in (solid, thin):
        run = simulate(slider_crank(rod, ends=ENDS, **crank), t_end=0.01, dt=1e-4)
        ends = [run.sensor("rod", name)[:, :2] for name in ENDS]
        chord = ends[1] - ends[0]
        r = run.sensor("rod", "middle")[:, :2] - ends[0]
        sag.append((chord[:, 0] * r[:, 1] - chord[:, 1] * r[:, 0]) / np.linalg.norm(chord, axis=1))
    assert np.abs(sag[0]).max() > 2e-5
    assert np.abs(sag[1] - sag[0]).max() < 0.02 * np.abs(sag[0]).max()


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("needs its thickness", {"thickness": None}),
        ("thickness must be", {"thickness": -1.0}),
        ("thickness must be", {"thickness": "thin"}),
        ("plane='stress'", {"plane": None}),
        ("plane must be .*; got 'flat'", {"plane": "flat"}),
        ("'left': the points of a plane", {"interfaces": {"left": InterfaceSpec(point=(0, 0, 1))}}),
        ("'left': in a plane body the z", {"interfaces": {"left": InterfaceSpec(axes=(1, 0, 0))}}),
        ("'up': the points of a plane body have z = 0", {"points": {"up": (0.1, 0.0, 0.1)}}),
        ("point 'p' must be two or three", {"points": {"p": (0.1,)}}),
        ("'far' at .* is not in the mesh", {"points": {"far": (1.0, 0.0)}}),
        ("num_modes=5000, but the mesh has", {"num_modes": 5000}),
    ],
)
def test_invalid_arguments(comm: MPI.Intracomm, text: str, changes: dict[str, Any]) -> None:
    """Every rank raises the same error."""
    arguments: dict[str, Any] = {"interfaces": ["left"], "num_modes": 1, **PLATE} | changes
    with pytest.raises(ValueError, match=text) as error:
        flat(reduce, plate(comm, cells=(2, 1)), STEEL, **arguments)
    assert len(set(comm.allgather(str(error.value)))) == 1


def test_plane_options_in_space(comm: MPI.Intracomm) -> None:
    with pytest.raises(ValueError, match="for plane meshes"):
        reduce(ElasticModel(box(comm), STEEL, thickness=0.1), interfaces=["left"])
    with pytest.raises(ValueError, match="three coordinates"):
        reduce(box(comm), STEEL, interfaces={"left": InterfaceSpec(point=(0, 0))})


def test_line_mesh(comm: MPI.Intracomm) -> None:
    with pytest.raises(ValueError, match="volumes in space, or of faces in the plane"):
        reduce(create_unit_interval(comm, 3), STEEL, interfaces=())


def test_spaces_that_do_not_fit(comm: MPI.Intracomm) -> None:
    mesh = plate(comm, cells=(2, 1)).mesh
    space = fem.functionspace(mesh, ("Lagrange", 1, (3,)))
    with pytest.raises(ValueError, match="with 2 components"):
        ElasticModel(mesh, STEEL, space=space, **PLATE)
