"""Energy densities of mesh bodies: the names that users may give, and functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ufl

from dolfinx_mbd.checks import reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.prestress import initial_stress
from dolfinx_mbd.forms import Orthotropic
from dolfinx_mbd.forms.hyperelastic import neo_hookean

__all__ = ["checked_energy"]

_NAMES = ("saint-venant-kirchhoff", "neo-hookean")


def checked_energy(label: str, energy: Any, model: ElasticModel) -> Callable[[Any], Any]:
    """Return the energy density as a function of the displacement; see `MeshBody`.

    A prestress adds S₀:E with the stress S₀ of the body held at its undeformed shape.
    """
    if callable(energy):
        if model.prestress is not None:
            raise InputError(
                f"{label}: include the temperature or the initial stress in your energy, or use "
                f"one of the energies {_NAMES}; the model has a prestress",
                argument="energy",
                value=energy,
            )
        return energy  # type: ignore[no-any-return]
    if energy not in _NAMES:
        reject(f"{label}: energy", energy, f"a function energy(u), or one of {_NAMES}")
    materials = model.materials
    if materials is None:
        raise InputError(
            f"{label}: the model has a stiffness form and no material; give the energy as a "
            "function of the displacement",
            argument="energy",
            value=energy,
        )
    density = _named_energy(label, energy, materials)
    if model.prestress is None:
        return density
    initial = initial_stress(materials, model.displacements, model.prestress)
    return lambda u: density(u) + ufl.inner(initial, _green(u))


def _named_energy(label: str, energy: str, materials: BodyMaterials) -> Callable[[Any], Any]:
    """Return the energy density with a name, without prestress."""
    if energy == "saint-venant-kirchhoff":
        return lambda u: ufl.inner(materials.law(_green(u)), _green(u)) / 2
    rigid = [m for m in materials.by_group.values() if isinstance(m, Orthotropic)]
    if rigid:
        raise InputError(
            f"{label}: the neo-Hookean energy is for isotropic materials; use "
            "energy='saint-venant-kirchhoff' for an orthotropic material",
            argument="energy",
            value=energy,
        )
    # the moduli, which may differ between cells, as stresses of unit strains
    shear = materials.law(ufl.as_matrix([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]))[0, 1]
    lame = materials.law(ufl.as_matrix([[0, 0, 0], [0, 0, 0], [0, 0, 1]]))[0, 0]
    moduli: Any = SimpleNamespace(shear=shear, lame=lame)
    return lambda u: neo_hookean(u, moduli)


def _green(u: Any) -> Any:
    """Return the Green-Lagrange strain."""
    grad = ufl.grad(u)
    return (grad + grad.T + grad.T * grad) / 2
