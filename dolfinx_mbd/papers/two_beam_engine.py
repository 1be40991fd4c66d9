"""The two-beam engine of the engine paper: crank and rod as two planar beam elements, welded.

Each element has two nodes with axial and transverse displacement and rotation, in a frame that
moves with the rigid mechanism. The assembled coordinates are

    Q = (Q₁, Q₂, Q₃ | Q₄, Q₅, Q₆ | Q₇, Q₈, Q₉),    displacements along X and Y and rotation of

the shaft, the crank pin and the piston pin from their places in the rigid motion; Q₁ = Q₂ = Q₈ = 0
leave six. There is one rotation Q₆ at the crank pin, so that crank and rod are *welded* there, and
none is held at the shaft. Only the weld keeps the frame from being a mechanism: what turns the
crank in the engine, the moment of the piston's force about the shaft, bends the frame here. With
`pinned` the same elements have a rotation each at the crank pin, and the shaft is held as by its
drive, which leaves six coordinates too.

The model is given as printed, with its shortcomings: no rotary inertia, no Coriolis term, no
geometric stiffness beside the spin softening, coefficients frozen at one crank angle in the modal
superposition. `PlanarBeam` has the rotary inertia by choice, `TwoBeamEngine.load` the loads that
are left out in the print.

References:
    S. Dumitru et al., Mathematics 13 (2025) 2797, section 3, eqs. (43) to (92).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, flag, instance, number, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanisms.kinematics import SliderCrank

__all__ = ["FrameModes", "PlanarBeam", "TwoBeamEngine", "undamped_response"]

Array = NDArray[np.float64]

_AXIAL, _BENDING = [0, 3], [1, 2, 4, 5]


@dataclass(frozen=True)
class PlanarBeam:
    """A beam element from x = 0 to its length; coordinates (u₁, v₁, θ₁, u₂, v₂, θ₂) in its axes.

    Attributes:
        length: l, m.
        area: A, m².
        second_moment: I = ∫y² dA, m⁴.
        young: E, Pa.
        density: ρ, kg/m³.
        rotary: Whether the section's own inertia counts; in the paper it does not.

    Raises:
        InputError: A value is not a positive number.
    """

    length: float
    area: float
    second_moment: float
    young: float
    density: float
    rotary: bool = False

    def __post_init__(self) -> None:
        for name in ("length", "area", "second_moment", "young", "density"):
            number(name, getattr(self, name), positive=True)
        flag("rotary", self.rotary)

    @property
    def mass_per_length(self) -> float:
        """ρA, kg/m."""
        return self.density * self.area

    def shapes(self, x: ArrayLike) -> Array:
        """N(x), displacement (u, v) per coordinate, eq. (44), shape (..., 2, 6)."""
        xi = np.asarray(x, dtype=float) / self.length
        N = np.zeros((*xi.shape, 2, 6))
        N[..., 0, 0], N[..., 0, 3] = 1 - xi, xi
        N[..., 1, 1], N[..., 1, 4] = 1 - 3 * xi**2 + 2 * xi**3, 3 * xi**2 - 2 * xi**3
        N[..., 1, 2] = self.length * (xi - 2 * xi**2 + xi**3)
        N[..., 1, 5] = self.length * (xi**3 - xi**2)
        return N

    def stiffness(self) -> Array:
        """K_s = ∫BᵀDB, eq. (62), shape (6, 6)."""
        K = np.zeros((6, 6))
        K[np.ix_(_AXIAL, _AXIAL)] = (
            self.young * self.area / self.length * np.array([[1, -1], [-1, 1]])
        )
        K[np.ix_(_BENDING, _BENDING)] = self.young * self.second_moment * self._curvatures()
        return K

    def _curvatures(self) -> Array:
        h = self.length
        k = [[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]]
        return np.array(k) * np.outer([1, h, 1, h], [1, h, 1, h]) / h**3

    def mass(self) -> Array:
        """M = ρA∫NᵀN, eq. (67), shape (6, 6)."""
        return self.weighted(np.eye(2))

    def weighted(self, W: ArrayLike) -> Array:
        """ρA∫NᵀWN of a constant matrix W between the displacements, shape (2, 2); (6, 6).

        With `rotary`, of the whole section: the fibre at y has the displacement (−yv′, 0) on top.
        """
        h, W = self.length, np.asarray(W, dtype=float)
        scale = np.array([1, h, 1, h])
        uu = np.array([[2, 1], [1, 2]]) / 6
        uv = np.array([[21, 3, 9, -2], [9, 2, 21, -3]]) / 60 * scale
        vv = [[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]
        G = np.zeros((6, 6))
        G[np.ix_(_AXIAL, _AXIAL)] = W[0, 0] * uu
        G[np.ix_(_AXIAL, _BENDING)] = W[0, 1] * uv
        G[np.ix_(_BENDING, _AXIAL)] = W[1, 0] * uv.T
        G[np.ix_(_BENDING, _BENDING)] = W[1, 1] * np.array(vv) / 420 * np.outer(scale, scale)
        G *= self.mass_per_length * h
        if self.rotary:
            turns = [[36, 3, -36, 3], [3, 4, -3, -1], [-36, -3, 36, -3], [3, -1, -3, 4]]
            slopes = np.array(turns) / (30 * h) * np.outer(scale, scale)
            G[np.ix_(_BENDING, _BENDING)] += W[0, 0] * self.density * self.second_moment * slopes
        return G

    def dynamic_stiffness(self, omega: float, alpha: float) -> Array:
        """K_d = ρA∫Nᵀ(α̃ + ω̃ω̃)N, eqs. (63, 64), shape (6, 6): not symmetric where α is not 0."""
        return self.weighted(_spin(omega, alpha))

    def load(self, acceleration: ArrayLike, W: ArrayLike = ((0, 0), (0, 0))) -> Array:
        """−ρA∫Nᵀ(a + W(x, 0)), shape (6,), N and N m.

        Args:
            acceleration: a, of the frame's origin less gravity, in the beam's axes, (2,), m/s².
            W: α̃ + ω̃ω̃, shape (2, 2), 1/s².
        """
        h, a, W = self.length, np.asarray(acceleration, dtype=float), np.asarray(W, dtype=float)
        mean = np.array([1 / 2, 1 / 2, h / 12, 1 / 2, 1 / 2, -h / 12])
        first = h * np.array([1 / 6, 3 / 20, h / 30, 1 / 3, 7 / 20, -h / 20])
        along = [0, 1, 1, 0, 1, 1]
        f = -self.mass_per_length * h * (a[along] * mean + W[along, 0] * first)
        if self.rotary:  # the fibre's own place is (0, y), its displacement (−yv′, 0): Izz ∫v′
            f[_BENDING] += self.density * self.second_moment * W[0, 1] * np.array([-1, 0, 1, 0])
        return f


def _spin(omega: float, alpha: float) -> Array:
    """α̃ + ω̃ω̃ in the plane."""
    return np.array([[-(omega**2), -alpha], [alpha, -(omega**2)]])


def _turned(angle: float) -> Array:
    """From global to the axes of a beam at this angle, for a vector, shape (2, 2)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s], [-s, c]])


