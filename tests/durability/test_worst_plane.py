"""The worst plane and direction of the shear criterion, against brute force."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.body import StressModes
from dolfinx_mbd.durability.life import half_sphere
from tests.models.beams import slender_rod

LINE = mbd.durability.FatigueMaterial(
    name="line", knee_stress=1e8, knee_cycles=1e6, slope=5.0, second_slope=9.0
)
PLANES = half_sphere(400)[0]
ANGLES = np.linspace(0.0, np.pi, 19)[:-1]


def one_point() -> mbd.ReducedBody:
    """Return a body with one point; its elastic coordinates are the components of stress."""
    rod = slender_rod(bending=5)
    modes = np.eye(6)[:, None]
    assert rod.num_modes == 6
    return rod.replace(stress=StressModes(np.zeros((1, 3)), modes))


def shear_fatigue(stress: np.ndarray, time: Any = None, **options: Any) -> Any:
    """Return the result of the shear criterion for a history of stress (6, nt), Pa."""
    time = np.linspace(0.0, 1.0, stress.shape[1]) if time is None else time
    history = SimpleNamespace(time=time, eta=stress.T)
    options = {"mean_stress": "none", "material": LINE, "criterion": "shear"} | options
    return mbd.fatigue(one_point(), [(history, 1.0)], **options)


def damage(signal: np.ndarray) -> float:
    """Return the damage of a scalar history on `LINE`."""
    ranges, _, counts = mbd.durability.count_cycles(signal, "closed")
    ratios = ranges / 2 / LINE.knee_stress
    return float(np.sum(counts * np.where(ratios >= 1, ratios**5, ratios**9)) / LINE.knee_cycles)


def brute_force(stress: np.ndarray) -> float:
    """Return the greatest damage over planes and directions."""
    tensor = stress[[0, 3, 5, 3, 1, 4, 5, 4, 2]].reshape(3, 3, -1)
    largest = 0.0
    for n in PLANES:
        u = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        u /= np.linalg.norm(u)
        first, second = (2 * np.einsum("i,ijt,j->t", x, tensor, n) for x in (u, np.cross(n, u)))
        for angle in ANGLES:
            largest = max(largest, damage(np.cos(angle) * first + np.sin(angle) * second))
    return largest


def random_history(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return a history of stress that is not proportional, with a largest component of 250 MPa."""
    if kind == "walk":
        stress = np.cumsum(rng.normal(size=(6, 80)), axis=1)
    elif kind == "noise":
        stress = rng.normal(size=(6, 80))
    elif kind == "sines":
        t, rates = np.linspace(0, 1, 120), (2, 3, 5, 9)
        waves = [np.sin(2 * np.pi * (f * t + rng.uniform())) for f in rates]
        stress = rng.normal(size=(6, 4)) @ waves
    elif kind == "rare event":
        large, small = rng.normal(size=(2, 6))
        parts = [np.outer(large, [0, 1, 0, -1]), np.tile(np.outer(0.3 * small, [0, 1, 0, -1]), 40)]
        stress = np.hstack(parts)
    else:
        sizes = rng.uniform(0.5, 1.0, 25)
        stress = np.hstack([np.outer(s * rng.normal(size=6), [0, 1, 0, -1]) for s in sizes])
    return 250e6 * stress / np.abs(stress).max()


@pytest.mark.parametrize("kind", ["walk", "noise", "sines", "rare event", "many events"])
@pytest.mark.parametrize("seed", [1, 2])
def test_shear_damage_against_brute_force(kind: str, seed: int) -> None:
    """The search is within 3 % of the damage on 400 planes with 18 directions each."""
    stress = random_history(kind, np.random.default_rng(seed))
    result = shear_fatigue(stress)
    assert result.damage[0] >= 0.97 * brute_force(stress)
    n, t = result.normal[0], result.direction[0]
    assert n @ n == pytest.approx(1.0)
    assert t @ t == pytest.approx(1.0)
    assert abs(n @ t) < 1e-12
    tensor = stress[[0, 3, 5, 3, 1, 4, 5, 4, 2]].reshape(3, 3, -1)
    assert damage(2 * np.einsum("i,ijt,j->t", t, tensor, n)) == pytest.approx(
        result.damage[0], rel=1e-9
    )


def test_a_rare_large_event_determines_the_direction() -> None:
    """One large shear cycle across many small ones does the damage, in its own direction."""
    small, large = np.zeros((2, 6))
    small[3], large[5] = 40e6, 150e6  # xy and xz
    cycles = np.hstack(
        [np.tile(np.outer(small, [0, 1, 0, -1]), 60), np.outer(large, [0, 1, 0, -1])]
    )
    result = shear_fatigue(cycles)
    # the amplitude of 2τ, 300 MPa, is 1.5 · 2 times the knee stress
    assert result.damage[0] >= 1.5**5 * 2**5 / 1e6 * (1 - 1e-3)


@pytest.mark.parametrize("dense", [0, 1])
def test_shear_damage_does_not_depend_on_the_sampling(dense: int) -> None:
    """More instants on straight parts of the path, in one half of it, do not change the damage."""
    rng = np.random.default_rng(4)
    stress = np.hstack(
        [np.outer(v, np.sin(np.linspace(0, 10 * np.pi, 81))[1:]) for v in rng.normal(size=(2, 6))]
    )
    stress *= 200e6 / np.abs(stress).max()
    time = np.linspace(0, 1, stress.shape[1])
    fine = np.unique(np.r_[time, np.linspace(0.5 * dense, 0.5 * dense + 0.5, 2001)])
    dense_stress = np.array([np.interp(fine, time, row) for row in stress])
    coarse, finer = shear_fatigue(stress, time), shear_fatigue(dense_stress, fine)
    assert finer.damage == pytest.approx(coarse.damage, rel=1e-9)
