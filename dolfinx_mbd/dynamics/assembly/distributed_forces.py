"""Assembly of distributed loads on flexible bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.dynamics.assembly.frames import Axis, Frames
from dolfinx_mbd.dynamics.assembly.load_terms import LoadDerivatives, add_outer
from dolfinx_mbd.mechanism.pattern_loads import PatternLoad, pattern_rows, pattern_tangent


class _DistributedLoad(NamedTuple):
    """A distributed load with its body and pattern, and the motion on which its amplitude depends.

    This motion is that of a joint (`axis`) or, if `axis` is None, of `frames`.
    """

    load: PatternLoad
    body: int
    pattern: LoadPattern
    axis: Axis | None
    frames: tuple[int, ...]


class DistributedForces:
    """Loads with the port ``pattern``."""

    def __init__(self, frames: Frames, loads: Iterable[PatternLoad]) -> None:
        self._frames, system = frames, frames.system
        self.items = [
            _DistributedLoad(
                load,
                system.body_index(load.loaded_body),
                system.load_pattern(load),
                None if load.coordinate is None else frames.axis(load.coordinate),
                tuple(map(system.frame_index, load.sources)),
            )
            for load in loads
        ]

    def groups(self) -> list[set[int]]:
        """Return, for each load, the bodies on whose motion it depends or acts."""
        return [{item.body, *self._source_bodies(item)} for item in self.items]

    def _source_bodies(self, item: _DistributedLoad) -> set[int]:
        """Return the bodies on whose motion the amplitude of a distributed load depends."""
        frames = item.frames if item.axis is None else self._frames.ends_of(item.axis)
        return {int(self._frames.system.frame_body[frame]) for frame in frames}

    def _source_motion(self, item: _DistributedLoad) -> tuple[Any, ...]:
        """Return the arguments of the amplitude of a distributed load after the time."""
        if item.axis is None:
            return tuple(map(self._frames.motion, item.frames))
        values, rates, _ = self._frames.axis_coordinates()
        return float(values[item.axis]), float(rates[item.axis])

    def forces(self, t: float) -> Iterator[tuple[PatternLoad, int, float, Array]]:
        """Yield each distributed load, its body, its amplitude and its `pattern_rows`."""
        for item in self.items:
            rows = pattern_rows(item.pattern, self._frames.views[item.body].q)
            yield item.load, item.body, item.load.size(t, *self._source_motion(item)), rows

    def subtract_forces(self, t: float) -> None:
        """Subtract the loads from the residual."""
        for _, k, size, direction in self.forces(t):
            force = size * direction
            self._frames.views[k].rows[:] -= force
            self._frames.views[k].scale[:] += np.abs(force)

    def power(self, t: float) -> float:
        """Return the power of the loads, W."""
        return sum(
            amplitude * float(rows @ self._frames.views[k].v)
            for _, k, amplitude, rows in self.forces(t)
        )

    def add_derivatives(self, t: float, target: LoadDerivatives) -> None:
        """Add the derivatives of the distributed loads."""
        for item in self.items:
            load, k, pattern = item.load, item.body, item.pattern
            q = self._frames.views[k].q
            size = load.size(t, *self._source_motion(item))
            target.K.add(k, k, -size * pattern_tangent(pattern, q))
            if callable(load.value) and load.of is not None:
                rows = np.zeros(self._frames.system.num_velocities)
                rows[self._frames.system.v_slices[k]] = -pattern_rows(pattern, q)
                bodies = self._source_bodies(item)
                by_q, by_v = self._amplitude_derivatives(t, item)
                add_outer(self._frames, target.K, rows, (k,), by_q, bodies)
                add_outer(self._frames, target.C, rows, (k,), by_v, bodies)

    def _amplitude_derivatives(self, t: float, item: _DistributedLoad) -> tuple[Array, Array]:
        """Return the derivatives (nv,) of an amplitude with respect to coordinates and v."""
        jacobians, tangents = self._frames.last_derivatives()
        motion = self._source_motion(item)
        if item.axis is not None:
            by_value, by_rate = item.load.derivatives(t, *motion)
            value, rate = self._frames.coordinate_derivatives(item.axis, jacobians, tangents)
            return by_value * value + by_rate * rate, by_rate * value
        by_q, by_v = np.zeros((2, self._frames.system.num_velocities))
        derivatives = item.load.frame_derivatives(t, motion, self._frames.length())
        for frame, (by_pose, by_velocity) in zip(
            item.frames, derivatives.reshape(-1, 2, 6), strict=True
        ):
            k, J = self._frames.frame_jacobian(frame, jacobians)
            part = self._frames.system.v_slices[k]
            _, tangent = self._frames.frame_jacobian(frame, tangents)
            by_q[part] += by_pose @ J + by_velocity @ tangent
            by_v[part] += by_velocity @ J
        return by_q, by_v
