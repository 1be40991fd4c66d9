"""Constant matrices of a body that rotates steadily, assembled once for all speeds.

In the frame that rotates with the speed Ω about the unit vector n through the point p, small
vibrations u about the deformed state obey

    M ü + (Ω G + D) u̇ + (K + Ω² (K_σ + K_ω)) u = 0

with the Coriolis operator Ω G = 2Ω ∫ρ (n×u̇)·v, spin softening K_ω = ∫ρ (n×(n×u))·v and the
geometric stiffness K_σ = ∫ (∇u σ₀):∇v of the stress σ₀ of the linear static solution under the unit
centrifugal load -∫ρ (n×(n×(x-p)))·v. The damping D acts on velocities in the rotating frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc

from dolfinx_mbd import forms
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.checks import array, flag, function, instance, items, number, reject, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import assembled_matrix, elastic_problem, geometric_matrix
from dolfinx_mbd.fem.elastic_model import ElasticModel, check_form, elastic_model, reject_prestress
from dolfinx_mbd.fem.facets import facet_groups, held_dofs
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import check_floating
from dolfinx_mbd.fem.linalg.blocks import solve
from dolfinx_mbd.fem.linalg.factorization import SymmetricFactor
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.operators import apply_inertia, centrifugal, coriolis, inertia_matrix
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.reduction.mesh_damping import Viscous

Stress = Callable[[Any], Any]
Damping: TypeAlias = Rayleigh | Viscous | ufl.Form

SYMMETRY_TOLERANCE = 1e-9
"""A form with the matrix A is rejected as not symmetric if |A - Aᵀ|/|A| is larger."""

SAME = PETSc.Mat.Structure.SAME_NONZERO_PATTERN
SUBSET = PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN


class RotatingStructure:
    """Constant matrices of a body that is held in a rotating frame; see `rotating_structure`.

    Rows and columns of held degrees of freedom are zero, with a unit diagonal in K.

        >>> structure.factorize(100.0)  # number of negative eigenvalues of K(Ω)
        0
    """

    def __init__(
        self,
        problem: Any,
        held: NDArray[np.int32],
        axis: tuple[Array, Array],
        *,
        springs: ufl.Form | None,
        dampings: tuple[Damping, ...],
        gyroscopic: PETSc.Mat,
        softening: PETSc.Mat,
        load: Array,
        geometric: Callable[[Array], PETSc.Mat | None],
        solver: dict[str, Any],
    ) -> None:
        # `axis` is the unit vector n of the axis and a point p on the axis;
        # `geometric` returns K_σ of a displacement, or None
        self.problem = problem  # ElasticProblem or BeamProblem of the free body
        self.held = held  # owned held degrees of freedom (local numbers)
        self.axis, self.point = axis  # n and p, both of shape (3,)
        self.solver = solver  # PETSc options and their prefix
        self.stiffness, self.mass = problem.stiffness.copy(), problem.mass()  # K at rest, M
        self.gyroscopic, self.softening = gyroscopic, softening  # G per rad/s, K_ω per (rad/s)²
        self.springs: PETSc.Mat | None = None  # part of K due to the springs
        if springs is not None:
            self.springs = _symmetric_matrix(springs, problem.space, "springs")
            self.stiffness.axpy(1.0, self.springs)
        self.damping = _damping_matrix(problem, self.stiffness, self.mass, dampings)
        self.damped = _is_positive_definite(dampings)  # whether D damps every motion
        constrain(self.stiffness, held, 1.0)
        for A in (self.mass, gyroscopic, softening, self.damping, self.springs):
            if A is not None:
                constrain(A, held, 0.0)
        # Factor of K(Ω) at the last speed, at first at rest
        self.factor = SymmetricFactor(self.stiffness.copy(), **solver)
        if self.factor.factorize():
            raise InputError("the stiffness at rest is not positive definite: check the springs")
        self.load = load  # centrifugal load at unit speed, owned, N/(rad/s)²
        self.load[held] = 0.0
        self.displacement = solve(self.factor.ksp, load[:, None])[:, 0]  # owned, m/(rad/s)²
        self.geometric = geometric(self.displacement)  # K_σ per (rad/s)², or None
        if self.geometric is not None:
            constrain(self.geometric, held, 0.0)

    @property
    def space(self) -> fem.FunctionSpace:
        """Displacement space."""
        return self.problem.space

    def factorize(self, speed: float, *, stiffening: bool = True) -> int | None:
        """Factorize K(Ω); return the number of its negative eigenvalues (see `SymmetricFactor`).

        Args:
            speed: Ω, rad/s.
            stiffening: Whether to include K_σ.

        Raises:
            SingularError: K(Ω) is singular: Ω is a static critical speed.
            FactorizationError: The factorization failed for another reason.
            InputError: K_σ is requested, but the stress is unknown.

        Note: Collective.
        """
        speed = checked_speed("speed", speed)
        K = self.factor.matrix
        self.stiffness.copy(K, structure=SAME)
        for A in self.speed_matrices(stiffening):
            K.axpy(speed**2, A, structure=SUBSET)
        return self.factor.factorize()

    def speed_matrices(self, stiffening: bool) -> tuple[PETSc.Mat, ...]:
        """Return K_ω and, with `stiffening`, K_σ, or raise an error if the stress is unknown."""
        if not flag("stiffening", stiffening):
            return (self.softening,)
        if self.geometric is None:
            raise InputError(
                "geometric stiffness needs the stress: give a material, or give stress=σ(u) with "
                "your own stiffness form, or use stiffening=False"
            )
        return self.softening, self.geometric

    def velocity_matrix(self, speed: float) -> PETSc.Mat | None:
        """Return Ω G + D, or None if both vanish; the caller destroys it."""
        if checked_speed("speed", speed) == 0 and self.damping is None:
            return None
        if self.damping is None:
            C = self.gyroscopic.copy()
            C.scale(speed)
            return C
        C = self.damping.copy()
        C.axpy(speed, self.gyroscopic, structure=SUBSET)
        return C

    def destroy(self) -> None:
        """Destroy all matrices."""
        parts = (self.problem, self.factor, self.stiffness, self.mass, self.gyroscopic)
        for part in (*parts, self.softening, self.springs, self.geometric, self.damping):
            if part is not None:
                part.destroy()


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

    They include the geometric stiffness of the centrifugal load at unit speed.

    Args:
        model: An `ElasticModel` without prestress, or a mesh together with `material`.
        material: Material of a mesh; see `ElasticModel`.
        held: Groups of facets that are fixed in the rotating frame: names, or tags by name.
        axis: Direction of the axis of rotation, shape (3,); a plane body rotates about z.
        point: Point of the axis, shape (3,), in the plane also (2,), m.
        springs: Symmetric bilinear form on the displacement space for springs between the body and
            the rotating frame. By default none.
        damping: `Rayleigh` with K at rest, springs included; `Viscous`; a symmetric bilinear form
            on the displacement space that acts on u̇ in the rotating frame (the form of a plane
            body includes the thickness); or several of these. By default none.
        stress: σ(u) as UFL, Pa; needed only if the model has its own stiffness form.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``pep_ncv`` ..., or ``eps_ncv`` ... if the problem is symmetric).
        petsc_options_prefix: Prefix of these options.

    Returns:
        The matrices; the caller destroys them.

    Raises:
        InputError: A value is invalid; the error is raised on every rank.
        FactorizationError: The linear solver failed, or a part of the body is not held.

    Example:
        >>> box = mbd.structures.rotating_structure(
        ...     mesh, mbd.STEEL, held={"root": root}, axis=(0, 1, 0)
        ... )
        >>> box.axis
        array([0., 1., 0.])

    Note: Collective over the communicator of the mesh.
    """
    instance("springs", springs, (ufl.Form, type(None)))
    if stress is not None:
        function("stress", stress, "stress(u)")
    solver = solver_options(petsc_options_prefix, petsc_options)
    body = elastic_model(model, material)
    reject_prestress(body, "rotating_structure")
    groups = facet_groups(body.mesh, held, body.facet_tags)
    if not groups and springs is None:
        raise InputError(
            "nothing holds the body in the rotating frame; give held=[...] groups of facets, or "
            "springs, a bilinear form"
        )
    problem = elastic_problem(body)
    check_floating(problem, "give the springs to the rotating frame as springs=")
    n, p = checked_axis(axis, point, problem.dim)
    if stress is None and problem.materials is not None:
        stress = problem.materials.stress
    unit_spin = n if problem.dim == 3 else float(n[2])  # 1 rad/s about the axis
    arms = problem.positions - p[: problem.dim]

    def geometric(u0: Array) -> PETSc.Mat | None:
        """Return K_σ under the stress of a displacement, or None if the stress is unknown."""
        if stress is None:
            return None
        return geometric_matrix(problem, stress(as_function(problem.space, u0)))

    return RotatingStructure(
        problem,
        held_dofs(problem.space, groups),
        (n, p),
        springs=springs,
        dampings=damping_tuple(damping),
        gyroscopic=inertia_matrix(problem, coriolis(unit_spin)),
        softening=inertia_matrix(problem, centrifugal(unit_spin)),
        load=-apply_inertia(problem, centrifugal(unit_spin), arms.ravel()),
        geometric=geometric,
        solver=solver,
    )


