"""Solutions of simulations: histories by name, sensors, energies and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice, instance, reject
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.csv_files import write_table
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.assembly.rates import consistent_rates
from dolfinx_mbd.dynamics.start.consistent_state import transferred_state
from dolfinx_mbd.html import HtmlView
from dolfinx_mbd.mechanism.run_quantities import RunQuantity
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.files.run_files import HISTORY
from dolfinx_mbd.results.histories import (
    BodyHistory,
    ElementHistory,
    Energies,
    JointHistory,
)
from dolfinx_mbd.results.run_comparison import Difference, compare
from dolfinx_mbd.results.saved_outputs import SavedOutputs
from dolfinx_mbd.results.saved_states import SavedStates
from dolfinx_mbd.results.sensors import Sensors
from dolfinx_mbd.results.series import Series
from dolfinx_mbd.results.solution_files import read_solution, write_solution
from dolfinx_mbd.results.tables import columns, dataset

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]


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
        q, v, a, lam, angles: Arrays as in `State`, with one row per saved time; not available if
            only some outputs were saved.
        final_state: State at the end of the run; another simulation can start from it.

    Example:
        >>> run.body("bob").position.shape  # m
        (501, 3)
        >>> run.joint("pin").force.shape  # N
        (501, 3)
    """

    def __init__(
        self,
        system: System,
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
        self._set_saved(SavedStates(system, states))

    def _set_saved(self, saved: SavedStates | SavedOutputs) -> None:
        """Set the saved values and the attributes that follow from them."""
        self._saved, self.time = saved, saved.time
        if isinstance(saved, SavedStates):
            self.q, self.v, self.a, self.lam = saved.q, saved.v, saved.a, saved.lam
            self.angles = saved.angles
        else:  # without these attributes, `__getattr__` reads them from `saved`: error with advice
            for key in HISTORY[1:]:
                del vars(self)[key]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in HISTORY and "_saved" in vars(self):
                return getattr(self._saved, name)
            raise AttributeError(f"'Solution' object has no attribute {name!r}")

    sensor, gauge = Sensors.sensor, Sensors.gauge  # for the reference page of this class

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, times: slice) -> Solution:
        """Return the solution at some of the saved times, for example `run[::100]`.

        Only these times are read from the folder of a long run.
        """
        hint = "for example run[::100]; use run.body(name) or run.joint(name) for a history"
        saved = self._saved.part(instance("times", times, slice, hint))
        if not len(saved.time):
            reject("times", times, f"a slice that contains some of the {len(self)} saved times")
        return solution_of(self.system, saved, self.final_state, **self._facts())

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the titles and the texts of the table that notebooks show."""
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
        """Return the names of all bodies that move, all joints, drivers and loads.

        If only some outputs were saved, the names are those of their bodies, joints, drivers and
        loads, and of outputs that are functions.
        """
        return self._saved.names()

    @property
    def _bodies(self) -> list[str]:
        """Return the names of the bodies that can move."""
        return [body.name for body in self.system.mechanical_bodies if body.num_velocities]

    @property
    def _joints(self) -> list[str]:
        """Return the names of the joints and drivers."""
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
        return JointHistory(self._saved.data(name))

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
        return ElementHistory(self._saved.element(name, axes))

    def _body(self, k: int) -> BodyHistory:
        """Return the history of the body with index k."""
        body = self.system.bodies[k]
        if hasattr(body, "motion") and isinstance(self._saved, SavedStates):
            return body.motion(self)  # type: ignore[no-any-return]
        return BodyHistory(self._saved.data(body.name))

    def _series(self, names: Sequence[str] | None = None) -> Iterator[Series]:
        """Yield the quantities that are not empty, by default of all bodies, joints and loads.

        A name denotes a part, or a quantity such as ``pin.force``.
        """
        valid = self.names()
        functions = getattr(self._saved, "functions", {})
        for request in valid if names is None else checked_names("names", names):
            if request in functions:
                yield Series("", request, RunQuantity(""), functions[request])
                continue
            parts = [name for name in valid if request == name or request.startswith(f"{name}.")]
            name = max(parts, key=len, default="")
            choice("name of a body, joint, driver or load", name or request, valid)
            data = self._saved.data(name)
            if request == name:
                yield from data
            else:
                yield data.series(request[len(name) + 1 :])

    def histories(self) -> dict[str, Array]:
        """Return `time` and all nonempty histories by name, for example `rod.position`.

        The first axis of each array corresponds to `time`.
        """
        return {"time": self.time, **{series.name: series.values for series in self._series()}}

    def projected(self) -> Solution:
        """Return a solution whose velocities, accelerations and multipliers obey the constraints.

        The positions are unchanged. The integrator satisfies the constraints for the positions, but
        the time derivatives of the constraints only up to an error of order dt².
        """
        states = [consistent_rates(self.system, state) for state in self._saved.states()]
        return Solution(self.system, states, **self._facts())

    def state_for(self, system: System) -> State:
        """Return the end of this run as a state of another mechanism, for `simulate(start=...)`.

        Bodies are matched by their names. Bodies without a match start from their initial
        positions. The state satisfies the constraints of the other mechanism.

        Args:
            system: The other mechanism.

        Raises:
            InputError: No body has the name of a body of the run, or it has another number of
                coordinates.
            AssemblyError: The joints of the other mechanism do not fit.

        Example:
            >>> free = mbd.System([ground, bob], gravity=(0, -9.81, 0))  # the pin has broken
            >>> flight = mbd.simulate(free, t_end=0.6, dt=1e-3, start=run.state_for(free))
            >>> print(flight.time[[0, -1]])
            [0.5 0.6]
        """
        eqs = Assembler(instance("system", system, System))
        return transferred_state(self.final_state, self.system, eqs)

    # ---- files ----------------------------------------------------------------------------------
    def _facts(self) -> dict[str, Any]:
        """Return the arguments of a `Solution` besides the system and the states, by name."""
        keys = ("complete", "iterations", "factorizations")
        return {key: getattr(self, key) for key in keys}

    def save(self, path: str | Path) -> Path:
        """Write the solution to one ``.npz`` file and return its path.

        The file does not contain the system; pass it to `load` again. Under MPI every rank may call
        this method.

        Args:
            path: Path of the file; missing directories are created.

        Raises:
            OSError: The file cannot be written; an existing file remains unchanged.

        Example:
            >>> path = run.save("pendulum.npz")
            >>> len(mbd.results.Solution.load(path, pendulum))
            501
        """
        return write_solution(path, self.system, self._saved, self.final_state, self._facts())

    @classmethod
    def load(cls, path: str | Path, system: System) -> Solution:
        """Read a solution that `save` wrote, or a folder that `simulate(path=...)` wrote.

        `system` is compared with the description in the file. The code of functions is not
        compared. The histories in a folder are read when they are used. A run that was interrupted
        or killed is read up to its last block, with a warning and ``complete == False``.

        Args:
            path: Path of the file or folder.
            system: The mechanism, built in the same way.

        Raises:
            RunFileError: The file is not a solution, is damaged, was written by a newer version, or
                belongs to another system.
            OSError: The file cannot be read.

        Warns:
            FileWarning: The run in a folder did not reach its end.
        """
        system, saved, final, facts = read_solution(path, system)
        return solution_of(system, saved, final, **facts)

    def to_csv(self, path: str | Path, names: Sequence[str] | None = None) -> Path:
        """Write histories as comma-separated values and return the path of the file.

        The file has one line per time. The first line names the columns with their units, for
        example ``rod.position.x [m]``.

        Args:
            path: Path of the file; missing directories are created. An existing table of a
                run is replaced if this run has all its columns without units.
            names: Names of the bodies, joints, drivers and loads to write, or of their quantities
                such as ``pin.force``; by default all.

        Raises:
            InputError: A name is unknown.
            OverwriteError: The existing file is not a table of a run.
            OSError: The file cannot be written; an existing file remains unchanged.

        Example:
            >>> path = run.to_csv("pin.csv", names=["pin"])
            >>> path.read_text().splitlines()[0].split(",")[:2]
            ['time [s]', 'pin.force.x [N]']
        """
        table = {"time [s]": self.time} | columns(self._series(names))
        values = np.column_stack(list(table.values()))
        outputs = getattr(self._saved, "functions", {})
        return write_table(path, list(table), values, outputs=outputs)

    def to_xarray(self, names: Sequence[str] | None = None) -> Dataset:
        """Return histories as a dataset with coordinates and units.

        The coordinates are ``time`` (s), ``axis`` (x, y, z), ``quaternion`` (w, x, y, z) and the
        numbers of the elastic coordinates of each body. The attribute ``units`` of each variable is
        its unit. Datasets can be written to NetCDF, converted to pandas, and subtracted from each
        other if their times are equal.

        Args:
            names: Names of the bodies, joints, drivers and loads to include, or of their
                quantities such as ``pin.force``; by default all.

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
        return dataset(self.time, self._series(names))

    def compare(self, other: Solution, names: Sequence[str] | None = None) -> dict[str, Difference]:
        """Return the differences of two runs by name, for example `pin.force`.

        Quantities that both runs have with equal shapes are compared at the times that both runs
        saved. If one run saved only a component, such as `pin.force.x`, this component is compared.

        Args:
            other: Another run, of the same or of another mechanism.
            names: Names of bodies, joints, drivers and loads, or of their quantities; by default
                the names that both runs have.

        Raises:
            InputError: The runs have no quantity, no times or only one time in common, or a name is
                unknown.

        Example:
            >>> coarse = mbd.simulate(pendulum, t_end=0.5, dt=2e-3)
            >>> change = run.compare(coarse)["bob.omega"]
            >>> bool(change.largest < 1e-4 * change.scale), change.unit
            (True, 'rad/s')
        """
        instance("other", other, Solution, "another run")
        if names is None:
            names = [name for name in self.names() if name in other.names()]
        return compare((self.time, other.time), (self._series(names), other._series(names)))

    # ---- derived quantities ---------------------------------------------------------------------
    def energies(self) -> Energies:
        """Return the kinetic, elastic and gravitational energy over time.

        The elastic energy includes the energy of springs and bushings.
        """
        parts = self._body_energies(slice(None))
        if any(load.stores_energy for load in self.system.loads):
            parts[:, 1] += [
                assembler.loads.stored_energy() for _, _, assembler in self._saved.evaluations()
            ]
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


def solution_at(system: System, state: State, assembler: Assembler) -> Solution:
    """Return a solution of one state whose quantities are evaluated with an assembler.

    Args:
        system: The mechanism.
        state: The state.
        assembler: Assembler of `system.whole`.
    """
    return solution_of(system, SavedStates(system, [state], assembler), state)


def solution_of(
    system: System, saved: SavedStates | SavedOutputs, final: State, **facts: Any
) -> Solution:
    """Return a solution of saved values and its last state."""
    run = Solution(system, [final], **facts)
    run._set_saved(saved)
    return run
