"""Loads from noisy signals of a run, what the signals do not determine, and errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType, create_box, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from tests.models.rods import rod

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="data of one rank")

LOADS = ["big_end fx", "big_end fy", "small_end fx", "small_end fy"]


@lru_cache
def measured() -> tuple[mbd.ReducedBody, mbd.results.Solution, dict[str, np.ndarray]]:
    """Return a rod in a slider-crank, its run, and the signals of its sensors with 1 % of noise."""
    geometry = mbd.ConnectingRod(size=0.012)
    mesh = mbd.build_mesh(geometry, MPI.COMM_SELF)
    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=6)
    places = {
        # positions beside the shank, which `gauges` moves to its surface
        f"{name} {side}": mbd.durability.GaugeSpec(
            (x * geometry.length, y, 0.0), (1, 0, 0), length="4mm"
        )
        for name, x in (("first", 0.35), ("second", 0.6))
        for side, y in (("upper", 0.05), ("lower", -0.05))
    }
    reduction = mbd.gauges(reduction, places, tolerance=0.05)
    body = reduction.body.with_damping(mbd.ModalDamping(0.01))
    system = mbd.mechanisms.slider_crank(
        body, crank_radius=0.04, crank_mass=1.0, piston_mass=0.2, speed=300.0
    )
    run = mbd.simulate(system, t_end=0.03, dt=5e-5)
    signals = {gauge.name: gauge.history(run.body("rod")).strain for gauge in body.gauges}
    for end in ("big_end", "small_end"):
        acceleration = run.sensor("rod", end, "proper acceleration", axes="body")
        signals |= {f"{end} ax": acceleration[:, 0], f"{end} ay": acceleration[:, 1]}
    rng = np.random.default_rng(1)
    size = {name: np.sqrt(np.mean(x**2)) for name, x in signals.items()}
    noisy = {n: x + 0.01 * size[n] * rng.normal(size=x.shape) for n, x in signals.items()}
    return body, run, noisy


def test_loads_of_a_run_with_noise() -> None:
    """With 1 % of noise in each signal, the RMS error of each load is below 3 %."""
    body, run, signals = measured()
    history = run.body("rod")
    exact = np.hstack([history.wrenches[end][:, :2] for end in ("big_end", "small_end")])
    result = mbd.analyses.identify_loads(body, run.time, signals, LOADS, omega=history.omega)
    size = np.sqrt(np.mean(exact**2, axis=0))
    assert np.allclose(np.sqrt(np.mean(result.values**2, axis=0)), size, rtol=0.03)
    assert (np.sqrt(np.mean((result.values - exact) ** 2, axis=0)) < 0.03 * size).all()
    assert result.names == tuple(LOADS) and result.rank == 4
    assert not result.unobserved and not result.combinations
    assert (result.resolution > 0.999).all()
    assert (result.residuals < 1.2).all()
    assert np.array_equal(result.load("small_end fy"), result.values[:, 3])
    deviations = np.sqrt(np.mean((result.values - exact) ** 2, axis=0))
    assert (deviations < 2 * result.deviation).all()


def test_spin_matters() -> None:
    """Without the angular velocity the accelerations do not fit, and the residuals are large."""
    body, run, signals = measured()
    result = mbd.analyses.identify_loads(body, run.time, signals, LOADS)
    assert result.residuals.max() > 5


def test_what_the_signals_do_not_determine() -> None:
    """Two gauges determine two combinations of loads; sensors on the axis see no lateral force."""
    body, run, signals = measured()
    gauges = {name: signals[name] for name in ("first upper", "first lower")}
    with pytest.warns(errors.AccuracyWarning, match="determine 2 of 4") as records:
        result = mbd.analyses.identify_loads(
            body, run.time, gauges, LOADS, omega=run.body("rod").omega
        )
    assert result.rank == 2 and len(result.combinations) == 2
    assert set(result.unobserved) <= set(LOADS) and result.unobserved
    assert records[0].message.value == pytest.approx(result.resolution.min())  # type: ignore[union-attr]
    axial = {name: signals[name] for name in ("big_end ax", "small_end ax")}
    with pytest.warns(errors.AccuracyWarning):
        blind = mbd.analyses.identify_loads(body, run.time, axial, ["big_end fx", "big_end fz"])
    assert blind.unobserved == ("big_end fz",)
    assert blind.combinations == ("+1.00 big_end fz",)


SHAKEN = ["right fz", "left fz", "left my"]


@lru_cache
def shaken_bar() -> tuple[mbd.ReducedBody, mbd.results.Solution, dict[str, np.ndarray], np.ndarray]:
    """Return a clamped bar, its run, its signals without noise and the exact loads."""
    box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.02)], [8, 1, 1], CellType.hexahedron)
    ends = {
        name: mbd.InterfaceSpec(
            locate_entities_boundary(box, 2, lambda x, end=end: np.isclose(x[0], end)),
            axes=np.eye(3),
        )
        for name, end in (("left", 0.0), ("right", 0.2))
    }
    places = {
        f"gauge {k}": mbd.durability.GaugeSpec((x, 0.01, 0.02), (1, 0, 0), 2e-3)
        for k, x in enumerate((0.06, 0.14))
    }
    reduction = mbd.gauges(mbd.reduce(box, mbd.STEEL, interfaces=ends, num_modes=6), places)
    bar = reduction.body.with_damping(mbd.ModalDamping(0.02))
    flexible = mbd.FlexibleBody("bar", bar)
    ground = mbd.Ground({"wall": mbd.Frame(bar.interface("left").point)})
    load = mbd.force(
        "push", flexible.frame("right"), lambda t, m: (0, 0, 200 * np.sin(60 * t) ** 2)
    )
    clamp = mbd.fixed("clamp", ground.frame("wall"), flexible.frame("left"))
    run = mbd.simulate(mbd.System([ground, flexible], [clamp], loads=[load]), t_end=0.2, dt=2e-4)
    history = run.body("bar")
    signals = {gauge.name: gauge.history(history).strain[:, 0] for gauge in bar.gauges}
    for end in ("right", "left"):
        acceleration = run.sensor("bar", end, "proper acceleration", axes="body")
        signals[f"{end} az"] = acceleration[:, 2]
    wrenches = history.wrenches
    exact = np.column_stack(
        [wrenches["right"][:, 2], wrenches["left"][:, 2], wrenches["left"][:, 4]]
    )
    return bar, run, signals, exact


def relative_error(result: mbd.IdentifiedLoads, exact: np.ndarray) -> float:
    """Return the largest error of a load, relative to its root mean square."""
    sizes = np.sqrt(np.mean(exact**2, axis=0))
    return float((np.sqrt(np.mean((result.values - exact) ** 2, axis=0)) / sizes).max())


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.AccuracyWarning")
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("clamp", [False, True], ids=["three sensors", "clamp"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_default_regularization_is_close_to_the_best(
    share: float, clamp: bool, seed: int
) -> None:
    """The error is at most 2.5 times that of the best regularization for the exact loads."""
    bar, run, signals, exact = shaken_bar()
    rng = np.random.default_rng(seed)
    noise = {name: share * np.sqrt(np.mean(x**2)) for name, x in signals.items()}
    noise["left az"] = 0.1  # m/s²; the clamp does not move
    if not clamp:
        del noise["left az"]
    noisy = {n: signals[n] + s * rng.normal(size=run.time.shape) for n, s in noise.items()}
    options: dict[str, Any] = {"noise": noise, "up_to": 300.0}
    result = mbd.analyses.identify_loads(bar, run.time, noisy, SHAKEN, **options)
    assert result.rank == 3
    best = min(
        relative_error(
            mbd.analyses.identify_loads(bar, run.time, noisy, SHAKEN, regularization=x, **options),
            exact,
        )
        for x in np.logspace(-8, -3, 11)
    )
    assert relative_error(result, exact) < 2.5 * best
    # with the default noise
    default = mbd.analyses.identify_loads(bar, run.time, noisy, SHAKEN, up_to=300.0)
    assert relative_error(default, exact) < 2.5 * best


@pytest.mark.parametrize("ramp", [0.0, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.01])
def test_a_slow_load_is_not_suppressed(ramp: float, share: float) -> None:
    """The force on a free body of 0.6 kg is found if the acceleration changes slowly or not."""
    t, rng = np.arange(100) / 1e3, np.random.default_rng(3)
    acceleration = 2.0 + ramp * t
    signals = {
        f"{end} ax": acceleration + share * 2.0 * rng.normal(size=t.shape)
        for end in ("left", "right")
    }
    result = mbd.analyses.identify_loads(rod(), t, signals, ["right fx"])
    assert result.rank == 1 and result.resolution[0] > 0.99
    force = result.load("right fx")
    np.testing.assert_allclose(force.mean(), 0.6 * acceleration.mean(), rtol=0.01)


def test_a_strong_regularization_names_the_cure() -> None:
    bar, run, signals, exact = shaken_bar()
    sensors = {name: signals[name] for name in ("gauge 0", "gauge 1", "right az")}
    options: dict[str, Any] = {"up_to": 300.0, "regularization": 1e-3}
    with pytest.warns(errors.AccuracyWarning, match="The noise permits regularization="):
        smoothed = mbd.analyses.identify_loads(bar, run.time, sensors, SHAKEN, **options)
    assert smoothed.regularization == 1e-3 and relative_error(smoothed, exact) > 0.5


def test_a_signal_that_is_nearly_zero() -> None:
    """An accelerometer at a clamp measures only round-off, which gets no weight."""
    bar, run, signals, exact = shaken_bar()
    assert np.abs(signals["left az"]).max() < 1e-3
    with pytest.warns(errors.AccuracyWarning, match="'left az' is nearly zero") as records:
        result = mbd.analyses.identify_loads(bar, run.time, signals, SHAKEN, up_to=300.0)
    assert len(records) == 1 and relative_error(result, exact) < 0.01
    noise = {"left az": 0.01}
    result = mbd.analyses.identify_loads(bar, run.time, signals, SHAKEN, up_to=300.0, noise=noise)
    assert relative_error(result, exact) < 0.01


def test_errors() -> None:
    body, run, signals = measured()
    time, single = run.time, {"first upper": signals["first upper"]}
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: mbd.analyses.identify_loads(body, time, {}), "signals"),
        (lambda: mbd.analyses.identify_loads(body, time, {"third": time}), "signal"),
        (lambda: mbd.analyses.identify_loads(body, time, single, ["big_end f"]), "load"),
        (lambda: mbd.analyses.identify_loads(body, time, single, []), "loads"),
        (
            lambda: mbd.analyses.identify_loads(body, time, {"first upper": time[1:]}),
            "signals['first upper']",
        ),
        (lambda: mbd.analyses.identify_loads(body, time, {"first upper": 0 * time}), "noise"),
        (
            lambda: mbd.analyses.identify_loads(body, time, single, noise={"second upper": 1.0}),
            "signal",
        ),
        (lambda: mbd.analyses.identify_loads(body, time, single, omega=np.zeros(3)), "omega"),
        (
            lambda: mbd.analyses.identify_loads(body, time, single, regularization=0.0),
            "regularization",
        ),
        (lambda: mbd.analyses.identify_loads(body, time, single, up_to=-1.0), "up_to"),
    ]
    for call, argument in calls:
        with pytest.raises(errors.InputError) as error:
            call()
        assert error.value.argument == argument, str(error.value)
