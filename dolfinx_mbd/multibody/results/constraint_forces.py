"""Forces of joints over time, from the multipliers of the constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.assembly.assembler import Assembler, extent
from dolfinx_mbd.multibody.assembly.redundancy import least_norm_multipliers
from dolfinx_mbd.multibody.results.histories import rotation_matrices

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.model.system import SystemData
    from dolfinx_mbd.multibody.results.solution import Solution

__all__ = ["interface_wrenches", "least_norm_history"]

Array = NDArray[np.float64]


def interface_wrenches(
    solution: Solution, system: SystemData, multipliers: Array, body: int
) -> dict[str, Array]:
    """Return the wrenches at the frames of a body; see `BodyHistory.wrenches`.

    Args:
        solution: The states.
        system: The mechanism with the constraints to which the multipliers belong.
        multipliers: Multipliers over time, shape (nt, nc).
        body: Number of the body.
    """
    frames = system.frame_slices[body]
    rotation = solution.q[:, system.q_slices[body]][:, 3:7]
    at = Assembler(system)
    wrenches = np.zeros((len(solution), frames.stop - frames.start, 2, 3))
    for row, t in enumerate(solution.time):
        at.q[:], at.v[:], at.a[:] = solution.q[row], solution.v[row], solution.a[row]
        at.lam[:], at.angles[:] = multipliers[row], solution.angles[row]
        at.residual(float(t))
        wrenches[row] = at.wrenches[frames].reshape(-1, 2, 3)
    rotated = np.einsum("tji,tfpj->tfpi", rotation_matrices(rotation), wrenches)
    names = system.bodies[body].frame_names
    return {name: rotated[:, f].reshape(len(solution), 6) for f, name in enumerate(names)}


def least_norm_history(solution: Solution) -> Array:
    """Return the multipliers of least norm of all rows, redundant ones included, (nt, nc)."""
    whole = solution.system.whole
    at, part = Assembler(whole), Assembler(solution.system)
    multipliers = np.zeros((len(solution), whole.num_constraints))
    for k, t in enumerate(solution.time):
        at.q[:] = part.q[:] = solution.q[k]
        at.update_poses(float(t))
        part.update_poses(float(t))
        jacobians = at.jacobians()
        matrices = at.constraint_matrix(jacobians), part.constraint_matrix(jacobians)
        multipliers[k] = least_norm_multipliers(whole, *matrices, solution.lam[k], extent(at))
    return multipliers
