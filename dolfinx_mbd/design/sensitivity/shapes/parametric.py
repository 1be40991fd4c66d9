"""Shape velocities from a number on which a CAD geometry depends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from dolfinx import fem

from dolfinx_mbd.checks import function, instance, number, reject
from dolfinx_mbd.design.sensitivity.shapes.velocities import elastic_extension
from dolfinx_mbd.fem.compat import geometry_dofmap
from dolfinx_mbd.fem.meshing import Builder, TaggedMesh
from dolfinx_mbd.geometry.surface_motion import surface_velocity
from dolfinx_mbd.parallel import on_rank_zero, raise_together

TOLERANCE = 1e-9
"""Largest distance of a node from its position in the rebuilt mesh, relative to the size."""


def parametric_velocity(
    mesh: TaggedMesh, build: Callable[[float], Builder], value: float, *, step: float | None = None
) -> fem.Function:
    """Return the shape velocity of a dimension of a CAD geometry.

    The nodes on points, curves and faces of the geometry move with them, and the interior follows
    as an elastic body with ν = 0. The topology of the geometry must not change with the dimension.
    For a mesh without geometry, use `extended_velocity`.

    Args:
        mesh: Mesh that `build_mesh` made with `build(value)`.
        build: Function that returns the builder of the geometry for a value, as for `build_mesh`;
            for example `lambda length: ConnectingRod(length=length)`. It is called on rank 0 for
            the value and for four values nearby. Nearby geometries are not meshed.
        value: Value of the dimension for this mesh.
        step: Step of the differences of fourth order. By default a thousandth of the value.

    Returns:
        The velocity at the nodes of the mesh per unit of the dimension, for
        `Parameter(..., "shape", velocity=...)`.

    Raises:
        InputError: The mesh is not that of `build(value)`, the topology changes within two steps
            of the value, or the geometry is not smooth or does not depend on the dimension.
        Exception: Any error of the builder on rank 0 is raised on every rank.

    Note: Collective.

    Example:
        >>> def rod(length):
        ...     return mbd.ConnectingRod(length=length, size=0.02, order=1)
        >>> mesh = mbd.build_mesh(rod(0.137), MPI.COMM_WORLD)
        >>> velocity = mbd.design.parametric_velocity(mesh, rod, 0.137)
        >>> length = mbd.Parameter("length", "shape", velocity=velocity)
    """
    instance("mesh", mesh, TaggedMesh)
    function("build", build, "build(value)")
    value = number("value", value, low=-1e100, high=1e100)
    if step is None and value == 0:
        reject("step", step, "a number, because the value is zero")
    step = number("step", abs(value) / 1000 if step is None else step, low=1e-100, high=1e100)
    plain = mesh.mesh
    comm, dim = plain.comm, plain.geometry.dim
    points, velocity = on_rank_zero(comm, lambda: surface_velocity(build, value, step))
    rows = np.asarray(plain.geometry.input_global_indices)
    reason = None
    if plain.geometry.index_map().size_global != len(points):
        reason = f"that mesh has {len(points)} nodes"
    else:
        deviation = np.abs(plain.geometry.x - points[rows]).max(initial=0.0)
        if deviation > TOLERANCE * np.ptp(points, axis=0).max():
            reason = f"a node is {deviation:.3g} m away from its position in that mesh"
    if reason is not None:
        reason = f"the mesh is not that of build({value:g}): {reason}"
    raise_together(comm, reason)
    V = fem.functionspace(plain, plain.ufl_domain().ufl_coordinate_element())
    nodal = np.full((len(plain.geometry.x), dim), np.nan)
    nodal[:] = velocity[rows, :dim]
    surface = fem.Function(V)
    values = surface.x.array.reshape(-1, dim)
    values[V.dofmap.list] = nodal[geometry_dofmap(plain)]
    surface.x.scatter_forward()
    known = np.flatnonzero(~np.isnan(values).any(axis=1)).astype(np.int32)
    values[np.isnan(values)] = 0.0
    return elastic_extension(V, [fem.dirichletbc(surface, known)])
