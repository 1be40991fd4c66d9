"""`Simulator`: bitwise the steps of `simulate`, inputs that are constant in a step, snapshots."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dolfinx_mbd.analyses import Simulator, simulate
from dolfinx_mbd.dynamics import Adaptive, StepError, System
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    JointFriction,
    JointLoad,
    JointSpring,
    PatternLoad,
    RigidBody,
    SpringDamper,
    State,
    constant_speed,
    fixed,
    force,
    prismatic,
    revolute,
)
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine, slider_crank
from dolfinx_mbd.results import Solution
from dolfinx_mbd.time_integration import GeneralizedAlpha
from tests.models.beams import slender_rod
from tests.models.rods import rod

KEYS = ("time", "q", "v", "a", "lam", "angles")
GRAVITY = (0.0, -9.81, 0.0)


def same(one: State, two: State) -> bool:
    """Return whether two states, with their algorithmic accelerations, are bitwise identical."""
    equal = all(np.array_equal(getattr(one, key), getattr(two, key)) for key in KEYS)
    return equal and np.array_equal(one.memory["algorithmic"], two.memory["algorithmic"])


def looped(simulator: Simulator) -> Solution:
    """Return the solution of a simulator that takes all its steps in a loop."""
    states = [simulator.state]
    while not simulator.steps.done:
        states.append(simulator.step())
    return Solution(simulator.system, states)


def gas_engine() -> System:
    """Return an engine of two cylinders with flexible rods and gas."""
    design = EngineDesign(cylinders=2, bore=0.08)
    return inline_engine(slender_rod(length=0.14, bending=4, axial=1), design, speed=300.0)


def crank(piston_mass: float = 0.0755) -> System:
    """Return a flexible rod with stiffening, and a user-defined torque."""
    motor = lambda t, angle, rate: 20.0 + 3.0 * np.sin(angle)  # noqa: E731
    return slider_crank(
        slender_rod(bending=2, axial=0), torque=motor, crank_radius=0.15, crank_mass=0.36,
        piston_mass=piston_mass,
    )  # fmt: skip


def stopped_pendulum() -> System:
    """Return a pendulum with friction that hits a stop."""
    ground, bob = pendulum_bodies()
    loads = [
        JointFriction("friction", "pin", limit=0.5, rate=0.02),
        JointSpring("stop", "pin", law=lambda s, rate: -1e5 * max(-s - 1.0, 0.0)),
    ]
    pin = revolute("pin", ground.frame("pin"), bob.frame("pin"))
    return System([ground, bob], [pin], loads=loads, gravity=GRAVITY)


def pendulum_bodies() -> tuple[Ground, RigidBody]:
    """Return the ground and the bob of a pendulum."""
    frames = {"pin": Frame(), "c": Frame((1, 0, 0))}
    bob = RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames=frames)
    return Ground({"pin": Frame()}), bob


def arm(*loads: Any, gravity: tuple[float, float, float] = GRAVITY) -> System:
    """Return a pendulum with a motor and other loads."""
    ground, bob = pendulum_bodies()
    motor = JointLoad("motor", "pin", "rotation", 0.0)
    pin = revolute("pin", ground.frame("pin"), bob.frame("pin"))
    return System([ground, bob], [pin], loads=[motor, *loads], gravity=gravity)


# ---- the bits of `simulate` ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("system", "t_end", "dt"),
    [
        (gas_engine, 0.005, 2e-5),
        (crank, 0.02, 1e-4),
        (crank, 0.02, Adaptive(1e-4)),
        (stopped_pendulum, 1.0, 2e-3),
    ],
    ids=["gas", "stiffening", "adaptive", "friction and stop"],
)
def test_a_loop_gives_the_bits_of_simulate(system: Any, t_end: float, dt: Any) -> None:
    run = simulate(system(), t_end=t_end, dt=dt)
    simulator = Simulator(system(), dt=dt, t_end=t_end)
    stepped = looped(simulator)
    assert all(np.array_equal(getattr(run, key), getattr(stepped, key)) for key in KEYS)
    assert same(run.final_state, stepped.final_state)
    assert (run.iterations, run.factorizations) == (
        simulator.stepper.iterations,
        simulator.stepper.factorizations,
    )
    with pytest.raises(InputError):
        simulator.step()


def test_without_an_end() -> None:
    """Since dt = 1/512 s is exact in binary, the steps equal those of a run with an end."""
    run, simulator = simulate(arm(), t_end=0.5, dt=1 / 512), Simulator(arm(), dt=1 / 512)
    for _ in range(256):
        simulator.step()
    assert same(simulator.state, run.final_state)


@pytest.mark.parametrize("t_end", [0.02, 0.3, 0.7])
@pytest.mark.parametrize("count", [3, 70, 700])
def test_no_run_of_round_off(t_end: float, count: int) -> None:
    """The time of the last state is the end up to round-off, which is not a step to take."""
    system, dt = arm(), t_end / count
    last = simulate(system, t_end=t_end, dt=dt).final_state
    assert last.time == pytest.approx(t_end, rel=1e-13)
    for steps in (dt, Adaptive()):
        for end in (t_end, np.nextafter(last.time, np.inf)):
            with pytest.raises(InputError) as error:
                simulate(system, t_end=end, dt=steps, start=last)
            assert error.value.argument == "t_end"
    after = simulate(system, t_end=t_end + dt, dt=dt, start=last)
    assert len(after) == 2 and np.abs(np.diff(after.a, axis=0)).max() < 1e3 * dt


def test_redundant_constraints_and_starts_are_those_of_simulate() -> None:
    from tests.dynamics.start.test_start import planar_crank

    options: dict[str, Any] = {"start": {"main": 20.0}, "redundant": "keep"}
    run = simulate(planar_crank(pins=True), t_end=0.02, dt=1e-3, **options)
    stepped = looped(Simulator(planar_crank(pins=True), t_end=0.02, dt=1e-3, **options))
    assert np.array_equal(run.q, stepped.q)
    assert np.array_equal(run.joint("guide").force, stepped.joint("guide").force)
    later = Simulator(planar_crank(pins=True), dt=1e-3, **options | {"start": run.final_state})
    assert later.step().time == pytest.approx(0.021)


# ---- inputs -------------------------------------------------------------------------------------
def test_a_held_force_moves_a_free_mass_exactly() -> None:
    """Constant acceleration in each step: v += F dt/m and x += v dt + F dt²/2m, for any forces."""
    ground = Ground({"o": Frame()})
    mass = RigidBody("mass", 2.0, [0.1] * 3, frames={"c": Frame()})
    system = System([ground, mass], loads=[force("push", mass.frame("c"), (0, 0, 0))])
    simulator = Simulator(system, dt=0.1, inputs=["push.x", "push.z"])
    x = v = np.zeros(2)
    for values in np.random.default_rng(1).normal(size=(20, 2)):
        state = simulator.step({"push.x": values[0], "push.z": values[1]})
        x, v = x + 0.1 * v + 0.005 * values / 2, v + 0.1 * values / 2
        assert np.abs(state.q[[0, 2]] - x).max() < 1e-13
        assert np.abs(state.v[[0, 2]] - v).max() < 1e-13


def test_held_torques_converge_with_second_order() -> None:
    """A pendulum whose torque jumps every 0.05 s agrees with an explicit method."""
    torques = [30.0, -10.0, 50.0, 0.0, 20.0, -40.0]
    inertia = 0.01 + 2.0  # 2 kg at 1 m, and its own inertia

    def exact() -> np.ndarray:
        y = np.zeros(2)
        for torque in torques:
            y = solve_ivp(
                lambda t, y, u=torque: [y[1], (u - 2 * 9.81 * np.cos(y[0])) / inertia],
                (0, 0.05), y, rtol=1e-12, atol=1e-14,
            ).y[:, -1]  # fmt: skip
        return y

    def error(steps: int) -> float:
        simulator = Simulator(arm(), dt=0.05 / steps, inputs=["motor"])
        for torque in torques:
            for _ in range(steps):
                state = simulator.step({"motor": torque})
        return float(np.abs([state.angles[0] - y[0], state.v[5] - y[1]]).max())

    y = exact()
    errors = [error(steps) for steps in (5, 10, 20)]
    assert errors[2] < 1e-3 * np.abs(y).max()
    assert errors[0] / errors[1] > 3.3
    assert errors[1] / errors[2] > 3.3


def test_inputs_of_every_kind_act() -> None:
    """Each input has the effect of a system that was built with its value."""
    ground, bob = pendulum_bodies()
    rail = RigidBody("rail", 1.0, [0.1] * 3, frames={"o": Frame()})

    def build(lift: float = 0.0, k: float = 0.0, place: float = 0.0, motor: Any = 0.0) -> System:
        joints = [
            revolute("pin", ground.frame("pin"), bob.frame("pin")),
            prismatic("slide", ground.frame("pin"), rail.frame("o")),
        ]
        loads = [
            force("push", bob.frame("c"), (0.0, lift, 0.0), axes="frame"),
            JointLoad("motor", "pin", "rotation", motor),
            SpringDamper("spring", rail.frame("o"), bob.frame("c"), k, length=0.5),
        ]
        drive = Driver("place", "slide", lambda t: (place, 0.0, 0.0))
        return System([ground, bob, rail], joints, drivers=[drive], loads=loads, gravity=GRAVITY)

    values = {"push.y": 3.0, "spring.stiffness": 40.0, "place": 0.2, "motor": 5.0}
    law = lambda t, s, rate: 1e9  # noqa: E731  (replaced by the input)
    simulator = Simulator(build(motor=law), dt=0.01, inputs=[*values])
    assert simulator.inputs == dict.fromkeys(values, 0.0)
    start = simulator.reset(inputs=values)
    reference = Simulator(build(3.0, 40.0, 0.2, 5.0), dt=0.01)
    for _ in range(20):
        assert np.array_equal(simulator.step().q, reference.step().q)
    assert start.q[9] == pytest.approx(0.2)
    assert simulator.inputs == values


def test_outputs_follow_the_inputs() -> None:
    """Outputs share an assembler; they equal those of a new solution after each change."""
    ground, bob = pendulum_bodies()
    pin = revolute("pin", ground.frame("pin"), bob.frame("pin"))
    rail = RigidBody("rail", 1.0, [0.1] * 3, frames={"o": Frame()})
    slide = prismatic("slide", ground.frame("pin"), rail.frame("o"))
    motor = JointLoad("motor", "pin", "rotation", 0.0)
    drive = Driver("place", "slide", lambda t: (0.0, 0.0, 0.0))
    system = System(
        [ground, bob, rail], [pin, slide], drivers=[drive], loads=[motor], gravity=GRAVITY
    )
    names = ["motor.power", "pin.rotation_rate", "place.violation", "slide.force.x"]
    solutions: list[Solution] = []

    def power(run: Solution) -> Any:
        solutions.append(run)
        return run.element("motor").power

    outputs = {name: lambda run, name=name: next(run._series([name])).values for name in names}
    simulator = Simulator(
        system, dt=0.01, inputs=["motor", "place"], outputs={**outputs, "power": power}
    )
    for k in range(5):
        simulator.step({"motor": 2.0 * k, "place": 1e-3 * k})
        values, run = simulator.outputs, Solution(simulator.system, [simulator.state])
        for name in names:
            assert values[name] == next(run._series([name])).values[0], name
        assert values["power"] == values["motor.power"]
        state = solutions[-1].element("motor")
        assert state.power[0] == run.element("motor").power[0]
    assert values["motor.power"] != 0.0
    first, last = solutions[0], solutions[-1]  # solutions of earlier steps keep their states
    assert first.joint("pin").rotation_rate[0] != last.joint("pin").rotation_rate[0]


def test_solutions_of_outputs_can_be_pickled() -> None:
    """A copy does not share the assembler of the simulator."""
    solutions: list[Solution] = []

    def power(run: Solution) -> Any:
        solutions.append(pickle.loads(pickle.dumps(run)))
        return run.element("motor").power

    simulator = Simulator(arm(), dt=0.01, inputs=["motor"], outputs={"power": power})
    for _ in range(3):
        simulator.step({"motor": 2.0})
        value = simulator.outputs["power"]
        assert solutions[-1].element("motor").power[0] == value != 0.0


def test_a_distributed_load_is_an_input() -> None:
    sail = FlexibleBody("sail", rod())
    ground = Ground({"o": Frame((-0.5, 0, 0))})
    clamp = fixed("clamp", ground.frame("o"), sail.frame("left"))
    system = System([ground, sail], [clamp], loads=[PatternLoad("gust", sail.pattern("wind"), 0.0)])
    simulator = Simulator(system, dt=1e-3, inputs=["gust"])
    assert not simulator.step().q[7:].any()
    assert simulator.step({"gust": 100.0}).q[7:].any()


def test_a_jump_does_not_excite_unresolved_modes() -> None:
    """The rod's modes of 600 Hz and more follow a force in steps of 10 ms without ringing."""
    beam = FlexibleBody("beam", rod(), damping_ratio=0.0)
    ground = Ground({"o": Frame((-0.5, 0, 0))})
    clamp = fixed("clamp", ground.frame("o"), beam.frame("left"))
    system = System([ground, beam], [clamp], loads=[force("tip", beam.frame("right"), (0, 0, 0))])
    simulator = Simulator(system, dt=0.01, inputs=["tip.x"])
    eta = np.array([simulator.step({"tip.x": 1e4}).q[-2] for _ in range(40)])
    assert np.abs(eta - eta[-1]).max() < 1.1 * abs(eta[-1])
    assert np.abs(eta[20:] - eta[-1]).max() < 0.05 * abs(eta[-1])


