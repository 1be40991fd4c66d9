"""Rows of states in arrays: growth, the last state, contents of oil films, parts of a block."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism import State
from dolfinx_mbd.results.distributed_rows import Distribution
from dolfinx_mbd.results.files.run_files import HISTORY
from dolfinx_mbd.results.state_rows import StateRows


def stone() -> mbd.System:
    """Return a body that falls freely."""
    return mbd.System([mbd.RigidBody("stone", 1.0, [0.01] * 3)], gravity=(0, 0, -9.81))


def states(system: mbd.System, count: int) -> list[State]:
    """Return random states of a system."""
    rng = np.random.default_rng(count)
    sizes = system.num_coordinates, system.num_velocities, system.num_velocities, 0, 0
    memory = {"algorithmic": np.ones(system.num_velocities)}
    return [
        State(0.1 * k, *(rng.normal(size=size) for size in sizes), memory) for k in range(count)
    ]


@pytest.mark.parametrize("capacity", [None, 3, 200])
@pytest.mark.parametrize("count", [1, 3, 150])
def test_rows_are_the_states(capacity: int | None, count: int) -> None:
    """The arrays grow if there are more states than expected."""
    system = stone()
    rows, steps = (
        StateRows(system, Distribution(system), capacity, local=True, oil={}),
        states(system, count),
    )
    for state in steps:
        rows.append(state)
    for key, values in rows.arrays().items():
        assert np.array_equal(values, [getattr(state, key) for state in steps])
    assert len(rows) == count and [*rows.arrays()] == [*HISTORY]


def test_a_later_state_is_the_last_row() -> None:
    """The last state is not stored twice, and rows that follow replace it."""
    system = stone()
    rows, steps = StateRows(system, Distribution(system), 2, local=True, oil={}), states(system, 5)
    for state in steps[:3]:
        rows.append(state)
    assert len(rows.saved(steps[2]).time) == 3
    assert rows.saved(steps[4]).time.tolist() == [state.time for state in (*steps[:3], steps[4])]
    rows.append(steps[3])
    assert np.array_equal(rows.saved(steps[3]).q, [state.q for state in steps[:4]])
    before = rows.arrays()
    rows.clear()
    rows.append(steps[4])
    assert len(rows) == 1 and np.array_equal(before["q"][0], steps[0].q)


@pytest.mark.parametrize("dt", [1e-2, "adaptive"])
@pytest.mark.parametrize("stride", [1, 3])
def test_a_run_ends_with_its_last_state(dt: float | str, stride: int) -> None:
    run = mbd.simulate(stone(), t_end=0.25, dt=dt, stride=stride)  # type: ignore[arg-type]
    assert run.time[-1] == run.final_state.time == pytest.approx(0.25)
    assert np.array_equal(run.q[-1], run.final_state.q) and (np.diff(run.time) > 0).all()


def film_system(clearance: float) -> mbd.System:
    """Return a shaft in an oil film with a clearance."""
    ground = mbd.Ground({"bore": mbd.Frame()})
    frames = {"journal": mbd.Frame()}
    shaft = mbd.RigidBody("shaft", 2.0, [1e-3, 1e-3, 2e-3], frames=frames, omega=(0, 0, 300))
    ends = ground.frame("bore"), shaft.frame("journal")
    film = mbd.bearings.ShortBearing("film", *ends, 0.02, 0.02, clearance, 0.02)
    plane = mbd.planar("plane", *ends)
    return mbd.System([ground, shaft], [plane], loads=[film], gravity=(0, -9.81, 0))


def test_gaps_follow_an_input_of_a_film() -> None:
    """If the clearance of a film changes between two steps, its stored gap is computed again."""
    simulator = mbd.Simulator(film_system(4e-5), dt=1e-4, inputs=["film.clearance"])
    for _ in range(3):
        simulator.step()
    films = simulator.stepper.corrector.films
    before = films.accepted_gaps[0]
    state = simulator.step({"film.clearance": 6e-5})
    reference = mbd.Simulator(film_system(6e-5), dt=1e-4, start=state)
    reference.stepper.put(state)
    reference.stepper.assembler.update_poses(state.time)
    gap = reference.stepper.assembler.loads.film_gaps()[0, 0]
    assert films.accepted_gaps[0] == pytest.approx(gap, rel=1e-12) and gap > before + 1e-5
    simulator._set_inputs((5e-5,))
    simulator.stepper.assembler.update_poses(state.time)
    assert films.accepted_gaps[0] == pytest.approx(gap - 1e-5, rel=1e-9)
