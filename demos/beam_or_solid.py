"""When a beam is enough: bars of the same section, long and short, as beams and as solids.

You compare natural frequencies, degrees of freedom and time of both, and explain the difference by
shear. Runs in some ten seconds, on one rank and under `mpirun -n 2`.
"""

# # A beam or a solid?
#
# A beam of Euler and Bernoulli keeps its sections plane and at right angles to the axis:
#
# $$u(x, y, z) = (u - y v' - z w',\; v - z\varphi,\; w + y\varphi).$$
#
# If you insert this displacement into the three-dimensional forms and integrate over the section,
# you obtain all inertia terms of the section, but neither shear nor warping. For which bars is this
# enough? You make a steel bar of 20 × 12 mm shorter and shorter, and compute it as a beam and as a
# solid.

# +
from __future__ import annotations

import time
from typing import Any

import numpy as np
from dolfinx import mesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.structures.beams import beam_modes
from dolfinx_mbd.tutorials import check, check_close, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("beam_or_solid")
height, width, steel = 0.020, 0.012, mbd.STEEL
section = mbd.forms.Section.rectangle(height, width)
# -

# ## Two models
#
# A beam needs a mesh of intervals, a section and a material. Of the lowest modes, pick those that
# move the axis: first along z, where the section is weaker, then along y.


# +
def firsts(frequencies: np.ndarray, axis: list[np.ndarray]) -> np.ndarray:
    """Return the first bending frequencies along z and y, from the displacements of the axis."""
    lowest: dict[int, float] = {}
    for frequency, u in zip(frequencies, axis, strict=True):
        size = np.max(comm.allgather(np.abs(u).max(axis=0, initial=0.0)), axis=0)
        if size[1:].max() > 0.5:  # a bending mode: with ∫ρ ψ·ψ = 1 and less than 1 kg, ψ > 1
            lowest.setdefault(int(np.argmax(size)), frequency)
    return np.array([lowest[2], lowest[1]])


def as_beam(length: float) -> tuple[np.ndarray, int]:
    """Return the first bending frequencies of the beam, Hz, and its degrees of freedom."""
    model = mbd.BeamModel(mesh.create_interval(comm, 24, [0.0, length]), section, steel)
    result = beam_modes(model, 4)
    axis = [mode.x.array.reshape(-1, 6)[:, :3] for mode in result.modes]
    return firsts(result.frequencies, axis), 6 * 25


def as_solid(length: float) -> tuple[np.ndarray, int]:
    """Return the same results for a box of quadratic hexahedra."""
    half = np.array([0.0, height, width]) / 2
    cells = [max(10, round(1.5 * length / height)), 2, 2]
    corners: Any = [-half, np.array([length, 0.0, 0.0]) + half]
    box = mesh.create_box(comm, corners, cells, mesh.CellType.hexahedron)
    result = mbd.modal_analysis(box, steel, num_modes=4)
    x = result.space.tabulate_dof_coordinates()
    on_axis = np.hypot(x[:, 1], x[:, 2]) < 1e-9
    axis = [mode.x.array.reshape(-1, 3)[on_axis] for mode in result.modes]
    return firsts(result.frequencies, axis), 3 * result.space.dofmap.index_map.size_global


# -

# ## The effect of shear
#
# The solid shears, which lowers its frequencies. For a slender bar with free ends, shear lowers the
# first frequency by the fraction
#
# $$\frac{E}{\kappa G}\,\frac{r^2}{2}\,\frac{\int w'''^2}{\int w''^2}
#   = 6.15\,\frac{E}{\kappa G}\left(\frac{r}{L}\right)^2,$$
#
# with the radius of gyration $r$ of the section, the shear factor $\kappa$, and integrals over the
# first free mode $w$. Below, `b` is the first positive root of $\cosh b\cos b = 1$, and `second`
# and `third` are $w''/b^2$ and $w'''/b^2$.

# +
x = np.linspace(0.0, 1.0, 20001)
b = 4.730040745
ratio = (np.cosh(b) - np.cos(b)) / (np.sinh(b) - np.sin(b))
second = np.cosh(b * x) - np.cos(b * x) - ratio * (np.sinh(b * x) - np.sin(b * x))
third = b * (np.sinh(b * x) + np.sin(b * x) - ratio * (np.cosh(b * x) - np.cos(b * x)))
factor = np.sum(third**2) / np.sum(second**2) / 2
kappa = 10 * (1 + steel.poisson) / (12 + 11 * steel.poisson)
moments = np.array([section.Iyy, section.Izz])
slenderness = np.array([40, 20, 10, 5])
shear = steel.young / (kappa * steel.shear) * factor * moments / section.area
shear = shear / (slenderness[:, None] * height) ** 2

differences = []
report("L/h   beam over solid − 1 along z, y (shear explains)      dofs          seconds")
for k, slender in enumerate(slenderness):
    start = time.perf_counter()
    beam, few = as_beam(slender * height)
    between = time.perf_counter()
    solid, many = as_solid(slender * height)
    seconds = f"{between - start:.2f} / {time.perf_counter() - between:.2f}"
    differences.append(beam / solid - 1)
    pairs = zip(differences[-1], shear[k], strict=True)
    cells = "   ".join(f"{100 * d:6.2f} % ({100 * s:5.2f} %)" for d, s in pairs)
    report(f"{slender:3d}   {cells}    {few} / {many:5d}   {seconds}")
shifts = np.array(differences)
tutorials.save_report(results / "frequencies.txt")
with tutorials.figure(results / "difference.png") as axes:
    for j, name in enumerate(("along z", "along y")):
        axes.loglog(slenderness, 100 * shifts[:, j], "o-", label=name)
        axes.loglog(slenderness, 100 * shear[:, j], ":", color="0.3")
    axes.set(xlabel="length over height", ylabel="beam over solid − 1 (%)")
    axes.legend(title="dotted: shear")
# -

# For a bar that is twenty times as long as high, the first frequencies of beam and solid agree to
# half a percent. If it is only five times as long, they do not agree, and the formula for the
# effect of shear is not accurate either.
#
# ## Checks

# +
check_close("the integral of the first free mode", factor, 6.15, 1e-3)
for k, slender in enumerate(slenderness):
    check(f"L/h = {slender}: beam over solid − 1, least", shifts[k].min(), 1e-6, 1.0)
    for j, name in enumerate("zy"):
        if slender >= 20:
            check_close(f"L/h = {slender}, along {name}, shear", shifts[k, j], shear[k, j], 0.15)
# -
