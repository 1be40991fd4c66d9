"""Damping of a reduced body from its mesh: a viscous density, or any damping form, in its modes.

The damping matrix is C = ΨᵀC_h Ψ with the elastic modes Ψ alone, so that no damping form, whatever
it does to rigid motions, resists the motion of the body frame.  With the mean-axis reference that
is the dissipation ½ ∫ μ |u̇|² of the motion that is left when the rigid part of its momentum is
removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ModalDamping, Rayleigh
from dolfinx_mbd.body.damping import damping_matrix
from dolfinx_mbd.checks import array, having, number
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import blocked, projected
from dolfinx_mbd.forms import viscous_damping
from dolfinx_mbd.forms.arguments import expression
from dolfinx_mbd.linalg.blocks import gram, multiply

if TYPE_CHECKING:
    from dolfinx_mbd.reduction.result import Reduction

__all__ = ["AnyDamping", "Viscous", "check_damping", "reduced_damping", "with_damping"]

Array = NDArray[np.float64]

SYMMETRY_TOLERANCE = 1e-9
"""Relative size of C − Cᵀ above which a damping form is refused."""


@dataclass(frozen=True, eq=False)
class Viscous:
    """A viscous density μ, N s/m⁴: the force −μ u̇ per volume, u̇ relative to the body frame.

    Never the absolute velocity: rigid motion of the body is not resisted.  With μ = α ρ this is
    Rayleigh damping C = α M.

    Attributes:
        viscosity: μ, N s/m⁴, a number or a UFL expression, nowhere negative.
    """

    viscosity: Any

    def __post_init__(self) -> None:
        if isinstance(self.viscosity, ufl.core.expr.Expr):
            expression("viscosity", self.viscosity, ((),))
        else:
            number("viscosity", self.viscosity, low=0, unit="N s/m⁴")


AnyDamping: TypeAlias = Viscous | Rayleigh | ModalDamping | ufl.Form


def check_damping(damping: Any) -> None:
    """Raise an error unless the argument is a damping or None.

    Raises:
        InputTypeError: The argument has another type.
    """
    if isinstance(damping, (int, float, np.number, ufl.core.expr.Expr)):
        raise InputTypeError(
            f"damping={damping!r} may be a ratio or a viscosity; say ModalDamping(ratio) or "
            "Viscous(mu)"
        )
    known = (Viscous, Rayleigh, ModalDamping, ufl.Form)
    if damping is not None and not isinstance(damping, known):
        array(
            "damping",
            damping,
            (None, None),
            expected="Rayleigh(mass, stiffness), ModalDamping(ratios), Viscous(mu), a bilinear "
            "form or a matrix",
        )


def reduced_damping(
    damping: AnyDamping | ArrayLike | None,
    space: fem.FunctionSpace,
    modes: Array,
    mass: ArrayLike,
    stiffness: ArrayLike,
    *,
    thickness: float | None = None,
) -> Array:
    """Return the damping matrix C of a reduced body, shape (n, n), the same on every rank.

    Args:
        damping: `Viscous`, `Rayleigh`, `ModalDamping`, a bilinear form on `space` that acts on u̇
            (including the thickness of a plane body), a matrix, or None: no damping.
        space: The displacement space.
        modes: The modes on this rank, shape (owned dofs, n).
        mass: M of the modes, shape (n, n).
        stiffness: K of the modes, shape (n, n).
        thickness: Of a plane body, m, for `Viscous`.

    Raises:
        InputTypeError: The damping has another type.
        InputError: μ is negative somewhere, or the form is not symmetric or not on `space`.

    Note: Collective.
    """
    check_damping(damping)
    if thickness is not None:
        number("thickness", thickness, positive=True, unit="m")
    if damping is None:
        return np.zeros((modes.shape[1],) * 2)
    if isinstance(damping, Viscous):
        return _viscous(damping, space, modes, thickness)
    if isinstance(damping, ufl.Form):
        return _of_form(damping, space, modes)
    return damping_matrix(mass, stiffness, damping)


def with_damping(
    reduction: Reduction, *dampings: AnyDamping | ArrayLike, thickness: float | None = None
) -> Reduction:
    """Return a reduction with another damping, the sum of several.

    Args:
        reduction: From `reduce`; not changed.
        *dampings: Dampings of any type; see `ReductionOptions`.
        thickness: Thickness of a plane body, m, needed with `Viscous`.

    Raises:
        InputTypeError: An argument is not a damping.
        InputError: A damping does not fit the body.

    Note: Collective.
    """
    if thickness is not None:
        number("thickness", thickness, positive=True, unit="m")
    body = having("reduction", reduction, "body", "space", "modes").body
    total = np.zeros((body.num_modes,) * 2)
    for damping in dampings:
        total += reduced_damping(
            damping,
            reduction.space,
            reduction.modes,
            body.mass,
            body.stiffness,
            thickness=thickness,
        )
    return replace(reduction, body=body.replace(damping=total))


def _viscous(
    damping: Viscous, space: fem.FunctionSpace, modes: Array, thickness: float | None
) -> Array:
    """∫ μ ψ_k·ψ_l through a scalar matrix, one component of the displacement at a time."""
    mesh, dim = space.mesh, space.dofmap.bs
    if (dim == 2) != (thickness is not None):
        raise InputError(
            "viscous damping: a plane body needs its thickness, m, and one in space has none"
        )
    mu = damping.viscosity
    if not isinstance(mu, ufl.core.expr.Expr):
        mu = fem.Constant(mesh, default_scalar_type(mu))
    if thickness is not None:
        mu = fem.Constant(mesh, default_scalar_type(thickness)) * mu
    W = fem.functionspace(mesh, space.ufl_element().sub_elements[0])
    form = viscous_damping(ufl.TrialFunction(W), ufl.TestFunction(W), mu)
    A = fem_petsc.assemble_matrix(fem.form(form))
    A.assemble()
    diagonal = A.getDiagonal()
    least, size = diagonal.min()[1], diagonal.norm()
    diagonal.destroy()
    if not (np.isfinite(size) and least >= -1e-12 * size):
        A.destroy()
        raise InputError(
            "viscous damping: μ is negative or not finite somewhere (N s/m^4); it must not feed "
            "energy in"
        )
    fields = blocked(modes, dim)
    C = projected(mesh.comm, A, fields, dim)
    A.destroy()
    return 0.5 * (C + C.T)


def _of_form(form: ufl.Form, space: fem.FunctionSpace, modes: Array) -> Array:
    arguments = form.arguments()
    if len(arguments) != 2 or any(a.ufl_function_space() != space for a in arguments):
        raise InputError(
            "a damping form is bilinear, in a trial and a test function on the displacement space "
            "(reduction.space); it acts on the velocity"
        )
    A = fem_petsc.assemble_matrix(fem.form(form))
    A.assemble()
    C = gram(space.mesh.comm, modes, multiply(A, modes))
    A.destroy()
    if not np.isfinite(C).all():
        raise InputError("the damping form has values that are not finite")
    if np.abs(C - C.T).max(initial=0.0) > SYMMETRY_TOLERANCE * np.abs(C).max(initial=0.0):
        raise InputError(
            "the damping form is not symmetric in the modes; gyroscopic terms are made by the "
            "multibody side and are no damping"
        )
    return 0.5 * (C + C.T)
