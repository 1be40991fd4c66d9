"""The class `System`: a mechanism with a printed summary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.redundancy import Redundancy, without_units
from dolfinx_mbd.dynamics.start.position_assembly import (
    assemble,
    coordinates,
    moves,
    redundant_rows,
)
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.system import SystemData

__all__ = ["System"]

_MOVED = 1e-6  # a body with a larger `Move.relative` is listed as moved


class System(SystemData):
    """Bodies connected by joints, with drivers and loads; `print(system)` shows a table.

    Unspecified distances, offsets and free lengths of joints, drivers and loads are measured at the
    initial positions of the bodies, before the assembly.

    Args:
        bodies: Bodies; at most one of them is a `Ground`.
        joints: Joints between frames of two bodies.
        drivers: Prescribed rotations and displacements of joints.
        loads: Forces and torques, springs, bushings and friction.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².

    Raises:
        InputError: A name is repeated or unknown, or a driver does not match its joint; the message
            lists the valid names.

    Example:
        >>> ground = mbd.Ground({"bearing": mbd.Frame()})
        >>> bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, frames={"pivot": mbd.Frame((0, 1, 0))})
        >>> hinge = mbd.revolute("hinge", ground.frame("bearing"), bob.frame("pivot"))
        >>> mbd.System([ground, bob], [hinge], gravity=(0, -9.81, 0))
        <System: 2 bodies, 1 joints, 0 drivers, 0 loads; 6 velocities (0 elastic), 5 constraints>
    """

    def summary(self) -> str:
        """Return a table of bodies, joints, drivers, loads and degrees of freedom.

        The table also lists redundant constraints and the bodies that the assembly at t = 0 moves.
        """
        bodies = [
            (
                body.name,
                type(body).__name__,
                f"{body.typical_mass:.4g}" if body.num_velocities else "-",
                str(body.num_velocities - body.num_elastic),
                str(body.num_elastic),
            )
            for body in self.mechanical_bodies
        ]
        joints = [
            (j.name, j.kind.replace("_", "-"), _frame(j.first), _frame(j.second), str(len(j.rows)))
            for j in self.joints
        ]
        drivers = [(d.name, str(d.along), f"joint {d.joint}") for d in self.drivers]
        title = f"System of {len(bodies)} bodies"
        lines = [title, "=" * len(title)]
        lines += _table(("body", "kind", "mass (kg)", "rigid", "elastic"), bodies)[1:]
        lines += _table(("joint", "kind", "first frame", "second frame", "holds"), joints)
        lines += _table(("driver", "prescribes", "of"), drivers)
        loads = [(load.name, load.kind, load.location) for load in self.loads]
        lines += _table(("load", "kind", "at"), loads)
        return "\n".join([*lines, "", *self._freedom()])

    def _freedom(self) -> list[str]:
        """Return the lines about degrees of freedom, redundant constraints and the assembly."""
        velocities = self.num_velocities - len(self.states)
        held, elastic = self.num_constraints, len(self.elastic)
        rigid = self.with_rigid_bodies
        at = Assembler(rigid)
        at.q[:] = coordinates(rigid)
        try:
            limit = assemble(at, 0.0, self.rigid)
        except AssemblyError as error:
            return [f"{velocities} coordinates, {held} constraints; {error}"]
        large_moves = [move for move in moves(at, 0.0) if move.relative > _MOVED]
        redundant = redundant_rows(at, limit)
        free = velocities - held + len(redundant)
        line = f"degrees of freedom   {free}"
        line += f" = {velocities} coordinates − {held} constraints"
        line += f" + {len(redundant)} redundant" if redundant else ""
        lines = [line, *(f"redundant            {item}" for item in redundant)]
        if len(self.states):
            lines.insert(1, f"states of loads      {len(self.states)}")
        if elastic:
            rows = {r.row for r in redundant}
            carried = [r for r in redundant_rows(at, limit, self.rigid) if r.row not in rows]
            rigid = len(self.rigid) - held + len(rows) + len(carried)
            lines[0] += f": {rigid} of rigid motions, {free - rigid} of deformations"
            lines += self._carried(at, carried, limit)
        return lines + [f"moved by assembly    {move}" for move in large_moves]

    def _carried(self, at: Assembler, carried: list[Redundancy], limit: float) -> list[str]:
        """Return lines about constraints that only the deformation of bodies can satisfy."""
        if not carried:
            return []
        B = without_units(self, at.constraint_matrix())[0]
        left, sizes, _ = np.linalg.svd(B[:, self.rigid])
        rank = int(np.sum(sizes > limit * sizes.max(initial=0.0)))
        parts = left[:, rank:].T @ B  # of the combinations of constraints without rigid motions
        names = [
            repr(body.name)
            for body, part in zip(self.bodies, self.v_slices, strict=True)
            if body.num_elastic and np.abs(parts[:, part]).max() > limit
        ]
        text = (
            f"over-constrained     the deformation of {', '.join(names)} carries {len(carried)} "
            "constraints that are redundant for rigid bodies;\n"
            "                     misfits of these joints cause forces. Joints with fewer "
            "constraints avoid them:"
        )
        return [text, *(f"                     {item}" for item in carried)]

    def __str__(self) -> str:
        return self.summary()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return an empty line and the lines of a table, or no lines if there are no rows."""
    if not rows:
        return []
    lines = [head, ["-" * len(word) for word in head], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return ["", *texts]


def _frame(frame: FrameRef) -> str:
    return f"{frame.body}: {frame.frame}"
