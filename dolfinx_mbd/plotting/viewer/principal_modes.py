"""Few combinations of modes that represent the motion of a surface.

The modes of a body with many interfaces move together in a run. The combinations of a proper
orthogonal decomposition represent the same displacements and stresses: with the fields F (n, N) of
the modes in units of the largest value and η(t) (nt, n), they are the principal directions of η L,
where L Lᵀ = F Fᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import Skin, StressModes
from dolfinx_mbd.plotting.scene.moving_surface import Surface

__all__ = ["rounding_steps", "with_principal_modes"]

Array = NDArray[np.float64]

_FEWEST = 4  # smallest number of modes that are combined
_INSTANTS = 60  # number of instants at which the error is computed
_RANK = 1e-13  # directions with eigenvalues of F Fᵀ below this fraction are linearly dependent


def with_principal_modes(surfaces: Sequence[Surface], accuracy: float) -> list[Surface]:
    """Return the surfaces with as few combinations of their modes as represent the motion.

    Surfaces with the same skin have the same combinations.

    Args:
        surfaces: Surfaces and their motions.
        accuracy: Permitted error of displacements and stresses, relative to the largest ones of the
            body.
    """
    groups: dict[int, list[int]] = {}
    for k, surface in enumerate(surfaces):
        groups.setdefault(id(surface.skin), []).append(k)
    out = list(surfaces)
    for members in groups.values():
        first = max((surfaces[k] for k in members), key=lambda s: s.stress is not None)
        if len(first.skin.modes) < _FEWEST or any(len(surfaces[k].eta) < 2 for k in members):
            continue
        combined = _combinations([surfaces[k].eta for k in members], _fields(first), accuracy)
        if combined is None:
            continue
        to, back = combined  # matrices to the coordinates of the combinations and back
        modes = np.asarray(np.tensordot(back, first.skin.modes, axes=1), dtype=float)
        skin, stress = Skin(first.skin.points, first.skin.triangles, modes), first.stress
        if stress is not None:
            cells = None if stress.cells is None else stress.cells @ back.T.astype(np.float32)
            stress = StressModes(stress.points, stress.stress @ back.T, cells)
        for k in members:
            known = None if surfaces[k].stress is None else stress
            out[k] = replace(surfaces[k], skin=skin, stress=known, eta=surfaces[k].eta @ to)
    return out


def rounding_steps(surfaces: Sequence[Surface], accuracy: float) -> dict[int, list[Array]]:
    """Return the steps to which modes may be rounded, by the identity of the skin.

    The rounding errors of all modes are independent. Their sum has a standard deviation of 0.3
    times the accuracy.

    Args:
        surfaces: Surfaces and their motions.
        accuracy: Permitted error of displacements and stresses, relative to the largest ones of the
            body.

    Returns:
        For each skin the steps of the displacements and, with stress, of the stresses, (n,) each.
    """
    steps: dict[int, list[Array]] = {}
    for key in {id(surface.skin) for surface in surfaces}:
        members = [surface for surface in surfaces if id(surface.skin) == key]
        eta = np.vstack([surface.eta for surface in members])
        if not eta.any() or len(eta) == len(members):  # at rest
            continue
        first = max(members, key=lambda surface: surface.stress is not None)
        samples = eta[np.unique(np.linspace(0, len(eta) - 1, _INSTANTS).round().astype(int))]
        amplitudes = np.abs(eta).max(axis=0)
        factor = np.zeros(len(amplitudes))
        np.divide(accuracy / np.sqrt(len(factor)), amplitudes, out=factor, where=amplitudes > 0.0)
        sizes = [np.abs(samples @ field).max(initial=0.0) for field in _fields(first)]
        steps[key] = [size * factor for size in sizes]
    return steps


def _fields(surface: Surface) -> list[Array]:
    """Return displacements and stresses of the modes, shape (n, N) each."""
    displacements: Array = surface.skin.modes.reshape(len(surface.skin.modes), -1)
    if surface.stress is None:
        return [displacements]
    return [displacements, surface.stress.stress.reshape(-1, surface.stress.num_modes).T]


def _combinations(
    motions: Sequence[Array], fields: Sequence[Array], accuracy: float
) -> tuple[Array, Array] | None:
    """Return matrices (n, m) and (m, n) to m coordinates and back; None if m is not below n."""
    scaled, samples = [], []
    for eta in motions:  # each in units of its largest displacement
        rows = np.unique(np.linspace(0, len(eta) - 1, _INSTANTS).round().astype(int))
        size = float(np.abs(eta[rows] @ fields[0]).max(initial=0.0)) or 1.0
        scaled.append(eta / size)
        samples.append(eta[rows] / size)
    eta, samples_at_instants = np.vstack(scaled), np.vstack(samples)
    count = eta.shape[1]
    sizes = [float(np.abs(samples_at_instants @ field).max(initial=0.0)) for field in fields]
    units = [field / size for field, size in zip(fields, sizes, strict=True) if size > 0.0]
    if not units:
        return None
    weights, directions = np.linalg.eigh(sum(F @ F.T / F.shape[1] for F in units))
    independent = weights > _RANK * weights[-1]
    root, E = np.sqrt(weights[independent]), directions[:, independent]  # L = E diag(root)
    principal = np.linalg.svd(eta @ (E * root), full_matrices=False)[2]
    for number in range(1, min(count, len(principal) + 1)):
        to, back = (E * root) @ principal[:number].T, principal[:number] @ (E / root).T
        remainder = samples_at_instants - samples_at_instants @ to @ back
        if all(np.abs(remainder @ F).max() <= accuracy for F in units):
            return to, back
    return None
