"""Functional mock-up units: names, units, and what those in C share.

`fmi2.c` and `fmi3.c` are the main sources of a unit in C. They include `model.c`, which defines the
state and the steps of a model and includes `unit.c`, and `fmi.c`, which both versions share.
"""
