"""Charts of a run show its forces, its paths and, as an area, the work of its elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

from dolfinx_mbd import plotting
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine, rigid_rod
from dolfinx_mbd.results import Solution

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return two revolutions of an engine of one cylinder."""
    engine = inline_engine(
        rigid_rod(length=0.137, mass=0.3), EngineDesign(cylinders=1), speed=300.0
    )
    return simulate(engine, t_end=4 * np.pi / 300.0, dt=5e-5)


def line(figure: Any, k: int = 0) -> Any:
    """Return the points of a line in a figure."""
    return figure.axes[0].get_lines()[k].get_data()


def test_forces_over_the_crank_angle(run: Solution, tmp_path: Path) -> None:
    path = tmp_path / "forces.png"
    figure = plotting.plot_forces(run, ["crank pin 1", "gas 1"], path, over="main")
    assert path.stat().st_size > 5000
    x, y = line(figure)
    np.testing.assert_allclose(x, np.degrees(300.0 * run.time), atol=1e-6)
    force = np.linalg.norm(run.joint("crank pin 1").force, axis=1)
    np.testing.assert_allclose(y, force, rtol=1e-9)
    time, gas = line(plotting.plot_forces(run, ["gas 1"]))
    np.testing.assert_allclose(time, 1e3 * run.time)
    np.testing.assert_allclose(gas, np.abs(run.element("gas 1").force[:, 0]))


def test_the_polar_force_is_that_of_the_joint(run: Solution) -> None:
    angle, size = line(plotting.plot_polar_force(run, "crank pin 1"))
    force = run.joint("crank pin 1").force
    np.testing.assert_allclose(size * np.cos(angle), force[:, 0], atol=1e-6 * size.max())
    np.testing.assert_allclose(size * np.sin(angle), force[:, 1], atol=1e-6 * size.max())


def test_the_orbit_of_the_pin_is_a_circle(run: Solution) -> None:
    x, y = line(plotting.plot_orbit(run, "crank", "pin 1"))
    # The chart is relative to the mean position; the crank radius is 40 mm.
    centre = 1e3 * run.sensor("crank", "pin 1").mean(axis=0)
    np.testing.assert_allclose(np.hypot(x + centre[0], y + centre[1]), 40.0, rtol=1e-6)
    with pytest.raises(InputError):
        plotting.plot_orbit(run, "crank", "pin 1", plane="xx")  # type: ignore[arg-type]


def test_the_area_of_the_work_diagram_is_the_work(run: Solution) -> None:
    for name, scale in (("gas 1", 1e-3), ("drive", np.pi / 180)):  # from mm and from degrees
        x, y = line(plotting.plot_work(run, name))
        work = run.element(name).work[-1]
        assert abs(work) > 100.0
        assert trapezoid(y, scale * x) == pytest.approx(work, rel=1e-3)
    with pytest.raises(InputError) as error:
        plotting.plot_work(run, "crank pin 1")
    assert error.value.argument == "element"
