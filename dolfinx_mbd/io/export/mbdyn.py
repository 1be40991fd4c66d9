"""Export to MBDyn's modal joint (`.fem`), with consistent inertia and stress stiffening.

The file has the record groups 1 to 19 without group 11 (lumped masses), because lumped masses would
replace the consistent invariants. The body frame is the frame of MBDyn's modal node. With the modes
U_j, the groups are:

    12  m, centre, inertia tensor about the centre
    14  I3_j = ∫ρ U_j            15  I4_j = ∫ρ r × U_j         16  I8_j = −∫ρ r̃ Ũ_j
    17  I5_jk = ∫ρ U_j × U_k     18  I9_jk = ∫ρ Ũ_j Ũ_k        19  geometric stiffness

The inertia tensor for the modal coordinates a_j is J = J_0 + (I8_j + I8_jᵀ) a_j − I9_jk a_j a_k.
MBDyn multiplies each matrix of group 19 by its load and adds it to the modal stiffness. The loads
are ω_xω_x, ω_yω_y, ω_zω_z, ω_xω_y, ω_yω_z, ω_zω_x (1 to 6), angular and translational acceleration
of the modal node (7 to 12), and forces and moments on the interfaces (from 13). The cases of
`Stiffening` have the same loads and signs. The stresses of these cases are self-equilibrated
(inertia relief). Therefore accelerations cause no additional stiffness, and the matrices 7 to 12
are zero.

References:
    MBDyn input manual, appendix "Modal Element Data"; MBDyn theory manual, "Modal joint".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.io.export.common import ExportReport, Task, requested_skin
from dolfinx_mbd.io.export.invariants import cross_moments, skew_moments
from dolfinx_mbd.io.export.text import ascii_labels, ascii_text, number_lines
from dolfinx_mbd.io.export.units import Units

Array = NDArray[np.float64]

_ONLY_MODAL_EQUATIONS = (
    "MBDyn adds geometric stiffness to the modal equations only: it does not shorten the distance "
    "between interfaces or change the inertia tensor, so energy is not conserved to second order"
)


def write_mbdyn(task: Task, *, skin: bool = False) -> ExportReport:
    """Write the `.fem` file of a body.

    The nodes of the file are the interfaces, the named points and, if `skin` is True, the nodes of
    the surface, for pictures. The rotations at points and at the surface are zero.
    """
    body = task.body
    surface, losses = requested_skin(body, skin)
    nodes = _Nodes(body, surface)
    stiff = body.stiffening is not None
    notes = [
        "MBDyn: the modal node is the origin of the body frame (use no 'origin node'); nodes have "
        "the orientation of the body frame",
        "MBDyn: record groups 14 to 18 require a version from 2022 or later"
        + (", group 19 from 2023 or later with 'use automatic differentiation'" if stiff else ""),
    ]
    if stiff:
        names = ", ".join(nodes.labels[: len(body.interfaces)])
        notes.append(f"MBDyn: list the interface nodes in this order for group 19: {names}")
        losses = [_ONLY_MODAL_EQUATIONS, *losses]
    return task.save(_lines(body, nodes, task.report.units), losses=losses, notes=notes)


class _Nodes:
    """Labels, positions (nodes, 3) and motions per unit mode (n, nodes, 6) of all nodes."""

    def __init__(self, body: ReducedBody, skin: Skin | None) -> None:
        names = [i.name for i in body.interfaces] + [p.name for p in body.points]
        positions = [i.point for i in body.interfaces] + [p.position for p in body.points]
        motions = [i.motion.T[:, None] for i in body.interfaces]
        motions += [_without_rotation(p.modes[:, None]) for p in body.points]
        if skin is not None:
            names += [f"skin_{k}" for k in range(1, len(skin.points) + 1)]
            positions += list(skin.points)
            motions.append(_without_rotation(skin.modes))
        self.labels = ascii_labels(names)
        self.positions = np.reshape(positions, (-1, 3))
        self.motions = np.concatenate(motions, axis=1).reshape(body.num_modes, -1, 6)


def _without_rotation(displacements: Array) -> Array:
    """Append three rotations that are zero to displacements with shape (..., 3)."""
    return np.concatenate([displacements, np.zeros_like(displacements)], axis=-1)


def _lines(body: ReducedBody, nodes: _Nodes, units: Units) -> Iterator[str]:
    """Yield the lines of the file."""
    n = body.num_modes
    yield "** MBDyn MODAL DATA FILE"
    yield f"** body {ascii_text(body.name)[:80]}, frame: {ascii_text(body.reference)[:80]}"
    yield f"** units {units.statement}"
    for label, interface in zip(nodes.labels, body.interfaces, strict=False):
        axes = ", ".join(" ".join(f"{x:.9g}" for x in axis) for axis in interface.axes.T)
        yield f"** interface {label} ({interface.kind}), its axes x, y, z in the body: {axes}"
    yield "** RECORD GROUP 1, HEADER"
    yield "**   REVISION,  NODE,  NORMAL, ATTACHMENT, CONSTRAINT, REJECTED MODES."
    yield f"      REV0  {len(nodes.labels)}  {n}  0  0  0"
    yield from _group(2, "FINITE ELEMENT NODE LIST")
    for start in range(0, len(nodes.labels), 6):
        yield " ".join(nodes.labels[start : start + 6])
    yield from _group(3, "INITIAL MODAL DISPLACEMENTS", np.zeros(n))
    yield from _group(4, "INITIAL MODAL VELOCITIES", np.zeros(n))
    for axis in range(3):
        yield from _group(5 + axis, f"NODAL {'XYZ'[axis]} COORDINATES", nodes.positions[:, axis])
    yield from _group(8, "MODE SHAPES")
    for k, (mode, motion) in enumerate(zip(body.modes, nodes.motions, strict=True), 1):
        yield f"**    NORMAL MODE SHAPE # {k:4d}  {ascii_text(mode.label)[:80]}"
        yield from number_lines(motion)
    yield from _group(9, "MODAL MASS MATRIX", body.mass)
    yield from _group(10, "MODAL STIFFNESS MATRIX", body.stiffness)
    yield "** (no group 11: the following invariants belong to the consistent mass)"
    yield from _group(12, "GLOBAL INERTIA", [body.total_mass])
    yield from number_lines(body.centre)
    yield from number_lines(body.central_inertia)
    yield from _group(13, "MODAL DAMPING MATRIX", body.damping)
    yield from _invariants(body)
    if body.stiffening is not None:
        yield from _stress_stiffening(body)
    yield "** END OF FILE"


def _group(number: int, title: str, values: ArrayLike | None = None) -> Iterator[str]:
    """Yield the title and the numbers of a record group."""
    yield "**"
    yield f"** RECORD GROUP {number}, {title}"
    if values is not None:
        yield from number_lines(values)


def _invariants(body: ReducedBody) -> Iterator[str]:
    """Yield the groups 14 to 18, with three rows each and the modes side by side."""
    n = body.num_modes
    cross, skew = cross_moments(body), skew_moments(body)
    yield from _group(14, "INVARIANT 3", body.first_moments[1:].T)
    yield from _group(15, "INVARIANT 4", cross[0, 1:].T)
    yield from _group(16, "INVARIANT 8", -skew[0, 1:].transpose(1, 0, 2).reshape(3, 3 * n))
    yield from _group(17, "INVARIANT 5", cross[1:, 1:].transpose(2, 0, 1).reshape(3, n * n))
    yield from _group(18, "INVARIANT 9", skew[1:, 1:].transpose(2, 0, 1, 3).reshape(3, 3 * n * n))


def _stress_stiffening(body: ReducedBody) -> Iterator[str]:
    """Yield group 19: six matrices for spins, six zero matrices, and six for each interface."""
    assert body.stiffening is not None
    n = body.num_modes
    forces = body.stiffening.interfaces.reshape(-1, n, n)
    matrices = np.concatenate([body.stiffening.spin, np.zeros((6, n, n)), forces])
    yield "** stress stiffening with inertia relief: loads are balanced by the acceleration that"
    yield "** they cause, so matrices 7 to 12 (acceleration of the modal node) are zero"
    yield from _group(19, "MODAL STRESS STIFFENING")
    yield str(len(matrices))
    for index, matrix in enumerate(matrices, 1):
        yield str(index)
        yield from number_lines(matrix)
