"""Derivatives of the parts of a body and all kinds of parameters: differences and Taylor tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, compute_midpoints, create_rectangle, meshtags
from dolfinx.mesh import locate_entities_boundary as on_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.durability.recovery import skin_stress
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.fields import material_points
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.reduction import with_damping
from tests.design.sensitivity.test_body_sensitivities import ENDS, aligned
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, dynamic_stiffness

PLY = mbd.forms.Orthotropic(
    young=(140e9, 10e9, 12e9),
    poisson=(0.3, 0.28, 0.4),
    shear=(5e9, 4.5e9, 3.5e9),
    density=1600.0,
    axes=[[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]],
    thermal_expansion=(1e-6, 30e-6, 25e-6),
)


def body_of(
    model: mbd.ElasticModel, kinds: Any = "rigid", **options: Any
) -> mbd.reduction.Reduction:
    """Return a reduction with stress modes and two interfaces of the kind or kinds `kinds`."""
    ends: Any = mbd.InterfaceSpec.each(ENDS, kinds)
    result = mbd.reduce(
        model, interfaces=ends, num_modes=3, options=mbd.ReductionOptions(**options)
    )
    return replace(result, body=result.body.replace(stress=skin_stress(result)))


def rotation(base: mbd.reduction.Reduction, other: mbd.reduction.Reduction) -> np.ndarray:
    """Return the rotation to the coordinates of `other` that are closest to those of `base`."""
    problem = elastic_problem(base.model)
    cross = gram(problem.comm, problem.apply_mass(base.modes), other.modes)
    problem.destroy()
    return np.asarray(scipy.linalg.polar(cross)[0].T)


def numbers(base: mbd.reduction.Reduction, other: mbd.reduction.Reduction) -> dict[str, np.ndarray]:
    """Return all arrays of a reduction in the coordinates that are closest to those of `base`.

    The keys are `kind`, or `kind name` for an array of a part, such as "loads modes" or "gauges
    0 modes".
    """
    W, body = rotation(base, other), other.body
    values = {"centre": body.centre, "central_inertia": body.central_inertia}
    values |= {"inertia": body.inertia, "damping": W.T @ body.damping @ W}
    if body.stress is not None:
        values["stress"] = body.stress.stress @ W
    for key, turn in (("force", None), ("moment", None), ("modes", W), ("moments", W)):
        rows = np.array([getattr(load, key) for load in body.loads])
        values[f"loads {key}"] = rows if turn is None or not len(rows) else turn.T @ _columns(rows)
    for k, bore in enumerate(body.bores):
        values[f"bores {k}"] = bore.displacement @ W
    for k, gauge in enumerate(body.gauges):
        values[f"gauges {k} modes"] = gauge.modes @ W
        for key in ("position", "normal", "directions"):
            values[f"gauges {k} {key}"] = getattr(gauge, key)
    if body.effective_masses is not None:
        values["effective_masses frequencies"] = body.effective_masses.frequencies
        values["effective_masses shares"] = body.effective_masses.shares
    if body.stiffening is None:
        return values
    return values | aligned(base, other)


def _columns(rows: np.ndarray) -> np.ndarray:
    """Return rows of numbers as columns, on which a rotation of the modes can act."""
    return rows[:, :, None] if rows.ndim == 2 else rows


def derivative_of(derivative: mbd.design.BodyDerivative, name: str) -> np.ndarray:
    """Return the derivative of an array by its key in `numbers`."""
    kind, _, key = name.partition(" ")
    if kind == "loads":
        rows = np.array([getattr(load, key) for load in derivative.loads])
        return _columns(rows) if key in ("modes", "moments") and len(rows) else rows
    if kind == "gauges":
        number, _, key = key.partition(" ")
        return np.asarray(getattr(derivative.gauges[int(number)], key))
    if kind == "effective_masses":
        return np.asarray(getattr(derivative.effective_masses, key))
    return np.asarray(getattr(derivative, kind)[int(key)] if key else getattr(derivative, kind))


def check_differences(
    make: Callable[[float], mbd.reduction.Reduction],
    parameter: Callable[[Any], mbd.Parameter],
    step: float,
    tolerance: float = 1e-6,
) -> mbd.design.BodyDerivative:
    """Check derivatives against differences of fourth order of new reductions, and return them."""
    base = make(0.0)
    quantity = parameter(base.model)
    derivative = mbd.sensitivities(base, [quantity])[quantity.name]
    values = [numbers(base, make(s)) for s in step * np.array([-2, -1, 1, 2])]
    for name in values[0]:
        a, b, c, d = (v[name] for v in values)
        if not a.size or (name.startswith("effective") and derivative.effective_masses is None):
            continue
        difference = (8 * (c - b) - (d - a)) / (12 * step)
        noise = 1e-10 * np.abs(b).max() / step  # two reductions agree to 3e-11
        size = max(np.abs(difference).max(), noise / tolerance)
        error = np.abs(derivative_of(derivative, name) - difference).max()
        assert error <= tolerance * size, (name, error / size)
    return derivative


def bend(x: Any) -> np.ndarray:
    """Return a velocity that lengthens the bar, changes its sections and moves its ends."""
    bulge = x[0] * (LENGTH - x[0]) / LENGTH**2
    return np.array([x[0] + 0.3 * bulge * x[1], 2 * bulge * x[1] + 0.1 * x[0], 0.2 * x[2]])


def moved_box(
    comm: MPI.Intracomm, s: float, velocity: Callable[[Any], Any] = bend, **options: Any
) -> Any:
    """Return a box whose nodes are moved by s times a velocity."""
    mesh = box(comm, **options)
    x = mesh.mesh.geometry.x
    x += s * velocity(x.T).T
    return mesh


def shape(model: mbd.ElasticModel, velocity: Callable[[Any], Any] = bend) -> mbd.Parameter:
    """Return the parameter that moves the nodes with a velocity."""
    f = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,))))
    f.interpolate(velocity)
    return mbd.Parameter("shape", "shape", velocity=f)


def steel(s: float) -> mbd.Material:
    """Return steel with Young's modulus increased by the fraction s."""
    return replace(mbd.STEEL, young=210e9 * (1 + s))


