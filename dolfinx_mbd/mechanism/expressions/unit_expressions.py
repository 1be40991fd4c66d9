"""Numbers with units, and expressions of them, in model files.

A number in a model file is a number in SI units, a number with a unit such as ``5mm`` or
``2e5 N/m``, or an expression of parameters such as ``2*radius + 5mm``. Expressions contain numbers,
names, ``+ - * / **``, comparisons with ``if else``, and the functions `FUNCTIONS`. They are parsed
to a tree of which only these nodes are accepted, so that a file cannot execute code.
"""

from __future__ import annotations

import ast
import difflib
import functools
import math
import re
from collections.abc import Mapping
from types import CodeType
from typing import Any, NamedTuple

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.expressions.jets import FUNCTIONS

__all__ = [
    "RESERVED",
    "UNITS",
    "Dimension",
    "check_expression",
    "check_unit",
    "compiled",
    "evaluate",
    "number",
    "parse_unit",
    "scope_of",
    "unit_of",
    "value_of",
]


class Dimension(NamedTuple):
    """Exponents of metre, kilogram, second, kelvin, radian and cycle in a unit."""

    length: float = 0.0
    mass: float = 0.0
    time: float = 0.0
    temperature: float = 0.0
    angle: float = 0.0
    cycle: float = 0.0

    def times(self, other: Dimension, power: float = 1.0) -> Dimension:
        """Return the dimension of the product with a power of another quantity."""
        return Dimension(*(a + power * b for a, b in zip(self, other, strict=True)))

    def agrees(self, other: Dimension) -> bool:
        """Return whether a value of one dimension can stand for the other.

        Radians are optional (N m and N m/rad), but cycles are not radians: 50 Hz is not 50 rad/s.
        """
        return self._replace(angle=0.0) == other._replace(angle=0.0)


def _units() -> dict[str, tuple[float, Dimension]]:
    """Return the units by name."""
    newton, pascal = Dimension(1, 1, -2), Dimension(-1, 1, -2)
    joule, watt = Dimension(2, 1, -2), Dimension(2, 1, -3)
    rate, angle = Dimension(time=-1, angle=1), Dimension(angle=1)
    metre, second, kilogram = Dimension(length=1), Dimension(time=1), Dimension(mass=1)
    return {
        **{"m": (1.0, metre), "dm": (0.1, metre), "cm": (1e-2, metre), "mm": (1e-3, metre)},
        **{"um": (1e-6, metre), "µm": (1e-6, metre), "in": (0.0254, metre), "ft": (0.3048, metre)},
        **{"kg": (1.0, kilogram), "g": (1e-3, kilogram), "t": (1e3, kilogram)},
        **{"s": (1.0, second), "ms": (1e-3, second), "us": (1e-6, second), "min": (60.0, second)},
        **{"N": (1.0, newton), "kN": (1e3, newton), "MN": (1e6, newton)},
        **{"Nm": (1.0, joule), "J": (1.0, joule), "kJ": (1e3, joule), "mJ": (1e-3, joule)},
        **{"W": (1.0, watt), "kW": (1e3, watt)},
        **{"Pa": (1.0, pascal), "kPa": (1e3, pascal), "MPa": (1e6, pascal), "GPa": (1e9, pascal)},
        **{"bar": (1e5, pascal), "K": (1.0, Dimension(temperature=1))},
        **{"rad": (1.0, angle), "deg": (math.pi / 180, angle), "°": (math.pi / 180, angle)},
        **{"rpm": (math.pi / 30, rate), "Hz": (1.0, Dimension(time=-1, cycle=1))},
        **{"kHz": (1e3, Dimension(time=-1, cycle=1))},
        **{"%": (0.01, Dimension()), "1": (1.0, Dimension())},
    }  # fmt: skip


UNITS = _units()
"""Units by name: factor to SI and dimension."""

_SUPERSCRIPTS = {"²": "2", "³": "3", "⁻": "-", "¹": "1", "⁴": "4"}
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_QUANTITY = re.compile(rf"\s*([-+]?{_NUMBER})\s*((?:1/)?[A-Za-zµ°%].*?)\s*")
"""A number and its unit, the whole text."""

_SUFFIXED = re.compile(rf"(?<![\w.])({_NUMBER})([A-Za-zµ°%]*)")
"""A number in an expression and, without a space, the name of its unit."""

_FACTOR = re.compile(r"([A-Za-zµ°%]+|1)(?:\^|\*\*)?(-?\d+(?:\.5)?)?")
"""A factor of a unit: a name and its exponent."""


