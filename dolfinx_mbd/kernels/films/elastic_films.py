"""Oil films in elastic bores with equal grids, evaluated in one call.

The arrays of all films are stacked: their first axis is the film. A row of the table of the films
has the columns

    BORE, JOURNAL    frames of bore and journal
    FIRST_Q, FIRST_V first elastic coordinate of the body of the bore in q, and its rate in v
    MODES            number of elastic coordinates
    SURFACE          start of the matrix W (m, modes) of the coefficients s = W η in a buffer

The modules `frames`, `bore_patterns` and `reynolds` describe the other arrays.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.body_table import matrix
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.band import Integers
from dolfinx_mbd.kernels.films.bore_patterns import (
    NEW,
    UNUSABLE,
    elastic_gap,
    elastic_wrenches,
    pattern_gap,
)
from dolfinx_mbd.kernels.films.fields import CLEARANCE, SPIN
from dolfinx_mbd.kernels.films.frames import film_motion
from dolfinx_mbd.kernels.films.reynolds import reynolds_solve
from dolfinx_mbd.kernels.small_vectors import Array, Table
from dolfinx_mbd.kernels.vector_operations import product

BORE, JOURNAL, FIRST_Q, FIRST_V, MODES, SURFACE = range(6)  #: Columns of the table
NO_FILM = -1  #: Result of `elastic_films` in `failed` if all films were solved


@inner_kernel
def _motion(
    position: Array, rotation: Array, velocities: Array, row: Table, journal_speed: float
) -> Array:
    """Return the motion y (10,) of the journal; its spin includes that of its surface."""
    i, k = row[BORE], row[JOURNAL]
    y = film_motion(
        position[i], rotation[i], velocities[i], position[k], rotation[k], velocities[k]
    )
    cosine = 0.0
    for c in range(3):
        cosine += rotation[i, c, 2] * rotation[k, c, 2]
    y[SPIN] += -journal_speed if cosine < 0.0 else journal_speed
    return y


@inner_kernel
def _coefficients(q: Array, v: Array, row: Table, surfaces: Array, m: int) -> Array:
    """Return the coefficients of the displacement of the bore and their rates, (2, m)."""
    W, s = matrix(surfaces, row[SURFACE], m, row[MODES]), np.empty((2, m))
    s[0], s[1] = product(W, q, row[FIRST_Q]), product(W, v, row[FIRST_V])
    return s


@kernel
def elastic_films(
    position: Array,
    rotation: Array,
    velocities: Array,
    q: Array,
    v: Array,
    table: Table,
    surfaces: Array,
    journal_speeds: Array,
    farthest: float,
    points: Array,
    slope: Array,
    around: Array,
    along: Array,
    values: Array,
    nodes: Array,
    fixed: Integers,
    free: Integers,
    number: Integers,
    size: Integers,
    reduced: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    p: Array,
    slopes: Array,
    fraction: Array,
    h: Array,
    rate: Array,
    speed: Array,
    failed: Integers,
    out: Array,
) -> None:
    """Solve for the pressures of all films whose arguments have changed, and write the wrenches.

    Args:
        position: Positions of the frames, (frames, 3), m.
        rotation: Their axes, (frames, 3, 3).
        velocities: Their velocities, (frames, 6).
        q: Coordinates of the system, (nq,).
        v: Its velocities, (nv,).
        table: Table of the films.
        surfaces: Buffer of the matrices W.
        journal_speeds: Rotations of the surfaces of the journals relative to their frames, rad/s.
        farthest: Largest distance of a journal outside of the clearance, relative to the clearance.
        points: Arguments of the last solutions, (films, 10 + 2m).
        slope: Maps the coefficients to those of the derivatives by the angle, (films, m, m).
        around: Functions of the angle, (films, nodes around, A).
        along: Functions of the position along the axis, (films, nodes along, L).
        values: Constants of the films, (films, 20).
        nodes: Positions of the nodes along the axis, and their areas, (films, 2, nodes along).
        fixed: Nodes with a prescribed pressure.
        free: Nodes of the active sets.
        number: Indices of the unknowns at the nodes, or −1.
        size: Numbers of unknowns and bandwidths, (films, 2).
        reduced: Reduced pressures q at the nodes.
        flow: Conductances, sources and thicknesses.
        band: Factors of the films.
        links: Links to the edges of supplies.
        ends: Their distances, pressures and conductances.
        p: Pressures of films and asperities.
        slopes: Their derivatives.
        fraction: Parts of the gaps that are filled with oil.
        h: Gaps at the nodes, m.
        rate: Their rates, m/s.
        speed: Rotations of the journals, (films, 1), rad/s.
        failed: The film that has no solution, or `NO_FILM`, (1,), a result.
        out: Wrenches on bores and journals, then the forces on s, (films, 12 + m), a result. They
            are NaN if the loads cannot be computed.
    """
    for k in range(table.shape[0]):
        row, failed[0] = table[k], k
        y = _motion(position, rotation, velocities, row, journal_speeds[k])
        s = _coefficients(q, v, row, surfaces, out.shape[1] - 12)
        limit = farthest * values[k, CLEARANCE]
        state = elastic_gap(
            y, s, points[k], limit, values[k], nodes[k, 0], around[k], along[k], h[k], rate[k]
        )
        if state == UNUSABLE:
            out[k] = math.nan
            continue
        if state == NEW:
            speed[k, 0] = y[SPIN]
            iterations = reynolds_solve(
                h[k], rate[k], y[SPIN], values[k], fixed[k], free[k], number[k], size[k],
                reduced[k], flow[k], band[k], links[k], ends[k], p[k], slopes[k],
            )  # fmt: skip
            if iterations < 0:
                return
        elastic_wrenches(
            rotation[row[BORE]], y, s, slope[k], values[k], nodes[k], p[k], slopes[k], flow[k],
            fraction[k], around[k], along[k], out[k],
        )  # fmt: skip
    failed[0] = NO_FILM


@kernel
def elastic_gaps(
    position: Array,
    rotation: Array,
    velocities: Array,
    q: Array,
    v: Array,
    table: Table,
    surfaces: Array,
    around: Array,
    along: Array,
    values: Array,
    nodes: Array,
    gaps: Array,
) -> None:
    """Write the smallest gaps of all films at their nodes, (films,), m; see `elastic_films`."""
    h, rate = np.empty((2, around.shape[1], along.shape[1]))
    for k in range(table.shape[0]):
        y = _motion(position, rotation, velocities, table[k], 0.0)
        s = _coefficients(q, v, table[k], surfaces, around.shape[2] * along.shape[2])
        pattern_gap(y, values[k, CLEARANCE], nodes[k, 0], around[k], along[k], s, h, rate)
        gaps[k] = h.min()


@kernel
def subtract_forces_on_modes(
    table: Table, surfaces: Array, wrenches: Array, rows: Array, scale: Array
) -> None:
    """Subtract the forces of all films on elastic coordinates from a residual.

    Args:
        table: Table of the films.
        surfaces: Buffer of the matrices W.
        wrenches: Result of `elastic_films`, (films, 12 + m).
        rows: Residual, (nv,).
        scale: Magnitudes of its terms, (nv,).
    """
    m = wrenches.shape[1] - 12
    for k in range(table.shape[0]):
        first, modes = table[k, FIRST_V], table[k, MODES]
        W, forces = matrix(surfaces, table[k, SURFACE], m, modes), np.zeros(modes)
        for i in range(m):
            f, line = wrenches[k, 12 + i], W[i]
            for c in range(modes):
                forces[c] += f * line[c]
        for c in range(modes):
            rows[first + c] -= forces[c]
            scale[first + c] += abs(forces[c])
