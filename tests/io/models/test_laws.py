"""Loads with states, pair loads and free joints in model files, and expressions in scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.models import ModelFileError, read_model, schema, write_model
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism import Formula, PairFormula, StateFormula

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")

SPRING, DAMPER, GAIN = 2e3, 30.0, 8.0
CONSTANTS = {"k": SPRING, "c": DAMPER}
# ex and ey are the stretches of the springs of two Maxwell elements.
MAXWELL = PairFormula(
    ("-k*ex", "-k*ey", 0),
    ("0", "0", "-0.1*wz"),
    {"ex": "vx - k/c*ex", "ey": "vy - k/c*ey"},
    CONSTANTS,
)
CONTROL = StateFormula(
    "gain*(20 - rate) + 30*sum", {"sum": "20 - rate"}, {"gain": GAIN, "unused": 1.0}
)


def maxwell(motion: Any) -> Any:
    """Return force and moment of Maxwell elements along x and y, and the rates of their states."""
    stretch = motion.states
    force = (*(-SPRING * stretch), 0.0)
    moment = (0.0, 0.0, -0.1 * motion.omega[2])
    return force, moment, motion.velocity[:2] - SPRING / DAMPER * stretch


def control(t: float, s: float, rate: float, states: Any) -> Any:
    """Return the torque of a PI controller to 20 rad/s, and the rate of its state."""
    return GAIN * (20 - rate) + 30 * states[0], [20 - rate]


TEXTS: dict[str, Any] = {
    "motor": CONTROL,
    "damper": MAXWELL,
    "push": ("0", "3*sin(9*t) - 0.1*vy", 0),
    "spring": "100*(length - 0.1) + rate",
    "coil": "3*s^3",
    "brake": "0.5*t - 0.2*rate",
}
FUNCTIONS: dict[str, Any] = {
    "motor": control,
    "damper": maxwell,
    "push": lambda t, motion: (0.0, 3 * np.sin(9 * t) - 0.1 * motion.velocity[1], 0.0),
    "spring": lambda length, rate: 100 * (length - 0.1) + rate,
    "coil": lambda s, rate: 3 * s**3,
    "brake": lambda t, s, rate: 0.5 * t - 0.2 * rate,
}


def pendulum(laws: dict[str, Any]) -> mbd.System:
    """Return a pendulum with a load of each kind that has a function."""
    ground = mbd.Ground({"o": mbd.Frame(), "p": mbd.Frame((0, 0.3, 0))})
    frames = {"o": mbd.Frame(), "e": mbd.Frame((0.2, 0, 0))}
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (0.1, 0, 0), frames=frames)
    pin = mbd.revolute("pin", ground.frame("o"), bob.frame("o"))
    ends = ground.frame("p"), bob.frame("e")
    loads = [
        mbd.JointLoad("motor", "pin", "rotation", laws["motor"], states=[0.1]),
        mbd.PairLoad("damper", *ends, laws["damper"], states=(0, 0)),
        mbd.force("push", bob.frame("e"), laws["push"]),
        mbd.SpringDamper("spring", *ends, law=laws["spring"]),
        mbd.JointSpring("coil", "pin", law=laws["coil"]),
        mbd.JointLoad("brake", "pin", "rotation", laws["brake"]),
    ]
    return mbd.System([ground, bob], [pin], loads=loads, gravity=(0, -9.81, 0))


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_expressions_are_the_functions(tmp_path: Path, suffix: str) -> None:
    """Scripts with functions, with expressions, and a file have the same motion."""
    system = pendulum(TEXTS)
    path = write_model(system, tmp_path / f"pendulum{suffix}")
    copy = read_model(path).system
    other_systems = [pendulum(FUNCTIONS), copy]
    run, *runs = (mbd.simulate(s, t_end=0.2, dt=1e-3) for s in (system, *other_systems))
    assert np.abs(run.element("damper").states).max() > 1e-3
    for other_run in runs:
        for name, difference in run.compare(other_run).items():
            assert difference.largest < 1e-9 * max(1.0, difference.scale), name
    path_of_copy = write_model(copy, tmp_path / f"again{suffix}")
    assert yaml.safe_load(path_of_copy.read_text()) == yaml.safe_load(path.read_text())
    parameters = yaml.safe_load(path.read_text())["parameters"]
    assert parameters == {**CONSTANTS, "gain": GAIN}


@pytest.mark.parametrize("size", [1e-6, 0.4, 2.5])
def test_derivatives_of_a_pair_formula(size: float) -> None:
    """The exact derivatives are those of central differences, also by rotations."""
    law = PairFormula(
        ("-k*x*y - 3*rx^2", "t*vx + rz*e", "min(x, z)*wy"),
        ("-40*rx", "-40*sin(ry)*z", "-40*rz - wz"),
        {"e": "vx*e - rx*ry", "f": "wx - f^3"},
        {"k": 5.0},
    )
    ends = mbd.mechanism.FrameRef("a", "o"), mbd.mechanism.FrameRef("b", "o")
    load = mbd.PairLoad("load", *ends, law, states=(0.3, -0.7))
    rng = np.random.default_rng(5)
    theta = rng.normal(size=3)
    rotation = exp_rotation(size * theta / np.linalg.norm(theta))
    d, v, w = rng.normal(size=(3, 3))
    motion = mbd.mechanism.PairMotion(0.2, d, rotation, v, w, np.array([0.3, -0.7]))
    np.testing.assert_allclose(load.slopes(motion), load._differences(motion), atol=1e-7)


def test_driver_of_an_expression() -> None:
    ground = mbd.Ground({"o": mbd.Frame()})
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, frames={"o": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("o"), bob.frame("o"))
    drive = mbd.Driver("drive", "pin", "0.3*sin(7*t) + t^2")
    run = mbd.simulate(mbd.System([ground, bob], [pin], drivers=[drive]), t_end=0.5, dt=1e-2)
    t = run.time
    np.testing.assert_allclose(run.joint("pin").rotation, 0.3 * np.sin(7 * t) + t**2, atol=1e-9)
    for time in (0.0, 0.37):
        expected = (2.1 * np.cos(7 * time) + 2 * time, -14.7 * np.sin(7 * time) + 2)
        np.testing.assert_allclose(drive.at(time)[1:], expected, rtol=1e-13)


def test_torsional_chain_without_torques(tmp_path: Path) -> None:
    """The laws of shafts and of dampers are objects with declared fields."""
    chain = mbd.mechanisms.TorsionalChain([0.05, 0.1, 1.0], [1e5, 2e5], damping=[0.5, 0, 0])
    system = chain.system(30.0)
    loads = [load for load in system.loads if load.name != "drive"]
    loads.append(mbd.JointLoad("push", "bearing 1", "rotation", "500*sin(900*t)"))
    system = mbd.System(system.bodies, system.joints, loads=loads)
    copy = read_model(write_model(system, tmp_path / "chain.yaml")).system
    run, run_of_copy = (mbd.simulate(s, t_end=0.01, dt=1e-4) for s in (system, copy))
    assert np.ptp(run.energies().elastic) > 0.1
    assert max(d.largest for d in run.compare(run_of_copy).values()) == 0.0


HEAD = """\
model: 1
parameters: {k: 2 kN/m}
bodies:
  ground: {frames: {o: [0, 0, 0]}}
  bob: {type: rigid, mass: 2, inertia: [0.1, 0.1, 0.1], frames: {o: [0, 0, 0]}}
