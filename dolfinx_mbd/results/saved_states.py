"""Quantities that the functions of the assembly compute from the saved states of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import StrainGauge
from dolfinx_mbd.checks import choice
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, extent
from dolfinx_mbd.dynamics.assembly.redundancy import least_norm_multipliers
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import QUATERNION
from dolfinx_mbd.mechanism.bodies import FlexibleBody
from dolfinx_mbd.mechanism.joints import Driver, FrameRef, Joint
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.run_quantities import (
    ENERGIES,
    FORCES,
    LOAD,
    MOMENTA,
    Quantities,
)
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.distributed_rows import Distribution, local_row
from dolfinx_mbd.results.files.run_files import HISTORY, OIL, oil_arrays
from dolfinx_mbd.results.histories import rotation_matrices
from dolfinx_mbd.results.series import INTEGRALS, PartData, Values

Array = NDArray[np.float64]


class SavedStates:
    """Saved states of a run, and the quantities that follow from them.

    The functions of loads are called again at the saved states.

    Args:
        system: The mechanism.
        states: States at increasing times.
        assembler: Assembler of the whole system for the evaluation of quantities; by default one is
            created when it is needed.
    """

    time: Array
    q: Any  # array, or `DistributedRows` if several ranks share a mesh
    v: Array
    a: Array
    lam: Array
    angles: Array
    oil: dict[str, Array]  # contents of films in the steps to the states, where they are known

    def __init__(
        self, system: System, states: Sequence[State], assembler: Assembler | None = None
    ) -> None:
        self.system, self._assembler = system, assembler
        self.oil = oil_arrays(states)
        distribution = Distribution(system) if len(states) > 1 else None
        for key in HISTORY:
            if key == "q" and distribution:
                self.q = distribution.rows(states)
            else:
                setattr(self, key, np.array([getattr(state, key) for state in states]))

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the assembler, to pickle or to copy them."""
        return {**vars(self), "_assembler": None}

    @classmethod
    def of_rows(cls, system: System, rows: NDArray[np.void]) -> SavedStates:
        """Return the saved states in an array with a field for each attribute of a state."""
        return cls.of_arrays(system, {key: rows[key] for key in rows.dtype.names or ()})

    @classmethod
    def of_arrays(cls, system: System, arrays: Mapping[str, Any]) -> SavedStates:
        """Return the saved states in arrays by the names of the attributes of a state and of `OIL`.

        The arrays `OIL` may be absent.
        """
        saved = cls(system, ())
        vars(saved).update({key: arrays[key] for key in HISTORY})
        saved.oil = {key: arrays[key] for key in OIL if key in arrays}
        return saved

    def part(self, times: slice) -> SavedStates:
        """Return the states at some of the times."""
        arrays = {key: getattr(self, key) for key in HISTORY} | self.oil
        return self.of_arrays(self.system, {key: values[times] for key, values in arrays.items()})

    def states(self) -> Iterator[State]:
        """Yield the states without the memory of the integrator."""
        rows = zip(*(getattr(self, key) for key in HISTORY), strict=True)
        return (State(float(t), *row) for t, *row in rows)

    def evaluations(self, *, nodes: bool = False) -> Iterator[tuple[int, float, Assembler]]:
        """Yield the row, time and an assembler of the whole system for each state.

        Nodes of meshes that other ranks store are NaN, unless `nodes` is True (collective).
        """
        assembler, multipliers = self._assembler or Assembler(self.system.whole), self.multipliers
        for row, t in enumerate(map(float, self.time)):
            q = self.q[row] if nodes else local_row(self.q, row)
            state = q, self.v[row], self.a[row], multipliers[row], self.angles[row]
            assembler.put(State(t, *state, {key: values[row] for key, values in self.oil.items()}))
            assembler.update_poses(t)
            assembler.frames.update_velocities()
            yield row, t, assembler

    @cached_property
    def multipliers(self) -> Array:
        """Multipliers of all constraints, (nt, nc), N and N m.

        The multipliers of dropped constraints are zero. With ``redundant="keep"`` the multipliers
        have minimum norm.
        """
        whole, held = self.system.whole, self.system.held
        multipliers = np.zeros((len(self.time), len(held)))
        multipliers[:, held] = self.lam
        if self.system.least_norm:
            assembler = Assembler(whole)
            for k, t in enumerate(map(float, self.time)):
                assembler.q[:] = local_row(self.q, k)
                assembler.update_poses(t)
                B = assembler.constraint_matrix()
                multipliers[k] = least_norm_multipliers(
                    whole, B, B[held], self.lam[k], extent(assembler)
                )
        return multipliers

    def names(self) -> list[str]:
        """Return the names of all bodies that move, all joints, drivers and loads."""
        return [*self.system.parts]

    def data(self, name: str) -> PartData:
        """Return the quantities of a body that moves, a joint, a driver or a load."""
        s = self.system
        if name in self.joint_names:
            return self._joint(name)
        if name in (load.name for load in s.loads):
            return self.element(name, "global")
        return self._body(s.body_index(name))

    def check_oil(self) -> None:
        """Raise an error if forces depend on contents of oil films that were not saved."""
        names = [load.name for load in self.system.loads if load.has_content]
        if names and len(self.time) > 1 and not self.oil:
            raise InputError(
                "the forces of this run depend on the oil in its films "
                f"({', '.join(map(repr, names))}), which these states do not contain: use the run "
                "of simulate, periodic or resume, or a file of it by this version",
                argument="run",
            )

    # ---- bodies ---------------------------------------------------------------------------------
    def _body(self, k: int) -> PartData:
        """Return the quantities of the body with index k."""
        s, body = self.system, self.system.bodies[k]
        quantities: Quantities = getattr(body, "run_quantities", {})
        if hasattr(body, "motion"):  # the body has no floating frame
            motion = cache(lambda: body.motion(self))
            of_motion: dict[str, Values] = {
                key: lambda key=key: getattr(motion(), key)  # type: ignore[misc]
                for key in quantities
            }
            return PartData(body.name, self.time, quantities, of_motion)
        arrays = {
            "q": self.q[:, s.q_slices[k]],
            "v": self.v[:, s.v_slices[k]],
            "a": self.a[:, s.v_slices[k]],
        }
        places = {key: q.place for key, q in quantities.items() if q.place is not None}
        values: dict[str, Values] = {
            key: lambda place=place: arrays[place.array][:, place.columns]  # type: ignore[misc]
            for key, place in places.items()
        }
        values |= _together(MOMENTA, lambda: _vectors(self.body_momenta(k)))
        values |= _together(ENERGIES, lambda: self.body_energies(k).T)
        ends = [f"{frame}.{key}" for frame in body.frame_names for key in FORCES]
        values |= _together(ends, lambda: self._interface_forces(k))
        for gauge in body.reduced.gauges if isinstance(body, FlexibleBody) else ():
            keys = [f"{label}.strain" for label in gauge.labels]
            values |= _together(keys, partial(_strains, gauge, values["eta"]))
        return PartData(body.name, self.time, quantities, values)

    def body_energies(self, body: int, rows: slice | NDArray[np.integer] = slice(None)) -> Array:
        """Return the kinetic, elastic and gravitational energy of a body, (rows, 3), J."""
        s = self.system
        q, v = self.q[:, s.q_slices[body]], self.v[:, s.v_slices[body]]
        numbers = np.arange(len(self.time))[rows]
        return np.array([s.bodies[body].energies(q[k], v[k], s.gravity) for k in numbers])

    def body_momenta(self, body: int) -> Array:
        """Return the momentum and angular momentum of a body, (nt, 6), kg m/s and kg m²/s."""
        s = self.system
        states = zip(self.q[:, s.q_slices[body]], self.v[:, s.v_slices[body]], strict=True)
        return np.array([s.bodies[body].momenta(q, v) for q, v in states])

    def body_axes(self, body: int) -> Array:
        """Return the axes of the frame of a body as columns, (nt, 3, 3)."""
        return rotation_matrices(self.q[:, self.system.q_slices[body]][:, QUATERNION])

    @cached_property
    def _frame_wrenches(self) -> Array:
        """Forces and moments on all frames in global components, (nt, nf, 6)."""
        self.check_oil()
        wrenches = np.zeros((len(self.time), self.system.num_frames, 6))
        for row, t, assembler in self.evaluations(nodes=True):
            assembler.residual(t)
            wrenches[row] = assembler.wrenches
        return wrenches

    def _interface_forces(self, body: int) -> Array:
        """Return force, moment of each frame of a body in turn, in its axes, (2 frames, nt, 3)."""
        vectors = _vectors(self._frame_wrenches[:, self.system.frame_slices[body]])
        return np.einsum("tji,ptj->pti", self.body_axes(body), vectors)

    # ---- joints and drivers ---------------------------------------------------------------------
    @cached_property
    def entries(self) -> dict[str, Array]:
        """Motion, power and violation of all joints and drivers, (nt, entries, ...)."""
        self.check_oil()
        s, nt = self.system.whole, len(self.time)
        joints, entries = len(s.joints), len(s.first)
        wrench, power = np.zeros((nt, entries, 12)), np.zeros((nt, entries))
        displacement, displacement_rate = np.zeros((2, nt, joints, 3))
        rotation_rate, violation = np.zeros((nt, joints)), np.zeros((nt, entries))
        for row, t, assembler in self.evaluations():
            values = np.abs(assembler.constraints(t))
            violation[row] = [values[part].max(initial=0.0) for part in s.entry_slices]
            wrench[row] = assembler.joint_wrenches() + assembler.loads.clearance_wrenches()
            u = np.hstack([assembler.velocities[s.first], assembler.velocities[s.second]])
            power[row] = np.einsum("jk,jk->j", wrench[row], u)
            displacement[row], displacement_rate[row] = assembler.frames.joint_displacements()
            _, rates, _ = assembler.frames.axis_coordinates()
            rotation_rate[row], _ = rates.T
        joint = np.concatenate([np.arange(joints), s.driven_joints])
        motion = {
            "rotation": self.angles,
            "rotation_rate": rotation_rate,
            "displacement": displacement,
            "displacement_rate": displacement_rate,
        }
        motion = {key: values[:, joint] for key, values in motion.items()}
        return motion | {"wrench": wrench, "power": power, "violation": violation}

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints and drivers."""
        return [part.name for part in self._entry_parts()]

    def _entry_parts(self) -> list[Joint | Driver]:
        """Return the joints and drivers."""
        return [*self.system.joints, *self.system.drivers]

    def _joint(self, name: str) -> PartData:
        """Return the quantities of a joint or a driver, with forces in axes of the first frame."""
        s, entry = self.system.whole, self.joint_names.index(name)
        part = self._entry_parts()[entry]
        joint = entry if entry < len(s.joints) else int(s.driven_joints[entry - len(s.joints)])
        values = _together(FORCES, lambda: self._reactions(entry))
        values["rotation"] = lambda: self.angles[:, joint]
        for key in part.run_quantities:
            if key not in (*values, *INTEGRALS):
                values[key] = lambda key=key: self.entries[key][:, entry]  # type: ignore[misc]
        return PartData(name, self.time, part.run_quantities, values)

    def _reactions(self, entry: int) -> tuple[Array, Array]:
        """Return force and moment of a joint or driver in axes of its first frame, (nt, 3) each."""
        s, reactions = self.system.whole, np.zeros((len(self.time), 6))
        if entry < len(s.joints) and not s.joints[entry].reports_multipliers:
            element = self.element(s.joints[entry].name, "first")
            return element.attribute("force"), element.attribute("moment")
        rows = np.flatnonzero(s.row_entry == entry)
        reactions[:, s.row_motion[rows]] -= self.multipliers[:, rows]
        force, moment = _vectors(reactions)
        return force, moment

    # ---- loads ----------------------------------------------------------------------------------
    @cached_property
    def _loads(self) -> dict[str, dict[str, Array]]:
        """Wrench, motion, power and energy of all loads over time, by name."""
        self.check_oil()
        rows: dict[str, dict[str, list[Any]]] = {load.name: {} for load in self.system.loads}
        for _, t, assembler in self.evaluations():
            for load, values in assembler.loads.records(t):
                for key, value in values.items():
                    rows[load.name].setdefault(key, []).append(value)
        return {
            name: {key: np.array(values, dtype=float) for key, values in row.items()}
            for name, row in rows.items()
        }

    def element(self, name: str, axes: str) -> PartData:
        """Return the quantities of a joint, driver or load; see `Solution.element`."""
        s, nt = self.system, len(self.time)
        elements: tuple[Joint | Driver | Load, ...] = (*s.joints, *s.drivers, *s.loads)
        parts = {part.name: part for part in elements}
        part = parts[choice("name of a joint, driver or load", name, parts)]
        frames = _frames(part, s)
        ends = ("first", "second") if len(frames) == 2 else ("second",)
        choice(f"axes of {name!r}", axes, ("global", *ends))
        quantities = part.run_quantities
        if isinstance(part, Joint | Driver):
            entry, quantities = [*parts].index(name), LOAD
            arrays = {key: x[:, entry] for key, x in self.entries.items() if key != "violation"}
            arrays["energy"], loaded_body = np.zeros(nt), None
        else:
            arrays, loaded_body = dict(self._loads[name]), part.loaded_body
        vectors = _vectors(arrays.pop("wrench"))
        if axes != "global":
            if frames:
                Q = self._frame_axes(frames[ends.index(axes)])
            else:
                Q = self.body_axes(s.body_index(loaded_body or ""))
            vectors = np.einsum("tji,ptj->pti", Q, vectors)
        *first, force, moment = vectors
        arrays = {"force": force, "moment": moment, **arrays}
        arrays |= zip(("first_force", "first_moment"), first, strict=False)
        keys = [key for key in quantities if key in arrays]
        # Undeclared quantities are kept, so that `PartData.declaration` raises an error for them
        keys += [key for key in arrays if key not in quantities]
        values: dict[str, Values] = {
            key: lambda key=key: arrays[key]  # type: ignore[misc]
            for key in keys
        }
        return PartData(name, self.time, quantities, values)

    def _frame_axes(self, frame: FrameRef) -> Array:
        """Return the axes of a frame as columns, (nt, 3, 3)."""
        index, axes = self.system.frame_index(frame), np.zeros((len(self.time), 3, 3))
        for row, _, assembler in self.evaluations():
            axes[row] = assembler.rotation[index]
        return axes


def _together(keys: Iterable[str], arrays: Callable[[], Iterable[Array]]) -> dict[str, Values]:
    """Return the functions of several quantities that are computed together, when first used."""
    computed: dict[str, Array] = {}
    names = [*keys]

    def value(key: str) -> Array:
        if not computed:
            computed.update(zip(names, arrays(), strict=True))
        return computed[key]

    return {key: partial(value, key) for key in names}


def _strains(gauge: StrainGauge, eta: Values) -> Array:
    """Return the strain of each grid of a gauge over time, (grids, nt)."""
    return (eta() @ gauge.modes.T).T


def _vectors(rows: Array) -> Array:
    """Split rows of numbers into vectors, and return the vectors over time, (n, nt, 3)."""
    return np.moveaxis(rows.reshape(len(rows), -1, 3), 1, 0)


def _frames(part: Joint | Driver | Load, system: System) -> tuple[FrameRef, ...]:
    """Return the frames on which a part acts; a distributed load has none."""
    if isinstance(part, Joint):
        return part.first, part.second
    if isinstance(part, Driver):
        joint = system.joint(part.joint)
        return joint.first, joint.second
    return part.acting_frames(system)
