"""Solutions: names, sensors against differences, reactions against Newton's law."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import Skin
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    STANDARD_GRAVITY,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    force,
    revolute,
    torque,
)
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import Solution
from tests.models.beams import slender_rod
from tests.models.particles import Particles


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run of a slider-crank whose flexible rod has a skin."""
    rod = slender_rod()
    nodes = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.15, 0, 0]])
    modes = np.stack(
        [rod.interface("big_end").motion[:3].T, rod.interface("small_end").motion[:3].T], axis=1
    )
    modes = np.concatenate([modes, rod.point("middle").modes[:, None]], axis=1)
    rod = rod.replace(skin=Skin(nodes, [[0, 1, 2]], modes))
    system = slider_crank(
        rod,
        crank_radius=0.15,
        crank_mass=0.36,
        piston_mass=0.0755,
        speed=150.0,
        gravity=(0, -STANDARD_GRAVITY, 0),
    )
    return simulate(system, t_end=0.01, dt=1e-5)


def test_names(run: Solution) -> None:
    assert run.names() == [
        "crank",
        "rod",
        "piston",
        "main",
        "crank pin",
        "piston pin",
        "guide",
        "drive",
    ]
    assert run.body("rod").eta.shape == (1001, 3)
    assert run.joint("guide").force.shape == (1001, 3)
    with pytest.raises(InputError, match=r"'crank', 'rod', 'piston'.*got 'road'"):
        run.body("road")
    with pytest.raises(ValueError, match=r"name of a joint or driver must be .* got 'rod'"):
        run.joint("rod")


@pytest.mark.parametrize("axes", ["global", "body", "crank", "triad"])
@pytest.mark.parametrize(
    ("body", "point"),
    [
        ("rod", "middle"),
        ("rod", "small_end"),
        ("rod", (0.15, 0, 0)),
        ("crank", (0.1, 0.02, 0.03)),
        ("crank", "pin"),
    ],
)
def test_sensors_are_derivatives_of_each_other(run: Solution, body: str, point, axes: str) -> None:
    rotation = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    x, v, a = (
        run.sensor(body, point, quantity) for quantity in ("position", "velocity", "acceleration")
    )
    dt = run.time[1]
    middle = slice(400, 600)
    # row k of the differences belongs to the instant k + 1
    dx = (x[2:] - x[:-2])[399:599] / (2 * dt)
    dv = (v[2:] - v[:-2])[399:599] / (2 * dt)
    assert np.allclose(v[middle], dx, atol=2e-4 * np.abs(v).max())
    assert np.allclose(a[middle], dv, atol=4e-3 * np.abs(a).max())
    in_axes = run.sensor(body, point, "velocity", axes=rotation if axes == "triad" else axes)
    assert np.allclose(np.linalg.norm(in_axes, axis=1), np.linalg.norm(v, axis=1))
    if axes == "triad":
        assert np.allclose(in_axes, v @ rotation)


def test_sensor_of_the_pin_is_that_of_the_rod(run: Solution) -> None:
    assert np.allclose(run.sensor("crank", "pin"), run.sensor("rod", "big_end"), atol=1e-12)
    assert np.allclose(run.sensor("piston", "pin"), run.sensor("rod", "small_end"), atol=1e-12)


def test_bad_sensors(run: Solution) -> None:
    for arguments, message in (
        (("rod", "midle"), "unknown point 'midle'; body 'rod' has 'middle'"),
        (("rod", (0.07, 0, 0)), "not a node of the skin"),
        (("rod", "middle", "jerk"), "^quantity must be one of"),
        (("wheel",), "^name of a body must be .* got 'wheel'"),
        (("crank", "elbow"), "^frame of body 'crank' must be one of 'main', 'pin'; got 'elbow'"),
    ):
        with pytest.raises(ValueError, match=message):
            run.sensor(*arguments)
    with pytest.raises(ValueError, match="orthonormal"):
        run.sensor("rod", "middle", axes=2 * np.eye(3))
    with pytest.raises(InputError, match="axes"):
        run.sensor("rod", "middle", axes=np.diag([1.0, 1.0, -1.0]))  # left-handed


def test_joint_forces_obey_newton(run: Solution) -> None:
    """The forces of pin and guide on the piston are m (a − g), with the gravity vector g."""
    pin = np.einsum("tij,tj->ti", _rod_axes(run), run.joint("piston pin").force)
    # the x, y and z axes of the guide are the global y, z and x axes
    guide = run.joint("guide").force @ np.array([[0, 1.0, 0], [0, 0, 1], [1, 0, 0]])
    a = run.sensor("piston", (0, 0, 0), "acceleration")
    gravity = np.array([0, -STANDARD_GRAVITY, 0])
    expected = 0.0755 * (a - gravity)
    assert np.allclose(pin + guide, expected, atol=2e-6 * np.abs(expected).max())


