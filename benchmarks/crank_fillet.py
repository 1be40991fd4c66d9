"""Stress in a fillet of a crankshaft, with several element sizes around its most stressed place.

    ./with-fenicsx python3 benchmarks/crank_fillet.py [--sizes 1.5mm 0.75mm 0.5mm]

A radial force of 10 kN on the pin of one throw is balanced by its two main journals. The table
shows the largest von Mises stress within 6 mm of a place in the fillet of a main journal. The mesh
of the first row is not refined there.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd

FORCE, PLACE = 1e4, (0.02657, 0.0047, -0.02818)  # N, and the most stressed place of a fillet, m
NEAR = 0.006  # largest distance from this place, m
COARSE = mbd.geometry.Crankshaft(
    throw_angles=[0.0], fillet=0.003, size=0.016, per_circle=4, order=1
)


def stress_of(shaft: mbd.geometry.Crankshaft) -> tuple[int, float]:
    """Return the number of cells and the stress near the place, Pa."""
    mesh = mbd.build_mesh(shaft, MPI.COMM_SELF)
    spec = mbd.InterfaceSpec(kind="averaged", axes=(0, 0, 1))
    factors = {"main_1": 0.5, "main_2": 0.5, "pin_1": -1.0}  # fractions of the force, by interface
    interfaces = dict.fromkeys(factors, spec)
    options = {"num_modes": 0, "stiffening": False}
    reduction = mbd.reduce(mesh, mbd.STEEL, interfaces=interfaces, **options)
    body, stress = reduction.body, mbd.durability.skin_stress(reduction, peaks=False)
    # generalized forces: projection of the forces along x on the elastic coordinates
    load = sum(FORCE * factor * body.interface(name).motion[0] for name, factor in factors.items())
    near = np.linalg.norm(stress.points - PLACE, axis=1) < NEAR
    values = stress.values("von Mises", np.linalg.solve(body.stiffness, load))[0]
    return mesh.mesh.topology.index_map(3).size_local, float(values[near].max())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["1.5mm", "0.75mm", "0.5mm"])
    sizes = parser.parse_args().sizes
    print(f"{'elements':<10} {'cells':>8} {'stress (MPa)':>14} {'time (s)':>10}")
    for size in ["coarse", *sizes]:
        start = time.process_time()
        fine = size != "coarse"
        shaft = replace(COARSE, refined=[PLACE], refined_size=size) if fine else COARSE
        cells, stress = stress_of(shaft)
        seconds = time.process_time() - start
        print(f"{size:<10} {cells:>8} {1e-6 * stress:>14.2f} {seconds:>10.1f}", flush=True)


if __name__ == "__main__":
    main()
