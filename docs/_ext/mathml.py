"""Equations as MathML, which browsers show without scripts or a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import wrap_displaymath


def converted(text: str, **options: str) -> str:
    """Return an equation as MathML; a prime and an exponent become one superscript."""

    def merged(match: re.Match[str]) -> str:
        return "^{" + r"\prime " * len(match[1]) + match[2].strip("{}") + "}"

    markup = convert(re.sub(r"('+)\^(\{[^{}]*\}|\S)", merged, text), **options)
    # The space that TeX puts around names of functions
    space = '<mo lspace="0.17em" rspace="0.17em">'
    return re.sub("<mi>(sin|cos|tan|exp|log|ln|min|max)</mi>", rf"{space}\1</mo>", markup)


def inline(self: Any, node: nodes.math) -> None:
    """Write an equation within the text."""
    self.body.append(converted(node.astext()))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """Write an equation on its own line, with its number."""
    text = node.astext()
    # Sphinx aligns lines at "&" in `split`; latex2mathml knows the same as `aligned`
    if "&" in text and "\\begin" not in text:
        text = wrap_displaymath(text, None, False).strip().replace("split", "aligned")
        text = text.removeprefix("\\begin{equation*}").removesuffix("\\end{equation*}")
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    identity = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    self.body.append(
        f'<div class="math"{identity}>{converted(text, display="block")}{number}</div>'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writer of equations."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
