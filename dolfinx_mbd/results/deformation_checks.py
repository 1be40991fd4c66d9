"""Checks whether the deformation of bodies is within the range of the linear theory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.linalg import eigh

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import ModelRangeWarning, warn
from dolfinx_mbd.kernels.columns import ETA, OMEGA
from dolfinx_mbd.mechanism.bodies import FlexibleBody
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["check_deformation", "largest_deformations", "warn_of_deformation"]

# A value above one of these limits gives a warning. ELASTIC_ROTATION is in rad; the error of the
# linear theory grows with the square of the elastic rotation and is 2 to 4 % at this limit
ELASTIC_ROTATION = 0.2
ELASTIC_DISPLACEMENT = 0.1  # elastic displacement relative to the size of the body
# Spin relative to the lowest natural frequency of a body without geometric stiffening; the missing
# stiffness is about the square of this ratio
SPIN = 0.3
_REMEDY = (
    "The theory of a reduced body is linear in its deformation: divide the body into several, or "
    "model it by a cable with large rotations"
)

Worst = Mapping[str, tuple[float, str]]  #: largest value of each quantity, and its place


def largest_deformations(
    system: System, time: Array, q: Array, v: Array
) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield quantities with their largest value over time and its place, for each body.

    The quantities are ``elastic rotation`` (rad), ``elastic displacement`` (relative to the size)
    and, for bodies without geometric stiffening, ``spin without stiffening`` (relative to the
    lowest natural frequency).

    Args:
        system: The mechanism.
        time: Times, s, (nt,).
        q: Coordinates, (nt, nq).
        v: Velocities, (nt, nv).
    """
    for body, qs, vs in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        if not isinstance(body, FlexibleBody) or not body.num_elastic:
            continue
        eta = q[:, qs][:, ETA]
        for interface in body.reduced.interfaces:
            angle, n = _largest_norm(eta, interface.motion[3:].T)
            place = f"interface {interface.name!r} of body {body.name!r} at t = {time[n]:g} s"
            yield "elastic rotation", (angle, place)
        ratio, n = _largest_displacement(body, eta)
        yield "elastic displacement", (ratio, f"body {body.name!r} at t = {time[n]:g} s")
        if not body.stiffening:
            ratio, n = _spin_ratio(body, v[:, vs][:, OMEGA])
            yield "spin without stiffening", (ratio, f"body {body.name!r} at t = {time[n]:g} s")


def warn_of_deformation(worst: Worst) -> None:
    """Warn of deformations outside the range of the theory.

    Args:
        worst: Largest values of `largest_deformations`.
    """
    value, place = worst.get("elastic rotation", (0.0, ""))
    text = (
        f"{place} rotates elastically by {value:.2g} rad relative to the frame of the "
        f"body, more than {ELASTIC_ROTATION:g} rad. {_REMEDY}"
    )
    _warn("elastic rotation", value, ELASTIC_ROTATION, text)
    value, place = worst.get("elastic displacement", (0.0, ""))
    text = (
        f"{place} deforms by {100 * value:.2g} % of its size, more than "
        f"{100 * ELASTIC_DISPLACEMENT:g} %. {_REMEDY}"
    )
    _warn("elastic displacement", value, ELASTIC_DISPLACEMENT, text)
    value, place = worst.get("spin without stiffening", (0.0, ""))
    text = (
        f"{place} rotates at {value:.2g} times its lowest natural frequency, and has no geometric "
        "stiffening. Centrifugal forces would stiffen the body: without this effect its "
        "deformation is too large, by about the square of this ratio, and may grow without limit. "
        "Reduce the body with stiffening, which needs the mean-axis reference (no attached_to)"
    )
    _warn("spin without stiffening", value, SPIN, text)


def check_deformation(system: System, states: list[State]) -> None:
    """Warn of deformations outside the range of the theory, for example of an equilibrium."""
    time, q, v = (np.array([getattr(x, key) for x in states]) for key in ("time", "q", "v"))
    worst: dict[str, tuple[float, str]] = {}
    for quantity, pair in largest_deformations(system, time, q, v):
        worst[quantity] = max(worst.get(quantity, (0.0, "")), pair)
    warn_of_deformation(worst)


def _spin_ratio(body: FlexibleBody, omega: Array) -> tuple[float, int]:
    """Return the largest ratio of the spin to the lowest frequency of the modes, and its index.

    Centrifugal forces grow with ωᵀJω: they are small in a shaft that rotates about its own axis.
    """
    J, reduced = body.reduced.central_inertia, body.reduced
    squares = np.einsum("ti,ij,tj->t", omega, J, omega) / np.linalg.eigvalsh(J)[-1]
    n = int(np.argmax(squares))
    if squares[n] <= 0.0:
        return 0.0, n
    lowest = float(eigh(reduced.stiffness, reduced.mass, eigvals_only=True)[0])
    return float(np.sqrt(squares[n] / max(lowest, 1e-300))), n


def _warn(quantity: str, value: float, limit: float, text: str) -> None:
    """Warn if a value is above its limit."""
    if value > limit:
        warn(ModelRangeWarning(text, quantity=quantity, value=float(value), limit=limit))


def _largest_norm(eta: Array, modes: Array) -> tuple[float, int]:
    """Return the largest norm of η @ modes over time, and the index of its time."""
    norms = np.linalg.norm(eta @ modes, axis=1)
    n = int(np.argmax(norms))
    return float(norms[n]), n


def _largest_displacement(body: FlexibleBody, eta: Array) -> tuple[float, int]:
    """Return the largest relative elastic displacement of a body, and the index of its time.

    The points are interfaces, named points and, if a bound exceeds the limit, those of the surface.
    """
    reduced, skin = body.reduced, body.reduced.skin
    points = [interface.point for interface in reduced.interfaces]
    points += [point.position for point in reduced.points]
    points += [] if skin is None else list(skin.points)
    if not points:
        return 0.0, 0
    shapes = [interface.motion[:3].T for interface in reduced.interfaces]
    shapes += [point.modes for point in reduced.points]
    radius = np.sqrt(0.5 * np.trace(reduced.central_inertia) / reduced.total_mass)
    size = max(float(np.ptp(np.array(points), axis=0).max()), float(radius))
    largest, instant = max((_largest_norm(eta, shape) for shape in shapes), default=(0.0, 0))
    if skin is not None:
        # Sum of the largest displacement of each mode: an upper bound
        bound = np.abs(eta) @ np.linalg.norm(skin.modes, axis=2).max(axis=1)
        n = int(np.argmax(bound))
        if bound[n] > ELASTIC_DISPLACEMENT * size:
            shift = float(np.linalg.norm(np.tensordot(eta[n], skin.modes, 1), axis=1).max())
            largest, instant = max((largest, instant), (shift, n))
    return largest / size, instant
