"""Campaigns of fuzz tests: hostile (invalid or odd) arguments, files, meshes, faults and kills."""
