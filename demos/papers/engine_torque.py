"""The engine paper's torque law: how to read it, and what the engine does under it.

Rigid rods, so that many turns take seconds. A figure goes to `results/engine_torque`. Runs on one
rank and under `mpirun -n 2`.
"""

# # The engine under a torque law
#
# The engine paper (*Mathematics* 13 (2025) 2797) drives its crank in Adams by
#
# $$M = M_0\,(1-\omega/\omega_0), \qquad M_0 = -170000,\quad \omega_0 = 100,$$
#
# and reports a torque that settles around 150 N m. Adams calculates in N and mm, so that $M_0$ is
# 170 N m; the sign depends on the direction of the crank's axis in Adams. With $\omega_0$ in rad/s
# the law would brake the crank above 955 rpm, which contradicts the 6000 rpm of the same text. But
# 100 revolutions per second are 6000 rpm. So $\omega_0 = 2\pi\cdot100$ rad/s: a motor that pulls
# below 6000 rpm and brakes above.
#
# The paper gives neither bore nor inertia of the crank with its flywheel. Here the bore is 70 mm
# and the inertia 0.05 kg m², as usual for an engine of one litre.

# +
from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.integrate import trapezoid

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism.mechanisms.gas import FourStrokePressure
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from dolfinx_mbd.tutorials import check, check_close

results = tutorials.results_folder("engine_torque")
stall, speed = 170.0, 2 * np.pi * 100
rod = mbd.mechanisms.rigid_rod(length=0.137, mass=0.153, thickness=0.015)
design = mbd.mechanisms.EngineDesign(crank_inertia=0.05, bore=0.070)
law = mbd.mechanisms.linear_torque(stall, speed)
# -

# ## Without gas
#
# Started 10 % too slow, the engine approaches $\omega_0$. The mean kinetic energy of rods and
# pistons acts as an additional inertia of the crank. With the total inertia $J$ the deviation
# decreases as $\exp(-t/\tau)$, $\tau = J\omega_0/M_0$.

# +
engine = mbd.mechanisms.inline_engine(rod, design, gas=False, torque=law)
run = mbd.simulate(engine, t_end=0.5, dt=1e-4, start={"main": 0.9 * speed})
omega = run.body("crank").omega[:, 2]
tau = float(np.mean(2 * run.energies().kinetic / omega**2)) * speed / stall
ends = np.searchsorted(run.joint("main").rotation, 2 * np.pi * np.arange(0, 40))
means = np.array([omega[a:b].mean() for a, b in pairwise(ends)])
times = np.array([run.time[a:b].mean() for a, b in pairwise(ends)])
slope, _ = np.polyfit(times, np.log(1 - means / speed), 1)
# -

# ## With gas
#
# The gas delivers a mean torque of its own. At constant speed the driver takes up this torque; it
# is between half and twice the 150 N m at which the torque of the paper settles. Under the law the
# engine becomes faster than $\omega_0$, because this gas curve has no friction and no throttle. The
# braking torque of the law then tends to the mean torque of the gas.

# +
driven = mbd.mechanisms.inline_engine(rod, design, speed=speed)
gas = -mbd.simulate(driven, t_end=0.02, dt=2e-5).joint("drive").moment[:-1, 2].mean()
pressure = FourStrokePressure(0.070, 0.040, 0.137)
crank_angle = np.linspace(0, 4 * np.pi, 20001)
volume = -pressure.area * SliderCrank(0.040, 0.137).motion(crank_angle).slider
indicated = 3 * trapezoid(pressure(crank_angle), volume) / (4 * np.pi)  # of three cylinders

fired = mbd.mechanisms.inline_engine(rod, design, torque=law)
fired_run = mbd.simulate(fired, t_end=0.5, dt=1e-4, start={"main": speed})
fired_omega = fired_run.body("crank").omega[:, 2]
balance = speed * (1 + gas / stall)  # where the law takes up the torque of the gas
fired_tau = np.mean(2 * fired_run.energies().kinetic / fired_omega**2) * speed / stall
closed = balance + (speed - balance) * np.exp(-fired_run.time / fired_tau)
rpm = 60 / (2 * np.pi)
rows = {
    "without gas (rpm)": {
        "simulated": rpm * omega,
        "rigid, closed form": rpm * speed * (1 - 0.1 * np.exp(-run.time / tau)),
    },
    "with gas (rpm)": {
        "simulated": rpm * fired_omega,
        "rigid, mean torque of the gas": rpm * closed,
    },
}
tutorials.plot_histories(results / "speed.png", ("time (s)", run.time), rows)
# -

# ## Checks

# +
check_close("time constant without gas", -1 / slope, tau, 0.03, "s")
check_close(
    "speed with gas after 0.5 s", fired_omega[-200:].mean(), closed[-200:].mean(), 0.02, "rad/s"
)
check_close("mean torque of the gas, from its work", gas, indicated, 1e-3, "N m")
check("the same over the paper's 150 N m", gas / 150, 0.5, 2.0)
# -
