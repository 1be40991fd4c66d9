"""Frequencies and damping of a mechanism over its speed, mode by mode (Campbell diagram).

At each speed the mechanism is linearized about its steady motion. A mode of one speed is matched to
the mode of the next speed with the largest sum of

    MAC = |x'M y|² / (x'M x · y'M y)

and a small term for the change of the pole, where x and y are the shapes of the two modes in all
coordinates and M is the mass matrix. This is an assignment problem. The shapes contain the motions
of all nodes of mesh bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.equilibrium import equilibrium
from dolfinx_mbd.analyses.linearization import linearize
from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.poles import GROWTH
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, function, instance, integer, reject
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.system import System

__all__ = ["SpeedPoles", "poles_over_speed"]

Complex = NDArray[np.complex128]

_EXTRA = 4  # number of additional modes at each speed, because modes may cross
_CHANGE = 0.2  # weight of the relative change of a pole
_MOST = 5.0  # bound of the relative change of a pole
_SIMILAR = 0.5  # MAC below which the matched modes are possibly different, with a warning
_REAL = 1e-6  # modes with imaginary parts below this fraction of |λ| do not vibrate


@dataclass(frozen=True, eq=False)
class SpeedPoles:
    """Poles of a mechanism over its speed; column k follows one mode. See `poles_over_speed`.

    Attributes:
        speeds: Speeds, shape (m,), rad/s.
        poles: Poles λ with Im λ > 0, shape (m, n), 1/s; NaN where a mode does not vibrate.
        similarity: MAC with the same mode at the previous speed, shape (m, n); 1 at the first one,
            and 0 where a mode does not vibrate.
        linearized: The linearization at each speed.

    Example:
        >>> def bob_at(speed):
        ...     spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -speed * x - v)
        ...     return mbd.System([ground, bob], [pin], loads=[spring])
        >>> result = mbd.analyses.poles_over_speed(bob_at, [100.0, 400.0], num_modes=1)
        >>> result.frequencies.round(2).ravel(), bool(result.growing.any())
        (array([1.12, 2.24]), False)
    """

    speeds: Array
    poles: Complex
    similarity: Array
    linearized: tuple[LinearizedSystem, ...] = field(repr=False)

    __repr__ = short_repr

    @property
    def frequencies(self) -> Array:
        """Im λ/2π, shape (m, n), Hz."""
        return np.asarray(self.poles.imag / (2 * np.pi))

    @property
    def damping_ratios(self) -> Array:
        """−Re λ/|λ|, shape (m, n)."""
        return np.asarray(-self.poles.real / np.abs(self.poles))

    @property
    def growing(self) -> NDArray[np.bool_]:
        """Whether each mode grows, shape (m, n)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.poles.real > GROWTH * np.abs(self.poles))


def poles_over_speed(
    build: Callable[[float], System],
    speeds: ArrayLike,
    *,
    num_modes: int,
    spin: Callable[[float], ArrayLike] | None = None,
) -> SpeedPoles:
    """Follow the modes of a rotor, or of another mechanism in steady motion, over its speed.

    `mbd.plotting.campbell_diagram(result.speeds, result.frequencies, growing=result.growing)` plots
    the result.

    Args:
        build: Function that returns the mechanism for a speed, rad/s. All mechanisms must have the
            same bodies.
        speeds: Speeds in increasing or decreasing order, shape (m,), rad/s.
        num_modes: Number of modes, the lowest ones at the first speed.
        spin: Function that returns the angular velocity of the whole mechanism, shape (3,), rad/s,
            for a speed: frequencies are those in axes that rotate with the mechanism. By default,
            rotors turn with their angular velocities in axes that do not rotate; see `equilibrium`.
            Mechanisms with mesh bodies need it; all mechanisms must have equal meshes.

    Returns:
        The poles, mode by mode.

    Raises:
        EquilibriumError: There is no steady motion at a speed.
        SteadyError: The coefficients change along the steady motion.
        InputError: An argument is invalid, fewer modes vibrate at the first speed, or the mechanism
            has a mesh body and `spin` is missing or the mesh changes.

    Warns:
        AccuracyWarning: A mode changes so much between two speeds that it may be another mode.

    Example:
        >>> def bob_at(speed):
        ...     spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -speed * x - v)
        ...     return mbd.System([ground, bob], [pin], loads=[spring])
        >>> result = mbd.analyses.poles_over_speed(bob_at, [100.0, 400.0], num_modes=1)
        >>> result.damping_ratios.round(4).ravel()
        array([0.0353, 0.0176])
    """
    function("build", build, "build(speed)")
    omegas = np.asarray(array("speeds", speeds, (None,)))
    if not len(omegas) or not (np.all(np.diff(omegas) > 0) or np.all(np.diff(omegas) < 0)):
        reject("speeds", speeds, "one or more speeds in increasing or decreasing order")
    count = integer("num_modes", num_modes, low=1)
    if spin is not None:
        function("spin", spin, "spin(speed)")
    modes, systems = _FollowedModes(count), list[LinearizedSystem]()
    for speed in map(float, omegas):
        systems.append(_linearized(build, speed, spin, count + _EXTRA))
        modes.add(systems[-1], speed)
    return SpeedPoles(omegas, np.array(modes.poles), np.array(modes.similarity), tuple(systems))


