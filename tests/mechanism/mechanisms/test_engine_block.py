"""Engines with a block on mounts: balance, action and reaction, the limit of stiff mounts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms import (
    EngineBlock,
    EngineDesign,
    engine,
    engine_balance,
    inline_engine,
    rigid_rod,
)

# The inertia is that of two masses at the ends: 0.21 = 0.3 · 0.7
ROD = rigid_rod(length=0.137, mass=0.3, centre=0.3 * 0.137, inertia=0.3 * 0.21 * 0.137**2)
DESIGNS = {
    "one": EngineDesign(cylinders=1, pin_offset=0.004),
    "three": EngineDesign(spacing=0.08),
    "four": EngineDesign(cylinders=4, spacing=0.09),
    "vee": EngineDesign(cylinders=2, spacing=0.02, bank_angles=np.radians([-36.0, 40.0])),
}
# Four corners with y = ±0.2 m, and z = −0.3 m or 0.2 m
CORNERS = {f"mount_{k}": (-0.05, y, z) for k, (y, z) in enumerate(np.ndindex(2, 2))}
CORNERS = {name: (x, 0.4 * y - 0.2, 0.5 * z - 0.3) for name, (x, y, z) in CORNERS.items()}


def rigid_block(design: EngineDesign, mass: float = 40.0, **changes: Any) -> ReducedBody:
    """Return a rigid block with one main bearing, guides, heads and four mounts.

    `changes` contains the points and axes of further interfaces, or of interfaces that are moved.
    """
    places: dict[str, Any] = {"main_1": ((0.0, 0.0, 0.1), np.eye(3))}
    for k, (z, bank) in enumerate(zip(design.positions, design.bank_angles, strict=True)):
        c, s = np.cos(bank), np.sin(bank)
        for name, height in (("cylinder", 0.12), ("head", 0.2)):
            point = np.array([c, s, 0.0]) * height + np.array([-s, c, 0.0]) * design.pin_offset
            rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
            axes = rotation @ np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])
            places[f"{name}_{k + 1}"] = point + np.array([0.0, 0.0, z]), axes
    places |= {name: (point, np.eye(3)) for name, point in CORNERS.items()}
    places |= changes
    interfaces = [
        Interface(name, "rigid", np.array(point, dtype=float), np.array(axes), np.zeros((6, 0)))
        for name, (point, axes) in places.items()
    ]
    centre = np.array([0.08, 0.01, 0.02])
    return ReducedBody.from_arrays(
        name="block",
        total_mass=mass,
        first_moments=mass * centre[None],
        second_moments=mass * (np.outer(centre, centre) + np.diag([0.01, 0.02, 0.03]))[None, None],
        stiffness=np.zeros((0, 0)),
        interfaces=interfaces,
        reference="rigid",
    )


def mounts(stiffness: float, damping: float) -> dict[str, Any]:
    """Return the stiffness and damping of a mount at each corner of the block."""
    scales = np.array([1.0, 1.0, 1.0, 0.01, 0.01, 0.01])
    return {name: (stiffness * scales, damping * scales) for name in CORNERS}


def on_ground(system: mbd.System, run: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return force and moment about the origin of all mounts on the ground over time."""
    force, moment = np.zeros((2, len(run.time), 3))
    for name in CORNERS:
        history = run.element(f"mount {name}")
        force += history.first_force
        place = system.body("ground").frames[f"mount {name}"].point
        moment += history.first_moment + np.cross(place, history.first_force)
    return force, moment


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("one", True),
        ("three", False),
        ("four", False),
        ("vee", True),
        *(
            pytest.param(name, heads, marks=pytest.mark.slow)
            for name, heads in (("one", False), ("three", True), ("four", True), ("vee", False))
        ),
    ],
)
def test_shaking_forces_are_those_of_the_balance(name: str, heads: bool) -> None:
    """The mounts are stiff, and the gas pressure acts only inside the engine."""
    design, speed, count = DESIGNS[name], 150.0, 400
    head_names = [f"head_{k + 1}" for k in range(design.cylinders)] if heads else ()
    block = EngineBlock(rigid_block(design), heads=head_names)
    system = engine(ROD, design, block=block, mounts=mounts(1e10, 2e6), speed=speed)
    period = 2 * np.pi / speed
    first = count // 4 + 1  # without the first quarter: the start is sudden
    run = mbd.simulate(system, t_end=1.25 * period, dt=period / count)
    balance = engine_balance(design, ROD)
    scale = balance.oscillating_mass * design.crank_radius
    places = balance.force, balance.moment
    for values, expected in zip(on_ground(system, run), places, strict=True):
        # Complex amplitudes of orders 1 and 2, divided by ω², from a turn that starts at `first`
        lines = 2 * np.fft.rfft(values[first:], axis=0)[1:3, :2] / count / speed**2
        phase = np.exp(1j * 2 * np.pi * first / count * np.array([[1], [2]]))
        np.testing.assert_allclose(lines / phase, expected, rtol=0, atol=1e-3 * scale)


