"""DMIG and OP4, read by pyNastran."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.matrix_formats import field
from dolfinx_mbd.io.export.superelement import superelement
from tests.io.export.rods import NUM_MODES, check_superelement, relative, rod

pytest.importorskip("pyNastran")


def test_op4_stores_numbers_exactly(tmp_path: Path) -> None:
    from pyNastran.op4.op4 import read_op4

    body, element = rod(), superelement(rod())
    report = export(body, tmp_path / "rod", "op4")
    assert any("units" in note for note in report.notes)
    read = read_op4(str(report.paths[0]), debug=None)
    # The forms are 6, symmetric, and 2, rectangular.
    expected = {"KAAX": (6, element.stiffness), "MAAX": (6, element.mass)}
    expected |= {"BAAX": (6, element.damping), "XYZ": (2, element.points.T)}
    assert set(read) == set(expected)
    for name, (form, matrix) in expected.items():
        values = read[name].data if hasattr(read[name], "data") else read[name][1]
        assert np.array_equal(values, matrix)
        assert form == (read[name].form if hasattr(read[name], "form") else read[name][0])
    check_superelement(body, element.stiffness, element.mass, 1e-11)


def test_dmig(tmp_path: Path) -> None:
    """Numbers agree to the 10 digits of a field; the file contains all points and modes."""
    from pyNastran.bdf.bdf import read_bdf

    body, element = rod(), superelement(rod())
    first = 101
    report = export(body, tmp_path / "rod", "dmig", first_point=first)
    text = report.paths[0].read_text(encoding="ascii")
    assert "units m-kg-s" in text and max(map(len, text.splitlines())) <= 80
    model = read_bdf(str(report.paths[0]), punch=True, debug=None, xref=False)
    assert sorted(model.nodes) == [first, first + 1]
    for k, i in enumerate(body.interfaces):
        assert relative(model.nodes[first + k].xyz, i.point) < 1e-9
    modes = list(range(first + 2, first + 2 + NUM_MODES))
    assert sorted(model.spoints) == modes
    assert sorted(n for card in model.asets for n in card.ids) == [first, first + 1, *modes]
    order = [(first + k, c) for k in range(2) for c in range(1, 7)] + [(s, 0) for s in modes]
    read = {}
    for name, matrix in (
        ("KAAX", element.stiffness), ("MAAX", element.mass), ("BAAX", element.damping)
    ):  # fmt: skip
        A, rows, columns = model.dmig[name].get_matrix(is_sparse=False, apply_symmetry=True)
        assert model.dmig[name].matrix_form == 6
        number = {key: index for index, key in rows.items()}
        indices = [number[key] for key in order]
        assert rows == columns
        read[name] = A[np.ix_(indices, indices)]
        assert relative(read[name], matrix) < 1e-9
    check_superelement(body, read["KAAX"], read["MAAX"], 1e-8)
    undamped = export(body.replace(damping=0.0 * body.damping), tmp_path / "undamped", "dmig")
    assert any("B2GG = BAAX" in note for note in report.notes)
    assert not any("BAAX" in note for note in undamped.notes)


@pytest.mark.parametrize(
    "value", [0.0, 1.0, -1.0, 1 / 3, -1 / 3e-9, 1.23456789012e100, -9.999999999999999e-100, 5e-324]
)
def test_a_field_has_16_characters(value: float) -> None:
    for letter in "DE":
        text = field(value, letter)
        assert len(text) == 16
        assert float(text.replace("D", "E")) == pytest.approx(value, rel=1e-8, abs=0)


def test_bad_numbers_of_points(tmp_path: Path) -> None:
    for first in (0, -1, 99_999_999, 1.5):
        with pytest.raises(InputError) as error:
            export(rod(), tmp_path / "rod", "dmig", first_point=first)
        assert (error.value.argument, error.value.value) == ("first_point", first)
    with pytest.raises(TypeError, match="first_node"):
        export(rod(), tmp_path / "rod", "dmig", first_node=1)
    with pytest.raises(InputError) as error:
        export(rod().truncated(3), tmp_path / "rod", "op4")
    assert error.value.expected == "interfaces with independent motions"
    assert list(tmp_path.iterdir()) == []
