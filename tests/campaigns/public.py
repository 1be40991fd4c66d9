"""The public callables of the package, and those that the campaign need not call."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import dolfinx_mbd as mbd

RECORDS = {
    "Animation", "AssemblyError", "BeamModes", "BeamReduction", "BearingCoefficients",
    "BodyDerivative", "BodyFileError", "BodyHistory", "BodySensitivities", "BodyState",
    "CableMotion", "Campbell", "Comparison", "CrankMotion", "CriticalSpeed", "Cycles",
    "DamagedPlace", "Difference", "ElementHistory", "EngineBalance", "EquilibriumCurve",
    "ClosedRun", "HarmonicCurve", "HarmonicMotion",
    "ModeComparison", "PeriodicError", "PeriodicMotion", "TorsionalResponse", "Energies",
    "EquilibriumError", "ExportReport",
    "FatigueResult", "FatigueTable", "FilmBearing", "FilmFields",
    "FirstOrderInertiaWarning", "Format",
    "FrameMotion", "FrameRef", "FrequencyResponse", "GaugeHistory", "HalfPower", "Identification",
    "IdentifiedLoads", "Impact", "InverseDynamics", "Iterate", "JointCoordinate", "JointHistory",
    "KinematicError", "LinearizedBody", "LinearizedSystem", "LinearSensitivities", "LoadCases",
    "MeshMotion", "VibrationModes",
    "MatrixError", "MatrixFileError", "ModalAnalysis", "Model",
    "ModelFileError", "ModalPairs", "ModalTransient", "Optimum",
    "PairMotion",
    "JointRelation", "Participation", "PatternRef", "Picture", "Player", "PowerSpectrum",
    "Reduction", "Redundancy",
    "ReynoldsGrid", "RotatingModes", "RotatingStructure", "RunFileError", "RunGradient",
    "RunSensitivities", "SmoothFace", "SNLine", "Solution", "SpeedPoles", "Spectrum",
    "SpinningEquilibrium",
    "State", "SteadyError", "StepError", "Strength", "StudyError", "Transient", "Waterfall",
    "WeakPlace",
}  # fmt: skip
"""Results, references, errors, warnings and base classes, which are checked in use."""

INTERNAL = {
    "System.check_state", "Stepper.without_history", "ImplicitEuler.without_history",
    "Stepper.put", "ImplicitEuler.put",
    "adopt", "begin_step", "check_no_content", "check_reduced", "failure", "follow", "for_run",
    "gap_stiffness", "group_key", "moves_gap", "write_gap_gradients",
    "ReynoldsGrid.pattern_stiffness", "ReynoldsGrid.put_elastic_gap", "ReynoldsGrid.update_at_gap",
    "ReynoldsGrid.write_elastic_wrenches",
    "MeshBody.nodal_history", "MeshMotion.stored", "ReynoldsGrid.update",
    "advance", "after_jump", "Asperities.energy", "Asperities.flow_constants", "BearingTable.at",
    "begin", "CableBody.check",
    "Clearance.element", "Clearance.rows", "Contact.states", "ContactLaw.numbers",
    "coordinates", "derivatives", "destroy", "ElasticBearing.displacement",
    "elastic_power", "energies", "energy", "FatigueMaterial.law", "film_loads",
    "FilmBearing.motion_vector",
    "FourStrokePressure.at", "FourStrokePressure.slope_at", "frame_bias", "frame_jacobians",
    "frame_velocities", "frame_velocity_tangents", "FullMatrices.rows", "gaps", "GearPair.states",
    "GuideClearance.element", "GuideClearance.rows", "increment", "increment_tangent",
    "initial_coordinates", "initial_velocities", "JointFriction.gaps", "JointSpring.gaps",
    "JointStop.gaps", "JointRelation.evaluate", "JointRelation.parameters",
    "JointRelation.initial_problem", "JointRelation.problem", "JointRelation.second",
    "JointRelation.values", "Curve.derivative",
    "Curve.normal", "Curve.parameter", "check_holonomic",
    "LinearizedSystem.from_matrices",
    "LinearizedSystem.to_control", "local_error", "magnitude", "memory",
    "EngineBlock.bushings", "EngineBlock.check_places", "EngineBlock.checked_mounts",
    "EngineBlock.ground_frames", "EngineBlock.guide_axes",
    "EngineCrank.check_bores", "EngineCrank.check_places", "EngineDesign.check_speed",
    "EngineDesign.check_units", "TorsionalDamper.parts", "MeshBody.motion_at",
    "MeshRecovery.extremes", "MeshRecovery.fields", "MeshRecovery.positions",
    "MeshRecovery.stress", "CylinderTorque.at", "PressureMap.at", "PressureMap.slopes_at",
    "Recovery.extremes",
    "ReynoldsGrid.pattern_derivatives", "ReynoldsGrid.pattern_forces", "ReynoldsGrid.pattern_gap",
    "ReynoldsGrid.state", "ReynoldsGrid.write_elastic_loads", "ReynoldsGrid.write_loads",
    "SliderCrank.slider_rates",
    "MeshBody.check_tangent", "MeshBody.frame_matrices", "MeshBody.frames_of", "MeshBody.hold",
    "MeshBody.linearization", "MeshBody.load_inputs", "MeshBody.with_copied_loads",
    "MeshBody.nodal_of", "MeshBody.placed", "MeshBody.reference_state", "MeshBody.rigid_body",
    "MeshBody.rotations_of", "MeshBody.settle", "MeshBody.step_solver", "MeshBody.surface",
    "nodal_error",
    "momenta", "motion", "nodal", "quantities", "relative", "slopes", "stored_energy",
    "summary_lines", "summary_row", "acting_frames", "inputs", "placed_in", "surface_power",
    "record",
    "contact_states", "JointSpring.evaluate", "JointStop.evaluate", "JointFriction.evaluate",
    "Bushing.value", "GearPair.value", "PairLoad.value", "TabulatedBearing.value",
    "JointLoad.evaluate", "origin_distance", "PatternLoad.frame_derivatives", "check_no_states",
    "OilSupply.extent", "OilSupply.nearest", "OilFilm.element", "OilFilm.rows", "OilSupply.covers",
    "pair_motion", "placed", "poses", "PressureTable.at", "PressureTable.slope_at",
    "Recovery.ingredients", "repeat", "rescaled", "residual", "restore", "ReynoldsGrid.gap",
    "ReynoldsGrid.gradients", "ReynoldsGrid.load_derivatives", "ReynoldsGrid.load_gradients",
    "ReynoldsGrid.loads", "ReynoldsGrid.solve", "ReynoldsGrid.supply_flow", "rows_of", "size",
    "smallest_gap", "steady_rates", "step", "tangent", "tension", "undone_on_error", "with_files",
    "with_misfit", "with_points", "wrench", "wrenches",
    "CableBody.line",
}  # fmt: skip
"""Methods that the solvers call in their loops, without checks of their arguments."""


INHERITED = {"Solution"}
"""Classes whose methods are called for them and not again for public classes derived from them."""


def _is_inherited(kind: Any, name: str, classes: dict[str, Any]) -> bool:
    """Return whether a method is that of another public class, which is called there."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), kind)
    return owner is not kind and any(classes[label] is owner for label in INHERITED)


