"""Equilibrium, stiffness and damping: tables of Ocvirk and of Lund and Thomsen, and whirl.

`film_loads` returns the loads g of the journal (force, its first moment, drag torque), their
derivatives, and facts: smallest gap, peak pressure, side flow and friction power. The motion y of
the journal contains position and slope, their rates, and the speed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.stepping.integrators import StepError
from dolfinx_mbd.errors import InputError, ModelRangeWarning, SolverError
from dolfinx_mbd.mechanism.bearings import (
    FiniteBearing,
    OilSupply,
    ShortBearing,
    bearing_coefficients,
    journal_motion,
    whirl_threshold,
)
from tests.mechanism.bearings.films import CLEARANCE, ENDS, LENGTH, RADIUS, SIZES, SPEED, VISCOSITY
from tests.mechanism.bearings.rotors import rigid_rotor
from tests.mechanism.bearings.test_short_bearing import TABLE

FILM = ShortBearing("film", *SIZES, VISCOSITY)
UNIT = VISCOSITY * SPEED * RADIUS * LENGTH**3 / CLEARANCE**2  # of force
LOAD = 0.750381 * UNIT  # relative eccentricity 0.5

# J. W. Lund, K. K. Thomsen, 1978: Sommerfeld number S, relative eccentricity ε, attitude angle φ
# in degrees; dimensionless stiffnesses Kxx, Kxy, Kyx, Kyy and dampings Bxx, Bxy = Byx, Byy
LUND = [
    (1.656, 0.244, 65.85, 1.69, 5.06, -2.20, 1.95, 9.93, 2.15, 4.80),
    (0.580, 0.477, 51.01, 2.67, 3.70, -0.78, 1.75, 6.96, 1.94, 2.40),
    (0.244, 0.655, 40.25, 4.21, 3.74, -0.13, 1.64, 6.87, 1.82, 1.54),
]


@pytest.mark.parametrize("turn", [0.0, 1.3])
def test_ocvirk(turn: float) -> None:
    direction = np.array([np.cos(turn), np.sin(turn)])
    loads = [load * UNIT * direction for _, load, _ in TABLE]
    result = bearing_coefficients(FILM, [SPEED] * len(TABLE), loads)
    assert np.allclose(result.eccentricity, [e for e, *_ in TABLE], rtol=3e-6)
    assert np.allclose(result.attitude, [phi for *_, phi in TABLE], atol=3e-4)
    backward = bearing_coefficients(FILM, [-SPEED], [LOAD * direction])
    assert backward.attitude[0] == pytest.approx(53.6802, abs=3e-4)


@pytest.mark.slow
@pytest.mark.parametrize("row", LUND)
def test_lund_and_thomsen(row: tuple[float, ...]) -> None:
    """Two axial grooves of 20°, L/D = 0.5; x is along the load."""
    S, e, phi, kxx, kxy, kyx, kyy, bxx, bxy, byy = row
    L, revolutions = RADIUS, SPEED / (2 * np.pi)  # L = D/2
    load = VISCOSITY * revolutions * L * 2 * RADIUS * (RADIUS / CLEARANCE) ** 2 / S
    grooves = [OilSupply(0.0, angle=sign * np.pi / 2, arc=np.radians(20)) for sign in (1, -1)]
    film = FiniteBearing(
        "film", *ENDS, RADIUS, L, CLEARANCE, VISCOSITY, shape=(144, 16), supply=grooves
    )
    result = bearing_coefficients(film, [SPEED], (load, 0.0))
    assert result.eccentricity[0] == pytest.approx(e, abs=0.01)
    assert result.attitude[0] == pytest.approx(phi, abs=0.5)
    K = result.stiffness[0] * CLEARANCE / load
    B = result.damping[0] * CLEARANCE * SPEED / load
    assert np.allclose(K, [[kxx, kxy], [kyx, kyy]], rtol=0.06, atol=0.03)
    assert np.allclose(B, [[bxx, bxy], [bxy, byy]], rtol=0.06)
    assert B[0, 1] == pytest.approx(B[1, 0], rel=0.01)  # exact for Reynolds' equation


def test_a_journal_settles_at_the_equilibrium() -> None:
    """A stable rotor starts in the centre, and the film dissipates the power of the drive."""
    mass = 0.3 * bearing_coefficients(FILM, [SPEED], (0.0, -LOAD)).critical_mass[0]
    system = rigid_rotor(FILM, mass, SPEED, LOAD, np.zeros(2))
    period = 2 * np.pi / SPEED
    run = mbd.simulate(system, t_end=30 * period, dt=period / 20)
    film = run.element("film", axes="first")
    x, y, _ = film.displacement[-1] / CLEARANCE
    assert np.hypot(x, y) == pytest.approx(0.5, abs=1e-5)
    assert np.degrees(np.arctan2(x, -y)) == pytest.approx(53.6802, abs=1e-3)
    assert film.film_thickness[-1] == pytest.approx(0.5 * CLEARANCE, rel=1e-3)
    assert film.side_flow[-1] == pytest.approx(SPEED * RADIUS * LENGTH * 0.5 * CLEARANCE, rel=1e-4)
    assert film.force[-1] == pytest.approx([0, LOAD, 0], abs=1e-4 * LOAD)
    assert film.power[-1] == pytest.approx(-run.joint("drive").power[-1], rel=1e-3)
    # The kinetic energy is constant, so that the powers of film and drive cancel in every step
    balance = film.power[-200:] + run.joint("drive").power[-200:]
    assert np.abs(balance).max() < 1e-6 * abs(film.power[-1])


def growth(film: ShortBearing, mass: float, speed: float) -> float:
    """Return the growth rate of a small whirl in a simulation, 1/s."""
    table = bearing_coefficients(film, [speed], (0.0, -LOAD))
    place = table.position[0]
    system = rigid_rotor(film, mass, speed, LOAD, place + np.array([1e-3, 0.0]) * CLEARANCE)
    period = 2 * np.pi / table.whirl_frequency[0]
    run = mbd.simulate(system, t_end=8 * period, dt=period / 40)
    orbit = run.element("film", axes="first").displacement[:, :2] - place
    velocity = run.body("rotor").velocity[:, :2] / table.whirl_frequency[0]
    size = np.sqrt((orbit**2 + velocity**2).sum(axis=1))
    late = run.time > 2 * period
    return float(np.polyfit(run.time[late], np.log(size[late]), 1)[0])


def test_whirl_threshold() -> None:
    """Coefficients, eigenvalues of the mechanism, and growth in simulations agree."""
    mass = 0.3 * bearing_coefficients(FILM, [SPEED], (0.0, -LOAD)).critical_mass[0]
    threshold = whirl_threshold(FILM, mass, (0.0, -LOAD), low=100.0, high=2000.0)
    table = bearing_coefficients(FILM, [threshold], (0.0, -LOAD))
    system = rigid_rotor(FILM, mass, threshold, LOAD, table.position[0])
    poles = mbd.linearize(system, mbd.dynamics.consistent_state(system)).poles
    critical = poles[np.abs(poles.imag - table.whirl_frequency[0]).argmin()]
    assert abs(critical.real) < 1e-6 * threshold
    assert critical.imag == pytest.approx(table.whirl_frequency[0], rel=1e-6)
    speeds = threshold * np.array([0.93, 1.07])
    rates = [growth(FILM, mass, speed) for speed in speeds]
    assert rates[0] < 0 < rates[1]
    assert np.interp(0.0, rates, speeds) == pytest.approx(threshold, rel=0.02)


def test_table_for_ross(tmp_path: Path) -> None:
    result = bearing_coefficients(FILM, [200.0, 400.0], (0.0, -LOAD))
    path = result.to_csv(tmp_path / "film.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["speed"]) for row in rows] == [200.0, 400.0]
    assert float(rows[1]["kyx"]) == result.stiffness[1, 1, 0]
    assert float(rows[1]["cxy"]) == result.damping[1, 0, 1]
    table = mbd.mechanism.BearingTable.read(path)
    assert np.allclose(np.asarray(table.stiffness)[:, :2, :2], result.stiffness)
    assert np.allclose(np.asarray(table.damping)[:, :2, :2], result.damping)
    with pytest.raises(InputError, match="increasing speeds"):
        bearing_coefficients(FILM, [400.0, 200.0], (0.0, -LOAD)).to_csv(path)


def test_errors() -> None:
    for speeds, load in (([0.0], (0, 1)), ([], (0, 1)), ([1.0], (0, 0)), ([1.0], (1, 2, 3))):
        with pytest.raises((InputError, ValueError)):
            bearing_coefficients(FILM, speeds, load)
    with pytest.raises(InputError, match="is stable at high"):
        whirl_threshold(FILM, 1e-3, (0.0, -LOAD), low=100.0, high=200.0)
    with pytest.raises(InputError, match="whirls at low"):
        whirl_threshold(FILM, 1e6, (0.0, -LOAD), low=100.0, high=200.0)


@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
def test_a_load_that_presses_the_journal_through_the_film(
    kind: type[ShortBearing | FiniteBearing],
) -> None:
    """A load beyond the capacity of the film raises an error, a film below the roughness warns."""
    film = kind("journal 3", *ENDS, 0.02, 0.01, 4e-5, 0.01)
    with pytest.raises(SolverError, match=r"'journal 3'.*through the film"):
        bearing_coefficients(film, [SPEED], (0.0, -1e6))
    with pytest.warns(ModelRangeWarning, match="'journal 3'") as records:
        # The loads leave a gap smaller than the roughness
        table = bearing_coefficients(film, [SPEED], (0.0, -7e4 if kind is ShortBearing else -3e4))
    warning = records[0].message
    assert isinstance(warning, ModelRangeWarning) and warning.quantity == "film thickness"
    assert warning.value == pytest.approx(4e-5 * (1.0 - table.eccentricity[0]))
    assert warning.value is not None and warning.limit == film.asperities.roughness > warning.value


@pytest.mark.parametrize(("kind", "force"), [(ShortBearing, 3e6), (FiniteBearing, 1e8)])
def test_an_overload_in_a_run(kind: type[ShortBearing | FiniteBearing], force: float) -> None:
    """The error names the film."""
    film = kind("journal 3", *ENDS, 0.02, 0.01, 2e-5, 0.01)
    system = rigid_rotor(film, 1.0, SPEED, force, np.array([4e-6, 0.0]))
    with pytest.raises(StepError, match=r"through oil film 'journal 3'"):
        mbd.simulate(system, t_end=2.5e-3, dt=5e-5)


@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
def test_halved_steps_resolve_an_overload(kind: type[ShortBearing | FiniteBearing]) -> None:
    """The thinnest film of a run is that of short steps, and a warning names the film."""
    least = []
    for dt in (5e-5, 5e-6):
        film = kind("journal 3", *ENDS, 0.02, 0.01, 2e-5, 0.01)
        system = rigid_rotor(film, 1.0, SPEED, 1e5, np.array([4e-6, 0.0]))
        with pytest.warns(ModelRangeWarning, match="'journal 3'"):
            run = mbd.simulate(system, t_end=2.5e-3, dt=dt)
        least.append(run.element("journal 3").film_thickness.min())
    assert least[0] == pytest.approx(least[1], abs=2e-5 / 500)
    assert least[1] < film.asperities.roughness


@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
def test_a_thin_film_in_a_run(
    kind: type[ShortBearing | FiniteBearing], recwarn: pytest.WarningsRecorder
) -> None:
    """One warning with the name of the film, the smallest thickness and the roughness."""
    surfaces = mbd.bearings.Asperities(roughness=2e-6)
    for roughness in (surfaces, mbd.bearings.Asperities(roughness=1e-7)):
        film = kind("journal 3", *ENDS, 0.02, 0.01, 2e-5, 0.01, asperities=roughness)
        force = 1e4 if kind is ShortBearing else 5e3
        system = rigid_rotor(film, 1.0, SPEED, force, np.array([4e-6, 0.0]))
        run = mbd.simulate(system, t_end=2e-2, dt=5e-5)
        warnings = [w.message for w in recwarn if isinstance(w.message, ModelRangeWarning)]
        least = run.element("journal 3").film_thickness.min()
        if roughness is surfaces:
            assert len(warnings) == 1 and "'journal 3'" in str(warnings[0])
            assert warnings[0].value == pytest.approx(least, rel=0.05) and least < 2e-6
        else:
            assert not warnings and least > 1e-7
        recwarn.clear()


def test_motion_of_a_journal_over_a_run() -> None:
    """The loads for a row of `journal_motion` are those of the run."""
    system = rigid_rotor(FILM, 5.0, SPEED, LOAD, np.array([0.2, 0.1]) * CLEARANCE)
    run = mbd.simulate(system, t_end=0.01, dt=5e-4)
    motion, film = journal_motion(run, "film"), run.element("film", axes="first")
    assert np.allclose(motion[:, :2], film.displacement[:, :2], atol=1e-12)
    for row, force, pressure in zip(motion, film.force, film.peak_pressure, strict=True):
        g, _, facts = FILM.film_loads(row, False)
        assert np.allclose(force[:2], g[:2], rtol=1e-9, atol=1e-9 * LOAD)
        assert facts[1] == pytest.approx(pressure, rel=1e-9)
    with pytest.raises(InputError, match="oil film"):
        journal_motion(run, "weight")
