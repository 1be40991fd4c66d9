"""Functions of time and of motions: expressions and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, increasing, instance, names, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.expressions.jets import Jet
from dolfinx_mbd.mechanism.expressions.unit_expressions import compiled, scope_of, value_of

__all__ = [
    "FRAME_VARIABLES",
    "JOINT_VARIABLES",
    "PAIR_VARIABLES",
    "ExpressionMotion",
    "Formula",
    "TableMotion",
    "VectorFormula",
    "expression",
    "expression_text",
    "expressions",
]

JOINT_VARIABLES = ("t", "s", "rate")
"""Names in the expression of a joint load."""
FRAME_VARIABLES = ("t", "x", "y", "z", "vx", "vy", "vz", "wx", "wy", "wz")
"""Names in the expressions of a `VectorFormula`."""
PAIR_VARIABLES = (*FRAME_VARIABLES[:4], "rx", "ry", "rz", *FRAME_VARIABLES[4:])
"""Names in the expressions of a `PairFormula`, besides those of its states."""


@dataclass(frozen=True)
class Formula:
    """A function given by an expression, for example of time, coordinate and rate.

    Attributes:
        text: The expression.
        variables: Names of the arguments, in order.
        constants: Values of other names in the expression; those that it does not contain are
            dropped.

    Raises:
        InputError: The text is not an expression of these names.

    Example:
        >>> from dolfinx_mbd.io.models import Formula
        >>> Formula("2 - 0.1*rate", ("t", "s", "rate"))(0.0, 0.0, 5.0)
        1.5
    """

    text: str
    variables: tuple[str, ...] = ("t",)
    constants: Mapping[str, float] = field(default_factory=dict, hash=False)
    _code: CodeType = field(init=False, repr=False, compare=False)
    _scope: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text = instance("text", self.text, str, "such as '2*t'")
        variables = names("variables", self.variables)
        constants = instance("constants", self.constants, Mapping, "values by name")
        names("constants", list(constants))
        code = compiled(text, frozenset({*variables, *constants}))
        used = {
            name: number(f"constants[{name!r}]", value)
            for name, value in constants.items()
            if name in code.co_names
        }
        assign(self, variables=variables, constants=used)
        assign(self, _code=code, _scope=scope_of(used))

    @property
    def num_states(self) -> int:
        """Number of states: an expression without rates has none."""
        return 0

    def __call__(self, *arguments: Any) -> Any:
        """Return the value for the arguments, numbers or jets."""
        if len(arguments) != len(self.variables):
            raise InputError(f"{self.text!r} needs the arguments {', '.join(self.variables)}")
        values = dict(zip(self.variables, arguments, strict=True))
        result = value_of(self.text, self._code, self._scope, values)
        return result if isinstance(result, Jet) else float(result)


@dataclass(frozen=True)
class ExpressionMotion:
    """The motion of a driver given by an expression of time, with exact derivatives.

    Attributes:
        position: Formula of the angle (rad) or displacement (m) with the time t (in s).

    Example:
        >>> from dolfinx_mbd.io.models import ExpressionMotion, Formula
        >>> ExpressionMotion(Formula("t**3"))(2.0)
        (8.0, 12.0, 12.0)
    """

    position: Formula

    def __post_init__(self) -> None:
        instance("position", self.position, Formula)

    def __call__(self, t: float) -> tuple[float, float, float]:
        """Return the position, rate and acceleration at time t (s)."""
        result = self.position(Jet(float(t), 1.0, 0.0))
        if not isinstance(result, Jet):
            return result, 0.0, 0.0
        return result.value, result.first, result.second


@dataclass(frozen=True, eq=False)
class TableMotion:
    """The motion of a driver given by a table over time.

    Between two times, the position is the polynomial of fifth degree that has the positions, rates
    and accelerations of the table at both times.

    Attributes:
        times: Times, increasing, shape (n,), s.
        positions: Angles (rad) or displacements (m), shape (n,).
        rates: Their rates, shape (n,); by default those of the cubic spline through the positions.
        accelerations: Their accelerations, shape (n,); by default those of the cubic spline.

    Raises:
        InputError: The times do not increase, or the lengths differ.

    Example:
        >>> from dolfinx_mbd.io.models import TableMotion
        >>> motion = TableMotion([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], [0.0, 2.0, 4.0], [2.0] * 3)
        >>> print(*(round(x, 12) for x in motion(0.5)))
        0.25 1.0 2.0
    """

    times: ArrayLike
    positions: ArrayLike
    rates: ArrayLike | None = None
    accelerations: ArrayLike | None = None

    def __post_init__(self) -> None:
        from scipy.interpolate import CubicSpline

        times = increasing("times", self.times, least=2, unit="s")
        shape = (len(times),)
        positions = array("positions", self.positions, shape, expected=f"{len(times)} numbers")
        spline = CubicSpline(times, positions)
        rates, accelerations = self.rates, self.accelerations
        rates = spline(times, 1) if rates is None else rates
        accelerations = spline(times, 2) if accelerations is None else accelerations
        assign(
            self,
            times=times,
            positions=positions,
            rates=array("rates", rates, shape, expected=f"{len(times)} numbers"),
            accelerations=array(
                "accelerations", accelerations, shape, expected=f"{len(times)} numbers"
            ),
        )

    @cached_property
    def _polynomials(self) -> Sequence[scipy.interpolate.BPoly]:
        """Return the piecewise polynomials of position, rate and acceleration."""
        columns: list[Array] = [self.positions, self.rates, self.accelerations]  # type: ignore[list-item]
        rows = np.stack(columns, axis=1)
        position = scipy.interpolate.BPoly.from_derivatives(self.times, rows)
        return position, position.derivative(1), position.derivative(2)

    def __call__(self, t: float) -> tuple[float, float, float]:
        """Return position, rate and acceleration at time t (s); outside of the table: an error."""
        times: Array = self.times  # type: ignore[assignment]
        margin = 1e-9 * (times[-1] - times[0])
        if not times[0] - margin <= t <= times[-1] + margin:
            reject("t", t, f"a time of the table, {times[0]:g} to {times[-1]:g} s")
        x = min(max(float(t), float(times[0])), float(times[-1]))
        position, rate, acceleration = (float(p(x)) for p in self._polynomials)
        return position, rate, acceleration


@dataclass(frozen=True)
class VectorFormula:
    """A force or torque at a frame: three expressions of time and of the motion of the frame.

    The names are `t` (s), the position `x`, `y`, `z` (m), the velocity `vx`, `vy`, `vz` (m/s) and
    the angular velocity `wx`, `wy`, `wz` (rad/s), in global components.

    Attributes:
        x: Formula of the first component.
        y: Formula of the second component.
        z: Formula of the third component.
    """

    x: Formula
    y: Formula
    z: Formula

    def __post_init__(self) -> None:
        for name in "xyz":
            formula = instance(name, getattr(self, name), Formula)
            unknown = set(formula.variables) - set(FRAME_VARIABLES)
            if unknown:
                reject(f"{name}.variables", formula.variables, f"among {FRAME_VARIABLES}")

    def __call__(self, t: float, motion: Any = None) -> list[float]:
        """Return the three components at a time and for the motion of a frame; see `FrameLoad`."""
        arguments = (t,)
        if motion is not None:
            arguments = (t, *motion.position, *motion.velocity, *motion.omega)
        named = dict(zip(FRAME_VARIABLES, map(float, arguments), strict=False))
        return [f(*(named[name] for name in f.variables)) for f in (self.x, self.y, self.z)]


def expression_text(name: str, value: Any) -> str:
    """Return an expression as text; a number is an expression, too."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(number(name, value)) if is_number else instance(name, value, str, "such as '2*t'")


def expression(value: Any, variables: tuple[str, ...]) -> Any:
    """Return the formula of a text; other values are returned unchanged."""
    return Formula(value, variables) if isinstance(value, str) else value


def expressions(value: Any, variables: tuple[str, ...] = FRAME_VARIABLES) -> Any:
    """Return the formula of three texts or numbers; other values are returned unchanged."""
    is_text = isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value)
    if not is_text:
        return value
    if len(value) != 3:
        reject("value", value, "three expressions")
    texts = (expression_text("value", entry) for entry in value)
    return VectorFormula(*(Formula(text, variables) for text in texts))
