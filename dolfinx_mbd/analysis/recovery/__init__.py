"""Back to the mesh: displacement, stress and section forces of a motion, and their envelopes."""
