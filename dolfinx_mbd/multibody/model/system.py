"""Immutable data of a mechanism: bodies, joints, drivers and loads, checked and numbered."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.checks import choice, flag, instance, integer, items, number, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.force_elements import JointFriction, JointSpring, PairElement
from dolfinx_mbd.multibody.model.joints import Driver, FrameRef, Joint, checked_frame
from dolfinx_mbd.multibody.model.loads import FrameLoad, JointLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad
from dolfinx_mbd.multibody.model.placement import Placement
from dolfinx_mbd.multibody.model.protocol import Body
from dolfinx_mbd.multibody.model.system_checks import (
    check_bodies,
    check_driven_motions,
    check_loads,
    check_names,
    check_pair,
    driver_axis,
)

__all__ = ["STANDARD_GRAVITY", "Load", "State", "SystemData"]

Array = NDArray[np.float64]

STANDARD_GRAVITY = 9.80665
"""Standard acceleration of gravity, m/s² (CGPM 1901)."""

Load = FrameLoad | JointLoad | PatternLoad | PairElement | JointSpring | JointFriction
"""Forces and torques, springs, bushings and friction."""


@dataclass(frozen=True, eq=False)
class State:
    """State of a system at one time.

    Attributes:
        time: Time, s.
        q: Coordinates of all bodies, shape (nq,).
        v: Velocities, shape (nv,).
        a: Rates of the velocities, shape (nv,).
        lam: Constraint multipliers λ, shape (nc,), N and N m.
        angles: Rotation of each joint about its axis, counted over turns, shape (nj,), rad.
        memory: Data that the integrator passes from step to step.
    """

    time: float
    q: Array
    v: Array
    a: Array
    lam: Array
    angles: Array
    memory: dict[str, Any] = field(default_factory=dict)


class SystemData:
    """Numbered data of a mechanism, on which the solvers work.

    Users create a `System`, which describes the arguments and errors.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        joints: Sequence[Joint] = (),
        *,
        drivers: Sequence[Driver] = (),
        loads: Sequence[Load] = (),
        gravity: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        hint = "a reduced body becomes one by FlexibleBody(name, reduced)"
        self.bodies: tuple[Body, ...] = items("bodies", bodies, Body, hint)  # type: ignore[type-abstract]
        self.joints: tuple[Joint, ...] = items("joints", joints, Joint)
        self.drivers: tuple[Driver, ...] = items("drivers", drivers, Driver)
        self.loads: tuple[Load, ...] = items("loads", loads, get_args(Load))
        self.gravity: Array = np.array(vector("gravity", gravity, unit="m/s²"))
        check_bodies(self.bodies)
        check_names((*self.bodies, *self.joints, *self.drivers, *self.loads))
        self._number_bodies()
        self._place()
        check_driven_motions(self.drivers)
        check_loads(self)
        self._number_constraints()
        for body in self.bodies:
            check = getattr(body, "check", None)
            if check is not None:
                check(self)

    # ---- numbering ------------------------------------------------------------------------------
    def _number_bodies(self) -> None:
        def slices(counts: list[int]) -> list[slice]:
            stops = np.cumsum(counts, dtype=int).tolist()
            return [slice(stop - count, stop) for stop, count in zip(stops, counts, strict=True)]

        self.q_slices = slices([body.num_coordinates for body in self.bodies])
        self.v_slices = slices([body.num_velocities for body in self.bodies])
        self.frame_slices = slices([len(body.frame_names) for body in self.bodies])
        self.num_coordinates = self.q_slices[-1].stop
        self.num_velocities = self.v_slices[-1].stop
        self.num_frames = self.frame_slices[-1].stop
        self._frame_index = {
            FrameRef(body.name, name): frames.start + k
            for body, frames in zip(self.bodies, self.frame_slices, strict=True)
            for k, name in enumerate(body.frame_names)
        }
        counts = [len(body.frame_names) for body in self.bodies]
        self.frame_body = np.repeat(np.arange(len(self.bodies)), counts)
        self.elastic = np.concatenate(
            [
                np.arange(s.stop - body.num_elastic, s.stop)
                for body, s in zip(self.bodies, self.v_slices, strict=True)
            ]
        ).astype(np.int64)
        self.rigid = np.setdiff1d(np.arange(self.num_velocities), self.elastic)

    def _place(self) -> None:
        """Measure unspecified lengths, offsets and angles at the initial positions."""
        placement = Placement(self.bodies, self.frame_slices)
        self.size = placement.size

        def ends(item: Joint | PairElement) -> tuple[int, int]:
            return self.frame_index(item.first), self.frame_index(item.second)

        self.joints = tuple(placement.joint(joint, *ends(joint)) for joint in self.joints)
        forms = [placement.form(joint, *ends(joint)) for joint in self.joints]
        self.form = np.array(forms + [0] * len(self.drivers), dtype=np.int64)
        drivers, loads = [], []
        for driver in self.drivers:
            joint = self.joint(driver.joint)
            drivers.append(placement.driver(driver, driver_axis(driver, joint), *ends(joint)))
        for load in self.loads:
            if isinstance(load, PairElement):
                check_pair(load, self.body(load.first.body))
                load = load.placed(placement.pair(*ends(load)))
            elif isinstance(load, JointSpring | JointFriction):
                joint = self.joint(load.joint)
                motion = joint.axis(load.motion, f"load {load.name!r}")
                load = load.placed(motion, placement.along(*ends(joint), motion))
            loads.append(load)
        self.drivers, self.loads = tuple(drivers), tuple(loads)

    def _number_constraints(self) -> None:
        """Number the constraint rows: those of the joints, then those of the drivers."""
        entries = [(joint, joint.rows) for joint in self.joints]
        entries += [
            (self.joint(driver.joint), (5,) if driver.along == "rotation" else (2,))
            for driver in self.drivers
        ]
        rows = [(k, motion) for k, (_, motions) in enumerate(entries) for motion in motions]
        self.row_entry, self.row_motion = np.array(rows, dtype=np.int64).reshape(-1, 2).T.copy()
        self.num_constraints = len(rows)
        self.first = np.array([self.frame_index(j.first) for j, _ in entries], dtype=np.int64)
        self.second = np.array([self.frame_index(j.second) for j, _ in entries], dtype=np.int64)
        self.entry_slices = self._entry_slices()
        self.lengths = np.array([joint.length or 0.0 for joint, _ in entries])
        driven = [self.joint_index(driver.joint) for driver in self.drivers]
        self.driven_joints = np.array(driven, dtype=np.int64)
        self.misfit: Array = np.zeros(self.num_constraints)
        self.whole: SystemData = self
        self.least_norm = False

    def _entry_slices(self) -> list[slice]:
        """Constraint rows of each joint, then of each driver."""
        entries = np.arange(len(self.first))
        starts = np.searchsorted(self.row_entry, entries, side="left")
        stops = np.searchsorted(self.row_entry, entries, side="right")
        return [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]

    def without_rows(self, rows: Sequence[int], *, least_norm: bool = False) -> SystemData:
        """Return the system without some constraint rows; `whole` keeps the one with all of them.

        Args:
            rows: Numbers of the rows.
            least_norm: Whether solutions give the joints' forces with the least norm over all rows.
        """
        rows = [self._row(row) for row in items("rows", rows, (int, np.integer))]
        keep = np.setdiff1d(np.arange(self.num_constraints), np.array(rows, dtype=np.int64))
        part = copy.copy(self)
        part.row_entry, part.row_motion = self.row_entry[keep], self.row_motion[keep]
        part.misfit = self.misfit[keep]
        part.num_constraints = len(keep)
        part.entry_slices = part._entry_slices()
        part.whole, part.least_norm = self.whole, flag("least_norm", least_norm)
        return part

    def with_misfit(self, misfit: Array) -> SystemData:
        """Return the system with constraints that hold a small offset instead of zero.

        Args:
            misfit: Offset of each constraint, shape (nc,), m or rad.
        """
        fitted = copy.copy(self)
        fitted.misfit, fitted.whole = misfit, fitted
        return fitted

    # ---- look-up --------------------------------------------------------------------------------
    def body_index(self, name: str) -> int:
        """Return the number of a body.

        Raises:
            InputError: There is no body of this name; the message lists those there are.
        """
        names = [body.name for body in self.bodies]
        return names.index(choice("name of a body", name, names))

    def body(self, name: str) -> Body:
        """Return the body of a name; see `body_index`."""
        return self.bodies[self.body_index(name)]

    def joint_index(self, name: str) -> int:
        """Return the number of a joint.

        Raises:
            InputError: There is no joint of this name; the message lists those there are.
        """
        names = [joint.name for joint in self.joints]
        return names.index(choice("name of a joint", name, names))

    def joint(self, name: str) -> Joint:
        """Return the joint of a name; see `joint_index`."""
        return self.joints[self.joint_index(name)]

    def load_pattern(self, load: PatternLoad) -> LoadPattern:
        """Return the pattern of a distributed load.

        Raises:
            InputError: Its body is unknown or has no such pattern; the message lists them.
        """
        instance("load", load, PatternLoad)
        body = self.body(load.pattern.body)
        find = getattr(body, "load_pattern", None)
        if find is None:
            raise InputError(
                f"load {load.name!r}: body {body.name!r} has no distributed loads, as only reduced "
                "flexible bodies have; give it a force or a torque at a frame"
            )
        return find(load.pattern.pattern)  # type: ignore[no-any-return]

    def frame_index(self, frame: FrameRef) -> int:
        """Return the number of a frame among those of all bodies.

        Raises:
            InputError: Body or frame is unknown; the message lists those there are.
        """
        frame = checked_frame("frame", frame)
        if frame not in self._frame_index:
            names = self.body(frame.body).frame_names
            choice(f"frame of body {frame.body!r}", frame.frame, names)
        return self._frame_index[frame]

    # ---- names and checks for messages --------------------------------------------------------
    def check_step(self, t: float, dt: float) -> None:
        """Raise an error if a driver turns by half a turn or more in a step.

        Turns of joints that are not driven are counted to the nearest, and positions between such
        steps mean nothing.

        Raises:
            InputError: A driver is faster than that; the message says how long the step may be.
        """
        t, dt = number("t", t), number("dt", dt)
        for driver in self.drivers:
            if driver.along != "rotation":
                continue
            turn = abs(driver.at(t + dt)[0] - driver.at(t)[0])
            if turn >= np.pi:
                raise InputError(
                    f"driver {driver.name!r} turns by {turn:.3g} rad in the step from t = {t:g} s "
                    f"(dt = {dt:g} s), half a turn or more; take a dt below "
                    f"{np.pi * dt / turn:.2g} s, better a fiftieth of that",
                    argument="dt",
                    value=dt,
                )

    def _row(self, row: int) -> int:
        return integer("row", row, low=0, high=self.num_constraints - 1)

    def constraint_name(self, row: int) -> str:
        """Return the name of a constraint row, for messages."""
        row = self._row(row)
        entry, motion = int(self.row_entry[row]), int(self.row_motion[row])
        if entry >= len(self.joints):
            return f"driver {self.drivers[entry - len(self.joints)].name!r}"
        joint = self.joints[entry]
        return f"{joint.kind.replace('_', '-')} joint {joint.name!r}, {joint.row_name(motion)}"

    def row_name(self, row: int) -> str:
        """Return the name of a row of the equations of motion, for messages."""
        row = integer("row", row, low=0, high=self.num_velocities - 1)
        k = next(k for k, s in enumerate(self.v_slices) if s.start <= row < s.stop)
        i = row - self.v_slices[k].start
        names = [f"force along {axis}" for axis in "xyz"]
        names += [f"moment about body {axis}" for axis in "xyz"]
        return (
            f"body {self.bodies[k].name!r}, {names[i] if i < 6 else f'elastic coordinate {i - 5}'}"
        )

    def __repr__(self) -> str:
        return (
            f"<System: {len(self.bodies)} bodies, {len(self.joints)} joints, {len(self.drivers)} "
            f"drivers, {len(self.loads)} loads; {self.num_velocities} velocities "
            f"({len(self.elastic)} elastic), "
            f"{self.num_constraints} constraints>"
        )
