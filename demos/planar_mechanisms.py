"""Three planar mechanisms of a paper: rigid bodies with joints, and sticks of truss elements.

A rotating rod, a robotic arm and a slider-crank beside the numbers that Hać and Łazęcki print, and
which of these do not belong to their data. Tables and plots go to `results/planar_mechanisms`.
Runs serial and under `mpirun -n 2`.
"""

# # Planar mechanisms
#
# M. Hać and J. Łazęcki, *Rigid-body motion of planar mechanisms by finite element method with
# comparison to the multibody approach*, build rigid mechanisms from truss elements (the *stick
# model*), integrate them with Newmark's method, and hold them against Adams. Here are both: rigid
# bodies with joints, and the stick model. A third column follows from neither: with one degree of
# freedom and the inertia $J(\varphi)$ that it sees,
#
# $$J\,\ddot\varphi + \tfrac12 J'\,\dot\varphi^2 = T(\varphi).$$

# +
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.multibody import JointLoad, revolute
from dolfinx_mbd.papers.stick_model import Rod, StickModel, StickMotion, newmark

root = MPI.COMM_WORLD.rank == 0
results = Path("results/planar_mechanisms")
results.mkdir(parents=True, exist_ok=True)
lines: list[str] = []


def report(text: str = "") -> None:
    """Print once, not once a rank, and keep it for the file."""
    lines.extend(text.split("\n"))
    if root:
        print(text, flush=True)


Torque = Callable[[float, float, float], float]
density, young, dt = 7800.0, 2.1e11, 1e-4


def one_freedom(
    inertia: Callable[[float], float], torque: Torque, times: np.ndarray, steps: int = 200
) -> np.ndarray:
    """Angles at equidistant times from rest, by Runge and Kutta's method of order four."""

    def rate(y: np.ndarray) -> np.ndarray:
        slope = (inertia(y[0] + 1e-5) - inertia(y[0] - 1e-5)) / 2e-5
        return np.array([y[1], (torque(0, y[0], y[1]) - 0.5 * slope * y[1] ** 2) / inertia(y[0])])

    h, y, angles = times[0] / steps, np.zeros(2), []
    for _ in times:
        for _ in range(steps):
            k1 = rate(y)
            k2 = rate(y + 0.5 * h * k1)
            k3 = rate(y + 0.5 * h * k2)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
        angles.append(y[0])
    return np.array(angles)


# -

# ## The stick model
#
# A rod of mass $m = \rho A L$ has two nodes, and no rotations. Its points move along it by the mean
# of its nodes' displacements and across it linearly. That gives $M_e$ in the axes along and across;
# and in global axes, one end held at the angle $\alpha$, $a = \cos\alpha$, $b = \sin\alpha$ and a
# payload of $m' m/12$ at the other, $K$ and $M$:
#
# $$M_e = \frac{m}{12}\begin{bmatrix}3&0&3&0\\0&4&0&2\\3&0&3&0\\0&2&0&4\end{bmatrix},\quad
# K = \frac{EA}{L}\begin{bmatrix}a^2&ab\\ab&b^2\end{bmatrix},\quad M = \frac{m}{12}\begin{bmatrix}
# (3+m')a^2+(4+m')b^2&-ab\\-ab&(3+m')b^2+(4+m')a^2\end{bmatrix}.$$
#
# The paper has three misprints here. The last row of its eq. 2 is 0 4 0 2, with which $M_e$ is not
# symmetric; its eq. 8 has $K_{22} = a^2$, which at $\alpha = 0$ holds the rod across its length;
# the factor of its eq. 9 is $EA/L$, which is no mass. The tests derive all three.
#
# ## A rod on a hinge
#
# The first two examples are one rod, without and with a payload at its tip. As a stick model it has
# two nodes, of which the first is held.


