"""The MATLAB file, read by SciPy, has the properties that Simscape's block requires."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.superelement import superelement
from dolfinx_mbd.kernels.rotations import rotation_matrix
from tests.io.export.rods import NUM_MODES, check_superelement, relative, rod


def test_properties_required_by_simscape(tmp_path: Path) -> None:
    body = rod()
    report = export(body, tmp_path / "rod", "simscape")
    assert [path.name for path in report.paths] == ["rod.mat"]
    data = scipy.io.loadmat(report.paths[0])
    check_superelement(body, data["K"], data["M"], 1e-11)
    assert np.array_equal(data["C"], superelement(body).damping)
    assert np.array_equal(data["origins"], [i.point for i in body.interfaces])
    for quaternion, i in zip(data["quaternions"], body.interfaces, strict=True):
        assert np.allclose(rotation_matrix(quaternion), i.axes, atol=1e-15)
    assert [str(name[0][0]) for name in data["names"]] == ["left", "right ?"]
    assert data["frequencies"].shape == (NUM_MODES, 1)
    assert data["units"][0].startswith("m-kg-s: length m")


def test_units(tmp_path: Path) -> None:
    """In mm-t-s, stiffness is in N/mm, N and N mm, mass in t, t mm and t mm²."""
    body = rod().replace(damping=np.zeros((rod().num_modes,) * 2))
    si_element = superelement(body)
    data = scipy.io.loadmat(export(body, tmp_path / "rod", "simscape", units="mm-t-s").paths[0])
    assert "C" not in data
    scale = np.array([1e-3, 1e-3, 1e-3, 1.0, 1.0, 1.0] * 2 + [1.0] * NUM_MODES)  # m, rad per unit
    energy, inertia = 1e3, 1e-3 * 1e6  # N m in N mm, kg m² in t mm²
    scale[12:] = 1 / np.sqrt(inertia)  # coordinates of modes with unit modal mass
    scale = np.outer(scale, scale)
    assert relative(data["K"], energy * si_element.stiffness * scale) < 1e-11
    assert relative(data["M"], inertia * si_element.mass * scale) < 1e-11
    assert np.allclose(data["origins"], 1e3 * si_element.points)


def test_chosen_interfaces_and_bad_input(tmp_path: Path) -> None:
    body = rod()
    data = scipy.io.loadmat(
        export(body, tmp_path / "one.mat", "simscape", interfaces=["left"]).paths[0]
    )
    assert data["origins"].shape == (1, 3) and len(data["K"]) == 6 + body.num_modes
    with pytest.raises(InputError) as error:
        export(body.replace(interfaces=(), stiffening=None), tmp_path / "none", "simscape")
    assert error.value.expected == "a body with interfaces for Simscape"
    with pytest.raises(InputError) as error:
        export(body.truncated(4), tmp_path / "few", "simscape")
    assert error.value.argument == "interfaces"
    with pytest.raises(OSError, match="nothing was written"):
        export(body, tmp_path / "one.mat" / "rod", "simscape")
    assert [path.name for path in tmp_path.iterdir()] == ["one.mat"]
