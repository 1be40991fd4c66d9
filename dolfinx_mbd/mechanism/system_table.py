"""Tables of the bodies, joints, drivers and loads of a system, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dolfinx_mbd.mechanism.joints import FrameRef

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.system import System

__all__ = ["table_lines"]


def table_lines(system: System) -> list[str]:
    """Return the lines of a title and of four tables."""
    bodies = [
        (
            body.name,
            type(body).__name__,
            f"{body.typical_mass:.4g}" if body.num_velocities else "-",
            str(body.num_velocities - body.num_elastic),
            str(body.num_elastic),
        )
        for body in system.mechanical_bodies
    ]
    joints = [
        (j.name, j.kind.replace("_", "-"), _frame(j.first), _frame(j.second), str(len(j.rows)))
        for j in system.joints
    ]
    drivers = [(d.name, str(d.along), f"joint {d.joint}") for d in system.drivers]
    title = f"System of {len(bodies)} bodies"
    lines = [title, "=" * len(title)]
    lines += _table(("body", "kind", "mass (kg)", "rigid", "elastic"), bodies)[1:]
    lines += _table(("joint", "kind", "first frame", "second frame", "holds"), joints)
    lines += _table(("driver", "prescribes", "of"), drivers)
    loads = [(load.name, load.kind, load.location) for load in system.loads]
    lines += _table(("load", "kind", "at"), loads)
    return lines


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return an empty line and the lines of a table, or no lines if there are no rows."""
    if not rows:
        return []
    lines = [head, ["-" * len(word) for word in head], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return ["", *texts]


def _frame(frame: FrameRef) -> str:
    """Return the names of a frame and its body."""
    return f"{frame.body}: {frame.frame}"
