"""Solutions and modes without a factorization, for bodies whose factor does not fit."""
