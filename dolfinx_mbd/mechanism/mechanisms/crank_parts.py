"""Parts of crank mechanisms: cranks, rods, pistons and the joints between them.

The crank rotates about z, and the slider moves along x.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.checks import instance, names, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import joints
from dolfinx_mbd.mechanism.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.mechanism.joints import Driver, FrameRef, Joint, JointClearance
from dolfinx_mbd.mechanism.loads import JointLoad
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from dolfinx_mbd.mechanism.motions import Motion
from dolfinx_mbd.mechanism.protocol import Body, Frame
from dolfinx_mbd.mechanism.shapes import Shape, box_shape, cylinder_shape

ALONG_X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Axes of a frame whose z axis is the global x axis, for guides along x."""

ENDS = ("big_end", "small_end")
"""Default names of the interfaces of a rod at the crank and at the piston."""

Torque = Callable[[float, float, float], float]
"""Torque on the crank, N m, as a function of time (s), crank angle (rad) and speed (rad/s)."""

# Largest angle by which bores may deviate from parallel to each other and normal to the rod, rad
_MAX_MISALIGNMENT = 1e-3


def rigid_rod(
    length: float,
    mass: float,
    *,
    centre: float | None = None,
    inertia: float | None = None,
    thickness: float = 0.0,
    name: str = "rod",
) -> ReducedBody:
    """Return a rod without elastic coordinates, with interfaces ``big_end`` and ``small_end``.

    The rod lies along x; its big end is at the origin.

    Args:
        length: Distance between the bores, m.
        mass: Mass, kg.
        centre: Distance of the centre of mass from the big end, m; by default half the length.
        inertia: Moment of inertia about z through the centre of mass, kg m²; by default the value
            of a uniform bar with this length and thickness.
        thickness: Width of the rod, m, from which the inertia about x is computed.
        name: Name of the body.

    Raises:
        InputError: An argument is invalid.
    """
    length = number("length", length, positive=True, unit="m")
    mass = number("mass", mass, positive=True, unit="kg")
    width = number("thickness", thickness, low=0.0, unit="m")
    x = 0.5 * length if centre is None else number("centre", centre, unit="m")
    across = mass * width * width / 12  # ∫ρ y² and ∫ρ z²
    J = mass * length * length / 12 + across if inertia is None else inertia
    J = number("inertia", J, low=across, unit="kg m²")
    second = np.diag([J - across + mass * x * x, across, across])
    points = (ENDS[0], np.zeros(3)), (ENDS[1], np.array([length, 0.0, 0.0]))
    return ReducedBody.from_arrays(
        name=name,
        total_mass=mass,
        first_moments=[[mass * x, 0.0, 0.0]],
        second_moments=second[None, None],
        stiffness=np.zeros((0, 0)),
        interfaces=[Interface(end, "rigid", p, np.eye(3), np.zeros((6, 0))) for end, p in points],
        reference="rigid",
    )


def rod_length(rod: ReducedBody, ends: tuple[str, str] = ENDS) -> float:
    """Return the distance between the reference points of two interfaces of a rod, m.

    Args:
        rod: The rod.
        ends: Names of the interfaces at the crank and at the piston.

    Raises:
        InputError: The rod is not a reduced body or does not have two such interfaces.
    """
    instance("rod", rod, ReducedBody, "reduce(...).body or ReducedBody.load(path)")
    big, small = rod_ends(rod, ends)
    return float(np.linalg.norm(small.point - big.point))


def rod_ends(rod: ReducedBody, ends: tuple[str, str]) -> tuple[Interface, Interface]:
    """Return the interfaces of a rod at the crank and at the piston."""
    if len(names("ends", ends)) != 2:
        reject("ends", ends, "the names of two interfaces")
    big, small = (rod.interface(end) for end in ends)
    return big, small


