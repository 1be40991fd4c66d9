"""Laws of loads with states and of loads between two frames, given by expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import instance, names, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import tangent
from dolfinx_mbd.mechanism.expressions.functions import (
    JOINT_VARIABLES,
    PAIR_VARIABLES,
    Formula,
    expression_text,
)
from dolfinx_mbd.mechanism.expressions.jets import Jet
from dolfinx_mbd.mechanism.expressions.unit_expressions import value_of

__all__ = ["PairFormula", "StateFormula", "check_states"]

_ROTATIONS = ("rx", "ry", "rz")


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
    _formulas: tuple[Formula, ...] = field(init=False, repr=False, compare=False)
    _variables: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not instance("rates", self.rates, Mapping, "expressions by the names of the states"):
            reject("rates", self.rates, "expressions of the rates of one state or more, by name")
        value = expression_text("value", self.value)
        assign(self, value=value)
        _set_formulas(self, JOINT_VARIABLES, [("value", value)])

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.rates)

    def __call__(self, t: float, s: float, rate: float, states: Any) -> tuple[float, list[float]]:
        """Return the value and the rates of the states; see `JointLoad`."""
        value, *rates = map(float, _values(self, _arguments(self, (t, s, rate), states)))
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
    _formulas: tuple[Formula, ...] = field(init=False, repr=False, compare=False)
    _variables: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("force", "moment"):
            value = instance(name, getattr(self, name), (list, tuple), "three expressions")
            if len(value) != 3:
                reject(name, value, "three expressions")
            assign(self, **{name: tuple(expression_text(name, entry) for entry in value)})
        texts = [*(("force", x) for x in self.force), *(("moment", x) for x in self.moment)]
        _set_formulas(self, PAIR_VARIABLES, texts)

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.rates)

    def __call__(self, motion: Any) -> tuple[list[float], ...]:
        """Return force, moment and, with states, their rates; see `PairLoad`."""
        values = [float(value) for value in _values(self, self._named(motion))]
        parts = values[:3], values[3:6]
        return (*parts, values[6:]) if self.rates else parts

    def derivatives(self, motion: Any) -> Array:
        """Return the exact derivatives of force, moment and rates, (6 + m, 12 + m).

        They are with respect to displacement, small rotations θ, velocity, omega and states, as in
        `PairLoad`. A small rotation θ changes the rotation vector by T⁻ᵀ θ, where T is the tangent
        of the exponential map.
        """
        values, m = self._named(motion), self.num_states
        used = {name for formula in self._formulas for name in formula._code.co_names}
        result: Array = np.zeros((6 + m, 12 + m))
        for column, name in enumerate(self._variables[1:]):
            if name in used:
                parts = _values(self, {**values, name: Jet(values[name], 1.0)})
                result[:, column] = [p.first if isinstance(p, Jet) else 0.0 for p in parts]
        if used & set(_ROTATIONS):
            T = tangent(np.asarray(motion.rotation_vector))
            result[:, 3:6] = np.linalg.solve(T, result[:, 3:6].T).T
        return result

    def _named(self, motion: Any) -> dict[str, float]:
        """Return the values of all variables by name."""
        vectors = motion.displacement, motion.rotation_vector, motion.velocity, motion.omega
        return _arguments(self, (motion.time, *np.concatenate(vectors)), motion.states)


def _set_formulas(
    law: StateFormula | PairFormula, variables: tuple[str, ...], texts: list[tuple[str, Any]]
) -> None:
    """Set the formulas of a law: those of named texts, then the rates of the states.

    An error begins with the name of the text. The constants are reduced to those in use.
    """
    rates = instance("rates", law.rates, Mapping, "expressions by the names of the states")
    instance("constants", law.constants, Mapping, "values by name")
    names("constants", list(law.constants))
    for name in names("rates", list(rates)):
        if name in variables or name in law.constants:
            used = ", ".join((*variables, *law.constants))
            reject("rates", name, f"a name of a state that differs from {used}")
    rates = {name: expression_text(f"rates[{name!r}]", text) for name, text in rates.items()}
    result: list[Formula] = []
    constants: dict[str, float] = {}
    for name, text in [*texts, *rates.items()]:
        try:
            result.append(Formula(text, (*variables, *rates), law.constants))
        except InputError as error:
            raise InputError(f"{name}: {error}", argument=name, value=text) from None
        constants |= result[-1].constants
    assign(law, rates=rates, constants=constants, _formulas=tuple(result))
    assign(law, _variables=(*variables, *rates))


def _arguments(law: Any, motion: tuple[Any, ...], states: Any) -> dict[str, float]:
    """Return the values of the variables of a law by name."""
    check_states(type(law).__name__, law, np.asarray(states))
    return dict(zip(law._variables, map(float, (*motion, *states)), strict=True))


def _values(law: Any, values: Mapping[str, Any]) -> list[Any]:
    """Return the values of all formulas of a law, numbers or jets."""
    return [value_of(f.text, f._code, f._scope, values) for f in law._formulas]


def check_states(label: str, law: Any, states: Array) -> None:
    """Raise an error if a law that declares its number of states has another one."""
    expected = getattr(law, "num_states", len(states))
    if expected != len(states):
        noun = "start value" if expected == 1 else "start values"
        states_of_law = f"{expected} {noun}, one for each state"
        if not expected:
            states_of_law = "an empty list: the law has no rates of states"
        reject(f"{label}: states", states.tolist(), states_of_law)
