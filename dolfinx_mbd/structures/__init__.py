"""Rotating structures, prescribed motions, beams, cables and other models of one body."""

from dolfinx_mbd.lazy import names_in

__getattr__ = names_in(__name__, "beams", "cables", "prescribed_motion", "rotating")
