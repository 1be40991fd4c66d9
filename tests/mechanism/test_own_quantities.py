"""A new element in one file: its own quantity is in histories, tables, files, outputs and FMUs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.fmu import export_fmu

SCRIPT = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement
from dolfinx_mbd.mechanism.run_quantities import LOAD, RunQuantity


@dataclass(frozen=True, eq=False)
class Coil(LawElement):
    """A magnet in a coil: the current B·v/R brakes the motion along the axes."""

    kind: ClassVar[str] = "coil"
    run_quantities: ClassVar = {
        **LOAD,
        "current": RunQuantity("A"),
        "flux": RunQuantity("V s", "xyz"),
        "voltages": RunQuantity("V", counts="winding"),
    }
    name: str
    first: FrameRef
    second: FrameRef
    field: tuple = (3.0, 4.0, 0.0)

    def placed(self, pair):
        return self

    def value(self, motion):
        B = np.array(self.field)
        return np.concatenate([-B * (B @ motion.velocity), np.zeros(3)])

    def slopes(self, motion):
        G = np.zeros((6, 12))
        G[:3, 6:9] = -np.outer(self.field, self.field)
        return G

    def stored_energy(self, motion):
        return 0.0

    def quantities(self, motion):
        current = np.dot(self.field, motion.velocity)
        return super().quantities(motion) | {
            "current": current,
            "flux": self.field * motion.displacement,
            "voltages": [current, -2.0 * current],
        }


def system(kind=Coil):
    ground = mbd.Ground({"pin": mbd.Frame(), "coil": mbd.Frame((0.1, -1.2, 0))})
    frames = {"pin": mbd.Frame((0, 1, 0)), "tip": mbd.Frame()}
    bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, position=(0, -1, 0), frames=frames)
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    coil = kind("coil", ground.frame("coil"), bob.frame("tip"))
    motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
    return mbd.System([ground, bob], [pin], loads=[coil, motor], gravity=(0, -9.81, 0))


def simulator():
    return mbd.Simulator(
        system(), dt=1e-3, start={"pin": 0.5}, inputs=["motor"],
        outputs=["coil.current", "coil.flux.y"],
    )
'''
NAMES = ["coil.current", "coil.flux.y", "coil.voltages.2"]
TIMES: dict[str, Any] = {"t_end": 0.1, "dt": 1e-3, "start": {"pin": 0.5}}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return a script with an element that has its own quantities."""
    path = tmp_path / "coil_model.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


@pytest.fixture
def model(script: Path) -> dict[str, Any]:
    """Return the names of the script."""
    return runpy.run_path(str(script))


def current_of(run: mbd.results.Solution) -> np.ndarray:
    """Return the current B·v for R = 1 Ω from the velocity of the bob, without the element."""
    velocity: np.ndarray = run.body("bob").velocity @ (3.0, 4.0, 0.0)
    return velocity


def test_histories_tables_and_datasets(model: dict[str, Any], tmp_path: Path) -> None:
    run = mbd.simulate(model["system"](), **TIMES)
    current, history = current_of(run), run.element("coil")
    assert np.abs(current).max() > 0.1
    np.testing.assert_allclose(history.current, current, atol=1e-12)
    np.testing.assert_allclose(history.power, -(current**2), atol=1e-12)
    assert history.flux.shape == (101, 3) and not history.gap.size
    with pytest.raises(AttributeError):
        history.currant
    assert np.array_equal(run.histories()["coil.current"], history.current)
    data = run.to_xarray()
    assert data["coil.current"].attrs["units"] == "A"
    assert data["coil.flux"].dims == ("time", "axis")
    assert data["coil.voltages"].dims == ("time", "coil winding")
    data.to_netcdf(tmp_path / f"run{MPI.COMM_WORLD.rank}.nc")
    table = run.to_csv(tmp_path / f"run{MPI.COMM_WORLD.rank}.csv", names=["coil"])
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    columns = head.split(",")
    assert {"coil.current [A]", "coil.flux.z [V s]", "coil.voltages.2 [V]"} < {*columns}
    column = columns.index("coil.current [A]")
    assert np.array_equal([float(row.split(",")[column]) for row in rows], history.current)
    change = run.compare(mbd.simulate(model["system"](), **TIMES | {"dt": 2e-3}), NAMES)
    assert [*change] == NAMES and change[NAMES[0]].unit == "A"


def test_outputs_and_files(model: dict[str, Any], tmp_path: Path) -> None:
    whole = mbd.simulate(model["system"](), **TIMES)
    run = mbd.simulate(model["system"](), outputs=NAMES, **TIMES)
    path = run.save(tmp_path / f"run{MPI.COMM_WORLD.rank}.npz")
    for solution in (run, mbd.results.Solution.load(path, model["system"]())):
        values = solution.histories()
        assert np.array_equal(values[NAMES[0]], whole.element("coil").current)
        assert np.array_equal(values[NAMES[1]], whole.element("coil").flux[:, 1])
        assert solution.to_xarray()[NAMES[1]].attrs["units"] == "V s"
        with pytest.raises(InputError) as error:
            solution.element("coil").flux
        assert error.value.value == "coil.flux"
    with pytest.raises(InputError) as error:
        whole.to_csv(tmp_path / "none.csv", ["coil.currant"])
    assert "'current'" in error.value.expected


def test_linearization_and_fmu(model: dict[str, Any], script: Path) -> None:
    simulator = model["simulator"]()
    assert simulator.units == {"motor": "N m", NAMES[0]: "A", NAMES[1]: "V s"}
    state = mbd.equilibrium(model["system"]())
    result = mbd.linearize(model["system"](), state, inputs=["motor"], outputs=NAMES)
    assert result.outputs == tuple(NAMES)
    # The current is 3 A s/m times the velocity of the tip, at 1 m from the pin: the damping is
    # 9 N m s. The response is compared at 1 Hz
    inertia, stiffness, s = 1.01, 9.81, 2j * np.pi
    expected = 3.0 * s / (inertia * s**2 + 9.0 * s + stiffness)
    assert result.response([1.0])[0, 0, 0] == pytest.approx(expected, rel=1e-6)
    if MPI.COMM_WORLD.size > 1:
        return
    pytest.importorskip("pythonfmu")
    fmpy = pytest.importorskip("fmpy")
    unit = export_fmu(script, script.with_name("coil.fmu"))
    variables = fmpy.read_model_description(str(unit)).modelVariables
    assert {*NAMES[:2]} < {variable.name for variable in variables}


def test_a_quantity_that_is_not_declared_is_an_error(model: dict[str, Any]) -> None:
    declared = {k: v for k, v in model["Coil"].run_quantities.items() if k != "flux"}
    undeclared = type("Undeclared", (model["Coil"],), {"run_quantities": declared})
    run = mbd.simulate(model["system"](undeclared), **TIMES)
    with pytest.raises(InputError) as error:
        run.histories()
    assert error.value.argument == "run_quantities" and error.value.value == "flux"
