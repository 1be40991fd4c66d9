"""Mean-axis modes of a free body from its matrices, and the reduced body that they form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dolfinx_mbd.body import Interface, Mode, ReducedBody
from dolfinx_mbd.imports.matrices import MatrixError

Array = NDArray[np.float64]

DEPENDENT_TOLERANCE = 1e-10
"""Eigenvalue of the mass matrix with a unit diagonal below which columns are dependent."""


@dataclass(frozen=True, eq=False)
class MeanAxisModes:
    """Modes that are orthogonal to the rigid motions, with unit modal masses."""

    squares: Array  # ω² of each mode, rad²/s², shape (n,)
    coefficients: Array  # shape (c, n)
    dependent: int  # number of linearly dependent columns of the basis

    @property
    def frequencies(self) -> Array:
        """Natural frequencies, Hz."""
        return np.sqrt(self.squares) / (2 * np.pi)

    def body(
        self,
        name: str,
        interfaces: Iterable[tuple[str, str, Array, Array]],
        damping: Array | None,
        **parts: Any,
    ) -> ReducedBody:
        """Return the reduced body with further fields, such as the mass properties.

        An interface has a name, a kind, a point and axes; the first six coefficients of the modes
        belong to the first interface, and so on. The damping is that of the coefficients.
        """
        T, n = self.coefficients, len(self.squares)
        C = np.zeros((n, n)) if damping is None else T.T @ damping @ T
        left_out = [
            Mode(f"rigid {k}", 0.0, reason="the body frame carries it") for k in range(1, 7)
        ]
        reason = "linearly dependent on other coordinates"
        left_out += [Mode(f"dependent {k + 1}", 0.0, reason=reason) for k in range(self.dependent)]
        parts["interfaces"] = tuple(
            Interface(*interface, T[6 * k : 6 * k + 6]) for k, interface in enumerate(interfaces)
        )
        return ReducedBody(
            name=name,
            mass=np.eye(n),
            stiffness=np.diag(self.squares),
            damping=(C + C.T) / 2,
            modes=tuple(Mode(f"elastic {7 + k}", float(f)) for k, f in enumerate(self.frequencies)),
            left_out=tuple(left_out),
            reference="mean axis",
            **parts,
        )


def mean_axis_modes(K: Array, M: Array, R: Array, motion: Array) -> MeanAxisModes:
    """Return the modes of K and M (c, c) that are orthogonal to the rigid motions R (c, 6).

    The sign of a mode is such that the largest component of its `motion` (any, c) is positive.
    """
    scale = 1 / np.sqrt(np.diag(M))
    Ks, Ms = K * np.outer(scale, scale), M * np.outer(scale, scale)
    sizes, V = np.linalg.eigh((Ms + Ms.T) / 2)
    V = V[:, sizes > DEPENDENT_TOLERANCE]
    B = V.T @ Ms @ (R / scale[:, None])
    q, _ = np.linalg.qr(B / np.linalg.norm(B, axis=0), mode="complete")
    Z = V @ q[:, R.shape[1] :]
    A, C = Z.T @ Ks @ Z, Z.T @ Ms @ Z
    squares, Y = scipy.linalg.eigh((A + A.T) / 2, (C + C.T) / 2)
    loose = int(np.sum(squares < 1e-12 * squares.max(initial=0.0)))
    if loose:
        raise MatrixError(
            f"{loose} modes without stiffness remain besides the rigid motions: the body consists "
            "of parts that are not connected or are hinged",
            argument="stiffness",
        )
    T = scale[:, None] * (Z @ Y)
    rows = motion @ T
    if rows.size:
        largest = rows[np.abs(rows).argmax(axis=0), np.arange(T.shape[1])]
        T = T * np.where(largest < 0, -1.0, 1.0)
    return MeanAxisModes(squares, T, int(np.sum(sizes <= DEPENDENT_TOLERANCE)))