def young(model: Any) -> mbd.Parameter:
    """Return Young's modulus as a parameter."""
    return mbd.Parameter("E", "young")


DAMPINGS: dict[str, Any] = {
    "Rayleigh": mbd.body.Rayleigh(3.0, 1e-6),
    "ratio": mbd.ModalDamping(0.02),
    "ratios": mbd.ModalDamping(0.01 * np.arange(1, 10)),
    "viscous": mbd.reduction.Viscous(2e4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMPINGS)
def test_shape_of_a_damped_body(comm: MPI.Intracomm, name: str) -> None:
    """Damping, stress modes, centre and inertia agree with differences for a change of shape."""

    def make(s: float) -> mbd.reduction.Reduction:
        model = mbd.ElasticModel(moved_box(comm, s), mbd.STEEL)
        return body_of(model, damping=DAMPINGS[name])

    check_differences(make, shape, step=1e-3)


@pytest.mark.slow
def test_damping_by_a_form(comm: MPI.Intracomm) -> None:
    """A damping form moves with the mesh, and its coefficient may be a parameter."""

    def make(s: float, stretch: float = 0.0) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, stretch, lambda x: x)
        f, direction = (fem.Function(fem.functionspace(mesh.mesh, ("DG", 0))) for _ in range(2))
        f.x.array[:], direction.x.array[:] = 3e2 * (1 + s), 3e2
        V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
        u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
        form = (1 + 4 * ufl.SpatialCoordinate(mesh.mesh)[0]) * f * mbd.forms.strain(u)[0, 0]
        model = mbd.ElasticModel(mesh, mbd.STEEL, space=V)
        COEFFICIENTS[id(model)] = {"coefficient": f, "direction": direction}
        return body_of(model, damping=form * mbd.forms.strain(v)[0, 0] * ufl.dx)

    def coefficient(model: Any) -> mbd.Parameter:
        return mbd.Parameter("c", "coefficient", **COEFFICIENTS[id(model)])

    derivative = check_differences(make, coefficient, step=1e-3)
    assert derivative.damping.any() and not derivative.stiffness.any()
    check_differences(lambda s: make(0.0, s), lambda model: shape(model, lambda x: x), step=1e-3)


COEFFICIENTS: dict[int, Any] = {}  # coefficient and direction by the `id` of their model


