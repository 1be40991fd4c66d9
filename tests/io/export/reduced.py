"""Bodies reduced from small meshes, once in a session, for tests of exports with inertia."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import ReducedBody
from tests.models.bodies import box
from tests.models.plates import plate

TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
TURN = TURN * np.linalg.det(TURN)  # (the determinant is 1 or -1)
"""A rotation that mixes all axes, so that no integral vanishes by symmetry."""

SHIFT = np.array([0.02, -0.03, 0.05])  # of the mesh before its rotation, m

KINDS = ("rigid", "averaged", "unstiffened", "attached", "plane")


@cache
def reduced(kind: str) -> ReducedBody:
    """Return a steel box or plate of one of the `KINDS`, with a full damping matrix.

    Of the boxes, only "rigid" and "averaged", which name the kind of the interfaces, have geometric
    stiffness. "attached" keeps its Craig-Bampton modes, whose mass and stiffness matrices are full.
    """
    options: dict[str, Any] = {"num_modes": 3, "name": f"{kind} box"}
    if kind == "plane":
        body = mbd.reduce(
            mbd.ElasticModel(
                plate(MPI.COMM_WORLD, cells=(6, 1)), mbd.STEEL, plane="stress", thickness=0.01
            ),
            interfaces=["left", "right"],
            **options,
        ).body
    else:
        mesh = box(MPI.COMM_WORLD, cells=(4, 1, 1))
        mesh.mesh.geometry.x[:] = (mesh.mesh.geometry.x + SHIFT) @ TURN.T
        body = mbd.reduce(
            mesh,
            mbd.STEEL,
            interfaces=mbd.InterfaceSpec.each(
                ["left", "right"], "averaged" if kind == "averaged" else "rigid"
            ),
            stiffening=kind in ("rigid", "averaged"),
            attached_to="left" if kind == "attached" else None,
            points={"corner": TURN @ SHIFT},
            options=mbd.ReductionOptions(orthonormalize=kind != "attached"),
            **options,
        ).body
    left, right = body.interfaces
    body = body.replace(interfaces=(replace(left, axes=TURN), right))
    rng = np.random.default_rng(6)
    factor = rng.normal(size=body.mass.shape)
    return body.replace(damping=1e-4 * np.abs(body.stiffness).max() * factor @ factor.T)
