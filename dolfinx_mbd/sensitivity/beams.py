"""Derivatives of reduced beams with respect to parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.beams import BeamModel, BeamReduction
from dolfinx_mbd.beams.model import rigid_modes
from dolfinx_mbd.beams.problem import (
    BeamProblem,
    beam_matrices,
    beam_problem,
    initial_stress_matrices,
    moments,
    spin_matrices,
)
from dolfinx_mbd.beams.shapes import (
    beam_points,
    point_rates,
    radii_of_gyration,
    skin_arms,
    surface_around,
)
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import point_motion
from dolfinx_mbd.fem.operators import spin_matrix
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.sensitivity.basis import BasisDerivatives, FreeStiffness, split_modes
from dolfinx_mbd.sensitivity.beam_changes import BeamChange, beam_change, parameters_of_beams
from dolfinx_mbd.sensitivity.stiffening import StiffeningDerivatives

PREFIX = "dolfinx_mbd_beam_sensitivity_"
"""Prefix of the PETSc options of the linear solver."""


@dataclass(eq=False)
class _Problem(BeamProblem):
    """A beam in the derivatives of modes, which insert the derivative of M as `scalar_mass`."""

    scalar_mass: PETSc.Mat | None = None

    def apply_mass(self, X: Array) -> Array:
        return multiply(self.scalar_mass or self.mass_matrix, X)


class _Matrices(_Problem):
    """Derivatives of the matrices of a beam, in the form of `MatrixDerivatives`."""

    velocity = None  # interfaces are nodes: they do not deform when the nodes move
    change: BeamChange

    def __init__(self, model: BeamModel, change: BeamChange) -> None:
        K, M, couplings, positions = beam_matrices(model, change.combine)
        super().__init__(model, K, M, couplings, positions, scalar_mass=M)
        self.change = change
        nodes = np.outer(change.velocity, model.direction)
        self.turned = _turned(model, nodes)  # derivative of the rigid motions about the origin


def beam_derivatives(
    reduction: BeamReduction, parameters: Any
) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Return the base values of parameters and the entries of `BodyDerivative`, by name.

    See `sensitivities`; the entry `frequencies` is missing. Collective.
    """
    parameters = parameters_of_beams(parameters)
    body, model = reduction.body, reduction.model
    _check(reduction)
    changes = {p.name: beam_change(model, p) for p in parameters}
    base = beam_problem(model)
    problem: Any = _Problem(
        model, base.stiffness, base.mass_matrix, base.couplings, base.position_couplings
    )
    interfaces = tuple(
        MeshInterface(i.name, i.point, i.axes, model.node(i.point)[1], dim=6)
        for i in body.interfaces
    )
    with destroying(problem.comm, problem):
        motions = np.vstack([np.zeros((0, body.num_modes)), *(i.motion for i in body.interfaces)])
        attached = body.reference != "mean axis"
        split = split_modes(problem, interfaces, reduction.modes, motions, attached=attached)
        held: HeldStiffness | FreeStiffness
        if interfaces:
            held = HeldStiffness(problem, interfaces, PREFIX, None)
        else:
            held = FreeStiffness(problem, split.rigid, PREFIX)
        with destroying(problem.comm, held):
            basis = BasisDerivatives(problem, interfaces, held, split)
            stiffening = None if body.stiffening is None else _BeamStiffening(basis)
            entries = {}
            for name, change in changes.items():
                matrices = _Matrices(model, change)
                with destroying(problem.comm, matrices):
                    entries[name] = _entries(reduction, basis, stiffening, matrices)
    return {name: change.base for name, change in changes.items()}, entries


def _check(reduction: BeamReduction) -> None:
    """Raise an error if a reduction cannot be differentiated."""
    body, reason = reduction.body, ""
    if any("above" in mode.reason for mode in body.left_out):
        reason = "a reduction with `up_to`"
    elif body.damping.any():
        reason = "damping; add it to the body of first order"
    elif not np.array_equal(body.mass, np.eye(body.num_modes)):
        reason = "modes that are not orthonormal"
    if reason:
        text = f"sensitivities are not available for {reason}"
        raise InputError(text, argument="reduction", value=reduction)


