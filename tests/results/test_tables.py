"""Datasets of runs: coordinates, units, files, and the difference of two runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from mpi4py import MPI

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import FlexibleBody, Frame, Ground, SpringDamper, revolute
from dolfinx_mbd.results import Solution
from tests.models.rods import rod


def swing(stiffness: float) -> Solution:
    """Return a run of a flexible arm on a hinge with a strut."""
    ground = Ground({"o": Frame(), "up": Frame((0.0, 0.8, 0.0))})
    arm = FlexibleBody("arm 1", rod(), position=(0.5, 0, 0))
    hinge = revolute("hinge", ground.frame("o"), arm.frame("left"))
    strut = SpringDamper("strut", ground.frame("up"), arm.frame("right"), stiffness, 1.0, 0.5)
    return simulate(System([ground, arm], [hinge], loads=[strut]), t_end=0.05, dt=1e-3)


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a run with a strut of 100 N/m."""
    return swing(100.0)


def test_a_dataset_has_coordinates_and_units(run: Solution) -> None:
    data = run.to_xarray()
    assert np.array_equal(data["time"], run.time) and data["time"].attrs["units"] == "s"
    assert data["arm 1.position"].dims == ("time", "axis")
    assert data["axis"].values.tolist() == ["x", "y", "z"]
    assert data["arm 1.rotation"].dims == ("time", "quaternion")
    assert data["arm 1.eta"].dims == data["arm 1.eta_rate"].dims == ("time", "arm 1 mode")
    assert data["arm 1 mode"].values.tolist() == [1, 2]
    expected = {
        "arm 1.rotation": "1",
        "arm 1.kinetic_energy": "J",
        "arm 1.right.force": "N",
        "hinge.rotation": "rad",
        "hinge.displacement_rate": "m/s",
        "strut.first_moment": "N m",
        "strut.tension": "N",
        "strut.power": "W",
    }
    assert {name: data[name].attrs["units"] for name in expected} == expected
    assert all("units" in variable.attrs for variable in data.data_vars.values())
    strut = run.element("strut")
    assert np.array_equal(data["strut.force"].sel(axis="y"), strut.force[:, 1])
    assert np.array_equal(data["arm 1.right.force"], run.body("arm 1").wrenches["right"][:, :3])
    assert [*run.to_xarray(["hinge"]).data_vars][:2] == ["hinge.force", "hinge.moment"]
    with pytest.raises(InputError):
        run.to_xarray(["hing"])


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="writes a file")
def test_netcdf_and_pandas(run: Solution, tmp_path: Path) -> None:
    data = run.to_xarray()
    data.to_netcdf(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc") as loaded:
        xarray.testing.assert_identical(loaded.load(), data)
    table = data["strut.force"].to_pandas()
    assert [*table.columns] == ["x", "y", "z"]
    assert np.array_equal(table["y"], run.element("strut").force[:, 1])
    assert np.array_equal(table.index, run.time)


def test_two_runs_are_compared(run: Solution) -> None:
    stiff = swing(300.0)
    change = stiff.to_xarray() - run.to_xarray()
    position = stiff.body("arm 1").position - run.body("arm 1").position
    assert np.array_equal(change["arm 1.position"], position)
    assert np.abs(position).max() > 1e-3


def test_the_same_quantities_are_in_the_csv_file(run: Solution, tmp_path: Path) -> None:
    path = run.to_csv(tmp_path / f"{MPI.COMM_WORLD.rank}.csv", names=["strut", "arm 1"])
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    values = np.loadtxt(path, delimiter=",", skiprows=1).T
    column = dict(zip(names, values, strict=True))
    strut = run.element("strut")
    assert np.array_equal(column["strut.tension [N]"], strut.tension)
    assert np.array_equal(column["strut.first_force.y [N]"], strut.first_force[:, 1])
    assert np.array_equal(column["strut.work [J]"], strut.work)
    wrench = run.body("arm 1").wrenches["right"]
    assert np.array_equal(column["arm 1.right.moment.z [N m]"], wrench[:, 5])
    assert np.array_equal(column["arm 1.momentum.x [kg m/s]"], run.body("arm 1").momentum[:, 0])
