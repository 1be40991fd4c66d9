"""The forms of a beam: derived by UFL, by hand, and from a solid that moves as the beam does.

The forms are tested by reference cases V6 (rotating cantilever) and V7 (closed forms).

V6 and V7 are cases of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import basix.ufl
import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from numpy.typing import NDArray
from scipy.linalg import eigh, qr

from dolfinx_mbd import forms
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.beams import Beam, axial_force_of_motion

Array = NDArray[np.float64]
COMM, SELF = MPI.COMM_WORLD, MPI.COMM_SELF
RHO = 7.85
MATERIAL = forms.Material(young=210.0, poisson=0.3, density=RHO)
STUBBY = Section.rectangle(0.3, 0.5)
SKEW = qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
SKEW = SKEW * np.linalg.det(SKEW)  # a right-handed triad
SHIFT = np.array([0.1, -0.2, 0.3])


def chain(x: Array, comm: MPI.Comm = SELF, direction: Array | None = None) -> mesh.Mesh:
    """Return a mesh of intervals between these positions; every third one is reversed."""
    points = x[:, None] if direction is None else np.outer(x, direction) + SHIFT
    cells = np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))]).astype(np.int64)
    cells[::3] = cells[::3, ::-1]
    element = basix.ufl.element("Lagrange", "interval", 1, shape=(points.shape[1],))
    if comm.rank:
        cells, points = cells[:0], points[:0]
    return mesh.create_mesh(comm, cells=cells, e=element, x=points)


UNEVEN = np.array([0.2, 0.3, 0.7, 0.8, 1.6, 1.9, 2.0, 3.2])


class Setting:
    """Beam in a random motion: uniform on a line, or tapered in a skew direction in space."""

    def __init__(self, skew: bool) -> None:
        self.mesh = chain(UNEVEN, COMM, SKEW[:, 0] if skew else None)
        x = ufl.SpatialCoordinate(self.mesh)
        # `s` is the coordinate along the beam.
        s = sum(float(e) * x[i] for i, e in enumerate(SKEW[:, 0])) if skew else x[0]
        section = Section(0.2 + 0.1 * s, 0.02 + 0.01 * s, 0.01, 0.01, Iyz=0.003) if skew else STUBBY
        self.beam = Beam(section, MATERIAL, SKEW if skew else None)
        self.V = fem.functionspace(self.mesh, ("Lagrange", 1, (6,)))
        self.trial, self.test = ufl.TrialFunction(self.V), ufl.TestFunction(self.V)
        rng = np.random.default_rng(7)
        Q = fem.functionspace(self.mesh, ("DG", 0, (3,)))
        self.omega, self.alpha, self.velocity, self.acceleration = (
            self.uniform(Q, rng.normal(size=3)) for _ in range(4)
        )
        self.q, self.q_dot, self.q_ddot = (self.field(rng) for _ in range(3))

    @staticmethod
    def uniform(Q: fem.FunctionSpace, value: Array) -> fem.Function:
        """Return a vector as a function, so that UFL can differentiate with respect to it."""
        f = fem.Function(Q)
        f.interpolate(lambda x: np.outer(value, np.ones(x.shape[1])))
        return f

    def field(self, rng: np.random.Generator) -> fem.Function:
        matrix, phase = rng.normal(size=(6, 3)), rng.normal(size=(6, 1))
        f = fem.Function(self.V)
        f.interpolate(lambda x: np.sin(3 * matrix @ x + phase))
        return f

    def by_hand(self) -> ufl.Form:
        b, v = self.beam, self.test
        return (
            b.mass(self.q_ddot, v)
            + b.coriolis(self.q_dot, v, self.omega)
            + b.centrifugal_stiffness(self.q, v, self.omega)
            + b.euler_stiffness(self.q, v, self.alpha)
            - b.translational_load(v, self.acceleration)
            - b.euler_load(v, self.alpha)
            - b.centrifugal_load(v, self.omega)
        )

    def energy(self) -> ufl.Form:
        """Return the energy of the material points of the three-dimensional beam."""
        b = self.beam
        field, rate = b.field(self.q), b.field(self.q_dot)

        def fibre(y: Any, z: Any) -> ufl.Form:
            position = field.position_at(y, z) + field.in_body(field.at(y, z))
            velocity = self.velocity + ufl.cross(self.omega, position) + rate.in_body(rate.at(y, z))
            return RHO / 2 * ufl.inner(velocity, velocity) * ufl.dx

        return b.over_section(fibre)

    def lagrange(self, energy: ufl.Form) -> ufl.Form:
        """Return d/dt ∂T/∂q̇ − ∂T/∂q by the chain rule."""
        momentum = ufl.derivative(energy, self.q_dot, self.test)
        velocity_rate = self.acceleration - ufl.cross(self.omega, self.velocity)
        rate = (
            ufl.derivative(momentum, self.q, self.q_dot)
            + ufl.derivative(momentum, self.q_dot, self.q_ddot)
            + ufl.derivative(momentum, self.omega, self.alpha)
            + ufl.derivative(momentum, self.velocity, velocity_rate)
        )
        return rate - ufl.derivative(energy, self.q, self.test)


@pytest.fixture(scope="module", params=[False, True], ids=["line", "skew"])
def setting(request: pytest.FixtureRequest) -> Setting:
    """Return a beam on a line or in a skew direction."""
    return Setting(request.param)


def _array(form: ufl.Form) -> Array:
    """Return this rank's contributions to a vector or matrix."""
    compiled = fem.form(form)
    if len(form.arguments()) == 1:
        return fem.assemble_vector(compiled).array.copy()
    return fem.assemble_matrix(compiled).to_dense()


