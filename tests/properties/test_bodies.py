"""Laws of reduced bodies with every optional part: modes, files, and derivatives as trees."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dolfinx_mbd as mbd
from dolfinx_mbd.body import static_errors
from dolfinx_mbd.body.parts import SPINS
from dolfinx_mbd.body.tree import array_of, checked, leaves, map_arrays, part_fields, powers
from dolfinx_mbd.io.export.units import UNITS, Units, scaled
from tests.body.complete import complete_body, exact_numbers, random_numbers

DATA = Path(__file__).parents[1] / "data"
sizes = st.integers(1, 5)
seeds = st.integers(0, 2**32 - 1)
bodies = st.builds(lambda n, seed: complete_body(n, random_numbers(seed)), sizes, seeds)


def assert_same(first: mbd.ReducedBody, second: mbd.ReducedBody, tolerance: float = 0.0) -> None:
    """Compare all arrays relative to their size; a tolerance of 0 means equal bits."""
    pairs = zip(leaves(first), leaves(second), strict=True)
    for (place, _, a), (place_in_second, _, b) in pairs:
        assert place == place_in_second
        size = np.abs(a).max(initial=0.0)
        assert np.abs(a - b).max(initial=0.0) <= tolerance * size, place


def invertible(n: int, seed: int) -> np.ndarray:
    """Return a matrix with singular values from 0.5 to 2."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return U @ np.diag(rng.uniform(0.5, 2.0, n)) @ V


@dataclass(frozen=True)
class Motion:
    """A motion of a body in some units, and a wrench at each interface.

    `velocity` and `omega` are those of the body frame, `eta` and `rates` are η and η̇.
    """

    velocity: np.ndarray
    omega: np.ndarray
    eta: np.ndarray
    rates: np.ndarray
    wrenches: np.ndarray

    @classmethod
    def random(cls, n: int, seed: int) -> Motion:
        """Return a random motion in SI units."""
        numbers = random_numbers(seed)
        return cls(numbers(3), numbers(3), numbers(n), numbers(n), numbers(2, 6))

    def scaled(self, units: Units) -> Motion:
        """Return the same motion in other units; the elastic coordinates do not change."""
        wrenches = self.wrenches * np.repeat([units.force, units.moment], 3)
        velocity = self.velocity * units.length / units.time
        omega, rates = self.omega / units.time, self.rates / units.time
        return Motion(velocity, omega, self.eta, rates, wrenches)


def kinetic_energy(body: mbd.ReducedBody, motion: Motion) -> float:
    """Return half the integral of the squared velocity v + ω×(x + Ψη) + Ψη̇ over the mass."""
    q, q_rates = np.append(1.0, motion.eta), np.append(0.0, motion.rates)
    spin = np.cross(motion.omega, np.eye(3)).T  # ω×
    B = q[:, None, None] * spin + q_rates[:, None, None] * np.eye(3)
    v = motion.velocity
    total = body.total_mass * v @ v + 2 * v @ np.einsum("kca,ka->c", B, body.first_moments)
    return (total + np.einsum("kca,klab,lcb->", B, body.second_moments, B)) / 2


