"""Parameter studies: the same run for many values of its parameters."""
