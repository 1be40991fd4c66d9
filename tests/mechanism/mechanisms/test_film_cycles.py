"""Whole cycles of engines with oil films in main bearings and big ends: energy and momentum.

    ./with-fenicsx python3 -m pytest -m slow -s tests/mechanism/mechanisms/test_film_cycles.py

prints the errors of both balances for 720 and 1440 steps per cycle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.bearings import FiniteBearing, OilFilm
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, engine, rigid_rod
from tests.mechanism.mechanisms.test_engine_block import CORNERS, mounts, on_ground, rigid_block

# The inertia is that of two masses at the ends: 0.21 = 0.3 · 0.7
ROD = rigid_rod(length=0.137, mass=0.3, centre=0.3 * 0.137, inertia=0.3 * 0.21 * 0.137**2)
DESIGNS = {
    "three": EngineDesign(spacing=0.08),
    "vee": EngineDesign(cylinders=2, spacing=0.02, bank_angles=np.radians([-45.0, 45.0])),
}
SPEED = 300.0  # rad/s
CYCLE = 4 * np.pi / SPEED  # s
FILM = OilFilm(FiniteBearing, radius=0.025, length=0.02, clearance=3e-5, oil=0.012, shape=(24, 6))
MAINS = {f"main_{k + 1}": ((0.0, 0.0, z), np.eye(3)) for k, z in enumerate((-0.15, 0.15))}


def cycle_errors(design: EngineDesign, steps: int) -> np.ndarray:
    """Return errors of energy and momentum over a cycle, and two works of the films.

    The errors are relative to the work of the gas and to the range of the momentum. The works are
    the friction of the films, and the difference of the work of their forces from it, relative to
    the work of the gas.
    """
    system = engine(
        ROD, design, block=rigid_block(design, **MAINS), mounts=mounts(2e6, 2e3), speed=SPEED,
        angle=np.radians(100.0), bearings={"main": FILM, "big_end": FILM},
    )  # fmt: skip
    start = steps // 4  # without the first quarter: the start is sudden
    dt = CYCLE / steps
    run = mbd.simulate(system, t_end=CYCLE + start * dt, dt=dt, elastic_start="undeformed")

    def work(power: Any) -> float:
        return float(np.trapezoid(np.asarray(power)[start:], dx=dt))

    gas = sum(work(run.element(f"gas {k + 1}").power) for k in range(design.cylinders))
    names = [load.name for load in system.loads if load.has_film]
    assert len(names) == design.cylinders + 2
    friction = sum(work(run.element(name).friction_power) for name in names)
    films = sum(work(run.element(name).power) for name in names)
    others = work(run.joint("drive").power)
    others += sum(work(run.element(f"mount {name}").power) for name in CORNERS)
    kinetic = np.asarray(run.energies().kinetic)
    energy = (kinetic[-1] - kinetic[start] - gas - others - films) / gas
    force = on_ground(system, run)[0][start:]
    pushed = -dt * np.cumsum(0.5 * (force[1:] + force[:-1]), axis=0)
    momentum = np.asarray(run.momenta())[start:, :3]
    rise = momentum[1:] - momentum[0]
    shake = np.abs(pushed - rise).max() / np.ptp(rise, axis=0).max()
    return np.array([abs(energy), shake, friction / gas, abs(friction + films) / gas])


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_balances_of_a_cycle(name: str) -> None:
    """Work of gas = change of energy + film friction + work on load and mounts.

    Both errors are of second order in the step. The quadrature of the friction has an error of
    second order in the grid, which the work of the forces does not have.
    """
    coarse, fine = (cycle_errors(DESIGNS[name], steps) for steps in (720, 1440))
    for steps, row in ((720, coarse), (1440, fine)):
        text = f"energy {row[0]:.1e}, momentum {row[1]:.1e}, friction {row[2]:.4f} ± {row[3]:.0e}"
        print(f"{name}, {steps} steps: {text}")
    assert (fine[:2] < 1e-3).all() and (fine[:2] < 0.35 * coarse[:2]).all()
    assert fine[2] > 0.005 and fine[3] < 0.02 * fine[2]
