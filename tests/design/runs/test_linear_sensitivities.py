"""Derivatives of poles, modes and frequency responses: closed forms, and new linearizations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning, InputError
from tests.models.bodies import box
from tests.models.rods import rod

GRAVITY, INERTIA = 9.81, 0.02
ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # axes of a frame with its z along x
GROUND = mbd.Ground({"o": mbd.Frame(), "x": mbd.Frame((0, 0, 0), ALONG_X)})
Values = Mapping[str, float]


def oscillator(p: Values) -> mbd.System:
    """Return a mass m on a slide with a spring k, a damper c and a force as input."""
    frames = {"x": mbd.Frame((0, 0, 0), ALONG_X)}
    mass = mbd.RigidBody("mass", p["m"], [0.01] * 3, frames=frames)
    slide = mbd.prismatic("slide", GROUND.frame("x"), mass.frame("x"))
    spring = mbd.JointSpring("spring", "slide", stiffness=p["k"], damping=p["c"])
    push = mbd.JointLoad("push", "slide", "displacement", 0.0)
    return mbd.System([GROUND, mass], [slide], loads=[spring, push])


X = {"x": lambda run: run.joint("slide").displacement[:, 2]}


def test_harmonic_oscillator() -> None:
    """λ′ = −(m′λ² + c′λ + k′)/(2mλ + c), H′ = −(m′s² + c′s + k′) H², and those of f and ζ.

    λ is the pole, H = 1/(ms² + cs + k) the response at s = 2πif, and ′ a derivative. The frequency
    is √(k/m)/2π and the damping ratio ζ = c/(2√(km)).
    """
    values = {"m": 2.0, "c": 4.0, "k": 800.0}
    m, c, k = values.values()
    result = mbd.design.linear_sensitivities(oscillator, values, inputs=["push"], outputs=X)
    pole = -c / (2 * m) + 1j * np.sqrt(k / m - (c / (2 * m)) ** 2)
    assert result.linearization.poles == pytest.approx([pole], rel=1e-12)
    f = np.array([0.0, 1.0, 3.2, 20.0])
    s = 2j * np.pi * f
    H = 1 / (m * s**2 + c * s + k)
    for name, power in (("m", 2), ("c", 1), ("k", 0)):
        assert result.poles[name] == pytest.approx([-(pole**power) / (2 * m * pole + c)], rel=1e-8)
        response = result.response(f)[name][:, 0, 0]
        assert response == pytest.approx(-(s**power) * H**2, rel=1e-8)
    frequency, ratio = np.sqrt(k / m) / (2 * np.pi), c / (2 * np.sqrt(k * m))
    assert result.frequencies["k"] == pytest.approx([frequency / (2 * k)], rel=1e-8)
    assert result.frequencies["m"] == pytest.approx([-frequency / (2 * m)], rel=1e-8)
    assert abs(result.frequencies["c"][0]) < 1e-12 * frequency / c
    exact = {"m": -ratio / (2 * m), "c": ratio / c, "k": -ratio / (2 * k)}
    for name in values:
        assert result.damping_ratios[name] == pytest.approx([exact[name]], rel=1e-8)


def sprung_pendulum(p: Values) -> mbd.System:
    """Return a pendulum with a coil spring."""
    frames = {"pin": mbd.Frame((0, p["l"], 0))}
    ball = mbd.RigidBody("ball", p["m"], [INERTIA] * 3, position=(0, -p["l"], 0), frames=frames)
    pin = mbd.revolute("pin", GROUND.frame("o"), ball.frame("pin"))
    coil = mbd.JointSpring("coil", "pin", stiffness=p["k"], free=p["free"])
    return mbd.System([GROUND, ball], [pin], loads=[coil], gravity=(0, -p["g"], 0))


def test_equilibrium_moves() -> None:
    """ω² = (k + m g l cos θ)/(J + m l²), where m g l sin θ = k (free − θ) determines θ.

    A parameter p changes ω² at a constant angle, `fixed`, and through the angle θ: the residual of
    the equilibrium has the derivative `torque`, so that dθ/dp = −torque/stiffness.
    """
    values = {"m": 1.5, "l": 0.5, "k": 9.0, "free": 1.2, "g": GRAVITY}
    m, length, k, free, g = values.values()
    result = mbd.design.linear_sensitivities(sprung_pendulum, values)
    angle = result.linearization.state.angles[0]
    for _ in range(3):  # Newton's method, to round-off
        residual = m * g * length * np.sin(angle) - k * (free - angle)
        assert abs(residual) < 1e-8
        angle -= residual / (m * g * length * np.cos(angle) + k)
    inertia, sine, cosine = INERTIA + m * length**2, np.sin(angle), np.cos(angle)
    stiffness = k + m * g * length * cosine
    square = stiffness / inertia
    assert result.linearization.poles == pytest.approx([1j * np.sqrt(square)], rel=1e-8)
    torque = {
        "m": g * length * sine,
        "l": m * g * sine,
        "k": angle - free,
        "free": -k,
        "g": m * length * sine,
    }
    fixed = {
        "m": g * length * cosine / inertia - square * length**2 / inertia,
        "l": m * g * cosine / inertia - square * 2 * m * length / inertia,
        "k": 1 / inertia,
        "free": 0.0,
        "g": m * length * cosine / inertia,
    }
    for name in values:
        rotation = -torque[name] / stiffness
        slope = fixed[name] - m * g * length * sine * rotation / inertia
        exact = 1j * slope / (2 * np.sqrt(square))
        assert result.poles[name] == pytest.approx([exact], rel=1e-8), name


def test_joint_position() -> None:
    """A compound pendulum: ω² = m g s/(J + m s²) for the pivot at the distance s."""

    def build(p: Values) -> mbd.System:
        frames = {"pin": mbd.Frame((0, p["s"], 0))}
        bar = mbd.RigidBody("bar", 1.3, [0.05] * 3, position=(0, -p["s"], 0), frames=frames)
        pin = mbd.revolute("pin", GROUND.frame("o"), bar.frame("pin"))
        return mbd.System([GROUND, bar], [pin], gravity=(0, -GRAVITY, 0))

    s, J, m = 0.4, 0.05, 1.3
    result = mbd.design.linear_sensitivities(build, {"s": s})
    square = m * GRAVITY * s / (J + m * s**2)
    slope = square * (1 / s - 2 * m * s / (J + m * s**2))
    assert result.poles["s"] == pytest.approx([1j * slope / (2 * np.sqrt(square))], rel=1e-8)
    # The mode is (s, 0, 0, 0, 0, 1), scaled by its largest component 1
    assert result.mode("bar", 1)["s"].real == pytest.approx([1, 0, 0, 0, 0, 0], abs=1e-8)


def turntable(p: Values) -> mbd.System:
    """Return a mass on a radial spring and a table that a driver turns."""
    table = mbd.RigidBody(
        "table", 1.0, [0.1] * 3, frames={"o": mbd.Frame(), "x": mbd.Frame((0, 0, 0), ALONG_X)}
    )
    mass = mbd.RigidBody(
        "mass",
        p["m"],
        [0.01] * 3,
        position=(p["r"], 0, 0),
        frames={"x": mbd.Frame((0, 0, 0), ALONG_X)},
    )
    axle = mbd.revolute("axle", GROUND.frame("o"), table.frame("o"))
    slide = mbd.prismatic("slide", table.frame("x"), mass.frame("x"))
    spring = mbd.JointSpring("spring", "slide", stiffness=p["k"], free=p["r"])
    driver = mbd.Driver("drive", "axle", mbd.constant_speed(p["speed"]))
    return mbd.System([GROUND, table, mass], [axle, slide], drivers=[driver], loads=[spring])


def spinning(system: mbd.System) -> mbd.mechanism.State:
    """Return the equilibrium that rotates with the speed of the driver."""
    return mbd.equilibrium(system, spin=(0, 0, system.drivers[0].at(0.0)[1]))


def test_driver() -> None:
    """ω² = k/m − Ω² on a table that turns with Ω; the radius k r/(k − m Ω²) does not enter."""
    values = {"m": 2.0, "k": 800.0, "r": 0.3, "speed": 12.0}
    result = mbd.design.linear_sensitivities(turntable, values, state=spinning)
    omega = np.sqrt(800.0 / 2.0 - 12.0**2)
    assert result.linearization.poles == pytest.approx([1j * omega], rel=1e-8)
    exact = {"m": -200.0, "k": 0.5, "r": 0.0, "speed": -24.0}  # of ω²: −k/m², 1/m, 0, −2Ω
    for name, slope in exact.items():
        assert result.poles[name] == pytest.approx([0.5j * slope / omega], rel=1e-8, abs=1e-9)


def two_pendulums(p: Values) -> mbd.System:
    """Return two pendulums side by side, which are not connected; the first has a damper c − 1."""
    bodies, pins = [GROUND], []
    for name, z in (("one", 0.0), ("two", 0.2)):
        length = p[f"length {name}"]
        frames = {"pin": mbd.Frame((0, length, -z))}
        body = mbd.RigidBody(name, p["m"], [0.01] * 3, position=(0, -length, z), frames=frames)
        bodies.append(body)
        pins.append(mbd.revolute(f"pin {name}", GROUND.frame("o"), body.frame("pin")))
    damper = mbd.JointLoad("damper", "pin one", "rotation", lambda t, s, rate: (1 - p["c"]) * rate)
    return mbd.System(bodies, pins, loads=[damper], gravity=(0, -GRAVITY, 0))


def test_double_pole() -> None:
    """Equal pendulums: the derivatives are the slopes of both branches of the double pole."""
    values = {"length one": 0.5, "length two": 0.5, "m": 1.2, "c": 1.0}
    result = mbd.design.linear_sensitivities(two_pendulums, values)
    s, J, m = 0.5, 0.01, 1.2
    square = m * GRAVITY * s / (J + m * s**2)
    pole = 1j * np.sqrt(square)
    assert result.linearization.poles == pytest.approx([pole, pole], rel=1e-10)
    slope = pole / 2 * (1 / s - 2 * m * s / (J + m * s**2))  # its imaginary part is negative
    small = 1e-8 * abs(slope)
    assert result.poles["length one"] == pytest.approx([slope, 0], abs=small)
    assert result.poles["length two"] == pytest.approx([slope, 0], abs=small)
    common = pole / 2 * (1 / m - s**2 / (J + m * s**2))
    assert result.poles["m"] == pytest.approx([common, common], rel=1e-8)
    assert result.poles["c"] == pytest.approx([-0.5 / (J + m * s**2), 0], abs=small)
    with pytest.raises(InputError, match="zero or multiple"):
        result.mode("one", 1)


def hanging_chain(p: Values) -> mbd.System:
    """Return links on universal joints, which turn freely about the vertical."""
    bodies, joints, before = [GROUND], [], GROUND.frame("o")
    for k in range(3):
        frames = {"top": mbd.Frame((0, 0.1, 0)), "end": mbd.Frame((0, -0.1, 0))}
        position = (0, -0.1 - 0.2 * k, 0)
        link = mbd.RigidBody(f"link {k}", p["m"], [0.01, 0.005, 0.01], position, frames=frames)
        joints.append(mbd.universal(f"joint {k}", before, link.frame("top")))
        before = link.frame("end")
        bodies.append(link)
    return mbd.System(bodies, joints, gravity=(0, -p["g"], 0))


def test_neutral_coordinates() -> None:
    """All poles are proportional to √g; those of freely rotating links remain zero."""
    result = mbd.design.linear_sensitivities(hanging_chain, {"m": 1.0, "g": GRAVITY})
    poles = result.linearization.poles
    assert 0 < np.sum(poles == 0) < len(poles)
    assert GRAVITY * result.poles["g"] == pytest.approx(poles / 2, rel=1e-8)
    for name in ("m", "g"):
        assert (result.poles[name][poles == 0] == 0).all()


# ---- new linearizations -------------------------------------------------------------------------
def sprung_rod(p: Values) -> mbd.System:
    """Return a flexible rod on a bushing, with a mass at its end that hangs from a spring."""
    reduced = rod()
    reduced = reduced.replace(stiffness=p["rod"] * reduced.stiffness)
    body = mbd.FlexibleBody("rod", reduced, damping_ratio=0.02)
    frames = {"o": mbd.Frame((0, p["offset"], 0))}
    end = mbd.RigidBody("end", p["m"], [0.002, 0.001, 0.003], position=(0.55, 0, 0), frames=frames)
    ground = mbd.Ground({"left": mbd.Frame((-0.5, 0, 0)), "top": mbd.Frame((0.5, 0.4, 0.1))})
    support = mbd.Bushing(
        "support",
        ground.frame("left"),
        body.frame("left"),
        stiffness=[2e4, 3e4, p["k"], 40.0, 50.0, 90.0],
        damping=[5.0, 3.0, 4.0, 0.2, 0.3, 0.1],
    )
    spring = mbd.SpringDamper(
        "spring", ground.frame("top"), end.frame("o"), 300.0, p["c"], length=0.3
    )
    joint = mbd.universal("joint", body.frame("right"), end.frame("o"))
    push = mbd.force("push", end.frame("o"), (0.0, 0.0, 0.0))
    return mbd.System(
        [ground, body, end], [joint], loads=[support, spring, push], gravity=(0, 0, -GRAVITY)
    )


def rotor(p: Values) -> mbd.System:
    """Return a disc that spins in a housing on unsymmetric springs and dampers.

    It sags under its weight.
    """
    frames = {"hub": mbd.Frame((0, 0, p["hub"])), "rim": mbd.Frame((0.1, 0.2, -0.05))}
    disc = mbd.RigidBody(
        "disc", p["m"], [0.02, 0.02, p["polar"]], frames=frames, omega=(0, 0, p["speed"])
    )
    frames = {"hub": mbd.Frame((0, 0, p["hub"])), "foot": mbd.Frame((0.01, 0.02, 0.03))}
    housing = mbd.RigidBody("housing", 0.5, [0.004, 0.005, 0.006], frames=frames)
    ground = mbd.Ground({"foot": mbd.Frame((0.01, 0.02, 0.03))})
    mount = mbd.Bushing(
        "mount",
        ground.frame("foot"),
        housing.frame("foot"),
        stiffness=[p["k"], 3e4, 5e4, 300.0, 200.0, 100.0],
        damping=[p["c"], 3.0, 4.0, 0.2, 0.3, 0.1],
    )
    axle = mbd.revolute("axle", housing.frame("hub"), disc.frame("hub"))
    push = mbd.force("push", housing.frame("foot"), (0.0, 0.0, 0.0))
    gravity = (0, -GRAVITY, -1.0)
    return mbd.System([ground, housing, disc], [axle], loads=[mount, push], gravity=gravity)


def running(system: Any) -> mbd.mechanism.State:
    """Return the sagged rotor at its speed; a spring without load defines the angle of the disc."""
    hold = mbd.JointSpring("hold", "axle", stiffness=50.0)
    parts = system.bodies, system.joints
    at_rest = mbd.System(*parts, loads=[*system.loads, hold], gravity=system.gravity)
    rest = mbd.equilibrium(at_rest, tolerance=1e-12)
    v = {"housing.velocity": np.zeros(3), "housing.omega": np.zeros(3)}
    v |= {"disc.omega": system.bodies[-1].omega}
    return mbd.dynamics.consistent_state(system, q=rest.q, v=v)


CASES: dict[str, tuple[Any, dict[str, float], Any, list[str], dict[str, Any]]] = {
    "oscillator": (oscillator, {"m": 2.0, "c": 4.0, "k": 800.0}, None, ["push"], X),
    "rod": (
        sprung_rod,
        {"rod": 1.0, "m": 0.4, "k": 1e4, "c": 8.0, "offset": 0.05},
        None,
        ["push.x", "push.z"],
        {
            "height": lambda run: run.sensor("rod", "right")[:, 2],
            "acceleration": lambda run: run.sensor("rod", "right", "acceleration")[:, 0],
            "force": lambda run: run.joint("joint").force[:, 1],
        },
    ),
    "rotor": (
        rotor,
        {"hub": 0.08, "m": 3.0, "polar": 0.035, "k": 2e4, "c": 5.0, "speed": 150.0},
        running,
        ["push.x", "push.y"],
        {"side": lambda run: run.sensor("housing", "foot")[:, 0]},
    ),
}


@pytest.mark.parametrize(
    "case", ["oscillator", *(pytest.param(k, marks=pytest.mark.slow) for k in ("rod", "rotor"))]
)
def test_remainders_are_quadratic(case: str) -> None:
    """Taylor tests of poles, modes and responses with new linearizations: slope 2."""
    build, values, state, inputs, outputs = CASES[case]
    # With the default tolerance, residual forces would be as large as the remainders, about 1e-9
    state = state or partial(mbd.equilibrium, tolerance=1e-12)
    result = mbd.design.linear_sensitivities(
        build, values, state=state, inputs=inputs, outputs=outputs
    )
    base, f = result.linearization, np.array([0.5, 7.0, 60.0])
    numbers = range(1, base.modes.shape[1] + 1)
    oscillating = [k for k in numbers if base.poles[k - 1] != 0]
    body = base.system.bodies[-1].name
    slopes = [result.poles, result.response(f)]
    slopes += [result.mode(body, k) for k in oscillating]

    def numbers_of(linear: mbd.analyses.LinearizedSystem) -> list[np.ndarray]:
        return [linear.poles, linear.response(f)] + [linear.mode(body, k) for k in oscillating]

    for name, value in values.items():
        remainders = []
        for step in (4e-3, 2e-3):
            system = build({**values, name: value * (1 + step)})
            changed = mbd.linearize(system, state(system), inputs=inputs, outputs=outputs)
            assert changed.axes == base.axes
            changes = zip(numbers_of(base), numbers_of(changed), slopes, strict=True)
            rests = [
                np.abs(b - a - step * value * s[name]).max() / np.abs(a).max()
                for a, b, s in changes
            ]
            remainders.append(rests)
        for first, second in zip(*remainders, strict=True):
            assert second < 1e-9 or np.log2(first / second) == pytest.approx(2.0, abs=0.1), name


def top(p: Values) -> mbd.System:
    """Return a top on a ball joint with a spin and a polar moment of inertia."""
    body = mbd.RigidBody(
        "top",
        0.5,
        [0.002, 0.002, p["polar"]],
        (0, 0, 0.1),
        frames={"o": mbd.Frame()},
        omega=(0, 0, p["spin"]),
    )
    joints = [mbd.spherical("tip", GROUND.frame("o"), body.frame("o"))]
    return mbd.System([GROUND, body], joints, gravity=(0, 0, -GRAVITY))


def test_sleeping_top() -> None:
    """λ′ = i (I Ω)′ λ/(2Jλ − i I Ω), from J λ² − i I Ω λ = m g s.

    I and J are the moments of inertia about the axis and across it through the tip, Ω is the
    spin, s the distance of the centre of mass from the tip, and ′ a derivative. The pole 0 belongs
    to a change of the spin.
    """
    values = {"polar": 0.001, "spin": 300.0}
    result = mbd.design.linear_sensitivities(
        top, values, state=mbd.dynamics.consistent_state, axes="global"
    )
    J, momentum, poles = 0.002 + 0.5 * 0.1**2, 0.3, result.linearization.poles
    assert poles[0] == 0
    assert len(poles) == 3
    for k, pole in enumerate(poles[1:], 1):
        assert J * pole**2 - 1j * momentum * pole == pytest.approx(0.5 * GRAVITY * 0.1, rel=1e-8)
        for name, value in values.items():
            slope = 1j * momentum / value * pole / (2 * J * pole - 1j * momentum)
            assert result.poles[name][k] == pytest.approx(slope, rel=1e-8)
            assert result.poles[name][0] == 0


# ---- requests that are not differentiable, and invalid input ------------------------------------
def hinged(p: Values) -> mbd.System:
    """Return a wheel on a hinge, with a coil spring of stiffness k and a damper c."""
    wheel = mbd.RigidBody("wheel", 1.0, [INERTIA] * 3, frames={"o": mbd.Frame()})
    pin = mbd.revolute("pin", GROUND.frame("o"), wheel.frame("o"))
    motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
    law = lambda t, s, rate: -p["k"] * s - p["c"] * rate  # noqa: E731
    spring = mbd.JointLoad("spring", "pin", "rotation", law)
    return mbd.System([GROUND, wheel], [pin], loads=[spring, motor])


ANGLE = {"angle": lambda run: run.joint("pin").rotation}


def test_poles_without_derivatives() -> None:
    """Critical damping has a defective pole, and the pole ∝ √k has no slope at k = 0."""
    k = 8.0
    values = {"k": k, "c": 2 * np.sqrt(k * INERTIA)}
    with pytest.warns(AccuracyWarning, match="zero or defective"):
        result = mbd.design.linear_sensitivities(hinged, values, inputs=["motor"], outputs=ANGLE)
    assert np.isnan(result.poles["k"]).all()
    s = 2j * np.pi * 3.0
    exact = -1 / (INERTIA * s**2 + values["c"] * s + k) ** 2
    assert result.response([3.0])["k"][0, 0, 0] == pytest.approx(exact, rel=1e-7)
    free, steps = {"k": 0.0, "c": 0.0}, {"k": 0.1, "c": 0.1}
    with pytest.warns(AccuracyWarning, match="zero or defective"):
        result = mbd.design.linear_sensitivities(hinged, free, steps=steps)
    assert np.isnan(result.poles["k"]).all()
    assert np.isnan(result.frequencies["c"]).all()


def test_default_step() -> None:
    """The step of differences is 1e-3 of the value."""
    values = {"k": 8.0, "c": 0.1}
    default = mbd.design.linear_sensitivities(hinged, values)
    same = mbd.design.linear_sensitivities(hinged, values, steps={"k": 8e-3, "c": 1e-4})
    smaller = mbd.design.linear_sensitivities(hinged, values, steps={"k": 8e-4, "c": 1e-5})
    assert all(np.array_equal(default.poles[name], same.poles[name]) for name in values)
    assert not np.array_equal(default.poles["k"], smaller.poles["k"])  # other round-off


def test_singular_requests() -> None:
    """A response at an undamped pole is infinite; a kink has no derivative."""
    values = {"k": 8.0, "c": 0.0}
    build = {"inputs": ["motor"], "outputs": ANGLE, "steps": {"c": 1e-3}}
    result = mbd.design.linear_sensitivities(hinged, values, **build)  # type: ignore[arg-type]
    assert result.poles["c"] == pytest.approx([-1 / (2 * INERTIA)], rel=1e-8)
    with pytest.raises(InputError, match="is infinite"):
        result.response(result.linearization.frequencies)
    with pytest.raises(InputError, match="needs inputs and outputs"):
        mbd.design.linear_sensitivities(hinged, {"k": 8.0, "c": 1.0}).response([1.0])

    def kinked(p: Values) -> mbd.System:
        return hinged({"k": 8.0 + abs(p["x"]), "c": 0.1})

    with pytest.raises(InputError, match="not smooth functions"):
        mbd.design.linear_sensitivities(kinked, {"x": 0.0}, steps={"x": 1e-2})


def test_errors() -> None:
    with pytest.raises(InputError, match="specify the step"):
        mbd.design.linear_sensitivities(hinged, {"k": 0.0, "c": 0.1})
    with pytest.raises(InputError, match="unknown parameter 'd'"):
        mbd.design.linear_sensitivities(hinged, {"k": 8.0, "c": 0.1}, steps={"d": 1.0})
    with pytest.raises(InputError, match="at least one parameter"):
        mbd.design.linear_sensitivities(hinged, {})

    def changing(p: Values) -> mbd.System:
        if p["x"] == 1.0:
            return hinged({"k": 1.0, "c": 1.0})
        return two_pendulums({"length one": 0.5, "length two": 0.5, "m": 1.0, "c": 1.0})

    with pytest.raises(InputError, match="different sizes"):
        mbd.design.linear_sensitivities(changing, {"x": 1.0})
    with pytest.raises(mbd.analyses.SteadyError):
        values = {"m": 1.0, "l": 1.0, "k": 1.0, "free": 0.5, "g": GRAVITY}
        mbd.design.linear_sensitivities(
            sprung_pendulum, values, state=mbd.dynamics.consistent_state
        )


# ---- reduced bodies -----------------------------------------------------------------------------
def test_reduced_body_of_first_order(comm: MPI.Intracomm) -> None:
    """ρ df/dρ = −f/2 and E df/dE = f/2 for a free body; on springs, E df/dE + k df/dk = f/2."""
    reduction = mbd.reduce(box(comm), mbd.STEEL, interfaces=["left", "right"], num_modes=4)
    parameters = [mbd.Parameter("E", "young"), mbd.Parameter("rho", "density")]
    table = mbd.sensitivities(reduction, parameters)
    ground = mbd.Ground({"left": mbd.Frame()})

    def build(p: Values) -> mbd.System:
        reduced = table.at({"E": p["E"], "rho": p["rho"]}, own_modes=False)
        body = mbd.FlexibleBody("bar", reduced, damping_ratio=0.0)
        stiffness = p.get("k", 0.0) * np.array([3.0, 2.0, 2.5, 0.02, 0.03, 0.01])
        ends = ground.frame("left"), body.frame("left")
        mount = mbd.Bushing("mount", *ends, stiffness)
        return mbd.System([ground, body], loads=[mount])

    free = mbd.design.linear_sensitivities(build, table.base)
    f = free.linearization.frequencies
    assert (f[:6] == 0).all()
    assert 2.1e11 * free.frequencies["E"] == pytest.approx(f / 2, rel=1e-8)
    assert 7850.0 * free.frequencies["rho"] == pytest.approx(-f / 2, rel=1e-8)
    values = {**table.base, "k": 1e6}
    sprung = mbd.design.linear_sensitivities(build, values)
    f = sprung.linearization.frequencies
    shares = {name: values[name] * sprung.frequencies[name] / f for name in values}
    assert f.min() > 10.0
    assert shares["rho"] == pytest.approx(-0.5 * np.ones(len(f)), rel=1e-8)
    assert shares["E"] + shares["k"] == pytest.approx(0.5 * np.ones(len(f)), rel=1e-8)
    assert shares["k"][:3].min() > 0.01


def test_double_modes_of_a_body(comm: MPI.Intracomm) -> None:
    """A square bar has pairs of equal bending modes; the shape parameter splits each pair."""
    mesh = box(comm, size=(0.2, 0.02, 0.02), cells=(6, 2, 2))
    model = mbd.ElasticModel(mesh, mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    # along the diagonal of the section
    stretch = ufl.as_vector([0 * x[0], x[1] + x[2], x[1] + x[2]])
    reduction = mbd.reduce(model, interfaces=["left", "right"], num_modes=4)
    parameters = [mbd.Parameter("E", "young"), mbd.Parameter("h", "shape", velocity=stretch)]
    table = mbd.sensitivities(reduction, parameters)

    def build(p: Values) -> mbd.System:
        reduced = table.at({"E": p["E"], "h": p["h"]}, own_modes=False)
        body = mbd.FlexibleBody("bar", reduced, damping_ratio=0.0)
        return mbd.System([mbd.Ground(), body])

    result = mbd.design.linear_sensitivities(build, table.base, steps={"h": 1e-3})
    f = result.linearization.frequencies
    assert f[7] == pytest.approx(f[6], rel=1e-7)
    assert 2.1e11 * result.frequencies["E"] == pytest.approx(f / 2, rel=1e-8)
    slopes = table["h"].frequencies
    size = np.abs(slopes).max()
    assert np.abs(slopes[0] - slopes[1]) > 1e-2 * size
    assert result.frequencies["h"][6:] == pytest.approx(slopes, abs=1e-7 * size)
