"""Planar mechanisms from rigid truss elements, integrated with Newmark's method (the stick model).

A rod between two nodes has the mass m = ρAL. The unit vector e is along the rod, and n is normal to
it. Along e, all points of the rod move by the mean displacement of its ends; along n, the
displacement is linear (eq. 1). For the displacements u₁, w₁, u₂, w₂ of the ends in the axes (e, n),
the mass matrix is

    m/12 [[3, 0, 3, 0], [0, 4, 0, 2], [3, 0, 3, 0], [0, 2, 0, 4]]       (eq. 2; in print 0 4 0 2)

In global axes, because of eeᵀ + nnᵀ = 1, it is

    Mₑ = m/6 [[2, 1], [1, 2]] ⊗ 1 - m/12 b bᵀ

with the gradient b = (-e, e) of the length. The first part results from linear displacements and is
constant. The acceleration is linear along a rod; therefore Σ Mẍ contains all inertia forces of the
rod, also centrifugal forces, without velocity terms. The second part does no work in a motion that
preserves the length. It changes only the axial force, which does not include the self-equilibrated
m/12 b·ẍ.

A large stiffness preserves the length: the axial force N = EA (l - L)/L (l: current length) acts
along b and has the tangent EA/L bbᵀ + N/l ccᵀ, c = (-n, n). With one fixed end and e = (a, b), this
is eq. 8 at rest,

    K = EA/L [[a², ab], [ab, b²]]                                       (in print K₂₂ = a²)

The mass matrix with a payload m'ρAL/12 is ρAL/12 (in print EA/L) times the matrix of eq. 9. A
torque T on a rod acts as the pair of forces ±T/l n on its ends; their vector is c T/l.

References:
    M. Hać, J. Łazęcki: Rigid-body motion of planar mechanisms by finite element method with
    comparison to the multibody approach, eqs. 1 to 3 and 7 to 9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, choice, instance, integer, items, number, reject
from dolfinx_mbd.errors import InputError, SolverError

Torque = Callable[[float, float, float], float]  # torque(t, angle, rate)

MAX_ITERATIONS = 20  # largest number of Newton iterations in a step


@dataclass(frozen=True)
class Rod:
    """Uniform rod between two nodes."""

    start: int  # index of the first node
    end: int
    line_density: float  # mass per length ρA, kg/m
    axial_stiffness: float  # EA, N; large enough not to influence the motion
    torque: Torque | float = 0.0  # N m; function of time, angle of the rod to x, and rate

    def __post_init__(self) -> None:
        integer("start", self.start, low=0)
        integer("end", self.end, low=0)
        number("line_density", self.line_density, positive=True, unit="kg/m")
        number("axial_stiffness", self.axial_stiffness, positive=True, unit="N")
        if not callable(self.torque):
            number("torque", self.torque, unit="N m")


@dataclass(frozen=True, eq=False)
class StickModel:
    """Nodes in a plane, their initial positions, and the rods between them."""

    nodes: ArrayLike  # initial positions, shape (n, 2), m
    rods: Sequence[Rod]
    held: Sequence[tuple[int, int]] = ()  # node and axis (0 or 1) of each fixed coordinate
    masses: Mapping[int, float] = field(default_factory=dict)  # point masses by node, kg
    velocity: ArrayLike | None = None  # initial velocities, shape (n, 2), m/s; by default zero

    def __post_init__(self) -> None:
        x = array("nodes", self.nodes, (None, 2))
        v = array("velocity", 0 * x if self.velocity is None else self.velocity, x.shape)
        if not items("rods", self.rods, Rod):
            reject("rods", self.rods, "a list of at least one rod")
        ends = [k for rod in self.rods for k in (rod.start, rod.end)]
        for _, axis in self.held:
            choice("axis of an entry of held", axis, (0, 1))
        for k in (*ends, *(k for k, _ in self.held), *instance("masses", self.masses, Mapping)):
            integer("number of a node", k, low=0, high=len(x) - 1)
        if loose := set(range(len(x))) - set(ends):
            raise InputError(f"no rod ends at the nodes {sorted(loose)}")
        for k, rod in enumerate(self.rods):
            if np.array_equal(x[rod.start], x[rod.end]):
                raise InputError(f"rod {k} has no length: its ends are both at {x[rod.start]}")
        for node, mass in self.masses.items():
            number(f"mass of node {node}", mass, low=0.0, unit="kg")
        assign(self, nodes=x, velocity=v)


@dataclass(frozen=True, eq=False)
class StickMotion:
    """Motion of a stick model over nt times."""

    time: Array  # shape (nt,), s
    position: Array  # positions of the nodes, shape (nt, n, 2), m
    velocity: Array  # m/s
    acceleration: Array  # m/s²
    angle: Array  # angles of the rods to x, continuous, shape (nt, m), rad
    axial: Array  # force of Hooke's law, N; the section force varies along a rod with mass
    iterations: int  # number of Newton iterations in the whole run


class _Sticks:
    """Matrices of a model in its free coordinates."""

    def __init__(self, model: StickModel) -> None:
        self.model, self.rods = model, model.rods
        self.nodes = np.asarray(model.nodes, dtype=float)
        free = np.ones_like(self.nodes, dtype=bool)
        for node, axis in model.held:
            free[node, axis] = False
        self.free = np.flatnonzero(free)
        unit = np.eye(len(self.nodes))
        start, end = unit[[rod.start for rod in self.rods]], unit[[rod.end for rod in self.rods]]
        self.incidence = end - start
        self.reference = self.frames(self.nodes)[0]
        self.mass = np.array([rod.line_density for rod in self.rods]) * self.reference
        self.axial = np.array([rod.axial_stiffness for rod in self.rods])
        ends = start + end
        scalar = ends.T @ (self.mass[:, None] / 6 * ends) + np.diag(ends.T @ self.mass / 6)
        for node, mass in model.masses.items():
            scalar[node, node] += mass
        self.constant_mass = np.kron(scalar, np.eye(2))[np.ix_(self.free, self.free)]

    def frames(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Return lengths (m,), angles (m,), b = (-e, e) and c = (-n, n) (m, free) at nodes x."""
        d = self.incidence @ x
        length = np.hypot(d[:, 0], d[:, 1])
        e = d / length[:, None]
        n = np.column_stack([-e[:, 1], e[:, 0]])
        b, c = (
            (self.incidence[:, :, None] * axis[:, None, :]).reshape(len(d), -1)[:, self.free]
            for axis in (e, n)
        )
        return length, np.arctan2(e[:, 1], e[:, 0]), b, c

    def mass_matrix(self, b: Array) -> Array:
        """Return the mass matrix for the vectors b (m, free)."""
        return self.constant_mass - b.T @ (self.mass[:, None] / 12 * b)

    def torques(self, t: float, angle: Array, rate: Array) -> Array:
        """Return the torques on the rods, shape (m,)."""
        return np.array(
            [
                rod.torque(t, float(phi), float(w)) if callable(rod.torque) else rod.torque
                for rod, phi, w in zip(self.rods, angle, rate, strict=True)
            ]
        )

    def balance(
        self, t: float, x: Array, v: Array, a: Array, last: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return residual, mass, stiffness, angles (continued from `last`) and axial forces."""
        nodes = self.nodes.copy()
        nodes.reshape(-1)[self.free] = x
        length, angle, b, c = self.frames(nodes)
        angle = last + np.remainder(angle - last + np.pi, 2 * np.pi) - np.pi
        force = self.axial * (length / self.reference - 1)
        load = c.T @ (self.torques(t, angle, (c @ v) / length) / length)
        mass = self.mass_matrix(b)
        stiffness = b.T @ ((self.axial / self.reference)[:, None] * b)
        stiffness += c.T @ ((force / length)[:, None] * c)
        return load - mass @ a - b.T @ force, mass, stiffness, angle, force


def _start(sticks: _Sticks, v: Array) -> tuple[Array, Array]:
    """Return accelerations and axial forces with constant lengths: M a + bᵀN = cᵀT/l, l̈ = 0."""
    length, angle, b, c = sticks.frames(sticks.nodes)
    stretch_rate = np.abs(b @ v).max(initial=0.0)
    if stretch_rate > 1e-9 * max(1.0, np.abs(v).max(initial=0.0)):
        raise InputError(f"the velocities at the start stretch a rod, by {stretch_rate:.3g} m/s")
    transverse = c @ v
    torque = sticks.torques(0.0, angle, transverse / length)
    m = len(length)
    matrix = np.block([[sticks.mass_matrix(b), b.T], [b, np.zeros((m, m))]])
    rhs = np.concatenate([c.T @ (torque / length), -(transverse**2) / length])
    solution = np.linalg.lstsq(matrix, rhs, rcond=None)[0]
    return solution[: len(v)], solution[len(v) :]


def newmark(
    model: StickModel,
    *,
    t_end: float,
    dt: float,
    beta: float = 0.25,
    gamma: float = 0.5,
    tolerance: float = 1e-12,
) -> StickMotion:
    """Integrate a stick model from time 0 with Newmark's method and Newton iterations.

    The rods start with the axial forces of rigid rods, so that no rod starts to vibrate. Newton's
    matrix omits the derivatives of torques with respect to the angle: smaller steps are necessary
    if the stiffness of a torque law is comparable to inertia/dt². The step is adjusted so that the
    number of steps is an integer. The iteration ends if no position changes by more than
    `tolerance` times the length of the longest rod.
    """
    instance("model", model, StickModel)
    for name, value in {"t_end": t_end, "dt": dt, "beta": beta, "tolerance": tolerance}.items():
        number(name, value, positive=True)
    number("gamma", gamma)
    sticks = _Sticks(model)
    steps = max(1, round(t_end / dt))
    h, free = t_end / steps, sticks.free
    time: Array = np.linspace(0.0, t_end, steps + 1, dtype=np.float64)
    x, v = (np.asarray(u, dtype=float).reshape(-1)[free] for u in (model.nodes, model.velocity))
    a, force = _start(sticks, v)
    sticks.reference = sticks.reference / (1 + force / sticks.axial)
    angle = sticks.frames(sticks.nodes)[1]
    states, rods = np.zeros((3, steps + 1, len(free))), np.zeros((2, steps + 1, len(angle)))
    states[:, 0], rods[:, 0] = (x, v, a), (angle, force)
    limit, iterations = tolerance * sticks.reference.max() / (beta * h * h), 0
    for k in range(1, steps + 1):
        x = x + h * v + h * h * (0.5 - beta) * a
        v = v + h * (1 - gamma) * a
        for _ in range(MAX_ITERATIONS):
            iterations += 1
            x_new, v_new = x + h * h * beta * a, v + h * gamma * a
            residual, mass, stiffness, new_angle, force = sticks.balance(
                time[k], x_new, v_new, a, angle
            )
            change = np.linalg.solve(mass + h * h * beta * stiffness, residual)
            a = a + change
            if np.abs(change).max(initial=0.0) <= limit:
                break
        else:
            text = f"the step to {time[k]:g} s does not converge; try a step below {h:g} s"
            raise SolverError(text)
        x, v, angle = x + h * h * beta * a, v + h * gamma * a, new_angle
        states[:, k], rods[:, k] = (x, v, a), (angle, force)
    motion = np.zeros((3, steps + 1, sticks.nodes.size))
    motion[0] = sticks.nodes.reshape(-1)
    motion[:, :, free] = states
    position, velocity, acceleration = motion.reshape(3, steps + 1, -1, 2)
    return StickMotion(time, position, velocity, acceleration, rods[0], rods[1], iterations)
