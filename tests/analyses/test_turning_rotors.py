"""Periodic motions up to a rotation of round rotors are those of runs and of linear theory."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import equilibrium, linearize, periodic
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError
from tests.analyses.test_periodic import CLEARANCE, journal
from tests.analyses.test_rotors import ALONG_X, RATIO
from tests.analyses.test_rotors import rotor as shaft_with_disc

GRAVITY = (0, -mbd.STANDARD_GRAVITY, 0)
HALF = 0.15  # distance of the films from the middle of the rigid rotor


def rigid(speed: float, **options: Any) -> mbd.System:
    """Return a rigid rotor of 10 kg that turns in two of the films of `journal`."""
    ends = {"left": mbd.Frame((0, 0, -HALF)), "right": mbd.Frame((0, 0, HALF))}
    hub = {"o": mbd.Frame()}
    ground, low = mbd.Ground(ends | hub), (0.0, -CLEARANCE / 2, 0.0)  # near the equilibrium
    turning: dict[str, Any] = {"omega": (0, 0, speed), "velocity": (0, 0, 0)}
    values = {"inertia": [0.08, 0.08, 0.03], "frames": ends | hub, "position": low} | options
    body = mbd.RigidBody("rotor", 10.0, **turning, **values)
    clutch = mbd.RigidBody("clutch", 0.1, [1e-4] * 3, frames=hub, **turning)
    axle = mbd.revolute("axle", ground.frame("o"), clutch.frame("o"))
    drive = mbd.Driver("drive", "axle", mbd.constant_speed(speed))
    pair = clutch.frame("o"), body.frame("o")
    plate = mbd.Bushing("plate", *pair, [0, 0, 1e6, 0, 0, 1e3], [0, 0, 5e3, 0, 0, 10.0])
    films = [
        mbd.bearings.ShortBearing(
            f"{n} film", ground.frame(n), body.frame(n), 0.02, 0.012, CLEARANCE, 0.02
        )
        for n in ends
    ]
    bodies = [ground, body, clutch]
    return mbd.System(bodies, [axle], drivers=[drive], loads=[plate, *films], gravity=GRAVITY)


LONG = 0.6  # length of the flexible shaft
FILM: dict[str, Any] = {"radius": 0.025, "length": 0.01, "clearance": CLEARANCE, "viscosity": 0.03}


@cache
def shaft() -> mbd.ReducedBody:
    """Return a reduced shaft along z with a place for a disc."""
    along_z = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    line = create_interval(MPI.COMM_SELF, 20, [0.0, LONG])
    beam = mbd.BeamModel(line, mbd.forms.Section.circle(0.025), mbd.STEEL, along_z)
    places = {"left": 0.0, "disc": 0.3 * LONG, "right": LONG}
    return mbd.reduce_beam(beam, interfaces=places, num_modes=2, name="shaft").body


def flexible(speed: float) -> mbd.System:
    """Return a flexible shaft with a disc near the left one of two films."""
    ends = {"left": mbd.Frame(), "right": mbd.Frame((0, 0, LONG))}
    ground, low = mbd.Ground(ends), (0.0, -CLEARANCE / 2)
    turning: dict[str, Any] = {"omega": (0, 0, speed), "velocity": (0, 0, 0)}
    part = mbd.FlexibleBody("shaft", shaft(), position=(*low, 0.0), **turning)
    hub, seat = {"o": mbd.Frame()}, (*low, 0.3 * LONG)
    disc = mbd.RigidBody("disc", 10.0, [0.05, 0.05, 0.09], frames=hub, position=seat, **turning)
    clutch = mbd.RigidBody("clutch", 0.1, [1e-4] * 3, frames=hub, **turning)
    joints = [
        mbd.fixed("seat", part.frame("disc"), disc.frame("o")),
        mbd.revolute("axle", ground.frame("left"), clutch.frame("o")),
    ]
    drive = mbd.Driver("drive", "axle", mbd.constant_speed(speed))
    pair = clutch.frame("o"), part.frame("left")
    plate = mbd.Bushing("plate", *pair, [0, 0, 1e6, 0, 0, 1e3], [0, 0, 5e3, 0, 0, 10.0])
    films = [
        mbd.bearings.ShortBearing(f"{n} film", ground.frame(n), part.frame(n), **FILM) for n in ends
    ]
    bodies = [ground, part, disc, clutch]
    return mbd.System(bodies, joints, drivers=[drive], loads=[plate, *films], gravity=GRAVITY)


def turning_shaft(speed: float, *loads: Any, drive: Any = None, **options: Any) -> mbd.System:
    """Return the flexible shaft of `test_rotors` on two supports, driven through a clutch."""
    free = shaft_with_disc(speed, RATIO, 500.0, internal=0.05, **options)
    frames = {"o": mbd.Frame((0, 0, 0), ALONG_X), "plate": mbd.Frame()}
    clutch = mbd.RigidBody("clutch", 0.1, [1e-3] * 3, frames=frames, omega=(speed, 0, 0))
    ground, part, disc = free.bodies
    axle = mbd.revolute("axle", ground.frame("left"), clutch.frame("o"))
    about_x, pair = np.array([0.0, 0, 0, 1, 0, 0]), (clutch.frame("plate"), part.frame("left"))
    plate = mbd.Bushing("plate", *pair, 1e4 * about_x, 50.0 * about_x)
    motor = mbd.Driver("drive", "axle", drive or mbd.constant_speed(speed))
    return mbd.System(
        [ground, part, disc, clutch], [*free.joints, axle],
        drivers=[motor], loads=[*free.loads, plate, *loads],
    )  # fmt: skip


def least_damped(system: mbd.System) -> tuple[Any, complex, Any]:
    """Return the equilibrium, and the pole and the mode of its least damped whirl."""
    state = equilibrium(system, axes="global")
    result = linearize(system, state, axes="global")
    whirls = np.flatnonzero(result.poles.imag > 1)
    k = whirls[np.argmax(result.poles[whirls].real)]
    return state, complex(result.poles[k]), result.modes[:, k]


def whirling(system: mbd.System, size: float) -> tuple[Any, float]:
    """Return a state of the least damped whirl with an amplitude of `size`, and its period."""
    state, pole, mode = least_damped(system)
    mode = mode * size / np.abs(mode[system.v_slices[1]][:2]).max()
    eqs = Assembler(system)
    eqs.move(state.q, mode.real)
    speeds = state.v + (1j * pole.imag * mode).real
    options: dict[str, Any] = {"q": eqs.q, "v": speeds, "elastic_start": "undeformed"}
    return mbd.dynamics.consistent_state(system, **options), 2 * np.pi / pole.imag


def threshold() -> float:
    """Return the speed at which the rigid rotor begins to whirl, rad/s."""
    return onset(rigid, 1100.0, 1300.0)


@cache
def onset(build: Any, low: float, high: float) -> float:
    """Return the speed above which a whirl grows."""
    return scipy.optimize.brentq(  # type: ignore[no-any-return]
        lambda speed: least_damped(build(speed))[1].real, low, high, xtol=1e-2
    )


def cycle_of(system: mbd.System, size: float, steps: int, turns: float = 20) -> Any:
    """Return the cycle near the end of a run that starts with a whirl."""
    start, period = whirling(system, size)
    run = mbd.simulate(system, t_end=turns * period, dt=period / steps, start=start)
    return periodic(
        system, period, dt=period / steps, start=run, find_period=True, axes="global", closed=1e-9,
        tolerance=1e-12,
    )  # fmt: skip


@cache
def rigid_cycle() -> Any:
    """Return the cycle of the rigid rotor at 1.05 of the threshold speed."""
    return cycle_of(rigid(1.05 * threshold()), 0.6 * CLEARANCE, 100, 10)


def sizes(x: Any) -> Any:
    """Return amplitudes of the first harmonics of an orbit, which do not depend on its start."""
    return np.abs(np.fft.rfft(x[:-1], axis=0))[:4]


@pytest.mark.parametrize(
    "factor", [1.05, *(pytest.param(f, marks=pytest.mark.slow) for f in (1.02, 1.1))]
)
def test_a_rigid_rotor_whirls_as_its_centre(factor: float) -> None:
    """Orbit and period are those of half of its mass in one oil film."""
    speed = factor * threshold()
    cycle = rigid_cycle() if factor == 1.05 else cycle_of(rigid(speed), 0.6 * CLEARANCE, 200)
    assert np.abs(cycle.multipliers - 1).min() < 1e-6
    assert cycle.stability == "stable"
    turns = speed * cycle.period / (2 * np.pi)
    assert abs(turns - round(turns)) > 1e-3
    system, (x, y, z) = journal(speed), cycle.body("rotor").position[0]
    ground, slide, body = system.bodies
    light = replace(slide, mass=1e-8, inertia=[1e-12] * 3)  # type: ignore[arg-type]
    bodies = [ground, light, body]
    still = mbd.System(bodies, system.joints, loads=system.loads, gravity=GRAVITY)
    u, v, _ = cycle.body("rotor").velocity[0]
    start = mbd.dynamics.consistent_state(
        still, q={"slide.position": (x, 0, 0), "rotor.position": (x, y, z)},
        v={"slide.velocity": (u, 0, 0), "rotor.velocity": (u, v, 0)},
    )  # fmt: skip
    dt = cycle.period / (len(cycle) - 1)
    half = periodic(
        still, cycle.period, dt=dt, start=start, find_period=True, closed=1e-9,
        tolerance=1e-12,
    )  # fmt: skip
    assert np.isclose(cycle.period, half.period, rtol=1e-7)
    computed, expected = (sizes(c.body("rotor").position[:, :2]) for c in (cycle, half))
    assert np.abs(computed - expected).max() < 1e-6 * computed.max()
    for mu in half.multipliers[:3]:  # motions without tilt
        assert np.abs(cycle.multipliers - mu).min() < 1e-5


def check_against_a_long_run(cycle: Any, film: str, periods: int) -> None:
    """Assert that a long run from a point near the cycle ends in the orbit of the cycle."""
    steps = len(cycle) - 1
    start = replace(cycle.final_state, q=cycle.final_state.q.copy(), memory={})
    for part in cycle.system.q_slices[1:-1]:  # all bodies but the ground and the clutch
        start.q[part][0] += 0.02 * CLEARANCE
    long = mbd.simulate(
        cycle.system, t_end=start.time + periods * cycle.period, dt=cycle.period / steps,
        start=start, tolerance=1e-12,
    )  # fmt: skip
    orbits = [run.element(film, axes="first").displacement[:, :2] for run in (cycle, long)]
    of_cycle, of_run = sizes(orbits[0]), sizes(orbits[1][-steps - 1 :])
    assert np.abs(of_cycle - of_run).max() < 1e-6 * of_cycle.max()


@pytest.mark.slow
def test_a_rigid_rotor_against_a_long_run() -> None:
    check_against_a_long_run(rigid_cycle(), "left film", 90)


@pytest.mark.slow
def test_a_flexible_rotor_against_a_long_run() -> None:
    speed = 1.1 * onset(flexible, 950.0, 1100.0)
    cycle = cycle_of(flexible(speed), 0.4 * CLEARANCE, 80)
    assert cycle.stability == "stable"
    assert np.sum(np.abs(cycle.multipliers - 1) < 1e-3) == 1
    slowest = np.sort(np.abs(cycle.multipliers))[-2]
    check_against_a_long_run(cycle, "left film", int(np.ceil(np.log(1e-5) / np.log(slowest))))
    run = cycle.repeated(3)
    simulated = mbd.simulate(
        cycle.system, t_end=run.time[-1], dt=cycle.period / 80, start=cycle.states[0],
        tolerance=1e-12,
    )  # fmt: skip
    for body in ("shaft", "disc", "clutch"):
        for name in ("position", "velocity", "omega"):
            exact, value = (getattr(r.body(body), name) for r in (run, simulated))
            assert np.allclose(exact, value, rtol=0, atol=1e-6 * np.abs(exact).max() + 1e-12)
    eta = run.body("shaft").eta
    assert np.allclose(eta, simulated.body("shaft").eta, atol=1e-5 * np.abs(eta).max())
    assert np.allclose(run.angles, simulated.angles, atol=1e-6)


def test_systems_that_are_no_round_rotors_are_named() -> None:
    """Unbalances, loads that rotate or depend on time, and rotors without a drive are errors."""
    settings = {"axes": "global", "find_period": True, "dt": 1e-4}
    for options in ({"centre": (1e-5, 0, 0)}, {"inertia": [0.08, 0.07, 0.03]}):
        with pytest.raises(InputError, match=r"'rotor', .* is different"):
            periodic(rigid(1200.0, **options), 0.01, **settings)  # type: ignore[arg-type]
    system = rigid(1200.0)
    frame = system.bodies[1].frame("left")

    def push(t: float, motion: Any) -> Any:
        return np.cos(40 * t), 0.0, 0.0

    for load in (
        mbd.force("push", frame, (9.0, 0, 0), axes="frame"),
        mbd.force("push", frame, push),
    ):
        loads = [*system.loads, load]
        changed = mbd.System(system.bodies, system.joints, drivers=system.drivers, loads=loads)
        with pytest.raises(InputError, match="'push' is different"):
            periodic(changed, 0.01, **settings)  # type: ignore[arg-type]
    drive = mbd.Driver("drive", "axle", lambda t: (1200 * t + 5 * t * t, 1200 + 10 * t, 10.0))
    changed = mbd.System(system.bodies, system.joints, drivers=[drive], loads=system.loads)
    with pytest.raises(InputError, match=r"'drive'.* is different"):
        periodic(changed, 0.01, **settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no body turns"):
        periodic(journal(1200.0), 0.01, **settings)  # type: ignore[arg-type]
    free = mbd.System(system.bodies, system.joints, loads=system.loads, gravity=GRAVITY)
    with pytest.raises(InputError, match="no driver turns"):
        periodic(free, 0.01, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("period", [0.0123, pytest.param(0.031, marks=pytest.mark.slow)])
def test_multipliers_of_a_steady_rotation(period: float) -> None:
    """The multipliers of a flexible shaft are exp(λ T) for its poles λ and any time T."""
    speed = 350.0
    system = turning_shaft(speed)
    state = equilibrium(system, axes="global")
    poles = linearize(system, state, axes="global").poles
    slow = poles[(np.abs(poles) > 1) & (np.abs(poles) < 700)]
    assert len(slow) >= 2
    errors = []
    for steps in (150, 300):
        cycle = periodic(system, period, dt=period / steps, start=state, closed=1e-2, axes="global")
        exact = np.exp(slow * period)
        errors.append([np.abs(cycle.multipliers - mu).min() / abs(mu) for mu in exact])
    assert np.max(errors[1]) < 0.05
    assert np.allclose(np.array(errors[1]) / errors[0], 0.25, atol=0.03)
    with pytest.raises(InputError, match="'drive' turns"):
        periodic(system, period, dt=period / 100, start=state)


@pytest.mark.slow
def test_a_shaken_rotor() -> None:
    """The response to a periodic force on the rotating disc agrees with the linear response."""
    speed, frequency = 350.0, 211.3
    period = 2 * np.pi / frequency

    def push(t: float, motion: Any) -> Any:
        return 0.0, 3.0 * np.cos(frequency * t), 0.0

    free = turning_shaft(speed)
    disc = free.bodies[2]
    system = turning_shaft(speed, mbd.force("push", disc.frame("o"), push))
    still = turning_shaft(speed, mbd.force("push", disc.frame("o"), (0, 0, 0)))
    rest = equilibrium(still, axes="global")
    cycle = periodic(system, period, dt=period / 200, axes="global")
    outputs: dict[str, Any] = {
        name: lambda run, k=k: run.body("disc").position[:, k] for k, name in enumerate("xyz")
    }
    result = linearize(still, rest, axes="global", inputs=["push.y"], outputs=outputs)
    response = result.response([frequency / (2 * np.pi)])[0]
    c = cycle.harmonics(cycle.body("disc").position[:, 1:], 2)
    assert np.allclose(c[1], 3.0 * response[1:, 0], rtol=2e-3)
    assert np.abs(c[2]).max() < 1e-6 * np.abs(c[1]).max()
