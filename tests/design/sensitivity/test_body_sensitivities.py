"""Derivatives of reduced bodies: identities (V17), and central differences of new reductions.

V17 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import basix.ufl
import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import (
    compute_midpoints,
    create_box,
    create_interval,
    create_mesh,
    create_rectangle,
    meshtags,
)
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body.tree import leaves
from dolfinx_mbd.design.sensitivity.mode_derivatives import mass_product
from dolfinx_mbd.design.sensitivity.parameters import matrix_derivatives
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.shifted_systems import ShiftedSystems
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, dynamic_stiffness

ENDS = ["left", "right"]
MIDDLE = np.array([LENGTH / 2, HEIGHT / 2, WIDTH / 2])


def reduced(
    model: Any, middle: np.ndarray = MIDDLE, kinds: tuple[Any, Any] = ("rigid", "rigid")
) -> mbd.reduction.Reduction:
    """Return the reduction of a model to four modes, with a point in its middle."""
    points = {"middle": middle}
    ends = {k: mbd.InterfaceSpec(kind=kind) for k, kind in zip(ENDS, kinds, strict=True)}
    return mbd.reduce(model, interfaces=ends, num_modes=4, points=points)


def aligned(base: mbd.reduction.Reduction, other: mbd.reduction.Reduction) -> dict[str, np.ndarray]:
    """Return the arrays of a reduction in the coordinates that are closest to those of `base`."""
    problem = elastic_problem(base.model)
    cross = gram(problem.comm, problem.apply_mass(base.modes), other.modes)
    problem.destroy()
    W = scipy.linalg.polar(cross)[0].T  # orthogonal
    T = scipy.linalg.block_diag(1.0, W)  # index 0 of moments belongs to the undeformed body
    body = other.body
    return {
        "total_mass": np.array(body.total_mass),
        "first_moments": T.T @ body.first_moments,
        "second_moments": np.einsum("ki,klab,lj->ijab", T, body.second_moments, T),
        "stiffness": W.T @ body.stiffness @ W,
        "interface_points": np.array([i.point for i in body.interfaces]),
        "interface_motions": np.array([i.motion @ W for i in body.interfaces]),
        "positions": np.array([p.position for p in body.points]),
        "point_modes": np.array([W.T @ p.modes for p in body.points]),
        "spin_stiffening": W.T @ body.stiffening.spin @ W,
        "interface_stiffening": W.T @ body.stiffening.interfaces @ W,
        "skin_positions": body.skin.points,
        "skin_modes": np.einsum("ki,kpa->ipa", W, body.skin.modes),
    }


def check_differences(
    make: Callable[[float], Any],
    parameter: Callable[[Any], mbd.Parameter],
    step: float,
    middle: Callable[[float], np.ndarray] = lambda s: MIDDLE,
    kinds: tuple[Any, Any] = ("rigid", "rigid"),
) -> None:
    """Compare derivatives with differences of fourth order of four new reductions to 1e-6."""
    base = reduced(make(0.0), kinds=kinds)
    quantity = parameter(base.model)
    derivative = mbd.sensitivities(base, [quantity])[quantity.name]
    values = [
        aligned(base, reduced(make(s), middle(s), kinds)) for s in step * np.array([-2, -1, 1, 2])
    ]
    for name in values[0]:
        a, b, c, d = (v[name] for v in values)
        difference = (8 * (c - b) - (d - a)) / (12 * step)  # fourth order
        exact = getattr(derivative, name)
        # the second size allows an error of 1e-12 |b| / step, from the round-off of reductions
        size = max(np.abs(difference).max(), 1e-3 * np.abs(b).max() / step * 1e-3)
        assert np.abs(exact - difference).max() <= 1e-6 * size, name


def test_poisson(comm: MPI.Intracomm) -> None:
    def make(s: float) -> mbd.ElasticModel:
        return mbd.ElasticModel(box(comm), replace(mbd.STEEL, poisson=0.3 + s))

    check_differences(make, lambda model: mbd.Parameter("nu", "poisson"), 1e-3)


def field_model(comm: MPI.Intracomm, s: float) -> mbd.ElasticModel:
    """Return a bar whose stiffness and density vary along its axis with the parameter s."""
    mesh = box(comm)
    f = fem.Function(fem.functionspace(mesh.mesh, ("Lagrange", 1)))
    f.interpolate(lambda x: 1 + s * np.sin(20 * x[0]) ** 2)
    material = mbd.forms.GradedMaterial(young=210e9 * f * f, poisson=0.3, density=7850.0 * f)
    model = mbd.ElasticModel(mesh, material)
    direction = fem.Function(f.function_space)
    direction.interpolate(lambda x: np.sin(20 * x[0]) ** 2)
    FIELDS[id(model)] = f, direction
    return model


FIELDS: dict[int, Any] = {}  # coefficient and direction by the `id` of their model


def test_field(comm: MPI.Intracomm) -> None:
    def parameter(model: mbd.ElasticModel) -> mbd.Parameter:
        f, direction = FIELDS[id(model)]
        return mbd.Parameter("field", "coefficient", coefficient=f, direction=direction)

    check_differences(lambda s: field_model(comm, s), parameter, 1e-3)


def moved(comm: MPI.Intracomm, velocity: Callable[[Any], np.ndarray], s: float) -> Any:
    """Return a box whose nodes are moved by s times a velocity."""
    mesh = box(comm)
    x = mesh.mesh.geometry.x
    x += s * velocity(x.T).T
    return mbd.ElasticModel(mesh, mbd.STEEL)


@pytest.mark.parametrize("kinds", [("rigid", "rigid"), ("averaged", "rigid"), ("averaged",) * 2])
def test_shape(comm: MPI.Intracomm, kinds: tuple[Any, Any]) -> None:
    """The bar gets longer, and thicker in the middle; its ends turn and shift."""

    def velocity(x: Any) -> np.ndarray:
        bulge = x[0] * (LENGTH - x[0]) / LENGTH**2
        return np.array([x[0] + 0.3 * bulge * x[1], 2 * bulge * x[1] + 0.1 * x[0], 0.2 * x[2]])

    def parameter(model: mbd.ElasticModel) -> mbd.Parameter:
        nodes = fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,)))
        f = fem.Function(nodes)
        f.interpolate(velocity)
        return mbd.Parameter("shape", "shape", velocity=f)

    def middle(s: float) -> np.ndarray:
        return MIDDLE + s * velocity(MIDDLE)

    check_differences(lambda s: moved(comm, velocity, s), parameter, 1e-3, middle, kinds)


def test_identities(comm: MPI.Intracomm) -> None:
    """E df/dE = f/2, ρ df/dρ = -f/2; under uniform scaling f' = -f, m' = 3m, H' = 5H.

    H = ∫ρ x xᵀ contains the second moments of the undeformed body.
    """
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    base = reduced(model)
    body, x = base.body, ufl.SpatialCoordinate(model.plain_mesh)
    table = mbd.sensitivities(
        base,
        [
            mbd.Parameter("E", "young"),
            mbd.Parameter("rho", "density"),
            mbd.Parameter("size", "shape", velocity=x),
        ],
    )
    f = np.sqrt(np.diag(body.stiffness)) / (2 * np.pi)
    assert table["E"].frequencies * 210e9 == pytest.approx(f / 2, rel=1e-8)
    assert table["rho"].frequencies * 7850 == pytest.approx(-f / 2, rel=1e-8)
    assert table["size"].frequencies == pytest.approx(-f, rel=1e-8)
    assert table["size"].total_mass == pytest.approx(3 * body.total_mass, rel=1e-10)
    held = body.effective_masses.frequencies  # with fixed interfaces; the shares are constant
    for name, slope in (("E", held / 2 / 210e9), ("rho", -held / 2 / 7850), ("size", -held)):
        masses = table[name].effective_masses
        assert masses.frequencies == pytest.approx(slope, rel=1e-8)
        assert np.abs(masses.shares).max() <= 1e-7 * np.abs(slope / held).max()
    second = table["size"].second_moments[0, 0]
    assert np.allclose(second, 5 * body.second_moments[0, 0], rtol=1e-10)


def test_first_order(comm: MPI.Intracomm) -> None:
    """The error of the dynamic stiffness decreases with the square of the step (slope 2)."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    parameters = [
        mbd.Parameter("nu", "poisson"),
        mbd.Parameter("length", "shape", velocity=ufl.as_vector([x[0], 0 * x[0], 0 * x[0]])),
    ]
    table = mbd.sensitivities(reduced(model), parameters)
    omega = 2 * np.pi * 900.0
    errors = []
    for step in (0.02, 0.01):
        mesh = box(comm, size=(LENGTH * (1 + step), HEIGHT, WIDTH))
        changed = mbd.ElasticModel(mesh, replace(mbd.STEEL, poisson=0.3 - step))
        middle = MIDDLE * np.array([1 + step, 1, 1])
        exact = dynamic_stiffness(reduced(changed, middle).body, omega)
        first = dynamic_stiffness(table.at({"nu": 0.3 - step, "length": step}), omega)
        errors.append(np.abs(first - exact).max() / np.abs(exact).max())
    assert errors[0] < 0.02
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)


