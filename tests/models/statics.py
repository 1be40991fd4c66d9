"""Static problems solved directly on a mesh, for comparison with what is recovered from modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from petsc4py import PETSc

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.fields import locate
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.static_correction import residual_displacements
from dolfinx_mbd.reduction.stiffening import UnitCases, mean_axis_cases


def solve_held(
    space: fem.FunctionSpace,
    material: mbd.Material,
    held: dict[float, Callable[[np.ndarray], np.ndarray] | None],
    body_force: Any = None,
) -> fem.Function:
    """Return the displacement under a body force, N/m³, with held planes x = c.

    The planes move as the functions in `held`; None means that a plane does not move.
    """
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    zero = fem.Constant(space.mesh, np.zeros(3))
    a = fem.form(forms.elastic_stiffness(u, v, material))
    L = fem.form(ufl.inner(zero if body_force is None else body_force, v) * ufl.dx)
    bcs = []
    for plane, motion in held.items():
        g = fem.Function(space)
        if motion is not None:
            g.interpolate(motion)
        dofs = fem.locate_dofs_geometrical(space, lambda x, c=plane: np.isclose(x[0], c))
        bcs.append(fem.dirichletbc(g, dofs))
    A = fem_petsc.assemble_matrix(a, bcs)
    A.assemble()
    b = fem_petsc.assemble_vector(L)
    fem_petsc.apply_lifting(b, [a], [bcs])
    b.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
    fem_petsc.set_bc(b, bcs)
    ksp = PETSc.KSP().create(space.mesh.comm)
    ksp.setOperators(A)
    ksp.setType("preonly")
    ksp.getPC().setType("lu")
    ksp.getPC().setFactorSolverType("mumps")
    solution = fem.Function(space)
    x = A.createVecRight()
    ksp.solve(b, x)
    solution.x.array[: x.getLocalSize()] = x.array
    solution.x.scatter_forward()
    for item in (ksp, A, b, x):
        item.destroy()
    return solution


def interpolated(
    expression: Any, mesh: Any, degree: int, shape: tuple[int, ...] = ()
) -> fem.Function:
    """Return a UFL expression interpolated on a discontinuous space of the degree."""
    f = fem.Function(fem.functionspace(mesh, ("DG", degree, shape) if shape else ("DG", degree)))
    points = f.function_space.element.interpolation_points
    f.interpolate(fem.Expression(expression, points() if callable(points) else points))
    return f


def probe(function: fem.Function, points: np.ndarray) -> np.ndarray:
    """Return the values of a function at points, the same on every rank."""
    mesh = function.function_space.mesh
    x, cells, mine = locate(mesh, {str(k): p for k, p in enumerate(points)})
    size = function.function_space.dofmap.bs
    values = np.zeros((len(x), size))
    if len(mine):
        values[mine] = function.eval(x[mine], cells[mine]).reshape(-1, size)
    return mesh.comm.allreduce(values).squeeze(-1) if size == 1 else mesh.comm.allreduce(values)


def von_mises(u: Any, material: mbd.Material) -> Any:
    """Return the von Mises stress as UFL, from the deviator."""
    s = forms.stress(u, material)
    return ufl.sqrt(1.5 * ufl.inner(ufl.dev(s), ufl.dev(s)))


def static_eta(body: ReducedBody, wrenches: np.ndarray) -> np.ndarray:
    """Return η = K⁻¹ Σ motionᵀ w of self-equilibrated wrenches, (nt, n).

    The wrenches w have the shape (nt, interfaces, 6).
    """
    motions = np.stack([i.motion for i in body.interfaces])
    return np.linalg.solve(body.stiffness, np.einsum("tki,kin->nt", wrenches, motions)).T


def static_cases(problem: ElasticProblem, interfaces: tuple[MeshInterface, ...]) -> UnitCases:
    """Return the displacements of unit loads in the mean-axis frame, by one factorization."""
    basis = craig_bampton_basis(problem, interfaces, 0, prefix="test_static_", stiffening=True)
    assert basis.cases is not None
    return mean_axis_cases(problem, basis.cases)


def with_correction(
    reduction: mbd.reduction.Reduction, cases: UnitCases
) -> mbd.reduction.Reduction:
    """Return a reduction with static correction, from the unit cases of the same body."""
    dim = reduction.space.dofmap.bs
    residuals = residual_displacements(reduction.body, reduction.modes, cases, dim)
    return replace(reduction, residuals=residuals)
