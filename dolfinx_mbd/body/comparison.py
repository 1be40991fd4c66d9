"""Comparison of two reduced bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.body.tree import array_fields, part_fields
from dolfinx_mbd.checks import instance

NEGLIGIBLE = 1e-12
"""Size of an array, in units of the body, below which differences are compared with this size."""


@dataclass(frozen=True)
class Row:
    """One property of two bodies as text, and its relative difference."""

    name: str
    first: str
    second: str
    difference: float | None = None  # None if the values differ and are not numbers


@dataclass(frozen=True)
class Comparison:
    """A table of the differences between two bodies; `print` shows it.

    Attributes:
        names: Names of the two bodies.
        rows: One row for each property.

    Example:
        >>> comparison = mbd.body.compare(body, body.truncated(1))
        >>> [row.first for row in comparison.rows if row.name == "elastic coordinates"]
        ['2']
    """

    names: tuple[str, str]
    rows: tuple[Row, ...]

    @property
    def greatest(self) -> float:
        """Greatest relative difference; infinite if values that are not numbers differ."""
        return max(np.inf if r.difference is None else r.difference for r in self.rows)

    def __str__(self) -> str:
        table = [("", *self.names, "difference")] + [
            (r.name, r.first, r.second, "-" if r.difference is None else f"{r.difference:.2e}")
            for r in self.rows
        ]
        a, b, c = (max(len(row[k]) for row in table) for k in range(3))
        return "\n".join(f"{p:<{a}}  {q:>{b}}  {r:>{c}}  {s:>10}" for p, q, r, s in table)


def compare(first: ReducedBody, second: ReducedBody) -> Comparison:
    """Compare mass properties, interfaces, flexibility at the interfaces, parts, and frequencies.

    Differences of lengths are relative to the radius of gyration. The flexibility Θ K⁻¹ Θᵀ contains
    the motions of all interfaces under unit wrenches at the interfaces; Θ maps elastic coordinates
    to these motions. The flexibility depends on the reference condition, but not on the choice of
    the elastic coordinates. Neither do the differences of other parts: of each array, they compare
    the root mean square over nodes and over motions of unit strain energy. The frequencies follow
    from K and M with the body frame at rest.

    Args:
        first: A reduced body.
        second: Another reduced body.

    Raises:
        InputTypeError: An argument is not a reduced body.

    Example:
        >>> mbd.body.compare(body, body).greatest
        0.0
    """
    a, b = instance("first", first, ReducedBody), instance("second", second, ReducedBody)
    gyration_radius = 1e3 * np.sqrt(np.trace(a.central_inertia) / (2 * a.total_mass))  # mm
    moments_a, moments_b = (np.linalg.eigvalsh(c.central_inertia) for c in (a, b))
    names_a, names_b = ([i.name for i in c.interfaces] for c in (a, b))
    rows = [
        _number("mass (kg)", a.total_mass, b.total_mass),
        _vector("centre of mass (mm)", 1e3 * a.centre, 1e3 * b.centre, gyration_radius),
        _vector("principal inertia (kg m²)", moments_a, moments_b),
        _text("reference", a.reference, b.reference),
        _text("elastic coordinates", str(a.num_modes), str(b.num_modes)),
        _text("interfaces", ", ".join(names_a), ", ".join(names_b)),
    ]
    if names_a == names_b:
        for i, j in zip(a.interfaces, b.interfaces, strict=True):
            rows.append(_vector(f"{i.name} (mm)", 1e3 * i.point, 1e3 * j.point, gyration_radius))
            rows.append(_text(f"{i.name}, kind", i.kind, j.kind))
        if names_a and a.num_modes and b.num_modes:
            rows.append(_flexibility(a, b))
    rows += _parts(a, b)
    pairs = zip(_frequencies(a), _frequencies(b), strict=False)
    rows += [_number(f"mode {k} (Hz)", x, y) for k, (x, y) in enumerate(pairs, 1)]
    return Comparison((a.name, b.name), tuple(rows))


def _frequencies(body: ReducedBody) -> NDArray:
    """Return the frequencies of the elastic coordinates with the body frame at rest, Hz."""
    if not body.num_modes:
        return np.zeros(0)
    squares = scipy.linalg.eigh(body.stiffness, body.mass, eigvals_only=True)
    return np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)


def _parts(a: ReducedBody, b: ReducedBody) -> list[Row]:
    """Compare the parts that have no other row, such as gauges and the skin."""
    rows = []
    length = np.sqrt(np.trace(a.central_inertia) / (2 * a.total_mass))
    frequencies = _frequencies(a)
    time = 1 / (2 * np.pi * frequencies[0]) if len(frequencies) and frequencies[0] else 1.0
    units = np.array([length, a.total_mass, time])
    for attribute, declaration in part_fields(a).items():
        if attribute in ("interfaces", "modes", "left_out"):
            continue
        values = [getattr(body, attribute) for body in (a, b)]
        parts, others = (v if declaration.is_list else (v,) * (v is not None) for v in values)
        names = [", ".join(getattr(p, "name", "yes") for p in v) or "no" for v in (parts, others)]
        if parts or others:
            rows.append(_text(attribute.replace("_", " "), *names))
        if names[0] == names[1]:
            for part, other in zip(parts, others, strict=True):
                name = f"{declaration.label.replace('_', ' ')} {getattr(part, 'name', 'arrays')}"
                sizes = _sizes(a, part, units), _sizes(b, other, units)
                rows.append(Row(name, "", "", _difference(*sizes)))
    return rows


def _sizes(body: ReducedBody, part: Any, units: NDArray) -> list[NDArray]:
    """Return the sizes of the arrays of a part in units of length, mass and time.

    The size of an array is the root of the sum of squares over motions of unit strain energy, which
    form a basis of all motions, and of the mean square over axes of any length, such as nodes.
    """
    squares, vectors = np.linalg.eigh(body.stiffness)
    positive = squares > 1e-12 * squares.max(initial=0.0)
    basis = vectors[:, positive] / np.sqrt(squares[positive] / 2)
    length, mass, time = units
    basis *= np.sqrt(mass) * length / time  # the unit of the strain energy
    sizes = []
    for name, array in array_fields(part).items():
        values = getattr(part, name)
        if values is None or np.issubdtype(array.dtype, np.integer):
            continue
        scaled = array.factor(1 / units, np.shape(values)) * array.transformed(values, basis)
        mode_axes = tuple(k for k, axis in enumerate(array.axes) if axis in "nN")
        point_axes = tuple(  # other axes of any length; w is a wrench or motion of 6 entries
            k for k, axis in enumerate(array.axes) if axis.isalpha() and axis not in "nNw"
        )
        if mode_axes or point_axes:
            count = max(int(np.prod([scaled.shape[k] for k in point_axes])), 1)
            scaled = np.sqrt((scaled**2).sum(axis=mode_axes + point_axes) / count)
        sizes.append(np.asarray(scaled))
    return sizes


def _difference(first: list[NDArray], second: list[NDArray]) -> float | None:
    """Return the greatest difference of arrays relative to their entries, None if shapes differ."""
    if [x.shape for x in first] != [y.shape for y in second]:
        return None
    worst = 0.0
    for x, y in zip(first, second, strict=True):
        size = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0), NEGLIGIBLE)
        worst = max(worst, float(np.abs(x - y).max(initial=0.0) / size))
    return worst


def _flexibility(a: ReducedBody, b: ReducedBody) -> Row:
    """Compare Θ K⁻¹ Θᵀ; each entry is scaled by the square root of its two diagonal entries."""
    flexibilities = []
    for body in (a, b):
        motions = np.vstack([interface.motion for interface in body.interfaces])  # Θ
        flexibilities.append(motions @ np.linalg.pinv(body.stiffness) @ motions.T)
    F, G = flexibilities
    scale = np.sqrt(np.maximum(np.diag(F), np.diag(G)))
    scale = np.where(scale > 0, scale, 1.0)
    difference = float(np.abs((F - G) / np.outer(scale, scale)).max())
    return Row("flexibility of interfaces", "", "", difference)


def _text(name: str, first: str, second: str) -> Row:
    """Return a row with two texts, which are equal or different."""
    return Row(name, first, second, 0.0 if first == second else None)


def _number(name: str, first: float, second: float) -> Row:
    """Return a row with two numbers and their relative difference."""
    scale = max(abs(first), abs(second)) or 1.0
    return Row(name, f"{first:.6g}", f"{second:.6g}", abs(first - second) / scale)


def _vector(name: str, first: NDArray, second: NDArray, scale: float | None = None) -> Row:
    """Return a row with two vectors and their largest difference relative to a scale."""
    size = np.abs(first).max() if scale is None else scale
    texts = (" ".join(f"{round(x, 9) + 0.0:.5g}" for x in v) for v in (first, second))  # no -0
    first_text, second_text = texts
    return Row(name, first_text, second_text, float(np.abs(first - second).max() / (size or 1.0)))
