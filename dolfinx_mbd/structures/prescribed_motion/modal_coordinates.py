"""Deformation of a reduced body with a prescribed rigid motion.

With all terms of the motion, the equation is the equation of `transient` projected onto the modes.
The difference between the two solutions is then the error of the modes. With ``couplings=False``,
it is the "frozen" equation of papers on engines, M η̈ + C η̇ + K η = f(t), without Coriolis terms,
spin softening and stiffening; `quasi_static_deformation` solves K η = f(t).

References:
    Computational method for dynamic analysis of multibody systems with deformable elements,
    Mathematics 13 (2025) 2797, sections 3.4 (static deformation, K Q = F) and 3.5 (modal
    superposition).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.static_errors import stretch_energies, warn_of_stretch
from dolfinx_mbd.checks import array, flag, instance, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.operators import spin_matrix
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion, check_interfaces
from dolfinx_mbd.structures.prescribed_motion.observation import PointHistory
from dolfinx_mbd.structures.prescribed_motion.time_stepping import (
    MotionStepper,
    Start,
    check_start,
    check_stepping,
    start_state,
    time_steps,
)
from dolfinx_mbd.time_integration import GeneralizedAlpha

TOLERANCE = 1e-12
"""Relative error of the linear system of a step."""


@dataclass(frozen=True, eq=False)
class ModalTransient:
    """Elastic coordinates over time.

    Example:
        >>> static = quasi_static_deformation(body, motion, [0.0])
        >>> static.interfaces["right"].displacement.shape
        (1, 6)
    """

    time: Array  # shape (nt,), s
    eta: Array  # elastic coordinates, shape (nt, n), m for modes whose modal mass is 1 kg
    eta_rate: Array  # shape (nt, n), m/s
    eta_acceleration: Array  # shape (nt, n), m/s²
    points: Mapping[str, PointHistory]  # elastic motion at the named points of the body
    interfaces: Mapping[str, PointHistory]

    __repr__ = short_repr


class _ModalEquations:
    """`Equations` of a reduced body; see there for the methods."""

    comm, start_names = MPI.COMM_SELF, "elastic coordinates η and their rates η̇"

    def __init__(
        self, body: ReducedBody, motion: PrescribedMotion, couplings: bool, stiffening: bool
    ) -> None:
        self.body, self.motion, self.couplings = body, motion, couplings
        self.stiffening = body.stiffening if stiffening else None
        n = self.size = body.num_modes
        self._pairs = np.ascontiguousarray(body.second_moments[1:, 1:].reshape(n, n, 9))
        self._first = body.second_moments[1:, 0].reshape(n, 9)
        self._interfaces = {i.name: k for k, i in enumerate(body.interfaces)}

    def factorize(self, velocity_factor: float, displacement_factor: float) -> None:
        body = self.body
        self._inverse = np.linalg.inv(
            body.mass + velocity_factor * body.damping + displacement_factor * body.stiffness
        )

    def move_to(self, t: float) -> None:
        """Set the load and the matrices that depend on the motion to time t (s)."""
        body, instant, n = self.body, self.motion(t), self.size
        spin = spin_matrix(instant.omega)
        W = (spin @ spin + spin_matrix(instant.alpha)).ravel()
        self.load = -(body.first_moments[1:] @ instant.acceleration + self._first @ W)
        # G, and K_σ + K_ω + K_α
        self.gyroscopic, self.motion_stiffness = np.zeros((2, n, n))
        if self.couplings:
            self.gyroscopic = self._pairs @ (2 * spin).ravel()
            self.motion_stiffness = self._pairs @ W
        if self.stiffening is not None:
            factors = np.array([instant.omega[i] * instant.omega[j] for i, j in SPINS])
            by_spin = np.tensordot(factors, self.stiffening.spin, axes=1)
            self.motion_stiffness = self.motion_stiffness + by_spin
        for name, wrench in instant.wrenches.items():
            k = self._interfaces.get(name)
            if k is None:
                self.load += self._point_load(name, wrench)
                continue
            self.load += body.interfaces[k].motion.T @ wrench
            if self.stiffening is not None:
                by_wrench = np.tensordot(wrench, self.stiffening.interfaces[k], axes=1)
                self.motion_stiffness += by_wrench

    def _point_load(self, name: str, wrench: Array) -> Array:
        """Return the work of a force at a named point on the modes, (n,); reject a moment."""
        if wrench[3:].any():
            text = f"motion.wrenches: the named point {name!r} has no moment; use an interface"
            raise InputError(text, argument="motion.wrenches", value=wrench)
        return np.asarray(self.body.point(name).modes @ wrench[:3])

    def balance(self, u: Array, v: Array) -> Array:
        body = self.body
        return self.load - body.damping @ v - body.stiffness @ u - self.motion_terms(u, v)

    def motion_terms(self, u: Array, v: Array) -> Array:
        return np.asarray(self.gyroscopic @ v + self.motion_stiffness @ u)

    def solve(self, r: Array) -> Array:
        return np.asarray(self._inverse @ r)

    def dot(self, x: Array, y: Array) -> float:
        return float(x @ y)

    def acceleration(self, t: float, u: Array, v: Array) -> Array:
        self.move_to(t)
        return np.asarray(np.linalg.solve(self.body.mass, self.balance(u, v)), dtype=np.float64)

    def static_solution(self, t: float, v: Array | None = None, a: Array | None = None) -> Array:
        self.move_to(t)
        load = self.load
        if v is not None and a is not None:
            load = self.balance(np.zeros(self.size), v) - self.body.mass @ a
        u = np.linalg.solve(self.body.stiffness + self.motion_stiffness, load)
        return np.asarray(u, dtype=np.float64)


def modal_transient(
    body: ReducedBody,
    motion: PrescribedMotion,
    *,
    t_end: float,
    dt: float,
    t_start: float = 0.0,
    couplings: bool = True,
    stiffening: bool | None = None,
    method: GeneralizedAlpha | None = None,
    elastic_start: Start = "quasi-static",
    stride: int = 1,
) -> ModalTransient:
    """Integrate the elastic coordinates of a reduced body with a prescribed rigid motion.

    The damping is the matrix of the body. The function is not collective.

    Args:
        body: Reduced body whose body frame is the frame of the motion: the mean-axis frame, or the
            frame of an interface; `motion` then contains no wrench at this interface.
        motion: Motion of the frame, and the wrenches at interfaces and forces at named points.
            Forces at named points cause no geometric stiffening.
        t_end: End time, s.
        dt: Step, s; adjusted so that the number of steps is an integer.
        t_start: Start time, s.
        couplings: Whether Coriolis, centrifugal and Euler terms act on the deformation. If not,
            only the inertia loads act ("frozen" motion).
        stiffening: Whether to include geometric stiffening. By default it is included if
            `couplings` is True and the body has it.
        method: Time-stepping method; see `TransientOptions`.
        elastic_start: See `TransientOptions`, with (η, η̇) instead of (u, v).
        stride: Record every n-th step; the first and the last are always recorded.

    Returns:
        Elastic coordinates, and the motion of points and interfaces.

    Raises:
        InputError: A value is invalid.
        SolverError: The equations of a step were not solved.

    Example:
        >>> modal_transient(body, motion, t_end=1e-4, dt=1e-5, couplings=False).eta.shape
        (11, 8)
    """
    equations = _equations(body, motion, couplings, stiffening)
    check_start(elastic_start)
    steps, dt = time_steps(t_start, t_end, dt)
    check_stepping(method, TOLERANCE, stride)
    state = start_state(equations, elastic_start, t_start, dt)
    stepper = MotionStepper(equations, dt, method, tolerance=TOLERANCE)
    states = [state]
    for k in range(1, steps + 1):
        state = stepper.step(state)._replace(time=t_start + k * dt)
        if k % stride == 0 or k == steps:
            states.append(state)
    time = np.array([s.time for s in states])
    return _result(
        body, motion, time, *(np.array([getattr(s, key) for s in states]) for key in "uva")
    )


def quasi_static_deformation(
    body: ReducedBody,
    motion: PrescribedMotion,
    times: ArrayLike,
    *,
    couplings: bool = False,
    stiffening: bool = False,
) -> ModalTransient:
    """Solve K η = f(t) for a reduced body under the loads of its motion at given times.

    Args:
        body: See `modal_transient`.
        motion: Motion of the frame, and the wrenches at the interfaces.
        times: Times, shape (nt,), s.
        couplings: Whether K_ω and K_α act.
        stiffening: Whether K_σ acts.

    Returns:
        Elastic coordinates; their derivatives are not computed and are NaN.

    Raises:
        InputError: A value is invalid.

    Example:
        >>> quasi_static_deformation(body, motion, [0.0, 0.1]).eta.shape
        (2, 8)
    """
    equations = _equations(body, motion, couplings, flag("stiffening", stiffening))
    time = np.atleast_1d(array("times", times)).ravel()
    if not len(time):
        reject("times", times, "at least one time in s")
    eta = np.array([equations.static_solution(float(t)) for t in time])
    unknown = np.full_like(eta, np.nan)
    return _result(body, motion, time, eta, unknown, unknown)


def _equations(body: Any, motion: Any, couplings: Any, stiffening: Any) -> _ModalEquations:
    """Check the arguments that both functions share, and return the equations."""
    instance("body", body, ReducedBody, "such as reduce(...).body")
    instance("motion", motion, PrescribedMotion)
    flag("couplings", couplings)
    if stiffening is None:
        stiffening = couplings and body.stiffening is not None
    if flag("stiffening", stiffening) and body.stiffening is None:
        text = f"body {body.name!r} holds no stiffening; reduce it with stiffening=True"
        raise InputError(text, argument="stiffening", value=True)
    valid_names = [part.name for part in (*body.interfaces, *body.points)]
    check_interfaces("motion.wrenches", motion.wrenches, valid_names)
    return _ModalEquations(body, motion, couplings, stiffening)


def _result(
    body: ReducedBody, motion: PrescribedMotion, time: Array, u: Array, v: Array, a: Array
) -> ModalTransient:
    """Return the histories of points and interfaces from those of the modal coordinates."""
    omega = np.array([motion(float(t)).omega for t in time])
    warn_of_stretch([(body, stretch_energies(body, omega, u))])
    points = {p.name: PointHistory(*(x @ p.modes for x in (u, v, a))) for p in body.points}
    interfaces = {
        i.name: PointHistory(*(x @ i.motion.T for x in (u, v, a))) for i in body.interfaces
    }
    return ModalTransient(time, u, v, a, points, interfaces)
