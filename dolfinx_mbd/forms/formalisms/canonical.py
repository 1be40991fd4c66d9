"""Hamilton's canonical equations, with the momenta as a field."""

from __future__ import annotations

from typing import NamedTuple

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.forms.formalisms.body import MovingBody, Symbols, along

__all__ = ["CanonicalEquations", "hamilton", "hamiltonian", "momentum"]


def momentum(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the (absolute) momenta p = ∂T/∂u̇ of the elastic coordinates, kg m/s."""
    s = Symbols(body)
    return ufl.inner(ufl.diff(s.kinetic_energy(), s.u_dot), v) * body.measure


def _legendre(s: Symbols, pi: Expr) -> Expr:
    """Return p·u̇ − T per volume, with the u̇ that corresponds to p = ρπ."""
    rest = ufl.variable(ufl.zero(pi.ufl_shape))
    offset = ufl.diff(s.kinetic_energy(rest), rest)
    u_dot = pi - offset / s.density  # T is quadratic in u̇: p = ρ u̇ + offset
    return s.density * ufl.inner(pi, u_dot) - s.kinetic_energy(u_dot)


def hamiltonian(body: MovingBody, pi: Expr) -> ufl.Form:
    """Return Hamilton's function H(u, p, t) = p·u̇ − T + U − W by Legendre's transform, J.

    Args:
        body: The body and its motion; u̇ and ü are not used.
        pi: The momenta as a field π, m/s, with p = ∫ ρ π·v; see `hamilton`.
    """
    potential = body.strain_energy() - body.load_power(body.u)
    return _legendre(Symbols(body), pi) * body.measure + potential


class CanonicalEquations(NamedTuple):
    """Residuals of Hamilton's equations.

    Attributes:
        displacement: ∫ ρ u̇·v − ∂H/∂π = 0.
        momentum: ∫ ρ π̇·v + ∂H/∂u = 0.
    """

    displacement: ufl.Form
    momentum: ufl.Form


def hamilton(body: MovingBody, pi: Expr, pi_dot: Expr, v: Expr) -> CanonicalEquations:
    """Return the residuals of Hamilton's equations u̇ = ∂H/∂p and ṗ = −∂H/∂u.

    A field π represents the momenta by p = ∫ ρ π·v, so that no mass matrix is inverted. π is the
    absolute velocity in body components. If the degree of the space of displacements is at least
    the geometric order of the mesh, this space contains x and π, and the transform at each point is
    exact for the discrete body.

    Args:
        body: The body and its motion; ü is not used.
        pi: π, m/s, a function in the space of displacements.
        pi_dot: Rates of the components of π, m/s².
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
