"""`reduce_beam`: from a beam to a reduced flexible body; and all other analyses of beams by name.

A beam goes the way of a solid: its `BeamProblem` enters the same Craig-Bampton basis, the same
reference conditions and the same unit cases of geometric stiffening, and what comes out is a
`ReducedBody` like any other, to which the same joints are fixed. Interfaces are nodes: a node has
the six coordinates of a rigid interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dolfinx
import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.beams.model import BeamModel
from dolfinx_mbd.beams.problem import BeamProblem, beam_problem, spin_matrices
from dolfinx_mbd.beams.shapes import beam_points, beam_skin
from dolfinx_mbd.beams.statics import BeamModes, Place, beam_forces, beam_modes, beam_statics
from dolfinx_mbd.body import ReducedBody, Stiffening
from dolfinx_mbd.body.summary import STIFFENING, warn_of_units
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.fields import History, as_function, write_history
from dolfinx_mbd.fem.mesh_checks import warn_of_materials
from dolfinx_mbd.fem.operators import euler
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.options import solver_options
from dolfinx_mbd.reduction.basis import Basis, free_basis
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from dolfinx_mbd.reduction.description import body_entries, mode_facts
from dolfinx_mbd.reduction.interfaces import InterfaceSpec, MeshInterface
from dolfinx_mbd.reduction.options import ReductionOptions, check_request
from dolfinx_mbd.reduction.reference import check_attached, reduced_modes, signed
from dolfinx_mbd.reduction.stiffening import UnitCases, choose_stiffening, inertia_relief
from dolfinx_mbd.reduction.truncation import Truncation

__all__ = [
    "BeamModel",
    "BeamModes",
    "BeamReduction",
    "beam_forces",
    "beam_modes",
    "beam_statics",
    "reduce_beam",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BeamReduction:
    """A reduced beam and what ties it to its mesh.

    Attributes:
        body: The reduced body, plain data, the same bits on every rank.
        model: The beam.
        modes: Displacements and rotations of the nodes on this rank, shape (owned dofs, n).
        truncation: What the fixed-interface modes leave out; None without interfaces.
    """

    body: ReducedBody
    model: BeamModel
    modes: Array
    truncation: Truncation | None = None

    @property
    def space(self) -> fem.FunctionSpace:
        """Displacements and rotations of the nodes: P1 with six components."""
        return self.model.space

    def displacement(self, eta: ArrayLike, out: fem.Function | None = None) -> fem.Function:
        """Displacements and rotations of the nodes in the body frame, a function on `space`.

        `beam_forces(model, displacement)` are the forces in the beam.

        Args:
            eta: Elastic coordinates, shape (n,).
            out: A function on `model.space` to be overwritten; None: a new one.

        Raises:
            ValueError: The number of coordinates is not that of the modes.

        Note: Collective.
        """
        values = checks.vector("eta", eta, self.modes.shape[1])
        return as_function(self.model.space, self.modes @ values, out)

    def write(
        self,
        path: str | Path,
        history: History,
        *,
        times: ArrayLike | None = None,
        stride: int = 1,
        motion: Literal["global", "body"] = "global",
        scale: float = 1.0,
    ) -> None:
        """Write the motion of the axis as VTX for ParaView; see `Reduction.write`.

        Note: Collective.
        """
        space = fem.functionspace(self.model.mesh, ("Lagrange", 1, (3,)))
        n = self.modes.shape[1]
        axis = self.modes.reshape(-1, 6, n)[:, :3].reshape(-1, n)
        options: dict[str, Any] = {
            "times": times,
            "stride": stride,
            "motion": motion,
            "scale": scale,
        }
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
) -> BeamReduction:
    """Reduce a beam with interfaces to a few modes (Craig-Bampton), as `reduce` does with a solid.

    Args:
        model: The beam.
        interfaces: Mapping from the name of an interface to a node: its distance along the beam,
            its position, or an `InterfaceSpec` with `point` and `axes` (None: axes of the body).
            May be empty.
        num_modes: Number of fixed-interface modes: bending in both planes, stretch and torsion
            together, by frequency.
        attached_to: Name of the interface that the body frame moves with; None: mean axis.
        stiffening: Geometric stiffening by spin and by the forces at the interfaces; None: with
            interfaces and the mean axis.
        points: Material points by name: distance along the beam or position, m; a point off the
            axis moves with the section. None: no points.
        name: Name of the body.
        options: Selection of modes and surface; None: the defaults of `ReductionOptions`. Its
            loads, damping and static correction are not available for beams.
        petsc_options: Options of the linear solver and of the eigenvalue solver.
        petsc_options_prefix: Prefix of these options.

    Returns:
        The reduced body with its modes at the nodes.

    Raises:
        InputError: A value does not fit; the same error on every rank.
        FactorizationError: The linear solver failed.
        EigenError: The eigenvalue solver did not converge.

    Note: Collective over the communicator of the mesh.
    """
    options = check_request(num_modes, attached_to, stiffening, points, name, options)
    _check_options(options)
    checks.instance("model", model, BeamModel)
    checks.instance("interfaces", interfaces, Mapping, "name to node")
    solver = solver_options(petsc_options_prefix, petsc_options)
    ends = tuple(_interface(model, *item) for item in interfaces.items())
    check_attached(attached_to, ends)
    _check_apart(ends)
    if options.effective_mass is not None and not ends:
        raise InputError("effective_mass needs interfaces")
    needs = {"the mean-axis reference (no attached_to)": attached_to is None}
    needs |= {"interfaces": bool(ends)}
    stiff, no_stiffening = choose_stiffening(stiffening, needs, model.mesh.comm)
    warn_of_materials([model.material])
    phases = Phases()
    with phases("assembly"):
        problem: Any = beam_problem(model)  # stands for an ElasticProblem
    solver["phases"] = phases
    basis: Basis
    if ends:
        basis = craig_bampton_basis(
            problem,
            ends,
            num_modes,
            stiffening=stiff,
            effective_mass=options.effective_mass,
            **solver,
        )
    else:
        basis = free_basis(problem, num_modes, estimate=problem.first_square(), **solver)
    modes = reduced_modes(problem, basis, attached_to, options)
    moments, vectors = signed(modes, problem.inertia(modes.vectors))
    entries = body_entries(problem, ends, modes, moments)
    if basis.cases is not None:
        with phases("stiffening"):
            entries["stiffening"] = _stiffening(problem, ends, basis.cases, vectors)
    nodal = model.gathered(vectors)
    facts = _provenance(model, ends, num_modes, options.up_to, basis.num_modes)
    if not stiff:
        facts[STIFFENING] = no_stiffening
    facts |= {f"seconds, {k}": value for k, value in phases.seconds(problem.comm).items()}
    body = ReducedBody(
        name=name,
        damping=np.zeros((len(modes.squares),) * 2),
        points=beam_points(model, nodal, points or {}),
        skin=beam_skin(model, nodal) if options.skin else None,
        provenance=facts,
        **entries,
    )
    problem.destroy()
    warn_of_units(body.total_mass, body_size(model.mesh))
    return BeamReduction(body, model, vectors, basis.truncation)


def _check_options(options: ReductionOptions) -> None:
    """Raise an error if an option is requested that beams do not have."""
    requested = {
        "loads": bool(options.loads),
        "load_modes": options.load_modes,
        "damping": options.damping is not None,
        "static_correction": options.static_correction,
    }
    for argument, value in requested.items():
        if value:
            raise InputError(f"{argument} is not available for a beam", argument=argument)


def _interface(model: BeamModel, name: str, place: Place | InterfaceSpec) -> MeshInterface:
    checks.name("the name of an interface", name)
    spec = place if isinstance(place, InterfaceSpec) else InterfaceSpec()
    if isinstance(place, InterfaceSpec):
        if spec.kind == "averaged" or spec.facets is not None or spec.point is None:
            raise InputError(
                f"interface {name!r}: an interface of a beam is a rigid node; give its point, and "
                "axes if they are not the body's"
            )
        place = np.asarray(spec.point)
    point, blocks = model.node(place, f"interface {name!r}")
    axes = np.eye(3) if spec.axes is None else np.asarray(spec.axes)
    return MeshInterface(name, point, axes, blocks, dim=6)


def _check_apart(found: tuple[MeshInterface, ...]) -> None:
    for k, one in enumerate(found):
        for other in found[:k]:
            if np.array_equal(one.point, other.point):
                raise InputError(f"interfaces {other.name!r} and {one.name!r} are the same node")


def _provenance(
    model: BeamModel,
    found: tuple[MeshInterface, ...],
    num_modes: int,
    up_to: float | None,
    completed: int,
) -> dict[str, str | int | float]:
    def value(v: Any) -> float | str:
        return "a function of space" if isinstance(v, Expr) else float(v)

    s, m = model.section, model.material
    facts: dict[str, str | int | float] = {
        "dolfinx": dolfinx.__version__,
        "cell": "beam",
        "cells": len(model.chain) - 1,
        "dofs": 6 * len(model.chain),
        "ranks": int(model.mesh.comm.size),
        "interfaces": ", ".join(f"{i.name} (node)" for i in found),
        **mode_facts(num_modes, completed, fixed=bool(found)),
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
    return facts if up_to is None else facts | {"up to (Hz)": float(up_to)}


def _stiffening(
    problem: BeamProblem, found: tuple[MeshInterface, ...], cases: UnitCases, vectors: Array
) -> Stiffening:
    """Reduced geometric stiffness of the unit cases, with the second-order rotation of sections.

    The nodes' rotations are rotation vectors already, as the interfaces' are, so that nothing is
    added at the interfaces.

    Note: Collective.
    """
    model, n = problem.model, vectors.shape[1]
    V, beam = model.space, model.beam
    R = problem.rigid_motions()
    given: Any = problem
    relief = inertia_relief(given, found, R, problem.apply_mass(R), problem.spin_loads())
    u, v, q0 = ufl.TrialFunction(V), ufl.TestFunction(V), fem.Function(V)
    W = fem.Constant(model.mesh, np.zeros((3, 3), dtype=default_scalar_type))
    density, axes = beam.material.density, np.asarray(model.axes)

    def body_force(y: Expr, z: Expr) -> Expr:
        """As far as it varies over the section."""
        return -density * ufl.dot(W, ufl.as_vector([0.0, y, z]))

    form = fem.form(beam.initial_stress_stiffness(u, v, q0, body_force=body_force))
    reduced = np.zeros((cases.displacements.shape[1], n, n))
    spins = spin_matrices()
    for c in range(len(reduced)):
        as_function(V, cases.displacements[:, c], q0)
        acceleration = -euler(relief[3:, c])  # at the point x it is this matrix times x
        if c < len(spins):
            acceleration += spins[c]
        W.value[:] = axes.T @ acceleration @ axes
        A = fem_petsc.assemble_matrix(form)
        A.assemble()
        K = gram(problem.comm, vectors, multiply(A, vectors))
        A.destroy()
        reduced[c] = 0.5 * (K + K.T)
    return Stiffening(reduced[:6], reduced[6:].reshape(len(found), 6, n, n), cases.work)
