"""The five formalisms: one residual, in plane strain, plane stress and space, and their laws."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI

from dolfinx_mbd import forms
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import formalisms
from dolfinx_mbd.forms.formalisms import MovingBody, VirtualVelocities

CASES = {"plane strain": (2, "strain"), "plane stress": (2, "stress"), "space": (3, "strain")}
NAMES = ("named forms", "Lagrange", "Gibbs-Appell", "Kane", "Maggi", "Hamilton")


class Setting:
    """Body with random state and motion, the same on any number of ranks."""

    def __init__(
        self, dim: int, plane: str, degree: int = 2, comm: MPI.Intracomm = MPI.COMM_WORLD
    ) -> None:
        self.dim, self.comm = dim, comm
        make = {2: mesh.create_rectangle, 3: mesh.create_box}[dim]
        corners = [np.array([-0.3, 0.2, 0.1][:dim]), np.array([0.9, 0.7, 0.4][:dim])]
        self.mesh = make(comm, corners, [2] * dim)
        self.V = fem.functionspace(self.mesh, ("Lagrange", degree, (dim,)))
        self.v, self.trial = ufl.TestFunction(self.V), ufl.TrialFunction(self.V)
        spin_shape = (3,) if dim == 3 else ()
        shapes = {"omega": spin_shape, "alpha": spin_shape}
        shapes |= dict.fromkeys(("velocity", "acceleration", "gravity", "traction"), (dim,))
        self.constants = {
            name: fem.Constant(self.mesh, np.zeros(shape)) for name, shape in shapes.items()
        }
        self.state = {name: fem.Function(self.V) for name in ("u", "u_dot", "u_ddot")}
        self.x = fem.Function(self.V)
        self.x.interpolate(lambda x: x[:dim])
        self.pi, self.pi_dot = fem.Function(self.V), fem.Function(self.V)
        self.body = MovingBody(
            **self.state,
            **self.constants,
            material=forms.Material(3.0, 0.3, 7.85),
            plane=plane,
            thickness=0.4 if dim == 2 else 1.0,
        )
        self.randomize(7)

    def randomize(self, seed: int, only: Iterable[str] = ("u", "u_dot", "u_ddot")) -> None:
        """Assign another motion and state; parts of the state that are not named are zero."""
        rng = np.random.default_rng(seed)
        for constant in self.constants.values():
            constant.value[...] = rng.normal(size=constant.value.shape)
        for name, f in self.state.items():
            matrix, phase = rng.normal(size=(self.dim, self.dim)), rng.normal(size=(self.dim, 1))
            f.x.array[:] = 0
            if name in only:
                f.interpolate(lambda x, m=matrix, p=phase: np.sin(3 * m @ x[: self.dim] + p))
        self.set_momenta()

    def set_momenta(self) -> None:
        """Assign π, the absolute velocity of the nodes, and the rate of its components."""
        x, u, u_dot, u_ddot = (self.nodes(f) for f in (self.x, *self.state.values()))
        omega, alpha, v0, a0 = (
            self.constants[n].value for n in ("omega", "alpha", "velocity", "acceleration")
        )
        self.nodes(self.pi)[:] = v0 + turn(omega, x + u) + u_dot
        self.nodes(self.pi_dot)[:] = (
            a0 - turn(omega, v0) + turn(alpha, x + u) + turn(omega, u_dot) + u_ddot
        )

    def nodes(self, f: fem.Function) -> np.ndarray:
        return f.x.array.reshape(-1, self.dim)

    def residuals(self) -> dict[str, ufl.Form]:
        body, v = self.body, self.v
        canonical = formalisms.hamilton(body, self.pi, self.pi_dot, v)
        forms_ = (
            formalisms.named_forms(body, v),
            formalisms.lagrange(body, v),
            formalisms.gibbs_appell(body, v),
            formalisms.kane(body, v),
            formalisms.maggi(body, VirtualVelocities(v)),
            canonical.momentum,
        )
        return dict(zip(NAMES, forms_, strict=True)) | {
            "u̇ = ∂H/∂p": canonical.displacement,
            "momenta": formalisms.momentum(body, v),
            "mass times π": forms.mass(self.pi, v, body.density),
        }


class Switched:
    """Several forms compiled together to save time; each can be assembled alone."""

    def __init__(self, msh: mesh.Mesh, parts: dict[str, ufl.Form]) -> None:
        self.index = {name: i for i, name in enumerate(parts)}
        self.switch = fem.Constant(msh, np.zeros(len(parts)))
        terms = [self.switch[i] * form for i, form in enumerate(parts.values())]
        self.form = fem.form(sum(terms[1:], terms[0]))

    def __call__(self, name: str) -> np.ndarray:
        """Return this rank's contributions to the vector or matrix, or the number of all ranks."""
        self.switch.value[:] = 0
        self.switch.value[self.index[name]] = 1
        if self.form.rank == 0:
            return self.form.mesh.comm.allreduce(fem.assemble_scalar(self.form))
        if self.form.rank == 1:
            return fem.assemble_vector(self.form).array.copy()
        return fem.assemble_matrix(self.form).data.copy()


