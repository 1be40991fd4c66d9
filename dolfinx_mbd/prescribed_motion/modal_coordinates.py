"""Deformation of a reduced body whose rigid motion is given: in its modes, or as if it stood still.

With all terms of the motion it is the equation of `transient` projected on the modes, so that the
difference of the two is what the modes left out. With ``couplings=False`` it is the "frozen" motion
of the engine papers: modes of the body as it stands still, M η̈ + C η̇ + K η = f(t), where the motion
appears in the inertia loads only, and `quasi_static_deformation` is their K η = f(t). Both are
cheap, and both leave out Coriolis terms, spin softening and stiffening.

References:
    Mathematics 13 (2025) 2797, section 3.4 (eq. K Q = F) and 3.5 (modal superposition).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.static_errors import warn_of_stretch
from dolfinx_mbd.checks import array, flag, instance, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.operators import spin_matrix
from dolfinx_mbd.prescribed_motion.motion import PrescribedMotion
from dolfinx_mbd.prescribed_motion.observation import PointHistory
from dolfinx_mbd.prescribed_motion.solve import check_stepping, checked_start, time_steps
from dolfinx_mbd.prescribed_motion.time_stepping import MotionState, MotionStepper
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["ModalTransient", "modal_transient", "quasi_static_deformation"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModalTransient:
    """Elastic coordinates over time.

    Attributes:
        time: Shape (nt,), s.
        eta: Shape (nt, n).
        eta_rate: Shape (nt, n), 1/s.
        eta_acceleration: Shape (nt, n), 1/s².
        points: Elastic motion at the body's named points, body components.
        interfaces: Elastic motion of its interfaces.
    """

    time: Array
    eta: Array
    eta_rate: Array
    eta_acceleration: Array
    points: Mapping[str, PointHistory]
    interfaces: Mapping[str, PointHistory]


class _ModalEquations:
    """`Equations` of a reduced body."""

    def __init__(
        self, body: ReducedBody, motion: PrescribedMotion, couplings: bool, stiffening: bool
    ) -> None:
        self.body, self.motion, self.couplings = body, motion, couplings
        self.stiffening = body.stiffening if stiffening else None
        n = body.num_modes
        self._pairs = np.ascontiguousarray(body.second_moments[1:, 1:].reshape(n, n, 9))
        self._first = body.second_moments[1:, 0].reshape(n, 9)
        self._interfaces = {i.name: k for k, i in enumerate(body.interfaces)}
        self._inverse: Array = np.zeros((n, n))
        self.load: Array = np.zeros(n)
        self.gyroscopic: Array = np.zeros((n, n))
        self.change: Array = np.zeros((n, n))

    def factorize(self, by_speed: float, by_move: float) -> None:
        body = self.body
        S = body.mass + by_speed * body.damping + by_move * body.stiffness
        self._inverse = np.asarray(np.linalg.inv(S), dtype=np.float64)

    def move_to(self, t: float) -> None:
        body, now = self.body, self.motion(t)
        spin = spin_matrix(now.omega)
        W = (spin @ spin + spin_matrix(now.alpha)).ravel()
        self.load = -(body.first_moments[1:] @ now.acceleration + self._first @ W)
        n = body.num_modes
        self.gyroscopic, self.change = np.zeros((n, n)), np.zeros((n, n))
        if self.couplings:
            self.gyroscopic = self._pairs @ (2 * spin).ravel()
            self.change = self._pairs @ W
        if self.stiffening is not None:
            w = now.omega
            factors = np.array([w[i] * w[j] for i, j in SPINS])
            self.change = self.change + np.tensordot(factors, self.stiffening.spin, axes=1)
        for name, wrench in now.wrenches.items():
            k = self._interfaces[name]
            self.load += body.interfaces[k].motion.T @ wrench
            if self.stiffening is not None:
                self.change += np.tensordot(wrench, self.stiffening.interfaces[k], axes=1)

    def balance(self, u: Array, v: Array) -> Array:
        body = self.body
        return self.load - body.damping @ v - body.stiffness @ u - self.moving(v, u)

    def moving(self, v: Array, u: Array) -> Array:
        return np.asarray(self.gyroscopic @ v + self.change @ u)

    def solve(self, r: Array) -> Array:
        return np.asarray(self._inverse @ r)

    def dot(self, x: Array, y: Array) -> float:
        return float(x @ y)

    def static_solution(self, t: float, inertia: Array | float = 0.0) -> Array:
        """η of (K + ...) η = f - inertia at a time."""
        self.move_to(t)
        return np.asarray(np.linalg.solve(self.body.stiffness + self.change, self.load - inertia))


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
    elastic_start: Literal["quasi-static", "undeformed"]
    | tuple[ArrayLike, ArrayLike] = "quasi-static",
    stride: int = 1,
) -> ModalTransient:
    """Integrate the elastic coordinates of a reduced body whose rigid motion is given.

    Damping is the body's own matrix. Every rank may do it, or one; nothing is collective.

    Args:
        body: Reduced with the reference in which the motion is given: mean axis, or attached to an
            interface (at which no wrench is given).
        motion: Of the frame, and the wrenches at the interfaces.
        t_end: End time, s.
        dt: Step, s; fitted to the time.
        t_start: Start time, s.
        couplings: False: the "frozen" motion, with the inertia loads only.
        stiffening: Geometric stiffening; None: with `couplings`, if the body has it.
        method: See `transient`.
        elastic_start: See `transient`; (η, η̇) in place of (u, v).
        stride: Keep every n-th step; the first and the last are always kept.

    Raises:
        ValueError: Something given does not fit.
        RuntimeError: A step was not solved.
    """
    _check_arguments(body, motion, couplings, stiffening)
    checked_start(elastic_start)
    steps, dt = time_steps(t_start, t_end, dt)
    check_stepping(method, 1e-12, stride)
    if stiffening and body.stiffening is None:
        raise InputError(f"body {body.name!r} holds no stiffening; reduce it with stiffening=True")
    stiff = body.stiffening is not None and (couplings if stiffening is None else stiffening)
    _check_wrenches(body, motion)
    equations = _ModalEquations(body, motion, couplings, stiff)
    state = _start(equations, elastic_start, t_start, dt)
    stepper = MotionStepper(equations, dt, method, tolerance=1e-12)
    kept = [state]
    for k in range(1, steps + 1):
        state = stepper.step(state)._replace(time=t_start + k * dt)
        if k % stride == 0 or k == steps:
            kept.append(state)
    time = np.array([s.time for s in kept])
    return _result(
        body, motion, time, *(np.array([getattr(s, key) for s in kept]) for key in "uva")
    )


def quasi_static_deformation(
    body: ReducedBody,
    motion: PrescribedMotion,
    times: ArrayLike,
    *,
    couplings: bool = False,
    stiffening: bool = False,
) -> ModalTransient:
    """Balance K η = f(t) of a reduced body with the loads of its motion, at any times.

    Args:
        body: See `modal_transient`.
        motion: Of the frame, and the wrenches at the interfaces.
        times: s.
        couplings: Also K_ω and K_α.
        stiffening: Also K_σ.

    Returns:
        Elastic coordinates; their rates are not computed, and nan.

    Raises:
        ValueError: Something given does not fit.
    """
    _check_arguments(body, motion, couplings, stiffening)
    _check_wrenches(body, motion)
    if stiffening and body.stiffening is None:
        raise InputError(f"body {body.name!r} holds no stiffening; reduce it with stiffening=True")
    equations = _ModalEquations(body, motion, couplings, stiffening)
    time = np.atleast_1d(array("times", times)).ravel()
    if not len(time):
        refuse("times", times, "at least one time in s")
    eta = np.array([equations.static_solution(float(t)) for t in time])
    nothing = np.full_like(eta, np.nan)
    return _result(body, motion, time, eta, nothing, nothing)


def _check_arguments(body: Any, motion: Any, couplings: Any, stiffening: Any) -> None:
    instance("body", body, ReducedBody, "such as reduce(...).body")
    instance("motion", motion, PrescribedMotion)
    flag("couplings", couplings)
    if stiffening is not None:
        flag("stiffening", stiffening)


def _check_wrenches(body: ReducedBody, motion: PrescribedMotion) -> None:
    names = [i.name for i in body.interfaces]
    for name in motion.wrenches:
        if name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise InputError(f"motion.wrenches: unknown interface {name!r}; this body has {known}")


def _start(equations: _ModalEquations, start: Any, t: float, dt: float) -> MotionState:
    body = equations.body
    n = body.num_modes
    if isinstance(start, str) and start == "quasi-static":
        now, next_, last = (equations.static_solution(t + k * dt) for k in range(3))
        v = np.asarray((4 * next_ - 3 * now - last) / (2 * dt), dtype=np.float64)
        a = np.asarray((last - 2 * next_ + now) / dt**2, dtype=np.float64)
        equations.move_to(t)
        inertia = body.mass @ a + body.damping @ v + equations.gyroscopic @ v
        return MotionState(t, equations.static_solution(t, inertia), v, a, a)
    given = (np.zeros(n), np.zeros(n)) if isinstance(start, str) else start
    u, v = (np.array(array("elastic_start", x)) for x in given)
    if u.shape != (n,) or v.shape != (n,):
        raise InputError(
            f"elastic_start needs η and η̇ of shape ({n},); got {u.shape} and {v.shape}"
        )
    equations.move_to(t)
    rate = np.asarray(np.linalg.solve(body.mass, equations.balance(u, v)), dtype=np.float64)
    return MotionState(t, u, v, rate, rate)


def _result(
    body: ReducedBody, motion: PrescribedMotion, time: Array, u: Array, v: Array, a: Array
) -> ModalTransient:
    warn_of_stretch([(body, np.array([motion(float(t)).omega for t in time]), u)])
    points = {p.name: PointHistory(*(x @ p.modes for x in (u, v, a))) for p in body.points}
    interfaces = {
        i.name: PointHistory(*(x @ i.motion.T for x in (u, v, a))) for i in body.interfaces
    }
    return ModalTransient(time, u, v, a, points, interfaces)
