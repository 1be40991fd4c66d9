"""The constant matrices of a body that rotates steadily, assembled once for all speeds.

In the frame that turns with the speed Ω about the unit vector n through a point p, small vibrations
u about the deformed state obey

    M ü + (Ω G + D) u̇ + (K + Ω² (K_σ + K_ω)) u = 0

with the Coriolis operator Ω G = 2Ω ∫ρ (n×u̇)·v, spin softening K_ω = ∫ρ (n×(n×u))·v and the
geometric stiffness K_σ = ∫ (∇u σ₀):∇v of the stress σ₀ of the linear static solution under the unit
centrifugal load −∫ρ (n×(n×(x−p)))·v. Their signs are proved by
`test_matrices_are_the_forms` and `test_cantilever_of_the_literature`.

Damping is that of the turning body: D acts on velocities relative to the turning frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc

from dolfinx_mbd import forms
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.checks import array, flag, function, instance, number, refuse, vector
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem, geometric_matrix
from dolfinx_mbd.fem.elastic_model import ElasticModel, check_form, elastic_model, refuse_prestress
from dolfinx_mbd.fem.facets import facet_groups, held_dofs
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import check_floating
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.operators import apply_inertia, centrifugal, coriolis, inertia_matrix
from dolfinx_mbd.linalg.blocks import solve
from dolfinx_mbd.linalg.factorization import SymmetricFactor
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.linalg.options import Options, solver_options
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.reduction.damping import Viscous

__all__ = [
    "Parts",
    "RotatingStructure",
    "checked_axis",
    "constrained_structure",
    "listed_dampings",
    "rotating_structure",
]

Array = NDArray[np.float64]
Stress = Callable[[Any], Any]
Damping: TypeAlias = Rayleigh | Viscous | ufl.Form

SYMMETRY_TOLERANCE = 1e-9
"""Relative size of A - Aᵀ above which springs or damping are refused."""

SUBSET = PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN


@dataclass(frozen=True, eq=False)
class RotatingStructure:
    """Constant matrices of a body that is held in a turning frame; see `rotating_structure`.

    Rows and columns of held degrees of freedom are zero, with a unit diagonal in K.

    Attributes:
        problem: Space, scalar mass and the stiffness of the free body.
        held: Owned held degrees of freedom (local numbers).
        axis: Unit vector n of the axis, shape (3,).
        point: A point of the axis, shape (3,), m.
        stiffness: K, at rest, with the springs.
        springs: Part of the springs in K; None without springs.
        mass: M.
        gyroscopic: G, per rad/s.
        softening: K_ω, per (rad/s)².
        geometric: K_σ likewise; None if the stress is not known.
        damping: D, or None.
        damped: Whether D is known to be positive definite; False for a form.
        displacement: u of the unit centrifugal load, owned, m/(rad/s)²: that at Ω is Ω² times it.
        factor: Factorization of the stiffness at the last requested speed.
        prefix: PETSc options prefix.
        options: PETSc options.
    """

    problem: ElasticProblem
    held: NDArray[np.int32]
    axis: Array
    point: Array
    stiffness: PETSc.Mat
    springs: PETSc.Mat | None
    mass: PETSc.Mat
    gyroscopic: PETSc.Mat
    softening: PETSc.Mat
    geometric: PETSc.Mat | None
    damping: PETSc.Mat | None
    damped: bool
    displacement: Array
    factor: SymmetricFactor
    prefix: str
    options: Options

    @property
    def space(self) -> fem.FunctionSpace:
        """The displacement space."""
        return self.problem.space

    @property
    def spin(self) -> Any:
        """Axis for the inertia operators: n, shape (3,), in the plane its z component."""
        return self.axis if self.problem.dim == 3 else float(self.axis[2])

    def factorize(self, speed: float, *, stiffening: bool = True) -> int | None:
        """Factorize K(Ω); return the number of its negative eigenvalues (see `SymmetricFactor`).

        Args:
            speed: Ω, rad/s.
            stiffening: Whether to include K_σ.

        Raises:
            SingularError: Ω is a speed at which a motion loses its static stiffness.
            FactorizationError: The factorization failed for another reason.
            InputError: K_σ is requested, but the stress is not known.

        Note: Collective.
        """
        speed = checked_speed("speed", speed)
        K = self.factor.matrix
        self.stiffness.copy(K, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
        for A in self.speed_matrices(stiffening=stiffening):
            K.axpy(speed**2, A, structure=SUBSET)
        return self.factor.factorize()

    def speed_matrices(self, *, stiffening: bool = True) -> tuple[PETSc.Mat, ...]:
        """Return K_ω and, with `stiffening`, K_σ.

        Raises:
            InputError: K_σ is requested, but the stress is not known.
        """
        if not flag("stiffening", stiffening):
            return (self.softening,)
        if self.geometric is None:
            raise InputError(
                "geometric stiffness needs the stress: give a material, or stress=σ(u) with your "
                "own stiffness form; or stiffening=False"
            )
        return self.softening, self.geometric

    def velocity_matrix(self, speed: float, *, coriolis: bool = True) -> PETSc.Mat | None:
        """Return Ω G + D, or None if both vanish; the caller destroys it.

        Note: Collective.
        """
        speed = checked_speed("speed", speed)
        with_coriolis = flag("coriolis", coriolis) and speed != 0
        if self.damping is None:
            if not with_coriolis:
                return None
            C = self.gyroscopic.copy()
            C.scale(speed)
            return C
        C = self.damping.copy()
        if with_coriolis:
            C.axpy(speed, self.gyroscopic, structure=SUBSET)
        return C

    def destroy(self) -> None:
        """Free all matrices."""
        self.problem.destroy()
        self.factor.destroy()
        for A in (self.stiffness, self.mass, self.gyroscopic, self.softening):
            A.destroy()
        for B in (self.springs, self.geometric, self.damping):
            if B is not None:
                B.destroy()


def rotating_structure(
    model: ElasticModel | TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    held: Iterable[str] | Mapping[str, Any] = (),
    axis: ArrayLike = (0.0, 0.0, 1.0),
    point: ArrayLike = (0.0, 0.0, 0.0),
    springs: ufl.Form | None = None,
    damping: Damping | Iterable[Damping] | None = None,
    stress: Stress | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_rotating_",
) -> RotatingStructure:
    """Assemble the matrices of a rotating body that do not depend on the speed.

    They include the stress of the centrifugal load at unit speed.

    Args:
        model: An `ElasticModel` without prestress; or a mesh, with `material`.
        material: Material of a mesh; see `ElasticModel`.
        held: Groups of facets that rotate without deformation: names, or a mapping from name to
            tag.
        axis: Direction of the axis of rotation, shape (3,); a plane body rotates about z.
        point: Point of the axis, shape (3,), in the plane also (2,), m.
        springs: Symmetric bilinear form on the displacement space, of springs between the body and
            the rotating frame; None: no springs.
        damping: `Rayleigh` with K at rest, springs included; `Viscous`; a symmetric bilinear form
            on the displacement space that acts on u̇ in the rotating frame (that of a plane body
            includes the thickness); or several of these. None: no damping.
        stress: σ(u) as UFL, Pa; needed only if the model has its own stiffness form.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``pep_ncv`` ..., or ``eps_ncv`` ... if the problem is symmetric).
        petsc_options_prefix: Prefix of these options.

    Returns:
        The matrices; the caller destroys them.

    Raises:
        InputError: A value does not fit; the same error on every rank.
        FactorizationError: The linear solver failed, or a part of the body is not held.

    Note: Collective over the communicator of the mesh.
    """
    instance("springs", springs, (ufl.Form, type(None)))
    if stress is not None:
        function("stress", stress, "stress(u)")
    solver = solver_options(petsc_options_prefix, petsc_options)
    body = elastic_model(model, material)
    refuse_prestress(body, "rotating_structure")
    groups = facet_groups(body.mesh, held, body.facet_tags)
    if not groups and springs is None:
        raise InputError(
            "nothing holds the body in the turning frame; give held=[...] groups of facets, or "
            "springs, a bilinear form"
        )
    problem = elastic_problem(body)
    check_floating(problem, "give the springs to the turning frame as springs=")
    n, p = checked_axis(axis, point, problem.dim)
    if stress is None and problem.materials is not None:
        stress = problem.materials.stress
    spin = n if problem.dim == 3 else float(n[2])
    parts = Parts(
        problem,
        held_dofs(problem.space, groups),
        springs,
        listed_dampings(damping),
        (inertia_matrix(problem, coriolis(spin)), inertia_matrix(problem, centrifugal(spin))),
        -apply_inertia(problem, centrifugal(spin), _arms(problem, p)),
    )

    def geometric(u0: Array) -> PETSc.Mat | None:
        if stress is None:
            return None
        return geometric_matrix(problem, stress(as_function(problem.space, u0)))

    return constrained_structure(parts, n, p, geometric, solver)


class Parts(NamedTuple):
    """A rotating body before it is held: a solid or a beam.

    Attributes:
        problem: `ElasticProblem` or `BeamProblem`.
        held: Owned held degrees of freedom (local numbers).
        springs: Form of springs to the rotating frame, or None.
        dampings: All dampings.
        matrices: G and K_ω.
        load: Centrifugal load at unit speed, shape (owned dofs,), N/(rad/s)².
    """

    problem: Any
    held: NDArray[np.int32]
    springs: ufl.Form | None
    dampings: tuple[Damping, ...]
    matrices: tuple[PETSc.Mat, PETSc.Mat]
    load: Array


def constrained_structure(
    parts: Parts,
    axis: Array,
    point: Array,
    geometric: Callable[[Array], PETSc.Mat | None],
    solver: dict[str, Any],
) -> RotatingStructure:
    """Hold a body, and add the geometric stiffness of the centrifugal load.

    Args:
        parts: The body before it is held.
        axis: Unit vector of the axis of rotation, shape (3,).
        point: Point of the axis, shape (3,), m.
        geometric: Function from the displacement at unit speed to K_σ, or to None.
        solver: From `solver_options`.

    Note: Collective.
    """
    problem, rows = parts.problem, parts.held
    K, M, springs = problem.stiffness.copy(), problem.mass(), None
    if parts.springs is not None:
        springs = assembled(parts.springs, problem.space, "springs")
        K.axpy(1.0, springs)
    D = damping_matrix(problem, K, M, parts.dampings)
    G, K_omega = parts.matrices
    constrain(K, rows, 1.0)
    for A in (M, G, K_omega, D, springs):
        if A is not None:
            constrain(A, rows, 0.0)
    factor = SymmetricFactor(K.copy(), **solver)
    if factor.factorize():
        raise InputError("the stiffness at rest is not positive definite: check the springs")
    load = parts.load
    load[rows] = 0.0
    u0 = solve(factor.ksp, load[:, None])[:, 0]
    K_sigma = geometric(u0)
    if K_sigma is not None:
        constrain(K_sigma, rows, 0.0)
    forms_of_user = any(isinstance(d, ufl.Form) for d in parts.dampings)
    return RotatingStructure(
        problem,
        rows,
        axis,
        point,
        stiffness=K,
        springs=springs,
        mass=M,
        gyroscopic=G,
        softening=K_omega,
        geometric=K_sigma,
        damping=D,
        damped=any(map(is_complete, parts.dampings)) and not forms_of_user,
        displacement=u0,
        factor=factor,
        **solver,
    )


def checked_axis(axis: ArrayLike, point: ArrayLike, dim: int) -> tuple[Array, Array]:
    """Return the unit vector of the axis and a point of it, both of shape (3,)."""
    n, p = vector("axis", axis), array("point", point)
    length = np.abs(n).max()
    if not length > 0:
        refuse("axis", axis, "a vector that is not zero")
    n = n / length
    if p.shape not in ((3,), (dim,)):
        refuse("point", point, f"a point of shape ({dim},)")
    if dim == 2 and n[:2].any():
        raise InputError(f"a plane body turns about z, axis=(0, 0, 1); got {axis!r}")
    return n / float(np.linalg.norm(n)), np.concatenate([p, np.zeros(3 - len(p))])


def checked_speed(argument: str, value: Any) -> float:
    """Return a speed; its square must be finite."""
    return number(argument, value, low=-1e12, high=1e12, unit="rad/s")


def assembled(form: ufl.Form, V: fem.FunctionSpace, name: str) -> PETSc.Mat:
    """Assemble a symmetric form of the user."""
    message = None
    try:
        check_form(form, V)
    except ValueError as error:
        message = f"{name}: {str(error).replace('stiffness', name)}"
    raise_together(V.mesh.comm, message)
    A = fem_petsc.assemble_matrix(fem.form(form))
    A.assemble()
    T = A.transpose(PETSc.Mat())
    T.axpy(-1.0, A)
    skew = T.norm() / (A.norm() or 1.0)
    T.destroy()
    if not skew < SYMMETRY_TOLERANCE:  # (nor is NaN)
        A.destroy()
        raise InputError(f"{name} must be symmetric, but A - Aᵀ is {skew:.1e} of A")
    return A


def listed_dampings(damping: Damping | Iterable[Damping] | None) -> tuple[Damping, ...]:
    """Return no, one or several dampings as a tuple."""
    if damping is None:
        return ()
    if isinstance(damping, (Rayleigh, Viscous, ufl.Form)):
        return (damping,)
    parts = tuple(damping) if isinstance(damping, Iterable) else (damping,)
    for part in parts:
        if not isinstance(part, (Rayleigh, Viscous, ufl.Form)):
            raise InputTypeError(
                f"damping is Rayleigh(mass, stiffness), Viscous(mu) or a UFL form; got {part!r}"
            )
    return parts


def is_complete(damping: Damping) -> bool:
    """Return whether a damping is known to act on every motion of a held body."""
    if isinstance(damping, Rayleigh):
        return damping.mass > 0 or damping.stiffness > 0
    viscosity = getattr(damping, "viscosity", None)
    return isinstance(viscosity, (int, float, np.number)) and bool(viscosity > 0)


def damping_matrix(
    problem: ElasticProblem, K: PETSc.Mat, M: PETSc.Mat, dampings: tuple[Damping, ...]
) -> PETSc.Mat | None:
    """Return D with the pattern of K, before degrees of freedom are held."""
    if not dampings:
        return None
    V = problem.space
    D = K.copy()
    D.scale(0.0)
    for part in dampings:
        if isinstance(part, Rayleigh):
            D.axpy(part.stiffness, K, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
            D.axpy(part.mass, M, structure=SUBSET)
            continue
        if isinstance(part, Viscous):
            mu = ufl.as_ufl(part.viscosity)
            if problem.thickness is not None:
                mu = fem.Constant(V.mesh, default_scalar_type(problem.thickness)) * mu
            part = forms.viscous_damping(ufl.TrialFunction(V), ufl.TestFunction(V), mu)
        A = assembled(part, V, "damping")
        D.axpy(1.0, A)
        A.destroy()
    return D


def _arms(problem: ElasticProblem, point: Array) -> Array:
    """Return x - p of the owned degrees of freedom."""
    return (problem.positions - point[: problem.dim]).ravel()
