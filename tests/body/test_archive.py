"""Archives return exactly what was written, or raise an error with the name of the file."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from dolfinx_mbd.archive import Kind, archive_writer, read_archive
from dolfinx_mbd.body import BodyFileError, LoadPattern, MaterialPoint, ReducedBody, Skin
from dolfinx_mbd.body.body_files import _KIND
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.errors import FileError, FileWarning, InputError
from dolfinx_mbd.files import temporary_path
from tests.models.particles import Particles

KIND = Kind("dolfinx_mbd test", "test file", 2)
ARRAYS = {
    "numbers": np.arange(6.0).reshape(2, 3).T,
    "none": np.zeros((0, 3)),
    "one": np.array(2.5),
    "words": np.array(["rod", "crank"]),
    "flags": np.array([True, False]),
    "whole": np.arange(3, dtype=np.int32),
}
HEADER = {"name": "Pleuel 1 – λ", "values": [1.5, float("nan"), None], "table": {"2": "two"}}


def body() -> ReducedBody:
    """Return a body with every part that a file can hold, and few numbers."""
    whole = Particles(1).body(stiffening=True)
    return whole.replace(
        points=(MaterialPoint("middle", [1, 2, 3], [[4, 5, 6]]),),
        skin=Skin(np.eye(3), [[0, 1, 2]], np.ones((1, 3, 3))),
        stress=StressModes(np.eye(3)[:1], np.ones((6, 1, 1))),
        loads=(LoadPattern("gas", np.ones(3), np.ones(3), np.ones(1), np.ones((1, 3))),),
        provenance={"dofs": 30},
    )


def contents(path: Path) -> str:
    """Return everything that a body file contains: exact numbers, names, texts, optional parts."""
    header, arrays = read_archive(path, _KIND)
    rows = {name: [a.dtype.str, a.shape, a.tobytes().hex()] for name, a in arrays.items()}
    return json.dumps([header, rows], sort_keys=True)


def test_arrays_and_header_come_back(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    with path.open("wb") as file:
        archive_writer(KIND, HEADER, ARRAYS)(file)
    header, arrays = read_archive(path, KIND)
    assert json.dumps(header) == json.dumps(
        {"format": KIND.format, "version": KIND.version, **HEADER}
    )
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype and np.array_equal(arrays[name], array)
    with np.load(path, allow_pickle=False) as file:  # other programs can read it
        assert np.array_equal(file["words"], ARRAYS["words"])


def test_objects_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        archive_writer(KIND, {}, {"thing": np.array([None])})
    assert error.value.argument == "thing"


def directory_bits(data: bytes) -> list[int]:
    """Return the numbers of the bits of all records of the zip format."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        starts = [info.header_offset for info in archive.infolist()]
        tail = archive.start_dir
    bits: list[int] = []
    for start in starts:
        size = 30 + int.from_bytes(data[start + 26 : start + 28], "little")
        size += int.from_bytes(data[start + 28 : start + 30], "little")
        bits += range(8 * start, 8 * (start + size))
    return [*bits, *range(8 * tail, 8 * len(data))]


def count_errors(path: Path, bits: Iterable[int], load: Callable[[], object], kind: type) -> int:
    """Return how many of these bits make a file unreadable if flipped; others change nothing."""
    data, before = path.read_bytes(), load()
    count = 0
    for bit in bits:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert load() == before, f"bit {bit}: read with other contents"
        except kind as error:
            assert error.path == str(path) and path.name in str(error)
            count += 1
    return count


@pytest.mark.slow
def test_every_flipped_bit_of_a_file_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """Every bit is flipped, but of the text of the header only every ninth one."""
    path = tmp_path / "file.npz"
    with path.open("wb") as file:
        archive_writer(KIND, {}, {"x": np.array([1.5, -2.0])})(file)

    def load() -> str:
        header, arrays = read_archive(path, KIND)
        return f"{header}, {list(arrays)}, {arrays['x'].dtype}, {arrays['x'].tolist()}"

    data = path.read_bytes()
    start, end = data.index("{".encode("utf-32-le")), data.rindex("}".encode("utf-32-le"))
    bits = [*range(8 * start), *range(8 * start, 8 * end, 9), *range(8 * end, 8 * len(data))]
    count = count_errors(path, bits, load, FileError)
    assert 0.7 * len(bits) < count < len(bits)  # (the rest: dates, versions and flags of the zip)


@pytest.mark.slow
def test_flipped_bits_of_a_body(tmp_path: Path) -> None:
    """The bits are in the zip directory and in other parts of the file."""
    path = body().save(tmp_path / "rod.npz")
    data, rng = path.read_bytes(), np.random.default_rng(1)
    directory = rng.choice(directory_bits(data), 1500, replace=False).tolist()
    anywhere = rng.choice(8 * len(data), 500, replace=False).tolist()
    count = count_errors(path, [*directory, *anywhere], lambda: contents(path), BodyFileError)
    assert 1200 < count < 2000


def test_a_name_in_the_directory_cannot_hide_an_array(tmp_path: Path) -> None:
    """A changed bit in both copies of a name is detected; version 0.1 dropped the stiffening."""
    path = body().save(tmp_path / "rod.npz")
    data = path.read_bytes()
    for name in (b"stiffening_spin.npy", b"skin_points.npy", b"stress_modes.npy"):
        assert data.count(name) == 2
        changed = bytes([name[0] ^ 1]) + name[1:]
        path.write_bytes(data.replace(name, changed))
        with pytest.raises(BodyFileError) as error:
            ReducedBody.load(path)
        assert error.value.path == str(path)
        cut = data.rindex(name)  # only the directory
        path.write_bytes(data[:cut] + changed + data[cut + len(name) :])
        with pytest.raises(BodyFileError):
            ReducedBody.load(path)


