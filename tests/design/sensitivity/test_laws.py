"""Laws that derivatives of a reduced body obey exactly (V17): scaling, motion, superposition.

V17 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import compute_midpoints, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.fem.assembly import assembled_matrix, scalar_space
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.forms import strain
from tests.models import sensitivities
from tests.models.bodies import HEIGHT, LENGTH, box

MATERIALS = {"low": mbd.STEEL, "up": mbd.forms.ALUMINIUM}
POINT = (LENGTH / 2, HEIGHT / 2, 0.0)
RELATIVE = 1e-8  # error relative to the largest entry of an array


def two_materials(comm: MPI.Intracomm) -> mbd.ElasticModel:
    """Return a box of steel and aluminium."""
    tagged = box(comm, cells=(4, 2, 1))
    mesh = tagged.mesh
    cells = np.arange(mesh.topology.index_map(3).size_local, dtype=np.int32)
    upper = compute_midpoints(mesh, 3, cells)[:, 1] > HEIGHT / 2
    tags = meshtags(mesh, 3, cells, np.where(upper, 2, 1).astype(np.int32))
    groups = {"left": (2, 1), "right": (2, 2), "low": (3, 1), "up": (3, 2)}
    return mbd.ElasticModel(mbd.fem.TaggedMesh(mesh, tags, tagged.facet_tags, groups), MATERIALS)


def reduced(model: Any) -> mbd.reduction.Reduction:
    """Return the reduction of a model with a rigid and an averaged interface."""
    interfaces = {"left": mbd.InterfaceSpec(), "right": mbd.InterfaceSpec(kind="averaged")}
    return mbd.reduce(model, interfaces=interfaces, num_modes=4, points={"p": POINT})


def numbers(body: mbd.body.ReducedBody) -> dict[str, np.ndarray]:
    """Return the arrays of a body by the names of their derivatives."""
    assert body.stiffening is not None and body.skin is not None
    return {
        "total_mass": np.array(body.total_mass),
        "first_moments": body.first_moments,
        "second_moments": body.second_moments,
        "stiffness": body.stiffness,
        "frequencies": body.frequencies,
        "interface_points": np.array([i.point for i in body.interfaces]),
        "interface_motions": np.array([i.motion for i in body.interfaces]),
        "positions": np.array([p.position for p in body.points]),
        "point_modes": np.array([p.modes for p in body.points]),
        "spin_stiffening": body.stiffening.spin,
        "interface_stiffening": body.stiffening.interfaces,
        "skin_positions": body.skin.points,
        "skin_modes": body.skin.modes,
    }


def check(expected: dict[str, Any], derivative: dict[str, Any], sizes: dict[str, Any]) -> None:
    """Compare derivatives with expected ones, relative to the sizes of the quantities."""
    for name, value in expected.items():
        size = np.abs(sizes[name]).max(initial=0.0)
        assert np.abs(derivative[name] - value).max(initial=0.0) <= RELATIVE * size, name


def combined(table: mbd.design.BodySensitivities, factors: dict[str, float]) -> dict[str, Any]:
    """Return the sum of derivatives with factors, by array."""
    return {
        name: sum(factor * getattr(table[key], name) for key, factor in factors.items())
        for name in numbers(table.body)
    }


def powers(body: mbd.body.ReducedBody, mode: float, **rigid: float) -> dict[str, Any]:
    """Return derivatives, at c = 1, of moments that are proportional to powers of c.

    `rigid` contains the exponents of the first moments S, the second moments H and the positions x
    of the undeformed body, `mode` that of the modes. The index of a mode replaces a position by a
    mode: S_k ∝ c^(S - x + mode).
    """
    S, H, x = rigid["S"], rigid["H"], rigid["x"]
    n = body.num_modes
    of_index = np.concatenate([[0.0], np.full(n, mode - x)])
    first = (S + of_index)[:, None] * body.first_moments
    sums = H + of_index[:, None] + of_index
    return {"first_moments": first, "second_moments": sums[:, :, None, None] * body.second_moments}


def test_stiffness_of_all_materials(comm: MPI.Intracomm) -> None:
    """Σ E_g ∂/∂E_g for all materials g: K ∝ E, ω ∝ √E, and the modes do not change."""
    base = reduced(two_materials(comm))
    table = mbd.sensitivities(base, [mbd.Parameter(g, "young", group=g) for g in MATERIALS])
    body, values = base.body, numbers(base.body)
    total = combined(table, {g: m.young for g, m in MATERIALS.items()})
    expected = {name: 0 * value for name, value in values.items()}
    expected |= {"stiffness": body.stiffness, "frequencies": body.frequencies / 2}
    check(expected, total, values)


def test_density_of_all_materials(comm: MPI.Intracomm) -> None:
    """Σ ρ_g ∂/∂ρ_g for all materials g: the modes are ∝ ρ^(-1/2), the mass ∝ ρ."""
    base = reduced(two_materials(comm))
    table = mbd.sensitivities(base, [mbd.Parameter(g, "density", group=g) for g in MATERIALS])
    body, values = base.body, numbers(base.body)
    total = combined(table, {g: m.density for g, m in MATERIALS.items()})
    degrees = {
        "total_mass": 1, "stiffness": -1, "frequencies": -0.5, "interface_points": 0,
        "interface_motions": -0.5, "positions": 0, "point_modes": -0.5, "spin_stiffening": 0,
        "interface_stiffening": -1, "skin_positions": 0, "skin_modes": -0.5,
    }  # fmt: skip
    expected = {name: degree * values[name] for name, degree in degrees.items()}
    check(expected | powers(body, -0.5, S=1, H=1, x=0), total, values)


def test_size(comm: MPI.Intracomm) -> None:
    """The velocity is V = x: m ∝ L³, J ∝ L⁵, ω ∝ 1/L, modes ∝ L^(-3/2), stiffening ∝ L⁻⁴."""
    model = two_materials(comm)
    base = reduced(model)
    size = mbd.Parameter("size", "shape", velocity=ufl.SpatialCoordinate(model.plain_mesh))
    table = mbd.sensitivities(base, [size])
    body, values = base.body, numbers(base.body)
    degrees = {
        "total_mass": 3, "stiffness": -2, "frequencies": -1, "interface_points": 1, "positions": 1,
        "point_modes": -1.5, "spin_stiffening": 0, "skin_positions": 1, "skin_modes": -1.5,
    }  # fmt: skip
    expected: dict[str, Any] = {name: degree * values[name] for name, degree in degrees.items()}
    turns = np.repeat([0.0, 1.0], 3)  # 0 for translations or forces, 1 for rotations or moments
    motions = values["interface_motions"]
    expected["interface_motions"] = (-1.5 - turns)[:, None] * motions
    wrenches = values["interface_stiffening"]
    expected["interface_stiffening"] = (-4 - turns)[:, None, None] * wrenches
    expected |= powers(body, -1.5, S=4, H=5, x=1)
    check(expected, combined(table, {"size": 1.0}), values)


def test_translation(comm: MPI.Intracomm) -> None:
    """A displaced body has the same modes; its moments change by those of the displacement."""
    shift = np.array([0.3, -0.2, 0.1])
    base = reduced(two_materials(comm))
    moved = mbd.Parameter("motion", "shape", velocity=ufl.as_vector(shift.tolist()))
    derivative = combined(mbd.sensitivities(base, [moved]), {"motion": 1.0})
    body, values = base.body, numbers(base.body)
    expected = {name: 0 * value for name, value in values.items()}
    for name in ("interface_points", "positions", "skin_positions"):
        expected[name] = expected[name] + shift
    S = body.first_moments
    expected["first_moments"][0] = body.total_mass * shift
    expected["second_moments"][0] += np.einsum("a,lb->lab", shift, S)
    expected["second_moments"][:, 0] += np.einsum("ka,b->kab", S, shift)
    check(expected, derivative, values)


def test_rotation(comm: MPI.Intracomm) -> None:
    """The data of a rotated body rotate, and its modes mix so that they change least.

    With the velocity V = w×x, the derivatives of the modes Ψ are Ψ′ = w×Ψ − Ψ A, where
    A_kl = ∫ρ ψ_k·(w×ψ_l).
    """
    w = np.array([0.5, 0.7, -0.4])
    spin = np.cross(w, np.eye(3)).T  # spin @ a = w × a
    model = two_materials(comm)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    base = reduced(model)
    velocity = ufl.cross(ufl.as_vector(w.tolist()), x)
    table = mbd.sensitivities(base, [mbd.Parameter("motion", "shape", velocity=velocity)])
    body, values = base.body, numbers(base.body)
    S, H = body.first_moments, body.second_moments
    A = np.zeros((body.num_modes + 1,) * 2)
    A[1:, 1:] = np.einsum("ab,klab->kl", spin, H)[1:, 1:]
    K, mix = body.stiffness, A[1:, 1:]
    expected = {name: 0 * values[name] for name in ("total_mass", "frequencies")}
    expected["stiffness"] = mix @ K - K @ mix
    for name in ("interface_points", "positions", "skin_positions"):
        expected[name] = values[name] @ spin.T
    spins = np.kron(np.eye(2), spin)
    motions = values["interface_motions"]
    expected["interface_motions"] = spins @ motions - motions @ mix
    for name, axes in {"point_modes": "kl,pka->pla", "skin_modes": "kl,kpa->lpa"}.items():
        expected[name] = values[name] @ spin.T - np.einsum(axes, mix, values[name])
    expected["first_moments"] = S @ spin.T - A.T @ S
    change = np.einsum("ac,klcb->klab", spin, H) + np.einsum("bc,klac->klab", spin, H)
    change -= np.einsum("mk,mlab->klab", A, H) + np.einsum("ml,kmab->klab", A, H)
    expected["second_moments"] = change
    check(expected, combined(table, {"motion": 1.0}), values)


def test_superposition(comm: MPI.Intracomm) -> None:
    """The derivatives for stretching along x, y and z add up to those for the size."""
    model = two_materials(comm)
    base = reduced(model)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    parameters = [mbd.Parameter("size", "shape", velocity=x)]
    for k in range(3):
        parts = [x[j] if j == k else 0 * x[j] for j in range(3)]
        parameters.append(mbd.Parameter("xyz"[k], "shape", velocity=ufl.as_vector(parts)))
    table = mbd.sensitivities(base, parameters)
    total = combined(table, {"x": 1.0, "y": 1.0, "z": 1.0})
    exact = combined(table, {"size": 1.0})
    check(exact, total, numbers(base.body))


@pytest.mark.parametrize("quantity", ["poisson", "shape"])
def test_simple_modes(comm: MPI.Intracomm, quantity: Any) -> None:
    """dω² = φᵀ(dK − ω²dM)φ of a free body, with K and M from forms that this test defines."""
    model = mbd.ElasticModel(box(comm, cells=(4, 2, 1)), mbd.STEEL)
    mesh, V = model.plain_mesh, model.displacements
    x = ufl.SpatialCoordinate(mesh)
    velocity = ufl.as_vector([x[0] + 3 * x[1] ** 2, x[1] * x[0] / LENGTH, 0.1 * x[0]])
    shape = {"velocity": velocity} if quantity == "shape" else {}
    base = mbd.reduce(model, interfaces=[], num_modes=5)
    table = mbd.sensitivities(base, [mbd.Parameter("p", quantity, **shape)])
    nu = fem.Function(fem.functionspace(mesh, ("DG", 0)))
    nu.x.array[:] = mbd.STEEL.poisson
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    lame = mbd.STEEL.young * nu / ((1 + nu) * (1 - 2 * nu))
    stress = mbd.STEEL.young / (1 + nu) * strain(u) + lame * ufl.tr(strain(u)) * ufl.Identity(3)
    W = scalar_space(V)
    p, q = ufl.TrialFunction(W), ufl.TestFunction(W)
    K, M = ufl.inner(stress, strain(v)) * ufl.dx, mbd.STEEL.density * p * q * ufl.dx
    phi, squares = base.modes, np.diag(base.body.stiffness)
    if quantity == "shape":
        nodal = fem.Function(fem.functionspace(mesh, ("Lagrange", 1, (3,))))
        points = nodal.function_space.element.interpolation_points
        nodal.interpolate(fem.Expression(velocity, points() if callable(points) else points))
        dK, dM = (assembled_matrix(ufl.derivative(form, x, nodal)) for form in (K, M))
        fields = [np.asfortranarray(phi[k::3]) for k in range(3)]
        mass = sum(gram(comm, f, multiply(dM, f)) for f in fields)
    else:
        unit = fem.Function(nu.function_space)
        unit.x.array[:] = 1.0
        dK, mass = assembled_matrix(ufl.derivative(K, nu, unit)), np.zeros((len(squares),) * 2)
    change = np.diag(gram(comm, phi, multiply(dK, phi)) - squares * mass)
    assert np.abs(np.diag(table["p"].stiffness) - change).max() <= RELATIVE * squares.max()
    rate = change / (8 * np.pi**2 * base.body.frequencies)
    assert np.abs(table["p"].frequencies - rate).max() <= RELATIVE * base.body.frequencies[0]


def test_double_and_axial_modes() -> None:
    """Traces of the derivative of a double mode, and the length of a bar along its axis."""
    for values, exact in (sensitivities.double_mode(), sensitivities.axial_mode()):
        assert values == pytest.approx(list(exact.values()), rel=RELATIVE, abs=RELATIVE)


def test_slender_bar() -> None:
    """L dω/dL = -2ω and h dω/dh = ω, up to shear and rotary inertia, of the order (h/L)²."""
    values, exact = sensitivities.slender_bar()
    assert values == pytest.approx(list(exact.values()), rel=3e-3)
