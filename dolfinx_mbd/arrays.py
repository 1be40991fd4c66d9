"""Types of arrays, and read-only attributes of frozen dataclasses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, reject

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


def frozen(name: str, value: ArrayLike, shape: tuple[int, ...], dtype: type = float) -> NDArray:
    """Return a read-only copy of an array in C order, after a check of its shape and numbers.

    A length of −1 in `shape` accepts any length. The type is float, complex or an integer type.
    """
    sizes = tuple(None if length == -1 else length for length in shape)
    if isinstance(value, np.ndarray) and np.iscomplexobj(value) and dtype is complex:
        numbers = array(name, value.real, sizes) + 1j * array(name, value.imag, sizes)
    else:
        numbers = array(name, value, sizes)
    result: NDArray = np.array(numbers, dtype=dtype, order="C")
    if np.issubdtype(dtype, np.integer) and not np.array_equal(result, numbers):
        reject(name, value, "whole numbers")
    result.flags.writeable = False
    return result


def assign(owner: object, **values: Any) -> None:
    """Set attributes of a frozen dataclass, for use in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def freeze(owner: object, label: str = "", **shapes: tuple[int, ...]) -> None:
    """Replace arrays of a frozen dataclass by checked read-only copies; see `frozen`."""
    for name, shape in shapes.items():
        text = f"{label}: {name}" if label else name
        assign(owner, **{name: frozen(text, getattr(owner, name), shape)})


def axes_along(z: Array) -> Array:
    """Return right-handed axes as columns, shape (3, 3), from the direction of z, shape (3,).

    x is the projection of the body's x axis (y axis if z is close to x) on the plane normal to z.
    """
    z = z / np.linalg.norm(z)
    start = np.eye(3)[1 if abs(z[0]) > 0.9 else 0]
    x = start - (start @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
