"""Bodies that follow their parameters: new bodies, first order, materials, and tangled meshes."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_rectangle, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.mesh_checks import cell_quality
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box

ENDS = ["left", "right"]
MIDDLE = (LENGTH / 2, HEIGHT / 2, WIDTH / 2)


def family(comm: MPI.Intracomm, **options: Any) -> mbd.design.ParametricBody:
    """Return a bar with three parameters: relative changes of length and height, and E in Pa."""
    model = mbd.ElasticModel(box(comm), mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    parameters = [
        mbd.Parameter("length", "shape", velocity=ufl.as_vector([x[0], 0 * x[0], 0 * x[0]])),
        mbd.Parameter("height", "shape", velocity=ufl.as_vector([0 * x[0], x[1], 0 * x[0]])),
        mbd.Parameter("E", "young"),
    ]
    request = {"interfaces": ENDS, "num_modes": 4, "points": {"middle": MIDDLE}}
    return mbd.design.ParametricBody(model, parameters, **request | options)


@pytest.mark.slow
def test_moved_mesh_is_a_new_body(comm: MPI.Intracomm) -> None:
    bar = family(comm)
    table = bar.at({"length": 0.2, "height": -0.3, "E": 150e9})
    size = LENGTH * 1.2, HEIGHT * 0.7, WIDTH
    middle = np.array([1.2, 0.7, 1.0]) * MIDDLE
    model = mbd.ElasticModel(box(comm, size), replace(mbd.STEEL, young=150e9))
    body = mbd.reduce(model, interfaces=ENDS, num_modes=4, points={"middle": middle}).body
    assert table.body.total_mass == pytest.approx(body.total_mass, rel=1e-12)
    assert table.body.frequencies == pytest.approx(body.frequencies, rel=1e-8)
    assert table.body.points[0].position == pytest.approx(middle, rel=1e-12)
    assert table.body.points[0].modes == pytest.approx(body.points[0].modes, rel=1e-5, abs=1e-7)
    assert table.base == {"length": 0.2, "height": -0.3, "E": 150e9} == bar.values
    bar.at({"length": 0.1})
    restored = bar.at({})
    original = mbd.reduce(box(comm), mbd.STEEL, interfaces=ENDS, num_modes=4).body
    assert restored.body.frequencies == pytest.approx(original.frequencies, rel=1e-9)
    assert bar.count == 4  # reductions: the first one, and one for each call of `at`


@pytest.mark.slow
def test_derivatives_at_a_moved_mesh(comm: MPI.Intracomm) -> None:
    """Velocities belong to the points of the original mesh, wherever these are now."""
    bar, point = family(comm), {"length": 0.2, "height": -0.3, "E": 150e9}
    table = bar.at(point)
    for name, step in (("length", 1e-4), ("height", 1e-4), ("E", 1e7)):
        above, below = (bar.at({**point, name: point[name] + s}).body for s in (step, -step))
        slope = (above.frequencies - below.frequencies) / (2 * step)
        size = np.abs(slope).max()
        assert table[name].frequencies == pytest.approx(slope, rel=1e-6, abs=1e-7 * size)
        slope = (above.total_mass - below.total_mass) / (2 * step)
        assert table[name].total_mass == pytest.approx(slope, rel=1e-6, abs=1e-18)


def test_reduction_is_repeated_when_the_error_asks_for_it(comm: MPI.Intracomm) -> None:
    bar = family(comm, tolerance=4e-3)
    base = bar.at({})
    small = {"length": 0.004, "height": -0.003}
    assert base.error(small) <= 4e-3 < base.error({"height": 0.05})
    first = bar.at(small)
    assert bar.count == 1 and first.base == {**small, "E": 210e9}
    assert first.body.frequencies == pytest.approx(base.at(small).frequencies, rel=1e-14)
    new = bar.reduce(small).body
    assert bar.count == 2
    assert first.body.frequencies == pytest.approx(new.frequencies, rel=4e-3)
    bar.at({"height": 0.05})
    assert bar.count == 3


@pytest.mark.filterwarnings("ignore:the estimated error")
def test_derivatives_of_the_body_of_first_order(comm: MPI.Intracomm) -> None:
    """The derivatives are those of `at`, in the modes of the changed body.

    A wrench at the right end causes the elastic coordinates u. The compliance and the works uᵀGu
    do not depend on the modes; G is the stiffening by a unit of each component of the wrench.
    """
    base = family(comm).at({})
    point, step = {"length": 0.02, "height": -0.01, "E": 200e9}, 1e-5
    load = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])

    def responses(body: mbd.ReducedBody) -> tuple[Any, Any, Any]:
        r = body.interface("right").motion.T @ load
        u = np.linalg.solve(body.stiffness, r)
        assert body.stiffening is not None
        return u, r @ u, np.einsum("k,akl,l->a", u, body.stiffening.interfaces[1], u)

    table = base.moved(point)
    K = table.body.stiffness
    round_off = len(K) * np.finfo(float).eps * np.linalg.cond(K)  # of the lowest eigenvalue
    for name in ("length", "height"):
        above, below = (base.at({**point, name: point[name] + s}) for s in (step, -step))
        slope = (above.frequencies - below.frequencies) / (2 * step)
        assert table[name].frequencies == pytest.approx(slope, rel=1e-6)
        slope = (above.interfaces[1].point - below.interfaces[1].point) / (2 * step)
        assert table[name].interface_points[1] == pytest.approx(slope, abs=1e-9)
        for s, expected in ((0.0, table.body), (step, above)):
            frequencies = table.at({name: point[name] + s}).frequencies
            assert frequencies == pytest.approx(expected.frequencies, rel=round_off)
        (_, *upper), (_, *lower), (u, *_) = (responses(b) for b in (above, below, table.body))
        force_rate = table[name].interface_motions[1].T @ load
        exact = 2 * u @ force_rate - u @ table[name].stiffness @ u
        assert exact == pytest.approx((upper[0] - lower[0]) / (2 * step), rel=1e-6)
        u_rate = np.linalg.solve(K, force_rate - table[name].stiffness @ u)
        G, G_rate = table.body.stiffening.interfaces[1], table[name].interface_stiffening[1]
        exact = 2 * np.einsum("k,akl,l->a", u_rate, G, u) + np.einsum("k,akl,l->a", u, G_rate, u)
        size = np.einsum("k,akl,l->a", np.abs(u), np.abs(G), np.abs(u))
        slope = (upper[1] - lower[1]) / (2 * step)
        assert (np.abs(exact - slope) < 1e-6 * size).all()
        # tr(K⁻¹ G) does not depend on the modes; G is the stiffening by a force along x
        traces = [
            np.trace(np.linalg.solve(b.stiffness, b.stiffening.interfaces[1, 0]))
            for b in (above, below, table.body)
        ]
        inverse = np.linalg.inv(table.body.stiffness)
        exact = np.trace(inverse @ table[name].interface_stiffening[1, 0]) - np.trace(
            inverse @ table[name].stiffness @ inverse @ table.body.stiffening.interfaces[1, 0]
        )
        assert exact == pytest.approx((traces[0] - traces[1]) / (2 * step), rel=1e-5)


def test_plates_materials_and_fields(comm: MPI.Intracomm) -> None:
    """The parameters are a thickness and a field that grows with its parameter."""
    mesh = create_rectangle(comm, [(0.0, 0.0), (0.2, 0.05)], [8, 3])
    f = fem.Function(fem.functionspace(mesh, ("DG", 0)))
    f.x.array[:] = 7850.0
    direction = fem.Function(f.function_space)
    direction.x.array[:] = 785.0
    steel = mbd.forms.GradedMaterial(young=210e9, poisson=0.3, density=f)
    plate = mbd.ElasticModel(mesh, steel, plane="stress", thickness=0.01)
    parameters = [
        mbd.Parameter("h", "thickness"),
        mbd.Parameter("rho", "coefficient", coefficient=f, direction=direction),
    ]
    sheet = mbd.design.ParametricBody(plate, parameters, interfaces=[], num_modes=3)
    base = sheet.at({}).body
    heavy = sheet.at({"rho": 1.0, "h": 0.02}).body
    assert heavy.total_mass == pytest.approx(2.2 * base.total_mass, rel=1e-12)
    assert heavy.frequencies == pytest.approx(base.frequencies / np.sqrt(1.1), rel=1e-8)
    assert sheet.at({}).body.frequencies == pytest.approx(base.frequencies, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["temperature", "shear_12", "density"])
def test_temperature_and_orthotropic_constants(comm: MPI.Intracomm, quantity: Any) -> None:
    """Reductions with the parameter changed by ±0.1 % agree with the derivative between them."""
    mesh = box(comm)
    x = ufl.SpatialCoordinate(mesh.mesh)
    if quantity == "temperature":
        expansion = 12e-6 * (1 + 1e5 * x[1] ** 2)
        material: Any = mbd.forms.GradedMaterial(210e9, 0.3, 7850.0, "", expansion)
        model = mbd.ElasticModel(mesh, material, prestress=mbd.forms.Temperature(50.0))
    else:
        ply = mbd.forms.Orthotropic(
            young=(140e9, 10e9, 12e9),
            poisson=(0.3, 0.28, 0.4),
            shear=(5e9, 4.5e9, 3.5e9),
            density=1600.0,
        )
        model = mbd.ElasticModel(mesh, ply)
    parameters = [mbd.Parameter("p", quantity)]
    bar = mbd.design.ParametricBody(model, parameters, interfaces=ENDS, num_modes=3)
    base = bar.values["p"]
    assert base == {"temperature": 50.0, "shear_12": 5e9, "density": 1600.0}[quantity]
    below, middle, above = (bar.at({"p": s * base}) for s in (0.999, 1.0, 1.001))
    change = above.body.frequencies - below.body.frequencies
    assert np.abs(change).max() > 1e-6 * np.abs(middle.body.frequencies).max()
    slope = 2e-3 * base * middle["p"].frequencies
    assert change == pytest.approx(slope, rel=1e-5, abs=1e-5 * np.abs(change).max())


@pytest.mark.slow
def test_error_of_a_reduction(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error after the mesh has moved leaves no old reduction on the moved mesh."""
    bar = family(comm)
    exact = bar.at({})["height"].frequencies
    with pytest.raises(InputError, match="young must be"):
        bar.at({"length": 0.3, "E": -1.0})
    assert bar.values == {"length": 0.0, "height": 0.0, "E": 210e9}
    module = sys.modules["dolfinx_mbd.design.optimization.parametric_body"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "Reducer", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bar.at({"length": 0.3})
    assert bar.at({})["height"].frequencies == pytest.approx(exact, rel=1e-8)


def test_quality_of_cells(comm: MPI.Intracomm) -> None:
    """A cube has the quality 1; scaled to the height s, it has s / ((2 + s²)/3)^(3/2).

    The quality of a tetrahedron of volume V with edges l is (12 (3V)^(2/3) / Σ l²)^(3/2). A cube of
    edge 1 is divided into tetrahedra with V = 1/6 and edges 1, 1, 1, √2, √2, √3, so that Σ l² = 10.
    """
    kuhn = (12 * 0.5 ** (2 / 3) / 10) ** 1.5
    for cell, best in ((CellType.hexahedron, 1.0), (CellType.tetrahedron, kuhn)):
        mesh = box(comm, (1.0, 1.0, 1.0), (2, 2, 2), cell).mesh
        x = mesh.geometry.x.copy()
        quality = np.abs(cell_quality(mesh, x))
        assert max(comm.allgather(quality.max(initial=0.0))) == pytest.approx(best)
        if cell == CellType.hexahedron:
            x[:, 2] *= -0.5
            assert cell_quality(mesh, x) == pytest.approx(-0.5 / 0.75**1.5)


def test_tangled_mesh(comm: MPI.Intracomm) -> None:
    """The error states the values, 12 cells (all) and the quality; the mesh is unchanged."""
    bar = family(comm)
    before = bar.model.plain_mesh.geometry.x.copy()
    for height, verb in ((-1.5, "inverts"), (-0.999, "flattens")):
        with pytest.raises(InputError, match=rf"{verb} 12 cells.*'height': {height}.*quality"):
            bar.at({"height": height})
        assert np.array_equal(bar.model.plain_mesh.geometry.x, before)
    assert bar.count == 1


def test_bad_input(comm: MPI.Intracomm) -> None:
    with pytest.raises(InputError, match="unknown parameter 'width'"):
        family(comm).at({"width": 1.0})
    ends = {"left": mbd.InterfaceSpec(point=(0, 0, 0)), "right": "right"}
    with pytest.raises(InputError, match="has a fixed point"):
        family(comm, interfaces=ends)
    with pytest.raises(InputError, match="tolerance"):
        family(comm, tolerance=-1.0)
    model = mbd.ElasticModel(box(comm), mbd.STEEL, prestress=mbd.forms.Temperature(10.0))
    x = ufl.SpatialCoordinate(model.plain_mesh)
    for names, match in {
        ("prestress",): "use the quantity 'coefficient'",
        ("young", "young"): "different names",
    }.items():
        parameters: Any = [mbd.Parameter("p", name) for name in names]  # type: ignore[arg-type]
        with pytest.raises(InputError, match=match):
            mbd.design.ParametricBody(model, parameters, interfaces=ENDS)
    plane = mbd.Parameter("s", "shape", velocity=ufl.as_vector([x[0], x[1]]))
    with pytest.raises(InputError, match=r"an expression of shape \(3,\)"):
        mbd.design.ParametricBody(model, [plane], interfaces=ENDS)


@pytest.mark.slow
def test_cantilever_of_least_mass(comm: MPI.Intracomm) -> None:
    """The lightest cantilever with a given deflection is fully stressed: its height is h₀ √(x/L).

    The force F acts at x = 0, beyond the tip at 0.1 L, so that M = F x. Among all heights h(x) with
    the same ∫ M²/(E I) dx, that with the least ∫ h dx satisfies h⁴ ∝ M², which is a constant stress
    6 M/(b h²) for the thickness b. The given deflection is that of the start, a cantilever of
    constant height h₁. The lightest cantilever has this deflection if h₀³ = h₁³ ∫ √s ds / ∫ s² ds,
    where both integrals extend over s = x/L from 0.1 to 1. Beam theory omits shear and the rigid
    ends; with a height of 0.02 L they change the least mass by 1e-4, relatively.
    """
    L, h, tip = 1.0, 0.02, 0.1
    mesh = create_rectangle(comm, [(tip * L, -h / 2), (L, h / 2)], [40, 2], CellType.quadrilateral)
    ends = [locate_entities_boundary(mesh, 1, lambda x, a=a: np.isclose(x[0], a)) for a in (0.1, 1)]
    model = mbd.ElasticModel(mesh, mbd.STEEL, plane="stress", thickness=0.01)
    x, y = ufl.SpatialCoordinate(model.plain_mesh)
    shapes = {"1": 1.0, "root": ufl.sqrt(x / L), "linear": x / L}
    body = mbd.design.ParametricBody(
        model,
        [
            mbd.Parameter(name, "shape", velocity=ufl.as_vector([0 * x, y * f]))
            for name, f in shapes.items()
        ],
        interfaces={"tip": ends[0], "root": ends[1]},
        attached_to="root",
        num_modes=2,
        stiffening=False,
    )
    wrench = np.array([0, 1.0, 0, 0, 0, -tip * L])  # F = 1 N at x = 0, relative to the tip

    def mass(table: mbd.design.BodySensitivities) -> Any:
        return table.body.total_mass, {k: d.total_mass for k, d in table.items()}

    def deflection(table: mbd.design.BodySensitivities) -> Any:
        r = table.body.interface("tip").motion.T @ wrench
        u = np.linalg.solve(table.body.stiffness, r)
        slopes = {
            k: 2 * wrench @ d.interface_motions[0] @ u - u @ d.stiffness @ u
            for k, d in table.items()
        }
        return r @ u, slopes

    start = dict.fromkeys(shapes, 0.0)
    base = body.at(start)
    exact = 12 / (210e9 * 0.01 * h**3) * (L**3 - (tip * L) ** 3) / 3  # ∫ M²/(E I) dx
    assert deflection(base)[0] == pytest.approx(exact, rel=5e-3)
    limits = {"deflection": mbd.design.Limits(deflection, high=deflection(base)[0])}
    bounds = {"1": (-1.2, 1.0), "root": (-1.0, 2.0), "linear": (-1.0, 1.0)}
    result = mbd.minimize(
        mass, start, limits, bounds=bounds, model=body.at, tolerance=1e-5, comm=comm
    )
    s = np.linspace(tip, 1.0, 11)
    height = h * (
        1 + sum(result.values[k] * f for k, f in zip(shapes, (1, s**0.5, s), strict=True))
    )
    largest = h * (2 / 3 * (1 - tip**1.5) / ((1 - tip**3) / 3)) ** (1 / 3)
    least = 2 / 3 * (1 - tip**1.5) / (1 - tip) * largest / h * base.body.total_mass
    assert height == pytest.approx(largest * np.sqrt(s), rel=2e-3)
    assert result.objective == pytest.approx(least, rel=3e-4)
    assert result.active == {"deflection": "high"}
    best = body.reduce(result.values)
    eta = np.linalg.solve(best.body.stiffness, best.body.interface("tip").motion.T @ wrench)
    places = np.column_stack([s * L, height / 2 * (1 - 1e-9)])[1:-1]
    stress = np.abs(mbd.durability.Recovery(best).at("stress", eta, places)[0, :, 0, 0])
    assert stress == pytest.approx(
        6 * L / (0.01 * largest**2), rel=0.012
    )  # at the nodes of the mesh
