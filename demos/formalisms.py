"""One elastic body, five formalisms of mechanics: the same equations, and what each of them costs.

Lagrange, Gibbs-Appell, Kane, Maggi and Hamilton by automatic differentiation, in plane strain,
plane stress and space, beside the forms stated by hand; and the misprints of two papers that derive
them on paper. Runs in seconds, also under `mpirun -n 2`.
"""

# # Five formalisms
#
# An elastic body deforms by $u$ in a frame that moves as prescribed, with $V$, $a_0$, $\omega$ and
# $\alpha$ in body components. Its points have the velocity $v = V + \omega\times(x+u) + \dot u$ and
# the acceleration $a = \dot v + \omega\times v$, where the rate of the components follows the chain
# rule along $u\to\dot u\to\ddot u$, $\omega\to\alpha$ and $V\to a_0-\omega\times V$. From there:
#
# - Lagrange: of the kinetic energy $T=\frac12\int\rho\lvert v\rvert^2$, the strain energy $U$ and
#   the work $W$, $\frac{d}{dt}\frac{\partial T}{\partial\dot u} - \frac{\partial T}{\partial u} +
#   \frac{\partial(U-W)}{\partial u} = 0$;
# - Gibbs-Appell: of $R=\frac12\int\rho\lvert a\rvert^2-Q\cdot\ddot u$, with the generalized forces
#   $Q$ of stress and loads, $\partial R/\partial\ddot u=0$;
# - Kane: of $a$, $\sigma$ and partial velocities,
#   $\int\rho\,a\cdot\frac{\partial v}{\partial\dot u} +
#   \int\sigma:\frac{\partial\dot\varepsilon}{\partial\dot u}$ = the same of the loads;
# - Maggi: of $T(V,\omega,u,\dot u)$ and linear constraints $A\dot q+b=0$ of all velocities,
#   $E^T(\text{Lagrange's expressions}-Q)=0$ with $AE=0$; here $V$ and $\omega$ are prescribed;
# - Hamilton: of $H=p\cdot\dot u-T+U-W$ with $p=\partial T/\partial\dot u$,
#   $\dot u=\partial H/\partial p$ and $\dot p=-\partial H/\partial u$.
#
# The papers are
#
# - *001*: Scutaru, Vlase, Two-Dimensional Equivalent Models in the Analysis of a Multibody Elastic
#   System Using the Finite Element Analysis, Mathematics 11 (2023) 4149;
# - *004*: Vlase, Finite Element Analysis of Flexible Multibody Systems. An Overview (2018).

# +
from __future__ import annotations

import re
import sys
import tempfile
import textwrap
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

comm = MPI.COMM_WORLD
checks: list[tuple[str, bool]] = []
NAMES = ("named forms", "Lagrange", "Gibbs-Appell", "Kane", "Maggi", "Hamilton")


def say(*lines: str) -> None:
    if comm.rank == 0:
        print(*lines, sep="\n")


# -

# ## A body in some state
#
# All numbers are of the order of one, so that no term hides behind another: with steel the elastic
# forces would be $10^{6}$ times the others. Hamilton's momenta are a field $\pi$ with
# $p=\int\rho\,\pi\cdot v$, set at the nodes to the absolute velocity, and $\dot\pi$ to the rate of
# its components.

# +


def turn(omega: np.ndarray, a: np.ndarray) -> np.ndarray:
    """ω×a of rows of vectors, with a scalar ω in the plane."""
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
        w, e, v, a = (fem.Constant(self.mesh, value) for value in (omega, alpha, v0, a0))
        self.body = formalisms.MovingBody(
            u,
            u_dot,
            u_ddot,
            forms.Material(young=3.0, poisson=0.3, density=7.85),
            w,
            e,
            v,
            a,
            plane=plane,
            thickness=0.4 if dim == 2 else 1.0,
            gravity=fem.Constant(self.mesh, g),
        )

    def residual(self, name: str) -> list[ufl.Form]:
        """What vanishes by a formalism; Hamilton's are two."""
        body, v = self.body, self.v
        match name:
            case "named forms":
                return [formalisms.named_forms(body, v)]
            case "Lagrange":
                return [formalisms.lagrange(body, v)]
            case "Gibbs-Appell":
                return [formalisms.gibbs_appell(body, v)]
            case "Kane":
                return [formalisms.kane(body, v)]
            case "Maggi":
                return [formalisms.maggi(body, formalisms.VirtualVelocities(v))]
        return list(formalisms.hamilton(body, self.pi, self.pi_dot, v))


