"""Two-beam engine of a paper: crank and rod as two planar beam elements, welded to each other.

Each element moves in a frame of the rigid mechanism. The coordinates Q₁ to Q₉ are displacements
along X and Y and rotations of the shaft, the crank pin and the piston pin relative to the rigid
motion; Q₁, Q₂ and Q₈ are zero, so that six coordinates remain. Crank and rod share the rotation Q₆
at the crank pin, so they are *welded* there. As the shaft can rotate (Q₃), only the weld prevents a
motion of the two beams without strain. The moment that drives the crank of an engine bends the
weld. As printed, the model has no rotary inertia, no Coriolis term and no geometric stiffness; it
has spin softening. Its modal superposition uses the matrices of one crank angle.

References:
    S. Dumitru et al., Mathematics 13 (2025) 2797, section 3, eqs. (43) to (92).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, flag, instance, number, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank

AXIAL, BENDING = [0, 3], [1, 2, 4, 5]
LINEAR = np.array([[1.0, 0.0], [-1.0, 1.0]])  # columns: coefficients of 1 - ξ and ξ in powers of ξ
CUBIC = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [-3, -2, 3, -1], [2, 1, -2, 1]])  # Hermite's


@dataclass(frozen=True)
class PlanarBeam:
    """Uniform Euler-Bernoulli element with the coordinates (u₁, v₁, θ₁, u₂, v₂, θ₂) along its axis.

    The paper omits the rotary inertia of the section.
    """

    length: float  # l, m
    area: float  # A, m²
    second_moment: float  # I = ∫y² dA, m⁴
    young: float  # E, Pa
    density: float  # ρ, kg/m³
    rotary: bool = False  # whether the rotary inertia is included

    def __post_init__(self) -> None:
        for name in ("length", "area", "second_moment", "young", "density"):
            number(name, getattr(self, name), positive=True)
        flag("rotary", self.rotary)

    @property
    def mass_per_length(self) -> float:
        """ρA, kg/m."""
        return self.density * self.area

    def shapes(self, x: ArrayLike, derivative: int = 0) -> Array:
        """Return the matrix N(x) of (u, v), eq. (44), or a derivative, shape (..., 2, 6)."""
        h = self.length
        xi = np.asarray(x, dtype=float) / h
        N = np.zeros((*xi.shape, 2, 6))
        linear, cubic = (polyval(xi, polyder(c, derivative)) for c in (LINEAR, CUBIC))
        N[..., 0, AXIAL] = np.moveaxis(linear, 0, -1)
        N[..., 1, BENDING] = np.moveaxis(cubic, 0, -1) * [1, h, 1, h]
        return np.asarray(N / h**derivative, dtype=np.float64)

    @cached_property
    def _gauss(self) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        """Return points and weights of exact quadrature, and N and its derivatives there."""
        points, weights = leggauss(4)
        x, w = self.length * (1 + points) / 2, self.length * weights / 2
        return x, w, (self.shapes(x), self.shapes(x, 1), self.shapes(x, 2))

    def stiffness(self) -> Array:
        """Return K_s = ∫BᵀDB, eq. (62), shape (6, 6)."""
        _, w, (_, first, second) = self._gauss
        stretch, curvature = first[:, 0], second[:, 1]
        axial, bending = self.young * self.area, self.young * self.second_moment
        return axial * (w * stretch.T) @ stretch + bending * (w * curvature.T) @ curvature

    def mass(self) -> Array:
        """Return M = ρA∫NᵀN, eq. (67), shape (6, 6)."""
        return self.weighted_mass(np.eye(2))

    def weighted_mass(self, W: ArrayLike) -> Array:
        """Return ρA∫NᵀWN, shape (6, 6), for a constant matrix W, shape (2, 2).

        With `rotary`, the fibre at y has the additional displacement (-yv′, 0).
        """
        W = np.asarray(W, dtype=float)
        _, w, (N, first, _) = self._gauss
        weighted = w[:, None, None] * N
        G = self.mass_per_length * weighted.reshape(-1, 6).T @ (W @ N).reshape(-1, 6)
        if self.rotary:
            slope = first[:, 1]
            G += self.density * self.second_moment * W[0, 0] * (w * slope.T) @ slope
        return np.asarray(G)

    def dynamic_stiffness(self, omega: float, alpha: float) -> Array:
        """Return K_d = ρA∫Nᵀ(α̃ + ω̃ω̃)N, eqs. (63, 64), (6, 6); K_d is not symmetric for α ≠ 0."""
        return self.weighted_mass(_acceleration_gradient(omega, alpha))

    def load(self, acceleration: ArrayLike, W: ArrayLike = ((0, 0), (0, 0))) -> Array:
        """Return -ρA∫Nᵀ(a + W(x, 0)), shape (6,), N and N m.

        `acceleration` is the acceleration a of the frame's origin in the axes of the beam, without
        gravity, shape (2,), m/s²; `W` is α̃ + ω̃ω̃, shape (2, 2), 1/s².
        """
        a, W = np.asarray(acceleration, dtype=float), np.asarray(W, dtype=float)
        x, w, (N, first, _) = self._gauss
        f = -self.mass_per_length * np.einsum("q,qci,qc->i", w, N, a + np.outer(x, W[:, 0]))
        if self.rotary:  # the fibre at (x, y) has the displacement (-yv′, 0)
            f += self.density * self.second_moment * W[0, 1] * (w @ first[:, 1])
        return np.asarray(f)


def _acceleration_gradient(omega: float, alpha: float) -> Array:
    """Return α̃ + ω̃ω̃ for planar rotation, shape (2, 2)."""
    return np.array([[-(omega**2), -alpha], [alpha, -(omega**2)]])


def _transformation(angle: float) -> Array:
    """Return the matrix T_e from global to element coordinates, shape (6, 6)."""
    c, s = np.cos(angle), np.sin(angle)
    T = np.eye(6)
    T[:2, :2] = T[3:5, 3:5] = [[c, s], [-s, c]]
    return T


class FrameModes(NamedTuple):
    """Modes of the frame at a fixed crank angle."""

    frequencies: Array  # shape (6,), ascending, Hz
    modes: Array  # right eigenvectors φ in the columns, shape (6, 6)
    left: Array  # left eigenvectors with leftᵀ M φ = I, equal to φ if K is symmetric


@dataclass(frozen=True)
class TwoBeamEngine:
    """One cylinder with crank and rod as beam elements and the piston as a point mass at node 3.

    The crank angle is 0 at top dead centre; the piston slides along X, and the crank rotates at
    constant speed. By default, gravity acts normal to the cylinder axis, as in eqs. (49, 52). With
    `pinned`, crank and rod rotate separately at the crank pin, and the drive prevents the rotation
    of the shaft (Q₃ = 0); Q then has a tenth component, the rotation of the rod at the crank pin.
    """

    crank: PlanarBeam  # element 1, from the shaft to the crank pin
    rod: PlanarBeam  # element 2, from the crank pin to the piston pin
    piston_mass: float  # kg
    speed: float  # speed of the crank, rad/s
    gravity: tuple[float, float] = (0.0, -9.80665)  # global components, m/s²
    pinned: bool = False

    def __post_init__(self) -> None:
        for name in ("crank", "rod"):
            instance(name, getattr(self, name), PlanarBeam)
        SliderCrank(self.crank.length, self.rod.length)  # checks the lengths
        number("piston_mass", self.piston_mass, low=0.0, unit="kg")
        number("speed", self.speed, unit="rad/s")
        vector("gravity", self.gravity, 2, unit="m/s²")
        flag("pinned", self.pinned)

    @property
    def free(self) -> list[int]:
        """Zero-based indices of the six free coordinates in Q."""
        return [3, 4, 5, 6, 8, 9] if self.pinned else [2, 3, 4, 5, 6, 8]

    @property
    def places(self) -> tuple[list[int], list[int]]:
        """Zero-based indices of the coordinates of crank and rod in Q."""
        return [0, 1, 2, 3, 4, 5], [3, 4, 9 if self.pinned else 5, 6, 7, 8]

    @property
    def size(self) -> int:
        """Number of components of Q."""
        return 10 if self.pinned else 9

    @property
    def mechanism(self) -> SliderCrank:
        """The rigid mechanism."""
        return SliderCrank(self.crank.length, self.rod.length)

    def angles(self, angle: float) -> tuple[float, float]:
        """Return the angles of crank and rod to X, rad, at a crank angle."""
        return float(angle), float(self.mechanism.motion(angle).rod_angle)

    def _elements(
        self, angle: float, motion: Any
    ) -> Iterator[tuple[PlanarBeam, list[int], Array, tuple[float, float]]]:
        """Yield each beam with its indices in Q, its T_e and its ω and α."""
        crank_angle, rod_angle = self.angles(angle)
        spin = float(motion.rod_velocity), float(motion.rod_acceleration)
        yield self.crank, self.places[0], _transformation(crank_angle), (self.speed, 0.0)
        yield self.rod, self.places[1], _transformation(rod_angle), spin

    def matrices(self, angle: float) -> tuple[Array, Array, Array]:
        """Return M and the static and dynamic parts of K at a crank angle, shape (6, 6) each.

        The element matrices are transformed to global axes and assembled, eqs. (62 to 72).
        """
        motion = self.mechanism.motion(angle, self.speed)
        static, dynamic, mass = np.zeros((3, self.size, self.size))
        mass[[6, 7], [6, 7]] = self.piston_mass
        for beam, places, T, spin in self._elements(angle, motion):
            block = np.ix_(places, places)
            static[block] += T.T @ beam.stiffness() @ T
            dynamic[block] += T.T @ beam.dynamic_stiffness(*spin) @ T
            mass[block] += T.T @ beam.mass() @ T
        free = np.ix_(self.free, self.free)
        return mass[free], static[free], dynamic[free]

    def load(self, angle: float, gas_force: float, *, complete: bool = True) -> tuple[Array, Array]:
        """Return the static and dynamic parts of the nodal force, eqs. (48 to 61), (6,) each.

        As printed, the Euler and centrifugal loads at the end of an element act at all its points
        (r₂ = (l₂, 0), eq. (55)), and the inertia force of the rigidly moving piston is missing;
        with `complete`, both are correct. The gas force (N) pushes the piston towards the shaft.
        """
        motion = self.mechanism.motion(angle, self.speed)
        g = np.asarray(self.gravity)
        pin = -self.crank.length * self.speed**2 * np.array([np.cos(angle), np.sin(angle)])
        static, dynamic = np.zeros((2, self.size))
        static[6] -= gas_force
        static[6:8] += self.piston_mass * g
        for beam, places, T, spin in self._elements(angle, motion):
            W, a = (
                _acceleration_gradient(*spin),
                T[:2, :2] @ (pin if beam is self.rod else np.zeros(2)),
            )
            inertia = beam.load(a, W) if complete else beam.load(a + W[:, 0] * beam.length)
            static[places] += T.T @ beam.load(-T[:2, :2] @ g)
            dynamic[places] += T.T @ inertia
        if complete:
            dynamic[6] -= self.piston_mass * float(motion.slider_acceleration)
        return static[self.free], dynamic[self.free]

    def quasi_static(
        self, angle: ArrayLike, gas_force: ArrayLike, *, complete: bool = True
    ) -> Array:
        """Return Q = K⁻¹F, eq. (75), with the dynamic part of K; shape (nt, size)."""
        angles, forces = np.atleast_1d(angle), np.atleast_1d(gas_force)
        Q = np.zeros((len(angles), self.size))
        for k, (at, gas) in enumerate(zip(angles, forces, strict=True)):
            _, static, dynamic = self.matrices(at)
            load = sum(self.load(at, gas, complete=complete))
            Q[k, self.free] = np.linalg.solve(static + dynamic, load)
        return Q

    def modes(self, angle: float, *, dynamic: bool = True) -> FrameModes:
        """Return the modes of the frame at a fixed crank angle, eq. (90).

        `dynamic` includes the dynamic part of K. The dynamic part is not symmetric if the rod has
        an angular acceleration. The modes are then not orthogonal (eq. (82)), and the left
        eigenvectors differ from the right eigenvectors. An error is raised if the frame is
        unstable.
        """
        mass, K, part = self.matrices(angle)
        if dynamic:
            K = K + part
        squares, left, right = scipy.linalg.eig(K, mass, left=True, right=True)
        if np.abs(squares.imag).max() > 1e-8 * np.abs(squares).max() or squares.real.min() <= 0:
            raise InputError(f"at {np.rad2deg(angle):g}° the frozen frame has no six frequencies")
        order = np.argsort(squares.real)
        right, left = np.real(right[:, order]), np.real(left[:, order])
        right /= np.sqrt(np.einsum("ij,ik,kj->j", right, mass, right))
        left /= np.einsum("ij,ik,kj->j", left, mass, right)
        return FrameModes(np.sqrt(squares.real[order]) / (2 * np.pi), right, left)

    def modal_superposition(
        self, angle: float, time: ArrayLike, load: ArrayLike, *, dynamic: bool = True
    ) -> Array:
        """Return Q(t) of the frame at a fixed crank angle, eqs. (80 to 91), shape (nt, size).

        The times (nt,) are equally spaced, and the loads have the shape (nt, 6). There is no
        damping. The frame is initially at rest in static equilibrium with the first load.
        """
        modes = self.modes(angle, dynamic=dynamic)
        forces = array("load", load, (np.size(time), 6)) @ modes.left
        a = undamped_response(2 * np.pi * modes.frequencies, time, forces)
        Q = np.zeros((len(a), self.size))
        Q[:, self.free] = a @ modes.modes.T
        return Q

    def rod_displacement(self, angle: ArrayLike, Q: ArrayLike, x: ArrayLike) -> Array:
        """Return the axial and transverse displacements of the rod, eq. (92), shape (nt, m, 2), m.

        `angle` contains the crank angles, shape (nt,); `Q` has the shape (nt, size); `x` contains
        distances from the crank pin, shape (m,), m.
        """
        rod = self.mechanism.motion(np.asarray(angle, dtype=float)).rod_angle
        T = np.stack([_transformation(float(at)) for at in np.atleast_1d(rod)])
        local = np.einsum("tij,tj->ti", T, np.asarray(Q)[:, self.places[1]])
        return np.einsum("mcj,tj->tmc", self.rod.shapes(np.atleast_1d(x)), local)


def undamped_response(omega: ArrayLike, time: ArrayLike, force: ArrayLike) -> Array:
    """Return a(t) of ä + ω²a = f(t), exact for forces that are linear between the times, (nt, n).

    The frequencies ω have the shape (n,), the equally spaced times the shape (nt,), the forces per
    unit of modal mass the shape (nt, n). The initial state is static equilibrium with the first
    force, a = f/ω².
    """
    w, t, f = (np.asarray(v, dtype=float) for v in (omega, time, force))
    if not (w > 0).all():
        raise InputError(f"omega must be positive (rad/s), got {w}")
    if np.ptp(np.diff(t)) > 1e-9 * (t[-1] - t[0]):
        raise InputError("time: the instants must be equally spaced")
    a = np.zeros_like(f)
    for k, (rate, load) in enumerate(zip(w, f.T, strict=True)):
        system = [[0, rate], [-rate, 0]], [[0], [1 / rate]], [[1, 0]], [[0]]  # state: a and ȧ/ω
        start = [load[0] / rate**2, 0]
        a[:, k] = scipy.signal.lsim(system, load, t - t[0], X0=start)[1]
    return a
