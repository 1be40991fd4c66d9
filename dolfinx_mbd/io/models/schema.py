"""The JSON schema of model files, for editors and other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dolfinx_mbd.io.models.beam_entries import BEAM
from dolfinx_mbd.io.models.declarations import REQUIRED, Declared, declared_fields, members
from dolfinx_mbd.io.models.flexible_parts import FIELDS, PICK
from dolfinx_mbd.io.models.kinds import ANALYSES, FORMULAS, FUNCTIONS, SECTIONS, VALUES
from dolfinx_mbd.io.models.makers import Makers
from dolfinx_mbd.io.models.mesh_parts import MODEL
from dolfinx_mbd.io.models.reader import FORMAT, OPTIONS, RESULTS

__all__ = ["schema"]

_NUMBER = {"type": ["number", "string"]}
_ARRAY = {"type": ["array", "number", "string"]}
_FRAMES = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            _ARRAY,
            {
                "type": ["object", "null"],
                "properties": {"point": _ARRAY, "axes": _ARRAY},
                "additionalProperties": False,
            },
        ]
    },
}
_FRAME_REF = {
    "anyOf": [
        {"type": "string", "pattern": r"^[^.]+\.[^.]+$"},
        {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
    ]
}
_OMITTED = ("name", "constants")
"""Arguments that are no entries: the name is the key, and the parameters are the constants."""

_DEFINED = ("ReducedBody", "ElasticModel", "Interfaces", "Materials")
"""Types with a schema of their own, besides those of `VALUES`."""

_TYPES: dict[str, Any] = {
    "float": _NUMBER,
    "int": {"type": ["integer", "string"]},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "ArrayLike": _ARRAY,
    "Array": _ARRAY,
    "NDArray[np.float64]": _ARRAY,
    "NDArray[np.int64]": _ARRAY,
    "FrameRef": _FRAME_REF,
    "Mapping[str, Frame]": _FRAMES,
    "Requests": {"type": "array", "items": {"type": "string"}},
    "Any": {},
    **{name: {"$ref": f"#/$defs/{name}"} for name in (*VALUES, *_DEFINED)},
}
"""Schemas of fields by the name of their type."""


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of model files.

    It is generated from the signatures and docstrings of the classes and functions that the parts
    of a model name. Numbers may be texts with a unit or expressions.

    Example:
        >>> from dolfinx_mbd.io.models import schema
        >>> sorted(schema()["properties"]["joints"]["additionalProperties"])
        ['oneOf', 'properties']
    """
    sections = {name: _section(makers) for name, makers in SECTIONS.items() if name != "mechanism"}
    analyses = {name: _analysis(maker) for name, maker in ANALYSES.items()}
    material = {"anyOf": [{"type": "string"}, _choice(VALUES["Material"], named=False)]}
    by_group = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Material"}}
    body = {"anyOf": [{"type": "string"}, _rod(), _reduction()]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Model file of dolfinx_mbd",
        "type": "object",
        "properties": {
            "model": {"const": FORMAT, "description": "Version of the format."},
            "title": {"type": "string"},
            "include": {"anyOf": [{"type": "string"}, _TYPES["Requests"]]},
            "parameters": {"type": "object", "additionalProperties": _NUMBER},
            "gravity": {**_ARRAY, "description": "Acceleration of gravity, m/s²."},
            **sections,
            "mechanism": _choice(SECTIONS["mechanism"], named=False),
            **analyses,
            "results": {"type": ["array", "string"], "items": {"enum": list(RESULTS)}},
            "sweep": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": _NUMBER},
            },
        },
        "required": ["model"],
        "additionalProperties": False,
        "$defs": {
            **{name: _choice(makers, named=False) for name, makers in VALUES.items()},
            "ReducedBody": body,
            "Function": _choice(FUNCTIONS, named=True),
            "ElasticModel": _model(),
            "Interfaces": _interfaces(),
            "Material": material,
            "Materials": {"anyOf": [material, by_group]},
        },
    }


def _section(makers: Makers) -> dict[str, Any]:
    """Return the schema of a section with parts by name."""
    return {"type": "object", "additionalProperties": _choice(makers, named=True)}


def _choice(makers: Makers, *, named: bool) -> dict[str, Any]:
    """Return the schema of an object that one of the makers makes."""
    first = next(iter(makers))
    objects = [
        _object(
            maker,
            kind,
            kind_name=kind if len(makers) > 1 else None,
            optional_kind=(not named and kind == first) or kind == "ground",
            omitted=_OMITTED if named else (),
        )
        for kind, maker in makers.items()
    ]
    if len(objects) == 1:
        return objects[0]
    # Repeated outside of `oneOf`, so that editors suggest the values of `type`
    return {"properties": {"type": {"enum": list(makers)}}, "oneOf": objects}


def _object(
    maker: Callable[..., Any],
    kind: str,
    *,
    kind_name: str | None,
    optional_kind: bool,
    omitted: tuple[str, ...],
) -> dict[str, Any]:
    """Return the schema of an object that a maker makes from entries of a file.

    Args:
        maker: Class or function.
        kind: Key of the maker in `FORMULAS`.
        kind_name: Value of the entry `type`; None if there is no such entry.
        optional_kind: Whether the entry `type` may be omitted.
        omitted: Names of arguments that are not entries.
    """
    fields = {n: f for n, f in declared_fields(maker).items() if n not in omitted}
    properties = {name: _field(kind, field) for name, field in fields.items()}
    required = [name for name, field in fields.items() if field.is_required]
    if kind_name is not None:
        properties = {"type": {"const": kind_name}, **properties}
        required = required if optional_kind else ["type", *required]
    result = {"type": "object", "properties": properties, "additionalProperties": False}
    if (maker.__doc__ or "").strip():
        result["description"] = (maker.__doc__ or "").strip().splitlines()[0]
    if required:
        return {**result, "required": required}
    return {**result, "type": ["object", "null"]}  # an object without entries is null in YAML


