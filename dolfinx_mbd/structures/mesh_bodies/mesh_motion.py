"""Motion of a mesh body in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from dolfinx import fem
from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.fields import locate
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.results.distributed_rows import DistributedRows

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["MeshMotion"]


@dataclass(frozen=True, eq=False)
class MeshMotion:
    """Motion of the nodes of a mesh body at nt times of a run; see `MeshBody.motion`.

    The reference positions of all nodes are `body.nodes`. On one rank the values are arrays. If
    several ranks share the mesh, each of them stores the values of its own nodes; an index such as
    ``motion.displacement[-1]`` gathers one time, and `np.asarray` all times. This access is
    collective.

    Attributes:
        body: The body.
        time: Times, shape (nt,), s.
        displacement: Displacements from the reference mesh, shape (nt, nodes, 3), m, in global
            components; they contain the rigid motion.
        velocity: Velocities, shape (nt, nodes, 3), m/s.
        acceleration: Accelerations, shape (nt, nodes, 3), m/s².

    Example:
        >>> motion = rod.motion(run)
        >>> motion.position([(0.5, 0.1, 0.1)]).shape
        (3, 1, 3)
    """

    body: MeshBody
    time: Array
    displacement: Any
    velocity: Any
    acceleration: Any

    __repr__ = short_repr

    def position(self, points: ArrayLike) -> Array:
        """Return the positions of material points over time.

        Args:
            points: Positions in the undeformed mesh, shape (points, 3), m.

        Returns:
            Positions in global components, shape (nt, points, 3), m.

        Raises:
            InputError: A point is not in the mesh.

        Note: Collective.
        """
        forces = self.body.forces
        expected = "positions in the undeformed mesh, shape (points, 3), m"
        numbers = checks.array("points", points, expected=expected)
        if numbers.shape[-1:] != (3,):
            checks.reject("points", points, expected)
        names = {str(k): point for k, point in enumerate(numbers.reshape(-1, 3))}
        x, cells, local = locate(forces.space.mesh, names)
        out = np.zeros((len(self.time), len(x), 3))
        function, embedding = fem.Function(forces.space), forces.embedding
        for k, row in enumerate(out):
            forces.nodes.displace_stored(function, self.stored(self.displacement, k))
            if len(local):
                u = function.eval(x[local], cells[local]).reshape(-1, embedding.dim)
                row[local] = embedding.displacements(x[local], u)
        comm = forces.comm
        return x + np.asarray(comm.bcast(comm.reduce(out, root=0), root=0))

    def function(self, instant: int, out: fem.Function | None = None) -> fem.Function:
        """Return the displacement at a time as a function on the mesh.

        The function of a plane body has two components, in the axes of its plane.

        Args:
            instant: Index of the time.
            out: Function to overwrite; by default a new one.

        Raises:
            InputError: The run has no such time.

        Note: Collective.
        """
        count = len(self.time)
        instant = checks.integer("instant", instant, low=-count, high=count - 1)
        checks.instance("out", out, (fem.Function, type(None)))
        space = self.body.forces.space
        result = fem.Function(space, name="displacement") if out is None else out
        stored = self.stored(self.displacement, range(count)[instant])
        self.body.forces.nodes.displace_stored(result, stored)
        return result

    def stored(self, values: Any, row: int) -> Array:
        """Return one of the attributes at a time for the nodes `body.forces.nodes.stored`, (n, 3).

        This is not collective.

        Args:
            values: `displacement`, `velocity` or `acceleration`.
            row: Index of the time.
        """
        if isinstance(values, DistributedRows):
            return values.stored(row)
        return np.asarray(values[row][self.body.forces.nodes.stored])
