"""An analysis: the number of motions that a mechanism permits."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.mechanism.system import System

__all__ = ["mobility"]


def mobility(system: System) -> int:
    """Return the number of independent velocities at the initial positions."""
    eqs, state = Assembler(system), consistent_state(system)
    eqs.q[:] = state.q
    eqs.update_poses(state.time)
    rank = int(np.linalg.matrix_rank(eqs.constraint_matrix()))
    return int(system.num_velocities - rank)
