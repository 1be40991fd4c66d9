"""The command line: from a mesh to files for other programs, and errors.

Commands run in this process, on all ranks together, as under `mpirun`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem.linalg.memory import factorization_memory
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.export import FORMATS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of all ranks with a mesh, two reductions of it, and a materials file.

    The mesh has the tagged surfaces ``big_end`` and ``small_end``, which has the number 2.
    """
    comm = MPI.COMM_WORLD
    path: Path = comm.bcast(tmp_path_factory.mktemp("cli"), root=0)
    mesh = str(path / "rod.msh")
    assert main(["mesh", "rod", "--size", "0.012", "--order", "1", "-o", mesh]) == 0
    if comm.rank == 0:
        (path / "own.toml").write_text("[wood]\nyoung = 11e9\npoisson = 0.3\ndensity = 450\n")
    comm.Barrier()
    reduce_rod = ["reduce", mesh, "-q", "--material", "steel", "--modes", "4"]
    ends = ["--interface", "big_end", "--interface", "small_end:averaged"]
    loads = ["--pressure", "push=small_end", "--load-modes", "--damping", "0.01", "--stress"]
    assert main([*reduce_rod, *ends, *loads, "-o", str(path / "rod.npz")]) == 0
    wood = ["--materials", str(path / "own.toml"), "--material", "rod=wood"]
    reduce_wood = ["reduce", mesh, "-q", *wood, "--modes", "2", "--reference", "attached:big"]
    interfaces = ["--interface", "big=big_end", "--interface", "small=2:rigid", "--degree", "1"]
    options = ["--point", "mid=0.07,0,0", "--up-to", "1MHz", "--no-skin", "--name", "wooden"]
    assert main([*reduce_wood, *interfaces, *options, "-o", str(path / "wood.npz")]) == 0
    comm.Barrier()
    return path


def test_options_of_reduce(folder: Path) -> None:
    rod, wood = (ReducedBody.load(folder / f) for f in ("rod.npz", "wood.npz"))
    # num_modes: 6 static modes of two interfaces, and 4 or 2 vibration modes; "rod" also has a
    # static mode of its pressure load.
    assert [(i.name, i.kind) for i in rod.interfaces] == [
        ("big_end", "rigid"),
        ("small_end", "averaged"),
    ]
    assert (rod.name, rod.num_modes, rod.reference) == ("rod", 11, "mean axis")
    assert [load.name for load in rod.loads] == ["push"]
    assert rod.skin is not None and rod.stiffening is not None and rod.stress is not None
    # All modes have a ratio of 1 %: C = 2 ζ ω with M = 1.
    omega = np.sqrt(np.diag(rod.stiffness))
    np.testing.assert_allclose(np.diag(rod.damping), 0.02 * omega, rtol=1e-9)
    assert (wood.name, wood.num_modes, wood.reference) == ("wooden", 8, "attached to big")
    assert [i.name for i in wood.interfaces] == ["big", "small"]
    assert wood.skin is None and wood.stress is None and wood.point("mid").position[0] == 0.07
    assert wood.total_mass == pytest.approx(rod.total_mass * 450 / 7850, rel=1e-12)


def test_the_unit_is_that_of_the_mesh(folder: Path, comm: MPI.Intracomm) -> None:
    """The same mesh in millimetres gives a body a thousand times smaller."""
    words = ["--material", "steel", "--interface", "big_end", "--modes", "1", "--degree", "1"]
    path = folder / "small.npz"
    out = ["-q", "--unit", "mm", "-o", str(path)]
    assert main(["reduce", str(folder / "rod.msh"), *words, *out]) == 0
    comm.Barrier()
    small, rod = ReducedBody.load(path), ReducedBody.load(folder / "rod.npz")
    assert small.total_mass == pytest.approx(1e-9 * rod.total_mass, rel=1e-9)


