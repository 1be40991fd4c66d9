"""Result of a linearization: matrices, poles, modes, and its state space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.poles import GROWTH, Poles, grows
from dolfinx_mbd.analyses.state_space import StateSpace
from dolfinx_mbd.checks import array, integer
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.optional import optional_module

__all__ = ["LinearizedSystem"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class LinearizedSystem(Poles):
    """Equations M z̈ + (C + G) ż + K z = 0 for the m free coordinates, and their poles.

    Attributes:
        system: The mechanism.
        state: State about which the mechanism is linearized.
        mass: M, shape (m, m).
        damping: C, the symmetric part of the coefficients of ż, shape (m, m).
        gyroscopic: G, the skew-symmetric part of the coefficients of ż, shape (m, m).
        stiffness: K including geometric stiffness, shape (m, m); not symmetric for follower forces.
        basis: Increments of all coordinates per unit of z, shape (nv, m): translations in global
            components, rotations in body components, elastic coordinates.
        axes: Axes in which the coefficients are constant: ``body``, ``global`` or ``given``.
        poles: Exponents λ of z ∝ e^{λt} with Im λ ≥ 0, by increasing |λ|, shape (p,), 1/s.
        modes: Increments of all coordinates for each pole, largest component 1, shape (nv, p).
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        matrices: A, B, C, D of `state_space`, shapes (2m, 2m), (2m, nu), (ny, 2m) and (ny, nu).
        dominant: Name of the body with most of the kinetic energy of each mode, p names.
        displacements: Displacements of the nodes of each mesh body by name, (nodes, 3, p), in
            global components; empty without such bodies.

    If loads have states, the last coordinates z are the integrals of these states. They are not
    part of the state space and have no poles.

    With mesh bodies, z are the coordinates of the lowest natural modes, and `poles` are
    the lowest poles of the mechanism. `modes` then contains the increments of the frames of these
    bodies; the largest displacement of a node is 1.

    Example:
        >>> result = mbd.linearize(pendulum, mbd.equilibrium(pendulum))
        >>> print(result.frequencies.round(4), result.stability)
        [0.4972] stable
    """

    system: System
    state: State
    mass: Array
    damping: Array
    gyroscopic: Array
    stiffness: Array
    basis: Array
    axes: str
    poles: Complex
    modes: Complex
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    matrices: StateSpace
    dominant: tuple[str, ...]
    displacements: dict[str, Complex] = field(default_factory=dict)

    @classmethod
    def from_matrices(
        cls,
        system: System,
        state: State,
        matrices: tuple[Array, Array, Array],
        *,
        state_space: StateSpace | None = None,
        **fields: Any,
    ) -> LinearizedSystem:
        """Return the linearization with given coefficients of z̈, ż and z.

        Args:
            system: The mechanism.
            state: State about which it is linearized.
            matrices: M, C + G and K, shapes (m, m).
            state_space: A, B, C, D; without them, A of the coefficients, and no inputs and outputs.
            **fields: The other attributes of the class; `inputs` and `outputs` are empty by
                default.

        Example:
            >>> result = mbd.linearize(pendulum, mbd.equilibrium(pendulum))
            >>> names = ("basis", "axes", "poles", "modes", "dominant")
            >>> fields = {name: getattr(result, name) for name in names}
            >>> matrices = result.mass, result.damping + result.gyroscopic, result.stiffness
            >>> same = type(result).from_matrices(pendulum, result.state, matrices, **fields)
            >>> bool(abs(same.matrices[0] - result.matrices[0]).max() < 1e-12)
            True
        """
        M, rate, K = matrices
        return cls(
            system=system,
            state=state,
            mass=M,
            damping=0.5 * (rate + rate.T),
            gyroscopic=0.5 * (rate - rate.T),
            stiffness=K,
            matrices=_autonomous(M, rate, K) if state_space is None else state_space,
            **{"inputs": (), "outputs": (), **fields},
        )

    @property
    def stability(self) -> Literal["unstable", "neutral", "stable", "asymptotically stable"]:
        """Effect of a small disturbance.

        The disturbance grows (unstable), persists or drifts because a pole is zero (neutral),
        remains small (stable) or decays (asymptotically stable). With mesh bodies, this
        concerns the computed poles.
        """
        if grows(self.poles):
            return "unstable"
        limit = GROWTH * np.abs(self.poles).max(initial=0.0)
        if (self.poles == 0).any():
            return "neutral"
        return "stable" if (self.poles.real >= -limit).any() else "asymptotically stable"

    def mode(self, body: str, number: int) -> Complex:
        """Return a mode of one body: δR in global components, δφ in body components, and δη.

        Args:
            body: Name of the body.
            number: Number of the mode, starting at 1.

        Returns:
            Shape (6+n,).

        Raises:
            InputError: The body or the mode does not exist.
        """
        part = self.system.v_slices[self.system.body_index(body)]
        return self.modes[part, integer("number", number, low=1, high=self.modes.shape[1]) - 1]

    def state_space(self) -> Any:
        """Return ẋ = A x + B u, y = C x + D u as a `scipy.signal.StateSpace`.

        The state x = (z, ż) contains the free coordinates and their rates. Inputs u and outputs y
        are deviations from their values at the state of the linearization, in the order of `inputs`
        and `outputs`.

        Raises:
            InputError: The linearization has no inputs or no outputs.
        """
        import scipy.signal

        return scipy.signal.StateSpace(*self._checked_matrices())

    def response(self, frequencies: ArrayLike) -> Complex:
        """Return the complex amplitudes of the outputs per unit amplitude of each input.

        They are more accurate than the amplitudes from `scipy.signal`, which computes polynomials.

        Args:
            frequencies: Frequencies, shape (nf,), Hz.

        Returns:
            Shape (nf, ny, nu).

        Raises:
            InputError: The linearization has no inputs or no outputs.
        """
        A, B, C, D = self._checked_matrices()
        s = 2j * np.pi * np.asarray(array("frequencies", frequencies, (None,)))
        x = np.linalg.solve(s[:, None, None] * np.eye(len(A)) - A, np.tile(B, (len(s), 1, 1)))
        return np.asarray(C @ x + D)

    def to_control(self) -> Any:
        """Return the state space as a `control.StateSpace` of python-control, with names.

        Dots in the names become underscores, because python-control does not allow dots.

        Raises:
            ImportError: python-control is not installed.
            InputError: The linearization has no inputs or no outputs.
        """
        control = optional_module("control", "models of python-control")
        names = {"inputs": self.inputs, "outputs": self.outputs}
        labels = {key: [name.replace(".", "_") for name in names[key]] for key in names}
        return control.ss(*self._checked_matrices(), **labels)

    def _checked_matrices(self) -> StateSpace:
        """Return A, B, C and D; raise an error without inputs or outputs."""
        if not (self.inputs and self.outputs):
            raise InputError("a state space needs inputs and outputs: linearize(..., inputs=[...])")
        return self.matrices

    def summary(self) -> str:
        """Return a table of the poles, each with the body that has most of the kinetic energy."""
        states = len(self.system.states)
        count = len(self.mass) - states
        description = "1 coordinate" if count == 1 else f"{count} coordinates"
        description += f" and {states} state{'s' * (states > 1)} of loads" if states else ""
        lines = [f"{self.stability}; {description} ({self.axes} axes)"]
        lines.append(f"{'':>3}{'Hz':>14}{'damping':>10}{'pole, 1/s':>28}  mostly")
        rows = zip(self.poles, self.frequencies, self.damping_ratios, self.dominant, strict=True)
        for k, (pole, frequency, ratio, name) in enumerate(rows):
            value = f"{pole.real:.5g} {pole.imag:+.5g}i"
            lines.append(f"{k + 1:>3}{frequency:>14.6g}{ratio:>10.4f}{value:>28}  {name}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<LinearizedSystem: {len(self.poles)} poles, {self.stability}>"


def _autonomous(M: Array, rate: Array, K: Array) -> StateSpace:
    """Return A, B, C, D of M z̈ + rate ż + K z = 0, without inputs and outputs."""
    size = 2 * len(M)
    lower = -np.linalg.solve(M, np.hstack([K, rate]))
    A = np.vstack([np.eye(len(M), size, len(M)), lower])
    return A, np.zeros((size, 0)), np.zeros((0, size)), np.zeros((0, 0))
