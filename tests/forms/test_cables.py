"""The forms of a cable: against their energies, by hand, and closed forms of large bending."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import basix.ufl
import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.cables import Cable, CableField
from dolfinx_mbd.kernels.rotations import exp_rotation, skew

Array = NDArray[np.float64]
SELF = MPI.COMM_SELF
UNEVEN = np.array([0.0, 0.1, 0.5, 0.6, 1.4, 1.7, 1.8, 3.0])


def chain(x: Array) -> mesh.Mesh:
    """Return a mesh of intervals between these positions; every third one is reversed."""
    cells = np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))]).astype(np.int64)
    cells[::3] = cells[::3, ::-1]
    element = basix.ufl.element("Lagrange", "interval", 1, shape=(1,))
    return mesh.create_mesh(SELF, cells=cells, e=element, x=x[:, None])


class Line:
    """Cable on a mesh with nodal positions and slopes u (nodes, 2, 3) in order of s."""

    def __init__(self, s: Array, cable: Cable) -> None:
        self.s, self.mesh = s, chain(s)
        self.V = fem.functionspace(self.mesh, ("Lagrange", 1, (6,)))
        order = np.argsort(self.V.tabulate_dof_coordinates()[:, 0])
        self.order = (6 * order[:, None] + np.arange(6)).ravel()
        names = ("axial_stiffness", "bending_stiffness", "linear_density", "damping")
        constants = (fem.Constant(self.mesh, float(getattr(cable, n))) for n in names)
        self.cable = Cable(*constants)
        self.q, self.v = fem.Function(self.V), fem.Function(self.V)
        self.test, self.trial = ufl.TestFunction(self.V), ufl.TrialFunction(self.V)
        inner = self.cable.elastic_forces(self.q, self.test)
        self._forces, self._tangent = (
            fem.form(f) for f in (inner, ufl.derivative(inner, self.q, self.trial))
        )
        self._energy = fem.form(self.cable.elastic_energy(self.q))

    def straight(self) -> Array:
        u = np.zeros((len(self.s), 2, 3))
        u[:, 0, 0], u[:, 1, 0] = self.s, 1.0
        return u

    def of(self, r: Callable[[Array], Any], slope: Callable[[Array], Any]) -> Array:
        return np.stack([np.asarray(f(self.s)).T for f in (r, slope)], axis=1)

    def set(self, f: fem.Function, u: Array) -> None:
        f.x.array[self.order] = u.ravel()

    def vector(self, form: Any) -> Array:
        return np.asarray(fem.assemble_vector(form).array)[self.order]

    def matrix(self, form: Any) -> Array:
        dense: Array = fem.assemble_matrix(form).to_dense()[np.ix_(self.order, self.order)]
        return dense

    def forces(self, u: Array) -> Array:
        self.set(self.q, u)
        return self.vector(self._forces)

    def tangent(self, u: Array) -> Array:
        self.set(self.q, u)
        return self.matrix(self._tangent)

    def energy(self, u: Array) -> float:
        self.set(self.q, u)
        return float(fem.assemble_scalar(self._energy))

    def mass(self) -> Array:
        return self.matrix(fem.form(self.cable.mass(self.trial, self.test)))

    def equilibrium(
        self,
        u: Array,
        held: list[int],
        load: Callable[[Array, float], tuple[Array, Any]],
        steps: int,
    ) -> Array:
        """Return nodal values in equilibrium with a load that increases in steps.

        load(u, part) returns the forces of a part of the full load, and their derivative by u.
        """
        u = u.copy()
        free = np.setdiff1d(np.arange(u.size), held)
        for part in np.linspace(0.0, 1.0, steps + 1)[1:]:
            for _ in range(60):
                force, load_slope = load(u, float(part))
                rest = (self.forces(u) - force)[free]
                change = np.linalg.solve((self.tangent(u) - load_slope)[np.ix_(free, free)], -rest)
                u.reshape(-1)[free] += change
                if np.abs(change).max() < 1e-10 * self.s[-1]:
                    break
            else:
                raise RuntimeError("no equilibrium was found")
        return u


def bent(s: Array, seed: int = 0) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return a cubic near the x axis and its slope; the element represents cubics exactly."""
    c = 0.1 * np.random.default_rng(seed).normal(size=(4, 3, 1))
    c[1, 0] += 1.0
    return (
        lambda s: c[0] + c[1] * s + c[2] * s**2 + c[3] * s**3,
        lambda s: c[1] + 2 * c[2] * s + 3 * c[3] * s**2,
    )