def public_names() -> set[str]:
    """Return the names of the public functions, classes, and methods that users call.

    A name that two modules export with different meanings carries its module.
    """
    names: dict[int, str] = {}
    objects: dict[str, object] = {}
    modules: dict[str, ModuleType] = {"": mbd}
    for folder in pkgutil.walk_packages(mbd.__path__, "dolfinx_mbd."):
        if folder.ispkg:
            module = importlib.import_module(folder.name)
            if "__all__" in vars(module) and folder.name != "dolfinx_mbd.io.cli":
                modules[f"{folder.name.removeprefix('dolfinx_mbd.')}."] = module
    for prefix, module in modules.items():
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or id(value) in names:
                continue
            if not getattr(value, "__module__", "").startswith("dolfinx_mbd"):
                continue
            label = name if name not in objects else f"{prefix}{name}"
            objects[name] = value
            names[id(value)] = label
    classes = {
        label: objects[label] for label in names.values() if inspect.isclass(objects.get(label))
    }
    methods = {
        f"{label}.{name}"
        for label, kind in classes.items()
        for name, member in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_")
        and callable(member)  # (a cached property is a routine for inspect)
        and not {name, f"{label}.{name}"} & INTERNAL
        and not _is_inherited(kind, name, classes)
        and getattr(member, "__module__", "").startswith("dolfinx_mbd")
    }
    methods |= {"Solution.energies", "Solution.momenta"}  # (bodies have internal ones)
    protocols = {label for label, kind in classes.items() if getattr(kind, "_is_protocol", False)}
    of_protocols = {m for m in methods if m.partition(".")[0] in protocols}
    return (set(names.values()) | methods) - RECORDS - protocols - of_protocols
