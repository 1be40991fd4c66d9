"""Derivatives of the modes of a reduced body on the mesh.

The modes span constraint modes C and fixed-interface modes Φ. Their derivatives follow from

    K C′ = −K′C,    (K − λM) Φ′ = −(K′ − λM′) Φ    with held interfaces.

Only the parts of C′ and Φ′ outside the span of the modes matter. Inside this span, the derivative
of a mode is a choice of coordinates. Here ΨᵀMΨ′ is symmetric. The modes then remain orthonormal and
rotate as little as possible within their span. The formulas do not divide by a difference of
eigenvalues, so that modes may cross.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
import ufl

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.fem.determinate_support import determinate_dofs
from dolfinx_mbd.linalg.blocks import column_sums, gram, multiply, solve
from dolfinx_mbd.linalg.factorization import cholesky
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.reduction.averaged import InterfaceMoments
from dolfinx_mbd.reduction.craig_bampton import rigid_rows
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.sensitivity.static_modes import StaticModes

CHANGE_TOLERANCE = 1e-9  # relative change of the solution in the last step
MAX_STEPS = 40


@dataclass(frozen=True, eq=False)
class SplitModes:
    """Modes Ψ = C N + Φ Z of a body, and its rigid motions R̂ with R̂ᵀMR̂ = I.

    C are the constraint modes and Φ the fixed-interface modes. All vectors have shape
    (owned dofs, columns).
    """

    modes: Array  # Ψ
    rigid: Array  # R̂, M-orthonormal
    rigid_factor: Array  # R̂ = R · rigid_factor, with R about the origin
    motions: Array  # N, motion of the interfaces in each mode (coordinates, n)
    rigid_interfaces: Array  # motion of the interfaces in R̂ (coordinates, rigid motions)
    fixed: Array  # Φ
    squares: Array  # λ of Φ
    shares: Array  # Z (fixed-interface modes, n)
    statics: StaticModes | None = None  # load modes, which Φ does not contain


def split_modes(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    modes: Array,
    motions: Array,
    *,
    attached: bool = False,
) -> SplitModes:
    """Return the constraint and fixed-interface parts of orthonormal modes (collective).

    Args:
        problem: Matrices of the body.
        interfaces: Interfaces of the body.
        modes: Modes Ψ with ΨᵀMΨ = I, shape (owned dofs, n).
        motions: Motion of the interfaces, shape (coordinates, n).
        attached: Whether the body frame is attached to an interface; otherwise ΨᵀMR = 0.
    """
    comm, dim = problem.comm, problem.dim
    R: Array = problem.rigid_motions()[:, : 0 if attached else problem.num_rigid]
    factor = np.linalg.inv(np.linalg.cholesky(gram(comm, R, problem.apply_mass(R)))).T
    rigid = np.asfortranarray(R @ factor)
    of_rigid: Array = np.zeros((0, len(factor)))
    if interfaces:
        of_rigid = rigid_rows(interfaces, np.zeros(3), dim)[:, : len(factor)] @ factor
    all_motions = np.hstack([of_rigid, motions])
    size = np.linalg.norm(all_motions, axis=1)
    moving = all_motions[size > 0] / size[size > 0, None]  # an attached interface does not move
    null = scipy.linalg.null_space(moving) if len(moving) else np.eye(all_motions.shape[1])
    K = np.zeros((all_motions.shape[1],) * 2)
    K[len(factor) :, len(factor) :] = stiffness = gram(
        comm, modes, multiply(problem.stiffness, modes)
    )
    squares, y = scipy.linalg.eigh(null.T @ K @ null)
    if not interfaces:  # the first modes are the rigid motions
        squares, y = squares[len(factor) :], y[:, len(factor) :]
    coefficients = null @ y
    fixed = np.asfortranarray(np.hstack([rigid, modes]) @ coefficients)
    shares = coefficients[len(factor) :].T @ stiffness / squares[:, None]
    return SplitModes(modes, rigid, factor, motions, of_rigid, fixed, squares, shares)


class FreeStiffness:
    """The stiffness of a body without interfaces, for forces in equilibrium.

    The solutions are M-orthogonal to the rigid motions R̂, which are M-orthonormal.
    """

    def __init__(self, problem: ElasticProblem, rigid: Array, prefix: str) -> None:
        self._problem, self._rigid = problem, rigid
        self._inertia = problem.apply_mass(rigid)
        self._dofs = determinate_dofs(problem.comm, rigid)
        self._K = problem.stiffness.copy()
        constrain(self._K, self._dofs, 1.0)
        self._ksp = cholesky(self._K, prefix=prefix, options=None)

    def solve_body(self, loads: Array) -> Array:
        """Return displacements (owned dofs, k); the resultants of the loads are removed."""
        comm = self._problem.comm
        B = np.asfortranarray(loads - self._inertia @ gram(comm, self._rigid, loads))
        B[self._dofs] = 0.0
        u = solve(self._ksp, B)
        return np.asfortranarray(u - self._rigid @ gram(comm, self._inertia, u))

    def solve_moved(self, loads: Array, motion: Array | None, averages: Array | None) -> Array:
        """Return the result of `solve_body`: there are no interfaces."""
        return self.solve_body(loads)

    def destroy(self) -> None:
        """Free the factor and the matrix."""
        self._ksp.destroy()
        self._K.destroy()


class BasisDerivatives:
    """Derivatives of the modes of one body with respect to its parameters; see the module."""

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        held: HeldStiffness | FreeStiffness,
        split: SplitModes,
    ) -> None:
        self.problem, self.interfaces, self.held, self.split = problem, interfaces, held, split
        self._span = np.asfortranarray(np.hstack([split.rigid, split.modes]))
        self._mass_span = problem.apply_mass(self._span)
        self._mass_fixed = problem.apply_mass(split.fixed)
        self.constraint = np.asfortranarray(split.modes - split.fixed @ split.shares)  # C N
        if split.statics is not None:
            self.constraint -= split.statics.part

    def __call__(self, derivatives: MatrixDerivatives) -> tuple[Array, Array]:
        """Return Ψ′ (owned dofs, n), and the derivative of the interface motions N."""
        split, problem, comm = self.split, self.problem, self.problem.comm
        boundary = self.boundary_motion(derivatives, split.motions)
        border = self.border_derivative(derivatives)
        residual = multiply(problem.stiffness, self.constraint)
        forces, averages = self.border_terms(border, self.constraint, -residual)
        forces -= self.stiffness_product(derivatives, self.constraint)
        constraint = self.held.solve_moved(forces, boundary, averages)
        fixed = self._fixed_derivatives(derivatives, border)
        Y = constraint + fixed @ split.shares
        if split.statics is not None:
            Y += split.statics.derivative(self, derivatives, border)
        inside = gram(comm, self._mass_span, Y)
        mass = gram(comm, self._span, mass_product(problem, derivatives, split.modes))
        count = len(split.rigid_factor)
        moved: Array = np.zeros((count, split.modes.shape[1]))
        if derivatives.velocity is not None and count:
            turned = rigid_motions(derivatives.velocity)
            turned[:, : problem.dim] = 0.0  # translations do not depend on the shape
            moved = split.rigid_factor.T @ gram(comm, turned, self._mass_span[:, count:])
        coefficients = -inside
        coefficients[:count] -= mass[:count] + moved
        coefficients[count:] -= mass[count:] / 2
        all_motions = np.hstack([split.rigid_interfaces, split.motions])
        return np.asfortranarray(Y + self._span @ coefficients), all_motions @ coefficients

    def stiffness_product(self, derivatives: MatrixDerivatives, X: Array) -> Array:
        """Return K′X."""
        if derivatives.stiffness is None:
            return np.zeros_like(X)
        return multiply(derivatives.stiffness, X)

    def boundary_motion(self, derivatives: MatrixDerivatives, motions: Array) -> Array | None:
        """Return θ×(V − V_k) at the nodes of rigid interfaces, zero elsewhere; None for V = 0.

        `motions` are the motions of all interfaces, shape (coordinates, columns).
        """
        if derivatives.velocity is None or not self.interfaces:
            return None
        problem, dim = self.problem, self.problem.dim
        num_rigid = problem.num_rigid
        out = np.zeros((problem.num_owned, motions.shape[1]), order="F")
        for k, i in enumerate(self.interfaces):
            if i.kind != "rigid":
                continue
            relative = derivatives.velocity[i.blocks] - point_velocity(problem, i, derivatives)
            turned = rigid_motions(relative)
            turned[:, :dim] = 0.0
            out[i.dofs] = turned @ motions[num_rigid * k : num_rigid * (k + 1)]
        return out

    def border_derivative(self, derivatives: MatrixDerivatives) -> Array | None:
        """Return the derivative of Cᵀ of the averaged interfaces, or None if it is zero."""
        velocity, problem = derivatives.velocity, self.problem
        if velocity is None or not any(i.rows is not None for i in self.interfaces):
            return None
        columns = []
        for i in self.interfaces:
            if i.rows is None:
                continue
            moments = InterfaceMoments(problem.space, i.facets, i.point[: problem.dim])
            moved = point_velocity(problem, i, derivatives)
            shift = ufl.inner(moments.spin * ufl.as_vector(moved.tolist()), moments.test)
            raw = moments.assembled(moments.form)
            change = moments.assembled(derivatives.of_form(moments.form) - shift * moments.ds)
            R, turned = problem.rigid_motions(i.point), rigid_motions(velocity - moved)
            turned[:, : problem.dim] = 0.0
            G = gram(problem.comm, raw, R)
            G_change = gram(problem.comm, change, R) + gram(problem.comm, raw, turned)
            inverse = np.linalg.inv(G).T
            columns.append((change - raw @ inverse @ G_change.T) @ inverse)
        return np.hstack(columns)

    def border_terms(
        self, border: Array | None, X: Array, forces: Array
    ) -> tuple[Array, Array | None]:
        """Return the nodal forces −C′ᵀμ and the averages −C′X of displacements X.

        `border` is C′ᵀ, and `forces` are the forces Cᵀμ on the nodes of averaged interfaces.
        """
        if border is None:
            return np.zeros(X.shape, order="F"), None
        comm, multipliers = self.problem.comm, []
        for i in self.interfaces:
            if i.rows is not None:
                R = self.problem.rigid_motions(i.point, i.blocks)
                multipliers.append(gram(comm, R, forces[i.dofs]))
        return -border @ np.vstack(multipliers), -gram(comm, border, X)

    def _fixed_derivatives(self, derivatives: MatrixDerivatives, border: Array | None) -> Array:
        """Return the parts of Φ′ that are M-orthogonal to Φ."""
        split, problem = self.split, self.problem
        residual = multiply(problem.stiffness, split.fixed) - self._mass_fixed * split.squares
        forces, averages = self.border_terms(border, split.fixed, -residual)
        forces -= self.stiffness_product(derivatives, split.fixed)
        forces += mass_product(problem, derivatives, split.fixed) * split.squares
        start = self._without_fixed(self.held.solve_moved(forces, None, averages))
        return solve_shifted(
            start, split.squares, self.held.solve_body, self._without_fixed, problem
        )

    def _without_fixed(self, X: Array) -> Array:
        """Return X without its components along Φ."""
        inside = gram(self.problem.comm, self._mass_fixed, X)
        return np.asfortranarray(X - self.split.fixed @ inside)


def solve_shifted(
    start: Array,
    squares: Array,
    inverse: Callable[[Array], Array],
    project: Callable[[Array], Array],
    problem: ElasticProblem,
) -> Array:
    """Return the solutions x_j of (K − λ_j M) x_j = K s_j outside an invariant subspace.

    With x_j = s_j + y_j this is (1 − λ_j K⁻¹M) y_j = λ_j K⁻¹M s_j. All systems share a block Krylov
    space of K⁻¹M, which grows until no solution changes. Galerkin's method in the inner product of
    M determines each y_j. Collective.

    Args:
        start: s_j, the solutions for λ_j = 0, shape (owned dofs, k).
        squares: λ_j, shape (k,), (rad/s)².
        inverse: Function that returns K⁻¹ F for a block of forces.
        project: Function that removes the components along the invariant subspace.
        problem: Matrices of the body.

    Raises:
        SolverError: The space grows too large.
    """
    comm = problem.comm
    mass = problem.apply_mass(start)
    limit = CHANGE_TOLERANCE * np.sqrt(column_sums(comm, start, mass))
    right = project(inverse(mass))  # K⁻¹M s
    V, MV = np.zeros((2, len(start), 0))
    image = right
    T: Array = np.zeros((0, 0))
    coefficients: Array = np.zeros((0, len(squares)))
    for _ in range(MAX_STEPS):
        new, mass = orthonormalized(problem, image, V, MV)
        V, MV = (np.asfortranarray(np.hstack(pair)) for pair in ((V, new), (MV, mass)))
        image = project(inverse(mass))
        columns = gram(comm, MV, image)
        T = np.block([[T, columns[: len(T)]], [columns[: len(T)].T, columns[len(T) :]]])
        shifted = np.eye(len(T)) - squares[:, None, None] * (T + T.T) / 2
        load = squares[:, None] * gram(comm, right, MV)
        solution = np.asarray(np.linalg.solve(shifted, load[:, :, None])[:, :, 0].T, float)
        change = solution.copy()
        change[: len(coefficients)] -= coefficients
        coefficients = solution
        active = np.linalg.norm(change, axis=0) > limit
        if not active.any() or not new.shape[1]:
            return np.asfortranarray(start + V @ coefficients)
    raise SolverError("the derivatives of the fixed-interface modes do not converge")


def orthonormalized(problem: ElasticProblem, X: Array, V: Array, MV: Array) -> tuple[Array, Array]:
    """Return an M-orthonormal basis B of X outside the span of V, and M B (collective).

    `V` is M-orthonormal, and `MV` is M V.
    """
    comm, MX = problem.comm, problem.apply_mass(X)
    for _ in range(2):
        inside = gram(comm, MV, X)
        X, MX = X - V @ inside, MX - MV @ inside
        G = gram(comm, X, MX)
        size = np.sqrt(np.maximum(np.diag(G), 1e-300))
        values, vectors = np.linalg.eigh((G + G.T) / 2 / np.outer(size, size))
        independent = values > 1e-14
        change = vectors[:, independent] / np.sqrt(values[independent]) / size[:, None]
        X, MX = np.asfortranarray(X @ change), np.asfortranarray(MX @ change)
    return X, MX


def mass_product(problem: ElasticProblem, derivatives: MatrixDerivatives, X: Array) -> Array:
    """Return M′X."""
    if derivatives.scalar_mass is None:
        return np.zeros(X.shape, order="F")
    return replace(problem, scalar_mass=derivatives.scalar_mass).apply_mass(X)


def point_velocity(
    problem: ElasticProblem, interface: MeshInterface, derivatives: MatrixDerivatives
) -> Array:
    """Return the velocity of an interface point, shape (dim,), from the nodes of the interface.

    It is the affine function of the position that is closest to the velocity of the nodes,
    evaluated at the point.
    """
    comm, dim = problem.comm, problem.dim
    assert derivatives.velocity is not None
    x = problem.positions[interface.blocks] - interface.point[:dim]
    V = derivatives.velocity[interface.blocks]
    x, V = (np.vstack(comm.allgather(a)) for a in (x, V))
    design = np.column_stack([np.ones(len(x)), x / np.abs(x).max()])
    return np.asarray(np.linalg.lstsq(design, V, rcond=1e-9)[0][0])
