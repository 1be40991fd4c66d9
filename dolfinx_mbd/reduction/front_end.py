"""`reduce`: from a mesh to a reduced flexible body, in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import Plane, Temperature
from dolfinx_mbd.iterative.solver_choice import Solver
from dolfinx_mbd.reduction.damping import Given
from dolfinx_mbd.reduction.distributed_loads import LoadForm
from dolfinx_mbd.reduction.reducer import Reducer, check_request
from dolfinx_mbd.reduction.result import Reduction

__all__ = ["reduce"]


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
    solver: Solver = "auto",
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
        num_modes: Number of fixed-interface modes. If it cuts through a multiple frequency, all
            modes of that frequency are taken: which of them a solver finds first is chance, and
            another one with another number of ranks.
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
        solver: ``direct``: one factorization serves all; ``iterative``: multigrid and conjugate
            gradients, slower, and in half the memory at a million dofs; ``auto``: direct while the
            factor is expected to fit into memory. Free bodies and prestress: always direct.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...).
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        FactorizationError: The linear solver failed, for instance as a part of the body is loose.
        EigenError: The eigenvalue solver did not converge.

    Note: Collective over the mesh's communicator.
    """
    check_request(num_modes, damping, attached_to, up_to, orthonormalize)
    reducer = Reducer(
        mesh,
        material,
        interfaces=interfaces,
        kind=kind,
        prestress=prestress,
        cell_tags=cell_tags,
        facet_tags=facet_tags,
        space=space,
        degree=degree,
        stiffness=stiffness,
        density=density,
        plane=plane,
        thickness=thickness,
        solver=solver,
        petsc_options=petsc_options,
        petsc_options_prefix=petsc_options_prefix,
    )
    with reducer:
        return reducer.reduce(
            num_modes,
            effective_mass=effective_mass,
            loads=loads,
            load_modes=load_modes,
            attached_to=attached_to,
            up_to=up_to,
            orthonormalize=orthonormalize,
            stiffening=stiffening,
            static_correction=static_correction,
            damping=damping,
            points=points,
            name=name,
            skin=skin,
            last=True,
        )
