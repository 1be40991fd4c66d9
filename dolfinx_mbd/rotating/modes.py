"""Modes of a body that rotates steadily about an axis fixed in it: prestressed, with Coriolis.

The equations and their matrices are those of `rotating_matrices`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from dolfinx import fem
from numpy.typing import NDArray

from dolfinx_mbd.checks import flag, instance, integer
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.quadratic_eigenvalues import quadratic_modes
from dolfinx_mbd.modal.natural_modes import check_num_modes
from dolfinx_mbd.parallel import released
from dolfinx_mbd.rotating.structure import RotatingStructure, checked_speed

__all__ = ["RotatingModes", "modes_of_factor", "rotating_modes"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class RotatingModes:
    """Modes u = Re(z exp(λt)) in the turning frame.

    Attributes:
        speed: Ω, rad/s.
        eigenvalues: λ, Im λ ≥ 0, shape (n,), 1/s: real unstable ones first, then by |λ|.
        whirl: Sense of the orbits in the turning frame, shape (n,): the mean moment of momentum
            ∫ρ n·(u×u̇) of a vibration over that of circular orbits in the sense of Ω with the same
            energy. 1: forward circles; 0: straight lines; -1: backward circles. (A forward whirl in
            space that is slower than Ω is a backward one here.)
        vectors: z of the owned degrees of freedom, shape (owned, n); ∫ρ|z|² = 1, the real and the
            imaginary part are M-orthogonal and the real part is not the smaller (of a circular
            mode any phase is).
        space: The displacement space.
        negative: Negative eigenvalues of the stiffness K(Ω), None if not known. None of them:
            stable. An odd number: unstable.
    """

    speed: float
    eigenvalues: ComplexArray
    whirl: Array
    vectors: ComplexArray
    space: fem.FunctionSpace
    negative: int | None

    @property
    def frequencies(self) -> Array:
        """Im λ/2π, Hz; zero where λ is real."""
        return np.asarray(self.eigenvalues.imag / (2 * np.pi))

    @property
    def damping_ratios(self) -> Array:
        """-Re λ/|λ|; negative where a vibration grows."""
        return np.asarray(-self.eigenvalues.real / np.abs(self.eigenvalues))

    def functions(self, k: int) -> tuple[fem.Function, fem.Function]:
        """Real and imaginary part of mode k.

        Note: Collective.
        """
        z = self.vectors[:, integer("k", k, low=0, high=self.vectors.shape[1] - 1)]
        return as_function(self.space, z.real), as_function(self.space, z.imag)

    def summary(self) -> str:
        """The modes as a table."""
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
    """The lowest modes at one speed, also where the stiffness K(Ω) is indefinite.

    Args:
        structure: From `rotating_structure`.
        speed: Ω, rad/s.
        num_modes: How many; more may come where more are unstable.
        coriolis: With Ω G.
        stiffening: With K_σ; without it a body that spins fast is falsely unstable.

    Raises:
        ValueError: Something given does not fit.
        FactorizationError: The linear solver failed, or a static critical speed is hit exactly.
        EigenError: The eigenvalue solver failed.

    Note: Collective.
    """
    check_num_modes(num_modes)
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
    """Modes with the stiffness that `structure.factor` holds, whose inertia is `negative`.

    Note: Collective.
    """
    C = structure.velocity_matrix(speed, coriolis=coriolis)
    with released(structure.space.mesh.comm, *([] if C is None else [C])):
        values, vectors = quadratic_modes(
            structure.mass,
            C,
            structure.factor.matrix,
            structure.factor.ksp,
            num_modes,
            structure.held,
            negative=negative,
            prefix=structure.prefix,
            options=structure.options,
        )
    vectors, whirl = _normalized(structure, vectors)
    return RotatingModes(
        speed, values, whirl if speed >= 0 else -whirl, vectors, structure.space, negative
    )


def _normalized(structure: RotatingStructure, z: ComplexArray) -> tuple[ComplexArray, Array]:
    """Phase, sign and size as `RotatingModes` promises; the whirl.

    With u = Re((a + ib) exp(iωt)) the mean of ∫ρ n·(u×u̇) is -ω ∫ρ n·(a×b) = ω aᵀGb/2, and
    ω ∫ρ(|a|² + |b|²)/2 is that of forward circles.
    """
    problem, n = structure.problem, z.shape[1]
    if n == 0:
        return z, np.zeros(0)
    parts = np.asfortranarray(np.hstack([z.real, z.imag]))
    mass = gram(problem.comm, parts, problem.apply_mass(parts))
    aa, bb, ab = (np.diag(mass[s, t]) for s, t in _quarters(n))
    phase = np.exp(-0.5j * np.angle(aa - bb + 2j * ab)) / np.sqrt(aa + bb)
    z = z * phase
    signs = inertia(problem, np.asfortranarray(z.real)).signs
    z = np.asfortranarray(z * signs)
    a, b = np.asfortranarray(z.real), np.asfortranarray(z.imag)
    G = multiply(structure.gyroscopic, b)
    return z, np.diag(gram(problem.comm, a, G)).copy()


def _quarters(n: int) -> tuple[tuple[slice, slice], ...]:
    low, high = slice(n), slice(n, None)
    return (low, low), (high, high), (low, high)
