"""The public callables of the package, and those that the campaign need not call."""

from __future__ import annotations

import inspect

import dolfinx_mbd as mbd

RECORDS = {
    "Cycles", "DamagedPlace", "FatigueResult", "FatigueTable", "SNLine",
    "AssemblyError", "BeamModes", "BodyDerivative", "BodyFileError", "BodyHistory",
    "BodySensitivities", "BodyState", "CableMotion", "Campbell", "CrankMotion", "Difference",
    "GaugeHistory",
    "BodySensitivities", "BodyState", "CableMotion",
    "BodySensitivities", "BodyState", "CableMotion",
    "Campbell", "CrankMotion",
    "AssemblyError", "BeamModes", "BodyFileError", "BodyHistory", "BodyState", "CableMotion",
    "Campbell", "CrankMotion", "GaugeHistory",
    "Comparison", "CriticalSpeed", "ElementHistory", "Energies", "EquilibriumError", "ExportReport",
    "FirstOrderInertiaWarning", "Format", "Impact", "FrameMotion", "FrequencyResponse", "HalfPower",
    "Identification", "Iterate", "ModalPairs", "Optimum",
    "InverseDynamics", "JointHistory", "KinematicError", "LinearizedBody", "LinearizedSystem",
    "MatrixError", "MatrixFileError", "ModalAnalysis", "ModalTransient", "Participation",
    "Reduction", "RotatingModes", "RotatingStructure", "RunFileError",
    "LinearSensitivities", "RunGradient", "RunSensitivities", "SpinningEquilibrium",
    "Spectrum", "SteadyError", "StepError", "StudyError", "Transient",
    "Animation", "BeamReduction", "FrameRef", "JointCoordinate", "PatternRef", "Picture", "Player",
    "Redundancy", "Solution", "State",
    "IdentifiedLoads", "LoadCases", "PowerSpectrum", "Strength", "Waterfall", "WeakPlace",
    "Redundancy", "Solution", "State", "BearingCoefficients", "FilmBearing", "ReynoldsGrid",
}  # fmt: skip
"""Results, references, errors and warnings: the package makes them and checks them in use."""

INTERNAL = {
    "begin", "derivatives", "destroy", "energies", "energy", "frame_bias", "CableBody.check",
    "frame_jacobians", "frame_velocities", "frame_velocity_tangents", "coordinates", "increment",
    "increment_tangent", "initial_coordinates", "local_error", "magnitude", "memory", "momenta",
    "placed", "poses", "rescaled", "residual", "restore", "size", "step", "tangent", "tension",
    "wrench", "wrenches", "FourStrokePressure.at", "FullMatrices.rows", "Recovery.ingredients",
    "with_files", "motion", "nodal", "rows_of",
    "Clearance.element", "Clearance.rows", "Contact.states", "ContactLaw.numbers",
    "ContactLaw.slopes", "GearPair.states", "GuideClearance.element", "GuideClearance.rows",
    "JointFriction.gaps", "JointSpring.gaps", "JointStop.gaps",
    "steady_rates", "with_misfit", "with_points", "after_jump", "initial_velocities", "advance",
    "undone_on_error", "PressureTable.at", "LinearizedSystem.to_control", "FatigueMaterial.law",
    "undone_on_error", "PressureTable.at", "LinearizedSystem.to_control",
    "film_loads", "pair_motion", "gaps", "ReynoldsGrid.gap", "ReynoldsGrid.solve",
    "ReynoldsGrid.loads", "ReynoldsGrid.gradients", "ReynoldsGrid.load_gradients",
    "ReynoldsGrid.load_derivatives", "ReynoldsGrid.supply_flow", "FilmBearing.motion_vector",
    "OilSupply.covers", "smallest_gap", "ElasticBearing.displacement", "OilFilm.element",
    "OilFilm.rows", "Asperities.energy", "BearingTable.at", "repeat",
    "FourStrokePressure.slope_at", "PressureTable.slope_at",
}  # fmt: skip
"""Methods that the solvers call in their loops, without checks of their arguments."""


def public_names() -> set[str]:
    """Return the names of the public functions, classes, and methods that users call.

    A name that two modules export with different meanings carries its module.
    """
    names: dict[int, str] = {}
    taken: dict[str, object] = {}
    folders = {name: getattr(mbd, name) for name in mbd.__all__}
    folders = {f"{name}.": value for name, value in folders.items() if inspect.ismodule(value)}
    modules = {"": mbd, **folders}
    for prefix, module in modules.items():
        if module is mbd.errors:
            continue
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or id(value) in names:
                continue
            if not getattr(value, "__module__", "").startswith("dolfinx_mbd"):
                continue
            label = name if name not in taken else f"{prefix}{name}"
            taken[name] = value
            names[id(value)] = label
    classes = {label: taken[label] for label in names.values() if inspect.isclass(taken.get(label))}
    methods = {
        f"{label}.{name}"
        for label, kind in classes.items()
        for name, member in inspect.getmembers(kind, inspect.isroutine)
        if not name.startswith("_")
        and callable(member)  # (a cached property is a routine for inspect)
        and not {name, f"{label}.{name}"} & INTERNAL
        and getattr(member, "__module__", "").startswith("dolfinx_mbd")
    }
    methods |= {"Solution.energies", "Solution.momenta"}  # (bodies have internal ones)
    protocols = {label for label, kind in classes.items() if getattr(kind, "_is_protocol", False)}
    of_protocols = {m for m in methods if m.partition(".")[0] in protocols}
    return (set(names.values()) | methods) - RECORDS - protocols - of_protocols
