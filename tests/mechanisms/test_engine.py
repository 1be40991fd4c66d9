"""Engines: banks, different rods, flywheel, stiffening, and the defaults of both mechanisms."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanisms import EngineDesign, inline_engine, rigid_rod, slider_crank
from dolfinx_mbd.multibody import FlexibleBody, RigidBody, consistent_state, simulate
from dolfinx_mbd.multibody.model.system import SystemData
from tests.models.rods import rod as flexible_rod

ROD = rigid_rod(0.137, 0.3, thickness=0.01)


def position(system: SystemData, name: str) -> np.ndarray:
    q = consistent_state(system).q
    return q[system.q_slices[system.body_index(name)]][:3]


def test_the_pistons_of_a_v_engine_fire_at_their_top_dead_centres() -> None:
    """At its firing angle each piston is r + l from the shaft along the axis of its bank."""
    banks = np.radians([-45.0, 45.0, -45.0, 45.0])
    design = EngineDesign(cylinders=4, bank_angles=banks, firing_order=(1, 4, 3, 2))
    for k, firing in enumerate(design.firing_angles):
        engine = inline_engine(ROD, design, speed=100.0, angle=float(firing))
        top = position(engine, f"piston {k + 1}")
        axis = np.array([np.cos(banks[k]), np.sin(banks[k])])
        np.testing.assert_allclose(top[:2], (0.040 + 0.137) * axis, atol=1e-9)


def test_a_bank_turns_the_motion() -> None:
    """A single cylinder in a bank moves as one along x, rotated about the shaft."""
    bank, runs = 0.7, []
    for angle in (0.0, bank):
        design = EngineDesign(cylinders=1, bank_angles=[angle])
        engine = inline_engine(ROD, design, speed=200.0)
        runs.append(simulate(engine, t_end=5e-3, dt=1e-4, tolerance=1e-11))
    c, s = np.cos(bank), np.sin(bank)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    for name in ("rod 1", "piston 1"):
        flat, turned = (run.body(name).position for run in runs)
        np.testing.assert_allclose(turned, flat @ turn.T, atol=1e-9)
    for name in ("gas 1", "main", "drive"):
        flat, turned = (run.element(name).force for run in runs)
        np.testing.assert_allclose(turned, flat @ turn.T, atol=1e-5 * np.abs(flat).max() + 1e-9)


def test_different_rods() -> None:
    """Both cylinders move equally: the rod of twice the mass has twice the energy."""
    heavy = rigid_rod(0.137, 0.6, thickness=0.01)
    design = EngineDesign(cylinders=2)
    run = simulate(inline_engine([ROD, heavy], design, speed=100.0), t_end=5e-3, dt=1e-4)
    light = run.body("rod 1").kinetic_energy
    np.testing.assert_allclose(run.body("rod 2").kinetic_energy, 2 * light, rtol=1e-9)
    with pytest.raises(InputError) as error:
        inline_engine([ROD, heavy, ROD], design, speed=100.0)
    assert error.value.argument == "rod"


def test_a_flywheel_stores_energy() -> None:
    energies = []
    for inertia in (0.0, 0.3):
        design = EngineDesign(cylinders=1, flywheel_inertia=inertia)
        run = simulate(inline_engine(ROD, design, speed=50.0), t_end=1e-3, dt=1e-3)
        energies.append(run.body("crank").kinetic_energy[0])
    assert energies[1] - energies[0] == pytest.approx(0.5 * 0.3 * 50.0**2, rel=1e-12)
    with pytest.raises(InputError):
        EngineDesign(flywheel_inertia=-1.0)


def test_stiffening_can_be_turned_off() -> None:
    body, options = flexible_rod(), {"speed": 10.0, "ends": ("left", "right")}
    for stiffening in (None, True, False):
        one = slider_crank(body, stiffening=stiffening, **options)  # type: ignore[arg-type]
        many = inline_engine(body, stiffening=stiffening, **options)  # type: ignore[arg-type]
        for rod in (one.body("rod"), many.body("rod 1"), many.body("rod 3")):
            assert isinstance(rod, FlexibleBody) and rod.stiffening is (stiffening is not False)


def test_both_mechanisms_have_the_same_defaults() -> None:
    one = slider_crank(ROD, speed=1.0)
    many = inline_engine(ROD, speed=1.0)
    for single, several in (("crank", "crank"), ("piston", "piston 1")):
        first, second = one.body(single), many.body(several)
        assert isinstance(first, RigidBody) and isinstance(second, RigidBody)
        assert first.mass == second.mass
    assert position(one, "piston")[0] == pytest.approx(position(many, "piston 1")[0], rel=1e-12)
