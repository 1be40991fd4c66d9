"""Solutions and modes without a factor of the stiffness, for bodies whose factor does not fit."""
