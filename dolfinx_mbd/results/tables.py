"""Results of a run as tables for other programs: names, units and components of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]
Named = tuple[str, str, Array]
"""Name of a body, joint or load, name of a quantity, and its values over time."""

QUANTITIES = {
    "position": ("m", "xyz"),
    "rotation": ("rad", "xyz"),  # quaternions have the unit 1 and the components wxyz
    "velocity": ("m/s", "xyz"),
    "omega": ("rad/s", "xyz"),
    "acceleration": ("m/s²", "xyz"),
    "alpha": ("rad/s²", "xyz"),
    "eta": ("SI", ""),
    "eta_rate": ("SI/s", ""),
    "eta_acceleration": ("SI/s²", ""),
    "momentum": ("kg m/s", "xyz"),
    "angular_momentum": ("kg m²/s", "xyz"),
    "kinetic_energy": ("J", ""),
    "elastic_energy": ("J", ""),
    "gravity_energy": ("J", ""),
    "force": ("N", "xyz"),
    "moment": ("N m", "xyz"),
    "first_force": ("N", "xyz"),
    "first_moment": ("N m", "xyz"),
    "rotation_rate": ("rad/s", "xyz"),
    "displacement": ("m", "xyz"),
    "displacement_rate": ("m/s", "xyz"),
    "length": ("m", ""),
    "length_rate": ("m/s", ""),
    "tension": ("N", ""),
    "strain": ("1", ""),
    "amplitude": ("1", ""),
    "gap": ("m", ""),
    "gap_rate": ("m/s", ""),
    "normal_force": ("N", ""),
    "dissipated": ("J", ""),
    "film_thickness": ("m", ""),
    "peak_pressure": ("Pa", ""),
    "side_flow": ("m³/s", ""),
    "states": ("SI", ""),
    "violation": ("m or rad", ""),
    "power": ("W", ""),
    "work": ("J", ""),
    "energy": ("J", ""),
}
"""Unit and component names of each quantity; other components are numbered from 1."""

INTEGRATED = {"work": ("power",), "dissipated": ("power", "energy", "gap")}
"""Quantities that depend on all earlier times, and the quantities from which they follow."""


def quantities(history: object) -> Iterator[tuple[str, Array]]:
    """Yield names and values of all quantities of a history that are not empty."""
    for key in getattr(history, "saved", dict.fromkeys([*vars(history), *QUANTITIES])):
        values = _values(history, key)
        if values is not None:
            yield key, values
    if not hasattr(history, "saved"):
        for frame, wrench in getattr(history, "wrenches", {}).items():
            yield f"{frame}.force", wrench[:, :3]
            yield f"{frame}.moment", wrench[:, 3:]


def quantity(name: str, history: object, key: str) -> Array:
    """Return a quantity of the history of a part by its name, for example ``force``.

    Args:
        name: Name of the part, for messages.
        history: History of the part.
        key: Name of the quantity. ``big_end.force`` is the force at an interface of a body, and
            ``force.x`` a component.

    Raises:
        InputError: The quantity is unknown; the message lists the quantities of the history.
    """
    values = _values(history, key)
    base, _, label = key.rpartition(".")
    if values is None and base:
        whole = _values(history, base)
        labels = [] if whole is None or whole.ndim != 2 else component_names(base, whole)
        if whole is not None and label in labels:
            values = whole[:, labels.index(label)]
    if values is None:
        arrays = dict(quantities(history))
        names = ", ".join(map(repr, arrays))
        text = f"{name!r} has no quantity {key!r}; it has {names}"
        parts = (component(k, v) for k, v in arrays.items() if v.ndim == 2)
        if example := next(parts, ""):
            text += f", and components such as {example!r}"
        raise InputError(text, argument="outputs", value=key, expected=names)
    return values


def _values(history: object, key: str) -> Array | None:
    """Return a quantity of a history, or None if it is unknown or empty."""
    if not key or key == "time" or key[0] == "_":
        return None
    frame, _, kind = key.rpartition(".")
    values = getattr(history, key, None)
    if frame and kind in ("force", "moment") and values is None:
        wrench = getattr(history, "wrenches", {}).get(frame)
        values = None if wrench is None else wrench[:, :3] if kind == "force" else wrench[:, 3:]
    return values if isinstance(values, np.ndarray) and values.size else None


def component_names(key: str, values: Array) -> list[str]:
    """Return the names of the components of a quantity of shape (nt, n)."""
    count = values.shape[1]
    axes = (_format(key, values) or ("", ""))[1]
    return list(axes) if len(axes) == count else [str(k) for k in range(1, count + 1)]


def _format(key: str, values: Array) -> tuple[str, str] | None:
    """Return unit and component names ("" for numbers) of a quantity, or None if unknown."""
    *base, name = key.split(".")
    if name == "rotation" and values.shape[1:] == (4,):
        return "1", "wxyz"
    if name not in QUANTITIES and base:
        if base[-1] == "rotation" and name == "w":
            return "1", ""
        return QUANTITIES.get(base[-1])
    return QUANTITIES.get(name)


def unit_of(key: str, values: Array) -> str:
    """Return the unit of a quantity, or "" if it is unknown."""
    return (_format(key, values) or ("", ""))[0]


def component(key: str, values: Array) -> str:
    """Return the name of the first component of a quantity of shape (nt, n), such as `force.x`."""
    return f"{key}.{component_names(key, values)[0]}"


def label(name: str, key: str) -> str:
    """Return the name of a quantity of a part, or the name of an output that is a function."""
    return f"{name}.{key}" if key else name


def columns(arrays: Iterable[Named]) -> dict[str, Array]:
    """Return one column for each component, for example ``rod.position.x [m]``."""
    table = {}
    for name, key, values in arrays:
        unit, axes = _format(key, values) or ("", "")
        if not key:
            table[name] = values
        if not unit:
            continue
        if values.ndim == 1:
            table[f"{name}.{key} [{unit}]"] = values
            continue
        components = values.reshape(len(values), -1).T
        labels = axes if len(axes) == len(components) else range(1, len(components) + 1)
        for label, column in zip(labels, components, strict=True):
            table[f"{name}.{key}.{label} [{unit}]"] = column
    return table


def dataset(time: Array, arrays: Iterable[Named]) -> Dataset:
    """Return a dataset with coordinates and units; see `Solution.to_xarray`."""
    import xarray

    coordinates: dict[str, Any] = {"time": ("time", time, {"units": "s"})}
    variables = {}
    for name, key, values in arrays:
        unit, axes = _format(key, values) or ("", "")
        if not unit and key:
            continue
        dims = ["time"]
        for k, length in enumerate(values.shape[1:], start=2):
            last = k == values.ndim and len(axes) == length
            count = "point" if key in ("gap", "gap_rate", "normal_force") else "mode"
            number = f"{name} {count}" if values.ndim == 2 else f"{name} place"
            dim = {"xyz": "axis", "wxyz": "quaternion"}[axes] if last else number
            labels = list(axes) if last else np.arange(1, length + 1)
            coordinates[dim] = (dim, labels)
            dims.append(dim)
        variables[label(name, key)] = dims, values, {"units": unit} if unit else {}
    return xarray.Dataset(variables, coordinates, {"units": "SI: m, kg, s, rad"})
