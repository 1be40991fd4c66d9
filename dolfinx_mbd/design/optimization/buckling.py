"""Buckling load of a reduced body between two interfaces, and its derivatives."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import instance, names, reject
from dolfinx_mbd.design.sensitivity.body_sensitivities import BodyDerivative, BodySensitivities
from dolfinx_mbd.errors import InputError


def buckling_load(
    table: BodySensitivities, ends: tuple[str, str]
) -> tuple[float, dict[str, float]]:
    """Return the smallest pair of opposite forces at which a body buckles, and its derivatives.

    The forces act at the points of two interfaces, along the line between them, and keep their
    directions. The interfaces turn freely, as with spherical joints; joints that prevent these
    rotations increase the load. The load is the smallest P > 0 for which K − P G is singular. G is
    the geometric stiffness under unit tension in the elastic coordinates of the body, without
    the rotation of the line between the points. The modes must represent the shape of buckling;
    with six fixed-interface modes, the load of a slender rod has a relative error of 1e-5.

    Args:
        table: Derivatives of a body with geometric stiffening.
        ends: Names of the two interfaces.

    Returns:
        The load, N, and its derivatives by the names of the parameters. If the load is multiple,
        these are the derivatives of one of the branches.

    Raises:
        InputError: The body has no stiffening, or an interface is unknown, or the body does not
            buckle under this pair of forces.

    Example:
        >>> table = mbd.sensitivities(bar, [mbd.Parameter("E", "young")])
        >>> load, slopes = mbd.design.buckling_load(table, ("left", "right"))
        >>> euler = np.pi**2 * 210e9 * 0.02 * 0.01**3 / 12 / 0.2**2  # a slender rod
        >>> round(load / euler, 2), round(slopes["E"] * 210e9 / load, 6)
        (1.0, 1.0)
    """
    body = instance("table", table, BodySensitivities).body
    if len(names("ends", ends)) != 2:
        reject("ends", ends, "the names of two interfaces")
    for name in ends:
        body.interface(name)
    if body.stiffening is None:
        text = "the buckling load needs a body with geometric stiffening (reference: mean axis)"
        raise InputError(text, argument="table", value=table)
    index = [[i.name for i in body.interfaces].index(name) for name in ends]
    column = _Column(body, index)
    values, vectors = scipy.linalg.eigh(column.stiffness(), body.stiffness)  # G v = (1/P) K v
    if not values[-1] > 0:
        raise InputError(f"the body does not buckle under forces between {ends[0]} and {ends[1]}")
    v, load = vectors[:, -1], float(1 / values[-1])
    slopes = {}
    for name, d in table.items():
        change = d.stiffness - load * column.derivative(d)
        slopes[name] = float(v @ change @ v / (v @ column.stiffness() @ v))
    return load, slopes


class _Column:
    """Geometric stiffness G under unit tension between the points of two interfaces."""

    def __init__(self, body: ReducedBody, index: list[int]) -> None:
        first, second = (body.interfaces[k] for k in index)
        self.first, self.second = index
        self.line = second.point - first.point
        self.length = float(np.linalg.norm(self.line))
        self.direction: Array = np.asarray(self.line / self.length, dtype=float)
        self.motion = second.motion[:3] - first.motion[:3]  # of one end relative to the other
        assert body.stiffening is not None
        self.by_wrench = body.stiffening.interfaces  # geometric stiffness per unit of each wrench

    def _tension(self, by_wrench: Array, direction: Array) -> Array:
        """Return the geometric stiffness of unit forces that pull the two interfaces apart."""
        by_force = by_wrench[self.second, :3] - by_wrench[self.first, :3]
        return np.asarray(np.tensordot(direction, by_force, axes=1))

    def stiffness(self) -> Array:
        """Return G."""
        across = self.motion - np.outer(self.direction, self.direction @ self.motion)
        # The second term is the work of the rotation of the line between the points
        G = self._tension(self.by_wrench, self.direction) - across.T @ across / self.length
        return np.asarray((G + G.T) / 2)

    def derivative(self, d: BodyDerivative) -> Array:
        """Return the derivative of G with respect to a parameter."""
        e, motion = self.direction, self.motion
        assert d.interface_stiffening is not None
        line_change = d.interface_points[self.second] - d.interface_points[self.first]
        length_change = float(e @ line_change)
        e_change: Array = (line_change - e * length_change) / self.length
        change = d.interface_motions[self.second, :3] - d.interface_motions[self.first, :3]
        across = motion - np.outer(e, e @ motion)
        across_change = change - np.outer(e, e @ change + e_change @ motion)
        across_change -= np.outer(e_change, e @ motion)
        G = self._tension(d.interface_stiffening, e) + self._tension(self.by_wrench, e_change)
        G -= (across_change.T @ across + across.T @ across_change) / self.length
        G += across.T @ across * length_change / self.length**2
        return np.asarray((G + G.T) / 2)
