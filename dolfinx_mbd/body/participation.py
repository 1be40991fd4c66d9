"""Which modes matter: their share in the static deflection under unit wrenches and given loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.checks import instance, number
from dolfinx_mbd.errors import InputError

__all__ = ["Participation", "most_of", "participation"]

Array = NDArray[np.float64]

_COMPONENTS = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")


@dataclass(frozen=True, eq=False)
class Participation:
    """Shares of modes in the work of loads.

    Attributes:
        loads: Names of the loads: ``big_end Fx`` ..., and the body's distributed loads.
        shares: Part of the work fᵀK⁻¹f that is in each mode, shape (n, loads); columns sum to 1.
        groups: Number of the multiple eigenvalue that each mode belongs to, shape (n,); None: all
            eigenvalues differ.
    """

    loads: tuple[str, ...]
    shares: Array
    groups: NDArray[np.int64] | None = None

    def most(self, share: float) -> list[int]:
        """Numbers of the fewest modes that have this share of the work of every load.

        All modes of a multiple eigenvalue are taken, or none of them.

        Args:
            share: Between 0 and 1.

        Raises:
            ValueError: It is not.
        """
        return most_of(self.shares, share, self.groups)


def most_of(weights: Array, share: float, groups: NDArray[np.int64] | None = None) -> list[int]:
    """Rows that in each column together have a share of its sum, the greatest first.

    Args:
        weights: Not negative, shape (n, columns).
        share: Between 0 and 1.
        groups: Numbers of groups of rows that are taken together, shape (n,), 0, 1, ...

    Raises:
        ValueError: The share is not.
    """
    if groups is not None:
        sums = np.zeros((int(groups.max(initial=-1)) + 1, weights.shape[1]))
        np.add.at(sums, groups, weights)
        return [int(k) for k in np.flatnonzero(np.isin(groups, most_of(sums, share)))]
    share = number("share", share, positive=True, high=1.0)
    kept: set[int] = set()
    for column in weights.T:
        order = np.argsort(-column, kind="stable")
        sums = np.cumsum(column[order])
        if len(sums) and sums[-1] > 0:
            enough = int(np.searchsorted(sums, share * sums[-1] * (1 - 1e-12))) + 1
            kept.update(int(k) for k in order[:enough])
    return sorted(kept)


def participation(body: ReducedBody) -> Participation:
    """The share of each mode in the static response to unit wrenches and distributed loads.

    A load that does no work on any mode, as a force across a plane body, has no column.

    Raises:
        ValueError: The modes of the body are not orthogonal (`orthonormalize=False`): then the work
            of a load has no parts.
    """
    K = instance("body", body, ReducedBody).stiffness
    if np.abs(K - np.diag(np.diag(K))).max(initial=0.0) > 1e-9 * np.abs(K).max(initial=0.0):
        raise InputError(
            f"body {body.name!r}: its elastic coordinates are coupled by the stiffness; reduce it "
            "with orthonormalize=True"
        )
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
