"""Warnings of elements that lock: linear tetrahedra, long linear hexahedra, and ν near 1/2."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import MeshWarning
from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion
from dolfinx_mbd.structures.prescribed_motion.solve import transient
from dolfinx_mbd.structures.rotating.structure import rotating_structure
from tests.models.bodies import box
from tests.models.plates import plate

RUBBER = mbd.Material(2e9, 0.495, 1200.0)


def reported(call: Callable[[], Any]) -> list[tuple[str | None, float | None]]:
    """Return quantities and values of the mesh warnings of a call."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        call()
    return [
        (w.message.quantity, w.message.value and round(w.message.value, 3))
        for w in records
        if isinstance(w.message, MeshWarning)
    ]


def modes(comm: MPI.Comm, cell: CellType, material: Any = mbd.STEEL, degree: int = 1) -> float:
    """Return the first frequency of a free bar with one layer of cells."""
    mesh = box(comm, (0.2, 0.02, 0.02), (10, 1, 1), cell)
    return float(
        mbd.modal_analysis(
            mbd.ElasticModel(mesh, material, degree=degree), num_modes=1
        ).frequencies[0]
    )


LINEAR, RATIO = ("degree of the elements", 1.0), ("Poisson's ratio", 0.495)
BENDING = "factor of bending frequencies"
# √(1 + (a/h)² G/E) for cells of length a and a thickness h = a, with the ratio of ν = 0.3.
CUBES = (BENDING, round(float(np.sqrt(1 + 1 / 2.6)), 3))


@pytest.mark.parametrize(
    ("cell", "material", "degree", "expected"),
    [
        (CellType.tetrahedron, mbd.STEEL, 1, [LINEAR]),
        (CellType.tetrahedron, RUBBER, 1, [LINEAR, RATIO]),
        (CellType.hexahedron, RUBBER, 1, [CUBES, RATIO]),
        (CellType.hexahedron, mbd.STEEL, 1, [CUBES]),
        (CellType.hexahedron, mbd.STEEL, 2, []),
        (CellType.tetrahedron, RUBBER, 2, []),
        (CellType.hexahedron, RUBBER, 2, []),
        (CellType.hexahedron, mbd.forms.GradedMaterial(2e9, 0.495, 1200.0), 1, [CUBES, RATIO]),
    ],
)
def test_elements_that_lock(
    comm: MPI.Comm, cell: CellType, material: Any, degree: int, expected: list[Any]
) -> None:
    """Warnings appear exactly if the first frequency is more than 1.1 times too high."""
    stiff: list[float] = []
    assert reported(lambda: stiff.append(modes(comm, cell, material, degree))) == expected
    exact = modes(comm, CellType.hexahedron, material, 3)
    assert (stiff[0] / exact > 1.1) == bool(expected)


@pytest.mark.parametrize(
    ("size", "cells"),
    [
        ((0.3, 0.02, 0.002), (12, 1, 1)),
        ((0.5, 0.03, 0.01), (9, 1, 1)),
        ((0.2, 0.03, 0.02), (10, 4, 4)),
        ((0.2, 0.03, 0.02), (10, 1, 3)),
        ((0.25, 0.02, 0.015), (60, 1, 2)),
    ],
)
def test_long_hexahedra(comm: MPI.Comm, size: Any, cells: Any) -> None:
    """The warning contains the measured factor; the number of layers has little influence."""
    mesh = box(comm, size, cells, CellType.hexahedron)
    reports = []
    frequencies = []
    for degree in (1, 2):

        def call(degree: int = degree) -> None:
            model = mbd.ElasticModel(mesh, mbd.STEEL, degree=degree)
            frequencies.append(mbd.modal_analysis(model, num_modes=1).frequencies[0])

        reports.append(reported(call))
    factor = frequencies[0] / frequencies[1]
    expected = np.sqrt(1 + (size[0] / cells[0] / size[2]) ** 2 / 2.6)
    assert factor == pytest.approx(expected, rel=0.08)
    warned = [] if expected < 1.05 else [(BENDING, round(float(expected), 3))]
    assert reports == [warned, []]
    assert bool(warned) == (factor > 1.1)


def test_plane_strips(comm: MPI.Comm) -> None:
    """A strip of long cells gives a warning, other strips and squares do not, in any direction."""
    for size, cells, factor in (
        ((0.4, 0.02), (10, 2), 1.59),  # √(1 + 2²/2.6)
        ((0.02, 0.4), (1, 80), None),
        ((0.1, 0.1), (3, 3), None),
    ):
        mesh = plate(comm, size, cells)
        rotation = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
        mesh.mesh.geometry.x[:] = mesh.mesh.geometry.x @ rotation.T

        def call(mesh: Any = mesh) -> Any:
            return mbd.ElasticModel(mesh, mbd.STEEL, degree=1, plane="stress", thickness=0.01)

        expected = [] if factor is None else [(BENDING, factor)]
        assert [(q, round(v or 0, 2)) for q, v in reported(call)] == expected


FRONT_ENDS: dict[str, Callable[[mbd.ElasticModel], Any]] = {
    "reduce": lambda m: mbd.reduce(m, interfaces=["left"], num_modes=1),
    "Reducer": lambda m: mbd.reduction.Reducer(m, interfaces=["left"]).close(),
    "modal_analysis": lambda m: mbd.modal_analysis(m, num_modes=1),
    "transient": lambda m: transient(
        m,
        motion=PrescribedMotion(),
        interfaces=["left"],
        held="left",
        stiffening=False,
        t_end=1e-5,
        dt=1e-5,
    ),
    "rotating_structure": lambda m: rotating_structure(m, held=["left"], axis=(0, 0, 1)).destroy(),
}


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_every_front_end_warns(comm: MPI.Comm, front_end: str) -> None:
    """Linear tetrahedra give one warning, quadratic ones none."""
    mesh = box(comm, cells=(2, 1, 1), cell=CellType.tetrahedron)
    for degree, expected in ((1, [LINEAR]), (2, [])):

        def call(degree: int = degree) -> Any:
            return FRONT_ENDS[front_end](mbd.ElasticModel(mesh, mbd.STEEL, degree=degree))

        assert reported(call) == expected


def test_plane_stress_does_not_lock_in_volume(comm: MPI.Comm) -> None:
    """A plate that is free across keeps its volume by getting thinner."""
    mesh = plate(comm, cells=(16, 1))
    for plane, expected in (("stress", []), ("strain", [RATIO])):

        def call(plane: Any = plane) -> Any:
            model = mbd.ElasticModel(mesh, RUBBER, degree=1, plane=plane, thickness=0.01)
            return mbd.modal_analysis(model, num_modes=1)

        assert reported(call) == expected


def test_the_warning_has_numbers(comm: MPI.Comm) -> None:
    """The warning contains the value and its limit."""
    with pytest.warns(MeshWarning) as records:
        modes(comm, CellType.hexahedron, RUBBER)
    warned = [w.message for w in records if isinstance(w.message, MeshWarning)]
    assert [m.limit for m in warned] == [1.05, 0.49]
    assert np.isclose(warned[1].value or 0.0, 0.495)
