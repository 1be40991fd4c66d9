"""What a parameter study gives back: a table of results by name, shaped as the grid of cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.studies.plan import Plan, as_array, shown
from dolfinx_mbd.multibody.studies.study_files import load_study, save_study, write_study_csv

__all__ = ["Case", "Study"]


@dataclass(frozen=True, eq=False)
class Case:
    """One case of a study.

    Attributes:
        index: Its number in the whole study.
        parameters: Its parameters by name.
        values: Its results by name; empty if it is not done.
        error: What went wrong, in words, or None.
        traceback: Where it went wrong.
        seconds: How long it took.
        done: Whether it came to its end, well or not; False for one that was not begun.
    """

    index: int
    parameters: Mapping[str, Any]
    values: Mapping[str, NDArray[Any]]
    error: str | None = None
    traceback: str = ""
    seconds: float = 0.0
    done: bool = True

    @property
    def status(self) -> Literal["done", "failed", "missing"]:
        """What became of it."""
        if not self.done:
            return "missing"
        return "done" if self.error is None else "failed"

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={shown(v)}" for name, v in self.parameters.items())
        return f"case {self.index} ({parameters})"


class Study:
    """Cases and their results: ``study["peak"]`` is an array shaped as the grid of parameters.

    Attributes:
        plan: Parameters and how they are combined.
        cases: Of each a :class:`Case`, the last parameter running fastest.
        function: Name of what was run.
    """

    def __init__(self, plan: Plan, cases: Sequence[Case], function: str) -> None:
        self.plan, self.cases, self.function = plan, tuple(cases), function
        if len(self.cases) != len(plan):
            raise InputError(f"expected {len(plan)} cases, got {len(self.cases)}")

    @property
    def parameters(self) -> dict[str, NDArray[Any]]:
        """Values of each parameter, one axis of the grid each."""
        return {name: as_array(values) for name, values in self.plan.values.items()}

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the grid; of cases side by side their number."""
        return self.plan.shape

    @property
    def complete(self) -> bool:
        """Whether every case came to its end, well or not."""
        return all(case.done for case in self.cases)

    @property
    def failed(self) -> tuple[Case, ...]:
        """Cases that went wrong."""
        return tuple(case for case in self.cases if case.status == "failed")

    def __len__(self) -> int:
        return len(self.cases)

    def names(self) -> list[str]:
        """Names of all results."""
        return list(dict.fromkeys(name for case in self.cases for name in case.values))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A result over the grid, shape (..., as the result itself); or a parameter over it.

        Where a case failed or is missing: NaN (of strings, an empty one).

        Raises:
            KeyError: If there is neither a result nor a parameter of this name.
            ValueError: If its shapes differ from case to case.
        """
        if name in self.plan.values or name in self.plan.held:
            rows = as_array([case.parameters[name] for case in self.cases])
            return rows.reshape((*self.shape, *rows.shape[1:]))
        given = [case.values.get(name) for case in self.cases]
        some = [value for value in given if value is not None]
        if not some:
            known = ", ".join(map(repr, [*self.plan.values, *self.names()]))
            failed = "; every case failed" if len(self.failed) == len(self) else ""
            raise KeyError(f"unknown name {name!r}; the study has {known}{failed}")
        shapes = sorted({value.shape for value in some})
        if len(shapes) > 1:
            raise InputError(
                f"{name!r} has other shapes in other cases ({', '.join(map(str, shapes[:3]))}): "
                f"take it from each case, study.cases[k].values[{name!r}]"
            )
        dtype = np.result_type(*some)
        if len(some) < len(given) and dtype.kind in "biu":
            dtype = np.dtype(float)
        table = np.zeros((len(given), *shapes[0]), dtype)
        for k, value in enumerate(given):
            if value is not None:
                table[k] = value
            elif dtype.kind in "fc":
                table[k] = np.nan
        return table.reshape((*self.shape, *shapes[0]))

    def at(self, **values: Any) -> Study:
        """The part of the study with these values: ``study.at(speed=300.0)["peak"]``.

        A value takes its parameter's axis away, a list of values keeps it. Numbers are found to a
        relative 1e-9.

        Raises:
            ValueError: If a parameter or a value is unknown.
        """
        own, held = self.plan.values, dict(self.plan.held)
        for name in values:
            choice("every parameter", name, own)
        kept: NDArray[Any]
        if self.plan.combine == "zip":
            kept = np.arange(len(self))
            for name, wanted in values.items():
                kept = kept[np.isin(kept, _places(name, own[name], _several(wanted), every=True))]
            rest = {name: tuple(given[k] for k in kept) for name, given in own.items()}
        else:
            kept, rest = np.arange(len(self)).reshape(self.shape), {}
            for axis, (name, given) in reversed(list(enumerate(own.items()))):
                wanted = values.get(name, given)
                places = _places(name, given, _several(wanted))
                kept = np.take(kept, places, axis)
                if name in values and not _is_list(wanted):
                    kept = kept[(slice(None),) * axis + (0,)]
                    held[name] = given[places[0]]
                else:
                    rest = {name: tuple(given[k] for k in places)} | rest
        plan = Plan(rest, self.plan.combine, held)
        cases = [
            replace(self.cases[k], parameters=plan.case(n)) for n, k in enumerate(np.ravel(kept))
        ]
        return Study(plan, cases, self.function)

    # ---- files ----------------------------------------------------------------------------------
    def save(self, path: str | Path) -> Path:
        """Write the study to one ``.npz`` file and return its path; all of it or nothing.

        Parameters that are neither numbers nor strings (bodies) are written by their names.

        Raises:
            OSError: If the file cannot be written; one that was there before is as it was.
        """
        return save_study(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Read a study that :meth:`save` wrote, or the folder of one that :func:`sweep` writes.

        A folder may be read while the cases are being done.

        Raises:
            RunFileError: If it is no study, damaged, or of a newer version.
            OSError: If it cannot be read.
        """
        return load_study(path)

    def to_csv(self, path: str | Path, names: Sequence[str] | None = None) -> Path:
        """Write a line for each case as comma-separated values, and return the path.

        Args:
            path: Of the file.
            names: Results to write, each entry of an array in a column; None: those of at most 12
                entries.

        Raises:
            ValueError: If a name is unknown.
            OSError: If the file cannot be written; one that was there before is as it was.
        """
        return write_study_csv(self, path, names)

    # ---- for a person ---------------------------------------------------------------------------
    def __repr__(self) -> str:
        count = {"done": 0, "failed": 0, "missing": 0}
        for case in self.cases:
            count[case.status] += 1
        grid = " × ".join(f"{name} ({len(v)})" for name, v in self.plan.values.items())
        states = ", ".join(f"{number} {status}" for status, number in count.items() if number)
        return f"<Study of {self.function}: {grid}; {states}>"

    def __str__(self) -> str:
        lines = [repr(self)[1:-1], *(f"  {name}: {self._range(name)}" for name in self.names())]
        lines += [f"  {case} failed: {case.error}" for case in self.failed[:5]]
        if len(self.failed) > 5:
            lines.append(f"  and {len(self.failed) - 5} more failed")
        return "\n".join(lines)

    def _range(self, name: str) -> str:
        """Where a number is least and greatest; of anything else its shapes."""
        cases = [case for case in self.cases if name in case.values]
        values = [case.values[name] for case in cases]
        if any(value.ndim or value.dtype.kind not in "iuf" for value in values):
            return f"shape {', '.join(map(str, sorted({value.shape for value in values})))}"
        ends = [(float(values[k]), cases[k]) for k in (np.argmin(values), np.argmax(values))]
        return " to ".join(f"{value:.5g} in {case}" for value, case in ends)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _several(value: Any) -> list[Any]:
    return list(value) if _is_list(value) else [value]


def _places(
    name: str, given: Sequence[Any], wanted: Sequence[Any], *, every: bool = False
) -> list[int]:
    """Where the wanted values are: the first place of each, or every place."""
    found = []
    for value in wanted:
        places = [k for k, own in enumerate(given) if _same(own, value)]
        if not places:
            known = ", ".join(shown(own) for own in given[:20])
            raise InputError(f"{name} has no value {shown(value)}; it has {known}")
        found += places if every else places[:1]
    return found


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    numbers = (int, float, complex, np.number)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return bool(np.isclose(one, other, rtol=1e-9, atol=0.0))
    return type(one) is type(other) and bool(np.all(one == other))
