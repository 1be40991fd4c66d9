"""What notebooks show: a table and the viewer; short texts elsewhere."""

from __future__ import annotations

import pytest
from mpi4py import MPI

from dolfinx_mbd.mechanisms import rigid_rod, slider_crank
from dolfinx_mbd.multibody import simulate
from tests.plotting.test_plotting import bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="notebooks have one process")


def test_tables_and_viewers() -> None:
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    system = slider_crank(bar(), speed=200.0, **crank)
    run = simulate(system, t_end=1e-3, dt=1e-4)
    for item, word in ((bar(), "big_end"), (system, "crank pin"), (run, "piston")):
        text = item._repr_html_()
        assert text.startswith("<table>") and word in text.split("</table>")[0]
        assert "<iframe" in text
        assert repr(item).count("\n") < 10 and len(repr(item)) < 1000


def test_a_body_that_cannot_be_drawn_has_a_table_only() -> None:
    text = rigid_rod(0.2, 1.0)._repr_html_()
    assert "<table>" in text and "<iframe" not in text
