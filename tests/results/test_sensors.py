"""Accelerometers and strain gauges in a run and in a simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dolfinx_mbd as mbd
from tests.models.rods import rod

GRAVITY = np.array([0.0, -9.81, 0.0])


def arm() -> mbd.System:
    """Return a flexible arm on a pin, with a motor, a single gauge and a rosette."""
    body = rod()
    rows = np.array([[2e-3, 1e-3], [1e-3, 0.0], [0.0, -3e-3]])
    grids = np.array([[1.0, 0, 0], [0.6, 0.8, 0.0], [0.0, 1, 0]])
    gauge = mbd.body.StrainGauge("g", (0, 0, 0), (0, 0, 1), grids[:1], 3e-3, rows[:1])
    rosette = mbd.body.StrainGauge("r", (0, 0, 0), (0, 0, 1), grids, 3e-3, rows)
    body = body.replace(gauges=(gauge, rosette))
    ground = mbd.Ground({"o": mbd.Frame()})
    part = mbd.FlexibleBody("arm", body, position=(0.5, 0, 0))
    pin = mbd.revolute("pin", ground.frame("o"), part.frame("left"))
    motor = mbd.JointLoad("motor", "pin", "rotation", 2.0)
    return mbd.System([ground, part], [pin], loads=[motor], gravity=GRAVITY)


def test_an_accelerometer_measures_the_proper_acceleration() -> None:
    """The proper acceleration is the acceleration minus gravity, in the axes of the body."""
    run = mbd.simulate(arm(), t_end=0.2, dt=2e-4)
    x = run.sensor("arm", "right", "position")
    dt = run.time[1]
    acceleration = (x[2:] - 2 * x[1:-1] + x[:-2]) / dt**2
    absolute = run.sensor("arm", "right", "acceleration")[1:-1]
    assert np.abs(acceleration - absolute).max() < 2e-2 * np.abs(absolute).max()
    measured = run.sensor("arm", "right", "proper acceleration", axes="body")
    A = mbd.results.histories.rotation_matrices(run.body("arm").rotation)
    in_global_axes = np.einsum("tij,tj->ti", A, measured)[1:-1]
    assert in_global_axes == pytest.approx(absolute - GRAVITY)


def test_a_body_at_rest_feels_gravity() -> None:
    upright = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])  # x of the block points upwards
    block = mbd.RigidBody("block", 1.0, [1.0] * 3, frames={"o": mbd.Frame()}, rotation=upright)
    ground = mbd.Ground({"o": mbd.Frame((0, 0, 0), upright)})
    weld = mbd.fixed("weld", ground.frame("o"), block.frame("o"))
    run = mbd.simulate(mbd.System([ground, block], [weld], gravity=GRAVITY), t_end=0.01, dt=1e-3)
    acceleration = run.sensor("block", (0, 0, 0), "proper acceleration", axes="body")
    assert acceleration[-1] == pytest.approx((9.81, 0, 0), abs=1e-9)


def test_gauges_are_outputs_of_a_simulator_and_columns_of_files(tmp_path: Path) -> None:
    outputs = {
        "strain": lambda run: run.gauge("arm", "g").strain[:, 0],
        "greatest": lambda run: run.gauge("arm", "r").principal[:, 0],
        "tip": lambda run: run.sensor("arm", "right", "proper acceleration", axes="body")[:, 1],
    }
    system = arm()
    simulator = mbd.Simulator(system, dt=1e-3, outputs=outputs)
    values = [simulator.outputs]
    for _ in range(20):
        simulator.step()
        values.append(simulator.outputs)
    run = mbd.simulate(system, t_end=0.02, dt=1e-3)
    for name, output in outputs.items():
        assert [row[name] for row in values] == pytest.approx(output(run), rel=1e-12)
    assert np.ptp(run.gauge("arm", "g").strain) > 0
    strain = run.body("arm").eta @ (2e-3, 1e-3)
    assert run.gauge("arm", "g").strain[:, 0] == pytest.approx(strain)
    heads = run.to_csv(tmp_path / "arm.csv", names=["arm"]).read_text().splitlines()[0]
    assert [head for head in heads.split(",") if "strain" in head] == [
        "arm.g.strain [1]",
        "arm.r 0°.strain [1]",
        "arm.r 53°.strain [1]",
        "arm.r 90°.strain [1]",
    ]
    assert run.to_xarray(["arm"])["arm.g.strain"].dims == ("time",)
    with pytest.raises(mbd.errors.InputError, match="unknown gauge 'x'; body 'rod' has 'g', 'r'"):
        run.gauge("arm", "x")
    with pytest.raises(mbd.errors.InputError, match="is not flexible"):
        run.gauge("ground", "g")
