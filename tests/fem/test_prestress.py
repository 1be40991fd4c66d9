"""Prestress by temperature or a specified stress: statics, buckling, free bodies."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.fem.petsc import assemble_matrix
from mpi4py import MPI
from petsc4py import PETSc
from scipy.optimize import brentq

from dolfinx_mbd import ElasticModel, InterfaceSpec
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem, rigid_motions
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.fem.prestress import prestressed
from dolfinx_mbd.forms import STEEL, Material, Temperature, elastic_stiffness, geometric_stiffness
from dolfinx_mbd.reduction import reduce
from tests.fem.test_cells import CURVED, OUTER
from tests.fem.test_materials import ENDS, grouped
from tests.forms.test_materials import ANYHOW, CARBON
from tests.models.bodies import HEIGHT, LENGTH, box
from tests.models.plates import plate

PLAIN = Material(2e11, 0.0, 8000.0, "plain", 1e-5)
OTHER = Material(1e11, 0.0, 3000.0, "other", 2.5e-5)
"""Materials with Poisson's ratio 0, for which a bar behaves as in beam theory."""


def under(
    mesh: TaggedMesh, material: Any, prestress: Any, **options: Any
) -> tuple[ElasticProblem, PETSc.Mat]:
    """Return the prestressed problem of the free body, and K_σ."""
    problem = elastic_problem(ElasticModel(mesh, material, **options))
    before = problem.stiffness.copy()
    problem = prestressed(problem, prestress, prefix="test_prestress_")
    K_sigma = problem.stiffness.copy()
    K_sigma.axpy(-1.0, before)
    return problem, K_sigma


@pytest.mark.parametrize("material", [STEEL, dataclasses.replace(CARBON, axes=ANYHOW)])
@pytest.mark.parametrize("linear", [False, True])
def test_free_expansion_leaves_no_stress(comm: MPI.Intracomm, material: Any, linear: bool) -> None:
    """Quadratic displacements represent the expansion by a uniform or linear rise exactly."""
    mesh = box(comm, cells=(4, 2, 1))
    x = ufl.SpatialCoordinate(mesh.mesh)
    rise = Temperature(100 * (1 + x[0] / LENGTH - 2 * x[1] / LENGTH) if linear else 100.0)
    problem, K_sigma = under(mesh, material, rise)
    # If the expansion were prevented, K_σ would be about α ΔT = 1e-3 of K.
    assert K_sigma.norm() < 1e-12 * problem.stiffness.norm()


def test_curvature_of_a_bimetal_strip(comm: MPI.Intracomm) -> None:
    """Timoshenko (1925): κ = 6 Δα ΔT (1+m)² / (h (3(1+m)² + (1+mn)(m² + 1/(mn)))).

    m and n are the ratios of the thicknesses and moduli, h is the whole thickness. The test
    measures at five thicknesses from the ends, where the end effects have decayed.
    """
    length, h, rise = 0.2, 0.01, 50.0
    mesh = grouped(plate(comm, (length, h), (40, 4)), lambda x: x[1] < 0.25 * h)
    problem, _ = under(
        mesh, {"a": PLAIN, "b": OTHER}, Temperature(rise), plane="stress", thickness=0.003
    )
    u = problem.prestress.displacement.x.array[: problem.num_owned].reshape(-1, 2)
    x = problem.positions
    rotations = []
    for x_section in (0.25 * length, 0.75 * length):
        edges = [np.isclose(x[:, 0], x_section) & np.isclose(x[:, 1], y) for y in (0.0, h)]
        low, high = (comm.allreduce(u[edge, 0].sum()) for edge in edges)
        rotations.append((low - high) / h)  # anticlockwise
    m, n = 0.25 / 0.75, PLAIN.young / OTHER.young
    alpha = OTHER.thermal_expansion - PLAIN.thermal_expansion  # type: ignore[operator]
    bend = 6 * alpha * rise * (1 + m) ** 2
    bend /= h * (3 * (1 + m) ** 2 + (1 + m * n) * (m**2 + 1 / (m * n)))
    # the upper layer expands more: the strip bulges upwards, and rotations clockwise along x
    assert (rotations[1] - rotations[0]) / (length / 2) == pytest.approx(-bend, rel=1e-4)
    assert problem.prestress.residual < 1e-10


def _resistance(problem: ElasticProblem, K_sigma: PETSc.Mat) -> float:
    """Return ‖K_σ R‖ / (‖K_σ‖ ‖R‖) for the rigid motions R about a point near the origin."""
    comm = problem.comm
    R = rigid_motions(problem.positions, np.full(problem.dim, 1e-3))
    force = multiply(K_sigma, R)
    size = [comm.allreduce((X**2).sum(axis=0)) for X in (force, R)]
    return float(np.sqrt((size[0] / size[1]).max()) / K_sigma.norm(PETSc.NormType.NORM_INFINITY))


