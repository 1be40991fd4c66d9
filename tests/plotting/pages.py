"""Read what a page of the viewer contains, without its script."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.plotting.viewer.data import KINDS
from dolfinx_mbd.plotting.viewer.page import Player


class PageSurface(NamedTuple):
    """Points (n, 3), triangles (nt, 3), modes (m, n, 3) and stress (m, n, 6) of a surface."""

    points: np.ndarray
    triangles: np.ndarray
    modes: np.ndarray
    stress: np.ndarray | None


def numbers(item: dict[str, str]) -> np.ndarray:
    """Return an array of a page; a large one is compressed, with the lowest bytes first."""
    if "data" in item:
        return np.frombuffer(base64.b64decode(item["data"]), KINDS[item["type"]]).astype(float)
    planes = np.frombuffer(zlib.decompress(base64.b64decode(item["packed"])), np.uint8)
    rows = planes.reshape(np.dtype(KINDS[item["type"]]).itemsize, -1).T
    return np.frombuffer(rows.tobytes(), KINDS[item["type"]]).astype(float)


def scene_in(page: Player) -> dict[str, Any]:
    """Return the scene that a page contains."""
    match = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page.html)
    assert match is not None
    scene: dict[str, Any] = json.loads(match[1])
    return scene


def surface_in(part: dict[str, Any]) -> PageSurface:
    """Return a surface of a page, which stores differences to predictions (see `_values`)."""
    steps, a_to_b, b_to_c = numbers(part["triangles"]).reshape(3, -1)
    # nodes of the corners: the first by differences between triangles, then along the edges
    a = np.cumsum(steps)
    triangles = np.stack([a, a + a_to_b, a + a_to_b + _signed(b_to_c)], axis=1).astype(int)
    points = part["points"]
    count, scale = points["count"], points["scale"]
    positions = np.array(points["origin"]) + scale * _values(points["values"], triangles, count)
    fields: list[Any] = [np.zeros((0, count, 3)), None]
    for k, name in enumerate(("modes", "stress")):
        if part[name] is not None:
            scales = np.array(part[name]["scale"])
            values = _values(part[name]["values"], triangles, count)
            parts = values.reshape(count, len(scales), -1)
            fields[k] = np.moveaxis(parts * scales[:, None], 1, 0)
    return PageSurface(positions, triangles, *fields)


def _signed(values: np.ndarray) -> np.ndarray:
    """Return integers of both signs from 0, 1, 2, 3, ..., which denote 0, -1, 1, -2, ..."""
    return np.where(values % 2 == 1, -(values + 1) / 2, values / 2)


def _values(item: dict[str, str], triangles: np.ndarray, count: int) -> np.ndarray:
    """Return integers (nodes, components) from the differences to predictions by earlier nodes.

    A triangle whose neighbour has only earlier nodes a, b, c predicts a + b - c for its new node
    opposite c, as in a parallelogram. Otherwise the mean of the neighbours, or the node before it,
    is the prediction.
    """
    differences = _signed(numbers(item)).reshape(-1, count).T
    around = defaultdict(list)  # opposite nodes by edge
    for corners in triangles.tolist():
        for k in range(3):
            edge = frozenset((corners[k], corners[(k + 1) % 3]))
            around[edge].append(corners[(k + 2) % 3])
    pairs, neighbours = defaultdict(list), defaultdict(list)
    for edge, opposite in around.items():
        for c, d in zip(opposite[::2], opposite[1::2], strict=False):
            if max(c, d) > max(edge) and c != d:
                pairs[max(c, d)].append((max(edge), min(edge), min(c, d)))
        if len(edge) == 2:
            neighbours[max(edge)].append(min(edge))
    values = np.zeros(differences.shape)
    for i in range(count):
        guess = values[i - 1] if i else np.zeros(values.shape[1])
        if pairs[i]:
            guess = np.mean([values[a] + values[b] - values[c] for a, b, c in pairs[i]], axis=0)
        elif neighbours[i]:
            guess = np.mean([values[k] for k in neighbours[i]], axis=0)
        values[i] = np.floor(guess + 0.5) + differences[i]
    return values
