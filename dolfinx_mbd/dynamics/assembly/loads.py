"""Assembly of the loads of a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Blocks, FrameTerms
from dolfinx_mbd.dynamics.assembly.distributed_forces import DistributedForces
from dolfinx_mbd.dynamics.assembly.forces_at_frames import ForcesAtFrames
from dolfinx_mbd.dynamics.assembly.forces_between_frames import ForcesBetweenFrames
from dolfinx_mbd.dynamics.assembly.forces_on_joints import ForcesOnJoints
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.load_terms import LoadDerivatives, StatesOfLoads
from dolfinx_mbd.kernels.columns import FORCE, MOMENT, QUATERNION
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.mechanism.force_elements import ContactElement, FilmElement
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.pattern_loads import PatternLoad

#: Entries of the memory of a state: contents of films before and after a step, and its length
CONTENT_MEMORY = "content_before", "content", "content_step"


class Loads:
    """Loads of a system at the point of evaluation of its `Frames`, by their ports."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self.system = frames, frames.system
        ports: dict[str, list[Any]] = {"frame": [], "pair": [], "joint": [], "pattern": []}
        for load in self.system.loads:
            ports[load.port].append(load)
        self._states = StatesOfLoads(frames)
        self._at_frames = ForcesAtFrames(frames, ports["frame"])
        self._pairs = ForcesBetweenFrames(frames, self._states, ports["pair"])
        self._joints = ForcesOnJoints(frames, self._states, ports["joint"])
        self._distributed = DistributedForces(frames, ports["pattern"])
        # floating bodies on which loads act or depend
        self.bodies = frames.bodies.subset({k for group in self._groups() for k in group})

    def _groups(self) -> list[set[int]]:
        """Return, for each load, the bodies on whose motion or states it depends or acts."""
        ports = self._at_frames, self._pairs, self._joints, self._distributed
        return [group for port in ports for group in port.groups()]

    def couplings(self) -> list[set[int]]:
        """Return, for each body, the other moving bodies to which joints and loads couple it."""
        frames = self._frames
        joints = [{*frames.bodies_of((int(i), int(k)))} for i, k in frames.entry_frames]
        moving = set(frames.moving)
        coupled: list[set[int]] = [set() for _ in self.system.bodies]
        for group in joints + self._groups():
            for k in group & moving:
                coupled[k] |= (group & moving) - {k}
        return coupled

    # ---- forces ---------------------------------------------------------------------------------
    def wrenches(self, t: float) -> Iterator[tuple[Load, tuple[int, ...], Array]]:
        """Yield each load on frames with its frames and the wrenches on the frames, (6,) or (12,).

        Forces on the elastic coordinates of a body are not included; see `power_on_modes`. Call
        `update_velocities` first.
        """
        yield from self._at_frames.wrenches(t)
        yield from self._pairs.wrenches(t)
        yield from self._joints.wrenches(t)

    def values(self, t: float) -> Iterator[tuple[Load, Array]]:
        """Yield the loads that may jump with their wrenches, magnitudes or amplitudes.

        Magnitudes of forces and torques of joints are those of the last evaluation.
        """
        for port in (self._at_frames, self._pairs):
            for load, _, wrench in port.wrenches(t):
                if not load.is_smooth:
                    yield load, wrench
        for (force, *_), size in zip(self._joints.items, self._joints.magnitudes, strict=True):
            if not force.is_smooth:
                yield force, np.array([size])
        for pattern, _, amplitude, _ in self._distributed.forces(t):
            yield pattern, np.array([amplitude])

    def evaluate(self, t: float) -> None:
        """Evaluate forces and torques of joints for `values`; call `update_velocities` first."""
        self._joints.evaluate(t)

    def pattern_forces(self, t: float) -> Iterator[tuple[PatternLoad, int, float, Array]]:
        """Yield each distributed load, its body, its amplitude and its `pattern_rows`."""
        return self._distributed.forces(t)

    def apply(self, t: float) -> None:
        """Add the wrenches of all loads to those of the frames."""
        self._frames.update_velocities_of(self.bodies)
        total = self._frames.wrenches
        for _, (frame,), wrench in self._at_frames.wrenches(t):
            total[frame] += wrench
        self._pairs.apply(total)
        self._joints.apply(t)

    def subtract_forces(self, t: float) -> None:
        """Subtract distributed loads and the forces on surfaces and states from the residual."""
        if self._pairs.acts_on_modes:
            self._pairs.subtract_surface_forces()
        if self._states.forces:
            self._states.subtract_forces()
        if self._distributed.items:
            self._distributed.subtract_forces(t)

    def add_derivatives(
        self, t: float, second: FrameTerms, multipliers: Array, K: Blocks, C: Blocks
    ) -> None:
        """Add the derivatives of the loads to K and C, or to the terms `second` of K.

        Forces along the axes of joints are added to the multipliers (entries, 6) instead. Call
        `update_wrenches` and then `update_jacobians` first.
        """
        rates, frames = FrameTerms(), self._frames
        target = LoadDerivatives(second, rates, multipliers, K, C)
        self._at_frames.add_derivatives(t, target)
        self._pairs.add_derivatives(target)
        self._joints.add_derivatives(t, target)
        if rates:
            frames.update_velocity_tangents()
            rates.add_to(C, frames.jacobian_table, frames.jacobian_table, frames.columns)
            rates.add_to(K, frames.jacobian_table, frames.tangent_table, frames.columns)
        self._distributed.add_derivatives(t, target)

    # ---- results --------------------------------------------------------------------------------
    def records(self, t: float) -> Iterator[tuple[Load, dict[str, Any]]]:
        """Yield each load with its wrenches, power, energy and other quantities by name.

        Call `update_velocities` first.
        """
        frames = self._frames
        for port in (self._at_frames, self._pairs, self._joints):
            for item, (load, ends, wrench) in zip(port.items, port.wrenches(t), strict=True):
                arguments = port.arguments(*item)  # type: ignore[call-arg, arg-type, misc]
                power = float(wrench @ frames.velocities[list(ends)].ravel())
                power += load.surface_power(wrench, *arguments)
                if load.acts_on_modes:
                    power += self._pairs.power_on_modes(load.name)
                values = {"wrench": wrench, "power": power, "energy": 0.0}
                yield load, values | load.record(*arguments)
        for load, body, size, rows in self._distributed.forces(t):
            view = frames.views[body]
            wrench = size * np.concatenate(
                [rows[FORCE], rotation_matrix(view.q[QUATERNION]) @ rows[MOMENT]]
            )
            values = {"wrench": wrench, "power": size * float(rows @ view.v), "energy": 0.0}
            yield load, values | load.record(size)

    def stored_energy(self, *, elastic: bool = False) -> float:
        """Return the energy of springs and bushings at the current poses, J.

        If `elastic`, include only the elements that `element_power` includes.
        """
        return float(self._pairs.energy(elastic=elastic) + self._joints.energy())

    def element_power(self, t: float) -> tuple[float, float]:
        """Return the power of springs, stops, bushings and contacts, elastic and damping, W.

        The elastic power is that of the forces which the elements would exert at zero velocities,
        and is minus the rate of `stored_energy`. The damping power is that of the other forces of
        these elements. Call `Assembler.residual` first.
        """
        (elastic, total), (on_axes, total_on_axes) = self._pairs.power(), self._joints.power(t)
        elastic += on_axes
        return elastic, total + total_on_axes - elastic

    def power_on_modes(self, t: float) -> float:
        """Return the power of distributed loads and of forces on elastic surfaces, W."""
        return self._distributed.power(t) + self._pairs.power_on_modes()

    def clearance_wrenches(self) -> Array:
        """Return the wrenches of the contacts of joints with clearance, (entries, 12).

        The rows of ideal joints and of drivers are zero. Call `update_velocities` first.
        """
        s = self.system
        wrenches = np.zeros((len(s.first), 12))
        names = {j.contact_name: k for k, j in enumerate(s.joints) if j.clearance is not None}
        for load, *ends in self._pairs.items if names else ():
            if load.name in names:
                arguments = self._pairs.arguments(load, *ends)
                wrenches[names[load.name]] = load.wrenches(*arguments)[:12]
        return wrenches

    # ---- contacts and films ---------------------------------------------------------------------
    def films(self) -> list[FilmElement]:
        """Return the oil films in the order of `film_gaps`."""
        return [load for load, *_ in self._pairs.films]

    def film_arguments(self, name: str) -> tuple[FilmElement, tuple[Any, ...]]:
        """Return an oil film, with its content, and the arguments of its methods."""
        film, *ends = next(item for item in self._pairs.films if item[0].name == name)
        return film, self._pairs.arguments(film, *ends)

    def film_gaps(self) -> Array:
        """Return smallest gaps and clearances of the oil films at present, (films, 2), m."""
        return self._pairs.film_gaps()

    @property
    def elastic_films(self) -> list[tuple[FilmElement, int, int]]:
        """Oil films in elastic bores, with the frames of bore and journal."""
        return self._pairs.elastic_films

    def gap_stiffness(self, k: int, rate_factor: float, *, assembled: bool) -> Array:
        """Return derivatives of the elastic film k, see `FilmElement.gap_stiffness`.

        If `assembled`, they are those of the last derivatives of the system, otherwise those at the
        present point.
        """
        return self._pairs.gap_stiffness(k, rate_factor, assembled=assembled)

    def gap_forces(self) -> list[Array]:
        """Return the last forces of each elastic film on the coefficients of its gap, N."""
        return self._pairs.gap_forces()

    def write_gap_gradients(self, delay: float, gradients: Array, changes: Array) -> None:
        """Write the derivatives of the coefficients of all elastic gaps by the poses of frames.

        The results have the shapes (coefficients, 12) and (coefficients, 18); see `FilmElement`.
        Call `update_velocities` first.
        """
        self._pairs.write_gap_gradients(delay, gradients, changes)

    @property
    def has_content(self) -> bool:
        """Whether the oil in a gap before a step affects an oil film."""
        return self._pairs.has_content

    def begin_step(self, content: Array, dt: float) -> None:
        """Set the contents of all films (nodes,) before a step of length `dt` (s)."""
        self._pairs.begin_step(content, dt)

    def content_memory(self, before: Array, dt: float) -> dict[str, Array]:
        """Return the contents of films before and after a step of length `dt` (s)."""
        names = CONTENT_MEMORY
        return dict(zip(names, (before, self._pairs.content(), np.array(dt)), strict=True))

    def oil_thickness(self) -> dict[str, Array]:
        """Return the oil thickness divided by the clearance at the last `wrenches`, by film."""
        return self._pairs.oil_thickness()

    def put_content(self, memory: Mapping[str, Any]) -> None:
        """Set the contents before the step that led to a state with this memory."""
        if self.has_content:
            before, _, dt = CONTENT_MEMORY
            values = memory if before in memory else self.steady_content()
            self.begin_step(values[before], float(values[dt]))

    def steady_content(self) -> dict[str, Array]:
        """Return entries of the memory of a state with films of a steady motion, if there are any.

        The content before the step is −1 m, which stands for a full gap, and the step has no
        length.
        """
        before, _, dt = CONTENT_MEMORY
        size = self._pairs.content_size
        return {before: -np.ones(size), dt: np.zeros(())} if self.has_content else {}

    def contact_spin(self, v: Array) -> float:
        """Return the largest angular speed of the bodies in contacts at velocities v, rad/s."""
        return self._pairs.contact_spin(v)

    @property
    def has_contacts(self) -> bool:
        """Whether there are contacts or end stops."""
        return bool(self._pairs.contacts or self._joints.contacts)

    def _contacts(self) -> Iterator[tuple[str, Array]]:
        """Yield the contacts, then the end stops: name and `Load.contact_states`."""
        for pair in self._pairs.contacts:
            yield pair[0].name, pair[0].contact_states(*self._pairs.arguments(*pair))
        for stop in self._joints.contacts:
            yield stop[0].name, stop[0].contact_states(*self._joints.arguments(*stop))

    def contact_names(self) -> list[str]:
        """Return the name of the load of each contact point and end stop."""
        return [name for name, states in self._contacts() for _ in states]

    def contact_states(self) -> Array:
        """Return gap, gap rate and normal force of all contact points and end stops, (points, 3).

        The rows are in the order of `contact_names`. The normal force of end stops is NaN. Call
        `update_velocities` first.
        """
        rows = [states for _, states in self._contacts()]
        if len(rows) == 1:
            return rows[0]
        return np.vstack(rows) if rows else np.zeros((0, 3))

    def contact_sizes(self) -> Array:
        """Return the `size` of each contact point in the order of `contact_names`, (points,), m.

        Unknown sizes are replaced by the size of the mechanism; those of end stops are infinite.
        """
        sizes = {
            load.name: cast("ContactElement", load).size or self.system.size
            for load, *_ in self._pairs.contacts
        }
        return np.array([sizes.get(name, np.inf) for name in self.contact_names()])
