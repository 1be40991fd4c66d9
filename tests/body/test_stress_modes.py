"""Quantities of stress, envelopes over time, and stress modes of a body without its mesh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.quantities import QUANTITIES, principal_values, quantity
from dolfinx_mbd.body.stress_modes import BLOCK_SIZE, StressModes, envelope_over_time, rows_at
from dolfinx_mbd.errors import InputError, InputTypeError

POINTS, MODES, TIMES = BLOCK_SIZE + 37, 7, 2 * BLOCK_SIZE + 11
"""Sizes with several blocks of points and of instants, of which the last ones are not full."""


def tensors(components: np.ndarray) -> np.ndarray:
    """Return symmetric tensors (..., 3, 3) from components (6, ...)."""
    xx, yy, zz, xy, yz, zx = components
    rows = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


@pytest.fixture(scope="module")
def modes() -> StressModes:
    """Return random stress modes."""
    rng = np.random.default_rng(3)
    return StressModes(rng.standard_normal((POINTS, 3)), rng.standard_normal((6, POINTS, MODES)))


@pytest.fixture(scope="module")
def history() -> SimpleNamespace:
    """Return a history of elastic coordinates, a random walk."""
    rng = np.random.default_rng(4)
    eta = np.cumsum(rng.standard_normal((TIMES, MODES)), axis=0)
    return SimpleNamespace(time=np.linspace(0.1, 0.9, TIMES), eta=eta)


@pytest.mark.parametrize("spread", [1.0, 1e-5, 1e-10, 0.0])
def test_principal_values_are_eigenvalues(spread: float) -> None:
    """The values are exact up to round-off, even if two or three of them are close."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((500, 3, 3)))[0]
    values = np.array([[3.0], [3.0], [-1.0]]) + spread * rng.standard_normal((3, 500))
    values[:, ::3] = 5.0 + spread * rng.standard_normal((3, len(values[0, ::3])))
    A = np.einsum("tij,jt,tkj->tik", rotation, values, rotation) * 1e8
    A = 0.5 * (A + A.transpose(0, 2, 1))
    components = np.array([A[:, i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0))])
    expected = np.linalg.eigvalsh(A)[:, ::-1].T
    # the entries are up to 8e8
    assert np.abs(principal_values(components) - expected).max() < 1e-14 * 8e8
    assert not principal_values(np.zeros((6, 2))).any()


def test_quantities_follow_from_the_tensor(modes: StressModes, history: SimpleNamespace) -> None:
    s = tensors(np.einsum("cpn,tn->ctp", modes.stress, history.eta))
    size = np.abs(s).max()
    deviator = s - np.trace(s, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)
    principal = np.linalg.eigvalsh(s)[..., ::-1]
    expected = {
        "stress": s,
        "von Mises": np.sqrt(1.5 * np.einsum("tpij,tpij->tp", deviator, deviator)),
        "principal": principal,
        "greatest principal": principal[..., 0],
        "least principal": principal[..., 2],
        "Tresca": principal[..., 0] - principal[..., 2],
        "mean stress": np.trace(s, axis1=-2, axis2=-1) / 3,
        "stress zx": s[..., 0, 2],
        "stress yy": s[..., 1, 1],
    }
    for name, values in expected.items():
        assert modes.values(name, history).shape == values.shape
        assert np.allclose(modes.values(name, history), values, rtol=0, atol=1e-13 * size), name
    strided = modes.values("stress", history, stride=100)
    assert np.allclose(strided, s[::100], rtol=0, atol=1e-13 * size)


@pytest.mark.parametrize(
    "name", [q.name for q in QUANTITIES.values() if q.needs == ("stress",) and not q.shape]
)
@pytest.mark.parametrize("extreme", ["greatest", "least"])
def test_envelope_is_the_extreme_of_the_history(
    modes: StressModes, history: SimpleNamespace, name: str, extreme: str
) -> None:
    """Instants are equal, and values up to the order of summation in products."""
    values = modes.values(name, history)
    envelope = modes.envelope(name, history, extreme=extreme)  # type: ignore[arg-type]
    row = values.argmax(axis=0) if extreme == "greatest" else values.argmin(axis=0)
    assert np.array_equal(envelope.time, history.time[row])
    expected = values[row, np.arange(POINTS)]
    assert np.allclose(envelope.value, expected, rtol=0, atol=1e-14 * np.abs(values).max())


def test_the_first_of_equal_instants_counts() -> None:
    modes = StressModes(np.zeros((2, 3)), np.ones((6, 2, 1)))
    eta = np.zeros((2 * BLOCK_SIZE + 3, 1))
    eta[[40, 170, 200]] = 2.0
    assert np.array_equal(modes.envelope("stress xx", eta).time, [40.0, 40.0])
    assert np.array_equal(modes.envelope("stress xx", 0 * eta).time, [0.0, 0.0])


