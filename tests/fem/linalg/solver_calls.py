"""A record of the solvers that compute modes."""

from __future__ import annotations

from typing import Any

import pytest

from dolfinx_mbd.fem.linalg import eigenvalues

SOLVERS = ("block_modes", "eigensolver", "solve_on_first_rank")  # Lanczos, SLEPc, LAPACK


def calls_of_solvers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each later call of a solver adds its name."""
    calls: list[str] = []
    for name in SOLVERS:

        def recorded(
            *args: Any, _name: str = name, _solver: Any = getattr(eigenvalues, name), **options: Any
        ) -> Any:
            calls.append(_name)
            return _solver(*args, **options)

        monkeypatch.setattr(eigenvalues, name, recorded)
    return calls