def quantities(body: mbd.ReducedBody, motion: Motion) -> dict[str, tuple[np.ndarray, str]]:
    """Return what can be measured during a motion, with its unit."""
    eta, rates, w = motion.eta, motion.rates, motion.omega
    assert body.stiffening is not None and body.skin is not None and body.stress is not None
    spins = np.array([w[i] * w[j] for i, j in SPINS])
    load, bore = body.loads[0], body.bores[0]
    interfaces = np.einsum("iwkl,iw->kl", body.stiffening.interfaces, motion.wrenches)
    patterns = bore.patterns(np.array([0.3, 2.0]), 0.1 * bore.length * np.array([-1.0, 1.0]))
    assert body.stress.cells is not None
    return {
        "kinetic energy": (np.array(kinetic_energy(body, motion)), "J"),
        "modal kinetic energy": (rates @ body.mass @ rates, "J"),
        "strain energy": (eta @ body.stiffness @ eta, "J"),
        "dissipated power": (rates @ body.damping @ rates, "J s-1"),
        "energy of spins": (eta @ np.tensordot(spins, body.stiffening.spin, 1) @ eta, "J"),
        "energy of wrenches": (eta @ interfaces @ eta, "J"),
        "displacement of an interface": (body.interfaces[1].motion[:3] @ eta, "m"),
        "rotation of an interface": (body.interfaces[1].motion[3:] @ eta, "1"),
        "place of an interface": (body.interfaces[0].point, "m"),
        "place of a point": (body.points[1].position + eta @ body.points[1].modes, "m"),
        "place of the skin": (body.skin.points + np.tensordot(eta, body.skin.modes, 1), "m"),
        "stress": (body.stress.stress @ eta, "Pa"),
        "stress in cells": (body.stress.cells @ eta, "Pa"),
        "power of a load": (load.force @ motion.velocity + load.modes @ rates, "J s-1"),
        "moment of a load": (load.moment + eta @ load.moments, "N m"),
        "strain of a gauge": (body.gauges[1].modes @ eta, "1"),
        "length of a gauge": (np.array(body.gauges[1].length), "m"),
        "place of a gauge": (body.gauges[0].position, "m"),
        "axes of a gauge": (np.vstack([body.gauges[1].normal, body.gauges[1].directions]), "1"),
        "error of a bore": (np.array(bore.error), "1"),
        "bulge of a bore": (patterns[0] @ (bore.displacement @ eta) @ patterns[1].T, "m"),
        "size of a bore": (np.array([bore.radius, bore.length]), "m"),
        "places of stress": (body.stress.points, "m"),
        "held frequencies": (body.effective_masses.frequencies, "Hz"),
        "effective masses": (np.asarray(body.effective_masses.shares), "1"),
        "static errors": (np.array(list(static_errors(body).values())), "1"),
    }


SINGLE = 1e-5  # tolerance of the stress in cells, which is in single precision


@given(bodies, seeds)
@settings(max_examples=20, deadline=None)
def test_physics_does_not_depend_on_the_modes(body: mbd.ReducedBody, seed: int) -> None:
    n = body.num_modes
    T, motion = invertible(n, seed), Motion.random(n, seed + 1)
    # η of the given body is T times η of the transformed body.
    same_motion = replace(motion, eta=T @ motion.eta, rates=T @ motion.rates)
    values = quantities(body.transformed(T), motion)
    for name, (expected, _) in quantities(body, same_motion).items():
        size = np.abs(expected).max() + np.abs(body.damping).max()
        tolerance = SINGLE if name == "stress in cells" else 1e-8
        assert np.abs(values[name][0] - expected).max() <= tolerance * size, name


factors = st.floats(1e-3, 1e3)
systems = st.one_of(
    st.sampled_from([UNITS["mm-t-s"], UNITS["mm-kg-ms"]]),
    st.builds(lambda L, m, t: Units("other", L, m, t), factors, factors, factors),
)


@given(bodies, systems, seeds)
@settings(max_examples=30, deadline=None)
def test_physics_does_not_depend_on_units(body: mbd.ReducedBody, units: Units, seed: int) -> None:
    motion = Motion.random(body.num_modes, seed)
    values = quantities(scaled(body, units), motion.scaled(units))
    scales = np.array([units.length, units.mass, units.time])
    for name, (expected, unit) in quantities(body, motion).items():
        factor = np.prod(scales ** powers(unit))
        size = np.abs(expected).max() + 1e-3
        tolerance = SINGLE if name == "stress in cells" else 1e-9
        assert np.abs(values[name][0] / factor - expected).max() <= tolerance * size, name
    frequencies = units.time * scaled(body, units).frequencies
    assert np.allclose(frequencies, body.frequencies, rtol=1e-12)
    back = Units("back", 1 / units.length, 1 / units.mass, 1 / units.time)
    assert_same(scaled(scaled(body, units), back), body, 1e-6)


