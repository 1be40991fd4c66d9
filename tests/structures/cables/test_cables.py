"""Cables in mechanisms: tangents by differences, conservation, spin-up (V5), other rod models.

V5 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dolfinx import mesh as dmesh
from mpi4py import MPI
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import brentq

from dolfinx_mbd import ReductionOptions
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.analyses.equilibrium import equilibrium
from dolfinx_mbd.analyses.linearization import linearize
from dolfinx_mbd.dynamics import GeneralizedAlpha, System
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.cables import Cable
from dolfinx_mbd.mechanism import (
    BodyState,
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    constant_speed,
    spherical,
)
from dolfinx_mbd.mechanism.joints import Joint
from dolfinx_mbd.mechanism.loads import force
from dolfinx_mbd.results import Solution
from dolfinx_mbd.structures.beams.beam_reduction import reduce_beam
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.cables.cable_body import CableBody
from dolfinx_mbd.structures.cables.line_body import hermite
from tests.models.exact_beam import ExactBeam, slider_crank_run

Array = NDArray[np.float64]

ALONG_X = np.column_stack([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
"""A frame whose z is the global x."""


@cache
def soft() -> CableBody:
    """Return three damped elements of different lengths in a skew direction, with a third frame.

    Its unstretched length is 2.3 m, and the distance of its ends 2.45 m.
    """
    return CableBody(
        "rod",
        Cable(axial_stiffness=1e3, bending_stiffness=2.0, linear_density=0.7, damping=0.01),
        (1.0, 2.0, 3.0),
        (2.0, 4.0, 4.0),
        elements=(0.0, 0.5, 1.2, 2.3),
        frames={"inside": 1.0},
    )


def difference(f: Callable[[Array], Any], x: Array, step: float = 1e-6) -> Array:
    """Return the derivative of f by central differences; its last axis belongs to x."""
    units = step * np.eye(len(x))
    columns = [(np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * step) for e in units]
    return np.stack(columns, axis=-1)


def some_state(seed: int, turned: bool = False) -> tuple[Array, Array, Array]:
    """Return coordinates, velocities and accelerations of a strongly deformed cable.

    If `turned`, it is rotated by 178°, so that frames rotate by more than 180°.
    """
    body, rng = soft(), np.random.default_rng(seed)
    q = body.initial_coordinates() + 0.15 * rng.normal(size=body.num_coordinates)
    if turned:
        nodal = body.nodal(q)
        axis = np.array([1.0, 1.0, -3.0]) / np.sqrt(11.0)  # across the cable
        angle = np.deg2rad(178.0)
        cross = np.cross(axis, nodal)
        along = (nodal @ axis)[..., None] * axis
        nodal = np.cos(angle) * nodal + np.sin(angle) * cross + (1 - np.cos(angle)) * along
        q = body.coordinates(nodal)
    return q, rng.normal(size=len(q)), rng.normal(size=len(q))


# ---- the protocol


@pytest.mark.parametrize("turned", [False, True])
def test_tangents_are_derivatives_of_the_residual(turned: bool) -> None:
    body = soft()
    q, v, a = some_state(0, turned)
    gravity, wrenches = np.array([1.0, 2.0, -3.0]), np.random.default_rng(9).normal(size=(3, 6))

    def residual(q: Array, v: Array, a: Array) -> Array:
        out, scale = np.zeros(len(q)), np.zeros(len(q))
        body.residual(BodyState(0.0, q, v, a, gravity, wrenches), out, scale)
        assert (np.abs(out) <= scale).all()  # a sum of absolute terms
        return out

    K, C, M = body.tangent(BodyState(0.0, q, v, a, gravity, wrenches))
    for matrix, expected in (
        (K, difference(lambda x: residual(x, v, a), q)),
        (C, difference(lambda x: residual(q, x, a), v)),
        (M, difference(lambda x: residual(q, v, x), a)),
    ):
        assert np.allclose(matrix, expected, atol=1e-6 * np.abs(matrix).max())
    # energies: kinetic, then elastic and gravitational
    potential = difference(lambda x: body.energies(x, v, gravity)[1:].sum(), q)
    undamped = residual(q, 0 * v, 0 * a) + np.einsum("fi,fij->j", wrenches, body.frame_jacobians(q))
    assert np.allclose(undamped, potential, atol=1e-6 * np.abs(potential).max())
    assert body.energies(q, v, gravity)[0] == pytest.approx(0.5 * v @ M @ v)


@pytest.mark.parametrize("turned", [False, True])
def test_frames_follow_the_tangent(turned: bool) -> None:
    body = soft()
    q, v, _ = some_state(1, turned)

    def poses(q: Array) -> tuple[Array, Array]:
        position, rotation = np.zeros((3, 3)), np.zeros((3, 3, 3))
        body.poses(q, position, rotation)
        return position, rotation

    position, rotation = poses(q)
    assert np.allclose(rotation.transpose(0, 2, 1) @ rotation, np.eye(3), atol=1e-14)
    assert np.allclose(np.linalg.det(rotation), 1.0)
    nodal = body.nodal(q).reshape(-1, 3)
    places = np.array([0.0, 2.3, 1.0])
    assert np.allclose(position, hermite(body.nodes, places) @ nodal)
    slopes = hermite(body.nodes, places, 1) @ nodal
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
    assert np.allclose(rotation[:, :, 2], slopes)

    J = body.frame_jacobians(q)
    rates = difference(lambda h: np.concatenate(poses(q + h[0] * v), axis=None), np.zeros(1))[:, 0]
    spin = rates[9:].reshape(3, 3, 3) @ rotation.transpose(0, 2, 1)
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    assert np.allclose(J @ v, np.hstack([rates[:9].reshape(3, 3), omega]), atol=1e-7)

    def velocities(q: Array) -> Array:
        out = np.zeros((3, 6))
        body.frame_velocities(q, v, out)
        return out

    D = body.frame_velocity_tangents(q, v)
    assert np.allclose(velocities(q), J @ v)
    assert np.allclose(D, difference(velocities, q), atol=1e-6)
    assert np.allclose(body.frame_bias(q, v), D @ v)


def test_coordinates_are_an_affine_change_of_nodal_ones() -> None:
    body = soft()
    q = some_state(2)[0]
    assert np.allclose(body.coordinates(body.nodal(q)), q)
    start = body.nodal(body.initial_coordinates())
    assert np.allclose(start[[0, -1], 0], [[1.0, 2.0, 3.0], [2.0, 4.0, 4.0]])
    assert body.energies(*np.zeros((2, len(q))), np.zeros(3))[1] == pytest.approx(0.0, abs=1e-25)
    stretch = np.sqrt(6.0) / 2.3  # the chord is shorter or longer than the cable
    assert body.energies(body.initial_coordinates(), 0 * q, np.zeros(3))[1] == pytest.approx(
        2.3 * 0.5 * 1e3 * (0.5 * (stretch**2 - 1)) ** 2
    )


def test_steady_rates_keep_the_length_of_the_chord() -> None:
    """The second derivative of |end − start|² along q + t v + t²a/2 is zero at the start."""
    body = soft()
    q, v = body.initial_coordinates(), np.zeros(body.num_velocities)
    v[:5] = [0.3, -0.2, 0.5, 1.5, -0.7]
    a = body.steady_rates(q, v)

    def square(t: float) -> float:
        ends = body.nodal(q + t * v + 0.5 * t * t * a)[[0, -1], 0]
        return float(np.sum((ends[1] - ends[0]) ** 2))

    h = 1e-3
    assert (square(h) - 2 * square(0.0) + square(-h)) / h**2 == pytest.approx(0.0, abs=1e-5)


# ---- motion


def thrown(dt: float, damping: float = 0.0) -> tuple[CableBody, Solution]:
    """Simulate a free cable with random initial velocities, without numerical damping."""
    rod = CableBody(
        "rod",
        Cable(axial_stiffness=200.0, bending_stiffness=1.0, linear_density=0.7, damping=damping),
        (0.3, 0.1, 0.0),
        (1.3, 0.1, 0.0),
        4,
    )
    system = System([rod], gravity=(0.0, 0.0, -3.0))
    v = np.random.default_rng(4).normal(size=rod.num_velocities)
    v[6:] *= 1.5
    start = consistent_state(system, elastic_start="undeformed", v=v)
    method = GeneralizedAlpha.newmark()
    return rod, simulate(system, t_end=0.3, dt=dt, start=start, method=method, tolerance=1e-10)


def test_a_free_cable_keeps_momentum_and_energy() -> None:
    """Linear momentum is exact; errors of angular momentum and energy are of order dt²."""
    errors = []
    for dt in (1e-3, 5e-4):
        rod, run = thrown(dt)
        assert np.abs(run.q[:, 6:]).max() > 0.1  # strongly deformed
        P, energy = run.momenta(), run.energies()
        mass = rod.typical_mass
        assert np.allclose(P[:, 2], P[0, 2] - 3.0 * mass * run.time, atol=1e-10)
        assert np.allclose(P[:, :2], P[0, :2], atol=1e-10)
        cross = np.array([[0, 1.0, 0], [-1.0, 0, 0], [0, 0, 0]])  # r × g is in the plane x, y
        centre = np.array([rod._mass[:3] @ q + rod._first_moment for q in run.q])
        torque = -3.0 * centre @ cross.T
        L = P[:, 3:] - cumulative_trapezoid(torque, run.time, axis=0, initial=0.0)
        errors.append([np.abs(L - L[0]).max(), np.abs(energy.total - energy.total[0]).max()])
        assert errors[-1][1] < 2e-3 * energy.total.max()
    ratio = np.array(errors[0]) / np.array(errors[1])
    assert np.allclose(ratio, 4.0, rtol=0.15), (errors, ratio)


def test_damping_only_takes_energy() -> None:
    energy = thrown(1e-3, damping=2e-3)[1].energies().total
    assert np.diff(energy).max() < 1e-6 * energy.max()
    assert energy[-1] < 0.95 * energy[0]


def test_a_clamp_carries_the_weight() -> None:
    """The force is mg, the moment mgL/2 and the deflection ρAgL⁴/8EI."""
    rod = CableBody(
        "rod",
        Cable(axial_stiffness=1e6, bending_stiffness=50.0, linear_density=0.5),
        (0.0, 0.0, 0.0),
        (2.0, 0.0, 0.0),
        4,
    )
    ground = Ground(frames={"wall": Frame((0, 0, 0), ALONG_X)})
    clamp = Joint("clamp", "revolute", ground.frame("wall"), rod.frame("start"))
    system = System([ground, rod], [clamp], gravity=(0.0, 0.0, -0.1))
    run = simulate(system, t_end=1e-4, dt=1e-4)
    clamp_joint = run.joint("clamp")
    assert np.allclose(clamp_joint.force[0], [0.0, 0.1, 0.0], atol=1e-6)  # its axes are y, z, x
    assert np.allclose(clamp_joint.moment[0], [-0.1, 0.0, 0.0], atol=1e-5)
    tip = rod.motion(run, [2.0])
    assert tip.position[0, 0, 2] == pytest.approx(-0.05 * 16 / 8 / 50, rel=1e-4)
    bend = rod.motion(run, [0.0]).curvature[0, 0]
    # an element approximates a parabola by a line
    assert bend == pytest.approx(0.1 / 50, rel=0.02)
    assert np.abs(rod.motion(run).acceleration[0]).max() < 1e-6
    for places in ([2.5], [-0.1], [np.nan], [[1.0]]):
        with pytest.raises(InputError, match="places"):
            rod.motion(run, places)


def cantilever(damping: float = 0.0, tip: float = 0.0) -> System:
    """Return a cable of 2 m that is clamped in a wall, with a transverse force at its end."""
    cable = Cable(axial_stiffness=1e6, bending_stiffness=50.0, linear_density=0.5, damping=damping)
    rod = CableBody("rod", cable, (0.0, 0.0, 0.0), (2.0, 0.0, 0.0), 8)
    ground = Ground(frames={"wall": Frame((0, 0, 0), ALONG_X)})
    clamp = Joint("clamp", "revolute", ground.frame("wall"), rod.frame("start"))
    loads = [force("tip", rod.frame("end"), (0.0, 0.0, tip))] if tip else []
    return System([ground, rod], [clamp], loads=loads)


def test_it_falls_into_the_elastica() -> None:
    """At PL²/EI = 10, the tip is at 0.4450 and 0.8106 of the length."""
    system = cantilever(tip=10 * 50.0 / 4)
    rod = system.body("rod")
    assert isinstance(rod, CableBody)
    state = equilibrium(system)
    end = rod.nodal(state.q)[-1, 0]
    # x/L = √(2 sin ψ EI/PL²) with the angle ψ of the end, from the elliptic integrals
    assert np.allclose(end / 2.0, [0.44500, 0.0, 0.81061], atol=3e-4)


def test_a_slack_cable_hangs_as_a_catenary() -> None:
    """Without bending stiffness, span = 2a arsinh(length/2a), and the horizontal force is μ g a."""
    length, density, g = 1.2, 0.1, 9.81
    a = brentq(lambda a: 2 * a * np.arcsinh(length / (2 * a)) - 1.0, 0.1, 10.0)
    errors = []
    for bending in (4e-5, 1e-5):
        cable = Cable(axial_stiffness=1e5, bending_stiffness=bending, linear_density=density)
        rope = CableBody("rope", cable, (0, 0, 0), (1, 0, 0), elements=24, length=length)
        ground = Ground({"left": Frame(), "right": Frame((1.0, 0.0, 0.0))})
        ends = [
            spherical("left", ground.frame("left"), rope.frame("start")),
            spherical("right", rope.frame("end"), ground.frame("right")),
        ]
        system = System([ground, rope], ends, gravity=(0, -g, 0))
        run = simulate(system, t_end=0.02, dt=1e-3, start=equilibrium(system))
        assert np.ptp(run.q, axis=0).max() < 1e-8  # it remains at rest
        support = run.joint("left").force[0]
        assert support[1] == pytest.approx(density * g * length / 2, rel=1e-6)
        errors.append(abs(support[0]) / (density * g * a) - 1.0)
    assert abs(errors[1]) < 2e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)  # linear in the bending stiffness


def test_its_modes_and_their_damping() -> None:
    """The linearized cantilever has its frequencies and, by Kelvin and Voigt, ζ = τω/2."""
    tau = 1e-4
    system = cantilever(damping=tau)
    modes = linearize(system, consistent_state(system))
    omega = np.array([3.516015, 22.034492, 61.697214]) / 4.0 * np.sqrt(50.0 / 0.5)
    frequencies = 2 * np.pi * np.asarray(modes.frequencies[:6])
    assert np.allclose(frequencies, np.repeat(omega, 2), rtol=1e-3)
    assert np.allclose(modes.damping_ratios[:6], tau * frequencies / 2, rtol=1e-6)


def test_its_run_is_saved_and_read(tmp_path: Path) -> None:
    run = simulate(cantilever(tip=0.1), t_end=0.01, dt=1e-3)
    file = tmp_path / "run.npz"
    run.save(file)
    loaded = Solution.load(file, cantilever(tip=0.1))
    rod = loaded.system.body("rod")
    assert isinstance(rod, CableBody)
    assert np.array_equal(rod.motion(loaded).position, rod.motion(run).position)


PERIOD, SPEED = 15.0, 6.0


def spin_up(t: float) -> tuple[float, float, float]:
    """Return the angle of the hub in V5, its rate and acceleration."""
    if t >= PERIOD:
        return SPEED * (t - PERIOD / 2), SPEED, 0.0
    w = 2 * np.pi / PERIOD
    angle = t * t / 2 + (np.cos(w * t) - 1) / w**2
    rates = t - np.sin(w * t) / w, 1 - np.cos(w * t)
    return SPEED / PERIOD * angle, SPEED / PERIOD * rates[0], SPEED / PERIOD * rates[1]


def test_spin_up() -> None:
    """Case V5 within 1 %: the cable has no spurious softening by linear strains."""
    rod = CableBody(
        "rod",
        Cable(axial_stiffness=2.8e7, bending_stiffness=1.4e4, linear_density=1.2),
        (0.0, 0.0, 0.0),
        (10.0, 0.0, 0.0),
        6,
    )
    hub = RigidBody("hub", 1.0, np.ones(3), frames={"axis": Frame(), "arm": Frame(axes=ALONG_X)})
    ground = Ground(frames={"axis": Frame()})
    joints = [
        Joint("bearing", "revolute", ground.frame("axis"), hub.frame("axis")),
        Joint("clamp", "revolute", hub.frame("arm"), rod.frame("start")),
    ]
    system = System([ground, hub, rod], joints, drivers=[Driver("spin", "bearing", spin_up)])
    run = simulate(system, t_end=16.0, dt=0.01)
    angle = np.array([spin_up(float(t))[0] for t in run.time])
    x, y, z = rod.motion(run, [10.0]).position[:, 0].T
    along, across = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    assert np.abs(z).max() < 1e-10
    lowest = int(np.argmin(across))
    assert across[lowest] == pytest.approx(-0.5738, rel=0.01)
    assert run.time[lowest] == pytest.approx(6.76, abs=0.02)
    times = (2, 4, 5, 6, 7, 8, 10, 12, 14)
    exact = [
        -0.10237, -0.34225, -0.46844, -0.54356, -0.57125, -0.54276, -0.36269, -0.15088, -0.02028
    ]  # fmt: skip
    deflections = [np.interp(t, run.time, across) for t in times]
    assert np.allclose(deflections, exact, rtol=0.01)
    assert along[-1] - 10.0 == pytest.approx(5.14e-4, rel=0.01)


# ---- as the rod of a slider-crank

LENGTH, RADIUS, SLIDER, SIDE, STEEL = 0.3, 0.15, 0.075552, 0.005, Material(2.0e11, 0.3, 7850.0)


def run_up(speed: float) -> Callable[[float], tuple[float, float, float]]:
    """Return the angle of a crank that runs up smoothly in half a turn, and its derivatives."""
    period = 2 * np.pi / speed

    def motion(t: float) -> tuple[float, float, float]:
        if t >= period:
            return speed * (t - period / 2), speed, 0.0
        w = 2 * np.pi / period
        angle = t**2 / 2 + (np.cos(w * t) - 1) / w**2
        rates = t - np.sin(w * t) / w, 1 - np.cos(w * t)
        return speed / period * angle, speed / period * rates[0], speed / period * rates[1]

    return motion


def slider_crank(rod: Any, ends: tuple[str, str], motion: Callable[..., Any]) -> System:
    """Return a crank about z, a slider along x, and a rod between two spherical joints."""
    ground = Ground(frames={"main": Frame(), "guide": Frame(axes=ALONG_X)})
    crank = RigidBody(
        "crank", 0.36, np.full(3, 1e-3), frames={"main": Frame(), "pin": Frame((RADIUS, 0.0, 0.0))}
    )
    slider = RigidBody(
        "slider",
        SLIDER,
        np.full(3, 1e-5),
        frames={"pin": Frame(), "guide": Frame(axes=ALONG_X)},
        position=(RADIUS + LENGTH, 0.0, 0.0),
    )
    joints = [
        Joint("main", "revolute", ground.frame("main"), crank.frame("main")),
        Joint("crank pin", "spherical", crank.frame("pin"), rod.frame(ends[0])),
        Joint("slider pin", "spherical", rod.frame(ends[1]), slider.frame("pin")),
        Joint("guide", "prismatic", ground.frame("guide"), slider.frame("guide")),
    ]
    return System([ground, crank, rod, slider], joints, drivers=[Driver("drive", "main", motion)])


def cable_rod(elements: int = 6) -> CableBody:
    """Return a rod as a cable with bending stiffness."""
    cable = Cable.from_section(Section.rectangle(SIDE, SIDE), STEEL)
    return CableBody("rod", cable, (RADIUS, 0.0, 0.0), (RADIUS + LENGTH, 0.0, 0.0), elements)


def cable_deflection(system: System, run: Solution) -> Array:
    """Return the deflection of the middle of the cable from its chord."""
    rod = system.body("rod")
    assert isinstance(rod, CableBody)
    big, middle, small = np.moveaxis(
        rod.motion(run, [0.0, LENGTH / 2, LENGTH]).position[..., :2], 1, 0
    )
    return across(big, middle, small)


def across(big: Array, middle: Array, small: Array) -> Array:
    """Return the distance of the middle from the chord between the ends."""
    chord = (small - big) / np.linalg.norm(small - big, axis=1, keepdims=True)
    offset = middle - 0.5 * (big + small)
    return chord[:, 0] * offset[:, 1] - chord[:, 1] * offset[:, 0]


def test_the_rod_bends_like_the_exact_beam() -> None:
    """At 150 rad/s, deflections reach 1 % of the length, and forces half of Euler's load."""
    speed = 150.0
    period = 2 * np.pi / speed
    dt, t_end = period / 400, 2.0 * period
    beam = ExactBeam.square(LENGTH, SIDE, STEEL.young, STEEL.poisson, STEEL.density, 40)
    exact = slider_crank_run(
        beam, crank_radius=RADIUS, slider_mass=SLIDER, motion=run_up(speed), t_end=t_end, dt=dt
    ).deflection()
    system = slider_crank(cable_rod(), ("start", "end"), run_up(speed))
    method = GeneralizedAlpha.from_spectral_radius(0.9)
    run = simulate(system, t_end=t_end, dt=dt, method=method)
    w = cable_deflection(system, run)
    assert np.abs(exact).max() > 0.008 * LENGTH
    assert np.abs(w - exact).max() < 1e-3 * np.abs(exact).max()


