"""Files for ParaView, written on any number of ranks, are read by PyVista."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dolfinx import fem
from dolfinx.mesh import CellType, create_box
from mpi4py import MPI
from scipy.spatial import KDTree

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import FileWarning, InputError
from dolfinx_mbd.fem import field_files
from dolfinx_mbd.fem.field_files import FRAMES, field_file, frame_rows, size_on_disk
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.reduction.result import Reduction
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box
from tests.models.plates import plate

DIAGONAL = np.linalg.norm([LENGTH, HEIGHT, WIDTH])


@pytest.fixture(scope="module")
def bar() -> Reduction:
    """Return the reduction of a box with two ends."""
    return mbd.reduce(
        box(MPI.COMM_WORLD, cells=(4, 1, 1)), mbd.STEEL, interfaces=["left", "right"], num_modes=3
    )


@pytest.fixture
def folder(comm: MPI.Intracomm, tmp_path: Path) -> Path:
    """Return a folder that all ranks share."""
    return comm.bcast(tmp_path, root=0)  # type: ignore[no-any-return]


def motion(reduction: Reduction, count: int) -> SimpleNamespace:
    """Return a motion that rotates, translates and bends the body, with growing time steps."""
    t = np.linspace(0.0, 1.0, count) ** 2
    eta = 1e-6 * np.outer(np.sin(7 * t), 1 + np.arange(reduction.body.num_modes))
    rotation = np.column_stack([np.cos(t), 0 * t, np.sin(t) / 2, np.sqrt(0.75) * np.sin(t)])
    position = np.column_stack([t, 2 * t, -t])
    return SimpleNamespace(time=t, eta=eta, position=position, rotation=rotation)


def everywhere(reduction: Reduction) -> tuple[KDTree, np.ndarray]:
    """Return a search tree of the nodes of all ranks, and the modes there, shape (nodes, 3, n)."""
    comm, dim = reduction.space.mesh.comm, reduction.space.dofmap.bs
    modes = reduction.modes.reshape(-1, dim, reduction.modes.shape[1])
    x, modes = (np.concatenate(comm.allgather(part)) for part in (reduction.positions, modes))
    padding = ((0, 0), (0, 3 - dim))
    return KDTree(np.pad(x, padding)), np.pad(modes, (*padding, (0, 0)))


def read(path: Path) -> Any:
    """Return PyVista's reader of a `.pvd` file."""
    pv = pytest.importorskip("pyvista", exc_type=ImportError)
    return pv.PVDReader(str(path))


def test_a_motion_read_by_pyvista(comm: MPI.Intracomm, folder: Path, bar: Reduction) -> None:
    """Every node is at r + A (x + s Ψη) with the scale s, and the elastic displacement is Ψη."""
    history, path = motion(bar, 5), folder / "new" / "run.1.pvd"
    bar.write(path, history, stride=2, scale=3.0)
    pieces = path.parent / "run.1_vtu"
    assert sorted(path.parent.iterdir()) == [path, pieces]
    assert len(list(pieces.glob("*.vtu"))) == 3 * comm.size
    reader, (tree, modes) = read(path), everywhere(bar)
    assert np.allclose(reader.time_values, history.time[::2], rtol=1e-5)
    for k in range(3):
        reader.set_active_time_point(k)
        grid = reader.read()[0]
        gap, node = tree.query(grid.points)
        assert gap.max() < 1e-12 and set(node) == set(range(len(modes)))
        u = modes[node] @ history.eta[2 * k]
        A = mbd.kernels.rotations.rotation_matrix(history.rotation[2 * k])
        moved = history.position[2 * k] + (grid.points + 3.0 * u) @ A.T
        assert np.allclose(grid.points + grid["displacement"], moved, rtol=0, atol=1e-12)
        size = 1e-6 * np.abs(modes).max()  # size of the displacements; η is about 1e-6
        assert np.allclose(grid["elastic"], u, rtol=0, atol=1e-6 * size)  # single precision
        assert comm.size > 1 or grid.volume == pytest.approx(LENGTH * HEIGHT * WIDTH, rel=1e-6)


