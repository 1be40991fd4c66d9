"""Assembly of the loads of a system, with the Jacobians of its frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels import joints as kernels
from dolfinx_mbd.multibody.assembly.blocks import Blocks
from dolfinx_mbd.multibody.assembly.floating_bodies import FloatingBodies
from dolfinx_mbd.multibody.model.force_elements import (
    ContactElement,
    FilmElement,
    FramePair,
    JointElement,
    PairElement,
)
from dolfinx_mbd.multibody.model.loads import FrameLoad, FrameMotion, JointCoordinate, JointLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad, pattern_rows, pattern_tangent
from dolfinx_mbd.multibody.model.system import SystemData

Axis = tuple[int, int]
FrameForces = FrameLoad | PairElement | JointLoad | JointElement
"""Loads that act on frames."""


class LoadAssembler:
    """Buffers for frames, joint coordinates and loads of a system.

    `q`, `v` and `a` are the point of evaluation. `angles` are the joint rotations from which full
    turns are counted. `rows` and `scale` (nv,) are the residual and the magnitudes of its terms.
    `position` (nf, 3), `rotation` (nf, 3, 3), `velocities` and `wrenches` (nf, 6) belong to the
    frames.
    """

    def __init__(self, system: SystemData) -> None:
        self.system = system
        nq, nv, nf = system.num_coordinates, system.num_velocities, system.num_frames
        self.q, self.v, self.a = np.zeros(nq), np.zeros(nv), np.zeros(nv)
        self.angles = np.zeros(len(system.joints))
        self.rows, self.scale = np.zeros(nv), np.zeros(nv)
        self.position, self.rotation = np.zeros((nf, 3)), np.zeros((nf, 3, 3))
        self.velocities, self.wrenches = np.zeros((nf, 6)), np.zeros((nf, 6))
        sizes = np.array([body.num_velocities for body in system.bodies])
        self._widths = sizes[system.frame_body]
        self._jacobians = np.zeros((nf, 6, int(sizes.max())))
        self._moving = [k for k, body in enumerate(system.bodies) if body.num_velocities]
        self._tangents = np.zeros_like(self._jacobians)
        self._floating = FloatingBodies(system)
        self._floating_members = frozenset(self._floating.members)
        self._others = [k for k in self._moving if k not in self._floating.members]
        self._views = []
        for body, qs, vs, fs in zip(
            system.bodies, system.q_slices, system.v_slices, system.frame_slices, strict=True
        ):
            view = (self.q[qs], self.v[vs], self.a[vs], self.wrenches[fs])
            self._views.append(
                (body, view, self.rows[vs], self.scale[vs], self.position[fs], self.rotation[fs])
            )
        for body, (q, *_), _, _, position, rotation in self._views:
            if not body.num_velocities:
                body.poses(q, position, rotation)
        joints = len(system.joints)
        self._ends = system.first[:joints], system.second[:joints]
        self._surface_forces: dict[str, tuple[int, Array]] = {}
        self._find_loads()

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

    @property
    def has_others(self) -> bool:
        """Whether some moving bodies are not evaluated by the kernels for floating frames."""
        return bool(self._others)

    @property
    def bodies(self) -> FloatingBodies:
        """Table of the bodies that are evaluated by the kernels for floating frames."""
        return self._floating

    # ---- frames ---------------------------------------------------------------------------------
    def update_velocities(self) -> Array:
        """Compute and return velocities (nf, 6) of all frames in global components."""
        self._floating.velocities(self.q, self.v, self.velocities)
        for k in self._others:
            body, (q, v, *_), *_ = self._views[k]
            body.frame_velocities(q, v, self.velocities[self.system.frame_slices[k]])
        return self.velocities

    def jacobians(self) -> list[Array]:
        """Return the Jacobians (F, 6, nv) of the frames of every body at the current poses."""
        self._floating.jacobians(self.q, self._jacobians)
        for k in self._others:
            body, (q, *_), *_ = self._views[k]
            frames, width = self.system.frame_slices[k], body.num_velocities
            self._jacobians[frames, :, :width] = body.frame_jacobians(q)
        return [
            self._jacobians[frames, :, : body.num_velocities].copy()
            for body, frames in zip(self.system.bodies, self.system.frame_slices, strict=True)
        ]

    def _frame_jacobian(self, frame: int, jacobians: list[Array]) -> tuple[int, Array]:
        """Return the index of the body of a frame and the frame's Jacobian (6, nv of the body)."""
        k = int(self.system.frame_body[frame])
        return k, jacobians[k][frame - self.system.frame_slices[k].start]

    def _add(
        self,
        target: Blocks,
        jacobians: list[Array],
        frames: tuple[int, ...],
        D: Array,
        right_jacobians: list[Array] | None = None,
    ) -> None:
        """Add Jᵀ D J, or Jᵀ D R with `right_jacobians` R; D has six rows and columns per frame."""
        blocks = [self._frame_jacobian(frame, jacobians) for frame in frames]
        others = (
            [self._frame_jacobian(frame, right_jacobians) for frame in frames]
            if right_jacobians
            else blocks
        )
        for i, (k, Jk) in enumerate(blocks):
            for j, (m, Jm) in enumerate(others):
                if not (Jk.size and Jm.size):
                    continue
                block = D[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                target.add(k, m, Jk.T @ (block @ Jm))

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

    def _bodies_of(self, frames: tuple[int, int]) -> tuple[int, int]:
        """Return the bodies of two frames."""
        return int(self.system.frame_body[frames[0]]), int(self.system.frame_body[frames[1]])

    def _transform(self, row: Array, frames: tuple[int, int], jacobians: list[Array]) -> Array:
        """Transform a row (12,) for the velocities of two frames to a row (nv,) for v."""
        out = np.zeros(self.system.num_velocities)
        for frame, part in zip(frames, (row[:6], row[6:]), strict=True):
            k, J = self._frame_jacobian(frame, jacobians)
            if J.size:
                out[self.system.v_slices[k]] += part @ J
        return out

    def frame_biases(self) -> Array:
        """Return the accelerations (nf, 6) of all frames for v̇ = 0."""
        self._floating.velocity_tangents(self.q, self.v, self._tangents)
        bias = np.zeros((self.system.num_frames, 6))
        parts = zip(self._views, self.system.frame_slices, self.system.v_slices, strict=True)
        for k, ((body, view, *_), frames, part) in enumerate(parts):
            if k in self._floating_members:
                bias[frames] = self._tangents[frames, :, : body.num_velocities] @ self.v[part]
            else:
                bias[frames] = body.frame_bias(view[0], view[1])
        return bias

    # ---- coordinates of joints ------------------------------------------------------------------
    def joint_rotations(self) -> Array:
        """Return the rotations of all joints about their axes (nj,), rad, including full turns."""
        return kernels.joint_angles(self.rotation, *self._ends, self.angles)

    def _axis(self, coordinate: JointCoordinate) -> tuple[int, int]:
        """Return the index of the joint, and 0 for its rotation or 1 for its displacement."""
        return self.system.joint_index(coordinate.joint), int(coordinate.motion == "displacement")

    def axis_coordinates(self) -> tuple[Array, Array, Array]:
        """Return values, rates and gradients of the joint motions about and along z.

        Their shapes are (nj, 2), (nj, 2) and (nj, 2, 12). Call `update_velocities` first.
        """
        return kernels.axis_coordinates(
            self.position, self.rotation, self.velocities, *self._ends, self.angles
        )

    def joint_displacements(self) -> tuple[Array, Array]:
        """Return displacements of all joints along the axes of the first frame, and their rates.

        Their shapes are (nj, 3). Call `update_velocities` first.
        """
        first, second = self._ends
        frames = self.position[first], self.rotation[first], self.position[second]
        poses = *frames, self.rotation[second]
        u = np.hstack([self.velocities[first], self.velocities[second]])
        rates = np.einsum("jik,jk->ji", kernels.joint_gradients(*poses)[:, :3], u)
        return kernels.joint_values(*poses)[:, :3], rates

    def _load_coordinate(self, axis: Axis | None) -> tuple[float, float]:
        """Return value and rate of the joint coordinate of a load, or zeros if it has none."""
        if axis is None:
            return 0.0, 0.0
        values, rates, _ = self.axis_coordinates()
        return float(values[axis]), float(rates[axis])

    def axis_gradient(self, joint: str, motion: str) -> Array:
        """Return the derivative (nv,) of the rate of a joint coordinate with respect to v."""
        k, _ = axis = self._axis(JointCoordinate(joint, motion))  # type: ignore[arg-type]
        gradient = self.axis_coordinates()[2][axis]
        return self._transform(
            gradient, (int(self._ends[0][k]), int(self._ends[1][k])), self.jacobians()
        )

    def axis_rate_derivative(self, joint: str, motion: str) -> Array:
        """Return the derivative (nv,) of the rate of a joint coordinate with respect to q.

        Call `update_velocities` first.
        """
        axis = self._axis(JointCoordinate(joint, motion))  # type: ignore[arg-type]
        return self._coordinate_derivatives(axis, self.jacobians(), self._velocity_tangents())[1]

    def _velocity_tangents(self) -> list[Array]:
        """Return the derivatives (F, 6, nv) of the frame velocities of every body by q."""
        self._floating.velocity_tangents(self.q, self.v, self._tangents)
        return [
            self._tangents[frames, :, : body.num_velocities]
            if k in self._floating_members
            else body.frame_velocity_tangents(view[0], view[1])
            for k, ((body, view, *_), frames) in enumerate(
                zip(self._views, self.system.frame_slices, strict=True)
            )
        ]

    def _axis_second(self, axis: tuple[int, int]) -> Array:
        """Return the second derivative (12, 12) of a joint coordinate with respect to poses."""
        first, second = (ends[axis[0]][None] for ends in self._ends)
        one, two = self.rotation[first], self.rotation[second]
        if axis[1] == 0:
            return kernels.rotation_second(one, two)[0]
        points = self.position[first], self.position[second]
        return kernels.joint_second(points[0], one, points[1], two, np.eye(6)[[2]])[0]

    def _coordinate_derivatives(
        self, axis: tuple[int, int], jacobians: list[Array], tangents: list[Array] | None
    ) -> tuple[Array, Array]:
        """Return the derivatives (nv,) of a joint coordinate and its rate with respect to q.

        Without `tangents`, the derivative of the rate is not computed and zero.
        """
        ends = int(self._ends[0][axis[0]]), int(self._ends[1][axis[0]])
        gradient = self.axis_coordinates()[2][axis]
        derivative = self._transform(gradient, ends, jacobians)
        if tangents is None:
            return derivative, np.zeros_like(derivative)
        u = np.concatenate([self.velocities[ends[0]], self.velocities[ends[1]]])
        rate_derivative = self._transform(u @ self._axis_second(axis), ends, jacobians)
        return derivative, rate_derivative + self._transform(gradient, ends, tangents)

    # ---- loads ----------------------------------------------------------------------------------
    def _motion(self, frame: int) -> FrameMotion:
        velocity = self.velocities[frame]
        return FrameMotion(self.position[frame], self.rotation[frame], velocity[:3], velocity[3:])

    def pair(self, first: int, second: int) -> FramePair:
        """Return the poses and velocities of two frames."""
        p, Q, u = self.position, self.rotation, self.velocities
        return FramePair(p[first], Q[first], u[first], p[second], Q[second], u[second])

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

    def stored_energy(self) -> float:
        """Return the energy of springs and bushings at the current poses, J."""
        energy = sum(load.energy(*self.arguments(load, *ends)) for load, *ends in self._pair_loads)
        if any(isinstance(load, JointElement) for load, *_ in self._joint_loads):
            values = self.axis_coordinates()[0]
            for load, axis, _ in self._joint_loads:
                if isinstance(load, JointElement):
                    energy += load.energy(float(values[axis]))
        return float(energy)

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
        for frame_load, frame in self._frame_loads:
            yield frame_load, (frame,), frame_load.wrench(t, self._motion(frame))
        for element, first, second in self._pair_loads:
            wrenches = element.wrenches(*self.arguments(element, first, second))
            if element.surface is not None:
                body = int(self.system.frame_body[first])
                self._surface_forces[element.name] = body, wrenches[12:] @ element.surface
            yield element, (first, second), wrenches[:12]
        if self._joint_loads:
            values, rates, gradients = self.axis_coordinates()
            for load, axis, argument_axis in self._joint_loads:
                ends = int(self._ends[0][axis[0]]), int(self._ends[1][axis[0]])
                size = load.magnitude(t, values[argument_axis], rates[argument_axis])
                yield load, ends, size * gradients[axis]

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
        self.update_velocities()
        for _, frames, wrench in self.load_wrenches(t):
            for k, frame in enumerate(frames):
                self.wrenches[frame] += wrench[6 * k : 6 * k + 6]

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

    def _add_loads(self, t: float, jacobians: list[Array], K: Blocks, C: Blocks) -> None:
        tangents = self._velocity_tangents()
        length = max(1e-3, float(np.abs(self.position).max(initial=0.0)))
        for frame_load, frame in self._frame_loads:
            D, E = frame_load.derivatives(t, self._motion(frame), length)
            self._add(K, jacobians, (frame,), -D)
            self._add(C, jacobians, (frame,), -E)
            k, J = self._frame_jacobian(frame, jacobians)
            K.add(k, k, -J.T @ (E @ self._frame_jacobian(frame, tangents)[1]))
        for element, first, second in self._pair_loads:
            D, E = element.derivatives(*self.arguments(element, first, second))
            if element.surface is not None:
                self._add_surface(
                    element.surface, (first, second), (D, E), jacobians, tangents, K, C
                )
                continue
            self._add(K, jacobians, (first, second), -D)
            self._add(C, jacobians, (first, second), -E)
            self._add(K, jacobians, (first, second), -E, tangents)
        if self._joint_loads:
            coordinates = self.axis_coordinates()
            for load, axis, argument_axis in self._joint_loads:
                self._add_joint_load(
                    t, load, axis, argument_axis, coordinates, jacobians, tangents, K, C
                )

        for pattern_load, k, pattern, coordinate in self._pattern_loads:
            value, rate = self._load_coordinate(coordinate)
            q = self._views[k][1][0]
            K.add(k, k, -pattern_load.size(t, value, rate) * pattern_tangent(pattern, q))
            by_value, by_rate = pattern_load.derivatives(t, value, rate)
            if coordinate is not None and (by_value or by_rate):
                derivative, rate_derivative = self._coordinate_derivatives(
                    coordinate, jacobians, tangents
                )
                ends = int(self._ends[0][coordinate[0]]), int(self._ends[1][coordinate[0]])
                rows = np.zeros(self.system.num_velocities)
                rows[self.system.v_slices[k]] = -pattern_rows(pattern, q)
                change = by_value * derivative + by_rate * rate_derivative
                self._add_outer(K, rows, (k,), change, self._bodies_of(ends))
                self._add_outer(C, rows, (k,), by_rate * derivative, self._bodies_of(ends))

    def _add_surface(
        self,
        surface: Array,
        ends: tuple[int, int],
        derivatives: tuple[Array, Array],
        jacobians: list[Array],
        tangents: list[Array],
        K: Blocks,
        C: Blocks,
    ) -> None:
        """Add the derivatives of an element that also acts on elastic coordinates."""
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

    def _add_joint_load(
        self,
        t: float,
        load: JointLoad | JointElement,
        axis: tuple[int, int],
        argument_axis: tuple[int, int],
        coordinates: tuple[Array, Array, Array],
        jacobians: list[Array],
        tangents: list[Array],
        K: Blocks,
        C: Blocks,
    ) -> None:
        values, rates, gradients = coordinates
        value, rate = values[argument_axis], rates[argument_axis]
        loaded = int(self._ends[0][axis[0]]), int(self._ends[1][axis[0]])
        self._add(K, jacobians, loaded, -load.magnitude(t, value, rate) * self._axis_second(axis))
        by_value, by_rate = load.derivatives(t, value, rate)
        if by_value or by_rate:
            direction = self._transform(gradients[axis], loaded, jacobians)
            derivative, rate_derivative = self._coordinate_derivatives(
                argument_axis, jacobians, tangents if by_rate else None
            )
            ends = int(self._ends[0][argument_axis[0]]), int(self._ends[1][argument_axis[0]])
            pair, others = self._bodies_of(loaded), self._bodies_of(ends)
            change = by_value * derivative + by_rate * rate_derivative
            self._add_outer(K, -direction, pair, change, others)
            if by_rate:
                self._add_outer(C, -direction, pair, by_rate * derivative, others)
