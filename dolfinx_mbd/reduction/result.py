"""`Reduction`: a reduced body together with its modes on the mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from dolfinx import fem
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import AMPLITUDE, mode_rows, mode_titles
from dolfinx_mbd.checks import number, reject, vector
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.field_files import History, write_history, write_shapes
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.reduction.truncation import Truncation

MESH_HINT = "the result of reduce(...), because a ReducedBody has no mesh"
"""Advice in errors of functions that need a reduction."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced body together with its modes on the mesh; the result of `reduce`.

    Attributes:
        body: The reduced body, plain data, bitwise identical on all ranks.
        space: Displacement space.
        modes: Modes on this rank, shape (owned dofs, n).
        positions: Positions of the owned blocks, m, shape (owned blocks, 3), in the plane (.., 2).
        truncation: Effective masses of the fixed-interface modes, and an error bound at the
            interfaces; None without interfaces.
        stress: Stress σ(u) as a function that takes and returns UFL, shape (3, 3), Pa, without the
            prestress; None with your own stiffness form.
        model: The model that was reduced.
        interfaces: Interfaces of the body on the mesh.
        loads: Distributed loads of the reduction by name.
        dampings: Dampings whose sum is the damping of the body.
        residuals: Parts of the displacements under unit ω_iω_j and interface wrenches that the
            modes do not represent, shape (owned dofs, 6 + wrench components); None without
            `static_correction=True`.
        omitted: Modes above `up_to`, shape (owned dofs, m), which `sensitivities` uses; None
            without `up_to`.

    Example:
        >>> bar.body.num_modes, bar.modes.shape[1]
        (8, 8)
        >>> u = bar.displacement(np.ones(8))
        >>> bar.write("bar.bp", np.ones((3, 8)), motion="body")
        >>> bar.write_modes("modes.pvd", [1, 2])
        >>> bar.save("bar.npz").name
        'bar.npz'
    """

    body: ReducedBody
    space: fem.FunctionSpace
    modes: Array
    positions: Array
    truncation: Truncation | None = None
    stress: Callable[[Any], Expr] | None = None
    residuals: Array | None = None
    model: ElasticModel | None = None
    interfaces: tuple[MeshInterface, ...] = ()
    loads: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})
    dampings: tuple[Any, ...] = ()
    omitted: Array | None = None

    __repr__ = short_repr

    def _repr_html_(self) -> str:
        """Return the table of the body as HTML, for IPython."""
        return self.body._repr_html_()

    def save(self, path: str | Path) -> Path:
        """Write the body to one ``.npz`` file on rank 0, and return its path.

        Args:
            path: The file; ``.npz`` is added if it has no suffix. Missing directories are created.

        Raises:
            OSError: The file cannot be written; the same error on every rank.

        Note: Collective.
        """
        return self.body.save(path, comm=self.space.mesh.comm)

    def displacement(self, eta: ArrayLike, out: fem.Function | None = None) -> fem.Function:
        """Return the elastic displacement u = Σ ψ_k η_k in the body frame, m.

        Args:
            eta: Elastic coordinates, shape (n,).
            out: Function on `space` to be overwritten; by default a new function.

        Raises:
            InputError: The number of coordinates is not the number of modes.

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
        stride: int | None = None,
        motion: Literal["global", "body"] = "global",
        scale: float = 1.0,
    ) -> None:
        """Write a motion for ParaView ("Warp By Vector" with `displacement`), in parallel.

        The file contains two functions. `displacement` maps the mesh to the positions of its
        points, and `elastic` is u in body components, without the factor `scale`.

        Args:
            path: A name that ends with ``.bp`` (VTX) or with ``.pvd`` (VTK, about twice as
                large, also read by PyVista; its pieces are in a folder, `rod_vtu` for `rod.pvd`).
                Missing directories are created.
            history: Motion with `time` (nt,), s, `eta` (nt, n), `position` (nt, 3), m, and
                `rotation` (nt, 4), quaternions, such as ``run.body("rod")``.
            times: Times to write, s; the nearest recorded times are used. By default all
                times, or 200 that are distributed evenly over the history if there are more.
            stride: Without `times`, write every n-th recorded time.
            motion: ``global``: with the rigid motion; ``body``: elastic displacement only.
            scale: Factor of the elastic part in `displacement`.

        Warns:
            FileWarning: The file takes more than 500 MB.

        Raises:
            InputError: The history does not fit the body, or the name is invalid.
            OverwriteError: The name belongs to a file of another kind.
            OSError: The file cannot be written, for example because the disk is full.

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

    def write_modes(
        self, path: str | Path, modes: Iterable[int] | None = None, *, scale: float | None = None
    ) -> None:
        """Write mode shapes as vector fields for ParaView ("Warp By Vector"), in parallel.

        The name of each field contains the number, the label and the frequency of its mode, for
        example `2: elastic 2, 1754.3 Hz`.

        Args:
            path: A name that ends with ``.bp`` or ``.pvd``; see `write`.
            modes: Numbers of the modes, starting at 1. By default all modes.
            scale: Factor of the shapes, which have the unit m for an elastic coordinate of one. By
                default the largest displacement of each mode is 8 % of the size of the body.

        Raises:
            InputError: The body has no such mode, or the name is invalid.
            OverwriteError: The name belongs to a file of another kind.
            OSError: The file cannot be written.

        Note: Collective.
        """
        n, mesh = self.modes.shape[1], self.space.mesh
        rows = mode_rows("modes", range(1, n + 1) if modes is None else modes, n)
        if not len(rows):
            reject("modes", modes, "a list of modes that is not empty")
        titles, shapes = mode_titles(self.body.modes), self.modes[:, rows]
        if scale is not None:
            shapes = number("scale", scale) * shapes
        else:
            squares = (shapes.reshape(-1, self.space.dofmap.bs, len(rows)) ** 2).sum(axis=1)
            greatest = np.sqrt(
                np.max(mesh.comm.allgather(squares.max(axis=0, initial=0.0)), axis=0)
            )
            shapes = shapes * (AMPLITUDE * body_size(mesh) / greatest)
        write_shapes(self.space, shapes, [titles[k] for k in rows], path)
