"""Sensors: motion of material points, and strains of gauges."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import GaugeHistory
from dolfinx_mbd.checks import choice, metres, rotation_matrix, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.mechanism.protocol import Body
from dolfinx_mbd.results.histories import BodyHistory, rotation_matrices

Array = NDArray[np.float64]


def material_point(body: Body, point: str | ArrayLike) -> tuple[Array, Array]:
    """Return the reference position (3,) and modes (n, 3) of a point; see `Solution.sensor`."""
    if isinstance(body, RigidBody):
        if isinstance(point, str):
            frame = choice(f"frame of body {body.name!r}", point, body.frame_names)
            point = body.frames[frame].point
        return vector("point", metres(point), unit="m"), np.zeros((0, 3))
    if not isinstance(body, FlexibleBody):
        raise InputError(f"sensors need a rigid or a flexible body; {body.name!r} is neither")
    reduced = body.reduced
    if isinstance(point, str):
        for interface in reduced.interfaces:
            if interface.name == point:
                return interface.point, interface.motion[:3].T
        named = reduced.point(point)
        return named.position, named.modes
    x = vector("point", metres(point), unit="m")
    if reduced.num_modes == 0:
        return x, np.zeros((0, 3))
    if reduced.skin is None:
        text = f"body {body.name!r} has no skin; measure at a named point or an interface"
        raise InputError(text)
    distance = np.linalg.norm(reduced.skin.points - x, axis=1)
    node = int(np.argmin(distance))
    if distance[node] > 1e-6 * np.ptp(reduced.skin.points, axis=0).max():
        raise InputError(
            f"{x} m is not a node of the skin of body {body.name!r} (the nearest node is "
            f"{reduced.skin.points[node]} m); name the point in the reduction: points=..."
        )
    return reduced.skin.points[node], reduced.skin.modes[:, node]


def material_point_motion(history: BodyHistory, x: Array, modes: Array, quantity: str) -> Array:
    """Return the absolute motion of a material point in global components, shape (nt, 3).

    `quantity` is ``position``, ``velocity`` or an acceleration.
    """
    c = x + history.eta @ modes  # present position in the body frame
    if quantity == "position":
        origin, relative = history.position, c
    elif quantity == "velocity":
        u_rate = history.eta_rate @ modes
        origin, relative = history.velocity, np.cross(history.omega, c) + u_rate
    else:
        w, u_rate = history.omega, history.eta_rate @ modes
        centripetal_and_coriolis = np.cross(w, np.cross(w, c) + 2 * u_rate)
        relative = np.cross(history.alpha, c) + centripetal_and_coriolis
        relative += history.eta_acceleration @ modes
        origin = history.acceleration
    return origin + np.einsum("tij,tj->ti", rotation_matrices(history.rotation), relative)


class Sensors:
    """Methods of `Solution` for sensors: motion of points, and strains of gauges."""

    system: Any
    body: Any
    _body: Any

    def sensor(
        self,
        body: str,
        point: str | ArrayLike = (0.0, 0.0, 0.0),
        quantity: Literal[
            "position", "velocity", "acceleration", "proper acceleration"
        ] = "position",
        *,
        axes: str | ArrayLike = "global",
    ) -> Array:
        """Return the position, velocity or acceleration of a material point over time, (nt, 3).

        An accelerometer that also measures constant accelerations senses the proper acceleration
        in the axes of its body; at rest it shows 9.81 m/s² upwards. A piezoelectric accelerometer
        senses the acceleration without gravity. The axes of a body do not follow the local rotation
        of its elastic deformation.

        Args:
            body: Name of the body.
            point: Reference position of the point in the body frame (3,), m, or the name of a
                frame, an interface or a named point. On a flexible body a position must be a node
                of its skin.
            quantity: ``position``, ``velocity`` or ``acceleration``, relative to the ground; or
                ``proper acceleration``, the acceleration minus the acceleration of gravity.
            axes: ``global``, ``body`` (the frame of the body), the name of another body, or a fixed
                3×3 rotation whose columns are the axes.

        Raises:
            InputError: Body, point, quantity or axes are unknown.

        Example:
            >>> print(run.sensor("bob", (1, 0, 0), "velocity", axes="body")[-1].round(3))
            [ 0.    -4.234  0.   ]
            >>> print(run.sensor("bob", (1, 0, 0), "proper acceleration", axes="body")[-1].round(1))
            [-26.9   0.    0. ]
        """
        kinds = ("position", "velocity", "acceleration", "proper acceleration")
        choice("quantity", quantity, kinds)
        k = self.system.body_index(body)
        x, modes = material_point(self.system.bodies[k], point)
        value = material_point_motion(self._body(k), x, modes, quantity)
        if quantity == "proper acceleration":
            value -= self.system.gravity
        if not isinstance(axes, str):
            return value @ rotation_matrix("axes", axes)
        moving = [item.name for item in self.system.mechanical_bodies if item.num_velocities]
        if choice("axes", axes, ("global", "body", *moving)) == "global":
            return value
        A = rotation_matrices(self.body(body if axes == "body" else axes).rotation)
        return np.einsum("tji,tj->ti", A, value)

    def gauge(self, body: str, name: str) -> GaugeHistory:
        """Return the strains of a gauge or a rosette over time; see `mbd.gauges`.

        Args:
            body: Name of a flexible body.
            name: Name of the gauge.

        Raises:
            InputError: The body is unknown or not flexible, or has no such gauge.

        Example:
            >>> gauge = mbd.body.StrainGauge("g", (0, 0, 0), (0, 0, 1), [[1, 0, 0]], 3e-3, [[2e-6]])
            >>> bar = mbd.body.ReducedBody.from_arrays(
            ...     total_mass=2.0,
            ...     first_moments=np.zeros((2, 3)),
            ...     second_moments=np.eye(2)[:, :, None, None] * np.eye(3),
            ...     stiffness=[[4e6]],
            ...     gauges=[gauge],
            ... )
            >>> system = mbd.System([mbd.FlexibleBody("bar", bar)])
            >>> mbd.simulate(system, t_end=0.01, dt=1e-3).gauge("bar", "g").strain.shape
            (11, 1)
        """
        part = self.system.bodies[self.system.body_index(body)]
        if not isinstance(part, FlexibleBody):
            raise InputError(f"body {body!r} is not flexible and has no strain gauges")
        return part.reduced.gauge(name).history(self.body(body))
