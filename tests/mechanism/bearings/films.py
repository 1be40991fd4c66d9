"""Poses and velocities of a journal in its bore, for the tests of oil films."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.bearings import FilmBearing
from dolfinx_mbd.mechanism.force_elements import FramePair

# m, m, m, Pa s, rad/s
RADIUS, LENGTH, CLEARANCE, VISCOSITY, SPEED = 0.05, 0.02, 1e-4, 0.01, 300.0
ENDS = ("ground", "bore"), ("rotor", "journal")
SIZES = *ENDS, RADIUS, LENGTH, CLEARANCE


def journal_pair(rng: np.random.Generator, eccentricity: float, *, tilt: float = 0.0) -> FramePair:
    """Return frames of a bore and its journal with random directions and velocities.

    The distance of the axes is `eccentricity` times the clearance, and the slope of the journal is
    `tilt` times clearance over length.
    """
    Q1 = exp_rotation(rng.normal(size=3))
    lean = np.append(rng.normal(size=2), 0.0)
    lean *= tilt * CLEARANCE / LENGTH / np.linalg.norm(lean)
    d = np.append(rng.normal(size=2), 0.0)
    d *= eccentricity * CLEARANCE / np.linalg.norm(d)
    d[2] = 0.2 * LENGTH  # axial position of the journal
    p1, u1 = rng.normal(size=3), rng.normal(size=6)
    rate = np.append(rng.normal(size=2), 0.0) * 0.2 * CLEARANCE * SPEED
    p2 = p1 + Q1 @ d
    turning = np.array([0.0, 0.0, SPEED]) + tilt * 0.1 * CLEARANCE / LENGTH * SPEED * lean
    w2 = u1[3:] + Q1 @ turning
    v2 = u1[:3] + np.cross(u1[3:], Q1 @ d) + Q1 @ rate
    Q2 = Q1 @ exp_rotation(lean) @ exp_rotation(np.array([0.0, 0.0, 0.7]))
    return FramePair(p1, Q1, u1, p2, Q2, np.concatenate([v2, w2]))


def scaled_differences(
    element: FilmBearing, pair: FramePair, *, of_pose: bool, step: float = 3e-6
) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences of the wrenches (12, 12), and the steps of the columns (12,)."""
    lengths = [CLEARANCE] * 3 + [CLEARANCE / LENGTH] * 3
    sizes = np.array(lengths * 2) * (step if of_pose else step * SPEED)
    columns = []
    for k in range(12):
        ends = []
        for sign in (1.0, -1.0):
            d = np.zeros(12)
            d[k] = sign * sizes[k]
            if of_pose:
                moved = pair._replace(
                    p1=pair.p1 + d[:3],
                    Q1=exp_rotation(d[3:6]) @ pair.Q1,
                    p2=pair.p2 + d[6:9],
                    Q2=exp_rotation(d[9:]) @ pair.Q2,
                )
            else:
                moved = pair._replace(u1=pair.u1 + d[:6], u2=pair.u2 + d[6:])
            ends.append(element.wrenches(moved))
        columns.append((ends[0] - ends[1]) / (2 * sizes[k]))
    return np.column_stack(columns), sizes
