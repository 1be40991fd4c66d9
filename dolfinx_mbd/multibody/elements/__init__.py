"""Springs, dampers, bushings and friction between frames."""
