"""Participation of the modes in the static deflection under unit wrenches and distributed loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.checks import instance, number, reject
from dolfinx_mbd.html import short_repr

_COMPONENTS = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")


@dataclass(frozen=True, eq=False)
class Participation:
    """Shares of the modes in the work of loads.

    Attributes:
        loads: Names of the loads, such as `big_end Fx`, and of the body's distributed loads.
        shares: Share of each mode in the work fᵀK⁻¹f, shape (n, loads); columns sum to 1.
        groups: Index of the multiple eigenvalue to which each mode belongs, shape (n,); None if all
            eigenvalues are different.

    Example:
        >>> mbd.body.participation(body).most(0.95)
        [1, 2]
    """

    loads: tuple[str, ...]
    shares: Array
    groups: NDArray[np.int64] | None = None

    __repr__ = short_repr

    def most(self, share: float) -> list[int]:
        """Return the numbers of the modes that together do a share of the work of every load.

        For each load, the modes with the largest shares are selected until these add up to `share`.
        The modes of a multiple eigenvalue are selected together. The numbers start at 1; they are
        arguments of `ReducedBody.selected`.

        Args:
            share: Share of the work, above 0 and at most 1.

        Raises:
            InputError: `share` is out of range.
        """
        return [row + 1 for row in most_of(self.shares, share, self.groups)]


def most_of(weights: Array, share: float, groups: NDArray[np.int64] | None = None) -> list[int]:
    """Return the zero-based rows that together contain a share of the sum of every column.

    For each column, the largest entries are selected until these add up to the share. Rows with the
    same zero-based index in `groups` are selected together.
    """
    if groups is not None:
        sums = np.zeros((int(groups.max(initial=-1)) + 1, weights.shape[1]))
        np.add.at(sums, groups, weights)
        return [int(k) for k in np.flatnonzero(np.isin(groups, most_of(sums, share)))]
    share = number("share", share, positive=True, high=1.0)
    rows: set[int] = set()
    for column in weights.T:
        order = np.argsort(-column, kind="stable")
        sums = np.cumsum(column[order])
        if len(sums) and sums[-1] > 0:
            count = int(np.searchsorted(sums, share * sums[-1] * (1 - 1e-12))) + 1
            rows.update(int(k) for k in order[:count])
    return sorted(rows)


def participation(body: ReducedBody) -> Participation:
    """Return the share of each mode in the static response to wrenches and distributed loads.

    A load that does no work on any mode, such as a force out of the plane of a plane body, has no
    column.

    Args:
        body: A body with orthogonal modes (`reduce(..., orthonormalize=True)`, the default).

    Raises:
        InputTypeError: `body` is not a reduced body.
        InputError: The modes are coupled by the stiffness matrix, so that the work cannot be
            attributed to single modes.

    Example:
        >>> mbd.body.participation(body).loads
        ('left Fx', 'left Fy', 'left Mz', 'right Fx', 'right Fy', 'right Mz', 'wind')
    """
    K = instance("body", body, ReducedBody).stiffness
    if np.abs(K - np.diag(np.diag(K))).max(initial=0.0) > 1e-9 * np.abs(K).max(initial=0.0):
        expected = "a body with orthogonal modes, reduced with orthonormalize=True"
        reject("body", body, f"{expected}: the stiffness couples the elastic coordinates")
    names = [f"{i.name} {c}" for i in body.interfaces for c in _COMPONENTS]
    rows = [*(row for i in body.interfaces for row in i.motion), *(p.modes for p in body.loads)]
    names += [p.name for p in body.loads]
    forces = np.array(rows).reshape(len(names), body.num_modes)
    work = (forces**2 / np.diag(K)).T
    sums = work.sum(axis=0)
    acts = sums > 0
    return Participation(
        tuple(name for name, a in zip(names, acts, strict=True) if a),
        work[:, acts] / sums[acts],
        groups_of(np.diag(K) / np.diag(body.mass)),
    )
