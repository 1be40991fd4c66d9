"""Derivatives of simulations (forward, adjoint) and of linearizations by parameters."""
