"""Universal files of modes: one written by hand, and files that the package writes.

Written files are read by pyuff and by a parser of fixed columns that follows the definition of the
format and shares nothing with the package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dolfinx_mbd.imports import MatrixFileError, NodalModes, read_universal
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning, InputError
from tests.models.bodies import box

pytest.importorskip("pyuff")
pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process reads files")

PLATE = Path(__file__).parent / "universal" / "plate.unv"
# Numbers of datasets: 164 units, 15 and 2411 nodes, 18 and 2420 coordinate systems, 55 modes.
SYSTEM_2420 = """\
    -1
  2420
         1
part
         5         0         8
turned
{rows}
    -1
"""


def edited(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """Write the plate's file with changes."""
    text = PLATE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "edited.unv"
    path.write_text(text)
    return path


def columns(path: Path) -> dict[int, list[list[str]]]:
    """Return the lines of the datasets by their numbers."""
    result: dict[int, list[list[str]]] = {}
    lines = path.read_text().splitlines()
    marks = [k for k, line in enumerate(lines) if line.rstrip() == "    -1"]
    assert len(marks) % 2 == 0
    for begin, end in zip(marks[::2], marks[1::2], strict=True):
        result.setdefault(int(lines[begin + 1][:6]), []).append(lines[begin + 2 : end])
    return result


def numbers(line: str, width: int) -> list[float]:
    """Return the numbers of a line of fixed columns."""
    fields = [line[k : k + width] for k in range(0, len(line.rstrip()), width)]
    return [float(field.replace("D", "E")) for field in fields]


def test_file_of_another_program() -> None:
    """Units in mm, a local system, modes with different nodes, and both kinds of damping."""
    modes = read_universal(PLATE)
    assert modes.labels.tolist() == [1, 2, 3, 4]
    c, s = 0.8, 0.6
    expected = [[0, 0, 0], [0.1, 0, 0], [0.2, 0, 0], [0.02 + 0.1 * c, 0.1 * s, 0]]
    assert modes.positions == pytest.approx(np.array(expected), abs=1e-7)
    assert modes.frequencies == pytest.approx([41.25, 73.0])
    assert modes.damping_ratios == pytest.approx([0.015, 0.01])
    assert modes.shapes[0, :, 2].tolist() == [1.0, -0.61, 1.02, 0.0]
    assert modes.shapes[1].tolist() == [[0, 0, 0], [0, 0.2, 0.5], [0, 0, 0], [0, 0, -0.5]]
    test = modes.test(frequency_deviations=[0.1, 0.2])
    sensors = [("1", "z"), ("2", "y"), ("2", "z"), ("3", "z"), ("4", "z")]
    assert test.sensors == tuple(sensors)
    assert test.shapes.tolist() == [[1, 0, -0.61, 1.02, 0], [0, 0.2, 0.5, 0, -0.5]]
    assert modes.test(modes=[1], points={2: "tip"}).sensors == (("tip", "y"), ("tip", "z"))


def test_axes_of_nodes(tmp_path: Path) -> None:
    """Shapes are along the displacement axes of a node, from dataset 18 or 2420."""
    node = "         2         0         0        11"
    local = edited(tmp_path, (node, "         2         0         5        11"))
    with pytest.raises(MatrixFileError, match="node 2 has the displacement coordinate system 5"):
        read_universal(local)
    shape = read_universal(local, axes="node").shapes[1, 1]
    c, s = 0.8, 0.6
    assert shape == pytest.approx([-0.2 * s, 0.2 * c, 0.5], abs=1e-7)
    assert read_universal(local, axes="global").shapes[1, 1].tolist() == [0.0, 0.2, 0.5]
    rows = [[c, s, 0], [-s, c, 0], [0, 0, 1], [20, 0, 0]]
    text = "\n".join("".join(f"{value:25.16E}" for value in row) for row in rows)
    old = local.read_text()
    begin, end = old.index("    -1\n    18"), old.index("    -1\n    15")
    local.write_text(old[:begin] + SYSTEM_2420.format(rows=text) + old[end:])
    from_2420 = read_universal(local, axes="node")
    assert from_2420.shapes[1, 1] == pytest.approx(shape, abs=1e-7)
    assert from_2420.positions == pytest.approx(read_universal(PLATE).positions, abs=1e-7)
    skew = text.replace(f"{c:25.16E}", f"{2.0:25.16E}", 1)
    local.write_text(local.read_text().replace(text, skew))
    with pytest.raises(MatrixFileError, match="coordinate system 5 are not orthonormal"):
        read_universal(local, axes="node")


def complex_modes() -> NodalModes:
    """Return three complex modes of five nodes with random numbers."""
    random = np.random.default_rng(3)
    shapes = random.standard_normal((3, 5, 3)) + 1j * random.standard_normal((3, 5, 3))
    points = random.standard_normal((5, 3))
    return NodalModes([4, 9, 2, 11, 3], points, [10.0, 25.0, 31.5], shapes, [0.01, 0.3, 0.0])


