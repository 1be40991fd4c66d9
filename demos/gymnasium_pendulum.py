"""An environment of gymnasium around a mechanism, for reinforcement learning.

You wrap a simulator, which has `reset` and `step`, in the interface that libraries of learning
algorithms expect, and test it. Needs `pip install gymnasium`. Runs on one rank and under
`mpirun -n 2`.
"""

# # A pendulum to learn from
#
# A learning agent is to swing up a pendulum with a motor that is too weak to lift it directly. It
# observes the angle and the speed, and chooses a torque every 50 ms, for ten steps of the
# simulator.

# +
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

import dolfinx_mbd as mbd
from dolfinx_mbd.tutorials import check, report


def simulator() -> mbd.Simulator:
    """Return a hanging pendulum of 1 m and 1 kg with a motor."""
    ground = mbd.Ground({"pin": mbd.Frame()})
    bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, (0, -1, 0), frames={"pin": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
    system = mbd.System([ground, bob], [pin], loads=[motor], gravity=(0, -9.81, 0))
    outputs = {
        "sine": lambda run: np.sin(run.joint("pin").rotation),
        "cosine": lambda run: -np.cos(run.joint("pin").rotation),
        "rate": lambda run: run.body("bob").omega[:, 2],
    }
    return mbd.Simulator(system, dt=5e-3, inputs=["motor"], outputs=outputs)


# -

# ## The environment


# +
class Pendulum(gymnasium.Env[np.ndarray, np.ndarray]):
    """A pendulum whose reward is the height of its mass, m."""

    largest = np.array([1.0, 1.0, 50.0])
    observation_space = gymnasium.spaces.Box(-largest, largest, dtype=np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def __init__(self) -> None:
        self.simulator = simulator()

    def observation(self) -> np.ndarray:
        """Return the sine of the rotation, the height of the mass, m, and the speed, rad/s."""
        return np.array([*self.simulator.outputs.values()])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start with a random speed."""
        super().reset(seed=seed)
        self.simulator.reset(start={"pin": float(self.np_random.uniform(-1.0, 1.0))})
        return self.observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply a torque, at most 3 N m, for 50 ms; an episode ends after 10 s."""
        for _ in range(10):
            state = self.simulator.step({"motor": 3.0 * float(np.clip(action[0], -1.0, 1.0))})
        y = self.observation()
        return y, float(y[1]), False, bool(state.time > 10.0 - 1e-9), {}


environment = Pendulum()
check_env(environment)
# -

# ## An episode
#
# This script does not learn: a fixed policy pushes in the direction of the motion, which pumps
# energy into the pendulum until it goes over the top.


# +
def episode(seed: int) -> np.ndarray:
    """Return the observations of an episode, one in each row, (n, 3)."""
    y, _ = environment.reset(seed=seed)
    rows, done = [y], False
    while not done:
        y, _, _, done, _ = environment.step(np.array([np.sign(y[2])]))
        rows.append(y)
    return np.array(rows)


rows = episode(seed=3)
report(f"the pendulum is upright first after {0.05 * np.argmax(rows[:, 1] > 0.9):.2f} s")
# -

# ## Checks

# +
check("largest height", rows[:, 1].max(), 0.9, 1.0, "m")
check("difference of a repeated episode", np.abs(episode(seed=3) - rows).max(), 0, 0)
# -
