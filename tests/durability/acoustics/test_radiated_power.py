"""Radiated power: pistons, direct integrals over the surface, tones, errors, number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType
from mpi4py import MPI
from scipy.special import j1

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from dolfinx_mbd.body import Skin
from dolfinx_mbd.durability.acoustics import RadiatingSurface, radiating_surface
from dolfinx_mbd.durability.acoustics.radiated_power import VELOCITY_REFERENCE
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.rods import rod

DENSITY, SOUND_SPEED = 1.204, 343.2  # air, kg/m³ and m/s
AIR = DENSITY * SOUND_SPEED  # characteristic impedance ρc


def at_rest(times: int, **motion: Any) -> SimpleNamespace:
    """Return a history of a body at rest in which `motion` replaces some quantities."""
    zero = np.zeros((times, 3))
    values = {"velocity": zero, "omega": zero, "rotation": np.tile([1.0, 0, 0, 0], (times, 1))}
    values |= {"time": np.arange(times) / max(times - 1, 1)}
    return SimpleNamespace(**values | motion)


def disc(radius: float, sides: int) -> mbd.ReducedBody:
    """Return a rigid body whose skin is one side of a disc with its normal along z."""
    angle = 2 * np.pi * np.arange(sides) / sides
    edge = radius * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    triangles = [[0, 1 + k, 1 + (k + 1) % sides] for k in range(sides)]
    points = np.vstack([np.zeros((1, 3)), edge])
    return rod().rigid().replace(skin=Skin(points, triangles, np.zeros((0, len(points), 3))))


def test_baffled_piston_in_its_limit() -> None:
    """P = ½ ρc S v̂² (1 − J₁(2ka)/ka) for a piston of radius a in a wall; J₁/ka tends to zero.

    k = ω/c is the wavenumber. The estimate omits the term with J₁.
    """
    radius, speed, periods = 0.15, 0.02, 10
    ratios = []
    for ka in (1.0, 5.0, 40.0):
        omega = ka * SOUND_SPEED / radius
        time = np.linspace(0, 2 * np.pi * periods / omega, 1001)
        velocity = np.zeros((len(time), 3))
        velocity[:, 2] = speed * np.cos(omega * time)
        motion = at_rest(len(time), time=time, velocity=velocity, eta_rate=np.zeros((1001, 0)))
        sound = mbd.durability.radiated_power(disc(radius, 500), motion)
        exact = 0.5 * AIR * np.pi * radius**2 * speed**2 * (1 - j1(2 * ka) / ka)
        ratios.append(sound.mean / exact)
    assert np.allclose(ratios, 1 / (1 - j1(2 * np.array([1.0, 5.0, 40.0])) / [1, 5, 40]), rtol=1e-4)
    assert ratios[2] == pytest.approx(1.0, abs=2e-3)
    assert ratios[0] > 1.5  # a small piston radiates less than the estimate


@pytest.mark.slow
def test_plate_with_uniform_velocity(comm: MPI.Intracomm) -> None:
    """Only faces normal to the velocity radiate; a body that spins about its axis does not."""
    plate = mbd.reduce(box(comm, cells=(4, 2, 1)), mbd.STEEL, interfaces=["left"], num_modes=2)
    rates = np.zeros((3, plate.body.num_modes))
    quarter = np.sqrt(0.5)  # of the quaternion of a quarter turn
    motion = at_rest(
        3,
        eta_rate=rates,
        velocity=np.tile([0.0, 0.3, 0.0], (3, 1)),  # global y is x of the body
        rotation=np.tile([quarter, 0, 0, quarter], (3, 1)),
    )
    whole = 2 * (LENGTH * HEIGHT + LENGTH * WIDTH + HEIGHT * WIDTH)
    for source in (plate, plate.body):
        sound = mbd.durability.radiated_power(source, motion)
        assert sound.area == pytest.approx(whole, rel=1e-9)
        assert np.allclose(sound.power, AIR * 2 * HEIGHT * WIDTH * 0.3**2, rtol=1e-9)
        elastic = mbd.durability.radiated_power(source, motion, rigid_motion=False)
        assert np.allclose(elastic.power, 0)
        end = mbd.durability.radiated_power(source, motion, where=lambda x: x[0] > LENGTH - 1e-6)
        assert end.power[0] == pytest.approx(AIR * HEIGHT * WIDTH * 0.3**2, rel=1e-9)
        expected = 20 * np.log10(0.3 / VELOCITY_REFERENCE)
        assert end.velocity_level == pytest.approx(expected, rel=1e-9)
    round_plate = disc(0.1, 60)
    spin = at_rest(2, eta_rate=np.zeros((2, 0)), omega=np.tile([0.0, 0.0, 50.0], (2, 1)))
    assert np.allclose(mbd.durability.radiated_power(round_plate, spin).power, 0)


@pytest.mark.slow
def test_matrix_is_the_integral_on_the_mesh(comm: MPI.Intracomm) -> None:
    """The matrix on the mesh is that of the integral of the squared normal velocity by UFL.

    The skin has linear triangles: its matrix is equal for rigid motions, and near for the modes.
    """
    mesh = box(comm, cells=(5, 2, 2), cell=CellType.tetrahedron)
    plate = mbd.reduce(mesh, mbd.STEEL, interfaces=["left"], num_modes=4)
    rng = np.random.default_rng(2)
    w = rng.normal(size=6 + plate.body.num_modes)
    surface = radiating_surface(plate)
    v = plate.displacement(w[6:])
    x, n = ufl.SpatialCoordinate(mesh.mesh), ufl.FacetNormal(mesh.mesh)
    velocity = v + ufl.as_vector(w[:3]) + ufl.cross(ufl.as_vector(w[3:6]), x)
    form = fem.form(ufl.dot(velocity, n) ** 2 * ufl.ds)
    exact = comm.allreduce(fem.assemble_scalar(form))
    assert w @ surface.products @ w == pytest.approx(exact, rel=1e-9)
    on_skin = radiating_surface(plate.body).products
    assert np.allclose(on_skin[:6, :6], surface.products[:6, :6], atol=1e-12)
    assert w @ on_skin @ w == pytest.approx(exact, rel=0.1)


def test_result_does_not_depend_on_the_number_of_ranks() -> None:
    sounds = []
    for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
        mesh = box(comm, cells=(4, 2, 1))
        plate = mbd.reduce(mesh, mbd.STEEL, interfaces=["left"], num_modes=3)
        rates = np.sin(np.arange(5.0)[:, None] + np.arange(plate.body.num_modes))
        motion = at_rest(5, eta_rate=rates, omega=np.tile([3.0, 1.0, 2.0], (5, 1)))
        sounds.append(mbd.durability.radiated_power(plate, motion).power)
    assert np.allclose(*sounds, rtol=1e-8)
    assert all(np.array_equal(p, sounds[0]) for p in MPI.COMM_WORLD.allgather(sounds[0]))


def test_spectrum_of_tones() -> None:
    """The lines of two tones have the power ½ ρc S v̂² each, and the mean power is their sum."""
    time = np.arange(2000) / 2000.0
    velocity = np.zeros((2000, 3))
    velocity[:, 2] = 0.02 * np.sin(2 * np.pi * 50 * time) + 0.01 * np.cos(2 * np.pi * 240 * time)
    motion = at_rest(2000, time=time, velocity=velocity, eta_rate=np.zeros((2000, 0)))
    sound = mbd.durability.radiated_power(disc(0.1, 100), motion)
    lines = sound.spectrum()
    expected = 0.5 * sound.area * AIR * np.array([0.02, 0.01]) ** 2
    assert np.allclose(lines.power[[50, 240]], expected, rtol=1e-6)
    assert sound.mean == pytest.approx(expected.sum(), rel=1e-2)
    assert lines.level[50] == pytest.approx(10 * np.log10(expected[0] / 1e-12))
    assert sound.level == pytest.approx(10 * np.log10(sound.mean / 1e-12))


def test_waterfall_of_the_power() -> None:
    """The third order of a run-up: the cut has the power ½ ρc S v̂²."""
    time = np.linspace(0, 2, 8001)
    angle = 2 * np.pi * (5 * time + 10 * time**2)
    velocity = np.zeros((len(time), 3))
    velocity[:, 2] = 0.01 * np.sin(3 * angle)
    motion = at_rest(len(time), time=time, velocity=velocity, eta_rate=np.zeros((len(time), 0)))
    sound = mbd.durability.radiated_power(disc(0.1, 100), motion)
    for options in ({"axis": "order"}, {"axis": "frequency", "length": 0.2}):
        spectra = sound.waterfall(angle, **options)  # type: ignore[arg-type]
        power = 0.5 * spectra.cut(3, width=1.0) ** 2
        power = power[np.isfinite(power)]
        assert len(power) > 10
        assert np.allclose(power, 0.5 * AIR * sound.area * 0.01**2, rtol=0.03)


def test_errors() -> None:
    plate = mbd.reduce(box(MPI.COMM_WORLD, cells=(2, 1, 1)), mbd.STEEL, interfaces=["left"])
    rates = np.zeros((2, plate.body.num_modes))
    motion = at_rest(2, eta_rate=rates)
    bare = plate.body.replace(skin=None)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: mbd.durability.radiated_power(bare, motion), "source"),
        (lambda: mbd.durability.radiated_power(plate, rates), "history"),
        (
            lambda: mbd.durability.radiated_power(plate, at_rest(2, eta_rate=rates[:, 1:])),
            "history.eta_rate",
        ),
        (lambda: mbd.durability.radiated_power(plate, motion, where=lambda x: x[0] > 9), "where"),
        (
            lambda: mbd.durability.radiated_power(plate.body, motion, where=lambda x: x[0] > 9),
            "where",
        ),
        (lambda: mbd.durability.radiated_power(plate.body, motion, where=lambda x: True), "where"),
        (lambda: mbd.durability.radiated_power(plate, motion, density=0.0), "density"),
        (lambda: RadiatingSurface(1.0, np.ones((7, 6))), "products"),
        (lambda: RadiatingSurface(-1.0, np.eye(6)), "area"),
    ]
    for call, argument in calls:
        with pytest.raises(errors.InputError) as error:
            call()
        assert error.value.argument == argument, str(error.value)
