"""Measured modes: pairs by MAC, predicted values with derivatives, parameters from both."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning, InputError
from tests.models.bodies import box

SIDE, LENGTH = 0.02, 0.15
PLACES = {"start": 0.0, "quarter": 0.25, "middle": 0.5, "end": 1.0}
SENSORS = [(name, axis) for name in PLACES for axis in "yz"]


def bar(comm: MPI.Intracomm, young: float, height: float) -> mbd.design.BodySensitivities:
    """Return derivatives by Young's modulus and height of a bar of the width `SIDE`.

    The points of the sensors are on its axis.
    """
    mesh = box(comm, (LENGTH, height, SIDE), (6, 1, 1))
    points = {name: (s * LENGTH, height / 2, SIDE / 2) for name, s in PLACES.items()}
    base = mbd.reduce(
        mbd.ElasticModel(mesh, mbd.Material(young, 0.3, 7850.0)),
        interfaces=["left", "right"],
        num_modes=6,
        points=points,
        stiffening=False,
        options=mbd.ReductionOptions(skin=False),
    )
    x = ufl.SpatialCoordinate(mesh.mesh)
    thicker = ufl.as_vector([0 * x[0], x[1] / height, 0 * x[0]])
    parameters = [mbd.Parameter("E", "young"), mbd.Parameter("h", "shape", velocity=thicker)]
    return mbd.sensitivities(base, parameters)


def at_sensors(table: mbd.design.BodySensitivities) -> np.ndarray:
    """Return the shapes of all modes at the sensors."""
    return np.hstack([table.body.point(name).modes[:, 1:] for name in PLACES])


def measured(
    table: mbd.design.BodySensitivities, modes: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies and shapes of some bending modes with the scales 1, -2, 4, ...

    `modes` are numbers from 0 that do not count torsion, which moves no sensor.
    """
    shapes = at_sensors(table)
    sizes = np.linalg.norm(shapes, axis=1)
    bending = np.flatnonzero(sizes > 1e-3 * sizes.max())[modes]
    scales = np.array([(-2.0) ** k for k in range(len(modes))])
    return table.body.frequencies[bending], scales[:, None] * shapes[bending]


def test_mac() -> None:
    complex_shapes = np.array([[1.0, 1j], [1j, -1.0], [1.0, -1j]])
    assert mbd.design.mac(complex_shapes[:1], complex_shapes) == pytest.approx(
        np.array([[1.0, 1.0, 0.0]]), abs=1e-15
    )
    assert mbd.design.mac([[1.0, 1j]], [[1j, -1.0]]) == pytest.approx(1.0, abs=1e-15)
    assert mbd.design.mac([[0.0, 0.0]], [[1.0, 0.0]]).item() == 0.0
    with pytest.raises(InputError, match="cannot be compared"):
        mbd.design.mac([[1.0]], [[1.0, 0.0]])


def test_permuted_and_missing_modes(comm: MPI.Intracomm) -> None:
    """Modes are found in any order; a mode without measurement does not shift the others."""
    table = bar(comm, 200e9, 0.8 * SIDE)
    order = [3, 0, 2]  # of the bending modes; the second one is missing
    f, shapes = measured(table, order)
    random = np.random.default_rng(4)
    noisy = shapes + 0.05 * np.abs(shapes).max() * random.standard_normal(shapes.shape)
    test = mbd.design.ModalTest(f, noisy, SENSORS)
    pairs = test.pair(table.body.frequencies, at_sensors(table))
    assert pairs.modes.tolist() == [4, 0, 2]  # of all modes; number 3 is torsion
    assert pairs.mac.min() > 0.8
    predicted, derivatives = test.predict(table)
    assert predicted == pytest.approx(f, rel=1e-12)
    assert derivatives["E"] == pytest.approx(table["E"].frequencies[pairs.modes], rel=1e-9)


