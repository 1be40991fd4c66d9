"""Deformation of a body whose rigid motion is given, over time, at full order and in parallel.

    M ü + (C + G(ω)) u̇ + (K + K_σ + K_ω + K_α) u = f(t)

in the frame of the motion: the mean axes of the body (none of its interfaces is held: the six rigid
motions are projected out, and joint forces act at the interfaces) or a frame that moves with
interfaces that are held. It is what a reduced body obeys in a mechanism, without the truncation to
modes: with the motion and joint forces of a simulated mechanism it shows what the modes left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, flag, having, instance, integer, names, number, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.fem.free_motions import check_floating
from dolfinx_mbd.fem.mesh_checks import check_in_one_part
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import Plane
from dolfinx_mbd.linalg.blocks import multiply
from dolfinx_mbd.linalg.options import solver_options
from dolfinx_mbd.parallel import agreed, released
from dolfinx_mbd.prescribed_motion.full_order import FullOrder
from dolfinx_mbd.prescribed_motion.motion import PrescribedMotion
from dolfinx_mbd.prescribed_motion.observation import Observer, Transient
from dolfinx_mbd.prescribed_motion.time_stepping import MethodData, MotionState, MotionStepper
from dolfinx_mbd.reduction.interfaces import MeshInterface, mesh_interfaces
from dolfinx_mbd.reduction.stiffening import choose_stiffening

__all__ = ["check_stepping", "start_state", "time_steps", "transient"]

Array = NDArray[np.float64]
Start = Literal["quasi-static", "undeformed"] | tuple[ArrayLike, ArrayLike]

START_TOLERANCE = 1e-10
"""Relative size of the last correction of a quasi-static start."""

MAX_STEPS = 1e9
"""Greatest number of steps of a run: more is a slip in a time."""


def transient(
    mesh: TaggedMesh | Mesh,
    material: Any = None,
    *,
    motion: PrescribedMotion,
    interfaces: Iterable[str] | Mapping[str, Any],
    t_end: float,
    dt: float,
    t_start: float = 0.0,
    held: str | Sequence[str] = (),
    kind: Literal["rigid", "averaged"] = "rigid",
    stiffening: bool | None = None,
    couplings: bool = True,
    damping: Any = None,
    method: MethodData | None = None,
    start: Start = "quasi-static",
    tolerance: float = 1e-7,
    points: Mapping[str, ArrayLike] | None = None,
    observe_every: int = 1,
    fields_at: ArrayLike = (),
    facet_tags: MeshTags | None = None,
    cell_tags: MeshTags | None = None,
    space: fem.FunctionSpace | None = None,
    degree: int = 2,
    stiffness: ufl.Form | None = None,
    density: Any = None,
    plane: Plane | None = None,
    thickness: float | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_transient_",
) -> Transient:
    """Integrate the deformation of a body whose rigid motion is given.

    The constant part of a step's matrix is factorized once; what changes with the motion is applied
    through the scalar mass matrix and, for geometric stiffening, through combinations of constant
    scalar matrices. Nothing is assembled in the loop.

    Interfaces are rigid (RBE2: their facets move as one; a joint force acts on them as a whole) or
    averaged (RBE3: the facets stay free to deform; a joint force acts as the tractions whose work
    is that of the force on the mean motion), as in `reduce`: so the reduced body is the same model
    in fewer unknowns. Only what is named is kept: motions of points and interfaces at the observed
    times, whole fields at `fields_at`.

    Args:
        mesh: A tagged mesh, or a plain one; in space or in the plane.
        material: See `reduce`.
        motion: Of the frame, and the wrenches at the interfaces.
        interfaces: At least one; see `reduce`.
        t_end: End time, s; the last step ends there.
        dt: Step, s; the number of steps is rounded, the step fitted to it.
        t_start: Start time, s.
        held: Interfaces that move with the frame. Without any the frame is the mean axis of the
            body, as that of a reduced body by default.
        kind: Of the interfaces that do not say it themselves.
        stiffening: Geometric stiffening by spin and by the forces at the interfaces; None: where it
            can be had, that is with a material and at most one held interface.
        couplings: False: Coriolis, centrifugal and Euler terms act as loads on the undeformed body
            only; see `modal_transient` for the papers' modal superposition of it.
        damping: Anything with `mass` and `stiffness`, C = mass M + stiffness K, as
            `dolfinx_mbd.Rayleigh`.
        method: Newmark, generalized-α, ...: anything with `alpha_m`, `alpha_f`, `beta` and `gamma`,
            as `dolfinx_mbd.GeneralizedAlpha`; None: generalized-α, ρ∞ = 0.8.
        start: ``quasi-static``: on the balance that moves with the loads, with its velocity and
            acceleration, so that nothing rings; ``undeformed``, at rest in the frame; or (u, v) as
            the owned degrees of freedom of this rank.
        tolerance: Error of each step's linear system, relative to the greatest displacement and
            velocity so far.
        points: Material points by name, m.
        observe_every: Observe every so manieth step; the first and the last always.
        fields_at: Times at which whole fields are kept, s: the nearest step each.
        facet_tags: See `reduce`; as all that follows.
        cell_tags: Tags of cells, if `mesh` is a plain mesh and there are several materials.
        space: Displacement space.
        degree: Degree of the default space.
        stiffness: The user's own bilinear form.
        density: Number or UFL expression, kg/m³.
        plane: Of a plane mesh, ``stress`` or ``strain``.
        thickness: Of a plane mesh, m.
        petsc_options: Options of the linear solver.
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        FactorizationError: The linear solver failed.
        RuntimeError: A step, or the quasi-static start, was not solved.

    Note: Collective over the mesh's communicator.
    """
    instance("motion", motion, PrescribedMotion)
    flag("couplings", couplings)
    solver = solver_options(petsc_options_prefix, petsc_options)
    instance("points", points, (Mapping, type(None)))
    start = checked_start(start)
    held_names = (held,) if isinstance(held, str) else names("held", held)
    steps, dt = time_steps(t_start, t_end, dt)
    wanted = _field_steps(fields_at, t_start, dt, steps)
    check_stepping(method, tolerance, observe_every)
    _check_damping(damping)
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
    check_floating(problem, "give the elastic stiffness of the free body, and hold it with held=")
    found = mesh_interfaces(mesh, problem.space, interfaces, facet_tags, kind)
    _check_names(found, held_names, motion)
    equations = FullOrder(
        problem,
        found,
        held_names,
        motion,
        damping=damping,
        stiffening=_check_stiffening(stiffening, problem, held_names),
        couplings=couplings,
        **solver,
    )
    with released(problem.comm, equations, problem):
        observer = Observer(problem, found, points or {}, wanted)
        state = start_state(equations, start, t_start, dt)
        stepper = MotionStepper(equations, dt, method, tolerance=tolerance)
        equations.end_of_start()
        observer(0, state, steps, observe_every)
        for k in range(1, steps + 1):
            state = stepper.step(state)._replace(time=t_start + k * dt)
            observer(k, state, steps, observe_every)
    return observer.result(stepper)


def time_steps(t_start: float, t_end: float, dt: float) -> tuple[int, float]:
    """Number of steps, and the step that fits the time.

    Raises:
        ValueError: The times make no sense.
    """
    t_start, t_end = number("t_start", t_start, unit="s"), number("t_end", t_end, unit="s")
    dt = number("dt", dt, positive=True, unit="s")
    if not t_end > t_start:
        raise InputError(
            f"need t_end > t_start; got t_start={t_start:g}, t_end={t_end:g}", argument="t_end"
        )
    steps = max(1, round(min((t_end - t_start) / dt, 2.0 * MAX_STEPS)))
    if steps > MAX_STEPS:
        raise InputError(
            f"{(t_end - t_start) / dt:.3g} steps from {t_start:g} s to {t_end:g} s; at most "
            f"{MAX_STEPS:g} are possible: raise dt",
            argument="dt",
            value=dt,
        )
    return steps, (t_end - t_start) / steps


def checked_start(start: Any) -> Any:
    """Return the start of a motion: a name, or a pair of coordinates and rates."""
    if isinstance(start, str) and start in ("quasi-static", "undeformed"):
        return start
    if not isinstance(start, (tuple, list)) or len(start) != 2:
        refuse("start", start, "'quasi-static', 'undeformed', or coordinates and their rates")
    return start


def _field_steps(times: ArrayLike, t_start: float, dt: float, steps: int) -> list[int]:
    """Steps at which fields are kept, in their order."""
    wanted = np.atleast_1d(array("fields_at", times)).ravel()
    numbers = np.rint((wanted - t_start) / dt)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= steps).all()):
        raise InputError(
            f"fields_at must lie between {t_start:g} s and {t_start + steps * dt:g} s, got "
            f"{times!r}"
        )
    return [int(k) for k in np.unique(numbers)]


def check_stepping(method: Any, tolerance: Any, every: Any) -> None:
    """Raise an error if the method, the tolerance or the stride is not usable.

    Raises:
        ValueError: Something is not what it should be.
    """
    if method is not None:
        having("method", method, "alpha_m", "alpha_f", "beta", "gamma")
    if not 0 < number("tolerance", tolerance) < 1:
        refuse("tolerance", tolerance, "between 0 and 1")
    integer("observe_every", every, low=1)


def _check_damping(damping: Any) -> None:
    if damping is not None:
        having("damping", damping, "mass", "stiffness")
        number("damping.mass", damping.mass, low=0)
        number("damping.stiffness", damping.stiffness, low=0)


def _check_names(
    found: tuple[MeshInterface, ...], held: tuple[str, ...], motion: PrescribedMotion
) -> None:
    known_names = [i.name for i in found]
    known = ", ".join(map(repr, known_names)) or "none"
    if not known_names:
        raise InputError("a body with a given motion needs at least one interface")
    for what, given in (("held", held), ("motion.wrenches", motion.wrenches)):
        for name in given:
            if name not in known_names:
                raise InputError(f"{what}: unknown interface {name!r}; this body has {known}")
    both = sorted(set(held) & set(motion.wrenches))
    if both:
        raise InputError(f"interface {both[0]!r} is held, so its wrench follows and is not given")


def _check_stiffening(wanted: bool | None, problem: ElasticProblem, held: tuple[str, ...]) -> bool:
    needs = {
        "a material, whose stress is known (not a stiffness form)": problem.materials is not None,
        "at most one held interface, whose force is then known": len(held) <= 1,
    }
    wanted = None if wanted is None else flag("stiffening", wanted)
    return choose_stiffening(wanted, needs, problem.comm)[0]


# ---- start --------------------------------------------------------------------------------------
def start_state(equations: FullOrder, start: Start, t: float, dt: float) -> MotionState:
    """State at the start, with an acceleration that fulfils the equations; see `transient`.

    Raises:
        ValueError: `start` is none.

    Note: Collective.
    """
    problem = equations.problem
    if isinstance(start, str) and start == "quasi-static":
        return _quasi_static(equations, t, dt)
    u: Array = np.zeros(problem.num_owned)
    v: Array = np.zeros(problem.num_owned)
    if not isinstance(start, str):
        with agreed(problem.comm):
            u, v = (np.array(array("start", x)) for x in start)
            if u.shape != (problem.num_owned,) or v.shape != u.shape:
                raise InputError(
                    f"start needs u and v with the {problem.num_owned} owned degrees of freedom of "
                    f"this rank; got shapes {u.shape} and {v.shape}"
                )
    a = equations.acceleration(t, u, v)
    return MotionState(t, u, v, a, a)


def _quasi_static(equations: FullOrder, t: float, dt: float) -> MotionState:
    """The balance K u = f at three times gives its velocity and acceleration, which then correct
    it: u of (K + ...) u = f - M a - (C + G) v with v and a of the balance itself."""
    problem, c = equations.problem, equations.damping
    now, next_, last = (
        equations.static_solution(t + k * dt, tolerance=START_TOLERANCE) for k in range(3)
    )
    v = np.asarray((4 * next_ - 3 * now - last) / (2 * dt), dtype=np.float64)
    a = np.asarray((last - 2 * next_ + now) / dt**2, dtype=np.float64)
    equations.move_to(t)
    inertia = problem.apply_mass((a + c.mass * v)[:, None])[:, 0]
    inertia += equations.moving(v, np.zeros_like(v))
    if c.stiffness:
        inertia += c.stiffness * multiply(problem.stiffness, v[:, None])[:, 0]
    u = equations.static_solution(t, inertia, tolerance=START_TOLERANCE)
    return MotionState(t, u, v, a, a)
