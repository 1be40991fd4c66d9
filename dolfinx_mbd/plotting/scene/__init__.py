"""The scene: a description of surfaces, marks and arrows, which all renderers draw."""
