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
        "InterfaceSpec",
        "Reduction",
        "TaggedMesh",
        "build_mesh",
        "modal_analysis",
        "read_mesh",
        "reduce",
    ),
    "dolfinx_mbd.body": ("ReducedBody",),
    "dolfinx_mbd.forms": (
        "ALUMINIUM",
        "ALUMINIUM_7075",
        "STEEL",
        "GradedMaterial",
        "Material",
        "Orthotropic",
        "Temperature",
        "material",
    ),
    "dolfinx_mbd.geometry": ("ConnectingRod",),
    "dolfinx_mbd.multibody": (
        "STANDARD_GRAVITY",
        "FlexibleBody",
        "Frame",
        "GeneralizedAlpha",
        "Ground",
        "RigidBody",
        "Solution",
        "System",
        "simulate",
    ),
}
_MODULES = {
    "analysis": "dolfinx_mbd.analysis",
    "body": "dolfinx_mbd.body",
    "forms": "dolfinx_mbd.forms",
    "geometry": "dolfinx_mbd.geometry",
    "mechanisms": "dolfinx_mbd.multibody.mechanisms",
    "multibody": "dolfinx_mbd.multibody",
    "plotting": "dolfinx_mbd.plotting",
}
_HOME = {name: place for place, names in _PLACES.items() for name in names}

__all__ = ["__version__", *sorted((*_HOME, *_MODULES))]

if TYPE_CHECKING:
    from dolfinx_mbd import analysis as analysis
    from dolfinx_mbd import body as body
    from dolfinx_mbd import forms as forms
    from dolfinx_mbd import geometry as geometry
    from dolfinx_mbd import multibody as multibody
    from dolfinx_mbd import plotting as plotting
    from dolfinx_mbd.analysis import (
        InterfaceSpec as InterfaceSpec,
    )
    from dolfinx_mbd.analysis import (
        Reduction as Reduction,
    )
    from dolfinx_mbd.analysis import (
        TaggedMesh as TaggedMesh,
    )
    from dolfinx_mbd.analysis import (
        build_mesh as build_mesh,
    )
    from dolfinx_mbd.analysis import (
        modal_analysis as modal_analysis,
    )
    from dolfinx_mbd.analysis import (
        read_mesh as read_mesh,
    )
    from dolfinx_mbd.analysis import (
        reduce as reduce,
    )
    from dolfinx_mbd.body import ReducedBody as ReducedBody
    from dolfinx_mbd.forms import (
        ALUMINIUM as ALUMINIUM,
    )
    from dolfinx_mbd.forms import (
        ALUMINIUM_7075 as ALUMINIUM_7075,
    )
    from dolfinx_mbd.forms import (
        STEEL as STEEL,
    )
    from dolfinx_mbd.forms import (
        GradedMaterial as GradedMaterial,
    )
    from dolfinx_mbd.forms import (
        Material as Material,
    )
    from dolfinx_mbd.forms import (
        Orthotropic as Orthotropic,
    )
    from dolfinx_mbd.forms import (
        Temperature as Temperature,
    )
    from dolfinx_mbd.forms import (
        material as material,
    )
    from dolfinx_mbd.geometry import ConnectingRod as ConnectingRod
    from dolfinx_mbd.multibody import (
        STANDARD_GRAVITY as STANDARD_GRAVITY,
    )
    from dolfinx_mbd.multibody import (
        FlexibleBody as FlexibleBody,
    )
    from dolfinx_mbd.multibody import (
        Frame as Frame,
    )
    from dolfinx_mbd.multibody import (
        GeneralizedAlpha as GeneralizedAlpha,
    )
    from dolfinx_mbd.multibody import (
        Ground as Ground,
    )
    from dolfinx_mbd.multibody import (
        RigidBody as RigidBody,
    )
    from dolfinx_mbd.multibody import (
        Solution as Solution,
    )
    from dolfinx_mbd.multibody import (
        System as System,
    )
    from dolfinx_mbd.multibody import mechanisms as mechanisms
    from dolfinx_mbd.multibody import (
        simulate as simulate,
    )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dolfinx_mbd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
