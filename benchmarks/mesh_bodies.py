"""A step of a mechanism with a rod on its mesh: solves, assemblies, time; other programs; ranks.

    ./with-fenicsx python3 benchmarks/mesh_bodies.py [--cells 2 3] [--steps 50] [--rounds 3]
    ./with-fenicsx python3 benchmarks/mesh_bodies.py --peers [--programs package plain]
    ./with-fenicsx python3 benchmarks/mesh_bodies.py --ranks [--cells 3 5] [--steps 20]
    ./with-fenicsx python3 benchmarks/mesh_bodies.py --rubber --rounds 1 --steps 360 [--cells 2 4 8]
    ./with-fenicsx python3 benchmarks/mesh_bodies.py --large --rounds 1 --steps 1 [--cells 10]
    ./with-fenicsx python3 benchmarks/mesh_bodies.py --multigrid --rounds 1 --steps 1 [--cells 10]

The rod of the slender slider-crank (reference case W1), 8×8×300 mm of steel, has n×n quadratic
hexahedra in its section and 36 n along it. The crank turns at 150 rad/s with a step of 0.1 ms. A
solve is an application of the constant factor; an assembly is one of the elastic forces. The
reduced body has the same mesh and eight modes. The measurements on one and on two ranks and with
the reduced body alternate. The deflections on one and on two ranks must agree to 1e-9 of their
size. With `--ranks`, no reduced body is measured, and the table also shows the memory.

With `--peers`, the same rod is clamped to a driven hinge, and three programs make the same steps:
the package, a plain DOLFINx script, and Exudyn's full-order body in a floating frame (see
`raw_mesh_bodies.py`). The deflections of the tip at the end must agree to 1e-5 between the first
two, and to 1 % with Exudyn after 20 steps or more. Its strains are linear: its rod is not stiffened
by its rotation, which changes the square of its lowest frequency by 1.5 %.

With `--rubber`, the rod is of rubber (neo-Hooke, 5 MPa), 37.5×37.5×300 mm with 8 n×n×n quadratic
hexahedra, and the crank turns at 30 rad/s with a step of one degree, on two ranks. The table shows
the time of all steps with the start, and the processor time of the busiest rank with its parts.

With `--large`, the rod of case W1 has quadratic tetrahedra, six in each hexahedron, and uses a
factor even if it may not fit in the free memory. The first steps on two ranks are measured, with
the start and the factorization. `--multigrid` does the same with the solver that is chosen if a
factor does not fit.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))  # for the models of the tests
from children import child, median, report

CASES = {"one": ("mesh", 1), "two": ("mesh", 2), "reduced": ("reduced", 1)}
PEERS = {"package": 1e-5, "plain": 1e-5, "exudyn": 1e-2}  # allowed difference of the deflections
NAMES = {"package": "package", "plain": "DOLFINx script", "exudyn": "Exudyn, `ObjectFFRF`"}
STEP = 1e-4  # s
RUBBER_SPEED = 30.0  # angular velocity of the crank, rad/s
HEAD = (
    "| dofs | solves a step | assemblies a step | factorizations a step | step, ms "
    "| of a reduced body, ms | on two ranks, ms | one over two ranks | processor, ms "
    "| on two ranks, ms | one over two ranks |"
)
PEERS_HEAD = (
    "| dofs | program | solves a step | assemblies of forces | of tangents, factorizations "
    "| step, ms | ratio | processor, ms | ratio | deflection off | peak GB |"
)
RANKS_HEAD = (
    "| dofs | solves a step | step, ms | on two ranks, ms | one over two | of the fastest "
    "| processor, ms | on two ranks, ms | one over two | of the fastest "
    "| peak of one rank, GB | of each of two, GB |"
)
RUBBER_HEAD = (
    "| dofs | steps | s | processor, s | assemblies: a step, s | solves: a step, s "
    "| factorizations: in all, s | largest deflections, mm | peak of each rank, GB |"
)
LARGE_HEAD = "| dofs | steps | s | processor, s | peak of each rank, GB |"


def large(cells: int, steps: int, *, fits: bool = True) -> dict[str, Any]:
    """Return times (s) and the peak memory (KiB) of the first steps of a large rod.

    With `fits`, the solver is a factorization; otherwise it is the one for bodies whose factor does
    not fit in the memory.
    """
    from mpi4py import MPI

    import dolfinx_mbd as mbd
    from dolfinx_mbd.structures.mesh_bodies import mesh_solver
    from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

    mesh_solver.factor_fits = lambda *arguments, **options: fits  # type: ignore[assignment]
    comm, start = MPI.COMM_WORLD, time.perf_counter()
    corners = (0, -0.004, -0.004), (0.3, 0.004, 0.004)
    mesh, tags = box(*corners, (36 * cells, cells, cells), "tetrahedron")
    model = mbd.ElasticModel(mesh, STEEL, facet_tags=tags)
    rod = mbd.MeshBody("rod", model, ends(0.0, 0.3), position=(0.15, 0, 0))
    simulator = mbd.Simulator(slider_crank(rod), dt=STEP, t_end=STEP * steps)
    for _ in range(steps):
        simulator.advance()
    dofmap = model.displacements.dofmap
    return {
        "dofs": dofmap.index_map.size_global * dofmap.index_map_bs,
        "steps": steps,
        "time": time.perf_counter() - start,
        "processor": comm.allreduce(time.process_time(), MPI.MAX),
        "memory": comm.allreduce(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, MPI.MAX),
    }


def large_row(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line of the table of the large rod."""
    samples = runs["two"]
    first = samples[0]
    text = f"| {first['dofs']:,} | {first['steps']} | {median(samples, 'time'):.0f} "
    text += f"| {median(samples, 'processor'):.0f} "
    print(f"{text}| **{median(samples, 'memory') / 1024**2:.2f}** |", flush=True)