def test_complex_modes(tmp_path: Path) -> None:
    """Eigenvalue and complex shapes come back; of conjugate pairs one mode is read."""
    modes = complex_modes()
    path = modes.write(tmp_path / "new" / "complex.unv")
    loaded = read_universal(path)
    order = np.argsort(modes.labels)
    assert loaded.labels.tolist() == [2, 3, 4, 9, 11]
    assert loaded.positions == pytest.approx(modes.positions[order], rel=1e-14)
    assert loaded.frequencies == pytest.approx(modes.frequencies, rel=1e-5)
    assert loaded.damping_ratios == pytest.approx(modes.damping_ratios, abs=1e-5)
    assert np.abs(loaded.shapes - modes.shapes[:, order]).max() < 1e-5 * np.abs(modes.shapes).max()
    first = columns(path)[55][0]
    omega = 2 * np.pi * 10.0
    real, imaginary = numbers(first[7], 13)[:2]
    assert (real, imaginary) == pytest.approx((-0.01 * omega, np.sqrt(1 - 1e-4) * omega), rel=1e-5)
    # structure, complex mode, three translations, displacement, complex numbers, values of a node
    assert numbers(first[5], 10) == [1, 3, 2, 8, 5, 3]
    text = path.read_text()
    eigenvalue = f"{real:13.5e}{imaginary:13.5e}"
    assert eigenvalue in text
    path.write_text(text.replace(eigenvalue, f"{real:13.5e}{-imaginary:13.5e}"))
    assert read_universal(path).frequencies == pytest.approx([25.0, 31.5], rel=1e-5)


def test_real_part_of_complex_shapes() -> None:
    """A real shape with another phase comes back; a remaining imaginary part gives a warning."""
    real = np.array([[0.0, 1.0, -2.0], [0.5, 0.0, 0.0]])
    modes = NodalModes([1, 2], np.eye(3)[:2], [5.0], [real * np.exp(0.7j)])
    shape = modes.test().shapes[0]
    assert np.abs(shape) == pytest.approx([1.0, 2.0, 0.5])
    assert mbd.design.mac([shape], [[1.0, -2.0, 0.5]])[0, 0] == pytest.approx(1.0)
    travelling = NodalModes([1, 2], np.eye(3)[:2], [5.0], [[[0, 1, 0], [0, 0.4j, 0]]])
    with pytest.warns(AccuracyWarning, match=r"mode with index 0 .* is 37% of its size"):
        assert np.abs(travelling.test().shapes) == pytest.approx(np.array([[1.0, 0.0]]))


def test_written_columns(tmp_path: Path) -> None:
    """The columns of units, nodes and normal modes are those of the definition."""
    x = [(0.1, -0.2, 1 / 3), (0, 0, 0)]
    shapes = np.array([[(1.0, -2.0, 1 / 3), (0, 0, 1e-7)], [(0, 0, 0), (0, -1e5, 0)]])
    path = NodalModes([12, 5], x, [123.456, 7.0], shapes, [0.02, 0.0]).write(tmp_path / "a.unv")
    sets = columns(path)
    (units,), (nodes,) = sets[164], sets[2411]
    assert numbers(units[1], 25) == [1.0, 1.0, 1.0]
    assert int(units[0][:10]) == 1
    assert [int(line[:10]) for line in nodes[::2]] == [12, 5]
    assert [numbers(line, 25) for line in nodes[1::2]] == [list(point) for point in x]
    mode = sets[55][0]
    # structure, normal mode, three translations, displacement, real numbers, values of a node
    assert numbers(mode[5], 10) == [1, 2, 2, 8, 2, 3]
    # 2 integers and 4 reals follow: load case, mode; frequency, modal mass, two kinds of damping
    assert numbers(mode[6], 10) == [2, 4, 1, 1]
    assert numbers(mode[7], 13) == [123.456, 0.0, 0.02, 0.0]
    assert [int(line) for line in mode[8::2]] == [12, 5]
    assert [numbers(line, 13) for line in mode[9::2]] == [[1, -2, 0.333333], [0, 0, 1e-7]]


def test_body_to_test_and_back(tmp_path: Path) -> None:
    """The modes of a body at points, through a file, are paired with the body's modes."""
    points = {"3": (0.0, 0.01, 0.0), "tip": (0.2, 0.01, 0.02), "8": (0.1, 0.02, 0.0)}
    mesh = box(MPI.COMM_SELF, (0.2, 0.03, 0.02), (4, 1, 1))
    base = mbd.reduce(
        mbd.ElasticModel(mesh, mbd.STEEL), interfaces=["left"], num_modes=6, points=points,
        stiffening=False,
    )  # fmt: skip
    body = base.body.with_damping(mbd.ModalDamping(0.02))
    modes = NodalModes.of_body(body, num_modes=5)
    assert dict(zip(points, modes.labels.tolist(), strict=True)) == {"3": 3, "tip": 1, "8": 8}
    read_back = read_universal(modes.write(tmp_path / "body.unv"))
    assert read_back.frequencies == pytest.approx(body.frequencies[:5], rel=1e-5)
    assert read_back.damping_ratios == pytest.approx(0.02, rel=1e-5)
    assert read_back.points["8"] == pytest.approx(points["8"])
    test = read_back.test(modes=[4, 0, 2], points={1: "tip", 3: "3", 8: "8"})
    f, derivatives = test.predict(mbd.sensitivities(base, [mbd.Parameter("E", "young")]))
    assert f == pytest.approx(body.frequencies[[4, 0, 2]], rel=1e-9)
    assert derivatives["E"] == pytest.approx(f / (2 * mbd.STEEL.young), rel=1e-6)
    with pytest.raises(InputError, match="names of points or interfaces of the body"):
        NodalModes.of_body(body, ["top"])
    from_test = NodalModes.of_test(test, points)
    assert from_test.labels.tolist() == read_back.labels.tolist()
    assert from_test.shapes == pytest.approx(read_back.shapes[[4, 0, 2]], rel=1e-5)


