"""Every function that writes a file creates the missing folders of its path."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import create_box, create_interval, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.durability import recovery
from dolfinx_mbd.fem import write_mesh
from dolfinx_mbd.io import models as model_files
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.cli.main import parser
from dolfinx_mbd.io.export import FORMATS, compiled, export
from dolfinx_mbd.io.export.fmu import export_fmu
from dolfinx_mbd.io.export.linear_fmu import export_linear_fmu
from tests.campaigns.public import public_names
from tests.models.rods import rod

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes")

COARSE = mbd.ConnectingRod(size=0.02, order=1)
SIMULATOR = """
import dolfinx_mbd as mbd

def simulator():
    ground = mbd.Ground({"pin": mbd.Frame()})
    bar = mbd.RigidBody("bar", 2.0, [0.1] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("pin"), bar.frame("pin"))
    motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
    return mbd.Simulator(mbd.System([ground, bar], [pin], loads=[motor]), dt=1e-3, inputs=["motor"])
"""


def bob() -> mbd.System:
    """Return a mechanism of one free body."""
    return mbd.System([mbd.RigidBody("bob", 1.0, [0.1] * 3)])


class Models:
    """Small objects of each kind, each computed when a test needs it first."""

    @cached_property
    def run(self) -> mbd.results.Solution:
        """A pendulum with a flexible arm."""
        arm = mbd.FlexibleBody("arm", rod())
        ground = mbd.Ground({"pin": mbd.Frame((-0.5, 0, 0))})
        pin = mbd.revolute("pin", ground.frame("pin"), arm.frame("left"))
        motor = mbd.JointLoad("motor", "pin", "rotation", 0.0)
        system = mbd.System([ground, arm], [pin], loads=[motor], gravity=(0, -9.81, 0))
        return mbd.simulate(system, t_end=5e-3, dt=1e-3)

    @cached_property
    def linearized(self) -> mbd.LinearizedSystem:
        system, angle = self.run.system, {"angle": lambda run: run.joint("pin").rotation}
        return mbd.linearize(system, mbd.equilibrium(system), inputs=["motor"], outputs=angle)

    @cached_property
    def reduction(self) -> mbd.reduction.Reduction:
        mesh = mbd.build_mesh(COARSE, MPI.COMM_WORLD)
        with pytest.warns(mbd.errors.MeshWarning):
            model = mbd.ElasticModel(mesh, mbd.STEEL, degree=1)
        return mbd.reduce(model, interfaces=["big_end", "small_end"], num_modes=1)

    @cached_property
    def body(self) -> mbd.ReducedBody:
        return self.reduction.body.replace(stress=mbd.durability.skin_stress(self.reduction))

    @cached_property
    def eta(self) -> np.ndarray:
        """Elastic coordinates of the reduction at two times, shape (2, n)."""
        return np.outer([0.0, 1e-6], np.ones(self.reduction.body.num_modes))

    @cached_property
    def beam(self) -> Any:
        axis = create_interval(MPI.COMM_SELF, 4, [0, 0.5])
        model = mbd.BeamModel(axis, mbd.forms.Section.rectangle(0.02, 0.01), mbd.STEEL)
        return mbd.reduce_beam(model, interfaces={"root": 0, "tip": 0.5}, num_modes=2)

    @cached_property
    def beam_run(self) -> mbd.results.Solution:
        return mbd.simulate(
            mbd.System([mbd.FlexibleBody("beam", self.beam.body)]), t_end=1e-4, dt=1e-5
        )

    @cached_property
    def transient(self) -> Any:
        mesh = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.02)], [2, 1, 1])
        ends = {"left": locate_entities_boundary(mesh, 2, lambda x: np.isclose(x[0], 0.0))}
        motion = mbd.structures.PrescribedMotion(omega=(0, 0, 100))
        options = mbd.structures.TransientOptions(fields_at=[0.0, 4e-5])
        return mbd.structures.transient(
            mesh, mbd.STEEL, motion=motion, interfaces=ends, t_end=4e-5, dt=2e-5, options=options
        )

    @cached_property
    def coefficients(self) -> Any:
        ground = mbd.Ground({"bearing": mbd.Frame()})
        shaft = mbd.RigidBody.cylinder("shaft", 0.02, 0.1, mass=1.0, frames={"pin": mbd.Frame()})
        ends = ground.frame("bearing"), shaft.frame("pin")
        film = mbd.bearings.ShortBearing("film", *ends, 0.02, 0.01, 2e-5, 0.01)
        return mbd.bearings.bearing_coefficients(film, [300.0], (0.0, -50.0))

    @cached_property
    def picture(self) -> Any:
        return mbd.plotting.plot_body(rod(), [0.01, 0.0], window=(60, 40))

    @cached_property
    def fatigue(self) -> Any:
        waves = np.outer(np.sin(np.linspace(0, 20, 50)), self.eta[1])
        return mbd.fatigue(self.body, [(waves, 1.0)], material="AISI 4340")


@pytest.fixture(scope="module")
def models() -> Models:
    """Return the models whose results are written."""
    return Models()


def simulator(folder: Path) -> Path:
    """Write the script of a simulator."""
    path = folder / "model.py"
    path.write_text(SIMULATOR)
    return path


WRITERS: dict[str, tuple[str, Callable[[Models, Path], Any]]] = {
    "BeamReduction.write": (
        "motion.pvd",
        lambda m, path: m.beam.write(path, m.beam_run.body("beam")),
    ),
    "BearingCoefficients.to_csv": ("film.csv", lambda m, path: m.coefficients.to_csv(path)),
    "FatigueResult.write": ("life.vtk", lambda m, path: m.fatigue.write(path)),
    "NodalModes.write": (
        "modes.unv",
        lambda m, path: mbd.imports.NodalModes.of_body(m.body, ["big_end"]).write(path),
    ),
    "Picture.save": ("body.png", lambda m, path: m.picture.save(path)),
    "Player.save": ("body.html", lambda m, path: mbd.plotting.player(rod()).save(path)),
    "Recovery.write": (
        "stress.pvd",
        lambda m, path: mbd.durability.Recovery(m.reduction).write(path, m.eta),
    ),
    "ReducedBody.save": ("body.npz", lambda m, path: rod().save(path)),
    "Reduction.save": ("rod.npz", lambda m, path: m.reduction.save(path)),
    "Reduction.write_modes": ("modes.bp", lambda m, path: m.reduction.write_modes(path)),
    "Report.save": ("report.html", lambda m, path: mbd.plotting.Report().save(path)),
    "Solution.save": ("run.npz", lambda m, path: m.run.save(path)),
    "Solution.to_csv": ("run.csv", lambda m, path: m.run.to_csv(path)),
    "Strength.write": (
        "strength.vtk",
        lambda m, path: mbd.strength(m.body, m.eta, limit=1e9).write(path),
    ),
    "Transient.write": ("motion.bp", lambda m, path: m.transient.write(path)),
    "animate": (
        "run.gif",
        lambda m, path: mbd.plotting.animate(m.run, path, frames=1, window=(60, 40)),
    ),
    "envelope": ("most.bp", lambda m, path: mbd.envelope(m.reduction, m.eta).write(path)),
    "export_compiled_fmu": (
        "compiled.fmu",
        lambda m, path: compiled.export_compiled_fmu(
            mbd.Simulator(m.linearized.system, dt=1e-3), path, binary=False
        ),
    ),
    "export_fmu": ("arm.fmu", lambda m, path: export_fmu(simulator(path.parents[2]), path)),
    "export_linear_fmu": (
        "linear.fmu",
        lambda m, path: export_linear_fmu(m.linearized, path, dt=1e-3, binary=False),
    ),
    "player": ("run.html", lambda m, path: mbd.plotting.player(m.run, path)),
    "plot_energies": ("energies.pdf", lambda m, path: mbd.plotting.plot_energies(m.run, path)),
    "plot_system": (
        "system.png",
        lambda m, path: mbd.plotting.plot_system(m.run.system, path=path, window=(60, 40)),
    ),
    "simulate": (
        "run",
        lambda m, path: mbd.simulate(m.run.system, t_end=1e-3, dt=1e-3, path=path),
    ),
    "sweep": (
        "study",
        lambda m, path: mbd.sweep(lambda a: {"b": a}, {"a": [1.0]}, workers=1, path=path),
    ),
    "write_gltf": ("run.glb", lambda m, path: mbd.plotting.write_gltf(m.run, path)),
    "write_model": ("bob.yaml", lambda m, path: model_files.write_model(bob(), path)),
    "write_mesh": ("rod.msh", lambda m, path: write_mesh(COARSE, path)),
}
"""File names and functions that write such a file, by the public name of the writer."""

WRITERS |= {
    f"export to {name}": ("body", lambda m, path, name=name: export(m.body, path, name))
    for name in FORMATS
    if name != "extptfm"
}

SHARED = {
    "MeshRecovery.write": "Transient.write",
    "Reduction.write": "Transient.write",
    "campbell_diagram": "plot_energies",
    "plot_body": "plot_system",
    "plot_faces": "plot_system",
    "plot_film_pressure": "plot_energies",
    "plot_forces": "plot_energies",
    "plot_modes": "plot_system",
    "plot_orbit": "plot_energies",
    "plot_polar_force": "plot_energies",
    "plot_response": "plot_energies",
    "plot_skin": "plot_system",
    "plot_spectrum": "plot_energies",
    "plot_waterfall": "plot_energies",
    "plot_work": "plot_energies",
}
"""Writers that are not tested, each with a tested one that uses the same function."""

READERS = {
    "BearingTable.read", "PressureTable.read", "ReducedBody.load", "Solution.load", "StepPart",
    "read_ansys", "read_dmig", "read_fatigue_materials", "read_mesh", "read_model",
    "read_op2", "read_op4", "read_universal", "resume", "step_surfaces",
}  # fmt: skip
"""Functions whose argument `path` is an input."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow, pytest.mark.timeout(1200)] if slow else ())
        for name in WRITERS
        for slow in [name == "export_compiled_fmu"]  # (compiles for a minute the first time)
    ],
)
def test_missing_folders_are_created(name: str, models: Models, tmp_path: Path) -> None:
    if name == "export to gltf" or name == "write_gltf":
        pytest.importorskip("pygltflib")
    file, write = WRITERS[name]
    folder = tmp_path / "new" / "folder"
    write(models, folder / file)
    assert any(path.stat().st_size > 0 for path in folder.rglob("*"))


