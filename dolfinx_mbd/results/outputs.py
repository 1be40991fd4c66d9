"""Outputs of a mechanism: quantities by name, or functions of a solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, function, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.run_quantities import RunQuantity
from dolfinx_mbd.results.series import INTEGRALS, Series
from dolfinx_mbd.results.solution import Solution

__all__ = ["Output", "Outputs", "Requests"]

Array = NDArray[np.float64]

Output = Callable[[Solution], ArrayLike]
"""Function of a solution that returns one number for each saved time, shape (nt,)."""

Requests = Sequence[str] | Mapping[str, Output]
"""Names of outputs, or functions by name."""


class Outputs:
    """Named quantities or functions of a solution.

    A name denotes a part, such as ``pin``, a quantity, such as ``pin.force``, or a component, such
    as ``pin.force.x``, as in `Solution.histories` and in tables.

    Args:
        requests: Names; or functions of a `Solution` by name, each of which returns one number per
            time, shape (nt,).

    Example:
        >>> outputs = Outputs({"speed": lambda run: run.body("bob").omega[:, 2]})
        >>> bool((outputs.of(run) == Outputs(["bob.omega.z"]).of(run)).all())
        True
    """

    def __init__(self, requests: Requests | None) -> None:
        self.functions: dict[str, Output] = {}
        if isinstance(requests, Mapping):
            for name, output in requests.items():
                checked_name("every name of outputs", name)
                function(f"outputs[{name!r}]", output, "a function of a solution")
            self.functions = dict(requests)
            requests = [*requests]
        self.names = checked_names("outputs", () if requests is None else requests)

    def of(self, solution: Solution) -> Array:
        """Return the values over time of outputs that are single numbers, (nt, outputs)."""
        columns = np.empty((len(solution), len(self.names)))
        for k, name in enumerate(self.names):
            items = self._series(name, solution)
            if name not in self.functions and name.rpartition(".")[2] in INTEGRALS:
                hint = "work depends on earlier times: add up the power of each step"
                reject("outputs", name, "quantities at one time", hint=hint)
            numbers = [s.values for s in items if s.name == name and s.values.ndim == 1]
            if not numbers:
                vectors = (series for series in items if series.values.ndim == 2)
                parts = (next(series.components()).name for series in vectors)
                example = next(parts, "pin.force.x")
                reject("outputs", name, f"numbers: a quantity or a component such as {example}")
            (columns[:, k],) = numbers
        return columns

    def units(self, solution: Solution) -> dict[str, str]:
        """Return the units of outputs that are single numbers by name; "" for functions."""
        series = [s for name in self.names for s in self._series(name, solution)]
        return {name: "" for name in self.names} | {s.name: s.unit for s in series}

    def arrays(self, solution: Solution) -> dict[str, Array]:
        """Return the values of all outputs over time by name, as in `Solution.histories`.

        Integrals over time, such as the work of a load, are replaced by the quantities from which
        `SavedOutputs` computes them.
        """
        arrays: dict[str, Array] = {}
        for name in self.names:
            part, _, key = name.rpartition(".")
            requests = [name]
            if name not in self.functions and part and key in INTEGRALS:
                requests = [f"{part}.{source}" for source in INTEGRALS[key].sources]
            try:
                items = [s for request in requests for s in self._series(request, solution)]
            except InputError:
                items = self._series(name, solution)  # the message contains the requested name
            arrays |= {s.name: s.values for s in items if not s.part or s.key not in INTEGRALS}
        return arrays

    def _series(self, name: str, solution: Solution) -> list[Series]:
        """Return the quantities that a name denotes, or the values of a function."""
        if name not in self.functions:
            return [*solution._series([name])]
        value = np.asarray(self.functions[name](solution))
        if value.shape == (len(solution),) and value.dtype == float and np.isfinite(value).all():
            return [Series("", name, RunQuantity(""), value)]
        if value.shape != (len(solution),):
            expected = f"one number for each time, shape {(len(solution),)}"
            reject(f"outputs[{name!r}]", value, expected)
        return [Series("", name, RunQuantity(""), array(f"outputs[{name!r}]", value))]
