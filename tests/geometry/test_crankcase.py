"""The crankcase: its volume against counted points, its bores, and invalid parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.geometry import Crankcase
from tests.geometry.test_crankshaft import integral

CASES: dict[str, dict[str, Any]] = {
    "inline": {"bays": 2, "size": 0.02},
    "vee": {
        "bays": 2,
        "bank_angles": np.radians([-45.0, 45.0]),
        "stagger": 0.02,
        "spacing": 0.1,
        "size": 0.02,
    },
    "vee with the widest bores": {
        "bays": 1,
        "bank_angles": np.radians([-45.0, 45.0]),
        "stagger": -0.03,
        "spacing": 0.1,
        "cylinder_bore": 0.0839,  # spacing + bulkhead − wall − stagger is 0.084
        "crank_space": 0.08,
        "skirt": 0.08,  # as crank_space
        "size": 0.025,
    },
    "opposed": {
        "bays": 1,
        "bank_angles": np.radians([90.0, -90.0]),
        "stagger": 0.02,
        "spacing": 0.12,
        "size": 0.02,
    },
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Crankcase, TaggedMesh]:
    """Return a crankcase and its mesh."""
    block = Crankcase(**CASES[request.param])
    return block, build_mesh(block, MPI.COMM_WORLD)


def is_inside(c: Crankcase, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return which points are in the material, from the definition of the dimensions."""
    half = 0.5 * (c.bays * float(c.spacing) + float(c.bulkhead))
    space, wall, bore = float(c.crank_space), float(c.wall), float(c.cylinder_bore)
    box = (x > -float(c.skirt)) & (x < space + wall) & (abs(y) < space + wall)
    # coordinates along and across the cylinders of each bank
    bank_coordinates = [
        (math.cos(b) * x + math.sin(b) * y, math.cos(b) * y - math.sin(b) * x)
        for b in c.bank_angles
    ]
    for u, v in bank_coordinates:
        box |= (u > 0) & (u < float(c.deck_height)) & (abs(v) < 0.5 * bore + wall)
    solid = box & (abs(z) < half)
    in_bay = np.ones_like(solid)
    for main in c.main_positions:
        in_bay &= abs(z - main) > 0.5 * float(c.bulkhead)
    solid &= ~(in_bay & (np.hypot(x, y) < space))
    solid &= ~(in_bay & (x < 0) & (abs(y) < 0.85 * space))  # opening to the pan
    solid &= np.hypot(x, y) > 0.5 * float(c.main_bore)
    for k, centre in enumerate(c.cylinder_positions):
        u, v = bank_coordinates[k % len(bank_coordinates)]
        solid &= ~((np.hypot(v, z - centre) < 0.5 * bore) & (u > 0.6 * space))
    return np.asarray(solid)


def test_volume(case: tuple[Crankcase, TaggedMesh]) -> None:
    """The volume agrees with a Monte Carlo estimate from four million random points.

    The bound is three standard errors of the estimate, and 1e-3 for the mesh.
    """
    block, msh = case
    reach = 1.1 * float(block.deck_height)
    half = 0.5 * (block.bays * float(block.spacing) + float(block.bulkhead))
    points = np.random.default_rng(4).uniform(-1.0, 1.0, (3, 4_000_000))
    share = is_inside(block, *(points * np.array([[reach], [reach], [half]]))).mean()
    volume = share * (2 * reach) ** 2 * 2 * half
    error = 3 * np.sqrt((1 - share) / share / points.shape[1])
    assert error < 5e-3
    assert integral(msh, 1.0) == pytest.approx(volume, rel=error + 1e-3)


def test_bores(case: tuple[Crankcase, TaggedMesh]) -> None:
    """Each main bore is a whole cylinder, and each cylinder ends at its deck."""
    block, msh = case
    area = math.pi * float(block.main_bore) * float(block.bulkhead)
    for k in range(block.bays + 1):
        assert integral(msh, 1.0, f"main_{k + 1}") == pytest.approx(area, rel=5e-3)
    height = float(block.deck_height)
    largest_area = math.pi * float(block.cylinder_bore) * (height - 0.6 * float(block.crank_space))
    smallest_area = (
        math.pi * float(block.cylinder_bore) * (height - float(block.crank_space) - 0.01)
    )
    for k in range(len(block.cylinder_positions)):
        assert smallest_area < integral(msh, 1.0, f"cylinder_{k + 1}") < largest_area
    length = float(block.bays * float(block.spacing) + float(block.bulkhead))
    for k in range(len(block.bank_angles)):
        deck = integral(msh, 1.0, f"deck_{k + 1}")
        width = float(block.cylinder_bore) + 2 * float(block.wall)
        bores = block.bays * math.pi / 4 * float(block.cylinder_bore) ** 2
        assert deck == pytest.approx(length * width - bores, rel=2e-2)
    assert integral(msh, 1.0, "front") == pytest.approx(integral(msh, 1.0, "rear"), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"bays": 0}, "bays"),
        ({"bank_angles": []}, "bank_angles"),
        ({"bank_angles": [0.0, 1.0, 2.0]}, "bank_angles"),
        ({"bank_angles": [0.0, 0.1]}, "bank_angles"),
        ({"bank_angles": [2.0]}, "bank_angles"),
        ({"bulkhead": 0.075}, "bulkhead"),
        ({"main_bore": 0.1}, "main_bore"),
        ({"cylinder_bore": 0.079}, "cylinder_bore"),
        ({"deck_height": 0.08}, "deck_height"),
        ({"skirt": 0.03}, "skirt"),
        ({"skirt": 0.034, "bank_angles": [1.5]}, "skirt"),
        ({"wall": -0.01}, "wall"),
        ({"size": "2 parsec"}, "size"),
    ],
)
def test_impossible_dimensions(changes: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError) as error:
        Crankcase(**changes)
    assert error.value.argument == argument


def test_positions() -> None:
    block = Crankcase(bays=3, bank_angles=[-0.7, 0.7], spacing="100mm", stagger=0.02)
    np.testing.assert_allclose(block.main_positions, [-0.15, -0.05, 0.05, 0.15])
    np.testing.assert_allclose(block.cylinder_positions, [-0.11, -0.09, -0.01, 0.01, 0.09, 0.11])