def test_sensors_that_nodes_cannot_have() -> None:
    inclined = mbd.design.ModalTest([5.0], [[1.0]], [("a", (1, 1, 0))])
    with pytest.raises(InputError, match="not along x, y or z"):
        NodalModes.of_test(inclined, {"a": (0, 0, 0)})
    against = mbd.design.ModalTest([5.0], [[2.0]], [("a", (0, -3, 0))])
    assert NodalModes.of_test(against, {"a": (0, 0, 0)}).shapes.tolist() == [[[0, -2, 0]]]
    with pytest.raises(InputError, match="positions of"):
        NodalModes.of_test(against, {"b": (0, 0, 0)})


def row(*fields: int) -> str:
    """Return integers in columns of ten."""
    return "".join(f"{field:10d}" for field in fields)


LAST = "  0.00000E+00  0.00000E+00 -5.00000E-01\n"
# Name of a fault: (text, its replacement, message; no message if the dataset is not a mode).
FAULTS = {
    "no 164": ("   164\n", "   999\n", "state the unit of length"),
    "no nodes": ("    15\n", "   999\n", "no nodes"),
    "no modes": ("    55\n", "   999\n", "no mode shapes"),
    "static": (row(1, 2, 2, 12), row(1, 1, 2, 12), ""),
    "stresses": (row(2, 2, 8, 2), row(2, 2, 2, 2), ""),
    "node twice": (row(4, 5, 0, 11) + "  1.0", row(3, 5, 0, 11) + "  1.0", "node 3 occurs twice"),
    "node twice in a mode": (row(4) + "\n", row(2) + "\n", "mode 2 has a node twice"),
    "node without position": (row(4) + "\n", row(40) + "\n", r"nodes \[40\] of the modes"),
    "unknown system": (row(4, 5, 0, 11), row(4, 6, 0, 11), "coordinate system 6"),
    "cylindrical": (row(5, 0, 0, 8), row(5, 1, 0, 8), "Cartesian"),
    "half a record": ("  5.00000E-01\n", "\n", "valid dataset 55"),
    "no number": ("-6.10000E-01", "-6.1000xE-01", "valid dataset 55"),
    "not finite": ("-6.10000E-01", "         NaN", "not complete"),
    "damping": ("1.50000E-02", "1.50000E+00", "damping"),
    "not closed": (LAST + "    -1\n", LAST, "begin and end datasets"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str, tmp_path: Path) -> None:
    old, new, message = FAULTS[fault]
    path = edited(tmp_path, (old, new))
    if not message:  # the dataset is no mode shape; the other one is read
        assert len(read_universal(path).frequencies) == 1
        return
    with pytest.raises(MatrixFileError, match=message):
        read_universal(path)


def test_units(tmp_path: Path) -> None:
    path = edited(tmp_path, ("   164\n", "   999\n"))
    assert read_universal(path, unit="mm").positions[2, 0] == pytest.approx(0.2)
    with pytest.raises(MatrixFileError, match="not 1 m"):
        read_universal(PLATE, unit="m")


def test_errors(tmp_path: Path) -> None:
    modes = complex_modes()
    with pytest.raises(InputError, match="labels"):
        NodalModes([1, 1], np.eye(3)[:2], [1.0], np.ones((1, 2, 3)))
    with pytest.raises(InputError, match="shapes"):
        NodalModes([1, 2], np.eye(3)[:2], [1.0], np.ones((2, 2, 3)))
    with pytest.raises(InputError, match="indices of the 3 modes"):
        modes.test(modes=[3])
    with pytest.raises(InputError, match="names by the numbers of nodes"):
        modes.test(points={1: "a"})
    other = tmp_path / "notes.txt"
    other.write_text("notes")
    with pytest.raises(mbd.errors.OverwriteError):
        modes.write(other)
    with pytest.raises(MatrixFileError):
        read_universal(other)


def test_without_pyuff(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pyuff'] = None; import dolfinx_mbd as mbd\n"
    code += f"mbd.imports.read_universal({str(PLATE)!r})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "pip install pyuff" in result.stderr
