"""Compiled functions of oil films: relative motion, thickness, pressure and loads."""