@given(bodies)
@settings(max_examples=10, deadline=None)
def test_file(body: mbd.ReducedBody) -> None:
    with tempfile.TemporaryDirectory() as folder:
        loaded = mbd.ReducedBody.load(body.save(Path(folder) / "body"))
    assert_same(loaded, body)
    assert loaded.summary() == body.summary()
    assert (loaded.modes, loaded.left_out) == (body.modes, body.left_out)
    assert dict(loaded.provenance) == dict(body.provenance)
    assert mbd.body.compare(loaded, body).greatest == 0.0


@given(bodies, seeds)
@settings(max_examples=10, deadline=None)
def test_comparison_does_not_depend_on_the_modes(body: mbd.ReducedBody, seed: int) -> None:
    transformed = body.transformed(invertible(body.num_modes, seed))
    assert mbd.body.compare(body, transformed).greatest < SINGLE
    gauge = body.gauges[0]
    changed = transformed.replace(gauges=(replace(gauge, modes=1.01 * gauge.modes), body.gauges[1]))
    rows = {row.name: row.difference for row in mbd.body.compare(body, changed).rows}
    assert rows["gauge one"] > 1e-4


def test_file_of_an_earlier_version() -> None:
    """The file was written before arrays had declarations of their shapes and units."""
    expected = complete_body(3, exact_numbers())
    body = mbd.ReducedBody.load(DATA / "body_version_2.body")
    assert_same(body, expected)
    assert body.summary() == expected.summary()


@given(bodies, st.data())
@settings(max_examples=20, deadline=None)
def test_selection_is_a_change_of_modes(body: mbd.ReducedBody, data: st.DataObject) -> None:
    n = body.num_modes
    modes = data.draw(st.lists(st.integers(1, n), unique=True).map(sorted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbd.errors.AccuracyWarning)
        selected = body.selected(modes)
    columns = np.eye(n)[:, np.array(modes, dtype=int) - 1]
    assert_same(body.transformed(columns), selected)
    assert [m.label for m in selected.modes] == [body.modes[k - 1].label for k in modes]
    assert len(selected.left_out) == 1 + n - len(modes)  # the given body already lacks one mode


@given(bodies, seeds)
@settings(max_examples=20, deadline=None)
def test_change_of_modes_and_back(body: mbd.ReducedBody, seed: int) -> None:
    T = invertible(body.num_modes, seed)
    assert_same(body, body.transformed(T).transformed(np.linalg.inv(T)), 1e-6)


@given(bodies)
@settings(max_examples=10, deadline=None)
def test_sum_of_a_body_and_a_difference(body: mbd.ReducedBody) -> None:
    larger = map_arrays(lambda _, a: 1.5 * a, body)
    difference = map_arrays(lambda _, a, b: b - a, body, larger)
    assert_same(map_arrays(lambda _, a, d: a + d, body, difference), larger, 1e-6)
    assert all(getattr(difference, name) for name in part_fields(body))
    assert_same(checked(map_arrays(lambda _, a: a, body)), body)


def test_bodies_of_different_structure() -> None:
    body = complete_body(2, exact_numbers())
    triangle = mbd.body.Skin(body.skin.points, [[0, 1, 2]], body.skin.modes)
    for argument, other in (
        ("gauges", body.replace(gauges=body.gauges[:1])),
        ("points", body.replace(points=body.points[::-1])),
        ("first_moments", body.selected([1])),
        ("triangles", body.replace(skin=triangle)),
    ):
        with pytest.raises(mbd.errors.InputError) as error:
            map_arrays(lambda _, a, b: a - b, body, other)
        assert error.value.argument == argument
    without = map_arrays(lambda _, a, b: a - b, body, body.replace(skin=None))
    assert without.skin is None
    with pytest.raises(mbd.errors.InputError) as error:
        body.transformed(np.ones((2, 2)))
    assert error.value.argument == "matrix"


def test_units_of_declarations() -> None:
    assert powers("N m-1 s2").tolist() == [0.0, 1.0, 0.0]
    assert powers("1").tolist() == powers("Pa m2 N-1").tolist() == [0.0, 0.0, 0.0]
    for wrong in ("Nm", "kg*m", "m^2", "furlong"):
        with pytest.raises(mbd.errors.InputError) as error:
            array_of("n3", wrong)
        assert error.value.argument == "unit"