def vectors(msh: mesh.Mesh, parts: list[ufl.Form]) -> list[np.ndarray]:
    """The owned entries of each form; all are compiled as one, with a switch for each."""
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
    return comm.allreduce(np.abs(a).max(initial=0.0), op=MPI.MAX)


# -

# ## The same equations
#
# The greatest difference between any two of the five and the named forms, over all entries of the
# residual, in relation to its greatest entry. Hamilton's second equation is compared; the first,
# $\dot u=\partial H/\partial p$, must vanish on its own.

# +
say("Greatest difference between any two, relative:")
for title, dim, plane in (
    ("plane strain", 2, "strain"),
    ("plane stress", 2, "stress"),
    ("space", 3, "strain"),
):
    example = Example(dim, plane)  # type: ignore[arg-type]
    by_name = {name: example.residual(name) for name in NAMES}
    momenta = formalisms.momentum(example.body, example.v)
    *same, first, p = vectors(
        example.mesh, [parts[-1] for parts in by_name.values()] + [by_name["Hamilton"][0], momenta]
    )
    size = largest(same[0])
    columns = [largest(r - same[0]) / size for r in same[1:]]
    spread = largest(np.ptp(np.stack(same), axis=0)) / size
    first_error = largest(first) / largest(p)
    if title == "plane strain":
        say(f"  {'':13s}" + "".join(f"{n:>14s}" for n in [*NAMES[1:], "any two"]))
    say(f"  {title:13s}" + "".join(f"{d:14.1e}" for d in [*columns, spread]))
    checks.append((f"{title}: any two within 1e-12", spread < 1e-12))
    checks.append((f"{title}: u̇ = ∂H/∂p within 1e-12", first_error < 1e-12))
    checks.append((f"{title}: there is a residual", size > 0.1))
# -

# ## The equation of a joint's angle
#
# Maggi starts from all velocities of the free body, $\dot q=(V,\omega,\dot u)$, so that other
# constraints than a prescribed frame need no new derivation, only another projection. The frame of
# a crank, say, is held at its origin by a hinge: $V$ is prescribed and the angle is free. The
# projection has the column $(0,1,0)$ beside the elastic ones $(0,0,v)$, and its row is the moment
# about the hinge of the inertia of the deformed body and of its weight: with the angle prescribed,
# what the drive must give. By hand it is the virtual work of the named forms on a turn about $z$.

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
)  # (centrifugal forces point away from the hinge)


def number(form: ufl.Form) -> float:
    return comm.allreduce(fem.assemble_scalar(fem.form(form)))


torque, by_hand = number(formalisms.maggi(body, angle)), number(rigid)


def hinge(origin: ufl.core.expr.Expr, *others: ufl.core.expr.Expr) -> ufl.core.expr.Expr:
    """The constraint of the velocities V, ω and u̇: it must vanish."""
    return origin - body.velocity


along = formalisms.constrained_rate(body, hinge, angle)  # A E of this column
say(
    "",
    f"Torque of the drive at a hinge: Maggi {torque:.12f}, by hand {by_hand:.12f} N m",
)
checks.append(("the row of the angle", abs(torque - by_hand) < 1e-12 * abs(by_hand)))
checks.append(("the angle is free", number(ufl.inner(along, along) * ufl.dx(crank.mesh)) == 0.0))
# -

# ## What each costs
#
# In space, on tetrahedra of second order: the nodes of the expression as it is written and after
# UFL's differentiation; the floating-point operations of the generated kernel for a cell, counted
# in its C code with its loops; the seconds to derive (in Python), to derive and compile without any
# cache, and to assemble once, the best of several. The times are of this machine; the counts are
# not. Hamilton's row is both of its equations.

# +


