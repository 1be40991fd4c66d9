"""Safety factors of a body over a run or a load case: as a field, and at the weakest places.

The greatest equivalent stress over time at each point is computed in blocks; no history of stress
is stored. The utilization of a point is this stress divided by the strength of its material. The
safety factor is the inverse of the utilization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import ufl
from dolfinx import fem
from numpy.typing import NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import choice, instance, integer, number, reject, unknown
from dolfinx_mbd.durability.body_warnings import (
    warn_of_prestress,
    warn_of_several_materials,
    warn_of_units,
)
from dolfinx_mbd.durability.inertia_relief import LoadCases
from dolfinx_mbd.durability.recovery import Recovery
from dolfinx_mbd.durability.recovery.cell_fields import Points
from dolfinx_mbd.durability.recovery.mesh_recovery import MeshRecovery
from dolfinx_mbd.durability.recovery.stress import Source, any_recovery_of
from dolfinx_mbd.durability.recovery.stressed_places import APART, worst_places
from dolfinx_mbd.durability.strength_result import Strength, WeakPlace
from dolfinx_mbd.errors import InputError, InputTypeError, ModelRangeWarning, warn
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.material_fields import BodyMaterials
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.forms import AnyMaterial, Orthotropic
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.structures.mesh_bodies import MeshBody

__all__ = ["strength"]

Array = NDArray[np.float64]
CriterionName = Literal["von Mises", "Tresca", "greatest principal", "least principal"]
Criterion: TypeAlias = "CriterionName | Callable[[Any], Any]"
"""A criterion by name, or a function of σ as UFL, shape (3, 3), that returns a stress as UFL."""

LIMITS = ("yield", "tensile")


def strength(
    source: Source | ReducedBody,
    history: Any,
    *,
    criterion: Criterion = "von Mises",
    limit: Literal["yield", "tensile"] | float | Mapping[str, float] = "yield",
    count: int = 5,
    apart: float | None = None,
) -> Strength:
    """Return the least safety factor over a run at each point, and the weakest places.

    Args:
        source: A reduction or a `MeshBody`; a `Recovery` with another stress law or other points;
            or a reduced body with stress modes, which needs no mesh and has one material.
        history: Motion of the body, such as ``run.body("rod")``; load cases of `inertia_relief`; or
            elastic coordinates, shape (nt, n) or (n,). See `recover`.
        criterion: Equivalent stress. ``von Mises`` and ``Tresca`` suit ductile materials,
            ``greatest principal`` suits brittle materials in tension, and ``least principal`` (with
            opposite sign) suits brittle materials in compression. You can also give a function of
            the stress as UFL, shape (3, 3), Pa, that returns an equivalent stress as UFL; it needs
            the mesh.
        limit: Strength with which the stress is compared. ``yield`` and ``tensile`` are the
            strengths of each `Material`. A number, Pa, is the strength of all materials. A mapping
            contains numbers by the name of the material, or by its group of cells if the body has
            several materials.
        count: Number of weakest places of each material; there may be fewer.
        apart: Minimum distance between two places, m. By default 5 % of the size of the body.

    Raises:
        InputError: The body has no stress modes, a strength is missing, the criterion is unknown or
            not scalar, or the history does not belong to the body or is empty.

    Warns:
        ModelRangeWarning: A criterion for isotropic materials is applied to an orthotropic one, or
            a reduced body has several materials.
        AccuracyWarning: The body has a prestress, whose stress is not included.
        UnitsWarning: A strength is implausible, for example because it is in MPa.

    Note: Collective with a reduction.

    Example:
        >>> result = mbd.strength(bar, [eta, 2 * eta], limit=355e6, count=2)
        >>> result.places[0].time, len(result.places)
        (1.0, 2)
        >>> brittle = mbd.strength(bar, eta, criterion="greatest principal", limit=200e6)

        A criterion that contains the mean stress, for materials that are weaker in tension:

        >>> def drucker_prager(sigma):
        ...     s = ufl.dev(sigma)
        ...     return 0.8 * ufl.sqrt(1.5 * ufl.inner(s, s)) + 0.2 * ufl.tr(sigma)
        >>> mbd.strength(bar, eta, criterion=drucker_prager, limit=250e6).criterion
        'drucker_prager'
    """
    instance("source", source, (Reduction, Recovery, MeshBody, MeshRecovery, ReducedBody))
    integer("count", count, low=1)
    if not callable(criterion):
        choice("criterion", criterion, get_args(CriterionName))
    if isinstance(source, ReducedBody):
        result = _body_stresses(source, history, criterion)
        cure = "give the reduction, or compare the points of each material with its own strength"
        warn_of_several_materials(source, "one strength", cure)
    else:
        result = _mesh_stresses(source, history, criterion)
    _warn_of_models(result.body, result.materials, criterion)
    limits = _limits(result.materials, limit)
    warn_of_units("limit", limits)
    strengths = np.array(list(limits.values()))
    utilization = np.maximum(result.stress, 0.0) / strengths[result.group]
    size = result.size
    radius = APART * size if apart is None else number("apart", apart, positive=True, unit="m")
    places: list[WeakPlace] = []
    for k, (name, material_limit) in enumerate(limits.items()):
        of_material = (result.group == k) & (utilization > 0)
        worst = worst_places(
            result.comm,
            result.points,
            np.where(of_material, utilization, -np.inf),
            result.time,
            result.interfaces,
            count=int(count),
            apart=radius,
            size=size,
        )
        places += [
            WeakPlace(
                factor=1 / place.value,
                stress=place.value * material_limit,
                time=place.time,
                position=place.position,
                material=name,
                interface=place.interface,
                distance=place.distance,
            )
            for place in worst
        ]
    return Strength(
        criterion if isinstance(criterion, str) else getattr(criterion, "__name__", "criterion"),
        MappingProxyType(limits),
        result.points,
        result.stress,
        result.time,
        utilization,
        tuple(sorted(places, key=lambda place: place.factor)),
        result.locations,
        isinstance(history, LoadCases),
        result.body,
    )


class _Stresses(NamedTuple):
    """Greatest equivalent stress at the points of this rank, and the materials there.

    The points are those of a recovery in the owned cells or, without a mesh, the nodes of the
    stress modes, which every rank has.
    """

    body: ReducedBody | None  # None for a mesh body
    interfaces: Iterable[Any]  # of the body; each weak place names the nearest one
    points: Array  # positions, (points, 3), m
    stress: Array  # greatest over time, (points,), Pa
    time: Array  # instant of this stress, (points,), s, or the number of its load case
    group: NDArray[np.int64]  # index of the material, (points,)
    materials: Mapping[str, AnyMaterial | None]
    size: float  # size of the body, m
    comm: Any = None  # communicator of the mesh; None without a mesh
    locations: Points | None = None  # cells and dofs of `points`, for fields; None without a mesh


def _body_stresses(body: ReducedBody, history: Any, criterion: Any) -> _Stresses:
    """Return the greatest stress at the nodes of the stress modes of a body without its mesh."""
    if body.stress is None:
        raise InputError(
            f"body {body.name!r} has no stress modes: give the reduction, or add them before the "
            "body is saved, body.replace(stress=mbd.durability.skin_stress(reduction))",
            argument="source",
            value=body,
        )
    if not isinstance(criterion, str):
        raise InputError(
            "a criterion as UFL needs the mesh: give the reduction, or use the name of a criterion",
            argument="criterion",
            value=criterion,
        )
    extreme, sign = _critical_extreme(criterion)
    stress, time = body.stress.envelope(criterion, history, extreme=extreme)
    points = body.stress.points
    group = np.zeros(len(points), dtype=np.int64)
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    stress *= sign
    return _Stresses(body, body.interfaces, points, stress, time, group, {"body": None}, size)


def _mesh_stresses(source: Source, history: Any, criterion: Any) -> _Stresses:
    """Return the greatest stress at the points of a recovery on this rank; see `strength`."""
    recovery = any_recovery_of(source)
    mesh = recovery.space.mesh
    body = None if isinstance(recovery, MeshRecovery) else recovery.reduction.body
    if isinstance(criterion, str):
        _, sign = _critical_extreme(criterion)
        stress, when, _ = recovery.extremes(history, criterion, sign)
        stress = sign * stress
    elif isinstance(recovery, MeshRecovery):
        sigma = recovery.stress()
        value = _checked_criterion(criterion, sigma)
        stress, when, _ = recovery.extremes(history, lambda u: value, 1.0)
    else:
        time, factors = recovery.motion(history)
        stress, row = _greatest_values(recovery, factors, criterion)
        when = time[row]
    return _Stresses(
        body,
        recovery.interfaces,
        recovery.positions(),
        stress,
        when,
        _groups(recovery),
        _materials_by_name(recovery.materials),
        body_size(mesh),
        mesh.comm,
        recovery.points,
    )


def _checked_criterion(criterion: Callable[[Any], Any], sigma: Any) -> Expr:
    """Return the value of a criterion as UFL."""
    value = criterion(sigma)
    if not isinstance(value, Expr) or value.ufl_shape != ():
        expected = "a function of the stress (UFL, shape (3, 3)) that returns a scalar as UFL"
        reject("criterion", criterion, expected, InputTypeError)
    return value


def _critical_extreme(criterion: str) -> tuple[Literal["greatest", "least"], float]:
    """Return which extreme of a quantity is critical, and its sign in the equivalent stress."""
    return ("least", -1.0) if criterion == "least principal" else ("greatest", 1.0)


def _greatest_values(
    recovery: Recovery, factors: Array, criterion: Callable[[Any], Any]
) -> tuple[Array, NDArray[np.int64]]:
    """Return the greatest value of a UFL criterion at each point, and the index of its instant.

    `factors` are those of `recovery.displacements` at each instant, shape (nt, m).
    """
    space, points = recovery.space, recovery.points
    u = fem.Function(space)
    recovery.stress_components(u)  # raises an error if the stress law is not known
    assert recovery.stress is not None
    sigma = recovery.stress(u)
    if sigma.ufl_shape == (2, 2):
        # Plane stress: the components in the third direction are zero
        rows = [[sigma[i, 0], sigma[i, 1], 0.0] for i in range(2)]
        sigma = ufl.as_matrix([*rows, [0.0, 0.0, 0.0]])
    value = _checked_criterion(criterion, sigma)
    compiled = compiled_expression(value, points.reference)
    count = len(points.cells) * len(points.reference)
    best, best_row = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
    finite = True
    for row, instant in enumerate(factors):
        as_function(space, recovery.displacements @ instant, u)
        values = np.asarray(compiled.eval(points.mesh, points.cells)).reshape(-1)
        finite = finite and bool(np.isfinite(values).all())
        better = values > best
        best[better], best_row[better] = values[better], row
    message = "the criterion is not finite at some points; check it for a division by zero"
    raise_together(space.mesh.comm, None if finite else message)
    return best, best_row


def _materials_by_name(materials: BodyMaterials | None) -> dict[str, AnyMaterial | None]:
    """Return the only material by its name, or several materials by their groups of cells."""
    if materials is None:
        return {"body": None}
    if materials.cells is None:
        (material,) = materials.by_group.values()
        return {material.name or "body": material}
    return dict(materials.by_group)


def _groups(recovery: Recovery | MeshRecovery) -> NDArray[np.int64]:
    """Return the index of the material at each point of this rank."""
    points, materials = recovery.points, recovery.materials
    cells = np.zeros(len(points.cells), dtype=np.int64)
    if materials is not None and materials.cells is not None:
        for k, group in enumerate(materials.cells):
            cells[group] = k
    return np.repeat(cells, len(points.reference))


def _limits(
    materials: Mapping[str, AnyMaterial | None], limit: str | float | Mapping[str, float]
) -> dict[str, float]:
    """Return the strength of each material, Pa."""
    if isinstance(limit, Mapping):
        for name in limit:
            if name not in materials:
                unknown("material", name, materials, "the body has")
        missing = [name for name in materials if name not in limit]
        if missing:
            reject("limit", limit, f"a strength for {', '.join(map(repr, missing))} too, in Pa")
        return {n: number(f"limit[{n!r}]", limit[n], low=1.0, unit="Pa") for n in materials}
    if not isinstance(limit, str):
        value = number("limit", limit, low=1.0, unit="Pa")
        return dict.fromkeys(materials, value)
    attribute = f"{choice('limit', limit, LIMITS)}_strength"
    values: dict[str, Any] = {n: getattr(m, attribute, None) for n, m in materials.items()}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise InputError(
            f"the {limit} strength of {', '.join(map(repr, missing))} is not known: give limit= in "
            f"Pa, or Material(..., {attribute}=...)",
            argument="limit",
            value=limit,
            expected="a strength in Pa",
        )
    return values


def _warn_of_models(
    body: ReducedBody | None, materials: Mapping[str, AnyMaterial | None], criterion: Any
) -> None:
    """Warn of a prestress, which is not included, and of orthotropic materials."""
    orthotropic = [name for name, m in materials.items() if isinstance(m, Orthotropic)]
    if orthotropic and isinstance(criterion, str):
        text = (
            f"{', '.join(map(repr, orthotropic))} is orthotropic, and {criterion} is a criterion "
            "of isotropic materials: give a function of the stress as the criterion"
        )
        warn(ModelRangeWarning(text))
    if body is not None:
        warn_of_prestress(body, "safety factors", "add it in a criterion")
