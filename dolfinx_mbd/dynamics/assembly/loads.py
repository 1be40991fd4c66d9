"""Assembly of the loads of a system."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.dynamics.assembly.blocks import Blocks, FrameTerms, Index
from dolfinx_mbd.dynamics.assembly.frames import Axis, FrameAssembler
from dolfinx_mbd.kernels.joints import add_axis_forces
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.force_elements import ContactElement, FilmElement, PairElement
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.loads import FrameLoad, JointCoordinate, JointForce
from dolfinx_mbd.mechanism.pattern_loads import PatternLoad, pattern_rows, pattern_tangent
from dolfinx_mbd.mechanism.system import SystemData


class _LoadAxes(NamedTuple):
    """Axes of all loads on joint coordinates.

    `axes` and `arguments` (L, 2) contain the `Axis` on which a load acts or depends, `frames` and
    `argument_frames` (L, 2) the frames of these joints. `torques` contains the indices of the loads
    on rotations.
    """

    axes: Index
    arguments: Index
    frames: Index
    argument_frames: Index
    torques: Index


class _DistributedLoad(NamedTuple):
    """A distributed load with the body and pattern, and the motion on which it depends."""

    load: PatternLoad
    body: int
    pattern: LoadPattern
    axis: Axis | None
    frames: tuple[int, ...]


class LoadAssembler(FrameAssembler):
    """Loads of a system at the point of evaluation of a `FrameAssembler`."""

    def __init__(self, system: SystemData) -> None:
        super().__init__(system)
        self._surface_forces: dict[str, tuple[int, Array]] = {}
        self._state_forces: dict[str, tuple[int, Array]] = {}
        self._find_loads()
        self._axes_of_loads = self._find_axes()
        self._loaded = self._floating.subset({k for group in self._load_groups() for k in group})

    def _find_loads(self) -> None:
        frame, axis = self.system.frame_index, self._axis
        loads: dict[str, list[Any]] = {"frame": [], "pair": [], "joint": [], "pattern": []}
        for load in self.system.loads:
            loads[load.port].append(load)
        self._frame_loads: list[tuple[FrameLoad, int]] = [
            (load, frame(load.frame)) for load in loads["frame"]
        ]
        self._pair_loads: list[tuple[PairElement, int, int]] = [
            (load, frame(load.first), frame(load.second)) for load in loads["pair"]
        ]
        self._films = [
            (cast("FilmElement", load), one, two)
            for load, one, two in self._pair_loads
            if load.has_film
        ]
        self._joint_loads: list[tuple[JointForce, Axis, Axis]] = [
            (load, axis(JointCoordinate(load.joint, load.motion)), axis(load.coordinate))
            for load in loads["joint"]
        ]
        self._pattern_loads = [
            _DistributedLoad(
                load,
                self.system.body_index(load.loaded_body),
                self.system.load_pattern(load),
                None if load.coordinate is None else axis(load.coordinate),
                tuple(map(frame, load.sources)),
            )
            for load in loads["pattern"]
        ]
        # angular velocities of the bodies in contacts
        self._contact_spins = [
            spin
            for load, *ends in self._pair_loads
            if load.has_contacts
            for spin in self._spins((ends[0], ends[1]))
        ]

    def _spins(self, frames: tuple[int, int]) -> list[slice]:
        """Return the slices of v with the angular velocities of the bodies of two frames."""
        starts = [
            self.system.v_slices[k].start
            for k in self._bodies_of(frames)
            if isinstance(self.system.bodies[k], FloatingBody)
        ]
        return [slice(start + 3, start + 6) for start in starts]

    def _add_outer(
        self,
        target: Blocks,
        column: Array,
        rows_of: Iterable[int],
        row: Array,
        columns_of: Iterable[int],
    ) -> None:
        """Add column ⊗ row, nonzero only at the bodies `rows_of` and `columns_of`."""
        vs = self.system.v_slices
        for k in set(rows_of):
            for m in set(columns_of):
                if vs[k].start == vs[k].stop or vs[m].start == vs[m].stop:
                    continue
                target.add(k, m, np.outer(column[vs[k]], row[vs[m]]))

    def couplings(self) -> list[set[int]]:
        """Return, for each body, the other moving bodies to which joints and loads couple it."""
        joints = [{*self._bodies_of((int(i), int(k)))} for i, k in self._entry_frames]
        moving = set(self._moving)
        coupled: list[set[int]] = [set() for _ in self.system.bodies]
        for group in joints + self._load_groups():
            for k in group & moving:
                coupled[k] |= (group & moving) - {k}
        return coupled

    def _load_groups(self) -> list[set[int]]:
        """Return, for each load, the bodies on whose motion or coordinates it depends or acts."""
        groups = [{*self._bodies_of((k, k))} for _, k in self._frame_loads]
        for element, *ends in self._pair_loads:
            bodies = self._bodies_of((ends[0], ends[1]))
            groups.append({*bodies, *self._state_body(element.name)})
        for load, *axes in self._joint_loads:
            moved = {k for axis in axes for k in self._bodies_of(self._joint_ends(axis))}
            groups.append({*moved, *self._state_body(load.name)})
        return groups + [{item.body, *self._source_bodies(item)} for item in self._pattern_loads]

    def _source_bodies(self, item: _DistributedLoad) -> set[int]:
        """Return the bodies on whose motion the amplitude of a distributed load depends."""
        frames = item.frames if item.axis is None else self._joint_ends(item.axis)
        return {int(self.system.frame_body[frame]) for frame in frames}

    def _find_axes(self) -> _LoadAxes:
        pairs = [axis for _, *pair in self._joint_loads for axis in pair]
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2, 2).transpose(1, 0, 2)
        axes, arguments = np.ascontiguousarray(table)
        ends = np.column_stack(self._ends)
        frames = ends[axes[:, 0]], ends[arguments[:, 0]]
        return _LoadAxes(axes, arguments, *frames, np.flatnonzero(axes[:, 1] == 0))

    def _source_motion(self, item: _DistributedLoad) -> tuple[Any, ...]:
        """Return the arguments of the amplitude of a distributed load after the time."""
        if item.axis is None:
            return tuple(map(self._motion, item.frames))
        values, rates, _ = self.axis_coordinates()
        return float(values[item.axis]), float(rates[item.axis])

    def arguments(self, element: PairElement, first: int, second: int) -> tuple[Any, ...]:
        """Return the arguments of the methods of an element; see `PairElement`."""
        pair = self.pair(first, second)
        if element.timed:
            return pair, self.time, self.load_states(element.name)
        if element.surface is None:
            return (pair,)
        q, v = self._views[int(self.system.frame_body[first])][1][:2]
        return pair, np.array([element.surface @ q[7:], element.surface @ v[6:]])

    def _state_body(self, load: str) -> tuple[int, ...]:
        """Return the index of the body with the states of a load, or nothing without states."""
        return self.system.state_bodies.get(load, ())

    def load_states(self, load: str) -> Array:
        """Return the states of a load, shape (m,)."""
        for k in self._state_body(load):
            return self._views[k][1][1]
        return np.zeros(0)

    def _set_state_rates(self, load: str, rates: Array) -> None:
        """Store the rates of the states of a load as forces on the body of the states."""
        for k in self._state_body(load):
            self._state_forces[load] = k, self.system.bodies[k].typical_mass * rates

    def film_gaps(self) -> Array:
        """Return smallest gap and clearance of all oil films at the current poses, (F, 2), m."""
        films = [
            (load.smallest_gap(*self.arguments(load, *ends)), load.clearance)
            for load, *ends in self._films
        ]
        return np.array(films).reshape(-1, 2)

    def films(self) -> list[FilmElement]:
        """Return the oil films in the order of `film_gaps`."""
        return [load for load, *_ in self._films]

    def stored_energy(self, *, elastic: bool = False) -> float:
        """Return the energy of springs and bushings at the current poses, J.

        If `elastic`, include only the elements that `element_power` includes.
        """
        energy = sum(
            load.energy(*self.arguments(load, *ends))
            for load, *ends in self._pair_loads
            if load.is_elastic or not elastic
        )
        joint_loads = [item for item in self._joint_loads if item[0].stores_energy]
        if joint_loads:
            values = self.axis_coordinates()[0]
            energy += sum(load.energy(float(values[axis])) for load, axis, _ in joint_loads)
        return float(energy)

    def element_power(self, t: float) -> tuple[float, float]:
        """Return the power of springs, stops, bushings and contacts, elastic and damping, W.

        The elastic power is that of the forces which the elements would exert at zero velocities,
        and is minus the rate of `stored_energy`. The damping power is that of the other forces of
        these elements. Call `update_velocities` first.
        """
        elastic, total, rest = 0.0, 0.0, np.zeros(6)
        for load, *ends in self._pair_loads:
            if load.is_elastic:
                pair, *others = arguments = self.arguments(load, *ends)
                u = np.concatenate([pair.u1, pair.u2])
                if load.surface is not None:
                    s, rates = others[0]
                    u, others = np.concatenate([u, rates]), [np.array([s, np.zeros_like(s)])]
                total += float(load.wrenches(*arguments) @ u)
                elastic += float(load.wrenches(pair._replace(u1=rest, u2=rest), *others) @ u)
        joint_loads = [item for item in self._joint_loads if item[0].is_elastic]
        if joint_loads:
            values, speeds, _ = self.axis_coordinates()
            for joint_load, axis, _ in joint_loads:
                s, rate = float(values[axis]), float(speeds[axis])
                total += joint_load.magnitude(t, s, rate) * rate
                elastic += joint_load.magnitude(t, s, 0.0) * rate
        return elastic, total - elastic

    def record_arguments(self, load: Load, frames: tuple[int, ...]) -> tuple[Any, ...]:
        """Return the arguments of `Load.record` for a load of `load_wrenches` and its frames."""
        if load.port == "pair":
            return self.arguments(cast("PairElement", load), *frames)
        if load.port == "frame":
            return (self._motion(*frames),)
        joint_load = cast("JointForce", load)
        motion = joint_load.motion or "rotation"
        axis = self._axis(JointCoordinate(joint_load.joint, motion))
        values, rates, _ = self.axis_coordinates()
        return float(values[axis]), float(rates[axis]), self.load_states(load.name)

    def _contacts(self) -> Iterator[tuple[Load, tuple[Any, ...]]]:
        """Yield the contacts, then the end stops, with the arguments of `Load.contact_states`."""
        for load, *ends in self._pair_loads:
            if load.has_contacts:
                yield load, self.arguments(load, *ends)
        stops = [item for item in self._joint_loads if item[0].has_contacts]
        if stops:
            values, rates, _ = self.axis_coordinates()
            for stop, axis, _ in stops:
                yield stop, (values[axis], rates[axis], self.load_states(stop.name))

    def contact_names(self) -> list[str]:
        """Return the name of the load of each contact point and end stop."""
        contacts = self._contacts()
        return [load.name for load, point in contacts for _ in load.contact_states(*point)]

    def contact_sizes(self) -> Array:
        """Return the `size` of each contact point in the order of `contact_names`, (P,), m.

        Unknown sizes are replaced by the size of the mechanism; those of end stops are infinite.
        """
        sizes = {
            load.name: cast("ContactElement", load).size or self.system.size
            for load, *_ in self._pair_loads
            if load.has_contacts
        }
        return np.array([sizes.get(name, np.inf) for name in self.contact_names()])

    def contact_states(self) -> Array:
        """Return gap, gap rate and normal force of all contact points and end stops, (P, 3).

        The rows are in the order of `contact_names`. The normal force of end stops is NaN. Call
        `update_velocities` first.
        """
        rows = [load.contact_states(*point) for load, point in self._contacts()]
        return np.vstack(rows) if rows else np.zeros((0, 3))

    def contact_spin(self, v: Array) -> float:
        """Return the largest angular speed of the bodies in contacts at velocities v, rad/s."""
        parts = (v[part] for part in self._contact_spins)
        return math.sqrt(max((float(omega @ omega) for omega in parts), default=0.0))

    def clearance_wrenches(self) -> Array:
        """Return the wrenches of the contacts of joints with clearance, (entries, 12).

        The rows of ideal joints and of drivers are zero. Call `update_velocities` first.
        """
        s = self.system
        wrenches = np.zeros((len(s.first), 12))
        names = {j.contact_name: k for k, j in enumerate(s.joints) if j.clearance is not None}
        for load, *ends in self._pair_loads if names else ():
            if load.name in names:
                wrenches[names[load.name]] = load.wrenches(*self.arguments(load, *ends))[:12]
        return wrenches

    def load_wrenches(self, t: float) -> Iterator[tuple[Load, tuple[int, ...], Array]]:
        """Yield each load on frames with its frames and the wrenches on the frames, (6,) or (12,).

        Forces on the elastic coordinates of a body are not included; see `surface_power`. Call
        `update_velocities` first.
        """
        yield from self._frame_wrenches(t)
        if self._joint_loads:
            sizes, gradients = self._axis_forces(t)
            for (load, axis, _), size in zip(self._joint_loads, sizes, strict=True):
                yield load, self._joint_ends(axis), size * gradients[axis]

    def _frame_wrenches(self, t: float) -> Iterator[tuple[Load, tuple[int, ...], Array]]:
        """Yield the loads that do not act on joint coordinates, as `load_wrenches` does."""
        for frame_load, frame in self._frame_loads:
            yield frame_load, (frame,), frame_load.wrench(t, self._motion(frame))
        for element, first, second in self._pair_loads:
            wrenches = element.wrenches(*self.arguments(element, first, second))
            if element.timed:
                self._set_state_rates(element.name, wrenches[12:])
            if element.surface is not None:
                body = int(self.system.frame_body[first])
                self._surface_forces[element.name] = body, wrenches[12:] @ element.surface
            yield element, (first, second), wrenches[:12]

    def _axis_forces(self, t: float) -> tuple[Array, Array]:
        """Return all forces along or about joint axes (L,), and the gradients of the axes."""
        values, rates, gradients = self.axis_coordinates()
        sizes = np.empty(len(self._joint_loads))
        for i, (load, _, k) in enumerate(self._joint_loads):
            if self._state_body(load.name):
                states = self.load_states(load.name)
                sizes[i], *speeds = load.evaluate(t, values[k], rates[k], states)
                self._set_state_rates(load.name, np.array(speeds))
            else:
                sizes[i] = load.magnitude(t, values[k], rates[k])
        return sizes, gradients

    def surface_power(self, element: Load) -> float:
        """Return the power of an element on elastic coordinates, W; see `load_wrenches`."""
        k, push = self._surface_forces[element.name]
        return float(push @ self._views[k][1][1][6:])

    def pattern_forces(self, t: float) -> Iterator[tuple[PatternLoad, int, float, Array]]:
        """Yield each distributed load, its body, its amplitude and its `pattern_rows`."""
        for item in self._pattern_loads:
            rows = pattern_rows(item.pattern, self._views[item.body][1][0])
            yield item.load, item.body, item.load.size(t, *self._source_motion(item)), rows

    def _apply_loads(self, t: float) -> None:
        self._update_velocities(self._loaded)
        for _, frames, wrench in self._frame_wrenches(t):
            for k, frame in enumerate(frames):
                self.wrenches[frame] += wrench[6 * k : 6 * k + 6]
        if self._joint_loads:
            sizes, gradients = self._axis_forces(t)
            loads = self._axes_of_loads
            add_axis_forces(sizes, gradients, loads.axes, loads.frames, self.wrenches)

    def _apply_patterns(self, t: float) -> None:
        """Subtract the distributed loads and the forces on elastic surfaces from the residual."""
        for k, push in self._surface_forces.values():
            _, _, rows, scale, _, _ = self._views[k]
            rows[6:] -= push
            scale[6:] += np.abs(push)
        for k, push in self._state_forces.values():
            _, _, rows, scale, _, _ = self._views[k]
            rows -= push
            scale += np.abs(push)
        for _, k, size, direction in self.pattern_forces(t):
            _, _, rows, scale, _, _ = self._views[k]
            force = size * direction
            rows -= force
            scale += np.abs(force)

    def _add_loads(
        self, t: float, second: FrameTerms, multipliers: Array, K: Blocks, C: Blocks
    ) -> None:
        """Add the derivatives of the loads to K and C, or to the terms `second` of K.

        Forces along the axes of joints are added to the multipliers (entries, 6) instead.

        Call `update_wrenches` and then `update_jacobians` first.
        """
        rates = FrameTerms()
        self._add_frame_loads(t, second, rates)
        for element, *ends in self._pair_loads:
            D, E = element.derivatives(*self.arguments(element, *ends))
            if len(D) > 12:
                self._add_extended(element, (ends[0], ends[1]), (D, E), K, C)
                continue
            _add_pair(second, rates, np.array([ends]), -D[None], -E[None])
        if self._joint_loads:
            self._add_joint_loads(t, second, rates, multipliers, (K, C))
        if rates:
            self._update_velocity_tangents()
            rates.add_to(C, self._jacobians, self._jacobians, self._columns)
            rates.add_to(K, self._jacobians, self._tangents, self._columns)
        if self._pattern_loads:
            self._add_patterns(t, K, C)

    def _add_frame_loads(self, t: float, second: FrameTerms, rates: FrameTerms) -> None:
        length = self._length()
        for load, frame in self._frame_loads:
            if callable(load.value) or load.axes == "frame":
                matrices = np.zeros((2, 1, 12, 12))
                matrices[:, 0, :6, :6] = load.derivatives(t, self._motion(frame), length)
                _add_pair(second, rates, np.array([[frame, frame]]), *-matrices)

    def _add_joint_states(
        self,
        load: JointForce,
        point: tuple[float, float, float],
        axes: tuple[Axis, Axis],
        K: Blocks,
        C: Blocks,
    ) -> tuple[float, float, float]:
        """Add the derivatives of the rates of states, and of a load with respect to its states.

        Return the magnitude of the load and its derivatives with respect to its coordinate and its
        rate.
        """
        (k,), (on, of) = self._state_body(load.name), axes
        value = load.evaluate(*point, self.load_states(load.name))[0]
        slopes = load.slopes(*point, self.load_states(load.name))
        rows = self.system.bodies[k].typical_mass * slopes[1:]
        jacobians, tangents = self._parts(self._jacobians), self._velocity_tangents()
        gradient, rate_change = self._coordinate_derivatives(of, jacobians, tangents)
        direction = self._transform(self.axis_coordinates()[2][on], self._joint_ends(on), jacobians)
        loaded, bodies = (self._bodies_of(self._joint_ends(axis)) for axis in (on, of))
        unit = np.zeros((len(rows), self.system.num_velocities))
        unit[:, self.system.v_slices[k]] = np.eye(len(rows))
        for row, column in zip(rows, unit, strict=True):
            self._add_outer(K, -column, (k,), row[0] * gradient + row[1] * rate_change, bodies)
            self._add_outer(C, -column, (k,), row[1] * gradient, bodies)
            self._add_outer(C, -column, (k,), row[2:] @ unit, (k,))
        self._add_outer(C, -direction, loaded, slopes[0, 2:] @ unit, (k,))
        return float(value), float(slopes[0, 0]), float(slopes[0, 1])

    def _add_joint_loads(
        self,
        t: float,
        second: FrameTerms,
        rates: FrameTerms,
        multipliers: Array,
        blocks: tuple[Blocks, Blocks],
    ) -> None:
        """Add the derivatives of all loads that act on joint coordinates.

        A force along the axis of a joint is a multiplier of the opposite sign.
        """
        values, speeds, gradients = self.axis_coordinates()
        rows, loads, (K, C) = [], self._axes_of_loads, blocks
        for load, (joint, motion), argument in self._joint_loads:
            point = t, values[argument], speeds[argument]
            if self._state_body(load.name):
                axes = (joint, motion), argument
                rows.append(self._add_joint_states(load, point, axes, K, C))
            else:
                rows.append((load.magnitude(*point), *load.derivatives(*point)))
            if motion == 1:
                multipliers[joint, 2] -= rows[-1][0]
        size, by_value, by_rate = np.array(rows).T[:, :, None]
        if len(loads.torques):
            frames, D = loads.frames[loads.torques], self._axis_seconds(loads.axes[loads.torques])
            second.add(-size[loads.torques, :, None] * D, frames, frames)
        if not any(value or rate for _, value, rate in rows):
            return
        direction = gradients[tuple(loads.axes.T)][:, :, None]
        derivative = gradients[tuple(loads.arguments.T)][:, None]
        change = by_value[:, None] * derivative
        if any(rate for *_, rate in rows):
            u = self.velocities[loads.argument_frames].reshape(-1, 1, 12)
            change += by_rate[:, None] * (u @ self._axis_seconds(loads.arguments))
            by_speed = by_rate[:, None] * derivative
            rates.add(-direction * by_speed, loads.frames, loads.argument_frames)
        second.add(-direction * change, loads.frames, loads.argument_frames)

    def _add_patterns(self, t: float, K: Blocks, C: Blocks) -> None:
        """Add the derivatives of the distributed loads."""
        for item in self._pattern_loads:
            load, k, pattern = item[:3]
            q = self._views[k][1][0]
            K.add(k, k, -load.size(t, *self._source_motion(item)) * pattern_tangent(pattern, q))
            if callable(load.value) and load.of is not None:
                rows = np.zeros(self.system.num_velocities)
                rows[self.system.v_slices[k]] = -pattern_rows(pattern, q)
                bodies = self._source_bodies(item)
                by_q, by_v = self._amplitude_derivatives(t, item)
                self._add_outer(K, rows, (k,), by_q, bodies)
                self._add_outer(C, rows, (k,), by_v, bodies)

    def _amplitude_derivatives(self, t: float, item: _DistributedLoad) -> tuple[Array, Array]:
        """Return the derivatives (nv,) of an amplitude with respect to coordinates and v."""
        jacobians, tangents = self._parts(self._jacobians), self._velocity_tangents()
        motion = self._source_motion(item)
        if item.axis is not None:
            by_value, by_rate = item.load.derivatives(t, *motion)
            value, rate = self._coordinate_derivatives(item.axis, jacobians, tangents)
            return by_value * value + by_rate * rate, by_rate * value
        by_q, by_v = np.zeros((2, self.system.num_velocities))
        derivatives = item.load.frame_derivatives(t, motion, self._length())
        for frame, (by_pose, by_velocity) in zip(
            item.frames, derivatives.reshape(-1, 2, 6), strict=True
        ):
            k, J = self._frame_jacobian(frame, jacobians)
            part = self.system.v_slices[k]
            by_q[part] += by_pose @ J + by_velocity @ self._frame_jacobian(frame, tangents)[1]
            by_v[part] += by_velocity @ J
        return by_q, by_v

    def _length(self) -> float:
        """Return the largest coordinate of a frame, m, for steps of differences."""
        return max(1e-3, float(np.abs(self.position).max(initial=0.0)))

    def _add_extended(
        self,
        element: PairElement,
        ends: tuple[int, int],
        derivatives: tuple[Array, Array],
        K: Blocks,
        C: Blocks,
    ) -> None:
        """Add the derivatives of an element that also acts on elastic coordinates or states."""
        jacobians, tangents = self._parts(self._jacobians), self._velocity_tangents()
        (k, J), (m, R) = (self._frame_jacobian(end, jacobians) for end in ends)
        S, T = (self._frame_jacobian(end, tangents)[1] for end in ends)
        D, E = derivatives
        count = len(D) - 12
        more, first = np.arange(12, 12 + count), np.arange(6)
        parts = [(k, first, J, S), (m, np.arange(6, 12), R, T)]
        for state_body in self._state_body(element.name):
            unit, mass = np.eye(count), self.system.bodies[state_body].typical_mass
            D, E = D.copy(), E.copy()
            D[12:] *= mass
            E[12:] *= mass
            parts.append((state_body, more, unit, np.zeros_like(unit)))
        if element.surface is not None:
            extended = np.zeros((6 + count, J.shape[1]))
            extended[:6], extended[6:, 6:] = J, element.surface
            tangent = np.zeros_like(extended)
            tangent[:6] = S
            parts[0] = k, np.concatenate([first, more]), extended, tangent
        parts = [part for part in parts if part[2].shape[1]]  # the others do not move
        for row, i, left, _ in parts:
            for column, j, right, change in parts:
                rate = left.T @ E[np.ix_(i, j)]
                K.add(row, column, -left.T @ (D[np.ix_(i, j)] @ right) - rate @ change)
                C.add(row, column, -rate @ right)


def _add_pair(second: FrameTerms, rates: FrameTerms, ends: Index, D: Array, E: Array) -> None:
    """Add derivatives (1, 12, 12) with respect to poses and velocities of two frames."""
    second.add(D, ends, ends)
    if E.any():
        rates.add(E, ends, ends)
