"""Interfaces of a body on its mesh: rigid, averaged, and elastic bores."""
