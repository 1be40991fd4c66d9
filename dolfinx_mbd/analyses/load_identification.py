"""Loads of a body from measured strains and accelerations, by regularized least squares.

In the frame of the body, the acceleration a of its rigid motion (minus gravity) and the elastic
coordinates follow from the loads f, for each frequency, by

    [M_r  K + iωC − ω²M] (a, η) = B f + B_ω (ω_i ω_j)

at the angular frequency ω, with the modal matrices K, C and M. M_r a are the inertia forces of the
rigid motion, B f the forces of the loads, and B_ω the centrifugal forces of the products of angular
velocities. The signals y = H f of strain gauges and accelerometers are linear in (a, η). The loads
minimize

    |W (H f − y)|² + λ² |S⁻¹ f|²

where W contains the inverse standard deviations of the noise, λ is the regularization, and the
scale S makes moments comparable with forces. By default λ minimizes the expected error of the
signals that follow from the loads (Mallows' C_p): the part of the signals that the loads do not
explain, plus the noise in the part that they explain. Motions are small in the frame of the body;
Coriolis forces are neglected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.load_equations import (
    LinearSensor,
    LoadEquations,
    LoadResponse,
)
from dolfinx_mbd.analyses.spectra import equally_spaced
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.response.frequency_response import FORCES
from dolfinx_mbd.body.response.linearized import (
    interface_map,
    name_list,
    point_map,
    spin_fields,
)
from dolfinx_mbd.checks import array, increasing, instance, number, reject, unknown
from dolfinx_mbd.errors import AccuracyWarning, warn
from dolfinx_mbd.html import short_repr

__all__ = ["IdentifiedLoads", "identify_loads"]

Array = NDArray[np.float64]

AXES = ("ax", "ay", "az")
DEFAULT_NOISE = 0.01
"""Default standard deviation of a signal, relative to its root mean square."""

OBSERVED = 0.9
"""Least resolution of a load that the signals determine."""

DETERMINED, SHOWN = 0.5, 0.1
"""Least filter factor of a determined combination, and least part of a load that it shows."""

SMALL = 1e-3
"""Least default noise of a signal, relative to the noise of the largest signal of its kind."""

LEAST_STRAIN, LEAST_ACCELERATION = 1e-8, 1e-3
"""Least default noise of a strain, and of an acceleration, m/s²."""


@dataclass(frozen=True, eq=False)
class IdentifiedLoads:
    """Loads that explain measured signals, and what the signals do not determine.

    The singular values, and the attributes from `rank` to `combinations`, are computed for slow
    loads, far below the first frequency of the body.

    Attributes:
        time: Times, shape (nt,), s.
        names: Names of the loads, such as `left fx`.
        values: Loads, shape (nt, loads), N, N m, or amplitudes of distributed loads.
        sensors: Names of the signals.
        residuals: Root mean square of the part of each signal that the loads do not explain,
            divided by the standard deviation of the noise, shape (signals,); about 1 or less if the
            model is right.
        singular_values: Singular values of the weighted equations, relative to the largest one, in
            descending order.
        rank: Number of singular values above the regularization, which is the number of
            combinations of loads that the signals determine.
        resolution: Share of each load that appears in its estimate, shape (loads,): 1 if the
            signals determine it, and 0 if they do not depend on it.
        deviation: Standard deviation of each load due to the noise, shape (loads,).
        combinations: Combinations of loads that the signals do not determine, with moments divided
            by the size of the body, such as ``+0.71 left fx -0.71 right fx``.
        regularization: Regularization λ, relative to the largest singular value.

    Example:
        >>> t = np.arange(100) / 1e3
        >>> signals = {"left ax": 0 * t + 2.0, "right ax": 0 * t + 2.0}
        >>> result = mbd.analyses.identify_loads(body, t, signals, ["right fx"])
        >>> print(result.rank, result.resolution.round(3), result.load("right fx").round(2)[:2])
        1 [1.] [1.2 1.2]
    """

    time: Array
    names: tuple[str, ...]
    values: Array
    sensors: tuple[str, ...]
    residuals: Array
    singular_values: Array
    rank: int
    resolution: Array
    deviation: Array
    combinations: tuple[str, ...]
    regularization: float

    __repr__ = short_repr

    @property
    def unobserved(self) -> tuple[str, ...]:
        """Names of the loads with a resolution below 0.9: their values are not reliable."""
        pairs = zip(self.names, self.resolution, strict=True)
        return tuple(name for name, share in pairs if share < OBSERVED)

    def load(self, name: str) -> Array:
        """Return the history of a load, shape (nt,); an error lists the known names."""
        if not isinstance(name, str) or name not in self.names:
            unknown("load", name, self.names, "the identified loads are")
        return self.values[:, self.names.index(name)]


def identify_loads(
    body: ReducedBody,
    time: ArrayLike,
    signals: Mapping[str, ArrayLike],
    loads: str | Iterable[str] | None = None,
    *,
    omega: ArrayLike | None = None,
    noise: Mapping[str, float] | None = None,
    regularization: float | None = None,
    up_to: float | None = None,
) -> IdentifiedLoads:
    """Estimate the loads of a body from signals of strain gauges and accelerometers.

    Args:
        body: A reduced body with its damping, and with the gauges of `mbd.gauges`.
        time: Equally spaced times, shape (nt,), s.
        signals: Measured values by name. With the name of a gauge, they are its strains, shape
            (nt,) or (nt, grids). With the name of an interface or a point, followed by ``ax``,
            ``ay`` or ``az``, they are its proper acceleration in the axes of the body, shape (nt,),
            m/s², as an accelerometer measures it (9.81 m/s² upwards at rest).
        loads: Names of the unknown loads: ``<interface> fx`` to ``fz``, ``mx`` to ``mz``; or an
            interface, for all six; or a distributed load of the body. By default the names are all
            components at all interfaces. Other loads are zero.
        omega: Angular velocity of the body in its axes, shape (nt, 3), rad/s; by default zero. It
            determines the centrifugal forces.
        noise: Standard deviation of signals by name, in their units; the noise of different
            instants and signals is independent. By default 1 % of the root mean square of each
            signal, but at least 0.1 % of that of the largest signal of its kind, 1e-8 for strains
            and 1e-3 m/s² for accelerations.
        regularization: λ, relative to the largest singular value of the equations. A larger value
            suppresses loads that the signals determine badly. By default it follows from the noise,
            or from the residuals if they are larger than the noise.
        up_to: Largest frequency of the loads, Hz; by default half the sampling rate. Keep it in the
            range in which the modes of the body are accurate.

    Warns:
        AccuracyWarning: The signals do not determine some of the loads, or a signal without given
            noise is nearly zero.

    Raises:
        InputError: A name is unknown, a signal has the wrong shape, or the times are not equally
            spaced.

    Example:
        >>> gauge = mbd.body.StrainGauge("g", (0, 0, 0), (0, 0, 1), [[1, 0, 0]], 3e-3, [[1.0, 0.0]])
        >>> rod = body.replace(gauges=(gauge,))
        >>> t = np.arange(100) / 1e3
        >>> signals = {"g": 1e-5 + t * 1e-4, "left ax": 0 * t}
        >>> noise = {"g": 1e-7, "left ax": 0.1}
        >>> pulled = mbd.analyses.identify_loads(
        ...     rod, t, signals, ["left fx", "right fx"], noise=noise
        ... )
        >>> print(pulled.rank, pulled.values[50].round(2))
        2 [-37.5  37.5]
    """
    instance("body", body, ReducedBody)
    t = increasing("time", time, least=8, unit="s")
    instance("signals", signals, Mapping)
    if not signals:
        reject("signals", signals, "one or more signals")
    sensors = [_sensor(body, name, values, len(t)) for name, values in signals.items()]
    y = np.hstack([sensor.values for sensor in sensors])
    deviations = _deviations(signals, sensors, noise)
    names, inputs, scales = _loads(body, loads)
    spins = np.zeros((len(t), 6))
    if omega is not None:
        w = array("omega", omega, (len(t), 3))
        spins = np.stack([w[:, i] * w[:, j] for i, j in SPINS], axis=1)
    t, _ = equally_spaced(t, y, resample=False)
    model = LoadResponse(body, sensors, inputs * scales, 1 / deviations)
    if regularization is not None:
        number("regularization", regularization, low=1e-12, high=1.0)
    (static, *_), _ = model.response(np.zeros(1))  # to the loads, at 0 Hz
    _, values, right = np.linalg.svd(static.real, full_matrices=False)
    if not values.max(initial=0.0) > 0:
        reject("loads", loads, "loads to which the signals respond")
    rate = (len(t) - 1) / (t[-1] - t[0])
    highest = 0.5 * rate if up_to is None else number("up_to", up_to, positive=True, unit="Hz")
    equations = LoadEquations(model, y, spins, rate, highest)
    chosen = equations.best_regularization(values[0])
    factor = chosen if regularization is None else float(regularization)
    damp = factor * values[0]
    estimates, residual = equations.solve(damp)
    filters = values**2 / (values**2 + damp**2)
    resolution = np.einsum("ki,k->i", right**2, filters)
    gains = filters / np.where(values > 0, values, 1.0)
    spread = np.sqrt(np.einsum("ki,k->i", right**2, gains**2))
    result = IdentifiedLoads(
        t,
        names,
        estimates * scales,
        tuple(label for sensor in sensors for label in sensor.labels),
        np.sqrt(np.mean(residual**2, axis=0)),
        values / values[0],
        int(np.sum(values > damp)),
        resolution,
        spread * scales,
        _combinations(names, right, filters),
        factor,
    )
    _warn_of_unobserved(body, result, chosen)
    return result


def _sensor(body: ReducedBody, name: Any, signal: Any, count: int) -> LinearSensor:
    """Return a sensor with its measured values."""
    gauges = {gauge.name: gauge for gauge in body.gauges}
    places = {i.name: (i.point, interface_map(body, i.name)[:3]) for i in body.interfaces}
    places |= {p.name: (p.position, point_map(body, p.name)) for p in body.points}
    place, _, axis = str(name).rpartition(" ")
    if name in gauges:
        labels, modes = gauges[name].labels, gauges[name].modes
        # Motion and steady rotation of a rigid body cause no strain
        rows: Array = np.hstack([np.zeros((len(modes), 6)), modes])
        spin: Array = np.zeros((len(modes), 6))
    elif axis in AXES and place in places:
        point, motion = places[place]
        k = AXES.index(axis)
        labels, rows = (str(name),), motion[[k]]
        spin = -spin_fields(point[None])[:, 0, k][None]
    else:
        known = [*gauges, *(f"{place} ax" for place in places)]
        unknown("signal", str(name), known, f"body {body.name!r} has (also ay, az)")
    label = f"signals[{name!r}]"
    values = array(label, signal)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape != (count, len(rows)):
        reject(label, signal, f"an array of shape ({count}, {len(rows)}), one row for each time")
    return LinearSensor(labels, rows, spin, name not in gauges, values)


def _deviations(
    signals: Mapping[str, Any], sensors: list[LinearSensor], noise: Mapping[str, float] | None
) -> Array:
    """Return the standard deviation of the noise of each strain gauge and accelerometer.

    The shape of the result is (labels of all sensors,).
    """
    instance("noise", noise, (Mapping, type(None)))
    for name in noise or {}:
        if name not in signals:
            unknown("signal", name, signals, "the signals are")
    sizes = [float(np.sqrt(np.mean(sensor.values**2))) for sensor in sensors]
    result = []
    for name, sensor, size in zip(signals, sensors, sizes, strict=True):
        if noise is not None and name in noise:
            value = number(f"noise[{name!r}]", noise[name], positive=True)
        else:
            if not size > 0:
                reject(
                    "noise",
                    noise,
                    f"a value for {name!r}, because this signal is zero at all times",
                )
            sizes_of_kind = [
                x
                for x, other in zip(sizes, sensors, strict=True)
                if other.is_accelerometer == sensor.is_accelerometer
            ]
            floor = LEAST_ACCELERATION if sensor.is_accelerometer else LEAST_STRAIN
            least = max(SMALL * DEFAULT_NOISE * max(sizes_of_kind), floor)
            value = max(DEFAULT_NOISE * size, least)
            if size < least:
                _warn_of_small_signal(name, size, value)
        result += [value] * len(sensor.labels)
    return np.array(result)


def _warn_of_small_signal(name: str, size: float, value: float) -> None:
    """Warn that a signal is smaller than its default noise."""
    text = (
        f"signal {name!r} is nearly zero, with a root mean square of {size:.3g}; its noise is "
        f"assumed to be {value:.3g}. Give its standard deviation: noise={{{name!r}: ...}}"
    )
    warn(AccuracyWarning(text, quantity=f"signal {name!r}", value=size, limit=value))


def _loads(body: ReducedBody, loads: Any) -> tuple[tuple[str, ...], Array, Array]:
    """Return names, inputs (6 + n, loads) and scales (loads,) of the unknown loads.

    The columns of the inputs are the work of unit loads on rigid motion and modes. A load is its
    scale times a scaled load; all scaled loads are of the order of a force in N: the scale is 1 for
    forces, the size of the body for moments, and 1/N for the amplitudes of distributed loads.
    """
    points: Any = (
        [interface.point for interface in body.interfaces]
        if body.skin is None
        else body.skin.points
    )
    size = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0
    known: dict[str, tuple[Array, float]] = {}  # work and scale by name
    for interface in body.interfaces:
        for force, work in zip(FORCES, interface_map(body, interface.name), strict=True):
            known[f"{interface.name} {force}"] = work, 1.0 if force.startswith("f") else size
    for load in body.loads:
        scale = max(float(np.linalg.norm(load.force)), float(np.linalg.norm(load.moment)) / size)
        work = np.concatenate([load.force, load.moment, load.modes])
        known[load.name] = work, 1 / scale if scale > 0 else 1.0
    groups = {
        interface.name: [f"{interface.name} {force}" for force in FORCES]
        for interface in body.interfaces
    }
    requested = list(groups) if loads is None else name_list("loads", loads)
    names: list[str] = []
    for name in requested:
        if name not in groups and name not in known:
            unknown("load", name, [*groups, *known], f"body {body.name!r} has")
        names += groups.get(name, [name])
    if not names or len(set(names)) < len(names):
        reject("loads", loads, "one or more different loads")
    columns, scales = zip(*(known[name] for name in names), strict=True)
    return tuple(names), np.stack(columns, axis=1), np.array(scales)


def _combinations(names: tuple[str, ...], right: Array, filters: Array) -> tuple[str, ...]:
    """Return the combinations of loads that the signals do not determine, as texts.

    Args:
        names: Names of the loads.
        right: Right singular vectors of the response to the scaled loads, (rank, loads).
        filters: Filter factors of these vectors, (rank,): the part of a combination that the
            regularization retains. A combination with less than `DETERMINED` counts as not
            determined, and so do the combinations normal to all these vectors.
    """
    rank = len(filters)
    full = np.linalg.svd(right)[2] if rank < len(names) else right
    rows = [right[k] for k in range(rank) if filters[k] < DETERMINED] + list(full[rank:])
    texts = []
    for row in rows:
        row = row * np.sign(row[np.abs(row).argmax()])
        pairs = zip(row, names, strict=True)
        parts = [f"{x:+.2f} {name}" for x, name in pairs if abs(x) > SHOWN]
        texts.append(" ".join(parts))
    return tuple(texts)


def _warn_of_unobserved(body: ReducedBody, result: IdentifiedLoads, chosen: float) -> None:
    """Warn if some loads are not determined; `chosen` is the regularization from the noise."""
    if not result.unobserved:
        return
    cause, cure = "the signals determine", "Use more or better sensors, or name fewer loads"
    if np.sum(result.singular_values > chosen) > result.rank:
        cause = f"with regularization={result.regularization:.3g} the signals determine"
        cure = f"The noise permits regularization={chosen:.1g}, which is the default"
    lost = f"; not determined: {'; '.join(result.combinations)}" if result.combinations else ""
    text = (
        f"{cause} {result.rank} of {len(result.names)} combinations of loads of body "
        f"{body.name!r}. Not reliable: {', '.join(result.unobserved)}{lost}. {cure}"
    )
    value = float(result.resolution.min())
    warn(AccuracyWarning(text, quantity="resolution", value=value, limit=OBSERVED))
