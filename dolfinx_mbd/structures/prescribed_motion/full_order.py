"""Full-order equations of motion of a body in a moving frame, applied without assembly.

All inertia terms at an instant are computed by one product with the scalar mass matrix. Geometric
stiffening uses the stress of each unit load (ω_iω_j, and the components of the wrench at each
interface) with inertia relief. The stiffness ∫(∇u σ₀):∇v of each load is one scalar matrix,
assembled when the load first acts; the stiffness at an instant is a linear combination of these
matrices. The wrench at a held interface balances the inertia of the rigid body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.fem.assembly import (
    ElasticProblem,
    assembled_matrix,
    in_space,
    point_motion,
    scalar_space,
)
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.operators import apply_inertia, centrifugal, load_fields, spin_matrix
from dolfinx_mbd.forms import geometric_stiffness
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES, UnitCases, gradient_measure, unit_cases
from dolfinx_mbd.structures.prescribed_motion.motion import Instant, PrescribedMotion
from dolfinx_mbd.structures.prescribed_motion.supports import (
    MeanAxes,
    SupportedMatrix,
    interface_rows,
)

SUBSET = PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN
SAME = PETSc.Mat.Structure.SAME_NONZERO_PATTERN

BALANCE_TOLERANCE = 1e-12  # a balanced load of smaller relative size is round-off
NEGLIGIBLE_FACTOR = 1e-9  # a unit load is neglected below this fraction of the largest of its kind

# The iteration for a quasi-static state ends if the relative size of a correction is below
# TOLERANCE, or below ROUND_OFF and no longer decreasing.
MAX_CORRECTIONS, TOLERANCE, ROUND_OFF = 40, 1e-10, 1e-6


class StiffeningMatrices:
    """Geometric stiffness of the unit loads and its combination at an instant."""

    def __init__(
        self, problem: ElasticProblem, interfaces: Sequence[MeshInterface], cases: UnitCases
    ) -> None:
        assert problem.materials is not None
        self.problem, self.interfaces, self.cases = problem, interfaces, cases
        V = problem.space
        W = scalar_space(V)
        p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
        self._unit = fem.Function(V)  # displacement under a unit load
        stress = problem.materials.stress(self._unit)
        self._form = compiled_form(geometric_stiffness(p, q, stress, gradient_measure(V)))
        self._sum = problem.scalar_mass.duplicate()
        self._matrices: dict[int, PETSc.Mat] = {}
        self._rigid = [(k, i) for k, i in enumerate(interfaces) if i.kind == "rigid"]
        self._rows = [interface_rows(problem, i)[:, problem.dim :] for _, i in self._rigid]
        self._rotation_stiffness: list[Array] = []
        self._largest = np.zeros(3)  # factor of each kind of unit loads so far
        num_rigid, dim = problem.num_rigid, problem.dim
        component = np.arange(num_rigid * len(interfaces)) % num_rigid
        # Kinds of the unit loads: 0 spin, 1 force, 2 moment
        self._kind = np.concatenate([np.zeros(6, dtype=int), np.where(component < dim, 1, 2)])

    def set(self, instant: Instant, wrenches: Sequence[Array]) -> None:
        """Combine the matrices for the spin at an instant and the wrenches at all interfaces."""
        w, dim = instant.omega, self.problem.dim
        spins = [w[i] * w[j] for i, j in SPINS]
        factors = np.concatenate([spins, *(F[WRENCH_INDICES[dim]] for F in wrenches)])
        np.maximum.at(self._largest, self._kind, np.abs(factors))
        active = np.abs(factors) > NEGLIGIBLE_FACTOR * self._largest[self._kind]
        self._sum.zeroEntries()
        for c in np.flatnonzero(active):
            self._sum.axpy(factors[c], self._matrix(int(c)), structure=SAME)
        weights = np.where(active, factors, 0.0)
        # Forces f of a rigid interface do work in the second-order motion of its nodes; with their
        # virial V = Σ f⊗ξ, the stiffness is sym V − tr V I, see `reduction.stiffening`
        virials = (np.tensordot(weights, self.cases.virials[:, k], axes=1) for k, _ in self._rigid)
        matrices = [(V + V.T) / 2 - np.trace(V) * np.eye(3) for V in virials]
        self._rotation_stiffness = matrices if dim == 3 else [B[2:, 2:] for B in matrices]

    def _matrix(self, case: int) -> PETSc.Mat:
        """Return the geometric stiffness under the unit load of a case.

        All components of the displacement have the same matrix, so that it has one row per node.
        """
        if case not in self._matrices:
            # The form integrates over the plane, and the stress is linear in the displacement
            thickness = 1.0 if self.problem.thickness is None else self.problem.thickness
            displacement = thickness * self.cases.displacements[:, case]
            as_function(self.problem.space, displacement, self._unit)
            self._matrices[case] = assembled_matrix(self._form)
        return self._matrices[case]

    def apply(self, u: Array) -> Array:
        """Return K_σ u."""
        fields = multiply(self._sum, u.reshape(-1, self.problem.dim))
        result = np.ascontiguousarray(fields).ravel()
        for (_, i), rows, stiffness in zip(
            self._rigid, self._rows, self._rotation_stiffness, strict=True
        ):
            theta = self.problem.comm.allreduce(u[i.dofs] @ rows)
            result[i.dofs] += rows @ (stiffness @ theta)
        return result

    def destroy(self) -> None:
        """Destroy all matrices."""
        for A in (self._sum, *self._matrices.values()):
            A.destroy()


class FullOrder:
    """`Equations` of a body with all degrees of freedom of its mesh.

    The interfaces `held` move with the frame; if none is held, the frame is the mean-axis frame.
    `damping` has the attributes `mass` and `stiffness` of C = mass M + stiffness K. Without
    `couplings`, the Coriolis, centrifugal and Euler operators G, K_ω and K_α are omitted, and the
    motion appears in the loads only.
    """

    start_names = "displacements u and velocities v of the owned degrees of freedom of this rank"

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: Sequence[MeshInterface],
        held: Sequence[str],
        motion: PrescribedMotion,
        *,
        damping: Any = None,
        stiffening: bool = False,
        couplings: bool = True,
        prefix: str,
        options: Options = None,
    ) -> None:
        self.problem, self.interfaces, self.held = problem, tuple(interfaces), tuple(held)
        self.comm, self.size = problem.comm, problem.num_owned
        self.motion, self.couplings = motion, couplings
        self.damping = Rayleigh() if damping is None else damping
        self._solver: dict[str, Any] = {"prefix": prefix, "options": options}
        self._fields = load_fields(problem)
        self._rows = {i.name: (i.dofs, interface_rows(problem, i)) for i in interfaces}
        self._mean_axes = None if held else MeanAxes(problem)
        self._static: SupportedMatrix | None = None  # K
        self._factor: SupportedMatrix | None = None  # S of a step
        self._stiffening: StiffeningMatrices | None = None
        if stiffening:
            static = self._statics()
            inertia = problem.apply_mass(problem.rigid_motions())
            solved = static.solve_held(np.hstack([problem.spin_loads(), inertia]))
            cases = unit_cases(
                problem, self.interfaces, static.constraint, solved[:, :6], solved[:, 6:]
            )
            self._stiffening = StiffeningMatrices(problem, self.interfaces, cases)

    # ---- factorizations

    def _statics(self) -> SupportedMatrix:
        """Return K on the allowed motions, factorized at the first call; see `end_of_start`."""
        if self._static is None:
            self._static = SupportedMatrix(
                self.problem,
                self.problem.stiffness,
                self.interfaces,
                self.held,
                floating=not self.held,
                **self._solver,
            )
        return self._static

    def end_of_start(self) -> None:
        """Destroy the factorization that only the start needs."""
        if self._static is not None:
            self._static.destroy()
            self._static = None

    def _factorize_sum(self, by_mass: float, by_stiffness: float) -> SupportedMatrix:
        """Factorize by_mass M + by_stiffness K."""
        S, M = self.problem.stiffness.copy(), self.problem.mass()
        S.scale(by_stiffness)
        S.axpy(by_mass, M, structure=SUBSET)
        M.destroy()
        restricting = [i for i in self.interfaces if i.kind == "rigid" or i.name in self.held]
        factor = SupportedMatrix(
            self.problem, S, restricting, self.held, free=False, **self._solver
        )
        S.destroy()
        return factor

    def factorize(self, velocity_factor: float, displacement_factor: float) -> None:
        """Prepare `solve` for S = M + velocity_factor C + displacement_factor K."""
        c = self.damping
        self._factor = self._factorize_sum(
            1 + velocity_factor * float(c.mass),
            displacement_factor + velocity_factor * float(c.stiffness),
        )

    def destroy(self) -> None:
        """Destroy factors and matrices, except the matrices of the problem."""
        self.end_of_start()
        for part in (self._factor, self._stiffening):
            if part is not None:
                part.destroy()

    # ---- an instant

    def move_to(self, t: float) -> None:
        """Set operators and loads for the time t."""
        instant = self.motion(t)
        dim = self.problem.dim
        spin, angular_acceleration = (
            spin_matrix(w)[:dim, :dim] for w in (instant.omega, instant.alpha)
        )
        acceleration = centrifugal(instant.omega)[:dim, :dim] + angular_acceleration
        self.load = -(
            self._fields @ np.vstack([instant.acceleration[:dim], acceleration.T])
        ).ravel()
        factor = float(self.couplings)
        self._velocity_matrix, self._displacement_matrix = factor * 2 * spin, factor * acceleration
        for name, wrench in instant.wrenches.items():
            dofs, rows = self._rows[name]
            self.load[dofs] += rows @ wrench[WRENCH_INDICES[dim]]
        if self._stiffening is not None:
            self._stiffening.set(instant, self._interface_wrenches(instant))

    def _interface_wrenches(self, instant: Instant) -> list[Array]:
        """Return the wrenches at all interfaces.

        That at the held one balances `load`: the inertia of the rigid body and the other wrenches.
        """
        dim = self.problem.dim
        wrenches = {
            interface.name: instant.wrenches.get(interface.name, np.zeros(6))
            for interface in self.interfaces
        }
        for interface in self.interfaces:
            if interface.name in self.held:
                x, f = in_space(self.problem.positions), in_space(self.load.reshape(-1, dim))
                local = np.concatenate([f.sum(axis=0), np.cross(x, f).sum(axis=0)])
                resultant = self.comm.allreduce(local)[WRENCH_INDICES[dim]]
                # point_motionᵀ maps a wrench at the point to its resultant about the origin
                wrench = -np.linalg.solve(point_motion(interface.point, dim).T, resultant)
                wrenches[interface.name][WRENCH_INDICES[dim]] = wrench
        return list(wrenches.values())

    def balance(self, u: Array, v: Array) -> Array:
        """Return f - (C + G) v - (K + K_σ + K_ω + K_α) u."""
        c, dim = self.damping, self.problem.dim  # C = c.mass M + c.stiffness K
        force = self.load - multiply(self.problem.stiffness, (u + c.stiffness * v)[:, None])[:, 0]
        return force - self._inertia(v, u, c.mass * np.eye(dim)) - self._stiffening_forces(u)

    def motion_terms(self, u: Array, v: Array) -> Array:
        """Return G v + (K_σ + K_ω + K_α) u."""
        return self._inertia(v, u) + self._stiffening_forces(u)

    def _inertia(self, v: Array, u: Array, drag: Array | float = 0.0) -> Array:
        """Return (M_s ⊗ (2ω̃ + drag)) v + (M_s ⊗ (ω̃ω̃ + α̃)) u with one product.

        M_s is the mass matrix of a scalar field.
        """
        dim = self.problem.dim
        fields = v.reshape(-1, dim) @ (self._velocity_matrix + drag).T
        fields += u.reshape(-1, dim) @ self._displacement_matrix.T
        return apply_inertia(self.problem, np.eye(dim), fields.ravel())

    def _stiffening_forces(self, u: Array) -> Array | float:
        """Return K_σ u."""
        return 0.0 if self._stiffening is None else self._stiffening.apply(u)

    # ---- solutions

    def solve(self, r: Array) -> Array:
        """Return S⁻¹ r on the allowed motions, with S of the last `factorize`.

        With mean axes, the resultants of r are removed.
        """
        assert self._factor is not None
        return self._factor.solve(self._balanced(r))

    def _balanced(self, r: Array) -> Array:
        """Return loads without resultants if the frame is the mean-axis frame."""
        return r if self._mean_axes is None else self._mean_axes.loads(r)

    def dot(self, x: Array, y: Array) -> float:
        """Return xᵀy over all ranks."""
        return float(self.comm.allreduce(float(x @ y)))

    def static_solution(self, t: float, v: Array | None = None, a: Array | None = None) -> Array:
        """Return the solution u of (K + K_σ + K_ω + K_α) u = f - (C + G) v - M a at time t.

        v and a are specified together, or are zero.
        """
        self.move_to(t)
        zero: Array = np.zeros(self.size)
        load: Array = self.load
        u = zero.copy()
        if v is not None and a is not None:
            load = self.balance(zero, v) - self.problem.apply_mass(a[:, None])[:, 0]
        balanced = self._balanced(load)
        if self.dot(balanced, balanced) <= BALANCE_TOLERANCE**2 * self.dot(load, load):
            return u
        size, previous = 0.0, np.inf
        for k in range(MAX_CORRECTIONS):
            r = load - self.motion_terms(u, zero)
            if k:
                r -= multiply(self.problem.stiffness, u[:, None])[:, 0]
            change = self._statics().solve(self._balanced(r))
            if self._mean_axes is not None:
                change = self._mean_axes.motions(change)
            u = u + change
            size = max(size, np.sqrt(self.dot(u, u)))
            norm = np.sqrt(self.dot(change, change))
            round_off = norm > previous / 2 and norm <= ROUND_OFF * size
            if norm <= TOLERANCE * size or round_off:
                return u
            previous = norm
        raise SolverError(
            f"the quasi-static state at t = {t:g} s did not converge: the terms of the motion are "
            "not small relative to the stiffness; use elastic_start='undeformed'"
        )

    def acceleration(self, t: float, u: Array, v: Array) -> Array:
        """Return the solution a of M a = f - (C + G) v - (K + K_σ + K_ω + K_α) u at time t."""
        self.move_to(t)
        mass = self._factorize_sum(1.0, 0.0)
        a = mass.solve(self._balanced(self.balance(u, v)))
        mass.destroy()
        return a