def test_the_system_of_the_user_does_not_change() -> None:
    system = arm(SpringDamper("s", *ends()))
    before = [vars(load).copy() for load in system.loads]
    Simulator(system, dt=0.01, inputs=["motor", "s.stiffness"]).step({"motor": 5.0})
    assert [vars(load) for load in system.loads] == before


def ends() -> tuple[Any, Any]:
    """Return the frames of a spring between the ground and the bob."""
    ground, bob = pendulum_bodies()
    return ground.frame("pin"), bob.frame("c")


# ---- saving and restoring -----------------------------------------------------------------------
def outputs() -> dict[str, Any]:
    """Return two outputs as functions of a solution."""
    return {
        "angle": lambda run: run.joint("pin").rotation,
        "y": lambda run: run.sensor("bob")[:, 1],
    }


@pytest.mark.parametrize("pickled", [False, True])
def test_a_restored_simulation_gives_the_same_bits(pickled: bool) -> None:
    simulator = Simulator(crank(), dt=1e-4)
    for _ in range(13):
        simulator.step()
    snapshot = simulator.save()
    if pickled:
        snapshot = pickle.loads(pickle.dumps(snapshot))
    states = [simulator.step() for _ in range(50)]
    for restored in (simulator, Simulator(crank(), dt=1e-4)):
        restored.restore(snapshot)
        assert all(same(restored.step(), state) for state in states)
        assert restored.stepper.iterations == simulator.stepper.iterations


