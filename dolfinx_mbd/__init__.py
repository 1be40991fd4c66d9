"""Flexible multibody dynamics for FEniCSx.

    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=["big_end", "small_end"], num_modes=20)
    engine = mbd.mechanisms.inline_engine(reduction.body, speed=628.3)
    run = mbd.simulate(engine, t_end=0.04, dt=1e-5)

Names are loaded when they are first used, so that a mechanism needs no DOLFINx and a form no numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PLACES = {
    "dolfinx_mbd.beams": (
        "BeamModel",
        "reduce_beam",
        "rotating_beam",
    ),
    "dolfinx_mbd.cables": ("CableBody",),
    "dolfinx_mbd.fem": (
        "ElasticModel",
        "TaggedMesh",
        "build_mesh",
        "read_mesh",
    ),
    "dolfinx_mbd.modal": ("modal_analysis",),
    "dolfinx_mbd.prescribed_motion": (
        "PrescribedMotion",
        "TransientOptions",
        "transient",
    ),
    "dolfinx_mbd.recovery": (
        "envelope",
        "most_stressed",
        "recover",
        "section_forces",
    ),
    "dolfinx_mbd.reduction": (
        "InterfaceSpec",
        "Reducer",
        "Reduction",
        "ReductionOptions",
        "Viscous",
        "body_force",
        "pressure",
        "reduce",
        "traction",
    ),
    "dolfinx_mbd.rotating": (
        "campbell",
        "critical_speed",
        "rotating_modes",
        "rotating_structure",
    ),
    "dolfinx_mbd.body": (
        "ModalDamping",
        "Rayleigh",
        "ReducedBody",
        "frequency_response",
    ),
    "dolfinx_mbd.forms": (
        "ALUMINIUM",
        "ALUMINIUM_7075",
        "Cable",
        "GradedMaterial",
        "Material",
        "Orthotropic",
        "STEEL",
        "Section",
        "Temperature",
        "material",
    ),
    "dolfinx_mbd.geometry": (
        "ConnectingRod",
        "StepPart",
    ),
    "dolfinx_mbd.multibody": (
        "Adaptive",
        "Bushing",
        "FlexibleBody",
        "Frame",
        "GeneralizedAlpha",
        "Ground",
        "PatternLoad",
        "RigidBody",
        "STANDARD_GRAVITY",
        "Solution",
        "SpringDamper",
        "Study",
        "System",
        "equilibrium",
        "inverse_dynamics",
        "kinematic_analysis",
        "linearize",
        "quasi_static",
        "resume",
        "simulate",
        "spectrum",
        "sweep",
    ),
}
_MODULES = {
    "beams": "dolfinx_mbd.beams",
    "body": "dolfinx_mbd.body",
    "cables": "dolfinx_mbd.cables",
    "errors": "dolfinx_mbd.errors",
    "export": "dolfinx_mbd.export",
    "fem": "dolfinx_mbd.fem",
    "forms": "dolfinx_mbd.forms",
    "geometry": "dolfinx_mbd.geometry",
    "imports": "dolfinx_mbd.imports",
    "mechanisms": "dolfinx_mbd.mechanisms",
    "modal": "dolfinx_mbd.modal",
    "multibody": "dolfinx_mbd.multibody",
    "plotting": "dolfinx_mbd.plotting",
    "prescribed_motion": "dolfinx_mbd.prescribed_motion",
    "recovery": "dolfinx_mbd.recovery",
    "reduction": "dolfinx_mbd.reduction",
    "rotating": "dolfinx_mbd.rotating",
}
_HOME = {name: place for place, names in _PLACES.items() for name in names}

__all__ = ["__version__", *sorted((*_HOME, *_MODULES))]

if TYPE_CHECKING:
    from dolfinx_mbd import beams as beams
    from dolfinx_mbd import body as body
    from dolfinx_mbd import cables as cables
    from dolfinx_mbd import errors as errors
    from dolfinx_mbd import export as export
    from dolfinx_mbd import fem as fem
    from dolfinx_mbd import forms as forms
    from dolfinx_mbd import geometry as geometry
    from dolfinx_mbd import imports as imports
    from dolfinx_mbd import mechanisms as mechanisms
    from dolfinx_mbd import modal as modal
    from dolfinx_mbd import multibody as multibody
    from dolfinx_mbd import plotting as plotting
    from dolfinx_mbd import prescribed_motion as prescribed_motion
    from dolfinx_mbd import recovery as recovery
    from dolfinx_mbd import reduction as reduction
    from dolfinx_mbd import rotating as rotating
    from dolfinx_mbd.beams import BeamModel as BeamModel
    from dolfinx_mbd.beams import reduce_beam as reduce_beam
    from dolfinx_mbd.beams import rotating_beam as rotating_beam
    from dolfinx_mbd.body import ModalDamping as ModalDamping
    from dolfinx_mbd.body import Rayleigh as Rayleigh
    from dolfinx_mbd.body import ReducedBody as ReducedBody
    from dolfinx_mbd.body import frequency_response as frequency_response
    from dolfinx_mbd.cables import CableBody as CableBody
    from dolfinx_mbd.fem import ElasticModel as ElasticModel
    from dolfinx_mbd.fem import TaggedMesh as TaggedMesh
    from dolfinx_mbd.fem import build_mesh as build_mesh
    from dolfinx_mbd.fem import read_mesh as read_mesh
    from dolfinx_mbd.forms import ALUMINIUM as ALUMINIUM
    from dolfinx_mbd.forms import ALUMINIUM_7075 as ALUMINIUM_7075
    from dolfinx_mbd.forms import STEEL as STEEL
    from dolfinx_mbd.forms import Cable as Cable
    from dolfinx_mbd.forms import GradedMaterial as GradedMaterial
    from dolfinx_mbd.forms import Material as Material
    from dolfinx_mbd.forms import Orthotropic as Orthotropic
    from dolfinx_mbd.forms import Section as Section
    from dolfinx_mbd.forms import Temperature as Temperature
    from dolfinx_mbd.forms import material as material
    from dolfinx_mbd.geometry import ConnectingRod as ConnectingRod
    from dolfinx_mbd.geometry import StepPart as StepPart
    from dolfinx_mbd.modal import modal_analysis as modal_analysis
    from dolfinx_mbd.multibody import STANDARD_GRAVITY as STANDARD_GRAVITY
    from dolfinx_mbd.multibody import Adaptive as Adaptive
    from dolfinx_mbd.multibody import Bushing as Bushing
    from dolfinx_mbd.multibody import FlexibleBody as FlexibleBody
    from dolfinx_mbd.multibody import Frame as Frame
    from dolfinx_mbd.multibody import GeneralizedAlpha as GeneralizedAlpha
    from dolfinx_mbd.multibody import Ground as Ground
    from dolfinx_mbd.multibody import PatternLoad as PatternLoad
    from dolfinx_mbd.multibody import RigidBody as RigidBody
    from dolfinx_mbd.multibody import Solution as Solution
    from dolfinx_mbd.multibody import SpringDamper as SpringDamper
    from dolfinx_mbd.multibody import Study as Study
    from dolfinx_mbd.multibody import System as System
    from dolfinx_mbd.multibody import equilibrium as equilibrium
    from dolfinx_mbd.multibody import inverse_dynamics as inverse_dynamics
    from dolfinx_mbd.multibody import kinematic_analysis as kinematic_analysis
    from dolfinx_mbd.multibody import linearize as linearize
    from dolfinx_mbd.multibody import quasi_static as quasi_static
    from dolfinx_mbd.multibody import resume as resume
    from dolfinx_mbd.multibody import simulate as simulate
    from dolfinx_mbd.multibody import spectrum as spectrum
    from dolfinx_mbd.multibody import sweep as sweep
    from dolfinx_mbd.prescribed_motion import PrescribedMotion as PrescribedMotion
    from dolfinx_mbd.prescribed_motion import TransientOptions as TransientOptions
    from dolfinx_mbd.prescribed_motion import transient as transient
    from dolfinx_mbd.recovery import envelope as envelope
    from dolfinx_mbd.recovery import most_stressed as most_stressed
    from dolfinx_mbd.recovery import recover as recover
    from dolfinx_mbd.recovery import section_forces as section_forces
    from dolfinx_mbd.reduction import InterfaceSpec as InterfaceSpec
    from dolfinx_mbd.reduction import Reducer as Reducer
    from dolfinx_mbd.reduction import Reduction as Reduction
    from dolfinx_mbd.reduction import ReductionOptions as ReductionOptions
    from dolfinx_mbd.reduction import Viscous as Viscous
    from dolfinx_mbd.reduction import body_force as body_force
    from dolfinx_mbd.reduction import pressure as pressure
    from dolfinx_mbd.reduction import reduce as reduce
    from dolfinx_mbd.reduction import traction as traction
    from dolfinx_mbd.rotating import campbell as campbell
    from dolfinx_mbd.rotating import critical_speed as critical_speed
    from dolfinx_mbd.rotating import rotating_modes as rotating_modes
    from dolfinx_mbd.rotating import rotating_structure as rotating_structure


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dolfinx_mbd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
