"""Parameter studies in files: one file, a table, and the folder of a study that is being done.

A folder holds ``plan.npz``, what is to be done, and a file for each case that is done. Each appears
under its name only when it is complete, so that a study that is killed goes on where it was.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import damage_as, read_archive
from dolfinx_mbd.checks import choice, file_path
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.files import write_aside
from dolfinx_mbd.multibody.files.fingerprint import differences, digest
from dolfinx_mbd.multibody.files.run_files import (
    RunFileError,
    is_table,
    run_kind,
    table_cell,
    write_run,
)
from dolfinx_mbd.multibody.studies.identity import function_name, identity
from dolfinx_mbd.multibody.studies.outcomes import Call, Outcome
from dolfinx_mbd.multibody.studies.plan import Plan, as_array, shown

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.studies.study import Study

__all__ = ["StudyFolder", "assembled", "load_study", "save_study", "write_study_csv"]

_STUDY, _PLAN, _CASE = (
    run_kind(title, version=2) for title in ("study", "plan of a study", "case of a study")
)
_FEW = 12  # entries of a result that a table has columns for by itself


# ---- the folder of a study ----------------------------------------------------------------------


class StudyFolder:
    """Where the cases of a study are kept as they are done.

    Args:
        path: Of the folder; it is made if it is not there.
        call: What is done.

    Attributes:
        study: Digest of the study, once the folder is open; other processes that write cases are
            given it.

    Raises:
        RunFileError: If the folder is that of another study; the message says what differs.
        OSError: If it cannot be made or read.
    """

    def __init__(self, path: str | Path, call: Call) -> None:
        self.path, self.call = Path(path), call
        self.study = ""

    def open(self) -> dict[int, Outcome]:
        """Make the folder, or check that it is of this study; the cases that are done there."""
        parts = identity(self.call)
        self.study = digest(parts)
        self.path.mkdir(parents=True, exist_ok=True)
        plan = self.path / "plan.npz"
        if not plan.exists() or not any(self.path.glob("case-*.npz")):
            header, arrays = _plan_rows(self.call.plan, function_name(self.call.run))
            write_run(plan, _PLAN, {**header, "parts": parts}, arrays)
        else:
            header, _ = read_archive(plan, _PLAN)
            with damage_as(_PLAN, plan):
                found = differences(header["parts"], parts)
            if found:
                raise RunFileError(
                    f"{self.path}: holds another study: {', '.join(found)}. Give another path, or "
                    "delete this one",
                    path=self.path,
                )
        return _finished(self.path, self.study)

    def write(self, k: int, outcome: Outcome) -> None:
        """Write a case; that it cannot be written does not end the study."""
        values, error, trace, seconds = outcome
        header = {
            "study": self.study,
            "index": k,
            "names": list(values),
            "error": error,
            "traceback": trace,
            "seconds": seconds,
        }
        arrays = {f"value_{n}": value for n, value in enumerate(values.values())}
        try:
            write_run(_file(self.path, k), _CASE, header, arrays, in_folder=True)
        except OSError as problem:
            warn(FileWarning(f"the study goes on without: {problem}"))


def _file(folder: Path, k: int) -> Path:
    return folder / f"case-{k:06d}.npz"


def _finished(folder: Path, study: str) -> dict[int, Outcome]:
    """Cases of a folder; a warning for one that cannot be read, which is then to be done again."""
    outcomes = {}
    for path in sorted(folder.glob("case-*.npz")):
        try:
            header, arrays = read_archive(path, _CASE)
            with damage_as(_CASE, path):
                if header["study"] != study:
                    raise RunFileError(f"{path}: belongs to another study", path=path)
                values = {name: arrays[f"value_{n}"] for n, name in enumerate(header["names"])}
                outcomes[int(header["index"])] = Outcome(
                    values, header["error"], header["traceback"], float(header["seconds"])
                )
        except RunFileError as problem:
            warn(FileWarning(f"a case is left out: {problem}"))
    return outcomes


# ---- one file -----------------------------------------------------------------------------------


def save_study(study: Study, path: str | Path) -> Path:
    """See :meth:`~dolfinx_mbd.multibody.studies.study.Study.save`."""
    header, arrays = _plan_rows(study.plan, study.function)
    header["cases"] = [
        [case.index, case.error, case.traceback, case.seconds, case.done] for case in study.cases
    ]
    results = []
    for n, name in enumerate(study.names()):
        rows = [k for k, case in enumerate(study.cases) if name in case.values]
        values = [study.cases[k].values[name] for k in rows]
        if len({(v.shape, v.dtype.str) for v in values}) == 1:
            arrays[f"result_{n}"] = np.array(values)
        else:
            arrays |= {f"result_{n}_{k}": v for k, v in zip(rows, values, strict=True)}
        results.append([name, rows])
    return write_run(path, _STUDY, {**header, "results": results}, arrays)


def load_study(path: str | Path) -> Study:
    """See :meth:`~dolfinx_mbd.multibody.studies.study.Study.load`."""
    path = file_path("path", path)
    if path.is_dir():
        plan_file = path / "plan.npz"
        header, arrays = read_archive(plan_file, _PLAN)
        with damage_as(_PLAN, plan_file):
            plan, study = _plan(header, arrays), digest(header["parts"])
            function = str(header["function"])
        return assembled(plan, _finished(path, study), function)
    header, arrays = read_archive(path, _STUDY)
    with damage_as(_STUDY, path):
        plan = _plan(header, arrays)
        values: list[dict[str, NDArray[Any]]] = [{} for _ in range(len(plan))]
        for n, (name, rows) in enumerate(header["results"]):
            together = arrays.get(f"result_{n}")
            for place, k in enumerate(rows):
                one = arrays[f"result_{n}_{k}"] if together is None else together[place]
                values[k][name] = np.asarray(one)
        return _study(plan, header["cases"], values, header["function"])


def assembled(plan: Plan, outcomes: Mapping[int, Outcome], function: str) -> Study:
    """The study of these outcomes by case; the other cases are missing."""
    rows, values = [], []
    for k in range(len(plan)):
        given = outcomes.get(k)
        rows.append([k, *given[1:], True] if given else [k, None, "", 0.0, False])
        values.append(given.values if given else {})
    return _study(plan, rows, values, function)


def _study(plan: Plan, rows: Sequence[Any], values: Sequence[Any], function: str) -> Study:
    from dolfinx_mbd.multibody.studies.study import Case, Study

    cases = [
        Case(index, plan.case(k), given, error, trace, seconds, done)
        for k, ((index, error, trace, seconds, done), given) in enumerate(
            zip(rows, values, strict=True)
        )
    ]
    return Study(plan, cases, function)


def _plan_rows(plan: Plan, function: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a plan; what is no number and no string by its name."""
    arrays = {}
    lists = {**plan.values, **{name: (value,) for name, value in plan.held.items()}}
    for n, given in enumerate(lists.values()):
        array = as_array(given)
        arrays[f"parameter_{n}"] = (
            np.array([shown(value) for value in given]) if array.dtype == object else array
        )
    header = {
        "names": list(plan.values),
        "held": list(plan.held),
        "combine": plan.combine,
        "function": function,
    }
    return {**header, "units": "SI: m, kg, s, rad"}, arrays


