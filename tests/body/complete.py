"""A body of some point masses that has every optional part, with n elastic coordinates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.body import (
    Bore,
    EffectiveMasses,
    Interface,
    LoadPattern,
    MaterialPoint,
    Mode,
    Skin,
    Stiffening,
    StrainGauge,
    StressModes,
)

Numbers = Callable[..., np.ndarray]


def exact_numbers() -> Numbers:
    """Return a function that returns arrays of multiples of 1/64, equal on every machine."""
    count = 0

    def numbers(*shape: int) -> np.ndarray:
        nonlocal count
        k = np.arange(count, count + int(np.prod(shape)))
        count = (count + k.size) % 10007
        return ((k * k + 17 * k) % 127 - 63.0).reshape(shape) / 64

    return numbers


def random_numbers(seed: int) -> Numbers:
    """Return a function that returns arrays of random numbers."""
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.normal(size=shape)


def complete_body(n: int, numbers: Numbers, masses: int = 20) -> mbd.ReducedBody:
    """Return a body with every optional part; the moments are those of point masses."""
    # row 0 holds the positions of the point masses, the other rows their modes
    psi = np.concatenate([numbers(1, masses, 3), 0.01 * numbers(n, masses, 3)])
    weights = 0.1 + np.abs(numbers(masses))
    factor = numbers(n, n)
    body = mbd.ReducedBody.from_arrays(
        name="complete",
        total_mass=float(weights.sum()),
        first_moments=np.einsum("p,kpa->ka", weights, psi),
        second_moments=np.einsum("p,kpa,lpb->klab", weights, psi, psi),
        stiffness=factor @ factor.T + np.diag(np.arange(4.0, n + 4)),
        damping=0.125 * np.eye(n),
    )
    rotation = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    grids = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    interfaces = (
        Interface("left", "rigid", numbers(3), np.eye(3), numbers(6, n)),
        Interface("right", "averaged", numbers(3), rotation, numbers(6, n)),
    )
    return body.replace(
        interfaces=interfaces,
        modes=tuple(Mode(f"elastic {k}", 100.0 * k, "bending y") for k in range(1, n + 1)),
        points=(MaterialPoint("p", psi[0, 0], psi[1:, 0]), MaterialPoint("q", *psi_at(psi, 1))),
        skin=Skin(psi[0, :4], [[0, 1, 2], [1, 2, 3]], psi[1:, :4]),
        stiffening=Stiffening(
            symmetric(numbers(6, n, n)), symmetric(numbers(2, 6, n, n)), np.abs(numbers(18))
        ),
        provenance={"program": "test", "cells": 7, "tolerance": 0.5},
        left_out=(Mode("fixed 9", 512.0, "torsion", "beyond the limit"),),
        stress=StressModes(psi[0, :4], numbers(6, 4, n), numbers(6, 3, n)),
        loads=(LoadPattern("gas", numbers(3), numbers(3), numbers(n), numbers(n, 3)),),
        effective_masses=EffectiveMasses([64.0, 256.0], np.abs(numbers(2, 6)) / 4),
        gauges=(
            StrainGauge("one", numbers(3), (0, 0, 1), grids[:1], 0.003, numbers(1, n)),
            StrainGauge("rosette", numbers(3), (0, 0, 1), grids, 0.006, numbers(3, n)),
        ),
        bores=(Bore("right", 0.25, 0.125, numbers(5, 3, n), 0.0625),),
    )


def psi_at(psi: np.ndarray, point: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of a point mass, and its modes."""
    return psi[0, point], psi[1:, point]


def symmetric(matrices: np.ndarray) -> np.ndarray:
    """Return the symmetric part of matrices."""
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2
