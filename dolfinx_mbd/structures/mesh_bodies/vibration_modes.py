"""Vibrations of mechanisms with mesh bodies, at rest or in steady rotation.

The unknowns are the displacements u of the free nodes of the bodies, and the small displacements
and rotations s of the interface frames and of the other bodies:

    M ẍ + C ẋ + K x + Gᵀμ = 0,    G x = 0,    x = (u, s),

where μ are the changes of the reactions and G is the gradient of the constraints. The tangent
stiffness K at the equilibrium contains the stress, the loads and the derivatives of the constraints
times their reactions. Block Lanczos with (K + b M)⁻¹M gives the modes without damping. The mesh
bodies condense their free nodes as in a time step; the shift b takes the place of ∂ẍ/∂x, the
derivative of the accelerations in the iteration matrix of the step.

Damping and forces that do not conserve energy couple these modes, and so do the gyroscopic forces
of a rotation. The equations are projected on the modes; corrections (K + b M)⁻¹r with the residuals
r of the poles extend the basis until the poles converge (Davidson's method).

References:
    Sleijpen, Booten, Fokkema, van der Vorst (1996), Jacobi-Davidson type methods for generalized
    eigenproblems and polynomial eigenproblems, BIT 36, 595-633.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd import checks
from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.poles import Poles, poles_of
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.linalg.block_lanczos import BLOCK_SIZE, Breakdown, block_lanczos
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.outputs import Outputs
from dolfinx_mbd.structures.mesh_bodies.mesh_outputs import (
    ModalMotions,
    input_forces,
    mesh_state_space,
)
from dolfinx_mbd.structures.mesh_bodies.small_vibrations import SmallVibrations

__all__ = ["VibrationModes", "mesh_linearization", "vibration_modes"]

Complex = NDArray[np.complex128]
Matrices = tuple[Array, Array, Array]  # M, C and K in a basis of motions

_TOLERANCE = 1e-10  # residual of a mode without damping, relative to its squared frequency
_CONVERGED = 1e-9  # residual of a damped mode of unit length, after (K + b M)⁻¹
# After `_PATIENCE` iterations without an improvement, a residual up to `_STALLED` is accepted
_STALLED, _PATIENCE = 1e-7, 3
_ROUNDS = 60  # largest number of extensions of the basis
_RESPONSES = 4  # number of iterations of (K + b M)⁻¹ that compute the static responses K⁻¹f
# Squared frequencies below this fraction of the shift are set to zero; for rigid motions, round-off
# gives up to 1e-7 of the shift
_ZERO = 1e-6
# Corrections below this fraction of the largest one are linearly dependent on the basis
_DEPENDENT = 1e-4
_SWEEPS = 3  # number of orthogonalizations of new motions to the basis
_MOVING = 1e-12  # displacements up to this fraction of the largest increment count as zero


@dataclass(frozen=True, eq=False)
class VibrationModes(Poles):
    """Lowest natural modes of a mechanism with mesh bodies; see `vibration_modes`.

    Attributes:
        system: The mechanism.
        state: The equilibrium.
        poles: Exponents λ of x ∝ e^{λt} with Im λ ≥ 0, by increasing |λ|, shape (p,), 1/s.
        increments: Changes of the coordinates of frames and other bodies in each mode, in the
            order of the velocities of the system, (nv, p).
        displacements: Displacements of the nodes of each mesh body by name, (nodes, 3, p), in
            global components. Modes are scaled so that the largest component of a node's
            displacement is 1, or the largest increment if no node moves.

    Example:
        >>> clamp = mbd.fixed("clamp", ground.frame("bearing"), rod.frame("left"))
        >>> beam = mbd.System([ground, rod], [clamp])
        >>> modes = mbd.structures.vibration_modes(beam, mbd.equilibrium(beam), 3)
        >>> modes.displacements["rod"].shape == (len(rod.nodes), 3, 3)
        True
    """

    system: System
    state: State
    poles: Complex
    increments: Complex
    displacements: dict[str, Complex]

    __repr__ = short_repr


def vibration_modes(system: System, state: State, num_modes: int = 6) -> VibrationModes:
    """Compute the lowest natural modes of a mechanism with mesh bodies.

    The modes are those about the state, which may be strongly deformed: stress, loads and reactions
    change the stiffness. No mode of the mesh is left out. Without damping, a negative stiffness
    has a real positive pole. If the mechanism rotates steadily as a whole, the poles and shapes are
    those in the rotating axes.

    Args:
        system: The mechanism, with at least one `MeshBody`; constraints may be redundant.
        state: State at rest or in steady rotation, from `equilibrium` or `consistent_state`;
            drivers and loads are evaluated at its time.
        num_modes: Number of poles with Im λ ≥ 0.

    Returns:
        Poles and shapes.

    Raises:
        InputError: The mechanism has no mesh body, it does not rotate steadily, the number
            of modes is too large, or loads have states.
        SteadyError: The forces are not in balance.
        SolverError: The modes do not converge, or a body is unstable with fixed interfaces.

    Note: Collective over the communicator of the meshes. The stiffness of a pressure is symmetric;
        see the theory of mesh bodies. A stiffness whose frequency is below 1e-7 of the estimated
        largest frequency of the mesh cannot be distinguished from that of a rigid motion, and is
        zero.

    Example:
        >>> clamp = mbd.fixed("clamp", ground.frame("bearing"), rod.frame("left"))
        >>> beam = mbd.System([ground, rod], [clamp])
        >>> modes = mbd.structures.vibration_modes(beam, mbd.equilibrium(beam), 3)
        >>> print(modes.frequencies.round(), "Hz")
        [174. 176. 815.] Hz
    """
    checks.instance("system", system, System)
    system.check_state("state", state)
    num_modes = checks.integer("num_modes", num_modes, low=1)
    with SmallVibrations(system, state) as small:
        poles, vectors, space = _lowest(small, num_modes)
        shapes, increments = _shapes(small, vectors, space.V)
    names = zip(small.names, shapes, strict=True)
    return VibrationModes(system, state, poles, increments, dict(names))


def mesh_linearization(
    system: System, state: State, num_modes: int, inputs: Inputs, outputs: Outputs
) -> LinearizedSystem:
    """Linearize a mechanism with mesh bodies in the coordinates of its lowest modes.

    With inputs, the last coordinates are the static responses to the inputs. The function has the
    other arguments and the errors of `vibration_modes`. Collective over the meshes.
    """
    nodal, forces, _ = input_forces(Assembler(system), state, inputs, Outputs(None))
    with SmallVibrations(system, state) as small:
        poles, vectors, space = _lowest(small, num_modes)
        shapes, increments = _shapes(small, vectors, space.V)
        dominant = small.dominant_bodies(shapes, increments)
        load = small.loads(nodal, forces)
        if inputs.names:
            space.add_responses(load)
        matrices = space.matrices()
        motions = ModalMotions.of(small, (space.V, space.MV, space.CV), matrices, load)
        state, spin = small.state, small.spin
    return LinearizedSystem.from_matrices(
        system,
        state,
        matrices,
        basis=motions.increments,
        axes="body",
        poles=poles,
        modes=increments,
        inputs=inputs.names,
        outputs=outputs.names,
        state_space=mesh_state_space(system, state, spin, motions, inputs, outputs),
        dominant=dominant,
        displacements=dict(zip(small.names, shapes, strict=True)),
    )


class _Subspace:
    """An M-orthonormal basis V of motions, and the products of the matrices with it.

    The products are M V, C V, and those with the antisymmetric part of K (`NV`) and with K + b M
    without the antisymmetric part (`KV`).

    Args:
        small: Operators of the small vibrations.
        V: Modes without damping.
        squares: Squared angular frequencies of these modes.
    """

    def __init__(self, small: SmallVibrations, V: Array, squares: Array) -> None:
        self.small, self.V, self._count = small, V, V.shape[1]
        self.MV, self.CV, self.NV = small.mass(V), small.damping(V), small.circulatory(V)
        self.KV = self.MV * (squares + small.shift)  # without the antisymmetric part

    def parts(self) -> tuple[Array, Array, Array, Array]:
        """Return VᵀMV, VᵀCV, and the antisymmetric and the symmetric part of VᵀKV."""
        b, products = self.small.shift, (self.MV, self.CV, self.NV, self.KV)
        m, c, a, k = (gram(self.small.comm, self.V, Y) for Y in products)
        return 0.5 * (m + m.T), c, a, 0.5 * (k + k.T) - 0.5 * b * (m + m.T)

    def matrices(self) -> Matrices:
        """Return VᵀMV, VᵀCV and VᵀKV."""
        m, c, a, k = self.parts()
        return m, c, k + a

    def add(self, W: Array, G: Array) -> bool:
        """Add the solutions W of (K + b M) W = G to V; return whether V has grown."""
        new = _orthonormal(self.small, self.V, self.MV, self.KV, W, G)
        if new is None:
            return False
        W, MW, KW = new
        pairs = (self.V, W), (self.MV, MW), (self.KV, KW)
        self.V, self.MV, self.KV = (np.hstack(pair) for pair in pairs)
        self.CV = np.hstack([self.CV, self.small.damping(W)])
        self.NV = np.hstack([self.NV, self.small.circulatory(W)])
        return True

    def keep(self, count: int) -> None:
        """Keep only the first `count` motions."""
        names = "V", "MV", "CV", "NV", "KV"
        vars(self).update({name: vars(self)[name][:, :count] for name in names})

    def add_responses(self, load: Array) -> None:
        """Add the static responses to forces (owned rows, k), without their part in the modes."""
        small = self.small
        modes, products = self.V[:, : self._count], self.MV[:, : self._count]
        G = W = load
        for count in range(_RESPONSES):  # the iteration removes b M from K + b M
            G = load + small.shift * small.mass(W) if count else load
            G = np.asfortranarray(G - products @ gram(small.comm, modes, G))
            W = small.solve(G)
        sizes = np.sqrt(column_sums(small.comm, W, small.mass(W)))  # inputs may have any unit
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        self.add(W / sizes, np.asfortranarray(G / sizes))


def _lowest(small: SmallVibrations, num_modes: int) -> tuple[Complex, Complex, _Subspace]:
    """Return the lowest poles, their vectors (m, p), and the basis of m columns."""
    if 2 * (num_modes + 2 * BLOCK_SIZE) > small.num_unknowns:
        raise InputError(
            f"num_modes = {num_modes} is too large for {small.num_unknowns} unknowns; use fewer "
            "modes or a finer mesh",
            argument="num_modes",
            value=num_modes,
        )
    squares, X = _modes_without_damping(small, num_modes)
    if small.is_damped:
        return _damped_modes(_Subspace(small, X, squares), num_modes)
    squares[np.abs(squares) <= _ZERO * small.shift] = 0.0
    poles = np.sqrt((-squares).astype(complex))
    order = np.argsort(np.abs(poles), kind="stable")
    vectors = np.eye(num_modes)[:, order].astype(complex)
    return poles[order], vectors, _Subspace(small, X, squares)


def _shapes(small: SmallVibrations, vectors: Complex, X: Array) -> tuple[list[Complex], Complex]:
    """Return the motions of the nodes of each body (nodes, 3, p), and the increments (nv, p).

    Modes are scaled so that the largest component of a node's displacement is 1, or the largest
    increment if no node moves.
    """
    nodal, basis = small.unpacked(X)
    increments = basis @ vectors
    shapes = [part @ vectors for part in nodal]
    largest = _largest([part.reshape(-1, vectors.shape[1]) for part in shapes])
    moving = np.abs(largest) > _MOVING * np.abs(increments).max(axis=0, initial=1e-300)
    factors = 1 / np.where(moving, largest, _largest([increments]))
    return [part * factors for part in shapes], increments * factors


def _largest(parts: list[Complex]) -> Complex:
    """Return the entry with the largest magnitude of each column."""
    whole = np.concatenate(parts)
    return np.take_along_axis(whole, np.abs(whole).argmax(axis=0)[None], axis=0)[0]


def _modes_without_damping(small: SmallVibrations, num_modes: int) -> tuple[Array, Array]:
    """Return squared angular frequencies and modes of the symmetric stiffness, M-normalized."""
    start = small.solve(small.random_block(BLOCK_SIZE))
    try:
        shifted, X = block_lanczos(
            small.comm, small.solve, small.mass, start, num_modes, tolerance=_TOLERANCE
        )
    except Breakdown as error:
        raise SolverError(f"the modes do not converge: {error}; use fewer modes") from error
    return shifted - small.shift, X


def _damped_modes(space: _Subspace, num_modes: int) -> tuple[Complex, Complex, _Subspace]:
    """Return the results of `_lowest` for a damped mechanism; the modes without damping start."""
    small, b = space.small, space.small.shift
    best: tuple[float, int, Complex, Complex] | None = None
    waiting = 0
    for _ in range(_ROUNDS):
        m, c, a, k = space.parts()
        pair = poles_of(m, c, _with_zeros(k + a, _ZERO * b)) if small.comm.rank == 0 else None
        poles, vectors = small.comm.bcast(pair, root=0)
        poles, vectors = poles[:num_modes], vectors[:, :num_modes]
        if len(poles) < num_modes:
            raise SolverError("too few poles with Im λ ≥ 0; use fewer modes")
        vectors = vectors / np.linalg.norm(vectors, axis=0)
        G = space.MV @ (vectors * (poles**2 - b)) + space.CV @ (vectors * poles)
        G += space.NV @ vectors
        G = np.asfortranarray(np.hstack([G.real, G.imag]))
        W = small.solve(G)  # V vectors + W = (K + b M)⁻¹ times the residuals
        R = W + space.V @ np.hstack([vectors.real, vectors.imag])
        parts = column_sums(small.comm, R, small.mass(R)).reshape(2, -1)
        errors = np.sqrt(np.abs(parts).sum(axis=0))
        if (errors <= _CONVERGED).all():
            return poles, vectors, space
        worst, waiting = float(errors.max()), waiting + 1
        if best is None or worst < best[0]:
            best, waiting = (worst, len(vectors), poles, vectors), 0
        if waiting >= _PATIENCE and best[0] <= _STALLED:
            break
        not_converged = np.tile(errors > _CONVERGED, 2)  # real and imaginary parts
        if not space.add(W[:, not_converged], G[:, not_converged]):
            break
    if best is not None and best[0] <= _STALLED:
        _, count, poles, vectors = best
        space.keep(count)
        return poles, vectors, space
    raise SolverError(
        f"the damped modes do not converge: relative residual {errors.max():.1e}; use fewer modes "
        "or less damping"
    )


def _with_zeros(K: Array, bound: float) -> Array:
    """Return a matrix whose singular values up to a bound, which are round-off, are zero."""
    left, values, right = np.linalg.svd(K)
    small = values <= bound
    return np.asarray(K - (left[:, small] * values[small]) @ right[small])


def _orthonormal(
    small: SmallVibrations, V: Array, MV: Array, KV: Array, W: Array, G: Array
) -> tuple[Array, Array, Array] | None:
    """Return corrections W with (K + b M) W = G, M-orthonormal to V and to one another.

    The results are W, M W and (K + b M) W; None if no correction is independent of V.
    """
    K = G
    for count in range(_SWEEPS):
        h = gram(small.comm, MV, W)
        W, K = W - V @ h, K - KV @ h
        squares, U = np.linalg.eigh(gram(small.comm, W, small.mass(W)))
        squares, U = small.comm.bcast((squares, U), root=0)
        large = squares > _DEPENDENT**2 * max(squares.max(), 1e-300)
        if not large.any():
            return None
        U = U[:, large] / np.sqrt(squares[large])
        W, K = W @ U, np.asfortranarray(K @ U)
        if count == 0:  # the difference of nearly equal vectors has lost digits
            W = small.solve(K)
    return W, small.mass(W), K
