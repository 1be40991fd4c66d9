"""Consistent initial states."""
