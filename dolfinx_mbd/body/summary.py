"""A reduced body on one page, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.body.static_errors import LIMIT, static_errors
from dolfinx_mbd.errors import UnitsWarning, warn

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody

__all__ = ["summary", "warn_of_units"]

STIFFENING = "geometric stiffening"
"""Entry of the provenance that tells why a body has no geometric stiffening."""

HEAVY = 1e6
"""Mass of a body that suggests a mesh in millimetres, kg; then it is that of a part of a gram."""


def _vector(values: np.ndarray, scale: float = 1.0) -> str:
    if scale != 1.0:  # lengths: no hundredths of a micrometre
        values = np.round(values, 8)
    return "  ".join(
        f"{value * scale:10.4g}" for value in np.where(np.abs(values) < 1e-12, 0.0, values)
    )


def _direction(axis: np.ndarray) -> str:
    return f"({', '.join(f'{component + 0.0:.3g}' for component in axis)})"


def _stiffening(body: ReducedBody) -> str:
    """Whether the body has geometric stiffening, and why not."""
    if body.stiffening is not None:
        return "yes"
    reason = body.provenance.get(STIFFENING)
    return "no" if reason is None else f"no ({reason})"


def _out_of_plane(body: ReducedBody) -> list[str]:
    """A remark for a plane body, which has no modes out of its plane."""
    if "plane" not in body.provenance:
        return []
    return ["out-of-plane bending     no (a plane mesh deforms in its plane only)"]


def _static_response(body: ReducedBody) -> list[str]:
    """The unit loads whose static response the modes do not represent."""
    errors = static_errors(body)
    if not errors:
        return []
    bad = {name: error for name, error in errors.items() if error > LIMIT}
    if not bad:
        return [
            "",
            f"static response: the modes represent all {len(errors)} unit loads within "
            f"{100 * LIMIT:g} % of the strain energy",
        ]
    return [
        "",
        "     unit load not represented    error of the strain energy of the static response",
        "     -------------------------    -------------------------------------------------",
        *(f"     {name:<28} {100 * error:8.1f} %" for name, error in bad.items()),
        "     (more modes represent it, or a load mode: `loads` with load_modes=True)",
    ]


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
        f"geometric stiffening     {_stiffening(body)}",
        *_out_of_plane(body),
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
    lines += _static_response(body)
    if body.skin is not None:
        lines += ["", f"skin: {len(body.skin.points)} nodes, {len(body.skin.triangles)} triangles"]
    if body.stress is not None:
        lines += [f"stress modes at {len(body.stress.points)} points"]
    if body.provenance:
        lines += ["", "provenance"]
        lines += [f"  {key:<22} {value}" for key, value in body.provenance.items()]
    return "\n".join(lines)


def warn_of_units(mass: float, size: float, weighs: str = "weighs") -> None:
    """Warn of a mass that suggests a mesh in millimetres.

    Args:
        mass: Mass of the body, kg.
        size: Size of the body, for the message, m.
        weighs: The verb of the message.
    """
    if mass > HEAVY:
        text = (
            f"implausible: the body is {size:.3g} m long and {weighs} {mass:.3g} kg. If its mesh "
            "is in millimetres, read it with read_mesh(..., unit=1e-3), or with --unit mm on the "
            "command line; scale a mesh of your own by mesh.geometry.x[:] *= 1e-3 before it is "
            "reduced"
        )
        warn(UnitsWarning(text, quantity="mass", value=mass, limit=HEAVY))
