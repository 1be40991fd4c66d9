"""Compiled time steps of a whole mechanism: its arrays, its equations and the steps."""
