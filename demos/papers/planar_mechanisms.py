"""Three planar mechanisms of a paper: rigid bodies with joints, and sticks of truss elements.

A rotating rod, a robotic arm and a slider-crank beside the numbers that Hać and Łazęcki print, and
which of these do not belong to their data. Tables and figures go to `results/planar_mechanisms`.
Runs on one rank and under `mpirun -n 2`.
"""

# # Planar mechanisms
#
# M. Hać and J. Łazęcki, *Rigid-body motion of planar mechanisms by finite element method with
# comparison to the multibody approach*, build rigid mechanisms from truss elements (the *stick
# model*), integrate them with Newmark's method, and compare them with Adams. Here are both: rigid
# bodies with joints, and the stick model. A third, independent model is the equation of the single
# degree of freedom $\varphi$ with the inertia $J(\varphi)$ of the mechanism:
#
# $$J\,\ddot\varphi + \tfrac12 J'\,\dot\varphi^2 = T(\varphi).$$

# +
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism import JointLoad, revolute
from dolfinx_mbd.tutorials import check, report

from models.stick_model import Rod, StickModel, StickMotion, newmark

results = tutorials.results_folder("planar_mechanisms")
Torque = Callable[[float, float, float], float]
density, young, dt = 7800.0, 2.1e11, 1e-4


def one_freedom(inertia: Callable[[float], float], torque: Torque, times: np.ndarray) -> np.ndarray:
    """Return the angles at the times `times`, from rest, by an explicit method of order eight."""

    def rate(t: float, y: np.ndarray) -> tuple[float, float]:
        slope = (inertia(y[0] + 1e-5) - inertia(y[0] - 1e-5)) / 2e-5
        return y[1], (torque(t, y[0], y[1]) - 0.5 * slope * y[1] ** 2) / inertia(y[0])

    span = (0.0, times[-1])
    return solve_ivp(rate, span, [0.0, 0.0], "DOP853", times, rtol=1e-12, atol=1e-14).y[0]


def table(title: str, times: np.ndarray, columns: dict[str, np.ndarray], digits: str) -> None:
    """Report columns with their names."""
    report(f"\n{title}\n\ntime (s)" + "".join(f"{name:>15}" for name in columns))
    for k, t in enumerate(times):
        report(f"{t:8.1f}" + "".join(f"{values[k]:15{digits}}" for values in columns.values()))


def ratios(stick: np.ndarray, others: dict[str, np.ndarray], printed: np.ndarray) -> int:
    """Return how many printed ratios fit none of the columns within the rounding of the numbers.

    The ratios and the angles have errors of up to 5e-7.
    """
    misfits = 0
    for k, ratio in enumerate(printed):
        values = {name: stick[k] / other[k] for name, other in others.items()}
        fits = [
            name
            for name, value in values.items()
            if abs(value - ratio) <= 5e-7 * (1 + 2 / others[name][k])
        ]
        misfits += not fits
        report(f"  printed ratio {ratio:.6f} fits {' and '.join(fits) or f'none of {values}'}")
    return misfits


# -

# ## The stick model
#
# A rod of mass $m = \rho AL$ has two nodes and no rotations. Along the rod, all points move by the
# mean displacement of the nodes; across the rod, the displacement is linear. This gives the matrix
# $M_e$ in the axes along and across the rod, and the matrices $K$ and $M$ in global axes, with one
# end held at the angle $\alpha$, $a=\cos\alpha$, $b=\sin\alpha$ and a payload of $m'm/12$ at the
# other end:
#
# $$M_e = \frac{m}{12}\begin{bmatrix}3&0&3&0\\0&4&0&2\\3&0&3&0\\0&2&0&4\end{bmatrix},\quad
# K = \frac{EA}{L}\begin{bmatrix}a^2&ab\\ab&b^2\end{bmatrix},\quad M = \frac{m}{12}\begin{bmatrix}
# (3+m')a^2+(4+m')b^2&-ab\\-ab&(3+m')b^2+(4+m')a^2\end{bmatrix}.$$
#
# The paper has three misprints here: the last row of its eq. 2 is 0 4 0 2, its eq. 8 has
# $K_{22} = a^2$, and the factor of its eq. 9 is $EA/L$, which is not a mass. Tests derive the
# correct terms.
#
# ## A rod on a hinge
#
# The first two examples are one rod of a metre, without and with a payload at its tip.


