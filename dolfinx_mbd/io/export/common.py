"""The function `export`, and the file formats with the features that each can store.

For each format a function `write_<format>(task, *, <options>)` writes the body of a `Task` (already
in the requested units) and returns `task.save(...)`. Files of formats with comments state the
units. All text is ASCII; see `ascii_labels`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import choice, file_path, flag, instance, reject
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.io.export.text import write_text
from dolfinx_mbd.io.export.units import SI, Units, as_units, scaled

_LOSSES = {
    "mass properties": "contains no mass properties: define mass, centre and inertia tensor in the "
    "program",
    "inertia invariants": "contains no inertia invariants: gyroscopic and centrifugal terms are "
    "lost",
    "second-order inertia": "contains the inertia to first order in the elastic coordinates only",
    "spin stiffening": "contains no geometric stiffness due to rotation: the body does not stiffen "
    "at high speeds",
    "force stiffening": "contains no geometric stiffness due to interface forces: stiffening in "
    "tension and softening in compression are lost",
    "damping": "contains no damping matrix: define the damping in the program",
    "interface rotations": "contains no rotations of nodes: joints do not rotate with interfaces",
    "interface axes": "is written without the axes of the interfaces: nodes have the axes of the "
    "body frame",
    "shapes": "contains no shapes of the surface: pictures of the deformed body are not possible",
    "stress modes": "is written without the stress modes: recover the stress with dolfinx_mbd from "
    "the elastic coordinates over time",
    "strain gauges": "contains no strain gauges: multiply the rows of the gauges by the elastic "
    "coordinates over time",
    "distributed loads": "contains no distributed loads: define their forces in the program",
    "named points": "contains no named points: they have no nodes there",
    "elastic bores": "contains no elastic bores: oil films there act on round bores only",
}
"""Message by name of a feature, for formats that cannot store this feature of a body."""


def _features(body: ReducedBody) -> dict[str, bool]:
    """Return for each feature in `_LOSSES` whether a body has it."""
    modes, interfaces = body.num_modes > 0, len(body.interfaces) > 0
    return {
        "mass properties": True,
        "inertia invariants": modes,
        "second-order inertia": modes,
        "spin stiffening": body.stiffening is not None,
        "force stiffening": body.stiffening is not None and interfaces,
        "damping": bool(body.damping.any()),
        "interface rotations": modes and interfaces,
        "interface axes": any(not np.allclose(i.axes, np.eye(3)) for i in body.interfaces),
        "shapes": body.skin is not None,
        "stress modes": body.stress is not None,
        "strain gauges": bool(body.gauges),
        "distributed loads": bool(body.loads),
        "named points": bool(body.points),
        "elastic bores": bool(body.bores),
    }


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: Name of the format.
        title: Name of the format in messages.
        extension: Extension that is added to paths without an extension.
        holds: Names of the features that the format can store.
        needs: Parts that a body must have: `interfaces`, `modes` and `a skin`.
        options: Names of the options of the format; `OPTIONS` describes them.

    Example:
        >>> FORMATS["dmig"].extension
        '.pch'
        >>> len(FORMATS["dmig"].losses(body)) > 0
        True
    """

    name: str
    title: str
    extension: str
    holds: frozenset[str]
    needs: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()

    @property
    def cannot_hold(self) -> tuple[str, ...]:
        """Sentences about all features that this format cannot store."""
        return self._sentences(_LOSSES)

    @property
    def writer(self) -> Callable[..., ExportReport]:
        """The function that writes the format."""
        is_matrix_format = self.name in ("abaqus", "dmig", "op4", "simscape")
        file = "matrix_formats" if is_matrix_format else self.name
        module = importlib.import_module(f"dolfinx_mbd.io.export.{file}")
        return getattr(module, f"write_{self.name}")  # type: ignore[no-any-return]

    def losses(self, body: ReducedBody) -> tuple[str, ...]:
        """Return sentences about the features of a body that this format cannot store."""
        features = _features(instance("body", body, ReducedBody))
        return self._sentences(name for name, present in features.items() if present)

    @property
    def for_pictures(self) -> bool:
        """Whether the format stores shapes only, so that no program can simulate the body."""
        return self.holds == {"shapes"}

    def _sentences(self, features: Iterable[str]) -> tuple[str, ...]:
        """Return sentences about those of the features that this format cannot store."""
        if self.for_pictures:
            return (f"{self.title} contains shapes for pictures and no data for a simulation",)
        return tuple(f"{self.title} {_LOSSES[name]}" for name in features if name not in self.holds)

    def check(self, body: ReducedBody) -> None:
        """Raise an error if a body lacks interfaces, modes or a skin that the format requires."""
        instance("body", body, ReducedBody)
        for name, argument, present in (
            ("interfaces", "interfaces=[...]", bool(body.interfaces)),
            ("modes", "num_modes > 0", body.num_modes > 0),
            ("a skin", "skin=True", body.skin is not None and len(body.skin.triangles) > 0),
        ):
            if name in self.needs and not present:
                hint = f"reduce {body.name!r} with {argument}"
                reject("body", body, f"a body with {name} for {self.title}", hint=hint)


