"""Deformations outside the linear theory: equilibria, linearizations, spins without stiffening."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import MbdWarning, ModelRangeWarning
from tests.models.beams import slender_rod

LENGTH = 0.3


def warnings_of(call: Callable[[], Any]) -> dict[str, MbdWarning]:
    """Return the warnings of a call by quantity; none is given twice."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        call()
    messages = [r.message for r in records if isinstance(r.message, MbdWarning)]
    assert len({m.quantity for m in messages}) == len(messages)
    assert all(record.filename == __file__ for record in records)
    return {str(m.quantity): m for m in messages}


def cantilever(load: float) -> mbd.System:
    """Return a clamped rod with a lateral force that grows over time."""
    ground = mbd.Ground({"o": mbd.Frame()})
    rod = mbd.FlexibleBody("rod", slender_rod(LENGTH))
    clamp = mbd.fixed("clamp", ground.frame("o"), rod.frame("big_end"))
    push = mbd.force("push", rod.frame("small_end"), lambda t, motion: (0.0, -load * (1 + t), 0.0))
    return mbd.System([ground, rod], [clamp], loads=[push])


@pytest.mark.parametrize("load", [20.0, 1e3, 5e3])
def test_equilibria_and_linearizations(load: float) -> None:
    system = cantilever(load)
    states: list[mbd.mechanism.State] = []
    reported = warnings_of(lambda: states.append(mbd.equilibrium(system)))
    eta = states[0].q[7:]
    ends = system.body("rod").reduced.interfaces  # type: ignore[attr-defined]
    angle = max(float(np.linalg.norm(end.motion[3:] @ eta)) for end in ends)
    assert ("elastic rotation" in reported) == (angle > 0.2)
    assert (angle > 0.2) == (load > 100.0)
    of_linearization = warnings_of(lambda: mbd.linearize(system, states[0]))
    assert of_linearization.keys() == reported.keys()
    if load > 100.0:
        warning = reported["elastic rotation"]
        assert isinstance(warning, ModelRangeWarning)
        assert warning.value == pytest.approx(angle, rel=1e-9)
        assert of_linearization["elastic rotation"].value == warning.value
        assert "body 'rod'" in str(warning)


def test_a_sequence_of_equilibria_gives_one_warning_of_the_largest() -> None:
    system, times = cantilever(1e3), np.linspace(0.0, 1.0, 5)
    runs: list[mbd.results.Solution] = []
    reported = warnings_of(lambda: runs.append(mbd.analyses.quasi_static_motion(system, times)))
    assert "at t = 1 s" in str(reported["elastic rotation"])
    for t, q in zip(times, runs[0].q, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = mbd.equilibrium(system, t=t)
        np.testing.assert_allclose(q, state.q, atol=1e-9)


@pytest.mark.parametrize(("ratio", "warns"), [(0.2, False), (0.5, True), (0.9, True), (2.0, True)])
def test_fast_rods_without_stiffening(ratio: float, warns: bool) -> None:
    rod = slender_rod(LENGTH)
    speed = ratio * 2 * np.pi * rod.frequencies[0]
    for omega, expected in (((0, 0, speed), warns), ((speed, 0, 0), False)):
        system = mbd.System([mbd.FlexibleBody("rod", rod, omega=omega)])
        reported = warnings_of(lambda s=system: mbd.simulate(s, t_end=1e-5, dt=1e-6))
        quantity = "spin without stiffening"
        assert (quantity in reported) == expected
        if expected:
            assert reported[quantity].value == pytest.approx(ratio, rel=1e-3)


def test_rods_with_stiffening_and_spinning_equilibria() -> None:
    mesh = create_interval(MPI.COMM_SELF, 8, [0, LENGTH])
    model = mbd.BeamModel(mesh, mbd.forms.Section.rectangle(0.008, 0.009), mbd.STEEL)
    ends = {"left": 0.0, "right": LENGTH}
    body = mbd.reduce_beam(model, interfaces=ends, num_modes=8).body
    speed = 0.6 * 2 * np.pi * body.frequencies[0]
    stiffened = mbd.FlexibleBody("rod", body, position=(-0.5 * LENGTH, 0, 0))
    assert stiffened.stiffening
    for rod, expected in ((stiffened, False), (replace(stiffened, stiffening=False), True)):
        run = warnings_of(
            lambda r=rod: mbd.simulate(
                mbd.System([replace(r, omega=(0, 0, speed))]), t_end=1e-5, dt=1e-6
            )
        )
        assert ("spin without stiffening" in run) == expected
        ground = mbd.Ground({"o": mbd.Frame()})
        hub = replace(rod, position=(0, 0, 0))
        hinge = mbd.revolute("hinge", ground.frame("o"), hub.frame("left"))
        rotor = mbd.System([ground, hub], [hinge])
        for spin in (0.0, speed):
            reported = warnings_of(lambda s=rotor, w=spin: mbd.equilibrium(s, spin=(0, 0, w)))
            assert ("spin without stiffening" in reported) == (expected and spin > 0.0)
