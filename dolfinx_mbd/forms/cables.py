"""Cables in absolute nodal coordinates, for arbitrary displacements and rotations.

The centre line r(s), with the length s along the unstretched cable, is Hermite's cubic between
nodes. The coordinates of a node are the position r and the slope r′ in global components. Two
energies and a dissipation define the cable; UFL derives all forces from them:

    kinetic  ½∫ m ṙ·ṙ ds           elastic  ½∫ (EA ε² + EI κ²) ds
    ε = ½ (r′·r′ − 1)              κ² = (|r′|²|r″|² − (r′·r″)²) / |r′|⁶

The mass is constant, and there are no centrifugal, Coriolis or gyroscopic terms. The formula for κ²
avoids the derivative of the square root in κ = |r′×r″|/|r′|³. This derivative is 0/0 on a straight
cable. The cable has no torsion and no rotation about its own axis, and its section must bend
equally in all directions. An element has 12 coordinates. (An element of the first reference has 24,
but its energy does not depend on the slopes r_y and r_z across the cable, so that the equilibrium
is singular.)

The unknown is a P1 field of six components (r, r′) on an interval mesh whose coordinate is s. Cells
may have any length.

The strain of a bent element is a polynomial of degree four that cannot vanish everywhere. Full
quadrature would cause membrane locking, so the stretch is integrated by Simpson's rule. For a
slender cantilever under the end load PL²/EI = 10, the error is then of fourth order for any EA;
with eight elements it is 2.7e-4. Three Gauss points give second order and 3e-3. With two Gauss
points, one motion of a straight cable has no stiffness.

κ² is defined per deformed length, as in the first reference, and integrated over the undeformed
length. Pure bending therefore causes the stretch 3/2 EIκ²/EA, which is 4e-5 for a round rod with
1 % strain at its surface.

References:
    X. Wang et al., Rigid-flexible coupling dynamics modeling of spatial crank-slider mechanism
    based on absolute node coordinate formulation, Mathematics 10 (2022) 881, sections 2.1 to 2.4.
    J. Gerstmayr, A. A. Shabana, Analysis of thin beams and cables using the absolute nodal
    coordinate formulation, Nonlinear Dynamics 45 (2006) (the element of twelve coordinates).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain
from ufl.geometry import CellVertices

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import instance, object_with, reject
from dolfinx_mbd.forms.arguments import as_ufl_value, coefficient, expression, positive, scalar
from dolfinx_mbd.forms.beam_fields import hermite
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.materials import Material

_STRETCH_MEASURE = ufl.dx(metadata={"quadrature_rule": "GLL", "quadrature_degree": 3})
"""Measure with Simpson's rule."""
_BENDING_MEASURE = ufl.dx(metadata={"quadrature_rule": "default", "quadrature_degree": 7})
"""Measure with four Gauss points."""


class CableField:
    """The centre line of given nodal values, or its velocity or variation.

    Attributes:
        value: r, m, shape (3,).
        first: r′, the first derivative.
        second: r″, the second derivative, 1/m.

    Args:
        q: P1 field (r, r′) of six components on an interval mesh: an argument, a function, or a
            linear expression of them.

    Example:
        >>> line = CableField(fem.Function(beam_space))
        >>> line.value.ufl_shape
        (3,)
    """

    def __init__(self, q: Expr) -> None:
        domain = extract_unique_domain(expression("q", q, ((6,),)))
        ends = CellVertices(domain)
        h = abs(ufl.Jacobian(domain)[0, 0])
        xi = (ufl.SpatialCoordinate(domain)[0] - (ends[0, 0] + ends[1, 0]) / 2) / h + 0.5
        r, slope = (ufl.as_vector([q[i] for i in part]) for part in (range(3), range(3, 6)))
        self.value, self.first, self.second = hermite(h, xi, r, slope, r.dx(0), slope.dx(0))

    @property
    def strain(self) -> Expr:
        """Green-Lagrange axial strain ½ (r′·r′ − 1)."""
        return (ufl.dot(self.first, self.first) - 1) / 2

    @property
    def square_of_curvature(self) -> Expr:
        """κ² of the centre line, 1/m²."""
        square = ufl.dot(self.first, self.first)
        product = ufl.dot(self.first, self.second)
        return (square * ufl.dot(self.second, self.second) - product**2) / square**3

    @property
    def curvature(self) -> Expr:
        """Vector r′×r″/|r′|³, 1/m, normal to the osculating plane."""
        square = ufl.dot(self.first, self.first)
        return ufl.cross(self.first, self.second) / (square * ufl.sqrt(square))


