"""Steady whirl of unbalanced rotors at every speed, and its curve over the speed, with folds."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import continuation, equilibrium, linearize, periodic
from dolfinx_mbd.dynamics import EquilibriumError

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
MASS, STIFFNESS, OFFSET = 8.0, 4e5, 1e-3
CRITICAL = float(np.sqrt(STIFFNESS / MASS))


def jeffcott(
    speed: float,
    damping: float = 0.0,
    cubic: float = 0.0,
    *,
    across: float = 1.0,
    offset: float = OFFSET,
    gravity: float = 0.0,
) -> mbd.System:
    """Return an unbalanced disc in a plane on a spring, with the force −k r − cubic r² r.

    `across` is the factor of the stiffness k along the second axis.
    """
    frame = mbd.Frame((0, 0, 0), ALONG_X)
    ground = mbd.Ground({"o": frame})
    inertia = [0.055, 0.03, 0.03]
    disc = mbd.RigidBody("disc", MASS, inertia, centre=(0, offset, 0), frames={"o": frame})
    plane = mbd.planar("plane", ground.frame("o"), disc.frame("o"))

    def law(motion: Any) -> tuple[Any, Any]:
        d, v = motion.displacement, motion.velocity
        stiffness = STIFFNESS * np.array([1.0, across, 0.0]) + cubic * float(d[:2] @ d[:2])
        return -(stiffness * d + damping * v) * [1, 1, 0], np.zeros(3)

    support = mbd.PairLoad("support", ground.frame("o"), disc.frame("o"), law)
    drive = mbd.Driver("drive", "plane", mbd.constant_speed(speed), along="rotation")
    return mbd.System(
        [ground, disc], [plane], drivers=[drive], loads=[support], gravity=(0, -gravity, 0)
    )


@pytest.mark.parametrize("ratio", [0.3, 0.9, 0.99, 1.01, 1.2, 2.0, 20.0])
@pytest.mark.parametrize("zeta", [0.0, 0.02, 0.3])
def test_whirl_of_a_jeffcott_rotor(ratio: float, zeta: float) -> None:
    """The complex amplitude is e x²/(1 − x² + 2iζx), with the ratio x of the speed to the critical.

    e is the distance of the centre of mass from the axis; above the critical speed, the amplitude
    tends to −e.
    """
    speed = ratio * CRITICAL
    system = jeffcott(speed, 2 * zeta * MASS * CRITICAL)
    state = equilibrium(system, spin=(speed, 0, 0))
    exact = OFFSET * ratio**2 / (1 - ratio**2 + 2j * zeta * ratio)
    assert np.isclose(complex(state.q[1], state.q[2]), exact, rtol=1e-8)
    assert linearize(system, state).stability == ("asymptotically stable" if zeta else "stable")


def test_a_disc_that_turns_freely() -> None:
    """Without a driver, nothing determines the angle of the disc; the whirl is still found."""
    system = jeffcott(2 * CRITICAL)
    free = mbd.System(system.bodies, system.joints, loads=system.loads)
    state = equilibrium(free, spin=(2 * CRITICAL, 0, 0))
    assert np.isclose(np.hypot(*state.q[1:3]), OFFSET * 4 / 3, rtol=1e-8)


@cache
def flexible_shaft() -> mbd.ReducedBody:
    """Return a reduced shaft along x with a place for a disc in the middle."""
    mesh = create_interval(MPI.COMM_SELF, 8, [0.0, 0.6])
    beam = mbd.BeamModel(mesh, mbd.forms.Section.circle(0.01), mbd.STEEL, np.eye(3))
    places = {"left": 0.0, "middle": 0.3, "right": 0.6}
    return mbd.reduce_beam(beam, interfaces=places, num_modes=4, name="shaft").body


def shaft_with_disc(offset: float) -> mbd.System:
    """Return an unbalanced disc in the middle of a flexible shaft."""
    ground = mbd.Ground(
        {"left": mbd.Frame((0, 0, 0), ALONG_X), "right": mbd.Frame((0.6, 0, 0), ALONG_X)}
    )
    body = mbd.FlexibleBody("shaft", flexible_shaft(), damping_ratio=0.0)
    disc = mbd.RigidBody(
        "disc", 8.0, [0.055, 0.03, 0.03], (0, offset, 0), {"o": mbd.Frame()}, position=(0.3, 0, 0)
    )
    stiffness = [2e6, 2e6, 1e6, 0, 0, 0]
    loads = [
        mbd.Bushing(f"{end} bearing", ground.frame(end), body.frame(end), stiffness, [0.0] * 6)
        for end in ("left", "right")
    ]
    seat = mbd.fixed("seat", body.frame("middle"), disc.frame("o"))
    return mbd.System([ground, body, disc], [seat], loads=loads)


@pytest.mark.parametrize("ratio", [0.5, 0.95, 1.05, 1.7, 4.0])
def test_whirl_of_a_flexible_rotor(ratio: float) -> None:
    """(K − Ω²M) z = meΩ² with K and M at rest, because the central disc does not tilt."""
    balanced = shaft_with_disc(0.0)
    rest = linearize(balanced, equilibrium(balanced))
    poles = np.abs(rest.poles)
    speed = ratio * float(poles[poles > 1.0].min())
    system = shaft_with_disc(1e-4)
    state = equilibrium(system, spin=(speed, 0, 0))
    k = system.body_index("disc")
    along_y = rest.basis[system.v_slices[k]][1]
    z = np.linalg.solve(rest.stiffness - speed**2 * rest.mass, along_y * 8.0 * 1e-4 * speed**2)
    place = state.q[system.q_slices[k]][1:3]
    # the shaft has small gyroscopic moments of its own
    assert np.isclose(np.hypot(*place), abs(along_y @ z), rtol=2e-3)
    run = mbd.simulate(system, t_end=2.0 / speed, dt=0.02 / speed, start=state)
    radius = np.hypot(*run.body("disc").position[:, 1:].T)
    assert np.allclose(radius, radius[0], rtol=2e-4)


def duffing_folds(damping: float, cubic: float) -> list[float]:
    """Return the speeds at which the whirl r of the rotor with cubic stiffness turns back.

    Exactly, (k + cubic r² − mΩ²)² r² + c²Ω² r² = m²e²Ω⁴; solved for the speed of each radius.
    """
    radius = np.linspace(1e-5, 0.02, 400001)
    stiffness = STIFFNESS + cubic * radius**2
    # a Ω⁴ + b Ω² + stiffness² = 0
    a = MASS**2 * (1 - OFFSET**2 / radius**2)
    b = damping**2 - 2 * MASS * stiffness
    root = np.sqrt((b**2 - 4 * a * stiffness**2).clip(0) + 0j)
    folds = []
    for sign in (-1, 1):
        square = (-b + sign * root.real) / (2 * a)
        valid = (b**2 - 4 * a * stiffness**2 > 0) & (square > 0)
        speed = np.sqrt(np.where(valid, square, np.nan))
        turning_points = (
            np.flatnonzero((speed[1:-1] - speed[:-2]) * (speed[2:] - speed[1:-1]) < 0) + 1
        )
        folds += speed[turning_points].tolist()
    return sorted(folds)


@pytest.mark.slow
def test_folds_of_a_stiffening_support() -> None:
    """The whirl has two folds over the speed and is unstable between them, as in closed form."""
    damping, cubic = 2 * 0.04 * MASS * CRITICAL, 1e9
    curve = continuation(
        lambda speed: jeffcott(speed, damping, cubic),
        (0.9 * CRITICAL, 1.5 * CRITICAL),
        spin=lambda speed: (speed, 0, 0),
        longest=0.1,
    )
    radius = curve.values(lambda _, state: np.hypot(*state.q[1:3]))
    speed = curve.parameter
    left = (STIFFNESS + cubic * radius**2 - MASS * speed**2) ** 2 + (damping * speed) ** 2
    assert np.allclose(left * radius**2, (MASS * OFFSET) ** 2 * speed**4, rtol=1e-6)
    expected = duffing_folds(damping, cubic)
    assert len(expected) == 2
    assert np.allclose(np.sort(speed[curve.folds]), expected, rtol=1e-6)
    first, last = curve.folds
    assert not curve.stable[first + 1 : last].any()
    assert curve.stable[:first].all()
    assert curve.stable[last + 1 :].all()
    assert np.isclose(speed[-1], 1.5 * CRITICAL, rtol=1e-12)
    downward = continuation(
        lambda speed: jeffcott(speed, damping, cubic),
        (1.5 * CRITICAL, 0.9 * CRITICAL),
        spin=lambda speed: (speed, 0, 0),
        longest=0.1,
    )
    assert np.allclose(np.sort(downward.parameter[downward.folds]), expected, rtol=1e-6)


def test_no_steady_rotation() -> None:
    """Gravity across the axis, or a support with two stiffnesses, changes during a rotation."""
    for options in ({"gravity": 9.81}, {"across": 0.5}):
        with pytest.raises(EquilibriumError, match="forces change while the mechanism rotates"):
            equilibrium(jeffcott(100.0, 50.0, **options), spin=(100.0, 0, 0))  # type: ignore[arg-type]


def whirling(speed: float, across: float) -> mbd.System:
    """Return a turning flexible shaft with a disc on bearings with two stiffnesses."""
    system = shaft_with_disc(0.0)
    body, disc = system.bodies[1:]
    turning = {"omega": (speed, 0, 0), "velocity": (0, 0, 0)}
    body, disc = (dataclasses.replace(part, **turning) for part in (body, disc))  # type: ignore[type-var]
    ground = system.bodies[0]
    loads = []
    for end, along in (("left", 1e6), ("right", 0.0)):
        stiffness = np.diag([2e6, across * 2e6, along])
        table = mbd.mechanism.BearingTable([0.0], [stiffness], [np.diag([300.0, 300.0, 0.0])])
        pair = ground.frame(end), body.frame(end)
        loads.append(mbd.mechanism.TabulatedBearing(f"{end} bearing", *pair, table))
    return mbd.System([ground, body, disc], system.joints, loads=loads)


@pytest.mark.parametrize("speed", [150.0, 700.0])
def test_flexible_rotor_on_anisotropic_bearings(speed: float) -> None:
    """The bending with a disc in the middle has no gyroscopic moments.

    The exponents of the rotating rotor are those at rest, up to multiples of 2πi/T.
    """
    period = 2 * np.pi / speed
    cycle = periodic(whirling(speed, 0.3), period, dt=period / 800, closed=1e-2)
    assert cycle.corrections == 0  # the shaft turns steadily, but for its axial vibration
    still = whirling(0.0, 0.3)
    poles = linearize(still, equilibrium(still)).poles
    bending = poles[np.abs(poles) > 1.0][:2]  # bending in two directions
    for pole in bending:
        exact = np.exp(pole * period)
        assert np.abs(cycle.multipliers - exact).min() < 3e-4
