"""Elimination of bodies with many coordinates from the matrix of a step."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.step_factor import ExtrapolatedFactor, StepFactor
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from tests.models.beams import slender_rod


@pytest.fixture(scope="module")
def engine() -> mbd.System:
    """Return a three-cylinder engine with flexible rods."""
    rod = slender_rod(length=0.14, bending=4, axial=2)
    assert len(rod.stiffness) >= 6
    return inline_engine(rod, EngineDesign(), speed=300.0)


def random_matrix(system: mbd.System, rng: np.random.Generator) -> np.ndarray:
    """Return a random matrix with the sparsity of the equations of a step."""
    assembler = Assembler(system)
    n, bodies = system.num_velocities, len(system.bodies)
    couplings = assembler.loads.couplings()
    A = np.zeros((n + system.num_constraints,) * 2)
    for i in range(bodies):
        for k in (i, *couplings[i]):
            part = A[system.v_slices[i], system.v_slices[k]]
            part[:] = rng.normal(size=part.shape)
    for row, entry in enumerate(system.row_entry, start=n):
        for frame in (system.first[entry], system.second[entry]):
            part = system.v_slices[system.frame_body[frame]]
            A[row, part] = rng.normal(size=part.stop - part.start)
            A[part, row] = rng.normal(size=part.stop - part.start)
    return np.asfortranarray(A)


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_solutions_are_those_of_the_complete_matrix(
    engine: mbd.System, transposed: bool, columns: int
) -> None:
    """The random matrices need exchanges of rows in the elimination of the rods."""
    rng = np.random.default_rng(1)
    factor = StepFactor(Assembler(engine))
    for _ in range(5):
        A = random_matrix(engine, rng)
        right = np.asfortranarray(rng.normal(size=(len(A), columns)))
        exact = np.linalg.solve(A.T if transposed else A, right)
        assert factor.factorize(A.copy(order="F"), transposed) == 0
        assert factor._parts == COMPILED
        x = factor.solve(right.copy(order="F"))
        size = np.abs(exact).max() * np.linalg.cond(A)
        assert np.abs(x - exact).max() <= 1e-14 * size


def test_rods_are_eliminated_and_the_crank_remains(engine: mbd.System) -> None:
    factor = StepFactor(Assembler(engine))
    names = [body.name for body in engine.bodies]
    crank = engine.v_slices[names.index("crank")].start
    assert crank in factor._rest
    rod = engine.v_slices[names.index("rod 2")]
    assert (rod.start in factor._rest) == (not COMPILED)


def test_a_body_that_is_singular_alone_is_not_eliminated(engine: mbd.System) -> None:
    """A velocity that only a joint determines has no pivot in its body."""
    rng = np.random.default_rng(2)
    A = random_matrix(engine, rng)
    part = engine.v_slices[[body.name for body in engine.bodies].index("rod 1")]
    A[part, part.start] = 0.0
    right = np.asfortranarray(rng.normal(size=(len(A), 2)))
    factor = StepFactor(Assembler(engine))
    for transposed in (False, True):
        assert factor.factorize(A.copy(order="F"), transposed) == 0
        assert not factor._parts
        x = factor.solve(right.copy(order="F"))
        exact = np.linalg.solve(A.T if transposed else A, right)
        assert np.allclose(x, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


def test_a_singular_matrix_is_reported(engine: mbd.System) -> None:
    A = random_matrix(engine, np.random.default_rng(3))
    A[:, -1] = 0.0
    assert StepFactor(Assembler(engine)).factorize(A, transposed=False) > 0


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_error_of_an_extrapolated_inverse_is_of_second_order(
    engine: mbd.System, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(4)
    A = random_matrix(engine, rng)
    A += 40.0 * np.eye(len(A))
    rate = random_matrix(engine, rng)
    right = np.asfortranarray(rng.normal(size=(len(A), *shape)))
    exact, errors, plain = np.linalg.solve(A, right), [], []
    for h in (1e-3, 5e-4):
        factors = [StepFactor(Assembler(engine)) for _ in range(2)]
        for factor, steps in zip(factors, (1, 2), strict=True):
            factor.dt, factor.mass = 1e-4, np.zeros((0, 0))
            assert factor.factorize(np.asfortranarray(A - steps * h * rate), False) == 0
        x = ExtrapolatedFactor(*factors).solve(right.copy(order="F"))
        assert x.shape == right.shape
        errors.append(np.abs(x - exact).max())
        plain.append(np.abs(factors[0].solve(right.copy(order="F")) - exact).max())
    assert errors[0] == pytest.approx(4 * errors[1], rel=0.1)
    assert errors[1] < 0.1 * plain[1]
