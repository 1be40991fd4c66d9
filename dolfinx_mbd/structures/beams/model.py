"""Model of a beam: mesh, section and material, with checks, and the nodes along the beam."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, instance, name, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.fem.linalg.options import require_real
from dolfinx_mbd.forms import GradedMaterial, Material
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.beams import Beam
from dolfinx_mbd.parallel import on_rank_zero, raise_together, shared_errors

STRAIGHT_TOLERANCE = 1e-8
"""Largest permissible distance of a vertex from a straight line, relative to the beam's length."""


@dataclass(frozen=True, eq=False)
class BeamModel:
    """Straight beam on an interval mesh.

    Attributes:
        mesh: Intervals of any length and orientation, either in one dimension (the x axis of the
            body) or in space along the first column of `axes`.
        section: The cross-section.
        material: `Material` or `GradedMaterial`.
        axes: Rotation matrix whose columns are the direction of the beam and the axes y and z of
            the section, in body components, shape (3, 3). By default the axes of the body.

    Raises:
        InputError: The mesh is not a straight chain of intervals along the first axis.

    Example:
        >>> section = mbd.forms.Section.rectangle(0.02, 0.01)
        >>> mbd.BeamModel(create_interval(MPI.COMM_SELF, 8, [0, 0.5]), section, mbd.STEEL).direction
        array([1., 0., 0.])

    Note: Construction is collective over the communicator of the mesh.
    """

    mesh: Mesh
    section: Section
    material: Material | GradedMaterial
    axes: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_real()
        instance("mesh", self.mesh, Mesh)
        if self.mesh.topology.dim != 1 or compat.geometry_degree(self.mesh) != 1:
            raise InputError("a beam needs a mesh of straight intervals", argument="mesh")
        instance("section", self.section, Section)
        instance("material", self.material, (Material, GradedMaterial))
        beam = Beam(self.section, self.material, self.axes)  # checks the axes
        assign(self, axes=beam.axes)
        _check_chain(self.mesh, self.chain, self.direction)

    @property
    def direction(self) -> Array:
        """Unit vector along the beam in body components, shape (3,)."""
        return np.asarray(self.axes)[:, 0]

    @cached_property
    def space(self) -> fem.FunctionSpace:
        """Space of displacements and rotations: P1 with six components."""
        return fem.functionspace(self.mesh, ("Lagrange", 1, (6,)))

    @cached_property
    def positions(self) -> Array:
        """Positions of the owned vertices, in the order of `space`, shape (m, 3), m."""
        x = self.space.tabulate_dof_coordinates()[: self.space.dofmap.index_map.size_local]
        return x if self.mesh.geometry.dim > 1 else x[:, :1] * self.direction

    @cached_property
    def chain(self) -> Array:
        """Positions of all vertices along the beam, in ascending order, shape (n, 3), m.

        Note: The first use is collective.
        """
        return gather_in_order(self, self.positions)

    @cached_property
    def beam(self) -> Beam:
        """Forms of the beam; its numbers are DOLFINx constants, so that forms are compiled once."""

        def constant(value: Any) -> Any:
            """Return a number as a constant, and an expression unchanged."""
            if isinstance(value, Expr):
                return value
            return fem.Constant(self.mesh, default_scalar_type(value))

        s, m = self.section, self.material
        names = ["area", "Iyy", "Izz", "torsion"]
        if isinstance(s.Iyz, Expr) or s.Iyz:
            names.append("Iyz")
        section = replace(s, **{name: constant(getattr(s, name)) for name in names})
        young, poisson, density = (constant(value) for value in (m.young, m.poisson, m.density))
        return Beam(section, GradedMaterial(young, poisson, density, m.name), self.axes)

    def gather(self, vectors: Array) -> Array:
        """Return the nodal values of vectors (owned dofs, k) in the order of `chain`, (n, 6, k).

        Note: Collective.
        """
        with shared_errors(self.mesh.comm):
            vectors = array("vectors", vectors, (6 * len(self.positions), None))
        return gather_in_order(self, vectors.reshape(len(self.positions), 6, vectors.shape[1]))

    def node(
        self, place: float | ArrayLike, title: str = "the point"
    ) -> tuple[Array, NDArray[np.int32]]:
        """Return the position of a vertex, and its block on the owning rank (empty on other ranks).

        Args:
            place: Distance along the direction of the beam, m, or position, shape (3,).
            title: Description of the point, for error messages.

        Raises:
            InputError: There is no vertex at this place.
        """
        position = checked_place(name("title", title), place)
        distances = self.chain @ self.direction
        distance = float(position) if position.shape == () else float(position @ self.direction)
        k = int(np.argmin(np.abs(distances - distance)))
        node, tolerance = self.chain[k], STRAIGHT_TOLERANCE * (distances[-1] - distances[0])
        deviation = (
            abs(distances[k] - distance)
            if position.shape == ()
            else np.linalg.norm(node - position)
        )
        if deviation > tolerance:
            raise InputError(
                f"{title}: the beam has no node at {place!r}; the nearest is at "
                f"{distances[k]:.6g} m, {deviation:.3g} m away"
            )
        blocks = np.flatnonzero(np.abs(self.positions @ self.direction - distances[k]) < tolerance)
        return node, blocks.astype(np.int32)


