"""Beams that rotate steadily: blades and shafts, with the analyses of rotating solids.

`rotating_beam` makes the constant matrices of `rotating_matrices` from a beam, so that
`rotating_modes`, `campbell` and `critical_speed` take it as they take a solid. The gyroscopic terms
of the sections are in them. So are, in K_σ, the axial force of the spin and the second-order
rotation of each section in its own centrifugal field, without which the sections of a shaft that
turns about its own axis would soften it as loose rings would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import ArrayLike, NDArray
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.beams.model import BeamModel
from dolfinx_mbd.beams.problem import beam_problem
from dolfinx_mbd.beams.statics import Held, held_dofs
from dolfinx_mbd.body import Rayleigh
from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.operators import centrifugal, coriolis
from dolfinx_mbd.linalg.options import solver_options
from dolfinx_mbd.rotating.structure import (
    Parts,
    RotatingStructure,
    checked_axis,
    constrained_structure,
    listed_dampings,
)

__all__ = ["rotating_beam"]

Array = NDArray[np.float64]


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
    """Assemble all that does not depend on the speed, the prestress of unit speed included.

    Args:
        model: The beam.
        held: Nodes that only turn, `[0.0]`; or what is held of each, `{0.0: ["uy", "uz"]}`, in axes
            that turn.
        axis: Direction of the axis of rotation, shape (3,).
        point: A point of the axis, shape (3,), m.
        springs: Bilinear form on `model.space`, symmetric, between beam and turning frame.
        damping: `Rayleigh` with K at rest, springs included; a symmetric bilinear form on
            `model.space`; or several.
        petsc_options: Options of the linear solver and of the eigenvalue solver.
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        TypeError: The damping is of another kind.
        FactorizationError: The linear solver failed, or the beam is not held.

    Note: Collective. The caller destroys the result.
    """
    instance("springs", springs, (ufl.Form, type(None)))
    solver = solver_options(petsc_options_prefix, petsc_options)
    n, p = checked_axis(axis, point, 3)
    dampings = listed_dampings(damping)
    for part in dampings:
        if not isinstance(part, (Rayleigh, ufl.Form)):
            raise InputTypeError(
                f"damping of a beam is Rayleigh(mass, stiffness) or a UFL form; got {part!r}"
            )
    rows = held_dofs(model, held)
    if springs is None and not model.mesh.comm.allreduce(len(rows)):
        raise InputError("nothing holds the beam in the turning frame; give held=[...] or springs")
    problem: Any = beam_problem(model)
    W = centrifugal(n)
    parts = Parts(
        problem,
        rows,
        springs,
        dampings,
        (problem.inertia_matrix(coriolis(n)), problem.inertia_matrix(W)),
        problem.motion_load(acceleration=-W @ p, W=W),
    )
    return constrained_structure(parts, n, p, lambda u0: _geometric(model, u0, W), solver)


def _geometric(model: BeamModel, u0: Array, W: Array) -> PETSc.Mat:
    """K_σ of the displacement u0 that the centrifugal load causes, W the acceleration's matrix."""
    V, beam, axes = model.space, model.beam, np.asarray(model.axes)
    local = fem.Constant(model.mesh, (axes.T @ W @ axes).astype(default_scalar_type))
    density = beam.material.density

    def body_force(y: Expr, z: Expr) -> Expr:
        """As far as it varies over the section."""
        return -density * ufl.dot(local, ufl.as_vector([0.0, y, z]))

    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    form = beam.initial_stress_stiffness(u, v, as_function(V, u0), body_force=body_force)
    A = fem_petsc.assemble_matrix(fem.form(form))
    A.assemble()
    return A
