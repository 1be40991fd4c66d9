"""The commands `dolfinx-mbd run`, `check` and `schema` for model files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.cli.option_values import add_force, assignments, output_path, setting

if TYPE_CHECKING:
    from dolfinx_mbd.io.models import Model
    from dolfinx_mbd.results.solution import Solution

_DESCRIPTION = """\
Compute what a model file describes: a simulation, an equilibrium, a linearization, a periodic
motion or a study over parameters. The files are written to a folder.

  dolfinx-mbd run crank.yaml
  dolfinx-mbd run crank.yaml --set speed=900rpm --out results/fast
"""


def add_to(commands: Any) -> None:
    """Add `run`, `check` and `schema` to the commands."""
    parser = commands.add_parser(
        "run",
        help="compute what a model file describes",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_model(parser)
    parser.add_argument("--out", metavar="FOLDER", help="folder of the files (default: name)")
    text = "number of processes of a study (default: one for each core)"
    parser.add_argument("--workers", type=int, metavar="N", help=text)
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print progress")
    parser.set_defaults(run=_run)
    check = commands.add_parser("check", help="report all errors of a model file with their lines")
    _add_model(check)
    check.set_defaults(run=_check)
    schema = commands.add_parser("schema", help="write the JSON schema of model files, for editors")
    schema.add_argument("-o", "--output", help="file to write (default: print the schema)")
    add_force(schema)
    schema.set_defaults(run=_schema)


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Add the model file and the replacement of parameters to the arguments of a command."""
    parser.add_argument("file", help="model file (.yaml, .toml or .json)")
    text = "replace a parameter, for example speed=900rpm; the option can be repeated"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=text)


def _read_model_of(options: argparse.Namespace) -> Model:
    """Return the model of a file with the parameters of --set."""
    from dolfinx_mbd.io.models import read_model

    values = {k: setting(v) for k, v in assignments(options.set, "--set").items()}
    return read_model(options.file, values)


def _check(options: argparse.Namespace) -> int:
    """Print the mechanism of a model file, or its errors; return 1 if there are errors."""
    from dolfinx_mbd.io.models import ModelFileError

    try:
        model = _read_model_of(options)
    except ModelFileError as error:
        return _print_errors(error.errors)
    print(model.system)
    print()
    if errors := _assembly_errors(options.file, model):
        return _print_errors(errors)
    print(f"{options.file}: no errors")
    return 0


def _print_errors(errors: list[str]) -> int:
    """Print errors and their number to stderr, and return the exit code."""
    for line in errors:
        print(line, file=sys.stderr)
    count = len(errors)
    print(f"dolfinx-mbd: {count} {'error' if count == 1 else 'errors'}", file=sys.stderr)
    return 1


def _assembly_errors(path: str, model: Model) -> list[str]:
    """Return the errors that the analyses would raise at the start position.

    Redundant constraints that all analyses of the file accept are printed as notes.
    """
    from dolfinx_mbd.dynamics import AssemblyError, redundancies
    from dolfinx_mbd.io.models.documents import read_document

    document, system = read_document(path), model.system
    try:
        redundant = redundancies(system)
    except AssemblyError as error:
        return [document.message((), str(error))]
    # Analyses that redundant constraints stop; equilibria and linearizations accept them
    strict = [name for name in ("simulate", "periodic") if name in model.analyses]
    strict = [n for n in strict if model.analyses[n].get("redundant", "stop") == "stop"]
    places: dict[tuple[str, ...], list[str]] = {}
    joints = len(system.joints)
    for each in redundant:
        entry = int(system.row_entry[each.row])  # number of a joint or, after them, of a driver
        place: tuple[str, ...] = ("mechanism",)
        if "mechanism" not in document.data:
            is_joint = entry < joints
            part = system.joints[entry] if is_joint else system.drivers[entry - joints]
            place = "joints" if is_joint else "drivers", part.name
        places.setdefault(place, []).append(str(each))
    texts = [
        document.message(place, f"redundant in this position: {'; '.join(names)}")
        for place, names in places.items()
    ]
    if strict:
        advice = "Use a joint with fewer constraints (in a planar mechanism one revolute, "
        advice += "otherwise cylindrical and spherical joints) or the entry 'redundant: drop' in "
        return [f"{text}. {advice}{' and '.join(map(repr, strict))}" for text in texts]
    for text in texts:
        print(f"note: {text}")
    return []


def _schema(options: argparse.Namespace) -> int:
    """Print the JSON schema, or write it to a file."""
    from dolfinx_mbd.files import write_atomically
    from dolfinx_mbd.io.models import schema

    text = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    if options.output is None:
        print(text, end="")
        return 0
    path = output_path(options.output, None, ".json", options.force)
    write_atomically(path, lambda file: _write(file, text), "JSON schema")
    print(f"wrote {path}")
    return 0


def _write(file: Any, text: str) -> None:
    """Write a text in UTF-8."""
    file.write(text.encode())


