"""Reading of model files: mechanisms and analyses without a script."""

from __future__ import annotations

import keyword
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dolfinx_mbd.checks import file_path, instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.models.declarations import declared_fields
from dolfinx_mbd.io.models.documents import (
    SUFFIXES,
    Document,
    ModelFileError,
    Place,
    read_document,
    unknown,
)
from dolfinx_mbd.io.models.kinds import ANALYSES, SECTIONS
from dolfinx_mbd.io.models.mesh_parts import SPECIAL
from dolfinx_mbd.io.models.values import NO_KIND, EntryError, Reader, place_of
from dolfinx_mbd.mechanism import System
from dolfinx_mbd.mechanism.expressions.unit_expressions import RESERVED, number, unit_of

__all__ = ["FORMAT", "OPTIONS", "RESULTS", "Model", "read_model"]

FORMAT = 1
"""Version of the format of model files, their entry `model`."""

OPTIONS = ("system", "progress", "path", "state")
"""Arguments of the analyses that a model file does not contain."""

RESULTS = {
    "csv": "Table of the histories, run.csv or cycle.csv.",
    "netcdf": "Dataset of the histories, run.nc or cycle.nc.",
    "page": "Interactive page, run.html or cycle.html.",
    "picture": "Picture of the mechanism at the start, mechanism.png.",
}
"""Files that a run can write."""

_POSITIVE = {"dt", "t_end", "period", "tolerance"}
"""Arguments of the analyses that are positive if they are numbers."""

_OTHER_SECTIONS = ("model", "title", "parameters", "gravity", "results", "sweep")


@dataclass(frozen=True, eq=False)
class Model:
    """The contents of a model file.

    Attributes:
        title: Title.
        parameters: Values of the parameters by name, in SI units.
        system: The mechanism.
        analyses: Arguments of the analyses by name: ``simulate``, ``equilibrium``, ``linearize``,
            ``periodic``.
        results: Names of the files that a run writes; see `RESULTS`.
        sweep: Lists of values by the name of a parameter, for a study; empty without one.
    """

    title: str
    parameters: Mapping[str, float]
    system: System
    analyses: Mapping[str, Mapping[str, Any]]
    results: tuple[str, ...]
    sweep: Mapping[str, list[float]]


def read_model(
    path: str | os.PathLike[str], parameters: Mapping[str, float | str] | None = None
) -> Model:
    """Read a model file in YAML, TOML or JSON and build its mechanism.

    Args:
        path: File with the suffix .yaml, .yml, .toml or .json.
        parameters: Values that replace those of the file, by name; numbers in SI units, or texts
            with a unit such as ``600rpm``.

    Returns:
        The mechanism and its analyses.

    Raises:
        ModelFileError: The file has errors; the message has a line with file, line number, entry,
            cause and cure for each of them.
        InputError: `parameters` has a name that is no parameter of the file.
        MissingFileError: The file does not exist.

    Note: Collective over `MPI.COMM_WORLD` if the file contains a mesh that must be reduced.

    Example:
        >>> from pathlib import Path
        >>> text = "{model: 1, bodies: {bob: {type: box, size: [1m, 5cm, 5cm], mass: 2kg}}}"
        >>> path = Path("bob.yaml")
        >>> _ = path.write_text(text)
        >>> from dolfinx_mbd.io.models import read_model
        >>> read_model(path).system.bodies[0].mass
        2.0
    """
    path = file_path("path", path, SUFFIXES)
    overrides = instance("parameters", {} if parameters is None else parameters, Mapping)
    return _Builder(read_document(path), overrides).model()


