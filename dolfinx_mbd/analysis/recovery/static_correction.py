"""Static correction (mode acceleration): the part of a displacement that the kept modes leave out.

The equations of a body in its frame are K u = f(t) less the inertia of u. The modes see a load f
only through Ψᵀf; what it does statically beyond them is

    r = u_f − Ψ (ΨᵀKΨ)⁻¹ Ψᵀ f,     K u_f = f,

a displacement that is K-orthogonal to all modes. A body in a mechanism is loaded by the wrenches w
at its interfaces and by the inertia of its rigid motion. With the unit loads f_j of
`analysis.stiffening`, six for the products ω_iω_j and six wrench components at each interface, each
balanced by the inertia of the rigid acceleration that it causes (inertia relief),

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dolfinx import fem
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analysis.assembly import ElasticProblem
from dolfinx_mbd.analysis.la import Options, gram
from dolfinx_mbd.analysis.recovery.recoverable import Recoverable
from dolfinx_mbd.analysis.recovery.stress import Reduced
from dolfinx_mbd.analysis.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.analysis.reduction.interfaces import MeshInterface
from dolfinx_mbd.analysis.reduction.stiffening import COMPONENTS, UnitCases
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.static_errors import unit_work as all_unit_work
from dolfinx_mbd.body.stress_modes import motion_of
from dolfinx_mbd.checks import array, having, instance
from dolfinx_mbd.errors import InputError, SolverError

__all__ = ["CorrectedHistory", "StaticCorrection", "mean_axis_cases", "static_cases", "unit_work"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CorrectedHistory:
    """A motion whose elastic coordinates are followed by the loads of the residual displacements.

    Attributes:
        time: Shape (nt,), s.
        eta: η, then six products ω_iω_j, then the wrenches, shape (nt, n + 6 + loads).
        position: Of the body frame, shape (nt, 3), m; None if the motion had none.
        rotation: Quaternions, shape (nt, 4); None if the motion had none.
    """

    time: Array
    eta: Array
    position: Array | None = None
    rotation: Array | None = None


@dataclass(frozen=True, eq=False)
class StaticCorrection(Recoverable):
    """A reduction whose modes are followed by residual displacements, one for each unit load.

    Fields are recovered from it as from a `Reduction`, with histories from `history`. It has no
    `with_stress`: a body keeps one stress mode for each of its own elastic coordinates.

    Attributes:
        body: The reduced body.
        space: The displacement space.
        modes: Modes, then residual displacements, shape (owned dofs, n + 6 + loads).
        stress: The stress law of the reduction, if it knows it.
    """

    body: ReducedBody
    space: fem.FunctionSpace
    modes: Array
    stress: Any = None

    @classmethod
    def of(cls, reduction: Reduced, cases: UnitCases) -> StaticCorrection:
        """The correction of a reduction.

        Args:
            reduction: With the mean-axis reference.
            cases: The unit loads' displacements, on the same space: from `static_cases`, or those
                that the reduction solved for anyway, through `mean_axis_cases`.

        Raises:
            ValueError: The reference is another, or the cases do not fit the reduction.
        """
        having("reduction", reduction, "body", "space", "modes")
        instance("cases", cases, UnitCases, "from static_cases")
        body, modes = reduction.body, reduction.modes
        if body.reference != "mean axis":
            raise InputError(
                f"a static correction needs the mean-axis reference; this body is {body.reference}"
            )
        dim = reduction.space.dofmap.bs
        work = unit_work(body, dim)
        shape = cases.displacements.shape
        if shape != (len(modes), work.shape[1]):
            raise InputError(
                f"expected unit displacements of shape {(len(modes), work.shape[1])}, got {shape}: "
                "they are those of another body or space"
            )
        held = np.linalg.solve(body.stiffness, work) if body.num_modes else work
        residual = cases.displacements - modes @ held
        own = getattr(reduction, "stress", None)
        return cls(body, reduction.space, np.asfortranarray(np.hstack([modes, residual])), own)

    def history(
        self, motion: Any, wrenches: Mapping[str, ArrayLike] | ArrayLike
    ) -> CorrectedHistory:
        """The elastic coordinates of a motion with the loads that it was under.

        Args:
            motion: `time` (nt,), `eta` (nt, n) and `omega` (nt, 3), rad/s, body components; without
                `omega` the body does not turn.
            wrenches: Force and moment on the body at each interface, about its point, body
                components, N and N m: by name, shape (nt, 6) each, as `interface_wrenches` of
                `multibody.interface_forces` gives them; or all of them, shape (nt, interfaces, 6).

        Raises:
            ValueError: A shape does not fit, a number is not finite, or the names are not those of
                the interfaces.
        """
        time, eta = motion_of(motion, self.body.num_modes)
        turning = getattr(motion, "omega", np.zeros((len(time), 3)))
        omega = array("motion.omega", turning, (len(time), 3))
        shape = len(time), len(self.body.interfaces), 6
        names = [interface.name for interface in self.body.interfaces]
        if isinstance(wrenches, Mapping):
            if set(wrenches) != set(names):
                raise InputError(
                    f"wrenches: expected one for each of {', '.join(map(repr, names))}; got "
                    f"{', '.join(map(repr, wrenches)) or 'none'}"
                )
            loads = np.array(
                [array(f"wrenches[{n!r}]", wrenches[n], (len(time), 6)) for n in names]
            ).reshape(len(names), len(time), 6)
            loads = loads.transpose(1, 0, 2)
        else:
            loads = array("wrenches", wrenches, shape)
        spins = np.stack([omega[:, i] * omega[:, j] for i, j in SPINS], axis=1)
        felt = loads[:, :, COMPONENTS[self.space.dofmap.bs]].reshape(len(time), -1)
        return CorrectedHistory(
            time,
            np.hstack([eta, spins, felt]),
            getattr(motion, "position", None),
            getattr(motion, "rotation", None),
        )


def unit_work(body: ReducedBody, dim: int = 3) -> Array:
    """Return the work of the unit loads on the modes Ψᵀf_j, shape (n, 6 + loads).

    Args:
        body: A body with mean-axis modes.
        dim: Components of a displacement; in the plane only three components of a wrench count.
    """
    wrenches = 6 + 6 * np.arange(len(body.interfaces))[:, None] + COMPONENTS[dim]
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


def mean_axis_cases(problem: ElasticProblem, cases: UnitCases) -> UnitCases:
    """Unit cases without the rigid motion that is left open in them: M-orthogonal to all of them.

    Stress does not change; displacements are then those in the mean-axis frame.

    Note: Collective.
    """
    R = problem.rigid_motions()
    MR = problem.apply_mass(R)
    rigid = np.linalg.solve(gram(problem.comm, R, MR), gram(problem.comm, MR, cases.displacements))
    return replace(cases, displacements=np.asfortranarray(cases.displacements - R @ rigid))
