"""Factors in single precision: solutions and modes have the accuracy of double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType, meshtags
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, InterfaceSpec, Material, TaggedMesh, reduce
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.fem.compat import geometry_dofmap
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg import cholmod, davidson, single_precision
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.factorization import cholesky, count_below, factor_package
from dolfinx_mbd.fem.linalg.round_off import round_off
from dolfinx_mbd.fem.linalg.single_precision import single_cholesky, single_factor
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from tests.fem.linalg.test_cholmod import held_bar
from tests.models.bodies import box

Array = np.ndarray
MODES = 12
AVERAGED = ("averaged", "averaged")

one_rank = pytest.mark.skipif(
    MPI.COMM_WORLD.size > 1 or cholmod.library() is None,
    reason="CHOLMOD 5 with PETSc, on one rank",
)


@pytest.fixture(autouse=True)
def all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use single precision for small bodies, too."""
    monkeypatch.setattr(single_precision, "MIN_ROWS", 0)


class Body:
    """A box whose ends have interfaces of the given kinds ("" for none)."""

    def __init__(
        self, mesh: TaggedMesh, kinds: tuple[str, ...], material: Any = STEEL, **options: Any
    ) -> None:
        self.mesh = mesh
        self.problem: ElasticProblem = elastic_problem(ElasticModel(mesh, material, **options))
        specs: dict[str, Any] = {}
        for name, kind in zip(("left", "right"), kinds, strict=False):
            if kind:
                specs |= InterfaceSpec.each((name,), kind)  # type: ignore[arg-type]
        self.interfaces = mesh_interfaces(mesh, self.problem.space, specs)

    def modes(self, solver: Any, count: int = MODES) -> tuple[Array, Array, Array]:
        """Return constraint modes, ω² and fixed-interface modes."""
        held = HeldStiffness(self.problem, self.interfaces, "single_test_", None, solver)
        constraint, _ = held.constraint_modes()
        values, vectors = held.modes(count)
        held.destroy()
        return constraint, values, vectors

    def compare(self, count: int = MODES) -> float:
        """Return the largest difference of eigenvalues over the larger of 1e-9 and round-off.

        The round-off of the path in double precision is estimated by `round_off`.
        """
        constraint, values, vectors = self.modes("double", count)
        computed, single, _ = self.modes("direct", count)
        bound = np.maximum(1e-9, round_off(self.problem, vectors) / values)
        errors = np.abs(single / values - 1)
        assert np.abs(constraint - computed).max() < 100 * bound.max() * np.abs(constraint).max()
        return float((errors / bound).max())


def bar(ratio: float, cells: tuple[int, int, int]) -> TaggedMesh:
    """Return a square bar that is `ratio` times as long as thick."""
    return box(MPI.COMM_SELF, (0.02 * ratio, 0.02, 0.02), cells)


@one_rank
@pytest.mark.parametrize(
    "kinds",
    [("rigid", "rigid"), ("rigid",), AVERAGED, ("rigid", "averaged"), ("averaged",)],
    ids="-".join,
)
@pytest.mark.parametrize(
    ("ratio", "cells"), [(10, (20, 3, 3)), (30, (40, 2, 2)), (60, (60, 2, 2)), (500, (150, 1, 1))]
)
def test_slender_bars(ratio: float, cells: tuple[int, int, int], kinds: tuple[str, ...]) -> None:
    """Eigenvalues agree to 1e-9, or to the round-off of double precision if that is larger."""
    assert Body(bar(ratio, cells), kinds).compare() < 1


