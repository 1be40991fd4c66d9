"""Orthotropic linear elastic materials in SI units, for instance fibres in a resin, or wood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.checks import array as checked_array
from dolfinx_mbd.checks import choice, instance, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import scalar
from dolfinx_mbd.forms.materials import checked_range, expansion

__all__ = ["Orthotropic"]

Array = NDArray[np.float64]

VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
"""Components of a symmetric tensor in the order of Voigt: xx, yy, zz, yz, xz, xy."""

IN_PLANE, ACROSS = [0, 1, 5], [2, 3, 4]
"""Which of them lie in the plane z = 0, and which do not."""


@dataclass(frozen=True, eq=False)
class Orthotropic:
    """A linear elastic material with three planes of symmetry, given by nine constants.

    Pairs of axes come in the order 12, 13, 23. A pull along axis i that stretches by ε contracts
    axis j by ν_ij ε, so that ν_ij / E_i = ν_ji / E_j.

    Attributes:
        young: E₁, E₂, E₃, Pa.
        poisson: ν₁₂, ν₁₃, ν₂₃.
        shear: G₁₂, G₁₃, G₂₃, Pa.
        density: Mass density ρ, kg/m³: a number or a UFL expression.
        axes: The columns are the axes 1, 2, 3 in the body frame: a rotation matrix of shape (3, 3),
            or of shape (2, 2) where axis 3 is z; or a UFL expression of such a shape where they
            turn from point to point, for a plane body (2, 2). None: those of the body.
        name: What to call it in summaries and files.
        thermal_expansion: Coefficients of linear expansion along the axes, 1/K, or one for all;
            only `Temperature` needs them.

    Raises:
        ValueError: A constant is outside its range, the constants store negative energy in some
            strain, or the axes are no rotation.
    """

    young: tuple[float, float, float]
    poisson: tuple[float, float, float]
    shear: tuple[float, float, float]
    density: float | Expr
    axes: ArrayLike | Expr | None = None
    name: str = ""
    thermal_expansion: float | tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        for attribute in ("young", "poisson", "shear"):
            object.__setattr__(self, attribute, _three(attribute, getattr(self, attribute)))
        density = scalar("density", self.density)
        checked_range("density", density)
        object.__setattr__(self, "density", density)
        if self.thermal_expansion is not None:
            alpha: Any = self.thermal_expansion
            if not isinstance(alpha, (list, tuple, np.ndarray)):
                alpha = (alpha,) * 3
            object.__setattr__(self, "thermal_expansion", _three("thermal_expansion", alpha))
        if min(self.young + self.shear) <= 0:
            raise InputError(
                "Young's moduli and shear moduli must be positive, in Pa; "
                f"got young={self.young}, shear={self.shear}"
            )
        if max(self.young + self.shear) > 1e30 or min(self.young + self.shear) < 1e-30:
            refuse("young", self.young, "in Pa, and shear likewise")
        scale = np.sqrt(np.outer(self.young, self.young))
        least = float(np.linalg.eigvalsh(self._compliance() * scale)[0])
        if not least > 0:
            raise InputError(
                "these constants are not those of a stable material: some strain stores no or "
                f"negative energy (least eigenvalue of the scaled compliance {least:.2g}); |ν_ij| "
                f"must be less than √(E_i/E_j). Got young={self.young}, poisson={self.poisson} "
                "(ν₁₂, ν₁₃, ν₂₃)"
            )
        object.__setattr__(self, "axes", _checked_axes(self.axes))

    def _compliance(self) -> Array:
        """Strains along the axes over stresses along them, 1/Pa, shape (3, 3)."""
        e, nu = self.young, self.poisson
        S: Array = np.diag(1 / np.array(e))
        for (i, j), ratio in zip(((0, 1), (0, 2), (1, 2)), nu, strict=True):
            S[i, j] = S[j, i] = -ratio / e[i]
        return S

    def matrix(self, dim: int = 3, plane: str = "strain") -> Array:
        """Stress over strain in Voigt's order xx, yy, zz, yz, xz, xy with shears γ = 2ε, Pa.

        In the body frame; or, where the axes are a UFL expression, in the axes of the material.

        Args:
            dim: 3; or 2 for a plane body, of which only xx, yy, xy are left.
            plane: Of a plane body, ``strain`` or ``stress``.

        Returns:
            Symmetric, shape (6, 6), in the plane (3, 3).

        Raises:
            ValueError: z is not one of the axes of the material of a plane body.
        """
        choice("dim", dim, (2, 3))
        choice("plane", plane, ("strain", "stress"))
        C: Array = np.zeros((6, 6))
        C[:3, :3] = np.linalg.inv(self._compliance())
        C[range(3, 6), range(3, 6)] = self.shear[::-1]
        if not isinstance(self.axes, Expr):
            C = _rotated(C, np.asarray(self.axes))
        if dim == 3:
            return C
        self._check_plane(C)
        inner, cross = C[np.ix_(IN_PLANE, IN_PLANE)], C[np.ix_(IN_PLANE, ACROSS)]
        outer = C[np.ix_(ACROSS, ACROSS)]
        return inner if plane == "strain" else inner - cross @ np.linalg.solve(outer, cross.T)

    def row_across(self) -> Array:
        """Stress σ_zz over the strains xx, yy, xy of a body in plane strain, Pa, shape (3,).

        Raises:
            ValueError: z is not one of the axes of the material.
        """
        C = self.matrix()
        self._check_plane(C)
        return C[2, IN_PLANE]

    def thermal_matrix(self, dim: int = 3, plane: str = "strain") -> Array:
        """Stress that holds the material at its size, over the rise of temperature, Pa/K.

        In the frame and order of `matrix`, shape (6,), in the plane (3,).

        Raises:
            ValueError: The material has no `thermal_expansion`.
        """
        choice("dim", dim, (2, 3))
        choice("plane", plane, ("strain", "stress"))
        alpha: Array = np.diag(expansion(self))
        if not isinstance(self.axes, Expr):
            Q: Array = np.asarray(self.axes)
            alpha = Q @ alpha @ Q.T
        strains = np.array([alpha[i, j] * (1 if i == j else 2) for i, j in VOIGT])
        if dim == 2 and plane == "stress":
            return self.matrix(2, plane) @ strains[IN_PLANE]
        beta = self.matrix() @ strains
        return beta if dim == 3 else beta[IN_PLANE]

    def _check_plane(self, C: Array) -> None:
        coupling = np.abs(C[np.ix_((0, 1, 2, 5), (3, 4))]).max()
        if coupling > 1e-9 * np.abs(C).max():
            raise InputError(
                "the plane of a plane body must be a plane of symmetry of its material: z is one "
                "of the material's axes"
            )


def _three(attribute: str, values: Any) -> tuple[float, float, float]:
    """Three finite numbers, or an error that names the attribute."""
    one, two, three = checked_array(attribute, values, (3,), expected="three finite numbers")
    return float(one), float(two), float(three)


def _checked_axes(axes: Any) -> Array | Expr:
    """A rotation matrix of shape (3, 3), or a UFL expression."""
    shapes = ((3, 3), (2, 2))
    if isinstance(axes, Expr):
        if axes.ufl_shape not in shapes:
            raise InputError(f"axes have shape (3, 3), in the plane (2, 2); got {axes.ufl_shape}")
        return axes
    Q = np.eye(3)
    if axes is not None:
        array = checked_array("axes", axes)
        if array.shape not in shapes:
            raise InputError(f"axes have shape (3, 3), in the plane (2, 2); got {array.shape}")
        Q[: len(array), : len(array)] = array
    if not np.allclose(Q.T @ Q, np.eye(3), atol=1e-8) or np.linalg.det(Q) < 0:
        raise InputError(
            "the axes of an orthotropic material must be a rotation matrix, whose columns are unit "
            f"vectors at right angles, right-handed; got {np.asarray(axes).tolist()}"
        )
    Q.flags.writeable = False
    return Q


def _rotated(C: Array, Q: Array) -> Array:
    """A matrix of Voigt in a frame in which the columns of Q are the axes of C's own."""
    pairs = {pair: k for k, (i, j) in enumerate(VOIGT) for pair in ((i, j), (j, i))}
    index = np.array([[pairs[i, j] for j in range(3)] for i in range(3)])
    tensor = C[index[:, :, None, None], index[None, None]]
    tensor = np.einsum("ai,bj,ck,dl,ijkl->abcd", Q, Q, Q, Q, tensor, optimize=True)
    rows, columns = np.array(VOIGT).T
    turned = tensor[rows, columns][:, rows, columns]
    return 0.5 * (turned + turned.T)
