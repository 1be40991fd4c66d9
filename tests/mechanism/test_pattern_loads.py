"""Distributed loads: the power of forces on particles, exact derivatives, and motions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import LoadPattern, ReducedBody
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.kernels.rotations import (
    exp_rotation,
    quaternion_from_matrix,
    rotation_matrix,
    skew,
)
from dolfinx_mbd.mechanism import (
    FlexibleBody,
    Frame,
    FrameRef,
    Ground,
    JointCoordinate,
    PatternLoad,
    PatternRef,
    RigidBody,
    revolute,
)
from dolfinx_mbd.mechanism.pattern_loads import pattern_rows, pattern_tangent
from tests.models.rods import rod

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (7, 3))
"""Positions of the particles of a body, each with a mass of 0.3 kg and a force of its own."""
# Displacements of the particles in four modes
PSI = 0.1 * RNG.uniform(-1, 1, (4, 7, 3))
FORCES = RNG.uniform(-1, 1, (7, 3))


def loaded_body() -> ReducedBody:
    """Return particles with four modes, and the forces on them as a load pattern."""
    shapes = np.concatenate([X[None], PSI])
    # Row 0 of the moments is that of the positions, the others are those of the modes
    H = 0.3 * np.einsum("kia,lib->klab", shapes, shapes)
    pattern = LoadPattern(
        "wind",
        FORCES.sum(axis=0),
        np.cross(X, FORCES).sum(axis=0),
        np.einsum("kia,ia->k", PSI, FORCES),
        np.cross(PSI, FORCES).sum(axis=1),
    )
    return ReducedBody.from_arrays(
        total_mass=0.3 * len(X),
        first_moments=0.3 * shapes.sum(axis=1),
        second_moments=H,
        stiffness=np.diag([1e3, 2e3, 3e3, 4e3]),
        loads=(pattern,),
        points=[mbd.body.MaterialPoint("tip", X[2], PSI[:, 2])],
    )


def random_state() -> np.ndarray:
    """Return random coordinates of a body, with a quaternion of unit length."""
    q = RNG.uniform(-1, 1, 11)
    q[3:7] /= np.linalg.norm(q[3:7])
    return q


def test_the_power_is_that_of_the_forces_on_the_particles() -> None:
    q, v = random_state(), RNG.uniform(-1, 1, 10)
    A = rotation_matrix(q[3:7])
    r = X + np.einsum("k,kia->ia", q[7:], PSI)
    velocities = v[:3] + (np.cross(v[3:6], r) + np.einsum("k,kia->ia", v[6:], PSI)) @ A.T
    power = np.sum((FORCES @ A.T) * velocities)
    rows = pattern_rows(loaded_body().load_pattern("wind"), q)
    assert rows @ v == pytest.approx(power, rel=1e-13)


def test_derivatives_of_the_rows() -> None:
    pattern, q, h = loaded_body().load_pattern("wind"), random_state(), 1e-6
    D = pattern_tangent(pattern, q)
    for k in range(10):
        sides = []
        for step in (h, -h):
            p = q.copy()
            if k < 3:
                p[k] += step
            elif k < 6:
                A = rotation_matrix(q[3:7]) @ exp_rotation(step * np.eye(3)[k - 3])
                p[3:7] = quaternion_from_matrix(A)
            else:
                p[k + 1] += step
            sides.append(pattern_rows(pattern, p))
        np.testing.assert_allclose(D[:, k], (sides[0] - sides[1]) / (2 * h), atol=1e-9)


def windmill(value: object, of: object = None) -> System:
    """Return a free body with a distributed load of amplitude `value`, and a rotor.

    The amplitude may depend on the motion `of` both bodies.
    """
    body = FlexibleBody("sail", loaded_body(), damping_ratio=0.0)
    rotor = RigidBody("rotor", 1.0, np.ones(3), frames={"axis": Frame(), "rim": Frame((0.3, 0, 0))})
    ground = Ground({"axis": Frame()})
    load = PatternLoad("wind", body.pattern("wind"), value, of)  # type: ignore[arg-type]
    hinge = revolute("hinge", ground.frame("axis"), rotor.frame("axis"))
    return System([ground, body, rotor], [hinge], loads=[load])


RIM, TIP = FrameRef("rotor", "rim"), FrameRef("sail", "tip")
SOURCES = {
    "joint": (lambda t, s, rate: 5 + s**2 + 0.3 * rate, JointCoordinate("hinge", "rotation")),
    "own body": (lambda t, tip: 5 + tip.position[0] * tip.velocity[1] + tip.omega[2] ** 2, TIP),
    "other body": (lambda t, rim: rim.rotation[0, 1] * rim.omega[1] + 3 * rim.position[2], RIM),
    "two frames": (
        lambda t, rim, tip: np.sum((rim.position - tip.position) ** 2) + rim.velocity @ tip.omega,
        [RIM, TIP],
    ),
}
"""Amplitudes that depend on a motion."""


@pytest.mark.parametrize("source", SOURCES)
def test_jacobian_of_a_load_that_depends_on_a_motion(source: str) -> None:
    """The derivatives equal differences for joint coordinates and frames of both bodies."""
    system = windmill(*SOURCES[source])
    eqs, h = Assembler(system), 1e-6
    q0, v0 = RNG.uniform(-1, 1, len(eqs.q)), RNG.uniform(-1, 1, len(eqs.v))
    for slices in system.q_slices:
        if slices.stop > slices.start:
            part = slice(slices.start + 3, slices.start + 7)
            q0[part] /= np.linalg.norm(q0[part])
    eqs.a[:] = 0.1

    def rows(delta: np.ndarray, dv: np.ndarray) -> np.ndarray:
        for body, qs, vs in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
            if qs.stop > qs.start:
                body.increment(q0[qs], delta[vs], eqs.q[qs])
        eqs.v[:] = v0 + dv
        eqs.residual(0.3)
        return eqs.rows.copy()

    zero = np.zeros(len(v0))
    rows(zero, zero)
    tangent, blocks = eqs.tangent(0.3), eqs.tangent_blocks(0.3)
    for k, unit in enumerate(np.eye(len(v0))):
        by_q = (rows(h * unit, zero) - rows(-h * unit, zero)) / (2 * h)
        by_v = (rows(zero, h * unit) - rows(zero, -h * unit)) / (2 * h)
        np.testing.assert_allclose(tangent.K[:, k], by_q, atol=2e-5)
        np.testing.assert_allclose(tangent.C[:, k], by_v, atol=2e-6)
    for dense, sparse in ((tangent.K, blocks.K), (tangent.C, blocks.C)):
        for (row, column), block in sparse.items():
            part = system.v_slices[row], system.v_slices[column]
            np.testing.assert_allclose(block, dense[part], atol=1e-12)
    assert eqs.loads.couplings()[1] == (set() if source == "own body" else {2})  # body 2: the rotor


def driven_rod(p: Mapping[str, float], kind: str) -> System:
    """Return a rod on a hinge; a force at its right end depends on the motion of this end.

    The force along y of the body is a distributed load or, for `kind` "force", acts at a point.
    """
    body = rod()
    end = body.interface("right")
    unit = LoadPattern(
        "push", (0, 1, 0), (0, 0, 0.5), end.motion[1], np.cross(end.motion[:3].T, (0.0, 1.0, 0.0))
    )
    point = mbd.body.MaterialPoint("end", end.point, end.motion[:3].T)
    flexible = FlexibleBody("rod", body.replace(loads=(unit,), points=(point,)))

    def amplitude(t: float, end: mbd.mechanism.FrameMotion) -> float:
        speed = end.rotation[:, 1] @ end.velocity
        return float(-p["k"] * end.position[1] - p["c"] * speed + 2.0 * np.sin(40 * t))

    def force(t: float, end: mbd.mechanism.FrameMotion) -> tuple[float, float, float]:
        return 0.0, amplitude(t, end), 0.0

    frame = flexible.frame("end")
    load: Any = PatternLoad("push", flexible.pattern("push"), amplitude, frame)
    if kind == "force":
        load = mbd.force("push", frame, force, axes="frame")
    ground = Ground({"o": Frame((-0.5, 0, 0))})
    hinge = revolute("hinge", ground.frame("o"), flexible.frame("left"))
    return System([ground, flexible], [hinge], loads=[load], gravity=(0.0, -9.81, 0.0))


VALUES = {"k": 300.0, "c": 2.0}


def test_a_distributed_load_at_a_point_equals_a_force() -> None:
    """A run, an equilibrium and its poles are equal with the load as a pattern and as a force."""
    systems = [driven_rod(VALUES, kind) for kind in ("pattern", "force")]
    runs = [simulate(system, t_end=0.2, dt=1e-3, tolerance=1e-10) for system in systems]
    for name in ("position", "eta", "eta_rate"):
        values, expected = (getattr(run.body("rod"), name) for run in runs)
        np.testing.assert_allclose(values, expected, atol=1e-8 * np.abs(expected).max())
    assert np.abs(runs[0].body("rod").eta[:, 1]).max() > 1e-5
    pattern, force = (run.element("push") for run in runs)
    np.testing.assert_allclose(pattern.power, force.power, atol=1e-6 * np.abs(force.power).max())
    poles = [mbd.linearize(system, mbd.equilibrium(system)).poles for system in systems]
    np.testing.assert_allclose(poles[0], poles[1], rtol=1e-7)


def test_sensitivities_of_a_load_that_depends_on_its_body() -> None:
    """The derivatives of a run and of poles equal those with a force at the same point."""
    forward, adjoint, linear = [], [], []
    output = mbd.design.Functional("rod.eta.2", "norm", order=2)
    options: dict[str, Any] = {"t_end": 0.05, "dt": 1e-3, "tolerance": 1e-12}
    for kind in ("pattern", "force"):
        build = partial(driven_rod, kind=kind)
        run = mbd.run_sensitivities(build, VALUES, **options)
        forward.append(run.derivative(lambda run: run.body("rod").eta[:, 1]))
        adjoint.append(mbd.design.run_gradient(build, VALUES, output, **options).gradient)
        linear.append(mbd.design.linear_sensitivities(build, VALUES).poles)
    for name, value in VALUES.items():
        for of_pattern, of_force in (forward, adjoint, linear):
            scale = np.abs(of_force[name]).max()
            np.testing.assert_allclose(of_pattern[name], of_force[name], atol=1e-6 * scale)
        ends = [
            simulate(driven_rod(VALUES | {name: value * (1 + h)}, "pattern"), **options)
            for h in (1e-4, -1e-4)
        ]
        change = (ends[0].body("rod").eta[:, 1] - ends[1].body("rod").eta[:, 1]) / (2e-4 * value)
        scale = np.abs(change).max()
        np.testing.assert_allclose(forward[0][name], change, atol=1e-4 * scale)


def test_the_momentum_is_the_impulse_of_the_load() -> None:
    """From rest, the momenta are p F t and p M t for the amplitude p, whatever the deformation."""
    t = 1e-4
    run = simulate(windmill(2.0), t_end=t, dt=1e-5, elastic_start="undeformed")
    momentum = run.momenta()[-1]
    np.testing.assert_allclose(momentum[:3], 2 * t * FORCES.sum(axis=0), rtol=1e-4)
    moment = np.cross(X, FORCES).sum(axis=0)
    np.testing.assert_allclose(momentum[3:], 2 * t * moment, rtol=1e-4)


def test_a_quasi_static_start_has_inertia_relief() -> None:
    """K η = ∫Ψᵀ(f − ρ(a₀ + α×x)) with the rigid accelerations a₀, α due to the load f.

    This equation holds for the undeformed body. The start uses the deformed one, x + u: the results
    differ by about 1 %.
    """
    body = loaded_body()
    history = simulate(windmill(2.0), t_end=1e-6, dt=1e-6).body("sail")
    forces, s = 2 * FORCES, skew(body.first_moments[0])
    inertia = np.block([[body.total_mass * np.eye(3), -s], [s, body.inertia]])
    load = np.concatenate([forces.sum(axis=0), np.cross(X, forces).sum(axis=0)])
    rigid = np.linalg.solve(inertia, load)
    relief = 0.3 * (rigid[:3] + np.cross(rigid[3:], X))
    expected = np.linalg.solve(body.stiffness, np.einsum("kia,ia->k", PSI, forces - relief))
    np.testing.assert_allclose(history.eta[0], expected, rtol=0.02)


def test_the_amplitude_may_be_a_function_of_time() -> None:
    t = 1e-4
    run = simulate(windmill(lambda t: 4e4 * t), t_end=t, dt=1e-5, elastic_start="undeformed")
    np.testing.assert_allclose(run.momenta()[-1][:3], 2e4 * t**2 * FORCES.sum(axis=0), rtol=1e-4)


def test_a_function_of_a_motion_needs_a_source() -> None:
    """Without `of`, a coordinate and its rate would always be zero."""
    pattern, hinge = PatternRef("sail", "wind"), JointCoordinate("hinge", "rotation")
    with pytest.raises(InputTypeError, match="needs of=") as error:
        PatternLoad("wind", pattern, lambda t, s, rate: s)
    assert error.value.argument == "load 'wind': value"
    bad: list[tuple[Any, Any]] = [
        (lambda t: t, hinge),
        (lambda t, s, rate: s, TIP),
        (lambda t, tip: 1.0, [TIP, RIM]),
    ]
    for value, of in bad:
        with pytest.raises(InputTypeError):
            PatternLoad("wind", pattern, value, of)
    for of in ("tip", ("sail", "tip"), [], [hinge, TIP], 3):
        with pytest.raises(InputTypeError, match="of must be a joint coordinate"):
            PatternLoad("wind", pattern, 1.0, of)  # type: ignore[arg-type]
    for frame in (FrameRef("sail", "top"), FrameRef("mast", "tip")):
        with pytest.raises(InputError):
            windmill(lambda t, motion: 1.0, frame)


def test_bad_loads() -> None:
    body = FlexibleBody("sail", loaded_body())
    with pytest.raises(ValueError, match="unknown load 'rain'; body 'body' has 'wind'"):
        body.pattern("rain")
    with pytest.raises(InputError, match=r"^load 'wind': value must be"):
        PatternLoad("wind", body.pattern("wind"), np.nan)
    with pytest.raises(TypeError, match=r"body\.pattern\('name'\)"):
        PatternLoad("wind", "wind", 1.0)  # type: ignore[arg-type]
    rotor = RigidBody("sail", 1.0, np.ones(3))
    with pytest.raises(ValueError, match="body 'sail' has no distributed loads"):
        System([rotor], loads=[PatternLoad("wind", body.pattern("wind"), 1.0)])
    with pytest.raises(InputError, match="load 'wind': 4 modes"):
        loaded_body().truncated(2).replace(loads=loaded_body().loads)


def test_a_load_is_saved_and_truncated(tmp_path) -> None:  # type: ignore[no-untyped-def]
    body = loaded_body()
    body.save(tmp_path / "sail.npz")
    loaded = ReducedBody.load(tmp_path / "sail.npz").load_pattern("wind")
    for part in ("force", "moment", "modes", "moments"):
        np.testing.assert_array_equal(getattr(loaded, part), getattr(body.loads[0], part))
    selected = body.selected([4, 2]).load_pattern("wind")
    np.testing.assert_array_equal(selected.modes, body.loads[0].modes[[1, 3]])
    np.testing.assert_array_equal(selected.moments, body.loads[0].moments[[1, 3]])
