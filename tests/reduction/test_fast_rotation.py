"""Slender rods in fast slider-cranks, with and without stiffening, against exact beams.

A square steel bar, 300 mm long, is the rod of a crank of 150 mm that runs up from rest to 150 rad/s
in half a turn and then turns one and a half times. The only damping is that of the time
integration, which is the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from dolfinx import mesh as dmesh
from mpi4py import MPI
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody, Stiffening
from dolfinx_mbd.dynamics import GeneralizedAlpha, System
from dolfinx_mbd.mechanism import Driver, FlexibleBody
from dolfinx_mbd.results import Solution
from tests.models.exact_beam import BeamRun, ExactBeam, dense, equilibrium, slider_crank_run

STEEL = mbd.Material(2.0e11, 0.3, 7850.0)
# Lengths in m, mass of the slider (half that of a rod of 8 mm), rad/s, spectral radius.
LENGTH, RADIUS, SLIDER, SPEED, RHO = 0.3, 0.15, 0.075552, 150.0, 0.9
TURN = 2 * np.pi / SPEED  # a turn at full speed, and the run-up
END, DT = 2.5 * TURN, TURN / 800


def run_up(t: float) -> tuple[float, float, float]:
    """Return crank angle, rate and acceleration, all continuous."""
    if t >= TURN:
        return SPEED * (t - TURN / 2), SPEED, 0.0
    w = 2 * np.pi / TURN
    angle = SPEED / TURN * (t**2 / 2 + (np.cos(w * t) - 1) / w**2)
    rate, acceleration = t - np.sin(w * t) / w, 1 - np.cos(w * t)
    return angle, SPEED / TURN * rate, SPEED / TURN * acceleration


@cache
def beam_run(side: float, elements: int = 80, dt: float = DT) -> BeamRun:
    """Simulate the mechanism with the exact beam as the rod."""
    beam = ExactBeam.square(
        LENGTH, side, STEEL.young, STEEL.poisson, STEEL.density, elements=elements
    )
    return slider_crank_run(
        beam,
        crank_radius=RADIUS,
        slider_mass=SLIDER,
        motion=run_up,
        t_end=END,
        dt=dt,
        rho=RHO,
    )


SKEW = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
SKEW = SKEW * np.linalg.det(SKEW)
"""A rotation that mixes all axes."""


@cache
def bar(side: float, cells: tuple[int, int, int] = (36, 2, 2), skew: bool = False) -> ReducedBody:
    """Return the reduced bar; its mesh is along x or in a skew direction."""
    points = np.array([[0.0, -side / 2, -side / 2], [LENGTH, side / 2, side / 2]])
    box = dmesh.create_box(
        MPI.COMM_WORLD, list(points), list(cells), cell_type=dmesh.CellType.hexahedron
    )
    ends = [
        dmesh.locate_entities_boundary(box, 2, lambda x, at=at: np.isclose(x[0], at))
        for at in (0.0, LENGTH)
    ]
    facets = np.concatenate(ends).astype(np.int32)
    numbers = np.repeat(np.array([1, 2], dtype=np.int32), [len(end) for end in ends])
    order = np.argsort(facets)
    tags = dmesh.meshtags(box, 2, facets[order], numbers[order])
    axes = SKEW if skew else np.eye(3)
    box.geometry.x[:] = box.geometry.x @ axes.T
    mesh = mbd.fem.TaggedMesh(box, None, tags, {"big_end": (2, 1), "small_end": (2, 2)})
    return mbd.reduce(
        mesh,
        STEEL,
        interfaces={
            end: mbd.InterfaceSpec(facets=end, axes=tuple(axes[:, 2]))
            for end in ("big_end", "small_end")
        },
        num_modes=6,
        points={"middle": axes @ [LENGTH / 2, 0.0, 0.0]},
        name="rod",
        options=mbd.ReductionOptions(skin=False),
    ).body


def rod_run(rod: ReducedBody, dt: float = DT, t_end: float = END) -> Solution:
    """Simulate the mechanism with the reduced bar as the rod."""
    parts = mbd.mechanisms.slider_crank(
        rod,
        crank_radius=RADIUS,
        crank_mass=0.36,  # its motion is prescribed
        piston_mass=SLIDER,
        speed=SPEED,
        damping_ratio=0.0,
    )
    system = System(parts.bodies, parts.joints, drivers=[Driver("drive", "main", run_up)])
    method = GeneralizedAlpha.from_spectral_radius(RHO)
    return simulate(system, t_end=t_end, dt=dt, method=method, elastic_start="undeformed")


@cache
def stiffened(side: float) -> Solution:
    """Return the run of the rod with geometric stiffening."""
    return rod_run(bar(side))


@cache
def unstiffened(side: float) -> Solution:
    """Return the run of the rod without geometric stiffening."""
    return rod_run(bar(side).replace(stiffening=None))


def deflection(run: Solution) -> np.ndarray:
    """Return the deflection of the middle from the chord between the ends, (nt,), m."""
    rod, eta = run.system.bodies[run.system.body_index("rod")], run.body("rod").eta
    assert isinstance(rod, FlexibleBody)
    body = rod.reduced
    big, small, middle = (
        body.interface("big_end"),
        body.interface("small_end"),
        body.point("middle"),
    )
    at_big, at_small = big.point + eta @ big.motion[:3].T, small.point + eta @ small.motion[:3].T
    chord = at_small - at_big
    across = np.cross(big.axes[:, 2], chord / np.linalg.norm(chord, axis=1, keepdims=True))
    offset = middle.position + eta @ middle.modes - 0.5 * (at_big + at_small)
    return np.einsum("ti,ti->t", offset, across)


def pin_force(run: Solution) -> np.ndarray:
    """Return the magnitude of the in-plane force at the crank pin, (nt,), N."""
    return np.linalg.norm(run.joint("crank pin").force[:, :2], axis=1)


def off(values: np.ndarray, exact: np.ndarray) -> tuple[float, float]:
    """Return the errors of the peak and of the history, both relative to the exact peak."""
    peak = np.abs(exact).max()
    return float(abs(np.abs(values).max() / peak - 1)), float(np.abs(values - exact).max() / peak)


# ---- the exact beam itself


def test_the_beam_follows_from_its_energy() -> None:
    """Forces and tangent are the first and second derivatives of the elastic energy."""
    beam = ExactBeam(0.3, 100.0, 40.0, 2.0, elements=3)
    u = beam.straight() + 0.1 * np.random.default_rng(0).normal(size=12)
    forces, band = beam.forces(u)

    def difference(f: Callable[[np.ndarray], object]) -> np.ndarray:
        step = 1e-6 * np.eye(len(u))
        return np.array([(np.asarray(f(u + e)) - np.asarray(f(u - e))) / 2e-6 for e in step]).T

    assert np.allclose(forces, difference(beam.elastic_energy), atol=1e-7)
    assert np.allclose(dense(band), difference(lambda x: beam.forces(x)[0]), atol=1e-6)


def test_the_beam_bends_like_the_elastica() -> None:
    """Elliptic integrals give the end of a cantilever under a lateral force P = 10 EI/L²."""
    load = 10.0

    # The reference solves for the angle at the end; m and phi are arguments of the integrals.
    def parameter(angle: float) -> tuple[float, float]:
        m = (1 + np.sin(angle)) / 2
        return m, np.arcsin(1 / np.sqrt(2 * m))

    def excess(angle: float) -> float:
        m, phi = parameter(angle)
        return float(ellipk(m) - ellipkinc(phi, m) - np.sqrt(load))

    angle = brentq(excess, 1e-6, np.pi / 2 - 1e-9)
    m, phi = parameter(angle)
    drop = 1 - 2 * (ellipe(m) - ellipeinc(phi, m)) / np.sqrt(load)
    exact = [np.sqrt(2 * np.sin(angle) / load), drop, angle]
    beam = ExactBeam(1.0, 1e6, 1e6, 1.0, elements=80)
    force = np.zeros(3 * 81)
    force[-2] = load
    assert np.allclose(equilibrium(beam, force, [0, 1, 2], steps=80)[-3:], exact, rtol=1e-4)


@pytest.mark.parametrize("tension", [-0.5, 0.0, 2.0])
def test_the_beam_stiffens_as_a_string(tension: float) -> None:
    """Lowest frequency of a beam on two pins under an axial force relative to Euler's load."""
    beam = ExactBeam(1.0, 1e8, 1e7, 1.0, elements=80)
    euler = np.pi**2
    force = np.zeros(3 * 81)
    force[-3] = tension * euler
    u = equilibrium(beam, force, [0, 1, 3 * 81 - 2])
    free = np.setdiff1d(np.arange(3 * 81), [0, 1, 3 * 81 - 2])
    K, M = (dense(band)[np.ix_(free, free)] for band in (beam.forces(u)[1], beam.mass()))
    lowest = 1 / eigh(M, K, eigvals_only=True)[-1]  # the angles have no inertia here
    assert np.isclose(lowest, np.pi**2 * (tension * euler + euler), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="the same on every rank, without a mesh")
