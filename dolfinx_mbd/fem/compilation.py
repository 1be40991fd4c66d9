"""Compilation of forms and expressions, with their numbers as constants.

FFCx writes the numbers of a form into its C code, so that the form of a material with other numbers
would be compiled anew. Here, numbers become the entries of one `Constant` before the compilation:
the compiled code depends on the formula only. All forms of the package are compiled here.

These numbers remain in the code: ±1/2, ±1 and ±2, integers of one digit, and integer exponents,
which are parts of formulas. An exponent such as 3.0 or 2 also has a meaning for UFL: the derivative
of x² has no power, and the degree of quadrature depends on integer exponents.

UFL sorts the operands of sums and products, among others by the values of numbers. The entries are
therefore numbered in the order of the expression that has the same number in place of each number.
Equal expressions in an integrand are computed once; they share their entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from ufl.algebra import Power, Product, Sum
from ufl.constantvalue import FloatValue, IntValue
from ufl.core.expr import Expr
from ufl.domain import extract_domains
from ufl.sorting import cmp_expr
from ufl.tensoralgebra import Inner

_SORTED = (Sum, Product, Inner)  # UFL sorts their operands
_SAME = FloatValue(0.7)  # stands for all numbers while expressions are compared
_Images: TypeAlias = dict[Expr, Expr]


def compiled_form(form: ufl.Form | fem.Form, jit_options: Mapping[str, Any] | None = None) -> Any:
    """Compile a form with its numbers as constants; return a compiled form as it is (collective).

    Args:
        form: A form, or a compiled form.
        jit_options: Options of `dolfinx.fem.form`.
    """
    if not isinstance(form, ufl.Form):
        return form
    integrals = form.integrals()
    if integrals:
        integrands = [integral.integrand() for integral in integrals]
        changed = numbers_as_constants(integrands, integrals[0].ufl_domain())
        pairs = zip(integrals, changed, strict=True)
        form = ufl.Form([integral.reconstruct(integrand) for integral, integrand in pairs])
    return fem.form(form, jit_options=None if jit_options is None else dict(jit_options))


def compiled_expression(expression: Expr, points: Any) -> fem.Expression:
    """Compile an expression at points of the reference cell, its numbers as constants (collective).

    Args:
        expression: A UFL expression.
        points: Points, shape (points, dim of the cell).
    """
    domains = extract_domains(expression)
    if domains:
        (expression,) = numbers_as_constants([expression], domains[0])
    return fem.Expression(expression, points)


def numbers_as_constants(expressions: Sequence[Expr], domain: Any) -> list[Expr]:
    """Return expressions in which the numbers that are data are entries of one `Constant`.

    Args:
        expressions: UFL expressions, such as the integrands of a form; also derivatives that UFL
            has not computed yet.
        domain: UFL domain of the constant.

    Returns:
        Equal expressions without numbers; unchanged if there are no numbers.
    """
    images: list[_Images] = []
    count = 0

    def same(_: Expr) -> Expr:
        nonlocal count
        count += 1
        return _SAME

    for expression in expressions:
        images.append({})
        _replace(expression, same, images[-1])
    if not count:
        return list(expressions)
    constant = fem.Constant(domain, np.zeros(count, dtype=default_scalar_type))
    values: list[float] = []

    def entry(number: Expr) -> Expr:
        values.append(float(number))
        return constant[len(values) - 1]

    result = [
        _replace(expression, entry, {}, known)
        for expression, known in zip(expressions, images, strict=True)
    ]
    constant.value[:] = values
    return result


def _replace(
    root: Expr,
    replacement: Callable[[Expr], Expr],
    images: _Images,
    comparable: _Images | None = None,
) -> Expr:
    """Return an expression with other numbers.

    Args:
        root: Expression.
        replacement: Function that is called for each number, in the order of the result.
        images: The parts of the expression and their results; it is filled.
        comparable: The images for equal numbers, in whose order operands are visited; by default
            the order is that of the operands.
    """
    if _is_number(root):
        return replacement(root)
    stack = [root]
    while stack:
        node = stack[-1]
        operands = node.ufl_operands
        missing = [o for o in operands if o.ufl_operands and o not in images]
        if missing and comparable is not None and isinstance(node, _SORTED):
            missing.sort(key=cmp_to_key(lambda a, b: cmp_expr(comparable[a], comparable[b])))
        if missing and node not in images:
            stack += reversed(missing)
            continue
        stack.pop()
        if node in images:
            continue
        changed = [
            replacement(o)
            if _is_number(o, exponent=k == 1 and isinstance(node, Power))
            else images.get(o, o)
            for k, o in enumerate(operands)
        ]
        same = all(new is old for new, old in zip(changed, operands, strict=True))
        images[node] = node if same else node._ufl_expr_reconstruct_(*changed)
    return images[root]


def _is_number(expression: Expr, exponent: bool = False) -> bool:
    """Return whether an expression is a number that is data, not a part of a formula."""
    if isinstance(expression, IntValue):
        return not exponent and abs(int(expression)) > 9
    if not isinstance(expression, FloatValue):
        return False
    value = float(expression)
    return abs(value) not in (0.5, 1.0, 2.0) and not (exponent and value.is_integer())
