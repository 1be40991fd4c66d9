"""Conversion of the entries of a model file to the arguments of classes and functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dolfinx_mbd.checks import choice
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.io.models.declarations import Declared, declared_fields, members
from dolfinx_mbd.io.models.documents import Document, Place, unknown
from dolfinx_mbd.io.models.kinds import FORMULAS, FUNCTIONS, VALUES
from dolfinx_mbd.mechanism import Frame, FrameRef, constant_speed
from dolfinx_mbd.mechanism.expressions.functions import (
    FRAME_VARIABLES,
    ExpressionMotion,
    Formula,
    TableMotion,
    VectorFormula,
)
from dolfinx_mbd.mechanism.expressions.unit_expressions import (
    Dimension,
    check_expression,
    check_unit,
    number,
    parse_unit,
    unit_of,
)
from dolfinx_mbd.mechanism.joints import SLIDING, TURNING

__all__ = ["NO_KIND", "EntryError", "Reader", "place_of"]

VARIABLES = {
    **{"t": "s", "length": "m", "angle": "rad"},
    **dict.fromkeys(("x", "y", "z"), "m"),
    **dict.fromkeys(("vx", "vy", "vz"), "m/s"),
    **dict.fromkeys(("rx", "ry", "rz"), "rad"),
    **dict.fromkeys(("wx", "wy", "wz"), "rad/s"),
}
"""Units of the variables of functions; those of a joint (`s`, `rate`) depend on the joint."""


NO_KIND = ""
"""Argument `kind` of `Reader.value` for a field that cannot be a function or an expression."""


class EntryError(Exception):
    """Errors in an entry of a document.

    Args:
        place: Place of the error.
        text: Text of the error.
        others: Further errors in the same entry.
    """

    def __init__(self, place: Place, text: str, others: Sequence[EntryError] = ()) -> None:
        super().__init__(text)
        self.place, self.others = place, tuple(others)

    def each(self) -> Iterator[EntryError]:
        """Yield this error and all others."""
        yield self
        for other in self.others:
            yield from other.each()


@dataclass
class Reader:
    """Conversion of the entries of one document.

    Attributes:
        document: The document.
        parameters: Values of the parameters by name.
        special: Functions of a reader, an entry and its place that return values of further types,
            by the name of the type.
        bodies: Bodies by name, for references to their frames; None before they are known.
        loaded: Reduced bodies by the path of their file and models by their entry, so that each is
            made once.
        units: Units of the parameters that are numbers with a unit, by name.
    """

    document: Document
    parameters: Mapping[str, float]
    special: Mapping[str, Callable[[Reader, Any, Place], Any]]
    bodies: Mapping[str, Any] | None = None
    loaded: dict[Any, Any] = dataclasses.field(default_factory=dict)
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def number(self, value: Any, units: str, variables: tuple[str, ...] = ()) -> float:
        """Return a number in SI units; a parameter with a unit must fit the field.

        `variables` are names that are variables there and hide parameters.
        """
        parameters = {n: v for n, v in self.parameters.items() if n not in variables}
        name = value.strip() if isinstance(value, str) else ""
        if name in self.units and name in parameters:
            check_unit(name, self.units[name], units)
        result = number(value, parameters, units)
        if isinstance(value, str) and not unit_of(value):
            self._check_dimension(value, units, variables)
        return result

    def _check_dimension(self, text: str, units: str, variables: tuple[str, ...] = ()) -> None:
        """Raise an error if the dimension of an expression is known and does not fit."""
        units_of_parameters = {n: u for n, u in self.units.items() if n not in variables}
        check_expression(
            text,
            _dimensions(units_of_parameters),
            units,
            _dimensions({name: VARIABLES[name] for name in variables if name in VARIABLES}),
        )

    def build(
        self, maker: Callable[..., Any], kind: str, entry: Any, place: Place, **values: Any
    ) -> Any:
        """Return what a class or function makes of the fields of an entry.

        Args:
            maker: The class or function.
            kind: Kind of the entry, for the fields that are functions.
            entry: Fields by name.
            place: Place of the entry in the document.
            **values: Further arguments, such as the name of the entry. The entry cannot set them:
                a field with the name of such an argument is an unknown field.
        """
        if not isinstance(entry, dict):
            raise EntryError(place, f"expected fields by name; got {entry!r}")
        fields = declared_fields(maker)
        errors = self._errors_of_names(fields, entry, place, values)
        arguments = {}
        for key, value in entry.items():
            if key in fields and key not in values:
                try:
                    arguments[key] = self.value(fields[key], kind, value, (*place, key))
                except EntryError as error:
                    errors.append(error)
        if errors:
            raise EntryError(errors[0].place, str(errors[0]), [*errors[0].others, *errors[1:]])
        try:
            return maker(**values, **arguments)
        except (InputError, MissingFileError) as error:
            raise EntryError(_place_of_error(error, entry, place), str(error)) from None

    def _errors_of_names(
        self, fields: Mapping[str, Declared], entry: Any, place: Place, values: Mapping[str, Any]
    ) -> list[EntryError]:
        """Return the errors of unknown and of missing fields."""
        errors = []
        for key in entry:
            if key not in fields or key in values:
                known = [name for name in fields if name not in values]
                errors.append(EntryError((*place, key), unknown("field", key, known)))
        for name, field in fields.items():
            if field.is_required and name not in entry and name not in values:
                unit = f", {field.units.replace('|', ' or ')}," if field.units else ""
                errors.append(EntryError(place, f"the field {name!r}{unit} is missing"))
        return errors

    def value(self, field: Declared, kind: str, value: Any, place: Place) -> Any:
        """Return the value of a field of a kind of part, such as ``revolute``, or of `NO_KIND`."""
        try:
            return self._value(field, kind, value, place)
        except InputError as error:
            raise EntryError(place, str(error)) from None

    def _value(self, field: Declared, kind: str, value: Any, place: Place) -> Any:
        """Return the value of a field, converted to the first of its types that fits."""
        if value is None and ("None" in field.types or field.default is None):
            return None
        if (kind, field.name) in FORMULAS:
            return self._function(kind, field, value, place)
        for name in sorted(field.types, key=lambda name: not name.startswith("choice:")):
            if name in self.special:
                return self.special[name](self, value, place)
            convert = _CONVERTERS.get(name) or _by_prefix(name)
            if (
                convert is not None
                and (result := convert(self, name, value, field, place)) is not _NOT_OF_TYPE
            ):
                return result
        known = [
            name for name in field.types if name in _CONVERTERS or _by_prefix(name) is not None
        ]
        if not known:
            text = "a model file cannot contain this field; use a script"
            raise InputError(text, value=value)
        expected = " or ".join(map(_described, known))
        raise InputError(f"expected {expected}; got {_shortened(value)}", value=value)

    # ---- functions ------------------------------------------------------------------------------
    def _function(self, kind: str, field: Declared, value: Any, place: Place) -> Any:
        """Return a function, an expression or a number for a field of `FORMULAS`."""
        if field.name == "motion":
            return self.motion(value, place)
        for name in field.types:
            if name.startswith("choice:") and value in name.removeprefix("choice:").split(","):
                return value
        rule = FORMULAS[kind, field.name]
        variables, units, components, default = rule
        if isinstance(value, dict):
            return self._build_kind(FUNCTIONS, value, default, place)
        if rule.is_object:
            names = ", ".join(n for n in declared_fields(FUNCTIONS[default]) if n != "constants")
            text = f"expected expressions by name ({names}), or the type of a law"
            raise InputError(f"{text}: {', '.join(FUNCTIONS)}; got {value!r}", value=value)
        field = field._replace(units=units)
        if components == 1:
            return self._formula(value, variables, field)
        if not isinstance(value, list) or len(value) != components:
            raise InputError(f"expected a list of {components} numbers or expressions", value=value)
        parts = [self._formula(entry, variables or FRAME_VARIABLES, field) for entry in value]
        if not any(isinstance(part, Formula) for part in parts):
            return parts
        formulas = (p if isinstance(p, Formula) else Formula(repr(p)) for p in parts)
        return VectorFormula(*formulas)

    def _formula(self, value: Any, variables: tuple[str, ...], field: Declared) -> float | Formula:
        """Return a number, or an expression of the variables."""
        try:
            return self.number(value, field.units, variables)
        except InputError:
            if not isinstance(value, str) or unit_of(value):
                raise
            formula = Formula(value, variables, self.parameters)
            self._check_dimension(value, field.units, variables)
            return formula

    def motion(self, value: Any, place: Place) -> Any:
        """Return the motion of a driver: a speed, an expression of time, or a table."""
        if isinstance(value, str):
            formula = Formula(value, ("t",), self.parameters)
            self._check_dimension(value, self._units_of_motion(place), ("t",))
            return ExpressionMotion(formula)
        if isinstance(value, dict) and "speed" in value:
            return self.build(constant_speed, "speed", value, place)
        if isinstance(value, dict) and "times" in value:
            return self.build(TableMotion, "table", value, place)
        raise InputError(
            "expected an expression of t such as '0.1*sin(20*t)', {speed: 600rpm}, or a table "
            "{times: [...], positions: [...]}",
            value=value,
        )

    def _units_of_motion(self, place: Place) -> str:
        """Return the units of the motion of a driver, according to its joint if that is known."""
        entry: Any = self.document.data
        for key in place[:-1]:
            entry = entry[key]
        joints = self.document.data.get("joints")
        joint = joints.get(str(entry.get("joint"))) if isinstance(joints, dict) else None
        kind = joint.get("type") if isinstance(joint, dict) else None
        along = entry.get("along")
        if along is None and kind in (*TURNING, *SLIDING):
            along = "rotation" if kind in TURNING else "displacement"
        return {"rotation": "rad", "displacement": "m"}.get(str(along), "rad|m")

    # ---- types ----------------------------------------------------------------------------------
    # Converters of `_CONVERTERS`: `name` is the name of a type of the field, see `type_names`. They
    # return `_NOT_OF_TYPE` for a value of another type, and raise an error for an invalid value.
    def _number(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert a number, or a text with a unit or an expression."""
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            return _NOT_OF_TYPE
        if isinstance(value, str) and "str" in field.types:
            return _NOT_OF_TYPE
        result = self.number(value, field.units)
        if name == "int":
            if result != round(result):
                raise InputError(f"expected a whole number; got {value!r}", value=value)
            return round(result)
        return result

    def _text(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Return a text, or `_NOT_OF_TYPE`."""
        return value if isinstance(value, str) else _NOT_OF_TYPE

    def _flag(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Return true or false, or `_NOT_OF_TYPE`."""
        return value if isinstance(value, bool) else _NOT_OF_TYPE

    def _choice(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Return one of the texts that the type `name` lists, or `_NOT_OF_TYPE`."""
        return value if value in name.removeprefix("choice:").split(",") else _NOT_OF_TYPE

    def _array(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert a number or nested lists of numbers."""
        if isinstance(value, list):
            return [self._array(name, v, field, (*place, k)) for k, v in enumerate(value)]
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                return self.number(value, field.units)
            except InputError as error:
                raise EntryError(place, str(error)) from None
        return _NOT_OF_TYPE

    def _frame_ref(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert `BODY.FRAME`, or a list of the two names."""
        names = value.split(".") if isinstance(value, str) else value
        if not (
            isinstance(names, list) and len(names) == 2 and all(isinstance(n, str) for n in names)
        ):
            raise InputError(f"expected BODY.FRAME; got {_shortened(value)}", value=value)
        if self.bodies is None:
            return FrameRef(*names)
        body = self.bodies[choice("body", names[0], self.bodies)]
        return body.frame(names[1])

    def _frames(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert frames by name: a point, or point and axes."""
        if not isinstance(value, dict):
            return _NOT_OF_TYPE
        point, axes = field._replace(units="m"), field._replace(units="")
        result = {}
        for key, entry in value.items():
            at = (*place, key)
            fields = {"point": entry} if isinstance(entry, list) else entry or {}
            if not isinstance(fields, dict) or fields.keys() - {"point", "axes"}:
                raise EntryError(at, "expected a point, or point and axes")
            arguments = {
                k: self._array("ArrayLike", v, point if k == "point" else axes, (*at, k))
                for k, v in fields.items()
            }
            try:
                result[str(key)] = Frame(**arguments)
            except InputError as error:
                raise EntryError(at, str(error)) from None
        return result

    def _sequence(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert a list to a tuple."""
        items = members(name[name.index("[") + 1 : -1], ",")
        if not isinstance(value, list):
            return _NOT_OF_TYPE
        if items[-1] != "..." and name.startswith("tuple") and len(value) != len(items):
            raise InputError(f"expected a list of {len(items)} values", value=value)
        has_one_type = items[-1] == "..." or len(items) == 1
        types = [items[0]] * len(value) if has_one_type else items
        return tuple(
            self.value(field._replace(types=tuple(members(kind))), NO_KIND, entry, (*place, k))
            for k, (kind, entry) in enumerate(zip(types, value, strict=True))
        )

    def _object(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert fields by name to an object of `VALUES`."""
        if not isinstance(value, dict):
            return _NOT_OF_TYPE
        return self._build_kind(VALUES[name], value, next(iter(VALUES[name])), place)

    def _build_kind(self, makers: Mapping[str, Any], value: Any, default: str, place: Place) -> Any:
        """Return what the maker of the kind in `type` makes."""
        kind = value.get("type", default)
        if kind not in makers:
            raise EntryError((*place, "type"), unknown("type", kind, makers))
        fields = {key: entry for key, entry in value.items() if key != "type"}
        constants = {"constants": self.parameters} if makers is FUNCTIONS else {}
        names = constants.keys() & declared_fields(makers[kind]).keys()
        return self.build(
            makers[kind], str(kind), fields, place, **{name: constants[name] for name in names}
        )

    def _names(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert a list of names."""
        is_list = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        return list(value) if is_list else _NOT_OF_TYPE

    def _mapping(self, name: str, value: Any, field: Declared, place: Place) -> Any:
        """Convert values by name."""
        if not isinstance(value, dict):
            return _NOT_OF_TYPE
        inner = field._replace(types=tuple(members(name.removeprefix("Mapping[str, ")[:-1])))
        return {str(k): self.value(inner, NO_KIND, v, (*place, k)) for k, v in value.items()}

    def path(self, text: str, place: Place) -> Path:
        """Return the path of a file relative to the file that names it."""
        return self.document.file_of(place).parent / text


def _dimensions(units: Mapping[str, str]) -> dict[str, Dimension]:
    """Return the dimensions of units by name."""
    return {name: known[1] for name, unit in units.items() if (known := parse_unit(unit))}


_NOT_OF_TYPE = object()  # result of a converter for values that are not of its type
_CONVERTERS: dict[str, Callable[..., Any]] = {
    "float": Reader._number,
    "int": Reader._number,
    "str": Reader._text,
    "bool": Reader._flag,
    "ArrayLike": Reader._array,
    "Array": Reader._array,
    "NDArray[np.float64]": Reader._array,
    "NDArray[np.int64]": Reader._array,
    "FrameRef": Reader._frame_ref,
    "Mapping[str, Frame]": Reader._frames,
    "Requests": Reader._names,
    **dict.fromkeys(VALUES, Reader._object),
}


def _by_prefix(name: str) -> Callable[..., Any] | None:
    """Return the converter of a type with parameters, such as `list[float]`."""
    if name.startswith("choice:"):
        return Reader._choice
    if name.startswith(("tuple[", "Sequence[", "list[")):
        return Reader._sequence
    if name.startswith("Mapping[str, "):
        return Reader._mapping
    return None


def _described(name: str) -> str:
    """Return a noun for a type."""
    if name.startswith("choice:"):
        return "one of " + ", ".join(name.removeprefix("choice:").split(","))
    nouns = {
        **{"float": "a number", "int": "a whole number", "str": "a text", "bool": "true or false"},
        **{"ArrayLike": "a list of numbers", "Array": "a list of numbers", "None": "null"},
        **{"FrameRef": "BODY.FRAME", "Mapping[str, Frame]": "frames by name"},
    }
    return nouns.get(name, f"a {name}")


def _shortened(value: Any) -> str:
    """Return the text of a value for messages, at most 60 characters."""
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def _place_of_error(error: Exception, entry: Mapping[str, Any], place: Place) -> Place:
    """Return the place of the field or text that an error names, or of the whole entry."""
    name = str(getattr(error, "argument", "") or "").split(":")[-1].strip()
    if name in entry:
        return (*place, name)
    value = getattr(error, "value", None)
    return (*place, *place_of(value, entry)) if isinstance(value, str) else place


def place_of(text: str, entry: Any) -> Place:
    """Return the place of the last key or value that equals a text, or an empty place."""
    parts = entry.items() if isinstance(entry, dict) else enumerate(entry)
    result: Place = ()
    for key, value in parts:
        if text in (key, value):
            result = (key,)
        elif isinstance(value, (dict, list)) and (inner := place_of(text, value)):
            result = (key, *inner)
    return result
