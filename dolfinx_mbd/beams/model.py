"""A beam: its mesh, section and material, checked, with its nodes in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.checks import array, name, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.forms import GradedMaterial, Material
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.beams import Beam
from dolfinx_mbd.linalg.options import require_real
from dolfinx_mbd.parallel import agreed, raise_together

__all__ = ["BeamModel", "checked_place"]

Array = NDArray[np.float64]

STRAIGHT = 1e-8
"""Distance of a vertex from the beam's line, over its length, from which it is not straight."""


@dataclass(frozen=True, eq=False)
class BeamModel:
    """A straight beam on an interval mesh.

    Attributes:
        mesh: Intervals of any lengths, drawn in either direction; in one dimension, which is the
            body's x, or embedded in space, along the first of the axes.
        section: The cross-section.
        material: `Material` or `GradedMaterial`.
        axes: Columns are the beam's direction, then y and z of the section, in body components,
            a rotation matrix of shape (3, 3); the body's axes by default.

    Raises:
        ValueError: The mesh is no straight chain of intervals along the first axis.

    Note: Making one is collective over the mesh's communicator.
    """

    mesh: Mesh
    section: Section
    material: Material | GradedMaterial
    axes: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_real()
        if not isinstance(self.mesh, Mesh) or self.mesh.topology.dim != 1:
            raise InputError("a beam needs a mesh of intervals")
        if compat.geometry_degree(self.mesh) != 1:
            raise InputError("a beam needs a mesh of straight intervals")
        if not isinstance(self.section, Section):
            raise InputError(f"expected a Section, got {self.section!r}")
        if not isinstance(self.material, (Material, GradedMaterial)):
            raise InputError(f"a beam takes a Material or a GradedMaterial; got {self.material!r}")
        beam = Beam(self.section, self.material, self.axes)  # checks the axes
        object.__setattr__(self, "axes", beam.axes)
        _check_chain(self.mesh, self.chain, self.direction)

    @property
    def direction(self) -> Array:
        """Unit vector along the beam, body components, shape (3,)."""
        return np.asarray(self.axes)[:, 0]

    @cached_property
    def space(self) -> fem.FunctionSpace:
        """Displacements and rotations: P1 with six components."""
        return fem.functionspace(self.mesh, ("Lagrange", 1, (6,)))

    @cached_property
    def positions(self) -> Array:
        """Positions of the owned vertices, in the order of `space`, shape (m, 3), m."""
        x = self.space.tabulate_dof_coordinates()[: self.space.dofmap.index_map.size_local]
        return x if self.mesh.geometry.dim > 1 else x[:, :1] * self.direction

    @cached_property
    def chain(self) -> Array:
        """Positions of all vertices along the beam, in ascending order, shape (n, 3), m.

        Note: The first time collective.
        """
        everywhere = np.vstack(self.mesh.comm.allgather(self.positions))
        return everywhere[np.argsort(everywhere @ self.direction)]

    @cached_property
    def beam(self) -> Beam:
        """The forms; numbers are `Constant`s, so that beams share compiled forms."""

        def constant(value: Any) -> Any:
            if isinstance(value, Expr):
                return value
            return fem.Constant(self.mesh, default_scalar_type(value))

        s, m = self.section, self.material
        names = ("area", "Iyy", "Izz", "torsion") + (
            ("Iyz",) if isinstance(s.Iyz, Expr) or s.Iyz else ()
        )
        section = replace(s, **{name: constant(getattr(s, name)) for name in names})
        material = GradedMaterial(
            constant(m.young), constant(m.poisson), constant(m.density), m.name
        )
        return Beam(section, material, self.axes)

    def rigid_motions(
        self, point: Array | None = None, blocks: NDArray[np.int32] | None = None
    ) -> Array:
        """Rigid motions about a point as displacements and rotations of owned nodes.

        Shape (6 nodes, 6), the origin by default, all nodes by default.
        """
        x = self.positions
        if point is not None:
            point = array("point", point, (3,))
        if blocks is not None:
            numbers = array("blocks", blocks, (None,))
            if not (np.isin(numbers, np.arange(len(x)))).all():
                refuse("blocks", blocks, f"numbers of owned nodes from 0 to {len(x) - 1}")
            x = x[numbers.astype(np.int32)]
        R = np.zeros((len(x), 6, 6))
        R[:, :3] = rigid_motions(x, point).reshape(len(x), 3, 6)
        R[:, 3:, 3:] = np.eye(3)
        return np.asfortranarray(R.reshape(6 * len(x), 6))

    def gathered(self, vectors: Array) -> Array:
        """Nodal values of vectors at all vertices in the order of `chain`, the same on every rank.

        Args:
            vectors: Shape (owned dofs, k).

        Returns:
            Shape (n, 6, k).

        Note: Collective.
        """
        comm = self.mesh.comm
        with agreed(comm):
            vectors = array("vectors", vectors, (6 * len(self.positions), None))
        parts = comm.gather((self.positions @ self.direction, vectors), root=0)
        result = None
        with agreed(comm):
            if parts is not None:
                order = np.argsort(np.concatenate([s for s, _ in parts]))
                values = np.concatenate([v for _, v in parts])
                result = values.reshape(len(order), 6, -1)[order]
        return comm.bcast(result, root=0)

    def node(
        self, at: float | ArrayLike, what: str = "the point"
    ) -> tuple[Array, NDArray[np.int32]]:
        """The vertex at a place: its position, and its owned block (empty on all ranks but one).

        Args:
            at: Distance along the beam's direction, m, or position, shape (3,).
            what: To name in errors.

        Raises:
            ValueError: There is no vertex.
        """
        given = checked_place(name("what", what), at)
        along = self.chain @ self.direction
        place = float(given) if given.shape == () else float(given @ self.direction)
        k = int(np.argmin(np.abs(along - place)))
        node, size = self.chain[k], along[-1] - along[0]
        off = abs(along[k] - place) if given.shape == () else float(np.linalg.norm(node - given))
        if off > STRAIGHT * size:
            raise InputError(
                f"{what}: the beam has no node at {at!r}; the nearest is at {along[k]:.6g} m, "
                f"{off:.3g} m away"
            )
        blocks = np.flatnonzero(
            np.abs(self.positions @ self.direction - along[k]) < STRAIGHT * size
        )
        return node, blocks.astype(np.int32)


