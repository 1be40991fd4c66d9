"""Derivatives of reduced bodies with respect to parameters, and bodies of first order."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.multiple import groups_of
from dolfinx_mbd.body.parts import Mode, Stiffening
from dolfinx_mbd.checks import instance, items, number, unknown
from dolfinx_mbd.errors import AccuracyWarning, InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, blocked, elastic_problem, in_space
from dolfinx_mbd.fem.fields import material_points, surface_skin
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES
from dolfinx_mbd.sensitivity.basis import (
    BasisDerivatives,
    FreeStiffness,
    point_velocity,
    split_modes,
)
from dolfinx_mbd.sensitivity.parameters import (
    MatrixDerivatives,
    Parameter,
    base_value,
    matrix_derivatives,
)
from dolfinx_mbd.sensitivity.stiffening import StiffeningDerivatives

PREFIX = "dolfinx_mbd_sensitivity_"
"""Prefix of the PETSc options of the linear solver."""


@dataclass(frozen=True, eq=False)
class BodyDerivative:
    """Derivative of a reduced body with respect to one parameter, per unit of the parameter.

    The n elastic coordinates are those of the body at the base point. When the parameter changes,
    the modal mass matrix remains the unit matrix, and the modes rotate as little as possible within
    their span. The derivative of the stiffness matrix is therefore full, and modes may cross.

    Attributes:
        total_mass: Derivative of the mass.
        first_moments: Derivative of S, shape (n+1, 3).
        second_moments: Derivative of H, shape (n+1, n+1, 3, 3).
        stiffness: Derivative of the modal stiffness matrix, shape (n, n).
        frequencies: Derivatives of the frequencies, shape (n,), Hz; those of a multiple frequency
            are the derivatives of its branches in ascending order.
        interface_points: Derivatives of the points of the interfaces, shape (interfaces, 3).
        interface_motions: Derivatives of `Interface.motion`, shape (interfaces, 6, n).
        positions: Derivatives of the positions of the material points, shape (points, 3).
        point_modes: Derivatives of `MaterialPoint.modes`, shape (points, n, 3).
        skin_positions: Derivatives of the positions of the skin, shape (ns, 3), or None.
        skin_modes: Derivatives of the modes at the skin, shape (n, ns, 3), or None.
        spin_stiffening: Derivative of `Stiffening.spin`, shape (6, n, n), or None.
        interface_stiffening: Derivative of `Stiffening.interfaces`, shape
            (interfaces, 6, n, n), or None.
        second_order: Largest known term of second order in a modal stiffness, relative to that
            stiffness, per square of the unit.

    Example:
        >>> derivative = mbd.sensitivities(bar, [mbd.Parameter("rho", "density")])["rho"]
        >>> round(derivative.total_mass / bar.body.total_mass * 7850.0, 9)
        1.0
    """

    total_mass: float
    first_moments: Array
    second_moments: Array
    stiffness: Array
    frequencies: Array
    interface_points: Array
    interface_motions: Array
    positions: Array
    point_modes: Array
    skin_positions: Array | None
    skin_modes: Array | None
    spin_stiffening: Array | None
    interface_stiffening: Array | None
    second_order: float

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class BodySensitivities(Mapping[str, BodyDerivative]):
    """Derivatives of a reduced body by the names of the parameters.

    Attributes:
        body: The body at the base point.
        base: Values of the parameters at the base point, by name; zero for coefficients and
            shapes.
        derivatives: Derivatives by the names of the parameters.

    Example:
        >>> table = mbd.sensitivities(bar, [mbd.Parameter("E", "young")])
        >>> lighter = table.at({"E": 2.0e11})
        >>> bool(lighter.frequencies[0] < bar.body.frequencies[0])
        True
    """

    body: ReducedBody
    base: Mapping[str, float]
    derivatives: Mapping[str, BodyDerivative]

    __repr__ = short_repr

    def __getitem__(self, name: str) -> BodyDerivative:
        if name not in self.derivatives:
            unknown("parameter", name, self.derivatives, "the parameters are")
        return self.derivatives[name]

    def __iter__(self) -> Any:
        return iter(self.derivatives)

    def __len__(self) -> int:
        return len(self.derivatives)

    def error(self, values: Mapping[str, float]) -> float:
        """Return an estimate of the relative error of the stiffness in the body of first order.

        The estimate contains the terms of second order that follow from first derivatives.

        Args:
            values: Values of some parameters by name.

        Raises:
            InputError: A name is unknown, or a value is not a finite number.
        """
        return float(sum(s * s * self[k].second_order for k, s in self._steps(values).items()))

    def at(self, values: Mapping[str, float]) -> ReducedBody:
        """Return the body of first order for other values of the parameters.

        The body is linear in the parameters, except that its modes are its own eigenvectors. It has
        no stress modes, strain gauges or distributed loads.

        Args:
            values: Values of some parameters by name, in the units of the parameters; the others
                keep their base values.

        Raises:
            InputError: A name is unknown, a value is not a finite number, or the step is so large
                that the body of first order has negative stiffness.

        Warns:
            AccuracyWarning: The estimated error is above 5 %.
        """
        steps, body = self._steps(values), self.body

        def moved(name: str, base: Any) -> Any:
            return base + sum(s * getattr(self[k], name) for k, s in steps.items())

        squares, W = self._modes(values)
        self._warn(values)
        T = scipy.linalg.block_diag(1.0, W)
        H = np.einsum("ki,klab,lj->ijab", T, moved("second_moments", body.second_moments), T)
        frequencies = np.sqrt(squares) / (2 * np.pi)
        texts = {k: f"first order in {k}, step {s:g}" for k, s in steps.items()}
        return body.replace(
            total_mass=moved("total_mass", body.total_mass),
            first_moments=T.T @ moved("first_moments", body.first_moments),
            second_moments=H,
            stiffness=np.diag(squares),
            damping=W.T @ body.damping @ W,
            interfaces=self._interfaces(moved, W),
            points=self._points(moved, W),
            skin=self._skin(moved, W),
            modes=tuple(Mode(f"elastic {k}", float(f)) for k, f in enumerate(frequencies, 1)),
            left_out=(),
            stiffening=self._stiffening(moved, W),
            stress=None,
            loads=(),
            gauges=(),
            effective_masses=None,
            provenance={**body.provenance, **texts},
        )

    def moved(self, values: Mapping[str, float]) -> BodySensitivities:
        """Return the body of first order, and its derivatives in its own modes.

        Args:
            values: Values of some parameters by name; see `at` for errors and warnings.
        """
        W = self._modes(values)[1]
        T = scipy.linalg.block_diag(1.0, W)
        body = self.at(values)
        derivatives = {}
        for name, d in self.derivatives.items():
            stiffness = W.T @ d.stiffness @ W
            derivatives[name] = replace(
                d,
                first_moments=T.T @ d.first_moments,
                second_moments=np.einsum("ki,klab,lj->ijab", T, d.second_moments, T),
                stiffness=stiffness,
                frequencies=_frequency_derivatives(body, stiffness),
                interface_motions=d.interface_motions @ W,
                point_modes=np.einsum("ki,pka->pia", W, d.point_modes),
                skin_modes=_turned("ki,kpa->ipa", W, d.skin_modes),
                spin_stiffening=_turned("ki,ckl,lj->cij", W, d.spin_stiffening, W),
                interface_stiffening=_turned("ki,ackl,lj->acij", W, d.interface_stiffening, W),
            )
        return BodySensitivities(body, {**self.base, **values}, derivatives)

    def _modes(self, values: Mapping[str, float]) -> tuple[Array, Array]:
        """Return the squared angular frequencies of first order, and the eigenvectors."""
        K = self.body.stiffness + sum(s * self[k].stiffness for k, s in self._steps(values).items())
        squares, W = scipy.linalg.eigh((K + K.T) / 2)
        if len(squares) and squares[0] <= 0:
            raise InputError(
                f"the body of first order at {dict(values)} has a negative stiffness; take a "
                "smaller step, or reduce the changed body"
            )
        return squares, W * np.where(np.diag(W) < 0, -1.0, 1.0)

    def _steps(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the differences from the base values."""
        instance("values", values, Mapping)
        for name in values:
            self[name]
        steps = {k: number(f"values: {k}", v, low=-1e100, high=1e100) for k, v in values.items()}
        return {k: v - self.base[k] for k, v in steps.items()}

    def _warn(self, values: Mapping[str, float]) -> None:
        error = self.error(values)
        if error > 0.05:
            text = (
                f"the estimated error of the body of first order is {100 * error:.0f} %; reduce "
                "the changed body instead"
            )
            warnings.warn(text, AccuracyWarning, stacklevel=3)

    def _interfaces(self, moved: Any, W: Array) -> tuple[Any, ...]:
        frames, n = self.body.interfaces, self.body.num_modes
        points = moved("interface_points", np.array([i.point for i in frames]).reshape(-1, 3))
        motions = np.array([i.motion for i in frames]).reshape(-1, 6, n)
        motions = moved("interface_motions", motions) @ W
        return tuple(
            replace(i, point=point, motion=motion)
            for i, point, motion in zip(frames, points, motions, strict=True)
        )

    def _points(self, moved: Any, W: Array) -> tuple[Any, ...]:
        body = self.body
        positions = moved("positions", np.array([p.position for p in body.points]).reshape(-1, 3))
        count = (len(body.points), body.num_modes, 3)
        modes = moved("point_modes", np.array([p.modes for p in body.points]).reshape(count))
        return tuple(
            replace(p, position=x, modes=W.T @ psi)
            for p, x, psi in zip(body.points, positions, modes, strict=True)
        )

    def _stiffening(self, moved: Any, W: Array) -> Any:
        cases = self.body.stiffening
        if cases is None:
            return None
        spin = W.T @ moved("spin_stiffening", cases.spin) @ W
        return Stiffening(spin, W.T @ moved("interface_stiffening", cases.interfaces) @ W)

    def _skin(self, moved: Any, W: Array) -> Any:
        skin = self.body.skin
        if skin is None:
            return None
        modes = np.einsum("ki,kpa->ipa", W, moved("skin_modes", skin.modes))
        return replace(skin, points=moved("skin_positions", skin.points), modes=modes)


