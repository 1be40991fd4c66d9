"""Quantities of a deformed body: displacement, strain, stress and values derived from them.

A quantity is a function of *linear* quantities at each point and instant; a linear quantity is a
product of modes and elastic coordinates. Symmetric tensors are stored as the six components xx, yy,
zz, xy, yz, zx. Shear strains are components of the tensor (γ/2, not γ).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import unknown
from dolfinx_mbd.html import short_repr

Combine = Callable[[Array], Array]
"""Function of rows (rows, ...) that returns values (...)."""

STRESS_COMPONENTS = ("xx", "yy", "zz", "xy", "yz", "zx")
CHUNK_TENSORS = 4096
"""Number of tensors whose eigenvalues are computed together; they fit into the cache."""

BOUND_MARGIN = 1e-9  # relative margin of bounds for round-off


@dataclass(frozen=True, eq=False)
class Quantity:
    """The definition of a quantity by linear quantities.

    The ingredients are the components of the linear quantities `needs`, one after the other. The
    values of the quantity are `finish(combine(matrix @ ingredients))`; `finish` increases with its
    argument, so that the largest values can be selected before it is applied. `bound(rows, sign)`
    returns an upper bound of the sign times the values `combine(rows)` without changing the rows;
    cheap quantities have no bound.
    """

    name: str
    unit: str
    needs: tuple[str, ...]
    matrix: Array
    combine: Combine | None = None  # maps rows (rows, ...), which it may overwrite; None: identity
    finish: Combine | None = None  # increasing function of the values
    shape: tuple[int, ...] = ()  # shape of one value: (), (3,) or (3, 3)
    bound: Callable[[Array, float], Array] | None = None

    __repr__ = short_repr

    @property
    def linear(self) -> bool:
        """Whether the quantity is linear in the displacement."""
        return self.combine is None and self.finish is None

    def evaluate(self, rows: Array) -> Array:
        """Return values (..., *shape) of rows (rows, ...), which are overwritten."""
        values = rows if self.combine is None else self.combine(rows)
        if self.combine is None and not self.shape:
            values = values[0]
        if self.finish is not None:
            values = self.finish(values)
        if not self.shape:
            return values
        return np.moveaxis(values, 0, -1).reshape(*values.shape[1:], *self.shape)


def principal_values(tensor: Array) -> Array:
    """Return the eigenvalues of symmetric tensors in descending order, shape (3, ...).

    Let S be the deviator of a tensor and D the deviator of S², both as vectors of five components.
    The angle between S and D is three times the Lode angle θ, and the eigenvalues are

        λ_k = tr/3 + √(2/3) |S| cos(θ − 2πk/3).

    The angle is computed from |S/|S| − D/|D|| and |S/|S| + D/|D||, with |D| = |S|²/√6. This formula
    keeps all digits if two eigenvalues are close; an inverse cosine would lose half of them.

    Source: Kahan (2006), How futile are mindless assessments of roundoff, §12 (angles).
    """
    return _eigenvalues(np.tensordot(_SPLIT, np.asarray(tensor, dtype=float), axes=1))


def _eigenvalues(rows: Array, which: tuple[int, ...] = (0, 1, 2)) -> Array:
    """Return eigenvalues of tensors (6, ...) that are split into mean and deviator by `_SPLIT`."""
    flat = rows.reshape(6, -1)
    values = np.empty((len(which), flat.shape[1]))
    for start in range(0, flat.shape[1], CHUNK_TENSORS):
        part = slice(start, start + CHUNK_TENSORS)
        size, lode = _size_and_lode(flat[1:, part])
        size *= np.sqrt(2 / 3)
        for row, k in enumerate(which):
            np.multiply(size, np.cos(lode - 2 * np.pi / 3 * k), out=values[row, part])
            values[row, part] += flat[0, part]
    return values.reshape(len(which), *rows.shape[1:])


def _size_and_lode(deviator: Array) -> tuple[Array, Array]:
    """Return |S| and the Lode angle of deviators (5, m)."""
    size = np.sqrt(_sum_of_squares(deviator))
    s = deviator / np.where(size > 0, size, 1.0)
    # Components of the tensor: d = xy, e = yz, f = zx, c = zz, and g = (xx − yy)/2
    axial, *others = s
    g, d, e, f = (np.sqrt(0.5) * row for row in others)
    c = np.sqrt(2 / 3) * axial
    dd, ee, ff = d * d, e * e, f * f
    t = np.stack(  # D/|D|
        [
            1.5 * c * c - 2 * g * g + ee + ff - 2 * dd,
            np.sqrt(3.0) * (ff - ee - 2 * c * g),
            np.sqrt(12.0) * (e * f - d * c),
            np.sqrt(12.0) * (d * f + e * (0.5 * c - g)),
            np.sqrt(12.0) * (d * e + f * (0.5 * c + g)),
        ]
    )
    difference, total = (np.sqrt(_sum_of_squares(v)) for v in (s - t, s + t))
    return size, 2 / 3 * np.arctan2(difference, total)


def _sum_of_squares(rows: Array) -> Array:
    """Return the sum of the squares of the rows (rows, ...), and leave them unchanged."""
    first, *others = rows
    total = first * first
    square = np.empty_like(total)
    for row in others:
        total += np.multiply(row, row, out=square)
    return total


def _principal_bound(rows: Array, sign: float) -> Array:
    """Return the upper bound tr/3 + √(2/3) |S| of σ_1 if `sign` is 1.

    If `sign` is −1, return the upper bound −tr/3 + √(2/3) |S| of −σ_3.
    """
    mean, deviator = rows[0], rows[1:]
    bound = np.sqrt(_sum_of_squares(deviator))
    bound *= np.sqrt(2 / 3) * (1 + BOUND_MARGIN)
    bound += sign * mean
    return bound


def _tresca_bound(rows: Array, sign: float) -> Array:
    """Return the upper bound √2 |S| of σ_1 − σ_3 if `sign` is 1.

    If `sign` is −1, return the upper bound −√(3/2) |S| of σ_3 − σ_1.
    """
    bound = np.sqrt(_sum_of_squares(rows[1:]))
    bound *= np.sqrt(2) * (1 + BOUND_MARGIN) if sign > 0 else -np.sqrt(1.5) * (1 - BOUND_MARGIN)
    return bound


def _tresca(rows: Array) -> Array:
    """Return σ_1 − σ_3 of tensors that are split into mean and deviator."""
    first, last = _eigenvalues(rows, (0, 2))
    return first - last


def _principal(k: int) -> Combine:
    """Return the function for the principal value with index k, in descending order."""
    return lambda rows: _eigenvalues(rows, (k,))[0]


def _energy(rows: Array) -> Array:
    """Return Σ of stresses (rows 0 to 5) times weighted strains (rows 6 to 11)."""
    return np.einsum("i...,i...->...", rows[:6], rows[6:])


# Mean, then the deviator in an orthonormal basis: (2 zz − xx − yy)/√6, (xx − yy)/√2, √2 xy, ...
_SPLIT = np.zeros((6, 6))
_SPLIT[0, :3] = 1 / 3
_SPLIT[1, :3] = np.array([-1.0, -1.0, 2.0]) / np.sqrt(6.0)
_SPLIT[2, :2] = np.sqrt(0.5), -np.sqrt(0.5)
_SPLIT[3:, 3:] = np.sqrt(2.0) * np.eye(3)
# σ_vM² = 3/2 S:S
_VON_MISES = np.sqrt(1.5) * _SPLIT[1:]
# ½ σ:ε; each shear component occurs twice in the tensors
_ENERGY = np.diag([1.0] * 6 + [0.5] * 3 + [1.0] * 3)
# The nine entries of a tensor, row by row, from its six components
_FULL = np.eye(6)[[0, 3, 5, 3, 1, 4, 5, 4, 2]]
_MEAN = np.array([[1 / 3, 1 / 3, 1 / 3, 0.0, 0.0, 0.0]])


def _all_quantities() -> dict[str, Quantity]:
    """Return the quantities by name."""
    stress, strain, u = ("stress",), ("strain",), ("displacement",)
    table = [
        Quantity("displacement", "m", u, np.eye(3), shape=(3,)),
        Quantity("displacement magnitude", "m", u, np.eye(3), _sum_of_squares, np.sqrt),
        Quantity("stress", "Pa", stress, _FULL, shape=(3, 3)),
        Quantity("strain", "", strain, _FULL, shape=(3, 3)),
        Quantity("von Mises", "Pa", stress, _VON_MISES, _sum_of_squares, np.sqrt),
        Quantity("Tresca", "Pa", stress, _SPLIT, _tresca, bound=_tresca_bound),
        Quantity("principal", "Pa", stress, _SPLIT, _eigenvalues, shape=(3,)),
        Quantity("greatest principal", "Pa", stress, _SPLIT, _principal(0), bound=_principal_bound),
        Quantity("least principal", "Pa", stress, _SPLIT, _principal(2), bound=_principal_bound),
        Quantity("mean stress", "Pa", stress, _MEAN),
        Quantity("strain energy density", "J/m³", ("stress", "strain"), _ENERGY, _energy),
    ]
    for k, component in enumerate(STRESS_COMPONENTS):
        table.append(Quantity(f"stress {component}", "Pa", stress, np.eye(6)[[k]]))
        table.append(Quantity(f"strain {component}", "", strain, np.eye(6)[[k]]))
    table += [Quantity(f"displacement {c}", "m", u, np.eye(3)[[k]]) for k, c in enumerate("xyz")]
    return {entry.name: entry for entry in table}


QUANTITIES = _all_quantities()


def quantity(name: str, accepts: Callable[[Quantity], bool] = lambda _: True) -> Quantity:
    """Return the quantity with the given name.

    An unknown name raises an error with a list of the quantities for which `accepts` is true.
    """
    if not isinstance(name, str) or name not in QUANTITIES:
        names = [known for known, entry in QUANTITIES.items() if accepts(entry)]
        unknown("quantity", name, names, "use one of")
    return QUANTITIES[name]
