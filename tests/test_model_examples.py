"""The examples in the docstrings of the mesh side."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "fem.elastic_model",
    "modal.natural_modes",
    "prescribed_motion.solve",
    "reduction.front_end",
    "reduction.interfaces",
    "reduction.options",
    "reduction.reducer",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    """Each example gives the printed result, on any number of ranks."""
    outcome = doctest.testmod(importlib.import_module(f"dolfinx_mbd.{name}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0
