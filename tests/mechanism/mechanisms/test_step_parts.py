"""Crankshaft and crankcase from STEP files instead of the parametric ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.geometry import Crankcase, Crankshaft, StepPart, step_surfaces
from dolfinx_mbd.geometry.gmsh_model import gmsh_session
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, engine, rigid_rod

pytest.importorskip("gmsh")
SHAFT = Crankshaft(throw_angles=[0.0], fillet=0, nose_length=0, size=0.015)
CASE = Crankcase(bays=1, size=0.025)
Z, X = (0, 0, 1), (1, 0, 0)  # z axes of the interfaces
INTERFACES = {
    "crank": {"main_1": Z, "main_2": Z, "pin_1": Z, "flange": Z},
    "block": {"main_1": Z, "main_2": Z, "cylinder_1": X, "front": Z, "rear": Z},
}


def surfaces(path: Path, name: str) -> dict[str, list[int]]:
    """Return the numbers of the surfaces of the interfaces, from their radius and position."""

    def matching(kind: str, x: float | None, z: float, radius: float | None = None) -> list[int]:
        numbers = [
            s.number
            for s in step_surfaces(path)
            if s.kind == kind
            and (radius is None or abs((s.radius or 0.0) - radius) < 1e-6)
            and (x is None or abs(s.centre[0] - x) < 2e-3)
            and abs(s.centre[2] - z) < 2e-3
        ]
        assert numbers, (kind, x, z)
        return numbers

    z = SHAFT.main_positions
    result = {f"main_{k + 1}": matching("Cylinder", 0.0, z[k], 0.025) for k in range(2)}
    if name == "crank":
        end = z[-1] + 0.5 * float(SHAFT.main_length) + float(SHAFT.flange_thickness)
        result["pin_1"] = matching("Cylinder", 0.04, 0.0, 0.021)
        return result | {"flange": matching("Plane", 0.0, end)}
    half = 0.5 * (float(CASE.spacing) + float(CASE.bulkhead))
    ends = {"front": matching("Plane", None, -half), "rear": matching("Plane", None, half)}
    return result | {"cylinder_1": matching("Cylinder", None, 0.0, 0.035)} | ends


def reduced(geometry: Any, name: str) -> ReducedBody:
    """Return the reduced body of the crank or block, `name`, with its interfaces."""
    places = {f"main_{k + 1}": (0, 0, z) for k, z in enumerate(SHAFT.main_positions)}
    places |= {"cylinder_1": (0.15, 0, 0)}
    specs = {
        key: mbd.InterfaceSpec(kind="averaged", axes=axis, point=places.get(key))
        for key, axis in INTERFACES[name].items()
    }
    material = mbd.STEEL if name == "crank" else mbd.ALUMINIUM_7075
    mesh = mbd.build_mesh(geometry, MPI.COMM_WORLD)
    options: dict[str, Any] = {"num_modes": 3, "stiffening": False, "name": name}
    return mbd.reduce(mesh, material, interfaces=specs, **options).body


@pytest.mark.slow
def test_engine_with_parts_of_step_files(tmp_path: Path) -> None:
    """Mass, sizes, frequencies, bearing forces and motions are those of the parametric parts.

    The meshes differ, because a STEP file has no number of elements around its circles.
    """
    comm = MPI.COMM_WORLD
    folder = comm.bcast(tmp_path, root=0)
    bodies: dict[str, list[ReducedBody]] = {}
    for name, part in (("crank", SHAFT), ("block", CASE)):
        path = folder / f"{name}.step"
        numbers = None
        if comm.rank == 0:
            with gmsh_session() as gmsh:
                gmsh.option.setString("Geometry.OCCTargetUnit", "M")
                part(gmsh.model)
                gmsh.write(str(path))
            numbers = surfaces(path, name)
        step = StepPart(path, interfaces=comm.bcast(numbers, root=0), size=float(part.size))
        bodies[name] = [reduced(part, name), reduced(step, name)]
        first, second = bodies[name]
        assert second.total_mass == pytest.approx(first.total_mass, rel=2e-3)
        np.testing.assert_allclose(second.frequencies[:6], first.frequencies[:6], rtol=2e-2)
        for i, j in zip(first.interfaces, second.interfaces, strict=True):
            assert (j.radius, j.length) == pytest.approx((i.radius, i.length), rel=1e-6)
            np.testing.assert_allclose(j.point, i.point, atol=1e-4)
    rubber = [2e6] * 3 + [2e4] * 3, [400.0] * 3 + [4.0] * 3
    runs = []
    for crank, block in zip(*bodies.values(), strict=True):
        system = engine(
            rigid_rod(length=0.137, mass=0.2),
            EngineDesign(cylinders=1),
            crank=crank,
            block=block,
            mounts={"front": rubber, "rear": rubber},
            speed=200.0,
            angle=-0.5,
            damping_ratio=0.05,
        )
        runs.append(mbd.simulate(system, t_end=5e-3, dt=5e-5))
    for joint in ("main 1", "main", "crank pin 1", "guide 1"):
        first, second = (np.asarray(run.joint(joint).force) for run in runs)
        np.testing.assert_allclose(second, first, rtol=0, atol=3e-3 * np.abs(first).max())
    for body in ("crank", "block"):
        first, second = (run.body(body).position for run in runs)
        motion = np.abs(first - first[0]).max()
        np.testing.assert_allclose(second, first, rtol=0, atol=2e-3 * motion)
