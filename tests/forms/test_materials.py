"""Materials: moduli, presets and refusals."""

from __future__ import annotations

import dataclasses
import math

import pytest

from dolfinx_mbd.forms import ALUMINIUM, ALUMINIUM_7075, STEEL, Material


@pytest.mark.parametrize("material", [STEEL, ALUMINIUM, ALUMINIUM_7075, Material(1.0, -0.5, 2.0)])
def test_moduli_are_consistent(material: Material) -> None:
    """E and ν follow back from λ and μ."""
    lam, mu = material.lame, material.shear
    assert mu * (3 * lam + 2 * mu) / (lam + mu) == pytest.approx(material.young, rel=1e-14)
    assert lam / (2 * (lam + mu)) == pytest.approx(material.poisson, rel=1e-14)


def test_presets() -> None:
    assert (STEEL.young, STEEL.poisson, STEEL.density) == (210e9, 0.3, 7850.0)
    assert (ALUMINIUM.young, ALUMINIUM.poisson, ALUMINIUM.density) == (70e9, 0.33, 2700.0)
    assert (ALUMINIUM_7075.young, ALUMINIUM_7075.density) == (71.7e9, 2810.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"young": 0.0}, "Young's modulus must be positive.*young=0"),
        ({"young": -210e9}, "Young's modulus must be positive.*-2.1e"),
        ({"poisson": 0.5}, "between -1 and 0.5.*poisson=0.5"),
        ({"poisson": -1.0}, "between -1 and 0.5.*poisson=-1"),
        ({"density": 0.0}, "density must be positive.*density=0"),
        ({"density": math.nan}, "density must be a finite number"),
        ({"young": math.inf}, "young must be a finite number"),
        ({"young": "steel"}, "young must be a number; got 'steel'"),
        ({"poisson": None}, "poisson must be a number; got None"),
    ],
)
def test_impossible_materials_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(STEEL, **changes)


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        STEEL.young = 1.0  # type: ignore[misc]
