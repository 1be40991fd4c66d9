"""A chain of N parallel four-bars, which is singular when it is horizontal.

All cranks stay parallel, so that the mechanism is a pendulum in closed form. In the horizontal
position the couplers may fold the other way; a solver must pass through it or report it.

References:
    IFToMM Technical Committee for Multibody Dynamics, Library of Computational Benchmark Problems,
    "N four-bar mechanism".
"""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from tests.models.four_bars import chain, pendulum


def test_closed_form_is_that_of_the_library() -> None:
    ends = pendulum(2, np.array([0.0, 1.0, 10.0]))[1:]
    np.testing.assert_allclose(ends[0], (-0.19502030195, -0.98079920566), atol=1e-9)
    np.testing.assert_allclose(ends[1], (0.32845811153, 0.94451853818), atol=1e-8)


@pytest.mark.parametrize("loops", [1, 2, 5])
def test_motion_through_the_singular_position(loops: int) -> None:
    run = mbd.simulate(chain(loops), t_end=1.0, dt=5e-4, start={"drive": -1.0})
    pin = run.sensor("crank 0", "end")[:, :2]
    exact = pendulum(loops, run.time)
    assert np.abs(pin - exact).max() < 1e-4
    energy = run.energies().total
    assert np.ptp(energy) < 1e-3 * np.ptp(run.energies().kinetic)
