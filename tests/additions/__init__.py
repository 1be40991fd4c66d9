"""Files that `test_additions.py` adds to copies of the package."""
