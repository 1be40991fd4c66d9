"""Arrays of a `Model` from a simulator, with an error for parts that have none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dolfinx_mbd.analyses.simulator import Simulator
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.step_control import FixedSteps
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.mechanism_steps import model as layout
from dolfinx_mbd.kernels.mechanism_steps.model import BUFFER_OF, Model
from dolfinx_mbd.mechanism.bodies import Ground
from dolfinx_mbd.mechanism.joints import ConstantSpeed, Driver
from dolfinx_mbd.mechanism.loads import FrameLoad, JointLoad
from dolfinx_mbd.mechanism.springs import JointSpring, SpringDamper

__all__ = ["model_of"]

_FIELDS: dict[type, tuple[str, ...]] = {
    JointLoad: ("value",),
    JointSpring: ("stiffness", "damping", "free"),
    FrameLoad: ("value",),
    SpringDamper: ("stiffness", "damping", "length"),
}
"""Kinds of loads that can be exported, with the names of the fields that contain their numbers."""

_GROUPS = ("driver", "joint", "frame", "pair")
"""Groups of numbers in the order of `Model.parameters`: drivers, and loads by their port."""

_JOINT_OUTPUTS = {
    "rotation": layout.ROTATION,
    "rotation_rate": layout.ROTATION_RATE,
    "displacement": layout.DISPLACEMENT,
    "displacement_rate": layout.DISPLACEMENT_RATE,
    "force": layout.MULTIPLIER,
    "moment": layout.MULTIPLIER,
}
"""Kinds of outputs by the quantity of a joint or driver."""

_STATE = {"q": layout.Q, "v": layout.V, "a": layout.A}
"""Kinds of outputs by the array of the state that contains the quantity of a body."""


def model_of(simulator: Simulator) -> Model:
    """Return the arrays of a simulator at its present state.

    Args:
        simulator: The simulator.

    Raises:
        InputError: The mechanism has parts, or the simulator has outputs, that cannot be exported
            (the message names all of them), or a driver rotates by half a turn or more in a step.
    """
    problems = [*_problems(simulator)]
    rows = []
    for name in simulator.outputs:
        try:
            rows.append(_output(simulator, name))
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("this mechanism cannot be exported as C code: " + "; ".join(problems))
    simulator.system.check_step(simulator.state.time, simulator.steps.dt)  # type: ignore[union-attr]
    eqs = simulator.stepper.assembler
    arrays = _system_arrays(eqs) | _load_arrays(simulator) | _state_arrays(simulator)
    arrays |= _step_arrays(simulator) | _scratch(eqs)
    arrays["group_turns"] = np.zeros_like(arrays["orientations"])
    arrays["reported"] = np.array(rows).reshape(-1, 3)
    arrays["outputs"] = np.array([*simulator.outputs.values()], dtype=float)
    return Model(**{name: _array(name, arrays[name]) for name in Model._fields})


def _array(name: str, value: Any) -> Any:
    """Return a copy of an array with the type of its buffer."""
    kind = np.int64 if BUFFER_OF[name] == "indices" else np.float64
    return np.array(value, dtype=kind, order="C")  # a copy


def _problems(simulator: Simulator) -> Iterator[str]:
    """Yield texts about the steps and the parts that cannot be exported."""
    s, stepper = simulator.system, simulator.stepper
    if not isinstance(simulator.steps, FixedSteps):
        yield "its steps are adaptive"
    if stepper.sparse or not stepper.reuse:
        yield "its matrices are sparse, or its steps do not share them"
    members = stepper.assembler.frames.bodies.members
    for k, body in enumerate(s.mechanical_bodies):
        if k not in members and not isinstance(body, Ground):
            yield f"body {body.name!r} ({type(body).__name__}) has no floating frame"
    for joint in s.joints:
        if joint.relation or joint.constraint is not None or joint.clearance is not None:
            yield f"joint {joint.name!r} ({joint.kind}) is a relation or has a clearance"
    if s.whole is not s:
        yield "redundant constraints were dropped"
    for driver in s.drivers:
        motion = driver.motion
        if driver.name not in simulator.inputs and not isinstance(motion, ConstantSpeed):
            yield f"driver {driver.name!r} has neither a constant speed nor is it an input"
    for load in s.loads:
        fields = _FIELDS.get(type(load))
        if fields is None:
            yield f"load {load.name!r} ({load.kind}) is of a kind that has no C code"
        elif getattr(load, "law", None) is not None or any(
            callable(getattr(load, field)) for field in fields
        ):
            yield f"load {load.name!r} is a function"
        elif s.state_bodies.get(load.name):
            yield f"load {load.name!r} has states"


def _system_arrays(eqs: Assembler) -> dict[str, Any]:
    """Return tables of bodies, frames and constraints."""
    s, at = eqs.system, eqs.frames
    driven = [s.driven_joints[k] for k in range(len(s.drivers))]
    drivers = [
        (len(s.joints) + k, int(driver.along != "rotation"), driven[k])
        for k, driver in enumerate(s.drivers)
    ]
    owner = np.full(s.num_constraints, -1)
    for k, (entry, displacement, _) in enumerate(drivers):
        if displacement:  # the rows of drivers of rotations need no angle
            owner[s.row_entry == entry] = k
    return {
        "table": at.bodies.table,
        "counts": at.bodies._counts,
        "first_v": at.bodies._first,
        "origins": at.bodies.origins,
        "data": at.bodies.data,
        "first": s.first,
        "second": s.second,
        "joint_first": at.joint_ends[0],
        "joint_second": at.joint_ends[1],
        "ends": at.entry_frames,
        "end_starts": at.columns.start[at.entry_frames],
        "widths": at.columns.width,
        "starts": at.columns.start,
        "rows_of": eqs.joints.motion_rows,
        "drivers": np.array(drivers).reshape(-1, 3),
        "row_drivers": owner,
        "gravity": s.gravity,
        "axes_signs": s.axes_signs,
        "misfit": s.misfit,
    }


def _load_arrays(simulator: Simulator) -> dict[str, Any]:
    """Return the loads and drivers, their numbers, and the places of the inputs."""
    s = simulator.system
    index, axis = s.frame_index, simulator.stepper.assembler.frames.axis
    joints: list[tuple[int, ...]] = []
    frames: list[tuple[int, ...]] = []
    springs: list[tuple[int, int]] = []
    numbers: dict[str, list[float]] = {group: [] for group in _GROUPS}
    places: dict[str, tuple[str, int]] = {}  # group of an input, and place in it
    for driver in s.drivers:
        places[driver.name] = "driver", len(numbers["driver"])
        numbers["driver"] += _driver_numbers(driver)
    load: Any
    for load in s.loads:
        group, spring = load.port, load.port == "joint" and _has_stiffness(load)
        if group == "joint":
            joint, motion = axis(load.loaded_coordinate)
            joints.append((layout.SPRING if spring else layout.CONSTANT, joint, motion))
        elif group == "frame":
            frame = index(load.frame)
            frames.append((frame, int(load.kind == "torque"), int(load.axes == "frame")))
        else:
            springs.append((index(load.first), index(load.second)))
        first = len(numbers[group]) + int(spring)  # a spring begins with an unused force
        for entry in load.inputs():
            place = entry.component
            if place is None:
                place = _FIELDS[type(load)].index(entry.field)
            places[entry.name] = group, first + place
        numbers[group] += _load_numbers(load)
    sizes = [len(numbers[group]) for group in _GROUPS]
    starts = dict(zip(_GROUPS, np.cumsum([0, *sizes]), strict=False))
    shapes = {"joint_loads": (joints, 3), "frame_loads": (frames, 3), "springs": (springs, 2)}
    tables = {key: np.array(rows).reshape(-1, width) for key, (rows, width) in shapes.items()}
    return tables | {
        "parameters": np.concatenate([*numbers.values()]),
        "places": [
            starts[group] + place for group, place in (places[name] for name in simulator.inputs)
        ],
    }


def _driver_numbers(driver: Driver) -> list[float]:
    """Return the angle, speed and offset of a driver; a driver that is an input has no speed."""
    motion = driver.motion
    offset = driver.offset or 0.0
    if isinstance(motion, ConstantSpeed):
        return [motion.angle, motion.speed, offset]
    return [driver.at(0.0)[0] - offset, 0.0, offset]


def _load_numbers(load: Any) -> list[float]:
    """Return the numbers of a load in the order of `Model.parameters`.

    A load on a joint has the force of a constant load, and the numbers of a spring; those of the
    other kind are zero.
    """
    fields = [getattr(load, field) for field in _FIELDS[type(load)]]
    values = np.concatenate([np.atleast_1d(0.0 if x is None else x) for x in fields])
    numbers = [float(x) for x in values]
    if load.port != "joint":
        return numbers
    return [0.0, *numbers] if _has_stiffness(load) else [*numbers, 0.0, 0.0, 0.0]


def _has_stiffness(load: Any) -> bool:
    """Return whether a load is a spring and not a constant load."""
    return "stiffness" in _FIELDS[type(load)]


def _state_arrays(simulator: Simulator) -> dict[str, Any]:
    """Return the state and the memory of the time integration."""
    stepper, s = simulator.stepper, simulator.system
    state = stepper.begin(simulator.state, simulator.steps.dt)  # type: ignore[union-attr]
    size = s.num_velocities + s.num_constraints
    earlier = state.memory.get("earlier", ())
    blank = np.zeros(s.num_velocities), np.zeros(s.num_constraints)
    # Accelerations and multipliers of the last two steps; zero before there are two steps
    a, lam = zip(*[*earlier, blank, blank][:2], strict=True)
    return {
        "now": [state.time],
        "q0": state.q,
        "v0": state.v,
        "a0": state.a,
        "lam0": state.lam,
        "angles0": state.angles,
        "algorithmic": state.memory["algorithmic"],
        "velocity": state.memory.get("velocity", state.v),
        "earlier_a": np.array(a),
        "earlier_lam": np.array(lam).reshape(2, -1),
        "flags": [len(earlier), "velocity" in state.memory, 0, 0],
        "lu": np.zeros((size, size)),
        "pivots": np.zeros(size),
        "noise": np.zeros(s.num_constraints),
    }


def _step_arrays(simulator: Simulator) -> dict[str, Any]:
    """Return what the steps and their tests of convergence need."""
    stepper, matrix = simulator.stepper, simulator.stepper.corrector.matrix
    measure, groups = stepper.corrector.measure, stepper.corrector.corotation.groups
    dt = simulator.steps.dt  # type: ignore[union-attr]
    numbers = [dt, stepper.tolerance, stepper.corrector.mass, measure._radius]
    return {
        "groups": measure._groups,
        "parts": measure._parts,
        "pairs": measure._pairs,
        "rotations": measure._rotations,
        "lengths": measure.lengths,
        "signs": measure._signs,
        "sizes": measure._size,
        "columns": matrix._columns,
        "rotating": groups,
        "orientations": np.zeros((len(groups), 3, 3)),
        "numbers": [*numbers, *stepper.formulas.parameters, stepper._smooth],
    }


def _scratch(eqs: Assembler) -> dict[str, Any]:
    """Return the arrays of the point of evaluation, with the poses of the ground."""
    s, at = eqs.system, eqs.frames
    nv, nc, entries = s.num_velocities, s.num_constraints, len(s.first)
    counts = at.bodies._counts
    copied = ("q", "v", "a", "lam", "angles", "rows", "scale", "values", "position", "rotation",
            "velocities", "wrenches")  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        "turns": (entries,),
        "spread": (entries, 6),
        "jacobians": at.jacobian_table.shape,
        "tangents": at.tangent_table.shape,
        "blocks": (3 * int((counts**2).sum()),),  # K, C, M of each body
        "K": (nv, nv),
        "C": (nv, nv),
        "M": (nv, nv),
        "B": (nc, nv),
        "carried": (len(counts), 3, 3),
        "right": (nv + nc,),
        "move": (nv,),
        "new": (nv,),
        "largest": (2,),
        "no_noise": (nc,),
        "samples": (nv + nc, 4),
    }
    arrays = {name: getattr(eqs, name).copy() for name in copied}
    arrays["velocities"][:] = 0.0  # those of the ground
    return arrays | {k: np.zeros(shape) for k, shape in shapes.items()} | {"offsets": s.misfit}


def _output(simulator: Simulator, name: str) -> tuple[int, int, int]:
    """Return the kind, index and component of an output."""
    s, unknown_output = simulator.system, InputError(f"the output {name!r} has no C code")
    if name in simulator._outputs.functions:
        raise InputError(f"the output {name!r} is a function; use a name such as 'pin.rotation'")
    parts: list[Any] = [*s.joints, *s.drivers]
    labels = [*(part.name for part in parts), *(body.name for body in s.mechanical_bodies)]
    owners = [label for label in labels if name.startswith(f"{label}.")]
    if not owners:
        raise unknown_output
    owner = max(owners, key=len)
    key, _, letter = name[len(owner) + 1 :].partition(".")
    entry = labels.index(owner)
    if entry >= len(parts):
        return _body_output(simulator, owner, key, letter, unknown_output)
    component = "xyz".find(letter) if letter else 0
    if key not in _JOINT_OUTPUTS or component < 0:
        raise unknown_output
    kind = _JOINT_OUTPUTS[key]
    if kind == layout.MULTIPLIER:
        motion = component + (3 if key == "moment" else 0)
        rows = np.flatnonzero((s.row_entry == entry) & (s.row_motion == motion))
        return kind, int(rows[0]) if len(rows) else -1, 0  # -1: a component that is zero
    joint = entry if entry < len(s.joints) else int(s.driven_joints[entry - len(s.joints)])
    return kind, joint, component


def _body_output(
    simulator: Simulator, owner: str, key: str, letter: str, unknown_output: InputError
) -> tuple[int, int, int]:
    """Return the kind, index and component of an output of a body that is part of the state."""
    s = simulator.system
    k = s.body_index(owner)
    quantity = s.bodies[k].run_quantities.get(key)  # type: ignore[attr-defined]
    if quantity is None or quantity.place is None:
        raise unknown_output
    part = s.q_slices[k] if quantity.place.array == "q" else s.v_slices[k]
    columns = range(part.start, part.stop)[quantity.place.columns]
    place = quantity.components.find(letter) if quantity.components else int(letter) - 1
    if not 0 <= place < len(columns):
        raise unknown_output
    return _STATE[quantity.place.array], columns[place], 0
