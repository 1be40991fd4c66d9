"""A rotating bar, from the UFL forms of `dolfinx_mbd` in a plain DOLFINx script.

Clamped and free, spinning steadily and speeding up, against closed forms; then the same operators
once more, by differentiating the kinetic energy. Runs in seconds, also under `mpirun -n 2`.
"""

# # A rotating bar
#
# A body deforms by a displacement $u$ while its frame turns with the angular velocity $\omega$ and
# the angular acceleration $\alpha$. Seen from the frame, a point $x$ of it has the acceleration
#
# $$
# a_0 + \alpha\times(x+u) + \omega\times(\omega\times(x+u)) + 2\,\omega\times\dot u + \ddot u .
# $$
#
# `dolfinx_mbd.forms` has one UFL form for each term. This script uses them as any other UFL form:
# nothing else of the package takes part.

# +
from __future__ import annotations

import sys

import numpy as np
import ufl
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd import forms

comm = MPI.COMM_WORLD
# -

# ## The bar
#
# A square bar of length $L$ and side $b$, along $x$. The closed forms below are those of a beam,
# so it is slender, and Poisson's ratio is zero: then the mean axial stress of a section is $E$
# times the slope of its mean displacement, and the bar in tension is one-dimensional exactly.
# Hexahedra of second order bend without locking.

# +
length, side = 1.0, 0.02
material = forms.Material(young=210e9, poisson=0.0, density=7850.0, name="steel without Poisson")
rho = material.density

bar = mesh.create_box(
    comm,
    [np.array([0.0, -side / 2, -side / 2]), np.array([length, side / 2, side / 2])],
    [80, 2, 2],
    cell_type=mesh.CellType.hexahedron,
)
V = fem.functionspace(bar, ("Lagrange", 2, (3,)))
u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
x = ufl.SpatialCoordinate(bar)
# -

# $\omega$, $\alpha$ and a shift of the axis are `Constant`s: each form is compiled once, and new
# values only need a new assembly. The displacement at rest in the turning frame
# follows from
#
# $$
# \int \sigma(u):\varepsilon(v) = -\int\rho\,(\alpha\times x + \omega\times(\omega\times x))\cdot v,
# $$
#
# where $x$ is measured from the axis of rotation.

# +
omega = fem.Constant(bar, np.zeros(3))
alpha = fem.Constant(bar, np.zeros(3))
axis = fem.Constant(bar, np.zeros(3))

stiffness = fem.form(forms.elastic_stiffness(u, v, material))
load = fem.form(
    forms.centrifugal_load(v, rho, omega, x=x - axis) + forms.euler_load(v, rho, alpha, x=x - axis)
)


def solve(bcs: list[fem.DirichletBC]) -> fem.Function:
    """Static displacement under the load of the present omega, alpha and axis."""
    A = petsc.assemble_matrix(stiffness, bcs)
    A.assemble()
    b = petsc.assemble_vector(load)
    petsc.apply_lifting(b, [stiffness], [bcs])
    b.ghostUpdate(PETSc.InsertMode.ADD, PETSc.ScatterMode.REVERSE)
    petsc.set_bc(b, bcs)
    ksp = PETSc.KSP().create(comm)
    ksp.setErrorIfNotConverged(True)
    ksp.setOperators(A)
    ksp.setType("preonly")
    pc = ksp.getPC()
    pc.setType("lu")
    pc.setFactorSolverType("mumps")
    pc.setFactorSetUpSolverType()
    pc.getFactorMatrix().setMumpsIcntl(14, 100)  # room enough for any number of ranks
    uh = fem.Function(V)
    ksp.solve(b, uh.x.petsc_vec)
    uh.x.scatter_forward()
    for thing in (ksp, A, b):
        thing.destroy()
    return uh


end = mesh.locate_entities_boundary(bar, 2, lambda p: np.isclose(p[0], length))
root = mesh.locate_entities_boundary(bar, 2, lambda p: np.isclose(p[0], 0.0))
ends = mesh.meshtags(bar, 2, np.sort(end), np.full(len(end), 1, dtype=np.int32))
ds_end = ufl.Measure("ds", domain=bar, subdomain_data=ends, subdomain_id=1)


def at_end(uh: fem.Function, component: int) -> float:
    """Mean displacement of the end face x = L."""
    area = comm.allreduce(fem.assemble_scalar(fem.form(1.0 * ds_end)))
    return comm.allreduce(fem.assemble_scalar(fem.form(uh[component] * ds_end))) / area


