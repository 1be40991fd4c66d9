"""Loads from noisy signals of a run, what the signals do not determine, and errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="data of one rank")

LOADS = ["big_end fx", "big_end fy", "small_end fx", "small_end fy"]


@lru_cache
def measured() -> tuple[mbd.ReducedBody, mbd.Solution, dict[str, np.ndarray]]:
    """A rod in a slider-crank, its run, and the signals of its sensors with 1 % of noise."""
    geometry = mbd.ConnectingRod(size=0.012)
    mesh = mbd.build_mesh(geometry, MPI.COMM_SELF)
    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=6)
    places = {
        f"{name} {side}": mbd.GaugeSpec((x * geometry.length, y, 0.0), (1, 0, 0), "4mm")
        for name, x in (("first", 0.35), ("second", 0.6))
        for side, y in (("upper", 0.05), ("lower", -0.05))
    }
    reduction = mbd.gauges(reduction, places, tolerance=0.05)
    rod = reduction.body.with_damping(mbd.ModalDamping(0.01))
    system = mbd.mechanisms.slider_crank(
        rod, crank_radius=0.04, crank_mass=1.0, piston_mass=0.2, speed=300.0
    )
    run = mbd.simulate(system, t_end=0.03, dt=5e-5)
    signals = {gauge.name: gauge.history(run.body("rod")).strain for gauge in rod.gauges}
    for end in ("big_end", "small_end"):
        acceleration = run.sensor("rod", end, "proper acceleration", axes="body")
        signals |= {f"{end} ax": acceleration[:, 0], f"{end} ay": acceleration[:, 1]}
    rng = np.random.default_rng(1)
    size = {name: np.sqrt(np.mean(x**2)) for name, x in signals.items()}
    noisy = {n: x + 0.01 * size[n] * rng.normal(size=x.shape) for n, x in signals.items()}
    return rod, run, noisy


def test_loads_of_a_run_with_noise() -> None:
    """One per cent of noise in each signal: the RMS of each load is within 3 %."""
    rod, run, signals = measured()
    history = run.body("rod")
    exact = np.hstack([history.wrenches[end][:, :2] for end in ("big_end", "small_end")])
    result = mbd.identify_loads(rod, run.time, signals, LOADS, omega=history.omega)
    size = np.sqrt(np.mean(exact**2, axis=0))
    assert np.allclose(np.sqrt(np.mean(result.values**2, axis=0)), size, rtol=0.03)
    assert (np.sqrt(np.mean((result.values - exact) ** 2, axis=0)) < 0.03 * size).all()
    assert result.names == tuple(LOADS) and result.rank == 4
    assert not result.unobserved and not result.combinations
    assert (result.resolution > 0.999).all()
    assert (result.residuals < 1.2).all()
    assert np.array_equal(result.load("small_end fy"), result.values[:, 3])
    errors_of = np.sqrt(np.mean((result.values - exact) ** 2, axis=0))
    assert (errors_of < 2 * result.deviation).all()


def test_spin_matters() -> None:
    """Without the angular velocity, the accelerations do not fit: the residuals show it."""
    rod, run, signals = measured()
    result = mbd.identify_loads(rod, run.time, signals, LOADS)
    assert result.residuals.max() > 5


def test_what_the_signals_do_not_determine() -> None:
    """Two gauges determine two combinations; a pair of sensors on the axis sees no force across."""
    rod, run, signals = measured()
    two = {name: signals[name] for name in ("first upper", "first lower")}
    with pytest.warns(errors.AccuracyWarning, match="determine 2 of 4") as record:
        result = mbd.identify_loads(rod, run.time, two, LOADS, omega=run.body("rod").omega)
    assert result.rank == 2 and len(result.combinations) == 2
    assert set(result.unobserved) <= set(LOADS) and result.unobserved
    assert record[0].message.value == pytest.approx(result.resolution.min())  # type: ignore[union-attr]
    along = {name: signals[name] for name in ("big_end ax", "small_end ax")}
    with pytest.warns(errors.AccuracyWarning):
        blind = mbd.identify_loads(rod, run.time, along, ["big_end fx", "big_end fz"])
    assert blind.unobserved == ("big_end fz",)
    assert blind.combinations == ("+1.00 big_end fz",)


def test_errors() -> None:
    rod, run, signals = measured()
    time, one = run.time, {"first upper": signals["first upper"]}
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: mbd.identify_loads(rod, time, {}), "signals"),
        (lambda: mbd.identify_loads(rod, time, {"third": time}), "signal"),
        (lambda: mbd.identify_loads(rod, time, one, ["big_end f"]), "load"),
        (lambda: mbd.identify_loads(rod, time, one, []), "loads"),
        (
            lambda: mbd.identify_loads(rod, time, {"first upper": time[1:]}),
            "signals['first upper']",
        ),
        (lambda: mbd.identify_loads(rod, time, {"first upper": 0 * time}), "noise"),
        (lambda: mbd.identify_loads(rod, time, one, noise={"second upper": 1.0}), "signal"),
        (lambda: mbd.identify_loads(rod, time, one, omega=np.zeros(3)), "omega"),
        (lambda: mbd.identify_loads(rod, time, one, regularization=0.0), "regularization"),
        (lambda: mbd.identify_loads(rod, time, one, up_to=-1.0), "up_to"),
    ]
    for call, argument in calls:
        with pytest.raises(errors.InputError) as error:
            call()
        assert error.value.argument == argument, str(error.value)
