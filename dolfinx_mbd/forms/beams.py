"""Euler-Bernoulli beams in a moving frame: the forms of solids, integrated over a section.

A straight beam along x has the displacement

    u(x, y, z) = (u − y v′ − z w′, v − z φ, w + y φ) = d + θ×(0, y, z),   θ = (φ, −w′, v′)

with axial displacement, twist and two deflections. `Beam.over_section` inserts this displacement
into the forms of `floating_frame` and integrates them over y and z. The result contains all inertia
terms of the axis and the sections.

The unknown is a P1 field (d, θ) of six body components on an interval mesh in one dimension (the x
axis of the body) or in space. Its cells may have any length and orientation. Between the vertices
the deflection is Hermite's cubic in terms of the values and slopes at both ends; axial displacement
and twist are linear. (Basix's Hermite element defines slopes on the reference cell, so its
deflection has kinks between cells of different lengths.)

Shear deformation and warping are neglected. In a pinned beam, rotary inertia and shear lower the
frequency of the mode with n half waves by the fraction ½ (1 + E/(κG)) (nπ r/L)², with the radius of
gyration r; this module includes the term 1 (rotary inertia) and neglects the term E/(κG) (shear),
which is about 3.

Equation (60) of the reference omits some terms of the section: the Coriolis operator, the Euler and
centrifugal stiffness, and the centrifugal load −ω×(Iω), which twists a section with Iyy ≠ Izz
(`test_what_the_paper_omits`).

References:
    S. Vlase, Finite element analysis of flexible multibody systems: an overview (2018), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import ufl
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, function, instance, number, object_with, reject
from dolfinx_mbd.forms import floating_frame as inertial
from dolfinx_mbd.forms.arguments import as_ufl_value, integration, nonzero, scalar, triad
from dolfinx_mbd.forms.beam_fields import BeamField
from dolfinx_mbd.forms.beam_fields import arm as section_arm
from dolfinx_mbd.forms.beam_sections import Section

Value: TypeAlias = Any
Fibre: TypeAlias = Callable[[Expr, Expr], Any]  # integrand or form at (y, z) of the section


@dataclass(frozen=True, eq=False)
class Beam:
    """A beam and its forms, which accept P1 fields q = (d, θ).

    The forms have the same names and signs as the forms of a solid:

        mass(q̈) + coriolis(q̇) + centrifugal_stiffness(q) + euler_stiffness(q) + elastic_stiffness(q)
            = translational_load + euler_load + centrifugal_load + gravity_load + distributed_load

    Attributes:
        section: The cross-section.
        material: A `Material` or `GradedMaterial`, or any object with `young`, `shear`, `density`.
        axes: Rotation matrix whose columns are the direction of the beam and the axes y and z of
            the section in body components, shape (3, 3); by default the identity.
        measure: Integration measure.

    Example:
        >>> beam = Beam(Section.circle(0.01), STEEL)
        >>> q, test = ufl.TrialFunction(beam_space), ufl.TestFunction(beam_space)
        >>> K, M = beam.elastic_stiffness(q, test), beam.mass(q, test)
    """

    section: Section
    material: Any
    axes: Any = None
    measure: ufl.Measure = field(default_factory=lambda: ufl.dx)

    def __post_init__(self) -> None:
        instance("section", self.section, Section)
        object_with("material", self.material, "young", "shear", "density")
        integration(self.measure)
        assign(self, axes=triad("axes", self.axes))

    # ---- the section

    def field(self, q: Expr) -> BeamField:
        """Return the displacements, rotations and strains of the nodal values `q`."""
        return BeamField(q, self.axes)

    def over_section(self, fibre: Fibre) -> Any:
        """Return ∫ f dA of an integrand or a form f that is a quadratic polynomial of y and z.

        With the centroid at the origin the integral is A f + ½ (Izz f_yy + 2 Iyz f_yz + Iyy f_zz),
        with f and its derivatives at y = z = 0. Terms of third order are omitted; they vanish for
        sections with two axes of symmetry. `fibre` is a function of y and z.
        """
        function("fibre", fibre, "fibre(y, z)")
        zero = ufl.as_ufl(0.0)
        y, z = ufl.variable(zero), ufl.variable(zero)
        value, f = fibre(zero, zero), fibre(y, z)
        if not isinstance(f, ufl.Form):
            value, f = (as_ufl_value(each, "fibre(y, z)", ((),)) for each in (value, f))
            return self._integral(value, f, y, z)
        pairs = zip(value.integrals(), f.integrals(), strict=True)
        return ufl.Form(
            [b.reconstruct(self._integral(a.integrand(), b.integrand(), y, z)) for a, b in pairs]
        )

    def _integral(self, value: Expr, f: Expr, y: Any, z: Any) -> Expr:
        """Return the integral of `over_section` of f, whose value at y = z = 0 is `value`."""
        s = self.section
        f_y, f_z = ufl.diff(f, y), ufl.diff(f, z)
        second = s.Izz * ufl.diff(f_y, y) + s.Iyy * ufl.diff(f_z, z)
        if isinstance(s.Iyz, Expr) or s.Iyz:
            second += 2 * s.Iyz * ufl.diff(f_y, z)
        return s.area * value + apply_derivatives(apply_algebra_lowering(second)) / 2

    # ---- inertia, as in `floating_frame`

    def _operator(self, form: Callable[..., ufl.Form], u: Expr, v: Expr, *motion: Any) -> ufl.Form:
        """Return a form of the floating frame that is bilinear in u and v, over the section."""
        a, b, density = self.field(u), self.field(v), self.material.density
        return self.over_section(
            lambda y, z: form(
                a.in_body(a.at(y, z)), b.in_body(b.at(y, z)), density, *motion, self.measure
            )
        )

    def _load(
        self, form: Callable[..., ufl.Form], v: Expr, motion: Any, origin: Any = None
    ) -> ufl.Form:
        """Return a load of the floating frame over the section; x is relative to `origin`."""
        b, density = self.field(v), self.material.density
        centre = None if origin is None else as_ufl_value(origin, "origin", ((3,),))

        def fibre(y: Expr, z: Expr) -> ufl.Form:
            x = {} if centre is None else {"x": b.position_at(y, z) - centre}
            return form(b.in_body(b.at(y, z)), density, motion, self.measure, **x)

        return self.over_section(fibre)

    def mass(self, u: Expr, v: Expr) -> ufl.Form:
        """Return the mass form ∫ ρ u·v, including rotary inertia."""
        return self._operator(inertial.mass, u, v)

    def coriolis(self, u: Expr, v: Expr, omega: Value) -> ufl.Form:
        """Return the Coriolis form 2 ∫ ρ (ω×u)·v, which multiplies q̇; ω in rad/s."""
        return self._operator(inertial.coriolis, u, v, omega)

    def centrifugal_stiffness(self, u: Expr, v: Expr, omega: Value) -> ufl.Form:
        """Return the spin softening ∫ ρ (ω×(ω×u))·v; ω in rad/s."""
        return self._operator(inertial.centrifugal_stiffness, u, v, omega)

    def euler_stiffness(self, u: Expr, v: Expr, alpha: Value) -> ufl.Form:
        """Return the Euler form ∫ ρ (α×u)·v; α in rad/s²."""
        return self._operator(inertial.euler_stiffness, u, v, alpha)

    def translational_load(self, v: Expr, acceleration: Value) -> ufl.Form:
        """Return the load −∫ ρ a₀·v; a₀ in m/s²."""
        return self._load(inertial.translational_load, v, acceleration)

    def euler_load(self, v: Expr, alpha: Value, *, origin: Sequence[float] = (0, 0, 0)) -> ufl.Form:
        """Return the load −∫ ρ (α×(x − origin))·v on axis and sections; `origin` in m."""
        return self._load(inertial.euler_load, v, alpha, origin)

    def centrifugal_load(
        self, v: Expr, omega: Value, *, origin: Sequence[float] = (0, 0, 0)
    ) -> ufl.Form:
        """Return the load −∫ ρ (ω×(ω×(x − origin)))·v on axis and sections; `origin` in m."""
        return self._load(inertial.centrifugal_load, v, omega, origin)

    def gravity_load(self, v: Expr, gravity: Value) -> ufl.Form:
        """Return the load ∫ ρ g·v; g in body components, m/s²."""
        return self._load(inertial.gravity_load, v, gravity)

    def distributed_load(
        self, v: Expr, force: Value = (0.0, 0.0, 0.0), moment: Value = (0.0, 0.0, 0.0)
    ) -> ufl.Form:
        """Return the load ∫ (p·d + m·θ) of a force p, N/m, and a moment m, N m/m.

        Both are per length of the beam and have body components.
        """
        b = self.field(v)
        p = as_ufl_value(force, "force", ((3,),))
        m = as_ufl_value(moment, "moment", ((3,),))
        work = ufl.dot(p, b.in_body(b.axis)) + ufl.dot(m, b.in_body(b.rotation))
        return work * self.measure

    # ---- elasticity

    def elastic_stiffness(self, u: Expr, v: Expr) -> ufl.Form:
        """Return the stiffness form ∫ E ε_xx(u) ε_xx(v) + ∫ G J φ′(u) φ′(v)."""
        a, b, m = self.field(u), self.field(v), self.material
        fibres = self.over_section(lambda y, z: m.young * a.strain_at(y, z) * b.strain_at(y, z))
        return (fibres + self._torsion() * a.twist_rate * b.twist_rate) * self.measure

    def _torsion(self) -> Any:
        """Return the torsional stiffness G J, N m²."""
        return self.material.shear * self.section.torsion

    def axial_force(self, q: Expr) -> Expr:
        """Return the axial force EA u′, N; tension is positive."""
        return self.material.young * self.section.area * self.field(q).stretch

    def moment(self, q: Expr) -> Expr:
        """Return torque and bending moments (G J φ′, ∫z σ_xx, −∫y σ_xx), N m, shape (3,).

        They act on the part of the beam with smaller x, with components along the beam's axes.
        """
        a, E = self.field(q), self.material.young
        about_y = self.over_section(lambda y, z: E * a.strain_at(y, z) * z)
        about_z = self.over_section(lambda y, z: E * a.strain_at(y, z) * -y)
        return ufl.as_vector([self._torsion() * a.twist_rate, about_y, about_z])

    def shear_force(self, q: Expr) -> Expr:
        """Return the shear forces (V_y, V_z) = (−M_z′, M_y′) from equilibrium, N."""
        rate = self.field(q).derivative(self.moment(q))
        return ufl.as_vector([-rate[2], rate[1]])

    # ---- geometric stiffness

    def geometric_stiffness(self, u: Expr, v: Expr, axial_force: Value) -> ufl.Form:
        """Return the geometric stiffness ∫ σ₀ ∂u/∂x·∂v/∂x of the stress σ₀ = N/A.

        It contains ∫ N (u′δu′ + v′δv′ + w′δw′), the term N (Iyy + Izz)/A φ′δφ′ of a twisted bar,
        and N/A (Izz v″δv″ + Iyy w″δw″).

        Args:
            u: Trial field.
            v: Test field.
            axial_force: N, newtons, tension positive: a number, a function of space, or
                `axial_force(q₀)`.
        """
        a, b, A = self.field(u), self.field(v), self.section.area
        axial_force = ufl.as_ufl(nonzero("axial_force", axial_force))
        return self.over_section(
            lambda y, z: axial_force / A * ufl.dot(a.rate_at(y, z), b.rate_at(y, z)) * self.measure
        )

    def initial_stress_stiffness(
        self, u: Expr, v: Expr, q0: Expr, *, body_force: Fibre | None = None
    ) -> ufl.Form:
        """Return the geometric stiffness of all stresses that the displacement q₀ causes.

        The axial force contributes as in `geometric_stiffness`. Bending moments and shear forces
        couple bending and torsion (lateral buckling), and torques couple the two bending planes
        (whirling shafts).

        The form is the second derivative of the work of the stresses on second-order strains, minus
        the second derivative of the work of the body forces on second-order displacements. Sections
        rotate by exp(θ), so that a fibre at ρ moves by d + θ×ρ + ½ θ×(θ×ρ). Moments at nodes are
        conjugate to the rotation vectors. Stresses of third order in y and z, which vanish for
        sections with two axes of symmetry, are neglected.

        Args:
            u: Trial field.
            v: Test field.
            q0: The displacement that causes the stress.
            body_force: Function of y and z that returns the force per volume, N/m³, shape (3,),
                along the beam's axes; its mean over the section has no effect. By default none.
        """
        if body_force is not None:
            function("body_force", body_force, "body_force(y, z)")

        a, b = self.field(u), self.field(v)
        initial, E = self.field(q0), self.material.young

        def fibre(y: Expr, z: Expr) -> Expr:
            arm = section_arm(y, z)
            second = ufl.dot(a.rate_at(y, z), b.rate_at(y, z))
            second += _second_rotation_rate(a, b, arm)[0]
            work = E * initial.strain_at(y, z) * second
            if body_force is not None:
                force = as_ufl_value(body_force(y, z), "body_force(y, z)", ((3,),))
                work -= ufl.dot(force, _second_rotation(a.rotation, b.rotation, arm))
            return work

        y_axis, z_axis = ufl.as_vector([0.0, 1.0, 0.0]), ufl.as_vector([0.0, 0.0, 1.0])
        V, T = self.shear_force(q0), self._torsion() * initial.twist_rate
        work = self.over_section(fibre)
        # ∫τ_xz y = −∫τ_xy z = T/2 for solid sections (Saint-Venant)
        for force, torque, normal, lateral in (
            (V[0], -T / 2, y_axis, z_axis),
            (V[1], T / 2, z_axis, y_axis),
        ):
            tilt_a, tilt_b = ufl.cross(a.rotation, normal), ufl.cross(b.rotation, normal)
            work += force * (
                ufl.dot(a.axis_rate, tilt_b)
                + ufl.dot(b.axis_rate, tilt_a)
                + _second_rotation(a.rotation, b.rotation, normal)[0]
            )
            work += torque * (
                ufl.dot(ufl.cross(a.rotation_rate, lateral), tilt_b)
                + ufl.dot(ufl.cross(b.rotation_rate, lateral), tilt_a)
                + ufl.dot(normal, _second_rotation_rate(a, b, lateral))
            )
        return work * self.measure


def _second_rotation(a: Expr, b: Expr, arm: Expr) -> Expr:
    """Return the second derivative of ½ θ×(θ×ρ) in the directions a and b."""
    return (ufl.cross(a, ufl.cross(b, arm)) + ufl.cross(b, ufl.cross(a, arm))) / 2


def _second_rotation_rate(a: BeamField, b: BeamField, arm: Expr) -> Expr:
    """Return the derivative of `_second_rotation` along the beam."""
    return _second_rotation(a.rotation_rate, b.rotation, arm) + _second_rotation(
        a.rotation, b.rotation_rate, arm
    )


def axial_force_of_motion(
    x: Value,
    length: float,
    mass_per_length: Value,
    omega: Sequence[Any],
    acceleration: Value = 0.0,
    end_force: Value = 0.0,
) -> Any:
    """Return the axial force of a uniform straight beam in a moving frame.

        N(x) = P − ρA (a₀ₓ (L − x) − (ω_y² + ω_z²)(L² − x²)/2)

    The only load at the end x = L is the force P. The acceleration of a point of the axis along the
    beam is a₀ₓ − (ω_y² + ω_z²) x in body components. (The overview paper's eq. 47 uses the
    component along the global X axis instead.)

    Args:
        x: Distance from the frame's origin along the beam, m: a number, an array or UFL.
        length: L, m.
        mass_per_length: ρA, kg/m.
        omega: ω in body components, shape (3,), rad/s.
        acceleration: Acceleration a₀ₓ of the frame's origin along the beam, m/s².
        end_force: Force P at x = L, N.

    Raises:
        InputError: `x` is beyond the end of the beam, or `omega` does not have three components.

    Example:
        >>> axial_force_of_motion(0.0, 1.0, 2.0, omega=(0.0, 0.0, 100.0))
        10000.0
    """
    components = as_ufl_value(omega, "omega", ((3,),)) if isinstance(omega, Expr) else omega
    if not isinstance(omega, Expr):
        scalar_array = isinstance(omega, np.ndarray) and omega.ndim == 0
        if not isinstance(omega, (list, tuple, np.ndarray)) or scalar_array or len(omega) != 3:
            reject("omega", omega, "three numbers or UFL scalars")
        components = [scalar("omega", component) for component in omega]
    x = array("x", x) if isinstance(x, np.ndarray) else scalar("x", x)
    length = number("length", length, positive=True, high=1e9)
    if not isinstance(x, Expr) and not np.all(np.abs(x) <= length):
        reject("x", x, "a distance up to the length")
    mass_per_length = scalar("mass_per_length", mass_per_length)
    acceleration = scalar("acceleration", acceleration)
    spin = components[1] ** 2 + components[2] ** 2
    inertia = acceleration * (length - x) - spin * (length**2 - x**2) / 2
    return scalar("end_force", end_force) - mass_per_length * inertia
