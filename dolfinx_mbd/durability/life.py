"""Damage and fatigue life of a body over its runs, in blocks of points.

The stress of a block of points over all instants is a product of stress modes and elastic
coordinates. Compiled kernels find the worst plane at each point, count the cycles and add the
damage. Only one block of histories is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.quantities import BOUND_MARGIN, QUANTITIES, principal_values
from dolfinx_mbd.body.stress_modes import StressModes, envelope_over_time, motion_of
from dolfinx_mbd.checks import choice, instance, integer, items, number, object_with, reject
from dolfinx_mbd.durability.body_warnings import warn_of_prestress, warn_of_several_materials
from dolfinx_mbd.durability.cycles import Residue
from dolfinx_mbd.durability.fatigue_material import (
    DamageRule,
    FatigueMaterial,
    MeanStress,
    material_of,
)
from dolfinx_mbd.durability.fatigue_result import FatigueResult
from dolfinx_mbd.durability.recovery import Recovery, skin_stress
from dolfinx_mbd.errors import InputError, InputTypeError, ModelRangeWarning, warn
from dolfinx_mbd.kernels.fatigue.damage import (
    COLUMNS,
    DAMAGE,
    DIRECTION,
    LAW,
    NORMAL,
    RANGE_MEAN,
    STRENGTH,
    cycle_damages,
    neuber_stresses,
    plane_damage,
    scalar_damage,
)
from dolfinx_mbd.parallel import raise_together, shared_errors
from dolfinx_mbd.reduction.result import Reduction

__all__ = ["Criterion", "fatigue"]

Criterion = Literal["normal", "shear", "von Mises", "principal"]
Runs: TypeAlias = "Sequence[tuple[Any, float]]"

BLOCK_BYTES = 16e6  # stress histories in memory; they fit into the caches of several cores
RESOLUTION = np.deg2rad(0.5)  # angle to which the worst plane is refined


class _Task(NamedTuple):
    """The arguments of the kernels that do not depend on the points."""

    eta: Array  # all runs, one after the other, (nt, n)
    offsets: NDArray[np.int64]  # first instants of the runs, and nt
    weights: Array  # share of each run divided by its duration, 1/s
    law: Array  # see `LAW`
    criterion: Criterion
    closed: bool
    planes: int


def fatigue(
    source: ReducedBody | Reduction | Recovery,
    runs: Runs,
    *,
    material: FatigueMaterial | str,
    criterion: Criterion = "normal",
    mean_stress: MeanStress = "Smith-Watson-Topper",
    rule: DamageRule = "modified",
    survival: float | None = None,
    method: Literal["stress", "strain"] = "stress",
    residue: Residue = "closed",
    planes: int = 100,
    comm: Any = None,
) -> FatigueResult:
    """Return the damage and the life of a body at each of its points.

    Args:
        source: A body with stress modes, which needs no mesh; or a reduction, for the nodes of its
            surface; or a `Recovery`, for its points in all cells. Static correction is included
            with a `Recovery`.
        runs: Histories, each with its share of the service time: `[(run.body("rod"), 0.3), ...]`.
            The shares add up to 1. See `recover` for histories.
        material: Fatigue data, or the name of one of `durability.EXAMPLES`.
        criterion: Stress whose cycles are counted. "normal" is the normal stress on the plane with
            the greatest damage at each point. "shear" is twice the shear stress on the plane and in
            the direction with the greatest damage. "principal" is the principal stress with the
            largest absolute value, and "von Mises" is the von Mises stress with the sign of
            "principal".
        mean_stress: Correction of the mean stress. Goodman and Gerber need the tensile strength and
            take compressive means as zero; FKM needs the mean-stress sensitivity.
        rule: Damage below the knee of the S-N line: "modified" continues an endurance limit with
            the slope 2k − 1 (Haibach), "elementary" continues the first slope, and "original"
            keeps an endurance limit.
        survival: Probability of survival; by default that of the material.
        method: "stress" uses the S-N line; "strain" uses strain life with Neuber's rule.
        residue: "closed" repeats each run; "half" counts the remaining turning points as half
            cycles. See `count_cycles`.
        planes: Number of planes of the first search, with normals evenly distributed over half a
            sphere. The worst plane is then refined to half a degree.
        comm: MPI communicator that shares the points of a body without mesh among its ranks.

    Raises:
        InputError: There is no run, a run has fewer than two instants, the shares do not add up to
            1, the body has no stress modes, the data of the material are incomplete, or the mean of
            a cycle reaches the tensile strength.

    Warns:
        ModelRangeWarning: The body has several materials; the data are used for all of them. Or a
            stress exceeds the tensile strength, if the material has one: the von Mises stress for
            the criteria "shear" and "von Mises", otherwise the greatest principal stress. For
            strain life, Neuber's rule is applied to it.
        AccuracyWarning: The body has a prestress, whose mean stress is not included.

    Note: Collective over `comm` or over the mesh.

    Example:
        >>> period = np.sin(np.linspace(0, 2 * np.pi, 41))
        >>> history = 40 * np.outer(period, eta)  # at the times 0, 1, ..., 40 s
        >>> result = mbd.fatigue(bar, [(history, 1.0)], material="AISI 4340")
        >>> len(result.points), result.worst(1)[0].interface in ("left", "right")
        (36, True)
    """
    instance("source", source, (ReducedBody, Reduction, Recovery))
    if isinstance(source, ReducedBody) and source.stress is None:
        raise InputError(
            f"body {source.name!r} has no stress modes: give the reduction, or add them before the "
            "body is saved, body.replace(stress=mbd.durability.skin_stress(reduction))",
            argument="source",
            value=source,
        )
    if comm is not None:
        object_with("comm", comm, "allgather", "rank", "size")
    data = material_of(material)
    strain = choice("method", method, ("stress", "strain")) == "strain"
    line = data.line(rule, survival)
    if strain and survival not in (None, data.survival):
        reject("survival", survival, "omitted with method='strain'; it shifts the S-N line")
    choice("criterion", criterion, get_args(Criterion))
    law = data.law(line, mean_stress, strain)
    closed = choice("residue", residue, get_args(Residue)) == "closed"
    number_of_planes = integer("planes", planes, low=6, high=100_000)
    eta, offsets, weights = _histories(source, runs)
    task = _Task(eta, offsets, weights, law, criterion, closed, number_of_planes)
    field = source if isinstance(source, Recovery) else None
    if field is not None:
        comm = field.space.mesh.comm
        points, body = field.positions(), field.reduction.body
        (modes,), _ = field.ingredients("stress")
        rows = _checked_damage(task, modes, points, comm)
    else:
        stress, body, comm = _surface(source, comm)
        points = stress.points
        rows = _distribute_points(task, stress, comm)
    cure = "only the results at points of this material are valid"
    warn_of_several_materials(body, f"the material {data.name!r}", cure)
    warn_of_prestress(body, "life", "it changes the mean stress of each cycle")
    values = dict(zip(COLUMNS, rows.T, strict=True))
    return FatigueResult(
        points=points,
        damage=values["damage"],
        cycles=values["cycles"],
        range=values["range"],
        mean=values["mean"],
        normal=rows[:, NORMAL],
        direction=rows[:, DIRECTION],
        criterion=criterion,
        material=data,
        line=None if strain else line,
        body=body,
        comm=comm,
        locations=None if field is None else field.points,
    )


def _surface(source: Any, comm: Any) -> tuple[StressModes, ReducedBody, Any]:
    """Return the stress modes on the surface, the body, and the communicator."""
    if isinstance(source, Reduction):
        return skin_stress(source, peaks=False), source.body, source.space.mesh.comm
    return source.stress, source, comm


def _histories(source: Any, runs: Any) -> tuple[Array, NDArray[np.int64], Array]:
    """Return the elastic coordinates of all runs, the offsets of the runs, and their weights."""
    expected = "a list of histories with their shares, such as [(run.body('rod'), 1.0)]"
    entries = items("runs", runs, object)
    if not entries:
        reject("runs", runs, expected)
    parts, shares, durations = [], [], []
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2:
            reject("every entry of runs", entry, "(history, share)", InputTypeError)
        if isinstance(source, Recovery):
            time, eta = source.motion(entry[0])
        else:
            body = source if isinstance(source, ReducedBody) else source.body
            time, eta = motion_of(entry[0], body.num_modes)
        if len(time) < 2 or (np.diff(time) <= 0).any():
            reject("runs", entry[0], "histories of two or more increasing times")
        parts.append(eta)
        durations.append(float(time[-1] - time[0]))
        shares.append(number("share", entry[1], positive=True, high=1.0))
    if abs(sum(shares) - 1.0) > 1e-6:
        reject("shares", shares, f"shares of the service time that add up to 1, not {sum(shares)}")
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.concatenate(parts), offsets, np.array(shares) / np.array(durations)


def _distribute_points(task: _Task, stress: StressModes, comm: Any) -> Array:
    """Return the results (points, len(COLUMNS)); each rank computes a part of the points."""
    size, rank = (1, 0) if comm is None else (comm.size, comm.rank)
    bounds = np.linspace(0, len(stress.points), size + 1).astype(int)
    part = slice(bounds[rank], bounds[rank + 1])
    rows = _checked_damage(task, stress.stress[:, part], stress.points[part], comm)
    return rows if comm is None else np.concatenate(comm.allgather(rows))


def _checked_damage(task: _Task, modes: Array, points: Array, comm: Any) -> Array:
    """Return the results at points of this rank; raise an error if a mean is too large."""
    if comm is None:
        rows = point_damage(task, modes)
    else:
        with shared_errors(comm):
            rows = point_damage(task, modes)
    bad = np.flatnonzero(np.isnan(rows[:, DAMAGE]))
    message = None
    if len(bad):
        message = _mean_message(task, rows[bad[0], RANGE_MEAN], points[bad[0]])
    if comm is not None:
        raise_together(comm, message)
    elif message is not None:
        raise InputError(message, argument="mean_stress", value=float(rows[bad[0], RANGE_MEAN]))
    _warn_of_strength(task, modes, points, comm)
    return rows


def _mean_message(task: _Task, mean: float, point: Array) -> str:
    """Return the message for a mean that reaches the tensile strength at a point."""
    position = ", ".join(f"{1e3 * x:.4g}" for x in point)
    quantity, cause = "the mean stress of a cycle", "the part breaks statically"
    cure = "see mbd.strength"
    if task.criterion == "shear":  # the part need not break: the mean is twice the normal stress
        quantity, cause = "twice the mean normal stress of a cycle", "the correction does not hold"
        cure = "use 'Smith-Watson-Topper' or 'FKM', or another criterion"
    return (
        f"{quantity}, {1e-6 * mean:.4g} MPa at ({position}) mm, reaches the tensile strength, "
        f"{1e-6 * task.law[STRENGTH]:.4g} MPa: {cause}, or the point is a singularity of the model "
        f"({cure})"
    )


def _warn_of_strength(task: _Task, modes: Array, points: Array, comm: Any) -> None:
    """Warn if the largest stress at the points of all ranks exceeds the tensile strength."""
    law = dict(zip(LAW, task.law, strict=True))
    if np.isnan(law["strength"]):
        return
    ductile = task.criterion in ("shear", "von Mises")
    name = "von Mises" if ductile else "greatest principal"
    stress, _ = envelope_over_time([modes], task.eta, QUANTITIES[name])
    k = int(stress.argmax()) if len(stress) else 0
    peak, place = (float(stress[k]), tuple(points[k])) if len(stress) else (0.0, (0.0,) * 3)
    if comm is not None:
        peak, place = max(comm.allgather((peak, place)))
    if law["strain"]:
        peak = neuber_stresses(np.array([max(peak, 0.0)]), task.law)[0]
    if peak > law["strength"]:
        position = ", ".join(f"{1e3 * x:.4g}" for x in place)
        text = (
            f"the {'von Mises' if ductile else 'principal'} stress at ({position}) mm reaches "
            f"{1e-6 * peak:.4g} MPa, more than the tensile strength, {1e-6 * law['strength']:.4g} "
            "MPa: the part breaks in the first cycle, or the point is a singularity of the model. "
            "Its life is not valid; see mbd.strength"
        )
        limit = float(law["strength"])
        warn(ModelRangeWarning(text, quantity="stress", value=float(peak), limit=limit))


def point_damage(task: _Task, modes: Array) -> Array:
    """Return the results (points, len(COLUMNS)) for stress modes (6, points, n), Pa.

    Rows remain zero if an upper bound of the stress at the point does no damage.
    """
    out = np.zeros((modes.shape[1], len(COLUMNS)))
    active = np.flatnonzero(_damage_bounds(task, modes) != 0.0)  # NaN: the mean may be too large
    histories = np.ascontiguousarray(task.eta.T)
    bytes_of_a_point = 6 * histories.itemsize * histories.shape[1]
    block = max(1, int(BLOCK_BYTES / bytes_of_a_point))
    normals, angles = half_sphere(task.planes)
    common = (task.offsets, task.weights, task.law, task.closed)
    for start in range(0, len(active), block):
        rows = active[start : start + block]
        local = np.ascontiguousarray(modes[:, rows].transpose(1, 0, 2))
        stress = np.matmul(local, histories)
        part = np.zeros((len(rows), len(COLUMNS)))
        if task.criterion in ("normal", "shear"):
            shear = task.criterion == "shear"
            plane_damage(stress, normals, angles, shear, *common, part)
        else:
            scalar_damage(_signed_stress(stress.transpose(1, 0, 2), task.criterion), *common, part)
        out[rows] = part
    return out


def half_sphere(count: int) -> tuple[Array, Array]:
    """Return unit vectors on half a sphere, (count, 3), and decreasing angles of refinement, rad.

    The vectors are evenly distributed: on a spiral with the golden angle π (3 − √5) between
    successive vectors, and at equal steps of z.
    """
    k = np.arange(count)
    z = (k + 0.5) / count
    angle, radius = k * np.pi * (3.0 - np.sqrt(5.0)), np.sqrt(1.0 - z * z)
    normals = np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)
    spacing = np.sqrt(2.0 * np.pi / count)  # root of the area of half a sphere for each vector
    halvings = max(1, int(np.ceil(np.log2(spacing / RESOLUTION))))
    return normals, spacing * 0.5 ** np.arange(1, halvings + 1)


def _signed_stress(stress: Array, criterion: Criterion) -> Array:
    """Return the signed scalar stress (points, nt) of components (6, points, nt)."""
    first, _, third = principal_values(stress)
    largest = np.where(first >= -third, first, third)
    if criterion == "principal":
        return np.ascontiguousarray(largest)
    definition = QUANTITIES["von Mises"]
    rows = np.asarray(np.tensordot(definition.matrix, stress, axes=1), dtype=np.float64)
    size = definition.evaluate(rows)
    return np.ascontiguousarray(np.copysign(size, largest))


def _damage_bounds(task: _Task, modes: Array) -> Array:
    """Return bounds (points,) of the damage of a cycle; NaN if the mean may be too large.

    With the stress S_k of mode k, the Frobenius norm |σ| of the stress tensor is at most
    Σ|S_k| max|η_k|, and the norm of its range at most Σ|S_k| range η_k. A normal stress is at most
    |σ|, twice a shear stress is at most √2 |σ|, and the von Mises stress is at most √(3/2) |σ|.
    With the criterion "shear", the cycles of twice the shear stress are counted, but the mean of a
    cycle is that of twice the normal stress on the same plane, which is at most 2 |σ|. The sign of
    the criteria "von Mises" and "principal" may change within a cycle, so that half their range is
    bounded by their greatest absolute value.
    """
    weights = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])  # the tensor has each shear stress twice
    norms = (1.0 + BOUND_MARGIN) * np.sqrt(np.einsum("c,cpk->pk", weights, modes**2))
    greatest = norms @ np.abs(task.eta).max(axis=0)
    half_range = 0.5 * (norms @ np.ptp(task.eta, axis=0))
    amplitudes, means = {
        "normal": (half_range, greatest),
        "shear": (np.sqrt(2.0) * half_range, 2.0 * greatest),
        "von Mises": (np.sqrt(1.5) * greatest, np.sqrt(1.5) * greatest),
        "principal": (greatest, greatest),
    }[task.criterion]
    return np.asarray(cycle_damages(amplitudes, means, task.law), dtype=float)
