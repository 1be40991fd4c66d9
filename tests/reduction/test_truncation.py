"""The bound of a reduction's error at its interfaces, effective masses, and selections by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import InterfaceSpec, ReductionOptions
from dolfinx_mbd.body import ReducedBody, participation
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction import Reduction, reduce
from dolfinx_mbd.reduction.truncation import Truncation
from tests.models.bodies import box, dynamic_stiffness


@pytest.fixture(scope="module", params=["rigid", "averaged"])
def bar(request: pytest.FixtureRequest) -> Reduction:
    """Return the reduction of a box."""
    mesh = box(MPI.COMM_WORLD)
    return reduce(
        mesh,
        STEEL,
        interfaces=InterfaceSpec.each(["left", "right"], request.param),
        num_modes=60,
        options=ReductionOptions(skin=False),
    )


def cut(truncation: Truncation, n: int) -> Truncation:
    """Return the result for n computed modes; data without modes are unchanged."""
    p, squares = truncation.participations, truncation.squares
    # the flexibility of all modes: those of the result and of the residual
    whole = truncation.residual + p.T @ (p / squares[:, None])
    return Truncation(
        truncation.stiffness,
        truncation.mass,
        squares[:n],
        p[:n],
        whole - p[:n].T @ (p[:n] / squares[:n, None]),
        truncation.rigid,
    )


def test_the_dynamic_stiffness_is_the_bodys(bar: Reduction) -> None:
    """Elimination of the modes and modal superposition give the same matrix."""
    assert bar.truncation is not None
    for hertz in (800.0, 4000.0):
        D = bar.truncation.dynamic_stiffness(hertz)
        expected = dynamic_stiffness(bar.body, 2 * np.pi * hertz)
        np.testing.assert_allclose(D, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_the_residual_is_that_of_further_modes(bar: Reduction) -> None:
    """The residual S of omitted modes is positive, decreases with n, and is small for 60 modes."""
    assert bar.truncation is not None
    sizes = []
    scale = 1 / np.sqrt(np.diag(bar.truncation.stiffness))
    for n in (2, 6, 20, 60):
        S = scale[:, None] * cut(bar.truncation, n).residual * scale
        values = np.linalg.eigvalsh((S + S.T) / 2)
        assert values[0] > -1e-9 * values[-1]
        sizes.append(values[-1])
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < 0.05 * sizes[0]


@pytest.mark.parametrize("n", [4, 8, 16])
def test_the_bound_bounds(bar: Reduction, n: int) -> None:
    """The bound is between the error against all 60 modes and ten times this error."""
    assert bar.truncation is not None
    few = cut(bar.truncation, n)
    scale = 1 / np.sqrt(np.diag(few.stiffness) + few.squares[0] * np.diag(few.mass))
    last = np.sqrt(few.squares[-1]) / (2 * np.pi)
    for hertz in (0.1 * last, 0.4 * last, 0.7 * last):
        exact = scale[:, None] * bar.truncation.dynamic_stiffness(hertz) * scale
        D = scale[:, None] * few.dynamic_stiffness(hertz) * scale
        error = np.linalg.norm(D - exact, 2) / np.linalg.norm(D, 2)
        (bound,) = few.error(hertz)
        assert error <= bound * (1 + 1e-9)
        assert bound < 10 * error
    assert np.isinf(few.error(1.001 * last)[0])


def test_accurate_to(bar: Reduction) -> None:
    assert bar.truncation is not None
    few = cut(bar.truncation, 8)
    limit = few.accurate_to(0.01)
    assert 0 < limit < np.sqrt(few.squares[-1]) / (2 * np.pi)
    assert few.error(limit)[0] <= 0.01 < few.error(1.02 * limit)[0]
    assert bar.truncation.accurate_to(0.01) > limit


def test_one_interface(comm: MPI.Intracomm) -> None:
    """The constraint modes are rigid motions without stiffness; other results are unchanged."""
    reduction = reduce(
        box(comm), STEEL, interfaces=["left"], num_modes=12, options=ReductionOptions(skin=False)
    )
    assert reduction.truncation is not None
    D = reduction.truncation.dynamic_stiffness(900.0)
    expected = dynamic_stiffness(reduction.body, 2 * np.pi * 900)
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    assert 0 < reduction.truncation.error(900.0)[0] < 0.05


def test_effective_masses(bar: Reduction) -> None:
    """Columns approach the body's mass from below, and do not depend on the partition."""
    assert bar.truncation is not None
    shares = bar.truncation.effective_masses
    sums = shares.sum(axis=0)
    assert (shares >= 0).all() and (sums[:3] > 0.85).all() and (sums <= 1 + 1e-9).all()
    # The bar is symmetric: a mode with momentum along x has none along y.
    first = int(np.argmax(shares[:, 0]))
    assert shares[first, 0] > 0.5 and shares[first, 1] < 1e-3


