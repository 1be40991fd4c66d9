"""Steps per second of the three-cylinder engine: this package, with and without numba, and Exudyn.

    ./with-fenicsx python3 benchmarks/engine.py [--rounds 3] [--size 0.0043] [--all-nodes]

The engine runs at 6000 rpm with dt = 1e-5 s. Each of its three flexible rods has 30 mean-axis modes
without stiffening; all programs use the same modes. There is no gas force, so that Exudyn calls no
Python function during the run; in Exudyn a constraint prescribes the velocity of the crank. *With a
Python load* adds a Python function for a force on a piston. It returns zero, so that only the cost
of the calls changes. Exudyn runs its fast module with its dense and its sparse linear solver, with
the same joints, and with markers on 4 nodes of each bore (with `--all-nodes` also on all nodes).

Each measurement is a separate process on one thread; each round runs all programs in turn. The
table shows medians of the time per step, on the clock and of the processor. Other work on the
machine affects the processor time less. "Off" is the largest difference between the paths of a
piston, divided by the crank radius.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from children import child, median, report

if TYPE_CHECKING:
    from dolfinx_mbd.dynamics import System
    from dolfinx_mbd.mechanism import State

DT, SPEED = 1e-5, 628.318  # time step, s, and angular velocity of the crank, rad/s
RADIUS, SPACING = 0.040, 0.080  # crank radius and distance of the cylinders, m
PISTON, CRANK = 0.214, 0.952  # masses of a piston and of the whole crank, kg
THROWS = (0.0, 4 * np.pi / 3, 2 * np.pi / 3)  # angles of the throws, rad
DAMPING = 1e-6  # damping matrix / stiffness matrix of the rods, s
# Number of timed steps of each program
STEPS = {
    "package": 2000,
    "package, with a Python load": 2000,
    "package, no reuse": 500,
    "package, no numba": 300,
    "Exudyn": 2000,
    "Exudyn, all nodes": 60,
}
ENDS = ("big_end", "small_end")


def inline_three(path: Path) -> System:
    """Return the engine with the reduced rod of a file."""
    from dolfinx_mbd.body import ReducedBody
    from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine

    rod = ReducedBody.load(path)
    rod = rod.replace(damping=DAMPING * rod.stiffness, stiffening=None)
    design = EngineDesign(
        crank_radius=RADIUS,
        spacing=SPACING,
        piston_mass=PISTON,
        crank_mass=CRANK,
        throw_angles=THROWS,
    )
    return inline_engine(rod, design, speed=SPEED, gas=False)


def undeformed(engine: System) -> State:
    """Return the initial state of Exudyn: undeformed rods, and velocities of a rigid engine."""
    from dolfinx_mbd.dynamics import consistent_state

    v = consistent_state(engine).v
    v[engine.elastic] = 0.0
    return consistent_state(engine, elastic_start="undeformed", v=v)


def package(path: Path, steps: int, *, load: bool = False, reuse: bool = True) -> dict[str, Any]:
    """Return the times of steps with the package, after five steps that load the kernels."""
    from dolfinx_mbd.analyses import simulate
    from dolfinx_mbd.dynamics import Stepper, System
    from dolfinx_mbd.mechanism import force
    from dolfinx_mbd.results import Solution

    engine = inline_three(path)
    if load:
        wind = force("wind", ("piston 1", "pin"), lambda t, motion: (0.0, 0.0, 0.0))
        engine = System(engine.bodies, engine.joints, drivers=engine.drivers, loads=[wind])
    first = undeformed(engine)

    def run_steps(count: int) -> Solution:
        if reuse:
            return simulate(engine, t_end=count * DT, dt=DT, start=first)
        stepper = Stepper(engine, reuse=False)
        states = [stepper.begin(first, DT)]
        for _ in range(count):
            states.append(stepper.step(states[-1], DT))
        counts = {"iterations": stepper.iterations, "factorizations": stepper.factorizations}
        return Solution(engine, states, **counts)

    run_steps(5)
    start = time.perf_counter(), time.process_time()
    run = run_steps(steps)
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    path = [float(x) for x in run.body("piston 2").position[:61:10, 0]]  # seven positions, m
    return {
        "ms": 1e3 * seconds / steps,
        "cpu": 1e3 * cpu / steps,
        "path": path,
        "iterations": run.iterations / steps,
        "factorizations": run.factorizations / steps,
    }


def exudyn(directory: Path, steps: int, *, all_nodes: bool = False, sparse: bool) -> dict[str, Any]:
    """Return the times of `SolveDynamic` in the fast module of Exudyn for the same engine."""
    sys.exudynFast = True  # type: ignore[attr-defined]
    import exudyn as exu
    import scipy.sparse
    from exudyn import utilities as items
    from exudyn.FEM import FEMinterface, ObjectFFRFreducedOrderInterface

    from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank

    data = np.load(directory / "finite_elements.npz")
    fem = FEMinterface()
    fem.nodes = {"Position": data["positions"]}
    fem.massMatrix = scipy.sparse.load_npz(directory / "mass.npz")
    fem.stiffnessMatrix = scipy.sparse.load_npz(directory / "stiffness.npz")
    fem.surface = [{"Name": "none", "Trigs": np.zeros((0, 3), dtype=int)}]  # nothing is drawn
    fem.modeBasis = {"matrix": data["modes"], "type": "HCBmodes"}
    rod = ObjectFFRFreducedOrderInterface(fem)
    bores = [data[end] if all_nodes else four_nodes(data[end], data["positions"]) for end in ENDS]

    mbs = exu.SystemContainer().AddSystem()
    # Moments of inertia of the package's crank about x, y and z: about z that of a solid disc with
    # the crank radius, and 0.75 of it about x and y, which have no effect: it rotates about z only
    inertia = [0.375 * CRANK * RADIUS**2] * 2 + [0.5 * CRANK * RADIUS**2, 0, 0, 0]
    shaft = mbs.AddNode(
        items.NodeRigidBodyRxyz(
            referenceCoordinates=[0.0] * 6, initialVelocities=[0.0] * 5 + [SPEED]
        )
    )
    crank = mbs.AddObject(items.ObjectRigidBody(nodeNumber=shaft, mass=CRANK, inertia=inertia))
    zero = mbs.AddMarker(
        items.MarkerNodeCoordinate(nodeNumber=mbs.AddNode(items.NodePointGround()), coordinate=0)
    )
    for k in range(6):
        marker = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=shaft, coordinate=k))
        drive = {"velocityLevel": True, "offset": SPEED} if k == 5 else {}
        mbs.AddObject(items.CoordinateConstraint(markerNumbers=[zero, marker], **drive))

    length = float(np.linalg.norm(data["small_end point"] - data["big_end point"]))
    sensors = []
    for k, throw in enumerate(THROWS):
        z = SPACING * (k - 1)  # the second of the three throws is at z = 0
        motion = SliderCrank(RADIUS, length).motion(throw, SPEED)
        tilt, rate = float(motion.rod_angle), float(motion.rod_velocity)
        c, s = np.cos(tilt), np.sin(tilt)
        rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
        pin = np.array([RADIUS * np.cos(throw), RADIUS * np.sin(throw), z])
        origin = pin - rotation @ data["big_end point"]
        omega = np.array([0, 0, rate])
        speed = np.cross([0, 0, SPEED], pin) + np.cross(omega, origin - pin)
        body = rod.AddObjectFFRFreducedOrder(
            mbs, positionRef=list(origin), rotationMatrixRef=rotation, initialVelocity=list(speed),
            initialAngularVelocity=list(omega), stiffnessProportionalDamping=DAMPING,
        )["oFFRFreducedOrder"]  # fmt: skip
        big, small = (
            {
                "bodyNumber": body,
                "meshNodeNumbers": list(n),
                "weightingFactors": weights(data["positions"][n], data[f"{end} point"]),
            }
            for n, end in zip(bores, ENDS, strict=True)
        )
        at_crank = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=crank, localPosition=list(pin)))
        at_big = mbs.AddMarker(items.MarkerSuperElementRigid(**big))
        mbs.AddObject(
            items.GenericJoint(markerNumbers=[at_crank, at_big], constrainedAxes=[1, 1, 0, 1, 1, 0])
        )
        piston = mbs.AddNode(
            items.NodePoint(
                referenceCoordinates=[float(motion.slider), 0, z],
                initialVelocities=[float(motion.slider_velocity), 0, 0],
            )
        )
        mbs.AddObject(items.MassPoint(nodeNumber=piston, mass=PISTON))
        for axis in (1, 2):
            marker = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=piston, coordinate=axis))
            mbs.AddObject(items.CoordinateConstraint(markerNumbers=[zero, marker]))
        at_small = mbs.AddMarker(items.MarkerSuperElementPosition(**small))
        at_piston = mbs.AddMarker(items.MarkerNodePosition(nodeNumber=piston))
        mbs.AddObject(items.SphericalJoint(markerNumbers=[at_small, at_piston]))
        sensors.append(
            mbs.AddSensor(
                items.SensorNode(
                    nodeNumber=piston,
                    storeInternal=True,
                    outputVariableType=exu.OutputVariableType.Position,
                )
            )
        )
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = steps * DT
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.8
    settings.timeIntegration.newton.useModifiedNewton = True
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = 10 * DT
    settings.parallel.numberOfThreads = 1
    if sparse:
        settings.linearSolver.solverType = exu.LinearSolverType.EigenSparse
    start = time.perf_counter(), time.process_time()
    mbs.SolveDynamic(settings)
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    stored = mbs.GetSensorStoredData(sensors[1])
    count = mbs.sys["dynamicSolver"].it
    return {
        "ms": 1e3 * seconds / steps,
        "cpu": 1e3 * cpu / steps,
        "path": [float(x) for x in stored[:7, 1]],
        "iterations": count.newtonStepsCount / steps,
        "factorizations": count.newtonJacobiCount / steps,
    }


def four_nodes(nodes: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the four nodes of a bore closest to 0°, 90°, 180° and 270° at z = 0."""
    x = positions[nodes]
    centre = 0.5 * (x.max(axis=0) + x.min(axis=0))
    radius = 0.5 * np.ptp(x[:, 0])
    corners = [
        centre + radius * np.array(d) for d in ([1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0])
    ]
    return np.array([nodes[np.argmin(np.linalg.norm(x - c, axis=1))] for c in corners])


