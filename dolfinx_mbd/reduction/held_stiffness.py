"""Solvers with the stiffness of a body whose interfaces are all held, or of a free body.

`DirectSolver` solves K u = f with held rows by one Cholesky factorization of K. The factor of a
large body has single precision (`fem/linalg/single_precision.py`); its modes are then computed by
block Davidson iterations instead of block Lanczos iterations.

`BorderedSolver` solves K u + Cᵀλ = f, C u = g with the rows C of averaged interfaces. If a rigid
interface holds the body, u = K⁻¹(f - Cᵀλ) gives a small system for λ. Otherwise K has rigid
motions. Then λ = λ₀ + N ν: λ₀ balances the loads, and the columns of N span the multipliers that
are in equilibrium. K⁻¹ is therefore applied only to forces in equilibrium. A statically determinate
support, whose reactions are zero, holds the body, and a rigid motion R a is found with ν.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.free_motions import centred_motions, determinate_dofs
from dolfinx_mbd.fem.interfaces.averaged import border_rows
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.iterative.modes import lowest_modes_iteratively
from dolfinx_mbd.fem.iterative.solver import IterativeSolver
from dolfinx_mbd.fem.iterative.solver_choice import Solver, choose_solver
from dolfinx_mbd.fem.linalg.block_lanczos import Breakdown
from dolfinx_mbd.fem.linalg.blocks import gram, multiply, solve
from dolfinx_mbd.fem.linalg.davidson import davidson_modes
from dolfinx_mbd.fem.linalg.eigenvalues import block_modes, lowest_modes, uses_block_lanczos
from dolfinx_mbd.fem.linalg.factorization import (
    FactorizationError,
    cholesky,
    held_cholesky,
)
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.linalg.single_precision import SingleFactor, single_cholesky, single_factor
from dolfinx_mbd.fem.linalg.sparse_matrices import bordered_mass, bordered_stiffness, constrain
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.phases import log

SINGULAR_LIMIT = 1e-13  # reciprocal condition number below which the small system is singular


class DirectSolver:
    """Solver without averaged interfaces.

    The stiffness of the problem must not change. `held` are the owned degrees of freedom that rigid
    interfaces hold; `settings` are prefix and options of PETSc. With `double` the factor has double
    precision. All methods are collective.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        held: NDArray[np.int32],
        *,
        double: bool = False,
        **settings: Any,
    ) -> None:
        # `BorderedSolver` may hold other degrees of freedom in the factor than rigid interfaces do
        self._rigid, self._unit_rows = held, held
        self._problem, self._double, self._settings = problem, double, settings
        self._ksp = self._factorized()
        self._operator = self._ksp.getOperators()[0]  # has the unit rows if it is a copy

    def _factorized(self) -> PETSc.KSP:
        """Return a new factor of K with the unit rows `_unit_rows`."""
        K, settings = self._problem.stiffness, self._settings
        single = None if self._double else single_cholesky(K, self._unit_rows, **settings)
        return single or held_cholesky(K, self._unit_rows, **settings)

    def solve(self, f: Array, g: Array | None = None) -> tuple[Array, Array]:
        """Return displacements (owned dofs, k), and multipliers of shape (0, k)."""
        return solve(self._factor(), f), np.zeros((0, f.shape[1]))

    def modes(self, count: int, num_loose: int = 0) -> tuple[Array, Array]:
        """Return ω² and the vectors of the lowest modes; see `HeldStiffness.modes`."""
        M = self._problem.mass()
        constrain(M, self._unit_rows, 0.0)
        with destroying(self._problem.comm, M):
            modes = self._single_modes(M, count, num_loose, len(self._unit_rows))
            return modes or lowest_modes(
                self._operator,
                M,
                self._factor(),
                count,
                self._unit_rows,
                num_loose=num_loose,
                **self._settings,
            )

    def _single_modes(
        self, M: PETSc.Mat, count: int, num_loose: int, held: int
    ) -> tuple[Array, Array] | None:
        """Return modes by a factor in single precision, or None without such a factor.

        `M` has zero rows at rigid interfaces; `held` is the number of constraints.
        """
        factor, problem = single_factor(self._ksp), self._problem
        free = problem.num_dofs - held
        if factor is None or not uses_block_lanczos(count, free, **self._settings):
            return None

        def stiffness(X: Array) -> Array:
            Y = multiply(problem.stiffness, X)
            Y[self._rigid] = 0.0
            return Y

        scale = factor.scale.copy()
        scale[self._rigid] = 0.0
        try:
            precondition = partial(self._approximate, factor)
            return davidson_modes(
                stiffness, M, precondition, count, scale=scale, num_loose=num_loose
            )
        except Breakdown as error:
            log.warning("block Davidson: %s; block Lanczos is used instead", error)
            return None

    def _approximate(self, factor: SingleFactor, R: Array) -> Array:
        """Return K⁻¹R approximately."""
        return factor.apply(R)

    def _factor(self) -> PETSc.KSP:
        """Return the factor; compute it again if SLEPc has changed the KSP."""
        if self._ksp.getOperators()[0].handle != self._operator.handle:
            self.destroy()
            self._ksp = self._factorized()
            self._operator = self._ksp.getOperators()[0]
        return self._ksp

    def destroy(self) -> None:
        """Free the factor."""
        self._operator.destroy()
        self._ksp.destroy()


