"""Reduction of a body on a mesh: `reduce`, and `Reducer` for reductions that share factors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.summary import STIFFENING, warn_of_units
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.fem.elastic_model import ElasticModel, elastic_model
from dolfinx_mbd.fem.free_motions import is_supported
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.iterative.solver_choice import Solver
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.mesh_checks import check_in_one_part
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.prestress import BUCKLED, prestressed
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.kernels.precompile import start_kernel_compilation
from dolfinx_mbd.phases import Phases
from dolfinx_mbd.progress import Progress, is_shown
from dolfinx_mbd.reduction.basis import Basis, free_basis
from dolfinx_mbd.reduction.craig_bampton import CraigBampton, check_enough_dofs
from dolfinx_mbd.reduction.distributed_loads import load_vectors
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.mesh_damping import with_damping
from dolfinx_mbd.reduction.mode_tables import described, provenance
from dolfinx_mbd.reduction.projection import Contents, SolidIntegrals, project
from dolfinx_mbd.reduction.reduction_options import ReductionOptions, check_request
from dolfinx_mbd.reduction.reference import (
    apply_signs,
    check_attached,
    reduced_modes,
    solutions,
)
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.reduction.static_correction import residual_displacements
from dolfinx_mbd.reduction.stiffening import UnitCases, choose_stiffening, mean_axis_cases

MATERIAL = "a material, whose stress is known (not a stiffness form)"


def reduce(
    model: ElasticModel | TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    interfaces: Iterable[str] | Mapping[str, Any],
    num_modes: int = 20,
    attached_to: str | None = None,
    stiffening: bool | None = None,
    points: Mapping[str, ArrayLike] | None = None,
    name: str = "body",
    options: ReductionOptions | None = None,
    solver: Solver = "auto",
    petsc_options: Mapping[str, Any] | None = None,
    progress: Progress = False,
) -> Reduction:
    """Reduce a body with interfaces to a few modes (Craig-Bampton).

    With k interfaces the body has 6 k + `num_modes` - 6 elastic coordinates; without interfaces,
    these are the `num_modes` lowest modes of the free body. The body frame is the mean axis of the
    motion (Tisserand), or moves with an interface (`attached_to`). Use an attached frame for a
    prescribed motion, for small loads, and for comparisons with other programs. Geometric
    stiffening is impossible with an attached frame, so that the error grows with the square of the
    speed.

    A plane mesh is a plate at z = 0 that deforms in its plane and moves in space. Its modes have no
    uz; its interfaces move by (ux, uy, θz). Under forces and moments out of the plane the plate
    moves as a rigid body. A plane body has 3 k + `num_modes` - 3 elastic coordinates.

    Args:
        model: An `ElasticModel`, or a mesh together with `material`.
        material: Material of a mesh; see `ElasticModel`.
        interfaces: Names of groups of facets; or a mapping from the name of an interface to the
            name of a group, a tag or an `InterfaceSpec`; empty for none. A rigid interface must not
            touch another; averaged interfaces must not overlap.
        num_modes: Number of fixed-interface modes. If the last mode belongs to a multiple
            frequency, all modes of that frequency are kept.
        attached_to: Name of the interface that the body frame moves with; by default the mean axis.
        stiffening: Whether to include geometric stiffening by spin and interface forces, for fast
            rotation. By default it is included if the body has a material and interfaces, and its
            reference is the mean axis; otherwise `ReducedBody.summary` and the log state the
            reason.
        points: Material points by name, shape (3,) or in the plane (2,), m, whose motion can be
            recovered and at which forces can act; by default no points.
        name: Name of the body.
        options: Loads, damping and selection of modes, with the defaults of `ReductionOptions`.
        solver: ``direct``: one factorization for all systems, in single precision from 500,000
            degrees of freedom on one rank, with iterations to double precision; ``double``: always
            in double precision; ``iterative``: multigrid and conjugate gradients (slower, but with
            half the memory at a million degrees of freedom); ``auto``: direct if the factor is
            expected to fit into memory. Bodies without interfaces and bodies with prestress never
            use the iterative solver.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...). On the command line they have the prefix ``dolfinx_mbd_reduce_``.
        progress: Whether rank 0 prints the stages with the seconds since the start, on a terminal
            or in a notebook; "always" also prints them if the output goes to a file. The logger
            ``dolfinx_mbd`` of Python's module `logging` receives the same stages and further facts.

    Returns:
        The reduced body with its modes on the mesh.

    Raises:
        InputError: An argument is invalid; every rank raises the same error.
        FactorizationError: The linear solver failed, for example because a part is not held.
        EigenError: The eigenvalue solver did not converge.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> rod = mbd.ElasticModel(mesh, mbd.STEEL)
        >>> mbd.reduce(rod, interfaces=["left"], num_modes=6).body.num_modes
        6
    """
    check_request(num_modes, attached_to, stiffening, points, name, options)
    with Reducer(
        model,
        material,
        interfaces=interfaces,
        solver=solver,
        petsc_options=petsc_options,
        progress=progress,
    ) as reducer:
        return reducer.reduce(
            num_modes,
            attached_to=attached_to,
            stiffening=stiffening,
            points=points,
            name=name,
            options=options,
            last=True,
        )


class Reducer:
    """A body that is reduced several times, with different numbers of modes or options.

    Matrices, factorization, constraint modes, unit load cases and the fixed-interface modes
    computed so far are kept until `close`, or until the end of a ``with`` block. `sensitivities`
    can use them, too.

    Args:
        model: See `reduce` for this and all other arguments.
        material: Material of a mesh.
        interfaces: Interfaces of the body.
        solver: ``direct``, ``double``, ``iterative`` or ``auto``.
        petsc_options: Options of the solvers.
        petsc_options_prefix: Prefix of these options.
        progress: Whether to print the stages.

    Raises:
        InputError: An argument is invalid; every rank raises the same error.
        FactorizationError: The linear solver failed.

    Note: Collective over the communicator of the mesh, as all methods are.

    Example:
        >>> with mbd.reduction.Reducer(mesh, mbd.STEEL, interfaces=[]) as rod:
        ...     [rod.reduce(n).body.num_modes for n in (2, 4)]
        [2, 4]
    """

    def __init__(
        self,
        model: ElasticModel | TaggedMesh | Mesh,
        material: Materials | None = None,
        *,
        interfaces: Iterable[str] | Mapping[str, Any],
        solver: Solver = "auto",
        petsc_options: Mapping[str, Any] | None = None,
        petsc_options_prefix: str = "dolfinx_mbd_reduce_",
        progress: Progress = False,
    ) -> None:
        self._solver = solver_options(petsc_options_prefix, petsc_options)
        self._method: Solver = checks.choice("solver", solver, get_args(Solver))
        self._shared: CraigBampton | None = None
        self._closed = False
        self._show = is_shown(progress)
        self._phases = phases = Phases("reduce", show=self._show)
        with phases("assembly"):
            self._model = body = elastic_model(model, material)
            problem = elastic_problem(body)
            check_in_one_part(problem.space.mesh)
            # Whether the stiffness itself resists rigid motions
            problem = replace(problem, supported=is_supported(problem))
        if body.prestress is not None:
            with phases("prestress"):
                problem = prestressed(problem, body.prestress, **self._solver)
        self._problem = problem
        if problem.space.mesh.comm.size == 1:
            # In other processes, for the simulation that usually follows; MPI ranks would leave
            # these no idle processors
            start_kernel_compilation()
        with phases("interfaces"):
            self._interfaces = mesh_interfaces(
                body.mesh, problem.space, interfaces, body.facet_tags
            )

    def __enter__(self) -> Reducer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or self._problem.comm.size == 1:
            self.close()  # `close` is collective, but an exception may be on one rank only

    def close(self) -> None:
        """Free factors and matrices; existing reductions remain valid."""
        if self._closed:
            return
        self._closed = True
        self._free_shared()
        self._problem.destroy()

    def _free_shared(self) -> None:
        """Free the matrices and factors that the reductions share."""
        if self._shared is not None:
            self._shared.destroy()
        self._shared = None

    def reduce(
        self,
        num_modes: int = 20,
        *,
        attached_to: str | None = None,
        stiffening: bool | None = None,
        points: Mapping[str, ArrayLike] | None = None,
        name: str = "body",
        options: ReductionOptions | None = None,
        last: bool = False,
    ) -> Reduction:
        """Reduce the body; see the function `reduce` for the arguments.

        With `last`, the factors are freed as soon as they are no longer needed. This saves memory;
        a further reduction computes the factors again. A closed reducer raises a `SolverError`.
        """
        options = check_request(num_modes, attached_to, stiffening, points, name, options)
        checks.flag("last", last)
        self._check_possible(attached_to, options)
        problem, loads = self._problem, options.loads
        phases = self._new_phases()
        forces = load_vectors(problem, loads)
        needs = {
            MATERIAL: problem.materials is not None,
            "the mean-axis reference (no attached_to)": attached_to is None,
            "interfaces": bool(self._interfaces),
        }
        stiffened, no_stiffening = choose_stiffening(stiffening, needs, problem.comm)
        basis = self._basis(
            num_modes,
            phases,
            stiffening=stiffened or options.static_correction,
            loads=dict(zip(loads, forces.T, strict=True)) if options.load_modes else None,
            effective_mass=options.effective_mass,
        )
        if last:
            self._free_shared()
        with phases("projection"):
            modes = reduced_modes(problem, basis, attached_to, options)
        cases, bores, truncation = basis.cases, basis.bores, basis.truncation
        counts = num_modes, basis.num_modes
        del basis  # its vectors are large
        with phases("inertia"):
            modes, moments = apply_signs(modes, inertia(problem, modes.vectors))
        vectors = modes.vectors
        contents = Contents(
            self._interfaces, points or {}, options.skin, tuple(loads), forces, bores
        )
        solved = solutions(problem, self._interfaces, modes, moments, cases if stiffened else None)
        entries = project(SolidIntegrals(problem), solved, contents, phases)
        entries |= described(modes, moments, problem.dim)
        entries["effective_masses"] = None if truncation is None else truncation.labelled_masses()
        facts = provenance(problem, self._model, self._interfaces, counts, truncation, options)
        facts |= {} if stiffened else {STIFFENING: no_stiffening}
        seconds = {f"seconds, {k}": value for k, value in phases.seconds(problem.comm).items()}
        damping = np.zeros_like(modes.stiffness)
        body = ReducedBody(name=name, damping=damping, provenance=facts | seconds, **entries)
        warn_of_units(body.total_mass, body_size(problem.space.mesh))
        reduction = Reduction(
            body=body,
            space=problem.space,
            modes=vectors,
            positions=problem.positions,
            truncation=truncation,
            stress=None if problem.materials is None else problem.materials.stress_in_space,
            residuals=self._residuals(body, vectors, cases if options.static_correction else None),
            model=self._model,
            interfaces=self._interfaces,
            loads=loads,
            omitted=modes.omitted,
        )
        phases.end()
        return with_damping(reduction, options.damping, thickness=problem.thickness)

    def _new_phases(self) -> Phases:
        """Return the phases of a reduction; those of the first one include shared work."""
        phases, self._phases = self._phases, Phases("reduce", show=self._show)
        return phases

    def _residuals(self, body: ReducedBody, modes: Array, cases: UnitCases | None) -> Array | None:
        """Return the part of the response to the unit cases that the modes do not represent."""
        if cases is None:
            return None
        cases = mean_axis_cases(self._problem, cases)
        return residual_displacements(body, modes, cases, self._problem.dim)

    def _check_possible(self, attached_to: str | None, options: ReductionOptions) -> None:
        """Raise an error if the body cannot be reduced as requested."""
        if self._closed:
            raise SolverError("the reducer is closed: reduce inside its `with` block")
        check_attached(attached_to, self._interfaces)
        if not self._interfaces and (options.load_modes or options.effective_mass is not None):
            raise InputError("load_modes and effective_mass need interfaces", argument="interfaces")
        if options.up_to is not None and any(i.pressure_modes for i in self._interfaces):
            raise InputError(
                "up_to would omit pressure modes, whose frequencies are high; omit up_to",
                argument="up_to",
                value=options.up_to,
            )
        if options.static_correction and (not self._interfaces or attached_to is not None):
            raise InputError(
                "static_correction=True needs interfaces and the mean-axis reference",
                argument="static_correction",
            )
        if not self._problem.supported:
            return
        if attached_to is None:
            raise InputError(
                "the stiffness form resists rigid motion: it contains a support (an elastic "
                "foundation, springs to the ground), or it is not invariant under rotations. Leave "
                "the support out of the form and add a force element to the multibody system; or "
                "give attached_to=<interface> if it moves with an interface, as an elastic layer "
                "in a housing does",
                argument="stiffness",
            )
        if options.effective_mass is not None:
            raise InputError(
                "effective_mass needs the stiffness of a free body; the form has a support, so "
                "that the constraint modes contain no rigid motion. Give num_modes",
                argument="effective_mass",
                value=options.effective_mass,
            )

    def _basis(self, num_modes: int, phases: Phases, **options: Any) -> Basis:
        """Compute the Craig-Bampton basis, or the modes of a body without interfaces."""
        problem, interfaces = self._problem, self._interfaces
        try:
            if not interfaces:
                return free_basis(problem, num_modes, phases=phases, **self._solver)
            if self._shared is None:
                check_enough_dofs(problem, interfaces, num_modes)
                self._shared = CraigBampton(
                    problem, interfaces, phases=phases, solver=self._method, **self._solver
                )
            return self._shared.basis(num_modes, phases=phases, **options)
        except FactorizationError as error:
            raise FactorizationError(f"{BUCKLED} ({error})") if problem.prestress else error


def shared_solver(
    reducer: Reducer, reduction: Reduction
) -> tuple[ElasticProblem, HeldStiffness | None]:
    """Return matrices and solver that a reducer keeps for one of its reductions (collective).

    The solver is None without interfaces. The reducer owns both.

    Args:
        reducer: An open reducer.
        reduction: Its result.

    Raises:
        InputError: The reducer is closed, or the reduction is not its result.
    """
    if reducer._closed:
        raise InputError("the reducer is closed: call inside its `with` block", argument="reducer")
    same = reduction.model is reducer._model
    if not same or reduction.interfaces is not reducer._interfaces:
        text = "the reducer did not compute this reduction; give its own reducer, or omit it"
        raise InputError(text, argument="reducer")
    problem, interfaces = reducer._problem, reducer._interfaces
    if not interfaces:
        return problem, None
    if reducer._shared is not None:
        return problem, reducer._shared.held
    reducer._shared = CraigBampton(problem, interfaces, solver=reducer._method, **reducer._solver)
    return problem, reducer._shared.held
