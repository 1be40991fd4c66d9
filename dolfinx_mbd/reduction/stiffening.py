"""Geometric stiffening of a reduced body: unit loads, their stress, and the modal stiffness.

Unit loads are the centrifugal loads per unit of each ω_iω_j, and the six components of a wrench
at each interface. Each load is balanced by the inertia of the rigid acceleration that it causes
(inertia relief), so that the resulting stress σ₀ is independent of the supports. Gravity causes no
stress.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Stiffening
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import (
    ElasticProblem,
    blocked,
    in_space,
    point_motion,
    projected,
    scalar_space,
)
from dolfinx_mbd.fem.compat import geometry_degree
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.geometric_products import geometric_products, has_simplices
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram, multiply
from dolfinx_mbd.forms import geometric_stiffness

_log = logging.getLogger("dolfinx_mbd")

# Indices of the wrench components (or motions) of an interface in space that a body has, by the
# dimension of its displacements
WRENCH_INDICES = {3: [0, 1, 2, 3, 4, 5], 2: [0, 1, 5]}


@dataclass(frozen=True, eq=False)
class UnitCases:
    """Response of a body to the unit loads: six spins, then the unit wrenches of each interface.

    The virials of a rigid interface are the sums Σ f⊗ξ over its nodes, where f is the force on a
    node and ξ the position of the node relative to the interface point. The virials of averaged
    interfaces are zero.
    """

    displacements: Array  # (owned dofs, cases)
    virials: Array  # (cases, interfaces, 3, 3)
    work: Array  # uᵀKu (cases,)


def unit_cases(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    constraint: Array,
    held_spins: Array,
    held_inertia: Array,
) -> UnitCases:
    """Return the response to the unit loads with inertia relief, up to a rigid motion.

    `held_spins` are the displacements (owned dofs, 6) under the six spins with all interfaces held,
    `held_inertia` the displacements under M R with the rigid motions R. Collective.
    """
    comm, num_rigid = problem.comm, problem.num_rigid
    R, spins = problem.rigid_motions(), problem.spin_loads()
    inertia = problem.apply_mass(R)
    relief = inertia_relief(problem, interfaces, R, inertia, spins)

    held = -held_inertia @ relief
    held[:, :6] += held_spins
    load = -inertia @ relief
    load[:, :6] += spins
    reaction = gram(comm, constraint, load)
    reaction[:, 6:] += np.eye(num_rigid * len(interfaces))
    stiffness = gram(comm, constraint, multiply(problem.stiffness, constraint))
    motions = np.vstack([point_motion(interface.point, problem.dim) for interface in interfaces])
    u = np.asfortranarray(held + constraint @ interface_motions(stiffness, reaction, motions))
    forces = multiply(problem.stiffness, u)
    work = column_sums(comm, u, forces)
    forces -= load
    virials = np.zeros((u.shape[1], len(interfaces), 3, 3))
    for k, interface in enumerate(interfaces):
        if interface.kind == "rigid":
            shape = len(interface.blocks), interface.dim, u.shape[1]
            f = in_space(forces[interface.dofs].reshape(shape)[:, : problem.dim], axis=1)
            arms = in_space(problem.positions[interface.blocks]) - interface.point
            virials[:, k] = np.einsum("pic,pj->cij", f, arms)
    return UnitCases(u, comm.allreduce(virials), work)


def inertia_relief(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    R: Array,
    inertia: Array,
    spins: Array,
) -> Array:
    """Return the rigid accelerations that balance the unit loads, shape (rigid motions, cases).

    `R` are the rigid motions about the origin, `inertia` is M R, `spins` are the loads of the
    spins. Collective.
    """
    points = [point_motion(i.point, problem.dim).T for i in interfaces]
    resultants = np.hstack([gram(problem.comm, R, spins), *points])
    return np.asarray(np.linalg.solve(gram(problem.comm, R, inertia), resultants), dtype=float)


def interface_motions(stiffness: Array, reaction: Array, motions: Array) -> Array:
    """Return the motion of the interfaces under self-equilibrated forces, without rigid part.

    The rigid `motions` of the interfaces have zero stiffness.
    """
    num_rigid = motions.shape[1]
    if len(stiffness) == num_rigid:  # a single interface: it moves only with the body
        return np.zeros_like(reaction)
    scale = 1 / np.sqrt(np.diag(stiffness))
    rigid = motions / scale[:, None]
    q, _ = np.linalg.qr(rigid / np.linalg.norm(rigid, axis=0), mode="complete")
    Z = scale[:, None] * q[:, num_rigid:]
    return np.asarray(Z @ np.linalg.solve(Z.T @ stiffness @ Z, Z.T @ reaction))


def stiffening(
    problem: ElasticProblem,
    stress: Callable[[Any], Any],
    cases: UnitCases,
    vectors: Array,
    rotations: Array,
) -> Stiffening:
    """Return the reduced geometric stiffness of all unit load cases.

    ∫ (∇u σ₀):∇v is the same for each component of the displacement, so that a scalar matrix per
    load suffices. The nodes of a rigid interface move by θ×ξ + ½ θ×(θ×ξ). The strain energy, and so
    the stiffness, includes the work of the forces f of the interface on the second term, ½ θᵀ (Σ
    f⊗ξ − tr(Σ f⊗ξ) I) θ. Without this work, the lateral stress at a rigid end face would resist the
    rotation of the face.

    Args:
        problem: Matrices of the body.
        stress: σ(u) as UFL, Pa.
        cases: The unit load cases.
        vectors: Modes, shape (owned dofs, n).
        rotations: Rotation of each interface per mode, shape (interfaces, 3, n).
    """
    n, thickness = vectors.shape[1], 1.0 if problem.thickness is None else problem.thickness
    reduced = np.zeros((len(cases.work), n, n))
    products = _products(problem, stress, cases.displacements, vectors)
    for c, product in enumerate(products):
        K = thickness * product
        for virial, theta in zip(cases.virials[c], rotations, strict=True):
            K += theta.T @ (virial - np.trace(virial) * np.eye(3)) @ theta
        reduced[c] = 0.5 * (K + K.T)
    num_rigid, count = problem.num_rigid, len(rotations)
    rows = WRENCH_INDICES[problem.dim]
    matrices, work = np.zeros((count, 6, n, n)), np.zeros((count, 6))
    matrices[:, rows] = reduced[6:].reshape(count, num_rigid, n, n)
    work[:, rows] = cases.work[6:].reshape(count, num_rigid)
    return Stiffening(reduced[:6], matrices, np.concatenate([cases.work[:6], work.ravel()]))


def _products(
    problem: ElasticProblem, stress: Callable[[Any], Any], displacements: Array, vectors: Array
) -> Iterator[Array]:
    """Yield Ψᵀ K_σ Ψ for the stress of each displacement (collective).

    On cells other than simplices, a form is assembled for each stress.
    """
    V, dim, measure = problem.space, problem.dim, gradient_measure(problem.space)
    if has_simplices(V.mesh):
        degree = measure.metadata()["quadrature_degree"]
        yield from geometric_products(V, stress, displacements, vectors, degree)
        return
    W = scalar_space(V)
    p, q, u0 = ufl.TrialFunction(W), ufl.TestFunction(W), fem.Function(V)
    form = compiled_form(geometric_stiffness(p, q, stress(u0), measure))
    A, fields = fem_petsc.create_matrix(form), blocked(vectors, dim)
    for displacement in displacements.T:
        as_function(V, displacement, u0)
        A.zeroEntries()
        fem_petsc.assemble_matrix(A, form)  # type: ignore[arg-type]
        A.assemble()
        yield projected(problem.comm, A, fields, dim)
    A.destroy()


def choose_stiffening(
    requested: bool | None, needs: Mapping[str, bool], comm: MPI.Comm
) -> tuple[bool, str]:
    """Return whether a body gets geometric stiffening, and the reason if it does not.

    `needs` maps the description of each requirement to whether it is fulfilled. Rank 0 logs the
    reason. An `InputError` is raised if stiffening is requested, but impossible.
    """
    missing = " and ".join(text for text, fulfilled in needs.items() if not fulfilled)
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
    """Return a measure for three gradients; UFL overestimates the degree on curved simplices."""
    if V.mesh.topology.cell_name() not in ("triangle", "tetrahedron"):
        return ufl.dx
    degree, order = V.ufl_element().sub_elements[0].degree, geometry_degree(V.mesh)
    return ufl.dx(metadata={"quadrature_degree": max(1, 3 * (degree - 1) + 2 * (order - 1))})


def mean_axis_cases(problem: ElasticProblem, cases: UnitCases) -> UnitCases:
    """Return the unit load cases with displacements that are M-orthogonal to all rigid motions."""
    R = problem.rigid_motions()
    MR = problem.apply_mass(R)
    rigid = np.linalg.solve(gram(problem.comm, R, MR), gram(problem.comm, MR, cases.displacements))
    return replace(cases, displacements=np.asfortranarray(cases.displacements - R @ rigid))