PAIRS = [("E", "rho"), ("E", "L"), ("rho", "L"), ("nu", "L"), ("nu", "belly"), ("L", "belly")]


@pytest.mark.filterwarnings("ignore:the estimated error")
@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_estimated_error_of_two_parameters(comm: MPI.Intracomm, sign: int) -> None:
    """The estimate is at least 0.95 of the deviation of a new reduction, and not much larger."""
    names = ("E", "nu", "rho", "L", "belly")
    steps = dict(zip(names, 0.03 * np.array([1, 1, 1, 1, 3]), strict=True))

    def velocity(name: str, x: Any) -> list[Any]:
        belly = x[0] * (LENGTH - x[0]) / LENGTH**2 * x[1]
        return [x[0], 0 * x[0], 0 * x[0]] if name == "L" else [0 * x[0], belly, 0 * x[0]]

    def model(**s: float) -> mbd.ElasticModel:
        mesh = box(comm)
        x = mesh.mesh.geometry.x.T.copy()
        mesh.mesh.geometry.x[:] += sum(
            s.get(k, 0.0) * np.array(velocity(k, x)).T for k in ("L", "belly")
        )
        E, nu, rho = (s.get(k, 0.0) for k in ("E", "nu", "rho"))
        material = replace(
            mbd.STEEL, young=210e9 * (1 + E), poisson=0.3 + nu, density=7850 * (1 + rho)
        )
        return mbd.ElasticModel(mesh, material)

    base = model()
    x = ufl.SpatialCoordinate(base.plain_mesh)
    quantities: Any = {"E": "young", "nu": "poisson", "rho": "density"}
    parameters = [mbd.Parameter(k, q) for k, q in quantities.items()]
    for k in ("L", "belly"):
        V = ufl.as_vector(velocity(k, x))
        parameters.append(mbd.Parameter(k, "shape", velocity=V))
    table = mbd.sensitivities(reduced(base), parameters)
    units = {"E": 210e9, "rho": 7850.0}
    for a, b in PAIRS:
        change = {a: steps[a], b: sign * steps[b]}
        values = {k: table.base[k] + units.get(k, 1.0) * s for k, s in change.items()}
        exact = reduced(model(**change)).body.frequencies ** 2
        deviation = np.abs(table.at(values).frequencies ** 2 / exact - 1).max()
        assert 0.95 * deviation <= table.error(values) <= 0.15, (a, b)


