"""Views of results in notebooks: tables with the numbers of the result, and escaped names."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from tests.models.bodies import box

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="notebooks have one process")


@pytest.fixture(scope="module")
def reduction() -> mbd.reduction.Reduction:
    """Return the reduction of a box."""
    mesh = box(MPI.COMM_SELF, cells=(6, 3, 2))
    return mbd.reduce(mesh, mbd.STEEL, interfaces=["left", "right"], num_modes=4)


def texts(value: Any) -> list[str]:
    """Return the texts in the cells of a table."""
    page = value._repr_html_()
    assert page.count("<table>") == 1 and page.count("<tr>") == page.count("</tr>")
    return [unescape(text) for text in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)]


def test_meshes() -> None:
    mesh = box(MPI.COMM_SELF, cells=(6, 3, 2))
    cells = texts(mesh)
    count = mesh.mesh.topology.index_map(3).size_global
    name = mesh.mesh.topology.cell_name()
    assert f"{count} ({name}, degree 1)" in cells
    assert "left" in cells[cells.index("groups of facets") + 1]
    hostile = mbd.fem.TaggedMesh(mesh.mesh, groups={"<b>&": (2, 1)})
    assert "&lt;b&gt;&amp;" in hostile._repr_html_() and "<b>" in texts(hostile)[-1]


def test_places_and_envelopes(reduction: mbd.reduction.Reduction) -> None:
    body = reduction.body
    eta = np.random.default_rng(1).normal(size=(3, body.num_modes))
    eta /= np.sqrt(np.diag(body.stiffness))
    places = mbd.most_stressed(reduction, eta, 3)
    cells = texts(places)
    assert len(cells) == 5 * 4 and cells[:3] == ["", "MPa", "time (ms)"]
    assert f"{1e-6 * places[0].value:.5g}" in cells and "greatest von Mises" in places._repr_html_()
    envelope = mbd.envelope(reduction, eta)
    row = f"{1e-6 * places[0].value:.5g} MPa at t = {1e3 * places[0].time:.4g} ms"
    assert row in texts(envelope)


def test_truncation(reduction: mbd.reduction.Reduction) -> None:
    truncation = reduction.truncation
    assert truncation is not None
    cells = texts(truncation)
    limit = float(cells[cells.index("error below 1 %") + 1].split()[2])
    assert truncation.error([0.99 * limit])[0] < 0.01
    assert cells[cells.index("coordinates of the interfaces") + 1] == "12"


def test_elements() -> None:
    ground = mbd.Ground({"o": mbd.Frame()})
    bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, frames={"o": mbd.Frame()}, position=(0, -0.5, 0))
    spring = mbd.SpringDamper("<i>", ground.frame("o"), bob.frame("o"), 100.0, 1.0)
    run = mbd.simulate(
        mbd.System([ground, bob], [], loads=[spring], gravity=(0, -9.81, 0)), t_end=0.1, dt=1e-3
    )
    history = run.element("<i>")
    cells = texts(history)
    assert cells[:2] == ["element", "<i>"]
    low, _, high, unit = cells[cells.index("length") + 1].split()
    lengths = history.length.min(), history.length.max()
    assert (float(low), float(high)) == pytest.approx(lengths, rel=1e-4) and unit == "m"
    force = cells[cells.index("force") + 1]
    most = np.linalg.norm(history.force, axis=1).max()
    assert force == f"at most {most:.5g} N (magnitude)" and "gap" not in cells
