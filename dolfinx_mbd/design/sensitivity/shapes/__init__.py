"""Changes of shape: velocities of the mesh, and derivatives of the matrices on a moving mesh."""