@pytest.mark.parametrize("quantity", ["young", "poisson", "density"])
def test_constants(comm: MPI.Intracomm, quantity: str) -> None:
    """The body has a load, a gauge, damping and stress modes."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = box(comm)
        value = getattr(mbd.STEEL, quantity)
        material = replace(mbd.STEEL, **{quantity: value * (1 + s)})
        loads = {"wind": mbd.reduction.traction(mesh, "top", (1e3, 2e3, 3e3))}
        damping = mbd.ModalDamping(0.02)
        base = body_of(mbd.ElasticModel(mesh, material), loads=loads, damping=damping)
        middle = (LENGTH / 2, HEIGHT / 2, WIDTH)
        return mbd.gauges(base, {"g": mbd.durability.GaugeSpec(middle, (1, 0, 0), 3e-3, "delta")})

    value = getattr(mbd.STEEL, quantity)
    scaled = lambda s: make(s / value)  # noqa: E731
    parameter = lambda model: mbd.Parameter("p", quantity)  # noqa: E731
    assert check_differences(scaled, parameter, step=1e-3 * value).effective_masses is not None


GAUGES = {"top": (0.43, 1.0, 0.55, "delta"), "front": (0.6, 0.52, 1.0, "rectangular")}
"""Places of gauges relative to the size of the bar, and kinds."""


@pytest.mark.slow
@pytest.mark.parametrize("cell", [CellType.hexahedron, CellType.tetrahedron])
def test_gauges_on_a_moving_surface(comm: MPI.Intracomm, cell: CellType) -> None:
    """The centre of a gauge moves with the body; its length and direction do not change."""
    size = np.array([LENGTH, HEIGHT, WIDTH])

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, s, cell=cell)
        base = body_of(mbd.ElasticModel(mesh, mbd.STEEL))
        specs = {}
        for k, (*_, kind) in GAUGES.items():
            x = places[k] + s * velocities[k]
            specs[k] = mbd.durability.GaugeSpec(x, (1, 0, 0), 3e-3, kind)  # type: ignore[arg-type]
        return mbd.gauges(base, specs)

    V: Any = shape(mbd.ElasticModel(box(comm, cell=cell), mbd.STEEL)).velocity
    owned = V.x.array[: 3 * V.function_space.dofmap.index_map.size_local, None]
    places = {k: np.array(place[:3]) * size for k, place in GAUGES.items()}
    points = material_points(V.function_space, owned, places)
    velocities = {p.name: p.modes[0] for p in points}

    derivative = check_differences(make, shape, step=1e-3)
    assert all(gauge.position.any() and gauge.modes.any() for gauge in derivative.gauges)
    start = make(0.0)
    table = mbd.sensitivities(start, [shape(start.model)])
    errors = []
    for step in (0.02, 0.01):
        pairs = zip(*map(gauge_numbers, (table.at({"shape": step}), make(step).body)), strict=True)
        errors.append([np.abs(a - b).max() / np.abs(b).max() for a, b in pairs])
    assert np.log2(np.divide(*errors)) == pytest.approx(2.0, abs=0.25)


def gauge_numbers(body: mbd.ReducedBody) -> list[np.ndarray]:
    """Return strains under unit forces at the interfaces, gauge directions, effective masses."""
    forces = np.vstack([i.motion for i in body.interfaces])
    strains = [g.modes @ np.linalg.solve(body.stiffness, forces.T) for g in body.gauges]
    masses = body.effective_masses
    return [*strains, body.gauges[0].directions, masses.frequencies, masses.shares]


ORTHOTROPIC = ["young_1", "young_3", "poisson_12", "poisson_23", "shear_12", "shear_23", "density"]


def ply(quantity: str, s: float) -> mbd.forms.Orthotropic:
    """Return the ply with one of its constants increased by s."""
    name, _, number = quantity.partition("_")
    if not number:
        return replace(PLY, density=PLY.density + s)
    values = list(getattr(PLY, name))
    index = int(number) - 1 if name == "young" else ("12", "13", "23").index(number)
    values[index] += s
    return replace(PLY, **{name: values})


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ORTHOTROPIC)
def test_orthotropic_constants(comm: MPI.Intracomm, quantity: str) -> None:
    def make(s: float) -> mbd.reduction.Reduction:
        return body_of(mbd.ElasticModel(box(comm), ply(quantity, s)))

    name, _, number = quantity.partition("_")
    size = 1600.0 if not number else {"young": 1e10, "poisson": 0.1, "shear": 4e9}[name]
    check_differences(make, lambda model: mbd.Parameter("p", quantity), step=1e-3 * size)


@pytest.mark.slow
@pytest.mark.parametrize("plane", ["stress", "strain"])
@pytest.mark.parametrize("quantity", ["young_2", "poisson_23"])
def test_plane_orthotropic_constants(comm: MPI.Intracomm, plane: Any, quantity: str) -> None:
    """Two materials in a plate; the second has axes that depend on the position."""
    mesh = create_rectangle(comm, [(0.0, 0.0), (0.2, 0.05)], [8, 3])
    cells = np.arange(mesh.topology.index_map(2).size_local, dtype=np.int32)
    right = compute_midpoints(mesh, 2, cells)[:, 0] > 0.1
    tags = meshtags(mesh, 2, cells, np.where(right, 2, 1).astype(np.int32))
    mesh.topology.create_connectivity(1, 2)
    facets = on_boundary(mesh, 1, lambda x: np.isclose(x[0], 0.0))
    groups = {"low": (2, 1), "high": (2, 2), "left": (1, 1)}
    ends = meshtags(mesh, 1, facets, np.full(len(facets), 1, dtype=np.int32))
    tagged = mbd.fem.TaggedMesh(mesh, tags, ends, groups)
    angle = ufl.SpatialCoordinate(mesh)[0]
    c, s_ = ufl.cos(angle), ufl.sin(angle)
    axes = ufl.as_matrix([[c, -s_], [s_, c]])

    def make(s: float) -> mbd.reduction.Reduction:
        materials = {"low": mbd.STEEL, "high": replace(ply(quantity, s), axes=axes)}
        model = mbd.ElasticModel(tagged, materials, plane=plane, thickness=0.01)
        result = mbd.reduce(model, interfaces=["left"], num_modes=3)
        return replace(result, body=result.body.replace(stress=skin_stress(result)))

    size = 1e10 if quantity == "young_2" else 0.1
    check_differences(make, lambda model: mbd.Parameter("p", quantity, group="high"), 1e-3 * size)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ["rigid", "averaged"])
@pytest.mark.parametrize("load_modes", [False, True])
def test_shape_of_a_loaded_body(comm: MPI.Intracomm, kinds: str, load_modes: bool) -> None:
    """A pressure follows the normals of the surface; load modes are static solutions."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, s)
        x = ufl.SpatialCoordinate(mesh.mesh)
        loads = {
            "gas": mbd.reduction.pressure(mesh, "top"),
            "wind": mbd.reduction.traction(mesh, "top", (x[0], 0 * x[0], 2 * x[1])),
            "magnet": mbd.reduction.body_force((0.0, 2e3, x[0] * 1e5)),
        }
        model = mbd.ElasticModel(mesh, mbd.STEEL)
        return body_of(model, kinds, loads=loads, load_modes=load_modes)

    derivative = check_differences(make, shape, step=1e-3)
    assert derivative.loads[0].force.any() and derivative.effective_masses is not None