def checked_axis(axis: ArrayLike, point: ArrayLike, dim: int) -> tuple[Array, Array]:
    """Return the unit vector of the axis and a point on the axis, both of shape (3,)."""
    n, p = vector("axis", axis), array("point", point)
    length = np.abs(n).max()
    if not length > 0:
        reject("axis", axis, "a vector that is not zero")
    n = n / length  # squares of large numbers could overflow
    if p.shape not in ((3,), (dim,)):
        reject("point", point, f"a point of shape ({dim},)")
    if dim == 2 and n[:2].any():
        raise InputError(f"a plane body rotates about z, axis=(0, 0, 1); got {axis!r}")
    return n / float(np.linalg.norm(n)), np.concatenate([p, np.zeros(3 - len(p))])


def checked_speed(argument: str, value: Any) -> float:
    """Return a speed; its square must be finite."""
    return number(argument, value, low=-1e12, high=1e12, unit="rad/s")


def damping_tuple(damping: Damping | Iterable[Damping] | None) -> tuple[Damping, ...]:
    """Return dampings as a tuple, which is empty for None."""
    if damping is None:
        return ()
    kinds = (Rayleigh, Viscous, ufl.Form)
    return (damping,) if isinstance(damping, kinds) else items("damping", damping, kinds)


def _symmetric_matrix(form: ufl.Form, V: fem.FunctionSpace, name: str) -> PETSc.Mat:
    """Assemble a symmetric user-defined form."""
    message = None
    try:
        check_form(form, V)
    except ValueError as error:
        message = f"{name}: {str(error).replace('stiffness', name)}"
    raise_together(V.mesh.comm, message)
    A = assembled_matrix(form)
    T = A.transpose(PETSc.Mat())
    T.axpy(-1.0, A)
    asymmetry = T.norm() / (A.norm() or 1.0)
    T.destroy()
    if not asymmetry < SYMMETRY_TOLERANCE:  # true also for NaN
        A.destroy()
        raise InputError(
            f"{name} must be symmetric, but A - Aᵀ is {asymmetry:.1e} of A", argument=name
        )
    return A


