"""Equilibrium of a spinning hyperelastic body at large displacements, and vibrations about it.

With the energy density W(u), the stiffness K_s of the springs, and rotation with the speed Ω about
the unit vector n through the point p, the equilibrium makes

    ∫ W(u) + ½ uᵀ K_s u - ½ Ω² ∫ρ |n×(x-p+u)|²

stationary: the centrifugal load follows the deformed position. The second derivative of this energy
is the tangent stiffness for small vibrations. It includes the geometric stiffness, the stiffness of
the displaced material and spin softening. For moderate speeds, the frequencies agree with the
results of `rotating_modes`. The matrices differ, because `rotating_modes` neglects the displacement
due to the prestress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import flag, function, instance, integer
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.structures.rotating.spinning_modes import RotatingModes, modes_of_factor
from dolfinx_mbd.structures.rotating.structure import SUBSET, RotatingStructure, checked_speed

TOLERANCE = 1e-8
"""Largest correction, relative to u in the energy norm, at which Newton's method ends."""


class SpinningEquilibriumError(SolverError):
    """Failure of Newton's method to find an equilibrium."""


@dataclass(frozen=True, eq=False)
class SpinningEquilibrium:
    """Equilibrium of a body in the rotating frame.

    Example:
        >>> equilibrium = spinning_equilibrium(structure, energy, 100.0)
        >>> equilibrium.modes(2).frequencies.shape
        (2,)
    """

    structure: RotatingStructure  # inertia, springs and held degrees of freedom
    speed: float  # Ω, rad/s
    displacement: fem.Function  # u
    tangent: PETSc.Mat  # second derivative of the energy, with spin softening; unit rows if held
    # Number of negative eigenvalues of the tangent: the body is stable if it is zero. None if the
    # linear solver does not count them
    negative: int | None
    iterations: tuple[int, ...]  # number of Newton iterations in each load step

    __repr__ = short_repr

    def modes(self, num_modes: int = 6, *, coriolis: bool = True) -> RotatingModes:
        """Compute the lowest modes of small vibrations about the equilibrium.

        Args:
            num_modes: Number of modes.
            coriolis: Whether Coriolis forces act.

        Raises:
            FactorizationError: The linear solver failed.
            EigenError: The eigenvalue solver failed.

        Note: Collective.
        """
        integer("num_modes", num_modes, low=0)
        flag("coriolis", coriolis)
        _set_values(self.structure.factor.matrix, self.tangent)
        num_negative = self.structure.factor.factorize()
        return modes_of_factor(
            self.structure, self.speed, num_modes, num_negative, coriolis=coriolis
        )

    def destroy(self) -> None:
        """Destroy the tangent, but not the structure."""
        self.tangent.destroy()


def spinning_equilibrium(
    structure: RotatingStructure,
    energy: Callable[[Any], Any],
    speed: float,
    *,
    steps: int = 1,
    max_iterations: int = 25,
) -> SpinningEquilibrium:
    """Compute the equilibrium of a hyperelastic body at a speed by Newton's method.

    Args:
        structure: Result of `rotating_structure` with inertia, held degrees of freedom and springs.
            Its material determines only the sparsity of the matrices.
        energy: W(u) as UFL for the displacement u, J/m³, for example
            ``lambda u: neo_hookean(u, material)``; the energy of a plane body is multiplied by the
            thickness.
        speed: Ω, rad/s.
        steps: Number of equal steps of Ω² from rest.
        max_iterations: Maximum number of iterations of each step.

    Returns:
        The equilibrium; the caller destroys it before the structure.

    Raises:
        InputError: A value is invalid.
        SpinningEquilibriumError: Newton's method did not converge.
        FactorizationError: The tangent is singular.

    Example:
        >>> spinning_equilibrium(structure, energy, 100.0).negative
        0

    Note: Collective.
    """
    instance("structure", structure, RotatingStructure, "from rotating_structure")
    function("energy", energy, "energy(u)")
    speed = checked_speed("speed", speed)
    integer("steps", steps, low=1, high=10**6)
    integer("max_iterations", max_iterations, low=1)
    newton = _Newton(structure, energy)
    iterations = tuple(
        newton.step(speed * np.sqrt(k / steps), max_iterations) for k in range(1, steps + 1)
    )
    num_negative = newton.factorize(speed)
    newton.tangent.destroy()
    tangent = structure.factor.matrix.copy()
    return SpinningEquilibrium(structure, speed, newton.u, tangent, num_negative, iterations)


