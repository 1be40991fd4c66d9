"""Beams: the same analyses as for solids, on a line."""
