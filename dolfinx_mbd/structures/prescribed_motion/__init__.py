"""Deformation of a body with a prescribed rigid motion, at full order and in modal coordinates.

The examples of this folder assume the following lines:

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> from dolfinx_mbd.structures.prescribed_motion import *
    >>> mesh = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.02)], [2, 1, 1])
    >>> left = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.0))
    >>> right = locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.2))
    >>> ends = {"left": left, "right": right}
    >>> body = mbd.reduce(mesh, mbd.STEEL, interfaces=ends, num_modes=2).body
    >>> motion = mbd.structures.PrescribedMotion(omega=(0, 0, 100))
    >>> times = {"t_end": 1e-4, "dt": 2e-5}
    >>> run = mbd.structures.transient(mesh, mbd.STEEL, motion=motion, interfaces=ends, **times)
    >>> quaternions, spin = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1)), np.tile([0.0, 0.0, 3.0], (3, 1))
    >>> history = SimpleNamespace(time=[0.0, 0.1, 0.2], rotation=quaternions, omega=spin)
    >>> history.acceleration = history.alpha = np.zeros((3, 3))
"""

from dolfinx_mbd import requirements as requirements  # checks DOLFINx, PETSc and SLEPc
from dolfinx_mbd.structures.prescribed_motion.modal_coordinates import (
    ModalTransient,
    modal_transient,
    quasi_static_deformation,
)
from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion
from dolfinx_mbd.structures.prescribed_motion.observation import Transient
from dolfinx_mbd.structures.prescribed_motion.solve import TransientOptions, transient

__all__ = [
    "ModalTransient",
    "PrescribedMotion",
    "Transient",
    "TransientOptions",
    "modal_transient",
    "quasi_static_deformation",
    "transient",
]
