"""What all exports share: the formats, what they cannot hold, and how a writer of one is made.

Each format has a module of its name with one public function

    write(body, path, *, units="m-kg-s", overwrite=False, <options of the format>) -> ExportReport

that a caller reaches through :func:`export` or directly.  It

1. takes the body in SI and calls :func:`prepare` first, which returns the body in the wanted units,
   checks what the format needs, and says what it cannot hold (from ``FORMATS[name].holds``);
2. states the units (``units.statement``) in the file, where the format has room for a comment;
3. writes with :func:`write_text` or :func:`write_binary`, which leave either the whole file or
   nothing, and of several files that belong together the one that refers to the others last;
4. returns ``report.with_files(...)``, with further losses and notes if there are any.

Text is ASCII: names of people's own go through :func:`ascii_labels` (identifiers) or
:func:`ascii_text` (comments).
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
from dolfinx_mbd.export.text import ascii_labels, ascii_text, number_lines, write_binary, write_text
from dolfinx_mbd.export.units import SI, UNITS, Units, as_units, scaled

__all__ = [
    "FORMATS",
    "SI",
    "UNITS",
    "ExportReport",
    "Format",
    "Units",
    "as_units",
    "ascii_labels",
    "ascii_text",
    "export",
    "format_named",
    "number_lines",
    "prepare",
    "scaled",
    "write_binary",
    "write_text",
]


def _coupled(body: ReducedBody) -> bool:
    return body.num_modes > 0


#: What a body may have: by its name, whether a body has it, and what is lost without it.
_FEATURES: Mapping[str, tuple[Callable[[ReducedBody], bool], str]] = {
    "mass properties": (
        lambda body: True,
        "holds no mass properties: give the program mass, centre and inertia tensor by other means",
    ),
    "inertia invariants": (
        _coupled,
        "holds no inertia invariants: gyroscopic and centrifugal terms are lost",
    ),
    "second-order inertia": (
        _coupled,
        "holds inertia to first order in the elastic coordinates only",
    ),
    "spin stiffening": (
        lambda body: body.stiffening is not None,
        "holds no geometric stiffness of spins: the body does not stiffen by fast rotation",
    ),
    "force stiffening": (
        lambda body: body.stiffening is not None and len(body.interfaces) > 0,
        "holds no geometric stiffness of interface forces: "
        "stiffening in tension and softening in compression are lost",
    ),
    "damping": (
        lambda body: bool(body.damping.any()),
        "holds no damping matrix: set the damping in the program",
    ),
    "interface rotations": (
        lambda body: len(body.interfaces) > 0 and body.num_modes > 0,
        "holds no rotations of nodes: joints cannot turn with the interfaces",
    ),
    "interface axes": (
        lambda body: any(not np.allclose(i.axes, np.eye(3)) for i in body.interfaces),
        "is written without the axes of the interfaces: nodes have those of the body frame",
    ),
    "shapes": (
        lambda body: body.skin is not None,
        "holds no shapes of the surface: no pictures of the deformed body",
    ),
    "stress modes": (
        lambda body: body.stress is not None,
        "is written without the stress modes: stress comes from this package, of the elastic "
        "coordinates over time",
    ),
    "distributed loads": (
        lambda body: bool(body.loads),
        "holds no distributed loads: give the program their forces by other means",
    ),
}

#: What no format here holds.
_NOWHERE = frozenset({"distributed loads", "stress modes"})


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: Its name, and that of the module that writes it.
        title: What it is, for a person.
        extension: Added to a path that has none.
        holds: What it can hold, of the names of features above; the rest is lost and said.
        needs: What a body must have: any of ``interfaces``, ``modes``, ``skin``.
    """

    name: str
    title: str
    extension: str
    holds: frozenset[str]
    needs: frozenset[str] = frozenset()

    @property
    def cannot_hold(self) -> tuple[str, ...]:
        """What is lost of a body that has everything, in sentences."""
        return tuple(self._lost(name) for name in _FEATURES if name not in self.holds)

    @property
    def writer(self) -> Callable[..., ExportReport]:
        """Its function ``write``; the module is imported when it is first asked for."""
        module = importlib.import_module(f"dolfinx_mbd.export.{self.name}")
        return module.write  # type: ignore[no-any-return]

    def losses(self, body: ReducedBody) -> tuple[str, ...]:
        """What this format loses of this body, in sentences."""
        instance("body", body, ReducedBody)
        return tuple(
            self._lost(name)
            for name, (has, _) in _FEATURES.items()
            if name not in self.holds and has(body)
        )

    def _lost(self, feature: str) -> str:
        return f"{self.title} {_FEATURES[feature][1]}"

    def check(self, body: ReducedBody) -> None:
        """Refuse a body without what the format needs.

        Raises:
            ValueError: Naming what is missing and what to do.
        """
        instance("body", body, ReducedBody)
        missing = {
            "interfaces": (not body.interfaces, "interfaces; reduce it with interfaces=[...]"),
            "modes": (body.num_modes == 0, "elastic coordinates; reduce it with num_modes > 0"),
            "skin": (body.skin is None, "skin; reduce it with skin=True"),
        }
        for name in sorted(self.needs):
            lacks, what = missing[name]
            if lacks:
                raise InputError(
                    f"{self.title} needs what body {body.name!r} does not have: {what}"
                )


