"""Valid calls of the public functions and methods for mechanisms; see `calls`.

Each call takes the objects of a `Bench` b, for example the arguments `first` and `second` of a
joint (b.frames) or of a force element (b.ends).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.io import models
from dolfinx_mbd.kernels.contacts import PLANE
from dolfinx_mbd.mechanism.contact.elements import Surface
from tests.campaigns.bench import Bench, square

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]
CRANK = {"crank_radius": 0.04, "crank_mass": 1.0, "piston_mass": 0.2, "speed": 10.0}
TIMES = np.linspace(0.0, 1.0, 16)
_ANGLES = np.radians(np.arange(0.0, 721.0, 5.0))
_LAW = mbd.ContactLaw(1e8, damping=0.1)
_OUTPUTS: dict[str, Any] = {"angle": lambda run: run.joint("pivot").rotation}


def _joint(name: str) -> Call:
    """Return a call that makes a joint of some kind."""
    return lambda b: (getattr(mbd, name), {"name": "a", **b.frames})


def _parabola(u: float) -> tuple[float, float, float]:
    return u, u * u, 0.0


_PARABOLA = mbd.mechanism.Curve.of(_parabola, 0.0, 1.0, count=20)


def _rolling(b: Bench, body: str) -> dict[str, Any]:
    """Return the arguments of a joint of a rolling body."""
    frames = b.frames
    return {"name": "a", "plane": frames["first"], body: frames["second"], "radius": 0.1}


def _pull(motion: mbd.mechanism.PairMotion) -> tuple[Any, ...]:
    return -motion.displacement, -motion.omega, -motion.states


def _stored(motion: mbd.mechanism.PairMotion) -> float:
    return 0.5 * float(motion.displacement @ motion.displacement)


def _tip(b: Bench) -> dict[str, Any]:
    """Return the arguments of a load on the tip of the pendulum."""
    return {"name": "push", "frame": b.bob.frame("tip"), "value": (0.0, 1.0, 0.0)}


TABLE = {"speed": [0.0, 9.0], "stiffness": np.ones((2, 3, 3)), "damping": np.ones((2, 3, 3))}
ROSS = Path(__file__).parents[1] / "mechanism" / "ross"

MECHANISMS: dict[str, Call] = {
    "Adaptive": lambda b: (mbd.Adaptive, {"tolerance": 1e-5, "first": 1e-4}),
    "BearingTable": lambda b: (mbd.mechanism.BearingTable, TABLE),
    "BearingTable.matrices": lambda b: (
        mbd.mechanism.BearingTable(**TABLE).matrices, {"speed": 3.0},
    ),
    "BearingTable.read": lambda b: (
        mbd.mechanism.BearingTable.read,
        {"path": ROSS / "bearings.toml", "name": "drive end"},
    ),
    "Bushing": lambda b: (mbd.Bushing, {"name": "rubber", **b.ends, "stiffness": [1e3] * 6}),
    "Clearance": lambda b: (mbd.Clearance, {"radial": 1e-4, "law": _LAW, "radius": 0.01}),
    "Contact": lambda b: (
        mbd.mechanism.Contact,
        {"name": "touch", **b.ends, "law": _LAW, "surfaces": (Surface(PLANE),)},
    ),
    "ContactLaw": lambda b: (mbd.ContactLaw, {"stiffness": 1e8, "damping": 0.1}),
    "ContactLaw.force": lambda b: (_LAW.force, {"penetration": 1e-5, "rate": 0.1}),
    "ContactLaw.restitution": lambda b: (_LAW.restitution, {"speed": 0.5}),
    "GearPair": lambda b: (
        mbd.mechanism.GearPair,
        {"name": "mesh", **b.ends, "teeth": (20, 40), "module": 2e-3, "stiffness": 1e8},
    ),
    "GuideClearance": lambda b: (
        mbd.mechanism.GuideClearance,
        {"gap": 1e-4, "length": 0.1, "height": 0.05, "law": _LAW},
    ),
    "JointStop": lambda b: (
        mbd.mechanism.JointStop,
        {"name": "stop", "joint": "pivot", "law": _LAW, "lower": -1.0, "upper": 1.0},
    ),
    "bore_contact": lambda b: (
        mbd.mechanism.bore_contact,
        {"name": "pin", **b.ends, "clearance": 1e-4, "radius": 0.01, "law": _LAW},
    ),
    "contact_damping": lambda b: (
        mbd.mechanism.contact_damping, {"restitution": 0.8, "speed": 0.5},
    ),
    "guide_contact": lambda b: (
        mbd.mechanism.guide_contact,
        {"name": "g", **b.ends, "clearance": 1e-4, "length": 0.1, "height": 0.05, "law": _LAW},
    ),
    "hertz_stiffness": lambda b: (
        mbd.mechanism.hertz_stiffness,
        {"first_radius": 0.01, "second_radius": 0.02, "material": mbd.STEEL},
    ),
    "line_stiffness": lambda b: (
        mbd.mechanism.line_stiffness, {"length": 0.02, "material": mbd.STEEL},
    ),
    "plane_contact": lambda b: (
        mbd.mechanism.plane_contact,
        {"name": "floor", **b.ends, "radius": 0.01, "law": _LAW},
    ),
    "sphere_contact": lambda b: (
        mbd.mechanism.sphere_contact,
        {"name": "balls", **b.ends, "radii": (0.01, 0.02), "law": _LAW},
    ),
    "Driver": lambda b: (
        mbd.Driver,
        {"name": "motor", "joint": "pivot", "motion": mbd.constant_speed(1.0)},
    ),
    "Driver.at": lambda b: (b.driven.drivers[0].at, {"t": 0.1}),
    "FlexibleBody": lambda b: (
        mbd.FlexibleBody,
        {"name": "rod", "reduced": b.rod, "position": (0.0, 0, 0)},
    ),
    "FlexibleBody.frame": lambda b: (
        mbd.FlexibleBody("rod", b.rod).frame,
        {"name": "big_end"},
    ),
    "FlexibleBody.load_pattern": lambda b: (b.windy.load_pattern, {"name": "wind"}),
    "FlexibleBody.pattern": lambda b: (b.windy.pattern, {"name": "wind"}),
    "Frame": lambda b: (mbd.Frame, {"point": (0.0, 0.0, 1.0)}),
    "FrameLoad": lambda b: (mbd.mechanism.FrameLoad, _tip(b)),
    "GeneralizedAlpha": lambda b: (
        mbd.GeneralizedAlpha,
        {"alpha_m": 0.0, "alpha_f": 0.0, "beta": 0.25, "gamma": 0.5},
    ),
    "GeneralizedAlpha.conserving": lambda b: (mbd.GeneralizedAlpha.conserving, {}),
    "GeneralizedAlpha.from_spectral_radius": lambda b: (
        mbd.GeneralizedAlpha.from_spectral_radius,
        {"rho": 0.8},
    ),
    "GeneralizedAlpha.hht": lambda b: (mbd.GeneralizedAlpha.hht, {"alpha": 0.1}),
    "GeneralizedAlpha.newmark": lambda b: (mbd.GeneralizedAlpha.newmark, {"beta": 0.25}),
    "Ground": lambda b: (mbd.Ground, {"frames": {"o": mbd.Frame()}}),
    "Ground.frame": lambda b: (b.ground.frame, {"name": "o"}),
    "ImplicitEuler": lambda b: (mbd.dynamics.ImplicitEuler, {"system": b.pendulum}),
    "Joint": lambda b: (mbd.mechanism.Joint, {"name": "a", "kind": "revolute", **b.frames}),
    "Joint.free_motion": lambda b: (
        b.pendulum.joints[0].free_motion,
        {"motion": "rotation", "what": "spring"},
    ),
    "Joint.row_name": lambda b: (b.pendulum.joints[0].row_name, {"motion": 0}),
    "JointFriction": lambda b: (
        mbd.mechanism.JointFriction,
        {"name": "rub", "joint": "pivot", "limit": 0.1, "rate": 0.01},
    ),
    "JointLoad": lambda b: (
        mbd.JointLoad,
        {"name": "motor", "joint": "pivot", "motion": "rotation", "value": 1.0},
    ),
    "JointSpring": lambda b: (
        mbd.JointSpring,
        {"name": "spring", "joint": "pivot", "stiffness": 10.0, "damping": 0.1},
    ),
    "LinearizedSystem.mode": lambda b: (_linear(b).mode, {"body": "bob", "number": 1}),
    "LinearizedSystem.response": lambda b: (_plant(b).response, {"frequencies": [1.0, 2.0]}),
    "LinearizedSystem.state_space": lambda b: (_plant(b).state_space, {}),
    "LinearizedSystem.summary": lambda b: (_linear(b).summary, {}),
    "PairLoad": lambda b: (
        mbd.PairLoad,
        {"name": "magnet", **b.ends, "law": _pull, "states": [0.0], "potential": _stored},
    ),
    "PatternLoad": lambda b: (
        mbd.mechanism.PatternLoad,
        {"name": "gust", "pattern": b.windy.pattern("wind"), "value": 2.0},
    ),
    "RigidBody": lambda b: (
        mbd.RigidBody,
        {"name": "bob", "mass": 1.0, "inertia": [0.1] * 3, "frames": {"o": mbd.Frame()}},
    ),
    "RigidBody.frame": lambda b: (b.bob.frame, {"name": "tip"}),
    "RigidBody.box": lambda b: (
        mbd.RigidBody.box,
        {"name": "bob", "size": (0.1, 0.1, 0.1), "mass": 1.0},
    ),
    "RigidBody.cylinder": lambda b: (
        mbd.RigidBody.cylinder,
        {"name": "bob", "radius": 0.1, "length": 0.2, "density": 7850.0},
    ),
    "Shape": lambda b: (
        mbd.mechanism.Shape,
        {"points": np.eye(3), "triangles": np.array([[0, 1, 2]])},
    ),
    "BodyHistory.mean": lambda b: (b.run.body("rod").mean, {"key": "kinetic_energy"}),
    "ElementHistory.mean": lambda b: (b.run.element("main").mean, {"key": "force"}),
    "JointHistory.mean": lambda b: (b.run.joint("main").mean, {"key": "force.x"}),
    "Solution.body": lambda b: (b.run.body, {"name": "rod"}),
    "Solution.constraint_violation": lambda b: (b.run.constraint_violation, {}),
    "Solution.compare": lambda b: (b.run.compare, {"other": b.run, "names": ["main"]}),
    "Solution.element": lambda b: (b.run.element, {"name": "main", "axes": "first"}),
    "Solution.energies": lambda b: (b.run.energies, {}),
    "Solution.histories": lambda b: (b.run.histories, {}),
    "Solution.joint": lambda b: (b.run.joint, {"name": "main"}),
    "Solution.load": lambda b: (
        mbd.results.Solution.load,
        {"path": b.file("run.npz"), "system": b.crank},
    ),
    "Solution.momenta": lambda b: (b.run.momenta, {}),
    "Solution.names": lambda b: (b.run.names, {}),
    "Solution.projected": lambda b: (b.run.projected, {}),
    "Solution.save": lambda b: (b.run.save, {"path": b.folder / "saved_run.npz"}),
    "Solution.gauge": lambda b: (b.run.gauge, {"body": "rod", "name": "g"}),
    "Solution.sensor": lambda b: (
        b.run.sensor,
        {"body": "crank", "point": (0.0, 0.0, 0.0), "quantity": "velocity"},
    ),
    "Solution.state_for": lambda b: (b.run.state_for, {"system": b.crank}),
    "Solution.to_csv": lambda b: (b.run.to_csv, {"path": b.folder / "run.csv"}),
    "Solution.to_xarray": lambda b: (b.run.to_xarray, {"names": ["main"]}),
    "Simulator": lambda b: (
        mbd.Simulator,
        {"system": b.pendulum, "dt": 1e-3, "inputs": ["spring.damping"], "outputs": _OUTPUTS},
    ),
    "Simulator.reset": lambda b: (_simulator(b).reset, {"inputs": {"spring.damping": 0.2}}),
    "Simulator.save": lambda b: (_simulator(b).save, {}),
    "SpringDamper": lambda b: (
        mbd.SpringDamper,
        {"name": "spring", **b.ends, "stiffness": 1e3, "damping": 1.0},
    ),
    "Stepper": lambda b: (mbd.dynamics.Stepper, {"system": b.pendulum}),
    "System": lambda b: (
        mbd.System,
        {
            "bodies": [b.ground, b.bob], "joints": [mbd.revolute("pivot", **b.frames)],
            "drivers": [mbd.Driver("motor", "pivot", mbd.constant_speed(1.0))],
            "loads": [mbd.force(**_tip(b))],
        },
    ),
    "System.body": lambda b: (b.pendulum.body, {"name": "bob"}),
    "System.body_index": lambda b: (b.pendulum.body_index, {"name": "bob"}),
    "System.check_step": lambda b: (b.pendulum.check_step, {"t": 0.0, "dt": 1e-3}),
    "System.constraint_name": lambda b: (b.pendulum.constraint_name, {"row": 0}),
    "System.frame_index": lambda b: (b.pendulum.frame_index, {"frame": b.bob.frame("tip")}),
    "System.joint": lambda b: (b.pendulum.joint, {"name": "pivot"}),
    "System.joint_index": lambda b: (b.pendulum.joint_index, {"name": "pivot"}),
    "System.load_pattern": lambda b: (
        mbd.System([b.windy]).load_pattern,
        {"load": mbd.mechanism.PatternLoad("gust", b.windy.pattern("wind"), 2.0)},
    ),
    "System.row_name": lambda b: (b.pendulum.row_name, {"row": 0}),
    "TabulatedBearing": lambda b: (
        mbd.mechanism.TabulatedBearing,
        {"name": "film", **b.ends, "table": mbd.mechanism.BearingTable(**TABLE)},
    ),
    "System.summary": lambda b: (b.pendulum.summary, {}),
    "System.without_rows": lambda b: (b.pendulum.without_rows, {"rows": [0]}),
    "box_shape": lambda b: (mbd.mechanism.box_shape, {"size": (1.0, 2.0, 3.0)}),
    "consistent_state": lambda b: (mbd.dynamics.consistent_state, {"system": b.pendulum, "t": 0.0}),
    "constant_speed": lambda b: (mbd.constant_speed, {"speed": 10.0}),
    "cylinder_shape": lambda b: (mbd.mechanism.cylinder_shape, {"radius": 0.1, "length": 0.2}),
    "Curve": lambda b: (
        mbd.mechanism.Curve,
        {"points": [(k, k**2, 0.0) for k in range(7)], "parameters": np.arange(7.0)},
    ),
    "Curve.arc_coordinate": lambda b: (_PARABOLA.arc_coordinate, {"points": [(0.5, 0.2, 0.0)]}),
    "Curve.of": lambda b: (
        mbd.mechanism.Curve.of,
        {"function_of_parameter": _parabola, "start": 0.0, "end": 1.0, "count": 20},
    ),
    "Curve.point": lambda b: (_PARABOLA.point, {"u": 0.5}),
    "Curve.through": lambda b: (
        mbd.mechanism.Curve.through,
        {"points": [(k, k**2, 0.0) for k in range(7)], "closed": False},
    ),
    "constant_velocity": _joint("constant_velocity"),
    "cylindrical": _joint("cylindrical"),
    "differentiated": lambda b: (mbd.mechanism.differentiated, {"position": np.sin}),
    "distance": lambda b: (mbd.distance, {"name": "a", **b.ends, "length": 0.1}),
    "ExpressionMotion": lambda b: (models.ExpressionMotion, {"position": models.Formula("t")}),
    "Formula": lambda b: (
        models.Formula,
        {"text": "a*t", "variables": ("t",), "constants": {"a": 2.0}},
    ),
    "PairFormula": lambda b: (
        models.PairFormula,
        {
            "force": ("-k*e", "0", "0"),
            "moment": ("0", "0", "0"),
            "rates": {"e": "vx - k*e"},
            "constants": {"k": 2.0},
        },
    ),
    "StateFormula": lambda b: (
        models.StateFormula,
        {"value": "a*x", "rates": {"x": "1 - rate"}, "constants": {"a": 2.0}},
    ),
    "TableMotion": lambda b: (
        models.TableMotion,
        {"times": [0.0, 1.0], "positions": [0.0, 1.0], "rates": [1.0, 1.0]},
    ),
    "VectorFormula": lambda b: (models.VectorFormula, dict.fromkeys("xyz", models.Formula("t"))),
    "read_model": lambda b: (
        models.read_model,
        {"path": models.write_model(b.pendulum, b.folder / "model.yaml"), "parameters": {}},
    ),
    "schema": lambda b: (models.schema, {}),
    "write_model": lambda b: (
        models.write_model,
        {
            "system": b.pendulum,
            "path": b.folder / "model.yaml",
            "simulate": {"t_end": 0.1, "dt": 0.01},
            "times": [0.0, 1.0],
        },
    ),
    "equilibrium": lambda b: (mbd.equilibrium, {"system": b.pendulum}),
    "fixed": _joint("fixed"),
    "force": lambda b: (mbd.force, _tip(b)),
    "EngineDesign": lambda b: (
        mbd.mechanisms.EngineDesign,
        {"cylinders": 2, "firing_order": (1, 2), "throw_angles": (0.0, -2 * np.pi)},
    ),
    "FourStrokePressure": lambda b: (
        mbd.mechanisms.FourStrokePressure,
        {"bore": 0.07, "crank_radius": 0.04, "rod_length": 0.137},
    ),
    "PressureTable": lambda b: (
        mbd.mechanisms.PressureTable,
        {"angle": _ANGLES, "pressure": 2e5 + 1e5 * np.cos(_ANGLES / 2)},
    ),
    "PressureTable.read": lambda b: (mbd.mechanisms.PressureTable.read, {"path": _table(b)}),
    "SliderCrank": lambda b: (
        mbd.mechanisms.SliderCrank,
        {"crank_radius": 0.04, "rod_length": 0.137},
    ),
    "inline_engine": lambda b: (
        mbd.mechanisms.inline_engine,
        {"rod": b.rod, "design": mbd.mechanisms.EngineDesign(cylinders=2), "speed": 10.0},
    ),
    "integrated": lambda b: (mbd.mechanism.integrated, {"rate": np.sin}),
    "inverse_dynamics": lambda b: (
        mbd.analyses.inverse_dynamics,
        {"system": b.pendulum, "motion": b.motion, "actuators": ["pivot"]},
    ),
    "kinematic_analysis": lambda b: (
        mbd.analyses.kinematic_analysis,
        {"system": b.driven, "times": [0.0, 0.01]},
    ),
    "linear_torque": lambda b: (
        mbd.mechanisms.linear_torque,
        {"stall": 10.0, "no_load_speed": 100.0},
    ),
    "linear_sensitivities": lambda b: (
        mbd.design.linear_sensitivities,
        {"build": b.sprung, "values": {"k": 20.0}},
    ),
    "LinearSensitivities.mode": lambda b: (
        mbd.design.linear_sensitivities(b.sprung, {"k": 20.0}).mode,
        {"body": "bob", "number": 1},
    ),
    "LinearSensitivities.response": lambda b: (
        mbd.design.linear_sensitivities(
            b.sprung, {"k": 20.0}, inputs=["spring.stiffness"], outputs=_OUTPUTS
        ).response,
        {"frequencies": [1.0, 2.0]},
    ),
    "linearize": lambda b: (mbd.linearize, {"system": b.pendulum, "state": b.state}),
    "place": lambda b: (
        mbd.place,
        {"body": mbd.FlexibleBody("rod", b.rod), "by": "big_end", "at": (1.0, 0.0, 0.0)},
    ),
    "knife_edge": lambda b: (
        mbd.knife_edge,
        {"name": "a", "plane": b.frames["first"], "blade": b.frames["second"]},
    ),
    "planar": _joint("planar"),
    "point_on_curve": lambda b: (
        mbd.point_on_curve,
        {"name": "a", **b.frames, "curve": _PARABOLA},
    ),
    "point_on_line": _joint("point_on_line"),
    "point_on_plane": _joint("point_on_plane"),
    "prismatic": _joint("prismatic"),
    "quasi_static_motion": lambda b: (
        mbd.analyses.quasi_static_motion,
        {"system": b.pendulum, "times": [0.0, 0.1]},
    ),
    "redundancies": lambda b: (mbd.dynamics.redundancies, {"system": b.pendulum}),
    "resume": lambda b: (
        mbd.resume,
        {"path": b.file("checkpoint.npz").with_suffix(""), "system": b.crank},
    ),
    "rack_and_pinion": lambda b: (
        mbd.rack_and_pinion,
        {
            "name": "a",
            "rack": b.frames["first"],
            "pinion": b.frames["second"],
            "radius": 0.1,
            "offset": 0.0,
        },
    ),
    "revolute": _joint("revolute"),
    "rolling_ball": lambda b: (mbd.rolling_ball, _rolling(b, "ball")),
    "rolling_disc": lambda b: (mbd.rolling_disc, _rolling(b, "disc")),
    "screw": lambda b: (mbd.screw, {"name": "a", **b.frames, "pitch": 0.01}),
    "rigid_rod": lambda b: (mbd.mechanisms.rigid_rod, {"length": 0.3, "mass": 1.0}),
    "rod_length": lambda b: (mbd.mechanisms.rod_length, {"rod": b.rod}),
    "Functional": lambda b: (mbd.design.Functional, {"output": "bob.position.y", "kind": "mean"}),
    "Functional.of": lambda b: (
        mbd.design.Functional("pivot.rotation").of,
        {"run": mbd.simulate(b.pendulum, t_end=1e-3, dt=5e-4)},
    ),
    "run_gradient": lambda b: (
        mbd.design.run_gradient,
        {
            "build": b.sprung,
            "values": {"k": 20.0},
            "functional": mbd.design.Functional("pivot.rotation"),
            "t_end": 1e-3,
            "dt": 5e-4,
        },
    ),
    "run_sensitivities": lambda b: (
        mbd.run_sensitivities,
        {"build": b.sprung, "values": {"k": 20.0}, "t_end": 1e-3, "dt": 5e-4},
    ),
    "RunSensitivities.derivative": lambda b: (
        mbd.run_sensitivities(b.sprung, {"k": 20.0}, t_end=1e-3, dt=5e-4).derivative,
        {"output": lambda run: run.joint("pivot").rotation},
    ),
    "simulate": lambda b: (
        mbd.simulate,
        {"system": b.pendulum, "t_end": 1e-3, "dt": 5e-4},
    ),
    "slider_crank": lambda b: (mbd.mechanisms.slider_crank, {"rod": b.rod, **CRANK}),
    "spectrum": lambda b: (
        mbd.spectrum,
        {"time": TIMES, "signal": np.sin(20 * TIMES)},
    ),
    "spherical": _joint("spherical"),
    "sweep": lambda b: (mbd.sweep, {"run": square, "parameters": {"x": [1.0, 2.0]}, "workers": 1}),
    "torque": lambda b: (mbd.torque, _tip(b)),
    "universal": _joint("universal"),
}  # fmt: skip


def _linear(b: Bench) -> Any:
    return mbd.linearize(b.pendulum, b.state)


def _plant(b: Bench) -> Any:
    return mbd.linearize(b.pendulum, b.state, inputs=["spring.stiffness"], outputs=_OUTPUTS)


def _table(b: Bench) -> Path:
    path = b.folder / "gas.csv"
    rows = np.column_stack([np.degrees(_ANGLES), 2.0 + np.cos(_ANGLES / 2)])
    np.savetxt(path, rows, delimiter=",")
    return path


def _simulator(b: Bench) -> mbd.Simulator:
    return mbd.Simulator(b.pendulum, dt=1e-3, inputs=["spring.damping"])
