"""Factorization of a symmetric matrix that may be indefinite, and its number of negative pivots.

The stiffness of a rotating body changes with the speed and is not positive beyond a critical one.
"""

from __future__ import annotations

from petsc4py import PETSc

from dolfinx_mbd.linalg.factorization import (
    WORKSPACE,
    FactorizationError,
    Options,
    configure,
    forget,
)

__all__ = ["SingularError", "SymmetricFactor"]


class SingularError(FactorizationError):
    """A matrix that must be regular is singular."""


class SymmetricFactor:
    """LDLᵀ of a symmetric matrix of constant pattern, again and again for new values.

    The symbolic factorization is done once. The caller destroys it.

    Attributes:
        matrix: To be changed in place before `factorize`.
        ksp: Solves with the last factorization.
    """

    def __init__(self, matrix: PETSc.Mat, *, prefix: str, options: Options = None) -> None:
        """Take over a matrix whose values may come later.

        Note: Collective.
        """
        self.matrix = matrix
        matrix.setOption(PETSc.Mat.Option.SYMMETRIC, True)
        matrix.setOption(PETSc.Mat.Option.SPD, False)
        self._prefix = prefix
        self._options = dict(options or {})
        self.ksp = PETSc.KSP().create(matrix.comm)
        self.ksp.setErrorIfNotConverged(True)
        self.ksp.setType("preonly")
        pc = self.ksp.getPC()
        pc.setType("cholesky")
        pc.setFactorSolverType("mumps")

    def factorize(self) -> int | None:
        """Factorize the present values; returns the number of negative eigenvalues.

        None if the user's options chose another method, which does not tell.

        Raises:
            SingularError: The matrix is singular.
            FactorizationError: It failed otherwise.

        Note: Collective.
        """
        database = PETSc.Options(self._prefix)
        controls = {"14": WORKSPACE, "24": 1, "13": 1}  # 24 and 13: to know the inertia
        defaults = {f"mat_mumps_icntl_{key}": value for key, value in controls.items()}
        defaults = {key: value for key, value in defaults.items() if not database.hasName(key)}
        self.ksp.setOperators(self.matrix)
        keys = configure(self.ksp, self._prefix, {**defaults, **self._options})
        try:
            self.ksp.setUp()
        except PETSc.Error as error:
            text = str(error).strip().splitlines()[-1]
            raise FactorizationError(f"the factorization failed: {text}") from error
        finally:
            forget(self._prefix, keys)
        pc = self.ksp.getPC()
        if pc.getType() != "cholesky" or pc.getFactorSolverType() != "mumps":
            return None
        negative, zero, _ = pc.getFactorMatrix().getInertia()
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
