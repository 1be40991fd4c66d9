"""Reduction of a beam to a flexible body, with the Craig-Bampton basis of solids.

Each interface is a node with the six coordinates of a rigid interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dolfinx
import numpy as np
from dolfinx import fem
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.summary import STIFFENING, warn_of_units
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.field_files import History, write_history
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec, MeshInterface
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.mesh_checks import warn_of_materials
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.phases import Phases
from dolfinx_mbd.progress import Progress, is_shown
from dolfinx_mbd.reduction.basis import Basis, free_basis
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.mode_tables import described, mode_facts
from dolfinx_mbd.reduction.projection import Contents, project
from dolfinx_mbd.reduction.reduction_options import ReductionOptions, check_request
from dolfinx_mbd.reduction.reference import (
    apply_signs,
    check_attached,
    reduced_modes,
    solutions,
)
from dolfinx_mbd.reduction.stiffening import choose_stiffening
from dolfinx_mbd.reduction.truncation import Truncation
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.beams.problem import beam_problem
from dolfinx_mbd.structures.beams.statics import Place


@dataclass(frozen=True, eq=False)
class BeamReduction:
    """Reduced beam with its modes at the nodes.

    Example:
        >>> reduction.body.num_modes, reduction.modes.shape
        (8, (54, 8))
    """

    body: ReducedBody  # plain data, equal on every rank
    model: BeamModel
    modes: Array  # displacements and rotations of the nodes on this rank, shape (owned dofs, n)
    truncation: Truncation | None = None  # for the fixed-interface modes; None without interfaces
    omitted: Array | None = None  # modes above `up_to`, for `sensitivities`; None without `up_to`

    __repr__ = short_repr

    @property
    def space(self) -> fem.FunctionSpace:
        """Space of displacements and rotations of the nodes: P1 with six components."""
        return self.model.space

    def displacement(self, eta: ArrayLike, out: fem.Function | None = None) -> fem.Function:
        """Return displacements and rotations of the nodes in the body frame.

        Args:
            eta: Elastic coordinates, shape (n,).
            out: Function on `space` that is overwritten. By default a new function.

        Returns:
            A function on `space`; `beam_forces` returns its section forces.

        Raises:
            InputError: The number of coordinates differs from the number of modes.

        Note: Collective.
        """
        values = checks.vector("eta", eta, self.modes.shape[1])
        return as_function(self.space, self.modes @ values, out)

    def write(self, path: str | Path, history: History, **options: Any) -> None:
        """Write the motion of the axis to a file for ParaView, in parallel.

        Args:
            path: Path that ends with ``.bp`` or ``.pvd``; see `Reduction.write`.
            history: Motion of the body; see `Reduction.write`.
            **options: `times`, `stride`, `motion` and `scale` of `Reduction.write`.

        Raises:
            InputError: The history does not belong to the body.

        Note: Collective.
        """
        space = fem.functionspace(self.model.mesh, ("Lagrange", 1, (3,)))
        n = self.modes.shape[1]
        axis = self.modes.reshape(-1, 6, n)[:, :3].reshape(-1, n)
        write_history(space, axis, self.model.positions, path, history, **options)


def reduce_beam(
    model: BeamModel,
    *,
    interfaces: Mapping[str, Place | InterfaceSpec],
    num_modes: int = 12,
    attached_to: str | None = None,
    stiffening: bool | None = None,
    points: Mapping[str, Place] | None = None,
    name: str = "beam",
    options: ReductionOptions | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_beam_",
    progress: Progress = False,
) -> BeamReduction:
    """Reduce a beam with interfaces to a few modes (Craig-Bampton), as `reduce` does with a solid.

    Args:
        model: The beam.
        interfaces: Mapping from the name of an interface to a node: its distance along the beam,
            its position, or an `InterfaceSpec` with `point` and `axes` (by default body
            axes). The mapping may be empty.
        num_modes: Number of fixed-interface modes with the lowest frequencies: bending in both
            planes, stretch and torsion.
        attached_to: Name of the interface with which the body frame moves. By default the frame is
            the mean axis.
        stiffening: Whether to include geometric stiffening by spin and by interface forces. By
            default it is included if there are interfaces and the reference is the mean axis.
        points: Material points by name: distance along the beam or position, m; a point off the
            axis moves with the section. By default none.
        name: Name of the body.
        options: Selection of modes and surface, by default `ReductionOptions()`. Loads, damping and
            static correction are not available for beams.
        petsc_options: Options of the linear solver and of the eigenvalue solver.
        petsc_options_prefix: Prefix of these options.
        progress: Whether rank 0 prints the stages; see `reduce`.

    Returns:
        The reduced body with its modes at the nodes.

    Raises:
        InputError: A value is invalid; the error is raised on every rank.
        FactorizationError: The linear solver failed.
        EigenError: The eigenvalue solver did not converge.

    Example:
        >>> mbd.reduce_beam(model, interfaces={"root": 0.0, "tip": 0.5}, num_modes=4).body.num_modes
        10

    Note: Collective over the communicator of the mesh.
    """
    options = check_request(num_modes, attached_to, stiffening, points, name, options)
    _check_options(options)
    checks.instance("model", model, BeamModel)
    checks.instance("interfaces", interfaces, Mapping, "name to node")
    solver = solver_options(petsc_options_prefix, petsc_options)
    nodes = _interfaces(model, interfaces)
    check_attached(attached_to, nodes)
    if options.effective_mass is not None and not nodes:
        raise InputError("effective_mass needs interfaces")
    needs = {
        "the mean-axis reference (no attached_to)": attached_to is None,
        "interfaces": bool(nodes),
    }
    with_stiffening, no_stiffening = choose_stiffening(stiffening, needs, model.mesh.comm)
    warn_of_materials([model.material])
    phases = Phases("reduce_beam", show=is_shown(progress))
    with phases("assembly"):
        problem = beam_problem(model)
    solver["phases"] = phases
    basis: Basis
    if nodes:
        basis = craig_bampton_basis(
            problem,
            nodes,
            num_modes,
            stiffening=with_stiffening,
            effective_mass=options.effective_mass,
            **solver,
        )
    else:
        basis = free_basis(problem, num_modes, estimate=problem.first_square(), **solver)
    modes = reduced_modes(problem, basis, attached_to, options)
    modes, moments = apply_signs(modes, problem.inertia(modes.vectors))
    contents = Contents(nodes, points or {}, options.skin)
    solved = solutions(problem, nodes, modes, moments, basis.cases)
    entries = project(problem, solved, contents, phases) | described(modes, moments, problem.dim)
    provenance = _provenance(model, nodes) | mode_facts(
        num_modes, basis.num_modes, fixed=bool(nodes)
    )
    if options.up_to is not None:
        provenance["up to (Hz)"] = float(options.up_to)
    if not with_stiffening:
        provenance[STIFFENING] = no_stiffening
    seconds = phases.seconds(problem.comm)
    provenance |= {f"seconds, {phase}": value for phase, value in seconds.items()}
    body = ReducedBody(
        name=name,
        damping=np.zeros_like(modes.stiffness),
        provenance=provenance,
        effective_masses=None if basis.truncation is None else basis.truncation.labelled_masses(),
        **entries,
    )
    problem.destroy()
    warn_of_units(body.total_mass, body_size(model.mesh))
    phases.end()
    return BeamReduction(body, model, modes.vectors, basis.truncation, modes.omitted)


def _check_options(options: ReductionOptions) -> None:
    """Raise an error if an option is requested that beams do not have."""
    requested = {
        "loads": options.loads,
        "load_modes": options.load_modes,
        "damping": options.damping is not None,
        "static_correction": options.static_correction,
    }
    for argument, value in requested.items():
        if value:
            raise InputError(f"{argument} is not available for a beam", argument=argument)


def _interfaces(
    model: BeamModel, places: Mapping[str, Place | InterfaceSpec]
) -> tuple[MeshInterface, ...]:
    """Return the nodes that are interfaces."""
    interfaces: list[MeshInterface] = []
    for name, place in places.items():
        checks.name("the name of an interface", name)
        spec = InterfaceSpec()
        if isinstance(place, InterfaceSpec):
            spec, place = place, np.asarray(place.point)
            if spec.kind == "averaged" or spec.facets is not None or spec.point is None:
                raise InputError(
                    f"interface {name!r}: an interface of a beam is a rigid node; give its point, "
                    "and axes if they differ from the body axes"
                )
        point, blocks = model.node(place, f"interface {name!r}")
        for other in interfaces:
            if np.array_equal(point, other.point):
                raise InputError(f"interfaces {other.name!r} and {name!r} are the same node")
        axes = np.eye(3) if spec.axes is None else np.asarray(spec.axes)
        interfaces.append(MeshInterface(name, point, axes, blocks, dim=6))
    return tuple(interfaces)


def _provenance(
    model: BeamModel, interfaces: tuple[MeshInterface, ...]
) -> dict[str, str | int | float]:
    """Return the description of a beam that is stored in its reduced body."""

    def value(number: Any) -> float | str:
        """Return a number, or a text for an expression."""
        return "a function of space" if isinstance(number, Expr) else float(number)

    s, m = model.section, model.material
    return {
        "dolfinx": dolfinx.__version__,
        "cell": "beam",
        "cells": len(model.chain) - 1,
        "dofs": 6 * len(model.chain),
        "ranks": int(model.mesh.comm.size),
        "interfaces": ", ".join(f"{i.name} (node)" for i in interfaces),
        "area (m^2)": value(s.area),
        "Iyy (m^4)": value(s.Iyy),
        "Izz (m^4)": value(s.Izz),
        "Iyz (m^4)": value(s.Iyz),
        "torsion constant (m^4)": value(s.torsion),
        "material": m.name or "isotropic",
        "young (Pa)": value(m.young),
        "poisson": value(m.poisson),
        "density (kg/m^3)": value(m.density),
    }
