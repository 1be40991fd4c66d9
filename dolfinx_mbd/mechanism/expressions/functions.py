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
from dolfinx_mbd.mechanism.expressions.quantities import compiled, scope_of, value_of

__all__ = [
    "FRAME_VARIABLES",
    "JOINT_VARIABLES",
    "PAIR_VARIABLES",
    "ExpressionMotion",
    "Formula",
    "PairFormula",
    "StateFormula",
    "TableMotion",
    "VectorFormula",
    "check_states",
    "expression",
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
        constants: Values of other names in the expression.

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
        position: Formula of the time t, s.

    Example:
        >>> from dolfinx_mbd.io.models import ExpressionMotion, Formula
        >>> ExpressionMotion(Formula("t**3"))(2.0)
        (8.0, 12.0, 12.0)
    """

    position: Formula

    def __post_init__(self) -> None:
        instance("position", self.position, Formula)

    def __call__(self, t: float) -> tuple[float, float, float]:
        """Return position, rate and acceleration at time t (s)."""
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


@dataclass(frozen=True)
class StateFormula:
    """The value of a joint load with states, and the rates of the states.

    The names are the time `t` (s), the coordinate `s` of the joint (rad or m), its `rate`, and the
    names of the states.

    Attributes:
        value: Expression of the torque (N m) or force (N).
        rates: Expressions of the rates of the states, by the names of the states, in order.
        constants: Values of other names in the expressions.

    Raises:
        InputError: A text is not an expression of these names.

    Example:
        A PI controller of a speed of 20 rad/s, with the integral of the error as its state:

        >>> from dolfinx_mbd.mechanism.expressions import StateFormula
        >>> law = StateFormula("8*(20 - rate) + 30*sum", {"sum": "20 - rate"})
        >>> motor = mbd.JointLoad("motor", "hinge", "rotation", law, states=[0.0])
        >>> motor.evaluate(0.0, 0.0, 15.0, [2.0]).tolist()
        [100.0, 5.0]
    """

    value: str | float
    rates: Mapping[str, str | float] = field(hash=False)
    constants: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not instance("rates", self.rates, Mapping, "expressions by the names of the states"):
            reject("rates", self.rates, "expressions of the rates of one state or more, by name")
        value = _text("value", self.value)
        assign(self, value=value)
        _set_formulas(self, JOINT_VARIABLES, [("value", value)])

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.rates)

    def __call__(self, t: float, s: float, rate: float, states: Any) -> tuple[float, list[float]]:
        """Return the value and the rates of the states; see `JointLoad`."""
        value, *rates = _values(self, (t, s, rate), states)
        return value, rates


@dataclass(frozen=True)
class PairFormula:
    """The law of a `PairLoad` given by expressions, in the axes of the first frame.

    The names are the time `t` (s), the displacement `x`, `y`, `z` (m), the rotation vector `rx`,
    `ry`, `rz` (rad), the velocity `vx`, `vy`, `vz` (m/s) and the angular velocity `wx`, `wy`, `wz`
    (rad/s) of the second frame relative to the first, and the names of the states.

    Attributes:
        force: Expressions of the force on the second frame, shape (3,), N.
        moment: Expressions of the moment about its point, shape (3,), N m.
        rates: Expressions of the rates of the states, by the names of the states, in order.
        constants: Values of other names in the expressions.

    Raises:
        InputError: A text is not an expression of these names.

    Example:
        A Maxwell damper along x: 2 kN/m in series with 30 N s/m. Its state is the elongation of the
        spring:

        >>> from dolfinx_mbd.mechanism.expressions import PairFormula
        >>> law = PairFormula(
        ...     ("-k*e", "0", "0"), rates={"e": "vx - k/c*e"}, constants={"k": 2e3, "c": 30.0}
        ... )
        >>> ends = ground.frame("bearing"), rod.frame("right")
        >>> damper = mbd.PairLoad("damper", *ends, law, states=[0.0])
    """

    force: Sequence[str | float] = ("0", "0", "0")
    moment: Sequence[str | float] = ("0", "0", "0")
    rates: Mapping[str, str | float] = field(default_factory=dict, hash=False)
    constants: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("force", "moment"):
            value = instance(name, getattr(self, name), (list, tuple), "three expressions")
            if len(value) != 3:
                reject(name, value, "three expressions")
            assign(self, **{name: tuple(_text(name, entry) for entry in value)})
        texts = [*(("force", x) for x in self.force), *(("moment", x) for x in self.moment)]
        _set_formulas(self, PAIR_VARIABLES, texts)

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.rates)

    def __call__(self, motion: Any) -> tuple[list[float], ...]:
        """Return force, moment and, with states, their rates; see `PairLoad`."""
        arguments = (*motion.displacement, *motion.rotation_vector, *motion.velocity, *motion.omega)
        values = _values(self, (motion.time, *map(float, arguments)), motion.states)
        parts = values[:3], values[3:6]
        return (*parts, values[6:]) if self.rates else parts


def _text(name: str, value: Any) -> str:
    """Return an expression; a number is one, too."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(number(name, value)) if is_number else instance(name, value, str, "such as '2*t'")


def _set_formulas(
    law: StateFormula | PairFormula, variables: tuple[str, ...], texts: list[tuple[str, Any]]
) -> None:
    """Set the formulas of a law: those of named texts, then the rates of the states.

    An error begins with the name of the text. The constants are reduced to those in use.
    """
    rates = instance("rates", law.rates, Mapping, "expressions by the names of the states")
    for name in names("rates", list(rates)):
        if name in variables or name in law.constants:
            used = ", ".join((*variables, *law.constants))
            reject("rates", name, f"a name of a state that differs from {used}")
    rates = {name: _text(f"rates[{name!r}]", text) for name, text in rates.items()}
    result: list[Formula] = []
    constants: dict[str, float] = {}
    for name, text in [*texts, *rates.items()]:
        try:
            result.append(Formula(text, (*variables, *rates), law.constants))
        except InputError as error:
            raise InputError(f"{name}: {error}", argument=name, value=text) from None
        constants |= result[-1].constants
    assign(law, rates=rates, constants=constants, _formulas=tuple(result))


def _values(law: Any, arguments: tuple[float, ...], states: Any) -> list[float]:
    """Return the values of all formulas of a law for its arguments and states."""
    if len(states) != len(law.rates):
        count = f"{len(law.rates)} start values, for {', '.join(law.rates) or 'no states'}"
        reject("states", states, count)
    values = (*arguments, *map(float, states))
    return [formula(*values) for formula in law._formulas]


def check_states(label: str, law: Any, states: Array) -> None:
    """Raise an error if a law that declares its number of states has another one."""
    expected = getattr(law, "num_states", len(states))
    if expected != len(states):
        noun = "start value" if expected == 1 else "start values"
        reject(f"{label}: states", states.tolist(), f"{expected} {noun}, one for each state")


def expression(value: Any, variables: tuple[str, ...]) -> Any:
    """Return the formula of a text; other values are returned as they are."""
    return Formula(value, variables) if isinstance(value, str) else value


def expressions(value: Any, variables: tuple[str, ...] = FRAME_VARIABLES) -> Any:
    """Return the formula of three texts or numbers; other values are returned as they are."""
    is_text = isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value)
    if not is_text:
        return value
    if len(value) != 3:
        reject("value", value, "three expressions")
    texts = (_text("value", entry) for entry in value)
    return VectorFormula(*(Formula(text, variables) for text in texts))
