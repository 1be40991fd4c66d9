"""Quantities that the functions of the assembly compute from the saved states of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, extent
from dolfinx_mbd.dynamics.assembly.redundancy import least_norm_multipliers
from dolfinx_mbd.mechanism.joints import Driver, FrameRef, Joint
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.system import State, SystemData
from dolfinx_mbd.results.files.run_files import HISTORY, held_rows
from dolfinx_mbd.results.histories import (
    BodyHistory,
    ElementHistory,
    JointHistory,
    rotation_matrices,
)

Array = NDArray[np.float64]


class SavedStates:
    """Saved states of a run, and the quantities that follow from them.

    The functions of loads are called again at the saved states.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    lam: Array
    angles: Array

    def __init__(self, system: SystemData, states: Sequence[State]) -> None:
        self.system = system
        for key in HISTORY:
            setattr(self, key, np.array([getattr(state, key) for state in states]))

    @classmethod
    def of_rows(cls, system: SystemData, rows: NDArray[np.void]) -> SavedStates:
        """Return the saved states in an array with a field for each attribute of a state."""
        return cls._of(system, {key: rows[key] for key in HISTORY})

    @classmethod
    def _of(cls, system: SystemData, arrays: dict[str, Array]) -> SavedStates:
        saved = cls(system, ())
        vars(saved).update(arrays)
        return saved

    def part(self, times: slice) -> SavedStates:
        """Return the states at some of the times."""
        return self._of(self.system, {key: getattr(self, key)[times] for key in HISTORY})

    def states(self) -> Iterator[State]:
        """Yield the states without the memory of the integrator."""
        rows = zip(*(getattr(self, key) for key in HISTORY), strict=True)
        return (State(float(t), *row) for t, *row in rows)

    def evaluations(self) -> Iterator[tuple[int, float, Assembler]]:
        """Yield row, time and an assembler of the whole system for each state."""
        at, multipliers = Assembler(self.system.whole), self.multipliers
        for row, t in enumerate(map(float, self.time)):
            at.q[:], at.v[:], at.a[:] = self.q[row], self.v[row], self.a[row]
            at.lam[:], at.angles[:] = multipliers[row], self.angles[row]
            at.update_poses(t)
            at.frames.update_velocities()
            yield row, t, at

    @cached_property
    def multipliers(self) -> Array:
        """Multipliers of all constraints, (nt, nc), N and N m.

        The multipliers of dropped constraints are zero. With ``redundant="keep"`` the multipliers
        have minimum norm.
        """
        whole, held = self.system.whole, held_rows(self.system)
        multipliers = np.zeros((len(self.time), len(held)))
        multipliers[:, held] = self.lam
        if self.system.least_norm:
            at = Assembler(whole)
            for k, (t, q) in enumerate(zip(map(float, self.time), self.q, strict=True)):
                at.q[:] = q
                at.update_poses(t)
                B = at.constraint_matrix()
                multipliers[k] = least_norm_multipliers(whole, B, B[held], self.lam[k], extent(at))
        return multipliers

    def names(self) -> list[str]:
        """Return the names of all bodies that move, all joints, drivers and loads."""
        s = self.system
        bodies = [body.name for body in s.mechanical_bodies if body.num_velocities]
        parts: tuple[Joint | Driver | Load, ...] = (*s.joints, *s.drivers, *s.loads)
        return [*bodies, *(part.name for part in parts)]

    # ---- bodies ---------------------------------------------------------------------------------
    def body(self, k: int) -> BodyHistory:
        """Return the history of the body with index k; the body must have a floating frame."""
        s = self.system
        q, v, a = self.q[:, s.q_slices[k]], self.v[:, s.v_slices[k]], self.a[:, s.v_slices[k]]
        return BodyHistory(
            name=s.bodies[k].name,
            time=self.time,
            position=q[:, :3],
            rotation=q[:, 3:7],
            velocity=v[:, :3],
            omega=v[:, 3:6],
            acceleration=a[:, :3],
            alpha=a[:, 3:6],
            eta=q[:, 7:],
            eta_rate=v[:, 6:],
            eta_acceleration=a[:, 6:],
            _wrenches=partial(self.interface_wrenches, k),
            _energies=partial(self.body_energies, k),
            _momenta=partial(self.body_momenta, k),
        )

    def body_energies(self, body: int, rows: slice | NDArray[np.integer] = slice(None)) -> Array:
        """Return the kinetic, elastic and gravitational energy of a body, (rows, 3), J."""
        s = self.system
        states = zip(self.q[rows, s.q_slices[body]], self.v[rows, s.v_slices[body]], strict=True)
        return np.array([s.bodies[body].energies(q, v, s.gravity) for q, v in states])

    def body_momenta(self, body: int) -> Array:
        """Return the momentum and angular momentum of a body, (nt, 6), kg m/s and kg m²/s."""
        s = self.system
        states = zip(self.q[:, s.q_slices[body]], self.v[:, s.v_slices[body]], strict=True)
        return np.array([s.bodies[body].momenta(q, v) for q, v in states])

    def body_axes(self, body: int) -> Array:
        """Return the axes of the frame of a body as columns, (nt, 3, 3)."""
        return rotation_matrices(self.q[:, self.system.q_slices[body]][:, 3:7])

    @cached_property
    def _frame_wrenches(self) -> Array:
        """Forces and moments on all frames in global components, (nt, nf, 6)."""
        wrenches = np.zeros((len(self.time), self.system.num_frames, 6))
        for row, t, at in self.evaluations():
            at.residual(t)
            wrenches[row] = at.wrenches
        return wrenches

    def interface_wrenches(self, body: int) -> dict[str, Array]:
        """Return the wrenches at the frames of a body; see `BodyHistory`."""
        s = self.system
        names, wrenches = s.bodies[body].frame_names, self._frame_wrenches
        wrenches = wrenches[:, s.frame_slices[body]].reshape(len(self.time), -1, 2, 3)
        rotated = np.einsum("tji,tfpj->ftpi", self.body_axes(body), wrenches)
        return dict(zip(names, rotated.reshape(len(names), len(self.time), 6), strict=True))

    # ---- joints and drivers ---------------------------------------------------------------------
    @cached_property
    def entries(self) -> dict[str, Array]:
        """Motion, power and violation of all joints and drivers, (nt, entries, ...)."""
        s, nt = self.system.whole, len(self.time)
        joints, entries = len(s.joints), len(s.first)
        wrench, power = np.zeros((nt, entries, 12)), np.zeros((nt, entries))
        displacement, displacement_rate = np.zeros((2, nt, joints, 3))
        rotation_rate, violation = np.zeros((nt, joints)), np.zeros((nt, entries))
        for row, t, at in self.evaluations():
            values = np.abs(at.constraints(t))
            violation[row] = [values[part].max(initial=0.0) for part in s.entry_slices]
            wrench[row] = at.joint_wrenches() + at.loads.clearance_wrenches()
            u = np.hstack([at.velocities[s.first], at.velocities[s.second]])
            power[row] = np.einsum("jk,jk->j", wrench[row], u)
            displacement[row], displacement_rate[row] = at.frames.joint_displacements()
            rotation_rate[row] = at.frames.axis_coordinates()[1][:, 0]
        joint = np.concatenate([np.arange(joints), s.driven_joints])
        motion = {
            "rotation": self.angles,
            "rotation_rate": rotation_rate,
            "displacement": displacement,
            "displacement_rate": displacement_rate,
        }
        motion = {key: values[:, joint] for key, values in motion.items()}
        return motion | {"wrench": wrench, "power": power, "violation": violation}

    def joint(self, name: str) -> JointHistory:
        """Return the history of a joint or a driver."""
        s = self.system.whole
        entry = [*(j.name for j in s.joints), *(d.name for d in s.drivers)].index(name)
        reactions = np.zeros((len(self.time), 6))
        rows = np.flatnonzero(s.row_entry == entry)
        reactions[:, s.row_motion[rows]] -= self.multipliers[:, rows]
        joint = entry if entry < len(s.joints) else int(s.driven_joints[entry - len(s.joints)])
        forces = reactions[:, :3], reactions[:, 3:]
        if entry < len(s.joints) and s.joints[entry].clearance is not None:
            element = self.element(name, axes="first")
            forces = element.force, element.moment
        motion = partial(self.entry_motion, entry)
        return JointHistory(name, self.time, *forces, self.angles[:, joint], motion)

    def entry_motion(self, entry: int) -> dict[str, Array]:
        """Return motion, wrenches, power and violation of a joint or driver over time."""
        return {key: values[:, entry] for key, values in self.entries.items()}

    # ---- loads ----------------------------------------------------------------------------------
    @cached_property
    def _loads(self) -> dict[str, dict[str, Array]]:
        """Wrench, motion, power and energy of all loads over time, by name."""
        rows: dict[str, dict[str, list[Any]]] = {load.name: {} for load in self.system.loads}
        for _, t, at in self.evaluations():
            for load, values in at.loads.records(t):
                for key, value in values.items():
                    rows[load.name].setdefault(key, []).append(value)
        return {
            name: {key: np.array(values, dtype=float) for key, values in row.items()}
            for name, row in rows.items()
        }

    def element(self, name: str, axes: str) -> ElementHistory:
        """Return the history of a joint, driver or load; see `Solution.element`."""
        s, nt = self.system, len(self.time)
        every: tuple[Joint | Driver | Load, ...] = (*s.joints, *s.drivers, *s.loads)
        parts = {part.name: part for part in every}
        part = parts[choice("name of a joint, driver or load", name, parts)]
        frames = _frames(part, s)
        ends = ("first", "second")[-max(1, len(frames)) :]
        choice(f"axes of {name!r}", axes, ("global", *ends))
        if isinstance(part, Joint | Driver):
            values = self.entry_motion([*parts].index(name)) | {"energy": np.zeros(nt)}
            del values["violation"]
        else:
            values = dict(self._loads[name])
        vectors = values.pop("wrench").reshape(nt, -1, 3)
        if axes != "global":
            if frames:
                Q = self._frame_axes(frames[ends.index(axes)])
            else:
                Q = self.body_axes(s.body_index(getattr(part, "loaded_body", None) or ""))
            vectors = np.einsum("tji,tpj->tpi", Q, vectors)
        *first, force, moment = np.moveaxis(vectors, 1, 0)
        values |= zip(("first_force", "first_moment"), first, strict=False)
        return ElementHistory(name, self.time, force, moment, **values)

    def _frame_axes(self, frame: FrameRef) -> Array:
        """Return the axes of a frame as columns, (nt, 3, 3)."""
        index, axes = self.system.frame_index(frame), np.zeros((len(self.time), 3, 3))
        for row, _, at in self.evaluations():
            axes[row] = at.rotation[index]
        return axes


def _frames(part: Joint | Driver | Load, system: SystemData) -> tuple[FrameRef, ...]:
    """Return the frames on which a part acts; a distributed load has none."""
    if isinstance(part, Joint):
        return part.first, part.second
    if isinstance(part, Driver):
        joint = system.joint(part.joint)
        return joint.first, joint.second
    return part.acting_frames(system)
