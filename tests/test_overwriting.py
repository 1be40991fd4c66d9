"""No file of another kind, and no input, is replaced without being asked for."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import ConnectingRod, errors
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem import build_mesh, write_mesh
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.export import FORMATS, export
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.reduction import reduce
from tests.io.export.reduced import reduced
from tests.models.beams import slender_rod

COARSE = ConnectingRod(size=0.02, order=1)


def unchanged(path: Path, call: Callable[[], Any]) -> None:
    """Check that a call raises OverwriteError and leaves the file, and nothing else, behind."""
    before, names = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(errors.OverwriteError):
        call()
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == names


@pytest.mark.parametrize("name", FORMATS)
def test_exports(name: str, tmp_path: Path) -> None:
    """An export overwrites its own earlier output, and other files only on request."""
    if name == "gltf":
        pytest.importorskip("pygltflib")
    body = reduced("rigid")
    assert body.skin is not None
    skin = replace(body.skin, points=1.01 * body.skin.points)
    other = body.replace(stiffness=1.01 * body.stiffness, skin=skin)
    path = export(body, tmp_path / "rod", name).paths[0]
    whole = path.read_bytes()
    assert export(body, path, name).paths == (path,)
    assert path.read_bytes() == whole
    unchanged(path, lambda: export(other, path, name))
    unchanged(body.save(tmp_path / "rod.body"), lambda: export(body, tmp_path / "rod.body", name))
    export(other, path, name, overwrite=True)
    assert path.read_bytes() != whole
    with pytest.raises(errors.InputTypeError):
        export(body, path, name, overwrite="yes")  # type: ignore[arg-type]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """A file is renamed when it is complete, which would replace a pipe or a device."""
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    for call in (slender_rod().save, lambda path: export(slender_rod(), path, "simscape")):
        with pytest.raises(errors.InputError):
            call(pipe)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_an_export_beside_a_body(tmp_path: Path) -> None:
    """Exudyn's files have the suffix of bodies."""
    body = slender_rod()
    unchanged(body.save(tmp_path / "rod.npz"), lambda: export(body, tmp_path / "rod", "exudyn"))


def test_bodies_and_runs_replace_their_own_kind(tmp_path: Path) -> None:
    body = slender_rod(bending=2)
    run = simulate(
        slider_crank(body, crank_radius=0.1, crank_mass=0.2, piston_mass=0.1, speed=10.0),
        t_end=1e-3,
        dt=1e-4,
    )
    saves: list[Callable[[Path], Path]] = [body.save, run.save]
    for k, save in enumerate(saves):
        path = save(tmp_path / f"{k}.npz")
        assert save(path) == path
        for other in saves[:k] + saves[k + 1 :]:
            unchanged(path, lambda other=other, path=path: other(path))
    (tmp_path / "empty.npz").touch()
    body.save(tmp_path / "empty.npz")
    assert ReducedBody.load(tmp_path / "empty.npz").num_modes == body.num_modes
    np.savez(tmp_path / "mine.npz", values=np.arange(3.0))
    unchanged(tmp_path / "mine.npz", lambda: body.save(tmp_path / "mine.npz"))
    (tmp_path / "part.step").write_text("ISO-10303-21;")
    unchanged(tmp_path / "part.step", lambda: body.save(tmp_path / "part.step"))
    path = tmp_path / "0.npz"
    unchanged(path, lambda: simulate(run.system, t_end=1e-3, dt=1e-4, path=path))
    unchanged(path, lambda: run.to_csv(path))
    pages: dict[str, tuple[Callable[[Path], Any], ...]] = {
        "table.csv": (run.to_csv, lambda path: run.to_csv(path, ["rod"])),
        "page.html": tuple(mbd.plotting.player(item).save for item in (run, run[::2])),
    }
    if importlib.util.find_spec("pygltflib"):
        write = mbd.plotting.write_gltf
        pages["motion.glb"] = tuple(partial(write, item) for item in (run, run[::2]))
    contents = (
        b"mine",
        b"time [s],force [N]\n0,1\n",
        b"<!doctype html><html></html>\n",
        b"glTF" * 9,
    )
    for name, saves in pages.items():
        path = tmp_path / name
        for save in (*saves, saves[0]):  # each replaces the earlier one
            path.touch()
            before = path.read_bytes()
            save(path)
            assert path.read_bytes() != before
        for content in contents:
            path.write_bytes(content)
            unchanged(path, lambda save=saves[0], path=path: save(path))


