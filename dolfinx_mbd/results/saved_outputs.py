"""Requested quantities of a run whose states were not saved."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.system import SystemData
from dolfinx_mbd.results.histories import BodyHistory, ElementHistory, JointHistory
from dolfinx_mbd.results.tables import INTEGRATED, QUANTITIES

Array = NDArray[np.float64]
_H = TypeVar("_H", bound="_SavedHistory")


class _SavedHistory:
    """History with some quantities only; an error explains how to obtain the other quantities."""

    def __init__(self, name: str, time: Array, values: dict[str, Array], whole: bool) -> None:
        vars(self).update(values, name=name, time=time, saved=tuple(values), _whole=whole)

    def __getattribute__(self, key: str) -> Any:
        values = object.__getattribute__(self, "__dict__")
        if key in values:
            return values[key]
        wrenches = _wrenches(values) if key == "wrenches" else {}
        if wrenches:
            return wrenches
        integrated = key in INTEGRATED and all(part in values for part in INTEGRATED[key])
        if (key not in QUANTITIES and key != "wrenches") or integrated:
            return object.__getattribute__(self, key)
        if values["_whole"]:  # the quantity does not apply to this part
            return {} if key == "wrenches" else np.zeros((len(values["time"]), 0))
        name = values["name"]
        raise InputError(
            f"the run did not save {name}.{key}: add {name + '.' + key!r} or {name!r} to outputs=",
            argument="outputs",
            value=f"{name}.{key}",
        )

    def __repr__(self) -> str:
        return f"<{self.name}: {', '.join(self.saved)} at {len(self.time)} times>"


class _SavedBody(_SavedHistory, BodyHistory):
    """History of a body with some quantities only."""


class _SavedJoint(_SavedHistory, JointHistory):
    """History of a joint or driver with some quantities only."""


class _SavedElement(_SavedHistory, ElementHistory):
    """History of a load with some quantities only."""


def _wrenches(values: dict[str, Any]) -> dict[str, Array]:
    """Return the wrenches of the frames whose forces and moments were saved."""
    frames = [key.removesuffix(".force") for key in values if key.endswith(".force")]
    return {
        frame: np.hstack([values[f"{frame}.force"], values[f"{frame}.moment"]])
        for frame in frames
        if f"{frame}.moment" in values
    }


class SavedOutputs:
    """Values of requested outputs over time, with the histories of the parts to which they belong.

    Args:
        system: The mechanism.
        rows: Time and values by name, (nt,).
        requested: Names of the outputs, as the user wrote them.
    """

    def __init__(self, system: SystemData, rows: NDArray[np.void], requested: list[str]) -> None:
        self.system, self.rows, self.requested = system, rows, requested
        self.time: Array = rows["time"]
        self.values: dict[str, Array] = {
            name: rows[name] for name in rows.dtype.names or () if name != "time"
        }
        self._joints = [*(j.name for j in system.joints), *(d.name for d in system.drivers)]
        loads = [load.name for load in system.loads]
        parts = [*(body.name for body in system.mechanical_bodies), *self._joints, *loads]
        self._parts: dict[str, dict[str, Array]] = {}
        self.functions: dict[str, Array] = {}
        for name, values in self.values.items():
            owners = [part for part in parts if name.startswith(f"{part}.")]
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

    def body(self, k: int) -> BodyHistory:
        """Return the history of the body with index k."""
        body = self.system.bodies[k]
        history = self._history(_SavedBody, body.name)
        if not body.num_elastic:
            none = np.zeros((len(self.time), 0))
            vars(history).update(eta=none, eta_rate=none, eta_acceleration=none)
        return history

    def joint(self, name: str) -> JointHistory:
        """Return the history of a joint or driver."""
        return self._history(_SavedJoint, name)

    def element(self, name: str, axes: str) -> ElementHistory:
        """Return the history of a load in global axes."""
        if name in self._joints or axes != "global":
            raise self._error(f"run.element({name!r}, axes={axes!r})")
        return self._history(_SavedElement, name)

    def _history(self, kind: type[_H], name: str) -> _H:
        if name not in self._parts:
            raise InputError(
                f"the run did not save {name!r}: add it to outputs=; saved: "
                f"{', '.join(map(repr, self.requested))}",
                argument="outputs",
                value=name,
            )
        values, whole = dict(self._parts[name]), name in self.requested
        history = kind(name, self.time, dict(values), whole)
        for key, sources in INTEGRATED.items():
            if all(source in values for source in sources):
                if whole or f"{name}.{key}" in self.requested:
                    values[key] = getattr(history, key)
        for source in {source for sources in INTEGRATED.values() for source in sources}:
            if not whole and f"{name}.{source}" not in self.requested:
                values.pop(source, None)
        return kind(name, self.time, values, whole)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        raise self._error("this quantity")

    def _error(self, request: str) -> InputError:
        saved = ", ".join(map(repr, self.requested))
        return InputError(
            f"{request} needs the states of the mechanism, but the run saved only the outputs "
            f"{saved}: simulate without outputs=, or add the quantity to outputs=",
            argument="outputs",
            value=self.requested,
        )
