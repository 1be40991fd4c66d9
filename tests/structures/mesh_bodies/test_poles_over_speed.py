"""Frequencies of rotating mesh bodies over the speed: a blade and a rotor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dolfinx import mesh as dmesh
from mpi4py import MPI
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import poles_over_speed
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec
from dolfinx_mbd.forms import Material
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from tests.structures.mesh_bodies.models import box, ends
from tests.structures.mesh_bodies.test_steady_spin import on_a_hub

METAL = Material(7e10, 0.0, 2700.0)
LENGTH, ROOT, HEIGHT, WIDTH = 1.0, 0.1, 0.02, 0.03


def blade(root: float = ROOT) -> tuple[ElasticModel, MeshBody]:
    """Return a slender blade along x; its height is along z."""
    lower, upper = (root, -WIDTH / 2, -HEIGHT / 2), (root + LENGTH, WIDTH / 2, HEIGHT / 2)
    mesh, tags = box(lower, upper, (12, 1, 1))
    model = ElasticModel(mesh, METAL, facet_tags=tags)
    return model, MeshBody("blade", model, ends(root, root + LENGTH, ("root",)))


def at_speed(part: Any, speed: float) -> mbd.System:
    """Return a blade on a hub with a motor; the hub is at x = 0.1 m."""
    return on_a_hub(part, (0, 0, 1), speed)


def ritz(speed: float, thickness: float, root: float, count: int = 9) -> Any:
    """Return the flapwise frequencies of a rotating Euler-Bernoulli beam by polynomials, rad/s."""
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = 0.5 * (x + 1) * LENGTH, 0.5 * LENGTH * w
    powers = np.arange(2, 2 + count)
    s = x[:, None] / LENGTH
    shape, slope = s**powers, powers * s ** (powers - 1) / LENGTH
    curvature = powers * (powers - 1) * s ** (powers - 2) / LENGTH**2
    tension = 0.5 * speed**2 * ((root + LENGTH) ** 2 - (root + x) ** 2)  # per ρA
    bending = METAL.young * thickness**2 / 12 / METAL.density
    K = bending * (curvature.T * w) @ curvature + (slope.T * (w * tension)) @ slope
    return np.sqrt(eigh(K, (shape.T * w) @ shape, eigvals_only=True)[:3])


def test_closed_form() -> None:
    """Published frequencies of a blade without a hub: Wright et al., J. Appl. Mech. 49 (1982)."""
    unit = np.sqrt(METAL.young * HEIGHT**2 / 12 / METAL.density) / LENGTH**2
    for eta, expected in ((0, 3.5160), (1, 3.6816), (4, 5.5850), (10, 11.2023)):
        assert np.isclose(ritz(eta * unit, HEIGHT, 0.0)[0] / unit, expected, atol=2e-4)


@pytest.mark.parametrize("fastest", [120.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_blade(fastest: float) -> None:
    """Flapping and lagging frequencies; spin softening lowers ω² of the lagging motion by Ω²."""
    _, body = blade()
    speeds = fastest * np.array([0.1, 0.4, 0.7, 1.0])
    result = poles_over_speed(
        lambda speed: at_speed(body, speed), speeds, num_modes=3, spin=lambda speed: (0, 0, speed)
    )
    for row, speed in zip(2 * np.pi * result.frequencies, speeds, strict=True):
        flap = ritz(speed, HEIGHT, ROOT)
        lag = np.sqrt(ritz(speed, WIDTH, ROOT) ** 2 - speed**2)
        expected = np.sort([flap[0], flap[1], lag[0]])
        assert np.allclose(np.sort(row), expected, rtol=5e-3)
    assert result.similarity.min() > 0.9
    assert np.abs(result.damping_ratios).max() < 1e-8


def test_blade_equals_the_reduced_body_with_stiffening() -> None:
    model, body = blade()
    reduced = mbd.reduce(model, interfaces=ends(ROOT, ROOT + LENGTH, ("root",)), num_modes=16).body
    parts = body, mbd.FlexibleBody("blade", reduced, damping_ratio=0.0)
    of_mesh, of_modes = (
        poles_over_speed(
            lambda speed, part=part: at_speed(part, speed),  # type: ignore[misc]
            [10.0, 40.0, 80.0],
            num_modes=3,
            spin=lambda speed: (0, 0, speed),
        )
        for part in parts
    )
    assert np.allclose(of_mesh.frequencies, of_modes.frequencies, rtol=2e-3)


def shaft() -> MeshBody:
    """Return a round shaft along z with averaged interfaces at its ends."""
    radius, length = 0.02, 0.8
    mesh = dmesh.create_box(
        MPI.COMM_WORLD, [np.array([-1.0, -1.0, 0.0]), np.array([1.0, 1.0, length])], (2, 2, 8),
        dmesh.CellType.hexahedron,
    )  # fmt: skip
    x = mesh.geometry.x
    a, b = x[:, 0].copy(), x[:, 1].copy()
    x[:, 0] = radius * a * np.sqrt(1 - b * b / 2)  # a square becomes a circle
    x[:, 1] = radius * b * np.sqrt(1 - a * a / 2)
    faces = {
        name: dmesh.locate_entities_boundary(mesh, 2, lambda y, z=z: np.isclose(y[2], z))
        for name, z in (("left", 0.0), ("right", length))
    }
    places = {"left": (0, 0, 0), "right": (0, 0, length)}
    specs = {
        name: InterfaceSpec(facets, point=places[name], axes=np.eye(3), kind="averaged")
        for name, facets in faces.items()
    }
    return MeshBody("shaft", mesh, specs, material=Material(2.1e11, 0.3, 7800.0))


def test_critical_speed_of_a_rotor() -> None:
    """At its critical speed, the forward whirl is at rest in the rotating axes.

    A simply supported Rayleigh shaft whirls with EI k⁴ = ρA λ² + ρI k² (λ² − 2 Ω λ), k = π/L.
    """
    body = shaft()
    ground = mbd.Ground({"left": mbd.Frame(), "right": mbd.Frame((0, 0, 0.8))})
    joints = [
        mbd.spherical("left", ground.frame("left"), body.frame("left")),
        mbd.point_on_line("right", ground.frame("right"), body.frame("right")),
    ]
    system = mbd.System([ground, body], joints)
    second = body._moments[1]
    area = body.typical_mass / 7800.0 / 0.8
    # I = r²A/4 from the inertia about the axis, ρ I_p L = 2 ρ I L
    inertia = second[2, 2] / 2 / 7800.0 / 0.8
    k = np.pi / 0.8
    critical = np.sqrt(2.1e11 * inertia * k**4 / (7800.0 * (area - inertia * k**2)))
    speeds = critical * np.array([0.3, 0.6, 0.9])
    result = poles_over_speed(
        lambda speed: system, speeds, num_modes=2, spin=lambda speed: (0, 0, speed)
    )
    for row, speed in zip(2 * np.pi * result.frequencies, speeds, strict=True):
        polynomial = [
            area + inertia * k**2,
            -2 * speed * inertia * k**2,
            -2.1e11 / 7800 * inertia * k**4,
        ]
        backward, forward = np.sort(np.roots(polynomial))
        expected = np.sort([forward - speed, speed - backward])
        assert np.allclose(np.sort(row), expected, atol=0.01 * critical)


def test_errors() -> None:
    body = blade()[1]
    with pytest.raises(InputError) as error:
        poles_over_speed(lambda speed: at_speed(body, speed), [1.0], num_modes=1)
    assert error.value.argument == "spin"

    def build(speed: float) -> mbd.System:
        mesh, tags = box((ROOT, 0, 0), (1.1, 0.02, 0.03), (3 if speed < 2 else 4, 1, 1))
        model = ElasticModel(mesh, METAL, facet_tags=tags)
        return at_speed(MeshBody("blade", model, ends(ROOT, 1.1, ("root",))), speed)

    with pytest.raises(InputError) as error:
        poles_over_speed(build, [1.0, 3.0], num_modes=1, spin=lambda speed: (0, 0, speed))
    assert error.value.argument == "build"