@pytest.mark.parametrize(
    "other",
    [
        lambda: Simulator(crank(piston_mass=0.08), dt=1e-4),
        lambda: Simulator(crank(), dt=2e-4),
        lambda: Simulator(crank(), dt=1e-4, tolerance=1e-9),
        lambda: Simulator(crank(), dt=1e-4, method=GeneralizedAlpha.from_spectral_radius(0.5)),
    ],
    ids=["mass", "time step", "tolerance", "method"],
)
def test_a_snapshot_of_another_simulator_is_refused(other: Callable[[], Simulator]) -> None:
    """An error is raised although the states have equal sizes, and nothing changes."""
    snapshot, simulator, plain = Simulator(crank(), dt=1e-4).save(), other(), other()
    for saved in (snapshot, pickle.loads(pickle.dumps(snapshot)), snapshot._replace(origin=None)):
        with pytest.raises(InputError) as error:
            simulator.restore(saved)
        assert error.value.argument == "snapshot"
    assert same(simulator.step(), plain.step())


def test_units_of_inputs_and_outputs() -> None:
    ground, bob = pendulum_bodies()
    pin = revolute("pin", ground.frame("pin"), bob.frame("pin"))
    loads = [
        JointLoad("motor", "pin", "rotation", 0.0),
        SpringDamper("strut", ground.frame("pin"), bob.frame("c"), stiffness=1.0, length=1.0),
    ]
    system = System([ground, bob], [pin], loads=loads)
    inputs = ["motor", "strut.stiffness", "strut.length"]
    simulator = Simulator(system, dt=0.01, inputs=inputs, outputs=["pin.rotation", "bob.alpha.z"])
    assert simulator.units == {
        "motor": "N m",
        "strut.stiffness": "N/m",
        "strut.length": "m",
        "pin.rotation": "rad",
        "bob.alpha.z": "rad/s²",
    }
    servo = Driver("servo", "pin", constant_speed(1.0))
    driven = System([ground, bob], [pin], drivers=[servo])
    simulator = Simulator(driven, dt=0.01, inputs=["servo"], outputs=outputs())
    assert simulator.units == {"servo": "rad", "angle": "", "y": ""}