def checked_place(argument: str, at: Any) -> Array:
    """Return a distance along the beam, shape (), or a position, shape (3,), as an array."""
    expected = "a distance along the beam or a position, finite numbers in m"
    place = array(argument, at, expected=expected)
    if place.shape not in ((), (3,)):
        refuse(argument, at, expected)
    return np.asarray(place)


def _check_chain(mesh: Mesh, chain: Array, direction: Array) -> None:
    """Refuse what is bent, in parts, or folded."""
    along = chain @ direction
    length = along[-1] - along[0]
    off = chain - chain[0] - np.outer(along - along[0], direction)
    message = None
    if not length > 0 or np.abs(off).max() > STRAIGHT * length:
        message = (
            f"the mesh is not straight along ({', '.join(f'{c:g}' for c in direction)}); give the "
            "axes of the beam"
        )
    local = mesh.topology.index_map(1).size_local
    nodes = compat.geometry_dofmap(mesh)[:local]
    x = mesh.geometry.x
    s = x[:, 0] if mesh.geometry.dim == 1 else x @ direction
    ends = np.searchsorted(along, np.sort(s[nodes], axis=1) - STRAIGHT * max(length, 0.0))
    count = mesh.comm.allreduce(local)
    if message is None and ((np.diff(ends, axis=1) != 1).any() or count != len(along) - 1):
        message = "the mesh is no chain of intervals, each from one node to the next"
    raise_together(mesh.comm, message)
