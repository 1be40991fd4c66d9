"""Parameter studies: many runs of one system side by side, over processes or MPI ranks."""
