"""Four-stroke inline and V engines with a rigid or a reduced crank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import instance, items, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bodies import FlexibleBody, Ground, RigidBody
from dolfinx_mbd.mechanism.joints import (
    Driver,
    FrameRef,
    Joint,
    JointClearance,
    fixed,
    point_on_line,
    revolute,
)
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.mechanisms.bearing_fits import check_fits
from dolfinx_mbd.mechanism.mechanisms.crank_parts import (
    ENDS,
    CylinderParts,
    Torque,
    create_crank,
    create_drive,
    guide_frame,
    rod_length,
)
from dolfinx_mbd.mechanism.mechanisms.engine_block import EngineBlock, Mounts, free_motion
from dolfinx_mbd.mechanism.mechanisms.engine_crank import EngineCrank
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign, gas_force
from dolfinx_mbd.mechanism.mechanisms.gas import FourStrokePressure
from dolfinx_mbd.mechanism.mechanisms.gas_map import PressureMap, check_pressure
from dolfinx_mbd.mechanism.motions import Motion
from dolfinx_mbd.mechanism.protocol import Body, Frame
from dolfinx_mbd.mechanism.system import System

BEARINGS = ("big_end", "small_end", "main")
"""Names of the kinds of bearings."""

_ROD_HINT = "reduce(...).body or ReducedBody.load(path), or a list of them"
_BEARING_HINT = "Clearance(...) or bearings.OilFilm(...), or a list of them"
_FLYWHEEL_RATIO = 4.0  # ratio of the radius of the flywheel to the crank radius


def engine(  # noqa: PLR0913  (each part of an engine is one argument)
    rod: ReducedBody | Sequence[ReducedBody],
    design: EngineDesign | None = None,
    *,
    crank: EngineCrank | ReducedBody | None = None,
    block: EngineBlock | ReducedBody | None = None,
    mounts: Mounts | None = None,
    speed: float | Motion | None = None,
    torque: Torque | float | None = None,
    pressure: Callable[..., ArrayLike] | bool = True,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    stiffening: bool | None = None,
    ends: tuple[str, str] = ENDS,
    bearings: Mapping[str, JointClearance | Sequence[JointClearance | None]] | None = None,
) -> System:
    """Create an inline, V or boxer engine with a rigid or a reduced crank, and with a block.

    The bodies are ``crank`` and, for cylinder k, ``rod k`` and ``piston k``; the joints are
    ``main``, ``crank pin k``, ``piston pin k`` and ``guide k``; the loads are ``gas k``; the driver
    or torque is ``drive``. Crank angle 0 is the firing top dead centre of the first cylinder to
    fire; see `EngineDesign` for pistons with an offset.

    With a reduced crank, ``main`` is its last main bearing, at the flywheel. This bearing holds the
    shaft along its axis and keeps its slope there. The other main bearings, ``main 1``, ``main 2``
    and so on, carry radial forces. A flywheel with the inertia of the design is a rigid disc,
    ``flywheel``, with four times the crank radius, which the joint ``flange`` fixes to the crank.

    With a block, the body ``block`` on the bushings ``mount name`` carries the main bearings and
    guides the pistons instead of the ground; the gas acts on the pistons and on the block. A rigid
    crank then has a journal in each main bearing. The drive acts between the ground and the crank,
    as a brake on a test bed; it is on the joint ``output``, which has no constraints.

    Args:
        rod: Reduced rod of all cylinders, or one reduced rod for each cylinder.
        design: Dimensions, masses and firing order; by default those of `EngineDesign()`, a
            three-cylinder engine. The mass and the inertia of its crank are not used with a
            reduced crank.
        crank: A reduced crank; by default the crank is rigid and balanced.
        block: A reduced block, rigid or flexible; by default the ground carries the engine.
        mounts: Mounts of the block by the name of an interface of the block: stiffness (N/m, N
            m/rad) and damping (N s/m, N m s/rad) along and about the global axes, as those of a
            `Bushing`. They exert no load at the initial positions.
        speed: Constant speed of the crank at ``main``, rad/s; with a block, relative to the ground.
            For a run-up, a function of time (s) that returns crank angle (rad), speed (rad/s) and
            acceleration, such as `mbd.mechanism.integrated` creates from a speed. With a negative
            speed the cycle of the gas proceeds as the crank angle decreases, so that the cylinders
            fire at the same positions of the crank in the reverse order.
        torque: Torque on the crank instead of a speed, N m: a number or a function
            ``torque(t, angle, speed)``. The gas has its cycle over an increasing crank angle.
        pressure: Absolute gas pressure (Pa) as a function of the crank angle (rad) from firing top
            dead centre, of period 4π or 2π, for example a `PressureTable`, or of angle and speed,
            such as a `PressureMap`. By default (True) `FourStrokePressure` with a peak of 91 bar;
            False omits the gas forces.
        angle: Initial crank angle, rad; that of a function `speed` is its own.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².
        damping_ratio: Damping ratio of the modes of rods, crank and block; see `FlexibleBody`.
        stiffening: Whether geometric stiffening of rods and crank acts; see `FlexibleBody`.
        ends: Names of the interfaces of the rod at the crank and at the piston.
        bearings: Bearings of the ``big_end``, the ``small_end`` and ``main``, each a `Clearance` or
            a `bearings.OilFilm`; the others are ideal joints. A list has one for each cylinder, or
            for each main bearing along the shaft, for example films in elastic bores; None in it is
            an ideal joint. The first frame of ``crank pin k`` is then the bore of the rod. The
            elements are ``crank pin k contact`` and so on; those of the main bearings are ``main
            contact``, which is the last one, and ``main 1``, ``main 2``, ...

    Warns:
        UnitsWarning: Bore and crank radius, the masses of pistons or rods, the length of a rod, the
            speed, or the gas pressure suggest units other than SI.

    Raises:
        InputError: An argument is invalid, bearings or bores do not fit the journals, pins or
            journals of the crank or bearings and guides of the block are not where the design has
            them, a block has no mounts, a list of bearings has a wrong length, or not exactly one
            of speed and torque is given.

    Example:
        >>> design = mbd.mechanisms.EngineDesign(
        ...     cylinders=2, spacing=0.02, bank_angles=np.radians([-45.0, 45.0])
        ... )
        >>> rod = mbd.mechanisms.rigid_rod(length=0.137, mass=0.2)
        >>> vee = mbd.mechanisms.engine(rod, design, speed=200.0)
        >>> len(vee.bodies), len(vee.joints)
        (6, 7)
    """
    design = EngineDesign() if design is None else instance("design", design, EngineDesign)
    angle, rate = _start(angle, speed)
    shaft = EngineCrank(crank) if isinstance(crank, ReducedBody) else crank
    instance("crank", shaft, (EngineCrank, type(None)), "EngineCrank(body)")
    crankcase = EngineBlock(block) if isinstance(block, ReducedBody) else block
    instance("block", crankcase, (EngineBlock, type(None)), "EngineBlock(body)")
    drivers, drive = create_drive(speed, torque, angle, "main" if crankcase is None else "output")
    design.check_speed("speed", rate)
    if not isinstance(pressure, bool):
        check_pressure("pressure", pressure)
        if isinstance(pressure, PressureMap):
            design.check_speed("the largest speed of the pressures", pressure.largest_speed)
    rods = _rods(rod, design, ends)
    num_mains = 1
    if crankcase is not None:
        num_mains = len(crankcase.mains)
    elif shaft is not None:
        num_mains = len(shaft.mains)
    clearances = _bearings(bearings, design.cylinders, num_mains)
    if shaft is not None:
        shaft.check_places(design)
    ground, carrier, places, mount_loads = _carrier(design, shaft, crankcase, mounts, damping_ratio)
    check_fits(design, shaft, crankcase, rods, ends, clearances)
    damping_and_stiffening = damping_ratio, stiffening
    if shaft is None:
        bodies, joints, crank_loads = _rigid_crank(
            places, design, crankcase, angle, clearances["main"]
        )
        pins = [f"pin {k + 1}" for k in range(design.cylinders)]
    else:
        bodies, joints, crank_loads = _reduced_crank(
            places, design, shaft, angle, damping_and_stiffening, clearances["main"]
        )
        cylinders_per_pin = design.cylinders // len(shaft.pins)
        pins = [shaft.pins[k // cylinders_per_pin] for k in range(design.cylinders)]
    crank_body: Any = bodies[0]
    more = _damper(design, shaft, crank_body, angle, rate)
    bodies, joints, crank_loads = bodies + more[0], joints + more[1], crank_loads + more[2]
    options = ends, damping_ratio, stiffening, clearances
    more_bodies, more_joints, parts = _cylinders(
        places, crank_body, rods, design, pins, angle, options, crankcase
    )
    joints += more_joints
    acting = "guide"  # kind of the joints on which the gas acts
    if crankcase is not None:
        joints.append(free_motion("output", ground.frame("output"), joints[0].second))
        if crankcase.heads:
            acting = "head"
            for k, name in enumerate(crankcase.heads, 1):
                piston = FrameRef(f"piston {k}", "guide")
                joints.append(free_motion(f"head {k}", carrier[0].frame(name), piston))
    gas = _gas_forces(design, parts, pressure, acting, -1 if rate < 0 else 1)
    return System(
        [ground, *bodies, *carrier, *more_bodies],
        joints,
        drivers=drivers,
        loads=[*drive, *crank_loads, *mount_loads, *gas],
        gravity=gravity,
    )


def _start(angle: float, speed: float | Motion | None) -> tuple[float, float]:
    """Return the initial angle (rad) and speed (rad/s) of the crank; 0 if a torque drives it."""
    angle = number("angle", angle, unit="rad")
    if not callable(speed):
        return angle, 0.0 if speed is None else number("speed", speed, unit="rad/s")
    first, rate, _ = Driver("drive", "main", speed, offset=0.0).at(0.0)
    if angle not in (0.0, first):
        text = f"the motion starts at a crank angle of {first:.6g} rad, and angle is {angle:.6g}"
        raise InputError(text + "; omit angle", argument="angle", value=angle)
    return first, rate


def _damper(
    design: EngineDesign, shaft: EngineCrank | None, crank: Body, angle: float, rate: float
) -> tuple[list[Body], list[Joint], list[Load]]:
    """Return bodies, joints and rubber of the torsional damper at the nose of the crank."""
    if design.damper is None:
        return [], [], []
    point, axes = np.array([0.0, 0.0, _nose_position(design)]), np.eye(3)
    name = "nose"
    if shaft is not None:
        interface = shaft.body.interface(shaft.nose)
        name, point, axes = shaft.nose, interface.point, interface.axes
    pose = _rotated(point, angle), np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
    nose = FrameRef(crank.name, name)
    bodies, joints, rubber = design.damper.parts(nose, axes, design.crank_radius, pose, rate)
    return bodies, joints, [rubber]


def _nose_position(design: EngineDesign) -> float:
    """Return the position of the nose of a rigid crank along the shaft, m."""
    return float(design.positions.min()) - 2 * design.crank_radius


def _carrier(
    design: EngineDesign,
    shaft: EngineCrank | None,
    crankcase: EngineBlock | None,
    mounts: Mounts | None,
    damping_ratio: float | None,
) -> tuple[Ground, list[FlexibleBody], dict[str, FrameRef], list[Load]]:
    """Return ground, block, the frames of main bearings and guides by name, and the mounts."""
    guides = [f"guide {k + 1}" for k in range(design.cylinders)]
    if crankcase is None:
        if mounts is not None:
            reject("mounts", mounts, "None without a block")
        frames = {"main": Frame()} if shaft is None else _main_frames(shaft)
        for k, z in enumerate(design.positions):
            bank = float(np.asarray(design.bank_angles)[k])
            frames[guides[k]] = guide_frame(float(design.pin_offsets[k]), float(z), bank)
        ground = Ground(frames)
        return ground, [], {key: ground.frame(key) for key in frames}, []
    if shaft is None:
        journals = dict.fromkeys(crankcase.mains)
    else:
        journals = {name: shaft.body.interface(name) for name in shaft.mains}
    crankcase.check_places(design, journals)
    supports = crankcase.checked_mounts(mounts)
    ground = Ground(crankcase.ground_frames(supports))
    rest: dict[str, Any] = {"velocity": np.zeros(3), "omega": np.zeros(3)}
    block = FlexibleBody(
        "block", crankcase.body, damping_ratio=damping_ratio, stiffening=False, **rest
    )
    names = [*_main_names(crankcase.mains), *guides]
    interfaces = [*crankcase.mains, *crankcase.cylinders]
    places = {key: block.frame(name) for key, name in zip(names, interfaces, strict=True)}
    return ground, [block], places, [*crankcase.bushings(ground, block, supports)]


def _bearings(
    bearings: Mapping[str, Any] | None, cylinders: int, mains: int
) -> dict[str, list[JointClearance | None]]:
    """Return the bearings of all cylinders, and those of the main bearings along the shaft."""
    kinds = instance("bearings", {} if bearings is None else bearings, Mapping)
    for place in kinds:
        checks.choice("name of a bearing", place, BEARINGS)
    result: dict[str, list[JointClearance | None]] = {}
    for place in BEARINGS:
        count, value = mains if place == "main" else cylinders, kinds.get(place)
        if isinstance(value, (list, tuple)):
            result[place] = list(
                items(f"bearings[{place!r}]", value, (JointClearance, type(None)), _BEARING_HINT)
            )
            if len(value) != count:
                text = f"the engine has {count} bearings {place!r}, and the list has {len(value)}"
                raise InputError(text, argument="bearings", value=value)
        else:
            instance(f"bearings[{place!r}]", value, (JointClearance, type(None)), _BEARING_HINT)
            result[place] = [value] * count
    return result


def _rods(
    rod: ReducedBody | Sequence[ReducedBody], design: EngineDesign, ends: tuple[str, str]
) -> list[ReducedBody]:
    """Return the rod of each cylinder; warn about units that are probably wrong."""
    count = design.cylinders
    if isinstance(rod, (list, tuple)):
        rods = list(items("rod", rod, ReducedBody, _ROD_HINT))
    else:
        rods = [instance("rod", rod, ReducedBody, _ROD_HINT)] * count
    if len(rods) != count:
        reject("rod", rod, f"a reduced rod, or one for each of {count} cylinders")
    design.check_units([rod_length(part, ends) for part in rods], [r.total_mass for r in rods])
    return rods


def _rigid_crank(
    places: Mapping[str, FrameRef],
    design: EngineDesign,
    crankcase: EngineBlock | None,
    angle: float,
    clearances: Sequence[JointClearance | None],
) -> tuple[list[Body], list[Joint], list[Load]]:
    """Return the rigid crank, its joints, and the films or contacts of its main bearings."""
    throws, positions = np.asarray(design.throw_angles, dtype=float), design.positions
    pins = {f"pin {k + 1}": (throws[k], positions[k]) for k in range(design.cylinders)}
    inertia = design.crank_inertia, design.flywheel_inertia
    journals = {"main": 0.0}
    if crankcase is not None:
        positions_of_mains = [
            float(crankcase.body.interface(name).point[2]) for name in crankcase.mains
        ]
        journals = dict(zip(_main_names(crankcase.mains), positions_of_mains, strict=True))
    places_on_axis = journals
    if design.damper is not None:
        places_on_axis = journals | {"nose": _nose_position(design)}
    radius, mass = design.crank_radius, design.crank_mass
    crank = create_crank(radius, mass, inertia, pins, angle, places_on_axis)
    mains = {key: crank.frame(key) for key in journals}
    joints, loads = _main_bearings(places, mains, clearances)
    return [crank], joints, loads


def _main_names(mains: Sequence[str]) -> list[str]:
    """Return the names of the main bearings: main 1, main 2, ..., and main for the last one."""
    return [f"main {k + 1}" for k in range(len(mains) - 1)] + ["main"]


def _main_frames(shaft: EngineCrank) -> dict[str, Frame]:
    """Return the frames of the main bearings on the ground."""
    return {
        key: Frame((0.0, 0.0, float(shaft.body.interface(name).point[2])))
        for key, name in zip(_main_names(shaft.mains), shaft.mains, strict=True)
    }


def _main_bearings(
    places: Mapping[str, FrameRef],
    journals: Mapping[str, FrameRef],
    clearances: Sequence[JointClearance | None],
) -> tuple[list[Joint], list[Load]]:
    """Return the joints of the main bearings, and the films or contacts of all but the last.

    The last bearing, ``main``, is the first of the joints, which contains its film or contact.
    """
    joints = [revolute("main", places["main"], journals["main"], clearances[-1])]
    loads: list[Load] = []
    for (key, journal), clearance in zip(journals.items(), clearances, strict=True):
        if key == "main":
            continue
        if clearance is None:
            joints.append(point_on_line(key, places[key], journal))
        else:
            loads.append(clearance.element(key, revolute(key, places[key], journal)))
    return joints, loads


def _reduced_crank(
    places: Mapping[str, FrameRef],
    design: EngineDesign,
    shaft: EngineCrank,
    angle: float,
    damping_and_stiffening: tuple[float | None, bool | None],
    clearances: Sequence[JointClearance | None],
) -> tuple[list[Body], list[Joint], list[Load]]:
    """Return reduced crank and flywheel, their joints, and films or contacts of main bearings."""
    rotation = np.array([np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)])
    origin = (0.0, 0.0, 0.0)
    crank = FlexibleBody("crank", shaft.body, origin, rotation, *damping_and_stiffening)
    bodies: list[Body] = [crank]
    mains = dict(zip(_main_names(shaft.mains), map(crank.frame, shaft.mains), strict=True))
    joints, loads = _main_bearings(places, mains, clearances)
    if design.flywheel_inertia:
        inertia, radius = design.flywheel_inertia, _FLYWHEEL_RATIO * design.crank_radius
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
    places: Mapping[str, FrameRef],
    crank: Any,
    rods: Sequence[ReducedBody],
    design: EngineDesign,
    pins: Sequence[str],
    angle: float,
    options: tuple[Any, ...],
    crankcase: EngineBlock | None,
) -> tuple[list[Body], list[Joint], list[CylinderParts]]:
    """Return the bodies, joints and data of all cylinders."""
    ends, damping_ratio, stiffening, clearances = options
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
            float(design.pin_offsets[k]),
            {place: clearances[place][k] for place in ("big_end", "small_end")},
        )
        more_bodies, more_joints = parts.create(
            places[f"guide {k + 1}"],
            crank.frame(pins[k]),
            f" {k + 1}",
            angle + throws[k],
            design.positions[k],
            banks[k],
            None if crankcase is None else crankcase.guide_axes(k),
        )
        bodies += more_bodies
        joints += more_joints
        cylinders.append(parts)
    return bodies, joints, cylinders


def _gas_forces(
    design: EngineDesign,
    cylinders: Sequence[CylinderParts],
    pressure: Callable[..., ArrayLike] | bool,
    acting: str,
    direction: int,
) -> list[Load]:
    """Return the gas force of each cylinder on its joint, ``guide k`` or ``head k``.

    `acting` is the kind of the joint, ``guide`` or ``head``; `direction` is that of the crank.
    """
    if pressure is False:
        return []
    loads: list[Load] = []
    firing = np.asarray(design.firing_angles, dtype=float)
    curves: dict[tuple[float, float], Callable[..., ArrayLike]] = {}
    for k, parts in enumerate(cylinders):
        length, top = rod_length(parts.rod, parts.ends), parts.kinematics.top_angle
        kinematics = length, parts.pin_offset
        if kinematics not in curves:
            size = design.bore, design.crank_radius, length
            curves[kinematics] = (
                FourStrokePressure(*size, pin_offset=direction * parts.pin_offset)
                if isinstance(pressure, bool)
                else pressure
            )
        curve, fires = curves[kinematics], float(firing[k]) + top
        joint = f"{acting} {k + 1}"
        loads.append(gas_force(k + 1, curve, fires, design.bore, joint, direction))
    return loads


def _rotated(point: Array, angle: float) -> Array:
    """Return a point rotated about z by an angle, rad."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1], point[2]])