def parse_unit(text: str) -> tuple[float, Dimension] | None:
    """Return the factor to SI and the dimension of a unit such as `N s/m` or `kg m²`, or None.

    A slash divides by all factors that follow in the same parentheses: `N/m/s` and `N/m s` are
    `N/(m s)`, but `N/(m/s)` is `N s/m`.
    """
    for superscript, digit in _SUPERSCRIPTS.items():
        text = text.replace(superscript, digit)
    factor, dimension = 1.0, Dimension()
    powers = [1.0, 1.0]  # at the start and in each of the open parentheses
    words = re.findall(r"[/()]|[^\s*/·()]+", re.sub(r"\*\*", "^", text))
    last = "("
    for word in words:
        if word in "/)" and last in "/(":
            return None  # a slash or closing parenthesis without a unit before it
        if word == "/":
            powers[-1] = -powers[-2]
        elif word == "(":
            powers.append(powers[-1])
        elif word == ")":
            powers.pop()
            if len(powers) < 2:
                return None
        else:
            match = _FACTOR.fullmatch(word)
            if match is None or match[1] not in UNITS:
                return None
            scale, base = UNITS[match[1]]
            exponent = powers[-1] * float(match[2] or 1)
            factor, dimension = factor * scale**exponent, dimension.times(base, exponent)
        last = word
    return None if last in "/(" or len(powers) > 2 else (factor, dimension)


_PERMITTED_NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.expr_context, ast.BinOp, ast.UnaryOp, ast.Call),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd),
    *(ast.IfExp, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
_MAX_LENGTH = 2000  # characters of an expression
_CONSTANTS = {"pi": math.pi, "true": 1.0, "false": 0.0}
RESERVED = frozenset({*FUNCTIONS, *_CONSTANTS})
"""Names of functions and constants in expressions."""


@functools.cache
def compiled(text: str, names: frozenset[str]) -> CodeType:
    """Return the code of an expression of the names, after a check that it has no other content.

    Args:
        text: The expression.
        names: Names that it may contain, besides functions and constants.

    Raises:
        InputError: The text is not an expression, or uses an unknown name or function.
    """
    if len(text) > _MAX_LENGTH:
        raise InputError(f"an expression has at most {_MAX_LENGTH} characters", value=text)
    source = _SUFFIXED.sub(_with_factor, text.replace("^", "**"))
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, RecursionError, ValueError):
        raise InputError(
            f"{text!r} is neither a number, a number with a unit, nor an expression", value=text
        ) from None
    for node in ast.walk(tree):
        _check_node(node, text, names)
        if isinstance(node, ast.Constant):
            node.value = float(node.value)  # type: ignore[arg-type] # integers grow without limit
    return compile(tree, "<model file>", "eval")


def _unknown_unit(unit: str, text: str) -> str:
    """Return a message about an unknown unit in a text, with the known units."""
    similar = difflib.get_close_matches(unit, UNITS, n=1)
    hint = f"did you mean {similar[0]!r}? Known" if similar else "known"
    names = ", ".join(name for name in UNITS if name != "1")
    return f"unknown unit {unit!r} in {text!r}; {hint} are {names}, and products and ratios of them"


def _with_factor(match: re.Match[str]) -> str:
    """Return a number with a unit, as in `2*radius + 5mm`, as a number in SI units."""
    if not match[2]:
        return match[0]
    unit = UNITS.get(match[2])
    if unit is None:
        raise InputError(_unknown_unit(match[2], match[0]), value=match[0])
    return repr(float(match[1]) * unit[0])


def _check_node(node: ast.AST, text: str, names: frozenset[str]) -> None:
    """Raise an error if a part of an expression is not permitted."""
    if not isinstance(node, _PERMITTED_NODES):
        raise InputError(f"{text!r} contains more than arithmetic", value=text)
    if isinstance(node, ast.Constant) and (
        isinstance(node.value, bool) or not isinstance(node.value, (int, float))
    ):
        raise InputError(f"{text!r} contains {node.value!r}, which is not a number", value=text)
    if isinstance(node, ast.Call):
        is_known = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        if not is_known or node.keywords:
            known = ", ".join(FUNCTIONS)
            raise InputError(f"{text!r}: the known functions are {known}", value=text)
    if isinstance(node, ast.Name) and node.id not in {*names, *_CONSTANTS, *FUNCTIONS}:
        known = ", ".join(sorted(names)) or "no names"
        raise InputError(f"{text!r}: unknown name {node.id!r}; known are {known}", value=text)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression of names with values (numbers or jets)."""
    return value_of(text, compiled(text, frozenset(values)), scope_of({}), values)


def scope_of(constants: Mapping[str, float]) -> dict[str, Any]:
    """Return the functions and constants of an expression by name."""
    return {"__builtins__": {}, **FUNCTIONS, **_CONSTANTS, **constants}


def value_of(text: str, code: CodeType, scope: dict[str, Any], values: Mapping[str, Any]) -> Any:
    """Return the value of compiled code; the text is for messages."""
    try:
        result = eval(code, scope, values)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise InputError(f"{text!r} has no value: {error}", value=text) from None
    if isinstance(result, complex):  # a fractional power of a negative number
        raise InputError(f"{text!r} has no real value: {result:.6g}", value=text)
    return result


def number(value: Any, parameters: Mapping[str, float], unit: str = "") -> float:
    """Return a number of a model file in SI units.

    Args:
        value: A number, a text with a unit, or an expression of the parameters.
        parameters: Values of the parameters by name.
        unit: Units that the number may have, separated by `|`; a unit of another dimension is an
            error. An empty text permits all units.

    Raises:
        InputError: The value is not a finite number, or its unit does not fit.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(f"expected a number or an expression; got {value!r}", value=value)
    result: Any = value
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value)
        known = parse_unit(match[2]) if match else None
        if match and known:
            result = float(match[1]) * known[0]
            _check_unit(value, match[2], known[1], unit)
        else:
            try:
                result = evaluate(value, parameters)
            except InputError:
                if match is None:
                    raise
                raise InputError(_unknown_unit(match[2], value), value=value) from None
    if not isinstance(result, (int, float)) or not math.isfinite(result):
        raise InputError(f"{value!r} is not a finite number", value=value)
    return float(result)


