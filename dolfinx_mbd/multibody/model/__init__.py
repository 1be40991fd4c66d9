"""Mechanisms as data: bodies, joints, drivers, loads and the system that holds them."""
