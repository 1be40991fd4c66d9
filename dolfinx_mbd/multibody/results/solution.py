"""Results of a simulation: histories by name, sensors, energies, files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import choice
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.assembly.rates import consistent_rates
from dolfinx_mbd.multibody.model.joints import Driver, Joint
from dolfinx_mbd.multibody.model.protocol import Body
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.constraint_forces import (
    interface_wrenches,
    least_norm_history,
)
from dolfinx_mbd.multibody.results.histories import (
    BodyHistory,
    Energies,
    JointHistory,
    rotation_matrices,
)
from dolfinx_mbd.multibody.results.sensors import (
    SENSOR_QUANTITIES,
    fixed_axes,
    material_point,
    material_point_motion,
)
from dolfinx_mbd.multibody.results.solution_files import load_solution, save_solution, write_csv

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.stepping.integrators import Stepper

__all__ = ["Solution"]

Array = NDArray[np.float64]


class Solution:
    """A simulated motion: the histories of bodies, joints and drivers by name.

        run = mbd.simulate(system, t_end=0.04, dt=1e-5)
        run.body("piston 1").position  # (nt, 3), m
        run.joint("crank pin 1").force  # (nt, 3), N

    Attributes:
        system: The mechanism.
        time: Saved times, (nt,), s.
        q, v, a, lam, angles: As in `State`, one row per time.
        final_state: The last state, from which another simulation can start.
        complete: False if the run was interrupted.
        iterations: Number of Newton iterations.
        factorizations: Number of factorizations of the iteration matrix.
    """

    def __init__(
        self,
        system: SystemData,
        states: Sequence[State],
        *,
        complete: bool = True,
        iterations: int = 0,
        factorizations: int = 0,
    ) -> None:
        self.system = system
        self.final_state = states[-1]
        self.complete = complete
        self.iterations = iterations
        self.factorizations = factorizations
        self.time = np.array([state.time for state in states])
        self.q, self.v, self.a, self.lam, self.angles = (
            np.array([getattr(state, key) for state in states])
            for key in ("q", "v", "a", "lam", "angles")
        )

    @classmethod
    def from_states(
        cls, system: SystemData, states: Sequence[State], stepper: Stepper, *, complete: bool
    ) -> Solution:
        """Create a solution from the states of a run.

        Args:
            system: The mechanism.
            states: The saved states.
            stepper: The stepper that computed them.
            complete: Whether the run reached its end.
        """
        return cls(
            system,
            states,
            complete=complete,
            iterations=stepper.iterations,
            factorizations=stepper.factorizations,
        )

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        return (
            f"<Solution: {len(self)} times from {self.time[0]:g} to {self.time[-1]:g} s, "
            f"{'complete' if self.complete else 'interrupted'}, {self.iterations} Newton "
            f"iterations, {self.factorizations} factorizations>"
        )

    def names(self) -> list[str]:
        """Return the names of all bodies that move, all joints and all drivers."""
        return [body.name for body in self._moving()] + [item.name for item in self._joints()]

    def body(self, name: str) -> BodyHistory:
        """Return the history of a body.

        Args:
            name: Name of a body that can move.

        Raises:
            InputError: The name is unknown; the message lists the bodies.
        """
        choice("name of a body that can move", name, [body.name for body in self._moving()])
        return self._body(self.system.body_index(name))

    def joint(self, name: str) -> JointHistory:
        """Return the history of a joint or a driver.

        Args:
            name: Name of the joint or the driver.

        Raises:
            InputError: The name is unknown; the message lists the joints and drivers.
        """
        names = [item.name for item in self._joints()]
        return self._joint(names.index(choice("name of a joint or driver", name, names)), name)

    def _moving(self) -> list[Body]:
        return [body for body in self.system.bodies if body.num_velocities]

    def _joints(self) -> tuple[Joint | Driver, ...]:
        return (*self.system.joints, *self.system.drivers)

    def _body(self, k: int) -> BodyHistory:
        s = self.system
        motion = getattr(s.bodies[k], "motion", None)
        if motion is not None:
            return motion(self)  # type: ignore[no-any-return]
        q, v, a = self.q[:, s.q_slices[k]], self.v[:, s.v_slices[k]], self.a[:, s.v_slices[k]]
        return BodyHistory(
            name=s.bodies[k].name,
            time=self.time,
            position=q[:, :3],
            rotation=q[:, 3:7],
            velocity=v[:, :3],
            omega=v[:, 3:6],
            acceleration=a[:, :3],
            alpha=a[:, 3:6],
            eta=q[:, 7:],
            eta_rate=v[:, 6:],
            eta_acceleration=a[:, 6:],
            _wrenches=partial(self._interface_wrenches, k),
        )

    def _interface_wrenches(self, k: int) -> dict[str, Array]:
        """Return the wrenches at the frames of body k; see `BodyHistory`."""
        return interface_wrenches(self, *self._multipliers, k)

    def _joint(self, entry: int, name: str) -> JointHistory:
        s, lam = self._multipliers
        reactions = np.zeros((len(self), 6))
        rows = np.flatnonzero(s.row_entry == entry)
        reactions[:, s.row_motion[rows]] = -lam[:, rows]
        joint = entry if entry < len(s.joints) else int(s.driven_joints[entry - len(s.joints)])
        return JointHistory(
            name, self.time, reactions[:, :3], reactions[:, 3:], self.angles[:, joint]
        )

    def histories(self) -> dict[str, Array]:
        """Return `time` and all histories that are not empty by name, for example `rod.position`.

        The first axis of each array is that of `time`.
        """
        system, arrays = self.system, {"time": self.time}
        bodies = [body.name for body in system.bodies if body.num_velocities]
        joints = [joint.name for joint in system.joints] + [d.name for d in system.drivers]
        for name in (*bodies, *joints):
            item: object = self.body(name) if name in bodies else self.joint(name)
            for key, history in vars(item).items():
                if isinstance(history, np.ndarray) and key != "time" and history.size:
                    arrays[f"{name}.{key}"] = history
        return arrays

    @cached_property
    def _multipliers(self) -> tuple[SystemData, Array]:
        """Constraints whose forces are reported, and their multipliers, shape (nt, nc)."""
        if self.system.least_norm:
            return self.system.whole, least_norm_history(self)
        return self.system, self.lam

    def projected(self) -> Solution:
        """Return a solution whose velocities, accelerations and multipliers fulfil the constraints.

        The positions are the same. The integrator fulfils the constraints in the positions, and
        their derivatives up to an error of order dt².
        """
        states = [
            consistent_rates(self.system, State(float(t), *values))
            for t, *values in zip(
                self.time, self.q, self.v, self.a, self.lam, self.angles, strict=True
            )
        ]
        return Solution(
            self.system,
            states,
            complete=self.complete,
            iterations=self.iterations,
            factorizations=self.factorizations,
        )

    # ---- files ----------------------------------------------------------------------------------
    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file and return its path.

        The file does not contain the system, which `load` needs again. Under MPI every rank may
        call this method.

        Args:
            path: Path of the file.

        Raises:
            OSError: The file cannot be written; an existing file remains unchanged.
        """
        return save_solution(self, path)

    @classmethod
    def load(cls, path: str | Path, system: SystemData) -> Solution:
        """Read a solution that `save` wrote.

        The system is compared with that of the file, except for functions of loads and drivers.

        Args:
            path: Path of the file.
            system: The mechanism, built as it was.

        Raises:
            RunFileError: The file is not a solution, damaged, of a newer version, or of another
                system.
            OSError: The file cannot be read.
        """
        return load_solution(cls, path, system)

    def to_csv(self, path: str | Path, names: Sequence[str] | None = None) -> Path:
        """Write histories as comma-separated values and return the path of the file.

        The file has one line per time. The first line names the columns with their units, for
        example ``rod.position.x [m]``.

        Args:
            path: Path of the file.
            names: Bodies, joints and drivers to write; None: all.

        Raises:
            InputError: A name is unknown.
            OSError: The file cannot be written; an existing file remains unchanged.
        """
        return write_csv(self, path, names)

    # ---- derived quantities ---------------------------------------------------------------------
    def energies(self) -> Energies:
        """Return the kinetic, elastic and gravitational energy over time.

        The elastic energy includes that of springs and bushings.
        """
        s, parts = self.system, self._body_energies(slice(None))
        if any(hasattr(load, "energy") for load in s.loads):
            at = Assembler(s)
            for k, t in enumerate(self.time):
                at.q[:], at.angles[:] = self.q[k], self.angles[k]
                at.update_poses(float(t))
                parts[k, 1] += at.stored_energy()
        return Energies(self.time, *parts.T)

    def _body_energies(self, rows: slice | NDArray[np.integer]) -> Array:
        """Return the energies of all bodies at some of the times, shape (n, 3)."""
        s = self.system
        parts = np.zeros((len(self.time[rows]), 3))
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            states = zip(self.q[rows, qs], self.v[rows, vs], strict=True)
            parts += [body.energies(q, v, s.gravity) for q, v in states]
        return parts

    def momenta(self) -> Array:
        """Return the momentum and the angular momentum about the origin over time.

        Returns:
            Shape (nt, 6), kg m/s and kg m²/s.
        """
        s = self.system
        total = np.zeros((len(self), 6))
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            total += [body.momenta(q, v) for q, v in zip(self.q[:, qs], self.v[:, vs], strict=True)]
        return total

    def constraint_violation(self) -> Array:
        """Return the greatest violation of any constraint, shape (nt,), m or rad.

        It includes the redundant constraints that were left out.
        """
        at = Assembler(self.system.whole)
        worst = np.zeros(len(self))
        for k, t in enumerate(self.time):
            at.q[:] = self.q[k]
            worst[k] = np.abs(at.constraints(float(t))).max(initial=0.0)
        return worst

    def sensor(
        self,
        body: str,
        point: str | ArrayLike = (0.0, 0.0, 0.0),
        quantity: Literal["position", "velocity", "acceleration"] = "position",
        *,
        axes: str | ArrayLike = "global",
    ) -> Array:
        """Return the position, velocity or acceleration of a material point over time, (nt, 3).

        Args:
            body: Name of the body.
            point: Reference position of the point in the body frame (3,), m, or the name of a
                frame, an interface or a named point. On a flexible body a position must be a node
                of its skin.
            quantity: ``position``, ``velocity`` or ``acceleration``, relative to the ground.
            axes: ``global``, ``body`` (the frame of the body), the name of another body, or a fixed
                3×3 rotation whose columns are the axes.

        Raises:
            InputError: Body, point, quantity or axes are unknown.
        """
        choice("quantity", quantity, SENSOR_QUANTITIES)
        k = self.system.body_index(body)
        x, modes = material_point(self.system.bodies[k], point)
        value = material_point_motion(self._body(k), x, modes, quantity)
        if not isinstance(axes, str):
            return value @ fixed_axes(axes)
        if axes == "global":
            return value
        A = rotation_matrices(self.body(body if axes == "body" else axes).rotation)
        return np.einsum("tji,tj->ti", A, value)
