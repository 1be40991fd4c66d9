"""Inertia data of a reduced body, computed as one Gram matrix with the scalar mass matrix.

With ψ_0 = x, the data are the total mass, S_k = ∫ρ ψ_k and H_kl^ab = ∫ρ ψ_k^a ψ_l^b.

A plane body lies at z = 0 and moves in space. Its moments in z are zero except ∫ρ z² = m t²/12 for
a thickness t. The change of the thickness with the strain is neglected; the error is of first order
in η and of second order in t, and affects rotations out of the plane only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem, blocked, in_space
from dolfinx_mbd.fem.linalg.blocks import gram, multiply


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass moments of x and of the modes."""

    total_mass: float  # ∫ρ, kg
    first_moments: Array  # S, shape (n+1, 3)
    second_moments: Array  # H, shape (n+1, n+1, 3, 3)
    signs: Array  # sign of ∫ρ ψ_k·w for the fixed field w of `sign_field`, shape (n,)

    @property
    def mass(self) -> Array:
        """M = Σ_a H^aa of the modes, shape (n, n)."""
        return np.einsum("klaa->kl", self.second_moments[1:, 1:])

    def with_signs(self) -> Inertia:
        """Return the moments after each mode is multiplied by its sign."""
        s = np.concatenate([[1.0], self.signs])
        return Inertia(
            self.total_mass,
            self.first_moments * s[:, None],
            self.second_moments * np.multiply.outer(s, s)[:, :, None, None],
            np.ones_like(self.signs),
        )


def sign_field(positions: Array, centre: Array, size: float) -> Array:
    """Return a fixed cubic polynomial of ξ = (x - centre)/size without any symmetry, shape (m, 3).

    A mode gets the sign of ∫ρ ψ·w, which does not depend on numbering or partition. (For a multiple
    frequency only the space of the modes is unique, not each mode.)
    """
    x, y, z = ((in_space(positions) - in_space(centre)) / size).T
    products = [np.ones_like(x), x, y, z, x * x, y * y, z * z, x * y, y * z, z * x]
    products += [x**3, y**3, z**3, x * x * y, x * x * z, y * y * x, y * y * z, z * z * x, z * z * y]
    monomials = np.stack([*products, x * y * z], axis=1)
    golden = 0.6180339887498949  # (√5 − 1)/2; the fractional parts of its multiples all differ
    weights = 0.5 + np.modf(golden * np.arange(1, 3 * monomials.shape[1] + 1))[0]
    return monomials @ weights.reshape(-1, 3)


def inertia(problem: ElasticProblem, modes: Array) -> Inertia:
    """Return the mass, first and second moments of x and of the modes, and the signs of the modes.

    The modes have the shape (owned dofs, n). The results are bitwise identical on all ranks.
    """
    beam_inertia = getattr(problem, "inertia", None)
    if beam_inertia is not None:  # beams integrate over their sections
        return cast(Inertia, beam_inertia(modes))
    x, Ms, comm, dim = problem.positions, problem.scalar_mass, problem.comm, problem.dim
    n = modes.shape[1]
    fixed = np.column_stack([np.ones(len(x)), x])
    moments = gram(comm, fixed, multiply(Ms, fixed))
    moments = moments / moments[0, 0]
    centre = moments[0, 1:]
    radius = float(np.sqrt(np.trace(moments[1:, 1:]) - centre @ centre))
    w = sign_field(x, centre, radius)[:, :dim]
    fields = np.asfortranarray(np.column_stack([fixed, blocked(modes, dim), w]))
    G = gram(comm, fields, multiply(Ms, fields))
    G = (G + G.T) / 2
    x_and_modes, signs = slice(1, 1 + dim * (n + 1)), slice(1 + dim * (n + 1), None)
    overlap = np.einsum("kaa->k", G[x_and_modes, signs].reshape(n + 1, dim, dim))[1:]  # ∫ρ ψ·w
    first, second = _moments(G, n, dim)
    if problem.thickness is not None:
        second[0, 0, 2, 2] = G[0, 0] * problem.thickness**2 / 12
    return Inertia(float(G[0, 0]), first, second, np.where(overlap < 0, -1.0, 1.0))


def inertia_derivative(
    problem: ElasticProblem,
    fields: tuple[Array, Array],
    images: tuple[Array, Array],
    thickness: float,
) -> Inertia:
    """Return the derivatives of the moments of x and of the modes, by the product rule.

    Args:
        problem: Matrices of the body.
        fields: 1, the positions and the components of the modes (see `blocked`), and their
            derivatives, shape (owned blocks, 1 + dim + dim n).
        images: M_s and M_s′ times the fields themselves.
        thickness: Derivative of the thickness of a plane body.

    Note: Collective.
    """
    comm, dim, t = problem.comm, problem.dim, problem.thickness
    (F, rates), (image, changed) = fields, images  # F and F′; M_s F and M_s′ F
    n = (F.shape[1] - 1 - dim) // dim
    G = gram(comm, rates, image)
    G += G.T + gram(comm, F, changed)
    first, second = _moments((G + G.T) / 2, n, dim)
    if t is not None:
        total = float(comm.allreduce(image[:, 0].sum()))
        second[0, 0, 2, 2] = G[0, 0] * t**2 / 12 + total * t * thickness / 6
    return Inertia(float(G[0, 0]), first, second, np.ones(n))


def _moments(G: Array, n: int, dim: int) -> tuple[Array, Array]:
    """Return S and H from the products of 1, x and the modes; the moments in z are zero."""
    x_and_modes = slice(1, 1 + dim * (n + 1))
    first = in_space(G[0, x_and_modes].reshape(n + 1, dim))
    blocks = G[x_and_modes, x_and_modes].reshape(n + 1, dim, n + 1, dim).transpose(0, 2, 1, 3)
    return first, in_space(in_space(blocks), axis=-2)