def resaved(path: Path, change: dict[str, object], drop: tuple[str, ...] = ()) -> None:
    """Write a file again with other entries of the header and fewer of them."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("header")))
    header = {key: value for key, value in (header | change).items() if key not in drop}
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def test_a_changed_header_is_refused(tmp_path: Path) -> None:
    for change, drop in (
        ({"total_mass": 7.0}, ()),
        ({"name": "crank"}, ()),
        ({"extra": 1}, ()),
        ({}, ("sha256",)),
        ({}, ("arrays",)),
        ({"arrays": {}}, ()),
        ({"arrays": 5}, ()),
        ({"version": 1}, ()),
        ({"version": True}, ()),
        ({"version": "2"}, ()),
        ({"version": 0}, ("arrays", "sha256")),
        ({"version": 3}, ()),
    ):
        path = body().save(tmp_path / "rod.npz")
        resaved(path, change, drop)
        with pytest.raises(BodyFileError) as error:
            ReducedBody.load(path)
        assert error.value.path == str(path)


def test_files_of_version_0_1_are_read_with_a_warning(tmp_path: Path) -> None:
    path = body().save(tmp_path / "rod.npz")
    before = contents(path)
    resaved(path, {"version": 1}, ("arrays", "sha256"))
    with pytest.warns(FileWarning, match=r"rod\.npz"):
        loaded = ReducedBody.load(path)
    with pytest.warns(FileWarning):
        assert contents(path).replace('"version": 1', '"version": 2') == before
    assert loaded.stiffening is not None and loaded.stress is not None


def test_damage_to_files_of_version_0_1(tmp_path: Path) -> None:
    """Files without a checksum have wrong types and missing arrays."""
    for change, drop in (
        ({"interfaces": 5}, ()),
        ({"interfaces": [{"name": "one"}]}, ()),
        ({"modes": None}, ()),
        ({"provenance": [1]}, ()),
        ({"total_mass": "heavy"}, ()),
        ({"loads": [3, 4]}, ()),
        ({}, ("name",)),
    ):
        path = body().save(tmp_path / "rod.npz")
        resaved(path, change | {"version": 1}, ("arrays", "sha256", *drop))
        with pytest.warns(FileWarning), pytest.raises(BodyFileError) as error:
            ReducedBody.load(path)
        assert error.value.path == str(path)


BOMB = """
import resource, sys, zipfile
import numpy as np
from dolfinx_mbd.body import BodyFileError, ReducedBody
ReducedBody  # (everything is imported before memory is measured)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    ReducedBody.load(sys.argv[1])
except BodyFileError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_STORED])
def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path, method: int) -> None:
    """A small file may hold 150 MB of zeros, or declare an array larger than the file."""
    path = tmp_path / "rod.npz"
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("header.npy", "w") as member:
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<f8", "fortran_order": False, "shape": (18_750_000,)}
        )
        for _ in range(150 if method != zipfile.ZIP_STORED else 0):
            member.write(bytes(10**6))
    assert path.stat().st_size < 10**7
    run = subprocess.run(
        [sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 30_000  # kB


def test_stale_parts_are_removed(tmp_path: Path) -> None:
    """The next save removes the temporary files of a killed process, not those of a running one."""
    path = tmp_path / "rod [1].npz"
    host = socket.gethostname()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, old, elsewhere, alive, of_crank, edited = (
        tmp_path / name
        for name in (
            f".{path.name}.{host}.{ended.pid}.part",
            f".{path.name}.another.host.7.part",
            f".{path.name}.yet.another.host.7.part",
            f".{path.name}.{host}.{os.getppid()}.part",
            f".crank.npz.{host}.{ended.pid}.part",
            f".{path.name}.mine.part",
        )
    )
    parts = [
        dead,
        old,
        elsewhere,
        alive,
        of_crank,
        edited,
        tmp_path / f".{path.name}.{ended.pid}.part",
    ]
    for part in parts:
        part.write_bytes(b"half")
    long_ago = time.time() - 2 * 86400
    os.utime(old, (long_ago, long_ago))
    body().save(path)
    left = {p for p in tmp_path.iterdir() if p != path}
    assert left == {elsewhere, alive, of_crank, edited}
    assert not temporary_path(path).exists()


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(BodyFileError) as error:
        ReducedBody.load(tmp_path)
    assert error.value.path == str(tmp_path)
    for wrong in ("", "a\0b", None, 5):
        with pytest.raises(InputError) as exc_info:
            ReducedBody.load(wrong)  # type: ignore[arg-type]
        assert exc_info.value.argument == "path"
    assert issubclass(BodyFileError, FileError)


def test_a_mesh_is_not_a_body(tmp_path: Path) -> None:
    """The error says how to reduce it."""
    path = tmp_path / "part.msh"
    path.write_text("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n")
    with pytest.raises(BodyFileError) as error:
        ReducedBody.load(path)
    assert error.value.path == str(path)
    assert "reduce" in str(error.value) and "pickle" not in str(error.value)
