"""A flexible arm with a motor, turned by a PID controller and by state feedback.

You step a mechanism yourself, with named inputs and outputs, and design a controller and an
observer from its linearization. Files go to `results/controlled_arm`. Runs on one rank and under
`mpirun -n 2`.
"""

# # A flexible arm with a motor and a controller
#
# A motor turns a thin arm to a target angle. With a PID controller, which measures only the angle
# of the motor, the tip continues to swing. A state feedback also measures the bending of the arm.

# +
from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, null_space, solve_discrete_are
from scipy.signal import cont2discrete

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, check_close, report

results = tutorials.results_folder("controlled_arm")
# -

# ## The arm
#
# A bar of aluminium, 500 × 2 × 20 mm, turns about the vertical axis and bends horizontally. The
# motor acts on the joint `bearing`.

# +
length, target, dt = 0.5, 0.2, 1e-3  # m, rad, s
mesh = tutorials.tagged_bar((length, 0.002, 0.020), (24, 1, 1), ("hub", "tip"))
reduced = mbd.reduce(
    mesh,
    mbd.forms.ALUMINIUM,
    interfaces={name: mbd.InterfaceSpec(axes=np.eye(3)) for name in ("hub", "tip")},
    num_modes=4,
    name="arm",
).body
arm = mbd.FlexibleBody("arm", reduced, damping_ratio=0.002)
ground = mbd.Ground({"hub": mbd.Frame()})
rotor = mbd.RigidBody("rotor", 0.2, [1e-3, 1e-3, 2e-3], frames={"hub": mbd.Frame()})
joints = [
    mbd.revolute("bearing", ground.frame("hub"), rotor.frame("hub")),
    mbd.fixed("clamp", rotor.frame("hub"), arm.frame("hub")),
]
motor = mbd.JointLoad("motor", "bearing", "rotation", 0.0)
system = mbd.System([ground, rotor, arm], joints, loads=[motor])
# -

# ## Inputs and outputs
#
# The input is the torque of the motor. Outputs are functions of a solution. An encoder measures the
# angle of the motor, and a strain gauge the bending of the arm.


# +
def bending(run: mbd.results.Solution) -> np.ndarray:
    """Return the displacement of the tip from the axis of the hub, m."""
    hub, tip = (reduced.interface(name).motion for name in ("hub", "tip"))
    return run.body("arm").eta @ (tip[1] - hub[1] - length * hub[5])


outputs = {"angle": lambda run: run.joint("bearing").rotation, "bending": bending}
simulator = mbd.Simulator(system, dt=dt, inputs=["motor"], outputs=outputs)
linear = mbd.linearize(system, simulator.state, inputs=["motor"], outputs=outputs)
report(linear.summary())
# -

# ## A PID controller
#
# With this controller a rigid arm would have a bandwidth of about 6 Hz (40 rad/s). That is close to
# the frequency of the flexible arm with a held hub, 6.6 Hz.


# +
class PID:
    """Torque from the angle alone."""

    gains = 40.0**2, 0.1 * 40.0**3, 1.4 * 40.0  # of error, integral and rate: 1/s², 1/s³, 1/s
    inertia = 2e-3 + reduced.total_mass * length**2 / 3  # rotor and rigid arm, kg m²
    integral = last = 0.0

    def __call__(self, y: np.ndarray) -> float:
        error, rate = target - y[0], (y[0] - self.last) / dt
        self.integral, self.last = self.integral + error * dt, y[0]
        return self.inertia * float(np.dot(self.gains, [error, self.integral, -rate]))


# -

# ## State feedback
#
# The rotation and the two lowest modes of the linearization form a small model. The gain minimizes
# weighted squares of angle, bending and torque. A Kalman filter estimates the state.

# +
A, B, C, D = linear.matrices
V = np.kron(np.eye(2), eigh(linear.stiffness, linear.mass)[1][:, :3])
A, B, C = V.T @ A @ V, V.T @ B, C @ V
Ad, Bd, *_ = cont2discrete((A, B, C, D), dt)
price, noise = np.array([[0.3]]), 1e-6 * np.eye(2)
X = solve_discrete_are(Ad, Bd, C.T @ np.diag([1.0, 100.0]) @ C, price)
gain = np.linalg.solve(price + Bd.T @ X @ Bd, Bd.T @ X @ Ad)[0]
P = solve_discrete_are(Ad.T, C.T, 1e-2 * Bd @ Bd.T + 1e-9 * np.eye(6), noise)
correction = np.linalg.solve(C @ P @ C.T + noise, C @ P).T
turned = null_space(A, rcond=1e-9)[:, 0]  # the state at rest at another angle
goal = target * turned / (C[0] @ turned)


class StateFeedback:
    """Torque from the estimated state."""

    x, torque = np.zeros(6), 0.0

    def __call__(self, y: np.ndarray) -> float:
        x = Ad @ self.x + Bd[:, 0] * self.torque
        self.x = x + correction @ (y - C @ x)
        self.torque = float(gain @ (goal - self.x))
        return self.torque


def closed_loop(controller: PID | StateFeedback) -> np.ndarray:
    """Return the angle, bending and torque over 1 s, (steps, 3)."""
    simulator.reset()
    rows = []
    for _ in range(1000):
        y = np.array([*simulator.outputs.values()])
        rows.append([*y, controller(y)])
        simulator.step({"motor": rows[-1][2]})
    return np.array(rows)


loops = {"PID": closed_loop(PID()), "state feedback": closed_loop(StateFeedback())}
labels = enumerate(("angle (rad)", "bending (m)", "torque (N m)"))
histories = {label: {name: loop[:, k] for name, loop in loops.items()} for k, label in labels}
tutorials.plot_histories(results / "loops.png", ("time (s)", dt * np.arange(1000)), histories)
tutorials.save_report(results / "arm.txt")
# -

# ## Checks

# +
for name, loop in loops.items():
    check_close(f"{name}: final angle", loop[-1, 0], target, 1e-2, "rad")
bent = [np.abs(loop[:, 1]).max() for loop in loops.values()]
check("largest bending, PID over state feedback", bent[0] / bent[1], 3, 5)
# -
