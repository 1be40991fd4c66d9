"""A simulation between two steps; its state can be saved and restored without any change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_control import Steps
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["Run", "Snapshot"]


class Snapshot(NamedTuple):
    """Everything on which the next steps of a run depend; it can be pickled.

    Attributes:
        state: State of the mechanism with the memory of the method.
        steps: Control of the time step.
        stepper: Counts and factorization of the stepper.
        inputs: Values of the inputs.
        origin: Digests that identify the mechanism and the method of the run.
    """

    state: State
    steps: Steps
    stepper: dict[str, Any]
    inputs: tuple[float, ...] = ()
    origin: Mapping[str, str] | None = None


class Run:
    """State of a simulation, its stepper and its step control after some step.

    Args:
        system: The mechanism.
        stepper: Method of time integration.
        steps: Control of the time step.
        state: State after the last step.
    """

    def __init__(self, system: System, stepper: Stepper, steps: Steps, state: State) -> None:
        self.system, self.stepper, self.steps, self.state = system, stepper, steps, state

    def _snapshot(self) -> Snapshot:
        """Return a snapshot; after `_return_to`, the run gives bitwise identical results."""
        steps, memory = copy.copy(self.steps), self.stepper.memory()
        return Snapshot(self.state, steps, memory, self._input_values())

    def _input_values(self) -> tuple[float, ...]:
        """Return the values of the inputs; a `Simulator` has inputs."""
        return ()

    def _return_to(self, snapshot: Snapshot) -> None:
        """Return to a snapshot of this run, or of an equal run."""
        self.state, self.steps = snapshot.state, copy.copy(snapshot.steps)
        self.stepper.restore(snapshot.stepper)

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Return to the present state if an error or an interruption occurs."""
        before = self._snapshot()
        try:
            yield
        except BaseException:
            self._return_to(before)
            raise

    def advance(self) -> State:
        """Take one step and return the new state; a step that fails changes nothing."""
        before = self._snapshot()
        try:
            return self._advance()
        except BaseException:
            self._return_to(before)
            raise

    def _advance(self) -> State:
        self.state = self.steps.advance(self.stepper, self.state)
        return self.state