@pytest.mark.parametrize(
    ("quantity", "kinds"), [("poisson", "rigid"), ("density", "rigid"), ("poisson", "averaged")]
)
def test_load_modes(comm: MPI.Intracomm, quantity: str, kinds: str) -> None:
    """The static modes of loads depend on the material; one of the loads has no such mode."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = box(comm)
        material = replace(mbd.STEEL, **{quantity: getattr(mbd.STEEL, quantity) + s})
        loads = {
            "gas": mbd.reduction.pressure(mesh, "top"),
            "magnet": mbd.reduction.body_force((0.0, 2e3, 0.0)),
        }
        # the reactions of the interface "right" balance a uniform pressure on it node by node
        loads["push"] = mbd.reduction.pressure(mesh, "right")
        return body_of(mbd.ElasticModel(mesh, material), kinds, loads=loads, load_modes=True)

    step = {"poisson": 1e-3, "density": 80.0}[quantity]
    check_differences(make, lambda model: mbd.Parameter("p", quantity), step)  # type: ignore[arg-type]


PRESTRESS = {  # quantity and its value, by case
    "temperature": ("temperature", 60.0),
    "initial stress": ("prestress", 1.0),
    "stress of a material": ("young", 210e9),
    "expansion": ("thermal_expansion", 12e-6),
}


def prestressed(
    comm: MPI.Intracomm, case: str, s: float, stretch: float = 0.0
) -> mbd.reduction.Reduction:
    """Return a bar with residual stresses."""
    mesh = moved_box(comm, stretch)
    x = ufl.SpatialCoordinate(mesh.mesh)
    quantity, size = PRESTRESS[case]
    material: Any = mbd.STEEL
    prestress: Any = mbd.forms.Temperature(4e7 * x[1] * x[1])  # 4e7 K/m²
    if quantity == "temperature":  # a uniform temperature of a uniform material causes no stress
        material = mbd.forms.GradedMaterial(210e9, 0.3, 7850.0, "", 12e-6 * (1 + 1e3 * x[1] ** 2))
        prestress = mbd.forms.Temperature(size + s)
    elif quantity == "prestress":
        prestress = 4e12 * (1 + s) * x[1] * x[1] * ufl.as_matrix(np.diag([1.0, 0, 0]).tolist())
    else:
        material = replace(mbd.STEEL, **{quantity: size + s})
    return body_of(mbd.ElasticModel(mesh, material, prestress=prestress))


@pytest.mark.slow
@pytest.mark.parametrize("case", PRESTRESS)
def test_prestress(comm: MPI.Intracomm, case: str) -> None:
    """The static solution of the prestress depends on the parameter."""
    quantity, size = PRESTRESS[case]

    def parameter(model: Any) -> mbd.Parameter:
        return mbd.Parameter("p", quantity)  # type: ignore[arg-type]

    derivative = check_differences(lambda s: prestressed(comm, case, s), parameter, 1e-2 * size)
    assert np.abs(derivative.frequencies).max() * size > 1e-3  # Hz; far above the round-off


@pytest.mark.slow
def test_shape_of_a_prestressed_body(comm: MPI.Intracomm) -> None:
    case = "initial stress"
    check_differences(lambda s: prestressed(comm, case, 0.0, s), shape, step=1e-3)


@pytest.mark.slow
def test_pressure_modes(comm: MPI.Intracomm) -> None:
    """Pressure modes of a bore depend on the material; a change of the bore raises an error."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.014), comm)

    def make(s: float) -> mbd.reduction.Reduction:
        spec = mbd.InterfaceSpec(kind="averaged", pressure_modes=0.3)
        rod = mbd.reduce(
            mesh,
            replace(mbd.STEEL, poisson=0.3 + s),
            interfaces={"big_end": spec, "small_end": "small_end"},
            num_modes=2,
        )
        return rod

    rod = make(0.0)
    x = ufl.SpatialCoordinate(rod.space.mesh)
    with pytest.raises(InputError, match="shape changes the bore 'big_end'"):
        mbd.sensitivities(rod, [mbd.Parameter("size", "shape", velocity=x)])
    derivative = check_differences(make, lambda model: mbd.Parameter("nu", "poisson"), step=1e-3)
    assert len(derivative.bores) == 1 and derivative.bores[0].any()