def _is_positive_definite(dampings: tuple[Damping, ...]) -> bool:
    """Return whether the dampings act on every motion; False if this is unknown (a form)."""
    if any(isinstance(d, ufl.Form) for d in dampings):
        return False
    sizes = [max(d.mass, d.stiffness) if isinstance(d, Rayleigh) else d.viscosity for d in dampings]
    numbers = [size for size in sizes if isinstance(size, (int, float, np.number))]
    return any(bool(size > 0) for size in numbers)


def _damping_matrix(
    problem: Any, K: PETSc.Mat, M: PETSc.Mat, dampings: tuple[Damping, ...]
) -> PETSc.Mat | None:
    """Return D with the pattern of K, before the held degrees of freedom are constrained."""
    if not dampings:
        return None
    V = problem.space
    D = K.copy()
    D.scale(0.0)
    for part in dampings:
        if isinstance(part, Rayleigh):
            D.axpy(part.stiffness, K, structure=SAME)
            D.axpy(part.mass, M, structure=SUBSET)
            continue
        if isinstance(part, Viscous):
            mu = ufl.as_ufl(part.viscosity)
            if problem.thickness is not None:
                mu = fem.Constant(V.mesh, default_scalar_type(problem.thickness)) * mu
            part = forms.viscous_damping(ufl.TrialFunction(V), ufl.TestFunction(V), mu)
        A = _symmetric_matrix(part, V, "damping")
        D.axpy(1.0, A)
        A.destroy()
    return D
