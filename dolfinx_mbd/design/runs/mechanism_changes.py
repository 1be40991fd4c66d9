"""Changes of a mechanism with a parameter: which parts change, and the derivatives of their terms.

The inertia and elastic forces of floating bodies are linear in their data. The derivatives of all
other terms are central differences, computed only for the parts that change.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.body_table import (
    AXES,
    COLUMNS,
    DAMPING,
    FIRST_MOMENTS,
    H_ROWS,
    MASS,
    MASS_MATRIX,
    MOTION,
    NUM_BENDS,
    NUM_FRAMES,
    POINTS,
    SPIN,
    STIFFNESS,
    array_sizes,
)
from dolfinx_mbd.kernels.parameter_terms import inertia_forces, joint_wrenches, wrench_forces
from dolfinx_mbd.mechanism.system import State, System

FACTORS = (-1, 1)
"""Multiples of the step at which mechanisms are compared."""

FOURTH_ORDER = (-2, -1, 1, 2)
"""Multiples of the step for differences of fourth order."""

_INERTIA = (MASS, FIRST_MOMENTS, H_ROWS, MASS_MATRIX, SPIN)
_MATRICES = (STIFFNESS, DAMPING)
_GEOMETRY = (POINTS, AXES, MOTION)
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_CURVED = 0.05  # ratio of second to first difference above which a change is irregular
_NOISE = 1e-7  # second differences of round-off, relative to the largest number of an array
_DEPTH = 12  # largest depth of nested objects that are compared


def central_difference(values: Mapping[int, Array], step: float = 1.0) -> Array:
    """Return the derivative from values at the multiples `FACTORS` or `FOURTH_ORDER` of a step.

    It is exactly zero for constant values.
    """
    difference = (values[1] - values[-1]) / (2 * step)
    if 2 in values:
        # (4 times the difference of step h − that of step 2 h)/3
        difference = (8 * difference - (values[2] - values[-2]) / (2 * step)) / 6
    return np.asarray(difference, dtype=float)


class States:
    """Some states as arrays with one row per state."""

    def __init__(self, states: Sequence[State]) -> None:
        self.states = states
        self.time = [state.time for state in states]
        self.q = np.array([state.q for state in states])
        self.v = np.array([state.v for state in states])
        self.a = np.array([state.a for state in states])
        self.lam = np.array([state.lam for state in states])


class MechanismChange:
    """Changes of a mechanism at the multiples -1 and 1 of the step of a parameter.

    Args:
        base: Assembler of the mechanism, before its first evaluation.
        systems: The changed mechanisms by the multiple of the step.
        step: Step of the parameter.
    """

    def __init__(self, base: Assembler, systems: Mapping[int, System], step: float) -> None:
        system = base.system
        self.system, self.systems, self.step, self._base = system, systems, step, base
        self.assemblers = {k: Assembler(s) for k, s in systems.items()}
        every = [system, *systems.values()]
        self._loads_change = not all(same(system.loads, s.loads) for s in every)
        self._drivers_change = not all(same(system.drivers, s.drivers) for s in every)
        self._compiled = not self._base.frames.has_others and not any(
            load.acts_on_modes for load in system.loads
        )
        if self._compiled:
            self._find_changes()

    def _find_changes(self) -> None:
        """Find the parts that change, and compute the derivatives of the data of bodies.

        `_table` and `_data` are a table of the bodies whose inertia changes, with derivatives in
        place of their arrays. `_matrices` are K′ and D′ of bodies of which only these change, with
        the slices of their elastic coordinates.
        """
        tables = {k: eqs.frames.bodies for k, eqs in self.assemblers.items()}
        rows, parts, size = [], [], 0
        geometry = False
        self._matrices: list[tuple[slice, slice, Array, Array]] = []
        for body in range(len(self._base.frames.bodies.table)):
            arrays = {k: _body_arrays(b.table[body], b.data) for k, b in tables.items()}
            slopes = {
                column: central_difference({k: v[column] for k, v in arrays.items()}, self.step)
                for column in arrays[1]
            }
            geometry |= any(np.any(arrays[k][c] != arrays[1][c]) for k in arrays for c in _GEOMETRY)
            if any(slopes[c].any() for c in _INERTIA):
                row = self._base.frames.bodies.table[body].copy()
                row[[NUM_FRAMES, NUM_BENDS]] = 0
                for column in (*_INERTIA, *_MATRICES):
                    row[column] = size
                    parts.append(slopes[column])
                    size += parts[-1].size
                rows.append(row)
            elif any(slopes[c].any() for c in _MATRICES):
                n = int(np.sqrt(slopes[STIFFNESS].size))
                member = self._base.frames.bodies.members[body]
                q, v = self.system.q_slices[member], self.system.v_slices[member]
                K, D = (slopes[c].reshape(n, n) for c in _MATRICES)
                self._matrices.append((slice(q.stop - n, q.stop), slice(v.stop - n, v.stop), K, D))
        self._table = np.array(rows, dtype=np.int64).reshape(len(rows), COLUMNS)
        self._data = np.concatenate([np.zeros(0), *parts])
        gravities = {k: s.gravity for k, s in self.systems.items()}
        self._gravity = central_difference(gravities, self.step)
        fixed = [(eqs.position, eqs.rotation) for eqs in (self._base, *self.assemblers.values())]
        self._frames_change = geometry or not same(fixed, fixed[:1] * len(fixed))
        constants = [
            (
                *(joint.constraint for joint in s.joints),
                s.misfit,
                s.axes_signs,
                s.first,
                s.second,
                s.row_entry,
                s.row_motion,
            )
            for s in (self.system, *self.systems.values())
        ]
        self._joints_change = not same(constants, constants[:1] * len(constants))

    def irregular_bodies(self) -> dict[str, float]:
        """Return the bodies with arrays that do not change linearly, and their second differences.

        A second difference is relative to the largest number of its array.
        """
        irregular: dict[str, float] = {}
        tables = [eqs.frames.bodies for eqs in (self._base, *(self.assemblers[k] for k in FACTORS))]
        for body, member in enumerate(self._base.frames.bodies.members):
            parts = [_body_arrays(b.table[body], b.data) for b in tables]
            for column, middle in parts[0].items():
                low, high = (part[column] for part in parts[1:])
                if middle.size and low.shape == high.shape == middle.shape:
                    even, odd = (np.abs(x).max() for x in (low + high - 2 * middle, high - low))
                    size = max(np.abs(part[column]).max() for part in parts)
                    if even > max(_CURVED * odd, _NOISE * size):
                        name = self.system.bodies[member].name
                        irregular[name] = max(irregular.get(name, 0.0), float(even / size))
        return irregular

    def irregularity(self, state: State) -> float:
        """Return the second difference of the equations at a state; zero if it is small."""
        parts = []
        for eqs in (self._base, *(self.assemblers[k] for k in FACTORS)):
            eqs.put(state)
            eqs.residual(state.time)
            parts.append((eqs.rows / np.maximum(eqs.scale, 1e-300), eqs.values.copy()))
        largest = 0.0
        for middle, low, high in zip(*parts, strict=True):
            even = float(np.abs(low + high - 2 * middle).max(initial=0.0))
            odd = float(np.abs(high - low).max(initial=0.0))
            if even > max(_CURVED * odd, _NOISE):
                largest = max(largest, even)
        return largest

    def error(self, closer: MechanismChange, state: State) -> float:
        """Return the relative error of ∂R/∂p and ∂Φ/∂p at a state; `closer` has a smaller step."""
        point, largest = States([state]), 0.0
        pairs = zip(self._differences(point), closer._differences(point), strict=True)
        for long, short in pairs:  # differences with the longer and the shorter step
            size = float(np.abs(short).max(initial=0.0))
            largest = max(largest, float(np.abs(long - short).max(initial=0.0)) / max(size, 1e-300))
        return largest

    def terms(self, states: States) -> tuple[Array, Array]:
        """Return ∂R/∂p (S, nv) and ∂Φ/∂p (S, nc) at some states."""
        nv, nc = self.system.num_velocities, self.system.num_constraints
        if not self._compiled:
            return self._differences(states)
        rows, values = np.zeros((len(states.time), nv)), np.zeros((len(states.time), nc))
        for q, v, K, D in self._matrices:
            rows[:, v] += states.q[:, q] @ K.T + states.v[:, v] @ D.T
        if len(self._table):
            gravity, point = self.system.gravity, (states.q, states.v, states.a)
            inertia_forces(self._table, self._data, *point, gravity, rows)
        if self._gravity.any():
            self._add_gravity(states, rows)
        changes = self._loads_change, self._drivers_change, self._frames_change
        if any((*changes, self._joints_change)):
            parts = {k: self._wrenches(k, states) for k in FACTORS}
            wrenches = {k: wrench for k, (wrench, _) in parts.items()}
            constraints = {k: misfit for k, (_, misfit) in parts.items()}
            values += central_difference(constraints, self.step)
            if self._frames_change:
                forces = {k: self._forces(k, states, w) for k, w in wrenches.items()}
                rows += central_difference(forces, self.step)
            else:
                rows += self._forces(1, states, central_difference(wrenches, self.step))
        return rows, values

    def _add_gravity(self, states: States, rows: Array) -> None:
        """Add the gravity term of ∂R/∂p, from the derivative of the gravitational acceleration."""
        bodies = self._base.frames.bodies
        data = bodies.data.copy()
        for row in bodies.table:
            sizes = dict(enumerate(array_sizes(row), start=MASS))
            for column in _MATRICES:
                data[row[column] : row[column] + sizes[column]] = 0.0
        zero = np.zeros_like(states.v)
        inertia_forces(bodies.table, data, states.q, zero, zero, self._gravity, rows)

    def _wrenches(self, factor: int, states: States) -> tuple[Array, Array]:
        """Return the wrenches of joints and loads, and the constraints, of a changed mechanism.

        `factor` is the multiple of the step of the parameter, −1 or 1. For S states, the shapes are
        (S, frames, 6) and (S, constraints). Wrenches and constraints that do not depend on the
        parameter may be zero in the result.
        """
        s, eqs, count = self.systems[factor], self.assemblers[factor], len(states.time)
        wrenches, values = np.zeros((count, s.num_frames, 6)), np.zeros((count, s.num_constraints))
        if s.loads and (self._loads_change or self._frames_change):
            for total, t, state in zip(wrenches, states.time, states.states, strict=True):
                eqs.put(state)
                eqs.update_loaded_frames(t)
                for _, frames, wrench in eqs.loads.wrenches(t):
                    for k, frame in enumerate(frames):
                        total[frame] += wrench[6 * k : 6 * k + 6]
        if self._drivers_change or self._frames_change or self._joints_change:
            driver_angles = np.zeros((count, len(s.first)))
            offsets = np.zeros((count, s.num_constraints))
            for i, t in enumerate(states.time):
                driver_angles[i], offsets[i] = eqs.joints.driver_positions(t)
            bodies, rows = eqs.frames.bodies, eqs.joints.motion_rows
            joint_wrenches(bodies.table, bodies.data, eqs.position, eqs.rotation, states.q, s.first,
                           s.second, driver_angles, s.axes_signs, rows, offsets, states.lam,
                           wrenches, values)  # fmt: skip
            if eqs.joints.relations:
                for i, state in enumerate(states.states):
                    eqs.put(state)
                    eqs.update_poses(state.time)
                    eqs.joints.add_relations(wrenches[i], values[i], eqs.rate_scale)
        return wrenches, values

    def _forces(self, factor: int, states: States, wrenches: Array) -> Array:
        """Return the forces (S, nv) of wrenches (S, frames, 6) in the residual at S states.

        The frames are those of the mechanism at the multiple `factor` of the step.
        """
        bodies, rows = self.assemblers[factor].frames.bodies, np.zeros(states.v.shape)
        wrench_forces(bodies.table, bodies.data, states.q, wrenches, rows)
        return rows

    def _differences(self, states: States) -> tuple[Array, Array]:
        """Return ∂R/∂p and ∂Φ/∂p as differences of the complete equations."""
        rows, values = [], []
        for state in states.states:
            for eqs in self.assemblers.values():
                eqs.put(state)
                eqs.residual(state.time)
            rows.append(
                central_difference({k: eqs.rows for k, eqs in self.assemblers.items()}, self.step)
            )
            values.append(
                central_difference({k: eqs.values for k, eqs in self.assemblers.items()}, self.step)
            )
        return np.array(rows), np.array(values)


def _body_arrays(row: Array, data: Array) -> dict[int, Array]:
    """Return the arrays of a body by their columns in the table of bodies."""
    sizes = array_sizes(row)  # type: ignore[arg-type]
    starts = [int(start) for start in row[MASS : MASS + len(sizes)]]
    return {
        MASS + k: data[start : start + size]
        for k, (start, size) in enumerate(zip(starts, sizes, strict=True))
    }


def same(left: Any, right: Any, depth: int = 0) -> bool:
    """Return whether two objects are equal in all their numbers and functions.

    Functions are equal if they have the same code and equal defaults and closures. Objects whose
    contents are unknown are equal only if they are identical.
    """
    if left is right:
        return True
    if type(left) is not type(right) or depth > _DEPTH:
        return False
    if isinstance(left, (np.generic, types.CodeType, *_PLAIN)):
        return bool(left == right)
    if isinstance(left, np.ndarray):
        return left.dtype != object and np.array_equal(left, right)
    if isinstance(left, (list, tuple)) and _is_table(left):
        return bool(left == right)
    first, second = _contents(left), _contents(right)
    if first is None or second is None or len(first) != len(second):
        return False
    return all(same(a, b, depth + 1) for a, b in zip(first, second, strict=True))


def _is_table(items: Sequence[Any]) -> bool:
    """Return whether a sequence contains only plain values, or sequences of plain values."""
    kinds = set(map(type, items))
    if kinds <= {list, tuple}:
        kinds = {kind for item in items for kind in map(type, item)}
    return kinds <= set(_PLAIN)


def _contents(item: Any) -> list[Any] | None:
    """Return the parts on which an object depends, or None if they are unknown."""
    if isinstance(item, (list, tuple)):
        return list(item)
    if isinstance(item, dict):
        return [part for pair in item.items() for part in pair]
    if isinstance(item, types.MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, functools.partial):
        return [item.func, item.args, item.keywords]
    if isinstance(item, types.FunctionType):
        cells = [cell.cell_contents for cell in item.__closure__ or ()]
        return [item.__defaults__, item.__kwdefaults__, item.__code__, *cells]
    kinds = type(item).__mro__[:-1]
    if not all(map(_in_python, kinds)):
        return None
    names = {name for kind in kinds for name in vars(kind).get("__slots__", ())}
    slots = [getattr(item, name, None) for name in sorted(names - {"__dict__", "__weakref__"})]
    return [dict(getattr(item, "__dict__", {})), *slots]


def _in_python(kind: type) -> bool:
    """Return whether a class is written in Python, so that its attributes describe it.

    Instances of other classes in a Python module, such as `collections.deque`, have neither
    attributes nor slots.
    """
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    described = kind.__dictoffset__ != 0 or "__slots__" in vars(kind)
    return described and (kind.__module__ == "__main__" or file.endswith(".py"))
