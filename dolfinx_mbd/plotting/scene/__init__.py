"""The scene: a description of what is seen, which all renderers draw."""