def test_a_plane_body_turns_out_of_its_plane(comm: MPI.Intracomm, folder: Path) -> None:
    model = mbd.ElasticModel(plate(comm), mbd.STEEL, plane="stress", thickness=0.01)
    sheet = mbd.reduce(model, interfaces=["left", "right"], num_modes=2)
    history = motion(sheet, 3)
    sheet.write(folder / "sheet.pvd", history, times=[history.time[1]])
    sheet.write_modes(folder / "modes.pvd", [2], scale=1.0)
    tree, modes = everywhere(sheet)
    grid = read(folder / "sheet.pvd").read()[0]
    node = tree.query(grid.points)[1]
    A = mbd.kernels.rotations.rotation_matrix(history.rotation[1])
    moved = history.position[1] + (grid.points + modes[node] @ history.eta[1]) @ A.T
    assert np.allclose(grid.points + grid["displacement"], moved, rtol=0, atol=1e-12)
    assert np.abs(moved[:, 2]).max() > 0.1
    grid = read(folder / "modes.pvd").read()[0]
    (name,) = [key for key in grid.point_data if key.startswith("2: ")]
    second = modes[..., 1]  # numbers of modes start at 1
    node = tree.query(grid.points)[1]
    assert np.allclose(grid[name], second[node], atol=1e-9 * np.abs(modes).max())


def test_stress_read_by_pyvista(folder: Path, bar: Reduction) -> None:
    """The largest values are those of the envelope; values of cells are cell data."""
    history = motion(bar, 4)
    mbd.durability.Recovery(bar).write(folder / "s.pvd", history, ["von Mises", "stress"])
    mbd.durability.Recovery(bar, where="cells").write(folder / "c.pvd", history, "von Mises")
    greatest = mbd.envelope(bar, history)
    greatest.write(folder / "e.pvd")
    comm = bar.space.mesh.comm
    stresses, _ = greatest.values()
    top = max(comm.allgather(float(stresses.max(initial=0.0))))
    reader, values = read(folder / "s.pvd"), []
    for k in range(4):
        reader.set_active_time_point(k)
        grid = reader.read()[0]
        values.append(grid["von Mises"].max())
        assert grid["stress"].shape[1] == 9
    assert max(values) == pytest.approx(top, rel=1e-6)
    assert read(folder / "e.pvd").read()[0]["greatest von Mises"].max() == pytest.approx(top)
    cells = read(folder / "c.pvd").read()[0]
    assert len(cells.cell_data["von Mises"]) == cells.n_cells


@pytest.mark.parametrize("suffix", [".pvd", ".bp"])
def test_modes(folder: Path, bar: Reduction, suffix: str) -> None:
    """Each mode is a field with its label, scaled as requested, or to 8 % of the body's size."""
    path = folder / f"modes{suffix}"
    bar.write_modes(path)
    if suffix == ".bp":
        assert (path / "md.idx").is_file()
        return
    tree, modes = everywhere(bar)
    grid = read(path).read()[0]
    node = tree.query(grid.points)[1]
    assert len(grid.point_data) >= bar.body.num_modes
    for k, mode in enumerate(bar.body.modes):
        (name,) = [key for key in grid.point_data if key.startswith(f"{k + 1}: {mode.label}, ")]
        sizes = np.linalg.norm(grid[name], axis=1)
        assert sizes.max() == pytest.approx(0.08 * DIAGONAL, rel=1e-6)
        factor = 0.08 * DIAGONAL / np.linalg.norm(modes[..., k], axis=1).max()
        assert np.allclose(grid[name], factor * modes[node, :, k], atol=1e-9)
    bar.write_modes(path, [3], scale=0.5)
    grid = read(path).read()[0]
    (name,) = [key for key in grid.point_data if key.startswith("3: ")]
    assert np.allclose(grid[name], 0.5 * modes[node, :, 2], atol=1e-9 * np.abs(modes).max())
    assert not [key for key in grid.point_data if key.startswith("1: ")]


def test_bad_requests(folder: Path, bar: Reduction) -> None:
    for options, argument in (
        ({"path": "modes.vtk"}, "path"),
        ({"modes": []}, "modes"),
        ({"modes": [0]}, "every entry of modes"),
        ({"scale": np.nan}, "scale"),
    ):
        with pytest.raises(InputError) as error:
            bar.write_modes(**{"path": folder / "modes.pvd", **options})  # type: ignore[arg-type]
        assert error.value.argument == argument
        if argument == "path":
            assert all(suffix in str(error.value) for suffix in field_files.SUFFIXES)
    assert list(folder.iterdir()) == []


def test_number_of_times() -> None:
    """By default, at most 200 times are written, evenly distributed from the first to the last."""
    time = np.sort(np.random.default_rng(0).uniform(size=5000))
    rows = frame_rows(time)
    assert len(rows) <= FRAMES == 200
    assert (rows[0], rows[-1]) == (0, 4999)
    steps = np.diff(time[rows])
    assert abs(steps * (FRAMES - 1) / np.ptp(time) - 1.0).max() < 0.5
    assert np.array_equal(frame_rows(time[:200]), np.arange(200))
    assert len(frame_rows(time, stride=1)) == 5000
    assert len(frame_rows(time, np.linspace(0.1, 0.9, 300))) == 300


