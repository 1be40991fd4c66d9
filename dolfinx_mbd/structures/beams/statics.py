"""Natural modes, statics and section forces of a beam."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import fem, la
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, entries, instance, integer, names, reject, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import assembled_matrix
from dolfinx_mbd.fem.compilation import compiled_expression, compiled_form
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import null_space, triangular_factor
from dolfinx_mbd.fem.linalg.blocks import solve
from dolfinx_mbd.fem.linalg.factorization import cholesky
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.modal.spectrum import elastic_modes, hertz
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.reduction.craig_bampton import MOTION_LABELS
from dolfinx_mbd.structures.beams.model import BeamModel, rigid_modes
from dolfinx_mbd.structures.beams.problem import beam_problem

Place: TypeAlias = "float | ArrayLike"
"""A node: its distance along the beam, m, or its position, shape (3,)."""

Held: TypeAlias = "Iterable[Place] | Mapping[float, Sequence[str]]"
"""Clamped nodes; or a mapping from nodes to held components: ux, uy, uz, rx, ry, rz."""


@dataclass(frozen=True, eq=False)
class BeamModes:
    """Natural modes of a beam.

    Example:
        >>> modes = beam_modes(model, 3)
        >>> modes.num_rigid, len(modes.modes)
        (6, 3)
    """

    frequencies: Array  # elastic modes, shape (num_modes,), ascending, Hz
    modes: tuple[fem.Function, ...]  # on `model.space`, ∫ρ ψ·ψ = 1
    num_rigid: int  # number of rigid motions
    model: BeamModel

    __repr__ = short_repr


def beam_modes(
    model: BeamModel,
    num_modes: int = 10,
    *,
    held: Held = (),
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_beam_modes_",
) -> BeamModes:
    """Compute the lowest elastic modes of a beam that is free or held at some nodes.

    Args:
        model: The beam.
        num_modes: Number of elastic modes, without the rigid motions.
        held: Clamped nodes, given by their distances along the beam (m), such as `[0.0]`; or a
            mapping from nodes to held components, such as `{0.0: ["uy", "uz"]}`.
        petsc_options: Options of the linear solver and of the eigenvalue solver.
        petsc_options_prefix: Prefix of these options.

    Returns:
        Frequencies and modes.

    Raises:
        InputError: A value is invalid.
        EigenError: The eigenvalue solver failed, or missed a mode.

    Example:
        >>> beam_modes(model, 3, held=[0.0]).num_rigid
        0

    Note: Collective.
    """
    integer("num_modes", num_modes, low=0)
    solver = solver_options(petsc_options_prefix, petsc_options)
    dofs = held_dofs(model, held)
    problem, motions = beam_problem(model), _free_motions(model, dofs)
    result = elastic_modes(
        problem, num_modes, dofs, motions, estimate=problem.first_square(), **solver
    )
    vectors = result.vectors * problem.inertia(result.vectors).signs
    problem.destroy()
    modes = tuple(as_function(model.space, v) for v in vectors.T)
    return BeamModes(hertz(result.squares), modes, result.num_rigid, model)


def beam_statics(
    model: BeamModel,
    load: ufl.Form | None = None,
    *,
    held: Held,
    wrenches: Mapping[float, ArrayLike] | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_beam_statics_",
) -> fem.Function:
    """Compute displacements and rotations of a held beam under loads.

    Args:
        model: The beam.
        load: Linear form on `model.space`, for example one of the loads of `model.beam`. By default
            no distributed load.
        held: Clamped nodes, or held components; see `beam_modes`.
        wrenches: Mapping from the distance of a node along the beam to force and moment in body
            components, shape (6,), N and N m. By default none.
        petsc_options: Options of the linear solver.
        petsc_options_prefix: Prefix of these options.

    Returns:
        A function on `model.space`: at each node u (m), then θ (rad).

    Raises:
        InputError: A node is unknown, or a rigid motion is free.

    Example:
        >>> q = beam_statics(model, held=[0.0], wrenches={0.5: (0, 1, 0, 0, 0, 0)})
        >>> q.function_space == model.space
        True

    Note: Collective.
    """
    solver = solver_options(petsc_options_prefix, petsc_options)
    dofs, size = held_dofs(model, held), 6 * len(model.positions)
    instance("wrenches", wrenches, (Mapping, type(None)))
    free = _free_motions(model, dofs).shape[1]
    if free:
        raise InputError(
            f"the beam is not held: {free} rigid motions are free", argument="held", value=free
        )
    b = np.zeros(size)
    if load is not None:
        instance("load", load, ufl.Form)
        if [v.ufl_function_space() for v in load.arguments()] != [model.space]:
            reject("load", load, "a linear form in a test function on model.space")
        forces = fem.assemble_vector(compiled_form(load))
        forces.scatter_reverse(la.InsertMode.add)
        b += forces.array[:size]
    for place, wrench in (wrenches or {}).items():
        _, blocks = model.node(place, "wrenches")
        values = vector("wrenches", wrench, 6)
        for block in blocks:
            b[6 * block : 6 * block + 6] += values
    u, v = ufl.TrialFunction(model.space), ufl.TestFunction(model.space)
    K = assembled_matrix(model.beam.elastic_stiffness(u, v))
    constrain(K, dofs, 1.0)
    b[dofs] = 0.0
    ksp = cholesky(K, **solver)
    x = solve(ksp, np.asfortranarray(b[:, None]))[:, 0]
    ksp.destroy()
    K.destroy()
    return as_function(model.space, x)


def beam_forces(model: BeamModel, q: fem.Function) -> tuple[Array, Array]:
    """Return the section forces on the part of the beam before each section, in the beam's axes.

    They follow from the cubic deflection and are exact if loads act at nodes only. Under a load p
    per length, the errors at the ends of a cell of length h are p h²/12 for moments and p h/2 for
    shear.

    Args:
        model: The beam.
        q: Displacements and rotations, a function on `model.space`.

    Returns:
        Distances along the beam of both ends of each cell, shape (cells, 2), in ascending order, m;
        and the axial force N, shear forces V_y and V_z, torque T and bending moments M_y and M_z,
        shape (cells, 2, 6), N and N m.

    Example:
        >>> q = beam_statics(model, held=[0.0], wrenches={0.5: (0, 1, 0, 0, 0, 0)})
        >>> x, forces = beam_forces(model, q)
        >>> print(forces[0, 0].round(6) + 0.0)
        [0.  1.  0.  0.  0.  0.5]

    Note: Collective.
    """
    instance("model", model, BeamModel)
    instance("q", q, fem.Function)
    mesh, beam = model.mesh, model.beam
    V, M = beam.shear_force(q), beam.moment(q)
    parts = ufl.as_vector([beam.axial_force(q), V[0], V[1], M[0], M[1], M[2]])
    cells = np.arange(mesh.topology.index_map(1).size_local, dtype=np.int32)
    field = beam.field(q)
    distance = ufl.dot(
        field.position_at(ufl.as_ufl(0.0), ufl.as_ufl(0.0)), ufl.as_vector(list(model.direction))
    )
    ends = np.array([[0.0], [1.0]])
    values = compiled_expression(parts, ends).eval(mesh, cells).reshape(-1, 2, 6)
    distances = compiled_expression(distance, ends).eval(mesh, cells).reshape(-1, 2)
    gathered = mesh.comm.allgather((distances, values))
    x, f = (np.concatenate([part[i] for part in gathered]) for i in (0, 1))
    order = np.argsort(x.mean(axis=1))
    x, f = x[order], f[order]
    reversed_cells = x[:, 0] > x[:, 1]  # cells of opposite orientation
    x[reversed_cells], f[reversed_cells] = x[reversed_cells, ::-1], f[reversed_cells, ::-1]
    return x, f


def _free_motions(model: BeamModel, held: NDArray[np.int32]) -> Array:
    """Return the rigid motions that the held degrees of freedom allow, shape (owned dofs, r)."""
    chain = model.chain
    R = rigid_modes(model, chain.mean(axis=0))
    R[:, 3:] /= np.linalg.norm(chain[-1] - chain[0])  # rotations in the size of translations
    free = null_space(model.mesh.comm, triangular_factor(model.mesh.comm, R[held]))
    motions = np.asfortranarray(R @ free)
    motions[held] = 0.0
    return motions


def held_dofs(model: BeamModel, held: Held) -> NDArray[np.int32]:
    """Return the local indices of the owned held degrees of freedom; see `beam_modes`."""
    instance("model", model, BeamModel)
    places = entries("held", held, "a list of nodes, or a mapping from nodes to names")
    labels = MOTION_LABELS[3]
    items = held.items() if isinstance(held, Mapping) else [(place, labels) for place in places]
    dofs: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
    for place, components in items:
        _, blocks = model.node(place, "held")
        for c in names("held", components):
            dofs.append(6 * blocks + labels.index(choice("held", c, labels)))
    return np.unique(np.concatenate(dofs)).astype(np.int32)
