"""Kinds of the entries in model files, and the classes and functions that create them."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import dolfinx_mbd.mechanism as mechanism
from dolfinx_mbd.analyses import equilibrium, linearize, periodic, simulate
from dolfinx_mbd.dynamics import Adaptive, GeneralizedAlpha
from dolfinx_mbd.io.models.makers import Maker, Makers
from dolfinx_mbd.mechanism import bearings, mechanisms
from dolfinx_mbd.mechanism.contact.elements import Surface
from dolfinx_mbd.mechanism.expressions import PairFormula, StateFormula
from dolfinx_mbd.mechanism.expressions.functions import JOINT_VARIABLES
from dolfinx_mbd.mechanism.joints import JOINT_KINDS
from dolfinx_mbd.mechanism.mechanisms.engine_block import free_motion
from dolfinx_mbd.mechanism.mechanisms.engine_design import GasForce
from dolfinx_mbd.mechanism.mechanisms.torsional import TorsionalDamping, TorsionalShaft

__all__ = ["ANALYSES", "FORMULAS", "FUNCTIONS", "SECTIONS", "VALUES", "Formulas"]


def _joint_makers() -> dict[str, Maker]:
    """Return the functions of `dolfinx_mbd.mechanism` that create joints, by the kind of joint."""
    makers: dict[str, Maker] = {"free": free_motion}
    for name in mechanism.__all__:
        value = getattr(mechanism, name)
        if inspect.isfunction(value) and value.__annotations__.get("return") == "Joint":
            makers[name] = value
    missing = JOINT_KINDS.keys() - makers.keys()
    assert not missing, missing
    return makers


def _film(bearing: type[Any]) -> Maker:
    """Return a function that makes an oil film in a joint; its arguments are those of `bearing`."""

    def film(**fields: Any) -> bearings.OilFilm:
        return bearings.OilFilm(bearing, **fields)

    signature = inspect.signature(bearing)
    others = [p for n, p in signature.parameters.items() if n not in ("name", "first", "second")]
    film.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    film.__doc__, film.__module__ = bearing.__doc__, bearing.__module__
    return film


_MESH = "dolfinx_mbd.structures.mesh_bodies:"

SECTIONS: dict[str, Makers] = {
    "bodies": Makers(
        {
            "ground": mechanism.Ground,
            "rigid": mechanism.RigidBody,
            "box": mechanism.RigidBody.box,
            "cylinder": mechanism.RigidBody.cylinder,
            "flexible": mechanism.FlexibleBody,
            "mesh_body": _MESH + "MeshBody",
            "cable": "dolfinx_mbd.structures.cables:CableBody",
        }
    ),
    "joints": Makers(_joint_makers()),
    "drivers": Makers({"driver": mechanism.Driver}),
    "loads": Makers(
        {
            "force": mechanism.force,
            "torque": mechanism.torque,
            "joint_load": mechanism.JointLoad,
            "joint_spring": mechanism.JointSpring,
            "joint_friction": mechanism.JointFriction,
            "joint_stop": mechanism.JointStop,
            "spring_damper": mechanism.SpringDamper,
            "bushing": mechanism.Bushing,
            "pair_load": mechanism.PairLoad,
            "gear_pair": mechanism.GearPair,
            "tabulated_bearing": mechanism.TabulatedBearing,
            "pattern_load": mechanism.PatternLoad,
            "contact": mechanism.Contact,
            "sphere_contact": mechanism.sphere_contact,
            "plane_contact": mechanism.plane_contact,
            "bore_contact": mechanism.bore_contact,
            "guide_contact": mechanism.guide_contact,
            "short_bearing": bearings.ShortBearing,
            "finite_bearing": bearings.FiniteBearing,
        }
    ),
    "mechanism": Makers(
        {
            "inline_engine": mechanisms.inline_engine,
            "slider_crank": mechanisms.slider_crank,
        }
    ),
}
"""Makers of the entries of each section by the kind in the entry `type`."""

VALUES: dict[str, Makers] = {
    "ContactLaw": Makers({"ContactLaw": mechanism.ContactLaw}),
    "JointClearance": Makers(
        {
            "clearance": mechanism.Clearance,
            "guide_clearance": mechanism.GuideClearance,
            "short_bearing": _film(bearings.ShortBearing),
            "finite_bearing": _film(bearings.FiniteBearing),
        }
    ),
    "Shape": Makers(
        {
            "shape": mechanism.Shape,
            "box": mechanism.box_shape,
            "cylinder": mechanism.cylinder_shape,
        }
    ),
    "Surface": Makers({"Surface": Surface}),
    "Asperities": Makers({"Asperities": bearings.Asperities}),
    "Oil": Makers({"Oil": bearings.Oil}),
    "OilSupply": Makers({"OilSupply": bearings.OilSupply}),
    "BearingTable": Makers({"BearingTable": mechanism.BearingTable}),
    "JointCoordinate": Makers({"JointCoordinate": mechanism.JointCoordinate}),
    "PatternRef": Makers({"PatternRef": mechanism.PatternRef}),
    "EngineDesign": Makers({"EngineDesign": mechanisms.EngineDesign}),
    "TorsionalDamper": Makers({"TorsionalDamper": mechanisms.TorsionalDamper}),
    "GeneralizedAlpha": Makers({"GeneralizedAlpha": GeneralizedAlpha}),
    "Adaptive": Makers({"Adaptive": Adaptive}),
    "Material": Makers(
        {
            "isotropic": "dolfinx_mbd.forms:Material",
            "orthotropic": "dolfinx_mbd.forms:Orthotropic",
        }
    ),
    "Temperature": Makers({"Temperature": "dolfinx_mbd.forms:Temperature"}),
    "InterfaceSpec": Makers({"InterfaceSpec": "dolfinx_mbd:InterfaceSpec"}),
    "MeshLoad": Makers(
        {
            "pressure": _MESH + "Pressure",
            "traction": _MESH + "Traction",
            "body_force": _MESH + "BodyForce",
            "point_force": _MESH + "PointForce",
        }
    ),
    "Cable": Makers(
        {
            "cable": "dolfinx_mbd.forms:Cable",
            "section": "dolfinx_mbd.forms:Cable.from_section",
        }
    ),
    "Section": Makers(
        {
            "circle": "dolfinx_mbd.forms:Section.circle",
            "tube": "dolfinx_mbd.forms:Section.tube",
        }
    ),
    "Curve": Makers({"curve": mechanism.Curve, "through": mechanism.Curve.through}),
}
"""Makers of the values of fields by the type in the signature, and by the kind in `type`."""

ANALYSES: dict[str, Maker] = {
    "simulate": simulate,
    "equilibrium": equilibrium,
    "linearize": linearize,
    "periodic": periodic,
}
"""Analyses by the name of their section."""


FUNCTIONS = Makers(
    {
        "gas_force": GasForce,
        "four_stroke": mechanisms.FourStrokePressure,
        "pressure_table": mechanisms.PressureTable,
        "pressure_map": mechanisms.PressureMap,
        "state_formula": StateFormula,
        "pair_formula": PairFormula,
        "torsional_shaft": TorsionalShaft,
        "torsional_damping": TorsionalDamping,
    }
)
"""Makers of fields that are functions, besides expressions, by the kind in `type`."""


class Formulas(NamedTuple):
    """Expressions that a field may contain instead of a function.

    Attributes:
        variables: Names in the expression, besides parameters; by default those of the motion of
            a frame, `FRAME_VARIABLES`.
        units: Units of the value, separated by `|`.
        components: Number of expressions; 0 if the field is an object.
        default: Kind in `FUNCTIONS` of an entry without `type`.
    """

    variables: tuple[str, ...]
    units: str
    components: int = 1
    default: str = ""

    @property
    def is_object(self) -> bool:
        """Whether the field is an object, and neither an expression nor a list of them."""
        return self.components == 0


FORMULAS: dict[tuple[str, str], Formulas] = {
    ("joint_load", "value"): Formulas(JOINT_VARIABLES, "N|N m", default="state_formula"),
    ("pair_load", "law"): Formulas((), "", 0, default="pair_formula"),
    ("torsional_damping", "motion"): Formulas(("t",), ""),
    ("joint_spring", "law"): Formulas(("s", "rate"), "N|N m"),
    ("spring_damper", "law"): Formulas(("length", "rate"), "N"),
    ("pattern_load", "value"): Formulas(("t",), ""),
    ("force", "value"): Formulas((), "N", 3),
    ("torque", "value"): Formulas((), "N m", 3),
    ("pressure", "value"): Formulas(("t",), "Pa"),
    ("traction", "value"): Formulas(("t",), "Pa", 3),
    ("body_force", "value"): Formulas(("t",), "N/m³", 3),
    ("point_force", "value"): Formulas(("t",), "N", 3),
    ("mesh_body", "energy"): Formulas(("I1", "I2", "J"), ""),
    ("driver", "motion"): Formulas(("t",), ""),
    ("inline_engine", "pressure"): Formulas(("angle",), "Pa"),
    ("gas_force", "pressure"): Formulas(("angle",), "Pa"),
}
"""Fields that are functions, by the kind of the part and the name of the field."""
