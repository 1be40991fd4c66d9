"""Comparison of the motion of a mesh body with the modes of a reduced body.

At each instant, a rigid motion p, R and elastic coordinates η are fitted to the positions x of the
nodes, so that the missing displacement

    d = Rᵀ(x − p) − X − Φ η

has the least mass norm ∫ρ d·d dX. The missing displacements of a run are decomposed into their
proper orthogonal shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import instance, integer
from dolfinx_mbd.durability.recovery.mesh_recovery import MeshRecovery
from dolfinx_mbd.durability.recovery.stress import Recovery
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.parallel import raise_together
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.structures.mesh_bodies import MeshBody

__all__ = ["ModeComparison", "compare_with_modes"]

Array = NDArray[np.float64]

_ITERATIONS = 30  # largest number of corrections of the rigid motion, then the last one is used
_ROTATION = 1e-13  # largest correction of the rotation at convergence, rad
_NEGLIGIBLE_SHARE = 1e-12  # part of the mean square of a shape that is only round-off


@dataclass(frozen=True, eq=False)
class ModeComparison:
    """Difference between a mesh body and the modes of a reduced body over nt instants.

    Attributes:
        time: Times, shape (nt,), s.
        eta: Elastic coordinates that fit the motion best, shape (nt, n); valid as the history of
            the reduction in `mbd.recover`.
        deformation: Root of the mean square of the deformation, weighted by mass, (nt,), m.
        missing: Root of the mean square of the displacement that the modes cannot represent,
            weighted by mass, (nt,), m.
        shapes: Orthogonal shapes of the missing displacement in the axes of the undeformed body,
            shape (k, N, 3), with largest component 1; the nodes are `body.nodes`.
        shares: Part of the mean square of the missing displacement in each shape, (k,).
        stress: Largest von Mises stress in the run on the mesh, Pa.
        modal_stress: Largest von Mises stress of the modes with the coordinates `eta`, Pa.

    Example:
        >>> rod = mbd.MeshBody("rod", bar.model, ends, omega=(0, 0, 90))
        >>> run = mbd.simulate(mbd.System([rod]), t_end=0.002, dt=0.001)
        >>> 0 <= compare_with_modes(rod, run, bar).fraction < 1
        True
    """

    time: Array
    eta: Array
    deformation: Array
    missing: Array
    shapes: Array
    shares: Array
    stress: float
    modal_stress: float

    __repr__ = short_repr

    @property
    def fraction(self) -> float:
        """Largest missing displacement relative to the largest deformation of the run."""
        largest = float(self.deformation.max())
        return float(self.missing.max()) / largest if largest else 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.eta.shape[1]} modes miss {100 * self.fraction:.3g} % of the deformation",
            f"largest von Mises stress: {self.stress / 1e6:.4g} MPa on the mesh, "
            f"{self.modal_stress / 1e6:.4g} MPa with the modes",
        ]
        shares = ", ".join(f"{100 * s:.3g}" for s in self.shares)
        return "\n".join([*lines, f"shares of the missing shapes: {shares} %"])


def compare_with_modes(
    body: MeshBody, history: Any, reduction: Reduction, *, count: int = 3
) -> ModeComparison:
    """Return what the modes of a reduction leave out in the motion of a mesh body.

    Args:
        body: The mesh body.
        history: ``body.motion(run)`` or the run.
        reduction: A reduction of the same mesh with elements of the same degree.
        count: Number of shapes of the missing displacement; there may be fewer.

    Raises:
        InputError: An argument is invalid, or the reduction has another mesh or degree.

    Note: Collective.

    Example:
        >>> rod = mbd.MeshBody("rod", bar.model, ends, omega=(0, 0, 90))
        >>> run = mbd.simulate(mbd.System([rod]), t_end=0.002, dt=0.001)
        >>> comparison = compare_with_modes(rod, run, bar)
        >>> comparison.eta.shape == (3, bar.body.num_modes)
        True
    """
    instance("body", body, MeshBody)
    integer("count", count, low=1)
    _check_same_mesh(body, instance("reduction", reduction, Reduction))
    recovery = MeshRecovery(body)
    motion = recovery.motion(history)
    fit = _Fit(body, reduction)
    fits = zip(*(fit.at(u) for u in motion.displacement), strict=True)
    eta, deformation, missing, snapshots, weighted = (np.array(values) for values in fits)
    shapes, shares = _orthogonal_shapes(body, snapshots, weighted, count)
    stress, _, _ = recovery.extremes(motion, "von Mises", 1.0)
    modal, _, _ = Recovery(reduction).extremes(eta, "von Mises", 1.0)
    comm = body.forces.comm
    peaks = [max(comm.allgather(float(s.max(initial=0.0)))) for s in (stress, modal)]
    return ModeComparison(motion.time, eta, deformation, missing, shapes, shares, *peaks)


class _Fit:
    """Least squares for the rigid motion and the elastic coordinates of a deformed mesh."""

    def __init__(self, body: MeshBody, reduction: Reduction) -> None:
        nodes, x = body.forces.nodes, body.nodes
        modes = [nodes.gathered(column.copy()) for column in reduction.modes.T]
        self._body, self._mass = body, body.typical_mass
        self._centre = body.forces.lumped @ x / self._mass
        translations = [np.broadcast_to(axis, x.shape) for axis in np.eye(3)]
        rotations = [np.cross(axis, x - self._centre) for axis in np.eye(3)]
        self._basis: Array = np.array([*translations, *rotations, *modes])  # (6 + n, N, 3)
        columns = np.moveaxis(self._basis, 0, 2).reshape(len(x), -1)
        weighted = body.forces.apply_mass(columns).reshape(len(x), 3, -1)
        self._weighted = np.moveaxis(weighted, 2, 0)
        self._gram = np.einsum("kai,lai->kl", self._weighted, self._basis)

    def at(self, u: Array) -> tuple[Array, float, float, Array, Array]:
        """Fit the motion with the nodal displacements u (N, 3), m.

        Returns:
            η; the root mean squares of the deformation and of the missing displacement d, m; d; and
            M d with the mass matrix M. d and M d have shape (nodes, 3) for the nodes that this rank
            stores.
        """
        X = self._body.nodes - self._centre
        x = X + u
        origin, R = self._rigid_start(x, X)
        for _ in range(_ITERATIONS):
            d = (x - origin) @ R - X
            factors = np.linalg.solve(self._gram, np.einsum("kai,ai->k", self._weighted, d))
            translation, rotation = factors[:3], factors[3:6]
            if np.abs(rotation).max() < _ROTATION:
                break
            origin = origin + R @ translation
            R = R @ exp_rotation(rotation)
        missing = d - np.tensordot(factors, self._basis, axes=1)
        deformation = d - np.tensordot(factors[:6], self._basis[:6], axes=1)
        weighted = self._body.forces.apply_mass(missing)
        sizes = self._size(deformation), self._size(missing, weighted)
        stored = self._body.forces.nodes.stored
        return factors[6:], *sizes, missing[stored], weighted[stored]

    def _rigid_start(self, x: Array, X: Array) -> tuple[Array, Array]:
        """Return the centre of mass and the rotation that fits best without modes.

        The rotation is the orthogonal factor of the polar decomposition of ∫ρ x Xᵀ dX.
        """
        weights = self._body.forces.lumped
        centre = weights @ x / self._mass
        left, _, right = np.linalg.svd((x - centre).T @ self._body.forces.apply_mass(X))
        # A reflection fits a flat body as well as a rotation; the sign excludes it
        sign = np.diag([1.0, 1.0, float(np.sign(np.linalg.det(left @ right)))])
        rotation: Array = np.asarray(left @ sign @ right, dtype=np.float64)
        return np.asarray(centre, dtype=np.float64), rotation

    def _size(self, d: Array, weighted: Array | None = None) -> float:
        """Return the mass-weighted root mean square of d; M d is computed if it is not passed."""
        if weighted is None:
            weighted = self._body.forces.apply_mass(d)
        square = float(np.vdot(d, weighted))
        return float(np.sqrt(max(square, 0.0) / self._mass))


def _orthogonal_shapes(
    body: MeshBody, snapshots: Array, weighted: Array, count: int
) -> tuple[Array, Array]:
    """Return the dominant shapes (n, N, 3) of snapshots d, and their parts of the mean square.

    The snapshots and M d, (nt, n, 3), are those of the nodes that this rank stores.
    """
    comm, nodes = body.forces.comm, body.forces.nodes
    gram = comm.bcast(comm.reduce(np.einsum("tai,sai->ts", weighted, snapshots), root=0), root=0)
    spectrum, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    values: Array = np.asarray(spectrum, dtype=np.float64)
    total = float(values.clip(0.0).sum())
    chosen = [k for k in np.argsort(-values)[:count] if values[k] > _NEGLIGIBLE_SHARE * total]
    shapes = [nodes.whole(np.tensordot(vectors[:, k], snapshots, axes=1)) for k in chosen]
    peaks = [float(shape.ravel()[np.abs(shape).argmax()]) for shape in shapes]
    scaled: Array = np.zeros((len(chosen), len(nodes), 3))
    for row, shape, peak in zip(scaled, shapes, peaks, strict=True):
        row[:] = shape / peak
    return scaled, np.array([values[k] / total for k in chosen])


def _check_same_mesh(body: MeshBody, reduction: Reduction) -> None:
    """Raise an error on every rank if the reduction has other nodes than the mesh body."""
    body_space, space = body.forces.space, reduction.space
    reason = None
    if body_space is not space:
        x, y = (V.tabulate_dof_coordinates() for V in (body_space, space))
        if x.shape != y.shape or not np.allclose(x, y, rtol=0, atol=1e-12 * np.ptp(x)):
            reason = "the reduction has other nodes than the mesh body; use one ElasticModel"
    raise_together(body_space.mesh.comm, reason)