def test_lengths_with_units(folder: Path, comm: MPI.Intracomm) -> None:
    """Sizes and points may have units; elements larger than the part raise an error."""
    in_mm, in_m = folder / "same.msh", folder / "rod.msh"
    assert main(["mesh", "rod", "--size", "12mm", "--order", "1", "-o", str(in_mm)]) == 0
    comm.Barrier()
    assert in_mm.read_bytes() == in_m.read_bytes()
    assert main(["mesh", "rod", "--size", "5", "-o", str(folder / "large.msh")]) == 1
    assert not (folder / "large.msh").exists()
    words = ["--material", "steel", "--interface", "big_end", "--modes", "1", "--degree", "1"]
    words += ["-q", "--point", "mid=70mm,-0e0,0mm", "-o", str(folder / "point.npz")]
    assert main(["reduce", str(in_m), *words]) == 0
    comm.Barrier()
    assert np.allclose(ReducedBody.load(folder / "point.npz").point("mid").position, [0.07, 0, 0])


def test_help_of_a_rod_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mesh", "rod", "--help"]) == 0
    if MPI.COMM_WORLD.rank == 0:
        words = " ".join(capsys.readouterr().out.split())
        # No description ends with a comma before its default.
        assert "gives 390,000 (default 0.0045)" in words and ", (default" not in words


def test_a_name_without_a_suffix(folder: Path, comm: MPI.Intracomm) -> None:
    out = folder / "bare"
    words = ["-q", "--material", "steel", "--interface", "big_end", "--modes", "1"]
    assert main(["reduce", str(folder / "rod.msh"), *words, "-o", str(out)]) == 0
    comm.Barrier()
    assert ReducedBody.load(f"{out}.npz").num_modes == 1
    assert not out.exists()


def test_a_dry_run_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "dry.npz"
    words = ["--material", "steel", "--interface", "big_end", "--interface", "small_end"]
    assert main(["reduce", str(folder / "rod.msh"), *words, "--dry-run", "-o", str(out)]) == 0
    assert not out.exists()
    text = capsys.readouterr().out
    if MPI.COMM_WORLD.rank == 0:
        assert "26 elastic coordinates" in text  # 20 modes, and 6 static modes of two interfaces
        size = re.search(r"(\d+) degrees of freedom", text)
        assert size is not None
        ranks = MPI.COMM_WORLD.size
        gigabytes = factorization_memory(int(size[1]), num_ranks=ranks) / 1e9
        printed = re.search(r"expected memory about ([\d.]+) GB", text)
        assert printed is not None
        # The command on one rank counts the entries of the factor, instead of this estimate.
        assert float(printed[1]) == pytest.approx(gigabytes, rel=0.15 if ranks == 1 else 0.02)


def test_info(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(folder / "rod.npz")]) == 0
    body = capsys.readouterr().out
    assert main(["info", str(folder / "rod.msh")]) == 0
    mesh = capsys.readouterr().out
    if MPI.COMM_WORLD.rank == 0:
        assert body.strip() == ReducedBody.load(folder / "rod.npz").summary()
        assert "big_end            facets" in mesh and "(tetrahedron)" in mesh
    else:
        assert not body + mesh


def test_compare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rod, wood = str(folder / "rod.npz"), str(folder / "wood.npz")
    assert main(["compare", rod, rod, "--tolerance", "1e-12"]) == 0
    assert main(["compare", rod, wood]) == 0
    assert main(["compare", rod, wood, "--tolerance", "0.5"]) == 1
    if MPI.COMM_WORLD.rank == 0:
        assert "they differ by more than 0.5" in capsys.readouterr().out


@pytest.mark.parametrize("name", FORMATS)
def test_export(folder: Path, name: str, comm: MPI.Intracomm) -> None:
    if name == "gltf":
        pytest.importorskip("pygltflib")
    path = folder / f"exported-{name}{FORMATS[name].extension}"
    units = "m-kg-s" if name == "extptfm" else "mm-t-s"  # OpenFAST reads SI units only
    words = ["export", str(folder / "rod.npz"), "--to", name, "--units", units]
    assert main([*words, "-o", str(path)]) == 0
    comm.Barrier()
    assert path.stat().st_size > 500


