"""Reports: the page states each check, and contains its pictures and scenes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import errors, plotting, tutorials
from dolfinx_mbd.plotting import Report
from tests.plotting.test_plotting import bar

one_rank = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank writes pages")


@one_rank
@pytest.mark.parametrize("value", [-1.0, 0.5, 2.0, 2.0001, float("nan"), float("inf")])
@pytest.mark.parametrize("limits", [{"low": 0.0}, {"high": 2.0}, {"low": 0.0, "high": 2.0}])
def test_checks_compare_with_their_limits(value: float, limits: dict[str, float]) -> None:
    report = Report("a <b>")
    assert report.passed and report.check("other", 1, 0, 2)
    inside = not np.isnan(value)
    inside &= value >= limits.get("low", -np.inf) and value <= limits.get("high", np.inf)
    assert report.check("length", value, **limits, unit="mm") == inside == report.passed
    assert f"{1 + inside} of 2 checks passed" in report.html
    row = re.search('<tr class="(passed|failed)"><td>length</td>(.*?)</tr>', report.html)
    assert row is not None and (row[1] == "passed") == inside and f">{value:.6g}<" in row[2]
    assert "a &lt;b&gt;" in report.html and report.text.count("ok ") == 1 + inside


@one_rank
def test_texts_and_tables() -> None:
    report = Report()
    report.heading("Masses")
    report.add("a < b")
    report.add("x  y\n1  2")
    report.table(["part", "mass (kg)"], [["crank", 0.123456], ["rod & pin", float("nan")]], "parts")
    assert "<p>a &lt; b</p>" in report.html and "<pre>x  y" in report.html
    assert "0.1235" in report.html and "rod &amp; pin" in report.html and "nan" in report.html
    lines = report.text.splitlines()
    assert lines[-3:] == ["part       mass (kg)", "crank      0.1235", "rod & pin  nan"]
    assert repr(report) == "<Report 'Report': 0 of 0 checks passed>"


@one_rank
def test_pictures_and_scenes(browser: Any, tmp_path: Path) -> None:
    """The page shows pictures and a scene that moves, without any request."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot([0, 1], [0, 1])
    figure.savefig(tmp_path / "line.png")
    report = Report("Bar")
    report.check("length", 0.2, 0.1, 0.3, "m")
    report.add(figure, "a figure")
    report.add(tmp_path / "line.png", "a file")
    report.add(plotting.player(bar()), "a scene")
    plt.close(figure)
    path = report.save(tmp_path / "new" / "report.html")
    page, requests, messages = browser.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    sizes = page.evaluate("[...document.images].map((image) => image.naturalWidth)")
    assert len(sizes) == 2 and min(sizes) > 300
    frame = page.frames[1]
    frame.wait_for_selector("#panel > *", state="attached", timeout=30_000)
    assert "Hz" in frame.locator("#titles").inner_text() and messages == []
    assert [url for url in requests if not url.startswith(("data:", "about:"))] == [path.as_uri()]
    report.check("width", 0.2, high=0.1)
    assert "1 of 2" in report.save(path).read_text(encoding="utf-8")  # replaces the first one
    viewer = plotting.player(bar(), tmp_path / "bar.html")
    with pytest.raises(errors.OverwriteError):
        report.save(tmp_path / "bar.html")  # the file is no report
    assert "<iframe" in report._repr_html_() and "<iframe" in viewer._repr_html_()


@one_rank
def test_bad_items(tmp_path: Path) -> None:
    report = Report()
    (tmp_path / "a.txt").write_text("a")
    for item in (3.0, None, tmp_path / "a.txt", ["a"]):
        with pytest.raises(errors.InputError):
            report.add(item)
    with pytest.raises(errors.MissingFileError):
        report.add(tmp_path / "missing.png")
    for limits in ({}, {"low": 2.0, "high": 1.0}, {"low": float("nan")}, {"high": "1"}):
        with pytest.raises(errors.InputError):
            report.check("x", 1.0, **limits)  # type: ignore[arg-type]
    with pytest.raises(errors.InputError):
        report.table(["a", "b"], [["c"]])
    with pytest.raises(errors.InputError):
        report.save(tmp_path / "report.txt")
    assert report.checks == () and report.text == ""


def test_pages_of_tutorials_contain_failed_checks(
    tmp_path: Path, monkeypatch: Any, comm: MPI.Intracomm
) -> None:
    """Rank 0 writes the files, and all ranks raise the error."""
    monkeypatch.setattr(tutorials, "_entries", [])
    tmp_path = Path(comm.bcast(str(tmp_path), root=0))
    path = tmp_path / "report.html"
    with tutorials.figure(tmp_path / "orbit.png", title="orbit") as axes:
        axes.plot([0, 1], [0, 1])
    tutorials.show(plotting.player, bar(), tmp_path / "bar.html")
    tutorials.report("some text")
    drawn = [(tmp_path / "orbit.png", "orbit"), (tmp_path / "bar.html", "bar")]
    drawn = drawn if comm.rank == 0 else []  # paths only: the page reads the files
    assert tutorials._entries == [*drawn, "some text"]
    tutorials.save_report(tmp_path / "report.txt")
    comm.barrier()
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == "some text\n"
    # the end of the page raises the error; the check alone does at once
    with pytest.raises(AssertionError, match="too large"), tutorials.report_page(path, "Bar"):
        tutorials.check("too large", 3.0, 0.0, 2.0)
        tutorials.check_close("good", 3.0, 3.0, 1e-3)
    comm.barrier()
    text = path.read_text(encoding="utf-8")
    assert "1 of 2 checks passed" in text and text.count("<img") == 1
    assert text.count("<iframe") == 1 and "some text" in text
    with pytest.raises(AssertionError):
        tutorials.check("too large", 3.0, 0.0, 2.0)
