"""First-order standard deviations compared with Monte Carlo studies of bodies and simulations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from tests.models.bodies import box

SIZE, CELLS = (0.15, 0.02, 0.012), (4, 1, 1)
VALUES = {"E": 210e9, "rho": 7850.0, "length": 0.15}
SIGMA = {"E": 0.02 * 210e9, "rho": 0.01 * 7850.0, "length": 5e-4}
COVARIANCE = np.outer(list(SIGMA.values()), list(SIGMA.values())) * np.array(
    [[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.0]]  # stiffer material is denser
)


def reduced(p: Mapping[str, float]) -> mbd.reduction.Reduction:
    """Return the reduction of a bar with a length and a material."""
    mesh = box(MPI.COMM_WORLD, (p["length"], *SIZE[1:]), CELLS)
    material = mbd.Material(p["E"], 0.3, p["rho"])
    options = mbd.ReductionOptions(skin=False)
    ends = ["left", "right"]
    return mbd.reduce(
        mesh, material, interfaces=ends, num_modes=3, stiffening=False, options=options
    )


@cache
def derivatives() -> mbd.design.BodySensitivities:
    """Return the derivatives of the bar with respect to E, density and length."""
    base = reduced(VALUES)
    x = ufl.SpatialCoordinate(base.model.plain_mesh)
    axial = ufl.as_vector([x[0] / VALUES["length"], 0 * x[1], 0 * x[2]])
    parameters = [mbd.Parameter("E", "young"), mbd.Parameter("rho", "density")]
    return mbd.sensitivities(base, [*parameters, mbd.Parameter("length", "shape", velocity=axial)])


def samples(count: int, seed: int) -> np.ndarray:
    """Return normally distributed values of the parameters, shape (count, 3)."""
    random = np.random.default_rng(seed)
    return random.multivariate_normal(list(VALUES.values()), COVARIANCE, count)


def assert_deviations(
    first: np.ndarray, sample: np.ndarray, linear: np.ndarray, higher: float = 0.02
) -> None:
    """Check first-order deviations (m,) against a sample (count, m) and its linear predictions.

    The deviation of a sample of normal numbers has a relative standard error of 1/√(2 (count − 1)).
    Linear predictions of the same sample differ only by terms of higher order, at most by the
    fraction `higher` of the deviation.
    """
    deviation = np.std(sample, axis=0, ddof=1)
    error = 1 / np.sqrt(2 * (len(sample) - 1))
    assert np.abs(deviation / first - 1).max() < 4 * error + higher
    assert np.abs(deviation / np.std(linear, axis=0, ddof=1) - 1).max() < higher
    mean = np.mean(sample - linear, axis=0)
    assert np.abs(mean / first).max() < higher


@pytest.mark.parametrize("count, new", [(1000, False), (30, True)])
def test_frequencies(count: int, new: bool) -> None:
    """The deviations agree for bodies of first order and for new reductions."""
    table = derivatives()
    steps = {name: table[name].frequencies[:3] for name in VALUES}
    first = mbd.design.first_order_deviation(steps, COVARIANCE)
    points = samples(count, 7 if new else 5)
    J = np.column_stack(list(steps.values()))
    linear = table.body.frequencies[:3] + (points - list(VALUES.values())) @ J.T
    sample = []
    for point in points.tolist():
        p = dict(zip(VALUES, point, strict=True))
        if new:
            body = reduced(p).body
        else:
            body = table.at({**p, "length": p["length"] - VALUES["length"]})
        sample.append(body.frequencies[:3])
    assert_deviations(first, np.array(sample), linear)


def pendulum(p: Mapping[str, float]) -> mbd.System:
    """Return a pendulum with a coil spring."""
    frames = {"pin": mbd.Frame((0, p["length"], 0))}
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, position=(0, -p["length"], 0), frames=frames)
    ground = mbd.Ground({"pin": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    coil = mbd.JointSpring("coil", "pin", stiffness=p["k"], free=0.5)
    return mbd.System([ground, bob], [pin], loads=[coil], gravity=(0, -9.81, 0))


def test_simulation() -> None:
    """The deviations of final angle and largest force agree with new simulations."""
    values, sigma = {"length": 0.5, "k": 3.0}, {"length": 2e-3, "k": 0.03}

    def output(run: mbd.results.Solution) -> np.ndarray:
        joint = run.joint("pin")
        return np.array([joint.rotation[-1], np.abs(joint.force).max()])

    result = mbd.run_sensitivities(pendulum, values, t_end=0.8, dt=8e-3)
    steps = result.derivative(output)
    first = mbd.design.first_order_deviation(steps, sigma)
    random = np.random.default_rng(2)
    changes = random.standard_normal((80, 2)) * list(sigma.values())
    linear = output(result.run) + changes @ np.array([steps[name] for name in values])
    points = changes + list(values.values())
    sample = []
    for point in points.tolist():
        system = pendulum(dict(zip(values, point, strict=True)))
        sample.append(output(mbd.simulate(system, t_end=0.8, dt=8e-3)))
    assert_deviations(first, np.array(sample), linear)
