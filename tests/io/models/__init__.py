"""Tests of model files."""
