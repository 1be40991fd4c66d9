"""Frequency response of a connecting rod at its small end: free, held, damped, and turning.

Bode plots, half-power widths of four kinds of damping, the resonances over the speed, and the
spectrum of a simulated blow, which shows the same resonances. Figures and tables go to
`results/frequency_response`. Takes half a minute; runs serial and under `mpirun -n 2`.
"""

# # Frequency response
#
# What does a rod do at its small end if a harmonic force acts there? Its reduced body answers
# without a simulation. With $u = \sum_k \psi_k\,\eta_k$ and the rigid motion of a body that floats,
# the amplitudes of motion per force are
#
# $$H(\omega) = B\,\bigl(K\,(1 + \mathrm i\,\eta) + \mathrm i\,\omega\,(C + G)
#     - \omega^2 M\bigr)^{-1} B^{\mathsf T},$$
#
# with a damping matrix $C$ that acts on the elastic coordinates alone, a structural loss factor
# $\eta$, which has a meaning only for harmonic motion, and, for a rod that turns steadily, the
# Coriolis matrix $G$ and the centrifugal and geometric parts of $K$.

# +
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import (
    ModalDamping,
    Rayleigh,
    ReducedBody,
    frequency_response,
    half_power,
    linearize_body,
)
from dolfinx_mbd.multibody import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    System,
    constant_speed,
    force,
    revolute,
    simulate,
    spectrum,
)
from dolfinx_mbd.plotting.response import plot_response, plot_spectrum
from dolfinx_mbd.reduction.damping import Viscous, with_damping

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = Path("results/frequency_response")
results.mkdir(parents=True, exist_ok=True)
failed = False


def report(text: str) -> None:
    """Print once, not once a rank."""
    if root:
        print(text, flush=True)


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<58} {value:10.5g} in [{low:g}, {high:g}]")


# -

# ## The rod

# +
material = mbd.ALUMINIUM_7075
mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.005), comm)
ends = ["big_end", "small_end"]
reduction = mbd.reduce(mesh, material, interfaces=ends, num_modes=12, skin=False, name="rod")
rod = reduction.body
report("free modes (Hz): " + "  ".join(f"{f:.1f}" for f in rod.frequencies[:6]))
# -

# ## Damping
#
# Four kinds, each made for a damping ratio of half a percent in the first mode of the free rod:
# Rayleigh's two coefficients, which have that ratio at two frequencies; a ratio for each mode; a
# viscous density $\mu$, $\int \mu\,\dot u\cdot v$, integrated on the mesh; and the loss factor.
# None resists rigid motion: what $\mu$ and a part of Rayleigh's damping resist is the motion
# relative to the rod's mean axes.
#
# Width over frequency of a peak where half its power is left is $2\zeta$ or $\eta$.

# +
ratio, first = 0.005, rod.frequencies[0]
kinds: dict[str, tuple[ReducedBody, float]] = {
    "Rayleigh": (
        rod.with_damping(Rayleigh.from_ratios(rod.frequencies[[0, 4]], (ratio, ratio))),
        0.0,
    ),
    "modal": (rod.with_damping(ModalDamping(ratio)), 0.0),
    "viscous": (
        with_damping(reduction, Viscous(4 * np.pi * ratio * first * material.density)).body,
        0.0,
    ),
    "structural": (rod, 2 * ratio),
}
motion = np.abs(rod.interface("small_end").motion[:3, 0])
axis = "xyz"[int(np.argmax(motion))]
entry = f"small_end u{axis}", f"small_end f{axis}"
near = first * (1 + 2 * ratio * np.linspace(-4, 4, 801))
lines = ["", f"first free mode, {entry[0]} per {entry[1]}", "damping      peak (Hz)    width/peak"]
widths = {}
for kind, (body, loss_factor) in kinds.items():
    peak = half_power(near, frequency_response(body, near, loss_factor=loss_factor).between(*entry))
    widths[kind] = peak.width / peak.frequency
    lines += [f"{kind:<11}  {peak.frequency:9.3f}  {widths[kind]:12.6f}"]
report("\n".join(lines))
# -

# ## Free and held
#
# The free rod flies away as a rigid body at low frequencies, $-1/(m\omega^2)$ along its axis. Held
# at the big end it has the compliance of a cantilever.

# +
damped = kinds["modal"][0]
f = np.geomspace(20.0, 8000.0, 1500)
free = frequency_response(damped, f, inputs=["small_end"], outputs=["small_end"])
held = frequency_response(
    damped, np.append(0.0, f), held=["big_end"], inputs=["small_end"], outputs=["small_end"]
)
cantilever = mbd.reduce(
    mesh, material, interfaces=ends, num_modes=4, attached_to="big_end", skin=False
).body  # other modes, other coordinates, the same statics
D = cantilever.interface("small_end").motion
compliance = D @ np.linalg.solve(cantilever.stiffness, D.T)
# -

