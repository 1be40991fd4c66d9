"""Factorizations of sparse matrices: the set-up of MUMPS and CHOLMOD.

| matrix | function | method |
|---|---|---|
| symmetric positive definite | `cholesky` | CHOLMOD on one rank, MUMPS on several, both L Lᵀ |
| the same with held rows | `held_cholesky` | the same; CHOLMOD without a copy of the matrix |
| the same, substructures given | `cholesky(..., parts=parts)` | CHOLMOD on each rank, L Lᵀ |
| symmetric, n negative eigenvalues | `cholesky(..., negative=n)` | MUMPS, L D Lᵀ |
| symmetric, values change, inertia unknown | `SymmetricFactor` | MUMPS, L D Lᵀ |
| general | the options `GENERAL` | MUMPS, L U |
"""

from __future__ import annotations

import logging
import math
import re
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.linalg.cholmod import CholmodError, CholmodPreconditioner, library
from dolfinx_mbd.fem.linalg.options import Options, configured, database_options, last_line
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.linalg.substructures import SubstructurePreconditioner, Substructures
from dolfinx_mbd.parallel import destroying, discard

DEFINITE = {
    "ksp_type": "preonly",
    "pc_type": "cholesky",
    "pc_factor_mat_solver_type": "mumps",
    "mat_mumps_icntl_14": 100,
}
"""Options for a symmetric positive definite matrix.

ICNTL(14) is MUMPS's additional workspace in percent; its default is too small in parallel.
"""

INDEFINITE = DEFINITE | {"mat_mumps_icntl_24": 1, "mat_mumps_icntl_13": 1}
"""Options for a symmetric matrix whose inertia is needed: ICNTL(24) detects zero pivots, and
ICNTL(13) factorizes the root front without ScaLAPACK, which does not count negative pivots."""

GENERAL = DEFINITE | {"pc_type": "lu"}
"""Options for an unsymmetric matrix."""

CHOLMOD = {
    **{key: value for key, value in DEFINITE.items() if "mumps" not in key},
    "pc_factor_mat_solver_type": "cholmod",
    "mat_cholmod_factor": "supernodal",
    "mat_cholmod_print": 0,
}
"""Options for CHOLMOD. The supernodal method computes L Lᵀ for any size, and fails at a pivot that
is not positive."""

APPROXIMATE = frozenset(
    "none jacobi pbjacobi vpbjacobi bjacobi sor eisenstat icc ilu asm gasm mg gamg hypre ml "
    "bddc".split()
)
"""Preconditioners that do not solve a system; without iterations, results would be wrong."""

_ORDERINGS = {0: "AMD", 2: "AMF", 3: "Scotch", 4: "PORD", 5: "METIS", 6: "QAMD"}

_MUMPS_ERRORS = {
    -6: "the matrix is structurally singular",
    -8: "MUMPS ran out of integer workspace; raise the option mat_mumps_icntl_14",
    -9: "MUMPS ran out of workspace; raise the option mat_mumps_icntl_14 (percent)",
    -10: "the matrix is numerically singular: a part of the body is not held, or has no stiffness",
    -13: "there is not enough memory for the factors",
    -40: "the matrix is not positive definite",
}

_log = logging.getLogger("dolfinx_mbd")


class FactorizationError(SolverError):
    """A matrix that could not be factorized, or a linear system that could not be solved.

    `info` is MUMPS's error code INFOG(1), None if the error has another source. `negative` is the
    number of excess negative pivots, None if unknown.
    """

    def __init__(
        self, message: str = "", *, info: int | None = None, negative: int | None = None
    ) -> None:
        super().__init__(message)
        self.info, self.negative = info, negative


class SingularError(FactorizationError):
    """A matrix that is singular but must be regular."""


def cholesky(
    A: PETSc.Mat,
    *,
    prefix: str,
    options: Options = None,
    negative: int = 0,
    ksp: PETSc.KSP | None = None,
    exact: bool = True,
    parts: Substructures | None = None,
) -> PETSc.KSP:
    """Return a KSP that contains the factorization of a symmetric matrix.

    On one rank, CHOLMOD factorizes positive definite matrices if PETSc includes CHOLMOD, because
    its solutions are faster. METIS then orders the nodes of the mesh (`fem/linalg/cholmod.py`); if
    there are options for CHOLMOD, or CHOLMOD has another version, PETSc calls CHOLMOD. MUMPS
    factorizes all other matrices, and repeats failed factorizations of CHOLMOD to report the cause.
    User options may replace any setting.

    On several ranks, CHOLMOD factorizes the substructures of the ranks if they are given by `parts`
    and share few unknowns (`fem/linalg/substructures.py`).

    `negative` is the number of negative eigenvalues of A, zero or the number of constraints. An
    existing solver, for example of a multigrid level, may be passed as `ksp`. Without `exact`, the
    options may select a preconditioner alone.
    """
    _check_finite(A)
    A.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    A.setOption(PETSc.Mat.Option.SPD, negative == 0)
    solver = create_solver(A, ksp)
    if negative or not _cholmod_succeeds(solver, A, prefix, options, parts):
        try:
            set_up(solver, INDEFINITE if negative else DEFINITE, prefix, options)
        except PETSc.Error as error:
            if ksp is None:
                discard(A.comm, solver)
            raise solver_error(error, "the factorization failed") from error
    if exact:
        _check_method(solver, prefix, options)
    _log.info("%d rows: %s", A.getSize()[0], _method(solver))
    _check_inertia(solver, negative)
    return solver


