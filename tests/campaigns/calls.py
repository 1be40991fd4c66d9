"""A valid call of every public function, class and method that users call.

The campaign starts from these calls and replaces one argument at a time. The table maps a name to
a function of a `Bench`, which returns what is called and its arguments by keyword. Those of a
parameter ``*names`` are a tuple with the key ``"*names"``. A test compares the names with what the
package exports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import ufl
from dolfinx import mesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import body, export, forms, geometry, imports, plotting
from dolfinx_mbd.io.export.compiled import export_compiled_fmu
from dolfinx_mbd.io.export.compiled.lowering import steps_code
from tests.campaigns.bench import Bench, mesh_builder
from tests.campaigns.calls_bearings import BEARINGS
from tests.campaigns.calls_cycles import CYCLES
from tests.campaigns.calls_engines import ENGINES
from tests.campaigns.calls_fatigue import FATIGUE
from tests.campaigns.calls_mechanisms import MECHANISMS
from tests.campaigns.calls_strength import STRENGTH
from tests.campaigns.cases import UserFaultError

CALCULIX = Path(__file__).parents[1] / "io" / "imports" / "calculix"
UNIVERSAL = CALCULIX.parent / "universal"

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]
STEEL = mbd.STEEL


def _square(state: Any) -> tuple[float, dict[str, float]]:
    """Return the square of a parameter and its derivative, as a function of the user."""
    if not isinstance(state, Mapping):
        raise UserFaultError("raised by a function of the user")
    return state["a"] ** 2, {"a": 2 * state["a"]}


def _compiled_fmu(b: Bench) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the call after the compilation, so that no case takes so long."""
    steps_code()
    simulator = mbd.Simulator(b.pendulum, dt=1e-3, outputs=["pivot.rotation"])
    arguments = {"simulator": simulator, "path": b.folder / "one.fmu", "binary": False}
    return export_compiled_fmu, {**arguments, "overwrite": True}