@pytest.mark.slow
def test_shape_of_a_graded_body(comm: MPI.Intracomm) -> None:
    """The stress law depends on the position of the points."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, s)
        x = ufl.SpatialCoordinate(mesh.mesh)
        material = mbd.forms.GradedMaterial(210e9 * (1 + 5 * x[0] + 30 * x[1] ** 2), 0.3, 7850.0)
        return body_of(mbd.ElasticModel(mesh, material))

    check_differences(make, shape, step=1e-3)


def test_law_with_sizes_of_cells(comm: MPI.Intracomm) -> None:
    """A stress law that contains the size of the cells changes with the shape."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, s, cell=CellType.tetrahedron)
        size = ufl.CellVolume(mesh.mesh)
        material = mbd.forms.GradedMaterial(210e9 + 1e14 * size, 0.3, 7850.0)
        return body_of(mbd.ElasticModel(mesh, material))

    check_differences(make, shape, step=1e-3)


@pytest.mark.parametrize("reference", ["attached", "free"])
def test_other_references(comm: MPI.Intracomm, reference: str) -> None:
    """Loads and damping of a body whose frame is attached, and of one without interfaces."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, s)
        options = mbd.ReductionOptions(
            loads={"gas": mbd.reduction.pressure(mesh, "top")},
            load_modes=reference == "attached",
            damping=mbd.reduction.Viscous(1e4),
        )
        ends = ENDS if reference == "attached" else []
        result = mbd.reduce(
            mbd.ElasticModel(mesh, mbd.STEEL),
            interfaces=ends,
            num_modes=3,
            attached_to="left" if ends else None,
            options=options,
        )
        return replace(result, body=result.body.replace(stress=skin_stress(result)))

    check_differences(make, shape, step=1e-3)


@pytest.mark.parametrize("quantity", ["thickness", "temperature", "density"])
def test_plane_body(comm: MPI.Intracomm, quantity: str) -> None:
    """A hot plate with a load, viscous damping and stress modes."""
    mesh = create_rectangle(comm, [(0.0, 0.0), (0.2, 0.05)], [8, 3])
    mesh.topology.create_connectivity(1, 2)
    facets = on_boundary(mesh, 1, lambda x: np.isclose(x[0], 0.0))
    ends = meshtags(mesh, 1, facets, np.full(len(facets), 1, dtype=np.int32))
    tagged = mbd.fem.TaggedMesh(mesh, None, ends, {"left": (1, 1)})
    x, y = ufl.SpatialCoordinate(mesh)
    base = {"thickness": 0.01, "temperature": 0.0, "density": 7850.0}

    def make(s: float) -> mbd.reduction.Reduction:
        values = base | {quantity: base[quantity] + s}
        model = mbd.ElasticModel(
            tagged,
            mbd.forms.GradedMaterial(210e9, 0.3, values["density"], "", 1e-5 * (1 + 1e3 * y * y)),
            plane="stress",
            thickness=values["thickness"],
            prestress=mbd.forms.Temperature(8e5 * y * y + values["temperature"]),
        )
        options = mbd.ReductionOptions(
            loads={"magnet": mbd.reduction.body_force((0 * x, 1e4 * x))},
            damping=mbd.reduction.Viscous(1e4),
        )
        result = mbd.reduce(model, interfaces=["left"], num_modes=3, options=options)
        return replace(result, body=result.body.replace(stress=skin_stress(result)))

    step = {"thickness": 1e-4, "temperature": 1.0, "density": 80.0}[quantity]
    check_differences(make, lambda model: mbd.Parameter("p", quantity), step)  # type: ignore[arg-type]


def test_box_in_closed_form(comm: MPI.Intracomm) -> None:
    """A box that gets longer in x: the derivatives of mass, centre and inertia are exact."""
    mesh = box(comm)
    x = ufl.SpatialCoordinate(mesh.mesh)
    base = mbd.reduce(mesh, mbd.STEEL, interfaces=[], num_modes=2)
    longer = ufl.as_vector([x[0] / LENGTH, 0 * x[0], 0 * x[0]])
    derivative = mbd.sensitivities(base, [mbd.Parameter("L", "shape", velocity=longer)])["L"]
    section = 7850.0 * HEIGHT * WIDTH  # mass per length
    b, h, w = LENGTH, HEIGHT, WIDTH
    assert derivative.total_mass == pytest.approx(section, rel=1e-12)
    assert derivative.centre == pytest.approx([0.5, 0.0, 0.0], abs=1e-12)
    quarter = b * b / 4
    central = section * np.diag([h * h + w * w, w * w + 3 * b * b, h * h + 3 * b * b]) / 12
    assert np.allclose(derivative.central_inertia, central, rtol=1e-10, atol=1e-16)
    corner = section * np.array(
        [
            [(h * h + w * w) / 3, -b * h / 2, -b * w / 2],
            [-b * h / 2, w * w / 3 + 4 * quarter, -h * w / 4],
            [-b * w / 2, -h * w / 4, h * h / 3 + 4 * quarter],
        ]
    )
    assert np.allclose(derivative.inertia, corner, rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("cell", [CellType.hexahedron, CellType.tetrahedron])
def test_tangled_mesh(comm: MPI.Intracomm, cell: CellType) -> None:
    """The largest steps are the roots of det(I + s∇V), on any number of ranks."""
    model = mbd.ElasticModel(box(comm, cell=cell), mbd.STEEL)
    base = mbd.reduce(model, interfaces=["left"], num_modes=2)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    flat, rotation = ufl.as_vector([x[0], -4 * x[1], 0 * x[2]]), ufl.as_vector([-x[1], x[0], 0])
    velocities = {"flat": flat, "turned": rotation}
    parameters = [mbd.Parameter(k, "shape", velocity=v) for k, v in velocities.items()]
    table = mbd.sensitivities(base, [*parameters, mbd.Parameter("E", "young")])
    assert table["flat"].limits == pytest.approx((-1.0, 0.25), rel=1e-12)
    assert table["turned"].limits == table["E"].limits == (-np.inf, np.inf)
    with pytest.raises(InputError, match=r"0.3 of the shape parameter 'flat'.*-1 and 0.25"):
        table.at({"flat": 0.3})
    infinite = ufl.as_vector([x[0] / (x[1] - x[1]), x[1], x[2]])
    with pytest.raises(InputError, match="'p': velocity: it is not finite"):
        mbd.sensitivities(base, [mbd.Parameter("p", "shape", velocity=infinite)])
    zero = ufl.as_vector([0 * x[0]] * 3)
    with pytest.raises(InputError, match="the shape does not change"):
        mbd.sensitivities(base, [mbd.Parameter("p", "shape", velocity=zero)])


def test_curved_cells_tangle(comm: MPI.Intracomm) -> None:
    """The largest step is the root of 1 - s x at the end x = L, where a cell becomes flat."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    base = mbd.reduce(model, interfaces=["left"], num_modes=2)
    f = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,))))
    f.interpolate(lambda x: np.array([0 * x[0], -x[1] * x[0], 0 * x[0]]))
    derivative = mbd.sensitivities(base, [mbd.Parameter("p", "shape", velocity=f)])["p"]
    assert derivative.limits[1] == pytest.approx(1 / LENGTH, rel=1e-12)