def _assert_equal(a: ufl.Form, b: ufl.Form, tolerance: float = 1e-13) -> None:
    """Assert that two forms have equal vectors or matrices."""
    result, expected = _array(a), _array(b)
    size = COMM.allreduce(np.abs(expected).max(initial=0.0), op=MPI.MAX)
    worst = COMM.allreduce(np.abs(result - expected).max(initial=0.0), op=MPI.MAX)
    assert size > 0
    assert worst <= tolerance * size


# ---- inertia


@pytest.mark.slow
def test_residual_equals_lagrange(setting: Setting) -> None:
    _assert_equal(setting.by_hand(), setting.lagrange(setting.energy()))


@pytest.mark.slow
def test_matrices_equal_lagrange() -> None:
    s = Setting(skew=False)
    u, v = s.trial, s.test
    residual = s.lagrange(s.energy())
    stiffness = s.beam.centrifugal_stiffness(u, v, s.omega) + s.beam.euler_stiffness(u, v, s.alpha)
    for state, form in (
        (s.q_ddot, s.beam.mass(u, v)),
        (s.q_dot, s.beam.coriolis(u, v, s.omega)),
        (s.q, stiffness),
    ):
        _assert_equal(form, ufl.derivative(residual, state, u))


def test_what_the_paper_omits() -> None:
    """The energy in Vlase's overview lacks some terms of the rotary inertia of the section.

    The overview is the reference of `dolfinx_mbd.forms.beams`. Its energy gives all terms of the
    mass on the axis, but of those of the section only the Euler load −Iα. It lacks the Coriolis,
    Euler and centrifugal stiffness terms of the section, and its centrifugal load −ω×Iω.
    """
    s = Setting(skew=False)
    b, v, section = s.beam, s.test, s.beam.section
    field, rate = b.field(s.q), b.field(s.q_dot)
    velocity = s.velocity + ufl.cross(s.omega, field.position_at(0, 0) + field.axis) + rate.axis
    spin = s.omega + rate.rotation
    inertia = ufl.diag(ufl.as_vector([section.polar, section.Iyy, section.Izz]))
    energy = section.area * ufl.inner(velocity, velocity) + ufl.dot(spin, ufl.dot(inertia, spin))
    paper = s.lagrange(RHO / 2 * energy * ufl.dx)

    def of_section(form: Callable[[Beam], ufl.Form]) -> ufl.Form:
        thin = Section(section.area, 1e-30, 1e-30, 1e-30)
        return form(b) - form(Beam(thin, MATERIAL))

    omitted = of_section(
        lambda b: (
            b.coriolis(s.q_dot, v, s.omega)
            + b.centrifugal_stiffness(s.q, v, s.omega)
            + b.euler_stiffness(s.q, v, s.alpha)
            - b.centrifugal_load(v, s.omega)
        )
    )
    _assert_equal(s.by_hand(), paper + omitted)
    size, omitted_size = (
        np.abs(_array(s.by_hand())).max(initial=0.0),
        np.abs(_array(omitted)).max(initial=0),
    )
    assert COMM.allreduce(omitted_size, op=MPI.MAX) > 1e-2 * COMM.allreduce(size, op=MPI.MAX)


