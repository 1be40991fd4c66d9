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
scale S makes moments comparable with forces. Motions are small in the frame of the body; Coriolis
forces are neglected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.checks import array, increasing, instance, number, reject, unknown
from dolfinx_mbd.errors import AccuracyWarning, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.multibody.analyses.spectra import equally_spaced
from dolfinx_mbd.response import linearize_body
from dolfinx_mbd.response.frequency_response import FORCES
from dolfinx_mbd.response.linearized import (
    interface_map,
    name_list,
    point_map,
    spin_fields,
    spin_loads,
)

__all__ = ["IdentifiedLoads", "identify_loads"]

Array = NDArray[np.float64]

AXES = ("ax", "ay", "az")
DEFAULT_NOISE = 0.01
"""Default standard deviation of a signal, relative to its root mean square."""

OBSERVED = 0.9
"""Least resolution of a load that the signals determine."""

PADDING = 0.1
"""Length by which a signal is continued at each end, by its odd reflection."""

CHUNK = 256  # frequencies that are solved together


@dataclass(frozen=True, eq=False)
class IdentifiedLoads:
    """Loads that explain measured signals, and what the signals do not determine.

    The singular values, and the attributes from `rank` to `combinations`, are computed for slow
    loads, far below the first frequency of the body.

    Attributes:
        time: Times, shape (nt,), s.
        names: Names of the loads, such as `left fx`.
        values: Loads, shape (nt, nf), N, N m, or amplitudes of distributed loads.
        sensors: Names of the signals.
        residuals: Root mean square of the part of each signal that the loads do not explain,
            divided by the standard deviation of the noise, shape (ns,); about 1 or less if the
            model is right.
        singular_values: Singular values of the weighted equations, relative to the largest one, in
            descending order.
        rank: Number of singular values above the regularization, which is the number of
            combinations of loads that the signals determine.
        resolution: Share of each load that appears in its estimate, shape (nf,): 1 if the signals
            determine it, and 0 if they do not depend on it.
        deviation: Standard deviation of each load due to the noise, shape (nf,).
        combinations: Combinations of loads that the signals do not determine, with moments divided
            by the size of the body, such as ``+0.71 left fx -0.71 right fx``.

    Example:
        >>> t = np.arange(100) / 1e3
        >>> signals = {"left ax": 0 * t + 2.0, "right ax": 0 * t + 2.0}
        >>> result = mbd.identify_loads(body, t, signals, ["right fx"])
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
    regularization: float = 1e-3,
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
        noise: Standard deviation of signals by name, in their units. By default 1 % of the root
            mean square of each signal.
        regularization: λ, relative to the largest singular value of the equations. A larger value
            suppresses loads that the signals determine badly.
        up_to: Largest frequency of the loads, Hz; by default half the sampling rate. Keep it in the
            range in which the modes of the body are accurate.

    Warns:
        AccuracyWarning: The signals do not determine some of the loads.

    Raises:
        InputError: A name is unknown, a signal has the wrong shape, or the times are not equally
            spaced.

    Example:
        >>> gauge = mbd.body.StrainGauge("g", (0, 0, 0), (0, 0, 1), [[1, 0, 0]], 3e-3, [[1.0, 0.0]])
        >>> rod = body.replace(gauges=(gauge,))
        >>> t = np.arange(100) / 1e3
        >>> signals = {"g": 1e-5 + t * 1e-4, "left ax": 0 * t}
        >>> noise = {"g": 1e-7, "left ax": 0.1}
        >>> pulled = mbd.identify_loads(rod, t, signals, ["left fx", "right fx"], noise=noise)
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
    t, _ = equally_spaced(t, y, False)
    model = _Model(body, sensors, inputs * scales, 1 / deviations)
    factor = number("regularization", regularization, low=1e-12, high=1.0)
    static = model.response(np.zeros(1))[0][0].real
    _, values, right = np.linalg.svd(static, full_matrices=False)
    if not values.max(initial=0.0) > 0:
        reject("loads", loads, "loads to which the signals respond")
    damp = factor * values[0]
    rate = (len(t) - 1) / (t[-1] - t[0])
    highest = 0.5 * rate if up_to is None else number("up_to", up_to, positive=True, unit="Hz")
    estimates, residual = _solve(model, y, spins, rate, highest, damp)
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
    )
    _warn_of_unobserved(body, result)
    return result


class _Sensor(NamedTuple):
    """Linear signals of a gauge (one for each grid) or an accelerometer."""

    labels: tuple[str, ...]
    rows: Array  # factors of (a, η), shape (grids, 6 + n)
    spin: Array  # factors of the products ω_iω_j, shape (grids, 6)
    moving: bool  # whether the factors of η apply to its second derivative
    values: Array  # measured, shape (nt, grids)


def _sensor(body: ReducedBody, name: Any, signal: Any, count: int) -> _Sensor:
    """Return a sensor with its measured values."""
    gauges = {gauge.name: gauge for gauge in body.gauges}
    places = {i.name: (i.point, interface_map(body, i.name)[:3]) for i in body.interfaces}
    places |= {p.name: (p.position, point_map(body, p.name)) for p in body.points}
    text, _, axis = str(name).rpartition(" ")
    if name in gauges:
        labels, modes = gauges[name].labels, gauges[name].modes
        spin: Array = np.zeros((len(modes), 6))
        rows: Array = np.hstack([spin, modes])
    elif axis in AXES and text in places:
        point, motion = places[text]
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
    return _Sensor(labels, rows, spin, name not in gauges, values)


def _deviations(
    signals: Mapping[str, Any], sensors: list[_Sensor], noise: Mapping[str, float] | None
) -> Array:
    """Return the standard deviation of the noise of each grid and accelerometer, shape (ns,)."""
    instance("noise", noise, (Mapping, type(None)))
    for name in noise or {}:
        if name not in signals:
            unknown("signal", name, signals, "the signals are")
    result = []
    for name, sensor in zip(signals, sensors, strict=True):
        if noise is not None and name in noise:
            value = number(f"noise[{name!r}]", noise[name], positive=True)
        else:
            value = DEFAULT_NOISE * float(np.sqrt(np.mean(sensor.values**2)))
            if not value > 0:
                reject("noise", noise, f"the noise of {name!r}, which is zero at all times")
        result += [value] * len(sensor.labels)
    return np.array(result)


def _loads(body: ReducedBody, loads: Any) -> tuple[tuple[str, ...], Array, Array]:
    """Return names, inputs (6 + n, nf) and scales (nf,) of the unknown loads."""
    points: Any = [i.point for i in body.interfaces] if body.skin is None else body.skin.points
    size = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0
    columns: dict[str, tuple[Array, float]] = {}
    for i in body.interfaces:
        for force, row in zip(FORCES, interface_map(body, i.name), strict=True):
            columns[f"{i.name} {force}"] = row, 1.0 if force.startswith("f") else size
    for p in body.loads:
        scale = max(float(np.linalg.norm(p.force)), float(np.linalg.norm(p.moment)) / size)
        work = np.concatenate([p.force, p.moment, p.modes])
        columns[p.name] = work, 1 / scale if scale > 0 else 1.0
    groups = {i.name: [f"{i.name} {force}" for force in FORCES] for i in body.interfaces}
    requested = list(groups) if loads is None else name_list("loads", loads)
    names: list[str] = []
    for name in requested:
        if name not in groups and name not in columns:
            unknown("load", name, [*groups, *columns], f"body {body.name!r} has")
        names += groups.get(name, [name])
    if not names or len(set(names)) < len(names):
        reject("loads", loads, "one or more different loads")
    inputs = np.stack([columns[name][0] for name in names], axis=1)
    return tuple(names), inputs, np.array([columns[name][1] for name in names])


class _Model:
    """Weighted response of all signals to the scaled loads and to the products ω_iω_j."""

    def __init__(
        self, body: ReducedBody, sensors: list[_Sensor], inputs: Array, weights: Array
    ) -> None:
        self.free = linearize_body(body)
        self.inputs = np.hstack([inputs, spin_loads(body)])
        self.rows = np.vstack([s.rows for s in sensors])
        self.spin = np.vstack([s.spin for s in sensors])
        self.moving = np.concatenate([np.full(len(s.rows), s.moving) for s in sensors])
        self.weights, self.count = weights, inputs.shape[1]

    def response(self, frequencies: Array) -> tuple[Any, Any]:
        """Return the responses to the loads (k, ns, nf) and to the products (k, ns, 6)."""
        w = 2 * np.pi * np.asarray(frequencies)[:, None, None]
        m = self.free
        elastic = m.stiffness[:, 6:] + 1j * w * m.damping[:, 6:] - w**2 * m.mass[:, 6:]
        rigid = np.broadcast_to(m.mass[:, :6], (len(w), *m.mass[:, :6].shape))
        state = np.linalg.solve(np.concatenate([rigid, elastic], axis=2), self.inputs + 0j)
        factors = np.where(self.moving[:, None], -(w**2), 1.0)
        signals = self.rows[:, :6] @ state[:, :6] + factors * (self.rows[:, 6:] @ state[:, 6:])
        signals[:, :, self.count :] += self.spin
        signals *= self.weights[:, None]
        return signals[:, :, : self.count], signals[:, :, self.count :]


def _solve(
    model: _Model, y: Array, spins: Array, rate: float, highest: float, damp: float
) -> tuple[Array, Array]:
    """Return the scaled loads (nt, nf) and the weighted residuals of the signals (nt, ns)."""
    count = len(y)
    pad = max(2, int(PADDING * count))
    Y, P = _extend_signal(y * model.weights, pad), _extend_signal(spins, pad)
    lines = [np.linspace(X[0], X[-1], len(X)) for X in (Y, P)]  # subtracted for periodic ends
    steady, spin = (H[0].real for H in model.response(np.zeros(1)))
    rest = lines[0] - lines[1] @ spin.T
    line = np.linalg.solve(steady.T @ steady + damp**2 * np.eye(model.count), steady.T @ rest.T).T
    Y, P = (X - start for X, start in zip((Y, P), lines, strict=True))
    Y_hat, P_hat = np.fft.rfft(Y, axis=0), np.fft.rfft(P, axis=0)
    frequencies = np.asarray(np.fft.rfftfreq(count + 2 * pad, 1 / rate), dtype=float)
    F, explained = np.zeros((len(Y_hat), model.count), dtype=complex), np.zeros_like(Y_hat)
    indices = np.flatnonzero(frequencies <= highest)
    for start in range(0, len(indices), CHUNK):
        k = indices[start : start + CHUNK]
        H, spin = model.response(frequencies[k])
        known = (spin @ P_hat[k, :, None])[:, :, 0]
        adjoint = np.conj(H.transpose(0, 2, 1))
        normal = adjoint @ H + damp**2 * np.eye(model.count)
        F[k] = np.linalg.solve(normal, adjoint @ (Y_hat[k] - known)[:, :, None])[:, :, 0]
        explained[k] = known + (H @ F[k, :, None])[:, :, 0]
    inside = slice(pad, pad + count)
    loads, left = (np.fft.irfft(X, n=count + 2 * pad, axis=0) for X in (F, Y_hat - explained))
    return (loads + line)[inside], (left + rest - line @ steady.T)[inside]


def _extend_signal(signal: Array, pad: int) -> Array:
    """Return a signal (nt, m) that is continued by its odd reflections at both ends."""
    before = 2 * signal[0] - signal[pad:0:-1]
    after = 2 * signal[-1] - signal[-2 : -pad - 2 : -1]
    return np.concatenate([before, signal, after])


def _combinations(names: tuple[str, ...], right: Array, filters: Array) -> tuple[str, ...]:
    """Return the combinations of loads with a filter factor below one half as texts."""
    rank = len(filters)
    full = np.linalg.svd(right)[2] if rank < len(names) else right
    rows = [right[k] for k in range(rank) if filters[k] < 0.5] + list(full[rank:])
    texts = []
    for row in rows:
        row = row * np.sign(row[np.abs(row).argmax()])
        parts = [f"{x:+.2f} {name}" for x, name in zip(row, names, strict=True) if abs(x) > 0.1]
        texts.append(" ".join(parts))
    return tuple(texts)


def _warn_of_unobserved(body: ReducedBody, result: IdentifiedLoads) -> None:
    if not result.unobserved:
        return
    text = (
        f"the signals determine {result.rank} of {len(result.names)} combinations of loads of body "
        f"{body.name!r}. Not reliable: {', '.join(result.unobserved)}; not determined: "
        f"{'; '.join(result.combinations)}. Use more sensors, or name fewer loads"
    )
    value = float(result.resolution.min())
    warn(AccuracyWarning(text, quantity="resolution", value=value, limit=OBSERVED))
