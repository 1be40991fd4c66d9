"""Derivatives of reduced beams with respect to parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.sensitivity.beam_changes import BeamChange, beam_change, parameters_of_beams
from dolfinx_mbd.design.sensitivity.beam_modes import (
    ChangedMatrices,
    StiffeningRates,
    mode_derivatives,
)
from dolfinx_mbd.design.sensitivity.body_derivative import second_order_size
from dolfinx_mbd.design.sensitivity.omitted_modes import (
    AT_THE_LIMIT,
    at_the_limit,
    without_omitted_modes,
)
from dolfinx_mbd.design.sensitivity.split import split_modes
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.structures.beams import BeamModel, BeamReduction
from dolfinx_mbd.structures.beams.beam_shapes import (
    beam_points,
    point_rates,
    radii_of_gyration,
    skin_arms,
    surface_around,
)
from dolfinx_mbd.structures.beams.problem import BeamProblem, beam_problem, moments


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
    problem = beam_problem(model)
    interfaces = tuple(
        MeshInterface(i.name, i.point, i.axes, model.node(i.point)[1], dim=6)
        for i in body.interfaces
    )
    with destroying(problem.comm, problem):
        motions = np.vstack([np.zeros((0, body.num_modes)), *(i.motion for i in body.interfaces)])
        modes, omitted = reduction.modes, reduction.omitted
        if omitted is not None:
            nodes = [
                gram(problem.comm, np.eye(6)[: len(i.dofs)], omitted[i.dofs]) for i in interfaces
            ]
            others = np.vstack([np.zeros((0, omitted.shape[1])), *nodes])
            modes, motions = np.hstack([modes, omitted]), np.hstack([motions, others])
        attached = body.reference != "mean axis"
        modes = np.asfortranarray(modes)
        split = split_modes(problem, interfaces, modes, motions, attached=attached)
        stiffening = None
        if body.stiffening is not None:
            stiffening = StiffeningRates(problem, interfaces, split)
        entries = {}
        for name, change in changes.items():
            matrices = ChangedMatrices(model, change)
            with destroying(problem.comm, matrices):
                derivatives = mode_derivatives(problem, interfaces, split, matrices)
                if omitted is not None:
                    forces = multiply(matrices.stiffness, reduction.modes)
                    derivatives = without_omitted_modes(problem, split, forces, *derivatives)
                entries[name] = _entries(reduction, problem, *derivatives, matrices)
                if stiffening is not None:
                    mode_changes, _ = derivatives
                    spin, wrenches = stiffening(matrices, mode_changes)
                    entries[name] |= {"spin_stiffening": spin, "interface_stiffening": wrenches}
        if stiffening is not None:
            stiffening.destroy()
    return {name: change.base for name, change in changes.items()}, entries


def _check(reduction: BeamReduction) -> None:
    """Raise an error if a reduction cannot be differentiated."""
    body, reason = reduction.body, ""
    if at_the_limit(reduction):
        reason = AT_THE_LIMIT
    elif body.damping.any():
        reason = "damping; add it to the first-order body"
    elif not np.array_equal(body.mass, np.eye(body.num_modes)):
        reason = "modes that are not orthonormal"
    if reason:
        text = f"sensitivities are not available for {reason}"
        raise InputError(text, argument="reduction", value=reduction)


def _entries(
    reduction: BeamReduction,
    problem: BeamProblem,
    changes: Array,
    motions: Array,
    matrices: ChangedMatrices,
) -> dict[str, Any]:
    """Return the entries of `BodyDerivative` without frequencies and stiffening."""
    body, modes, model, change = reduction.body, reduction.modes, reduction.model, matrices.change
    comm, n = problem.comm, body.num_modes
    mass, first, second = _moments(problem, modes, changes, matrices)
    K_changes = multiply(problem.stiffness, changes)
    product = multiply(matrices.stiffness, modes)
    cross, mixed = gram(comm, modes, K_changes), gram(comm, changes, product)
    stiffness = gram(comm, modes, product) + cross + cross.T
    energies = np.diag(gram(comm, changes, K_changes) + mixed + mixed.T)
    inertia = problem.apply_mass(changes) + 2 * matrices.apply_mass(modes)
    nodal, rates = model.gather(modes), model.gather(changes)
    places = {p.name: p.position for p in body.points}
    points = beam_points(model, rates, places)
    moved, shifts = point_rates(model, nodal, places, change.chain)
    skin_positions: Any = None
    skin_modes: Any = None
    if body.skin is not None:
        skin_positions, skin_modes = _skin(model, nodal, rates, change)
    return {
        "total_mass": mass,
        "first_moments": first,
        "second_moments": second,
        "stiffness": (stiffness + stiffness.T) / 2,
        "interface_points": np.outer(change.at(model, body.interfaces), model.direction).reshape(
            -1, 3
        ),
        "interface_motions": motions.reshape(len(body.interfaces), 6, n),
        "positions": shifts,
        "point_modes": moved + np.array([p.modes for p in points]).reshape(-1, n, 3),
        "skin_positions": skin_positions,
        "skin_modes": skin_modes,
        "spin_stiffening": None,
        "interface_stiffening": None,
        "limits": _limits(model, change),
        "second_order": second_order_size(body, energies, np.diag(gram(comm, changes, inertia))),
    }


def _limits(model: BeamModel, change: BeamChange) -> tuple[float, float]:
    """Return the steps below and above zero at which a cell has no length."""
    with np.errstate(divide="ignore"):
        steps = -np.diff(model.chain @ model.direction) / np.diff(change.chain)
    low = np.max(steps[steps < 0], initial=-np.inf)
    return float(low), float(np.min(steps[steps > 0], initial=np.inf))


def _moments(
    problem: Any, modes: Array, changes: Array, matrices: ChangedMatrices
) -> tuple[float, Array, Array]:
    """Return the derivatives of the mass, the first moments S and the second moments H."""
    comm = problem.comm
    # F, P and C: derivatives of the arguments of `moments`, which is linear in them
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


def _skin(model: BeamModel, nodal: Array, rates: Array, change: BeamChange) -> tuple[Array, Array]:
    """Return the derivatives of the positions of the skin and of its modes."""
    arms = skin_arms(model, radii_of_gyration(model))
    arm_rates = np.zeros_like(arms)
    if change.section is not None:
        arm_rates = skin_arms(model, radii_of_gyration(model, change.section))
    rotations = nodal.copy()
    rotations[:, :3] = 0.0
    velocity: Array = np.asarray(np.outer(change.chain, model.direction), dtype=float)
    by_geometry = surface_around(velocity, arm_rates, rotations)
    by_modes = surface_around(model.chain, arms, rates)
    return by_geometry.points, by_geometry.modes + by_modes.modes
