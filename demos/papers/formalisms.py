"""One elastic body, five formalisms of mechanics: the same equations, and what each of them costs.

Lagrange, Gibbs-Appell, Kane, Maggi and Hamilton by automatic differentiation, in plane strain,
plane stress and space, beside the forms stated by hand; and the effect of misprints in a paper that
derives them on paper. Runs in seconds, on one rank and under `mpirun -n 2`.
"""

# # Five formalisms
#
# An elastic body deforms by $u$ in a frame that moves as prescribed, with $V$, $a_0$, $\omega$ and
# $\alpha$ in body components. Its points have the velocity $v = V+\omega\times(x+u)+\dot u$ and the
# acceleration $a = \dot v+\omega\times v$, where the rate of the components follows the chain rule
# along $u\to\dot u\to\ddot u$, $\omega\to\alpha$ and $V\to a_0-\omega\times V$. From there:
#
# - Lagrange: with the kinetic energy $T=\frac12\int\rho\lvert v\rvert^2$, the strain energy $U$ and
#   the work $W$, $\frac{d}{dt}\frac{\partial T}{\partial\dot u}-\frac{\partial T}{\partial u} +
#   \frac{\partial(U-W)}{\partial u} = 0$;
# - Gibbs-Appell: with $R=\frac12\int\rho\lvert a\rvert^2-Q\cdot\ddot u$ and the generalized forces
#   $Q$ of stress and loads, $\partial R/\partial\ddot u=0$;
# - Kane: with $a$, $\sigma$ and partial velocities,
#   $\int\rho\,a\cdot\frac{\partial v}{\partial\dot u} +
#   \int\sigma:\frac{\partial\dot\varepsilon}{\partial\dot u}$ equals the same expression of the
#   loads;
# - Maggi: with $T(V,\omega,u,\dot u)$ and linear constraints $A\dot q+b=0$ of all velocities,
#   $E^T(\text{Lagrange's expressions}-Q)=0$ with $AE=0$; here $V$ and $\omega$ are prescribed;
# - Hamilton: with $H=p\cdot\dot u-T+U-W$ and $p=\partial T/\partial\dot u$,
#   $\dot u=\partial H/\partial p$ and $\dot p=-\partial H/\partial u$.
#
# The paper is Scutaru, Vlase, *Two-Dimensional Equivalent Models in the Analysis of a Multibody
# Elastic System Using the Finite Element Analysis*, Mathematics 11 (2023) 4149. `misprints.md`
# lists its misprints and those of a second paper.

# +
from __future__ import annotations

import re
import tempfile
import time
from typing import Any

import numpy as np
import ufl
from dolfinx import fem, la, mesh
from ffcx.compiler import compile_ufl_objects
from ffcx.options import get_options
from mpi4py import MPI
from ufl.algorithms import expand_derivatives
from ufl.corealg.traversal import unique_pre_traversal

from dolfinx_mbd import forms
from dolfinx_mbd.forms import formalisms
from dolfinx_mbd.tutorials import check, report

comm = MPI.COMM_WORLD
# -

# ## A body in some state
#
# All numbers are of the order of one, so that an error in any term is visible: with steel the
# elastic forces would be $10^{6}$ times the other terms. Hamilton's momenta are represented by a
# field $\pi$ with $p=\int\rho\,\pi\cdot v$; at the nodes, $\pi$ equals the absolute velocity.

# +


