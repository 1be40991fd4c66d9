"""Mesh bodies and cables in model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.mesh_gathering import gathered_mesh
from dolfinx_mbd.geometry.msh_text import msh_text
from dolfinx_mbd.io.cli import main
from dolfinx_mbd.io.models import ModelFileError, read_model, schema, write_model
from dolfinx_mbd.structures.mesh_bodies import BodyForce, PointForce, Pressure, Traction

one_rank = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a file of one process")
RUBBER = mbd.forms.Material(3e6, 0.45, 1100.0)
ENDS = ("foot", "head")


def bar() -> Any:
    """Return a bar with named ends."""
    return tutorials.tagged_bar((0.3, 0.01, 0.02), (5, 1, 1), ENDS)


def written_mesh(mesh: Any, path: Path) -> None:
    """Write a mesh as a file of gmsh."""
    arrays = gathered_mesh(mesh)
    if arrays is not None:
        path.write_text(msh_text(arrays))
    MPI.COMM_WORLD.barrier()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_mesh_files_have_all_digits(tmp_path: Path, order: int) -> None:
    """Hexahedra, tetrahedra and curved tetrahedra: the frequencies of the read mesh are equal."""
    comm = MPI.COMM_WORLD
    path = Path(comm.bcast(str(tmp_path), root=0)) / "part.msh"
    mesh, group = bar(), "head"
    if order:
        mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.014, order=order), comm)
        group = "big_end"
    written_mesh(mesh, path)
    copy = mbd.read_mesh(path, comm)
    assert mesh.groups.items() <= copy.groups.items()
    body, body_of_copy = (
        mbd.reduce(m, mbd.STEEL, interfaces=[group], num_modes=3).body for m in (mesh, copy)
    )
    np.testing.assert_allclose(body.frequencies, body_of_copy.frequencies, rtol=1e-9)
    if comm.size == 1:
        assert np.array_equal(mesh.mesh.geometry.x, copy.mesh.geometry.x)


def mechanism() -> mbd.System:
    """Return a mechanism with two mesh bodies on the same mesh, and a cable."""
    model = mbd.ElasticModel(bar(), RUBBER)
    shear, bulk = RUBBER.shear, RUBBER.young / (3 * (1 - 2 * RUBBER.poisson))
    loads = {
        "wind": Traction("head", ("0", "30*sin(9*t)", 0)),
        "weight": BodyForce((0, 0, 10.0)),
        "gas": Pressure("head", "100*t"),
        "probe": PointForce((0.15, 0, 0), (0, "t", 0)),
    }
    interfaces = {"foot": mbd.InterfaceSpec(), "top": mbd.InterfaceSpec("head", kind="averaged")}
    energy = f"{shear / 2}*(I1*J^(-2/3) - 3) + {bulk / 2}*(J - 1)^2"
    pad = mbd.MeshBody("pad", model, interfaces, energy=energy, viscosity=1e-3, loads=loads)
    other = mbd.MeshBody("other", model, ENDS, position=(0, 1, 0), energy="neo-hookean")
    wire = mbd.forms.Cable.from_section(mbd.forms.Section.circle(0.002), mbd.STEEL, damping=1e-3)
    rope = mbd.CableBody("rope", wire, (0, 0, 1), (1, 0, 1), 4, frames={"middle": 0.5})
    frames = {"a": mbd.Frame(), "b": mbd.Frame((0, 1, 0)), "c": mbd.Frame((0, 0, 1))}
    ground = mbd.Ground(frames)
    joints = [
        mbd.fixed("a", ground.frame("a"), pad.frame("foot")),
        mbd.fixed("b", ground.frame("b"), other.frame("foot")),
        mbd.spherical("c", ground.frame("c"), rope.frame("start")),
    ]
    return mbd.System([ground, pad, other, rope], joints, gravity=(0, 0, -9.81))


def test_mesh_bodies_and_cables_make_the_round_trip(tmp_path: Path) -> None:
    comm = MPI.COMM_WORLD
    system, folder = mechanism(), Path(comm.bcast(str(tmp_path), root=0))
    path = write_model(system, folder / "model.yaml")
    comm.barrier()
    assert [p.name for p in folder.glob("*.msh")] == ["model-pad.msh"]
    copy = read_model(path).system
    run, run_of_copy = (mbd.simulate(s, t_end=5e-3, dt=1e-3) for s in (system, copy))
    scale = np.abs(run.joint("a").force).max()
    assert scale > 0.1
    error = np.abs(run.joint("a").force - run_of_copy.joint("a").force).max()
    # The box of DOLFINx 0.11 has another variant of the coordinate element than a mesh of a file.
    assert error <= (1e-12 if comm.size == 1 else 1e-7) * scale
    if comm.size == 1:
        # q also contains accelerations of nodes, whose round-off is that of positions over dt².
        np.testing.assert_allclose(run.q, run_of_copy.q, rtol=0, atol=1e-8)
        second_copy = read_model(write_model(copy, folder / "again.yaml")).system
        run_of_second = mbd.simulate(second_copy, t_end=5e-3, dt=1e-3)
        assert np.array_equal(run_of_copy.q, run_of_second.q)  # both meshes are from a file
        assert np.array_equal(run_of_copy.joint("a").force, run_of_second.joint("a").force)
    jsonschema = pytest.importorskip("jsonschema")
    rules = jsonschema.Draft202012Validator(schema())
    assert [e.message for e in rules.iter_errors(yaml.safe_load(path.read_text()))] == []


FILE = """\
model: 1
parameters: {force: 2kPa, stiff: 3MPa}
gravity: [0, 0, -9.81]
bodies:
  ground: {frames: {wall: [0, 0, 0], hook: [0, 0, 1]}}
  flap:
    type: mesh_body
    model:
      mesh: bar.msh
      material: {young: stiff, poisson: 0.3, density: 1100}
    interfaces:
      foot: {}
      tip: {pick: {plane: [[0.3, 0, 0], [1, 0, 0]]}, kind: averaged}
    loads: {wind: {type: traction, facets: head, value: [0, force, 0]}}
  rope:
    type: cable
    cable: {type: section, section: {type: circle, radius: 1mm}, material: steel}
    start: [0, 0, 1]
    end: [0, 0, 0.5]
