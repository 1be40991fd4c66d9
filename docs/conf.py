"""Settings of the documentation; README.md has the command that builds it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from pathlib import Path

import dolfinx_mbd

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_ext"))
# Folders of reference_cases.py and of the models of the papers
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(
        None,
        [
            str(HERE / "verification"),
            str(ROOT / "demos/papers"),
            os.environ.get("PYTHONPATH", ""),
        ],
    )
)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("MPLBACKEND", None)  # figures appear in the pages

project = "dolfinx_mbd"
author = "The dolfinx_mbd developers"
copyright = "The dolfinx_mbd developers, LGPL-3.0-or-later"
version = release = dolfinx_mbd.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "api",
    "command_line",
    "llms",
    "mathml",
    "import_map",
    "viewers",
]
exclude_patterns = [
    "papers/models",
    "coming_from/*.py",
    "_build",
    "_ext",
    "conf.py",
    "verification/reference_cases.py",
]
default_role = "code"
nitpicky = False

# ---- Pages that are executed ---------------------------------------------------------------------
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".py": "myst-nb"}
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:light"}]}
nb_execution_mode = "cache"
nb_execution_timeout = 1200  # seconds for a cell; the tests of CI may run at the same time
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_output_stderr = "remove"
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# ---- The API -------------------------------------------------------------------------------------
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
napoleon_custom_sections = [("Warns", "params_style")]

# ---- The site ------------------------------------------------------------------------------------
html_theme = "furo"
html_title = "dolfinx_mbd"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#a8410f", "color-brand-content": "#1d5fc4"},
    "dark_css_variables": {"color-brand-primary": "#f08a4b", "color-brand-content": "#6cabff"},
}
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


HEADER = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   language_info:
#     name: python
#     pygments_lexer: ipython3
# ---

"""


def copy_demos() -> None:
    """Copy the demos as pages of the tutorials, without their docstrings and progress bars."""
    for folder, target in (("demos", "tutorials"), ("demos/papers", "papers")):
        (HERE / target).mkdir(exist_ok=True)
        for path in sorted((ROOT / folder).glob("*.py")):
            source = path.read_text(encoding="utf-8")
            lines = source.splitlines(keepends=True)
            page = (
                HEADER
                + "".join(
                    re.sub(r", progress=(True|comm\.rank == 0)", "", line)
                    for line in lines[ast.parse(source).body[0].end_lineno :]
                ).lstrip()
            )
            copy = HERE / target / path.name
            if not copy.exists() or copy.read_text(encoding="utf-8") != page:
                copy.write_text(page, encoding="utf-8")


copy_demos()
shutil.copytree(ROOT / "demos/papers/models", HERE / "papers/models", dirs_exist_ok=True)
