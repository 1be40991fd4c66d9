"""Engines with a reduced crank: the rigid limit, a flexible crank, and cranks that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import (
    EngineCrank,
    EngineDesign,
    engine,
    inline_engine,
    rigid_rod,
)

ROD = rigid_rod(length=0.137, mass=0.2)


def reduced_crank(design: EngineDesign, mains: Any = (0.2,), **changes: Any) -> ReducedBody:
    """Return the rigid crank of a design as a reduced body, with main journals at positions z.

    `changes` contains the points of further interfaces, or of interfaces that are moved.
    """
    radius, mass = design.crank_radius, design.crank_mass
    Jz = 0.5 * mass * radius**2
    moments = np.array([0.75 * Jz, 0.75 * Jz, Jz])
    second = np.diag(0.5 * moments.sum() - moments)  # from the moments of inertia
    points = {f"main_{k + 1}": (0.0, 0.0, z) for k, z in enumerate(mains)}
    for k, (throw, z) in enumerate(
        zip(np.asarray(design.throw_angles), design.positions, strict=True)
    ):
        points[f"pin_{k + 1}"] = (radius * np.cos(throw), radius * np.sin(throw), z)
    points |= {"flange": (0.0, 0.0, 0.25)} | changes
    interfaces = [
        Interface(name, "rigid", np.array(point, dtype=float), np.eye(3), np.zeros((6, 0)))
        for name, point in points.items()
    ]
    return ReducedBody.from_arrays(
        name="crank",
        total_mass=mass,
        first_moments=np.zeros((1, 3)),
        second_moments=second[None, None],
        stiffness=np.zeros((0, 0)),
        interfaces=interfaces,
        reference="rigid",
    )


DESIGNS = {
    "inline": EngineDesign(),
    "vee": EngineDesign(cylinders=2, spacing=0.02, bank_angles=np.radians([-40.0, 40.0])),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_a_reduced_crank_without_elastic_modes_is_the_rigid_crank(name: str) -> None:
    design = DESIGNS[name]
    arguments: dict[str, Any] = {"speed": 200.0, "angle": 0.4, "gravity": (-9.81, 0.0, 0.0)}
    systems = [
        inline_engine(ROD, design, **arguments),
        engine(ROD, design, crank=reduced_crank(design), **arguments),
    ]
    runs = [mbd.simulate(system, t_end=2e-3, dt=5e-5) for system in systems]
    scale = max(np.abs(runs[0].joint(name).force).max() for name in ("main", "piston pin 1"))
    for joint in ("crank pin 1", "piston pin 2", "guide 2"):
        expected = runs[0].joint(joint).force
        np.testing.assert_allclose(runs[1].joint(joint).force, expected, rtol=0, atol=1e-7 * scale)
    torque = [run.joint("drive").moment[:, 2] for run in runs]
    np.testing.assert_allclose(torque[1], torque[0], rtol=0, atol=1e-6 * np.abs(torque[0]).max())


def test_two_cylinders_on_one_pin() -> None:
    """Cylinders of a V engine share the pin of the crank."""
    half = np.pi / 4
    design = EngineDesign(
        cylinders=2,
        cylinder_positions=[-0.012, 0.012],
        bank_angles=[-half, half],
        throw_angles=[0.0, 0.0],
        firing_angles=[4 * np.pi - half, half],
    )
    crank = EngineCrank(reduced_crank(design, pin_1=(0.04, 0, 0)), pins=["pin_1"])
    system = engine(ROD, design, crank=crank, speed=150.0, pressure=False)
    run = mbd.simulate(system, t_end=1e-3, dt=1e-4)
    z = [run.body(f"piston {k}").position[-1, 2] for k in (1, 2)]
    np.testing.assert_allclose(z, [-0.012, 0.012], atol=1e-9)


def test_flywheel_on_the_flange() -> None:
    """The flywheel of a driven crank adds its inertia."""
    rates = []  # of the rigid and the reduced crank, without and with flywheel
    for inertia in (0.0, 0.3):
        design = EngineDesign(cylinders=1, flywheel_inertia=inertia)
        cranks = None, reduced_crank(design)
        for crank in cranks:
            system = engine(ROD, design, crank=crank, torque=20.0, pressure=False)
            run = mbd.simulate(system, t_end=5e-3, dt=1e-4, start={"main": 50.0})
            rates.append(run.joint("main").rotation_rate[-1])
    assert rates[1] == pytest.approx(rates[0], rel=1e-8)
    assert rates[3] == pytest.approx(rates[2], rel=1e-8)
    assert abs(rates[2] - rates[0]) > 1e-3


@pytest.fixture(scope="module")
def flexible() -> tuple[mbd.geometry.Crankshaft, ReducedBody]:
    """Return a crankshaft of one throw and its reduced body."""
    shaft = mbd.geometry.Crankshaft(throw_angles=[0.0], fillet=0.0, size=0.015, order=1)
    mesh = mbd.build_mesh(shaft, MPI.COMM_WORLD)
    names = ["main_1", "main_2", "pin_1", "flange"]
    interfaces = {name: mbd.InterfaceSpec(axes=(0, 0, 1)) for name in names}
    body = mbd.reduce(mesh, mbd.STEEL, interfaces=interfaces, num_modes=4, name="crank").body
    return shaft, body


def test_a_flexible_crank(flexible: tuple[mbd.geometry.Crankshaft, ReducedBody]) -> None:
    """The shaft carries the gas force between its main bearings and bends as a stiff beam."""
    shaft, body = flexible
    design = EngineDesign(cylinders=1)
    system = engine(ROD, design, crank=body, speed=100.0, damping_ratio=0.05)
    assert {joint.name for joint in system.joints} >= {"main", "main 1"}
    run = mbd.simulate(system, t_end=1.5e-3, dt=2e-5)
    rigid = mbd.simulate(inline_engine(ROD, design, speed=100.0), t_end=1.5e-3, dt=2e-5)
    pin, expected = run.joint("crank pin 1").force, rigid.joint("crank pin 1").force
    assert np.abs(pin - expected).max() < 2e-2 * np.abs(expected).max()
    mains = [np.asarray(run.joint(name).force)[:, :2].mean(axis=0) for name in ("main 1", "main")]
    # the crank is nearly symmetric, so that both bearings carry about half the force
    share = np.linalg.norm(mains[0]) / (np.linalg.norm(mains[0]) + np.linalg.norm(mains[1]))
    assert 0.3 < share < 0.6
    assert 0 < np.abs(run.body("crank").eta).max() < 1e-3


@pytest.mark.parametrize(("angle", "speed"), [(0.0, 300.0), (0.3, 300.0), (-1.0, -150.0)])
def test_the_start_excites_no_vibrations(
    flexible: tuple[mbd.geometry.Crankshaft, ReducedBody], angle: float, speed: float
) -> None:
    """Bearing forces of a crank that deforms between bearings change smoothly from the start."""
    system = engine(ROD, EngineDesign(cylinders=1), crank=flexible[1], speed=speed, angle=angle)
    run = mbd.simulate(system, t_end=3e-4, dt=1e-5)
    for name in ("main 1", "main"):
        force = np.asarray(run.joint(name).force)
        curvature = np.diff(force, 2, axis=0)
        assert np.abs(curvature).max() < 2e-3 * np.abs(force).max()


@pytest.mark.parametrize("first", [0.0, 1e-3, 0.1])
def test_a_run_up_from_rest(
    flexible: tuple[mbd.geometry.Crankshaft, ReducedBody], first: float
) -> None:
    """The start of an engine at rest, or nearly so, needs no motion far beyond the start."""
    latest = 0.0

    def motion(t: float) -> tuple[float, float, float]:
        nonlocal latest
        latest = max(latest, t)
        return 0.3 + first * t + 1500.0 * t * t, first + 3000.0 * t, 3000.0

    system = engine(ROD, EngineDesign(cylinders=1), crank=flexible[1], speed=motion)
    run = mbd.simulate(system, t_end=3e-4, dt=1e-5)
    assert latest < 1e-3
    for name in ("main 1", "main"):
        force = np.asarray(run.joint(name).force)
        assert np.abs(np.diff(force, 2, axis=0)).max() < 2e-3 * np.abs(force).max()


def test_a_flexible_crank_with_split_pins() -> None:
    """A V engine of two cylinders that fires evenly needs two pins 90° apart in one throw."""
    banks = np.radians([-45.0, 45.0])
    shaft = mbd.geometry.Crankshaft(throw_angles=[banks], fillet=0.0, size=0.015, order=1)
    sizes = {"spacing": 0.11, "stagger": 0.03, "cylinder_bore": 0.06}
    case = mbd.geometry.Crankcase(bays=1, bank_angles=banks, **sizes)
    np.testing.assert_allclose(case.cylinder_positions, shaft.pin_positions)
    names = ["main_1", "main_2", "pin_1", "pin_2"]
    interfaces = {name: mbd.InterfaceSpec(axes=(0, 0, 1)) for name in names}
    mesh = mbd.build_mesh(shaft, MPI.COMM_WORLD)
    body = mbd.reduce(mesh, mbd.STEEL, interfaces=interfaces, num_modes=2, name="crank").body
    places = {"cylinder_positions": shaft.pin_positions, "bank_angles": banks}
    design = EngineDesign(cylinders=2, firing_angles=[0.0, 2 * np.pi], **places)
    runs = []
    for crank in (body, reduced_crank(design, mains=shaft.main_positions[:1])):
        system = engine(ROD, design, crank=crank, speed=100.0, angle=5.0, damping_ratio=0.05)
        runs.append(mbd.simulate(system, t_end=1.5e-3, dt=2e-5))
    pins = ["crank pin 1", "crank pin 2"]
    flexible, rigid = (np.array([run.joint(name).force for name in pins]) for run in runs)
    assert np.abs(flexible - rigid).max() < 1e-2 * np.abs(rigid).max()
    shared = EngineDesign(cylinders=2, firing_angles=[0.0, 1.5 * np.pi], **places)
    with pytest.raises(InputError, match="the throw of cylinder 2"):
        engine(ROD, shared, crank=body, speed=100.0)


@pytest.mark.filterwarnings("ignore:the 22 modes of body 'crank'")  # axial loads are not tested
def test_a_flexible_crank_on_films(
    flexible: tuple[mbd.geometry.Crankshaft, ReducedBody],
) -> None:
    film = OilFilm(ShortBearing, radius=0.025, length=0.02, clearance=40e-6, viscosity=0.02)
    crank = EngineCrank(flexible[1])
    system = engine(
        ROD,
        EngineDesign(cylinders=1),
        crank=crank,
        speed=300.0,
        angle=7.0,
        stiffening=False,
        bearings={"main": film},
    )
    run = mbd.simulate(system, t_end=4e-4, dt=1e-5)
    for name in ("main 1", "main contact"):
        thickness = run.element(name).film_thickness
        assert 0 < thickness.min() <= 40e-6 * (1 + 1e-9)


def test_cranks_that_do_not_fit() -> None:
    design = EngineDesign(cylinders=2)
    for changes, message in [
        ({"pin_1": (0.0, 0.04, -0.04)}, "the throw of cylinder 1 at 0° needs"),
        ({"pin_2": (0.05, 0.0, 0.04)}, "the throw of cylinder 2"),
        ({"main_1": (0.001, 0.0, 0.2)}, "main journal 'main_1'"),
    ]:
        with pytest.raises(InputError, match=message):
            engine(ROD, design, crank=reduced_crank(design, **changes), speed=1.0)
    three = EngineDesign(cylinders=3)
    with pytest.raises(InputError, match="2 pins for 3 cylinders"):
        engine(ROD, three, crank=reduced_crank(design), speed=1.0)
    with pytest.raises(InputError, match="mains must be"):
        EngineCrank(reduced_crank(design, mains=()))
