"""`Reduction`: a reduced body together with what ties it to its mesh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from dolfinx import fem
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import vector
from dolfinx_mbd.fem.fields import History, as_function, write_history
from dolfinx_mbd.reduction.stiffening import UnitCases
from dolfinx_mbd.reduction.truncation import Truncation

__all__ = ["Reduction"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced body and what ties it to its mesh.

    Attributes:
        body: The reduced body, plain data, the same bits on every rank.
        space: The displacement space.
        modes: The modes on this rank, shape (owned dofs, n).
        positions: x at the owned blocks, m, shape (owned blocks, 3), in the plane (.., 2).
        truncation: What the fixed-interface modes leave out at the interfaces: a bound of the error
            of their dynamic stiffness, and effective masses. None without interfaces.
        stress: σ(u) of the materials as a function from UFL to UFL, shape (3, 3), Pa, without the
            prestress; None with the user's own stiffness.
        cases: Displacements under unit wrenches at the interfaces and unit spins, for static
            correction; None without `static_correction=True`.
    """

    body: ReducedBody
    space: fem.FunctionSpace
    modes: Array
    positions: Array
    truncation: Truncation | None = None
    stress: Callable[[Any], Expr] | None = None
    cases: UnitCases | None = None

    def save(self, path: str | Path) -> Path:
        """Write the body to one ``.npz`` file on rank 0; an error is raised on all ranks.

        Args:
            path: The file; ``.npz`` is added if it has no suffix.

        Raises:
            OSError: The file cannot be written.

        Note: Collective.
        """
        return self.body.save(path, comm=self.space.mesh.comm)

    def displacement(self, eta: ArrayLike, out: fem.Function | None = None) -> fem.Function:
        """Elastic displacement u = Σ ψ_k η_k in the body frame, m.

        Args:
            eta: Elastic coordinates, shape (n,).
            out: A function on `space` to be overwritten; None: a new one.

        Raises:
            ValueError: The number of coordinates is not that of the modes.

        Note: Collective.
        """
        values = vector("eta", eta, self.modes.shape[1])
        return as_function(self.space, self.modes @ values, out)

    def write(
        self,
        path: str | Path,
        history: History,
        *,
        times: ArrayLike | None = None,
        stride: int = 1,
        motion: Literal["global", "body"] = "global",
        scale: float = 1.0,
    ) -> None:
        """Write a motion as VTX for ParaView ("Warp By Vector" with `displacement`), in parallel.

        The file holds two functions: `displacement`, from the mesh to where its points are, and
        `elastic`, u in body components, never scaled.

        Args:
            path: A name that ends in ``.bp``; missing directories are made.
            history: `time` (nt,), `eta` (nt, n), `position` (nt, 3) and `rotation` (nt, 4).
            times: Instants to write, s; the nearest recorded ones are taken. None: all.
            stride: Without `times`, write every n-th instant.
            motion: ``global``: rigid motion included; ``body``: elastic displacement only.
            scale: Factor of the elastic part in `displacement`.

        Raises:
            ValueError: The history does not fit the body.

        Note: Collective.
        """
        write_history(
            self.space,
            self.modes,
            self.positions,
            path,
            history,
            times=times,
            stride=stride,
            motion=motion,
            scale=scale,
        )