def rubber(cells: int, steps: int) -> dict[str, Any]:
    """Return numbers of calls, times (s) and the peak memory (KiB) of a run with a rubber rod."""
    from mpi4py import MPI

    import dolfinx_mbd as mbd
    from dolfinx_mbd.structures.mesh_bodies.mesh_solver import MeshSolver
    from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
    from tests.structures.mesh_bodies.models import box, ends, slider_crank
    from tests.structures.mesh_bodies.test_mesh_bodies import deflection

    comm, start, processor = MPI.COMM_WORLD, time.perf_counter(), time.process_time()
    # number of calls and processor time, s, of each method
    parts = {"solution": [0, 0.0], "elastic_rows": [0, 0.0], "factorize": [0, 0.0]}
    for owner, name in (
        (MeshSolver, "solution"), (MeshSolver, "factorize"), (NodalForces, "elastic_rows"),
    ):  # fmt: skip
        _time_calls(owner, name, parts[name])
    mesh, tags = box((0, -0.01875, -0.01875), (0.3, 0.01875, 0.01875), (8 * cells, cells, cells))
    model = mbd.ElasticModel(mesh, mbd.forms.Material(5e6, 0.45, 1100.0), facet_tags=tags)
    rod = mbd.MeshBody("rod", model, ends(0.0, 0.3), energy="neo-hookean", position=(0.15, 0, 0))
    dt = float(np.radians(1.0)) / RUBBER_SPEED
    system = slider_crank(rod, speed=RUBBER_SPEED)
    run = mbd.simulate(system, dt=dt, t_end=dt * steps, stride=10)
    dofmap = model.displacements.dofmap
    result: dict[str, Any] = {
        "dofs": dofmap.index_map.size_global * dofmap.index_map_bs,
        "time": time.perf_counter() - start,
        "processor": comm.allreduce(time.process_time() - processor, MPI.MAX),
        "memory": comm.allreduce(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, MPI.MAX),
    }
    result |= {name: (n, comm.allreduce(t, MPI.MAX)) for name, (n, t) in parts.items()}
    w = 1e3 * deflection(rod, run)
    return result | {"steps": steps, "deflection": [float(w.max()), float(w.min())]}


def _time_calls(owner: Any, name: str, sums: list[Any]) -> None:
    """Make a method count its calls and add up their processor time, s, in the list `sums`."""
    function = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        before = time.process_time()
        result = function(*arguments)
        sums[0] += 1
        sums[1] += time.process_time() - before
        return result

    setattr(owner, name, call)


