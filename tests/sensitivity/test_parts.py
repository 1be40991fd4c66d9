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
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.linalg.blocks import gram
from dolfinx_mbd.recovery import skin_stress
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box, dynamic_stiffness
from tests.sensitivity.test_reduced import ENDS, aligned

PLY = mbd.Orthotropic(
    young=(140e9, 10e9, 12e9),
    poisson=(0.3, 0.28, 0.4),
    shear=(5e9, 4.5e9, 3.5e9),
    density=1600.0,
    axes=[[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]],
    thermal_expansion=(1e-6, 30e-6, 25e-6),
)


def body_of(model: mbd.ElasticModel, kinds: Any = "rigid", **options: Any) -> mbd.Reduction:
    """A reduction with two interfaces and stress modes."""
    ends: Any = mbd.InterfaceSpec.each(ENDS, kinds)
    result = mbd.reduce(
        model, interfaces=ends, num_modes=3, options=mbd.ReductionOptions(**options)
    )
    return replace(result, body=result.body.replace(stress=skin_stress(result)))


def rotation(base: mbd.Reduction, other: mbd.Reduction) -> np.ndarray:
    """The rotation to the coordinates of `other` that are closest to those of `base`."""
    problem = elastic_problem(base.model)
    cross = gram(problem.comm, problem.apply_mass(base.modes), other.modes)
    problem.destroy()
    return np.asarray(scipy.linalg.polar(cross)[0].T)


def numbers(base: mbd.Reduction, other: mbd.Reduction) -> dict[str, np.ndarray]:
    """All numbers of a reduction in the coordinates that are closest to those of `base`."""
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
        values[f"gauges {k}"] = gauge.modes @ W
    if body.stiffening is None:
        return values
    return values | aligned(base, other)


def _columns(rows: np.ndarray) -> np.ndarray:
    return rows[:, :, None] if rows.ndim == 2 else rows


def derivative_of(derivative: mbd.BodyDerivative, name: str) -> np.ndarray:
    kind, _, key = name.partition(" ")
    if kind == "loads":
        rows = np.array([getattr(load, key) for load in derivative.loads])
        return _columns(rows) if key in ("modes", "moments") and len(rows) else rows
    return np.asarray(getattr(derivative, kind)[int(key)] if key else getattr(derivative, kind))


def check_differences(
    make: Callable[[float], mbd.Reduction],
    parameter: Callable[[Any], mbd.Parameter],
    step: float,
    tolerance: float = 1e-6,
) -> mbd.BodyDerivative:
    """Compare derivatives with differences of fourth order of new reductions to 1e-6."""
    base = make(0.0)
    quantity = parameter(base.model)
    derivative = mbd.sensitivities(base, [quantity])[quantity.name]
    values = [numbers(base, make(s)) for s in step * np.array([-2, -1, 1, 2])]
    for name in values[0]:
        a, b, c, d = (v[name] for v in values)
        if not a.size:
            continue
        difference = (8 * (c - b) - (d - a)) / (12 * step)
        noise = 1e-11 * np.abs(b).max() / step  # of two reductions
        size = max(np.abs(difference).max(), noise / tolerance)
        error = np.abs(derivative_of(derivative, name) - difference).max()
        assert error <= tolerance * size, (name, error / size)
    return derivative


def bend(x: Any) -> np.ndarray:
    """A velocity that lengthens the bar and changes its sections; the ends turn and shift."""
    bulge = x[0] * (LENGTH - x[0]) / LENGTH**2
    return np.array([x[0] + 0.3 * bulge * x[1], 2 * bulge * x[1] + 0.1 * x[0], 0.2 * x[2]])


def moved_box(comm: MPI.Intracomm, s: float, velocity: Callable[[Any], Any] = bend) -> Any:
    mesh = box(comm)
    x = mesh.mesh.geometry.x
    x += s * velocity(x.T).T
    return mesh


def shape(model: mbd.ElasticModel, velocity: Callable[[Any], Any] = bend) -> mbd.Parameter:
    f = fem.Function(fem.functionspace(model.plain_mesh, ("Lagrange", 1, (3,))))
    f.interpolate(velocity)
    return mbd.Parameter("shape", "shape", velocity=f)


