"""Recording of a transient: motions of points and interfaces, and fields at chosen times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import scipy
from dolfinx import fem
from dolfinx.la import InsertMode
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import integer, object_with
from dolfinx_mbd.fem.assembly import ElasticProblem, in_space, scalar_space
from dolfinx_mbd.fem.field_files import write_history
from dolfinx_mbd.fem.fields import as_function, locate
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES
from dolfinx_mbd.structures.prescribed_motion.supports import interface_rows
from dolfinx_mbd.structures.prescribed_motion.time_stepping import MotionState, MotionStepper


class _ReadOnly:
    """Base of results whose arrays cannot be changed."""

    def __post_init__(self) -> None:
        for values in vars(self).values():
            values.flags.writeable = False


@dataclass(frozen=True, eq=False)
class PointHistory(_ReadOnly):
    """Elastic motion of a point or an interface relative to the frame, in body components."""

    displacement: Array  # shape (nt, 3), m; for an interface (nt, 6), m and rad
    velocity: Array
    acceleration: Array


@dataclass(frozen=True, eq=False)
class FieldHistory(_ReadOnly):
    """Whole fields at the requested times, on this rank."""

    time: Array  # shape (nf,), s
    displacement: Array  # shape (owned dofs, nf), m
    velocity: Array  # relative to the frame, m/s


@dataclass(frozen=True, eq=False)
class Transient:
    """Result of `transient`.

    Example:
        >>> run.time.shape, run.interfaces["right"].displacement.shape
        ((6,), (6, 6))
    """

    time: Array  # recorded times, shape (nt,), s
    points: Mapping[str, PointHistory]
    interfaces: Mapping[str, PointHistory]
    fields: FieldHistory
    space: fem.FunctionSpace  # space of the displacements
    positions: Array  # of the owned nodes in the undeformed body, shape (owned nodes, dim), m
    num_dofs: int  # number of degrees of freedom of all ranks
    num_steps: int
    num_solves: int  # number of solves with the factorized constant matrix in all steps
    most_solves: int  # largest number of these solves in a step

    __repr__ = short_repr

    def displacement(self, k: int, out: fem.Function | None = None) -> fem.Function:
        """Return the k-th field as a function, m.

        Args:
            k: Zero-based index of the field.
            out: Function that is overwritten. By default a new function.

        Note: Collective.
        """
        k = integer("k", k, low=0, high=self.fields.displacement.shape[1] - 1)
        return as_function(self.space, self.fields.displacement[:, k], out)

    def write(self, path: str | Path, history: Any = None, *, scale: float = 1.0) -> None:
        """Write all fields to a file for ParaView, in parallel; see `Reduction.write`.

        Args:
            path: Path that ends with ``.bp`` or ``.pvd``.
            history: Motion of the frame, for example ``run.body("rod 1")``, whose nearest recorded
                times are used. By default only the elastic displacement is written.
            scale: Factor that multiplies the elastic part of `displacement`.

        Note: Collective.
        """
        count = len(self.fields.time)
        position, rotation = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        if history is not None:
            object_with("history", history, "time", "position", "rotation")
            recorded = np.asarray(history.time)
            rows = [int(np.argmin(np.abs(recorded - t))) for t in self.fields.time]
            position, rotation = history.position[rows], history.rotation[rows]
        eta, time = np.eye(count), self.fields.time  # each field is written as a mode
        fields = SimpleNamespace(time=time, eta=eta, position=position, rotation=rotation)
        write_history(
            self.space,
            self.fields.displacement,
            self.positions,
            path,
            cast(Any, fields),
            stride=1,
            motion="body" if history is None else "global",
            scale=scale,
        )


class Observer:
    """Recorder of states, to be called after each step.

    It records the motion of `points` and `interfaces` at every n-th step and at the first and last
    step. It records whole fields at the steps `field_steps`.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        points: Mapping[str, ArrayLike],
        field_steps: list[int],
    ) -> None:
        self.problem, self.points, self.interfaces = problem, tuple(points), interfaces
        self._field_steps = field_steps
        unit = scipy.sparse.identity(problem.num_owned, format="csr")
        rows = [
            scipy.sparse.csr_matrix(interface_rows(problem, i).T) @ unit[i.dofs] for i in interfaces
        ]
        at_points = scipy.sparse.kron(_point_weights(problem, points), np.eye(problem.dim))
        self._rows = scipy.sparse.vstack([at_points, *rows], format="csr")
        self._time: list[float] = []
        self._values: list[Array] = []
        self._fields: list[tuple[float, Array, Array]] = []

    def __call__(self, k: int, state: MotionState, steps: int, stride: int) -> None:
        """Record step k of `steps`."""
        if k % stride == 0 or k in (0, steps):
            self._time.append(state.time)
            local = self._rows @ np.column_stack([state.u, state.v, state.a])
            self._values.append(self.problem.comm.allreduce(local))
        if k in self._field_steps:
            self._fields.append((state.time, state.u.copy(), state.v.copy()))

    def result(self, stepper: MotionStepper) -> Transient:
        """Return the recorded results."""
        problem, values = self.problem, np.moveaxis(np.array(self._values), 2, 0)
        dim, count = problem.dim, len(self.points)
        shape = values.shape[:2]  # derivatives and times
        point_motions = in_space(values[..., : dim * count].reshape(*shape, count, dim))
        interface_motions = np.zeros((*shape, len(self.interfaces), 6))
        interface_motions[..., WRENCH_INDICES[dim]] = values[..., dim * count :].reshape(
            *shape, -1, problem.num_rigid
        )
        time, *fields = ([part[k] for part in self._fields] for k in range(3))
        u, v = (np.array(field).reshape(len(field), problem.num_owned).T for field in fields)
        names = [i.name for i in self.interfaces]
        return Transient(
            time=np.array(self._time),
            points={
                name: PointHistory(*point_motions[:, :, k]) for k, name in enumerate(self.points)
            },
            interfaces={
                name: PointHistory(*interface_motions[:, :, k]) for k, name in enumerate(names)
            },
            fields=FieldHistory(np.array(time), u, v),
            space=problem.space,
            positions=problem.positions,
            num_dofs=problem.num_dofs,
            num_steps=stepper.steps,
            num_solves=stepper.solves,
            most_solves=stepper.most_solves,
        )


def _point_weights(
    problem: ElasticProblem, points: Mapping[str, ArrayLike]
) -> scipy.sparse.csr_matrix:
    """Return the values of the shape functions at points, shape (points, owned blocks).

    The product of the weights and the blocks of u, summed over all ranks, is u at the points.
    """
    V = problem.space
    weights = np.zeros((len(points), V.dofmap.index_map.size_local))
    if not points:
        return scipy.sparse.csr_matrix(weights)
    W = scalar_space(V)
    shape, values = fem.Function(W), fem.Function(W)
    x, cells, local = locate(V.mesh, points)
    for k in range(len(points)):
        values.x.array[:] = 0.0
        for dof in W.dofmap.cell_dofs(int(cells[k])) if k in local else ():
            shape.x.array[:] = 0.0
            shape.x.array[dof] = 1.0
            values.x.array[dof] = np.ravel(shape.eval(x[k : k + 1], cells[k : k + 1]))[0]
        values.x.scatter_reverse(InsertMode.add)
        weights[k] = values.x.array[: weights.shape[1]]
    return scipy.sparse.csr_matrix(weights)
