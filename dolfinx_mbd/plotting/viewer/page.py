"""The player: an interactive scene in one HTML page that needs no server and no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import chosen_modes
from dolfinx_mbd.checks import choice, instance, number, reject
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.parallel import on_rank_zero
from dolfinx_mbd.plotting.scene.mechanism_scene import initial_state
from dolfinx_mbd.plotting.scene.mesh_surfaces import shared_mesh
from dolfinx_mbd.plotting.scene.mode_scenes import body_modes, linearized_modes
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT
from dolfinx_mbd.plotting.viewer.curves import Signals
from dolfinx_mbd.plotting.viewer.html_page import HtmlPage, asset
from dolfinx_mbd.plotting.viewer.page_scene import motion_page, page_scene
from dolfinx_mbd.results.solution import Solution

if TYPE_CHECKING:
    from dolfinx_mbd.structures.rotating import CriticalSpeed, RotatingModes

__all__ = ["LARGE", "Player", "player"]

LARGE = 5_000_000
"""Size of a page above which a warning is given, bytes."""


class Player(HtmlPage):
    """A page with an interactive scene; notebooks display it.

    Args:
        scene: The scene as a JSON object, see `dolfinx_mbd.plotting.viewer.page_scene`.

    Example:
        >>> page = mbd.plotting.player(body)
        >>> page.save("body.html").name
        'body.html'
    """

    mark = b'<script type="application/json" id="scene">'
    permissions = "allow-scripts allow-downloads"

    def __init__(self, scene: dict[str, Any]) -> None:
        self._scene = scene

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; see `HtmlPage.save`.

        Args:
            path: File to write, with the suffix `.html`.

        Warns:
            FileWarning: The page is larger than 5 MB.
        """
        path = super().save(path)
        if (size := path.stat().st_size) > LARGE:
            shapes = len(_text_of(self._scene["parts"]))
            motion = len(_text_of(self._scene)) - shapes
            warn(
                FileWarning(
                    f"{path} has {size / 1e6:.1f} MB: {shapes / 1e6:.1f} MB for surfaces and their "
                    f"modes, {motion / 1e6:.1f} MB for the motion. Smaller pages: coarser meshes, "
                    "fewer modes, no stress, or a shorter run",
                    quantity="size of the page",
                    value=size,
                    limit=LARGE,
                )
            )
        return path

    @property
    def html(self) -> str:
        """The page as text."""
        parts = {
            "TITLE": html.escape(self._scene["title"]),
            "STYLE": asset("player.css"),
            "SCENE": _text_of(self._scene),
            "THREE": asset("three.min.js"),
            "PLAYER": asset("player.js"),
        }
        # The content of a script of player.html includes the line breaks next to its tags
        parts["HASHES"] = " ".join(_hash(f"\n{parts[name]}\n") for name in ("THREE", "PLAYER"))
        return re.sub("%([A-Z]+)%", lambda match: parts[match[1]], asset("player.html"))

    def __repr__(self) -> str:
        return f"<Player {self._scene['title']!r}: {len(self.html) / 1e6:.1f} MB>"


def _text_of(scene: Any) -> str:
    """Return a JSON object as text inside a page."""
    return json.dumps(scene, separators=(",", ":")).replace("<", "\\u003c")


