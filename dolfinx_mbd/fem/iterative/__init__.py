"""Static solutions and modes without a factorization, for bodies too large for a direct solver."""
