"""Pages contain combinations of modes that represent displacements and stresses of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.body import Skin, StressModes
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.plotting.viewer.principal_modes import rounding_steps, with_principal_modes
from dolfinx_mbd.plotting.viewer.surface_data import SurfaceData

POINTS, MODES, INSTANTS = 30, 24, 200


def surface(rank: int, seed: int = 0, **changes: Any) -> Surface:
    """Return a random surface whose coordinates have the given rank in time."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-6, 0, MODES)  # as static and vibration modes
    modes = scales[:, None, None] * rng.standard_normal((MODES, POINTS, 3))
    skin = Skin(rng.standard_normal((POINTS, 3)), [[0, 1, 2]], modes)
    stress = 1e11 * scales * rng.standard_normal((6, POINTS, MODES))
    cells = 1e11 * scales * rng.standard_normal((6, 5, MODES))
    known = StressModes(skin.points, stress, cells.astype(np.float32))
    eta = rng.standard_normal((INSTANTS, rank)) @ rng.standard_normal((rank, MODES)) / scales
    turns = np.tile([1.0, 0, 0, 0], (INSTANTS, 1))
    return replace(Surface("a", skin, np.zeros((INSTANTS, 3)), turns, eta, stress=known), **changes)


def difference(one: Surface, two: Surface, quantity: str) -> float:
    """Return the greatest difference of a quantity, relative to the largest value."""
    values = [
        np.array([s.quantity(k, quantity) for k in range(0, INSTANTS, 7)]) for s in (one, two)
    ]
    return float(np.abs(values[0] - values[1]).max() / values[0].max())


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("rank", [1, 3, 10])
def test_motions_of_low_rank_are_exact(rank: int, seed: int) -> None:
    whole = surface(rank, seed)
    (reduced,) = with_principal_modes([whole], 1e-6)
    assert len(reduced.skin.modes) == reduced.eta.shape[1] == rank
    for quantity in ("displacement", "von Mises", "stress xy"):
        assert difference(whole, reduced, quantity) < 1e-5
    assert reduced.stress is not None and reduced.stress.cells is not None
    assert reduced.peak("von Mises") == pytest.approx(whole.peak("von Mises"), rel=1e-4)


@pytest.mark.parametrize("accuracy", [1e-1, 1e-2, 1e-3])
def test_the_error_is_below_its_limit(accuracy: float) -> None:
    """Coordinates that decrease fast need few modes, and more modes for a smaller limit."""
    whole = surface(MODES)
    decreasing = whole.eta @ np.diag(0.3 ** np.arange(MODES))
    whole = replace(whole, eta=decreasing)
    (reduced,) = with_principal_modes([whole], accuracy)
    assert 1 < len(reduced.skin.modes) < MODES
    assert difference(whole, reduced, "displacement") < 3 * accuracy
    assert difference(whole, reduced, "von Mises") < 3 * accuracy
    (better,) = with_principal_modes([whole], 1e-2 * accuracy)
    assert len(better.skin.modes) > len(reduced.skin.modes)


def test_bodies_with_the_same_skin_share_the_modes() -> None:
    body_a = surface(2)
    body_b = replace(body_a, name="b", eta=surface(2, 5).eta * np.abs(body_a.eta).max(axis=0))
    ghost = replace(body_a, name="c", stress=None)
    first, second, third = with_principal_modes([ghost, body_a, body_b], 1e-6)
    assert first.skin is second.skin is third.skin
    assert first.stress is None and second.stress is third.stress is not None
    assert difference(ghost, first, "displacement") < 1e-5
    assert difference(body_a, second, "von Mises") < 1e-5
    assert difference(body_b, third, "von Mises") < 1e-5


def test_surfaces_without_fewer_modes_are_unchanged() -> None:
    whole = surface(MODES)
    skin = Skin(whole.skin.points, whole.skin.triangles, whole.skin.modes[:3])
    small = replace(whole, skin=skin, stress=None, eta=whole.eta[:, :3])
    instant, at_rest = whole.at(np.array([0])), replace(whole, eta=0 * whole.eta)
    for part in (small, instant, at_rest):
        assert with_principal_modes([part], 1e-3)[0] is part
    assert with_principal_modes([whole], 1e-12)[0] is whole


@pytest.mark.parametrize("accuracy", [1e-2, 1e-3])
def test_rounding_of_modes(accuracy: float) -> None:
    """The error is that of independent roundings; modes with small amplitudes have few values."""
    whole = surface(MODES)
    whole = replace(whole, eta=whole.eta @ np.diag(0.5 ** np.arange(MODES)))
    (steps,) = rounding_steps([whole], accuracy).values()
    assert whole.stress is not None
    fields = [whole.skin.modes, np.moveaxis(whole.stress.stress, 2, 0)]
    for field, step in zip(fields, steps, strict=True):
        scale = np.array(SurfaceData(whole.skin).fields(field, step)["scale"])
        values = np.rint(field.reshape(MODES, -1) / scale[:, None])
        error = whole.eta @ (scale[:, None] * values - field.reshape(MODES, -1))
        largest = np.abs(whole.eta @ field.reshape(MODES, -1)).max()
        assert 0.03 * accuracy < error.std() / largest < 0.35 * accuracy
        assert np.abs(error).max() < 2 * accuracy * largest
        assert np.abs(values).max() <= 32767
    assert rounding_steps([replace(whole, eta=0 * whole.eta)], accuracy) == {}
