"""Summary of a mechanism as text."""

from __future__ import annotations

from collections.abc import Sequence

from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.multibody.model.force_elements import PairElement
from dolfinx_mbd.multibody.model.joints import FrameRef
from dolfinx_mbd.multibody.model.loads import FrameLoad, JointLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad
from dolfinx_mbd.multibody.model.system import Load, SystemData
from dolfinx_mbd.multibody.start.position_assembly import (
    assemble,
    coordinates,
    moves,
    redundant_rows,
)

__all__ = ["summary"]

_MOVED = 1e-6  # motion of a body by the assembly that is listed, see `Move.relative`
_KINDS = {
    "PatternLoad": "distributed load",
    "SpringDamper": "spring-damper",
    "JointSpring": "spring-damper",
    "Bushing": "bushing",
    "JointFriction": "friction",
}


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


def _frame(frame: FrameRef) -> str:
    return f"{frame.body}: {frame.frame}"


def _load(load: Load) -> tuple[str, str, str]:
    """Return name, kind and place of a load."""
    kind = _KINDS.get(type(load).__name__, "force")
    if isinstance(load, FrameLoad):
        return load.name, load.kind, _frame(FrameRef(*load.frame))
    if isinstance(load, PatternLoad):
        return load.name, kind, f"{load.pattern.body}: {load.pattern.pattern}"
    if isinstance(load, PairElement):
        return load.name, kind, f"{_frame(load.first)} to {_frame(load.second)}"
    if isinstance(load, JointLoad) and load.motion == "rotation":
        kind = "torque"
    return load.name, kind, f"joint {load.joint}"


def summary(system: SystemData) -> str:
    """Return tables of bodies, joints, drivers, loads, freedoms and redundant constraints."""
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
    """Return the lines about degrees of freedom, redundant constraints and the assembly."""
    velocities, held = system.num_velocities, system.num_constraints
    at = Assembler(system)
    at.q[:] = coordinates(system)
    try:
        limit = assemble(at, 0.0, system.rigid)
    except AssemblyError as error:
        return [f"{velocities} coordinates, {held} constraints; {error}"]
    moved = [move for move in moves(at, 0.0) if move.relative > _MOVED]
    redundant = redundant_rows(at, limit)
    line = f"degrees of freedom   {velocities - held + len(redundant)}"
    line += f" = {velocities} coordinates − {held} constraints"
    line += f" + {len(redundant)} redundant" if redundant else ""
    line += f"; {len(system.elastic)} of them elastic" if len(system.elastic) else ""
    lines = [line, *(f"redundant            {item}" for item in redundant)]
    return lines + [f"moved by assembly    {move}" for move in moved]
