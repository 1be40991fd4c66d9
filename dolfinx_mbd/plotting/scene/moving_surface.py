"""Surfaces that move with a body and deform with its modes, and quantities on them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import Skin, StressModes
from dolfinx_mbd.checks import array, instance, number, reject, vector
from dolfinx_mbd.results.histories import rotation_matrices

__all__ = ["DISPLACEMENT", "Surface", "skin_displacement", "skin_points"]

Array = NDArray[np.float64]

DISPLACEMENT = "displacement"

_BLOCK = 64  # instants whose displacements are in memory together


def skin_displacement(skin: Skin, eta: ArrayLike) -> Array:
    """Return the elastic displacement of the skin's nodes in body components, shape (nodes, 3), m.

    Args:
        skin: A skin with n modes.
        eta: Elastic coordinates, shape (n,).

    Raises:
        InputError: The number of elastic coordinates differs from the number of modes.

    Example:
        >>> mbd.plotting.skin_displacement(body.skin, [1e-3, 0.0]).shape
        (4, 3)
    """
    count = len(instance("skin", skin, Skin).modes)
    values: Array = array("eta", eta, (count,), expected=f"{count} elastic coordinates")
    return np.asarray(np.tensordot(values, skin.modes, axes=1), dtype=np.float64)


def skin_points(
    skin: Skin,
    eta: ArrayLike,
    *,
    scale: float = 1.0,
    position: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
) -> Array:
    """Return the positions r + A (x + scale Σ ψ_k η_k) of the skin's nodes, shape (nodes, 3), m.

    Args:
        skin: A skin with n modes.
        eta: Elastic coordinates, shape (n,).
        scale: Scale factor of the elastic displacement.
        position: Position r of the origin of the body frame, shape (3,), m.
        rotation: Quaternion (w, x, y, z) of the body frame.

    Raises:
        InputError: An array has the wrong shape.

    Example:
        >>> mbd.plotting.skin_points(body.skin, [0.0, 0.0], position=(1.0, 0.0, 0.0))[0]
        array([ 0.5 , -0.02,  0.  ])
    """
    instance("skin", skin, Skin)
    scale, origin = number("scale", scale), vector("position", position, unit="m")
    deformed = skin.points + scale * skin_displacement(skin, eta)
    rotated = deformed @ rotation_matrices(vector("rotation", rotation, 4)).T
    return np.asarray(origin + rotated, dtype=float)


@dataclass(frozen=True, eq=False)
class Surface:
    """The surface of one body and its motion.

    Attributes:
        name: Name of the body.
        skin: Points and triangles in the body frame, and the modes that deform the surface.
        position: Positions of the origin of the body frame, shape (nt, 3), m.
        rotation: Quaternions (w, x, y, z), shape (nt, 4).
        eta: Elastic coordinates, shape (nt, n).
        bars: Whether bars replace the unknown shape of the body.
        stress: Stress of the modes at the nodes of the skin, if it is known.
        values: Given constant values at the nodes, shape (nodes,), that determine the colours.
    """

    name: str
    skin: Skin
    position: Array
    rotation: Array
    eta: Array
    bars: bool = False
    stress: StressModes | None = None
    values: Array | None = None

    @property
    def flexible(self) -> bool:
        """Whether modes deform the surface."""
        return len(self.skin.modes) > 0

    def at(self, rows: NDArray[np.int64]) -> Surface:
        """Return the surface at some of the instants."""
        motion = {name: getattr(self, name)[rows] for name in ("position", "rotation", "eta")}
        return replace(self, **motion)

    def points(self, k: int, scale: float) -> Array:
        """Return the points at an instant, shape (nodes, 3), m; `scale` magnifies deformations."""
        pose = {"position": self.position[k], "rotation": self.rotation[k]}
        return skin_points(self.skin, self.eta[k], scale=scale, **pose)

    def has(self, quantity: str) -> bool:
        """Return whether a quantity is known at the points."""
        return self.flexible and (quantity == DISPLACEMENT or self.stress is not None)

    def quantity(self, k: int, quantity: str) -> Array:
        """Return a quantity at the points, shape (nodes,), m or Pa."""
        if quantity == DISPLACEMENT:
            return np.linalg.norm(skin_displacement(self.skin, self.eta[k]), axis=1)
        return self._stress(quantity).values(quantity, self.eta[k])[0]

    def _stress(self, quantity: str) -> StressModes:
        """Return the stress of the modes, or raise an error if it is unknown."""
        if self.stress is None:
            expected = f"{DISPLACEMENT!r}, because the stress of body {self.name!r} is unknown"
            reject("quantity", quantity, expected)
        return self.stress

    def limits(self, quantity: str) -> tuple[float, float]:
        """Return the least and the greatest value of a quantity over points and time, m or Pa."""
        if quantity == DISPLACEMENT:
            return 0.0, _largest_displacement(self.skin.modes, self.eta)
        stress, eta = self._stress(quantity), self.eta
        low = stress.envelope(quantity, eta, extreme="least").value
        high = stress.envelope(quantity, eta, extreme="greatest").value
        return float(low.min()), float(high.max())

    def peak(self, quantity: str) -> float | None:
        """Return the greatest stress in a single cell over time, Pa, if it is known."""
        if not self.flexible or self.stress is None or quantity == DISPLACEMENT:
            return None
        return self.stress.peak(quantity, self.eta)


def _largest_displacement(modes: Array, eta: Array) -> float:
    """Return the largest displacement (m) during a motion, computed in blocks of instants."""
    flat, largest_square = modes.reshape(len(modes), -1), 0.0
    for start in range(0, len(eta), _BLOCK):
        field = (eta[start : start + _BLOCK] @ flat).reshape(-1, 3)
        largest_square = max(largest_square, float((field**2).sum(axis=1).max(initial=0.0)))
    return largest_square**0.5