def _plan(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Plan:
    values = {}
    for n, name in enumerate([*header["names"], *header["held"]]):
        array = arrays[f"parameter_{n}"]
        values[name] = tuple(array.tolist() if array.ndim == 1 else array)
    held = {name: values.pop(name)[0] for name in header["held"]}
    return Plan(values, header["combine"], held)


# ---- a table ------------------------------------------------------------------------------------


def write_study_csv(study: Study, path: str | Path, names: Sequence[str] | None) -> Path:
    """See :meth:`~dolfinx_mbd.multibody.studies.study.Study.to_csv`."""
    path = file_path("path", path)
    if names is not None:
        known = [*study.plan.values, *study.plan.held, *study.names()]
        for name in checked_names("names", names):
            choice("every entry of names", name, known)
    else:
        sizes = {
            name: max(c.values[name].size for c in study.cases if name in c.values)
            for name in study.names()
        }
        names = [name for name, size in sizes.items() if size <= _FEW]
    tables = {name: study[name].reshape(len(study), -1) for name in names}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    parameters = list(study.cases[0].parameters)
    columns = [
        name if array.shape[1] == 1 else f"{name}.{n + 1}"
        for name, array in tables.items()
        for n in range(array.shape[1])
    ]
    head = ["case", *parameters, *columns, "status", "seconds", "error"]
    table.writerow(map(table_cell, head))
    for k, case in enumerate(study.cases):
        own = [v if isinstance(v, (int, float)) else shown(v) for v in case.parameters.values()]
        results = [value for array in tables.values() for value in array[k].tolist()]
        row = [case.index, *own, *results, case.status, round(case.seconds, 3), case.error or ""]
        table.writerow([table_cell(x) if isinstance(x, str) else x for x in row])

    def write(file: BinaryIO) -> None:
        file.write(text.getvalue().encode())

    return write_aside(path, write, "table", replaces=is_table)