def _formats() -> Iterator[Format]:
    """Yield the formats, from a table with the features that each of them loses."""
    stiffening = ("spin stiffening", "force stiffening")
    # lost by files of matrices
    matrices = ("inertia invariants", "shapes", "named points", *stiffening)
    second, axes = "second-order inertia", "interface axes"
    points, both = "interfaces", "interfaces, modes"
    platform = "interface held gravity loads"
    abaqus = {*matrices, "damping", axes}
    always_lost = {"distributed loads", "elastic bores", "strain gauges", "stress modes"}
    for name, title, extension, losses, needs, options in (
        ("abaqus", "Abaqus substructure", ".mtx", abaqus, points, "interfaces first_node"),
        ("dmig", "Nastran DMIG", ".pch", {*matrices, axes}, points, "interfaces first_point"),
        ("exudyn", "Exudyn", ".npz", {*stiffening, "damping", axes}, "modes", ""),
        ("extptfm", "OpenFAST ExtPtfm", ".dat", {*matrices, axes}, points, platform),
        ("gltf", "glTF", ".glb", {*_LOSSES} - {"shapes"}, "modes, a skin", "amplitude"),
        ("mbdyn", "MBDyn", ".fem", {axes}, both, "skin"),
        ("op4", "Nastran OP4", ".op4", {*matrices, axes}, points, "interfaces"),
        ("sid", "SID_FEM", ".SID_FEM", {second, axes}, both, "dialect skin"),
        ("simscape", "Simscape", ".mat", {*matrices}, points, "interfaces"),
    ):
        features = frozenset(_LOSSES) - always_lost - losses
        needed = frozenset(needs.split(", "))
        yield Format(name, title, extension, features, needed, tuple(options.split()))


OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "amplitude": "largest displacement of a mode relative to the size of the body (0.08)",
        "dialect": "program that reads the file: simpack (default), embslib or fembeam",
        "gravity": "gravity for constant loads, m/s² ((0, 0, -9.80665))",
        "held": "interfaces that are fixed on the ground, such as ['base'] (all others)",
        "interface": "interface with the turbine (the first)",
        "loads": "CSV file with the amplitudes of distributed loads over time (none)",
        "first_node": "number of the first interface node (1)",
        "first_point": "number of the first interface grid (1)",
        "interfaces": "interfaces in the order of the file, such as ['left', 'right'] (all)",
        "skin": "True writes the nodes of the surface, for pictures (False)",
    }
)
"""Descriptions of the options of the formats, with their defaults."""

FORMATS: Mapping[str, Format] = MappingProxyType({f.name: f for f in _formats()})
"""Formats by name."""