def sensitivities(reduction: Reduction, parameters: Sequence[Parameter]) -> BodySensitivities:
    """Compute the derivatives of a reduced body with respect to parameters.

    The derivatives include those of the modes, so that a central difference of two reductions
    agrees in the limit. All parameters use the same factorization.

    Args:
        reduction: Result of `reduce` with orthonormal modes, without prestress, damping,
            distributed loads and `up_to`.
        parameters: Parameters with different names.

    Returns:
        The derivatives by the names of the parameters, and bodies of first order (`at`).

    Raises:
        InputError: The reduction has an unsupported option, or the body does not depend on a
            parameter.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> E = mbd.Parameter("E", "young")
        >>> derivative = mbd.sensitivities(bar, [E])["E"].frequencies
        >>> bool(np.allclose(derivative * 210e9, bar.body.frequencies / 2))
        True
    """
    instance("reduction", reduction, Reduction)
    parameters = items("parameters", parameters, Parameter)
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise InputError(f"the parameters need different names; got {names}", argument="parameters")
    model, interfaces = _checked(reduction)
    problem = elastic_problem(model)
    body = reduction.body
    with destroying(problem.comm, problem):
        rows = WRENCH_INDICES[problem.dim]
        empty: Array = np.zeros((0, body.num_modes))
        motions = np.vstack([empty, *(i.motion[rows] for i in body.interfaces)])
        attached = body.reference != "mean axis"
        split = split_modes(problem, interfaces, reduction.modes, motions, attached=attached)
        held: HeldStiffness | FreeStiffness
        if interfaces:
            held = HeldStiffness(problem, interfaces, PREFIX, None)
        else:
            held = FreeStiffness(problem, split.rigid, PREFIX)
        with destroying(problem.comm, held):
            basis = BasisDerivatives(problem, interfaces, held, split)
            stiffening = None
            if body.stiffening is not None:
                stiffening = StiffeningDerivatives(basis)
            derivatives = {}
            for parameter in parameters:
                matrices = matrix_derivatives(model, problem, parameter)
                with destroying(problem.comm, matrices):
                    derivatives[parameter.name] = _body_derivative(
                        reduction, basis, stiffening, matrices
                    )
    base = {p.name: base_value(model, p) for p in parameters}
    return BodySensitivities(body, base, derivatives)


