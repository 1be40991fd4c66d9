"""Assembly of torques about and forces along the axes of joints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Index
from dolfinx_mbd.dynamics.assembly.frames import Axis, Frames
from dolfinx_mbd.dynamics.assembly.load_terms import LoadDerivatives, StatesOfLoads, add_outer
from dolfinx_mbd.kernels.columns import ALONG_Z
from dolfinx_mbd.kernels.joints import ABOUT, ALONG, add_axis_forces
from dolfinx_mbd.mechanism.loads import JointForce


class _LoadAxes(NamedTuple):
    """Axes of all loads on joint coordinates.

    `axes` and `arguments` (loads, 2) contain the `Axis` on which a load acts or depends, `frames`
    and `argument_frames` (loads, 2) the frames of these joints. `torques` contains the indices of
    the loads on rotations.
    """

    axes: Index
    arguments: Index
    frames: Index
    argument_frames: Index
    torques: Index


class ForcesOnJoints:
    """Loads with the port ``joint``."""

    def __init__(self, frames: Frames, states: StatesOfLoads, loads: Iterable[JointForce]) -> None:
        self._frames, self._states, axis = frames, states, frames.axis
        self.items: list[tuple[JointForce, Axis, Axis]] = [
            (load, axis(load.loaded_coordinate), axis(load.coordinate)) for load in loads
        ]
        self.contacts = [item for item in self.items if item[0].has_contacts]
        self._elastic = [item for item in self.items if item[0].is_elastic]
        self._have_states = [bool(states.body(load.name)) for load, *_ in self.items]
        self._axes = self._find_axes()
        # forces and torques of all loads at the last evaluation, (loads,)
        self.magnitudes = np.zeros(len(self.items))

    def _find_axes(self) -> _LoadAxes:
        """Return the axes on which the loads act or depend, with the frames of their joints."""
        pairs = [axis for _, *pair in self.items for axis in pair]
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2, 2).transpose(1, 0, 2)
        axes, arguments = np.ascontiguousarray(table)
        ends = np.column_stack(self._frames.joint_ends)
        (joints, motions), (argument_joints, _) = axes.T, arguments.T
        torques = np.flatnonzero(motions == ABOUT)
        return _LoadAxes(axes, arguments, ends[joints], ends[argument_joints], torques)

    def groups(self) -> list[set[int]]:
        """Return, for each load, the bodies on whose motion or states it depends or acts."""
        bodies_of, ends_of = self._frames.bodies_of, self._frames.ends_of
        return [
            {*bodies_of(ends_of(axis)), *bodies_of(ends_of(source)), *self._states.body(load.name)}
            for load, axis, source in self.items
        ]

    def arguments(self, load: JointForce, axis: Axis, source: Axis) -> tuple[float, float, Array]:
        """Return the arguments of `Load.record`: coordinate, rate and states."""
        values, rates, _ = self._frames.axis_coordinates()
        return float(values[axis]), float(rates[axis]), self._states.values(load.name)

    def wrenches(self, t: float) -> Iterator[tuple[JointForce, tuple[int, ...], Array]]:
        """Yield each load with the frames of its joint and the wrenches on them, (12,)."""
        if self.items:
            sizes, gradients = self._sizes(t)
            for (load, axis, _), size in zip(self.items, sizes, strict=True):
                yield load, self._frames.ends_of(axis), size * gradients[axis]

    def apply(self, t: float) -> None:
        """Add the wrenches to those of the frames."""
        if self.items:
            sizes, gradients = self._sizes(t)
            axes, frames = self._axes, self._frames
            add_axis_forces(sizes, gradients, axes.axes, axes.frames, frames.wrenches)

    def evaluate(self, t: float) -> None:
        """Compute the attribute `magnitudes`."""
        if self.items:
            self._sizes(t)

    def _sizes(self, t: float) -> tuple[Array, Array]:
        """Return all forces along or about joint axes (loads,), and the gradients of the axes."""
        values, rates, gradients = self._frames.axis_coordinates()
        self.magnitudes = sizes = np.empty(len(self.items))
        for i, ((load, _, k), has_states) in enumerate(
            zip(self.items, self._have_states, strict=True)
        ):
            if has_states:
                states = self._states.values(load.name)
                sizes[i], *speeds = load.evaluate(t, values[k], rates[k], states)
                self._states.set_rates(load.name, np.array(speeds))
            else:
                sizes[i] = load.magnitude(t, values[k], rates[k])
        return sizes, gradients

    def energy(self) -> float:
        """Return the stored energy, J."""
        items = [item for item in self.items if item[0].stores_energy]
        if not items:
            return 0.0
        values, _, _ = self._frames.axis_coordinates()
        return sum(load.energy(float(values[axis])) for load, axis, _ in items)

    def power(self, t: float) -> tuple[float, float]:
        """Return the elastic and the total power of the elastic elements, W."""
        elastic, total = 0.0, 0.0
        if self._elastic:
            values, speeds, _ = self._frames.axis_coordinates()
            for load, axis, _ in self._elastic:
                s, rate = float(values[axis]), float(speeds[axis])
                total += load.magnitude(t, s, rate) * rate
                elastic += load.magnitude(t, s, 0.0) * rate
        return elastic, total

    def add_derivatives(self, t: float, target: LoadDerivatives) -> None:
        """Add the derivatives of the loads.

        A force along the axis of a joint is a multiplier of the opposite sign.
        """
        if not self.items:
            return
        values, speeds, gradients = self._frames.axis_coordinates()
        rows, loads = [], self._axes
        for load, (joint, motion), argument in self.items:
            point = t, values[argument], speeds[argument]
            if self._states.body(load.name):
                axes = (joint, motion), argument
                rows.append(self._add_states(load, point, axes, target))
            else:
                rows.append((load.magnitude(*point), *load.derivatives(*point)))
            if motion == ALONG:
                size, *_ = rows[-1]
                target.multipliers[joint, ALONG_Z] -= size
        size, by_value, by_rate = np.array(rows).T[:, :, None]
        if len(loads.torques):
            frames = loads.frames[loads.torques]
            D = self._frames.axis_seconds(loads.axes[loads.torques])
            target.second.add(-size[loads.torques, :, None] * D, frames, frames)
        if not any(value or rate for _, value, rate in rows):
            return
        direction = gradients[tuple(loads.axes.T)][:, :, None]
        derivative = gradients[tuple(loads.arguments.T)][:, None]
        change = by_value[:, None] * derivative
        if any(rate for *_, rate in rows):
            u = self._frames.velocities[loads.argument_frames].reshape(-1, 1, 12)
            change += by_rate[:, None] * (u @ self._frames.axis_seconds(loads.arguments))
            by_speed = by_rate[:, None] * derivative
            target.rates.add(-direction * by_speed, loads.frames, loads.argument_frames)
        target.second.add(-direction * change, loads.frames, loads.argument_frames)

    def _add_states(
        self,
        load: JointForce,
        point: tuple[float, float, float],
        axes: tuple[Axis, Axis],
        target: LoadDerivatives,
    ) -> tuple[float, float, float]:
        """Add the derivatives of the rates of states, and of a load with respect to its states.

        `axes` are the axis on which the load acts, and that of the coordinate on which it depends.
        Return the magnitude of the load and its derivatives with respect to its coordinate and its
        rate.
        """
        (k,), (axis, source) = self._states.body(load.name), axes  # k: body with the states
        value, *_ = load.evaluate(*point, self._states.values(load.name))
        # Rows: the load, then the rates of its states; columns: coordinate s, its rate, states
        slopes = load.slopes(*point, self._states.values(load.name))
        rows = self._states.mass(k) * slopes[1:]
        at = self._frames
        jacobians, tangents = at.last_derivatives()
        gradient, rate_change = at.coordinate_derivatives(source, jacobians, tangents)
        _, _, gradients = at.axis_coordinates()
        direction = at.transform(gradients[axis], at.ends_of(axis), jacobians)
        loaded, bodies = (at.bodies_of(at.ends_of(part)) for part in axes)
        unit = np.zeros((len(rows), at.system.num_velocities))
        unit[:, at.system.v_slices[k]] = np.eye(len(rows))
        for (by_s, by_rate, *by_states), column in zip(rows, unit, strict=True):
            by_pose = by_s * gradient + by_rate * rate_change
            add_outer(at, target.K, -column, (k,), by_pose, bodies)
            add_outer(at, target.C, -column, (k,), by_rate * gradient, bodies)
            add_outer(at, target.C, -column, (k,), np.array(by_states) @ unit, (k,))
        add_outer(at, target.C, -direction, loaded, slopes[0, 2:] @ unit, (k,))
        return float(value), float(slopes[0, 0]), float(slopes[0, 1])