def test_errors(comm: MPI.Intracomm) -> None:
    """Quantities without a derivative, and parameters that the body does not have, are errors."""
    mesh = box(comm)
    model = mbd.ElasticModel(mesh, mbd.STEEL)
    base = mbd.reduce(model, interfaces=ENDS, num_modes=3)
    for quantity, match in {
        "young_1": "only an orthotropic material has 'young_1'",
        "temperature": "the model has no prestress",
        "prestress": "the model has no prestress",
        "thermal_expansion": "does not depend on this thermal_expansion",
    }.items():
        with pytest.raises(InputError, match=match):
            mbd.sensitivities(base, [mbd.Parameter("p", quantity)])  # type: ignore[arg-type]
    cells, second_mesh = fem.functionspace(mesh.mesh, ("DG", 0, (3,))), box(comm)
    step, f = fem.Function(cells), fem.Function(fem.functionspace(mesh.mesh, ("DG", 0)))
    step.interpolate(lambda x: np.sign(x - LENGTH / 2.01))
    position = ufl.SpatialCoordinate(second_mesh.mesh)
    for velocity, match in ((step, "jumps between cells"), (position, "another mesh")):
        with pytest.raises(InputError, match=match):
            mbd.sensitivities(base, [mbd.Parameter("s", "shape", velocity=velocity)])
    with pytest.raises(InputError, match="the same function space"):
        mbd.Parameter("c", "coefficient", coefficient=f, direction=step)
    E = [mbd.Parameter("E", "young")]
    layered = mbd.reduce(mbd.ElasticModel(mesh, PLY), interfaces=ENDS, num_modes=3)
    with pytest.raises(InputError, match="young_1, young_2"):
        mbd.sensitivities(layered, E)
    options = mbd.ReductionOptions(up_to=base.body.frequencies[4])
    with pytest.raises(InputError, match=r"at the limit.*table.at\(values\).truncated"):
        mbd.sensitivities(mbd.reduce(model, interfaces=ENDS, num_modes=3, options=options), E)
    body = base.body
    for changed, match in (
        (body.with_damping(mbd.ModalDamping(0.01)), "with_damping"),
        (body.truncated(4), "truncated after its reduction"),
        (body.replace(stress=mbd.body.StressModes(np.zeros((1, 3)), np.ones((6, 1, 9)))), "stress"),
    ):
        with pytest.raises(InputError, match=match):
            mbd.sensitivities(replace(base, body=changed), E)


