"""Methods of time integration, and the control of the step."""
