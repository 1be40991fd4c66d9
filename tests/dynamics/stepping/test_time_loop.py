"""The time loop: equal motions from all ways of its computation, and only converged steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from mpi4py import MPI
from threadpoolctl import ThreadpoolController

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import Stepper, System, consistent_state
from dolfinx_mbd.dynamics.assembly.floating_bodies import FloatingBodies
from dolfinx_mbd.dynamics.stepping.convergence import Monitor
from dolfinx_mbd.dynamics.stepping.formulas import Derivatives
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.mechanism import (
    BodyState,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    State,
    distance,
    force,
)
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from dolfinx_mbd.results import Solution
from tests.models.beams import slender_rod
from tests.models.particles import Particles

DT, SPEED = 1e-5, 300.0


def engine(**settings: object) -> System:
    """Return an engine of two cylinders with flexible rods."""
    rod = slender_rod(length=0.14, bending=4, axial=1)
    return inline_engine(rod, EngineDesign(cylinders=2), speed=SPEED, gas=False, **settings)  # type: ignore[arg-type]


def motion(**settings: object) -> np.ndarray:
    """Return coordinates of an engine's first steps, (steps, nq)."""
    return simulate(engine(), t_end=60 * DT, dt=DT, **settings).q  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [1e-8, 1e-11])
def test_with_and_without_reuse(tolerance: float) -> None:
    """With one matrix for many iterations, the difference is below the tolerance."""
    system = engine()
    start = consistent_state(system)
    runs = []
    for reuse in (True, False):
        stepper = Stepper(system, tolerance=tolerance, reuse=reuse)
        states = [stepper.begin(start, DT)]
        for _ in range(60):
            states.append(stepper.step(states[-1], DT))
        counts = {"iterations": stepper.iterations, "factorizations": stepper.factorizations}
        runs.append(Solution(system, states, **counts))
    with_reuse, without = runs
    assert without.factorizations == without.iterations > 3 * with_reuse.factorizations
    # errors of accelerations and multipliers are multiplied by the stiffness of the modes
    loose = 1e4 * tolerance
    for key, allowed in (("q", 1e-9), ("v", 1e-9), ("a", loose), ("lam", loose)):
        value, expected = getattr(with_reuse, key), getattr(without, key)
        assert np.abs(value - expected).max() < allowed * np.abs(value).max(), key


