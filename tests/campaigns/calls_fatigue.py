"""Valid calls of the public functions and classes of fatigue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import durability
from dolfinx_mbd.body import StressModes
from tests.campaigns.bench import Bench

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]

_STRAIN = {
    "young": 2e11, "strength": 1e9, "strength_exponent": -0.1, "ductility": 0.5,
    "ductility_exponent": -0.6, "hardening": 1.1e9, "hardening_exponent": 0.16,
}  # fmt: skip
_STEEL = {"name": "steel", "knee_stress": 2e8, "knee_cycles": 1e6, "slope": 5.0}
_SIGNAL = [0.0, 2.0, -1.0, 3.0, 0.0]


def _material() -> mbd.durability.FatigueMaterial:
    return mbd.durability.FatigueMaterial(**_STEEL, life_scatter=0.2, tensile_strength=9e8)


def _source(b: Bench) -> dict[str, Any]:
    stress = 1e9 * np.arange(1.0, 12 * b.rod.num_modes + 1).reshape(6, 2, -1)
    body = b.rod.replace(stress=StressModes(np.eye(3)[:2], stress))
    eta = np.outer(_SIGNAL, np.full(b.rod.num_modes, 1e-3))
    return {"source": body, "runs": [(SimpleNamespace(time=np.arange(5.0), eta=eta), 1.0)]}


def _result(b: Bench) -> durability.FatigueResult:
    return mbd.fatigue(**_source(b), material=_material())


def _file(b: Bench) -> Path:
    path = b.folder / "fatigue.toml"
    path.write_text("[steel]\nknee_stress = 2e8\nknee_cycles = 1e6\nslope = 5\n")
    return path


def _study(b: Bench) -> Any:
    def run(speed: float) -> mbd.results.Solution:
        rod = mbd.FlexibleBody("rod", b.rod, omega=(0.0, 0.0, speed))
        return mbd.simulate(mbd.System([rod], []), t_end=2e-5, dt=1e-5)

    return mbd.sweep(run, {"speed": [1.0, 2.0]}, workers=1)


FATIGUE: dict[str, Call] = {
    "FatigueMaterial": lambda b: (
        mbd.durability.FatigueMaterial,
        {**_STEEL, "second_slope": 9.0, "factors": {"surface": (0.8, "a test")}},
    ),
    "FatigueMaterial.basquin": lambda b: (
        mbd.durability.FatigueMaterial.basquin,
        {"name": "steel", "strength": 1e9, "exponent": -0.1},
    ),
    "FatigueMaterial.line": lambda b: (_material().line, {"rule": "modified", "survival": 0.9}),
    "FatigueMaterial.with_factors": lambda b: (
        _material().with_factors,
        {"**factors": {"surface": (0.8, "a test")}},
    ),
    "FatigueResult.equivalent_stress": lambda b: (
        _result(b).equivalent_stress,
        {"frequency": 2.0},
    ),
    "FatigueResult.field": lambda b: (
        mbd.fatigue(
            mbd.durability.Recovery(b.reduction),
            [(np.outer(_SIGNAL, np.full(b.reduction.body.num_modes, 1e-6)), 1.0)],
            material=_material(),
        ).field,
        {},
    ),
    "FatigueResult.worst": lambda b: (_result(b).worst, {"count": 2, "apart": 0.01}),
    "FatigueResult.write": lambda b: (
        mbd.fatigue(
            b.reduction,
            [(np.outer(_SIGNAL, np.full(b.reduction.body.num_modes, 1e-6)), 1.0)],
            material=_material(),
        ).write,
        {"path": b.folder / "life.vtk"},
    ),
    "SNLine.amplitude": lambda b: (_material().line().amplitude, {"cycles": [1e4, 1e5]}),
    "SNLine.life": lambda b: (_material().line().life, {"amplitude": 3e8}),
    "StrainLife": lambda b: (durability.StrainLife, dict(_STRAIN)),
    "count_cycles": lambda b: (durability.count_cycles, {"history": _SIGNAL}),
    "equivalent_range": lambda b: (
        durability.equivalent_range,
        {"history": _SIGNAL, "slope": 5.0, "cycles": 2.0},
    ),
    "fatigue": lambda b: (mbd.fatigue, {**_source(b), "material": _material(), "planes": 20}),
    "load_spectrum": lambda b: (
        durability.load_spectrum,
        {"study": _study(b), "body": "rod", "shares": [0.5, 0.5]},
    ),
    "read_fatigue_materials": lambda b: (durability.read_fatigue_materials, {"path": _file(b)}),
}