def test_all_writers_are_tested() -> None:
    """The public functions and methods with an argument `path` are in the lists above."""
    public = set()
    for name in public_names():
        first, _, method = name.partition(".")
        parts = [getattr(mbd, part) for part in mbd.__all__]
        modules = [
            model_files,
            recovery,
            compiled,
            mbd,
            *(part for part in parts if inspect.ismodule(part)),
        ]
        function = next(getattr(m, first) for m in modules if hasattr(m, first))
        function = getattr(function, method) if method else function
        if callable(function) and "path" in inspect.signature(function).parameters:
            public.add(name)
    assert public - set(SHARED) - READERS <= set(WRITERS)
    assert set(SHARED.values()) <= set(WRITERS)


COMMANDS = {
    "mesh": "mesh rod --size 0.02 --order 1 -o NEW/rod.msh",
    "reduce": "reduce rod.msh --material steel --modes 1 --degree 1 --no-stiffening -o NEW/rod.npz",
    "faces": "faces rod.msh -o NEW/faces.png",
    "modes": "modes rod.npz --modes 1 -o NEW/modes.png",
    "export": "export rod.npz --to mbdyn -o NEW/rod.fem",
    "export-fmu": "export-fmu model.py -o NEW/model.fmu",
    "fatigue": "fatigue rod.npz run.npz --model free.py --material weak.toml -o NEW/life.vtk",
    "schema": "schema -o NEW/schema.json",
    "strength": "strength rod.npz run.npz --model free.py --limit 1e8 -o NEW/strength.vtk",
    "view": "view rod.npz -o NEW/rod.html",
}
"""Command lines that write to the folder NEW."""

