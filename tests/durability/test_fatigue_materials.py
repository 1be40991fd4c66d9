"""S-N lines, mean-stress corrections, strain life, factors and TOML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import dolfinx_mbd as mbd
from dolfinx_mbd.durability import EXAMPLES, FatigueMaterial, StrainLife, read_fatigue_materials
from dolfinx_mbd.errors import FileError, InputError, MissingFileError, UnitsWarning
from dolfinx_mbd.kernels.fatigue.damage import cycle_damages

LINE: dict[str, Any] = {"name": "m", "knee_stress": 200e6, "knee_cycles": 1e6, "slope": 5}
MATERIAL = FatigueMaterial(**LINE, tensile_strength=800e6, mean_sensitivity=0.3)
STRAIN = StrainLife(
    young=207e9, strength=1.1e9, strength_exponent=-0.09, ductility=0.6, ductility_exponent=-0.6
)


def reversed_amplitude(amplitude: float, mean: float, correction: Any) -> float:
    """Return the fully reversed amplitude that does the same damage as a cycle with a mean."""
    law = MATERIAL.law(MATERIAL.line("elementary"), correction, strain=False)
    damage = cycle_damages(np.array([amplitude]), np.array([mean]), law)[0]
    return float(200e6 * (damage * 1e6) ** (1 / 5))


def test_lines() -> None:
    line = MATERIAL.line("modified")
    assert line.life(400e6) == 1e6 / 2**5
    assert line.life(100e6) == 1e6 * 2**9
    assert MATERIAL.line("original").life(199e6) == np.inf
    assert MATERIAL.line("elementary").life(100e6) == 1e6 * 2**5
    steep = FatigueMaterial(**LINE, second_slope=20)
    assert steep.line("modified").life(100e6) == 1e6 * 2**20  # a given slope stays
    for rule in ("modified", "original", "elementary"):
        amplitudes = np.array([1e8, 2e8, 4e8])[rule == "original" :]
        lives = np.array([MATERIAL.line(rule).life(a) for a in amplitudes])
        assert MATERIAL.line(rule).amplitude(lives) == pytest.approx(amplitudes)


def test_basquin_and_the_examples() -> None:
    """Lives of AISI 4340 in Dowling's table 9.1: S = 1643 MPa N^(−0.0977)."""
    steel = EXAMPLES["AISI 4340"]
    for cycles in (1e3, 1e5, 1e8):
        amplitude = 1643e6 * cycles**-0.0977
        assert steel.line().life(amplitude) == pytest.approx(cycles, rel=6e-3)  # 1643 is rounded
    assert all(entry.source for entry in EXAMPLES.values())


def test_survival() -> None:
    material = FatigueMaterial(**LINE, life_scatter=0.2)
    shifted = material.line(survival=0.9772498680518208)  # two standard deviations
    assert shifted.life(400e6) == pytest.approx(material.line().life(400e6) / 10**0.4, rel=1e-12)
    assert shifted.cycles == 1e6


@pytest.mark.parametrize(
    ("correction", "mean", "expected"),
    [
        ("none", 100e6, 100e6),
        ("Goodman", 200e6, 100e6 / 0.75),
        ("Goodman", -200e6, 100e6),
        ("Gerber", 400e6, 100e6 / 0.75),
        ("Smith-Watson-Topper", 300e6, 200e6),
        ("Smith-Watson-Topper", -100e6, 0.0),
        ("FKM", 50e6, 115e6),
        ("FKM", -50e6, 85e6),
        ("FKM", 100e6, 130e6),
        ("FKM", 300e6, 1.3 / 1.1 * 130e6),
        ("FKM", -100e6, 70e6),
        ("FKM", -500e6, 70e6),
    ],
)
def test_mean_stress(correction: Any, mean: float, expected: float) -> None:
    assert reversed_amplitude(100e6, mean, correction) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("correction", ["none", "Smith-Watson-Topper"])
