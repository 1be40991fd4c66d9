"""Equations of motion of a body in a moving frame at full order, applied and never assembled.

All inertia terms of an instant are one product with the scalar mass matrix (`operators`). Geometric
stiffening is that of `stiffening`: the stress of each unit load (ω_iω_j, and the components of the
wrench at each interface) with inertia relief, whose geometric stiffness ∫(∇u σ₀):∇v is one scalar
matrix, assembled when its load first acts; an instant combines them. The wrench at a held interface
is the one that balances the motion of the body as a rigid one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem, in_space, point_motion
from dolfinx_mbd.fem.operators import apply_inertia, centrifugal, load_fields, spin_matrix
from dolfinx_mbd.forms import geometric_stiffness
from dolfinx_mbd.linalg.blocks import multiply
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.prescribed_motion.motion import Instant, PrescribedMotion
from dolfinx_mbd.prescribed_motion.supports import MeanAxes, Supported, interface_rows
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES, UnitCases, gradient_measure, unit_cases

__all__ = ["FullOrder", "StiffeningMatrices"]

Array = NDArray[np.float64]
SUBSET = PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN
SAME = PETSc.Mat.Structure.SAME_NONZERO_PATTERN

NEGLIGIBLE = 1e-9
"""Size of a unit load, over the greatest of its kind so far, up to which it does not stiffen."""


MAX_CORRECTIONS = 40
"""Of a quasi-static state for the terms of the motion."""

ROUND_OFF = 1e-6
"""Relative size of a correction below which it is round-off if it no longer falls."""


class StiffeningMatrices:
    """Geometric stiffness of the unit loads and its combination at an instant.

    Args:
        problem: With its materials.
        interfaces: All of them.
        cases: From `unit_cases`.

    Note: Collective, as all methods are.
    """

    def __init__(
        self, problem: ElasticProblem, interfaces: Sequence[MeshInterface], cases: UnitCases
    ) -> None:
        assert problem.materials is not None
        self.problem, self.interfaces, self.cases = problem, tuple(interfaces), cases
        V = problem.space
        W = fem.functionspace(V.mesh, V.ufl_element().sub_elements[0])
        p, q, self._unit = ufl.TrialFunction(W), ufl.TestFunction(W), fem.Function(V)
        stress = problem.materials.stress(self._unit)
        self._form = fem.form(geometric_stiffness(p, q, stress, gradient_measure(V)))
        self._sum = problem.scalar_mass.duplicate()
        self._matrices: dict[int, PETSc.Mat] = {}
        self._turning = [i for i in self.interfaces if i.kind == "rigid"]
        self._rows = {i.name: interface_rows(problem, i)[:, problem.dim :] for i in self._turning}
        self._turns: dict[str, Array] = {}
        self._greatest = np.zeros(3)
        per, dim = problem.num_rigid, problem.dim
        kinds = np.arange(6 + per * len(self.interfaces))
        self._kind = np.where(kinds < 6, 0, np.where((kinds - 6) % per < dim, 1, 2))

    def set(self, instant: Instant, wrenches: Sequence[Array]) -> None:
        """Combine for the spin of an instant and the wrenches at all interfaces."""
        w, dim = instant.omega, self.problem.dim
        spins = [w[i] * w[j] for i, j in SPINS]
        factors = np.concatenate([spins, *(F[WRENCH_INDICES[dim]] for F in wrenches)])
        np.maximum.at(self._greatest, self._kind, np.abs(factors))
        active = np.abs(factors) > NEGLIGIBLE * self._greatest[self._kind]
        self._sum.zeroEntries()
        for c in np.flatnonzero(active):
            self._sum.axpy(factors[c], self._matrix(int(c)), structure=SAME)
        weights = np.where(active, factors, 0.0)
        for k, i in enumerate(self.interfaces):
            if i.kind == "rigid":
                V = np.tensordot(weights, self.cases.virials[:, k], axes=1)
                B = (V + V.T) / 2 - np.trace(V) * np.eye(3)
                self._turns[i.name] = B if dim == 3 else B[2:, 2:]

    def _matrix(self, c: int) -> PETSc.Mat:
        if c not in self._matrices:
            across = 1.0 if self.problem.thickness is None else self.problem.thickness
            self._unit.x.array[: self.problem.num_owned] = across * self.cases.displacements[:, c]
            self._unit.x.scatter_forward()
            A = fem_petsc.assemble_matrix(self._form)
            A.assemble()
            self._matrices[c] = A
        return self._matrices[c]

    def apply(self, u: Array) -> Array:
        """K_σ u."""
        fields = multiply(self._sum, u.reshape(-1, self.problem.dim))
        out = np.ascontiguousarray(fields).ravel()
        for i in self._turning:
            rows = self._rows[i.name]
            theta = self.problem.comm.allreduce(u[i.dofs] @ rows)
            out[i.dofs] += rows @ (self._turns[i.name] @ theta)
        return out

    def destroy(self) -> None:
        """Free all matrices."""
        for A in (self._sum, *self._matrices.values()):
            A.destroy()


class FullOrder:
    """`Equations` of a body on its mesh.

    Args:
        problem: Matrices of the free body.
        interfaces: All of them.
        held: Names of those that move with the frame; none: the frame is the mean axis.
        motion: Of the frame, and the wrenches.
        damping: Anything with `mass` and `stiffness`, C = mass M + stiffness K.
        stiffening: Whether K_σ acts.
        couplings: Whether G, K_ω and K_α act; without: loads only, the "frozen" motion.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Note: Collective, as all methods are.
    """

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
        self.motion, self.couplings = motion, couplings
        self.damping = Rayleigh() if damping is None else damping
        self._solver: dict[str, Any] = {"prefix": prefix, "options": options}
        self._fields = load_fields(problem)
        self._rows = {i.name: interface_rows(problem, i) for i in interfaces}
        self.mean_axes = None if held else MeanAxes(problem)
        self._restricting = [i for i in interfaces if i.kind == "rigid" or i.name in held]
        self.static: Supported | None = None
        self.stiffening: StiffeningMatrices | None = None
        if stiffening:
            static = self.statics()
            inertia = problem.apply_mass(problem.rigid_motions())
            solved = static.solve_held(np.hstack([problem.spin_loads(), inertia]))
            cases = unit_cases(
                problem, self.interfaces, static.constraint, solved[:, :6], solved[:, 6:]
            )
            self.stiffening = StiffeningMatrices(problem, interfaces, cases)
        self._factor: Supported | None = None
        self._instant: Instant | None = None

    # ---- factorizations -------------------------------------------------------------------------
    def statics(self) -> Supported:
        """K on the allowed motions, factorized when first asked for; see `end_of_start`."""
        if self.static is None:
            self.static = Supported(
                self.problem,
                self.problem.stiffness,
                self.interfaces,
                self.held,
                floating=not self.held,
                **self._solver,
            )
        return self.static

    def end_of_start(self) -> None:
        """Free what only the start needed."""
        if self.static is not None:
            self.static.destroy()
            self.static = None

    def _combined(self, by_mass: float, by_stiffness: float) -> Supported:
        """by_mass M + by_stiffness K, factorized."""
        S = self.problem.stiffness.copy()
        S.scale(by_stiffness)
        M = self.problem.mass()
        S.axpy(by_mass, M, structure=SUBSET)
        M.destroy()
        factor = Supported(
            self.problem, S, self._restricting, self.held, free=False, **self._solver
        )
        S.destroy()
        return factor

    def factorize(self, by_speed: float, by_move: float) -> None:
        """Prepare `solve` for S = M + by_speed C + by_move K."""
        c = self.damping
        self._factor = self._combined(
            1 + by_speed * float(c.mass), by_move + by_speed * float(c.stiffness)
        )

    @property
    def solves(self) -> int:
        """Solves with S so far."""
        return 0 if self._factor is None else self._factor.solves

    def destroy(self) -> None:
        """Free factors and matrices, all but those of the problem."""
        self.end_of_start()
        if self._factor is not None:
            self._factor.destroy()
        if self.stiffening is not None:
            self.stiffening.destroy()

    # ---- an instant -----------------------------------------------------------------------------
    def move_to(self, t: float) -> None:
        """Make operators and loads those of a time."""
        self._instant = now = self.motion(t)
        dim = self.problem.dim
        spin, turn = (spin_matrix(w)[:dim, :dim] for w in (now.omega, now.alpha))
        spin_square = centrifugal(now.omega)[:dim, :dim]
        shift = now.acceleration[:dim]
        self.load = -(self._fields @ np.vstack([shift, (spin_square + turn).T])).ravel()
        on = float(self.couplings)
        self._by_speed, self._by_move = on * 2 * spin, on * (spin_square + turn)
        for name, wrench in now.wrenches.items():
            self._add_wrench(self.load, name, wrench)
        if self.stiffening is not None:
            self.stiffening.set(now, self._all_wrenches(now))

    def _add_wrench(self, load: Array, name: str, wrench: Array) -> None:
        interface = next(i for i in self.interfaces if i.name == name)
        load[interface.dofs] += self._rows[name] @ wrench[WRENCH_INDICES[self.problem.dim]]

    def _all_wrenches(self, now: Instant) -> list[Array]:
        """At all interfaces; at the held one what balances the rigid body."""
        wrenches = {i.name: now.wrenches.get(i.name, np.zeros(6)) for i in self.interfaces}
        if self.held:
            held = next(i for i in self.interfaces if i.name in self.held)
            rows = WRENCH_INDICES[self.problem.dim]
            about_origin = self._resultant()
            lever = point_motion(held.point, self.problem.dim).T
            wrenches[held.name] = np.zeros(6)
            wrenches[held.name][rows] = -np.linalg.solve(lever, about_origin)
        return [wrenches[i.name] for i in self.interfaces]

    def _resultant(self) -> Array:
        """Of the load, about the origin, as work on the rigid motions."""
        x, f = in_space(self.problem.positions), in_space(self.load.reshape(-1, self.problem.dim))
        local = np.concatenate([f.sum(axis=0), np.cross(x, f).sum(axis=0)])
        total: Array = self.problem.comm.allreduce(local)
        return total[WRENCH_INDICES[self.problem.dim]]

    def balance(self, u: Array, v: Array) -> Array:
        """f - (C + G) v - (K + K_σ + K_ω + K_α) u."""
        c, dim = self.damping, self.problem.dim
        force = self.load - multiply(self.problem.stiffness, (u + c.stiffness * v)[:, None])[:, 0]
        return force - self._inertia(v, u, c.mass * np.eye(dim)) - self._stiffened(u)

    def moving(self, v: Array, u: Array) -> Array:
        """G v + (K_σ + K_ω + K_α) u."""
        return self._inertia(v, u) + self._stiffened(u)

    def _inertia(self, v: Array, u: Array, drag: Array | float = 0.0) -> Array:
        """(M_s ⊗ (2ω̃ + drag)) v + (M_s ⊗ (ω̃ω̃ + α̃)) u, one product."""
        dim = self.problem.dim
        fields = v.reshape(-1, dim) @ (self._by_speed + drag).T
        fields += u.reshape(-1, dim) @ self._by_move.T
        return apply_inertia(self.problem, np.eye(dim), fields.ravel())

    def _stiffened(self, u: Array) -> Array | float:
        return 0.0 if self.stiffening is None else self.stiffening.apply(u)

    # ---- solutions ------------------------------------------------------------------------------
    def solve(self, r: Array) -> Array:
        """S⁻¹ r on the allowed motions; with mean axes r less its resultants."""
        assert self._factor is not None
        return self._factor.solve(r if self.mean_axes is None else self.mean_axes.loads(r))

    def dot(self, x: Array, y: Array) -> float:
        """Over all ranks."""
        return float(self.problem.comm.allreduce(float(x @ y)))

    def static_solution(self, t: float, inertia: Array | None = None, *, tolerance: float) -> Array:
        """u of (K + K_σ + K_ω + K_α) u = f - inertia at a time."""
        self.move_to(t)
        static = self.statics()
        load = self.load if inertia is None else self.load - inertia
        u, nothing = np.zeros_like(load), np.zeros_like(load)
        size, before = 0.0, np.inf
        for k in range(MAX_CORRECTIONS):
            r = load - self.moving(nothing, u)
            if k:
                r -= multiply(self.problem.stiffness, u[:, None])[:, 0]
            change = self._static_step(static, r)
            u = u + change
            size = max(size, np.sqrt(self.dot(u, u)))
            now = np.sqrt(self.dot(change, change))
            round_off = now > before / 2 and now <= ROUND_OFF * size
            if now <= tolerance * size or round_off:
                return u
            before = now
        raise SolverError(
            f"there is no quasi-static state at t = {t:g} s that corrections find: the terms of "
            "the motion are not small beside the stiffness; use elastic_start='undeformed'"
        )

    def _static_step(self, static: Supported, r: Array) -> Array:
        if self.mean_axes is None:
            return static.solve(r)
        return self.mean_axes.motions(static.solve(self.mean_axes.loads(r)))

    def acceleration(self, t: float, u: Array, v: Array) -> Array:
        """a of M a = f - (C + G) v - (K + ...) u at a time."""
        self.move_to(t)
        mass = self._combined(1.0, 0.0)
        r = self.balance(u, v)
        a = mass.solve(r if self.mean_axes is None else self.mean_axes.loads(r))
        mass.destroy()
        return a