def operations(form: ufl.Form) -> int:
    """Multiplications, divisions, additions and subtractions of a form's kernel for one cell."""
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


def nodes(form: ufl.Form) -> int:
    return sum(1 for part in form.integrals() for _ in unique_pre_traversal(part.integrand()))


def best_seconds(compiled: fem.Form, times: int = 7) -> float:
    """Seconds of an assembly, on the slowest rank."""
    b = fem.assemble_vector(compiled)
    best = np.inf
    for _ in range(times):
        b.array[:] = 0
        comm.Barrier()
        start = time.perf_counter()
        fem.assemble_vector(b.array, compiled)
        best = min(best, comm.allreduce(time.perf_counter() - start, op=MPI.MAX))
    return best


say(
    "",
    f"Cost in space:  {'nodes':>8s} {'derived':>8s} {'operations':>11s} {'derive, s':>10s} "
    f"{'compile, s':>11s} {'assemble, ms':>13s}",
)
solid = Example(3, cells=6)
count: dict[str, int] = {}
with tempfile.TemporaryDirectory() as own:
    cache = comm.bcast(own)  # an empty one: everything is compiled here
    expand_derivatives(solid.residual("named forms")[0])  # UFL's own first use is slow
    for name in NAMES:
        start = time.perf_counter()
        residual = solid.residual(name)
        derived = [expand_derivatives(form) for form in residual]
        derive = time.perf_counter() - start
        start = time.perf_counter()
        compiled = [fem.form(form, jit_options={"cache_dir": cache}) for form in residual]
        compile_ = time.perf_counter() - start
        count[name] = sum(operations(form) for form in residual)
        say(
            f"  {name:13s} {sum(map(nodes, residual)):8d} {sum(map(nodes, derived)):8d} "
            f"{count[name]:11d} {derive:10.3f} {compile_:11.2f} "
            f"{1e3 * sum(map(best_seconds, compiled)):13.2f}"
        )
    comm.Barrier()
saved = 1 - count["Gibbs-Appell"] / count["Lagrange"]
say(f"  Gibbs-Appell takes {saved:.0%} fewer operations than Lagrange.")
checks.append(("Gibbs-Appell takes fewer operations than Lagrange", saved > 0.05))
checks.append(("and Kane no more than Gibbs-Appell", count["Kane"] <= count["Gibbs-Appell"]))
# -

# So 001 is right that Gibbs-Appell needs fewer differentiations, by $\ddot u$ once the acceleration
# is there instead of by $\dot u$, $t$ and $u$, and less arithmetic. But the saving is small, Kane's
# is the same, and the forms stated by hand cost hardly more. None of it matters in a simulation:
# all of them are $M\ddot u+C\dot u+Ku=f$ with matrices that combine constant ones, assembled once.
#
# ## What each is good for

# +


def table(title: str, rows: list[tuple[str, str]]) -> None:
    say("", title)
    for head, text in rows:
        lines = textwrap.wrap(text, 80)
        say(*(f"  {head if i == 0 else '':16s} {line}" for i, line in enumerate(lines)))


table(
    "What each is good for:",
    [
        (
            "Lagrange",
            "one scalar and no acceleration: safe to write down, and energies come with it",
        ),
        (
            "Gibbs-Appell",
            "one differentiation; Gauss's least constraint; quasi-velocities, rolling",
        ),
        ("Kane", "needs no energy: follower forces, damping, control; the fewest operations here"),
        ("Maggi", "joints and drives without multipliers; it gives the frame's own equations too"),
        (
            "Hamilton",
            "first order; π is the absolute velocity: no factor 2 of Coriolis and no α; for "
            "symplectic integrators; but twice the unknowns",
        ),
        ("named forms", "term by term: each matrix by itself, the constant ones assembled once"),
    ],
)
# -

# ## Misprints
#
# The text of 001 that we have is extracted from a web page: minus signs, ∂, ∫, fraction bars and
# asterisks are lost, plus signs, dots, indices, parentheses and exponents are not. So a missing
# minus cannot be told from a lost one and none is listed; a plus that stands where a minus belongs
# is. 004 was read by a program from its pages: single indices and dots may be its errors, and
# those are left out unless the text repeats them. The numbers of equations in 001 are lost too,
# and counted here such that the references in its text are right.
#
# Of some, the size: the norm of what the printed form adds to the residual, or to the elastic
# forces, in relation to them, at the state of the plane body above.

