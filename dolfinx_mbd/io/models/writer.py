"""Writing of mechanisms to model files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.io.models.declarations import declared_fields
from dolfinx_mbd.io.models.kinds import ANALYSES, FUNCTIONS, SECTIONS, VALUES
from dolfinx_mbd.io.models.mesh_parts import model_entry, write_mesh_of
from dolfinx_mbd.io.models.reader import FORMAT
from dolfinx_mbd.mechanism import Frame, FrameRef, System
from dolfinx_mbd.mechanism.bearings import OilFilm
from dolfinx_mbd.mechanism.expressions.functions import (
    ExpressionMotion,
    Formula,
    TableMotion,
    VectorFormula,
)
from dolfinx_mbd.mechanism.joints import ConstantSpeed, Driver, Joint

__all__ = ["write_model"]

_SUFFIXES = (".yaml", ".yml", ".json")
ARRAYS = {"ArrayLike", "Array", "NDArray[np.float64]", "NDArray[np.int64]"}
"""Types of fields that are arrays of numbers."""


def write_model(
    system: System,
    path: str | Path,
    *,
    simulate: Mapping[str, float | str] | None = None,
    times: ArrayLike | None = None,
) -> Path:
    """Write a mechanism to a model file, which `read_model` reads without loss.

    Reduced bodies are written beside the file, one file for each of them. Numbers are written with
    all digits. Functions of a script cannot be written, except those that `read_model` or
    `constant_speed` made and, with `times`, the motions of drivers.

    Args:
        system: The mechanism.
        path: File with the suffix .yaml, .yml or .json; missing directories are created, and an
            existing file is replaced if it is a model file.
        simulate: Arguments of the simulation, such as ``{"t_end": 0.1, "dt": 1e-4}``.
        times: Times at which the motions of drivers are tabulated with their rates and
            accelerations, increasing, shape (n,), s; see `TableMotion`.

    Returns:
        The path of the file.

    Raises:
        InputError: The mechanism contains a part or a function that cannot be written; the message
            names it.
        OSError: A file cannot be written.

    Example:
        >>> from dolfinx_mbd.io.models import read_model, write_model
        >>> path = write_model(driven, "pendulum.yaml", simulate={"t_end": 1.0, "dt": 1e-3})
        >>> read_model(path).system.joint("pin").kind
        'revolute'
    """
    checks.instance("system", system, System)
    path = checks.file_path("path", path, _SUFFIXES)
    if times is not None:
        times = checks.increasing("times", times, least=2, unit="s")
    writer = _Writer(path, times)
    data: dict[str, Any] = {"model": FORMAT}
    sections: dict[str, Sequence[Any]] = {
        "bodies": system.mechanical_bodies,
        "joints": system.joints,
        "drivers": system.drivers,
        # Without the last loads, the contacts of joints with clearance: the joints contain them
        "loads": system.loads[: len(system.loads) - _number_of_clearances(system)],
    }
    entries = {
        name: {part.name: writer.entry(name, part) for part in parts}
        for name, parts in sections.items()
    }
    if writer.parameters:
        data["parameters"] = writer.parameters
    if np.any(system.gravity):
        data["gravity"] = _plain_array(system.gravity)
    data |= {name: parts for name, parts in entries.items() if parts}
    if simulate is not None:
        data["simulate"] = _options(simulate)
    text = _text(path, data).encode()

    def write(file: BinaryIO) -> None:
        file.write(text)

    write_atomically(path, write, "model file", replaces=_is_model)
    for body, name in writer.bodies.values():
        body.save(path.parent / name)
    for model, name in writer.models.values():
        write_mesh_of(model, path.parent / name)
    return path


def _options(simulate: Any) -> dict[str, Any]:
    """Return the checked arguments of a simulation."""
    options = checks.instance("simulate", simulate, Mapping, "arguments of a simulation by name")
    fields = declared_fields(ANALYSES["simulate"])
    result: dict[str, Any] = {}
    for name, value in options.items():
        if name not in fields:
            checks.reject("simulate", name, "names of arguments of mbd.simulate")
        label = f"simulate[{name!r}]"
        if isinstance(value, (list, tuple)):
            result[name] = list(checks.names(label, value))
        else:
            result[name] = value if isinstance(value, str) else checks.number(label, value)
    return result


def _number_of_clearances(system: System) -> int:
    """Return the number of joints with a clearance."""
    return sum(joint.clearance is not None for joint in system.joints)


class _Writer:
    """Conversion of parts of a mechanism to entries of a model file.

    Args:
        path: Path of the model file.
        times: Times of the tables of motions, or None.

    Attributes:
        parameters: Constants of the expressions by name.
        bodies: Reduced bodies and the names of their files, by the `id` of the body.
        models: Models of meshes and the names of their files, by the `id` of the model.
    """

    def __init__(self, path: Path, times: Any) -> None:
        self.path, self.times = path, times
        self.parameters: dict[str, float] = {}
        self.bodies: dict[int, tuple[ReducedBody, str]] = {}
        self.models: dict[int, tuple[Any, str]] = {}

    def entry(self, section: str, part: Any) -> dict[str, Any]:
        """Return the fields of a part that differ from their defaults."""
        kind, maker = _kind(section, part)
        fields = declared_fields(maker)
        frame_fields = [name for name, field in fields.items() if field.types == ("FrameRef",)]
        result: dict[str, Any] = {} if len(SECTIONS[section]) == 1 else {"type": kind}
        for name, field in fields.items():
            if name == "name":
                continue
            value = _value_of(part, name, frame_fields)
            if isinstance(part, Driver) and name == "motion" and self._needs_table(value):
                value = self.motion(value)
            if field.is_required or not _is_equal(value, field.default):
                result[name] = self.plain(value, f"{section}.{part.name}.{name}")
        return result

    def plain(self, value: Any, place: str) -> Any:
        """Return a value as lists, dictionaries, numbers and texts."""
        if type(value).__name__ in _SPECIAL:
            return _SPECIAL[type(value).__name__](self, value, place)
        for types, convert in _CONVERTERS:
            if isinstance(value, types):
                return convert(self, value, place)
        for makers in (*VALUES.values(), FUNCTIONS):
            if (kind := makers.kind_of(value)) is not None:
                label = kind if len(makers) > 1 else ""
                return self._object(value, makers[kind], label, place)
        if isinstance(value, (tuple, list)):
            return [self.plain(entry, f"{place}.{k}") for k, entry in enumerate(value)]
        advice = (
            "pass times=..., so that the motion is tabulated"
            if place.startswith("drivers.")
            else "use an expression, mbd.io.models.Formula"
        )
        what = "the function" if callable(value) else "the value"
        raise InputError(
            f"{place}: {what} {checks.short(value)} cannot be written to a model file; {advice}",
            argument="system",
            value=value,
        )

    def _object(self, value: Any, maker: Callable[..., Any], kind: str, place: str) -> Any:
        """Return the fields of an object that differ from their defaults."""
        result = {"type": kind} if kind else {}
        for name, field in declared_fields(maker).items():
            entry = getattr(value, name)
            if name == "constants":
                self._constants(entry, place)
            elif isinstance(entry, np.ndarray) and not ARRAYS & {*field.types}:
                raise InputError(
                    f"{place}.{name}: an array cannot be written to a model file; use the name or "
                    "the tag of a group of facets",
                    argument="system",
                    value=entry,
                )
            elif field.is_required or not _is_equal(entry, field.default):
                result[name] = self.plain(entry, f"{place}.{name}")
        return result

    def _formula(self, value: Formula, place: str) -> str | float:
        """Return an expression, or the number if it is one."""
        self._constants(value.constants, place)
        try:
            return float(value.text)
        except ValueError:
            return value.text

    def _constants(self, constants: Mapping[str, float], place: str) -> None:
        """Add the constants of an expression to the parameters of the file."""
        for name, constant in constants.items():
            if self.parameters.setdefault(name, constant) != constant:
                raise InputError(
                    f"{place}: the name {name!r} has the values {constant!r} and "
                    f"{self.parameters[name]!r} in two expressions; rename one of them",
                    argument="system",
                    value=constant,
                )

    def _film(self, value: OilFilm, place: str) -> Any:
        """Return the kind and the fields of an oil film."""
        kinds = {"ShortBearing": "short_bearing", "FiniteBearing": "finite_bearing"}
        if value.bearing.__name__ not in kinds:
            raise InputError(
                f"{place}: an oil film of the class {value.bearing.__name__} cannot be written",
                argument="system",
                value=value,
            )
        entries = {k: self.plain(v, f"{place}.{k}") for k, v in value.arguments.items()}
        return {"type": kinds[value.bearing.__name__], **entries}

    def _reduced(self, value: ReducedBody, place: str) -> str:
        """Return the name of the file of a reduced body, which is written later."""
        name = f"{self.path.stem}-{value.name}-{len(self.bodies) + 1}.npz"
        return self.bodies.setdefault(id(value), (value, name))[1]

    def _model(self, value: Any, place: str) -> dict[str, Any]:
        """Return the fields of the model of a mesh body; its mesh file is written later."""
        name = f"{self.path.stem}-{place.split('.')[1]}.msh"
        name = self.models.setdefault(id(value), (value, name))[1]
        return {"mesh": name, **model_entry(value, self.plain, place)}

    def _mapping(self, value: Mapping[str, Any], place: str) -> Any:
        """Return a mapping with its values in the form of the file."""
        return {str(k): self.plain(v, f"{place}.{k}") for k, v in value.items()}

    def _needs_table(self, motion: Any) -> bool:
        """Return whether a motion is a function that must be tabulated."""
        known = (ConstantSpeed, ExpressionMotion, TableMotion)
        return self.times is not None and not isinstance(motion, known)

    def motion(self, value: Any) -> TableMotion:
        """Return the table of a motion at the times."""
        rows: Array = np.array([value(float(t)) for t in self.times])
        return TableMotion(self.times, *rows.T)


def _frame(writer: _Writer, value: Frame, place: str) -> Any:
    """Return a frame as its point, or as point and axes."""
    point = _plain_array(value.point)
    if np.array_equal(value.axes, np.eye(3)):
        return point
    return {"point": point, "axes": _plain_array(value.axes)}


def _frame_ref(writer: _Writer, value: FrameRef, place: str) -> Any:
    """Return the reference to a frame as "body.frame", or as both names if one has a dot."""
    return list(value) if "." in "".join(value) else ".".join(value)


def _table(writer: _Writer, value: TableMotion, place: str) -> Any:
    """Return the arrays of a table motion."""
    names = ("times", "positions", "rates", "accelerations")
    return {name: _plain_array(getattr(value, name)) for name in names}


_CONVERTERS: list[tuple[Any, Callable[[_Writer, Any, str], Any]]] = [
    ((bool, str, type(None)), lambda writer, value, place: value),
    ((int, np.integer), lambda writer, value, place: int(value)),
    ((float, np.floating), lambda writer, value, place: float(value)),
    (np.ndarray, lambda writer, value, place: _plain_array(value)),
    (Frame, _frame),
    (FrameRef, _frame_ref),
    (Mapping, _Writer._mapping),
    (Formula, _Writer._formula),
    (
        VectorFormula,
        lambda writer, v, place: [writer.plain(part, place) for part in (v.x, v.y, v.z)],
    ),
    (ExpressionMotion, lambda writer, value, place: writer.plain(value.position, place)),
    (ConstantSpeed, lambda writer, v, place: {"speed": v.speed, "angle": v.angle}),
    (TableMotion, _table),
    (OilFilm, _Writer._film),
]

_SPECIAL: dict[str, Callable[[_Writer, Any, str], Any]] = {
    "ReducedBody": _Writer._reduced,
    "ElasticModel": _Writer._model,
}
"""Conversions of values that need a file, by the type in `mesh_parts.SPECIAL`."""


def _kind(section: str, part: Any) -> tuple[str, Callable[..., Any]]:
    """Return the kind of a part in its section, and the class or function that makes it."""
    makers = SECTIONS[section]
    kind = makers.kind_of(part)
    if kind is None:
        raise InputError(
            f"{section}.{part.name}: a {type(part).__name__} cannot be written to a model file; "
            f"the known kinds are {', '.join(makers)}",
            argument="system",
            value=part,
        )
    return kind, makers[kind]


def _value_of(part: Any, name: str, frame_fields: list[str]) -> Any:
    """Return the value of a field of a part.

    The fields of a joint may be those of its relation; `frame_fields` are the names of its first
    and second frame.
    """
    if name == "model":
        return getattr(part, "elastic_model", part.model)
    if name == "material" and hasattr(part, "elastic_model"):
        return None  # a part of the model
    if isinstance(part, Joint):
        if name in frame_fields:
            return (part.first, part.second)[frame_fields.index(name)]
        if part.relation is not None and hasattr(part.relation, name):
            return getattr(part.relation, name)
    return getattr(part, name)


def _is_equal(value: Any, default: Any) -> bool:
    """Return whether a value equals a default; lists and arrays may be equal."""
    if value is None or default is None:
        return value is default
    if isinstance(value, (Mapping, str, bool)) or callable(value):
        return bool(value == default)
    try:
        return bool(np.array_equal(np.asarray(value, float), np.asarray(default, float)))
    except (TypeError, ValueError):
        return bool(value == default)


def _plain_array(value: Any) -> Any:
    """Return an array as nested lists of numbers."""
    array = np.asarray(value)
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise InputError("an array has entries that are not finite", value=value)
    return array.tolist()


def _text(path: Path, data: dict[str, Any]) -> str:
    """Return the text of a model file in JSON or YAML, with all digits of numbers."""
    if path.suffix == ".json":
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    import yaml

    class Dumper(yaml.SafeDumper):
        """Numbers with all digits and a point; short lists on one line; no aliases."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def number(dumper: Any, value: float) -> Any:
        text = repr(value)
        if "e" in text and "." not in text:  # YAML 1.1 reads 1e-05 as a text
            text = text.replace("e", ".0e")
        return dumper.represent_scalar("tag:yaml.org,2002:float", text)

    def sequence(dumper: Any, value: list[Any]) -> Any:
        is_flat = not any(isinstance(entry, dict) for entry in value)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=is_flat)

    Dumper.add_representer(float, number)
    Dumper.add_representer(list, sequence)
    text: str = yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _is_model(path: Path) -> bool:
    """Return whether an existing file is a model file."""
    from dolfinx_mbd.errors import Error
    from dolfinx_mbd.io.models.documents import read_document

    try:
        return "model" in read_document(path).data
    except Error:
        return False