def _format(name: str, title: str, extension: str, lost: Iterable[str], *needs: str) -> Format:
    holds = frozenset(_FEATURES) - _NOWHERE - set(lost)
    return Format(name, title, extension, holds, frozenset(needs))


_STIFFENING = ("spin stiffening", "force stiffening")
_MATRICES_ONLY = ("inertia invariants", "shapes", *_STIFFENING)

#: Formats by name.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        f.name: f
        for f in (
            _format(
                "abaqus",
                "Abaqus substructure",
                ".mtx",
                (*_MATRICES_ONLY, "damping", "interface axes"),
                "interfaces",
            ),
            _format(
                "dmig", "Nastran DMIG", ".pch", (*_MATRICES_ONLY, "interface axes"), "interfaces"
            ),
            _format(
                "exudyn", "Exudyn", ".npz", (*_STIFFENING, "damping", "interface axes"), "modes"
            ),
            _format("mbdyn", "MBDyn", ".fem", ("interface axes",), "interfaces", "modes"),
            _format(
                "op4", "Nastran OP4", ".op4", (*_MATRICES_ONLY, "interface axes"), "interfaces"
            ),
            _format(
                "sid",
                "SID_FEM",
                ".SID_FEM",
                ("second-order inertia", "interface axes"),
                "interfaces",
                "modes",
            ),
            _format("simscape", "Simscape", ".mat", _MATRICES_ONLY, "interfaces"),
        )
    }
)


def format_named(name: str) -> Format:
    """The format of a name.

    Raises:
        ValueError: If there is none of this name; the message lists those known.
    """
    return FORMATS[choice("format", name, FORMATS)]


@dataclass(frozen=True)
class ExportReport:
    """What was written.

    Attributes:
        format: Name of the format.
        units: Units of the numbers.
        paths: The files, the one to give to the program first.
        losses: What the format cannot hold of this body, a sentence each; may be empty.
        notes: What to know when the file is used, a sentence each.
    """

    format: str
    units: Units
    paths: tuple[Path, ...] = ()
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def with_files(
        self, *paths: Path, losses: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> ExportReport:
        """The report with the files that were written, and further losses and notes."""
        return replace(
            self,
            paths=(*self.paths, *paths),
            losses=(*self.losses, *losses),
            notes=(*self.notes, *notes),
        )

    def __str__(self) -> str:
        files = ", ".join(str(path) for path in self.paths) or "nothing"
        return "\n".join([f"wrote {files} ({self.units.statement})", *self.losses, *self.notes])


_UNDAMPED = (
    "the body has no damping of its own (mechanisms of this package add some when they use it): "
    "set it in the program, or export body.with_damping(...)"
)


def prepare(
    body: ReducedBody, path: str | Path, name: str, units: Units | str
) -> tuple[ReducedBody, Path, ExportReport]:
    """The first step of each writer: body in its units, path with its extension, report so far.

    Raises:
        ValueError: If the units are unknown or the body lacks what the format needs.
    """
    target, units = format_named(name), as_units(units)
    target.check(body)
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_name(path.name + target.extension)
    notes = () if body.damping.any() or not body.num_modes else (_UNDAMPED,)
    report = ExportReport(name, units, losses=target.losses(body), notes=notes)
    return scaled(body, units), path, report


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
        body: The body, in SI.
        path: The file; the format's extension is added if it has none.
        format: One of ``FORMATS``.
        units: The units of the numbers in the file, a name of ``UNITS`` or one's own.
        overwrite: Replace a file that is there already; without it only a file that has the same
            content, as when a script is run again, is accepted.
        **options: Of the format's own; see ``write`` in its module.

    Returns:
        What was written, and what the format cannot hold of this body.

    Raises:
        ValueError: If the format or the units are unknown, or the body lacks what the format needs.
        TypeError: If the format has no such option.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written; then nothing is left of it.
    """
    flag("overwrite", overwrite)
    writer = format_named(format).writer
    return writer(body, path, units=units, overwrite=overwrite, **options)