def _linearized(
    build: Callable[[float], System],
    speed: float,
    spin: Callable[[float], ArrayLike] | None,
    count: int,
) -> LinearizedSystem:
    """Return the linearization about the steady motion at a speed.

    With mesh bodies, it has the `count` lowest modes.
    """
    system = instance("build(speed)", build(speed), System)
    if spin is None:
        for body in _mesh_bodies(system):
            raise InputError(
                f"the poles of mesh body {body.name!r} are those in axes that rotate with the "
                "mechanism; give spin=, or reduce the body and use FlexibleBody",
                argument="spin",
                value=spin,
            )
        return linearize(system, equilibrium(system, axes="global"), axes="global")
    state = equilibrium(system, spin=spin(speed))
    return linearize(system, state, axes="body", num_modes=count)


def _mesh_bodies(system: System) -> list[Any]:
    """Return the bodies with meshes."""
    return [body for body in system.bodies if hasattr(body, "step_solver")]


class _FollowedModes:
    """The modes that are followed over the speed, with their poles and their last shapes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.poles: list[Complex] = []
        self.similarity: list[Array] = []
        self._last: Complex = np.zeros(0, complex)  # last known poles
        self._shapes: Complex = np.zeros((0, 0), complex)  # their modes, (n, count)
        self._speed = 0.0  # last speed, rad/s

    def add(self, result: LinearizedSystem, speed: float) -> None:
        """Add the modes at the next speed."""
        vibrates = result.poles.imag > _REAL * np.abs(result.poles)
        mass = _Mass(result)
        poles, shapes = result.poles[vibrates], mass.shapes(result)[:, vibrates]
        order = np.argsort(poles.imag, kind="stable")[: self.count + _EXTRA]
        poles, shapes = poles[order], shapes[:, order]
        shapes = shapes / np.sqrt(_modal_masses(shapes, mass.times(shapes)))
        if not self.poles:
            if len(poles) < self.count:
                expected = f"at most {len(poles)}, which vibrate at {speed:g} rad/s"
                reject("num_modes", self.count, expected)
            self._last, self._shapes = poles[: self.count], shapes[:, : self.count]
            self.poles, self.similarity = [self._last.copy()], [np.ones(self.count)]
            self._speed = speed
            return
        if len(self._shapes) != len(shapes):
            raise InputError(
                f"the mechanisms at {self._speed:g} and {speed:g} rad/s have different numbers of "
                "coordinates or nodes; use equal bodies and meshes",
                argument="build",
                value=speed,
            )
        mac = np.abs(self._shapes.conj().T @ mass.times(shapes)) ** 2
        norms = _modal_masses(self._shapes, mass.times(self._shapes))
        mac = mac / norms[:, None]
        change = np.abs(poles - self._last[:, None]) / np.abs(self._last[:, None])
        cost = 1 - mac + _CHANGE * np.minimum(change, _MOST)
        rows, columns = scipy.optimize.linear_sum_assignment(cost)
        values, similarity = np.full(self.count, np.nan, complex), np.zeros(self.count)
        values[rows], similarity[rows] = poles[columns], mac[rows, columns]
        self._warn(rows[similarity[rows] < _SIMILAR], speed)
        self._last = self._last.copy()
        self._shapes = self._shapes.copy()
        self._last[rows], self._shapes[:, rows] = poles[columns], shapes[:, columns]
        self.poles.append(values)
        self.similarity.append(similarity)
        self._speed = speed

    def _warn(self, modes: NDArray[np.int64], speed: float) -> None:
        """Warn of modes whose shapes differ from those at the previous speed."""
        if len(modes):
            names = ", ".join(str(k + 1) for k in modes)
            text = (
                f"the shapes at {self._speed:g} and {speed:g} rad/s of mode {names} differ: they "
                "may belong to other modes. Use more speeds in between"
            )
            warn(AccuracyWarning(text, quantity="similarity", value=_SIMILAR))


class _Mass:
    """Mass matrix of the coordinates and of the nodes of mesh bodies.

    Args:
        result: The linearization.
    """

    def __init__(self, result: LinearizedSystem) -> None:
        system, state = result.system, result.state
        self._bodies = _mesh_bodies(system)
        eqs = Assembler(system)
        eqs.put(state)
        eqs.residual(state.time)
        mass, _ = eqs.inertia(state.time)
        self._matrix = np.array(mass)
        for body in self._bodies:  # the frames of a mesh body have no mass
            part = system.v_slices[system.body_index(body.name)]
            self._matrix[part], self._matrix[:, part] = 0.0, 0.0

    def shapes(self, result: LinearizedSystem) -> Complex:
        """Return the modes: increments of all coordinates, then motions of all nodes, (n, p)."""
        nodal = [result.displacements[body.name] for body in self._bodies]
        return np.concatenate([result.modes, *(x.reshape(-1, x.shape[2]) for x in nodal)])

    def times(self, shapes: Complex) -> Complex:
        """Return the mass matrix times shapes (n, k) (collective over the meshes)."""
        first = len(self._matrix)
        parts = [self._matrix @ shapes[:first]]
        for body in self._bodies:
            last = first + body.nodes.size
            nodal = shapes[first:last].reshape(len(body.nodes), -1)
            product = body.forces.apply_mass(np.hstack([nodal.real, nodal.imag]))
            real, imaginary = np.split(product, 2, axis=1)
            parts.append((real + 1j * imaginary).reshape(last - first, -1))
            first = last
        return np.concatenate(parts)


def _modal_masses(shapes: Complex, weighted: Complex) -> Array:
    """Return x'M x of each shape x, from the shapes and M times them."""
    return np.asarray(np.einsum("ik,ik->k", shapes.conj(), weighted).real)
