"""Engines whose oil films conserve the mass of oil."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, MbdWarning
from dolfinx_mbd.mechanism.bearings import FiniteBearing, OilFilm, OilSupply
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine, rigid_rod

SPEED = 314.2  # rad/s, 3000 rpm
CYCLE = 4 * np.pi / SPEED  # s
SIZE = {"radius": 0.021, "length": 0.02, "clearance": 30e-6}
PIN = "crank pin 1 contact"


HOLE = OilSupply(4e5, angle=np.pi, arc=0.3, length=0.006, round=True)
DAMPED = mbd.GeneralizedAlpha.from_spectral_radius(0.3)


def engine(supply: OilSupply, cavitation: str, *, mains: bool = False) -> mbd.System:
    """Return an engine with one cylinder and a supply of oil in each film."""
    options: dict[str, Any] = {"supply": [supply], "cavitation": cavitation, "shape": (36, 6)}
    film = OilFilm(FiniteBearing, **SIZE, oil=0.010, **options)  # 0.010 Pa s
    bearings = {"big_end": film} | ({"main": film} if mains else {})
    design = EngineDesign(cylinders=1)
    rod = rigid_rod(length=0.137, mass=0.153)
    start = np.radians(440.0)  # intake: a small load
    return inline_engine(rod, design, speed=SPEED, angle=start, bearings=bearings)


@pytest.fixture(scope="module")
def run() -> mbd.results.Solution:
    """Return a run of one cycle with films that conserve mass."""
    system = engine(HOLE, "mass_conserving")
    return mbd.simulate(system, t_end=CYCLE, dt=CYCLE / 1440, method=DAMPED)


def check_balance(film: mbd.results.ElementHistory) -> None:
    """Check that oil in is oil out plus the rate of the content, which is not negligible."""
    flow = np.abs(film.side_flow).max()
    missing = film.supply_flow - film.side_flow - film.content_rate
    assert np.abs(missing).max() < 1e-8 * flow
    assert np.abs(film.content_rate).max() > 0.05 * flow


def test_balance_of_oil(run: mbd.results.Solution) -> None:
    check_balance(run.element(PIN))


def test_balance_in_mains() -> None:
    system = engine(HOLE, "mass_conserving", mains=True)
    run = mbd.simulate(system, t_end=0.2 * CYCLE, dt=CYCLE / 1440, method=DAMPED)
    for name in (PIN, "main contact"):
        check_balance(run.element(name))


def test_balance_over_the_cycle(run: mbd.results.Solution) -> None:
    """The integrated flows are the change of the volume of oil, up to errors of the steps."""
    element = next(load for load in run.system.loads if load.name == PIN)
    film, dt = element.for_run(), CYCLE / 1440  # a copy with a content of its own
    motions = mbd.bearings.journal_motion(run, PIN)
    history = run.element(PIN)
    # Areas of the cells of 36 × 6 intervals, which are half as large at the ends
    cells = np.full(film.grid.areas.shape, 2 * np.pi * 0.021 / 36 * 0.02 / 6)
    cells[:, [0, -1]] *= 0.5
    volumes, content, lowest = [], None, 1.0
    for motion in motions:
        if content is not None:
            film.begin_step(content, dt)
        film.film_loads(motion, False)
        content = film.content
        lowest = min(lowest, film.grid.fraction.min())
        volumes.append((film.grid.gap(motion)[0] * film.grid.fraction * cells).sum())
    assert 0.0 <= lowest < 0.3
    flow = (history.supply_flow - history.side_flow)[1:].cumsum() * dt
    gap = 2 * np.pi * 0.021 * 0.02 * 30e-6
    assert np.abs(np.diff(volumes).cumsum() - flow).max() < 0.02 * gap
    assert np.ptp(volumes) > 0.2 * gap


def test_flooded_film() -> None:
    """Under a high pressure nothing ruptures, and the run is that of Reynolds' equation."""
    groove = OilSupply(1e8, arc=7.0, length=0.004)
    reynolds, conserving = (
        mbd.simulate(engine(groove, kind), t_end=0.1 * CYCLE, dt=CYCLE / 1440).element(PIN)
        for kind in ("reynolds", "mass_conserving")
    )
    assert reynolds.film_thickness.min() < 0.97 * SIZE["clearance"]
    for key in ("film_thickness", "peak_pressure", "side_flow", "supply_flow"):
        a, b = getattr(reynolds, key), getattr(conserving, key)
        assert np.allclose(a, b, rtol=1e-6, atol=1e-9 * np.abs(a).max()), key


def test_results_of_files(run: mbd.results.Solution, tmp_path: Path) -> None:
    """Quantities from a file, from a part of a run and from saved outputs are those of the run."""
    run.save(tmp_path / "run.npz")
    loaded = mbd.results.Solution.load(tmp_path / "run.npz", run.system)
    film = run.element(PIN)
    for key in ("side_flow", "filled_part", "content_rate", "force"):
        assert np.array_equal(getattr(loaded.element(PIN), key), getattr(film, key)), key
    assert 0.2 < film.filled_part.min() < 0.9 and film.filled_part.max() <= 1.0
    options = {"t_end": 100 * CYCLE / 1440, "dt": CYCLE / 1440, "method": DAMPED}
    saved = mbd.simulate(run.system, **options, outputs=[PIN], path=tmp_path / "folder")
    assert np.array_equal(saved.element(PIN).side_flow, run.element(PIN).side_flow[:101])
    part = run[100:200].element(PIN).side_flow
    assert np.array_equal(part, run.element(PIN).side_flow[100:200])