SOFT = Cable(axial_stiffness=50.0, bending_stiffness=2.0, linear_density=0.7, damping=0.02)


def difference(f: Callable[[Array], Any], x: Array, step: float = 1e-6) -> Array:
    """Return the derivative of f by central differences; its last axis belongs to x."""
    units = step * np.eye(x.size).reshape(-1, *x.shape)
    columns = [(np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * step) for e in units]
    return np.stack(columns, axis=-1)


# ---- the field


def test_strain_and_curvature_are_those_of_the_curve() -> None:
    """The elements represent a cubic exactly, so that integrals of ε² and κ² are exact."""
    line = Line(UNEVEN, SOFT)
    r, slope = bent(UNEVEN)
    line.set(line.q, line.of(r, slope))
    field = CableField(line.q)
    s, w = np.polynomial.legendre.leggauss(16)
    for expression, exact in (
        # functions of p = r′ and c = r″
        (field.strain**2, lambda p, c: ((np.sum(p * p, 0) - 1) / 2) ** 2),
        (
            field.square_of_curvature,
            lambda p, c: np.sum(np.cross(p, c, axis=0) ** 2, 0) / np.sum(p * p, 0) ** 3,
        ),
        (ufl.dot(field.curvature, field.curvature) - field.square_of_curvature, lambda p, c: 0.0),
    ):
        integral = fem.assemble_scalar(fem.form(expression * ufl.dx(degree=31)))
        total = 0.0
        for a, b in pairwise(UNEVEN):
            x = (a + b) / 2 + (b - a) / 2 * s
            second = (slope(x + 1e-6) - slope(x - 1e-6)) / 2e-6
            total += (b - a) / 2 * np.sum(w * exact(slope(x), second))
        assert integral == pytest.approx(total, rel=1e-7, abs=1e-12)


def test_mass_is_that_of_the_curve() -> None:
    """∫ρA ṙ·ṙ of cubic velocities is twice the kinetic energy, and the total mass is exact."""
    line = Line(UNEVEN, SOFT)
    M = line.mass()
    r, slope = bent(UNEVEN, seed=3)
    v = line.of(r, slope)
    s, w = np.polynomial.legendre.leggauss(8)
    x, w = 1.5 + 1.5 * s, 1.5 * w
    assert v.ravel() @ M @ v.ravel() == pytest.approx(0.7 * np.sum(w * np.sum(r(x) ** 2, 0)))
    line.set(line.v, v)
    kinetic = fem.assemble_scalar(fem.form(line.cable.kinetic_energy(line.v)))
    assert 2 * kinetic == pytest.approx(v.ravel() @ M @ v.ravel())
    up = np.zeros_like(v)
    up[:, 0, 1] = 1.0
    assert up.ravel() @ M @ up.ravel() == pytest.approx(0.7 * 3.0)
    weight = line.vector(fem.form(line.cable.gravity_load(line.test, (0.0, -9.81, 0.0))))
    assert np.allclose(weight, -9.81 * M @ up.ravel(), atol=1e-12)


# ---- laws of the forces


def test_forces_and_tangents_are_derivatives() -> None:
    line = Line(UNEVEN[:4], SOFT)
    rng = np.random.default_rng(1)
    u = line.straight() + 0.1 * rng.normal(size=(4, 2, 3))
    assert np.allclose(line.forces(u), difference(line.energy, u), atol=1e-6)
    K = line.tangent(u)
    assert np.allclose(K, difference(line.forces, u), atol=1e-5 * np.abs(K).max())
    assert np.allclose(K, K.T, atol=1e-12 * np.abs(K).max())


def test_a_straight_cable_has_a_tangent() -> None:
    """The derivative of the root of κ² is 0/0 for a straight cable; the energy has κ² itself."""
    line = Line(UNEVEN, SOFT)
    K = line.tangent(line.straight())
    assert np.isfinite(K).all()
    field = CableField(line.q)
    cross = ufl.cross(field.first, field.second)
    root = 0.5 * ufl.sqrt(ufl.dot(cross, cross)) ** 2 * ufl.dx(degree=5)
    first = ufl.derivative(root, line.q, line.test)
    assert not np.isfinite(line.matrix(fem.form(ufl.derivative(first, line.q, line.trial)))).all()


