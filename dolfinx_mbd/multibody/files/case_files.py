"""The folder of a parameter study, with a file for each case that has been done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dolfinx_mbd.archive import read_archive
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.multibody.files.fingerprint import differences
from dolfinx_mbd.multibody.files.run_files import VERSION, RunFileError, run_kind, write_run

__all__ = ["CaseFiles"]

_KIND = run_kind("case of a study")

Outcome = tuple[dict[str, Any], dict[str, Any]]


class CaseFiles:
    """The files of the cases of a study.

    Args:
        folder: The folder; None for no files.
        identity: Digests by name, which identify the study.
    """

    def __init__(self, folder: Path | None, identity: Mapping[str, str]) -> None:
        self.folder, self.identity = folder, dict(identity)

    def write(self, k: int, outcome: Outcome) -> None:
        """Write the outcome of case k (facts, and arrays by name); a warning if that fails."""
        if self.folder is None:
            return
        facts, arrays = outcome
        header = {"identity": self.identity, "case": k, "facts": facts, "names": list(arrays)}
        values = {f"value_{n}": array for n, array in enumerate(arrays.values())}
        try:
            write_run(self.folder / f"case-{k:06d}.npz", _KIND, header, values, in_folder=True)
        except OSError as error:
            warn(FileWarning(f"the study goes on without the file of case {k}: {error}"))

    def read(self) -> dict[int, Outcome]:
        """Return the outcomes in the folder, which is created if it does not exist, by case.

        Warns:
            FileWarning: A file is damaged; its case is left out.

        Raises:
            RunFileError: The folder belongs to another study; the message names the differences.
            OSError: The folder cannot be created.
        """
        outcomes: dict[int, Outcome] = {}
        if self.folder is None:
            return outcomes
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.folder.glob("case-*.npz")):
            try:
                header, arrays = read_archive(path, _KIND)
                if header["version"] < VERSION:
                    raise RunFileError(f"{path} is of an earlier version", path=path)
            except RunFileError as error:
                warn(FileWarning(f"a case is left out: {error}"))
                continue
            changes = differences(header["identity"], self.identity)
            if changes:
                raise RunFileError(
                    f"{self.folder} holds another study: {', '.join(changes)}. Choose another "
                    "folder, or delete this one",
                    path=self.folder,
                )
            values = (arrays[f"value_{n}"] for n in range(len(arrays)))
            outcomes[header["case"]] = (
                header["facts"],
                dict(zip(header["names"], values, strict=True)),
            )
        return outcomes