class BorderedSolver(DirectSolver):
    """Solver with averaged interfaces; `border` holds the owned rows of Cᵀ. See `DirectSolver`.

    `held` are the owned degrees of freedom that rigid interfaces hold. The factor of K has unit
    rows there. If they are absent on all ranks and `free` is True, K has rigid motions, and the
    factor has unit rows at the degrees of freedom of a statically determinate support instead.

    `free` is False if K resists rigid motions because K contains a multiple of the mass matrix. A
    `FactorizationError` is raised if the mesh is too coarse to distinguish the motions of the
    interfaces.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        held: NDArray[np.int32],
        border: scipy.sparse.csr_matrix,
        *,
        free: bool = True,
        double: bool = False,
        **settings: Any,
    ) -> None:
        self.comm, self._problem, self._rigid = problem.comm, problem, held
        self._double, self._settings = double, settings
        self._border, count = border, border.shape[1]
        self._resultant_map = np.zeros((count, 0))  # maps the resultants Rᵀf to λ₀
        self._R: Array = np.zeros((problem.num_owned, 0))
        self._equilibrium_basis, self._unit_rows = np.eye(count), held  # N; rows of the factor
        if free and not self.comm.allreduce(len(held)):
            self._R = centred_motions(problem)
            CR = self._motions(self._R)
            size = np.linalg.norm(CR, axis=0)
            left, values, right = np.linalg.svd(CR / size)
            rank = len(values)
            self._resultant_map = left[:, :rank] / values @ right / size
            self._equilibrium_basis = left[:, rank:]
            self._unit_rows = determinate_dofs(self.comm, self._R)
        self._ksp = self._factorized()
        self._operator = self._ksp.getOperators()[0]
        forces = border @ self._equilibrium_basis
        forces[self._unit_rows] = 0.0
        self._response = solve(self._ksp, np.asfortranarray(forces))  # U = K⁻¹ Cᵀ N
        parts = self._motions(np.hstack([self._response, -self._R]))  # C [U, −R] for (ν, a)
        self._scale = 1.0 / np.linalg.norm(parts, axis=0)
        self._small = parts * self._scale
        values = np.linalg.svd(self._small / np.linalg.norm(self._small, axis=1)[:, None])[1]
        if not values[-1] > SINGULAR_LIMIT * values[0]:
            self.destroy()
            raise FactorizationError(
                "the stiffness with averaged interfaces is singular: a part of the body is not "
                "held, or the mesh is too coarse to distinguish the motions of the interfaces"
            )

    def solve(self, f: Array, g: Array | None = None) -> tuple[Array, Array]:
        """Return displacements (owned dofs, k) and multipliers (constraints, k).

        `f` contains prescribed displacements in the rows of rigid interfaces and forces in the
        other rows; `g` contains the values of C u, shape (constraints, k), zero by default.
        """
        B, reactions = self._balanced(f)
        u = solve(self._ksp, B)
        unknowns = self._constrain(u, g)
        return u, reactions + self._equilibrium_basis @ unknowns[: self._equilibrium_basis.shape[1]]

    def _balanced(self, f: Array) -> tuple[Array, Array]:
        """Return forces in equilibrium, f - Cᵀλ₀, and λ₀."""
        reactions = self._resultant_map @ gram(self.comm, self._R, f)
        B = np.asfortranarray(f - self._border @ reactions)
        if self._R.shape[1]:
            B[self._unit_rows] = 0.0
        return B, reactions

    def _constrain(self, u: Array, g: Array | None = None) -> Array:
        """Change u in place so that C u = g, and return the unknowns of the small system."""
        residual = self._motions(u)
        if g is not None:
            residual -= g
        unknowns = self._scale[:, None] * np.linalg.solve(self._small, residual)
        u += np.hstack([-self._response, self._R]) @ unknowns
        return np.asarray(unknowns)

    def _approximate(self, factor: SingleFactor, R: Array) -> Array:
        """Return the solution approximately, and subtract the forces Cᵀλ from R in place.

        With N and the accurate response U = K⁻¹CᵀN, the multipliers Nν follow from
        (NᵀC U) ν = UᵀR. They do not depend on the approximate factor, which therefore acts on small
        forces only.
        """
        basis = self._equilibrium_basis
        R[:] = self._balanced(R)[0]
        small = basis.T @ self._motions(self._response)
        R -= self._border @ (basis @ np.linalg.solve(small, gram(self.comm, self._response, R)))
        R[self._unit_rows] = 0.0
        u = factor.apply(R)
        self._constrain(u)
        return u

    def modes(self, count: int, num_loose: int = 0) -> tuple[Array, Array]:
        """Return ω² and the vectors of the lowest modes with C u = 0."""
        M = self._problem.mass()
        constrain(M, self._rigid, 0.0)
        held = self._border.shape[1] + self.comm.allreduce(len(self._rigid))
        with destroying(self.comm, M):
            modes = self._single_modes(M, count, num_loose, held)
            if modes is not None:
                return modes
            if uses_block_lanczos(count, self._problem.num_dofs - held, **self._settings):
                try:
                    return block_modes(self.comm, lambda B: self.solve(B)[0], M, count, num_loose)
                except Breakdown as error:
                    log.warning("block Lanczos: %s; SLEPc's Krylov-Schur is used instead", error)
            return self._bordered_modes(M, count)

    def _bordered_modes(self, M: PETSc.Mat, count: int) -> tuple[Array, Array]:
        """Solve the bordered eigenvalue problem by SLEPc, or by LAPACK if it is small."""
        number = self._border.shape[1]
        inner = self._problem.stiffness.copy()
        constrain(inner, self._rigid, 1.0)
        K, mass = bordered_stiffness(inner, self._border), bordered_mass(M, number)
        ksp = cholesky(K, negative=number, **self._settings)
        values, vectors = lowest_modes(
            K, mass, ksp, count, self._rigid, num_border=number, **self._settings
        )
        for item in (ksp, K, mass, inner):
            item.destroy()
        return values, vectors[: self._problem.num_owned]

    def _motions(self, u: Array) -> Array:
        """Return C u, equal on all ranks."""
        return gram(self.comm, self._border, u)  # type: ignore[arg-type]


class HeldStiffness:
    """The stiffness of a body whose interfaces are all held; its methods are collective.

    Rows of rigid interfaces are held; multipliers impose the constraints of averaged interfaces.
    `free` is described in `BorderedSolver`. `dofs` are the owned degrees of freedom that rigid
    interfaces hold, and `averaged` are the indices of the coordinates of averaged interfaces.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        prefix: str,
        options: Options,
        solver: Solver = "direct",
        *,
        free: bool = True,
    ) -> None:
        self.problem, self.interfaces = problem, interfaces
        rigid = [i.dofs for i in interfaces if i.kind == "rigid"]
        self.dofs = np.concatenate([*rigid, np.zeros(0, dtype=np.int32)])
        border = border_rows(problem.num_owned, interfaces)
        averaged = [i.rows is not None for i in interfaces]
        self.averaged = np.flatnonzero(np.repeat(averaged, problem.num_rigid))
        settings: dict[str, Any] = {"prefix": prefix, "options": options}
        self._solver: DirectSolver | BorderedSolver | IterativeSolver
        chosen = choose_solver(problem, solver)
        if chosen == "iterative":
            self._solver = IterativeSolver(
                problem.stiffness, problem.space, self.dofs, border, **settings
            )
            return
        settings["double"] = chosen == "double"
        if border is None:
            self._solver = DirectSolver(problem, self.dofs, **settings)
        else:
            free = free and not problem.supported
            self._solver = BorderedSolver(problem, self.dofs, border, free=free, **settings)

    def destroy(self) -> None:
        """Free the solver."""
        self._solver.destroy()

    def constraint_modes(self) -> tuple[Array, Array | None]:
        """Return one mode per interface coordinate, and the reactions at averaged interfaces.

        The reactions have the shape (coordinates of averaged interfaces, modes), or are None.
        """
        problem, num_rigid = self.problem, self.problem.num_rigid
        motion = np.zeros((problem.num_owned, num_rigid * len(self.interfaces)), order="F")
        for k, interface in enumerate(self.interfaces):
            if interface.kind == "rigid":
                motion[interface.dofs, num_rigid * k : num_rigid * k + num_rigid] = (
                    problem.rigid_motions(interface.point, interface.blocks)
                )
        B = -multiply(problem.stiffness, motion)
        B[self.dofs] = motion[self.dofs]
        del motion
        units = np.eye(B.shape[1])[self.averaged]
        modes, multipliers = self._solver.solve(B, units)
        return modes, -multipliers if len(units) else None

    def solve_body(self, loads: Array) -> Array:
        """Return displacements (owned dofs, k) under nodal forces with all interfaces held."""
        B = np.array(loads, order="F")
        B[self.dofs] = 0.0
        return self._solver.solve(B)[0]

    def solve_moved(self, loads: Array, motion: Array | None, averages: Array | None) -> Array:
        """Return displacements under nodal forces while the interfaces move.

        Args:
            loads: Nodal forces, shape (owned dofs, k).
            motion: Displacements of rigid interfaces for the first columns, zero elsewhere, shape
                (owned dofs, at most k).
            averages: Motion C u of averaged interfaces, shape (coordinates, k).
        """
        B = np.array(loads, order="F")
        B[self.dofs] = 0.0
        if motion is not None:
            first = slice(0, motion.shape[1])
            B[:, first] -= multiply(self.problem.stiffness, motion)
            B[self.dofs, first] = motion[self.dofs]
        return self._solver.solve(B, averages)[0]

    def modes(self, count: int, num_loose: int = 0) -> tuple[Array, Array]:
        """Return ω² and the vectors of the lowest modes.

        The last `num_loose` modes may be less accurate: their eigenvalues have errors of about
        1e-10, and their vectors of 1e-5.
        """
        if isinstance(self._solver, IterativeSolver):
            return lowest_modes_iteratively(self._solver, self.problem, count)
        return self._solver.modes(count, num_loose)