def test_free_and_attached_bodies(comm: MPI.Intracomm) -> None:
    """The identities hold for a body without interfaces, and for one whose frame is attached."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    parameters = [mbd.Parameter("rho", "density"), mbd.Parameter("size", "shape", velocity=x)]
    free = mbd.reduce(model, interfaces=[], num_modes=4)
    attached = mbd.reduce(model, interfaces=ENDS, num_modes=4, attached_to="left")
    for base in (free, attached):
        table, f = mbd.sensitivities(base, parameters), base.body.frequencies
        assert table["rho"].frequencies * 7850 == pytest.approx(-f / 2, rel=1e-8)
        assert table["size"].frequencies == pytest.approx(-f, rel=1e-8)
        assert table.at({"size": 0.01}).frequencies == pytest.approx(0.99 * f, rel=1e-3)


def test_materials_and_thickness(comm: MPI.Intracomm) -> None:
    """Σ E_g df/dE_g = f/2 over the materials; the stiffness of a plate does not depend on h."""
    mesh = create_rectangle(comm, [(0.0, 0.0), (0.2, 0.05)], [8, 3])
    cells = np.arange(mesh.topology.index_map(2).size_local, dtype=np.int32)
    right = compute_midpoints(mesh, 2, cells)[:, 0] > 0.1
    tags = meshtags(mesh, 2, cells, np.where(right, 2, 1).astype(np.int32))
    tagged = mbd.fem.TaggedMesh(mesh, cell_tags=tags, groups={"left": (2, 1), "right": (2, 2)})
    plate = mbd.ElasticModel(
        tagged,
        {"left": mbd.STEEL, "right": mbd.forms.ALUMINIUM},
        plane="stress",
        thickness=0.01,
    )
    base = mbd.reduce(plate, interfaces=[], num_modes=3)
    parameters = [
        mbd.Parameter("E1", "young", group="left"),
        mbd.Parameter("E2", "young", group="right"),
        mbd.Parameter("h", "thickness"),
    ]
    table, f = mbd.sensitivities(base, parameters), base.body.frequencies
    total = table["E1"].frequencies * 210e9 + table["E2"].frequencies * 70e9
    assert total == pytest.approx(f / 2, rel=1e-8)
    assert np.abs(table["h"].frequencies * 0.01 / f).max() < 1e-9
    assert table["h"].total_mass == pytest.approx(base.body.total_mass / 0.01, rel=1e-12)


def test_extended_velocity(comm: MPI.Intracomm) -> None:
    """If one end of a bar moves along x, the velocity is x/L; no end may be moved and fixed."""
    mesh = box(comm)
    velocity = mbd.design.extended_velocity(mesh, {"right": (1.0, 0.0, 0.0)}, fixed=["left"])
    exact = fem.Function(velocity.function_space)
    exact.interpolate(lambda x: np.array([x[0] / LENGTH, 0 * x[0], 0 * x[0]]))
    assert np.abs(velocity.x.array - exact.x.array).max() < 1e-9
    with pytest.raises(mbd.errors.InputError, match="both moved and fixed"):
        mbd.design.extended_velocity(mesh, {"right": (1.0, 0.0, 0.0)}, fixed=["right"])


def arrays(derivative: mbd.design.BodyDerivative) -> dict[str, np.ndarray]:
    """Return the numerical attributes of a derivative by their names."""
    values = {k: getattr(derivative, k) for k in derivative.__dataclass_fields__}
    values |= {place: value for place, _, value in leaves(derivative.arrays)}
    values |= {"total_mass": derivative.total_mass, "frequencies": derivative.frequencies}
    return {k: np.asarray(v) for k, v in values.items() if isinstance(v, (float, np.ndarray))}


@pytest.mark.parametrize("kind", ["rigid", "averaged", "none"])
def test_reducer(comm: MPI.Intracomm, kind: Any) -> None:
    """With the factors of a reducer, the derivatives are the same, also after `last=True`."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    stretch = ufl.as_vector([x[0], 0 * x[0], 0.1 * x[0]])
    parameters = [mbd.Parameter("nu", "poisson"), mbd.Parameter("L", "shape", velocity=stretch)]
    ends = {} if kind == "none" else {k: mbd.InterfaceSpec(kind=kind) for k in ENDS}
    with mbd.reduction.Reducer(model, interfaces=ends) as reducer:
        base = reducer.reduce(4)
        tables = [mbd.sensitivities(base, parameters, reducer=reducer)]
        base = reducer.reduce(4, last=True)
        tables.append(mbd.sensitivities(base, parameters, reducer=reducer))
    new = mbd.sensitivities(base, parameters)
    expected = {name: arrays(new[name]) for name in new}

    def size(name: str, key: str) -> float:
        return float(np.abs(expected[name][key]).max(initial=0.0))

    for table in tables:
        for name in new:
            for key, value in arrays(table[name]).items():
                round_off = 1e-12 * max(size(k, key) for k in new)  # some derivatives are zero
                error = np.abs(value - expected[name][key]).max(initial=0.0)
                assert error <= 1e-7 * size(name, key) + round_off, (name, key)


