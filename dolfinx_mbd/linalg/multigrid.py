"""Set-up of PETSc's multigrid: PCMG with two levels, and GAMG (smoothed aggregation).

References:
    Adams, Brezina, Hu, Tuminaro (2003), Parallel multigrid smoothing: polynomial versus
    Gauss-Seidel, J. Comput. Phys. 188, 593-610.
"""

from __future__ import annotations

from petsc4py import PETSc

from dolfinx_mbd.linalg.factorization import cholesky, solver_error
from dolfinx_mbd.linalg.options import Options, configure, forget

__all__ = ["algebraic_multigrid", "two_level_multigrid"]

SMOOTHER = {
    "ksp_type": "chebyshev",
    "ksp_max_it": 2,
    "ksp_chebyshev_esteig": "0,0.1375,0,1.1",
    "pc_type": "jacobi",
}
"""PETSc options of the smoother, ``mg_levels_...``."""

LARGEST_FACTOR = 1_000_000
"""Number of coarse unknowns above which GAMG replaces the factorization of the coarse level."""

GAMG = {
    "pc_type": "gamg",
    "pc_gamg_threshold": 0.01,
    "pc_gamg_aggressive_coarsening": 1,
    "mg_levels_ksp_type": "chebyshev",
    "mg_levels_ksp_max_it": 3,
    "mg_levels_pc_type": "jacobi",
}
"""PETSc options of GAMG."""


def algebraic_multigrid(K: PETSc.Mat, *, prefix: str, options: Options) -> PETSc.KSP:
    """Return a solver that applies one cycle of GAMG; the caller destroys it.

    Args:
        K: Symmetric positive definite matrix with its near-null space.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix, for example ``pc_gamg_threshold``.

    Raises:
        FactorizationError: PETSc cannot set up the preconditioner.

    Note: Collective.
    """
    return cholesky(K, prefix=prefix, options={**GAMG, **(options or {})})


def two_level_multigrid(
    fine: PETSc.Mat,
    coarse: PETSc.Mat,
    P: PETSc.Mat,
    *,
    negative: int = 0,
    prefix: str,
    options: Options,
) -> tuple[PETSc.PC, PETSc.KSP]:
    """Return PCMG with two levels, and the solver of its coarse level.

    Args:
        fine: Symmetric positive definite matrix, of any format with products.
        coarse: Matrix of the coarse level.
        P: Interpolation.
        negative: Number of negative eigenvalues of `coarse`: that of the constraints.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix; those that begin with ``mg_levels_`` or
            ``mg_coarse_`` are used.

    Returns:
        The preconditioner, which the caller destroys, and the coarse solver, which belongs to it.

    Raises:
        FactorizationError: The coarse matrix cannot be factorized, or the smoother not set up.

    Note: Collective.
    """
    pc = PETSc.PC().create(fine.comm)
    pc.setOptionsPrefix(prefix)
    pc.setOperators(fine)
    pc.setType("mg")
    pc.setMGLevels(2)
    pc.setMGInterpolation(1, P)
    coarse_options = _part(options, "mg_coarse_")
    if coarse.getSize()[0] > LARGEST_FACTOR and not negative and "pc_type" not in coarse_options:
        coarse_options = {**GAMG, **coarse_options}
    coarse_solver = cholesky(
        coarse,
        prefix=prefix + "mg_coarse_",
        options=coarse_options,
        negative=negative,
        ksp=pc.getMGCoarseSolve(),
    )
    smoother = pc.getMGSmoother(1)
    smoother.setOperators(fine)
    prefix += "mg_levels_"
    keys = configure(smoother, prefix, SMOOTHER | _part(options, "mg_levels_"))
    try:
        pc.setUp()
    except PETSc.Error as error:
        raise solver_error(error, "the set-up of multigrid failed") from error
    finally:
        forget(prefix, keys)
    return pc, coarse_solver


def _part(options: Options, name: str) -> dict[str, object]:
    """Return the options of one level without its name."""
    items = (options or {}).items()
    return {key.removeprefix(name): value for key, value in items if key.startswith(name)}
