"""A body whose mesh, material and reduction follow its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import ufl
from dolfinx import fem

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import flag, instance, items, number, unknown
from dolfinx_mbd.design.sensitivity.body_sensitivities import BodySensitivities, sensitivities
from dolfinx_mbd.design.sensitivity.constants import CONSTANTS, ORTHOTROPIC
from dolfinx_mbd.design.sensitivity.parameters import Parameter, base_value, nodal_velocity
from dolfinx_mbd.durability.recovery.skin_stress import skin_stress
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compat import geometry_degree, geometry_dofmap, interpolated
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.fem.fields import material_points
from dolfinx_mbd.fem.mesh_checks import cell_quality
from dolfinx_mbd.forms import Temperature
from dolfinx_mbd.reduction import InterfaceSpec, Reduction
from dolfinx_mbd.reduction.reducer import Reducer, reduce

SHARED = ("interfaces", "solver", "petsc_options", "petsc_options_prefix", "progress")
"""Arguments of `reduce` that are arguments of `Reducer`."""


class ParametricBody:
    """A body that is reduced again when its parameters change.

    The body is first reduced with the parameters at their base values. The nodes of the mesh move
    from their original positions X to X + Σ p V with the values p and the velocities V(X) of shape
    parameters. The topology of the mesh does not change. With a tolerance, small changes need no
    new reduction: the body is then that of first order.

    Args:
        model: The body with the parameters at their base values.
        parameters: Parameters with different names: constants of materials, thickness, temperature,
            shapes and coefficients. The function of a coefficient is changed in place. For the
            prestress, use a coefficient in its stress.
        tolerance: Largest estimated relative error of the stiffness up to which `at` returns a body
            of first order (`BodySensitivities.error`). By default every change is a new reduction.
        min_quality: Smallest accepted quality of a cell, from 0 (flat) to 1 (equilateral). For a
            cell of low quality in the original mesh, half of its quality, if that is less.
        stress: Whether the bodies have stress modes at the nodes of the skin, with derivatives; see
            `recovery.skin_stress`.
        **options: Arguments of `reduce`, such as `interfaces` and `num_modes`. Points move with the
            shape.

    Attributes:
        reduction: The last reduction. The next reduction moves its mesh, so evaluate fields before.
        values: Values of the parameters of the last reduction, by name.
        count: Number of reductions.

    Raises:
        InputError: An argument is invalid.

    Note: Collective over the communicator of the mesh, as are all methods.

    Example:
        >>> import ufl
        >>> x = ufl.SpatialCoordinate(mesh.mesh)
        >>> wider = mbd.Parameter("w", "shape", velocity=ufl.as_vector([0 * x[0], 0 * x[0], x[2]]))
        >>> rod = mbd.ElasticModel(mesh, mbd.STEEL)
        >>> family = mbd.design.ParametricBody(rod, [wider], interfaces=["left"], num_modes=6)
        >>> mass = family.at({"w": 0.0}).body.total_mass
        >>> round(family.at({"w": 0.1}).body.total_mass / mass, 9)
        1.1
        >>> _ = family.at({"w": 0.0})
    """

    reduction: Reduction

    def __init__(
        self,
        model: ElasticModel,
        parameters: Sequence[Parameter],
        *,
        tolerance: float = 0.0,
        min_quality: float = 0.05,
        stress: bool = False,
        **options: Any,
    ) -> None:
        self.model = instance("model", model, ElasticModel)
        parameters = items("parameters", parameters, Parameter)
        self._tolerance = number("tolerance", tolerance, low=0.0)
        self._min_quality = number("min_quality", min_quality, low=0.0, high=1.0)
        self._stress = flag("stress", stress)
        self._options = dict(options)
        mesh = model.plain_mesh
        self._nodes: Array = np.array(mesh.geometry.x, dtype=float)
        quality = cell_quality(mesh, self._nodes)
        self._sign = np.sign(quality)
        self._limit = np.minimum(self._min_quality, np.abs(quality) / 2)
        self._velocities: dict[str, Array] = {}
        self._points: dict[str, Array] = {}
        self._fields: dict[fem.Function, Array] = {}
        _check_parameters(parameters)
        self._parameters = [self._prepared(p) for p in parameters]
        self._base = {p.name: base_value(model, p) for p in self._parameters}
        self._values: dict[str, float] = {}
        self._table: BodySensitivities | None = None
        self.count = 0
        if self._velocities:
            self._reject_fixed_points()
        self.reduce({})

    @property
    def values(self) -> dict[str, float]:
        """The values of the parameters of the last reduction."""
        return dict(self._values)

    def at(self, values: Mapping[str, float]) -> BodySensitivities:
        """Return the body for values of the parameters, and its derivatives.

        If the estimated error is within the tolerance, the result is the first-order body about
        the last reduction. Otherwise the body is reduced again.

        Args:
            values: Values of parameters by name; the others have their base values.

        Raises:
            InputError: A name is unknown, or the shape inverts or flattens a cell.
        """
        full = self._full(values)
        if self._table is not None and full != self._values:
            if self._table.error(full) <= self._tolerance:
                return self._table.moved(full)
        if full == self._values:
            table = self._table or sensitivities(self.reduction, self._parameters)
        else:
            model, options = self._changed(full), self._changed_options(full)
            shared = {key: options.pop(key) for key in SHARED if key in options}
            with Reducer(model, **shared) as reducer:
                unused = model.prestress is not None  # `sensitivities` has its own factors then
                self._keep(reducer.reduce(**options, last=unused), full)
                table = sensitivities(self.reduction, self._parameters, reducer=reducer)
        self._table = replace(table, base=full)
        return self._table

    def reduce(self, values: Mapping[str, float]) -> Reduction:
        """Return the reduction for values of the parameters, without derivatives; see `at`."""
        full = self._full(values)
        if not self.count or full != self._values:
            model = self._changed(full)
            self._keep(reduce(model, **self._changed_options(full)), full)
        return self.reduction

    def _changed_options(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Return the arguments of `reduce`; the points move with the shape."""
        options = dict(self._options)
        if self._points:
            options["points"] = {
                name: np.asarray(self._options["points"][name], dtype=float)
                + sum(values[p] * V[k] for p, V in self._points.items())
                for k, name in enumerate(self._options["points"])
            }
        return options

    def _keep(self, reduction: Reduction, values: dict[str, float]) -> None:
        """Make a reduction the last one, with stress modes if they are requested."""
        if self._stress:
            body = reduction.body.replace(stress=skin_stress(reduction, peaks=False))
            reduction = replace(reduction, body=body)
        self.reduction, self._values, self._table = reduction, values, None
        self.count += 1

    def _full(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values of all parameters; those that are not given have their base values."""
        for name in instance("values", values, Mapping):
            if name not in self._base:
                unknown("parameter", name, self._base, "the parameters are")
        return {
            k: number(f"values: {k}", values.get(k, v), low=-1e100, high=1e100)
            for k, v in self._base.items()
        }

    def _prepared(self, parameter: Parameter) -> Parameter:
        """Return a parameter whose velocity is a function at the nodes, and keep its field."""
        model, mesh = self.model, self.model.plain_mesh
        if parameter.coefficient is not None:
            self._fields[parameter.coefficient] = parameter.coefficient.x.array.copy()
        if parameter.velocity is None:
            return parameter
        dim = mesh.geometry.dim
        velocity = nodal_velocity(parameter, mesh)
        space = velocity.function_space
        dofs, nodes = space.dofmap.list, geometry_dofmap(mesh)
        position = interpolated(ufl.SpatialCoordinate(mesh), space).x.array.reshape(-1, dim)
        if not np.allclose(position[dofs], self._nodes[nodes][:, :, :dim], rtol=1e-9):
            text = f"a mesh of order {geometry_degree(mesh)} cannot be moved; use order 1 or 2"
            raise InputError(text, argument="model", value=model)
        V: Array = np.zeros(self._nodes.shape)
        V[nodes, :dim] = velocity.x.array.reshape(-1, dim)[dofs]
        self._velocities[parameter.name] = V
        points = self._options.get("points") or {}
        if points:
            owned = dim * space.dofmap.index_map.size_local
            rows = material_points(space, velocity.x.array[:owned, None], points)
            first_point = next(iter(points.values()))  # with two or three components
            num_components = len(np.atleast_1d(first_point))
            velocities = [row.modes[0, :num_components] for row in rows]
            self._points[parameter.name] = np.array(velocities)
        return replace(parameter, velocity=velocity)

    def _reject_fixed_points(self) -> None:
        """Raise an error if an interface has a point, which cannot follow a change of the shape."""
        interfaces = self._options.get("interfaces")
        for name, spec in interfaces.items() if isinstance(interfaces, Mapping) else ():
            if isinstance(spec, InterfaceSpec) and spec.point is not None:
                text = f"interface {name!r} has a fixed point, which cannot follow a shape; omit it"
                raise InputError(text, argument="interfaces", value=interfaces)

    def _changed(self, values: Mapping[str, float]) -> ElasticModel:
        """Return the model with the values; move the nodes, and change the coefficients."""
        model, changes = self.model, self._changes(values)
        x = self._nodes.copy()
        for name, V in self._velocities.items():
            x += values[name] * V
        self._check_quality(x, values)
        self._values, self._table = {}, None  # an error from here on leaves no valid reduction
        model.plain_mesh.geometry.x[:] = x
        for f, array in self._fields.items():
            f.x.array[:] = array
        for p in self._parameters:
            if p.coefficient is not None and p.direction is not None:
                p.coefficient.x.array[:] += values[p.name] * p.direction.x.array
        return replace(model, **changes) if changes else model

    def _changes(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Return the attributes of the model that follow from the values."""
        changes: dict[str, Any] = {}
        for p in self._parameters:
            value = values[p.name]
            if p.quantity == "thickness":
                changes["thickness"] = value
            elif p.quantity == "temperature" and isinstance(self.model.prestress, Temperature):
                rise = self.model.prestress.rise
                changes["prestress"] = Temperature(rise + value - self._base[p.name])
            elif p.quantity in CONSTANTS:
                material = changes.get("material", self.model.material)
                changes["material"] = _material(material, p, value)
        return changes

    def _check_quality(self, x: Array, values: Mapping[str, float]) -> None:
        """Raise an error on all ranks if a cell is inverted or too flat."""
        mesh, comm = self.model.plain_mesh, self.model.plain_mesh.comm
        quality = self._sign * cell_quality(mesh, x)
        bad = np.flatnonzero(~(quality >= self._limit))
        worst = bad[np.argmin(quality[bad])] if len(bad) else -1
        entry = (np.inf, np.zeros(3))
        if len(bad):
            entry = (float(quality[worst]), x[geometry_dofmap(mesh)[worst]].mean(axis=0))
        count = comm.allreduce(len(bad))
        if not count:
            return
        lowest, place = min(comm.allgather(entry), key=lambda pair: pair[0])
        state = "inverts" if lowest <= 0 else "flattens"
        where = ", ".join(f"{c:.4g}" for c in place)
        text = (
            f"the shape {state} {count} cells of the mesh at {dict(values)}; the worst has the "
            f"quality {lowest:.2g} and is at ({where}) m; take smaller bounds, a smoother velocity "
            "(extended_velocity), or a new mesh"
        )
        raise InputError(text, argument="values", value=dict(values))


def _check_parameters(parameters: Sequence[Parameter]) -> None:
    """Raise an error for equal names, or for the factor of a prestress."""
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise InputError(f"the parameters need different names; got {names}", argument="parameters")
    for p in parameters:
        if p.quantity == "prestress":
            text = (
                f"parameter {p.name!r}: the factor of the prestress cannot change; multiply the "
                "stress by a function, and use the quantity 'coefficient'"
            )
            raise InputError(text, argument="parameters", value=p)


def _material(material: Any, parameter: Parameter, value: float) -> Any:
    """Return a material or a mapping of materials with another constant."""
    if isinstance(material, Mapping):
        key = next(k for k in material if str(k) == parameter.group)
        return {**material, key: _material(material[key], parameter, value)}
    if parameter.quantity not in ORTHOTROPIC:
        return replace(material, **{parameter.quantity: value})
    attribute, index = ORTHOTROPIC[parameter.quantity]
    constants = list(getattr(material, attribute))
    constants[index] = value
    return replace(material, **{attribute: tuple(constants)})
