"""Results of a run as tables for other programs: names, units and components of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
    "violation": ("m or rad", ""),
    "power": ("W", ""),
    "work": ("J", ""),
    "energy": ("J", ""),
}
"""Unit and component names of each quantity; other components are numbered from 1."""


def quantities(history: object) -> Iterator[tuple[str, Array]]:
    """Yield names and values of all quantities of a history that are not empty."""
    for key in dict.fromkeys([*vars(history), *QUANTITIES]):
        values = getattr(history, key, None)
        if isinstance(values, np.ndarray) and key != "time" and key[0] != "_" and values.size:
            yield key, values
    for frame, wrench in getattr(history, "wrenches", {}).items():
        yield f"{frame}.force", wrench[:, :3]
        yield f"{frame}.moment", wrench[:, 3:]


def _format(key: str, values: Array) -> tuple[str, str] | None:
    """Return unit and component names ("" for numbers) of a quantity, or None if unknown."""
    name = key.rpartition(".")[2]
    if name == "rotation" and values.shape[1:] == (4,):
        return "1", "wxyz"
    return QUANTITIES.get(name)


def columns(arrays: Iterable[Named]) -> dict[str, Array]:
    """Return one column for each component, for example ``rod.position.x [m]``."""
    table = {}
    for name, key, values in arrays:
        unit, axes = _format(key, values) or ("", "")
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
        if not unit:
            continue
        dims = ["time"]
        for k, length in enumerate(values.shape[1:], start=2):
            last = k == values.ndim and len(axes) == length
            number = f"{name} mode" if values.ndim == 2 else f"{name} place"
            dim = {"xyz": "axis", "wxyz": "quaternion"}[axes] if last else number
            labels = list(axes) if last else np.arange(1, length + 1)
            coordinates[dim] = (dim, labels)
            dims.append(dim)
        variables[f"{name}.{key}"] = dims, values, {"units": unit}
    return xarray.Dataset(variables, coordinates, {"units": "SI: m, kg, s, rad"})
