"""Bodies of several, orthotropic and graded materials, against closed forms."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import meshtags
from mpi4py import MPI
from petsc4py import PETSc
from scipy.linalg import eigh

from dolfinx_mbd import ElasticModel, InterfaceSpec
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.material_fields import body_materials
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL, GradedMaterial, Material, Orthotropic, material
from dolfinx_mbd.reduction import reduce
from tests.forms.test_materials import ANYHOW, CARBON, same_as, turn
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, dynamic_stiffness
from tests.models.plates import plate

ENDS = ("left", "right")
BRONZE = material("bronze")
AREA = HEIGHT * WIDTH
STIFF, SOFT = Material(2e11, 0.0, 8000.0, "stiff"), Material(5e10, 0.0, 2000.0, "soft")
"""Materials with Poisson's ratio 0, for which a bar behaves as in beam theory."""


def grouped(mesh: TaggedMesh, inside: Callable[[np.ndarray], np.ndarray]) -> TaggedMesh:
    """Return the mesh with two groups of cells: "a" with centres `inside`, and "b"."""
    plain = mesh.mesh
    dim = plain.topology.dim
    cells = np.arange(plain.topology.index_map(dim).size_local, dtype=np.int32)
    centres = plain.geometry.x[compat.geometry_dofmap(plain)[cells]].mean(axis=1).T
    values = np.where(inside(centres), 11, 12).astype(np.int32)
    groups = {name: pair for name, pair in mesh.groups.items() if pair[0] < dim}
    groups |= {"a": (dim, 11), "b": (dim, 12)}
    return TaggedMesh(plain, meshtags(plain, dim, cells, values), mesh.facet_tags, groups)


def halves(comm: MPI.Intracomm, **options: Any) -> TaggedMesh:
    """Return the bar with two groups of cells along x."""
    return grouped(box(comm, **options), lambda x: x[0] < LENGTH / 2)


def flexibility(body: ReducedBody, row: int = 0) -> float:
    """Return the relative motion of the ends of a bar under opposite unit forces or moments."""
    motion = body.interface("right").motion[row] - body.interface("left").motion[row]
    return float(motion @ np.linalg.solve(body.stiffness, motion))


def difference(A: PETSc.Mat, B: PETSc.Mat) -> float:
    """Return the norm of A − B relative to that of B; A is overwritten."""
    A.axpy(-1.0, B)
    return A.norm() / B.norm()


PLANES: list[dict[str, Any]] = [{}] + [
    {"plane": p, "thickness": 0.01} for p in ("strain", "stress")
]


@pytest.mark.slow
@pytest.mark.parametrize("options", PLANES, ids=["space", "strain", "stress"])
def test_the_same_isotropic_matrices(comm: MPI.Intracomm, options: dict[str, Any]) -> None:
    """Orthotropic with any axes, graded, or in two groups: K and M agree up to round-off."""
    dim = 2 if options else 3
    mesh = grouped(plate(comm) if options else box(comm), lambda x: x[0] < LENGTH / 3)
    x = ufl.SpatialCoordinate(mesh.mesh)
    isotropic = elastic_problem(ElasticModel(mesh, STEEL, degree=1, **options))
    Q = ANYHOW if dim == 3 else turn(2, 0.7)
    rotated = same_as(STEEL, axes=ufl.as_matrix(Q[:dim, :dim].tolist()))
    graded = GradedMaterial(STEEL.young + x[0] - x[0], STEEL.poisson, STEEL.density + x[0] - x[0])
    others: list[Any] = [
        same_as(STEEL, axes=Q),
        graded,
        {"a": STEEL, "b": dataclasses.replace(STEEL, name="other")},
        {"b": same_as(STEEL), "a": STEEL},
        {"a": graded, 12: rotated},
    ]
    for other in others:
        problem = elastic_problem(ElasticModel(mesh, other, degree=1, **options))
        assert difference(problem.stiffness, isotropic.stiffness) < 1e-12
        assert difference(problem.scalar_mass, isotropic.scalar_mass) < 1e-13
        problem.destroy()
    isotropic.destroy()


