"""PETSc options: check those of a user, pass them to a solver, remove them from the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.checks import instance, name
from dolfinx_mbd.errors import InputError, SolverError

__all__ = [
    "Options",
    "configure",
    "database_options",
    "forget",
    "last_line",
    "require_real",
    "solver_options",
]

Options = Mapping[str, Any] | None
"""PETSc options without a prefix and without the leading hyphen; None for no options."""


def solver_options(prefix: Any, options: Any) -> dict[str, Any]:
    """Return the arguments `petsc_options_prefix` and `petsc_options` under their short names.

    Args:
        prefix: Prefix of the options of one solver in PETSc's database.
        options: Mapping from names without the prefix to values, or None.

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
    """Raise an error if PETSc has complex scalars.

    Raises:
        SolverError: PETSc has complex scalars.
    """
    if np.issubdtype(PETSc.ScalarType, np.complexfloating):
        raise SolverError(
            "this PETSc is built with complex numbers; the reduction of a body needs real ones "
            "(conda: petsc=*=real*; Debian: python3-dolfinx-real)"
        )


def configure(solver: Any, prefix: str, options: Options) -> list[str]:
    """Set options under the prefix of a solver, and let the solver read them.

    Args:
        solver: KSP, EPS or PEP.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Returns:
        The names of the options, for `forget`.

    Raises:
        InputError: PETSc does not accept an option.
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
            f"PETSc does not accept petsc_options={dict(options or {})}: {last_line(error)}",
            argument="petsc_options",
            value=dict(options or {}),
        ) from error
    return list(options or {})


def forget(prefix: str, keys: list[str]) -> None:
    """Remove the options that `configure` set from PETSc's database.

    Args:
        prefix: PETSc options prefix.
        keys: Names that `configure` returned.
    """
    database = PETSc.Options(prefix)
    for key in keys:
        database.delValue(key)


def database_options(prefix: str) -> list[str]:
    """Return the names, without the prefix, of the options in PETSc's database.

    Args:
        prefix: PETSc options prefix.
    """
    names = (name.removeprefix("-") for name in PETSc.Options().getAll())
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def last_line(error: PETSc.Error) -> str:
    """Return the last line of a PETSc error, which holds the cause, without the rank.

    Args:
        error: The error.
    """
    line = str(error).strip().splitlines()[-1]
    return line.partition("] ")[2] if line.startswith("[") else line
