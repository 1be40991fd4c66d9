"""A geometrically exact planar beam (Simo and Reissner), for comparison with flexible bodies.

The unknowns u are positions and angles (x, y, θ) of nodes, not displacements; the elements have two
nodes and one quadrature point, and a consistent mass with rotary inertia.  Stretch Γ, shear γ and
curvature κ are exact for any displacement and rotation, so that tension stiffens and a bent beam
shortens without a term of their own.  It shares no line with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_banded

Array = NDArray[np.float64]

_BAND = 5  # an element couples six neighbouring unknowns


@dataclass(frozen=True)
class ExactBeam:
    """A straight uniform beam, at rest along x from the origin.

    Attributes:
        length: m.
        EA, GA, EI: Stretching, shear (with its factor) and bending stiffness, N, N, N m².
        rhoA, rhoI: Mass and rotary inertia per length, kg/m, kg m.
        elements: Their number.
    """

    length: float
    EA: float
    GA: float
    EI: float
    rhoA: float = 1.0
    rhoI: float = 0.0
    elements: int = 40

    @classmethod
    def square(
        cls, length: float, side: float, young: float, poisson: float, density: float, elements: int
    ) -> ExactBeam:
        """Return a beam with a square section and the shear factor 5/6."""
        A, second_moment = side**2, side**4 / 12
        shear = young / 2 / (1 + poisson)
        return cls(
            length,
            young * A,
            5 / 6 * shear * A,
            young * second_moment,
            density * A,
            density * second_moment,
            elements,
        )

    @property
    def step(self) -> float:
        """Length of an element, m."""
        return self.length / self.elements

    @property
    def stiffness(self) -> Array:
        """Stiffness of stretch, shear and curvature, (3,), N, N, N m².

        With one quadrature point, an element of length h bends by shear only. The flexibility
        h²/12EI that it lacks is added to that of shear (MacNeal 1978), so that small deflections
        are exact at the nodes.
        """
        return np.array([self.EA, 1 / (1 / self.GA + self.step**2 / (12 * self.EI)), self.EI])

    def straight(self, start: tuple[float, float] = (0.0, 0.0)) -> Array:
        """Return unknowns of the straight beam along x, shape (3 (elements + 1),)."""
        u = np.zeros((self.elements + 1, 3))
        u[:, 0] = start[0] + np.linspace(0.0, self.length, self.elements + 1)
        u[:, 1] = start[1]
        return u.ravel()

    def strains(self, u: Array) -> Array:
        """Return the axial strain Γ, the shear strain γ and the curvature κ, (elements, 3)."""
        nodes = u.reshape(-1, 3)
        d = np.diff(nodes, axis=0) / self.step
        angle = 0.5 * (nodes[1:, 2] + nodes[:-1, 2])
        c, s = np.cos(angle), np.sin(angle)
        return np.column_stack([c * d[:, 0] + s * d[:, 1] - 1, c * d[:, 1] - s * d[:, 0], d[:, 2]])

    def elastic_energy(self, u: Array) -> float:
        """Return the elastic energy, J."""
        return float(0.5 * self.step * np.sum(self.strains(u) ** 2 @ self.stiffness))

    def forces(self, u: Array) -> tuple[Array, Array]:
        """Return internal forces and their tangent in band storage of ``solve_banded``."""
        h, n = self.step, self.elements
        nodes, strain = u.reshape(-1, 3), self.strains(u)
        angle = 0.5 * (nodes[1:, 2] + nodes[:-1, 2])
        c, s = np.cos(angle), np.sin(angle)
        B = np.zeros((n, 3, 6))  # derivatives of strains by (x, y, θ) of both nodes
        B[:, 0, 3], B[:, 0, 4] = c / h, s / h
        B[:, 1, 3], B[:, 1, 4] = -s / h, c / h
        B[:, :2, :2] = -B[:, :2, 3:5]
        B[:, 0, 2] = B[:, 0, 5] = 0.5 * strain[:, 1]
        B[:, 1, 2] = B[:, 1, 5] = -0.5 * (1 + strain[:, 0])
        B[:, 2, 2], B[:, 2, 5] = -1 / h, 1 / h
        stress = strain * self.stiffness
        inner = h * np.einsum("eij,ei->ej", B, stress)
        K = np.einsum("eia,i,eib->eab", B, self.stiffness, B)
        # derivatives of the mean angle
        rotation_row = np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
        # Second derivatives of the strains by the mean angle θ and by positions p:
        # ∂²Γ/∂θ∂p = ∂γ/∂p, ∂²γ/∂θ∂p = −∂Γ/∂p, ∂²Γ/∂θ² = −(1 + Γ), ∂²γ/∂θ² = −γ.
        G = stress[:, :1] * B[:, 1] - stress[:, 1:2] * B[:, 0]
        mixed = G.copy()
        mixed[:, [2, 5]] = 0.0
        K += mixed[:, :, None] * rotation_row + rotation_row[:, None] * mixed[:, None, :]
        by_angle = -(stress[:, 0] * (1 + strain[:, 0]) + stress[:, 1] * strain[:, 1])
        K += by_angle[:, None, None] * np.outer(rotation_row, rotation_row)
        out = np.zeros_like(u)
        for a in range(6):
            out[a : a + 3 * n : 3] += inner[:, a]
        return out, self._band(h * K)

    def mass(self) -> Array:
        """Return the consistent mass matrix in band storage."""
        pair = self.step / 6 * np.array([[2.0, 1.0], [1.0, 2.0]])
        element = np.kron(pair, np.diag([self.rhoA, self.rhoA, self.rhoI]))
        return self._band(np.broadcast_to(element, (self.elements, 6, 6)))

    def _band(self, K: Array) -> Array:
        band = np.zeros((2 * _BAND + 1, 3 * (self.elements + 1)))
        for a in range(6):
            for b in range(6):
                band[_BAND + a - b, b : b + 3 * self.elements : 3] += K[:, a, b]
        return band


def banded_product(band: Array, x: Array) -> Array:
    """Return the product of a matrix in band storage with a vector."""
    out, n = np.zeros_like(x), len(x)
    for row, offset in enumerate(range(_BAND, -_BAND - 1, -1)):  # entry (i, j) with j − i = offset
        j = slice(max(0, offset), min(n, n + offset))
        i = slice(max(0, -offset), min(n, n - offset))
        out[i] += band[row, j] * x[j]
    return out


def dense(band: Array) -> Array:
    """Return the matrix of a band storage."""
    return np.column_stack([banded_product(band, e) for e in np.eye(band.shape[1])])


def _solve(band: Array, right: Array, held: Array) -> Array:
    """Solve with rows and columns of held unknowns replaced by those of the identity."""
    band, right = band.copy(), right.copy()
    band[:, held] = 0.0
    for row, offset in enumerate(range(_BAND, -_BAND - 1, -1)):
        j = held + offset
        inside = (j >= 0) & (j < band.shape[1])
        band[row, j[inside]] = 0.0
    band[_BAND, held] = 1.0
    right[held] = 0.0
    return solve_banded((_BAND, _BAND), band, right, check_finite=False)


def equilibrium(
    beam: ExactBeam, load: Array, held: list[int], u: Array | None = None, steps: int = 20
) -> Array:
    """Return the unknowns in equilibrium with dead loads, in steps from the straight beam."""
    u, index = beam.straight() if u is None else u.copy(), np.array(held)
    for factor in np.linspace(0.0, 1.0, steps + 1)[1:]:
        for _ in range(50):
            inner, K = beam.forces(u)
            change = _solve(K, factor * load - inner, index)
            u += change
            if np.abs(change).max() < 1e-10 * beam.length:
                break
        else:
            raise RuntimeError("no equilibrium was found")
    return u


@dataclass(frozen=True)
class BeamRun:
    """Motion of a beam as the rod of a slider-crank over nt times.

    Attributes:
        time: (nt,), s.
        u: Unknowns, (nt, nodes, 3), m and rad.
        pin_force: On the rod at the crank pin, global, (nt, 2), N.
        energy: Kinetic and elastic, of rod and slider, (nt,), J.
        power: Of the force at the crank pin, (nt,), W.
    """

    time: Array
    u: Array
    pin_force: Array
    energy: Array
    power: Array

    def deflection(self) -> Array:
        """Return the deflection of the middle from the chord between the ends, (nt,), m."""
        middle = self.u.shape[1] // 2
        chord = self.u[:, -1, :2] - self.u[:, 0, :2]
        across = np.column_stack([-chord[:, 1], chord[:, 0]])
        across /= np.linalg.norm(chord, axis=1, keepdims=True)
        offset = self.u[:, middle, :2] - 0.5 * (self.u[:, -1, :2] + self.u[:, 0, :2])
        return np.einsum("ti,ti->t", offset, across)


def slider_crank_run(
    beam: ExactBeam,
    *,
    crank_radius: float,
    slider_mass: float,
    motion: Callable[[float], tuple[float, float, float]],
    t_end: float,
    dt: float,
    rho: float = 0.9,
) -> BeamRun:
    """Simulate the rod of a slider-crank whose crank starts at rest at angle 0.

    `motion` returns the angle, the angular velocity and the angular acceleration of the crank at a
    time. Time integration: generalized-α (Chung and Hulbert) with `rho` = ρ∞, Newton in each step.
    """
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma = 0.5 + alpha_f - alpha_m
    beta = 0.25 * (gamma + 0.5) ** 2
    M = beam.mass()
    M[_BAND, -3] += slider_mass
    # held unknowns: the position of the crank pin, and y of the slider
    pin, held = np.array([0, 1]), np.array([0, 1, M.shape[1] - 2])
    steps = round(t_end / dt)
    dt = t_end / steps
    u = beam.straight((crank_radius, 0.0))
    # rate is the acceleration in the equations of motion, a the auxiliary one of the method
    v, a, rate = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    history = []
    scale = (1 - alpha_f) / (1 - alpha_m)
    for k in range(steps + 1):
        position, velocity, acceleration = _pin(motion(k * dt), crank_radius)
        if k > 0:
            base = a_known = (alpha_f * rate - alpha_m * a) / (1 - alpha_m)
            u_known = u + dt * v + dt**2 * ((0.5 - beta) * a + beta * base)
            v_known = v + dt * ((1 - gamma) * a + gamma * base)
            rate = rate.copy()
            u = u_known + dt**2 * beta * scale * rate
            for _ in range(20):
                u[pin], rate[pin] = position, acceleration
                inner, K = beam.forces(u)
                residual = banded_product(M, rate) + inner
                change = _solve(K + M / (dt**2 * beta * scale), -residual, held)
                u = u + change
                rate = rate + change / (dt**2 * beta * scale)
                if np.abs(change).max() < 1e-11:
                    break
            else:
                raise RuntimeError(f"step to {k * dt} s does not converge")
            a = a_known + scale * rate
            v = v_known + dt * gamma * scale * rate
            v[pin] = velocity
        inner, _ = beam.forces(u)
        force = (banded_product(M, rate) + inner)[pin]
        energy = 0.5 * v @ banded_product(M, v) + beam.elastic_energy(u)
        history.append((u.reshape(-1, 3).copy(), force, energy, force @ velocity))
    time = dt * np.arange(steps + 1, dtype=np.float64)
    return BeamRun(time, *(np.array(column) for column in zip(*history, strict=True)))


def _pin(motion: tuple[float, float, float], radius: float) -> tuple[Array, Array, Array]:
    """Return the position, velocity and acceleration of the crank pin."""
    angle, speed, acceleration = motion
    radial = np.array([np.cos(angle), np.sin(angle)])
    tangential = np.array([-radial[1], radial[0]])
    return (
        radius * radial,
        radius * speed * tangential,
        radius * (acceleration * tangential - speed**2 * radial),
    )
