"""Equations of motion of an elastic body by Lagrange, Gibbs-Appell, Kane, Maggi and Hamilton.

The motion of the frame is prescribed by the velocity V and acceleration a₀ of its origin and the
angular velocity ω and acceleration α = ω̇, all in body components. Each formalism starts from a
different expression, which UFL differentiates:

| function | starts from | differentiates |
|---|---|---|
| `lagrange` | kinetic energy T(u, u̇, t), strain energy, work | d/dt ∂T/∂u̇ − ∂T/∂u + ∂U/∂u − ∂W/∂u |
| `gibbs_appell` | Appell's function | ∂/∂ü, once |
| `kane` | virtual power of inertia, stress and loads | partial velocities ∂v/∂u̇, ∂ε̇/∂u̇ |
| `maggi` | T(V, ω, u, u̇), all velocities of the free body | Lagrange's expressions, projected |
| `hamilton` | H(u, p, t) by Legendre's transform | u̇ = ∂H/∂p, ṗ = −∂H/∂u |

All formalisms compute time derivatives of body components by the chain rule with u → u̇ → ü, ω → α
and V → a₀ − ω×V. All yield the residual of `named_forms`, the sum of the forms of `floating_frame`.
All apply in the plane and in space. Test functions v belong to the space of displacements.

References:
    M. L. Scutaru, S. Vlase, Two-Dimensional Equivalent Models in the Analysis of a Multibody
    Elastic System Using the Finite Element Analysis, Mathematics 11 (2023) 4149.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import ufl
from ufl.algorithms import expand_derivatives
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import reject
from dolfinx_mbd.forms import floating_frame as frame
from dolfinx_mbd.forms.arguments import Value, as_ufl_value, coefficient
from dolfinx_mbd.forms.elasticity import (
    DISPLACEMENT_SHAPES,
    Plane,
    check_plane,
    elastic_stiffness,
    strain,
    stress,
)
from dolfinx_mbd.forms.floating_frame import cross


@dataclass(frozen=True, eq=False)
class MovingBody:
    """An elastic body, its state, and the prescribed motion of its frame in body components.

    Attributes:
        u: Elastic displacement, m: a function with two components (in the plane) or three.
        u_dot: First time derivative of `u`, m/s, a function on the same space.
        u_ddot: Second time derivative of `u`, m/s², a function on the same space.
        material: See `elastic_stiffness`; it must also have a `density`.
        omega: Angular velocity ω, rad/s, shape (3,), or a scalar for a plane body.
        alpha: Angular acceleration α = ω̇, rad/s², of the same shape as `omega`.
        velocity: Velocity V of the frame's origin, m/s. The equations do not depend on it.
        acceleration: Acceleration a₀ of the origin, m/s²; not the rate of the components of V.
        plane: Plane strain or plane stress, for a plane body.
        thickness: Thickness of a plane body, m.
        gravity: Gravitational acceleration Aᵀg, m/s²; None for no gravity.
        traction: Traction on the boundary, Pa (in the plane N/m); None for none.
        measure: Integration measure of the body.
        boundary: Integration measure of the traction.
        x: Reference position relative to the origin, m; by default the coordinates of the mesh.
    """

    u: Any
    u_dot: Any
    u_ddot: Any
    material: Any
    omega: Value
    alpha: Value
    velocity: Value
    acceleration: Value
    plane: Plane = "strain"
    thickness: Any = 1.0
    gravity: Value | None = None
    traction: Value | None = None
    measure: ufl.Measure = ufl.dx
    boundary: ufl.Measure = ufl.ds
    x: Any = None

    def __post_init__(self) -> None:
        shape = coefficient("u", self.u, DISPLACEMENT_SHAPES).ufl_shape
        for name in ("u_dot", "u_ddot"):
            coefficient(name, getattr(self, name), (shape,))
        check_plane(self.plane)
        for name in ("omega", "alpha", "velocity", "acceleration", "gravity", "traction"):
            value = getattr(self, name)
            if value is not None:
                axial = name in ("omega", "alpha") and shape == (2,)
                value = as_ufl_value(value, name, ((),) if axial else (shape,))
                assign(self, **{name: value})
        if self.x is None:
            assign(self, x=ufl.SpatialCoordinate(extract_unique_domain(self.u)))

    @property
    def density(self) -> Any:
        """Mass per volume, kg/m³, or per area of a plane body, kg/m²."""
        return self.material.density * self.thickness

    def elastic_power(self, v: Expr) -> ufl.Form:
        """Return the virtual work ∫ σ(u):ε(v) of the stress."""
        return elastic_stiffness(
            self.u, v, self.material, self.measure, plane=self.plane, thickness=self.thickness
        )

    def load_power(self, v: Expr) -> ufl.Form:
        """Return ∫ ρ g·v + ∫ t·v; the empty form if there are no loads."""
        form = ufl.Form([])
        if self.gravity is not None:
            form += frame.gravity_load(v, self.density, self.gravity, self.measure)
        if self.traction is not None:
            form += frame.traction_load(v, self.traction, self.boundary)
        return form

    def strain_energy(self) -> ufl.Form:
        """Return the strain energy U = ½ ∫ σ(u):ε(u), J."""
        return 0.5 * self.elastic_power(self.u)

    def potential(self) -> ufl.Form:
        """Return U − W, the strain energy less the work of the loads, J."""
        return self.strain_energy() - self.load_power(self.u)


class _Symbols:
    """The state and the motion of the frame as UFL variables, and rates by the chain rule."""

    def __init__(self, body: MovingBody) -> None:
        self.x, self.density = body.x, body.density
        self.u, self.u_dot, self.u_ddot = map(ufl.variable, (body.u, body.u_dot, body.u_ddot))
        self.omega, self.origin = ufl.variable(body.omega), ufl.variable(body.velocity)
        self.rates = (
            (self.u, self.u_dot),
            (self.u_dot, self.u_ddot),
            (self.omega, body.alpha),
            (self.origin, body.acceleration - cross(self.omega, self.origin)),
        )

    def rate(self, f: Expr) -> Expr:
        """Return the time derivatives of the body components of `f`."""
        return _sum([_directional(f, variable, rate) for variable, rate in self.rates])

    def velocity(self, u_dot: Expr | None = None) -> Expr:
        """Return V + d(x+u)/dt + ω×(x+u), with `u_dot`, if given, instead of u̇."""
        point = self.x + self.u
        rate = _directional(point, self.u, self.u_dot if u_dot is None else u_dot)
        return self.origin + rate + cross(self.omega, point)

    def acceleration(self) -> Expr:
        """Return the time derivative of the velocity vector."""
        v = self.velocity()
        return self.rate(v) + cross(self.omega, v)

    def kinetic_energy(self, u_dot: Expr | None = None) -> Expr:
        """Return ½ ρ |v|², J/m³; for `u_dot` see `velocity`."""
        v = self.velocity(u_dot)
        return self.density / 2 * ufl.inner(v, v)

    def inertia_forces(self) -> Expr:
        """Return d/dt ∂T/∂u̇ − ∂T/∂u per volume, N/m³."""
        energy = self.kinetic_energy()
        return self.rate(ufl.diff(energy, self.u_dot)) - ufl.diff(energy, self.u)


def _directional(f: Expr, variable: Expr, direction: Expr) -> Expr:
    """Return the derivative of a scalar or vector with respect to a variable in a direction."""
    derivative = ufl.diff(f, variable)
    return ufl.dot(derivative, direction) if direction.ufl_shape else derivative * direction


def _sum(terms: list[Any]) -> Any:
    """Return the sum of expressions; unlike `sum`, do not start with the integer 0."""
    return sum(terms[1:], terms[0])


def velocity(body: MovingBody) -> Expr:
    """Return the velocity V + ω×(x+u) + u̇ of a point in body components by the chain rule, m/s."""
    return _Symbols(body).velocity()


def acceleration(body: MovingBody) -> Expr:
    """Return the acceleration of a point in body components by the chain rule, m/s²."""
    return _Symbols(body).acceleration()


# ---- Lagrange, Gibbs-Appell, Kane


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

    Source: Scutaru and Vlase (2023), eqs. 26 and 37.
    """
    inertia = ufl.inner(_Symbols(body).inertia_forces(), v) * body.measure
    return inertia + ufl.derivative(body.potential(), body.u, v)


