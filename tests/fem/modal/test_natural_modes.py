"""Natural frequencies against closed forms and Rayleigh-Ritz (case V8), and the counts.

V8 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import ElasticModel
from dolfinx_mbd.errors import AccuracyWarning
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import STEEL, Material, elastic_stiffness
from tests.fem.linalg.solver_calls import calls_of_solvers
from tests.models.bodies import box

# CUBE: ω a √(ρ/G) of a cube with side a and ν = 0.3; BAR: frequencies of a bar in Hz.
CUBE = [2.85605] * 2 + [3.84598] * 3 + [3.91125] * 3 + [np.pi * np.sqrt(2)] * 3
BAR = [3311.33, 5286.47, 8732.7, 9533.2, 13132.0, 16171.7]
V8 = 3e-3  # relative error of case V8 with quadratic elements


@pytest.mark.parametrize("side", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("material", [STEEL, Material(1.0, 0.3, 1.0)])
def test_free_cube_of_any_size_and_units(
    comm: MPI.Intracomm, side: float, material: Material
) -> None:
    """V8 has triple modes; a Krylov method finds all of them only if it counts eigenvalues."""
    modes = modal_analysis(box(comm, [side] * 3, (4, 4, 4)), material, num_modes=11)
    omega = 2 * np.pi * modes.frequencies * side * np.sqrt(material.density / material.shear)
    assert omega == pytest.approx(CUBE, rel=V8)
    assert (omega > CUBE * np.array(1 - 1e-5)).all()  # the references have six digits
    assert modes.num_rigid == 6
    assert modes.num_below >= 17  # 6 rigid and 11 elastic


def test_free_bar(comm: MPI.Intracomm) -> None:
    """V8: bending in both planes and torsion of a steel bar with E = 210 GPa."""
    modes = modal_analysis(box(comm, cells=(12, 4, 3)), Material(2.1e11, 0.3, 7850), num_modes=6)
    assert modes.frequencies == pytest.approx(BAR, rel=V8)
    assert modes.num_rigid == 6
    assert "6 rigid modes" in modes.summary()


def test_slender_bar_has_six_rigid_modes(comm: MPI.Intracomm) -> None:
    """The first elastic ω² is 2e-4 of that of a cube with the same length."""
    modes = modal_analysis(box(comm, (1.0, 0.004, 0.004), (40, 1, 1)), STEEL, num_modes=2)
    omega = 4.730041**2 * np.sqrt(210e9 / 7850 / 12) * 0.004  # Euler-Bernoulli
    assert 2 * np.pi * modes.frequencies == pytest.approx(omega, rel=V8)
    assert modes.num_rigid == 6


def test_held_bar(comm: MPI.Intracomm) -> None:
    """A slender cantilever agrees with Euler and Bernoulli, and its end does not move."""
    modes = modal_analysis(
        box(comm, (1.0, 0.02, 0.01), (20, 1, 1)), STEEL, num_modes=2, held=["left"]
    )
    omega = 3.51602 * np.sqrt(210e9 / 7850 / 12) * np.array([0.01, 0.02])
    assert 2 * np.pi * modes.frequencies == pytest.approx(omega, rel=5e-3)  # with shear
    assert modes.num_rigid == 0
    x = fem.Function(modes.space)
    x.interpolate(lambda x: x)
    held = np.isclose(x.x.array[0::3], 0)
    for mode in modes.modes:
        assert not mode.x.array.reshape(-1, 3)[held].any()


def test_two_parts_have_twelve_rigid_modes(comm: MPI.Intracomm) -> None:
    """Unconnected parts are counted as rigid motions, not as elastic modes."""
    apart = box(comm, gap=True)
    assert modal_analysis(apart, STEEL, num_modes=2).num_rigid == 12
    assert modal_analysis(apart, STEEL, num_modes=2, held=["left"]).num_rigid == 6


def test_hinged_halves(comm: MPI.Intracomm) -> None:
    """Two halves that share an edge have a seventh rigid motion; with one half held, only this."""
    hinged = box(comm, hinge=True)
    free = modal_analysis(hinged, STEEL, num_modes=2)
    assert free.num_rigid == 7
    assert (free.frequencies > 1000).all()
    held = modal_analysis(hinged, STEEL, num_modes=2, held=["left"])
    assert held.num_rigid == 1
    assert (held.frequencies > 100).all()
    clamped = modal_analysis(hinged, STEEL, num_modes=2, held=["left", "right"])
    assert clamped.num_rigid == 0


def test_heavy_end_on_a_thin_leaf(comm: MPI.Intracomm) -> None:
    """The first ω² of a held leaf with a mass is far below the estimate for the free body.

    `spectrum` computes this estimate with quadratic polynomials as displacements.

    Its frequency is √(3EI/a³m) for a mass m at a, with rotary inertia and shear below 1 %.
    """
    length, width, height, tip = 1.0, 0.05, 0.01, 0.05
    mesh = box(comm, (length, width, height), (20, 1, 1))
    x = ufl.SpatialCoordinate(mesh.mesh)
    heavy = 1e7
    density = ufl.conditional(x[0] > length - tip, heavy, 1.0)
    plain = Material(2.1e11, 0.0, 7850)
    modes = modal_analysis(ElasticModel(mesh, plain, density=density), num_modes=3, held=["left"])
    mass, arm = heavy * tip * width * height, length - tip / 2
    omega = np.sqrt(3 * plain.young * width * height**3 / 12 / arm**3 / mass)
    assert 2 * np.pi * modes.frequencies[0] == pytest.approx(omega, rel=1e-2)
    # The second mode bends across the width: the ratio is width / height.
    assert modes.frequencies[1] / modes.frequencies[0] == pytest.approx(5, rel=2e-2)
    assert modes.num_rigid == 0
    assert modes.num_below >= 3


@pytest.mark.parametrize("thickness", [0.01, 0.00516])
def test_held_strip(comm: MPI.Intracomm, thickness: float) -> None:
    """The first ω² of a held strip of 10 m is far below the estimate for the free body."""
    mesh = box(comm, (10.0, 0.0775, thickness), (60, 2, 1))
    modes = modal_analysis(mesh, Material(7e10, 0.3, 3000), num_modes=3, held=["left"])
    # Euler-Bernoulli: 3.516/2π = 0.559594, and L² = 100 m²
    first = 0.559594 / 100 * np.sqrt(7e10 / 3000 / 12) * thickness
    assert modes.num_rigid == 0
    assert modes.frequencies[:2] == pytest.approx([first, 6.26689 * first], rel=2e-2)


def test_elastic_foundation(comm: MPI.Intracomm) -> None:
    """A foundation c u per volume increases every ω² by c/ρ, also the zeros of rigid motions."""
    mesh = box(comm)
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    elastic = elastic_stiffness(u, v, STEEL)
    free = modal_analysis(ElasticModel(mesh, STEEL, space=V), num_modes=4)
    for square in (1e2, 1e8):
        c = fem.Constant(mesh.mesh, square * STEEL.density)
        form = elastic + c * ufl.inner(u, v) * ufl.dx
        modes = modal_analysis(ElasticModel(mesh, STEEL, space=V, stiffness=form), num_modes=10)
        squares = (2 * np.pi * modes.frequencies) ** 2
        assert modes.num_rigid == 0
        assert squares[:6] == pytest.approx(np.full(6, square), rel=1e-4)
        assert squares[6:] - square == pytest.approx((2 * np.pi * free.frequencies) ** 2, rel=1e-6)
    # Springs along z leave two translations and the rotation about z.
    springs = elastic + 1e6 * u[2] * v[2] * ufl.dx
    assert (
        modal_analysis(ElasticModel(mesh, STEEL, space=V, stiffness=springs), num_modes=4).num_rigid
        == 3
    )


def test_round_off_of_a_thin_strip_is_reported(comm: MPI.Intracomm) -> None:
    """The stiffness of a strip of slenderness 3300 is below the round-off of its cells."""
    mesh = box(comm, (10.0, 0.077, 0.003), (60, 2, 1))
    with pytest.warns(AccuracyWarning) as records:
        modes = modal_analysis(mesh, STEEL, num_modes=1, held=["left"])
    (warning,) = [w.message for w in records if isinstance(w.message, AccuracyWarning)]
    exact = 0.559594 / 100 * np.sqrt(2.1e11 / 7850 / 12) * 0.003
    assert warning.quantity == "round-off of the first frequency"
    assert warning.limit is not None
    assert abs(modes.frequencies[0] / exact - 1) < warning.value
    assert warning.limit < warning.value
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        modal_analysis(box(comm), STEEL, num_modes=1, held=["left"])


def test_dense_and_krylov_agree(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK computes more than half of all modes, block Lanczos a few; frequencies agree."""
    mesh = box(comm, cells=(12, 3, 2), cell=CellType.tetrahedron)
    calls = calls_of_solvers(monkeypatch)
    few = modal_analysis(ElasticModel(mesh, STEEL, degree=1), num_modes=8)
    assert calls == ["block_modes"]
    calls.clear()
    many = modal_analysis(ElasticModel(mesh, STEEL, degree=1), num_modes=250)
    assert calls == ["solve_on_first_rank"]
    assert few.frequencies == pytest.approx(many.frequencies[:8], rel=1e-9)


