"""The floating-frame forms equal those that UFL derives; their work, symmetry and resultants.

V7 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI

from dolfinx_mbd import forms
from dolfinx_mbd.errors import InputError

COMM = MPI.COMM_WORLD
RHO = 7.85


class Setting:
    """Body with a state u, u̇, ü and a motion of its frame, in two or three dimensions."""

    def __init__(self, dim: int, degree: int = 2) -> None:
        make = {2: mesh.create_rectangle, 3: mesh.create_box}[dim]
        corners = [np.array([-0.3, 0.2, 0.1][:dim]), np.array([0.9, 0.7, 0.4][:dim])]
        self.mesh = make(COMM, corners, [2] * dim)
        self.V = fem.functionspace(self.mesh, ("Lagrange", degree, (dim,)))
        self.trial, self.test = ufl.TrialFunction(self.V), ufl.TestFunction(self.V)
        self.x = ufl.SpatialCoordinate(self.mesh)
        rng = np.random.default_rng(7)  # the same numbers on every rank
        spin_shape = (3,) if dim == 3 else ()
        self.omega, self.alpha = (self.constant(rng.normal(size=spin_shape)) for _ in range(2))
        self.velocity, self.acceleration = (self.constant(rng.normal(size=dim)) for _ in range(2))
        self.q, self.q_dot, self.q_ddot = (self.field(rng) for _ in range(3))

    def constant(self, value: np.ndarray) -> fem.Constant:
        return fem.Constant(self.mesh, np.asarray(value, dtype=np.float64))

    def field(self, rng: np.random.Generator) -> fem.Function:
        """Return a field without symmetry that does not depend on the partition."""
        dim = self.mesh.geometry.dim
        matrix, phase = rng.normal(size=(dim, dim)), rng.normal(size=(dim, 1))
        f = fem.Function(self.V)
        f.interpolate(lambda x: np.sin(3 * matrix @ x[:dim] + phase))
        return f

    def lagrange(self) -> ufl.Form:
        """Return Lagrange's equations from the kinetic energy by automatic differentiation."""
        q, q_dot, omega, velocity = map(
            ufl.variable, (self.q, self.q_dot, self.omega, self.velocity)
        )
        absolute_velocity = velocity + forms.cross(omega, self.x + q) + q_dot
        energy = RHO / 2 * ufl.inner(absolute_velocity, absolute_velocity)
        momentum = ufl.diff(energy, q_dot)
        # The components of the velocity change by acceleration and because the axes turn.
        velocity_rate = self.acceleration - forms.cross(self.omega, self.velocity)
        rate = (
            ufl.dot(ufl.diff(momentum, q), self.q_dot)
            + ufl.dot(ufl.diff(momentum, q_dot), self.q_ddot)
            + ufl.dot(ufl.diff(momentum, velocity), velocity_rate)
        )
        by_omega = ufl.diff(momentum, omega)
        rate += (ufl.dot if len(by_omega.ufl_shape) == 2 else ufl.outer)(by_omega, self.alpha)
        return ufl.inner(rate - ufl.diff(energy, q), self.test) * ufl.dx

    def by_hand(self) -> ufl.Form:
        """Return the sum of the named forms."""
        v = self.test
        return (
            forms.mass(self.q_ddot, v, RHO)
            + forms.coriolis(self.q_dot, v, RHO, self.omega)
            + forms.centrifugal_stiffness(self.q, v, RHO, self.omega)
            + forms.euler_stiffness(self.q, v, RHO, self.alpha)
            - forms.translational_load(v, RHO, self.acceleration)
            - forms.euler_load(v, RHO, self.alpha)
            - forms.centrifugal_load(v, RHO, self.omega)
        )


@pytest.fixture(scope="module", params=[2, 3], ids=["2D", "3D"])
def setting(request: pytest.FixtureRequest) -> Setting:
    """Return a body in a random motion of its frame."""
    return Setting(request.param)


def _array(form: ufl.Form) -> np.ndarray:
    """Return this rank's contributions to a vector or matrix."""
    compiled = fem.form(form)
    if len(form.arguments()) == 1:
        return fem.assemble_vector(compiled).array.copy()
    return fem.assemble_matrix(compiled).data.copy()


