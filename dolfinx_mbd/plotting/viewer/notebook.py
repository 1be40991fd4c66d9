"""Scenes of bodies, mechanisms and runs in notebooks."""

from __future__ import annotations

from typing import Any

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import Error
from dolfinx_mbd.html import register_scene
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.viewer.page import player
from dolfinx_mbd.results.solution import Solution


def _scene(source: Any) -> str:
    """Return the viewer of an object as HTML, or nothing if it cannot be drawn."""
    try:
        return player(source)._repr_html_()
    except Error:
        return ""


for _kind in (ReducedBody, System, Solution):
    register_scene(_kind, _scene)
