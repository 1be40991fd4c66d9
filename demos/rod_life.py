"""The fatigue life of an engine's rod at three speeds with gas.

You combine three runs into a load spectrum, find where and when the rod fails first, and compare
larger fillets, a thicker web and another material. Files go to `results/rod_life`. Runs on one rank
and under `mpirun -n 2`.
"""

# # The life of a connecting rod
#
# In each working cycle, the gas pressure compresses the rod, and at the top dead centre between
# exhaust and intake the inertia of the piston stretches it. The gas force hardly depends on the
# speed, and the inertia force grows with its square. You compute which of them determines the life.

# +
from __future__ import annotations

from dataclasses import replace

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, FourStrokePressure, inline_engine
from dolfinx_mbd.tutorials import check, check_close, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("rod_life")
radius, rpm, shares = 0.040, (3000, 6000, 7500), (0.5, 0.4, 0.1)
# -

# ## A rod with the stress of its modes
#
# Pins fill both bores. The body keeps the stress of each mode at the nodes of its surface, so that
# the rest of this page needs no mesh.


# +
def reduced_rod(geometry: mbd.ConnectingRod, material: mbd.Material) -> mbd.ReducedBody:
    """Return the rod with the stress of its modes."""
    mesh = mbd.build_mesh(geometry, comm)
    ends = ["big_end", "small_end"]
    reduction = mbd.reduce(mesh, material, interfaces=ends, num_modes=12, name="rod")
    return reduction.body.replace(stress=mbd.durability.skin_stress(reduction))


geometry = mbd.ConnectingRod(size=0.0065)
rod = reduced_rod(geometry, mbd.ALUMINIUM_7075)
# -

# ## Three speeds
#
# An engine with one cylinder runs at each speed. Its transient decays in the first working cycle,
# so that only a second one is evaluated. `shares` are fractions of the service time.


# +
def spectrum(rod: mbd.ReducedBody) -> list[tuple[mbd.results.BodyHistory, float]]:
    """Return the motion of the rod over a working cycle at each speed, with its share."""
    length = mbd.mechanisms.rod_length(rod)
    pressure = FourStrokePressure(0.070, crank_radius=radius, rod_length=length)
    runs = []
    for speed, share in zip(np.array(rpm) * 2 * np.pi / 60, shares, strict=True):
        design = EngineDesign(cylinders=1, crank_radius=radius)
        engine = inline_engine(rod, design, speed=speed, pressure=pressure)
        cycle = 4 * np.pi / speed
        start = mbd.simulate(engine, t_end=cycle, dt=cycle / 720).final_state
        run = mbd.simulate(engine, t_end=2 * cycle, dt=cycle / 720, start=start)
        runs.append((run.body("rod 1"), share))
    return runs


runs = spectrum(rod)
# -

# ## Where, and when?
#
# The fatigue data are a textbook's, for polished specimens of which half survive. A forged surface
# is rougher. Its factor is an assumption here; each factor needs a text about its source.

# +
polished = mbd.durability.EXAMPLES["2024-T4"]
aluminium = polished.with_factors(surface=(0.7, "assumption of this page: forged"))
result = mbd.fatigue(rod, runs, material=aluminium, comm=comm)
report(f"{rod.name}: {1e3 * rod.total_mass:.0f} g, spectrum of {rpm} rpm, {aluminium.name}\n")
report(result.worst(5))
result.write(results / "life.vtk")  # for ParaView
damages = [mbd.fatigue(rod, [(r, 1.0)], material=aluminium, comm=comm).damage for r, _ in runs]
worst = int(np.argmax(result.damage))
for n, damage in zip(rpm, damages, strict=True):
    report(f"at {n} rpm only: {1 / damage[worst] / 3600:.3g} h at this place")
texts = {"label": "amplitude (MPa)", "title": "damage-equivalent stress at 1 Hz"}
amplitudes = result.equivalent_stress()
tutorials.show(mbd.plotting.plot_skin, rod, amplitudes, results / "life.png", **texts)
# -

# The rod fails at the ends of the pocket beside the web; both ends are about equally damaged. The
# gas compresses the rod there more than the inertia of the piston stretches it: the mean stress is
# negative, but the range is large. The highest speed does most of the damage, in a tenth of the
# time. Four places are equal by symmetry. Their lives differ because the mesh is not symmetric.
#
# ## Larger fillets, a thicker web, another material
#
# A change of shape or density also changes the forces, so each rod is simulated again.

# +
rounded = replace(geometry, fillet_big=0.030, fillet_small=0.025)
thick = replace(geometry, web_thickness=0.007)
steel = mbd.durability.EXAMPLES["AISI 4340"]
steel = steel.with_factors(surface=(0.7, "assumption of this page: forged"))
variants = {
    "larger fillets": (rounded, mbd.ALUMINIUM_7075, aluminium),
    "thicker web": (thick, mbd.ALUMINIUM_7075, aluminium),
    "steel": (geometry, mbd.STEEL, steel),
}
places = {"as it is": (rod, result.worst(1)[0])}
for name, (shape, elastic, data) in variants.items():
    body = reduced_rod(shape, elastic)
    places[name] = body, mbd.fatigue(body, spectrum(body), material=data, comm=comm).worst(1)[0]
report("\nrod              mass (g)   life (h)   nearest interface")
for name, (body, place) in places.items():
    label = f"{place.interface}, {1e3 * place.distance:.1f} mm"
    report(f"{name:<15} {1e3 * body.total_mass:9.1f} {place.hours:10.3g}   {label}")
# -

# Larger fillets help less than a thicker web, because the rod fails in its pocket.
#
# ## Checks
#
# The damage at the worst point is computed again from the stress on its plane: with rainflow
# counting, the mean-stress correction of Smith, Watson and Topper, and the S-N line.

# +
modes = rod.stress
assert modes is not None
at_worst = mbd.body.StressModes(modes.points[[worst]], modes.stress[:, [worst]])
n, line, total = result.normal[worst], aluminium.line(), 0.0  # normal of the plane, S-N line
for motion, share in runs:
    normal_stress = at_worst.values("stress", motion)[:, 0] @ n @ n
    ranges, means, counts = mbd.durability.count_cycles(normal_stress, "closed")
    amplitudes = np.sqrt(np.maximum(ranges / 2 * (ranges / 2 + means), 0.0))
    damage = sum(c / line.life(a) for a, c in zip(amplitudes, counts, strict=True) if a > 0)
    total += share * damage / np.ptp(motion.time)
check_close("damage per hour at the worst point", 3600 * result.damage[worst], 3600 * total, 1e-9)
mixed = np.tensordot(shares, damages, axes=1)
ratio = result.damage.max() / mixed.max()  # the worst planes of the runs may differ
check("damage of the spectrum over the sum of its runs", ratio, 0.99, 1.01)
longer = places["steel"][1].hours / places["as it is"][1].hours
check("life of the steel rod over that of aluminium", longer, 10, 1e4)
# -
