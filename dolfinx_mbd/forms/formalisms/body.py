"""The body that all formalisms describe, and rates along its motion by the chain rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import floating_frame as frame
from dolfinx_mbd.forms.arguments import Value, as_ufl_value
from dolfinx_mbd.forms.elasticity import Plane, check_plane, elastic_stiffness
from dolfinx_mbd.forms.floating_frame import cross

__all__ = ["MovingBody", "Symbols", "acceleration", "along", "velocity"]


@dataclass(frozen=True, eq=False)
class MovingBody:
    """An elastic body, its state, and the prescribed motion of its frame in body components.

    Attributes:
        u: Elastic displacement, m: a function of two components (plane) or three.
        u_dot: Its rate, m/s, a function of the same space.
        u_ddot: Its second rate, m/s², a function of the same space.
        material: What `elastic_stiffness` takes, with a density.
        omega: ω, rad/s, shape (3,); in the plane a scalar, about z.
        alpha: α = ω̇, rad/s², of the same shape.
        velocity: V of the frame's origin, m/s. No equation of motion depends on it.
        acceleration: a₀ of the frame's origin, m/s², not the rate of the components of V.
        plane: `strain` or `stress`, for a plane body.
        thickness: Of a plane body, m.
        gravity: Aᵀg, m/s².
        traction: On the boundary, Pa (times the thickness in the plane: N/m), body components.
        measure: Where to integrate over the body.
        boundary: Where the traction acts.
        x: Reference position from the frame's origin, m; the coordinates of the mesh by default.

    Raises:
        ValueError: Shapes do not go together, or the state is not made of functions.
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
        for name in ("u", "u_dot", "u_ddot"):
            if not isinstance(getattr(self, name), ufl.Coefficient):
                raise InputError(
                    f"{name} must be a function, by which forms are differentiated; "
                    f"got {type(getattr(self, name)).__name__}"
                )
        shape = self.u.ufl_shape
        if shape not in ((2,), (3,)):
            raise InputError(f"a displacement has two or three components; got shape {shape}")
        check_plane(self.plane)
        turning: tuple[int, ...] = (3,) if shape == (3,) else ()
        for name, expected in (
            ("u_dot", shape),
            ("u_ddot", shape),
            ("omega", turning),
            ("alpha", turning),
            ("velocity", shape),
            ("acceleration", shape),
            ("gravity", shape),
            ("traction", shape),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            expression = as_ufl_value(value, name)
            if expression.ufl_shape != expected:
                raise InputError(
                    f"{name} must have shape {expected} with a displacement of shape {shape}; "
                    f"got {expression.ufl_shape}"
                )
            object.__setattr__(self, name, expression)
        if self.x is None:
            object.__setattr__(self, "x", ufl.SpatialCoordinate(extract_unique_domain(self.u)))

    @property
    def density(self) -> Any:
        """Mass per volume, or per area of a plane body."""
        return self.material.density * self.thickness

    def strain_energy(self) -> ufl.Form:
        """U = ½ ∫ σ(u):ε(u), J."""
        return 0.5 * self.elastic_power(self.u)

    def work(self) -> ufl.Form | None:
        """W = ∫ ρ g·u + ∫ t·u of the loads, J; None if there are none."""
        return self.load_power(self.u)

    def elastic_power(self, v: Expr) -> ufl.Form:
        return elastic_stiffness(
            self.u, v, self.material, self.measure, plane=self.plane, thickness=self.thickness
        )

    def load_power(self, v: Expr) -> ufl.Form | None:
        """What the loads do on a field of displacements or velocities."""
        forms = []
        if self.gravity is not None:
            forms.append(frame.gravity_load(v, self.density, self.gravity, self.measure))
        if self.traction is not None:
            forms.append(frame.traction_load(v, self.traction, self.boundary))
        return sum(forms[1:], forms[0]) if forms else None

    def potential_forces(self, v: Expr) -> ufl.Form:
        """∂(U − W)/∂u in the direction v."""
        work = self.work()
        potential = self.strain_energy() if work is None else self.strain_energy() - work
        return ufl.derivative(potential, self.u, v)


class Symbols:
    """The state and the frame's motion as variables, and rates along them by the chain rule."""

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
        """Rate of what has components in the body frame, component by component."""
        terms = [along(f, variable, rate) for variable, rate in self.rates]
        return sum(terms[1:], terms[0])

    def velocity(self, u_dot: Expr | None = None) -> Expr:
        """V + d(x+u)/dt + ω×(x+u); with another u̇ in place of the state's, if given."""
        point = self.x + self.u
        rate = along(point, self.u, self.u_dot if u_dot is None else u_dot)
        return self.origin + rate + cross(self.omega, point)

    def acceleration(self) -> Expr:
        """Rate of the velocity as a vector."""
        v = self.velocity()
        return self.rate(v) + cross(self.omega, v)

    def kinetic_energy(self, u_dot: Expr | None = None) -> Expr:
        """½ ρ |v|² per volume."""
        v = self.velocity(u_dot)
        return self.density / 2 * ufl.inner(v, v)


def along(f: Expr, variable: Expr, direction: Expr) -> Expr:
    """∂f/∂(variable) in a direction, of scalars and vectors."""
    slope = ufl.diff(f, variable)
    return ufl.dot(slope, direction) if direction.ufl_shape else slope * direction


def velocity(body: MovingBody) -> Expr:
    """Velocity of a point V + ω×(x+u) + u̇, m/s, body components, by the chain rule."""
    return Symbols(body).velocity()


def acceleration(body: MovingBody) -> Expr:
    """Acceleration of a point, m/s², body components, by differentiating its velocity."""
    return Symbols(body).acceleration()
