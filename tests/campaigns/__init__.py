"""Campaigns against the package: hostile arguments, damaged files, bad meshes, faults and kills."""
