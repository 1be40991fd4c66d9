"""Unknowns in the bodies of a mechanism that are condensed to the frames of these bodies.

A mesh body has far more unknowns than frames. It condenses the unknowns of its free
nodes in every iteration of a step, so that the equations of the mechanism contain only its frames.
Such a body has a method `step_solver`, which returns an object with the methods that are called
here; see `dolfinx_mbd.structures.mesh_bodies.step_unknowns.StepUnknowns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.step_errors import StepError
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["InternalUnknowns"]


class InternalUnknowns:
    """The unknowns of all bodies of a system that condense a part of their unknowns.

    Args:
        system: The mechanism.
        parameters: α_m, α_f, β and γ of the method.
        conserves: Whether the method conserves energy and momentum.
    """

    def __init__(self, system: System, parameters: Array, *, conserves: bool = False) -> None:
        self._parameters = parameters
        self._parts: list[tuple[Any, slice, slice]] = [
            (body.step_solver(), q, v)
            for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True)
            if hasattr(body, "step_solver")
        ]
        for part, *_ in self._parts:
            part.conserves = conserves

    def __bool__(self) -> bool:
        return bool(self._parts)

    @contextmanager
    def step(
        self, eqs: Assembler, state: State, dt: float, derivatives: Sequence[float]
    ) -> Iterator[None]:
        """Predict the unknowns; within the block, the bodies eliminate them.

        Args:
            eqs: Assembler of the step.
            state: State before the step.
            dt: Time step, s.
            derivatives: See `dolfinx_mbd.dynamics.stepping.formulas.Derivatives`.

        Raises:
            StepError: A matrix is not positive definite, or a cell is inverted after the step.
        """
        memory, t = self._split(state), state.time + dt
        try:
            for (part, q, _), values in zip(self._parts, memory, strict=True):
                part.predict(state.q[q], values, self._parameters, dt, derivatives)
                part.start_condensation()
            yield
        except StepError:
            raise
        except SolverError as error:
            raise StepError(
                f"the step from t = {state.time:.6g} s to {t:.6g} s (dt = {dt:g} s) fails: {error}"
                f"{self.inverted(eqs)}. A mesh body is compressed too strongly, or dt is "
                "too large",
                t,
            ) from error
        finally:
            for part, *_ in self._parts:
                part.end_condensation()
        if text := self.inverted(eqs):
            raise StepError(f"the step to t = {t:.6g} s (dt = {dt:g} s) fails{text}", t)

    def put(self, eqs: Assembler) -> None:
        """Write the unknowns into the coordinates of an assembler, after its frames moved."""
        for part, q, v in self._parts:
            part.put(eqs.q[q], eqs.v[v], eqs.a[v])

    def error(self, tolerance: float) -> float:
        """Return the largest ratio of a residual of the unknowns to its tolerance."""
        return max((part.error(tolerance) for part, *_ in self._parts), default=0.0)

    def add_error(self, error: float) -> None:
        """Record the error of an iteration, relative to the tolerance."""
        for part, *_ in self._parts:
            part.add_error(error)

    def refactorize_if_slow(self, eqs: Assembler) -> bool:
        """Compute new matrices of bodies if the errors decrease slowly; return whether it did."""
        return any([part.refactorize_if_slow(eqs.q[q]) for part, q, _ in self._parts])

    def correct(self, delta: Array) -> float:
        """Correct the unknowns after increments (nv,); return the largest correction, m."""
        return max((part.correct(delta[v]) for part, _, v in self._parts), default=0.0)

    def inverted(self, eqs: Assembler) -> str:
        """Return a text about inverted cells of the bodies; empty if there are none."""
        return "".join(part.inverted(eqs.q[q]) for part, q, _ in self._parts)

    # ---- statics --------------------------------------------------------------------------------
    @contextmanager
    def statics(self, q: Array) -> Iterator[None]:
        """Start at rest at the coordinates q; within the block, without inertia forces.

        Within the block, the bodies eliminate their free nodes in the equations of their frames.
        """
        try:
            for part, qs, _ in self._parts:
                part.start_at_rest(q[qs].copy())
                part.start_condensation()
            yield
        finally:
            for part, *_ in self._parts:
                part.end_condensation()

    def factorize(self, eqs: Assembler) -> None:
        """Compute the matrices of the bodies at the coordinates of an assembler."""
        for part, q, _ in self._parts:
            part.factorize_at(eqs.q[q])

    def static_unknowns(self) -> list[Any]:
        """Return the unknowns of all bodies in a static iteration."""
        return [part.static_unknowns for part, *_ in self._parts]

    def return_to(self, unknowns: list[Any]) -> None:
        """Return to the result of an earlier call of `static_unknowns`."""
        for (part, *_), values in zip(self._parts, unknowns, strict=True):
            part.static_unknowns = values

    def set_spin(self, spin: Array) -> None:
        """Set the angular velocity (3,) of a steady rotation of the nodes, rad/s."""
        for part, *_ in self._parts:
            part.spin = spin

    def rotate(self, R: Array) -> None:
        """Rotate the nodes of all bodies by a rotation matrix (3, 3) about the global origin."""
        for part, *_ in self._parts:
            part.rotate(R)

    def store_offset(self) -> None:
        """Store the present unbalanced forces of the nodes."""
        for part, *_ in self._parts:
            part.store_offset()

    def set_offset(self, factor: float) -> None:
        """Subtract the stored forces, times a factor, from the forces of the nodes."""
        for part, *_ in self._parts:
            part.offset_factor = factor

    # ---- memory ---------------------------------------------------------------------------------

    def initial_memory(self, state: State) -> dict[str, Array]:
        """Return the entry of `State.memory` for a start without earlier steps."""
        if not self._parts:
            return {}
        return self._joined([part.initial_memory(state.q[q]) for part, q, _ in self._parts])

    def memory(self) -> dict[str, Array]:
        """Return the entry of `State.memory` after a step."""
        return self._joined([part.memory() for part, *_ in self._parts]) if self._parts else {}

    def rescaled(self, state: State, ratio: float) -> dict[str, Array]:
        """Return the entry of `State.memory` for steps that are longer by a ratio."""
        parts = zip(self._parts, self._split(state), strict=True)
        return self._joined([p.rescaled(state.q[q], values, ratio) for (p, q, _), values in parts])

    def without_history(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Return the memory of a state without accelerations and multipliers of earlier steps."""
        nodes = memory["nodes"].copy()
        nodes[1:] = np.nan  # the first row contains the present accelerations and multipliers
        others = {name: value for name, value in memory.items() if name != "earlier"}
        return others | {"nodes": nodes}

    def local_error(self, before: State, after: State, factor: float) -> float:
        """Return the largest local error of the displacements of a body in a step, m."""
        errors = [p.local_error(before.q[q], after.q[q], factor) for p, q, _ in self._parts]
        return max(errors, default=0.0)

    def factor_memory(self) -> dict[str, Array]:
        """Return the arrays by name from which `restore` computes equal matrices."""
        return {
            f"nodes_{k}_{name}": values
            for k, (part, *_) in enumerate(self._parts)
            for name, values in part.factor_memory().items()
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Compute the matrices that `factor_memory` describes."""
        for k, (part, *_) in enumerate(self._parts):
            prefix = f"nodes_{k}_"
            names = [name for name in memory if name.startswith(prefix)]
            part.restore({name.removeprefix(prefix): np.asarray(memory[name]) for name in names})

    def _joined(self, parts: list[Array]) -> dict[str, Array]:
        return {"nodes": np.concatenate(parts, axis=1)}

    def _split(self, state: State) -> list[Array]:
        """Return the memory of each body, (3, n); see `StepUnknowns.initial_memory`."""
        parts, first = [], 0
        for part, q, _ in self._parts:
            like = part.initial_memory(state.q[q])
            if "nodes" not in state.memory:
                parts.append(like)
                continue
            values = state.memory["nodes"][:, first : first + like.shape[1]]
            parts.append(np.ascontiguousarray(values))
            first += like.shape[1]
        return parts