def _entries(
    reduction: BeamReduction,
    basis: BasisDerivatives,
    stiffening: _BeamStiffening | None,
    matrices: _Matrices,
) -> dict[str, Any]:
    """Return the entries of `BodyDerivative` without the frequencies."""
    problem, body, modes = basis.problem, reduction.body, reduction.modes
    comm, model, change = problem.comm, reduction.model, matrices.change
    n = body.num_modes
    changes, motions = _mode_derivatives(basis, matrices)
    mass, first, second = _moments(problem, modes, changes, matrices)
    K_changes = multiply(problem.stiffness, changes)
    product = multiply(matrices.stiffness, modes)
    cross, twice = gram(comm, modes, K_changes), gram(comm, changes, product)
    stiffness = gram(comm, modes, product) + cross + cross.T
    quadratic = gram(comm, changes, K_changes) + twice + twice.T
    distances = model.chain @ model.direction
    at_interfaces = [change.chain[_node(distances, i.point, model)] for i in body.interfaces]
    nodal, rates = model.gather(modes), model.gather(changes)
    places = {p.name: p.position for p in body.points}
    points = beam_points(model, rates, places)
    moved, shifts = point_rates(model, nodal, places, change.chain)
    spin = wrenches = None
    if stiffening is not None:
        spin, wrenches = stiffening.of_beam(matrices, changes)
    skin: Any = (None, None)
    if body.skin is not None:
        skin = _skin(model, nodal, rates, change)
    return {
        "total_mass": mass,
        "first_moments": first,
        "second_moments": second,
        "stiffness": (stiffness + stiffness.T) / 2,
        "interface_points": np.outer(at_interfaces, model.direction).reshape(-1, 3),
        "interface_motions": motions.reshape(len(body.interfaces), 6, n),
        "positions": shifts,
        "point_modes": moved + np.array([p.modes for p in points]).reshape(-1, n, 3),
        "skin_positions": skin[0],
        "skin_modes": skin[1],
        "spin_stiffening": spin,
        "interface_stiffening": wrenches,
        "second_order": float(
            np.max(np.abs(np.diag(quadratic)) / np.diag(body.stiffness), initial=0.0)
        ),
    }


def _mode_derivatives(basis: BasisDerivatives, matrices: _Matrices) -> tuple[Array, Array]:
    """Return Ψ′ (owned dofs, n), and the derivative of the interface motions."""
    split = basis.split
    changes, motions = basis(matrices)  # type: ignore[arg-type]
    count = len(split.rigid_factor)
    if count and matrices.change.velocity.any() or matrices.change.chain.any():
        # ΨᵀMR = 0 remains true when the rigid motions R change
        turned = matrices.turned[:, :count] @ split.rigid_factor
        moved = gram(basis.problem.comm, turned, basis.problem.apply_mass(split.modes))
        changes = np.asfortranarray(changes - split.rigid @ moved)
        motions = motions - split.rigid_interfaces @ moved
    return changes, motions


def _moments(
    problem: Any, modes: Array, changes: Array, matrices: _Matrices
) -> tuple[float, Array, Array]:
    """Return the derivatives of the mass, S and H."""
    comm = problem.comm
    X = np.asfortranarray(np.hstack([problem.rigid_motions(), modes]))
    Y = np.asfortranarray(np.hstack([matrices.turned, changes]))  # X′
    F = gram(comm, Y, problem.apply_mass(X[:, :3])) + gram(comm, X, matrices.apply_mass(X[:, :3]))
    base, change = (p.position_couplings.reshape(-1, 9) for p in (problem, matrices))
    P = gram(comm, Y, base) + gram(comm, X, change)
    C = []
    for matrix, derivative in zip(problem.couplings, matrices.couplings, strict=True):
        cross = gram(comm, changes, multiply(matrix, modes))
        cross += gram(comm, modes, multiply(matrix, changes))
        C.append(cross + gram(comm, modes, multiply(derivative, modes)))
    return moments(F, P.reshape(-1, 3, 3), np.array(C).reshape(9, *2 * [modes.shape[1]]))


