"""The wrenches on a body of a simulated mechanism: what joints, drivers and loads do at its frames.

With the motion of its frame they are the loads of a body at full order (`PrescribedMotion`), those
under which a static correction puts it, and the boundary values of a stress analysis elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import instance
from dolfinx_mbd.multibody.assembly import Assembler
from dolfinx_mbd.multibody.solution import Solution, rotation_matrices

__all__ = ["interface_wrenches"]

Array = NDArray[np.float64]


def interface_wrenches(solution: Solution, body: str) -> dict[str, Array]:
    """All that joints, drivers and loads do to a body at its interfaces, over the saved times.

    With redundant constraints that were left out the forces are those of the ones that remain; with
    ``redundant="keep"`` those with the least norm. Distributed loads (`PatternLoad`) act between
    the interfaces and are not among them.

    Args:
        solution: Of a mechanism.
        body: Name of a body.

    Returns:
        By interface (of a rigid body: frame), force and moment on the body about the interface's
        point where it is at the instant, in body components, shape (nt, 6), N and N m.

    Raises:
        ValueError: The system has no such body.
    """
    instance("solution", solution, Solution)
    system, lam = solution.system, solution.lam
    if system.least_norm:
        system, lam = system.whole, solution._least_norm
    k = system.body_index(body)
    history, frames = solution.body(body), system.frame_slices[k]
    at = Assembler(system)
    found = np.zeros((len(solution), frames.stop - frames.start, 2, 3))
    for row, t in enumerate(solution.time):
        at.q[:], at.v[:], at.a[:] = solution.q[row], solution.v[row], solution.a[row]
        at.lam[:], at.angles[:] = lam[row], solution.angles[row]
        at.residual(float(t))
        found[row] = at.wrenches[frames].reshape(-1, 2, 3)
    turned = np.einsum("tji,tfpj->tfpi", rotation_matrices(history.rotation), found)
    names = system.bodies[k].frame_names
    return {name: turned[:, f].reshape(len(solution), 6) for f, name in enumerate(names)}
