"""What notebooks show: a table and the viewer; short texts elsewhere."""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from mpi4py import MPI

from dolfinx_mbd import plotting
from dolfinx_mbd.analyses import simulate, sweep
from dolfinx_mbd.mechanism.mechanisms import rigid_rod, slider_crank
from tests.plotting.test_plotting import bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="notebooks have one process")


def test_tables_and_viewers() -> None:
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    system = slider_crank(bar(), speed=200.0, **crank)
    run = simulate(system, t_end=1e-3, dt=1e-4)
    for item, word in ((bar(), "big_end"), (system, "crank pin"), (run, "piston")):
        text = item._repr_html_()
        assert text.startswith("<table>") and word in text.split("</table>")[0]
        assert "<iframe" in text
        assert repr(item).count("\n") < 10 and len(repr(item)) < 1000


def test_a_body_that_cannot_be_drawn_has_a_table_only() -> None:
    text = rigid_rod(length=0.2, mass=1.0)._repr_html_()
    assert "<table>" in text and "<iframe" not in text


CELL = """
import dolfinx_mbd as mbd
mbd.plotting.campbell_diagram([0.0, 100.0], [[10.0], [12.0]])
"""


def test_figures_display_themselves() -> None:
    """A figure at the end of a cell is a picture, without `%matplotlib inline`."""
    nbclient, nbformat = (pytest.importorskip(name) for name in ("nbclient", "nbformat"))
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    image = base64.b64decode(output["data"]["image/png"])
    assert image[:4] == b"\x89PNG" and len(image) > 5000


@pytest.mark.skipif(os.environ.get("FENICSX_USE") != "inside", reason="tests the launcher")
def test_plain_figures_display_themselves_through_the_launcher() -> None:
    """The launcher chooses no backend of matplotlib, so that the kernel can."""
    nbclient, nbformat = (pytest.importorskip(name) for name in ("nbclient", "nbformat"))
    pytest.importorskip("ipykernel")
    code = "import matplotlib.pyplot as plt\nlines = plt.plot([0.0, 1.0])"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert base64.b64decode(output["data"]["image/png"])[:4] == b"\x89PNG"


def test_matplotlib_needs_no_display(tmp_path: Path) -> None:
    """Without a display and without a setting, matplotlib draws into files by itself."""
    code = "import matplotlib.pyplot as plt; plt.plot([0, 1]); plt.savefig('line.png'); plt.show()"
    unset = ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    environment = {key: value for key, value in os.environ.items() if key not in unset}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert (tmp_path / "line.png").read_bytes()[:4] == b"\x89PNG"


def test_a_chart_is_an_ordinary_figure() -> None:
    figure = plotting.campbell_diagram([0.0, 100.0], [[10.0], [12.0]])
    copy = pickle.loads(pickle.dumps(figure))
    assert isinstance(copy, Figure) and copy._repr_png_()[:4] == b"\x89PNG"


def test_studies_have_tables() -> None:
    """A study is an xarray dataset, which notebooks show as a table that unfolds."""

    def energy(mass: float, speed: float) -> dict[str, float]:
        return {"energy": 0.5 * mass * speed**2}

    study = sweep(energy, {"mass": [1.0, 2.0], "speed": np.arange(3.0)}, workers=1)
    text = study._repr_html_()
    assert "energy" in text and "mass" in text and "case_status" in text
    table = study["energy"].to_pandas()
    assert table.loc[2.0, 2.0] == 4.0


def test_the_progress_bar_is_that_of_the_notebook() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipywidgets")
    pytest.importorskip("tqdm")
    code = (
        "from dolfinx_mbd.progress import progress_bar\n"
        "with progress_bar(3, True, 'run', 'step') as bar:\n    bar.update(3)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    kinds = [kind for output in notebook.cells[0].outputs for kind in output.get("data", {})]
    assert "application/vnd.jupyter.widget-view+json" in kinds
