"""Valid calls of the public functions and methods for journal bearings; see `calls`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import bearings
from tests.campaigns.bench import Bench

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]

_SIZES: dict[str, Any] = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}
_LOAD = {"speeds": [300.0, 600.0], "load": (0.0, -50.0)}


def _short(b: Bench) -> bearings.ShortBearing:
    return bearings.ShortBearing("film", **b.ends, **_SIZES, viscosity=0.01)


def _finite(b: Bench) -> bearings.FiniteBearing:
    return bearings.FiniteBearing("film", **b.ends, **_SIZES, oil=0.01, shape=(24, 6))


def _run(b: Bench, bearing: Callable[[Bench], Any] = _short) -> mbd.results.Solution:
    ground = mbd.Ground({"bore": mbd.Frame()})
    rotor = mbd.RigidBody("rotor", 1.0, [0.01] * 3, frames={"journal": mbd.Frame()})
    ends = {"first": ground.frame("bore"), "second": rotor.frame("journal")}
    film = replace(bearing(b), **ends)
    return mbd.simulate(mbd.System([ground, rotor], loads=[film]), t_end=1e-3, dt=5e-4)


def _ring(b: Bench) -> mbd.ReducedBody:
    patterns = np.zeros((3, 3, b.rod.num_modes))
    return b.rod.replace(bores=[mbd.body.Bore("big_end", 0.02, 0.01, patterns)])


def _elastic(b: Bench) -> bearings.ElasticBearing:
    options: dict[str, Any] = {"oil": 0.01, "shape": (24, 6), "bore": _ring(b).bore("big_end")}
    return bearings.ElasticBearing("film", **b.ends, **_SIZES, **options)


BEARINGS: dict[str, Call] = {
    "Bore": lambda b: (
        mbd.body.Bore,
        {"name": "a", "radius": 0.02, "length": 0.01, "displacement": np.zeros((3, 3, 2))},
    ),
    "Bore.patterns": lambda b: (
        _ring(b).bore("big_end").patterns,
        {"theta": [0.0, 1.0], "z": [0.0]},
    ),
    "ElasticBearing": lambda b: (
        bearings.ElasticBearing,
        {"name": "film", **b.ends, **_SIZES, "oil": 0.01, "bore": _ring(b).bore("big_end")},
    ),
    "ElasticBearing.motion_vector": lambda b: (
        _elastic(b).motion_vector,
        {"eccentricity": (1e-5, 0.0), "speed": 300.0},
    ),
    "ElasticBearing.film_fraction": lambda b: (_elastic(b).film_fraction, {"motion": [0.0] * 10}),
    "ElasticBearing.pressure": lambda b: (_elastic(b).pressure, {"motion": [0.0] * 10}),
    "OilFilm": lambda b: (
        bearings.OilFilm,
        {"bearing": bearings.ShortBearing, **_SIZES, "viscosity": 0.01},
    ),
    "ReducedBody.bore": lambda b: (_ring(b).bore, {"name": "big_end"}),
    "Asperities": lambda b: (bearings.Asperities, {"roughness": 1e-6}),
    "Asperities.from_summits": lambda b: (
        bearings.Asperities.from_summits,
        {"roughness": 5e-7, "density": 1e10, "radius": 8e-6, "elasticity": 1.1e11},
    ),
    "Asperities.pressure": lambda b: (bearings.Asperities().pressure, {"gap": 1e-6}),
    "BearingCoefficients.to_csv": lambda b: (
        bearings.bearing_coefficients(_short(b), **_LOAD).to_csv,
        {"path": b.folder / "film.csv"},
    ),
    "FiniteBearing": lambda b: (
        bearings.FiniteBearing,
        {"name": "film", **b.ends, **_SIZES, "oil": 0.01, "shape": (24, 6)},
    ),
    "FiniteBearing.motion_vector": lambda b: (
        _finite(b).motion_vector,
        {"eccentricity": (1e-5, 0.0), "speed": 300.0},
    ),
    "FiniteBearing.film_fraction": lambda b: (_finite(b).film_fraction, {"motion": [0.0] * 10}),
    "FiniteBearing.pressure": lambda b: (_finite(b).pressure, {"motion": [0.0] * 10}),
    "Oil": lambda b: (bearings.Oil, {"viscosity": 0.01}),
    "OilSupply": lambda b: (bearings.OilSupply, {"pressure": 2e5}),
    "ShortBearing": lambda b: (
        bearings.ShortBearing,
        {"name": "film", **b.ends, **_SIZES, "viscosity": 0.01},
    ),
    "ShortBearing.motion_vector": lambda b: (
        _short(b).motion_vector,
        {"eccentricity": (1e-5, 0.0), "speed": 300.0},
    ),
    "bearing_coefficients": lambda b: (
        bearings.bearing_coefficients,
        {"bearing": _short(b), **_LOAD},
    ),
    "film_fields": lambda b: (
        bearings.film_fields,
        {"run": _run(b, _finite), "name": "film"},
    ),
    "journal_motion": lambda b: (bearings.journal_motion, {"run": _run(b), "name": "film"}),
    "plot_film_pressure": lambda b: (
        mbd.plotting.plot_film_pressure,
        {"bearing": _finite(b), "motion": [0.0] * 10},
    ),
    "vogel": lambda b: (
        bearings.vogel,
        {"temperatures": [40, 70, 100], "viscosities": [0.085, 0.026, 0.0115]},
    ),
    "whirl_threshold": lambda b: (
        bearings.whirl_threshold,
        {"bearing": _short(b), "mass": 5.0, "load": (0.0, -50.0), "low": 100.0, "high": 3000.0},
    ),
}
