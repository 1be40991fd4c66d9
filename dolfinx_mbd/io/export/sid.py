"""Export to SID_FEM files, the standard input data of flexible bodies.

Each item is a Taylor series M0 + M1 q in the elastic coordinates q. With the modes φ_k, the
position r and the matrix ũ of the product u×, and with integrals over the mass in the body frame,
the items are

    mdCM = ∫r, M1 = Ctᵀ        Ct_k = ∫φ_k              Cr_k = ∫r×φ_k, M1_kq = ∫φ_q×φ_k
    J, J.M1_l = −(C4_l + C4_lᵀ), C4_l = ∫r̃φ̃_l          Gr_l = −2 C4_l      Ge_kl = 2 ∫φ_l×φ_k
    Oe: modal forces due to ω_xω_x, ω_yω_y, ω_zω_z, ω_xω_y, ω_yω_z, ω_xω_z; M1 is their derivative

They appear in the equations of motion

    m a − mdCM×α + Ctᵀq̈ + 2ω×Ctᵀq̇ + ω×(ω×mdCM) = force
    mdCM×a + Jα + Crᵀq̈ + Σ Gr_l q̇_l ω + ω×Jω = moment
    Ct a + Cr α + Me q̈ + Σ Ge_l q̇_l ω + Oe (ω_xω_x, ...) + Ke q + De q̇ = Σ phiᵀ force + psiᵀ moment

First-order terms contain the geometric stiffness. Let σ_s be the stress of a free body under a unit
load s (the product of two spins, or a force or moment at an interface) and the inertia forces of
the rigid acceleration due to this load, and K_s,kl = ∫ σ_s : (∇φ_k ∇φ_lᵀ). A body with the stress
Σ s σ_s stores ½ qᵀ(Ke + Σ s K_s)q, so that tension (σ > 0) stiffens. Consequently, the left side of
the equations contains + Σ s K_s q:

- products of spins are on the left: Oe.M1 contains + K_s for each of the six products;
- forces are on the right: phi.M1 and psi.M1 of an interface contain − K_s;
- a and α cause no additional stress. Σ s σ_s includes the inertia forces of the accelerations that
  the loads cause; by Newton's law, these accelerations are a − g and α. Stress terms in Ct.M1 or
  Cr.M1 would count this stress twice. Therefore Ct.M1 is zero, and Cr.M1 contains inertia only.

Nodes have the axes of the body frame (AP.M0 = I), because programs differ in the direction of AP.

Dialects differ in the order of the indices of M1, in the shape of J, and in the columns of Gr and
Ge for mode l and axis a of ω:

    simpack     m1(row, q, column), J is 6×1 (xx, yy, zz, xy, xz, yz), columns (a−1)nq+l; as in
                files of FEMBS for Simpack
    embslib     like simpack, but columns 3(l−1)+a; for EMBSlib, which assumes a unit matrix Me (SI
                units and orthonormal modes), and for PyMbs
    fembeam     m1(row, column, q), J is 3×3, columns 3(l−1)+a; for FEMBeam and welib

A program that assumes other columns computes wrong Coriolis forces. Line 1 of the file states the
conventions of its dialect.

References:
    Wallrapp, Standardization of flexible body modeling in multibody system codes, Mechanics of
    Structures and Machines 22 (1994) 283; Schwertassek, Wallrapp, Dynamik flexibler
    Mehrkörpersysteme, Vieweg 1999, section 6.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import choice
from dolfinx_mbd.io.export.common import ExportReport, Task, requested_skin
from dolfinx_mbd.io.export.invariants import cross_moments, skew_moments
from dolfinx_mbd.io.export.text import ascii_labels
from dolfinx_mbd.io.export.units import Units
from dolfinx_mbd.kernels.rotations import skew

Array = NDArray[np.float64]
Dialect = Literal["simpack", "embslib", "fembeam"]

_SPIN_AXES = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))  # columns of Oe
_INERTIA_AXES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # rows of J as a column

_RULES = {
    "simpack": "m1(row,q,col), J(6)=xx yy zz xy xz yz, Gr Ge column (a-1)*nq+l",
    "embslib": "m1(row,q,col), J(6)=xx yy zz xy xz yz, Gr Ge column 3*(l-1)+a",
    "fembeam": "m1(row,col,q), J(3,3), Gr Ge column 3*(l-1)+a",
}
_ZERO, _DIAGONAL, _FULL = 0, 1, 3  # codes for the structure of M0
_ONLY_ELASTIC_COORDINATES = (
    "SID_FEM contains the effect of geometric stiffness on the elastic coordinates, but not on the "
    "inertia tensor"
)


def write_sid(task: Task, *, dialect: Dialect = "simpack", skin: bool = False) -> ExportReport:
    """Write the SID_FEM file of a body in a dialect; the module describes the dialects.

    The nodes of the file are the interfaces, the named points and, if `skin` is True, the nodes of
    the surface, for pictures. The rotations at points and at the surface are zero.
    """
    choice("dialect", dialect, get_args(Dialect))
    body = task.body
    surface, losses = requested_skin(body, skin)
    frequencies = [mode.frequency for mode in task.original.modes]
    lines = _lines(body, frequencies, task.report.units, dialect, surface)
    names = [f"{k} {i.name!r}" for k, i in enumerate(body.interfaces, 1)]
    names += [f"{k} {p.name!r}" for k, p in enumerate(body.points, len(names) + 1)]
    if body.stiffening is not None:
        losses = [_ONLY_ELASTIC_COORDINATES, *losses]
    note = f"SID_FEM: dialect {dialect}, {_RULES[dialect]}; nodes {', '.join(names)}"
    return task.save(lines, losses=losses, notes=[note])


@dataclass(frozen=True)
class _Taylor:
    """A named Taylor series with M0 (rows, columns) and, optionally, M1 (rows, nq, columns)."""

    name: str
    m0: Array
    m1: Array | None = None

    def lines(self, indent: str, num_modes: int, dialect: Dialect) -> Iterator[str]:
        """Yield the lines of the item; entries of M0 and M1 that are zero are omitted."""
        rows, columns = self.m0.shape
        structure = _FULL
        if self.m1 is None and not self.m0.any():
            structure = _ZERO
        elif self.m1 is None and rows == columns:
            diagonal = np.array_equal(self.m0, np.diag(np.diag(self.m0)))
            structure = _DIAGONAL if diagonal else _FULL
        inner = indent + "    "
        yield indent + self.name
        keys = ("order", "nrow", "ncol", "nq", "nqn", "structure")
        values = (int(self.m1 is not None), rows, columns, num_modes, 0, structure)
        for key, value in zip(keys, values, strict=True):
            yield f"{inner}{key:<21} = {value:4d}"
        for i, j in np.argwhere(self.m0):
            yield f"{inner}m0({i + 1:3d},{j + 1:3d})           = {_number(self.m0[i, j])}"
        if self.m1 is not None:
            m1 = self.m1.swapaxes(1, 2) if dialect == "fembeam" else self.m1
            for i, j, k in np.argwhere(m1):
                entry = f"m1({i + 1:3d},{j + 1:3d},{k + 1:3d})"
                yield f"{inner}{entry}       = {_number(m1[i, j, k])}"
        yield f"{indent}end {self.name}"


def _number(value: float) -> str:
    """Return a number with 17 digits and the exponent letter of Fortran."""
    return f"{value:.16E}".replace("E", "D")


def _lines(
    body: ReducedBody, frequencies: list[float], units: Units, dialect: Dialect, skin: Skin | None
) -> Iterator[str]:
    """Yield the lines of the file; `frequencies` of the modes are in Hz."""
    n = body.num_modes
    nodes = list(_nodes(body, skin))
    stiff = "no geometric stiffness" if body.stiffening is None else "geometric stiffness included"
    yield (
        f"{len(nodes)} {n} : No. nodes, No. modes; dialect {dialect}: {_RULES[dialect]}, "
        "Oe(6)=xx yy zz xy yz xz; "
        f"{stiff} (inertia relief); units {units.statement}"
    )
    yield "part"
    is_like_fembs = dialect != "fembeam"
    name = f"                 = {ascii_labels([body.name])[0]}" if is_like_fembs else ""
    yield f"    new modal{name}"
    yield "        refmod"
    yield f"            mass                  = {_number(body.total_mass)}"
    yield f"            nelastq               = {n:4d}"
    labels = [f"Eigen Mode {k:4d}" for k in range(1, n + 1)]
    if not is_like_fembs:
        labels = list(ascii_labels(mode.label for mode in body.modes))
    for k, (label, frequency) in enumerate(zip(labels, frequencies, strict=True), 1):
        yield f"            ielastq ({k:4d})        = {label} : {frequency:14.6f} Hz"
    yield "        end refmod"
    yield "        frame"
    for number, items in enumerate(nodes, 1):
        yield f"            new node              = {number:4d}"
        yield "                rframe            = body ref"
        for item in items:
            yield from item.lines(" " * 16, n, dialect)
        yield "            end node"
    yield "        end frame"
    for item in _integrals(body, dialect):
        yield from item.lines(" " * 8, n, dialect)
    yield "    end modal"
    yield "end part"


def _nodes(body: ReducedBody, skin: Skin | None) -> Iterator[list[_Taylor]]:
    """Yield the items of each interface, named point and node of the surface."""
    cases = None if body.stiffening is None else body.stiffening.interfaces
    for k, interface in enumerate(body.interfaces):
        yield _interface_items(interface, None if cases is None else cases[k])
    for point in body.points:
        yield _point_items(point.position, point.modes)
    if skin is not None:
        for k, position in enumerate(skin.points):
            yield _point_items(position, skin.modes[:, k])


def _interface_items(interface: Interface, cases: Array | None) -> list[_Taylor]:
    """Return the items of an interface with its geometric stiffness matrices `cases` (6, n, n)."""
    phi, psi = interface.motion[:3], interface.motion[3:]
    rotations = np.stack([skew(column) for column in psi.T], axis=1)
    return [
        _Taylor("origin", interface.point[:, None], phi[:, :, None]),
        _Taylor("phi", phi, None if cases is None else -cases[:3]),
        _Taylor("psi", psi, None if cases is None else -cases[3:]),
        _Taylor("AP", np.eye(3), rotations),
    ]


def _point_items(position: Array, modes: Array) -> list[_Taylor]:
    """Return the items of a point without rotations; `modes` has the shape (n, 3)."""
    n = len(modes)
    return [
        _Taylor("origin", position[:, None], modes.T[:, :, None]),
        _Taylor("phi", modes.T),
        _Taylor("psi", np.zeros((3, n))),
        _Taylor("AP", np.eye(3)),
    ]


def _integrals(body: ReducedBody, dialect: Dialect) -> Iterator[_Taylor]:
    """Yield the Taylor expansions of the integrals of the standard input data."""
    n = body.num_modes
    cross, skews = cross_moments(body), skew_moments(body)
    S = body.first_moments
    yield _Taylor("mdCM", S[0][:, None], S[1:].T[:, :, None])
    J, J1 = -skews[0, 0], -(skews[0, 1:] + skews[1:, 0])
    if dialect != "fembeam":
        rows, columns = np.transpose(_INERTIA_AXES)
        yield _Taylor("J", J[rows, columns][:, None], J1[:, rows, columns].T[:, :, None])
    else:
        yield _Taylor("J", J, J1.transpose(1, 0, 2))
    yield _Taylor("Ct", S[1:])
    yield _Taylor("Cr", cross[0, 1:], cross[1:, 1:].transpose(1, 0, 2))
    yield _Taylor("Me", body.mass)
    yield _Taylor("Gr", _columns(-2.0 * skews[0, 1:], dialect))
    yield _Taylor("Ge", _columns(2.0 * cross[1:, 1:], dialect))
    Oe = _spin_terms(skews[1:])
    Oe_derivative = Oe[:, 1:].copy()
    if body.stiffening is not None:
        Oe_derivative += body.stiffening.spin.transpose(1, 2, 0)
    yield _Taylor("Oe", Oe[:, 0], Oe_derivative)
    yield _Taylor("ksigma", np.zeros((n, 1)))
    yield _Taylor("Ke", body.stiffness)
    yield _Taylor("De", body.damping)


def _columns(matrices: Array, dialect: Dialect) -> Array:
    """Return the matrices (nq, rows, 3) of all modes side by side, shape (rows, 3 nq)."""
    order = (1, 2, 0) if dialect == "simpack" else (1, 0, 2)
    return matrices.transpose(order).reshape(matrices.shape[1], -1)


def _spin_terms(skews: Array) -> Array:
    """Return the coefficients (..., 6) of products of spins in ωᵀ A ω, in the order of Oe."""
    return np.stack(
        [skews[..., a, b] + (skews[..., b, a] if a != b else 0.0) for a, b in _SPIN_AXES], axis=-1
    )
