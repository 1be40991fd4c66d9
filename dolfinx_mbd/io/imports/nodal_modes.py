"""Mode shapes at nodes, of a modal test or of a body, and their universal files.

Programs of modal testing exchange mode shapes in universal files (`.unv`, `.uff`). `NodalModes` has
their contents: nodes with positions, and the displacement of each node in each mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array, assign, freeze
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import array, instance, integer, names, reject
from dolfinx_mbd.design.identification import ModalTest
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.io.imports.full_matrices import MatrixFileError, positions, whole_numbers
from dolfinx_mbd.io.imports.universal_files import (
    read_datasets,
    read_modes,
    read_nodes,
    write_modes,
)

LARGEST_IMAGINARY_PART = 0.1  # relative to the size of a shape that is taken as real


@dataclass(frozen=True, eq=False)
class NodalModes:
    """Frequencies, damping ratios and shapes of modes at nodes.

    Attributes:
        labels: Numbers of the nodes, positive and different, shape (nodes,).
        positions: Positions of the nodes, m, shape (nodes, 3).
        frequencies: Undamped natural frequencies, Hz, shape (m,).
        shapes: Displacements of the nodes along x, y and z in any scale, real or complex, shape (m,
            N, 3). Directions that were not measured are zero in all modes.
        damping_ratios: Damping ratios of the modes, shape (m,); by default zero.

    Raises:
        InputError: A shape does not fit, a number is not finite, or a node occurs twice.

    Example:
        >>> modes = NodalModes([1, 2], [(0, 0, 0), (0.5, 0, 0)], [25.0], [[(0, 0, 0), (0, 0, 1)]])
        >>> modes.test().sensors
        (('2', 'z'),)
    """

    labels: NDArray[np.int64]
    positions: Array
    frequencies: Array
    shapes: NDArray
    damping_ratios: Array | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        labels, points = (
            whole_numbers("labels", self.labels),
            positions("positions", self.positions),
        )
        if labels.shape != (len(points),) or len(set(labels)) < len(labels) or labels.min() < 1:
            reject("labels", self.labels, f"{len(points)} different positive numbers of nodes")
        freeze(self, frequencies=(-1,))
        count = len(self.frequencies)
        if (self.frequencies < 0).any():
            reject("frequencies", self.frequencies, "frequencies that are not negative")
        shape = count, len(points), 3
        try:
            values = np.asarray(self.shapes)
        except ValueError:  # rows of different lengths
            values = np.empty(0)
        if (
            values.shape != shape
            or values.dtype.kind not in "iufc"
            or not np.isfinite(values).all()
        ):
            reject("shapes", self.shapes, f"an array of finite numbers with the shape {shape}")
        values = values + 0.0  # a copy, of real or complex numbers
        values.setflags(write=False)
        assign(self, labels=labels, positions=points, shapes=values)
        damping = np.zeros(count) if self.damping_ratios is None else self.damping_ratios
        assign(self, damping_ratios=damping)
        freeze(self, damping_ratios=(count,))

    @property
    def points(self) -> dict[str, tuple[float, float, float]]:
        """Positions of the nodes by their numbers as text, for `points` of `reduce`, m."""
        return {str(k): tuple(x.tolist()) for k, x in zip(self.labels, self.positions, strict=True)}

    @classmethod
    def of_body(
        cls, body: ReducedBody, points: Sequence[str] | None = None, *, num_modes: int | None = None
    ) -> NodalModes:
        """Return the computed modes of a free body at points and interfaces.

        A name that consists of digits becomes the number of its node; the others are numbered from
        1 with the numbers that remain.

        Args:
            body: A body.
            points: Names of points and interfaces; by default all points of the body.
            num_modes: Number of the lowest modes; by default all modes.

        Raises:
            InputError: The body has no points, or no point or interface with one of the names.

        Example:
            >>> NodalModes.of_body(body, ["left", "right"], num_modes=4).shapes.shape
            (4, 2, 3)
        """
        instance("body", body, ReducedBody)
        if num_modes is not None:
            num_modes = integer("num_modes", num_modes, low=1)
        nodes = {i.name: (i.point, i.motion[:3].T) for i in body.interfaces}
        nodes |= {p.name: (p.position, p.modes) for p in body.points}
        listed = [p.name for p in body.points] if points is None else names("points", points)
        if not listed or not set(listed) <= set(nodes):
            reject(
                "points", points, f"names of points or interfaces of the body: {', '.join(nodes)}"
            )
        squares, X = scipy.linalg.eigh(body.stiffness, body.mass)
        omega, X = np.sqrt(squares)[:num_modes], X[:, :num_modes]
        shapes = np.einsum("km,pkc->mpc", X, np.stack([nodes[name][1] for name in listed]))
        damping = np.diag(X.T @ body.damping @ X) / (2 * omega)
        places = np.array([nodes[name][0] for name in listed])
        return cls(_labels(listed), places, omega / (2 * np.pi), shapes, damping)

    @classmethod
    def of_test(cls, test: ModalTest, points: Mapping[str, ArrayLike]) -> NodalModes:
        """Return the modes of a test whose sensors are along x, y and z.

        Args:
            test: The test.
            points: Positions of the points of the sensors by their names, m; names become numbers
                of nodes as in `of_body`.

        Raises:
            InputError: A sensor is not along an axis, or its point has no position.

        Example:
            >>> test = mbd.design.ModalTest([25.0], [[0.5, 1.0]], [("a", "z"), ("b", "z")])
            >>> NodalModes.of_test(test, {"a": (0, 0, 0), "b": (0.5, 0, 0)}).shapes[0, :, 2]
            array([0.5, 1. ])
        """
        instance("test", test, ModalTest)
        listed = list(dict.fromkeys(name for name, _ in test.sensors))
        missing = set(listed) - set(instance("points", points, Mapping))
        if missing:
            reject("points", list(points), f"a mapping with the positions of {sorted(missing)}")
        shapes = np.zeros((len(test.frequencies), len(listed), 3))
        for k, (name, _) in enumerate(test.sensors):
            axes = np.flatnonzero(test.directions[k])
            if len(axes) != 1:
                text = f"sensor {k} at {name!r} is not along x, y or z: the modes of nodes have "
                text += "components along these axes"
                raise InputError(text, argument="test", value=test)
            shapes[:, listed.index(name), axes[0]] += (
                test.directions[k, axes[0]] * test.shapes[:, k]
            )
        places = np.array([array(f"points: {name}", points[name], (3,)) for name in listed])
        return cls(_labels(listed), places, test.frequencies, shapes)

    def test(
        self,
        *,
        modes: Sequence[int] | None = None,
        points: Mapping[int, str] | None = None,
        **options: Any,
    ) -> ModalTest:
        """Return a modal test with a sensor for each node and direction that was measured.

        Directions that are zero in all modes of the file were not measured. Complex shapes are
        multiplied by exp(iφ) such that their imaginary part is smallest; the real part is used.

        Args:
            modes: Indices of the modes, from 0; by default all modes.
            points: Names of points or interfaces of the body by the numbers of the nodes; by
                default the numbers as text. Nodes without a name are then left out.
            **options: Further attributes of `ModalTest`.

        Warns:
            AccuracyWarning: The imaginary part of a shape is larger than a tenth of its size.

        Raises:
            InputError: A node does not exist, or the modes do not fit a `ModalTest`.

        Example:
            The sensor along y moves in the other mode only:

            >>> modes = NodalModes([7], [(0.5, 0, 0)], [25.0, 31.0], [[(0, 2, 0)], [(0, 0, 1)]])
            >>> modes.test(modes=[1], points={7: "right"}).sensors
            (('right', 'y'), ('right', 'z'))
        """
        labels = [int(k) for k in self.labels]
        default = {k: str(k) for k in labels}
        chosen = default if points is None else instance("points", points, Mapping)
        if not chosen or not set(chosen) <= set(labels):
            example = f"{{{labels[0]}: 'tip'}}; the nodes are {labels}"
            reject("points", points, f"names by the numbers of nodes, such as {example}")
        count = len(self.frequencies)
        rows = np.arange(count) if modes is None else whole_numbers("modes", modes)
        if rows.ndim != 1 or not len(rows) or rows.min() < 0 or rows.max() >= count:
            reject("modes", modes, f"indices of the {count} modes")
        columns = [
            (labels.index(k), axis)
            for k in chosen
            for axis in range(3)
            if self.shapes[:, labels.index(k), axis].any()
        ]
        if not columns:
            reject("points", points, "nodes that move in a mode")
        nodes, axes = np.array(columns).T
        shapes = np.array([self._real(int(k), self.shapes[k][nodes, axes]) for k in rows])
        sensors = [(chosen[labels[node]], "xyz"[axis]) for node, axis in columns]
        return ModalTest(self.frequencies[rows], shapes, sensors, **options)

    def _real(self, mode: int, shape: NDArray) -> Array:
        """Return the real part of a shape times exp(iφ), where φ makes this part largest."""
        rotated = shape * np.exp(-0.5j * np.angle(np.sum(shape**2)))
        size = np.linalg.norm(shape)
        part = float(np.linalg.norm(rotated.imag) / size) if size else 0.0
        if part > LARGEST_IMAGINARY_PART:
            text = (
                f"the imaginary part of the mode with index {mode} ({self.frequencies[mode]:.5g} "
                f"Hz) is {part:.0%} of its size and is left out: the mode is no standing wave. "
                "Omit its index in modes=..., or compare the complex shapes with mac"
            )
            limit = LARGEST_IMAGINARY_PART
            warn(AccuracyWarning(text, quantity="imaginary part", value=part, limit=limit))
        return np.asarray(rotated.real if np.iscomplexobj(shape) else shape)

    def write(self, path: str | Path) -> Path:
        """Write a universal file with the datasets 164 (units, SI), 2411 (nodes) and 55 (modes).

        Real modes are normal modes with frequency and damping ratio, complex modes have complex
        eigenvalues. The format has six digits for frequencies and shapes.

        Args:
            path: The file; an existing universal file is replaced.

        Returns:
            The path.

        Raises:
            ImportError: pyuff is not installed.
            OSError: The file cannot be written.

        Example:
            >>> path = NodalModes.of_body(body, ["left", "right"]).write("block.unv")
            >>> read_universal("block.unv").positions[:, 0].round(3)
            array([0. , 0.2])
        """
        assert self.damping_ratios is not None
        return write_modes(
            path,
            self.labels,
            self.positions,
            self.frequencies,
            self.shapes,
            self.damping_ratios,
        )


def read_universal(
    path: str | Path,
    *,
    unit: float | str | None = None,
    axes: Literal["global", "node"] | None = None,
) -> NodalModes:
    """Return the modes of a universal file: normal modes, or complex modes of a damped structure.

    Rotations are not read. A node that a mode leaves out does not move in it, as the format
    defines. Of conjugate complex modes, those with positive imaginary parts of the eigenvalues are
    read; their frequencies are the magnitudes of the eigenvalues in rad/s, divided by 2π.

    Args:
        path: The file, with the datasets 55 (modes), 15 or 2411 (nodes), 164 (units) and, for local
            systems, 18 or 2420.
        unit: Unit of length of the positions, such as `mm`; by default that of dataset 164.
        axes: Axes of the shapes: `global`, as the format defines, or those of the displacement
            coordinate system of each `node`, as some programs write. It must be chosen if a node
            has such a system.

    Raises:
        MatrixFileError: A dataset is missing or damaged, nodes occur twice, real and complex modes
            are mixed, or a coordinate system is missing or not Cartesian.
        OSError: The file cannot be read.
        ImportError: pyuff is not installed.

    Example:
        >>> path = NodalModes([1], [(0, 0, 0)], [25.0], [[(0, 0, 1)]], [0.01]).write("pin.unv")
        >>> modes = read_universal(path)
        >>> modes.frequencies, modes.damping_ratios
        (array([25.]), array([0.01]))
    """
    checked, datasets = read_datasets(path)
    modes = read_modes(checked, datasets)
    nodes = read_nodes(checked, datasets, unit, axes)
    labels = sorted({label for mode in modes for label in mode.shape})
    missing = [label for label in labels if label not in nodes]
    if missing:
        text = f"{checked}: nodes {missing[:5]} of the modes have no position (dataset 15 or 2411)"
        raise MatrixFileError(text, path=checked)
    kinds = {np.iscomplexobj(u) for mode in modes for u in mode.shape.values()}
    if len(kinds) > 1:
        text = f"{checked}: real and complex mode shapes; write them to two files"
        raise MatrixFileError(text, path=checked)
    shapes = np.zeros((len(modes), len(labels), 3), dtype=complex if kinds == {True} else float)
    for k, mode in enumerate(modes):
        for label, u in mode.shape.items():
            shapes[k, labels.index(label)] = u @ nodes[label].axes
    values = np.array([mode.eigenvalue for mode in modes])
    sizes = np.abs(values)
    ratios = np.divide(-values.real, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    places = [nodes[label].position for label in labels]
    return NodalModes(np.array(labels), np.array(places), sizes / (2 * np.pi), shapes, ratios)


def _labels(listed: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each name: that of its digits, or the next that is not used."""
    numbers = {name: int(name) for name in listed if name.isdecimal() and int(name) > 0}
    free = (k for k in range(1, 2 * len(listed) + 1) if k not in numbers.values())
    return np.array([numbers[name] if name in numbers else next(free) for name in listed])
