"""Hashes of the numbers and texts in results, for comparisons, and a check for finite numbers."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

import dolfinx_mbd as mbd


def digest(value: Any) -> str:
    """Return a hash of the contents of a body, a solution or a record of arrays."""
    state = hashlib.sha256()
    _feed(state, value)
    return state.hexdigest()


def is_finite(value: Any) -> bool:
    """Return whether all numbers in a record of arrays are finite."""
    if scipy.sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, (np.ndarray, float)):
        return np.asarray(value).dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(is_finite(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return all(map(is_finite, value.values()))
    return all(map(is_finite, value)) if isinstance(value, (list, tuple)) else True


def _feed(state: Any, value: Any) -> None:
    """Add a value to a digest."""
    if isinstance(value, mbd.results.Solution):
        value = [getattr(value, name) for name in ("time", "q", "v", "a", "lam", "angles")]
    elif scipy.sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype.str}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            state.update(field.name.encode())
            _feed(state, getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key in value:
            state.update(repr(key).encode())
            _feed(state, value[key])
    elif isinstance(value, (list, tuple)):
        state.update(f"{len(value)}[".encode())
        for entry in value:
            _feed(state, entry)
    else:
        state.update(repr(value).encode())
