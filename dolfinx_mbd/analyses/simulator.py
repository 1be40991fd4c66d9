"""A mechanism that you step yourself, with inputs and outputs by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Literal

import scipy.linalg  # noqa: F401  (loads the BLAS of SciPy, for `_blas`)
from threadpoolctl import LibController, ThreadpoolController

from dolfinx_mbd.analyses.input_history import InputHistory
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.checks import choice, instance, number, reject
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.consistent_state import start_state
from dolfinx_mbd.dynamics.start.position_assembly import independent_system
from dolfinx_mbd.dynamics.stepping.integrators import StepError, Stepper
from dolfinx_mbd.dynamics.stepping.run import Run, Snapshot
from dolfinx_mbd.dynamics.stepping.step_control import Adaptive, steps_until
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.motions import check_drivers
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.files.fingerprint import differences, digest, fingerprint
from dolfinx_mbd.results.outputs import Outputs, Requests
from dolfinx_mbd.results.solution import Solution, solution_at
from dolfinx_mbd.results.state_entries import StateEntry, state_entry
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["Simulator", "one_blas_thread"]


@cache
def _blas() -> list[LibController]:
    """Return the BLAS libraries of this process. They are cached because the search is slow."""
    return [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]


def _threaded_blas() -> list[tuple[LibController, int]]:
    """Return the BLAS libraries that use several threads, and their numbers of threads."""
    counts = [(library, library.get_num_threads()) for library in _blas()]
    return [(library, count) for library, count in counts if count not in (None, 1)]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one BLAS thread: more threads change round-off and do not speed up small problems."""
    several = _threaded_blas()
    for library, _ in several:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, count in several:
            library.set_num_threads(count)


_ROUND_OFF = 1e-10  # of the time at the end of many steps, relative to the time
_SHOWN = 5  # number of differences that an error lists


