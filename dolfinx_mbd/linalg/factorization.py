"""Linear algebra on PETSc: one factorization, blocks of vectors, errors that all ranks share.

Blocks of vectors are NumPy arrays of shape (owned rows, columns) in Fortran order, which PETSc uses
without a copy; small matrices are NumPy arrays that are bitwise equal on every rank.
"""

from __future__ import annotations

import copy
import logging
import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.checks import instance, name
from dolfinx_mbd.errors import InputError, SolverError

__all__ = [
    "FactorizationError",
    "agreed",
    "cholesky",
    "configure",
    "constrain",
    "count_below",
    "discard",
    "forget",
    "given",
    "gram",
    "multiply",
    "raise_together",
    "released",
    "require_real",
    "solve",
    "solver_options",
]

Array = NDArray[np.float64]
Options = Mapping[str, Any] | None

WORKSPACE = 100
"""Workspace beyond MUMPS's estimate, percent (ICNTL(14)); its default fails in parallel."""

CHOLMOD = {"mat_cholmod_factor": "supernodal", "mat_cholmod_print": 0}
"""L Lᵀ whatever the size, so that a pivot that is not positive is an error; in silence."""

_ORDERINGS = {0: "AMD", 2: "AMF", 3: "Scotch", 4: "PORD", 5: "METIS", 6: "QAMD"}

_log = logging.getLogger("dolfinx_mbd")

_MUMPS_REASONS = {
    -6: "the matrix is singular in structure",
    -8: "MUMPS ran out of integer workspace; raise the option mat_mumps_icntl_14",
    -9: "MUMPS ran out of workspace; raise the option mat_mumps_icntl_14 (percent)",
    -10: "the matrix is numerically singular: a part of the body is not held, or has no stiffness",
    -13: "there is not enough memory for the factors",
    -40: "the matrix is not positive definite",
}


class FactorizationError(SolverError):
    """A matrix could not be factorized; the message is PETSc's reason in words."""


def raise_together(comm: MPI.Comm, message: str | None, kind: type[Exception] = InputError) -> None:
    """Raise `kind` on every rank if any rank has a message (the lowest such rank's message).

    Note: Collective over `comm`.
    """
    for text in comm.allgather(message):
        if text is not None:
            raise kind(text)


@contextmanager
def agreed(comm: MPI.Comm) -> Iterator[None]:
    """Raise on every rank what any rank raises inside; nothing inside may be collective.

    Note: Collective over `comm`.
    """
    own: Exception | None = None
    try:
        yield
    except Exception as error:  # whatever it is, the other ranks must hear of it
        own = error
    for other in comm.allgather(_sendable(own)):
        if other is not None:
            raise own or other


def _sendable(error: Exception | None) -> Exception | None:
    """Return an error, or a substitute if it cannot be sent to other ranks.

    The value in an `InputError` may be anything, for example a function; it is left out then.
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        if isinstance(error, InputError) and error.value is not None:
            substitute = copy.copy(error)
            substitute.value = None
            return _sendable(substitute)
        return SolverError(str(error))
    return error


@contextmanager
def released(comm: MPI.Comm, *objects: Any) -> Iterator[None]:
    """Destroy PETSc objects at the end of a block; see `discard` for what an error changes.

    Note: Collective over `comm`.
    """
    try:
        yield
    except BaseException:
        discard(comm, *objects)
        raise
    for item in objects:
        item.destroy()


def discard(comm: MPI.Comm, *objects: Any) -> None:
    """Destroy PETSc objects while an exception propagates, if there is only one rank.

    Destroying is collective, and the other ranks may wait elsewhere because the error is this
    rank's alone; on several ranks the objects are left to PETSc's garbage collection.
    """
    if comm.size == 1:
        for item in objects:
            item.destroy()


def solver_options(prefix: Any, options: Any) -> dict[str, Any]:
    """Return the arguments `petsc_options_prefix` and `petsc_options` under their short names.

    Raises:
        InputTypeError: The prefix is not a text, or the options are not a mapping from texts to
            texts, numbers or None.
    """
    name("petsc_options_prefix", prefix)
    instance("petsc_options", options, (Mapping, type(None)))
    kinds = (str, int, float, np.integer, np.floating, np.bool_, list, tuple, type(None))
    for key, value in (options or {}).items():
        name("every name in petsc_options", key)
        instance(f"petsc_options[{key!r}]", value, kinds)
    return {"prefix": prefix, "options": options}


def require_real() -> None:
    """Refuse a PETSc with complex numbers.

    Raises:
        RuntimeError: PETSc has complex scalars.
    """
    if np.issubdtype(PETSc.ScalarType, np.complexfloating):
        raise SolverError(
            "this PETSc is built with complex numbers; the reduction of a body needs real ones "
            "(conda: petsc=*=real*; Debian: python3-dolfinx-real)"
        )


def configure(solver: Any, prefix: str, options: Options) -> list[str]:
    """Put options under the solver's prefix and let it read them; returns the keys for `forget`.

    Raises:
        ValueError: PETSc refuses an option.
    """
    solver.setOptionsPrefix(prefix)
    database = PETSc.Options(prefix)
    for key, value in (options or {}).items():
        database[key] = value
    try:
        solver.setFromOptions()
    except PETSc.Error as error:
        forget(prefix, list(options or {}))
        raise InputError(
            f"PETSc refuses petsc_options={dict(options or {})}: {_last_line(error)}"
        ) from error
    return list(options or {})


def forget(prefix: str, keys: list[str]) -> None:
    """Remove the options that `configure` set from PETSc's database."""
    database = PETSc.Options(prefix)
    for key in keys:
        database.delValue(key)


