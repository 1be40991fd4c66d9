"""Set-up of PETSc's multigrid: PCMG with two levels, and GAMG (smoothed aggregation).

References:
    Adams, Brezina, Hu, Tuminaro (2003), Parallel multigrid smoothing: polynomial versus
    Gauss-Seidel, J. Comput. Phys. 188, 593-610.
"""

from __future__ import annotations

from petsc4py import PETSc

from dolfinx_mbd.fem.linalg.factorization import cholesky, solver_error
from dolfinx_mbd.fem.linalg.options import Options, configured

SMOOTHER = {
    "ksp_type": "chebyshev",
    "ksp_max_it": 2,
    "ksp_chebyshev_esteig": "0,0.1375,0,1.1",
    "pc_type": "jacobi",
}
"""PETSc options of the smoother, ``mg_levels_...``.

It damps the part of the spectrum from 1.1 λ / 8 to 1.1 λ, with the estimated largest eigenvalue λ.
"""

LARGEST_FACTOR = 1_000_000  # largest number of coarse unknowns for a factorization; else GAMG

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
    """Return a solver that applies one cycle of GAMG.

    Attach the near-null space to K before you call this function, with `MatSetNearNullSpace`.
    """
    return cholesky(K, prefix=prefix, options={**GAMG, **(options or {})}, exact=False)


def two_level_multigrid(
    fine: PETSc.Mat,
    coarse: PETSc.Mat,
    P: PETSc.Mat,
    *,
    negative: int = 0,
    prefix: str,
    options: Options,
) -> tuple[PETSc.PC, PETSc.KSP]:
    """Return PCMG with two levels and the interpolation P, and the solver of its coarse level.

    `negative` is the number of negative eigenvalues of `coarse`, one for each constraint. The
    coarse solver belongs to PCMG. Options that begin with "mg_levels_" or "mg_coarse_" are used.
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
        exact=False,
    )
    smoother = pc.getMGSmoother(1)
    smoother.setOperators(fine)
    prefix += "mg_levels_"
    with configured(smoother, prefix, SMOOTHER | _part(options, "mg_levels_")):
        try:
            pc.setUp()
        except PETSc.Error as error:
            raise solver_error(error, "the set-up of multigrid failed") from error
    return pc, coarse_solver


def _part(options: Options, name: str) -> dict[str, object]:
    """Return the options that begin with a name, without the name."""
    items = (options or {}).items()
    return {key.removeprefix(name): value for key, value in items if key.startswith(name)}
