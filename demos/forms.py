"""A rotating bar, from the UFL forms of the package in your own DOLFINx script.

You assemble and solve with DOLFINx alone, compare a spinning bar with closed forms, and derive the
same operators from the kinetic energy. Runs in seconds, on one rank and under `mpirun -n 2`.
"""

# # Forms in your own script
#
# A body deforms by a displacement $u$ while its frame has the angular velocity $\omega$ and the
# angular acceleration $\alpha$. Seen from the frame, its point $x$ has the acceleration
#
# $$a_0 + \alpha\times(x+u) + \omega\times(\omega\times(x+u)) + 2\,\omega\times\dot u + \ddot u.$$
#
# `dolfinx_mbd.forms` has a UFL form for each term. You use them like any other UFL form.

# +
from __future__ import annotations

import numpy as np
import ufl
from dolfinx import fem, la
from mpi4py import MPI

from dolfinx_mbd import forms, tutorials
from dolfinx_mbd.tutorials import check, check_close

comm = MPI.COMM_WORLD
length, side = 1.0, 0.02
material = forms.Material(young=210e9, poisson=0.0, density=7850.0)
E, rho = material.young, material.density
bar = tutorials.tagged_bar((length, side, side), (80, 2, 2), ("root", "tip"))
V = fem.functionspace(bar.mesh, ("Lagrange", 2, (3,)))
u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(bar.mesh)
# -

# ## The problem
#
# $\omega$, $\alpha$ and a shift of the axis are `Constant`s, so that each form is compiled once. In
# a frame that turns steadily the bar is at rest with the displacement from
#
# $$\int\sigma(u):\varepsilon(v)=-\int\rho\,(\alpha\times x+\omega\times(\omega\times x))\cdot v.$$

# +
omega, alpha, axis = (fem.Constant(bar.mesh, np.zeros(3)) for _ in range(3))
stiffness = fem.form(forms.elastic_stiffness(u, v, material))
loads = forms.centrifugal_load(v, rho, omega, x=x - axis)
loads += forms.euler_load(v, rho, alpha, x=x - axis)
load = fem.form(loads)
ds_tip = ufl.Measure("ds", domain=bar.mesh, subdomain_data=bar.facet_tags, subdomain_id=2)
tip_area = fem.form(1.0 * ds_tip)


def at_tip(bcs: list[fem.DirichletBC]) -> np.ndarray:
    """Solve with the present constants, and return the mean displacement of the tip (3,), m."""
    uh = tutorials.solve(V, stiffness, load, bcs)  # as in any DOLFINx script
    sums = [fem.assemble_scalar(fem.form(uh[k] * ds_tip)) for k in range(3)]
    return comm.allreduce(np.array(sums)) / comm.allreduce(fem.assemble_scalar(tip_area))


held = fem.locate_dofs_topological(V, 2, bar.facets("root"))
clamp = [fem.dirichletbc(np.zeros(3), held, V)]
# -

# ## Spinning
#
# A bar clamped at the axis becomes longer by $u(L) = \rho\Omega^2L^3/3E$. Here Poisson's ratio is
# zero, so that finite elements give this value up to round-off. If the bar is free and spins
# about its middle, each half is such a bar: the bar then becomes longer by $\rho\Omega^2L^3/12E$.
# The clamped bar has this elongation, too, if the axis of rotation is in the middle of the bar.

# +
spin = 100.0
omega.value[:] = (0.0, 0.0, spin)
whole = rho * spin**2 * length**3 / E
check_close("clamped at the axis, spinning: u(L)", at_tip(clamp)[0], whole / 3, 1e-8, "m")
axis.value[:] = (length / 2, 0.0, 0.0)
check_close("spinning about its middle: elongation", at_tip(clamp)[0], whole / 12, 1e-8, "m")
# -

# ## Speeding up
#
# With $\alpha$ about z, the load $-\rho\alpha x$ bends the bar backwards by
# $w = 11\rho A\alpha L^5/120EI$. Shear and the inertia of the square sections with the side $b$ add
# the fraction $1.030\,(b/L)^2$. The remaining 5e-6 with 80 elements are the error of the mesh.

# +
omega.value[:], axis.value[:] = 0.0, 0.0
alpha.value[:] = (0.0, 0.0, 10.0)
beam = -11 * rho * side**2 * 10.0 * length**5 / (120 * E * side**4 / 12)
solid = beam * (1 + (0.8 + 1 / 3) / 1.1 * (side / length) ** 2)
deflection = at_tip(clamp)[1]
check_close("clamped, speeding up: w(L), beam", deflection, beam, 1e-3, "m")
check_close("clamped, speeding up: w(L), solid", deflection, solid, 2e-5, "m")
# -

# ## The same forms from the kinetic energy
#
# A point has the velocity $V+\omega\times(x+u)+\dot u$ in body components; $V$ is the velocity of
# the origin. UFL differentiates the kinetic energy density $T$ for you. In Lagrange's expression
# $\frac{d}{dt}\frac{\partial T}{\partial\dot u}-\frac{\partial T}{\partial u}$ the time derivative
# is the chain rule, with $\dot V = a_0-\omega\times V$ because the axes turn.

# +
velocity = fem.Constant(bar.mesh, np.array([3.0, -1.0, 2.0]))
acceleration = fem.Constant(bar.mesh, np.array([-20.0, 50.0, 9.81]))
omega.value[:], alpha.value[:] = (4.0, -3.0, 5.0), (-7.0, 6.0, 8.0)
q, q_dot, q_ddot = (fem.Function(V) for _ in range(3))
for f, s in ((q, 1.0), (q_dot, 10.0), (q_ddot, 100.0)):
    f.interpolate(
        lambda p, s=s: s * np.stack([np.sin(3 * p[0] + s), p[0] * p[1] * s, np.cos(s * p[0])])
    )
Q, Q_DOT, W, VEL = map(ufl.variable, (q, q_dot, omega, velocity))
point_velocity = VEL + forms.cross(W, x + Q) + Q_DOT
energy = rho / 2 * ufl.inner(point_velocity, point_velocity)
momentum = ufl.diff(energy, Q_DOT)
rates = (Q, q_dot), (Q_DOT, q_ddot), (W, alpha), (VEL, acceleration - ufl.cross(omega, velocity))
momentum_rate = sum(ufl.dot(ufl.diff(momentum, a), rate) for a, rate in rates)
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
rigid_spin = forms.centrifugal_stiffness(u, v, rho, omega) + forms.euler_stiffness(u, v, rho, alpha)


def norm(form: ufl.Form) -> float:
    """Return the norm of the assembled vector or matrix of a form."""
    if len(form.arguments()) == 2:
        A = fem.assemble_matrix(fem.form(form))
        A.scatter_reverse()
        return float(np.sqrt(A.squared_norm()))
    b = fem.assemble_vector(fem.form(form))
    b.scatter_reverse(la.InsertMode.add)
    return float(la.norm(b))


for what, derived, named in (
    ("residual", lagrange, by_name),
    ("mass matrix", ufl.derivative(lagrange, q_ddot, u), forms.mass(u, v, rho)),
    ("Coriolis matrix", ufl.derivative(lagrange, q_dot, u), forms.coriolis(u, v, rho, omega)),
    ("stiffness matrix", ufl.derivative(lagrange, q, u), rigid_spin),
):
    check(f"Lagrange and named forms, {what}", norm(derived - named) / norm(named), 0.0, 1e-12)