def test_fibres_that_turn(comm: MPI.Intracomm) -> None:
    """The stiffness along circular fibres is that of E₁, across them that of E₂.

    For a unit stretch along the fibres, ∫σ:ε is C₁₁ times the area, 0.5; the axes are UFL.
    """
    mesh = plate(comm, (1.0, 0.5), (4, 2), origin=(1.0, 1.0)).mesh
    x = ufl.SpatialCoordinate(mesh)
    r = ufl.sqrt(ufl.dot(x, x))
    axes = ufl.as_matrix([[-x[1] / r, x[0] / r], [-x[0] / r, -x[1] / r]])
    law = body_materials(mesh, dataclasses.replace(CARBON, axes=axes), plane="stress").law
    along = ufl.as_vector([axes[0, 0], axes[1, 0]])
    across = ufl.as_vector([axes[0, 1], axes[1, 1]])
    C = CARBON.matrix(2, "stress")
    for k, e in enumerate((along, across)):
        form = fem.form(ufl.inner(law(ufl.outer(e, e)), ufl.outer(e, e)) * ufl.dx(degree=6))
        work = comm.allreduce(fem.assemble_scalar(form))
        assert work == pytest.approx(0.5 * C[k, k], rel=1e-12)


@pytest.mark.parametrize("angle", [0.0, 0.5])
def test_tension_along_and_across_the_fibres(comm: MPI.Intracomm, angle: float) -> None:
    """A bar pulled at averaged ends stretches by F L/(E_x A) with free shear and contraction.

    1/E_x = c⁴/E₁ + s⁴/E₂ + (1/G₁₂ − 2ν₁₂/E₁) s²c² with c and s of the angle of the fibres.
    """
    (e1, e2, _), nu, g = CARBON.young, CARBON.poisson[0], CARBON.shear[0]
    c, s = np.cos(angle), np.sin(angle)
    exact = (c**4 / e1 + s**4 / e2 + (1 / g - 2 * nu / e1) * s**2 * c**2) * LENGTH / AREA
    fibres = dataclasses.replace(CARBON, axes=turn(2, angle))
    body = reduce(
        box(comm), fibres, interfaces=InterfaceSpec.each(ENDS, "averaged"), num_modes=0
    ).body
    assert flexibility(body) == pytest.approx(exact, rel=1e-8)


def test_two_bars_in_series(comm: MPI.Intracomm) -> None:
    """Without Poisson's ratio, the compliance is ΣL/(E A); mass and centre are exact."""
    body = reduce(
        halves(comm),
        {"a": STIFF, "b": SOFT},
        interfaces=InterfaceSpec.each(ENDS, "averaged"),
        num_modes=0,
    ).body
    exact = LENGTH / (2 * AREA) * (1 / STIFF.young + 1 / SOFT.young)
    assert flexibility(body) == pytest.approx(exact, rel=1e-8)
    assert body.total_mass == pytest.approx(AREA * LENGTH * 5000, rel=1e-12)
    centre = LENGTH * (0.25 * 8000 + 0.75 * 2000) / 10000
    assert body.centre == pytest.approx([centre, HEIGHT / 2, WIDTH / 2], rel=1e-12)


def test_composite_beam_in_bending(comm: MPI.Intracomm) -> None:
    """Opposite moments M at rigid ends of two layers rotate the ends by M L/EI.

    Plane sections stay plane, exactly; EI is about the neutral axis, y₀ = ΣE A y/ΣE A, as no
    force acts.
    """
    mesh = grouped(box(comm, cells=(4, 4, 1)), lambda x: x[1] < HEIGHT / 4)
    body = reduce(mesh, {"a": STIFF, "b": SOFT}, interfaces=ENDS, num_modes=0).body
    low, high = np.array([0, 0.25]) * HEIGHT, np.array([0.25, 1]) * HEIGHT
    young = np.array([STIFF.young, SOFT.young])
    area, first, second = (np.sum(young * WIDTH * (high**k - low**k) / k) for k in (1, 2, 3))
    rigidity = second - first**2 / area
    assert flexibility(body, 5) == pytest.approx(LENGTH / rigidity, rel=1e-8)


