"""Solutions of simulations: histories by name, sensors, energies and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import errors_as, read_archive
from dolfinx_mbd.checks import choice, instance
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.html import HtmlView
from dolfinx_mbd.multibody.assembly.rates import consistent_rates
from dolfinx_mbd.multibody.files.run_files import (
    HISTORY,
    check_system,
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
    ElementHistory,
    Energies,
    JointHistory,
)
from dolfinx_mbd.multibody.results.saved_states import SavedStates
from dolfinx_mbd.multibody.results.sensors import Sensors
from dolfinx_mbd.multibody.results.tables import Named, columns, dataset, quantities
from dolfinx_mbd.multibody.start.consistent_state import transferred_state

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

_KIND = run_kind("solution")


class Solution(Sensors, HtmlView):
    """Results of a simulation: the histories of bodies, joints, drivers and loads by name.

    Args:
        system: The mechanism.
        states: States at increasing times.
        complete: Whether the run reached its end.
        iterations: Number of Newton iterations.
        factorizations: Number of factorizations of the iteration matrix.

    Attributes:
        time: Saved times, (nt,), s.
        q, v, a, lam, angles: Arrays as in `State`, with one row per time.
        final_state: The last state; another simulation can start from it.

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
        self._saved = saved = SavedStates(system, states)
        self.time, self.q, self.v, self.a, self.lam, self.angles = (
            saved.time,
            saved.q,
            saved.v,
            saved.a,
            saved.lam,
            saved.angles,
        )

    def __len__(self) -> int:
        return len(self.time)

    def _html_rows(self) -> list[tuple[str, str]]:
        times = f"{self.time[0]:g} to {self.time[-1]:g} s, {len(self)} saved"
        return [
            ("run", "complete" if self.complete else "interrupted"),
            ("times", times),
            ("bodies, joints, drivers and loads", ", ".join(self.names())),
        ]

    def __repr__(self) -> str:
        return (
            f"<Solution: {len(self)} times from {self.time[0]:g} to {self.time[-1]:g} s, "
            f"{'complete' if self.complete else 'interrupted'}, {self.iterations} Newton "
            f"iterations, {self.factorizations} factorizations>"
        )

    # ---- histories by name ----------------------------------------------------------------------
    def names(self) -> list[str]:
        """Return the names of all bodies that move, all joints, drivers and loads."""
        return [*self._bodies, *self._joints, *(load.name for load in self.system.loads)]

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
        entry, s, lam = self._joints.index(name), self.system.whole, self._saved.multipliers
        reactions = np.zeros((len(self), 6))
        rows = np.flatnonzero(s.row_entry == entry)
        reactions[:, s.row_motion[rows]] -= lam[:, rows]
        joint = entry if entry < len(s.joints) else int(s.driven_joints[entry - len(s.joints)])
        forces = reactions[:, :3], reactions[:, 3:]
        if entry < len(s.joints) and s.joints[entry].clearance is not None:
            element = self.element(name, axes="first")
            forces = element.force, element.moment
        motion = partial(self._saved.entry_motion, entry)
        return JointHistory(name, self.time, *forces, self.angles[:, joint], motion)

    def element(
        self, name: str, *, axes: Literal["global", "first", "second"] = "global"
    ) -> ElementHistory:
        """Return the history of a load, spring, damper, bushing, joint or driver.

        The history is computed from the saved states; your own functions of loads are called again.

        Args:
            name: Name of the load, joint or driver.
            axes: Axes of the components of forces and moments: ``global``, ``first`` or ``second``
                (the moving frames at the ends). For a load on one frame, ``second`` is this frame;
                for a distributed load, it is the frame of the body. These loads have no ``first``
                frame.

        Raises:
            InputError: The name is unknown, or the element does not have these axes; the message
                lists the choices.

        Example:
            >>> history = run.element("pin")
            >>> bool(np.allclose(history.force, -history.first_force))
            True
            >>> run.element("pin", axes="second").force.shape  # N, in the axes of the bob
            (501, 3)
        """
        return self._saved.element(name, axes)

    def _body(self, k: int) -> BodyHistory:
        motion = getattr(self.system.bodies[k], "motion", None)
        return self._saved.body(k) if motion is None else motion(self)  # type: ignore[no-any-return]

    def _arrays(self, names: Sequence[str] | None = None) -> Iterator[Named]:
        """Yield name, quantity and values of each history that is not empty."""
        known = self.names()
        for name in known if names is None else checked_names("names", names):
            choice("every entry of names", name, known)
            kinds = ((self._bodies, self.body), (self._joints, self.joint), (known, self.element))
            history: object = next(get for group, get in kinds if name in group)(name)
            yield from ((name, key, values) for key, values in quantities(history))
            if name in self._bodies:
                yield from self._strains(name)

    def histories(self) -> dict[str, Array]:
        """Return `time` and all histories that are not empty by name, for example `rod.position`.

        The first axis of each array corresponds to `time`.
        """
        arrays = {f"{name}.{key}": values for name, key, values in self._arrays()}
        return {"time": self.time, **arrays}

    def projected(self) -> Solution:
        """Return a solution whose velocities, accelerations and multipliers obey the constraints.

        The positions are unchanged. The integrator satisfies the constraints for the positions, but
        the time derivatives of the constraints only up to an error of order dt².
        """
        states = [consistent_rates(self.system, state) for state in self._saved.states()]
        return Solution(self.system, states, **self._facts())

    def state_for(self, system: SystemData) -> State:
        """Return the end of this run as a state of another mechanism, for `simulate(start=...)`.

        Bodies are matched by their names. Bodies without a match start from their initial
        positions. The state satisfies the constraints of the other mechanism.

        Args:
            system: The other mechanism.

        Raises:
            InputError: A body of the same name has another number of coordinates.
            AssemblyError: The joints of the other mechanism do not fit.

        Example:
            >>> free = mbd.System([ground, bob], gravity=(0, -9.81, 0))  # the pin has broken
            >>> flight = mbd.simulate(free, t_end=0.6, dt=1e-3, start=run.state_for(free))
            >>> print(flight.time[[0, -1]])
            [0.5 0.6]
        """
        return transferred_state(self.final_state, self.system, system)

    # ---- files ----------------------------------------------------------------------------------
    def _facts(self) -> dict[str, Any]:
        keys = ("complete", "iterations", "factorizations")
        return {key: getattr(self, key) for key in keys}

    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file and return its path.

        The file does not contain the system; pass it to `load` again. Under MPI every rank may call
        this method.

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

        `system` is compared with the description in the file. The code of functions is not
        compared.

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
        with errors_as(_KIND, path):
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
            names: Names of the bodies, joints, drivers and loads to write; by default all.

        Raises:
            InputError: A name is unknown.
            OSError: The file cannot be written; an existing file remains unchanged.

        Example:
            >>> path = run.to_csv("pin.csv", names=["pin"])
            >>> path.read_text().splitlines()[0].split(",")[:2]
            ['time [s]', 'pin.force.x [N]']
        """
        table = {"time [s]": self.time} | columns(self._arrays(names))
        return write_table(path, list(table), np.column_stack(list(table.values())))

    def to_xarray(self, names: Sequence[str] | None = None) -> Dataset:
        """Return histories as a dataset with coordinates and units.

        The coordinates are ``time`` (s), ``axis`` (x, y, z), ``quaternion`` (w, x, y, z) and the
        numbers of the elastic coordinates of each body. The attribute ``units`` of each variable is
        its unit. Datasets can be written to NetCDF, converted to pandas, and subtracted from each
        other if their times are equal.

        Args:
            names: Names of the bodies, joints, drivers and loads to include; by default all.

        Raises:
            InputError: A name is unknown.

        Example:
            >>> data = run.to_xarray(["pin"])
            >>> data["pin.force"].dims, data["pin.force"].attrs["units"]
            (('time', 'axis'), 'N')
            >>> table = data["pin.force"].to_pandas()
            >>> table.shape
            (501, 3)
        """
        return dataset(self.time, self._arrays(names))

    # ---- derived quantities ---------------------------------------------------------------------
    def energies(self) -> Energies:
        """Return the kinetic, elastic and gravitational energy over time.

        The elastic energy includes the energy of springs and bushings.
        """
        parts = self._body_energies(slice(None))
        if any(hasattr(load, "energy") for load in self.system.loads):
            parts[:, 1] += [at.stored_energy() for _, _, at in self._saved.evaluations()]
        return Energies(self.time, *parts.T)

    def _body_energies(self, rows: slice | NDArray[np.integer]) -> Array:
        """Return the kinetic, elastic and gravitational energy at the given rows, (n, 3), J."""
        bodies = range(len(self.system.bodies))
        return np.sum([self._saved.body_energies(k, rows) for k in bodies], axis=0, dtype=float)

    def momenta(self) -> Array:
        """Return the momentum and the angular momentum about the global origin over time.

        Returns:
            Shape (nt, 6), kg m/s and kg m²/s.
        """
        bodies = range(len(self.system.bodies))
        return np.sum([self._saved.body_momenta(k) for k in bodies], axis=0, dtype=float)

    def constraint_violation(self) -> Array:
        """Return the largest violation of any constraint, shape (nt,), m or rad.

        Dropped redundant constraints are included.
        """
        return self._saved.entries["violation"].max(axis=1, initial=0.0)
