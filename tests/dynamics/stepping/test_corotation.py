"""Factors of outdated iteration matrices that rotate with the bodies."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import Stepper, consistent_state
from dolfinx_mbd.dynamics.stepping.corrections import Corrector
from dolfinx_mbd.dynamics.stepping.iteration_matrix import DenseFactor
from dolfinx_mbd.kernels.rotations import exp_rotation, quaternion_from_matrix, rotation_matrix
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from tests.models.beams import slender_rod

DT = 1e-5


def flexible_body(spin: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> mbd.mechanism.FlexibleBody:
    """Return a slender body."""
    rod = slender_rod(length=0.14, bending=4, axial=2)
    return mbd.mechanism.FlexibleBody("rod", rod, omega=spin)


def put_rotated(corrector: Corrector, state: mbd.mechanism.State, turn: np.ndarray) -> None:
    """Set the assembler to a state of one body after a rotation about the global origin."""
    at = corrector.eqs
    at.put(state)
    for x in (at.q, at.v, at.a):
        x[:3] = turn @ x[:3]
    at.q[3:7] = quaternion_from_matrix(turn @ rotation_matrix(at.q[3:7]))
    at.residual(state.time)


def test_the_matrix_of_a_free_body_rotates_with_it() -> None:
    """The corrections are those of a new matrix, to round-off, at any angle."""
    system = mbd.System([flexible_body((30.0, 20.0, 400.0))])
    stepper, rng = Stepper(system), np.random.default_rng(3)
    corrector = stepper.corrector
    state = consistent_state(system)
    state.v[6:], state.a[6:] = rng.normal(size=(2, len(state.v) - 6))
    state.a[:6] = rng.normal(size=6)
    derivatives, zero = stepper.formulas.derivatives(DT), np.zeros(len(state.v))
    corrections, turn = [], exp_rotation(np.array([1.0, 2.0, -0.5]))
    for outdated in (True, False):
        put_rotated(corrector, state, np.eye(3) if outdated else turn)
        corrector.refactor(0.0, DT, zero, derivatives)
        put_rotated(corrector, state, turn)
        corrections.append(corrector.correction(derivatives.a_by_move).copy())
        assert np.array_equal(corrector.refined(corrections[-1]), corrections[-1])  # no joints
    old, new = corrections
    assert np.abs(old - new).max() < 1e-12 * np.abs(new).max()


def engine() -> mbd.System:
    """Return a three-cylinder engine with flexible rods."""
    return inline_engine(slender_rod(length=0.14, bending=4, axial=2), EngineDesign(), speed=600.0)


def test_corrections_with_an_outdated_matrix() -> None:
    """After 20 steps, or 7 degrees, rotation explains all but a few thousandths of the error."""
    system = engine()
    stepper = Stepper(system, reuse=False)
    corrector = stepper.corrector
    state = stepper.begin(consistent_state(system), DT)
    derivatives, zero = stepper.formulas.derivatives(DT), np.zeros(system.num_velocities)
    for k in range(40):
        state = stepper.step(state, DT)
        if k == 19:
            outdated = corrector.factor
    step = stepper._predict(state, DT, False)
    corrector.eqs.move(state.q, step.move)
    corrector.residual_error(step)
    corrector.refactor(step.time, DT, step.move, derivatives)
    exact = corrector.correction(derivatives.a_by_move).copy()
    corrector.factor = outdated
    solution = corrector.correction(derivatives.a_by_move)
    solutions = [corrector.refined(solution), solution]
    rotates, corrector._rotates = corrector._rotates, False
    solutions.append(corrector.correction(derivatives.a_by_move).copy())
    corrector._rotates = rotates
    n, lengths = len(zero), corrector.measure.lengths
    for part, factor in ((slice(None, n), lengths), (slice(n, None), 1.0)):
        size = np.linalg.norm(factor * exact[part])
        errors = [np.linalg.norm(factor * (x - exact)[part]) / size for x in solutions]
        assert errors[2] > 0.01
        assert errors[0] < 5e-3 * errors[2]


def test_few_factorizations() -> None:
    """An engine needs a new matrix after many steps only."""
    run = mbd.simulate(engine(), t_end=300 * DT, dt=DT)
    assert run.factorizations <= 15
    assert run.iterations < 2.5 * 300


def test_loaded_bodies_keep_their_axes() -> None:
    """A stiff support of a rotor does not rotate with it."""
    ground = mbd.Ground({"bore": mbd.Frame()})
    rotor = mbd.RigidBody(
        "rotor", 2.0, [1e-3, 1e-3, 2e-3], frames={"c": mbd.Frame()}, omega=(0, 0, 300)
    )
    ends = ground.frame("bore"), rotor.frame("c")
    support = mbd.mechanism.Bushing("support", *ends, [1e9, 1e7, 1e8, 1e4, 1e4, 0.0], [0.0] * 6)
    system = mbd.System([ground, rotor], [], loads=[support], gravity=(0, -9.81, 0))
    run = mbd.simulate(system, t_end=80e-4, dt=1e-4)
    assert run.factorizations < 5


@pytest.mark.parametrize("name", ["orientations", "axes", "gradients"])
def test_factors_are_restored_with_their_axes(name: str) -> None:
    """A snapshot contains what the next steps depend on."""
    system = engine()
    stepper, other = Stepper(system), Stepper(system)
    state = stepper.begin(consistent_state(system), DT)
    while not isinstance(stepper.corrector.factor, DenseFactor) or state.time < 20.5 * DT:
        state = stepper.step(state, DT)
    assert len(stepper.memory()[name])
    other.restore(stepper.memory())
    one, two = stepper.step(state, DT), other.step(state, DT)
    for part in ("q", "v", "a", "lam"):
        assert np.array_equal(getattr(one, part), getattr(two, part))