def held_cholesky(
    A: PETSc.Mat, held: NDArray[np.int32], *, prefix: str, options: Options = None
) -> PETSc.KSP:
    """Return a KSP that contains the factorization of a positive definite matrix with held rows.

    The result is that of `cholesky` for a copy of A with unit rows and columns at the owned rows
    `held`. CHOLMOD on one rank does not need the copy; the operator of the KSP is then A.
    """
    keys = (*(options or {}), *database_options(prefix))
    chosen = any(key.startswith(("pc_", "ksp_", "mat_")) for key in keys)
    if A.comm.size == 1 and library() is not None and not chosen:
        _check_finite(A)
        with suppress(CholmodError):
            ksp = cholmod_solver(A, CholmodPreconditioner(A, held), prefix, options)
            _log.info("%d rows: %s", A.getSize()[0], _method(ksp))
            return ksp
    K = A.copy()
    constrain(K, held, 1.0)
    try:
        return cholesky(K, prefix=prefix, options=options)
    finally:
        K.destroy()  # this reference only; the KSP has another one


def cholmod_solver(
    A: PETSc.Mat,
    preconditioner: CholmodPreconditioner,
    prefix: str,
    options: Options,
    ksp: PETSc.KSP | None = None,
) -> PETSc.KSP:
    """Return a KSP that solves with a factor of CHOLMOD."""
    ksp = create_solver(A, ksp)
    pc = ksp.getPC()
    pc.setType(PETSc.PC.Type.PYTHON)
    pc.setPythonContext(preconditioner)
    return set_up(ksp, {"ksp_type": "preonly"}, prefix, options)


def _check_finite(A: PETSc.Mat) -> None:
    """Raise an error if a matrix has entries NaN or Inf, for which MUMPS may end the process."""
    if not math.isfinite(A.norm(PETSc.NormType.FROBENIUS)):
        raise FactorizationError("the factorization failed: the matrix has entries NaN or Inf")


def _cholmod_succeeds(
    ksp: PETSc.KSP, A: PETSc.Mat, prefix: str, options: Options, parts: Substructures | None
) -> bool:
    """Factorize by CHOLMOD if it can be used, and return whether it has succeeded."""
    if not PETSc.Sys.hasExternalPackage("cholmod"):
        return False
    # `library()` is None if only PETSc can call CHOLMOD, which it does on one rank. With
    # substructures each rank holds a dense matrix of the shared unknowns, which must be small.
    if A.comm.size > 1 and (parts is None or not parts.are_small or library() is None):
        return False
    keys = (*(options or {}), *database_options(prefix))
    if any(key.startswith(("pc_", "ksp_", "mat_mumps_")) for key in keys):
        return False  # the options may select another method
    try:
        if A.comm.size > 1:
            assert parts is not None
            preconditioner: CholmodPreconditioner = SubstructurePreconditioner(A, parts)
        elif library() is None or any(key.startswith("mat_cholmod_") for key in keys):
            set_up(ksp, CHOLMOD, prefix, options)
            return True
        else:
            preconditioner = CholmodPreconditioner(A)
        cholmod_solver(A, preconditioner, prefix, options, ksp)
    except (PETSc.Error, CholmodError):
        _log.info("CHOLMOD does not accept the matrix; MUMPS is used instead")
        ksp.reset()
        ksp.setOperators(A)
        return False
    return True


def solver_error(error: PETSc.Error, failure: str) -> FactorizationError:
    """Return an error that explains the cause of a PETSc error."""
    match = re.search(r"INFOG\(1\)\s*=\s*(-?\d+)", str(error))
    if match is None:
        return FactorizationError(f"{failure}: {last_line(error)}")
    info = int(match.group(1))
    cause = _MUMPS_ERRORS.get(info, "see the manual of MUMPS")
    return FactorizationError(f"{failure}: {cause} (MUMPS INFOG(1)={info})", info=info)


def create_solver(A: PETSc.Mat, ksp: PETSc.KSP | None = None) -> PETSc.KSP:
    """Return a KSP for a matrix; the KSP raises an error on failure."""
    ksp = ksp or PETSc.KSP().create(A.comm)
    ksp.setErrorIfNotConverged(True)  # a failure of MUMPS is silent otherwise
    ksp.setOperators(A)
    return ksp


def set_up(ksp: PETSc.KSP, defaults: Options, prefix: str, options: Options) -> PETSc.KSP:
    """Set up a KSP, which factorizes its matrix, and return it."""
    database = database_options(prefix)
    settings = {key: value for key, value in (defaults or {}).items() if key not in database}
    with configured(ksp, prefix, settings | dict(options or {})):
        ksp.setUp()
    return ksp