def _field(kind: str, field: Declared) -> dict[str, Any]:
    """Return the schema of a field."""
    if (kind, field.name) in FORMULAS:
        result = _motion() if field.name == "motion" else _function(kind, field)
    else:
        options = [option for name in field.types if (option := _type(name)) is not None]
        result = _any_of(options)
    result = {**result, "description": field.text} if field.text else result
    simple = (str, int, float, bool)
    if field.default is not REQUIRED and isinstance(field.default, simple):
        result = {**result, "default": field.default}
    return result


def _function(kind: str, field: Declared) -> dict[str, Any]:
    """Return the schema of a field that is an expression or an object of `FUNCTIONS`."""
    rule = FORMULAS[kind, field.name]
    options = (
        [{"$ref": "#/$defs/Function"}]
        if rule.is_object
        else [
            _ARRAY,
            {"$ref": "#/$defs/Function"},
        ]
    )
    if rule.default:
        maker = FUNCTIONS[rule.default]
        options.append(
            _object(maker, rule.default, kind_name=None, optional_kind=True, omitted=_OMITTED)
        )
    return {"anyOf": options}


def _any_of(options: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a value of one of several types; without types, no value fits."""
    if not options:
        return {"not": {}}
    return options[0] if len(options) == 1 else {"anyOf": options}


def _motion() -> dict[str, Any]:
    """Return the schema of the motion of a driver: an expression, a speed or a table."""
    table = {name: _ARRAY for name in ("times", "positions", "rates", "accelerations")}
    options: list[dict[str, Any]] = [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"speed": _NUMBER, "angle": _NUMBER},
            "required": ["speed"],
        },
        {"type": "object", "properties": table, "required": ["times", "positions"]},
    ]
    return {"anyOf": [{"additionalProperties": False, **o} for o in options]}


def _type(name: str) -> dict[str, Any] | None:
    """Return the schema of a type, or None for a type that a model file cannot contain."""
    if name.startswith("choice:"):
        return {"enum": name.removeprefix("choice:").split(",")}
    if name.startswith(("tuple[", "Sequence[", "list[")):
        inner = name[name.index("[") + 1 : -1]
        kinds = {kind for part in members(inner, ",") for kind in members(part)} - {"..."}
        items = [option for kind in sorted(kinds) if (option := _type(kind)) is not None]
        return {"type": "array", "items": _any_of(items)} if items else None
    if name.startswith("Mapping[str, ") and name not in _TYPES:
        kinds = set(members(name.removeprefix("Mapping[str, ")[:-1]))
        items = [option for kind in sorted(kinds) if (option := _type(kind)) is not None]
        return {"type": "object", "additionalProperties": _any_of(items)} if items else None
    result: dict[str, Any] | None = _TYPES.get(name)
    return result


def _analysis(maker: Callable[..., Any]) -> dict[str, Any]:
    """Return the schema of the arguments of an analysis."""
    return _object(maker, "", kind_name=None, optional_kind=True, omitted=OPTIONS)


def _rod() -> dict[str, Any]:
    """Return the schema of a rigid rod."""
    from dolfinx_mbd.mechanism import mechanisms

    return _object(mechanisms.rigid_rod, "", kind_name="rigid_rod", optional_kind=False, omitted=())


def _reduction() -> dict[str, Any]:
    """Return the schema of a body that is reduced from a mesh or a beam."""
    properties = _declared(FIELDS)
    spec = {"type": ["object", "null"], "properties": _interface(), "additionalProperties": False}
    by_name = {"type": "object", "additionalProperties": {"anyOf": [spec, _NUMBER]}}
    beam = {"type": "object", "properties": _declared(BEAM), "additionalProperties": False}
    properties["beam"] |= {**beam, "required": ["length"]}
    properties["interfaces"] |= {"anyOf": [_TYPES["Requests"], by_name]}
    required = [name for name, field in FIELDS.items() if field.is_required]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "anyOf": _MATERIAL,
        "additionalProperties": False,
    }


_MATERIAL = [{"required": ["mesh"]}, {"required": ["material"]}]
"""A mesh file may contain the material."""


def _model() -> dict[str, Any]:
    """Return the schema of the model of a mesh body."""
    properties = _declared(MODEL)
    properties["material"] |= _TYPES["Materials"]
    return {
        "type": "object",
        "properties": properties,
        "anyOf": _MATERIAL,
        "additionalProperties": False,
    }


def _interfaces() -> dict[str, Any]:
    """Return the schema of interfaces: names, or fields by name."""
    spec = {"type": ["object", "null"], "properties": _interface(), "additionalProperties": False}
    by_name = {"anyOf": [spec, {"type": ["integer", "string"]}]}
    options = [{"type": "object", "additionalProperties": by_name}, {"type": "string"}]
    return {"anyOf": [_TYPES["Requests"], *options]}


def _interface() -> dict[str, Any]:
    """Return the schemas of the fields of an interface."""
    import dolfinx_mbd as mbd

    fields = declared_fields(mbd.InterfaceSpec)
    pick = {"type": "object", "properties": _declared(PICK), "additionalProperties": False}
    text = "Facets on shapes, or the smooth surface near a point."
    return {
        **{name: _field("", field) for name, field in fields.items()},
        "pick": {**pick, "minProperties": 1, "description": text},
    }


def _declared(fields: Mapping[str, Declared]) -> dict[str, Any]:
    """Return the schemas of declared fields by name."""
    return {
        name: {**(_type(field.types[-1]) or {}), "description": field.text}
        for name, field in fields.items()
    }
