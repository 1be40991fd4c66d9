"""Which cases a parameter study has: all combinations of values, or values side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice, memory
from dolfinx_mbd.errors import InputError, InputTypeError

__all__ = ["Combine", "Parameters", "Plan", "as_array", "shown"]

Combine = Literal["product", "zip"]
Parameters = Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Plan:
    """The values of each parameter and how they are combined; cases are numbered from 0.

    Attributes:
        values: Of each parameter, in the order in which they were given.
        combine: ``product``: every combination, the last parameter running fastest; ``zip``: the
            k-th case has the k-th value of each.
        held: Parameters of a part of a study that have one value in all of it.
    """

    values: Mapping[str, tuple[Any, ...]]
    combine: Combine = "product"
    held: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, parameters: Parameters, combine: Combine) -> Plan:
        """The plan of what a user gives.

        Args:
            parameters: Values by name; or a list of cases, each with the same names.
            combine: Of values by name.

        Raises:
            TypeError: If it is neither, or a name is no name.
            ValueError: If there is nothing to do, or lengths or names do not fit.
        """
        choice("combine", combine, ("product", "zip"))
        if isinstance(parameters, Mapping):
            values = {name: _listed(name, given) for name, given in parameters.items()}
        else:
            values, combine = _transposed(parameters), "zip"
        if not values:
            raise InputError("there is no parameter: give lists of values by name")
        for name, given in values.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise InputTypeError(
                    f"parameter names are those of arguments of the run, got {name!r}"
                )
            if not given:
                raise InputError(f"parameter {name!r} has no values")
        lengths = {name: len(given) for name, given in values.items()}
        if combine == "zip" and len(set(lengths.values())) > 1:
            raise InputError(f"with combine='zip' all lists must be as long; got {lengths}")
        if combine == "product":
            memory("parameters", lengths, CASE * math.prod(lengths.values()))
        return cls(values, combine)

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis for each parameter; of values side by side a single one."""
        lengths = tuple(len(given) for given in self.values.values())
        return lengths if self.combine == "product" else lengths[:1]

    def __len__(self) -> int:
        return math.prod(self.shape)

    def case(self, k: int) -> dict[str, Any]:
        """The parameters of a case."""
        if self.combine == "zip":
            return {name: given[k] for name, given in self.values.items()} | dict(self.held)
        places = np.unravel_index(k, self.shape)
        pairs = zip(self.values.items(), places, strict=True)
        return {name: given[int(at)] for (name, given), at in pairs} | dict(self.held)


CASE = 200
"""Memory of a case and its parameters, at least, bytes."""


def _listed(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise InputTypeError(
            f"parameter {name!r}: expected a list of values, got {given!r}; what is the same in "
            f"every case goes into fixed={{{name!r}: ...}}"
        )
    return tuple(value.item() if isinstance(value, np.generic) else value for value in given)


def _transposed(cases: Any) -> dict[str, tuple[Any, ...]]:
    """Lists of values of a list of cases."""
    rows = [] if isinstance(cases, (str, bytes)) or not hasattr(cases, "__iter__") else [*cases]
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputTypeError(
            "parameters: expected lists of values by name, {'speed': [...], ...}, or a list of "
            f"cases, [{{'speed': ...}}, ...]; got {cases!r}"
        )
    for k, row in enumerate(rows):
        if set(row) != set(rows[0]):
            raise InputError(
                f"all cases must have the same parameters; case 0 has {sorted(rows[0])}, case {k} "
                f"has {sorted(row)}"
            )
    return {name: _listed(name, [row[name] for row in rows]) for name in rows[0]}


def as_array(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers, strings or arrays of one shape as such an array; anything else as objects."""
    try:
        array = np.array(values)
        if array.dtype.kind in "biufcUS" and _alike(values):
            return array
    except ValueError:  # of other shapes
        pass
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _alike(values: Sequence[Any]) -> bool:
    """No strings made of numbers."""
    return len({isinstance(value, (str, bytes)) for value in values}) < 2


def shown(value: Any) -> str:
    """A parameter in a message or a table."""
    if isinstance(value, (bool, str, int)) or value is None:
        return str(value)
    if isinstance(value, (float, complex)):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, separator=" ", threshold=6)
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
