"""Linearization of mechanisms with mesh bodies by the call that serves reduced bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.forms import Material
from dolfinx_mbd.structures.mesh_bodies import MeshBody, Traction, vibration_modes
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, ends
from tests.structures.mesh_bodies.test_steady_spin import blade, on_a_hub

SOFT = Material(2e6, 0.3, 1000.0)
PULL = np.array([-0.2, 0.3, 0.4])  # N


def bar(length: float, cells: tuple[int, int, int], material: Material) -> ElasticModel:
    """Return a bar of 20 mm by 40 mm along x."""
    mesh, tags = box((0, -0.01, -0.02), (length, 0.01, 0.02), cells)
    return ElasticModel(mesh, material, facet_tags=tags)


def clamped(body: Any, force: Any = (0, 0, 0), gravity: Any = (0, 0, 0)) -> mbd.System:
    """Return a mechanism with a clamped body, and a force at its other end if it has a frame."""
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    loads = []
    if "right" in body.frame_names:
        loads = [mbd.force("tip", body.frame("right"), force)]
    return mbd.System([ground, body], [clamp], loads=loads, gravity=gravity)


@pytest.mark.parametrize(("length", "cells"), [(0.3, (6, 1, 1)), (0.5, (5, 1, 2))])
@pytest.mark.parametrize("force", [(0, 0, 0), (0, 60.0, -90.0)])
def test_the_call_of_a_reduced_body(length: float, cells: Any, force: Any) -> None:
    """With small deformation, a reduced body in its place has the same lowest frequencies."""
    model = bar(length, cells, STEEL)
    system = clamped(MeshBody("rod", model, ends(0.0, length)), force)
    reduction = mbd.reduce(model, interfaces=ends(0.0, length), num_modes=24)
    reduced = clamped(mbd.FlexibleBody("rod", reduction.body, damping_ratio=0.0), force)
    on_mesh, of_modes = (mbd.linearize(part, mbd.equilibrium(part)) for part in (system, reduced))
    assert np.allclose(on_mesh.frequencies[:4], of_modes.frequencies[:4], rtol=4e-4)
    assert on_mesh.frequencies.shape == (12,)
    assert on_mesh.stability == of_modes.stability == "stable"
    assert on_mesh.summary().splitlines()[2].endswith("rod")
    modes = vibration_modes(system, mbd.equilibrium(system), 12)
    assert np.allclose(on_mesh.poles, modes.poles, rtol=1e-9)
    assert np.allclose(np.abs(on_mesh.displacements["rod"]).max(axis=(0, 1)), 1.0)


def bent(size: float) -> tuple[MeshBody, mbd.System, mbd.State]:
    """Return a soft cantilever that a dead force, tractions and its weight bend."""
    loads = {"side": Traction(2, (0, size * 400, -size * 900))}
    model = bar(0.4, (4, 1, 1), SOFT)
    body = MeshBody("bar", model, ends(0.0, 0.4), energy="neo-hookean", loads=loads)
    system = clamped(body, size * PULL, (0, 0, -size * 9.0))
    return body, system, mbd.equilibrium(system)


def residual(body: MeshBody, system: mbd.System, pull: Any, q: Any, x: Any) -> Any:
    """Return the forces at the free nodes and the right frame after increments x of both."""
    free = np.setdiff1d(np.arange(len(body.nodes)), body.held)
    delta = np.concatenate([np.zeros(6), x[-6:]])
    new = q.copy()
    body.increment(q, delta, new)
    nodal = body.nodal_of(new)
    nodal[0, free] += x[:-6].reshape(-1, 3)
    nothing: Any = np.zeros(12)
    body.hold(nodal, body.frames_of(new), nothing, nothing)
    body.forces.set_state(nodal[0], 0 * nodal[0])
    f = body.forces.elastic() - body.forces.lumped[:, None] * system.gravity
    f -= body.forces.loads.forces(0.0)
    T = body.frame_matrices(body.frames_of(new))[:, :, 6:]
    at_frame = np.einsum("nis,ni->s", T, f)
    at_frame[:3] -= pull
    return np.concatenate([f[free].ravel(), at_frame])


@pytest.mark.parametrize("size", [0.3, 1.0])
def test_bent_state_equals_differences_of_residuals(size: float) -> None:
    """Frequencies about a strongly bent state follow from differences of the nodal forces."""
    body, system, state = bent(size)
    q, count = state.q, 3 * (len(body.nodes) - len(body.held)) + 6
    tip = body.frames_of(q)[1, :3] - [0.4, 0, 0]
    assert np.linalg.norm(tip) > 0.15 * size
    base = residual(body, system, size * PULL, q, np.zeros(count))
    h, columns = 1e-7, []
    assert np.abs(base).max() < 1e-7 * np.abs(body.forces.elastic()).max()
    for unit in np.eye(count):
        pair = [residual(body, system, size * PULL, q, s * h * unit) for s in (1, -1)]
        columns.append((pair[0] - pair[1]) / (2 * h))
    K = np.array(columns).T
    assert np.abs(K - K.T).max() < 1e-7 * np.abs(K).max()
    free = np.setdiff1d(np.arange(len(body.nodes)), body.held)
    basis = np.zeros((len(body.nodes), 3, count))
    for k, node in enumerate(free):
        basis[node, :, 3 * k : 3 * k + 3] = np.eye(3)
    basis[:, :, -6:] = body.frame_matrices(body.frames_of(q))[:, :, 6:]
    rows = basis.reshape(len(basis), -1)
    M = basis.reshape(-1, count).T @ body.forces.apply_mass(rows).reshape(-1, count)
    exact = np.sqrt(eigh(0.5 * (K + K.T), M, eigvals_only=True)[:8]) / (2 * np.pi)
    result = mbd.linearize(system, state, num_modes=8)
    assert np.allclose(result.frequencies, exact, rtol=1e-6)
    straight = bent(1e-9)
    undeformed = mbd.linearize(*straight[1:], num_modes=2).frequencies
    assert abs(result.frequencies[0] / undeformed[0] - 1) > 0.01 * size  # the deformation matters


def test_bent_state_equals_the_derivative_by_ufl() -> None:
    """A cantilever without a second frame, against the assembled second derivative of energy W."""
    model = bar(0.6, (6, 1, 1), RUBBER)
    body = MeshBody("bar", model, ends(0.0, 0.6, ("left",)))
    system = clamped(body, gravity=(0, -40.0, 0))
    state = mbd.equilibrium(system)
    u, _, _ = body.nodal_of(state.q)
    assert u[:, 1].min() < -0.2
    function = fem.Function(body.forces.space)
    body.forces.nodes.assign(function, u)
    test, trial = (f(body.forces.space) for f in (ufl.TestFunction, ufl.TrialFunction))
    gradient = ufl.grad(function)
    E = (gradient + gradient.T + gradient.T * gradient) / 2
    W = RUBBER.shear * ufl.inner(E, E)  # ν = 0
    dx = ufl.dx(metadata={"quadrature_degree": 5})
    form = ufl.derivative(ufl.derivative(W * dx, function, test), function, trial)
    A = fem_petsc.assemble_matrix(fem.form(form))
    A.assemble()
    size = body.nodes.size
    unit = np.eye(size).reshape(-1, 3, size)[body.forces.nodes.owned].reshape(-1, size)
    K, M = (
        body.forces.nodes.gathered_block(multiply(X, np.asfortranarray(unit))).reshape(size, size)
        for X in (A, body.forces.matrix(1.0, 0.0, 0.0))
    )
    free = np.setdiff1d(np.arange(size // 3), body.held)
    rows = (3 * free[:, None] + np.arange(3)).ravel()
    squares = eigh(K[np.ix_(rows, rows)], M[np.ix_(rows, rows)], eigvals_only=True)[:6]
    result = mbd.linearize(system, state, num_modes=6)
    assert np.allclose(result.frequencies, np.sqrt(squares) / (2 * np.pi), rtol=1e-8)
    A.destroy()


@pytest.mark.parametrize("speed", [3.0, pytest.param(40.0, marks=pytest.mark.slow)])
def test_rotating_state(speed: float) -> None:
    """The matrices in coordinates of modes have the poles of the damped rotating mechanism."""
    model, body = blade(viscosity=2e-3)
    axis = np.array([0, 0.6, 0.8])
    system = on_a_hub(body, tuple(axis), speed)
    state = mbd.equilibrium(system, spin=speed * axis)
    result = mbd.linearize(system, state, axes="body", num_modes=4)
    modes = vibration_modes(system, state, 4)
    assert np.allclose(result.poles, modes.poles, rtol=1e-8)
    values = np.linalg.eigvals(result.matrices[0])
    nearest = [np.abs(values - pole).min() / abs(pole) for pole in result.poles]
    assert max(nearest) < 1e-8
    assert np.abs(result.gyroscopic).max() > 0.1 * speed
    assert np.allclose(result.mass, result.mass.T)
    assert result.stability == "asymptotically stable"
    assert set(result.dominant) == {"blade"}
    if speed == 3.0:  # hardly deformed
        reduced = mbd.reduce(model, interfaces=ends(0.1, 0.6, ("root",)), num_modes=16)
        with_modes = on_a_hub(mbd.FlexibleBody("blade", reduced.body), tuple(axis), speed)
        expected = mbd.linearize(with_modes, mbd.equilibrium(with_modes, spin=speed * axis))
        assert np.allclose(result.frequencies[:3], expected.frequencies[:3], rtol=0.02)


def test_errors_of_arguments() -> None:
    system = clamped(MeshBody("rod", bar(0.3, (3, 1, 1), STEEL), ends(0.0, 0.3)))
    state = mbd.equilibrium(system)
    wrong: dict[str, dict[str, Any]] = {
        "axes": {"axes": "global"},
        "num_modes": {"num_modes": 500},
    }
    for argument, options in wrong.items():
        with pytest.raises(InputError) as error:
            mbd.linearize(system, state, **options)
        assert error.value.argument == argument
    with pytest.raises(InputError) as error:
        mbd.linearize(system, state, axes=(0, 0, 1.0))
    assert error.value.argument == "axes"
