"""Derivatives of the load forces and the damping of a body, and checks of its optional parts."""

from __future__ import annotations

import numpy as np
import ufl
from dolfinx import fem, la

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ModalDamping, Rayleigh, ReducedBody
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.design.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.durability.recovery.skin_stress import skin_stress
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, assembled_matrix, blocked, projected
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.interfaces.bores import BorePatterns
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.reduction.distributed_loads import load_vectors
from dolfinx_mbd.reduction.mesh_damping import Viscous, viscous_form, with_damping
from dolfinx_mbd.reduction.result import Reduction

SAME = 1e-6  # relative difference of two computations of the same numbers


class PartDerivatives:
    """Derivatives of the optional parts of one body; all methods are collective."""

    def __init__(
        self, reduction: Reduction, problem: ElasticProblem, bores: tuple[BorePatterns, ...]
    ) -> None:
        self._reduction, self._problem, self.bores = reduction, problem, bores
        self.forces = load_vectors(problem, reduction.loads)
        self._check()

    @property
    def forms(self) -> list[ufl.Form]:
        """Forms of the loads and of the damping."""
        problem, reduction = self._problem, self._reduction
        v = ufl.TestFunction(problem.space)
        forms = [load(v) for load in reduction.loads.values()]
        for damping in reduction.dampings:
            if isinstance(damping, ufl.Form):
                forms.append(damping)
            elif isinstance(damping, Viscous):
                forms.append(viscous_form(damping, problem.space, problem.thickness))
        return forms

    def force_changes(self, matrices: MatrixDerivatives) -> Array | None:
        """Return the derivatives of the nodal forces of the loads, or None if they are zero."""
        problem, loads = self._problem, self._reduction.loads
        v = ufl.TestFunction(problem.space)
        forms = [matrices.of_load(load(v)) for load in loads.values()]
        if all(form is None for form in forms):
            return None
        changes = np.zeros_like(self.forces)
        for column, form in enumerate(forms):
            if form is not None:
                b = fem.assemble_vector(compiled_form(form))
                b.scatter_reverse(la.InsertMode.add)
                changes[:, column] = b.array[: problem.num_owned]
        return changes

    def static_forces(self) -> Array:
        """Return the nodal forces of the loads, then those of the pressure patterns, as columns."""
        return np.asfortranarray(np.hstack([self.forces, *(b.forces for b in self.bores)]))

    def static_changes(self, matrices: MatrixDerivatives) -> Array | None:
        """Return the derivatives of `static_forces`, or None if they are zero.

        It raises an `InputError` if a parameter changes the shape of a bore with pressure modes.
        """
        self._check_bores(matrices)
        loads = self.force_changes(matrices)
        if loads is None:
            return None
        patterns = [np.zeros_like(b.forces) for b in self.bores]
        return np.asfortranarray(np.hstack([loads, *patterns]))

    def _check(self) -> None:
        """Raise an error unless damping, loads and stress modes are those of the reduction."""
        reduction = self._reduction
        body, reason = reduction.body, ""
        same = with_damping(reduction, *reduction.dampings, thickness=self._problem.thickness)
        if not _equal(same.body.damping, body.damping):
            reason = (
                "a damping that is not that of the reduction; use "
                "`mbd.reduction.with_damping(reduction, ...)`, or add the damping to the "
                "first-order body"
            )
        elif [p.name for p in body.loads] != list(reduction.loads):
            reason = "distributed loads that are not those of the reduction"
        elif body.stress is not None and (
            reduction.stress is None
            or not _equal(skin_stress(reduction, peaks=False).stress, body.stress.stress)
        ):
            reason = "stress modes that are not those of `skin_stress(reduction)`"
        if reason:
            text = f"sensitivities are not available for {reason}"
            raise InputError(text, argument="reduction", value=reduction)

    def _check_bores(self, matrices: MatrixDerivatives) -> None:
        """Raise an error if a parameter changes the shape of a bore with pressure modes."""
        if matrices.velocity is None or not self.bores:
            return
        comm, size = self._problem.comm, np.abs(matrices.velocity).max(initial=0.0)
        for bore in self.bores:
            V = matrices.velocity[bore.interface.blocks]
            mean = comm.allreduce(V.sum(axis=0)) / comm.allreduce(len(V))
            change = np.abs(V - mean).max(initial=0.0)
            if max(comm.allgather(change)) > 1e-9 * max(comm.allgather(size)):
                raise InputError(
                    f"the shape changes the bore {bore.interface.name!r}, whose pressure modes "
                    "are not differentiable with respect to its shape; give a velocity that is "
                    "constant at the bore, or reduce without pressure_modes",
                    argument="parameters",
                )

    def damping(self, matrices: MatrixDerivatives, changes: Array, stiffness: Array) -> Array:
        """Return the derivative of the damping matrix; a matrix given by the user is constant.

        Args:
            matrices: Derivatives of the matrices.
            changes: Ψ′, shape (owned dofs, n).
            stiffness: Derivative of the modal stiffness, shape (n, n).
        """
        body = self._reduction.body
        total = np.zeros_like(body.damping)
        for damping in self._reduction.dampings:
            if isinstance(damping, Rayleigh):
                total += damping.stiffness * stiffness  # the mass matrix is constant
            elif isinstance(damping, ModalDamping):
                total += modal_damping_derivative(body, damping, stiffness)
            elif isinstance(damping, Viscous):
                space, thickness = self._problem.space, self._problem.thickness
                form = viscous_form(damping, space, thickness)
                total += self._of_form(form, matrices, changes, scalar=True)
            elif isinstance(damping, ufl.Form):
                total += self._of_form(damping, matrices, changes, scalar=False)
        return total

    def _of_form(
        self, form: ufl.Form, matrices: MatrixDerivatives, changes: Array, *, scalar: bool
    ) -> Array:
        """Return the derivative of ΨᵀC_hΨ from the form of C_h, or of C_h for one component."""
        comm, dim, modes = self._problem.comm, self._problem.dim, self._reduction.modes
        A = assembled_matrix(form)
        if scalar:
            image = multiply(A, blocked(modes, dim))
            fields = blocked(changes, dim)
            cross = np.sum([gram(comm, fields[:, a::dim], image[:, a::dim]) for a in range(dim)], 0)
        else:
            cross = gram(comm, changes, multiply(A, modes))
        A.destroy()
        C: Array = cross + cross.T
        explicit = ufl.algorithms.expand_derivatives(matrices.of_form(form))
        if explicit.empty():
            return C
        A = assembled_matrix(explicit)
        if scalar:
            C += projected(comm, A, blocked(modes, dim), dim)
        else:
            C += gram(comm, modes, multiply(A, modes))
        A.destroy()
        return np.asarray(C + C.T) / 2


