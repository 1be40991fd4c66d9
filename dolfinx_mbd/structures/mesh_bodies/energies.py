"""Energy densities of mesh bodies: the names that users may give, and functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np
import ufl

from dolfinx_mbd.checks import reject
from dolfinx_mbd.errors import InputError, MeshWarning, warn
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.prestress import initial_stress
from dolfinx_mbd.forms import Orthotropic
from dolfinx_mbd.forms.hyperelastic import neo_hookean
from dolfinx_mbd.mechanism.expressions.functions import Formula
from dolfinx_mbd.mechanism.expressions.unit_expressions import evaluate

__all__ = [
    "HOOKE",
    "Energy",
    "checked_energy",
    "moduli_of",
    "named_or_expression",
    "volumetric_energy",
    "warn_of_locking",
]

Energy = Literal["saint-venant-kirchhoff", "neo-hookean", "nearly-incompressible"]
"""Energy densities by name."""

HOOKE = "saint-venant-kirchhoff"
"""Name of Hooke's law for large rotations."""

_NAMES = get_args(Energy)
_VARIABLES = ("I1", "I2", "J")
_LOCKING = 0.49  # Poisson's ratio above which displacements lock


def named_or_expression(label: str, energy: Any) -> Any:
    """Return the formula of the invariants I1, I2 and J that a text is; names remain names."""
    if not isinstance(energy, str) or energy in _NAMES:
        return energy
    try:
        return Formula(energy, _VARIABLES)
    except InputError as error:
        raise InputError(
            f"{label}: energy: {error}. Expected one of {', '.join(_NAMES)}, or an expression of "
            "the invariants I1, I2 and J",
            argument="energy",
            value=energy,
        ) from None


def _of_invariants(formula: Formula, u: Any) -> Any:
    """Return the energy density that is a formula of the invariants, as UFL."""
    F = ufl.Identity(3) + ufl.grad(u)
    C = F.T * F
    I1 = ufl.tr(C)
    values = {"I1": I1, "I2": (I1**2 - ufl.tr(C * C)) / 2, "J": ufl.det(F)}
    functions = {"log": ufl.ln, "exp": ufl.exp, "sqrt": ufl.sqrt, "tanh": ufl.tanh}
    return evaluate(formula.text, {**formula.constants, **values, **functions})


def checked_energy(label: str, energy: Any, model: ElasticModel) -> Callable[[Any], Any]:
    """Return the energy density as a function of the displacement; see `MeshBody`.

    A prestress adds S₀:E with the stress S₀ of the body held at its undeformed shape. Hooke's law
    of a plane body is a function of the displacement on its mesh, every other energy one of a
    displacement in space.
    """
    _check_plane(label, energy, model)
    if callable(energy):
        if model.prestress is not None:
            raise InputError(
                f"{label}: include the temperature or the initial stress in your energy, or use "
                f"one of the energies {_NAMES}; the model has a prestress",
                argument="energy",
                value=energy,
            )
        if isinstance(energy, Formula):
            return partial(_of_invariants, energy)
        return energy  # type: ignore[no-any-return]
    if not isinstance(energy, str) or energy not in _NAMES:
        expected = (
            f"a function energy(u), or one of {_NAMES}. There is no formulation with pressures as "
            "unknowns; for rubber use 'nearly-incompressible' and a Poisson's ratio up to 0.4999"
        )
        reject(f"{label}: energy", energy, expected)
    materials = model.materials
    if materials is None:
        raise InputError(
            f"{label}: the model has a stiffness form and no material; give the energy as a "
            "function of the displacement",
            argument="energy",
            value=energy,
        )
    density = _named_energy(label, energy, materials, model.displacements.dofmap.bs)
    if model.prestress is None:
        return density
    initial = initial_stress(materials, model.displacements, model.prestress)
    return lambda u: density(u) + ufl.inner(initial, _green(u))


