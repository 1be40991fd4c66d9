"""Geometric stiffening of a reduced body: unit loads, their stress, and its stiffness in the modes.

Unit loads are the centrifugal ones of ω_iω_j and the six components of a wrench at each interface.
Each is balanced by the inertia of the rigid acceleration that it causes (inertia relief), so that
its stress σ₀ does not depend on how the body is held, and frame accelerations and gravity cause
none. A wrench acts on the body. The displacement follows from the factorization that the reduction
has anyway: with all interfaces held, then released through the constraint modes.

The geometric stiffness ∫ (∇u σ₀):∇v is the same scalar form for each component of the displacement,
so that a scalar matrix per load does, a ninth of the size of K.

The nodes of a rigid interface move by θ×ξ + ½ θ×(θ×ξ); the work of the interface's forces f on the
second part, ½ θᵀ (Σ f⊗ξ − tr(Σ f⊗ξ) I) θ, belongs to the stiffness: without it the lateral
stress that a rigid end face causes would resist a rotation in which it turns along.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.body import Stiffening
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import (
    ElasticProblem,
    blocked,
    in_space,
    point_motion,
    projected,
    spin_fields,
)
from dolfinx_mbd.fem.compat import geometry_degree
from dolfinx_mbd.forms import geometric_stiffness
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.reduction.interfaces import MeshInterface

__all__ = [
    "UnitCases",
    "choose_stiffening",
    "gradient_measure",
    "inertia_relief",
    "spin_fields",
    "stiffening",
    "unit_cases",
]

Array = NDArray[np.float64]
Stress = Callable[[Any], Any]

_log = logging.getLogger("dolfinx_mbd")

WRENCH_INDICES = {3: [0, 1, 2, 3, 4, 5], 2: [0, 1, 5]}
"""Components of a wrench that a body in space, or in the plane, feels by deforming."""


@dataclass(frozen=True, eq=False)
class UnitCases:
    """The body under the unit loads: six spins, then the unit wrenches of each interface.

    Attributes:
        displacements: Shape (owned dofs, cases).
        virials: Σ f⊗ξ of the forces f with which a rigid interface holds its nodes at ξ from its
            point, shape (cases, interfaces, 3, 3); zero for averaged ones.
        work: Work uᵀKu of each unit load on its displacement u, shape (cases,); None if unknown.
    """

    displacements: Array
    virials: Array
    work: Array | None = None

    def work_in_space(self, dim: int) -> Array | None:
        """Return the work of six spins and of six components of a wrench at each interface."""
        if self.work is None:
            return None
        components = WRENCH_INDICES[dim]
        wrenches = np.zeros(((len(self.work) - 6) // len(components), 6))
        wrenches[:, components] = self.work[6:].reshape(-1, len(components))
        return np.concatenate([self.work[:6], wrenches.ravel()])


def unit_cases(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    constraint: Array,
    held_spins: Array,
    held_inertia: Array,
) -> UnitCases:
    """What the unit loads do to the body, with inertia relief, up to a rigid motion.

    Args:
        problem: Matrices of the free body.
        interfaces: All of them.
        constraint: Constraint modes, shape (owned dofs, coordinates of the interfaces).
        held_spins: Displacements under the six spins with all interfaces held, shape
            (owned dofs, 6).
        held_inertia: The same under M R of the rigid motions R.

    Note: Collective.
    """
    comm, per = problem.comm, problem.num_rigid
    R, spins = problem.rigid_motions(), problem.spin_loads()
    inertia = problem.apply_mass(R)
    coordinates = per * len(interfaces)
    relief = inertia_relief(problem, interfaces, R, inertia, spins)

    held = -held_inertia @ relief
    held[:, :6] += held_spins
    load = -inertia @ relief
    load[:, :6] += spins
    reaction = gram(comm, constraint, load)
    reaction[:, 6:] += np.eye(coordinates)
    stiffness = gram(comm, constraint, multiply(problem.stiffness, constraint))
    motions = np.vstack([point_motion(i.point, problem.dim) for i in interfaces])
    released = _release(stiffness, reaction, motions)
    u = np.asfortranarray(held + constraint @ released)
    forces = multiply(problem.stiffness, u)
    work = comm.bcast(comm.reduce(np.einsum("ic,ic->c", u, forces), root=0), root=0)
    forces -= load
    virials = np.zeros((u.shape[1], len(interfaces), 3, 3))
    for k, i in enumerate(interfaces):
        if i.kind == "rigid":
            shape = len(i.blocks), i.dim, u.shape[1]
            f = in_space(forces[i.dofs].reshape(shape)[:, : problem.dim], axis=1)
            arms = in_space(problem.positions[i.blocks]) - i.point
            virials[:, k] = np.einsum("pic,pj->cij", f, arms)
    return UnitCases(u, comm.allreduce(virials), work)


def inertia_relief(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    R: Array,
    inertia: Array,
    spins: Array,
) -> Array:
    """Rigid accelerations that balance the unit loads: six spins, then wrenches.

    Args:
        problem: Its communicator and dimension.
        interfaces: All of them.
        R: Rigid motions about the origin, shape (owned dofs, 6), in the plane 3.
        inertia: M R.
        spins: Loads of the spins, shape (owned dofs, 6).

    Returns:
        Shape (6, cases), in the plane (3, cases).

    Note: Collective.
    """
    per = problem.num_rigid
    resultants = np.zeros((per, 6 + per * len(interfaces)))  # work of each load on rigid motions
    resultants[:, :6] = gram(problem.comm, R, spins)
    for k, i in enumerate(interfaces):
        resultants[:, 6 + per * k : 6 + per * k + per] = point_motion(i.point, problem.dim).T
    return np.asarray(np.linalg.solve(gram(problem.comm, R, inertia), resultants), dtype=float)


def _release(stiffness: Array, reaction: Array, motions: Array) -> Array:
    """Return the motion of the interfaces under self-equilibrated forces, without rigid part.

    Args:
        stiffness: Of the interfaces, shape (m, m); zero for the rigid motions.
        reaction: Forces, shape (m, k).
        motions: Motion of the interfaces for rigid motions, shape (m, 6), in the plane (m, 3).
    """
    count = motions.shape[1]
    if len(stiffness) == count:
        return np.zeros_like(reaction)
    scale = 1 / np.sqrt(np.diag(stiffness))
    rigid = motions / scale[:, None]
    q, _ = np.linalg.qr(rigid / np.linalg.norm(rigid, axis=0), mode="complete")
    Z = scale[:, None] * q[:, count:]
    return np.asarray(Z @ np.linalg.solve(Z.T @ stiffness @ Z, Z.T @ reaction))


def stiffening(
    problem: ElasticProblem,
    stress: Stress,
    cases: UnitCases,
    vectors: Array,
    turns: Array,
) -> Stiffening:
    """Reduced geometric stiffness of all unit cases.

    Args:
        problem: The displacement space.
        stress: σ(u) as UFL, Pa.
        cases: From `unit_cases`.
        vectors: Modes, shape (owned dofs, n).
        turns: Rotation of each interface per mode, shape (interfaces, 3, n).

    Note: Collective.
    """
    V, dim = problem.space, problem.dim
    W = fem.functionspace(V.mesh, V.ufl_element().sub_elements[0])
    p, q, u0 = ufl.TrialFunction(W), ufl.TestFunction(W), fem.Function(V)
    form = fem.form(geometric_stiffness(p, q, stress(u0), gradient_measure(V)))
    A = fem_petsc.create_matrix(form)
    fields = blocked(vectors, dim)
    n, across = vectors.shape[1], 1.0 if problem.thickness is None else problem.thickness
    count = cases.displacements.shape[1]
    reduced = np.zeros((count, n, n))
    for c in range(count):
        u0.x.array[: len(vectors)] = cases.displacements[:, c]
        u0.x.scatter_forward()
        A.zeroEntries()
        fem_petsc.assemble_matrix(A, form)  # type: ignore[arg-type]
        A.assemble()
        K = across * projected(problem.comm, A, fields, dim)
        for virial, turn in zip(cases.virials[c], turns, strict=True):
            K += turn.T @ (virial - np.trace(virial) * np.eye(3)) @ turn
        reduced[c] = 0.5 * (K + K.T)
    A.destroy()
    interfaces = np.zeros((len(turns), 6, n, n))
    interfaces[:, WRENCH_INDICES[dim]] = reduced[6:].reshape(len(turns), problem.num_rigid, n, n)
    return Stiffening(reduced[:6], interfaces, cases.work_in_space(dim))


def choose_stiffening(
    requested: bool | None, needs: Mapping[str, bool], comm: MPI.Comm
) -> tuple[bool, str]:
    """Return whether a body gets geometric stiffening, and the reason if it does not.

    Args:
        requested: True, False, or None for stiffening wherever it is possible.
        needs: What stiffening needs, in words, and whether it is there.
        comm: Communicator; the first rank logs the reason.

    Raises:
        InputError: Stiffening is requested, but something is missing.
    """
    missing = " and ".join(text for text, there in needs.items() if not there)
    if requested and missing:
        raise InputError(f"stiffening=True needs {missing}", argument="stiffening", value=requested)
    if requested is not False and not missing:
        return True, ""
    reason = "switched off by stiffening=False" if requested is False else f"it needs {missing}"
    if comm.rank == 0:
        level = logging.INFO if requested is False else logging.WARNING
        _log.log(level, "no geometric stiffening: %s", reason)
    return False, reason


def gradient_measure(V: fem.FunctionSpace) -> Any:
    """Enough quadrature for three gradients; what UFL estimates on curved simplices is far more."""
    if V.mesh.topology.cell_name() not in ("triangle", "tetrahedron"):
        return ufl.dx
    degree, order = V.ufl_element().sub_elements[0].degree, geometry_degree(V.mesh)
    return ufl.dx(metadata={"quadrature_degree": max(1, 3 * (degree - 1) + 2 * (order - 1))})


def mean_axis_cases(problem: ElasticProblem, cases: UnitCases) -> UnitCases:
    """Unit cases without the rigid motion that is left open in them: M-orthogonal to all of them.

    Stress does not change; displacements are then those in the mean-axis frame.

    Note: Collective.
    """
    R = problem.rigid_motions()
    MR = problem.apply_mass(R)
    rigid = np.linalg.solve(gram(problem.comm, R, MR), gram(problem.comm, MR, cases.displacements))
    return replace(cases, displacements=np.asfortranarray(cases.displacements - R @ rigid))
