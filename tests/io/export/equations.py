"""Equations of motion of a body from the data of a file alone, as other programs solve them.

Rows and states are those of :mod:`dolfinx_mbd.kernels.floating_frame`: q = (R, quaternion, η), v =
(Ṙ in global and ω in body components, η̇), and a is the rate of v. The rows are the force (global
components), the moment about the origin of the body frame (body components), and the elastic
equations.  Wrenches (F, 6) act on the body at its interfaces, in global components.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.kernels.rotations import rotation_matrix, skew
from tests.io.export.readers.fem import FemFile
from tests.io.export.readers.sid import SidFile


def fem_rows(
    file: FemFile,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    gravity: np.ndarray,
    wrenches: np.ndarray,
) -> np.ndarray:
    """Return the rows of MBDyn's modal joint, as ``AssRes`` in modal.cc, with opposite sign.

    All components are global; interface reactions are those on the other node. In MBDyn's letters,
    (x, b, bP) are η and its rates, w and wP are ω and ω̇, vP is R̈, and I3 to I9 are the inertia
    invariants in the record groups 14 to 18 of the file.
    """
    n = file.num_modes
    R = rotation_matrix(q[3:7])
    w, wP, vP = R @ v[3:6], R @ a[3:6], a[:3]
    x, b, bP = q[7:], v[6:], a[6:]
    I3, I4 = file.groups[14], file.groups[15]
    I8, I5 = file.groups[16].transpose(1, 0, 2), file.groups[17]  # (n, 3, 3), (3, n, n)
    I9 = file.groups[18].transpose(1, 2, 0, 3)
    centre, m = file.centre, file.mass
    J0 = file.inertia - m * skew(centre) @ skew(centre)

    I8a, I8b = np.einsum("jab,j->ab", I8, x), np.einsum("jab,j->ab", I8, b)
    I9aa, I9ab = np.einsum("jkab,j,k->ab", I9, x, x), np.einsum("jkab,j,k->ab", I9, x, b)
    I5a, I5b = np.einsum("cjk,j->ck", I5, x), np.einsum("cjk,j->ck", I5, b)
    J = R @ (J0 + I8a + I8a.T - I9aa) @ R.T
    S = R @ (m * centre + I3 @ x)
    force = m * vP - np.cross(S, wP) + np.cross(w, np.cross(w, S))
    force += R @ I3 @ bP + 2 * np.cross(w, R @ I3 @ b) - m * gravity
    moment = np.cross(S, vP - gravity) + J @ wP + np.cross(w, J @ w)
    moment += R @ (I4 + I5a) @ bP + 2 * R @ (I8b - I9ab) @ R.T @ w
    elastic = file.groups[9] @ bP + file.groups[13] @ b + file.groups[10] @ x
    elastic += (R @ I3).T @ (vP - gravity) + (R @ (I4 + I5a)).T @ wP + 2 * (R @ I5b).T @ w
    for j in range(n):
        # ω·Tω is half the derivative of ω·Jω by x_j.
        T = I8[j].T - np.einsum("kab,k->ab", I9[j], x)
        elastic[j] -= w @ R @ T @ R.T @ w
    # Group 19 numbers its matrices by these loads: ω products, ω̇, acceleration, then interfaces.
    o = R.T @ w
    loads = [o[0] ** 2, o[1] ** 2, o[2] ** 2, o[0] * o[1], o[1] * o[2], o[2] * o[0]]
    loads += [*(R.T @ wP), *(R.T @ (vP - gravity))]
    shapes = file.groups[8]
    for k, wrench in enumerate(wrenches):
        F, M = -wrench[:3], -wrench[3:]  # MBDyn's reactions act on the other node
        arm = R @ (file.positions[k] + shapes[:, k, :3].T @ x)
        force += F
        moment += np.cross(arm, F) + M
        elastic += shapes[:, k, :3] @ R.T @ F + shapes[:, k, 3:] @ R.T @ M
        loads += [*(-R.T @ F), *(-R.T @ M)]
    for index, K in file.stress_stiffening.items():
        if index <= len(loads):
            elastic += loads[index - 1] * K @ x
    return np.concatenate([force, R.T @ moment, elastic])


def sid_rows(
    file: SidFile,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    gravity: np.ndarray,
    wrenches: np.ndarray,
    columns: str = "(a-1)*nq+l",
) -> np.ndarray:
    """Return the rows of Wallrapp's equations, which are in the body frame.

    The matrices have their names in the file; `columns` is the order of the columns of Gr and Ge,
    see `SidFile.by_mode`. The force is returned in global components, as in `fem_rows`.
    """
    R = rotation_matrix(q[3:7])
    w, alpha, acceleration = v[3:6], a[3:6], R.T @ (a[:3] - gravity)
    x, b, bP = q[7:], v[6:], a[6:]
    mdCM = file["mdCM"].at(x)[:, 0]
    J = file["J"].at(x)
    if J.shape == (6, 1):
        xx, yy, zz, xy, xz, yz = J[:, 0]
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    Ct, Cr = file["Ct"].at(x), file["Cr"].at(x)
    Gr, Ge = (np.einsum("lrc,l->rc", file.by_mode(name, columns), b) for name in ("Gr", "Ge"))
    spins = np.array([w[0] ** 2, w[1] ** 2, w[2] ** 2, w[0] * w[1], w[1] * w[2], w[0] * w[2]])

    force = file.mass * acceleration - np.cross(mdCM, alpha) + Ct.T @ bP
    force += 2 * np.cross(w, Ct.T @ b) + np.cross(w, np.cross(w, mdCM))
    moment = np.cross(mdCM, acceleration) + J @ alpha + Cr.T @ bP + Gr @ w + np.cross(w, J @ w)
    elastic = Ct @ acceleration + Cr @ alpha + file["Me"].m0 @ bP + Ge @ w
    elastic += file["Oe"].at(x) @ spins
    elastic += file["ksigma"].at(x)[:, 0] + file["Ke"].m0 @ x + file["De"].m0 @ b
    for node, wrench in zip(file.nodes.values(), wrenches, strict=False):
        f, t = R.T @ wrench[:3], R.T @ wrench[3:]
        force -= f
        moment -= np.cross(node["origin"].at(x)[:, 0], f) + t
        elastic -= node["phi"].at(x).T @ f + node["psi"].at(x).T @ t
    return np.concatenate([R @ force, moment, elastic])
