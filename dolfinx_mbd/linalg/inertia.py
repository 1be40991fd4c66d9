"""Symmetric indefinite factorization, and the numbers of negative eigenvalues that it provides."""

from __future__ import annotations

from petsc4py import PETSc

from dolfinx_mbd.linalg.factorization import (
    INDEFINITE,
    SingularError,
    create_solver,
    is_mumps_cholesky,
    set_up,
    solver_error,
)
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.parallel import released

__all__ = ["SymmetricFactor", "count_below"]

_COUNT_PREFIX = "dolfinx_mbd_count_"


class SymmetricFactor:
    """L D Lᵀ of a symmetric matrix with constant pattern and changing values.

    The stiffness of a rotating body is an example: it changes with the speed, and it is indefinite
    above a critical one. The symbolic factorization is computed once.

    Args:
        matrix: Matrix whose values may be set later; the object takes it over.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Attributes:
        matrix: The matrix; change it in place before you call `factorize`.
        ksp: Solver with the last factorization.

    Note: Collective, as all methods are. The caller destroys the object.
    """

    def __init__(self, matrix: PETSc.Mat, *, prefix: str, options: Options = None) -> None:
        self.matrix = matrix
        matrix.setOption(PETSc.Mat.Option.SYMMETRIC, True)
        matrix.setOption(PETSc.Mat.Option.SPD, False)
        self._prefix, self._options = prefix, options
        self.ksp = create_solver(matrix)

    def factorize(self) -> int | None:
        """Factorize the present values, and return the number of negative eigenvalues.

        Returns:
            The number; None if the user's options select a method that does not provide it.

        Raises:
            SingularError: The matrix is singular.
            FactorizationError: The factorization failed for another reason.
        """
        self.ksp.setOperators(self.matrix)
        try:
            set_up(self.ksp, INDEFINITE, self._prefix, self._options)
        except PETSc.Error as error:
            raise solver_error(error, "the factorization failed") from error
        if not is_mumps_cholesky(self.ksp):
            return None
        negative, zero, _ = self.ksp.getPC().getFactorMatrix().getInertia()
        if zero:
            raise SingularError(
                f"the matrix is singular ({zero} zero pivots): a part is not held, or a motion has "
                "lost its stiffness (at a critical speed; take another speed nearby)"
            )
        return int(negative)

    def destroy(self) -> None:
        """Free the factor and the matrix."""
        self.ksp.destroy()
        self.matrix.destroy()


def count_below(K: PETSc.Mat, M: PETSc.Mat, value: float) -> int:
    """Return the number of eigenvalues of K ψ = λ M ψ below a value, by Sylvester's law of inertia.

    A zero row of `M` with a positive diagonal entry in `K` is not counted.

    Args:
        K: Symmetric matrix.
        M: Symmetric matrix whose pattern is contained in that of `K`.
        value: Upper limit of λ.

    Raises:
        SingularError: `value` is an eigenvalue.
        FactorizationError: The factorization failed.

    Note: Collective.
    """
    A = K.copy()
    A.axpy(-value, M, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    factor = SymmetricFactor(A, prefix=_COUNT_PREFIX)
    with released(A.comm, factor):
        try:
            count = factor.factorize()
        except SingularError as error:
            raise SingularError(f"{value:g} is an eigenvalue") from error
    assert count is not None  # it is None only with another solver than MUMPS
    return count
