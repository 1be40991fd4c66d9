"""`BodySensitivities`: derivatives of a reduced body, and first-order bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import Mode
from dolfinx_mbd.body.tree import ArrayDeclaration, checked, map_arrays, with_values
from dolfinx_mbd.checks import flag, instance, number, unknown
from dolfinx_mbd.design.sensitivity.body_derivative import BodyDerivative, in_modes
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.html import short_repr

_LARGEST_ERROR = 0.05  # estimated relative error without a warning


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
        """Return an estimate of the relative error of the stiffness in the first-order body.

        The estimate contains the terms of second order that follow from first derivatives, with
        bounds for products of two parameters. It assumes that the relative changes of the
        stiffness by two parameters multiply, as for Young's modulus and a length.

        Args:
            values: Values of some parameters by name.

        Raises:
            InputError: A name is unknown, or a value is not a finite number.
        """
        steps = self._steps(values)
        modes = sum(abs(s) * np.sqrt(self[k].second_order) for k, s in steps.items())
        size = np.diag(self.body.stiffness)
        changes = [np.abs(s * np.diag(self[k].stiffness)) / size for k, s in steps.items()]
        rates: Array = np.array(changes).reshape(-1, len(size))
        products = (rates.sum(axis=0) ** 2 - (rates**2).sum(axis=0)) / 2
        return float(modes**2 + products.max(initial=0.0))

    def at(self, values: Mapping[str, float], *, own_modes: bool = True) -> ReducedBody:
        """Return the first-order body for other values of the parameters.

        The body is linear in the parameters, except that its modes are its own eigenvectors, and
        that its damping matrix has no negative eigenvalues.

        The eigenvectors of equal or crossing frequencies are not smooth functions of the
        parameters. For derivatives of a mechanism with the body, use `own_modes=False`.

        Args:
            values: Values of some parameters by name, in the units of the parameters; the others
                keep their base values.
            own_modes: Whether the elastic coordinates belong to the eigenvectors of the changed
                body. Otherwise they are those of the body at the base point, and the stiffness
                matrix is full.

        Raises:
            InputError: A name is unknown, a value is not a finite number, or the step is so large
                that a cell of the mesh degenerates or that the first-order body has negative
                stiffness.

        Warns:
            AccuracyWarning: The estimated error is above 5 %.
        """
        steps, body = self._steps(values), self.body
        self._check_shape(steps)
        squares, W = self._modes(values)
        if not flag("own_modes", own_modes):
            W = np.eye(len(squares))
        self._warn(values)

        def moved(array: ArrayDeclaration, base: Any, *rates: Any) -> Any:
            total = base + sum(s * rate for s, rate in zip(steps.values(), rates, strict=True))
            if array.directions:
                total = total / np.linalg.norm(total, axis=-1, keepdims=True)
            return total

        rates = [self[name].arrays for name in steps]
        tree = map_arrays(moved, with_values(body, left_out=()), *rates)
        tree = with_values(tree, damping=_without_negative(tree.damping))
        tree = map_arrays(lambda array, value: array.transformed(value, W), tree)
        K = np.diag(squares) if own_modes else (tree.stiffness + tree.stiffness.T) / 2
        frequencies = np.sqrt(squares) / (2 * np.pi)
        modes = tuple(Mode(f"elastic {k}", float(f)) for k, f in enumerate(frequencies, 1))
        texts = {k: f"first order in {k}, step {s:g}" for k, s in steps.items()}
        provenance = {**body.provenance, **texts}
        result = with_values(tree, mass=body.mass, stiffness=K, modes=modes, provenance=provenance)
        return checked(result)

    def moved(self, values: Mapping[str, float]) -> BodySensitivities:
        """Return the first-order body, and its derivatives in its own modes.

        Args:
            values: Values of some parameters by name; see `at` for errors and warnings.
        """
        W = self._modes(values)[1]
        body, steps = self.at(values), self._steps(values)
        derivatives = {
            name: in_modes(d, body, W, steps.get(name, 0.0)) for name, d in self.derivatives.items()
        }
        return BodySensitivities(body, {**self.base, **values}, derivatives)

    def _modes(self, values: Mapping[str, float]) -> tuple[Array, Array]:
        """Return the eigenvalues ω² and the eigenvectors of the stiffness to first order."""
        K = self.body.stiffness + sum(s * self[k].stiffness for k, s in self._steps(values).items())
        squares, W = scipy.linalg.eigh((K + K.T) / 2)
        if len(squares) and squares[0] <= 0:
            raise InputError(
                f"the first-order body at {dict(values)} has a negative stiffness; take a "
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

    def _check_shape(self, steps: Mapping[str, float]) -> None:
        """Raise an error if the step of a shape parameter degenerates a cell of the mesh."""
        for name, step in steps.items():
            low, high = self[name].limits
            if not low < step < high:
                base = self.base[name]
                text = (
                    f"the value {base + step:g} of the shape parameter {name!r} inverts cells of "
                    f"the mesh; its values must be between {base + low:.6g} and {base + high:.6g}"
                )
                raise InputError(text, argument="values", value=base + step)

    def _warn(self, values: Mapping[str, float]) -> None:
        """Warn if the estimated error of the first-order body is large."""
        error = self.error(values)
        if error > _LARGEST_ERROR:
            text = (
                f"the estimated error of the first-order body is {100 * error:.0f} %; reduce "
                "the changed body instead"
            )
            quantity = "relative error of the first-order body"
            warn(AccuracyWarning(text, quantity=quantity, value=error, limit=_LARGEST_ERROR))


def _without_negative(C: Array) -> Array:
    """Return a symmetric matrix without its negative eigenvalues, which are of second order."""
    values, vectors = np.linalg.eigh((C + C.T) / 2)
    if not len(values) or values[0] >= 0:
        return C
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