class FreeStiffness:
    """The stiffness of a body without interfaces, for forces in equilibrium.

    The solutions are M-orthogonal to the rigid motions R̂, which are M-orthonormal.
    """

    def __init__(self, problem: ElasticProblem, rigid: Array, prefix: str) -> None:
        self._problem, self._rigid = problem, rigid
        self._inertia = problem.apply_mass(rigid)
        self._dofs = determinate_dofs(problem.comm, rigid)
        self._K = problem.stiffness.copy()  # the original may change, as by a prestress
        constrain(self._K, self._dofs, 1.0)
        self._ksp = cholesky(self._K, prefix=prefix, options=None)
        self.dofs = np.zeros(0, dtype=np.int32)  # degrees of freedom held by interfaces

    def solve_body(self, loads: Array) -> Array:
        """Return displacements (owned dofs, k); the resultants of the loads are removed."""
        comm = self._problem.comm
        B = np.asfortranarray(loads - self._inertia @ gram(comm, self._rigid, loads))
        B[self._dofs] = 0.0
        u = solve(self._ksp, B)
        return np.asfortranarray(u - self._rigid @ gram(comm, self._inertia, u))

    def solve_moved(self, loads: Array, motion: Array | None, averages: Array | None) -> Array:
        """Return the result of `solve_body`, because the body has no interfaces."""
        return self.solve_body(loads)

    def destroy(self) -> None:
        """Free the factor and the matrix."""
        self._ksp.destroy()
        self._K.destroy()