def test_ratios_of_a_multiple_frequency(comm: MPI.Intracomm) -> None:
    """A square bar bends in two planes with one frequency; equal ratios are required."""
    mesh = box(comm, size=(LENGTH, HEIGHT, HEIGHT), cells=(6, 2, 2))
    model = mbd.ElasticModel(mesh, mbd.STEEL)
    E = [mbd.Parameter("E", "young")]
    free = mbd.reduce(model, interfaces=[], num_modes=4)
    f = free.body.frequencies
    assert f[1] == pytest.approx(f[0], rel=1e-6)
    ratios = 0.01 * np.arange(1, 1 + free.body.num_modes)
    with pytest.raises(InputError, match="the same ratio"):
        mbd.sensitivities(with_damping(free, mbd.ModalDamping(ratios)), E)
    ratios = 0.01 * (1 + groups_of(f**2))
    base = with_damping(free, mbd.ModalDamping(ratios))
    changed = mbd.sensitivities(base, E)["E"].damping * 210e9
    size = np.abs(base.body.damping).max()
    assert np.abs(changed - base.body.damping / 2).max() < 1e-8 * size


def material_model(comm: MPI.Intracomm, **changes: float) -> mbd.ElasticModel:
    """Return a box of steel with changed constants."""
    return mbd.ElasticModel(box(comm), replace(mbd.STEEL, **changes))


def ply_model(comm: MPI.Intracomm, quantity: str, s: float) -> mbd.ElasticModel:
    """Return a box of the ply with a changed constant."""
    return mbd.ElasticModel(box(comm), ply(quantity, s))


def graded_model(comm: MPI.Intracomm, s: float) -> mbd.ElasticModel:
    """Return a bar whose stiffness varies along its axis; the variation is the parameter."""
    mesh = box(comm)
    f, direction = (fem.Function(fem.functionspace(mesh.mesh, ("Lagrange", 1))) for _ in range(2))
    direction.interpolate(lambda x: np.sin(20 * x[0]) ** 2)
    f.x.array[:] = 1 + s * direction.x.array
    model = mbd.ElasticModel(mesh, mbd.forms.GradedMaterial(210e9 * f * f, 0.3, 7850.0 * f))
    COEFFICIENTS[id(model)] = {"coefficient": f, "direction": direction}
    return model


TAYLOR: dict[str, tuple[Callable[[float, MPI.Intracomm], Any], float]] = {
    "poisson": (lambda s, comm: material_model(comm, poisson=0.3 + s), 1.0),
    "density": (lambda s, comm: material_model(comm, density=7850.0 * (1 + s)), 7850.0),
    "young_1": (lambda s, comm: ply_model(comm, "young_1", 5e10 * s), 5e10),
    "poisson_13": (lambda s, comm: ply_model(comm, "poisson_13", s), 1.0),
    "shear_12": (lambda s, comm: ply_model(comm, "shear_12", 5e9 * s), 5e9),
    "coefficient": (lambda s, comm: graded_model(comm, s), 1.0),
    "shape": (lambda s, comm: mbd.ElasticModel(moved_box(comm, s), mbd.STEEL), 1.0),
    "prestress": (lambda s, comm: prestressed(comm, "initial stress", 10 * s), 10.0),
    "temperature": (lambda s, comm: prestressed(comm, "temperature", 3e4 * s), 3e4),
    "thermal_expansion": (lambda s, comm: prestressed(comm, "expansion", 1e-4 * s), 1e-4),
}
"""Reductions or models by the step, and the change of the parameter per unit of the step."""