def test_the_beam_has_converged() -> None:
    """The beam converges with elements and time steps; its energy is the work of the pin force."""
    exact = beam_run(0.005)
    w = exact.deflection()
    few, many = (beam_run(0.005, n, 2 * DT).deflection() for n in (80, 160))
    assert off(many, few)[1] < 1e-3
    assert off(beam_run(0.005, dt=DT / 2).deflection()[::2], w)[1] < 1e-3
    work = np.concatenate([[0.0], np.cumsum(0.5 * DT * (exact.power[1:] + exact.power[:-1]))])
    assert np.abs(exact.energy - work).max() < 5e-5 * exact.energy.max()


# ---- the reduced rod


@pytest.mark.slow
@pytest.mark.parametrize(("side", "error"), [(0.006, 1.5e-3), (0.005, 4e-3)])
def test_the_rod_bends_like_the_exact_beam(side: float, error: float) -> None:
    """Deflections are about 1 % of the length, forces 0.3 and 0.5 of Euler's load.

    The remaining error grows with the deflection and does not depend on mesh or time step.
    """
    w = beam_run(side).deflection()
    assert np.abs(w).max() > 0.009 * LENGTH
    peak, history = off(deflection(stiffened(side)), w)
    assert peak < error
    assert history < error


@pytest.mark.slow
@pytest.mark.parametrize("side", [0.006, 0.005])
def test_without_stiffening_the_deflection_is_too_large(side: float) -> None:
    w, exact = deflection(unstiffened(side)), beam_run(side).deflection()
    _, history = off(w, exact)
    assert np.abs(w).max() > 1.08 * np.abs(exact).max()
    assert history > 0.2


