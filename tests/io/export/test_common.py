"""All exports: formats, units, reported losses, names, and files that are written completely."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import file_units
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.files import temporary_path
from dolfinx_mbd.io.export import FORMATS, OPTIONS, SI, UNITS, Units, export
from dolfinx_mbd.io.export.text import ascii_labels, ascii_text, number_lines, write_text
from dolfinx_mbd.io.export.units import as_units, scaled
from tests.body.complete import complete_body, exact_numbers
from tests.io.export.reduced import reduced
from tests.io.export.states import assert_same_rows, in_units, own_rows, random_state

TEXT_FORMATS = ("mbdyn", "sid")


def test_units() -> None:
    t, ms = UNITS["mm-t-s"], UNITS["mm-kg-ms"]
    assert (t.force, t.moment, t.inertia) == pytest.approx((1.0, 1e3, 1e3))  # N, N mm, t mm²
    assert (ms.force, ms.moment) == pytest.approx((1e-3, 1.0))  # kN, kN mm
    assert (SI.force, SI.moment, SI.inertia) == (1.0, 1.0, 1.0)
    assert t.statement == "mm-t-s: length mm, mass t, time s, force N, rad"
    with pytest.raises(InputError) as error:
        Units("none", length=0.0)
    assert error.value.argument == "length"


@pytest.mark.parametrize(
    ("name", "factors", "force"),
    [
        ("m-kg-s", (1.0, 1.0, 1.0), "N"),
        ("mm-t-s", (1e3, 1e-3, 1.0), "N"),
        ("mm-kg-ms", (1e3, 1.0, 1e3), "kN"),
        ("mm-g-ms", (1e3, 1e3, 1e3), "N"),
        ("um-kg-s", (1e6, 1.0, 1.0), "uN"),
        ("cm-g-s", (1e2, 1e3, 1.0), "dyn"),
        ("in-slinch-s", (1 / 0.0254, 1 / 175.12683524647636, 1.0), "lbf"),
        ("mm-lb-us", (1e3, 1 / 0.45359237, 1e6), "lb mm/us^2"),
    ],
)
def test_units_by_name(name: str, factors: tuple[float, ...], force: str) -> None:
    """The names are those of `read_mesh`, which multiplies by the reciprocal factors."""
    units = as_units(f" {name} ")
    assert (units.name, units.force_name) == (name, force)
    assert (units.length, units.mass, units.time) == pytest.approx(factors, rel=1e-15)
    file = file_units("unit", name)
    assert file.stress == pytest.approx(units.length**2 / units.force, rel=1e-14)
    assert file.density == pytest.approx(units.length**3 / units.mass, rel=1e-14)


@pytest.mark.parametrize("value", ["mm", "mm-stone-s", "MM-T-S", "mm_t", 1e-3])
def test_wrong_units_of_reading_and_writing(value: object) -> None:
    """Reading and writing raise errors of the same text; reading also accepts a unit of length."""
    with pytest.raises(InputError) as written:
        as_units(value)  # type: ignore[arg-type]
    assert str(written.value).startswith("units must be a system of units LENGTH-MASS-TIME, such")
    assert ("did you mean 'mm-t-s'?" in str(written.value)) == (value in ("MM-T-S", "mm_t"))
    if value not in ("mm", 1e-3):
        with pytest.raises(InputError) as read:
            file_units("units", value)
        assert str(read.value).replace("a unit of length, such as 'mm', or ", "") == str(
            written.value
        )


def test_scaled_quantities() -> None:
    body = reduced("rigid")
    assert scaled(body, "m-kg-s") is body
    in_mm = scaled(body, "mm-t-s")
    assert in_mm.total_mass == pytest.approx(1e-3 * body.total_mass)
    assert np.allclose(in_mm.centre, 1e3 * body.centre, rtol=1e-14)
    assert np.allclose(in_mm.inertia, 1e3 * body.inertia, rtol=1e-12)
    assert np.allclose(in_mm.frequencies, body.frequencies, rtol=1e-14)
    assert np.allclose(scaled(body, "mm-kg-ms").frequencies, 1e-3 * body.frequencies, rtol=1e-14)
    motion, motion_in_mm = body.interfaces[0].motion, in_mm.interfaces[0].motion
    assert np.array_equal(motion_in_mm[:3], 1e3 * motion[:3])
    assert np.array_equal(motion_in_mm[3:], motion[3:])
    assert body.skin is not None and in_mm.skin is not None
    assert np.array_equal(in_mm.skin.points, 1e3 * body.skin.points)
    assert np.array_equal(in_mm.skin.modes, 1e3 * body.skin.modes)
    assert np.array_equal(in_mm.points[0].modes, 1e3 * body.points[0].modes)


@pytest.mark.parametrize("kind", ["rigid", "averaged", "attached"])
@pytest.mark.parametrize("units", [UNITS["mm-t-s"], Units("in-lb-h", 39.37, 2.2, 1 / 3600.0)])
def test_a_scaled_body_moves_alike(kind: str, units: Units) -> None:
    """Equations with geometric stiffness, forces and moments agree in both systems of units."""
    body = reduced(kind)
    state = random_state(body, 7)
    state.wrenches[:, 3:] = 1e-2 * state.wrenches[:, 2::-1]
    scaled_state = in_units(state, units)
    expected = units.moment * own_rows(body, state)
    expected[:3] *= units.force / units.moment
    assert_same_rows(own_rows(scaled(body, units), scaled_state), expected)


def test_scaling_knows_every_field() -> None:
    """If a body has a new field, ``scaled`` must handle it, and this list must name it."""
    without_units = {"name", "reference", "provenance"}
    with_units = {
        "total_mass",
        "first_moments",
        "second_moments",
        "mass",
        "stiffness",
        "damping",
        "interfaces",
        "modes",
        "left_out",
        "points",
        "skin",
        "stiffening",
        "stress",
        "loads",
        "effective_masses",
        "gauges",
        "bores",
    }
    assert {f.name for f in fields(ReducedBody)} == without_units | with_units


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats(name: str) -> None:
    """Each format has a writer and lists its losses, of which a body has those that concern it."""
    target = FORMATS[name]
    assert callable(target.writer) and target.extension.startswith(".")
    body = reduced("rigid")
    assert set(target.losses(body)) <= set(target.cannot_hold)
    assert all(sentence.startswith(target.title) for sentence in target.cannot_hold)
    stiffness = [s for s in target.losses(body) if "geometric stiffness" in s]
    assert bool(stiffness) == (name not in (*TEXT_FORMATS, "gltf"))
    assert not [s for s in target.losses(reduced("unstiffened")) if "geometric stiffness" in s]


@pytest.mark.parametrize("name", FORMATS)
def test_options(name: str) -> None:
    """Each option of a writer is described."""
    _, *options = inspect.signature(FORMATS[name].writer).parameters
    assert set(options) == set(FORMATS[name].options) <= set(OPTIONS)


def test_a_format_for_pictures(tmp_path: Path) -> None:
    """A format without dynamics has one sentence in place of the list of losses."""
    target, body = FORMATS["gltf"], reduced("rigid")
    assert target.for_pictures and not FORMATS["sid"].for_pictures
    assert len(target.losses(body)) == len(target.cannot_hold) == 1


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"gltf"}))
def test_lost_parts(name: str) -> None:
    """Each format reports the parts that it does not write, if the body has them."""
    lost = {
        "loads": "no distributed loads",
        "bores": "no elastic bores",
        "gauges": "no strain gauges",
        "points": "no named points",
    }
    if name in ("exudyn", "mbdyn", "sid"):  # their files contain nodes at the points
        del lost["points"]
    body, target = complete_body(3, exact_numbers()), FORMATS[name]
    for part, text in lost.items():
        loss = f"{target.title} contains {text}"
        assert [s for s in target.losses(body) if loss in s]
        assert not [s for s in target.losses(body.replace(**{part: ()})) if loss in s]
        assert [s for s in target.cannot_hold if loss in s]
    assert "points" in lost or not [s for s in target.cannot_hold if "named points" in s]


@pytest.mark.parametrize("name", ["mbdyn", "sid"])
def test_the_option_skin_is_true_or_false(name: str, tmp_path: Path) -> None:
    """The word "no" does not mean True."""
    for skin in ("no", 0, None):
        with pytest.raises(InputTypeError) as error:
            export(reduced("rigid"), tmp_path / "a", name, skin=skin)
        assert error.value.argument == "skin"


def test_losses_of_dmig() -> None:
    text = "\n".join(FORMATS["dmig"].cannot_hold)
    assert "Nastran DMIG contains no inertia invariants: gyroscopic and centrifugal terms" in text


def test_undamped_bodies_are_noted(tmp_path: Path) -> None:
    body = reduced("rigid")
    assert "no damping of its own" not in str(export(body, tmp_path / "a", "sid"))
    still = body.replace(damping=0 * body.damping)
    assert "no damping of its own" in str(export(still, tmp_path / "b", "sid"))


def test_names_that_are_not_ascii(tmp_path: Path) -> None:
    body = reduced("rigid")
    left, right = body.interfaces
    renamed = body.replace(
        name="Pleuel mit großem Auge\n** RECORD GROUP 1",
        interfaces=(replace(left, name="große Öffnung"), replace(right, name="grosse öffnung")),
        modes=tuple(
            replace(m, label=f"{k}. Schwingung, mass = 0") for k, m in enumerate(body.modes)
        ),
    )
    for name in TEXT_FORMATS:
        lines = export(renamed, tmp_path / "body", name).paths[0].read_text("ascii").splitlines()
        assert sum(line.startswith("** RECORD GROUP 1,") for line in lines) == (name == "mbdyn")
        assert name != "sid" or sum(" mass " in line for line in lines[1:]) == 1
    assert ascii_labels(["a b", "A_B", "ß", "x" * 80])[:3] == ["a_b", "A_B_2", "unnamed"]
    assert len(ascii_labels(["x" * 80, "x" * 80])[1]) <= 60
    assert ascii_text("Größe\n2") == "Gr??e 2"


def test_numbers_are_read_back_exactly() -> None:
    values = np.random.default_rng(0).normal(size=(3, 7)) * 10.0 ** np.arange(-150, 200, 50)
    lines = number_lines(values)
    assert len(lines) == 6  # two lines a row
    assert np.array_equal([float(w) for line in lines for w in line.split()], values.ravel())


@pytest.mark.parametrize("name", TEXT_FORMATS)
class TestBadInput:
    def test_body_without_interfaces(self, tmp_path: Path, name: str) -> None:
        body = reduced("unstiffened").replace(interfaces=())
        with pytest.raises(InputError, match="interfaces=") as error:
            export(body, tmp_path / "body", name)
        assert error.value.argument == "body"

    def test_rigid_body(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(InputError, match="num_modes > 0") as error:
            export(reduced("rigid").rigid(), tmp_path / "body", name)
        assert error.value.argument == "body"

    def test_body_without_skin(self, tmp_path: Path, name: str) -> None:
        report = export(reduced("rigid").replace(skin=None), tmp_path / "body", name)
        assert report.paths[0].exists() and "surface" not in str(report)

    def test_unknown_option(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(TypeError, match="digits"):
            export(reduced("rigid"), tmp_path / "body", name, digits=5)

    def test_unknown_units(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(InputError) as error:
            export(reduced("rigid"), tmp_path / "body", name, units="mm-stone-s")
        assert error.value.argument == "units"
        assert "LENGTH-MASS-TIME" in (error.value.expected or "")

    def test_numbers_that_are_too_large(self, tmp_path: Path, name: str) -> None:
        body = reduced("rigid")
        stiff = body.replace(stiffness=body.stiffness * (1e307 / np.abs(body.stiffness).max()))
        with pytest.raises(ValueError, match="finite numbers"), np.errstate(over="ignore"):
            export(stiff, tmp_path / "body", name, units="mm-t-s")
        assert list(tmp_path.iterdir()) == []

    def test_unwritable_path(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(OSError, match=r"not a directory.*nothing was written"):
            export(reduced("rigid"), tmp_path / "file" / "body", name)
        with pytest.raises(IsADirectoryError, match="add a file's name"):
            export(reduced("rigid"), tmp_path, name)

    def test_full_disk(self, tmp_path: Path, name: str) -> None:
        """No incomplete file remains, and an existing file stays. (Each rank has its folder.)"""
        if not os.access("/dev/full", os.W_OK):
            pytest.skip("no /dev/full here")
        path = export(reduced("rigid"), tmp_path / "body", name).paths[0]
        before = path.read_bytes()
        temporary_path(path).symlink_to("/dev/full")
        with pytest.raises(OSError, match=r"No space left on device.*nothing was written"):
            export(reduced("averaged"), path, name)
        assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        export(reduced("rigid"), tmp_path / "body", "mnf")
    assert error.value.argument == "format"
    assert all(name in (error.value.expected or "") for name in FORMATS)


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "a beginning"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "file", lines(), "file")
    assert list(tmp_path.iterdir()) == []