def test_graded_bar(comm: MPI.Intracomm) -> None:
    """If E and ρ double along the bar, its elongation is F L ln 2/(E A)."""
    mesh = box(comm, cells=(6, 1, 1))
    growth = 1 + ufl.SpatialCoordinate(mesh.mesh)[0] / LENGTH
    graded = GradedMaterial(STIFF.young * growth, 0.0, 1000 * growth, "graded")
    body = reduce(mesh, graded, interfaces=InterfaceSpec.each(ENDS, "averaged"), num_modes=0).body
    assert body.total_mass == pytest.approx(1500 * AREA * LENGTH, rel=1e-12)
    assert body.centre[0] == pytest.approx(5 / 9 * LENGTH, rel=1e-12)
    exact = np.log(2) * LENGTH / (STIFF.young * AREA)
    assert flexibility(body) == pytest.approx(exact, rel=1e-6)
    assert body.provenance["young (Pa)"] == "a function of space"


def test_modulus_as_a_function_on_the_mesh(comm: MPI.Intracomm) -> None:
    """E and ρ scaled by the same user-defined `Function` do not change the frequencies."""
    mesh = box(comm)
    factor = fem.Function(fem.functionspace(mesh.mesh, ("DG", 0)))
    factor.x.array[:] = 2.0
    graded = GradedMaterial(factor * STEEL.young, STEEL.poisson, factor * STEEL.density)
    frequencies = modal_analysis(mesh, graded, num_modes=3).frequencies
    assert frequencies == pytest.approx(
        modal_analysis(mesh, STEEL, num_modes=3).frequencies, rel=1e-9
    )


def test_one_material_in_two_groups(comm: MPI.Intracomm) -> None:
    """The body is the same to round-off, geometric stiffening included."""
    mesh = halves(comm)
    bodies = [
        reduce(mesh, m, interfaces=ENDS, num_modes=4).body
        for m in (STEEL, {"a": STEEL, "b": STEEL}, {"a": STEEL, "b": same_as(STEEL)})
    ]
    for body in bodies[1:]:
        assert np.diag(body.stiffness) == pytest.approx(np.diag(bodies[0].stiffness), rel=1e-9)
        for k in range(6):
            a, b = (
                eigh(each.stiffening.spin[k], each.stiffness, eigvals_only=True)
                for each in (body, bodies[0])
                if each.stiffening is not None
            )
            assert np.allclose(a, b, rtol=0, atol=1e-9 * np.abs(b).max())


def test_a_sandwich_buckles_at_eulers_load(comm: MPI.Intracomm) -> None:
    """Euler's load, π²EI/L² with EI of the layers, is reduced by shear: 1/P = 1/P_E + 1/S.

    1/S = ∫τ²/G dA for a unit shear force, τ from the equilibrium of the layers.
    """
    length, h = 0.4, 0.01
    mesh = grouped(box(comm, (length, h, h), (16, 4, 2)), lambda x: np.abs(x[1] - h / 2) > h / 4)
    skins, core = STIFF, Material(1e11, 0.0, 1000.0)
    body = reduce(mesh, {"a": skins, "b": core}, interfaces=ENDS, num_modes=6).body
    assert body.stiffening is not None
    # unit forces along x at both ends, which pull
    tension = body.stiffening.interfaces[1, 0] - body.stiffening.interfaces[0, 0]
    loads = 1 / eigh(tension, body.stiffness, eigvals_only=True)[::-1]
    y = (np.arange(4000) + 0.5) / 4000 * h - h / 2
    in_skins = np.abs(y) > h / 4
    young = np.where(in_skins, skins.young, core.young)
    shear = np.where(in_skins, skins.shear, core.shear)
    flexural = np.sum(young * y**2) * h * h / 4000
    flow = np.cumsum(young * y) * h * h / 4000 / flexural  # τ h of a unit shear force
    compliance = np.sum(flow**2 / (shear * h)) * h / 4000
    euler = np.pi**2 * flexural / length**2
    about_z = 1 / (1 / euler + compliance)
    about_y = np.pi**2 * (skins.young + core.young) / 2 * h**4 / 12 / length**2
    # shear deformation of a rectangle, factor 6/5
    about_y *= 1 - 1.2 * about_y / ((skins.shear + core.shear) / 2 * h**2)
    # The column bends about z, with the layers on top of each other, and about y, side by side.
    assert loads[0] == pytest.approx(min(about_y, about_z), rel=0.004)
    assert loads[1] == pytest.approx(max(about_y, about_z), rel=0.004)