clamp = [fem.dirichletbc(np.zeros(3), fem.locate_dofs_topological(V, 2, root), V)]
checks: list[tuple[str, float, float, float]] = []  # what, computed, expected, relative tolerance
# -

# ## Clamped at the axis, spinning
#
# The tension at $x$ is the centrifugal force of what lies outside, and its strain adds up to
# $u(L) = \rho\Omega^2L^3/3E$, with $u = \rho\Omega^2 (L^2x - x^3/3)/2E$. Finite elements
# in one dimension are exact at their end nodes, and so is the mean of the end face here. The spin
# about $z$ also pulls the bar apart across its width, by $\rho\Omega^2y$; with $\nu=0$ that has no
# part in the mean. What remains is round-off: $10^{-16}$ times the condition of the stiffness,
# about $(L/b)^4$ times the square of the number of elements across, $10^{7}$. Tolerance: $10^{-8}$.

# +
spin = 100.0
omega.value[:] = (0.0, 0.0, spin)
expected = rho * spin**2 * length**3 / (3 * material.young)
checks.append(("clamped, spinning:  u(L)", at_end(solve(clamp), 0), expected, 1e-8))
# -

# ## Free, spinning about its centre
#
# Each half is such a bar of length $L/2$: $u(L/2) = \rho\Omega^2L^3/24E$ outwards, on either side.
# Nothing has to hold the bar, since its load has neither resultant nor moment. To make the matrix
# regular, six components at three nodes of the middle section keep it from moving as a whole, and
# carry no force.

# +
axis.value[:] = (length / 2, 0.0, 0.0)


def pin(point: tuple[float, float, float], components: str) -> list[fem.DirichletBC]:
    """Hold some components of the displacement of the node at a point."""
    bcs = []
    for component in ("xyz".index(c) for c in components):
        sub = V.sub(component)
        scalar, _ = sub.collapse()
        dofs = fem.locate_dofs_geometrical(
            (sub, scalar), lambda p: np.isclose(p.T, point, atol=1e-9).all(axis=1)
        )
        bcs.append(fem.dirichletbc(fem.Function(scalar), dofs, sub))
    return bcs


middle = length / 2
held = (
    pin((middle, 0.0, 0.0), "xyz")
    + pin((middle, side / 2, 0.0), "xz")
    + pin((middle, 0.0, side / 2), "x")
)
expected = rho * spin**2 * length**3 / (24 * material.young)
checks.append(("free, spinning:     u(L/2)", at_end(solve(held), 0), expected, 1e-8))
# -

# ## Clamped, speeding up
#
# With $\omega = 0$ and $\alpha$ about $z$ the load is $-\rho\alpha x$ across the bar, a triangle
# that bends it backwards by $w(L) = 11\,\rho A\alpha L^5/120EI = 1.1\,\rho\alpha L^5/Eb^2$.
#
# A solid is a little softer. It shears, by $\int_0^L Q\,dx/\kappa GA = 0.8\,\rho\alpha L^3/E$ with
# $Q = \rho A\alpha(L^2-x^2)/2$, $G = E/2$ and $\kappa = 5/6$; and its sections have an inertia
# of their own, a couple $\rho I\alpha$ per length, which adds $\rho\alpha L^3/3E$. Both are of the
# order $(b/L)^2$: the deflection is $1 + 1.030\,(b/L)^2$ times the beam's, 4.1e-4 more here. So the
# tolerance is 1e-3 for Bernoulli's beam and 2e-5 for the beam with both terms, where what remains
# is the mesh: 27e-6 with 40 elements, 5e-6 with these 80, 0.2e-6 with 160 and four across.

# +
axis.value[:] = 0.0
omega.value[:] = 0.0
alpha.value[:] = (0.0, 0.0, 10.0)
area, inertia = side**2, side**4 / 12
expected = -11 * rho * area * 10.0 * length**5 / (120 * material.young * inertia)
deflection = at_end(solve(clamp), 1)
checks.append(("clamped, speeding up: w(L)", deflection, expected, 1e-3))
expected *= 1 + (0.8 + 1 / 3) / 1.1 * (side / length) ** 2
checks.append(("  with shear and rotary inertia", deflection, expected, 2e-5))
# -