def test_it_agrees_with_a_floating_frame() -> None:
    """At deflections of 1e-4 of the length, the reduced beam gives the same result."""
    speed = 40.0
    period = 2 * np.pi / speed
    model = BeamModel(
        dmesh.create_interval(MPI.COMM_WORLD, 12, [0.0, LENGTH]),
        Section.rectangle(SIDE, SIDE),
        STEEL,
    )
    body = reduce_beam(
        model,
        interfaces={"big_end": 0.0, "small_end": LENGTH},
        num_modes=6,
        points={"middle": LENGTH / 2},
        options=ReductionOptions(skin=False),
    ).body
    floating = FlexibleBody(
        "rod", body, position=(RADIUS, 0.0, 0.0) - body_origin(body), damping_ratio=0.0
    )
    options: dict[str, Any] = {"t_end": 1.5 * period, "dt": period / 400}
    run = simulate(slider_crank(floating, ("big_end", "small_end"), run_up(speed)), **options)
    eta = run.body("rod").eta
    big, small, middle = (
        body.interface("big_end"),
        body.interface("small_end"),
        body.point("middle"),
    )
    w = across(
        *(
            (x + eta @ modes)[:, :2]
            for x, modes in (
                (big.point, big.motion[:3].T),
                (middle.position, middle.modes),
                (small.point, small.motion[:3].T),
            )
        )
    )
    system = slider_crank(cable_rod(), ("start", "end"), run_up(speed))
    cable_run = simulate(system, **options)
    v = cable_deflection(system, cable_run)
    assert 1e-4 * LENGTH < np.abs(w).max() < 1e-3 * LENGTH
    assert np.abs(v - w).max() < 5e-4 * np.abs(w).max()
    forces = [np.linalg.norm(r.joint("slider pin").force, axis=1) for r in (run, cable_run)]
    assert np.abs(forces[0] - forces[1]).max() < 1e-4 * forces[0].max()


