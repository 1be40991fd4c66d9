"""Methods of time integration, the control of the step, and checkpoints."""
