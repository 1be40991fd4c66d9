"""Elastic films that are evaluated together, and films that follow the inputs of a simulation.

The films of a group are those of one assembler. They are compared with the methods of single films.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.kernels.columns import GAP
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing, OilSupply
from dolfinx_mbd.mechanism.bearings.film_group import FilmGroup
from tests.mechanism.bearings.test_elastic_bearing import (
    CLEARANCE,
    LENGTH,
    OIL,
    RADIUS,
    bearing,
    elastic_body,
    journal_system,
)

DT = 2e-5
SUPPLY = [OilSupply(2e5, angle=1.0, arc=0.5)]


def two_rings(**options: Any) -> mbd.System:
    """Return two elastic rings, of which one is soft, with journals that turn in opposite senses.

    One surface of a journal moves relative to its frame, and a spring connects the rings.
    The options are those of both elastic bearings.
    """
    bodies: list[Any] = [mbd.Ground({"hub": mbd.Frame()})]
    loads: list[Any] = []
    for k, (softness, speed, shift) in enumerate([(1.0, 300.0, 1e-5), (3.0, -200.0, -6e-6)]):
        body = elastic_body(softness)
        ring = mbd.FlexibleBody(f"ring {k}", body, position=(0, k, 0))
        pin = mbd.RigidBody(
            f"pin {k}", 0.5, [1e-4] * 3, frames={"pin": mbd.Frame()},
            position=(shift, k + 0.5 * shift, 1e-4), omega=(0.5, 1.0, speed),
        )  # fmt: skip
        film = ElasticBearing(
            f"film {k}", ring.frame("bore"), pin.frame("pin"), RADIUS, LENGTH, CLEARANCE, OIL,
            bore=body.bore("bore"), shape=(32, 8), journal_speed=-50.0 * k, **options,
        )  # fmt: skip
        bodies += [ring, pin]
        loads.append(film)
    ends = bodies[1].frame("bore"), bodies[3].frame("bore")
    loads.insert(1, mbd.Bushing("spring", *ends, [1e5] * 3 + [0.0] * 3))
    return mbd.System(bodies, loads=loads, gravity=(0, -9.81, 0))


def moving_state(system: mbd.System, seed: int) -> mbd.dynamics.State:
    """Return a state with random deformations and rates of the rings."""
    rng, state = np.random.default_rng(seed), mbd.dynamics.consistent_state(system)
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        if body.num_elastic:
            state.q[q][7:] = rng.normal(size=body.num_elastic) * 1e-6
            state.v[v][6:] = rng.normal(size=body.num_elastic) * 1e-3
    return state


@pytest.mark.parametrize("supply", [[], SUPPLY])
def test_groups_evaluate_as_single_films(supply: list[OilSupply]) -> None:
    """Wrenches, forces on the modes and smallest gaps are those of the methods of the films."""
    system = two_rings(supply=supply)
    eqs, loads = Assembler(system), {load.name: load for load in system.loads}
    for seed in range(3):
        state = moving_state(system, seed)
        eqs.put(state)
        eqs.residual(state.time)
        assert not any(film is loads[film.name] for film in eqs.loads.films())  # copies
        gaps = eqs.loads.film_gaps()[:, GAP]
        for k, (film, forces) in enumerate(
            zip(eqs.loads.films(), eqs.loads.gap_forces(), strict=True)
        ):
            original: Any = loads[film.name]
            pair, surface = eqs.loads.film_arguments(film.name)[1]
            expected = original.wrenches(pair, surface)
            size = np.abs(expected).max()
            assert size > 1.0  # N
            np.testing.assert_allclose(forces, expected[12:], rtol=1e-9, atol=1e-12 * size)
            evaluated = {load.name: wrench for load, _, wrench in eqs.loads.wrenches(state.time)}
            np.testing.assert_allclose(evaluated[film.name], expected[:12], atol=1e-9 * size)
            assert gaps[k] == pytest.approx(original.smallest_gap(pair, surface), rel=1e-12)
            assert gaps[k] < 0.95 * CLEARANCE
        # the residual of the elastic coordinates contains −Wᵀ f
        rows = eqs.rows.copy()
        eqs.loads.subtract_forces(state.time)
        for part, forces, film in zip(
            (system.v_slices[1], system.v_slices[3]),
            eqs.loads.gap_forces(),
            eqs.loads.films(),
            strict=True,
        ):
            change = eqs.rows[part][6:] - rows[part][6:]
            np.testing.assert_allclose(change, -forces @ film.surface, rtol=1e-9)


def test_power_is_that_of_forces_and_moments() -> None:
    """The power on the modes of both rings is that of the forces on s with the rates of s."""
    system = two_rings()
    eqs, state = Assembler(system), moving_state(system, 5)
    eqs.put(state)
    eqs.residual(state.time)
    expected = sum(
        float(forces @ eqs.loads.film_arguments(film.name)[1][1][1])
        for film, forces in zip(eqs.loads.films(), eqs.loads.gap_forces(), strict=True)
    )
    assert eqs.loads.power_on_modes(state.time) == pytest.approx(expected, rel=1e-9)
    assert abs(expected) > 1e-6


def test_two_simulators_of_one_system_do_not_disturb_each_other() -> None:
    """Steps that alternate between two simulators are those of one, bit by bit."""
    system = two_rings()
    alone = mbd.Simulator(system, dt=DT)
    expected = [alone.step().q for _ in range(6)]
    one, two = mbd.Simulator(system, dt=DT), mbd.Simulator(system, dt=0.5 * DT)
    for k in range(6):
        two.step()
        assert np.array_equal(one.step().q, expected[k])
        two.step()


@pytest.mark.parametrize(("cavitation", "kind"), [
    ("reynolds", ElasticBearing), ("mass_conserving", ElasticBearing),
    ("mass_conserving", FiniteBearing), ("reynolds", FiniteBearing),
])  # fmt: skip
def test_films_follow_inputs(cavitation: Any, kind: type[FiniteBearing]) -> None:
    """A simulator with a changed clearance moves as one with this clearance from the beginning."""
    body = elastic_body()

    def simulator(clearance: float) -> mbd.Simulator:
        options: dict[str, Any] = {"supply": SUPPLY, "cavitation": cavitation}
        if kind is ElasticBearing:
            options["bore"] = body.bore("bore")
        film = kind(
            "film", ("ring", "bore"), ("journal", "pin"), RADIUS, LENGTH, clearance, OIL,
            shape=(32, 8), **options,
        )  # fmt: skip
        return mbd.Simulator(journal_system(film, body, 3000.0), dt=DT, inputs=["film.clearance"])

    changed, expected, unchanged = (simulator(c) for c in (2.5e-5, CLEARANCE, 2.5e-5))
    changed.reset(inputs={"film.clearance": CLEARANCE})
    for _ in range(3):
        final = [s.step() for s in (changed, expected, unchanged)]
    positions = [state.q for state in final]
    size = np.abs(positions[1] - positions[2]).max()
    assert size > 1e-10
    assert np.abs(positions[0] - positions[1]).max() < 1e-6 * size
    # a change during the motion has an effect, and the films of other simulators stay as they are
    for s, value in ((changed, 2.2e-5), (expected, CLEARANCE)):
        s.step({"film.clearance": value})
    assert np.abs(changed.state.v - expected.state.v).max() > 1e-9


def test_a_film_without_a_solution_is_an_error() -> None:
    """The error is that of the single film, and the next evaluation succeeds."""
    system = two_rings()
    eqs, state = Assembler(system), moving_state(system, 1)
    eqs.put(state)
    eqs.residual(state.time)
    expected = eqs.rows.copy()
    eqs.put(state)
    eqs.v[system.v_slices[4]][:3] = 1e300  # the journal of the second film
    with pytest.raises(SolverError, match="cavitated area"):
        eqs.residual(state.time)
    eqs.put(state)
    eqs.residual(state.time)
    np.testing.assert_allclose(eqs.rows, expected, rtol=1e-9, atol=1e-6)


def test_films_of_other_sizes_are_other_groups() -> None:
    """Only films with equal grids, patterns and numbers of links are grouped."""
    body, supply = elastic_body(), [OilSupply(2e5, angle=1.0, arc=0.5, length=0.003)]
    films = [bearing(body), bearing(body), bearing(body, supply=supply)]
    keys = [film.group_key for film in films]
    assert keys[0] == keys[1] and keys[0] != keys[2]
    content = bearing(body, supply=supply, cavitation="mass_conserving")
    assert content.group_key is None
    copies = [film.for_run() for film in films[:2]]
    group = FilmGroup(copies, [(0, 1, 7, 6), (0, 1, 7, 6)])  # type: ignore[arg-type]
    assert group.wrenches.shape == (2, 12 + 15)
