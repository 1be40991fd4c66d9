"""Damping of a reduced body from its mesh: C = ΨᵀC_h Ψ with the elastic modes Ψ.

Ψ contains no rigid motions, so that damping does not resist the motion of the body frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ModalDamping, Rayleigh
from dolfinx_mbd.body.damping import damping_matrix
from dolfinx_mbd.checks import array, number, object_with
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import assembled_matrix, blocked, projected, scalar_space
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.forms import viscous_damping
from dolfinx_mbd.forms.arguments import expression
from dolfinx_mbd.parallel import destroying

if TYPE_CHECKING:
    from dolfinx_mbd.reduction.result import Reduction


SYMMETRY_TOLERANCE = 1e-9  # relative size of C − Cᵀ above which a form is rejected as unsymmetric


@dataclass(frozen=True, eq=False)
class Viscous:
    """Viscous damping by a force −μ u̇ per volume, with u̇ relative to the body frame.

    This force does not resist the rigid motion of the body. With μ = α ρ the damping is
    Rayleigh damping C = α M.

    Attributes:
        viscosity: μ ≥ 0, a number or a UFL expression, N s/m⁴.

    Raises:
        InputError: The viscosity is invalid.

    Example:
        >>> oil = mbd.reduction.Viscous(2e3)
        >>> damped = mbd.reduction.with_damping(bar, oil, mbd.body.Rayleigh(0.0, 1e-6))
        >>> bool(np.all(np.diag(damped.body.damping) > np.diag(bar.body.damping)))
        True
    """

    viscosity: Any

    def __post_init__(self) -> None:
        if isinstance(self.viscosity, ufl.core.expr.Expr):
            expression("viscosity", self.viscosity, ((),))
        else:
            number("viscosity", self.viscosity, low=0, unit="N s/m⁴")


AnyDamping: TypeAlias = Viscous | Rayleigh | ModalDamping | ufl.Form


def check_damping(damping: Any) -> None:
    """Raise an `InputTypeError` unless the argument is a damping or None."""
    if isinstance(damping, (int, float, np.number, ufl.core.expr.Expr)):
        raise InputTypeError(
            f"damping={damping!r} may be a ratio or a viscosity; give ModalDamping(ratio) or "
            "Viscous(mu)",
            argument="damping",
            value=damping,
        )
    types = (Viscous, Rayleigh, ModalDamping, ufl.Form)
    if damping is not None and not isinstance(damping, types):
        array(
            "damping",
            damping,
            (None, None),
            expected="Rayleigh(mass, stiffness), ModalDamping(ratios), Viscous(mu), a bilinear "
            "form or a matrix",
        )


def with_damping(
    reduction: Reduction, *dampings: AnyDamping | ArrayLike | None, thickness: float | None = None
) -> Reduction:
    """Return a reduction whose damping is replaced by the sum of the given dampings.

    Args:
        reduction: Result of `reduce`; it is not changed.
        *dampings: Dampings of any type, or None; see `ReductionOptions`.
        thickness: Thickness of a plane body, m, required with `Viscous`; None for a body in space.

    Raises:
        InputTypeError: An argument is not a damping.
        InputError: A damping does not fit the body.

    Note: Collective.

    Example:
        >>> damped = mbd.reduction.with_damping(bar, mbd.ModalDamping(0.01))
        >>> bool(damped.body.damping[0, 0] > 0)
        True
    """
    body = object_with("reduction", reduction, "body", "space", "modes").body
    if thickness is not None:
        number("thickness", thickness, positive=True, unit="m")
    total = np.zeros((body.num_modes,) * 2)
    for damping in dampings:
        check_damping(damping)
        if isinstance(damping, Viscous):
            total += _viscous(damping, reduction.space, reduction.modes, thickness)
        elif isinstance(damping, ufl.Form):
            total += _form_damping(damping, reduction.space, reduction.modes)
        elif damping is not None:
            total += damping_matrix(body.mass, body.stiffness, damping)
    changes: dict[str, Any] = {"body": body.replace(damping=total)}
    if hasattr(reduction, "dampings"):  # the reduction of a beam does not record them
        changes["dampings"] = tuple(damping for damping in dampings if damping is not None)
    return replace(reduction, **changes)


def _viscous(
    damping: Viscous, space: fem.FunctionSpace, modes: Array, thickness: float | None
) -> Array:
    """Return ∫ μ ψ_k·ψ_l by products of each displacement component with one scalar matrix."""
    mesh, dim = space.mesh, space.dofmap.bs
    if (dim == 2) != (thickness is not None):
        raise InputError(
            "viscous damping: a plane body needs its thickness, m, and a body in space has none",
            argument="thickness",
            value=thickness,
        )
    A = assembled_matrix(viscous_form(damping, space, thickness))
    diagonal = A.getDiagonal()
    least, size = diagonal.min()[1], diagonal.norm()
    diagonal.destroy()
    with destroying(mesh.comm, A):
        if not (np.isfinite(size) and least >= -1e-12 * size):
            raise InputError(
                "viscous damping: μ is negative or not finite somewhere (N s/m^4); it must not "
                "supply energy",
                argument="viscosity",
            )
        C = projected(mesh.comm, A, blocked(modes, dim), dim)
    return 0.5 * (C + C.T)


def viscous_form(damping: Viscous, space: fem.FunctionSpace, thickness: float | None) -> ufl.Form:
    """Return ∫ μ u v of one component of the displacement."""
    mu = damping.viscosity
    if not isinstance(mu, ufl.core.expr.Expr):
        mu = fem.Constant(space.mesh, default_scalar_type(mu))
    if thickness is not None:
        mu = fem.Constant(space.mesh, default_scalar_type(thickness)) * mu
    W = scalar_space(space)
    return viscous_damping(ufl.TrialFunction(W), ufl.TestFunction(W), mu)


def _form_damping(form: ufl.Form, space: fem.FunctionSpace, modes: Array) -> Array:
    """Return the checked damping matrix ΨᵀDΨ of a user-defined form (collective)."""
    arguments = form.arguments()
    message = ""
    if len(arguments) != 2 or any(a.ufl_function_space() != space for a in arguments):
        message = (
            "a damping form is bilinear, in a trial and a test function on the displacement space "
            "(reduction.space); it acts on the velocity"
        )
    else:
        A = assembled_matrix(form)
        C = gram(space.mesh.comm, modes, multiply(A, modes))
        A.destroy()
        if not np.isfinite(C).all():
            message = "the damping form has values that are not finite"
        elif np.abs(C - C.T).max(initial=0.0) > SYMMETRY_TOLERANCE * np.abs(C).max(initial=0.0):
            message = (
                "the damping form is not symmetric in the modes; gyroscopic terms are not damping, "
                "and the multibody equations contain them"
            )
    if message:
        raise InputError(message, argument="damping", value=form)
    return 0.5 * (C + C.T)