joints:
  pin: {type: revolute, first: ground.o, second: bob.o}
loads:
"""
MOTOR = "  motor: {type: joint_load, joint: pin, motion: rotation, value: VALUE, states: [0]}\n"
PAIR = "  pair: {type: pair_load, first: ground.o, second: bob.o, law: LAW}\n"
# Entry: None if it is valid, or a part of the message.
CASES = {
    MOTOR.replace("VALUE", "{value: 2*x, rates: {x: 1 - x}}"): None,
    MOTOR.replace("VALUE", "{value: 2*y, rates: {x: 1}}"): "loads.motor.value.value: value: '2*y'",
    MOTOR.replace("VALUE", "{value: 2*x, rates: {k: 1}}"): "a name of a state that differs from",
    MOTOR.replace("VALUE", "{value: 2, rates: {x: 1, y: 2}}"): "2 start values",
    MOTOR.replace("VALUE", "{value: 2, rates: {}}"): "rates of one state or more",
    MOTOR.replace("VALUE", "{value: 2, rate: {x: 1}}"): "did you mean 'rates'?",
    PAIR.replace("LAW", "{force: [-k*x, 0, 0]}"): None,
    PAIR.replace("LAW", "{force: [-k*x, 0]}"): "three expressions",
    PAIR.replace("LAW", "-k*x"): "expected expressions by name (force, moment, rates)",
    PAIR.replace("LAW", "{type: torsional_shaft, stiffness: 5, damping: 0}"): None,
    PAIR.replace("LAW", "{type: torsional_shaft, stiffness: 5m, damping: 0}"): "in N m/rad",
    PAIR.replace("ground.o, second", "ground.o, third").replace("LAW", "{}"): "'third'",
}


@pytest.mark.parametrize("text", CASES)
def test_entries_of_laws(tmp_path: Path, text: str) -> None:
    """The schema accepts what is read; errors have the line of the load."""
    path = tmp_path / "model.yaml"
    path.write_text(HEAD + text)
    jsonschema = pytest.importorskip("jsonschema")
    expected = CASES[text]
    if expected is None:
        assert len(read_model(path).system.loads) == 1
        rules = jsonschema.Draft202012Validator(schema())
        assert [e.message for e in rules.iter_errors(yaml.safe_load(path.read_text()))] == []
        return
    with pytest.raises(ModelFileError) as error:
        read_model(path)
    assert expected in str(error.value)
    assert f"{path}, line 9: loads." in str(error.value)


def test_states_of_a_script() -> None:
    with pytest.raises(InputError, match="1 start value"):
        mbd.JointLoad("motor", "pin", "rotation", CONTROL)
    with pytest.raises(InputError, match="three expressions"):
        mbd.force("push", mbd.mechanism.FrameRef("bob", "o"), ("1", "t"))
    with pytest.raises(InputError, match="differs from"):
        PairFormula(rates={"vx": "1"})
    with pytest.raises(InputError, match="unknown name 'u'"):
        mbd.JointLoad("motor", "pin", "rotation", "2*u")
    assert isinstance(mbd.JointLoad("motor", "pin", "rotation", "2*t").value, Formula)
