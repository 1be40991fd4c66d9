"""Rotating structures, prescribed motions, beams, cables and other models of one body."""

import lazy_loader

__getattr__, _, _ = lazy_loader.attach(
    __name__, ["beams", "cables", "mesh_bodies", "prescribed_motion", "rotating"]
)
