"""Mechanisms and arguments for which no periodic or steady motion exists."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import PeriodicError, continuation, periodic
from dolfinx_mbd.dynamics import EquilibriumError
from dolfinx_mbd.errors import InputError, MbdWarning
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_bodies_on_their_mesh_are_named() -> None:
    """The error proposes a reduced body of the same model, which has a cycle."""
    mesh, tags = box((0, -0.003, -0.003), (0.3, 0.003, 0.003), (6, 1, 1))
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    period = 2 * np.pi / 150
    rod = MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0))
    with pytest.raises(InputError, match=r"mesh bodies \('rod'\).*FlexibleBody") as error:
        periodic(slider_crank(rod), period, dt=period / 100)
    assert error.value.argument == "system"
    reduced = mbd.reduce(model, interfaces=ends(0.0, 0.3), num_modes=2).body
    part = mbd.FlexibleBody("rod", reduced, position=(0.15, 0, 0), damping_ratio=0.05)
    cycle = periodic(slider_crank(part), period, dt=period / 200)
    assert cycle.stability == "stable"


def pendulum(motion: mbd.mechanism.Motion) -> mbd.System:
    """Return an arm that a driver moves."""
    ground = mbd.Ground({"o": mbd.Frame()})
    arm = mbd.RigidBody("arm", 1.0, [0.1] * 3, (0, -1, 0), frames={"o": mbd.Frame((0, 1, 0))})
    pin = mbd.revolute("pin", ground.frame("o"), arm.frame("o"))
    return mbd.System([ground, arm], [pin], drivers=[mbd.Driver("drive", "pin", motion)])


def test_a_drive_that_never_repeats() -> None:
    """A growing speed and a decaying oscillation are errors."""
    with pytest.raises(InputError, match="driver 'drive' does not repeat") as error:
        periodic(pendulum(lambda t: (0.5 * t**2, t, 1.0)), 1.0, dt=0.01)
    assert error.value.argument == "period"

    def decay(t: float) -> tuple[float, float, float]:
        a = -0.2 + 3j
        x = 0.3 * np.exp(a * t)
        return x.real, (a * x).real, (a * a * x).real

    with pytest.raises(InputError, match="driver 'drive' does not repeat"):
        periodic(pendulum(decay), 2 * np.pi / 3, dt=0.01)


def disc(stiffness: float = 40.0, weight: float = 0.0) -> mbd.System:
    """Return a disc on an isotropic support, which does not depend on the rotation about x."""
    frame = mbd.Frame((0, 0, 0), ALONG_X)
    ground = mbd.Ground({"o": frame})
    body = mbd.RigidBody("disc", 1.0, [0.01] * 3, (0, 1e-3, 0), frames={"o": frame})
    plane = mbd.planar("plane", ground.frame("o"), body.frame("o"))
    pair = ground.frame("o"), body.frame("o")
    support = mbd.Bushing("support", *pair, [stiffness] * 2 + [0.0] * 4, [0.0] * 6)
    return mbd.System([ground, body], [plane], loads=[support], gravity=(0, -weight, 0))


def test_steady_whirl_with_gravity_across_the_axis() -> None:
    for analysis in (
        lambda: mbd.equilibrium(disc(weight=9.81), spin=(3.0, 0, 0)),
        lambda: continuation(lambda w: disc(weight=9.81), (2.0, 4.0), spin=lambda w: (w, 0, 0)),
    ):
        with pytest.raises(EquilibriumError, match=r"'disc'.*unbalanced.*Gravity across the axis"):
            analysis()


def test_a_curve_that_does_not_reach_its_end() -> None:
    """The force of a spring is bounded: the curve goes to infinity before the parameter 1."""

    def build(p: float) -> mbd.System:
        ground = mbd.Ground({"o": mbd.Frame()})
        block = mbd.RigidBody("block", 1.0, [0.1] * 3, frames={"o": mbd.Frame()})
        rail = mbd.prismatic("rail", ground.frame("o"), block.frame("o"))
        spring = mbd.JointLoad("spring", "rail", "displacement", lambda t, x, v: p - np.tanh(x))
        return mbd.System([ground, block], [rail], loads=[spring])

    with pytest.warns(MbdWarning, match="ends after max_points = 60") as raised:
        curve = continuation(build, (0.0, 2.0), max_points=60)
    assert [warning.message.limit for warning in raised] == [60]  # type: ignore[union-attr]
    assert len(curve.states) == 60
    assert 0.7 < curve.parameter[-1] < 1.0
    x = curve.values(lambda system, state: state.q[2])
    assert np.allclose(np.tanh(x), curve.parameter, atol=1e-6)


def test_error_of_a_far_start_contains_the_distance() -> None:
    """A pendulum that turns over is far from the cycle of small oscillations."""
    ground = mbd.Ground({"o": mbd.Frame()})
    arm = mbd.RigidBody("arm", 1.0, [0.1] * 3, (0, -1, 0), frames={"o": mbd.Frame((0, 1, 0))})
    pin = mbd.revolute("pin", ground.frame("o"), arm.frame("o"))
    push = mbd.JointLoad("push", "pin", "rotation", lambda t, x, v: np.cos(2 * t) - 0.01 * v)
    system = mbd.System([ground, arm], [pin], loads=[push], gravity=(0, -9.81, 0))
    with pytest.raises(PeriodicError, match=r"after 1 corrections and \d+ periods.*'arm'") as error:
        periodic(system, np.pi, dt=0.02, start={"pin": 9.0}, max_corrections=1)
    assert 1e-6 < error.value.closure < 10.0
    assert periodic(system, np.pi, dt=0.02).closure < 1e-8


def test_the_free_rotation_is_named() -> None:
    """A disc on a shaft that nothing drives turns freely."""
    frame = mbd.Frame((0, 0, 0), ALONG_X)
    ground = mbd.Ground({"o": frame})
    body = mbd.RigidBody("disc", 1.0, [0.01] * 3, frames={"o": frame})
    axle = mbd.cylindrical("axle", ground.frame("o"), body.frame("o"))
    push = mbd.JointLoad("push", "axle", "displacement", lambda t, x, v: np.cos(9 * t) - 9 * x - v)
    system = mbd.System([ground, body], [axle], loads=[push])
    with pytest.raises(PeriodicError, match=r"multiplier is 1.*'disc', rotation about its x axis"):
        periodic(system, 2 * np.pi / 9, dt=0.01)
