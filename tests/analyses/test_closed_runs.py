"""Spectra, orders, noise, fatigue and pictures of periodic motions, without a window or a seam."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import orders_of_cycles, periodic, spectrum, waterfall
from dolfinx_mbd.analyses.periodic import PeriodicMotion
from dolfinx_mbd.body import StressModes
from dolfinx_mbd.errors import InputError
from tests.analyses.test_periodic import crank
from tests.models.rods import rod

SPEED, STIFFNESS, DAMPING = 30.0, 700.0, 6.0
FORCES = {1: 4.0, 2: 1.5 - 0.7j, 5: 2.0j}
"""Complex amplitudes of the force by multiples of `SPEED`."""


@cache
def shaken() -> PeriodicMotion:
    """Return the cycle of a plate on a spring that a force shakes along z."""
    ground = mbd.Ground({"o": mbd.Frame()})
    body = rod()
    part = mbd.FlexibleBody("plate", body, position=(0.5, 0, 0), damping_ratio=0.02)
    rail = mbd.prismatic("rail", ground.frame("o"), part.frame("left"))

    def law(t: float, x: float, v: float) -> float:
        terms = [c * np.exp(1j * k * SPEED * t) for k, c in FORCES.items()]
        return float(np.real(sum(terms))) - STIFFNESS * x - DAMPING * v

    spring = mbd.JointLoad("spring", "rail", "displacement", law)
    system = mbd.System([ground, part], [rail], loads=[spring])
    period = 2 * np.pi / SPEED
    return periodic(system, period, dt=period / 400, closed=1e-10, tolerance=1e-11)


@cache
def engine() -> PeriodicMotion:
    """Return the cycle of an engine over two turns of its crank."""
    period = 4 * np.pi / 200.0
    return periodic(crank(), period, dt=period / 300)


def amplitude(k: int) -> complex:
    """Return the amplitude of the displacement at a multiple of `SPEED`."""
    w = k * SPEED
    return complex(FORCES.get(k, 0.0) / (STIFFNESS - 0.6 * w**2 + 1j * w * DAMPING))  # 0.6 kg


def test_lines_of_a_closed_signal_are_exact() -> None:
    """The lines of the spectrum are those of the force, and all others are zero."""
    cycle = shaken()
    x = cycle.joint("rail").displacement[:, 2]
    f, a = spectrum(cycle.time, x, window="closed")
    assert np.allclose(f, np.arange(201) * SPEED / (2 * np.pi), rtol=1e-12, atol=1e-12)
    assert np.allclose(a, np.abs(cycle.harmonics(x)), rtol=0, atol=1e-13 * a.max())
    for k in FORCES:
        assert np.isclose(a[k], abs(amplitude(k)), rtol=3e-3)  # error of the time step
    others = np.delete(a, list(FORCES))
    assert others.max() < 1e-8 * a.max()
    leaking = spectrum(cycle.time, x, window="boxcar").amplitudes
    assert np.delete(leaking, list(FORCES)).max() > 1e-4 * a.max()


@pytest.mark.parametrize("count", [5, 64, 101])
def test_closed_window_for_even_and_odd_numbers(count: int) -> None:
    t = np.linspace(0.0, 2.0, count + 1)
    x = 0.3 + np.outer(np.cos(2 * np.pi * t + 0.4), [1.0, -2.0])
    f, a = spectrum(t, x, window="closed")
    assert np.allclose(f, np.arange(count // 2 + 1) / 2)
    assert np.allclose(a[:3], [[0.3, 0.3], [0.0, 0.0], [1.0, 2.0]], atol=1e-14)
    assert np.abs(a[3:]).max(initial=0.0) < 1e-14


def test_signals_that_are_not_closed() -> None:
    cycle = engine()
    with pytest.raises(InputError, match="full turns") as error:
        spectrum(cycle.time, cycle.joint("drive").rotation, window="closed")
    assert error.value.argument == "signal"
    moment = cycle.joint("drive").moment[:, 2]
    with pytest.raises(InputError, match="whole period with both ends"):
        spectrum(cycle.time[:-1], moment[:-1], window="closed")


def test_orders_of_repeated_periods() -> None:
    """Blocks of whole cycles of a run of several periods have the orders of the closed cycle."""
    cycle = engine()
    run = cycle.repeated(6)
    joint = run.joint("drive")
    spectra = waterfall(
        run.time, joint.moment[:, 2], joint.rotation, axis="order", length=4, window="boxcar"
    )
    lines = spectra.amplitude.copy()
    lines[:, 0] /= np.sqrt(2)  # line 0 of the diagram is √2 times the mean
    exact = np.abs(cycle.harmonics(cycle.joint("drive").moment[:, 2], 60))
    # blocks of 4 revolutions have 4 lines per order, the cycle of 2 revolutions has 2
    assert np.allclose(spectra.lines[:121:2], 0.5 * np.arange(61))
    assert np.allclose(lines[:, :121:2], exact, rtol=0, atol=1e-4 * exact.max())
    assert np.allclose(lines[:, 1:121:2], 0.0, atol=1e-6 * exact.max())
    assert np.allclose(spectra.speed, 200.0, rtol=1e-9)


def moment(run: Any) -> Any:
    """Return the torque of the drive of the engine."""
    return run.joint("drive").moment[:, 2]


def turned(run: Any) -> Any:
    """Return the angle of the crank of the engine."""
    return run.joint("drive").rotation


def test_orders_of_cycles_are_their_harmonics() -> None:
    """At a constant speed the orders are the harmonics; every second one is an integer."""
    cycle = engine()
    period = 4 * np.pi / 300.0
    fast = periodic(crank(speed=300.0), period, dt=period / 240)
    spectra = orders_of_cycles([cycle, fast], moment, turned, up_to=30)
    assert np.allclose(spectra.lines, np.arange(61) / 2)
    assert np.allclose(spectra.speed, [200.0, 300.0], rtol=1e-12)
    for row, run in zip(spectra.amplitude, (cycle, fast), strict=True):
        exact = np.abs(run.harmonics(moment(run), 60))
        exact[0] *= np.sqrt(2)  # as in the diagram
        assert np.allclose(row, exact, rtol=0, atol=1e-9 * exact.max())
    assert np.allclose(spectra.cut(0.5), spectra.amplitude[:, 1], rtol=1e-12)
    assert np.allclose(spectra.cut(2), spectra.amplitude[:, 4], rtol=1e-12)
    assert len(mbd.plotting.plot_waterfall(spectra, orders=[0.5, 2]).axes) == 3


def test_orders_over_an_angle_that_is_not_uniform() -> None:
    """A signal over the angle has the same orders if the speed varies in the cycle."""
    cycle = shaken()
    angle = SPEED * cycle.time + 0.4 * np.sin(SPEED * cycle.time)
    x = 0.3 + 1.2 * np.cos(3 * angle + 0.2) + 0.1 * np.sin(7 * angle)
    spectra = orders_of_cycles([cycle], lambda run: np.column_stack([x, 2 * x]), lambda run: angle)
    amplitude = spectra.amplitude[0] / np.sqrt(5)  # of both columns, x and 2x
    assert np.isclose(amplitude[0] / np.sqrt(2), 0.3, rtol=1e-6)
    assert np.isclose(amplitude[3], 1.2, rtol=1e-6)
    assert np.isclose(amplitude[7], 0.1, rtol=1e-4)
    assert np.delete(amplitude, [0, 3, 7]).max() < 1e-5


def test_orders_of_cycles_that_do_not_close() -> None:
    with pytest.raises(InputError, match="equal at both ends"):
        orders_of_cycles([engine()], turned, turned)
    with pytest.raises(InputError, match="whole revolutions"):
        orders_of_cycles([engine()], moment, lambda run: 1.1 * turned(run))
    with pytest.raises(InputError, match="equal numbers of revolutions"):
        orders_of_cycles([engine(), shaken()], lambda run: 0 * run.time, lambda run: (
            turned(run) if run is engine() else SPEED * run.time
        ))  # fmt: skip
    with pytest.raises(InputError, match="one or more periodic motions"):
        orders_of_cycles([], moment, turned)


def test_noise_of_a_closed_cycle() -> None:
    """A plate that moves like a piston radiates ½ρc S |v|² in each line of its velocity v."""
    cycle = shaken()
    sound = mbd.durability.radiated_power(rod(), cycle.body("plate"))
    lines = sound.spectrum(window="closed").power
    assert np.isclose(sound.area, 0.04, rtol=1e-9)
    for k in FORCES:
        speed = k * SPEED * abs(amplitude(k))
        exact = 0.5 * 1.204 * 343.2 * 0.04 * speed**2  # ρ = 1.204 kg/m³, c = 343.2 m/s, S = 0.04 m²
        assert np.isclose(lines[k], exact, rtol=1e-2)
    assert np.delete(lines, list(FORCES)).max() < 1e-12 * lines.max()
    assert np.isclose(lines.sum(), sound.mean, rtol=1e-9)


def test_fatigue_of_a_closed_cycle() -> None:
    """The life is that of many periods, and each cycle of the signal closes."""
    cycle = engine()
    part: Any = cycle.system.bodies[cycle.system.body_index("rod 1")]
    stress = np.zeros((6, 1, part.num_elastic))
    stress[0, 0] = 3e12, 1e12, 1e12
    body = part.reduced.replace(stress=StressModes(np.zeros((1, 3)), stress))
    lives = [
        mbd.fatigue(body, [(run.body("rod 1"), 1.0)], material="AISI 4340", criterion="von Mises")
        for run in (cycle, cycle.repeated(7))
    ]
    assert np.isfinite(lives[0].life[0])
    assert np.isclose(lives[0].life[0], lives[1].life[0], rtol=1e-6)
    signal = cycle.body("rod 1").eta @ stress[0, 0]
    counted = mbd.durability.count_cycles(signal, "closed")
    whole = np.isclose(counted.ranges, np.ptp(signal), rtol=1e-9)
    assert counted.counts[whole].sum() == 1.0  # one whole cycle, from the largest value to the next
    assert (counted.counts[~whole] == 1.0).all()


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="files of one rank")
def test_files_and_pictures_of_a_closed_cycle(tmp_path: Path) -> None:
    """Pages, glTF files, tables and saved runs accept the cycle."""
    pytest.importorskip("pyvista")
    cycle = engine()
    page = mbd.plotting.player(cycle).save(tmp_path / "cycle.html")
    gltf = mbd.plotting.write_gltf(cycle, tmp_path / "cycle.glb")
    table = cycle.to_csv(tmp_path / "cycle.csv")
    assert all(path.stat().st_size > 1000 for path in (page, gltf, table))
    saved = mbd.results.Solution.load(cycle.save(tmp_path / "cycle"), cycle.system)
    assert np.array_equal(saved.joint("drive").moment, cycle.joint("drive").moment)