@dataclass(frozen=True, eq=False)
class Cable:
    """A cable or slender round rod that is initially straight and free of stress.

    Values are numbers or UFL expressions of s.

    Attributes:
        axial_stiffness: EA, N.
        bending_stiffness: EI, N m².
        linear_density: Mass per unstretched length ρA, kg/m.
        damping: Time constant τ of Kelvin-Voigt damping with the stress E (ε + τ ε̇), s.

    Raises:
        InputError: A value is out of its range.

    Example:
        >>> cable = Cable.from_section(Section.circle(0.005), STEEL, damping=1e-4)
        >>> q = fem.Function(beam_space)
        >>> forces = cable.elastic_forces(q, ufl.TestFunction(beam_space))
    """

    axial_stiffness: float | Expr
    bending_stiffness: float | Expr
    linear_density: float | Expr
    damping: float | Expr = 0.0

    def __post_init__(self) -> None:
        for name in ("axial_stiffness", "bending_stiffness", "linear_density"):
            assign(self, **{name: positive(name, getattr(self, name))})
        damping = scalar("damping", self.damping)
        if not isinstance(damping, Expr) and damping < 0:
            reject("damping", damping, "at least 0")
        assign(self, damping=damping)

    @classmethod
    def from_section(
        cls, section: Section, material: Material, *, damping: float | Expr = 0.0
    ) -> Cable:
        """Return the cable with the given section and material.

        Args:
            section: The section, with Iyy = Izz and Iyz = 0.
            material: An object with `young` and `density`.
            damping: See `Cable`.

        Raises:
            InputError: The section does not bend equally in all directions.
        """
        instance("section", section, Section)
        object_with("material", material, "young", "density")
        numbers = (section.Iyy, section.Izz, section.Iyz)
        if not any(isinstance(v, Expr) for v in numbers) and (
            abs(section.Iyy - section.Izz) > 1e-9 * section.Iyy or abs(section.Iyz) > 0
        ):
            expected = "with Iyy = Izz and Iyz = 0, as the section of a cable has no orientation"
            reject("section", section, f"{expected}; use a beam instead")
        E, A = material.young, section.area
        return cls(E * A, E * section.Iyy, material.density * A, damping)

    # ---- energies

    def kinetic_energy(self, v: Expr) -> ufl.Form:
        """Return the kinetic energy ½∫ ρA ṙ·ṙ ds of the nodal velocities v, J."""
        rate = CableField(v).value
        return self.linear_density / 2 * ufl.dot(rate, rate) * ufl.dx(degree=6)

    def elastic_energy(self, q: Expr) -> ufl.Form:
        """Return the elastic energy ½∫ (EA ε² + EI κ²) ds, J."""
        line = CableField(q)
        stretch = self.axial_stiffness / 2 * line.strain**2 * _STRETCH_MEASURE
        return stretch + self.bending_stiffness / 2 * line.square_of_curvature * _BENDING_MEASURE

    def dissipation(self, q: Expr, v: Expr) -> ufl.Form:
        """Return the dissipation ½∫ τ (EA ε̇² + EI κ̊²) ds, W; `q` must be a function.

        κ̊ is the part of the rate of the curvature vector that is normal to the tangent. It
        measures how fast the fibres of a cable without spin are stretched.
        """
        line, rate = CableField(coefficient("q", q)), CableField(v)
        rate_of_curvature = ufl.derivative(line.curvature, q, v)
        square_of_normal_part = ufl.dot(rate_of_curvature, rate_of_curvature)
        product = ufl.dot(line.first, rate_of_curvature)
        square_of_normal_part -= product**2 / ufl.dot(line.first, line.first)
        strain_rate = ufl.dot(line.first, rate.first)
        form = self.axial_stiffness * strain_rate**2 * _STRETCH_MEASURE
        form += self.bending_stiffness * square_of_normal_part * _BENDING_MEASURE
        return self.damping / 2 * form

    # ---- derivatives of the energies

    def mass(self, v: Expr, w: Expr) -> ufl.Form:
        """Return the mass form ∫ ρA v·w ds, which does not depend on the configuration."""
        product = ufl.dot(CableField(v).value, CableField(w).value)
        return self.linear_density * product * ufl.dx(degree=6)

    def elastic_forces(self, q: Expr, w: Expr) -> ufl.Form:
        """Return the derivative of the elastic energy at the function `q` in the direction w."""
        expression("w", w, ((6,),))
        return ufl.derivative(self.elastic_energy(coefficient("q", q)), q, w)

    def damping_forces(self, q: Expr, v: Expr, w: Expr) -> ufl.Form:
        """Return the derivative of the dissipation with respect to `v` in the direction w."""
        expression("w", w, ((6,),))
        return ufl.derivative(self.dissipation(q, coefficient("v", v)), v, w)

    def gravity_load(self, w: Expr, gravity: Any) -> ufl.Form:
        """Return the load ∫ ρA g·w ds; g in global components, m/s²."""
        g = as_ufl_value(gravity, "gravity", ((3,),))
        return self.linear_density * ufl.dot(g, CableField(w).value) * ufl.dx(degree=3)

    def axial_force(self, q: Expr) -> Expr:
        """Return the force EA ε |r′| along the tangent, N; tension is positive."""
        line = CableField(q)
        return self.axial_stiffness * line.strain * ufl.sqrt(ufl.dot(line.first, line.first))
