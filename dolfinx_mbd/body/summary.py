"""The summary of a reduced body as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.body.parts import POLYNOMIALS
from dolfinx_mbd.body.static_errors import SUMMARY_LIMIT, weighted_errors
from dolfinx_mbd.errors import UnitsWarning, warn

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody

STIFFENING = "geometric stiffening"
"""Key of the provenance entry that states why a body has no geometric stiffening."""

MAX_PLAUSIBLE_MASS = 1e6
"""Mass, kg, above which the mesh is probably in millimetres.

The computed mass is then 1e9 times too large: a body of 1 g seems to have a mass of 1e6 kg.
"""


def summary(body: ReducedBody) -> str:
    """Return the text of `ReducedBody.summary`."""
    lines = [*_properties(body), *_places(body), *_table_of_modes(body)]
    lines += [*_effective_masses(body), *_static_response(body)]
    if body.skin is not None:
        lines += ["", f"skin: {len(body.skin.points)} nodes, {len(body.skin.triangles)} triangles"]
    if body.stress is not None:
        lines += [f"stress modes at {len(body.stress.points)} points"]
    if body.provenance:
        lines += ["", "provenance"]
        lines += [f"  {key:<22} {value}" for key, value in body.provenance.items()]
    return "\n".join(lines)


def _properties(body: ReducedBody) -> list[str]:
    reason = body.provenance.get(STIFFENING)
    no_stiffening = "no" if reason is None else f"no ({reason})"
    plane = "no (a plane mesh deforms in its plane only)" if "plane" in body.provenance else ""
    rows = {
        "mass": f"{body.total_mass:.6g} kg",
        "centre of mass (mm)": _vector(body.centre, 1e3),
        "principal inertia (kg m²)": _vector(np.linalg.eigvalsh(body.central_inertia)),
        "reference": body.reference,
        "geometric stiffening": no_stiffening if body.stiffening is None else "yes",
        "out-of-plane bending": plane,
        "damping": "yes" if body.damping.any() else "no (`FlexibleBody` adds 1 % to each mode)",
        "elastic coordinates": str(body.num_modes),
    }
    title = f"Reduced flexible body '{body.name}'"
    return [title, "=" * len(title), *(f"{k:<25}{text}" for k, text in rows.items() if text)]


def _places(body: ReducedBody) -> list[str]:
    """Return the tables of interfaces, points, loads and strain gauges."""
    lines = _header("interface        kind      point (mm)                         axis z")
    for i in body.interfaces:
        axis = ", ".join(f"{component + 0.0:.3g}" for component in i.axes[:, 2])
        lines.append(f"{i.name:<16} {i.kind:<8} {_vector(i.point, 1e3)}  ({axis})")
    if not body.interfaces:
        lines.append("(none)")
    if body.bores:
        lines += _header(
            "elastic bore     radius (mm)  length (mm)  pressure modes  compliance error"
        )
        for b in body.bores:
            size = f"{b.name:<16} {1e3 * b.radius:11.5g}  {1e3 * b.length:11.5g}"
            patterns = len(b.displacement) * POLYNOMIALS
            lines.append(f"{size}  {patterns:14}  {100 * b.error:14.2f} %")
    if body.points:
        lines += _header("point                      position (mm)")
        lines += [f"{p.name:<24} {_vector(p.position, 1e3)}" for p in body.points]
    if body.loads:
        lines += _header(
            "load of size 1             resultant (N)                      moment (N m)"
        )
        lines += [f"{p.name:<24} {_vector(p.force)}  {_vector(p.moment)}" for p in body.loads]
    if body.gauges:
        lines += _header(
            "strain gauge               position (mm)                      grids  length"
        )
        for g in body.gauges:
            grids = f"{len(g.directions):>5}  {1e3 * g.length:11.3g}"
            lines.append(f"{g.name:<24} {_vector(g.position, 1e3)}  {grids}")
    return lines


def _table_of_modes(body: ReducedBody) -> list[str]:
    lines = _header("  k  mode                         frequency (Hz)  character")
    for k, m in enumerate(body.modes, 1):
        lines.append(f"{k:>3}  {m.label:<28} {m.frequency:14.2f}  {m.character}".rstrip())
    if body.left_out:
        lines += _header("     left out                     frequency (Hz)  reason")
    for m in body.left_out:
        lines.append(f"     {m.label:<28} {m.frequency:14.2f}  {m.reason}".rstrip())
    return lines


def _effective_masses(body: ReducedBody) -> list[str]:
    """Return the table of effective masses in percent, with their sums."""
    masses = body.effective_masses
    if masses is None:
        return []
    columns = "".join(f"  {name:>7}" for name in masses.directions)
    rows = zip(masses.labels, masses.frequencies, masses.shares, strict=True)
    lines = _header(f"     effective mass (%)       frequency (Hz){columns}")
    for label, frequency, shares in rows:
        lines.append(f"     {label:<24} {frequency:14.2f}{_percent(shares)}")
    return [*lines, f"     {'sum':<24} {'':14}{_percent(masses.shares.sum(axis=0))}"]


def _percent(shares: np.ndarray) -> str:
    return "".join(f"  {100 * share:7.2f}" for share in shares)


def _static_response(body: ReducedBody) -> list[str]:
    """Return the table of unit loads whose static response the modes do not represent."""
    errors = weighted_errors(body)
    large = {name: error for name, error in errors.items() if error > SUMMARY_LIMIT}
    if large:
        titles = "unit load not represented    error of the strain energy of the static response"
        return [
            *_header(" " * 5 + titles),
            *(f"     {name:<28} {100 * error:8.1f} %" for name, error in large.items()),
            "     (use more modes, or a load mode: `loads` with load_modes=True)",
        ]
    text = f"static response: the modes represent all {len(errors)} unit loads within "
    return ["", f"{text}{100 * SUMMARY_LIMIT:g} % of the strain energy"] if errors else []


def _header(titles: str) -> list[str]:
    """Return a blank line, the titles of columns and a line that underlines them."""
    return ["", titles, re.sub(r"\S+(?: \S+)*", lambda title: "-" * len(title[0]), titles)]


def _vector(values: np.ndarray, scale: float = 1.0) -> str:
    if scale != 1.0:  # round lengths to 1e-8 m
        values = np.round(values, 8)
    return "  ".join(
        f"{value * scale:10.4g}" for value in np.where(np.abs(values) < 1e-12, 0.0, values)
    )


def warn_of_units(mass: float, size: float, verb: str = "weighs") -> None:
    """Warn if a mass, kg, suggests a mesh in millimetres; the message contains the size, m."""
    if mass > MAX_PLAUSIBLE_MASS:
        text = (
            f"implausible: the body is {size:.3g} m long and {verb} {mass:.3g} kg. If its mesh "
            "is in millimetres, read it with read_mesh(..., unit='mm'), or with --unit mm on the "
            "command line; scale a mesh in memory by mesh.geometry.x[:] *= 1e-3 before you "
            "reduce it"
        )
        warn(UnitsWarning(text, quantity="mass", value=mass, limit=MAX_PLAUSIBLE_MASS))