def test_film_fields(run: mbd.results.Solution) -> None:
    """The fields have the peak pressure, and the oil of the filled part of the gap."""
    part = run[::97]
    fields, film = mbd.bearings.film_fields(part, PIN), part.element(PIN)
    peaks = fields.pressure.max(axis=(1, 2))
    apart = fields.gap.min(axis=(1, 2)) > 2e-6  # asperities do not touch
    assert apart.sum() > 5
    assert np.allclose(peaks[apart], film.peak_pressure[apart], rtol=1e-12)
    weights = np.ones(7)
    weights[[0, -1]] = 0.5
    oil, gap = ((x * weights).sum(axis=(1, 2)) for x in (fields.fraction * fields.gap, fields.gap))
    assert np.allclose(oil / gap, film.filled_part, rtol=1e-12)
    # `pressure` also has that of asperities, which may touch where the film has ruptured
    full = fields.pressure[apart] > 1e-9 * peaks[apart, None, None]
    assert (fields.fraction[apart][full] == 1.0).all()


def test_folder(run: mbd.results.Solution, tmp_path: Path) -> None:
    """A folder and a dataset have the oil of a run."""
    dt = CYCLE / 1440
    options: Any = {"t_end": 40 * dt, "dt": dt, "method": DAMPED, "stride": 2}
    mbd.simulate(run.system, **options, path=tmp_path / "run")
    loaded = mbd.results.Solution.load(tmp_path / "run", run.system)
    film = mbd.simulate(run.system, **options).element(PIN)
    for key in ("side_flow", "filled_part"):
        assert np.array_equal(getattr(loaded.element(PIN), key), getattr(film, key)), key
    dataset = loaded.to_xarray([PIN])
    assert np.array_equal(dataset[f"{PIN}.filled_part"], film.filled_part)


class Brake:
    """A torque that can interrupt the run once, as Ctrl-C does."""

    def __init__(self) -> None:
        self.torque, self._stop_at = 0.0, np.inf

    def __call__(self, t: float, angle: float, speed: float) -> float:
        if t > self._stop_at:
            raise KeyboardInterrupt
        return self.torque


def test_interrupted_run(run: mbd.results.Solution, tmp_path: Path) -> None:
    """A run that stops continues with the oil of its films."""
    dt, brake, parts = CYCLE / 1440, Brake(), run.system
    loads = [load for load in parts.loads if load.name != PIN]  # a part of its joint
    loads.append(mbd.JointLoad("brake", "main", "rotation", brake))
    system = mbd.System(parts.bodies, parts.joints, drivers=parts.drivers, loads=loads)
    options: Any = {"t_end": 40 * dt, "dt": dt, "method": DAMPED}
    brake._stop_at = 25.5 * dt
    with pytest.warns(MbdWarning, match="interrupted"):
        mbd.simulate(system, **options, path=tmp_path / "run")
    brake._stop_at = np.inf
    resumed = mbd.resume(tmp_path / "run", system)
    whole = mbd.simulate(system, **options)
    assert np.array_equal(resumed.q, whole.q)
    assert np.array_equal(resumed.element(PIN).filled_part, whole.element(PIN).filled_part)


def test_resumed_run(run: mbd.results.Solution) -> None:
    """A run that starts from the last state of another one continues with its oil."""
    system, dt = run.system, CYCLE / 1440
    first = mbd.simulate(system, t_end=200 * dt, dt=dt, method=DAMPED)
    second = mbd.simulate(system, t_end=220 * dt, dt=dt, start=first.final_state, method=DAMPED)
    q = run.q[220]
    assert np.allclose(second.final_state.q, q, rtol=0.0, atol=1e-9)


@pytest.mark.slow
def test_closed_cycle(run: mbd.results.Solution) -> None:
    """The oil of a closed cycle is that of later simulated cycles, and as much enters as leaves."""
    dt = CYCLE / 1440
    cycle = mbd.analyses.periodic(run.system, CYCLE, dt=dt, method=DAMPED, start=run, closed=1e-6)
    assert cycle.closure < 1e-6
    film = cycle.element(PIN)
    assert film.filled_part[-1] == pytest.approx(film.filled_part[0], abs=1e-6)
    options: Any = {"t_end": 3 * CYCLE, "dt": dt, "method": DAMPED}
    later = mbd.simulate(run.system, **options, start=cycle.final_state).element(PIN)
    assert np.allclose(later.filled_part, film.filled_part, atol=1e-4)
    thickness = later.film_thickness - film.film_thickness
    assert np.abs(thickness).max() < 1e-3 * film.film_thickness.max()
    surplus = (film.supply_flow - film.side_flow)[1:].mean()
    assert abs(surplus) < 0.02 * film.side_flow[1:].mean()


def test_analyses_without_memory() -> None:
    system = engine(HOLE, "mass_conserving")
    with pytest.raises(InputError, match="content"):
        mbd.analyses.harmonic_balance(system, CYCLE, num_harmonics=4)