def test_several_ingredients_are_stacked() -> None:
    """The energy density is ½ σ:ε; the strain ε of this test is equal to σ."""
    rng = np.random.default_rng(1)
    s, eta = rng.standard_normal((6, 5, 3)), rng.standard_normal((9, 3))
    value, row = envelope_over_time([s, s], eta, quantity("strain energy density"))
    A = tensors(np.einsum("cpn,tn->ctp", s, eta))
    energy = 0.5 * np.einsum("tpij,tpij->tp", A, A)
    assert np.allclose(value, energy.max(axis=0), rtol=1e-13)
    assert np.array_equal(row, energy.argmax(axis=0))


def one_mode_body(n: int = 2) -> ReducedBody:
    """Return a body with n modes without coupling to the rigid motion."""
    H = np.zeros((n + 1, n + 1, 3, 3))
    H[0, 0] = np.eye(3)
    for k in range(1, n + 1):
        H[k, k] = np.eye(3) / 3
    return ReducedBody.from_arrays(
        total_mass=1.0,
        first_moments=np.zeros((n + 1, 3)),
        second_moments=H,
        stiffness=np.diag(np.arange(1.0, n + 1)),
    )


def test_stress_modes_are_kept_in_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    stress = StressModes(rng.standard_normal((4, 3)), rng.standard_normal((6, 4, 2)))
    body = one_mode_body().replace(stress=stress)
    loaded = ReducedBody.load(body.save(tmp_path / "body.npz"))
    assert loaded.stress is not None
    assert np.array_equal(loaded.stress.points, stress.points)
    assert np.array_equal(loaded.stress.stress, stress.stress)
    assert ReducedBody.load(one_mode_body().save(tmp_path / "without.npz")).stress is None
    shorter = body.truncated(1).stress
    assert shorter is not None
    assert np.array_equal(shorter.stress, stress.stress[:, :, :1])
    assert body.rigid().stress is None
    with pytest.raises(InputError) as error:
        one_mode_body(3).replace(stress=stress)
    assert (error.value.argument, error.value.expected) == ("stress", "3 modes")
    with pytest.raises(InputError) as error:
        StressModes(np.zeros((3, 3)), np.zeros((6, 4, 2)))
    assert error.value.argument == "stress modes: stress"


def test_bad_input(modes: StressModes, history: SimpleNamespace) -> None:
    eta, time = history.eta, history.time
    short = SimpleNamespace(time=time, eta=eta[:, :-1])
    nothing = SimpleNamespace(time=time[:0], eta=eta[:0])
    infinite = SimpleNamespace(time=time, eta=np.where(eta == eta[3, 2], np.inf, eta))

    def assert_input_error(argument: str, call: Callable[[], object], expected: str = "") -> None:
        with pytest.raises(InputError) as error:
            call()
        assert error.value.argument == argument
        assert expected in str(error.value.expected)

    most: Any = "most"
    assert_input_error("quantity", lambda: modes.envelope("vonMises", history), "'von Mises'")
    assert_input_error("quantity", lambda: modes.envelope("stress", history), "'von Mises'")
    assert_input_error("name", lambda: modes.values("strain xx", history), "stress alone")
    assert_input_error("extreme", lambda: modes.envelope("von Mises", history, extreme=most))
    assert_input_error("history", lambda: modes.envelope("von Mises", short), f"({TIMES}, {MODES})")
    assert_input_error("history", lambda: modes.envelope("von Mises", nothing), "instants")
    assert_input_error("history", lambda: modes.envelope("von Mises", infinite), "finite")
    with pytest.raises(InputTypeError):
        modes.envelope("von Mises", "run")
    assert_input_error(
        "times", lambda: modes.values("von Mises", history, times=[0.2, 2.0]), "0.1 to 0.9 s"
    )
    assert_input_error("times", lambda: modes.values("von Mises", history, times=[]))
    assert_input_error("stride", lambda: modes.values("von Mises", history, stride=0))
    assert np.array_equal(rows_at(np.array([0.0, 1.0, 2.0]), [2.1, 0.4, 0.1]), [0, 2])


def test_unknown_quantities(modes: StressModes, history: SimpleNamespace) -> None:
    """Each name that the error lists is accepted."""
    for call in (modes.values, modes.envelope):
        with pytest.raises(InputError) as error:
            call("mises", history)  # type: ignore[operator]
        names = str(error.value.expected).replace("'", "").split(", ")
        assert "von Mises" in names
        for name in names:
            call(name, history)  # type: ignore[operator]
