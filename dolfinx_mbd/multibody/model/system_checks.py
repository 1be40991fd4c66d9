"""Checks of the parts of a system against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.force_elements import PairElement
from dolfinx_mbd.multibody.model.ground import Ground
from dolfinx_mbd.multibody.model.joints import SLIDING, TURNING, Axis, Driver, Joint
from dolfinx_mbd.multibody.model.loads import FrameLoad, JointLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad
from dolfinx_mbd.multibody.model.protocol import Body

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.model.system import SystemData

__all__ = [
    "check_bodies",
    "check_driven_motions",
    "check_loads",
    "check_names",
    "check_pair",
    "driver_axis",
]


def check_bodies(bodies: Sequence[Body]) -> None:
    """Raise an error if no body can move or there are several grounds.

    Raises:
        InputError: The bodies are unusable.
    """
    if not any(body.num_velocities for body in bodies):
        raise InputError("a system needs at least one body that can move")
    if sum(isinstance(body, Ground) for body in bodies) > 1:
        raise InputError("a system has at most one ground; give it all the fixed frames")


def check_names(parts: Iterable[Any]) -> None:
    """Raise an error if two parts of a system have the same name.

    Args:
        parts: Bodies, joints, drivers and loads.

    Raises:
        InputError: A name is no text, or is used twice.
    """
    names = [checked_name("the name of a body", part.name) for part in parts]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"duplicate names {repeated}: bodies, joints, drivers and loads share one list",
            argument="name",
            value=repeated,
        )


def driver_axis(driver: Driver, joint: Joint) -> Axis:
    """Return the motion that a driver prescribes.

    Raises:
        InputError: The joint does not have this motion.
    """
    along = driver.along or joint.axis_by_default
    kinds = TURNING if along == "rotation" else SLIDING
    if joint.kind not in kinds:
        verb = "turns" if along == "rotation" else "moves"
        raise InputError(
            f"driver {driver.name!r} {verb} joint {joint.name!r}, which is {joint.kind}; "
            f"it needs one of {kinds}"
        )
    return along


def check_pair(load: PairElement, body: Body) -> None:
    """Raise an error if a force element connects a rigid body with itself.

    Args:
        load: The force element.
        body: The body of its first frame.

    Raises:
        InputError: Both ends are on this body, which does not deform.
    """
    if load.second.body == body.name and not body.num_elastic:
        raise InputError(
            f"load {load.name!r} connects body {body.name!r}, which does not deform, with "
            "itself; give frames of two bodies (or of the ground)"
        )


def check_driven_motions(drivers: Iterable[Driver]) -> None:
    """Raise an error if two drivers prescribe the same motion.

    Raises:
        InputError: A joint is driven twice.
    """
    driven: dict[tuple[str, str | None], str] = {}
    for driver in drivers:
        key = driver.joint, driver.along
        if key in driven:
            verb = "turn" if driver.along == "rotation" else "move"
            raise InputError(
                f"drivers {driven[key]!r} and {driver.name!r} both {verb} {driver.joint!r}"
            )
        driven[key] = driver.name


def check_loads(system: SystemData) -> None:
    """Raise an error if a load refers to a frame, joint or pattern that the system does not have.

    Raises:
        InputError: A reference is unknown, or a joint does not have the motion.
    """
    for load in system.loads:
        label = f"load {load.name!r}"
        coordinates = []
        if isinstance(load, FrameLoad):
            system.frame_index(load.frame)
        elif isinstance(load, PatternLoad):
            system.load_pattern(load)
            coordinates = [] if load.of is None else [load.of]
        elif isinstance(load, JointLoad):
            system.joint(load.joint).axis(load.motion, label)
            coordinates = [load.coordinate]
        for coordinate in coordinates:
            system.joint(coordinate.joint).axis(coordinate.motion, label)
