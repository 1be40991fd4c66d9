"""Export of nonlinear mechanisms as functional mock-up units in C."""

from dolfinx_mbd.io.export.compiled.unit import export_compiled_fmu

__all__ = ["export_compiled_fmu"]
