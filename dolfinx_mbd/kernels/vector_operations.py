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
    from numba.core import cgutils
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
_BLOCK = 6  # number of groups whose sums stay in registers


def _pointer(builder: Any, data: Any, index: Any) -> Any:
    """Return a pointer to the group that begins at an index."""
    return builder.bitcast(
        builder.gep(data, [index]), ir.VectorType(ir.DoubleType(), LANES).as_pointer()
    )


def _repeated(builder: Any, f: Any) -> Any:
    """Return a group with f in all entries."""
    factors = ir.Constant(ir.VectorType(ir.DoubleType(), LANES), ir.Undefined)
    for k in range(LANES):
        factors = builder.insert_element(factors, f, ir.Constant(ir.IntType(32), k))
    return factors


def _product(builder: Any, data: Any, index: Any, f: Any) -> Any:
    """Return f times the group that begins at an index."""
    group = builder.load(_pointer(builder, data, index), align=8)
    return builder.fmul(_repeated(builder, f), group)


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


def _build_sums(groups: int) -> Any:
    """Return a function that writes the code of `subtract_sum` for a number of groups."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, target, f, x, source, step, terms, scale = arguments
        out, f, x = (
            context.make_array(signature.args[k])(context, builder, value).data
            for k, value in ((0, out), (2, f), (3, x))
        )
        # "contract": multiplication and subtraction in one instruction
        fused, group = ("contract",), ir.VectorType(ir.DoubleType(), LANES)
        shifts = [ir.Constant(target.type, LANES * k) for k in range(groups)]
        places = [_pointer(builder, out, builder.add(target, shift)) for shift in shifts]
        sums = [cgutils.alloca_once(builder, group) for _ in shifts]
        for place, total in zip(places, sums, strict=True):
            builder.store(builder.load(place, align=8), total)
        with cgutils.for_range(builder, terms) as loop:
            factor = _repeated(builder, builder.load(builder.gep(f, [loop.index])))
            first = builder.add(source, builder.mul(step, loop.index))
            for shift, total in zip(shifts, sums, strict=True):
                row = builder.load(_pointer(builder, x, builder.add(first, shift)), align=8)
                part = builder.fmul(factor, row, flags=fused)
                builder.store(builder.fsub(builder.load(total), part, flags=fused), total)
        scale = _repeated(builder, scale)
        for place, total in zip(places, sums, strict=True):
            builder.store(builder.fmul(builder.load(total), scale), place, align=8)
        return context.get_dummy_value()

    return build


@intrinsic
def _subtract_sum_of_group(
    context: Any, out: Any, target: Any, f: Any, x: Any, source: Any, step: Any, terms: Any,
    scale: Any,
) -> Any:  # fmt: skip
    """Apply `subtract_sum` to one group."""
    arguments = out, types.intp, f, x, *(types.intp,) * 3, types.float64
    return types.void(*arguments), _build_sums(1)


@intrinsic
def _subtract_sum_of_block(
    context: Any, out: Any, target: Any, f: Any, x: Any, source: Any, step: Any, terms: Any,
    scale: Any,
) -> Any:  # fmt: skip
    """Apply `subtract_sum` to `_BLOCK` groups."""
    arguments = out, types.intp, f, x, *(types.intp,) * 3, types.float64
    return types.void(*arguments), _build_sums(_BLOCK)


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
    """Subtract multiples of four parts of a flat array from the `count` entries from `target` on.

    As in `subtract_multiple`, the entries up to the next multiple of `LANES` are also subtracted.
    The parts begin at `source`, `source + step`, `source + 2 step` and `source + 3 step`.
    """
    for k in range(0, count, LANES):
        _subtract_groups(x, target + k, f1, f2, f3, f4, source + k, step)


@without_numba(array_versions.subtract_sum)
@inner_kernel
def subtract_sum(
    out: Array,
    target: int,
    f: Array,
    x: Array,
    source: int,
    step: int,
    terms: int,
    scale: float,
    count: int,
) -> None:
    """Subtract a sum of rows, with factors, from a row, and multiply the result by `scale`.

    The row is that of `count` entries of the flat array `out` from `target` on. The rows of the sum
    begin in the flat array x at `source + k step` for k < `terms`, and have the factors f[k].
    `count` is a multiple of `LANES`. x may be `out`, if the row is not a row of the sum.
    """
    k = 0
    while k + _BLOCK * LANES <= count:
        _subtract_sum_of_block(out, target + k, f, x, source + k, step, terms, scale)
        k += _BLOCK * LANES
    while k < count:
        _subtract_sum_of_group(out, target + k, f, x, source + k, step, terms, scale)
        k += LANES
