"""Frequency response of a connecting rod: free, held, damped, and turning.

You compare four kinds of damping, and see the same resonances in the response of a reduced body
and in a simulated impact. Files go to `results/frequency_response`. Runs on one or more ranks.
"""

# # Frequency response
#
# With $u = \sum_k\psi_k\eta_k$ and, if the body floats, its rigid motion, the amplitudes of motion
# per harmonic force are
#
# $$H(\omega) = B\,\bigl(K\,(1+\mathrm i\,g)+\mathrm i\,\omega\,(C+G)-\omega^2M\bigr)^{-1}
#     B^{\mathsf T},$$
#
# with the motions $B$ of the interfaces per coordinate, a damping matrix $C$ of the elastic
# coordinates, a structural loss factor $g$ and, for a body that turns steadily, the Coriolis matrix
# $G$ and the centrifugal and geometric parts of $K$.

# +
from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body.response import half_power, linearize_body
from dolfinx_mbd.reduction.mesh_damping import with_damping
from dolfinx_mbd.tutorials import check, report, results_folder, save_report

comm = MPI.COMM_WORLD
results = results_folder("frequency_response")
mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.005), comm)
alloy, ends = mbd.ALUMINIUM_7075, ["big_end", "small_end"]
reduction = mbd.reduce(mesh, alloy, interfaces=ends, num_modes=12, name="rod")
rod = reduction.body
# -

# ## Damping
#
# Four kinds of damping have the ratio $\zeta=0.005$ in the first mode of the free rod: Rayleigh's,
# a ratio for each mode, a viscous density $\mu$ with $\int\mu\,\dot u\cdot v$ on the mesh, and a
# loss factor. The relative width of a resonance peak at half power is $2\zeta$ or $g$.

# +
ratio, first = 0.005, rod.frequencies[0]
viscous = mbd.reduction.Viscous(4 * np.pi * ratio * first * alloy.density)
rayleigh = mbd.body.Rayleigh.from_ratios(rod.frequencies[[0, 4]], (ratio, ratio))
damped = rod.with_damping(mbd.ModalDamping(ratio))
kinds: dict[str, tuple[mbd.ReducedBody, float]] = {
    "Rayleigh": (rod.with_damping(rayleigh), 0.0),
    "modal": (damped, 0.0),
    "viscous": (with_damping(reduction, viscous).body, 0.0),
    "structural": (rod, 2 * ratio),
}
entry = "small_end uz", "small_end fz"  # the first mode bends in z, along the bores
near = first * (1 + 2 * ratio * np.linspace(-4, 4, 801))
widths = {}
for kind, (body, loss_factor) in kinds.items():
    response = mbd.body.frequency_response(body, near, loss_factor=loss_factor)
    peak = half_power(near, response.between(*entry))
    widths[kind] = peak.width / peak.frequency
    report(f"{kind:<11} peak at {peak.frequency:.3f} Hz, width/peak {widths[kind]:.6f}")
# -

# ## Free, held and turning
#
# At low frequencies the free rod moves as a rigid body; its response along its axis is
# $-1/(m\omega^2)$. If it is held at the big end, it has the compliance of a cantilever. If it is
# held by a hub that turns about the bore, Coriolis forces couple its motions in the plane, and the
# centrifugal tension stiffens it. The poles are the eigenvalues of the same problem.

# +
f = np.geomspace(20.0, 8000.0, 1500)
speeds = (0.0, 300.0, 600.0, 900.0)  # rad/s
at: Any = {"inputs": ["small_end"], "outputs": ["small_end"]}
free = mbd.body.frequency_response(damped, f, **at)
held = mbd.body.frequency_response(damped, np.append(0.0, f), held=["big_end"], **at)
fastest = mbd.body.frequency_response(damped, f, held=["big_end"], spin=(0, 0, speeds[-1]), **at)
poles = {}
report("rad/s     frequencies of the rod that turns with a hub (Hz)")
for speed in speeds:
    turning = linearize_body(damped, held=["big_end"], spin=(0.0, 0.0, speed))
    poles[speed] = np.abs(turning.poles()[:4]) / (2 * np.pi)
    report(f"{speed:5.0f}  " + "  ".join(f"{p:10.3f}" for p in poles[speed]))
