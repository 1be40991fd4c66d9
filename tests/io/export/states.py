"""Random states of a body, and the residual (rows) of its equations of motion in this package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.io.export import Units
from dolfinx_mbd.mechanism import BodyState, FlexibleBody

Rows = Callable[..., np.ndarray]


@dataclass(frozen=True)
class State:
    """Motion and loads of one body.

    q, v and a are its coordinates, velocities and accelerations as in `BodyState`; gravity is in
    m/s², and the wrenches (interfaces, 6) contain forces (N) and moments (N m).
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    gravity: np.ndarray
    wrenches: np.ndarray

    @property
    def arguments(self) -> tuple[np.ndarray, ...]:
        return self.q, self.v, self.a, self.gravity, self.wrenches


def random_state(body: ReducedBody, seed: int) -> State:
    """Return a random state in which all terms of a row have about the same size.

    The elastic coordinates displace the body by millimetres and change within milliseconds. The
    moments at the interfaces are zero.
    """
    rng = np.random.default_rng(seed)
    size = np.sqrt(np.diag(body.mass) / body.total_mass)  # root mean square of each mode
    eta = 1e-3 * rng.normal(size=(3, body.num_modes)) / size
    rate, spin = 1e3, 1e3  # elastic coordinates, 1/s; body, rad/s
    q = np.concatenate([rng.normal(size=7), eta[0]])
    q[3:7] /= np.linalg.norm(q[3:7])
    v = np.concatenate([rng.normal(size=3), spin * rng.normal(size=3), rate * eta[1]])
    a = np.concatenate([1e4 * rng.normal(size=3), spin**2 * rng.normal(size=3), rate**2 * eta[2]])
    wrenches = np.zeros((len(body.interfaces), 6))
    wrenches[:, :3] = 1e4 * rng.normal(size=(len(body.interfaces), 3))
    return State(q, v, a, 1e4 * rng.normal(size=3), wrenches)


def in_units(state: State, units: Units) -> State:
    """Return the same state in other units; elastic coordinates and angles keep their values."""
    rates = np.ones_like(state.v)
    rates[:3] = units.length
    rates /= units.time
    return State(
        np.concatenate([units.length * state.q[:3], state.q[3:]]),
        rates * state.v,
        rates / units.time * state.a,
        units.length / units.time**2 * state.gravity,
        np.repeat([units.force, units.moment], 3) * state.wrenches,
    )


def load_stiffness(body: ReducedBody, interface: int, component: int) -> np.ndarray:
    """Return the symmetric geometric stiffness of a unit force or moment from a tangent.

    For an undeformed body at rest, the elastic block of the tangent contains only this and K.
    """
    flexible = FlexibleBody("b", body, damping_ratio=0.0)
    q = np.concatenate([np.zeros(3), [1.0], np.zeros(3 + body.num_modes)])
    zero = np.zeros(6 + body.num_modes)
    load = 1e12  # so that K is not much larger than the geometric stiffness
    wrenches = np.zeros((len(body.interfaces), 6))
    wrenches[interface, component] = load
    K = flexible.tangent(BodyState(0.0, q, zero, zero, np.zeros(3), wrenches))[0][6:, 6:]
    return (0.5 * (K + K.T) - body.stiffness) / load


def own_rows(body: ReducedBody, state: State, stiffening: bool | None = None) -> np.ndarray:
    """Return the residual (rows) by this package, with the damping of the body only."""
    flexible = FlexibleBody("b", body, damping_ratio=0.0, stiffening=stiffening)
    out, scale = np.zeros(len(state.v)), np.zeros(len(state.v))
    flexible.residual(BodyState(0.0, *state.arguments), out, scale)
    return out


def moment_rows_linear(body: ReducedBody, state: State) -> np.ndarray:
    """Return the residual by this package, with the moment of a body without stiffening.

    Other programs include geometric stiffness in the elastic rows only, and neither foreshortening
    nor a change of inertia.
    """
    rows = own_rows(body, state)
    rows[3:6] = own_rows(body, state, stiffening=False)[3:6]
    return rows


def assert_same_rows(values: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12) -> None:
    """Assert that force, moment and elastic rows agree, each relative to its magnitude."""
    for rows in (slice(0, 3), slice(3, 6), slice(6, None)):
        size = np.abs(expected[rows]).max()
        assert np.abs(values[rows] - expected[rows]).max() <= tolerance * size
