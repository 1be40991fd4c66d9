"""Files of runs and parameter studies, with fingerprints that identify the model of a file."""