@one_rank
@pytest.mark.parametrize("kinds", [("rigid",), AVERAGED], ids="-".join)
def test_ten_materials(kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten slices have moduli from 1e6 to 1e12 Pa in a mixed order."""
    monkeypatch.setattr(cholmod, "SMALL", 10)
    plain = bar(5, (20, 3, 3))
    cells = plain.cell_tags.indices
    middles = plain.mesh.geometry.x[geometry_dofmap(plain.mesh)].mean(axis=1)[cells]
    slices = np.minimum((middles[:, 0] / 0.01).astype(np.int32), 9)
    order = np.array([3, 9, 0, 6, 1, 8, 2, 5, 7, 4], dtype=np.int32)
    tags = meshtags(plain.mesh, 3, cells, order[slices] + 1)
    facets = {name: group for name, group in plain.groups.items() if group[0] == 2}
    groups = facets | {f"m{k}": (3, k + 1) for k in range(10)}
    mesh = TaggedMesh(plain.mesh, tags, plain.facet_tags, groups)
    moduli = np.geomspace(1e6, 1e12, 10)
    materials = {f"m{k}": Material(E, 0.3, 1000.0) for k, E in enumerate(moduli)}
    assert Body(mesh, kinds, materials).compare() < 1


@one_rank
@pytest.mark.parametrize("poisson", [0.49, 0.4999, 0.499999])
def test_nearly_incompressible_bodies(poisson: float) -> None:
    rubber = Material(3e6, poisson, 1100.0)
    assert Body(bar(4, (10, 4, 4)), ("rigid", "averaged"), rubber).compare() < 1


@one_rank
@pytest.mark.parametrize("kinds", [("rigid",), ("rigid", "rigid"), AVERAGED], ids="-".join)
def test_multiple_eigenvalues(kinds: tuple[str, ...]) -> None:
    """Pairs of bending modes of a square bar of cubes are both found, and are orthogonal."""
    body = Body(bar(6, (18, 3, 3)), kinds)
    assert body.compare(24) < 1
    _, values, vectors = body.modes("direct", 24)
    assert np.sum(np.abs(np.diff(values)) < 1e-9 * values[1:]) >= 5
    products = vectors.T @ body.problem.apply_mass(vectors)
    assert np.abs(products - np.eye(24)).max() < 1e-9


@one_rank
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_mode_is_missing(seed: int) -> None:
    """The number of negative pivots of K − λM shows that no mode of 30 random bodies is missing."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        count = int(rng.integers(3, 25))
        cells = rng.integers((4, 2, 2), (12, 4, 4))
        size = 0.02 * np.exp(rng.uniform((0.0, -1.0, -1.0), (3.0, 1.0, 1.0)))
        material = Material(
            10 ** rng.uniform(6, 12), rng.uniform(0, 0.499), 10 ** rng.uniform(2, 4)
        )
        cell = CellType.tetrahedron if rng.random() < 0.5 else CellType.hexahedron
        mesh = box(MPI.COMM_SELF, size, cells.tolist(), cell)
        body = Body(mesh, ("rigid", *(["rigid"] if rng.random() < 0.5 else [])), material)
        _, values, _ = body.modes("direct", count + 1)
        K, M = body.problem.stiffness.copy(), body.problem.mass()
        held = np.concatenate([i.dofs for i in body.interfaces])
        constrain(K, held, 1.0)
        constrain(M, held, 0.0)
        # `between` is a shift in the last gap between two different eigenvalues.
        gaps = values[1:] / values[:-1]
        last = int(np.flatnonzero(gaps > 1 + 1e-6)[-1])
        between = float(np.sqrt(values[last] * values[last + 1]))
        assert count_below(K, M, between) == last + 1, (size, cells, material)


@one_rank
def test_solutions_have_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Residuals are as small as those of a factor in double precision, for any block of loads."""
    A = held_bar((40, 3, 3))
    rows = A.getSize()[0]
    single, double = single_cholesky(A, prefix="single_test_"), cholesky(A, prefix="single_test_")
    assert single is not None
    assert factor_package(single) == "cholmod"
    for count in (1, 5, 40):
        B = multiply(A, np.random.default_rng(count).standard_normal((count, rows)).T)
        B[:, :1] *= 1e-12  # a load much smaller than the others
        errors = [np.abs(multiply(A, solve(ksp, B)) - B).max(axis=0) for ksp in (single, double)]
        assert (errors[0] < 20 * errors[1]).all()
    zero = np.zeros((rows, 2), order="F")
    assert np.array_equal(solve(single, zero), zero)
    factor = single_factor(single)
    assert factor is not None
    expected = solve(single, B)
    A.copy(copy := A.duplicate())
    second_factor = single_cholesky(copy, prefix="single_test_")
    copy.destroy()  # the factor still multiplies with the matrix
    assert second_factor is not None
    assert np.array_equal(solve(second_factor, B), expected)
    error = np.abs(multiply(A, factor.apply(B)) - B).max(axis=0) / np.abs(B).max(axis=0)
    assert (error > 1e-9).all()  # the factor itself has single precision


@one_rank
@pytest.mark.parametrize("cause", ["options", "rows", "library", "pivot", "iterations", "steps"])
def test_double_precision_otherwise(
    cause: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the factor or the iteration in use, and the reason; the modes are the same."""
    slender = cause == "pivot"
    body = Body(bar(200, (200, 2, 2)) if slender else bar(10, (20, 3, 3)), ("rigid",))
    _, expected, _ = body.modes("double")
    options = {"mat_cholmod_print": 0} if cause == "options" else None
    if cause == "rows":
        monkeypatch.setattr(single_precision, "MIN_ROWS", 10**6)
    elif cause == "library":
        monkeypatch.setattr(single_precision, "library", lambda: None)
    elif cause == "iterations":
        monkeypatch.setattr(single_precision, "MAX_ITERATIONS", 0)
    elif cause == "steps":
        monkeypatch.setattr(davidson, "MAX_STEPS", -10)  # 2 steps for 12 modes
    with caplog.at_level("INFO", "dolfinx_mbd"):
        held = HeldStiffness(body.problem, body.interfaces, "single_test_", options)
        held.constraint_modes()
        values, _ = held.modes(MODES)
        held.destroy()
    messages = {
        "pivot": "no factor in single precision: pivot",
        "iterations": "too inaccurate; double is used instead",
        "library": "no factor in single precision, which needs one rank and CHOLMOD 5",
        "steps": "no convergence in 2 steps; block Lanczos is used instead",
    }
    assert messages.get(cause, "cholesky by cholmod\n") in caplog.text
    assert ("cholmod in single precision" in caplog.text) == (cause in ("iterations", "steps"))
    assert np.abs(values / expected - 1).max() < 1e-9


@one_rank
def test_restarted_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search space is restarted several times."""
    monkeypatch.setattr(davidson, "SPACE", 70)
    assert Body(bar(8, (24, 4, 4)), AVERAGED).compare(30) < 1


def test_reductions_agree(comm: MPI.Intracomm, caplog: pytest.LogCaptureFixture) -> None:
    """Several ranks use double precision, which the log states, and give the same body."""
    mesh = box(comm, (0.2, 0.02, 0.02), (16, 3, 3))
    both: dict[str, Any] = {"interfaces": InterfaceSpec.each(("left", "right"), "averaged")}
    with caplog.at_level("INFO", "dolfinx_mbd"):
        bodies = [
            reduce(mesh, STEEL, num_modes=8, solver=s, **both).body for s in ("direct", "double")
        ]
    if comm.size > 1:
        assert caplog.text.count("no factor in single precision, which needs one rank") == 1
    assert bodies[0].frequencies == pytest.approx(bodies[1].frequencies, rel=1e-9)
