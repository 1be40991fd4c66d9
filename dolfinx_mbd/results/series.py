"""Quantities of the parts of a mechanism over the saved times of a run, with names and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.run_quantities import Quantities, RunQuantity

__all__ = ["INTEGRALS", "Integral", "PartData", "Series"]

Array = NDArray[np.float64]
Values = Callable[[], Array]
"""Function that returns the values of a quantity over time, (nt, ...)."""


@dataclass(frozen=True, eq=False)
class Series:
    """Values of one quantity over the saved times, with its declaration.

    Attributes:
        part: Name of the body, joint, driver or load; "" for an output that is a function.
        key: Name of the quantity, for example ``force``, or of a component, such as ``force.x``.
        quantity: Unit and names of components.
        values: Values, (nt,) or (nt, ...).
    """

    part: str
    key: str
    quantity: RunQuantity
    values: Array

    @property
    def name(self) -> str:
        """Name of the part and the quantity, or of the output."""
        return f"{self.part}.{self.key}" if self.part else self.key

    @property
    def unit(self) -> str:
        """Unit, or "" if it is unknown."""
        return self.quantity.unit

    def component_names(self) -> list[str]:
        """Return the names of the components; a quantity of several dimensions is flattened."""
        count = math.prod(self.values.shape[1:])
        names = list(self.quantity.components)
        return names if len(names) == count else [str(k) for k in range(1, count + 1)]

    def component(self, name: str) -> Series | None:
        """Return a component of a vector by its name, or None if it does not exist."""
        names = self.component_names() if self.values.ndim > 1 else []
        if name not in names:
            return None
        column = self.values.reshape(len(self.values), -1)[:, names.index(name)]
        return Series(self.part, f"{self.key}.{name}", self.quantity.component(), column)

    def components(self) -> Iterator[Series]:
        """Yield each component as a series of numbers; a number yields itself."""
        if self.values.ndim == 1:
            yield self
            return
        for name in self.component_names():
            component = self.component(name)
            assert component is not None
            yield component


class Integral(NamedTuple):
    """A quantity that depends on all earlier times: its sources, and how it follows from them."""

    sources: tuple[str, ...]
    value: Callable[..., Array]


def _work(time: Array, power: Array) -> Array:
    """Return the integral of the power over time, J, by the trapezoidal rule."""
    return np.asarray(scipy.integrate.cumulative_trapezoid(power, time, initial=0.0), dtype=float)


def _dissipated(time: Array, power: Array, energy: Array, gap: Array) -> Array:
    """Return the dissipated energy, J: decrease of the stored energy minus work on the bodies.

    `gap` is not used; as a source, it restricts this quantity to contacts.
    """
    return energy[0] - energy - _work(time, power)


INTEGRALS = {
    "dissipated": Integral(("power", "energy", "gap"), _dissipated),
    "work": Integral(("power",), _work),
}
"""Integrals over time by name."""


class PartData:
    """Quantities of one part of a mechanism over the saved times of a run.

    Args:
        name: Name of the part.
        time: Saved times, (nt,), s.
        quantities: Declarations of the quantities of the part.
        values: Functions that return the values of the quantities that the part has.
        absent: Function that returns the values of a quantity that the run did not save, or raises
            an error; by default other quantities do not apply to the part.
    """

    def __init__(
        self,
        name: str,
        time: Array,
        quantities: Quantities,
        values: Mapping[str, Values],
        absent: Callable[[str], Array] | None = None,
    ) -> None:
        self.name, self.time, self.quantities = name, time, quantities
        self._absent, self._values = absent, dict(values)
        for key in INTEGRALS:
            if self._has_sources(key) and key not in values:
                self._values[key] = lambda key=key: self._integrated(key)  # type: ignore[misc]

    def _has_sources(self, key: str) -> bool:
        """Return whether the part has an integral and all quantities that it needs."""
        return key in self.quantities and all(k in self._values for k in INTEGRALS[key].sources)

    def _integrated(self, key: str) -> Array:
        """Return an integral over time."""
        integral = INTEGRALS[key]
        return integral.value(self.time, *(self._values[k]() for k in integral.sources))

    def only(self, keys: Callable[[str], bool], absent: Callable[[str], Array]) -> PartData:
        """Return the quantities whose names satisfy a condition; the others are `absent`."""
        values = {key: value for key, value in self._values.items() if keys(key)}
        data = PartData(self.name, self.time, self.quantities, {}, absent)
        data._values = values
        return data

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes with all values, to pickle or to copy them."""
        arrays = {key: value() for key, value in self._values.items()}
        return {**vars(self), "_values": arrays, "_absent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        values = {key: lambda array=array: array for key, array in state["_values"].items()}
        vars(self).update(state, _values=values)

    def declaration(self, key: str) -> RunQuantity:
        """Return the declaration of a quantity or of a component, such as ``force.x``."""
        if key in self.quantities:
            return self.quantities[key]
        base = key.rpartition(".")[0]
        if base in self.quantities:
            return self.quantities[base].component()
        raise InputError(
            f"{self.name!r} reports the quantity {key!r}, which its class does not declare: add "
            f"{key!r} with its unit to the attribute run_quantities of the class",
            argument="run_quantities",
            value=key,
        )

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[Series]:
        """Yield the quantities that are not empty."""
        for key, value in self._values.items():
            values = value()
            if values.size:
                yield Series(self.name, key, self.declaration(key), values)

    def keys(self) -> list[str]:
        """Return the names of the quantities, also of empty ones."""
        return [*self._values]

    def attribute(self, key: str) -> Array:
        """Return a quantity for the attribute of a history; it is empty if it does not apply."""
        if key in self._values:
            return self._values[key]()
        return np.zeros(0) if self._absent is None else self._absent(key)

    def series(self, key: str) -> Series:
        """Return a quantity by its name, for example ``force``.

        Args:
            key: Name of the quantity. ``big_end.force`` is the force at an interface of a body, and
                ``force.x`` a component.

        Raises:
            InputError: The quantity is unknown or empty; the message lists the quantities.
        """
        instance("key", key, str, "for example 'force'")
        base, _, component = key.rpartition(".")
        name = key if key in self._values else base
        series: Series | None = None
        if name in self._values:
            series = Series(self.name, name, self.declaration(name), self._values[name]())
            if name != key:
                series = series.component(component)
        if series is not None and series.values.size:
            return series
        available = [*self]
        names = ", ".join(repr(series.key) for series in available)
        text = f"{self.name!r} has no quantity {key!r}; it has {names}"
        vectors = (series for series in available if series.values.ndim == 2)
        if example := next(vectors, None):
            text += f", and components such as {next(example.components()).key!r}"
        raise InputError(text, argument="outputs", value=key, expected=names)
