"""Static correction (mode acceleration): the part of a displacement that the kept modes leave out.

The equations of a body in its frame are K u = f(t) less the inertia of u. The modes see a load f
only through Ψᵀf; what it does statically beyond them is

    r = u_f − Ψ (ΨᵀKΨ)⁻¹ Ψᵀ f,     K u_f = f,

a displacement that is K-orthogonal to all modes. A body in a mechanism is loaded by the wrenches w
at its interfaces and by the inertia of its rigid motion. With the unit loads f_j of
`reduction.stiffening`, six for the products ω_iω_j and six wrench components at each interface,
each balanced by the inertia of the rigid acceleration that it causes (inertia relief),

    u = Σ ψ_k η_k + Σ r_j g_j,     g = (ω_xω_x, ..., ω_zω_x, w_1, w_2, ...).

The accelerations a₀ and α of the frame need no term of their own: their inertia is the relief of
the loads that cause them, and mean-axis modes do no work against it, so that Ψᵀf_j is that of the
load alone. For modes that are eigenvectors this sum is what is known as the mode acceleration
method, u = K⁻¹(f − MΨη̈ − CΨη̇): there (ΨᵀKΨ)⁻¹(Ψᵀf − η̈ − ...) = η. In statics it is exact
whatever the modes are. Left out is the *dynamic* response of what the modes do not hold.

References:
    Craig, Kurdila (2006), Fundamentals of Structural Dynamics, 2nd ed., §11.4 (mode acceleration).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.static_errors import unit_work as all_unit_work
from dolfinx_mbd.checks import array, instance, short
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES, UnitCases, mean_axis_cases

__all__ = ["residual_modes", "static_cases", "unit_load_histories", "unit_work"]

Array = NDArray[np.float64]


def residual_modes(reduction: Reduction, cases: UnitCases) -> Array:
    """Return the residual displacements r_j that static correction adds to the modes.

    Args:
        reduction: A reduction with the mean-axis reference.
        cases: Displacements of the unit loads on the same space, for instance `reduction.cases`.

    Returns:
        Shape (owned dofs, 6 + loads), Fortran order.

    Raises:
        InputError: The reference is another, or the cases do not fit the reduction.
    """
    instance("cases", cases, UnitCases, "from static_cases")
    body, modes = reduction.body, reduction.modes
    if body.reference != "mean axis":
        raise InputError(
            f"a static correction needs the mean-axis reference; this body is {body.reference}",
            argument="reduction",
            value=reduction,
            expected="mean axis",
        )
    work = unit_work(body, reduction.space.dofmap.bs)
    shape, expected = cases.displacements.shape, (len(modes), work.shape[1])
    if shape != expected:
        raise InputError(
            f"expected unit displacements of shape {expected}, got {shape}: they belong to another "
            "body or space",
            argument="cases",
            value=cases,
        )
    held = np.linalg.solve(body.stiffness, work) if body.num_modes else work
    return np.asfortranarray(cases.displacements - modes @ held)


def unit_load_histories(body: ReducedBody, motion: Any, dim: int = 3) -> Array:
    """Return the factors g of the unit loads over time, shape (nt, 6 + loads).

    Args:
        body: The reduced body.
        motion: History with `time` (nt,); with `omega` (nt, 3), rad/s, body components, unless the
            body does not turn; and with `wrenches` unless its interfaces are free of load: force
            and moment on the body at each interface about its point, body components, N and N m,
            by name, shape (nt, 6) each.
        dim: Components of a displacement; in the plane only three components of a wrench count.

    Raises:
        InputError: A shape does not fit, a number is not finite, or the names are not those of the
            interfaces.
    """
    count = len(motion.time)
    omega = array("omega", getattr(motion, "omega", np.zeros((count, 3))), (count, 3))
    names = [interface.name for interface in body.interfaces]
    given = getattr(motion, "wrenches", None)
    if given is None:
        given = {name: np.zeros((count, 6)) for name in names}
    if not isinstance(given, Mapping) or set(given) != set(names):
        listed = ", ".join(map(repr, given)) if isinstance(given, Mapping) else short(given)
        raise InputError(
            f"wrenches: expected one for each of {', '.join(map(repr, names))}; got "
            f"{listed or 'none'}",
            argument="wrenches",
            value=given,
        )
    loads = [
        array(f"wrenches[{name!r}]", given[name], (count, 6))[:, WRENCH_INDICES[dim]]
        for name in names
    ]
    spins = np.stack([omega[:, i] * omega[:, j] for i, j in SPINS], axis=1)
    return np.hstack([spins, *loads])


def unit_work(body: ReducedBody, dim: int = 3) -> Array:
    """Return the work of the unit loads on the modes Ψᵀf_j, shape (n, 6 + loads).

    Args:
        body: A body with mean-axis modes.
        dim: Components of a displacement; in the plane only three components of a wrench count.
    """
    wrenches = 6 + 6 * np.arange(len(body.interfaces))[:, None] + WRENCH_INDICES[dim]
    columns = np.concatenate([np.arange(6), wrenches.ravel()])
    return np.asarray(all_unit_work(body)[:, columns])


def static_cases(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    *,
    prefix: str = "dolfinx_mbd_static_",
    options: Options = None,
) -> UnitCases:
    """The displacements of the unit loads, by one factorization; no eigenvalue problem.

    Args:
        problem: From `elastic_problem` on the reduction's space: ``space=reduction.space``.
        interfaces: From `mesh_interfaces`, in the order of the reduction's.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Raises:
        ValueError: There is no interface.
        FactorizationError: The linear solver failed.

    Note: Collective.
    """
    if not interfaces:
        raise InputError("a static correction needs a body with interfaces")
    basis = craig_bampton_basis(
        problem, interfaces, 0, prefix=prefix, options=options, stiffening=True
    )
    if basis.cases is None:
        raise SolverError("the basis came without its unit cases")
    return mean_axis_cases(problem, basis.cases)
