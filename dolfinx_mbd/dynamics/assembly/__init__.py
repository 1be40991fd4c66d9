"""Equations of a mechanism at one time and state."""
