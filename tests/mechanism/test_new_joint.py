"""A new joint is one class: runs, results, pictures, files and derivatives follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dolfinx_mbd as mbd

Array = np.ndarray


@dataclass(frozen=True)
class Ellipsoid(mbd.mechanism.JointRelation):
    """A point on (x/a)² + (y/b)² + (z/c)² = `size` in the axes of the first frame.

    The initial position of the point determines `size`.
    """

    kind: ClassVar[str] = "ellipsoid"
    rows: ClassVar[dict[int, str]] = {0: "distance from the surface"}
    point_ends: ClassVar[tuple[str, ...]] = ("second",)
    axes: tuple[float, float, float]
    size: float | None = None

    def values(self, d: Array, R: Array) -> Array:
        return np.array([0.5 * (np.sum((d / self.axes) ** 2) - (self.size or 1.0))])

    def slopes(self, d: Array, R: Array) -> Array:
        return np.append(d / np.square(self.axes), np.zeros(3))[None]

    def second(self, d: Array, R: Array) -> Array:
        return np.diag(np.append(1 / np.square(self.axes), np.zeros(3)))[None]

    def placed(self, label: str, pair: Any) -> dict[str, Any]:
        d = pair.Q1.T @ (pair.p2 - pair.p1)
        return {"relation": replace(self, size=float(np.sum((d / self.axes) ** 2)))}


def bowl(a: float = 0.8) -> mbd.System:
    """Return a ball whose centre moves on an ellipsoid."""
    ground = mbd.Ground({"centre": mbd.Frame()})
    ball = mbd.RigidBody("ball", 2.0, [0.01] * 3, position=(0, 0, -0.6), frames={"o": mbd.Frame()})
    joint = mbd.mechanism.Joint(
        "bowl",
        "ellipsoid",
        ground.frame("centre"),
        ball.frame("o"),
        relation=Ellipsoid((a, 0.5, 0.6)),
    )
    return mbd.System([ground, ball], [joint], gravity=(0, 0, -9.81))


def test_a_new_joint_is_one_class(tmp_path: Path) -> None:
    system = bowl()
    assert "ellipsoid" in str(system)
    start = mbd.dynamics.consistent_state(system, v={"ball.velocity": (1.0, 0.4, 0)})
    run = mbd.simulate(system, t_end=0.5, dt=1e-3, start=start)
    assert np.ptp(run.energies().total) < 1e-4
    history = run.joint("bowl")
    assert history.violation.max() < 1e-10
    assert np.allclose(history.moment, 0)
    run.save(tmp_path / "run.npz")
    loaded = mbd.results.Solution.load(tmp_path / "run.npz", bowl())
    assert np.array_equal(loaded.joint("bowl").force, history.force)
    with pytest.raises(mbd.errors.FileError):
        mbd.results.Solution.load(tmp_path / "run.npz", bowl(0.9))
    run.to_csv(tmp_path / "run.csv")
    mbd.plotting.player(run, tmp_path / "run.html")
    assert "bowl" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_a_new_joint_is_linearized_and_differentiated() -> None:
    """Small oscillations in a bowl have ω² = g/ρ with the radii of curvature a²/c and b²/c."""
    result = mbd.linearize(bowl(), mbd.equilibrium(bowl()))
    expected = np.sqrt(9.81 * 0.6 / np.array([0.8, 0.5]) ** 2) / (2 * np.pi)
    assert np.allclose(result.frequencies[-2:], expected, rtol=1e-8)
    options = {"t_end": 0.3, "dt": 1e-3}

    def build(p: dict[str, float]) -> mbd.System:
        push = mbd.force("push", ("ball", "o"), (3.0, 1.0, 0.0))
        system = bowl(p["a"])
        return mbd.System(system.bodies, system.joints, loads=[push], gravity=system.gravity)

    def last(run: mbd.results.Solution) -> float:
        return float(run.body("ball").position[-1, 0])

    runs = mbd.run_sensitivities(build, {"a": 0.8}, **options)
    ends = [last(mbd.simulate(build({"a": 0.8 + h}), **options)) for h in (1e-3, -1e-3)]
    assert runs.derivative(last)["a"] == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=1e-4)


def test_invalid_relations() -> None:
    ground = mbd.Ground({"o": mbd.Frame()})
    ends = ground.frame("o"), ("ball", "o")
    with pytest.raises(mbd.errors.InputError):
        mbd.mechanism.Joint("bowl", "sphere", *ends, relation=Ellipsoid((1, 1, 1)))
    with pytest.raises(mbd.errors.InputTypeError):
        mbd.mechanism.Joint("bowl", "ellipsoid", *ends, relation="ellipsoid")  # type: ignore[arg-type]