def _run(options: argparse.Namespace) -> int:
    """Run the analyses of a model file."""
    model = _read_model_of(options)
    if not model.analyses:
        raise InputError(
            f"'{options.file}' contains no analysis; add a section such as "
            "'simulate: {t_end: 0.1, dt: 1e-4}'"
        )
    folder = Path(options.out) if options.out else Path(Path(options.file).stem)
    if model.sweep:
        return _study(options, model, folder)
    if "simulate" in model.analyses:
        _simulate(model, folder, progress=not options.quiet)
    if "equilibrium" in model.analyses or "linearize" in model.analyses:
        _equilibrium(model, folder)
    if "periodic" in model.analyses:
        _cycle(model, folder)
    return 0


def _rank() -> int:
    """Return the rank of this process."""
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.rank)


def _simulate(model: Model, folder: Path, *, progress: bool) -> None:
    """Simulate and write the files that the model requests."""
    from dolfinx_mbd.analyses import simulate

    run = simulate(model.system, progress=progress, **model.analyses["simulate"])
    print(f"simulated {run.time[-1]:.6g} s, {len(run.time)} saved instants")
    if _rank() > 0:
        return
    _write_histories(model, run, folder / "run")
    if "picture" in model.results:
        from dolfinx_mbd.plotting import plot_system

        plot_system(model.system, path=folder / "mechanism.png")
        print(f"wrote {folder / 'mechanism.png'}")


def _write_histories(model: Model, run: Solution, path: Path) -> None:
    """Write the table, the dataset and the page of a run on request; `path` has no suffix."""
    if "csv" in model.results:
        print(f"wrote {run.to_csv(path.with_suffix('.csv'))}")
    if "netcdf" in model.results:
        path.parent.mkdir(parents=True, exist_ok=True)
        run.to_xarray().to_netcdf(path.with_suffix(".nc"))
        print(f"wrote {path.with_suffix('.nc')}")
    if "page" in model.results:
        from dolfinx_mbd.plotting import player

        player(run, path.with_suffix(".html"), title=model.title)
        print(f"wrote {path.with_suffix('.html')}")


def _cycle(model: Model, folder: Path) -> None:
    """Find the periodic motion, print its stability, and write its files."""
    from dolfinx_mbd.analyses import periodic

    cycle = periodic(model.system, **model.analyses["periodic"])
    print(f"periodic motion: {cycle.stability}, period {cycle.period:.9g} s")
    if _rank() == 0:
        _write_histories(model, cycle, folder / "cycle")
        _write_table(folder / "multipliers.csv", "real,imag", cycle.multipliers)


def _write_table(path: Path, header: str, values: Iterable[complex]) -> None:
    """Write complex numbers to a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (f"{value.real:.12g},{value.imag:.12g}\n" for value in values)
    path.write_text("".join([f"{header}\n", *rows]))
    print(f"wrote {path}")


def _equilibrium(model: Model, folder: Path) -> None:
    """Find the equilibrium, print it and, on request, the linearization about it."""
    from dolfinx_mbd.analyses import equilibrium, linearize

    state = equilibrium(model.system, **model.analyses.get("equilibrium", {}))
    rows = [["body", "x [m]", "y [m]", "z [m]", "e0", "e1", "e2", "e3"]]
    for body, part in zip(model.system.bodies, model.system.q_slices, strict=True):
        if body.num_coordinates >= 7:
            rows.append([body.name, *(f"{x:.12g}" for x in state.q[part][:7])])
    for row in rows:
        print("  ".join(f"{entry:>14}" for entry in row))
    if _rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "equilibrium.csv"
        path.write_text("".join(",".join(row) + "\n" for row in rows))
        print(f"wrote {path}")
    if "linearize" in model.analyses:
        linear = linearize(model.system, state, **model.analyses["linearize"])
        print(linear.summary())
        if _rank() == 0:
            _write_table(folder / "poles.csv", "real [1/s],imag [1/s]", linear.poles)


def _simulated_case(model: str, **parameters: float) -> Any:
    """Return the run of one case of a study; `model` is the path of the model file."""
    from dolfinx_mbd.analyses import simulate
    from dolfinx_mbd.io.models import read_model

    case = read_model(model, parameters)
    return simulate(case.system, **case.analyses["simulate"])


def _study(options: argparse.Namespace, model: Model, folder: Path) -> int:
    """Simulate all combinations of the values of a study, and write one dataset."""
    from dolfinx_mbd.analyses import sweep

    if "simulate" not in model.analyses:
        raise InputError(f"'{options.file}': a sweep needs the section 'simulate'")
    fixed = {"model": str(Path(options.file).resolve())}
    overrides = {k: setting(v) for k, v in assignments(options.set, "--set").items()}
    values = {name: list(entries) for name, entries in model.sweep.items()}
    for name in overrides.keys() & values.keys():
        raise InputError(f"--set {name}: the model varies this parameter in its section 'sweep'")
    folder.mkdir(parents=True, exist_ok=True)
    dataset = sweep(
        _simulated_case,
        values,
        fixed={**fixed, **overrides},
        workers=options.workers,
        path=folder / "cases",
        progress=not options.quiet,
    )
    failed = int((dataset.case_status != "done").sum())
    path = folder / "sweep.nc"
    dataset.to_netcdf(path)
    print(f"{dataset.case_status.size} cases, {failed} failed\nwrote {path}")
    return 1 if failed else 0