def _checked(reduction: Reduction) -> tuple[Any, tuple[MeshInterface, ...]]:
    """Return model and interfaces; raise an error if the reduction cannot be differentiated."""
    body, model, interfaces = reduction.body, reduction.model, reduction.interfaces
    reason = ""
    if model is None:
        reason = "a reduction that `reduce` did not compute"
    elif model.prestress is not None:
        reason = "a prestress"
    elif body.loads:
        reason = "distributed loads"
    elif body.bores:
        reason = "pressure modes of bores"
    elif body.damping.any():
        reason = "damping; add it to the body of first order"
    elif any("above" in mode.reason for mode in body.left_out):
        reason = "a reduction with `up_to`"
    elif not np.array_equal(body.mass, np.eye(body.num_modes)):
        reason = "modes that are not orthonormal"
    if reason:
        text = f"sensitivities are not available for {reason}"
        raise InputError(text, argument="reduction", value=reduction)
    return model, interfaces


def _body_derivative(
    reduction: Reduction,
    basis: BasisDerivatives,
    stiffening: StiffeningDerivatives | None,
    matrices: MatrixDerivatives,
) -> BodyDerivative:
    problem, interfaces = basis.problem, basis.interfaces
    body, dim, comm = reduction.body, problem.dim, problem.comm
    modes, n = reduction.modes, reduction.body.num_modes
    changes, motions = basis(matrices)
    velocity = matrices.velocity
    V = np.zeros_like(problem.positions) if velocity is None else velocity
    first, second, mass = _moments(problem, modes, changes, V, matrices)
    K_changes = multiply(problem.stiffness, changes)
    cross = gram(comm, modes, K_changes)
    explicit: Array = np.zeros((n, n))
    twice = explicit
    if matrices.stiffness is not None:
        product = multiply(matrices.stiffness, modes)
        explicit, twice = gram(comm, modes, product), gram(comm, changes, product)
    stiffness = explicit + cross + cross.T
    quadratic = gram(comm, changes, K_changes) + twice + twice.T
    size = np.diag(body.stiffness)
    points: Array = np.zeros((len(interfaces), 3))
    if velocity is not None and interfaces:
        points = in_space(np.array([point_velocity(problem, i, matrices) for i in interfaces]))
    in_body = np.zeros((len(interfaces), 6, n))
    in_body[:, WRENCH_INDICES[dim]] = motions.reshape(len(interfaces), problem.num_rigid, n)
    spin = wrenches = None
    if stiffening is not None:
        rotations = np.array([i.motion[3:] for i in body.interfaces])
        spin, wrenches = stiffening(matrices, changes, rotations, in_body[:, 3:])
    fields = np.asfortranarray(np.column_stack([changes, V.ravel()]))
    positions = {p.name: p.position for p in body.points}
    at_points = material_points(problem.space, fields, positions)
    skin = None if body.skin is None else surface_skin(problem.space, fields).modes
    return BodyDerivative(
        total_mass=mass,
        first_moments=first,
        second_moments=second,
        stiffness=(stiffness + stiffness.T) / 2,
        frequencies=_frequency_derivatives(body, stiffness),
        interface_points=points,
        interface_motions=in_body,
        positions=np.array([p.modes[n] for p in at_points]).reshape(-1, 3),
        point_modes=np.array([p.modes[:n] for p in at_points]).reshape(-1, n, 3),
        skin_positions=None if skin is None else skin[n],
        skin_modes=None if skin is None else skin[:n],
        spin_stiffening=spin,
        interface_stiffening=wrenches,
        second_order=float(np.max(np.abs(np.diag(quadratic)) / size, initial=0.0)),
    )


