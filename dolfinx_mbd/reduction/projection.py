"""Entries of a reduced body that follow from its modes on the mesh, without further solutions.

`reduce` and `reduce_beam` call `project`, and `sensitivities` computes differences of it. An entry
that is added here is therefore part of solids, of beams and of derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Bore, Interface, LoadPattern, MaterialPoint, Skin, Stiffening
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.fields import material_points, surface_skin
from dolfinx_mbd.fem.inertia import Inertia, inertia
from dolfinx_mbd.fem.interfaces.bores import BorePatterns
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.phases import Phases
from dolfinx_mbd.reduction.distributed_loads import load_patterns
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES, UnitCases, stiffening


@dataclass(frozen=True, eq=False)
class Solutions:
    """Modes of a body, and other results of linear systems and eigenvalue problems."""

    vectors: Array  # modes Ψ, (owned dofs, n)
    motions: Array  # motion of the interfaces in each mode, (coordinates, n)
    stiffness: Array  # ΨᵀKΨ, (n, n)
    orthonormal: bool = True  # ΨᵀMΨ = I
    cases: UnitCases | None = None  # unit loads of geometric stiffening, None without it
    moments: Inertia | None = None  # moments of these modes, if they are known


@dataclass(frozen=True, eq=False)
class Contents:
    """What a body has on its mesh besides mass and stiffness."""

    interfaces: tuple[MeshInterface, ...] = ()
    points: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    skin: bool = False
    loads: tuple[str, ...] = ()
    forces: Array | None = None  # nodal forces of the loads, (owned dofs, loads)
    bores: tuple[BorePatterns, ...] = ()


@dataclass(frozen=True, eq=False)
class SolidIntegrals:
    """Integrals and interpolations of the modes of a solid; a `BeamProblem` has the same methods.

    All methods are collective.
    """

    problem: ElasticProblem

    @property
    def dim(self) -> int:
        """Number of components of a displacement."""
        return self.problem.dim

    def inertia(self, vectors: Array) -> Inertia:
        """Return the mass, and first and second moments of positions and modes (owned dofs, n)."""
        return inertia(self.problem, vectors)

    def stiffening(
        self, cases: UnitCases, vectors: Array, frames: tuple[Interface, ...], contents: Contents
    ) -> Stiffening:
        """Return the geometric stiffness of all unit loads."""
        problem = self.problem
        assert problem.materials is not None  # a body with stiffening has a material
        rotations = np.array([frame.motion[3:] for frame in frames])
        return stiffening(problem, problem.materials.stress, cases, vectors, rotations)

    def points(self, vectors: Array, points: Mapping[str, Any]) -> tuple[MaterialPoint, ...]:
        """Return the modes at material points."""
        return material_points(self.problem.space, vectors, points)

    def skin(self, vectors: Array) -> Skin:
        """Return the surface of the body with its modes."""
        return surface_skin(self.problem.space, vectors)

    def loads(self, vectors: Array, contents: Contents) -> tuple[LoadPattern, ...]:
        """Return resultants and modal forces of the distributed loads."""
        if contents.forces is None:
            return ()
        return load_patterns(self.problem, contents.loads, contents.forces, vectors)

    def bores(
        self, vectors: Array, frames: tuple[Interface, ...], contents: Contents
    ) -> tuple[Bore, ...]:
        """Return the radial displacement of the bores."""
        return tuple(b.bore(self.problem, vectors, frames) for b in contents.bores)


def project(
    body: Any, modes: Solutions, contents: Contents, phases: Phases | None = None
) -> dict[str, Any]:
    """Return the entries of a `ReducedBody` that follow from its modes, without damping.

    Nothing is solved here but small systems, and each entry is a smooth function of the arguments.

    Args:
        body: Integrals over the body: `SolidIntegrals`, or a `BeamProblem`.
        modes: Modes and other solutions.
        contents: What the body has besides mass and stiffness.
        phases: Collects the wall-clock times.

    Returns:
        Arguments of `ReducedBody` by name.

    Note: Collective.
    """
    phases = phases or Phases()
    vectors, frames = modes.vectors, _frames(body, modes, contents.interfaces)
    with phases("inertia"):
        moments = modes.moments or body.inertia(vectors)
    entries = {
        "total_mass": moments.total_mass,
        "first_moments": moments.first_moments,
        "second_moments": moments.second_moments,
        "mass": np.eye(vectors.shape[1]) if modes.orthonormal else moments.mass,
        "stiffness": modes.stiffness,
        "interfaces": frames,
        "stiffening": None,
    }
    if modes.cases is not None:
        with phases("stiffening"):
            entries["stiffening"] = body.stiffening(modes.cases, vectors, frames, contents)
    with phases("points and skin"):
        entries["points"] = body.points(vectors, contents.points)
        entries["skin"] = body.skin(vectors) if contents.skin else None
    entries["bores"] = body.bores(vectors, frames, contents)
    entries["loads"] = body.loads(vectors, contents)
    return entries


def _frames(
    body: Any, modes: Solutions, interfaces: tuple[MeshInterface, ...]
) -> tuple[Interface, ...]:
    """Return the interfaces with their motion in each mode, in space."""
    rows = WRENCH_INDICES[2 if body.dim == 2 else 3]
    frames = []
    for interface, rates in zip(
        interfaces, np.split(modes.motions, max(len(interfaces), 1)), strict=False
    ):
        motion = np.zeros((6, modes.vectors.shape[1]))
        motion[rows] = rates
        frames.append(
            Interface(
                interface.name,
                interface.kind,
                interface.point,
                interface.axes,
                motion,
                *interface.size,
            )
        )
    return tuple(frames)
