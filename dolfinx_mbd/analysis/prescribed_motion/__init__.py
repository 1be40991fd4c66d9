"""The deformation of a body whose rigid motion is given, at full order and in modes."""