def _transformation(angle: float) -> Array:
    """T_e: element coordinates from global ones, shape (6, 6)."""
    T = np.eye(6)
    T[:2, :2] = T[3:5, 3:5] = _turned(angle)
    return T


class FrameModes(NamedTuple):
    """Modes of the frame frozen at a crank angle.

    Attributes:
        frequencies: Shape (6,), ascending, Hz.
        modes: Right eigenvectors φ in the columns, shape (6, 6).
        left: Left eigenvectors with leftᵀ M φ = I; they are φ where K is symmetric.
    """

    frequencies: Array
    modes: Array
    left: Array


@dataclass(frozen=True)
class TwoBeamEngine:
    """One cylinder: crank and rod as a beam element each, the piston a point mass at node 3.

    Crank angle 0 is top dead centre; the piston slides along X, the crank turns at constant speed.

    Attributes:
        crank: Element 1, from the shaft to the crank pin.
        rod: Element 2, from the crank pin to the piston pin.
        piston_mass: kg.
        speed: Of the crank, rad/s.
        gravity: Global, (2,), m/s²; by default across the cylinder, as eqs. (49, 52) have it.
        pinned: Crank and rod turn separately at the crank pin, and the shaft is held (Q₃ = 0); Q
            has a tenth place, the rotation of the rod at the crank pin.

    Raises:
        InputError: An argument is unusable, for example because the crank is not shorter than the
            rod.
    """

    crank: PlanarBeam
    rod: PlanarBeam
    piston_mass: float
    speed: float
    gravity: tuple[float, float] = (0.0, -9.80665)
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
        """Places in Q of the six coordinates that are not held."""
        return [3, 4, 5, 6, 8, 9] if self.pinned else [2, 3, 4, 5, 6, 8]

    @property
    def places(self) -> tuple[list[int], list[int]]:
        """Places in Q of the coordinates of crank and rod."""
        return [0, 1, 2, 3, 4, 5], [3, 4, 9 if self.pinned else 5, 6, 7, 8]

    @property
    def size(self) -> int:
        """Number of places in Q."""
        return 10 if self.pinned else 9

    @property
    def mechanism(self) -> SliderCrank:
        """The rigid mechanism."""
        return SliderCrank(self.crank.length, self.rod.length)

    def angles(self, angle: float) -> tuple[float, float]:
        """Angles of crank and rod to X, rad."""
        return float(angle), float(self.mechanism.motion(angle).rod_angle)

    # ---- matrices

    def matrices(self, angle: float) -> tuple[Array, Array, Array]:
        """M, and the static and the dynamic part of K, at a crank angle; shape (6, 6) each.

        Eqs. (62 to 72): from the elements' axes to global ones, assembled, without Q₁, Q₂, Q₈.
        """
        motion = self.mechanism.motion(angle, self.speed)
        static, dynamic, mass = np.zeros((3, self.size, self.size))
        mass[[6, 7], [6, 7]] = self.piston_mass
        spins = (self.speed, 0.0), (float(motion.rod_velocity), float(motion.rod_acceleration))
        beams = self.crank, self.rod
        for beam, places, at, spin in zip(
            beams, self.places, self.angles(angle), spins, strict=True
        ):
            T, own = _transformation(at), np.ix_(places, places)
            static[own] += T.T @ beam.stiffness() @ T
            dynamic[own] += T.T @ beam.dynamic_stiffness(*spin) @ T
            mass[own] += T.T @ beam.mass() @ T
        left = np.ix_(self.free, self.free)
        return mass[left], static[left], dynamic[left]

    def load(self, angle: float, gas_force: float, *, complete: bool = True) -> tuple[Array, Array]:
        """Static and dynamic part of the nodal force at a crank angle, eqs. (48 to 61), (6,) each.

        As printed, the Euler and centrifugal loads of the rod are those of its end B at every
        point (r₂ = (l₂, 0), eq. (55)), and the crank's of its end; the piston's inertia force in
        the rigid motion is missing.

        Args:
            angle: rad.
            gas_force: On the piston towards the shaft, N.
            complete: Loads at the place of each point, and the piston's inertia; else as printed.
        """
        motion = self.mechanism.motion(angle, self.speed)
        g = np.asarray(self.gravity)
        pin = -self.crank.length * self.speed**2 * np.array([np.cos(angle), np.sin(angle)])
        static, dynamic = np.zeros((2, self.size))
        static[6] -= gas_force
        static[6:8] += self.piston_mass * g
        spins = (self.speed, 0.0), (float(motion.rod_velocity), float(motion.rod_acceleration))
        beams, origins = (self.crank, self.rod), (np.zeros(2), pin)
        for beam, own, at, spin, origin in zip(
            beams, self.places, self.angles(angle), spins, origins, strict=True
        ):
            turn, T = _turned(at), _transformation(at)
            W, a = _spin(*spin), turn @ origin
            moving = beam.load(a, W) if complete else beam.load(a + W[:, 0] * beam.length)
            static[own] += T.T @ beam.load(-turn @ g)
            dynamic[own] += T.T @ moving
        if complete:
            dynamic[6] -= self.piston_mass * float(motion.slider_acceleration)
        return static[self.free], dynamic[self.free]

    # ---- solutions

    def quasi_static(
        self, angle: ArrayLike, gas_force: ArrayLike, *, complete: bool = True
    ) -> Array:
        """Q = K⁻¹F at each crank angle, eq. (75), K with its dynamic part; shape (nt, size)."""
        angles, forces = np.atleast_1d(angle), np.atleast_1d(gas_force)
        Q = np.zeros((len(angles), self.size))
        for k, (at, gas) in enumerate(zip(angles, forces, strict=True)):
            _, static, dynamic = self.matrices(at)
            Q[k, self.free] = np.linalg.solve(
                static + dynamic, sum(self.load(at, gas, complete=complete))
            )
        return Q

    def modes(self, angle: float, *, dynamic: bool = True) -> FrameModes:
        """Natural frequencies and modes of the frame frozen at a crank angle, eq. (90).

        K is not symmetric where the rod has an angular acceleration, so that the modes are not
        orthogonal (eq. (82)) and have left partners.

        Args:
            angle: rad.
            dynamic: Whether K has its dynamic part.

        Raises:
            ValueError: A frequency is not real: the frozen frame is unstable.
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
        """Q(t) of the frame frozen at a crank angle under a force that varies, eqs. (80 to 91).

        There is no damping. It starts where the force at the first instant holds it, at rest.

        Args:
            angle: Where M and K are taken, rad.
            time: Equally spaced, shape (nt,), s.
            load: Shape (nt, 6), N and N m.
            dynamic: Whether K has its dynamic part.

        Returns:
            Shape (nt, size).

        Raises:
            InputError: Times or loads do not fit, or the frozen frame is unstable.
        """
        modes = self.modes(angle, dynamic=dynamic)
        forces = array("load", load, (np.size(time), 6)) @ modes.left
        a = undamped_response(2 * np.pi * modes.frequencies, time, forces)
        Q = np.zeros((len(a), self.size))
        Q[:, self.free] = a @ modes.modes.T
        return Q

    def rod_displacement(self, angle: ArrayLike, Q: ArrayLike, x: ArrayLike) -> Array:
        """Displacement of points of the rod along and across it, eq. (92), from the rigid motion.

        Args:
            angle: Crank angles, shape (nt,), rad.
            Q: Shape (nt, size).
            x: Distances from the crank pin, shape (m,), m.

        Returns:
            Shape (nt, m, 2), m.
        """
        rod = self.mechanism.motion(np.asarray(angle, dtype=float)).rod_angle
        T = np.stack([_transformation(float(at)) for at in np.atleast_1d(rod)])
        local = np.einsum("tij,tj->ti", T, np.asarray(Q)[:, self.places[1]])
        return np.einsum("mcj,tj->tmc", self.rod.shapes(np.atleast_1d(x)), local)


def undamped_response(omega: ArrayLike, time: ArrayLike, force: ArrayLike) -> Array:
    """a(t) of ä + ω²a = f(t), exact for forces that are linear between the instants.

    It starts at rest at f/ω², where the first force holds it.

    Args:
        omega: Shape (n,), rad/s.
        time: Equally spaced, shape (nt,), s.
        force: Shape (nt, n), per unit of modal mass.

    Returns:
        Shape (nt, n).

    Raises:
        ValueError: A frequency is not positive, or the instants are not equally spaced.
    """
    w, t, f = (np.asarray(v, dtype=float) for v in (omega, time, force))
    if not (w > 0).all():
        raise InputError(f"omega must be positive (rad/s), got {w}")
    steps = np.diff(t)
    h = float(steps.mean())
    if np.abs(steps - h).max() > 1e-9 * h * len(t):
        raise InputError("time: the instants must be equally spaced")
    c, s = np.cos(w * h), np.sin(w * h)
    a, rate = np.zeros_like(f), np.zeros_like(w)
    a[0] = f[0] / w**2
    for k, slope in enumerate(np.diff(f, axis=0) / h):
        held = f[k] / w**2
        free, drift = a[k] - held, rate - slope / w**2
        a[k + 1] = held + slope * h / w**2 + free * c + drift / w * s
        rate = slope / w**2 - free * w * s + drift * c
    return a
