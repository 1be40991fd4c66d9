"""Bearings of finite length: limits of short and long bearings, convergence, balance, supply.

`film_loads` returns the loads g of the journal (force, its first moment, drag torque), their
derivatives, and facts: smallest gap, peak pressure, side flow and friction power. The motion y of
the journal contains position and slope, their rates, and the speed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import (
    AccuracyWarning,
    InputError,
    SolverError,
    UnitsWarning,
    recorded_warnings,
)
from dolfinx_mbd.kernels.films.fields import ENTRAINED, FACE, SOURCE
from dolfinx_mbd.mechanism.bearings import (
    Asperities,
    FilmBearing,
    FiniteBearing,
    Oil,
    OilSupply,
    ReynoldsGrid,
    ShortBearing,
    bearing_coefficients,
    vogel,
)
from tests.mechanism.bearings.films import CLEARANCE, ENDS, RADIUS, SPEED, VISCOSITY, journal_pair
from tests.mechanism.bearings.test_short_bearing import check_balance, check_derivatives

R, C, MU = RADIUS, CLEARANCE, VISCOSITY


def bearing(length: float, shape: tuple[int, int], **options: object) -> FiniteBearing:
    """Return a bearing of a length; `shape` has the intervals around the bore and along it."""
    oil = options.pop("oil", MU)
    return FiniteBearing("film", *ENDS, R, length, C, oil, shape=shape, **options)  # type: ignore[arg-type]


def test_short_limit() -> None:
    """The difference from Ocvirk's bearing is proportional to (L/D)²."""
    errors = []
    for ratio in (0.2, 0.1, 0.05):
        length = 2 * R * ratio
        short, film = ShortBearing("film", *ENDS, R, length, C, MU), bearing(length, (192, 16))
        y = film.motion_vector((0.5 * C, 0.0), (0.02 * C * SPEED, 0.05 * C * SPEED), speed=SPEED)
        ocvirk, finite = short.film_loads(y, False), film.film_loads(y, False)
        # Results: loads, derivatives, facts; [0][4] is the torque, and [2][2] the side flow
        errors.append(np.linalg.norm(ocvirk[0][:2] - finite[0][:2]) / np.linalg.norm(ocvirk[0][:2]))
        assert finite[0][4] == pytest.approx(ocvirk[0][4], rel=1e-6)
        assert finite[2][2] == pytest.approx(ocvirk[2][2], rel=0.02)
    assert errors[-1] < 3e-3 and errors[0] / errors[1] > 2.5


def sommerfeld(theta: np.ndarray, e: float) -> np.ndarray:
    """Return Sommerfeld's pressure of a long bearing without rupture, relative to θ = 0."""
    size = 6 * MU * SPEED * (R / C) ** 2 * e / (2 + e * e)
    return np.asarray(size * (2 + e * np.cos(theta)) * np.sin(theta) / (1 + e * np.cos(theta)) ** 2)


def test_long_limit_without_rupture() -> None:
    """Oil enters under high pressure at the widest gap; the middle has Sommerfeld's solution."""
    e, p = 0.5, 2e7
    film = bearing(40 * R, (144, 40), supply=[OilSupply(p, angle=0.0, arc=1e-3)])
    y = film.motion_vector((-e * C, 0.0), speed=SPEED)
    pressure = film.pressure(y)
    assert pressure[:, 1:-1].min() > 0
    expected = p + sommerfeld(film.grid.theta, e)
    assert np.allclose(pressure[:, 20], expected, atol=4e-3 * np.ptp(expected))


def ruptured(e: float) -> tuple[float, float]:
    """Return the end of the film and the peak pressure of a long bearing that ruptures.

    At the end, pressure and slope are zero (Reynolds' boundary condition).
    """

    def h(t: float) -> float:
        return C * (1 + e * np.cos(t))

    def rise(t: float, end: float) -> float:
        return 6 * MU * SPEED * R**2 * (h(t) - h(end)) / h(t) ** 3

    end = brentq(lambda x: quad(rise, 0, x, args=(x,))[0], 1.01 * np.pi, 1.9 * np.pi)
    # The slope is zero at 2π − end too, where the gap is the same: the peak
    return end, quad(rise, 0, 2 * np.pi - end, args=(end,))[0]


