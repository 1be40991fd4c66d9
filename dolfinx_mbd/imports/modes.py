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

__all__ = ["MeanAxisModes", "mean_axis_modes"]

Array = NDArray[np.float64]

DEPENDENT_TOLERANCE = 1e-10
"""Eigenvalue of the mass matrix with a unit diagonal below which columns are dependent."""


@dataclass(frozen=True, eq=False)
class MeanAxisModes:
    """Modes that are orthogonal to the rigid motions, with unit modal masses.

    Attributes:
        squares: ω² of each mode, rad²/s², shape (n,).
        coefficients: Coefficients of each mode, shape (c, n).
        dependent: Number of linearly dependent columns of the basis.
    """

    squares: Array
    coefficients: Array
    dependent: int

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
        """Return the reduced body.

        Args:
            name: Name of the body.
            interfaces: Name, kind, point and axes of each interface. The first six coefficients of
                the modes belong to the first interface, and so on.
            damping: Damping matrix of the coefficients; None for no damping.
            **parts: Mass properties and further fields of the body.
        """
        T, n = self.coefficients, len(self.squares)
        C = np.zeros((n, n)) if damping is None else T.T @ damping @ T
        reasons = {"rigid": (6, "the body frame carries it")}
        reasons["dependent"] = (self.dependent, "linearly dependent on other coordinates")
        return ReducedBody(
            name=name,
            mass=np.eye(n),
            stiffness=np.diag(self.squares),
            damping=(C + C.T) / 2,
            interfaces=tuple(
                Interface(*interface, T[6 * k : 6 * k + 6])
                for k, interface in enumerate(interfaces)
            ),
            modes=tuple(Mode(f"elastic {7 + k}", float(f)) for k, f in enumerate(self.frequencies)),
            left_out=tuple(
                Mode(f"{kind} {k + 1}", 0.0, reason=reason)
                for kind, (count, reason) in reasons.items()
                for k in range(count)
            ),
            reference="mean axis",
            **parts,
        )


def mean_axis_modes(K: Array, M: Array, R: Array, motion: Array) -> MeanAxisModes:
    """Return the modes that are orthogonal to the rigid motions.

    Args:
        K: Stiffness matrix, shape (c, c).
        M: Mass matrix, shape (c, c).
        R: Coefficients of the rigid motions, shape (c, 6).
        motion: Rows that give the motion of the interfaces, shape (any, c). The sign of a mode is
            such that the largest component of this motion is positive.

    Raises:
        MatrixError: Modes without stiffness remain.
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
