"""Export of nonlinear mechanisms as C code."""
