"""What is kept of a transient: motions of points and interfaces, whole fields at chosen times."""

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
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import integer, refuse
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.fem.assembly import ElasticProblem, in_space
from dolfinx_mbd.fem.fields import as_function, locate, write_history
from dolfinx_mbd.prescribed_motion.supports import interface_rows
from dolfinx_mbd.prescribed_motion.time_stepping import MotionState, MotionStepper
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES

__all__ = ["FieldHistory", "Observer", "PointHistory", "Transient", "point_weights"]

Array = NDArray[np.float64]


def _make_read_only(*arrays: Array) -> None:
    for array in arrays:
        array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class PointHistory:
    """Elastic motion at a point, or of an interface, body components.

    Attributes:
        displacement: Shape (nt, 3), m; of an interface (nt, 6), m and rad.
        velocity: Its rate in the frame.
        acceleration: Its second rate in the frame.
    """

    displacement: Array
    velocity: Array
    acceleration: Array

    def __post_init__(self) -> None:
        _make_read_only(self.displacement, self.velocity, self.acceleration)


@dataclass(frozen=True, eq=False)
class FieldHistory:
    """Whole fields at the times that were asked for, on this rank.

    Attributes:
        time: Shape (nf,), s.
        displacement: Shape (owned dofs, nf), m.
        velocity: In the frame, shape (owned dofs, nf), m/s.
    """

    time: Array
    displacement: Array
    velocity: Array

    def __post_init__(self) -> None:
        _make_read_only(self.time, self.displacement, self.velocity)


@dataclass(frozen=True, eq=False)
class Transient:
    """What `transient` found.

    Attributes:
        time: Observed times, shape (nt,), s.
        points: Elastic motion at named points.
        interfaces: Elastic motion of the interfaces.
        fields: Whole fields.
        space: The displacement space.
        positions: x at the owned blocks, m.
        num_dofs: Displacement degrees of freedom of all ranks.
        num_steps: Steps taken.
        num_solves: Solves with the constant factor in all steps.
        most_solves: Solves in any one step.
    """

    time: Array
    points: Mapping[str, PointHistory]
    interfaces: Mapping[str, PointHistory]
    fields: FieldHistory
    space: fem.FunctionSpace
    positions: Array
    num_dofs: int
    num_steps: int
    num_solves: int
    most_solves: int

    def displacement(self, k: int, out: fem.Function | None = None) -> fem.Function:
        """The k-th field as a function, m.

        Note: Collective.
        """
        k = integer("k", k, low=0, high=self.fields.displacement.shape[1] - 1)
        return as_function(self.space, self.fields.displacement[:, k], out)

    def write(
        self,
        path: str | Path,
        history: Any = None,
        *,
        scale: float = 1.0,
    ) -> None:
        """Write the fields as VTX for ParaView, in parallel; see `Reduction.write`.

        Args:
            path: A name that ends in ``.bp``.
            history: Motion of the frame, as of ``run.body("rod 1")``, whose nearest recorded times
                are taken; None: the elastic displacement only.
            scale: Factor of the elastic part in `displacement`.

        Note: Collective.
        """
        count = len(self.fields.time)
        position, rotation = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        if history is not None:
            for name in ("time", "position", "rotation"):
                if not hasattr(history, name):
                    refuse("history", history, f"a motion with {name}", InputTypeError)
            recorded = np.asarray(history.time)
            rows = [int(np.argmin(np.abs(recorded - t))) for t in self.fields.time]
            position, rotation = history.position[rows], history.rotation[rows]
        shown = SimpleNamespace(
            time=self.fields.time, eta=np.eye(count), position=position, rotation=rotation
        )
        write_history(
            self.space,
            self.fields.displacement,
            self.positions,
            path,
            cast(Any, shown),
            motion="body" if history is None else "global",
            scale=scale,
        )


