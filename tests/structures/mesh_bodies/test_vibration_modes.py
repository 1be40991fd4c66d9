"""Natural modes of mechanisms with mesh bodies: held and free bodies, prestress, damping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import SteadyError
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.structures.mesh_bodies import MeshBody, Pressure, vibration_modes
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, ends


def bar(**options: Any) -> tuple[ElasticModel, MeshBody]:
    """Return a bar of steel with two interfaces."""
    mesh, tags = box((0, -0.01, -0.02), (0.3, 0.01, 0.02), (6, 1, 1))
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    return model, MeshBody("rod", model, ends(0.0, 0.3), **options)


def cantilever(body: Any, loads: Any = ()) -> mbd.System:
    """Return a mechanism in which the left end of a body is clamped."""
    ground = mbd.Ground({"origin": mbd.Frame(), "side": mbd.Frame((0.3, 0.1, 0.05))})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    elements = [load(ground.frame("side"), body.frame("right")) for load in loads]
    return mbd.System([ground, body], [clamp], loads=elements)


def reduced(model: ElasticModel, num_modes: int, specs: Any) -> mbd.FlexibleBody:
    """Return the reduced body without damping."""
    body = mbd.reduce(model, interfaces=specs, num_modes=num_modes).body
    return mbd.FlexibleBody("rod", body, damping_ratio=0.0)


def test_free_body_equals_modal_analysis() -> None:
    """There are six rigid motions, then the frequencies of the modal analysis of the model."""
    model, _ = bar()
    system = mbd.System([MeshBody("rod", model, rotation=(0.6, 0, 0, 0.8), position=(1, 2, 3))])
    modes = vibration_modes(system, mbd.dynamics.consistent_state(system), 10)
    expected = mbd.modal_analysis(model, num_modes=4).frequencies
    assert (modes.frequencies[:6] == 0).all()
    assert np.allclose(modes.frequencies[6:], expected, rtol=1e-10)
    assert np.isclose(np.abs(modes.displacements["rod"]).max(), 1.0)


@pytest.mark.parametrize("is_held", [False, True])
def test_modes_equal_those_of_dense_matrices(is_held: bool) -> None:
    """Bars with rigid ends, free or clamped, have the frequencies of their dense matrices."""
    _, body = bar()
    system = cantilever(body) if is_held else mbd.System([body])
    modes = vibration_modes(system, mbd.dynamics.consistent_state(system), 10)
    forces, size = body.forces, body.nodes.size
    u, w, frames = body.reference_state()
    forces.set_state(u, w)
    unit = np.eye(size).reshape(-1, 3, size)[forces.nodes.owned].reshape(-1, size)
    matrices = [
        forces.nodes.gathered_block(multiply(A, np.asfortranarray(unit))).reshape(size, size)
        for A in (forces.matrix(0.0, 0.0), forces.matrix(1.0, 0.0, 0.0))
    ]
    free = np.setdiff1d(np.arange(size // 3), body.held)
    T = body.frame_matrices(frames).reshape(size, -1)[:, 6 if is_held else 0 :]
    basis = np.hstack([np.eye(size)[:, (3 * free[:, None] + np.arange(3)).ravel()], T])
    K, M = (basis.T @ A @ basis for A in matrices)
    squares = eigh(K, M, eigvals_only=True)[:10]
    if not is_held:
        assert (modes.frequencies[:6] == 0).all()
        squares[:6] = 0.0
    assert np.allclose(modes.frequencies, np.sqrt(squares) / (2 * np.pi), rtol=1e-9)


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_reduced_body_approaches_the_mesh(kind: str) -> None:
    """Frequencies of a reduced cantilever decrease to those of the mesh, as modes are added."""
    model, _ = bar()
    specs = {
        name: mbd.InterfaceSpec(spec.facets, kind=kind, point=spec.point, axes=np.eye(3))
        for name, spec in ends(0.0, 0.3).items()
    }
    system = cantilever(MeshBody("rod", model, specs))
    exact = vibration_modes(system, mbd.equilibrium(system), 4).frequencies
    errors = []
    for num_modes in (6, 24):
        with_modes = cantilever(reduced(model, num_modes, specs))
        values = mbd.linearize(with_modes, mbd.equilibrium(with_modes)).frequencies[:4]
        errors.append(values / exact - 1)
    assert (errors[1] > -1e-10).all()
    assert errors[1].max() < 2e-4
    assert (errors[1] <= errors[0] + 1e-12).all()
    assert errors[1].max() < 0.3 * errors[0].max()


def tensioned(tension: float) -> tuple[Any, Any]:
    """Return squared frequencies of a bar between pins, and those of a beam, 1/s²."""
    mesh, tags = box((0, -0.01, -0.01), (1, 0.01, 0.01), (16, 1, 1))
    body = MeshBody("bar", ElasticModel(mesh, RUBBER, facet_tags=tags), ends(0.0, 1.0))
    along_x = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])  # z along x
    ground = mbd.Ground({"pin": mbd.Frame(), "guide": mbd.Frame((1, 0, 0), along_x)})
    frames = {"pin": mbd.Frame(), "guide": mbd.Frame((0, 0, 0), along_x)}
    slider = mbd.RigidBody("slider", 0.1, [1e-4] * 3, position=(1, 0, 0), frames=frames)
    joints = [
        mbd.revolute("left", ground.frame("pin"), body.frame("left")),
        mbd.revolute("right", slider.frame("pin"), body.frame("right")),
        mbd.prismatic("guide", ground.frame("guide"), slider.frame("guide")),
    ]
    pull = mbd.force("pull", slider.frame("pin"), (tension, 0, 0))
    system = mbd.System([ground, body, slider], joints, loads=[pull])
    modes = vibration_modes(system, mbd.equilibrium(system), 6)
    bending, line = 5e7 * 0.02**4 / 12, 1100 * 0.02**2
    wave = np.pi * np.arange(1, 3)
    exact = wave**2 * (tension + bending * wave**2) / line
    # the modes in the plane of the pins; across it the ends are clamped
    shapes = np.abs(modes.displacements["bar"]).max(axis=0)
    plane = (modes.poles.real >= 0) & (shapes[1] > 10 * shapes[2]) & (shapes[1] > shapes[0])
    return -(modes.poles[plane][:2] ** 2).real, exact


@pytest.mark.parametrize(("tension", "rtol"), [(0.0, 0.006), (10.0, 0.006), (60.0, 0.01)])
def test_tension_raises_frequencies(tension: float, rtol: float) -> None:
    """ρAω² = (nπ/L)² (T + EI (nπ/L)²) for a beam without shear; at 60 N the strain is 0.3 %."""
    values, exact = tensioned(tension)
    assert np.allclose(values, exact, rtol=rtol)


def test_compression_beyond_euler_is_unstable() -> None:
    values, exact = tensioned(-8.0)  # the critical force is 6.58 N
    assert values[0] < 0.0
    assert np.isclose(values[0], exact[0], rtol=0.05)


def test_damping_of_the_material() -> None:
    """With Kelvin-Voigt and mass damping, 2 ζ = τω + α/ω, and |λ| is unchanged."""
    system = cantilever(bar()[1])
    modes = vibration_modes(system, mbd.equilibrium(system), 5)
    omega = 2 * np.pi * modes.frequencies
    system = cantilever(bar(viscosity=2e-6, mass_damping=3.0)[1])
    damped = vibration_modes(system, mbd.equilibrium(system), 5)
    assert np.allclose(damped.frequencies, modes.frequencies, rtol=1e-10)
    assert np.allclose(damped.damping_ratios, 0.5 * (2e-6 * omega + 3.0 / omega), rtol=1e-8)
    assert np.abs(modes.damping_ratios).max() < 1e-12


@pytest.mark.parametrize("rate", [10.0, 1000.0])
def test_damper_at_an_interface(rate: float) -> None:
    """A damper couples the modes: the poles are those of a reduced body with many modes."""
    model, body = bar()
    damper = [
        lambda one, two: mbd.SpringDamper("damper", one, two, stiffness=0.0, damping=rate)
    ]  # fmt: skip
    system = cantilever(body, damper)
    poles = vibration_modes(system, mbd.equilibrium(system), 4).poles
    with_modes = cantilever(reduced(model, 40, ends(0.0, 0.3)), damper)
    expected = mbd.linearize(with_modes, mbd.equilibrium(with_modes)).poles[:4]
    assert np.allclose(poles, expected, rtol=2e-5)


def test_deformed_equilibrium_vibrates_as_in_a_run() -> None:
    """A soft cantilever hangs under its weight and swings with its first frequency."""
    mesh, tags = box((0, -0.01, -0.02), (0.8, 0.01, 0.02), (8, 1, 1))
    body = MeshBody("bar", ElasticModel(mesh, RUBBER, facet_tags=tags), ends(0.0, 0.8))
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    system = mbd.System([ground, body], [clamp], gravity=(0, -9.81, 0))
    state = mbd.equilibrium(system)
    modes = vibration_modes(system, state, 3)
    shape = modes.displacements["bar"].real[:, :, 0]
    assert body.frames_of(state.q)[1, 1] < -0.2
    q = state.q.copy()
    frames, nodal = body.frames_of(q), body.nodal_of(q)
    start = mbd.dynamics.consistent_state(system, q=q, v=state.v)
    nodal[1] = 1e-3 * shape
    v = 1e-3 * modes.increments[:, 0].real
    start = mbd.dynamics.consistent_state(system, q=q, v=v)
    period = 1 / modes.frequencies[0]
    run = mbd.simulate(system, t_end=period, dt=period / 200, start=start)
    path = body.motion(run).displacement
    swing = np.einsum("tni,ni->t", path - path[0], shape)
    exact = np.sin(2 * np.pi * run.time / period)
    assert frames.shape == (2, 7)
    assert np.abs(swing / np.abs(swing).max() - exact).max() < 0.01


def test_errors_name_cause_and_cure() -> None:
    _, body = bar()
    system = cantilever(body)
    state = mbd.equilibrium(system)
    with pytest.raises(InputError, match="spin"):
        mbd.analyses.poles_over_speed(lambda speed: system, [1.0], num_modes=1)
    rigid = mbd.System([mbd.RigidBody("block", 1.0, [1, 1, 1])])
    with pytest.raises(InputError) as error:
        vibration_modes(rigid, mbd.equilibrium(rigid))
    assert error.value.argument == "system"
    with pytest.raises(InputError) as error:
        vibration_modes(system, state, 500)
    assert error.value.argument == "num_modes"
    moving = mbd.System([bar(velocity=(1, 0, 0))[1]])
    with pytest.raises(InputError) as error:
        vibration_modes(moving, mbd.dynamics.consistent_state(moving))
    assert error.value.argument == "state"
    loaded = cantilever(bar(loads={"gas": Pressure(2, 1e5)})[1])
    with pytest.raises(SteadyError, match="balance"):
        vibration_modes(loaded, mbd.dynamics.consistent_state(loaded))
