"""Motion of a journal and pressure of its oil film over a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, memory, object_with
from dolfinx_mbd.html import short_repr

if TYPE_CHECKING:
    from dolfinx_mbd.results.solution import Solution

__all__ = ["FilmFields", "film_fields", "journal_motion"]


def journal_motion(run: Solution, name: str) -> Array:
    """Return the motion of a journal in its bore at the saved times, (nt, 10).

    A row is an argument of `FiniteBearing.pressure`, `FilmBearing.film_loads` and
    `plotting.plot_film_pressure`, which need the displacement of an elastic bore in addition.
    These functions do not know the content of a film that conserves the mass of oil; `film_fields`
    does. Smallest film thickness, peak pressure, side flow, orbit and power are in
    `run.element(name)`.

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
    _checked_film(run, name, "an oil film")
    rows = np.zeros((len(run), 10))
    for row, film, (pair, *_) in _evaluations(run, name):
        rows[row] = film.pair_motion(pair)
    return rows


@dataclass(frozen=True, eq=False)
class FilmFields:
    """Pressure and oil at the nodes of the grid of a film over a run.

    Attributes:
        time: Times, (nt,), s.
        angle: Angles of the nodes around the bore, (n,), rad.
        position: Positions of the nodes along the bore, (m+1,), m.
        pressure: Pressure of film and asperities, (nt, n, m+1), Pa.
        gap: Gap between the surfaces, (nt, n, m+1), m.
        fraction: Part of the gap that is filled with oil, (nt, n, m+1); one unless the film
            conserves the mass of oil.

    Example:
        >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
        >>> bore = mbd.bearings.FiniteBearing("film", *ends, **size, oil=0.01, shape=(24, 4))
        >>> system = mbd.System([ground, rotor], loads=[bore], gravity=(0, -9.81, 0))
        >>> mbd.bearings.film_fields(mbd.simulate(system, t_end=1e-3, dt=1e-4), "film").gap.shape
        (11, 24, 5)
    """

    time: Array
    angle: Array
    position: Array
    pressure: Array
    gap: Array
    fraction: Array

    __repr__ = short_repr


def film_fields(run: Solution, name: str) -> FilmFields:
    """Return pressure, gap and filled part of the gap over the grid of a bearing and a run.

    `run[::10]` has every tenth time. A film that conserves the mass of oil has the content of the
    run, and an elastic bore its displacement.

    Args:
        run: Result of a simulation or of `periodic`.
        name: Name of a `FiniteBearing` or an `ElasticBearing`.

    Raises:
        InputError: There is no bearing with a grid of this name, the run did not save its states,
            or the fields need too much memory.

    Example:
        >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
        >>> bore = mbd.bearings.FiniteBearing("film", *ends, **size, oil=0.01, shape=(24, 4))
        >>> system = mbd.System([ground, rotor], loads=[bore], gravity=(0, -9.81, 0))
        >>> fields = mbd.bearings.film_fields(mbd.simulate(system, t_end=1e-3, dt=1e-4), "film")
        >>> fields.pressure.shape
        (11, 24, 5)
    """
    bearing = _checked_film(run, name, "a grid", "grid")
    shape = len(run), *bearing.grid.areas.shape
    num_arrays, bytes_per_number = 3, 8.0
    memory("run", len(run), num_arrays * bytes_per_number * np.prod(shape))
    run._saved.check_oil()
    pressure, gap, fraction = np.zeros((3, *shape))
    for row, film, arguments in _evaluations(run, name):
        film.wrenches(*arguments)
        pressure[row] = film.grid.pressures.sum(axis=0)
        gap[row], fraction[row] = film.grid.last_gap, film.grid.fraction
    grid = bearing.grid
    return FilmFields(run.time.copy(), grid.theta, grid.z, pressure, gap, fraction)


def _checked_film(run: Solution, name: str, what: str, *attributes: str) -> Any:
    """Return the oil film with a name and with some attributes."""
    object_with("run", run, "system", "element", "_saved")
    films = {
        load.name: load
        for load in run.system.loads
        if load.has_film and all(hasattr(load, key) for key in attributes)
    }
    return films[choice(f"name of a bearing with {what}", name, films)]


def _evaluations(run: Solution, name: str) -> Iterator[tuple[int, Any, tuple[Any, ...]]]:
    """Yield the row, film and the arguments of its methods at the saved times."""
    for row, _, assembler in run._saved.evaluations():
        yield row, *assembler.loads.film_arguments(name)