def test_rigid_motions_cost_nothing() -> None:
    """A straight cable has no strain in any rotation; linearized ones cause second-order forces."""
    line = Line(UNEVEN, SOFT)
    u = line.straight()
    Q = exp_rotation(np.array([0.7, -1.9, 2.4]))
    moved = u @ Q.T
    moved[:, 0] += [3.0, -2.0, 1.0]
    assert np.abs(line.forces(moved)).max() < 1e-12 * 50.0
    assert line.energy(moved) < 1e-24 * 50.0
    rotation = u @ skew(np.array([0.3, 1.0, -0.5])).T
    forces = [np.abs(line.forces(u + size * rotation)).max() for size in (1e-2, 1e-3)]
    energies = [line.energy(u + size * rotation) for size in (1e-2, 1e-3)]
    assert np.log10(forces[0] / forces[1]) == pytest.approx(2.0, abs=1e-3)
    assert np.log10(energies[0] / energies[1]) == pytest.approx(4.0, abs=1e-3)


def test_five_motions_are_free() -> None:
    """A straight cable has five motions without stiffness: translations and two rotations."""
    line = Line(UNEVEN, SOFT)
    values = np.linalg.eigvalsh(line.tangent(line.straight()))
    assert (np.abs(values[:5]) < 1e-10 * values[-1]).all()
    assert values[5] > 1e-5 * values[-1]


def test_forces_of_a_turned_cable_turn() -> None:
    line = Line(UNEVEN, SOFT)
    u = line.of(*bent(UNEVEN))
    Q = exp_rotation(np.array([0.4, 1.2, -2.0]))
    rotated = line.forces(u @ Q.T).reshape(u.shape)
    assert np.allclose(rotated, line.forces(u).reshape(u.shape) @ Q.T, atol=1e-10)
    total = line.forces(u).reshape(u.shape)
    moment = np.cross(u, total).sum(axis=(0, 1))
    assert np.allclose([total[:, 0].sum(axis=0), moment], 0.0, atol=1e-10)


def test_damping_takes_energy_and_spares_rigid_motions() -> None:
    """The power of the damping forces is twice the dissipation, and zero for rotations."""
    line = Line(UNEVEN, SOFT)
    form = fem.form(line.cable.damping_forces(line.q, line.v, line.test))
    dissipation = fem.form(line.cable.dissipation(line.q, line.v))
    r, slope = bent(UNEVEN, seed=5)
    u, v = line.of(r, slope), np.random.default_rng(6).normal(size=(8, 2, 3))
    line.set(line.q, u)
    line.set(line.v, v)
    assert line.vector(form) @ v.ravel() == pytest.approx(
        2 * fem.assemble_scalar(dissipation), rel=1e-10
    )
    assert fem.assemble_scalar(dissipation) > 0
    flat = u.copy()
    flat[..., 2] = 0.0
    omega = np.array([0.0, 0.0, 2.0])
    for nodal, spin in ((flat, omega), (line.straight(), np.array([0.5, -1.0, 2.0]))):
        line.set(line.q, nodal)
        line.set(line.v, np.cross(spin, nodal))
        assert np.abs(line.vector(form)).max() < 1e-13 * 50.0


def test_small_vibrations() -> None:
    """Pairs of bending modes and stretch of a cable on two pins; cell lengths differ by 1 : 4."""
    s = np.array([0.0, 0.05, 0.2, 0.3, 0.5, 0.62, 0.7, 0.78, 0.95, 1.0])
    line = Line(s, Cable(axial_stiffness=1e4, bending_stiffness=1.0, linear_density=1.0))
    n = len(s)
    pins = [0, 1, 2, *(6 * (n - 1) + np.arange(3))]
    free = np.setdiff1d(np.arange(6 * n), pins)
    K, M = (A[np.ix_(free, free)] for A in (line.tangent(line.straight()), line.mass()))
    omega = np.sqrt(eigh(K, M, eigvals_only=True))
    for k in range(1, 4):
        assert np.allclose(omega[2 * k - 2 : 2 * k], (k * np.pi) ** 2, rtol=5e-3)
        assert (omega[2 * k - 2 : 2 * k] > (k * np.pi) ** 2).all()
    # the first axial frequency, π√(EA/m)/L
    assert np.abs(omega - 100 * np.pi).min() < 1e-3 * 100 * np.pi