def create_crank(
    radius: float,
    mass: float,
    inertia: tuple[float | None, float],
    pins: Mapping[str, tuple[float, float]],
    angle: float,
    journals: Mapping[str, float] = MappingProxyType({"main": 0.0}),
) -> RigidBody:
    """Return a balanced crank.

    `pins` maps the frame name of each pin to its angle (rad) and its position along the shaft (m),
    and `journals` that of each main journal to its position. `inertia` contains the moments of
    inertia of the crank (by default that of a solid disc with this mass and radius) and of the
    flywheel about the shaft, kg m².
    """
    radius = number("crank_radius", radius, positive=True, unit="m")
    mass = number("crank_mass", mass, positive=True, unit="kg")
    Jz = 0.5 * mass * radius * radius if inertia[0] is None else inertia[0]
    Jz = number("crank_inertia", Jz, positive=True, unit="kg m²") + inertia[1]
    frames = {key: Frame((0.0, 0.0, z)) for key, z in journals.items()}
    for name, (pin_angle, z) in pins.items():
        frames[name] = Frame((radius * np.cos(pin_angle), radius * np.sin(pin_angle), z))
    shape = _crank_shape(radius, sorted(pins.values(), key=lambda pin: pin[1]))
    rotation = [np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]
    moments = [0.75 * Jz, 0.75 * Jz, Jz]  # x and y: an estimate, for blocks that tilt the shaft
    return RigidBody("crank", mass, moments, frames=frames, rotation=rotation, shape=shape)


def _crank_shape(radius: float, pins: list[tuple[float, float]]) -> Shape:
    """Return pins, webs and shaft for drawings; they do not determine the mass.

    `pins` contains angle (rad) and position (m) of each pin along the shaft.
    """
    half, web = 0.30 * radius, 0.12 * radius  # half the length of a pin, and width of a web
    parts, edges = [], [pins[0][1] - half - web - radius]  # starts and ends of pieces of shaft
    for pin_angle, z in pins:
        rotation = rotation_about_z(pin_angle)
        x, y, _ = radius * rotation[:, 0]
        parts.append(cylinder_shape(0.25 * radius, 2 * half, centre=(x, y, z)))
        for side in (-1, 1):
            centre = (0.5 * radius, 0.0, side * (half + 0.5 * web))
            box = box_shape((1.6 * radius, 0.6 * radius, web), centre)
            parts.append(Shape(box.points @ rotation.T + (0.0, 0.0, z), box.triangles))
        edges += [z - half - web, z + half + web]
    edges.append(edges[-1] + radius)
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end > start:
            middle = (0.0, 0.0, 0.5 * (start + end))
            parts.append(cylinder_shape(0.3 * radius, end - start, centre=middle))
    return functools.reduce(Shape.__add__, parts)


