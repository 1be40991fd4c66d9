"""SID_FEM: the standard input data of flexible bodies, as text.

Each datum is a Taylor series M0 + M1 q in the elastic coordinates q.  With the modes φ_k, the
position r, and ũ the matrix of u×, all integrals over the mass and in the body frame:

    mdCM = ∫r, M1 = Ctᵀ        Ct_k = ∫φ_k              Cr_k = ∫r×φ_k, M1_kq = ∫φ_q×φ_k
    J, J.M1_l = −(C4_l + C4_lᵀ), C4_l = ∫r̃φ̃_l          Gr_l = −2 C4_l      Ge_kl = 2 ∫φ_l×φ_k
    Oe: what ω_xω_x, ω_yω_y, ω_zω_z, ω_xω_y, ω_yω_z, ω_xω_z push on the modes, and its change with q

in the equations of motion

    m a − mdCM×α + Ctᵀq̈ + 2ω×Ctᵀq̇ + ω×(ω×mdCM) = force
    mdCM×a + Jα + Crᵀq̈ + Σ Gr_l q̇_l ω + ω×Jω = moment
    Ct a + Cr α + Me q̈ + Σ Ge_l q̇_l ω + Oe (ω_xω_x, ...) + Ke q + De q̇ = Σ phiᵀ force + psiᵀ moment

Geometric stiffness is in the terms of first order. Let σ_s be the stress that a unit load s (the
product of two spins, or a force or moment at an interface) causes together with the inertia forces
of the rigid acceleration it gives to the free body, and K_s,kl = ∫ σ_s : (∇φ_k ∇φ_lᵀ). A body with
the stress Σ s σ_s stores ½ qᵀ(Ke + Σ s K_s)q, with the sign that tension (σ > 0) stiffens. So the
left side of the equations has + Σ s K_s q:

- the spins stand on the left: Oe.M1 has + K_s of the six products;
- the forces stand on the right: phi.M1 and psi.M1 of an interface have − K_s;
- a and α cause no stress of their own. Σ s σ_s is in equilibrium with the sum of the accelerations
  that the loads give to the body, and by Newton's law that sum is a − g and α. Terms in Ct.M1 or
  Cr.M1 would count that stress twice: Ct.M1 is zero, and Cr.M1 is inertia alone.

Nodes have the axes of the body frame (AP.M0 = I), since programs differ in which way AP turns.

Dialects differ in the order of the indices of M1, in the shape of J, and in the columns of Gr and
Ge that belong to mode l and axis a of ω:

    simpack     m1(row, q, column), J is 6×1 (xx, yy, zz, xy, xz, yz), columns (a−1)nq+l: as FEMBS
                writes the files that Simpack reads
    embslib     as simpack, but columns 3(l−1)+a; for EMBSlib, which takes Me for the unit matrix
                (so in SI and of orthonormal modes), and for PyMbs
    fembeam     m1(row, column, q), J is 3×3, columns 3(l−1)+a; for FEMBeam and welib

With the wrong columns a reader computes wrong Coriolis forces. Line 1 of the file states all this.

References:
    Wallrapp, Standardization of flexible body modeling in multibody system codes, Mechanics of
    Structures and Machines 22 (1994) 283; Schwertassek, Wallrapp, Dynamik flexibler
    Mehrkörpersysteme, Vieweg 1999, section 6.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.checks import choice, instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.export.common import SI, ExportReport, Units, ascii_labels, prepare, write_text
from dolfinx_mbd.export.invariants import cross_moments, skew_moments
from dolfinx_mbd.kernels.rotations import skew

__all__ = ["Dialect", "write"]

Array = NDArray[np.float64]
Dialect = Literal["simpack", "embslib", "fembeam"]

_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))
"""Axes of the columns of Oe."""

_TENSOR = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Axes of the rows of J as a column."""

_RULES = {
    "simpack": "m1(row,q,col), J(6)=xx yy zz xy xz yz, Gr Ge column (a-1)*nq+l",
    "embslib": "m1(row,q,col), J(6)=xx yy zz xy xz yz, Gr Ge column 3*(l-1)+a",
    "fembeam": "m1(row,col,q), J(3,3), Gr Ge column 3*(l-1)+a",
}
_ZERO, _DIAGONAL, _FULL = 0, 1, 3
_ENTRIES_ONLY = (
    "SID_FEM holds no change of the inertia tensor by geometric stiffness, only its effect on "
    "the elastic coordinates"
)


