"""From one instant to the next: methods, and the choice of the step."""
