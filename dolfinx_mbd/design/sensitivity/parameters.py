"""Parameters of an elastic body, and the derivatives of its matrices with respect to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh
from mpi4py import MPI
from petsc4py import PETSc
from ufl.core.expr import Expr
from ufl.domain import extract_domains

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, instance, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.design.sensitivity.constants import CONSTANTS, constant_value, variable_model
from dolfinx_mbd.design.sensitivity.prestress_derivative import PrestressDerivatives, initial_stress
from dolfinx_mbd.design.sensitivity.shapes.matrix_derivatives import (
    CellMatrices,
    shape_matrices,
    value_matrices,
)
from dolfinx_mbd.design.sensitivity.shapes.moved_mesh import (
    changed_function,
    moved_mesh,
    nodes_velocity,
    step_limits,
    unchanged,
)
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, scalar_space
from dolfinx_mbd.fem.compat import geometry_degree, interpolated
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.forms import Temperature, strain
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import raise_together

Quantity = Literal[
    "young",
    "poisson",
    "density",
    "thermal_expansion",
    "young_1",
    "young_2",
    "young_3",
    "poisson_12",
    "poisson_13",
    "poisson_23",
    "shear_12",
    "shear_13",
    "shear_23",
    "thickness",
    "temperature",
    "prestress",
    "coefficient",
    "shape",
]
QUANTITIES = get_args(Quantity)
PRESTRESS = ("temperature", "prestress")
"""Quantities that change the prestress."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A number on which an elastic body depends.

    Attributes:
        name: Name of the parameter in results.
        quantity: ``young`` (Pa), ``poisson``, ``density`` (kg/m³) or ``thermal_expansion`` (1/K)
            of an isotropic material; ``young_1`` to ``young_3``, ``poisson_12``, ``poisson_13``,
            ``poisson_23``, ``shear_12``, ``shear_13``, ``shear_23`` or ``density`` of an
            `Orthotropic` material; ``thickness`` (m) of a plane body; ``temperature``, a uniform
            rise that is added to the `Temperature` of the model (K); ``prestress``, the factor of
            the prestress of the model; ``coefficient``, the factor c if the function f of the
            model, given by the attribute `coefficient`, becomes f + c `direction`; ``shape``, the
            factor of `velocity`, which moves all points of the body.
        group: Group of cells whose material has the constant, as in the mapping of materials; not
            required with one material.
        coefficient: `dolfinx.fem.Function` that the materials or the stiffness form of the model
            contain, for example Young's modulus of a `GradedMaterial`.
        direction: Change of `coefficient` per unit of the parameter, a function on the same space.
        velocity: Displacement of the points of the undeformed body per unit of the parameter, a
            UFL expression or a function of shape (dim,), m. It is interpolated at the nodes of the
            mesh. Interface points move with the affine motion that is closest to the velocity of
            the interface; axes of interfaces do not turn.

    Raises:
        InputError: The arguments do not fit the quantity.

    Example:
        >>> import ufl
        >>> modulus = mbd.Parameter("E", "young")
        >>> size = mbd.Parameter("size", "shape", velocity=ufl.SpatialCoordinate(box))
    """

    name: str
    quantity: Quantity
    group: str | None = None
    coefficient: fem.Function | None = None
    direction: fem.Function | None = None
    velocity: Expr | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"parameter {checked_name('name', self.name)!r}"
        choice(f"{label}: quantity", self.quantity, QUANTITIES)
        required = {"coefficient": ("coefficient", "direction"), "shape": ("velocity",)}
        names = required.get(self.quantity, ())
        for argument in ("coefficient", "direction", "velocity"):
            if (getattr(self, argument) is None) == (argument in names):
                verb = "needs" if argument in names else "does not accept"
                text = f"{label}: the quantity {self.quantity!r} {verb} the argument {argument!r}"
                raise InputError(text, argument=argument)
        if self.group is not None:
            checked_name(f"{label}: group", self.group)
        if self.group is not None and self.quantity not in CONSTANTS:
            text = f"{label}: only constants of a material have a group"
            raise InputError(text, argument="group", value=self.group)
        if self.quantity == "coefficient":
            V = instance(f"{label}: coefficient", self.coefficient, fem.Function).function_space
            W = instance(f"{label}: direction", self.direction, fem.Function).function_space
            if V.mesh.ufl_domain() != W.mesh.ufl_domain() or V.ufl_element() != W.ufl_element():
                text = f"{label}: direction and coefficient need the same function space"
                raise InputError(text, argument="direction", value=self.direction)
        if self.velocity is not None:
            instance(
                f"{label}: velocity", self.velocity, Expr, "for example ufl.as_vector([x[0], 0, 0])"
            )


@dataclass(frozen=True, eq=False)
class MatrixDerivatives:
    """Derivatives of the matrices and of the geometry of a body; None means zero.

    `of_form` returns the derivative of a form that is built from `stress`, the stress σ(u) as UFL.
    Within `with at_step(s)`, the mesh and the functions in `materials` have the values for the step
    s of the parameter.
    """

    stiffness: PETSc.Mat | CellMatrices | None
    scalar_mass: PETSc.Mat | None  # of M_s, the mass matrix of one component of the displacement
    of_form: Callable[[ufl.Form], ufl.Form]
    stress: Callable[[Expr], Expr] | None
    velocity: Array | None = None  # of the owned blocks, shape (owned blocks, dim), m
    thickness: float = 0.0  # derivative of the thickness of a plane body
    at_step: Callable[[float], AbstractContextManager[None]] = unchanged
    materials: BodyMaterials | None = None  # materials that change with the parameter
    limits: tuple[float, float] = (-np.inf, np.inf)  # steps at which a cell degenerates

    def of_load(self, form: ufl.Form) -> ufl.Form | None:
        """Return the derivative of a form that does not contain the thickness, or None if zero."""
        if self.thickness:
            return None
        expanded = ufl.algorithms.expand_derivatives(self.of_form(form))
        return None if expanded.empty() else expanded

    def stiffness_product(self, X: Array) -> Array:
        """Return K′X (collective)."""
        if self.stiffness is None:
            return np.zeros(X.shape, order="F")
        if isinstance(self.stiffness, CellMatrices):
            return self.stiffness.multiply(X)
        return multiply(self.stiffness, X)

    @cached_property
    def stiffness_diagonal(self) -> Array | None:
        """Diagonal of K′, shape (owned dofs,), None if zero; the first use is collective."""
        if isinstance(self.stiffness, CellMatrices):
            return self.stiffness.diagonal()
        return _diagonal(self.stiffness)

    @property
    def mass_diagonal(self) -> Array | None:
        """Diagonal of M_s′, shape (owned blocks,), None if zero; collective."""
        return _diagonal(self.scalar_mass)

    def destroy(self) -> None:
        """Free the matrices."""
        for matrix in (self.stiffness, self.scalar_mass):
            if matrix is not None:
                matrix.destroy()


def _diagonal(A: PETSc.Mat | None) -> Array | None:
    """Return the owned part of the diagonal of a matrix."""
    if A is None:
        return None
    diagonal = A.getDiagonal()
    values: Array = diagonal.array_r.copy()
    diagonal.destroy()
    return values


def base_value(model: ElasticModel, parameter: Parameter) -> float:
    """Return the value of a parameter in the model; zero for coefficients and shapes."""
    quantity = parameter.quantity
    if quantity in CONSTANTS:
        return number(f"parameter {parameter.name!r}", constant_value(model, parameter))
    if quantity == "temperature" and isinstance(model.prestress, Temperature):
        rise = model.prestress.rise
        return 0.0 if isinstance(rise, Expr) else float(rise)
    if quantity == "prestress":
        return 1.0
    return float(model.thickness or 0.0) if quantity == "thickness" else 0.0


def checked_velocity(parameter: Parameter, mesh: Mesh) -> Expr:
    """Return the velocity of a shape parameter; raise an error if it does not fit the mesh."""
    label, dim = f"parameter {parameter.name!r}: velocity", mesh.geometry.dim
    velocity = parameter.velocity
    if velocity is None or velocity.ufl_shape != (dim,):
        reject(label, velocity, f"an expression of shape ({dim},)")
    if any(domain != mesh.ufl_domain() for domain in extract_domains(velocity)):
        text = f"{label}: it belongs to another mesh than that of the body"
        raise InputError(text, argument="velocity", value=velocity)
    return velocity


def velocity_spaces(mesh: Mesh) -> tuple[fem.FunctionSpace, fem.FunctionSpace]:
    """Return the spaces of velocities at the nodes of a mesh and in its cells (collective)."""
    degree, dim = geometry_degree(mesh), mesh.geometry.dim
    nodes, cells = (fem.functionspace(mesh, (k, degree, (dim,))) for k in ("Lagrange", "DG"))
    return nodes, cells


def nodal_velocity(
    parameter: Parameter,
    mesh: Mesh,
    spaces: tuple[fem.FunctionSpace, fem.FunctionSpace] | None = None,
) -> fem.Function:
    """Return the velocity of a shape parameter at the nodes of a mesh (collective).

    Args:
        parameter: A parameter of the quantity `shape`.
        mesh: Mesh of the body.
        spaces: Result of `velocity_spaces`, which is called by default.

    Raises:
        InputError: The velocity does not fit the mesh, is not finite or zero everywhere, or jumps
            between cells.
    """
    vector, comm, dim = checked_velocity(parameter, mesh), mesh.comm, mesh.geometry.dim
    degree, (nodes, cells) = geometry_degree(mesh), spaces or velocity_spaces(mesh)
    velocity = interpolated(vector, nodes)
    values = velocity.x.array.reshape(-1, dim)
    message = None
    if not comm.allreduce(int(np.isfinite(values).all()), op=MPI.MIN):
        message = "it is not finite everywhere"
    else:
        size = comm.allreduce(float(np.abs(values).max(initial=0.0)), op=MPI.MAX)
        in_cells = interpolated(vector, cells).x.array.reshape(-1, dim)[cells.dofmap.list]
        jump = np.abs(in_cells - values[nodes.dofmap.list]).max(initial=0.0)
        jump = comm.allreduce(float(jump), op=MPI.MAX)
        if size == 0:
            message = "it is zero everywhere, so that the shape does not change"
        elif degree <= 2 and jump > 1e-6 * size:  # for higher degrees, the node order differs
            message = "it jumps between cells; use a continuous function"
    if message is not None:
        message = f"parameter {parameter.name!r}: velocity: {message}"
    raise_together(comm, message, InputError)
    return velocity


def matrix_derivatives(
    model: ElasticModel,
    problem: ElasticProblem,
    parameter: Parameter,
    prestress: PrestressDerivatives | None = None,
    forms: Sequence[ufl.Form] = (),
) -> MatrixDerivatives:
    """Return the derivatives of the matrices with respect to a parameter.

    Args:
        model: The model of the body.
        problem: Its matrices.
        parameter: The parameter.
        prestress: Derivatives of the prestress of the body, if it has one.
        forms: Other forms of the body, which may depend on the parameter.

    Note: Collective.

    Raises:
        InputError: The body does not depend on the parameter, or is not differentiable.
    """
    label = f"parameter {parameter.name!r}"
    if parameter.quantity == "thickness":
        if problem.thickness is None:
            raise InputError(f"{label}: only a plane body has a thickness", argument="parameters")
        t, K, Ms = problem.thickness, problem.stiffness.copy(), problem.scalar_mass.copy()
        K.scale(1.0 / t)
        Ms.scale(1.0 / t)
        return MatrixDerivatives(
            K,
            Ms,
            lambda form: (1.0 / t) * form,
            _stress(model),
            thickness=1.0,
            materials=model.materials,
        )
    if parameter.quantity == "shape":
        derivatives, initial = _shape_derivatives(model, problem, parameter)
    else:
        derivatives, initial = _value_derivatives(model, problem, parameter)
    if prestress is not None and derivatives.stress is not None:
        change = prestress(derivatives.stress, initial, derivatives.of_form)
        K = _sum(derivatives.stiffness, change)
        derivatives = replace(derivatives, stiffness=K)
    constant = derivatives.stiffness is None and derivatives.scalar_mass is None
    if constant and all(derivatives.of_load(form) is None for form in forms):
        text = f"{label}: the body does not depend on this {parameter.quantity}"
        raise InputError(text, argument="parameters", value=parameter)
    return derivatives


def _value_derivatives(
    model: ElasticModel, problem: ElasticProblem, parameter: Parameter
) -> tuple[MatrixDerivatives, Expr | None]:
    """Return the derivatives with respect to a number or a function, and the initial stress.

    The initial stress is UFL that contains the function with respect to which forms are
    differentiated.
    """
    initial, base = None, model
    if parameter.quantity == "coefficient":
        f, direction = parameter.coefficient, parameter.direction
    else:
        if parameter.quantity in PRESTRESS:
            f, initial = _variable_prestress(model, parameter)
        else:
            model, f = variable_model(model, parameter)
        direction = fem.Function(f.function_space)
        direction.x.array[:] = 1.0
    if initial is None:
        initial = initial_stress(model)

    def derivative(form: Any) -> Any:
        return ufl.derivative(form, f, direction)

    forms = _prepared(base, problem).forms
    variable = model, forms if model is base else _forms(model)
    K, Ms = value_matrices(base, problem, forms, variable, derivative)
    assert f is not None and direction is not None
    step = partial(changed_function, f, direction)
    law, materials = _stress(model), model.materials
    derivatives = MatrixDerivatives(K, Ms, derivative, law, at_step=step, materials=materials)
    return derivatives, initial


def _variable_prestress(model: ElasticModel, parameter: Parameter) -> tuple[fem.Function, Expr]:
    """Return a zero function, and the initial stress to which it adds a prestress."""
    label, heated = f"parameter {parameter.name!r}", isinstance(model.prestress, Temperature)
    message = ""
    if model.prestress is None:
        message = "the model has no prestress"
    elif parameter.quantity == "temperature" and not heated:
        message = "the prestress of the model is not a Temperature; use 'prestress'"
    if message:
        raise InputError(f"{label}: {message}", argument="parameters", value=parameter)
    f = fem.Function(fem.functionspace(model.plain_mesh, ("DG", 0)))
    stress, materials = initial_stress(model), model.materials
    assert stress is not None and materials is not None
    if parameter.quantity == "prestress":
        return f, (1 + f) * stress
    return f, stress + materials.thermal_stress(f)


def _stress(model: ElasticModel) -> Callable[[Expr], Expr] | None:
    """Return the stress law of a model, or None if its forms are user-defined."""
    return None if model.materials is None else model.materials.stress


def _forms(model: ElasticModel) -> tuple[ufl.Form, ufl.Form]:
    """Return the forms of stiffness and scalar mass, with the thickness of a plane body."""
    V, factor = model.displacements, 1.0 if model.thickness is None else float(model.thickness)
    stiffness = model.stiffness
    if model.materials is not None:
        u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
        stiffness = factor * ufl.inner(model.materials.stress(u), strain(v)) * ufl.dx
    W = scalar_space(V)
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    return stiffness, factor * model.mass_density * p * q * ufl.dx


class _Prepared:
    """Forms and spaces of a body, which all of its parameters share."""

    def __init__(self, model: ElasticModel) -> None:
        self.forms = _forms(model)
        self._mesh = model.plain_mesh

    @cached_property
    def velocity_spaces(self) -> tuple[fem.FunctionSpace, fem.FunctionSpace]:
        """Result of `velocity_spaces`; the first use is collective."""
        return velocity_spaces(self._mesh)


_PREPARED: WeakKeyDictionary[ElasticProblem, _Prepared] = WeakKeyDictionary()


def _prepared(model: ElasticModel, problem: ElasticProblem) -> _Prepared:
    """Return the forms and spaces of a body, which are made once (collective)."""
    if problem not in _PREPARED:
        _PREPARED[problem] = _Prepared(model)
    return _PREPARED[problem]


def _sum(A: PETSc.Mat | None, B: PETSc.Mat | None) -> PETSc.Mat | None:
    """Return A + B, stored in A; None means zero. A has all nonzero entries of B."""
    if A is None or B is None:
        return B if A is None else A
    A.axpy(1.0, B, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    B.destroy()
    return A


def _shape_derivatives(
    model: ElasticModel, problem: ElasticProblem, parameter: Parameter
) -> tuple[MatrixDerivatives, Expr | None]:
    """Return the derivatives with respect to a shape, and the initial stress."""
    V, mesh = model.displacements, model.plain_mesh
    prepared = _prepared(model, problem)
    dim, velocity = V.dofmap.bs, nodal_velocity(parameter, mesh, prepared.velocity_spaces)
    x = ufl.SpatialCoordinate(mesh)

    def of_form(form: ufl.Form) -> ufl.Form:
        return ufl.derivative(form, x, velocity)

    K, Ms = shape_matrices(model, problem, prepared.forms, velocity)
    displacement = fem.Function(V)
    displacement.interpolate(velocity)
    values = displacement.x.array[: dim * V.dofmap.index_map.size_local]
    derivatives = MatrixDerivatives(
        K,
        Ms,
        of_form,
        _stress(model),
        values.reshape(-1, dim).copy(),
        at_step=partial(moved_mesh, mesh, nodes_velocity(velocity)),
        materials=model.materials,
        limits=step_limits(velocity),
    )
    return derivatives, initial_stress(model)
