"""Impacts in the history of a contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Impact", "find_impacts"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Impact:
    """A period of contact between two saved times without contact.

    Attributes:
        start: Time of the first touch, s, interpolated between saved times; the first saved time if
            the run begins with contact.
        end: Time of the separation, s; NaN if the contact lasts until the end of the run.
        speed: Approach speed at the last saved time before the contact, m/s.
        peak_force: Largest normal force, N.
        depth: Largest penetration, m.
        loss: Energy that damping and friction dissipate, J.

    Example:
        >>> up = [[1, 0, 0], [0, 0, 1], [0, -1, 0]]  # z of the floor is y of the ground
        >>> floor = mbd.Ground({"floor": mbd.Frame(axes=up)})
        >>> motion = {"position": (0, 0.06, 0), "velocity": (0, -1.0, 0)}
        >>> ball = mbd.RigidBody("ball", 1.0, [1e-3] * 3, frames={"c": mbd.Frame()}, **motion)
        >>> law = mbd.ContactLaw(1e6, damping=0.3)
        >>> ends = floor.frame("floor"), ball.frame("c")
        >>> touch = mbd.mechanism.plane_contact("touch", *ends, 0.05, law)
        >>> system = mbd.System([floor, ball], loads=[touch])
        >>> (impact,) = mbd.simulate(system, t_end=0.03, dt=5e-5).element("touch").impacts
        >>> print(f"{1e3 * impact.start:.1f} ms, {impact.speed:.3f} m/s, {impact.loss:.3f} J")
        10.0 ms, 1.000 m/s, 0.153 J
    """

    start: float
    end: float
    speed: float
    peak_force: float
    depth: float
    loss: float


def find_impacts(
    time: Array, gap: Array, rate: Array, force: Array, dissipated: Array
) -> tuple[Impact, ...]:
    """Return the periods in which any point of a contact has a negative gap.

    Args:
        time: Saved times, (nt,), s.
        gap: Gaps, (nt, points), m.
        rate: Rates of the gaps, (nt, points), m/s.
        force: Normal forces, (nt, points), N.
        dissipated: Energy dissipated so far, (nt,), J.
    """
    lowest = gap.min(axis=1)
    touches = np.concatenate([[False], lowest < 0.0, [False]])
    changes = np.flatnonzero(np.diff(touches.astype(int))).reshape(-1, 2)
    impacts = []
    for i, j in (map(int, pair) for pair in changes):
        before, after = max(i - 1, 0), min(j, len(time) - 1)
        point = int(np.argmin(gap[i]))
        end = np.nan if j == len(time) else _crossing(time, lowest, j)
        impacts.append(
            Impact(
                start=float(time[0]) if i == 0 else _crossing(time, lowest, i),
                end=end,
                speed=float(-rate[before, point]),
                peak_force=float(force[i:j].sum(axis=1).max()),
                depth=float(-lowest[i:j].min()),
                loss=float(dissipated[after] - dissipated[before]),
            )
        )
    return tuple(impacts)


def _crossing(time: Array, gap: Array, n: int) -> float:
    """Return the time between the saved times n − 1 and n at which a gap is zero."""
    fraction = gap[n - 1] / (gap[n - 1] - gap[n])
    return float(time[n - 1] + fraction * (time[n] - time[n - 1]))
