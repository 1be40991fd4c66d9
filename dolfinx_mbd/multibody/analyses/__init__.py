"""What is asked of a mechanism beside its motion: equilibria, small motions, known motions."""
