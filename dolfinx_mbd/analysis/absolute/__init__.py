"""Lines in absolute coordinates, which bend as far as they like, as bodies of a mechanism."""