def body_origin(body: Any) -> Array:
    """Return the point of the big end of a body."""
    origin: Array = body.interface("big_end").point
    return origin


def test_every_rank_computes_the_same(comm: MPI.Intracomm) -> None:
    run = thrown(5e-3)[1]
    assert all(np.array_equal(run.q, other) for other in comm.allgather(run.q))


# ---- what it refuses


def pair(kind: str, driven: bool = False) -> tuple[CableBody, System]:
    """Return a cable on a joint of a kind, and the mechanism."""
    rod = cable_rod()
    ground = Ground(frames={"wall": Frame((RADIUS, 0.0, 0.0), ALONG_X)})
    joint = Joint("wall", kind, ground.frame("wall"), rod.frame("start"))
    drivers = [Driver("twist", "wall", constant_speed(1.0))] if driven else []
    loads = [force("push", rod.frame("end"), (0.0, 1.0, 0.0))]
    return rod, System([ground, rod], [joint], drivers=drivers, loads=loads)


@pytest.mark.parametrize("kind", ["fixed", "prismatic", "universal"])
def test_joints_that_hold_the_spin_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} joint 'wall' holds the rotation of body 'rod'"):
        pair(kind)


def test_a_cable_cannot_be_twisted() -> None:
    with pytest.raises(ValueError, match="carries no torsion"):
        pair("revolute", driven=True)
    for kind in ("spherical", "revolute", "cylindrical", "planar", "point_on_line"):
        pair(kind)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"end": (0.0, 0.0, 0.0)}, "from start to end is 0 m"),
        ({"start": (0.0, np.nan, 0.0)}, "body 'rod': start must be"),
        ({"elements": 0}, "body 'rod': elements must be"),
        ({"elements": (0.0, 0.5, 0.5, 1.0)}, "increasing from 0"),
        ({"elements": (0.0, 0.5), "length": 1.0}, "length is 1 m"),
        ({"length": -1.0}, "body 'rod': length must be"),
        ({"frames": {"far": 3.0}}, "the place of frame 'far' must be"),
        ({"frames": {"start": 0.3}}, "the place of frame 'start' must be 0 m"),
    ],
)
def test_bad_input_is_named(changes: dict[str, Any], words: str) -> None:
    arguments = {"start": (0.0, 0.0, 0.0), "end": (1.0, 0.0, 0.0), **changes}
    with pytest.raises(ValueError, match=words):
        CableBody(
            "rod",
            Cable(axial_stiffness=1.0, bending_stiffness=1.0, linear_density=1.0),
            **arguments,
        )


def test_unknown_frames_are_named() -> None:
    with pytest.raises(ValueError, match="'start', 'end', 'inside'"):
        soft().frame("middle")