@pytest.mark.parametrize("name", TAYLOR)
def test_taylor(comm: MPI.Intracomm, name: str) -> None:
    """The error of the body of first order decreases with the square of the step (slope 2)."""
    make, size = TAYLOR[name]

    def reduction(s: float) -> mbd.reduction.Reduction:
        result = make(s, comm)
        if isinstance(result, mbd.reduction.Reduction):
            return result
        loads = {"magnet": mbd.reduction.body_force((0, 1, 0))}
        return body_of(result, loads=loads, damping=mbd.ModalDamping(0.01))

    base = reduction(0.0)
    if name == "shape":
        parameter = shape(base.model)
    else:
        fields = COEFFICIENTS[id(base.model)] if name == "coefficient" else {}
        parameter = mbd.Parameter(name, name, **fields)  # type: ignore[arg-type]
    table = mbd.sensitivities(base, [parameter])
    errors: list[list[float]] = []
    for step in (0.02, 0.01):
        exact = reduction(step)
        first = table.at({name: table.base[name] + size * step})
        pairs = [(dynamic_stiffness(b, 5e3), static_stress(b)) for b in (first, exact.body)]
        errors.append([np.abs(a - b).max() / np.abs(b).max() for a, b in zip(*pairs, strict=True)])
    assert np.log2(np.divide(*errors)) == pytest.approx(2.0, abs=0.15)


def static_stress(body: mbd.ReducedBody) -> np.ndarray:
    """Return the stress under the loads and under unit forces at the interfaces.

    The forces include those of the damping at 1e3 rad/s. The result does not depend on the choice
    of the elastic coordinates.
    """
    forces = np.vstack([*(i.motion for i in body.interfaces), *(p.modes for p in body.loads)])
    damped = body.stiffness + 1j * 1e3 * body.damping
    return np.asarray(body.stress.stress @ np.linalg.solve(damped, forces.T))


@pytest.mark.parametrize("kinds", ["rigid", "averaged"])
def test_modes_below_a_limit(comm: MPI.Intracomm, kinds: str) -> None:
    """With `up_to`, the span of the modes turns towards the omitted modes."""

    def make(s: float) -> mbd.reduction.Reduction:
        mesh = moved_box(comm, s)
        loads = {"gas": mbd.reduction.pressure(mesh, "top")}
        options = {"loads": loads, "load_modes": True, "damping": mbd.body.Rayleigh(3.0, 1e-6)}
        return body_of(mbd.ElasticModel(mesh, mbd.STEEL), kinds, up_to=15e3, **options)

    base = make(0.0)
    # fewer than all 3 + 6 + 1 modes of vibration, interfaces and load; none close to the limit
    assert 0 < base.body.num_modes < 10 and base.body.frequencies[-1] < 14e3
    check_differences(make, shape, step=1e-3)


@pytest.mark.parametrize("reference", ["attached", "free"])
def test_modes_below_a_limit_of_other_references(comm: MPI.Intracomm, reference: str) -> None:
    def make(s: float) -> mbd.reduction.Reduction:
        ends = ENDS if reference == "attached" else []
        return mbd.reduce(
            mbd.ElasticModel(moved_box(comm, s), mbd.STEEL),
            interfaces=ends,
            num_modes=5,
            attached_to="left" if ends else None,
            options=mbd.ReductionOptions(up_to=12e3),
        )

    base = make(0.0)
    # without a limit, there are 5 modes, and 6 more if the body has both interfaces
    assert 0 < base.body.num_modes < 5 + 6 * len(base.interfaces) // 2
    check_differences(make, shape, step=1e-3)


def test_truncated_body_of_first_order(comm: MPI.Intracomm) -> None:
    """Without `up_to`, the truncated body of first order is that of a new reduction."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    table = mbd.sensitivities(mbd.reduce(model, interfaces=ENDS, num_modes=3), [shape(model)])
    options = mbd.ReductionOptions(up_to=15e3)
    errors = []
    for step in (0.02, 0.01):
        changed = mbd.ElasticModel(moved_box(comm, step), mbd.STEEL)
        exact = mbd.reduce(changed, interfaces=ENDS, num_modes=3, options=options).body
        first = table.at({"shape": step}).truncated(exact.num_modes)
        assert 0 < exact.num_modes < 9  # fewer than all 3 + 6 modes
        errors.append(np.abs(first.frequencies / exact.frequencies - 1).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)