def _skin(
    model: BeamModel, nodal: Array, rates: Array, change: BeamChange
) -> tuple[Array, Array]:
    """Return the derivatives of the positions of the skin and of its modes."""
    arms = skin_arms(model, radii_of_gyration(model))
    arm_rates = np.zeros_like(arms)
    if change.section is not None:
        arm_rates = skin_arms(model, radii_of_gyration(model, change.section))
    rotations = nodal.copy()
    rotations[:, :3] = 0.0
    turned = surface_around(np.outer(change.chain, model.direction), arm_rates, rotations)
    moved = surface_around(model.chain, arms, rates)
    return turned.points, turned.modes + moved.modes


def _node(distances: Array, point: Array, model: BeamModel) -> int:
    return int(np.argmin(np.abs(distances - point @ model.direction)))


def _turned(model: BeamModel, velocity: Array) -> Array:
    """Return the derivative of the rigid motions about the origin, shape (owned dofs, 6)."""
    R = rigid_modes(model).reshape(-1, 6, 6)
    R[:] = 0.0
    for c in range(3):
        R[:, :3, 3 + c] = np.cross(np.eye(3)[c], velocity)
    return np.asfortranarray(R.reshape(-1, 6))


class _BeamStiffening(StiffeningDerivatives):
    """Derivatives of the stiffening of a beam; see `dolfinx_mbd.beams.reduce`."""

    _relief_change: Array

    def of_beam(self, matrices: _Matrices, changes: Array) -> tuple[Array, Array]:
        """Return the derivatives of `Stiffening.spin` and `Stiffening.interfaces`."""
        problem, modes = self.basis.problem, self.basis.split.modes
        comm, model = problem.comm, matrices.model
        displacements, _ = self._case_derivatives(matrices)  # type: ignore[arg-type]
        W = -np.array([spin_matrix(alpha) for alpha in self._relief[3:].T])
        W[: len(SPINS)] += spin_matrices()
        moved = -np.array([spin_matrix(alpha) for alpha in self._relief_change[3:].T])
        u, combine = self._cases.displacements, matrices.change.combine
        n = modes.shape[1]
        reduced = np.zeros((len(W), n, n))
        sequences = (
            initial_stress_matrices(model, u, W),
            initial_stress_matrices(model, displacements, moved),
            initial_stress_matrices(model, u, W, combine),
        )
        for c, (A, of_case, explicit) in enumerate(zip(*sequences, strict=True)):
            cross = gram(comm, changes, multiply(A, modes))
            K = cross + gram(comm, modes, multiply(A, changes))
            for B in (of_case, explicit):
                K += gram(comm, modes, multiply(B, modes))
            reduced[c] = (K + K.T) / 2
            for item in (A, of_case, explicit):
                item.destroy()
        count = len(self.basis.interfaces)
        return reduced[:6], reduced[6:].reshape(count, 6, n, n)

    def _load_derivative(self, matrices: Any) -> Array:
        """Return the derivative of the unit loads with inertia relief."""
        problem, comm, R = self.basis.problem, self.basis.problem.comm, self._rigid
        turned, model = matrices.turned, matrices.model
        distances = model.chain @ model.direction
        spins = matrices.spin_loads()
        inertia = matrices.apply_mass(R) + problem.apply_mass(turned)
        mass = gram(comm, R, inertia) + gram(comm, turned, self._inertia)
        resultants = [gram(comm, R, spins) + gram(comm, turned, self._spins)]
        for i in self.basis.interfaces:
            speed = matrices.change.chain[_node(distances, i.point, model)]
            resultants.append((point_motion(speed * model.direction) - np.eye(6)).T)
        right = np.hstack(resultants) - mass @ self._relief
        self._relief_change = np.linalg.solve(self._mass, right)
        load = -inertia @ self._relief - self._inertia @ self._relief_change
        load[:, :6] += spins
        return np.asfortranarray(load)
