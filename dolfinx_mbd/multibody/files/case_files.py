"""Reading and writing of the folder of a parameter study, with a file for each completed case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dolfinx_mbd.archive import read_archive
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.files import create_directory
from dolfinx_mbd.multibody.files.fingerprint import differences
from dolfinx_mbd.multibody.files.run_files import VERSION, RunFileError, run_kind, write_run

_KIND = run_kind("case of a study")

Outcome = tuple[dict[str, Any], dict[str, Any]]  # facts, and arrays by name


class CaseFiles:
    """Files of the cases of a study with the digests `identity`; without a folder, no files."""

    def __init__(self, folder: Path | None, identity: Mapping[str, str]) -> None:
        self.folder, self.identity = folder, dict(identity)

    def write(self, k: int, outcome: Outcome) -> None:
        """Write the outcome of case k, or warn if it cannot be written."""
        if self.folder is None:
            return
        facts, arrays = outcome
        header = {"identity": self.identity, "case": k, "facts": facts, "names": list(arrays)}
        values = {f"value_{n}": array for n, array in enumerate(arrays.values())}
        try:
            write_run(self.folder / f"case-{k:06d}.npz", _KIND, header, values, in_folder=True)
        except OSError as error:
            warn(FileWarning(f"the study continues without the file of case {k}: {error}"))

    def read(self) -> dict[int, Outcome]:
        """Return the outcomes by case number; create the folder if it does not exist.

        Damaged files are skipped with a warning; files of another study raise a `RunFileError`.
        """
        outcomes: dict[int, Outcome] = {}
        if self.folder is None:
            return outcomes
        create_directory(self.folder)
        for path in sorted(self.folder.glob("case-*.npz")):
            try:
                header, arrays = read_archive(path, _KIND)
                if header["version"] < VERSION:
                    raise RunFileError(f"{path} was written by an earlier version", path=path)
            except RunFileError as error:
                warn(FileWarning(f"a case is skipped: {error}"))
                continue
            changes = differences(header["identity"], self.identity)
            if changes:
                raise RunFileError(
                    f"{self.folder} contains another study: {', '.join(changes)}. Choose another "
                    "folder, or delete this one",
                    path=self.folder,
                )
            values = (arrays[f"value_{n}"] for n in range(len(arrays)))
            named = dict(zip(header["names"], values, strict=True))
            outcomes[header["case"]] = header["facts"], named
        return outcomes
