"""Text files of other programs in several encodings, also those of Windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from dolfinx_mbd.files import read_text
from dolfinx_mbd.mechanism.mechanisms import PressureTable

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="reads files on one rank")

ENCODINGS = ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"]


def pressures(path: Path, encoding: str) -> Path:
    """Write a table of pressures with German titles in an encoding."""
    angle = np.arange(0.0, 721.0, 5.0)
    rows = "\r\n".join(f"{a:g},{2 + np.cos(np.radians(a / 2)):.6f}" for a in angle)
    path.write_bytes(f"Winkel [°],Druck [bar] µ\r\n{rows}".encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_pressures(tmp_path: Path, encoding: str) -> None:
    table = PressureTable.read(pressures(tmp_path / "gas.csv", encoding))
    assert table(0.0) == pytest.approx(3e5) and table(2 * np.pi) == pytest.approx(1e5)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bearings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "bearing.csv"
    path.write_bytes(
        "speed [rpm],kxx [N/m],cxx,Dämpfung\n0,1e7,2,0\n3000,2e7,3,1\n".encode(encoding)
    )
    table = mbd.mechanism.BearingTable.read(path)
    assert table.range[1] == pytest.approx(100 * np.pi)


READERS: list[tuple[Any, str]] = [
    (PressureTable.read, ".csv"),
    (mbd.mechanism.BearingTable.read, ".csv"),
]
READERS += [(mbd.mechanism.BearingTable.read, ".json"), (mbd.mechanism.BearingTable.read, ".toml")]


@pytest.mark.parametrize(("read", "suffix"), READERS)
@pytest.mark.parametrize("data", [b"\x00\xff\x80\x81" * 50, b"\xff\xfe\x00", b"\x8d\x81;;\xfc"])
def test_other_contents_are_refused(read: Any, suffix: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_bytes(data)
    with pytest.raises(errors.FileError) as error:
        read(path)
    assert str(path) in str(error.value) and error.value.path == str(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"1, 2\x00")
    with pytest.raises(errors.FileError):
        read_text(path, "a table")