# -

# ## An impact and its spectrum
#
# A simulation must have the same resonances: the hub turns, a hammer hits the small end across the
# rod in y and in z, along the bore, and a sensor records the acceleration there in these axes.

# +
blow, bore = 2e-4, rod.interface("big_end")
flexible = mbd.FlexibleBody("rod", damped, damping_ratio=0.0)  # no other damping
ground = mbd.Ground({"hub": mbd.Frame(bore.point, bore.axes)})
pulse = f"100*sin(pi*t/{blow}) if t < {blow} else 0"  # N
hub = mbd.System(
    [ground, flexible],
    [mbd.revolute("pivot", ground.frame("hub"), flexible.frame("big_end"))],
    drivers=[mbd.Driver("motor", "pivot", mbd.constant_speed(speeds[-1]))],
    loads=[mbd.force("hammer", flexible.frame("small_end"), ("0", pulse, pulse), axes="frame")],
)
run = mbd.simulate(hub, t_end=0.08, dt=2e-5)
late = run.time > 5 * blow
acceleration = run.sensor("rod", "small_end", "acceleration", axes="body")[late]
lines = mbd.spectrum(run.time[late], acceleration, window="hann", trend="mean")
below = np.where(lines.frequencies[:, None] < 3000, lines.amplitudes, 0)
highest = lines.frequencies[np.argmax(below, axis=0)]
save_report(results / "tables.txt")
if comm.rank == 0:
    plots = mbd.plotting
    entries = [("small_end uy", "small_end fy"), entry]
    responses = {"free": free, "held": held, "held, 900 rad/s": fastest}
    plots.plot_response(responses, entries, results / "response.png")
    spectra = {"in y": 1, "in z": 2}
    columns = {n: lines._replace(amplitudes=lines.amplitudes[:, k]) for n, k in spectra.items()}
    axes: Any = {"unit": "m/s²", "up_to": 5000, "amplitude_axis": "log"}
    plots.plot_spectrum(columns, results / "spectrum.png", **axes)
# -

# ## Checks
#
# The held rod is compared with a reduced cantilever. The lines of the spectrum are 12.7 Hz apart,
# so that its peaks can differ from the poles by this distance.

# +
for kind, width in widths.items():
    check(f"{kind}: half-power width over 2ζ or g", width / (2 * ratio), 0.998, 1.002)
cantilever = mbd.reduce(
    mesh, alloy, interfaces=ends, num_modes=4, attached_to="big_end", stiffening=False
).body
D = cantilever.interface("small_end").motion
compliance = D @ np.linalg.solve(cantilever.stiffness, D.T)
error = np.abs(held.receptance("small_end")[0].real - compliance).max() / np.abs(compliance).max()
check("held: static response and cantilever, relative difference", error, 0.0, 1e-6)
low = free.between("small_end ux", "small_end fx")[0] * (2 * np.pi * f[0]) ** 2
check("free: −m ω² H along the rod at 20 Hz", (-low * rod.total_mass).real, 0.999, 1.001)
top = f[np.argmax(np.abs(fastest.between("small_end uz", "small_end fz")))]
last = poles[speeds[-1]]
check("turning: peak and pole", top / last[np.argmin(np.abs(last - top))], 0.996, 1.004)
check("turning: rise of the lowest frequency", last[0] / poles[0.0][0], 1.001, 1.2)
for name, line in zip(("in y", "in z"), highest[1:], strict=True):
    check(f"highest line {name}, {line:.1f} Hz, and pole", np.abs(last - line).min(), 0, 12.7, "Hz")