def test_orthotropic_cantilever(comm: MPI.Intracomm) -> None:
    """A slender bar with axial fibres vibrates like a Timoshenko beam of E₁ and G₁₂."""
    length, h = 0.6, 0.01
    fibres = dataclasses.replace(CARBON, poisson=(0.0, 0.0, 0.0))
    mesh = box(comm, (length, h, h), (12, 1, 1))
    frequency = modal_analysis(mesh, fibres, num_modes=1, held=["left"]).frequencies[0]
    rho, e = CARBON.density, CARBON.young[0]
    euler = 1.8751040687**2 / (2 * np.pi) * np.sqrt(e * h**2 / 12 / rho) / length**2
    # Dunkerley: 1/f² = 1/f_bending² + 1/f_shear², a shear cantilever of stiffness 5/6 GA
    shear = np.sqrt(5 / 6 * CARBON.shear[1] / rho) / (4 * length)
    lowest = 1 / np.sqrt(1 / euler**2 + 1 / shear**2)
    assert lowest < frequency < euler
    assert frequency == pytest.approx(lowest, rel=0.005)


@pytest.mark.parametrize("plane", ["strain", "stress"])
def test_stress_across_a_plane_body(comm: MPI.Intracomm, plane: Any) -> None:
    """In plane strain, σ_zz follows from the material law of the solid; in plane stress it is 0."""
    mesh = grouped(plate(comm), lambda x: x[0] < LENGTH / 2)
    rotated = dataclasses.replace(CARBON, axes=turn(2, 0.5))
    as_ufl = dataclasses.replace(CARBON, axes=ufl.as_matrix(turn(2, 0.5)[:2, :2].tolist()))
    G = 1e-3 * np.array([[1.0, 0.4], [-0.2, 0.7]])
    eps = (G + G.T) / 2
    strains = np.array([eps[0, 0], eps[1, 1], 0, 0, 0, 2 * eps[0, 1]])
    if plane == "strain":
        expected = [STEEL.lame * np.trace(eps), (rotated.matrix() @ strains)[2]]
    else:
        expected = [0.0, 0.0]
    for fibres in (rotated, as_ufl):
        materials = {"a": STEEL, "b": fibres}
        model = ElasticModel(mesh, materials, degree=1, plane=plane, thickness=0.01)
        reduction = reduce(model, interfaces=(), num_modes=1)
        u = fem.Function(reduction.space)
        u.interpolate(lambda x: G @ x[:2])
        assert reduction.stress is not None
        sigma = reduction.stress(u)
        assert sigma.ufl_shape == (3, 3)
        dx = ufl.dx(domain=mesh.mesh, subdomain_data=mesh.cell_tags)
        for tag, value in zip((11, 12), expected, strict=True):
            force = comm.allreduce(fem.assemble_scalar(fem.form(sigma[2, 2] * dx(tag))))
            assert force == pytest.approx(value * LENGTH * HEIGHT / 2, rel=1e-9, abs=1e-9)


def _mixed(comm: MPI.Intracomm) -> ReducedBody:
    """Return a body of carbon fibres and bronze."""
    made_of = {"a": dataclasses.replace(CARBON, axes=ANYHOW), "b": BRONZE}
    return reduce(halves(comm), made_of, interfaces=ENDS, num_modes=6).body


def test_same_body_on_any_number_of_ranks(comm: MPI.Intracomm) -> None:
    """Two materials, one orthotropic: eigenvalues agree to 1e-9, dynamic stiffness to 1e-8."""
    alone, shared = _mixed(MPI.COMM_SELF), _mixed(comm)
    assert np.diag(shared.stiffness) == pytest.approx(np.diag(alone.stiffness), rel=1e-9)
    assert shared.total_mass == pytest.approx(alone.total_mass, rel=1e-12)
    omega = 1.3 * 2 * np.pi * alone.frequencies[0]
    a, b = dynamic_stiffness(alone, omega), dynamic_stiffness(shared, omega)
    scale = np.sqrt(np.abs(np.outer(np.diag(a), np.diag(a))))
    assert (np.abs(a - b) / scale).max() < 1e-8


