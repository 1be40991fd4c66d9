"""Changes of a state between two steps: another length of the step, or a jump of the loads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dolfinx_mbd.dynamics.assembly.loads import CONTENT_MEMORY
from dolfinx_mbd.dynamics.assembly.rates import restart
from dolfinx_mbd.dynamics.stepping.corrections import Corrector
from dolfinx_mbd.dynamics.stepping.formulas import AlphaFormulas, resample
from dolfinx_mbd.dynamics.stepping.internal_unknowns import InternalUnknowns
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["after_jump", "content_memory", "rescaled", "rescaled_with_nodes"]


def rescaled(system: System, formulas: AlphaFormulas, state: State, dt: float, new: float) -> State:
    """Return the state after a step of length `dt` for a step of length `new` (s).

    See `Stepper.rescaled`.
    """
    # `constrained` and `by_positions` are jerks due to constraints; `free` is the part of the
    # difference of accelerations that the constraints do not determine
    consistent, constrained, free, by_positions = restart(
        system, state, dt, state.memory["algorithmic"] - state.a
    )
    acceleration_offset, velocity_offset = formulas.start_offsets(new)
    memory = {
        "algorithmic": consistent.a + (new / dt) * free + acceleration_offset * constrained,
        "velocity": consistent.v + velocity_offset * by_positions,
        "earlier": resample(state, new / dt),
        **content_memory(state),
    }
    return replace(consistent, memory=memory)


def rescaled_with_nodes(internal: InternalUnknowns, state: State, ratio: float) -> State:
    """Return the state for steps that are longer by a ratio, with the memory of mesh bodies."""
    memory = {
        "algorithmic": state.a + ratio * (state.memory["algorithmic"] - state.a),
        **internal.rescaled(state, ratio),
        **content_memory(state),
    }
    if "earlier" in state.memory:
        memory["earlier"] = resample(state, ratio)
    return replace(state, memory=memory)


def after_jump(corrector: Corrector, formulas: AlphaFormulas, state: State, dt: float) -> State:
    """Return the state for the next step after a jump of the loads; see `Stepper.after_jump`."""
    eqs, t = corrector.eqs, state.time
    eqs.put(state)
    eqs.update_loads(t)
    loads = eqs.wrenches.copy()
    algorithmic = state.memory["algorithmic"].copy()
    if not corrector.has_factor_for(dt):
        eqs.residual_of_accelerations(t, loads)
        corrector.refactor(t, dt, np.zeros(len(state.v)), formulas.derivatives(dt))
    corrector.correct_accelerations(t, loads, algorithmic)
    a, lam = eqs.a.copy(), eqs.lam.copy()
    memory = state.memory | {"algorithmic": algorithmic}
    if "earlier" in memory:
        change = a - state.a, lam - state.lam  # the history jumps by the same amount
        memory["earlier"] = tuple([(x + change[0], y + change[1]) for x, y in memory["earlier"]])
    return State(t, state.q, state.v, a, lam, state.angles, memory)


def content_memory(state: State) -> dict[str, Any]:
    """Return the contents of oil films in the memory of a state."""
    return {key: state.memory[key] for key in CONTENT_MEMORY if key in state.memory}
