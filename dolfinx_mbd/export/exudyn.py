"""Reduced bodies for Exudyn: its `ObjectFFRFreducedOrderInterface`, as a file and as an object.

Exudyn computes the inertia of a reduced body from the full mass matrix; here the same constants
come from the moments S and H, so that neither mesh nor full matrices are needed and nothing is lost
but what Exudyn does not have: geometric stiffening, and a damping matrix other than a combination
of mass and stiffness.  With [a] the matrix of a×, per mode k (and l):

    mPsiTildePsi        −∫ρ ψ_k×ψ_l              mXRefTildePsi       −∫ρ x×ψ_l
    mPsiTildePsiTilde   ∫ρ (ψ_k·ψ_l I − ψ_l⊗ψ_k)  mXRefTildePsiTilde  ∫ρ (x·ψ_l I − ψ_l⊗x)
    mPhitTPsi           ∫ρ ψ_l                   mPhitTPsiTilde      [∫ρ ψ_l]

Markers need nodes with shapes.  Each interface gets six, on its axes around its point, that move
with it as a rigid body: a `MarkerSuperElementPosition` or `MarkerSuperElementRigid` on these six
with equal weights is the interface's frame, whether the interface is rigid or averaged.  Then come
the named points and the nodes of the skin.  Their numbers are in `marker_nodes`, and in the file as
``interfaceNames``, ``interfaceNodes``, ``pointNames``, ``pointNodes``.

    fem = to_exudyn(body)
    rod = fem.AddObjectFFRFreducedOrder(mbs, positionRef=..., initialVelocity=...)
    nodes = marker_nodes(body)["big_end"]
    marker = mbs.AddMarker(MarkerSuperElementRigid(bodyNumber=rod["oFFRFreducedOrder"],
        meshNodeNumbers=nodes, weightingFactors=[1/6] * 6))

References:
    A. Zwölfer, J. Gerstmayr, The nodal-based floating frame of reference formulation with modal
    reduction, Acta Mechanica 232 (2021), 835-851.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.export.common import SI, ExportReport, Units, ascii_text, prepare, write_binary
from dolfinx_mbd.kernels.rotations import axial, skew

__all__ = ["marker_nodes", "to_exudyn", "write"]

Array = NDArray[np.float64]

FILE_VERSION = 1
"""Of Exudyn's file of an `ObjectFFRFreducedOrderInterface`."""

ARM = 0.05
"""Distance of an interface's nodes from its point over the radius of gyration of the body."""

NODES = 6
"""Nodes of an interface."""


def write(
    body: ReducedBody, path: str | Path, *, units: Units | str = SI, overwrite: bool = False
) -> ExportReport:
    """Write an ``.npz`` for `ObjectFFRFreducedOrderInterface().LoadFromFile(path)`.

    As all of Exudyn's files of this kind it holds a pickled dictionary (empty here): a reader
    should know where it comes from.

    Args:
        body: In SI, with elastic coordinates.
        path: The file; ``.npz`` is added if it has no suffix.
        units: Of the numbers in the file.
        overwrite: Replace a file that is there already and has another content.

    Raises:
        ValueError: If the body has no elastic coordinates.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written.
    """
    scaled, path, report = prepare(body, path, "exudyn", units)
    numbers = marker_nodes(scaled)
    interfaces = [i.name for i in scaled.interfaces]
    points = [p.name for p in scaled.points]
    data = _data(scaled) | {
        "fileVersion": FILE_VERSION,
        "type": "ObjectFFRFreducedOrderInterface",
        "interfaceNames": np.array(interfaces, dtype=str),
        "interfaceNodes": np.array([numbers[n] for n in interfaces], dtype=int).reshape(-1, NODES),
        "pointNames": np.array(points, dtype=str),
        "pointNodes": np.array([numbers[n] for n in points], dtype=int).reshape(-1),
        "units": ascii_text(report.units.statement),
    }

    def dump(file: BinaryIO) -> None:
        np.savez(file, **data)

    notes = ["load it by exudyn.FEM.ObjectFFRFreducedOrderInterface().LoadFromFile(path)"]
    if body.damping.any():
        notes.append(
            "the body's damping matrix is not in the file; Exudyn takes proportional damping when "
            "the object is added"
        )
    return report.with_files(
        write_binary(path, dump, "Exudyn file", overwrite=overwrite), notes=notes
    )


