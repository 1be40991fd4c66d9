"""Equations of Lagrange, Gibbs-Appell and Kane, and the matrices of a residual."""

from __future__ import annotations

from typing import NamedTuple

import ufl
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr

from dolfinx_mbd.forms import floating_frame as frame
from dolfinx_mbd.forms.elasticity import strain, stress
from dolfinx_mbd.forms.formalisms.body import MovingBody, Symbols, acceleration, along

__all__ = ["LinearParts", "gibbs_appell", "kane", "lagrange", "linear_parts", "named_forms"]


def named_forms(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the residual as the sum of the forms of `floating_frame`, for comparison."""
    rho, dx = body.density, body.measure
    return (
        frame.mass(body.u_ddot, v, rho, dx)
        + frame.coriolis(body.u_dot, v, rho, body.omega, dx)
        + frame.centrifugal_stiffness(body.u, v, rho, body.omega, dx)
        + frame.euler_stiffness(body.u, v, rho, body.alpha, dx)
        + body.elastic_power(v)
        - frame.translational_load(v, rho, body.acceleration, dx)
        - frame.euler_load(v, rho, body.alpha, dx, x=body.x)
        - frame.centrifugal_load(v, rho, body.omega, dx, x=body.x)
        - body.load_power(v)
    )


def lagrange(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the residual of Lagrange's equations d/dt ∂T/∂u̇ − ∂T/∂u + ∂U/∂u − ∂W/∂u = 0.

    Args:
        body: The body and its motion.
        v: Test function of the space of displacements.

    References:
        Scutaru and Vlase (2023), eqs. 26 and 37.
    """
    s = Symbols(body)
    inertia = s.inertia_forces(s.kinetic_energy())
    return ufl.inner(inertia, v) * body.measure + body.potential_forces(v)


def gibbs_appell(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the residual of the Gibbs-Appell equations ∂R/∂ü = 0 with R = S − Q·ü.

    S = ½ ∫ ρ |a|² is the energy of accelerations, and Q·ü = −∫ σ(u):ε(ü) + ∫ ρ g·ü + ∫ t·ü. The
    acceleration of the motion minimizes R, which is Gauss's principle.

    Args:
        body: The body and its motion.
        v: Test function of the space of displacements.

    References:
        Scutaru and Vlase (2023), eqs. 33 and 44.
    """
    a = acceleration(body)
    function = body.density / 2 * ufl.inner(a, a) * body.measure + body.elastic_power(body.u_ddot)
    return ufl.derivative(function - body.load_power(body.u_ddot), body.u_ddot, v)


def kane(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the residual of Kane's equations, the balance of generalized forces.

    Inertia, stress and loads act on the partial velocities ∂v/∂u̇ and partial strain rates ∂ε̇/∂u̇:
    ∫ ρ a·∂v/∂u̇ + ∫ σ:∂ε̇/∂u̇ − ∫ ρ g·∂v/∂u̇ − ∫ t·∂v/∂u̇ = 0. No energy is used.

    Args:
        body: The body and its motion.
        v: Test function of the space of displacements.

    References:
        Scutaru and Vlase (2023), eqs. 58 to 61.
    """
    s = Symbols(body)
    partial_velocity = along(s.velocity(), s.u_dot, v)
    partial_strain = ufl.derivative(strain(body.u_dot), body.u_dot, v)
    sigma = stress(body.u, body.material, plane=body.plane)
    return (
        body.density * ufl.inner(s.acceleration(), partial_velocity) * body.measure
        + body.thickness * ufl.inner(sigma, partial_strain) * body.measure
        - body.load_power(partial_velocity)
    )


class LinearParts(NamedTuple):
    """Forms of a residual M ü + C u̇ + K u − f.

    Attributes:
        mass: M.
        damping: C; for prescribed motion the Coriolis form, including its factor 2.
        stiffness: K; elastic, centrifugal and Euler stiffness.
        load: f.
    """

    mass: ufl.Form
    damping: ufl.Form
    stiffness: ufl.Form
    load: ufl.Form


def linear_parts(residual: ufl.Form, body: MovingBody, trial: Expr) -> LinearParts:
    """Return the matrices and the load of a residual by differentiation.

    Args:
        residual: Residual of one of the formalisms.
        body: The body of the residual.
        trial: Trial function of the space of displacements.
    """
    state = (body.u_ddot, body.u_dot, body.u)
    mass, damping, stiffness = (ufl.derivative(residual, f, trial) for f in state)
    at_rest = ufl.replace(expand_derivatives(residual), {f: ufl.zero(f.ufl_shape) for f in state})
    return LinearParts(mass, damping, stiffness, -at_rest)
