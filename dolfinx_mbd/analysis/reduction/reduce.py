"""`reduce`: from a mesh to a reduced flexible body, in parallel; and back with `Reduction`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.analysis.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.analysis.la import FactorizationError
from dolfinx_mbd.analysis.material_fields import Materials
from dolfinx_mbd.analysis.mesh_checks import check_in_one_part, warn_of_materials, warn_of_units
from dolfinx_mbd.analysis.meshing import TaggedMesh
from dolfinx_mbd.analysis.modal import check_num_modes, free_basis
from dolfinx_mbd.analysis.phases import Phases
from dolfinx_mbd.analysis.prestress import BUCKLED, prestressed
from dolfinx_mbd.analysis.recovery.displacement import (
    History,
    as_function,
    stations,
    surface_skin,
    write_history,
)
from dolfinx_mbd.analysis.recovery.recoverable import Recoverable
from dolfinx_mbd.analysis.recovery.static_correction import StaticCorrection, mean_axis_cases
from dolfinx_mbd.analysis.reduction.craig_bampton import Basis, craig_bampton_basis
from dolfinx_mbd.analysis.reduction.damping import Given, check_damping, reduced_damping
from dolfinx_mbd.analysis.reduction.description import materials_of, mode_table, provenance
from dolfinx_mbd.analysis.reduction.distributed_loads import LoadForm, load_patterns, load_vectors
from dolfinx_mbd.analysis.reduction.inertia import Inertia, inertia
from dolfinx_mbd.analysis.reduction.interfaces import MeshInterface, mesh_interfaces
from dolfinx_mbd.analysis.reduction.reference import ReducedModes, attached, mean_axis, raw_attached
from dolfinx_mbd.analysis.reduction.stiffening import UnitCases
from dolfinx_mbd.analysis.reduction.stiffening import stiffening as unit_stiffening
from dolfinx_mbd.analysis.reduction.truncation import Truncation
from dolfinx_mbd.analysis.surface import body_size
from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.forms import Plane, Temperature

__all__ = [
    "Reduction",
    "check_attached",
    "check_reference",
    "placed_interfaces",
    "reduce",
    "reduced_modes",
]

Array = NDArray[np.float64]

MOTION_ROWS = {3: [0, 1, 2, 3, 4, 5], 2: [0, 1, 5]}
"""Where the coordinates of an interface are in a motion (d, θ) in space."""


@dataclass(frozen=True, eq=False)
class Reduction(Recoverable):
    """A reduced body and what ties it to its mesh.

    Attributes:
        body: The reduced body, plain data, the same bits on every rank.
        space: The displacement space.
        modes: The modes on this rank, shape (owned dofs, n).
        positions: x at the owned blocks, m, shape (owned blocks, 3), in the plane (.., 2).
        truncation: What the fixed-interface modes leave out at the interfaces: a bound of the error
            of their dynamic stiffness, and effective masses. None without interfaces.
        stress: σ(u) of the materials as a function from UFL to UFL, shape (3, 3), Pa, without the
            prestress; None with the user's own stiffness.
        cases: What unit wrenches at the interfaces and unit spins do, for `static_correction`.
    """

    body: ReducedBody
    space: fem.FunctionSpace
    modes: Array
    positions: Array
    truncation: Truncation | None = None
    stress: Callable[[Any], Expr] | None = None
    cases: UnitCases | None = None

    def static_correction(self) -> StaticCorrection:
        """Modes and what they leave out statically, under interface forces and spin.

        Stress near joints is then not cut off with the modes.

        Raises:
            ValueError: The reduction was made without `static_correction=True`.
        """
        if self.cases is None:
            raise ValueError("reduce the body with static_correction=True")
        return StaticCorrection.of(self, self.cases)

    def displacement(self, eta: ArrayLike, out: fem.Function | None = None) -> fem.Function:
        """Elastic displacement u = Σ ψ_k η_k in the body frame, m.

        Args:
            eta: Elastic coordinates, shape (n,).
            out: A function on `space` to be overwritten; None: a new one.

        Raises:
            ValueError: The number of coordinates is not that of the modes.

        Note: Collective.
        """
        eta = np.asarray(eta, dtype=float)
        if eta.shape != (self.modes.shape[1],):
            raise ValueError(f"expected {self.modes.shape[1]} elastic coordinates, got {eta.shape}")
        return as_function(self.space, self.modes @ eta, out)

    def write(
        self,
        path: str | Path,
        history: History,
        *,
        times: ArrayLike | None = None,
        every: int = 1,
        motion: Literal["global", "body"] = "global",
        scale: float = 1.0,
    ) -> None:
        """Write a motion as VTX for ParaView ("Warp By Vector" with `displacement`), in parallel.

        The file holds two functions: `displacement`, from the mesh to where its points are, and
        `elastic`, u in body components, never scaled.

        Args:
            path: A name that ends in ``.bp``; missing directories are made.
            history: `time` (nt,), `eta` (nt, n), `position` (nt, 3) and `rotation` (nt, 4).
            times: Instants to write, s; the nearest recorded ones are taken. None: all.
            every: Without `times`, write every so many instants.
            motion: ``global``: rigid motion included; ``body``: elastic displacement only.
            scale: Factor of the elastic part in `displacement`.

        Raises:
            ValueError: The history does not fit the body.

        Note: Collective.
        """
        write_history(
            self.space,
            self.modes,
            self.positions,
            path,
            history,
            times=times,
            every=every,
            motion=motion,
            scale=scale,
        )


def reduce(
    mesh: TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    interfaces: Iterable[str] | Mapping[str, Any],
    num_modes: int = 20,
    effective_mass: float | None = None,
    loads: Mapping[str, LoadForm] | None = None,
    load_modes: bool = False,
    kind: Literal["rigid", "averaged"] = "rigid",
    attached_to: str | None = None,
    up_to: float | None = None,
    orthonormalize: bool = True,
    stiffening: bool | None = None,
    static_correction: bool = False,
    damping: Given | ArrayLike | None = None,
    prestress: Temperature | Expr | None = None,
    cell_tags: MeshTags | None = None,
    facet_tags: MeshTags | None = None,
    space: fem.FunctionSpace | None = None,
    degree: int = 2,
    stiffness: ufl.Form | None = None,
    density: Any = None,
    plane: Plane | None = None,
    thickness: float | None = None,
    points: Mapping[str, ArrayLike] | None = None,
    name: str = "body",
    skin: bool = True,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_reduce_",
) -> Reduction:
    """Reduce a body with interfaces to few modes (Craig-Bampton, orthonormalized).

    With k interfaces the body has 6 k + `num_modes` - 6 elastic coordinates; without any, the
    `num_modes` lowest modes of the free body. The body frame is the mean axis of the motion
    (Tisserand), or moves with one interface (`attached_to`), which is for frames whose motion is
    prescribed, for small loads, and to compare with other programs: without stiffening the two
    differ by what grows as the square of the speed.

    A plane mesh gives a plate at z = 0 of some thickness that deforms in its plane only, and moves
    in space as any other body: its modes have no uz, its interfaces move by (ux, uy, θz) and take
    forces and moments out of the plane as a rigid body does. It has 3 k + `num_modes` - 3 elastic
    coordinates.

    Args:
        mesh: A tagged mesh, or a plain one; in space or in the plane.
        material: `Material`, `GradedMaterial` or `Orthotropic`; or a mapping from groups of cells,
            by name or tag, to their materials. May be missing where `stiffness` and `density` are
            given.
        interfaces: Names of groups of facets; or a mapping from the interface's name to a group's
            name, a tag or an `InterfaceSpec`. May be empty. A rigid interface must not touch
            another, averaged ones must not overlap.
        num_modes: Fixed-interface modes.
        effective_mass: Of these keep the fewest that have this share (0 to 1) of the effective mass
            of all, in every direction.
        loads: Distributed loads by name that the body will meet: functions from a test function to
            the virtual work of a load of size one, or `pressure(mesh, group)`, `traction`,
            `body_force`.
        load_modes: Whether each load gets a static mode, with which its static response is exact.
        kind: Of the interfaces that do not say it themselves: ``rigid`` (RBE2; the facets move as
            one) or ``averaged`` (RBE3; the motion is a mean, and the facets are free to deform).
        attached_to: The interface with which the body frame moves; None: mean axis.
        up_to: Modes above this frequency are left out, Hz.
        stiffening: Geometric stiffening by spin and by the interfaces' forces, for fast rotation;
            None: where it can be had, that is with a material, interfaces and the mean axis.
        static_correction: Keep what unit loads do on the whole mesh, for stress that does not end
            with the modes (`Reduction.static_correction`).
        damping: `Rayleigh`, `ModalDamping`, `Viscous(mu)`, a bilinear form on `space` that acts on
            the velocity (in the plane with the thickness), or a matrix; of the elastic coordinates
            only, never against rigid motion. None: none. `with_damping` adds several.
        prestress: `Temperature` or a stress as UFL, Pa, that the body would have at its undeformed
            shape; it deforms until it is in equilibrium by itself, with free interfaces, and what
            stress is left stiffens it (or softens, where it compresses).
        cell_tags: Tags of cells, if `mesh` is a plain mesh and there are several materials.
        orthonormalize: False, with `attached_to`: keep constraint and fixed-interface modes as they
            are, for a comparison with other programs.
        facet_tags: Tags of facets, if `mesh` is a plain mesh.
        space: The user's own vector Lagrange space; by default of `degree`.
        degree: Degree of the default space, at least the geometric order of the mesh.
        stiffness: The user's own bilinear form on `space`, of the free body; that of a plane body
            includes the thickness.
        density: Number or UFL expression, kg/m³; the material's by default.
        plane: Of a plane mesh, ``stress`` (a plate free on both sides) or ``strain`` (no strain
            across); not needed with `stiffness`.
        thickness: Of a plane mesh, m.
        points: Material points by name, m, shape (3,) or in the plane (2,), whose displacement will
            be wanted.
        name: The body's name.
        skin: Keep the surface and the modes there.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...).
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        FactorizationError: The linear solver failed, for instance as a part of the body is loose.
        EigenError: The eigenvalue solver did not converge.

    Note: Collective over the mesh's communicator.
    """
    check_num_modes(num_modes)
    check_damping(damping)
    check_reference(attached_to, up_to, orthonormalize)
    phases = Phases()
    with phases("assembly"):
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
        check_in_one_part(problem.space.mesh)
    warn_of_materials(m for _, m in materials_of(material))
    static: dict[str, Any] = {"prefix": petsc_options_prefix, "options": petsc_options}
    if prestress is not None:
        with phases("prestress"):
            problem = prestressed(problem, prestress, **static)
    with phases("interfaces"):
        found = mesh_interfaces(mesh, problem.space, interfaces, facet_tags, kind)
    check_attached(attached_to, found)
    if not found and (load_modes or effective_mass is not None):
        raise ValueError("load_modes and effective_mass need interfaces")
    if static_correction and (not found or attached_to is not None):
        raise ValueError("static_correction=True needs interfaces and the mean-axis reference")
    forces = load_vectors(problem, loads or {})
    stiff = _check_stiffening(stiffening, problem, attached_to, found)
    solver = static | {"phases": phases}
    try:
        if found:
            basis = craig_bampton_basis(
                problem,
                found,
                num_modes,
                stiffening=stiff or static_correction,
                loads=dict(zip(loads, forces.T, strict=True)) if loads and load_modes else None,
                effective_mass=effective_mass,
                **solver,
            )
        else:
            basis = free_basis(problem, num_modes, **solver)
    except FactorizationError as error:
        raise FactorizationError(f"{BUCKLED} ({error})") if problem.prestress else error
    with phases("projection"):
        modes = reduced_modes(problem, basis, attached_to, up_to, orthonormalize)
    if problem.prestress and modes.squares.min(initial=np.inf) <= 0:
        raise FactorizationError(BUCKLED)
    cases, truncation = basis.cases, basis.truncation
    del basis
    with phases("inertia"):
        moments = inertia(problem, modes.vectors)
        moments = replace(moments, signs=np.where(modes.fixed_signs, 1.0, moments.signs))
        vectors = modes.vectors * moments.signs
    placed = placed_interfaces(problem, found, modes, moments)
    kept = mean_axis_cases(problem, cases) if static_correction and cases else None
    stiffened = None
    if stiff and cases is not None and problem.materials is not None:
        with phases("stiffening"):
            turns = np.array([i.motion[3:] for i in placed])
            stress = problem.materials.stress
            stiffened = unit_stiffening(problem, stress, cases, vectors, turns)
        del cases
    with phases("points and skin"):
        places = stations(problem.space, vectors, points or {})
        surface = surface_skin(problem.space, vectors) if skin else None
    flipped = moments.with_signs()
    mass = np.eye(len(modes.squares)) if modes.orthonormal else flipped.mass
    small_stiffness = modes.stiffness * np.outer(moments.signs, moments.signs)
    damped = reduced_damping(
        damping, problem.space, vectors, mass, small_stiffness, thickness=problem.thickness
    )
    facts = provenance(problem, material, density, num_modes, found, up_to, prestress)
    if truncation is not None and up_to is None and effective_mass is None:
        facts["interfaces to 1 % (Hz)"] = round(truncation.accurate_to(0.01), 1)
    seconds = {f"seconds, {k}": value for k, value in phases.seconds(problem.comm).items()}
    body = ReducedBody(
        name=name,
        total_mass=moments.total_mass,
        first_moments=flipped.first_moments,
        second_moments=flipped.second_moments,
        mass=mass,
        stiffness=small_stiffness,
        damping=damped,
        interfaces=placed,
        modes=mode_table(modes, flipped, problem.dim),
        left_out=modes.left_out,
        points=places,
        loads=load_patterns(problem, loads or {}, forces, vectors),
        skin=surface,
        stiffening=stiffened,
        reference=modes.reference,
        provenance=facts | seconds,
    )
    problem.destroy()
    warn_of_units(body.total_mass, body_size(problem.space.mesh))
    law = None if problem.materials is None else problem.materials.stress_in_space
    return Reduction(body, problem.space, vectors, problem.positions, truncation, law, kept)


def check_reference(attached_to: Any, up_to: Any, orthonormalize: bool) -> None:
    """Refuse what is no name, no frequency, or does not go together."""
    if attached_to is not None and not isinstance(attached_to, str):
        raise ValueError(f"attached_to is the name of an interface; got {attached_to!r}")
    number = isinstance(up_to, (int, float, np.number)) and not isinstance(up_to, bool)
    if up_to is not None and not (number and up_to > 0):
        raise ValueError(f"up_to is a frequency, a positive number of Hz; got {up_to!r}")
    if not orthonormalize and attached_to is None:
        raise ValueError(
            "orthonormalize=False needs attached_to: only without the six constraint modes of one "
            "interface have the others no rigid motion in them"
        )
    if not orthonormalize and up_to is not None:
        raise ValueError("up_to needs modes that have frequencies: orthonormalize=True")


def _check_stiffening(
    wanted: bool | None,
    problem: ElasticProblem,
    attached_to: str | None,
    found: tuple[MeshInterface, ...],
) -> bool:
    """Whether the body gets its geometric stiffening."""
    missing = [
        what
        for what, there in (
            (
                "a material, whose stress is known (not a stiffness form)",
                problem.materials,
            ),
            ("the mean-axis reference (no attached_to)", attached_to is None),
            ("interfaces", found),
        )
        if not there
    ]
    if wanted and missing:
        raise ValueError(f"stiffening=True needs {' and '.join(missing)}")
    return wanted is not False and not missing


def check_attached(attached_to: str | None, found: tuple[MeshInterface, ...]) -> None:
    """Refuse an interface that the body does not have."""
    names = [i.name for i in found]
    if attached_to is not None and attached_to not in names:
        known = ", ".join(map(repr, names)) or "none"
        raise ValueError(f"attached_to: unknown interface {attached_to!r}; this body has {known}")


def reduced_modes(
    problem: ElasticProblem,
    basis: Basis,
    attached_to: str | None,
    up_to: float | None,
    orthonormalize: bool,
) -> ReducedModes:
    """The modes of a basis under the reference condition that is asked for."""
    if attached_to is None:
        return mean_axis(problem, basis, up_to=up_to)
    if orthonormalize:
        return attached(problem, basis, attached_to, up_to=up_to)
    return raw_attached(problem, basis, attached_to)


def placed_interfaces(
    problem: ElasticProblem, found: tuple[MeshInterface, ...], modes: ReducedModes, moments: Inertia
) -> tuple[Interface, ...]:
    """The coefficient of a constraint mode is the motion of its interface, exactly."""
    per, rows = problem.num_rigid, MOTION_ROWS[problem.dim]
    result = []
    for k, i in enumerate(found):
        motion = np.zeros((6, len(modes.squares)))
        motion[rows] = modes.transform[per * k : per * k + per] * moments.signs
        result.append(Interface(i.name, i.kind, i.point, i.axes, motion))
    return tuple(result)