class Solid:
    """Box with the displacements of a beam, which P3 elements represent exactly."""

    def __init__(self) -> None:
        self.beam = Beam(STUBBY, MATERIAL)
        self.line = mesh.create_interval(SELF, 2, [0.2, 1.4])
        self.V = fem.functionspace(self.line, ("Lagrange", 1, (6,)))
        corners = [np.array([0.2, -0.15, -0.25]), np.array([1.4, 0.15, 0.25])]
        hexahedron = mesh.CellType.hexahedron
        self.box = mesh.create_box(SELF, corners, [2, 1, 1], cell_type=hexahedron)
        self.W = fem.functionspace(self.box, ("Lagrange", 3, (3,)))

    def pair(self, nodal: Array) -> tuple[fem.Function, fem.Function]:
        """Return the same motion as a function of the beam and as a function of the solid.

        The rows of `nodal` (3, 6) are the displacements d and the rotations θ of the beam's nodes
        at x = 0.2, 0.8 and 1.4.
        """
        q, u = fem.Function(self.V), fem.Function(self.W)
        order = np.argsort(self.V.tabulate_dof_coordinates()[:, 0])
        q.x.array.reshape(-1, 6)[order] = nodal

        def field(x: Array) -> Array:
            middle, length = 0.8, 0.6  # end of the first cell, and length of a cell
            cell = (x[0] > middle).astype(int)
            t = (x[0] - np.array([0.2, middle])[cell]) / length
            a, b = nodal[cell].T, nodal[cell + 1].T  # displacements of the first and second node
            # Hermite's polynomials of deflections and slopes, and their derivatives
            H = [1 - 3 * t**2 + 2 * t**3, length * (t - 2 * t**2 + t**3), 3 * t**2 - 2 * t**3]
            H.append(length * (t**3 - t**2))
            D = [(6 * t**2 - 6 * t) / length, 1 - 4 * t + 3 * t**2, (6 * t - 6 * t**2) / length]
            D.append(3 * t**2 - 2 * t)
            # deflections v, w along y, z and their slopes; the slope of w is minus a rotation
            v, w = (
                [h[0] * a[i] + h[1] * s * a[j] + h[2] * b[i] + h[3] * s * b[j] for h in (H, D)]
                for i, j, s in ((1, 5, 1), (2, 4, -1))
            )
            axial, twist = (a[i] + t * (b[i] - a[i]) for i in (0, 3))
            y, z = x[1], x[2]
            return np.stack([axial - y * v[1] - z * w[1], v[0] - z * twist, w[0] + y * twist])

        u.interpolate(field)
        return q, u


@pytest.mark.slow
def test_inertia_is_that_of_a_stubby_solid() -> None:
    """All inertia terms equal those of a solid with the same displacement."""
    solid = Solid()
    rng = np.random.default_rng(1)
    (q, u), (p, v) = (solid.pair(rng.normal(size=(3, 6))) for _ in range(2))
    # `w` is the angular velocity, `a` its derivative, a translational acceleration or gravity.
    b, w, a = solid.beam, (0.7, -1.1, 0.4), (0.3, 0.2, -0.9)

    def scalar(form: ufl.Form) -> float:
        return float(fem.assemble_scalar(fem.form(form)))

    for of_beam, of_solid in (
        (b.mass(q, p), forms.mass(u, v, RHO)),
        (b.coriolis(q, p, w), forms.coriolis(u, v, RHO, w)),
        (b.centrifugal_stiffness(q, p, w), forms.centrifugal_stiffness(u, v, RHO, w)),
        (b.euler_stiffness(q, p, a), forms.euler_stiffness(u, v, RHO, a)),
        (b.translational_load(p, a), forms.translational_load(v, RHO, a)),
        (b.gravity_load(p, a), forms.gravity_load(v, RHO, a)),
        (b.euler_load(p, a), forms.euler_load(v, RHO, a)),
        (b.centrifugal_load(p, w), forms.centrifugal_load(v, RHO, w)),
        (
            b.geometric_stiffness(q, p, 3.0),
            forms.geometric_stiffness(
                u, v, ufl.as_matrix(np.diag([3.0 / STUBBY.area, 0, 0]).tolist())
            ),
        ),
    ):
        expected = scalar(of_solid)
        assert scalar(of_beam) == pytest.approx(expected, rel=1e-12)
        assert abs(expected) > 1e-3


