"""What a simulation gives back: histories by name, sensors, energies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import choice
from dolfinx_mbd.multibody.assembly.assembler import Assembler, extent
from dolfinx_mbd.multibody.assembly.rates import consistent_rates
from dolfinx_mbd.multibody.assembly.redundancy import least_norm_multipliers
from dolfinx_mbd.multibody.model.joints import Driver, Joint
from dolfinx_mbd.multibody.model.protocol import Body
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.histories import (
    BodyHistory,
    Energies,
    JointHistory,
    rotation_matrices,
)
from dolfinx_mbd.multibody.results.sensors import (
    QUANTITIES,
    fixed_axes,
    material_point,
    point_motion,
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
        """Gather the states of a run."""
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
            _wrenches=partial(self._interface_wrenches, k, np.array(q[:, 3:7])),
        )

    def _interface_wrenches(self, k: int, rotation: Array) -> dict[str, Array]:
        """Return the wrenches at the frames of body k; see `BodyHistory`."""
        system, lam = self.system, self.lam
        if system.least_norm:
            system, lam = system.whole, self._least_norm
        frames = system.frame_slices[k]
        at = Assembler(system)
        wrenches = np.zeros((len(self), frames.stop - frames.start, 2, 3))
        for row, t in enumerate(self.time):
            at.q[:], at.v[:], at.a[:] = self.q[row], self.v[row], self.a[row]
            at.lam[:], at.angles[:] = lam[row], self.angles[row]
            at.residual(float(t))
            wrenches[row] = at.wrenches[frames].reshape(-1, 2, 3)
        turned = np.einsum("tji,tfpj->tfpi", rotation_matrices(rotation), wrenches)
        names = system.bodies[k].frame_names
        return {name: turned[:, f].reshape(len(self), 6) for f, name in enumerate(names)}

    def _joint(self, entry: int, name: str) -> JointHistory:
        s, lam = self.system, self.lam
        if s.least_norm:
            s, lam = s.whole, self._least_norm
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
        arrays = {"time": self.time}
        for name in self.names():
            for key, history in vars(self[name]).items():
                if isinstance(history, np.ndarray) and key != "time" and history.size:
                    arrays[f"{name}.{key}"] = history
        return arrays

    def projected(self) -> Solution:
        """The same positions with velocities, accelerations and multipliers that fulfil the
        constraints exactly.

        The integrator meets the constraints in the positions; their derivatives it meets to order
        dt².
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

    @cached_property
    def _least_norm(self) -> Array:
        """Multipliers of all rows, those left out included, with the least norm, (nt, nc)."""
        at, part = Assembler(self.system.whole), Assembler(self.system)
        lam = np.zeros((len(self), self.system.whole.num_constraints))
        for k, t in enumerate(self.time):
            at.q[:] = part.q[:] = self.q[k]
            at.update_poses(float(t))
            part.update_poses(float(t))
            jacobians = at.jacobians()
            matrices = at.constraint_matrix(jacobians), part.constraint_matrix(jacobians)
            lam[k] = least_norm_multipliers(self.system.whole, *matrices, self.lam[k], extent(at))
        return lam

    # ---- files ----------------------------------------------------------------------------------
    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file and return its path; all of it or nothing.

        The system itself is not in the file: :meth:`load` wants it again.  Under MPI every rank may
        call this.

        Raises:
            OSError: If the file cannot be written; one that was there before is as it was.
        """
        return save_solution(self, path)

    @classmethod
    def load(cls, path: str | Path, system: SystemData) -> Solution:
        """Read a solution that :meth:`save` wrote, with the system that it belongs to.

        Functions of loads and drivers are not compared; bodies, joints and numbers are.

        Raises:
            RunFileError: If the file is none, damaged, of a newer version, or of another system.
            OSError: If it cannot be read.
        """
        return load_solution(cls, path, system)

    def to_csv(self, path: str | Path, names: Sequence[str] | None = None) -> Path:
        """Write histories as comma-separated values, a line for each time, and return the path.

        The first line names the columns with their units, for instance ``rod.position.x [m]``.

        Args:
            path: Of the file.
            names: Bodies, joints and drivers to write; None: all.

        Raises:
            ValueError: If a name is unknown.
            OSError: If the file cannot be written; one that was there before is as it was.
        """
        return write_csv(self, path, names)

    # ---- derived quantities ---------------------------------------------------------------------
    def energies(self) -> Energies:
        """Kinetic, elastic (with that of springs and bushings) and gravitational energy over
        time."""
        s, parts = self.system, self._body_energies(slice(None))
        if any(hasattr(load, "energy") for load in s.loads):
            at = Assembler(s)
            for k, t in enumerate(self.time):
                at.q[:], at.angles[:] = self.q[k], self.angles[k]
                at.update_poses(float(t))
                parts[k, 1] += at.stored_energy()
        return Energies(self.time, *parts.T)

    def _body_energies(self, rows: slice | NDArray[np.integer]) -> Array:
        """Kinetic, elastic and gravitational energy of all bodies at some of the times, (n, 3)."""
        s = self.system
        parts = np.zeros((len(self.time[rows]), 3))
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            states = zip(self.q[rows, qs], self.v[rows, vs], strict=True)
            parts += [body.energies(q, v, s.gravity) for q, v in states]
        return parts

    def momenta(self) -> Array:
        """Linear and angular momentum (about the origin), (nt, 6), kg m/s and kg m²/s."""
        s = self.system
        total = np.zeros((len(self), 6))
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            total += [body.momenta(q, v) for q, v in zip(self.q[:, qs], self.v[:, vs], strict=True)]
        return total

    def constraint_violation(self) -> Array:
        """Greatest violation of any constraint, also of those left out, (nt,), m or rad."""
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
            point: Its reference position in the body frame (3,), m, or the name of a frame, an
                interface or a named point.  On a flexible body a position must be a node of its
                skin.
            quantity: What to measure; the values are absolute, not relative to a body.
            axes: ``global``, ``body`` (the body's own frame), another body's name, or a fixed 3×3
                rotation whose columns are the axes.

        Raises:
            ValueError: If body, point, quantity or axes are unknown.
        """
        choice("quantity", quantity, QUANTITIES)
        k = self.system.body_index(body)
        x, modes = material_point(self.system.bodies[k], point)
        value = point_motion(self._body(k), x, modes, quantity)
        if not isinstance(axes, str):
            return value @ fixed_axes(axes)
        if axes == "global":
            return value
        A = rotation_matrices(self.body(body if axes == "body" else axes).rotation)
        return np.einsum("tji,tj->ti", A, value)
