"""Four-stroke inline and V engines with a rigid or a reduced crank."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import instance, items, names, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.bodies import FlexibleBody, Ground, RigidBody
from dolfinx_mbd.mechanism.joints import Joint, JointClearance, fixed, point_on_line, revolute
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign, gas_force
from dolfinx_mbd.mechanism.mechanisms.gas import FourStrokePressure
from dolfinx_mbd.mechanism.mechanisms.gas_map import check_pressure
from dolfinx_mbd.mechanism.mechanisms.parts import (
    ENDS,
    CylinderParts,
    Torque,
    create_crank,
    create_drive,
    guide_frame,
    rod_length,
)
from dolfinx_mbd.mechanism.protocol import Body, Frame
from dolfinx_mbd.mechanism.system import System

BEARINGS = ("big_end", "small_end", "main")
_HINT = "reduce(...).body or ReducedBody.load(path), or a list of them"
_MISFIT = 1e-3  # largest distance of a pin or journal from its place, relative to the crank radius
_DISC = 4.0  # radius of the flywheel / crank radius


@dataclass(frozen=True, eq=False)
class EngineCrank:
    """A reduced crankshaft in an engine, with its journals.

    The shaft is along z, as that of `mbd.geometry.Crankshaft`. The interfaces at journals need axes
    whose z axis is along the shaft.

    Attributes:
        body: The crankshaft.
        mains: Names of the interfaces at the main journals, along the shaft; by default
            ``main_1``, ``main_2``, ...
        pins: Names of the interfaces at the pins; by default ``pin_1``, ``pin_2``, ... Each pin
            belongs to one cylinder, or to two successive cylinders.
        flange: Name of the interface to which the flywheel is fixed.
        journal_radii: Radius of the journals of the bearings ``main`` and ``big_end``, m, which
            must fit the bores of films and clearances; by default they are not checked.

    Raises:
        InputError: The body has no such interfaces, or their axes are not along z.

    Example:
        >>> from dolfinx_mbd.body import Interface
        >>> places = {"main_1": (0, 0, -0.04), "main_2": (0, 0, 0.04), "pin_1": (0.04, 0, 0)}
        >>> crank = mbd.ReducedBody.from_arrays(
        ...     name="crank",
        ...     total_mass=1.0,
        ...     first_moments=np.zeros((1, 3)),
        ...     second_moments=1e-3 * np.eye(3)[None, None],
        ...     stiffness=np.zeros((0, 0)),
        ...     interfaces=[
        ...         Interface(key, "rigid", np.array(point), np.eye(3), np.zeros((6, 0)))
        ...         for key, point in places.items()
        ...     ],
        ...     reference="rigid",
        ... )
        >>> mbd.mechanisms.EngineCrank(crank).mains
        ('main_1', 'main_2')
    """

    body: ReducedBody
    mains: Sequence[str] = ()
    pins: Sequence[str] = ()
    flange: str = "flange"
    journal_radii: Mapping[str, float] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        body = instance("body", self.body, ReducedBody, "reduce(...).body")
        checks.name("flange", self.flange)
        for key, prefix in (("mains", "main"), ("pins", "pin")):
            listed = names(key, getattr(self, key)) or names(key, _numbered(body, prefix))
            if not listed:
                reject(
                    key, listed, f"names of interfaces of body {body.name!r}, or {prefix}_1, ..."
                )
            assign(self, **{key: listed})
            for name in listed:
                axis = body.interface(name).axes[:, 2]
                if abs(abs(axis[2]) - 1.0) > _MISFIT:
                    text = f"the axis z of interface {name!r} must be along the shaft; it is {axis}"
                    hint = "reduce the body with InterfaceSpec(axes=(0, 0, 1))"
                    raise InputError(f"{text}; {hint}")
        for place, radius in instance("journal_radii", self.journal_radii, Mapping).items():
            checks.choice("name of a journal", place, ("main", "big_end"))
            number(f"radius of journal {place!r}", radius, positive=True, unit="m")

    def check_places(self, design: EngineDesign) -> None:
        """Raise an error if pins or journals are not where the throws and the mains must be."""
        limit = _MISFIT * design.crank_radius
        pins, count = len(self.pins), design.cylinders
        if count not in (pins, 2 * pins):
            text = f"the crank has {pins} pins for {count} cylinders; expected one pin for each"
            raise InputError(f"{text} cylinder, or for each two", argument="pins", value=self.pins)
        throws, places = np.asarray(design.throw_angles), design.positions
        for k, name in enumerate(self.pins):
            part = slice(k * count // pins, (k + 1) * count // pins)
            z = float(np.mean(places[part]))
            point = self.body.interface(name).point
            for j, throw in enumerate(throws[part], part.start):
                x, y = design.crank_radius * np.array([np.cos(throw), np.sin(throw)])
                if np.linalg.norm(point - (x, y, z)) > limit:
                    needed = np.round([x, y, z], 6)
                    raise InputError(
                        f"pin {name!r} of the crank is at {np.round(point, 6)} m; the throw of "
                        f"cylinder {j + 1} at {np.degrees(throw):.6g}° needs {needed} m",
                        argument="throw_angles",
                        value=design.throw_angles,
                    )
        for name in self.mains:
            x, y, _ = self.body.interface(name).point
            if np.hypot(x, y) > limit:
                raise InputError(f"main journal {name!r} of the crank is not on the z axis")

    def check_bores(self, bearings: Mapping[str, JointClearance]) -> None:
        """Raise an error if the bore of a bearing does not fit its journal."""
        for place, journal in self.journal_radii.items():
            bearing: Any = bearings.get(place)
            sizes: Mapping[str, Any] = getattr(bearing, "arguments", {})
            radius = sizes.get("radius", getattr(bearing, "radius", 0.0))
            clearance = sizes.get("clearance", getattr(bearing, "radial", 0.0))
            if radius and abs(radius - journal) > clearance:
                raise InputError(
                    f"the bearing {place!r} has a radius of {radius:g} m and a clearance of "
                    f"{clearance:g} m; it does not fit the journal of {journal:g} m",
                    argument="bearings",
                    value=bearing,
                )


def engine(
    rod: ReducedBody | Sequence[ReducedBody],
    design: EngineDesign | None = None,
    *,
    crank: EngineCrank | ReducedBody | None = None,
    speed: float | None = None,
    torque: Torque | float | None = None,
    pressure: Callable[..., ArrayLike] | bool = True,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    stiffening: bool | None = None,
    ends: tuple[str, str] = ENDS,
    bearings: Mapping[str, JointClearance] | None = None,
) -> System:
    """Create a four-stroke inline or V engine with a rigid or a reduced crank.

    The bodies are ``crank`` and, for cylinder k, ``rod k`` and ``piston k``; the joints are
    ``main``, ``crank pin k``, ``piston pin k`` and ``guide k``; the loads are ``gas k``; the driver
    or torque is ``drive``. Crank angle 0 is the firing top dead centre of the first cylinder to
    fire; see `EngineDesign` for pistons with an offset.

    With a reduced crank, ``main`` is its last main bearing, at the flywheel. This bearing holds the
    shaft along its axis and keeps its slope there. The other main bearings, ``main 1``, ``main 2``
    and so on, carry radial forces. A flywheel with the inertia of the design is a rigid disc,
    ``flywheel``, with four times the crank radius, which the joint ``flange`` fixes to the crank.

    Args:
        rod: Reduced rod of all cylinders, or one reduced rod for each cylinder.
        design: Dimensions, masses and firing order; by default those of `EngineDesign()`, a
            three-cylinder engine. The mass and the inertia of its crank are not used with a
            reduced crank.
        crank: A reduced crank; by default the crank is rigid and balanced.
        speed: Constant speed of the crank at ``main``, rad/s.
        torque: Torque on the crank instead of a speed, N m: a number or a function
            ``torque(t, angle, speed)``.
        pressure: Absolute gas pressure (Pa) as a function of the crank angle (rad) from firing top
            dead centre, of period 4π, for example a `PressureTable`, or of angle and speed, such as
            a `PressureMap`. By default (True) `FourStrokePressure` with a peak of 91 bar; False
            omits the gas forces.
        angle: Initial crank angle, rad.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².
        damping_ratio: Damping ratio of the modes of rods and crank; see `FlexibleBody`.
        stiffening: Whether geometric stiffening of rods and crank acts; see `FlexibleBody`.
        ends: Names of the interfaces of the rod at the crank and at the piston.
        bearings: Bearings of the ``big_end``, the ``small_end`` and ``main``, each a `Clearance` or
            a `bearings.OilFilm`; the others are ideal joints. The first frame of ``crank pin k`` is
            then the bore of the rod. The elements are ``crank pin k contact`` and so on; those of
            the main bearings of a reduced crank are ``main contact``, ``main 1``, ``main 2``, ...

    Raises:
        InputError: An argument is invalid, the bores of the rod do not fit, pins or journals of the
            crank are not where the design has them, or not exactly one of speed and torque is
            given.

    Example:
        >>> design = mbd.mechanisms.EngineDesign(
        ...     cylinders=2, spacing=0.02, bank_angles=np.radians([-45.0, 45.0])
        ... )
        >>> vee = mbd.mechanisms.engine(mbd.mechanisms.rigid_rod(0.137, 0.2), design, speed=200.0)
        >>> len(vee.bodies), len(vee.joints)
        (6, 7)
    """
    design = EngineDesign() if design is None else instance("design", design, EngineDesign)
    angle = number("angle", angle, unit="rad")
    drivers, drive = create_drive(speed, torque, angle)
    if not isinstance(pressure, bool):
        check_pressure("pressure", pressure)
    films = dict(instance("bearings", {} if bearings is None else bearings, Mapping))
    for place in films:
        checks.choice("name of a bearing", place, BEARINGS)
    rods = _rods(rod, design.cylinders)
    shaft = EngineCrank(crank) if isinstance(crank, ReducedBody) else crank
    instance("crank", shaft, (EngineCrank, type(None)), "EngineCrank(body)")
    _, banks = np.array([design.throw_angles, design.bank_angles], dtype=float)
    frames = {"main": Frame()}
    for k, z in enumerate(design.positions):
        frames[f"guide {k + 1}"] = guide_frame(design.pin_offset, z, banks[k])
    loads: list[Load] = [*drive]
    if shaft is None:
        ground = Ground(frames)
        bodies, joints = _rigid_crank(ground, design, angle, films.get("main"))
        pins = [f"pin {k + 1}" for k in range(design.cylinders)]
    else:
        shaft.check_places(design)
        shaft.check_bores(films)
        ground = Ground(frames | _main_frames(shaft))
        flexible = damping_ratio, stiffening
        bodies, joints, more = _reduced_crank(
            ground, design, shaft, angle, flexible, films.get("main")
        )
        loads += more
        each = design.cylinders // len(shaft.pins)
        pins = [shaft.pins[k // each] for k in range(design.cylinders)]
    options = ends, damping_ratio, stiffening, films
    more_bodies, more_joints, parts = _cylinders(
        ground, bodies[1], rods, design, pins, angle, options
    )
    loads += _gas_forces(design, parts, pressure)
    return System(
        [*bodies, *more_bodies],
        [*joints, *more_joints],
        drivers=drivers,
        loads=loads,
        gravity=gravity,
    )


def _rods(rod: ReducedBody | Sequence[ReducedBody], count: int) -> list[ReducedBody]:
    """Return the rod of each cylinder."""
    if isinstance(rod, (list, tuple)):
        rods = list(items("rod", rod, ReducedBody, _HINT))
    else:
        rods = [instance("rod", rod, ReducedBody, _HINT)] * count
    if len(rods) != count:
        reject("rod", rod, f"a reduced rod, or one for each of {count} cylinders")
    return rods


def _rigid_crank(
    ground: Ground, design: EngineDesign, angle: float, film: JointClearance | None
) -> tuple[list[Body], list[Joint]]:
    """Return ground and rigid crank, and their joint."""
    throws, places = np.asarray(design.throw_angles, dtype=float), design.positions
    pins = {f"pin {k + 1}": (throws[k], places[k]) for k in range(design.cylinders)}
    inertia = design.crank_inertia, design.flywheel_inertia
    crank = create_crank(design.crank_radius, design.crank_mass, inertia, pins, angle)
    return [ground, crank], [revolute("main", ground.frame("main"), crank.frame("main"), film)]


def _main_frames(shaft: EngineCrank) -> dict[str, Frame]:
    """Return the frames of the main bearings on the ground; the last one is ``main``."""
    keys = [f"main {k + 1}" for k in range(len(shaft.mains) - 1)] + ["main"]
    return {
        key: Frame((0.0, 0.0, float(shaft.body.interface(name).point[2])))
        for key, name in zip(keys, shaft.mains, strict=True)
    }


def _reduced_crank(
    ground: Ground,
    design: EngineDesign,
    shaft: EngineCrank,
    angle: float,
    flexible: tuple[float | None, bool | None],
    film: JointClearance | None,
) -> tuple[list[Body], list[Joint], list[Load]]:
    """Return ground, reduced crank and flywheel, their joints, and the films of the mains."""
    rotation = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
    crank = FlexibleBody("crank", shaft.body, (0.0, 0.0, 0.0), rotation, *flexible)
    bodies: list[Body] = [ground, crank]
    joints = [revolute("main", ground.frame("main"), crank.frame(shaft.mains[-1]), film)]
    loads: list[Load] = []
    for k, name in enumerate(shaft.mains[:-1]):
        ends = ground.frame(f"main {k + 1}"), crank.frame(name)
        if film is None:
            joints.append(point_on_line(f"main {k + 1}", *ends))
        else:
            loads.append(film.element(f"main {k + 1}", revolute(f"main {k + 1}", *ends)))
    if design.flywheel_inertia:
        inertia, radius = design.flywheel_inertia, _DISC * design.crank_radius
        interface = shaft.body.interface(shaft.flange)
        disc = RigidBody.cylinder(
            "flywheel",
            radius,
            0.1 * radius,
            mass=2 * inertia / radius**2,
            frames={"flange": Frame((0.0, 0.0, 0.0), interface.axes)},
            position=_rotated(interface.point, angle),
            rotation=rotation,
        )
        bodies.append(disc)
        joints.append(fixed("flange", crank.frame(shaft.flange), disc.frame("flange")))
    return bodies, joints, loads


def _cylinders(
    ground: Ground,
    crank: Any,
    rods: Sequence[ReducedBody],
    design: EngineDesign,
    pins: Sequence[str],
    angle: float,
    options: tuple[Any, ...],
) -> tuple[list[Body], list[Joint], list[CylinderParts]]:
    """Return the bodies, joints and data of all cylinders."""
    ends, damping_ratio, stiffening, films = options
    throws, banks = np.array([design.throw_angles, design.bank_angles], dtype=float)
    bodies: list[Body] = []
    joints: list[Joint] = []
    cylinders = []
    for k, rod in enumerate(rods):
        parts = CylinderParts(
            rod,
            ends,
            damping_ratio,
            stiffening,
            design.crank_radius,
            design.piston_mass,
            0.5 * design.bore,
            design.pin_offset,
            films,
        )
        more_bodies, more_joints = parts.create(
            ground,
            crank.frame(pins[k]),
            f" {k + 1}",
            angle + throws[k],
            design.positions[k],
            banks[k],
        )
        bodies += more_bodies
        joints += more_joints
        cylinders.append(parts)
    return bodies, joints, cylinders


def _gas_forces(
    design: EngineDesign,
    cylinders: Sequence[CylinderParts],
    pressure: Callable[..., ArrayLike] | bool,
) -> list[Load]:
    """Return the gas force of each cylinder."""
    if pressure is False:
        return []
    loads: list[Load] = []
    firing = np.asarray(design.firing_angles, dtype=float)
    curves: dict[float, Callable[..., ArrayLike]] = {}
    for k, parts in enumerate(cylinders):
        length, top = rod_length(parts.rod, parts.ends), parts.kinematics.top_angle
        if length not in curves:
            curves[length] = (
                FourStrokePressure(
                    design.bore, design.crank_radius, length, pin_offset=design.pin_offset
                )
                if isinstance(pressure, bool)
                else pressure
            )
        loads.append(gas_force(k + 1, curves[length], float(firing[k]) + top, design.bore))
    return loads


def _numbered(body: ReducedBody, prefix: str) -> tuple[str, ...]:
    """Return the names prefix_1, prefix_2, ... of interfaces, in the order of their numbers."""
    numbers = {}
    for interface in body.interfaces:
        match = re.fullmatch(rf"{prefix}_(\d+)", interface.name)
        if match:
            numbers[int(match[1])] = interface.name
    return tuple(numbers[k] for k in sorted(numbers))


def _rotated(point: Array, angle: float) -> Array:
    """Return a point rotated about z by an angle, rad."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1], point[2]])