def _named_energy(
    label: str, energy: str, materials: BodyMaterials, dim: int
) -> Callable[[Any], Any]:
    """Return the energy density with a name, without prestress."""
    if energy == HOOKE:
        return lambda u: ufl.inner(materials.law(_green(u)), _green(u)) / 2
    rigid = [m for m in materials.by_group.values() if isinstance(m, Orthotropic)]
    if rigid:
        raise InputError(
            f"{label}: the energy {energy!r} is for isotropic materials; use "
            "energy='saint-venant-kirchhoff' for an orthotropic material",
            argument="energy",
            value=energy,
        )
    shear, lame = moduli_of(materials, dim)
    if energy == "nearly-incompressible":
        return lambda u: _isochoric(u, shear)
    moduli: Any = SimpleNamespace(shear=shear, lame=lame)
    return lambda u: neo_hookean(u, moduli)


def moduli_of(materials: BodyMaterials, dim: int) -> tuple[Any, Any]:
    """Return μ and λ of isotropic materials, λ' in plane stress, as stresses of unit strains.

    They may differ between cells.
    """
    slide, stretch = np.zeros((dim, dim)), np.zeros((dim, dim))
    slide[0, 1] = slide[1, 0] = 0.5
    stretch[-1, -1] = 1.0
    shear, lame = (materials.law(ufl.as_matrix(eps.tolist())) for eps in (slide, stretch))
    return shear[0, 1], lame[0, 0]


def _check_plane(label: str, energy: Any, model: ElasticModel) -> None:
    """Raise an error for energies and materials that a plane body does not support."""
    if model.displacements.dofmap.bs == 3:
        return
    problem = ""
    if model.plane == "stress" and energy != HOOKE:
        problem = (
            "plane stress needs the stretch of the thickness from the condition that the stress "
            f"normal to the plane is zero, which is known for energy={HOOKE!r} only. Use this "
            "energy, plane='strain', or a mesh of volumes"
        )
    elif model.prestress is not None:
        problem = "a plane body on its mesh supports no prestress; use a mesh of volumes"
    elif model.materials is None:
        problem = "a plane body on its mesh needs a material, and supports no stiffness form"
    elif model.plane == "stress" and any(
        isinstance(m, Orthotropic) for m in model.materials.by_group.values()
    ):
        problem = (
            "plane stress of an orthotropic material is not supported, because the stretch of its "
            "thickness is not known; use plane='strain' or a mesh of volumes"
        )
    if problem:
        raise InputError(f"{label}: {problem}", argument="energy", value=energy)


def volumetric_energy(energy: Any, model: ElasticModel) -> Callable[[Any], Any] | None:
    """Return κ/2 (J − 1)² of a nearly incompressible body, otherwise None.

    Its quadrature has fewer points, so that elements do not lock.
    """
    if energy != "nearly-incompressible" or model.materials is None:
        return None
    shear, lame = moduli_of(model.materials, model.displacements.dofmap.bs)
    bulk = lame + 2 * shear / 3
    return lambda u: bulk / 2 * (ufl.det(ufl.Identity(3) + ufl.grad(u)) - 1) ** 2


def warn_of_locking(label: str, energy: Any, model: ElasticModel) -> None:
    """Warn about nearly incompressible materials with displacements alone."""
    if model.materials is None or energy == "nearly-incompressible":
        return
    ratios = [getattr(m, "poisson", None) for m in model.materials.by_group.values()]
    largest = max((r for r in ratios if isinstance(r, float)), default=0.0)
    if largest > _LOCKING:
        text = (
            f"{label}: elements of a nearly incompressible material (ν = {largest:g}) lock and are "
            "too stiff; use energy='nearly-incompressible' with hexahedra or (in the plane) "
            "quadrilaterals of degree 2"
        )
        warn(MeshWarning(text, quantity="Poisson's ratio", value=largest, limit=_LOCKING))


def _isochoric(u: Any, shear: Any) -> Any:
    """Return μ/2 (J^(−2/3) tr C − 3), the energy of a change of shape."""
    F = ufl.Identity(3) + ufl.grad(u)
    return shear / 2 * (ufl.det(F) ** (-2 / 3) * ufl.inner(F, F) - 3)


def _green(u: Any) -> Any:
    """Return the Green-Lagrange strain."""
    grad = ufl.grad(u)
    return (grad + grad.T + grad.T * grad) / 2
