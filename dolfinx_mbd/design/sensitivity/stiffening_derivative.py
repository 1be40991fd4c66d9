"""Derivatives of the geometric stiffening of a reduced body.

The unit loads of `dolfinx_mbd.reduction.stiffening` and their displacements depend on the
parameter, and so do the stress law, the mesh and the modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.sensitivity.mode_derivatives import (
    BasisDerivatives,
    mass_product,
    point_velocity,
)
from dolfinx_mbd.design.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.fem.assembly import (
    ElasticProblem,
    blocked,
    in_space,
    point_motion,
    projected,
    rigid_motions,
    scalar_space,
    spin_fields,
)
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.forms import geometric_stiffness
from dolfinx_mbd.reduction.stiffening import (
    WRENCH_INDICES,
    UnitCases,
    gradient_measure,
    inertia_relief,
    interface_motions,
    unit_cases,
)


class StiffeningDerivatives:
    """Derivatives of the stiffening of one body; all methods are collective.

    The unit cases are six products of angular velocities, then the wrenches on all interfaces.
    """

    def __init__(self, basis: BasisDerivatives) -> None:
        self.basis = basis
        problem, interfaces, split = basis.problem, basis.interfaces, basis.split
        comm, dim = problem.comm, problem.dim
        all_motions = np.hstack([split.rigid_interfaces, split.motions])
        parts = np.hstack([split.rigid, basis.constraint])
        self._constraint = np.asfortranarray(parts @ np.linalg.pinv(all_motions))
        self._rigid = problem.rigid_motions()
        self._inertia = problem.apply_mass(self._rigid)
        self._spins = problem.spin_loads()
        self._mass = gram(comm, self._rigid, self._inertia)
        self._motions = np.vstack([point_motion(i.point, dim) for i in interfaces])
        held = basis.held.solve_body(np.hstack([self._spins, self._inertia]))
        self._cases: UnitCases = unit_cases(
            problem, interfaces, self._constraint, held[:, :6], held[:, 6:]
        )
        self._relief = inertia_relief(problem, interfaces, self._rigid, self._inertia, self._spins)
        load = -self._inertia @ self._relief
        load[:, :6] += self._spins
        self._forces = multiply(problem.stiffness, self._cases.displacements) - load
        stiffened = multiply(problem.stiffness, self._constraint)
        self._condensed = gram(comm, self._constraint, stiffened)
        self._matrices = _case_matrices(problem, self._cases.displacements)

    def destroy(self) -> None:
        """Free the matrices of the unit cases."""
        for A in self._matrices:
            A.destroy()

    def __call__(
        self, matrices: MatrixDerivatives, changes: Array, rotations: Array, rotated: Array
    ) -> tuple[Array, Array]:
        """Return the derivatives of `Stiffening.spin` and `Stiffening.interfaces`.

        Args:
            matrices: Derivatives of the matrices.
            changes: Ψ′, shape (owned dofs, n).
            rotations: Rotation of each interface per mode, shape (interfaces, 3, n).
            rotated: Derivative of `rotations`.
        """
        problem, split, cases = self.basis.problem, self.basis.split, self._cases
        n = changes.shape[1]  # the modes below `up_to`
        displacements, forces = self._case_derivatives(matrices)
        virials = self._virial_derivatives(matrices, forces)
        fields, changed = (blocked(X, problem.dim) for X in (split.modes[:, :n], changes))
        reduced = np.zeros((len(cases.work), n, n))
        stiffness = _StressStiffness(problem, matrices)
        for c in range(len(reduced)):
            u, moved = cases.displacements[:, c], displacements[:, c]
            image = multiply(self._matrices[c], changed)
            K: Array = np.zeros((n, n))
            for a in range(problem.dim):
                K += gram(problem.comm, fields[:, a :: problem.dim], image[:, a :: problem.dim])
            K = K + K.T + stiffness.derivative(u, moved, fields)
            for V, dV, theta, turned in zip(
                cases.virials[c], virials[c], rotations, rotated, strict=True
            ):
                cross = turned.T @ (V - np.trace(V) * np.eye(3)) @ theta
                cross += theta.T @ (V - np.trace(V) * np.eye(3)) @ turned
                K += cross + theta.T @ (dV - np.trace(dV) * np.eye(3)) @ theta
            reduced[c] = (K + K.T) / 2
        stiffness.destroy()
        count, rows = len(rotations), WRENCH_INDICES[problem.dim]
        wrenches = np.zeros((count, 6, n, n))
        wrenches[:, rows] = reduced[6:].reshape(count, problem.num_rigid, n, n)
        return reduced[:6], wrenches

    def _case_derivatives(self, matrices: MatrixDerivatives) -> tuple[Array, Array]:
        """Return u′ of all unit cases, and the derivatives of the forces K u − f on the nodes."""
        basis, problem, comm = self.basis, self.basis.problem, self.basis.problem.comm
        u = self._cases.displacements
        load = self._load_derivative(matrices)
        border = basis.border_derivative(matrices)
        change, averages = basis.border_terms(border, u, -self._forces)
        change -= matrices.stiffness_product(u)
        motions = self._interface_coordinates(u)
        boundary = basis.boundary_motion(matrices, motions)
        w = basis.held.solve_moved(load + change, boundary, averages)
        residual = multiply(problem.stiffness, w) - load - change
        reaction = -gram(comm, self._constraint, residual)
        moved = basis.boundary_motion(matrices, np.eye(len(self._motions)))
        if moved is not None:
            reaction -= gram(comm, moved, self._forces)
        a = interface_motions(self._condensed, reaction, self._motions)
        changes = np.asfortranarray(w + self._constraint @ a)
        forces = multiply(problem.stiffness, changes) - load - change
        return changes, forces

    def _interface_coordinates(self, u: Array) -> Array:
        """Return the motion of the interfaces in each unit case, shape (coordinates, cases)."""
        problem = self.basis.problem
        parts: list[Array] = []
        for interface in self.basis.interfaces:
            if interface.rows is not None:
                parts.append(gram(problem.comm, interface.rows, u[interface.dofs]))
                continue
            R = problem.rigid_motions(interface.point, interface.blocks)
            G = gram(problem.comm, R, R)
            parts.append(
                np.asarray(np.linalg.solve(G, gram(problem.comm, R, u[interface.dofs])), float)
            )
        return np.vstack(parts)

    def _load_derivative(self, matrices: MatrixDerivatives) -> Array:
        """Return the derivative of the unit loads f with inertia relief."""
        problem, comm, dim = self.basis.problem, self.basis.problem.comm, self.basis.problem.dim
        R, interfaces = self._rigid, self.basis.interfaces
        spins = mass_product(problem, matrices, spin_fields(problem.positions))
        inertia = mass_product(problem, matrices, R)
        turned = np.zeros_like(R)
        points: Sequence[Array] = [np.zeros(dim) for _ in interfaces]
        if matrices.velocity is not None:
            spins += problem.apply_mass(spin_fields(matrices.velocity))
            turned = rigid_motions(matrices.velocity)
            turned[:, :dim] = 0.0
            inertia += problem.apply_mass(turned)
            points = [point_velocity(problem, i, matrices) for i in interfaces]
        mass = gram(comm, R, inertia) + gram(comm, turned, self._inertia)
        resultants = [gram(comm, R, spins) + gram(comm, turned, self._spins)]
        unit = np.eye(problem.num_rigid)
        resultants += [(point_motion(in_space(v), dim) - unit).T for v in points]
        right = np.hstack(resultants) - mass @ self._relief
        load = -inertia @ self._relief - self._inertia @ np.linalg.solve(self._mass, right)
        load[:, :6] += spins
        return np.asfortranarray(load)

    def _virial_derivatives(self, matrices: MatrixDerivatives, forces: Array) -> Array:
        """Return the derivatives of the virials, shape (cases, interfaces, 3, 3)."""
        problem, dim = self.basis.problem, self.basis.problem.dim
        virials = np.zeros_like(self._cases.virials)
        for k, interface in enumerate(self.basis.interfaces):
            if interface.kind != "rigid":
                continue
            shape = len(interface.blocks), dim, forces.shape[1]
            arms = in_space(problem.positions[interface.blocks]) - interface.point
            f = in_space(forces[interface.dofs].reshape(shape), axis=1)
            virials[:, k] = np.einsum("pic,pj->cij", f, arms)
            if matrices.velocity is not None:
                relative = matrices.velocity[interface.blocks] - point_velocity(
                    problem, interface, matrices
                )
                f = in_space(self._forces[interface.dofs].reshape(shape), axis=1)
                virials[:, k] += np.einsum("pic,pj->cij", f, in_space(relative))
        return np.asarray(problem.comm.allreduce(virials))


def _case_matrices(problem: ElasticProblem, displacements: Array) -> list[PETSc.Mat]:
    """Return the scalar geometric stiffness of each unit case; all parameters use them."""
    assert problem.materials is not None
    V, W = problem.space, scalar_space(problem.space)
    p, q, u = ufl.TrialFunction(W), ufl.TestFunction(W), fem.Function(V)
    form = geometric_stiffness(p, q, problem.materials.stress(u), gradient_measure(V))
    compiled, matrices = compiled_form(form), []
    for case in displacements.T:
        as_function(V, case, u)
        A = problem.scalar_mass.duplicate(copy=False)
        fem_petsc.assemble_matrix(A, compiled)  # type: ignore[arg-type]
        A.assemble()
        A.scale(1.0 if problem.thickness is None else problem.thickness)
        matrices.append(A)
    return matrices


class _StressStiffness:
    """The derivative of the scalar geometric stiffness of a stress σ(u)."""

    def __init__(self, problem: Any, matrices: MatrixDerivatives) -> None:
        assert matrices.stress is not None  # a body with stiffening has a material
        self.problem, V, law = problem, problem.space, matrices.stress
        W = scalar_space(V)
        p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
        self._u, self._moved = fem.Function(V), fem.Function(V)
        measure = gradient_measure(V)
        form = geometric_stiffness(p, q, law(self._u), measure)
        change = geometric_stiffness(p, q, law(self._moved), measure)
        explicit = ufl.algorithms.expand_derivatives(matrices.of_form(form))
        self._change = compiled_form(change if explicit.empty() else change + explicit)
        self._matrix = problem.scalar_mass.duplicate(copy=False)
        self._factor = 1.0 if problem.thickness is None else problem.thickness

    def derivative(self, u: Array, moved: Array, fields: Array) -> Array:
        """Return ΨᵀA′Ψ for the matrix A(σ(u)) and the fields Ψ; `moved` is the derivative of u.

        A′ also contains the derivatives of the stress law and of the mesh.
        """
        as_function(self.problem.space, u, self._u)
        as_function(self.problem.space, moved, self._moved)
        self._matrix.zeroEntries()
        fem_petsc.assemble_matrix(self._matrix, self._change)  # type: ignore[arg-type]
        self._matrix.assemble()
        return self._factor * projected(self.problem.comm, self._matrix, fields, self.problem.dim)

    def destroy(self) -> None:
        """Free the matrix."""
        self._matrix.destroy()
