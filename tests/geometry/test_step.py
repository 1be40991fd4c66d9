"""Parts from STEP files: units, surfaces by number, several solids that touch."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import (
    FileError,
    FileWarning,
    InputError,
    MeshWarning,
    MissingFileError,
    warn,
)
from dolfinx_mbd.geometry import StepPart, step_surfaces
from dolfinx_mbd.geometry.separate_process import CrashError, call_separately

gmsh = pytest.importorskip("gmsh")


def write_step(path: Path, *, two: bool = False) -> None:
    """Write a plate of 100×40×10 mm with a central bore of 20 mm, or two adjacent plates."""
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setString("Geometry.OCCTargetUnit", "MM")  # after a file was read it is metres
        occ = gmsh.model.occ
        box = occ.addBox(0, 0, 0, 100, 40, 10)
        bore = occ.addCylinder(50, 20, 0, 0, 0, 10, 10)
        occ.cut([(3, box)], [(3, bore)])
        if two:
            occ.addBox(100, 0, 0, 50, 40, 10)
        occ.synchronize()
        gmsh.write(str(path))
    finally:
        gmsh.finalize()


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both STEP files."""
    comm = MPI.COMM_WORLD
    path: Path = comm.bcast(tmp_path_factory.mktemp("step"), root=0)
    if comm.rank == 0:
        write_step(path / "plate.step")
        write_step(path / "two.stp", two=True)
    comm.Barrier()
    return path


@pytest.fixture
def plate(parts: Path) -> Path:
    """Return the path of the file with one plate."""
    return parts / "plate.step"


def bores(path: Path, comm: MPI.Intracomm) -> list[int]:
    """Return the numbers of the cylindrical surfaces of a file."""
    surfaces = step_surfaces(path) if comm.rank == 0 else None
    return [s.number for s in comm.bcast(surfaces, root=0) if s.kind == "Cylinder"]


def volume(mesh: mbd.fem.TaggedMesh) -> float:
    """Return the volume of a mesh."""
    one = fem.form(fem.Constant(mesh.mesh, 1.0) * ufl.dx)
    return float(mesh.mesh.comm.allreduce(fem.assemble_scalar(one)))


def test_surfaces_are_listed_in_metres(plate: Path, comm: MPI.Intracomm) -> None:
    if comm.rank == 0:
        surfaces = step_surfaces(plate)
        assert len(surfaces) == 7
        (bore,) = (s for s in surfaces if s.kind == "Cylinder")
        assert bore.radius == pytest.approx(0.010, rel=1e-9)
        assert bore.area == pytest.approx(2 * math.pi * 0.010 * 0.010, rel=1e-9)
        assert np.allclose(bore.centre, [0.05, 0.02, 0.005], atol=1e-9)
        assert all(s.radius is None for s in surfaces if s.kind == "Plane")
        assert not gmsh.isInitialized()


def test_a_bore_becomes_an_interface(plate: Path, comm: MPI.Intracomm) -> None:
    part = StepPart(path=plate, interfaces={"bore": bores(plate, comm)}, size="8mm")
    mesh = mbd.build_mesh(part, comm)
    assert volume(mesh) == pytest.approx(0.01 * (0.1 * 0.04 - math.pi * 0.01**2), rel=1e-4)
    facets = comm.allreduce(len(mesh.facets("bore")))
    assert facets > 20


def test_solids_that_touch_are_one_body(parts: Path, comm: MPI.Intracomm) -> None:
    part = StepPart(path=parts / "two.stp", size=0.02, order=1, volumes={"plate": [1], "end": [2]})
    mesh = mbd.build_mesh(part, comm)
    assert set(mesh.groups) == {"plate", "end"}
    modes = mbd.modal_analysis(mbd.ElasticModel(mesh, mbd.STEEL, degree=1), num_modes=1)
    assert modes.num_rigid == 6


