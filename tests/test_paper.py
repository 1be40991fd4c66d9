"""The paper of the package: length, sections and references."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "paper.md").read_text(encoding="utf-8")
REFERENCES = (ROOT / "paper.bib").read_text(encoding="utf-8")


SECTIONS = [
    "Summary", "Statement of need", "State of the field", "Software design",
    "Research impact statement", "AI usage disclosure", "Acknowledgements", "References",
]  # fmt: skip
"""Sections that JOSS requires, https://joss.readthedocs.io/en/latest/paper.html."""


def test_length_and_sections() -> None:
    _, head, text = PAPER.split("---\n", 2)
    assert 750 < len(text.split()) < 1750
    titles = re.findall(r"^# (.*)$", text, re.MULTILINE)
    assert titles == SECTIONS
    assert "bibliography: paper.bib" in head


def test_references_agree() -> None:
    """Each citation has an entry with a DOI, and each entry is cited."""
    entries = re.findall(r"^@\w+\{(\w+),(.*?)^\}", REFERENCES, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"@(\w+)", PAPER.split("---\n", 2)[2])) == {key for key, _ in entries}
    assert all(re.search(r"doi = \{10\.\d{4,}/", body) for _, body in entries)
