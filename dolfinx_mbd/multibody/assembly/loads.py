"""Assembly of the loads of a system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.joints import add_axis_forces
from dolfinx_mbd.multibody.assembly.blocks import Blocks, FrameTerms, Index
from dolfinx_mbd.multibody.assembly.frames import Axis, FrameAssembler
from dolfinx_mbd.multibody.model.force_elements import (
    ContactElement,
    FilmElement,
    JointElement,
    PairElement,
)
from dolfinx_mbd.multibody.model.loads import FrameLoad, JointCoordinate, JointLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad, pattern_rows, pattern_tangent
from dolfinx_mbd.multibody.model.system import SystemData

FrameForces = FrameLoad | PairElement | JointLoad | JointElement
"""Loads that act on frames."""


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


class LoadAssembler(FrameAssembler):
    """Loads of a system at the point of evaluation of a `FrameAssembler`."""

    def __init__(self, system: SystemData) -> None:
        super().__init__(system)
        self._surface_forces: dict[str, tuple[int, Array]] = {}
        self._find_loads()
        self._axes_of_loads = self._find_axes()
        self._loaded = self._floating.subset({k for group in self._load_groups() for k in group})

    def _find_loads(self) -> None:
        frame, axis = self.system.frame_index, self._axis
        self._frame_loads: list[tuple[FrameLoad, int]] = []
        self._pair_loads: list[tuple[PairElement, int, int]] = []
        self._pattern_loads: list[tuple[PatternLoad, int, Any, Axis | None]] = []
        self._joint_loads: list[tuple[JointLoad | JointElement, Axis, Axis]] = []
        for load in self.system.loads:
            if isinstance(load, FrameLoad):
                self._frame_loads.append((load, frame(load.frame)))
            elif isinstance(load, PairElement):
                self._pair_loads.append((load, frame(load.first), frame(load.second)))
            elif isinstance(load, JointLoad):
                load_axis = axis(JointCoordinate(load.joint, load.motion))
                self._joint_loads.append((load, load_axis, axis(load.coordinate)))
            elif isinstance(load, JointElement):
                self._joint_loads.append((load, axis(load.coordinate), axis(load.coordinate)))
            elif isinstance(load, PatternLoad):
                body, pattern = load.pattern.body, self.system.load_pattern(load)
                argument_axis = None if load.of is None else axis(load.of)
                self._pattern_loads.append(
                    (load, self.system.body_index(body), pattern, argument_axis)
                )

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
        groups += [{*self._bodies_of((i, k))} for _, i, k in self._pair_loads]
        for _, *axes in self._joint_loads:
            groups.append({k for axis in axes for k in self._bodies_of(self._joint_ends(axis))})
        for _, k, _, axis in self._pattern_loads:
            ends = () if axis is None else self._bodies_of(self._joint_ends(axis))
            groups.append({k, *ends})
        return groups

    def _find_axes(self) -> _LoadAxes:
        pairs = [axis for _, *pair in self._joint_loads for axis in pair]
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2, 2).transpose(1, 0, 2)
        axes, arguments = np.ascontiguousarray(table)
        ends = np.column_stack(self._ends)
        frames = ends[axes[:, 0]], ends[arguments[:, 0]]
        return _LoadAxes(axes, arguments, *frames, np.flatnonzero(axes[:, 1] == 0))

    def _load_coordinate(self, axis: Axis | None) -> tuple[float, float]:
        """Return value and rate of the joint coordinate of a load, or zeros if it has none."""
        if axis is None:
            return 0.0, 0.0
        values, rates, _ = self.axis_coordinates()
        return float(values[axis]), float(rates[axis])

    def arguments(self, element: PairElement, first: int, second: int) -> tuple[Any, ...]:
        """Return the arguments of the methods of an element: frames and surface coordinates."""
        pair = self.pair(first, second)
        if element.surface is None:
            return (pair,)
        q, v = self._views[int(self.system.frame_body[first])][1][:2]
        return pair, np.array([element.surface @ q[7:], element.surface @ v[6:]])

    def film_gaps(self) -> Array:
        """Return smallest gap and clearance of all oil films at the current poses, (F, 2), m."""
        films = [
            (load.smallest_gap(*self.arguments(load, *ends)), load.clearance)
            for load, *ends in self._pair_loads
            if isinstance(load, FilmElement)
        ]
        return np.array(films).reshape(-1, 2)

    def stored_energy(self, *, elastic: bool = False) -> float:
        """Return the energy of springs and bushings at the current poses, J.

        If `elastic`, include only the elements to which `element_power` belongs.
        """
        energy = sum(
            load.energy(*self.arguments(load, *ends))
            for load, *ends in self._pair_loads
            if load.is_elastic or not elastic
        )
        if any(isinstance(load, JointElement) for load, *_ in self._joint_loads):
            values = self.axis_coordinates()[0]
            for load, axis, _ in self._joint_loads:
                if isinstance(load, JointElement):
                    energy += load.energy(float(values[axis]))
        return float(energy)

    def element_power(self, t: float) -> tuple[float, float]:
        """Return the power of springs, stops, bushings and contacts, elastic and damping, W.

        The elastic power is minus the rate of `stored_energy`; it belongs to the forces without
        velocities. The damping power belongs to the other forces of these elements. Call
        `update_velocities` first.
        """
        elastic, total, rest = 0.0, 0.0, np.zeros(6)
        for load, *ends in self._pair_loads:
            if load.is_elastic:
                pair, *surface = arguments = self.arguments(load, *ends)
                u = np.concatenate([pair.u1, pair.u2, *(rates for _, rates in surface)])
                coordinates = [np.array([s, np.zeros_like(s)]) for s, _ in surface]
                total += float(load.wrenches(*arguments) @ u)
                elastic += float(load.wrenches(pair._replace(u1=rest, u2=rest), *coordinates) @ u)
        joint_elements = [
            (load, axis) for load, axis, _ in self._joint_loads if isinstance(load, JointElement)
        ]
        if joint_elements:
            values, speeds, _ = self.axis_coordinates()
            for element, axis in joint_elements:
                s, rate = float(values[axis]), float(speeds[axis])
                total += element.magnitude(t, s, rate) * rate
                elastic += element.magnitude(t, s, 0.0) * rate
        return elastic, total - elastic

    def contact_names(self) -> list[str]:
        """Return the name of the load of each contact point and end stop."""
        pairs = [
            (load.name, len(load.states(*self.arguments(load, *ends))))
            for load, *ends in self._pair_loads
            if isinstance(load, ContactElement)
        ]
        stops = [
            (load.name, len(load.gaps(0.0)))
            for load, *_ in self._joint_loads
            if isinstance(load, JointElement)
        ]
        return [name for name, count in pairs + stops for _ in range(count)]

    def contact_states(self) -> Array:
        """Return gap, gap rate and normal force of all contact points and end stops, (P, 3).

        The rows are in the order of `contact_names`. The normal force of end stops is NaN. Call
        `update_velocities` first.
        """
        rows = [
            load.states(*self.arguments(load, *ends))
            for load, *ends in self._pair_loads
            if isinstance(load, ContactElement)
        ]
        stops = [
            (load, axis)
            for load, axis, _ in self._joint_loads
            if isinstance(load, JointElement) and load.gaps(0.0)
        ]
        if stops:
            values, rates, _ = self.axis_coordinates()
            for load, axis in stops:
                gaps = load.gaps(float(values[axis]))
                rows.append(np.array([(gap, sign * rates[axis], np.nan) for gap, sign in gaps]))
        return np.vstack(rows) if rows else np.zeros((0, 3))

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

    def load_wrenches(self, t: float) -> Iterator[tuple[FrameForces, tuple[int, ...], Array]]:
        """Yield each load on frames with its frames and the wrenches on the frames, (6,) or (12,).

        Forces on the elastic coordinates of a body are not included; see `surface_power`. Call
        `update_velocities` first.
        """
        yield from self._frame_wrenches(t)
        if self._joint_loads:
            sizes, gradients = self._axis_forces(t)
            for (load, axis, _), size in zip(self._joint_loads, sizes, strict=True):
                yield load, self._joint_ends(axis), size * gradients[axis]

    def _frame_wrenches(
        self, t: float
    ) -> Iterator[tuple[FrameLoad | PairElement, tuple[int, ...], Array]]:
        """Yield the loads that do not act on joint coordinates, as `load_wrenches` does."""
        for frame_load, frame in self._frame_loads:
            yield frame_load, (frame,), frame_load.wrench(t, self._motion(frame))
        for element, first, second in self._pair_loads:
            wrenches = element.wrenches(*self.arguments(element, first, second))
            if element.surface is not None:
                body = int(self.system.frame_body[first])
                self._surface_forces[element.name] = body, wrenches[12:] @ element.surface
            yield element, (first, second), wrenches[:12]

    def _axis_forces(self, t: float) -> tuple[Array, Array]:
        """Return all forces along or about joint axes (L,), and the gradients of the axes."""
        values, rates, gradients = self.axis_coordinates()
        sizes = [load.magnitude(t, values[k], rates[k]) for load, _, k in self._joint_loads]
        return np.array(sizes), gradients

    def surface_power(self, element: PairElement) -> float:
        """Return the power of an element on elastic coordinates, W; see `load_wrenches`."""
        k, push = self._surface_forces[element.name]
        return float(push @ self._views[k][1][1][6:])

    def pattern_forces(self, t: float) -> Iterator[tuple[PatternLoad, int, float, Array]]:
        """Yield each distributed load, its body, its amplitude and its `pattern_rows`."""
        for load, k, pattern, axis in self._pattern_loads:
            rows = pattern_rows(pattern, self._views[k][1][0])
            yield load, k, load.size(t, *self._load_coordinate(axis)), rows

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
            if element.surface is not None:
                self._add_surface(element.surface, (ends[0], ends[1]), (D, E), K, C)
                continue
            _add_pair(second, rates, np.array([ends]), -D[None], -E[None])
        if self._joint_loads:
            self._add_joint_loads(t, second, rates, multipliers)
        if rates:
            self._update_velocity_tangents()
            rates.add_to(C, self._jacobians, self._jacobians, self._columns)
            rates.add_to(K, self._jacobians, self._tangents, self._columns)
        if self._pattern_loads:
            self._add_patterns(t, K, C)

    def _add_frame_loads(self, t: float, second: FrameTerms, rates: FrameTerms) -> None:
        length = max(1e-3, float(np.abs(self.position).max(initial=0.0)))
        for load, frame in self._frame_loads:
            if callable(load.value) or load.axes == "frame":
                matrices = np.zeros((2, 1, 12, 12))
                matrices[:, 0, :6, :6] = load.derivatives(t, self._motion(frame), length)
                _add_pair(second, rates, np.array([[frame, frame]]), *-matrices)

    def _add_joint_loads(
        self, t: float, second: FrameTerms, rates: FrameTerms, multipliers: Array
    ) -> None:
        """Add the derivatives of all loads that act on joint coordinates.

        A force along the axis of a joint is a multiplier of the opposite sign.
        """
        values, speeds, gradients = self.axis_coordinates()
        rows, loads = [], self._axes_of_loads
        for load, (joint, motion), argument in self._joint_loads:
            point = t, values[argument], speeds[argument]
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
        for load, k, pattern, coordinate in self._pattern_loads:
            value, rate = self._load_coordinate(coordinate)
            q = self._views[k][1][0]
            K.add(k, k, -load.size(t, value, rate) * pattern_tangent(pattern, q))
            by_value, by_rate = load.derivatives(t, value, rate)
            if coordinate is not None and (by_value or by_rate):
                derivative, rate_derivative = self._coordinate_derivatives(
                    coordinate, self._parts(self._jacobians), self._velocity_tangents()
                )
                bodies = self._bodies_of(self._joint_ends(coordinate))
                rows = np.zeros(self.system.num_velocities)
                rows[self.system.v_slices[k]] = -pattern_rows(pattern, q)
                change = by_value * derivative + by_rate * rate_derivative
                self._add_outer(K, rows, (k,), change, bodies)
                self._add_outer(C, rows, (k,), by_rate * derivative, bodies)

    def _add_surface(
        self,
        surface: Array,
        ends: tuple[int, int],
        derivatives: tuple[Array, Array],
        K: Blocks,
        C: Blocks,
    ) -> None:
        """Add the derivatives of an element that also acts on elastic coordinates."""
        jacobians, tangents = self._parts(self._jacobians), self._velocity_tangents()
        (k, J), (m, R) = (self._frame_jacobian(end, jacobians) for end in ends)
        S, T = (self._frame_jacobian(end, tangents)[1] for end in ends)
        extended = np.zeros((6 + len(surface), J.shape[1]))
        extended[:6], extended[6:, 6:] = J, surface
        tangent = np.zeros_like(extended)
        tangent[:6] = S
        one = np.r_[:6, 12 : 12 + len(surface)]
        parts = (k, one, extended, tangent), (m, np.arange(6, 12), R, T)
        D, E = derivatives
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