# +
def hinged_body(
    line_density: float, payload: float, torque: Torque, times: np.ndarray
) -> np.ndarray:
    """Angles of a rigid body of a metre on a revolute joint."""
    mass = line_density + payload
    centre = (0.5 * line_density + payload) / mass
    about_centre = line_density / 3 + payload - mass * centre**2
    ground = mbd.Ground({"base": mbd.Frame()})
    moments = [1e-6, about_centre, about_centre]  # the first, about its own axis, plays no part
    arm = mbd.RigidBody("arm", mass, moments, (centre, 0, 0), frames={"base": mbd.Frame()})
    joint = revolute("base", ground.frame("base"), arm.frame("base"))
    motor = JointLoad("motor", "base", "rotation", torque)
    every = round(times[0] / dt)
    system = mbd.System([ground, arm], [joint], loads=[motor])
    run = mbd.simulate(system, t_end=times[-1], dt=dt, save_every=every)
    return run.joint("base").rotation[1:]


def hinged_stick(
    line_density: float, area: float, payload: float, torque: Torque, times: np.ndarray
) -> np.ndarray:
    """Angles of the stick model."""
    rod = Rod(0, 1, line_density, young * area, torque)
    model = StickModel([[0, 0], [1, 0]], [rod], held=[(0, 0), (0, 1)], masses={1: payload})
    every = round(times[0] / dt)
    return newmark(model, t_end=times[-1], dt=dt).angle[every::every, 0]


def table(title: str, times: np.ndarray, columns: dict[str, np.ndarray]) -> None:
    """Print columns with their names."""
    report(f"\n{title}\n\ntime (s)" + "".join(f"{name:>15}" for name in columns))
    for k, t in enumerate(times):
        report(f"{t:8.1f}" + "".join(f"{values[k]:15.7f}" for values in columns.values()))


# -

# ### Table 1: the rotating rod
#
# A constant torque $T$ of 3 N m on a rod of $l$ = 1 m, $\rho$ = 7800 kg/m³, $A$ = 0.9295e-4 m².
# From rest
#
# $$\varphi = \frac{T}{2J}\,t^2,\qquad J = \tfrac13\rho A l^3.$$

# +
tenths = np.array([0.1, 0.2, 0.3, 0.4])
area, constant = 0.9295e-4, 3.0
paper_theory = np.array([0.057252, 0.229008, 0.515267, 0.916031])
paper_stick = np.array([0.0573092, 0.2291253, 0.5154644, 0.9163897])
paper_adams = np.array([0.057252, 0.229007, 0.515262, 0.916014])
paper_ratio = np.array([1.000999, 1.000512, 1.000383, 1.000087])


def steady(t: float, angle: float, rate: float) -> float:
    return constant


def closed_form(line_density: float) -> np.ndarray:
    return 1.5 * constant / line_density * tenths**2


as_printed = {
    "closed form": closed_form(density * area),
    "rigid bodies": hinged_body(density * area, 0.0, steady, tenths),
    "sticks": hinged_stick(density * area, area, 0.0, steady, tenths),
}
paper = {"paper: theory": paper_theory, "sticks ": paper_stick, "Adams": paper_adams}
table("Table 1, rotating rod, the data as printed: angle (rad)", tenths, paper | as_printed)
# -

# The printed numbers are 7.8 % below. What inertia do they have? Each printed angle is known to
# half a unit of its sixth decimal, which leaves an interval; the four must meet.

# +
low = constant * tenths**2 / 2 / (paper_theory + 5e-7)
high = constant * tenths**2 / 2 / (paper_theory - 5e-7)
inertia_low, inertia_high = low.max(), high.min()
round_density = 7860.0 * 1e-4
needed = 1.5 * (inertia_low + inertia_high)  # ρA = 3 J / l³
report(
    f"\nThe printed angles need J between {inertia_low:.7f} and {inertia_high:.7f} kg m², the data "
    f"give {density * area / 3:.7f}.\nIf one number only is another than printed, it is"
    f"\n  the density      {needed / area:10.2f} kg/m³  (printed 7800)"
    f"\n  or the area      {needed / density:10.4e} m²     (printed 0.9295e-4)"
    f"\n  or the torque    {constant * density * area / needed:10.5f} N m    (printed 3)"
    f"\nnone of them a round one. The angles know T/(ρA) alone; with the torque as printed,"
    f"\na steel of 7860 kg/m³ on 1 cm² has it: ρA = {round_density:.3f} kg/m, "
    f"J = {round_density / 3:.3f} kg m²."
)
as_meant = {
    "closed form": closed_form(round_density),
    "rigid bodies": hinged_body(round_density, 0.0, steady, tenths),
    "sticks": hinged_stick(round_density, 1e-4, 0.0, steady, tenths),
}
table("Table 1, rotating rod, 7860 kg/m³ and 1e-4 m²: angle (rad)", tenths, paper | as_meant)
# -