def rubber_row(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line of the table of the rod of rubber."""
    samples = runs["two"]
    first = samples[0]
    text = f"| {first['dofs']:,} | {first['steps']} "
    text += f"| **{median(samples, 'time'):.0f}** | {median(samples, 'processor'):.0f} "
    names = "elastic_rows", "solution", "factorize"
    spent = {name: np.median([run[name][1] for run in samples]) for name in names}
    for name in names[:2]:
        text += f"| {first[name][0] / first['steps']:.1f}, {spent[name]:.0f} "
    text += f"| {first['factorize'][0]}, {spent['factorize']:.0f} "
    most, least = first["deflection"]
    memory = median(samples, "memory") / 1024**2
    print(f"{text}| {most:.2f}, {least:.2f} | {memory:.2f} |", flush=True)


def measure(cells: int, steps: int, kind: str) -> dict[str, Any]:
    """Return the times (s) and numbers of calls per step, after the first tenth of the steps."""
    if kind == "rubber":
        return rubber(cells, steps)
    if kind in ("large", "multigrid"):
        return large(cells, steps, fits=kind == "large")
    import raw_mesh_bodies
    from mpi4py import MPI

    import dolfinx_mbd as mbd
    from dolfinx_mbd.structures.mesh_bodies.mesh_solver import MeshSolver
    from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
    from tests.structures.mesh_bodies.models import STEEL, box, ends, slider_crank

    calls = {"solution": 0, "elastic_rows": 0, "factorize": 0}

    def counted(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return function(*arguments)

        setattr(owner, name, call)

    for owner, name in (
        (MeshSolver, "solution"), (MeshSolver, "factorize"), (NodalForces, "elastic_rows"),
    ):  # fmt: skip
        counted(owner, name)
    mesh, tags = box((0, -0.004, -0.004), (0.3, 0.004, 0.004), (36 * cells, cells, cells))
    skipped = max(1, steps // 10)
    if kind in ("plain", "exudyn"):
        return getattr(raw_mesh_bodies, kind)(mesh, STEEL, steps, skipped)
    model, specs = mbd.ElasticModel(mesh, STEEL, facet_tags=tags), ends(0.0, 0.3)
    rod: Any
    if kind == "package":
        start = raw_mesh_bodies.START
        # `left`, the first interface, is at the hinge
        rod = mbd.MeshBody("rod", model, dict(list(specs.items())[:1]), omega=(0, 0, start))
        ground = mbd.Ground({"origin": mbd.Frame()})
        hinge = mbd.revolute("hinge", ground.frame("origin"), rod.frame("left"))
        motor = mbd.Driver("motor", "hinge", raw_mesh_bodies.angle)
        system = mbd.System([ground, rod], [hinge], drivers=[motor])
    elif kind == "mesh":
        rod = mbd.MeshBody("rod", model, specs, position=(0.15, 0, 0))
        system = slider_crank(rod)
    else:
        body = mbd.reduce(model, interfaces=specs, num_modes=8).body
        rod = mbd.FlexibleBody("rod", body, position=(0.15, 0, 0))
        system = slider_crank(rod)
    simulator = mbd.Simulator(system, dt=STEP, t_end=STEP * steps)
    for _ in range(skipped):
        simulator.advance()
    before, start, processor = dict(calls), time.perf_counter(), time.process_time()
    for _ in range(steps - skipped):
        simulator.advance()
    count = steps - skipped
    result: dict[str, Any] = {"time": (time.perf_counter() - start) / count}
    spent = (time.process_time() - processor) / count
    result["processor"] = mesh.comm.allreduce(spent, MPI.MAX)  # of the busiest rank
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    result["memory"] = mesh.comm.allreduce(peak, MPI.MAX)  # GB, of the rank that needs most
    result |= {name: (calls[name] - before[name]) / count for name in calls}
    dofmap = model.displacements.dofmap
    result["dofs"] = dofmap.index_map.size_global * dofmap.index_map_bs
    if kind == "reduced":
        return result
    state = simulator.state
    u = rod.nodal_of(state.q[system.q_slices[system.body_index("rod")]])[0]
    result["place"] = u[len(u) // 2].tolist()
    if kind == "package":
        tip = int(np.argmin(np.linalg.norm(rod.nodes - [0.3, 0, 0], axis=1)))
        result["deflection"] = raw_mesh_bodies.deflection(rod.nodes[tip] + u[tip], state.time)
        result |= {"solves": result["solution"], "assemblies": result["elastic_rows"]}
        result["tangents"] = result["factorize"]
    return result


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", action="store_true", help="measure other programs")
    parser.add_argument("--programs", nargs="+", choices=PEERS, default=[*PEERS], help="of --peers")
    parser.add_argument("--ranks", action="store_true", help="measure one and two ranks alone")
    parser.add_argument("--large", action="store_true", help="measure the memory on two ranks")
    parser.add_argument("--multigrid", action="store_true", help="the same without a factor")
    parser.add_argument("--rubber", action="store_true", help="measure a soft rod on two ranks")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        cells, steps, kind = arguments.child
        values = measure(int(cells), int(steps), kind)
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            report(values)
        return
    print(f"time on the clock and of the busiest processor, medians of {arguments.rounds}\n")
    cases, head, line = CASES, HEAD, row
    if arguments.peers:
        cases, head, line = {k: (k, 1) for k in arguments.programs}, PEERS_HEAD, peers_rows
    elif arguments.ranks:
        cases, head, line = {k: CASES[k] for k in ("one", "two")}, RANKS_HEAD, ranks_row
    elif arguments.large or arguments.multigrid:
        kind = "large" if arguments.large else "multigrid"
        cases, head, line = {"two": (kind, 2)}, LARGE_HEAD, large_row
    elif arguments.rubber:
        cases, head, line = {"two": ("rubber", 2)}, RUBBER_HEAD, rubber_row
    print(head + "\n" + "|---" * (head.count("|") - 1) + "|")
    for cells in arguments.cells:
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in cases}
        for _ in range(arguments.rounds):
            for name, (kind, ranks) in cases.items():
                values = [str(cells), str(arguments.steps), kind]
                runs[name].append(child(__file__, values, ranks))
        line(runs)


def peers_rows(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line for each program; stop if the deflections differ."""
    first_runs = next(iter(runs.values()))  # runs of the package
    reference = first_runs[0]
    for name, samples in runs.items():
        first = samples[0]
        off = abs(first["deflection"] / reference["deflection"] - 1)
        assert off <= PEERS[name], f"{name}: the deflection is off by {off:.1e}"
        times = [1e3 * median(samples, key) for key in ("time", "processor")]
        ratios = [median(samples, k) / median(first_runs, k) for k in ("time", "processor")]
        print(
            f"| {reference['dofs']:,} | {NAMES[name]} | {first['solves']:.1f} "
            f"| {first['assemblies']:.1f} | {first['tangents']:.2f} | {times[0]:.0f} "
            f"| {ratios[0]:.1f} | {times[1]:.0f} | **{ratios[1]:.1f}** | {off:.0e} "
            f"| {first['peak']:.2f} |",
            flush=True,
        )


def ranks_row(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line of the table of one and two ranks."""
    check_ranks(runs)
    first = runs["one"][0]
    text = f"| {first['dofs']:,} | {first['solution']:.1f} "
    for key in ("time", "processor"):
        one, two = (1e3 * median(runs[name], key) for name in ("one", "two"))
        best = [1e3 * min(run[key] for run in runs[name]) for name in ("one", "two")]
        text += f"| {one:.0f} | {two:.0f} | **{one / two:.2f}** | {best[0] / best[1]:.2f} "
    one, two = (median(runs[name], "memory") for name in ("one", "two"))
    print(f"{text}| {one:.2f} | {two:.2f} |", flush=True)


def check_ranks(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Stop if the motions on one and on two ranks differ."""
    one, two = (np.array(runs[name][0]["place"]) for name in ("one", "two"))
    difference = np.abs(one - two).max() / np.abs(one).max()
    assert difference < 1e-9, f"one and two ranks differ by {difference:.1e}"


def row(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line of the table."""
    check_ranks(runs)
    first = runs["one"][0]
    times = {name: 1e3 * median(samples, "time") for name, samples in runs.items()}
    processor = {name: 1e3 * median(samples, "processor") for name, samples in runs.items()}
    print(
        f"| {first['dofs']:,} | {first['solution']:.1f} | {first['elastic_rows']:.1f} "
        f"| {first['factorize']:.2f} | {times['one']:.1f} | {times['reduced']:.2f} "
        f"| {times['two']:.1f} | **{times['one'] / times['two']:.2f}** "
        f"| {processor['one']:.1f} | {processor['two']:.1f} "
        f"| **{processor['one'] / processor['two']:.2f}** |",
        flush=True,
    )


if __name__ == "__main__":
    main()
