"""Full-order time integration of the deformation of a body with a prescribed rigid motion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dolfinx.mesh import Mesh
from numpy.typing import ArrayLike

from dolfinx_mbd.checks import array, flag, instance, name, names, number, object_with, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.elastic_model import ElasticModel, elastic_model, reject_prestress
from dolfinx_mbd.fem.free_motions import check_floating
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface, mesh_interfaces
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.mesh_checks import check_in_one_part
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.parallel import destroying
from dolfinx_mbd.reduction.stiffening import choose_stiffening
from dolfinx_mbd.structures.prescribed_motion.full_order import FullOrder
from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion, check_interfaces
from dolfinx_mbd.structures.prescribed_motion.observation import Observer, Transient
from dolfinx_mbd.structures.prescribed_motion.time_stepping import (
    MotionStepper,
    Start,
    check_start,
    check_stepping,
    start_state,
    time_steps,
)
from dolfinx_mbd.time_integration import GeneralizedAlpha


@dataclass(frozen=True, eq=False, kw_only=True)
class TransientOptions:
    """Options of `transient`: the start, the method, the couplings and the recorded quantities.

    Attributes:
        t_start: Start time, s.
        elastic_start: ``quasi-static``: the equilibrium that follows the loads, including its
            velocity and acceleration, so that no vibration is excited (for loads that change
            slowly compared with the lowest modes; a faster motion from rest needs ``undeformed``);
            ``undeformed``: no deformation and at rest in the frame; or (u, v), the owned degrees of
            freedom of this rank, shape (owned dofs,) each.
        method: Time-stepping method, an object with `alpha_m`, `alpha_f`, `beta` and `gamma` such
            as `dolfinx_mbd.GeneralizedAlpha`. By default generalized-α with ρ∞ = 0.8.
        tolerance: Error of the linear system of a step, relative to the largest displacement and
            velocity so far.
        couplings: Whether Coriolis, centrifugal and Euler terms act on the deformation. If not,
            they are loads on the undeformed body only.
        points: Material points by name, m, whose motion is recorded. By default none.
        stride: Record every n-th step; the first and the last are always recorded.
        fields_at: Times at which the displacement of the whole body is recorded (nearest step), s.

    Raises:
        InputError: A value has the wrong type or range.

    Example:
        >>> import dolfinx_mbd as mbd
        >>> mbd.structures.TransientOptions(elastic_start="undeformed", stride=10).t_start
        0.0
    """

    t_start: float = 0.0
    elastic_start: Start = "quasi-static"
    method: GeneralizedAlpha | None = None
    tolerance: float = 1e-7
    couplings: bool = True
    points: Mapping[str, ArrayLike] | None = None
    stride: int = 1
    fields_at: ArrayLike = ()

    def __post_init__(self) -> None:
        number("t_start", self.t_start, unit="s")
        check_start(self.elastic_start)
        start = () if isinstance(self.elastic_start, str) else self.elastic_start
        if len({np.shape(values) for values in start}) > 1:
            reject("elastic_start", self.elastic_start, "(u, v) of the same shape")
        check_stepping(self.method, self.tolerance, self.stride)
        flag("couplings", self.couplings)
        instance("points", self.points, (Mapping, type(None)))
        for key, position in (self.points or {}).items():
            array(f"point {name('every name in points', key)!r}", position, (None,))
        array("fields_at", self.fields_at)


def transient(
    model: ElasticModel | TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    motion: PrescribedMotion,
    interfaces: Iterable[str] | Mapping[str, Any],
    t_end: float,
    dt: float,
    held: str | Sequence[str] = (),
    stiffening: bool | None = None,
    damping: Any = None,
    options: TransientOptions | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_transient_",
) -> Transient:
    """Integrate the deformation of a body with a prescribed rigid motion.

    It solves M ü + (C + G) u̇ + (K + K_σ + K_ω + K_α) u = f(t) in the frame of the motion, with the
    Coriolis, centrifugal and Euler operators G, K_ω, K_α and geometric stiffening K_σ. A reduced
    body in a mechanism obeys the same equations, projected onto modes. The matrix of a time step
    has a constant part of M, C and K, which is factorized once before the first step; iterations
    with this factor take the other terms into account.

    Args:
        model: An `ElasticModel` without prestress, or a mesh together with `material`.
        material: Material of a mesh; see `ElasticModel`.
        motion: Motion of the body frame, and the wrenches (force and moment) that act on the body
            at its interfaces, as constants or functions of time.
        interfaces: At least one interface; see `reduce`.
        t_end: End time of the last step, s.
        dt: Step, s; adjusted so that the number of steps is an integer.
        held: Interfaces that move with the frame. By default none: the frame is the mean-axis frame
            of the body, as for a reduced body.
        stiffening: Whether to include geometric stiffening by spin and by interface forces. By
            default it is included with a material and at most one held interface.
        damping: Object with `mass` and `stiffness`, C = mass M + stiffness K, such as
            `dolfinx_mbd.Rayleigh`. By default no damping.
        options: Start, method and recorded quantities. By default `TransientOptions()`.
        petsc_options: Options of the linear solver.
        petsc_options_prefix: Prefix of these options.

    Returns:
        Motion of points, interfaces and fields over time.

    Raises:
        InputError: A value is invalid; the error is raised on every rank.
        FactorizationError: The linear solver failed.
        SolverError: The equations of a step or of the quasi-static start were not solved.

    Example:
        >>> motion = mbd.structures.PrescribedMotion(omega=(0, 50, 0))
        >>> options = {"motion": motion, "interfaces": ends, **times}
        >>> mbd.structures.transient(mesh, mbd.STEEL, **options).num_steps
        5

    Note: Collective over the communicator of the mesh.
    """
    instance("motion", motion, PrescribedMotion)
    solver = solver_options(petsc_options_prefix, petsc_options)
    options = TransientOptions() if options is None else options
    instance("options", options, TransientOptions)
    held_names = (held,) if isinstance(held, str) else names("held", held)
    if stiffening is not None:
        flag("stiffening", stiffening)
    steps, dt = time_steps(options.t_start, t_end, dt)
    field_steps = _field_steps(options.fields_at, options.t_start, dt, steps)
    if damping is not None:
        object_with("damping", damping, "mass", "stiffness")
        number("damping.mass", damping.mass, low=0)
        number("damping.stiffness", damping.stiffness, low=0)
    body = elastic_model(model, material)
    reject_prestress(body, "transient")
    problem = elastic_problem(body)
    check_in_one_part(problem.space.mesh)
    check_floating(problem, "give the elastic stiffness of the free body, and hold it with held=")
    ends = mesh_interfaces(body.mesh, problem.space, interfaces, body.facet_tags)
    _check_names(ends, held_names, motion)
    needs = {
        "a material, whose stress is known (not a stiffness form)": problem.materials is not None,
        "at most one held interface, whose force is then known": len(held_names) <= 1,
    }
    equations = FullOrder(
        problem,
        ends,
        held_names,
        motion,
        damping=damping,
        stiffening=choose_stiffening(stiffening, needs, problem.comm)[0],
        couplings=options.couplings,
        **solver,
    )
    with destroying(problem.comm, equations, problem):
        observer = Observer(problem, ends, options.points or {}, field_steps)
        state = start_state(equations, options.elastic_start, options.t_start, dt)
        stepper = MotionStepper(equations, dt, options.method, tolerance=options.tolerance)
        equations.end_of_start()
        observer(0, state, steps, options.stride)
        for k in range(1, steps + 1):
            state = stepper.step(state)._replace(time=options.t_start + k * dt)
            observer(k, state, steps, options.stride)
    return observer.result(stepper)


def _field_steps(times: ArrayLike, t_start: float, dt: float, steps: int) -> list[int]:
    """Return the steps at which fields are recorded, in ascending order."""
    instants = np.atleast_1d(array("fields_at", times)).ravel()
    numbers = np.rint((instants - t_start) / dt)
    if not ((numbers >= 0) & (numbers <= steps)).all():
        message = f"fields_at must lie between {t_start:g} s and {t_start + steps * dt:g} s"
        raise InputError(f"{message}, got {times!r}", argument="fields_at", value=times)
    return [int(k) for k in np.unique(numbers)]


def _check_names(
    interfaces: tuple[MeshInterface, ...], held: tuple[str, ...], motion: PrescribedMotion
) -> None:
    """Raise an error if an interface is unknown, or held and loaded."""
    valid_names = [i.name for i in interfaces]
    if not valid_names:
        reject("interfaces", interfaces, "at least one interface")
    check_interfaces("held", held, valid_names)
    check_interfaces("motion.wrenches", motion.wrenches, valid_names)
    for both in sorted(set(held) & set(motion.wrenches)):
        message = f"interface {both!r} is held, so its wrench is a reaction and cannot be given"
        raise InputError(message, argument="motion.wrenches", value=both)
