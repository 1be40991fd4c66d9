"""The body of all formalisms, and rates along its motion by the chain rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain

from dolfinx_mbd.forms import floating_frame as frame
from dolfinx_mbd.forms.arguments import Value, as_ufl_value, coefficient
from dolfinx_mbd.forms.elasticity import VECTORS, Plane, check_plane, elastic_stiffness
from dolfinx_mbd.forms.floating_frame import cross

__all__ = ["MovingBody", "Symbols", "acceleration", "along", "total", "velocity"]


@dataclass(frozen=True, eq=False)
class MovingBody:
    """An elastic body, its state, and the prescribed motion of its frame in body components.

    Attributes:
        u: Elastic displacement, m: a function with two components (in the plane) or three.
        u_dot: First time derivative of `u`, m/s, a function on the same space.
        u_ddot: Second time derivative of `u`, m/s², a function on the same space.
        material: See `elastic_stiffness`; it must also have a `density`.
        omega: ω, rad/s, shape (3,); in the plane a scalar.
        alpha: α = ω̇, rad/s², of the same shape as `omega`.
        velocity: V of the origin of the frame, m/s. The equations of motion do not depend on it.
        acceleration: a₀ of the origin, m/s². It differs from the rate of the components of V.
        plane: Plane strain or plane stress, for a plane body.
        thickness: Thickness of a plane body, m.
        gravity: Aᵀg, m/s²; None for no gravity.
        traction: Traction on the boundary, Pa (in the plane N/m); None for none.
        measure: Integration measure of the body.
        boundary: Integration measure of the traction.
        x: Reference position relative to the origin, m; by default the coordinates of the mesh.

    Raises:
        InputError: The shapes do not match.
        InputTypeError: A part of the state is not a function.
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
        shape = coefficient("u", self.u, VECTORS).ufl_shape
        for name in ("u_dot", "u_ddot"):
            coefficient(name, getattr(self, name), (shape,))
        check_plane(self.plane)
        for name in ("omega", "alpha", "velocity", "acceleration", "gravity", "traction"):
            value = getattr(self, name)
            if value is not None:
                axial = name in ("omega", "alpha") and shape == (2,)
                value = as_ufl_value(value, name, ((),) if axial else (shape,))
                object.__setattr__(self, name, value)
        if self.x is None:
            object.__setattr__(self, "x", ufl.SpatialCoordinate(extract_unique_domain(self.u)))

    @property
    def density(self) -> Any:
        """Mass per volume, kg/m³, or per area of a plane body, kg/m²."""
        return self.material.density * self.thickness

    def strain_energy(self) -> ufl.Form:
        """Return the strain energy U = ½ ∫ σ(u):ε(u), J."""
        return 0.5 * self.elastic_power(self.u)

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

    def potential_forces(self, v: Expr) -> ufl.Form:
        """Return the derivative of U − W in the direction v, where W is the work of the loads."""
        return ufl.derivative(self.strain_energy() - self.load_power(self.u), self.u, v)


class Symbols:
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
        return total([along(f, variable, rate) for variable, rate in self.rates])

    def velocity(self, u_dot: Expr | None = None) -> Expr:
        """Return V + d(x+u)/dt + ω×(x+u), with `u_dot` in place of the u̇ of the state if given."""
        point = self.x + self.u
        rate = along(point, self.u, self.u_dot if u_dot is None else u_dot)
        return self.origin + rate + cross(self.omega, point)

    def acceleration(self) -> Expr:
        """Return the time derivative of the velocity vector."""
        v = self.velocity()
        return self.rate(v) + cross(self.omega, v)

    def kinetic_energy(self, u_dot: Expr | None = None) -> Expr:
        """Return ½ ρ |v|², J/m³; `u_dot` as in `velocity`."""
        v = self.velocity(u_dot)
        return self.density / 2 * ufl.inner(v, v)

    def inertia_forces(self, energy: Expr) -> Expr:
        """Return d/dt ∂T/∂u̇ − ∂T/∂u of a kinetic energy per volume, N/m³."""
        return self.rate(ufl.diff(energy, self.u_dot)) - ufl.diff(energy, self.u)


def along(f: Expr, variable: Expr, direction: Expr) -> Expr:
    """Return the derivative of a scalar or vector by a variable in a direction."""
    slope = ufl.diff(f, variable)
    return ufl.dot(slope, direction) if direction.ufl_shape else slope * direction


def total(terms: list[Any]) -> Any:
    """Return the sum of expressions, which must not start with the integer 0 as `sum` does."""
    return sum(terms[1:], terms[0])


def velocity(body: MovingBody) -> Expr:
    """Return the velocity V + ω×(x+u) + u̇ of a point by the chain rule, m/s, body components."""
    return Symbols(body).velocity()


def acceleration(body: MovingBody) -> Expr:
    """Return the derivative of the velocity of a point, m/s², body components."""
    return Symbols(body).acceleration()