# +
flat = Example(2, "strain")
body, v, rho = flat.body, flat.v, flat.body.density
V0, w, E, nu = body.velocity, body.omega, body.material.young, body.material.poisson
eps = forms.strain(body.u)
printed = ufl.as_matrix(
    [
        [E / (1 - 2 * nu) * eps[0, 0], E / (2 * (1 - nu)) * eps[0, 1]],
        [E / (2 * (1 - nu)) * eps[0, 1], E / (1 - 2 * nu) * eps[1, 1]],
    ]
)
hooke = body.thickness * ufl.inner(printed, forms.strain(v)) * ufl.dx
elastic = forms.elastic_stiffness(body.u, v, body.material, thickness=body.thickness)
whole, spurious, coriolis, centrifugal, gravity, elastic_force, hooke_force = vectors(
    flat.mesh,
    [
        formalisms.named_forms(body, v),
        rho * w * (V0[0] * v[1] + V0[1] * v[0]) * ufl.dx,  # type: ignore[index]
        forms.coriolis(body.u_dot, v, rho, w),
        forms.centrifugal_stiffness(body.u + body.x, v, rho, w),
        forms.gravity_load(v, rho, body.gravity),
        elastic,
        hooke,
    ],
)


def ratio(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(comm.allreduce(a @ a) / comm.allreduce(b @ b)))


