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
    "dolfinx_mbd.analysis": (
        "BeamModel",
        "CableBody",
        "InterfaceSpec",
        "PrescribedMotion",
        "Reducer",
        "Reduction",
        "TaggedMesh",
        "Viscous",
        "body_force",
        "build_mesh",
        "campbell",
        "critical_speed",
        "modal_analysis",
        "pressure",
        "read_mesh",
        "reduce",
        "reduce_beam",
        "rotating_beam",
        "rotating_modes",
        "rotating_structure",
        "traction",
        "transient",
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
    "analysis": "dolfinx_mbd.analysis",
    "body": "dolfinx_mbd.body",
    "errors": "dolfinx_mbd.errors",
    "export": "dolfinx_mbd.export",
    "forms": "dolfinx_mbd.forms",
    "geometry": "dolfinx_mbd.geometry",
    "imports": "dolfinx_mbd.imports",
    "mechanisms": "dolfinx_mbd.multibody.mechanisms",
    "multibody": "dolfinx_mbd.multibody",
    "plotting": "dolfinx_mbd.plotting",
}
_HOME = {name: place for place, names in _PLACES.items() for name in names}

__all__ = ["__version__", *sorted((*_HOME, *_MODULES))]

if TYPE_CHECKING:
    from dolfinx_mbd import analysis as analysis
    from dolfinx_mbd import body as body
    from dolfinx_mbd import errors as errors
    from dolfinx_mbd import export as export
    from dolfinx_mbd import forms as forms
    from dolfinx_mbd import geometry as geometry
    from dolfinx_mbd import imports as imports
    from dolfinx_mbd import multibody as multibody
    from dolfinx_mbd import plotting as plotting
    from dolfinx_mbd.analysis import BeamModel as BeamModel
    from dolfinx_mbd.analysis import CableBody as CableBody
    from dolfinx_mbd.analysis import InterfaceSpec as InterfaceSpec
    from dolfinx_mbd.analysis import PrescribedMotion as PrescribedMotion
    from dolfinx_mbd.analysis import Reducer as Reducer
    from dolfinx_mbd.analysis import Reduction as Reduction
    from dolfinx_mbd.analysis import TaggedMesh as TaggedMesh
    from dolfinx_mbd.analysis import Viscous as Viscous
    from dolfinx_mbd.analysis import body_force as body_force
    from dolfinx_mbd.analysis import build_mesh as build_mesh
    from dolfinx_mbd.analysis import campbell as campbell
    from dolfinx_mbd.analysis import critical_speed as critical_speed
    from dolfinx_mbd.analysis import modal_analysis as modal_analysis
    from dolfinx_mbd.analysis import pressure as pressure
    from dolfinx_mbd.analysis import read_mesh as read_mesh
    from dolfinx_mbd.analysis import reduce as reduce
    from dolfinx_mbd.analysis import reduce_beam as reduce_beam
    from dolfinx_mbd.analysis import rotating_beam as rotating_beam
    from dolfinx_mbd.analysis import rotating_modes as rotating_modes
    from dolfinx_mbd.analysis import rotating_structure as rotating_structure
    from dolfinx_mbd.analysis import traction as traction
    from dolfinx_mbd.analysis import transient as transient
    from dolfinx_mbd.body import ModalDamping as ModalDamping
    from dolfinx_mbd.body import Rayleigh as Rayleigh
    from dolfinx_mbd.body import ReducedBody as ReducedBody
    from dolfinx_mbd.body import frequency_response as frequency_response
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
    from dolfinx_mbd.multibody import mechanisms as mechanisms
    from dolfinx_mbd.multibody import quasi_static as quasi_static
    from dolfinx_mbd.multibody import resume as resume
    from dolfinx_mbd.multibody import simulate as simulate
    from dolfinx_mbd.multibody import spectrum as spectrum
    from dolfinx_mbd.multibody import sweep as sweep


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dolfinx_mbd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
