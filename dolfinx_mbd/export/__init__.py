"""Reduced bodies for other programs: one module per file format, and `export` over all of them."""

from __future__ import annotations

from dolfinx_mbd.export.common import FORMATS, SI, UNITS, ExportReport, Format, Units, export

__all__ = ["FORMATS", "SI", "UNITS", "ExportReport", "Format", "Units", "export"]