def write(
    body: ReducedBody,
    path: str | Path,
    *,
    units: Units | str = SI,
    dialect: Dialect = "simpack",
    skin: bool = False,
    overwrite: bool = False,
) -> ExportReport:
    """Write the SID_FEM file of a body.

    Its nodes are numbered: the interfaces in their order, then the named points, then on request
    the nodes of the surface; the rotations of the last two are written as zero.

    Args:
        body: A body with interfaces and elastic coordinates.
        path: The file; ``.SID_FEM`` is added if it has no extension.
        units: Units of the numbers.
        dialect: ``"simpack"`` (default), ``"embslib"`` or ``"fembeam"``: order of indices and
            columns, and the shape of J, see the module.
        skin: Whether to write the nodes of the surface too, for pictures.
        overwrite: Replace a file that is there already and has another content.

    Returns:
        What was written and what the format loses of it.

    Raises:
        ValueError: If the dialect is unknown, or the body has no interfaces, no elastic
            coordinates, or no skin to be written.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written; then nothing is left of it.
    """
    choice("dialect", dialect, get_args(Dialect))
    instance("body", body, ReducedBody, "see dolfinx_mbd.reduce")
    if skin and body.skin is None:
        raise InputError(f"body {body.name!r} has no skin to be written; reduce it with skin=True")
    scaled, path, report = prepare(body, path, "sid", units)
    hz = [mode.frequency for mode in body.modes]
    write_text(
        path, _lines(scaled, hz, report.units, dialect, skin), "SID_FEM file", overwrite=overwrite
    )
    names = [f"{k} {i.name!r}" for k, i in enumerate(body.interfaces, 1)]
    names += [f"{k} {p.name!r}" for k, p in enumerate(body.points, len(names) + 1)]
    losses = [_ENTRIES_ONLY] if body.stiffening is not None else []
    if not skin and body.skin is not None:
        losses.append("the surface was not written; skin=True writes it")
    return report.with_files(
        path,
        losses=losses,
        notes=[f"SID_FEM: dialect {dialect}, {_RULES[dialect]}; nodes {', '.join(names)}"],
    )


@dataclass(frozen=True)
class _Taylor:
    """M0 (rows, columns) and M1 (rows, nq, columns) or None, under a name."""

    name: str
    m0: Array
    m1: Array | None = None

    def lines(self, indent: str, num_modes: int, dialect: Dialect) -> Iterator[str]:
        rows, columns = self.m0.shape
        structure = _FULL
        if self.m1 is None:
            diagonal = rows == columns and np.array_equal(self.m0, np.diag(np.diag(self.m0)))
            structure = _DIAGONAL if diagonal else _FULL
            structure = structure if self.m0.any() else _ZERO
        inner = indent + "    "
        yield indent + self.name
        for key, value in (
            ("order", 0 if self.m1 is None else 1),
            ("nrow", rows),
            ("ncol", columns),
            ("nq", num_modes),
            ("nqn", 0),
            ("structure", structure),
        ):
            yield f"{inner}{key:<21} = {value:4d}"
        for i, j in np.argwhere(self.m0):
            yield f"{inner}m0({i + 1:3d},{j + 1:3d})           = {_number(self.m0[i, j])}"
        if self.m1 is not None:
            order = (0, 2, 1) if dialect == "fembeam" else (0, 1, 2)
            m1 = self.m1.transpose(order)
            for i, j, k in np.argwhere(m1):
                at = f"m1({i + 1:3d},{j + 1:3d},{k + 1:3d})"
                yield f"{inner}{at}       = {_number(m1[i, j, k])}"
        yield f"{indent}end {self.name}"


def _number(value: float) -> str:
    return f"{value:.16E}".replace("E", "D")


def _lines(
    body: ReducedBody, hz: list[float], units: Units, dialect: Dialect, skin: bool
) -> Iterator[str]:
    n = body.num_modes
    count = len(body.interfaces) + len(body.points)
    if skin and body.skin is not None:
        count += len(body.skin.points)
    stiff = "no geometric stiffness" if body.stiffening is None else "geometric stiffness included"
    yield (
        f"{count} {n} : No. nodes, No. modes; dialect {dialect}: {_RULES[dialect]}, "
        "Oe(6)=xx yy zz xy yz xz; "
        f"{stiff} (inertia relief); units {units.statement}"
    )
    yield "part"
    fembs = dialect != "fembeam"
    name = f"                 = {ascii_labels([body.name])[0]}" if fembs else ""
    yield f"    new modal{name}"
    yield "        refmod"
    yield f"            mass                  = {_number(body.total_mass)}"
    yield f"            nelastq               = {n:4d}"
    labels = [f"Eigen Mode {k:4d}" for k in range(1, n + 1)]
    if not fembs:
        labels = list(ascii_labels(mode.label for mode in body.modes))
    for k, (label, frequency) in enumerate(zip(labels, hz, strict=True), 1):
        yield f"            ielastq ({k:4d})        = {label} : {frequency:14.6f} Hz"
    yield "        end refmod"
    yield "        frame"
    for number, parts in enumerate(_nodes(body, skin), 1):
        yield f"            new node              = {number:4d}"
        yield "                rframe            = body ref"
        for part in parts:
            yield from part.lines(" " * 16, n, dialect)
        yield "            end node"
    yield "        end frame"
    for part in _integrals(body, dialect):
        yield from part.lines(" " * 8, n, dialect)
    yield "    end modal"
    yield "end part"