@pytest.mark.parametrize(
    ("interfaces", "argument", "value", "expected"),
    [
        ({"bore": [70]}, "interfaces['bore']", 70, "from 1 to 7"),
        ({"a": [1], "b": [1]}, "interfaces['b']", 1, "different from those of 'a'"),
    ],
)
def test_bad_parts(
    plate: Path, comm: MPI.Intracomm, interfaces: dict, argument: str, value: int, expected: str
) -> None:
    with pytest.raises(InputError) as error:
        mbd.build_mesh(StepPart(path=plate, interfaces=interfaces), comm)
    assert (error.value.argument, error.value.value) == (argument, value)
    assert expected in (error.value.expected or "")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("size", 0.0),
        ("size", 1e300),
        ("size", "fine"),
        ("order", 3),
        ("interfaces", [1]),
        ("interfaces['a']", []),
        ("interfaces['a']", "12"),
        ("volumes['a']", [1.5]),
    ],
)
def test_bad_arguments(plate: Path, argument: str, value: Any) -> None:
    name, inside, _ = argument.partition("[")
    with pytest.raises(InputError) as error:
        StepPart(path=plate, **{name: {"a": value} if inside else value})
    assert error.value.argument == argument


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        StepPart(path=tmp_path / "none.step")
    with pytest.raises(InputError) as exc_info:
        StepPart(path=tmp_path / "part.igs")
    assert exc_info.value.argument == "path"
    for content in ("not a STEP file", "ISO-10303-21; damaged"):
        (tmp_path / "broken.step").write_text(content)
        with pytest.raises(FileError) as error:
            step_surfaces(tmp_path / "broken.step")
        assert error.value.path == str(tmp_path / "broken.step")


def test_a_file_that_is_not_step(tmp_path: Path) -> None:
    """The header is checked before gmsh sees the file."""
    path = tmp_path / "part.step"
    path.write_text(f'SystemCall "touch {tmp_path}/executed";\n')
    for call in (lambda: StepPart(path=path), lambda: step_surfaces(path)):
        with pytest.raises(FileError) as error:
            call()
        assert error.value.path == str(path)
    assert not (tmp_path / "executed").exists()


def test_a_part_by_position(plate: Path) -> None:
    assert StepPart(plate) == StepPart(path=plate)


def test_elements_larger_than_the_part(plate: Path, comm: MPI.Intracomm) -> None:
    """The error suggests that the size is in millimetres."""
    with pytest.raises(InputError) as error:
        mbd.build_mesh(StepPart(plate, size=5.0), comm)
    assert error.value.argument == "size"


def damaged(plate: Path, folder: Path, pattern: str, text: str) -> Path:
    """Return a copy of a STEP file with the first match of a pattern replaced."""
    path = folder / "damaged.step"
    changed, count = re.subn(pattern, text, plate.read_text(), count=1)
    assert count == 1
    path.write_text(changed)
    return path


def test_a_crash_of_the_cad_kernel_is_an_error(
    plate: Path, tmp_path: Path, comm: MPI.Intracomm
) -> None:
    """A line without its direction makes OpenCASCADE use a null pointer."""
    path = damaged(plate, tmp_path, r"(VECTOR\('[^']*',)#\d+", r"\1#99999")
    for call in (
        lambda: step_surfaces(path),
        lambda: mbd.build_mesh(StepPart(path, size=0.02, order=1), comm),
    ):
        with pytest.raises(FileError, match="the file is damaged") as error:
            call()
        assert error.value.path is not None
        assert Path(error.value.path).name == path.name  # rank 0 reads it, in a folder of its own
    assert not gmsh.isInitialized()


def test_ignored_lines_are_reported(plate: Path, tmp_path: Path) -> None:
    """Without the circle of an edge the surfaces are still there; without a plane no solid is."""
    path = damaged(plate, tmp_path, r"CIRCLE\(", "CIRCLE[")
    with pytest.warns(FileWarning, match=r"ignored.*Incorrect Syntax"):
        assert len(step_surfaces(path)) == 7
    with pytest.raises(FileError, match="no solids"):
        step_surfaces(damaged(plate, tmp_path, r"PLANE\(", "PLANE["))


def stop(path: str) -> None:
    """Crash the process."""
    os.abort()


def warn_and_fail(path: str) -> None:
    """Give a warning and raise an error."""
    warn(MeshWarning("large", quantity="cells", value=3.0, limit=2.0))
    raise InputError("wrong", argument="path", value=path, expected="another")


def test_errors_and_warnings_of_a_separate_process() -> None:
    with pytest.raises(CrashError, match="SIGABRT"):
        call_separately(stop, path="x")
    with pytest.warns(MeshWarning) as records, pytest.raises(InputError, match=r"^wrong$") as error:
        call_separately(warn_and_fail, path="x")
    assert (error.value.argument, error.value.value, error.value.expected) == (
        "path",
        "x",
        "another",
    )
    item = records[0].message
    assert isinstance(item, MeshWarning)
    assert (item.quantity, item.value, item.limit) == ("cells", 3.0, 2.0)