def turn(omega: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ω×a for rows of vectors, with a scalar ω in the plane."""
    if omega.ndim == 1:
        return np.cross(omega, a)
    return omega * np.stack([-a[..., 1], a[..., 0]], axis=-1)


class Example:
    """A rectangle or a box, its state and its motion: the same on any number of ranks."""

    def __init__(self, dim: int, plane: forms.Plane = "strain", cells: int = 2) -> None:
        create: Any = {2: mesh.create_rectangle, 3: mesh.create_box}[dim]
        corners = [np.array([-0.3, 0.2, 0.1][:dim]), np.array([0.9, 0.7, 0.4][:dim])]
        self.mesh = create(comm, corners, [cells] * dim)
        self.V = fem.functionspace(self.mesh, ("Lagrange", 2, (dim,)))
        self.v = ufl.TestFunction(self.V)
        rng = np.random.default_rng(2023)
        omega, alpha = (rng.normal(size=(3,) if dim == 3 else ()) for _ in range(2))
        v0, a0, g = (rng.normal(size=dim) for _ in range(3))
        x, u, u_dot, u_ddot, self.pi, self.pi_dot = (fem.Function(self.V) for _ in range(6))
        x.interpolate(lambda x: x[:dim])
        for f in (u, u_dot, u_ddot):
            m, phase = rng.normal(size=(dim, dim)), rng.normal(size=(dim, 1))
            f.interpolate(lambda x, m=m, phase=phase: np.sin(3 * m @ x[:dim] + phase))
        nodes = [f.x.array.reshape(-1, dim) for f in (x, u, u_dot, u_ddot)]
        points = nodes[0] + nodes[1]
        self.pi.x.array[:] = (v0 + turn(omega, points) + nodes[2]).ravel()
        turning = turn(alpha, points) + turn(omega, nodes[2])
        self.pi_dot.x.array[:] = (a0 - turn(omega, v0) + turning + nodes[3]).ravel()
        # ω, α, V and a₀ of the frame, and gravity
        w, e, v, a, g = (fem.Constant(self.mesh, value) for value in (omega, alpha, v0, a0, g))
        material = forms.Material(young=3.0, poisson=0.3, density=7.85)
        options: Any = {"plane": plane, "thickness": 0.4 if dim == 2 else 1.0, "gravity": g}
        self.body = formalisms.MovingBody(u, u_dot, u_ddot, material, w, e, v, a, **options)

    def residuals(self) -> dict[str, list[ufl.Form]]:
        """Return what vanishes by each formalism; Hamilton's are two."""
        body, v = self.body, self.v
        return {
            "named forms": [formalisms.named_forms(body, v)],
            "Lagrange": [formalisms.lagrange(body, v)],
            "Gibbs-Appell": [formalisms.gibbs_appell(body, v)],
            "Kane": [formalisms.kane(body, v)],
            "Maggi": [formalisms.maggi(body, formalisms.VirtualVelocities(v))],
            "Hamilton": list(formalisms.hamilton(body, self.pi, self.pi_dot, v)),
        }


def vectors(msh: mesh.Mesh, parts: list[ufl.Form]) -> list[np.ndarray]:
    """Return the owned entries of each form; all are compiled as one, with a switch for each."""
    switch = fem.Constant(msh, np.zeros(len(parts)))
    terms = [switch[i] * part for i, part in enumerate(parts)]
    compiled = fem.form(sum(terms[1:], terms[0]))
    result = []
    for unit in np.eye(len(parts)):
        switch.value[:] = unit
        b = fem.assemble_vector(compiled)
        b.scatter_reverse(la.InsertMode.add)
        result.append(b.array[: b.index_map.size_local * b.block_size].copy())
    return result


def largest(a: np.ndarray) -> float:
    """Return the greatest absolute value on all ranks."""
    return comm.allreduce(np.abs(a).max(initial=0.0), op=MPI.MAX)


def number(form: ufl.Form) -> float:
    """Return the value of a functional."""
    return comm.allreduce(fem.assemble_scalar(fem.form(form)))


# -

# ## The same equations
#
# The table lists the greatest difference between any two of the five formalisms and the named
# forms, over all entries of the residual, relative to its greatest entry. Hamilton's second
# equation is compared; the first, $\dot u=\partial H/\partial p$, must vanish by itself.

# +
cases: dict[str, tuple[int, forms.Plane]] = {
    "plane strain": (2, "strain"),
    "plane stress": (2, "stress"),
    "space": (3, "strain"),
}
for title, (dim, plane) in cases.items():
    example = Example(dim, plane)
    by_name = example.residuals()
    momenta = formalisms.momentum(example.body, example.v)
    whole = [parts[-1] for parts in by_name.values()] + [by_name["Hamilton"][0], momenta]
    *same, first, p = vectors(example.mesh, whole)
    size = largest(same[0])
    check(f"{title}: size of the residual", size, 0.1, np.inf)
    for name, values in list(zip(by_name, same, strict=True))[1:]:
        check(f"{title}: {name} and named forms", largest(values - same[0]) / size, 0.0, 1e-12)
    check(f"{title}: any two", largest(np.ptp(np.stack(same), axis=0)) / size, 0.0, 1e-12)
    check(f"{title}: Hamilton, u̇ = ∂H/∂p", largest(first) / largest(p), 0.0, 1e-12)
# -

# ## The equation of a joint's angle
#
# Maggi starts from all velocities of the free body, $\dot q=(V,\omega,\dot u)$. Another constraint
# therefore requires only another projection. Let a hinge hold the frame of a crank: $V$ is
# prescribed and the angle is free. The projection has the column $(0,1,0)$ besides the elastic
# ones, and its row is the torque of the drive. The same torque is the virtual work of the named
# forms in a rotation about z; centrifugal forces point away from the hinge.

# +
crank = Example(2, "stress")
body, rho = crank.body, crank.body.density
angle = formalisms.VirtualVelocities(omega=1.0)
about = forms.cross(1.0, body.x + body.u)
rigid = (
    forms.mass(body.u_ddot + body.acceleration, about, rho)
    + forms.coriolis(body.u_dot, about, rho, body.omega)
    + forms.euler_stiffness(body.x + body.u, about, rho, body.alpha)
    - forms.gravity_load(about, rho, body.gravity)
)


def hinge(origin: ufl.core.expr.Expr, *others: ufl.core.expr.Expr) -> ufl.core.expr.Expr:
    """Return the constraint of the velocities V, ω and u̇, which must vanish."""
    return origin - body.velocity


torque, by_hand = number(formalisms.maggi(body, angle)), number(rigid)
along = formalisms.constrained_rate(body, hinge, angle)  # A E of this column
check("hinge: torque by Maggi and by hand", abs(torque / by_hand - 1), 0.0, 1e-12)
check("hinge: the angle is free", number(ufl.inner(along, along) * ufl.dx(crank.mesh)), 0.0, 0.0)
# -

# ## What each costs
#
# In space, on tetrahedra of second order: the nodes of the expression as written and after UFL's
# differentiation; the floating-point operations of the generated kernel for a cell, counted in its
# C code; the seconds to derive, to compile without any cache, and to assemble once. The times are
# those of this machine.

# +


def operations(form: ufl.Form) -> int:
    """Return the arithmetic operations of a form's kernel for one cell."""
    texts: list[str] = []
    queue = [compile_ufl_objects([form], get_options({}))]
    while queue:  # the generated files, in whatever nesting this version returns them
        item = queue.pop()
        texts.append(item) if isinstance(item, str) else queue.extend(item)
    code = max(texts, key=len)
    total, loops, trips = 0, [], 1
    for line in map(str.strip, code.split("tabulate_tensor_", 1)[1].splitlines()):
        if loop := re.match(r"for \(int \w+ = 0; \w+ < (\d+);", line):
            trips = int(loop[1])
        elif line == "{":
            loops.append(trips)
            trips = 1
        elif line == "}" and loops:
            loops.pop()
        elif "=" in line and not line.startswith(("static", "//")):
            while "[" in line:
                line = re.sub(r"\[[^\[\]]*\]", "", line)
            total += len(re.findall(r"[*/]| [+-] |\+=", line)) * int(np.prod(loops))
    return total


def nodes(parts: list[ufl.Form]) -> int:
    """Return the number of nodes of all integrands."""
    integrals = [part for form in parts for part in form.integrals()]
    return sum(1 for part in integrals for _ in unique_pre_traversal(part.integrand()))


def best_seconds(compiled: fem.Form) -> float:
    """Return the least seconds of seven assemblies, on the slowest rank."""
    b = fem.assemble_vector(compiled)
    times = []
    for _ in range(7):
        b.array[:] = 0
        comm.Barrier()
        start = time.perf_counter()
        fem.assemble_vector(b.array, compiled)
        times.append(comm.allreduce(time.perf_counter() - start, op=MPI.MAX))
    return min(times)


report("\nin space        nodes  derived  operations  derive (s)  compile (s)  assemble (ms)")
solid = Example(3, cells=6)
count: dict[str, int] = {}
with tempfile.TemporaryDirectory() as folder:
    options = {"cache_dir": comm.bcast(folder)}  # an empty cache: everything is compiled here
    for name, parts in solid.residuals().items():
        start = time.perf_counter()
        derived = [expand_derivatives(form) for form in parts]
        derive, start = time.perf_counter() - start, time.perf_counter()
        compiled = [fem.form(form, jit_options=options) for form in parts]
        compilation = time.perf_counter() - start
        count[name] = sum(operations(form) for form in parts)
        milliseconds = 1e3 * sum(map(best_seconds, compiled))
        report(
            f"{name:<13}{nodes(parts):8d} {nodes(derived):8d} {count[name]:11d} {derive:11.3f} "
            f"{compilation:12.2f} {milliseconds:14.2f}"
        )
    comm.Barrier()
saved = 1 - count["Gibbs-Appell"] / count["Lagrange"]
check("Gibbs-Appell, share of operations saved", saved, 0.05, 1.0)
check("Kane over Gibbs-Appell, operations", count["Kane"] / count["Gibbs-Appell"], 0.0, 1.0)
# -

# The paper is right that Gibbs-Appell needs fewer differentiations, and less arithmetic, than
# Lagrange. But the saving is small, Kane saves as much, and the forms that are written by hand cost
# hardly more. In a simulation the costs do not matter: all five lead to $M\ddot u+C\dot u+Ku=f$,
# and the matrices are combinations of constant matrices.
#
# | formalism | good for |
# |---|---|
# | Lagrange | one scalar and no acceleration: easy to write down, energies included |
# | Gibbs-Appell | one differentiation; Gauss's least constraint, quasi-velocities, rolling |
# | Kane | no energy needed: follower forces, damping, control; the fewest operations here |
# | Maggi | joints and drives without multipliers; the equations of the frame itself |
# | Hamilton | first order, no factor 2 of Coriolis and no α; twice the unknowns |
# | named forms | term by term: each constant matrix is assembled once |
#
# ## The effect of misprints
#
# The table lists the changes of the residual, or of the elastic forces, due to five misprinted
# terms, as fractions of these quantities. The numbers of the equations are in brackets.

# +
flat = Example(2, "strain")
body, v, rho = flat.body, flat.v, flat.body.density
V0, w, E, nu = body.velocity, body.omega, body.material.young, body.material.poisson
eps = forms.strain(body.u)
printed_stress = E / (2 * (1 - nu)) * eps
for i in range(2):
    unit = ufl.as_matrix(np.outer(np.eye(2)[i], np.eye(2)[i]).tolist())
    printed_stress += (E / (1 - 2 * nu) - E / (2 * (1 - nu))) * eps[i, i] * unit
elastic_forms = (
    forms.elastic_stiffness(body.u, v, body.material, thickness=body.thickness),
    body.thickness * ufl.inner(printed_stress, forms.strain(v)) * ufl.dx,
)
terms = {
    "speed of the frame [11 to 51]": rho * w * (V0[0] * v[1] + V0[1] * v[0]) * ufl.dx,  # type: ignore[index]
    "sign of Coriolis [40]": 2 * forms.coriolis(body.u_dot, v, rho, w),
    "no centrifugal terms [46]": forms.centrifugal_stiffness(body.u + body.x, v, rho, w),
    "sign of the loads [40]": 2 * forms.gravity_load(v, rho, body.gravity),
}
residual, elastic, printed, *spurious = vectors(
    flat.mesh, [formalisms.named_forms(body, v), *elastic_forms, *terms.values()]
)


def norm(a: np.ndarray) -> float:
    """Return the norm of a distributed vector."""
    return float(np.sqrt(comm.allreduce(a @ a)))


for name, vector in zip(terms, spurious, strict=True):
    check(f"misprint: {name}", norm(vector) / norm(residual), 1e-2, np.inf)
check("misprint: plane strain [18]", norm(printed - elastic) / norm(elastic), 1e-2, np.inf)
# -
