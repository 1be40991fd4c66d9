"""Mixed lubrication: flow factors, mean gap, friction and contact of rough surfaces.

`film_loads` returns the loads g of the journal (force, its first moment, drag torque), their
derivatives, and facts: smallest gap, peak pressure, side flow and friction power. The motion y of
the journal contains position and slope, their rates, and the speed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.compilation import kernel
from dolfinx_mbd.kernels.films.rough_surfaces import film_at
from dolfinx_mbd.mechanism.bearings import Asperities, FiniteBearing, OilSupply, ShortBearing
from tests.mechanism.bearings.films import CLEARANCE, ENDS, RADIUS, SPEED, VISCOSITY, journal_pair
from tests.mechanism.bearings.test_short_bearing import check_balance, check_derivatives

R, C, MU = RADIUS, CLEARANCE, VISCOSITY
SIGMA = 0.8e-6
PATTERNS = [1 / 9, 1 / 6, 1 / 3, 1, 3, 6, 9]


@kernel
def film(h: float, values: np.ndarray) -> tuple[float, ...]:
    """Return averaged thicknesses of a film with the gap h, each followed by its slope.

    Of the content, the slope and the second derivative are returned.
    """
    f = film_at(h, values)
    return (
        f.around, f.around_slope, f.along, f.along_slope, f.entrained, f.entrained_slope,
        f.content_slope, f.content_second, f.shear, f.shear_slope,
    )  # fmt: skip


def bearing(length: float = R, **options: object) -> FiniteBearing:
    """Return a bearing with rough surfaces, by default with isotropic ones."""
    options = {"shape": (48, 10), "asperities": Asperities(SIGMA, pattern=1)} | options
    return FiniteBearing("film", *ENDS, R, length, C, MU, **options)  # type: ignore[arg-type]


def constants(pattern: float, journal: float = 0.5) -> np.ndarray:
    """Return the constants of the kernel for a pattern of the roughness."""
    surfaces = Asperities(SIGMA, pattern=pattern, journal_share=journal)
    return bearing(asperities=surfaces).grid.values


def test_contact_pressure_of_greenwood_and_tripp() -> None:
    """The pressure is F₅⸝₂ of Gaussian heights; the published fit is up to 11 % lower.

    Between 2σ and 4σ, the difference is below 0.1 % of the pressure at h = 0, which is 0.617.
    """
    surfaces = Asperities(SIGMA, modulus=1.0)
    for x, error in ((0.0, 0.11), (0.5, 0.08), (1.0, 0.04), (2.0, 0.1)):
        exact, _ = quad(
            lambda u, x=x: (u - x) ** 2.5 * np.exp(-u * u / 2) / np.sqrt(2 * np.pi), x, 12.0
        )
        assert float(surfaces.pressure(x * SIGMA)) == pytest.approx(exact, rel=error)
    for x in (2.0, 2.5, 3.0, 3.5, 4.0):
        exact, _ = quad(
            lambda u, x=x: (u - x) ** 2.5 * np.exp(-u * u / 2) / np.sqrt(2 * np.pi), x, 12.0
        )
        assert abs(float(surfaces.pressure(x * SIGMA)) - exact) < 1e-3 * 0.617  # 0.617: at x = 0


def test_modulus_from_summits() -> None:
    surfaces = Asperities.from_summits(SIGMA, 1e10, 5e-6, 1.1e11, friction=0.08)
    product = 1e10 * 5e-6 * SIGMA
    exact = 16 * np.sqrt(2) * np.pi / 15 * product**2 * np.sqrt(SIGMA / 5e-6) * 1.1e11
    assert surfaces.modulus == pytest.approx(exact) and surfaces.friction == 0.08


@pytest.mark.parametrize("pattern", PATTERNS)
def test_thick_films_are_smooth(pattern: float) -> None:
    """All thicknesses tend to the gap; along the flow, ridges have an effect of (h/σ)^−1.5."""
    h = 300 * SIGMA
    values = film(h, constants(pattern, 0.9))  # 0 around, 2 along, 4 entrained, 8 shear
    assert np.allclose([values[0], values[2], values[4], 1 / values[8]], h, rtol=1e-4)
    assert np.allclose([values[1], values[3], values[5], values[6]], 1.0, rtol=1e-3)


def test_published_factors() -> None:
    """Patir and Cheng at h = 2σ: φ = 1 − 0.9 e^−1.12 and φ_s = 1.899·2^0.98 e^(−1.84 + 0.2)."""
    h = 2 * SIGMA
    values, journal = film(h, constants(1)), film(h, constants(1, 1.0))
    assert (values[0] / h) ** 3 == pytest.approx(1 - 0.9 * np.exp(-1.12))
    assert values[0] == values[2]
    shear = 1.899 * 2**0.98 * np.exp(-1.84 + 0.2)
    assert journal[4] - values[4] == pytest.approx(SIGMA * shear)
    long = film(h, constants(9))
    assert (long[0] / h) ** 3 == pytest.approx(1 + 0.87 * 2**-1.5)
    assert (long[2] / h) ** 3 == pytest.approx(1 - 1.48 * np.exp(-0.84))


@pytest.mark.parametrize("x", [0.5, 1.0, 1.7, 2.9, 3.2, 6.0, 20.0, 26.0])
def test_mean_gap_and_friction_are_integrals(x: float) -> None:
    """The mean gap is that of Gaussian heights u; friction has the density 35/96 (1 − u²/9)³."""
    values = film(x * SIGMA, constants(1))
    mean, _ = quad(lambda u: (x + u) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi), -x, 12.0)
    assert values[4] == pytest.approx(SIGMA * mean, rel=1e-8)
    H = x if x >= 1 else 1 / (2 - x)  # thickness over σ, see `thickness`
    factor, _ = quad(
        lambda u: H * 35 / 96 * (1 - u * u / 9) ** 3 / (H + u),
        max(-3.0, -H + 0.01),
        3.0,
        epsabs=1e-12,
        limit=200,
    )
    assert H * SIGMA * values[8] == pytest.approx(factor, rel=2e-3 if x < 3 else 1e-7)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("journal", [0.0, 0.5, 1.0])
def test_slopes(pattern: float, journal: float) -> None:
    """Derivatives of the thicknesses, which are positive for any overlap."""
    values = constants(pattern, journal)
    for x in (-50.0, -3.3, -1.0, 0.4, 1.2, 2.0, 3.5, 4.9, 5.2, 23.0, 25.0, 100.0):
        h, d = x * SIGMA, 1e-5 * SIGMA * max(1.0, abs(x))
        middle, up, down = film(h, values), film(h + d, values), film(h - d, values)
        assert min(middle[0], middle[2], middle[4], middle[8]) > 0
        for k in (0, 2, 4, 8):
            numerical = (up[k] - down[k]) / (2 * d)
            scale = abs(middle[k + 1]) + 1e-4 * middle[k] / SIGMA
            assert abs(middle[k + 1] - numerical) < 1e-5 * scale


@pytest.mark.parametrize("pattern", [1 / 3, 1, 6])
@pytest.mark.parametrize("cavitation", ["reynolds", "mass_conserving"])
@pytest.mark.parametrize("case", [(0.6, 0.2), (0.965, 0.01), (1.01, 0.05)])
def test_derivatives(pattern: float, cavitation: str, case: tuple[float, float]) -> None:
    supply = [OilSupply(2e5, 1.0, 0.4, length=0.5 * R)]
    surfaces = Asperities(SIGMA, modulus=3e5, pattern=pattern, journal_share=0.8)
    rough = bearing(shape=(32, 6), supply=supply, asperities=surfaces, cavitation=cavitation)
    check_derivatives(rough, *case)
    check_balance(rough, journal_pair(np.random.default_rng(3), case[0], tilt=case[1]))


def test_smooth_limit_of_a_bearing() -> None:
    """The difference from smooth surfaces is proportional to σ², as ⟨1/h⟩ h − 1 in the friction."""
    differences = []
    for sigma in (2e-6, 2e-7, 2e-8):
        films = [bearing(asperities=Asperities(sigma, pattern=p)) for p in (None, 1)]
        y = films[0].motion_vector((0.6 * C, 0), (1e-3, 0), speed=SPEED)
        loads = [item.film_loads(y, False)[0] for item in films]
        differences.append(np.abs(loads[1] / loads[0] - 1)[[0, 1, 4]].max())
    assert 1e-5 < differences[0] < 2e-3
    assert differences[1] / differences[2] == pytest.approx(100.0, rel=0.02)


def test_transverse_patterns_carry_more() -> None:
    """At a gap of about 3σ, ridges across the flow block it, and ridges along it leak."""
    loads = []
    for pattern in (1 / 9, 1, 9):
        surfaces = Asperities(6e-6, modulus=1.0, pattern=pattern)
        rough = bearing(2 * R, asperities=surfaces)
        y = rough.motion_vector((0.8 * C, 0.0), speed=SPEED)
        loads.append(np.hypot(*rough.film_loads(y, False)[0][:2]))
    assert loads[0] > loads[1] > loads[2]


def stribeck(speed: float, load: float, one: FiniteBearing) -> tuple[float, float, float]:
    """Return friction coefficient, part of the load on asperities, and friction power."""

    def force(e: float) -> float:
        return float(
            np.hypot(*one.film_loads(one.motion_vector((e, 0.0), speed=speed), False)[0][:2])
        )

    e = brentq(lambda e: force(e) - load, 0.2 * C, 1.02 * C, xtol=1e-13)
    g, _, facts = one.film_loads(one.motion_vector((e, 0.0), speed=speed), False)
    film_force = np.hypot(*one.grid.loads(contact=False)[0][:2])
    torque = g[4] + 0.5 * e * g[1]
    return torque / (load * R), 1 - film_force / load, float(facts[3])


def test_stribeck_curve() -> None:
    """Boundary friction at low speeds, a minimum, and viscous friction that grows with speed."""
    surfaces = Asperities(SIGMA, friction=0.1, sliding_speed=1e-4, pattern=1)
    rough = bearing(shape=(96, 10), asperities=surfaces)
    speeds = np.geomspace(0.05, 2000.0, 14)
    friction, contact, power = np.array([stribeck(v, 4000.0, rough) for v in speeds]).T
    assert friction[0] == pytest.approx(0.1, rel=0.1) and contact[0] > 0.9
    lowest = int(np.argmin(friction))
    assert 3 < lowest < 12 and friction[lowest] < 0.01 and contact[lowest] < 0.05
    assert (np.diff(friction[: lowest + 1]) < 0).all() and (np.diff(friction[lowest:]) > 0).all()
    assert (np.diff(contact) <= 1e-7).all() and contact[-1] < 1e-3  # 1e-7: error of the root
    assert (power > 0).all()
    assert friction[-1] * 4000.0 * R * speeds[-1] == pytest.approx(power[-1], rel=0.01)


def test_errors() -> None:
    for wrong in ({"pattern": 2.0}, {"pattern": 0.0}, {"pattern": -1.0}, {"journal_share": 1.5}):
        with pytest.raises(InputError):
            Asperities(SIGMA, **wrong)
    with pytest.raises(InputError):
        Asperities.from_summits(SIGMA, -1e10, 5e-6, 1e11)
    with pytest.raises(InputError, match="FiniteBearing"):
        ShortBearing("film", *ENDS, R, R, C, MU, asperities=Asperities(SIGMA, pattern=1))