def _eye(model: Any) -> None:
    """Return an eye with a bush: volumes "shank" and "bush" with a common surface, and "bore"."""
    occ = model.occ
    flat = (3, occ.addBox(-0.02, -0.02, 0, 0.08, 0.04, 0.01))
    round_ = [(3, occ.addCylinder(0, 0, 0, 0, 0, 0.01, radius)) for radius in (0.012, 0.009)]
    occ.fragment([flat], round_)
    occ.synchronize()
    bodies = sorted((tag for _, tag in model.getEntities(3)), key=lambda t: occ.getMass(3, t))
    bush, core, shank = bodies
    model.removeEntities([(3, core)])
    occ.remove([(3, core)])
    occ.synchronize()
    model.addPhysicalGroup(3, [shank], name="shank")
    model.addPhysicalGroup(3, [bush], name="bush")
    inner = [
        tag
        for _, tag in model.getBoundary([(3, bush)], oriented=False)
        if abs(occ.getMass(2, tag) - 2 * np.pi * 0.009 * 0.01) < 1e-9
    ]
    model.addPhysicalGroup(2, inner, name="bore")
    model.mesh.setSize(model.getEntities(0), 0.006)
    model.mesh.generate(3)
    model.mesh.setOrder(2)


def test_named_volumes_from_gmsh(comm: MPI.Intracomm) -> None:
    """The mass is that of an eye and its bronze bush, and the summary names both."""
    pytest.importorskip("gmsh")
    made_of = {"shank": STEEL, "bush": BRONZE}
    body = reduce(build_mesh(_eye, comm), made_of, interfaces=["bore"], num_modes=1).body
    shank = 0.01 * (0.08 * 0.04 - np.pi * 0.012**2)
    bush = 0.01 * np.pi * (0.012**2 - 0.009**2)
    assert body.total_mass == pytest.approx(STEEL.density * shank + BRONZE.density * bush, rel=1e-3)
    assert body.provenance["material"] == "shank: steel, bush: bronze"


def test_plain_mesh_with_cell_tags(comm: MPI.Intracomm) -> None:
    """Groups of cells may be selected by tag or by name."""
    mesh = halves(comm)
    named = modal_analysis(mesh, {"a": STEEL, "b": BRONZE}, num_modes=2).frequencies
    tags: Any = mesh.cell_tags
    tagged = modal_analysis(
        ElasticModel(mesh.mesh, {11: STEEL, 12: BRONZE}, cell_tags=tags), num_modes=2
    )
    assert tagged.frequencies == pytest.approx(named, rel=1e-12)


def test_summary_names_all_materials(comm: MPI.Intracomm) -> None:
    body = _mixed(comm)
    assert body.provenance["material"] == "a: carbon fibre, b: bronze"
    assert body.provenance["b: young (Pa)"] == BRONZE.young
    assert body.provenance["a: shear 23 (Pa)"] == CARBON.shear[2]
    assert body.provenance["a: density (kg/m^3)"] == CARBON.density
    assert "a: carbon fibre, b: bronze" in body.summary()


def test_units_of_every_material(comm: MPI.Intracomm) -> None:
    """Warnings for both materials name E that seems to be in GPa; functions are not checked."""
    wrong = dataclasses.replace(CARBON, young=(135.0, 10.0, 8.0), shear=(5.0, 4.5, 3.5))
    groups = {"a": Material(100.0, 0.3, 8000.0), "b": wrong}
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        reduce(ElasticModel(halves(comm), groups, degree=2), interfaces=(), num_modes=1)
    messages = [str(w.message) for w in records if w.filename == __file__]
    assert [text.split(" Pa")[0] for text in messages] == [
        "implausible: E = 100", "implausible: E = 135"
    ]  # fmt: skip
    x = ufl.SpatialCoordinate((mesh := box(comm)).mesh)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graded = GradedMaterial(1e11 + x[0], 0.3, 8000.0)
        reduce(ElasticModel(mesh, graded, degree=2), interfaces=(), num_modes=1)


def _other_mesh() -> GradedMaterial:
    """Return a graded material that is defined on another mesh."""
    x = ufl.SpatialCoordinate(box(MPI.COMM_WORLD).mesh)
    return GradedMaterial(1e11 + x[0], 0.3, 8000.0)


