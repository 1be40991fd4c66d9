"""Prestress of a body: temperature or locked-in stress, and the stiffness that it adds.

Given is the stress σᵢ of the body at its undeformed shape, −C:(α ΔT) of a temperature. The body
then deforms until it is in equilibrium with nothing but its supports,

    ∫(σ(u) + σᵢ):ε(v) = 0    for all v that vanish where the body is held,

and σ₀ = σ(u) + σᵢ is its prestress. K gets ∫(∇w σ₀):∇v (`geometric_stiffness`, where its sign is
proved); the change of shape by u is not followed.

Without supports σ₀ is self-equilibrated, also after discretization: with v = A x for any matrix A,
∫σ₀ = 0. That is why K_σ does not resist the rotation w = W x of a free body:
∫(W σ₀):∇v = ∫σ₀:∇(Wᵀv) = 0, as Wᵀv is a test function too. It takes the same quadrature in both
integrals, and residuals of round-off: the static solution is repeated on what is left of them
(`test_prestress_does_not_resist_rotation`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.la import InsertMode
from numpy.typing import NDArray
from petsc4py import PETSc
from ufl.algorithms import estimate_total_polynomial_degree
from ufl.core.expr import Expr

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, check_rigid_motions, geometric_matrix
from dolfinx_mbd.fem.compat import geometry_degree
from dolfinx_mbd.fem.determinate_support import centred_motions, determinate_dofs
from dolfinx_mbd.fem.elastic_model import check_prestress
from dolfinx_mbd.forms import Temperature, strain
from dolfinx_mbd.linalg.blocks import gram, solve
from dolfinx_mbd.linalg.factorization import cholesky
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.parallel import released

__all__ = ["BUCKLED", "Prestress", "prestressed"]

Array = NDArray[np.float64]

BUCKLED = (
    "the body is unstable under its prestress: it buckles before all of it is there; lower the "
    "rise of temperature or the initial stress"
)

REPEATS = 5
"""How often the static solution may be repeated on its residual; two or three do."""


@dataclass(frozen=True, eq=False)
class Prestress:
    """A stress in equilibrium with the supports, and the displacement that led to it.

    Attributes:
        displacement: u from the undeformed shape, m; of a free body without rigid motion (mean).
        stress: σ₀ as UFL, Pa.
        measure: The integration in which it is in equilibrium.
        residual: Greatest nodal force that is left over, relative to the greatest one of σᵢ alone.
    """

    displacement: fem.Function
    stress: Expr
    measure: ufl.Measure
    residual: float


def prestressed(
    problem: ElasticProblem,
    initial: Temperature | Expr | None,
    *,
    held: NDArray[np.int32] | None = None,
    prefix: str,
    options: Options = None,
) -> ElasticProblem:
    """The problem with the stiffness of its prestress in K, which is changed in place.

    Args:
        problem: Of a free body, with materials.
        initial: A `Temperature`, or the stress σᵢ of the undeformed body as UFL, symmetric, shape
            (dim, dim), Pa. None: `problem` as it is.
        held: Owned degrees of freedom without displacement, local numbers, for instance those of a
            clamped face; None for a free body.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Raises:
        ValueError: The initial stress is none, or the stress of a displacement is not known.
        FactorizationError: The static problem has no solution.

    Note: Collective.
    """
    if initial is None:
        return problem
    sigma_i = _initial_stress(problem, initial)
    dofs = np.zeros(0, dtype=np.int32) if held is None else held
    state = _relaxed(problem, sigma_i, dofs, prefix, options)
    K = geometric_matrix(problem, state.stress, state.measure)
    problem.stiffness.axpy(1.0, K, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    K.destroy()
    result = replace(problem, prestress=state)
    if problem.comm.allreduce(len(dofs)) == 0:
        check_rigid_motions(result)
    return result


def _initial_stress(problem: ElasticProblem, initial: Any) -> Expr:
    if problem.materials is None:
        raise InputError("prestress needs a material, whose stress is known (no stiffness form)")
    if isinstance(initial, Temperature):
        rise = initial.rise
        if not isinstance(rise, Expr):  # (a number would be compiled into the forms)
            rise = fem.Constant(problem.space.mesh, default_scalar_type(rise))
        return problem.materials.thermal_stress(rise)
    check_prestress(initial, problem.dim)
    skew = initial - ufl.transpose(initial)
    dx = ufl.dx(domain=problem.space.mesh)
    one = fem.Constant(problem.space.mesh, default_scalar_type(1.0))
    pair = [fem.form(one * ufl.inner(f, f) * dx) for f in (skew, initial)]
    square, size = problem.comm.allreduce(np.array([fem.assemble_scalar(f) for f in pair]))
    if not square <= 1e-20 * size:
        raise InputError("the initial stress is not symmetric, or not a number everywhere")
    return initial


class _Static:
    """u from nodal forces: with supports, or without rigid motion in the mean.

    What a body without supports is loaded with is in equilibrium by itself: as many of its degrees
    of freedom as it has rigid motions are held, which takes no force, and the rigid motion that
    this gave is taken out again.

    Raises:
        FactorizationError: The supports are too few, or the solver failed.

    Note: Collective, as all methods are.
    """

    def __init__(
        self, problem: ElasticProblem, held: NDArray[np.int32], prefix: str, options: Options
    ) -> None:
        self.comm, self.R = problem.comm, None
        if not problem.comm.allreduce(len(held)):
            self.R = centred_motions(problem)
            self.momenta = problem.apply_mass(self.R)
            held = determinate_dofs(problem.comm, self.R)
        self.held = held
        self.K: PETSc.Mat = problem.stiffness.copy()
        constrain(self.K, held, 1.0)
        self.ksp = cholesky(self.K, prefix=prefix, options=options)

    def solve(self, forces: Array) -> Array:
        """The displacement, shape (owned dofs,)."""
        B = forces[:, None].copy(order="F")
        B[self.held] = 0.0
        u = solve(self.ksp, B)
        if self.R is not None:
            inertia = gram(self.comm, self.R, self.momenta)
            u -= self.R @ np.linalg.solve(inertia, gram(self.comm, self.momenta, u))
        return u[:, 0]

    def destroy(self) -> None:
        """Free the factors and the matrix."""
        self.ksp.destroy()
        self.K.destroy()


def _relaxed(
    problem: ElasticProblem,
    initial: Expr,
    held: NDArray[np.int32],
    prefix: str,
    options: Options,
) -> Prestress:
    """The body in equilibrium."""
    assert problem.materials is not None
    V, comm = problem.space, problem.comm
    u, v = fem.Function(V), ufl.TestFunction(V)
    sigma = problem.materials.stress(u) + initial
    measure = _measure(V, initial)
    form = fem.form(ufl.inner(sigma, strain(v)) * measure)
    across = 1.0 if problem.thickness is None else problem.thickness

    def residual() -> tuple[Array, float]:
        b = fem.assemble_vector(form)
        b.scatter_reverse(InsertMode.add)
        forces = across * b.array[: problem.num_owned]
        forces[held] = 0.0
        greatest = np.max(comm.allgather(np.abs(forces).max(initial=0.0)))  # keeps NaN
        return forces, float(greatest)

    forces, first = residual()
    if not np.isfinite(first):
        raise InputError("the initial stress is not a number everywhere")
    left = first
    static = _Static(problem, held, prefix, options)
    with released(comm, static):
        for _ in range(REPEATS):
            before = left, u.x.array.copy()
            u.x.array[: problem.num_owned] -= static.solve(forces)
            u.x.scatter_forward()
            forces, left = residual()
            if not left < 0.5 * before[0]:  # round-off
                if left > before[0]:
                    left, u.x.array[:] = before
                break
    return Prestress(u, sigma, measure, left / first if first else 0.0)


def _measure(V: fem.FunctionSpace, initial: Expr) -> ufl.Measure:
    """Quadrature for σ₀:(∇wᵀ∇v) that serves the equilibrium as well."""
    degree = V.ufl_element().sub_elements[0].degree
    given = min(estimate_total_polynomial_degree(initial), 10)
    if V.mesh.topology.cell_name() in ("triangle", "tetrahedron"):
        gradient = degree - 1
        order = 2 * gradient + max(gradient, given) + 2 * (geometry_degree(V.mesh) - 1)
    else:
        order = 2 * degree + max(degree, given)
    return ufl.dx(domain=V.mesh, metadata={"quadrature_degree": max(1, order)})