@pytest.mark.parametrize("suffix", [".pvd", ".bp"])
@pytest.mark.parametrize("degree", [1, 2])
def test_size_on_disk(comm: MPI.Intracomm, folder: Path, suffix: str, degree: int) -> None:
    mesh = box(comm, cells=(24, 12, 12)).mesh
    V = fem.functionspace(mesh, ("Lagrange", degree, (3,)))
    u, v = fem.Function(V, name="u"), fem.Function(V, name="v")
    owned = V.dofmap.index_map.size_local * 3
    rng = np.random.default_rng(comm.rank)
    with field_file(folder / f"f{suffix}", [u, v], 4) as write:
        for t in range(4):
            for function in (u, v):
                as_function(V, 1e-6 * rng.normal(size=owned), function)
            write(float(t))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert size_on_disk([u, v], 4, suffix) == pytest.approx(size, rel=0.2)


@pytest.mark.parametrize("suffix", [".pvd", ".bp"])
def test_a_large_file_is_announced(
    folder: Path, bar: Reduction, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / f"run{suffix}"
    monkeypatch.setattr(field_files, "LARGE", 1e5)
    with pytest.warns(FileWarning) as records:
        bar.write(path, motion(bar, 300), motion="body")
    (warning,) = [entry.message for entry in records if isinstance(entry.message, FileWarning)]
    assert (warning.quantity, warning.limit) == ("size on disk", 1e5)
    assert warning.value is not None and warning.value > 1e5


def test_a_full_disk(folder: Path, bar: Reduction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, and all ranks raise the error."""
    usage = shutil.disk_usage(folder)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=r"run\.pvd"):
        bar.write(folder / "run.pvd", motion(bar, 3))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("suffix", [".pvd", ".bp"])
def test_an_interrupted_file(
    comm: MPI.Intracomm, folder: Path, bar: Reduction, suffix: str
) -> None:
    """The previous file stays. On one rank no part of the new one remains."""
    path = folder / f"run{suffix}"
    bar.write(path, motion(bar, 3))
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    u = bar.displacement(np.ones(bar.body.num_modes))
    comm.Barrier()
    with pytest.raises(KeyboardInterrupt), field_file(path, [u], 2) as write:
        write(0.0)
        raise KeyboardInterrupt
    comm.Barrier()
    part = folder / f".run{suffix}.part"
    files = [p for p in folder.rglob("*") if p.is_file() and part not in p.parents]
    assert {p: p.read_bytes() for p in files} == before
    assert part.exists() == (comm.size > 1)


def test_fewer_times_replace_all_pieces(comm: MPI.Intracomm, folder: Path, bar: Reduction) -> None:
    """Pieces that an interrupted program left are replaced, too."""
    path = folder / "run.pvd"
    bar.write(path, motion(bar, 6))
    if comm.rank == 0:
        (folder / ".run.pvd.part").mkdir()
        (folder / ".run.pvd.part" / "fields000000.pvtu").touch()
    comm.Barrier()
    bar.write(path, motion(bar, 2))
    assert sorted(folder.iterdir()) == [path, folder / "run_vtu"]
    assert len(read(path).time_values) == 2
    assert len(list((folder / "run_vtu").glob("*.pvtu"))) == 2


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("kind", [CellType.tetrahedron, CellType.hexahedron])
def test_versions_that_meshio_reads(
    comm: MPI.Intracomm, folder: Path, kind: CellType, degree: int
) -> None:
    """Nodes of quadratic hexahedra have other numbers in version 1.0; meshio reads only 1.0."""
    pv = pytest.importorskip("pyvista", exc_type=ImportError)
    mesh = create_box(comm, [[0, 0, 0], [1, 1, 2]], [2, 2, 3], kind)
    u = fem.Function(fem.functionspace(mesh, ("Lagrange", degree, (3,))))
    u.interpolate(lambda x: x * x[0])
    with field_file(folder / "box.pvd", [u], 1) as write:
        write(0.0)
    pieces = sorted((folder / "box_vtu").glob("*.vtu"))
    for piece in pieces:
        head = piece.read_bytes()[:200]
        renumbered = kind == CellType.hexahedron and degree == 2
        assert (b'type="UnstructuredGrid" version="1.0"' in head) is not renumbered
    if comm.rank == 0:
        parts = [pv.read(piece) for piece in pieces]
        sizes = [part.compute_cell_sizes()["Volume"][part["vtkGhostType"] == 0] for part in parts]
        assert np.concatenate(sizes).sum() == pytest.approx(2.0, rel=1e-12)
        if renumbered or not importlib.util.find_spec("meshio"):
            return
        import meshio

        for piece in pieces:
            grid = meshio.read(piece)
            fields = [v for v in grid.point_data.values() if v.ndim == 2]
            np.testing.assert_allclose(fields[0], grid.points * grid.points[:, :1], atol=1e-14)
