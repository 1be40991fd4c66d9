"""Ready mechanisms: the slider-crank and the inline engine, with joints that are not redundant.

The crank turns about z, the slider moves along x.  Rod and bores come from the reduced body: no
length is typed twice.  In space a planar slider-crank closes without redundancy with a revolute
main bearing, a
cylindrical crank pin, a spherical piston pin and a prismatic guide: 18 − 17 = 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.checks import (
    array,
    flag,
    function,
    instance,
    integer,
    items,
    memory,
    names,
    number,
    refuse,
)
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanisms.gas import AMBIENT_PRESSURE, FourStrokePressure
from dolfinx_mbd.mechanisms.kinematics import SliderCrank
from dolfinx_mbd.multibody.model.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.multibody.model.ground import Ground
from dolfinx_mbd.multibody.model.joints import (
    Driver,
    Joint,
    constant_speed,
    cylindrical,
    prismatic,
    revolute,
    spherical,
)
from dolfinx_mbd.multibody.model.loads import JointCoordinate, JointLoad
from dolfinx_mbd.multibody.model.protocol import Body, Frame
from dolfinx_mbd.multibody.model.shapes import Shape, box_shape, cylinder_shape
from dolfinx_mbd.multibody.system import System

__all__ = ["inline_engine", "linear_torque", "rigid_rod", "rod_length", "slider_crank"]

Array = NDArray[np.float64]

#: Axes of a frame whose z is the global x, the slider's line.
ALONG_X = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])

#: How far (rad) bores may be off parallel and off square to the rod; a mesh is symmetric to less.
_OFF = 1e-3

_ENDS = ("big_end", "small_end")

Torque = Callable[[float, float, float], float]


def rigid_rod(
    length: float,
    mass: float,
    *,
    centre: float | None = None,
    inertia: float | None = None,
    thickness: float = 0.0,
    name: str = "rod",
) -> ReducedBody:
    """A rod without elastic coordinates along x, with interfaces ``big_end`` and ``small_end``.

    Args:
        length: Between the bores, m.
        mass: kg.
        centre: Distance of the centre of mass from the big end, m; None: half the length.
        inertia: About z through the centre of mass, kg m²; None: a uniform slender rod.
        thickness: Of the rod across, m; it gives the inertia about its own axis.
        name: The body's name.

    Raises:
        InputError: An argument is unusable.
    """
    length = number("length", length, positive=True, unit="m")
    mass = number("mass", mass, positive=True, unit="kg")
    width = number("thickness", thickness, low=0.0, unit="m")
    x = 0.5 * length if centre is None else number("centre", centre, unit="m")
    J = mass * length * length / 12 if inertia is None else inertia
    J = number("inertia", J, low=0.0, unit="kg m²")
    second = np.diag([J + mass * x * x, *[mass * width * width / 12] * 2])
    ends = tuple(
        Interface(end, "rigid", np.array([at, 0.0, 0.0]), np.eye(3), np.zeros((6, 0)))
        for end, at in zip(_ENDS, (0.0, length), strict=True)
    )
    return ReducedBody.from_arrays(
        name=name,
        total_mass=mass,
        first_moments=[[mass * x, 0.0, 0.0]],
        second_moments=second[None, None],
        stiffness=np.zeros((0, 0)),
        interfaces=ends,
        reference="rigid",
    )


def rod_length(rod: ReducedBody, ends: tuple[str, str] = _ENDS) -> float:
    """Distance between the reference points of the rod's interfaces, m.

    Raises:
        InputError: The rod is not a reduced body, has no such interfaces, or they are the same.
    """
    instance("rod", rod, ReducedBody, "reduce(...).body or ReducedBody.load(path)")
    if len(names("ends", ends)) != 2:
        refuse("ends", ends, "the names of two interfaces")
    big, small = (rod.interface(end) for end in ends)
    return float(np.linalg.norm(small.point - big.point))


def _placed(
    rod: ReducedBody, ends: tuple[str, str], pin: Array, angle: float
) -> tuple[Array, Array]:
    """Position and rotation that put the big end on the pin, the rod at an angle to x."""
    big, small = (rod.interface(end) for end in ends)
    along = (small.point - big.point) / rod_length(rod, ends)
    bore = big.axes[:, 2]
    if abs(along @ bore) > _OFF or np.linalg.norm(np.cross(bore, small.axes[:, 2])) > _OFF:
        raise InputError(
            f"rod {rod.name!r}: the bores must be parallel and perpendicular to the line between "
            f"them; axes are {bore} and {small.axes[:, 2]}. Give the interfaces' axes when the rod "
            "is reduced"
        )
    across = np.cross(bore, along) / np.linalg.norm(np.cross(bore, along))
    inside = np.column_stack([along, across, np.cross(along, across)])
    direction = np.array([np.cos(angle), np.sin(angle), 0.0])
    outside = np.column_stack([direction, np.cross([0, 0, 1.0], direction), [0, 0, 1.0]])
    rotation = outside @ inside.T
    return pin - rotation @ big.point, rotation


def _crank(
    radius: float,
    mass: float,
    inertia: float | None,
    pins: dict[str, tuple[float, float]],
    angle: float,
) -> RigidBody:
    """A balanced crank with pins at (angle, z); its inertia about z defaults to that of a disc."""
    radius = number("crank_radius", radius, positive=True, unit="m")
    mass = number("crank_mass", mass, positive=True, unit="kg")
    Jz = 0.5 * mass * radius * radius if inertia is None else inertia
    Jz = number("crank_inertia", Jz, positive=True, unit="kg m²")
    frames = {"main": Frame()}
    for name, (at, z) in pins.items():
        frames[name] = Frame((radius * np.cos(at), radius * np.sin(at), z))
    shape = _crank_shape(radius, list(pins.values()))
    rotation = [np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)]
    moments = [0.75 * Jz, 0.75 * Jz, Jz]
    return RigidBody("crank", mass, moments, frames=frames, rotation=rotation, shape=shape)


def _crank_shape(radius: float, pins: list[tuple[float, float]]) -> Shape:
    """Pins between webs, and the shaft between and beyond them; what is drawn, not what weighs."""
    half, web = 0.30 * radius, 0.12 * radius
    parts, edges = [], []
    for at, z in sorted(pins, key=lambda pin: pin[1]):
        c, s = np.cos(at), np.sin(at)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        parts.append(cylinder_shape(0.25 * radius, 2 * half, 2, (radius * c, radius * s, z)))
        for side in (-1, 1):
            centre = (0.5 * radius, 0.0, side * (half + 0.5 * web))
            box = box_shape((1.6 * radius, 0.6 * radius, web), centre)
            parts.append(Shape(box.points @ turn.T + (0.0, 0.0, z), box.triangles))
        edges += [z - half - web, z + half + web]
    edges = [edges[0] - radius, *edges, edges[-1] + radius]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end > start:
            middle = (0.0, 0.0, 0.5 * (start + end))
            parts.append(cylinder_shape(0.3 * radius, end - start, 2, middle))
    return functools.reduce(Shape.__add__, parts)


def linear_torque(stall: float, no_load_speed: float) -> Torque:
    """Torque of a motor whose characteristic is a line: M = M₀ (1 − ω/ω₀).

    The torque law of the engine paper, which prints M₀ = −170000 N mm and ω₀ = 100 without units.

    Args:
        stall: M₀, N m, at rest.
        no_load_speed: ω₀, rad/s, at which it vanishes; beyond, the motor brakes.

    Raises:
        InputError: An argument is not a number, or the no-load speed is zero.
    """
    stall, no_load_speed = number("stall", stall), number("no_load_speed", no_load_speed)
    if no_load_speed == 0:
        refuse("no_load_speed", no_load_speed, "a number that is not zero, in rad/s")

    def torque(t: float, angle: float, speed: float) -> float:
        return stall * (1.0 - speed / no_load_speed)

    return torque


def _check_drive(speed: float | None, torque: Torque | float | None) -> None:
    if (speed is None) == (torque is None):
        raise InputError("give either the crank's speed (rad/s) or the torque that drives it (N m)")
    if speed is not None:
        number("speed", speed, unit="rad/s")
    elif not callable(torque):
        number("torque", torque, unit="N m")


def _drive(
    speed: float | None, torque: Torque | float | None, angle: float
) -> tuple[list[Driver], list[JointLoad]]:
    if speed is not None:
        return [Driver("drive", "main", constant_speed(speed, angle), offset=0.0)], []
    assert torque is not None
    return [], [JointLoad("drive", "main", "rotation", torque)]


def slider_crank(
    rod: ReducedBody,
    *,
    crank_radius: float,
    crank_mass: float,
    piston_mass: float,
    crank_inertia: float | None = None,
    speed: float | None = None,
    torque: Torque | float | None = None,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    ends: tuple[str, str] = _ENDS,
) -> System:
    """A slider-crank: bodies ``crank``, ``rod``, ``piston``; joints ``main``, ``crank pin``,
    ``piston pin``, ``guide``.

    Args:
        rod: The rod; with no elastic coordinates (:meth:`ReducedBody.rigid`) it is rigid.
        crank_radius: m.
        crank_mass: kg.
        piston_mass: kg.
        crank_inertia: About the shaft, kg m²; None: a disc of the crank radius.
        speed: Constant speed of the driven crank, rad/s; the driver is named ``drive``.
        torque: Or the torque on the crank, N m: a number or ``torque(t, angle, speed)``.
        angle: Crank angle at the start, rad; 0 is top dead centre.
        gravity: Global, m/s².
        damping_ratio: Of the rod's modes (:class:`FlexibleBody`).
        ends: The rod's interfaces at the crank and at the piston.

    Raises:
        InputError: An argument is unusable, the rod's bores do not fit a planar mechanism, or not
            exactly one of speed and torque is given.
    """
    _check_drive(speed, torque)
    angle = number("angle", angle, unit="rad")
    rod_length(rod, ends)
    ground = Ground({"main": Frame(), "guide": Frame((0.0, 0.0, 0.0), ALONG_X)})
    crank = _crank(crank_radius, crank_mass, crank_inertia, {"pin": (0.0, 0.0)}, angle)
    parts, joints = _cylinder(
        rod,
        ground,
        crank,
        "pin",
        "guide",
        "",
        crank_radius,
        angle,
        0.0,
        piston_mass,
        None,
        damping_ratio,
        ends,
    )
    joints = [revolute("main", ground.frame("main"), crank.frame("main")), *joints]
    drivers, loads = _drive(speed, torque, angle)
    return System([ground, crank, *parts], joints, drivers=drivers, loads=loads, gravity=gravity)


def _cylinder(
    rod: ReducedBody,
    ground: Ground,
    crank: RigidBody,
    pin: str,
    guide: str,
    suffix: str,
    radius: float,
    angle: float,
    z: float,
    piston_mass: float,
    bore: float | None,
    damping_ratio: float | None,
    ends: tuple[str, str],
) -> tuple[list[FlexibleBody | RigidBody], list[Joint]]:
    """Rod and piston of one cylinder whose throw stands at an angle, and their three joints."""
    motion = SliderCrank(radius, rod_length(rod, ends)).motion(angle)
    at = np.array([radius * np.cos(angle), radius * np.sin(angle), z])
    position, rotation = _placed(rod, ends, at, float(motion.rod_angle))
    flexible = FlexibleBody(f"rod{suffix}", rod, position, rotation, damping_ratio)
    size = 0.5 * bore if bore is not None else 0.6 * radius
    piston = RigidBody.cylinder(
        f"piston{suffix}",
        size,
        1.2 * size,
        axis=0,
        mass=piston_mass,
        frames={"pin": Frame(), "guide": Frame((0.0, 0.0, 0.0), ALONG_X)},
        position=(float(motion.slider), 0.0, z),
    )
    joints = [
        cylindrical(f"crank pin{suffix}", crank.frame(pin), flexible.frame(ends[0])),
        spherical(f"piston pin{suffix}", flexible.frame(ends[1]), piston.frame("pin")),
        prismatic(f"guide{suffix}", ground.frame(guide), piston.frame("guide")),
    ]
    return [flexible, piston], joints


CYLINDER = 30_000
"""Memory of the bodies and joints of a cylinder, at least, bytes."""


def firing_angles(cylinders: int, order: Sequence[int]) -> Array:
    """Crank angle at which each cylinder fires, (cylinders,), rad, equally spaced over two turns.

    Raises:
        InputError: The order does not name every cylinder once.
    """
    order = items("firing_order", order, (int, np.integer))
    if sorted(order) != list(range(1, cylinders + 1)):
        refuse("firing_order", order, f"the cylinders 1 ... {cylinders} once each")
    angles = np.zeros(cylinders)
    for k, cylinder in enumerate(order):
        angles[cylinder - 1] = 4 * np.pi * k / cylinders
    return angles


def _throws(firing: Array, throws: ArrayLike | None) -> Array:
    if throws is None:
        return np.mod(-firing, 2 * np.pi)
    angles: Array = array("throw_angles", throws, firing.shape)
    off = np.abs(np.exp(1j * (angles + firing)) - 1)
    if off.max() > 1e-9:
        k = int(np.argmax(off))
        raise InputError(
            f"cylinder {k + 1} fires at {np.rad2deg(firing[k]):.6g}°, where its throw "
            f"({np.rad2deg(angles[k]):.6g}°) is not at top dead centre; it needs a throw of "
            f"{np.rad2deg(np.mod(-firing[k], 2 * np.pi)):.6g}° or another firing order",
            argument="throw_angles",
            value=throws,
        )
    return angles


def inline_engine(
    rod: ReducedBody,
    *,
    cylinders: int = 3,
    crank_radius: float = 0.040,
    crank_mass: float = 0.952,
    piston_mass: float = 0.214,
    crank_inertia: float | None = None,
    bore: float = 0.070,
    spacing: float = 0.080,
    firing_order: Sequence[int] | None = None,
    throw_angles: ArrayLike | None = None,
    speed: float | None = None,
    torque: Torque | float | None = None,
    pressure: Callable[[float], ArrayLike] | None = None,
    gas: bool = True,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    ends: tuple[str, str] = _ENDS,
) -> System:
    """A four-stroke inline engine: a rigid crank, and for cylinder k ``rod k`` and ``piston k``.

    Joints are ``main``, ``crank pin k``, ``piston pin k`` and ``guide k``; loads ``gas k``; the
    driver (or the torque) ``drive``.  Crank angle 0 is the firing top dead centre of the first
    cylinder in the order.

    Args:
        rod: One reduced rod for all cylinders.
        cylinders: Their number.
        crank_radius: m.  Default, as masses: the three-cylinder engine of the engine paper.
        crank_mass: kg.
        piston_mass: kg.
        crank_inertia: About the shaft, kg m²; None: a disc of the crank radius.
        bore: Of the cylinders, m; the gas acts on its area.
        spacing: Between cylinders along the shaft, m.
        firing_order: Cylinders by number; None: 1 3 2 for three cylinders, 1 3 4 2 for four, else
            in turn.
        throw_angles: Of the crank, one a cylinder, rad; None: those that the firing order asks for.
        speed: Constant speed of the driven crank, rad/s.
        torque: Or the torque on the crank, N m: a number or ``torque(t, angle, speed)``.
        pressure: Absolute gas pressure (Pa) over the crank angle (rad) from firing top dead centre,
            of period 4π; None: :class:`FourStrokePressure` with its defaults (peak 91 bar).
        gas: Whether the gas acts at all.
        angle: Crank angle at the start, rad.
        gravity: Global, m/s².
        damping_ratio: Of the rods' modes (:class:`FlexibleBody`).
        ends: The rod's interfaces at the crank and at the piston.

    Raises:
        InputError: An argument is unusable, firing order and throws contradict each other, the
            rod's bores do not fit, or not exactly one of speed and torque is given.
    """
    _check_drive(speed, torque)
    cylinders = integer("cylinders", cylinders, low=1)
    memory("cylinders", cylinders, CYLINDER * cylinders)
    bore = number("bore", bore, positive=True, unit="m")
    spacing, angle = number("spacing", spacing, unit="m"), number("angle", angle, unit="rad")
    length = rod_length(rod, ends)
    if pressure is not None:
        function("pressure", pressure, "pressure(angle), for example FourStrokePressure(...)")
    if firing_order is None:
        firing_order = {3: (1, 3, 2), 4: (1, 3, 4, 2)}.get(
            cylinders, tuple(range(1, cylinders + 1))
        )
    firing = firing_angles(cylinders, firing_order)
    throws = _throws(firing, throw_angles)
    heights = spacing * (np.arange(cylinders) - 0.5 * (cylinders - 1))
    numbers = range(1, cylinders + 1)

    guides = {
        f"guide {k}": Frame((0.0, 0.0, z), ALONG_X) for k, z in zip(numbers, heights, strict=True)
    }
    ground = Ground({"main": Frame(), **guides})
    pins = {f"pin {k}": (at, z) for k, at, z in zip(numbers, throws, heights, strict=True)}
    crank = _crank(crank_radius, crank_mass, crank_inertia, pins, angle)
    drivers, loads = _drive(speed, torque, angle)
    bodies: list[Body] = [ground, crank]
    joints = [revolute("main", ground.frame("main"), crank.frame("main"))]
    curve = pressure
    if flag("gas", gas) and curve is None:
        curve = FourStrokePressure(bore, crank_radius, length)
    for k, at, z, fires in zip(numbers, throws, heights, firing, strict=True):
        parts, own = _cylinder(
            rod,
            ground,
            crank,
            f"pin {k}",
            f"guide {k}",
            f" {k}",
            crank_radius,
            angle + at,
            z,
            piston_mass,
            bore,
            damping_ratio,
            ends,
        )
        bodies += parts
        joints += own
        if gas and curve is not None:
            loads.append(_gas(f"gas {k}", f"guide {k}", curve, fires, bore))
    return System(bodies, joints, drivers=drivers, loads=loads, gravity=gravity)


def _gas(
    name: str, guide: str, pressure: Callable[[float], ArrayLike], fires: float, bore: float
) -> JointLoad:
    """Gas force on a piston towards the crank, over the ambient pressure in the crankcase."""
    area = np.pi * bore**2 / 4
    at = pressure.at if isinstance(pressure, FourStrokePressure) else pressure

    def value(t: float, angle: float, rate: float) -> float:
        return -area * (float(at(angle - fires)) - AMBIENT_PRESSURE)  # type: ignore[arg-type]

    return JointLoad(name, guide, "displacement", value, of=JointCoordinate("main", "rotation"))