def rotation_about_z(angle: float) -> Array:
    """Return the rotation matrix (3, 3) of an angle (rad) about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def linear_torque(stall: float, no_load_speed: float) -> Torque:
    """Return the torque of a motor with a linear characteristic, M = M₀ (1 − ω/ω₀).

    If M₀ and ω₀ have the same sign, the motor drives between standstill and ω₀, and brakes at a
    higher speed and in reverse. With opposite signs, the torque drives the crank away from ω₀.

    The paper of the three-cylinder engine (Mathematics 13 (2025) 2797) states M₀ = −170000 N mm and
    ω₀ = 100 without a unit, which 6000 rpm in its text show to be revolutions per second. Hence use
    170 N m and 2π·100 rad/s for a crank with positive speed; see the demo `papers/engine_torque`.

    Args:
        stall: Torque M₀ at rest, N m.
        no_load_speed: Speed ω₀ without torque, rad/s.

    Raises:
        InputError: An argument is not a number, or the no-load speed is zero.
    """
    stall, no_load_speed = number("stall", stall), number("no_load_speed", no_load_speed)
    if no_load_speed == 0:
        reject("no_load_speed", no_load_speed, "a number that is not zero, in rad/s")

    def torque(t: float, angle: float, speed: float) -> float:
        return stall * (1.0 - speed / no_load_speed)

    return torque


def guide_frame(offset: float, z: float = 0.0, bank: float = 0.0) -> Frame:
    """Return the frame of the ground or block along whose z axis the pin of a piston moves.

    The line of the pin has the distance `offset` (m) from the axis of the shaft and the position
    `z` (m) along it. `bank` (rad) is the angle of the line; see `CylinderParts.create`.
    """
    A = rotation_about_z(bank)
    return Frame(A @ (0.0, offset, z), A @ ALONG_X)


def create_drive(
    speed: float | Motion | None,
    torque: Torque | float | None,
    angle: float,
    joint: str = "main",
) -> tuple[list[Driver], list[JointLoad]]:
    """Return a list with the driver and one with the torque of a joint; one of the lists is empty.

    Driver or torque is named ``drive``. Exactly one of `speed` (rad/s, or a motion) and `torque`
    (N m, or a function) is not None. `angle` (rad) is the initial angle for a number `speed`.
    """
    if (speed is None) == (torque is None):
        raise InputError("give either the crank's speed (rad/s) or the torque that drives it (N m)")
    if callable(speed):
        return [Driver("drive", joint, speed, offset=0.0)], []
    if speed is not None:
        speed = number("speed", speed, unit="rad/s")
        return [Driver("drive", joint, joints.constant_speed(speed, angle), offset=0.0)], []
    if torque is None or not callable(torque):
        torque = number("torque", torque, unit="N m")
    return [], [JointLoad("drive", joint, "rotation", torque)]


@dataclass(frozen=True)
class CylinderParts:
    """Data of the rods and pistons that all cylinders of a mechanism share."""

    rod: ReducedBody
    ends: tuple[str, str]  # names of the rod's interfaces at the crank and at the piston
    damping_ratio: float | None  # of the rod's modes; None: the default of `FlexibleBody`
    stiffening: bool | None  # whether geometric stiffening acts; None: if the rod has its data
    crank_radius: float  # m
    piston_mass: float  # kg
    piston_radius: float  # m
    pin_offset: float = 0.0  # m
    bearings: Mapping[str, JointClearance | None] = MappingProxyType({})  # see `inline_engine`

    @property
    def kinematics(self) -> SliderCrank:
        """The motion of crank, rod and piston pin."""
        return SliderCrank(self.crank_radius, rod_length(self.rod, self.ends), self.pin_offset)

    def create(
        self,
        guide: FrameRef,
        pin: FrameRef,
        suffix: str,
        angle: float,
        z: float,
        bank: float = 0.0,
        guide_axes: Array | None = None,
    ) -> tuple[list[Body], list[Joint]]:
        """Return the bodies and the joints of a cylinder at a position z (m) along the shaft.

        `guide` is the frame that guides the piston along its z axis, and `guide_axes` are its axes,
        by default those of `guide_frame`. `pin` is the frame of the crank pin. All names end with
        `suffix`. `angle` (rad) is the initial angle of the pin and `bank` (rad) the angle of the
        cylinder's axis about the shaft, both measured from the x axis.
        """
        r, A = self.crank_radius, rotation_about_z(bank)
        motion = self.kinematics.motion(angle - bank)
        centre = np.array([r * np.cos(angle), r * np.sin(angle), z])
        position, rotation = self._rod_pose(centre, bank + float(motion.rod_angle))
        rod = FlexibleBody(
            f"rod{suffix}", self.rod, position, rotation, self.damping_ratio, self.stiffening
        )
        big, small = (rod.frame(end) for end in self.ends)
        axes = ALONG_X if guide_axes is None else A.T @ guide_axes
        piston = RigidBody.cylinder(
            f"piston{suffix}",
            self.piston_radius,
            1.2 * self.piston_radius,
            axis=0,
            mass=self.piston_mass,
            frames={"pin": Frame(), "guide": Frame((0.0, 0.0, 0.0), axes)},
            position=A @ (float(motion.slider), self.pin_offset, z),
            rotation=A,
        )
        pin_ends = pin, big
        if self.bearings.get("big_end") is not None:
            pin_ends = pin_ends[::-1]  # the first frame is the bore
        return [rod, piston], [
            joints.cylindrical(f"crank pin{suffix}", *pin_ends, self.bearings.get("big_end")),
            joints.spherical(
                f"piston pin{suffix}", small, piston.frame("pin"), self.bearings.get("small_end")
            ),
            joints.prismatic(f"guide{suffix}", guide, piston.frame("guide")),
        ]

    def _rod_pose(self, pin: Array, angle: float) -> tuple[Array, Array]:
        """Return position and rotation of a rod at `angle` to x, with its big end on the pin."""
        big, small = (self.rod.interface(end) for end in self.ends)
        x_axis = (small.point - big.point) / rod_length(self.rod, self.ends)
        bore = big.axes[:, 2]
        misalignment = float(np.linalg.norm(np.cross(bore, small.axes[:, 2])))
        if abs(x_axis @ bore) > _MAX_MISALIGNMENT or misalignment > _MAX_MISALIGNMENT:
            raise InputError(
                f"rod {self.rod.name!r}: the bores must be parallel and perpendicular to the line "
                f"between them; axes are {bore} and {small.axes[:, 2]}. Give the interfaces' axes "
                "in the reduction of the rod"
            )
        y_axis = np.cross(bore, x_axis) / np.linalg.norm(np.cross(bore, x_axis))
        rotation = rotation_about_z(angle) @ np.array([x_axis, y_axis, np.cross(x_axis, y_axis)])
        return pin - rotation @ big.point, rotation
