"""Beams that rotate steadily: blades and shafts, with the analyses of rotating solids.

The matrices contain the gyroscopic terms of the sections. K_σ contains the axial force due to the
spin and the second-order rotation of each section in the centrifugal field. Without the
second-order rotation, the stiffness of a shaft that rotates about its own axis would be too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import ufl
from numpy.typing import ArrayLike

from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.checks import instance, items
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.operators import centrifugal, coriolis
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.beams.problem import beam_problem, initial_stress_matrices
from dolfinx_mbd.structures.beams.statics import Held, held_dofs
from dolfinx_mbd.structures.rotating.structure import RotatingStructure, checked_axis, damping_tuple


def rotating_beam(
    model: BeamModel,
    *,
    held: Held = (),
    axis: ArrayLike = (0.0, 0.0, 1.0),
    point: ArrayLike = (0.0, 0.0, 0.0),
    springs: ufl.Form | None = None,
    damping: Rayleigh | ufl.Form | Iterable[Rayleigh | ufl.Form] | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_rotating_beam_",
) -> RotatingStructure:
    """Assemble the matrices of a rotating beam that do not depend on the speed.

    `rotating_modes`, `campbell` and `critical_speed` accept the result.

    Args:
        model: The beam.
        held: Nodes that are clamped in the rotating frame, given by their distances along the beam
            (m), such as `[0.0]`; or a mapping from nodes to components held in the rotating frame,
            such as `{0.0: ["uy", "uz"]}`.
        axis: Direction of the axis of rotation, shape (3,).
        point: Point of the axis, shape (3,), m.
        springs: Symmetric bilinear form on `model.space` for springs between the beam and the
            rotating frame. By default none.
        damping: `Rayleigh` with K at rest, springs included; a symmetric bilinear form on
            `model.space`; or several of these. By default none.
        petsc_options: Options of the linear solver and of the eigenvalue solver.
        petsc_options_prefix: Prefix of these options.

    Returns:
        The matrices; the caller destroys them.

    Raises:
        InputError: A value is invalid; the error is raised on every rank.
        FactorizationError: The linear solver failed, or the beam is not held.

    Example:
        >>> blade = mbd.structures.rotating_beam(model, held=[0.0], axis=(0, 1, 0))
        >>> mbd.structures.rotating_modes(blade, 100.0, num_modes=2).frequencies.shape
        (2,)

    Note: Collective.
    """
    instance("springs", springs, (ufl.Form, type(None)))
    solver = solver_options(petsc_options_prefix, petsc_options)
    n, p = checked_axis(axis, point, 3)
    dampings = items("damping", damping_tuple(damping), (Rayleigh, ufl.Form))
    rows = held_dofs(model, held)
    if springs is None and not model.mesh.comm.allreduce(len(rows)):
        raise InputError("nothing holds the beam in the rotating frame; give held=[...] or springs")
    problem = beam_problem(model)
    W = centrifugal(n)
    return RotatingStructure(
        problem,
        rows,
        (n, p),
        springs=springs,
        dampings=dampings,
        gyroscopic=problem.inertia_matrix(coriolis(n)),
        softening=problem.inertia_matrix(W),
        load=problem.motion_load(-W @ p, W),
        geometric=lambda u0: next(initial_stress_matrices(model, u0[:, None], W[None])),
        solver=solver,
    )