def test_mounts_carry_mass_times_acceleration_of_the_whole_engine() -> None:
    """The mounts are soft; gas, gravity and a torque on the crank act."""
    design = DESIGNS["vee"]
    block = EngineBlock(rigid_block(design, 12.0), heads=["head_1", "head_2"])
    arguments: dict[str, Any] = {"block": block, "mounts": mounts(2e5, 300.0), "angle": 0.4}
    gravity = np.array([-9.81, 1.0, 2.0])
    system = engine(ROD, design, torque=-30.0, gravity=gravity, **arguments)
    run = mbd.simulate(system, t_end=0.015, dt=2e-5, start={"main": 200.0})
    force, _ = on_ground(system, run)
    mass = 12.0 + design.crank_mass + 2 * (ROD.total_mass + design.piston_mass)
    total = mass * gravity - force
    # The impulse is the sum times the step, 2e-5 s
    change = np.concatenate([np.zeros((1, 3)), np.cumsum(0.5 * (total[1:] + total[:-1]), axis=0)])
    momenta = np.asarray(run.momenta())
    rise = momenta[:, :3] - momenta[0, :3]
    np.testing.assert_allclose(2e-5 * change, rise, rtol=0, atol=2e-4 * np.abs(rise).max())
    # the brake is on the ground, and the gas has no moment on the whole engine
    still = engine(ROD, design, torque=-30.0, **arguments)
    run = mbd.simulate(still, t_end=0.015, dt=2e-5, start={"main": 200.0})
    _, moment = on_ground(still, run)
    total = np.asarray(run.element("drive").moment) - moment
    change = np.concatenate([np.zeros((1, 3)), np.cumsum(0.5 * (total[1:] + total[:-1]), axis=0)])
    momenta = np.asarray(run.momenta())
    rise = momenta[:, 3:] - momenta[0, 3:]
    np.testing.assert_allclose(2e-5 * change, rise, rtol=0, atol=1e-4 * np.abs(rise).max())


@pytest.mark.parametrize("name", [pytest.param("one", marks=pytest.mark.slow), "vee"])
def test_stiff_mounts_are_an_engine_without_a_block(name: str) -> None:
    design, speed, dt = DESIGNS[name], 200.0, 2e-5
    block = rigid_block(design)
    systems = [
        inline_engine(ROD, design, speed=speed, angle=0.4),
        engine(ROD, design, block=block, mounts=mounts(1e11, 1e7), speed=speed, angle=0.4),
    ]
    runs = [mbd.simulate(system, t_end=0.012, dt=dt) for system in systems]
    late = slice(100, None)
    scale = np.abs(runs[0].joint("crank pin 1").force).max()
    for joint in ("crank pin 1", "piston pin 1"):
        expected = np.asarray(runs[0].joint(joint).force)[late]
        values = np.asarray(runs[1].joint(joint).force)[late]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-3 * scale)
    sizes = [np.linalg.norm(run.joint("guide 1").force, axis=1)[late] for run in runs]
    np.testing.assert_allclose(sizes[1], sizes[0], rtol=0, atol=1e-3 * scale)
    torques = [np.asarray(run.joint("drive").moment)[late, 2] for run in runs]
    size = np.abs(torques[0]).max()
    np.testing.assert_allclose(torques[1], torques[0], rtol=0, atol=2e-3 * size)


def test_blocks_that_do_not_fit() -> None:
    design = DESIGNS["vee"]
    supports = mounts(1e6, 1e3)
    wrong = [
        ({"main_1": ((0.001, 0.0, 0.1), np.eye(3))}, "main bearing 'main_1' of the block"),
        ({"main_1": ((0.0, 0.0, 0.1), np.diag([1.0, -1, -1]))}, "must be along the shaft"),
        ({"cylinder_2": rigid_place(design, 0)}, "off the axis of cylinder 2"),
        ({"cylinder_2": rigid_place(design, 0)}, r"point on it is InterfaceSpec\(point="),
        ({"head_1": rigid_place(design, 0, flip=True)}, "away from the shaft"),
        ({"main_2": ((0.0, 0.0, 0.2), np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]]))}, "axes of"),
    ]
    for changes, message in wrong:
        with pytest.raises(InputError, match=message):
            block = EngineBlock(rigid_block(design, **changes), heads=["head_1", "head_2"])
            engine(ROD, design, block=block, mounts=supports, speed=1.0)
    block = rigid_block(design)
    with pytest.raises(InputError, match="a block needs mounts"):
        engine(ROD, design, block=block, speed=1.0)
    with pytest.raises(InputError, match="mounts must be None"):
        engine(ROD, design, mounts=supports, speed=1.0)
    with pytest.raises(InputError, match="2 cylinders, cylinder_1, cylinder_2; the engine has 3"):
        engine(ROD, EngineDesign(), block=block, mounts=supports, speed=1.0)
    with pytest.raises(InputError, match="mount 'mount_1' must be"):
        engine(ROD, design, block=block, mounts={"mount_1": 1e6}, speed=1.0)  # type: ignore[dict-item]
    with pytest.raises(InputError, match="rubber"):
        engine(ROD, design, block=block, mounts={"rubber": (np.ones(6), np.ones(6))}, speed=1.0)


def rigid_place(design: EngineDesign, cylinder: int, flip: bool = False) -> Any:
    """Return the place and the axes of the guide of a cylinder."""
    interface = rigid_block(design).interface(f"cylinder_{cylinder + 1}")
    return interface.point, np.asarray(interface.axes) @ np.diag([1, -1, -1] if flip else [1, 1, 1])


def test_positions_of_cylinders() -> None:
    for arguments, reason in (
        ({"cylinders": 3, "spacing": 0.0}, "bore"),
        ({"cylinders": 2, "cylinder_positions": [0.1, 0.1]}, "bore"),
        (
            {"cylinders": 2, "spacing": 0.0, "bank_angles": np.radians([-45.0, 45.0])},
            "different throws",
        ),
    ):
        with pytest.raises(InputError, match=f"cylinders 1 and 2 are .*{reason}"):
            EngineDesign(**arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="spacing"):
        EngineDesign(spacing=-0.08)
    with pytest.raises(InputError, match="radial clearance"):
        mbd.Clearance(radial=-1e-5, law=mbd.ContactLaw(1e9))
