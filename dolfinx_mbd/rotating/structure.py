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
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc

from dolfinx_mbd import forms
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.checks import array, flag, function, instance, number, refuse, vector
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.arguments import check_form
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.fem.facets import facet_groups
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import check_floating
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.operators import apply_inertia, centrifugal, coriolis, inertia_matrix
from dolfinx_mbd.forms import Plane
from dolfinx_mbd.linalg.blocks import solve
from dolfinx_mbd.linalg.inertia import SymmetricFactor
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.linalg.options import Options, solver_options
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.reduction.damping import Viscous

__all__ = [
    "RotatingStructure",
    "assembled",
    "checked_axis",
    "damping_matrix",
    "is_complete",
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
        axis: n, shape (3,).
        point: A point of the axis, shape (3,), m.
        stiffness: K, at rest, with the springs.
        springs: Their part of it, or None.
        mass: M.
        gyroscopic: G, per rad/s.
        softening: K_ω, per (rad/s)².
        geometric: K_σ likewise; None if the stress is not known.
        damping: D, or None.
        damped: D is positive definite, as far as is known: it is not for a form.
        displacement: u of the unit centrifugal load, owned, m/(rad/s)²: that at Ω is Ω² times it.
        factor: Factorization of the stiffness at the speed that was asked for last.
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
        """n as the inertia operators take it: shape (3,), in the plane a number."""
        return self.axis if self.problem.dim == 3 else float(self.axis[2])

    def factorize(self, speed: float, *, stiffening: bool = True) -> int | None:
        """Factorize K(Ω); returns the number of its negative eigenvalues (see `SymmetricFactor`).

        Args:
            speed: Ω, rad/s.
            stiffening: With K_σ.

        Raises:
            SingularError: Ω is a speed at which a motion loses its static stiffness.
            FactorizationError: It failed otherwise.
            ValueError: K_σ is wanted, and the stress is not known.

        Note: Collective.
        """
        speed = checked_speed("speed", speed)
        K = self.factor.matrix
        self.stiffness.copy(K, structure=PETSc.Mat.Structure.SAME_NONZERO_PATTERN)
        for A in self.speed_matrices(stiffening=stiffening):
            K.axpy(speed**2, A, structure=SUBSET)
        return self.factor.factorize()

    def speed_matrices(self, *, stiffening: bool = True) -> tuple[PETSc.Mat, ...]:
        """K_ω and, if wanted, K_σ.

        Raises:
            ValueError: K_σ is wanted, and the stress is not known.
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
        """Ω G + D, or None if there is neither; the caller destroys it.

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
    mesh: TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    held: Iterable[str] | Mapping[str, Any] = (),
    axis: ArrayLike = (0.0, 0.0, 1.0),
    point: ArrayLike = (0.0, 0.0, 0.0),
    springs: ufl.Form | None = None,
    damping: Damping | Iterable[Damping] | None = None,
    facet_tags: MeshTags | None = None,
    cell_tags: MeshTags | None = None,
    space: fem.FunctionSpace | None = None,
    degree: int = 2,
    stiffness: ufl.Form | None = None,
    stress: Stress | None = None,
    density: Any = None,
    plane: Plane | None = None,
    thickness: float | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_rotating_",
) -> RotatingStructure:
    """Assemble all that does not depend on the speed, the prestress of unit speed included.

    Args:
        mesh: A tagged mesh, or a plain one; in space or in the plane.
        material: One for all cells, or a mapping from groups of cells to their materials.
        held: Groups of facets that only turn: names, or a mapping from name to tag.
        axis: Direction of the axis of rotation, shape (3,); a plane body turns about z.
        point: A point of the axis, shape (3,), in the plane also (2,), m.
        springs: Bilinear form on `space` of springs between body and turning frame, symmetric.
        damping: `Rayleigh` with K at rest, springs included; `Viscous`; a symmetric bilinear form
            on `space`, to act on u̇ in the turning frame (that of a plane body includes the
            thickness); or several of these.
        facet_tags: Tags of facets, if `mesh` is a plain mesh.
        cell_tags: Tags of cells, likewise, if there are several materials.
        space: The user's own vector Lagrange space; by default of `degree`.
        degree: Degree of the default space.
        stiffness: The user's own bilinear form on `space`, of the free body.
        stress: σ(u) as UFL, Pa; only needed where `stiffness` is the user's own.
        density: Number or UFL expression, kg/m³; the material's by default.
        plane: Of a plane mesh, ``strain`` or ``stress``; see `reduce`.
        thickness: Of a plane mesh, m.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``pep_ncv`` ..., or ``eps_ncv`` ... where the problem is symmetric).
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        TypeError: The damping is of another kind.
        FactorizationError: The linear solver failed, or a part of the body is not held.

    Note: Collective over the mesh's communicator. The caller destroys the result.
    """
    instance("springs", springs, (ufl.Form, type(None)))
    if stress is not None:
        function("stress", stress, "stress(u)")
    solver = solver_options(petsc_options_prefix, petsc_options)
    groups = facet_groups(mesh, held, facet_tags)
    if not groups and springs is None:
        raise InputError(
            "nothing holds the body in the turning frame; give held=[...] groups of facets, or "
            "springs, a bilinear form"
        )
    problem = elastic_problem(
        mesh,
        material,
        cell_tags=cell_tags,
        space=space,
        degree=degree,
        stiffness=stiffness,
        density=density,
        plane=plane,
        thickness=thickness,
    )
    check_floating(problem, "give the springs to the turning frame as springs=")
    n, p = checked_axis(axis, point, problem.dim)
    if stress is None and problem.materials is not None:
        stress = problem.materials.stress
    rows = _held_dofs(problem, groups)
    K, soft = problem.stiffness.copy(), None
    if springs is not None:
        soft = assembled(springs, problem.space, "springs")
        K.axpy(1.0, soft)
    M = problem.mass()
    dampings = listed_dampings(damping)
    D = damping_matrix(problem, K, M, dampings)
    spin = n if problem.dim == 3 else float(n[2])
    G = inertia_matrix(problem, coriolis(spin))
    K_omega = inertia_matrix(problem, centrifugal(spin))
    constrain(K, rows, 1.0)
    for A in (M, G, K_omega, D, soft):
        if A is not None:
            constrain(A, rows, 0.0)
    factor = SymmetricFactor(K.copy(), **solver)
    if factor.factorize():
        raise InputError("the stiffness at rest is not positive definite: check the springs")
    load = -apply_inertia(problem, centrifugal(spin), _arms(problem, p))
    load[rows] = 0.0
    u0 = solve(factor.ksp, load[:, None])[:, 0]
    K_sigma = None if stress is None else _geometric(problem, stress, u0, rows)
    return RotatingStructure(
        problem,
        rows,
        n,
        p,
        K,
        soft,
        M,
        G,
        K_omega,
        K_sigma,
        D,
        any(map(is_complete, dampings)) and not any(isinstance(d, ufl.Form) for d in dampings),
        u0,
        factor,
        petsc_options_prefix,
        petsc_options,
    )