def test_sparse_factors_and_adaptive_steps_are_restored() -> None:
    simulator = Simulator(crank(), dt=Adaptive(1e-4), t_end=0.02)
    for sparse in (False, True):
        # replace the direct solver of the simulator
        simulator.stepper.__dict__.update(vars(Stepper(simulator.system, sparse=sparse)))
        simulator.reset()
        for _ in range(30):
            simulator.step()
        snapshot = pickle.loads(pickle.dumps(simulator.save()))
        states = [simulator.step() for _ in range(20)]
        simulator.restore(snapshot)
        assert all(same(simulator.step(), state) for state in states)


def test_inputs_and_drivers_are_restored() -> None:
    """A snapshot is continued with two different inputs, and again with the first one."""
    ground, bob = pendulum_bodies()
    pin = revolute("pin", ground.frame("pin"), bob.frame("pin"))
    servo = Driver("servo", "pin", constant_speed(1.0))
    system = System([ground, bob], [pin], drivers=[servo], gravity=GRAVITY)
    simulator = Simulator(system, dt=0.01, inputs=["servo"], outputs=outputs())
    simulator.step({"servo": 0.01})
    before = simulator.save()
    first = simulator.step({"servo": 0.02})
    assert simulator.outputs["angle"] == pytest.approx(0.02, abs=1e-12)
    simulator.restore(before)
    assert simulator.inputs == {"servo": 0.01}
    simulator.step({"servo": 0.015})
    assert simulator.outputs["angle"] == pytest.approx(0.015, abs=1e-12)
    simulator.restore(before)
    assert same(simulator.step({"servo": 0.02}), first)
    with pytest.raises(InputError):
        Simulator(system, dt=0.01).restore(before)