MESHES: dict[str, Call] = {
    "BeamModel": lambda b: (
        mbd.BeamModel,
        {"mesh": b.line, "section": mbd.forms.Section.circle(0.01), "material": STEEL},
    ),
    "BeamModel.gather": lambda b: (
        b.beam.gather,
        {"vectors": np.zeros((6 * len(b.beam.positions), 1))},
    ),
    "BeamModel.node": lambda b: (b.beam.node, {"place": 0.5}),
    "BeamReduction.displacement": lambda b: (b.beam_reduction.displacement, {"eta": [1e-6] * 8}),
    "BeamReduction.write": lambda b: (
        b.beam_reduction.write,
        {"path": "beam.bp", "history": b.history},
    ),
    "ElasticModel": lambda b: (
        mbd.ElasticModel,
        {"mesh": b.box, "material": STEEL, "degree": 1},
    ),
    "InterfaceSpec.each": lambda b: (
        mbd.InterfaceSpec.each,
        {"interfaces": ["left", "right"], "kind": "averaged"},
    ),
    "ReductionOptions": lambda b: (
        mbd.ReductionOptions,
        {"effective_mass": 0.9, "loads": {"gas": mbd.reduction.pressure(b.box, "left")}},
    ),
    "TransientOptions": lambda b: (
        mbd.structures.TransientOptions,
        {"points": {"tip": (0.137, 0.0, 0.0)}, "fields_at": [0.0]},
    ),
    "InterfaceSpec": lambda b: (mbd.InterfaceSpec, {"facets": "left", "kind": "rigid"}),
    "ModalAnalysis.summary": lambda b: (b.modal.summary, {}),
    "PrescribedMotion": lambda b: (
        mbd.structures.PrescribedMotion,
        {"omega": (0.0, 0.0, 1.0), "wrenches": {"left": [0.0] * 6}},
    ),
    "PrescribedMotion.from_law": lambda b: (
        mbd.structures.PrescribedMotion.from_law,
        {"law": mbd.constant_speed(3.0), "axis": (0.0, 0, 1), "point": (0.1, 0, 0)},
    ),
    "PrescribedMotion.from_run": lambda b: (
        mbd.structures.PrescribedMotion.from_run,
        {"run": b.run, "body": "rod"},
    ),
    "PrescribedMotion.from_history": lambda b: (
        mbd.structures.PrescribedMotion.from_history,
        {"history": b.history},
    ),
    "Recovery": lambda b: (mbd.durability.Recovery, {"reduction": b.reduction, "stress": STEEL}),
    "Recovery.at": lambda b: (
        b.recovery.at,
        {"what": "von Mises", "history": b.history, "points": [[0.05, 0.01, 0.006]]},
    ),
    "Recovery.positions": lambda b: (b.recovery.positions, {}),
    "Recovery.stress_components": lambda b: (b.recovery.stress_components, {"u": b.ufl.f}),
    "Recovery.write": lambda b: (b.recovery.write, {"path": "field.bp", "history": b.history}),
    "Reducer": lambda b: (
        mbd.reduction.Reducer,
        {"model": b.box, "material": STEEL, "interfaces": ["left"]},
    ),
    "Reducer.close": lambda b: (
        mbd.reduction.Reducer(mbd.ElasticModel(b.box, STEEL, degree=1), interfaces=["left"]).close,
        {},
    ),
    "Reducer.reduce": lambda b: (
        mbd.reduction.Reducer(mbd.ElasticModel(b.box, STEEL, degree=1), interfaces=["left"]).reduce,
        {"num_modes": 2, "points": {"tip": (0.137, 0.0, 0.0)}},
    ),
    "Reduction.displacement": lambda b: (b.reduction.displacement, {"eta": [1e-6] * 8}),
    "Reduction.save": lambda b: (b.reduction.save, {"path": "saved.npz"}),
    "skin_values": lambda b: (mbd.durability.skin_values, {"function": b.ufl.s}),
    "static_errors": lambda b: (mbd.body.static_errors, {"body": b.reduction.body}),
    "Reduction.write": lambda b: (b.reduction.write, {"path": "run.bp", "history": b.history}),
    "Reduction.write_modes": lambda b: (b.reduction.write_modes, {"path": "modes.bp"}),
    "RotatingModes.functions": lambda b: (
        mbd.structures.rotating_modes(b.structure, 10.0, num_modes=2).functions,
        {"k": 1},
    ),
    "RotatingModes.summary": lambda b: (
        mbd.structures.rotating_modes(b.structure, 10.0, num_modes=2).summary,
        {},
    ),
    "Campbell.summary": lambda b: (
        mbd.structures.campbell(b.structure, [1.0], num_modes=2).summary, {},
    ),
    "RotatingStructure.factorize": lambda b: (b.structure.factorize, {"speed": 10.0}),
    "RotatingStructure.speed_matrices": lambda b: (
        b.structure.speed_matrices,
        {"stiffening": True},
    ),
    "RotatingStructure.velocity_matrix": lambda b: (b.structure.velocity_matrix, {"speed": 10.0}),
    "SpinningEquilibrium.modes": lambda b: (
        mbd.structures.spinning_equilibrium(
            b.structure, lambda u: forms.saint_venant_kirchhoff(u, STEEL), 10.0
        ).modes,
        {"num_modes": 2},
    ),
    "TaggedMesh": lambda b: (
        mbd.fem.TaggedMesh,
        {
            "mesh": b.box.mesh, "cell_tags": b.box.cell_tags, "facet_tags": b.box.facet_tags,
            "groups": {"left": (2, 1)},
        },
    ),
    "TaggedMesh.cells": lambda b: (b.box.cells, {"name": "all"}),
    "TaggedMesh.facets": lambda b: (b.box.facets, {"name": "left"}),
    "Transient.displacement": lambda b: (b.transient.displacement, {"k": 0}),
    "Transient.write": lambda b: (b.transient.write, {"path": "transient.bp"}),
    "Viscous": lambda b: (mbd.reduction.Viscous, {"viscosity": 1e3}),
    "apply_inertia": lambda b: (
        mbd.fem.apply_inertia,
        {"problem": b.structure.problem, "W": np.eye(3), "X": np.asarray(b.structure.displacement)},
    ),
    "beam_forces": lambda b: (mbd.structures.beam_forces, {"model": b.beam, "q": b.ufl.q}),
    "beam_modes": lambda b: (mbd.structures.beam_modes, {"model": b.beam, "num_modes": 2}),
    "beam_statics": lambda b: (
        mbd.structures.beam_statics,
        {"model": b.beam, "held": [0.0], "wrenches": {1.0: [0, 0, 1.0, 0, 0, 0]}},
    ),
    "body_force": lambda b: (mbd.reduction.body_force, {"direction": (0, 0, -9.81)}),
    "build_mesh": lambda b: (mbd.build_mesh, {"builder": mesh_builder, "comm": b.comm}),
    "campbell": lambda b: (
        mbd.structures.campbell,
        {"structure": b.structure, "speeds": [0.0, 10.0], "num_modes": 2},
    ),
    "critical_speed": lambda b: (
        mbd.structures.critical_speed,
        {"structure": b.structure, "upper": 10.0, "steps": 2, "num_modes": 2},
    ),
    "frame_load": lambda b: (
        mbd.fem.frame_load,
        {"problem": b.structure.problem, "gravity": (0, 0, -9.81)},
    ),
    "inertia_matrix": lambda b: (
        mbd.fem.inertia_matrix,
        {"problem": b.structure.problem, "W": np.eye(3)},
    ),
    "modal_analysis": lambda b: (
        mbd.modal_analysis,
        {"model": b.box, "material": STEEL, "num_modes": 2, "held": ["left"]},
    ),
    "modal_transient": lambda b: (
        mbd.structures.modal_transient,
        {
            "body": b.reduction.body,
            "motion": mbd.structures.PrescribedMotion(gravity=(0, 0, -9.81)),
            "t_end": 1e-4, "dt": 1e-5,
        },
    ),
    "most_stressed": lambda b: (
        mbd.most_stressed,
        {"source": b.recovery, "history": b.history, "count": 2},
    ),
    "pick": lambda b: (mbd.fem.pick, {"mesh": b.box, "near": (0.0, 0.01, 0.006)}),
    "smooth_faces": lambda b: (mbd.fem.smooth_faces, {"mesh": b.box}),
    "pressure": lambda b: (mbd.reduction.pressure, {"mesh": b.box, "group": "left"}),
    "quasi_static_deformation": lambda b: (
        mbd.structures.quasi_static_deformation,
        {
            "body": b.reduction.body,
            "motion": mbd.structures.PrescribedMotion(gravity=(0, 0, -9.81)),
            "times": [0.0, 0.1],
        },
    ),
    "read_mesh": lambda b: (mbd.read_mesh, {"path": b.file("box.msh"), "comm": b.comm}),
    "reduce": lambda b: (
        mbd.reduce,
        {
            "model": b.box, "material": STEEL, "interfaces": ["left"], "num_modes": 2,
            "points": {"tip": (0.137, 0.0, 0.0)},
        },
    ),
    "reduce_beam": lambda b: (
        mbd.reduce_beam,
        {"model": b.beam, "interfaces": {"a": 0.0}, "num_modes": 2},
    ),
    "rotating_beam": lambda b: (mbd.structures.rotating_beam, {"model": b.beam, "held": [0.0]}),
    "rotating_modes": lambda b: (
        mbd.structures.rotating_modes,
        {"structure": b.structure, "speed": 10.0, "num_modes": 2},
    ),
    "Parameter": lambda b: (mbd.Parameter, {"name": "E", "quantity": "young"}),
    "first_order_deviation": lambda b: (
        mbd.design.first_order_deviation,
        {"derivatives": {"a": [3.0]}, "covariance": {"a": 1.0}},
    ),
    "identify": lambda b: (
        mbd.design.identify,
        {
            "model": lambda p: ([p["a"], 2 * p["a"]], {"a": [1.0, 2.0]}),
            "measured": [1.0, 2.1],
            "start": {"a": 0.9},
            "bounds": {"a": (0.5, 2.0)},
            "deviations": [0.1, 0.1],
        },
    ),
    "Limits": lambda b: (
        mbd.design.Limits, {"quantity": lambda p: p["a"], "low": 0.5, "high": 2.0},
    ),
    "minimize": lambda b: (
        mbd.minimize,
        {
            "objective": _square,
            "start": {"a": 0.9},
            "constraints": {"b": mbd.design.Limits(_square, low=0.6)},
            "bounds": {"a": (0.5, 2.0)}, "method": "SLSQP",
            "scale": {"a": 1.0}, "step": 1e-3, "tolerance": 1e-4, "max_iterations": 20,
        },
    ),
    "ParametricBody": lambda b: (
        mbd.design.ParametricBody,
        {
            "model": mbd.ElasticModel(b.box, STEEL),
            "parameters": [mbd.Parameter("E", "young")], "tolerance": 1e-3, "min_quality": 0.05,
            "stress": True, "interfaces": ["left", "right"], "num_modes": 2,
        },
    ),
    "ParametricBody.at": lambda b: (b.parametric.at, {"values": {"E": 2.2e11}}),
    "ParametricBody.reduce": lambda b: (b.parametric.reduce, {"values": {"E": 2.2e11}}),
    "BodySensitivities.moved": lambda b: (b.sensitivities.moved, {"values": {"E": 2.2e11}}),
    "buckling_load": lambda b: (
        mbd.design.buckling_load,
        {"table": b.sensitivities, "ends": ("left", "right")},
    ),
    "mac": lambda b: (mbd.design.mac, {"first": [[1.0, 0.0]], "second": [[1.0, 1.0]]}),
    "ModalMatrices": lambda b: (
        mbd.design.ModalMatrices,
        {
            "stiffness": [[400.0]],
            "mass": [[1.0]],
            "rows": [[1.0]],
            "derivatives": {"k": ([[1.0]], [[0.0]], [[0.0]])},
        },
    ),
    "ModalTest": lambda b: (
        mbd.design.ModalTest,
        {
            "frequencies": [100.0],
            "shapes": [[1.0, 1.0]],
            "sensors": [("left", "y"), ("right", "z")],
            "frequency_deviations": [1.0],
            "shape_deviations": 0.1,
            "least_mac": 0.6,
        },
    ),
    "ModalTest.pair": lambda b: (
        mbd.design.ModalTest([100.0], [[1.0, 1.0]], [("left", "y"), ("right", "z")]).pair,
        {"frequencies": [90.0, 120.0], "shapes": [[0.0, 1.0], [1.0, 1.1]]},
    ),
    "ModalTest.matrices": lambda b: (
        mbd.design.ModalTest([100.0], [[1.0]], [("left", "y")]).matrices,
        {"table": b.sensitivities},
    ),
    "ModalTest.predict": lambda b: (
        mbd.design.ModalTest([100.0], [[1.0]], [("left", "y")]).predict,
        {"source": b.sensitivities},
    ),
    "extended_velocity": lambda b: (
        mbd.design.extended_velocity,
        {"mesh": b.box, "moved": {"right": (1.0, 0.0, 0.0)}, "fixed": ["left"]},
    ),
    "SectionParameter": lambda b: (
        mbd.design.SectionParameter,
        {"name": "r", "section": mbd.forms.Section.circle, "value": 0.01},
    ),
    "parametric_velocity": lambda b: (
        mbd.design.parametric_velocity,
        {"mesh": b.rod_mesh, "build": b.rod_of_length, "value": 0.137},
    ),
    "sensitivities": lambda b: (
        mbd.sensitivities,
        {"reduction": b.reduction, "parameters": [mbd.Parameter("E", "young")]},
    ),
    "BodySensitivities.at": lambda b: (b.sensitivities.at, {"values": {"E": 2.2e11}}),
    "BodySensitivities.error": lambda b: (b.sensitivities.error, {"values": {"E": 2.2e11}}),
    "rotating_structure": lambda b: (
        mbd.structures.rotating_structure,
        {"model": b.box, "material": STEEL, "held": ["left"]},
    ),
    "section_forces": lambda b: (
        mbd.durability.section_forces,
        {
            "source": b.recovery, "history": b.history, "point": (0.0685, 0.01, 0.006),
            "normal": (1.0, 0.0, 0.0),
        },
    ),
    "spinning_equilibrium": lambda b: (
        mbd.structures.spinning_equilibrium,
        {
            "structure": b.structure, "speed": 10.0,
            "energy": lambda u: forms.saint_venant_kirchhoff(u, STEEL),
        },
    ),
    "traction": lambda b: (
        mbd.reduction.traction,
        {"mesh": b.box, "group": "left", "direction": (1.0, 0.0, 0.0)},
    ),
    "transient": lambda b: (
        mbd.structures.transient,
        {
            "model": b.box, "material": STEEL, "motion": mbd.structures.PrescribedMotion(),
            "interfaces": ["left"], "held": ["left"], "t_end": 1e-5, "dt": 1e-5,
        },
    ),
    "with_damping": lambda b: (
        partial(mbd.reduction.with_damping, b.reduction),
        {"*dampings": (mbd.body.Rayleigh(1.0, 1e-6),)},
    ),
    "write_mesh": lambda b: (
        mbd.fem.write_mesh,
        {"builder": mesh_builder, "path": b.folder / "written.msh"},
    ),
    "ConnectingRod": lambda b: (mbd.ConnectingRod, {"length": 0.137}),
    "StepPart": lambda b: (mbd.StepPart, {"path": b.file("part.step")}),
    "step_surfaces": lambda b: (geometry.step_surfaces, {"path": b.file("part.step")}),
    "CableBody": lambda b: (
        mbd.CableBody,
        {
            "name": "rope", "cable": mbd.forms.Cable(1e4, 0.1, 0.2), "start": (0, 0, 0),
            "end": (1.0, 0, 0), "elements": 2, "frames": {"end": 1.0},
        },
    ),
    "CableBody.frame": lambda b: (_cable().frame, {"name": "end"}),
    "MeshBody": lambda b: (
        mbd.MeshBody,
        {"name": "pad", "model": _pad().model, "material": mbd.STEEL, "viscosity": 1e-4},
    ),
    "Pressure": lambda b: (mbd.structures.Pressure, {"facets": 2, "value": 1e5}),
    "Traction": lambda b: (mbd.structures.Traction, {"facets": 2, "value": (0, 1e3, 0)}),
    "BodyForce": lambda b: (mbd.structures.BodyForce, {"value": (0, 0, 1e3)}),
    "PointForce": lambda b: (
        mbd.structures.PointForce, {"point": (1.0, 0.1, 0.1), "value": (0, 0, 1.0)},
    ),
    "vibration_modes": lambda b: (mbd.structures.vibration_modes, _clamped_pad()),
    "MeshBody.frame": lambda b: (_pad().frame, {"name": "left"}),
    "MeshMotion.position": lambda b: (_pad_motion().position, {"points": [(0.5, 0.1, 0.1)]}),
    "MeshMotion.function": lambda b: (_pad_motion().function, {"instant": 1}),
}  # fmt: skip


