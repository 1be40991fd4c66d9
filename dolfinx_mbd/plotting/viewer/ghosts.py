"""Surfaces of a second run, which a page draws transparent over the first one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import reject
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.plotting.scene.surfaces import body_surfaces
from dolfinx_mbd.plotting.viewer.data import continuous
from dolfinx_mbd.results.solution import Solution

__all__ = ["ghost_surfaces"]

Array = NDArray[np.float64]


def ghost_surfaces(run: Solution, time: Array, length: float) -> list[Surface]:
    """Return the surfaces of the bodies of a run at the times of another run.

    Between saved times, positions, quaternions and elastic coordinates are interpolated linearly.
    Mesh bodies, beams and cables are omitted.

    Args:
        run: The second run.
        time: Times of the first run, shape (nt,), s.
        length: Size of the first mechanism, m.

    Raises:
        InputError: The second run does not contain all times of the first one.
    """
    tolerance = 1e-9 * max(float(np.ptp(time)), 1e-300)
    if run.time[0] > time[0] + tolerance or run.time[-1] < time[-1] - tolerance:
        expected = f"a run from t = {time[0]:.6g} s or earlier to {time[-1]:.6g} s or later"
        reject("ghost", run, expected)
    return [
        replace(
            surface,
            name=f"{surface.name} (second run)",
            position=_interpolated(time, run.time, surface.position),
            rotation=_unit(_interpolated(time, run.time, continuous(surface.rotation))),
            eta=_interpolated(time, run.time, surface.eta),
            stress=None,
        )
        for surface in body_surfaces(run.system, run.q, length)
    ]


def _interpolated(time: Array, times: Array, values: Array) -> Array:
    """Return values (times, n) at other times, interpolated linearly."""
    columns = [np.interp(time, times, column) for column in values.T]
    return np.stack(columns, axis=1) if columns else np.zeros((len(time), 0))


def _unit(quaternions: Array) -> Array:
    """Return quaternions (nt, 4) of length 1."""
    return np.asarray(quaternions / np.linalg.norm(quaternions, axis=1)[:, None])
