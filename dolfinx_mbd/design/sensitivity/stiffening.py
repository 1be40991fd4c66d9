"""Derivatives of the unit loads of geometric stiffening, and of the displacements under them."""

from __future__ import annotations

from functools import partial

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.sensitivity.basis import BasisDerivatives
from dolfinx_mbd.design.sensitivity.differences import (
    differenced,
    interfaces_at,
    problem_at,
    step_of,
)
from dolfinx_mbd.design.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.fem.assembly import point_motion
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram, multiply
from dolfinx_mbd.reduction.stiffening import (
    UnitCases,
    interface_motions,
    interface_virials,
    unit_cases,
    unit_loads,
)


class CaseDerivatives:
    """Derivatives of the unit cases of one body; all methods are collective."""

    def __init__(self, basis: BasisDerivatives) -> None:
        self.basis = basis
        problem, interfaces, split = basis.problem, basis.interfaces, basis.split
        comm, dim = problem.comm, problem.dim
        all_motions = np.hstack([split.rigid_interfaces, split.motions])
        parts = np.hstack([split.rigid, basis.constraint])
        self._constraint = np.asfortranarray(parts @ np.linalg.pinv(all_motions))
        self._motions = np.vstack([point_motion(i.point, dim) for i in interfaces])
        inertia = problem.apply_mass(problem.rigid_motions())
        held = basis.held.solve_body(np.hstack([problem.spin_loads(), inertia]))
        self.cases: UnitCases = unit_cases(
            problem, interfaces, self._constraint, held[:, :6], held[:, 6:]
        )
        forces = multiply(problem.stiffness, self.cases.displacements)
        self._forces = forces - unit_loads(problem, interfaces)
        stiffened = multiply(problem.stiffness, self._constraint)
        self._condensed = gram(comm, self._constraint, stiffened)

    def __call__(self, matrices: MatrixDerivatives) -> UnitCases:
        """Return the derivatives of the unit cases with respect to one parameter."""
        basis, problem, comm = self.basis, self.basis.problem, self.basis.problem.comm
        u = self.cases.displacements
        step = step_of(problem, matrices)
        load = differenced(partial(self._loads, matrices), step)
        border = basis.border_derivative(matrices)
        pull, averages = basis.border_terms(border, u, -self._forces)
        stiff = matrices.stiffness_product(u)
        pull -= stiff
        motions = self._interface_coordinates(u)
        boundary = basis.boundary_motion(matrices, motions)
        w = basis.held.solve_moved(load + pull, boundary, averages)
        residual = multiply(problem.stiffness, w) - load - pull
        reaction = -gram(comm, self._constraint, residual)
        moved = basis.boundary_motion(matrices, np.eye(len(self._motions)))
        if moved is not None:
            reaction -= gram(comm, moved, self._forces)
        a = interface_motions(self._condensed, reaction, self._motions)
        changes = np.asfortranarray(w + self._constraint @ a)
        stiffened = multiply(problem.stiffness, changes)
        work = column_sums(comm, u, stiff) + 2 * column_sums(comm, u, stiffened)
        forces = stiffened - load - pull
        virials = differenced(partial(self._virials, matrices, forces), step)
        return UnitCases(changes, virials, work)

    def _interface_coordinates(self, u: Array) -> Array:
        """Return the motion of the interfaces in each unit case, shape (coordinates, cases)."""
        problem = self.basis.problem
        parts: list[Array] = []
        for i in self.basis.interfaces:
            if i.rows is not None:
                parts.append(gram(problem.comm, i.rows, u[i.dofs]))
                continue
            R = problem.rigid_motions(i.point, i.blocks)
            G = gram(problem.comm, R, R)
            parts.append(np.asarray(np.linalg.solve(G, gram(problem.comm, R, u[i.dofs])), float))
        return np.vstack(parts)

    def _loads(self, matrices: MatrixDerivatives, step: float) -> Array:
        """Return the unit loads at a step."""
        basis = self.basis
        interfaces = interfaces_at(basis.problem, basis.interfaces, matrices, step)
        with problem_at(basis.problem, matrices, step) as problem:
            return unit_loads(problem, interfaces)

    def _virials(self, matrices: MatrixDerivatives, changes: Array, step: float) -> Array:
        """Return the virials at a step; `changes` are the derivatives of the nodal forces."""
        basis, forces = self.basis, self._forces + step * changes
        interfaces = interfaces_at(basis.problem, basis.interfaces, matrices, step)
        with problem_at(basis.problem, matrices, step) as problem:
            return interface_virials(problem, interfaces, forces)