def test_sum_of_all_eigenvalues(comm: MPI.Intracomm) -> None:
    """The sum of all ω² of 5·3·2 nodes is the trace of M⁻¹K."""
    shared, alone = (
        ElasticModel(box(c, cells=(4, 2, 1), cell=CellType.tetrahedron), STEEL, degree=1)
        for c in (comm, MPI.COMM_SELF)
    )
    modes = modal_analysis(shared, num_modes=3 * 30 - 6)
    problem = elastic_problem(alone)
    K, M = (A.convert("dense").getDenseArray().copy() for A in (problem.stiffness, problem.mass()))
    trace = np.trace(np.linalg.solve(M, K))
    assert np.sum((2 * np.pi * modes.frequencies) ** 2) == pytest.approx(trace, rel=1e-9)
    assert modes.num_rigid == 6


def test_options_reach_the_solvers(comm: MPI.Intracomm) -> None:
    """An invalid solver raises an error, so options are read; later calls do not use them."""
    mesh = box(comm)
    with pytest.raises(RuntimeError, match=r"eps_max_it|converged"):
        modal_analysis(
            mesh,
            STEEL,
            num_modes=20,
            petsc_options={"eps_max_it": 1, "eps_ncv": 30, "eps_tol": 1e-14},
        )
    assert modal_analysis(mesh, STEEL, num_modes=1).num_rigid == 6