def test_reset() -> None:
    simulator = Simulator(arm(), dt=0.01, inputs=["motor"])
    start, first = simulator.state, simulator.step({"motor": 5.0})
    assert simulator.reset() is start
    assert simulator.inputs == {"motor": 0.0}
    assert same(simulator.step({"motor": 5.0}), first)
    assert simulator.reset(start={"pin": 2.0}).v[5] == pytest.approx(2.0)
    assert simulator.reset(start=first).time == pytest.approx(0.01)
    assert simulator.step().time == pytest.approx(0.02)
    assert simulator.reset(inputs={"motor": 2 * 9.81}).a[5] == pytest.approx(0.0, abs=1e-12)


# ---- errors -------------------------------------------------------------------------------------
@pytest.mark.parametrize("broken", [np.inf, KeyboardInterrupt], ids=["diverges", "interrupted"])
def test_a_failed_step_changes_nothing(broken: Any) -> None:
    def build(limit: float) -> System:
        def torque(t: float, s: float, rate: float) -> float:
            if abs(rate) > limit and broken is KeyboardInterrupt:
                raise KeyboardInterrupt
            return 1e9 * rate**3 if abs(rate) > limit else 0.0

        return arm(JointLoad("trap", "pin", "rotation", torque))

    simulator, reference = (
        Simulator(build(limit), dt=0.01, inputs=["motor"]) for limit in (3.0, np.inf)
    )
    for _ in range(10):
        simulator.step({"motor": 1.0})
        reference.step({"motor": 1.0})
    state = simulator.state
    with pytest.raises(KeyboardInterrupt if broken is KeyboardInterrupt else StepError):
        simulator.step({"motor": 3e3})
    assert simulator.state is state
    assert simulator.inputs == {"motor": 1.0}
    assert same(simulator.step({"motor": 2.0}), reference.step({"motor": 2.0}))
    assert simulator.stepper.iterations == reference.stepper.iterations


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"inputs": ["motr"]}, "every name of inputs"),
        ({"inputs": ["spring"]}, "every name of inputs"),
        ({"outputs": {"x": 3.0}}, "outputs['x']"),
        ({"outputs": [1]}, "every entry of outputs"),
        ({"outputs": ["pin.force"]}, "outputs"),
        ({"outputs": ["pin.forse.x"]}, "outputs"),
        ({"outputs": ["pivo"]}, "name of a body, joint, driver or load"),
        ({"dt": np.nan}, "dt"),
        ({"t_end": -1.0}, "t_end"),
        ({"start": 3}, "start"),
        ({"redundant": "maybe"}, "redundant"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as error:
        Simulator(arm(SpringDamper("spring", *ends())), **{"dt": 0.01, **options})
    assert error.value.argument == argument


def test_wrong_inputs_and_outputs() -> None:
    system = arm(SpringDamper("spring", *ends(), length=1.0))
    bad = {"bad": lambda run: run.body("bob").position}
    simulator = Simulator(system, dt=0.01, inputs=["motor", "spring.stiffness"], outputs=bad)
    text = "<Simulator: time 0 s, inputs: motor, spring.stiffness, outputs: bad>"
    assert repr(simulator) == text
    before = simulator.save()
    for inputs in (
        {"motr": 1.0},
        {"motor": np.nan},
        {"motor": 1.0, "spring.stiffness": -1.0},
        {"spring.damping": 1.0},
    ):
        with pytest.raises(InputError):
            simulator.step(inputs)
        assert simulator.inputs == {"motor": 0.0, "spring.stiffness": 0.0}
        assert simulator.state is before.state
    with pytest.raises(InputTypeError):
        simulator.step({"motor": "1"})  # type: ignore[dict-item]
    with pytest.raises(InputError) as error:
        _ = simulator.outputs
    assert error.value.argument == "outputs['bad']"
    with pytest.raises(InputError):
        Simulator(system, dt=Adaptive(), t_end=1.0, inputs=["motor"])
    with pytest.raises(InputError):
        Simulator(system, dt=Adaptive())
