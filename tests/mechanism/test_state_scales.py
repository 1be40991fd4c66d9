"""States of any size converge, and each one to its own accuracy."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd


def chain(scale: float, small: float, speed: float) -> mbd.System:
    """Return a body on a spring, and a load with two decoupled states.

    The states are scale·exp(−at) and small·exp(−bt) with a = `speed` and b = 3 `speed`.
    """

    def law(motion: mbd.mechanism.PairMotion) -> tuple[tuple[float, ...], ...]:
        first, second = motion.states
        return (0, 0, 1e-3 * first / scale), (0, 0, 0), (-speed * first, -3.0 * speed * second)

    ground = mbd.Ground({"o": mbd.Frame()})
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, position=(0, 0, 1), frames={"c": mbd.Frame()})
    guide = mbd.prismatic("guide", ground.frame("o"), bob.frame("c"))
    loads = [
        mbd.PairLoad("law", ground.frame("o"), bob.frame("c"), law, states=(scale, small)),
        mbd.SpringDamper("spring", ground.frame("o"), bob.frame("c"), 50.0),
    ]
    return mbd.System([ground, bob], [guide], loads=loads)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
@pytest.mark.parametrize("small", [1e-12, 1e3])
def test_decay(scale: float, small: float) -> None:
    run = mbd.simulate(chain(scale, small, 5.0), t_end=1.0, dt=1e-3)
    first, second = run.element("law").states.T
    assert np.allclose(first, scale * np.exp(-5.0 * run.time), rtol=0, atol=1e-5 * scale)
    assert np.allclose(second, small * np.exp(-15.0 * run.time), rtol=0, atol=1e-4 * small)


def test_a_fast_state_does_not_limit_the_step() -> None:
    """A state that decays within a hundredth of a step follows its equilibrium."""
    run = mbd.simulate(chain(1.0, 1.0, 1e5), t_end=0.5, dt=1e-3)
    assert np.abs(run.element("law").states[-1]).max() < 1e-12
    assert len(run.time) == 501


def test_round_off_of_a_large_state_at_rest() -> None:
    """A controller at its target: the rate is round-off, and the iteration ends."""

    def hold(t: float, s: float, rate: float, x: np.ndarray) -> tuple[float, np.ndarray]:
        return 1e-6 * x[0] - 5.0 * rate, np.array([1e7 * (-0.981e-3 - s)])

    ground = mbd.Ground({"o": mbd.Frame()})
    bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, frames={"c": mbd.Frame()})
    guide = mbd.prismatic("guide", ground.frame("o"), bob.frame("c"))
    # The initial state holds the weight: 1e-6 · 9.81e6 N
    load = mbd.JointLoad("hold", "guide", "displacement", hold, states=[9.81e6])
    system = mbd.System([ground, bob], [guide], loads=[load], gravity=(0, 0, -9.81))
    state = mbd.equilibrium(system)
    assert state.v[-1] == pytest.approx(9.81e6)
    run = mbd.simulate(system, t_end=0.2, dt=1e-3, start=state)
    assert np.allclose(run.joint("guide").displacement[:, 2], -0.981e-3, atol=1e-12)
    assert run.iterations <= 3 * len(run)