def unit_of(value: Any) -> str:
    """Return the unit of a number with a unit, or an empty text."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return match[2] if match and parse_unit(match[2]) else ""


def check_unit(value: str, unit: str, expected: str) -> None:
    """Raise an error if the unit of a value has another dimension than the expected units."""
    known = parse_unit(unit)
    if known is not None:
        _check_unit(value, unit, known[1], expected)


def check_expression(
    text: str,
    parameters: Mapping[str, Dimension],
    expected: str,
    variables: Mapping[str, Dimension] | None = None,
) -> None:
    """Raise an error if the dimension of an expression is known and does not fit the units.

    A plain number may have any unit, so that the dimension of a product with one is not known. An
    expression without parameters or numbers that have a unit, such as ``t``, is not checked.

    Args:
        text: An expression that `compiled` accepts.
        parameters: Dimensions of the parameters that have a unit.
        expected: Units that the value may have, separated by `|`; an empty text permits all.
        variables: Dimensions of variables.
    """
    known = dict(parameters)

    def name_of(match: re.Match[str]) -> str:
        """Return a name with the dimension of the unit in place of a number with a unit."""
        if not match[2]:
            return match[0]
        name = f"_unit_{match[2].encode().hex()}"  # letters and digits for signs such as °
        _, known[name] = UNITS[match[2]]
        return name

    source = _SUFFIXED.sub(name_of, text.replace("^", "**")).strip()
    try:
        tree = ast.parse(source, mode="eval")
        if not any(isinstance(node, ast.Name) and node.id in known for node in ast.walk(tree)):
            return
        dimension = _dimension(tree.body, {**known, **(variables or {})}, text)
    except RecursionError:  # thousands of parentheses or signs
        return
    if dimension is not None and any(dimension):
        _check_unit(text, _name_of(dimension), dimension, expected)


def _dimension(node: ast.AST, names: Mapping[str, Dimension], text: str) -> Dimension | None:
    """Return the dimension of a part of an expression, or None if it is not known."""

    def of(part: ast.AST) -> Dimension | None:
        return _dimension(part, names, text)

    if isinstance(node, ast.Name):
        return Dimension() if node.id in _CONSTANTS else names.get(node.id)
    if isinstance(node, ast.UnaryOp):
        return of(node.operand)
    if isinstance(node, ast.IfExp):
        return _common([of(node.body), of(node.orelse)], text)
    if isinstance(node, ast.Compare):
        return Dimension()
    if isinstance(node, ast.Call):
        parts = [of(part) for part in node.args]
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("abs", "min", "max"):
            return _common(parts, text)
        if name == "sqrt":
            return None if parts[0] is None else Dimension().times(parts[0], 0.5)
        return Dimension()
    if isinstance(node, ast.BinOp):
        left, right = of(node.left), of(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            return _common([left, right], text)
        if isinstance(node.op, ast.Pow):
            if left is not None and not any(left):
                return left
            if left is None or not isinstance(node.right, ast.Constant):
                return None
            return Dimension().times(left, float(node.right.value))  # type: ignore[arg-type]
        if left is None or right is None:
            return None
        return left.times(right, -1.0 if isinstance(node.op, ast.Div) else 1.0)
    return None


def _common(parts: list[Dimension | None], text: str) -> Dimension | None:
    """Return the dimension of values that are added or compared; numbers without one fit all."""
    known = [part for part in parts if part is not None and any(part)]
    for part in known[1:]:
        if not part.agrees(known[0]):
            units = f"{_name_of(known[0])} and {_name_of(part)}"
            raise InputError(f"{text!r}: values in {units} cannot be added or compared", value=text)
    return known[0] if known else (None if None in parts else Dimension())


def _name_of(dimension: Dimension) -> str:
    """Return the unit of a dimension in base units, such as `m kg s^-2`."""
    powers = zip(("m", "kg", "s", "K", "rad", "cycles"), dimension, strict=True)
    return " ".join(name if power == 1 else f"{name}^{power:g}" for name, power in powers if power)


def _check_unit(value: str, unit: str, dimension: Dimension, expected: str) -> None:
    """Raise an error if a dimension agrees with none of the expected units."""
    allowed = [parse_unit(word) for word in expected.split("|") if word]
    dimensions = [entry[1] for entry in allowed if entry is not None]
    if dimensions and not any(dimension.agrees(other) for other in dimensions):
        units = " or ".join(word for word in expected.split("|"))
        hint = "; 1 Hz is 2*pi rad/s or 60rpm" if dimension.cycle else ""
        raise InputError(
            f"{value!r}: expected a value in {units}, not in {unit}{hint}", value=value
        )
