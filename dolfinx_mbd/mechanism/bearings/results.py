"""Motion of a journal and pressure of its oil film over a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, object_with

if TYPE_CHECKING:
    from dolfinx_mbd.results.solution import Solution

__all__ = ["journal_motion"]


def journal_motion(run: Solution, name: str) -> Array:
    """Return the motion of a journal in its bore at the saved times, (nt, 10).

    A row is an argument of `FiniteBearing.pressure`, `FilmBearing.film_loads` and
    `plotting.plot_film_pressure`, which need the displacement of an elastic bore in addition.
    Smallest film thickness, peak pressure, side flow, orbit and power are in `run.element(name)`.

    Args:
        run: Result of a simulation.
        name: Name of the bearing.

    Raises:
        InputError: There is no bearing with an oil film of this name.

    Example:
        >>> system = mbd.System([ground, rotor], loads=[film], gravity=(0, -9.81, 0))
        >>> fall = mbd.simulate(system, t_end=1e-3, dt=1e-4)
        >>> mbd.bearings.journal_motion(fall, "film").shape
        (11, 10)
    """
    object_with("run", run, "system", "element", "_saved")
    films: dict[str, Any] = {load.name: load for load in run.system.loads if load.has_film}
    bearing = films[choice("name of a bearing with an oil film", name, films)]
    ends = [run.system.frame_index(frame) for frame in (bearing.first, bearing.second)]
    rows = np.zeros((len(run), 10))
    for row, _, at in run._saved.evaluations():
        at.frames.update_velocities()
        rows[row] = bearing.pair_motion(at.frames.pair(ends[0], ends[1]))
    return rows
