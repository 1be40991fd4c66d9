"""Named inputs of a mechanism.

An input is a number of a load or a driver. The name `motor` means the torque of the joint load, the
amplitude of the distributed load or the position of the driver `motor`. `push.x` is a component of
a force or torque at a frame, and `spring.stiffness` is a parameter of a force element. The loads of
a mesh body have the name of the body in front: `finger.air`, `rod.wind.x`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.checks import choice, instance, number, reject
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.mechanism.joints import Driver
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.system import System

__all__ = ["Inputs"]


class _Parameter(NamedTuple):
    """A number of a load or driver, or one of the three components of a vector."""

    part: Any
    field: str
    component: int | None = None
    unit: str = ""  # "" if it is unknown
    any_number: bool = False  # whether every finite number is valid

    @property
    def value(self) -> float:
        """The number, or 0 if the user gave a function."""
        value = getattr(self.part, self.field)
        if callable(value):
            return 0.0
        return float(value if self.component is None else np.asarray(value)[self.component])

    def changed(self, number: float) -> Any:
        """Return a copy of the load or driver with another number; its class checks the number."""
        value: Any = number
        if isinstance(self.part, Driver):
            value = _constant_motion(number)
        elif self.component is not None:
            old = getattr(self.part, self.field)
            value = [0.0, 0.0, 0.0] if callable(old) else list(old)
            value[self.component] = number
        return replace(self.part, **{self.field: value})

    @property
    def is_unchecked(self) -> bool:
        """Whether `put` can set every finite number."""
        return self.any_number and not callable(getattr(self.part, self.field))

    def put(self, number: float) -> None:
        """Set the number in the load itself."""
        value: Any = number
        if self.component is not None:
            value = list(getattr(self.part, self.field))
            value[self.component] = number
        vars(self.part)[self.field] = value


class Inputs:
    """Named numbers of loads and drivers that can be changed in a private copy of a system.

    A load or driver that the user gave as a function starts at the number 0 instead.

    Args:
        system: The mechanism; it is not changed.
        names: Names of the inputs.

    Attributes:
        names: Names of the inputs.
        system: The copy; without inputs, the system itself.
        values: Values of the inputs.
        functions: Names of the inputs that replace user-defined functions.

    Raises:
        InputError: A name is unknown; the message lists the names of the system.

    Example:
        >>> inputs = Inputs(driven, ["drive"])
        >>> inputs.put(inputs.merged({"drive": 0.5}))
        >>> inputs.system.drivers[0].at(0.0), driven.drivers[0].at(0.0)
        ((0.5, 0.0, 0.0), (0.0, 2.0, 0.0))
    """

    def __init__(self, system: System, names: Sequence[str]) -> None:
        self.names = checked_names("inputs", names)
        if not self.names:
            self.system, self._parameters = system, []
        else:
            loads_and_drivers: tuple[Load | Driver, ...] = (*system.loads, *system.drivers)
            parts = {id(part): copy.copy(part) for part in loads_and_drivers}
            meshes = {
                id(body): body.with_copied_loads()
                for body in system.bodies
                if hasattr(body, "with_copied_loads")
            }
            self.system = _with_parts(system, parts | meshes)
            available = {name: p for part in parts.values() for name, p in _parameters(part)}
            for body in meshes.values():
                entries = ((load, *entry) for load, entry in body.load_inputs())
                available |= {name: _Parameter(load, *entry) for load, name, *entry in entries}
            if not available:
                reject("inputs", self.names, "empty, because the system has no load and no driver")
            selected = [choice("every name of inputs", name, available) for name in self.names]
            self._parameters = [available[name] for name in selected]
        pairs = zip(self.names, self._parameters, strict=True)
        self.functions = tuple(n for n, p in pairs if callable(getattr(p.part, p.field)))
        self._present: tuple[float, ...] = ()  # values in the copy; none before the first `put`
        self.values = tuple(parameter.value for parameter in self._parameters)
        self.put(self.values)

    @property
    def parts(self) -> list[Any]:
        """Load or driver of each input."""
        return [parameter.part for parameter in self._parameters]

    @property
    def units(self) -> dict[str, str]:
        """Unit of each input by name, or "" if it is unknown."""
        units = (parameter.unit for parameter in self._parameters)
        return dict(zip(self.names, units, strict=True))

    def merged(self, changes: Mapping[str, float]) -> tuple[float, ...]:
        """Return the values with changes by name, and do not change the attribute `values`."""
        if not self.names and isinstance(changes, Mapping) and changes:
            expected = "empty, because no inputs were named"
            hint = "name them, as in Simulator(system, inputs=['motor'], ...)"
            reject("inputs", changes, expected, hint=hint)
        values = dict(zip(self.names, self.values, strict=True))
        if type(changes) is not dict:  # the test of `instance` takes longer
            instance("inputs", changes, Mapping)
        for name, value in changes.items():
            if name not in values:
                choice("name of an input", name, self.names)
            if not (isinstance(value, float) and math.isfinite(value)):
                value = number(f"inputs[{name!r}]", value)
            values[name] = float(value)
        return tuple(values.values())

    def put(self, values: Sequence[float]) -> None:
        """Set the values in the private copy; if a value is invalid, no value changes."""
        parts: dict[int, tuple[Any, Any]] = {}
        unchecked = []
        for k, (parameter, value) in enumerate(zip(self._parameters, values, strict=True)):
            if self._present and value == self._present[k]:
                continue
            if parameter.is_unchecked:
                unchecked.append((parameter, value))
                continue
            part, new = parts.get(id(parameter.part), (parameter.part, parameter.part))
            parts[id(part)] = part, parameter._replace(part=new).changed(value)
        for part, new in parts.values():
            vars(part).update(vars(new))
        for parameter, value in unchecked:
            parameter.put(value)
        self._present = self.values = tuple(values)


def _parameters(part: Load | Driver) -> Iterator[tuple[str, _Parameter]]:
    """Yield the names and places of the numbers of a load or a driver that can be inputs."""
    if isinstance(part, Driver):
        yield part.name, _Parameter(part, "motion", unit="rad" if part.along == "rotation" else "m")
        return
    for name, field, component, unit, any_number in part.inputs():
        yield name, _Parameter(part, field, component, unit, any_number)


def _with_parts(system: System, parts: Mapping[int, Any]) -> System:
    """Return a copy of a system with other parts, by the `id` of the part that each replaces."""
    other = copy.copy(system)
    other.bodies = tuple(parts.get(id(body), body) for body in system.bodies)
    other.mechanical_bodies = other.bodies[: len(system.mechanical_bodies)]
    other.loads = tuple(parts[id(load)] for load in system.loads)
    other.drivers = tuple(parts[id(driver)] for driver in system.drivers)
    return other


def _constant_motion(position: float) -> Callable[[float], tuple[float, float, float]]:
    """Return the motion of a driver that stays at a position."""
    return lambda t: (position, 0.0, 0.0)
