"""Marks of the viewer: joints, springs, frames, arrows of forces, cables, and curves over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array
from dolfinx_mbd.mechanism.force_elements import PairElement
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.plotting.scenes.arrows import Arrow, frame_histories, joint_arrows, load_arrows
from dolfinx_mbd.plotting.viewer.data import block, outline
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]
Signals = Mapping[str, ArrayLike] | None


def marks_of(run: Solution, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Return joints, springs, frames and arrows of forces at the saved times `rows`."""
    system = run.system
    position, rotation = frame_histories(system, run.q[rows])
    joints: list[dict[str, Any]] = [
        {
            "name": joint.name,
            "kind": joint.kind,
            "first": system.frame_index(joint.first),
            "second": system.frame_index(joint.second),
        }
        for joint in system.joints
    ]
    springs: list[dict[str, Any]] = [
        {
            "name": load.name,
            "first": system.frame_index(load.first),
            "second": system.frame_index(load.second),
        }
        for load in system.loads
        if isinstance(load, PairElement)
    ]
    fixed = [
        k for k, body in enumerate(system.frame_body) if not system.bodies[body].num_velocities
    ]
    arrows = _items(joint_arrows(run, rows) if len(run) > 1 else [])
    arrows += _items(load_arrows(run, rows))
    used: list[int] = sorted(
        {f for m in joints + springs for f in (m["first"], m["second"])}
        | {a["frame"] for a in arrows}
    )
    return {
        "frames": [
            {
                "index": f,
                "position": block(position[:, f]),
                "axis": block(rotation[:, f, :, 2]),
                "ground": f in fixed,
            }
            for f in used
        ],
        "joints": joints,
        "springs": springs,
        "arrows": arrows,
    }


def _items(arrows: Iterable[Arrow]) -> list[dict[str, Any]]:
    """Return the forces at frames as JSON objects."""
    return [
        {
            "name": arrow.name,
            "group": arrow.group,
            "frame": arrow.frame,
            "vector": block(arrow.vectors),
            "greatest": arrow.size,
        }
        for arrow in arrows
        if arrow.unit == "N" and arrow.frame >= 0
    ]


def cable_lines(run: Solution, rows: NDArray[np.int64]) -> dict[str, Array]:
    """Return the centre lines of cables at the saved times `rows` by name, shape (nr, np, 3)."""
    return {
        body.name: body.motion(run, _places(body)).position[rows] for body in _cables(run.system)
    }


def cable_increments(system: System, state: State, vector: Any) -> list[Any]:
    """Return the complex displacements (np, 3) of each centre line for an increment (nv,)."""
    lines = []
    for body in _cables(system):
        k = system.body_index(body.name)
        states = []
        for change in (0.0 * vector.real, vector.real, vector.imag):
            q = state.q.copy()
            q[system.q_slices[k]] += change[system.v_slices[k]]
            states.append(replace(state, q=q))
        rest, real, imaginary = body.motion(Solution(system, states), _places(body)).position
        lines.append(real - rest + 1j * (imaginary - rest))
    return lines


def _cables(system: System) -> list[Any]:
    """Return the bodies that are lines in absolute coordinates."""
    return [body for body in system.bodies if hasattr(body, "motion")]


def _places(body: Any) -> Array:
    """Return places at which a cable is drawn: its nodes, and three between them, m."""
    last = len(body.nodes) - 1
    return np.interp(np.linspace(0, last, 4 * last + 1), np.arange(last + 1), body.nodes)


def signal_curves(run: Solution, signals: Signals) -> list[dict[str, Any]]:
    """Return the curves of a run, by default the magnitudes of the joint forces."""
    if signals is None:
        curves = {
            f"{joint.name}: force (N)": np.linalg.norm(run.joint(joint.name).force, axis=1)
            for joint in run.system.joints
        }
    else:
        curves = {
            str(label): array(f"signals[{label!r}]", values, (len(run),))
            for label, values in signals.items()
        }
    items = []
    for label, values in curves.items():
        t, y = outline(run.time, np.asarray(values, dtype=float))
        items.append({"label": label, "time": block(t, "f8"), "values": block(y)})
    return items
