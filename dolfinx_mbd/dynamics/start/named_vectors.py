"""Coordinates and velocities of a system from values by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, choice, reject
from dolfinx_mbd.dynamics.start.position_assembly import coordinates
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.run_quantities import BODY
from dolfinx_mbd.mechanism.system import System


def named_vector(system: System, argument: str, values: Mapping[str, ArrayLike]) -> Array:
    """Return coordinates (`argument` is ``q``) or velocities (``v``) from values by name.

    A name denotes a body, or a quantity such as ``rod.position``. Other coordinates have their
    initial values, and other velocities are NaN.
    """
    vector = coordinates(system) if argument == "q" else np.full(system.num_velocities, np.nan)
    slices = _slices(system, argument)
    for name, value in values.items():
        choice(f"every name of {argument}", name, slices)
        part = vector[slices[name]]
        part[:] = _checked_value(f"{argument}[{name!r}]", name, value, part)
    return vector


def _slices(system: System, argument: str) -> dict[str, slice]:
    """Return the index ranges of all named quantities."""
    slices = {}
    parts = system.q_slices if argument == "q" else system.v_slices
    for body, part in zip(system.bodies, parts, strict=True):
        if part.stop > part.start:
            slices[body.name] = part
        if isinstance(body, FloatingBody):
            places = range(part.start, part.stop)
            for key, quantity in BODY.items():
                if quantity.place is None or quantity.place.array != argument:
                    continue
                columns = places[quantity.place.columns]
                if len(columns):
                    slices[f"{body.name}.{key}"] = slice(columns.start, columns.stop)
    return slices


def _checked_value(argument: str, name: str, value: Any, part: Array) -> Array:
    """Return a value of the shape of a part of a vector; rotations are unit quaternions."""
    numbers = np.array(array(argument, value, part.shape), dtype=float)
    if name.endswith(".rotation"):
        size = float(np.linalg.norm(numbers))
        if abs(size - 1.0) > 1e-6:
            reject(argument, value, "a unit quaternion (w, x, y, z)")
        numbers /= size
    return numbers