@cache
def _pad() -> mbd.MeshBody:
    """Return a mesh body."""
    box = mesh.create_box(
        MPI.COMM_WORLD, [np.zeros(3), np.array([1, 0.2, 0.2])], [4, 1, 1], mesh.CellType.hexahedron
    )
    end = mesh.locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    left = mbd.InterfaceSpec(end, point=(0, 0.1, 0.1), axes=np.eye(3))
    return mbd.MeshBody("pad", box, {"left": left}, material=mbd.STEEL)


@cache
def _clamped_pad() -> dict[str, Any]:
    """Return a mechanism with a clamped mesh body, and its equilibrium."""
    ground = mbd.Ground({"wall": mbd.Frame((0, 0.1, 0.1))})
    clamp = mbd.fixed("clamp", ground.frame("wall"), _pad().frame("left"))
    system = mbd.System([ground, _pad()], [clamp])
    return {"system": system, "state": mbd.equilibrium(system), "num_modes": 2}


@cache
def _pad_motion() -> Any:
    """Return the motion of a mesh body in two steps."""
    run = mbd.simulate(_clamped_pad()["system"], t_end=2e-3, dt=1e-3)
    return _pad().motion(run)


def _round_body() -> body.ReducedBody:
    return body.ReducedBody.from_arrays(
        total_mass=2.0,
        first_moments=np.diag([0.0, 1.0, 1.0]),
        second_moments=np.diag([0.1, 1, 1])[:, :, None, None] * np.diag([0.2, 0.4, 0.4]),
        stiffness=np.diag([4.00e6, 4.02e6]),
    )


