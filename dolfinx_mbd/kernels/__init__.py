"""Compiled functions: small vectors, rotations, bodies in a floating frame, joints."""
