"""Derivatives of the geometric stiffness K_σ of a prestressed body.

The prestress σ₀ = σ(u) + σᵢ is in equilibrium: ∫σ₀:ε(v) = 0 for all v. The derivative of this
equation at constant nodal values of u is a load, and the displacement under the opposite load is
u′. Then K_σ′ is the derivative of ∫(∇w σ₀):∇v at constant u, plus ∫(∇w σ(u′)):∇v.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.la import InsertMode
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.fem.assembly import ElasticProblem, assembled_matrix, elastic_problem, scalar_space
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import centred_motions
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.fem.operators import inertia_matrix
from dolfinx_mbd.fem.prestress import prestressed
from dolfinx_mbd.forms import Temperature, geometric_stiffness, strain


def initial_stress(model: ElasticModel) -> Expr | None:
    """Return the stress σᵢ of the body held at its undeformed shape, or None without prestress."""
    prestress = model.prestress
    if not isinstance(prestress, Temperature):
        return prestress
    rise = prestress.rise
    if not isinstance(rise, Expr):
        rise = fem.Constant(model.plain_mesh, default_scalar_type(rise))
    assert model.materials is not None
    return model.materials.thermal_stress(rise)


class PrestressDerivatives:
    """Derivatives of K_σ of one body.

    `problem` is the problem with prestress, and `free` solves with the stiffness of the body
    without prestress.
    """

    def __init__(self, problem: ElasticProblem, free: Any) -> None:
        self.problem, self._free = problem, free

    def __call__(
        self,
        law: Callable[[Expr], Expr],
        initial: Expr,
        of_form: Callable[[ufl.Form], ufl.Form],
    ) -> PETSc.Mat | None:
        """Return K_σ′, or None if it is zero (collective).

        Args:
            law: Stress σ(u), which contains the parameter.
            initial: Initial stress σᵢ, which contains the parameter.
            of_form: Function that returns the derivative of a form with respect to the parameter,
                at constant nodal values of u.
        """
        problem, V = self.problem, self.problem.space
        u, measure = problem.prestress.displacement, problem.prestress.measure
        v = ufl.TestFunction(V)
        stress = law(u) + initial
        load = ufl.algorithms.expand_derivatives(of_form(ufl.inner(stress, strain(v)) * measure))
        W = scalar_space(V)
        p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
        at_constant_u = of_form(geometric_stiffness(p, q, stress, measure))
        form = ufl.algorithms.expand_derivatives(at_constant_u)
        if not load.empty():
            b = fem.assemble_vector(compiled_form(load))
            b.scatter_reverse(InsertMode.add)
            thickness = 1.0 if problem.thickness is None else problem.thickness
            forces = -thickness * b.array[: problem.num_owned, None]
            du = as_function(V, self._free.solve_body(np.asfortranarray(forces))[:, 0])
            by_displacement = geometric_stiffness(p, q, law(du), measure)
            form = by_displacement if form.empty() else form + by_displacement
        if form.empty():
            return None
        A = assembled_matrix(form)
        if problem.thickness is not None:
            A.scale(problem.thickness)
        # As the mass matrix, K_σ has the same scalar matrix for each displacement component
        K = inertia_matrix(replace(problem, scalar_mass=A), np.eye(problem.dim))
        A.destroy()
        return K

    def destroy(self) -> None:
        """Free the factor."""
        self._free.destroy()


def prestressed_problem(
    model: ElasticModel, free_solver_class: Callable[..., Any], prefix: str
) -> tuple[ElasticProblem, PrestressDerivatives | None]:
    """Return the problem of a model with its prestress, and the derivatives of the prestress.

    `free_solver_class` is the class of the solver of the body without prestress.
    """
    problem = elastic_problem(model)
    if model.prestress is None:
        return problem, None
    R = centred_motions(problem)
    factor = np.linalg.inv(np.linalg.cholesky(gram(problem.comm, R, problem.apply_mass(R)))).T
    free = free_solver_class(problem, np.asfortranarray(R @ factor), prefix)
    problem = prestressed(problem, model.prestress, prefix=prefix)
    return problem, PrestressDerivatives(problem, free)
