"""Engines with oil films: forces near those of ideal joints, all places, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine, rigid_rod

FILM = OilFilm(ShortBearing, radius=0.02, length=0.02, clearance=2e-5, viscosity=0.01)
ENDS = {"main": "main", "big_end": "crank pin 1", "small_end": "piston pin 1"}


def run_of(**bearings: OilFilm) -> mbd.results.Solution:
    """Return 0.6 ms of one cylinder with a rigid rod, which starts with a small load."""
    engine = inline_engine(
        rigid_rod(0.137, 0.153),
        EngineDesign(cylinders=1),
        speed=628.3,
        angle=np.radians(440.0),
        bearings=bearings,
    )
    return mbd.simulate(engine, t_end=6e-4, dt=1e-5)


@pytest.mark.parametrize("places", [("big_end",), ("small_end",), ("main",), tuple(ENDS)])
def test_oil_films_carry_the_forces_of_ideal_joints(places: tuple[str, ...]) -> None:
    """After the start, the forces differ by a few per cent, and the journal stays in the film."""
    run, ideal = run_of(**dict.fromkeys(places, FILM)), run_of()
    for place in places:
        name = ENDS[place]
        film = run.element(f"{name} contact")
        assert 0 < film.film_thickness.min() < 2e-5
        expected, force = (np.linalg.norm(r.joint(name).force[-10:], axis=1) for r in (ideal, run))
        np.testing.assert_allclose(force, expected, rtol=0.1)
        np.testing.assert_allclose(np.linalg.norm(film.force[-10:], axis=1), force, rtol=0.01)


def test_errors() -> None:
    """Unknown places, wrong values, wrong arguments and wrong kinds of joints."""
    with pytest.raises(InputError, match="big_end"):
        run_of(crank=FILM)
    with pytest.raises(InputError, match=r"bearings\[.big_end.\].*OilFilm"):
        run_of(big_end=0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ShortBearing"):
        OilFilm(ShortBearing, radius=0.02, diameter=0.04)
    with pytest.raises(InputError, match="bearing"):
        OilFilm(float)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="OilFilm"):
        mbd.mechanism.Joint("slide", "prismatic", ("a", "b"), ("c", "d"), clearance=FILM)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="viscosity"):
        OilFilm(ShortBearing, radius=0.02, length=0.02, clearance=2e-5, viscosity=-1.0)
