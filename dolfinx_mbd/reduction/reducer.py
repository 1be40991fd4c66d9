"""`Reducer`: several reductions of one body, with what they share made once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.static_errors import warn_of_statics
from dolfinx_mbd.body.summary import STIFFENING, warn_of_units
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.fem.fields import stations, surface_skin
from dolfinx_mbd.fem.free_motions import is_supported
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.mesh_checks import check_in_one_part, warn_of_materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.fem.prestress import BUCKLED, prestressed
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.forms import Plane, Temperature
from dolfinx_mbd.iterative.solver_choice import Solver
from dolfinx_mbd.linalg.factorization import FactorizationError
from dolfinx_mbd.linalg.options import solver_options
from dolfinx_mbd.modal.natural_modes import check_num_modes
from dolfinx_mbd.reduction.basis import Basis, free_basis
from dolfinx_mbd.reduction.craig_bampton import CraigBampton, check_enough_dofs
from dolfinx_mbd.reduction.damping import Given, check_damping, reduced_damping
from dolfinx_mbd.reduction.description import materials_of, mode_table, provenance
from dolfinx_mbd.reduction.distributed_loads import LoadForm, load_patterns, load_vectors
from dolfinx_mbd.reduction.interfaces import MeshInterface, mesh_interfaces
from dolfinx_mbd.reduction.reference import (
    check_attached,
    check_options,
    check_reference,
    placed_interfaces,
    reduced_modes,
)
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.reduction.stiffening import choose_stiffening, mean_axis_cases
from dolfinx_mbd.reduction.stiffening import stiffening as unit_stiffening

__all__ = ["Reducer", "check_request"]

Array = NDArray[np.float64]


class Reducer:
    """A body that is reduced several times: to other numbers of modes, or in another way.

    Matrices, factorization, constraint modes, unit load cases and the fixed-interface modes found
    so far are kept until `close`, or the end of a ``with`` block:

        with mbd.Reducer(mesh, mbd.STEEL, interfaces=["big_end", "small_end"]) as rod:
            few, many = rod.reduce(10), rod.reduce(40)

    Args:
        mesh: As all others as of `reduce`.
        material: Of the body.
        interfaces: Of the body.
        kind: Of the interfaces that do not say it themselves.
        prestress: Of the body.
        cell_tags: With a plain mesh.
        facet_tags: With a plain mesh.
        space: The user's own vector Lagrange space.
        degree: Of the default space.
        stiffness: The user's own bilinear form.
        density: If not the material's.
        plane: Of a plane mesh.
        thickness: Of a plane mesh, m.
        petsc_options: Options of the solvers.
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        FactorizationError: The linear solver failed.

    Note: Collective over the mesh's communicator, as all methods are.
    """

    def __init__(
        self,
        mesh: TaggedMesh | Mesh,
        material: Materials | None = None,
        *,
        interfaces: Iterable[str] | Mapping[str, Any],
        kind: Literal["rigid", "averaged"] = "rigid",
        prestress: Temperature | Expr | None = None,
        cell_tags: MeshTags | None = None,
        facet_tags: MeshTags | None = None,
        space: fem.FunctionSpace | None = None,
        degree: int = 2,
        stiffness: ufl.Form | None = None,
        density: Any = None,
        plane: Plane | None = None,
        thickness: float | None = None,
        solver: Solver = "auto",
        petsc_options: Mapping[str, Any] | None = None,
        petsc_options_prefix: str = "dolfinx_mbd_reduce_",
    ) -> None:
        self._material, self._density, self._prestress = material, density, prestress
        self._solver = solver_options(petsc_options_prefix, petsc_options)
        self._how: Solver = checks.choice("solver", solver, get_args(Solver))
        self._shared: CraigBampton | None = None
        self._closed = False
        self._phases = phases = Phases()
        with phases("assembly"):
            problem = elastic_problem(
                mesh,
                material,
                cell_tags=cell_tags,
                space=space,
                degree=degree,
                stiffness=stiffness,
                density=density,
                plane=plane,
                thickness=thickness,
            )
            check_in_one_part(problem.space.mesh)
            problem = replace(problem, supported=is_supported(problem))
        warn_of_materials(m for _, m in materials_of(material))
        if prestress is not None:
            with phases("prestress"):
                problem = prestressed(problem, prestress, **self._solver)
        self._problem = problem
        with phases("interfaces"):
            self._interfaces = mesh_interfaces(mesh, problem.space, interfaces, facet_tags, kind)

    def __enter__(self) -> Reducer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or self._problem.comm.size == 1:
            self.close()  # (collective: not while an exception of this rank alone may propagate)

    def close(self) -> None:
        """Free factors and matrices; what was made of them stays."""
        if self._closed:
            return
        self._closed = True
        self._free_shared()
        self._problem.destroy()

    def _free_shared(self) -> None:
        if self._shared is not None:
            self._shared.destroy()
        self._shared = None

    def reduce(
        self,
        num_modes: int = 20,
        *,
        effective_mass: float | None = None,
        loads: Mapping[str, LoadForm] | None = None,
        load_modes: bool = False,
        attached_to: str | None = None,
        up_to: float | None = None,
        orthonormalize: bool = True,
        stiffening: bool | None = None,
        static_correction: bool = False,
        damping: Given | ArrayLike | None = None,
        points: Mapping[str, ArrayLike] | None = None,
        name: str = "body",
        skin: bool = True,
        last: bool = False,
    ) -> Reduction:
        """A reduction of the body.

        Args:
            num_modes: As all others but the last as of `dolfinx_mbd.reduce`.
            effective_mass: Share of the effective mass to be kept.
            loads: Distributed loads by name.
            load_modes: Whether each load gets a static mode.
            attached_to: The interface with which the body frame moves; None: mean axis.
            up_to: Modes above this frequency are left out, Hz.
            orthonormalize: False, with `attached_to`: keep the columns as they are.
            stiffening: Geometric stiffening.
            static_correction: Keep what unit loads do on the whole mesh.
            damping: Of the elastic coordinates.
            points: Material points by name, m.
            name: The body's name.
            skin: Keep the surface and the modes there.
            last: Free the factors as soon as they are not needed any more: it takes less memory,
                and another reduction makes them anew.

        Raises:
            RuntimeError: The reducer is closed.
            ValueError: Something given does not fit; the same error on every rank.
            FactorizationError: The linear solver failed, for instance as a part is loose.
            EigenError: The eigenvalue solver did not converge.

        Note: Collective.
        """
        check_request(num_modes, damping, attached_to, up_to, orthonormalize)
        check_options(effective_mass, loads, stiffening, points, name)
        for argument, value in (
            ("load_modes", load_modes),
            ("static_correction", static_correction),
            ("skin", skin),
            ("last", last),
        ):
            checks.flag(argument, value)
        if self._closed:
            raise SolverError("the reducer is closed: reduce inside its `with` block")
        problem, found = self._problem, self._interfaces
        phases, self._phases = self._phases, Phases()  # what is shared is the first one's
        check_attached(attached_to, found)
        if not found and (load_modes or effective_mass is not None):
            raise InputError("load_modes and effective_mass need interfaces")
        if static_correction and (not found or attached_to is not None):
            raise InputError("static_correction=True needs interfaces and the mean-axis reference")
        if problem.supported:
            _check_supported(attached_to, effective_mass)
        forces = load_vectors(problem, loads or {})
        needs = _stiffening_needs(problem, attached_to, found)
        stiff, no_stiffening = choose_stiffening(stiffening, needs, problem.comm)
        basis = self._basis(
            num_modes,
            phases,
            stiffening=stiff or static_correction,
            loads=dict(zip(loads, forces.T, strict=True)) if loads and load_modes else None,
            effective_mass=effective_mass,
        )
        if last:
            self._free_shared()
        with phases("projection"):
            modes = reduced_modes(problem, basis, attached_to, up_to, orthonormalize)
        cases, truncation, completed = basis.cases, basis.truncation, basis.num_modes
        del basis
        with phases("inertia"):
            moments = inertia(problem, modes.vectors)
            moments = replace(moments, signs=np.where(modes.fixed_signs, 1.0, moments.signs))
            vectors = modes.vectors * moments.signs
        placed = placed_interfaces(problem, found, modes, moments)
        kept = mean_axis_cases(problem, cases) if static_correction and cases else None
        stiffened = None
        if stiff and cases is not None and problem.materials is not None:
            with phases("stiffening"):
                turns = np.array([i.motion[3:] for i in placed])
                stress = problem.materials.stress
                stiffened = unit_stiffening(problem, stress, cases, vectors, turns)
            del cases
        with phases("points and skin"):
            places = stations(problem.space, vectors, points or {})
            surface = surface_skin(problem.space, vectors) if skin else None
        flipped = moments.with_signs()
        mass = np.eye(len(modes.squares)) if modes.orthonormal else flipped.mass
        small_stiffness = modes.stiffness * np.outer(moments.signs, moments.signs)
        damped = reduced_damping(
            damping, problem.space, vectors, mass, small_stiffness, thickness=problem.thickness
        )
        facts = provenance(
            problem,
            self._material,
            self._density,
            num_modes,
            completed,
            found,
            up_to,
            self._prestress,
        )
        if truncation is not None and up_to is None and effective_mass is None:
            facts["interfaces to 1 % (Hz)"] = round(truncation.accurate_to(0.01), 1)
        if not stiff:
            facts[STIFFENING] = no_stiffening
        seconds = {f"seconds, {k}": value for k, value in phases.seconds(problem.comm).items()}
        body = ReducedBody(
            name=name,
            total_mass=moments.total_mass,
            first_moments=flipped.first_moments,
            second_moments=flipped.second_moments,
            mass=mass,
            stiffness=small_stiffness,
            damping=damped,
            interfaces=placed,
            modes=mode_table(modes, flipped, problem.dim),
            left_out=modes.left_out,
            points=places,
            loads=load_patterns(problem, loads or {}, forces, vectors),
            skin=surface,
            stiffening=stiffened,
            reference=modes.reference,
            provenance=facts | seconds,
        )
        warn_of_units(body.total_mass, body_size(problem.space.mesh))
        warn_of_statics(body)
        law = None if problem.materials is None else problem.materials.stress_in_space
        return Reduction(body, problem.space, vectors, problem.positions, truncation, law, kept)

    def _basis(self, num_modes: int, phases: Phases, **wanted: Any) -> Basis:
        """By Craig and Bampton, or of a free body; what reductions share is made by the first."""
        problem, found = self._problem, self._interfaces
        try:
            if not found:
                return free_basis(problem, num_modes, phases=phases, **self._solver)
            if self._shared is None:
                check_enough_dofs(problem, found, num_modes)
                self._shared = CraigBampton(
                    problem, found, phases=phases, solver=self._how, **self._solver
                )
            return self._shared.basis(num_modes, phases=phases, **wanted)
        except FactorizationError as error:
            raise FactorizationError(f"{BUCKLED} ({error})") if problem.prestress else error


def check_request(
    num_modes: int, damping: Any, attached_to: Any, up_to: Any, orthonormalize: bool
) -> None:
    """Refuse what can be seen to be wrong before any work."""
    check_num_modes(num_modes)
    check_damping(damping)
    check_reference(attached_to, up_to, orthonormalize)


def _check_supported(attached_to: str | None, effective_mass: float | None) -> None:
    """Raise an error if a body with supports in its stiffness cannot be reduced as requested."""
    if attached_to is None:
        raise InputError(
            "the stiffness form resists rigid motion: it contains a support (an elastic "
            "foundation, springs to the ground), or it is not invariant under rotations. A body "
            "frame that floats with the body would not feel the support. Leave it out of the form "
            "and add a force element to the multibody system; or, if the support moves with an "
            "interface, as an elastic layer in a housing does, give attached_to=<interface>",
            argument="stiffness",
        )
    if effective_mass is not None:
        raise InputError(
            "effective_mass needs the stiffness of a free body; the form has a support, so that "
            "the constraint modes contain no rigid motion. Give num_modes",
            argument="effective_mass",
            value=effective_mass,
        )


def _stiffening_needs(
    problem: ElasticProblem, attached_to: str | None, interfaces: tuple[MeshInterface, ...]
) -> dict[str, bool]:
    """What geometric stiffening needs, and whether it is there."""
    return {
        "a material, whose stress is known (not a stiffness form)": problem.materials is not None,
        "the mean-axis reference (no attached_to)": attached_to is None,
        "interfaces": bool(interfaces),
    }
