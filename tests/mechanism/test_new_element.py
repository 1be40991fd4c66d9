"""A new force element is one class: results, tables, pictures, files and derivatives follow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement, PairMotion

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Magnet(LawElement):
    """Two poles that attract each other with k/(d² + a²), k = `strength` and a = `size`."""

    kind: ClassVar[str] = "magnet"
    name: str
    first: FrameRef
    second: FrameRef
    strength: float
    size: float = 0.05

    def placed(self, pair: object) -> Magnet:
        return self

    def value(self, motion: PairMotion) -> Array:
        d = motion.displacement
        length = np.linalg.norm(d)
        force = -self.strength / (length**2 + self.size**2) * d / length
        return np.concatenate([force, np.zeros(3)])

    def slopes(self, motion: PairMotion) -> Array:
        d = motion.displacement
        length = float(np.linalg.norm(d))
        n, weight = d / length, 1 / (length**2 + self.size**2)
        G = np.zeros((6, 12))
        G[:3, :3] = -self.strength * weight / length * (np.eye(3) - np.outer(n, n))
        G[:3, :3] += 2 * self.strength * weight**2 * length * np.outer(n, n)
        return G

    def stored_energy(self, motion: PairMotion) -> float:
        length = float(np.linalg.norm(motion.displacement))
        return self.strength / self.size * float(np.arctan(length / self.size))


def pendulum(strength: float = 0.5) -> mbd.System:
    """Return a pendulum with a magnet near its lowest position."""
    ground = mbd.Ground({"pin": mbd.Frame(), "pole": mbd.Frame((0.1, -1.2, 0))})
    frames = {"pin": mbd.Frame((0, 1, 0)), "tip": mbd.Frame()}
    bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, position=(0, -1, 0), frames=frames)
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    magnet = Magnet("magnet", ground.frame("pole"), bob.frame("tip"), strength)
    return mbd.System([ground, bob], [pin], loads=[magnet], gravity=(0, -9.81, 0))


def test_a_new_element_is_one_class(tmp_path: Path) -> None:
    system = pendulum()
    assert "magnet  magnet  ground: pole to bob: tip" in str(system)
    run = mbd.simulate(system, t_end=0.5, dt=1e-3, start={"pin": 0.5})
    history = run.element("magnet")
    total = run.energies().total
    assert np.ptp(total) < 1e-5 * np.ptp(history.energy)
    assert np.allclose(history.force, -history.first_force)
    assert np.allclose(np.diff(history.energy).sum(), -history.work[-1], rtol=1e-4)
    run.save(tmp_path / "run.npz")
    loaded = mbd.results.Solution.load(tmp_path / "run.npz", pendulum())
    assert np.array_equal(loaded.element("magnet").force, history.force)
    assert "magnet.force" in run.to_xarray()
    run.to_csv(tmp_path / "run.csv")
    mbd.plotting.player(run, tmp_path / "run.html")
    assert "magnet" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_a_new_element_is_linearized_and_differentiated() -> None:
    """The energy is stationary in equilibrium; its second derivative gives the frequency."""
    result = mbd.linearize(pendulum(), mbd.equilibrium(pendulum()))
    angle = float(mbd.equilibrium(pendulum()).angles[0])

    def energy(angle: float) -> float:
        """Return the potential energy of gravity and of the magnet, J."""
        tip = np.array([np.sin(angle), -np.cos(angle)])
        length = np.linalg.norm(tip - [0.1, -1.2])
        return 9.81 * tip[1] + 0.5 / 0.05 * float(np.arctan(length / 0.05))

    h = 1e-4
    slope = (energy(angle + h) - energy(angle - h)) / (2 * h)
    curvature = (energy(angle + h) - 2 * energy(angle) + energy(angle - h)) / h**2
    assert abs(slope) < 1e-6
    expected = np.sqrt(curvature / 1.01) / (2 * np.pi)  # 1.01 kg m²: inertia about the pin
    assert result.frequencies[0] == pytest.approx(expected, rel=1e-6)
    # A small tolerance, since it limits the accuracy of the differences of runs
    options = {"t_end": 0.3, "dt": 1e-3, "start": {"pin": 0.5}, "tolerance": 1e-10}
    runs = mbd.run_sensitivities(lambda p: pendulum(p["k"]), {"k": 0.5}, **options)
    last = lambda run: run.joint("pin").rotation[-1]  # noqa: E731

    def slope_of_runs(step: float) -> float:
        """Return a central difference of runs."""
        ends = [last(mbd.simulate(pendulum(0.5 + d), **options)) for d in (step, -step)]
        return (ends[0] - ends[1]) / (2 * step)

    # Richardson's extrapolation removes the error of second order
    extrapolated = (4 * slope_of_runs(2e-3) - slope_of_runs(4e-3)) / 3
    assert runs.derivative(last)["k"] == pytest.approx(extrapolated, rel=2e-5)