# ## The same operators from the kinetic energy
#
# In body components a point has the velocity $V + \omega\times(x+u) + \dot u$, with the velocity
# $V$ of the frame's origin. Lagrange's equations take the kinetic energy density
# $T = \tfrac12\rho|V + \omega\times(x+u) + \dot u|^2$ and form
#
# $$
# \frac{d}{dt}\frac{\partial T}{\partial\dot u} - \frac{\partial T}{\partial u} .
# $$
#
# UFL does both derivatives. The one in time is the chain rule along
# $(\dot u, \ddot u, \dot\omega, \dot V)$, with $\dot\omega=\alpha$ and
# $\dot V = a_0 - \omega\times V$: the components of $V$ also change because the axes turn.

# +
velocity = fem.Constant(bar, np.array([3.0, -1.0, 2.0]))
acceleration = fem.Constant(bar, np.array([-20.0, 50.0, 9.81]))
omega.value[:] = (4.0, -3.0, 5.0)
alpha.value[:] = (-7.0, 6.0, 8.0)

state = []
for scale in (1.0, 10.0, 100.0):  # some u, du/dt and d²u/dt², the same on any number of ranks
    f = fem.Function(V)
    f.interpolate(
        lambda p, s=scale: s * np.stack([np.sin(3 * p[0] + s), p[0] * p[1] * s, np.cos(s * p[0])])
    )
    state.append(f)
q, q_dot, q_ddot = state

Q, Q_DOT, OMEGA, VELOCITY = map(ufl.variable, (q, q_dot, omega, velocity))
point_velocity = VELOCITY + forms.cross(OMEGA, x + Q) + Q_DOT
energy = rho / 2 * ufl.inner(point_velocity, point_velocity)
momentum = ufl.diff(energy, Q_DOT)
momentum_rate = (
    ufl.dot(ufl.diff(momentum, Q), q_dot)
    + ufl.dot(ufl.diff(momentum, Q_DOT), q_ddot)
    + ufl.dot(ufl.diff(momentum, OMEGA), alpha)
    + ufl.dot(ufl.diff(momentum, VELOCITY), acceleration - ufl.cross(omega, velocity))
)
lagrange = ufl.inner(momentum_rate - ufl.diff(energy, Q), v) * ufl.dx

by_name = (
    forms.mass(q_ddot, v, rho)
    + forms.coriolis(q_dot, v, rho, omega)
    + forms.centrifugal_stiffness(q, v, rho, omega)
    + forms.euler_stiffness(q, v, rho, alpha)
    - forms.translational_load(v, rho, acceleration)
    - forms.euler_load(v, rho, alpha)
    - forms.centrifugal_load(v, rho, omega)
)
# -

# Their values agree to round-off at this state, and so do their derivatives, the matrices of mass,
# Coriolis, and centrifugal and Euler stiffness.

# +


def norm(form: ufl.Form) -> float:
    """Norm of an assembled vector or matrix."""
    if len(form.arguments()) == 1:
        assembled = petsc.assemble_vector(fem.form(form))
        assembled.ghostUpdate(PETSc.InsertMode.ADD, PETSc.ScatterMode.REVERSE)
    else:
        assembled = petsc.assemble_matrix(fem.form(form))
        assembled.assemble()
    value = assembled.norm()
    assembled.destroy()
    return value


def compare(what: str, derived: ufl.Form, named: ufl.Form) -> None:
    """The norm of the difference in relation to the norm of the form must vanish."""
    checks.append((what, norm(derived - named) / norm(named), 0.0, 1e-12))


compare("Lagrange, residual", lagrange, by_name)
compare("Lagrange, mass", ufl.derivative(lagrange, q_ddot, u), forms.mass(u, v, rho))
compare("Lagrange, Coriolis", ufl.derivative(lagrange, q_dot, u), forms.coriolis(u, v, rho, omega))
compare(
    "Lagrange, stiffness",
    ufl.derivative(lagrange, q, u),
    forms.centrifugal_stiffness(u, v, rho, omega) + forms.euler_stiffness(u, v, rho, alpha),
)
# -

# ## Results
#
# The differences of forms are sums of some hundred products in double precision in other orders,
# hence 1e-12.

# +
failed = 0
for what, computed, reference, tolerance in checks:
    error = abs(computed - reference) / (abs(reference) or 1.0)
    failed += not error <= tolerance
    if comm.rank == 0:
        verdict = "ok" if error <= tolerance else "FAILED"
        print(
            f"{what:32s} {computed: .9e}  expected {reference: .9e}  "
            f"error {error:.1e} (tolerance {tolerance:.0e}) {verdict}"
        )
if failed:
    sys.exit(f"{failed} of {len(checks)} checks failed")
