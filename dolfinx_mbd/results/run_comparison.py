"""Differences between the histories of two runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.results.series import Series

Array = NDArray[np.float64]

_SAME_TIME = 1e-9  # largest difference of equal times, relative to the duration of the run


class Difference(NamedTuple):
    """Difference of a quantity in two runs; for vectors, the norm of their difference.

    Attributes:
        largest: Largest difference.
        rms: Root mean square of the difference over the times that both runs saved.
        time: Time of the largest difference, s.
        scale: Largest value of the quantity in the first run.
        unit: Unit of these values, except for the time.

    Example:
        >>> other = mbd.simulate(pendulum, t_end=0.5, dt=2e-3)
        >>> force = run.compare(other, ["pin.force"])["pin.force"]
        >>> bool(force.largest < 1e-3 * force.scale), force.unit
        (True, 'N')
    """

    largest: float
    rms: float
    time: float
    scale: float
    unit: str


def compare(
    times: tuple[Array, Array], data: tuple[Iterable[Series], Iterable[Series]]
) -> dict[str, Difference]:
    """Return the differences of two runs by name; see `Solution.compare`."""
    first, second = times
    tolerance = _SAME_TIME * float(np.ptp(first))
    nearest = np.minimum(np.searchsorted(second, first - tolerance), len(second) - 1)
    matched = np.abs(first - second[nearest]) <= tolerance
    # One common time, the start, does not show whether the runs agree
    if matched.sum() < min(2, len(first), len(second)):
        count = "only one saved time" if matched.any() else "no saved times"
        raise InputError(
            f"the runs have {count} in common; simulate both with steps of equal length, or "
            "interpolate: run.to_xarray().interp(time=other.time)",
            argument="other",
        )
    rows, others = np.flatnonzero(matched), nearest[matched]
    first_series, second_series = ({series.name: series for series in part} for part in data)
    table = {}
    for name in dict.fromkeys([*first_series, *second_series]):
        series, other = _series(first_series, name), _series(second_series, name)
        if series is None or other is None or other.values.shape[1:] != series.values.shape[1:]:
            continue
        first_values, second_values = series.values[rows], other.values[others]
        difference = _norm(first_values - second_values)
        if series.quantity.components == "wxyz":  # the quaternions p and −p are the same rotation
            difference = np.minimum(difference, _norm(first_values + second_values))
        n = int(np.argmax(difference))
        table[name] = Difference(
            largest=float(difference[n]),
            rms=float(np.sqrt(np.mean(difference**2))),
            time=float(first[rows[n]]),
            scale=float(_norm(first_values).max()),
            unit=series.unit,
        )
    if not table:
        text = "the runs have no quantity in common"
        raise InputError(text, argument="other", value=sorted(second_series))
    return table


def _series(data: dict[str, Series], name: str) -> Series | None:
    """Return a quantity, or a component of a quantity that a run has, or None."""
    quantity, _, component = name.rpartition(".")
    if name in data or quantity not in data:
        return data.get(name)
    return data[quantity].component(component)


def _norm(values: Array) -> Array:
    """Return the norm over all components at each time, (nt,)."""
    return np.linalg.norm(values.reshape(len(values), -1), axis=1)
