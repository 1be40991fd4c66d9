"""Distributed loads (pressures, tractions, body forces) as nodal vectors and load patterns.

A load is a function that maps a test function v to a linear form: the virtual work of the load with
unit size. The load acts on the undeformed shape and rotates with the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem, la
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.check_arities import ArityMismatch, check_form_arity
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import LoadPattern
from dolfinx_mbd.checks import array, instance, reject
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import ElasticProblem, in_space, rigid_motions
from dolfinx_mbd.fem.compilation import compiled_form
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import traction_load
from dolfinx_mbd.forms.arguments import as_ufl_value
from dolfinx_mbd.parallel import shared_errors

LoadForm: TypeAlias = Callable[[Expr], ufl.Form]
"""Function that maps a test function to the virtual work of a load, a linear form."""


def pressure(mesh: TaggedMesh, group: str) -> LoadForm:
    """Return a pressure of 1 Pa on a named group of facets; it acts towards the body.

    Args:
        mesh: Mesh with the group.
        group: Name of the group. Facets inside the body have no load.

    Raises:
        InputError: The mesh has no group of facets with this name.

    Example:
        >>> options = mbd.ReductionOptions(loads={"gas": mbd.reduction.pressure(mesh, "right")})
        >>> body = mbd.reduce(mesh, mbd.STEEL, interfaces=["left"], options=options).body
        >>> np.round(body.loads[0].force, 9)
        array([-0.0002, ...])
    """
    measure = _facet_measure(mesh, group)
    normal = ufl.FacetNormal(mesh.mesh)
    return lambda v: traction_load(v, -normal, measure)


def traction(mesh: TaggedMesh, group: str, direction: Any) -> LoadForm:
    """Return a force per area on a named group of facets, in body components.

    Args:
        mesh: Mesh with the group.
        group: Name of the group. Facets inside the body have no load.
        direction: Force per area, Pa, numbers or a UFL vector; as many components as the mesh has.

    Raises:
        InputError: The mesh has no group of facets with this name, or the direction is invalid.

    Example:
        >>> wind = mbd.reduction.traction(mesh, "right", (0.0, 1.0, 0.0))
        >>> list(mbd.ReductionOptions(loads={"wind": wind}).loads)
        ['wind']
    """
    measure = _facet_measure(mesh, group)
    vector = _checked_direction(direction)
    return lambda v: traction_load(v, _constant(vector, v), measure)


def body_force(direction: Any) -> LoadForm:
    """Return a force per volume in the whole body, in body components.

    Args:
        direction: Force per volume, N/m³, numbers or a UFL vector; as many components as the mesh
            has.

    Raises:
        InputError: The direction is invalid.

    Example:
        >>> magnet = mbd.reduction.body_force((0.0, 0.0, 1e3))
        >>> list(mbd.ReductionOptions(loads={"magnet": magnet}).loads)
        ['magnet']
    """
    vector = _checked_direction(direction)
    return lambda v: traction_load(v, _constant(vector, v), ufl.dx)


def _checked_direction(direction: Any) -> Any:
    """Return a UFL vector, or numbers as an array."""
    parts = direction if isinstance(direction, (list, tuple)) else (direction,)
    if any(isinstance(part, Expr) for part in parts):
        return as_ufl_value(direction, "direction", ((2,), (3,)))
    expected = "two or three finite numbers, or a UFL vector"
    numbers = array("direction", direction, (None,), expected=expected)
    if len(numbers) not in (2, 3):
        reject("direction", direction, expected)
    return numbers


def _constant(direction: Any, v: Expr) -> Any:
    """Return numbers as a `Constant` on the mesh of v; other numbers need no new compilation."""
    if isinstance(direction, Expr):
        return direction
    return fem.Constant(extract_unique_domain(v), np.asarray(direction, dtype=default_scalar_type))


def _facet_measure(mesh: TaggedMesh, group: str) -> ufl.Measure:
    """Return the measure of a named group of facets."""
    hint = "from read_mesh, build_mesh or TaggedMesh(mesh, facet_tags=..., groups={name: (2, tag)})"
    instance("mesh", mesh, TaggedMesh, hint)
    mesh.facets(group)  # raises an error if the group does not exist
    tag = mesh.groups[group][1]
    return ufl.Measure("ds", domain=mesh.mesh, subdomain_data=mesh.facet_tags, subdomain_id=tag)


def load_vectors(problem: ElasticProblem, loads: Mapping[str, LoadForm]) -> Array:
    """Return the nodal forces of loads of unit size, shape (owned dofs, loads).

    If a load is zero, is not finite or is not a linear form, every rank raises the same error.
    """
    v = ufl.TestFunction(problem.space)
    F = np.zeros((problem.num_owned, len(loads)), order="F")
    for column, (name, load) in enumerate(loads.items()):
        form = load(v) if callable(load) else None
        if not _is_linear(form, v):
            raise InputTypeError(
                f"load {name!r}: expected a function of a test function v that returns a linear "
                "form, for instance lambda v: ufl.inner(t, v) * ds(3), or pressure(mesh, 'crown')",
                argument="loads",
                value=load,
            )
        vector = fem.assemble_vector(compiled_form(form))
        vector.scatter_reverse(la.InsertMode.add)
        with shared_errors(problem.comm):
            F[:, column] = vector.array[: problem.num_owned]
        sizes = problem.comm.allgather(float(np.abs(F[:, column]).max(initial=0.0)))
        largest = np.max(sizes)  # NaN on any rank remains
        if not 0 < largest < np.inf:
            reason = (
                "zero: does it act on facets inside the body?" if largest == 0 else "not finite"
            )
            raise InputError(f"load {name!r} is {reason}", argument="loads", value=name)
    return F


def _is_linear(form: Any, v: Expr) -> bool:
    """Return whether a form is linear in the test function v."""
    if not isinstance(form, ufl.Form) or form.arguments() != (v,):
        return False
    try:
        check_form_arity(apply_algebra_lowering(form), (v,))
    except ArityMismatch:
        return False
    return True


def load_patterns(
    problem: ElasticProblem, names: Iterable[str], forces: Array, modes: Array
) -> tuple[LoadPattern, ...]:
    """Return resultants and modal forces of each load for the multibody equations.

    `forces` is the result of `load_vectors`, with one column for each name.
    """
    comm, dim, n = problem.comm, problem.dim, modes.shape[1]
    resultants = gram(comm, rigid_motions(problem.positions), forces)
    work = gram(comm, modes, forces)
    fields = in_space(modes.reshape(len(modes) // dim, dim, n), axis=1)
    result = []
    for column, name in enumerate(names):
        f = in_space(forces[:, column].reshape(-1, dim))
        moments = comm.allreduce(np.cross(fields, f[:, :, None], axis=1).sum(axis=0))
        force, moment = np.zeros(3), np.zeros(3)
        force[:dim] = resultants[:dim, column]
        moment[slice(None) if dim == 3 else slice(2, None)] = resultants[dim:, column]
        result.append(LoadPattern(name, force, moment, work[:, column], moments.T))
    return tuple(result)
