"""A form: elastic foundations."""

from __future__ import annotations

from typing import Any

import ufl

__all__ = ["foundation"]


def foundation(u: Any, v: Any, stiffness: float) -> Any:
    """Return the virtual work of springs with a stiffness per area, N/m³."""
    return stiffness * ufl.inner(u, v) * ufl.ds
