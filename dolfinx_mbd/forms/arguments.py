"""Checks of the arguments of forms: UFL expressions, and numbers that become expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import ufl
from ufl.core.expr import Expr
from ufl.measure import MeasureProduct, MeasureSum

from dolfinx_mbd.checks import instance, number, reject, rotation_matrix
from dolfinx_mbd.errors import InputError

Value: TypeAlias = "Expr | float | Sequence[Any] | npt.NDArray[np.floating[Any]]"
"""A UFL expression, or numbers that are converted to one."""

Shape: TypeAlias = tuple[int, ...]


def scalar(argument: str, value: Any) -> Any:
    """Return a scalar UFL expression unchanged, and any other value as a finite float."""
    if isinstance(value, Expr):
        return expression(argument, value, ((),))
    return number(argument, value)


def nonzero(argument: str, value: Any) -> Any:
    """Return a value as `scalar` does; raise an error for the number 0."""
    factor = scalar(argument, value)
    if not isinstance(factor, Expr) and not factor:
        reject(argument, value, "other than 0, because UFL removes an integral of zero from a form")
    return factor


def positive(argument: str, value: Any, unit: str = "") -> Any:
    """Return a value as `scalar` does; raise an error for a number that is not positive."""
    if isinstance(value, Expr):
        return scalar(argument, value)
    return number(argument, value, positive=True, unit=unit)


def as_ufl_value(value: Any, argument: str = "the value", shapes: Sequence[Shape] = ()) -> Expr:
    """Convert a UFL expression, a number or a sequence of both to a UFL scalar or vector.

    Error messages contain `argument`. `shapes` lists the accepted shapes; by default every shape is
    accepted.
    """
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        if not len(value):
            reject(argument, value, "numbers or UFL expressions, one for each component")
        value = ufl.as_vector([scalar(argument, entry) for entry in value])
    elif not isinstance(value, Expr):
        value = ufl.as_ufl(number(argument, value))
    return expression(argument, value, shapes)


def expression(argument: str, value: Any, shapes: Sequence[Shape] = ()) -> Expr:
    """Return a UFL expression, and raise an error if its shape is not one of `shapes`."""
    instance(argument, value, Expr, "a UFL expression")
    if (shapes and value.ufl_shape not in shapes) or value.ufl_free_indices:
        expected = " or ".join("scalar" if shape == () else f"of shape {shape}" for shape in shapes)
        text = f"{argument} must be {expected}; got a UFL expression of shape {value.ufl_shape}"
        raise InputError(text, argument=argument, value=value, expected=expected)
    return value


def coefficient(argument: str, value: Any, shapes: Sequence[Shape] = ()) -> Any:
    """Return a function after checking that UFL can differentiate with respect to it."""
    instance(argument, value, ufl.Coefficient, "a function on the mesh")
    return expression(argument, value, shapes)


def integration(measure: Any) -> Any:
    """Return `measure` after checking that it is a measure or a sum of measures."""
    return instance("measure", measure, (ufl.Measure, MeasureSum, MeasureProduct))


def integral(factor: tuple[str, Any], u: tuple[str, Any], v: Any, measure: Any) -> ufl.Form:
    """Return the form ∫ factor u·v; `factor` and `u` are pairs of argument name and value."""
    test = expression("v", v)
    value = as_ufl_value(u[1], u[0], (test.ufl_shape,))
    return ufl.as_ufl(nonzero(*factor)) * ufl.inner(value, test) * integration(measure)


def triad(argument: str, axes: Any) -> Any:
    """Return a rotation matrix of shape (3, 3); the identity if `axes` is None."""
    return np.eye(3) if axes is None else rotation_matrix(argument, axes)