def _hash(script: str) -> str:
    """Return the hash of a script for the page's Content-Security-Policy, which allows no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def player(
    source: Solution | System | ReducedBody | LinearizedSystem | RotatingModes | CriticalSpeed,
    path: str | Path | None = None,
    *,
    modes: Iterable[int] | None = None,
    signals: Signals = None,
    field: Mapping[str, ArrayLike] | None = None,
    field_name: tuple[str, str] = ("value", ""),
    quantity: str = "displacement",
    ghost: Solution | None = None,
    scale: float = 1.0,
    title: str = "",
    view: str | ArrayLike | None = None,
    opacity: Mapping[str, float] | None = None,
) -> Player:
    """Create an interactive page of a motion, a mechanism or modes.

    The page is one HTML file. Browsers open it without a server or a network. The page shows
    flexible and rigid bodies, joints, springs and forces. It plays the motion, magnifies
    deformations and colours bodies by displacement or von Mises stress.

    Args:
        source: Result of a simulation; a mechanism, shown at rest; or an object with modes, shown
            side by side: a reduced body, or the result of `mbd.linearize`,
            `mbd.structures.rotating_modes` or `mbd.structures.critical_speed`. Complex modes z are
            shown as Re(z exp(iφ)), and their titles contain the sense of the whirl.
            Modes of a rotating body are shown in the rotating frame.
        path: File to write, with the suffix `.html`; by default no file is written. An existing
            page of this package is replaced.
        modes: Numbers of the modes to show, starting at 1; by default the first six.
        signals: Mapping from labels to curves of a simulation. Values over time, shape (nt,), are
            drawn below the scene; orbits, shape (nt, 2), are drawn beside it over equal axes, with
            a marker at the current time. By default the magnitudes of all joint forces, N.
        field: Mapping from names of bodies to values that colour these flexible bodies of a
            simulation, one value for each point of the skin, for example the damage of a fatigue
            analysis. The values are constant over time and not negative.
        field_name: Name and unit of the field, for the legend.
        quantity: Initial quantity of the colours, `displacement` or `von Mises`. The page of a mesh
            body contains its stress only with the latter.
        ghost: Result of another simulation, drawn transparent over the first one at the same times,
            for example with rigid bodies. It must contain the times of the first one. Its mesh
            bodies, beams and cables are not drawn.
        scale: Initial scale factor of the elastic displacement.
        title: Title of the page; by default the name of the body or the kind of the source.
        view: Direction from the mechanism to the eye when the page opens, shape (3,), or ``xy``,
            ``xz``, ``yz``, ``iso``; by default obliquely onto the plane of the motion.
        opacity: Mapping from names of bodies to their opacity when the page opens, from 0 to 1, for
            example of a housing; by default 1 for flexible and 0.5 for rigid bodies.

    Warns:
        FileWarning: The written page is larger than 5 MB.

    Raises:
        InputError: The body has no skin, a mode does not exist, a signal or a field has the wrong
            length, the ghost does not contain the times of the run, or the kind of the source does
            not have one of the options `modes`, `signals`, `field`, `ghost`, `view` and `opacity`.
        OverwriteError: The existing file is not such a page.
        OSError: The file cannot be written.

    Example:
        >>> mbd.plotting.player(run, "run.html", scale=10)
        <Player 'mechanism': 0.7 MB>

    Note: For modes of a rotating body and for the stress of a mesh body, the function is
        collective, because the mesh may be distributed, and rank 0 writes the file. In all other
        cases call this function on one MPI rank.
    """
    number("scale", scale)
    instance("title", title, str)
    choice("quantity", quantity, (DISPLACEMENT, "von Mises"))
    comm = None
    is_pair = isinstance(field_name, (tuple, list)) and len(field_name) == 2
    if not is_pair or not all(isinstance(text, str) for text in field_name):
        reject("field_name", field_name, "a name and a unit, for example ('damage', '1/s')")
    instance("field", field, (Mapping, type(None)), "values at the points of the skin by body name")
    instance("ghost", ghost, (Solution, type(None)))
    if not isinstance(source, Solution):
        _check_absent("the result of a simulation", signals=signals, field=field, ghost=ghost)
    if not isinstance(source, Solution | System):
        _check_absent("a simulation or a mechanism", view=view, opacity=opacity)
    else:
        _check_absent("an object with modes", modes=modes)
    # The module is loaded if the source is one of its results
    rotating = sys.modules.get("dolfinx_mbd.structures.rotating")
    if rotating is not None and isinstance(source, rotating.CriticalSpeed):
        title = title or f"{source.kind} at {source.speed:.4g} rad/s"
        source = source.modes
    if rotating is not None and isinstance(source, rotating.RotatingModes):
        if quantity != DISPLACEMENT:
            reject("quantity", quantity, "'displacement' for the modes of a rotating body")
        return _rotating_page(source, path, modes, scale, title)
    instance("source", source, (Solution, System, ReducedBody, LinearizedSystem))
    assert isinstance(source, Solution | System | ReducedBody | LinearizedSystem)
    if isinstance(source, ReducedBody):
        scene = page_scene(body_modes(source, chosen_modes(modes, source.num_modes)))
        name = source.name
    elif isinstance(source, LinearizedSystem):
        scene = page_scene(linearized_modes(source, chosen_modes(modes, len(source.poles))))
        name = "modes of a mechanism"
    elif isinstance(source, Solution):
        options: dict[str, Any] = {"field": field, "quantity": quantity, "ghost": ghost}
        scene = motion_page(source, signals=signals, view=view, **options)
        name, comm = "mechanism", shared_mesh(source, quantity)
        if field:
            scene["field"] = list(field_name)  # its values are those of the parts
    else:
        run = initial_state(source)
        scene = motion_page(run, signals={}, quantity=quantity, view=view)
        name, comm = "mechanism", shared_mesh(run, quantity)
    _set_opacity(scene["bodies"], opacity)
    if quantity != DISPLACEMENT:
        if not any(part["stress"] for part in scene["parts"]):
            how = (
                "add the stress of the modes: body.replace(stress=mbd.durability.skin_stress(...))"
            )
            reject("quantity", quantity, "'displacement': no body has stress at its skin", hint=how)
        scene["colour"] = "stress"
    page = Player({"title": title or name, "scale": scale, **scene})
    if path is not None:
        on_rank_zero(comm, lambda: page.save(path))
    return page


def _set_opacity(bodies: list[dict[str, Any]], opacity: Mapping[str, float] | None) -> None:
    """Set the opacity of bodies by name."""
    hint = "opacities from 0 to 1 by the name of a body"
    chosen = instance("opacity", {} if opacity is None else opacity, Mapping, hint)
    for name, value in chosen.items():
        choice("name of a body with an opacity", name, [body["name"] for body in bodies])
        value_of_body = number(f"opacity of body {name!r}", value, low=0.0, high=1.0)
        for body in bodies:
            if body["name"] == name and not body.get("ghost"):
                body["opacity"] = value_of_body


def _check_absent(source: str, **options: Any) -> None:
    """Raise an error if an option of one kind of source is used for another one."""
    for name, value in options.items():
        if value is not None:
            reject(name, value, f"None: only {source} has this option")


def _rotating_page(
    source: RotatingModes,
    path: str | Path | None,
    modes: Iterable[int] | None,
    scale: float,
    title: str,
) -> Player:
    """Return the page of the modes of a rotating body; rank 0 writes it (collective)."""
    from dolfinx_mbd.plotting.scene.rotating_modes import rotating_modes

    scene = page_scene(rotating_modes(source, chosen_modes(modes, len(source.eigenvalues))))
    name = title or f"modes at {source.speed:.4g} rad/s"
    page = Player({"title": name, "scale": scale, **scene})
    if path is not None:
        on_rank_zero(source.space.mesh.comm, lambda: page.save(path))
    return page
