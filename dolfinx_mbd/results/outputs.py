"""Outputs of a mechanism: quantities by name, or functions of a solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, function, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.results.solution import Solution
from dolfinx_mbd.results.tables import INTEGRATED, component, label, unit_of

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
            values = self._values(name, solution)
            if name not in self.functions and name.rpartition(".")[2] in INTEGRATED:
                hint = "work depends on earlier times: add up the power of each step"
                reject("outputs", name, "quantities at one time", hint=hint)
            whole = values.get(name)
            if whole is None or whole.ndim != 1:
                parts = (component(key, v) for key, v in values.items() if v.ndim == 2)
                example = next(parts, "pin.force.x")
                reject("outputs", name, f"numbers: a quantity or a component such as {example}")
            columns[:, k] = whole
        return columns

    def units(self, solution: Solution) -> dict[str, str]:
        """Return the units of outputs that are single numbers by name; "" for functions."""
        units = dict.fromkeys(self.names, "")
        for name in self.names:
            if name not in self.functions:
                units |= {
                    label(part, key): unit_of(key, values)
                    for part, key, values in solution._arrays([name])
                }
        return units

    def arrays(self, solution: Solution) -> dict[str, Array]:
        """Return the values of all outputs over time by name, as in `Solution.histories`.

        Integrals over time, such as the work of a load, are replaced by the quantities from which
        `SavedOutputs` computes them.
        """
        arrays: dict[str, Array] = {}
        for name in self.names:
            part, _, key = name.rpartition(".")
            requests = [name]
            if name not in self.functions and part and key in INTEGRATED:
                requests = [f"{part}.{source}" for source in INTEGRATED[key]]
            try:
                values = [self._values(request, solution) for request in requests]
            except InputError:
                values = [self._values(name, solution)]  # the message contains the requested name
            for items in values:
                arrays |= items
        for key in [*arrays]:
            if key.rpartition(".")[2] in INTEGRATED and key not in self.functions:
                del arrays[key]
        return arrays

    def _values(self, name: str, solution: Solution) -> dict[str, Array]:
        if name not in self.functions:
            return {label(part, key): v for part, key, v in solution._arrays([name])}
        value = np.asarray(self.functions[name](solution))
        if value.shape != (len(solution),):
            expected = f"one number for each time, shape {(len(solution),)}"
            reject(f"outputs[{name!r}]", value, expected)
        return {name: array(f"outputs[{name!r}]", value)}
