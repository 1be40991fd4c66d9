"""Forces at the interfaces of a simulated body balance its motion and are those of its joints."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from dolfinx_mbd.results import Solution
from dolfinx_mbd.results.histories import rotation_matrices


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a rigid slider-crank with gravity."""
    rod = rigid_rod(length=0.4, mass=0.3, centre=0.15, thickness=0.02)
    parts = {"crank_radius": 0.1, "crank_mass": 0.5, "piston_mass": 0.2}
    gravity = (0.0, -9.81, 0.0)
    return simulate(slider_crank(rod, speed=60.0, gravity=gravity, **parts), t_end=0.05, dt=1e-4)


def test_newton_and_euler(run: Solution) -> None:
    """m a_c = ΣF + m g and J α + ω×Jω = ΣM about the centre of mass, in body components."""
    body = next(b for b in run.system.bodies if b.name == "rod")
    history, wrenches = run.body("rod"), run.body("rod").wrenches
    assert set(wrenches) == {"big_end", "small_end"}
    reduced = body.reduced  # type: ignore[attr-defined]
    A = rotation_matrices(history.rotation)
    c, m, J = reduced.centre, reduced.total_mass, reduced.central_inertia
    w, alpha = history.omega, history.alpha
    a = np.einsum("tji,tj->ti", A, history.acceleration - run.system.gravity)
    a += np.cross(alpha, c) + np.cross(w, np.cross(w, c))
    force = sum(wrench[:, :3] for wrench in wrenches.values())
    moment = np.zeros_like(a)
    for name, wrench in wrenches.items():
        moment += wrench[:, 3:] + np.cross(reduced.interface(name).point - c, wrench[:, :3])
    size = np.abs(wrenches["big_end"][:, :3]).max()
    assert np.abs(force - m * a).max() < 1e-7 * size
    # the length of the rod is 0.4 m
    assert np.abs(moment - alpha @ J - np.cross(w, w @ J)).max() < 1e-7 * size * 0.4


def test_the_piston_pin_is_a_joint_force(run: Solution) -> None:
    """The force at the small end is that of the joint, in the axes of the body."""
    force = np.linalg.norm(run.joint("piston pin").force, axis=1)
    magnitude = np.linalg.norm(run.body("rod").wrenches["small_end"][:, :3], axis=1)
    assert magnitude == pytest.approx(force, rel=1e-9)


def test_unknown_body(run: Solution) -> None:
    with pytest.raises(ValueError, match="nothing"):
        run.body("nothing").wrenches
