"""Fields recovered from modes: direct solutions, closed forms, brute force, any number of ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType, create_rectangle
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.durability.recovery.sections import section_modes
from dolfinx_mbd.durability.recovery.skin_stress import skin_stress
from dolfinx_mbd.durability.recovery.stress import Recovery
from dolfinx_mbd.durability.recovery.stressed_places import most_stressed
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.statics import interpolated, probe, solve_held, static_eta, von_mises
from tests.models.written import recorded

STEEL = mbd.STEEL
PROBES = np.array(
    [
        [0.031, 0.0171, 0.0113],
        [0.0601, 0.0009, 0.0023],
        [0.0713, 0.0193, 0.0061],
        [0.1, 0.01, 0.002],
    ]
)


def loads(times: int) -> np.ndarray:
    """Return self-equilibrated wrenches at both ends, not in phase, shape (times, 2, 6)."""
    t = np.linspace(0, 2 * np.pi, times)
    end = np.stack(
        [
            4e3 * np.cos(t),
            300 * np.sin(2 * t),
            150 * np.cos(3 * t + 1),
            5 * np.sin(t),
            8 * np.cos(2 * t + 2),
            11 * np.sin(t + 0.3),
        ],
        axis=1,
    )
    opposite = -end.copy()
    opposite[:, 3:] -= np.cross([LENGTH, 0, 0], end[:, :3])
    return np.stack([opposite, end], axis=1)


def reduced(comm: MPI.Intracomm, cell: CellType = CellType.tetrahedron) -> mbd.reduction.Reduction:
    """Return the reduction of a box with two rigid ends."""
    mesh = box(comm, cells=(9, 3, 2), cell=cell)
    return mbd.reduce(mesh, STEEL, interfaces=["left", "right"], num_modes=4, stiffening=False)


@pytest.fixture(scope="module")
def bar() -> mbd.reduction.Reduction:
    """Return the reduction of a box on all ranks."""
    return reduced(MPI.COMM_WORLD)


@pytest.fixture(scope="module")
def recovery(bar: mbd.reduction.Reduction) -> Recovery:
    """Return the recovery of stress of the box."""
    return Recovery(bar, stress=STEEL)


@pytest.fixture(scope="module")
def history(bar: mbd.reduction.Reduction) -> SimpleNamespace:
    """Return static elastic coordinates under 150 loads."""
    return SimpleNamespace(time=np.linspace(0, 1, 150), eta=static_eta(bar.body, loads(150)))


def test_stress_is_that_of_a_direct_solution(
    bar: mbd.reduction.Reduction, recovery: Recovery
) -> None:
    """Stress agrees to round-off on the same mesh, to 2 % on a finer one.

    The direct solution prescribes the displacements of both ends.
    """
    eta = static_eta(bar.body, loads(8)[3:4])[0]

    def moved(name: str):  # type: ignore[no-untyped-def]
        interface = bar.body.interface(name)
        d, theta = np.split(interface.motion @ eta, 2)
        return lambda x: (d + np.cross(theta, x.T - interface.point)).T

    held = {0.0: moved("left"), LENGTH: moved("right")}
    finer = box(MPI.COMM_WORLD, cells=(15, 5, 4), cell=CellType.tetrahedron).mesh
    for space, tolerance in (
        (bar.space, 1e-7),
        (fem.functionspace(finer, ("Lagrange", 2, (3,))), 0.02),
    ):
        u = solve_held(space, STEEL, held)
        direct = probe(interpolated(forms.stress(u, STEEL), space.mesh, 1, (3, 3)), PROBES)
        stress = recovery.at("stress", eta, PROBES)[0]
        mises = recovery.at("von Mises", eta, PROBES)[0]
        assert np.abs(stress.reshape(-1, 9) - direct).max() < tolerance * mises.max()
        values = np.sqrt(1.5 * (direct**2).sum(1) - 0.5 * direct[:, [0, 4, 8]].sum(1) ** 2)
        assert np.abs(mises - values).max() < tolerance * mises.max()


def test_pulled_and_bent_bar(bar: mbd.reduction.Reduction, recovery: Recovery) -> None:
    """σ = F/A − M y/I far from the ends, whose cross-sections remain rigid."""
    force, moment = 1e4, 20.0
    end = np.array([force, 0, 0, 0, 0, moment])
    eta = static_eta(bar.body, np.stack([-end, end])[None])[0]
    y = np.array([0.003, 0.01, 0.0187])
    points = np.stack([np.full(3, 0.0677), y, np.full(3, 0.0051)], axis=1)
    expected = force / (HEIGHT * WIDTH) - moment * (y - HEIGHT / 2) / (WIDTH * HEIGHT**3 / 12)
    stress = recovery.at("stress", eta, points)[0]
    assert np.allclose(stress[:, 0, 0], expected, rtol=1e-4)
    stress[:, 0, 0] = 0.0
    assert np.abs(stress).max() < 1e-4 * np.abs(expected).max()
    assert np.allclose(
        recovery.at("greatest principal", eta, points)[0], np.maximum(expected, 0), atol=1e4
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "where"),
    [
        (CellType.tetrahedron, "nodes"),
        (CellType.tetrahedron, "quadrature"),
        (CellType.tetrahedron, "cells"),
        (CellType.hexahedron, "nodes"),
    ],
)
def test_fields_are_those_of_the_displacement(
    comm: MPI.Intracomm, cell: CellType, where: str
) -> None:
    """Von Mises stress, energy and a user's expression agree with UFL on the displacement."""
    mesh = box(comm, cells=(3, 2, 1), cell=cell)
    few = mbd.reduce(mesh, STEEL, interfaces=["left"], num_modes=3, stiffening=False)
    recovery = Recovery(few, stress=lambda u: forms.stress(u, STEEL), where=where)  # type: ignore[arg-type]
    eta = np.array([3.0, -2.0, 1.0]) * 1e-6
    u = few.displacement(eta)

    def rate(w):  # type: ignore[no-untyped-def]
        return ufl.as_vector([ufl.div(w), w[0].dx(1) * ufl.SpatialCoordinate(mesh.mesh)[0]])

    pairs = [
        ("von Mises", von_mises(u, STEEL)),
        ("strain energy density", 0.5 * ufl.inner(forms.stress(u, STEEL), forms.strain(u))),
        ("displacement", u),
        (rate, ufl.as_vector([ufl.div(u), u[0].dx(1) * ufl.SpatialCoordinate(mesh.mesh)[0]])),
    ]
    for what, expression in pairs:
        field = mbd.recover(recovery, eta, what)[0]
        reference = recovery.points.reference
        exact = fem.Expression(expression, reference).eval(mesh.mesh, recovery.points.cells)
        exact = np.asarray(exact).reshape(len(recovery.points.dofs), -1)
        bs = field.function_space.dofmap.bs
        values = field.x.array.reshape(-1, bs)[recovery.points.dofs]
        assert np.allclose(values, exact, rtol=0, atol=1e-12 * np.abs(exact).max(initial=0))
        assert field.name == (what if isinstance(what, str) else "rate")