joints:
  wall: {type: fixed, first: ground.wall, second: flap.foot}
  hook: {type: spherical, first: ground.hook, second: rope.start}
simulate: {t_end: 4ms, dt: 1ms}
"""


@one_rank
def test_command_runs_a_file_with_mesh_bodies_and_cables(tmp_path: Path) -> None:
    written_mesh(bar(), tmp_path / "bar.msh")
    path = tmp_path / "flap.yaml"
    path.write_text(FILE)
    rows = {}
    for value in ("2kPa", "4kPa"):
        out = tmp_path / value
        assert main(["run", str(path), "--out", str(out), "-q", "--set", f"force={value}"]) == 0
        head, *lines = (out / "run.csv").read_text().splitlines()
        column = head.split(",").index("wall.force.y [N]")
        rows[value] = float(lines[-1].split(",")[column])
    assert rows["4kPa"] == pytest.approx(2 * rows["2kPa"], rel=0.02)
    assert abs(rows["2kPa"]) > 1e-4
    body = read_model(path).system.body("flap")
    assert body.frame_names == ("foot", "tip")


# Text of the file: (its replacement, part of the message).
CASES = {
    "mesh: bar.msh": ("mesh: bär.msh", "line 9: bodies.flap.model.mesh: "),
    "young: stiff, ": (
        "",
        "line 10: bodies.flap.model.material: the field 'young'",
    ),
    "poisson: 0.3": ("poison: 0.3", "did you mean 'poisson'?"),
    "foot: {}": ("foots: {}", "line 12: bodies.flap.interfaces.foots"),
    "facets: head": (
        "facets: haed",
        "line 14: bodies.flap.loads.wind.facets: unknown",
    ),
    "[0, force, 0]": ("[0, force*vx, 0]", "bodies.flap.loads.wind.value"),
    "radius: 1mm": ("radius: 1kg", "line 17: bodies.rope.cable.section.radius: '1kg'"),
    "material: steel": ("material: steal", "line 17: bodies.rope.cable.material: unknown material"),
    "{type: spherical": ("{type: fixed", "line 22: joints.hook: fixed joint 'hook' holds"),
    "    interfaces:": ("    energy: I1*K\n    interfaces:", "line 11: bodies.flap.energy"),
    "    loads: {wind": (
        "    relative_velocity: [1]\n    loads: {wind",
        "cannot contain this field",
    ),
}


@one_rank
@pytest.mark.parametrize("old", CASES)
def test_errors_have_line_and_cause(tmp_path: Path, old: str) -> None:
    written_mesh(bar(), tmp_path / "bar.msh")
    new, expected = CASES[old]
    assert old in FILE
    path = tmp_path / "flap.yaml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(ModelFileError) as error:
        read_model(path)
    assert expected in str(error.value)


@one_rank
def test_parts_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    from dolfinx.mesh import locate_entities_boundary

    mesh = bar()
    facets = locate_entities_boundary(mesh.mesh, 2, lambda x: np.isclose(x[0], 0.0))
    by_array = mbd.MeshBody("pad", mesh, {"end": mbd.InterfaceSpec(facets)}, material=RUBBER)
    with pytest.raises(InputError, match=r"bodies\.pad\.interfaces\.end\.facets: an array"):
        write_model(mbd.System([by_array]), tmp_path / "model.yaml")
    energy = mbd.MeshBody(
        "pad", mesh, material=RUBBER, energy=lambda u: mbd.forms.linear_elastic(u, RUBBER)
    )
    with pytest.raises(InputError, match=r"bodies\.pad\.energy: the function"):
        write_model(mbd.System([energy]), tmp_path / "model.yaml")
    assert not list(tmp_path.glob("*"))