def test_long_limit_with_rupture() -> None:
    film = bearing(16 * R, (288, 24), supply=[OilSupply(0.0, angle=0.0, arc=1e-3)])
    pressure = film.pressure(film.motion_vector((-0.5 * C, 0.0), speed=SPEED))[:, 12]
    end, peak = ruptured(0.5)
    assert pressure.max() == pytest.approx(peak, rel=5e-3)
    last = film.grid.theta[np.flatnonzero(pressure)[-1]]
    assert abs(last - end) < 2 * film.grid.theta[1]


def test_grid_convergence() -> None:
    """The error of the load decreases with the square of the intervals."""
    loads = []
    for k in (1, 2, 4):
        film = bearing(1.2 * R, (48 * k, 8 * k))
        loads.append(film.film_loads(film.motion_vector((0.6 * C, 0.0), speed=SPEED), False)[0][:2])
    changes = [np.linalg.norm(b - a) / np.linalg.norm(b) for a, b in pairwise(loads)]
    assert changes[0] < 0.02 and changes[0] / changes[1] > 2.5


def test_entrained_flow_is_of_fourth_order() -> None:
    """Its divergence is exact up to (kΔ)⁴/30 for the harmonic k of a bore."""
    k, errors = 3, []
    for n in (48, 96):
        grid = bearing(R, (n, 4)).grid
        angle = k * grid.theta[:, None] + np.zeros(5)
        grid.update(C * (1.0 + 0.5 * np.cos(angle)), np.zeros((n, 5)), SPEED)
        # The divergence of the entrained flow over a cell, times 12 μ
        cell = 12.0 * MU * (2.0 * np.pi * R / n) * (R / 4) * np.sin(angle)
        source = -0.25 * SPEED * C * k * cell
        errors.append(np.abs(grid._flow[SOURCE] - source).max() / np.abs(source).max())
    delta = 2.0 * np.pi / 96
    assert errors[1] == pytest.approx((k * delta) ** 4 / 30.0, rel=0.05)
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.05)


def test_complementarity() -> None:
    # At each node p ≥ 0, r ≥ 0 and r p = 0. r is the outflow minus the inflow, and q the
    # isoviscous pressure; flow contains the conductances around (0) and along (1), and a source (2)
    film = bearing(R, (64, 12))
    y = film.motion_vector((0.6 * C, 0.1 * C), (0.0, 0.1 * C * SPEED), speed=SPEED)
    p = film.pressure(y)
    grid = film.grid
    h, rate = grid.gap(y)
    q, flow = grid._q, grid._flow
    inflow = sum(
        k * neighbour
        for k, neighbour in (
            (flow[0], np.roll(q, -1, 0)),
            (np.roll(flow[0], 1, 0), np.roll(q, 1, 0)),
        )
    )[:, 1:-1]
    inflow += flow[1, :, 1:-1] * q[:, 2:] + flow[1, :, :-2] * q[:, :-2]
    total = (flow[0] + np.roll(flow[0], 1, 0))[:, 1:-1] + flow[1, :, 1:-1] + flow[1, :, :-2]
    r = total * q[:, 1:-1] - inflow + flow[2, :, 1:-1]
    size = np.abs(flow[2]).max()
    assert p.min() == 0.0 and r.min() > -1e-9 * size
    assert np.abs(r * q[:, 1:-1]).max() < 1e-9 * size * q.max()
    assert (q[:, 1:-1] == 0).any() and (q > 0).any() and h.shape == rate.shape


def test_mass_is_conserved_in_a_full_film() -> None:
    """Oil from the groove, and displaced by the journal, leaves at the ends."""
    film = bearing(1.5 * R, (96, 24), supply=[OilSupply(5e7, 1.0, 0.3, length=1.4 * R)])
    y = film.motion_vector((0.1 * C, 0.02 * C), (1e-3, 0.0), slope=(1e-4, 0.0), speed=SPEED)
    assert film.pressure(y)[:, 1:-1].min() > 0
    grid = film.grid
    rate = grid.gap(y)[1]
    cells = np.full(grid.areas.shape, 2 * np.pi * R / 96 * 1.5 * R / 24)
    cells[:, [0, -1]] *= 0.5
    out = film.film_loads(y, False)[2][2]
    assert out == pytest.approx(grid.supply_flow() - (rate * cells).sum(), rel=1e-9)