def rigid_modes(
    model: BeamModel, point: Array | None = None, blocks: NDArray[np.int32] | None = None
) -> Array:
    """Return rigid motions about a point as displacements and rotations of owned nodes.

    The shape is (6 nodes, 6); by default about the origin, for all owned nodes.
    """
    x = model.positions if blocks is None else model.positions[blocks]
    R = np.zeros((len(x), 6, 6))
    R[:, :3] = rigid_motions(x, point).reshape(len(x), 3, 6)
    R[:, 3:, 3:] = np.eye(3)
    return np.asfortranarray(R.reshape(6 * len(x), 6))


def gather_in_order(model: BeamModel, values: Array) -> Array:
    """Return the values at all nodes in the order of the nodes along the beam, on rank 0.

    `values` are those at the owned nodes, shape (m, ...).
    """
    comm = model.mesh.comm
    parts = comm.gather((model.positions @ model.direction, values), root=0)

    def join() -> Array:
        """Sort the values of all ranks by their distances along the beam."""
        order = np.argsort(np.concatenate([s for s, _ in parts]))
        return np.concatenate([v for _, v in parts])[order]

    return on_rank_zero(comm, join)


def checked_place(argument: str, value: Any) -> Array:
    """Return a distance along the beam, shape (), or a position, shape (3,), as an array."""
    expected = "a distance along the beam or a position, finite numbers in m"
    place = array(argument, value, expected=expected)
    if place.shape not in ((), (3,)):
        reject(argument, value, expected)
    return np.asarray(place)


def _check_chain(mesh: Mesh, chain: Array, direction: Array) -> None:
    """Raise an error if the mesh is bent, has several parts or is folded."""
    distances = chain @ direction
    length = distances[-1] - distances[0]
    deviations = chain - chain[0] - np.outer(distances - distances[0], direction)
    if not length > 0 or np.abs(deviations).max() > STRAIGHT_TOLERANCE * length:
        raise InputError(
            f"the mesh is not straight along ({', '.join(f'{c:g}' for c in direction)}); give the "
            "axes of the beam"
        )
    local = mesh.topology.index_map(1).size_local
    nodes = compat.geometry_dofmap(mesh)[:local]
    x = mesh.geometry.x
    s = x[:, 0] if mesh.geometry.dim == 1 else x @ direction
    ends = np.searchsorted(distances, np.sort(s[nodes], axis=1) - STRAIGHT_TOLERANCE * length)
    folded = (np.diff(ends, axis=1) != 1).any() or mesh.comm.allreduce(local) != len(distances) - 1
    message = "the mesh is not a chain of intervals, each from one node to the next"
    raise_together(mesh.comm, message if folded else None)