def _check_method(ksp: PETSc.KSP, prefix: str, options: Options) -> None:
    """Raise an error if the user's options replace the factorization by a mere approximation."""
    preconditioner = ksp.getPC().getType()
    if ksp.getType() == PETSc.KSP.Type.PREONLY and preconditioner in APPROXIMATE:
        raise InputError(
            f"the options with the prefix {prefix!r} select pc_type={preconditioner}, which alone "
            "does not solve a linear system; give also ksp_type (such as cg) and ksp_rtol, or "
            "leave both out",
            argument="petsc_options",
            value=dict(options or {}),
        )


def factor_package(ksp: PETSc.KSP) -> str | None:
    """Return the name of the package that factorized the matrix, or None without a factor."""
    pc = ksp.getPC()
    if pc.getType() == "python":
        cholmod = isinstance(pc.getPythonContext(), CholmodPreconditioner)
        return "cholmod" if cholmod else None
    factorized = pc.getType() in ("cholesky", "lu")
    return str(pc.getFactorSolverType()) if factorized else None


def _method(ksp: PETSc.KSP) -> str:
    """Return a description of the solver for the log."""
    pc, package = ksp.getPC(), factor_package(ksp)
    if package == "cholmod":
        return "cholesky by cholmod"
    if package is None:
        return f"{ksp.getType()} with {pc.getType()}"
    if package != "mumps":
        return f"{pc.getType()} by {package}"
    ordering = pc.getFactorMatrix().getMumpsInfog(7)
    return f"{pc.getType()} by mumps, ordering {_ORDERINGS.get(ordering, ordering)}"


def _inertia(ksp: PETSc.KSP, definite: bool = False) -> tuple[int, int] | None:
    """Return the numbers of negative and zero pivots, or None without MUMPS's Cholesky."""
    pc = ksp.getPC()
    if pc.getType() != "cholesky" or pc.getFactorSolverType() != "mumps":
        return None
    factor = pc.getFactorMatrix()
    return (factor.getMumpsInfog(12), 0) if definite else factor.getInertia()[:2]


def _check_inertia(ksp: PETSc.KSP, expected: int) -> None:
    """Raise an error if the inertia is not as expected; MUMPS accepts negative pivots."""
    negative, zero = _inertia(ksp, definite=not expected) or (expected, 0)
    if negative > expected:
        raise FactorizationError(
            f"the stiffness matrix is not positive definite ({negative - expected} negative "
            "pivots): a part of the body is not held, or the stiffness form is wrong",
            negative=int(negative - expected),
        )
    if zero or negative < expected:
        raise SingularError(
            f"the stiffness with averaged interfaces is singular ({zero} zero pivots, {negative} "
            f"negative ones instead of {expected}): a part of the body is not held, or the mesh "
            "is too coarse to distinguish the motions of the interfaces"
        )


class SymmetricFactor:
    """L D Lᵀ of a symmetric matrix with constant pattern and changing values.

    An example is the stiffness of a rotating body: this stiffness changes with the speed and is
    indefinite above a critical speed. The symbolic factorization is computed once. The object owns
    the matrix; change it in place before you call `factorize`. `ksp` solves with the last factors.
    """

    def __init__(self, matrix: PETSc.Mat, *, prefix: str, options: Options = None) -> None:
        self.matrix = matrix
        matrix.setOption(PETSc.Mat.Option.SYMMETRIC, True)
        matrix.setOption(PETSc.Mat.Option.SPD, False)
        self._prefix, self._options = prefix, options
        self.ksp = create_solver(matrix)

    def factorize(self) -> int | None:
        """Factorize the present values, and return the number of negative eigenvalues.

        The result is None if the user's options select a method that does not provide the number.
        """
        self.ksp.setOperators(self.matrix)
        try:
            set_up(self.ksp, INDEFINITE, self._prefix, self._options)
        except PETSc.Error as error:
            raise solver_error(error, "the factorization failed") from error
        _check_method(self.ksp, self._prefix, self._options)
        inertia = _inertia(self.ksp)
        if inertia is None:
            return None
        negative, zero = inertia
        if zero:
            raise SingularError(
                f"the matrix is singular ({zero} zero pivots): a part is not held, or a motion "
                "has no stiffness (at a critical speed; use another speed nearby)"
            )
        return int(negative)

    def destroy(self) -> None:
        """Free the factor and the matrix."""
        self.ksp.destroy()
        self.matrix.destroy()


def count_below(K: PETSc.Mat, M: PETSc.Mat, value: float) -> int:
    """Return the number of eigenvalues of K ψ = λ M ψ below a value, by Sylvester's law of inertia.

    A zero row of `M` with a positive diagonal entry in `K` is not counted.
    """
    A = K.copy()
    A.axpy(-value, M, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    factor = SymmetricFactor(A, prefix="dolfinx_mbd_count_")
    with destroying(A.comm, factor):
        try:
            count = factor.factorize()
        except SingularError as error:
            raise SingularError(f"{value:g} is an eigenvalue") from error
    if count is None:
        raise FactorizationError(
            "the number of modes cannot be counted: options with the prefix dolfinx_mbd_count_ in "
            "PETSc's database select another solver than Cholesky by MUMPS; remove them"
        )
    return count
