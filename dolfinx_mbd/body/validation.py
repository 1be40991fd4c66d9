"""Checks of the data of a reduced body."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dolfinx_mbd.arrays import Array, assign, freeze, frozen
from dolfinx_mbd.body.gauges import StrainGauge
from dolfinx_mbd.body.parts import (
    Bore,
    EffectiveMasses,
    Interface,
    LoadPattern,
    MaterialPoint,
    Mode,
    Skin,
    Stiffening,
)
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import array, instance, items, name, number, reject
from dolfinx_mbd.errors import InputError

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody


_LISTS: dict[str, type[Any]] = {
    "interfaces": Interface,
    "modes": Mode,
    "points": MaterialPoint,
    "left_out": Mode,
    "loads": LoadPattern,
    "gauges": StrainGauge,
    "bores": Bore,
}
_PARTS: dict[str, type[Any]] = {
    "skin": Skin,
    "stiffening": Stiffening,
    "stress": StressModes,
    "effective_masses": EffectiveMasses,
}


def check_body(body: ReducedBody) -> None:
    """Check the attributes of a body, and make them read-only."""
    rows = "an array of finite numbers of shape (n+1, 3), with a row for ψ_0 = x"
    n = len(array("first_moments", body.first_moments, (None, 3), expected=rows)) - 1
    if n < 0:
        reject("first_moments", body.first_moments, rows)
    name("name", body.name)
    instance("reference", body.reference, str)
    assign(body, total_mass=number("total_mass", body.total_mass, positive=True, unit="kg"))
    freeze(body, first_moments=(n + 1, 3), second_moments=(n + 1, n + 1, 3, 3))
    freeze(body, mass=(n, n), stiffness=(n, n), damping=(n, n))
    for key in ("mass", "stiffness", "damping"):
        check_matrix(key, getattr(body, key))
    if not np.allclose(body.second_moments, body.second_moments.transpose(1, 0, 3, 2)):
        reject("second_moments", body.second_moments, "an array with H_kl^ab = H_lk^ba")
    for key, kind in _LISTS.items():
        assign(body, **{key: items(key, getattr(body, key), kind)})
    for key, kind in _PARTS.items():
        instance(key, getattr(body, key), (kind, type(None)))
    provenance = instance("provenance", body.provenance, Mapping)
    assign(body, provenance=MappingProxyType(dict(provenance)))
    assign(body, modes=body.modes or _default_modes(body.mass, body.stiffness))
    _check_parts(body, n)


def _check_parts(body: ReducedBody, n: int) -> None:
    """Check that all parts of a body have n modes, and that names differ."""
    for argument in ("interfaces", "points", "loads", "gauges", "bores"):
        names = [part.name for part in getattr(body, argument)]
        if len(set(names)) < len(names):
            reject(argument, names, "a list of parts with different names")
    counts = {"modes": len(body.modes)}
    counts |= {f"interface {i.name!r}": i.motion.shape[1] for i in body.interfaces}
    counts |= {f"point {p.name!r}": len(p.modes) for p in body.points}
    counts |= {f"load {p.name!r}": len(p.modes) for p in body.loads}
    counts |= {f"gauge {g.name!r}": g.modes.shape[1] for g in body.gauges}
    counts |= {f"bore {b.name!r}": b.displacement.shape[2] for b in body.bores}
    for bore in body.bores:
        body.interface(bore.name)
    if body.skin is not None:
        counts["skin"] = len(body.skin.modes)
    if body.stress is not None:
        counts["stress"] = body.stress.num_modes
    for argument, count in counts.items():
        if count != n:
            text = f"{argument}: {count} modes, but the matrices of the body have {n}"
            raise InputError(text, argument=argument, value=count, expected=f"{n} modes")
    if body.stiffening is not None:
        shape = (len(body.interfaces), 6, n, n)
        frozen("stiffening: interfaces", body.stiffening.interfaces, shape)


def check_matrix(argument: str, matrix: Array) -> None:
    """Check that a matrix is positive definite; stiffness and damping may be semidefinite."""
    size = np.abs(matrix).max(initial=0.0)
    if argument != "damping" and not np.allclose(matrix, matrix.T, atol=1e-9 * size):
        reject(argument, matrix, "a symmetric matrix")
    least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min(initial=np.inf)
    if least < -1e-9 * size or (argument == "mass" and least <= 0):
        expected = f"a positive {'definite' if argument == 'mass' else 'semidefinite'} matrix"
        text = f"{argument} must be {expected}; its smallest eigenvalue is {least:.3g}"
        raise InputError(text, argument=argument, value=matrix, expected=expected)


def _default_modes(mass: Array, stiffness: Array) -> tuple[Mode, ...]:
    squares = np.diag(stiffness) / np.maximum(np.diag(mass), np.finfo(float).tiny)
    frequencies = np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
    return tuple(Mode(f"mode {k + 1}", float(f)) for k, f in enumerate(frequencies))