def steel(s: float) -> mbd.Material:
    return replace(mbd.STEEL, young=210e9 * (1 + s))


def young(model: Any) -> mbd.Parameter:
    return mbd.Parameter("E", "young")


DAMPINGS: dict[str, Any] = {
    "Rayleigh": mbd.Rayleigh(3.0, 1e-6),
    "ratio": mbd.ModalDamping(0.02),
    "ratios": mbd.ModalDamping(0.01 * np.arange(1, 10)),
    "viscous": mbd.Viscous(2e4),
}


@pytest.mark.parametrize("name", DAMPINGS)
def test_shape_of_a_damped_body(comm: MPI.Intracomm, name: str) -> None:
    """Damping, stress modes, centre and inertia while the shape changes."""

    def make(s: float) -> mbd.Reduction:
        model = mbd.ElasticModel(moved_box(comm, s), mbd.STEEL)
        return body_of(model, damping=DAMPINGS[name])

    check_differences(make, shape, 1e-3)


def test_damping_by_a_form(comm: MPI.Intracomm) -> None:
    """A damping form moves with the mesh, and its coefficient may be a parameter."""

    def make(s: float, stretch: float = 0.0) -> mbd.Reduction:
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

    derivative = check_differences(make, coefficient, 1e-3)
    assert derivative.damping.any() and not derivative.stiffness.any()
    check_differences(lambda s: make(0.0, s), lambda model: shape(model, lambda x: x), 1e-3)


COEFFICIENTS: dict[int, Any] = {}


@pytest.mark.parametrize("quantity", ["young", "poisson", "density"])
def test_constants(comm: MPI.Intracomm, quantity: str) -> None:
    """All parts of a body with a load, a gauge, damping and stress modes."""

    def make(s: float) -> mbd.Reduction:
        mesh = box(comm)
        value = getattr(mbd.STEEL, quantity)
        material = replace(mbd.STEEL, **{quantity: value * (1 + s)})
        loads = {"wind": mbd.traction(mesh, "top", (1e3, 2e3, 3e3))}
        damping = mbd.ModalDamping(0.02)
        base = body_of(mbd.ElasticModel(mesh, material), loads=loads, damping=damping)
        middle = (LENGTH / 2, HEIGHT / 2, WIDTH)
        return mbd.gauges(base, {"g": mbd.GaugeSpec(middle, (1, 0, 0), 3e-3, "delta")})

    value = getattr(mbd.STEEL, quantity)
    scaled = lambda s: make(s / value)  # noqa: E731
    check_differences(scaled, lambda model: mbd.Parameter("p", quantity), 1e-3 * value)


ORTHOTROPIC = ["young_1", "young_3", "poisson_12", "poisson_23", "shear_12", "shear_23", "density"]


def ply(quantity: str, s: float) -> mbd.Orthotropic:
    """The ply with one of its constants increased by s."""
    name, _, number = quantity.partition("_")
    if not number:
        return replace(PLY, density=PLY.density + s)
    values = list(getattr(PLY, name))
    index = int(number) - 1 if name == "young" else ("12", "13", "23").index(number)
    values[index] += s
    return replace(PLY, **{name: values})


@pytest.mark.parametrize("quantity", ORTHOTROPIC)
def test_orthotropic_constants(comm: MPI.Intracomm, quantity: str) -> None:
    def make(s: float) -> mbd.Reduction:
        return body_of(mbd.ElasticModel(box(comm), ply(quantity, s)))

    name, _, number = quantity.partition("_")
    size = 1600.0 if not number else {"young": 1e10, "poisson": 0.1, "shear": 4e9}[name]
    check_differences(make, lambda model: mbd.Parameter("p", quantity), 1e-3 * size)


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
    tagged = mbd.TaggedMesh(mesh, tags, ends, groups)
    angle = ufl.SpatialCoordinate(mesh)[0]
    c, s_ = ufl.cos(angle), ufl.sin(angle)
    axes = ufl.as_matrix([[c, -s_], [s_, c]])

    def make(s: float) -> mbd.Reduction:
        materials = {"low": mbd.STEEL, "high": replace(ply(quantity, s), axes=axes)}
        model = mbd.ElasticModel(tagged, materials, plane=plane, thickness=0.01)
        result = mbd.reduce(model, interfaces=["left"], num_modes=3)
        return replace(result, body=result.body.replace(stress=skin_stress(result)))

    size = 1e10 if quantity == "young_2" else 0.1
    check_differences(make, lambda model: mbd.Parameter("p", quantity, group="high"), 1e-3 * size)


