"""Block Lanczos: against closed forms, SLEPc, LAPACK and the count of Sylvester's law."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd import ElasticModel, InterfaceSpec
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg import eigenvalues as eigen
from dolfinx_mbd.fem.linalg.block_lanczos import (
    BLOCK_SIZE,
    Breakdown,
    block_lanczos,
    largest_space,
    num_accurate,
)
from dolfinx_mbd.fem.linalg.blocks import gram, multiply, solve
from dolfinx_mbd.fem.linalg.eigenvalues import lowest_modes
from dolfinx_mbd.fem.linalg.factorization import cholesky, count_below
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.forms import STEEL
from tests.fem.linalg.solver_calls import calls_of_solvers
from tests.models.bodies import box

Array = np.ndarray
NONE = np.zeros(0, dtype=np.int32)  # no held degrees of freedom
KRYLOV_SCHUR = {"eps_type": "krylovschur"}


def diagonal(comm: MPI.Intracomm, values: Array) -> PETSc.Mat:
    """Return a diagonal matrix."""
    A = PETSc.Mat().createAIJ(len(values), nnz=1, comm=comm)
    for i in range(*A.getOwnershipRange()):
        A[i, i] = values[i]
    A.assemble()
    return A


def held_bar(comm: MPI.Intracomm) -> tuple[PETSc.Mat, PETSc.Mat, Array]:
    """Return K and M of a square bar held at both ends; its bending modes come in pairs."""
    mesh = box(comm, (0.2, 0.02, 0.02), (12, 2, 2))
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(("left", "right"), "rigid"))
    held = np.concatenate([i.dofs for i in ends])
    K, M = problem.stiffness, problem.mass()
    constrain(K, held, 1.0)
    constrain(M, held, 0.0)
    K.setAttr("mesh", mesh)  # DOLFINx 0.9 may crash if a matrix outlives its mesh
    return K, M, held


def errors(M: PETSc.Mat, ksp: PETSc.KSP, values: Array, vectors: Array) -> Array:
    """Return ‖ψ - λ K⁻¹M ψ‖ in the norm of M for M-normalized vectors."""
    comm = M.comm.tompi4py()
    residual = vectors - solve(ksp, multiply(M, vectors)) * values
    return np.sqrt(np.diag(gram(comm, residual, multiply(M, residual))))


@pytest.mark.parametrize("count", [1, 7, 24, 90])
def test_modes_of_a_bar_are_those_of_krylov_schur(comm: MPI.Intracomm, count: int) -> None:
    """Eigenvalues agree to 1e-10, vectors are M-orthonormal eigenvectors, and none is missing."""
    K, M, held = held_bar(comm)
    ksp = cholesky(K, prefix="lanczos_")
    values, vectors = lowest_modes(K, M, ksp, count, held, prefix="lanczos_")
    assert np.allclose(gram(comm, vectors, multiply(M, vectors)), np.eye(count), atol=1e-11)
    assert errors(M, ksp, values, vectors).max() < 1e-8
    assert count_below(K, M, values[-1] * (1 + 1e-6)) >= count
    assert count_below(K, M, values[0] * (1 - 1e-6)) == 0
    expected, _ = lowest_modes(K, M, ksp, count, held, prefix="lanczos_", options=KRYLOV_SCHUR)
    assert np.abs(values / expected - 1).max() < 1e-10


def test_bending_modes_are_found_in_pairs(comm: MPI.Intracomm) -> None:
    """A square bar bends in two planes: each double eigenvalue appears twice."""
    K, M, held = held_bar(comm)
    ksp = cholesky(K, prefix="lanczos_")
    values, _ = lowest_modes(K, M, ksp, 4, held, prefix="lanczos_")
    assert np.allclose(values[[0, 2]], values[[1, 3]], rtol=1e-9)
    assert values[2] > 2 * values[1]


@pytest.mark.parametrize("count", [6, 7, 13])
def test_less_accurate_pairs(comm: MPI.Intracomm, count: int) -> None:
    """Eigenvalues of the last three pairs are accurate, but not all their vectors.

    The vectors are accurate, too, if they belong to the eigenvalue of the last accurate pair.
    """
    K, M, held = held_bar(comm)
    ksp = cholesky(K, prefix="lanczos_")
    settings = {"prefix": "lanczos_"}
    exact, _ = lowest_modes(K, M, ksp, count + 3, held, **settings)
    values, vectors = lowest_modes(K, M, ksp, count + 3, held, num_loose=3, **settings)
    assert np.abs(values / exact - 1).max() < 1e-8
    accurate = num_accurate(values, count)
    assert accurate == np.sum(exact < 1.001 * exact[count - 1]) >= count
    assert errors(M, ksp, values, vectors)[:accurate].max() < 1e-8


@pytest.mark.parametrize("copies", [2, BLOCK_SIZE])
def test_multiple_eigenvalues_are_found(comm: MPI.Intracomm, copies: int) -> None:
    """The multiplicity may be as large as the block; the Krylov space is restarted."""
    exact = np.repeat((1 + np.arange(600 // copies)) ** 1.2, copies)
    K, M = diagonal(comm, exact), diagonal(comm, np.ones(len(exact)))
    ksp = cholesky(K, prefix="lanczos_")
    num_values = 3 * copies + 1
    values, vectors = lowest_modes(K, M, ksp, num_values, NONE, prefix="lanczos_")
    assert np.allclose(values, exact[:num_values], rtol=1e-12)
    assert np.allclose(gram(comm, vectors, vectors), np.eye(num_values), atol=1e-12)


def test_space_is_restarted(comm: MPI.Intracomm, caplog: pytest.LogCaptureFixture) -> None:
    """Close eigenvalues need more vectors than the Krylov space may contain."""
    exact = 1 + np.arange(3000.0) / 50
    K, M = diagonal(comm, exact), diagonal(comm, np.ones(len(exact)))
    ksp = cholesky(K, prefix="lanczos_")
    with caplog.at_level(logging.INFO, "dolfinx_mbd"):
        values, _ = lowest_modes(K, M, ksp, 10, NONE, prefix="lanczos_")
    assert np.allclose(values, exact[:10], rtol=1e-11)
    (message,) = [r.args for r in caplog.records if "block Lanczos" in r.msg]
    assert isinstance(message, tuple)
    assert int(message[0]) * BLOCK_SIZE > largest_space(10)  # type: ignore[call-overload]


def test_nearest_to_zero_of_both_signs(comm: MPI.Intracomm) -> None:
    """For an indefinite K, the result contains the eigenvalues of smallest magnitude."""
    exact = np.linspace(-20.05, 400, 700)
    K, M = diagonal(comm, exact), diagonal(comm, np.ones(len(exact)))

    def divided(B: Array) -> Array:
        begin, end = K.getOwnershipRange()
        return np.asfortranarray(B / exact[begin:end, None])

    start = np.random.default_rng(comm.rank).standard_normal((K.getLocalSize()[0], BLOCK_SIZE))
    values, _ = block_lanczos(comm, divided, mass(M), np.asfortranarray(start), 9, tolerance=1e-9)
    assert np.allclose(values, sorted(exact, key=abs)[:9], rtol=1e-11)


def mass(M: PETSc.Mat) -> Callable[[Array], Array]:
    """Return a function that multiplies by M."""
    return lambda X: multiply(M, X)


def test_dependent_vectors_are_reported(comm: MPI.Intracomm) -> None:
    """The start block contains the same vector twice."""
    K = diagonal(comm, np.arange(1.0, 301.0))
    M = diagonal(comm, np.ones(300))
    vector = np.random.default_rng(comm.rank).standard_normal((K.getLocalSize()[0], 1))
    with pytest.raises(Breakdown, match="dependent"):
        block_lanczos(comm, mass(M), mass(M), np.asfortranarray(np.hstack([vector, vector])), 3,
                      tolerance=1e-9)  # fmt: skip


def test_slepc_continues_if_the_iteration_breaks_down(
    comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SLEPc uses the same factors and gives the same eigenvalues; a warning is issued."""
    K, M, held = held_bar(comm)
    ksp = cholesky(K, prefix="lanczos_")
    values, _ = lowest_modes(K, M, ksp, 6, held, prefix="lanczos_")

    def broken(*_: object, **__: object) -> None:
        raise Breakdown("the vectors of a block have become dependent")

    monkeypatch.setattr(eigen, "block_lanczos", broken)
    with caplog.at_level(logging.WARNING, "dolfinx_mbd"):
        expected, _ = lowest_modes(K, M, ksp, 6, held, prefix="lanczos_")
    assert any("SLEPc" in r.getMessage() for r in caplog.records)
    assert np.abs(values / expected - 1).max() < 1e-10


def test_small_problems_use_slepc(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """For 170 unknowns a Krylov space of some hundred vectors is too large."""
    calls = calls_of_solvers(monkeypatch)
    exact = np.arange(1.0, 171.0)
    K, M = diagonal(comm, exact), diagonal(comm, np.ones(170))
    ksp = cholesky(K, prefix="lanczos_")
    values, _ = lowest_modes(K, M, ksp, 4, NONE, prefix="lanczos_")
    assert np.allclose(values, exact[:4], rtol=1e-9)
    assert calls == ["eigensolver"]
