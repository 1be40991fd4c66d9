"""Run the cases of a part in processes of their own, so that a crash or a hang ends only one case.

A worker writes a line before and after each case. The supervisor reads them; a worker that dies or
stops writing has crashed or hangs in the case that it began, and another worker continues with the
next case.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.campaigns.cases import KINDS, Case, Outcome, stop

SEED = 13
SHORT = {"api": 600, "files": 400, "meshes": 20, "faults": 2, "kills": 30, "cli": 100}
"""Number of cases of the short form, on each number of ranks."""

MINUTES = {"api": 20, "files": 10, "meshes": 15, "faults": 15, "kills": 2, "cli": 5}
"""Time of the long form on two cores, with all kernels compiled."""

PARTS: dict[str, Sequence[int]] = {
    "api": (1,), "files": (1,), "meshes": (1, 2, 3), "faults": (1,), "kills": (1,),
    "cli": (1,),
}  # fmt: skip
"""Numbers of ranks of each part; the jobs of faults start ranks of their own."""

SILENCE = 150.0
"""Seconds without a line after which a worker counts as hanging."""

START = 600.0
"""Seconds for the start of a worker; the first one compiles the kernels."""

PROGRESS = 15.0
"""Seconds between two lines about the progress."""

MEMORY = 12 * 2**30
"""Bytes of address space of a worker: a call that asks for more gets a MemoryError."""

ROOT = Path(__file__).resolve().parents[2]


def run_part(
    part: str, *, short: bool = False, only: str | None = None, seed: int = SEED
) -> list[Outcome]:
    """Run all cases of a part on each of its numbers of ranks."""
    outcomes: list[Outcome] = []
    for ranks in PARTS[part][: 2 if short else None]:
        options = {"part": part, "short": short, "only": only, "seed": seed}
        with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
            outcomes += _supervise(options, Path(folder), ranks)
    return outcomes


def _supervise(options: Mapping[str, Any], folder: Path, ranks: int) -> list[Outcome]:
    """Run the cases in child processes, and start a new one if a child dies."""
    outcomes: list[Outcome] = []
    first, end, deaths = 0, False, 0
    progress = Progress(f"{options['part']}, {ranks} {'ranks' if ranks > 1 else 'rank'}")
    while not end:
        log = folder / f"log-{first}"
        log.touch()
        ending = _watch({**options, "first": first, "folder": str(folder)}, log, ranks, progress)
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
        done = [Outcome(**line["outcome"]) for line in lines if "outcome" in line]
        outcomes += done
        begun = [line for line in lines if "begin" in line]
        end = bool(lines) and "end" in lines[-1]
        if not end:
            deaths = 0 if begun else deaths + 1
            if deaths > 1 or not begun:
                tail = (folder / "stderr").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"no case was begun ({ending}):\n{tail}")
            last = begun[-1]
            kind = "hang" if ending == "silent" else "crash"
            if len(done) < len(begun):
                tail = (folder / "stderr").read_text(errors="replace")[-250:]
                outcomes.append(Outcome(*last["case"], kind, f"{ending}: {' '.join(tail.split())}"))
            first = last["begin"] + 1
    return outcomes


class Progress:
    """The progress of a part, shown on the standard error every now and then."""

    def __init__(self, title: str) -> None:
        self.title, self.start = title, time.monotonic()
        self.shown = self.start

    def show(self, log: Path) -> None:
        """Show the last case that was begun, unless a line was shown a short time ago."""
        now = time.monotonic()
        if now - self.shown < PROGRESS:
            return
        self.shown = now
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            tail = file.read().decode(errors="replace")
        begun = re.findall(r'^{"place": (\d+), "of": (\d+)', tail, re.MULTILINE)
        state = "starts" if not begun else "case {} of {}".format(*begun[-1])
        print(f"{self.title}: {state}, {now - self.start:.0f} s", file=sys.stderr, flush=True)


def _watch(options: Mapping[str, Any], log: Path, ranks: int, progress: Progress) -> str:
    """Run a worker until it ends or writes nothing for long; return how it ended."""
    command = [sys.executable, "-m", "tests.campaigns.runner", json.dumps(options), str(log)]
    if ranks > 1:
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
        command = [*mpirun, *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    environment["OMPI_MCA_mpi_yield_when_idle"] = "1"  # (more ranks than cores)
    with (log.parent / "stderr").open("wb") as stderr:
        worker = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=stderr, cwd=log.parent, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            size, moved = 0, time.monotonic()
            while worker.poll() is None:
                time.sleep(0.05)
                progress.show(log)
                now = log.stat().st_size
                if now != size:
                    size, moved = now, time.monotonic()
                if time.monotonic() - moved > (SILENCE if size else START):
                    return "silent"
        finally:  # (also if the user interrupts the campaign)
            if worker.poll() is None:
                stop(worker)
    return f"exit status {worker.returncode}"


def _work(options: Mapping[str, Any], log: Path) -> None:
    """Run the cases from the first one on, in this process."""
    import importlib

    from mpi4py import MPI

    from tests.campaigns.cases import attempt

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = Path(options["folder"]) / "work"
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    module = importlib.import_module(f"tests.campaigns.{options['part']}")
    rank = MPI.COMM_WORLD.rank
    with log.open("a", buffering=1) as file:

        def write(line: Mapping[str, Any]) -> None:
            if rank == 0:
                file.write(json.dumps(line) + "\n")

        cases = module.cases(folder, only=options["only"], seed=options["seed"])
        chosen = _chosen(cases, options)
        for place, (number, case) in enumerate(chosen, 1):
            if number < options["first"]:
                continue
            write(
                {
                    "place": place,
                    "of": len(chosen),
                    "begin": number,
                    "case": [case.group, case.item, case.attack],
                }
            )
            faulthandler.dump_traceback_later(2 * SILENCE, exit=True)  # (leaves no rank behind)
            outcome = attempt(case)
            outcomes = MPI.COMM_WORLD.gather(outcome)
            if rank == 0:
                write({"outcome": asdict(max(outcomes, key=lambda o: KINDS.index(o.kind)))})
        write({"end": True})


def _chosen(cases: Any, options: Mapping[str, Any]) -> list[tuple[int, Case]]:
    """Return the cases with their numbers; for the short form a random sample of them.

    The sample has equal numbers of cases of each group and item as far as possible.
    """
    numbered = list(enumerate(cases))
    if options["short"]:
        random.Random(options["seed"]).shuffle(numbered)
        seen: Counter[tuple[str, str]] = Counter()
        places = []
        for _, case in numbered:
            seen[case.group, case.item] += 1
            places.append(seen[case.group, case.item])
        order = sorted(range(len(numbered)), key=places.__getitem__)
        numbered = sorted(
            (numbered[k] for k in order[: SHORT[options["part"]]]), key=lambda entry: entry[0]
        )
    return numbered


def table(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Return a table of the numbers of cases by part and kind."""
    rows = [f"{'part':8}{'tried':>9}" + "".join(f"{kind:>9}" for kind in KINDS)]
    for part, results in outcomes.items():
        kinds = Counter(o.kind for o in results)
        rows.append(f"{part:8}{len(results):9}" + "".join(f"{kinds[kind]:9}" for kind in KINDS))
    return "\n".join(rows)


if __name__ == "__main__":
    _work(json.loads(sys.argv[1]), Path(sys.argv[2]))