def weights(x: np.ndarray, point: np.ndarray) -> list[float]:
    """Return weights near 1/n for which the weighted mean of the nodes (n, 3) is the point."""
    conditions = np.vstack([np.ones(len(x)), x.T / RADIUS])
    equal = np.full(len(x), 1 / len(x))
    error = np.concatenate([[1.0], point / RADIUS]) - conditions @ equal
    return list(equal + np.linalg.lstsq(conditions, error, rcond=1e-9)[0])


def prepare(directory: Path, size: float) -> int:
    """Reduce the rod, write the data of all programs, and return the number of dofs."""
    import scipy.sparse
    from mpi4py import MPI
    from raw_reduction import assemble, scipy_matrices

    from dolfinx_mbd import STEEL, ReductionOptions, reduce
    from dolfinx_mbd.fem import build_mesh
    from dolfinx_mbd.geometry import ConnectingRod

    mesh = build_mesh(ConnectingRod(size=size), MPI.COMM_SELF)
    reduction = reduce(
        mesh,
        STEEL,
        interfaces=ENDS,
        num_modes=24,
        stiffening=False,
        options=ReductionOptions(skin=False),
    )
    reduction.body.save(directory / "rod.npz")
    K, M, positions, nodes = assemble(mesh, ENDS)
    for name, matrix in zip(("stiffness", "mass"), scipy_matrices(K, M), strict=True):
        scipy.sparse.save_npz(directory / f"{name}.npz", matrix)
    points = {f"{end} point": reduction.body.interface(end).point for end in ENDS}
    bores = dict(zip(ENDS, nodes, strict=True))
    path = directory / "finite_elements.npz"
    np.savez(path, positions=positions, modes=reduction.modes, **bores, **points)
    return int(K.getSize()[0])


