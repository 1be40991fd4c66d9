"""A drawing of the folders of the package, ordered by their imports.

Each folder stands above all folders from which it imports. The lines lead to the imports that no
other path implies (the transitive reduction). The tooltip of a box states the lines of its folder.
"""

from __future__ import annotations

import ast
import html
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

NAME = "dolfinx_mbd"
# Pixels; HEIGHT is that of a box, ROW the distance between the centres of two rows
WIDTH, HEIGHT, ROW = 960, 34, 78


def folder_of(module: str, names: set[str]) -> str | None:
    """Return the folder below the package to which a module belongs, or None."""
    parts = module.split(".")
    return parts[1] if parts[0] == NAME and len(parts) > 1 and parts[1] in names else None


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports when it is loaded."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return modules


def read_package(package: Path) -> tuple[dict[str, set[str]], dict[str, int]]:
    """Return the folders that each folder imports, and the number of lines of each folder."""
    names = {path.parent.name for path in package.glob("*/__init__.py")}
    edges: dict[str, set[str]] = {name: set() for name in sorted(names)}
    lines = dict.fromkeys(edges, 0)
    for name in edges:
        for path in (package / name).rglob("*.py"):
            lines[name] += len(path.read_text(encoding="utf-8").splitlines())
            targets = {folder_of(module, names) for module in imports_of(path)}
            edges[name] |= {target for target in targets if target not in (None, name)}
    return edges, lines


def levels_of(edges: dict[str, set[str]]) -> dict[str, int]:
    """Return the number of imports in the longest chain that begins at each folder."""
    levels: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in levels:
            levels[name] = 1 + max((level(target) for target in edges[name]), default=-1)
        return levels[name]

    for name in edges:
        level(name)
    return levels


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports of each folder that no path of other imports implies."""
    below: dict[str, set[str]] = {}

    def reached(name: str) -> set[str]:
        if name not in below:
            below[name] = set().union(*({t} | reached(t) for t in edges[name]), set())
        return below[name]

    return {
        name: {t for t in targets if not any(t in reached(u) for u in targets)}
        for name, targets in edges.items()
    }


def places_of(
    edges: dict[str, set[str]], levels: dict[str, int], sizes: dict[str, float]
) -> dict[str, tuple[float, float]]:
    """Return the centre of each box: one row per level, ordered by the mean x of the imports.

    `sizes` contains the widths of the boxes, in pixels.
    """
    top, places = max(levels.values()), {}
    for row in range(top + 1):
        names = [name for name in edges if levels[name] == row]

        def middle(name: str) -> float:
            below = [places[t][0] for t in edges[name] if t in places]
            return sum(below) / len(below) if below else WIDTH / 2

        names.sort(key=middle)
        total = sum(sizes[name] for name in names)
        space = (WIDTH - total) / (len(names) + 1)
        x = space
        for name in names:
            places[name] = x + sizes[name] / 2, (top - row) * ROW + HEIGHT
            x += sizes[name] + space
    return places


def drawing(package: Path) -> str:
    """Return the drawing as SVG."""
    edges, lines = read_package(package)
    levels, drawn = levels_of(edges), reduced(edges)
    sizes = {name: 8.2 * len(name) + 26 for name in edges}  # pixels: letters and a margin
    places = places_of(drawn, levels, sizes)
    bottom = max(y for _, y in places.values()) + HEIGHT
    parts = [
        f'<svg class="import-map" viewBox="0 0 {WIDTH} {bottom:.0f}" role="img" '
        'aria-label="Folders of the package, ordered by their imports" '
        'xmlns="http://www.w3.org/2000/svg">'
    ]
    for name, targets in drawn.items():
        x, y = places[name]
        for target in sorted(targets):
            u, v = places[target]
            bend = 0.5 * (y + v)
            parts.append(
                f'<path d="M{x:.0f} {y + HEIGHT / 2:.0f} C{x:.0f} {bend:.0f} {u:.0f} {bend:.0f} '
                f'{u:.0f} {v - HEIGHT / 2:.0f}"/>'
            )
    for name, (x, y) in places.items():
        width, label = sizes[name], html.escape(name)
        parts.append(
            f'<g><title>{label}: {lines[name]} lines</title><rect x="{x - width / 2:.0f}" '
            f'y="{y - HEIGHT / 2:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{x:.0f}" y="{y + 5:.0f}">{label}</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


class ImportMap(Directive):
    """Directive ``import-map``: the drawing."""

    def run(self) -> list[nodes.Node]:
        """Return the drawing as HTML."""
        package = Path(__file__).parents[2] / NAME
        return [nodes.raw("", drawing(package), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("import-map", ImportMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