# The last column of the table is headed *stick model/Adams*. From the printed angles:


# +
def ratios(title: str, stick: np.ndarray, others: dict[str, np.ndarray], ratio: np.ndarray) -> list:
    """Which printed ratios are of which printed columns, to what their rounding allows."""
    report(f"\n{title}: the paper's ratios from its own columns")
    fits = []
    for k, printed in enumerate(ratio):
        found = {name: stick[k] / other[k] for name, other in others.items()}
        allowed = {name: 5e-7 * (1 + 2 / other[k]) for name, other in others.items()}
        fits.append([name for name in found if abs(found[name] - printed) <= allowed[name]])
        values = "".join(f"   to {name} {value:.6f}" for name, value in found.items())
        verdict = " and ".join(fits[-1]) or "none of them"
        report(f"  printed {printed:.6f}{values}   fits {verdict}")
    return fits


columns = {"theory": paper_theory, "Adams": paper_adams}
ratio_fits = ratios("Table 1", paper_stick, columns, paper_ratio)
# -

# ### Table 2: the robotic arm
#
# A payload of 0.3625 kg at the tip, $T = 1 + 0.5\sin\varphi$ N m.

# +
fifths = np.array([0.2, 0.4, 0.6, 0.8, 1.0])
payload = 0.3625
arm_stick = np.array([0.033203, 0.133898, 0.305413, 0.553287, 0.884964])
arm_adams = np.array([0.033195, 0.13388, 0.305375, 0.553190, 0.884672])
arm_ratio = np.array([1.000241, 1.000134, 1.000124, 1.000175, 1.000330])


def motor(t: float, angle: float, rate: float) -> float:
    return 1.0 + 0.5 * np.sin(angle)


def arm_theory(line_density: float) -> np.ndarray:
    return one_freedom(lambda angle: line_density / 3 + payload, motor, fifths)


arm = {
    "one freedom": arm_theory(density * area),
    "rigid bodies": hinged_body(density * area, payload, motor, fifths),
    "sticks": hinged_stick(density * area, area, payload, motor, fifths),
}
printed = {"paper: sticks": arm_stick, "Adams": arm_adams}
table("Table 2, robotic arm: angle (rad)", fifths, printed | arm)
ratios("Table 2", arm_stick, {"Adams": arm_adams}, arm_ratio)
other_rod = arm_theory(round_density)
report(
    "\nThe paper takes the rod of Table 1 again. Here it is the rod as printed: one of "
    f"{round_density} kg/m\nwould turn by {other_rod[-1]:.6f} rad in a second, "
    f"{100 * (other_rod[-1] / arm_adams[-1] - 1):.2f} % off the paper's Adams run."
)
# -

# ## Table 3: the slider-crank
#
# Two uniform bars of 0.1 and 0.4 m, a slider of 0.2 kg, $T = 0.1 + 0.05\sin\varphi$ N m (the law of
# the paper's eq. 5; its text says 3), from rest at the dead centre. The stick model has three nodes
# and three coordinates. For the equation of one freedom, $\tfrac12 J\dot\varphi^2$ is the kinetic
# energy of all three parts.

# +
crank_length, rod_length, crank_area, rod_area, slider = 0.1, 0.4, 2.564e-4, 1.282e-4, 0.2
crank_mass, rod_mass = density * crank_area * crank_length, density * rod_area * rod_length
crank_stick = np.array([0.245477, 0.802038, 1.462893, 2.448063, 4.192739])
crank_adams = np.array([0.245329, 0.801768, 1.463285, 2.451681, 4.210979])
crank_ratio = np.array([1.000603, 1.000336, 0.999732, 0.998524, 0.995668])
crank_times = np.array([0.1, 0.2, 0.3, 0.4, 0.5])


