"""Meshes and mechanisms for the tests of mesh bodies.

The cases of these tests, most of which are in V18 and V19 of docs/verification/reference_cases.md:

- W1: slider-crank with a slender rod
- W2: elastica
- W3: Princeton beam
- W4: bend of 45° with a force out of its plane
- W5: rubber pendulum
- W6: torsion of a cylinder (Rivlin)
- W7: tumbling L
- W8: sleeping top, a disc on a thin shaft
- W9: twisting column
- W10: column twisted by a driver
- W11: spinning ring
- W12: rotation of a whole body
- W13: slider-crank with its rod reduced and on its mesh
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dolfinx import mesh as dmesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec
from dolfinx_mbd.forms import Material

RUBBER = Material(5e7, 0.0, 1100.0)
STEEL = Material(2e11, 0.3, 7870.0)


def box(
    lower: tuple[float, float, float],
    upper: tuple[float, float, float],
    cells: tuple[int, int, int],
    kind: str = "hexahedron",
) -> tuple[dmesh.Mesh, dmesh.MeshTags]:
    """Return a box, with the facets at its lower and upper x tagged 1 and 2."""
    mesh = dmesh.create_box(
        MPI.COMM_WORLD, [np.array(lower), np.array(upper)], cells, dmesh.CellType[kind]
    )
    facets_of_ends = [
        dmesh.locate_entities_boundary(mesh, 2, lambda x, place=place: np.isclose(x[0], place))
        for place in (lower[0], upper[0])
    ]
    facets = np.concatenate(facets_of_ends).astype(np.int32)
    values = np.repeat(np.array([1, 2], dtype=np.int32), [len(end) for end in facets_of_ends])
    order = np.argsort(facets)
    return mesh, dmesh.meshtags(mesh, 2, facets[order], values[order])


def ends(lower: float, upper: float, names: tuple[str, ...] = ("left", "right")) -> dict[str, Any]:
    """Return rigid interfaces at the ends of a box along x, with the axes of the body."""
    return {
        name: InterfaceSpec(k, point=(x, 0, 0), axes=np.eye(3))
        for k, (name, x) in enumerate(zip(names, (lower, upper), strict=False), 1)
    }


def slider_crank(
    rod: Any, *, crank: float = 0.15, length: float = 0.30, speed: float = 150.0
) -> mbd.System:
    """Return the slender slider-crank (case W1) with a rod that has interfaces left and right."""
    ground = mbd.Ground({"origin": mbd.Frame(), "guide": mbd.Frame(axes=(1, 0, 0))})
    pin = {"main": mbd.Frame(), "pin": mbd.Frame((crank, 0, 0))}
    wheel = mbd.RigidBody("crank", 1.0, [0.01] * 3, frames=pin)
    slider = mbd.RigidBody(
        "slider",
        0.075552,
        [1e-5] * 3,
        frames={"pin": mbd.Frame(), "guide": mbd.Frame(axes=(1, 0, 0))},
        position=(crank + length, 0, 0),
    )
    joints = [
        mbd.revolute("main", ground.frame("origin"), wheel.frame("main")),
        mbd.revolute("big_end", wheel.frame("pin"), rod.frame("left")),
        mbd.spherical("small_end", rod.frame("right"), slider.frame("pin")),
        mbd.prismatic("guide", ground.frame("guide"), slider.frame("guide")),
    ]
    drivers = [mbd.Driver("motor", "main", mbd.constant_speed(speed))]
    return mbd.System([ground, wheel, rod, slider], joints, drivers=drivers)