@pytest.mark.parametrize("skew", [False, True])
def test_resultants(skew: bool) -> None:
    """V7: the centrifugal load has the resultant m(Ω²c − (Ω·c)Ω), the Euler load the moment −Jα.

    c is the centre, J the inertia about the origin; the resultants are exact on any mesh.
    """
    direction = SKEW[:, 0] if skew else None
    line = chain(UNEVEN, SELF, direction)
    b = Beam(STUBBY, MATERIAL, SKEW if skew else None)
    V = fem.functionspace(line, ("Lagrange", 1, (6,)))
    v = ufl.TestFunction(V)
    nodes = V.tabulate_dof_coordinates()
    R = np.zeros((len(nodes), 6, 6))
    for k in range(3):
        R[:, k, k] = R[:, 3 + k, 3 + k] = 1.0
        R[:, :3, 3 + k] = np.cross(np.eye(3)[k], nodes)
    ends, length = nodes[np.argsort(nodes @ (SKEW[:, 0] if skew else np.eye(3)[0]))][[0, -1]], 3.0
    m, c = RHO * STUBBY.area * length, ends.mean(axis=0)
    section = np.diag([length**2 / 12, STUBBY.Izz / STUBBY.area, STUBBY.Iyy / STUBBY.area])
    axes = SKEW if skew else np.eye(3)
    second = m * (np.outer(c, c) + axes @ section @ axes.T)
    J = np.trace(second) * np.eye(3) - second
    omega, alpha = np.array([3.0, -2.0, 5.0]), np.array([1.0, 4.0, -2.0])
    for load, force, moment in (
        (
            b.centrifugal_load(v, tuple(omega)),
            m * (omega @ omega * c - omega @ c * omega),
            -np.cross(omega, J @ omega),
        ),
        (b.euler_load(v, tuple(alpha)), -m * np.cross(alpha, c), -J @ alpha),
        (b.translational_load(v, tuple(alpha)), -m * alpha, -m * np.cross(c, alpha)),
        (b.gravity_load(v, tuple(alpha)), m * alpha, m * np.cross(c, alpha)),
    ):
        total = R.reshape(-1, 6).T @ _array(load)
        assert total == pytest.approx(np.concatenate([force, moment]), rel=1e-12, abs=1e-11)


def test_distributed_force_and_moment() -> None:
    """A uniform moment m per length about z equals the forces −m and m at the ends."""
    V = fem.functionspace(mesh.create_interval(SELF, 1, [0.0, 2.0]), ("Lagrange", 1, (6,)))
    b, v = Beam(STUBBY, MATERIAL), ufl.TestFunction(V)
    first, last = np.argsort(V.tabulate_dof_coordinates()[:, 0])
    load = _array(b.distributed_load(v, moment=(0.0, 0.0, 3.0))).reshape(2, 6)
    assert load[first] == pytest.approx([0, -3, 0, 0, 0, 0], abs=1e-13)
    assert load[last] == pytest.approx([0, 3, 0, 0, 0, 0], abs=1e-13)
    load = _array(b.distributed_load(v, force=(0.0, 3.0, 0.0))).reshape(2, 6)
    assert load[first] == pytest.approx([0, 3, 0, 0, 0, 1.0], abs=1e-13)  # qL/2, qL²/12
    assert load[last] == pytest.approx([0, 3, 0, 0, 0, -1.0], abs=1e-13)


# ---- the element and its stiffness