# +
def hinged(
    line_density: float, area: float, payload: float, torque: Torque, times: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the angles of a rigid body on a revolute joint, and of the stick model."""
    stride = round(times[0] / dt)
    mass = line_density + payload
    centre = (0.5 * line_density + payload) / mass
    about_centre = line_density / 3 + payload - mass * centre**2
    ground = mbd.Ground({"base": mbd.Frame()})
    moments = [1e-6, about_centre, about_centre]  # the first, about its own axis, has no effect
    arm = mbd.RigidBody("arm", mass, moments, (centre, 0, 0), frames={"base": mbd.Frame()})
    joint = revolute("base", ground.frame("base"), arm.frame("base"))
    motor = JointLoad("motor", "base", "rotation", torque)
    system = mbd.System([ground, arm], [joint], loads=[motor])
    run = mbd.simulate(system, t_end=times[-1], dt=dt, stride=stride)
    rod = Rod(0, 1, line_density, young * area, torque)
    model = StickModel([[0, 0], [1, 0]], [rod], held=[(0, 0), (0, 1)], masses={1: payload})
    sticks = newmark(model, t_end=times[-1], dt=dt).angle[stride::stride, 0]
    return {"rigid bodies": run.joint("base").rotation[1:], "sticks": sticks}


# -

# ### Table 1: the rotating rod
#
# A constant torque $T$ of 3 N m on a rod with $\rho$ = 7800 kg/m³, $A$ = 0.9295e-4 m². From rest,
# $\varphi = Tt^2/2J$ with $J = \rho Al^3/3$.

# +
tenths, area, constant = np.array([0.1, 0.2, 0.3, 0.4]), 0.9295e-4, 3.0
paper_theory = np.array([0.057252, 0.229008, 0.515267, 0.916031])
paper_stick = np.array([0.0573092, 0.2291253, 0.5154644, 0.9163897])
paper_adams = np.array([0.057252, 0.229007, 0.515262, 0.916014])
paper_ratio = np.array([1.000999, 1.000512, 1.000383, 1.000087])
paper = {"paper: theory": paper_theory, "sticks ": paper_stick, "Adams": paper_adams}


def rod_of(line_density: float, area: float) -> dict[str, np.ndarray]:
    """Return the angles by the closed form, by rigid bodies and by sticks."""
    closed = {"closed form": 1.5 * constant / line_density * tenths**2}
    return closed | hinged(line_density, area, 0.0, lambda t, angle, rate: constant, tenths)


as_printed = rod_of(density * area, area)
table("Table 1, rotating rod, data as printed: angle (rad)", tenths, paper | as_printed, ".7f")
# -

# The printed numbers are 7.8 % lower. Which inertia do they have? Each printed angle is known to
# half a unit of its sixth decimal, which leaves an interval of $J$; the four intervals must
# overlap. No round density, area or torque alone explains it, but a steel of 7860 kg/m³ on 1 cm²
# does.

# +
low = (constant * tenths**2 / 2 / (paper_theory + 5e-7)).max()
high = (constant * tenths**2 / 2 / (paper_theory - 5e-7)).min()
needed = 1.5 * (low + high)  # ρA = 3 J / l³
round_density = 7860.0 * 1e-4
report(
    f"\nThe printed angles need J between {low:.7f} and {high:.7f} kg m², the data give "
    f"{density * area / 3:.7f}.\nThat is a density of {needed / area:.2f} kg/m³, an area of "
    f"{needed / density:.4e} m² or a torque of {constant * density * area / needed:.5f} N m"
)
as_meant = rod_of(round_density, 1e-4)
table("Table 1, 7860 kg/m³ and 1e-4 m²: angle (rad)", tenths, paper | as_meant, ".7f")
misfits = ratios(paper_stick, {"theory": paper_theory, "Adams": paper_adams}, paper_ratio)
# -

# ### Table 2: the robotic arm
#
# A payload of 0.3625 kg at the tip, $T = 1+0.5\sin\varphi$ N m, and the printed rod: a rod of 7860
# kg/m³ and 1 cm² does not explain the printed angles.

# +
fifths, payload = np.array([0.2, 0.4, 0.6, 0.8, 1.0]), 0.3625
arm_stick = np.array([0.033203, 0.133898, 0.305413, 0.553287, 0.884964])
arm_adams = np.array([0.033195, 0.13388, 0.305375, 0.553190, 0.884672])
arm_ratio = np.array([1.000241, 1.000134, 1.000124, 1.000175, 1.000330])


def motor(t: float, angle: float, rate: float) -> float:
    """Return the torque of the arm's motor, N m."""
    return 1.0 + 0.5 * np.sin(angle)


arm = {"one freedom": one_freedom(lambda angle: density * area / 3 + payload, motor, fifths)}
arm |= hinged(density * area, area, payload, motor, fifths)
paper = {"paper: sticks": arm_stick, "Adams": arm_adams}
table("Table 2, robotic arm: angle (rad)", fifths, paper | arm, ".7f")
arm_misfits = ratios(arm_stick, {"Adams": arm_adams}, arm_ratio)
other_rod = one_freedom(lambda angle: round_density / 3 + payload, motor, fifths)
# -

# ### Table 3: the slider-crank
#
# Two uniform bars of 0.1 and 0.4 m, a slider of 0.2 kg, $T = 0.1+0.05\sin\varphi$ N m (eq. 5 of the
# paper; its text says 3), from rest at the dead centre. In the equation of one degree of freedom,
# $\tfrac12J\dot\varphi^2$ is the kinetic energy of all three parts.

# +
crank_length, rod_length, crank_area, rod_area, slider = 0.1, 0.4, 2.564e-4, 1.282e-4, 0.2
crank_mass, rod_mass = density * crank_area * crank_length, density * rod_area * rod_length
crank_stick = np.array([0.245477, 0.802038, 1.462893, 2.448063, 4.192739])
crank_adams = np.array([0.245329, 0.801768, 1.463285, 2.451681, 4.210979])
crank_ratio = np.array([1.000603, 1.000336, 0.999732, 0.998524, 0.995668])
crank_times, steps = np.array([0.1, 0.2, 0.3, 0.4, 0.5]), (1e-2, 1e-3, dt)


def crank_torque(t: float, angle: float, rate: float) -> float:
    """Return the torque on the crank, N m."""
    return 0.1 + 0.05 * np.sin(angle)


def seen_inertia(angle: float) -> float:
    """Return J(φ) of the slider-crank, kg m²."""
    s, c = crank_length * np.sin(angle), crank_length * np.cos(angle)
    turn = c / np.sqrt(rod_length**2 - s**2)  # of the rod, per radian
    middle = np.array([-s - 0.5 * s * turn, 0.5 * c])
    rod = rod_mass * (middle @ middle + rod_length**2 / 12 * turn**2)
    return crank_mass * crank_length**2 / 3 + rod + slider * (s + s * turn) ** 2


def stick_motion(step: float, modulus: float = young) -> tuple[StickMotion, np.ndarray]:
    """Return the motion of the stick model, and its crank angles at the times of the table."""
    crank = Rod(0, 1, density * crank_area, modulus * crank_area, crank_torque)
    rod = Rod(1, 2, density * rod_area, modulus * rod_area)
    places = np.array([[0, 0], [crank_length, 0], [crank_length + rod_length, 0]])
    model = StickModel(places, [crank, rod], held=[(0, 0), (0, 1), (2, 1)], masses={2: slider})
    motion, stride = newmark(model, t_end=0.5, dt=step), round(0.1 / step)
    return motion, motion.angle[stride::stride, 0]


bodies = mbd.mechanisms.slider_crank(
    mbd.mechanisms.rigid_rod(rod_length, rod_mass),
    crank_radius=crank_length,
    crank_mass=crank_mass,
    crank_inertia=crank_mass * crank_length**2 / 3,
    piston_mass=slider,
    torque=crank_torque,
)
run = mbd.simulate(bodies, t_end=0.5, dt=dt, stride=10).projected()
sticks = {step: stick_motion(step) for step in steps}
crank = {
    "one freedom": one_freedom(seen_inertia, crank_torque, crank_times),
    "rigid bodies": run.joint("main").rotation[100::100],
    "sticks": sticks[dt][1],
}
paper = {"paper: sticks": crank_stick, "Adams": crank_adams}
table("Table 3, slider-crank: crank angle (rad)", crank_times, paper | crank, ".7f")
crank_misfits = ratios(crank_stick, {"Adams": crank_adams}, crank_ratio)
# -

# The paper's stick model has an error of almost half a percent; its step is not given. The element
# is not the cause: its mass matrix and the accelerations of its nodes give the inertia forces of a
# rigid rod exactly. The only other cause is the integration in time, whose error is proportional to
# $\Delta t^2$. With a step of $10^{-4}$ s this error is smaller than the effect of the stretch of
# the rods, as a run with a hundredfold modulus shows. According to the paper, the stretch has
# *practically no influence*; here its effect is $10^{-6}$.

# +
exact = crank["one freedom"]
errors = {f"dt = {step:g} s": sticks[step][1] / exact - 1 for step in steps}
errors["and 100 E"] = stick_motion(dt, 100 * young)[1] / exact - 1
errors["paper"] = crank_stick / exact - 1
table("Relative error of the crank angle of the stick model", crank_times, errors, ".1e")
fine = sticks[dt][0]
stick_acceleration = fine.acceleration[::10, 1:, 0].mean(axis=1)
ends = [run.sensor("rod", end, "acceleration") for end in ("big_end", "small_end")]
body_acceleration = 0.5 * (ends[0] + ends[1])[:, 0]
label = "acceleration in x of the rod's midpoint (m/s²)"
for number, t, values in (
    (3, fine.time, fine.acceleration[:, 1:, 0].mean(axis=1)),
    (4, run.time, body_acceleration),
):
    with tutorials.figure(results / f"figure_{number}.png", figsize=(7, 4)) as axes:
        axes.plot(t, values)
        kind = "sticks" if number == 3 else "rigid bodies"
        axes.set(xlabel="time (s)", ylabel=label, title=f"Figure {number}: {kind}")
tutorials.save_report(results / "tables.txt")
# -

# ## Checks
#
# The reference solutions of the equation of one degree of freedom are independent of this package;
# the solution of the arm has six decimals.


# +
def off(values: np.ndarray, reference: np.ndarray, decimals: float = 0.0) -> float:
    """Return the greatest relative difference beyond the rounding of the reference."""
    return float((np.maximum(np.abs(values - reference) - decimals, 0.0) / reference).max())


own_arm = np.array([0.033195, 0.133880, 0.305375, 0.553192, 0.884680])
own_crank = np.array([0.245340903, 0.801813625, 1.463351621, 2.451874435, 4.211921311])
for name in arm:
    check(f"arm, {name} and independent solution", off(arm[name], own_arm, 5e-7), 0, 1e-5)
    check(f"arm, {name} and Adams", off(arm[name], arm_adams), 0, 3e-4)
    check(f"slider-crank, {name} and independent solution", off(crank[name], own_crank), 0, 1e-5)
    check(f"slider-crank, {name} and Adams", off(crank[name], crank_adams), 0, 3e-4)
check("slider-crank, one freedom, beyond nine decimals", off(exact, own_crank, 5e-10), 0, 1e-9)
for data, models in (("as printed", as_printed), ("7860 kg/m³, 1 cm²", as_meant)):
    for name in ("rigid bodies", "sticks"):
        check(f"rod {data}, {name}", off(models[name], models["closed form"]), 0, 1e-5)
theory = as_meant["closed form"]
check("rod: theory of the paper with 0.786 kg/m", np.abs(theory - paper_theory).max(), 0, 5e-7)
deviation = (paper_theory / as_printed["closed form"]).min()
check("rod: theory of the paper over that of its data", deviation, 0.922, 0.923)
check("rod: width of the common interval of J", high - low, 0, 1e-6, "kg m²")
check("rod: printed ratios that fit no column", misfits, 1, 1)
check("arm: printed ratios that fit no column", arm_misfits, 0, 0)
check("slider-crank: printed ratios that fit no column", crank_misfits, 0, 0)
check("arm: with 0.786 kg/m, deviation from Adams", abs(other_rod[-1] / arm_adams[-1] - 1), 3e-3, 1)
names = list(errors)
for first, then in ((names[0], names[1]), (names[1], "and 100 E")):
    order = np.log10(errors[first][-1] / errors[then][-1])
    check(f"sticks: order from {first} to a tenth", order, 1.9, 2.1)
stretch = np.abs(errors[names[2]] - errors["and 100 E"]).max()
check("sticks: influence of the stretch of the rods", stretch, 1e-8, 1e-5)
difference = np.abs(stick_acceleration - body_acceleration).max() / body_acceleration.max()
check("sticks and bodies: acceleration of the midpoint", difference, 0, 1e-4)
# -
