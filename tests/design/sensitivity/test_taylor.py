"""Taylor tests: every kind of parameter, and every array of the derivative of a body.

The remainder of a new reduction, A(s) - A(0) - s A', decreases with the square of the step s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import compute_midpoints, create_rectangle, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI
from scipy.linalg import block_diag, polar

import dolfinx_mbd as mbd
from dolfinx_mbd.body.tree import part_fields
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.linalg.blocks import gram
from tests.models.bodies import HEIGHT, LENGTH, box

COMM = MPI.COMM_WORLD
STEEL, ALUMINIUM = mbd.STEEL, mbd.forms.ALUMINIUM
POINT = np.array([LENGTH / 2, HEIGHT / 2, 0.0])  # a node, which moves with the velocity exactly
INTERFACES = {"left": mbd.InterfaceSpec(), "right": mbd.InterfaceSpec(kind="averaged")}
Velocity = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Kind:
    """A kind of parameter: the model at a step from the base, the parameter, and the step.

    The velocity of a shape moves the nodes and the material point.
    """

    model: Callable[[float], Any]
    parameter: Callable[[Any], mbd.Parameter]
    step: float
    velocity: Velocity = np.zeros_like


def solid(velocity: Velocity = np.zeros_like, s: float = 0.0) -> mbd.fem.TaggedMesh:
    """Return a box of two groups of cells whose nodes move with s times a velocity."""
    tagged = box(COMM, cells=(2, 2, 1))
    mesh = tagged.mesh
    cells = np.arange(mesh.topology.index_map(3).size_local, dtype=np.int32)
    upper = compute_midpoints(mesh, 3, cells)[:, 1] > HEIGHT / 2
    tags = meshtags(mesh, 3, cells, np.where(upper, 2, 1).astype(np.int32))
    x = mesh.geometry.x
    x += s * velocity(x.T).T
    groups = {k: v for k, v in tagged.groups.items() if v[0] == 2}
    return mbd.fem.TaggedMesh(
        mesh, tags, tagged.facet_tags, {**groups, "low": (3, 1), "up": (3, 2)}
    )


def plate(s: float) -> mbd.ElasticModel:
    """Return a plane body of thickness 10 mm (1 + s)."""
    mesh = create_rectangle(COMM, [(0.0, 0.0), (LENGTH, HEIGHT)], [6, 2])
    mesh.topology.create_connectivity(1, 2)
    ends = [on_boundary(mesh, 1, lambda x, at=at: np.isclose(x[0], at)) for at in (0.0, LENGTH)]
    tags = np.repeat([1, 2], [len(a) for a in ends]).astype(np.int32)
    order = np.argsort(np.concatenate(ends))
    facet_tags = meshtags(mesh, 1, np.concatenate(ends)[order], tags[order])
    tagged = mbd.fem.TaggedMesh(mesh, None, facet_tags, {"left": (1, 1), "right": (1, 2)})
    return mbd.ElasticModel(tagged, STEEL, plane="stress", thickness=0.01 * (1 + s))


def steel(**constants: float) -> Any:
    """Return steel whose constants are multiplied by factors."""
    return replace(STEEL, **{k: getattr(STEEL, k) * v for k, v in constants.items()})


def wavy(x: Any) -> np.ndarray:
    """Return a velocity of all nodes that is not linear, and not zero at the ends."""
    bulge = x[0] * (LENGTH - x[0]) / LENGTH**2
    return np.array([x[0] + 0.3 * bulge * x[1], 2 * bulge * x[1] + 0.1 * x[0], 0.2 * x[2]])


def wavy_ufl(x: Any) -> Any:
    """Return the velocity `wavy` as a UFL expression."""
    bulge = x[0] * (LENGTH - x[0]) / LENGTH**2
    parts = [x[0] + 0.3 * bulge * x[1], 2 * bulge * x[1] + 0.1 * x[0], 0.2 * x[2]]
    return ufl.as_vector(parts)


def graded(s: float) -> mbd.ElasticModel:
    """Return a bar whose material varies along its axis.

    The function of the material is an attribute of the model.
    """
    mesh = solid()
    f = fem.Function(fem.functionspace(mesh.mesh, ("Lagrange", 1)))
    f.interpolate(lambda x: 1 + 0.2 * np.cos(9 * x[0]) + s * np.sin(20 * x[0]))
    material = mbd.forms.GradedMaterial(young=210e9 * f * f, poisson=0.3, density=7850.0 * f)
    model = mbd.ElasticModel(mesh, material)
    object.__setattr__(model, "_function", f)
    return model


def graded_parameter(model: Any) -> mbd.Parameter:
    """Return the parameter that changes the function of a graded material."""
    f = model._function
    direction = fem.Function(f.function_space)
    direction.interpolate(lambda x: np.sin(20 * x[0]))
    return mbd.Parameter("p", "coefficient", coefficient=f, direction=direction)


def function_parameter(model: Any) -> mbd.Parameter:
    """Return a change of shape whose velocity is a function on the mesh."""
    velocity = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,))))
    velocity.interpolate(wavy)
    return mbd.Parameter("p", "shape", velocity=velocity)


def stretched(x: Any) -> np.ndarray:
    """Return the velocity by `extended_velocity` of a box whose right end moves along x."""
    return np.array([x[0] / LENGTH, 0 * x[0], 0 * x[0]])


def extended_parameter(model: Any) -> mbd.Parameter:
    """Return a change of shape whose velocity is extended from the ends of the box."""
    mesh = solid()  # the same as that of the model at s = 0
    velocity = mbd.design.extended_velocity(mesh, {"right": (1.0, 0.0, 0.0)}, fixed=["left"])
    same = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,))))
    same.x.array[:] = velocity.x.array
    return mbd.Parameter("p", "shape", velocity=same)


def constant(quantity: Any, value: float) -> Kind:
    """Return the test of a constant of steel, whose `value` increases by s."""

    def model(s: float) -> mbd.ElasticModel:
        return mbd.ElasticModel(solid(), steel(**{quantity: 1 + s / value}))

    return Kind(model, lambda m: mbd.Parameter("p", quantity), 0.02 * value)


def of_group(quantity: Any, value: float) -> Kind:
    """Return the test of a constant of steel in the group "up"; "low" consists of aluminium."""

    def model(s: float) -> mbd.ElasticModel:
        materials = {"low": ALUMINIUM, "up": steel(**{quantity: 1 + s / value})}
        return mbd.ElasticModel(solid(), materials)

    return Kind(model, lambda m: mbd.Parameter("p", quantity, group="up"), 0.02 * value)


PLY = mbd.forms.Orthotropic(
    young=(140e9, 10e9, 12e9),
    poisson=(0.3, 0.28, 0.4),
    shear=(5e9, 4.5e9, 3.5e9),
    density=1600.0,
    axes=[[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]],
)


def of_ply(quantity: Any, index: int, step: float) -> Kind:
    """Return the test of a constant of the ply, the entry `index` of a triple of constants."""
    name = quantity.partition("_")[0]

    def model(s: float) -> mbd.ElasticModel:
        values = list(getattr(PLY, name))
        values[index] += s
        return mbd.ElasticModel(solid(), replace(PLY, **{name: values}))

    return Kind(model, lambda m: mbd.Parameter("p", quantity), step)


def prestressed(quantity: Any, step: float) -> Kind:
    """Return the test of a prestress: by a temperature that varies over the height, or a stress."""

    def model(s: float) -> mbd.ElasticModel:
        mesh, material = solid(), STEEL
        y = ufl.SpatialCoordinate(mesh.mesh)[1]
        stress: Any = mbd.forms.Temperature(4e7 * y * y + (s if quantity == "temperature" else 0.0))
        if quantity == "prestress":
            stress = 4e12 * (1 + s) * y * y * ufl.as_matrix(np.diag([1.0, 0, 0]).tolist())
        elif quantity == "thermal_expansion":
            material = replace(STEEL, thermal_expansion=STEEL.thermal_expansion + s)
        return mbd.ElasticModel(mesh, material, prestress=stress)

    return Kind(model, lambda m: mbd.Parameter("p", quantity), step)


def shape(parameter: Callable[[Any], mbd.Parameter], velocity: Velocity, step: float) -> Kind:
    """Return the test of a change of shape."""

    def model(s: float) -> mbd.ElasticModel:
        return mbd.ElasticModel(solid(velocity, s), STEEL)

    return Kind(model, parameter, step, velocity)


KINDS = {
    "young": constant("young", STEEL.young),
    "poisson": constant("poisson", STEEL.poisson),
    "density": constant("density", STEEL.density),
    "young of a group": of_group("young", STEEL.young),
    "density of a group": of_group("density", STEEL.density),
    "thickness": Kind(lambda s: plate(s / 0.01), lambda m: mbd.Parameter("p", "thickness"), 2e-4),
    "Young's modulus of a ply": of_ply("young_2", 1, 4e8),
    "Poisson's ratio of a ply": of_ply("poisson_12", 0, 0.02),
    "shear modulus of a ply": of_ply("shear_12", 0, 1e8),
    "temperature": prestressed("temperature", 2.0),
    "prestress": prestressed("prestress", 0.05),
    "thermal expansion": prestressed("thermal_expansion", 1e-6),
    "coefficient": Kind(graded, graded_parameter, 0.02),
    "shape, UFL": shape(
        lambda m: mbd.Parameter(
            "p", "shape", velocity=wavy_ufl(ufl.SpatialCoordinate(m.plain_mesh))
        ),
        wavy,
        4e-3,
    ),
    "shape, function": shape(function_parameter, wavy, 4e-3),
    "shape, extended": shape(extended_parameter, stretched, 4e-3 * LENGTH),
}


def reduced(kind: Kind, s: float) -> mbd.reduction.Reduction:
    """Return the reduction of the model of a test at the change s of its parameter."""
    model = kind.model(s)
    position = POINT + s * kind.velocity(POINT)
    if model.plain_mesh.geometry.dim == 2:
        position[2] = 0.0
    x = ufl.SpatialCoordinate(model.plain_mesh)
    zero = [0 * x[0]] * (model.plain_mesh.geometry.dim - 2)
    field = mbd.reduction.body_force((1e5 * x[1], 2e4, *zero))
    base = mbd.reduce(
        model,
        interfaces=INTERFACES,
        num_modes=4,
        points={"p": position},
        options=mbd.ReductionOptions(loads={"field": field}, damping=mbd.body.Rayleigh(3.0, 1e-6)),
    )
    return replace(base, body=base.body.replace(stress=mbd.durability.skin_stress(base)))


def numbers(base: mbd.reduction.Reduction, other: mbd.reduction.Reduction) -> dict[str, np.ndarray]:
    """Return the arrays of a reduction in the coordinates that are closest to those of `base`."""
    problem = elastic_problem(base.model)
    cross = gram(COMM, problem.apply_mass(base.modes), other.modes)
    problem.destroy()
    W = polar(cross)[0].T
    T, body = block_diag(1.0, W), other.body
    loads = [replace(p, modes=W.T @ p.modes, moments=W.T @ p.moments) for p in body.loads]
    values = {
        "total_mass": np.array(body.total_mass),
        "first_moments": T.T @ body.first_moments,
        "second_moments": np.einsum("ki,klab,lj->ijab", T, body.second_moments, T),
        "stiffness": W.T @ body.stiffness @ W,
        "frequencies": body.frequencies,
        "interface_points": np.array([i.point for i in body.interfaces]),
        "interface_motions": np.array([i.motion @ W for i in body.interfaces]),
        "positions": np.array([p.position for p in body.points]),
        "point_modes": np.array([W.T @ p.modes for p in body.points]),
        "centre": body.centre,
        "central_inertia": body.central_inertia,
        "inertia": body.inertia,
        "damping": W.T @ body.damping @ W,
        "stress": body.stress.stress @ W,
        "loads": in_one(loads),
        "effective_masses": of_masses(body.effective_masses),
    }
    if body.stiffening is not None:
        values["spin_stiffening"] = W.T @ body.stiffening.spin @ W
        values["interface_stiffening"] = W.T @ body.stiffening.interfaces @ W
    if body.skin is not None:
        values["skin_positions"] = body.skin.points
        values["skin_modes"] = np.einsum("ki,kpa->ipa", W, body.skin.modes)
    return values


def in_one(loads: Sequence[mbd.body.LoadPattern]) -> np.ndarray:
    """Return all numbers of all loads in one array."""
    parts = [(p.force, p.moment, p.modes, p.moments.ravel()) for p in loads]
    return np.concatenate([np.concatenate(part) for part in parts])


def of_masses(masses: mbd.body.EffectiveMasses) -> np.ndarray:
    """Return frequencies times 1e-4, so that they are of order one, and shares, (modes, ·)."""
    return np.column_stack([1e-4 * masses.frequencies, masses.shares])


ONE: dict[str, Callable[[Any], np.ndarray]] = {"loads": in_one, "effective_masses": of_masses}


@cache
def expansions(name: str) -> dict[str, tuple[np.ndarray, list[np.ndarray]]]:
    """Return the values and the remainders for the steps s and s/2, by the name of the array."""
    kind = KINDS[name]
    base = reduced(kind, 0.0)
    derivative = mbd.sensitivities(base, [kind.parameter(base.model)])["p"]
    values = numbers(base, base)
    remainders: dict[str, list[np.ndarray]] = {}
    for s in (kind.step, kind.step / 2):
        changed = reduced(kind, s)
        for key, value in numbers(base, changed).items():
            slope = getattr(derivative, key)
            change = value - values[key] - s * ONE.get(key, lambda x: x)(slope)
            remainders.setdefault(key, []).append(change)
    return {k: (v, remainders[k]) for k, v in values.items()}


ARRAYS = (
    "total_mass", "first_moments", "second_moments", "stiffness", "frequencies", "interface_points",
    "interface_motions", "positions", "point_modes", "spin_stiffening", "interface_stiffening",
    "skin_positions", "skin_modes", "centre", "central_inertia", "inertia", "damping", "stress",
    "loads", "effective_masses",
)  # fmt: skip


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("name", KINDS)
def test_remainder(name: str, array: str) -> None:
    value, (first, second) = expansions(name)[array]
    size = np.abs(value).max(initial=0.0)
    errors = [COMM.allreduce(float(np.abs(r).max(initial=0.0)), MPI.MAX) for r in (first, second)]
    if errors[0] <= 1e-9 * size:
        return  # linear in the parameter up to round-off
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1


def test_every_array_is_compared() -> None:
    """Only gauges, bores and fields that are no derivatives are missing; they have other tests."""
    others = {"arrays", "gauges", "bores", "limits", "second_order"}
    names = {f.name for f in fields(mbd.design.BodyDerivative)}
    names |= {k for k, v in vars(mbd.design.BodyDerivative).items() if isinstance(v, property)}
    assert names - others == set(ARRAYS)
    parts = {"interfaces", "points", "skin", "stiffening", "stress", "loads", "effective_masses"}
    tables = {"modes", "left_out"}  # descriptions of modes; their frequencies are in `ARRAYS`
    assert set(part_fields(mbd.ReducedBody)) - others == parts | tables