def test_energy_is_that_of_the_body(
    comm: MPI.Intracomm, bar: mbd.reduction.Reduction, history: SimpleNamespace
) -> None:
    """The density at quadrature points integrates to ½ ηᵀKη."""
    recovery = Recovery(bar, stress=STEEL, where="quadrature")
    eta = history.eta[7]
    density = mbd.recover(recovery, eta, "strain energy density")[0]
    dx = ufl.dx(metadata={"quadrature_degree": 2})
    energy = comm.allreduce(fem.assemble_scalar(fem.form(density * dx)))
    assert energy == pytest.approx(eta @ bar.body.stiffness @ eta / 2, rel=1e-10)


def test_envelope_is_brute_force(
    bar: mbd.reduction.Reduction, recovery: Recovery, history: SimpleNamespace
) -> None:
    """The envelope is the maximum over all instants of the von Mises stress from UFL."""
    envelope = mbd.envelope(recovery, history, "von Mises")
    u = fem.Function(bar.space)
    expression = fem.Expression(von_mises(u, STEEL), recovery.points.reference)
    best = np.full(len(recovery.points.dofs), -np.inf)
    when = np.zeros(len(best))
    for t, eta in zip(history.time, history.eta, strict=True):
        bar.displacement(eta, out=u)
        values = np.asarray(expression.eval(bar.space.mesh, recovery.points.cells)).ravel()
        when[values > best] = t
        best = np.maximum(best, values)
    value, time = envelope.values()
    assert np.allclose(value, best, rtol=1e-11)
    rows = np.searchsorted(history.time, time)
    assert np.array_equal(history.time[rows], time)
    different = np.flatnonzero(when != time)  # two instants have equal values up to round-off
    fields = mbd.recover(recovery, history, "von Mises")
    for k in np.unique(rows[different]):
        nodes = different[rows[different] == k]
        assert np.allclose(fields.values(int(k))[nodes], best[nodes], rtol=1e-11)
    assert len(different) <= 0.01 * len(time)
    least = mbd.envelope(recovery, history, "stress xx", extreme="least").values()[0]
    negative = mbd.envelope(recovery, history, lambda u: -forms.stress(u, STEEL)[0, 0]).values()[0]
    assert np.allclose(least, -negative, rtol=0, atol=1e-9 * np.abs(least).max(initial=0))


