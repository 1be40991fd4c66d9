"""The summary of a reduced body as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.body.static_errors import SUMMARY_LIMIT, weighted_errors
from dolfinx_mbd.body.tree import leaves, part_fields
from dolfinx_mbd.errors import UnitsWarning, warn
from dolfinx_mbd.html import table_head, vector_text

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
    lines = [*_properties(body), *_part_tables(body), *_table_of_modes(body)]
    lines += [*_static_response(body), *_sizes(body)]
    if body.provenance:
        lines += ["", "provenance"]
        lines += [f"  {key:<22} {value}" for key, value in body.provenance.items()]
    return "\n".join(lines)


def _properties(body: ReducedBody) -> list[str]:
    """Return the title and the table of properties."""
    reason = body.provenance.get(STIFFENING)
    no_stiffening = "no" if reason is None else f"no ({reason})"
    plane = "no (a plane mesh deforms in its plane only)" if "plane" in body.provenance else ""
    rows = {
        "mass": f"{body.total_mass:.6g} kg",
        "centre of mass (mm)": vector_text(body.centre, 1e3),
        "principal inertia (kg m²)": vector_text(np.linalg.eigvalsh(body.central_inertia)),
        "reference": body.reference,
        "geometric stiffening": no_stiffening if body.stiffening is None else "yes",
        "out-of-plane bending": plane,
        "damping": "yes" if body.damping.any() else "no (`FlexibleBody` adds 1 % to each mode)",
        "elastic coordinates": str(body.num_modes),
    }
    title = f"Reduced flexible body '{body.name}'"
    # rows without text are left out
    return [title, "=" * len(title), *(f"{k:<25}{text}" for k, text in rows.items() if text)]


def _part_tables(body: ReducedBody) -> list[str]:
    """Return a table for each list of parts whose class has `summary_titles`, e.g. interfaces."""
    lines: list[str] = []
    for attribute, declaration in part_fields(body).items():
        parts, titles = getattr(body, attribute), getattr(declaration.kind, "summary_titles", "")
        if titles and (parts or attribute == "interfaces"):
            lines += [*table_head(titles), *([p.summary_row() for p in parts] or ["(none)"])]
    return lines


def _sizes(body: ReducedBody) -> list[str]:
    """Return the shapes of the arrays of all other parts, or their own tables."""
    lines, tables = [], []
    for attribute, declaration in part_fields(body).items():
        value = getattr(body, attribute)
        if hasattr(declaration.kind, "summary_titles") or attribute in ("modes", "left_out"):
            continue
        for part in value if declaration.is_list else [value] * (value is not None):
            if hasattr(part, "summary_lines"):
                tables += part.summary_lines()
                continue
            shapes = ", ".join(f"{place} {np.shape(array)}" for place, _, array in leaves(part))
            lines.append(
                f"{' '.join((declaration.label, getattr(part, 'name', ''))).strip()}: {shapes}"
            )
    return [*tables, *([""] if lines else []), *lines]


def _table_of_modes(body: ReducedBody) -> list[str]:
    """Return the tables of modes and of omitted modes."""
    lines = table_head("  k  mode                         frequency (Hz)  character")
    for k, m in enumerate(body.modes, 1):
        lines.append(f"{k:>3}  {m.label:<28} {m.frequency:14.2f}  {m.character}".rstrip())
    if body.left_out:
        lines += table_head("     left out                     frequency (Hz)  reason")
    for m in body.left_out:
        lines.append(f"     {m.label:<28} {m.frequency:14.2f}  {m.reason}".rstrip())
    return lines


def _static_response(body: ReducedBody) -> list[str]:
    """Return the table of unit loads whose static response the modes do not represent."""
    errors = weighted_errors(body)
    large = {name: error for name, error in errors.items() if error > SUMMARY_LIMIT}
    if large:
        titles = "unit load not represented    error of the strain energy of the static response"
        return [
            *table_head(" " * 5 + titles),
            *(f"     {name:<28} {100 * error:8.1f} %" for name, error in large.items()),
            "     (use more modes, or a load mode: `loads` with load_modes=True)",
        ]
    text = f"static response: the modes represent all {len(errors)} unit loads within "
    return ["", f"{text}{100 * SUMMARY_LIMIT:g} % of the strain energy"] if errors else []


def warn_of_units(mass: float, size: float, verb: str = "weighs") -> None:
    """Warn if a mass, kg, suggests a mesh in millimetres; the message contains the size, m."""
    if mass > MAX_PLAUSIBLE_MASS:
        text = (
            f"implausible: the body is {size:.3g} m long and {verb} {mass:.3g} kg. If its mesh "
            "is in millimetres, read it with read_mesh(..., unit='mm'), or with --unit mm on the "
            "command line (unit='mm-t-s', --unit mm-t-s for a deck with materials in MPa and "
            "t/mm³); scale a mesh in memory by mesh.geometry.x[:] *= 1e-3 before you reduce it"
        )
        warn(UnitsWarning(text, quantity="mass", value=mass, limit=MAX_PLAUSIBLE_MASS))
