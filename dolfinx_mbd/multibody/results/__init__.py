"""Results of a simulation: histories, energies, sensors, files and checks of the accuracy."""