def test_tables_with_outputs_of_users(tmp_path: Path) -> None:
    """A run replaces tables of its outputs, which have no units, and of parts with any name."""
    ground = mbd.Ground({"o": mbd.Frame()})
    arm = mbd.RigidBody("arm [1]", 1.0, [0.01] * 3, (0.5, 0, 0), frames={"o": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("o"), arm.frame("o"))
    system = mbd.System([ground, arm], [pin], gravity=(0, -9.81, 0))
    functions: dict[str, Callable[..., Any]] = {
        name: lambda run: run.joint("pin").rotation for name in ("angle", "a, b", "-turn")
    }
    outputs = mbd.simulate(system, t_end=2e-3, dt=1e-3, outputs=functions)
    whole = mbd.simulate(system, t_end=2e-3, dt=1e-3)
    path = tmp_path / "table.csv"
    tables: list[Callable[[], Path]] = [
        lambda: outputs.to_csv(path),
        lambda: outputs.to_csv(path, ["angle"]),
        lambda: outputs.to_csv(path, ["-turn", "angle"]),
    ]
    for first in tables:
        for second in tables:
            first()
            before = path.read_bytes()
            second()
            assert (path.read_bytes() != before) == (first is not second)
    unchanged(path, lambda: whole.to_csv(path))  # it does not have these outputs
    path.write_text("time [s],angle,mine\n0,0,1\n")
    unchanged(path, lambda: outputs.to_csv(path))
    path = tmp_path / "quantities.csv"
    for names in (None, ["arm [1].position"], ["pin"], None):
        whole.to_csv(path, names)
    assert path.read_text().startswith("time [s],arm [1].position.x [m]")
    outputs.to_csv(path)
    assert path.read_text().startswith('time [s],angle,"a, b",\'-turn\n')


def test_meshes(tmp_path: Path) -> None:
    path = tmp_path / "rod.msh"
    write_mesh(COARSE, path)
    write_mesh(COARSE, path)
    finer = ConnectingRod(size=0.015, order=1)
    unchanged(path, lambda: write_mesh(finer, path))
    before = path.read_bytes()
    write_mesh(finer, path, overwrite=True)
    assert path.read_bytes() != before


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if MPI.COMM_WORLD.size > 1:
        pytest.skip("runs commands of one rank")
    mesh, body = tmp_path / "rod.msh", tmp_path / "rod.npz"
    coarse = ["mesh", "rod", "--order", "1", "-o", str(mesh), "--size"]
    assert main([*coarse, "0.02"]) == main([*coarse, "0.02"]) == 0
    before = mesh.read_bytes()
    assert main([*coarse, "0.015"]) == 1
    assert mesh.read_bytes() == before
    assert main([*coarse, "0.015", "--force"]) == 0
    assert mesh.read_bytes() != before
    reduction = ["reduce", str(mesh), "--material", "steel", "--interface", "big_end", "-q"]
    reduction += ["--modes", "2", "--degree", "1", "--no-stiffening"]
    before = mesh.read_bytes()
    assert main([*reduction, "-o", str(mesh)]) == 1
    assert mesh.read_bytes() == before
    (tmp_path / "notes.txt").write_text("mine")
    assert main([*reduction, "-o", str(tmp_path / "notes.txt")]) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert main([*reduction, "-o", str(body)]) == main([*reduction, "-o", str(body)]) == 0
    before = body.read_bytes()
    exudyn = ["export", str(body), "--to", "exudyn", "-o"]
    assert main([*exudyn, str(body), "--force"]) == 1
    assert body.read_bytes() == before
    other = tmp_path / "other.fem"
    other.write_text("mine")
    mbdyn = ["export", str(body), "--to", "mbdyn", "-o", str(other)]
    assert main(mbdyn) == 1
    assert other.read_text() == "mine"
    assert main([*mbdyn, "--force"]) == 0
    assert other.read_text() != "mine"
    capsys.readouterr()


class _History:
    """A motion of the elastic coordinates alone."""

    def __init__(self, eta: np.ndarray) -> None:
        self.eta, self.time = eta, np.arange(len(eta), dtype=float)
        self.position = np.zeros((len(eta), 3))
        self.rotation = np.tile([1.0, 0.0, 0.0, 0.0], (len(eta), 1))


@pytest.mark.parametrize("suffix", [".bp", ".pvd"])
def test_files_for_paraview(tmp_path: Path, comm: MPI.Intracomm, suffix: str) -> None:
    """The suffix is .bp or .pvd; files and folders of something else are left alone."""
    folder: Path = comm.bcast(tmp_path, root=0)
    mesh = build_mesh(COARSE, comm)
    reduction = reduce(mbd.ElasticModel(mesh, STEEL, degree=1), interfaces=["big_end"], num_modes=1)
    eta = np.zeros((2, reduction.body.num_modes))
    writers: list[Callable[[Path], None]] = [
        lambda path: reduction.write(path, _History(eta), motion="body"),
        lambda path: mbd.durability.Recovery(reduction).write(path, eta),
        mbd.envelope(reduction, eta).write,
        reduction.write_modes,
    ]
    for k, write in enumerate(writers):
        for name in ("x.vtu", "x"):
            with pytest.raises(errors.InputError) as error:
                write(folder / name)
            assert error.value.argument == "path"
            comm.Barrier()
            assert not (folder / name).exists()
        write(folder / f"{k}{suffix}")
        write(folder / f"{k}{suffix}")
        path = folder / f"mine{k}{suffix}"
        mine = path if suffix == ".bp" else folder / f"mine{k}_vtu"
        if comm.rank == 0:
            mine.mkdir()
            (mine / "notes.txt").write_text("mine")
            (folder / "text.pvd").write_text("mine")
        comm.Barrier()
        for name in (path, folder / "text.pvd"):
            with pytest.raises(errors.OverwriteError):
                write(name)
        assert [p.name for p in mine.iterdir()] == ["notes.txt"]
        assert (folder / "text.pvd").read_text() == "mine"
