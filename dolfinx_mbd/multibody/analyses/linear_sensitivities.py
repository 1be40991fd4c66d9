"""Derivatives of poles, modes and frequency responses of a mechanism with respect to parameters.

The mechanism is linearized at the equilibrium or steady motion of each value of a parameter; Newton
steps with the exact tangent determine this state to round-off. Its free motions are N(p) z, where
N(p) is the projection of the basis N at the given values on the motions that the constraints
permit. The matrices A, B, C, D of the state space ẋ = A x + B u, y = C x + D u in these coordinates
are smooth functions of p. A prime denotes their central differences of sixth order. With left and
right eigenvectors L, R of a group of equal poles, LᴴR = I, and with S = (sI − A)⁻¹,

    λ′ are the eigenvalues of LᴴA′R,   (C S B + D)′ = C′ S B + C S A′ S B + C S B′ + D′.

References:
    P. Lancaster, On eigenvalues of matrices dependent on a parameter, 1964.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.linearized import RANK_TOLERANCE
from dolfinx_mbd.body.multiple import MULTIPLE_TOLERANCE
from dolfinx_mbd.checks import array, function, instance, integer, number, reject
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.multibody.analyses.equilibrium import equilibrium
from dolfinx_mbd.multibody.analyses.linearization import (
    LinearizedSystem,
    SteadyError,
    linearize,
    unbalanced,
)
from dolfinx_mbd.multibody.analyses.signals import Inputs
from dolfinx_mbd.multibody.analyses.small_motions import (
    Axes,
    SmallMotions,
    balanced_motions,
    free_directions,
    steady_rates,
)
from dolfinx_mbd.multibody.analyses.state_space import OFFSETS, derivative, state_space
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.results.outputs import Outputs, Requests
from dolfinx_mbd.multibody.start.consistent_state import check_state

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Matrices = tuple[Array, ...]  # A, B, C, D, and the increments of all coordinates per unit of z

_STEP = 3e-3  # step of differences, relative to the parameter
# Sixth difference at `OFFSETS`; it vanishes for smooth functions and amplifies round-off
_EVEN: Array = np.array([15.0, -6.0, 1.0, 15.0, -6.0, 1.0])
_AMPLIFICATION = 30.0
_LARGEST_ERROR, _ERROR_LIMIT = 1e-2, 1e-6  # relative errors: not differentiable, inaccurate
_NEWTON_STEPS = 2  # each squares the error of the state
_BALANCE = 1e-6  # largest unbalanced force relative to the acting forces, as in `linearize`
_ZERO = 1e-7  # poles below this fraction of the largest one count as zero, as in `linearize`
_RESONANCE = 1e-9  # smallest distance of an excitation from a pole, relative to the pole
# A group of poles λ is defective if its matrix differs from λ by more than this fraction of λ
_COUPLING = 1e-3
_PARALLEL = 1e-6  # smallest product of the left and right vectors relative to an undamped pole


@dataclass(frozen=True, eq=False)
class LinearSensitivities:
    """A linearization with the derivatives of its poles, modes and frequency responses.

    Attributes:
        linearization: The linearization at the given values.
        values: Values of the parameters by name.
        poles: Derivatives of `linearization.poles` by the names of the parameters, shape (p,) each.
            Those of a multiple pole are the derivatives of its branches, by increasing imaginary
            part. NaN if a pole has no derivative.

    Example:
        >>> def swing(p):
        ...     frames = {"pin": mbd.Frame((0, p["length"], 0))}
        ...     ball = mbd.RigidBody(
        ...         "ball", 2.0, [0.0] * 3, position=(0, -p["length"], 0), frames=frames
        ...     )
        ...     pin = mbd.revolute("pin", ground.frame("pin"), ball.frame("pin"))
        ...     return mbd.System([ground, ball], [pin], gravity=(0, -9.81, 0))
        >>> result = mbd.linear_sensitivities(swing, {"length": 0.5})
        >>> print(result.linearization.frequencies, result.frequencies["length"])  # −f/2l
        [0.70497498] [-0.70497498]
    """

    linearization: LinearizedSystem
    values: Mapping[str, float]
    poles: Mapping[str, Complex]
    _base: Matrices
    _changes: Mapping[str, Matrices]
    _spaces: Sequence[Eigenspace | None]

    __repr__ = short_repr

    @property
    def frequencies(self) -> dict[str, Array]:
        """Derivatives of the frequencies |λ|/2π by parameter, shape (p,) each, Hz."""
        poles = self.linearization.poles
        direction = poles.conj() / np.maximum(np.abs(poles), 1e-300)
        return {k: (direction * slope).real / (2 * np.pi) for k, slope in self.poles.items()}

    @property
    def damping_ratios(self) -> dict[str, Array]:
        """Derivatives of the damping ratios −Re λ/|λ| by parameter, shape (p,) each."""
        poles = self.linearization.poles
        size = np.maximum(np.abs(poles), 1e-300)
        direction = poles / size
        turned = {k: (slope * direction.conj()).imag for k, slope in self.poles.items()}
        return {k: direction.imag * turn / size for k, turn in turned.items()}

    def mode(self, body: str, number: int) -> dict[str, Complex]:
        """Return the derivatives of a mode of one body by parameter, see `LinearizedSystem.mode`.

        The largest component of the mode of the mechanism remains 1.

        Args:
            body: Name of the body.
            number: Number of the mode, starting at 1.

        Returns:
            Shape (6+n,) for each parameter.

        Raises:
            InputError: The body or the mode does not exist, or its pole is zero or multiple.
        """
        linear = self.linearization
        part = linear.system.v_slices[linear.system.body_index(body)]
        k = integer("number", number, low=1, high=linear.modes.shape[1]) - 1
        space = self._spaces[k]
        if space is None or len(space.left) > 1:
            text = f"pole {number} is zero or multiple, and its mode has no derivative"
            raise InputError(text, argument="number", value=number)
        A, basis = self._base[0] * space.scale, self._base[4]
        x, m = space.right, len(A) // 2
        largest = int(np.abs(linear.modes[:, k]).argmax())
        bordered = np.block([[A - linear.poles[k] * np.eye(2 * m), x], [x.conj().T, np.zeros((1, 1))]])
        unit, derivatives = (basis @ x[:m, 0])[largest], {}
        for name, change in self._changes.items():
            right = np.append(-(change[0] * space.scale) @ x[:, 0], 0.0)
            slope = change[4] @ x[:m, 0] + basis @ np.linalg.solve(bordered, right)[:m]
            slope = (slope - linear.modes[:, k] * slope[largest]) / unit
            derivatives[name] = slope[part]
        return derivatives

    def response(self, frequencies: ArrayLike) -> dict[str, Complex]:
        """Return the derivatives of `LinearizedSystem.response` by parameter.

        Args:
            frequencies: Frequencies, shape (nf,), Hz.

        Returns:
            Shape (nf, ny, nu) for each parameter.

        Raises:
            InputError: The linearization has no inputs or no outputs, or a frequency is that of an
                undamped pole.
        """
        self.linearization.state_space()
        f = np.asarray(array("frequencies", frequencies, (None,)))
        s, poles = 2j * np.pi * f[:, None], self.linearization.poles
        near = np.abs(np.abs(s) * 1j - poles) <= _RESONANCE * np.abs(poles)
        if near.any():
            row, pole = np.argwhere(near)[0]
            text = f"the response at {f[row]:g} Hz is infinite: pole {pole + 1} is there and undamped"
            raise InputError(text, argument="frequencies", value=frequencies)
        A, B, C, *_ = self._base
        Z = s[:, :, None] * np.eye(len(A)) - A
        x = np.linalg.solve(Z, np.tile(B, (len(f), 1, 1)))
        y = np.linalg.solve(Z.transpose(0, 2, 1), np.tile(C.T, (len(f), 1, 1))).transpose(0, 2, 1)
        return {k: c @ x + y @ (a @ x + b) + d for k, (a, b, c, d, _) in self._changes.items()}


def linear_sensitivities(
    build: Callable[[Mapping[str, float]], SystemData],
    values: Mapping[str, float],
    *,
    state: Callable[[SystemData], State] = equilibrium,
    axes: Literal["auto", "body", "global"] | ArrayLike = "auto",
    inputs: Sequence[str] = (),
    outputs: Requests | None = None,
) -> LinearSensitivities:
    """Linearize a mechanism, and differentiate the linearization with respect to parameters.

    The equilibrium or steady motion changes with the parameters, and the derivatives include its
    effect. For reduced bodies that change, `build` may call `table.at` of `sensitivities`.

    Args:
        build: Function that returns the mechanism for values by name, as for `run_sensitivities`.
            All mechanisms must have the same bodies and joints.
        values: Values of the parameters by name, not zero.
        state: Function that returns the equilibrium or a state of the steady motion of a mechanism,
            for example `consistent_state` for a rotor whose joint has an initial `rate`.
        axes: Axes in which the coefficients are constant, see `linearize`.
        inputs: Names of the inputs of frequency responses, as for `linearize`.
        outputs: Outputs of frequency responses, as for `linearize`.

    Returns:
        The linearization and its derivatives.

    Warns:
        AccuracyWarning: A pole has no derivative, or its derivative is inaccurate.

    Raises:
        InputError: A value is zero or not finite, `build` returns mechanisms of different sizes, or
            the mechanism is not a smooth function of a parameter.
        SteadyError: A state is neither an equilibrium nor part of a steady motion.

    Example:
        >>> def hanging(p):
        ...     frames = {"top": mbd.Frame()}
        ...     weight = mbd.RigidBody("bob", 2.0, [0.1] * 3, position=(0, -1, 0), frames=frames)
        ...     ends = ground.frame("pin"), weight.frame("top")
        ...     spring = mbd.JointSpring("spring", "slide", stiffness=p["k"], damping=p["c"])
        ...     slide = mbd.prismatic("slide", *ends)
        ...     return mbd.System([ground, weight], [slide], loads=[spring])
        >>> result = mbd.linear_sensitivities(hanging, {"k": 800.0, "c": 4.0})
        >>> print(result.damping_ratios["c"], "per N s/m")  # 1/(2√(km))
        [0.0125] per N s/m
    """
    function("build", build, "build(values)")
    function("state", state, "state(system)")
    for name, value in instance("values", values, Mapping).items():
        if number(f"values: {name}", value) == 0:
            raise InputError(f"values: {name} must not be zero", argument="values", value=value)
    if not values:
        reject("values", values, "a mapping from at least one parameter to its value")
    system = instance("build(values)", build(values), SystemData)
    linear = linearize(system, state(system), axes=axes, inputs=inputs, outputs=outputs)
    spin = np.zeros(3) if isinstance(axes, str) else np.asarray(axes, dtype=float)
    steady = _SteadyMotions(linear, spin, Outputs(outputs))
    base = steady.matrices(system, linear.state)
    spaces = _eigenspaces(base[0], linear.poles)
    changes: dict[str, Matrices] = {}
    slopes: dict[str, Complex] = {}
    for name, value in values.items():
        systems = [build({**values, name: value * (1 + _STEP * k)}) for k in OFFSETS.tolist()]
        points = [steady.matrices(changed, state(changed)) for changed in systems]
        parts = [np.array(part) for part in zip(*points, strict=True)]
        changes[name] = tuple(derivative(part) / (_STEP * value) for part in parts)
        slopes[name] = _pole_slopes(changes[name][0], spaces)
        lost = [k for k, pole in enumerate(linear.poles) if spaces[k] is None and pole != 0]
        if any(_count_zeros(A) != _count_zeros(base[0]) for A in parts[0]):
            lost += np.flatnonzero(linear.poles == 0).tolist()
        slopes[name][lost] = np.nan
        rest = np.tensordot(_EVEN, parts[0] - base[0], 1) / (_AMPLIFICATION * _STEP * value)
        sizes = np.fmax(np.abs(slopes[name]), np.abs(linear.poles / value))
        errors = np.abs(_pole_slopes(rest, spaces)) / np.maximum(sizes, 1e-300)
        _check(name, lost, float(errors.max(initial=0.0)))
    return LinearSensitivities(linear, dict(values), slopes, base, changes, spaces)


def _check(name: str, lost: list[int], error: float) -> None:
    """Warn of poles without derivatives and of inaccurate derivatives, or raise an error."""
    if lost:
        numbers = ", ".join(str(k + 1) for k in sorted(lost))
        text = f"pole {numbers} has no derivative with respect to {name!r} (NaN): it is zero or "
        warn(AccuracyWarning(f"{text}defective, and splits when {name!r} changes"))
    text = f"relative error of the derivatives with respect to {name!r}"
    if error > _LARGEST_ERROR:
        raise InputError(
            f"the estimated {text} is {error:.1e}: the mechanism, its state or the coordinates of a "
            "body are not smooth functions of the parameter",
            argument="build",
        )
    if error > _ERROR_LIMIT:
        words = f"the estimated {text} is {error:.1e}"
        warn(AccuracyWarning(words, quantity=text, value=error, limit=_ERROR_LIMIT))


class _SteadyMotions:
    """Linearizations of changed mechanisms in coordinates that are smooth functions of parameters.

    The motions of a mechanism are `linear.axes`, with the angular velocity `spin` of given axes.
    """

    def __init__(self, linear: LinearizedSystem, spin: Array, outputs: Outputs) -> None:
        self._linear, self._spin, self._outputs = linear, spin, outputs
        self._basis = self._balanced(linear.system, linear.state)[2]

    def matrices(self, system: SystemData, state: State) -> Matrices:
        """Return the matrices at the steady motion of a mechanism near a state."""
        first = self._linear.system
        sizes = [(s.num_velocities, s.num_constraints) for s in (first, system)]
        if sizes[0] != sizes[1]:
            raise InputError("build returns mechanisms of different sizes", argument="build")
        check_state("state(system)", state, system)
        inputs = Inputs(system, self._linear.inputs)
        at, motions, _ = self._balanced(inputs.system, state)
        row, share = unbalanced(at, state.time)
        if not share <= _BALANCE:
            raise SteadyError(f"{system.row_name(row)} is not in balance for a changed parameter")
        basis = self._basis + _least_move(motions, motions.constraints @ self._basis)
        parts = state_space(at, state.time, motions, basis, inputs, self._outputs)
        return *parts, motions.resolve @ basis

    def _balanced(self, system: SystemData, state: State) -> tuple[Assembler, SmallMotions, Array]:
        """Return the steady motion near a state, its coefficients and free motions (nv, m)."""
        at = Assembler(system)
        at.q[:], at.v[:], at.angles[:] = state.q, state.v, state.angles
        for remaining in range(_NEWTON_STEPS, -1, -1):
            axes = Axes.common(system, self._spin)
            if self._linear.axes == "body":
                axes = Axes.of_bodies(system, at.q, at.v)
            at.a[:] = steady_rates(at, axes)
            motions = balanced_motions(at, state.time, axes)
            basis = free_directions(motions)
            K = motions.reduced(basis)[2]
            squares, shapes = np.linalg.eigh(0.5 * (K + K.T))
            basis = basis @ shapes
            if not remaining:
                break
            y = _least_move(motions, at.values)
            N = basis[:, np.abs(squares) > _ZERO**2 * np.abs(squares).max()]
            force = motions.resolve.T @ at.rows + motions.stiffness @ y
            y -= N @ np.linalg.solve(motions.reduced(N)[2], N.T @ force)
            at.move(at.q.copy(), motions.resolve @ y)
            at.v += motions.resolve @ (motions.carry @ y)
        return at, motions, basis


def _least_move(motions: SmallMotions, values: Array) -> Array:
    """Return the increments with the least kinetic energy that change constraints by −values."""
    scale = 1 / np.sqrt(np.diag(motions.mass))
    rows = motions.constraints * scale
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    right = -(values.T / size).T
    return (np.linalg.lstsq(rows / size[:, None], right, rcond=RANK_TOLERANCE)[0].T * scale).T


class Eigenspace(NamedTuple):
    """Left (k, 2m) and right (2m, k) vectors of a group of k equal poles, left @ right = 1.

    They belong to A times `scale`, entry by entry. `branch` numbers the poles of the group.
    """

    left: Complex
    right: Complex
    scale: Array
    branch: int


def _scale(A: Array) -> Array:
    """Return factors of the entries of A that replace the state (z, ż) by (s z, ż); s is in 1/s."""
    m = len(A) // 2
    s = np.sqrt(np.abs(A[m:, :m]).max()) or np.abs(A[m:, m:]).max() or 1.0
    units = np.repeat([s, 1.0], m)
    return np.asarray(units[:, None] / units)


def _count_zeros(A: Array) -> int:
    """Return the number of zero eigenvalues."""
    sizes = np.abs(np.linalg.eigvals(A * _scale(A)))
    return int(np.sum(sizes <= _ZERO * sizes.max()))


def _eigenspaces(A: Array, poles: Complex) -> list[Eigenspace | None]:
    """Return the eigenvectors of each pole; None if the pole is zero or defective."""
    scale, m = _scale(A), len(A) // 2
    A = A * scale
    values, left, right = scipy.linalg.eig(A, left=True)
    spaces: list[Eigenspace | None] = []
    for number, pole in enumerate(poles):
        k, limit = int(np.abs(values - pole).argmin()), MULTIPLE_TOLERANCE * abs(pole)
        if pole == 0:
            pair = None
        elif np.sum(np.abs(values - values[k]) <= limit) > 1:
            pair = _group(A, values[k], limit)
        else:
            L, R = left[:, [k]].conj().T, right[:, [k]]
            size = 2 * abs(pole) * scale[m, 0] * np.linalg.norm(L[:, m:]) * np.linalg.norm(R[:m])
            pair = (L / (L @ R), R) if abs(L @ R) > _PARALLEL * size else None
        branch = int(np.sum(np.abs(poles[:number] - pole) <= limit))
        spaces.append(None if pair is None else Eigenspace(*pair, scale, branch))
    return spaces


def _group(A: Array, pole: complex, limit: float) -> tuple[Complex, Complex] | None:
    """Return bases of the left and right eigenvectors of a multiple pole; None if defective."""
    T, Q, k = scipy.linalg.schur(A, "complex", sort=lambda value: abs(value - pole) <= limit)
    if np.abs(T[:k, :k] - pole * np.eye(k)).max() > _COUPLING * abs(pole):
        return None
    X = scipy.linalg.solve_sylvester(T[:k, :k], -T[k:, k:], T[:k, k:])
    return np.hstack([np.eye(k), X]) @ Q.conj().T, Q[:, :k]


def _pole_slopes(change: Array, spaces: Sequence[Eigenspace | None]) -> Complex:
    """Return the derivatives of the poles for the derivative of A; zero without eigenvectors."""
    slopes = np.zeros(len(spaces), dtype=complex)
    for k, space in enumerate(spaces):
        if space is not None:
            branches = np.linalg.eigvals(space.left @ (change * space.scale) @ space.right)
            oscillates = np.abs(branches.imag).max() > np.abs(branches.real).max()
            order = np.argsort(branches.imag if oscillates else branches.real, kind="stable")
            slopes[k] = branches[order[space.branch]]
    return slopes
