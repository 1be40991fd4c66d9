"""Fatigue data of materials: S-N lines, mean-stress corrections, factors and strain life."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, choice, instance, number, reject, unknown
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.durability.body_warnings import warn_of_units
from dolfinx_mbd.errors import FileError, InputError, InputTypeError
from dolfinx_mbd.files import read_tables
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.fatigue.damage import LAW, MEANS

__all__ = [
    "EXAMPLES",
    "DamageRule",
    "FatigueMaterial",
    "MeanStress",
    "SNLine",
    "StrainLife",
    "read_fatigue_materials",
]

MeanStress = Literal["none", "Goodman", "Gerber", "Smith-Watson-Topper", "FKM"]
DamageRule = Literal["modified", "elementary", "original"]


class SNLine(NamedTuple):
    """S-N line for fully reversed stress, after all factors, with one or two slopes.

    Attributes:
        stress: Stress amplitude at the knee, Pa.
        cycles: Number of cycles at the knee.
        slope: Exponent k of N ∝ S^(−k) above the knee.
        second_slope: Exponent below the knee; infinite for an endurance limit.

    Example:
        >>> line = mbd.durability.SNLine(stress=200e6, cycles=1e6, slope=5, second_slope=9)
        >>> line.life(400e6), line.life(100e6)
        (31250.0, 512000000.0)
    """

    stress: float
    cycles: float
    slope: float
    second_slope: float

    def life(self, amplitude: float) -> float:
        """Return the number of cycles to failure at a fully reversed stress amplitude in Pa."""
        ratio = number("amplitude", amplitude, low=0.0, unit="Pa") / self.stress
        if ratio >= 1.0:
            return float(self.cycles * ratio**-self.slope)
        if not ratio or math.isinf(self.second_slope):
            return math.inf
        return float(self.cycles * ratio**-self.second_slope)

    def amplitude(self, cycles: ArrayLike) -> Array:
        """Return the stress amplitudes (...), Pa, for given numbers of cycles to failure (...)."""
        lives = array("cycles", cycles)
        if not (lives > 0.0).all():
            reject("cycles", cycles, "positive numbers")
        ratio = self.cycles / lives
        slope = np.where(ratio >= 1.0, self.slope, self.second_slope)
        return np.asarray(self.stress * ratio ** (1.0 / slope), dtype=float)


@dataclass(frozen=True, kw_only=True)
class StrainLife:
    """Constants of Coffin and Manson, ε_a = σ'_f/E (2N)^b + ε'_f (2N)^c, at zero mean stress.

    ε_a is the amplitude of the strain and N the number of cycles to failure. Neuber's rule converts
    elastic to elastic-plastic stress on the cyclic curve ε_a = σ_a/E + (σ_a/K')^(1/n').

    Attributes:
        young: Young's modulus E, Pa.
        strength: Fatigue strength coefficient σ'_f, Pa.
        strength_exponent: Fatigue strength exponent b < 0.
        ductility: Fatigue ductility coefficient ε'_f.
        ductility_exponent: Fatigue ductility exponent c < 0.
        hardening: Cyclic strength coefficient K', Pa. By default σ'_f/ε'_f^n', which makes the two
            equations compatible.
        hardening_exponent: Cyclic hardening exponent n'. By default b/c.

    Example:
        >>> steel = mbd.durability.StrainLife(
        ...     young=207e9, strength=1e9, strength_exponent=-0.1, ductility=0.5,
        ...     ductility_exponent=-0.6,
        ... )
        >>> round(steel.hardening_exponent, 4)
        0.1667
    """

    young: float
    strength: float
    strength_exponent: float
    ductility: float
    ductility_exponent: float
    hardening: float | None = None
    hardening_exponent: float | None = None

    def __post_init__(self) -> None:
        for name in ("young", "strength", "ductility"):
            assign(self, **{name: number(name, getattr(self, name), positive=True)})
        for name in ("strength_exponent", "ductility_exponent"):
            value = number(name, getattr(self, name))
            if value >= 0.0:
                reject(name, value, "a negative number; otherwise the life grows with the strain")
            assign(self, **{name: value})
        exponent = self.hardening_exponent
        if exponent is None:
            exponent = self.strength_exponent / self.ductility_exponent
        assign(self, hardening_exponent=number("hardening_exponent", exponent, positive=True))
        hardening = self.hardening
        if hardening is None:
            hardening = self.strength / self.ductility**exponent
        assign(self, hardening=number("hardening", hardening, positive=True, unit="Pa"))
        warn_of_units("strain life", {"strength": self.strength})


@dataclass(frozen=True, kw_only=True)
class FatigueMaterial:
    """Fatigue data of a material.

    The S-N line N = N_k (S/S_k)^(−k) holds for amplitudes S of fully reversed stress. It has a knee
    at (S_k, N_k), and below this knee it has a second slope or is horizontal.

    Attributes:
        name: Name of the material.
        knee_stress: Stress amplitude S_k at the knee, Pa.
        knee_cycles: Number of cycles N_k at the knee.
        slope: Exponent k above the knee.
        second_slope: Exponent below the knee, at least `slope`; equal to `slope` for a line without
            a knee. By default S_k is the endurance limit.
        tensile_strength: Tensile strength R_m, Pa, for Goodman and Gerber, and to check the
            stresses of a history.
        mean_sensitivity: Mean-stress sensitivity M, for FKM.
        life_scatter: Standard deviation of log10 N.
        survival: Probability of survival of the line.
        factors: Factors on the stress of the line, such as surface and size, each with its source:
            `{"surface": (0.8, "FKM guideline, Rz = 25 µm")}`.
        strain_life: Constants of the strain life, or None.
        source: Source of the data.

    Raises:
        InputError: A number is invalid, or the S-N line rises.

    Warns:
        UnitsWarning: A stress is implausible, for example because it is in MPa.

    Example:
        >>> steel = mbd.durability.FatigueMaterial(
        ...     name="my steel", knee_stress=200e6, knee_cycles=1e6, slope=5, life_scatter=0.2
        ... )
        >>> line = steel.line(survival=0.977)
        >>> f"{line.life(400e6):.0f} of {steel.line().life(400e6):.0f} cycles"
        '12467 of 31250 cycles'
    """

    name: str
    knee_stress: float
    knee_cycles: float
    slope: float
    second_slope: float | None = None
    tensile_strength: float | None = None
    mean_sensitivity: float | None = None
    life_scatter: float = 0.0
    survival: float = 0.5
    factors: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    strain_life: StrainLife | None = None
    source: str = ""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        checked_name("name", self.name)
        assign(
            self,
            knee_stress=number("knee_stress", self.knee_stress, positive=True, unit="Pa"),
            knee_cycles=number("knee_cycles", self.knee_cycles, low=1.0),
            slope=_slope("slope", self.slope, 0.0),
            survival=_probability(self.survival),
            life_scatter=number("life_scatter", self.life_scatter, low=0.0),
            factors=_factors(self.factors),
        )
        if self.second_slope is not None:
            assign(self, second_slope=_slope("second_slope", self.second_slope, self.slope))
        for name, unit in (("tensile_strength", "Pa"), ("mean_sensitivity", "")):
            value = getattr(self, name)
            if value is not None:
                assign(self, **{name: number(name, value, positive=True, unit=unit)})
        if self.mean_sensitivity is not None:
            number("mean_sensitivity", self.mean_sensitivity, high=1.0)
        instance("strain_life", self.strain_life, (StrainLife, type(None)))
        instance("source", self.source, str)
        stresses = {k: getattr(self, k) for k in ("knee_stress", "tensile_strength")}
        warn_of_units(f"fatigue material {self.name!r}", stresses)

    @classmethod
    def basquin(
        cls, name: str, strength: float, exponent: float, *, cycles: float = 1e6, **data: Any
    ) -> FatigueMaterial:
        """Return the material of the line S = σ'_f (2N)^b of amplitudes S and cycles N.

        Args:
            name: Name of the material.
            strength: Fatigue strength coefficient σ'_f, Pa.
            exponent: Fatigue strength exponent b < 0.
            cycles: Number of cycles at the knee, which matters only if `data` contains another
                `second_slope`. By default the line is straight.
            **data: Other attributes.

        Raises:
            InputError: A number is invalid, the S-N line rises, or `data` contains one of the three
                numbers of the line that follow from the other arguments.

        Example:
            >>> steel = mbd.durability.FatigueMaterial.basquin("steel", 1758e6, -0.0977)
            >>> f"{1e-6 * steel.knee_stress:.0f} MPa at {steel.knee_cycles:.0e} cycles"
            '426 MPa at 1e+06 cycles'
        """
        b = number("exponent", exponent)
        if b >= 0.0:
            text = "a negative number; otherwise the S-N line rises: more stress, longer life"
            reject("exponent", exponent, text)
        knee = number("cycles", cycles, low=1.0)
        stress = number("strength", strength, positive=True, unit="Pa") * (2.0 * knee) ** b
        line = {"knee_stress": stress, "knee_cycles": knee, "slope": -1.0 / b}
        for key in set(line) & set(data):
            reject(key, data[key], "omitted: it follows from strength, exponent and cycles")
        return cls(**{"name": name, "second_slope": -1.0 / b, **line, **data})

    def with_factors(self, **factors: tuple[float, str]) -> FatigueMaterial:
        """Return the material with more factors on the stress of its line.

        Args:
            **factors: Factors by name, each with its source.

        Example:
            >>> steel = mbd.durability.EXAMPLES["AISI 4340"]
            >>> rough = steel.with_factors(surface=(0.85, "my tests, ground"))
            >>> round(rough.line().stress / steel.line().stress, 3)
            0.85
        """
        return replace(self, factors={**self.factors, **_factors(factors)})

    def line(self, rule: DamageRule = "original", survival: float | None = None) -> SNLine:
        """Return the S-N line with all factors for a probability of survival.

        Args:
            rule: "original" keeps the line. "modified" replaces an endurance limit by the slope
                2k − 1 (Haibach). "elementary" continues the first slope.
            survival: Probability of survival; by default that of the data.

        Raises:
            InputError: `survival` differs from the value of the data, and `life_scatter` is 0.
        """
        choice("rule", rule, get_args(DamageRule))
        stress = self.knee_stress * math.prod(factor for factor, _ in self.factors.values())
        if survival is not None and _probability(survival) != self.survival:
            if not self.life_scatter:
                hint = f"{self.name!r} needs a life_scatter for another survival"
                reject("survival", survival, f"{self.survival:g}", hint=hint)
            quantiles = float(ndtri(survival) - ndtri(self.survival))
            stress *= 10.0 ** (-quantiles * self.life_scatter / self.slope)
        second = math.inf if self.second_slope is None else self.second_slope
        if rule == "modified" and math.isinf(second):
            second = 2.0 * self.slope - 1.0
        return SNLine(
            stress, self.knee_cycles, self.slope, self.slope if rule == "elementary" else second
        )

    def law(self, line: SNLine, mean_stress: MeanStress, strain: bool) -> Array:
        """Return the numbers that the kernels need; see `LAW` of `kernels.fatigue.damage`."""
        choice("mean_stress", mean_stress, MEANS)
        law = dict.fromkeys(LAW, math.nan)
        law |= {"mean": MEANS.index(mean_stress), "strain": float(strain)}
        law |= {"knee": line.stress, "knee_cycles": line.cycles}
        law |= {"slope": line.slope, "second_slope": line.second_slope}
        required = {
            "Goodman": "tensile_strength",
            "Gerber": "tensile_strength",
            "FKM": "mean_sensitivity",
        }.get(mean_stress)
        if required is not None and getattr(self, required) is None:
            text = (
                f"the correction by {mean_stress} needs {required}, which {self.name!r} does not "
                "have"
            )
            raise InputError(text, argument="material", value=self, expected=required)
        law["strength"] = self.tensile_strength or math.nan
        law["sensitivity"] = self.mean_sensitivity or math.nan
        if strain:
            law |= self._strain_law(mean_stress)
        return np.array([float(law[name]) for name in LAW])

    def _strain_law(self, mean_stress: MeanStress) -> dict[str, float]:
        """Return the entries of `LAW` for the strain life, from `young` on, by name."""
        data = self.strain_life
        if data is None:
            text = f"method='strain' needs the strain_life of {self.name!r}"
            raise InputError(text, argument="material", value=self, expected="strain_life")
        if mean_stress not in ("none", "Smith-Watson-Topper"):
            text = "'none' or 'Smith-Watson-Topper' with method='strain'"
            reject("mean_stress", mean_stress, text)
        if self.factors:
            text = "without factors for method='strain'; they belong to the S-N line"
            reject("material", self, text)
        E, hardening, n = data.young, data.hardening, data.hardening_exponent
        assert hardening is not None
        assert n is not None
        # Coefficient and exponent of the two terms of the strain amplitude, or of the product of
        # the amplitude and the largest stress of the cycle, σ'_f (2N)^b at zero mean stress
        strength, b = data.strength, data.strength_exponent
        elastic, plastic = (strength / E, b), (data.ductility, data.ductility_exponent)
        if mean_stress == "Smith-Watson-Topper":
            elastic = strength * elastic[0], b + elastic[1]
            plastic = strength * plastic[0], b + plastic[1]
        names = LAW[LAW.index("young") :]
        return dict(zip(names, (E, hardening, n, *elastic, *plastic), strict=True))


def read_fatigue_materials(path: str | Path) -> dict[str, FatigueMaterial]:
    """Read fatigue materials from a TOML file.

    The file contains a table for each material, with the attributes of `FatigueMaterial`, or with
    `strength` and `exponent` of `FatigueMaterial.basquin`. A factor is a list of a number and its
    source, and `strain_life` is a subtable.

    Args:
        path: Path of the file.

    Returns:
        Materials by name.

    Raises:
        FileError: The file is not TOML, or a table is invalid.
        MissingFileError: The file does not exist.

    Example:
        >>> from pathlib import Path
        >>> lines = ["[steel]", "knee_stress = 2e8", "knee_cycles = 1e6", "slope = 5"]
        >>> size = Path("fatigue.toml").write_text(chr(10).join(lines))
        >>> mbd.durability.read_fatigue_materials("fatigue.toml")["steel"].slope
        5.0
    """
    contents = "knee_stress (Pa), knee_cycles and slope"
    result = {}
    for name, table in read_tables(path, "file of fatigue materials", contents).items():
        try:
            strain = table.get("strain_life")
            strain = StrainLife(**strain) if isinstance(strain, dict) else strain
            values = {**table, "strain_life": strain}
            create = FatigueMaterial.basquin if "strength" in table else FatigueMaterial
            result[name] = create(**{"name": name, **values})  # type: ignore[operator]
        except InputError as error:
            raise FileError(f"'{path}': [{name}]: {error}", path=path) from None
        except TypeError as error:
            text = f"'{path}': [{name}] needs {contents}, or strength (Pa) and exponent ({error})"
            raise FileError(text, path=path) from None
    return result


def material_of(value: FatigueMaterial | str) -> FatigueMaterial:
    """Return a material, or the example with the given name."""
    if isinstance(value, str):
        if value not in EXAMPLES:
            unknown("material", value, EXAMPLES, "the examples are")
        return EXAMPLES[value]
    material: FatigueMaterial = instance("material", value, FatigueMaterial)
    return material


def _slope(argument: str, value: float, least: float) -> float:
    """Return a checked exponent of the S-N line, which is positive and at least `least`."""
    slope = number(argument, value)
    if slope <= 0.0:
        reject(argument, value, "positive; otherwise the S-N line rises: more stress, longer life")
    return number(argument, slope, low=least)


def _probability(value: float) -> float:
    """Return a checked probability of survival."""
    probability = number("survival", value)
    if not 0.0 < probability < 1.0:
        reject("survival", value, "a probability between 0 and 1, for example 0.977")
    return probability


def _factors(factors: Any) -> dict[str, tuple[float, str]]:
    """Return the checked factors of the S-N line: number and source by name."""
    if not isinstance(factors, Mapping):
        reject("factors", factors, "factors by name", InputTypeError)
    result = {}
    for name, entry in factors.items():
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            reject(f"factor {name!r}", entry, "a number and its source", InputTypeError)
        source = checked_name(f"source of the factor {name!r}", entry[1])
        result[name] = number(f"factor {name!r}", entry[0], positive=True), source
    return result


_DOWLING = (
    "Dowling, Mechanical Behavior of Materials, table 9.1 (unnotched axial specimens, zero mean "
    "stress)"
)
_SENSITIVITY = (
    "; M = a R_m/GPa + b with the constants that pyLife lists for the FKM guideline nonlinear"
)


def _example(name: str, numbers: tuple[float, float, float], fkm: tuple[float, float]) -> Any:
    """Return a material from σ'_f and R_m in MPa, b, and the constants of the FKM guideline."""
    strength, exponent, tensile = numbers
    data: dict[str, Any] = {"tensile_strength": 1e6 * tensile}
    data["source"] = _DOWLING + _SENSITIVITY
    data["mean_sensitivity"] = fkm[0] * 1e-3 * tensile + fkm[1]
    return FatigueMaterial.basquin(name, 1e6 * strength, exponent, **data)


#: Examples of materials, for first estimates: polished specimens, survival 50 %, no endurance limit
EXAMPLES = {
    entry.name: entry
    for entry in (
        _example("SAE 1015", (1020.0, -0.138, 415.0), (0.35, -0.1)),
        _example("RQC-100", (938.0, -0.0648, 758.0), (0.35, -0.1)),
        _example("AISI 4340", (1758.0, -0.0977, 1172.0), (0.35, -0.1)),
        _example("2024-T4", (900.0, -0.102, 476.0), (1.0, -0.04)),
    )
}
