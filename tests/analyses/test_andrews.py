"""Andrews' squeezing mechanism of the IVP test set: seven bodies in a plane, one degree of freedom.

References:
    F. Mazzia, C. Magherini: Test Set for Initial Value Problem Solvers, release 2.4, 2008.
    E. Hairer, G. Wanner: Solving Ordinary Differential Equations II, section VII.7.
"""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from tests.models.andrews import (
    AT_THE_END,
    SPEEDS_AT_THE_END,
    extrapolated_end,
    mechanism,
)


def test_accelerations_at_the_start() -> None:
    state = mbd.dynamics.consistent_state(mechanism())
    system = mechanism()
    first, second = (state.a[system.v_slices[system.body_index(k)]][5] for k in ("K1", "K2"))
    assert first == pytest.approx(14222.4439199541139, rel=1e-9)
    # body K2 rotates by the sum of the angles β and Θ of the test set
    assert second == pytest.approx(14222.4439199541139 - 10666.8329399655854, rel=1e-9)


@pytest.mark.slow
def test_motion_of_the_test_set() -> None:
    """Three runs, extrapolated to a step of zero, have the digits of the test set."""
    angles, speeds = extrapolated_end()
    np.testing.assert_allclose(angles, list(AT_THE_END.values()), rtol=0, atol=1e-8)
    # the speeds are of the order of 1e3 rad/s
    np.testing.assert_allclose(speeds, SPEEDS_AT_THE_END, rtol=0, atol=1e-6 * 1e3)
