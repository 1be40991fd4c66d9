"""Histories of a run, its energies and the checks of its accuracy."""
