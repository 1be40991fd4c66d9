"""Abaqus substructure matrices, read by abaqus-mtx-parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export import export
from dolfinx_mbd.io.export.matrix_formats import NODES_PER_LINE
from dolfinx_mbd.io.export.superelement import superelement
from tests.io.export.rods import NUM_MODES, check_superelement, relative, rod

parser = pytest.importorskip("abaqus_mtx_parser")


def test_stiffness_mass_nodes_and_degrees_of_freedom(tmp_path: Path) -> None:
    body = rod()
    report = export(body, tmp_path / "rod", "abaqus", first_node=41)
    assert any("damping" in loss for loss in report.losses)
    text = report.paths[0].read_text(encoding="ascii")
    assert "units m-kg-s" in text and max(map(len, text.splitlines())) <= 200
    result = parser.parse_mtx(report.paths[0])
    assert result.nodes == list(range(41, 43 + NUM_MODES))
    assert [result.dof[node] for node in result.nodes] == [[1, 2, 3, 4, 5, 6]] * 2 + [
        [1]
    ] * NUM_MODES
    element = superelement(body)
    for matrix, expected in ((result.stiffness, element.stiffness), (result.mass, element.mass)):
        assert relative(matrix, expected) < 1e-13
    check_superelement(body, result.stiffness, result.mass, 1e-11)


def test_many_nodes_and_one_without_modes(tmp_path: Path) -> None:
    """One list of nodes is longer than a line; one element has interfaces only."""
    body = rod()
    many = parser.parse_mtx(export(body, tmp_path / "many", "abaqus", interfaces=["left"]).paths[0])
    assert many.nodes == list(range(1, 2 + body.num_modes)) and len(many.nodes) > NODES_PER_LINE
    # six elastic coordinates: the 12 of two interfaces less 6 rigid motions, and no further mode
    none = parser.parse_mtx(export(body.truncated(6), tmp_path / "none", "abaqus").paths[0])
    assert none.nodes == [1, 2] and none.stiffness.shape == (12, 12)


def test_bad_numbers_of_nodes(tmp_path: Path) -> None:
    for first in (0, -3, 1.5):
        with pytest.raises(InputError) as error:
            export(rod(), tmp_path / "rod", "abaqus", first_node=first)
        assert (error.value.argument, error.value.value) == ("first_node", first)
    assert list(tmp_path.iterdir()) == []
