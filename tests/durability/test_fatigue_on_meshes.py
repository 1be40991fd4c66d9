"""Fatigue of reduced bodies on a mesh: surface and all cells, on any number of ranks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.durability.recovery import Recovery, skin_stress
from dolfinx_mbd.errors import InputError
from tests.models.bodies import LENGTH, box

COMM = MPI.COMM_WORLD
MATERIAL = mbd.durability.FatigueMaterial(name="steel", knee_stress=200e6, knee_cycles=1e6, slope=5)


@pytest.fixture(scope="module")
def bar() -> mbd.reduction.Reduction:
    """Return a bar with two interfaces."""
    return mbd.reduce(box(COMM), mbd.STEEL, interfaces=["left", "right"], num_modes=4)


def swing(bar: mbd.reduction.Reduction) -> Any:
    """Return a history in which all modes move with different frequencies."""
    t = np.linspace(0.0, 1.0, 200)
    k = np.arange(1, bar.body.num_modes + 1)
    scale = 1e7 / np.abs(bar_stress(bar)).max(axis=(0, 1))
    return SimpleNamespace(time=t, eta=scale * np.sin(2 * np.pi * np.outer(t, k) + k))


def bar_stress(bar: mbd.reduction.Reduction) -> Any:
    """Return the stress modes on the surface."""
    return skin_stress(bar).stress


def test_surface_with_and_without_the_mesh(bar: mbd.reduction.Reduction) -> None:
    runs = [(swing(bar), 1.0)]
    result = mbd.fatigue(bar, runs, material=MATERIAL)
    body = bar.body.replace(stress=skin_stress(bar))
    alone = mbd.fatigue(body, runs, material=MATERIAL)
    assert result.damage == pytest.approx(alone.damage, rel=1e-9)
    tables = [r.worst(3) for r in (result, alone)]
    assert len(tables[0]) == 3
    for place, reference in zip(*tables, strict=True):
        assert place.position == reference.position
        assert place.damage == pytest.approx(reference.damage, rel=1e-9)
        assert place.interface in ("left", "right")


def test_all_cells_do_not_depend_on_the_partition(
    bar: mbd.reduction.Reduction, tmp_path: Path
) -> None:
    """The places of all ranks together are those of one rank; the worst one is at an end."""
    runs = [(swing(bar), 1.0)]
    single = mbd.reduce(box(MPI.COMM_SELF), mbd.STEEL, interfaces=["left", "right"], num_modes=4)
    expected = mbd.fatigue(Recovery(single), [(swing(single), 1.0)], material=MATERIAL)
    result = mbd.fatigue(Recovery(bar), runs, material=MATERIAL)
    total = COMM.allreduce(float(result.damage.sum()))
    assert total == pytest.approx(float(expected.damage.sum()), rel=1e-5)
    place, reference = result.worst(1)[0], expected.worst(1)[0]
    assert place.damage == pytest.approx(reference.damage, rel=1e-5)
    assert place.range == pytest.approx(reference.range, rel=1e-5)
    x, y, z = place.position
    assert min(abs(x), abs(x - LENGTH)) < 1e-9
    function = result.field()
    assert function.x.array.max() <= 12.0  # the limit of the logarithm of the life
    folder = COMM.bcast(tmp_path)
    result.write(folder / "fatigue.bp")
    surface = mbd.fatigue(bar, runs, material=MATERIAL)
    surface.write(folder / "fatigue.vtk")
    with pytest.raises(InputError, match="vtk"):
        surface.write(folder / "fatigue.bp")


def test_the_file_of_the_surface(bar: mbd.reduction.Reduction, tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    result = mbd.fatigue(bar, [(swing(bar), 1.0)], material=MATERIAL)
    path = result.write(COMM.bcast(tmp_path) / "fatigue.vtk")
    mesh = pyvista.read(path)
    assert mesh.points == pytest.approx(result.points, abs=1e-7)
    assert mesh["damage_per_second"] == pytest.approx(result.damage)
    assert mesh["equivalent_stress"] == pytest.approx(result.equivalent_stress())
    skin = bar.body.skin
    assert skin is not None and mesh.n_cells == len(skin.triangles)


def test_errors_are_raised_on_every_rank(bar: mbd.reduction.Reduction) -> None:
    """The mean is too large at a few points of one rank only."""
    high = mbd.durability.FatigueMaterial(
        name="m", knee_stress=2e8, knee_cycles=1e6, slope=5, tensile_strength=300e6
    )
    eta = 1e9 * np.ones(bar.body.num_modes) / np.abs(bar_stress(bar)).max()
    history = SimpleNamespace(time=np.arange(4.0), eta=np.outer([1.0, 1.1, 1.0, 1.1], eta))
    for source in (bar, Recovery(bar)):
        with pytest.raises(InputError, match="tensile strength"):
            mbd.fatigue(source, [(history, 1.0)], material=high, mean_stress="Goodman")
    with pytest.raises(InputError, match="runs"):
        mbd.fatigue(bar, [], material=high)
