"""Mesh bodies: bodies of a mechanism with all nodes of their mesh, in parallel.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> from dolfinx_mbd.structures.mesh_bodies import *
    >>> mesh = create_box(MPI.COMM_SELF, [(0, 0, 0), (1, 0.2, 0.2)], [2, 1, 1])
    >>> end = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.0))
    >>> interfaces = {"left": mbd.InterfaceSpec(end, point=(0, 0.1, 0.1), axes=np.eye(3))}
    >>> rod = mbd.MeshBody("rod", mesh, interfaces, material=mbd.STEEL)
    >>> ground = mbd.Ground({"bearing": mbd.Frame((0, 0.1, 0.1))})
    >>> hinge = mbd.revolute("hinge", ground.frame("bearing"), rod.frame("left"))
    >>> pendulum = mbd.System([ground, rod], [hinge], gravity=(0, -9.81, 0))
    >>> run = mbd.simulate(pendulum, t_end=0.002, dt=0.001)
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody
from dolfinx_mbd.structures.mesh_bodies.mesh_loads import BodyForce, PointForce, Pressure, Traction
from dolfinx_mbd.structures.mesh_bodies.mesh_motion import MeshMotion
from dolfinx_mbd.structures.mesh_bodies.vibration_modes import VibrationModes, vibration_modes

__all__ = [
    "BodyForce",
    "MeshBody",
    "MeshMotion",
    "PointForce",
    "Pressure",
    "Traction",
    "VibrationModes",
    "vibration_modes",
]
