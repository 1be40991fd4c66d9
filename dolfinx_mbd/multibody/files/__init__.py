"""Runs on disk: solutions, checkpoints, and to which system they belong."""
