"""Files of runs and of parameter studies, and fingerprints of what they belong to."""
