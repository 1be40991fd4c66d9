"""What can be asked of a deformed body: displacement, stress, strain and what follows from them.

A quantity is made of *linear* ones, which are a product of modes and elastic coordinates, and of a
function of those at each point and instant. Symmetric tensors are six components in the order xx,
yy, zz, xy, yz, zx; strains are those of the tensor, γ/2 and not γ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import short
from dolfinx_mbd.errors import InputError

__all__ = ["QUANTITIES", "STRESS_COMPONENTS", "Quantity", "principal_values", "quantity"]

Array = NDArray[np.float64]
Combine = Callable[[Array], Array]

STRESS_COMPONENTS = ("xx", "yy", "zz", "xy", "yz", "zx")
"""Order of the components of a symmetric tensor."""

PIECE = 4096
"""Tensors whose eigenvalues are computed together; their numbers fit the processor's cache."""

SLACK = 1e-9
"""By how much bounds are widened against round-off."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """How a quantity follows from linear ones.

    Attributes:
        name: As it is asked for.
        unit: SI.
        needs: Linear quantities whose components, one after the other, are its ingredients.
        matrix: Rows of it times the ingredients are what `combine` gets, shape (rows, ingredients).
        combine: From rows (rows, ...), which it may overwrite, to values (...) or (k, ...); None:
            the rows are the values.
        finish: An increasing function of these; None: there is none.
        shape: Of a value: () of a scalar, (3,), (3, 3).
        bound: An upper bound of ±values from rows, which it leaves as they are, and the sign;
            where values cost much more than it does. None: there is none.
    """

    name: str
    unit: str
    needs: tuple[str, ...]
    matrix: Array
    combine: Combine | None = None
    finish: Combine | None = None
    shape: tuple[int, ...] = ()
    bound: Callable[[Array, float], Array] | None = None

    @property
    def linear(self) -> bool:
        """Whether it is linear in the displacement."""
        return self.combine is None and self.finish is None

    def evaluate(self, rows: Array) -> Array:
        """Values (..., *shape) from rows (rows, ...), which are overwritten."""
        values = rows if self.combine is None else self.combine(rows)
        if self.combine is None and not self.shape:
            values = values[0]
        if self.finish is not None:
            values = self.finish(values)
        if not self.shape:
            return values
        return np.moveaxis(values, 0, -1).reshape(*values.shape[1:], *self.shape)


def principal_values(tensor: Array) -> Array:
    """Return the eigenvalues (3, ...), descending, of symmetric tensors (6, ...).

    The components are in the order of `STRESS_COMPONENTS`.

    With the deviator S and D, the deviator of S², as vectors of a space of five dimensions, three
    times the Lode angle θ is the angle between them, and

        λ_k = tr/3 + √(2/3) |S| cos(θ − 2πk/3).

    The angle is taken from |S/|S| − D/|D|| and |S/|S| + D/|D||, which keeps all digits also where
    two eigenvalues are close, where an inverse cosine loses half of them. |D| is |S|²/√6.

    References:
        Kahan (2006), How futile are mindless assessments of roundoff, §12 (angles).
    """
    return _principal(np.tensordot(_SPLIT, np.asarray(tensor, dtype=float), axes=1))


def _principal(rows: Array, which: tuple[int, ...] = (0, 1, 2)) -> Array:
    """Eigenvalues of tensors (6, ...) that are given by mean and deviator, see `_SPLIT`."""
    flat = rows.reshape(6, -1)
    values = np.empty((len(which), flat.shape[1]))
    for start in range(0, flat.shape[1], PIECE):
        part = slice(start, start + PIECE)
        size, lode = _size_and_lode(flat[1:, part])
        size *= np.sqrt(2 / 3)
        for row, k in enumerate(which):
            np.multiply(size, np.cos(lode - 2 * np.pi / 3 * k), out=values[row, part])
            values[row, part] += flat[0, part]
    return values.reshape(len(which), *rows.shape[1:])


def _size_and_lode(deviator: Array) -> tuple[Array, Array]:
    """|S| and the Lode angle of deviators (5, m)."""
    size = np.sqrt(_sum_of_squares(deviator))
    s = deviator / np.where(size > 0, size, 1.0)
    c = np.sqrt(2 / 3) * s[0]  # the component zz; g is half of xx − yy
    g, d, e, f = np.sqrt(0.5) * s[1:]
    dd, ee, ff = d * d, e * e, f * f
    t = np.empty_like(s)
    t[0] = 1.5 * c * c - 2 * g * g + ee + ff - 2 * dd
    t[1] = np.sqrt(3.0) * (ff - ee - 2 * c * g)
    t[2] = np.sqrt(12.0) * (e * f - d * c)
    t[3] = np.sqrt(12.0) * (d * f + e * (0.5 * c - g))
    t[4] = np.sqrt(12.0) * (d * e + f * (0.5 * c + g))
    apart, along = (np.sqrt(_sum_of_squares(v)) for v in (s - t, s + t))
    return size, 2 / 3 * np.arctan2(apart, along)


def _sum_of_squares(rows: Array) -> Array:
    """Of rows (rows, ...)."""
    total = rows[0] * rows[0]
    square = np.empty_like(total)
    for row in rows[1:]:
        total += np.multiply(row, row, out=square)
    return total


def _squares(rows: Array) -> Array:
    """Sum of the squares of the rows, in place."""
    np.multiply(rows, rows, out=rows)
    total = rows[0]
    for row in rows[1:]:
        total += row
    return total


def _energy(rows: Array) -> Array:
    """Σ of stresses (rows 0 to 5) times weighted strains (rows 6 to 11), in place."""
    np.multiply(rows[:6], rows[6:], out=rows[:6])
    total = rows[0]
    for row in rows[1:6]:
        total += row
    return total


def _principal_bound(rows: Array, sign: float) -> Array:
    """σ_1 ≤ tr/3 + √(2/3) |S|, and likewise −σ_3."""
    bound = np.sqrt(_sum_of_squares(rows[1:]))
    bound *= np.sqrt(2 / 3) * (1 + SLACK)
    bound += sign * rows[0]
    return bound


def _tresca_bound(rows: Array, sign: float) -> Array:
    """√2 |S| ≥ σ_1 − σ_3 ≥ √(3/2) |S|."""
    bound = np.sqrt(_sum_of_squares(rows[1:]))
    bound *= np.sqrt(2) * (1 + SLACK) if sign > 0 else -np.sqrt(1.5) * (1 - SLACK)
    return bound


def _tresca(rows: Array) -> Array:
    first, last = _principal(rows, (0, 2))
    return first - last


def _greatest(rows: Array) -> Array:
    return _principal(rows, (0,))[0]


def _least(rows: Array) -> Array:
    return _principal(rows, (2,))[0]


# Mean, then the deviator in an orthonormal basis: (2 zz − xx − yy)/√6, (xx − yy)/√2, √2 xy, ...
_SPLIT = np.zeros((6, 6))
_SPLIT[0, :3] = 1 / 3
_SPLIT[1, :3] = np.array([-1.0, -1.0, 2.0]) / np.sqrt(6.0)
_SPLIT[2, :2] = np.sqrt(0.5), -np.sqrt(0.5)
_SPLIT[3:, 3:] = np.sqrt(2.0) * np.eye(3)
# σ_vM² = 3/2 S:S
_VON_MISES = np.sqrt(1.5) * _SPLIT[1:]
_ENERGY = np.diag([1.0] * 6 + [0.5] * 3 + [1.0] * 3)
_FULL = np.eye(6)[[0, 3, 5, 3, 1, 4, 5, 4, 2]]
_MEAN = np.array([[1 / 3, 1 / 3, 1 / 3, 0.0, 0.0, 0.0]])


def _known() -> dict[str, Quantity]:
    stress, strain, u = ("stress",), ("strain",), ("displacement",)
    six = np.eye(6)
    table = [
        Quantity("displacement", "m", u, np.eye(3), shape=(3,)),
        Quantity("displacement magnitude", "m", u, np.eye(3), _squares, np.sqrt),
        Quantity("stress", "Pa", stress, _FULL, shape=(3, 3)),
        Quantity("strain", "", strain, _FULL, shape=(3, 3)),
        Quantity("von Mises", "Pa", stress, _VON_MISES, _squares, np.sqrt),
        Quantity("Tresca", "Pa", stress, _SPLIT, _tresca, bound=_tresca_bound),
        Quantity("principal", "Pa", stress, _SPLIT, _principal, shape=(3,)),
        Quantity("greatest principal", "Pa", stress, _SPLIT, _greatest, bound=_principal_bound),
        Quantity("least principal", "Pa", stress, _SPLIT, _least, bound=_principal_bound),
        Quantity("mean stress", "Pa", stress, _MEAN),
        Quantity("strain energy density", "J/m³", ("stress", "strain"), _ENERGY, _energy),
    ]
    for what, unit in (("stress", "Pa"), ("strain", "")):
        table += [
            Quantity(f"{what} {component}", unit, (what,), six[k : k + 1])
            for k, component in enumerate(STRESS_COMPONENTS)
        ]
    table += [Quantity(f"displacement {c}", "m", u, np.eye(3)[[k]]) for k, c in enumerate("xyz")]
    return {entry.name: entry for entry in table}


QUANTITIES = _known()
"""All quantities by name."""


def quantity(name: str) -> Quantity:
    """The quantity of this name.

    Raises:
        ValueError: There is none; the message lists those that are there.
    """
    if not isinstance(name, str) or name not in QUANTITIES:
        known = ", ".join(map(repr, QUANTITIES))
        raise InputError(
            f"unknown quantity {short(name)}; use one of {known}, or a function of u",
            argument="name",
            value=name,
            expected=known,
        )
    return QUANTITIES[name]