FREE = """
import dolfinx_mbd as mbd

body = mbd.ReducedBody.load("rod.npz")
system = mbd.System([mbd.FlexibleBody(body.name, body, omega=(0, 0, 300))])
"""


@pytest.fixture(scope="module")
def inputs(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    write_mesh(COARSE, folder / "rod.msh")
    body = models.body
    body.save(folder / "rod.npz")
    system = mbd.System([mbd.FlexibleBody(body.name, body, omega=(0, 0, 300))])
    mbd.simulate(system, t_end=1e-4, dt=1e-5).save(folder / "run.npz")
    (folder / "free.py").write_text(FREE)
    (folder / "weak.toml").write_text("[weak]\nknee_stress=5e6\nknee_cycles=1e6\nslope=5\n")
    simulator(folder)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(
    command: str, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inputs)
    folder = tmp_path / "new" / "folder"
    assert main([word.replace("NEW", str(folder)) for word in COMMANDS[command].split()]) == 0
    (path,) = folder.iterdir()
    assert path.stat().st_size > 0


def test_all_commands_with_an_output_are_tested() -> None:
    def names(commands: argparse.ArgumentParser, name: str) -> Iterator[str]:
        for action in commands._actions:
            if isinstance(action, argparse._SubParsersAction):
                for word, command in action.choices.items():
                    yield from names(command, name or word)
            elif "--output" in action.option_strings:
                yield name

    with_output = set(names(parser(), ""))
    assert with_output == set(COMMANDS)


@pytest.mark.parametrize("name", ["file.txt/body.npz", "file.txt/folder/body.npz"])
def test_a_file_is_no_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("mine")
    for write in (rod().save, lambda path: write_mesh(COARSE, path.with_suffix(".msh"))):
        with pytest.raises(NotADirectoryError) as error:
            write(tmp_path / name)
        assert "file.txt' is not a directory" in str(error.value)
    assert (tmp_path / "file.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "file.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        rod().save(tmp_path / "new" / "body.npz")
    tmp_path.chmod(0o700)
