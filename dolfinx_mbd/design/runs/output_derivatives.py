"""Derivatives of an output of a run with respect to the states.

The motion of bodies and the forces of joints are part of the state. Derivatives of other outputs
are differences, but only with respect to the parts of the state on which they depend. A part is
left out if a change of all its numbers does not change the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.runs.mechanism_changes import (
    FACTORS,
    FOURTH_ORDER,
    central_difference,
)
from dolfinx_mbd.design.runs.parameter_terms import ParameterTerms
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, extent
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.files.run_files import HISTORY
from dolfinx_mbd.results.outputs import Output, Outputs
from dolfinx_mbd.results.saved_states import SavedStates
from dolfinx_mbd.results.solution import solution_of
from dolfinx_mbd.results.state_entries import state_entry

_STEP = 1e-3  # step of differences relative to the size of a part of the state; rotations: rad
_LENGTH_STEP = 1e-4  # step of positions relative to the size of the mechanism
_LOCAL = 1e-9  # largest relative change of an output if it is evaluated at one time alone


@dataclass(frozen=True)
class StateDerivatives:
    """Derivatives of an output with respect to q (increments), v, a and λ, (nt, ·) each."""

    q: Array
    v: Array
    a: Array
    lam: Array


class OutputDerivatives:
    """Values of an output of a mechanism, and derivatives with respect to states and parameters.

    Args:
        terms: Mechanism and its parameters.
        output: Name of a number, or function of a `Solution`; see `Functional`.
        first: First state of the run.
    """

    def __init__(self, terms: ParameterTerms, output: str | Output, first: State) -> None:
        self._terms, self._system = terms, terms.system
        self._eqs = Assembler(self._system)
        self._eqs.put(first)
        self._eqs.update_poses(first.time)
        self._length = extent(self._eqs)
        self._outputs = Outputs([output] if isinstance(output, str) else {"output": output})
        self.values([first])  # checks the name
        entry = state_entry(self._system, output) if isinstance(output, str) else None
        self._entry = None if entry is None or entry.array == "angles" else entry

    def values(self, states: Sequence[State]) -> Array:
        """Return the output (nt,) at some states; raise an error if it depends on other times."""
        values = self._evaluate(self._system, _stacked(states))
        if len(states) > 1:
            last = self._evaluate(self._system, _stacked(states[-1:]))[0]
            if not abs(last - values[-1]) <= _LOCAL * np.abs(values).max():
                raise InputError(
                    "the value of the output at one time depends on other times, for example as a "
                    "sum over time or a difference from the start; return a quantity of this time, "
                    "or use run_sensitivities",
                    argument="functional",
                )
        return values

    def by_state(self, states: Sequence[State]) -> StateDerivatives:
        """Return the derivatives with respect to some states."""
        nt, nv, nc = len(states), self._system.num_velocities, self._system.num_constraints
        d = StateDerivatives(*(np.zeros((nt, n)) for n in (nv, nv, nv, nc)))
        if self._entry is not None:
            if self._entry.sign:
                getattr(d, self._entry.array)[:, self._entry.increment] = self._entry.sign
            return d
        arrays = _stacked(states)
        base = self._evaluate(self._system, arrays)
        for key, columns, size in self._parts(arrays):
            step = np.zeros(arrays[key].shape[1] if key != "q" else nv)
            # different steps of all columns, whose effects cannot cancel
            step[columns] = size * (1.0 + np.arange(len(columns)) / (1.0 + len(columns)))
            if (self._evaluate(self._system, self._moved(arrays, key, step)) == base).all():
                continue
            for column in columns:
                slopes = self._slopes(arrays, key, column, size)
                if key == "angles":
                    d.q[:] += slopes[:, None] * self._rotation_gradients(states, column)
                else:
                    getattr(d, key)[:, column] = slopes
        return d

    def by_parameters(self, states: Sequence[State]) -> Array:
        """Return the derivatives by the parameters at fixed states, (nt, parameters)."""
        arrays, terms = _stacked(states), self._terms
        out = np.zeros((len(states), len(terms.values)))
        if self._entry is None:
            for k, name in enumerate(terms.values):
                values = {f: self._evaluate(terms.system_at(name, f), arrays) for f in FACTORS}
                out[:, k] = central_difference(values, terms.steps[name])
        return out

    def _evaluate(self, system: System, arrays: dict[str, Array]) -> Array:
        """Return the output of a run with the given states, (states,)."""
        last = State(*(arrays[key][-1] for key in HISTORY))
        run = solution_of(system, SavedStates.of_arrays(system, arrays), last)
        return self._outputs.of(run)[:, 0]

    def _slopes(self, arrays: dict[str, Array], key: str, column: int, size: float) -> Array:
        """Return the derivatives with respect to one number of the state by differences."""
        step = np.zeros(self._system.num_velocities if key == "q" else arrays[key].shape[1])
        values = {}
        for factor in FOURTH_ORDER:
            step[column] = factor * size
            values[factor] = self._evaluate(self._system, self._moved(arrays, key, step))
        return central_difference(values, size)

    def _moved(self, arrays: dict[str, Array], key: str, step: Array) -> dict[str, Array]:
        """Return the states with one of their arrays changed by a step."""
        if key != "q":
            return arrays | {key: arrays[key] + step}
        moved = np.empty_like(arrays["q"])
        for row, q in zip(moved, arrays["q"], strict=True):
            self._eqs.move(q, step)
            row[:] = self._eqs.q
        return arrays | {"q": moved}

    def _parts(self, arrays: dict[str, Array]) -> Iterator[tuple[str, list[int], float]]:
        """Yield the parts of a state: array, columns, and step of differences."""
        s = self._system
        for body, vs, qs in zip(s.bodies, s.v_slices, s.q_slices, strict=True):
            columns, shift = [*range(vs.start, vs.stop)], body.num_coordinates - body.num_velocities
            # Translations and rotations of a frame (its quaternion has one number more than its
            # rotation), and elastic coordinates; other bodies have only the last part
            n = 3 if shift else 0
            parts = (columns[:n], columns[n : 2 * n], columns[2 * n :])
            for k, part in enumerate(parts):
                if not part:
                    continue
                if n and k < 2:
                    yield "q", part, _STEP if k else _LENGTH_STEP * self._length
                else:
                    first = part[0] - vs.start + qs.start + shift
                    yield "q", part, _size(arrays["q"][:, first : first + len(part)])
                for key in ("v", "a"):
                    yield key, part, _size(arrays[key][:, part])
        for rows in s.entry_slices:
            part = [*range(rows.start, rows.stop)]
            if part:
                yield "lam", part, _size(arrays["lam"][:, part])
        for joint in range(len(s.joints)):
            yield "angles", [joint], _STEP

    def _rotation_gradients(self, states: Sequence[State], joint: int) -> Array:
        """Return the derivatives (nt, nv) of the rotation of a joint with respect to q."""
        rows = []
        for state in states:
            self._eqs.put(state)
            self._eqs.update_poses(state.time)
            self._eqs.frames.update_velocities()
            rows.append(self._eqs.frames.axis_gradient(self._system.joints[joint].name, "rotation"))
        return np.array(rows)


def _size(values: Array) -> float:
    """Return the step of differences for some numbers of the states."""
    largest = float(np.abs(values).max(initial=0.0))
    return _STEP * (largest if largest > 0.0 else 1.0)


def _stacked(states: Sequence[State]) -> dict[str, Array]:
    """Return the states as arrays by name."""
    return {key: np.array([getattr(state, key) for state in states]) for key in HISTORY}
