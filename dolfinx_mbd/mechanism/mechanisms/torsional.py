"""Torsional chains: discs on one axis that springs connect, for the drive train of an engine.

With the inertias J, the stiffnesses K of the shafts, the damping coefficients C and the loss factor
η, the orders o of the torques M on the discs give the rotations θ,

    (K (1 + i η) + i o Ω C − (o Ω)² J) θ = M.

The torques depend on the nominal angle of the chain, not on its vibration, as usual in torsional
analysis. In the time domain, the loss factor becomes the viscous coefficient η K / ω at one
frequency ω.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, function, instance, integer, number, reject
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import MOMENT, ROTATION, SPIN
from dolfinx_mbd.mechanism.bodies import Ground, RigidBody
from dolfinx_mbd.mechanism.joints import Driver, Joint, constant_speed, revolute
from dolfinx_mbd.mechanism.law_elements import PairMotion
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.loads import JointLoad
from dolfinx_mbd.mechanism.mechanisms.cylinder_torque import (
    HALF_ORDERS,
    half_orders,
    torque_orders,
)
from dolfinx_mbd.mechanism.pair_loads import PairLoad
from dolfinx_mbd.mechanism.protocol import Body, Frame
from dolfinx_mbd.mechanism.system import System

Complex = np.ndarray[Any, np.dtype[np.complex128]]
DiscTorque = Callable[[ArrayLike, float], ArrayLike]
"""Torque on a disc, N m, as a function of angle (rad) and speed (rad/s) of the chain."""
Motion = Callable[[float], tuple[float, float, float]]
"""Function of time (s) that returns angle (rad), rate and acceleration."""

_CYCLE = 4 * np.pi * np.arange(720) / 720  # angles over which a torque is averaged, rad
_SPEED_STEP = 1.0  # distance of the speeds between which mean torques are interpolated, rad/s


@dataclass(frozen=True, eq=False)
class TorsionalResponse:
    """Forced vibration of a torsional chain at a constant speed, by orders.

    An order o of a quantity is the real part of its complex amplitude times exp(i o φ), with the
    angle φ of the chain.

    Attributes:
        speed: Speed, rad/s.
        orders: Orders, shape (no,).
        rotation: Amplitudes of the discs, shape (no, n), rad.
        twist: Amplitudes of the relative rotations of the shafts, shape (no, n − 1), rad.
        torque: Elastic torque in the shafts, stiffness times twist, shape (no, n − 1), N m.

    Example:
        >>> chain = mbd.mechanisms.TorsionalChain([0.1, 2.0], [1e5], damping=[1.0, 0.0])
        >>> response = chain.response(100.0, {1: lambda angle, speed: 10 * np.cos(angle)})
        >>> float(abs(response.torque).max().round(3))
        9.615
    """

    speed: float
    orders: Array
    rotation: Complex
    twist: Complex
    torque: Complex

    __repr__ = short_repr

    def torque_at(self, angle: ArrayLike) -> Array:
        """Return the elastic torque in the shafts, the sum of all orders.

        Args:
            angle: Angles of the chain, shape (na,), rad.

        Returns:
            Shape (na, n − 1), N m.
        """
        waves = np.exp(1j * np.outer(array("angle", angle, (None,)), self.orders))
        return np.asarray((waves @ self.torque).real)


@dataclass(frozen=True, eq=False)
class TorsionalChain:
    """Discs on one axis that torsional springs connect.

    Attributes:
        inertias: Moment of inertia of each disc about the axis, shape (n,), kg m².
        stiffnesses: Stiffness of each shaft, shape (n − 1,), N m/rad.
        damping: Damping coefficient of each disc, shape (n,), N m s/rad. It acts on the deviation
            from the nominal speed, so that it does not brake the chain.
        shaft_damping: Viscous damping of each shaft, shape (n − 1,), N m s/rad.
        loss_factor: Loss factor of each shaft, a number or shape (n − 1,).
        shafts: Numbers of the discs at the ends of each shaft, starting at 1, shape (n − 1, 2). By
            default shaft k connects the discs k and k + 1. The shafts must connect all discs
            without a loop.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> chain = mbd.mechanisms.TorsionalChain([0.05, 0.05, 1.0], [1e6, 2e6])
        >>> print(chain.frequencies.round(2))
        [   0.    567.14 1324.93]
        >>> print(round(float(chain.critical_speed(6.0) * 60 / (2 * np.pi)), 1), "rpm")
        5671.4 rpm
    """

    inertias: ArrayLike
    stiffnesses: ArrayLike
    damping: ArrayLike | None = None
    shaft_damping: ArrayLike | None = None
    loss_factor: ArrayLike = 0.0
    shafts: ArrayLike | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        inertias = array("inertias", self.inertias, (None,))
        n = len(inertias)
        if n < 2 or inertias.min() <= 0:
            reject("inertias", self.inertias, "positive moments of inertia of two discs or more")
        ends = np.stack([np.arange(1, n), np.arange(2, n + 1)], axis=1)
        values = {"inertias": inertias, "shafts": self._checked_shafts(ends)}
        stiffnesses = array("stiffnesses", self.stiffnesses, (n - 1,))
        if stiffnesses.min() <= 0:
            reject("stiffnesses", self.stiffnesses, "positive stiffnesses, in N m/rad")
        values["stiffnesses"] = stiffnesses
        eta: Any = self.loss_factor
        values["loss_factor"] = np.full(n - 1, eta) if isinstance(eta, (int, float)) else eta
        for key, size in (("damping", n), ("shaft_damping", n - 1), ("loss_factor", n - 1)):
            value = values.get(key, getattr(self, key))
            value = array(key, np.zeros(size) if value is None else value, (size,))
            if value.min() < 0:
                reject(key, getattr(self, key), "numbers that are not negative")
            values[key] = value
        assign(self, **values)

    def _checked_shafts(self, neighbours: Array) -> Array:
        """Return the numbers of the discs at the shafts; by default those of neighbours."""
        if self.shafts is None:
            return neighbours
        n = len(neighbours) + 1
        values = array("shafts", self.shafts, neighbours.shape)
        ends = np.rint(values).astype(int)
        expected = f"{n - 1} pairs of numbers of discs from 1 to {n}, which connect all discs"
        if np.abs(ends - values).max() > 0 or ends.min() < 1 or ends.max() > n:
            reject("shafts", self.shafts, expected)
        graph = scipy.sparse.coo_array((np.ones(n - 1), tuple(ends.T - 1)), shape=(n, n))
        if scipy.sparse.csgraph.connected_components(graph, directed=False)[0] > 1:
            reject("shafts", self.shafts, expected)
        return ends

    @property
    def count(self) -> int:
        """Number of discs."""
        return len(np.asarray(self.inertias))

    @property
    def incidence(self) -> Array:
        """Twist of each shaft per rotation of each disc, shape (n − 1, n)."""
        ends, rows = np.asarray(self.shafts) - 1, np.arange(self.count - 1)
        B = np.zeros((self.count - 1, self.count))
        B[rows, ends[:, 0]], B[rows, ends[:, 1]] = -1.0, 1.0
        return B

    @property
    def stiffness(self) -> Array:
        """Stiffness matrix, shape (n, n), N m/rad."""
        B = self.incidence
        return np.asarray(B.T @ (np.asarray(self.stiffnesses)[:, None] * B))

    @property
    def frequencies(self) -> Array:
        """Natural frequencies without damping, of which the first is zero, shape (n,), Hz."""
        values = scipy.linalg.eigh(self.stiffness, np.diag(self.inertias), eigvals_only=True)
        values[0] = 0.0  # the rotation of the whole chain
        return np.sqrt(np.maximum(values, 0.0)) / (2 * np.pi)

    def critical_speed(self, order: float, mode: int = 1) -> float:
        """Return the speed (rad/s) at which an order meets a natural frequency.

        Args:
            order: The order, positive.
            mode: Number of the elastic mode, starting at 1.
        """
        order = number("order", order, positive=True)
        k = integer("mode", mode, low=1, high=self.count - 1)
        return float(2 * np.pi * self.frequencies[k] / order)

    def with_damper(
        self, disc: int, inertia: float, stiffness: float, damping: float = 0.0
    ) -> TorsionalChain:
        """Return the chain with a torsional vibration damper, a ring on a spring of rubber.

        The ring is the last disc, and the rubber is the last shaft.

        Args:
            disc: Number of the disc that carries the ring, starting at 1.
            inertia: Moment of inertia of the ring, kg m².
            stiffness: Stiffness of the rubber, N m/rad.
            damping: Viscous damping of the rubber, N m s/rad.

        Raises:
            InputError: An argument is invalid.
        """
        disc = integer("disc", disc, low=1, high=self.count)
        inertia = number("inertia", inertia, positive=True, unit="kg m²")
        stiffness = number("stiffness", stiffness, positive=True, unit="N m/rad")
        damping = number("damping", damping, low=0.0, unit="N m s/rad")
        more: dict[str, Any] = {
            "inertias": inertia,
            "stiffnesses": stiffness,
            "damping": 0.0,
            "shaft_damping": damping,
            "loss_factor": 0.0,
        }
        values = {key: np.append(getattr(self, key), value) for key, value in more.items()}
        shafts = np.vstack([np.asarray(self.shafts), [disc, self.count + 1]])
        return replace(self, **values, shafts=shafts)

    def response(
        self,
        speed: float,
        torques: Mapping[int, DiscTorque],
        orders: ArrayLike = HALF_ORDERS,
    ) -> TorsionalResponse:
        """Compute the forced vibration at a constant speed; every order has the same loss factor.

        Args:
            speed: Speed, rad/s.
            torques: Torque on each disc by its number, starting at 1: functions
                ``torque(angle, speed)`` of period 4π, such as a `CylinderTorque`.
            orders: Multiples of ½ up to 500, shape (no,); by default ½, 1, ... 12.

        Raises:
            InputError: An argument is invalid, or an order is zero.
        """
        speed = number("speed", speed, positive=True, high=1e100, unit="rad/s")
        lines = 0.5 * half_orders(orders)
        if not lines.all():
            reject("orders", orders, "positive orders; the mean torque causes no vibration")
        M = np.zeros((len(lines), self.count), dtype=complex)
        for disc, torque in self._checked_torques(torques).items():
            M[:, disc - 1] = torque_orders(torque, speed, lines)
        B, k = self.incidence, np.asarray(self.stiffnesses)
        c, eta = np.asarray(self.shaft_damping), np.asarray(self.loss_factor)
        w = (lines * speed)[:, None, None]
        shafts = k * (1 + 1j * eta) + 1j * w * c  # (no, 1, n − 1)
        matrices = np.swapaxes(B.T * shafts, -1, -2)
        matrices = (
            B.T @ matrices
            + 1j * w * np.diag(np.asarray(self.damping))
            - w**2 * np.diag(np.asarray(self.inertias))
        )
        rotation = np.linalg.solve(matrices, M[..., None])[..., 0]
        twist: Complex = np.asarray(rotation @ B.T, dtype=complex)
        return TorsionalResponse(speed, lines, rotation, twist, np.asarray(k * twist))

    def system(
        self,
        motion: float | Motion,
        torques: Mapping[int, DiscTorque] | None = None,
        *,
        loss_frequency: float | None = None,
        radius: float = 0.1,
        spacing: float = 0.1,
    ) -> System:
        """Create a mechanism of the chain that rotates with a nominal speed or motion.

        The bodies are ``disc k``, the joints with the ground ``bearing k``, and the loads
        ``shaft k``, ``damping k`` and ``torque k``. The load ``drive`` on the disc with the largest
        inertia balances the mean torques and accelerates the chain with the nominal motion.

        Args:
            motion: Nominal speed, rad/s, or a function of time that returns angle, rate and
                acceleration, such as `constant_speed` returns.
            torques: Torque on each disc; see `response`. The angle is that of the nominal motion.
            loss_frequency: Frequency at which the viscous damping of the shafts equals that of the
                loss factor, Hz; by default the first natural frequency.
            radius: Radius of the discs, m, for pictures and for their mass 2 J / radius².
            spacing: Distance between the discs, m, for pictures.

        Raises:
            InputError: An argument is invalid.

        Example:
            >>> chain = mbd.mechanisms.TorsionalChain([0.05, 0.05, 1.0], [1e6, 2e6])
            >>> system = chain.system(0.0)
            >>> result = mbd.linearize(system, mbd.equilibrium(system))
            >>> print(result.frequencies[1:].round(2))
            [ 567.14 1324.93]
        """
        if not callable(motion):
            motion = constant_speed(number("motion", motion, unit="rad/s"))
        function("motion", motion, "motion(t), for example constant_speed(10.0)")
        radius = number("radius", radius, low=1e-9, high=1e9, unit="m")
        spacing = number("spacing", spacing, unit="m")
        angle, rate, _ = Driver("drive", "bearing 1", motion).at(0.0)
        names = [f"bearing {k + 1}" for k in range(self.count)]
        places = {name: Frame((0.0, 0.0, k * spacing)) for k, name in enumerate(names)}
        ground, discs, joints = Ground(places), [], []
        rotation = (math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle))
        for k, J in enumerate(np.asarray(self.inertias).tolist()):
            disc = RigidBody.cylinder(
                f"disc {k + 1}",
                radius,
                0.2 * abs(spacing) + 1e-3 * radius,
                mass=2 * J / radius**2,
                frames={"centre": Frame()},
                position=places[names[k]].point,
                rotation=rotation,
                velocity=(0.0, 0.0, 0.0),
                omega=(0.0, 0.0, rate),
            )
            discs.append(disc)
            joints.append(revolute(names[k], ground.frame(names[k]), disc.frame("centre")))
        bodies: list[Body] = [ground, *discs]
        loads = self._springs(discs, joints, motion, loss_frequency)
        return System(bodies, joints, loads=[*loads, *self._torques(motion, torques)])

    def _springs(
        self,
        discs: list[RigidBody],
        joints: list[Joint],
        motion: Motion,
        loss_frequency: float | None,
    ) -> list[Load]:
        """Return the springs and dampers of the shafts and the dampers of the discs."""
        frequency = self.frequencies[1] if loss_frequency is None else loss_frequency
        frequency = number("loss_frequency", frequency, positive=True, unit="Hz")
        k = np.asarray(self.stiffnesses)
        c = np.asarray(self.shaft_damping) + np.asarray(self.loss_factor) * k / (
            2 * np.pi * frequency
        )
        loads: list[Load] = []
        for i, (first, second) in enumerate(np.asarray(self.shafts) - 1):
            ends = discs[first].frame("centre"), discs[second].frame("centre")
            law = TorsionalShaft(float(k[i]), float(c[i]))
            loads.append(PairLoad(f"shaft {i + 1}", *ends, law))
        loads += [
            JointLoad(
                f"damping {i + 1}",
                joints[i].name,
                "rotation",
                TorsionalDamping(motion, float(value)),
            )
            for i, value in enumerate(np.asarray(self.damping))
            if value > 0
        ]
        return loads

    def _torques(self, motion: Motion, torques: Mapping[int, DiscTorque] | None) -> list[Load]:
        """Return the torques on the discs and the torque that balances them."""
        checked = self._checked_torques({} if torques is None else torques)
        heaviest = int(np.argmax(self.inertias)) + 1
        drive = _DriveTorque(motion, list(checked.values()), float(np.sum(self.inertias)))
        loads: list[Load] = [
            JointLoad(
                f"torque {disc}", f"bearing {disc}", "rotation", _NominalTorque(motion, torque)
            )
            for disc, torque in checked.items()
        ]
        return [*loads, JointLoad("drive", f"bearing {heaviest}", "rotation", drive)]

    def _checked_torques(self, torques: Mapping[int, DiscTorque]) -> dict[int, DiscTorque]:
        """Return the torques by number of the disc."""
        for disc, torque in instance("torques", torques, Mapping).items():
            integer("number of a disc in torques", disc, low=1, high=self.count)
            function(f"torque on disc {disc}", torque, "torque(angle, speed)")
        return dict(torques)


@dataclass(frozen=True)
class TorsionalShaft:
    """Moment of a spring and a damper about the common z axis of two frames.

    Attributes:
        stiffness: Stiffness, N m/rad.
        damping: Damping coefficient, N m s/rad.
    """

    stiffness: float
    damping: float

    def __call__(self, motion: PairMotion) -> tuple[Array, Array]:
        """Return force and moment on the second frame; see `PairLoad`."""
        moment = -self.stiffness * self.twist(motion) - self.damping * float(motion.omega[2])
        return np.zeros(3), np.array([0.0, 0.0, moment])

    def derivatives(self, motion: PairMotion) -> Array:
        """Return the derivatives of force and moment, shape (6, 12)."""
        slopes = np.zeros((6, 12))
        slopes[MOMENT, ROTATION][2, 2] = -self.stiffness
        slopes[MOMENT, SPIN][2, 2] = -self.damping
        return slopes

    def energy(self, motion: PairMotion) -> float:
        """Return the stored energy, J."""
        return 0.5 * self.stiffness * self.twist(motion) ** 2

    @staticmethod
    def twist(motion: PairMotion) -> float:
        """Return the rotation about z, less than half a turn, rad."""
        R = motion.rotation
        return math.atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])


@dataclass(frozen=True)
class TorsionalDamping:
    """Torque on a disc that damps its deviation from the nominal speed.

    Attributes:
        motion: Nominal motion, a function of time that returns angle, rate and acceleration.
        coefficient: Damping coefficient, N m s/rad.
    """

    motion: Motion
    coefficient: float

    def __call__(self, t: float, s: float, rate: float) -> float:
        """Return the torque, N m; see `JointLoad`."""
        return -self.coefficient * (rate - self.motion(t)[1])

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives with respect to the angle and its rate."""
        return 0.0, -self.coefficient