class _Builder:
    """Construction of a model; it collects the errors of all entries.

    Args:
        document: The document.
        overrides: Values of parameters that replace those of the document.
    """

    def __init__(self, document: Document, overrides: Mapping[str, float | str]) -> None:
        self.document, self.overrides = document, overrides
        self.errors: list[str] = []

    def model(self) -> Model:
        """Return the model, or raise an error with all errors of the file."""
        data = self.document.data
        self._check_sections(data)
        self.parameters = self._parameters(data.get("parameters") or {})
        entries = {**(data.get("parameters") or {}), **self.overrides}
        units = {name: unit for name, entry in entries.items() if (unit := unit_of(entry))}
        self.reader = Reader(self.document, self.parameters, SPECIAL, units=units)
        self._raise_errors()
        parts = {"bodies": self._entries("bodies", data)}
        if not self.errors:
            self.reader.bodies = {body.name: body for body in parts["bodies"]}
        parts |= {name: self._entries(name, data) for name in ("joints", "drivers", "loads")}
        gravity = self._try(self._gravity, data.get("gravity", [0.0, 0.0, 0.0]), ("gravity",))
        analyses = {
            name: self._try(self._analysis, data[name] or {}, (name,))
            for name in ANALYSES
            if name in data
        }
        results = self._try(self._results, data.get("results", ["csv"]), ("results",))
        sweep = self._try(self._sweep, data.get("sweep") or {}, ("sweep",))
        self._raise_errors()
        if "mechanism" in data:
            system = self._try(self._mechanism, data["mechanism"], ("mechanism",))
        else:
            system = self._system(parts, gravity)
        self._raise_errors()
        title = data.get("title", "")
        return Model(str(title), self.parameters, system, analyses, results, sweep)

    def _raise_errors(self) -> None:
        """Raise an error with all errors so far."""
        if self.errors:
            raise ModelFileError(self.document.path, self.errors)

    def _try(self, function: Callable[[Any, Place], Any], value: Any, place: Place) -> Any:
        """Return the result for an entry, or None after an error, which is collected."""
        try:
            return function(value, place)
        except EntryError as error:
            for each in error.each():
                self.errors.append(self.document.message(each.place, str(each)))
        except InputError as error:
            self.errors.append(self.document.message(place, str(error)))
        return None

    def _check_sections(self, data: Mapping[Any, Any]) -> None:
        """Record errors of unknown, contradictory and missing sections."""
        known = (*_OTHER_SECTIONS, *SECTIONS, *ANALYSES, "include")
        for key in data:
            if key not in known:
                text = unknown("section", key, known)
                self.errors.append(self.document.message((key,), text))
        if data.get("model") != FORMAT:
            text = (
                f"expected 'model: {FORMAT}', the version of the format; got {data.get('model')!r}"
            )
            self.errors.append(self.document.message(("model",), text))
        mixed = [
            name for name in ("bodies", "joints", "drivers", "loads", "gravity") if name in data
        ]
        if "mechanism" in data and mixed:
            text = f"a predefined mechanism has no section {mixed[0]!r}"
            self.errors.append(self.document.message((mixed[0],), text))
        if "mechanism" not in data and not data.get("bodies"):
            text = "the section 'bodies' or 'mechanism' is missing"
            self.errors.append(self.document.message((), text))

    def _parameters(self, entries: Any) -> dict[str, float]:
        """Return the parameters; each may depend on others, in any order."""
        if not isinstance(entries, dict):
            self.errors.append(self.document.message(("parameters",), "expected values by name"))
            return {}
        for name in self.overrides.keys() - entries.keys():
            known = ", ".join(map(str, entries)) or "none"
            raise InputError(f"the model has no parameter {name!r}; it has {known}", value=name)
        waiting = {**entries, **self.overrides}
        values: dict[str, float] = {}
        while True:
            errors: dict[str, str] = {}
            for name, entry in waiting.items():  # entries may use parameters that follow them
                try:
                    if not str(name).isidentifier():
                        raise InputError(f"{name!r} is not a name of letters, digits and _")
                    if keyword.iskeyword(name) or name in RESERVED:
                        raise InputError(f"{name!r} has another meaning in expressions; rename it")
                    values[name] = number(entry, values)
                except InputError as error:
                    errors[name] = str(error)
            if len(errors) in (0, len(waiting)):  # all are known, or no further one is
                break
            waiting = {name: waiting[name] for name in errors}
        for name, text in errors.items():  # without those that follow from another error
            if not any(f"unknown name {other!r}" in text for other in errors if other != name):
                self.errors.append(self.document.message(("parameters", name), text))
        if errors and not self.errors:
            names = ", ".join(errors)
            text = f"{names} depend on each other in a circle"
            self.errors.append(self.document.message(("parameters",), text))
        return values

    # ---- parts ----------------------------------------------------------------------------------
    def _entries(self, section: str, data: Mapping[str, Any]) -> list[Any]:
        """Return the parts of a section; None for those with errors, which are recorded."""
        entries = data.get(section) or {}
        if not isinstance(entries, dict):
            text = "expected entries by name"
            self.errors.append(self.document.message((section,), text))
            return []
        result = []
        for name, entry in entries.items():
            part = self._try(
                lambda value, place: self._part(section, value, place), entry, (section, name)
            )
            result.append(part)
        return result

    def _part(self, section: str, entry: Any, place: Place) -> Any:
        """Return a part of a section, made from the fields of its entry."""
        makers = SECTIONS[section]
        name = str(place[-1])
        entry = {} if entry is None else entry
        if not isinstance(entry, dict):
            raise EntryError(place, f"expected fields by name; got {entry!r}")
        default = next(iter(makers)) if len(makers) == 1 else "ground" if name == "ground" else None
        kind: Any = entry.get("type", default)
        if kind not in makers:
            missing = f"the field 'type' is missing; known are {', '.join(makers)}"
            raise EntryError((*place, "type"), unknown("type", kind, makers) if kind else missing)
        fields = {key: value for key, value in entry.items() if key != "type"}
        return self.reader.build(makers[kind], kind, fields, place, name=name)

    def _mechanism(self, entry: Any, place: Place) -> System:
        """Return a predefined mechanism."""
        makers = SECTIONS["mechanism"]
        kind: Any = entry.get("type") if isinstance(entry, dict) else None
        if kind not in makers:
            text = f"expected the type of a mechanism: {', '.join(makers)}"
            raise EntryError((*place, "type"), text)
        fields = {key: value for key, value in entry.items() if key != "type"}
        system: System = self.reader.build(makers[kind], kind, fields, place)
        return system

    def _system(self, parts: Mapping[str, list[Any]], gravity: Any) -> Any:
        """Return the mechanism of the parts, or None after an error, which is recorded."""
        try:
            return System(
                parts["bodies"],
                parts["joints"],
                drivers=parts["drivers"],
                loads=parts["loads"],
                gravity=gravity,
            )
        except InputError as error:
            place = self._named_place(str(error))
            entries = {name: self.document.data.get(name) or {} for name in SECTIONS}
            if not place and error.argument in self.document.data:
                place = (error.argument,)
            if not place and isinstance(error.value, str):
                place = place_of(error.value, entries)
            self.errors.append(self.document.message(place, str(error)))
            return None

    def _named_place(self, text: str) -> Place:
        """Return the place of the entry that a message names in quotes."""
        for section in ("joints", "drivers", "loads", "bodies"):
            for name in self.document.data.get(section) or {}:
                if f"{section.removesuffix('s')} {name!r}" in text:
                    return section, name
        return ()

    # ---- other sections -------------------------------------------------------------------------
    def _gravity(self, value: Any, place: Place) -> Any:
        """Return the acceleration of gravity, m/s²."""
        return self.reader.value(declared_fields(System)["gravity"], NO_KIND, value, place)

    def _analysis(self, entry: Any, place: Place) -> dict[str, Any]:
        """Return the arguments of an analysis, checked by the declarations of its function."""
        maker = ANALYSES[place[0]]

        def arguments(**values: Any) -> dict[str, Any]:
            return {key: value for key, value in values.items() if value is not None}

        ignored = {name: None for name in declared_fields(maker) if name in OPTIONS}
        result: dict[str, Any] = self.reader.build(
            _with_fields_of(maker, arguments), place[0], entry, place, **ignored
        )
        for name in _POSITIVE & result.keys():
            if isinstance(result[name], float) and not result[name] > 0:
                text = f"expected a positive number; got {result[name]!r}"
                raise EntryError((*place, name), text)
        return result

    def _results(self, value: Any, place: Place) -> tuple[str, ...]:
        """Return the names of the files that a run writes."""
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(name in [*RESULTS] for name in names):
            raise EntryError(place, f"expected names among {', '.join(RESULTS)}; got {value!r}")
        return tuple(names)

    def _sweep(self, value: Any, place: Place) -> dict[str, list[float]]:
        """Return the values of each parameter of a study, in SI units."""
        if not isinstance(value, dict):
            raise EntryError(place, "expected lists of values by the name of a parameter")
        result = {}
        for name, entries in value.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise EntryError((*place, name), f"not a parameter; the parameters are {known}")
            if not isinstance(entries, list) or not entries:
                raise EntryError((*place, name), "expected a list of values")
            result[name] = [number(entry, self.parameters) for entry in entries]
        return result


def _with_fields_of(maker: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, which accepts any arguments, with the declared fields of `maker`."""
    import inspect

    function.__signature__ = inspect.signature(maker)  # type: ignore[attr-defined]
    function.__doc__, function.__module__ = maker.__doc__, maker.__module__
    return function
