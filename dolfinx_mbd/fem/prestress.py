"""Prestress of a body by temperature or an initial stress, and its geometric stiffness.

The initial stress σᵢ is the stress of the body held at its undeformed shape. The body then deforms
until ∫(σ(u) + σᵢ):ε(v) = 0 for all v that vanish at its supports. The stress σ₀ = σ(u) + σᵢ is its
prestress. Its geometric stiffness K_σ = ∫(∇w σ₀):∇v is added to K; the change of shape by u is
neglected.

K_σ does not resist the rotation w = W x of a free body, because ∫(W σ₀):∇v = ∫σ₀:∇(Wᵀv) = 0. This
requires the same quadrature in both integrals and a residual at the level of round-off. The static
solution is therefore repeated until the residual no longer decreases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.la import InsertMode
from numpy.typing import NDArray
from petsc4py import PETSc
from ufl.algorithms import estimate_total_polynomial_degree
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, geometric_matrix, rigid_motions
from dolfinx_mbd.fem.compat import geometry_degree
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.elastic_model import check_prestress
from dolfinx_mbd.fem.free_motions import centred_motions, determinate_dofs
from dolfinx_mbd.fem.linalg.blocks import gram, multiply, solve
from dolfinx_mbd.fem.linalg.factorization import cholesky
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.surface_integrals import bounding_box, squared_norms
from dolfinx_mbd.forms import Temperature, strain
from dolfinx_mbd.parallel import destroying

BUCKLED = (
    "the body is unstable: a part of its prestress is sufficient for buckling; lower the "
    "rise of temperature or the initial stress"
)

MAX_SOLUTIONS = 5
"""Largest number of static solutions; two or three suffice."""

MAX_STRESS_DEGREE = 10
"""Largest degree of an initial stress that its quadrature takes into account."""

RIGID_TOLERANCE = 1e-6
"""Ratio ‖K R‖ / (‖K‖‖R‖) above which a stiffness is rejected because it resists rigid motion."""


@dataclass(frozen=True, eq=False)
class Prestress:
    """A stress in equilibrium with the supports, and the displacement that leads to it."""

    displacement: fem.Function  # u, m; without mean rigid motion if the body is free
    stress: Expr  # σ₀, Pa
    measure: ufl.Measure  # quadrature with which the stress is in equilibrium
    residual: float  # largest nodal force, relative to its value before deformation


def prestressed(
    problem: ElasticProblem,
    initial: Temperature | Expr | None,
    *,
    held: NDArray[np.int32] | None = None,
    prefix: str,
    options: Options = None,
) -> ElasticProblem:
    """Add the stiffness of a prestress to K in place, and return the problem with the prestress.

    `initial` is a `Temperature` or the stress σᵢ as UFL; without it, K is unchanged. `held` are the
    owned degrees of freedom without displacement; by default the body is free. Collective.
    """
    if initial is None:
        return problem
    stress = initial_stress(problem.materials, problem.space, initial)
    dofs = np.zeros(0, dtype=np.int32) if held is None else held
    state = _equilibrium(problem, stress, dofs, prefix, options)
    K = geometric_matrix(problem, state.stress, state.measure)
    problem.stiffness.axpy(1.0, K, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    K.destroy()
    result = replace(problem, prestress=state)
    if problem.comm.allreduce(len(dofs)) == 0:
        _check_rigid_motions(result)
    return result


def initial_stress(
    materials: BodyMaterials | None, space: fem.FunctionSpace, initial: Temperature | Expr
) -> Expr:
    """Return the stress σᵢ of a body held at its undeformed shape as UFL, Pa (collective).

    Args:
        materials: Materials of the body.
        space: Displacement space.
        initial: `Temperature`, or σᵢ as UFL, Pa.

    Raises:
        InputError: The body has no material, or σᵢ is not symmetric.
    """
    mesh = space.mesh
    if materials is None:
        raise InputError("prestress needs a material, whose stress is known (no stiffness form)")
    if isinstance(initial, Temperature):
        rise = initial.rise
        if not isinstance(rise, Expr):  # a number would be compiled into the forms
            rise = fem.Constant(mesh, default_scalar_type(rise))
        return materials.thermal_stress(rise)
    check_prestress(initial, space.dofmap.bs)
    skew, size = squared_norms(mesh, initial - ufl.transpose(initial), initial)
    if not skew <= 1e-20 * size:
        raise InputError("the initial stress is not symmetric, or is NaN somewhere")
    return initial


def _equilibrium(
    problem: ElasticProblem, initial: Expr, held: NDArray[np.int32], prefix: str, options: Options
) -> Prestress:
    """Return the prestress after the body has deformed into equilibrium.

    The loads of a body without supports are in equilibrium. Such a body is held by a statically
    determinate support, whose reactions are zero, and the rigid motion of the result is removed.
    """
    assert problem.materials is not None
    V, comm = problem.space, problem.comm
    u, v = fem.Function(V), ufl.TestFunction(V)
    sigma = problem.materials.stress(u) + initial
    measure = _measure(V, initial)
    form = compiled_form(ufl.inner(sigma, strain(v)) * measure)
    thickness = 1.0 if problem.thickness is None else problem.thickness

    def residual() -> tuple[Array, float]:
        b = fem.assemble_vector(form)
        b.scatter_reverse(InsertMode.add)
        forces = thickness * b.array[: problem.num_owned]
        forces[held] = 0.0
        largest = np.max(comm.allgather(np.abs(forces).max(initial=0.0)))  # keeps NaN
        return forces, float(largest)

    forces, initial_size = residual()
    if not np.isfinite(initial_size):
        raise InputError("the initial stress is not finite everywhere")
    supports, floating = held, not comm.allreduce(len(held))
    if floating:
        R = centred_motions(problem)
        momenta = problem.apply_mass(R)
        supports = determinate_dofs(comm, R)
    K = problem.stiffness.copy()
    constrain(K, supports, 1.0)
    ksp, size = cholesky(K, prefix=prefix, options=options), initial_size
    with destroying(comm, ksp, K):
        for _ in range(MAX_SOLUTIONS):
            size_before, u_before = size, u.x.array.copy()
            forces[supports] = 0.0
            step = solve(ksp, forces[:, None])
            if floating:
                step -= R @ np.linalg.solve(gram(comm, R, momenta), gram(comm, momenta, step))
            u.x.array[: problem.num_owned] -= step[:, 0]
            u.x.scatter_forward()
            forces, size = residual()
            if not size < 0.5 * size_before:  # the rest is round-off; keep the better solution
                if size > size_before:
                    size, u.x.array[:] = size_before, u_before
                break
    return Prestress(u, sigma, measure, size / initial_size if initial_size else 0.0)


def _measure(V: fem.FunctionSpace, initial: Expr) -> ufl.Measure:
    """Return a quadrature for σ₀:(∇wᵀ∇v) that is also accurate enough for the equilibrium."""
    degree = V.ufl_element().sub_elements[0].degree
    stress_degree = min(estimate_total_polynomial_degree(initial), MAX_STRESS_DEGREE)
    if V.mesh.topology.cell_name() in ("triangle", "tetrahedron"):
        gradient = degree - 1
        order = 2 * gradient + max(gradient, stress_degree) + 2 * (geometry_degree(V.mesh) - 1)
    else:  # the gradient has the full degree in some directions
        order = 2 * degree + max(degree, stress_degree)
    return ufl.dx(domain=V.mesh, metadata={"quadrature_degree": max(1, order)})


def _check_rigid_motions(problem: ElasticProblem) -> None:
    """Raise an error if a prestressed stiffness resists rigid motions R (K R is not zero)."""
    low, high = bounding_box(problem.comm, problem.positions)
    R = rigid_motions(problem.positions, (low + high) / 2)
    columns = np.abs(np.hstack([R, multiply(problem.stiffness, R)])).max(axis=0, initial=0.0)
    motions, forces = np.split(np.max(problem.comm.allgather(columns), axis=0), 2)
    ratio = forces / (problem.stiffness.norm(PETSc.NormType.NORM_INFINITY) * motions)
    if not np.isfinite(ratio).all() or ratio.max() > RIGID_TOLERANCE:
        raise InputError(
            "the stiffness with prestress resists rigid motion (K R is not zero, relative size "
            f"{ratio.max():.1e}): the prestress of the free body is not in equilibrium",
            argument="prestress",
            value=float(ratio.max()),
        )
