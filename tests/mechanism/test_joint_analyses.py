"""Joints with a relation in all analyses, or one clear error that names the joint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.assembly.assembler import Assembler

G = 9.81


def system_of(name: str, value: float) -> mbd.System:
    """Return a body on a spring and a joint `name`; `value` changes the spring and some joints."""
    ground = mbd.Ground({"o": mbd.Frame(), "far": mbd.Frame((0.4, 0.1, 0.6))})
    radius = 0.2
    track = mbd.mechanism.Curve.of(lambda u: (u, value * u**2, 0.2 * u**3), -1.0, 1.0, count=80)
    ends = ground.frame("o"), ("body", "o")
    position = {"distance": (value, 0, 0), "rolling_ball": (0, 0, radius)}.get(name, (0, 0, 0))
    body = mbd.RigidBody(
        "body",
        1.5,
        [0.02, 0.03, 0.04],
        position=position,
        frames={"o": mbd.Frame(), "p": mbd.Frame((0.1, 0.05, 0))},
    )
    make: dict[str, Callable[[], mbd.mechanism.Joint]] = {
        "screw": lambda: mbd.screw("joint", *ends, value),
        "rack_and_pinion": lambda: mbd.rack_and_pinion("joint", *ends, value),
        "constant_velocity": lambda: mbd.constant_velocity("joint", *ends),
        "point_on_curve": lambda: mbd.point_on_curve("joint", *ends, track),
        "distance": lambda: mbd.distance("joint", *ends),
        "rolling_ball": lambda: mbd.rolling_ball("joint", *ends, radius),
        "rolling_disc": lambda: mbd.rolling_disc("joint", *ends, radius),
        "knife_edge": lambda: mbd.knife_edge("joint", *ends),
    }
    if name == "rolling_disc":
        body = mbd.RigidBody(
            "body",
            1.5,
            [0.02, 0.03, 0.04],
            position=(0, 0, radius),
            frames={
                "o": mbd.Frame((0, 0, 0), [[1, 0, 0], [0, 0, -1], [0, 1, 0]]),
                "p": mbd.Frame((0.1, 0, 0)),
            },
        )
    spring = mbd.SpringDamper(
        "spring", ground.frame("far"), body.frame("p"), 60.0, 0.5 + value, 0.1
    )
    return mbd.System([ground, body], [make[name]()], loads=[spring], gravity=(0.5, 0, -G))


VALUES = {
    "screw": 0.3,
    "rack_and_pinion": 0.2,
    "constant_velocity": 0.1,
    "point_on_curve": 0.4,
    "distance": 0.5,
    "rolling_ball": 0.2,
    "rolling_disc": 0.2,
    "knife_edge": 0.2,
}
ON_VELOCITIES = ("rolling_ball", "rolling_disc", "knife_edge")  # constrain velocities only


@pytest.mark.parametrize("name", VALUES)
def test_only_the_damper_dissipates_energy(name: str) -> None:
    """The error of the balance of energy is that of steps of second order: a quarter at dt/2."""
    errors = []
    for dt in (2e-3, 1e-3):
        run = mbd.simulate(system_of(name, VALUES[name]), t_end=0.2, dt=dt)
        spring = run.element("spring")
        dissipated = -spring.work[-1] - (spring.energy[-1] - spring.energy[0])
        total = run.energies().total
        errors.append(total[-1] - total[0] + dissipated)
        assert dissipated > 0
    # The next term of the error is smaller by the factor ω dt, where √(k/m) = 6/s
    assert 4 * errors[1] == pytest.approx(errors[0], rel=0.03)


@pytest.mark.parametrize("name", VALUES)
def test_runs_and_their_files(name: str, tmp_path: Path) -> None:
    system = system_of(name, VALUES[name])
    assert name.replace("_", "-") in str(system)
    run = mbd.simulate(system, t_end=0.2, dt=2e-3)
    history = run.joint("joint")
    assert history.violation.max() < 1e-9
    assert np.abs(history.power).max() < 1e-4 * np.abs(run.element("spring").power).max()
    run.save(tmp_path / "run.npz")
    loaded = mbd.results.Solution.load(tmp_path / "run.npz", system_of(name, VALUES[name]))
    assert np.array_equal(loaded.joint("joint").force, history.force)
    run.to_csv(tmp_path / "run.csv")
    mbd.plotting.player(run, tmp_path / "run.html")
    later = mbd.simulate(system, t_end=0.3, dt=2e-3, start=run.final_state)
    whole = mbd.simulate(system, t_end=0.3, dt=2e-3)
    assert np.allclose(later.q[-1], whole.q[-1], atol=1e-7)


@pytest.mark.parametrize("name", VALUES)
def test_equilibrium_and_linearization(name: str) -> None:
    """Accelerations at displaced positions are −M⁻¹K times the displacements."""
    system = system_of(name, VALUES[name])
    rest = mbd.equilibrium(system)
    state = mbd.dynamics.consistent_state(system, q=rest.q)
    assert np.abs(state.a).max() < 1e-6
    assert np.allclose(state.lam, rest.lam, atol=1e-6 * max(1.0, np.abs(rest.lam).max()))
    result = mbd.linearize(system, rest)
    eqs, h, columns = Assembler(system), 1e-5, []
    for direction in result.basis.T:
        accelerations = []
        for sign in (1, -1):
            eqs.move(rest.q, sign * h * direction)
            accelerations.append(mbd.dynamics.consistent_state(system, q=eqs.q.copy()).a)
        columns.append((accelerations[0] - accelerations[1]) / (2 * h))
    expected = -result.basis @ np.linalg.solve(result.mass, result.stiffness)
    assert np.allclose(np.array(columns).T, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", VALUES)
def test_inverse_dynamics_returns_the_forces_of_a_run(name: str) -> None:
    system = system_of(name, VALUES[name])
    run = mbd.simulate(system, t_end=0.1, dt=1e-3)
    forces = mbd.analyses.inverse_dynamics(system, run)
    expected = run.joint("joint").force
    value = forces.solution.joint("joint").force
    assert np.allclose(value, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ON_VELOCITIES])
def test_derivatives_of_runs(name: str) -> None:
    def build(p: dict[str, float]) -> mbd.System:
        return system_of(name, p["value"])

    def last(run: mbd.results.Solution) -> float:
        """Return a number that depends on the last position and the force of the joint."""
        return float(
            run.body("body").position[-1] @ [1.0, 2.0, 3.0]
            + 0.1 * run.joint("joint").force[-1].sum()
        )

    # A small tolerance, since it limits the accuracy of the differences of runs
    value, options = VALUES[name], {"t_end": 0.1, "dt": 1e-3, "tolerance": 1e-10}
    runs = mbd.run_sensitivities(build, {"value": value}, **options)
    h = 2e-3 * value
    # A central difference of fourth order
    ends = [last(mbd.simulate(build({"value": value + k * h}), **options)) for k in (1, -1, 2, -2)]
    expected = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
    assert runs.derivative(last)["value"] == pytest.approx(expected, rel=2e-5)
    functional = mbd.design.Functional("body.position.x", "final")
    result = mbd.design.run_gradient(build, {"value": value}, functional, **options)
    gradient = result.gradient["value"]
    slope = runs.derivative(lambda run: run.body("body").position[-1, 0])["value"]
    assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ON_VELOCITIES)
def test_analyses_that_need_positions(name: str) -> None:
    system = system_of(name, VALUES[name])
    tasks: list[Callable[[], object]] = [
        lambda: mbd.analyses.kinematic_analysis(system, [0.0, 0.1]),
        lambda: mbd.run_sensitivities(lambda p: system, {"p": 1.0}, t_end=0.1, dt=1e-2),
    ]
    for task in tasks:
        with pytest.raises(mbd.errors.InputError) as record:
            task()
        assert "'joint'" in str(record.value)
        assert record.value.argument == "system"