class Observer:
    """Keeps what was asked for: ``observer(k, state, steps, every)`` after step k.

    Args:
        problem: Layout and positions.
        interfaces: Whose motion is kept.
        points: Material points by name, m.
        wanted: Steps at which whole fields are kept.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        points: Mapping[str, ArrayLike],
        wanted: list[int],
    ) -> None:
        self.problem, self.names = problem, tuple(points)
        self.interfaces, self.wanted = interfaces, wanted
        self._weights = point_weights(problem, points)
        self._rows = [(i.dofs, interface_rows(problem, i)) for i in interfaces]
        self._time: list[float] = []
        self._values: list[Array] = []
        self._fields: list[tuple[float, Array, Array]] = []

    def __call__(self, k: int, state: MotionState, steps: int, stride: int) -> None:
        if k % stride == 0 or k in (0, steps):
            self._time.append(state.time)
            self._values.append(self._observed(state))
        if k in self.wanted:
            self._fields.append((state.time, state.u.copy(), state.v.copy()))

    def _observed(self, state: MotionState) -> Array:
        """Displacement, velocity, acceleration (3, values) at all points, of all interfaces."""
        dim = self.problem.dim
        local = [
            np.concatenate(
                [(self._weights @ x.reshape(-1, dim)).ravel()]
                + [x[dofs] @ rows for dofs, rows in self._rows]
            )
            for x in (state.u, state.v, state.a)
        ]
        total: Array = self.problem.comm.allreduce(np.array(local))
        return total

    def result(self, stepper: MotionStepper) -> Transient:
        problem, values = self.problem, np.array(self._values)
        dim, per, count = problem.dim, problem.num_rigid, len(self.names)
        at = in_space(values[:, :, : dim * count].reshape(len(values), 3, count, dim))
        points = {
            name: PointHistory(*at[:, :, k].swapaxes(0, 1)) for k, name in enumerate(self.names)
        }
        moved = np.zeros((len(values), 3, len(self.interfaces), 6))
        moved[..., WRENCH_INDICES[dim]] = values[:, :, dim * count :].reshape(
            len(values), 3, -1, per
        )
        interfaces = {
            i.name: PointHistory(*moved[:, :, k].swapaxes(0, 1))
            for k, i in enumerate(self.interfaces)
        }
        fields = FieldHistory(
            np.array([t for t, *_ in self._fields]),
            *(
                np.array([part[n] for part in self._fields]).reshape(-1, problem.num_owned).T
                for n in (1, 2)
            ),
        )
        return Transient(
            time=np.array(self._time),
            points=points,
            interfaces=interfaces,
            fields=fields,
            space=problem.space,
            positions=problem.positions,
            num_dofs=problem.num_dofs,
            num_steps=stepper.steps,
            num_solves=stepper.solves,
            most_solves=stepper.most_solves,
        )


def point_weights(
    problem: ElasticProblem, points: Mapping[str, ArrayLike]
) -> scipy.sparse.csr_matrix:
    """Values of the shape functions at points, (points, owned blocks): summed over ranks, weights
    times the blocks of u are u there.

    Raises:
        ValueError: A point is not in the mesh; the same error on every rank.

    Note: Collective.
    """
    V = problem.space
    W = fem.functionspace(V.mesh, V.ufl_element().sub_elements[0])
    shape, sums = fem.Function(W), fem.Function(W)
    owned = V.dofmap.index_map.size_local
    weights = np.zeros((len(points), owned))
    if not points:
        return scipy.sparse.csr_matrix(weights)
    x, cells, mine = locate(V.mesh, points)
    for k in range(len(points)):
        sums.x.array[:] = 0.0
        if k in mine:
            for dof in W.dofmap.cell_dofs(int(cells[k])):
                shape.x.array[:] = 0.0
                shape.x.array[dof] = 1.0
                value = shape.eval(x[k : k + 1], cells[k : k + 1])
                sums.x.array[dof] = float(np.ravel(value)[0])
        sums.x.scatter_reverse(InsertMode.add)
        weights[k] = sums.x.array[:owned]
    return scipy.sparse.csr_matrix(weights)
