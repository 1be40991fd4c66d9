"""Energy densities of mesh bodies: the names that users may give, and functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import ufl

from dolfinx_mbd.checks import reject
from dolfinx_mbd.errors import InputError, MeshWarning, warn
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.prestress import initial_stress
from dolfinx_mbd.forms import Orthotropic
from dolfinx_mbd.forms.hyperelastic import neo_hookean
from dolfinx_mbd.kernels.rotations import exp_quaternion, rotation_matrix
from dolfinx_mbd.mechanism.expressions.functions import Formula
from dolfinx_mbd.mechanism.expressions.unit_expressions import evaluate

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces

__all__ = [
    "HOOKE",
    "SIMPLICES",
    "Energy",
    "check_rest",
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

SIMPLICES = ("tetrahedron", "triangle")
"""Cells whose shape functions of degree p are all polynomials up to this degree."""

_NAMES = get_args(Energy)
_VARIABLES = ("I1", "I2", "J")
_LOCKING = 0.49  # Poisson's ratio above which displacements lock
_REST = 1e-9  # largest force at rest, relative to the largest stiffness times the body's size
# Rotations of about 0.5 rad, which must cause no forces
_ROTATION, _PLANE_ROTATION = (0.1, 0.3, 0.4), (0.0, 0.0, 0.5)


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
    orthotropic = [m for m in materials.by_group.values() if isinstance(m, Orthotropic)]
    if orthotropic:
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
    unit_shear, unit_stretch = np.zeros((dim, dim)), np.zeros((dim, dim))
    unit_shear[0, 1] = unit_shear[1, 0] = 0.5
    unit_stretch[-1, -1] = 1.0
    shear, lame = (materials.law(ufl.as_matrix(eps.tolist())) for eps in (unit_shear, unit_stretch))
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
        problem = "a plane mesh body supports no prestress; use a mesh of volumes"
    elif model.materials is None:
        problem = "a plane mesh body needs a material, and supports no stiffness form"
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
    """Warn about nearly incompressible materials with displacements alone.

    In a mesh of quadratic tetrahedra, the reduced quadrature has about as many points as there are
    displacements, four per cell, so that it does not avoid locking there.
    """
    is_reduced = energy == "nearly-incompressible"
    cell = model.displacements.ufl_element().cell_type.name
    if model.materials is None or (is_reduced and cell not in SIMPLICES):
        return
    ratios = [getattr(material, "poisson", None) for material in model.materials.by_group.values()]
    largest = max((ratio for ratio in ratios if isinstance(ratio, float)), default=0.0)
    if largest > _LOCKING:
        text = (
            f"{label}: {'simplices' if is_reduced else 'elements'} of a nearly incompressible "
            f"material (ν = {largest:g}) lock and are too stiff; use "
            "energy='nearly-incompressible' with hexahedra or (in the plane) quadrilaterals of "
            "degree 2"
        )
        warn(MeshWarning(text, quantity="Poisson's ratio", value=largest, limit=_LOCKING))


def check_rest(label: str, energy: Any, forces: NodalForces, size: float) -> float:
    """Return the largest stiffness of a node at rest, N/m; check the user's energy (collective).

    Args:
        label: Name of the body for messages.
        energy: The argument of the user.
        forces: Forces of the body.
        size: Size of the body, m.

    Warns:
        MeshWarning: The energy has forces if the body rotates.

    Raises:
        InputError: The energy has forces at rest, or no positive stiffness.
    """
    embedding, x = forces.embedding, forces.nodes.positions
    rest = embedding.displacements(x, np.zeros((len(x), embedding.dim)))
    zero = np.zeros_like(x)
    forces.set_state(rest, zero)
    K = forces.matrix(0.0, 0.0)
    diagonal = K.getDiagonal()
    stiffness = float(diagonal.max()[1])
    diagonal.destroy()
    K.destroy()
    if not callable(energy):
        return stiffness
    force = float(np.abs(forces.elastic()).max())
    cause = ""
    if not stiffness > 0.0:
        cause = f"the energy has the stiffness {stiffness:.3g} N/m at the undeformed shape, which "
        cause += "must be positive; check its sign, logarithms and powers"
    elif not force <= _REST * stiffness * size:
        cause = f"the energy has forces of up to {force:.3g} N at the undeformed shape; subtract "
        cause += "the terms that are linear in the strain, or check logarithms and powers"
    if cause:
        raise InputError(f"{label}: {cause}", argument="energy", value=energy)
    on_mesh = _PLANE_ROTATION if embedding.is_plane else _ROTATION
    angles = np.asarray(embedding.axes @ on_mesh, dtype=float)
    forces.set_state((x + rest) @ rotation_matrix(exp_quaternion(angles)).T - x, zero)
    force = float(np.abs(forces.elastic()).max())
    if not force <= _REST * stiffness * size:
        text = (
            f"{label}: the energy has forces of up to {force:.3g} N if the body rotates by 0.5 rad "
            "and does not deform; use C = FᵀF in place of the linear strain, unless forces outside "
            "the body, such as those of an elastic foundation, are part of the energy"
        )
        warn(MeshWarning(text, quantity="force", value=force, limit=_REST * stiffness * size))
    return stiffness


def _isochoric(u: Any, shear: Any) -> Any:
    """Return μ/2 (J^(−2/3) tr C − 3), the energy of a change of shape."""
    F = ufl.Identity(3) + ufl.grad(u)
    return shear / 2 * (ufl.det(F) ** (-2 / 3) * ufl.inner(F, F) - 3)


def _green(u: Any) -> Any:
    """Return the Green-Lagrange strain."""
    grad = ufl.grad(u)
    return (grad + grad.T + grad.T * grad) / 2