def test_textbook_matrices() -> None:
    """Matrices are those of the element with twelve degrees of freedom, integrated by hand."""
    L, s = 1.7, STUBBY
    V = fem.functionspace(mesh.create_interval(SELF, 1, [0.4, 0.4 + L]), ("Lagrange", 1, (6,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    order = np.argsort(V.tabulate_dof_coordinates()[:, 0])
    dofs = (6 * order[:, None] + np.arange(6)).ravel()
    b = Beam(s, MATERIAL)
    K, M = (_array(f)[np.ix_(dofs, dofs)] for f in (b.elastic_stiffness(u, v), b.mass(u, v)))
    bending = np.array([[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]])
    inertia = np.array([[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]])
    rotary = np.array([[36, 3, -36, 3], [3, 4, -3, -1], [-36, -3, 36, -3], [3, -1, -3, 4]])
    # stiffness and mass of a linear function, without EA and ρA
    bar, pair = np.array([[1, -1], [-1, 1]]) / L, np.array([[2, 1], [1, 2]]) * L / 6
    expected = {"K": np.zeros((12, 12)), "M": np.zeros((12, 12))}
    E, G = MATERIAL.young, MATERIAL.shear
    for at, k, m in ((0, E * s.area, s.area), (3, G * s.torsion, s.polar)):
        grid = np.ix_([at, at + 6], [at, at + 6])
        expected["K"][grid] += k * bar
        expected["M"][grid] += RHO * m * pair
    for at, slope, sign, second in ((1, 5, 1, s.Izz), (2, 4, -1, s.Iyy)):
        grid = np.ix_([at, slope, at + 6, slope + 6], [at, slope, at + 6, slope + 6])
        scale = np.diag([1, sign * L, 1, sign * L])
        expected["K"][grid] += E * second / L**3 * scale @ bending @ scale
        expected["M"][grid] += RHO * s.area * L / 420 * scale @ inertia @ scale
        expected["M"][grid] += RHO * second / (30 * L) * scale @ rotary @ scale
    assert np.allclose(K, expected["K"], rtol=0, atol=1e-13 * np.abs(K).max())
    assert np.allclose(M, expected["M"], rtol=0, atol=1e-13 * np.abs(M).max())


def test_rigid_motions_and_constant_strains(setting: Setting) -> None:
    """Six motions have no energy; stretch, twist and curvatures have that in closed form."""
    s, V = setting, setting.V
    axes = s.beam.axes
    motion = fem.Function(V)
    energy = fem.form(s.beam.elastic_stiffness(motion, motion))
    x = V.tabulate_dof_coordinates()

    def energy_of(d: Callable[[Array], Array], theta: Callable[[Array], Array]) -> float:
        motion.x.array[:] = np.hstack([d(x), theta(x)]).ravel()
        return COMM.allreduce(float(fem.assemble_scalar(energy)))

    for k in range(3):
        e = np.eye(3)[k]
        assert abs(energy_of(lambda x, e=e: 0 * x + e, lambda x: 0 * x)) < 1e-10
        assert abs(energy_of(lambda x, e=e: np.cross(e, x), lambda x, e=e: 0 * x + e)) < 1e-10

    coordinate = x @ axes[:, 0] if V.mesh.geometry.dim == 3 else x[:, 0]
    ends = (
        COMM.allreduce(coordinate.min(initial=np.inf), MPI.MIN),
        COMM.allreduce(coordinate.max(initial=-np.inf), MPI.MAX),
    )
    t = coordinate[:, None]
    section = s.beam.section

    def mean(value: Any) -> float:
        if isinstance(value, float):
            return value * (ends[1] - ends[0])
        return COMM.allreduce(float(fem.assemble_scalar(fem.form(value * ufl.dx(V.mesh)))))

    E, G = MATERIAL.young, MATERIAL.shear
    ex, ey, ez = axes.T
    for d, theta, expected in (
        (t * ex, 0 * t * ex, E * mean(section.area)),
        (0 * t * ex, t * ex, G * mean(section.torsion)),
        (t**2 / 2 * ey, t * ez, E * mean(section.Izz)),
        (t**2 / 2 * ez, -t * ey, E * mean(section.Iyy)),
    ):
        integral = energy_of(lambda x, d=d: d, lambda x, theta=theta: theta)
        assert integral == pytest.approx(expected, rel=1e-11)


def test_numbers_of_sections() -> None:
    square = Section.rectangle(2.0, 2.0)
    assert square.torsion == pytest.approx(0.140577 * 16, rel=1e-5)  # Timoshenko, Goodier
    # b³h β with the tabulated β = 0.263 for the ratio 3
    assert Section.rectangle(1.0, 3.0).torsion == pytest.approx(0.263 * 3, rel=2e-3)
    n = np.arange(1, 40001, 2)
    series = np.sum(np.tanh(1.5 * n * np.pi) / n**5.0)
    exact = 3 * (1 / 3 - 64 / (3 * np.pi**5) * series)
    assert Section.rectangle(1.0, 3.0).torsion == pytest.approx(exact, rel=1e-14)
    assert Section.rectangle(3.0, 1.0).torsion == Section.rectangle(1.0, 3.0).torsion
    flat = Section.rectangle(0.1, 0.3)
    assert (flat.Iyy, flat.Izz) == pytest.approx((0.1 * 0.3**3 / 12, 0.3 * 0.1**3 / 12))
    round_, tube = Section.circle(0.1), Section.tube(0.1, 0.02)
    assert round_.torsion == pytest.approx(round_.polar)
    assert tube.area == pytest.approx(np.pi * (0.1**2 - 0.08**2))
    assert tube.Iyy == pytest.approx(round_.Iyy - Section.circle(0.08).Iyy)
    x = ufl.SpatialCoordinate(mesh.create_interval(SELF, 4, [0.0, 1.0]))[0]
    tapered = Section.rectangle(0.1 * (1 + x), 0.3 + 0 * x)
    assert fem.assemble_scalar(fem.form(tapered.torsion * ufl.dx)) == pytest.approx(
        np.mean(
            [Section.rectangle(0.1 * (1 + s), 0.3).torsion for s in (np.arange(400) + 0.5) / 400]
        ),
        rel=1e-5,
    )


# ---- geometric stiffness


def _matrices(forms_of: Callable[..., tuple[ufl.Form, ...]], count: int, length: float) -> Any:
    """Return the matrices of forms on a line of cells; a node has displacements and rotations."""
    line = mesh.create_interval(SELF, count, [0.0, length])
    V = fem.functionspace(line, ("Lagrange", 1, (6,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    order = np.argsort(V.tabulate_dof_coordinates()[:, 0])
    dofs = (6 * order[:, None] + np.arange(6)).ravel()
    x = ufl.SpatialCoordinate(line)[0]
    return [_array(f)[np.ix_(dofs, dofs)] for f in forms_of(u, v, x)]


def test_pinned_bar_buckles() -> None:
    """V7: a bar on two pins buckles at π²EI/L² of each plane."""
    L, thin = 2.0, Section.rectangle(0.01, 0.012)
    b, count = Beam(thin, MATERIAL), 12
    K, Kg = _matrices(
        lambda u, v, x: (b.elastic_stiffness(u, v), b.geometric_stiffness(u, v, 1.0)), count, L
    )
    end = 6 * count  # row of the last node
    held = [0, 1, 2, 3, end + 1, end + 2]  # displacements, and the torsion of the first node
    free = np.setdiff1d(np.arange(len(K)), held)
    loads = 1 / eigh(Kg[np.ix_(free, free)], K[np.ix_(free, free)], eigvals_only=True)[::-1]
    euler = np.pi**2 * MATERIAL.young / L**2 * np.sort([thin.Iyy, thin.Izz])
    assert loads[:2] == pytest.approx(euler, rel=1e-4)


V6 = {
    0: (3.51602, 22.03449, 61.69721, 3.51602, 22.03449),
    2: (4.13732, 22.61492, 62.27318, 3.62180, 22.52631),
    5: (6.44954, 25.44608, 65.20504, 4.07390, 24.95001),
}
"""Frequencies over √(EI/ρA)/L² by the relative speed γ: three of flap, and two of lag."""


@pytest.mark.parametrize("stress", ["force", "displacement"])
def test_rotating_cantilever(stress: str) -> None:
    """V6: flap and lag of a rotating cantilever.

    Its axial force is specified as a function, or follows from the displacement.
    """
    thin = Section.rectangle(1e-4, 1e-4)  # negligible rotary inertia
    b, count = Beam(thin, forms.Material(1.0 / thin.Iyy, 0.3, 1.0 / thin.area)), 24  # EI = ρA = 1
    spin = (0.0, 0.0, 1.0)
    K, M, soft, Kg = _matrices(
        lambda u, v, x: (
            b.elastic_stiffness(u, v),
            b.mass(u, v),
            b.centrifugal_stiffness(u, v, spin),
            b.geometric_stiffness(u, v, axial_force_of_motion(x, 1.0, 1.0, spin))
            if stress == "force"
            else b.initial_stress_stiffness(u, v, _stretched(b, v)),
        ),
        count,
        1.0,
    )
    n = 6 * (count + 1)
    for gamma, expected in V6.items():
        A = K + gamma**2 * (soft + Kg)
        frequencies = []
        # displacement and rotation of a node in the plane of flap, and in that of lag
        for plane, number in (((2, 4), 3), ((1, 5), 2)):
            dofs = np.array([6 * k + c for k in range(1, count + 1) for c in plane])
            assert dofs.max() < n
            grid = np.ix_(dofs, dofs)
            frequencies += list(np.sqrt(eigh(A[grid], M[grid], eigvals_only=True)[:number]))
        assert frequencies == pytest.approx(expected, rel=1e-4 if stress == "force" else 3e-4)


def _stretched(b: Beam, v: Any) -> fem.Function:
    """Return the cantilever under the centrifugal load of a unit spin about z."""
    V = v.ufl_function_space()
    q = fem.Function(V)
    x = V.tabulate_dof_coordinates()[:, 0]
    # EA u' = ρA (L² − x²)/2, exact at the nodes
    EA = b.material.young * b.section.area
    q.x.array.reshape(-1, 6)[:, 0] = (x / 2 - x**3 / 6) / EA
    return q


def test_axial_force_of_motion() -> None:
    """N′ = ρA (a₀ₓ − (ω_y² + ω_z²) x), and N is the applied force at the end."""
    x = np.linspace(0.0, 2.0, 2001)
    N = axial_force_of_motion(x, 2.0, 3.0, (9.0, 1.0, 2.0), acceleration=0.7, end_force=5.0)
    assert N[-1] == 5.0
    assert np.gradient(N, x)[1:-1] == pytest.approx(3.0 * (0.7 - 5.0 * x[1:-1]), abs=1e-6)


def test_initial_stress_of_stretch_is_the_geometric_stiffness(setting: Setting) -> None:
    s, u, v = setting, setting.trial, setting.test
    q = fem.Function(s.V)
    direction = s.beam.axes[:, 0]
    q.interpolate(
        lambda x: np.vstack([np.outer(direction, _along(s, x) ** 2), np.zeros((3, x.shape[1]))])
    )
    geometric = s.beam.geometric_stiffness(u, v, s.beam.axial_force(q))
    _assert_equal(s.beam.initial_stress_stiffness(u, v, q), geometric, 1e-12)


def _along(s: Setting, x: Array) -> Array:
    """Return the coordinate along the beam at points x."""
    return x[0] if s.V.mesh.geometry.dim == 1 else s.beam.axes[:, 0] @ x


# ---- invalid arguments


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Section.rectangle(-1.0, 2.0), "width"),
        (lambda: Section.circle(0.0), "radius"),
        (lambda: Section.tube(0.1, 0.2), "thickness"),
        (lambda: Section(1.0, 1.0, 1.0, 1.0, Iyz=2.0), "Iyz"),
        (lambda: Section(1.0, 1.0, 0.0, 1.0), "Izz"),
        (lambda: Section(1.0, 1.0, 1.0, 1.0, shape="star"), "shape"),  # type: ignore[arg-type]
        (lambda: Beam(STUBBY, MATERIAL, np.ones((3, 3))), "axes"),
        (lambda: Beam(STUBBY, MATERIAL, np.diag([1, 1, -1])), "axes"),
    ],
)
def test_refuses(make: Callable[[], Any], argument: str) -> None:
    with pytest.raises(InputError) as error:
        make()
    assert error.value.argument == argument
