"""Tables, pictures and the viewer show the same greatest stress of a body."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import CellType
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors, plotting
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.durability.recovery.skin_stress import skin_stress, skin_values
from tests.models.bodies import box

CASES = [("tetrahedron", 1), ("tetrahedron", 2), ("hexahedron", 1), ("hexahedron", 2)]


def bar(
    comm: MPI.Comm, cell: str, degree: int, cells: tuple[int, int, int]
) -> mbd.reduction.Reduction:
    """Return the reduction of a box that is held at its left end."""
    mesh = box(comm, cells=cells, cell=CellType[cell])
    model = mbd.ElasticModel(mesh, mbd.STEEL, degree=degree)
    options = mbd.ReductionOptions(skin=True)
    return mbd.reduce(model, interfaces=["left"], num_modes=5, stiffening=False, options=options)


def motion(reduction: mbd.reduction.Reduction, seed: int) -> SimpleNamespace:
    """Return random coordinates at seven instants, with similar energies in all modes."""
    size = 1.0 / np.sqrt(np.diag(reduction.body.stiffness))
    eta = np.random.default_rng(seed).normal(size=(7, len(size))) * size
    return SimpleNamespace(time=np.linspace(0.0, 3e-3, 7), eta=eta)


@pytest.mark.filterwarnings("ignore::dolfinx_mbd.errors.MeshWarning")
@pytest.mark.parametrize(("cell", "degree"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_stress_modes_have_the_peak_of_the_table(
    comm: MPI.Comm, tmp_path: Path, cell: str, degree: int, seed: int
) -> None:
    reduction = bar(comm, cell, degree, (5 + seed, 3, 2))
    history = motion(reduction, seed)
    table = mbd.most_stressed(reduction, history, 1)
    body = reduction.body.replace(stress=skin_stress(reduction))
    path = tmp_path / "body.npz"
    if comm.size == 1:
        body = ReducedBody.load(body.save(path))
    assert body.stress is not None
    peak = body.stress.peak("von Mises", history)
    assert peak == pytest.approx(table[0].value, rel=1e-6)
    # averages over the cells at a node are lower than the greatest stress in one cell
    averaged = body.stress.envelope("von Mises", history).value.max()
    margin = 1e-3 if cell == "tetrahedron" else -1e-9  # a corner may belong to one cell
    assert averaged < (1 - margin) * table[0].value
    for extreme in ("greatest", "least"):
        name = f"{extreme} principal"
        values, _ = mbd.envelope(reduction, history, name, extreme=extreme).values()
        sign = 1.0 if extreme == "greatest" else -1.0
        exact = sign * comm.allreduce((sign * values).max(initial=-np.inf), MPI.MAX)
        assert body.stress.peak(name, history, extreme=extreme) == pytest.approx(exact, rel=1e-6)
    # a body with the first two modes only
    few = body.selected([1, 2]).stress
    part = np.where(np.arange(body.num_modes) < 2, history.eta, 0.0)
    expected = body.stress.peak("von Mises", part)
    assert few.peak("von Mises", history.eta[:, :2]) == pytest.approx(expected, rel=1e-6)


def test_without_peaks(comm: MPI.Comm) -> None:
    reduction = bar(comm, "tetrahedron", 2, (4, 2, 2))
    stress = skin_stress(reduction, peaks=False)
    assert stress.cells is None and stress.peak("von Mises", motion(reduction, 0)) is None
    assert np.array_equal(stress.stress, skin_stress(reduction).stress)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives the captions of the pictures."""
    from dolfinx_mbd.plotting.pictures import canvas

    texts: list[str] = []
    caption = canvas.add_caption

    def record(plotter: Any, text: str, *arguments: Any) -> Any:
        texts.append(text)
        return caption(plotter, text, *arguments)

    monkeypatch.setattr(canvas, "add_caption", record)
    return texts


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank draws")
@pytest.mark.parametrize("seed", [3, 4])
def test_pictures_show_the_peak_of_the_table(drawn: list[str], seed: int) -> None:
    reduction = bar(MPI.COMM_SELF, "tetrahedron", 2, (6, 3, 2))
    history = motion(reduction, seed)
    table = mbd.most_stressed(reduction, history, 1)
    text = f"maximum {1e-6 * table[0].value:.4g} MPa (t = {1e3 * table[0].time:.4g} ms)"
    envelope = mbd.envelope(reduction, history)
    plotting.plot_skin(reduction.body, envelope, window=(200, 150))
    assert text in drawn[-1]
    place = ", ".join(f"{1e3 * x:.4g}" for x in table[0].position)
    assert place in drawn[-1]
    plotting.plot_skin(reduction.body, envelope.value, window=(200, 150))
    assert f"maximum {1e-6 * table[0].value:.4g} MPa at" in drawn[-1]
    averages = skin_values(envelope.value)
    plotting.plot_skin(reduction.body, averages, window=(200, 150))
    assert f"maximum {1e-6 * averages.max():.4g} MPa" in drawn[-1]


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank draws")
def test_results_that_contain_values_are_named() -> None:
    reduction = bar(MPI.COMM_SELF, "tetrahedron", 2, (4, 2, 2))
    body = reduction.body.replace(stress=skin_stress(reduction))
    assert body.stress is not None
    with pytest.raises(errors.InputError) as error:
        plotting.plot_skin(body, body.stress.envelope("von Mises", motion(reduction, 0)))
    assert error.value.argument == "values" and "`value`" in str(error.value)


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank draws")
def test_mechanisms_and_the_viewer_show_the_peak(drawn: list[str]) -> None:
    from tests.plotting.pages import scene_in

    reduction = bar(MPI.COMM_SELF, "tetrahedron", 2, (6, 3, 2))
    body = reduction.body.replace(stress=skin_stress(reduction))
    ground = mbd.Ground({"o": mbd.Frame()})
    arm = mbd.FlexibleBody("arm", body)
    joint = mbd.revolute("hinge", ground.frame("o"), arm.frame("left"))
    run = mbd.simulate(
        mbd.System([ground, arm], [joint], gravity=(0.0, -9.81, 0.0)), t_end=5e-3, dt=1e-4
    )
    history = run.body("arm")
    table = mbd.most_stressed(reduction, history, 1)
    (item,) = scene_in(plotting.player(run))["bodies"]
    assert item["peak"] == pytest.approx(table[0].value, rel=1e-6)
    assert item["ranges"]["stress"] < item["peak"]
    plotting.plot_system(run, time=2e-3, quantity="von Mises", window=(200, 150))
    row = int(np.argmin(np.abs(run.time - 2e-3)))
    peak = mbd.most_stressed(reduction, history.eta[row], 1)[0].value
    assert f"peak {1e-6 * peak:.4g} MPa in one cell" in drawn[-1]
