"""Table that locates the data of floating-frame bodies for the kernels.

The arrays of all bodies are in one buffer. Each row of the table describes a body. It contains the
sizes of the body, the indices of its first coordinate, velocity and frame in the system, and the
positions of its arrays in the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.small_vectors import Array, Table

#: Columns with sizes: numbers of modes n, of frames F, of the matrices in `spin` (0 or 6), and of
#: the frames in `bend` (0 or F).
NUM_MODES, NUM_FRAMES, NUM_SPINS, NUM_BENDS = 0, 1, 2, 3
#: Columns with the indices of the first coordinate, velocity and frame in the system.
FIRST_Q, FIRST_V, FIRST_FRAME = 4, 5, 6
#: Columns with the start of an array: mass (1,); S (n+1, 3); H_kl^ab as a matrix with one row
#: for each (k, a, b) and one column for each l (9(n+1), n+1); mass, damping and stiffness matrices
#: (n, n); `spin` (6, n, n); points (F, 3); axes (F, 3, 3); motion (F, 6, n); `bend` (F, 6, n, n);
#: H_kl^ab with one row for each (a, b) and one column for each (k, l) (9, (n+1)²). S_k = ∫ρ ψ_k and
#: H_kl^ab = ∫ρ ψ_k^a ψ_l^b are the moments of `ReducedBody`, with the modes ψ_k and ψ_0 = x. `spin`
#: is the geometric stiffness for unit products ω_iω_j, and `bend` contains the coefficients of the
#: frames' motion that multiply products of elastic coordinates.
MASS, FIRST_MOMENTS, H_ROWS, MASS_MATRIX, DAMPING, STIFFNESS = 7, 8, 9, 10, 11, 12
SPIN, POINTS, AXES, MOTION, BEND, H_PAIRS = 13, 14, 15, 16, 17, 18
#: Column with the start of the tangent matrices of the body in the array of all tangents.
TANGENTS = 19
COLUMNS = 20


@inner_kernel
def matrix(data: Array, start: int, rows: int, columns: int) -> Array:
    """Return a view of a part of a buffer as a matrix, shape (rows, columns)."""
    return data[start : start + rows * columns].reshape((rows, columns))


def table_of_one(sizes: Sequence[int], arrays: Sequence[Array]) -> tuple[Table, Array]:
    """Return the table (1, 20) and the buffer of a single body.

    `sizes` are the first four columns; `arrays` have the order of the columns from MASS on.
    """
    starts = np.cumsum([0, *(array.size for array in arrays[:-1])])
    table = np.concatenate([sizes, np.zeros(3), starts, [0]]).astype(np.int64)
    return table[None], np.concatenate([array.ravel() for array in arrays])


def array_sizes(row: Table) -> list[int]:
    """Return the sizes of the arrays of a body in the order of the columns."""
    n, frames, spins, bends = (int(size) for size in row[:FIRST_Q])
    square, inertia = n * n, 9 * (n + 1) ** 2
    sizes = [1, 3 * (n + 1), inertia, square, square, square, spins * square]
    return [*sizes, 3 * frames, 9 * frames, 6 * frames * n, 6 * bends * square, inertia]
