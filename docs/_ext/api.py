"""Pages of the API: one for each part of the package, with all names in its `__all__`."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PARTS = {
    "fem": "Meshes and elastic models",
    "geometry": "Parametric parts and CAD",
    "forms": "UFL forms and materials",
    "fem.modal": "Modal analysis",
    "reduction": "Reduction",
    "body": "Reduced bodies",
    "body.response": "Frequency response of reduced bodies",
    "mechanism": "Bodies, joints and loads",
    "mechanism.mechanisms": "Ready-made mechanisms",
    "mechanism.bearings": "Journal bearings with oil films",
    "dynamics": "The equations of motion and their solution",
    "analyses": "Simulation and other analyses",
    "results": "Results of a simulation",
    "durability": "Strength, fatigue and loads",
    "durability.recovery": "Displacement, stress and section forces",
    "durability.acoustics": "Noise",
    "structures.prescribed_motion": "Prescribed motion",
    "structures.rotating": "Rotating bodies",
    "structures.beams": "Beams",
    "structures.cables": "Cables",
    "structures.mesh_bodies": "Mesh bodies",
    "design": "Derivatives of a simulation",
    "design.sensitivity": "Derivatives of a body",
    "design.identification": "Parameters from measurements",
    "design.optimization": "Optimization",
    "plotting": "Pictures, animations and the viewer",
    "io.export": "Export",
    "io.export.fmu": "Functional mock-up units",
    "io.export.compiled": "Nonlinear mechanisms as units in C",
    "io.export.linear_fmu": "Functional mock-up units in C",
    "io.imports": "Import",
    "errors": "Errors and warnings",
}
"""Packages in the order of the pages, with their titles."""


GROUPS = {
    "mechanism": {
        "Bodies and frames": "bodies protocol shapes placement",
        "Joints and drivers": "joints",
        "Loads, springs and bushings": "",
        "Contact, clearance and gears": "contact",
    }
}
"""Headings of large pages, each with the modules (separated by blanks) whose names it lists.

A name belongs to the heading with the longest module that contains it; all other names belong to
the heading without a module.
"""

BASES_WITHOUT_ENTRY = {
    *("Eigenvalues", "History", "HtmlPage", "Poles", "Sensors"),
    *("_Curve", "_Isotropic"),
}
"""Names of base classes that no page documents.

The entry of a class with such a base also shows its inherited members; those of other classes show
only the members that the class itself defines.
"""


def page(part: str, title: str) -> str:
    """Return the page of a package, without names that an earlier page documents."""
    module = importlib.import_module(f"dolfinx_mbd.{part}")
    lines = [f"# {title}", "", f"`dolfinx_mbd.{part}`", "", inspect.getdoc(module) or "", ""]
    for heading in GROUPS.get(part, [""]):
        names = [name for name in module.__all__ if group(part, module, name) == heading]
        names = [name for name in names if first_page(getattr(module, name), name) == part]
        lines += [f"## {heading}", ""] if heading else []
        lines += ["```{eval-rst}", f".. currentmodule:: dolfinx_mbd.{part}", ""]
        lines += [line for name in names for line in entry(name, getattr(module, name))]
        lines += ["```", ""]
    return "\n".join(lines)


def group(part: str, module: Any, name: str) -> str:
    """Return the heading of a name on a page, or an empty text if the page has no headings."""
    groups = GROUPS.get(part)
    if groups is None:
        return ""
    home = getattr(getattr(module, name), "__module__", "").removeprefix("dolfinx_mbd.") + "."
    home = home.removeprefix(f"{part}.")
    fitting = [
        (len(prefix), heading)
        for heading, prefixes in groups.items()
        for prefix in prefixes.split(" ")
        if not prefix or home.startswith(f"{prefix}.")
    ]
    return max(fitting)[1]


def first_page(value: Any, name: str) -> str:
    """Return the first package of `PARTS` whose `__all__` lists a value under a name."""
    modules = {part: importlib.import_module(f"dolfinx_mbd.{part}") for part in PARTS}
    parts = [part for part, module in modules.items() if name in module.__all__]
    return next(part for part in parts if getattr(modules[part], name) is value)


def entry(name: str, value: Any) -> list[str]:
    """Return the lines that document a class or a function, and no lines for other values."""
    if inspect.isclass(value):
        # The docstring of a named tuple describes its fields
        members = [] if issubclass(value, tuple) else ["   :members:"]
        if any(base.__name__ in BASES_WITHOUT_ENTRY for base in value.__mro__):
            members.append("   :inherited-members:")
        return [f".. autoclass:: {name}", *members, ""]
    return [f".. autofunction:: {name}", ""] if callable(value) else []


def write_pages(app: Sphinx) -> None:
    """Write the pages into the source folder; unchanged pages are left alone."""
    folder = Path(app.srcdir, "reference", "api")
    folder.mkdir(exist_ok=True)
    for part, title in PARTS.items():
        path, text = folder / f"{part}.md", page(part, title)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def escape_markdown(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Escape characters that mean nothing in Markdown, but something in reStructuredText."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = line.replace("|", "\\|")
            # A single asterisk before a word, as in *args, would begin emphasis
            lines[k] = re.sub(r"(?<![\w*`])\*(?=\w[^*]*$)", r"\\*", line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before the sources are read."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", escape_markdown, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
