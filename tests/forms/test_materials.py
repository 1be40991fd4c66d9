"""Materials: moduli, presets and refusals."""

from __future__ import annotations

import dataclasses

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


def test_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        STEEL.young = 1.0  # type: ignore[misc]