def test_clamped_beam(comm: MPI.Intracomm) -> None:
    """The first bending mode of a clamped-clamped beam has 0.690 of the mass of the beam.

    Blevins, Formulas for natural frequency and mode shape: (∫φ)²/(L∫φ²) with φ of βL = 4.73004.
    """
    mesh = box(comm, size=(1.0, 0.02, 0.03), cells=(24, 1, 1))
    reduction = reduce(
        mesh, STEEL, interfaces=["left", "right"], num_modes=8, options=ReductionOptions(skin=False)
    )
    assert reduction.truncation is not None
    shares = reduction.truncation.effective_masses
    beta = 4.730040744862704
    s = (np.cosh(beta) - np.cos(beta)) / (np.sinh(beta) - np.sin(beta))
    x = np.linspace(0, 1, 20001)
    phi = np.cosh(beta * x) - np.cos(beta * x) - s * (np.sinh(beta * x) - np.sin(beta * x))
    exact = np.trapezoid(phi, x) ** 2 / np.trapezoid(phi**2, x)
    assert exact == pytest.approx(0.690, abs=1e-3)
    assert shares[:, 1].max() == pytest.approx(exact, rel=0.01)
    assert shares[:, 2].max() == pytest.approx(exact, rel=0.01)


def test_effective_masses_are_part_of_the_body(
    bar: Reduction, comm: MPI.Intracomm, tmp_path: Path
) -> None:
    """Effective masses have frequencies and labels in the file and the summary."""
    assert bar.truncation is not None
    path = comm.bcast(tmp_path, root=0) / "bar.npz"
    bar.save(path)
    masses = ReducedBody.load(path).effective_masses
    assert masses is not None
    assert np.array_equal(masses.shares, bar.truncation.effective_masses)
    assert np.allclose((2 * np.pi * masses.frequencies) ** 2, bar.truncation.squares, rtol=1e-14)
    lines = bar.body.summary().splitlines()
    for label, frequency, shares in zip(
        masses.labels, masses.frequencies, masses.shares, strict=True
    ):
        (line,) = [text for text in lines if text.split()[:2] == label.split()]
        numbers = [float(word) for word in line.split()[2:]]
        # The table has two decimals.
        assert np.allclose(numbers, [frequency, *100 * shares], rtol=0, atol=0.0051)
    assert bar.body.rigid().effective_masses is None
    assert bar.body.truncated(3).effective_masses is bar.body.effective_masses


def test_selection_by_effective_mass(bar: Reduction, comm: MPI.Intracomm) -> None:
    assert bar.truncation is not None
    kind = bar.body.interfaces[0].kind
    chosen = bar.truncation.by_effective_mass(0.9)
    assert 0 < len(chosen) < 60
    masses = bar.truncation.effective_masses[np.array(chosen) - 1].sum(axis=0)
    assert (masses >= 0.9 * bar.truncation.effective_masses.sum(axis=0) - 1e-12).all()
    few = reduce(
        box(comm),
        STEEL,
        interfaces=InterfaceSpec.each(["left", "right"], kind),
        num_modes=60,
        options=ReductionOptions(effective_mass=0.9, skin=False),
    ).body
    assert few.num_modes == 6 + len(chosen)
    np.testing.assert_allclose(few.frequencies[0], bar.body.frequencies[0], rtol=0.01)


def test_participation(bar: Reduction) -> None:
    """Shares sum to one; selected modes give the corresponding part of the deflection."""
    shares = participation(bar.body)
    np.testing.assert_allclose(shares.shares.sum(axis=0), 1.0, rtol=1e-12)
    numbers = shares.most(0.999)
    assert len(numbers) < bar.body.num_modes
    small = bar.body.selected(numbers)
    for k, name in enumerate(shares.loads):
        assert shares.shares[np.array(numbers) - 1, k].sum() >= 0.999
        interface, component = name.split()
        row = ("Fx", "Fy", "Fz", "Mx", "My", "Mz").index(component)
        flexibility = []
        for body in (bar.body, small):
            f = body.interface(interface).motion[row]
            flexibility.append(f @ np.linalg.solve(body.stiffness, f))
        assert flexibility[1] == pytest.approx(flexibility[0], rel=1.001e-3)


def test_bad_selections(bar: Reduction, comm: MPI.Intracomm) -> None:
    assert bar.truncation is not None
    with pytest.raises(ValueError, match=r"share must be .*; got 1\.5"):
        bar.truncation.by_effective_mass(1.5)
    with pytest.raises(ValueError, match="need interfaces"):
        reduce(
            box(comm),
            STEEL,
            interfaces=[],
            num_modes=3,
            options=ReductionOptions(effective_mass=0.9),
        )
    with pytest.raises(ValueError, match="from 1 to 66, each at most once"):
        bar.body.selected([1, 1])
    raw = reduce(
        box(comm),
        STEEL,
        interfaces=["left", "right"],
        num_modes=2,
        attached_to="left",
        options=ReductionOptions(orthonormalize=False),
    )
    with pytest.raises(ValueError, match="orthonormalize=True"):
        participation(raw.body)
