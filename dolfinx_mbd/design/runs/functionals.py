"""Numbers that summarize an output of a run, and their derivatives with respect to the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, instance, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.results.outputs import Output, Outputs
from dolfinx_mbd.results.solution import Solution

_KINDS = ("final", "mean", "norm")


@dataclass(frozen=True, eq=False)
class Functional:
    """A number that summarizes an output y(t) of a run, for `run_gradient`.

    Attributes:
        output: Name of a single number as in `simulate`, for example ``pin.force.y``; or a function
            of a `Solution` at some of the times, which returns one number per time, (nt,). The
            function must be smooth. The value at one time may depend on the state at this time
            only.
        kind: ``final``: value at the end. ``mean``: mean over time. ``norm``: the p-norm
            (mean of |y|^p)^(1/p), which tends to the peak of |y| from below for p → ∞.
        order: Order p of the norm, at least 2.

    Raises:
        InputError: The kind or the order is invalid.

    Example:
        >>> peak = mbd.design.Functional("pin.force.y", "norm", order=16)
        >>> angle = mbd.design.Functional(lambda run: run.joint("pin").rotation, "final")
    """

    output: str | Output
    kind: Literal["final", "mean", "norm"] = "final"
    order: float = 8.0

    def __post_init__(self) -> None:
        if not (isinstance(self.output, str) and self.output) and not callable(self.output):
            reject("output", self.output, "a name such as 'pin.force.y', or a function of a run")
        choice("kind", self.kind, _KINDS)
        number("order", self.order, low=2.0)

    def of(self, run: Solution) -> float:
        """Return the value of the functional for a run.

        Args:
            run: A run. It should contain all steps, as in `run_gradient`.

        Example:
            >>> print(f"{mbd.design.Functional('bob.omega.z', 'final').of(run):.3f} rad/s")
            -4.234 rad/s
        """
        instance("run", run, Solution, "a run")
        request = [self.output] if isinstance(self.output, str) else {"output": self.output}
        return evaluate(self, run.time, Outputs(request).of(run)[:, 0])[0]


def evaluate(functional: Functional, time: Array, output: Array) -> tuple[float, Array]:
    """Return the value of a functional, and its derivatives (nt,) with respect to the output.

    Args:
        functional: The functional.
        time: Saved times, shape (nt,), s.
        output: Values of the output, shape (nt,).

    Raises:
        InputError: The norm of an output that is zero is not differentiable.
    """
    order, weights = functional.order, np.zeros(len(time))
    if functional.kind == "final":
        weights[-1] = 1.0
    else:
        # Trapezoidal rule: each time step contributes to the weights of both its ends
        halves = 0.5 * np.diff(time) / (time[-1] - time[0])
        weights[:-1] += halves
        weights[1:] += halves
    if functional.kind != "norm":
        return float(weights @ output), weights
    largest = float(np.abs(output).max())
    if largest == 0.0:
        name = f" {functional.output!r}" if isinstance(functional.output, str) else ""
        raise InputError(
            f"the norm of the output{name}, which is zero at all times, is not differentiable",
            argument="functional",
        )
    relative = output / largest
    mean = float(weights @ np.abs(relative) ** order)
    slopes = weights * np.sign(relative) * np.abs(relative) ** (order - 1)
    return largest * mean ** (1 / order), mean ** (1 / order - 1) * slopes