def _scalar(form: ufl.Form) -> float:
    """Return the value of a form without arguments."""
    return COMM.allreduce(fem.assemble_scalar(fem.form(form)))


def _assert_equal(a: ufl.Form, b: ufl.Form, tolerance: float = 1e-14) -> None:
    """Assert that two forms have equal vectors or matrices."""
    result, expected = _array(a), _array(b)
    size = COMM.allreduce(np.abs(expected).max(initial=0.0), op=MPI.MAX)
    worst = COMM.allreduce(np.abs(result - expected).max(initial=0.0), op=MPI.MAX)
    assert size > 0
    assert worst <= tolerance * size


def test_residual_equals_lagrange(setting: Setting) -> None:
    _assert_equal(setting.by_hand(), setting.lagrange())


@pytest.mark.parametrize("what", ["mass", "coriolis", "stiffness"])
def test_matrices_equal_lagrange(setting: Setting, what: str) -> None:
    s, u, v = setting, setting.trial, setting.test
    state, form = {
        "mass": (s.q_ddot, forms.mass(u, v, RHO)),
        "coriolis": (s.q_dot, forms.coriolis(u, v, RHO, s.omega)),
        "stiffness": (
            s.q,
            forms.centrifugal_stiffness(u, v, RHO, s.omega)
            + forms.euler_stiffness(u, v, RHO, s.alpha),
        ),
    }[what]
    _assert_equal(form, ufl.derivative(s.lagrange(), state, u))


def test_gibbs_appell(setting: Setting) -> None:
    """The derivative of the energy of the accelerations by ü is the same residual."""
    s = setting
    position = s.x + s.q
    acceleration = (
        s.acceleration
        + forms.cross(s.alpha, position)
        + forms.cross(s.omega, forms.cross(s.omega, position))
        + 2 * forms.cross(s.omega, s.q_dot)
        + s.q_ddot
    )
    energy = RHO / 2 * ufl.inner(acceleration, acceleration) * ufl.dx
    _assert_equal(s.by_hand(), ufl.derivative(energy, s.q_ddot, s.test))


@pytest.mark.parametrize("name", ["coriolis", "euler_stiffness"])
def test_skew_terms_do_no_work(setting: Setting, name: str) -> None:
    s = setting
    operator: Callable[..., ufl.Form] = getattr(forms, name)
    a, b = s.q, s.q_dot
    size = _scalar(forms.mass(a, a, RHO))
    assert abs(_scalar(operator(a, a, RHO, s.omega))) < 1e-14 * size
    across = _scalar(operator(a, b, RHO, s.omega))
    assert abs(across) > 1e-4 * size
    assert abs(across + _scalar(operator(b, a, RHO, s.omega))) < 1e-14 * size


def test_symmetry_and_signs(setting: Setting) -> None:
    """Mass is symmetric and positive, spin softening symmetric and never positive."""
    s = setting
    a, b = s.q, s.q_dot
    mass = _scalar(forms.mass(a, b, RHO))
    assert mass == pytest.approx(_scalar(forms.mass(b, a, RHO)), rel=1e-14)
    assert _scalar(forms.mass(a, a, RHO)) > 0
    softening = [
        _scalar(forms.centrifugal_stiffness(p, q, RHO, s.omega)) for p, q in ((a, b), (b, a))
    ]
    assert softening[0] == pytest.approx(softening[1], rel=1e-13)
    assert _scalar(forms.centrifugal_stiffness(a, a, RHO, s.omega)) < 0
    # ∫ρ(ω×(ω×u))·u = -∫ρ|ω×u|²
    velocity = forms.cross(s.omega, a)
    assert _scalar(forms.centrifugal_stiffness(a, a, RHO, s.omega)) == pytest.approx(
        -_scalar(RHO * ufl.inner(velocity, velocity) * ufl.dx), rel=1e-13
    )


