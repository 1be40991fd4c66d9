"""Strain gauges: known strain fields, curved surfaces, files, errors, any number of ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dolfinx import fem
from dolfinx.mesh import CellType, create_rectangle
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.fem.fields import locate
from tests.models.bodies import CENTRE, HEIGHT, LENGTH, WIDTH, box, ellipsoid
from tests.models.statics import static_eta

TOP, TILTED = np.array([0.061, 0.009, WIDTH]), np.array([0.8, 0.6, 0.1])


def reduced(
    comm: MPI.Intracomm, cell: CellType = CellType.tetrahedron, skin: bool = True
) -> mbd.reduction.Reduction:
    """Return the reduction of a box with a point on its top."""
    mesh = box(comm, cells=(9, 3, 2), cell=cell)
    options = mbd.ReductionOptions(skin=skin)
    points = {"top": TOP}
    interfaces = ["left", "right"]
    return mbd.reduce(
        mesh, mbd.STEEL, interfaces=interfaces, num_modes=0, points=points, options=options
    )


@pytest.fixture(scope="module")
def bar() -> mbd.reduction.Reduction:
    """Return the reduction of a box of tetrahedra."""
    return reduced(MPI.COMM_WORLD)


def with_field(
    bar: mbd.reduction.Reduction, gradient: np.ndarray, curvature: np.ndarray
) -> mbd.reduction.Reduction:
    """Return a reduction all of whose modes are u_i = G_ij x_j + C_ijk x_j x_k / 2."""
    u = fem.Function(bar.space)
    dim = bar.space.mesh.geometry.dim

    def values(x: np.ndarray) -> np.ndarray:
        return (gradient @ x + 0.5 * np.einsum("ijk,jp,kp->ip", curvature, x, x))[:dim]

    u.interpolate(values)
    owned = u.x.array[: len(bar.modes), None]
    return replace(bar, modes=np.repeat(owned, bar.body.num_modes, axis=1))


def strain_at(x: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """Return the strain of a displacement with a gradient that is linear in space."""
    G = gradient + curvature @ x
    return 0.5 * (G + G.T)


@pytest.mark.parametrize("cell", [CellType.tetrahedron, CellType.hexahedron])
@pytest.mark.parametrize("kind", ["single", "rectangular", "delta"])
def test_gauges_measure_a_known_strain_field(cell: CellType, kind: str) -> None:
    """The strain is linear in space, so that its average is the value at the centre."""
    rng = np.random.default_rng(3)
    G, C = rng.normal(size=(3, 3)), rng.normal(size=(3, 3, 3))
    C += C.transpose(0, 2, 1)
    bar = reduced(MPI.COMM_WORLD, cell)
    spec = mbd.durability.GaugeSpec("top", TILTED, "15mm", kind)
    side = mbd.durability.GaugeSpec((0.03, HEIGHT, 0.005), (1, 0, 1), 4e-3, kind)
    body = mbd.gauges(with_field(bar, G, C), {"top": spec, "side": side}).body
    eta = np.eye(1, bar.body.num_modes)
    for name, normal in (("top", (0, 0, 1)), ("side", (0, 1, 0))):
        gauge = body.gauge(name)
        assert gauge.normal == pytest.approx(normal)
        strain = strain_at(gauge.position, G, C)
        measured = gauge.history(eta).strain[0]
        exact = np.einsum("gi,ij,gj->g", gauge.directions, strain, gauge.directions)
        assert measured == pytest.approx(exact, rel=1e-10, abs=1e-10)
    expected = {"single": [0], "rectangular": [0, 45, 90], "delta": [0, 60, 120]}[kind]
    assert np.rad2deg(body.gauge("top").angles) == pytest.approx(expected)
    tilted = np.array([0.8, 0.6, 0.0])
    assert body.gauge("top").directions[0] == pytest.approx(tilted)
    if kind == "single":
        return
    rosette = body.gauge("top").history(eta)
    in_plane = strain_at(TOP, G, C)[:2, :2]
    values, vectors = np.linalg.eigh(in_plane)
    assert rosette.principal[0] == pytest.approx(values[::-1], rel=1e-9)
    angle = rosette.direction[0] + np.arctan2(0.6, 0.8)
    assert abs(vectors[:, 1] @ (np.cos(angle), np.sin(angle))) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["rectangular", "delta"])
def test_tension_and_shear_have_their_principal_strains(
    bar: mbd.reduction.Reduction, kind: str
) -> None:
    """In tension ε along the bar and −νε across it; in shear ±γ/2 at 45°."""
    nu, strain = 0.3, 1e-4
    spec = {"g": mbd.durability.GaugeSpec(TOP, (np.cos(0.3), np.sin(0.3), 0), 3e-3, kind)}
    tension, shear = strain * np.diag([1, -nu, -nu]), strain * np.eye(3)[[1, 0, 2]] * [1, 1, 0]
    for gradient, least, angle in ((tension, -nu, 0.0), (shear, -1.0, np.pi / 4)):
        loaded = mbd.gauges(with_field(bar, gradient, np.zeros((3, 3, 3))), spec)
        rosette = loaded.body.gauge("g").history(np.eye(1, bar.body.num_modes))
        assert rosette.principal[0] == pytest.approx([strain, least * strain], rel=1e-8)
        assert rosette.direction[0] == pytest.approx(angle - 0.3, abs=1e-8)


def test_a_bar_in_bending_has_the_strain_of_a_beam(bar: mbd.reduction.Reduction) -> None:
    """ε = M h/(2 E I) at the top face far from the ends, where moments M = ±10 N m act."""
    moment = 10.0
    wrenches = np.zeros((1, 2, 6))
    wrenches[0, :, 4] = moment, -moment
    spec = mbd.durability.GaugeSpec((LENGTH / 2, HEIGHT / 2, WIDTH), (1, 0, 0), 5e-3, "rectangular")
    body = mbd.gauges(bar, {"g": spec}).body
    rosette = body.gauge("g").history(static_eta(body, wrenches))
    inertia = HEIGHT * WIDTH**3 / 12
    strain = moment * WIDTH / 2 / (mbd.STEEL.young * inertia)
    assert abs(rosette.strain[0, 0]) == pytest.approx(strain, rel=0.01)
    assert rosette.strain[0, 2] == pytest.approx(
        -mbd.STEEL.poisson * rosette.strain[0, 0], rel=0.03
    )


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_grids_follow_a_curved_surface(order: int) -> None:
    """On an ellipse, the average of ε_zz t_z² along a grid is an integral over the arc.

    Here ε_zz = 1, and t_z = dz/ds is a component of the tangent. On a plane the average is 1.
    """
    mesh = mbd.build_mesh(ellipsoid(0.004, order), MPI.COMM_WORLD)
    ball = mbd.reduce(mesh, mbd.STEEL, interfaces={}, num_modes=1, stiffening=False)
    stretched = with_field(ball, np.diag([0.0, 0.0, 1.0]), np.zeros((3, 3, 3)))
    a, _, c = 0.03, 0.025, 0.02  # half axes of the ellipsoid
    length = 0.015
    spec = mbd.durability.GaugeSpec(CENTRE + np.array([a, 0, 0]), (0, 0, 1), length)
    gauge = mbd.gauges(stretched, {"g": spec}).body.gauge("g")
    angle = np.linspace(0, 1, 4001)
    x, z = a * np.cos(angle), c * np.sin(angle)
    arc = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(z)))])
    end = np.searchsorted(arc, length / 2)
    dz, ds = np.diff(z)[:end], np.diff(arc)[:end]
    exact = (dz**2 / ds).sum() / arc[end]
    assert gauge.history([[1.0]]).strain.item() == pytest.approx(exact, rel=5e-3)
    assert exact < 0.97


def test_gauges_are_equal_on_any_number_of_ranks(bar: mbd.reduction.Reduction) -> None:
    specs = {
        "a": mbd.durability.GaugeSpec(TOP, TILTED, 3e-3, "delta"),
        "b": mbd.durability.GaugeSpec((0.1, 0.0, 0.004), (1, 0, 0.3), 8e-3),
    }
    wrenches = np.zeros((1, 2, 6))
    wrenches[0, :, :] = [0, 0, 0, 3, 5, 2], [0, 0, 0, -3, -5, -2]
    alone = reduced(MPI.COMM_SELF, skin=False)
    histories = []
    for reduction in (bar, alone):
        body = mbd.gauges(reduction, specs).body
        eta = static_eta(body, wrenches)
        histories.append(np.hstack([g.history(eta).strain for g in body.gauges]))
        modes = body.gauges[0].modes
        assert all(np.array_equal(modes, m) for m in reduction.space.mesh.comm.allgather(modes))
    assert histories[0] == pytest.approx(histories[1], rel=1e-6)


def test_positions_with_units(bar: mbd.reduction.Reduction) -> None:
    point = (0.1, 0.0, 0.004)
    text: Any = ("100mm", 0.0, "0.4cm")
    assert mbd.durability.GaugeSpec(text, (1, 0, 0), 8e-3).position == pytest.approx(point)
    assert mbd.InterfaceSpec("left", point=text).point == pytest.approx(point)
    x, _, _ = locate(bar.space.mesh, {"p": text})
    assert x[0] == pytest.approx(point)


def test_gauges_of_a_plane_body() -> None:
    mesh = create_rectangle(MPI.COMM_WORLD, [(0, 0), (0.1, 0.04)], [10, 4])
    plate = mbd.ElasticModel(mesh, mbd.STEEL, plane="stress", thickness=2e-3)
    reduction = mbd.reduce(plate, interfaces={}, num_modes=2, stiffening=False)
    G = np.array([[1.0, 0.5, 0], [0.3, -2.0, 0], [0, 0, 0]])
    field = with_field(reduction, G, np.zeros((3, 3, 3)))
    spec = mbd.durability.GaugeSpec((0.05, 0.02), (1, 0, 0), 5e-3, "rectangular")
    gauge = mbd.gauges(field, {"g": spec}).body.gauge("g")
    # ε_xx, ε_yy, ε_xy
    assert gauge.history([[1.0, 0.0]]).surface_strain[0] == pytest.approx([1.0, -2.0, 0.4])


def test_a_saved_body_keeps_its_gauges(bar: mbd.reduction.Reduction, tmp_path: Path) -> None:
    specs = {"a": mbd.durability.GaugeSpec("top", TILTED, 3e-3, "delta")}
    first = mbd.gauges(bar, specs)
    body = mbd.gauges(first, {"b": mbd.durability.GaugeSpec("top", (1, 0, 0), 3e-3)}).body
    assert [g.name for g in body.gauges] == ["a", "b"]
    assert body.gauge("a").labels == ("a 0°", "a 60°", "a 120°")
    path = body.save(Path(MPI.COMM_WORLD.bcast(str(tmp_path))) / "bar.npz", comm=MPI.COMM_WORLD)
    loaded = mbd.ReducedBody.load(path)
    eta = np.arange(1.0, bar.body.num_modes + 1)
    for gauge, loaded_gauge in zip(body.gauges, loaded.gauges, strict=True):
        assert np.array_equal(gauge.history(eta).strain, loaded_gauge.history(eta).strain)
        assert (gauge.name, gauge.length) == (loaded_gauge.name, loaded_gauge.length)
        assert np.array_equal(gauge.angles, loaded_gauge.angles)
    few = body.truncated(2)
    assert few.gauge("b").history(eta[:2]).strain == pytest.approx(
        eta[:2] @ body.gauge("b").modes[0, :2]
    )
    assert body.rigid().gauge("b").modes.shape == (1, 0)
    assert "strain gauge" in body.summary()


FAULTS = {  # parts of the messages, and the arguments that cause them
    "0.012 m from the surface": {"position": (0.06, 0.009, WIDTH + 0.012)},
    "on an edge of the body": {"position": (0.06, 0.0, WIDTH)},
    "is 84° from the surface": {"direction": (0.1, 0, 1)},
    "of 0.2 m .* crosses an edge of the body": {"length": 0.2},
    "of 0.025 m .* crosses an edge of the body": {"direction": (0, 1, 0), "length": 0.025},
    "unknown point 'bottom'": {"position": "bottom"},
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_gauge_that_cannot_be_attached_is_an_error(
    bar: mbd.reduction.Reduction, text: str
) -> None:
    values = {"position": TOP, "direction": (1, 0, 0), "length": 3e-3} | FAULTS[text]
    with pytest.raises(mbd.errors.InputError, match=text):
        mbd.gauges(bar, {"g": mbd.durability.GaugeSpec(**values)})


def test_other_faults(bar: mbd.reduction.Reduction) -> None:
    spec = mbd.durability.GaugeSpec(TOP, (1, 0, 0), 3e-3)
    above = replace(spec, position=(0.06, 0.009, WIDTH + 0.012))
    near = mbd.gauges(bar, {"g": above}, tolerance="15mm").body.gauge("g")
    assert near.position == pytest.approx((0.06, 0.009, WIDTH))
    with pytest.raises(
        mbd.errors.InputError, match="gauges must be a list of parts with different"
    ):
        mbd.gauges(mbd.gauges(bar, {"g": spec}), {"g": spec})
    assert mbd.gauges(bar, {}).body.gauges == ()
    with pytest.raises(mbd.errors.InputError, match="needs a rosette"):
        _ = near.history(np.zeros(bar.body.num_modes)).principal
    for wrong in (
        {"direction": (0, 0, 0)},
        {"length": 0.0},
        {"kind": "T"},
        {"position": (1, 2, 3, 4)},
    ):
        with pytest.raises(mbd.errors.InputError, match=next(iter(wrong))):
            replace(spec, **wrong)