def _cable() -> mbd.CableBody:
    return mbd.CableBody(
        "rope", mbd.forms.Cable(1e4, 0.1, 0.2), (0, 0, 0), (1.0, 0, 0), 2, frames={"end": 1.0}
    )


def _beam_form(name: str, *fields: str, **arguments: Any) -> Call:
    """Return a call of a form of `Beam` on the line."""

    def call(b: Bench) -> tuple[Callable[..., Any], dict[str, Any]]:
        known = {"u": b.ufl.p, "v": b.ufl.w, "q": b.ufl.q, "q0": b.ufl.q}
        beam = forms.Beam(mbd.forms.Section.circle(0.01), STEEL)
        return getattr(beam, name), {n: known[n] for n in fields} | arguments

    return call


def _cable_form(name: str, *fields: str, **arguments: Any) -> Call:
    """Return a call of a form of `Cable` on the line."""

    def call(b: Bench) -> tuple[Callable[..., Any], dict[str, Any]]:
        known = {"q": b.ufl.q, "v": b.ufl.q, "w": b.ufl.w}
        return getattr(mbd.forms.Cable(1e4, 0.1, 0.2, 0.01), name), {
            n: known[n] for n in fields
        } | arguments

    return call


def _form(name: str, *fields: str, **arguments: Any) -> Call:
    """Return a call of a form of the floating frame on the box."""

    def call(b: Bench) -> tuple[Callable[..., Any], dict[str, Any]]:
        return getattr(forms, name), {n: getattr(b.ufl, n) for n in fields} | arguments

    return call


