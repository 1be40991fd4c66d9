"""Rotations of the nodes of a bent body, with which the factor of its matrix turns.

W1 is a case of the list in `models.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.fem import ElasticModel
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.structures.mesh_bodies import MeshBody
from dolfinx_mbd.structures.mesh_bodies.mesh_solver import MeshSolver
from dolfinx_mbd.structures.mesh_bodies.nodal_rotations import NodalRotations
from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank


@pytest.mark.parametrize("kind", ["hexahedron", "tetrahedron"])
@pytest.mark.parametrize("degree", [1, 2])
def test_rotations_of_a_bent_bar(kind: str, degree: int) -> None:
    """A bar bent to an arc, then turned by any rotation: the nodes rotate with their sections."""
    mesh, tags = box((0, -0.05, -0.05), (1.0, 0.05, 0.05), (20, 2, 2), kind)
    model = ElasticModel(mesh, STEEL, facet_tags=tags, degree=degree)
    body = MeshBody("bar", model, ends(0.0, 1.0, ("left",)))
    X, radius, rotation = body.nodes, 1.5, exp_rotation(np.array([0.9, -1.7, 1.1]))
    angle = X[:, 0] / radius
    x = np.array([(radius - X[:, 1]) * np.sin(angle), radius - (radius - X[:, 1]) * np.cos(angle)])
    u = np.column_stack([*x, X[:, 2]]) @ rotation.T + [3.0, 1.0, -2.0] - X
    rotations = NodalRotations(body).at(u, rotation[None])
    sections = rotation @ np.array([exp_rotation(np.array([0, 0, a])) for a in angle])
    error = np.linalg.norm(rotations - sections[body.forces.nodes.owned], axis=(1, 2)) / np.sqrt(2)
    assert error.max() < 0.05 / radius  # rad, the rotation of a cell
    straight = (X @ rotation.T) - X
    rotations = NodalRotations(body).at(straight, rotation[None])
    assert np.abs(rotations - rotation).max() < 1e-12


def test_a_bent_rod_needs_few_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case W1 with steps of 0.1 ms: at most 6 solutions a step with one factor."""
    mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (36, 1, 1))
    model = ElasticModel(mesh, STEEL, facet_tags=tags)
    rod = MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0))
    calls, solution = [0], MeshSolver.solution

    def counted(self: MeshSolver, *arguments: Any) -> Any:
        calls[0] += 1
        return solution(self, *arguments)

    monkeypatch.setattr(MeshSolver, "solution", counted)
    simulator = mbd.Simulator(slider_crank(rod), dt=1e-4, t_end=6e-3)
    while not simulator.steps.done:
        simulator.advance()
    assert calls[0] <= 6 * 60
