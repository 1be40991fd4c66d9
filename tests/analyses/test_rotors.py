"""Rotors on supports with two stiffnesses, linearized in axes that do not rotate with them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType, create_box, create_interval, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import SteadyError, equilibrium, linearize
from dolfinx_mbd.body import axisymmetric
from dolfinx_mbd.errors import InputError

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # the third axis is along x
LENGTH, PLACE, RADIUS, COUNT = 0.8, 0.2, 0.01, 16  # of the shaft; disc at PLACE, COUNT elements
DISC, ACROSS, POLAR = 8.0, 0.03, 0.055  # mass, and moments of inertia of the disc
STIFFNESS, RATIO = 2e6, 0.4  # stiffness of the bearings in y, and ratio z/y


@cache
def shaft(round_section: bool = True) -> mbd.ReducedBody:
    """Return a reduced shaft of circular or rectangular section with a place for a disc."""
    line = create_interval(MPI.COMM_SELF, COUNT, [0.0, LENGTH])
    section = mbd.forms.Section.circle(RADIUS)
    if not round_section:
        section = mbd.forms.Section.rectangle(0.02, 0.015)
    beam = mbd.BeamModel(line, section, mbd.STEEL, np.eye(3))
    places = {"left": 0.0, "disc": PLACE, "right": LENGTH}
    return mbd.reduce_beam(beam, interfaces=places, num_modes=12, name="shaft").body


def rotor(
    speed: float,
    ratio: float,
    damping: float,
    body: Any = None,
    internal: float = 0.0,
    **options: Any,
) -> Any:
    """Return a shaft with a disc, which turns about x on two bearings."""
    ends = {"left": mbd.Frame((0, 0, 0), ALONG_X), "right": mbd.Frame((LENGTH, 0, 0), ALONG_X)}
    ground, turning = mbd.Ground(ends), {"omega": (speed, 0, 0), "velocity": (0, 0, 0)}
    part = mbd.FlexibleBody("shaft", body or shaft(), damping_ratio=internal, **turning)
    inertia, frames = [POLAR, ACROSS, ACROSS], {"o": mbd.Frame()}
    disc = mbd.RigidBody("disc", DISC, inertia, frames=frames, position=(PLACE, 0, 0), **turning)
    loads = []
    for end, along in (("left", 1e6), ("right", 0.0)):
        stiffness = np.diag([STIFFNESS, ratio * STIFFNESS, along])
        dampings = np.diag([damping, damping, 50.0 * (along > 0)])
        table = mbd.mechanism.BearingTable([0.0], [stiffness], [dampings])
        pair = ground.frame(end), part.frame(end)
        loads.append(mbd.mechanism.TabulatedBearing(f"{end} bearing", *pair, table))
    seat = mbd.fixed("seat", part.frame("disc"), disc.frame("o"))
    return mbd.System([ground, part, disc], [seat], loads=loads, **options)


def rayleigh_beam_poles(speed: float, ratio: float, damping: float) -> Any:
    """Return the poles of Hermite elements with rotary inertia, by their absolute values.

    Each node has displacements along y and z and their derivatives by x. M, G and K are matrices of
    one plane; gyroscopic moments couple both planes, and B selects the bearings.
    """
    h, E, rho = LENGTH / COUNT, mbd.STEEL.young, mbd.STEEL.density
    area, second = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4
    size = 2 * (COUNT + 1)
    M, G, K = np.zeros((3, size, size))
    # m, r, k: mass, rotary inertia and bending stiffness of an element, without their factors
    m = [[156, 22 * h, 54, -13 * h], [22 * h, 4 * h**2, 13 * h, -3 * h**2]]
    m += [[54, 13 * h, 156, -22 * h], [-13 * h, -3 * h**2, -22 * h, 4 * h**2]]
    r = [[36, 3 * h, -36, 3 * h], [3 * h, 4 * h**2, -3 * h, -(h**2)]]
    r += [[-36, -3 * h, 36, -3 * h], [3 * h, -(h**2), -3 * h, 4 * h**2]]
    k = [[12, 6 * h, -12, 6 * h], [6 * h, 4 * h**2, -6 * h, 2 * h**2]]
    k += [[-12, -6 * h, 12, -6 * h], [6 * h, 2 * h**2, -6 * h, 4 * h**2]]
    for n in range(COUNT):
        part = np.ix_(range(2 * n, 2 * n + 4), range(2 * n, 2 * n + 4))
        rotary = rho * second / (30 * h) * np.array(r)
        M[part] += rho * area * h / 420 * np.array(m) + rotary
        G[part] += 2 * rotary
        K[part] += E * second / h**3 * np.array(k)
    j = 2 * round(PLACE / h)
    M[j, j] += DISC
    M[j + 1, j + 1] += ACROSS
    G[j + 1, j + 1] += POLAR
    B = np.zeros((size, size))
    B[0, 0] = B[-2, -2] = 1.0
    swap = np.array([[0.0, 1.0], [-1.0, 0.0]])
    mass = np.kron(M, np.eye(2))
    rate = np.kron(speed * G, swap) + np.kron(damping * B, np.eye(2))
    stiffness = np.kron(K, np.eye(2)) + np.kron(STIFFNESS * B, np.diag([1.0, ratio]))
    zero, one = np.zeros_like(mass), np.eye(len(mass))
    inverse = np.linalg.inv(mass)
    poles = np.linalg.eigvals(np.block([[zero, one], [-inverse @ stiffness, -inverse @ rate]]))
    poles = poles[poles.imag >= 0]
    return poles[np.argsort(np.abs(poles))]


@pytest.mark.parametrize(
    ("speed", "ratio", "damping"),
    [(0.0, RATIO, 0.0), (300.0, RATIO, 500.0), (2000.0, RATIO, 0.0), (1100.0, 1.0, 300.0)],
)
def test_poles_of_a_turning_shaft_with_a_disc(speed: float, ratio: float, damping: float) -> None:
    """The reference contains gyroscopic moments and supports with two stiffnesses."""
    system = rotor(speed, ratio, damping)
    state = mbd.dynamics.consistent_state(system)
    poles = linearize(system, state, axes="global").poles
    for exact in rayleigh_beam_poles(speed, ratio, damping)[:8]:
        assert np.abs(poles - exact).min() < 1e-3 * abs(exact)


@pytest.mark.parametrize("speed", [90.0, 1300.0])
def test_axes_of_the_body_and_global_axes(speed: float) -> None:
    """On equal supports, poles in body axes and in global axes differ by ±iΩ."""
    system = rotor(speed, 1.0, 400.0)
    state = mbd.dynamics.consistent_state(system)
    still = linearize(system, state, axes="global").poles
    turning = linearize(system, state, axes="body").poles
    for pole in still[np.argsort(np.abs(still))][:14]:
        shifted = [pole, pole + 1j * speed, pole - 1j * speed]  # torsion is the same in both
        near = min(np.abs(turning - (x.real + 1j * abs(x.imag))).min() for x in shifted)
        assert near < 1e-6 * max(abs(pole), speed)


def test_weight_in_global_axes() -> None:
    """A rotating rotor sags as one at rest, and a run stays in this position."""
    speed, gravity = 700.0, (0, -9.81, 0)
    state = equilibrium(rotor(speed, RATIO, 500.0, gravity=gravity), axes="global")
    system = rotor(speed, RATIO, 500.0, gravity=gravity)
    rest = equilibrium(rotor(0.0, RATIO, 500.0, gravity=gravity))
    k = system.body_index("disc")
    part = system.q_slices[k]
    assert np.allclose(state.q[part][:3], rest.q[part][:3], atol=2e-4 * abs(rest.q[part][1]))
    run = mbd.simulate(system, t_end=6 / speed, dt=0.01 / speed, start=state)
    path = run.body("disc").position
    assert np.abs(path - path[0]).max() < 1e-5 * abs(path[0, 1])


def test_rotors_that_are_not_round_are_named() -> None:
    body = shaft(round_section=False)
    system = rotor(200.0, 1.0, 100.0, body)
    state = mbd.dynamics.consistent_state(system)
    with pytest.raises(SteadyError, match="'shaft' is not round about the axis"):
        linearize(system, state, axes="global")
    with pytest.raises(InputError, match="is not round"):
        equilibrium(system, axes="global")
    with pytest.raises(InputError, match=r"its [a-z ]+ deviates? by"):
        axisymmetric(body, (1, 0, 0))
    with pytest.raises(InputError, match="spin must be None"):
        equilibrium(rotor(200.0, 1.0, 0.0), axes="global", spin=(1, 0, 0))
    moving = rotor(200.0, 1.0, 0.0)
    ground, part, disc = moving.bodies
    drifting = replace(part, velocity=(0.0, 3.0, 0.0))
    disc = replace(disc, velocity=None, omega=None)
    wrong = mbd.System([ground, drifting, disc], moving.joints, loads=moving.loads)
    with pytest.raises(InputError, match="is not a rotor"):
        equilibrium(wrong, axes="global")


def test_the_average_of_a_square_bar() -> None:
    """A square bar is nearly round; its average is exactly round and has its frequencies."""
    box = create_box(MPI.COMM_SELF, [(-0.01, -0.01, 0), (0.01, 0.01, 0.3)], [2, 2, 10])
    ends = {"low": lambda x: np.isclose(x[2], 0), "high": lambda x: np.isclose(x[2], 0.3)}
    places = {name: locate_entities_boundary(box, 2, where) for name, where in ends.items()}
    body = mbd.reduce(box, mbd.STEEL, interfaces=places, num_modes=4).body
    average = axisymmetric(body, (0, 0, 1), tolerance=0.2)
    assert 1e-9 < average.provenance["deviation from a body of revolution"] < 0.2
    before, after = (
        np.sqrt(np.linalg.eigvals(np.linalg.solve(b.mass, b.stiffness)).real)
        for b in (body, average)
    )
    assert np.allclose(np.sort(before), np.sort(after), rtol=0.05)
    repeated = axisymmetric(average, (0, 0, 1), tolerance=1e-6)
    assert np.allclose(
        repeated.stiffness, average.stiffness, rtol=1e-9, atol=1e-9 * body.stiffness.max()
    )
    with pytest.raises(InputError, match="axis must be a direction"):
        axisymmetric(body, (0, 0, 0))


@cache
def pinned_shaft(radius: float, young: float, num_modes: int) -> mbd.ReducedBody:
    """Return a shaft without a disc."""
    line = create_interval(MPI.COMM_SELF, 24, [0.0, LENGTH])
    material = replace(mbd.STEEL, young=young)
    beam = mbd.BeamModel(line, mbd.forms.Section.circle(radius), material, np.eye(3))
    ends = {"left": 0.0, "right": LENGTH}
    return mbd.reduce_beam(beam, interfaces=ends, num_modes=num_modes, name="shaft").body


def on_springs(
    body: mbd.ReducedBody, speed: float, stiffness: tuple[float, float], places: Any = (0.0, LENGTH)
) -> mbd.System:
    """Return a shaft that turns about x on springs in y and z at its ends."""
    ends = dict(zip(("left", "right"), places, strict=True))
    ground = mbd.Ground({name: mbd.Frame((x, 0, 0), ALONG_X) for name, x in ends.items()})
    turning = {"omega": (speed, 0, 0), "velocity": (0, 0, 0)}
    part = mbd.FlexibleBody("shaft", body, damping_ratio=0.0, **turning)  # type: ignore[arg-type]
    loads = []
    for end, along in (("left", 1e7), ("right", 0.0)):
        table = mbd.mechanism.BearingTable(
            [0.0], [np.diag([*stiffness, along])], [np.zeros((3, 3))]
        )
        pair = ground.frame(end), part.frame(end)
        loads.append(mbd.mechanism.TabulatedBearing(f"{end} bearing", *pair, table))
    return mbd.System([ground, part], loads=loads)


def global_poles(system: mbd.System) -> Any:
    """Return the poles of a rotor about its equilibrium in global axes."""
    return linearize(system, equilibrium(system, axes="global"), axes="global").poles


@pytest.mark.parametrize("speed", [0.0, 1500.0, 6000.0])
def test_turning_rayleigh_beam_on_pins(speed: float) -> None:
    """(A + I k²) ρ ω² − 2 Ω ρ I k² ω = E I k⁴ with k = nπ/l, for forward and backward whirl."""
    radius = 0.04
    system = on_springs(pinned_shaft(radius, mbd.STEEL.young, 14), speed, (1e13, 1e13))
    poles = global_poles(system)
    area, second = np.pi * radius**2, np.pi * radius**4 / 4
    for n in (1, 2, 3):
        k = n * np.pi / LENGTH
        rho = mbd.STEEL.density
        inertia, gyro = rho * (area + second * k**2), -2 * speed * rho * second * k**2
        for whirl in np.abs(np.roots([inertia, gyro, -mbd.STEEL.young * second * k**4])):
            assert np.abs(poles - 1j * whirl).min() < 3e-4 * whirl


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.UnitsWarning")  # a stiff material
@pytest.mark.parametrize("speed", [400.0, 3000.0])
def test_rigid_rotor_on_anisotropic_springs(speed: float) -> None:
    """The flexible rotor of a stiff material is the rigid one; the error is proportional to 1/E."""
    radius, stiffness = 0.05, (3e6, 1e6)
    mass = mbd.STEEL.density * np.pi * radius**2 * LENGTH
    polar = mass * radius**2 / 2
    across = mass * (radius**2 / 4 + LENGTH**2 / 12)
    roots = [1j * np.sqrt(2 * k / mass) for k in stiffness]
    tilts = [k * LENGTH**2 / 2 for k in stiffness]  # (J λ² + a)(J λ² + b) + (I Ω λ)² = 0
    squares = np.roots([across**2, across * sum(tilts) + (polar * speed) ** 2, tilts[0] * tilts[1]])
    roots += list(1j * np.sqrt(-squares.real))
    errors = []
    for factor in (1e2, 1e3):
        body = pinned_shaft(radius, factor * mbd.STEEL.young, 6)
        poles = global_poles(on_springs(body, speed, stiffness))
        errors.append(max(np.abs(poles - root).min() / abs(root) for root in roots))
    assert errors[0] < 1e-3
    assert np.isclose(errors[0] / errors[1], 10.0, rtol=0.05)


def test_floquet_multipliers() -> None:
    """The multipliers of the run over a turn are exp(λ T), with an error of second order."""
    speed, errors = 350.0, []
    period = 2 * np.pi / speed
    for steps in (100, 200):
        free = rotor(speed, RATIO, 500.0, internal=0.05)
        frames = {"o": mbd.Frame((0, 0, 0), ALONG_X), "plate": mbd.Frame()}
        clutch = mbd.RigidBody("clutch", 0.1, [1e-3] * 3, frames=frames, omega=(speed, 0, 0))
        ground, part, disc = free.bodies
        axle = mbd.revolute("axle", ground.frame("left"), clutch.frame("o"))
        pair = clutch.frame("plate"), part.frame("left")
        about_x = np.array([0.0, 0, 0, 1, 0, 0])
        # a clutch with torsional stiffness and damping only
        plate = mbd.Bushing("plate", *pair, 1e4 * about_x, 50.0 * about_x)
        drive = mbd.Driver("drive", "axle", mbd.constant_speed(speed))
        system = mbd.System(
            [ground, part, disc, clutch], [*free.joints, axle],
            drivers=[drive], loads=[*free.loads, plate],
        )  # fmt: skip
        state = equilibrium(system, axes="global")
        poles = linearize(system, state, axes="global").poles
        poles = poles[np.abs(poles) > 1][:4]
        cycle = mbd.analyses.periodic(system, period, dt=period / steps, start=state, closed=1e-2)
        exact = np.exp(poles * period)
        errors.append([np.abs(cycle.multipliers - mu).min() for mu in exact])
    assert poles.real.max() > 0.1  # the damping of the turning shaft makes a whirl grow
    assert np.max(errors[1]) < 2e-4
    assert np.allclose(np.array(errors[1]) / errors[0], 0.25, atol=0.01)


def round_bar(radius: float, cells: int) -> Any:
    """Return the mesh of a cylinder along x, a box whose square section is mapped to a disc."""
    corners = [(0, -1, -1), (LENGTH, 1, 1)]
    mesh = create_box(MPI.COMM_SELF, corners, [20, cells, cells], CellType.hexahedron)
    x = mesh.geometry.x
    y, z = x[:, 1].copy(), x[:, 2].copy()
    x[:, 1], x[:, 2] = radius * y * np.sqrt(1 - z**2 / 2), radius * z * np.sqrt(1 - y**2 / 2)
    return mesh


@pytest.mark.slow
def test_solid_rotor() -> None:
    """A mesh of a cylinder is round but for its edges; its average has the poles of the beam."""
    radius, speed, stiffness = 0.04, 2000.0, (4e6, 2e6)
    mesh = round_bar(radius, 6)
    ends = {"left": 0.0, "right": LENGTH}
    places = {
        name: locate_entities_boundary(mesh, 2, lambda x, a=a: np.isclose(x[0], a))
        for name, a in ends.items()
    }
    body = mbd.reduce(mesh, mbd.STEEL, interfaces=places, num_modes=8, name="shaft").body
    average = axisymmetric(body, (1, 0, 0))
    assert 1e-9 < average.provenance["deviation from a body of revolution"] < 1e-3
    positions = [i.point[0] for i in body.interfaces]
    poles = global_poles(on_springs(average, speed, stiffness, positions))
    beam = global_poles(on_springs(pinned_shaft(radius, mbd.STEEL.young, 8), speed, stiffness))
    beam = beam[np.abs(beam) > 1.0][:6]
    # The section of the mesh is smaller by 1 %, and only the mesh deforms in shear.
    for pole in beam:
        assert np.abs(poles - pole).min() < (0.007 if abs(pole) < 1000 else 0.03) * abs(pole)
