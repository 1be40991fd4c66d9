"""Results of a simulation: histories, energies, sensors, files and accuracy checks."""