def cholesky(A: PETSc.Mat, *, prefix: str, options: Options = None, negative: int = 0) -> PETSc.KSP:
    """A KSP whose set-up has factorized a symmetric matrix.

    The caller destroys it. On one rank a positive definite matrix is CHOLMOD's, where PETSc has it:
    it solves faster. All others are MUMPS's, and those that CHOLMOD refuses: MUMPS tells why.
    `options` (without the prefix) may replace any part, also by an iterative method.

    Args:
        A: Positive definite; or bordered by constraints, which makes as many negative
            eigenvalues (LDLᵀ).
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        negative: Number of negative eigenvalues.

    Raises:
        FactorizationError: The factorization failed, or the signs of the eigenvalues are others.

    Note: Collective over the matrix's communicator.
    """
    A.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    A.setOption(PETSc.Mat.Option.SPD, negative == 0)
    chosen = ("pc_", "ksp_", "mat_mumps_")
    if (
        A.comm.size == 1
        and negative == 0
        and PETSc.Sys.hasExternalPackage("cholmod")
        and not any(key.startswith(chosen) for key in (*(options or {}), *given(prefix)))
    ):
        try:
            return _factorized(A, "cholmod", prefix, {**CHOLMOD, **(options or {})})
        except PETSc.Error:
            _log.info("CHOLMOD refuses the matrix; MUMPS has a look")
    defaults = {"mat_mumps_icntl_14": WORKSPACE}
    if negative:
        defaults |= {"mat_mumps_icntl_24": 1, "mat_mumps_icntl_13": 1}  # to know the inertia
    defaults = {key: value for key, value in defaults.items() if key not in given(prefix)}
    try:
        ksp = _factorized(A, "mumps", prefix, {**defaults, **(options or {})})
    except PETSc.Error as error:
        raise FactorizationError(_reason(error)) from error
    _check_inertia(ksp, negative)
    return ksp


def given(prefix: str) -> list[str]:
    """Options that the user has put into PETSc's database, without the prefix."""
    names = (name.removeprefix("-") for name in PETSc.Options().getAll())
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _factorized(A: PETSc.Mat, package: str, prefix: str, options: Options) -> PETSc.KSP:
    """A KSP that is set up, by a package unless the options say otherwise."""
    ksp = PETSc.KSP().create(A.comm)
    ksp.setErrorIfNotConverged(True)  # or MUMPS fails in silence
    ksp.setOperators(A)
    ksp.setType("preonly")
    pc = ksp.getPC()
    pc.setType("cholesky")
    pc.setFactorSolverType(package)
    keys = configure(ksp, prefix, options)
    try:
        ksp.setUp()
    except PETSc.Error:
        discard(A.comm, ksp)
        raise
    finally:
        forget(prefix, keys)
    _log.info("%d rows: %s", A.getSize()[0], _method(ksp))
    return ksp


def _method(ksp: PETSc.KSP) -> str:
    """What solves, for the log."""
    pc = ksp.getPC()
    if pc.getType() not in ("cholesky", "lu"):
        return f"{ksp.getType()} with {pc.getType()}"
    package = pc.getFactorSolverType()
    if package != "mumps":
        return f"{pc.getType()} by {package}"
    ordering = pc.getFactorMatrix().getMumpsInfog(7)
    return f"{pc.getType()} by mumps, ordering {_ORDERINGS.get(ordering, ordering)}"


def _check_inertia(ksp: PETSc.KSP, expected: int) -> None:
    """Whatever it was told of definiteness, MUMPS does not object to a pivot by itself."""
    pc = ksp.getPC()
    if pc.getType() != "cholesky" or pc.getFactorSolverType() != "mumps":
        return
    factor = pc.getFactorMatrix()
    if expected:
        negative, zero, _ = factor.getInertia()
    else:
        negative, zero = factor.getMumpsInfog(12), 0
    if negative > expected:
        raise FactorizationError(
            f"the stiffness matrix is not positive definite ({negative - expected} negative "
            "pivots): a part of the body is not held, or the stiffness form is wrong"
        )
    if zero or negative < expected:
        raise FactorizationError(
            f"the stiffness with averaged interfaces is singular ({zero} zero pivots, {negative} "
            f"negative ones instead of {expected}): a part of the body is not held, or the mesh "
            "is too coarse to tell the motions of the interfaces apart"
        )


