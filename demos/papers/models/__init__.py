"""Models from two papers, implemented as printed for comparison with this package."""
