"""Damaged files of every kind that is read: random damage, truncation, and every header bit.

A file that carries a checksum must load with the contents that were saved, or raise an error. Of
the others (meshes, matrices, materials) a changed digit is another valid file: they must load as
finite numbers or raise an error. Damage that the format reveals (`REVEALED`) must not change the
contents.
"""

from __future__ import annotations

import random
import shutil
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import dolfinx_mbd as mbd
from dolfinx_mbd.io.cli.named_materials import known_materials
from tests.campaigns.bench import Bench, square
from tests.campaigns.cases import Case
from tests.campaigns.contents import digest, is_finite

RANDOM = 400
"""Number of randomly damaged files of each kind."""


def _mesh(bench: Bench, path: Path) -> Any:
    """Return the contents of a mesh file."""
    mesh = mbd.read_mesh(path, bench.comm)
    tags = [(t.indices, t.values) for t in (mesh.cell_tags, mesh.facet_tags) if t is not None]
    return dict(mesh.groups), mesh.mesh.geometry.x, mesh.mesh.geometry.dofmap, tags


def _case(bench: Bench, path: Path) -> Any:
    """Continue a study of one case, which is computed again if its file is damaged."""
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "case-000000.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbd.errors.FileWarning)
        study = mbd.sweep(square, {"x": [2.0]}, workers=1, path=folder)
    return {name: study[name].values for name in ("x", "square", "case_status")}


def _resumed(bench: Bench, path: Path) -> Any:
    """Resume a run from its checkpoint, which may be damaged, and the saved rows of its states."""
    folder = path.with_suffix(".run")
    shutil.copytree(bench.file("checkpoint.npz").with_suffix(""), folder, dirs_exist_ok=True)
    shutil.copy(path, folder / "checkpoint.npz")
    return mbd.resume(folder, bench.crank)


READ: dict[str, Callable[[Bench, Path], Any]] = {
    "body.npz": lambda b, path: mbd.ReducedBody.load(path),
    "run.npz": lambda b, path: mbd.results.Solution.load(path, b.crank),
    "checkpoint.npz": _resumed,
    "case.npz": _case,
    "box.msh": _mesh,
    "materials.toml": lambda b, path: known_materials(str(path)),
    "K.mtx": lambda b, path: mbd.imports.read_matrices(path, b.file("M.mtx"), b.matrices.nodes),
    "matrix.op2": lambda b, path: mbd.imports.read_op2(path),
    "matrix.op4": lambda b, path: mbd.imports.read_op4(path),
    "matrix.pch": lambda b, path: mbd.imports.read_dmig(path),
}
"""How each kind of file is read."""

REVEALED = {
    "box.msh": {"truncated", "line lost"},
    "K.mtx": {"header bit", "truncated", "line lost"},
    "matrix.op2": {"truncated"},
    "matrix.op4": {"header bit", "truncated", "line lost"},
}
"""Damages that a format without a checksum reveals; those of an archive are all revealed."""

Damage = Callable[[bytes, random.Random], bytes]


def _bytes_changed(data: bytes, rng: random.Random) -> bytes:
    """Return the data with some random bytes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 10))):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def _truncated(data: bytes, rng: random.Random) -> bytes:
    """Return the beginning of the data."""
    return data[: rng.randrange(len(data))]


def _block_lost(data: bytes, rng: random.Random) -> bytes:
    """Return the data without a block."""
    start, length = rng.randrange(len(data)), rng.choice((1, 16, 512))
    return data[:start] + data[start + length :]


def _block_twice(data: bytes, rng: random.Random) -> bytes:
    """Return the data with a block twice."""
    start, length = rng.randrange(len(data)), rng.choice((1, 16, 512))
    return data[: start + length] + data[start:]


def _block_zero(data: bytes, rng: random.Random) -> bytes:
    """Return the data with a block of zeros."""
    start, length = rng.randrange(len(data)), rng.choice((4, 64, 512))
    return data[:start] + bytes(len(data[start : start + length])) + data[start + length :]


def _line_lost(data: bytes, rng: random.Random) -> bytes:
    """Return the data without a line."""
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _word_changed(data: bytes, rng: random.Random) -> bytes:
    """Return the data with another word."""
    words = data.split(b" ")
    new = (b"nan", b"-1", b"0", b"1e308", b"99999999999999999999", b"", b"x", b"inf")
    words[rng.randrange(len(words))] = rng.choice(new)
    return b" ".join(words)


DAMAGES: dict[str, Damage] = {
    "bytes changed": _bytes_changed,
    "truncated": _truncated,
    "block lost": _block_lost,
    "block twice": _block_twice,
    "block of zeros": _block_zero,
    "line lost": _line_lost,
    "word changed": _word_changed,
}


def cases(folder: Path, *, only: str | None = None, seed: int = 0) -> Iterator[Case]:
    """Return all cases of the kinds of files: intact, header bits, random damage."""
    bench = Bench(folder)
    for name in READ:
        if only not in (None, name):
            continue
        data = bench.file(name).read_bytes()
        yield Case(name, "", "intact", lambda n=name, d=data: _intact(bench, n, d))
        for byte in _header(bench.file(name)):
            for bit in range(8):
                yield Case(
                    name, "header bit", f"byte {byte}, bit {bit}",
                    lambda n=name, d=data, k=byte, b=bit: _read(
                        bench, n, _flipped(d, k, b), "header bit"
                    ),
                )  # fmt: skip
        for attack in DAMAGES:
            for number in range(RANDOM // len(DAMAGES)):
                rng = random.Random(f"{seed} {name} {attack} {number}")
                yield Case(
                    name, attack, str(number),
                    lambda n=name, d=data, a=attack, c=rng: _read(
                        bench, n, DAMAGES[a](d, c), a
                    ),
                )  # fmt: skip


def _flipped(data: bytes, byte: int, bit: int) -> bytes:
    """Return the data with one bit flipped."""
    changed = bytearray(data)
    changed[byte] ^= 1 << bit
    return bytes(changed)


def _header(path: Path) -> list[int]:
    """Return the places of the bytes of a file that are no numbers.

    Those of a zip archive are its directory, the headers of its entries, and the first 128 bytes
    of each entry, where NumPy describes the array; of other files the first 64 bytes.
    """
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        return list(range(min(64, size)))
    places: set[int] = set()
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            lengths = struct.unpack("<HH", file.read(4))
            start = info.header_offset + 30 + sum(lengths)
            places |= set(range(info.header_offset, min(start + 128, size)))
        places |= set(range(archive.start_dir, size))
    return sorted(places)


@cache
def _contents(bench: Bench, name: str) -> str:
    """Return the hash of the contents of the intact file."""
    return digest(READ[name](bench, bench.file(name)))


def _intact(bench: Bench, name: str, data: bytes) -> str | None:
    """Return an error if the intact file cannot be read."""
    try:
        return _read(bench, name, data, "intact")
    except Exception as error:
        return f"the intact file is refused: {type(error).__name__}: {error}"


def _read(bench: Bench, name: str, data: bytes, attack: str) -> str | None:
    """Read a damaged file; return what is wrong with what was read."""
    path = bench.folder / f"damaged-{name}"
    path.write_bytes(data)
    result = READ[name](bench, path)
    revealed = path.suffix == ".npz" or attack == "intact" or attack in REVEALED.get(name, ())
    if revealed and digest(result) != _contents(bench, name):
        return "the contents are not those of the intact file"
    return None if is_finite(result) else "the contents are not finite"
