"""A reduced crankshaft in an engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import assign
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import instance, names, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign

# Largest distance of a pin or journal from its place, relative to the crank radius, and largest
# difference of a unit axis from its direction
MISFIT = 1e-3


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
        flange: Name of the interface to which the flywheel is fixed. Only an engine with a flywheel
            needs it.
        nose: Name of the interface to which the torsional damper is fixed. Only an engine with a
            damper needs it.

    Raises:
        InputError: The body has no such interfaces at main journals or pins, or the z axis of one
            of them is not along z. An engine raises it for a missing flange or nose.

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
    nose: str = "nose"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        body = instance("body", self.body, ReducedBody, "reduce(...).body")
        checks.name("flange", self.flange)
        checks.name("nose", self.nose)
        for key, prefix in (("mains", "main"), ("pins", "pin")):
            listed = names(key, getattr(self, key)) or names(key, numbered_interfaces(body, prefix))
            if not listed:
                reject(
                    key, listed, f"names of interfaces of body {body.name!r}, or {prefix}_1, ..."
                )
            assign(self, **{key: listed})
            for name in listed:
                axis = body.interface(name).axes[:, 2]
                if abs(abs(axis[2]) - 1.0) > MISFIT:
                    text = f"the axis z of interface {name!r} must be along the shaft; it is {axis}"
                    hint = "reduce the body with InterfaceSpec(axes=(0, 0, 1))"
                    raise InputError(f"{text}; {hint}")

    def check_places(self, design: EngineDesign) -> None:
        """Raise an error if pins or journals are not where the throws and the mains must be."""
        limit = MISFIT * design.crank_radius
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


def numbered_interfaces(body: ReducedBody, prefix: str) -> tuple[str, ...]:
    """Return the names prefix_1, prefix_2, ... of interfaces, in the order of their numbers."""
    numbers = {}
    for interface in body.interfaces:
        match = re.fullmatch(rf"{prefix}_(\d+)", interface.name)
        if match:
            numbers[int(match[1])] = interface.name
    return tuple(numbers[k] for k in sorted(numbers))
