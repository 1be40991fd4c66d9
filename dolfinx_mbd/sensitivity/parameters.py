"""Parameters of an elastic body, and the derivatives of its matrices with respect to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import ufl
from dolfinx import fem
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, instance, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, assembled_matrix, scalar_space
from dolfinx_mbd.fem.compat import geometry_degree, interpolated
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import body_materials
from dolfinx_mbd.forms import GradedMaterial, Orthotropic, strain
from dolfinx_mbd.html import short_repr

Quantity = Literal["young", "poisson", "density", "thickness", "coefficient", "shape"]
QUANTITIES = ("young", "poisson", "density", "thickness", "coefficient", "shape")
CONSTANTS = ("young", "poisson", "density")
"""Constants of a material that can be parameters."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A number on which an elastic body depends.

    Attributes:
        name: Name of the parameter in results.
        quantity: ``young`` (Pa), ``poisson`` or ``density`` (kg/m³) of an isotropic material;
            ``thickness`` (m) of a plane body; ``coefficient``, the factor of `direction`, which is
            added to a function in the model; ``shape``, the factor of `velocity`, which moves all
            points of the body.
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
            instance(f"{label}: coefficient", self.coefficient, fem.Function)
            instance(f"{label}: direction", self.direction, fem.Function)
        if self.velocity is not None:
            instance(f"{label}: velocity", self.velocity, Expr)


@dataclass(frozen=True, eq=False)
class MatrixDerivatives:
    """Derivatives of the matrices and of the geometry of a body; None means zero.

    `of_form` returns the derivative of a form that is built from `stress`, the stress σ(u) as UFL.
    """

    stiffness: PETSc.Mat | None
    scalar_mass: PETSc.Mat | None
    of_form: Callable[[ufl.Form], ufl.Form]
    stress: Callable[[Expr], Expr] | None
    velocity: Array | None = None  # of the owned blocks, shape (owned blocks, dim), m
    thickness: float = 0.0  # derivative of the thickness of a plane body

    def destroy(self) -> None:
        """Free the matrices."""
        for matrix in (self.stiffness, self.scalar_mass):
            if matrix is not None:
                matrix.destroy()


def base_value(model: ElasticModel, parameter: Parameter) -> float:
    """Return the value of a parameter in the model; zero for coefficients and shapes."""
    if parameter.quantity in CONSTANTS:
        return number(f"parameter {parameter.name!r}", _constant(model, parameter))
    return float(model.thickness or 0.0) if parameter.quantity == "thickness" else 0.0


def matrix_derivatives(
    model: ElasticModel, problem: ElasticProblem, parameter: Parameter
) -> MatrixDerivatives:
    """Return the derivatives of the matrices with respect to a parameter.

    Args:
        model: The model of the body.
        problem: Its matrices.
        parameter: The parameter.

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
            K, Ms, lambda form: (1.0 / t) * form, _stress(model), thickness=1.0
        )
    if parameter.quantity == "shape":
        return _shape_derivatives(model, parameter)
    if parameter.quantity == "coefficient":
        f, direction = parameter.coefficient, parameter.direction
    else:
        model, f = _variable_model(model, parameter)
        direction = fem.Function(f.function_space)
        direction.x.array[:] = 1.0

    def of_form(form: ufl.Form) -> ufl.Form:
        return ufl.derivative(form, f, direction)

    K, Ms = (_assembled(of_form(form)) for form in _forms(model))
    if K is None and Ms is None:
        text = f"{label}: the body does not depend on this {parameter.quantity}"
        raise InputError(text, argument="parameters", value=parameter)
    return MatrixDerivatives(K, Ms, of_form, _stress(model))


def _stress(model: ElasticModel) -> Callable[[Expr], Expr] | None:
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


def _assembled(form: ufl.Form) -> PETSc.Mat | None:
    """Return the matrix of a form, or None if the form vanishes identically."""
    expanded = ufl.algorithms.expand_derivatives(form)
    return None if expanded.empty() else assembled_matrix(expanded)


def _constant(model: ElasticModel, parameter: Parameter) -> Any:
    """Return the material constant of a parameter; raise an error if it does not exist."""
    label, material = f"parameter {parameter.name!r}", model.material
    if isinstance(material, Mapping):
        groups = {str(key): value for key, value in material.items()}
        material = groups.get(choice(f"{label}: group", parameter.group, groups))
    elif parameter.group is not None:
        text = f"{label}: the body has one material and no groups"
        raise InputError(text, argument="group", value=parameter.group)
    if parameter.quantity == "density" and model.density is not None:
        text = f"{label}: the model has its own density, not that of a material"
        raise InputError(text, argument="parameters", value=parameter)
    if material is None or isinstance(material, Orthotropic):
        kind = "orthotropic" if material is not None else "given by a form"
        text = f"{label}: the stiffness is {kind}; use a parameter of the quantity 'coefficient'"
        raise InputError(text, argument="parameters", value=parameter)
    value = getattr(material, parameter.quantity)
    if isinstance(value, Expr):
        text = f"{label}: the {parameter.quantity} is a function of space; use 'coefficient'"
        raise InputError(text, argument="parameters", value=parameter)
    return value


def _variable_model(model: ElasticModel, parameter: Parameter) -> tuple[ElasticModel, fem.Function]:
    """Return the model with a constant of a material as a function, and this function."""
    value = _constant(model, parameter)
    mesh = model.plain_mesh
    f = fem.Function(fem.functionspace(mesh, ("DG", 0)))
    f.x.array[:] = value

    def variable(material: Any) -> GradedMaterial:
        constants = {a.name: getattr(material, a.name) for a in fields(GradedMaterial)}
        return GradedMaterial(**constants | {parameter.quantity: f})

    material: Any = model.material
    if isinstance(material, Mapping):
        key = next(key for key in material if str(key) == parameter.group)
        material = {**material, key: variable(material[key])}
    else:
        material = variable(material)
    materials = body_materials(model.mesh, material, model.cell_tags, model.plane)
    density = materials.density if model.density is None else model.mass_density
    copy = object.__new__(ElasticModel)
    copy.__dict__.update(model.__dict__ | {"materials": materials, "mass_density": density})
    return copy, f


def _shape_derivatives(model: ElasticModel, parameter: Parameter) -> MatrixDerivatives:
    V, mesh = model.displacements, model.plain_mesh
    dim = V.dofmap.bs
    vector = parameter.velocity
    if vector is None or vector.ufl_shape != (dim,):
        expected = f"an expression of shape ({dim},)"
        reject(f"parameter {parameter.name!r}: velocity", vector, expected)
    nodes = fem.functionspace(mesh, ("Lagrange", geometry_degree(mesh), (dim,)))
    velocity = interpolated(vector, nodes)
    x = ufl.SpatialCoordinate(mesh)

    def of_form(form: ufl.Form) -> ufl.Form:
        return ufl.derivative(form, x, velocity)

    K, Ms = (_assembled(of_form(form)) for form in _forms(model))
    values = interpolated(velocity, V).x.array[: dim * V.dofmap.index_map.size_local]
    return MatrixDerivatives(K, Ms, of_form, _stress(model), values.reshape(-1, dim).copy())
