"""File formats of other programs, what each of them can hold, and `export`.

Each format has a module of the same name with a function

    write(task, *, <options of the format>) -> ExportReport

which takes a `Task` and writes its body, which is already in the requested units. It states the
units in the file where the format has comments, and returns `task.report.with_files(...)`. Files
are written by `write_text` and `write_binary`, completely or not at all, and text is ASCII: see
`ascii_labels` for identifiers and `ascii_text` for comments.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import choice, file_path, flag, instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.export.units import SI, Units, as_units, scaled

__all__ = ["FORMATS", "ExportReport", "Format", "Task", "export"]

_FEATURES: Mapping[str, tuple[Callable[[ReducedBody], bool], str]] = {
    "mass properties": (
        lambda body: True,
        "contains no mass properties: define mass, centre and inertia tensor in the program",
    ),
    "inertia invariants": (
        lambda body: body.num_modes > 0,
        "contains no inertia invariants: gyroscopic and centrifugal terms are lost",
    ),
    "second-order inertia": (
        lambda body: body.num_modes > 0,
        "contains the inertia to first order in the elastic coordinates only",
    ),
    "spin stiffening": (
        lambda body: body.stiffening is not None,
        "contains no geometric stiffness of spins: the body does not stiffen in fast rotation",
    ),
    "force stiffening": (
        lambda body: body.stiffening is not None and len(body.interfaces) > 0,
        "contains no geometric stiffness of interface forces: "
        "stiffening in tension and softening in compression are lost",
    ),
    "damping": (
        lambda body: bool(body.damping.any()),
        "contains no damping matrix: define the damping in the program",
    ),
    "interface rotations": (
        lambda body: len(body.interfaces) > 0 and body.num_modes > 0,
        "contains no rotations of nodes: joints cannot turn with the interfaces",
    ),
    "interface axes": (
        lambda body: any(not np.allclose(i.axes, np.eye(3)) for i in body.interfaces),
        "is written without the axes of the interfaces: nodes have those of the body frame",
    ),
    "shapes": (
        lambda body: body.skin is not None,
        "contains no shapes of the surface: pictures of the deformed body are not possible",
    ),
    "stress modes": (
        lambda body: body.stress is not None,
        "is written without the stress modes: recover the stress with dolfinx_mbd from the elastic "
        "coordinates over time",
    ),
    "distributed loads": (
        lambda body: bool(body.loads),
        "contains no distributed loads: define their forces in the program",
    ),
}
"""Features of a body by name: whether a body has it, and the loss in a format without it."""

_UNSUPPORTED = frozenset({"distributed loads", "stress modes"})
"""Features that no format supports."""

_NEEDS = {
    "interfaces": (lambda body: bool(body.interfaces), "interfaces=[...]"),
    "modes": (lambda body: body.num_modes > 0, "num_modes > 0"),
}
"""What a format may require: whether a body has it, and the argument of `reduce` for it."""


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: Name of the format and of the module that writes it.
        title: Name of the format in messages.
        extension: Extension for paths without one.
        holds: Names of the features that the format can hold.
        needs: Requirements, any of `interfaces` and `modes`.

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

    @property
    def cannot_hold(self) -> tuple[str, ...]:
        """Sentences about the losses of a body with all features."""
        return tuple(
            f"{self.title} {loss}"
            for name, (_, loss) in _FEATURES.items()
            if name not in self.holds
        )

    @property
    def writer(self) -> Callable[..., ExportReport]:
        """The function `write` of the format."""
        module = importlib.import_module(f"dolfinx_mbd.export.{self.name}")
        return module.write  # type: ignore[no-any-return]

    def losses(self, body: ReducedBody) -> tuple[str, ...]:
        """Return sentences about the features of a body that this format cannot hold."""
        instance("body", body, ReducedBody)
        return tuple(
            f"{self.title} {loss}"
            for name, (present, loss) in _FEATURES.items()
            if name not in self.holds and present(body)
        )

    def check(self, body: ReducedBody) -> None:
        """Raise an error if a body lacks something that this format requires."""
        instance("body", body, ReducedBody)
        for name in sorted(self.needs):
            present, argument = _NEEDS[name]
            if not present(body):
                expected = f"a body with {name} for {self.title}"
                raise InputError(
                    f"body must be {expected}; reduce {body.name!r} with {argument}",
                    argument="body",
                    value=body,
                    expected=expected,
                )


def _formats() -> Iterable[Format]:
    stiffening = ("spin stiffening", "force stiffening")
    matrices = ("inertia invariants", "shapes", *stiffening)
    both = "interfaces modes"
    for name, title, extension, losses, needs in (
        ("abaqus", "Abaqus substructure", ".mtx", {*matrices, "damping", "interface axes"}, ""),
        ("dmig", "Nastran DMIG", ".pch", {*matrices, "interface axes"}, ""),
        ("exudyn", "Exudyn", ".npz", {*stiffening, "damping", "interface axes"}, "modes"),
        ("mbdyn", "MBDyn", ".fem", {"interface axes"}, both),
        ("op4", "Nastran OP4", ".op4", {*matrices, "interface axes"}, ""),
        ("sid", "SID_FEM", ".SID_FEM", {"second-order inertia", "interface axes"}, both),
        ("simscape", "Simscape", ".mat", {*matrices}, ""),
    ):
        needed = frozenset((needs or "interfaces").split())
        features = frozenset(_FEATURES) - _UNSUPPORTED - losses
        yield Format(name, title, extension, features, needed)


FORMATS: Mapping[str, Format] = MappingProxyType({f.name: f for f in _formats()})
"""Formats by name."""


@dataclass(frozen=True)
class ExportReport:
    """The result of an export.

    Attributes:
        format: Name of the format.
        units: Units of the numbers.
        paths: The files; the first one is the one that the program opens.
        losses: Sentences about features of the body that the format cannot hold; may be empty.
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

    def with_files(
        self, *paths: Path, losses: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> ExportReport:
        """Return the report with further files, losses and notes."""
        return replace(
            self,
            paths=(*self.paths, *paths),
            losses=(*self.losses, *losses),
            notes=(*self.notes, *notes),
        )

    def __str__(self) -> str:
        files = ", ".join(str(path) for path in self.paths) or "nothing"
        return "\n".join([f"wrote {files} ({self.units.statement})", *self.losses, *self.notes])


@dataclass(frozen=True)
class Task:
    """A body to be written in one format, after the checks that all formats share.

    Attributes:
        body: The body in the units of the file.
        original: The body in SI units.
        path: The file, with its extension.
        report: The report so far: format, units and losses.
        overwrite: Whether to replace an existing file with different content.
    """

    body: ReducedBody
    original: ReducedBody
    path: Path
    report: ExportReport
    overwrite: bool


_UNDAMPED = (
    "the body has no damping of its own (mechanisms of dolfinx_mbd add some when they use it): "
    "define it in the program, or export body.with_damping(...)"
)


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
        path: The file; the extension of the format is added if it has none.
        format: A name in `FORMATS`.
        units: Units of the numbers in the file: a name in `UNITS`, or your own `Units`.
        overwrite: Whether to replace an existing file. By default only a file with the same content
            is accepted, for example if a script runs again.
        **options: Options of the format; see `write` in the module of the format.

    Returns:
        The files, and the features of the body that the format cannot hold.

    Raises:
        InputError: The format, the units or an option is unknown, or the body lacks something that
            the format requires.
        TypeError: The format has no such option.
        OverwriteError: The file exists with different content.
        OSError: The file cannot be written; no part of it remains.

    Example:
        >>> report = export(body, "beam", "sid", dialect="fembeam")
        >>> print(report)
        wrote beam.SID_FEM (m-kg-s: length m, mass kg, time s, force N, rad)
        ...
    """
    flag("overwrite", overwrite)
    target = FORMATS[choice("format", format, FORMATS)]
    units = as_units(units)
    target.check(body)
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_name(path.name + target.extension)
    notes = () if body.damping.any() or not body.num_modes else (_UNDAMPED,)
    report = ExportReport(format, units, losses=target.losses(body), notes=notes)
    task = Task(scaled(body, units), body, path, report, overwrite)
    return target.writer(task, **options)
