"""Safety factors: closed forms, brute force, a plate with a hole, errors, any number of ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx.mesh import locate_entities, meshtags
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from dolfinx_mbd.durability.recovery import Recovery, skin_stress
from dolfinx_mbd.reduction.mode_tables import material_groups
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box

AREA = HEIGHT * WIDTH
FORCE, LIMIT = 1.2e4, 250e6
SLENDER = mbd.Material(210e9, 0.0, 7850.0, "steel", yield_strength=LIMIT)
"""A material that does not contract, so that rigid ends do not disturb the stress."""


@lru_cache
def bar(poisson: float = 0.0, cells: tuple[int, int, int] = (6, 1, 1)) -> mbd.reduction.Reduction:
    """Return the reduction of a bar whose material has a yield strength."""
    material = mbd.Material(210e9, poisson, 7850.0, "steel", yield_strength=LIMIT)
    mesh = box(MPI.COMM_WORLD, cells=cells)
    options = mbd.ReductionOptions(static_correction=True)
    return mbd.reduce(mesh, material, interfaces=["left", "right"], num_modes=3, options=options)


def axial(left: float, right: float) -> dict[str, list[float]]:
    """Return wrenches at both ends, of forces along the bar."""
    return {"left": [left, 0, 0, 0, 0, 0], "right": [right, 0, 0, 0, 0, 0]}


def test_pulled_bar() -> None:
    """For each criterion of tension, σ = F/A everywhere, and the factor is strength over σ."""
    pulled = mbd.durability.inertia_relief(bar(), axial(-FORCE, FORCE))
    assert np.allclose(pulled.acceleration, 0, atol=1e-6)
    for criterion in ("von Mises", "Tresca", "greatest principal"):
        result = mbd.strength(bar(), pulled, criterion=criterion)  # type: ignore[arg-type]
        assert np.allclose(result.stress, FORCE / AREA, rtol=1e-6)
        assert np.allclose(result.factor, LIMIT * AREA / FORCE, rtol=1e-6)
        assert result.least == pytest.approx(LIMIT * AREA / FORCE, rel=1e-6)
    assert mbd.strength(bar(), pulled, criterion="least principal").least > 1e6


def test_bar_that_accelerates() -> None:
    """A force at one end: σ = F/A at this end, and it decreases linearly to zero at the other."""
    result = mbd.strength(bar(), mbd.durability.inertia_relief(bar(), axial(0.0, FORCE)))
    expected = FORCE / AREA * result.points[:, 0] / LENGTH
    assert np.allclose(result.stress, expected, atol=1e-6 * FORCE / AREA)
    assert result.places[0].position[0] == pytest.approx(LENGTH)
    assert result.places[0].interface == "right"
    # the bar has 3 + 6 elastic coordinates; numbers without a load case are a history
    assert "load case" in str(result) and "time (ms)" in str(mbd.strength(bar(), [0.0] * 9))


def test_spinning_bar() -> None:
    """σ = ρ Ω²/2 (l²/4 − x²) at the distance x from the centre, here x = 0.

    The body is free: its centre, which is not the origin of the frame, does not accelerate.
    """
    omega = 400.0
    spin = mbd.durability.inertia_relief(bar(), omega=(0.0, 0.0, omega))
    stress = Recovery(bar()).at("stress xx", spin, [LENGTH / 2, HEIGHT / 2, WIDTH / 2])
    expected = SLENDER.density * omega**2 * LENGTH**2 / 8
    assert stress[0, 0] == pytest.approx(expected, rel=2e-2)  # (the bar is not slender)
    centre = spin.acceleration[0] - omega**2 * bar().body.centre * [1, 1, 0]
    assert np.allclose(centre, 0, atol=1e-6 * omega**2)


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.AccuracyWarning")
def test_load_cases_agree_with_the_equations_of_a_simulation() -> None:
    """A simulation with a small wrench starts quasi-statically with the same coordinates."""
    body = bar().body
    wrench = 1e-6 * np.array([500.0, -300.0, 200.0, 1.0, 2.0, -3.0])
    flexible = mbd.FlexibleBody("bar", body)
    frame, options = flexible.frame("right"), {"axes": "frame"}
    loads = [
        mbd.force("push", frame, lambda t, _: wrench[:3], **options),  # type: ignore[arg-type]
        mbd.torque("turn", frame, lambda t, _: wrench[3:], **options),  # type: ignore[arg-type]
    ]
    run = mbd.simulate(mbd.System([flexible], [], loads=loads), t_end=1e-6, dt=1e-6).body("bar")
    axes = body.interface("right").axes
    cases = mbd.durability.inertia_relief(
        body, {"right": np.hstack([axes @ wrench[:3], axes @ wrench[3:]])}
    )
    assert np.allclose(run.eta[0], cases.eta[0], atol=1e-6 * np.abs(cases.eta).max())
    assert np.allclose(run.acceleration[0], cases.acceleration[0], rtol=1e-6)
    assert np.allclose(run.alpha[0], cases.alpha[0], rtol=1e-6)


def motion(body: mbd.ReducedBody, times: int = 200) -> SimpleNamespace:
    """Return a history of elastic coordinates, sines of different frequencies."""
    t = np.linspace(0, 1, times)
    phases = np.arange(body.num_modes)
    eta = 1e-5 * np.sin(2 * np.pi * t[:, None] * (1 + phases) + phases) / (1 + phases) ** 2
    return SimpleNamespace(time=t, eta=eta)


def test_block_wise_result_is_that_of_stored_histories() -> None:
    source = bar(0.3, (4, 2, 1))
    history = motion(source.body)
    result = mbd.strength(source, history, count=3)
    fields = mbd.recover(source, history, "von Mises")
    stored = np.array([fields.values(k) for k in range(len(fields))])
    assert np.allclose(result.stress, stored.max(axis=0), rtol=1e-12)
    assert np.array_equal(result.time, history.time[stored.argmax(axis=0)])
    assert np.allclose(result.utilization * LIMIT, result.stress, rtol=1e-14)
    least = np.stack([mbd.recover(source, history, "least principal").values(k) for k in range(9)])
    cut = SimpleNamespace(time=history.time[:9], eta=history.eta[:9])
    pressed = mbd.strength(source, cut, criterion="least principal", limit=1e8)
    assert np.allclose(pressed.stress, -least.min(axis=0), rtol=1e-9, atol=1.0)


def test_criterion_as_ufl() -> None:
    source = bar(0.3, (4, 2, 1))
    history = motion(source.body, 20)

    def mises(sigma: Any) -> Any:
        return ufl.sqrt(1.5 * ufl.inner(ufl.dev(sigma), ufl.dev(sigma)))

    ours = mbd.strength(source, history, criterion=mises)
    named = mbd.strength(source, history)
    assert np.allclose(ours.stress, named.stress, rtol=1e-9)
    assert ours.criterion == "mises"
    assert [p.position for p in ours.places] == [p.position for p in named.places]
    with pytest.raises(errors.InputTypeError):
        mbd.strength(source, history, criterion=lambda sigma: sigma)
    with pytest.raises(errors.InputError):
        mbd.strength(source, history, criterion=lambda sigma: 1 / (sigma[0, 0] - sigma[0, 0]))


def test_each_material_has_its_strength() -> None:
    """Two materials in series have the same stress; the weaker one comes first in the table."""
    plain = box(MPI.COMM_WORLD, cells=(6, 1, 1))
    mesh = plain.mesh
    cells = mesh.topology.index_map(3).size_local
    soft_cells = locate_entities(mesh, 3, lambda x: x[0] < LENGTH / 2 + 1e-9)
    values = np.full(cells, 2, dtype=np.int32)
    values[soft_cells[soft_cells < cells]] = 1
    tags = meshtags(mesh, 3, np.arange(cells, dtype=np.int32), values)
    groups = {"left": (2, 1), "right": (2, 2), "soft": (3, 1), "hard": (3, 2)}
    tagged = mbd.fem.TaggedMesh(mesh, tags, plain.facet_tags, groups)
    soft = mbd.Material(70e9, 0.0, 2700.0, "aluminium", yield_strength=100e6)
    pair = mbd.reduce(
        tagged, {"soft": soft, "hard": SLENDER}, interfaces=["left", "right"], num_modes=2
    )
    result = mbd.strength(pair, mbd.durability.inertia_relief(pair, axial(-FORCE, FORCE)), count=2)
    assert dict(result.limits) == {"soft": 100e6, "hard": LIMIT}
    assert [p.material for p in result.places] == ["soft", "soft", "hard", "hard"]
    factors = [p.factor for p in result.places]
    expected = np.repeat([100e6, LIMIT], 2) * AREA / FORCE
    assert np.allclose(factors, expected, rtol=1e-6)
    for place in result.places:
        assert (place.position[0] <= LENGTH / 2 + 1e-9) or place.material == "hard"
    with pytest.raises(errors.InputError) as error:
        mbd.strength(pair, np.zeros(pair.body.num_modes), limit={"soft": 1e8})
    assert error.value.argument == "limit"
    body = pair.body.replace(stress=skin_stress(pair))
    with pytest.warns(errors.ModelRangeWarning, match="soft: aluminium, hard: .* one strength"):
        mbd.strength(body, np.zeros(body.num_modes), limit=1e8)
    swing = SimpleNamespace(time=np.arange(3.0), eta=np.zeros((3, body.num_modes)))
    for source in (pair, body):
        with pytest.warns(errors.ModelRangeWarning, match="several materials .* '2024-T4'"):
            mbd.fatigue(source, [(swing, 1.0)], material="2024-T4")


def test_groups_of_equal_materials_are_one_material() -> None:
    same = {
        "material": "a: steel, hard, b: steel, hard",
        "a: young (Pa)": 1.0,
        "b: young (Pa)": 1.0,
    }
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({}, ()),
        ({"material": "steel", "young (Pa)": 1.0}, ()),
        (same, ()),
        (same | {"b: young (Pa)": 2.0}, ("a", "b")),
        (same | {"material": "a: steel, hard, b: steel"}, ("a", "b")),
    ]
    for facts, expected in cases:
        assert material_groups(facts) == expected


def test_body_without_its_mesh(tmp_path: Path) -> None:
    """The stress modes at the nodes of the skin give the values of the mesh in a uniform state."""
    source = bar()
    body = source.body.replace(stress=skin_stress(source))
    pulled = mbd.durability.inertia_relief(body, axial(-FORCE, FORCE))
    result = mbd.strength(body, pulled, limit=LIMIT)
    assert len(result.utilization) == len(body.skin.points)  # type: ignore[union-attr]
    assert np.allclose(result.factor, LIMIT * AREA / FORCE, rtol=1e-6)
    assert result.places[0].material == "body"
    with pytest.raises(errors.InputError, match="vtk"):
        result.write(tmp_path / "factor.bp")
    pyvista = pytest.importorskip("pyvista")
    path = MPI.COMM_WORLD.bcast(tmp_path) / f"factor {MPI.COMM_WORLD.rank}.vtk"
    result.write(path)
    mesh = pyvista.read(path)
    assert mesh.points == pytest.approx(result.points, abs=1e-7)
    assert mesh["safety_factor"] == pytest.approx(result.factor)


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.AccuracyWarning")
def test_result_does_not_depend_on_the_number_of_ranks() -> None:
    """The table of all ranks is that of one rank that holds the whole mesh."""
    comm = MPI.COMM_WORLD
    tables = []
    for ranks in (comm, MPI.COMM_SELF):
        source = mbd.reduce(
            box(ranks, cells=(6, 2, 1)), SLENDER, interfaces=["left", "right"], num_modes=3
        )
        wrench = {"left": [1e3, -2e3, 500.0, 3.0, 5.0, -8.0], "right": [4e3, 1e3, 100.0, 0, 0, 20]}
        cases = mbd.durability.inertia_relief(source, wrench)
        tables.append(mbd.strength(source, cases, count=4))
    for ours, single in zip(*(table.places for table in tables), strict=True):
        assert ours.factor == pytest.approx(single.factor, rel=1e-8)
        assert np.allclose(ours.position, single.position, atol=1e-9)
    texts = comm.allgather(str(tables[0]))
    assert set(texts) == {texts[0]}


def test_field_and_file(comm: MPI.Intracomm, tmp_path: Path) -> None:
    result = mbd.strength(bar(), mbd.durability.inertia_relief(bar(), axial(0.0, FORCE)))
    factor = result.field()
    local = factor.x.array.min(initial=np.inf)
    assert comm.allreduce(local, MPI.MIN) == pytest.approx(result.least)
    assert factor.x.array.max(initial=0.0) <= 1000.0
    path = comm.bcast(tmp_path, root=0) / "factor.bp"
    result.write(path)
    comm.barrier()
    assert path.exists()


def test_errors_and_warnings() -> None:
    source = bar()
    zero = np.zeros(source.body.num_modes)
    steel = mbd.reduce(box(MPI.COMM_WORLD, cells=(2, 1, 1)), mbd.STEEL, interfaces=["left"])
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: mbd.strength(steel, np.zeros(steel.body.num_modes)), "limit"),
        (lambda: mbd.strength(source, zero, limit="tensile"), "limit"),
        (lambda: mbd.strength(source, zero, limit=-1.0), "limit"),
        (lambda: mbd.strength(source, zero, criterion="Mises"), "criterion"),  # type: ignore[arg-type]
        (lambda: mbd.strength(source, np.zeros((0, len(zero)))), "history"),
        (lambda: mbd.strength(source.body, zero, limit=1e8), "source"),
        (lambda: mbd.durability.inertia_relief(source, {"top": np.zeros(6)}), "wrenches"),
        (lambda: mbd.durability.inertia_relief(source, amplitudes={"gas": 1.0}), "amplitudes"),
        (lambda: mbd.durability.inertia_relief(source, {"left": np.zeros(5)}), "wrenches['left']"),
    ]
    for call, argument in calls:
        with pytest.raises(errors.InputError) as error:
            call()
        assert error.value.argument == argument, str(error.value)
    with pytest.raises(errors.InputError):
        mbd.durability.inertia_relief(source, {"left": np.zeros((2, 6)), "right": np.zeros((3, 6))})
    with pytest.warns(errors.UnitsWarning, match="steel = 355 Pa is implausible"):
        mbd.strength(source, zero, limit=355.0)
    hot = mbd.ElasticModel(
        box(MPI.COMM_WORLD, cells=(2, 1, 1)),
        mbd.Material(210e9, 0.3, 7850.0, thermal_expansion=1e-5),
        prestress=mbd.forms.Temperature(20.0),
        degree=1,
    )
    warm = mbd.reduce(hot, interfaces=["left", "right"], num_modes=1)
    with pytest.warns(errors.AccuracyWarning, match="prestress"):
        mbd.strength(warm, np.zeros(warm.body.num_modes), limit=1e8)
    swing = SimpleNamespace(time=np.arange(3.0), eta=np.zeros((3, warm.body.num_modes)))
    with pytest.warns(errors.AccuracyWarning, match="not included in the life"):
        mbd.fatigue(warm, [(swing, 1.0)], material="2024-T4")
    few = mbd.reduce(
        box(MPI.COMM_WORLD, cells=(6, 1, 1)), SLENDER, interfaces=["left"], num_modes=0
    )
    # without modes and "right", the body lacks most of the strain energy of this load
    with pytest.warns(errors.AccuracyWarning, match="strain energy"):
        mbd.durability.inertia_relief(few, {"left": [1.0, 0, 0, 0, 0, 0]})


RADIUS, SIGMA = 0.01, 1e6


def kirsch(x: Any) -> Any:
    """Return the stress around a hole in an infinite plate under tension along x, as UFL.

    rr, tt and rt are its polar components relative to the tension, k is (a/r)².
    """
    r2 = ufl.dot(x, x)
    c, s = (x[0] ** 2 - x[1] ** 2) / r2, 2 * x[0] * x[1] / r2  # cos 2θ, sin 2θ
    k = RADIUS**2 / r2
    rr = 0.5 * (1 - k) + 0.5 * (1 - 4 * k + 3 * k**2) * c
    tt = 0.5 * (1 + k) - 0.5 * (1 + 3 * k**2) * c
    rt = -0.5 * (1 + 2 * k - 3 * k**2) * s
    mean, half = 0.5 * (rr + tt), 0.5 * (rr - tt)
    normal, shear = half * c - rt * s, half * s + rt * c
    return SIGMA * ufl.as_matrix([[mean + normal, shear], [shear, mean - normal]])


def plate_with_hole(length: float, width: float, size: float) -> mbd.fem.TaggedMesh:
    """Return a plate with curved cells that are finer at the hole.

    Its groups are "left", "right" and "sides".
    """

    def build(model: Any) -> None:
        occ, field = model.occ, model.mesh.field
        plate = occ.addRectangle(-length / 2, -width / 2, 0, length, width)
        occ.cut([(2, plate)], [(2, occ.addDisk(0, 0, 0, RADIUS, RADIUS))])
        occ.synchronize()
        groups: dict[str, list[int]] = {"left": [], "right": [], "sides": [], "hole": []}
        for _, tag in model.getEntities(1):
            x, y, _ = occ.getCenterOfMass(1, tag)
            end = "left" if x < -length / 2.1 else "right" if x > length / 2.1 else "sides"
            groups["hole" if np.hypot(x, y) < RADIUS else end].append(tag)
        for name, tags in groups.items():
            model.addPhysicalGroup(1, tags, name=name)
        model.addPhysicalGroup(2, [tag for _, tag in model.getEntities(2)], name="plate")
        near, grade = field.add("Distance"), field.add("Threshold")
        field.setNumbers(near, "CurvesList", groups["hole"])
        field.setNumber(near, "Sampling", 400)
        for key, value in {
            "InField": near, "SizeMin": size, "SizeMax": 8 * size, "DistMin": 0.2 * RADIUS,
            "DistMax": 3 * RADIUS,
        }.items():  # fmt: skip
            field.setNumber(grade, key, value)
        field.setAsBackgroundMesh(grade)
        import gmsh

        for option in ("FromPoints", "FromCurvature", "ExtendFromBoundary"):
            name = "Mesh.MeshSize" + option
            gmsh.option.setNumber(name, 0)
        model.mesh.generate(2)
        model.mesh.setOrder(2)

    return mbd.build_mesh(build, MPI.COMM_WORLD)


def ring(cells: int) -> mbd.fem.TaggedMesh:
    """Return a ring of the radii a = `RADIUS` and 4 a in four sectors.

    Each sector has cells × cells quadrilaterals of two triangles each, which are finer at the hole.
    """

    def build(model: Any) -> None:
        geo, mesh = model.geo, model.geo.mesh
        centre = geo.addPoint(0, 0, 0)
        angles = np.pi / 2 * np.arange(4)
        inner, outer = (
            [geo.addPoint(r * np.cos(t), r * np.sin(t), 0) for t in angles]
            for r in (RADIUS, 4 * RADIUS)
        )
        spokes = [geo.addLine(*ends) for ends in zip(inner, outer, strict=True)]
        arcs = [
            [geo.addCircleArc(p[k], centre, p[(k + 1) % 4]) for k in range(4)]
            for p in (inner, outer)
        ]
        for k in range(4):
            loop = [spokes[k], arcs[1][k], -spokes[(k + 1) % 4], -arcs[0][k]]
            mesh.setTransfiniteSurface(geo.addPlaneSurface([geo.addCurveLoop(loop)]))
        for curve in spokes:
            mesh.setTransfiniteCurve(curve, cells + 1, "Progression", 1 + 1.4 / cells)
        for curve in (*arcs[0], *arcs[1]):
            mesh.setTransfiniteCurve(curve, cells + 1)
        geo.synchronize()
        model.addPhysicalGroup(1, arcs[1][:1], name="seat")
        model.addPhysicalGroup(1, arcs[1][1:], name="edge")
        model.addPhysicalGroup(2, [tag for _, tag in model.getEntities(2)], name="plate")
        model.mesh.generate(2)
        model.mesh.setOrder(2)

    return mbd.build_mesh(build, MPI.COMM_WORLD)


def concentration(cells: int) -> float:
    """Return the greatest principal stress relative to that of an infinite plate.

    The tractions are those of Kirsch's solution.
    """
    mesh = ring(cells)
    tags = tuple(mesh.groups[name][1] for name in ("seat", "edge"))
    ds = ufl.Measure("ds", domain=mesh.mesh, subdomain_data=mesh.facet_tags)(tags)
    x, n = ufl.SpatialCoordinate(mesh.mesh), ufl.FacetNormal(mesh.mesh)
    loads = {"pull": lambda v: ufl.inner(ufl.dot(kirsch(x), n), v) * ds}
    options = mbd.ReductionOptions(loads=loads, load_modes=True)
    model = mbd.ElasticModel(mesh, mbd.STEEL, plane="stress", thickness=1.0)
    averaged = mbd.InterfaceSpec.each(["seat"], "averaged")
    body = mbd.reduce(model, interfaces=averaged, num_modes=2, options=options)
    case = mbd.durability.inertia_relief(body, amplitudes={"pull": 1.0})
    worst = mbd.strength(body, case, criterion="greatest principal", limit=1e9).places[0]
    assert abs(worst.position[0]) < 1e-6 * RADIUS  # above or below the hole
    return worst.stress / SIGMA


def test_stress_concentration_of_a_hole_converges_to_three() -> None:
    """The error decreases with about the square of the size of the cells."""
    differences = np.array([abs(concentration(cells) - 3) for cells in (6, 12, 24)])
    assert (differences[:-1] / differences[1:] > 3).all()
    assert differences[-1] < 0.01


def test_hole_in_a_strip() -> None:
    """K_t of the net section: 3 − 3.13 δ + 3.66 δ² − 1.53 δ³ with δ = d/W (Roark, table 17.1).

    K_t is the largest stress relative to the mean stress beside the hole, d the diameter of the
    hole and W the width of the strip.
    """
    width, force = 8 * RADIUS, 1e3
    mesh = plate_with_hole(3 * width, width, 0.1 * RADIUS)
    model = mbd.ElasticModel(mesh, mbd.STEEL, plane="stress", thickness=1.0)
    strip = mbd.reduce(model, interfaces=["left", "right"], num_modes=2)
    case = mbd.durability.inertia_relief(strip, axial(-force, force))
    worst = mbd.strength(strip, case, limit=355e6).places[0]
    ratio = 2 * RADIUS / width
    expected = 3 - 3.13 * ratio + 3.66 * ratio**2 - 1.53 * ratio**3
    assert worst.stress / (force / (width - 2 * RADIUS)) == pytest.approx(expected, rel=0.02)
    assert abs(worst.position[0]) < 0.2 * RADIUS