def to_exudyn(body: ReducedBody) -> Any:
    """Exudyn's `ObjectFFRFreducedOrderInterface` of a body, in SI, ready to be added to a system.

    Geometric stiffening and damping of the body are not in it.

    Raises:
        ImportError: If Exudyn is not installed.
        ValueError: If the body has no elastic coordinates.
    """
    from exudyn.FEM import ObjectFFRFreducedOrderInterface

    if body.num_modes == 0:
        raise InputError(
            f"body {body.name!r} has no elastic coordinates; use exudyn's rigid bodies for it"
        )
    result = ObjectFFRFreducedOrderInterface()
    result.SetWithDictionary(_data(body))
    full = np.zeros((result.nODE2FFRFreduced, result.nODE2FFRFreduced))
    full[:3, :3], full[result.nODE2rigid :, result.nODE2rigid :] = result.Mtt, body.mass
    result.massMatrixFFRFreduced = full
    return result


def marker_nodes(body: ReducedBody) -> dict[str, list[int]]:
    """Numbers of the nodes for markers: six for each interface, one for each named point.

    Raises:
        ValueError: If an interface and a point have one name.
    """
    names = [i.name for i in body.interfaces] + [p.name for p in body.points]
    if len(set(names)) < len(names):
        raise InputError(f"interfaces and points must have names of their own, got {names}")
    first = NODES * len(body.interfaces)
    numbers = {
        i.name: list(range(NODES * k, NODES * (k + 1))) for k, i in enumerate(body.interfaces)
    }
    return numbers | {p.name: [first + k] for k, p in enumerate(body.points)}


def _nodes(body: ReducedBody) -> tuple[Array, Array]:
    """Positions (N, 3) and modes (n, N, 3): interfaces, points, skin."""
    arm = ARM * np.sqrt(np.trace(body.central_inertia) / body.total_mass)
    positions, modes = [], []
    for i in body.interfaces:
        for offset in arm * np.vstack([i.axes.T, -i.axes.T]):
            positions.append(i.point + offset)
            modes.append(i.motion[:3] - skew(offset) @ i.motion[3:])  # d + θ×offset
    for p in body.points:
        positions.append(p.position)
        modes.append(p.modes.T)
    n = body.num_modes
    x: NDArray = np.array(positions).reshape(-1, 3)
    psi: NDArray = np.array(modes).reshape(-1, 3, n).transpose(2, 0, 1)
    if body.skin is not None:
        x = np.vstack([x, body.skin.points])
        psi = np.concatenate([psi, body.skin.modes], axis=1)
    if not len(x):  # Exudyn wants at least one
        x, psi = np.zeros((1, 3)), np.zeros((n, 1, 3))
    return x, psi


def _data(body: ReducedBody) -> dict[str, Any]:
    """What the object is made of, by the names in its file."""
    n, S, H = body.num_modes, body.first_moments, body.second_moments
    x, psi = _nodes(body)
    first = len(x) if body.skin is None else len(x) - len(body.skin.points)
    triangles = np.zeros((0, 3), dtype=int) if body.skin is None else body.skin.triangles + first
    crossed = np.array([[axial(H[k, 1 + j]) for j in range(n)] for k in range(n + 1)])
    trace = np.einsum("klaa->kl", H)[:, 1:, None, None] * np.eye(3)
    double = trace - H[:, 1:].transpose(0, 1, 3, 2)  # ψ_k·ψ_l I − ψ_l⊗ψ_k, k from 0
    rotations = 4
    return {
        "modeBasis": psi.reshape(n, -1).T.copy(),
        "trigList": triangles.tolist(),
        "postProcessingModes": {},
        "massMatrixReduced": np.array(body.mass),
        "stiffnessMatrixReduced": np.array(body.stiffness),
        "infoList": np.array([n, len(x), 3, rotations, 3 + rotations, 3 + rotations + n]),
        "rigidBodyNodeType": "NodeType.RotationEulerParameters",
        "xRef": x.ravel(),
        "inertiaLocal": body.inertia,
        "Mtt": body.total_mass * np.eye(3),
        "totalMass": body.total_mass,
        "chiU": body.centre,
        "chiUtilde": skew(body.centre),
        "mPsiTildePsi": -crossed[1:].transpose(0, 2, 1).reshape(3 * n, n),
        "mPsiTildePsiTilde": double[1:].transpose(0, 2, 1, 3).reshape(3 * n, 3 * n),
        "mPhitTPsi": S[1:].T.copy(),
        "mPhitTPsiTilde": np.hstack([skew(s) for s in S[1:]]),
        "mXRefTildePsi": -crossed[0].T,
        "mXRefTildePsiTilde": double[0].transpose(1, 0, 2).reshape(3, 3 * n),
    }
