"""Errors of time steps, with the equation or the body that is the likely cause."""

from __future__ import annotations

from typing import Any

import numpy as np

from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import System

__all__ = ["StepError", "check_conserving", "failed_step", "far_frames"]

_FAR = 20.0  # largest distance of a body's frame without a remark, in radii of gyration


class StepError(SolverError):
    """A time step that does not converge.

    The attribute `time` is the time that could not be reached, s. If `simulate` raised the error,
    `solution` contains the results before that time.
    """

    def __init__(self, message: str, time: float) -> None:
        super().__init__(message)
        self.time = time
        self.solution: object | None = None


def failed_step(t: float, dt: float, eqs: Assembler, remarks: str) -> StepError:
    """Return the error of a step to time t that does not converge.

    Args:
        t: Time at the end of the step, s.
        dt: Time step, s.
        eqs: Assembler at the last iteration.
        remarks: Further texts about the cause.
    """
    s, reason = eqs.system, ""
    if len(eqs.values):
        row = int(np.argmax(np.abs(np.nan_to_num(eqs.values, nan=np.inf))))
        reason = f"{s.constraint_name(row)} is off by {abs(eqs.values[row]):.3g} m or rad; "
    relative = np.abs(np.nan_to_num(eqs.rows, nan=np.inf)) / np.maximum(eqs.scale, 1e-300)
    row = int(np.argmax(relative))
    reason += f"the largest residual is {abs(eqs.rows[row]):.3g} N or N m, {s.row_name(row)}"
    return StepError(
        f"the step from t = {t - dt:.6g} s to {t:.6g} s (dt = {dt:g} s) does not converge: "
        f"{reason}{remarks}. Try a smaller dt; if that fails, "
        "look for a singular position, a load that jumps, or a body that is too soft",
        t,
    )


def check_conserving(system: System) -> None:
    """Raise an InputError if a conserving step does not apply to a body of a system."""
    body: Any
    for body in system.bodies:
        if not body.num_velocities:
            continue
        problem = ""
        if not hasattr(body, "step_solver"):
            problem = "is not a mesh body"
        elif body.frame_names:
            names = ", ".join(map(repr, body.frame_names))
            problem = f"has interfaces ({names}), which joints or loads may hold"
        if problem:
            raise InputError(
                "GeneralizedAlpha.conserving() is for mesh bodies without interfaces in free "
                f"flight; body {body.name!r} {problem}. Use another method, for example "
                "GeneralizedAlpha.from_spectral_radius(1.0)",
                argument="method",
                value=body.name,
            )


def far_frames(system: System) -> str:
    """Return a text about bodies whose frames are so far away that round-off may stop a step."""
    text = ""
    for body in system.bodies:
        distance, size = body.origin_distance() if isinstance(body, FloatingBody) else (0.0, 1.0)
        if distance > _FAR * size:
            text += (
                f"; the origin of the frame of body {body.name!r} is {distance:.3g} m from its "
                "centre of mass, which increases round-off: describe the body in a frame near its "
                "centre of mass (for a mesh, translate its points before the reduction)"
            )
    return text
