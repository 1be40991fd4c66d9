"""Check PETSc options of the user, pass them to a solver, and remove them from the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.checks import instance, name
from dolfinx_mbd.errors import InputError, SolverError

Options = Mapping[str, Any] | None
"""PETSc options without a prefix and without the leading hyphen; None for no options."""


def solver_options(prefix: Any, options: Any) -> dict[str, Any]:
    """Check `petsc_options_prefix` and `petsc_options`; return them as `prefix` and `options`."""
    name("petsc_options_prefix", prefix)
    instance("petsc_options", options, (Mapping, type(None)))
    kinds = (str, int, float, np.integer, np.floating, np.bool_, list, tuple, type(None))
    for key, value in (options or {}).items():
        name("every name in petsc_options", key)
        instance(f"petsc_options[{key!r}]", value, kinds)
    return {"prefix": prefix, "options": options}


def require_real() -> None:
    """Raise an error if PETSc has complex scalars, or if an option selects other matrices."""
    if np.issubdtype(PETSc.ScalarType, np.complexfloating):
        raise SolverError(
            "this PETSc is built with complex numbers; the reduction of a body needs real ones "
            "(conda: petsc=*=real*; Debian: python3-dolfinx-real)"
        )
    kind = PETSc.Options().getString("mat_type", "aij")
    if kind not in ("aij", "seqaij", "mpiaij"):
        raise InputError(
            f"the option mat_type={kind} in PETSc's database changes the type of all matrices; "
            "this package needs aij. Remove it, or give it with the prefix of your own matrices",
            argument="mat_type",
            value=kind,
        )


@contextmanager
def configured(solver: Any, prefix: str, options: Options) -> Iterator[None]:
    """Pass options to a KSP, EPS or PEP; PETSc's database holds them inside the context."""
    settings, database = dict(options or {}), PETSc.Options(prefix)
    solver.setOptionsPrefix(prefix)
    for key, value in settings.items():
        database[key] = value
    try:
        try:
            solver.setFromOptions()
        except PETSc.Error as error:
            raise InputError(
                f"PETSc does not accept petsc_options={settings}: {last_line(error)}",
                argument="petsc_options",
                value=settings,
            ) from error
        yield
    finally:
        for key in settings:
            database.delValue(key)


def database_options(prefix: str) -> list[str]:
    """Return the names, without the prefix, of the options in PETSc's database."""
    names = (name.removeprefix("-") for name in PETSc.Options().getAll())
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def last_line(error: PETSc.Error) -> str:
    """Return the last line of a PETSc error without the rank; this line states the cause."""
    line = str(error).strip().splitlines()[-1]
    return line.partition("] ")[2] if line.startswith("[") else line