def _rod_axes(run: Solution) -> np.ndarray:
    """Return the axes of the deformed small end of the rod over time, shape (times, 3, 3)."""
    from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_matrix

    history = run.body("rod")
    motion = slender_rod().interface("small_end").motion[3:]
    return np.array(
        [
            rotation_matrix(p) @ exp_rotation(motion @ e)
            for p, e in zip(history.rotation, history.eta, strict=True)
        ]
    )


def test_drive_does_the_work() -> None:
    """Without damping the driver's power is the rate of the energy."""
    system = slider_crank(
        slender_rod(),
        crank_radius=0.15,
        crank_mass=0.36,
        piston_mass=0.0755,
        speed=150.0,
        damping_ratio=0.0,
    )
    undamped = simulate(system, t_end=0.02, dt=2e-5)
    power = 150.0 * undamped.joint("drive").moment[:, 2]
    work = np.concatenate([[0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(undamped.time))])
    total = undamped.energies().total
    assert np.allclose(work, total - total[0], atol=2e-3 * np.ptp(total))


def test_forces_and_torques_accelerate_a_free_body() -> None:
    block = RigidBody.box(
        "block", (0.2, 0.3, 0.4), mass=2.0, frames={"centre": Frame(), "side": Frame((0.1, 0, 0))}
    )
    loads = [
        force("push", block.frame("centre"), (4.0, 0, 0)),
        torque("twist", block.frame("side"), (0, 0, 0.1)),
    ]
    run = simulate(System([block], loads=loads), t_end=1.0, dt=1e-3)
    assert np.isclose(run.body("block").position[-1, 0], 0.5 * 4.0 / 2.0, rtol=1e-9)
    Jz = 2.0 / 12 * (0.04 + 0.09)
    assert np.isclose(run.body("block").omega[-1, 2], 0.1 / Jz, rtol=1e-9)


@pytest.mark.parametrize("start", [0.0, -0.15])
def test_a_free_body_falls(start: float) -> None:
    """The frame is at the centre of mass or beside it; weight and inertia cancel."""
    body = FlexibleBody("rod", slender_rod(start=start))
    system = System([body], gravity=(0, 0, -STANDARD_GRAVITY))
    run = simulate(system, t_end=0.1, dt=1e-3, tolerance=1e-12)
    fallen = run.body("rod").position[-1]
    assert np.allclose(fallen, [0, 0, -0.5 * STANDARD_GRAVITY * 0.1**2], atol=1e-12)


def test_a_pendulum_swings_at_its_frequency_and_keeps_its_energy() -> None:
    ground = Ground({"o": Frame()})
    bob = RigidBody.cylinder(
        "bob",
        0.05,
        0.1,
        mass=1.0,
        centre=(0, -1.0, 0),
        frames={"o": Frame()},
        rotation=(1, 0, 0, 0.005),
    )
    system = System(
        [ground, bob],
        [revolute("o", ground.frame("o"), bob.frame("o"))],
        gravity=(0, -STANDARD_GRAVITY, 0),
    )
    run = simulate(system, t_end=4.2, dt=1e-3)
    angle = run.joint("o").rotation
    k = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = run.time[k] + angle[k] / (angle[k] - angle[k + 1]) * np.diff(run.time)[k]
    J = 1.0 + 0.5 * 0.05**2
    assert np.isclose(np.diff(crossings)[0], 2 * np.pi * np.sqrt(J / STANDARD_GRAVITY), rtol=2e-5)
    energies = run.energies()
    assert np.ptp(energies.total) < 1e-6 * np.ptp(energies.kinetic) + 1e-9


def test_saved_steps(run: Solution) -> None:
    thin = simulate(run.system, t_end=1e-3, dt=1e-5, stride=7)
    assert thin.time[0] == 0 and np.isclose(thin.time[-1], 1e-3)
    assert len(thin) == 1 + 100 // 7 + 1  # start, every 7th step, and the last step
    assert np.array_equal(thin.q[1], run.q[7])


def test_a_sensor_anywhere_on_a_body_without_modes() -> None:
    """A reduced body without elastic coordinates is rigid: every point of it is known."""
    lump = Particles(2).body().rigid()
    body = FlexibleBody("lump", lump, position=(1.0, 2.0, 3.0))
    run = simulate(System([body], gravity=(0.0, 0.0, -9.81)), t_end=1e-3, dt=1e-3)
    point = np.array([0.3, -0.2, 0.1])
    positions = run.sensor("lump", point)
    np.testing.assert_allclose(positions[0], np.array([1.0, 2.0, 3.0]) + point, atol=1e-12)
