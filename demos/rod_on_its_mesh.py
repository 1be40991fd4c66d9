"""A rod in a slider-crank on its whole mesh, beside its reduced model.

You replace one line to use all nodes of the mesh instead of modes, and compare the deflection of
both with a beam of large rotations. Runs in about a minute, on one rank and under `mpirun -n 2`.
"""

# # A rod with all nodes of its mesh
#
# A reduced body describes its deformation by a few modes, for small strains. A `MeshBody` keeps all
# nodes of the mesh:
#
# $$\int\rho\,\ddot u\cdot v\,dX + \frac{\partial}{\partial u}\int W(u)\,dX\,[v] = \text{loads},$$
#
# where $u$ is the displacement in the inertial frame and $W$ any energy density in UFL. There is no
# floating frame. Rotation, stiffening and buckling are part of $W$. The mechanism sees only the
# frames of the interfaces, so that joints, drivers and loads are the same for both kinds of bodies.

# +
from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from dolfinx import mesh
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check_close, report

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=600, help="smallest number of displacements")
size, across = parser.parse_known_args()[0].size, 1  # cells across the rod
while 3 * (24 * across + 1) * (2 * across + 1) ** 2 < size:
    across += 1
comm = MPI.COMM_WORLD
results = tutorials.results_folder("rod_on_its_mesh")
CRANK, LENGTH, WIDTH, SPEED = 0.15, 0.30, 0.008, 150.0  # m, rad/s
# -

# ## The mesh and its interfaces
#
# The rod is a slender bar of steel. The facets at its ends get the tags 1 and 2.

# +
corners = np.array([[0, -WIDTH / 2, -WIDTH / 2], [LENGTH, WIDTH / 2, WIDTH / 2]])
bar = mesh.create_box(comm, list(corners), [12 * across, across, across], mesh.CellType.tetrahedron)


def end(place: float) -> np.ndarray:
    """Return the facets at one end of the rod."""
    return mesh.locate_entities_boundary(bar, 2, lambda x: np.isclose(x[0], place))


facets = [end(0.0), end(LENGTH)]
values = np.repeat(np.array([1, 2], dtype=np.int32), [len(f) for f in facets])
order = np.argsort(np.concatenate(facets))
tags = mesh.meshtags(bar, 2, np.concatenate(facets)[order], values[order])
model = mbd.ElasticModel(bar, mbd.forms.Material(2e11, 0.3, 7870.0), facet_tags=tags)
interfaces = {
    "big_end": mbd.InterfaceSpec(1, point=(0, 0, 0), axes=np.eye(3)),
    "small_end": mbd.InterfaceSpec(2, point=(LENGTH, 0, 0), axes=np.eye(3)),
}
# -

# ## The mechanism
#
# The function takes the rod as an argument; nothing else depends on the kind of the body. The
# slider has half the mass of the rod, 0.075552 kg.


# +
def slider_crank(rod: Any) -> mbd.System:
    """Return a slider-crank whose crank rotates at constant speed."""
    along_x = mbd.Frame(axes=(1, 0, 0))  # its z axis, along which the slider moves, is the x axis
    ground = mbd.Ground({"bearing": mbd.Frame(), "guide": along_x})
    pins = {"bearing": mbd.Frame(), "pin": mbd.Frame((CRANK, 0, 0))}
    crank = mbd.RigidBody("crank", 1.0, [0.01] * 3, frames=pins)
    frames = {"pin": mbd.Frame(), "guide": along_x}
    place = (CRANK + LENGTH, 0, 0)
    slider = mbd.RigidBody("slider", 0.075552, [1e-5] * 3, frames=frames, position=place)
    joints = [
        mbd.revolute("main", ground.frame("bearing"), crank.frame("bearing")),
        mbd.revolute("big_end", crank.frame("pin"), rod.frame("big_end")),
        mbd.spherical("small_end", rod.frame("small_end"), slider.frame("pin")),
        mbd.prismatic("guide", ground.frame("guide"), slider.frame("guide")),
    ]
    motor = mbd.Driver("motor", "main", mbd.constant_speed(SPEED))
    return mbd.System([ground, crank, rod, slider], joints, drivers=[motor])


# -

# ## One line for each kind of body
#
# Both runs start from a straight rod with the velocities of a rigid mechanism. The start excites
# vibrations of the rod.

# +
position = (CRANK, 0, 0)
rod = mbd.MeshBody("rod", model, interfaces, position=position)
revolution = 2 * np.pi / SPEED
run = mbd.simulate(slider_crank(rod), t_end=revolution, dt=2e-4)
report(f"mesh body: {3 * len(rod.nodes)} displacements, {run.iterations / (len(run) - 1):.1f}")
report("iterations a step; each is one solution with a factor that turns with the rod")
# -

# A slow mechanism, in which the vibration is small, shows that the reduced body agrees. The forces
# of both bodies in the second half of a revolution differ by the vibration that is left.

# +
reduced = mbd.reduce(model, interfaces=interfaces, num_modes=8).body
SPEED = 20.0
forces = []
for body in (rod, mbd.FlexibleBody("rod", reduced, position=position)):
    slow = mbd.simulate(slider_crank(body), t_end=2 * np.pi / SPEED, dt=1e-3)
    forces.append(slow.joint("small_end").force[len(slow) // 2 :])
difference = np.abs(forces[0] - forces[1]).max() / np.abs(forces[1]).max()
report(f"difference of the forces at the small end: {100 * difference:.2g} %")
# -

# ## Deflection
#
# `motion` returns the motion of all nodes, and interpolates it at points of the undeformed mesh.

# +
points = [(0, 0, 0), (LENGTH / 2, 0, 0), (LENGTH, 0, 0)]
left, middle, right = np.moveaxis(rod.motion(run).position(points), 1, 0)
chord = (right - left) / np.linalg.norm(right - left, axis=1)[:, None]
offset = middle - (left + right) / 2
deflection = chord[:, 0] * offset[:, 1] - chord[:, 1] * offset[:, 0]
report(f"deflection of the middle: {1e3 * deflection.min():.3f} to {1e3 * deflection.max():.3f} mm")
# -

# The reference values are those of a geometrically exact beam.

# +
check_close("largest deflection, m", deflection.max(), 1.6371e-3, 0.01)
check_close("smallest deflection, m", deflection.min(), -1.8659e-3, 0.01)
check_close("force with modes / on the mesh", 1 + difference, 1.0, 0.03)
# -
