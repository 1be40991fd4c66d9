"""Immutable data of a mechanism: bodies, joints, drivers and loads, checked and numbered."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.checks import choice, flag, instance, integer, items, number, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import HtmlView, short_repr, supplied
from dolfinx_mbd.kernels.columns import ABOUT_Z, ALONG_Z
from dolfinx_mbd.mechanism.bodies import Ground
from dolfinx_mbd.mechanism.initial_poses import InitialPoses
from dolfinx_mbd.mechanism.joints import AxisMotion, Driver, FrameRef, Joint, checked_frame
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.load_states import LoadStates, state_names
from dolfinx_mbd.mechanism.named_points import with_named_points
from dolfinx_mbd.mechanism.pattern_loads import PatternLoad
from dolfinx_mbd.mechanism.protocol import Body
from dolfinx_mbd.mechanism.system_table import table_lines

__all__ = ["STANDARD_GRAVITY", "State", "System"]

Array = NDArray[np.float64]
Table = NDArray[np.int64]
Mask = NDArray[np.bool_]

_LISTS = "System(bodies, joints, drivers=[...], loads=[...])"  # hint of messages

STANDARD_GRAVITY = 9.80665
"""Standard acceleration of gravity, m/s² (CGPM 1901)."""


@dataclass(frozen=True, eq=False)
class State:
    """State of a system at one time.

    Attributes:
        time: Time, s.
        q: Coordinates of all bodies, shape (nq,).
        v: Velocities, shape (nv,).
        a: Rates of the velocities, shape (nv,).
        lam: Constraint multipliers λ, shape (nc,), N and N m.
        angles: Rotation of each joint about its axis, including full turns, shape (nj,), rad.
        memory: Data that the integrator passes from step to step.

    Example:
        >>> stone = mbd.RigidBody("stone", 1.0, [0.01] * 3)
        >>> state: mbd.mechanism.State = mbd.dynamics.consistent_state(mbd.System([stone]))
        >>> state.q.shape, state.lam.shape
        ((7,), (0,))
    """

    time: float
    q: Array
    v: Array
    a: Array
    lam: Array
    angles: Array
    memory: dict[str, Any] = field(default_factory=dict)

    __repr__ = short_repr


def _slices(counts: Iterable[int]) -> list[slice]:
    """Return consecutive slices with the given lengths."""
    return [slice(*bounds) for bounds in pairwise(np.cumsum([0, *counts], dtype=int).tolist())]


class System(HtmlView):
    """Bodies connected by joints, with drivers and loads; `print(system)` shows a table.

    Unspecified distances, offsets and free lengths of joints, drivers and loads are measured at the
    initial positions of the bodies, before the assembly.

    Args:
        bodies: Bodies; at most one of them is a `Ground`.
        joints: Joints between frames of two bodies.
        drivers: Prescribed rotations and displacements of joints.
        loads: Forces and torques, springs, bushings and friction.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².

    Raises:
        InputError: A name is repeated or unknown, or a driver does not match its joint; the message
            lists the valid names.

    Example:
        >>> ground = mbd.Ground({"bearing": mbd.Frame()})
        >>> bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, frames={"pivot": mbd.Frame((0, 1, 0))})
        >>> hinge = mbd.revolute("hinge", ground.frame("bearing"), bob.frame("pivot"))
        >>> mbd.System([ground, bob], [hinge], gravity=(0, -9.81, 0))
        <System: 2 bodies, 1 joints, 0 drivers, 0 loads; 6 velocities (0 elastic), 5 constraints>
    """

    _title = "a System(bodies, joints)"  # in messages about arguments

    def __init__(
        self,
        bodies: Sequence[Body],
        joints: Sequence[Joint] = (),
        *,
        drivers: Sequence[Driver] = (),
        loads: Sequence[Load] = (),
        gravity: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        hint = "for a reduced body FlexibleBody(name, reduced)"
        checked: tuple[Body, ...] = items("bodies", bodies, Body, hint)  # type: ignore[type-abstract]
        # `bodies` of another system may contain the states of its loads, which are added below
        self.bodies = tuple(body for body in checked if not isinstance(body, LoadStates))
        self.joints: tuple[Joint, ...] = items("joints", joints, Joint, _LISTS)
        self.drivers: tuple[Driver, ...] = items("drivers", drivers, Driver, _LISTS)
        self.loads: tuple[Load, ...] = items("loads", loads, Load, _LISTS)  # type: ignore[type-abstract]
        self.loads += tuple(
            joint.clearance.element(joint.contact_name, joint)
            for joint in self.joints
            if joint.clearance is not None
        )
        self.gravity: Array = np.array(vector("gravity", gravity, unit="m/s²"))
        self._check_bodies_and_names()
        self.mechanical_bodies: tuple[Body, ...] = self.bodies  # without the states of loads
        self._add_states()
        self.bodies = with_named_points(self.bodies, (*self.joints, *self.loads))
        self.mechanical_bodies = self.bodies[: len(self.mechanical_bodies)]
        self._number_bodies()
        self._place()
        self._number_constraints()
        for body in self.bodies:
            if hasattr(body, "check"):
                body.check(self)

    # ---- checks ---------------------------------------------------------------------------------
    def _check_bodies_and_names(self) -> None:
        """Raise an error if no body moves, there are two grounds, or a name is repeated."""
        if not any(body.num_velocities for body in self.bodies):
            raise InputError("a system needs at least one body that can move")
        if sum(isinstance(body, Ground) for body in self.bodies) > 1:
            raise InputError("a system has at most one ground; give all fixed frames to it")
        parts: tuple[Any, ...] = (*self.bodies, *self.joints, *self.drivers, *self.loads)
        names = [checked_name("the name of a body", part.name) for part in parts]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(
                f"duplicate names {repeated}: bodies, joints, drivers and loads share one list",
                argument="name",
                value=repeated,
            )

    def _add_states(self) -> None:
        """Add a body for the states of each load that has states."""
        masses = [body.typical_mass for body in self.bodies if body.num_velocities]
        mass, count = float(np.mean(masses)), len(self.bodies)
        self.bodies += tuple(
            LoadStates(load.name, load.initial_states, mass)
            for load in self.loads
            if load.initial_states.size
        )
        holders = [body for body in self.bodies[count:] if isinstance(body, LoadStates)]
        self.state_bodies = {body.load: (k,) for k, body in enumerate(holders, count)}
        self.initial_states: Array = np.concatenate([np.zeros(0), *(b.initial for b in holders)])

    def summary(self) -> str:
        """Return a table of bodies, joints, drivers, loads and degrees of freedom.

        The table also lists redundant constraints and the bodies that the assembly at t = 0 moves.
        """
        return "\n".join([*table_lines(self), "", *supplied("freedom")(self)])

    def __str__(self) -> str:
        return self.summary()

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the rows of the table that notebooks show."""
        groups: dict[str, tuple[Any, ...]] = {
            "bodies": self.mechanical_bodies,
            "joints": self.joints,
            "drivers": self.drivers,
            "loads": self.loads,
        }
        count = self.num_velocities - self.num_constraints
        rows = [(key, ", ".join(item.name for item in items)) for key, items in groups.items()]
        free = f"{self.num_velocities} coordinates, {self.num_constraints} constraints: {count}"
        return [(key, names) for key, names in rows if names] + [("degrees of freedom", free)]

    # ---- numbering ------------------------------------------------------------------------------
    def _number_bodies(self) -> None:
        """Assign places to coordinates, velocities and frames of bodies, and to states of loads."""
        counts = [len(body.frame_names) for body in self.bodies]
        self.q_slices = _slices(body.num_coordinates for body in self.bodies)
        self.v_slices = _slices(body.num_velocities for body in self.bodies)
        self.frame_slices = _slices(counts)
        self.num_coordinates = self.q_slices[-1].stop
        self.num_velocities = self.v_slices[-1].stop
        self.num_frames = self.frame_slices[-1].stop
        refs = [FrameRef(body.name, name) for body in self.bodies for name in body.frame_names]
        self._frame_index = {frame: k for k, frame in enumerate(refs)}
        self.frame_body = np.repeat(np.arange(len(self.bodies)), counts)
        elastic = [
            np.arange(s.stop - body.num_elastic, s.stop)
            for body, s in zip(self.bodies, self.v_slices, strict=True)
        ]
        self.elastic = np.concatenate(elastic).astype(np.int64)
        first = self.v_slices[len(self.mechanical_bodies) - 1].stop
        self.states = np.arange(first, self.num_velocities)  # states of loads follow the bodies
        self.rigid = np.setdiff1d(np.arange(first), self.elastic)

    def _place(self) -> None:
        """Measure unspecified lengths, offsets and angles at the initial positions."""
        placement = InitialPoses(self)
        self.size = placement.size
        self.joints = tuple(joint.placed(placement.pair(joint)) for joint in self.joints)
        signs = [placement.axes_sign(joint) for joint in self.joints]
        self.axes_signs = np.array(signs + [1.0] * len(self.drivers))
        drivers: dict[tuple[str, AxisMotion], Driver] = {}
        for driver in self.drivers:
            joint = self.joint(driver.joint)
            motion = joint.free_motion(driver.along, f"driver {driver.name!r}")
            if (joint.name, motion) in drivers:
                raise InputError(
                    f"drivers {drivers[joint.name, motion].name!r} and {driver.name!r} prescribe "
                    f"the same {motion} of joint {joint.name!r}"
                )
            offset = placement.along(joint, motion) if driver.offset is None else driver.offset
            drivers[joint.name, motion] = replace(driver, along=motion, offset=offset)
        self.drivers = tuple(drivers.values())
        self.loads = tuple(load.placed_in(placement) for load in self.loads)

    def _number_constraints(self) -> None:
        """Assign rows to the constraints of the entries: of the joints, then of the drivers."""
        entries = [(joint, joint.rows) for joint in self.joints]
        entries += [
            (self.joint(driver.joint), (ABOUT_Z if driver.along == "rotation" else ALONG_Z,))
            for driver in self.drivers
        ]
        rows = [(k, motion) for k, (_, motions) in enumerate(entries) for motion in motions]
        self._all_rows: Table = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        self.first = np.array([self.frame_index(j.first) for j, _ in entries], dtype=np.int64)
        self.second = np.array([self.frame_index(j.second) for j, _ in entries], dtype=np.int64)
        driven = [self.joint_index(driver.joint) for driver in self.drivers]
        self.driven_joints = np.array(driven, dtype=np.int64)
        self._hold(np.ones(len(rows), dtype=bool), np.zeros(len(rows)))

    def _hold(self, held: Mask, misfits: Array, least_norm: bool = False) -> None:
        """Select constraints by a mask; `misfits` are offsets of all constraints, m or rad."""
        self.held, self._misfits, self.least_norm = held, misfits, least_norm
        # Index of the entry (joint or driver) and relative motion of each selected constraint
        self.row_entry, self.row_motion = self._all_rows[:, held].copy()
        self.misfit = misfits[held]
        self.num_constraints = len(self.misfit)
        self.entry_slices = _slices(np.bincount(self.row_entry, minlength=len(self.first)))
        self.velocity_rows = self._velocity_rows()

    def _velocity_rows(self) -> NDArray[np.bool_]:
        """Return which constraints (nc,) restrict velocities, but not positions."""
        speeds = [j.constraint.on_velocities if j.constraint else () for j in self.joints]
        speeds += [()] * len(self.drivers)
        rows = zip(self.row_entry, self.row_motion, strict=True)
        return np.array([motion in speeds[entry] for entry, motion in rows], dtype=bool)

    def _with_constraints(self, *selection: Any) -> Self:
        """Return a copy with other constraints; see `_hold`."""
        part = copy.copy(self)
        part._hold(*selection)
        return part

    def without_rows(self, rows: Sequence[int], *, least_norm: bool = False) -> Self:
        """Return the system without some constraints; its `whole` is the complete system.

        With `least_norm`, the joint forces in solutions have minimum norm over all constraints.
        """
        rows = [self._row(row) for row in items("rows", rows, (int, np.integer))]
        held = self.held.copy()
        held[np.flatnonzero(held)[rows]] = False
        return self._with_constraints(held, self._misfits, flag("least_norm", least_norm))

    def with_misfit(self, misfit: Array) -> Self:
        """Return the system with small offsets (nc,) of its constraints, m or rad."""
        misfits = self._misfits.copy()
        misfits[self.held] = misfit
        return self._with_constraints(self.held, misfits, self.least_norm)

    @property
    def whole(self) -> Self:
        """The system with all constraints; the system itself if none was dropped."""
        if self.held.all():
            return self
        return self._with_constraints(np.ones_like(self.held), self._misfits)

    @property
    def has_clearance(self) -> bool:
        """Whether a joint has a clearance."""
        return any(joint.clearance is not None for joint in self.joints)

    @property
    def has_mesh_bodies(self) -> bool:
        """Whether a body is a mesh body."""
        return any(hasattr(body, "rigid_body") for body in self.bodies)

    @property
    def ideal(self) -> Self:
        """The system without clearances; the system itself if it has none."""
        if not self.has_clearance:
            return self
        elements = {joint.contact_name for joint in self.joints if joint.clearance is not None}
        joints = [replace(joint, clearance=None) for joint in self.joints]
        loads = [load for load in self.loads if load.name not in elements]
        return type(self)(
            self.bodies, joints, drivers=self.drivers, loads=loads, gravity=self.gravity
        )

    @property
    def with_rigid_bodies(self) -> Self:
        """The system with rigid bodies in place of mesh bodies; itself without them."""
        if not self.has_mesh_bodies:
            return self
        bodies = [
            body.rigid_body() if hasattr(body, "rigid_body") else body
            for body in self.mechanical_bodies
        ]
        return type(self)(
            bodies, self.whole.joints, drivers=self.drivers, loads=self.loads, gravity=self.gravity
        )

    # ---- look-up --------------------------------------------------------------------------------
    @property
    def parts(self) -> dict[str, Any]:
        """Bodies that move, joints, drivers and loads by name, in the order of results."""
        bodies = [body for body in self.mechanical_bodies if body.num_velocities]
        parts: tuple[Any, ...] = (*bodies, *self.joints, *self.drivers, *self.loads)
        return {part.name: part for part in parts}

    def body_index(self, name: str) -> int:
        """Return the index of a body; the error for an unknown name lists the bodies."""
        names = [body.name for body in self.bodies]
        return names.index(choice("name of a body", name, names))

    def body(self, name: str) -> Body:
        """Return the body with the given name."""
        return self.bodies[self.body_index(name)]

    def joint_index(self, name: str) -> int:
        """Return the index of a joint; the error for an unknown name lists the joints."""
        names = [joint.name for joint in self.joints]
        return names.index(choice("name of a joint", name, names))

    def joint(self, name: str) -> Joint:
        """Return the joint with the given name."""
        return self.joints[self.joint_index(name)]

    def load_pattern(self, load: PatternLoad) -> LoadPattern:
        """Return the pattern of a distributed load; its body must be a reduced flexible body."""
        instance("load", load, PatternLoad)
        body = self.body(load.pattern.body)
        if not hasattr(body, "load_pattern"):
            raise InputError(
                f"load {load.name!r}: body {body.name!r} has no distributed loads; only reduced "
                "flexible bodies have them. Apply a force or a torque at a frame"
            )
        return body.load_pattern(load.pattern.pattern)  # type: ignore[no-any-return]

    def frame_index(self, frame: FrameRef) -> int:
        """Return the index of a frame; the error for an unknown name lists the frames."""
        frame = checked_frame("frame", frame)
        if frame not in self._frame_index:
            names = self.body(frame.body).frame_names
            choice(f"frame of body {frame.body!r}", frame.frame, names)
        return self._frame_index[frame]

    def check_state(self, argument: str, state: State) -> None:
        """Raise an error if the value of an argument is not a state of this system."""
        instance(argument, state, State, "as equilibrium or a solution's final_state")
        if len(state.q) != self.num_coordinates or len(state.v) != self.num_velocities:
            raise InputError(
                f"{argument} has {len(state.q)} coordinates, the system {self.num_coordinates}: it "
                "is the state of another system",
                argument=argument,
                value=state,
            )

    def check_no_states(self, task: str) -> None:
        """Raise an error if loads have states; `task` is the analysis that cannot treat them."""
        if self.state_bodies:
            names = ", ".join(map(repr, self.state_bodies))
            raise InputError(
                f"{task} does not support loads with states: {names}. Use simulate, equilibrium, "
                "linearize or run_sensitivities, or replace the states by functions of time",
                argument="system",
                value=self,
            )

    def check_reduced(self, task: str) -> None:
        """Raise an error if there is a mesh body; `task` is the analysis that cannot treat it."""
        names = [repr(body.name) for body in self.bodies if hasattr(body, "rigid_body")]
        if names:
            raise InputError(
                f"{task} does not support mesh bodies ({', '.join(names)}): replace each "
                "by a FlexibleBody with the reduced body of its model, mbd.reduce(model, "
                "interfaces=...).body",
                argument="system",
                value=self,
            )

    def check_no_content(self, task: str) -> None:
        """Raise an error if the oil in a gap before a step affects a film."""
        names = [load.name for load in self.loads if load.has_content]
        if names:
            raise InputError(
                f"{task} does not support oil films whose content depends on earlier steps: "
                f"{', '.join(map(repr, names))}. Use simulate, or cavitation='reynolds'",
                argument="system",
                value=self,
            )

    def check_holonomic(self, task: str) -> None:
        """Raise an error if constraints restrict velocities only; `task` is the analysis."""
        if self.velocity_rows.any():
            entry = int(self.row_entry[np.argmax(self.velocity_rows)])
            joint = self.joints[entry]
            raise InputError(
                f"{task} does not support the {joint.kind.replace('_', '-')} joint {joint.name!r}, "
                "which restricts velocities but not positions. Use simulate; if the mechanism "
                "is at rest, equilibrium and linearize can also be used",
                argument="system",
                value=self,
            )

    # ---- names and checks for messages --------------------------------------------------------
    def check_step(self, t: float, dt: float) -> None:
        """Raise an error if a driver rotates by half a turn or more in a step from t to t + dt.

        Full turns of joints are counted on the assumption that every joint rotates by less than
        half a turn per step. Only the rotations of drivers are known before the step.
        """
        t, dt = number("t", t), number("dt", dt)
        for driver in (driver for driver in self.drivers if driver.along == "rotation"):
            (before, *_), (after, *_) = driver.at(t), driver.at(t + dt)
            rotation = abs(after - before)
            if rotation >= np.pi:
                raise InputError(
                    f"driver {driver.name!r} turns by {rotation:.3g} rad in the step from "
                    f"t = {t:g} s (dt = {dt:g} s), half a turn or more; choose a dt below "
                    f"{np.pi * dt / rotation:.2g} s, preferably a fiftieth of it",
                    argument="dt",
                    value=dt,
                )

    def _row(self, row: int) -> int:
        """Return the checked number of a constraint."""
        return integer("row", row, low=0, high=self.num_constraints - 1)

    def constraint_name(self, row: int) -> str:
        """Return the name of a constraint, counted from 0, for messages."""
        row = self._row(row)
        entry, motion = int(self.row_entry[row]), int(self.row_motion[row])
        if entry >= len(self.joints):
            return f"driver {self.drivers[entry - len(self.joints)].name!r}"
        joint = self.joints[entry]
        return f"{joint.kind.replace('_', '-')} joint {joint.name!r}, {joint.row_name(motion)}"

    def row_name(self, row: int) -> str:
        """Return the name of an equation of motion, a row of the residual, for messages."""
        row = integer("row", row, low=0, high=self.num_velocities - 1)
        k = next(k for k, s in enumerate(self.v_slices) if s.start <= row < s.stop)
        i = row - self.v_slices[k].start
        if names := state_names(self.bodies[k]):
            return names[i]
        axis = "xyz"[i % 3]
        name = f"force along {axis}" if i < 3 else f"moment about its {axis} axis"
        name = name if i < 6 else f"elastic coordinate {i - 5}"
        return f"body {self.bodies[k].name!r}, {name}"

    def __repr__(self) -> str:
        bodies = len(self.mechanical_bodies)
        return (
            f"<System: {bodies} bodies, {len(self.joints)} joints, {len(self.drivers)} "
            f"drivers, {len(self.loads)} loads; {self.num_velocities} velocities "
            f"({len(self.elastic)} elastic), {self.num_constraints} constraints>"
        )
