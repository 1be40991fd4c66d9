"""Parts from CAD: a STEP file whose surfaces become interfaces.

A STEP file says its own unit of length; here all is in metres. Surfaces go by number: look at the
table that `step_surfaces` prints, and give the numbers a name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dolfinx_mbd.checks import file_path, instance, integer, name, number, refuse
from dolfinx_mbd.errors import FileError, InputError, InputTypeError, MissingFileError
from dolfinx_mbd.geometry.tools import mesh_volumes

__all__ = ["StepPart", "Surface", "step_surfaces"]


@dataclass(frozen=True, kw_only=True)
class StepPart:
    """The solids of a STEP file as a builder for `build_mesh` and `write_mesh`.

    Solids that touch share the nodes between them.

    Attributes:
        path: The file, ``.step`` or ``.stp``.
        interfaces: Name to numbers of surfaces, as `step_surfaces` lists them.
        size: Largest size of an element, m; None: a twentieth of the part's longest side.
        order: Order of the elements, 1 (straight) or 2 (curved).
        volumes: Name to numbers of solids; None: all of them are "part".

    Raises:
        MissingFileError: There is no such file.
        FileError: It is not a STEP file.
        InputError: A number or a name is not possible; when called, also for surfaces that are not
            in the file.
    """

    path: str | os.PathLike[str]
    interfaces: Mapping[str, Sequence[int]] = field(default_factory=dict)
    size: float | None = None
    order: int = 2
    volumes: Mapping[str, Sequence[int]] | None = None

    def __post_init__(self) -> None:
        _checked_path(self.path)
        if self.size is not None:
            number("size", self.size, low=1e-9, high=1e9, unit="m")
        integer("order", self.order, low=1, high=2)
        object.__setattr__(self, "interfaces", _tags("interfaces", self.interfaces))
        if self.volumes is not None:
            object.__setattr__(self, "volumes", _tags("volumes", self.volumes))

    def __call__(self, model: Any) -> None:
        """Add the part to a gmsh model, name its groups and mesh it."""
        with _in_metres():
            solids = _load(model, self.path)
        self._name(model, 3, "solid", self.volumes or {"part": solids})
        self._name(model, 2, "surface", self.interfaces)
        size = self.size
        if size is None:
            box = model.getBoundingBox(-1, -1)
            size = max(box[3 + i] - box[i] for i in range(3)) / 20
        mesh_volumes(model, solids, size, self.order)

    def _name(self, model: Any, dim: int, what: str, names: Mapping[str, Sequence[int]]) -> None:
        known = sorted(int(tag) for _, tag in model.getEntities(dim))
        used: dict[int, str] = {}
        for label, tags in names.items():
            for tag in tags:
                if tag not in known:
                    raise InputError(
                        f"{label!r}: there is no {what} {tag} in '{os.fspath(self.path)}'; it has "
                        f"{known[0]} to {known[-1]}"
                    )
                if tag in used:
                    raise InputError(f"{what} {tag} is in {used[tag]!r} and in {label!r}")
                used[tag] = label
            model.addPhysicalGroup(dim, list(tags), name=label)


def _tags(argument: str, groups: Any) -> dict[str, list[int]]:
    """Return the numbers of the surfaces or solids of each group."""
    result = {}
    for label, tags in instance(argument, groups, Mapping).items():
        what = f"{argument}[{name(f'every name in {argument}', label)!r}]"
        expected = "a list of numbers, not empty"
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            refuse(what, tags, expected, InputTypeError)
        result[label] = [integer(what, tag, low=1) for tag in tags]
        if not result[label]:
            refuse(what, tags, expected)
    return result


@dataclass(frozen=True)
class Surface:
    """A surface of a CAD part.

    Attributes:
        number: What `StepPart.interfaces` wants.
        kind: "Plane", "Cylinder", ...
        area: m².
        centre: Centroid, m.
        radius: Of a cylinder or a sphere, m; None for others.
    """

    number: int
    kind: str
    area: float
    centre: tuple[float, float, float]
    radius: float | None = None


def step_surfaces(path: str | os.PathLike[str]) -> list[Surface]:
    """The surfaces of a STEP file, to choose interfaces from.

    Raises:
        MissingFileError: There is no such file.
        FileError: It is not a STEP file.
        InputError: It holds no solids.

    Note: Not collective: under MPI, call it on one rank.
    """
    import gmsh

    _checked_path(path)
    mine = not gmsh.isInitialized()
    if mine:
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
    before = gmsh.model.getCurrent()
    gmsh.model.add("surfaces of a STEP file")
    try:
        with _in_metres():
            _load(gmsh.model, path)
        return [_surface(gmsh.model, int(tag)) for _, tag in gmsh.model.getEntities(2)]
    finally:
        gmsh.model.remove()
        if mine:
            gmsh.finalize()
        else:
            gmsh.model.setCurrent(before)


def _checked_path(path: str | os.PathLike[str]) -> None:
    file_path("path", path, (".step", ".stp"))
    if not Path(path).is_file():
        raise MissingFileError(f"no STEP file '{os.fspath(path)}'")
    with open(path, "rb") as file:
        start = file.read(200).lstrip()
    if not start.startswith(b"ISO-10303-21"):
        raise FileError(
            f"'{os.fspath(path)}' is not a STEP file: it starts with {start[:20]!r} instead of "
            "'ISO-10303-21'",
            path=path,
        )


@contextmanager
def _in_metres() -> Iterator[None]:
    import gmsh

    before = gmsh.option.getString("Geometry.OCCTargetUnit")
    gmsh.option.setString("Geometry.OCCTargetUnit", "M")
    try:
        yield
    finally:
        gmsh.option.setString("Geometry.OCCTargetUnit", before)


def _load(model: Any, path: str | os.PathLike[str]) -> list[int]:
    """The file's solids in the model, with common surfaces where they touch."""
    try:
        parts = model.occ.importShapes(os.fspath(path), highestDimOnly=True)
    except Exception as error:
        raise InputError(f"cannot read '{os.fspath(path)}' as STEP: {error}") from error
    solids = [part for part in parts if part[0] == 3]
    if not solids:
        raise InputError(f"'{os.fspath(path)}' holds no solids")
    if len(solids) > 1:
        model.occ.fragment(solids[:1], solids[1:])
    model.occ.synchronize()
    return [int(tag) for _, tag in model.getEntities(3)]


def _surface(model: Any, tag: int) -> Surface:
    kind = model.getType(2, tag)
    (u0, v0), (u1, v1) = model.getParametrizationBounds(2, tag)
    radius = None
    if kind in ("Cylinder", "Sphere"):
        curvature = model.getCurvature(2, tag, [(u0 + u1) / 2, (v0 + v1) / 2])
        radius = float(1 / curvature[0])
    x, y, z = model.occ.getCenterOfMass(2, tag)
    return Surface(tag, kind, float(model.occ.getMass(2, tag)), (x, y, z), radius)
