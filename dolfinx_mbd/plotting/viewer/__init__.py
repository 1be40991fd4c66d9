"""The viewer: interactive scenes in one HTML page, for browsers and notebooks."""