def test_reducer_of_a_beam(comm: MPI.Intracomm) -> None:
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    line = create_interval(comm, 4, [0.0, 0.5])
    bar = mbd.BeamModel(line, mbd.forms.Section.rectangle(0.02, 0.01), mbd.STEEL)
    beam = mbd.reduce_beam(bar, interfaces={"root": 0.0}, num_modes=2)
    with mbd.reduction.Reducer(model, interfaces=ENDS) as reducer:
        with pytest.raises(mbd.errors.InputError, match="a beam has no reducer"):
            mbd.sensitivities(beam, [mbd.Parameter("E", "young")], reducer=reducer)


def test_wrong_reducers(comm: MPI.Intracomm) -> None:
    """A reducer that is closed, or that has not computed the reduction, raises an error."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    parameters = [mbd.Parameter("E", "young")]
    with mbd.reduction.Reducer(model, interfaces=ENDS) as reducer:
        base = reducer.reduce(2)
        without_reducer = mbd.reduce(model, interfaces=ENDS, num_modes=2)
        with pytest.raises(mbd.errors.InputError, match="did not compute this reduction"):
            mbd.sensitivities(without_reducer, parameters, reducer=reducer)
    with pytest.raises(mbd.errors.InputError, match="the reducer is closed"):
        mbd.sensitivities(base, parameters, reducer=reducer)


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_zero_forces(comm: MPI.Intracomm, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes do not depend on E and ρ of a homogeneous body, so that no system is solved."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    ends = {k: mbd.InterfaceSpec(kind=kind) for k in ENDS}
    base = mbd.reduce(model, interfaces=ends, num_modes=4, stiffening=False)
    solved: list[int] = []
    solve = HeldStiffness.solve_moved

    def counted(self: HeldStiffness, loads: np.ndarray, *arguments: Any) -> np.ndarray:
        solved.append(loads.shape[1])
        return solve(self, loads, *arguments)

    monkeypatch.setattr(HeldStiffness, "solve_moved", counted)
    monkeypatch.setattr(ShiftedSystems, "_extend", None)  # an error if it is called
    parameters = [mbd.Parameter("E", "young"), mbd.Parameter("rho", "density")]
    table = mbd.sensitivities(base, parameters)
    assert solved == [0]  # one call for both parameters, without load vectors
    for name, scaled in (("E", 210e9), ("rho", -7850.0)):
        error = np.abs(table[name].stiffness * scaled - base.body.stiffness).max()
        assert error <= 1e-8 * base.body.stiffness.max()


@pytest.mark.parametrize("graded", [False, True])
def test_matrices_of_curved_cells(comm: MPI.Intracomm, graded: bool) -> None:
    """K′ and M′ are the derivatives of the matrices as assembled, also in curved cells."""

    def velocity(x: Any) -> np.ndarray:
        return np.array([x[0] + x[1] ** 2 / HEIGHT, x[1] * np.sin(20 * x[0]), x[0] * x[2] / LENGTH])

    def problem(s: float) -> tuple[mbd.ElasticModel, Any]:
        mesh = curved_bar(comm)
        x = mesh.geometry.x
        x += s * velocity(x.T).T
        y = ufl.SpatialCoordinate(mesh)[1]
        young = 210e9 * (1 + (y / HEIGHT) ** 2)
        graded_steel = mbd.forms.GradedMaterial(young=young, poisson=0.3, density=7850.0 * (1 + y))
        model = mbd.ElasticModel(mesh, graded_steel if graded else mbd.STEEL)
        return model, elastic_problem(model)

    model, base = problem(0.0)
    f = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 2, (3,))))
    f.interpolate(velocity)
    derivatives = matrix_derivatives(model, base, mbd.Parameter("V", "shape", velocity=f))
    h = 1e-4
    problems = [problem(s)[1] for s in (-h, h)]
    x = np.random.default_rng(base.comm.rank).standard_normal((base.num_owned, 3))
    products = (derivatives.stiffness_product, partial(mass_product, base, derivatives))
    for name, product in zip(("stiffness", "scalar_mass"), products, strict=True):
        low, high = (getattr(p, name) for p in problems)
        high.axpy(-1.0, low)  # from here on, `high` is the difference quotient
        high.scale(1 / (2 * h))
        if name == "stiffness":
            image = multiply(high, x)
        else:
            image = replace(base, scalar_mass=high).apply_mass(x)
        assert difference(comm, product(np.asfortranarray(x)), image) <= 1e-6
    diagonal = problems[1].stiffness.getDiagonal().array_r  # of the quotient
    assert difference(comm, derivatives.stiffness_diagonal, diagonal) <= 1e-6


@pytest.mark.parametrize("quantity", ["young", "poisson", "density"])
def test_matrices_of_constants(comm: MPI.Intracomm, quantity: Any) -> None:
    """K′ and M′ with respect to constants are exact differences, also in curved cells."""
    model = mbd.ElasticModel(curved_bar(comm), mbd.STEEL)
    base, value = elastic_problem(model), getattr(mbd.STEEL, quantity)
    derivatives = matrix_derivatives(model, base, mbd.Parameter("p", quantity))
    h = 1e-4 * value
    steel = [replace(mbd.STEEL, **{quantity: value + s}) for s in (-h, h)]
    low, high = (elastic_problem(mbd.ElasticModel(model.mesh, m)) for m in steel)
    x = np.asfortranarray(np.random.default_rng(comm.rank).standard_normal((base.num_owned, 3)))
    changes = [(p.apply_mass(x), multiply(p.stiffness, x)) for p in (low, high)]
    mass, force = ((b - a) / (2 * h) for a, b in zip(*changes, strict=True))
    if quantity == "density":
        assert derivatives.stiffness is None
        assert difference(comm, mass_product(base, derivatives, x), mass) <= 1e-8
    else:
        assert derivatives.scalar_mass is None
        assert difference(comm, derivatives.stiffness_product(x), force) <= 1e-6


def difference(comm: MPI.Intracomm, a: np.ndarray, b: np.ndarray) -> float:
    """Return the difference of two distributed arrays relative to their size."""
    error, size = (comm.allreduce(float(np.sum(x**2))) for x in (a - b, b))
    return float(np.sqrt(error / size))


def curved_bar(comm: MPI.Intracomm) -> Any:
    """Return a bar of tetrahedra of second order whose long edges are arcs."""
    corners = [np.zeros(3), np.array([LENGTH, HEIGHT, WIDTH])]
    linear = create_box(comm, corners, [4, 1, 1])
    space = fem.functionspace(linear, ("Lagrange", 2))
    cells = np.arange(linear.topology.index_map(3).size_local, dtype=np.int32)
    nodes = space.dofmap.index_map.local_to_global(space.dofmap.list[cells].ravel())
    positions = space.tabulate_dof_coordinates()[: space.dofmap.index_map.size_local]
    positions = positions + np.outer(np.sin(3 * positions[:, 0] / LENGTH), [0, HEIGHT, 0]) / 2
    element = basix.ufl.element("Lagrange", "tetrahedron", 2, shape=(3,))
    return create_mesh(comm, cells=nodes.reshape(len(cells), -1), x=positions, e=element)