def modal_damping_derivative(body: ReducedBody, damping: ModalDamping, stiffness: Array) -> Array:
    """Return the derivative of C = Σ 2ζω vvᵀ with the eigenvectors v of the stiffness.

    With c = 2ζω, the entries are K′_ij (c_i − c_j)/(λ_i − λ_j), or 2ζ K′_ij/(ω_i + ω_j) for equal
    ratios ζ. Different ratios of the modes of a multiple frequency are an `InputError`.
    """
    squares = np.diag(body.stiffness)
    omega, groups = np.sqrt(squares), groups_of(squares)
    ratios = np.broadcast_to(np.asarray(damping.ratios, dtype=float), omega.shape)
    order = np.argsort(squares, kind="stable")
    zeta = np.empty_like(omega)
    zeta[order] = ratios  # the ratios are in ascending order of the frequencies
    same = groups[:, None] == groups
    if (same & (zeta[:, None] != zeta)).any():
        raise InputError(
            "modal damping with different ratios for the modes of a multiple frequency is not "
            "differentiable; give these modes the same ratio",
            argument="reduction",
        )
    equal = zeta[:, None] == zeta
    gap = np.where(equal, 1.0, squares[:, None] - squares)
    quotients = 2 * (zeta * omega)[:, None] - 2 * zeta * omega
    factors = np.where(equal, 2 * zeta / (omega[:, None] + omega), quotients / gap)
    return np.asarray(factors * stiffness)


def _equal(a: Array, b: Array) -> bool:
    """Return whether two arrays are equal up to the error of their computation."""
    same = a.shape == b.shape
    return same and bool(np.abs(a - b).max(initial=0.0) <= SAME * np.abs(b).max(initial=0.0))