def test_crossing_modes_are_identified(comm: MPI.Intracomm) -> None:
    """The search starts on the other side of the crossing, where the order is the opposite one."""
    true = {"E": 205e9, "h": 1.1 * SIDE}
    f, shapes = measured(bar(comm, true["E"], true["h"]), [0, 1, 2, 3])
    test = mbd.design.ModalTest(f, shapes, SENSORS)
    start = {"E": 190e9, "h": 0.9 * SIDE}
    # components along y and z alternate
    along_y = np.abs(shapes[0, ::2]).max() > np.abs(shapes[0, 1::2]).max()
    first_shape = measured(bar(comm, start["E"], start["h"]), [0])[1][0]
    assert along_y != (np.abs(first_shape[::2]).max() > np.abs(first_shape[1::2]).max())

    def model(p: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return test.predict(bar(comm, p["E"], p["h"]))

    bounds = {"h": (0.5 * SIDE, 2 * SIDE), "E": (1e11, 4e11)}
    result = mbd.design.identify(model, test.measured, start=start, bounds=bounds)
    assert result.values["E"] == pytest.approx(true["E"], rel=1e-8)
    assert result.values["h"] == pytest.approx(true["h"], rel=1e-8)


def test_derivatives_at_a_double_mode(comm: MPI.Intracomm) -> None:
    """Measured bending along y and z: the pairs are smooth where both frequencies are equal."""
    f, shapes = measured(bar(comm, 200e9, 1.2 * SIDE), [0, 1, 2, 3])
    test = mbd.design.ModalTest(f, shapes, SENSORS)
    table = bar(comm, 200e9, SIDE)
    assert np.ptp(table.body.frequencies[:2]) < 1e-6 * f[0]
    derivative = test.predict(table)[1]["h"]
    step = 2e-3 * SIDE
    a, b, c, d = (test.predict(bar(comm, 200e9, SIDE + s * step))[0] for s in (-2, -1, 1, 2))
    difference = (8 * (c - b) - (d - a)) / (12 * step)
    assert derivative == pytest.approx(difference, rel=1e-6, abs=1e-6 * np.abs(difference).max())
    combination = [0.8 * shapes[0] / 1.0 + 0.6 * shapes[1] / -2.0]  # without the scales 1 and -2
    mixed = mbd.design.ModalTest(f[:1], combination, SENSORS).predict(table)[1]["E"]
    assert mixed == pytest.approx(table["E"].frequencies[:1], rel=1e-9)


def test_derivatives_of_shapes(comm: MPI.Intracomm) -> None:
    """Shapes of unit length at the sensors agree with differences of new reductions."""
    f, shapes = measured(bar(comm, 200e9, 1.3 * SIDE), [2, 0, 1])
    sigma = 0.01 * np.ones(shapes.shape)
    test = mbd.design.ModalTest(f, shapes, SENSORS, 0.01 * f, sigma)
    height, step = 1.25 * SIDE, 2e-3 * SIDE
    values, derivatives = test.predict(bar(comm, 200e9, height))
    assert values.shape == test.measured.shape == test.deviations.shape == (3 + shapes.size,)
    changes = [test.predict(bar(comm, 200e9, height + s * step))[0] for s in (-2, -1, 1, 2)]
    a, b, c, d = (change[3:] for change in changes)
    difference = (8 * (c - b) - (d - a)) / (12 * step)
    assert np.abs(difference).max() > 1e-3 / SIDE  # shear makes the shapes depend on the height
    assert derivatives["h"][3:] == pytest.approx(difference, abs=1e-6 * np.abs(difference).max())
    assert np.abs(derivatives["E"][3:]).max() * 200e9 < 1e-8


# ---- Masses on springs: matrices of a structure, with derivatives

COUNT = 4
CHAIN = 2 * np.eye(COUNT) - np.eye(COUNT, k=1) - np.eye(COUNT, k=-1)
TRUE = {"kx": 1.02e5, "ky": 1.0e5, "m": 1.5}
MOTIONS = [(f"mass {k}", axis) for axis in "xy" for k in range(COUNT)]


def chain(p: dict[str, float]) -> mbd.design.ModalMatrices:
    """Return unit masses in a row that move along x and y; the first one is heavier by m.

    Each mass has sensors along x and y, which do not depend on the parameters kx, ky and m.
    """
    added, zero = np.zeros((2 * COUNT,) * 2), np.zeros((2 * COUNT,) * 2)
    added[0, 0] = added[COUNT, COUNT] = 1.0
    x, y = (np.kron(np.diag(part), CHAIN) for part in ([1.0, 0.0], [0.0, 1.0]))
    rows, fixed = np.eye(2 * COUNT), zero
    derivatives = {"kx": (x, zero, fixed), "ky": (y, zero, fixed), "m": (zero, added, fixed)}
    mass = np.eye(2 * COUNT) + p["m"] * added
    return mbd.design.ModalMatrices(p["kx"] * x + p["ky"] * y, mass, rows, derivatives)


def chain_test(sigma: float, random: np.random.Generator | None = None) -> mbd.design.ModalTest:
    """Return measurements of six of the eight modes.

    The frequencies have the standard error sigma/5, the shapes sigma.
    """
    matrices = chain(TRUE)
    squares, X = scipy.linalg.eigh(matrices.stiffness, matrices.mass)
    chosen = [5, 0, 3, 1, 4, 6]
    f, shapes = np.sqrt(squares[chosen]) / (2 * np.pi), X[:, chosen].T
    shapes = shapes / np.linalg.norm(shapes, axis=1)[:, None]
    errors = sigma / 5 * f, np.full(shapes.shape, sigma)
    if random is not None:
        f = f + errors[0] * random.standard_normal(f.shape)
        shapes = shapes + errors[1] * random.standard_normal(shapes.shape)
    return mbd.design.ModalTest(f, shapes, MOTIONS, *errors)


def test_derivatives_of_matrices() -> None:
    """Changes of mass, stiffness and sensors of a structure agree with differences."""
    random = np.random.default_rng(8)
    parts = [random.standard_normal((5, 5)) for _ in range(4)]
    K, M, dK, dM = (A @ A.T for A in parts)
    M = M + 5 * np.eye(5)
    rows, moved = random.standard_normal((2, 7, 5))

    def at(s: float) -> mbd.design.ModalMatrices:
        changes = {"s": (dK, dM, moved)}
        return mbd.design.ModalMatrices(K + s * dK, M + s * dM, rows + s * moved, changes)

    squares, X = scipy.linalg.eigh(K, M)
    sensors = [(f"p{k}", "x") for k in range(7)]
    f, shapes = np.sqrt(squares[[2, 0, 4]]) / (2 * np.pi), (rows @ X[:, [2, 0, 4]]).T
    test = mbd.design.ModalTest(f, shapes, sensors, f, 1.0)
    step = 1e-4
    a, b, c, d = (test.predict(at(s * step))[0] for s in (-2, -1, 1, 2))
    difference = (8 * (c - b) - (d - a)) / (12 * step)
    assert test.predict(at(0.0))[1]["s"] == pytest.approx(difference, rel=1e-8, abs=1e-9)


def test_confidence_intervals() -> None:
    """About 95 % of the intervals contain the true values, though two pairs of modes are close.

    The noise of the frequencies is larger than the distance of the modes along x and y.
    """
    random, inside, repetitions = np.random.default_rng(11), 0, 150
    start = {"kx": 0.9e5, "ky": 1.1e5, "m": 1.0}
    for _ in range(repetitions):
        test = chain_test(0.03, random)

        def model(p: dict[str, float], test: mbd.design.ModalTest = test) -> tuple:
            return test.predict(chain(p))

        result = mbd.design.identify(model, test.measured, start=start, deviations=test.deviations)
        inside += sum(low < TRUE[k] < high for k, (low, high) in result.intervals.items())
    assert abs(inside / (3 * repetitions) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / (3 * repetitions))


def test_shapes_determine_more_than_frequencies() -> None:
    """Measured shapes reduce the uncertainty of the additional mass."""
    test = chain_test(0.03)
    # without deviations of the shapes, only the frequencies are measured values
    plain = mbd.design.ModalTest(test.frequencies, test.shapes, MOTIONS, test.frequency_deviations)
    with_shapes, without_shapes = (
        mbd.design.identify(
            lambda p, t=t: t.predict(chain(p)), t.measured, start=TRUE, deviations=t.deviations
        )
        for t in (test, plain)
    )
    assert with_shapes.deviations["m"] < 0.9 * without_shapes.deviations["m"]


def test_complex_shapes() -> None:
    """Shapes of a damped structure are compared up to a complex factor, also for close modes."""
    shapes = np.array([[1.0, 0, 0], [0, 1j, 0], [0, 0, np.exp(2j)]])
    test = mbd.design.ModalTest([5.0, 3.0], [[0, 0.6, 0.8], [1, 0, 0]], [("a", "x")] * 3)
    pairs = test.pair([3.0, 5.0, 5.001], shapes)
    assert pairs.modes[1] == 0
    assert pairs.mac == pytest.approx(1.0, abs=1e-12)
    assert np.linalg.norm(pairs.combinations, axis=1) == pytest.approx(1.0)


def test_modes_of_a_mechanism() -> None:
    """A damped double pendulum: complex modes about its equilibrium, measured without damping."""

    def linearized(damping: float) -> tuple[np.ndarray, np.ndarray]:
        ends = {"a": mbd.Frame((0, 0.3, 0)), "b": mbd.Frame((0, -0.3, 0))}
        bars = [
            mbd.RigidBody(name, 1.0, [0.05, 0.01, 0.05], position=(0, y, 0), frames=ends)
            for name, y in (("upper", -0.3), ("lower", -0.9))
        ]
        ground = mbd.Ground({"pin": mbd.Frame()})
        pins = [
            mbd.revolute("first", ground.frame("pin"), bars[0].frame("a")),
            mbd.revolute("second", bars[0].frame("b"), bars[1].frame("a")),
        ]
        damper = mbd.JointSpring("damper", "second", stiffness=0.0, damping=damping)
        system = mbd.System([ground, *bars], pins, loads=[damper], gravity=(0, -9.81, 0))
        result = mbd.linearize(system, mbd.equilibrium(system))
        modes = [[result.mode(body.name, k)[0] for body in bars] for k in (1, 2)]
        return result.frequencies, np.array(modes)

    f, shapes = linearized(0.0)
    test = mbd.design.ModalTest(f[::-1], shapes[::-1].real, [("upper", "x"), ("lower", "x")])
    frequencies, damped = linearized(0.1)
    assert np.abs(damped.imag).max() > 0.01
    pairs = test.pair(frequencies, damped)
    assert pairs.modes.tolist() == [1, 0]
    assert (pairs.mac > 0.98).all()


def test_modes_without_partner(comm: MPI.Intracomm) -> None:
    """A low MAC gives a warning with its value; a mode that moves no sensor gets no partner."""
    test = mbd.design.ModalTest([10.0, 20.0], [[1.0, 0.0], [1.0, 1.0]], [("a", "x"), ("b", "x")])
    with pytest.warns(AccuracyWarning, match=r"measured mode 2 \(20 Hz\)") as records:
        pairs = test.pair([10.0, 20.0], [[1.0, 0.0], [1.0, -0.5]])
    assert records[0].message.value == pytest.approx(pairs.mac[1])  # type: ignore[union-attr]
    unseen = test.pair([10.0, 19.0, 25.0], [[1.0, 0.0], [1e-9, 1e-9], [1.0, 0.9]])
    assert unseen.modes.tolist() == [0, 2]


def test_errors(comm: MPI.Intracomm) -> None:
    table = bar(comm, 200e9, SIDE)
    with pytest.raises(InputError, match=r"unknown sensor 'tip'.*'middle'"):
        mbd.design.ModalTest([100.0], [[1.0]], [("tip", "x")]).predict(table)
    with pytest.raises(InputError, match="computed modes for 40 measured"):
        mbd.design.ModalTest(np.arange(1.0, 41.0), np.ones((40, 8)), SENSORS).predict(table)
    with pytest.raises(InputError, match="shapes that are not zero"):
        mbd.design.ModalTest([1.0], [[0.0]], [("a", "x")])
    with pytest.raises(InputError, match="direction x, y, z or a vector"):
        mbd.design.ModalTest([1.0], [[1.0]], [("a", "r")])
    with pytest.raises(InputError, match="need frequency_deviations"):
        mbd.design.ModalTest([1.0], [[1.0]], [("a", "x")], shape_deviations=0.1)
    with pytest.raises(InputError, match="8 sensors, the test has 1"):
        mbd.design.ModalTest([1.0], [[1.0]], [("a", "x")]).predict(chain(TRUE))
    with pytest.raises(InputError, match="mass must be a positive definite matrix"):
        mbd.design.ModalMatrices(np.eye(2), np.zeros((2, 2)), np.eye(2), {})