RHO, OMEGA = {"density": 7850.0}, {"omega": (0.0, 0.0, 1.0)}
FORMS: dict[str, Call] = {
    "reynolds": lambda b: (
        forms.reynolds,
        {"p": b.ufl.f[0], "v": b.ufl.v[0], "thickness": 1e-5, "viscosity": 0.01, "rate": 1e-3},
    ),
    "Beam": lambda b: (forms.Beam, {"section": mbd.forms.Section.circle(0.01), "material": STEEL}),
    "Beam.axial_force": _beam_form("axial_force", "q"),
    "Beam.centrifugal_load": _beam_form("centrifugal_load", "v", **OMEGA),
    "Beam.centrifugal_stiffness": _beam_form("centrifugal_stiffness", "u", "v", **OMEGA),
    "Beam.coriolis": _beam_form("coriolis", "u", "v", **OMEGA),
    "Beam.distributed_load": _beam_form("distributed_load", "v", force=(0, 0, 1.0)),
    "Beam.elastic_stiffness": _beam_form("elastic_stiffness", "u", "v"),
    "Beam.euler_load": _beam_form("euler_load", "v", alpha=(0, 0, 1.0)),
    "Beam.euler_stiffness": _beam_form("euler_stiffness", "u", "v", alpha=(0, 0, 1.0)),
    "Beam.field": _beam_form("field", "q"),
    "Beam.geometric_stiffness": _beam_form("geometric_stiffness", "u", "v", axial_force=1.0),
    "Beam.gravity_load": _beam_form("gravity_load", "v", gravity=(0, 0, -9.81)),
    "Beam.initial_stress_stiffness": _beam_form("initial_stress_stiffness", "u", "v", "q0"),
    "Beam.mass": _beam_form("mass", "u", "v"),
    "Beam.moment": _beam_form("moment", "q"),
    "Beam.over_section": _beam_form("over_section", fibre=lambda y, z: y * y),
    "Beam.shear_force": _beam_form("shear_force", "q"),
    "Beam.translational_load": _beam_form("translational_load", "v", acceleration=(0, 0, 1.0)),
    "BeamField": lambda b: (forms.BeamField, {"q": b.ufl.q}),
    "BeamField.at": lambda b: (forms.BeamField(b.ufl.q).at, {"y": 0.0, "z": 0.1}),
    "BeamField.derivative": lambda b: (forms.BeamField(b.ufl.q).derivative, {"f": b.ufl.q[0]}),
    "BeamField.in_body": lambda b: (
        forms.BeamField(b.ufl.q).in_body,
        {"vector": ufl.as_vector((0.0, 0.0, 1.0))},
    ),
    "BeamField.position_at": lambda b: (forms.BeamField(b.ufl.q).position_at, {"y": 0.0, "z": 0.1}),
    "BeamField.rate_at": lambda b: (forms.BeamField(b.ufl.q).rate_at, {"y": 0.0, "z": 0.1}),
    "BeamField.strain_at": lambda b: (forms.BeamField(b.ufl.q).strain_at, {"y": 0.0, "z": 0.1}),
    "Cable": lambda b: (
        mbd.forms.Cable,
        {"axial_stiffness": 1e4, "bending_stiffness": 0.1, "linear_density": 0.2},
    ),
    "Cable.axial_force": _cable_form("axial_force", "q"),
    "Cable.damping_forces": _cable_form("damping_forces", "q", "v", "w"),
    "Cable.dissipation": _cable_form("dissipation", "q", "v"),
    "Cable.elastic_energy": _cable_form("elastic_energy", "q"),
    "Cable.elastic_forces": _cable_form("elastic_forces", "q", "w"),
    "Cable.from_section": lambda b: (
        mbd.forms.Cable.from_section,
        {"section": mbd.forms.Section.circle(0.01), "material": STEEL},
    ),
    "Cable.gravity_load": _cable_form("gravity_load", "w", gravity=(0, 0, -9.81)),
    "Cable.kinetic_energy": _cable_form("kinetic_energy", "v"),
    "Cable.mass": _cable_form("mass", "v", "w"),
    "CableField": lambda b: (forms.CableField, {"q": b.ufl.q}),
    "GradedMaterial": lambda b: (
        mbd.forms.GradedMaterial,
        {"young": 2e11 * (1 + b.ufl.x[0]), "poisson": 0.3, "density": 7850.0},
    ),
    "Material": lambda b: (
        mbd.Material,
        {"young": 2.1e11, "poisson": 0.3, "density": 7850.0, "thermal_expansion": 1.2e-5},
    ),
    "Orthotropic": lambda b: (
        mbd.forms.Orthotropic,
        {
            "young": (4e10, 1e10, 1e10), "poisson": (0.2, 0.2, 0.3), "shear": (3e9, 3e9, 3e9),
            "density": 1800.0,
        },
    ),
    "Orthotropic.matrix": lambda b: (_ply().matrix, {}),
    "Orthotropic.normal_row": lambda b: (_ply().normal_row, {}),
    "Orthotropic.thermal_matrix": lambda b: (_ply().thermal_matrix, {}),
    "Section": lambda b: (
        mbd.forms.Section,
        {"area": 1e-4, "Iyy": 1e-9, "Izz": 1e-9, "torsion": 2e-9},
    ),
    "Section.circle": lambda b: (mbd.forms.Section.circle, {"radius": 0.01}),
    "Section.rectangle": lambda b: (mbd.forms.Section.rectangle, {"width": 0.01, "height": 0.02}),
    "Section.tube": lambda b: (mbd.forms.Section.tube, {"radius": 0.01, "thickness": 0.001}),
    "Temperature": lambda b: (mbd.forms.Temperature, {"rise": 10.0}),
    "axial_force_of_motion": lambda b: (
        forms.axial_force_of_motion,
        {"x": 0.1, "length": 1.0, "mass_per_length": 0.8, "omega": (0, 0, 10.0)},
    ),
    "centrifugal_load": _form("centrifugal_load", "v", **RHO, **OMEGA),
    "centrifugal_stiffness": _form("centrifugal_stiffness", "u", "v", **RHO, **OMEGA),
    "coriolis": _form("coriolis", "u", "v", **RHO, **OMEGA),
    "cross": lambda b: (forms.cross, {"omega": (0, 0, 1.0), "u": b.ufl.u}),
    "elastic_stiffness": _form("elastic_stiffness", "u", "v", material=STEEL),
    "euler_load": _form("euler_load", "v", **RHO, alpha=(0, 0, 1.0)),
    "euler_stiffness": _form("euler_stiffness", "u", "v", **RHO, alpha=(0, 0, 1.0)),
    "geometric_stiffness": lambda b: (
        forms.geometric_stiffness,
        {"u": b.ufl.u, "v": b.ufl.v, "reference_stress": forms.stress(b.ufl.f, STEEL)},
    ),
    "gravity_load": _form("gravity_load", "v", **RHO, gravity=(0, 0, -9.81)),
    "linear_elastic": lambda b: (forms.linear_elastic, {"u": b.ufl.f, "material": STEEL}),
    "mass": _form("mass", "u", "v", **RHO),
    "material": lambda b: (mbd.forms.material, {"name": "steel"}),
    "neo_hookean": lambda b: (forms.neo_hookean, {"u": b.ufl.f, "material": STEEL}),
    "saint_venant_kirchhoff": lambda b: (
        forms.saint_venant_kirchhoff,
        {"u": b.ufl.f, "material": STEEL},
    ),
    "strain": _form("strain", "u"),
    "stress": _form("stress", "u", material=STEEL),
    "thermal_stress": lambda b: (
        forms.thermal_stress,
        {"rise": 10.0, "material": mbd.Material(2e11, 0.3, 7850.0, thermal_expansion=1e-5)},
    ),
    "traction_load": _form("traction_load", "v", traction=(0, 0, 1.0)),
    "translational_load": _form("translational_load", "v", **RHO, acceleration=(0, 0, 1.0)),
    "viscous_damping": _form("viscous_damping", "u", "v", viscosity=1e3),
}  # fmt: skip


