"""Constants of materials as parameters: their values, and models in which one is a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import ufl
from dolfinx import fem
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import body_materials
from dolfinx_mbd.forms import GradedMaterial, Orthotropic
from dolfinx_mbd.forms.orthotropic import IN_PLANE, OUT_OF_PLANE, rotated_stiffness

if TYPE_CHECKING:
    from dolfinx_mbd.design.sensitivity.parameters import Parameter

PAIRS = ("12", "13", "23")
ISOTROPIC = ("young", "poisson", "density", "thermal_expansion")
ORTHOTROPIC = {
    **{f"young_{k + 1}": ("young", k) for k in range(3)},
    **{f"poisson_{pair}": ("poisson", k) for k, pair in enumerate(PAIRS)},
    **{f"shear_{pair}": ("shear", k) for k, pair in enumerate(PAIRS)},
}
"""Constants of an `Orthotropic` material: the attribute and the index of each."""
CONSTANTS = (*ISOTROPIC, *ORTHOTROPIC)
"""Constants of a material that can be parameters."""


def constant_value(model: ElasticModel, parameter: Parameter) -> Any:
    """Return the material constant of a parameter; raise an error if it does not exist."""
    label, quantity = f"parameter {parameter.name!r}", parameter.quantity
    material = _material(model, parameter)
    message = ""
    if quantity == "density" and model.density is not None:
        message = "the model has its own density, not that of a material"
    elif material is None:
        message = "the stiffness is given by a form; use a parameter of the quantity 'coefficient'"
    elif isinstance(material, Orthotropic) and quantity not in (*ORTHOTROPIC, "density"):
        message = (
            f"an orthotropic material has no {quantity!r}; its constants are "
            f"{', '.join(ORTHOTROPIC)} and density"
        )
    elif quantity in ORTHOTROPIC and not isinstance(material, Orthotropic):
        message = f"only an orthotropic material has {quantity!r}; use young or poisson"
    if message:
        raise InputError(f"{label}: {message}", argument="parameters", value=parameter)
    if quantity in ORTHOTROPIC:
        attribute, index = ORTHOTROPIC[quantity]
        return getattr(material, attribute)[index]
    value = getattr(material, quantity)
    if value is None:
        text = f"{label}: the material has no {quantity}"
        raise InputError(text, argument="parameters", value=parameter)
    if isinstance(value, Expr):
        text = f"{label}: the {quantity} is a function of space; use 'coefficient'"
        raise InputError(text, argument="parameters", value=parameter)
    return value


def _material(model: ElasticModel, parameter: Parameter) -> Any:
    """Return the material of the group of a parameter."""
    label, material = f"parameter {parameter.name!r}", model.material
    if isinstance(material, Mapping):
        groups = {str(key): value for key, value in material.items()}
        return groups.get(choice(f"{label}: group", parameter.group, groups))
    if parameter.group is not None:
        text = f"{label}: the body has one material and no groups"
        raise InputError(text, argument="group", value=parameter.group)
    return material


def variable_model(model: ElasticModel, parameter: Parameter) -> tuple[ElasticModel, fem.Function]:
    """Return the model with a material constant as a function of space, and this function.

    The constants of an orthotropic material are the sum of their value and the function.
    """
    value = constant_value(model, parameter)
    mesh, quantity = model.plain_mesh, parameter.quantity
    f = fem.Function(fem.functionspace(mesh, ("DG", 0)))

    def variable(material: Any) -> Any:
        if isinstance(material, Orthotropic):
            return VariableOrthotropic(material, quantity, f)
        f.x.array[:] = value
        constants = {a.name: getattr(material, a.name) for a in fields(GradedMaterial)}
        return GradedMaterial(**constants | {quantity: f})

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


class VariableOrthotropic(Orthotropic):
    """An orthotropic material whose constant c is changed to c + f, to first order in f."""

    def __init__(self, material: Orthotropic, quantity: str, f: fem.Function) -> None:
        values: dict[str, Any] = {a.name: getattr(material, a.name) for a in fields(Orthotropic)}
        if quantity == "density":
            values["density"] = values["density"] + f
        values |= {"_material": material, "_quantity": quantity, "_function": f}
        self.__dict__.update(values)

    def matrix(self, dim: int = 3, plane: str = "strain") -> Any:
        """Return the stiffness matrix as UFL; see `Orthotropic.matrix`."""
        base: Orthotropic = self.__dict__["_material"]
        C = base.matrix(dim, plane)
        return self._sum(C, self._change(dim, plane))

    def normal_row(self) -> Any:
        """Return the row of σ_zz as UFL; see `Orthotropic.normal_row`."""
        base: Orthotropic = self.__dict__["_material"]
        return self._sum(base.normal_row(), self._change(3, "strain")[2, IN_PLANE])

    def thermal_matrix(self, dim: int = 3, plane: str = "strain") -> Any:
        """Return the thermal stress per kelvin as UFL; see `Orthotropic.thermal_matrix`."""
        base: Orthotropic = self.__dict__["_material"]
        strains = np.linalg.solve(base.matrix(), base.thermal_matrix())
        if dim == 2 and plane == "stress":
            change = self._change(2, plane) @ strains[IN_PLANE]
        else:
            change = self._change(3, plane) @ strains
            change = change if dim == 3 else change[IN_PLANE]
        return self._sum(base.thermal_matrix(dim, plane), change)

    def _sum(self, value: Array, change: Array) -> Expr:
        """Return value + f · change as UFL; the value alone if the change is zero."""
        f = self.__dict__["_function"]
        if not change.any():
            return ufl.as_tensor(value.tolist())
        return ufl.as_tensor(value.tolist()) + f * ufl.as_tensor(change.tolist())

    def _change(self, dim: int, plane: str) -> Array:
        """Return the derivative of `Orthotropic.matrix` with respect to the constant."""
        material, quantity = self.__dict__["_material"], self.__dict__["_quantity"]
        dC: Array = np.zeros((6, 6))
        if quantity in ORTHOTROPIC:
            attribute, k = ORTHOTROPIC[quantity]
            E, pairs = material.young, ((0, 1), (0, 2), (1, 2))
            dS: Array = np.zeros((3, 3))
            if attribute == "shear":
                dC[5 - k, 5 - k] = 1.0  # the shear stresses 12, 13, 23 are the rows 5, 4, 3
            elif attribute == "young":
                dS[k, k] = -1.0 / E[k] ** 2
                for (i, j), ratio in zip(pairs, material.poisson, strict=True):
                    if i == k:
                        dS[i, j] = dS[j, i] = ratio / E[k] ** 2
            else:
                i, j = pairs[k]
                dS[i, j] = dS[j, i] = -1.0 / E[i]
            local = _local_stiffness(material)
            dC[:3, :3] = -local @ dS @ local
        if not isinstance(material.axes, Expr):
            dC = rotated_stiffness(dC, np.asarray(material.axes))
        if dim == 3:
            return dC
        if plane == "strain":
            return dC[np.ix_(IN_PLANE, IN_PLANE)]
        return _condensed_change(material.matrix(), dC)


def _local_stiffness(material: Orthotropic) -> Array:
    """Return the stiffness from normal strains to normal stresses along the axes, (3, 3), Pa."""
    S: Array = np.diag(1.0 / np.array(material.young))
    for (i, j), ratio in zip(((0, 1), (0, 2), (1, 2)), material.poisson, strict=True):
        S[i, j] = S[j, i] = -ratio / material.young[i]
    return np.asarray(np.linalg.inv(S))


def _condensed_change(C: Array, dC: Array) -> Array:
    """Return the derivative of the stiffness matrix in plane stress."""
    inner, cross, outer = (
        dC[np.ix_(rows, columns)]
        for rows, columns in (
            (IN_PLANE, IN_PLANE),
            (IN_PLANE, OUT_OF_PLANE),
            (OUT_OF_PLANE, OUT_OF_PLANE),
        )
    )
    B, D = C[np.ix_(IN_PLANE, OUT_OF_PLANE)], C[np.ix_(OUT_OF_PLANE, OUT_OF_PLANE)]
    X = np.linalg.solve(D, B.T)
    change = cross @ X
    return np.asarray(inner - change - change.T + X.T @ outer @ X)