@pytest.mark.slow
def test_the_force_at_the_pin() -> None:
    exact = np.linalg.norm(beam_run(0.005).pin_force, axis=1)
    assert off(pin_force(stiffened(0.005)), exact)[1] < 5e-4
    assert off(pin_force(unstiffened(0.005)), exact)[1] > 3e-3


@pytest.mark.parametrize(("spin", "wrench"), [(0.0, 1.0), (1.0, 0.0), (1.0, 0.9), (1.0, 1.1)])
def test_all_parts_of_the_stiffening_are_necessary(spin: float, wrench: float) -> None:
    """A wrong factor of the parts for spins or wrenches at least doubles the error."""
    body = bar(0.005)
    assert body.stiffening is not None
    cases = Stiffening(spin * body.stiffening.spin, wrench * body.stiffening.interfaces)
    exact = beam_run(0.005).deflection()
    wrong = rod_run(body.replace(stiffening=cases), dt=2 * DT)
    right = rod_run(body, dt=2 * DT)
    assert off(deflection(wrong), exact[::2])[1] > 2 * off(deflection(right), exact[::2])[1]


def test_axes_do_not_matter() -> None:
    """A body with skew axes needs all products ω_iω_j and wrenches, and has the same result."""
    runs = [
        rod_run(bar(0.005, (12, 1, 1), skew), dt=2 * DT, t_end=0.75 * TURN)
        for skew in (False, True)
    ]
    straight, skew = (deflection(run) for run in runs)
    assert np.abs(straight).max() > 1e-4
    assert np.allclose(skew, straight, atol=1e-6 * np.abs(straight).max())


def test_the_driver_does_the_work() -> None:
    """The energy with stiffening equals the work of the driver up to O(dt²)."""
    errors = []
    for run in (rod_run(bar(0.005), dt=2 * DT), stiffened(0.005)):
        rate = np.array([run_up(t)[1] for t in run.time])
        power = run.joint("drive").moment[:, 2] * rate
        work = np.concatenate(
            [[0.0], np.cumsum(0.5 * np.diff(run.time) * (power[1:] + power[:-1]))]
        )
        energy = run.energies().total
        errors.append(np.abs(energy - energy[0] - work).max() / energy.max())
    assert errors[1] < 3e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)
