"""Mechanisms of hinges whose planes and axes do not fit exactly."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import kinematic_analysis, resume, simulate
from dolfinx_mbd.dynamics import AssemblyError, System, redundancies
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.mechanism import (
    Driver,
    Frame,
    Ground,
    RigidBody,
    constant_speed,
    cylindrical,
    distance,
    revolute,
    spherical,
)
from dolfinx_mbd.results import Solution

FRAME, CRANK, COUPLER, ROCKER = 0.12, 0.05, 0.11, 0.09
RUN = {"t_end": 0.1, "dt": 1e-3}


def link(name, length, start, end, offset, tilt):  # type: ignore[no-untyped-def]
    """Return a bar between two points, whose second frame has an offset and a tilt."""
    # half of the angle of the bar to the x axis
    half = 0.5 * np.arctan2(end[1] - start[1], end[0] - start[0])
    axes = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    return RigidBody.box(
        name,
        (length, 0.02, 0.01),
        density=7850.0,
        centre=(length / 2, 0, 0),
        frames={"start": Frame(), "end": Frame((length, 0, offset), axes)},
        position=(*start, 0),
        rotation=(np.cos(half), 0, 0, np.sin(half)),
    )


def four_bar(offset=0.0, tilt=0.0, *, hinges=True, scale=1.0, **settings):  # type: ignore[no-untyped-def]
    """Return a four-bar linkage, whose coupler may have an offset and a tilted axis.

    With `hinges`, all four joints are revolute, so that 3 of the 20 constraints are redundant.
    """
    pin, pivot = np.array([CRANK, 0.0]), np.array([FRAME, 0.0])
    chord = pivot - pin
    length = np.linalg.norm(chord)
    # the joint of coupler and rocker: the foot of its height on the chord, and the height
    foot = (length**2 + COUPLER**2 - ROCKER**2) / (2 * length)
    height = np.sqrt(COUPLER**2 - foot**2)
    top = pin + (foot * chord + height * np.array([-chord[1], chord[0]])) / length
    ground = Ground({"crank": Frame(), "rocker": Frame((FRAME * scale, 0, 0))})
    crank = link("crank", CRANK * scale, (0, 0), pin * scale, 0.0, 0.0)
    coupler = link("coupler", COUPLER * scale, pin * scale, top * scale, offset, tilt)
    rocker = link("rocker", ROCKER * scale, pivot * scale, top * scale, 0.0, 0.0)
    crank_joint, rocker_joint = (revolute, revolute) if hinges else (cylindrical, spherical)
    joints = [
        revolute("1", ground.frame("crank"), crank.frame("start")),
        crank_joint("2", crank.frame("end"), coupler.frame("start")),
        rocker_joint("3", coupler.frame("end"), rocker.frame("end")),
        revolute("4", ground.frame("rocker"), rocker.frame("start")),
    ]
    settings.setdefault("gravity", (0, -9.81, 0))
    return System([ground, crank, coupler, rocker], joints, **settings)


def forces(run: Solution) -> np.ndarray:
    """Return the forces and moments of all hinges over time."""
    return np.hstack([getattr(run.joint(n), k) for n in "1234" for k in ("force", "moment")])


@pytest.mark.parametrize("redundant", ["drop", "keep"])
def test_hinges_that_do_not_fit_exactly(redundant: str) -> None:
    """Motion and forces are those of the exact mechanism, up to the order of the misfit.

    The motion is also that of joints without redundancy.
    """
    exact = simulate(four_bar(), **RUN, redundant=redundant)
    plain = simulate(four_bar(hinges=False), **RUN)
    assert np.allclose(exact.angles[:, 0], plain.angles[:, 0], atol=1e-9)
    size = np.abs(forces(exact)).max()
    for offset, tilt in ((1e-12, 0), (1e-10, 0), (1e-9, 0), (1e-7, 0), (1e-9, 1e-9), (0, 1e-8)):
        run = simulate(four_bar(offset, tilt), **RUN, redundant=redundant)
        misfit = max(offset / FRAME, tilt)
        assert np.allclose(run.angles, exact.angles, atol=1e-9 + 10 * misfit)
        assert np.allclose(forces(run), forces(exact), atol=(1e-8 + 10 * misfit) * size)
        assert run.constraint_violation().max() < 1e-11 + 10 * tilt


@pytest.mark.parametrize("offset", [1e-12, 1e-10, 1e-9, 1e-7])
def test_nearly_redundant_constraints_are_found(offset: float) -> None:
    assert len(redundancies(four_bar(offset))) == 3
    with pytest.raises(AssemblyError, match="3 of the 20"):
        simulate(four_bar(offset), **RUN)


def test_joints_that_do_not_fit_are_named() -> None:
    """A misfit above 1e-5 of the size of the mechanism raises an error."""
    for offset in (1e-5, 1e-3):
        with pytest.raises(AssemblyError) as error:
            simulate(four_bar(offset), **RUN, redundant="drop")
        assert isinstance(error.value, SolverError)
        assert error.value.joint == "4"
        assert error.value.misfit == pytest.approx(offset, rel=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3])
def test_tolerances_are_relative_to_the_size(scale: float) -> None:
    """Mechanisms from 0.1 µm to 100 m have the same relative misfit."""
    for offset, count in ((0.0, 3), (1e-7 * scale, 3)):
        assert len(redundancies(four_bar(offset, scale=scale))) == count
    assert redundancies(four_bar(hinges=False, scale=scale)) == []
    with pytest.raises(AssemblyError):
        redundancies(four_bar(1e-5 * scale, scale=scale))


def test_a_misfit_is_in_the_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    system = four_bar(1e-9)
    path = tmp_path / "run.ckpt"
    run = simulate(system, **RUN, redundant="keep", path=path)
    resumed = resume(path, four_bar(1e-9))
    assert np.array_equal(resumed.q, run.q)
    loaded = Solution.load(run.save(tmp_path / "run.npz"), system)
    assert np.array_equal(loaded.constraint_violation(), run.constraint_violation())
    assert np.array_equal(forces(loaded), forces(run))


def test_kinematics_of_hinges_that_do_not_fit_exactly() -> None:
    drive = [Driver("drive", "1", constant_speed(10.0))]
    times = np.linspace(0, 0.6, 31)
    exact = kinematic_analysis(four_bar(hinges=False, drivers=drive), times)
    run = kinematic_analysis(four_bar(1e-9, drivers=drive), times)
    for key in ("position", "velocity", "acceleration", "omega"):
        value, expected = getattr(run.body("coupler"), key), getattr(exact.body("coupler"), key)
        assert np.allclose(value, expected, atol=1e-7 * np.abs(expected).max())
    moment, exact_moment = run.joint("drive").moment, exact.joint("drive").moment
    assert np.allclose(moment, exact_moment, atol=1e-6 * np.abs(exact_moment).max())


def test_a_position_near_a_singular_one_is_not_redundant() -> None:
    """A nearly dependent constraint that fits is not removed."""
    ground = Ground({"o": Frame(), "x": Frame((1.0, 0, 0))})
    bar = RigidBody.box(
        "bar", (0.5, 0.1, 0.1), mass=1.0, frames={"o": Frame(), "e": Frame((0.5, 1e-5, 0))}
    )
    joints = [
        revolute("pivot", ground.frame("o"), bar.frame("o")),
        distance("rod", ground.frame("x"), bar.frame("e")),
    ]
    assert redundancies(System([ground, bar], joints)) == []