class Simulator(Run):
    """A mechanism that you step yourself, for controllers and co-simulation.

    Inputs are held constant over each step. A loop over `step` gives the states of `simulate`
    with the same steps, bitwise identical.

    The name of a joint load is the input of its torque or force. The name of a distributed load is
    the input of its amplitude. The name of a driver is the input of the position of its joint at
    the end of the step (without the offset). `push.x`, `push.y` and `push.z` are the components of
    a force or torque `push`. `spring.stiffness` and similar names are the numbers of a force
    element. If a load is a function, the input replaces the function and starts at 0.

    Args:
        system: The mechanism; it is not changed.
        dt: Time step, s, adjusted with `t_end` so that a whole number of steps fits; or an
            `Adaptive` control. Adaptive steps need `t_end` and do not permit inputs.
        t_end: End time, s; by default the simulation has no end.
        method: Generalized-α method; by default with ρ∞ = 0.8.
        tolerance: Tolerance of Newton's method, relative to the acting forces; see `Stepper`.
        start: Rates of joints at t = 0 by name, or an initial state; see `simulate`.
        elastic_start: Initial deformation: ``quasi-static`` or ``undeformed``; see `simulate`.
        redundant: Treatment of redundant constraints: ``stop``, ``drop`` or ``keep``; see
            `simulate`.
        inputs: Names of the inputs.
        outputs: Names of quantities such as ``pin.rotation`` or of their components such as
            ``pin.force.x``; or functions by name. A function has a `Solution` as its argument and
            returns one number for each time of the solution, shape (nt,).

    Attributes:
        system: The mechanism with the present inputs.
        state: State after the last step.
        stepper: The method of time integration, with its counts.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        InputError: An argument is invalid or a name is unknown; the message lists the known names.

    Example:
        >>> motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
        >>> arm = mbd.System([ground, bob], [pin], loads=[motor], gravity=(0, -9.81, 0))
        >>> angle = "pin.rotation"
        >>> simulator = mbd.Simulator(arm, dt=1e-3, inputs=["motor"], outputs=[angle])
        >>> for _ in range(500):
        ...     state = simulator.step({"motor": -20.0 * simulator.outputs[angle]})
        >>> print(f"{state.time:.1f} s, {simulator.outputs[angle]:.3f} rad")
        0.5 s, -0.944 rad
    """

    @one_blas_thread()
    def __init__(
        self,
        system: System,
        *,
        dt: float | Adaptive,
        t_end: float | None = None,
        method: GeneralizedAlpha | None = None,
        tolerance: float = 1e-8,
        start: State | Mapping[str, float] | None = None,
        elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
        redundant: Literal["stop", "drop", "keep"] = "stop",
        inputs: Sequence[str] = (),
        outputs: Requests | None = None,
    ) -> None:
        instance("system", system, System)
        _check_start(start, system)
        first = start.time if isinstance(start, State) else 0.0
        least = _ROUND_OFF * abs(first)  # the time of a last state is a sum of steps
        if t_end is not None and number("t_end", t_end, unit="s") - first <= least:
            reject("t_end", t_end, f"after the start, {first:g} s")
        if not isinstance(dt, Adaptive):
            dt = number("dt", dt, positive=True, unit="s, or an Adaptive control")
        elif t_end is None or len(inputs):
            raise InputError("adaptive steps need t_end, and inputs need steps of equal length")
        self._elastic_start = choice("elastic_start", elastic_start, ("quasi-static", "undeformed"))
        choice("redundant", redundant, ("stop", "drop", "keep"))
        self._original = system
        self._inputs, self._outputs = Inputs(system, inputs), Outputs(outputs)
        self._history = InputHistory(self._inputs.names)
        system = self._inputs.system
        if t_end is not None:
            check_drivers(system, first, t_end)
        if redundant != "stop":
            equations, keep = Assembler(system), redundant == "keep"
            q = start.q if isinstance(start, State) else None
            system = independent_system(equations, first, q, least_norm=keep)
        stepper = Stepper(system, method, tolerance=tolerance)
        self._dt, self._t_end, self._start = dt, t_end, start
        state = self._first_state(stepper.assembler, start)
        super().__init__(system, stepper, steps_until(t_end, dt, state.time, system), state)
        self._first = self._snapshot()
        if not self._outputs.functions:
            self._outputs.of(self._solution_now())  # checks the names

    def __repr__(self) -> str:
        inputs, outputs = (
            ", ".join(signals.names) or "none" for signals in (self._inputs, self._outputs)
        )
        time = f"{self.state.time:g} s"
        return f"<Simulator: time {time}, inputs: {inputs}, outputs: {outputs}>"

    @property
    def inputs(self) -> dict[str, float]:
        """Values of the inputs by name."""
        return dict(zip(self._inputs.names, self._inputs.values, strict=True))

    @property
    def outputs(self) -> dict[str, float]:
        """Values of the outputs by name, at the present state."""
        entries, others = self._output_parts
        state = self.state
        values = {name: entry.value(state) if entry else 0.0 for name, entry in entries.items()}
        if others.names:
            (numbers,) = others.of(self._solution_now())  # one time
            values |= zip(others.names, numbers.tolist(), strict=True)
        return values

    @property
    def units(self) -> dict[str, str]:
        """Units of the inputs and outputs by name, such as ``N m``; "" if unknown.

        Outputs that are functions have no known unit.

        Example:
            >>> simulator = mbd.Simulator(pendulum, dt=1e-3, outputs=["pin.force.x"])
            >>> simulator.units
            {'pin.force.x': 'N'}
        """
        return self._inputs.units | self._outputs.units(self._solution_now())

    def step(self, inputs: Mapping[str, float] | None = None) -> State:
        """Take one step and return the new state.

        Args:
            inputs: Values of inputs by name; they act from the beginning of the step. Inputs that
                are absent keep their values.

        Raises:
            StepError: The step does not converge. The simulator is then in the same state as
                before. If the inputs have grown from step to step, the message says so.
            InputError: An input is unknown or invalid, a driver rotates by half a turn or more, or
                the end time is reached.

        Example:
            >>> simulator = mbd.Simulator(pendulum, dt=1e-3)
            >>> simulator.step().time
            0.001
        """
        if self.steps.done:
            raise InputError(f"the simulation has reached its end, t = {self.state.time:g} s")
        values = self._inputs.values if inputs is None else self._inputs.merged(inputs)
        history = self._history  # `restore` replaces it
        history.add(values)
        try:
            if not _threaded_blas():  # faster than a context
                return self._step(values)
            with one_blas_thread():
                return self._step(values)
        except StepError as error:
            cause = history.growth()
            if not cause:
                raise
            raise StepError(f"{cause}. Details: {error}", error.time) from None

    @cached_property
    def _output_parts(self) -> tuple[dict[str, StateEntry | None], Outputs]:
        """Entries of the state by the names of all outputs, and the outputs that are none."""
        outputs = self._outputs
        if outputs.functions:
            return dict.fromkeys(outputs.names), outputs
        entries = {name: state_entry(self.system, name) for name in outputs.names}
        return entries, Outputs([name for name, entry in entries.items() if entry is None])

    def _solution_now(self) -> Solution:
        """Return the present state as a solution."""
        return solution_at(self.system, self.state, self._evaluator)

    @cached_property
    def _evaluator(self) -> Assembler:
        """Assembler for outputs, which has other values than that of the stepper."""
        return Assembler(self.system.whole)

    def _step(self, values: tuple[float, ...]) -> State:
        """Take a step with values of the inputs, which may jump at its beginning."""
        if values == self._inputs.values:
            return self.advance()
        before, dt = self._snapshot(), self.steps.dt
        try:  # as the context manager `undone_on_error`, which is slower
            state = self.stepper.begin(self.state, dt)
            self._inputs.put(values)
            self.state = self.stepper.after_jump(state, dt)
            return self._advance()
        except BaseException:
            self._return_to(before)
            raise

    @one_blas_thread()
    def reset(
        self,
        start: State | Mapping[str, float] | None = None,
        inputs: Mapping[str, float] | None = None,
    ) -> State:
        """Return to the start, and return the initial state.

        Args:
            start: Initial state or rates of joints; by default the argument `start` of the
                constructor.
            inputs: Values of inputs by name for the computation of the initial state. Inputs that
                are absent return to their values at construction.

        Raises:
            AssemblyError: The mechanism cannot be assembled.
            InputError: An argument is invalid.

        Example:
            >>> simulator = mbd.Simulator(pendulum, dt=1e-3)
            >>> simulator.reset(start={"pin": 2.0}).v[5].item()
            2.0
        """
        _check_start(start, self.system)
        with self.undone_on_error():
            self._return_to(self._first)
            if inputs is not None:
                self._set_inputs(self._inputs.merged(inputs))
            if start is not None or inputs is not None:
                start = self._start if start is None else start
                self.state = self._first_state(Assembler(self.system), start)
                self.steps = steps_until(self._t_end, self._dt, self.state.time, self.system)
        return self.state

    def save(self) -> Snapshot:
        """Return a snapshot that can be pickled; after `restore`, steps are bitwise identical.

        Example:
            >>> simulator = mbd.Simulator(pendulum, dt=1e-3)
            >>> before, one = simulator.save(), simulator.step()
            >>> simulator.restore(before)
            >>> bool((simulator.step().q == one.q).all())
            True
        """
        return self._snapshot()._replace(origin=self._origin)

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot of this simulator, or of a simulator with the same arguments.

        Args:
            snapshot: Snapshot that `save` returned.

        Raises:
            InputError: The snapshot belongs to another mechanism, has other inputs, or was made
                with another time step, method or tolerance.

        Example:
            >>> simulator = mbd.Simulator(pendulum, dt=1e-3)
            >>> before = simulator.save()
            >>> other = mbd.Simulator(pendulum, dt=1e-3)
            >>> other.restore(before)
        """
        self.system.check_state("snapshot", instance("snapshot", snapshot, Snapshot).state)
        if len(snapshot.inputs) != len(self._inputs.names):
            reject("snapshot", snapshot.inputs, f"one with {len(self._inputs.names)} inputs")
        if snapshot.origin is not self._origin:
            changes = differences(snapshot.origin or {}, self._origin)
            if changes:
                listed, count = ", ".join(changes[:_SHOWN]), len(changes) - _SHOWN
                more = f" and {count} more" if count > 0 else ""
                raise InputError(
                    f"the snapshot belongs to another simulator: {listed}{more}. "
                    "Restore it in a simulator with the same arguments",
                    argument="snapshot",
                )
        self._return_to(snapshot)
        self._history = InputHistory(self._inputs.names)

    @cached_property
    def _origin(self) -> dict[str, str]:
        """Digests of the arguments that a snapshot must have in common with this simulator."""
        settings = {
            "time step": self._dt,
            "method": self.stepper.method,
            "tolerance": self.stepper.tolerance,
            "list of inputs": self._inputs.names,
        }
        return fingerprint(self._original) | {
            name: digest(value) for name, value in settings.items()
        }

    def _input_values(self) -> tuple[float, ...]:
        """Return the inputs that a snapshot contains."""
        return self._inputs.values

    def _return_to(self, snapshot: Snapshot) -> None:
        """Return to a snapshot with its inputs."""
        super()._return_to(snapshot)
        self._set_inputs(snapshot.inputs)

    def _set_inputs(self, values: tuple[float, ...]) -> None:
        """Set the inputs, and renew what the stepper has stored for the present state.

        The motions of drivers and the gaps of oil films depend on the inputs.
        """
        self._inputs.put(values)
        self.stepper.put(self.state)

    def _first_state(
        self, assembler: Assembler, start: State | Mapping[str, float] | None
    ) -> State:
        """Return the initial state for a state or for rates of joints."""
        if isinstance(start, State):
            return start
        return start_state(assembler, elastic_start=self._elastic_start, rates=start)


def _check_start(start: State | Mapping[str, float] | None, system: System) -> None:
    """Raise an error if a start is invalid."""
    instance("start", start, (State, Mapping, type(None)), "a state or rates of joints by name")
    if isinstance(start, State):
        system.check_state("start", start)
