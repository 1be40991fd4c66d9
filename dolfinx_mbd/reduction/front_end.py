"""`reduce`: from a mesh to a reduced flexible body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike

from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.iterative.solver_choice import Solver
from dolfinx_mbd.reduction.options import ReductionOptions, check_request
from dolfinx_mbd.reduction.reducer import Reducer
from dolfinx_mbd.reduction.result import Reduction

__all__ = ["reduce"]


def reduce(
    model: ElasticModel | TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    interfaces: Iterable[str] | Mapping[str, Any],
    num_modes: int = 20,
    attached_to: str | None = None,
    stiffening: bool | None = None,
    points: Mapping[str, ArrayLike] | None = None,
    name: str = "body",
    options: ReductionOptions | None = None,
    solver: Solver = "auto",
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_reduce_",
) -> Reduction:
    """Reduce a body with interfaces to a few modes (Craig-Bampton).

    With k interfaces the body has 6 k + `num_modes` - 6 elastic coordinates; without interfaces,
    the `num_modes` lowest modes of the free body. The body frame is the mean axis of the motion
    (Tisserand), or moves with an interface (`attached_to`). An attached frame is for a frame with a
    prescribed motion, for small loads, and for comparisons with other programs; it has no geometric
    stiffening, so that its error grows as the square of the speed.

    A plane mesh is a plate at z = 0 that deforms in its plane and moves in space. Its modes have no
    uz; its interfaces move by (ux, uy, θz), and carry forces and moments out of the plane as a
    rigid body does. It has 3 k + `num_modes` - 3 elastic coordinates.

    Args:
        model: An `ElasticModel`; or a mesh, with `material`.
        material: Material of a mesh; see `ElasticModel`.
        interfaces: Names of groups of facets; or a mapping from the name of an interface to the
            name of a group, a tag or an `InterfaceSpec`. May be empty. A rigid interface must not
            touch another; averaged interfaces must not overlap.
        num_modes: Number of fixed-interface modes. If the last of them belongs to a multiple
            frequency, all modes of that frequency are kept.
        attached_to: Name of the interface that the body frame moves with; None: mean axis.
        stiffening: Geometric stiffening by spin and by the forces at the interfaces, for fast
            rotation; None: if possible, that is, with a material, interfaces and the mean axis.
            `ReducedBody.summary` and the log state why it is left out.
        points: Material points by name, m, shape (3,) or in the plane (2,), whose displacement can
            be recovered; None: no points.
        name: Name of the body.
        options: Loads, damping and selection of modes; None: the defaults of `ReductionOptions`.
        solver: ``direct``: one factorization for all systems; ``iterative``: multigrid and
            conjugate gradients, slower, with half the memory at a million degrees of freedom;
            ``auto``: direct if the factor is expected to fit into memory. Bodies without
            interfaces and bodies with prestress always use the direct solver.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...).
        petsc_options_prefix: Prefix of these options.

    Returns:
        The reduced body with its modes on the mesh.

    Raises:
        InputError: A value does not fit; the same error on every rank.
        FactorizationError: The linear solver failed, for example because a part is loose.
        EigenError: The eigenvalue solver did not converge.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> from mpi4py import MPI
        >>> from dolfinx.mesh import create_box, locate_entities_boundary, meshtags
        >>> import numpy as np
        >>> import dolfinx_mbd as mbd
        >>> mesh = create_box(MPI.COMM_WORLD, [(0, 0, 0), (1, 0.1, 0.1)], (8, 1, 1))
        >>> facets = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.0))
        >>> tags = meshtags(mesh, 2, np.sort(facets), np.full(len(facets), 1, dtype=np.int32))
        >>> rod = mbd.ElasticModel(mesh, mbd.STEEL, facet_tags=tags)
        >>> mbd.reduce(rod, interfaces={"pin": 1}, num_modes=6).body.num_modes
        6
    """
    check_request(num_modes, attached_to, stiffening, points, name, options)
    reducer = Reducer(
        model,
        material,
        interfaces=interfaces,
        solver=solver,
        petsc_options=petsc_options,
        petsc_options_prefix=petsc_options_prefix,
    )
    with reducer:
        return reducer.reduce(
            num_modes,
            attached_to=attached_to,
            stiffening=stiffening,
            points=points,
            name=name,
            options=options,
            last=True,
        )
