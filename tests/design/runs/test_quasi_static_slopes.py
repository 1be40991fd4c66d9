"""Derivatives of a quasi-static start equal differences of starts at changed parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.design.runs.parameter_terms import ParameterTerms
from dolfinx_mbd.design.runs.quasi_static_slopes import QuasiStaticSlopes
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from tests.design.runs.mechanisms import GROUND, double_pendulum, slider_crank
from tests.models.rods import rod

VALUES = {"stiffness": 1.0, "radius": 0.2, "piston": 0.3, "speed": 1.0}


def test_derivatives_equal_differences_of_recomputed_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = ParameterTerms(slider_crank, VALUES)
    stepper, dt = Stepper(terms.system), 2e-4
    first = stepper.begin(mbd.dynamics.consistent_state(terms.system), dt)
    assert terms._quasi_static(first, None) is not None
    state, multipliers, _ = terms.start(first, stepper, dt, None)
    monkeypatch.setattr(ParameterTerms, "_quasi_static", lambda *arguments: None)
    expected, expected_multipliers, _ = terms.start(first, stepper, dt, None)
    # The rows of a state are q, v, a and the accelerations of the method. Both results use central
    # differences with steps of 1e-4 of each parameter, whose relative errors are about 1e-8, plus
    # round-off
    for part, reference, tolerance in zip(state, expected, (5e-8, 5e-8, 5e-8, 5e-6), strict=True):
        size = np.abs(reference).max(axis=0)
        assert (np.abs(part - reference).max(axis=0) <= tolerance * size).all()
    assert multipliers == pytest.approx(
        expected_multipliers, abs=1e-7 * np.abs(expected_multipliers).max()
    )


def test_mechanisms_without_quasi_static_derivatives() -> None:
    """They apply neither to rigid mechanisms nor to mechanisms with free rigid motions."""
    values = {"mass": 1.5, "length": 0.5, "k": 3.0, "g": 9.81}
    assert not QuasiStaticSlopes.applies(double_pendulum(values))

    def hinged(p: Mapping[str, float]) -> mbd.System:
        arm = mbd.FlexibleBody("arm", rod())
        pin = mbd.revolute("pin", GROUND.frame("pivot"), arm.frame("left"))
        return mbd.System([GROUND, arm], [pin])

    assert not QuasiStaticSlopes.applies(hinged({}))
    assert QuasiStaticSlopes.applies(slider_crank(VALUES))