def _turned(subscripts: str, W: Array, values: Array | None, *others: Array) -> Any:
    """Return the product of modal data with the change W of the modes, or None."""
    return None if values is None else np.einsum(subscripts, W, values, *others)


def _frequency_derivatives(body: ReducedBody, stiffness: Array) -> Array:
    """Return df = dλ/(8π² f) with dλ from the derivative of the stiffness, group by group."""
    squares = np.diag(body.stiffness)
    groups = groups_of(squares)
    out = np.zeros(len(squares))
    for group in np.unique(groups):
        k = np.flatnonzero(groups == group)
        values = np.linalg.eigvalsh(stiffness[np.ix_(k, k)])
        out[k] = values / (2.0 * np.sqrt(squares[k].mean()))
    return np.asarray(out / (2 * np.pi), dtype=float)


def _moments(
    problem: ElasticProblem, modes: Array, changes: Array, V: Array, matrices: MatrixDerivatives
) -> tuple[Array, Array, float]:
    """Return the derivatives of S, of H and of the mass."""
    comm, dim, n = problem.comm, problem.dim, modes.shape[1]
    x = problem.positions
    fields = np.asfortranarray(np.column_stack([np.ones(len(x)), x, blocked(modes, dim)]))
    moved = np.asfortranarray(np.column_stack([np.zeros(len(x)), V, blocked(changes, dim)]))
    G = gram(comm, moved, multiply(problem.scalar_mass, fields))
    G = G + G.T
    if matrices.scalar_mass is not None:
        G += gram(comm, fields, multiply(matrices.scalar_mass, fields))
    first = in_space(G[0, 1:].reshape(n + 1, dim))
    blocks = G[1:, 1:].reshape(n + 1, dim, n + 1, dim).transpose(0, 2, 1, 3)
    second = in_space(in_space(blocks), axis=-2)
    if problem.thickness is not None:
        t = problem.thickness
        ones = np.ones((len(x), 1), order="F")
        total = float(gram(comm, ones, multiply(problem.scalar_mass, ones))[0, 0])
        second[0, 0, 2, 2] = (G[0, 0] * t * t + 2 * total * t * matrices.thickness) / 12
    return first, (second + second.transpose(1, 0, 3, 2)) / 2, float(G[0, 0])