def crank_torque(t: float, angle: float, rate: float) -> float:
    return 0.1 + 0.05 * np.sin(angle)


def seen_inertia(angle: float) -> float:
    """J(φ) of the slider-crank, kg m²."""
    s, c = crank_length * np.sin(angle), crank_length * np.cos(angle)
    along = np.sqrt(rod_length**2 - s**2)
    turn = c / along  # of the rod, per radian
    slide = -s - s * turn
    middle = np.array([-s - 0.5 * s * turn, 0.5 * c])
    rod = rod_mass * (middle @ middle + rod_length**2 / 12 * turn**2)
    return crank_mass * crank_length**2 / 3 + rod + slider * slide**2


def slider_crank_sticks(step: float, modulus: float = young) -> StickMotion:
    """Motion of the stick model."""
    crank = Rod(0, 1, density * crank_area, modulus * crank_area, crank_torque)
    rod = Rod(1, 2, density * rod_area, modulus * rod_area)
    nodes = np.array([[0, 0], [crank_length, 0], [crank_length + rod_length, 0]])
    model = StickModel(nodes, [crank, rod], held=[(0, 0), (0, 1), (2, 1)], masses={2: slider})
    return newmark(model, t_end=0.5, dt=step)


bodies = mbd.mechanisms.slider_crank(
    mbd.mechanisms.rigid_rod(rod_length, rod_mass),
    crank_radius=crank_length,
    crank_mass=crank_mass,
    crank_inertia=crank_mass * crank_length**2 / 3,
    piston_mass=slider,
    torque=crank_torque,
)
run = mbd.simulate(bodies, t_end=0.5, dt=dt, save_every=10).projected()
stick_steps = (1e-2, 1e-3, dt)
sticks = {step: slider_crank_sticks(step) for step in stick_steps}


def at_tenths(motion: StickMotion, step: float) -> np.ndarray:
    """Crank angles at the times of the table."""
    every = round(0.1 / step)
    return motion.angle[every::every, 0]


crank = {
    "one freedom": one_freedom(seen_inertia, crank_torque, crank_times),
    "rigid bodies": run.joint("main").rotation[100::100],
    "sticks": at_tenths(sticks[dt], dt),
}
printed = {"paper: sticks": crank_stick, "Adams": crank_adams}
table("Table 3, slider-crank: crank angle (rad)", crank_times, printed | crank)
ratios("Table 3", crank_stick, {"Adams": crank_adams}, crank_ratio)
# -

# The paper's stick model is off by almost half a percent, and the paper does not say its step.
# The element is not to blame: with it, the accelerations of the nodes give the inertia forces of a
# rigid rod exactly (`dolfinx_mbd/multibody/stick_model.py` derives it). What is left is the
# integration in time, and with Newton's method in every step its error goes as $\Delta t^2$. At
# $10^{-4}$ s it is below what the rods stretch, as a hundredfold modulus shows: *practically no
# influence*, the paper says; here it is $10^{-6}$.

# +
exact = crank["one freedom"]
errors = {f"dt = {step:g} s": at_tenths(sticks[step], step) / exact - 1 for step in stick_steps}
stiff = slider_crank_sticks(dt, 100 * young)
errors["and 100 E"] = at_tenths(stiff, dt) / exact - 1
errors["paper"] = crank_stick / exact - 1
report("\nRelative error of the crank angle of the stick model")
report("\ntime (s)" + "".join(f"{name:>15}" for name in errors))
for k, t in enumerate(crank_times):
    report(f"{t:8.1f}" + "".join(f"{values[k]:15.1e}" for values in errors.values()))
# -

# ### Figures 3 and 4
#
# The acceleration in x of the rod's midpoint, from the stick model and from the multibody model.

