"""Natural frequencies against closed forms and Rayleigh-Ritz (case V8), and the counts."""

from __future__ import annotations

import numpy as np
import pytest
from dolfinx import fem
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd.analysis.modal import modal_analysis
from dolfinx_mbd.forms import STEEL, Material
from tests.analysis.bodies import box

CUBE = [2.85605] * 2 + [3.84598] * 3 + [3.91125] * 3 + [np.pi * np.sqrt(2)] * 3
BAR = [3311.33, 5286.47, 8732.7, 9533.2, 13132.0, 16171.7]
V8 = 3e-3  # validation.md: 0.3 % with P2


@pytest.mark.parametrize("side", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("material", [STEEL, Material(1.0, 0.3, 1.0)])
def test_free_cube_of_any_size_and_units(
    comm: MPI.Intracomm, side: float, material: Material
) -> None:
    """V8, with its triple modes, which a Krylov method finds only if it is asked to count."""
    found = modal_analysis(box(comm, [side] * 3, (4, 4, 4)), material, num_modes=11)
    omega = 2 * np.pi * found.frequencies * side * np.sqrt(material.density / material.shear)
    assert omega == pytest.approx(CUBE, rel=V8)
    assert (omega > CUBE * np.array(1 - 1e-5)).all()  # the references have six digits
    assert found.num_rigid == 6
    assert found.num_below >= 17


def test_free_bar(comm: MPI.Intracomm) -> None:
    """V8: bending in both planes, torsion, in steel of E = 210 GPa."""
    found = modal_analysis(box(comm, cells=(12, 4, 3)), Material(2.1e11, 0.3, 7850), num_modes=6)
    assert found.frequencies == pytest.approx(BAR, rel=V8)
    assert found.num_rigid == 6
    assert "6 rigid modes" in found.summary()


def test_slender_bar_has_six_rigid_modes(comm: MPI.Intracomm) -> None:
    """Its first elastic ω² is 1e-8 of that of a cube of its length."""
    found = modal_analysis(box(comm, (1.0, 0.004, 0.004), (40, 1, 1)), STEEL, num_modes=2)
    omega = 4.730041**2 * np.sqrt(210e9 / 7850 / 12) * 0.004  # Euler-Bernoulli
    assert 2 * np.pi * found.frequencies == pytest.approx(omega, rel=V8)
    assert found.num_rigid == 6


def test_held_bar(comm: MPI.Intracomm) -> None:
    """A slender cantilever against Euler-Bernoulli; no rigid modes, nothing moves at the end."""
    found = modal_analysis(
        box(comm, (1.0, 0.02, 0.01), (20, 1, 1)), STEEL, num_modes=2, held=["left"]
    )
    omega = 3.51602 * np.sqrt(210e9 / 7850 / 12) * np.array([0.01, 0.02])
    assert 2 * np.pi * found.frequencies == pytest.approx(omega, rel=5e-3)  # shear, clamping
    assert found.num_rigid == 0
    x = fem.Function(found.space)
    x.interpolate(lambda x: x)
    held = np.isclose(x.x.array[0::3], 0)
    for mode in found.modes:
        assert not mode.x.array.reshape(-1, 3)[held].any()


def test_two_parts_have_twelve_rigid_modes(comm: MPI.Intracomm) -> None:
    """What is loose is counted, not mistaken for elastic."""
    apart = box(comm, gap=True)
    assert modal_analysis(apart, STEEL, num_modes=2).num_rigid == 12
    assert modal_analysis(apart, STEEL, num_modes=2, held=["left"]).num_rigid == 6


def test_dense_and_krylov_agree(comm: MPI.Intracomm) -> None:
    """More than half of all modes come from LAPACK, few from SLEPc."""
    mesh = box(comm, cells=(4, 2, 1), cell=CellType.tetrahedron)
    few = modal_analysis(mesh, STEEL, degree=1, num_modes=8)
    many = modal_analysis(mesh, STEEL, degree=1, num_modes=3 * 30 - 6)
    mesh = box(comm, cells=(12, 3, 2), cell=CellType.tetrahedron)
    space = modal_analysis(mesh, STEEL, degree=1, num_modes=8)
    dense = modal_analysis(mesh, STEEL, degree=1, num_modes=250)
    assert few.frequencies == pytest.approx(many.frequencies[:8], rel=1e-9)
    assert space.frequencies == pytest.approx(dense.frequencies[:8], rel=1e-9)


def test_options_reach_the_solvers(comm: MPI.Intracomm) -> None:
    """An impossible solver is refused: the option was read; and it is forgotten afterwards."""
    mesh = box(comm)
    with pytest.raises(RuntimeError, match=r"eps_max_it|converged"):
        modal_analysis(
            mesh,
            STEEL,
            num_modes=20,
            petsc_options={"eps_max_it": 1, "eps_ncv": 30, "eps_tol": 1e-14},
        )
    assert modal_analysis(mesh, STEEL, num_modes=1).num_rigid == 6
