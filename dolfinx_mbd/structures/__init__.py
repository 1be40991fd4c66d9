"""Rotating structures, prescribed motions, beams, cables and other models of one body."""

