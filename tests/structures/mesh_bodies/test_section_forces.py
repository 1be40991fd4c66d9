"""Section forces of mesh bodies: equilibrium of the part beyond the section, reduced bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.durability.recovery.sections import _smooth_step
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import RUBBER, STEEL, box, ends, slider_crank


def clamped(body: Any, force: Any) -> mbd.System:
    """Return a mechanism with a force at the right end of a body whose left end is clamped."""
    ground = mbd.Ground({"origin": mbd.Frame()})
    clamp = mbd.fixed("clamp", ground.frame("origin"), body.frame("left"))
    load = mbd.force("tip", body.frame("right"), force)
    return mbd.System([ground, body], [clamp], loads=[load])


@pytest.mark.parametrize("place", [0.3, 0.61])
@pytest.mark.parametrize("force", [(0.0, 12.0, 0.0), (20.0, 9.0, -12.0)])
def test_section_of_a_strongly_bent_bar(place: float, force: Any) -> None:
    """The section carries the dead force of the tip and its moment at the deformed place."""
    mesh, tags = box((0, -0.02, -0.02), (1, 0.02, 0.02), (20, 1, 1))
    body = MeshBody("bar", ElasticModel(mesh, RUBBER, facet_tags=tags), ends(0.0, 1.0))
    system = clamped(body, force)
    run = mbd.results.Solution(system, [mbd.equilibrium(system)])
    section = mbd.durability.section_forces(body, run, (place, 0, 0), (1, 0, 0))
    motion = body.motion(run)
    points = [(place, 0, 0), (1, 0, 0), (place + 0.005, 0, 0), (place - 0.005, 0, 0)]
    middle, tip, after, before = motion.position(points)[0]
    assert np.linalg.norm(tip - (1, 0, 0)) > 0.1
    size, arm = np.linalg.norm(force), np.linalg.norm(tip - middle)
    assert np.isclose(np.linalg.norm(section.force[0]), size, rtol=1e-6)
    tangent = (after - before) / np.linalg.norm(after - before)
    assert np.isclose(section.normal[0], force @ tangent, atol=2e-3 * size)
    moment = np.linalg.norm(np.cross(tip - middle, force))
    assert np.isclose(np.linalg.norm(section.moment[0]), moment, atol=3e-3 * size * arm)


def test_section_in_a_moving_mechanism() -> None:
    """The section carries the force of the joint beyond it and the inertia between them."""
    mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (12, 1, 1))
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    rod = MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0), viscosity=1e-5)
    # steps that resolve the axial vibration of the steel rod; larger ones are halved many times
    run = mbd.simulate(slider_crank(rod, speed=150.0), t_end=0.008, dt=2e-5)
    section = mbd.durability.section_forces(rod, run, (0.15, 0, 0), (1, 0, 0), width=0.05)
    step = _smooth_step((rod.nodes[:, 0] - 0.15) / 0.05)
    inertia = [step @ rod.forces.apply_mass(a) for a in rod.motion(run).acceleration]
    joint = run.joint("small_end")
    # the joint acts on the slider with `force`, which is in the axes of the first frame, the rod's
    frames = np.array(
        [rod.rotations_of(rod.frames_of(q)) for q in run.q[:, run.system.q_slices[2]]]
    )
    force = np.einsum("tij,tj->ti", frames[:, 1], joint.force)
    expected = np.linalg.norm(-force - np.array(inertia), axis=1)[1:]
    size = np.linalg.norm(section.force, axis=1)[1:]
    assert size.max() > 50
    assert np.allclose(size, expected, atol=1e-6 * size.max())


def test_section_of_a_rotating_free_bar() -> None:
    """The section holds the centrifugal force of the other half, ρAω²L²/8 without vibration."""
    mesh, tags = box((0, -0.02, -0.02), (1, 0.02, 0.02), (12, 1, 1))
    model = ElasticModel(mesh, RUBBER, facet_tags=tags)
    body = MeshBody("bar", model, omega=(0, 0, 2.0), viscosity=0.01)
    run = mbd.simulate(mbd.System([body]), t_end=0.1, dt=2e-3)
    section = mbd.durability.section_forces(body, run, (0.5, 0, 0), (1, 0, 0), width=0.2)
    step = _smooth_step((body.nodes[:, 0] - 0.5) / 0.2)
    inertia = [step @ body.forces.apply_mass(a) for a in body.motion(run).acceleration]
    size = np.linalg.norm(section.force, axis=1)[1:]
    assert np.allclose(size, np.linalg.norm(inertia, axis=1)[1:], atol=1e-6)
    exact = 1100 * 0.04**2 * 2.0**2 / 8
    assert np.isclose(section.normal[-1], exact, rtol=0.01)
    assert np.abs(section.moment[1:]).max() < 1e-3 * exact


def test_errors() -> None:
    mesh, tags = box((0, -0.02, -0.02), (1, 0.02, 0.02), (3, 1, 1))
    body = MeshBody("bar", ElasticModel(mesh, RUBBER, facet_tags=tags), ends(0.0, 1.0))
    system = clamped(body, (0, 0.1, 0))
    run = mbd.results.Solution(system, [mbd.equilibrium(system)])
    for arguments in ({"point": (2, 0, 0)}, {"thickness": 0.1}, {"width": -1.0}):
        options: Any = {"point": (0.5, 0, 0), "normal": (1, 0, 0)} | arguments
        with pytest.raises(InputError) as error:
            mbd.durability.section_forces(body, run, **options)
        assert error.value.argument == next(iter(arguments))