@pytest.mark.parametrize("cell", [CellType.hexahedron, CellType.tetrahedron], ids=lambda c: c.name)
@pytest.mark.parametrize(
    ("size", "cells"),
    [((12.0, 0.09, 0.004), 60), ((2.0, 0.01, 0.001), 80), ((2.4, 0.007, 8e-4), 70)],
)
def test_held_strip_a_thousand_times_as_long_as_thick(
    comm: MPI.Intracomm, size: tuple[float, float, float], cells: int, cell: CellType
) -> None:
    """The frequency agrees with Euler and Bernoulli; round-off in K alone would cause 10 %."""
    mesh = box(comm, size, (cells, 1, 1), cell)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        result = modal_analysis(mesh, STEEL, num_modes=3, held=["left"])
    unit = np.sqrt(STEEL.young / 12 / STEEL.density) * size[2] / (2 * np.pi * size[0] ** 2)
    bending = unit * np.array([3.516015, 22.03449])
    closest = np.abs(result.frequencies[:, None] / bending - 1).min(axis=0)
    assert closest.max() < 0.015
    assert result.frequencies[0] == pytest.approx(bending[0], rel=0.015)
    assert result.num_rigid == 0
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    vectors = np.stack([f.x.array[: problem.num_owned] for f in result.modes], axis=1)
    image = problem.apply_mass(np.asfortranarray(vectors))
    assert np.allclose(comm.allreduce(vectors.T @ image), np.eye(3), atol=1e-9)
    problem.destroy()