def _ply() -> mbd.forms.Orthotropic:
    return mbd.forms.Orthotropic(
        (4e10, 1e10, 1e10), (0.2, 0.2, 0.3), (3e9, 3e9, 3e9), 1800.0, thermal_expansion=1e-5
    )


def _response(b: Bench) -> mbd.body.FrequencyResponse:
    return mbd.body.frequency_response(b.rod, [10.0, 20.0])


BODIES: dict[str, Call] = {
    "FrequencyResponse.between": lambda b: (
        _response(b).between,
        {"output": _response(b).outputs[0], "input": _response(b).inputs[0]},
    ),
    "FrequencyResponse.dynamic_stiffness": lambda b: (
        _response(b).dynamic_stiffness,
        {"*names": ("big_end",)},
    ),
    "FrequencyResponse.receptance": lambda b: (
        _response(b).receptance,
        {"*names": ("big_end",)},
    ),
    "Interface": lambda b: (
        body.Interface,
        {"name": "a", "kind": "rigid", "point": [0.0] * 3, "axes": np.eye(3),
         "motion": np.zeros((6, 2))},
    ),
    "LinearizedBody.poles": lambda b: (mbd.body.linearize_body(b.rod).poles, {}),
    # moment (3,) on the undeformed body, and its changes `moments` (2, 3) per elastic coordinate
    "LoadPattern": lambda b: (
        body.LoadPattern,
        {"name": "wind", "force": np.ones(3), "moment": np.zeros(3), "modes": np.zeros(2),
         "moments": np.zeros((2, 3))},
    ),
    "ModalDamping": lambda b: (mbd.ModalDamping, {"ratios": [0.01, 0.02]}),
    "ModalDamping.matrix": lambda b: (
        mbd.ModalDamping(0.01).matrix,
        {"mass": np.eye(2), "stiffness": np.eye(2)},
    ),
    "Mode": lambda b: (body.Mode, {"label": "first", "frequency": 10.0}),
    "Participation.most": lambda b: (body.participation(b.rod).most, {"share": 0.5}),
    "Rayleigh": lambda b: (mbd.body.Rayleigh, {"mass": 1.0, "stiffness": 1e-6}),
    "Rayleigh.from_ratios": lambda b: (
        mbd.body.Rayleigh.from_ratios,
        {"frequencies": [10.0, 100.0], "ratios": [0.01, 0.02]},
    ),
    "Rayleigh.matrix": lambda b: (
        mbd.body.Rayleigh(1.0, 1e-6).matrix,
        {"mass": np.eye(2), "stiffness": np.eye(2)},
    ),
    "Rayleigh.ratio": lambda b: (mbd.body.Rayleigh(1.0, 1e-6).ratio, {"frequency": 10.0}),
    "ReducedBody": lambda b: (
        mbd.ReducedBody,
        {
            "name": "rod", "total_mass": b.rod.total_mass, "first_moments": b.rod.first_moments,
            "second_moments": b.rod.second_moments, "mass": b.rod.mass,
            "stiffness": b.rod.stiffness, "damping": b.rod.damping,
            "interfaces": b.rod.interfaces, "modes": b.rod.modes, "skin": b.rod.skin,
        },
    ),
    "ReducedBody.from_arrays": lambda b: (
        mbd.ReducedBody.from_arrays,
        {
            "total_mass": b.rod.total_mass, "first_moments": b.rod.first_moments,
            "second_moments": b.rod.second_moments, "stiffness": b.rod.stiffness,
        },
    ),
    "ReducedBody.interface": lambda b: (b.rod.interface, {"name": "big_end"}),
    "ReducedBody.load": lambda b: (mbd.ReducedBody.load, {"path": b.file("body.npz")}),
    "ReducedBody.load_pattern": lambda b: (b.windy.reduced.load_pattern, {"name": "wind"}),
    "ReducedBody.gauge": lambda b: (b.rod.gauge, {"name": "g"}),
    "ReducedBody.point": lambda b: (b.rod.point, {"name": "middle"}),
    "ReducedBody.replace": lambda b: (b.rod.replace, {"name": "link", "total_mass": 2.0}),
    "ReducedBody.rigid": lambda b: (b.rod.rigid, {}),
    "ReducedBody.save": lambda b: (b.rod.save, {"path": b.folder / "saved.npz"}),
    "ReducedBody.selected": lambda b: (b.rod.selected, {"modes": [1, 3]}),
    "ReducedBody.summary": lambda b: (b.rod.summary, {}),
    "ReducedBody.transformed": lambda b: (b.rod.transformed, {"matrix": np.eye(b.rod.num_modes)}),
    "ReducedBody.truncated": lambda b: (b.rod.truncated, {"num_modes": 2}),
    "ReducedBody.with_damping": lambda b: (
        b.rod.with_damping,
        {"*dampings": (mbd.body.Rayleigh(1.0, 1e-6),)},
    ),
    "EffectiveMasses": lambda b: (
        body.EffectiveMasses,
        {"frequencies": [100.0, 200.0], "shares": np.full((2, 6), 0.3)},
    ),
    "Skin": lambda b: (
        body.Skin,
        {"points": b.rod.skin.points, "triangles": b.rod.skin.triangles,
         "modes": b.rod.skin.modes},
    ),
    "MaterialPoint": lambda b: (
        body.MaterialPoint,
        {"name": "p", "position": np.zeros(3), "modes": np.zeros((2, 3))},
    ),
    "Stiffening": lambda b: (
        body.Stiffening,
        {"spin": np.zeros((6, 2, 2)), "interfaces": np.zeros((2, 6, 2, 2))},
    ),
    "StrainGauge": lambda b: (
        body.StrainGauge,
        {
            "name": "g", "position": np.zeros(3), "normal": (0, 0, 1), "directions": np.eye(3),
            "length": 3e-3, "modes": np.ones((3, 8)),
        },
    ),
    "StrainGauge.history": lambda b: (_gauge().history, {"motion": b.history}),
    "StressModes": lambda b: (
        body.StressModes,
        {"points": np.zeros((2, 3)), "stress": np.zeros((6, 2, 8))},
    ),
    "StressModes.envelope": lambda b: (
        _stress(b).envelope,
        {"name": "von Mises", "history": b.history},
    ),
    "StressModes.peak": lambda b: (
        _stress(b).peak,
        {"name": "von Mises", "history": b.history},
    ),
    "StressModes.values": lambda b: (
        _stress(b).values,
        {"name": "von Mises", "history": b.history},
    ),
    "axisymmetric": lambda b: (
        body.axisymmetric,
        {"body": _round_body(), "axis": (1, 0, 0), "tolerance": 0.02},
    ),
    "compare": lambda b: (body.compare, {"first": b.rod, "second": b.rod}),
    "frequency_response": lambda b: (
        mbd.body.frequency_response,
        {"body": b.rod, "frequencies": [10.0, 20.0]},
    ),
    "half_power": lambda b: (
        mbd.body.half_power,
        {
            "frequencies": np.linspace(0.5, 1.5, 101),
            "values": 1 / np.abs(1 - np.linspace(0.5, 1.5, 101) ** 2 + 0.05j),
        },
    ),
    "linearize_body": lambda b: (mbd.body.linearize_body, {"body": b.rod}),
    "participation": lambda b: (body.participation, {"body": b.rod}),
    "export": lambda b: (
        export.export,
        {"body": b.reduction.body, "path": b.folder / "out", "format": "op4"},
    ),
    "export_compiled_fmu": _compiled_fmu,
    "Format.check": lambda b: (_format().check, {"body": b.rod}),
    "Format.losses": lambda b: (_format().losses, {"body": b.rod}),
    "Units": lambda b: (export.Units, {"name": "mm-t-s", "length": 1e-3, "mass": 1e3}),
    "FullMatrices": lambda b: (
        imports.FullMatrices,
        {"stiffness": b.matrices.stiffness, "mass": b.matrices.mass, "nodes": b.matrices.nodes},
    ),
    "FullMatrices.in_order": lambda b: (
        imports.FullMatrices.in_order,
        {
            "stiffness": b.matrices.stiffness, "mass": b.matrices.mass, "nodes": b.matrices.nodes,
            "dofs": np.arange(24).reshape(8, 3),
        },
    ),
    "FullMatrices.in_si": lambda b: (b.matrices.in_si, {"length": 1e-3}),
    "NodeInterface": lambda b: (imports.NodeInterface, {"nodes": [0, 1, 2]}),
    "ReducedMatrices": lambda b: (
        imports.ReducedMatrices,
        {"stiffness": b.element.stiffness, "mass": b.element.mass, "points": b.element.points},
    ),
    "ReducedMatrices.in_si": lambda b: (b.element.in_si, {"length": 1e-3}),
    "body_from_reduced": lambda b: (imports.body_from_reduced, {"element": b.element}),
    "read_ansys": lambda b: (
        imports.read_ansys,
        {"path": b.file("free.full"), "nodes": b.matrices.nodes},
    ),
    "read_calculix": lambda b: (imports.read_calculix, {"job": CALCULIX / "bar"}),
    "read_dmig": lambda b: (imports.read_dmig, {"path": b.file("matrix.pch")}),
    "read_matrices": lambda b: (
        imports.read_matrices,
        {
            "stiffness": b.file("K.mtx"), "mass": b.file("M.mtx"), "nodes": b.matrices.nodes,
        },
    ),
    "NodalModes": lambda b: (
        imports.NodalModes,
        {
            "labels": [1, 2], "positions": [(0, 0, 0), (1, 0, 0)], "frequencies": [25.0],
            "shapes": np.ones((1, 2, 3)),
        },
    ),
    "NodalModes.of_body": lambda b: (
        imports.NodalModes.of_body,
        {"body": b.rod, "points": [b.rod.interfaces[0].name], "num_modes": 2},
    ),
    "NodalModes.of_test": lambda b: (
        imports.NodalModes.of_test,
        {"test": _modal_test(), "points": {"a": (0, 0, 0), "b": (1, 0, 0)}},
    ),
    "NodalModes.test": lambda b: (_nodal_modes().test, {"modes": [0]}),
    "NodalModes.write": lambda b: (_nodal_modes().write, {"path": b.folder / "modes.unv"}),
    "read_op2": lambda b: (imports.read_op2, {"path": b.file("matrix.op2")}),
    "read_op4": lambda b: (imports.read_op4, {"path": b.file("matrix.op4")}),
    "read_universal": lambda b: (
        imports.read_universal,
        {"path": UNIVERSAL / "plate.unv", "unit": "mm"},
    ),
    "reduce_matrices": lambda b: (
        imports.reduce_matrices,
        {
            "matrices": b.matrices, "num_modes": 2,
            "interfaces": {"a": imports.NodeInterface([0, 1, 2, 3])},
        },
    ),
}  # fmt: skip


