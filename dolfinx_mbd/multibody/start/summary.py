"""A mechanism on one page, for a person."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.multibody.assembly.redundancy import find_redundant
from dolfinx_mbd.multibody.model.force_elements import JointFriction, JointSpring, PairElement
from dolfinx_mbd.multibody.model.joints import FrameRef
from dolfinx_mbd.multibody.model.loads import FrameLoad, JointLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad
from dolfinx_mbd.multibody.model.system import Load, SystemData
from dolfinx_mbd.multibody.start.position_assembly import assemble, moves

__all__ = ["summary"]

_MOVED = 1e-6  # of the size of the mechanism, or rad: motions of the assembly that are listed


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * len(word) for word in head], *rows]
    text = [
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return ["", *text]


def _frame(ref: FrameRef) -> str:
    return f"{ref.body}: {ref.frame}"


def _load(load: Load) -> tuple[str, str, str]:
    """Name, kind and place of a load."""
    if isinstance(load, FrameLoad):
        return load.name, load.kind, _frame(FrameRef(*load.frame))
    if isinstance(load, PatternLoad):
        return load.name, "distributed load", f"{load.pattern.body}: {load.pattern.pattern}"
    if isinstance(load, PairElement):
        kind = "bushing" if type(load).__name__ == "Bushing" else "spring-damper"
        return load.name, kind, f"{_frame(load.first)} to {_frame(load.second)}"
    kind = {JointSpring: "spring-damper", JointFriction: "friction"}.get(
        type(load), "torque" if load.coordinate.motion == "rotation" else "force"
    )
    if isinstance(load, JointLoad):
        kind = "torque" if load.motion == "rotation" else "force"
    return load.name, kind, f"joint {load.joint}"


def summary(system: SystemData) -> str:
    """Bodies, joints, drivers, loads, degrees of freedom and redundant constraints."""
    bodies = [
        (
            body.name,
            type(body).__name__,
            f"{body.typical_mass:.4g}" if body.num_velocities else "-",
            str(body.num_velocities - body.num_elastic),
            str(body.num_elastic),
        )
        for body in system.bodies
    ]
    joints = [
        (j.name, j.kind.replace("_", "-"), _frame(j.first), _frame(j.second), str(len(j.rows)))
        for j in system.joints
    ]
    drivers = [(d.name, str(d.along), f"joint {d.joint}") for d in system.drivers]
    lines = [f"System of {len(bodies)} bodies"]
    lines.append("=" * len(lines[0]))
    lines += _table(("body", "kind", "mass (kg)", "rigid", "elastic"), bodies)[1:]
    lines += _table(("joint", "kind", "first frame", "second frame", "holds"), joints)
    lines += _table(("driver", "prescribes", "of"), drivers)
    lines += _table(("load", "kind", "at"), [_load(load) for load in system.loads])
    return "\n".join([*lines, "", *_freedom(system)])


def _freedom(system: SystemData) -> list[str]:
    velocities, held = system.num_velocities, system.num_constraints
    at = Assembler(system)
    at.q[:] = np.concatenate([body.initial_coordinates() for body in system.bodies])
    try:
        limit = assemble(at, 0.0, system.rigid)
    except AssemblyError as error:
        return [f"{velocities} coordinates, {held} constraints; {error}"]
    moved = [move for move in moves(at, 0.0) if move.relative > _MOVED]
    found = []
    if held:
        found = find_redundant(system, at.constraint_matrix(at.jacobians()), limit=limit)
    line = f"degrees of freedom   {velocities - held + len(found)}"
    line += f" = {velocities} coordinates − {held} constraints"
    line += f" + {len(found)} redundant" if found else ""
    elastic = len(system.elastic)
    lines = [line + (f"; {elastic} of them elastic" if elastic else "")]
    lines += [f"redundant            {item}" for item in found]
    return lines + [f"moved by assembly    {move}" for move in moved]
