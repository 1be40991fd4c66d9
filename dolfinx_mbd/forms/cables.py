"""Cables in absolute coordinates: position and slope at the nodes, any displacement and rotation.

The centre line r(s), s the length along the unstretched cable, is Hermite's cubic between nodes
that hold its position r and its slope r′ in global components (absolute nodal coordinates). Two
energies are written down, and a dissipation; everything else is their derivative by UFL:

    kinetic  ½∫ m ṙ·ṙ ds           elastic  ½∫ (EA ε² + EI κ²) ds
    ε = ½ (r′·r′ − 1)              κ² = (|r′|²|r″|² − (r′·r″)²) / |r′|⁶

The mass is constant: no centrifugal, Coriolis or gyroscopic terms. κ = |r′×r″|/|r′|³ has a root
whose derivative on a straight cable is 0/0; Lagrange's identity gives κ² without it.

Twelve coordinates an element. The paper prints 24, with the slopes r_y and r_z across the cable as
well, but an energy of EA and EI only. That reads r, r′ and r″ on the axis, where the shape
functions of r_y and r_z (its s₃, s₄, s₇, s₈) vanish with y and z: those twelve coordinates would
have no stiffness at all, and as mass only ρI, so that any start makes them drift and the
equilibrium is singular. They need an energy of shear, torsion and deformation of the section, which
a cable lacks. Hence the cable does not resolve its own spin either, its section must bend alike in
all directions, and nothing can twist it.

The unknown is a P1 field of six components (r, r′) on an interval mesh whose coordinate is s. As in
`beams`, the cubic is written in the values at the ends of a cell, right on cells of any lengths.

The axial strain of a bent element is a polynomial of degree four that cannot vanish all along it:
under full quadrature bending costs stretch (membrane locking). The stretch is therefore integrated
by Simpson's rule (Lobatto's with three points), of which neighbours share the node: two conditions
an element, as many as it has coordinates for. With a slender cantilever under PL²/EI = 10 across
its end errors are of fourth order whatever EA is, 2.7e-4 with eight elements; under Gauss
quadrature with three points they are of second order and 3e-3; with two a straight cable has a
motion without stiffness.

κ² is per length of the deformed line, as the paper has it, and its integral over the undeformed
one: pure bending then also stretches, by 3/2 EIκ²/EA, 4e-5 for a round rod whose fibres strain by
1 %.

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

from dolfinx_mbd.checks import having, instance, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import as_ufl_value, expression, scalar
from dolfinx_mbd.forms.beam_sections import Section

__all__ = ["Cable", "CableField"]

#: Simpson's rule for the stretch, four Gauss points for the bending.
_STRETCH = ufl.dx(metadata={"quadrature_rule": "GLL", "quadrature_degree": 3})
_BEND = ufl.dx(metadata={"quadrature_rule": "default", "quadrature_degree": 7})


class CableField:
    """The centre line with these nodal values, or its velocity, or a variation of it.

    Attributes:
        value: r, shape (3,).
        first: r′.
        second: r″.

    Args:
        q: P1 field (r, r′) of six components on an interval mesh: an argument, a function, or any
            linear expression of them.
    """

    def __init__(self, q: Expr) -> None:
        domain = extract_unique_domain(expression("q", q, ((6,),)))
        ends = CellVertices(domain)
        h = abs(ufl.Jacobian(domain)[0, 0])
        xi = (ufl.SpatialCoordinate(domain)[0] - (ends[0, 0] + ends[1, 0]) / 2) / h + 0.5
        r, slope = (ufl.as_vector([q[i] for i in part]) for part in (range(3), range(3, 6)))
        chord, rate = r.dx(0), slope.dx(0)
        at_a, at_b = slope - xi * h * rate, slope + (1 - xi) * h * rate
        self.value = r + h * xi * (1 - xi) * ((1 - xi) * (at_a - chord) - xi * (at_b - chord))
        self.first = (
            6 * xi * (1 - xi) * chord
            + (1 - 4 * xi + 3 * xi**2) * at_a
            + (3 * xi**2 - 2 * xi) * at_b
        )
        self.second = (12 * xi - 6) / h * (slope - chord) + (12 * xi - 12 * xi**2 - 2) * rate

    @property
    def strain(self) -> Expr:
        """Axial strain of Green and Lagrange, ½ (r′·r′ − 1)."""
        return (ufl.dot(self.first, self.first) - 1) / 2

    @property
    def square_of_curvature(self) -> Expr:
        """κ² of the centre line, 1/m²."""
        square = ufl.dot(self.first, self.first)
        along = ufl.dot(self.first, self.second)
        return (square * ufl.dot(self.second, self.second) - along**2) / square**3

    @property
    def curvature(self) -> Expr:
        """The vector r′×r″/|r′|³, 1/m, normal to the plane in which the cable bends."""
        square = ufl.dot(self.first, self.first)
        return ufl.cross(self.first, self.second) / (square * ufl.sqrt(square))


@dataclass(frozen=True, eq=False)
class Cable:
    """A cable or a slender round rod, straight and free of stress at first, without torsion.

    Values may be numbers or UFL expressions of s.

    Attributes:
        axial_stiffness: EA, N.
        bending_stiffness: EI, N m².
        linear_density: Mass per unstretched length ρA, kg/m.
        damping: Time τ, s, of internal damping of Kelvin and Voigt: stresses E (ε + τ ε̇).

    Raises:
        ValueError: A value is out of its range.
    """

    axial_stiffness: Any
    bending_stiffness: Any
    linear_density: Any
    damping: Any = 0.0

    def __post_init__(self) -> None:
        for name in ("axial_stiffness", "bending_stiffness", "linear_density", "damping"):
            value = scalar(name, getattr(self, name))
            least = "positive" if name != "damping" else "at least 0"
            if not isinstance(value, Expr) and not (
                value > 0 or (name == "damping" and value == 0)
            ):
                refuse(name, value, least)
            object.__setattr__(self, name, value)

    @classmethod
    def from_section(cls, section: Section, material: Any, *, damping: Any = 0.0) -> Cable:
        """The cable of this section and material (`young` and `density`).

        Raises:
            ValueError: If the section does not bend alike in all directions.
        """
        instance("section", section, Section)
        having("material", material, "young", "density")
        numbers = (section.Iyy, section.Izz, section.Iyz)
        if not any(isinstance(v, Expr) for v in numbers) and (
            abs(section.Iyy - section.Izz) > 1e-9 * section.Iyy or abs(section.Iyz) > 0
        ):
            raise InputError(
                "a cable does not know how its section is turned: it needs Iyy = Izz and Iyz = 0, "
                f"got {section.Iyy:g}, {section.Izz:g} and {section.Iyz:g} m⁴. Use a beam"
            )
        return cls(
            material.young * section.area,
            material.young * section.Iyy,
            material.density * section.area,
            damping,
        )

    # ---- energies

    def kinetic_energy(self, v: Expr) -> ufl.Form:
        """½∫ ρA ṙ·ṙ ds at the nodal velocities v."""
        rate = CableField(v).value
        return self.linear_density / 2 * ufl.dot(rate, rate) * ufl.dx(degree=6)

    def elastic_energy(self, q: Expr) -> ufl.Form:
        """½∫ (EA ε² + EI κ²) ds."""
        line = CableField(q)
        return (
            self.axial_stiffness / 2 * line.strain**2 * _STRETCH
            + self.bending_stiffness / 2 * line.square_of_curvature * _BEND
        )

    def dissipation(self, q: Expr, v: Expr) -> ufl.Form:
        """½∫ τ (EA ε̇² + EI κ̊²) ds; its derivative by v are the damping forces.

        κ̊ is the rate of the vector of curvature less what turns it with the tangent, its part
        normal to the tangent: the rate at which fibres stretch that do not spin.
        """
        line, rate = CableField(_variable("q", q)), CableField(v)
        bend = ufl.derivative(line.curvature, q, v)
        square = ufl.dot(line.first, line.first)
        along = ufl.dot(line.first, bend)
        stretch = ufl.dot(line.first, rate.first)
        half = self.damping / 2
        return (
            half * self.axial_stiffness * stretch**2 * _STRETCH
            + half * self.bending_stiffness * (ufl.dot(bend, bend) - along**2 / square) * _BEND
        )

    # ---- their derivatives

    def mass(self, v: Expr, w: Expr) -> ufl.Form:
        """∫ ρA v·w ds: constant."""
        return (
            self.linear_density
            * ufl.dot(CableField(v).value, CableField(w).value)
            * ufl.dx(degree=6)
        )

    def elastic_forces(self, q: Expr, w: Expr) -> ufl.Form:
        """Derivative of the elastic energy at q by w."""
        expression("w", w, ((6,),))
        return ufl.derivative(self.elastic_energy(_variable("q", q)), q, w)

    def damping_forces(self, q: Expr, v: Expr, w: Expr) -> ufl.Form:
        """Derivative of the dissipation by the velocities v."""
        expression("w", w, ((6,),))
        return ufl.derivative(self.dissipation(q, _variable("v", v)), v, w)

    def gravity_load(self, w: Expr, gravity: Any) -> ufl.Form:
        """∫ ρA g·w ds, g in global components, m/s²."""
        g = as_ufl_value(gravity, "gravity", ((3,),))
        return self.linear_density * ufl.dot(g, CableField(w).value) * ufl.dx(degree=3)

    def axial_force(self, q: Expr) -> Expr:
        """N = EA ε |r′|, N: the force along the tangent; tension is positive."""
        line = CableField(q)
        return self.axial_stiffness * line.strain * ufl.sqrt(ufl.dot(line.first, line.first))


def _variable(argument: str, value: Any) -> Any:
    """Return a function, by which a form can be differentiated."""
    return instance(argument, value, ufl.Coefficient, "a function on the mesh")