class _Newton:
    """Newton's method for the displacement `u` of a structure with a given energy density."""

    def __init__(self, structure: RotatingStructure, energy: Callable[[Any], Any]) -> None:
        problem, V = structure.problem, structure.space
        self.structure, self.u = structure, fem.Function(V)
        density = energy(self.u)
        if not isinstance(density, ufl.core.expr.Expr) or density.ufl_shape != ():
            raise InputError(f"the energy must be a scalar UFL expression, J/m^3; got {density!r}")
        if problem.thickness is not None:
            density = fem.Constant(V.mesh, default_scalar_type(problem.thickness)) * density
        internal = ufl.derivative(density * ufl.dx, self.u, ufl.TestFunction(V))
        self.force = compiled_form(internal)
        self.stiffness = compiled_form(ufl.derivative(internal, self.u, ufl.TrialFunction(V)))
        self.tangent = fem_petsc.create_matrix(self.stiffness)

    def residual(self, speed: float) -> Array:
        """Return the load minus the forces of strain and springs, 0 at held degrees of freedom."""
        s, owned = self.structure, len(self.structure.load)
        b = fem.assemble_vector(self.force)
        b.scatter_reverse(la.InsertMode.add)
        r = speed**2 * s.load - b.array[:owned]
        u = self.u.x.array[:owned, None]
        r -= speed**2 * multiply(s.softening, u)[:, 0]
        if s.springs is not None:
            r -= multiply(s.springs, u)[:, 0]
        r[s.held] = 0.0
        return np.asarray(r)

    def factorize(self, speed: float) -> int | None:
        """Factorize the tangent at the current displacement; the structure stores the factor."""
        s, K, T = self.structure, self.structure.factor.matrix, self.tangent
        T.zeroEntries()
        fem_petsc.assemble_matrix(T, self.stiffness)  # type: ignore[arg-type]
        T.assemble()
        constrain(T, s.held, 1.0)
        _set_values(K, T)
        K.axpy(speed**2, s.softening, structure=SUBSET)
        if s.springs is not None:
            K.axpy(1.0, s.springs, structure=SUBSET)
        return s.factor.factorize()

    def step(self, speed: float, max_iterations: int) -> int:
        """Iterate until the work of a correction is negligible; return the number of iterations."""
        comm, load = self.structure.problem.comm, self.structure.load
        failure = f"after {max_iterations} iterations"
        for k in range(1, max_iterations + 1):
            r = self.residual(speed)
            if not comm.allreduce(bool(np.isfinite(r).all()), op=MPI.LAND):
                failure = f"because the forces are not finite in iteration {k}"
                break
            self.factorize(speed)
            correction = solve(self.structure.factor.ksp, r[:, None])[:, 0]
            u = self.u.x.array[: len(load)] + correction
            as_function(self.u.function_space, u, self.u)
            local = np.array([abs(r @ correction), speed**2 * abs(load @ u)])
            work, total = comm.allreduce(local)
            if work <= TOLERANCE**2 * total or total == 0:
                return k
        raise SpinningEquilibriumError(
            f"no equilibrium at {speed:.6g} rad/s {failure}; use more steps, or a speed below the "
            "speed at which the body bursts or buckles"
        )


def _set_values(K: PETSc.Mat, T: PETSc.Mat) -> None:
    """Copy the values of T into K, whose sparsity pattern may be larger."""
    K.zeroEntries()
    K.axpy(1.0, T, structure=SUBSET)