def _cubic(mesh: TaggedMesh) -> Temperature:
    """Return a temperature that is not linear in space."""
    x = ufl.SpatialCoordinate(mesh.mesh)
    return Temperature(300 * (x[0] / OUTER) ** 3 + 200 * ufl.sin(80 * x[1]))


def _outer(mesh: TaggedMesh) -> Any:
    """Return a stress 1e8 x⊗x/L², Pa."""
    x = ufl.SpatialCoordinate(mesh.mesh)
    return 1e8 * ufl.outer(x, x) / LENGTH**2


def _layers(comm: MPI.Intracomm) -> TaggedMesh:
    """Return a box of two layers."""
    return grouped(box(comm), lambda x: x[1] < HEIGHT / 2)


CASES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "two materials": (_layers, {"a": PLAIN, "b": STEEL}, lambda mesh: Temperature(80.0), {}),
    "curved tetrahedra": (lambda comm: build_mesh(CURVED["tetrahedron"], comm), STEEL, _cubic, {}),
    "curved triangles": (
        lambda comm: build_mesh(CURVED["triangle"], comm),
        STEEL,
        _cubic,
        {"plane": "stress", "thickness": 0.01},
    ),
    "a stress that is not in equilibrium": (box, STEEL, _outer, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_prestress_does_not_resist_rotation(comm: MPI.Intracomm, case: str) -> None:
    """K_σ R = 0 for the self-equilibrated stress σ₀, but not for the specified stress σᵢ."""
    make, material, prestress, options = CASES[case]
    mesh = make(comm)
    problem, K_sigma = under(mesh, material, prestress(mesh), **options)
    u, v = ufl.TrialFunction(problem.space), ufl.TestFunction(problem.space)
    state, stress = problem.prestress, prestress(mesh)
    specified = (
        problem.materials.thermal_stress(stress.rise) if isinstance(stress, Temperature) else stress
    )  # type: ignore[union-attr]
    form = fem.form(geometric_stiffness(u, v, specified, state.measure))
    K_specified = assemble_matrix(form)
    K_specified.assemble()
    assert _resistance(problem, K_specified) > 1e-3
    assert _resistance(problem, K_sigma) < 1e-9
    assert state.residual < 1e-10
    # equilibrium without loads, tested with linear displacements: ∫σ₀ dV = 0
    dim = problem.dim
    unit = fem.Constant(mesh.mesh, np.zeros((dim, dim)))
    mean, square = (fem.form(ufl.inner(f, g) * state.measure) for f, g in
                  ((state.stress, unit), (state.stress, state.stress)))  # fmt: skip
    volume = comm.allreduce(fem.assemble_scalar(fem.form(1.0 * state.measure)))
    norm = np.sqrt(comm.allreduce(fem.assemble_scalar(square)) * volume)
    for i, j in np.ndindex(dim, dim):
        unit.value[:] = 0.0
        unit.value[i, j] = 1.0
        assert abs(comm.allreduce(fem.assemble_scalar(mean))) < 1e-9 * norm


def _first_clamped_square(load: float, stiffness: float, mass: float, length: float) -> float:
    """Return the first ω² of a clamped beam under compression: EI w'''' + P w'' = ω² ρA w.

    The arguments are P, EI, the mass ρA per length, and the length.
    """
    k = load / (2 * stiffness)

    def determinant(square: float) -> float:
        root = np.sqrt(k**2 + mass * square / stiffness)
        a, b = np.sqrt(root + k) * length, np.sqrt(root - k) * length
        rows = [
            [0, 1, 0, 1],
            [a, 0, b, 0],
            [np.sin(a), np.cos(a), np.sinh(b), np.cosh(b)],
            [a * np.cos(a), -a * np.sin(a), b * np.cosh(b), b * np.sinh(b)],
        ]
        return float(np.linalg.det(np.array(rows)))

    unit = stiffness / (mass * length**4)
    steps = np.linspace(1.0, 2500.0, 2500) * unit  # without load the first root is 500.6
    values = [determinant(s) for s in steps]
    first = next(i for i in range(len(steps) - 1) if values[i] * values[i + 1] < 0)
    return float(brentq(determinant, steps[first], steps[first + 1], xtol=1e-10 * unit))


LONG, THIN = 0.5, 0.005
CRITICAL = 4 * np.pi**2 * THIN**2 / 12 / LONG**2
"""Strain at which a clamped strip buckles: P = 4π²EI/L² over EA."""

SHEAR = CRITICAL * PLAIN.young / (5 / 6 * PLAIN.shear)
"""P over the shear stiffness 5/6 GA, 8e-4: relative decrease of the buckling load by shear."""


def strip(comm: MPI.Intracomm) -> TaggedMesh:
    """Return a thin plane strip."""
    return plate(comm, (LONG, THIN), (16, 1))


def first_square(comm: MPI.Intracomm, prestress: Any) -> float:
    """Return ω² of the first mode of a clamped strip with a prestress."""
    model = ElasticModel(
        strip(comm), PLAIN, degree=3, plane="stress", thickness=0.01, prestress=prestress
    )
    modes = modal_analysis(model, num_modes=1, held=ENDS)
    return float((2 * np.pi * modes.frequencies[0]) ** 2)


@pytest.mark.parametrize("fraction", [0.7, -1.5])
def test_clamped_strip_that_is_heated_or_cooled(comm: MPI.Intracomm, fraction: float) -> None:
    """With σ = −EαΔT, the ratio of ω² to its value without stress is that of a beam."""
    # EI and ρA per width
    stiffness, mass = PLAIN.young * THIN**3 / 12, PLAIN.density * THIN
    load = fraction * CRITICAL * PLAIN.young * THIN
    loaded, free = (_first_clamped_square(P, stiffness, mass, LONG) for P in (load, 0.0))
    exact = loaded / free
    at_rest = first_square(comm, None)
    rise = fraction * CRITICAL / PLAIN.thermal_expansion  # type: ignore[operator]
    within = 2 * SHEAR  # the reference is a beam without shear
    assert first_square(comm, Temperature(rise)) / at_rest == pytest.approx(exact, abs=within)
    stress = ufl.as_matrix([[-fraction * CRITICAL * PLAIN.young, 0.0], [0.0, 0.0]])
    assert first_square(comm, stress) / at_rest == pytest.approx(exact, abs=within)


def test_buckling_temperature(comm: MPI.Intracomm) -> None:
    """Below ΔT = 4π²I/(αAL²) the clamped strip vibrates slowly; above it an error is raised."""
    critical = CRITICAL / PLAIN.thermal_expansion  # type: ignore[operator]
    critical /= 1 + SHEAR
    low = first_square(comm, Temperature(0.998 * critical))
    assert 0 < low < 0.01 * first_square(comm, None)
    with pytest.raises(FactorizationError, match="unstable: a part of its prestress"):
        first_square(comm, Temperature(1.002 * critical))


def test_heat_across_a_strip_softens_its_torsion(comm: MPI.Intracomm) -> None:
    """T = ΔT (2y/b)²: in the middle σ_x = −EαΔT((2y/b)² − 1/3), so ∫σ_x r² dA = −EαΔT t b³/45.

    The torsional stiffness GJ decreases by this integral (Wagner), which is the geometric
    stiffness of a twist θ'x.
    """
    length, b, t, rise = 0.4, 0.04, 0.002, 100.0
    mesh = box(comm, (length, b, t), (16, 2, 1))
    x = ufl.SpatialCoordinate(mesh.mesh)
    y, z = x[1] - b / 2, x[2] - t / 2
    problem, _ = under(mesh, PLAIN, Temperature(rise * (2 * y / b) ** 2), degree=3)
    middle = ufl.conditional(abs(x[0] - length / 2) < length / 8, 1.0, 0.0)
    twist = ufl.as_vector([0.0, -(x[0] - length / 2) * z, (x[0] - length / 2) * y])
    form = geometric_stiffness(twist, twist, problem.prestress.stress, problem.prestress.measure)
    (integral,) = form.integrals()
    moment = comm.allreduce(
        fem.assemble_scalar(fem.form(middle * integral.integrand() * problem.prestress.measure))
    )
    exact = -PLAIN.young * PLAIN.thermal_expansion * rise * t * b**3 / 45  # type: ignore[operator]
    assert moment / (length / 4) == pytest.approx(exact, rel=1e-3)


def heated(comm: MPI.Intracomm) -> tuple[TaggedMesh, Temperature]:
    """Return a strip whose edges are hotter than its middle."""
    mesh = box(comm, (0.2, 0.03, 0.002), (8, 2, 1))
    y = ufl.SpatialCoordinate(mesh.mesh)[1] - 0.015
    return mesh, Temperature(400 * (y / 0.015) ** 2)


def test_reduced_body_has_the_prestressed_frequencies(comm: MPI.Intracomm) -> None:
    """With free interfaces, frequencies converge from above to those of modal analysis."""
    mesh, hot = heated(comm)
    free = modal_analysis(ElasticModel(mesh, PLAIN, prestress=hot), num_modes=4)
    assert free.num_rigid == 6
    cold = modal_analysis(mesh, PLAIN, num_modes=4).frequencies
    assert np.abs(free.frequencies / cold - 1).max() > 0.02
    body = reduce(
        ElasticModel(mesh, PLAIN, prestress=hot),
        interfaces=InterfaceSpec.each(ENDS, "averaged"),
        num_modes=12,
    ).body
    assert (body.frequencies[:4] > free.frequencies * (1 - 1e-9)).all()
    assert body.frequencies[:4] == pytest.approx(free.frequencies, rel=1e-3)
    assert body.provenance["prestress"] == "temperature, a function of space"
    assert body.stiffening is not None
    exact = reduce(ElasticModel(mesh, PLAIN, prestress=hot), interfaces=(), num_modes=4).body
    assert exact.frequencies == pytest.approx(free.frequencies, rel=1e-8)


def test_same_on_any_number_of_ranks(comm: MPI.Intracomm) -> None:
    results = []
    for c in (MPI.COMM_SELF, comm):
        mesh, hot = heated(c)
        results.append(
            reduce(ElasticModel(mesh, PLAIN, prestress=hot), interfaces=ENDS, num_modes=4).body
        )
    assert results[0].frequencies == pytest.approx(results[1].frequencies, rel=1e-9)


def test_a_free_body_may_buckle_too(comm: MPI.Intracomm) -> None:
    """A free strip with hot edges buckles in torsion."""
    mesh, hot = heated(comm)
    hotter = Temperature(20 * hot.rise)
    text = "unstable: a part of its prestress"
    with pytest.raises(FactorizationError, match=text):
        modal_analysis(ElasticModel(mesh, PLAIN, prestress=hotter), num_modes=1)
    with pytest.raises(FactorizationError, match=text):
        reduce(ElasticModel(mesh, PLAIN, prestress=hotter), interfaces=["left"], num_modes=2)


def test_prestress_of_a_uniform_temperature_is_named(comm: MPI.Intracomm) -> None:
    mesh = grouped(box(comm), lambda x: x[0] < LENGTH / 2)
    material = {"a": PLAIN, "b": OTHER}
    body = reduce(
        ElasticModel(mesh, material, degree=1, prestress=Temperature(-40.0)),
        interfaces=(),
        num_modes=1,
    ).body
    assert body.provenance["prestress"] == "temperature -40 K"


SKEW = ufl.as_matrix([[0, 1, 0], [0, 0, 0], [0, 0, 1]])
DEAD = dataclasses.replace(PLAIN, thermal_expansion=None)
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("a number", {"prestress": 3.0}, r"Temperature\(rise\) or a symmetric stress .*; got 3.0"),
    ("a vector", {"prestress": ufl.as_vector([1.0] * 3)}, r"got shape \(3,\)"),
    ("no symmetry", {"prestress": SKEW}, "not symmetric"),
    ("no expansion", {"material": DEAD}, "^thermal_expansion must be set for material 'plain'"),
]


