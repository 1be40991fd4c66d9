"""Numbers of forms become constants: values agree with DOLFINx, code depends on the formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.la import InsertMode
from dolfinx.mesh import create_unit_cube
from mpi4py import MPI
from ufl.core.expr import Expr

from dolfinx_mbd.fem.compilation import (
    compiled_expression,
    compiled_form,
    numbers_as_constants,
)
from tests.test_structure import FILES, PACKAGE

Numbers = tuple[float, float, float, float]
NUMBERS: list[Numbers] = [
    (0.11, 0.9, 3.0, 0.3),
    (0.9, 0.11, 3.0, 0.3),
    (0.9, 0.11, 0.3, 3.0),
    (3e9, 1e6, -7e-3, 11.0),
    *map(tuple, np.random.default_rng(4).uniform(0.1, 99.0, (12, 4)).tolist()),
]
Formula = Callable[[fem.Function, Numbers], Expr]


def mooney_rivlin(u: fem.Function, numbers: Numbers) -> Expr:
    """Return an energy with powers of the invariants."""
    a, b, c, d = numbers
    F = ufl.variable(ufl.Identity(3) + ufl.grad(u))
    C, J = F.T * F, ufl.det(F)
    first = ufl.tr(C) * J ** (-2 / 3)
    second = 0.5 * (ufl.tr(C) ** 2 - ufl.tr(C * C)) * J ** (-4 / 3)
    energy = a * (first - 3) + b * (second - 3) + c * (J - 1) ** 2.0 + d * (J - 1) ** 2
    return energy + a * J * second + b * J * first


def powers(u: fem.Function, numbers: Numbers) -> Expr:
    """Return powers with exponents that are numbers, and a power of a number."""
    a, b, c, d = numbers
    J = ufl.det(ufl.Identity(3) + ufl.grad(u))
    exponents = (1.1 + abs(a) % 0.3, 2.2 + abs(b) % 0.3)
    return c * J ** exponents[0] + d * J ** exponents[1] + (0.1 + abs(d)) ** u[0] + J ** (-1.0)


def conditions(u: fem.Function, numbers: Numbers) -> Expr:
    """Return an energy with numbers in conditions and branches."""
    a, b, c, d = numbers
    x = ufl.SpatialCoordinate(u.function_space.mesh)
    inside = ufl.And(ufl.lt(x[0], a), ufl.gt(x[1], b))
    factor = ufl.conditional(inside, c, d) + ufl.max_value(x[2], 0.1 * c)
    return factor * ufl.inner(u, u) + ufl.conditional(ufl.lt(u[0], 0.01), a * u[0] ** 2, b * u[0])


def tensors(u: fem.Function, numbers: Numbers) -> Expr:
    """Return an energy with a matrix of numbers, large integers and quotients."""
    a, b, c, d = numbers
    matrix = ufl.as_matrix([[a, b, 0.0], [b, c, d], [0.0, d, a]])
    load = ufl.as_vector((0, c, -d))
    stress = matrix * ufl.sym(ufl.grad(u))
    quotient = ufl.exp(u[1] / (12 + abs(a))) / (b + 3.7)
    return ufl.inner(stress, ufl.grad(u)) + 7850 * ufl.dot(load, u) + quotient


def sum_of_equal_terms(u: fem.Function, numbers: Numbers) -> Expr:
    """Return terms that differ in their numbers only, and a number that occurs twice."""
    a, b, c, d = numbers
    x = ufl.SpatialCoordinate(u.function_space.mesh)
    return (a * u[0] + b * u[0] + c * u[1] ** 2) * (d * u[1] ** 2 + a * u[0] + a * x[0])


FORMULAS: tuple[Formula, ...] = (mooney_rivlin, powers, conditions, tensors, sum_of_equal_terms)


@pytest.fixture
def u(comm: MPI.Intracomm) -> fem.Function:
    """Return a displacement on a cube."""
    V = fem.functionspace(create_unit_cube(comm, 2, 1, 2), ("Lagrange", 2, (3,)))
    function = fem.Function(V)
    function.interpolate(lambda x: 0.05 * np.sin(3 * x + 2 * x[[1, 2, 0]]))
    return function


def forms(formula: Formula, u: fem.Function, numbers: Numbers) -> list[ufl.Form]:
    """Return an energy, its derivative and its second derivative."""
    V, dx = u.function_space, ufl.dx(metadata={"quadrature_degree": 3})
    energy = formula(u, numbers) * dx + numbers[1] * ufl.inner(u, u) * ufl.ds + 3.7 * u[0] * dx
    force = ufl.derivative(energy, u, ufl.TestFunction(V))
    return [energy, force, ufl.derivative(force, u, ufl.TrialFunction(V))]


def values(form: fem.Form) -> np.ndarray:
    """Return the assembled number, vector or matrix."""
    rank = len(form.function_spaces)
    if rank == 0:
        return np.array([fem.assemble_scalar(form)])
    if rank == 1:
        b = fem.assemble_vector(form)
        b.scatter_reverse(InsertMode.add)
        return b.array
    return fem.assemble_matrix(form).data


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_values_agree_with_those_of_dolfinx(u: fem.Function, formula: Formula) -> None:
    for form in forms(formula, u, NUMBERS[0]):
        expected, assembled = values(fem.form(form)), values(compiled_form(form))
        assert abs(assembled - expected).max() <= 1e-13 * abs(expected).max() > 0


def signature(form: ufl.Form) -> str:
    """Return the signature of a form with its numbers as constants."""
    integrals = form.integrals()
    changed = numbers_as_constants([i.integrand() for i in integrals], form.ufl_domains()[0])
    pairs = zip(integrals, changed, strict=True)
    return ufl.Form([integral.reconstruct(e) for integral, e in pairs]).signature()


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_the_signature_does_not_depend_on_numbers(u: fem.Function, formula: Formula) -> None:
    for k in range(3):
        all_forms = [forms(formula, u, numbers)[k] for numbers in NUMBERS]
        assert len({form.signature() for form in all_forms}) == len(NUMBERS)
        assert len({signature(form) for form in all_forms}) == 1


def test_the_signature_depends_on_the_formula(u: fem.Function) -> None:
    """Integers of one digit, integer exponents and simple fractions are not replaced."""
    J = ufl.det(ufl.grad(u))
    parts: list[Any] = [
        2 * J,
        3 * J,
        0.5 * J,
        J,
        J**3,
        J**4,
        J**3.0,
        J**4.0,
        J**1.5,
        1.5 * J,
        J + 1,
    ]
    assert len({signature(part * ufl.dx) for part in parts}) == len(parts)


def test_forms_without_numbers_are_not_changed(u: fem.Function) -> None:
    integrand = 2 * ufl.inner(ufl.grad(u), ufl.grad(u)) / 3 + u[0] ** 2
    assert (
        numbers_as_constants([integrand], ufl.domain.extract_domains(integrand)[0])[0] is integrand
    )


def test_identical_expressions_share_their_constants(u: fem.Function) -> None:
    """Otherwise the compiled code would compute the same power again for each of its uses."""
    J = ufl.det(ufl.Identity(3) + ufl.grad(u))
    form = (u[0] * J ** (-2 / 3) + u[1] * J ** (-2 / 3) + 2.7 * u[2]) * ufl.dx
    (constant,) = ufl.Form(
        [
            i.reconstruct(e)
            for i in form.integrals()
            for e in numbers_as_constants([i.integrand()], i.ufl_domain())
        ]
    ).constants()
    assert sorted(constant.value) == [-2 / 3, 2.7]


def test_a_compiled_form_remains(u: fem.Function) -> None:
    form = fem.form(u[0] * ufl.dx)
    assert compiled_form(form) is form


def test_a_number_alone_is_integrated(u: fem.Function) -> None:
    mesh = u.function_space.mesh
    value = fem.assemble_scalar(compiled_form(3.7 * ufl.dx(domain=mesh)))
    assert mesh.comm.allreduce(value) == pytest.approx(3.7, rel=1e-13)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.__name__)
def test_expressions_agree_with_those_of_dolfinx(u: fem.Function, formula: Formula) -> None:
    points = np.array([[0.1, 0.2, 0.3], [0.5, 0.1, 0.2]])
    mesh = u.function_space.mesh
    cells = np.arange(mesh.topology.index_map(3).size_local, dtype=np.int32)
    expression = formula(u, NUMBERS[1])
    expected = fem.Expression(expression, points).eval(mesh, cells)
    evaluated = compiled_expression(expression, points).eval(mesh, cells)
    np.testing.assert_allclose(
        evaluated, expected, rtol=1e-13, atol=1e-13 * abs(expected).max(initial=0)
    )


def test_all_forms_of_the_package_are_compiled_in_one_module() -> None:
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        code = [line for line in lines if not line.lstrip().startswith((">>>", "..."))]
        uses = [line for line in code if "fem.form(" in line or "fem.Expression(" in line]
        assert not uses or path == PACKAGE / "fem" / "compilation.py", path
