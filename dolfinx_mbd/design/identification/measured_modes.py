"""Measured modes, and their prediction by a model with derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign, freeze, frozen
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.validation import check_matrix
from dolfinx_mbd.checks import array, instance, items, number, reject, unknown
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.design.identification.modal_pairs import (
    ModalPairs,
    close_groups,
    mode_shapes,
    paired,
)
from dolfinx_mbd.design.sensitivity.first_order import BodySensitivities
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr

RIGID = 1e-10  # largest ω² of a rigid motion relative to the largest ω²
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, eq=False)
class ModalMatrices:
    """Matrices of an undamped vibration (K − ω²M) x = 0 and their derivatives.

    A body on springs, or with additional masses, has such matrices.

    Attributes:
        stiffness: K, positive semidefinite, shape (n, n).
        mass: M, positive definite, shape (n, n).
        rows: Motion of the sensors per unit of each coordinate, shape (sensors, n).
        derivatives: Derivatives of K, M and the rows by the names of the parameters.

    Raises:
        InputError: A shape does not fit, or K or M is not symmetric or not positive.

    Example:
        >>> one, zero = np.eye(1), np.zeros((1, 1))
        >>> matrices = mbd.design.ModalMatrices(400 * one, one, one, {"k": (one, zero, zero)})
        >>> test = mbd.design.ModalTest([3.0], [[1.0]], [("mass", "x")])
        >>> frequencies, derivatives = test.predict(matrices)
        >>> print(f"{frequencies[0]:.4f} Hz, {derivatives['k'][0]:.6f} Hz per N/m")
        3.1831 Hz, 0.003979 Hz per N/m
    """

    stiffness: Array
    mass: Array
    rows: Array
    derivatives: Mapping[str, tuple[Array, Array, Array]]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze(self, stiffness=(-1, -1), rows=(-1, -1))
        n = len(self.stiffness)
        freeze(self, stiffness=(n, n), mass=(n, n), rows=(-1, n))
        for key in ("stiffness", "mass"):
            check_matrix(key, getattr(self, key))
        shapes = (n, n), (n, n), self.rows.shape
        checked = {}
        for name, parts in instance("derivatives", self.derivatives, Mapping).items():
            if not isinstance(parts, (tuple, list)) or len(parts) != 3:
                expected = "derivatives of the stiffness, of the mass and of the rows"
                reject(f"derivatives: {name}", parts, expected)
            pairs = zip(parts, shapes, strict=True)
            checked[name] = tuple(frozen(f"derivatives: {name}", a, s) for a, s in pairs)
        assign(self, derivatives=checked)


@dataclass(frozen=True, eq=False)
class ModalTest:
    """Measured frequencies and mode shapes.

    Attributes:
        frequencies: Measured frequencies, shape (m,), Hz.
        shapes: Measured shapes in any scale, real and finite, shape (m, sensors). Convert complex
            shapes to real ones before.
        sensors: Name of a point or interface of the body, and the direction in the body frame (x,
            y, z, or a vector), for each sensor.
        frequency_deviations: Standard deviations of the frequencies, shape (m,), Hz. By default
            all relative errors are equal, and `identify` estimates their size.
        shape_deviations: Standard deviations of the shapes, in their scale: a number or shape
            (m, sensors). By default the shapes are used only to pair the modes; otherwise also as
            measurements. They need `frequency_deviations`.
        least_mac: MAC below which a pair gives a warning.

    Raises:
        InputError: A number is invalid, or a shape does not fit.

    Example:
        >>> steel = mbd.sensitivities(bar, [mbd.Parameter("E", "young")])
        >>> sensors = [("left", "y"), ("right", "y"), ("left", "z"), ("right", "z")]
        >>> f = bar.body.frequencies[:2]
        >>> lateral = [[0, 0, 1.1, 0.9], [1.0, 1.0, 0, 0]]  # the second mode was noted first
        >>> test = mbd.design.ModalTest([f[1], f[0]], lateral[::-1], sensors)
        >>> frequencies, derivatives = test.predict(steel)
        >>> bool(np.allclose(frequencies, [f[1], f[0]]))
        True
    """

    frequencies: Array
    shapes: Array
    sensors: Sequence[tuple[str, str | ArrayLike]]
    frequency_deviations: Array | None = None
    shape_deviations: Array | float | None = None
    least_mac: float = 0.7
    _directions: Array = field(init=False, repr=False)  # unit vectors (sensors, 3)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze(self, frequencies=(-1,))
        sensors = items("sensors", self.sensors, (tuple, list))
        assign(self, sensors=sensors)
        if not len(self.frequencies) or not (self.frequencies > 0).all():
            reject("frequencies", self.frequencies, "at least one positive frequency")
        freeze(self, shapes=(len(self.frequencies), len(sensors)))
        if not np.abs(self.shapes).max(axis=1, initial=0.0).all():
            reject("shapes", self.shapes, "shapes that are not zero")
        assign(self, _directions=np.array([_direction(s) for s in sensors]).reshape(-1, 3))
        if self.frequency_deviations is not None:
            freeze(self, frequency_deviations=self.frequencies.shape)
            if not (self.frequency_deviations > 0).all():  # type: ignore[operator]
                reject("frequency_deviations", self.frequency_deviations, "positive deviations")
        if self.shape_deviations is not None:
            if self.frequency_deviations is None:
                text = "shape_deviations need frequency_deviations"
                raise InputError(text, argument="frequency_deviations")
            sigma: Any = self.shape_deviations
            if isinstance(sigma, (int, float)):
                sigma = np.full(self.shapes.shape, number("shape_deviations", sigma))
            sigma = frozen("shape_deviations", sigma, self.shapes.shape)
            if not (sigma > 0).all():
                reject("shape_deviations", self.shape_deviations, "positive deviations")
            assign(self, shape_deviations=sigma)
        assign(self, least_mac=number("least_mac", self.least_mac, low=0.0, high=1.0))

    @property
    def directions(self) -> Array:
        """Unit vectors of the sensors in the body frame, shape (sensors, 3)."""
        return self._directions

    @property
    def measured(self) -> Array:
        """Measurements for `identify`: frequencies; with `shape_deviations` also unit shapes."""
        if self.shape_deviations is None:
            return self.frequencies
        return np.concatenate([self.frequencies, self._units.ravel()])

    @property
    def deviations(self) -> Array | None:
        """Standard deviations of `measured`, or None."""
        if self.shape_deviations is None:
            return self.frequency_deviations
        sigma = self.shape_deviations / np.linalg.norm(self.shapes, axis=1)[:, None]
        return np.concatenate([self.frequency_deviations, sigma.ravel()])  # type: ignore[list-item]

    @property
    def _units(self) -> Array:
        """Measured shapes of unit length, shape (m, sensors)."""
        return np.asarray(self.shapes / np.linalg.norm(self.shapes, axis=1)[:, None])

    def pair(self, frequencies: ArrayLike, shapes: ArrayLike) -> ModalPairs:
        """Find the computed mode of each measured mode.

        Each computed mode belongs to at most one measured mode. The sum of 1 − MAC over all pairs
        is smallest; of similar shapes, the one with the closer frequency is taken. Modes whose
        frequencies differ by less than 0.1 % form a group. Any combination of such modes is nearly
        a mode, and the combinations that are closest to the measured shapes are taken.

        Args:
            frequencies: Computed frequencies, ascending, shape (n,), Hz.
            shapes: Computed shapes at the sensors, real or complex, shape (n, sensors).

        Returns:
            The pairs.

        Raises:
            InputError: There are fewer computed than measured modes, or a shape does not fit.

        Warns:
            AccuracyWarning: The MAC of a pair is below `least_mac`.

        Example:
            >>> test = mbd.design.ModalTest([9.0, 5.0], np.eye(2), [("left", "x"), ("left", "y")])
            >>> test.pair([4.0, 6.0, 8.0], [[0.1, 1], [1, 1], [1, 0]]).modes
            array([2, 0])
        """
        f = array("frequencies", frequencies, (None,))
        s = mode_shapes("shapes", shapes)
        if s.shape != (len(f), len(self.sensors)):
            text = f"shapes must have the shape ({len(f)}, {len(self.sensors)}); got {s.shape}"
            raise InputError(text, argument="shapes", value=shapes)
        if len(f) < len(self.frequencies):
            text = (
                f"{len(f)} computed modes for {len(self.frequencies)} measured ones; compute more "
                "modes, or use fewer measured ones"
            )
            raise InputError(text, argument="frequencies", value=frequencies)
        if (f[1:] < f[:-1]).any() or not (f > 0).all():
            reject("frequencies", frequencies, "positive frequencies in ascending order")
        pairs = paired(self.frequencies, self._units, f, s)
        self._warn(pairs.mac)
        return pairs

    def _warn(self, values: Array) -> None:
        """Warn of measured modes without a similar computed mode."""
        for k in np.flatnonzero(values < self.least_mac):
            text = (
                f"no computed mode resembles measured mode {k + 1} ({self.frequencies[k]:.5g} Hz): "
                f"its MAC is below {self.least_mac:g}; check the sensors, compute more modes, or "
                "leave the mode out"
            )
            limit, value = self.least_mac, float(values[k])
            warn(AccuracyWarning(text, quantity="MAC", value=value, limit=limit))

    def matrices(self, table: BodySensitivities) -> ModalMatrices:
        """Return the modal matrices of a body, with the motion of the sensors, and derivatives.

        Add springs or masses to them for a body on supports.

        Args:
            table: Derivatives of the body from `sensitivities`.

        Raises:
            InputError: The body has no point or interface with the name of a sensor.

        Example:
            >>> table = mbd.sensitivities(bar, [mbd.Parameter("E", "young")])
            >>> test = mbd.design.ModalTest([100.0], [[1.0]], [("right", "y")])
            >>> test.matrices(table).rows.shape[0]
            1
        """
        body = instance("table", table, BodySensitivities).body
        derivatives = {}
        for name, change in table.items():
            points = [modes.T for modes in change.point_modes]
            rows = self._rows(body, points, [motion[:3] for motion in change.interface_motions])
            # the modes have the same mass matrix for all values
            derivatives[name] = (change.stiffness, np.zeros_like(body.mass), rows)
        points, motions = [p.modes.T for p in body.points], [i.motion[:3] for i in body.interfaces]
        rows = self._rows(body, points, motions)
        return ModalMatrices(body.stiffness, body.mass, rows, derivatives)

    def _rows(self, body: ReducedBody, points: list[Array], interfaces: list[Array]) -> Array:
        """Return the sensor motions from the motions (3, n) of points and interfaces."""
        motions = dict(zip([i.name for i in body.interfaces], interfaces, strict=True))
        motions |= dict(zip([p.name for p in body.points], points, strict=True))
        rows = []
        for (name, _), direction in zip(self.sensors, self._directions, strict=True):
            if name not in motions:
                unknown("sensor", name, motions, "the body has")
            rows.append(direction @ motions[name])
        return np.array(rows).reshape(len(rows), body.num_modes)

    def predict(self, source: BodySensitivities | ModalMatrices) -> tuple[Array, dict[str, Array]]:
        """Return the values that the model predicts for `measured`, and their derivatives.

        This is the result that `identify` expects of its model. The derivatives of a shape are sums
        over all modes of the model. Within a group of modes (see `pair`), the combination that is
        closest to the measured shape remains constant.

        Args:
            source: Derivatives of a body whose modes were measured, or matrices of a structure.

        Returns:
            Predictions, shape (m,) or (m + m sensors,), and their derivatives, a
            mapping from names of parameters.

        Raises:
            InputError: The body has no point or interface with the name of a sensor, or it has too
                few modes.

        Warns:
            AccuracyWarning: The MAC of a pair is below `least_mac`.

        Example:
            >>> def model(p):
            ...     steel = mbd.Material(p["E"], 0.3, 7850.0)
            ...     bar = mbd.reduce(mesh, steel, interfaces=["left", "right"], num_modes=2)
            ...     return test.predict(mbd.sensitivities(bar, [mbd.Parameter("E", "young")]))
            >>> sensors = [("left", "z"), ("right", "z")]
            >>> test = mbd.design.ModalTest(bar.body.frequencies[:1], [[1.0, 1.0]], sensors)
            >>> result = mbd.design.identify(model, test.measured, start={"E": 190e9})
            >>> print(f"{result.values['E']:.4g}")
            2.1e+11
        """
        kinds = BodySensitivities, ModalMatrices
        m = instance("source", source, kinds)
        if isinstance(m, BodySensitivities):
            m = self.matrices(m)
        if len(m.rows) != len(self.sensors):
            text = f"the matrices have {len(m.rows)} sensors, the test has {len(self.sensors)}"
            raise InputError(text, argument="source", value=source)
        squares, X = scipy.linalg.eigh(m.stiffness, m.mass)
        elastic = squares > RIGID * np.abs(squares).max(initial=0.0)
        frequencies = np.sqrt(squares[elastic]) / (2 * np.pi)
        pairs = self.pair(frequencies, (m.rows @ X[:, elastic]).T)
        # Columns of W: the combinations of modes that are compared; their ω² are `values`
        W = np.zeros((len(squares), len(self.frequencies)))
        W[elastic] = pairs.combinations.T
        values = np.einsum("ki,k,ki->i", W, squares, W)
        f = np.sqrt(values) / (2 * np.pi)
        shapes = (m.rows @ X @ W).T
        sizes = np.linalg.norm(shapes, axis=1)
        signs = np.where(np.sum(self._units * shapes, axis=1) < 0, -1.0, 1.0)
        scale = np.divide(signs, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        predicted = shapes * scale[:, None]
        groups = np.full(len(squares), -1)
        groups[elastic] = close_groups(frequencies)
        outside = groups[:, None] != groups[elastic][pairs.modes]
        # The derivative of a mode contains each mode of another group, divided by the gap of ω²
        gaps = values - squares[:, None]
        inverse = np.where(outside, 1.0, 0.0) / np.where(outside, gaps, 1.0)
        derivatives = {}
        for name, (dK, dM, rows) in m.derivatives.items():
            change = X.T @ dK @ X @ W - (X.T @ dM @ X @ W) * values
            rate = np.einsum("ki,ki->i", W, change) / (8 * np.pi**2 * f)
            shape_rate = (rows @ X @ W + m.rows @ X @ (change * inverse)).T * scale[:, None]
            shape_rate -= predicted * np.sum(predicted * shape_rate, axis=1)[:, None]  # unit length
            derivatives[name] = self._joined(rate, shape_rate)
        return self._joined(f, predicted), derivatives

    def _joined(self, frequencies: Array, shapes: Array) -> Array:
        """Return the computed frequencies and shapes in the layout of `measured`, as one array."""
        if self.shape_deviations is None:
            return frequencies
        return np.concatenate([frequencies, shapes.ravel()])


def _direction(sensor: Any) -> Array:
    """Return the unit vector of the measured direction of a sensor."""
    expected = "pairs of a name and of a direction: x, y, z or a vector"
    if len(sensor) != 2:
        reject("sensors", sensor, expected)
    label = f"sensor {checked_name('the name of a sensor', sensor[0])!r}"
    if isinstance(sensor[1], str):
        if sensor[1] not in AXES:
            reject(label, sensor[1], "the direction x, y, z or a vector")
        return np.array(AXES[sensor[1]])
    vector = array(label, sensor[1], (3,))
    if not np.linalg.norm(vector) > 0:
        reject(label, sensor[1], "a direction that is not zero")
    return np.asarray(vector / np.linalg.norm(vector))
