"""Poles over the speed against a Timoshenko rotor by finite elements, and the tracking of modes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import locate_entities_boundary

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import poles_over_speed
from dolfinx_mbd.body import axisymmetric
from dolfinx_mbd.errors import AccuracyWarning, InputError
from tests.analyses.test_rotors import LENGTH, round_bar

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # the third axis is along x
RADIUS = 0.06
DISC, ACROSS, POLAR = 6.0, 0.02, 0.038
STIFFNESS, DAMPING = (8e7, 3e7), 2e3  # both bearings, in y and z


@cache
def shaft() -> mbd.ReducedBody:
    """Return a short solid shaft, whose shear matters."""
    mesh = round_bar(RADIUS, 6)
    places = {
        name: locate_entities_boundary(mesh, 2, lambda x, a=a: np.isclose(x[0], a))
        for name, a in {"left": 0.0, "right": LENGTH}.items()
    }
    body = mbd.reduce(mesh, mbd.STEEL, interfaces=places, num_modes=12, name="shaft").body
    return axisymmetric(body, (1, 0, 0))


def rotor(speed: float) -> mbd.System:
    """Return a round shaft with a disc on bearings that differ in y and z."""
    points = {i.name: i.point for i in shaft().interfaces}
    ends = {name: mbd.Frame(point, ALONG_X) for name, point in points.items()}
    ground, turning = mbd.Ground(ends), {"omega": (speed, 0, 0), "velocity": (0, 0, 0)}
    part: Any = mbd.FlexibleBody("shaft", shaft(), damping_ratio=0.0, **turning)
    disc = mbd.RigidBody(
        "disc", DISC, [POLAR, ACROSS, ACROSS], frames={"o": mbd.Frame()},
        position=points["right"], **turning,
    )  # fmt: skip
    loads = []
    for end, along in (("left", 1e8), ("right", 0.0)):
        stiffness = np.diag([*STIFFNESS, along])
        table = mbd.mechanism.BearingTable([0.0], [stiffness], [np.diag([DAMPING, DAMPING, 0.0])])
        pair = ground.frame(end), part.frame(end)
        loads.append(mbd.mechanism.TabulatedBearing(f"{end} bearing", *pair, table))
    seat = mbd.fixed("seat", part.frame("right"), disc.frame("o"))
    return mbd.System([ground, part, disc], [seat], loads=loads)


def timoshenko_poles(speed: float, shear: float, elements: int = 100) -> Any:
    """Return poles of linear elements for displacements (v, w) and slopes (a, b) of the axis.

    The energies are EI (a'² + b'²)/2 + κGA ((v' − a)² + (w' − b)²)/2 and
    ρA (v̇² + ẇ²)/2 + ρI (ȧ² + ḃ²)/2, and the gyroscopic moments are 2ρIΩ.
    """
    h, E, rho = LENGTH / elements, mbd.STEEL.young, mbd.STEEL.density
    area = shaft().total_mass / (rho * LENGTH)  # the mesh has 2 % less than the circle
    second = area**2 / (4 * np.pi)
    modulus = E / (2 * (1 + mbd.STEEL.poisson))
    size = 2 * (elements + 1)  # displacement and slope of each node in one plane
    M, K, G = np.zeros((3, size, size))
    # B and S: derivative of the slope and shear strain per nodal value of an element
    B = np.array([0.0, -1.0, 0.0, 1.0]) / h
    S = np.array([-1 / h, -0.5, 1 / h, -0.5])  # one point of integration: no locking
    mass = h / 6 * np.array([[2.0, 1.0], [1.0, 2.0]])
    for n in range(elements):
        part = np.ix_(range(2 * n, 2 * n + 4), range(2 * n, 2 * n + 4))
        K[part] += E * second * h * np.outer(B, B) + shear * modulus * area * h * np.outer(S, S)
        M[part] += np.kron(mass, np.diag([rho * area, rho * second]))
        G[part] += np.kron(mass, np.diag([0.0, 2 * rho * second]))
    j = 2 * elements
    M[j, j] += DISC
    M[j + 1, j + 1] += ACROSS
    G[j + 1, j + 1] += POLAR
    ends = np.zeros((size, size))
    ends[0, 0] = ends[-2, -2] = 1.0
    swap = np.array([[0.0, 1.0], [-1.0, 0.0]])
    whole = np.kron(M, np.eye(2))
    rate = np.kron(speed * G, swap) + np.kron(DAMPING * ends, np.eye(2))
    stiffness = np.kron(K, np.eye(2)) + np.kron(ends, np.diag(STIFFNESS))
    inverse = np.linalg.inv(whole)
    zero, one = np.zeros_like(whole), np.eye(len(whole))
    poles = np.linalg.eigvals(np.block([[zero, one], [-inverse @ stiffness, -inverse @ rate]]))
    return poles[poles.imag > 0]


SHEAR = 6 * 1.3**2 / (7 + 12 * 0.3 + 4 * 0.3**2)  # 6 (1 + ν)²/(7 + 12ν + 4ν²)
"""Shear coefficient of a circle, J. R. Hutchinson, Journal of Applied Mechanics 68 (2001)."""


@pytest.mark.slow
def test_timoshenko_rotor() -> None:
    """Frequencies and damping over the speed, with shear, rotary inertia and gyroscopic moments."""
    speeds = np.linspace(0.0, 3000.0, 13)
    result = poles_over_speed(rotor, speeds, num_modes=6)
    assert result.similarity.min() > 0.99
    axial = int(np.argmin(np.abs(result.damping_ratios[0])))  # this motion has no damper
    lateral = np.delete(result.poles, axial, axis=1)
    for k in (0, 4, 8, 12):
        exact, slender = (timoshenko_poles(speeds[k], shear) for shear in (SHEAR, 1e3))
        for pole in lateral[k]:
            closest = exact[np.argmin(np.abs(exact - pole))]
            assert abs(closest - pole) < 1.5e-3 * abs(pole)
            assert abs(closest.real - pole.real) < 1e-2 * abs(closest.real)
        # Without shear, the highest pole differs, and so does the one at rest (below).
        assert np.abs(slender - lateral[k, -1]).min() > 1e-2 * abs(lateral[k, -1])
    still = timoshenko_poles(0.0, SHEAR)
    assert np.abs(still - lateral[-1, -1]).min() > 1e-2 * abs(lateral[-1, -1])
    figure = mbd.plotting.campbell_diagram(
        result.speeds, result.frequencies, growing=result.growing
    )
    assert len(figure.axes) == 1


def blocks(speed: float) -> mbd.System:
    """Return two blocks, one on a spring whose frequency is the speed, the other at 50 rad/s."""
    ground, mass = mbd.Ground({"o": mbd.Frame()}), 2.0
    bodies = [mbd.RigidBody(n, mass, [0.1] * 3, frames={"o": mbd.Frame()}) for n in "ab"]
    rails = [mbd.prismatic(f"rail {b.name}", ground.frame("o"), b.frame("o")) for b in bodies]
    springs = [
        mbd.JointSpring(f"spring {b.name}", f"rail {b.name}", mass * w**2, damping=c)
        for b, w, c in zip(bodies, (speed, 50.0), (0.4, 30.0), strict=True)
    ]
    return mbd.System([ground, *bodies], rails, loads=springs)


@pytest.mark.parametrize("speeds", [[20.0, 45.0, 55.0, 90.0], [90.0, 30.0], [20.0]])
def test_modes_that_cross(speeds: list[float]) -> None:
    result = poles_over_speed(blocks, speeds, num_modes=2)
    light = int(np.argmin(result.damping_ratios[0]))
    exact = [[np.roots([2.0, 0.4, 2 * w * w])[0], np.roots([2.0, 30.0, 5000.0])[0]] for w in speeds]
    exact_poles = np.array(exact).real + 1j * np.abs(np.array(exact).imag)
    assert np.allclose(result.poles[:, [light, 1 - light]], exact_poles, rtol=1e-9)
    assert result.frequencies.shape == result.growing.shape == (len(speeds), 2)


def suspended(angle: float) -> mbd.System:
    """Return a body on three springs whose directions turn about (1, 1, 1)."""
    axis = np.ones(3) / np.sqrt(3)
    cross = np.array([[0, -1.0, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    outer = np.outer(axis, axis)
    frame = mbd.Frame(axes=outer + np.cos(angle) * (np.eye(3) - outer) + np.sin(angle) * cross)
    ground = mbd.Ground({"o": frame})
    body = mbd.RigidBody("body", 1.0, [1e-3] * 3, frames={"o": frame})
    stiffness = [100.0, 200.0, 300.0, 100.0, 100.0, 100.0]
    pair = ground.frame("o"), body.frame("o")
    return mbd.System([ground, body], loads=[mbd.Bushing("b", *pair, stiffness, [0.0] * 6)])


def test_shapes_that_change_too_much() -> None:
    """After a sixth of a revolution, the MAC of each mode and its nearest shape is (2/3)²."""
    with pytest.warns(AccuracyWarning, match="at 0 and 1.0472 rad/s of mode 1, 2, 3 differ"):
        result = poles_over_speed(suspended, [0.0, np.pi / 3], num_modes=3)
    assert np.allclose(result.similarity[1], 4 / 9, rtol=1e-6)
    assert poles_over_speed(suspended, [0.0, 0.5, 1.0], num_modes=3).similarity.min() > 0.5


def test_a_mode_that_stops_to_vibrate() -> None:
    """An overdamped mode has the frequency NaN; it is tracked again where it vibrates."""

    def block(speed: float) -> mbd.System:
        ground = mbd.Ground({"o": mbd.Frame()})
        body = mbd.RigidBody("body", 1.0, [0.1] * 3, frames={"o": mbd.Frame()})
        rail = mbd.prismatic("rail", ground.frame("o"), body.frame("o"))
        damping = 50.0 if speed == 2.0 else 1.0
        spring = mbd.JointSpring("spring", "rail", 400.0, damping=damping)
        return mbd.System([ground, body], [rail], loads=[spring])

    result = poles_over_speed(block, [1.0, 2.0, 3.0], num_modes=1)
    assert np.isnan(result.poles[1, 0])
    assert np.isclose(result.poles[2, 0], result.poles[0, 0])
    assert not result.growing.any()
    with pytest.raises(InputError, match="at most 1, which vibrate at 1"):
        poles_over_speed(block, [1.0], num_modes=2)
    with pytest.raises(InputError, match="increasing or decreasing"):
        poles_over_speed(block, [1.0, 3.0, 2.0], num_modes=1)