@pytest.mark.parametrize(("amplitude", "mean"), [(200e6, 0.0), (900e6, 0.0), (500e6, 300e6)])
def test_strain_life(correction: Any, amplitude: float, mean: float) -> None:
    """Neuber's stress and the life agree with root searches in a bracket."""
    material = FatigueMaterial(**LINE, strain_life=STRAIN)
    law = material.law(material.line(), correction, strain=True)
    damage = cycle_damages(np.array([amplitude]), np.array([mean]), law)[0]
    K, n = STRAIN.hardening, STRAIN.hardening_exponent
    assert K is not None and n is not None

    def strain(stress: float) -> float:
        return stress / 207e9 + (stress / K) ** (1 / n)

    def local(elastic: float) -> float:
        return brentq(lambda s: s * strain(s) - elastic**2 / 207e9, 1.0, elastic)

    def strain_of_life(cycles: float) -> float:
        return 1.1e9 / 207e9 * (2 * cycles) ** -0.09 + 0.6 * (2 * cycles) ** -0.6

    value = strain(local(amplitude))
    if correction == "none":
        life = brentq(lambda u: strain_of_life(10**u) - value, 0.0, 25.0)
    else:
        value *= local(amplitude + mean)  # σ_max ε_a = σ'_f (2N)^b ε_a(N)
        life = brentq(
            lambda u: 1.1e9 * (2 * 10**u) ** -0.09 * strain_of_life(10**u) - value, 0.0, 25.0
        )
    assert damage == pytest.approx(10.0**-life, rel=1e-8)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"slope": -5}, "rises"),
        ({"slope": 0}, "rises"),
        ({"second_slope": -3}, "rises"),
        ({"second_slope": 3}, "at least 5"),
        ({"knee_stress": 0.0}, "knee_stress"),
        ({"survival": 1.0}, "between 0 and 1"),
        ({"factors": {"surface": 0.8}}, "source"),
        ({"factors": {"surface": (0.8, "")}}, "source"),
        ({"mean_sensitivity": 2.0}, "at most 1"),
        ({"strain_life": 3}, "StrainLife"),
    ],
)
def test_wrong_data(change: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        FatigueMaterial(**{**LINE, **change})


@pytest.mark.parametrize(
    "change", [{"knee_stress": 200.0}, {"tensile_strength": 900.0}, {"knee_stress": 2e14}]
)
def test_stresses_in_another_unit_give_a_warning(change: dict[str, float]) -> None:
    data: dict[str, Any] = {"name": "steel", "knee_stress": 2e8, "knee_cycles": 1e6, "slope": 5.0}
    with pytest.warns(UnitsWarning, match=r"fatigue material 'steel': .* in Pa") as records:
        mbd.durability.FatigueMaterial(**data | change)
    assert [w.message.quantity for w in records] == [*change]  # type: ignore[union-attr]
    strain = {"strength_exponent": -0.1, "ductility": 0.5, "ductility_exponent": -0.6}
    with pytest.warns(UnitsWarning, match="strain life: strength"):
        mbd.durability.StrainLife(young=207e9, strength=1000.0, **strain)


def test_wrong_exponents() -> None:
    with pytest.raises(InputError, match="rises"):
        FatigueMaterial.basquin("m", 1e9, 0.1)
    with pytest.raises(InputError, match="slope must be omitted"):
        FatigueMaterial.basquin("m", 1e9, -0.1, slope=8.0)
    with pytest.raises(InputError, match="negative"):
        StrainLife(
            young=2e11, strength=1e9, strength_exponent=0.1, ductility=0.5, ductility_exponent=-0.5
        )
    data = FatigueMaterial(**LINE, strain_life=STRAIN, mean_sensitivity=0.1)
    with pytest.raises(InputError, match="Smith-Watson-Topper"):
        data.law(data.line(), "FKM", strain=True)
    rough = data.with_factors(surface=(0.8, "a test"))
    with pytest.raises(InputError, match="factors"):
        rough.law(rough.line(), "none", strain=True)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "fatigue.toml"
    path.write_text(
        """
[forged]
knee_stress = 300e6
knee_cycles = 2e6
slope = 7
tensile_strength = 900e6
factors.surface = [0.8, "FKM guideline, Rz = 25 um"]
factors.size = [0.95, "FKM guideline, 30 mm"]

[plain]
strength = 1e9
exponent = -0.1
strain_life = {young = 2e11, strength = 1e9, strength_exponent = -0.1, ductility = 0.5, \
ductility_exponent = -0.6}
""".replace("\\\n", "")
    )
    materials = read_fatigue_materials(path)
    assert materials["forged"].line().stress == pytest.approx(0.8 * 0.95 * 300e6)
    assert materials["plain"].slope == pytest.approx(10.0)
    assert materials["plain"].strain_life is not None
    for text, message in (
        ("[a]\nslope = 5", "knee_stress"),
        ("[a]\nknee_stress = 2e8\nknee_cycles = 1e6\nslope = -5", "rises"),
        ("[a]\nknee_stress = 2e8\nknee_cycles = 1e6\nslope = 5\ncolour = 1", "colour"),
        ("a = 1", "must be a table"),
        ("[", "TOML"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=message):
            read_fatigue_materials(path)
    with pytest.raises(MissingFileError):
        read_fatigue_materials(tmp_path / "none.toml")
    with pytest.raises(InputError, match="2024-T4"):
        mbd.fatigue(EXAMPLES, [], material="unknown")  # type: ignore[arg-type]