@dataclass(frozen=True)
class ExportReport:
    """The result of an export.

    Attributes:
        format: Name of the format.
        units: Units of the numbers.
        paths: Files that were written; the other program opens the first one.
        losses: Sentences about features of the body that the format cannot store; may be empty.
        notes: Sentences about the use of the file.

    Example:
        >>> report = export(body, "beam", "mbdyn", units="mm-t-s")
        >>> report.paths[0].name
        'beam.fem'
    """

    format: str
    units: Units
    paths: tuple[Path, ...] = ()
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        files = ", ".join(str(path) for path in self.paths) or "nothing"
        return "\n".join([f"wrote {files} ({self.units.statement})", *self.losses, *self.notes])


@dataclass(frozen=True)
class Task:
    """A body to write in one format, after the checks that are common to all formats."""

    body: ReducedBody  # in the units of the file
    original: ReducedBody  # in SI units
    path: Path  # with its extension
    report: ExportReport  # format, units and losses
    overwrite: bool

    def save(
        self,
        content: Iterable[str] | Callable[[BinaryIO], None],
        *,
        losses: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> ExportReport:
        """Write the file from lines of ASCII text or by a function; return the complete report."""
        title = f"{FORMATS[self.report.format].title} file"
        if callable(content):
            path = write_atomically(self.path, content, title, replaces=lambda _: self.overwrite)
        else:
            path = write_text(self.path, content, title, overwrite=self.overwrite)
        all_losses, all_notes = (*self.report.losses, *losses), (*self.report.notes, *notes)
        return replace(self.report, paths=(path,), losses=all_losses, notes=all_notes)


def requested_skin(body: ReducedBody, skin: bool) -> tuple[Skin | None, list[str]]:
    """Return the skin to write or None, and a message if the body's skin is not written."""
    if flag("skin", skin) and body.skin is None:
        reject("skin", skin, f"False: body {body.name!r} was reduced without skin=True")
    lost = not skin and body.skin is not None
    losses = ["the surface was not written; skin=True writes it"] if lost else []
    return (body.skin if skin else None), losses


_UNDAMPED = (
    "the body has no damping of its own (mechanisms of dolfinx_mbd add a default damping): define "
    "the damping in the program, or export body.with_damping(...)"
)
"""Note for bodies without damping."""


def export(
    body: ReducedBody,
    path: str | Path,
    format: str,
    *,
    units: Units | str = SI,
    overwrite: bool = False,
    **options: Any,
) -> ExportReport:
    """Write a reduced body for another program.

    Args:
        body: The body, in SI units.
        path: File to write; the extension of the format is added to a path without an extension.
            Missing directories are created.
        format: A name in `FORMATS`.
        units: Units of the numbers in the file: a name `LENGTH-MASS-TIME`, such as `mm-t-s`, or
            your own `Units`.
        overwrite: Whether to replace an existing file. By default an error is raised unless an
            existing file has the same content.
        **options: Options of the format; see `FORMATS[format].options` and `OPTIONS`.

    Returns:
        A report with the files and with the features of the body that the format cannot store.

    Raises:
        InputError: The format, the units or the value of an option is unknown, or the body lacks
            interfaces or modes that the format requires.
        TypeError: The format has no such option.
        ImportError: The package that writes the format is not installed.
        OverwriteError: The file exists with different content.
        OSError: The file cannot be written; no part of it remains.

    Example:
        >>> report = export(body, "beam", "sid", dialect="fembeam")
        >>> print(report)
        wrote beam.SID_FEM (m-kg-s: length m, mass kg, time s, force N, rad)
        ...
    """
    flag("overwrite", overwrite)
    chosen_format = FORMATS[choice("format", format, FORMATS)]
    units = as_units(units)
    chosen_format.check(body)
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_name(path.name + chosen_format.extension)
    undamped = body.num_modes > 0 and not body.damping.any()
    notes = (_UNDAMPED,) if undamped and not chosen_format.for_pictures else ()
    report = ExportReport(format, units, losses=chosen_format.losses(body), notes=notes)
    return chosen_format.writer(Task(scaled(body, units), body, path, report, overwrite), **options)
