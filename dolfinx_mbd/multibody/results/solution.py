"""Solutions of simulations: histories by name, sensors, energies and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.archive import damage_as, read_archive
from dolfinx_mbd.checks import choice, instance
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.html import HtmlView
from dolfinx_mbd.multibody.assembly.assembler import Assembler, extent
from dolfinx_mbd.multibody.assembly.rates import consistent_rates
from dolfinx_mbd.multibody.assembly.redundancy import least_norm_multipliers
from dolfinx_mbd.multibody.files.run_files import (
    HISTORY,
    check_system,
    held_rows,
    run_kind,
    state_arrays,
    state_from,
    states_from,
    system_rows,
    write_run,
    write_table,
)
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.histories import (
    BodyHistory,
    Energies,
    JointHistory,
    fixed_axes,
    material_point,
    material_point_motion,
    rotation_matrices,
)

Array = NDArray[np.float64]

_KIND = run_kind("solution")
_COLUMNS = {
    "position": ("m", "xyz"),
    "rotation": ("1", "wxyz"),
    "velocity": ("m/s", "xyz"),
    "omega": ("rad/s", "xyz"),
    "acceleration": ("m/s²", "xyz"),
    "alpha": ("rad/s²", "xyz"),
    "eta": ("SI", ""),
    "eta_rate": ("SI/s", ""),
    "eta_acceleration": ("SI/s²", ""),
    "force": ("N", "xyz"),
    "moment": ("N m", "xyz"),
}
"""Units and component names of the columns of tables; columns without names are numbered."""


class Solution(HtmlView):
    """Results of a simulation: the histories of bodies, joints and drivers by name.

    Args:
        system: The mechanism.
        states: States at increasing times.
        complete: Whether the run reached its end.
        iterations: Number of Newton iterations.
        factorizations: Number of factorizations of the iteration matrix.

    Attributes:
        time: Saved times, (nt,), s.
        q, v, a, lam, angles: As in `State`, one row per time.
        final_state: The last state, from which another simulation can start.

    Example:
        >>> run.body("bob").position.shape  # m
        (501, 3)
        >>> run.joint("pin").force.shape  # N
        (501, 3)
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
        self.complete, self.iterations = complete, iterations
        self.factorizations = factorizations
        self.time, self.q, self.v, self.a, self.lam, self.angles = (
            np.array([getattr(state, key) for state in states]) for key in HISTORY
        )

    def __len__(self) -> int:
        return len(self.time)

    def _html_rows(self) -> list[tuple[str, str]]:
        times = f"{self.time[0]:g} to {self.time[-1]:g} s, {len(self)} saved"
        return [
            ("run", "complete" if self.complete else "interrupted"),
            ("times", times),
            ("bodies, joints and drivers", ", ".join(self.names())),
        ]

    def __repr__(self) -> str:
        return (
            f"<Solution: {len(self)} times from {self.time[0]:g} to {self.time[-1]:g} s, "
            f"{'complete' if self.complete else 'interrupted'}, {self.iterations} Newton "
            f"iterations, {self.factorizations} factorizations>"
        )

    def _states(self) -> Iterator[State]:
        rows = zip(self.time, self.q, self.v, self.a, self.lam, self.angles, strict=True)
        return (State(float(t), *row) for t, *row in rows)

    # ---- histories by name ----------------------------------------------------------------------
    def names(self) -> list[str]:
        """Return the names of all bodies that move, all joints and all drivers."""
        return [*self._bodies, *self._joints]

    @property
    def _bodies(self) -> list[str]:
        return [body.name for body in self.system.bodies if body.num_velocities]

    @property
    def _joints(self) -> list[str]:
        return [joint.name for joint in self.system.joints] + [d.name for d in self.system.drivers]

    def body(self, name: str) -> BodyHistory:
        """Return the history of a body.

        Args:
            name: Name of a body that can move.

        Raises:
            InputError: The name is unknown; the message lists the bodies.
        """
        choice("name of a body that can move", name, self._bodies)
        return self._body(self.system.body_index(name))

    def joint(self, name: str) -> JointHistory:
        """Return the history of a joint or a driver.

        Args:
            name: Name of the joint or the driver.

        Raises:
            InputError: The name is unknown; the message lists the joints and drivers.
        """
        choice("name of a joint or driver", name, self._joints)
        entry = self._joints.index(name)
        s, lam = self._multipliers
        reactions = np.zeros((len(self), 6))
        rows = np.flatnonzero(s.row_entry == entry)
        reactions[:, s.row_motion[rows]] = -lam[:, rows]
        joint = entry if entry < len(s.joints) else int(s.driven_joints[entry - len(s.joints)])
        forces = reactions[:, :3], reactions[:, 3:]
        return JointHistory(name, self.time, *forces, self.angles[:, joint])

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
        system, multipliers = self._multipliers
        at, frames, names = Assembler(system), system.frame_slices[k], system.bodies[k].frame_names
        wrenches = np.zeros((len(self), len(names), 2, 3))
        for row, state in enumerate(self._states()):
            at.put(replace(state, lam=multipliers[row]))
            at.residual(state.time)
            wrenches[row] = at.wrenches[frames].reshape(-1, 2, 3)
        A = rotation_matrices(self.q[:, system.q_slices[k]][:, 3:7])
        rotated = np.einsum("tji,tfpj->ftpi", A, wrenches).reshape(len(names), len(self), 6)
        return dict(zip(names, rotated, strict=True))

    @cached_property
    def _multipliers(self) -> tuple[SystemData, Array]:
        """System whose constraint forces are reported, and its multipliers, shape (nt, nc)."""
        if not self.system.least_norm:
            return self.system, self.lam
        whole, held = self.system.whole, held_rows(self.system)
        at, multipliers = Assembler(whole), np.zeros((len(self), len(held)))
        for k, state in enumerate(self._states()):
            at.q[:] = state.q
            at.update_poses(state.time)
            B = at.constraint_matrix(at.jacobians())
            multipliers[k] = least_norm_multipliers(whole, B, B[held], state.lam, extent(at))
        return whole, multipliers

    def _named_arrays(self, names: Sequence[str]) -> Iterator[tuple[str, str, Array]]:
        """Yield the item name, key and array of each history that is not empty."""
        for name in names:
            item: object = self.body(name) if name in self._bodies else self.joint(name)
            for key, values in vars(item).items():
                if isinstance(values, np.ndarray) and key != "time" and values.size:
                    yield name, key, values

    def histories(self) -> dict[str, Array]:
        """Return `time` and all histories that are not empty by name, for example `rod.position`.

        The first axis of each array corresponds to `time`.
        """
        arrays = {f"{name}.{key}": values for name, key, values in self._named_arrays(self.names())}
        return {"time": self.time, **arrays}

    def projected(self) -> Solution:
        """Return a solution whose velocities, accelerations and multipliers obey the constraints.

        The positions are unchanged. The integrator satisfies the constraints for the positions, and
        their time derivatives up to an error of order dt².
        """
        states = [consistent_rates(self.system, state) for state in self._states()]
        return Solution(self.system, states, **self._facts())

    # ---- files ----------------------------------------------------------------------------------
    def _facts(self) -> dict[str, Any]:
        keys = ("complete", "iterations", "factorizations")
        return {key: getattr(self, key) for key in keys}

    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file and return its path.

        The file does not contain the system, which `load` needs again. Under MPI every rank may
        call this method.

        Args:
            path: Path of the file.

        Raises:
            OSError: The file cannot be written; an existing file remains unchanged.

        Example:
            >>> path = run.save("pendulum.npz")
            >>> len(mbd.Solution.load(path, pendulum))
            501
        """
        header = {**system_rows(self.system), "units": "SI: m, kg, s, rad", **self._facts()}
        arrays = {key: getattr(self, key) for key in HISTORY}
        return write_run(path, _KIND, header, arrays | state_arrays("final", self.final_state))

    @classmethod
    def load(cls, path: str | Path, system: SystemData) -> Solution:
        """Read a solution that `save` wrote.

        `system` is compared with the description in the file; the code of functions is not.

        Args:
            path: Path of the file.
            system: The mechanism, built in the same way.

        Raises:
            RunFileError: The file is not a solution, is damaged, was written by a newer version, or
                belongs to another system.
            OSError: The file cannot be read.
        """
        instance("system", system, SystemData)
        header, arrays = read_archive(path, _KIND)
        with damage_as(_KIND, path):
            system = check_system(path, header, arrays, system)
            states = states_from(arrays)
            states[-1] = state_from("final", arrays)
            counts = {key: int(header[key]) for key in ("iterations", "factorizations")}
            return cls(system, states, complete=bool(header["complete"]), **counts)

    def to_csv(self, path: str | Path, names: Sequence[str] | None = None) -> Path:
        """Write histories as comma-separated values and return the path of the file.

        The file has one line per time. The first line names the columns with their units, for
        example ``rod.position.x [m]``.

        Args:
            path: Path of the file; missing directories are created.
            names: Names of the bodies, joints and drivers to write; by default all.

        Raises:
            InputError: A name is unknown.
            OSError: The file cannot be written; an existing file remains unchanged.

        Example:
            >>> path = run.to_csv("pin.csv", names=["pin"])
            >>> path.read_text().splitlines()[0].split(",")[:2]
            ['time [s]', 'pin.force.x [N]']
        """
        known = self.names()
        names = known if names is None else checked_names("names", names)
        for name in names:
            choice("every entry of names", name, known)
        columns = {"time [s]": self.time}
        for name, key, values in self._named_arrays(names):
            if key == "rotation" and values.ndim == 1:
                columns[f"{name}.{key} [rad]"] = values
            elif key in _COLUMNS:
                unit, axes = _COLUMNS[key]
                table = values.reshape(len(self), -1).T
                labels = axes if len(axes) == len(table) else range(1, len(table) + 1)
                for label, column in zip(labels, table, strict=True):
                    columns[f"{name}.{key}.{label} [{unit}]"] = column
        return write_table(path, list(columns), np.column_stack(list(columns.values())))

    # ---- derived quantities ---------------------------------------------------------------------
    def energies(self) -> Energies:
        """Return the kinetic, elastic and gravitational energy over time.

        The elastic energy includes the energy of springs and bushings.
        """
        s, parts = self.system, self._body_energies(slice(None))
        if any(hasattr(load, "energy") for load in s.loads):
            at = Assembler(s)
            for k, state in enumerate(self._states()):
                at.put(state)
                at.update_poses(state.time)
                parts[k, 1] += at.stored_energy()
        return Energies(self.time, *parts.T)

    def _body_energies(self, rows: slice | NDArray[np.integer]) -> Array:
        """Return the kinetic, elastic and gravitational energy at the given rows, (n, 3), J."""
        s = self.system
        parts = np.zeros((len(self.time[rows]), 3))
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            states = zip(self.q[rows, qs], self.v[rows, vs], strict=True)
            parts += [body.energies(q, v, s.gravity) for q, v in states]
        return parts

    def momenta(self) -> Array:
        """Return the momentum and the angular momentum about the global origin over time.

        Returns:
            Shape (nt, 6), kg m/s and kg m²/s.
        """
        s = self.system
        total = np.zeros((len(self), 6))
        for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
            total += [body.momenta(q, v) for q, v in zip(self.q[:, qs], self.v[:, vs], strict=True)]
        return total

    def constraint_violation(self) -> Array:
        """Return the largest violation of any constraint, shape (nt,), m or rad.

        Redundant constraints that were left out are included.
        """
        at = Assembler(self.system.whole)
        worst = np.zeros(len(self))
        for k, (t, q) in enumerate(zip(self.time, self.q, strict=True)):
            at.q[:] = q
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

        Example:
            >>> print(run.sensor("bob", (1, 0, 0), "velocity", axes="body")[-1].round(3))
            [ 0.    -4.234  0.   ]
        """
        choice("quantity", quantity, ("position", "velocity", "acceleration"))
        k = self.system.body_index(body)
        x, modes = material_point(self.system.bodies[k], point)
        value = material_point_motion(self._body(k), x, modes, quantity)
        if not isinstance(axes, str):
            return value @ fixed_axes(axes)
        if axes == "global":
            return value
        A = rotation_matrices(self.body(body if axes == "body" else axes).rotation)
        return np.einsum("tji,tj->ti", A, value)
