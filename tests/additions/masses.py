"""An export: mass and moments of a body as text."""

from __future__ import annotations

from dolfinx_mbd.io.export.common import ExportReport, Task

__all__ = ["write_masses"]


def write_masses(task: Task) -> ExportReport:
    """Write the mass and the first moments."""
    body = task.body
    rows = [" ".join(map(repr, row.tolist())) for row in body.first_moments]
    return task.save([task.report.units.statement, repr(body.total_mass), *rows])
