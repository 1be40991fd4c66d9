"""Former names of the package. They still work; a `DeprecationWarning` names the new place."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["former_name", "watch_imports"]

NAMES: dict[str, str] = {
    "analyses": """
        identify_loads inverse_dynamics kinematic_analysis quasi_static_motion waterfall
    """,
    "body": """
        Rayleigh frequency_response
    """,
    "design": """
        BodyDerivative BodySensitivities Functional Identification Limits
        LinearSensitivities ModalMatrices ModalPairs ModalTest Optimum ParametricBody
        RunGradient RunSensitivities SectionParameter buckling_load extended_velocity
        first_order_deviation identify linear_sensitivities mac parametric_velocity
        run_gradient
    """,
    "durability": """
        FatigueMaterial GaugeSpec inertia_relief radiated_power section_forces
    """,
    "dynamics": """
        ImplicitEuler consistent_state redundancies
    """,
    "fem": """
        TaggedMesh
    """,
    "forms": """
        ALUMINIUM Cable GradedMaterial Orthotropic Section Temperature material
    """,
    "mechanism": """
        BearingTable Contact Curve FrameLoad FrameMotion GearPair GuideClearance Joint
        JointCoordinate JointFriction JointRelation JointStop PairMotion PatternLoad Shape
        State TabulatedBearing bore_contact box_shape contact_damping cylinder_shape
        differentiated guide_contact hertz_stiffness integrated line_stiffness plane_contact
        sphere_contact
    """,
    "reduction": """
        Reducer Reduction Viscous body_force pressure traction
    """,
    "results": """
        BodyHistory Difference ElementHistory Impact JointHistory Solution
    """,
    "structures": """
        PrescribedMotion TransientOptions campbell critical_speed rotating_beam
        rotating_modes rotating_structure transient
    """,
}
"""Names that have moved to a folder, by folder."""

FOLDERS: dict[str, str] = {
    "acoustics": "durability.acoustics",
    "beams": "structures.beams",
    "bearings": "mechanism.bearings",
    "cables": "structures.cables",
    "export": "io.export",
    "identification": "design.identification",
    "imports": "io.imports",
    "mechanisms": "mechanism.mechanisms",
    "modal": "fem.modal",
    "optimization": "design.optimization",
    "prescribed_motion": "structures.prescribed_motion",
    "recovery": "durability.recovery",
    "response": "body.response",
    "rotating": "structures.rotating",
    "sensitivity": "design.sensitivity",
}
"""Former names of folders, and the new ones."""

_ROOMS = {name: room for room, names in NAMES.items() for name in names.split()}
_LEVEL = 3  # the caller of the `__getattr__` of the package


def former_name(name: str) -> Any:
    """Return the object or the folder that had this name in the package.

    Args:
        name: Name in the package, for example ``Solution`` or ``bearings``.

    Raises:
        AttributeError: The package never had this name.
    """
    if name in FOLDERS:
        _warn(name, FOLDERS[name])
        return importlib.import_module(f"dolfinx_mbd.{FOLDERS[name]}")
    if name not in _ROOMS:
        raise AttributeError(name)
    _warn(name, f"{_ROOMS[name]}.{name}")
    return getattr(importlib.import_module(f"dolfinx_mbd.{_ROOMS[name]}"), name)


def _warn(old: str, new: str, level: int = _LEVEL) -> None:
    """Warn that a name has moved."""
    text = f"'dolfinx_mbd.{old}' has moved: write 'dolfinx_mbd.{new}'"
    warnings.warn(text, DeprecationWarning, stacklevel=level + 1)


class _FormerFolders(MetaPathFinder, Loader):
    """Imports a folder under its former name, for example `dolfinx_mbd.bearings`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the description of a module that is loaded from its new place."""
        package, _, rest = name.partition(".")
        folder, _, below = rest.partition(".")
        if package != "dolfinx_mbd" or folder not in FOLDERS:
            return None
        new = f"{FOLDERS[folder]}.{below}".rstrip(".")
        return ModuleSpec(name, self, origin=f"dolfinx_mbd.{new}")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module from its new place."""
        new = str(spec.origin)
        self._spec = (module := importlib.import_module(new)).__spec__
        _warn(spec.name.removeprefix("dolfinx_mbd."), new.removeprefix("dolfinx_mbd."))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as its own import made it."""
        module.__spec__ = self._spec


def watch_imports() -> None:
    """Let `import dolfinx_mbd.bearings` and the like find the new places of folders."""
    if not any(isinstance(finder, _FormerFolders) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FormerFolders())
