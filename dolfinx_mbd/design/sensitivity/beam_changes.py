"""Parameters of beams, and the derivatives of the matrices of a beam with respect to them.

The forms of a beam are linear in the properties of the section, and linear in E, G and ρ. Their
derivatives are therefore the same forms with derivatives in place of these properties. For a shape,
the forms depend on a motion of the nodes along the beam, and UFL differentiates them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from ufl.algorithms import expand_derivatives
from ufl.constantvalue import Zero
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import function, instance, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.design.sensitivity.parameters import Parameter, checked_velocity
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compat import interpolated
from dolfinx_mbd.forms.beam_fields import BeamField
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.beams import Beam
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.structures.beams.model import BeamModel, gather_in_order
from dolfinx_mbd.structures.beams.problem import Combination

SECTION = ("area", "Iyy", "Izz", "torsion", "Iyz")
MATERIAL = ("young", "shear", "density")
STEP = 1e-3
"""Step of the differences of a section, relative to the value of the parameter."""
WEIGHTS = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
"""Weights of a central difference of fourth order, by the multiple of the step."""


@dataclass(frozen=True, eq=False)
class SectionParameter:
    """A number on which the section of a beam depends, for `sensitivities`.

    Attributes:
        name: Name of the parameter in results.
        section: Function that returns the section for a value of the parameter. It is called for
            the value and for four values nearby. The derivatives of area, moments and torsion
            constant are differences of fourth order with a step of a thousandth of the value.
        value: Value of the parameter in the model.

    Raises:
        InputError: The value is zero or not a finite number.

    Example:
        >>> def section(height):
        ...     return mbd.forms.Section.rectangle(0.02, height)
        >>> height = mbd.design.SectionParameter("height", section, 0.01)
    """

    name: str
    section: Callable[[float], Section]
    value: float

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"parameter {checked_name('name', self.name)!r}"
        function("section", self.section, "section(value)")
        value = number(f"{label}: value", self.value, low=-1e100, high=1e100)
        if value == 0:
            reject(f"{label}: value", value, "a number other than zero")
        assign(self, value=value)


@dataclass(frozen=True, eq=False)
class BeamChange:
    """Derivatives of a beam with respect to a parameter."""

    combine: Combination  # derivative of a form of `Beam`, see `beam_matrices`
    section: Section | None  # derivatives of the properties of the section, None: zero
    velocity: Array  # of the owned nodes along the beam, shape (m,), m
    chain: Array  # velocity of all nodes in the order of `BeamModel.chain`, shape (n,), m
    base: float  # value of the parameter in the model

    def at(self, model: BeamModel, interfaces: Sequence[Any]) -> list[float]:
        """Return the velocities of interfaces along the beam."""
        distances = model.chain @ model.direction
        places = [i.point @ model.direction for i in interfaces]  # each is at a node
        return [float(self.chain[np.argmin(np.abs(distances - x))]) for x in places]


@dataclass(frozen=True, eq=False)
class _Constants:
    young: Any
    shear: Any
    density: Any


@dataclass(frozen=True, eq=False)
class _MovedBeam(Beam):
    """A beam whose nodes have moved along it; the ratio of cell lengths multiplies its section."""

    motion: Any = None

    def field(self, q: Expr) -> BeamField:
        return BeamField(q, self.axes, self.motion)


def beam_change(model: BeamModel, parameter: Parameter | SectionParameter) -> BeamChange:
    """Return the derivatives of a beam with respect to a parameter.

    Args:
        model: The beam.
        parameter: The parameter.

    Raises:
        InputError: The beam does not depend on the parameter, or is not differentiable.

    Note: Collective.
    """
    section: dict[str, Any] = {}
    material: dict[str, Any] = {}
    base, label = 0.0, f"parameter {parameter.name!r}"
    if isinstance(parameter, SectionParameter):
        section, base = _section_rates(model, parameter), parameter.value
    elif parameter.quantity == "shape":
        return _shape_change(model, parameter)
    elif parameter.quantity == "coefficient":
        section = {name: _rate(getattr(model.section, name), parameter) for name in SECTION}
        material = {name: _rate(getattr(model.material, name), parameter) for name in MATERIAL}
    elif parameter.quantity in ("young", "poisson", "density"):
        base, material = _material_rates(model, parameter)
    else:
        text = f"{label}: a beam has no parameter {parameter.quantity!r}"
        raise InputError(text, argument="parameters", value=parameter)
    beams = []
    if any(_nonzero(value) for value in material.values()):
        rates = {name: _constant(model, material.get(name, 0.0)) for name in MATERIAL}
        beams.append(Beam(model.beam.section, _Constants(**rates), model.axes))
    change = None
    if any(_nonzero(value) for value in section.values()):
        change = copy.copy(model.section)  # not a section: its numbers may have any sign
        assign(change, **section)
        # Constants in the forms, so that other values need no compilation; without Iyz if it is
        # zero, as in the forms of a section with principal axes
        form_section = copy.copy(change)
        names = [name for name in SECTION if name != "Iyz" or _nonzero(section[name])]
        assign(form_section, **{name: _constant(model, section[name]) for name in names})
        beams.append(Beam(form_section, model.beam.material, model.axes))
    if not beams:
        text = f"{label}: the beam does not depend on this parameter"
        raise InputError(text, argument="parameters", value=parameter)

    def combine(form_of: Callable[[Beam], ufl.Form]) -> ufl.Form:
        return sum((form_of(beam) for beam in beams[1:]), form_of(beams[0]))

    still = np.zeros(len(model.positions))
    return BeamChange(combine, change, still, np.zeros(len(model.chain)), base)


def _shape_change(model: BeamModel, parameter: Parameter) -> BeamChange:
    """Return the change of a beam whose nodes move along it."""
    V, label = model.space, f"parameter {parameter.name!r}: velocity"
    dim = model.mesh.geometry.dim
    velocity = checked_velocity(parameter, model.mesh)
    padded = [velocity[i] if i < dim else 0.0 for i in range(3)]
    nodal = interpolated(ufl.as_vector([*padded, 0.0, 0.0, 0.0]), V).x.array.reshape(-1, 6)[:, :3]
    axial = nodal[:, 0] if dim == 1 else nodal @ model.direction
    lateral = np.zeros(1) if dim == 1 else nodal - np.outer(axial, model.direction)
    size = max(model.mesh.comm.allgather(float(np.abs(nodal).max(initial=0.0))))
    message = None
    if not np.abs(lateral).max(initial=0.0) <= 1e-9 * size:
        message = f"{label} must point along the beam; to turn a beam, place its body"
    elif size == 0:
        message = f"{label}: it is zero everywhere, so that the shape does not change"
    raise_together(model.mesh.comm, message)
    motion, direction = fem.Function(V), fem.Function(V)
    direction.x.array[0::6] = axial
    ratio = BeamField(fem.Function(V), model.axes, motion[0]).length_ratio
    x = ufl.SpatialCoordinate(model.mesh)
    along = ufl.as_vector([1.0] if dim == 1 else list(model.direction))
    moved = {x: x + motion[0] * along}

    def at_moved(value: Any) -> Any:
        return ufl.replace(value, moved) if isinstance(value, Expr) else value

    s, m = model.beam.section, model.beam.material
    numbers = {name: at_moved(getattr(s, name)) * ratio for name in SECTION[:4]}
    if isinstance(s.Iyz, Expr) or s.Iyz:
        numbers["Iyz"] = at_moved(s.Iyz) * ratio
    constants = _Constants(*(at_moved(getattr(m, name)) for name in MATERIAL))
    beam = _MovedBeam(replace(s, **numbers), constants, model.axes, motion=motion[0])

    def combine(form_of: Callable[[Beam], ufl.Form]) -> ufl.Form:
        return ufl.derivative(form_of(beam), motion, direction)

    rates = {}
    for name in SECTION:
        value = getattr(model.section, name)
        rates[name] = 0.0
        if isinstance(value, Expr):
            rate = ufl.derivative(at_moved(value), motion, direction)
            rates[name] = expand_derivatives(rate)
    section = copy.copy(model.section)
    assign(section, **rates)
    owned = axial[: len(model.positions)].copy()
    return BeamChange(combine, section, owned, gather_in_order(model, owned), 0.0)


def _section_rates(model: BeamModel, parameter: SectionParameter) -> dict[str, Any]:
    """Return the derivatives of the properties of the section by name."""
    label, value = f"parameter {parameter.name!r}: section", parameter.value
    base = instance(label, parameter.section(value), Section)
    for name in SECTION:
        a, b = getattr(base, name), getattr(model.section, name)
        if not isinstance(a, Expr) and not isinstance(b, Expr) and abs(a - b) > 1e-9 * abs(b):
            text = f"{label}({value:g}) has {name} = {a:g}; the model has {b:g}"
            raise InputError(text, argument="parameters", value=parameter)
    h = STEP * abs(value)
    sections = {k: instance(label, parameter.section(value + k * h), Section) for k in WEIGHTS}
    return {
        name: sum(w / h * getattr(sections[k], name) for k, w in WEIGHTS.items())
        for name in SECTION
    }


def _material_rates(model: BeamModel, parameter: Parameter) -> tuple[float, dict[str, Any]]:
    """Return the value of a material constant, and the derivatives of E, G and ρ."""
    m, label = model.material, f"parameter {parameter.name!r}"
    if parameter.group is not None:
        text = f"{label}: a beam has one material and no groups"
        raise InputError(text, argument="group", value=parameter.group)
    value = getattr(m, parameter.quantity)
    if isinstance(value, Expr):
        text = f"{label}: the {parameter.quantity} is a function of space; use 'coefficient'"
        raise InputError(text, argument="parameters", value=parameter)
    ratio = 1 / (2 * (1 + m.poisson))  # G/E
    rates = {
        "young": {"young": 1.0, "shear": ratio},
        "poisson": {"shear": -2 * m.young * ratio**2},
        "density": {"density": 1.0},
    }
    return float(value), rates[parameter.quantity]


def _rate(value: Any, parameter: Parameter) -> Any:
    """Return the derivative of an expression with respect to a coefficient."""
    if not isinstance(value, Expr):
        return 0.0
    return expand_derivatives(ufl.derivative(value, parameter.coefficient, parameter.direction))


def _nonzero(value: Any) -> bool:
    """Return whether a number or an expression is not zero."""
    return not isinstance(value, Zero) if isinstance(value, Expr) else bool(value)


def _constant(model: BeamModel, value: Any) -> Any:
    """Return an expression, or a DOLFINx constant for a number."""
    if isinstance(value, Expr) and not isinstance(value, Zero):
        return value
    plain = 0.0 if isinstance(value, Zero) else float(value)
    return fem.Constant(model.mesh, default_scalar_type(plain))


def parameters_of_beams(parameters: Any) -> Sequence[Parameter | SectionParameter]:
    """Return parameters after a check of their types and names."""
    instance("parameters", parameters, (list, tuple))
    for parameter in parameters:
        instance("parameters", parameter, (Parameter, SectionParameter))
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise InputError(f"the parameters need different names; got {names}", argument="parameters")
    return list(parameters)