# ---- large deflections


def clamp() -> list[int]:
    """Return the held degrees of freedom of the first node: position and direction."""
    return [0, 1, 2, 4, 5]


def test_an_end_moment_bends_it_to_a_circle() -> None:
    """ML/EI = 2π closes a circle, with errors of fourth order in the length of the elements."""
    errors = []
    for count in (8, 16):
        line = Line(
            np.linspace(0.0, 1.0, count + 1),
            Cable(axial_stiffness=1e6, bending_stiffness=1.0, linear_density=1.0),
        )

        def load(u: Array, part: float) -> tuple[Array, Array]:
            """Return force and tangent of a moment m about z.

            It does work on the rotation p×δp/|p|² of the last slope p.
            """
            m, p = np.array([0.0, 0.0, 2 * np.pi * part]), u[-1, 1]
            square = p @ p
            g = np.cross(m, p) / square
            force, slope = np.zeros(u.size), np.zeros((u.size, u.size))
            force[-3:] = g
            slope[-3:, -3:] = skew(m) / square - 2 * np.outer(g, p) / square
            return force, slope

        u = line.equilibrium(line.straight(), clamp(), load, 80)
        angle = np.unwrap(np.arctan2(u[:, 1, 1], u[:, 1, 0]))[-1]
        radius = 1 / (2 * np.pi)
        distances = np.linalg.norm(u[:, 0, :2] - [0.0, radius], axis=1) / radius - 1
        errors.append([abs(angle / (2 * np.pi) - 1), np.abs(distances).max()])
    assert max(errors[1]) < 1e-3
    assert max(errors[0]) > 12 * max(errors[1])


@pytest.mark.parametrize("EA", [1e6, 1e8])
def test_a_cantilever_bends_like_the_elastica(EA: float) -> None:
    """PL²/EI = 10 at the end of a cantilever, with elliptic integrals as the reference.

    There is no locking, however thin the cable is.
    """
    load = 10.0

    # The reference solves for the angle at the end; m and phi are arguments of the integrals.
    def parameter(angle: float) -> tuple[float, float]:
        m = (1 + np.sin(angle)) / 2
        return m, float(np.arcsin(1 / np.sqrt(2 * m)))

    def excess(angle: float) -> float:
        m, phi = parameter(angle)
        return float(ellipk(m) - ellipkinc(phi, m) - np.sqrt(load))

    angle = brentq(excess, 1e-6, np.pi / 2 - 1e-9)
    m, phi = parameter(angle)
    drop = 1 - 2 * (ellipe(m) - ellipeinc(phi, m)) / np.sqrt(load)
    exact = np.array([np.sqrt(2 * np.sin(angle) / load), drop, angle])
    errors = []
    for count in (4, 8):
        line = Line(np.linspace(0.0, 1.0, count + 1), Cable(EA, 1.0, 1.0))
        force = np.zeros((count + 1, 2, 3))
        force[-1, 0, 1] = load
        u = line.equilibrium(
            line.straight(), clamp(), lambda u, part, f=force: (part * f.ravel(), 0.0), 20
        )
        tip = [*u[-1, 0, :2], np.arctan2(u[-1, 1, 1], u[-1, 1, 0])]
        errors.append(np.abs(np.array(tip) / exact - 1).max())
        assert np.abs(u[..., 2]).max() < 1e-12
    assert errors[1] < 3e-4
    assert errors[0] > 12 * errors[1]


