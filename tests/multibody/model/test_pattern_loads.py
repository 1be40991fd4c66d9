"""Distributed loads: the power of a particle's forces, exact derivatives, and motions."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.body import LoadPattern, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import (
    exp_rotation,
    quaternion_from_matrix,
    rotation_matrix,
    skew,
)
from dolfinx_mbd.multibody import (
    FlexibleBody,
    Frame,
    Ground,
    JointCoordinate,
    PatternLoad,
    RigidBody,
    System,
    revolute,
    simulate,
)
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.pattern_loads import pattern_rows, pattern_tangent

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (7, 3))
"""Particles of a body of which each has a mass of 0.3 kg and a force of its own."""
PSI = 0.1 * RNG.uniform(-1, 1, (4, 7, 3))
FORCES = RNG.uniform(-1, 1, (7, 3))


def loaded_body() -> ReducedBody:
    """Particles with four modes, and the forces on them as a load pattern."""
    shapes = np.concatenate([X[None], PSI])
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
    )


def random_state() -> np.ndarray:
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


def windmill(value: object, of: JointCoordinate | None = None) -> System:
    """The body free in space, and a rotor whose angle and speed the load may see."""
    body = FlexibleBody("sail", loaded_body(), damping_ratio=0.0)
    rotor = RigidBody("rotor", 1.0, np.ones(3), frames={"axis": Frame()})
    ground = Ground({"axis": Frame()})
    load = PatternLoad("wind", body.pattern("wind"), value, of)  # type: ignore[arg-type]
    hinge = revolute("hinge", ground.frame("axis"), rotor.frame("axis"))
    return System([ground, body, rotor], [hinge], loads=[load])


def test_jacobian_of_a_load_that_sees_a_joint() -> None:
    """The whole chain by differences: size(t, s, rate) with another body's angle and speed."""
    system = windmill(
        lambda t, s, rate: 5 + s**2 + 0.3 * rate, JointCoordinate("hinge", "rotation")
    )
    at, h = Assembler(system), 1e-6
    q0, v0 = RNG.uniform(-1, 1, len(at.q)), RNG.uniform(-1, 1, len(at.v))
    for slices in system.q_slices:
        if slices.stop > slices.start:
            part = slice(slices.start + 3, slices.start + 7)
            q0[part] /= np.linalg.norm(q0[part])
    at.a[:] = 0.1

    def rows(delta: np.ndarray, dv: np.ndarray) -> np.ndarray:
        for body, qs, vs in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
            if qs.stop > qs.start:
                body.increment(q0[qs], delta[vs], at.q[qs])
        at.v[:] = v0 + dv
        at.residual(0.3)
        return at.rows.copy()

    nothing = np.zeros(len(v0))
    rows(nothing, nothing)
    tangent = at.tangent(0.3)
    for k, unit in enumerate(np.eye(len(v0))):
        by_q = (rows(h * unit, nothing) - rows(-h * unit, nothing)) / (2 * h)
        by_v = (rows(nothing, h * unit) - rows(nothing, -h * unit)) / (2 * h)
        np.testing.assert_allclose(tangent.K[:, k], by_q, atol=2e-5)
        np.testing.assert_allclose(tangent.C[:, k], by_v, atol=2e-6)


def test_a_load_gives_its_impulse() -> None:
    """From rest the momentum is p F t and the angular momentum p m₀ t, deformation or not."""
    t = 1e-4
    run = simulate(windmill(2.0), t_end=t, dt=1e-5, elastic_start="undeformed")
    momentum = run.momenta()[-1]
    np.testing.assert_allclose(momentum[:3], 2 * t * FORCES.sum(axis=0), rtol=1e-4)
    moment = np.cross(X, FORCES).sum(axis=0)
    np.testing.assert_allclose(momentum[3:], 2 * t * moment, rtol=1e-4)


def test_a_quasi_static_start_has_inertia_relief() -> None:
    """K η = ∫Ψᵀ(f − ρ(a₀ + α×x)) with the rigid acceleration that the load causes.

    Here on the undeformed body; the start has x + u, 1 % more or less.
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
    again = ReducedBody.load(tmp_path / "sail.npz").load_pattern("wind")
    for part in ("force", "moment", "modes", "moments"):
        np.testing.assert_array_equal(getattr(again, part), getattr(body.loads[0], part))
    some = body.selected([4, 2]).load_pattern("wind")
    np.testing.assert_array_equal(some.modes, body.loads[0].modes[[1, 3]])
    np.testing.assert_array_equal(some.moments, body.loads[0].moments[[1, 3]])
