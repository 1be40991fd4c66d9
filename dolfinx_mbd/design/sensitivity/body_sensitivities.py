"""Derivatives of reduced bodies with respect to parameters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.tree import with_values
from dolfinx_mbd.checks import instance, items
from dolfinx_mbd.design.sensitivity.beam_changes import SectionParameter
from dolfinx_mbd.design.sensitivity.beam_derivatives import beam_derivatives
from dolfinx_mbd.design.sensitivity.body_derivative import (
    BodyDerivative,
    central_derivatives,
    derivative_from,
    effective_mass_derivatives,
    frequency_derivatives,
    second_order_size,
)
from dolfinx_mbd.design.sensitivity.differences import ProjectionDerivatives, SolvedDerivatives
from dolfinx_mbd.design.sensitivity.first_order import BodySensitivities
from dolfinx_mbd.design.sensitivity.mode_derivatives import (
    BasisDerivatives,
    ModeChanges,
    ModeLoads,
)
from dolfinx_mbd.design.sensitivity.omitted_modes import (
    AT_THE_LIMIT,
    at_the_limit,
    interface_averages,
    without_omitted_modes,
)
from dolfinx_mbd.design.sensitivity.parameters import (
    MatrixDerivatives,
    Parameter,
    base_value,
    matrix_derivatives,
)
from dolfinx_mbd.design.sensitivity.part_derivatives import PartDerivatives
from dolfinx_mbd.design.sensitivity.prestress_derivative import (
    PrestressDerivatives,
    prestressed_problem,
)
from dolfinx_mbd.design.sensitivity.split import SplitModes, split_modes
from dolfinx_mbd.design.sensitivity.static_modes import with_static_modes
from dolfinx_mbd.design.sensitivity.stiffening_derivative import StiffeningDerivatives
from dolfinx_mbd.durability.recovery.gauge_recovery import gauge_derivatives
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, unblocked
from dolfinx_mbd.fem.interfaces.bores import bore_patterns
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram, multiply
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.reduction.held_stiffness import FreeStiffness, HeldStiffness
from dolfinx_mbd.reduction.reducer import Reducer, shared_solver
from dolfinx_mbd.reduction.result import MESH_HINT, Reduction
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES
from dolfinx_mbd.structures.beams import BeamReduction

PREFIX = "dolfinx_mbd_sensitivity_"
"""Prefix of the PETSc options of the linear solver."""


def sensitivities(
    reduction: Reduction | BeamReduction,
    parameters: Sequence[Parameter | SectionParameter],
    *,
    reducer: Reducer | None = None,
) -> BodySensitivities:
    """Compute the derivatives of a reduced body with respect to parameters.

    The derivatives include those of the modes, so that a central difference of two reductions
    agrees in the limit. All parameters use the same factorization.

    Args:
        reduction: Result of `reduce` with orthonormal modes, or of `reduce_beam`. Its body may have
            stress modes (`recovery.skin_stress`). With `up_to`, the number of modes is constant.
        parameters: Parameters with different names; for a beam also `SectionParameter`.
        reducer: The open `Reducer` of the reduction, whose matrices and factors are used again; by
            default they are computed, as they are for a body with prestress. Not for a beam.

    Returns:
        Mapping from names of parameters to derivatives; its method `at` returns first-order bodies.

    Raises:
        InputError: The reduction has an unsupported option, the body does not depend on a
            parameter, the reducer is closed or not that of the reduction, or a beam has one.

    Warns:
        AccuracyWarning: Round-off limits the accuracy of the derivatives of the modes.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> E = mbd.Parameter("E", "young")
        >>> derivative = mbd.sensitivities(bar, [E])["E"].frequencies
        >>> bool(np.allclose(derivative * 210e9, bar.body.frequencies / 2))
        True
    """
    if isinstance(reduction, BeamReduction):
        if reducer is not None:
            text = "a beam has no reducer, because its matrices are small; omit the argument"
            raise InputError(text, argument="reducer", value=reducer)
        return _beam_sensitivities(reduction, parameters)
    instance("reduction", reduction, Reduction, MESH_HINT)
    parameters = items("parameters", parameters, Parameter)
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise InputError(f"the parameters need different names; got {names}", argument="parameters")
    instance("reducer", reducer, (Reducer, type(None)))
    model, interfaces = _checked(reduction)
    prestress: PrestressDerivatives | None = None
    held: HeldStiffness | FreeStiffness | None = None
    owned: list[Any] = []
    if reducer is None or model.prestress is not None:
        problem, prestress = prestressed_problem(model, FreeStiffness, PREFIX)
        owned = [problem] if prestress is None else [problem, prestress]
    else:
        problem, held = shared_solver(reducer, reduction)
    with destroying(problem.comm, *owned):
        split = _split(reduction, problem)
        solvers: list[Any] = []
        if held is None:
            held = _solver(problem, interfaces, split)
            solvers.append(held)
        with destroying(problem.comm, *solvers):
            derivatives = _derivatives(reduction, parameters, problem, held, split, prestress)
    base = {p.name: base_value(model, p) for p in parameters}
    return BodySensitivities(reduction.body, base, derivatives)


def _solver(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], split: SplitModes
) -> HeldStiffness | FreeStiffness:
    """Return a solver with the stiffness of the held body, or of the body without interfaces."""
    if interfaces:
        return HeldStiffness(problem, interfaces, PREFIX, None)
    return FreeStiffness(problem, split.rigid, PREFIX)


def _split(reduction: Reduction, problem: ElasticProblem) -> SplitModes:
    """Return the constraint and fixed-interface parts of the modes."""
    body = reduction.body
    rows, modes = WRENCH_INDICES[problem.dim], reduction.modes
    empty: Array = np.zeros((0, body.num_modes))
    motions = np.vstack([empty, *(i.motion[rows] for i in body.interfaces)])
    if reduction.omitted is not None:
        others = interface_averages(problem, reduction.interfaces, reduction.omitted)
        modes, motions = np.hstack([modes, reduction.omitted]), np.hstack([motions, others])
    attached = body.reference != "mean axis"
    modes = np.asfortranarray(modes)
    return split_modes(problem, reduction.interfaces, modes, motions, attached=attached)


def _derivatives(
    reduction: Reduction,
    parameters: Sequence[Parameter],
    problem: ElasticProblem,
    held: HeldStiffness | FreeStiffness,
    split: SplitModes,
    prestress: PrestressDerivatives | None,
) -> dict[str, BodyDerivative]:
    """Return the derivatives as a mapping from names of parameters."""
    parts = _part_derivatives(reduction, problem, held)
    split = with_static_modes(
        split, problem, held.solve_body, parts.static_forces(), parts.static_changes
    )
    basis = BasisDerivatives(problem, reduction.interfaces, held, split)
    model, derivatives = reduction.model, {}
    assert model is not None
    with ExitStack() as stack:
        stack.enter_context(destroying(problem.comm, basis))
        stiffening = None
        if reduction.body.stiffening is not None:
            stiffening = StiffeningDerivatives(basis)
            stack.enter_context(destroying(problem.comm, stiffening))
        projection = ProjectionDerivatives(reduction, problem, parts.forces, parts.bores)
        group = stack.enter_context(ExitStack())
        waiting: list[tuple[str, MatrixDerivatives, ModeLoads]] = []
        for number, parameter in enumerate(parameters, 1):
            matrices = matrix_derivatives(model, problem, parameter, prestress, parts.forms)
            group.enter_context(destroying(problem.comm, matrices))
            waiting.append((parameter.name, matrices, basis.loads(matrices)))
            loads = [right_sides for _, _, right_sides in waiting]
            if number < len(parameters) and not basis.is_full(loads):
                continue
            changes = basis(loads)
            for (name, matrices, _), change in zip(waiting, changes, strict=True):
                derivatives[name] = _body_derivative(
                    reduction, basis, stiffening, parts, projection, matrices, change
                )
            waiting = []
            del changes, change  # frees their memory before the next group
            group.close()
    return derivatives


def _beam_sensitivities(
    reduction: BeamReduction, parameters: Sequence[Parameter | SectionParameter]
) -> BodySensitivities:
    """Return the sensitivities of a reduced beam."""
    body = reduction.body
    base, entries = beam_derivatives(reduction, parameters)
    derivatives = {name: derivative_from(body, e) for name, e in entries.items()}
    return BodySensitivities(body, base, derivatives)


def _checked(reduction: Reduction) -> tuple[Any, tuple[MeshInterface, ...]]:
    """Return model and interfaces; raise an error if the reduction cannot be differentiated."""
    body, model, interfaces = reduction.body, reduction.model, reduction.interfaces
    reason = ""
    if model is None:
        reason = "a reduction that `reduce` did not compute"
    elif at_the_limit(reduction):
        reason = AT_THE_LIMIT
    elif not np.array_equal(body.mass, np.eye(body.num_modes)):
        reason = "modes that are not orthonormal"
    elif reduction.modes.shape[1] != body.num_modes:
        reason = "a body that is truncated after its reduction; truncate the first-order body"
    if reason:
        text = f"sensitivities are not available for {reason}"
        raise InputError(text, argument="reduction", value=reduction)
    return model, interfaces


def _part_derivatives(
    reduction: Reduction, problem: ElasticProblem, held: HeldStiffness | FreeStiffness
) -> PartDerivatives:
    """Return the derivatives of the optional parts; the pressure patterns are computed again."""
    bores = [i for i in reduction.interfaces if i.pressure_modes is not None]
    patterns = tuple(bore_patterns(problem, bore, held.solve_body) for bore in bores)
    return PartDerivatives(reduction, problem, patterns)


def _body_derivative(
    reduction: Reduction,
    basis: BasisDerivatives,
    stiffening: StiffeningDerivatives | None,
    parts: PartDerivatives,
    projection: ProjectionDerivatives,
    matrices: MatrixDerivatives,
    derivative: ModeChanges,
) -> BodyDerivative:
    """Return the derivative of the body from those of its modes and matrices."""
    problem, interfaces = basis.problem, basis.interfaces
    body, dim, comm = reduction.body, problem.dim, problem.comm
    modes, n = reduction.modes, reduction.body.num_modes
    changes, motions, stiff = derivative.modes, derivative.motions, derivative.stiff[:, :n]
    if reduction.omitted is not None:
        changes, motions = without_omitted_modes(problem, basis.split, stiff, changes, motions)
    K_changes = multiply(problem.stiffness, changes)
    cross = gram(comm, modes, K_changes)
    stiffness, energies = cross + cross.T, column_sums(comm, changes, K_changes)
    if matrices.stiffness is not None:
        stiffness += gram(comm, modes, stiff)
        energies += 2 * column_sums(comm, changes, stiff)
    stiffness = (stiffness + stiffness.T) / 2
    # M′Ψ: the columns after those of 1 and of the positions, see `BasisDerivatives.scalar_fields`
    of_modes = unblocked(derivative.inertia[:, 1 + dim : 1 + dim + dim * n], dim)
    inertia = problem.apply_mass(changes)
    largest = column_sums(comm, changes, inertia).max(initial=0.0) ** 0.5
    inertia += 2 * of_modes
    in_body = np.zeros((len(interfaces), 6, n))
    in_body[:, WRENCH_INDICES[dim]] = motions.reshape(-1, problem.num_rigid, n)
    forces, inertias = parts.force_changes(matrices), basis.moments(matrices, derivative, changes)
    solved = SolvedDerivatives(changes, motions, stiffness, forces, inertias, float(largest))
    arrays = projection(matrices, solved)
    if stiffening is not None:
        rotations = np.array([i.motion[3:] for i in body.interfaces])
        spin, wrenches = stiffening(matrices, changes, rotations, in_body[:, 3:])
        unit = with_values(body.stiffening, spin=spin, interfaces=wrenches, work=None)
        arrays = with_values(arrays, stiffening=unit)
    mass_moments = arrays.total_mass, arrays.first_moments, arrays.second_moments
    points = np.array([i.point for i in arrays.interfaces]).reshape(-1, 3)
    rates = frequency_derivatives(body, stiffness)
    rows = zip(arrays.modes, rates, strict=True)
    arrays = with_values(
        arrays,
        left_out=(),
        modes=tuple(with_values(mode, frequency=float(rate)) for mode, rate in rows),
        damping=parts.damping(matrices, changes, stiffness),
        gauges=gauge_derivatives(reduction, changes, matrices.velocity),
        effective_masses=effective_mass_derivatives(body, mass_moments, stiffness, points, in_body),
    )
    centre, central_inertia = central_derivatives(body, *mass_moments)
    size = second_order_size(body, energies, column_sums(comm, changes, inertia))
    return BodyDerivative(arrays, centre, central_inertia, matrices.limits, size)
