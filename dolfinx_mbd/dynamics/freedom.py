"""Degrees of freedom, redundant constraints and moved bodies, for the summary of a system."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.redundancy import Redundancy, without_units
from dolfinx_mbd.dynamics.start.position_assembly import (
    assemble,
    coordinates,
    moves,
    redundant_rows,
)
from dolfinx_mbd.mechanism.system import System

__all__ = ["freedom"]

_MOVED = 1e-6  # a body with a larger `Move.relative` is listed as moved


def freedom(system: System) -> list[str]:
    """Return the lines about degrees of freedom, redundant constraints and the assembly."""
    system = system.with_rigid_bodies  # mesh bodies are assembled as rigid bodies
    velocities = system.num_velocities - len(system.states)
    constraints, elastic = system.num_constraints, len(system.elastic)
    eqs = Assembler(system)
    eqs.q[:] = coordinates(system)
    try:
        limit = assemble(eqs, 0.0)
    except AssemblyError as error:
        return [f"{velocities} coordinates, {constraints} constraints; {error}"]
    large_moves = [move for move in moves(eqs, 0.0) if move.relative > _MOVED]
    redundant = redundant_rows(eqs, limit)
    free = velocities - constraints + len(redundant)
    line = f"degrees of freedom   {free}"
    line += f" = {velocities} coordinates − {constraints} constraints"
    line += f" + {len(redundant)} redundant" if redundant else ""
    lines = [line, *(f"redundant            {item}" for item in redundant)]
    if len(system.states):
        lines.insert(1, f"states of loads      {len(system.states)}")
    if elastic:
        rows = {r.row for r in redundant}
        carried = [r for r in redundant_rows(eqs, limit, system.rigid) if r.row not in rows]
        rigid = len(system.rigid) - constraints + len(rows) + len(carried)
        lines[0] += f": {rigid} of rigid motions, {free - rigid} of deformations"
        lines += _carried(system, eqs, carried, limit)
    return lines + [f"moved by assembly    {move}" for move in large_moves]


def _carried(system: System, eqs: Assembler, carried: list[Redundancy], limit: float) -> list[str]:
    """Return lines about constraints that only the deformation of bodies can satisfy."""
    if not carried:
        return []
    B, _, _ = without_units(system, eqs.constraint_matrix())
    left, sizes, _ = np.linalg.svd(B[:, system.rigid])
    rank = int(np.sum(sizes > limit * sizes.max(initial=0.0)))
    parts = left[:, rank:].T @ B  # combinations of constraints without rigid motions
    names = [
        repr(body.name)
        for body, part in zip(system.bodies, system.v_slices, strict=True)
        if body.num_elastic and np.abs(parts[:, part]).max() > limit
    ]
    text = (
        f"over-constrained     the deformation of {', '.join(names)} carries {len(carried)} "
        "constraints that are redundant for rigid bodies;\n"
        "                     misfits of these joints cause forces. Joints with fewer "
        "constraints avoid them:"
    )
    return [text, *(f"                     {item}" for item in carried)]
