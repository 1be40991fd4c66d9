"""Hamilton's equations of the first order, with the momenta as a field."""

from __future__ import annotations

from typing import NamedTuple

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.forms.formalisms.body import MovingBody, Symbols, along

__all__ = ["CanonicalEquations", "hamilton", "hamiltonian", "momentum"]


def momentum(body: MovingBody, v: Expr) -> ufl.Form:
    """The momenta p = ∂T/∂u̇ that belong to the elastic coordinates, kg m/s: absolute ones."""
    s = Symbols(body)
    return ufl.inner(ufl.diff(s.kinetic_energy(), s.u_dot), v) * body.measure


def _legendre(s: Symbols, pi: Expr) -> Expr:
    """p·u̇ − T per volume, with u̇ from p = ρπ, in place of the state's own."""
    rest = ufl.variable(ufl.zero(pi.ufl_shape))
    offset = ufl.diff(s.kinetic_energy(rest), rest)
    u_dot = pi - offset / s.density  # T is quadratic in u̇: p = ρ u̇ + offset
    return s.density * ufl.inner(pi, u_dot) - s.kinetic_energy(u_dot)


def hamiltonian(body: MovingBody, pi: Expr) -> ufl.Form:
    """Hamilton's function H(u, p, t) = p·u̇ − T + U − W, J, by Legendre's transform.

    Args:
        body: The body and its motion; u̇ and ü have no part in it.
        pi: The momenta as a field π, m/s, with p = ∫ ρ π·v: see `hamilton`.
    """
    work = body.work()
    potential = body.strain_energy() if work is None else body.strain_energy() - work
    return _legendre(Symbols(body), pi) * body.measure + potential


class CanonicalEquations(NamedTuple):
    """Hamilton's equations, of the first order.

    Attributes:
        displacement: ∫ ρ u̇·v − ∂H/∂π = 0.
        momentum: ∫ ρ π̇·v + ∂H/∂u = 0.
    """

    displacement: ufl.Form
    momentum: ufl.Form


def hamilton(body: MovingBody, pi: Expr, pi_dot: Expr, v: Expr) -> CanonicalEquations:
    """Hamilton's canonical equations u̇ = ∂H/∂p and ṗ = −∂H/∂u.

    The momenta are those of a field: p = ∫ ρ π·v through the mass form, so that no mass matrix is
    inverted. π is the absolute velocity in body components. It lies in the space of displacements,
    as x does, if their degree is at least the mesh's geometric order; then the transform point by
    point is that of the discrete body.

    Args:
        body: The body and its motion; ü has no part in it.
        pi: π, a function of the space of displacements, m/s.
        pi_dot: The rate of its components, m/s².
        v: Test function of that space, for both equations.

    References:
        Scutaru and Vlase (2023), eqs. 28 to 32 and 42.
    """
    s, symbol = Symbols(body), ufl.variable(pi)
    density = _legendre(s, symbol)
    return CanonicalEquations(
        (s.density * ufl.inner(body.u_dot, v) - along(density, symbol, v)) * body.measure,
        (s.density * ufl.inner(pi_dot, v) + along(density, s.u, v)) * body.measure
        + body.potential_forces(v),
    )