class _TimeFunction:
    """A torque that depends on the time only."""

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return zero: the torque depends on the nominal motion."""
        return 0.0, 0.0


class _NominalTorque(_TimeFunction):
    """Torque on a disc at the nominal angle and speed."""

    def __init__(self, motion: Motion, torque: DiscTorque) -> None:
        self.motion: Motion = motion
        self.torque: DiscTorque = getattr(torque, "at", torque)

    def __call__(self, t: float, s: float, rate: float) -> float:
        angle, speed, _ = self.motion(t)
        return float(np.asarray(self.torque(angle, speed)))


class _DriveTorque(_TimeFunction):
    """Torque that keeps the mean speed of a chain at its nominal speed."""

    def __init__(self, motion: Motion, torques: list[DiscTorque], inertia: float) -> None:
        self.motion, self.torques, self.inertia = motion, torques, inertia
        self._means: dict[int, float] = {}

    def __call__(self, t: float, s: float, rate: float) -> float:
        _, speed, acceleration = self.motion(t)
        low = math.floor(speed / _SPEED_STEP)
        weight = speed / _SPEED_STEP - low
        mean = (1 - weight) * self._mean(low) + weight * self._mean(low + 1)
        return self.inertia * acceleration - mean

    def _mean(self, step: int) -> float:
        """Return the mean over two turns of the sum of all torques, N m.

        The speed is `step` times `_SPEED_STEP`.
        """
        if step not in self._means:
            values = [
                np.mean(np.asarray(torque(_CYCLE, step * _SPEED_STEP))) for torque in self.torques
            ]
            self._means[step] = float(sum(values))
        return self._means[step]