def _nodes(body: ReducedBody, skin: bool) -> Iterator[list[_Taylor]]:
    cases = None if body.stiffening is None else body.stiffening.interfaces
    for k, interface in enumerate(body.interfaces):
        yield _interface(interface, None if cases is None else cases[k])
    for point in body.points:
        yield _point(point.position, point.modes)
    if skin and body.skin is not None:
        for k, position in enumerate(body.skin.points):
            yield _point(position, body.skin.modes[:, k])


def _interface(interface: Interface, cases: Array | None) -> list[_Taylor]:
    """A node with rotations; ``cases`` are its geometric stiffnesses (6, n, n)."""
    phi, psi = interface.motion[:3], interface.motion[3:]
    turns = np.stack([skew(column) for column in psi.T], axis=1)
    return [
        _Taylor("origin", interface.point[:, None], phi[:, :, None]),
        _Taylor("phi", phi, None if cases is None else -cases[:3]),
        _Taylor("psi", psi, None if cases is None else -cases[3:]),
        _Taylor("AP", np.eye(3), turns),
    ]


def _point(position: Array, modes: Array) -> list[_Taylor]:
    """A node without rotations; ``modes`` has shape (n, 3)."""
    n = len(modes)
    return [
        _Taylor("origin", position[:, None], modes.T[:, :, None]),
        _Taylor("phi", modes.T),
        _Taylor("psi", np.zeros((3, n))),
        _Taylor("AP", np.eye(3)),
    ]


def _integrals(body: ReducedBody, dialect: Dialect) -> Iterator[_Taylor]:
    n = body.num_modes
    cross, skews = cross_moments(body), skew_moments(body)
    S = body.first_moments
    yield _Taylor("mdCM", S[0][:, None], S[1:].T[:, :, None])
    J, J1 = -skews[0, 0], -(skews[0, 1:] + skews[1:, 0])
    if dialect != "fembeam":
        rows, columns = np.transpose(_TENSOR)
        yield _Taylor("J", J[rows, columns][:, None], J1[:, rows, columns].T[:, :, None])
    else:
        yield _Taylor("J", J, J1.transpose(1, 0, 2))
    yield _Taylor("Ct", S[1:])
    yield _Taylor("Cr", cross[0, 1:], cross[1:, 1:].transpose(1, 0, 2))
    yield _Taylor("Me", body.mass)
    yield _Taylor("Gr", _columns(-2.0 * skews[0, 1:], dialect))
    yield _Taylor("Ge", _columns(2.0 * cross[1:, 1:], dialect))
    Oe = _spin_terms(skews[1:])
    change = Oe[:, 1:].copy()
    if body.stiffening is not None:
        change += body.stiffening.spin.transpose(1, 2, 0)
    yield _Taylor("Oe", Oe[:, 0], change)
    yield _Taylor("ksigma", np.zeros((n, 1)))
    yield _Taylor("Ke", body.stiffness)
    yield _Taylor("De", body.damping)


def _columns(matrices: Array, dialect: Dialect) -> Array:
    """The matrices (nq, rows, 3) of all modes side by side, shape (rows, 3 nq)."""
    order = (1, 2, 0) if dialect == "simpack" else (1, 0, 2)
    return matrices.transpose(order).reshape(matrices.shape[1], -1)


def _spin_terms(skews: Array) -> Array:
    """Coefficients (.., 6) of ω_xω_x, ω_yω_y, ω_zω_z, ω_xω_y, ω_yω_z, ω_xω_z in ωᵀ A ω."""
    return np.stack(
        [skews[..., a, b] + (skews[..., b, a] if a != b else 0.0) for a, b in _PAIRS], axis=-1
    )
