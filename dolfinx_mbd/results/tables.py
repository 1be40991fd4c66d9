"""Results of a run for other programs: columns of a table, and datasets of xarray."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.results.series import Series

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

_COORDINATES = {"xyz": "axis", "wxyz": "quaternion"}
"""Names of the coordinates of vectors with named components."""


def columns(data: Iterable[Series]) -> dict[str, Array]:
    """Return one column for each component, for example ``rod.position.x [m]``."""
    return {
        f"{part.name} [{part.unit}]" if part.unit else part.name: part.values
        for series in data
        for part in series.components()
    }


def dataset(time: Array, data: Iterable[Series]) -> Dataset:
    """Return a dataset with coordinates and units; see `Solution.to_xarray`."""
    import xarray

    coordinates: dict[str, Any] = {"time": ("time", time, {"units": "s"})}
    variables = {}
    for series in data:
        names, dims = series.quantity.components, ["time"]
        shape = series.values.shape[1:]
        for axis, length in enumerate(shape, start=1):
            labels: Any = list(names)
            dim = _COORDINATES.get(names, "")
            if axis < len(shape) or length != len(names):
                kind = series.quantity.counts if len(shape) == 1 else "place"
                dim, labels = f"{series.part} {kind}", np.arange(1, length + 1)
            coordinates[dim] = (dim, labels)
            dims.append(dim)
        units = {"units": series.unit} if series.unit else {}
        variables[series.name] = dims, series.values, units
    return xarray.Dataset(variables, coordinates, {"units": "SI: m, kg, s, rad"})
