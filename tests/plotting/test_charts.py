"""Charts from plain arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.plotting.charts import campbell_diagram

pytest.importorskip("matplotlib")

SPEEDS = np.linspace(0.0, 100.0, 5)
FREQUENCIES = np.column_stack([10 + SPEEDS / 20, np.abs(10 - SPEEDS / 6)])


def test_campbell_diagram_draws_modes_orders_and_instability(tmp_path: Path) -> None:
    whirl = np.column_stack([np.full(5, -1.0), np.ones(5)])
    growing = np.zeros((5, 2), dtype=bool)
    growing[3:, 1] = True
    path = tmp_path / "new" / "campbell.png"
    figure = campbell_diagram(
        SPEEDS, FREQUENCIES, path, whirl=whirl, growing=growing, orders=(1, 2), title="blade"
    )
    assert path.stat().st_size > 5000
    (axes,) = figure.axes
    assert axes.get_title() == "blade"
    lines = axes.get_lines()
    rpm = SPEEDS * 30 / np.pi
    assert np.allclose(lines[1].get_ydata(), 2 * rpm / 60)  # twice per revolution
    dashed = [line for line in lines if line.get_linestyle() == "--"]
    assert any(np.allclose(line.get_ydata(), FREQUENCIES[:, 0]) for line in dashed)
    solid = [line for line in lines[2:] if line.get_linestyle() == "-"]
    assert any(np.allclose(line.get_ydata(), FREQUENCIES[:, 1]) for line in solid)
    crosses = [line for line in lines if line.get_marker() == "x"]
    assert sum(len(line.get_xdata()) for line in crosses) == 2


def test_campbell_diagram_refuses_shapes_that_do_not_fit() -> None:
    for argument, arguments in (
        ("frequencies", {"speeds": SPEEDS[1:]}),
        ("whirl", {"whirl": np.zeros(5)}),
        ("growing", {"growing": np.zeros(5, dtype=bool)}),
        ("title", {"title": 3}),
        ("path", {"path": "campbell.unknown"}),
    ):
        with pytest.raises(InputError) as error:
            campbell_diagram(**{"speeds": SPEEDS, "frequencies": FREQUENCIES, **arguments})
        assert error.value.argument == argument