def _box(degree: int, cell: mesh.CellType) -> tuple[fem.FunctionSpace, list[np.ndarray]]:
    """Return vector-valued functions on a box, and its lower and upper corners."""
    lower, upper = np.array([-0.3, 0.2, 0.1]), np.array([0.9, 0.7, 0.4])
    box = mesh.create_box(COMM, [lower, upper], [2, 1, 2], cell_type=cell)
    return fem.functionspace(box, ("Lagrange", degree, (3,))), [lower, upper]


def _resultant(V: fem.FunctionSpace, load: Callable[[ufl.core.expr.Expr], ufl.Form]) -> tuple:
    """Return force and moment about the origin: the virtual work on rigid motions."""
    compiled = fem.form(load(ufl.TestFunction(V)))
    b = fem.assemble_vector(compiled).array  # contributions of this rank's cells
    shape = fem.Function(V)
    result = []
    for turn in (False, True):
        for axis in np.eye(3):
            shape.interpolate(
                lambda x, n=axis, turn=turn: (
                    np.cross(n, x.T).T if turn else np.outer(n, np.ones(x.shape[1]))
                )
            )
            result.append(COMM.allreduce(b @ shape.x.array))
    return np.array(result[:3]), np.array(result[3:])


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("cell", [mesh.CellType.tetrahedron, mesh.CellType.hexahedron])
def test_resultants_of_the_loads(degree: int, cell: mesh.CellType) -> None:
    """V7 (closed forms): resultants and moments of all loads are exact on any mesh.

    Centrifugal load: m(Ω²c − (Ω·c)Ω); Euler's load: moment −Jα; translational load: −m a₀;
    gravity: m a₀. J is the inertia about the origin, c the centre.
    """
    V, (lower, upper) = _box(degree, cell)
    omega, alpha, a0 = np.array([[3.0, -2.0, 5.0], [1.0, 4.0, -2.0], [2.0, 7.0, -9.0]])
    sides, centre = upper - lower, (lower + upper) / 2
    m = RHO * sides.prod()
    second = m * (np.outer(centre, centre) + np.diag(sides**2) / 12)  # ∫ρ x xᵀ of a box
    J = np.trace(second) * np.eye(3) - second

    force, moment = _resultant(V, lambda v: forms.centrifugal_load(v, RHO, omega))
    assert force == pytest.approx(m * (omega @ omega * centre - omega @ centre * omega), rel=1e-12)
    assert moment == pytest.approx(-np.cross(omega, J @ omega), rel=1e-12)

    force, moment = _resultant(V, lambda v: forms.euler_load(v, RHO, alpha))
    assert force == pytest.approx(-m * np.cross(alpha, centre), rel=1e-12)
    assert moment == pytest.approx(-J @ alpha, rel=1e-12)

    for load, expected in (
        (lambda v: forms.translational_load(v, RHO, a0), -m * a0),
        (lambda v: forms.gravity_load(v, RHO, a0), m * a0),
    ):
        force, moment = _resultant(V, load)
        assert force == pytest.approx(expected, rel=1e-12)
        assert moment == pytest.approx(np.cross(centre, expected), rel=1e-12)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("cell", [mesh.CellType.triangle, mesh.CellType.quadrilateral])
def test_resultants_of_the_loads_in_the_plane(degree: int, cell: mesh.CellType) -> None:
    """V7 in the plane, ω and α about z: centrifugal force mω²c, Euler's moment −Jα, and others."""
    lower, upper = np.array([-0.3, 0.2]), np.array([0.9, 0.7])
    plate = mesh.create_rectangle(COMM, [lower, upper], [2, 2], cell_type=cell)
    V = fem.functionspace(plate, ("Lagrange", degree, (2,)))
    thickness, omega, alpha, a0 = 0.04, 5.0, -2.0, np.array([2.0, 7.0])
    areal, sides, c = RHO * thickness, upper - lower, (lower + upper) / 2
    m = areal * sides.prod()
    J = m * (sides @ sides / 12 + c @ c)

    def resultant(load: Callable[[ufl.core.expr.Expr], ufl.Form]) -> tuple[np.ndarray, float]:
        b = fem.assemble_vector(fem.form(load(ufl.TestFunction(V)))).array
        shape = fem.Function(V)
        shape.interpolate(lambda x: np.stack([-x[1], x[0]]))
        force = [COMM.allreduce(b[i::2].sum()) for i in range(2)]
        return np.array(force), COMM.allreduce(b @ shape.x.array)

    force, moment = resultant(lambda v: forms.centrifugal_load(v, areal, omega))
    assert force == pytest.approx(m * omega**2 * c, rel=1e-12)
    assert abs(moment) < 1e-12 * m * omega**2
    force, moment = resultant(lambda v: forms.euler_load(v, areal, alpha))
    assert force == pytest.approx(-m * alpha * np.array([-c[1], c[0]]), rel=1e-12)
    assert moment == pytest.approx(-J * alpha, rel=1e-12)
    for load, sign in ((forms.translational_load, -1), (forms.gravity_load, 1)):
        force, moment = resultant(lambda v, load=load: load(v, areal, a0))
        assert force == pytest.approx(sign * m * a0, rel=1e-12)
        assert moment == pytest.approx(sign * m * (c[0] * a0[1] - c[1] * a0[0]), rel=1e-12)