def turn(omega: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ω×a of rows of vectors."""
    if omega.ndim == 1:
        return np.cross(omega, a)
    return omega * np.stack([-a[..., 1], a[..., 0]], axis=-1)


def largest(a: np.ndarray, comm: MPI.Intracomm = MPI.COMM_WORLD) -> float:
    """Return the largest magnitude on all ranks."""
    return comm.allreduce(np.abs(a).max(initial=0.0), op=MPI.MAX)


@pytest.mark.parametrize("case", CASES)
def test_residuals_agree(case: str) -> None:
    """All formalisms agree at random states and motions, also for single parts of the state."""
    s = Setting(*CASES[case])
    assemble = Switched(s.mesh, s.residuals())
    for seed, only in enumerate(
        (("u", "u_dot", "u_ddot"), ("u", "u_dot", "u_ddot"), (), ("u",), ("u_dot",), ("u_ddot",))
    ):
        s.randomize(seed, only)
        reference = assemble("named forms")
        size = largest(reference)
        assert size > 1e-3
        for name in NAMES[1:]:
            assert largest(assemble(name) - reference) < 1e-12 * size, name
        momenta = assemble("momenta")
        assert largest(momenta - assemble("mass times π")) < 1e-12 * largest(momenta)
        assert largest(assemble("u̇ = ∂H/∂p")) < 1e-12 * largest(momenta)

    rates = s.state["u_dot"].x.array
    for name in NAMES:  # the terms with u̇ are Coriolis terms, which do no work
        s.randomize(7, ())
        without_rates = assemble(name)
        s.randomize(7, ("u_dot",))
        power = (assemble(name) - without_rates) * rates
        assert abs(s.comm.allreduce(power.sum())) < 1e-13 * s.comm.allreduce(np.abs(power).sum())


@pytest.mark.parametrize("case", ["plane stress", "space"])
def test_matrices_agree(case: str) -> None:
    s = Setting(*CASES[case], degree=1)
    names = NAMES[:-1]  # without Hamilton's, whose residual depends on π and not on u̇ and ü
    residuals = {name: form for name, form in s.residuals().items() if name in names}
    kinds = ("mass", "damping", "stiffness")
    parts = {
        f"{kind} {name}": getattr(formalisms.linear_parts(residual, s.body, s.trial), kind)
        for name, residual in residuals.items()
        for kind in kinds
    }
    body, u, v = s.body, s.trial, s.v
    parts |= {
        "mass by hand": forms.mass(u, v, body.density),
        "damping by hand": forms.coriolis(u, v, body.density, body.omega),
        "stiffness by hand": forms.centrifugal_stiffness(u, v, body.density, body.omega)
        + forms.euler_stiffness(u, v, body.density, body.alpha)
        + forms.elastic_stiffness(u, v, body.material, plane=body.plane, thickness=body.thickness),
    }
    assemble = Switched(s.mesh, parts)
    for kind in kinds:
        reference = assemble(f"{kind} by hand")
        for name in names:
            difference = assemble(f"{kind} {name}") - reference
            assert largest(difference) < 1e-12 * largest(reference), (kind, name)


@pytest.mark.parametrize("dim", [2, 3])
def test_acceleration_is_that_of_the_absolute_position(dim: int) -> None:
    """The second derivative of R + A(x+u) in time, in global components, turned to the frame."""
    s = Setting(dim, "strain", degree=1)
    t = ufl.variable(fem.Constant(s.mesh, 0.0))
    angles = (0.4 + 0.9 * t - 1.3 * t**2, -0.7 + 0.5 * t + 0.8 * t**2, 1.1 - 0.6 * t + 0.3 * t**2)

    def plane_rotation(angle: ufl.core.expr.Expr, axis: int) -> ufl.core.expr.Expr:
        i, j = ((1, 2), (2, 0), (0, 1))[axis]
        rows = [[float(k == m) for m in range(3)] for k in range(3)]
        rows[i][i] = rows[j][j] = ufl.cos(angle)
        rows[i][j], rows[j][i] = -ufl.sin(angle), ufl.sin(angle)
        return ufl.as_matrix([row[:dim] for row in rows[:dim]])

    A = plane_rotation(angles[0], 2)
    for axis in (0, 1) if dim == 3 else ():
        A = A * plane_rotation(angles[axis + 1], axis)
    origin = ufl.as_vector([ufl.sin(t), t - 2 * t**2, ufl.exp(-t)][:dim])
    spin = A.T * ufl.diff(A, t)
    if dim == 3:
        omega = ufl.as_vector([spin[2, 1], spin[0, 2], spin[1, 0]])
    else:
        omega = spin[1, 0]
    u, u_dot, u_ddot = s.state.values()
    point = origin + A * (ufl.SpatialCoordinate(s.mesh) + u + t * u_dot + t**2 / 2 * u_ddot)
    velocity = ufl.diff(point, t)
    body = MovingBody(
        u,
        u_dot,
        u_ddot,
        material=s.body.material,
        omega=omega,
        alpha=ufl.diff(omega, t),
        velocity=A.T * ufl.diff(origin, t),
        acceleration=A.T * ufl.diff(ufl.diff(origin, t), t),
    )
    numbers = Switched(
        s.mesh,
        {
            name: ufl.inner(a, a) * ufl.dx(degree=2)
            for name, a in {
                "velocity": A.T * velocity,
                "its difference": A.T * velocity - formalisms.velocity(body),
                "acceleration": A.T * ufl.diff(velocity, t),
                "their difference": A.T * ufl.diff(velocity, t) - formalisms.acceleration(body),
            }.items()
        },
    )
    assert numbers("its difference") < 1e-28 * numbers("velocity")
    assert numbers("their difference") < 1e-28 * numbers("acceleration")


def test_hamiltonian_and_its_first_order_system() -> None:
    """H is Jacobi's integral; its canonical equations have the spectrum of Lagrange's equations."""
    s = Setting(2, "stress", degree=1, comm=MPI.COMM_SELF)
    body, v, w = s.body, s.v, s.trial
    s.constants["alpha"].value[...] = 0.0
    s.set_momenta()
    H = formalisms.hamiltonian(body, s.pi)
    # Jacobi's integral: relative kinetic energy less that of the carried body, plus potentials
    carried = body.velocity + forms.cross(body.omega, body.x + body.u)
    moving, carrying = (ufl.inner(a, a) * body.density / 2 * ufl.dx for a in (body.u_dot, carried))
    numbers = Switched(
        s.mesh,
        {"H": H, "Jacobi": moving - carrying + body.strain_energy() - body.load_power(body.u)},
    )
    assert numbers("H") == pytest.approx(numbers("Jacobi"), rel=1e-12)

    canonical = formalisms.hamilton(body, s.pi, s.pi_dot, v)
    vectors = Switched(
        s.mesh,
        {
            "∂H/∂π": ufl.derivative(H, s.pi, v),
            "mass u̇": forms.mass(body.u_dot, v, body.density) - canonical.displacement,
            "∂H/∂u": ufl.derivative(H, body.u, v),
            "-mass π̇": canonical.momentum - forms.mass(s.pi_dot, v, body.density),
        },
    )
    for left, right in (("∂H/∂π", "mass u̇"), ("∂H/∂u", "-mass π̇")):
        assert np.abs(vectors(left) - vectors(right)).max() < 1e-12 * np.abs(vectors(left)).max()

    lagrange = formalisms.linear_parts(formalisms.lagrange(body, v), body, w)
    matrices = Switched(
        s.mesh,
        {
            "M": lagrange.mass,
            "C": lagrange.damping,
            "K": lagrange.stiffness,
            "u̇u": ufl.derivative(canonical.displacement, body.u, w),
            "u̇π": ufl.derivative(canonical.displacement, s.pi, w),
            "π̇u": ufl.derivative(canonical.momentum, body.u, w),
            "π̇π": ufl.derivative(canonical.momentum, s.pi, w),
        },
    )

    def dense(name: str) -> np.ndarray:
        matrices(name)
        return fem.assemble_matrix(matrices.form).to_dense()

    M, zero = dense("M"), np.zeros_like(dense("M"))
    first = np.block([[dense("u̇u"), dense("u̇π")], [dense("π̇u"), dense("π̇π")]])
    hamilton = scipy.linalg.eigvals(-first, scipy.linalg.block_diag(M, M))
    second = np.block([[zero, np.eye(len(M))], [-dense("K"), -dense("C")]])
    second = scipy.linalg.eigvals(second, scipy.linalg.block_diag(np.eye(len(M)), M))
    size = np.abs(second).max()
    # The zeros of the characteristic polynomial, whichever order a solver gives them in.
    for value in second:
        assert np.abs(hamilton - value).min() < 1e-6 * size  # double roots: √ε
    assert (hamilton**2).sum() == pytest.approx((second**2).sum(), rel=1e-12)
    assert (hamilton**4).sum() == pytest.approx((second**4).sum(), rel=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_maggi_rows_of_the_frame_are_resultant_and_moment(dim: int) -> None:
    """Columns (e, 0, 0) and (0, e, 0) of (V, ω, u̇) give the resultant and moment of all loads."""
    s = Setting(dim, "strain", degree=1)
    body = s.body
    origin, omega = (fem.Constant(s.mesh, 0 * s.constants[n].value) for n in ("velocity", "omega"))
    rigid = origin + forms.cross(omega, body.x + body.u)
    rho = body.density
    by_hand = (
        forms.mass(body.u_ddot, rigid, rho)
        + forms.coriolis(body.u_dot, rigid, rho, body.omega)
        + forms.centrifugal_stiffness(body.x + body.u, rigid, rho, body.omega)
        + forms.euler_stiffness(body.x + body.u, rigid, rho, body.alpha)
        + forms.mass(body.acceleration, rigid, rho)
        - forms.mass(body.gravity, rigid, rho)
        - forms.traction_load(rigid, body.traction)
    )
    column = VirtualVelocities(origin=origin, omega=omega)
    rows = Switched(s.mesh, {"Maggi": formalisms.maggi(body, column), "by hand": by_hand})
    for constant in (origin, omega):
        for unit in np.eye(max(1, constant.value.size)):
            constant.value[...] = unit.reshape(constant.value.shape)
            assert abs(rows("by hand")) > 1e-3
            assert rows("Maggi") == pytest.approx(rows("by hand"), rel=1e-12)
        constant.value[...] = 0


def test_columns_satisfy_the_velocity_constraints() -> None:
    """A E = 0 for a driven frame, and for a hinge with a free angle."""
    s = Setting(3, "strain", degree=1)
    n = ufl.as_vector([0.6, 0.0, 0.8])

    def driven(origin, omega, u_dot):  # type: ignore[no-untyped-def]
        return ufl.as_vector([*(origin - s.body.velocity), *(omega - s.body.omega)])

    def hinge(origin, omega, u_dot):  # type: ignore[no-untyped-def]
        across = omega - ufl.dot(omega, n) * n
        return ufl.as_vector([*(origin - s.body.velocity), *across])

    columns = {"elastic": VirtualVelocities(s.pi), "angle": VirtualVelocities(omega=n)}
    rates = {
        f"{kind} {name}": formalisms.constrained_rate(s.body, constraint, column)
        for kind, constraint in (("driven", driven), ("hinge", hinge))
        for name, column in columns.items()
    }
    squares = {k: ufl.inner(rate, rate) * ufl.dx(s.mesh) for k, rate in rates.items()}
    numbers = Switched(s.mesh, squares)
    assert numbers("driven elastic") == numbers("hinge elastic") == 0
    assert numbers("hinge angle") < 1e-30 < 1e-3 < numbers("driven angle")


def test_maggi_eliminates_the_reactions_of_a_joint() -> None:
    """One end of the deformable body is clamped to its frame, the other one hangs on a hinge.

    Constraints: u̇ = 0 at the left edge, and the mean point of the right edge is at rest,
    V + ω×c + ċ = 0. Lagrange's expressions with multipliers and Maggi's projection give the same
    accelerations, and the joint does no work: the energy stays.
    """
    s = Setting(2, "stress", degree=1, comm=MPI.COMM_SELF)
    for name in ("gravity", "traction"):
        s.constants[name].value[...] = 0.0
    body, n = s.body, s.V.dofmap.index_map.size_global * 2
    origin, omega = fem.Constant(s.mesh, np.zeros(2)), fem.Constant(s.mesh, 0.0)
    elastic = fem.form(formalisms.maggi(body, VirtualVelocities(s.v)))
    frame = fem.form(formalisms.maggi(body, VirtualVelocities(origin=origin, omega=omega)))
    right = mesh.locate_entities_boundary(s.mesh, 1, lambda x: np.isclose(x[0], 0.9))
    tags = mesh.meshtags(s.mesh, 1, np.sort(right), np.full(len(right), 1, dtype=np.int32))
    edge = ufl.Measure("ds", s.mesh, subdomain_data=tags)(1)
    mean = np.zeros((2, n))  # row i: the mean of component i on the edge, of length 0.5
    b = fem.assemble_vector(fem.form(ufl.inner(ufl.as_vector([1.0, 1.0]), s.v) * edge)).array / 0.5
    for i in range(2):
        mean[i, i::2] = b[i::2]
    left = fem.locate_dofs_geometrical(s.V, lambda x: np.isclose(x[0], -0.3))
    held = (2 * left[:, None] + np.arange(2)).ravel()
    free = np.setdiff1d(np.arange(n), held)

    for name in ("u", "u_dot"):
        s.state[name].x.array[held] = 0
    rate = float(s.constants["omega"].value)
    c = mean @ (s.x.x.array + s.state["u"].x.array)
    c_dot = mean @ s.state["u_dot"].x.array
    s.constants["velocity"].value[:] = -turn(np.array(rate), c) - c_dot

    def rows(accelerations: np.ndarray) -> np.ndarray:
        """Return Lagrange's expressions for V, ω and u̇ with the accelerations a₀, α and ü."""
        s.constants["acceleration"].value[:] = accelerations[:2]
        s.constants["alpha"].value[...] = accelerations[2]
        s.state["u_ddot"].x.array[:] = accelerations[3:]
        result = []
        for unit in np.eye(3):
            origin.value[:], omega.value[...] = unit[:2], unit[2]
            result.append(fem.assemble_scalar(frame))
        return np.concatenate([result, fem.assemble_vector(elastic).array])

    force = rows(np.zeros(n + 3))
    mass = np.array([rows(unit) - force for unit in np.eye(n + 3)]).T
    assert np.abs(mass - mass.T).max() < 1e-12 * np.abs(mass).max()

    lever = turn(np.array(1.0), c)
    joint = np.hstack([np.eye(2), lever[:, None], mean])
    clamp = np.hstack([np.zeros((len(held), 3)), np.eye(n)[held]])
    A = np.vstack([joint, clamp])
    velocity_terms = -(rate**2) * c + 2 * turn(np.array(rate), c_dot)
    right_side = np.concatenate([-velocity_terms, np.zeros(len(held))])

    E = np.zeros((n + 3, 1 + len(free)))  # columns: the angle and the free elastic velocities
    E[2, 0], E[:2, 0] = 1, -lever
    E[3 + free, 1 + np.arange(len(free))], E[:2, 1:] = 1, -mean[:, free]
    assert np.abs(A @ E).max() < 1e-15
    particular = np.concatenate([-velocity_terms, np.zeros(n + 1)])  # A particular = right_side
    independent = np.linalg.solve(E.T @ mass @ E, -E.T @ (force + mass @ particular))
    maggi = particular + E @ independent

    saddle = np.block([[mass, A.T], [A, np.zeros((len(A), len(A)))]])
    solution = np.linalg.lstsq(saddle, np.concatenate([-force, right_side]))[0]
    assert np.abs(A @ maggi - right_side).max() < 1e-12 * np.abs(maggi).max()
    assert np.abs(solution[: n + 3] - maggi).max() < 1e-9 * np.abs(maggi).max()

    rows(maggi)
    v, a = formalisms.velocity(body), formalisms.acceleration(body)
    kinetic = body.density * ufl.inner(v, a) * ufl.dx
    elastic_power = ufl.derivative(body.strain_energy(), body.u, body.u_dot)
    numbers = Switched(s.mesh, {"kinetic": kinetic, "elastic": elastic_power})
    assert abs(numbers("elastic")) > 1e-3
    assert numbers("kinetic") == pytest.approx(-numbers("elastic"), rel=1e-10)


def test_load_is_the_residual_at_rest() -> None:
    """The load does not depend on the state, and is minus the residual at u = u̇ = ü = 0."""
    s = Setting(dim=2, plane="strain", degree=1)
    for form in (formalisms.lagrange(s.body, s.v), formalisms.kane(s.body, s.v)):
        load = fem.assemble_vector(
            fem.form(formalisms.linear_parts(form, s.body, s.trial).load)
        ).array
        s.randomize(seed=7, only=())  # the same motion with the state zero
        rest = fem.assemble_vector(fem.form(formalisms.named_forms(s.body, s.v))).array
        s.randomize(seed=7)  # the state for the next form
        assert largest(load + rest) < 1e-12 * largest(rest)


def test_arguments_that_do_not_fit_are_errors() -> None:
    s = Setting(dim=2, plane="strain", degree=1)
    arguments = s.state | s.constants | {"material": s.body.material}
    for argument, value, expected in (
        ("omega", (1.0, 2.0, 3.0), "scalar"),
        ("gravity", (0.0, 0.0, -9.81), "of shape (2,)"),
        ("u_dot", ufl.as_vector([0.0, 1.0]), "a function"),
        ("u", fem.Constant(s.mesh, np.zeros(2)), "a function"),
        ("u", fem.Function(s.V.sub(0).collapse()[0]), "of shape (2,) or of shape (3,)"),
        ("plane", "both", "one of"),
    ):
        with pytest.raises(InputError) as error:
            MovingBody(**arguments | {argument: value})
        assert error.value.argument == argument
        assert expected in (error.value.expected or "")
    with pytest.raises(InputError) as error:
        formalisms.maggi(s.body, VirtualVelocities())  # a column without any velocity
    assert error.value.argument == "column"
    with pytest.raises(InputError) as error:
        formalisms.constrained_rate(s.body, lambda v, w, u: v, VirtualVelocities())
    assert error.value.argument == "column"