@pytest.mark.skipif(not COMPILED, reason="compares compiled kernels with NumPy")
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
@pytest.mark.slow
def test_with_and_without_numba() -> None:
    code = (
        "import json; from tests.dynamics.stepping.test_time_loop import COMPILED, motion;"
        "assert not COMPILED; print(json.dumps(motion().tolist()))"
    )
    environment = os.environ | {"DOLFINX_MBD_NUMBA": "0"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    without, compiled = np.array(json.loads(run.stdout)), motion()
    assert np.abs(compiled - without).max() < 1e-9 * np.abs(compiled).max()


def errors(
    system: System, state: State, steps: int, dt: float = DT, tolerance: float = 1e-8
) -> tuple[list[float], int]:
    """Return the ratios of error and tolerance, and the number of states without an evaluation.

    The ratios are those of all accepted states; a second stepper evaluates each of them with the
    factor of the first one.
    """
    stepper, checker = Stepper(system, tolerance=tolerance), Stepper(system, tolerance=tolerance)
    method = stepper.method
    ratio = (1 - method.alpha_f) / (1 - method.alpha_m)
    # Derivative of the accelerations with respect to the increments of a step
    a_by_move = 1 / (dt * dt * method.beta * ratio)
    derivatives = Derivatives(a_by_move, method.gamma / (dt * method.beta), ratio)
    evaluated: list[float] = []
    corrector = stepper.corrector
    measure, error, joint_error = (
        corrector.measure,
        corrector.measure.residual,
        corrector.joint_error,
    )
    measure.residual = lambda *args: evaluated.append(error(*args)) or evaluated[-1]  # type: ignore

    def of_joints(*args: float) -> float:
        evaluated[-1] = max(evaluated[-1], joint_error(*args))  # type: ignore
        return evaluated[-1]

    corrector.joint_error = of_joints  # type: ignore
    largest, not_evaluated = [], 0
    state = stepper.begin(state, dt)
    for _ in range(steps):
        state = stepper.step(state, dt)
        not_evaluated += evaluated[-1] > 1.0  # one more correction followed this evaluation
        eqs = checker.assembler
        eqs.put(state)
        eqs.residual(state.time)
        check = checker.corrector
        residual = check.measure.residual(eqs, checker.tolerance, a_by_move)
        check.restore_factor(corrector.factor_memory())
        if check.factor is None:
            check.refactor(state.time, dt, np.zeros(len(eqs.v)), derivatives)
        correction = check.correction(a_by_move)
        largest.append(max(residual, check.joint_error(correction, a_by_move, True)))
    return largest, not_evaluated


@pytest.mark.parametrize("start", ["quasi-static", "undeformed"])
def test_every_accepted_step_has_converged(start: str) -> None:
    """This also holds if the last correction is not evaluated."""
    system = engine()
    first = consistent_state(system, elastic_start=start)  # type: ignore[arg-type]
    largest, not_evaluated = errors(system, first, 150, tolerance=1e-11)
    assert not_evaluated > 10
    assert max(largest) <= 1.0
    assert max(errors(system, first, 150)[0]) <= 1.0


def test_residuals_are_evaluated_with_an_outdated_matrix() -> None:
    """Every accepted step has converged, also with the matrix of an earlier step.

    For this conical pendulum, the first correction of a step is so accurate that few steps have two
    evaluations of the residual, from which the rate of convergence could be estimated.
    """
    length, tilt = 0.8, 0.5
    place = (length * np.sin(tilt), 0.0, -length * np.cos(tilt))
    bob = RigidBody("bob", 1.5, [1e-3] * 3, frames={"c": Frame()}, position=place)
    ground = Ground({"o": Frame()})
    rod = distance("rod", ground.frame("o"), bob.frame("c"))
    system = System([ground, bob], [rod], gravity=(0, 0, -9.81))
    omega = np.sqrt(9.81 / (length * np.cos(tilt)))
    start = consistent_state(system, v=np.array([0, omega * place[0], 0, 0, 0, 0]))
    largest, _ = errors(system, start, 2000, dt=np.pi / omega / 1000)
    assert max(largest) <= 1.0


def test_residuals_of_user_defined_forces_are_always_evaluated() -> None:
    """Since a user-defined force may jump, the last residual of a step is always evaluated."""
    system = engine()
    frame = next(b for b in system.bodies if b.name == "piston 1").frame("pin")  # type: ignore[attr-defined]
    loaded = System(
        system.bodies,
        system.joints,
        drivers=system.drivers,
        loads=[force("stop", frame, lambda t, m: (-1e3 if m.position[0] > 0.17 else 0.0, 0, 0))],
    )
    largest, not_evaluated = errors(loaded, consistent_state(loaded), 20)
    assert not_evaluated == 0
    assert max(largest) <= 1.0


def test_a_monitor_predicts_from_one_matrix_only() -> None:
    monitor = Monitor(smooth=True)
    monitor.add_error(1e5)
    assert not (
        monitor.skips_residual or monitor.slow or monitor.too_slow(10)
    )  # one error gives no ratio
    monitor.add_error(5.0)
    assert not monitor.skips_residual  # the first ratio is smaller than later ones and is not used
    monitor.add_error(2e-3 * 5.0 + 1.0)
    assert monitor.slow  # 0.2 times the previous error
    monitor = Monitor(smooth=True)
    for error in (1e5, 1e3, 5.0):
        monitor.add_error(error)
    assert monitor.skips_residual  # falls to 0.05 at the slower factor
    monitor.reset()
    assert not monitor.skips_residual
    jumping = Monitor(smooth=False)
    for error in (1e5, 1e2, 1e-1):
        jumping.add_error(error)
    assert not jumping.skips_residual
    stalled = Monitor(smooth=True)
    for error in (1e5, 9e4):
        stalled.add_error(error)
    assert stalled.slow and stalled.too_slow(10)
    falling = Monitor(smooth=True)
    for error in (1e10, 1e9, 1e8):
        falling.add_error(error)
    assert falling.slow and falling.too_slow(10)  # a ratio of 0.1 is too slow for this error
    near = Monitor(smooth=True)
    for error in (1e4, 1e3, 1e2):
        near.add_error(error)
    assert not near.too_slow(10)
    assert near.too_slow(1)  # two iterations suffice


def test_drivers_are_evaluated_once_a_step() -> None:
    """The functions of drivers depend on time alone."""
    times: list[float] = []

    def speed(t: float) -> tuple[float, float, float]:
        times.append(t)
        return SPEED * t, SPEED, 0.0

    system = engine()
    driver = system.drivers[0].__class__("drive", system.drivers[0].joint, speed)
    driven = System(system.bodies, system.joints, drivers=[driver])
    stepper = Stepper(driven)
    state = stepper.begin(consistent_state(driven), DT)
    times.clear()
    state = stepper.step(state, DT)
    assert times == [0.0, state.time]
    times.clear()
    state = stepper.step(state, DT)
    assert times == [state.time]


# ---- all bodies at once -------------------------------------------------------------------------


def bodies() -> System:
    """Return rigid bodies, a body with geometric stiffening, and two that share a reduced body."""
    rod = slender_rod(bending=3, axial=1)
    frames = {"a": Frame((0.1, 0.2, 0.3)), "b": Frame((0.0, -0.1, 0.0))}
    return System(
        [
            RigidBody("block", 2.0, (1.0, 1.2, 1.3), (0.01, 0.0, 0.02), frames),
            FlexibleBody("lump", Particles(4).body(stiffening=True)),
            FlexibleBody("rod", rod),
            RigidBody("free", 1.0, (1.0, 1.0, 1.0)),
            FlexibleBody("twin", rod),
        ],
        gravity=(0.0, -9.81, 1.0),
    )


@dataclass
class Point:
    """A random state of a system, and wrenches on its frames."""

    system: System

    def __post_init__(self) -> None:
        s, rng = self.system, np.random.default_rng(3)
        self.q, self.v, self.a = (
            rng.normal(size=k) for k in (s.num_coordinates, s.num_velocities, s.num_velocities)
        )
        for part in s.q_slices:
            quaternion = self.q[part.start + 3 : part.start + 7]
            quaternion /= np.linalg.norm(quaternion)
        self.q[7:] *= 0.1
        self.wrenches = rng.normal(size=(s.num_frames, 6))


def test_all_bodies_at_once_are_each_body() -> None:
    system = bodies()
    p, floating = Point(system), FloatingBodies(system)
    nf, nv = system.num_frames, system.num_velocities
    position, rotation, velocities = np.zeros((nf, 3)), np.zeros((nf, 3, 3)), np.zeros((nf, 6))
    rows, scale, moved = np.zeros(nv), np.zeros(nv), np.zeros_like(p.q)
    jacobians = np.zeros((nf, 6, max(b.num_velocities for b in system.bodies)))
    point = p.q, p.v, p.a, system.gravity, p.wrenches
    floating.poses(p.q, position, rotation)
    floating.velocities(p.q, p.v, velocities)
    floating.residual(*point, rows, scale)
    floating.increment(p.q, p.v, moved)
    floating.jacobians(p.q, jacobians)
    tangents = list(floating.tangents(*point))
    for k, body in enumerate(system.bodies):
        q, v, f = system.q_slices[k], system.v_slices[k], system.frame_slices[k]
        F, n = len(body.frame_names), body.num_velocities
        arrays = [np.zeros((F, 3)), np.zeros((F, 3, 3)), np.zeros((F, 6))]
        body.poses(p.q[q], *arrays[:2])
        body.frame_velocities(p.q[q], p.v[v], arrays[2])
        for value, of_all in zip(arrays, (position, rotation, velocities), strict=True):
            np.testing.assert_array_equal(of_all[f], value)
        out = np.zeros(n), np.zeros(n), np.zeros_like(p.q[q])
        place = BodyState(0.0, p.q[q], p.v[v], p.a[v], system.gravity, p.wrenches[f])
        body.residual(place, *out[:2])
        body.increment(p.q[q], p.v[v], out[2])
        for value, of_all in zip(out, (rows[v], scale[v], moved[q]), strict=True):
            np.testing.assert_array_equal(of_all, value)
        np.testing.assert_array_equal(jacobians[f, :, :n], body.frame_jacobians(p.q[q]))
        for value, expected in zip(tangents[k], body.tangent(place), strict=True):
            np.testing.assert_array_equal(value, expected)


def test_bodies_of_one_reduced_body_share_its_numbers() -> None:
    rod = slender_rod(bending=3, axial=1)
    sizes = [
        FloatingBodies(System([FlexibleBody(f"rod {k}", rod) for k in range(count)])).data.size
        for count in (1, 3)
    ]
    assert sizes[0] == sizes[1]


def test_a_body_with_equations_of_its_own_keeps_them() -> None:
    """The compiled kernels do not replace a subclass that adds a force."""

    class Pushed(RigidBody):
        def residual(self, state: BodyState, out: np.ndarray, scale: np.ndarray) -> None:
            super().residual(state, out, scale)
            out[0] -= 6.0

    system = System([Pushed("block", 2.0, (1.0, 1.0, 1.0))])
    run = simulate(system, t_end=0.01, dt=1e-3)
    # 6 N on 2 kg for 0.01 s
    np.testing.assert_allclose(run.body("block").velocity[-1], (0.03, 0.0, 0.0), atol=1e-9)


def test_bits_do_not_depend_on_the_threads_of_blas() -> None:
    """`simulate` uses one thread of BLAS, and then restores their number."""
    system, blas = engine(), ThreadpoolController().select(user_api="blas")
    assert blas
    runs = []
    for count in (1, 2):
        with blas.limit(limits=count):
            runs.append(simulate(system, t_end=20 * DT, dt=DT))
            assert {entry["num_threads"] for entry in blas.info()} == {count}
    assert np.array_equal(runs[0].q, runs[1].q)