def test_the_law_of_the_reduction(recovery: Recovery, history: SimpleNamespace) -> None:
    """Without an argument, `Recovery` uses the constitutive law of the reduction."""
    values = Recovery(recovery.reduction).at("stress", history, PROBES, stride=30)
    expected = recovery.at("stress", history, PROBES, stride=30)
    assert np.allclose(values, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_ranks_without_cells(comm: MPI.Intracomm, tmp_path: Path) -> None:
    """A mesh of one cell leaves all ranks but one without cells."""
    shared = mbd.reduce(
        box(comm, cells=(1, 1, 1)), STEEL, interfaces={}, num_modes=3, stiffening=False
    )
    recovery, eta = Recovery(shared), np.array([1.0, -2.0, 1.0]) * 1e-6
    alone = mbd.reduce(
        box(MPI.COMM_SELF, cells=(1, 1, 1)), STEEL, interfaces={}, num_modes=3, stiffening=False
    )
    serial = Recovery(alone)
    assert len(recovery.points.cells) == int(len(recovery.points.dofs) > 0)
    values = [r.at("von Mises", eta, PROBES[:2]) for r in (recovery, serial)]
    assert np.allclose(values[0], values[1], rtol=1e-6)
    greatest = [most_stressed(r, eta, 2)[0].value for r in (recovery, serial)]
    assert greatest[0] == pytest.approx(greatest[1], rel=1e-6)
    modes = [section_modes(r, [LENGTH / 2, 0, 0], (1, 0, 0)) for r in (recovery, serial)]
    assert np.allclose(modes[0], modes[1], atol=1e-6 * np.abs(modes[1]).max())
    assert skin_stress(recovery).points.shape == (8, 3)
    recovery.write(comm.bcast(tmp_path, root=0) / "one.bp", eta)
    comm.Barrier()


def test_times_are_the_nearest(recovery: Recovery, history: SimpleNamespace) -> None:
    fields = mbd.recover(recovery, history, "stress xy", times=[0.5, 0.0, 0.501])
    # 0.5 and 0.501 may have the same nearest instant
    assert len(fields) == 3 - (
        abs(history.time - 0.5).argmin() == abs(history.time - 0.501).argmin()
    )
    assert np.array_equal(fields.eta[0], history.eta[0])
    assert len(mbd.recover(recovery, history, "stress xy", stride=50)) == 3
    assert len(list(fields)) == len(fields)
    with pytest.raises(IndexError, match="instants"):
        fields[17]


def test_the_same_on_any_number_of_ranks(
    comm: MPI.Intracomm, bar: mbd.reduction.Reduction, recovery: Recovery, history: SimpleNamespace
) -> None:
    """Probes, the most stressed places and the skin agree with those of one rank."""
    alone = reduced(MPI.COMM_SELF)
    serial = Recovery(alone, stress=STEEL)
    motion = SimpleNamespace(time=history.time, eta=static_eta(alone.body, loads(150)))
    values = [r.at("stress", h, PROBES) for r, h in ((recovery, history), (serial, motion))]
    assert np.allclose(values[0], values[1], rtol=0, atol=1e-9 * np.abs(values[1]).max())
    tables = [most_stressed(r, h, 5) for r, h in ((recovery, history), (serial, motion))]
    assert len(tables[0]) == 5
    for place, reference in zip(*tables, strict=True):
        assert place.value == pytest.approx(reference.value, rel=1e-9)
        assert np.allclose(place.position, reference.position, atol=1e-12)
        assert (place.time, place.interface) == (reference.time, reference.interface)
    ends = [
        skin_stress(r).envelope("von Mises", h) for r, h in ((recovery, history), (serial, motion))
    ]
    assert np.allclose(ends[0].value, ends[1].value, rtol=1e-9)
    assert comm.bcast(ends[0].value.tobytes(), root=0) == ends[0].value.tobytes()


def test_skin_stress_is_the_mean_of_the_cells(
    bar: mbd.reduction.Reduction, recovery: Recovery, history: SimpleNamespace
) -> None:
    modes = skin_stress(recovery)
    assert bar.body.skin is not None
    assert np.array_equal(modes.points, bar.body.skin.points)
    x, values = recovery.positions(), mbd.recover(recovery, history, "stress").values(9)
    comm = bar.space.mesh.comm
    everywhere = np.concatenate(comm.allgather(x)), np.concatenate(comm.allgather(values))
    stress = modes.values("stress", history)[9]
    for k in (0, 17, 40):
        at_node = np.linalg.norm(everywhere[0] - modes.points[k], axis=1) < 1e-9
        expected = everywhere[1][at_node].mean(axis=0)
        assert np.allclose(stress[k], expected, rtol=0, atol=1e-10 * np.abs(stress).max())


def test_most_stressed_places_are_apart(recovery: Recovery, history: SimpleNamespace) -> None:
    table = most_stressed(recovery, history)
    value, time = mbd.envelope(recovery, history, "von Mises").values()
    comm = recovery.space.mesh.comm
    assert table[0].value == comm.allreduce(value.max(initial=0), MPI.MAX)
    assert len(table) == 10
    x = np.array([p.position for p in table])
    distances = np.linalg.norm(x[:, None] - x, axis=2)[np.triu_indices(10, 1)]
    assert (
        distances.min()
        >= table.apart
        == pytest.approx(0.05 * np.linalg.norm([LENGTH, HEIGHT, WIDTH]))
    )
    assert all(a.value >= b.value for a, b in zip(table, list(table)[1:], strict=False))
    # points that are farther than `apart` from all of them have smaller values
    positions = recovery.positions()
    far = np.linalg.norm(positions[:, None] - x, axis=2).min(axis=1, initial=np.inf) >= table.apart
    assert value[far].max(initial=0) <= table[9].value
    for place in table:
        assert place.interface == ("left" if place.position[0] < LENGTH / 2 else "right")
    text = str(table).splitlines()
    assert len(text) == 12
    assert f"{1e-6 * table[0].value:.4f}" in text[2]
    assert "MPa" in text[1]
    huge = most_stressed(recovery, history, apart=1.0)
    assert len(huge) == 1


@pytest.mark.parametrize("plane", ["stress", "strain"])
def test_plane_body(comm: MPI.Intracomm, plane: forms.Plane) -> None:
    """σ_zz = 0 in plane stress and ν (σ_xx + σ_yy) in plane strain."""
    mesh = create_rectangle(comm, [[0, 0], [0.2, 0.05]], [6, 2])
    few = mbd.reduce(
        mbd.ElasticModel(mesh, STEEL, plane=plane, thickness=0.01), interfaces={}, num_modes=4
    )
    recovery = Recovery(few, stress=STEEL, plane=plane)
    eta = np.array([1.0, -2.0, 3.0, 1.0]) * 1e-6
    s = recovery.at("stress", eta, [[0.031, 0.021], [0.112, 0.0071]])[0]
    normal_stress = 0.3 * (s[:, 0, 0] + s[:, 1, 1]) if plane == "strain" else 0.0
    assert np.abs(s).max() > 1e5
    assert np.allclose(s[:, 2, 2], normal_stress, rtol=1e-12)
    assert not s[:, 2, :2].any()
    direct = interpolated(forms.stress(few.displacement(eta), STEEL, plane=plane), mesh, 1, (2, 2))
    x = np.array([[0.031, 0.021, 0], [0.112, 0.0071, 0]])
    assert np.allclose(probe(direct, x), s[:, :2, :2].reshape(-1, 4), atol=1e-9 * np.abs(s).max())
    with pytest.raises(ValueError, match="needs plane='stress' or 'strain'"):
        Recovery(few, stress=STEEL)


def test_written_fields(
    comm: MPI.Intracomm,
    tmp_path: Path,
    recovery: Recovery,
    history: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The values of each instant are passed to the file; three files are written."""
    written = recorded(monkeypatch)
    folder = comm.bcast(tmp_path, root=0) / "new"
    recovery.write(folder / "run.bp", history, ["von Mises", "principal", "stress"], stride=100)
    envelope = mbd.envelope(recovery, history, "von Mises")
    envelope.write(folder / "envelope.bp")
    Recovery(recovery.reduction, stress=STEEL, where="cells").write(
        folder / "c.bp", history, stride=149
    )
    comm.Barrier()
    assert {p.name for p in folder.iterdir()} == {"run.bp", "envelope.bp", "c.bp"}
    assert [t for t, _ in written] == [0.0, history.time[100], 0.0, 0.0, 1.0]
    shown = written[1][1]
    assert list(shown) == ["displacement", "von Mises", "principal", "stress"]
    expected = mbd.recover(recovery, history, "von Mises")[100].x.array
    assert np.array_equal(shown["von Mises"], expected)
    assert np.allclose(
        shown["stress"].reshape(-1, 3, 3).trace(axis1=1, axis2=2),
        shown["principal"].reshape(-1, 3).sum(axis=1),
        rtol=0,
        atol=1e-9 * expected.max(initial=0),
    )
    assert set(written[2][1]) == {"greatest von Mises", "time"}


def test_bad_input(
    tmp_path: Path, bar: mbd.reduction.Reduction, recovery: Recovery, history: SimpleNamespace
) -> None:
    """The message names the argument and a remedy, on every rank."""
    n = bar.body.num_modes
    with pytest.raises(ValueError, match=r"unknown quantity 'mises'; use one of .*'von Mises'"):
        mbd.recover(recovery, history, "mises")
    with pytest.raises(ValueError, match="what must be the name of a quantity"):
        mbd.recover(recovery, history, 7)  # type: ignore[arg-type]
    for name, nonlinear in {
        "square": lambda u: ufl.inner(u, u),
        "affine": lambda u: u + ufl.as_vector([1.0, 0, 0]),
        "partly": lambda u: ufl.as_vector([u[0], 1.0]),
        "root": lambda u: ufl.sqrt(ufl.inner(u, u)),
        "absolute": lambda u: abs(u[0]),
    }.items():
        nonlinear.__name__ = name
        with pytest.raises(ValueError, match=f"{name} is not linear in the displacement"):
            mbd.envelope(recovery, history, nonlinear)
    with pytest.raises(ValueError, match="does not depend on the displacement"):
        mbd.recover(recovery, history, lambda u: 0 * u)
    with pytest.raises(ValueError, match="no UFL expression of u can be made"):
        mbd.recover(recovery, history, lambda u: "u")
    with pytest.raises(ValueError, match="must be a scalar for an envelope"):
        mbd.envelope(recovery, history, "stress")
    with pytest.raises(ValueError, match=rf"elastic coordinates of shape \(1, {n}\)"):
        mbd.recover(recovery, np.zeros(n + 1), "von Mises")
    with pytest.raises(ValueError, match="one or more instants"):
        mbd.envelope(recovery, np.zeros((0, n)), "von Mises")
    with pytest.raises(ValueError, match="time 7 s is outside the history"):
        mbd.recover(recovery, history, "von Mises", times=7.0)
    with pytest.raises(ValueError, match="time 7 s is outside the history"):
        bar.write(tmp_path / "x.bp", history, times=[7.0])
    with pytest.raises(ValueError, match="the stress law is not known"):
        mbd.recover(replace(bar, stress=None), history)
    with pytest.raises(ValueError, match="where must be one of 'nodes', 'quadrature', 'cells'"):
        Recovery(bar, where="corners")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not in the mesh"):
        recovery.at("von Mises", history, [1.0, 0, 0])
    with pytest.raises(ValueError, match="no points were given"):
        recovery.at("von Mises", history, {})
    with pytest.raises(ValueError, match="values at quadrature points"):
        Recovery(bar, stress=STEEL, where="quadrature").write(tmp_path / "x.bp", history)
    with pytest.raises(ValueError, match="count must be"):
        most_stressed(recovery, history, 0)
    with pytest.raises(ValueError, match="apart must be a positive"):
        most_stressed(recovery, history, apart=-1.0)
    assert not (tmp_path / "x.bp").exists()
