"""A hyperelastic body that spins: its equilibrium at great displacements and vibrations about it.

With the energy W(u) of the material and the springs, the equilibrium makes

    ∫ W(u) + ½ uᵀ K_s u − ½ Ω² ∫ρ |n×(x−p+u)|²

stationary: the centrifugal load follows the deformed position. The second derivative is the tangent
of small vibrations, and holds the geometric stiffness, the stiffness of the displaced material and
spin softening. For moderate speeds the frequencies agree with those of `rotating_modes`, but not
the matrices: there the displacement of the prestress is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.checks import flag, function, instance, integer
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.operators import apply_inertia, centrifugal
from dolfinx_mbd.linalg.blocks import multiply, solve
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.modal.natural_modes import check_num_modes
from dolfinx_mbd.rotating.modes import RotatingModes, modes_of_factor
from dolfinx_mbd.rotating.structure import RotatingStructure, checked_speed

__all__ = ["SpinningEquilibrium", "SpinningEquilibriumError", "spinning_equilibrium"]

Array = NDArray[np.float64]
Energy = Callable[[Any], Any]

TOLERANCE = 1e-8
"""Of Newton: size of the last correction over the displacement, both by their elastic energy."""


class SpinningEquilibriumError(SolverError):
    """Newton's method found no equilibrium."""


@dataclass(frozen=True, eq=False)
class SpinningEquilibrium:
    """A body at rest in the turning frame.

    Attributes:
        structure: Inertia, springs and what is held.
        speed: Ω, rad/s.
        displacement: u.
        tangent: Second derivative of the energy, spin softening included; unit rows at held
            degrees of freedom.
        negative: Its negative eigenvalues, None if not known; none: a stable equilibrium.
        iterations: Of Newton's method, for each load step.
    """

    structure: RotatingStructure
    speed: float
    displacement: fem.Function
    tangent: PETSc.Mat
    negative: int | None
    iterations: tuple[int, ...]

    def modes(self, num_modes: int = 6, *, coriolis: bool = True) -> RotatingModes:
        """Lowest modes of small vibrations about the equilibrium.

        Raises:
            FactorizationError: The linear solver failed.
            EigenError: The eigenvalue solver failed.

        Note: Collective.
        """
        check_num_modes(num_modes)
        flag("coriolis", coriolis)
        factor = self.structure.factor
        _put(factor.matrix, self.tangent)
        negative = factor.factorize()
        return modes_of_factor(self.structure, self.speed, num_modes, negative, coriolis=coriolis)

    def destroy(self) -> None:
        """Free the tangent; the structure stays."""
        self.tangent.destroy()


def spinning_equilibrium(
    structure: RotatingStructure,
    energy: Energy,
    speed: float,
    *,
    steps: int = 1,
    max_iterations: int = 25,
) -> SpinningEquilibrium:
    """Equilibrium of a hyperelastic body at a speed, by Newton's method in steps of Ω².

    Args:
        structure: From `rotating_structure`: inertia, what is held, springs. (Its own material
            matters for the sparsity of the matrices only.)
        energy: W(u) as UFL for the displacement u, J/m³, e.g.
            ``lambda u: neo_hookean(u, material)``; of a plane body the thickness is put to it.
        speed: Ω, rad/s.
        steps: Equal steps of Ω² from rest.
        max_iterations: Of each step.

    Raises:
        ValueError: Something given does not fit.
        SpinningEquilibriumError: No convergence.
        FactorizationError: The tangent is singular.

    Note: Collective. The caller destroys the result, and the structure later.
    """
    instance("structure", structure, RotatingStructure, "from rotating_structure")
    function("energy", energy, "energy(u)")
    speed = checked_speed("speed", speed)
    integer("steps", steps, low=1, high=10**6)
    integer("max_iterations", max_iterations, low=1)
    problem, V = structure.problem, structure.space
    u = fem.Function(V)
    density = energy(u)
    if not isinstance(density, ufl.core.expr.Expr) or density.ufl_shape != ():
        raise InputError(f"the energy must be a scalar UFL expression, J/m^3; got {density!r}")
    if problem.thickness is not None:
        density = fem.Constant(V.mesh, default_scalar_type(problem.thickness)) * density
    internal = ufl.derivative(density * ufl.dx, u, ufl.TestFunction(V))
    force = fem.form(internal)
    stiffness = fem.form(ufl.derivative(internal, u, ufl.TrialFunction(V)))
    T = fem_petsc.create_matrix(stiffness)
    arms = (problem.positions - structure.point[: problem.dim]).ravel()
    load = -apply_inertia(problem, centrifugal(structure.spin), arms)
    load[structure.held] = 0.0
    newton = _Newton(structure, u, force, stiffness, T, load)
    iterations = tuple(
        newton.step(speed * np.sqrt(k / steps), max_iterations) for k in range(1, steps + 1)
    )
    negative = newton.factorize(speed)
    tangent = structure.factor.matrix.copy()
    T.destroy()
    return SpinningEquilibrium(structure, float(speed), u, tangent, negative, iterations)


@dataclass
class _Newton:
    structure: RotatingStructure
    u: fem.Function
    force: fem.Form
    stiffness: fem.Form
    T: PETSc.Mat
    load: Array

    def residual(self, speed: float) -> Array:
        """Load minus internal force, zero at held degrees of freedom."""
        s, owned = self.structure, len(self.load)
        b = fem_petsc.assemble_vector(self.force)
        b.ghostUpdate(PETSc.InsertMode.ADD, PETSc.ScatterMode.REVERSE)
        r = speed**2 * self.load - b.array_r[:owned]
        b.destroy()
        u = np.asfortranarray(self.u.x.array[:owned, None])
        r -= speed**2 * multiply(s.softening, u)[:, 0]
        if s.springs is not None:
            r -= multiply(s.springs, u)[:, 0]
        r[s.held] = 0.0
        return np.asarray(r)

    def factorize(self, speed: float) -> int | None:
        """Tangent at the present displacement into the structure's factor."""
        s, K = self.structure, self.structure.factor.matrix
        self.T.zeroEntries()
        fem_petsc.assemble_matrix(self.T, self.stiffness)  # type: ignore[arg-type]
        self.T.assemble()
        constrain(self.T, s.held, 1.0)
        _put(K, self.T)
        subset = PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN
        K.axpy(speed**2, s.softening, structure=subset)
        if s.springs is not None:
            K.axpy(1.0, s.springs, structure=subset)
        return s.factor.factorize()

    def step(self, speed: float, max_iterations: int) -> int:
        """Iterate until the correction does no more work; returns the number of corrections."""
        comm, owned = self.structure.problem.comm, len(self.load)
        for k in range(1, max_iterations + 1):
            r = self.residual(speed)
            if not comm.allreduce(bool(np.isfinite(r).all()), op=MPI.LAND):
                break
            self.factorize(speed)
            correction = solve(self.structure.factor.ksp, r[:, None])[:, 0]
            u = self.u.x.array[:owned] + correction
            as_function(self.u.function_space, u, self.u)
            work, total = comm.allreduce(
                np.array([abs(r @ correction), speed**2 * abs(self.load @ u)])
            )
            if work <= TOLERANCE**2 * total or total == 0:
                return k
        raise SpinningEquilibriumError(
            f"no equilibrium at {speed:.6g} rad/s after {k} iterations; take more steps, or a "
            "speed below that at which the body bursts or buckles"
        )


def _put(K: PETSc.Mat, T: PETSc.Mat) -> None:
    """The values of T into K, whose pattern may be greater."""
    K.zeroEntries()
    K.axpy(1.0, T, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
