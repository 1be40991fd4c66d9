"""Pictures and films of scenes, drawn with pyvista."""
