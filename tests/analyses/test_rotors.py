"""Rotors that turn on supports with two stiffnesses, about axes that do not turn with them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import create_box, create_interval, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import SteadyError, equilibrium, linearize
from dolfinx_mbd.body import axisymmetric
from dolfinx_mbd.errors import InputError

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # the third axis is along x
LENGTH, PLACE, RADIUS, COUNT = 0.8, 0.2, 0.01, 16
DISC, ACROSS, POLAR = 8.0, 0.03, 0.055  # mass, and moments of inertia of the disc
STIFFNESS, RATIO = 2e6, 0.4  # of the bearings in y, and z over y


@cache
def shaft(round_section: bool = True) -> mbd.ReducedBody:
    line = create_interval(MPI.COMM_SELF, COUNT, [0.0, LENGTH])
    section = mbd.forms.Section.circle(RADIUS)
    if not round_section:
        section = mbd.forms.Section.rectangle(0.02, 0.015)
    beam = mbd.BeamModel(line, section, mbd.STEEL, np.eye(3))
    places = {"left": 0.0, "disc": PLACE, "right": LENGTH}
    return mbd.reduce_beam(beam, interfaces=places, num_modes=12, name="shaft").body


def rotor(speed: float, ratio: float, damping: float, body: Any = None, **options: Any) -> Any:
    """Return a shaft with a disc, which turns about x on two bearings."""
    ends = {"left": mbd.Frame((0, 0, 0), ALONG_X), "right": mbd.Frame((LENGTH, 0, 0), ALONG_X)}
    ground, turning = mbd.Ground(ends), {"omega": (speed, 0, 0), "velocity": (0, 0, 0)}
    part = mbd.FlexibleBody("shaft", body or shaft(), damping_ratio=0.0, **turning)
    inertia, frames = [POLAR, ACROSS, ACROSS], {"o": mbd.Frame()}
    disc = mbd.RigidBody("disc", DISC, inertia, frames=frames, position=(PLACE, 0, 0), **turning)
    loads = []
    for end, along in (("left", 1e6), ("right", 0.0)):
        stiffness = np.diag([STIFFNESS, ratio * STIFFNESS, along])
        losses = np.diag([damping, damping, 50.0 * (along > 0)])
        table = mbd.mechanism.BearingTable([0.0], [stiffness], [losses])
        pair = ground.frame(end), part.frame(end)
        loads.append(mbd.mechanism.TabulatedBearing(f"{end} bearing", *pair, table))
    seat = mbd.fixed("seat", part.frame("disc"), disc.frame("o"))
    return mbd.System([ground, part, disc], [seat], loads=loads, **options)


def rayleigh_beam_poles(speed: float, ratio: float, damping: float) -> Any:
    """Return the poles of Hermite elements with rotary inertia, by their absolute values.

    Each node has the complex displacement y + iz and its derivative; z* couples the two supports.
    """
    h, E, rho = LENGTH / COUNT, mbd.STEEL.young, mbd.STEEL.density
    area, second = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4
    size = 2 * (COUNT + 1)
    M, G, K = np.zeros((3, size, size))
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
    """Gyroscopic moments of disc and shaft, and supports with two stiffnesses."""
    system = rotor(speed, ratio, damping)
    state = mbd.dynamics.consistent_state(system)
    poles = linearize(system, state, axes="global").poles
    for exact in rayleigh_beam_poles(speed, ratio, damping)[:8]:
        assert np.abs(poles - exact).min() < 1e-3 * abs(exact)


@pytest.mark.parametrize("speed", [90.0, 1300.0])
def test_axes_of_the_body_and_global_axes(speed: float) -> None:
    """On equal supports, the poles in both axes differ by ±iΩ."""
    system = rotor(speed, 1.0, 400.0)
    state = mbd.dynamics.consistent_state(system)
    still = linearize(system, state, axes="global").poles
    turning = linearize(system, state, axes="body").poles
    for pole in still[np.argsort(np.abs(still))][:14]:
        shifted = [pole, pole + 1j * speed, pole - 1j * speed]  # torsion is the same in both
        near = min(np.abs(turning - (x.real + 1j * abs(x.imag))).min() for x in shifted)
        assert near < 1e-6 * max(abs(pole), speed)


def test_weight_in_global_axes() -> None:
    """The turning rotor hangs like one at rest, and stays there in a run."""
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
    off = replace(part, velocity=(0.0, 3.0, 0.0))
    disc = replace(disc, velocity=None, omega=None)
    wrong = mbd.System([ground, off, disc], moving.joints, loads=moving.loads)
    with pytest.raises(InputError, match="is not a rotor"):
        equilibrium(wrong, axes="global")


def test_the_average_of_a_square_bar() -> None:
    """A bar with a square section is nearly round; its average is, and keeps its frequencies."""
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
    again = axisymmetric(average, (0, 0, 1), tolerance=1e-6)
    assert np.allclose(
        again.stiffness, average.stiffness, rtol=1e-9, atol=1e-9 * body.stiffness.max()
    )
    with pytest.raises(InputError, match="axis must be a direction"):
        axisymmetric(body, (0, 0, 0))
