"""Jumps of inputs between steps: the equations that they satisfy, and what later steps receive."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.mechanism import JointFriction, PatternLoad, State
from tests.analyses.test_simulator import same
from tests.mechanism.test_special_joints import shafts
from tests.models.beams import slender_rod
from tests.models.rods import rod

DT = 1e-3
Model = tuple[mbd.System, dict[str, float]]  # and the sizes of the jumps of its inputs


def arm() -> Model:
    """Return a flexible arm with springs, loads at frames, and a load with a state."""
    ground = mbd.Ground({"pin": mbd.Frame((-0.5, 0, 0)), "wall": mbd.Frame((0.3, 0.8, 0.2))})
    beam = mbd.FlexibleBody("beam", rod())
    frames = {"ball": mbd.Frame(), "end": mbd.Frame((0.3, 0, 0.1))}
    tip = mbd.RigidBody(
        "tip", 0.4, [0.01, 0.02, 0.03], (0.2, 0, 0), frames=frames, position=(0.5, 0, 0)
    )
    joints = [
        mbd.revolute("pin", ground.frame("pin"), beam.frame("left")),
        mbd.spherical("ball", beam.frame("right"), tip.frame("ball")),
    ]
    # a controller of the angle 0.3 with a time constant of 0.02 s
    lag: Any = lambda t, s, rate, states: (states[0], [(0.3 - s - states[0]) / 0.02])  # noqa: E731
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", 0.5),
        mbd.JointSpring("spring", "pin", law=lambda s, rate: -40 * s**3 - 0.3 * rate * abs(rate)),
        mbd.SpringDamper("strut", ground.frame("wall"), tip.frame("end"), 200.0, 1.5),
        mbd.force("push", tip.frame("end"), (0, 0, 2.0), axes="frame"),
        PatternLoad("gust", beam.pattern("wind"), 0.0),
        mbd.JointLoad("control", "pin", "rotation", lag, states=[0.0]),
    ]
    system = mbd.System([ground, beam, tip], joints, loads=loads, gravity=(0, -9.81, 0))
    return system, {"motor": 3.0, "push.z": 1.0, "strut.stiffness": 50.0, "gust": 20.0}


def spinning() -> Model:
    """Return a rigid body that makes a turn in 30 steps, with friction."""
    ground = mbd.Ground({"pin": mbd.Frame()})
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()},
                        omega=(0, 0, 200.0))  # fmt: skip
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", 0.0),
        JointFriction("friction", "pin", limit=0.5, rate=0.02),
    ]
    system = mbd.System([ground, bob], [pin], loads=loads, gravity=(0, -9.81, 0))
    return system, {"motor": 1e3}


def crank() -> Model:
    """Return a crank with a flexible rod, and a user-defined torque in addition to the inputs."""
    system = mbd.mechanism.mechanisms.slider_crank(
        slender_rod(bending=2, axial=0), torque=lambda t, angle, rate: 20.0 + 3.0 * np.sin(angle),
        crank_radius=0.15, crank_mass=0.36, piston_mass=0.0755,
    )  # fmt: skip
    body = system.bodies[2]
    push = mbd.force("push", body.frame("middle"), (0.0, 0.0, 0.0))
    joint = system.loads[0].joint
    more = [push, mbd.JointLoad("brake", joint, "rotation", 0.0)]
    system = mbd.System(
        system.bodies, system.joints, loads=[*system.loads, *more], gravity=system.gravity
    )
    return system, {"push.x": 30.0, "push.y": 100.0, "brake": 5.0}


def driven() -> Model:
    """Return two shafts on a constant-velocity joint; their driver is an input."""
    system = shafts(0.9, "constant_velocity")
    load = mbd.torque("wind", ("two", "c"), (0.0, 0.0, 0.0))
    system = mbd.System(system.bodies, system.joints, drivers=system.drivers, loads=[load])
    return system, {"drive": 1e-4, "wind.x": 1.0, "wind.z": 2.0}


MODELS = [arm, spinning, crank, driven]


def begin(model: Callable[[], Model]) -> tuple[Inputs, Stepper, State, np.ndarray]:
    system, sizes = model()
    inputs = Inputs(system, [*sizes])
    stepper = Stepper(inputs.system)
    state = stepper.begin(mbd.dynamics.consistent_state(inputs.system), DT)
    return inputs, stepper, state, np.array([*sizes.values()])


def two_corrections(stepper: Stepper, state: State, dt: float) -> State:
    """Evaluate all equations for both corrections; only the first one may need a new matrix."""
    eqs, corrector = stepper.assembler, stepper.corrector
    eqs.put(state)
    n = len(state.v)
    for _ in range(2):
        eqs.residual(state.time)
        if not corrector.has_factor_for(dt):
            corrector.refactor(state.time, dt, np.zeros(n), stepper.formulas.derivatives(dt))
        change = corrector.solve(np.concatenate([-eqs.rows, np.zeros(len(eqs.lam))]))
        eqs.a += change[:n]
        eqs.lam += corrector.mass * change[n:]
    a, lam = eqs.a - state.a, eqs.lam - state.lam
    memory = {
        "algorithmic": state.memory["algorithmic"] + a,
        "earlier": tuple((x + a, y + lam) for x, y in state.memory.get("earlier", ())),
    }
    return State(state.time, state.q, state.v, state.a + a, state.lam + lam, state.angles, memory)


@pytest.mark.parametrize("model", MODELS)
def test_no_load_depends_on_accelerations_or_multipliers(model: Callable[[], Model]) -> None:
    """New accelerations with the old wrenches of the loads give the same bits as all equations."""
    inputs, stepper, state, sizes = begin(model)
    eqs, random = stepper.assembler, np.random.default_rng(5)
    for _ in range(10):
        state = stepper.step(state, DT)
    for _ in range(3):
        inputs.put((inputs.values + sizes * random.normal(size=len(sizes))).tolist())
        stepper.put(state)
        eqs.update_loads(state.time)
        loads = eqs.wrenches.copy()
        eqs.a[:], eqs.lam[:] = random.normal(size=len(eqs.a)), random.normal(size=len(eqs.lam))
        eqs.residual_of_accelerations(state.time, loads)
        results = [x.copy() for x in (eqs.rows, eqs.scale, eqs.values, eqs.wrenches)]
        eqs.residual(state.time)
        expected = eqs.rows, eqs.scale, eqs.values, eqs.wrenches
        assert all(np.array_equal(x, y) for x, y in zip(results, expected, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_a_jump_equals_two_corrections_with_all_equations(model: Callable[[], Model]) -> None:
    """Jumps of very different sizes, with the outdated matrices of a run with large rotations."""
    inputs, stepper, state, sizes = begin(model)
    random, start = np.random.default_rng(7), np.array(inputs.values)
    for _ in range(60):
        jumps = sizes * random.normal(size=len(sizes)) * 10.0 ** random.uniform(-6, 0)
        inputs.put((start + jumps).tolist())
        memory = stepper.memory()
        expected = two_corrections(stepper, state, DT)
        stepper.restore(memory)
        after = stepper.after_jump(state, DT)
        pairs = [(after.a, expected.a), (after.lam, expected.lam)]
        pairs += [tuple(s.memory["algorithmic"] for s in (after, expected))]
        earlier = (s.memory.get("earlier", ()) for s in (after, expected))
        pairs += [pair for both in zip(*earlier, strict=True) for pair in zip(*both, strict=True)]
        for x, y in pairs:
            assert np.abs(x - y).max(initial=0.0) <= 1e-12 * np.abs(y).max(initial=0.0)
        state = stepper.step(after, DT)
    assert all(np.array_equal(getattr(after, key), getattr(expected, key)) for key in ("q", "v"))


@pytest.mark.parametrize("model", MODELS)
def test_jumps_after_a_restart_or_a_new_start_are_the_same_bits(
    model: Callable[[], Model],
) -> None:
    system, sizes = model()
    simulator = mbd.Simulator(system, dt=DT, inputs=[*sizes])
    random, start = np.random.default_rng(9), simulator.inputs

    def values() -> dict[str, float]:
        return {name: start[name] + size * random.normal() for name, size in sizes.items()}

    for _ in range(15):
        simulator.step(values())
    snapshot, later = pickle.loads(pickle.dumps(simulator.save())), [values() for _ in range(15)]
    states = [simulator.step(new) for new in later]
    for copy in (simulator, mbd.Simulator(system, dt=DT, inputs=[*sizes])):
        copy.restore(snapshot)
        assert all(same(copy.step(new), state) for new, state in zip(later, states, strict=True))
    # a run that starts from a state, in a new simulator and in one with another past
    started = mbd.Simulator(system, dt=DT, inputs=[*sizes], start=states[-1])
    simulator.reset(start=states[-1])
    assert all(same(*(run.step(new) for run in (started, simulator))) for new in later)