@pytest.mark.parametrize("kinds", ["rigid", "averaged"])
@pytest.mark.parametrize("load_modes", [False, True])
def test_shape_of_a_loaded_body(comm: MPI.Intracomm, kinds: str, load_modes: bool) -> None:
    """A pressure follows the normals of the surface; load modes are static solutions."""

    def make(s: float) -> mbd.Reduction:
        mesh = moved_box(comm, s)
        x = ufl.SpatialCoordinate(mesh.mesh)
        loads = {
            "gas": mbd.pressure(mesh, "top"),
            "wind": mbd.traction(mesh, "top", (x[0], 0 * x[0], 2 * x[1])),
            "magnet": mbd.body_force((0.0, 2e3, x[0] * 1e5)),
        }
        model = mbd.ElasticModel(mesh, mbd.STEEL)
        return body_of(model, kinds, loads=loads, load_modes=load_modes)

    derivative = check_differences(make, shape, 1e-3)
    assert derivative.loads[0].force.any()


@pytest.mark.parametrize("quantity", ["poisson", "density"])
def test_load_modes(comm: MPI.Intracomm, quantity: str) -> None:
    """The static modes of loads depend on the material."""

    def make(s: float) -> mbd.Reduction:
        mesh = box(comm)
        material = replace(mbd.STEEL, **{quantity: getattr(mbd.STEEL, quantity) + s})
        loads = {"gas": mbd.pressure(mesh, "top"), "magnet": mbd.body_force((0.0, 2e3, 0.0))}
        return body_of(mbd.ElasticModel(mesh, material), loads=loads, load_modes=True)

    step = {"poisson": 1e-3, "density": 8.0}[quantity]
    check_differences(make, lambda model: mbd.Parameter("p", quantity), step)  # type: ignore[arg-type]


PRESTRESS = {
    "temperature": ("temperature", 60.0),
    "initial stress": ("prestress", 1.0),
    "stress of a material": ("young", 210e9),
    "expansion": ("thermal_expansion", 12e-6),
}


def prestressed(comm: MPI.Intracomm, case: str, s: float, stretch: float = 0.0) -> mbd.Reduction:
    """A bar with residual stresses; they change its frequencies by some per cent."""
    mesh = moved_box(comm, stretch)
    x = ufl.SpatialCoordinate(mesh.mesh)
    quantity, size = PRESTRESS[case]
    material = mbd.STEEL
    stress: Any = mbd.Temperature(4e7 * x[1] * x[1])
    if quantity == "temperature":
        stress = mbd.Temperature(4e7 * x[1] * x[1] + s)
    elif quantity == "prestress":
        stress = 4e12 * (1 + s) * x[1] * x[1] * ufl.as_matrix(np.diag([1.0, 0, 0]).tolist())
    else:
        material = replace(mbd.STEEL, **{quantity: size + s})
    return body_of(mbd.ElasticModel(mesh, material, prestress=stress))


@pytest.mark.parametrize("case", PRESTRESS)
def test_prestress(comm: MPI.Intracomm, case: str) -> None:
    """The static solution of the prestress depends on the parameter."""
    quantity, size = PRESTRESS[case]

    def parameter(model: Any) -> mbd.Parameter:
        return mbd.Parameter("p", quantity)  # type: ignore[arg-type]

    derivative = check_differences(lambda s: prestressed(comm, case, s), parameter, 1e-3 * size)
    free = body_of(mbd.ElasticModel(box(comm), mbd.STEEL)).body.frequencies
    if quantity == "prestress":  # the stress is large enough to matter
        assert np.abs(derivative.frequencies / free).max() > 0.01


def test_shape_of_a_prestressed_body(comm: MPI.Intracomm) -> None:
    case = "initial stress"
    check_differences(lambda s: prestressed(comm, case, 0.0, s), shape, 1e-3)
