"""Elastic forces of a time step that conserve energy and momentum: discrete gradients.

Between the displacements u₀ and u₁ with F = I + ∇u, C = FᵀF, ΔC = C₁ − C₀ and the mean values
F_m and C_m of both states, the forces are those of the stress

    S = 2 ∂W/∂C (C_m) + 2 (W₁ − W₀ − ∂W/∂C (C_m):ΔC) / (ΔC:ΔC) ΔC,    ∫ S : sym(F_mᵀ∇v) dX.

For v = u₁ − u₀, the virtual work is W₁ − W₀ because sym(F_mᵀΔF) = ΔC/2: the energy is conserved.
For a rotation v = ω × (X + u_m), it vanishes because S is symmetric: so is the angular momentum. A
step that rotates a body does not strain it, because the stress depends on C_m and not on F_mᵀF_m.

For small ΔC, the difference W₁ − W₀ − ∂W/∂C (C_m):ΔC is computed as the integral of ∂W/∂C − ∂W/∂C
(C_m) along ΔC. The round-off of the energies, divided by ΔC:ΔC, would otherwise exceed the
tolerance of a step.

W is a function of ∇u. Its derivative is evaluated at the upper triangular F with FᵀF = C_m
(Cholesky), which has the same energy if W does not depend on rotations.

References:
    O. Gonzalez, Exact energy and momentum conserving algorithms for general models in nonlinear
    elasticity, Computer Methods in Applied Mechanics and Engineering 190 (2000) 1763-1783.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from mpi4py import MPI
from ufl.algorithms import extract_coefficients, replace
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.core.expr import Expr

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compilation import compiled_form

__all__ = ["DiscreteGradient"]

# For changes of C below this size, the difference in the quotient is an integral by Gauss's rule
# with two points: its error is below the round-off of W, which the quotient would amplify
_SMALL = 3e-3
_TINY = 1e-14  # least change of C in a quotient
_GAUSS = 0.5 / 3**0.5  # distance of Gauss's points from the middle, relative to the change
_STRAIN, _ANGLE = 0.02, 0.7  # size of the strains and rotation (rad) in the check of an energy
_OBJECTIVE = 1e-8  # largest change of the energy under a rotation, relative to the energy


class DiscreteGradient:
    """Form of the elastic forces between two displacements.

    Args:
        space: Displacement space.
        terms: Energy densities as functions of the displacement, with their measures.

    Attributes:
        before: Displacement at the start of a step.
        after: Displacement at its end.
        form: Linear form of the forces.

    Raises:
        InputError: An energy depends on rotations, or on the displacement itself.

    Note: Collective.
    """

    def __init__(
        self,
        space: fem.FunctionSpace,
        terms: Sequence[tuple[Callable[[Any], Any], ufl.Measure]],
    ) -> None:
        self.before, self.after = fem.Function(space), fem.Function(space)
        test = ufl.TestFunction(space)
        mean = ufl.grad(self.before + self.after) / 2
        F = ufl.Identity(len(self.before)) + mean
        work: Any = 0
        for energy, dx in terms:
            stress = _stress(energy, self.before, self.after)
            work += ufl.inner(stress, ufl.sym(F.T * ufl.grad(test))) * dx
        self.form = compiled_form(work)
        self._check_rotations(terms)

    def _check_rotations(self, terms: Sequence[tuple[Callable[[Any], Any], ufl.Measure]]) -> None:
        """Raise an error if a rotation changes the energy of a strained body."""
        n = len(self.before)
        strained = np.eye(n) + _STRAIN * np.triu(1.0 + np.arange(n * n).reshape(n, n)) / n
        c, s = np.cos(_ANGLE), np.sin(_ANGLE)
        rotation = np.eye(n)
        rotation[:2, :2] = [[c, -s], [s, c]]
        if n == 3:
            rotation = rotation @ np.array([[1.0, 0, 0], [0, c, s], [0, -s, c]])
        total: Any = sum(energy(self.before) * dx for energy, dx in terms)
        form, energies = compiled_form(total), []
        for A in (strained, rotation @ strained):
            self.before.interpolate(lambda x, A=A: (A - np.eye(n)) @ x[:n])
            local = float(fem.assemble_scalar(form))
            energies.append(self.before.function_space.mesh.comm.allreduce(local, op=MPI.SUM))
        self.before.x.array[:] = 0.0
        change = energies[1] - energies[0]
        if not abs(change) <= _OBJECTIVE * abs(energies[0]):
            raise _unsuitable(f"a rotation of a strained body changes it by {change:.3g} J")


def _stress(energy: Callable[[Any], Any], before: fem.Function, after: fem.Function) -> Expr:
    """Return the stress S between two displacements."""
    identity = ufl.Identity(len(before))
    H0, H1 = (ufl.grad(u) for u in (before, after))
    F, dH = identity + (H0 + H1) / 2, H1 - H0
    change = F.T * dH + dH.T * F  # ΔC
    C0, C1 = ((identity + H).T * (identity + H) for H in (H0, H1))
    middle = (C0 + C1) / 2  # C_m
    lowered = apply_derivatives(apply_algebra_lowering(energy(before)))
    if before in extract_coefficients(replace(lowered, {H0: ufl.zero(*H0.ufl_shape)})):
        raise _unsuitable("it depends on the displacement and not on its gradient alone")

    def second_piola(C: Expr) -> Expr:
        """Return 2 ∂W/∂C."""
        F = _cholesky_factor(C)
        H = ufl.variable(F - ufl.Identity(len(before)))
        return ufl.sym(ufl.inv(F) * ufl.diff(replace(lowered, {H0: H}), H))

    stress = second_piola(middle)
    first, second = (second_piola(middle + sign * _GAUSS * change) for sign in (-1, 1))
    square = ufl.inner(change, change)
    integral = ufl.inner((first + second) / 2 - stress, change) / 2
    rest = energy(after) - energy(before) - ufl.inner(stress, change) / 2
    rest = ufl.conditional(ufl.gt(square, _SMALL**2), rest, integral)
    return stress + 2 * rest / ufl.max_value(square, _TINY**2) * change


def _cholesky_factor(C: Expr) -> Expr:
    """Return the upper triangular matrix F with FᵀF = C."""
    n = C.ufl_shape[0]
    F: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for i in range(n):
        F[i][i] = ufl.sqrt(C[i, i] - sum(F[k][i] ** 2 for k in range(i)))
        for j in range(i + 1, n):
            F[i][j] = (C[i, j] - sum(F[k][i] * F[k][j] for k in range(i))) / F[i][i]
    return ufl.as_matrix(F)


def _unsuitable(reason: str) -> InputError:
    """Return the error of an energy for which no conserving step exists."""
    return InputError(
        f"the energy does not permit a conserving step: {reason}. Use an energy of C = FᵀF, or "
        "another method",
        argument="energy",
    )
