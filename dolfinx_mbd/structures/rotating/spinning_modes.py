"""Modes of a steadily rotating body with prestress and Coriolis forces; see `structure`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from dolfinx import fem

from dolfinx_mbd.arrays import Array, ComplexArray
from dolfinx_mbd.checks import flag, instance, integer
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.quadratic_eigenvalues import quadratic_modes
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.structures.rotating.structure import RotatingStructure, checked_speed


class Eigenvalues:
    """Frequencies and damping ratios of eigenvalues λ with Im λ ≥ 0."""

    eigenvalues: ComplexArray

    @property
    def frequencies(self) -> Array:
        """Im λ/2π, Hz, with the shape of the eigenvalues; zero for a real λ."""
        return np.asarray(self.eigenvalues.imag / (2 * np.pi))

    @property
    def damping_ratios(self) -> Array:
        """-Re λ/|λ|, with the shape of the eigenvalues; negative for a growing vibration."""
        return np.asarray(-self.eigenvalues.real / np.abs(self.eigenvalues))


@dataclass(frozen=True, eq=False)
class RotatingModes(Eigenvalues):
    """Modes u = Re(z exp(λt)) in the rotating frame.

    Attributes:
        speed: Ω, rad/s.
        eigenvalues: λ with Im λ ≥ 0, shape (n,), 1/s: first the real unstable ones, then the others
            by ascending |λ|.
        whirl: Sense of the orbits in the rotating frame, shape (n,): the mean moment of momentum
            ∫ρ n·(u×u̇) of a vibration, divided by its value for circular orbits in the direction of
            Ω with the same energy. 1: forward circles; 0: straight lines; -1: backward circles. (A
            whirl that is forward in space, but slower than Ω, is backward in the rotating frame.)
        vectors: z of the owned degrees of freedom, shape (owned, n), with ∫ρ|z|² = 1. The real and
            the imaginary part are M-orthogonal, and the real part is not smaller than the imaginary
            part. (The phase of a circular mode is arbitrary.)
        space: Displacement space.
        negative: Number of negative eigenvalues of the stiffness K(Ω), or None if the linear solver
            does not count them. The body is stable if this number is zero, and unstable if it is
            odd.

    Example:
        >>> modes.negative, bool(np.all(modes.frequencies > 0))
        (0, True)
    """

    speed: float
    eigenvalues: ComplexArray
    whirl: Array
    vectors: ComplexArray
    space: fem.FunctionSpace
    negative: int | None

    __repr__ = short_repr

    def functions(self, k: int) -> tuple[fem.Function, fem.Function]:
        """Return the real and the imaginary part of mode k; k starts at 1.

        Note: Collective.
        """
        z = self.vectors[:, integer("k", k, low=1, high=self.vectors.shape[1]) - 1]
        return as_function(self.space, z.real), as_function(self.space, z.imag)

    def summary(self) -> str:
        """Return the modes as a table."""
        lines = [
            f"{self.speed:.6g} rad/s; negative eigenvalues of the stiffness: {self.negative}",
            "mode   frequency (Hz)   damping ratio   whirl",
        ]
        rows = zip(self.frequencies, self.damping_ratios, self.whirl, strict=True)
        lines += [f"{k:4d} {f:16.4f} {d:15.3e} {w:7.3f}" for k, (f, d, w) in enumerate(rows, 1)]
        return "\n".join(lines)


def rotating_modes(
    structure: RotatingStructure,
    speed: float,
    *,
    num_modes: int = 6,
    coriolis: bool = True,
    stiffening: bool = True,
) -> RotatingModes:
    """Compute the lowest modes at one speed, even if the stiffness K(Ω) is indefinite.

    Args:
        structure: Matrices from `rotating_structure` or `rotating_beam`.
        speed: Ω, rad/s.
        num_modes: Number of modes; more are returned if more are unstable.
        coriolis: Whether Coriolis forces Ω G act.
        stiffening: Whether to include K_σ. Without it, spin softening makes a fast body appear
            unstable.

    Returns:
        Eigenvalues, shapes and whirl.

    Raises:
        InputError: A value is invalid.
        FactorizationError: The linear solver failed, or the speed is a static critical speed.
        EigenError: The eigenvalue solver failed.

    Example:
        >>> print(mbd.structures.rotating_modes(structure, 0.0, num_modes=2).whirl)
        [0. 0.]

    Note: Collective.
    """
    integer("num_modes", num_modes, low=0)
    instance("structure", structure, RotatingStructure, "from rotating_structure")
    speed = checked_speed("speed", speed)
    flag("coriolis", coriolis)
    negative = structure.factorize(speed, stiffening=stiffening)
    return modes_of_factor(structure, speed, num_modes, negative, coriolis=coriolis)


def modes_of_factor(
    structure: RotatingStructure,
    speed: float,
    num_modes: int,
    negative: int | None,
    *,
    coriolis: bool,
) -> RotatingModes:
    """Compute modes with the factorized stiffness, which has `negative` negative eigenvalues."""
    C = structure.velocity_matrix(speed if coriolis else 0.0)
    with destroying(structure.space.mesh.comm, *([] if C is None else [C])):
        values, vectors = quadratic_modes(
            structure.mass,
            C,
            structure.factor.matrix,
            structure.factor.ksp,
            num_modes,
            structure.held,
            negative=negative,
            **structure.solver,
        )
    vectors, whirl = _normalized(structure, vectors)
    whirl = whirl if speed >= 0 else -whirl
    return RotatingModes(speed, values, whirl, vectors, structure.space, negative)


def _normalized(structure: RotatingStructure, z: ComplexArray) -> tuple[ComplexArray, Array]:
    """Return the vectors, normalized as in `RotatingModes`, and the whirl.

    For u = Re((a + ib) exp(iωt)), the mean of ∫ρ n·(u×u̇) is -ω ∫ρ n·(a×b) = ω aᵀGb/2. For forward
    circles, this mean is ω ∫ρ(|a|² + |b|²)/2.
    """
    problem, n = structure.problem, z.shape[1]
    if n == 0:
        return z, np.zeros(0)
    parts = np.asfortranarray(np.hstack([z.real, z.imag]))
    mass = gram(problem.comm, parts, problem.apply_mass(parts))
    aa, bb, ab = (np.diag(block) for block in (mass[:n, :n], mass[n:, n:], mass[:n, n:]))
    # This phase makes the real and the imaginary part orthogonal, and the real part the larger one
    z = z * np.exp(-0.5j * np.angle(aa - bb + 2j * ab)) / np.sqrt(aa + bb)
    z = np.asfortranarray(z * inertia(problem, np.asfortranarray(z.real)).signs)
    G = multiply(structure.gyroscopic, np.asfortranarray(z.imag))
    return z, np.diag(gram(problem.comm, np.asfortranarray(z.real), G)).copy()
