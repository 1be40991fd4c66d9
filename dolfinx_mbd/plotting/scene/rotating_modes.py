"""Scene of modes of a rotating body on a mesh that may be distributed."""

from __future__ import annotations

import numpy as np
from dolfinx import fem
from numpy.typing import NDArray

from dolfinx_mbd.body import Skin
from dolfinx_mbd.fem.fields import surface_skin
from dolfinx_mbd.parallel import on_rank_zero
from dolfinx_mbd.plotting.scene.camera import length_of
from dolfinx_mbd.plotting.scene.description import Mode, Scene
from dolfinx_mbd.plotting.scene.mode_scenes import shapes_scene, whirl_title
from dolfinx_mbd.structures.beams.beam_shapes import surface_around
from dolfinx_mbd.structures.rotating import RotatingModes

__all__ = ["rotating_modes"]

Array = NDArray[np.float64]

RADIUS = 0.01
"""Radius of the tube that represents a beam, relative to its length."""


def rotating_modes(modes: RotatingModes, numbers: list[int]) -> Scene:
    """Return the scene that shows modes of a rotating body in the rotating frame (collective)."""
    z = modes.vectors[:, numbers]
    parts = np.asfortranarray(np.hstack([z.real, z.imag]))
    line = modes.space.mesh.topology.dim == 1
    skin = _tube(modes.space, parts) if line else surface_skin(modes.space, parts)
    heads = [
        Mode(
            whirl_title(number, float(modes.whirl[number])),
            float(modes.frequencies[number]),
            float(modes.damping_ratios[number]),
            (),
            (),
        )
        for number in numbers
    ]
    shapes = skin.modes[: len(numbers)] + 1j * skin.modes[len(numbers) :]
    return shapes_scene("rotating body", skin, shapes, heads)


def _tube(space: fem.FunctionSpace, modes: Array) -> Skin:
    """Return a tube around the axis of a beam, with modes (owned degrees of freedom, k)."""
    comm = space.mesh.comm
    owned = space.tabulate_dof_coordinates()[: len(modes) // 6]
    gathered = comm.gather((owned, modes.reshape(-1, 6, modes.shape[1])), root=0)

    def tube_of_all() -> Skin:
        """Return the tube from the gathered points."""
        points, nodal = (np.concatenate(part) for part in zip(*gathered, strict=True))
        length = length_of(points)
        direction, first, second = np.linalg.svd(points - points.mean(axis=0))[2]
        order = np.argsort(points @ direction)
        angle = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)[:, None]
        ring = RADIUS * length * (np.cos(angle) * first + np.sin(angle) * second)
        arms = np.tile(np.vstack([ring, np.zeros((1, 3))]), (len(points), 1, 1))
        return surface_around(points[order], arms, nodal[order])

    return on_rank_zero(comm, tube_of_all)
