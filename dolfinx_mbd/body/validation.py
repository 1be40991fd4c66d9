"""Checks of the data of a reduced body."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.arrays import Array, assign, frozen
from dolfinx_mbd.body.parts import Mode
from dolfinx_mbd.body.tree import freeze_arrays, num_modes, part_fields
from dolfinx_mbd.checks import array, instance, items, name, number, reject
from dolfinx_mbd.errors import InputError

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody


def check_body(body: ReducedBody) -> None:
    """Check the attributes of a body, and make them read-only."""
    expected = "an array of finite numbers of shape (n+1, 3), with a row for ψ_0 = x"
    n = len(array("first_moments", body.first_moments, (None, 3), expected=expected)) - 1
    if n < 0:
        reject("first_moments", body.first_moments, expected)
    name("name", body.name)
    instance("reference", body.reference, str)
    assign(body, total_mass=number("total_mass", body.total_mass, positive=True, unit="kg"))
    freeze_arrays(body)
    for key in ("mass", "stiffness", "damping"):
        check_matrix(key, getattr(body, key))
    if not np.allclose(body.second_moments, body.second_moments.transpose(1, 0, 3, 2)):
        reject("second_moments", body.second_moments, "an array with H_kl^ab = H_lk^ba")
    for key, part in part_fields(body).items():
        if part.is_list:
            assign(body, **{key: items(key, getattr(body, key), part.kind)})
        else:
            instance(key, getattr(body, key), (part.kind, type(None)))
    provenance = instance("provenance", body.provenance, Mapping)
    assign(body, provenance=MappingProxyType(dict(provenance)))
    assign(body, modes=body.modes or _default_modes(body.mass, body.stiffness))
    _check_parts(body, n)


def _check_parts(body: ReducedBody, n: int) -> None:
    """Check that all parts of a body have n modes, and that names differ."""
    counts: dict[str, int | None] = {"modes": len(body.modes)}
    for argument, declaration in part_fields(body).items():
        value, label = getattr(body, argument), declaration.label
        if declaration.is_list:
            names = [part.name for part in value if hasattr(part, "name")]
            if len(set(names)) < len(names):
                reject(argument, names, "a list of parts with different names")
            counts |= {f"{label} {getattr(part, 'name', '')!r}": num_modes(part) for part in value}
        elif value is not None:
            counts[label] = num_modes(value)
    for bore in body.bores:
        body.interface(bore.name)
    for argument, count in counts.items():
        if count not in (n, None):
            text = f"{argument}: {count} modes, but the matrices of the body have {n}"
            raise InputError(text, argument=argument, value=count, expected=f"{n} modes")
    if body.stiffening is not None:
        shape = (len(body.interfaces), 6, n, n)
        frozen("stiffening: interfaces", body.stiffening.interfaces, shape)


def check_matrix(argument: str, matrix: Array) -> None:
    """Check that a matrix is symmetric and positive definite.

    Stiffness and damping may be semidefinite. Damping may be unsymmetric; only its symmetric part
    is then checked.
    """
    size = np.abs(matrix).max(initial=0.0)
    if argument != "damping" and not np.allclose(matrix, matrix.T, atol=1e-9 * size):
        reject(argument, matrix, "a symmetric matrix")
    least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min(initial=np.inf)
    if least < -1e-9 * size or (argument == "mass" and least <= 0):
        expected = f"a positive {'definite' if argument == 'mass' else 'semidefinite'} matrix"
        text = f"{argument} must be {expected}; its smallest eigenvalue is {least:.3g}"
        raise InputError(text, argument=argument, value=matrix, expected=expected)


def _default_modes(mass: Array, stiffness: Array) -> tuple[Mode, ...]:
    """Return descriptions of modes with their Rayleigh quotients as frequencies."""
    squares = np.diag(stiffness) / np.maximum(np.diag(mass), np.finfo(float).tiny)
    frequencies = np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
    return tuple(Mode(f"mode {k + 1}", float(f)) for k, f in enumerate(frequencies))