def checked_axis(axis: ArrayLike, point: ArrayLike, dim: int) -> tuple[Array, Array]:
    """Unit vector of the axis and a point of it, both of shape (3,)."""
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


def _held_dofs(
    problem: ElasticProblem, groups: Mapping[str, NDArray[np.int32]]
) -> NDArray[np.int32]:
    facets = np.concatenate([*groups.values(), np.zeros(0, dtype=np.int32)])
    V, dim = problem.space, problem.dim
    V.mesh.topology.create_connectivity(dim - 1, dim)
    blocks = fem.locate_dofs_topological(V, dim - 1, np.unique(facets).astype(np.int32))
    blocks = blocks[blocks < V.dofmap.index_map.size_local]
    return np.asarray((dim * blocks[:, None] + np.arange(dim)).ravel().astype(np.int32))


def assembled(form: ufl.Form, V: fem.FunctionSpace, name: str) -> PETSc.Mat:
    """The matrix of a form of the user's, which must be symmetric."""
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
    """None, one or several dampings as a tuple."""
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
    """Whether it surely damps every motion of a body that is held."""
    if isinstance(damping, Rayleigh):
        return damping.mass > 0 or damping.stiffness > 0
    viscosity = getattr(damping, "viscosity", None)
    return isinstance(viscosity, (int, float, np.number)) and bool(viscosity > 0)


def damping_matrix(
    problem: ElasticProblem, K: PETSc.Mat, M: PETSc.Mat, dampings: tuple[Damping, ...]
) -> PETSc.Mat | None:
    """D with the pattern of K, before anything is held."""
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
    """x - p of the owned degrees of freedom."""
    return (problem.positions - point[: problem.dim]).ravel()


def _geometric(
    problem: ElasticProblem, stress: Stress, u0: Array, held: NDArray[np.int32]
) -> PETSc.Mat:
    """K_σ = A ⊗ I of the stress of u0, with the scalar form A of one component."""
    V = problem.space
    W = fem.functionspace(V.mesh, V.ufl_element().sub_elements[0])
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    sigma = stress(as_function(V, u0))
    if problem.thickness is not None:
        sigma = fem.Constant(V.mesh, default_scalar_type(problem.thickness)) * sigma
    A = fem_petsc.assemble_matrix(fem.form(forms.geometric_stiffness(p, q, sigma)))
    A.assemble()
    K = inertia_matrix(replace(problem, scalar_mass=A), np.eye(problem.dim))
    A.destroy()
    constrain(K, held, 0.0)
    return K
