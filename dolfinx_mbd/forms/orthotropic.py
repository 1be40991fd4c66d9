"""Orthotropic linear elastic materials in SI units, for example fibre composites or wood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, choice, instance, reject
from dolfinx_mbd.forms.arguments import expression, positive, triad
from dolfinx_mbd.forms.materials import expansion

VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
"""Pairs of axes xx, yy, zz, yz, xz, xy in the order of Voigt's notation."""

IN_PLANE, OUT_OF_PLANE = [0, 1, 5], [2, 3, 4]
"""Voigt indices of the components in the plane z = 0, and the other indices."""


@dataclass(frozen=True, eq=False)
class Orthotropic:
    """A linear elastic material with three planes of symmetry.

    Pairs of axes are in the order 12, 13, 23. If a uniaxial stress along axis i causes the strain
    ε, the strain along axis j is -ν_ij ε; ν_ij / E_i = ν_ji / E_j.

    Attributes:
        young: E₁, E₂, E₃, Pa.
        poisson: ν₁₂, ν₁₃, ν₂₃.
        shear: G₁₂, G₁₃, G₂₃, Pa.
        density: Mass density ρ, kg/m³: a number or a UFL expression.
        axes: Rotation matrix whose columns are the axes 1, 2, 3 in the body frame, shape (3, 3),
            or (2, 2) if axis 3 is z. Axes that vary in space are a UFL expression of shape
            (dim, dim), where dim is the dimension of the mesh. By default the axes of the body.
        name: Name in summaries and files.
        thermal_expansion: Coefficients of linear expansion along the axes, 1/K, or one number for
            all axes; needed only with `Temperature`.

    Raises:
        InputError: A constant is outside its range, the strain energy is not positive for some
            strain, or the axes are not a rotation matrix.

    Example:
        >>> ply = Orthotropic(
        ...     young=(140e9, 10e9, 10e9), poisson=(0.3, 0.3, 0.4), shear=(5e9, 5e9, 3.5e9),
        ...     density=1600.0, name="carbon ply")
        >>> ply.matrix().shape
        (6, 6)
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
        values: dict[str, Any] = {"density": positive("density", self.density, "kg/m^3")}
        for name in ("young", "poisson", "shear"):
            values[name] = _three_numbers(name, getattr(self, name))
        for name in ("young", "shear"):
            if not all(1e-30 < modulus < 1e30 for modulus in values[name]):
                reject(name, values[name], "three positive moduli in Pa")
        alpha = self.thermal_expansion
        if alpha is not None:
            alphas = alpha if isinstance(alpha, (list, tuple, np.ndarray)) else (alpha,) * 3
            values["thermal_expansion"] = _three_numbers("thermal_expansion", alphas)
        assign(self, **values)
        scale = np.sqrt(np.outer(self.young, self.young))  # makes the compliance dimensionless
        if not np.linalg.eigvalsh(self._compliance() * scale)[0] > 0:
            expected = (
                "such that every strain stores positive energy with these moduli; "
                f"|ν_ij| < √(E_i/E_j) is necessary (ν₁₂, ν₁₃, ν₂₃; young={self.young})"
            )
            reject("poisson", self.poisson, expected)
        assign(self, axes=_checked_axes(self.axes))

    def _compliance(self) -> Array:
        """Return the matrix from normal stresses to normal strains, 1/Pa, shape (3, 3)."""
        S: Array = np.diag(1 / np.array(self.young))
        for (i, j), ratio in zip(((0, 1), (0, 2), (1, 2)), self.poisson, strict=True):
            S[i, j] = S[j, i] = -ratio / self.young[i]
        return S

    def matrix(self, dim: int = 3, plane: str = "strain") -> Array:
        """Return the matrix from strains to stresses in Voigt notation with shears γ = 2ε, Pa.

        The components refer to the body frame or, if the axes are a UFL expression, to the axes of
        the material.

        Args:
            dim: 3, or 2 for a plane body, with the components xx, yy, xy.
            plane: For a plane body, `"strain"` or `"stress"`.

        Returns:
            Symmetric matrix, shape (6, 6), or (3, 3) for a plane body.

        Raises:
            InputError: The body is plane, and z is not one of the axes of the material.
        """
        choice("dim", dim, (2, 3))
        choice("plane", plane, ("strain", "stress"))
        C: Array = np.zeros((6, 6))
        C[:3, :3] = np.linalg.inv(self._compliance())
        C[range(3, 6), range(3, 6)] = self.shear[::-1]  # G₂₃, G₁₃, G₁₂, in Voigt's order
        if not isinstance(self.axes, Expr):
            C = rotated_stiffness(C, np.asarray(self.axes))
        if dim == 3:
            return C
        self._check_plane(C)
        inner = C[np.ix_(IN_PLANE, IN_PLANE)]
        if plane == "strain":
            return inner
        # Zero stress out of the plane determines the strains there (static condensation)
        coupling = C[np.ix_(IN_PLANE, OUT_OF_PLANE)]
        outer = C[np.ix_(OUT_OF_PLANE, OUT_OF_PLANE)]
        return np.asarray(inner - coupling @ np.linalg.solve(outer, coupling.T))

    def normal_row(self) -> Array:
        """Return σ_zz in plane strain per unit of the strains xx, yy, xy, Pa, shape (3,)."""
        C = self.matrix()
        self._check_plane(C)
        return C[2, IN_PLANE]

    def thermal_matrix(self, dim: int = 3, plane: str = "strain") -> Array:
        """Return the compressive stress that prevents thermal expansion, per kelvin, Pa/K.

        Args:
            dim: See `matrix`.
            plane: See `matrix`.

        Returns:
            Components in the frame and order of `matrix`, shape (6,), or (3,) for a plane body.

        Raises:
            InputError: The material has no `thermal_expansion`.
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
        """Raise an error if the shears yz and xz are coupled to other strains."""
        coupling = np.abs(C[np.ix_((0, 1, 2, 5), (3, 4))]).max()
        if coupling > 1e-9 * np.abs(C).max():
            reject("axes", self.axes, "such that z is one of the axes, for a plane body")


def _three_numbers(argument: str, values: Any) -> tuple[float, float, float]:
    """Return three finite numbers as floats."""
    first, second, third = array(argument, values, (3,), expected="three finite numbers")
    return float(first), float(second), float(third)


def _checked_axes(axes: Any) -> Array | Expr:
    """Return the axes as a rotation matrix of shape (3, 3), or as a UFL expression."""
    if isinstance(axes, Expr):
        return expression("axes", axes, ((3, 3), (2, 2)))
    matrix = np.eye(3)
    if axes is not None:
        columns = array("axes", axes)
        if columns.shape not in ((3, 3), (2, 2)):
            reject("axes", axes, "of shape (3, 3), or (2, 2) if axis 3 is z")
        matrix[: len(columns), : len(columns)] = columns
    rotation: Array = triad("axes", matrix)
    rotation.flags.writeable = False
    return rotation


def rotated_stiffness(C: Array, Q: Array) -> Array:
    """Return a Voigt matrix in the frame in which the axes of the material are the columns of Q."""
    pairs = {pair: k for k, (i, j) in enumerate(VOIGT) for pair in ((i, j), (j, i))}
    index = np.array([[pairs[i, j] for j in range(3)] for i in range(3)])
    tensor = C[index[:, :, None, None], index[None, None]]
    tensor = np.einsum("ai,bj,ck,dl,ijkl->abcd", Q, Q, Q, Q, tensor, optimize=True)
    rows, columns = np.array(VOIGT).T
    rotated = tensor[rows, columns][:, rows, columns]
    return 0.5 * (rotated + rotated.T)