def test_a_heavy_cable_hangs_in_a_catenary() -> None:
    """Sag and end force are those of an elastic catenary; the bending stiffness is small."""
    length, span, weight, EA = 1.2, 1.0, 2.0, 4e3

    # x of the point s, from the middle, for the horizontal force H
    def x_of(H: float, s: float) -> float:
        return H * s / EA + H / weight * float(np.arcsinh(weight * s / H))

    H = brentq(lambda h: 2 * x_of(h, length / 2) - span, 1e-3, 10.0)
    V = weight * length / 2
    sag = V * length / 4 / EA + (np.hypot(H, V) - H) / weight
    s = length / 2 * (1 - np.cos(np.linspace(0.0, np.pi, 17)))  # fine at the ends
    line = Line(s, Cable(EA, 1e-5, weight / 10.0))
    u = line.of(  # an arc as a guess
        lambda s: [s / length * span, -4 * 0.3 * s * (length - s) / length**2, 0 * s],
        lambda s: [0 * s + span / length, -4 * 0.3 * (length - 2 * s) / length**2, 0 * s],
    )
    force = line.vector(fem.form(line.cable.gravity_load(line.test, (0.0, -10.0, 0.0))))
    held = [0, 1, 2, *range(6 * 16, 6 * 16 + 3)]
    u = line.equilibrium(u, held, lambda u, part: (force, 0.0), 1)
    reaction = (line.forces(u) - force)[held]
    assert np.allclose(reaction[:2], [-H, V], rtol=2e-4)
    assert u[8, 0, 1] == pytest.approx(-sag, rel=2e-4)  # node in the middle


@pytest.mark.parametrize("tension", [-0.5, 2.0])
def test_it_stiffens_as_a_string(tension: float) -> None:
    """An axial force, a multiple of Euler's load, raises the lowest frequency of a pinned cable."""
    line = Line(
        np.linspace(0.0, 1.0, 9),
        Cable(axial_stiffness=1e6, bending_stiffness=1.0, linear_density=1.0),
    )
    euler = np.pi**2
    force = np.zeros(54)
    force[48] = tension * euler  # along x at the last node
    pins = [0, 1, 2, 49, 50]
    u = line.equilibrium(line.straight(), pins, lambda u, part: (part * force, 0.0), 2)
    free = np.setdiff1d(np.arange(54), [*pins, 48])
    K, M = (A[np.ix_(free, free)] for A in (line.tangent(u), line.mass()))
    lowest = eigh(K, M, eigvals_only=True)[0]
    assert lowest == pytest.approx(np.pi**2 * (tension * euler + euler), rel=1e-3)


# ---- its coordinates and its data


def test_the_other_twelve_coordinates_would_have_no_stiffness() -> None:
    """The shape functions of the slopes across the cable vanish on its axis.

    The slopes are those of an element with 24 coordinates, eq. 6 of the first reference of
    `dolfinx_mbd.forms.cables`.
    """
    z, length = np.linspace(0.0, 1.0, 11), 2.0

    def shapes(psi: float, xi: float) -> Array:
        return np.array(
            [
                1 - 3 * z**2 + 2 * z**3,
                length * (z - 2 * z**2 + z**3),
                length * (psi - z * psi),
                length * (xi - z * xi),
                3 * z**2 - 2 * z**3,
                length * (-(z**2) + z**3),
                length * z * psi,
                length * z * xi,
            ]
        )

    on_axis, off_axis = shapes(0.0, 0.0), shapes(0.01, 0.02)
    assert not on_axis[[2, 3, 6, 7]].any()
    assert off_axis[[2, 3, 6, 7]].any(axis=1).all()
    assert on_axis[[0, 1, 4, 5]].any(axis=1).all()


def test_data_is_checked() -> None:
    rod = Cable.from_section(Section.circle(0.015), STEEL, damping=1e-4)
    assert rod.axial_stiffness == pytest.approx(STEEL.young * np.pi * 0.015**2)
    assert rod.bending_stiffness == pytest.approx(STEEL.young * np.pi / 4 * 0.015**4)
    assert rod.linear_density == pytest.approx(STEEL.density * np.pi * 0.015**2)
    with pytest.raises(InputError) as error:
        Cable.from_section(Section.rectangle(0.01, 0.02), STEEL)
    assert error.value.argument == "section"
    for bad, argument in (
        ((0.0, 1.0, 1.0, 0.0), "axial_stiffness"),
        ((1.0, -1.0, 1.0, 0.0), "bending_stiffness"),
        ((1.0, 1.0, 1.0, -1.0), "damping"),
    ):
        with pytest.raises(InputError) as error:
            Cable(*bad)
        assert error.value.argument == argument
