"""Derivatives of simulations with respect to parameters: forward and adjoint."""
