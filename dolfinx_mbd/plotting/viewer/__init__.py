"""Interactive scenes in one HTML file, which browsers show without a server or a network."""

from __future__ import annotations

from dolfinx_mbd.plotting.viewer.gltf import write_gltf
from dolfinx_mbd.plotting.viewer.player import Player, player

__all__ = ["Player", "player", "write_gltf"]
