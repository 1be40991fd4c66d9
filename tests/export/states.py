"""Random states of a body and the rows of its equations of motion, ours, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.multibody import BodyState, FlexibleBody

Rows = Callable[..., np.ndarray]


@dataclass(frozen=True)
class State:
    """q, v, a, gravity and wrenches (F, 6) of forces only."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    gravity: np.ndarray
    wrenches: np.ndarray

    @property
    def arguments(self) -> tuple[np.ndarray, ...]:
        return self.q, self.v, self.a, self.gravity, self.wrenches


def random_state(body: ReducedBody, seed: int) -> State:
    """A state in which all terms of a row have about the same size.

    The elastic coordinates displace the body by millimetres and change within milliseconds.
    """
    rng = np.random.default_rng(seed)
    size = np.sqrt(np.diag(body.mass) / body.total_mass)  # root mean square of each mode
    eta = 1e-3 * rng.normal(size=(3, body.num_modes)) / size
    rate, spin = 1e3, 1e3
    q = np.concatenate([rng.normal(size=7), eta[0]])
    q[3:7] /= np.linalg.norm(q[3:7])
    v = np.concatenate([rng.normal(size=3), spin * rng.normal(size=3), rate * eta[1]])
    a = np.concatenate([1e4 * rng.normal(size=3), spin**2 * rng.normal(size=3), rate**2 * eta[2]])
    wrenches = np.zeros((len(body.interfaces), 6))
    wrenches[:, :3] = 1e4 * rng.normal(size=(len(body.interfaces), 3))
    return State(q, v, a, 1e4 * rng.normal(size=3), wrenches)


def own_rows(body: ReducedBody, state: State, stiffening: bool | None = None) -> np.ndarray:
    """The rows of this package, without any damping but the body's own."""
    flexible = FlexibleBody("b", body, damping_ratio=0.0, stiffening=stiffening)
    out, scale = np.zeros(len(state.v)), np.zeros(len(state.v))
    flexible.residual(BodyState(0.0, *state.arguments), out, scale)
    return out


def moment_rows_linear(body: ReducedBody, state: State) -> np.ndarray:
    """Our rows, but the moment of a body without geometric stiffness.

    Other programs have it in the elastic rows only: no foreshortening, no change of inertia by it.
    """
    rows = own_rows(body, state)
    rows[3:6] = own_rows(body, state, stiffening=False)[3:6]
    return rows


def assert_same_rows(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    """Force, moment and elastic rows agree, each relative to its own size."""
    for rows in (slice(0, 3), slice(3, 6), slice(6, None)):
        size = np.abs(expected[rows]).max()
        assert np.abs(found[rows] - expected[rows]).max() <= tolerance * size
