"""When a beam will do: bars of the same section, long and short, as beams and as solids.

Natural frequencies, degrees of freedom and time of both, how the difference grows as the bar gets
shorter, and what the beam leaves out. Runs in some ten seconds, also under `mpirun -n 2`.
"""

# # A beam or a solid?
#
# A beam of Euler and Bernoulli keeps its sections plane and at right angles to the axis:
#
# $$
# u(x, y, z) = (u - y v' - z w',\; v - z\varphi,\; w + y\varphi) .
# $$
#
# This, put into the three-dimensional forms and integrated over the section, has all inertia of the
# section in it, but no shear and no warping. How far does that go? A steel bar of 20 × 12 mm is
# made shorter and shorter here, and computed both ways.

# +
from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from dolfinx import mesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.beams.reduce import BeamModel, beam_modes
from dolfinx_mbd.forms.beam_sections import Section

comm = MPI.COMM_WORLD
height, width = 0.020, 0.012
section = Section.rectangle(height, width)
steel = mbd.STEEL
# -

# ## Both ways
#
# The beam needs a mesh of intervals, a section and a material. Of the lowest modes those are picked
# that move the axis, first along z (the section is weaker there), then along y.


# +
def firsts(frequencies: np.ndarray, axis: list[np.ndarray]) -> np.ndarray:
    """The first frequencies of bending along z and y, from the displacements of the axis."""
    found: dict[int, float] = {}
    for frequency, u in zip(frequencies, axis, strict=True):
        size = np.max(comm.allgather(np.abs(u).max(axis=0, initial=0.0)), axis=0)
        if size[1:].max() > 0.5:  # the mass is below 1 kg: bending has displacements above 1
            found.setdefault(int(np.argmax(size)), frequency)
    return np.array([found[2], found[1]])


def as_beam(length: float) -> tuple[np.ndarray, int, float]:
    """First frequencies, Hz; degrees of freedom; seconds."""
    began = time.perf_counter()
    model = BeamModel(mesh.create_interval(comm, 24, [0.0, length]), section, steel)
    found = beam_modes(model, 4)
    seconds = time.perf_counter() - began
    axis = [mode.x.array.reshape(-1, 6)[:, :3] for mode in found.modes]
    return firsts(found.frequencies, axis), 6 * 25, seconds


def as_solid(length: float) -> tuple[np.ndarray, int, float]:
    """The same of a box of hexahedra of second order."""
    began = time.perf_counter()
    half = np.array([0.0, height, width]) / 2
    cells = [max(10, round(1.5 * length / height)), 2, 2]
    corners: Any = [-half, np.array([length, 0.0, 0.0]) + half]
    box = mesh.create_box(comm, corners, cells, mesh.CellType.hexahedron)
    found = mbd.modal_analysis(box, steel, num_modes=4)
    seconds = time.perf_counter() - began
    x = found.space.tabulate_dof_coordinates()
    on_axis = np.hypot(x[:, 1], x[:, 2]) < 1e-9
    axis = [mode.x.array.reshape(-1, 3)[on_axis] for mode in found.modes]
    size = 3 * found.space.dofmap.index_map.size_global
    return firsts(found.frequencies, axis), size, seconds


# -

# ## What shear takes away
#
# The solid shears, which lowers its frequencies. For slender bars theory says by how much: of a bar
# that is free at both ends the shear lowers the first frequency by
#
# $$
# \frac{E}{\kappa G}\, \frac{r^2}{2}\, \frac{\int w'''^2}{\int w''^2}
#   = \frac{E}{\kappa G} \left(\frac{r}{L}\right)^2 6.15 ,
# $$
#
# with the radius of gyration $r$ and the integral of the first free mode.

# +
x = np.linspace(0.0, 1.0, 20001)
b = 4.730040745
ratio = (np.cosh(b) - np.cos(b)) / (np.sinh(b) - np.sin(b))
second = np.cosh(b * x) - np.cos(b * x) - ratio * (np.sinh(b * x) - np.sin(b * x))
third = b * (np.sinh(b * x) + np.sin(b * x) - ratio * (np.cosh(b * x) - np.cos(b * x)))
factor = np.trapezoid(third**2, x) / np.trapezoid(second**2, x) / 2
kappa = 10 * (1 + steel.poisson) / (12 + 11 * steel.poisson)


def shear(length: float, second_moment: float) -> float:
    """Part of the first bending frequency that shear takes away."""
    r2 = second_moment / section.area
    return steel.young / (kappa * steel.shear) * factor * r2 / length**2


rows = []
for slenderness in (40, 20, 10, 5):
    length = slenderness * height
    beam, few, fast = as_beam(length)
    solid, many, slow = as_solid(length)
    expected = np.array([shear(length, i) for i in (section.Iyy, section.Izz)])
    rows.append((slenderness, beam, solid, beam / solid - 1, expected, few, many, fast, slow))
if comm.rank == 0:
    print("first frequencies, beam over solid - 1, in percent; in brackets what shear explains")
    print("L/h   along z           along y           dofs          seconds")
    for slenderness, _, _, off, expected, few, many, fast, slow in rows:
        pairs = zip(off, expected, strict=True)
        along = "   ".join(f"{100 * o:6.2f} ({100 * e:5.2f})" for o, e in pairs)
        print(f"{slenderness:3d}  {along}    {few} / {many:5d}   {fast:.2f} / {slow:.2f}")
# -

# A bar twenty times as long as high is a beam to half a percent in its first modes; five times as
# long it is not, and the theory of small shear is at its end too.
#
# ## Check
#
# The beam is never below the solid in bending, and for slender bars shear explains the difference.

# +
faults: list[str] = []
for slenderness, _, _, shift, told, *rest in rows:
    if not (shift[:2] > 0).all():
        faults.append(f"L/h = {slenderness}: the beam is below the solid")
    if slenderness >= 20 and not np.allclose(shift[:2], told, rtol=0.15):
        faults.append(f"L/h = {slenderness}: shear does not explain {shift[:2]}")
if comm.rank == 0:
    print("all checks passed" if not faults else "\n".join(faults))
sys.exit(bool(faults))