@pytest.mark.parametrize(("changes", "text"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_invalid_arguments(comm: MPI.Intracomm, changes: dict[str, Any], text: str) -> None:
    options = {"material": PLAIN, "prestress": Temperature(1.0)} | changes
    with pytest.raises(ValueError, match=text):
        modal_analysis(ElasticModel(box(comm), degree=1, **options), num_modes=1)


def test_own_stiffness_has_no_known_stress(comm: MPI.Intracomm) -> None:
    mesh = box(comm)
    V = fem.functionspace(mesh.mesh, ("Lagrange", 1, (3,)))
    form = elastic_stiffness(ufl.TrialFunction(V), ufl.TestFunction(V), STEEL)
    with pytest.raises(ValueError, match="prestress needs a material, whose stress is known"):
        reduce(
            ElasticModel(mesh, STEEL, space=V, stiffness=form, prestress=Temperature(1.0)),
            interfaces=(),
        )


def test_temperature_with_nan(comm: MPI.Intracomm) -> None:
    mesh = box(comm)
    rise = Temperature(ufl.sqrt(ufl.SpatialCoordinate(mesh.mesh)[0] - LENGTH / 2))
    with pytest.raises(ValueError, match="initial stress is not finite everywhere"):
        modal_analysis(ElasticModel(mesh, PLAIN, degree=1, prestress=rise), num_modes=1)
