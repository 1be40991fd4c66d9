"""Friction power and oil flow of bearings: closed forms, balance of power, means over time.

`film_loads` returns the loads g of the journal (force, its first moment, drag torque), their
derivatives, and facts: smallest gap, peak pressure, side flow and friction power. The motion y of
the journal contains position and slope, their rates, and the speed.
"""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bearings import (
    Asperities,
    FilmBearing,
    FiniteBearing,
    Oil,
    OilSupply,
    ShortBearing,
)
from tests.mechanism.bearings.films import CLEARANCE, ENDS, RADIUS, SPEED, VISCOSITY

R, C, MU = RADIUS, CLEARANCE, VISCOSITY
POWER = 3  # index in the third result of `film_loads`


def short(length: float, **options: object) -> ShortBearing:
    """Return a short bearing of a length."""
    return ShortBearing("film", *ENDS, R, length, C, MU, **options)  # type: ignore[arg-type]


def finite(length: float, shape: tuple[int, int], **options: object) -> FiniteBearing:
    """Return a bearing of a length on a grid of intervals."""
    oil = options.pop("oil", MU)
    return FiniteBearing("film", *ENDS, R, length, C, oil, shape=shape, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("film", [short(0.03), finite(0.07, (24, 8))])
@pytest.mark.parametrize("speed", [150.0, -420.0])
def test_petroff(film: FilmBearing, speed: float) -> None:
    """The friction power of a centred journal is 2π μ Ω² R³ L/c."""
    facts = film.film_loads(film.motion_vector((0, 0), speed=speed), False)[2]
    power = 2 * np.pi * MU * speed**2 * R**3 * film.length / C
    assert facts[POWER] == pytest.approx(power, rel=1e-3)  # error of axial weights


@pytest.mark.parametrize("e", [0.2, 0.6, 0.85])
def test_short_bearing(e: float) -> None:
    """The torque is Petroff's torque over √(1 − ε²), plus half of e times the load across e."""
    length = 0.02
    film = short(length, points=64)
    facts = film.film_loads(film.motion_vector((0.6 * e * C, 0.8 * e * C), speed=SPEED), False)[2]
    across = MU * SPEED * R * length**3 / (4 * C**2) * np.pi * e / (1 - e * e) ** 1.5
    torque = 2 * np.pi * MU * SPEED * R**3 * length / (C * np.sqrt(1 - e * e))
    assert facts[POWER] == pytest.approx(SPEED * (torque + 0.5 * e * C * across), rel=1e-8)


@pytest.mark.parametrize("e", [0.3, 0.6])
def test_long_bearing_without_rupture(e: float) -> None:
    """Without the power of the pump, the friction power per length is that of Sommerfeld.

    4π μ Ω² R³ (1 + 2ε²)/(c (2 + ε²) √(1 − ε²)).
    """
    pressure, powers = 5e7, []
    for length, m in ((24 * R, 36), (48 * R, 72)):
        film = finite(length, (144, m), supply=[OilSupply(pressure, arc=1e-3)])
        facts = film.film_loads(film.motion_vector((-e * C, 0), speed=SPEED), False)[2]
        powers.append(facts[POWER] - pressure * film.grid.supply_flow())
    per_length = (powers[1] - powers[0]) / (24 * R)
    exact = 4 * np.pi * MU * SPEED**2 * R**3 / C * (1 + 2 * e * e) / (2 + e * e)
    assert per_length == pytest.approx(exact / np.sqrt(1 - e * e), rel=4e-3)


def balance(film: FiniteBearing, motion: np.ndarray, pressure: float) -> float:
    """Return the friction power relative to that of the loads and of the supply."""
    g, _, facts = film.film_loads(motion, False)
    e, t, e_rate, t_rate = motion[:8].reshape(4, 2)  # position, slope and their rates
    couple = 0.5 * (e[0] * g[1] - e[1] * g[0] + t[0] * g[3] - t[1] * g[2])
    power = g[:2] @ e_rate + g[2:4] @ t_rate - (g[4] + couple) * motion[8]
    return float(facts[POWER] / (-power + pressure * film.grid.supply_flow()))


@pytest.mark.parametrize("alpha", [0.0, 2e-8])
def test_balance_of_power(alpha: float) -> None:
    """The error decreases with the square of the intervals."""
    pressure, errors = 4e5, []
    for k in (1, 2, 4):
        supply = [OilSupply(pressure, 1.3, 0.5, length=0.8 * R)]
        film = finite(1.2 * R, (48 * k, 8 * k), supply=supply, oil=Oil(MU, alpha))
        rates = {"slope": (3e-4, -2e-4), "slope_rate": (0.02, 0.05)}
        y = film.motion_vector((0.5 * C, -0.2 * C), (1e-3, 2e-3), speed=SPEED, **rates)
        errors.append(abs(balance(film, y, pressure) - 1))
    assert errors[2] < 1e-3 and errors[0] / errors[2] > 8


def rotor(kind: type[FilmBearing], **options: object) -> mbd.results.Solution:
    """Return a rotor with a constant speed under gravity, with an unbalance, in one bearing."""
    ground = mbd.Ground({"bore": mbd.Frame()})
    frames = {"journal": mbd.Frame((3e-5, 0, 0))}
    body = mbd.RigidBody("rotor", 8.0, [0.02] * 3, frames=frames, omega=(0, 0, 300.0))
    ends = ground.frame("bore"), body.frame("journal")
    film = kind("film", *ends, 0.02, 0.02, 4e-5, 0.01, **options)  # type: ignore[arg-type]
    hold = mbd.mechanism.Joint("plane", "planar", *ends)
    drive = mbd.Driver("drive", "plane", mbd.constant_speed(300.0))
    system = mbd.System(
        [ground, body], [hold], drivers=[drive], loads=[film], gravity=(0, -9.81, 0)
    )
    return mbd.simulate(system, t_end=0.06, dt=2e-4)


@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
def test_power_of_the_drive(kind: type[FilmBearing]) -> None:
    """Work of the drive and of gravity becomes heat and kinetic energy, in a run with whirl."""
    run = rotor(kind)
    film, body = run.element("film"), run.body("rotor")
    drive = run.joint("drive").work[-1]
    rise = body.kinetic_energy + body.gravity_energy
    heat = film.mean("friction_power") * run.time[-1]
    assert np.linalg.norm(film.displacement[-1]) > 1e-6
    assert drive - (rise[-1] - rise[0]) == pytest.approx(heat, rel=2e-3)
    assert np.allclose(
        film.friction_power, -film.power, rtol=2e-3 if kind is FiniteBearing else 1e-9
    )
    assert (film.friction_power > 0).all()
    data = run.to_xarray()
    assert data["film.friction_power"].attrs["units"] == "W"
    assert data["film.side_flow"].attrs["units"] == "m³/s"


def test_friction_of_asperities_is_a_part() -> None:
    """Without oil pressure, the friction force is its coefficient times the normal force."""
    surfaces = Asperities(roughness=1e-6, friction=0.12, sliding_speed=1e-6)
    for film in (short(0.02, asperities=surfaces), finite(0.02, (24, 6), asperities=surfaces)):
        motion = film.motion_vector((C - 1.5e-6, 0.0), speed=1e-3)
        g, _, facts = film.film_loads(motion, False)
        force = np.hypot(*g[:2])
        assert facts[POWER] == pytest.approx(0.12 * force * R * 1e-3, rel=0.02)


def test_mean_of_a_history() -> None:
    run = rotor(ShortBearing)
    film = run.element("film")
    span = 2 * np.pi / 300
    time = np.linspace(run.time[-1] - span, run.time[-1], 20001)
    values = np.interp(time, run.time, film.friction_power)
    assert film.mean("friction_power", span) == pytest.approx(values.mean(), rel=1e-6)
    assert film.mean("force", span).shape == (3,)
    assert film.mean("force.y", span) == pytest.approx(8 * 9.81, rel=0.05)
    for wrong in (0.0, -1.0, 1.0, float("nan")):
        with pytest.raises(InputError):
            film.mean("friction_power", wrong)
    with pytest.raises(InputError):
        film.mean("heat")
