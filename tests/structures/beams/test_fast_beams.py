"""Slender and fast beams: quasi-static starts and equilibria converge."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from dolfinx.mesh import create_interval
from mpi4py import MPI

from dolfinx_mbd import BeamModel, Material, ReducedBody, ReductionOptions, reduce_beam
from dolfinx_mbd.analyses import equilibrium
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import ModelRangeWarning
from dolfinx_mbd.forms import Section
from dolfinx_mbd.mechanism import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    State,
    constant_speed,
    fixed,
    revolute,
)
from dolfinx_mbd.mechanism.mechanisms import slider_crank

YOUNG, DENSITY, LENGTH, SIDE = 2e11, 7870.0, 0.3, 0.008


def reduced(section: Section, interfaces: dict[str, float], num_modes: int) -> ReducedBody:
    """Return the reduction of a straight beam with interfaces."""
    mesh = create_interval(MPI.COMM_WORLD, 40, (0.0, LENGTH))
    model = BeamModel(mesh, section, Material(young=YOUNG, poisson=0.3, density=DENSITY))
    return reduce_beam(
        model,
        interfaces=interfaces,
        num_modes=num_modes,
        points={"tip": LENGTH},
        options=ReductionOptions(skin=False),
    ).body


def elastic_residual(system: System, state: State) -> float:
    """Return the elastic residual relative to the forces on the body."""
    eqs = Assembler(system)
    eqs.q[:], eqs.v[:], eqs.a[:], eqs.lam[:] = state.q, state.v, state.a, state.lam
    eqs.residual(state.time)
    return float(np.abs(eqs.rows[system.elastic]).max() / eqs.scale[system.elastic].max())


def test_a_rod_of_6_mm_in_a_slider_crank_up_to_600_rad_per_second() -> None:
    rod = reduced(Section.circle(0.003), {"big_end": 0.0, "small_end": LENGTH}, 10)
    masses = {"crank_radius": 0.15, "crank_mass": 1.0, "piston_mass": 0.0334}
    pin = 0.15 * np.cos(0.3) + np.sqrt(LENGTH**2 - (0.15 * np.sin(0.3)) ** 2)
    for speed in (150.0, 300.0, 450.0, 600.0):
        system = slider_crank(rod, speed=speed, angle=0.3, damping_ratio=0.0, **masses)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ModelRangeWarning)
            state = consistent_state(system)
        assert elastic_residual(system, state) < 1e-9
        assert np.all(state.a[system.elastic] == 0.0)
        assert state.q[system.q_slices[3]][0] == pytest.approx(pin, rel=5e-3)
        second = consistent_state(system, q=state.q, v=state.v)
        assert np.abs(second.q - state.q).max() < 1e-6 * LENGTH


@pytest.mark.parametrize("num_modes", [2, 8, 24, 40])
@pytest.mark.parametrize("radius", [0.0, LENGTH])
def test_a_blade_on_a_hub(num_modes: int, radius: float) -> None:
    """The tip moves out by u = w(L) − r − L with w″ + β²w = 0, w(0) = r, w′(L) = 1, β² = ρΩ²/E."""
    blade = reduced(Section.rectangle(SIDE, SIDE), {"root": 0.0}, num_modes)
    unit = np.sqrt(YOUNG * SIDE**2 / 12 / DENSITY / LENGTH**4)
    for gamma in (0.5, 2.0, 4.0, 8.0, 12.0):
        speed = gamma * unit
        ground = Ground({"axle": Frame()})
        hub = RigidBody(
            "hub", 1.0, [0.01] * 3, frames={"axle": Frame(), "rim": Frame((radius, 0, 0))}
        )
        body = FlexibleBody("blade", blade, position=(radius, 0, 0))
        joints = [
            revolute("axle", ground.frame("axle"), hub.frame("axle")),
            fixed("root", hub.frame("rim"), body.frame("root")),
        ]
        drivers = [Driver("drive", "axle", constant_speed(speed))]
        system = System([ground, hub, body], joints, drivers=drivers)
        states = equilibrium(system, spin=(0, 0, speed)), consistent_state(system)
        assert np.abs(states[0].q - states[1].q).max() < 1e-9 * LENGTH
        for state in states:
            assert elastic_residual(system, state) < 1e-8
        if num_modes < 24:
            continue  # (without axial modes the blade does not stretch)
        beta = speed * np.sqrt(DENSITY / YOUNG)
        c, s = np.cos(beta * LENGTH), np.sin(beta * LENGTH)
        stretch = radius * c + (1 + radius * beta * s) * s / (beta * c) - radius - LENGTH
        q = states[0].q[system.q_slices[2]]
        (tip,) = blade.points
        place = q[0] + tip.position[0] + tip.modes[:, 0] @ q[7:]
        assert place - radius - LENGTH == pytest.approx(stretch, rel=0.02)