# +
fine = sticks[dt]
stick_acceleration = fine.acceleration[::10, 1:, 0].mean(axis=1)
ends = [run.sensor("rod", end, "acceleration") for end in ("big_end", "small_end")]
body_acceleration = 0.5 * (ends[0] + ends[1])[:, 0]
difference = float(np.abs(stick_acceleration - body_acceleration).max())
least, most = body_acceleration.min(), body_acceleration.max()
report(
    f"\nAcceleration of the rod's midpoint in x: {least:.4f} to {most:.4f} m/s²,"
    f"\nthe two models differ by at most {difference:.1e} m/s²."
)


def plot(number: int, time: np.ndarray, values: np.ndarray, title: str) -> None:
    """One figure of the paper."""
    canvas, axes = plt.subplots(figsize=(7, 4), constrained_layout=True)
    axes.plot(time, values)
    axes.set(
        xlabel="time (s)", ylabel="acceleration in x (m/s²)", title=f"Figure {number}: {title}"
    )
    axes.set(xlim=(0, 0.5), ylim=(1.1 * least, 1.1 * most))
    axes.grid(alpha=0.3)
    canvas.savefig(results / f"figure_{number}.png", dpi=110)
    plt.close(canvas)


if root:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plot(3, fine.time, fine.acceleration[:, 1:, 0].mean(axis=1), "midpoint of the rod, sticks")
    plot(4, run.time, body_acceleration, "midpoint of the rod, rigid bodies")
    (results / "tables.txt").write_text("\n".join(lines[1:]) + "\n")
report(f"\n{results}/tables.txt, figure_3.png and figure_4.png are written")
# -

# ## Does it hold?
#
# Against solutions of the one equation that were computed before and elsewhere (the arm's to six
# decimals), and the paper's Adams runs.

# +
failed = False


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<56} {value:10.3g} in [{low:g}, {high:g}]")


def off(values: np.ndarray, reference: np.ndarray, decimals: float = 0.0) -> float:
    """Greatest relative difference beyond half a unit of the last decimal of the reference."""
    return float((np.maximum(np.abs(values - reference) - decimals, 0.0) / reference).max())


own_arm = np.array([0.033195, 0.133880, 0.305375, 0.553192, 0.884680])
own_crank = np.array([0.245340903, 0.801813625, 1.463351621, 2.451874435, 4.211921311])
report()
for name, values in arm.items():
    check(f"arm, {name}, against the independent solution", off(values, own_arm, 5e-7), 0, 1e-5)
    check(f"arm, {name}, against Adams", off(values, arm_adams), 0, 3e-4)
for name, values in crank.items():
    check(
        f"slider-crank, {name}, against the independent solution", off(values, own_crank), 0, 1e-5
    )
    check(f"slider-crank, {name}, against Adams", off(values, crank_adams), 0, 3e-4)
check("one freedom, beyond the nine decimals", off(exact, own_crank, 5e-10), 0, 1e-9)
for data, line_density, models in (
    ("as printed", density * area, as_printed),
    ("7860 kg/m³, 1 cm²", round_density, as_meant),
):
    for name, values in list(models.items())[1:]:
        check(f"rod {data}, {name}", off(values, closed_form(line_density)), 0, 1e-5)
check(
    "rod: the paper's theory with 0.786 kg/m (rad)",
    np.abs(as_meant["closed form"] - paper_theory).max(),
    0,
    5e-7,
)
check(
    "rod: its theory over that of the data, at least",
    (paper_theory / as_printed["closed form"]).min(),
    0.922,
    0.923,
)
check("rod: interval of inertias is one (kg m²)", inertia_high - inertia_low, 0, 1e-6)
check("rod: printed ratios of neither theory nor Adams", sum(not fit for fit in ratio_fits), 1, 1)
names = list(errors)
for first, then in ((names[0], names[1]), (names[1], "and 100 E")):
    order = float(np.log10(errors[first][-1] / errors[then][-1]))
    check(f"sticks: order from {first} to a tenth", order, 1.9, 2.1)
stretch = np.abs(errors[names[2]] - errors["and 100 E"]).max()
check("sticks: what the stretch of the rods changes", float(stretch), 1e-8, 1e-5)
check("sticks and bodies: acceleration of the midpoint", difference / most, 0, 1e-4)
sys.exit(failed)
# -
