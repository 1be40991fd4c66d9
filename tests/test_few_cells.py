"""Every analysis of a bar of five cells, where some ranks have no cell at all.

Each result is compared with that of one process. A partition of the tests leaves the first or the
last rank without cells; DOLFINx's own partition of five cells may also do so. The iterative solver
has a bar of three boxes, each divided into tetrahedra. On one rank the tests only show that the
analyses run and give finite results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
import ufl
from dolfinx.mesh import CellType
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.durability.recovery import Recovery, skin_stress
from dolfinx_mbd.durability.recovery.sections import section_modes
from dolfinx_mbd.structures.prescribed_motion import PrescribedMotion, transient
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box

Results: TypeAlias = dict[str, Any]
ENDS = ["left", "right"]
MIDDLE = (0.61 * LENGTH, 0.3 * HEIGHT, 0.6 * WIDTH)
ALLOY = mbd.Material(210e9, 0.3, 7850.0, "alloy", yield_strength=250e6)
S_N = mbd.durability.FatigueMaterial(name="steel", knee_stress=200e6, knee_cycles=1e6, slope=5)


@dataclass(frozen=True)
class Case:
    """A bar of five cells, and a folder that is equal on the ranks of its communicator."""

    comm: MPI.Comm
    empty_rank: int | None
    folder: Path

    def mesh(self, cell: CellType = CellType.hexahedron) -> mbd.fem.TaggedMesh:
        cells = (5, 1, 1) if cell is CellType.hexahedron else (3, 1, 1)
        return box(self.comm, cells=cells, cell=cell, empty_rank=self.empty_rank)

    def reduction(self, **arguments: Any) -> mbd.reduction.Reduction:
        settings: Results = {"interfaces": ENDS, "num_modes": 3, "points": {"middle": MIDDLE}}
        return mbd.reduce(self.mesh(), ALLOY, **(settings | arguments))


def swing(reduction: mbd.reduction.Reduction) -> Any:
    """Return a history in which all modes move."""
    time = np.linspace(0.0, 1.0, 60)
    k = np.arange(1, reduction.body.num_modes + 1)
    angle, zero = 2 * np.pi * np.outer(time, k) + k, np.zeros((len(time), 3))
    return SimpleNamespace(
        time=time,
        eta=1e-6 * np.sin(angle),
        eta_rate=1e-4 * np.cos(angle),
        velocity=zero,
        omega=zero,
        rotation=np.tile([1.0, 0, 0, 0], (len(time), 1)),
    )


def reduction_with_loads(case: Case) -> Results:
    """Return frequencies and loads of a reduction."""
    mesh = case.mesh()
    loads = {
        "top": mbd.reduction.pressure(mesh, "top"),
        "weight": mbd.reduction.body_force((0, 0, -1.0)),
    }
    options = mbd.ReductionOptions(
        loads=loads, load_modes=True, static_correction=True, damping=mbd.reduction.Viscous(1e3)
    )
    reduction = mbd.reduce(mesh, ALLOY, interfaces=ENDS, num_modes=3, options=options)
    body = reduction.body
    assert body.stiffening is not None and body.skin is not None and body.damping is not None
    tension = body.stiffening.interfaces[1, 0] - body.stiffening.interfaces[0, 0]
    return {
        "frequencies": body.frequencies,
        "inertia": body.inertia,
        "stiffening": np.diag(tension),
        "damping": np.diag(body.damping),
        "skin": body.skin.points,
        "loads": np.array([np.linalg.norm(load.modes) for load in body.loads]),
    }


def averaged_interfaces(case: Case) -> Results:
    """Return frequencies with averaged interfaces."""
    reduction = case.reduction(interfaces=mbd.InterfaceSpec.each(ENDS, "averaged"))
    return {"frequencies": reduction.body.frequencies}


def iterative_solver(case: Case) -> Results:
    """Return frequencies by the iterative solver."""
    mesh = case.mesh(CellType.tetrahedron)
    body = mbd.reduce(mesh, ALLOY, interfaces=ENDS, num_modes=1, solver="iterative").body
    return {"frequencies": body.frequencies}


def natural_modes(case: Case) -> Results:
    """Return frequencies of the free and of the held body."""
    free = mbd.modal_analysis(case.mesh(), ALLOY, num_modes=4)
    held = mbd.modal_analysis(case.mesh(), ALLOY, num_modes=4, held=["left"])
    assert (free.num_rigid, held.num_rigid) == (6, 0)
    return {"free": free.frequencies, "held": held.frequencies}


def rotating_modes(case: Case) -> Results:
    """Return frequencies and critical speed of the rotating body."""
    structure = mbd.structures.rotating_structure(case.mesh(), ALLOY, held=["left"])
    modes = mbd.structures.rotating_modes(structure, 700.0, num_modes=4)
    diagram = mbd.structures.campbell(structure, [0.0, 300.0], num_modes=2)
    critical = mbd.structures.critical_speed(structure, 1e4, stiffening=False, num_modes=2, steps=4)
    assert critical is not None and critical.kind == "divergence"
    results = {
        "modes": modes.frequencies,
        "whirl": modes.whirl,
        "norms": np.sqrt(case.comm.allreduce((np.abs(modes.vectors) ** 2).sum(axis=0))),
        "campbell": diagram.frequencies,
        "critical": critical.speed,
    }
    structure.destroy()
    return results


def prescribed_motion(case: Case) -> Results:
    """Return displacements of the free and of the held body under a prescribed motion."""
    motion = PrescribedMotion(
        omega=lambda t: 400.0 * t / 1e-3,
        alpha=400.0 / 1e-3,
        acceleration=(100.0, 0.0, -20.0),
        wrenches={"right": lambda t: [2e4 * t / 1e-3, 50.0, 30.0, 1.0, 2.0, 3.0]},
    )
    results = {}
    for name, held in (("free", ()), ("held", ["left"])):
        run = transient(
            case.mesh(),
            ALLOY,
            motion=motion,
            interfaces=ENDS,
            held=held,
            t_end=2e-4,
            dt=2e-5,
            options=mbd.structures.TransientOptions(points={"middle": MIDDLE}),
        )
        results[name] = run.points["middle"].displacement
        results[f"{name}, end"] = run.interfaces["right"].displacement
    return results


def derivatives(case: Case) -> Results:
    """Return derivatives of frequencies and mass with respect to material and shape."""
    reduction = case.reduction(stiffening=True)
    assert reduction.model is not None
    x = ufl.SpatialCoordinate(reduction.model.plain_mesh)
    parameters = [
        mbd.Parameter("E", "young"),
        mbd.Parameter("ρ", "density"),
        mbd.Parameter("length", "shape", velocity=ufl.as_vector([x[0], 0 * x[1], 0 * x[2]])),
    ]
    table = mbd.sensitivities(reduction, parameters)
    results: Results = {f"frequencies, {p.name}": table[p.name].frequencies for p in parameters}
    return results | {"mass": [table[p.name].total_mass for p in parameters[1:]]}


def recovery(case: Case) -> Results:
    """Return stress at places, gauges and sections."""
    reduction = case.reduction()
    source, history = Recovery(reduction), swing(reduction)
    places = mbd.most_stressed(source, history, 3)
    gauge = mbd.durability.GaugeSpec((LENGTH / 3, HEIGHT / 2, WIDTH), (1, 0, 0), "3mm")
    source.write(case.folder / "stress.bp", history.eta[0])
    return {
        "at a point": source.at("stress", history, [MIDDLE]),
        "largest": [place.value for place in places],
        "places": [place.position for place in places],
        "sections": section_modes(source, [LENGTH / 2, 0, 0], (1, 0, 0)),
        "skin": skin_stress(source).envelope("von Mises", history).value,
        "gauge": mbd.gauges(reduction, {"top": gauge}).body.gauges[0].modes,
    }


def strength(case: Case) -> Results:
    """Return safety factors."""
    options = mbd.ReductionOptions(static_correction=True)
    reduction = case.reduction(options=options)
    wrenches = {"left": [-1e4, 0, 0, 0, 0, 0], "right": [1e4, 0, 0, 0, 9.0, 0]}
    result = mbd.strength(reduction, mbd.durability.inertia_relief(reduction, wrenches))
    factors = np.concatenate(case.comm.allgather(result.factor))
    return {"least": result.least, "factors": np.sort(factors)}


def fatigue(case: Case) -> Results:
    """Return fatigue lives of cells and of the surface."""
    reduction = case.reduction()
    runs = [(swing(reduction), 1.0)]
    inside = mbd.fatigue(Recovery(reduction), runs, material=S_N)
    surface = mbd.fatigue(reduction, runs, material=S_N)
    inside.write(case.folder / "fatigue.bp")
    return {
        "damage": np.log(case.comm.allreduce(float(inside.damage.sum()))),
        "worst": [place.range for place in inside.worst(2)],
        "surface": [place.range for place in surface.worst(2)],
    }


def noise(case: Case) -> Results:
    """Return the radiated power."""
    reduction = case.reduction()
    return {
        "power": mbd.durability.radiated_power(reduction, swing(reduction)).power,
        "part": mbd.durability.radiated_power(
            reduction, swing(reduction), where=lambda x: x[2] > 0.9 * WIDTH
        ).power,
    }


def exports(case: Case) -> Results:
    """Return the contents of exported files."""
    body = case.reduction().body
    case.folder.mkdir(parents=True, exist_ok=True)
    if case.comm.rank == 0:
        for name in ("mbdyn", "sid", "op4"):
            mbd.export.export(body, case.folder / name, format=name)
        body.save(case.folder / "body.npz")
    case.comm.Barrier()
    assert (case.folder / "sid.SID_FEM").read_text().split()[1] == str(body.num_modes)
    saved = mbd.ReducedBody.load(case.folder / "body.npz")
    return {"mass": saved.total_mass, "frequencies": saved.frequencies}


ANALYSES: list[Callable[[Case], Results]] = [
    reduction_with_loads,
    averaged_interfaces,
    iterative_solver,
    natural_modes,
    rotating_modes,
    prescribed_motion,
    derivatives,
    recovery,
    strength,
    fatigue,
    noise,
    exports,
]
SEVERAL = MPI.COMM_WORLD.size > 1
EMPTY = {"default": None} | ({"first": 0, "last": -1} if SEVERAL else {})


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("empty_rank", EMPTY.values(), ids=EMPTY)
def test_a_rank_without_cells(
    comm: MPI.Intracomm, tmp_path: Path, analysis: Callable[[Case], Results], empty_rank: int | None
) -> None:
    if empty_rank is not None:
        topology = Case(comm, empty_rank, tmp_path).mesh().mesh.topology
        cells = comm.allgather(topology.index_map(3).size_local)
        assert cells[empty_rank] == 0 and sum(cells) == 5
    shared = analysis(Case(comm, empty_rank, comm.bcast(tmp_path)))
    on_this_rank = Case(MPI.COMM_SELF, None, tmp_path / f"rank {comm.rank}")
    alone = analysis(on_this_rank) if SEVERAL else shared
    assert shared.keys() == alone.keys()
    for name, values in alone.items():
        expected = np.asarray(values)
        assert expected.size and np.isfinite(expected).all(), name
        size = np.abs(expected).max()
        assert np.allclose(shared[name], expected, rtol=0, atol=1e-6 * size), name
