"""Results of mesh bodies: Cauchy stress, envelopes, strength, files, comparison with modes.

W13 is a case of the list in `models.py`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from scipy.spatial.transform import Rotation

import dolfinx_mbd as mbd
from dolfinx_mbd.durability.recovery import MeshRecovery, compare_with_modes
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.forms import Material
from dolfinx_mbd.structures.mesh_bodies import MeshBody, MeshMotion
from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

RUBBER = Material(2e6, 0.3, 1200.0)


def still(body: MeshBody, gradients: Any, rates: Any = None) -> MeshMotion:
    """Return a motion with homogeneous deformations: a gradient F and its rate per instant."""
    identity = np.eye(3)
    u = np.array([body.nodes @ (F - identity).T for F in gradients])
    w = 0 * u if rates is None else np.array([body.nodes @ L.T for L in rates])
    return MeshMotion(body, np.arange(float(len(u))), u, w, 0 * u)


def six(sigma: Any) -> Any:
    """Return the components xx, yy, zz, xy, yz, zx of a tensor."""
    return sigma[[0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]]


@pytest.mark.parametrize("energy", ["neo-hookean", "saint-venant-kirchhoff"])
@pytest.mark.parametrize("kind", ["tetrahedron", "hexahedron"])
def test_stress_of_homogeneous_deformations(energy: str, kind: str) -> None:
    """Cauchy stress, von Mises stress and strain against closed forms, with any rotation."""
    mesh, tags = box((0, 0, 0), (1, 0.5, 0.4), (2, 1, 1), kind)
    body = MeshBody(
        "pad", ElasticModel(mesh, RUBBER, facet_tags=tags), energy=energy, viscosity=0.01
    )
    rng = np.random.default_rng(4)
    mu, lame = RUBBER.shear, RUBBER.lame
    gradients, rates = [], []
    for _ in range(3):
        R = Rotation.random(random_state=rng).as_matrix()
        gradients.append(R @ (np.eye(3) + 0.2 * rng.normal(size=(3, 3))))
        rates.append(rng.normal(size=(3, 3)))
    assert all(np.linalg.det(F) > 0.1 for F in gradients)
    fields = mbd.recover(body, still(body, gradients, rates), "stress")
    mises = mbd.recover(body, still(body, gradients, rates), "von Mises")
    strain = mbd.recover(body, still(body, gradients), "strain")
    for k, (F, W) in enumerate(zip(gradients, rates, strict=True)):
        J, E, rate = np.linalg.det(F), (F.T @ F - np.eye(3)) / 2, (F.T @ W + W.T @ F) / 2
        if energy == "neo-hookean":
            sigma = (mu * (F @ F.T - np.eye(3)) + lame * np.log(J) * np.eye(3)) / J
        else:
            sigma = F @ (2 * mu * E + lame * np.trace(E) * np.eye(3)) @ F.T / J
        sigma += F @ (0.01 * (2 * mu * rate + lame * np.trace(rate) * np.eye(3))) @ F.T / J
        deviator = sigma - np.trace(sigma) / 3 * np.eye(3)
        size = np.abs(sigma).max()
        assert np.allclose(fields.values(k), sigma, rtol=0, atol=1e-9 * size)
        expected = np.sqrt(1.5 * np.vdot(deviator, deviator))
        assert np.allclose(mises[k].x.array, expected, rtol=1e-9)
        assert np.allclose(strain.values(k), E, rtol=0, atol=1e-12)


def test_rotations_are_without_stress_in_the_results() -> None:
    mesh, tags = box((0, 0, 0), (1, 0.5, 0.4), (2, 1, 1))
    body = MeshBody("block", ElasticModel(mesh, STEEL, facet_tags=tags), ends(0.0, 1.0))
    turns = [Rotation.from_rotvec(v).as_matrix() for v in ([0, 0, 3.0], [1, 2, 0.5])]
    largest = mbd.envelope(body, still(body, turns)).value
    assert np.abs(largest.x.array).max() < 1e-12 * STEEL.young


def test_envelope_places_and_strength() -> None:
    """Envelope, most stressed place and safety factors of stretches with known stresses."""
    mesh, tags = box((0, 0, 0), (1, 0.5, 0.4), (2, 1, 1), "tetrahedron")
    body = MeshBody("bar", ElasticModel(mesh, STEEL, facet_tags=tags), ends(0.0, 1.0))
    strains = np.array([1e-4, 4e-4, -2e-4])
    gradients = [np.diag([1 + e, 1 - 0.3 * e, 1 - 0.3 * e]) for e in strains]
    motion = still(body, gradients)
    greatest = mbd.envelope(body, motion, "stress xx")
    least = mbd.envelope(body, motion, "stress xx", extreme="least")
    assert np.allclose(greatest.values()[0], 2e11 * 4e-4, rtol=2e-3)
    assert np.allclose(least.values()[0], -2e11 * 2e-4, rtol=2e-3)
    assert np.allclose(greatest.values()[1], 1.0)
    assert np.allclose(least.values()[1], 2.0)
    places = mbd.most_stressed(body, motion, 2)
    assert len(places) == 2
    assert places[0].time == 1.0
    assert places[0].interface in ("left", "right")
    result = mbd.strength(body, motion, limit=320e6)
    assert np.isclose(result.places[0].factor, 4.0, rtol=2e-3)
    brittle = mbd.strength(body, motion, criterion="least principal", limit=320e6)
    assert np.isclose(brittle.places[0].factor, 8.0, rtol=2e-3)
    assert brittle.places[0].time == 2.0
    custom = mbd.strength(body, motion, limit=320e6, criterion=lambda s: abs(s[0, 0]))
    assert np.isclose(custom.places[0].factor, 4.0, rtol=2e-3)
    volume = mbd.recover(body, motion, lambda u: ufl.det(ufl.Identity(3) + ufl.grad(u)))
    assert np.allclose(volume.values(1), np.linalg.det(gradients[1]), rtol=1e-12)


@cache
def crank() -> tuple[MeshBody, Any, Any]:
    """Return a rod, its model and a quarter revolution of a slider-crank at high speed."""
    mesh, tags = box((0, -0.006, -0.006), (0.3, 0.006, 0.006), (8, 1, 1))
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    rod = MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0))
    return rod, model, mbd.simulate(slider_crank(rod, speed=100.0), t_end=0.008, dt=2e-4)


def test_modes_approach_the_mesh_body() -> None:
    """Case W13: missing displacements and errors of the stress decrease with more modes."""
    rod, model, run = crank()
    results = []
    for count in (0, 2, 10):
        reduction = mbd.reduce(model, interfaces=ends(0.0, 0.3), num_modes=count)
        results.append(compare_with_modes(rod, run, reduction))
    missing = [r.fraction for r in results]
    assert missing[0] > 3 * missing[1] > 3 * missing[2]
    assert missing[2] < 2e-3
    errors = [abs(r.modal_stress / r.stress - 1) for r in results]
    assert errors[2] < errors[0]
    assert errors[2] < 0.03
    assert np.all(np.diff(results[0].shares) <= 0)
    assert results[0].shares.sum() <= 1 + 1e-12
    # the first fixed-interface modes bend the rod: so does the missing shape without them
    shape = results[0].shapes[0]
    assert np.abs(shape[:, 1]).max() == 1.0
    assert "modes miss" in str(results[0])


def test_fit_recovers_coordinates_of_modes() -> None:
    """A rotated body, deformed by the modes, is represented without a missing displacement."""
    rod, model, _ = crank()
    reduction = mbd.reduce(model, interfaces=ends(0.0, 0.3), num_modes=3)
    rng = np.random.default_rng(7)
    eta = 1e-4 * rng.normal(size=(2, reduction.body.num_modes))
    nodes = rod.forces.nodes
    modes = np.array([nodes.gathered(m.copy()) for m in reduction.modes.T])
    R = Rotation.random(random_state=rng).as_matrix()
    x = (rod.nodes + np.tensordot(eta, modes, axes=1)) @ R.T + [1.0, 2.0, 3.0]
    motion = MeshMotion(rod, np.arange(2.0), x - rod.nodes, 0 * x, 0 * x)
    result = compare_with_modes(rod, motion, reduction)
    assert np.allclose(result.eta, eta, rtol=0, atol=1e-10)
    assert result.missing.max() < 1e-12
    assert result.deformation.min() > 1e-7


def test_files_for_paraview(tmp_path: Path) -> None:
    rod, _, run = crank()
    tmp_path = rod.forces.comm.bcast(tmp_path)
    recovery = MeshRecovery(rod, where="cells")
    recovery.write(tmp_path / "rod.pvd", run, ["von Mises", "principal"], stride=10)
    mbd.envelope(recovery, run).write(tmp_path / "most.pvd")
    assert (tmp_path / "rod.pvd").exists()
    assert (tmp_path / "most.pvd").exists()


def test_errors() -> None:
    rod, model, run = crank()
    reduction = mbd.reduce(model, interfaces=ends(0.0, 0.3), num_modes=0)
    mesh, _ = box((0, 0, 0), (1, 1, 1), (1, 1, 1))
    other = MeshBody("other", ElasticModel(mesh, STEEL))
    with pytest.raises(InputError) as raised:
        mbd.recover(rod, still(other, [np.eye(3)]))
    assert raised.value.argument == "history"
    with pytest.raises(InputError):
        mbd.envelope(rod, run, "principal")
    with pytest.raises(InputError):
        mbd.recover(rod, run, "strain energy density")
    with pytest.raises(InputError):
        compare_with_modes(other, still(other, [np.eye(3)]), reduction)
