"""Meshing of parts from STEP files, with selected surfaces as interfaces.

Lengths are converted to metres from the unit that the STEP file states. Surfaces are selected by
the numbers that `step_surfaces` returns.

A damaged STEP file can crash gmsh's CAD kernel. Therefore files are read and meshed in a separate
process, and a crash becomes an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, astuple, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import file_path, instance, integer, metres, name, number, reject
from dolfinx_mbd.errors import FileError, InputTypeError, MissingFileError
from dolfinx_mbd.geometry.gmsh_model import gmsh_session, longest_side, mesh_volumes
from dolfinx_mbd.geometry.separate_process import CrashError, call_separately
from dolfinx_mbd.optional import optional_module


@dataclass(frozen=True)
class StepPart:
    """A builder for `build_mesh` and `write_mesh` that meshes the solids of a STEP file.

    Solids in contact share the nodes on their common surface.

    Attributes:
        path: The file, `.step` or `.stp`.
        interfaces: Numbers of surfaces (see `step_surfaces`) by name of the interface.
        size: Largest element size, m, or with a unit, such as ``5mm``; by default 1/20 of the
            longest side of the part.
        order: Order of the elements, 1 (straight) or 2 (curved).
        volumes: Numbers of solids by name; by default all solids form the region "part".

    Raises:
        MissingFileError: The file does not exist.
        FileError: The file is not a STEP file. Calling the part also raises this error if the file
            is damaged or contains no solids.
        InputError: A number or a name is invalid. Calling the part also raises this error for
            surfaces and solids that the file does not contain.

    Example:
        >>> from mpi4py import MPI
        >>> pin = StepPart("pin.step", interfaces={"side": [1]}, size=0.02, order=1)
        >>> mesh = mbd.build_mesh(pin, MPI.COMM_SELF)
        >>> sorted(mesh.groups)
        ['part', 'side']
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    interfaces: Mapping[str, Sequence[int]] = field(default_factory=dict)
    size: float | str | None = None
    order: int = 2
    volumes: Mapping[str, Sequence[int]] | None = None

    def __post_init__(self) -> None:
        _check_path(self.path)
        if self.size is not None:
            size = number("size", metres(self.size), low=1e-9, high=1e9, unit="m")
            assign(self, size=size)
        integer("order", self.order, low=1, high=2)
        assign(self, interfaces=_tags("interfaces", self.interfaces))
        if self.volumes is not None:
            assign(self, volumes=_tags("volumes", self.volumes))

    def __call__(self, model: Any) -> None:
        """Add the mesh of the part and its named groups to the current gmsh model."""
        gmsh = optional_module("gmsh", "STEP files")
        with TemporaryDirectory(prefix="dolfinx_mbd-") as folder:
            file = str(Path(folder, "part.msh"))
            _separately(
                _mesh,
                self.path,
                file=file,
                interfaces=self.interfaces,
                volumes=self.volumes,
                size=self.size,
                order=self.order,
            )
            gmsh.merge(file)


def _separately(work: Callable[..., Any], path: str | os.PathLike[str], **arguments: Any) -> Any:
    """Call a function of the path in a separate process; a crash becomes an error of the file."""
    file = os.path.abspath(path)
    try:
        return call_separately(work, path=file, name=os.fspath(path), **arguments)
    except CrashError as error:
        text = f"cannot read '{os.fspath(path)}': {error}; the file is damaged"
        raise FileError(f"{text}; export it again from CAD", path=path) from None


def _mesh(
    path: str,
    name: str,
    file: str,
    interfaces: Mapping[str, Sequence[int]],
    volumes: Mapping[str, Sequence[int]] | None,
    size: float | None,
    order: int,
) -> None:
    """Mesh the solids of a STEP file and write the mesh to a `.msh` file."""
    with gmsh_session() as gmsh:
        model = gmsh.model
        with _metre_units():
            solids = _load(model, path, name)
        _add_groups(model, 3, "volumes", volumes or {"part": solids})
        _add_groups(model, 2, "interfaces", interfaces)
        if size is None:
            size = longest_side(model) / 20
        mesh_volumes(model, solids, size, order)
        gmsh.option.setNumber("Mesh.Binary", 1)
        gmsh.write(file)


def _add_groups(model: Any, dim: int, argument: str, groups: Mapping[str, Sequence[int]]) -> None:
    """Add physical groups; raise an error for unknown numbers and for numbers in two groups."""
    numbers = sorted(int(tag) for _, tag in model.getEntities(dim))
    owners: dict[int, str] = {}
    for label, tags in groups.items():
        for tag in tags:
            if tag not in numbers:
                reject(f"{argument}[{label!r}]", tag, f"numbers from {numbers[0]} to {numbers[-1]}")
            if tag in owners:
                reject(f"{argument}[{label!r}]", tag, f"different from those of {owners[tag]!r}")
            owners[tag] = label
        model.addPhysicalGroup(dim, list(tags), name=label)


