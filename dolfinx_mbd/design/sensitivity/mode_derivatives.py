"""Derivatives of the modes of a reduced body on the mesh.

The modes span constraint modes C and fixed-interface modes Φ. Their derivatives follow from

    K C′ = −K′C,    (K − λM) Φ′ = −(K′ − λM′) Φ    with held interfaces.

Only the parts of C′ and Φ′ outside the span of the modes matter. The parts inside this span depend
on the choice of coordinates. Here they are chosen such that ΨᵀMΨ′ is symmetric. The modes then
remain orthonormal and rotate as little as possible within their span. The formulas do not divide by
a difference of eigenvalues, so that modes may cross. M_s is the mass matrix of one component of the
displacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import ufl
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.design.sensitivity.split import SplitModes, deformed_part
from dolfinx_mbd.fem.assembly import (
    ElasticProblem,
    blocked,
    in_space,
    point_motion,
    rigid_motions,
    unblocked,
)
from dolfinx_mbd.fem.inertia import Inertia, inertia_derivative
from dolfinx_mbd.fem.interfaces.averaged import InterfaceMoments, border_rows
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import (
    add_combined,
    column_sums,
    combined,
    gram,
    multiply,
)
from dolfinx_mbd.fem.linalg.shifted_systems import ShiftedSystems
from dolfinx_mbd.reduction.craig_bampton import ROUND_OFF_RESIDUAL
from dolfinx_mbd.reduction.held_stiffness import FreeStiffness, HeldStiffness

ZERO_TOLERANCE = 1e-7  # forces on modes below this relative size count as zero
# Largest numbers of right-hand sides and of parameters that are solved together: more would reduce
# the time little, but need more memory.
GROUP_COLUMNS, GROUP = 110, 8


@dataclass(frozen=True, eq=False)
class ModeLoads:
    """Right-hand sides of the derivatives of the modes with respect to one parameter.

    Columns are those of the deformed constraint modes, then of Φ, without those that are zero.
    """

    deformed: NDArray[np.int64]  # numbers of the deformed constraint modes
    fixed: NDArray[np.int64]  # numbers of the fixed-interface modes
    forces: Array  # (owned dofs, columns)
    boundary: Array | None  # motion of the rigid interfaces in the first columns, None if zero
    averages: Array | None  # motion of the averaged interfaces, (coordinates, columns)
    moved: Array  # part of Ψ′ that needs no solution of these systems, (owned dofs, n)
    carried: Array  # motion of the interfaces with points that move, (coordinates, n)
    coefficients: Array  # explicit part of the coefficients of R̂ and Ψ in Ψ′
    stiff: Array  # K′Ψ, (owned dofs, n)
    inertia: Array  # M_s′ times `BasisDerivatives.scalar_fields`


@dataclass(frozen=True, eq=False)
class ModeChanges:
    """Derivatives of the modes Ψ and products of the derivatives of the matrices."""

    modes: Array  # Ψ′, (owned dofs, n)
    motions: Array  # derivative of the motions of the interfaces N, (coordinates, n)
    stiff: Array  # K′Ψ, (owned dofs, n)
    inertia: Array  # M_s′ times `BasisDerivatives.scalar_fields`


class BasisDerivatives:
    """Derivatives of the modes of one body with respect to its parameters; see above."""

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
        self._mass_fixed = np.asfortranarray(self._mass_span @ split.combinations)
        self.constraint = np.asfortranarray(split.modes - split.fixed @ split.shares)  # C N
        if split.statics is not None:
            self.constraint -= split.statics.part
        self._rigid_parts, self._factor = deformed_part(split)
        parts = self.constraint - split.rigid @ self._rigid_parts
        # The deformed constraint modes, then Φ, and the forces that hold them at the interfaces
        self._parts = np.asfortranarray(np.hstack([parts @ self._factor.T, split.fixed]))
        stiffened = multiply(problem.stiffness, self._parts)
        stiffened[:, len(self._factor) :] -= self._mass_fixed * split.squares
        self._reactions = -stiffened
        self._fields, self._combinations = self._independent_fields()
        # 1, positions and components of Ψ, (owned blocks, 1 + dim + dim n), and M_s times them
        x, components = problem.positions, blocked(split.modes, problem.dim)
        self.scalar_fields = np.asfortranarray(np.hstack([np.ones((len(x), 1)), x, components]))
        self.scalar_inertia = multiply(problem.scalar_mass, self.scalar_fields)
        diagonal = problem.scalar_mass.getDiagonal()
        self._weights = np.repeat(diagonal.array_r, problem.dim)[:, None] ** -0.5
        diagonal.destroy()
        self._border = border_rows(problem.num_owned, interfaces)
        if self._border is not None:
            self._weighted_border = self._border.multiply(self._weights).toarray()
            G = gram(problem.comm, self._weighted_border, self._weighted_border)
            self._multipliers = np.linalg.inv(G)
        self._mass = problem.mass()
        self._systems = ShiftedSystems(
            problem.comm,
            partial(multiply, self._mass),
            split.squares,
            held.solve_body,
            self._invariant(),
            self._weighted,
        )

    def _independent_fields(self) -> tuple[Array, Array]:
        """Return R̂, Ψ and the static modes, and the coefficients of `_parts` in them."""
        split, fields = self.split, [self._span]
        constraint = np.vstack([-self._rigid_parts, np.eye(split.modes.shape[1])])
        combinations = np.hstack(
            [(constraint - split.combinations @ split.shares) @ self._factor.T, split.combinations]
        )
        if split.statics is not None:
            fields.append(split.statics.vectors)
            rows = np.zeros((split.statics.vectors.shape[1], combinations.shape[1]))
            rows[:, : len(self._factor)] = -split.statics.shares @ self._factor.T
            combinations = np.vstack([combinations, rows])
        return np.asfortranarray(np.hstack(fields)), combinations

    def _invariant(self) -> tuple[Array, Array]:
        """Return the vectors of the invariant subspace that is outside Φ′, and M times them."""
        if self.interfaces:
            return self.split.fixed, self._mass_fixed
        count = self.split.rigid.shape[1]
        vectors = np.hstack([self.split.rigid, self.split.fixed])
        mass = np.hstack([self._mass_span[:, :count], self._mass_fixed])
        return np.asfortranarray(vectors), np.asfortranarray(mass)

    def destroy(self) -> None:
        """Free the mass matrix and the space of the systems."""
        self._mass.destroy()
        del self._systems  # it refers to this object, so that its large arrays would remain

    def is_full(self, loads: Sequence[ModeLoads]) -> bool:
        """Return whether another parameter should not be solved together with these."""
        columns = sum(item.forces.shape[1] for item in loads)
        return len(loads) >= GROUP or columns + self._parts.shape[1] > GROUP_COLUMNS

    def loads(self, derivatives: MatrixDerivatives) -> ModeLoads:
        """Return the right-hand sides of the derivatives of the modes."""
        split, problem, comm = self.split, self.problem, self.problem.comm
        border = self.border_derivative(derivatives)
        inertia, mass = self._mass_products(derivatives)
        stiff = derivatives.stiffness_product(self._fields)
        right = self._right_sides(derivatives, border, stiff, mass)
        count, num_span = len(split.rigid_factor), self._span.shape[1]
        moved = np.zeros(split.modes.shape, order="F")
        if split.statics is not None:
            moved += split.statics.derivative(self, derivatives, border, stiff[:, num_span:])
        coefficients = -gram(comm, self._span, mass[:, count:])
        coefficients[count:] /= 2
        carried = np.zeros_like(split.motions)
        if derivatives.velocity is not None and count:
            turned = rigid_motions(derivatives.velocity)
            turned[:, : problem.dim] = 0.0  # translations do not depend on the shape
            rotation = split.rigid_factor @ self._rigid_parts
            add_combined(moved, turned, rotation)
            carried = self._moved_points(derivatives) @ rotation
            rotations = gram(comm, turned, self._mass_span[:, count:])
            coefficients[:count] -= split.rigid_factor.T @ rotations
        stiff = np.asfortranarray(stiff[:, count:num_span])
        return ModeLoads(*right, moved, carried, coefficients, stiff, inertia)

    def __call__(self, loads: Sequence[ModeLoads]) -> list[ModeChanges]:
        """Return the derivatives of the modes for several parameters, solved together."""
        split, comm, width = self.split, self.problem.comm, len(self.split.squares)
        deformed, fixed = self._static_solutions(loads)
        moving = [item for item in loads if len(item.fixed)]
        columns = np.zeros((len(fixed), width * len(moving)), order="F")
        numbers = [width * k + item.fixed for k, item in enumerate(moving)]
        columns[:, np.concatenate([np.zeros(0, dtype=int), *numbers])] = fixed
        del fixed
        solutions = self._systems(columns)
        del columns
        all_motions, changes = np.hstack([split.rigid_interfaces, split.motions]), []
        for item in loads:
            Y, (first, deformed) = item.moved, np.hsplit(deformed, [len(item.deformed)])
            add_combined(Y, first, self._factor[item.deformed])
            if len(item.fixed):
                first, solutions = np.hsplit(solutions, [width])
                add_combined(Y, first, split.shares)
            coefficients = item.coefficients - gram(comm, self._mass_span, Y)
            add_combined(Y, self._span, coefficients)
            motions = item.carried + all_motions @ coefficients
            changes.append(ModeChanges(Y, motions, item.stiff, item.inertia))
        return changes

    def moments(self, derivatives: MatrixDerivatives, change: ModeChanges, modes: Array) -> Inertia:
        """Return the derivatives of the moments of mass of the body, with Ψ′ = `modes`."""
        problem, dim, count = self.problem, self.problem.dim, len(self.scalar_fields)
        columns = slice(0, 1 + dim + dim * modes.shape[1])
        velocity = derivatives.velocity
        positions = np.zeros((count, dim)) if velocity is None else velocity
        rates = np.hstack([np.zeros((count, 1)), positions, blocked(modes, dim)])
        fields = self.scalar_fields[:, columns], np.asfortranarray(rates)
        images = self.scalar_inertia[:, columns], change.inertia[:, columns]
        return inertia_derivative(problem, fields, images, derivatives.thickness)

    def _static_solutions(self, loads: Sequence[ModeLoads]) -> tuple[Array, Array]:
        """Return derivatives of the deformed constraint modes, and the static parts of Φ′.

        Both contain the columns of all parameters that are not zero, one after another.
        """
        counts = [len(item.deformed) for item in loads]
        halves = [np.hsplit(item.forces, [k]) for item, k in zip(loads, counts, strict=True)]
        forces = np.asfortranarray(
            np.hstack([X for half in zip(*halves, strict=True) for X in half])
        )
        boundary = averages = None
        if any(item.boundary is not None for item in loads):
            zero = np.zeros((len(forces), max(counts)))
            parts = [
                zero[:, :k] if item.boundary is None else item.boundary
                for item, k in zip(loads, counts, strict=True)
            ]
            boundary = np.asfortranarray(np.hstack(parts))
        if any(item.averages is not None for item in loads):
            count = max(len(a) for a in (item.averages for item in loads) if a is not None)
            zero = np.zeros((count, forces.shape[1]))
            rows = [
                zero[:, : item.forces.shape[1]] if item.averages is None else item.averages
                for item in loads
            ]
            pairs = [np.hsplit(X, [k]) for X, k in zip(rows, counts, strict=True)]
            averages = np.hstack([X for pair in zip(*pairs, strict=True) for X in pair])
        static = self.held.solve_moved(forces, boundary, averages)
        first, second = np.hsplit(static, [sum(counts)])
        return first, second

    def _mass_products(self, derivatives: MatrixDerivatives) -> tuple[Array, Array]:
        """Return M_s′ times the scalar fields, and M′ times the span of rigid motions and modes."""
        if derivatives.scalar_mass is None:
            return np.zeros_like(self.scalar_fields), np.zeros_like(self._span)
        dim, factor = self.problem.dim, self.split.rigid_factor
        image = multiply(derivatives.scalar_mass, self.scalar_fields)
        rigid = rigid_motions(image[:, 1 : 1 + dim])  # rotations are linear in the positions
        rigid[:, :dim] = (np.eye(dim) * image[:, 0, None, None]).reshape(-1, dim)
        parts = rigid[:, : len(factor)] @ factor, unblocked(image[:, 1 + dim :], dim)
        return image, np.asfortranarray(np.hstack(parts))

    def _moved_points(self, derivatives: MatrixDerivatives) -> Array:
        """Return the derivative of the motion of the interfaces in unit rigid motions."""
        dim, unit = self.problem.dim, np.eye(self.problem.num_rigid)
        rows: list[Array] = [np.zeros((0, len(unit)))]
        for interface in self.interfaces:
            v = in_space(point_velocity(self.problem, interface, derivatives))
            rows.append(point_motion(v, dim) - unit)
        return np.vstack(rows)

    def _right_sides(
        self, derivatives: MatrixDerivatives, border: Array | None, stiff: Array, mass: Array
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array | None, Array | None]:
        """Return the first five entries of `ModeLoads`.

        `stiff` is K′ times the fields, and `mass` is M′ times the span of rigid motions and modes.
        The first `count` columns are the deformed constraint modes, the others the modes Φ.
        """
        split, comm = self.split, self.problem.comm
        X, count = self._parts, len(self._factor)
        forces, averages = self.border_terms(border, X, self._reactions)
        add_combined(forces, stiff, -self._combinations)
        of_fixed = forces[:, count:]  # a view
        add_combined(of_fixed, mass, split.combinations * split.squares)
        size = self._force_norms(of_fixed)
        add_combined(of_fixed, self._mass_fixed, -gram(comm, split.fixed, of_fixed))
        motions = split.motions - split.rigid_interfaces @ self._rigid_parts
        boundary = self.boundary_motion(derivatives, motions @ self._factor.T)
        norms = self._force_norms(forces)
        zero = norms <= self._round_off(derivatives, X)
        zero[count:] |= norms[count:] <= ZERO_TOLERANCE * size
        if averages is not None:
            zero &= np.linalg.norm(averages, axis=0) == 0
        if boundary is not None:
            zero[:count] &= column_sums(comm, boundary, boundary) == 0
            boundary = boundary[:, ~zero[:count]]
        if averages is not None:
            averages = averages[:, ~zero]
        deformed, fixed = np.flatnonzero(~zero[:count]), np.flatnonzero(~zero[count:])
        return deformed, fixed, forces[:, ~zero], boundary, averages

    def boundary_motion(self, derivatives: MatrixDerivatives, motions: Array) -> Array | None:
        """Return θ×(V − V_k) at the nodes of rigid interfaces, and zero at all other nodes.

        θ is the rotation of interface k, V the velocity of the nodes and V_k that of the point of
        the interface. `motions` are the motions of all interfaces, shape (coordinates, columns).
        Return None if the parameter does not change the shape.
        """
        if derivatives.velocity is None or not self.interfaces:
            return None
        problem, dim = self.problem, self.problem.dim
        num_rigid = problem.num_rigid
        out = np.zeros((problem.num_owned, motions.shape[1]), order="F")
        for k, interface in enumerate(self.interfaces):
            if interface.kind != "rigid":
                continue
            relative = derivatives.velocity[interface.blocks] - point_velocity(
                problem, interface, derivatives
            )
            turned = rigid_motions(relative)
            turned[:, :dim] = 0.0
            out[interface.dofs] = turned @ motions[num_rigid * k : num_rigid * (k + 1)]
        return out

    def border_derivative(self, derivatives: MatrixDerivatives) -> Array | None:
        """Return the derivative of Cᵀ of the averaged interfaces, or None if it is zero."""
        velocity, problem = derivatives.velocity, self.problem
        if velocity is None or not any(interface.rows is not None for interface in self.interfaces):
            return None
        columns = []
        for interface in self.interfaces:
            if interface.rows is None:
                continue
            moments = InterfaceMoments(
                problem.space, interface.facets, interface.point[: problem.dim]
            )
            moved = point_velocity(problem, interface, derivatives)
            shift = ufl.inner(moments.spin * ufl.as_vector(moved.tolist()), moments.test)
            raw = moments.assembled(moments.form)
            change = moments.assembled(derivatives.of_form(moments.form) - shift * moments.ds)
            R, turned = problem.rigid_motions(interface.point), rigid_motions(velocity - moved)
            turned[:, : problem.dim] = 0.0
            G = gram(problem.comm, raw, R)
            G_change = gram(problem.comm, change, R) + gram(problem.comm, raw, turned)
            inverse = np.linalg.inv(G).T
            # the rows Cᵀ are the raw ones divided by their motion G in unit rigid motions
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
        for interface in self.interfaces:
            if interface.rows is not None:
                R = self.problem.rigid_motions(interface.point, interface.blocks)
                multipliers.append(gram(comm, R, forces[interface.dofs]))
        border = np.asfortranarray(border)
        return combined(border, -np.vstack(multipliers)), -gram(comm, border, X)

    def _weighted(self, forces: Array) -> Array:
        """Return M^(−½)F with diag(M), for forces F without the reactions of interfaces."""
        comm, F = self.problem.comm, forces * self._weights
        F[self.held.dofs] = 0.0
        if self._border is not None:
            F -= self._weighted_border @ (self._multipliers @ gram(comm, self._weighted_border, F))
        return F

    def _force_norms(self, forces: Array) -> Array:
        """Return the norms of `_weighted`."""
        F = self._weighted(forces)
        return np.sqrt(column_sums(self.problem.comm, F, F))

    def _round_off(self, derivatives: MatrixDerivatives, X: Array) -> Array:
        """Return limits of the round-off in the norms of forces −K′X."""
        diagonal = derivatives.stiffness_diagonal
        if diagonal is None:
            return np.zeros(X.shape[1])
        forces = ROUND_OFF_RESIDUAL * diagonal[:, None] * X
        return self._force_norms(forces)


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
