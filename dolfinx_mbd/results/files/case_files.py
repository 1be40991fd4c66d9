"""Reading and writing of the folder of a parameter study, with a file for each completed case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dolfinx_mbd.archive import read_archive
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.files import create_directory
from dolfinx_mbd.results.files.fingerprint import differences
from dolfinx_mbd.results.files.run_files import VERSION, RunFileError, run_kind, write_run

_KIND = run_kind("case of a study")

Outcome = tuple[dict[str, Any], dict[str, Any]]
"""Facts about a case, and its arrays by name."""


class CaseFiles:
    """Files of the cases of a study; without a folder, no files.

    Args:
        folder: The folder.
        identity: Digests that identify the study.
        code: Digests of the code of the study, for one version of Python.
    """

    def __init__(
        self,
        folder: Path | None,
        identity: Mapping[str, str],
        code: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.identity, self.code = folder, dict(identity), dict(code or {})

    def write(self, k: int, outcome: Outcome) -> None:
        """Write the outcome of case k, or warn if it cannot be written."""
        if self.folder is None:
            return
        facts, arrays = outcome
        header = {"identity": self.identity, "code": self.code, "case": k}
        header |= {"facts": facts, "names": list(arrays)}
        values = {f"value_{n}": array for n, array in enumerate(arrays.values())}
        try:
            write_run(self.folder / f"case-{k:06d}.npz", _KIND, header, values, in_folder=True)
        except OSError as error:
            warn(FileWarning(f"the study continues without the file of case {k}: {error}"))

    def read(self) -> dict[int, Outcome]:
        """Return the outcomes by case number; create the folder if it does not exist.

        Damaged files are skipped with a warning; files of another study raise a `RunFileError`. A
        warning names what has changed in the code since a case was computed.
        """
        outcomes: dict[int, Outcome] = {}
        changed: dict[str, list[int]] = {}
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
            for change in _code_changes(header.get("code", {}), self.code):
                changed.setdefault(change, []).append(header["case"])
        for change, cases in changed.items():
            text = f"{self.folder}: {change} since {len(cases)} of the saved cases were computed, "
            text += f"the first is case {cases[0]}. These results are returned unchanged; delete "
            text += "the folder, or choose another one, to compute them again"
            warn(FileWarning(text, quantity="saved cases", value=len(cases)))
        return outcomes


def _code_changes(saved: Mapping[str, str], current: Mapping[str, str]) -> list[str]:
    """Return descriptions of the changes of the code; files of earlier versions have no digests."""
    if not saved or not current:
        return []
    if saved["Python"] != current["Python"]:
        text = f"the code was not compared, because Python {saved['Python']} has been replaced by "
        return [f"{text}{current['Python']}"]
    names = [name for name in saved if current.get(name) != saved[name]]
    return [f"the code of {name!r}, or a constant that it uses, has changed" for name in names]
