"""A new part of a body needs one class and one field; everything else follows from its arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.tree import (
    array_of,
    freeze_arrays,
    list_of,
    map_arrays,
    number_of,
    part_of,
    with_values,
)
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.units import scaled
from tests.body.complete import complete_body, exact_numbers

MODES = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.5]])  # η1 = 2 η2', η2 = η1', η3 = η2'/2


@dataclass(frozen=True, eq=False)
class Magnet:
    """A magnet on the body: a list of such parts is new in the body below."""

    name: str
    strength: float = field(metadata=number_of("N m2"))
    position: Array = field(metadata=array_of("3", "m"))
    axis: Array = field(metadata=array_of("3", "1", directions=True))
    motion: Array = field(metadata=array_of("wn", "m"))
    attraction: Array = field(metadata=array_of("nn", "J", symmetric=True))

    def __post_init__(self) -> None:
        freeze_arrays(self, f"magnet {self.name!r}")


@dataclass(frozen=True, eq=False)
class Paint:
    """A part of which a body has one or none."""

    density: float = field(metadata=number_of("kg m-2"))
    thickness: Array = field(metadata=array_of("p", "m"))
    strain: Array = field(metadata=array_of("pn", "1"))

    def __post_init__(self) -> None:
        freeze_arrays(self, "paint")


@dataclass(frozen=True, eq=False)
class MagneticBody(mbd.ReducedBody):
    """A reduced body with two new fields."""

    magnets: tuple[Magnet, ...] = field(default=(), metadata=list_of(Magnet, "magnet"))
    paint: Paint | None = field(default=None, metadata=part_of(Paint, "paint", all_modes=True))


@pytest.fixture(scope="module")
def body() -> MagneticBody:
    """Return a body with magnets."""
    base = complete_body(3, exact_numbers())
    motion = (np.arange(18.0) ** 2 % 19.0).reshape(6, 3)
    magnets = [
        Magnet(name, 5.0, np.array([1.0, 2.0, 3.0]), np.array([0.6, 0.8, 0.0]), motion, np.eye(3))
        for name in ("north", "south")
    ]
    paint = Paint(0.5, np.array([1e-4, 2e-4]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    values = {f.name: getattr(base, f.name) for f in fields(base)}
    return MagneticBody(**values, magnets=magnets, paint=paint)


def test_modes(body: MagneticBody) -> None:
    selected = body.selected([1, 3])
    assert np.array_equal(selected.magnets[1].motion, body.magnets[1].motion[:, [0, 2]])
    assert selected.magnets[0].attraction.shape == (2, 2) and selected.paint is None
    transformed = body.transformed(MODES)
    assert np.array_equal(transformed.magnets[0].motion, body.magnets[0].motion @ MODES)
    assert np.array_equal(transformed.magnets[0].attraction, MODES.T @ MODES)
    assert np.array_equal(transformed.magnets[0].position, body.magnets[0].position)
    doubled = body.transformed(2 * np.eye(3)).paint
    assert doubled is not None and np.array_equal(doubled.strain, 2 * body.paint.strain)


def test_units(body: MagneticBody) -> None:
    in_mm = scaled(body, "mm-t-s")
    magnet = in_mm.magnets[0]
    assert magnet.strength == pytest.approx(5e6) and in_mm.paint.density == pytest.approx(5e-10)
    assert np.allclose(magnet.motion[:3], 1e3 * body.magnets[0].motion[:3])
    assert np.array_equal(magnet.motion[3:], body.magnets[0].motion[3:])
    assert np.allclose(magnet.attraction, 1e3 * np.eye(3))
    assert np.array_equal(magnet.axis, body.magnets[0].axis)


def test_file_and_views(body: MagneticBody, tmp_path: Path) -> None:
    loaded = MagneticBody.load(body.save(tmp_path / "magnetic"))
    for magnet, loaded_magnet in zip(body.magnets, loaded.magnets, strict=True):
        assert (magnet.name, magnet.strength) == (loaded_magnet.name, loaded_magnet.strength)
        for name in ("position", "axis", "motion", "attraction"):
            assert np.array_equal(getattr(magnet, name), getattr(loaded_magnet, name))
    assert loaded.paint is not None and loaded.paint.density == 0.5
    assert np.array_equal(loaded.paint.strain, body.paint.strain)
    assert mbd.ReducedBody.load(tmp_path / "magnetic.npz").num_modes == 3  # without the parts
    old = MagneticBody.load(Path(__file__).parents[1] / "data" / "body_version_2.body")
    assert old.magnets == () and old.paint is None
    text = body.summary()
    assert "magnet south: position (3,), axis (3,), motion (6, 3), attraction (3, 3)" in text
    assert "paint: thickness (2,), strain (2, 3)" in text
    stronger = replace(body.magnets[1], strength=5.5)
    table = mbd.body.compare(body, body.replace(magnets=(body.magnets[0], stronger)))
    assert {r.name: r.difference for r in table.rows}["magnet south"] == pytest.approx(1 / 11)


def test_checks(body: MagneticBody) -> None:
    north = body.magnets[0]
    for changes, argument in (
        ({"motion": np.zeros((5, 3))}, "magnet 'north': motion"),
        ({"position": np.array([0.0, np.nan, 0.0])}, "magnet 'north': position"),
        ({"attraction": np.triu(np.ones((3, 3)))}, "magnet 'north': attraction"),
        ({"attraction": np.eye(2)}, "magnet 'north': attraction"),
    ):
        with pytest.raises(InputError) as error:
            replace(north, **changes)
        assert error.value.argument == argument
    few = replace(north, motion=np.zeros((6, 2)), attraction=np.eye(2))
    for magnets, argument in (((few,), "magnet 'north'"), ((north, north), "magnets")):
        with pytest.raises(InputError) as error:
            body.replace(magnets=magnets)
        assert error.value.argument == argument


def test_derivative(body: MagneticBody) -> None:
    """The difference of two bodies, and the first-order body."""
    rotated = replace(
        body.magnets[1],
        strength=7.0,
        axis=np.array([0.8, 0.6, 0.0]),
        motion=body.magnets[1].motion + 1.0,
    )
    other = with_values(body, magnets=(body.magnets[0], rotated), left_out=())
    start = with_values(body, left_out=())
    arrays = map_arrays(lambda _, a, b: (b - a) / 0.25, start, other)
    assert arrays.magnets[1].strength == 8.0 and not arrays.magnets[0].motion.any()
    zero = np.zeros(3), np.zeros((3, 3))
    derivative = mbd.design.BodyDerivative(arrays, *zero, (-np.inf, np.inf), 0.0)
    table = mbd.design.BodySensitivities(body, {"p": 2.0}, {"p": derivative})
    middle = table.at({"p": 2.125}, own_modes=False)
    assert isinstance(middle, MagneticBody) and middle.magnets[1].strength == 6.0
    assert np.allclose(middle.magnets[1].motion, body.magnets[1].motion + 0.5)
    assert np.allclose(middle.magnets[1].axis, np.array([1, 1, 0]) / np.sqrt(2))
    nearby = table.at({"p": 2.25})
    W = np.linalg.lstsq(rotated.motion, nearby.magnets[1].motion, rcond=None)[0]
    assert np.allclose(W.T @ body.stiffness @ W, nearby.stiffness)