def _tags(argument: str, groups: Any) -> dict[str, list[int]]:
    """Return the numbers of the surfaces or solids of each group."""
    result = {}
    for label, tags in instance(argument, groups, Mapping).items():
        entry = f"{argument}[{name(f'every name in {argument}', label)!r}]"
        expected = "a list of numbers, not empty"
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            reject(entry, tags, expected, InputTypeError)
        result[label] = [integer(entry, tag, low=1) for tag in tags]
        if not result[label]:
            reject(entry, tags, expected)
    return result


@dataclass(frozen=True)
class Surface:
    """A surface of a CAD part.

    Attributes:
        number: Number of the surface for `StepPart.interfaces`.
        kind: "Plane", "Cylinder", ...
        area: Area, m².
        centre: Centroid, m.
        radius: Radius of a cylinder or a sphere, m; None for other surfaces.
    """

    number: int
    kind: str
    area: float
    centre: tuple[float, float, float]
    radius: float | None = None


def step_surfaces(path: str | os.PathLike[str]) -> list[Surface]:
    """Return the surfaces of a STEP file.

    Args:
        path: The file, `.step` or `.stp`.

    Raises:
        MissingFileError: The file does not exist.
        FileError: The file is not a STEP file, is damaged, or contains no solids.

    Warns:
        FileWarning: gmsh ignored parts of the file.

    Note: Not collective: under MPI, call it on one rank.

    Example:
        >>> [(surface.kind, surface.radius) for surface in step_surfaces("pin.step")]
        [('Cylinder', 0.01...), ('Plane', None), ('Plane', None)]
    """
    _check_path(path)
    rows = _separately(_surfaces, path)
    return [Surface(n, kind, area, tuple(x), radius) for n, kind, area, x, radius in rows]


def _surfaces(path: str, name: str) -> list[tuple[Any, ...]]:
    """Return the attributes of the surfaces of a STEP file."""
    with gmsh_session() as gmsh, _metre_units():
        _load(gmsh.model, path, name)
        return [astuple(_surface(gmsh.model, int(tag))) for _, tag in gmsh.model.getEntities(2)]


def _check_path(path: str | os.PathLike[str]) -> None:
    """Raise an error if the path is not that of a STEP file."""
    file_path("path", path, (".step", ".stp"))
    if not Path(path).is_file():
        raise MissingFileError(f"no STEP file '{os.fspath(path)}'")
    with open(path, "rb") as file:
        start = file.read(200).lstrip()
    if not start.startswith(b"ISO-10303-21"):
        text = f"it starts with {start[:20]!r} instead of 'ISO-10303-21'"
        raise FileError(f"'{os.fspath(path)}' is not a STEP file: {text}", path=path)


@contextmanager
def _metre_units() -> Iterator[None]:
    """Set the unit of imported shapes to metres, and restore it afterwards."""
    gmsh = optional_module("gmsh", "STEP files")
    unit = gmsh.option.getString("Geometry.OCCTargetUnit")
    gmsh.option.setString("Geometry.OCCTargetUnit", "M")
    try:
        yield
    finally:
        gmsh.option.setString("Geometry.OCCTargetUnit", unit)


def _load(model: Any, path: str, name: str) -> list[int]:
    """Add the solids of a file to a model, with common surfaces at contacts; return their tags."""
    try:
        parts = model.occ.importShapes(path, highestDimOnly=True)
    except Exception as error:
        raise FileError(f"gmsh cannot read '{name}': {error}", path=name) from error
    solids = [part for part in parts if part[0] == 3]
    if not solids:
        raise FileError(f"'{name}' contains no solids", path=name)
    if len(solids) > 1:
        model.occ.fragment(solids[:1], solids[1:])
    model.occ.synchronize()
    return [int(tag) for _, tag in model.getEntities(3)]


def _surface(model: Any, tag: int) -> Surface:
    """Return the description of one surface of a model."""
    kind = model.getType(2, tag)
    radius = None
    if kind in ("Cylinder", "Sphere"):
        (u0, v0), (u1, v1) = model.getParametrizationBounds(2, tag)
        radius = float(1 / model.getCurvature(2, tag, [(u0 + u1) / 2, (v0 + v1) / 2])[0])
    x, y, z = model.occ.getCenterOfMass(2, tag)
    return Surface(tag, kind, float(model.occ.getMass(2, tag)), (x, y, z), radius)
