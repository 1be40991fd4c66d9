"""Models of the papers as they are printed, to be compared with ours."""