def _last_line(error: PETSc.Error) -> str:
    """What PETSc says at last, without the number of the rank."""
    return re.sub(r"^\[\d+\] ", "", str(error).strip().splitlines()[-1])


def _reason(error: PETSc.Error, what: str = "the factorization failed") -> str:
    text = str(error)
    found = re.search(r"INFOG\(1\)\s*=\s*(-?\d+)", text)
    code = int(found.group(1)) if found else None
    words = _MUMPS_REASONS.get(code, "") if code is not None else ""
    detail = f"MUMPS INFOG(1)={code}" if code is not None else _last_line(error)
    return f"{what}: {words or 'see the detail'} ({detail})"


def count_below(K: PETSc.Mat, M: PETSc.Mat, value: float) -> int:
    """Number of eigenvalues of K ψ = λ M ψ below `value`, by Sylvester's law of inertia.

    The pattern of `M` is contained in that of `K`. A zero row of `M` with a positive diagonal in
    `K` counts for nothing.

    Raises:
        FactorizationError: The factorization failed, or `value` is an eigenvalue.

    Note: Collective.
    """
    A = K.copy()
    A.axpy(-value, M, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    A.setOption(PETSc.Mat.Option.SPD, False)
    A.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    pc = PETSc.PC().create(A.comm)
    with released(A.comm, pc, A):
        negative, zero = _inertia_below(pc, A)
    if zero:
        raise FactorizationError(f"{value:g} is an eigenvalue ({zero} zero pivots)")
    return negative


def _inertia_below(pc: PETSc.PC, A: PETSc.Mat) -> tuple[int, int]:
    """Factorize a matrix; return the numbers of its negative and zero eigenvalues."""
    try:
        pc.setOperators(A)
        pc.setType("cholesky")
        pc.setFactorSolverType("mumps")
        pc.setFactorSetUpSolverType()
        F = pc.getFactorMatrix()
        for control, setting in ((14, WORKSPACE), (24, 1), (13, 1)):
            F.setMumpsIcntl(control, setting)
        pc.setUp()
        code = F.getMumpsInfog(1)
        if code < 0:
            raise FactorizationError(
                f"the factorization failed: {_MUMPS_REASONS.get(code, '')} (MUMPS INFOG(1)={code})"
            )
        negative, zero, _ = F.getInertia()
    except PETSc.Error as error:
        raise FactorizationError(_reason(error)) from error
    return int(negative), int(zero)


def constrain(A: PETSc.Mat, rows: NDArray[np.int32], diagonal: float) -> None:
    """Zero the given owned rows (local numbers) and their columns; `diagonal` goes on the diagonal.

    Note: Collective.
    """
    start, _ = A.getOwnershipRange()
    A.setOption(PETSc.Mat.Option.KEEP_NONZERO_PATTERN, True)
    A.zeroRowsColumns((rows + start).astype(PETSc.IntType), diagonal)


def _dense(comm: MPI.Comm, values: Array) -> PETSc.Mat:
    """A dense PETSc matrix on the memory of `values`, (owned rows, columns), Fortran order."""
    rows, columns = values.shape
    D = PETSc.Mat().createDense(
        ((rows, PETSc.DETERMINE), (PETSc.DECIDE, columns)), array=values, comm=comm
    )
    D.assemble()
    return D


def multiply(A: PETSc.Mat, X: Array) -> Array:
    """A X for a block of vectors X, shape (owned rows, k); the result likewise.

    Note: Collective.
    """
    if X.shape[1] == 0:
        return np.zeros_like(X)
    D = _dense(A.comm, np.asfortranarray(X))
    Y = A.matMult(D)
    values = Y.getDenseArray().copy(order="F")
    Y.destroy()
    D.destroy()
    return values


def solve(ksp: PETSc.KSP, B: Array) -> Array:
    """A⁻¹B for a block of right-hand sides B, shape (owned rows, k), all in one call.

    Raises:
        FactorizationError: The solver failed.

    Note: Collective.
    """
    if B.shape[1] == 0:
        return np.zeros_like(B)
    X = np.zeros(B.shape, order="F")
    DB, DX = _dense(ksp.comm, np.asfortranarray(B)), _dense(ksp.comm, X)
    try:
        ksp.matSolve(DB, DX)
    except PETSc.Error as error:
        raise FactorizationError(_reason(error, "the linear solver failed")) from error
    DX.destroy()
    DB.destroy()
    return X


def gram(comm: MPI.Comm, X: Array, Y: Array) -> Array:
    """XᵀY over all ranks, the same bits on every rank.

    Note: Collective over `comm`.
    """
    local = np.ascontiguousarray(X.T @ Y)
    total = np.empty_like(local)
    comm.Reduce(local, total, op=MPI.SUM, root=0)
    comm.Bcast(total, root=0)
    return total