def _nodal_modes() -> imports.NodalModes:
    return imports.NodalModes([1], [(0.0, 0.0, 0.0)], [25.0], [[(0.0, 1.0, 0.0)]])


def _modal_test() -> mbd.design.ModalTest:
    return mbd.design.ModalTest([25.0], [[1.0, 2.0]], [("a", "x"), ("b", "x")])


def _gauge() -> body.StrainGauge:
    return body.StrainGauge("g", np.zeros(3), (0, 0, 1), np.eye(3)[:1], 3e-3, np.ones((1, 8)))


def _stress(b: Bench) -> body.StressModes:
    stress = 1e6 * np.arange(1.0, 97).reshape(6, 2, 8)
    return body.StressModes(np.array([[0.0, 0, 0], [1, 0, 0]]), stress)


def _format() -> export.Format:
    from dolfinx_mbd.io.export import FORMATS

    return FORMATS["op4"]


def _report() -> plotting.Report:
    """Return a report with one check."""
    report = plotting.Report("Crank")
    report.check("mass", 0.9, 0.8, 1.0, "kg")
    return report


def _picture() -> Any:
    return plotting.Picture(np.zeros((4, 4, 3), dtype=np.uint8))


PICTURES: dict[str, Call] = {
    "Player.save": lambda b: (plotting.player(b.rod).save, {"path": b.folder / "page.html"}),
    "player": lambda b: (plotting.player, {"source": b.crank, "path": b.folder / "rest.html"}),
    "write_gltf": lambda b: (
        plotting.write_gltf,
        {"run": b.run, "path": b.folder / "run.glb"},
    ),
    "Picture.save": lambda b: (_picture().save, {"path": b.folder / "picture.png"}),
    "animate": lambda b: (
        plotting.animate,
        {"solution": b.run, "path": b.folder / "run.gif", "frames": 2, "window": (80, 60)},
    ),
    "campbell_diagram": lambda b: (
        plotting.campbell_diagram,
        {"speeds": [0.0, 10.0], "frequencies": [[1.0, 2.0], [1.5, 3.0]]},
    ),
    "plot_body": lambda b: (
        plotting.plot_body,
        {"body": b.rod, "eta": [1e-3, 0.0, 0.0], "window": (80, 60)},
    ),
    "plot_energies": lambda b: (plotting.plot_energies, {"solution": b.run}),
    "plot_faces": lambda b: (
        plotting.plot_faces,
        {"faces": mbd.fem.smooth_faces(b.box), "window": (80, 60)},
    ),
    "plot_forces": lambda b: (plotting.plot_forces, {"solution": b.run, "elements": ["crank pin"]}),
    "plot_modes": lambda b: (
        plotting.plot_modes,
        {"body": b.rod, "modes": [1], "panel": (80, 60)},
    ),
    "plot_orbit": lambda b: (plotting.plot_orbit, {"solution": b.run, "body": "crank"}),
    "plot_polar_force": lambda b: (
        plotting.plot_polar_force,
        {"solution": b.run, "element": "crank pin"},
    ),
    "plot_response": lambda b: (
        plotting.plot_response,
        {"response": _response(b), "entries": [(_response(b).outputs[0], _response(b).inputs[0])]},
    ),
    "plot_skin": lambda b: (
        plotting.plot_skin,
        {"body": b.rod, "values": np.array([1e6, 2e6, 3e6]), "window": (80, 60)},
    ),
    "plot_spectrum": lambda b: (
        plotting.plot_spectrum,
        {"spectrum": mbd.spectrum(np.linspace(0, 1, 16), np.ones(16))},
    ),
    "plot_system": lambda b: (plotting.plot_system, {"source": b.crank, "window": (80, 60)}),
    "plot_work": lambda b: (plotting.plot_work, {"solution": b.swing, "element": "spring"}),
    "Report": lambda b: (plotting.Report, {"title": "Crank"}),
    "Report.add": lambda b: (_report().add, {"item": "a text", "caption": ""}),
    "Report.check": lambda b: (
        _report().check,
        {"name": "stroke", "value": 0.1, "low": 0.09, "high": 0.11, "unit": "m"},
    ),
    "Report.heading": lambda b: (_report().heading, {"text": "Results"}),
    "Report.save": lambda b: (_report().save, {"path": b.folder / "report.html"}),
    "Report.table": lambda b: (
        _report().table,
        {"head": ["part", "mass (kg)"], "rows": [["crank", 0.9]], "caption": "Masses"},
    ),
    "skin_displacement": lambda b: (
        plotting.skin_displacement,
        {"skin": b.rod.skin, "eta": [1e-3, 0.0, 0.0]},
    ),
    "skin_points": lambda b: (
        plotting.skin_points,
        {"skin": b.rod.skin, "eta": [1e-3, 0.0, 0.0]},
    ),
}


RECOVERY: dict[str, Call] = {
    "envelope": lambda b: (mbd.envelope, {"source": b.reduction, "history": b.history}),
    "GaugeSpec": lambda b: (
        mbd.durability.GaugeSpec,
        {"position": (0.1, 0.0, 0.0), "direction": (1, 0, 0), "length": 3e-3},
    ),
    "gauges": lambda b: (mbd.gauges, {"reduction": b.reduction, "gauges": {}}),
    "recover": lambda b: (mbd.recover, {"source": b.reduction, "history": b.history}),
    "skin_stress": lambda b: (mbd.durability.skin_stress, {"source": b.reduction}),
}

CALLS: dict[str, Call] = {
    **RECOVERY,
    **FATIGUE,
    **STRENGTH,
    **FORMS,
    **BODIES,
    **MECHANISMS,
    **BEARINGS,
    **CYCLES,
    **ENGINES,
    **MESHES,
    **PICTURES,
}