def measure(program: str, directory: Path) -> dict[str, Any]:
    """Run one program in this process, and return its times."""
    steps = STEPS[program.removesuffix(" sparse")]
    if program.startswith("package"):
        load, reuse = "load" in program, "no reuse" not in program
        return package(directory / "rod.npz", steps, load=load, reuse=reuse)
    sparse = program.endswith("sparse")
    return exudyn(directory, steps, all_nodes="all nodes" in program, sparse=sparse)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=float, default=0.0043, help="largest element, m")
    parser.add_argument("--all-nodes", action="store_true", help="markers on all nodes as well")
    parser.add_argument("--child", nargs=2, metavar=("PROGRAM", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        program, directory = arguments.child
        report(measure(program, Path(directory)))
        return
    programs = [*(name for name in STEPS if name.startswith("package")), "Exudyn", "Exudyn sparse"]
    if arguments.all_nodes:
        programs.append("Exudyn, all nodes")
    runs: dict[str, list[dict[str, Any]]] = {program: [] for program in programs}
    with tempfile.TemporaryDirectory() as directory:
        dofs = prepare(Path(directory), arguments.size)
        for _ in range(arguments.rounds):
            for program in programs:
                numba = "0" if "no numba" in program else "1"
                runs[program].append(child(__file__, [program, directory], DOLFINX_MBD_NUMBA=numba))
    table(runs, dofs)


def table(runs: dict[str, list[dict[str, Any]]], dofs: int) -> None:
    """Print the table; stop if the paths of a piston differ between programs."""
    reference = np.array(runs["package"][0]["path"])
    print(f"Rods of {dofs:,} displacements.\n")
    print("| program | ms a step (runs) | ratio | CPU ms | ratio | iterations, LU a step | off |")
    print("|---|---|---|---|---|---|---|")
    reference_ms, reference_cpu = (median(runs["package"], key) for key in ("ms", "cpu"))
    for program, samples in runs.items():
        ms = median(samples, "ms")
        every = ", ".join(f"{run['ms']:.3f}" for run in samples)
        path = np.array(samples[0]["path"])
        off = np.abs(path - reference[: len(path)]).max() / RADIUS
        counts = f"{median(samples, 'iterations'):.2f}, {median(samples, 'factorizations'):.2f}"
        assert off < 1e-4, f"{program}: a piston's path is off by {off:.1e} of the crank radius"
        cpu = median(samples, "cpu")
        print(
            f"| {program} | {ms:.3f} ({every}) | {ms / reference_ms:.2f} "
            f"| {cpu:.3f} | **{cpu / reference_cpu:.2f}** | {counts} | {off:.0e} |"
        )


if __name__ == "__main__":
    main()
