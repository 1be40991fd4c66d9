"""Engines with oil films: forces near those of ideal joints, all places, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Bore, Interface
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing, OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, engine, inline_engine, rigid_rod
from tests.mechanism.mechanisms.test_engine_cranks import ROD, reduced_crank

FILM = OilFilm(ShortBearing, radius=0.02, length=0.02, clearance=2e-5, viscosity=0.01)
ENDS = {"main": "main", "big_end": "crank pin 1", "small_end": "piston pin 1"}


def run_of(**bearings: OilFilm) -> mbd.results.Solution:
    """Return 0.6 ms of one cylinder with a rigid rod, from the intake stroke: a small load."""
    engine = inline_engine(
        rigid_rod(length=0.137, mass=0.153),
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


def test_a_list_has_a_bearing_for_each_place() -> None:
    """The films of the cylinders and of the main bearings along the shaft differ."""
    sizes = {"radius": 0.02, "length": 0.02, "viscosity": 0.01}
    films = [OilFilm(ShortBearing, **sizes, clearance=c) for c in (2e-5, 3e-5, 4e-5)]
    design = EngineDesign(cylinders=3)
    crank = reduced_crank(design, (-0.12, 0.0, 0.12))
    system = engine(
        rigid_rod(length=0.137, mass=0.153),
        design,
        crank=crank,
        speed=300.0,
        bearings={"main": films, "big_end": films[::-1]},
    )
    clearances = {load.name: load.clearance for load in system.loads if load.has_film}  # type: ignore[attr-defined]
    # "main contact" is that of the last main bearing
    assert [clearances[name] for name in ("main 1", "main 2", "main contact")] == [2e-5, 3e-5, 4e-5]
    pins = [clearances[f"crank pin {k} contact"] for k in (1, 2, 3)]
    assert pins == [4e-5, 3e-5, 2e-5]
    for place, count in (("main", 3), ("big_end", 3), ("small_end", 3)):
        with pytest.raises(InputError, match=rf"{count} bearings '{place}'.* list has 2"):
            engine(ROD, design, crank=crank, speed=300.0, bearings={place: films[:2]})
    with pytest.raises(InputError, match=r"main.*OilFilm"):
        engine(ROD, design, crank=crank, speed=300.0, bearings={"main": [films[0], None, 0.1]})  # type: ignore[list-item]


def test_a_list_may_contain_ideal_joints() -> None:
    """The middle main bearing and the second big end are on films, the others are ideal."""
    design = EngineDesign(cylinders=3)
    crank = reduced_crank(design, (-0.12, 0.0, 0.12))
    rod = rigid_rod(length=0.137, mass=0.153)
    lists = {"main": [None, FILM, None], "big_end": [None, FILM, None]}
    system = engine(rod, design, crank=crank, speed=300.0, bearings=lists)
    films = [load.name for load in system.loads if getattr(load, "has_film", False)]
    assert sorted(films) == ["crank pin 2 contact", "main 2"]
    assert {joint.name for joint in system.joints} >= {"main 1", "main"}
    ideal = {"main": [None] * 3, "big_end": None}
    other = engine(rod, design, crank=crank, speed=300.0, bearings=ideal)  # type: ignore[arg-type]
    assert {joint.name for joint in other.joints} >= {"main 1", "main 2", "main"}


def elastic_rod(softness: float) -> mbd.ReducedBody:
    """Return a rod with a big end whose bore has 15 modes without inertia coupling."""
    count, mass = 15, 0.5
    points = {"big_end": (0.0, 0.0, 0.0), "small_end": (0.137, 0.0, 0.0)}
    first = np.zeros((count + 1, 3))
    first[0, 0] = 0.3 * 0.137 * mass
    second = np.zeros((count + 1, count + 1, 3, 3))
    second[0, 0] = mass * np.diag([0.21 * 0.137**2, 1e-5, 1e-5])
    second[1:, 1:] = np.eye(count)[:, :, None, None] * np.eye(3) * mass / 30
    # Frequencies from 1e5 to 3e5 rad/s; each mode has the mass `mass` / 10
    stiffness = np.diag(mass / 10 * (1e5 * np.linspace(1, 3, count)) ** 2) / softness
    patterns = np.eye(count).reshape(5, 3, count)
    return mbd.ReducedBody.from_arrays(
        name="rod",
        total_mass=mass,
        first_moments=first,
        second_moments=second,
        stiffness=stiffness,
        interfaces=[
            Interface(name, "averaged", np.array(point), np.eye(3), np.zeros((6, count)))
            for name, point in points.items()
        ],
        bores=[Bore("big_end", 0.02, 0.02, patterns)],
    )


def test_stiff_elastic_bores_are_rigid_bores() -> None:
    """The films are in main bearings and big ends; the result with a soft bore differs.

    Longer steps differ more: the stiff modes change the first step after the sudden load.
    """
    gaps, sizes = [], {"radius": 0.02, "length": 0.02, "clearance": 3e-5, "oil": 0.01}
    grid = {"shape": (24, 6)}
    main = OilFilm(FiniteBearing, **sizes, **grid)
    design = EngineDesign(cylinders=1)
    for softness, elastic in ((1e-4, False), (1e-4, True), (1.0, True)):
        rod = elastic_rod(softness)
        kind, options = (
            (ElasticBearing, {"bore": rod.bore("big_end")}) if elastic else (FiniteBearing, {})
        )
        system = engine(
            rod,
            design,
            crank=reduced_crank(design, (-0.04, 0.04)),
            speed=300.0,
            angle=np.radians(440.0),
            damping_ratio=0.05,
            stiffening=False,
            bearings={"main": main, "big_end": OilFilm(kind, **sizes, **grid, **options)},
        )
        run = mbd.simulate(system, t_end=2e-4, dt=5e-6, elastic_start="undeformed")
        films = [run.element(name) for name in ("crank pin 1 contact", "main 1", "main contact")]
        gaps.append(np.array([film.film_thickness for film in films]))
    rigid, stiff, soft = gaps
    assert (rigid > 0).all()
    assert np.abs(stiff - rigid).max() < 1e-4 * rigid.max()
    assert np.abs(soft - rigid).max() > 1e-2 * rigid.max()


def test_errors() -> None:
    """Unknown places, wrong values and arguments, and wrong kinds of joints are errors."""
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
