"""Models of the papers as printed, for comparison with this package."""