def gibbs_appell(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the residual of the Gibbs-Appell equations ∂R/∂ü = 0 with R = S − Q·ü.

    S = ½ ∫ ρ |a|² is the energy of accelerations, and Q·ü = −∫ σ(u):ε(ü) + ∫ ρ g·ü + ∫ t·ü. The
    acceleration of the motion minimizes R, which is Gauss's principle.

    Source: Scutaru and Vlase (2023), eqs. 33 and 44.
    """
    a = acceleration(body)
    energy_of_accelerations = body.density / 2 * ufl.inner(a, a) * body.measure
    R = energy_of_accelerations + body.elastic_power(body.u_ddot) - body.load_power(body.u_ddot)
    return ufl.derivative(R, body.u_ddot, v)


def kane(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the residual of Kane's equations, the balance of generalized forces.

    Inertia, stress and loads act on the partial velocities ∂v/∂u̇ and partial strain rates ∂ε̇/∂u̇:
    ∫ ρ a·∂v/∂u̇ + ∫ σ:∂ε̇/∂u̇ − ∫ ρ g·∂v/∂u̇ − ∫ t·∂v/∂u̇ = 0. No energy is used.

    Source: Scutaru and Vlase (2023), eqs. 58 to 61.
    """
    s = _Symbols(body)
    partial_velocity = _directional(s.velocity(), s.u_dot, v)
    partial_strain = ufl.derivative(strain(body.u_dot), body.u_dot, v)
    sigma = stress(body.u, body.material, plane=body.plane)
    return (
        body.density * ufl.inner(s.acceleration(), partial_velocity) * body.measure
        + body.thickness * ufl.inner(sigma, partial_strain) * body.measure
        - body.load_power(partial_velocity)
    )


class LinearParts(NamedTuple):
    """Forms of a residual M ü + C u̇ + K u − f."""

    mass: ufl.Form
    damping: ufl.Form  # for prescribed motion the Coriolis form, including its factor 2
    stiffness: ufl.Form  # elastic, centrifugal and Euler stiffness
    load: ufl.Form


def linear_parts(residual: ufl.Form, body: MovingBody, trial: Expr) -> LinearParts:
    """Return the matrices and the load of a residual of `body` by differentiation."""
    state = (body.u_ddot, body.u_dot, body.u)
    mass, damping, stiffness = (ufl.derivative(residual, f, trial) for f in state)
    at_rest = ufl.replace(expand_derivatives(residual), {f: ufl.zero(f.ufl_shape) for f in state})
    return LinearParts(mass, damping, stiffness, -at_rest)


# ---- Maggi


class VirtualVelocities(NamedTuple):
    """A column of Maggi's projection: the velocities due to one independent velocity."""

    elastic: Expr | None = None  # δu̇, a test function or a function; None if zero
    origin: Value | None = None  # δV in body components; None if V is prescribed
    omega: Value | None = None  # δω in body components; None if ω is prescribed


def maggi(body: MovingBody, column: VirtualVelocities) -> ufl.Form:
    """Return Maggi's equation of one column: Lagrange's expressions projected on free velocities.

    The free body has the velocities q̇ = (V, ω, u̇). Joints and drives are linear constraints
    A q̇ + b = 0, and Maggi's equations Eᵀ(Lagrange's expressions − Q) = 0 with A E = 0 contain no
    multipliers. If the motion of the frame is prescribed, E has the columns (0, 0, v), which give
    the elastic equations. A hinge about n adds the column (0, n, 0), which gives the equation of
    the angle. Projections that are not local (for example a joint at an interface, which moves with
    the mean of u) are linear combinations of assembled equations. Constant columns give scalars.

    V and ω are not derivatives of coordinates. Their Lagrange expressions follow Boltzmann and
    Hamel: d/dt ∂T/∂V + ω×∂T/∂V and d/dt ∂T/∂ω + ω×∂T/∂ω + V×∂T/∂V.

    Source: Scutaru and Vlase (2023), eqs. 53 and 54, with the letters A and E exchanged.
    """
    s = _Symbols(body)
    energy = s.kinetic_energy()
    linear, angular = ufl.diff(energy, s.origin), ufl.diff(energy, s.omega)
    parts: list[ufl.Form] = []
    velocities: list[Expr] = []
    if column.elastic is not None:
        parts.append(ufl.inner(s.inertia_forces(), column.elastic) * body.measure)
        parts.append(ufl.derivative(body.strain_energy(), body.u, column.elastic))
        velocities.append(column.elastic)
    if column.origin is not None:
        shift = as_ufl_value(column.origin)
        parts.append(ufl.inner(s.rate(linear) + cross(s.omega, linear), shift) * body.measure)
        velocities.append(shift)
    if column.omega is not None:
        spin, V = as_ufl_value(column.omega), s.origin
        row = s.rate(angular)
        if spin.ufl_shape:
            row += ufl.cross(V, linear) + ufl.cross(s.omega, angular)
        else:
            row += V[0] * linear[1] - V[1] * linear[0]
        parts.append(ufl.inner(row, spin) * body.measure)
        velocities.append(cross(spin, body.x + body.u))
    if not parts:
        reject("column", column, "a column with elastic, origin or omega")
    return _sum(parts) - body.load_power(_sum(velocities))


def constrained_rate(
    body: MovingBody, constraint: Callable[[Expr, Expr, Expr], Expr], column: VirtualVelocities
) -> Expr:
    """Return the product of the matrix A of a velocity constraint with a column of E.

    The product is zero if the constraint allows the column. `constraint` returns A q̇ + b as a
    function of V, ω and u̇ at a point.
    """
    s = _Symbols(body)
    c = constraint(s.origin, s.omega, s.u_dot)
    pairs = (s.origin, column.origin), (s.omega, column.omega), (s.u_dot, column.elastic)
    terms = [_directional(c, variable, as_ufl_value(d)) for variable, d in pairs if d is not None]
    if not terms:
        reject("column", column, "a column with elastic, origin or omega")
    return _sum(terms)


# ---- Hamilton


def momentum(body: MovingBody, v: Expr) -> ufl.Form:
    """Return the (absolute) momenta p = ∂T/∂u̇ of the elastic coordinates, kg m/s."""
    s = _Symbols(body)
    return ufl.inner(ufl.diff(s.kinetic_energy(), s.u_dot), v) * body.measure


def _legendre(s: _Symbols, pi: Expr) -> Expr:
    """Return p·u̇ − T per volume, with the u̇ that corresponds to p = ρπ."""
    zero = ufl.variable(ufl.zero(pi.ufl_shape))
    offset = ufl.diff(s.kinetic_energy(zero), zero)
    u_dot = pi - offset / s.density  # T is quadratic in u̇: p = ρ u̇ + offset
    return s.density * ufl.inner(pi, u_dot) - s.kinetic_energy(u_dot)


def hamiltonian(body: MovingBody, pi: Expr) -> ufl.Form:
    """Return Hamilton's function H(u, p, t) = p·u̇ − T + U − W by Legendre's transform, J.

    The momenta are given by a field π (see `hamilton`); u̇ and ü of the body are not used.
    """
    return _legendre(_Symbols(body), pi) * body.measure + body.potential()


class CanonicalEquations(NamedTuple):
    """Residuals of Hamilton's equations."""

    displacement: ufl.Form  # ∫ ρ u̇·v − ∂H/∂π = 0
    momentum: ufl.Form  # ∫ ρ π̇·v + ∂H/∂u = 0


def hamilton(body: MovingBody, pi: Expr, pi_dot: Expr, v: Expr) -> CanonicalEquations:
    """Return the residuals of Hamilton's equations u̇ = ∂H/∂p and ṗ = −∂H/∂u.

    A field π, m/s, represents the momenta by p = ∫ ρ π·v, so that no mass matrix is inverted;
    `pi_dot` is the time derivative of its components. π is the absolute velocity in body
    components. If the degree of the space of displacements is at least the geometric order of the
    mesh, this space contains x and π, and the transform at each point is exact for the discrete
    body. ü is not used.

    Source: Scutaru and Vlase (2023), eqs. 28 to 32 and 42.
    """
    s, symbol = _Symbols(body), ufl.variable(pi)
    rho, energy = s.density, _legendre(s, symbol)  # p·u̇ − T per volume, a part of H
    return CanonicalEquations(
        (rho * ufl.inner(body.u_dot, v) - _directional(energy, symbol, v)) * body.measure,
        (rho * ufl.inner(pi_dot, v) + _directional(energy, s.u, v)) * body.measure
        + ufl.derivative(body.potential(), body.u, v),
    )
