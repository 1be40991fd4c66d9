"""Runs that save only requested outputs: equal values, and errors that name the cure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import Simulator, simulate, sweep
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import ContactLaw, Frame, Ground, RigidBody, plane_contact
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import Solution, recorded_run
from dolfinx_mbd.results.outputs import Outputs
from dolfinx_mbd.results.state_entries import state_entry
from tests.models.beams import slender_rod

TIMES: dict[str, Any] = {"t_end": 0.01, "dt": 1e-4}
NAMES = ["rod", "crank pin.force", "drive.work", "piston.position.x", "crank.big_end.force"]


def engine(torque: float = 20.0) -> System:
    """Return a slider-crank that a torque drives."""
    return slider_crank(
        slender_rod(),
        crank_radius=0.15,
        crank_mass=0.36,
        piston_mass=0.0755,
        torque=lambda t, angle, rate: torque + 3.0 * np.sin(angle),
    )


@pytest.fixture(scope="module")
def whole() -> Solution:
    """Return a run with all states."""
    return simulate(engine(), **TIMES)


def names_of(whole: Solution) -> list[str]:
    """Return the requested names, with frames and joints that the mechanism has."""
    frame = next(iter(whole.body("crank").wrenches))
    joint = whole.system.joints[0].name
    replaced = {"crank.big_end.force": f"crank.{frame}.force", "crank pin.force": f"{joint}.force"}
    return [replaced.get(name, name) for name in NAMES]


@pytest.fixture(scope="module")
def part(whole: Solution) -> Solution:
    """Return a run that saves outputs only."""
    return simulate(engine(), outputs=names_of(whole), **TIMES)


def test_the_values_are_those_of_a_run_with_all_states(whole: Solution, part: Solution) -> None:
    expected, values = whole.histories(), part.histories()
    del values["piston.position.x"]
    assert {"rod.eta", "rod.kinetic_energy", "drive.work"} < values.keys()
    assert "drive.power" not in values and len(values) < len(expected)
    for name, value in values.items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    x = part.to_xarray(["piston.position.x"])["piston.position.x"]
    np.testing.assert_array_equal(x, whole.body("piston").position[:, 0])
    assert x.attrs["units"] == "m"
    joint = whole.system.joints[0].name
    assert np.array_equal(part.joint(joint).force, whole.joint(joint).force)
    assert np.array_equal(part.element("drive").work, whole.element("drive").work)
    sensor = [run.sensor("rod", "middle", "acceleration") for run in (whole, part)]
    assert np.array_equal(*sensor)
    assert part.complete and np.array_equal(part.final_state.q, whole.final_state.q)
    assert part.body("rod").wrenches.keys() == whole.body("rod").wrenches.keys()


def test_blocks_do_not_change_the_values(
    whole: Solution, part: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_run, "_BLOCK_ROWS", 7)
    blocks = simulate(engine(), outputs=names_of(whole), **TIMES)
    expected, values = part.histories(), blocks.histories()
    assert all(np.array_equal(expected[key], values[key]) for key in expected)


REQUESTS: list[tuple[Callable[[Solution], Any], str]] = [
    (lambda run: run.q, "simulate without outputs="),
    (lambda run: run.energies(), "simulate without outputs="),
    (lambda run: run.projected(), "simulate without outputs="),
    (lambda run: run.body("piston").velocity, "add 'piston.velocity' or 'piston' to outputs="),
    (lambda run: run.body("piston").kinetic_energy, "add 'piston.kinetic_energy' or"),
    (lambda run: run.body("piston").wrenches, "add 'piston.wrenches' or"),
    (lambda run: run.element("drive").force, "add 'drive.force' or 'drive' to outputs="),
    (lambda run: run.joint("drive"), "must be one of"),
    (lambda run: run.joint(run.system.joints[1].name), "add it to outputs="),
    (lambda run: run.element(run.system.joints[0].name), "simulate without outputs="),
    (lambda run: run.sensor("piston"), "add 'piston.position' or 'piston' to outputs="),
    (lambda run: run.to_csv("x.csv", ["guide"]), "must be one of"),
]


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_other_quantities_are_errors_with_a_cure(part: Solution, number: int) -> None:
    request, text = REQUESTS[number]
    with pytest.raises(InputError, match=text):
        request(part)


def test_files(part: Solution, tmp_path: Path) -> None:
    path = part.save(tmp_path / f"run{MPI.COMM_WORLD.rank}.npz")
    loaded = Solution.load(path, engine())
    old, new = part.histories(), loaded.histories()
    assert old.keys() == new.keys() and all(np.array_equal(old[key], new[key]) for key in old)
    table = part.to_csv(tmp_path / f"run{MPI.COMM_WORLD.rank}.csv").read_text().splitlines()
    assert len(table) == len(part) + 1 and "piston.position.x [m]" in table[0]


def test_functions(whole: Solution) -> None:
    functions = {"reach": lambda run: np.linalg.norm(run.body("piston").position, axis=1)}
    run = simulate(engine(), outputs=functions, **TIMES)
    assert run.names() == ["reach"]
    np.testing.assert_array_equal(run.histories()["reach"], functions["reach"](whole))
    assert run.to_xarray()["reach"].dims == ("time",)
    with pytest.raises(InputError, match="one number for each time"):
        simulate(engine(), outputs={"all": lambda run: run.body("rod").eta}, **TIMES)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["rods"], "must be one of .*'rod'"),
        (["rod.omga"], "has no quantity 'omga'; it has 'position'"),
        (["rod.omega.w"], "has no quantity 'omega.w'; .*, and components such as 'position.x'"),
        ("rod", "a list of names"),
        (["rod", "rod"], "different names"),
    ],
)
def test_unknown_names_stop_before_the_first_step(names: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        simulate(engine(), t_end=1e9, dt=1e8, outputs=names)


def test_one_vocabulary_for_runs_simulators_and_studies(whole: Solution) -> None:
    name = "drive.rotation"
    simulator = Simulator(engine(), dt=1e-4, outputs=[name, "rod.omega.z"])
    for _ in range(3):
        simulator.step()
    expected = {
        name: whole.element("drive").rotation[3],
        "rod.omega.z": whole.body("rod").omega[3, 2],
    }
    assert simulator.outputs == expected
    with pytest.raises(InputError, match=r"a component such as rod\.eta\.1;"):
        Simulator(engine(), dt=1e-4, outputs=["rod.eta"])

    def run(torque: float) -> Solution:
        return simulate(engine(torque), outputs=[name, "rod.omega"], **TIMES)

    study = sweep(run, {"torque": [20.0, 10.0]}, workers=1)
    results = {str(key) for key in study.data_vars if not str(key).startswith("case_")}
    assert results == {"time", name, "rod.omega"}
    np.testing.assert_array_equal(study[name].sel(torque=20.0), whole.element("drive").rotation)


def test_outputs_that_are_entries_of_the_state(whole: Solution) -> None:
    """Without an evaluation of the mechanism, their values equal those of the histories."""
    series = [part for item in whole._series() for part in item.components()]
    names = [s.name for s in series if s.name.rpartition(".")[2] not in ("work", "dissipated")]
    names = [name for name in names if name.split(".")[-1] not in "wxyz" or "rotation" not in name]
    entries = {name: state_entry(whole.system, name) for name in names}
    direct = {name.split(".", 1)[1].split(".")[0] for name, entry in entries.items() if entry}
    assert direct == {
        *("position", "velocity", "acceleration", "omega", "alpha"),
        *("eta", "eta_rate", "eta_acceleration", "rotation", "force", "moment"),
    }
    simulator = Simulator(engine(), dt=1e-4, outputs=names)
    for _ in range(7):
        simulator.step()
    expected = Outputs(names).of(simulator._solution_now())[0]
    assert list(simulator.outputs) == names
    np.testing.assert_array_equal(list(simulator.outputs.values()), expected)


def test_the_work_of_a_driver_can_be_requested() -> None:
    system = slider_crank(slender_rod(), speed=50.0, crank_radius=0.15)
    whole = simulate(system, **TIMES)
    part = simulate(system, outputs=["drive.work", "crank pin"], **TIMES)
    expected = whole.element("drive").work
    assert np.ptp(expected) > 0.1
    for run in (whole, part):
        np.testing.assert_array_equal(run.joint("drive").work, expected)
        np.testing.assert_array_equal(run.histories()["drive.work"], expected)
    assert {"drive.work", "crank pin.work"} < part.histories().keys() < whole.histories().keys()


@pytest.mark.parametrize("rows", [7, 5000])
def test_the_dissipation_of_a_contact_is_that_of_the_whole_run(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_run, "_BLOCK_ROWS", rows)
    ball = RigidBody("ball", 1.0, [0.001] * 3, frames={"c": Frame()}, position=(0, 0, 0.0101))
    ground = Ground({"floor": Frame()})
    law = ContactLaw(1e6, damping=2.0)
    contact = plane_contact("c", ground.frame("floor"), ball.frame("c"), 0.01, law)
    system = System([ground, ball], loads=[contact], gravity=(0, 0, -9.81))
    times: dict[str, Any] = {"t_end": 0.02, "dt": 1e-4}
    whole = simulate(system, **times).element("c").dissipated
    assert whole[-1] > 1e-4
    for outputs in (["c"], ["c.dissipated"]):
        run = simulate(system, outputs=outputs, **times)
        np.testing.assert_array_equal(run.element("c").dissipated, whole)
        np.testing.assert_array_equal(run.histories()["c.dissipated"], whole)


def test_integrals_are_not_outputs_at_one_time() -> None:
    system = slider_crank(slender_rod(), speed=50.0, crank_radius=0.15)
    with pytest.raises(InputError, match="add up the power"):
        Simulator(system, dt=1e-4, outputs=["drive.work"])
    with pytest.raises(InputError, match="'rod' has no quantity 'work'"):
        simulate(system, outputs=["rod.work"], **TIMES)
    with pytest.raises(InputError, match="'drive' has no quantity 'dissipated'"):
        simulate(system, outputs=["drive.dissipated"], **TIMES)


def test_some_of_the_times(whole: Solution, part: Solution) -> None:
    for run in (whole, part):
        tenth = run[::10]
        assert len(tenth) == 11
        np.testing.assert_array_equal(tenth.body("rod").position, run.body("rod").position[::10])
    with pytest.raises(InputError, match="a slice that contains some"):
        whole[200:]
    with pytest.raises(InputError, match=r"run\[::100\]"):
        whole[3]  # type: ignore[index]


def test_comparison_of_runs(whole: Solution, part: Solution) -> None:
    changes = whole.compare(part)
    assert {"rod.position", "drive.work"} < changes.keys()
    assert all(change.largest == 0.0 for change in changes.values())
    coarse = simulate(engine(), t_end=0.01, dt=2e-4)
    change = whole.compare(coarse, ["piston"])["piston.position"]
    direct = np.linalg.norm(
        whole.body("piston").position[::2] - coarse.body("piston").position, axis=1
    )
    assert change.unit == "m" and change.largest == direct.max() > 0
    assert change.rms == pytest.approx(np.sqrt(np.mean(direct**2)), rel=1e-12)
    assert change.time == whole.time[::2][direct.argmax()]
    assert change.scale == np.linalg.norm(whole.body("piston").position[::2], axis=1).max()
    reverse = coarse.compare(whole, ["piston"])["piston.position"]
    assert reverse.largest == change.largest
    late = simulate(engine(), t_end=0.02, dt=1e-4, start=whole.final_state)[1:]
    with pytest.raises(InputError, match="no saved times in common"):
        whole.compare(late)
    with pytest.raises(InputError, match="only one saved time in common"):
        whole.compare(simulate(engine(), t_end=0.00995, dt=2e-4))
    start = whole[:1].compare(whole, ["piston"])["piston.position"]
    assert start.largest == 0.0 and start.time == 0.0


def test_a_saved_component_is_compared_with_the_whole_vector(whole: Solution) -> None:
    names = ["crank.omega.z", "piston.position.x"]
    part = simulate(engine(torque=25.0), outputs=names, **TIMES)
    for change in (whole.compare(part), part.compare(whole)):
        assert set(change) == set(names)
        direct = np.abs(whole.body("crank").omega[:, 2] - part.histories()[names[0]])
        assert change[names[0]].largest == direct.max() > 0
        assert change[names[0]].unit == "rad/s" and change[names[1]].unit == "m"
    with pytest.raises(InputError, match="no quantity in common"):
        part.compare(simulate(engine(), outputs=["piston.velocity.x"], **TIMES))
