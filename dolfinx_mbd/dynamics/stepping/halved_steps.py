"""Steps that are halved if they fail.

A load or a body declares with `halves_steps` that its steps may fail although shorter ones
succeed: the film of a journal that approaches a bore fast, a mesh under a sudden load.
"""

from __future__ import annotations

from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.dynamics.stepping.step_errors import StepError
from dolfinx_mbd.mechanism.system import State

__all__ = ["step_or_halves"]

_STEP_HALVINGS = 6  # largest number of halvings of a step


def step_or_halves(stepper: Stepper, state: State, dt: float, halvings: int | None = None) -> State:
    """Return the state after a step, or after two halves or parts of them if the step fails.

    Args:
        stepper: The method of time integration.
        state: State that `Stepper.begin` or a step returned.
        dt: Time step, s.
        halvings: Largest number of halvings; by default 6.

    Raises:
        StepError: The whole step and its parts fail; the error is that of the whole step.
    """
    halvings = _STEP_HALVINGS if halvings is None else halvings
    try:
        return stepper.step(state, dt)
    except StepError:
        if not (stepper.halves_steps and halvings):
            raise
        try:
            return _two_halves(stepper, state, dt, halvings)
        except StepError:
            pass
        raise  # the error of the whole step names the cause


def _two_halves(stepper: Stepper, state: State, dt: float, halvings: int) -> State:
    """Return the state after two halves of a step, prepared for another step of length dt."""
    stepper.halvings += 1
    half = 0.5 * dt
    state = stepper.rescaled(state, dt, half)
    for _ in range(2):
        state = step_or_halves(stepper, stepper.without_history(state), half, halvings - 1)
    return stepper.rescaled(state, half, dt)
