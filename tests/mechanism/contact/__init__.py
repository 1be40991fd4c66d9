"""Tests of contacts, clearances, end stops and gears."""
