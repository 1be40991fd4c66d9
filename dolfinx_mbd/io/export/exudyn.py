"""Export to Exudyn's `ObjectFFRFreducedOrderInterface`, as a file or as an object.

Exudyn computes the inertia constants of a reduced body from the full mass matrix. This module
computes them from the moments S = ∫ρ ψ_k and H = ∫ρ ψ_k⊗ψ_l, without the mesh or full matrices.
Exudyn has no geometric stiffening, and only proportional damping. With the matrix [a] of the
product a×, Exudyn's constants for the modes k and l are:

    mPsiTildePsi        −∫ρ ψ_k×ψ_l              mXRefTildePsi       −∫ρ x×ψ_l
    mPsiTildePsiTilde   ∫ρ (ψ_k·ψ_l I − ψ_l⊗ψ_k)  mXRefTildePsiTilde  ∫ρ (x·ψ_l I − ψ_l⊗x)
    mPhitTPsi           ∫ρ ψ_l                   mPhitTPsiTilde      [∫ρ ψ_l]

Markers refer to nodes. Each interface, rigid or averaged, has six nodes on the axes through its
point. These nodes move with the interface as a rigid body. A `MarkerSuperElementPosition` or
`MarkerSuperElementRigid` on the six nodes with equal weights represents the frame of the interface.
The nodes of named points and of the skin follow. `marker_nodes` returns the node numbers, and the
file contains them as `interfaceNames`, `interfaceNodes`, `pointNames` and `pointNodes`.

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

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.common import FORMATS, ExportReport, Task
from dolfinx_mbd.io.export.invariants import cross_moments, skew_moments
from dolfinx_mbd.io.export.text import ascii_text
from dolfinx_mbd.kernels.rotations import skew
from dolfinx_mbd.optional import optional_module

Array = NDArray[np.float64]

FILE_VERSION = 1  # version of Exudyn's file format of `ObjectFFRFreducedOrderInterface`
ARM = 0.05  # ratio of the distance of nodes from the interface to the radius of gyration
NODES = 6  # number of nodes of an interface


def write_exudyn(task: Task) -> ExportReport:
    """Write a file for `ObjectFFRFreducedOrderInterface().LoadFromFile(path)`.

    Like all files of this type, the file contains a pickled dictionary (here an empty one). Open
    such files only from sources that you trust.
    """
    body = task.body
    numbers = marker_nodes(body)
    interfaces, points = [i.name for i in body.interfaces], [p.name for p in body.points]
    data = _data(body) | {
        "fileVersion": FILE_VERSION,
        "type": "ObjectFFRFreducedOrderInterface",
        "interfaceNames": np.array(interfaces, dtype=str),
        "interfaceNodes": np.array([numbers[n] for n in interfaces], dtype=int).reshape(-1, NODES),
        "pointNames": np.array(points, dtype=str),
        "pointNodes": np.array([numbers[n] for n in points], dtype=int).reshape(-1),
        "units": ascii_text(task.report.units.statement),
    }

    def dump(file: BinaryIO) -> None:
        np.savez(file, **data)

    notes = ["load it with exudyn.FEM.ObjectFFRFreducedOrderInterface().LoadFromFile(path)"]
    if body.damping.any():
        text = "the file does not contain the damping matrix; define proportional damping when you"
        notes.append(f"{text} add the object")
    return task.save(dump, notes=notes)


def to_exudyn(body: ReducedBody) -> Any:
    """Return Exudyn's `ObjectFFRFreducedOrderInterface` of a body, for use in a system.

    The object contains neither geometric stiffening nor damping.

    Args:
        body: The body, in SI units, with elastic coordinates.

    Raises:
        ImportError: Exudyn is not installed.
        InputError: The body has no elastic coordinates.
    """
    fem = optional_module("exudyn.FEM", "objects of Exudyn")
    FORMATS["exudyn"].check(body)
    result = fem.ObjectFFRFreducedOrderInterface()
    result.SetWithDictionary(_data(body))
    rigid, size = result.nODE2rigid, result.nODE2FFRFreduced
    mass = np.zeros((size, size))
    mass[:3, :3] = result.Mtt
    mass[rigid:, rigid:] = body.mass
    result.massMatrixFFRFreduced = mass
    return result


def marker_nodes(body: ReducedBody) -> dict[str, list[int]]:
    """Return the zero-based node numbers of each interface and each named point of a body."""
    names = [i.name for i in body.interfaces] + [p.name for p in body.points]
    if len(set(names)) < len(names):
        expected = "a body whose interfaces and points have different names"
        text = f"body must be {expected}; got {names}"
        raise InputError(text, argument="body", value=body, expected=expected)
    count = len(body.interfaces)
    nodes = np.arange(NODES * count).reshape(count, NODES).tolist()
    nodes += [[NODES * count + k] for k in range(len(body.points))]
    return dict(zip(names, nodes, strict=True))


def _nodes(body: ReducedBody) -> tuple[Array, Array]:
    """Return the positions (nodes, 3) and mode shapes (n, nodes, 3) of all nodes."""
    arm = ARM * np.sqrt(np.trace(body.central_inertia) / body.total_mass)
    positions, modes = [], []
    for interface in body.interfaces:
        for offset in arm * np.vstack([interface.axes.T, -interface.axes.T]):
            positions.append(interface.point + offset)
            modes.append(interface.motion[:3] - skew(offset) @ interface.motion[3:])  # d + θ×offset
    for p in body.points:
        positions.append(p.position)
        modes.append(p.modes.T)
    n = body.num_modes
    x: NDArray = np.array(positions).reshape(-1, 3)
    psi: NDArray = np.array(modes).reshape(-1, 3, n).transpose(2, 0, 1)
    if body.skin is not None:
        x = np.vstack([x, body.skin.points])
        psi = np.concatenate([psi, body.skin.modes], axis=1)
    if not len(x):  # Exudyn requires at least one node
        x, psi = np.zeros((1, 3)), np.zeros((n, 1, 3))
    return x, psi


def _data(body: ReducedBody) -> dict[str, Any]:
    """Return the data of the object by their names in Exudyn's file."""
    n, S = body.num_modes, body.first_moments
    x, psi = _nodes(body)
    skin_start = len(x) if body.skin is None else len(x) - len(body.skin.points)
    no_triangles = np.zeros((0, 3), dtype=int)
    triangles = no_triangles if body.skin is None else body.skin.triangles + skin_start
    cross_products = cross_moments(body)[:, 1:]  # ψ_k×ψ_l, k from 0
    skew_products = -skew_moments(body)[:, 1:]  # ψ_k·ψ_l I − ψ_l⊗ψ_k, k from 0
    rotations = 4  # Euler parameters
    return {
        "modeBasis": psi.reshape(n, -1).T.copy(),
        "trigList": triangles.tolist(),
        "postProcessingModes": {},
        "massMatrixReduced": np.array(body.mass),
        "stiffnessMatrixReduced": np.array(body.stiffness),
        # Numbers of modes, nodes, translations, rotations, rigid and all coordinates
        "infoList": np.array([n, len(x), 3, rotations, 3 + rotations, 3 + rotations + n]),
        "rigidBodyNodeType": "NodeType.RotationEulerParameters",
        "xRef": x.ravel(),
        "inertiaLocal": body.inertia,
        "Mtt": body.total_mass * np.eye(3),
        "totalMass": body.total_mass,
        "chiU": body.centre,
        "chiUtilde": skew(body.centre),
        "mPsiTildePsi": -cross_products[1:].transpose(0, 2, 1).reshape(3 * n, n),
        "mPsiTildePsiTilde": skew_products[1:].transpose(0, 2, 1, 3).reshape(3 * n, 3 * n),
        "mPhitTPsi": S[1:].T.copy(),
        "mPhitTPsiTilde": np.hstack([skew(s) for s in S[1:]]),
        "mXRefTildePsi": -cross_products[0].T,
        "mXRefTildePsiTilde": skew_products[0].transpose(1, 0, 2).reshape(3, 3 * n),
    }