sizes = {
    "velocity": ratio(spurious, whole),
    "coriolis": ratio(2 * coriolis, whole),
    "centrifugal": ratio(centrifugal, whole),
    "loads": ratio(2 * gravity, whole),
    "hooke": ratio(hooke_force - elastic_force, elastic_force),
}
checks += [(f"misprint has a size: {name}", size > 1e-2) for name, size in sizes.items()]
table(
    "Misprints of 001, by equation:",
    [
        (
            "7, 8, 34, 35",
            "(x₁ + N₁ⱼδ̇ⱼ) and (x₁ + N₁ⱼδ̈ⱼ): x has no rate; N₁ⱼδ̇ⱼ and N₁ⱼδ̈ⱼ are meant. 35 "
            "also keeps a cos θ and two sin θ after they have cancelled",
        ),
        (
            "11",
            "second square: ẋ_O1 for ẋ_O2; ẋ_O1 with S₁ and ẋ_O2 with S₂, crosswise is meant, "
            "and ω there twice; a stray y",
        ),
        (
            "11, 15, 27",
            "(… + ẋ_O2 δ̇_r m_O2r) δ̇_r has δ̇ twice",
        ),
        (
            "14",
            "α_ij α_jk = δ_ik: α_ij α_kj is meant",
        ),
        (
            "15",
            "ẋ_O1² + ẋ_O1², and S₂ twice; 27 has S₁, but both have ω(ẋ_O1 S₂ − ẋ_O2 S₁) with "
            "the signs exchanged (it does not matter: no u in it)",
        ),
        (
            "15, 27",
            "ω δ_r δ̇_t (m₁₂ − m₂₁) has the other sign than in 11, which is right",
        ),
        (
            "11, 15, 27, 39, 40, 43, 51",
            "ω(ẋ_O1 m_O2r + ẋ_O2 m_O1r): a minus belongs there. In the end of 39, in 40 and 51 "
            "there must be no such term at all: with the acceleration ẍ_O of 35, the components "
            "ẋ_O have the rate ẍ_O − ω×ẋ_O, which cancels it. As printed, forces depend on the "
            "speed of the frame, and 51 cannot follow from 35, which has no velocity. Of the "
            f"residual: {sizes['velocity']:.0%}",
        ),
        (
            "18",
            "plane strain: E/(1−2μ) ε₁₁ without ε₂₂ and 1−μ, 1+μ, and E/(2(1−μ)) ε₁₂ for "
            f"E/(1+μ) ε₁₂. At μ = 0.3, of the elastic forces: {sizes['hooke']:.0%}",
        ),
        (
            "21, 22",
            "E/8(1−μ): the shear of 16 is counted once, not twice; ½ is there twice and the "
            "stiffness is called m, as the mass is; 27 has k δδ without its ½",
        ),
        (
            "29, 31",
            "x, y for 1, 2; δ_r for δ_t",
        ),
        (
            "36",
            "a² = ẍ₁ + ẍ₂: squares are missing",
        ),
        (
            "38 to 40",
            "m δ̈_t beside δ̇_r (m₁₂,rt − m₂₁,rt): the free index is r in one and t in the "
            "other. With t summed everywhere, as in Euler's term, 2ω in 40 has the wrong sign, "
            "and the terms of 38 and 39 cancel. The sign, of the residual: "
            f"{sizes['coriolis']:.0%}",
        ),
        (
            "39, 40, 51",
            "δ_r or δ_t inside brackets that multiply δ_t; q_r δ_r for q_r in 39",
        ),
        (
            "40",
            "a right-hand side that ends with = 0; the loads stand there without a plus (39 has "
            f"it in ∂L/∂δ). With a minus, of the residual: {sizes['loads']:.0%}",
        ),
        (
            "41",
            "p = ∂L/∂δ: ∂L/∂δ̇ is meant (28 has it)",
        ),
        (
            "43",
            "ẋ_O2 twice; δ̇ in the second equation, where the momenta belong; the first is that "
            "of a body in space, with rotation matrices that this paper does not use",
        ),
        (
            "46",
            "α̇_ji α̇_jk + α_ij α̈_jk: α_ji α̈_jk alone is the operator; α̇_ji α̇_jk = −ω̃ω̃ "
            "takes the centrifugal terms away, which 51 has. Of the residual: "
            f"{sizes['centrifugal']:.0%}",
        ),
        (
            "52",
            "∂E_a0/∂δ = 0: by δ̈; E_a0 does depend on δ",
        ),
        (
            "53, 54",
            "one letter a for the constraints and for the projection, which is orthogonal to "
            "them: A E = 0",
        ),
    ],
)
table(
    "Misprints of 004:",
    [
        (
            "2",
            "r_ij r_kj = δ_ij: δ_ik",
        ),
        (
            "7, 9",
            "E_ik = Ω̇_k and E_ik = Ω_ik: Ω̇_ik (perhaps the reading)",
        ),
        (
            "15, 70",
            "a volume integral from 0 to L",
        ),
        (
            "19, 56",
            "the load vector q* still multiplied by δ: then W = q*δ would be quadratic",
        ),
        (
            "24",
            "w₃ and α₁ at the second node: w₂ and α₂; 23 and 24 are numbered twice",
        ),
        (
            "34",
            "the section's angular velocity ω + θ̇, in its own axes, lacks ω×θ: 60 has rotary "
            "inertia, but no rotary Coriolis and centrifugal terms (an omission)",
        ),
        (
            "39",
            "½∫(EI_y β² + EI_z γ²): β′² and γ′²",
        ),
        (
            "47 to 49",
            "the global X component where the axial force needs the local a₀ₓ − (ω₂²+ω₃²)x",
        ),
        (
            "50, 51",
            "the primes of N′₂N′₂ + N′₃N′₃ are gone in the second form",
        ),
        (
            "58",
            "the rotational energy of 33 is announced and not there, though 60 has its terms",
        ),
        (
            "60, 61",
            "∫N dx · I ε without ρ; N_ik N_jk in 61 for N_ki N_kj in 60; the load vectors of ε "
            "and ω² are not given",
        ),
        (
            "62 to 67",
            "j = 1 to 12, a distance from the left end of the bar, and 6 entries: the solid "
            "element repeats the beam's text",
        ),
        (
            "74",
            "∫ over the volume of what 75 has integrated already",
        ),
    ],
)
# -

# ## Checks

# +
failed = [what for what, right in checks if not right]
say("", f"{len(checks) - len(failed)} of {len(checks)} checks hold")
if failed:
    sys.exit("failed: " + "; ".join(failed))