def test_export_in_other_units(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", str(folder / "rod.npz"), "--to", "mbdyn", "-o", str(folder / "in-units.fem")]
    assert main([*words, "--units", "mm-g-ms"]) == 0
    if MPI.COMM_WORLD.rank == 0:
        assert "mm-g-ms: length mm, mass g, time ms, force N" in capsys.readouterr().out
    assert main([*words, "--units", "mm-t"]) == 2
    if MPI.COMM_WORLD.rank == 0:
        assert "did you mean 'mm-t-s'?" in capsys.readouterr().err


def test_help_of_export(capsys: pytest.CaptureFixture[str]) -> None:
    """The line of each format lists its options, and each option is described."""
    assert main(["export", "--help"]) == 0
    if MPI.COMM_WORLD.rank == 0:
        rows = {
            words[0]: words[1:]
            for line in capsys.readouterr().out.splitlines()
            if (words := line.replace(",", "").split())
        }
        for target in FORMATS.values():
            # The options are the last words of the line of a format.
            options = rows[target.name][len(rows[target.name]) - len(target.options) :]
            assert options == list(target.options)
            assert all(rows[name] for name in target.options)


def test_modes_for_paraview(folder: Path, comm: MPI.Intracomm) -> None:
    words = ["reduce", str(folder / "rod.msh"), "-q", "--material", "steel", "--modes", "1"]
    words += ["--interface", "big_end", "--degree", "1", "-o", str(folder / "shown.npz")]
    assert main([*words, "--write-modes", str(folder / "modes.vtk")]) == 1
    assert not (folder / "shown.npz").exists()
    assert main([*words, "--write-modes", str(folder / "modes.pvd")]) == 0
    assert len(list((folder / "modes_vtu").glob("*.vtu"))) == comm.size


def test_default_names_of_exports(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default name is never that of the body's file."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "rod.npz", tmp_path)
    before = Path("rod.npz").read_bytes()
    assert main(["export", "rod.npz", "--to", "exudyn"]) == 0
    assert main(["export", "rod.npz", "--to", "sid", "--option", "dialect=fembeam"]) == 0
    assert main(["export", "rod.npz", "--to", "exudyn", "-o", "rod.npz"]) == 1
    assert Path("rod.npz").read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"rod.npz", "rod-exudyn.npz", "rod.SID_FEM"}


@pytest.mark.slow
def test_modes_are_drawn(folder: Path) -> None:
    pytest.importorskip("pyvista")
    if MPI.COMM_WORLD.rank == 0:
        path = folder / "modes.png"
        words = ["modes", str(folder / "rod.npz"), "--modes", "1,3-4", "-o", str(path)]
        assert main(words) == 0
        assert path.read_bytes().startswith(b"\x89PNG")


def test_materials(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["materials", "--materials", str(folder / "own.toml")]) == 0
    text = capsys.readouterr().out
    if MPI.COMM_WORLD.rank == 0:
        assert "wood                    11" in text and "titanium" in text


# Name of a case: (arguments, exit code, part of the message); {} is the path of the folder.
BAD = {
    "no such mesh": (["reduce", "none.msh", "--material", "steel"], 1, "no mesh file 'none.msh'"),
    "unknown material": (["reduce", "{}/rod.msh", "--material", "stel"], 1, "unknown material"),
    "unknown group of a material": (
        ["reduce", "{}/rod.msh", "--material", "bush=steel"],
        1,
        "'bush'",
    ),
    "materials without groups": (
        ["reduce", "{}/rod.msh", "--material", "steel", "--material", "a=bronze"],
        1,
        "GROUP=steel",
    ),
    "unknown interface": (
        ["reduce", "{}/rod.msh", "--material", "steel", "--interface", "bigend"],
        1,
        "'big_end', 'small_end'",
    ),
    "unknown kind": (
        ["reduce", "{}/rod.msh", "--material", "steel", "--interface", "big_end:soft"],
        1,
        "NAME:averaged",
    ),
    "no directory": (
        ["reduce", "{}/rod.msh", "--material", "steel", "-o", "{}/rod.msh/rod.npz"],
        1,
        "rod.msh' is not a directory",
    ),
    "a directory": (["export", "{}/rod.npz", "--to", "sid", "-o", "{}"], 1, "is a directory"),
    "frequency": (
        ["reduce", "rod.msh", "--material", "steel", "--up-to", "20parsec"],
        2,
        "20000 or 20kHz",
    ),
    "unit": (
        ["reduce", "rod.msh", "--material", "steel", "--unit", "furlong"],
        2,
        "length of m, dm, cm,",
    ),
    "reference": (
        ["reduce", "{}/rod.msh", "--material", "steel", "--reference", "fixed"],
        1,
        "attached:INTERFACE",
    ),
    "damping": (
        ["reduce", "{}/rod.msh", "--material", "steel", "--damping", "-1"],
        1,
        "damping",
    ),
    "format": (["export", "{}/rod.npz", "--to", "adams"], 2, "invalid choice"),
    "option of a format": (
        ["export", "{}/rod.npz", "--to", "sid", "--option", "dialct=simpack", "-o", "{}/x"],
        1,
        "dialct",
    ),
    "no body": (["info", "{}/own.npz"], 1, "own.npz"),
    "not a body": (["export", "{}/own.toml", "--to", "sid"], 1, "not a reduced body"),
    "no modes of that number": (
        ["modes", "{}/rod.npz", "--modes", "99"],
        1,
        "from 1 to 11; got 99",
    ),
    "no modes": (["modes", "{}/rod.npz", "--modes", "5-1"], 2, "the smallest first"),
    "tolerance": (["compare", "{}/rod.npz", "{}/rod.npz", "--tolerance", "nan"], 1, "--tolerance"),
    "empty name of a file": (["materials", "--materials", ""], 1, "no file of materials ''"),
    "rod that is not possible": (["mesh", "rod", "--big-bore", "1"], 1, "big"),
    "CAD that is not there": (["mesh", "step", "none.step"], 1, "no STEP file"),
    "no command": ([], 2, "COMMAND"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, code, message = BAD[case]
    before = sorted(folder.iterdir())
    assert main([word.replace("{}", str(folder)) for word in words]) == code
    if MPI.COMM_WORLD.rank == 0:
        text = capsys.readouterr().err
        assert message in text and "Traceback" not in text
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("line", "reason"),
    [("young = 'x'", "'x'"), ("poisson = nan", "got nan"), ("colour = 'red'", "it has colour")],
)
def test_bad_materials(
    line: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message is one line that says which entry is wrong."""
    values = {"young": "11e9", "poisson": "0.3", "density": "450"}
    values = {k: v for k, v in values.items() if not line.startswith(k)}
    path = tmp_path / "own.toml"
    path.write_text("\n".join(["[wood]", line, *(f"{k} = {v}" for k, v in values.items())]))
    assert main(["materials", "--materials", str(path)]) == 1
    if MPI.COMM_WORLD.rank == 0:
        text = capsys.readouterr().err
        assert text.count("\n") == 1 and "[wood]" in text and f" {reason}" in text


@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
@pytest.mark.parametrize("start", [[sys.executable, "-m", "dolfinx_mbd"], ["dolfinx-mbd"]])
def test_both_ways_to_start(start: list[str]) -> None:
    run = subprocess.run([*start, "--help"], capture_output=True, text=True, check=True)
    for command in ("mesh", "reduce", "info", "compare", "modes", "export", "materials"):
        assert f"\n    {command}" in run.stdout
    assert "exit codes" in run.stdout
