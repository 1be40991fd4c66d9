"""Faults on one rank: the job must end with an error on all ranks, and not hang.

Each case runs a job of its own. It replaces a function of the package, on one rank, by one that
raises, and calls the package; see `_job`. A case passes if the job ends in time, fails, and names
the fault.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.campaigns.cases import Case, TimeUpError, stop

ROOT = Path(__file__).resolve().parents[2]
TIME = 60.0
"""Seconds after which a job counts as hanging."""

PLACES = {
    "read": ("dolfinx_mbd.fem.meshing", "TaggedMesh.__post_init__"),
    "assemble": ("dolfinx_mbd.reduction.reducer", "elastic_problem"),
    "interfaces": ("dolfinx_mbd.reduction.reducer", "mesh_interfaces"),
    "modes": ("dolfinx_mbd.reduction.craig_bampton", "CraigBampton.__init__"),
    "inertia": ("dolfinx_mbd.reduction.reducer", "inertia"),
    "skin": ("dolfinx_mbd.reduction.reducer", "surface_skin"),
    "body": ("dolfinx_mbd.body.reduced_body", "ReducedBody.__post_init__"),
    "save": ("dolfinx_mbd.body.reduced_body", "ReducedBody.save"),
}
"""Functions that fail (module and name) by the step of a reduction."""

FAULTS = ("RuntimeError", "MemoryError", "KeyboardInterrupt", "SystemExit", "ValueError")
WAYS = ("command line", "python3 -m mpi4py", "python3")


def cases(folder: Path, *, only: str | None = None, seed: int = 0) -> Iterator[Case]:
    """Return all cases."""
    for place in PLACES:
        if only not in (None, place):
            continue
        for way in WAYS:
            # only rank 0 saves; the command line gets all faults, the others only the first one
            for ranks, rank in ((2, 0),) if place == "save" else ((2, 1), (3, 0)):
                for fault in FAULTS[: 5 if way == "command line" else 1]:
                    options = {
                        "place": place, "way": way, "ranks": ranks, "rank": rank, "fault": fault,
                        "folder": str(folder),
                    }  # fmt: skip
                    attack = f"{fault} on rank {rank} of {ranks}"
                    yield Case(place, way, attack, lambda o=options: _run(o), seconds=TIME + 10)


def _run(options: dict[str, Any]) -> str | None:
    """Run a job; return what is wrong with its end."""
    fault = options["fault"]
    runner = ["-m", "mpi4py"] if options["way"] == "python3 -m mpi4py" else []
    command = [
        *("mpirun", "--allow-run-as-root", "--oversubscribe"), "-n", str(options["ranks"]),
        sys.executable,
        *runner, "-m", "tests.campaigns.faults", json.dumps(options),
    ]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    job = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env={**environment, "PYTHONPATH": str(ROOT), "OMPI_MCA_mpi_yield_when_idle": "1"},
    )  # fmt: skip
    try:
        text = job.communicate(timeout=TIME)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        stop(job)
        raise TimeUpError from None
    if job.returncode == 0:
        return "the job ends as if nothing had failed"
    if "Segmentation" in text:
        return f"the job crashes: {text[-200:]}"
    if "injected" not in text and fault in ("RuntimeError", "ValueError"):
        return f"the error is not shown: {text[-200:]}"
    return None


def _inject(place: str, fault: str) -> None:
    """Let a function of the package raise."""
    import builtins

    module, name = PLACES[place]
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for step in path:
        owner = getattr(owner, step)
    getattr(owner, last)  # (fails if there is no such function any more)
    kind = getattr(builtins, fault)

    def fail(*_: Any, **__: Any) -> None:
        raise kind("injected")

    setattr(owner, last, fail)


def _job(options: dict[str, Any]) -> int:
    """Reduce a mesh while a function fails on one rank."""
    from mpi4py import MPI

    import dolfinx_mbd as mbd
    from dolfinx_mbd.io.cli.main import main
    from tests.campaigns.bench import mesh_builder

    faulthandler.dump_traceback_later(TIME + 20, exit=True)  # (leaves no process behind)
    comm = MPI.COMM_WORLD
    folder = Path(options["folder"])
    if comm.rank == 0 and not (folder / "fault.msh").exists():
        mbd.fem.write_mesh(mesh_builder, folder / "fault.msh")
    comm.Barrier()
    if comm.rank == options["rank"]:
        _inject(options["place"], options["fault"])
    if options["way"] == "command line":
        arguments = ["reduce", str(folder / "fault.msh"), "--material", "steel"]
        arguments += ["--interface", "left", "--modes", "2", "-o", str(folder / "fault.npz")]
        return main(arguments)
    mesh = mbd.read_mesh(folder / "fault.msh", comm)
    body = mbd.reduce(mesh, mbd.STEEL, interfaces=["left"], num_modes=2).body
    body.save(folder / "fault.npz")
    return 0


if __name__ == "__main__":
    sys.exit(_job(json.loads(sys.argv[1])))
