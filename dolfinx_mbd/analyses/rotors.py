"""Motions that repeat but for the rotation of round rotors about their axes.

A round body that is turned by the angle θ about its axis n looks the same. Its axes, its angular
velocity and its elastic coordinates after turning it back are

    A exp(−θñ),   exp(θñ) ω,   exp(θG) η,

with the generator G of `dolfinx_mbd.body.axisymmetry`. A rotor with the constant speed Ω whirls
with a period T in which it need not make a whole number of turns. The motion is closed after all
rotors are turned back by ΩT (a relative periodic motion). Turning back multiplies increments and
rates of the coordinates by exp(T𝒲) with 𝒲 = diag(0, Ωñ, ΩG).

References:
    P. Chossat, R. Lauterbach, Methods in Equivariant Bifurcations and Dynamical Systems, World
    Scientific 2000 (relative periodic orbits).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from dolfinx_mbd.analyses.small_motions import Axes
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import ELASTIC, ETA
from dolfinx_mbd.kernels.joints import ABOUT
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["Rotors"]

_DRIVEN = 1e-6  # speed of a driver relative to the fastest rotor


@dataclass(frozen=True, eq=False)
class Rotors:
    """The rotors of a mechanism and their speeds, see the module.

    Attributes:
        system: The mechanism.
        spins: Angular velocities of the rotors in body components, as velocities (nv,).
        rate: 𝒲, shape (nv, nv); zero without rotors.
        flexible: Indices of the flexible bodies that turn.
    """

    system: System
    spins: Array
    rate: Array
    flexible: tuple[int, ...] = ()

    @classmethod
    def none(cls, system: System) -> Rotors:
        """Return no rotors: the motion is closed in all axes."""
        n = system.num_velocities
        return cls(system, np.zeros(n), np.zeros((n, n)))

    @classmethod
    def of(cls, system: System) -> Rotors:
        """Return the bodies that turn at the start of the mechanism.

        Args:
            system: The mechanism.

        Raises:
            InputError: No body turns, no driver turns the rotors, or a flexible body that turns is
                not round about its axis.
        """
        start, rotors = consistent_state(system, elastic_start="undeformed"), cls.none(system)
        axes = Axes.common(system, np.zeros(3)).with_rotors(system, start.q, start.v)
        assert axes.rotors is not None
        for part, omega in zip(system.v_slices, axes.rotors, strict=True):
            if omega.any():
                rotations = slice(part.start + 3, part.start + 6)
                rotors.spins[rotations] = omega
                rotors.rate[rotations, rotations] = np.cross(omega, np.eye(3)).T
        for k, (_, rate) in axes.mode_rotations.items():
            elastic = slice(system.v_slices[k].start + 6, system.v_slices[k].stop)
            rotors.rate[elastic, elastic] = rate
        if not rotors:
            raise InputError(
                "no body turns at the start, so that axes='global' has no effect: omit it, or give "
                "the rotors angular velocities (omega) or a driver",
                argument="axes",
                value="global",
            )
        eqs = Assembler(system)
        eqs.put(start)
        eqs.update_poses(start.time)
        speeds = eqs.constraint_matrix() @ rotors.spins
        if np.abs(speeds).max(initial=0.0) <= _DRIVEN * np.abs(rotors.spins).max():
            raise InputError(
                "no driver turns the rotors, so that their angles are free: drive a rotor, or a "
                "clutch that turns it",
                argument="axes",
                value="global",
            )
        return replace(rotors, flexible=tuple(axes.mode_rotations))

    def __bool__(self) -> bool:
        """Whether there are rotors."""
        return bool(self.spins.any())

    def matrix(self, time: float) -> Array:
        """Return the matrix (nv, nv) by which turning back multiplies increments and rates."""
        return np.asarray(scipy.linalg.expm(time * self.rate))

    def back(self, state: State, time: float) -> State:
        """Return a state with all rotors turned back by the angles of a time, s."""
        if not self:
            return state
        eqs, L, deformation = Assembler(self.system), self.matrix(time), self._deformation(state)
        eqs.put(state)
        eqs.move(state.q, L @ deformation - deformation - time * self.spins)
        eqs.v[:] = self.spins
        eqs.update_poses(state.time)
        eqs.frames.update_velocities()
        _, speeds, _ = eqs.frames.axis_coordinates()
        eqs.angles[:] = state.angles - time * speeds[:, ABOUT]
        present = [key for key in ("algorithmic", "velocity") if key in state.memory]
        rates = {key: L @ state.memory[key] for key in present}
        return replace(
            state,
            q=eqs.q.copy(),
            v=L @ state.v,
            a=L @ state.a,
            angles=eqs.frames.joint_rotations(),
            memory={key: x for key, x in state.memory.items() if key != "earlier"} | rates,
        )

    def _deformation(self, state: State) -> Array:
        """Return the elastic coordinates of the rotors as velocities (nv,)."""
        out = np.zeros(self.system.num_velocities)
        for k in self.flexible:
            out[self.system.v_slices[k]][ELASTIC] = state.q[self.system.q_slices[k]][ETA]
        return out

    def relative(self, state: State, rates: Array) -> Array:
        """Return rates (4, nv) of q, v, a and w at a state without the rotation of the rotors.

        w are the algorithmic accelerations of the time integration.
        """
        if not self:
            return rates
        w = state.memory.get("algorithmic", state.a)
        values = np.array([self._deformation(state), state.v, state.a, w])
        return np.asarray(rates + values @ self.rate.T - np.outer([1, 0, 0, 0], self.spins))

    def about_axes(self, increments: Array) -> Array:
        """Return the parts of increments or velocities (..., nv) that are rotations of rotors."""
        out = np.zeros_like(increments)
        for part in self.system.v_slices:
            spin = self.spins[part]
            if spin.any():
                out[..., part] = np.outer(increments[..., part] @ spin, spin) / (spin @ spin)
        return out