# Relative eccentricity and tilt
CASES = [(0.5, 0.0), (0.6, 0.2), (0.7, 0.2), (0.7, 0.5), (0.988, 0.02), (1.01, 0.05)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("alpha", [0.0, 2e-8])
@pytest.mark.parametrize("modulus", [3e8, 3.0])
def test_derivatives(case: tuple[float, float], alpha: float, modulus: float) -> None:
    """In the case (0.7, 0.5) the ends of this long bearing penetrate the bore by up to 34 µm.

    The asperities then push with up to 4e12 N. A step of the velocities changes the force of the
    film by little more than the round-off of this sum, so that only soft asperities show the
    derivatives of the film.
    """
    supply = [OilSupply(2e5, 1.0, 0.4, length=0.5 * R)]
    surfaces = Asperities(modulus=modulus)
    film = bearing(R, (32, 6), oil=Oil(MU, alpha), supply=supply, asperities=surfaces)
    check_derivatives(film, *case)
    check_balance(film, journal_pair(np.random.default_rng(3), case[0], tilt=case[1]))


@pytest.mark.parametrize(("size", "omega"), [(0.05, SPEED), (0.05, -SPEED), (0.4, SPEED)])
def test_derivatives_for_any_change_of_the_gap(size: float, omega: float) -> None:
    """Gradients of any functional of the pressure, as elastic bores need them.

    The larger displacements close the gap at some nodes, and the film between two nodes is so much
    thinner than around them that the thickness at their face is half the mean of both.
    """
    rng = np.random.default_rng(5)
    film = bearing(R, (24, 6), oil=Oil(MU, 1e-8))
    grid, y = film.grid, film.motion_vector((0.5 * C, 0.2 * C), speed=omega)
    weights = rng.normal(size=(3, 24, 7))
    w, w_rate = size * C * rng.normal(size=(2, 24, 7))
    w_rate *= SPEED
    if size > 0.1:
        w[10:12, 3] += 1e-6 - grid.gap(y, w)[0][10:12, 3]
    dw, dw_rate = 1e-6 * C * rng.normal(size=(2, 24, 7))
    dw_rate *= SPEED
    values = []
    for step in (1.0, -1.0):
        p = grid.solve(
            *grid.gap(y, w + step * dw, w_rate + step * dw_rate), omega * (1 + 1e-6 * step)
        )
        values.append((np.einsum("kij,ij->k", weights, p), grid.loads()[0]))
    grid.solve(*grid.gap(y, w, w_rate), omega)
    H, face = grid._flow[ENTRAINED], grid._flow[FACE]
    is_half = face == 0.25 * (H + np.roll(H, -1, 0))
    assert (is_half.any() and grid.last_gap.min() < 0.0) == (size > 0.1)
    for k, (gap, rate, speed) in enumerate((grid.gradients(weights), grid.load_gradients())):
        exact = np.einsum("kij,ij->k", gap, dw) + np.einsum("kij,ij->k", rate, dw_rate)
        exact += speed * 1e-6 * omega
        numerical = 0.5 * (values[0][k] - values[1][k])
        for derivative, change in zip(np.atleast_1d(exact), numerical, strict=True):
            assert derivative == pytest.approx(change, rel=1e-6, abs=1e-8 * np.abs(exact).max())


def test_a_displacement_of_the_bore_is_one_of_the_journal() -> None:
    grid = bearing(R, (48, 8)).grid
    e = np.array([0.4, -0.3]) * C
    normal = np.array([np.cos(grid.theta), np.sin(grid.theta)])
    film = bearing(R, (48, 8))
    y = film.motion_vector(e, speed=SPEED)
    w = np.repeat(-(e @ normal)[:, None], 9, axis=1)
    p = grid.solve(*grid.gap(film.motion_vector((0, 0), speed=SPEED), w), SPEED)
    assert np.allclose(p, film.pressure(y), rtol=1e-9)


def test_the_start_of_the_active_set_has_no_effect() -> None:
    film = bearing(R, (48, 8))
    angles = np.linspace(0, 6, 7)
    orbit = [
        film.motion_vector((0.7 * C * np.cos(t), 0.7 * C * np.sin(t)), speed=SPEED) for t in angles
    ]
    first = [film.film_loads(y, False)[0] for y in orbit]
    for y, g in zip(orbit[::-1], first[::-1], strict=True):
        assert np.allclose(bearing(R, (48, 8)).film_loads(y, False)[0], g, rtol=1e-10, atol=1e-12)


def test_viscosity_with_pressure() -> None:
    """Barus' law in the short bearing: −ln(1 − αq)/α of the isoviscous pressure q."""
    y = (0.8 * C, 0.0)
    plain, barus = bearing(0.1 * R, (96, 12)), bearing(0.1 * R, (96, 12), oil=Oil(MU, 2e-6))
    motion = plain.motion_vector(y, speed=SPEED)
    q, p = plain.pressure(motion), barus.pressure(motion)
    assert np.allclose(p, -np.log1p(-2e-6 * q) / 2e-6, rtol=1e-9)
    assert p.max() > 1.05 * q.max()


def test_supply() -> None:
    grooves = [
        OilSupply(3e5, angle=np.pi / 2, arc=np.radians(21)),
        OilSupply(2e5, angle=-1.0, arc=0.01, position=0.1 * R, length=1e-6, round=True),
    ]
    film = bearing(R, (72, 10), supply=grooves)
    p = film.pressure(film.motion_vector((0.2 * C, 0.0), speed=SPEED))
    # Nodes 16 to 20 are at 80° to 100°, within the first groove
    assert np.allclose(p[16:21, 1:-1], 3e5) and np.count_nonzero(np.isclose(p, 2e5)) == 1
    around = bearing(R, (72, 10), supply=[OilSupply(1e5, arc=2 * np.pi, length=0.1 * R)])
    assert np.allclose(around.pressure(film.motion_vector((0, 0), speed=SPEED))[:, 5], 1e5)


@pytest.mark.parametrize("arc", [0.3, 0.001])
@pytest.mark.parametrize("angle", [0.5, 2.0])
@pytest.mark.parametrize("pressure", [0.0, 1e5])
def test_error_of_a_groove(angle: float, arc: float, pressure: float) -> None:
    """The error of the load falls with the square of the interval, wherever the edges are."""
    groove = [OilSupply(pressure, angle=angle, arc=arc)]

    def load(n: int) -> np.ndarray:
        film = bearing(R, (n, 8), supply=groove)
        motion = film.motion_vector((0.3 * C, 0.2 * C), (0.01, 0.02), speed=SPEED)
        return film.film_loads(motion, False)[0][:2]

    exact = load(1000)
    factors = {
        n: n * n * np.linalg.norm(load(n) - exact) / np.linalg.norm(exact)
        for n in (40, 50, 64, 128, 160, 200)
    }
    coarse, fine = max(factors[n] for n in (40, 50, 64)), max(factors[n] for n in (128, 160, 200))
    assert coarse < 60.0 and fine < 60.0  # 1.5 % at 64 intervals


@pytest.mark.parametrize("length", [0.13, 0.4])
def test_error_of_a_groove_around_the_bore(length: float) -> None:
    supply = [OilSupply(2e5, arc=7.0, position=0.07 * R, length=length * R)]

    def load(m: int) -> np.ndarray:
        film = bearing(R, (40, m), supply=supply)
        motion = film.motion_vector((0.3 * C, 0.2 * C), (0.01, 0.02), speed=SPEED)
        return film.film_loads(motion, False)[0][:2]

    exact = load(200)
    for m in (10, 13, 16, 26, 40):
        error = np.linalg.norm(load(m) - exact) / np.linalg.norm(exact)
        assert error < 10.0 / m**2


def test_coefficients_of_grooves_do_not_depend_on_the_nodes() -> None:
    """Grooves of 20° whose edges are at nodes (72 intervals) and between them (64 and 80)."""
    grooves = [OilSupply(0.0, angle=a, arc=np.radians(20)) for a in (np.pi / 2, -np.pi / 2)]
    tables = [
        bearing_coefficients(bearing(2 * R, (n, 12), supply=grooves), [SPEED], (5000.0, 0.0))
        for n in (64, 72, 80)
    ]
    for table in tables[::2]:
        scale = np.abs(tables[1].stiffness).max()
        assert np.abs(table.stiffness - tables[1].stiffness).max() < 0.02 * scale
        assert table.attitude[0] == pytest.approx(tables[1].attitude[0], abs=0.3)


def test_a_hole_between_the_lines_of_the_grid_gives_a_warning() -> None:
    hole = OilSupply(3e5, angle=0.01, arc=0.002, position=0.03 * R, length=0.001 * R, round=True)
    with pytest.warns(AccuracyWarning, match="smaller than the intervals"):
        film = bearing(R, (64, 12), supply=[hole])
    p = film.pressure(film.motion_vector((0.2 * C, 0.0), speed=SPEED))
    assert np.count_nonzero(np.isclose(p, 3e5)) == 1


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.AccuracyWarning")
@pytest.mark.parametrize(
    "pair",
    [
        ((0.0, 0.5, 0.2 * R), (0.1, 0.5, 0.2 * R)),  # both cover the same nodes
        ((0.0, 2 * np.pi, 0.2 * R), (3.0, 0.5, None)),  # around and along the bore
        ((np.pi - 0.1, 0.3, 0.2 * R), (-np.pi + 0.1, 0.3, 0.2 * R)),  # across the angle π
        ((0.02, 0.02, None), (0.035, 0.02, None)),  # between two nodes
        ((0.03, 1e-4, 1e-4 * R), (0.04, 1e-4, 1e-4 * R)),  # tiny holes with the same nearest node
    ],
)
def test_overlapping_supplies_have_one_pressure(pair: tuple[tuple[float, ...], ...]) -> None:
    """Different pressures in the same place contradict each other, in either order."""

    def supplies(p: float, q: float) -> list[OilSupply]:
        return [
            OilSupply(pressure, angle, arc, length=length)
            for pressure, (angle, arc, length) in zip((p, q), pair, strict=True)
        ]

    for areas in (supplies(1e4, 2e5), supplies(2e5, 1e4)):
        for order in (areas, areas[::-1]):
            with pytest.raises(InputError, match="overlap and have different pressures") as error:
                bearing(R, (64, 12), supply=order)
            assert error.value.argument == "supply"
    bearing(R, (64, 12), supply=supplies(1e5, 1e5))
    apart = [OilSupply(1e4, 0.0, 0.3), OilSupply(2e5, 1.5, 0.3)]
    bearing(R, (64, 12), supply=apart)


def test_vogel() -> None:
    law = vogel([40, 70, 100], [0.085, 0.026, 0.0115])
    assert np.allclose([law(40), law(70), law(100)], [0.085, 0.026, 0.0115], rtol=1e-12)
    for values in ([0.01, 0.02, 0.03], [0.03, 0.02, 0.001], [0.1, 0.01, -0.1]):
        with pytest.raises(InputError, match="viscosities"):
            vogel([40, 70, 100], values)
    with pytest.raises(InputError, match="pole"):
        law(-300.0)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"oil": 0.0}, "viscosity"),
        ({"oil": -1.0}, "viscosity"),
        ({"shape": (8, 12)}, "shape"),
        ({"shape": (64,)}, "shape"),
        ({"shape": 3}, "shape"),
        ({"supply": [3]}, "supply"),
        ({"supply": [OilSupply(1e5, position=1.0)]}, "supply"),
        ({"supply": [OilSupply(1e5, length=1.001 * R, round=True)]}, "wider than the bearing"),
    ],
)
def test_errors(options: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        bearing(R, **({"shape": (24, 6)} | options))  # type: ignore[arg-type]
    for wrong in (
        {"pressure": -1.0},
        {"pressure": 1.0, "arc": 0.0},
        {"pressure": 1.0, "length": 0},
        {"pressure": 1.0, "arc": 6.3, "round": True},
    ):
        with pytest.raises(InputError):
            OilSupply(**wrong)


def test_largest_hole() -> None:
    """A hole as wide as the bearing equals one without a length; so does a wider groove."""
    hole = {"pressure": 2e5, "angle": 1.0, "arc": 0.5}
    pairs = [
        (OilSupply(**hole, round=True, length=R), OilSupply(**hole, round=True)),
        (OilSupply(**hole, length=3 * R), OilSupply(**hole)),
    ]
    for pair in pairs:
        films = [bearing(R, (48, 8), supply=[area]) for area in pair]
        y = films[0].motion_vector((0.4 * C, 0.2 * C), speed=SPEED)
        first, second = (film.pressure(y) for film in films)
        assert first.max() > 2e5 and np.array_equal(first, second)


UNITS: dict[str, dict[str, float]] = {
    "radius": {"radius": 1e3 * R, "length": 1e3 * R, "clearance": 1e3 * C},  # all in mm
    "length": {"length": 1e3 * R},
    "clearance": {"clearance": 0.06 * R},
    "viscosity": {"viscosity": 12.0},  # in cP
}


@pytest.mark.parametrize("quantity", UNITS)
@pytest.mark.parametrize("kind", [ShortBearing, FiniteBearing])
def test_units(quantity: str, kind: type[FilmBearing]) -> None:
    """Lengths in mm and viscosities in cP give a warning, and SI units none."""
    sizes = {"radius": R, "length": R, "clearance": C, "viscosity": MU}
    with recorded_warnings() as records:
        kind("film", *ENDS, *sizes.values())
    assert not records
    with pytest.warns(UnitsWarning, match="bearing 'film'") as warned:
        kind("film", *ENDS, *(sizes | UNITS[quantity]).values())
    assert [record.message.quantity for record in warned] == [quantity]  # type: ignore[union-attr]


def test_a_gap_that_is_not_finite() -> None:
    grid = bearing(R, (24, 6)).grid
    assert isinstance(grid, ReynoldsGrid)
    with pytest.raises(SolverError, match="did not converge"):
        grid.solve(np.full((24, 7), np.nan), np.zeros((24, 7)), SPEED)


def test_runs_repeat_bitwise() -> None:
    """The area of rupture of an earlier solution does not change a repeated or restored run."""
    ground = mbd.Ground({"bore": mbd.Frame()})
    journal = mbd.RigidBody(
        "journal", 2.0, [0.01] * 3, frames={"centre": mbd.Frame()}, omega=(0, 0, 300.0)
    )
    ends = ground.frame("bore"), journal.frame("centre")
    film = FiniteBearing("film", *ends, 0.02, 0.02, 2e-5, 0.01, shape=(24, 6))
    system = mbd.System([ground, journal], loads=[film], gravity=(0, -9.81, 0))
    final = mbd.simulate(system, t_end=0.003, dt=1e-4).q[-1]
    simulator = mbd.Simulator(system, dt=1e-4, t_end=0.003)
    for _ in range(10):
        simulator.step()
    snapshot = simulator.save()
    for _ in range(2):
        simulator.restore(snapshot)
        for _ in range(20):
            state = simulator.step()
        assert np.array_equal(state.q, final)


@pytest.mark.parametrize("turn", [0.0, 0.3, 0.5])
def test_smallest_gap_between_nodes(turn: float) -> None:
    """The smallest gap of a round bore is c − e, wherever the nodes are."""
    film = bearing(R, (64, 12))
    angle = 2 * np.pi * turn / 64
    e = 0.95 * C * np.array([np.cos(angle), np.sin(angle)])
    facts = film.film_loads(film.motion_vector(e, speed=SPEED), False)[2]
    assert facts[0] == pytest.approx(0.05 * C, rel=2e-4)
