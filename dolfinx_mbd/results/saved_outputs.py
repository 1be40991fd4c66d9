"""Requested quantities of a run whose states were not saved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.joints import Driver, Joint
from dolfinx_mbd.mechanism.run_quantities import ELASTIC
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.results.series import PartData, Values

Array = NDArray[np.float64]


class SavedOutputs:
    """Values of requested outputs over time, with the histories of the parts to which they belong.

    Args:
        system: The mechanism.
        rows: Time and values by name, (nt,).
        requested: Names of the outputs, as the user wrote them.
    """

    def __init__(self, system: System, rows: NDArray[np.void], requested: list[str]) -> None:
        self.system, self.rows, self.requested = system, rows, requested
        self.time: Array = rows["time"]
        self.values: dict[str, Array] = {
            name: rows[name] for name in rows.dtype.names or () if name != "time"
        }
        self._parts: dict[str, dict[str, Array]] = {}
        self.functions: dict[str, Array] = {}
        for name, values in self.values.items():
            owners = [part for part in system.parts if name.startswith(f"{part}.")]
            if name in requested and not owners:
                self.functions[name] = values
            else:
                part = max(owners, key=len)
                self._parts.setdefault(part, {})[name[len(part) + 1 :]] = values

    def part(self, times: slice) -> SavedOutputs:
        """Return the values at some of the times."""
        return SavedOutputs(self.system, self.rows[times], self.requested)

    def names(self) -> list[str]:
        """Return the names of the parts and functions whose values were saved."""
        return [*self._parts, *self.functions]

    def data(self, name: str) -> PartData:
        """Return the saved quantities of a part."""
        part, is_complete = self.system.parts[name], name in self.requested
        if name not in self._parts:
            raise InputError(
                f"the run did not save {name!r}: add it to outputs=; saved: "
                f"{', '.join(map(repr, self.requested))}",
                argument="outputs",
                value=name,
            )
        arrays, empty = dict(self._parts[name]), np.zeros((len(self.time), 0))
        if not getattr(part, "num_elastic", 1):  # a rigid body
            arrays |= {key: empty for key in ELASTIC}

        def absent(key: str) -> Array:
            if is_complete:  # the quantity does not apply to this part
                return empty
            raise InputError(
                f"the run did not save {name}.{key}: add {name + '.' + key!r} or {name!r} to "
                "outputs=",
                argument="outputs",
                value=f"{name}.{key}",
            )

        def is_requested(key: str) -> bool:
            return is_complete or arrays.get(key) is empty or f"{name}.{key}" in self.requested

        values: dict[str, Values] = {
            key: lambda array=array: array  # type: ignore[misc]
            for key, array in arrays.items()
        }
        return PartData(name, self.time, part.run_quantities, values).only(is_requested, absent)

    def element(self, name: str, axes: str) -> PartData:
        """Return the saved quantities of a load in global axes."""
        if isinstance(self.system.parts[name], Joint | Driver) or axes != "global":
            raise self._error(f"run.element({name!r}, axes={axes!r})")
        return self.data(name)

    def __getattr__(self, key: str) -> Any:
        """Raise an error with advice for attributes of `SavedStates`."""
        if key.startswith("__"):
            raise AttributeError(key)
        raise self._error("this quantity")

    def _error(self, request: str) -> InputError:
        """Return an error about a request for values that were not saved."""
        saved = ", ".join(map(repr, self.requested))
        return InputError(
            f"{request} needs the states of the mechanism, but the run saved only the outputs "
            f"{saved}: simulate without outputs=, or add the quantity to outputs=",
            argument="outputs",
            value=self.requested,
        )
