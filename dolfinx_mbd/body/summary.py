"""A reduced body on one page, for a person."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.body.reduced_body import ReducedBody

__all__ = ["summary"]


def _vector(values: np.ndarray, scale: float = 1.0) -> str:
    if scale != 1.0:  # lengths: no hundredths of a micrometre
        values = np.round(values, 8)
    return "  ".join(
        f"{value * scale:10.4g}" for value in np.where(np.abs(values) < 1e-12, 0.0, values)
    )


def _direction(axis: np.ndarray) -> str:
    return f"({', '.join(f'{component + 0.0:.3g}' for component in axis)})"


def summary(body: ReducedBody) -> str:
    """A page of text: mass properties, interfaces, modes, and where the numbers come from."""
    moments, axes = np.linalg.eigh(body.central_inertia)
    lines = [
        f"Reduced flexible body '{body.name}'",
        "=" * (24 + len(body.name)),
        f"mass                     {body.total_mass:.6g} kg",
        f"centre of mass (mm)      {_vector(body.centre, 1e3)}",
        f"principal inertia (kg m²){_vector(moments)}",
        f"reference                {body.reference}",
        f"geometric stiffening     {'no' if body.stiffening is None else 'yes'}",
        f"damping                  {'yes' if body.damping.any() else 'none of its own'}",
        f"elastic coordinates      {body.num_modes}",
        "",
        "interface        kind      point (mm)                         axis z",
        "---------        ----      ----------                         ------",
    ]
    lines += [
        f"{i.name:<16} {i.kind:<8} {_vector(i.point, 1e3)}  {_direction(i.axes[:, 2])}"
        for i in body.interfaces
    ] or ["(none)"]
    if body.points:
        lines += [
            "",
            "point                      position (mm)",
            "-----                      -------------",
        ]
        lines += [f"{p.name:<24} {_vector(p.position, 1e3)}" for p in body.points]
    if body.loads:
        lines += [
            "",
            "load of size 1             resultant (N)                      moment (N m)",
            "--------------             -------------                      ------------",
        ]
        lines += [f"{p.name:<24} {_vector(p.force)}  {_vector(p.moment)}" for p in body.loads]
    lines += [
        "",
        "  k  mode                         frequency (Hz)  what it is",
        "  -  ----                         --------------  ----------",
    ]
    lines += [
        f"{k:>3}  {m.label:<28} {m.frequency:14.2f}  {m.character}".rstrip()
        for k, m in enumerate(body.modes, 1)
    ]
    if body.left_out:
        lines += [
            "",
            "     left out                     frequency (Hz)  why",
            "     --------                     --------------  ---",
        ]
        lines += [
            f"     {m.label:<28} {m.frequency:14.2f}  {m.reason}".rstrip() for m in body.left_out
        ]
    if body.skin is not None:
        lines += ["", f"skin: {len(body.skin.points)} nodes, {len(body.skin.triangles)} triangles"]
    if body.stress is not None:
        lines += [f"stress modes at {len(body.stress.points)} points"]
    if body.provenance:
        lines += ["", "provenance"]
        lines += [f"  {key:<22} {value}" for key, value in body.provenance.items()]
    return "\n".join(lines)
