"""Initial rates of joints, and states from values by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import AssemblyError, System, consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import exp_quaternion
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    Joint,
    RigidBody,
    constant_speed,
    cylindrical,
    planar,
    point_on_line,
    prismatic,
    revolute,
)
from dolfinx_mbd.results.files.fingerprint import digest
from tests.models.rods import rod

GROUND = Ground({"o": Frame()})
BAR = RigidBody.box(
    "bar", (1.0, 0.1, 0.1), mass=1.0, frames={"o": Frame((-0.5, 0, 0))}, position=(0.5, 0, 0)
)
ENDS = GROUND.frame("o"), BAR.frame("o")


def hinged(rate: float | None, bar: RigidBody = BAR, **options: Any) -> System:
    """Return a bar on a hinge with an initial rate."""
    return System([GROUND, bar], [revolute("pin", *ENDS, rate=rate)], **options)


@pytest.mark.parametrize("make", [revolute, cylindrical, planar, prismatic, point_on_line])
def test_each_joint_with_a_rate_starts_with_it(make: Any) -> None:
    joint = make("joint", *ENDS, rate=2.0)
    run = simulate(System([GROUND, BAR], [joint]), t_end=0.01, dt=1e-3)
    same = simulate(
        System([GROUND, BAR], [make("joint", *ENDS)]), t_end=0.01, dt=1e-3, start={"joint": 2.0}
    )
    assert np.array_equal(run.q, same.q) and np.array_equal(run.v, same.v)
    history = run.joint("joint")
    rotates = joint.default_motion == "rotation"
    rate = history.rotation_rate if rotates else history.displacement_rate[:, 2]
    assert rate[0] == pytest.approx(2.0, abs=1e-12)


def test_contradictions() -> None:
    assert consistent_state(hinged(2.0), rates={"pin": 2.0}).v[5] == pytest.approx(2.0)
    with pytest.raises(InputError, match="has the initial rate 2, but the start specifies 3"):
        simulate(hinged(2.0), t_end=0.1, dt=0.01, start={"pin": 3.0})
    with pytest.raises(AssemblyError, match="contradict"):
        consistent_state(hinged(2.0, replace(BAR, omega=(0, 0, 1.0))))
    assert consistent_state(hinged(2.0, replace(BAR, omega=(0, 0, 2.0)))).v[5] == pytest.approx(2.0)
    with pytest.raises(AssemblyError, match="pin"):
        consistent_state(hinged(2.0, drivers=[Driver("drive", "pin", constant_speed(1.0))]))
    for kind in ("spherical", "fixed", "universal"):
        with pytest.raises(InputError, match=f"None for a {kind} joint"):
            Joint("joint", kind, *ENDS, rate=1.0)
    with pytest.raises(InputError, match="rate"):
        revolute("pin", *ENDS, rate=np.nan)


def test_a_state_starts_without_the_rates_of_joints() -> None:
    """Specified velocities, or those of a run, replace the initial rates of joints."""
    run = simulate(hinged(2.0), t_end=0.1, dt=0.01)
    continued = simulate(hinged(5.0), t_end=0.2, dt=0.01, start=run.final_state)
    assert continued.v[0, 5] == run.v[-1, 5]
    assert consistent_state(hinged(2.0), v=np.zeros(6)).v[5] == 0.0


def test_files_from_before_joints_had_rates() -> None:
    """A joint without a rate has the digest that version 0.2 wrote."""
    assert digest(revolute("pin", *ENDS)) == "f59352ca10c40d672897b26594c46160"
    assert digest(revolute("pin", *ENDS, rate=0.0)) != "f59352ca10c40d672897b26594c46160"


def test_states_by_name() -> None:
    flexible = FlexibleBody("rod", rod(), position=(0, 1, 0))
    system = System([GROUND, BAR, flexible])
    quaternion = exp_quaternion(np.array([0.0, 0.0, 0.3]))
    state = consistent_state(
        system,
        elastic_start="undeformed",
        q={"rod.position": (1, 2, 3), "rod.eta": (1e-3, 2e-3), "bar.rotation": quaternion},
        v={"bar.velocity": (4, 5, 6), "rod.omega": (7, 8, 9), "rod.eta_rate": (0.1, 0.2)},
    )
    q, v = state.q, state.v
    np.testing.assert_allclose(q[:7], [0.5, 0, 0, *quaternion], atol=1e-15)
    np.testing.assert_allclose(q[7:], [1, 2, 3, 1, 0, 0, 0, 1e-3, 2e-3], atol=1e-15)
    np.testing.assert_allclose(v[:6], [4, 5, 6, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(v[6:], [0, 0, 0, 7, 8, 9, 0.1, 0.2], atol=1e-12)
    body = simulate(system, t_end=1e-4, dt=1e-5, start=state).body("rod")
    np.testing.assert_allclose(body.omega[0], (7, 8, 9), atol=1e-12)
    same = consistent_state(system, elastic_start="undeformed", q={"rod": q[7:]}, v={"bar": v[:6]})
    np.testing.assert_allclose(same.q[7:], q[7:], atol=1e-15)
    np.testing.assert_allclose(same.v[:6], v[:6], atol=1e-12)


def test_joints_determine_the_other_values() -> None:
    state = consistent_state(hinged(None), v={"bar.omega": (0, 0, 2.0)})
    np.testing.assert_allclose(state.v, [0, 1, 0, 0, 0, 2], atol=1e-12)
    with pytest.raises(AssemblyError, match="initial velocities of 'bar' contradict"):
        consistent_state(hinged(None), v={"bar": (0, 0, 0, 0, 0, 2.0)})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"q": {"bar.velocity": (0, 0, 0)}}, "bar.position"),
        ({"q": {"bar.eta": ()}}, "bar.position"),
        ({"v": {"rod.omega": (0, 0, 1)}}, "bar.omega"),
        ({"v": {"bar.omega": (0, 1)}}, "shape"),
        ({"v": {"bar.omega": (0, 0, np.nan)}}, "finite"),
        ({"q": {"bar.rotation": (1, 1, 0, 0)}}, "unit quaternion"),
        ({"q": {"ground": ()}}, "bar.position"),
    ],
)
def test_invalid_names_and_values(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        consistent_state(hinged(None), **options)