# ## Turning about the big end
#
# The rod is held at the big end by a hub that turns about the bore. The small end's motion in the
# plane couples along and across by Coriolis' force; tension from the centrifugal load stiffens.
# Poles are the eigenvalues of the same quadratic problem.

# +
speeds = np.array([0.0, 300.0, 600.0, 900.0])  # rad/s


def poles(speed: float) -> np.ndarray:
    """Frequencies of the turning rod, Hz."""
    system = linearize_body(damped, held=["big_end"], spin=(0.0, 0.0, speed))
    return np.abs(system.poles()) / (2 * np.pi)


turning = np.array([poles(speed)[:4] for speed in speeds])
lines += ["", "rad/s     frequencies of the rod that turns with a hub (Hz)"]
lines += [
    f"{s:5.0f}  " + "  ".join(f"{p:10.3f}" for p in row)
    for s, row in zip(speeds, turning, strict=True)
]
report("\n".join(lines[-5:]))
fastest = frequency_response(
    damped,
    f,
    held=["big_end"],
    inputs=["small_end"],
    outputs=["small_end"],
    spin=(0, 0, speeds[-1]),
)
# -

# ## A blow, and its spectrum
#
# The same rod in a simulation: the hub turns, a short force hits the small end along the shaft and
# across the rod, and the acceleration there, in the rod's own axes, is recorded. A spectrum
# without the start, and without its mean, shows the resonances.

# +
speed, blow = float(speeds[-1]), 2e-4
bore = rod.interface("big_end")
flexible = FlexibleBody("rod", damped, damping_ratio=0.0)
ground = Ground({"hub": Frame(bore.point, bore.axes)})


def hammer(t: float, _: object) -> np.ndarray:
    """Half a sine of 100 N, across the rod and along the shaft."""
    size = 100.0 * np.sin(np.pi * t / blow) if t < blow else 0.0
    return np.array([0.0, size, size])


hub = System(
    [ground, flexible],
    [revolute("pivot", ground.frame("hub"), flexible.frame("big_end"))],
    drivers=[Driver("motor", "pivot", constant_speed(speed))],
    loads=[force("hammer", flexible.frame("small_end"), hammer, axes="frame")],
)
run = simulate(hub, t_end=0.08, dt=2e-5)
late = run.time > 5 * blow
acceleration = run.sensor("rod", "small_end", "acceleration", axes="body")[late]
lines_of = spectrum(run.time[late], acceleration, window="hann", trend="mean")
found = [
    lines_of.frequencies[np.argmax(np.where(lines_of.frequencies < 3000, a, 0))]
    for a in lines_of.amplitudes.T[1:]
]
report(
    f"\nhighest lines of the spectra across and along the shaft: {found[0]:.1f}, {found[1]:.1f} Hz"
)
# -

# ## Pictures

# +
if root:
    entries = [("small_end uy", "small_end fy"), ("small_end uz", "small_end fz")]
    named = {"free": free, "held": held, f"held, {speeds[-1]:.0f} rad/s": fastest}
    plot_response(named, entries, results / "response.png")
    columns = {
        name: lines_of._replace(amplitudes=a)
        for name, a in zip(
            ("along", "across", "along the shaft"), lines_of.amplitudes.T, strict=True
        )
    }
    plot_spectrum(columns, results / "spectrum.png", unit="m/s²", up_to=5000, amplitude_axis="log")
    (results / "tables.txt").write_text("\n".join(lines[1:]) + "\n")
report(f"{results}/response.png, spectrum.png and tables.txt are written")
# -

# ## Does it hold?
#
# A resonance is seen in another mode's tail and the width of a single mode is $2\zeta$ only to
# $\zeta^2$, so that the widths have some 0.1 %. Rigid-body motion at 20 Hz misses the elastic
# part, $(f/f_1)^2$. The spectrum has lines 12.7 Hz apart.

# +
report("")
for kind, width in widths.items():
    check(f"{kind}: half-power width over 2ζf", width / (2 * ratio), 0.998, 1.002)
static = held.receptance("small_end")[0].real
error = np.abs(static - compliance).max() / np.abs(compliance).max()
check("held: static limit against another reduction, relative", error, 0.0, 1e-6)
low = free.between("small_end ux", "small_end fx")[0] * (2 * np.pi * f[0]) ** 2
check("free: −m ω² H along the rod at 20 Hz", float((-low * rod.total_mass).real), 0.999, 1.001)
k = int(np.argmax(np.abs(fastest.between("small_end uz", "small_end fz"))))
out_of_plane = turning[-1][np.argmin(np.abs(turning[-1] - f[k]))]
check("turning: peak along the shaft over its pole", f[k] / out_of_plane, 0.996, 1.004)
check("turning: the lowest frequency rises", turning[-1, 0] / turning[0, 0], 1.001, 1.2)
for name, line in zip(("across", "along the shaft"), found, strict=True):
    nearest = turning[-1][np.argmin(np.abs(turning[-1] - line))]
    check(f"spectrum: line {name} less its pole (Hz)", abs(line - nearest), 0.0, 12.7)
sys.exit(failed)
# -
