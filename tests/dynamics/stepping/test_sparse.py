"""Long chains: the sparse iteration matrix is the dense one, and its size grows with the links."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import StepError, Stepper, System, consistent_state
from dolfinx_mbd.mechanism import (
    Bushing,
    FlexibleBody,
    Frame,
    Ground,
    JointCoordinate,
    JointLoad,
    JointSpring,
    RigidBody,
    SpringDamper,
    force,
    revolute,
)
from tests.models.particles import Particles


def chain(links: int, *, flexible: bool = False, loads: bool = False) -> System:
    """Return bars of 1 kg and 1 m in a row along x, hinged about z, under gravity along −y."""
    ground = Ground({"wall": Frame(), "far": Frame((0.3, 1.0, 0.0))})
    bodies: list = [ground]
    joints, previous = [], ground.frame("wall")
    ends = {"near": Frame((-0.5, 0.0, 0.0)), "far": Frame((0.5, 0.0, 0.0))}
    for k in range(links):
        inertia = np.array([1e-3, 1 / 12, 1 / 12])
        place = (k + 0.5, 0.0, 0.0)
        link = RigidBody(f"link {k}", 1.0, inertia, frames=ends, position=place)
        bodies.append(link)
        joints.append(revolute(f"hinge {k}", previous, link.frame("near")))
        previous = link.frame("far")
    actions: list = []
    if flexible:
        body = FlexibleBody("lump", Particles(3).body(stiffening=True), position=(1.0, 2.0, 0.0))
        bodies.append(body)
        actions.append(Bushing("mount", previous, body.frame("one"), np.full(6, 50.0), np.ones(6)))
    if loads:
        bend = JointCoordinate("hinge 1", "rotation")
        actions += [
            JointLoad("push", "hinge 0", "rotation", lambda t, s, rate: 3 + s - 0.1 * rate, bend),
            JointSpring("spring", "hinge 1", 5.0, 0.2),
            SpringDamper("strut", ground.frame("far"), previous, 30.0, 1.0),
            force("wind", previous, lambda t, motion: -0.3 * motion.velocity),
        ]
    return System(bodies, joints, loads=actions, gravity=(0.0, -9.81, 0.0))


def pair(system: System, steps: int = 3, dt: float = 1e-3) -> tuple[Stepper, Stepper]:
    """Return a dense and a sparse stepper after the same steps."""
    start = consistent_state(system, elastic_start="undeformed")
    steppers = []
    for sparse in (False, True):
        stepper = Stepper(system, sparse=sparse)
        state = stepper.begin(start, dt)
        for _ in range(steps):
            state = stepper.step(state, dt)
        steppers.append((stepper, state))
    (dense, exact), (sparse_stepper, value) = steppers
    scale = np.abs(exact.v).max()
    np.testing.assert_allclose(value.q, exact.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(value.v, exact.v, rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(value.lam, exact.lam, rtol=0, atol=1e-6 * np.abs(exact.lam).max())
    return dense, sparse_stepper


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("loads", [False, True])
def test_the_sparse_matrix_is_the_dense_one(flexible: bool, loads: bool) -> None:
    """The mechanism has every block: joints, loads on joints, springs, a flexible body."""
    system = chain(4, flexible=flexible, loads=loads)
    dense, sparse = pair(system)
    state = consistent_state(system, elastic_start="undeformed")
    rng = np.random.default_rng(1)
    move = 1e-2 * rng.normal(size=system.num_velocities)
    matrices = []
    for stepper in (dense, sparse):
        eqs = stepper.assembler
        eqs.q[:], eqs.v[:], eqs.a[:], eqs.lam[:] = state.q, 0.3, 0.1, 5.0
        eqs.residual(0.2)
        matrices.append(stepper.corrector.matrix.evaluate(eqs, 0.2, move, 4e6, 2e3))
    for exact, value in zip(*matrices, strict=True):
        assert scipy.sparse.issparse(value)
        np.testing.assert_allclose(value.toarray(), exact, rtol=0, atol=1e-13 * np.abs(exact).max())


def test_size_grows_with_the_links() -> None:
    """Twice as many links give twice as many entries in the matrix and in its factors."""
    entries, fill = [], []
    for links in (40, 80, 160):
        system = chain(links)
        stepper = Stepper(system)
        assert stepper.sparse
        start = consistent_state(system)
        stepper.step(stepper.begin(start, 1e-3), 1e-3)
        factor = stepper.corrector.factor
        assert factor is not None
        entries.append(factor.matrix.nnz)  # type: ignore[union-attr]
        fill.append(factor.lu.L.nnz + factor.lu.U.nnz)  # type: ignore[union-attr]
    for few, more in ((0, 1), (1, 2)):
        assert 1.8 < entries[more] / entries[few] < 2.1
        assert fill[more] / fill[few] < 2.3


def test_few_bodies_stay_dense() -> None:
    assert not Stepper(chain(3)).sparse
    assert not Stepper(chain(3, flexible=True)).sparse


def test_a_restored_stepper_goes_on_to_the_same_bits() -> None:
    system = chain(30)
    first, start = Stepper(system, sparse=True), consistent_state(system)
    state = first.begin(start, 1e-3)
    for _ in range(4):
        state = first.step(state, 1e-3)
    second = Stepper(system, sparse=True)
    second.restore({k: np.asarray(v) for k, v in first.memory().items()})
    copy = state
    for _ in range(3):
        state, copy = first.step(state, 1e-3), second.step(copy, 1e-3)
    for value, expected in ((state.q, copy.q), (state.a, copy.a), (state.lam, copy.lam)):
        np.testing.assert_array_equal(value, expected)
    assert first.factorizations == second.factorizations


def test_a_chain_keeps_its_energy() -> None:
    """`simulate` chooses the sparse matrix for a hundred links that fall under gravity."""
    run = simulate(chain(100), t_end=0.05, dt=1e-3)
    total = run.energies().total
    assert np.ptp(total) < 1e-3 * np.ptp(run.energies().kinetic)
    assert run.constraint_violation().max() < 1e-9


def test_a_singular_matrix_is_an_error() -> None:
    """The second of two equal hinges makes the matrix singular, and the error states this."""
    system = chain(2)
    doubled = System(
        system.bodies,
        [*system.joints, revolute("twin", system.joints[0].first, system.joints[0].second)],
        gravity=(0.0, -9.81, 0.0),
    )
    stepper = Stepper(doubled, sparse=True)
    start = consistent_state(system)
    state = type(start)(
        0.0,
        start.q,
        start.v,
        start.a,
        np.concatenate([start.lam, np.zeros(5)]),
        np.zeros(3),
    )
    with pytest.raises(StepError, match="singular"):
        stepper.step(state, 1e-3)