def test_uniform_pressure_has_no_resultant_and_traction_acts_on_its_facets() -> None:
    V, (lower, upper) = _box(1, mesh.CellType.tetrahedron)
    n = ufl.FacetNormal(V.mesh)
    force, moment = _resultant(V, lambda v: forms.traction_load(v, -3.0 * n))
    assert np.abs(np.concatenate([force, moment])).max() < 1e-14

    facets = mesh.locate_entities_boundary(V.mesh, 2, lambda x: np.isclose(x[0], upper[0]))
    tags = mesh.meshtags(V.mesh, 2, np.sort(facets), np.full(len(facets), 4, dtype=np.int32))
    ds = ufl.Measure("ds", V.mesh, subdomain_data=tags)
    force, _ = _resultant(V, lambda v: forms.traction_load(v, (0.0, 2.0, 0.0), ds(4)))
    area = (upper - lower)[1:].prod()
    assert force == pytest.approx([0.0, 2.0 * area, 0.0], abs=1e-14)


def test_loads_about_another_origin() -> None:
    """With x measured from the centre of mass the centrifugal load has no resultant."""
    V, (lower, upper) = _box(1, mesh.CellType.tetrahedron)
    centre = fem.Constant(V.mesh, (lower + upper) / 2)
    x = ufl.SpatialCoordinate(V.mesh) - centre
    force, _ = _resultant(V, lambda v: forms.centrifugal_load(v, RHO, (1.0, 2.0, 3.0), x=x))
    assert np.abs(force).max() < 1e-13
    force, _ = _resultant(V, lambda v: forms.euler_load(v, RHO, (1.0, 2.0, 3.0), x=x))
    assert np.abs(force).max() < 1e-13


def test_new_values_need_no_new_form() -> None:
    """A compiled form with constants follows their values."""
    s = Setting(3, degree=1)
    form = fem.form(forms.coriolis(s.q, s.q_dot, RHO, s.omega))
    before = COMM.allreduce(fem.assemble_scalar(form))
    s.omega.value[:] *= -3.0
    assert COMM.allreduce(fem.assemble_scalar(form)) == pytest.approx(-3.0 * before, rel=1e-13)


def test_cross_refuses_shapes_that_do_not_go_together() -> None:
    in_plane, in_space = ufl.as_vector([1.0, 2.0]), ufl.as_vector([1.0, 2.0, 3.0])
    for omega, u in ((in_space, in_plane), (1.0, in_space), (in_plane, in_plane)):
        with pytest.raises(InputError) as error:
            forms.cross(omega, u)
        assert error.value.argument == "omega"


def test_cross_in_the_plane_is_that_of_space() -> None:
    s = Setting(2, degree=1)
    u = ufl.as_vector([s.x[0], s.x[1], 0 * s.x[0]])
    in_space = forms.cross((0.0, 0.0, 3.0), u)
    in_plane = forms.cross(3.0, s.x)
    for i in range(2):
        difference = (in_space[i] - in_plane[i]) ** 2 * ufl.dx
        assert _scalar(difference) == 0.0
        assert _scalar(in_plane[i] ** 2 * ufl.dx) > 0.1
