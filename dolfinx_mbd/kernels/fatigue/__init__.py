"""Compiled functions of fatigue: cycles of a history and their damage."""