BAD: list[tuple[str, Callable[[TaggedMesh], Any], str]] = [
    (
        "a group without material",
        lambda m: {"a": STEEL},
        r"24 of the 48 cells have no material: 24 in the group 'b'; give each group",
    ),
    ("an unknown group", lambda m: {"a": STEEL, "c": STEEL}, "unknown region 'c'; .*'a', 'b'"),
    (
        "a group twice",
        lambda m: {"a": STEEL, 11: BRONZE, "b": STEEL},
        "24 cells have two materials, those of the groups 'a' and 11",
    ),
    ("a tag without cells", lambda m: {"a": STEEL, 7: STEEL}, "group of cells 7, .* has no cells"),
    ("no group at all", lambda m: {}, "must not be empty"),
    ("a key that is none", lambda m: {1.5: STEEL}, "by the name or the tag of a group .* got 1.5"),
    (
        "axes that are no rotation",
        lambda m: same_as(STEEL, axes=2 * ufl.Identity(3)),
        "axes of an orthotropic material are not a rotation everywhere",
    ),
    (
        "axes of a plane body",
        lambda m: same_as(STEEL, axes=ufl.as_matrix(np.eye(2).tolist())),
        r"^axes must be of shape \(3, 3\); got .* \(2, 2\)",
    ),
    ("a modulus of another mesh", lambda m: _other_mesh(), "given on another mesh"),
    (
        "a modulus that is negative somewhere",
        lambda m: GradedMaterial(1e11 * (ufl.SpatialCoordinate(m.mesh)[0] - 0.05), 0.3, 1.0),
        "stiffness is not positive everywhere",
    ),
    (
        "a density that is negative somewhere",
        lambda m: GradedMaterial(1e11, 0.3, ufl.SpatialCoordinate(m.mesh)[0] - 0.05),
        "density is not positive everywhere",
    ),
]


@pytest.mark.parametrize(("made_of", "text"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_refused(comm: MPI.Intracomm, made_of: Any, text: str) -> None:
    mesh = halves(comm, cells=(12, 2, 2))
    with pytest.raises(ValueError, match=text) as error:
        elastic_problem(ElasticModel(mesh, made_of(mesh), degree=1))
    assert len(set(comm.allgather(str(error.value)))) == 1


def test_cells_without_tag(comm: MPI.Intracomm) -> None:
    mesh = box(comm, cells=(12, 1, 1))
    owned = np.arange(mesh.mesh.topology.index_map(3).size_local, dtype=np.int32)
    x = mesh.mesh.geometry.x[compat.geometry_dofmap(mesh.mesh)[owned]].mean(axis=1)[:, 0]
    tagged = owned[x < LENGTH / 2]
    tags = meshtags(mesh.mesh, 3, tagged, np.full(len(tagged), 1, dtype=np.int32))
    with pytest.raises(ValueError, match="6 of the 12 cells have no material: 6 without a tag"):
        elastic_problem(ElasticModel(mesh.mesh, {1: STEEL}, cell_tags=tags))
    with pytest.raises(ValueError, match="a plain mesh has no group names"):
        elastic_problem(ElasticModel(mesh.mesh, {"a": STEEL}, cell_tags=tags))
    with pytest.raises(ValueError, match="tag 1, but no cell_tags were given"):
        elastic_problem(ElasticModel(mesh.mesh, {1: STEEL}))
    with pytest.raises(ValueError, match="must tag cells"):
        elastic_problem(ElasticModel(mesh.mesh, {1: STEEL}, cell_tags=mesh.facet_tags))


def test_arguments_that_are_not_materials(comm: MPI.Intracomm) -> None:
    with pytest.raises(TypeError, match=r"expected a material, got 'steel'; .*material\('steel'\)"):
        elastic_problem(ElasticModel(halves(comm), {"a": STEEL, "b": "steel"}))  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="expected a material, got None"):
        elastic_problem(ElasticModel(halves(comm), {"a": STEEL, "b": None}))  # type: ignore[dict-item]


def test_plane_without_symmetry(comm: MPI.Intracomm) -> None:
    rotated = dataclasses.replace(CARBON, axes=turn(0, 0.5))
    with pytest.raises(ValueError, match=r"^axes must be .* z is one of the axes"):
        elastic_problem(ElasticModel(plate(comm), rotated, plane="stress", thickness=0.01))


def test_orthotropic_is_exported() -> None:
    import dolfinx_mbd as mbd

    assert mbd.forms.Orthotropic is Orthotropic
    assert mbd.forms.material("bronze") is BRONZE
