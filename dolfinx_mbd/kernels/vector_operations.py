"""Products of matrices and vectors, and operations on four entries of an array, for kernels.

The products are loops, because numba compiles `@` slowly. LLVM vectorizes loops only if they are
longer than those over the rows of a band. The operations on four neighbouring entries are vector
instructions in loops of any length. Groups of entries are given by the index of their first entry
in a flat array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dolfinx_mbd.kernels import array_versions
from dolfinx_mbd.kernels.compilation import COMPILED, inner_kernel, sums_in_any_order, without_numba
from dolfinx_mbd.kernels.small_vectors import Array

if COMPILED:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.extending import intrinsic
else:

    def intrinsic(function: Any) -> Any:
        """Return the function, which is not called without numba."""
        return function


@without_numba(array_versions.product)
@sums_in_any_order
def product(A: Array, x: Array, first: int) -> Array:
    """Return the product of a matrix and the entries of x from an index on."""
    rows, columns = A.shape
    out, last, x = np.empty(rows), rows - 1, x[first : first + columns]
    for i in range(0, rows, 4):  # four independent sums; the last row is repeated
        j = i + 1 if i + 1 < last else last
        k = i + 2 if i + 2 < last else last
        m = i + 3 if i + 3 < last else last
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for n in range(columns):
            a += A[i, n] * x[n]
            b += A[j, n] * x[n]
            c += A[k, n] * x[n]
            d += A[m, n] * x[n]
        out[i], out[j], out[k], out[m] = a, b, c, d
    return out


@without_numba(array_versions.weighted_sum)
@inner_kernel
def weighted_sum(weights: Array, A: Array) -> Array:
    """Return the sum of the rows of a matrix, times the weights."""
    out = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        weight, row = weights[i], A[i]
        for k in range(A.shape[1]):
            out[k] += weight * row[k]
    return out


LANES = 4  #: Number of entries of a group


def _pointer(builder: Any, data: Any, index: Any) -> Any:
    """Return a pointer to the group that begins at an index."""
    return builder.bitcast(
        builder.gep(data, [index]), ir.VectorType(ir.DoubleType(), LANES).as_pointer()
    )


def _product(builder: Any, data: Any, index: Any, f: Any) -> Any:
    """Return f times the group that begins at an index."""
    factors = ir.Constant(ir.VectorType(ir.DoubleType(), LANES), ir.Undefined)
    for k in range(LANES):
        factors = builder.insert_element(factors, f, ir.Constant(ir.IntType(32), k))
    return builder.fmul(factors, builder.load(_pointer(builder, data, index), align=8))


def _subtract(builder: Any, data: Any, index: Any, change: Any) -> None:
    """Subtract a vector from the group that begins at an index."""
    pointer = _pointer(builder, data, index)
    builder.store(builder.fsub(builder.load(pointer, align=8), change), pointer, align=8)


def _build_multiple(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code that subtracts a multiple of a vector."""
    x, target, f, source = arguments
    data = context.make_array(signature.args[0])(context, builder, x).data
    _subtract(builder, data, target, _product(builder, data, source, f))
    return context.get_dummy_value()


def _build_multiples(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code that subtracts multiples of four successive vectors."""
    x, target, *factors, source, step = arguments
    data, parts = context.make_array(signature.args[0])(context, builder, x).data, []
    for f in factors:
        parts.append(_product(builder, data, source, f))
        source = builder.add(source, step)
    pairs = builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3])
    _subtract(builder, data, target, builder.fadd(*pairs))
    return context.get_dummy_value()


@intrinsic
def _subtract_group(context: Any, x: Any, target: Any, f: Any, source: Any) -> Any:
    """Subtract f times the group at `source` from that at `target`."""
    arguments = x, types.intp, types.float64, types.intp
    return types.void(*arguments), _build_multiple


@intrinsic
def _subtract_groups(
    context: Any, x: Any, target: Any, f1: Any, f2: Any, f3: Any, f4: Any, source: Any, step: Any
) -> Any:
    """Subtract multiples of four groups from that at `target`."""
    arguments = x, types.intp, *(types.float64,) * 4, types.intp, types.intp
    return types.void(*arguments), _build_multiples


@without_numba(array_versions.subtract_multiple)
@inner_kernel
def subtract_multiple(x: Array, target: int, f: float, source: int, count: int) -> None:
    """Subtract f times `count` entries from `source` on from those from `target` on.

    The entries up to the next multiple of `LANES` are also subtracted; they must be zero.
    """
    for k in range(0, count, LANES):
        _subtract_group(x, target + k, f, source + k)


@without_numba(array_versions.subtract_multiples)
@inner_kernel
def subtract_multiples(
    x: Array,
    target: int,
    f1: float,
    f2: float,
    f3: float,
    f4: float,
    source: int,
    step: int,
    count: int,
) -> None:
    """Subtract multiples of four parts of a flat array, of `count` entries each, as above.

    The parts begin at `source`, `source + step`, `source + 2 step` and `source + 3 step`.
    """
    for k in range(0, count, LANES):
        _subtract_groups(x, target + k, f1, f2, f3, f4, source + k, step)
