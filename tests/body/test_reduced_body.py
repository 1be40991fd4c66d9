"""Reduced bodies as data: mass properties, invalid data, valid and invalid files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from dolfinx_mbd.body import BodyFileError, MaterialPoint, Mode, ReducedBody, Skin
from dolfinx_mbd.body.parts import mode_titles
from dolfinx_mbd.body.tree import leaves
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.files import temporary_path
from tests.models.particles import Particles


def body(num_modes: int = 3) -> ReducedBody:
    """Return a body with a point, a skin and stiffening."""
    particles = Particles(num_modes)
    n = num_modes
    skin = Skin(np.eye(3), [[0, 1, 2]], np.ones((n, 3, 3)))
    return particles.body(stiffening=True).replace(
        name="rod",
        points=(MaterialPoint("middle", [1, 2, 3], np.arange(3 * n).reshape(n, 3)),),
        skin=skin,
        modes=tuple(Mode(f"elastic {k}", 10.0 * k) for k in range(n)),
        provenance={"dolfinx": "0.9.0", "dofs": 30},
    )


def test_modes_have_one_numbering() -> None:
    """Mode k of the table is mode k of `selected` and of titles, and row k - 1 of arrays."""
    four = body(4)
    lines = [line.split() for line in four.summary().splitlines()]
    for k, mode in enumerate(four.modes, 1):
        label = mode.label.split()
        assert any(words[: len(label) + 1] == [str(k), *label] for words in lines)
        single = four.selected([k])
        assert single.modes == (mode,)
        assert single.stiffness.item() == four.stiffness[k - 1, k - 1]
        assert mode_titles(four.modes)[k - 1].startswith(f"{k}: {mode.label}")
    for wrong in (0, 5):
        with pytest.raises(InputError, match=r"every entry of modes must be .* from 1 to 4"):
            four.selected([wrong])


def test_mass_properties_are_those_of_the_particles() -> None:
    particles = Particles(2)
    reduced = particles.body()
    centre = particles.masses @ particles.x / particles.masses.sum()
    assert np.allclose(reduced.centre, centre)
    for about, inertia in ((np.zeros(3), reduced.inertia), (centre, reduced.central_inertia)):
        r = particles.x - about
        squares = np.sum(r**2, axis=1)
        expected = np.einsum("p,pab->ab", particles.masses, squares[:, None, None] * np.eye(3))
        expected -= np.einsum("p,pa,pb->ab", particles.masses, r, r)
        assert np.allclose(inertia, expected)
    trace = np.einsum("klaa->kl", particles.H[1:, 1:])
    assert np.allclose(reduced.mass, trace)


def test_arrays_are_read_only_copies() -> None:
    particles = Particles(2)
    reduced = particles.body()
    particles.S[0, 0] = 1e9
    assert reduced.first_moments[0, 0] < 1e9
    with pytest.raises(ValueError, match="read-only"):
        reduced.stiffness[0, 0] = 1.0


def test_truncated_and_rigid() -> None:
    whole = body(3)
    part = whole.truncated(1)
    assert part.num_modes == 1
    assert np.array_equal(part.second_moments, whole.second_moments[:2, :2])
    assert np.array_equal(part.interface("one").motion, whole.interface("one").motion[:, :1])
    rigid = whole.rigid()
    assert rigid.num_modes == 0 and rigid.reference == "rigid"
    assert np.array_equal(rigid.inertia, whole.inertia)
    with pytest.raises(InputError) as error:
        whole.truncated(4)
    assert (error.value.argument, error.value.value) == ("num_modes", 4)


def same(one: ReducedBody, two: ReducedBody) -> None:
    """Assert that two bodies have equal arrays, names, modes, kinds of interfaces and origins."""
    for (place, _, a), (other, _, b) in zip(leaves(one), leaves(two), strict=True):
        assert place == other and np.array_equal(a, b), place
    assert (one.name, one.total_mass, one.reference) == (two.name, two.total_mass, two.reference)
    assert (one.modes, one.left_out) == (two.modes, two.left_out)
    assert dict(one.provenance) == dict(two.provenance)
    assert [i.kind for i in one.interfaces] == [i.kind for i in two.interfaces]


@pytest.mark.parametrize("num_modes", [0, 3])
def test_a_body_is_saved_and_loaded_exactly(tmp_path: Path, num_modes: int) -> None:
    first = body(num_modes)
    path = first.save(tmp_path / "rod")
    assert path.name == "rod.npz"
    same(first, ReducedBody.load(path))
    assert [p.name for p in tmp_path.iterdir()] == ["rod.npz"]


def test_a_truncated_file_is_refused_at_every_length(tmp_path: Path) -> None:
    path = body().save(tmp_path / "rod.npz")
    data = path.read_bytes()
    for size in (0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(BodyFileError) as error:
            ReducedBody.load(path)
        assert error.value.path == str(path)


def test_a_damaged_array_is_refused(tmp_path: Path) -> None:
    path = body().save(tmp_path / "rod.npz")
    data = bytearray(path.read_bytes())
    start = data.index(b"second_moments.npy") + 300  # inside of the numbers
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(bytes(data))
    with pytest.raises(BodyFileError) as error:
        ReducedBody.load(path)
    assert error.value.path == str(path)


def test_nothing_is_half_written(tmp_path: Path) -> None:
    path = body().save(tmp_path / "rod.npz")
    before = path.read_bytes()
    with pytest.raises(OSError) as error:
        body().save(tmp_path / "rod.npz" / "rod.npz")
    assert error.value.errno == errno.ENOTDIR
    full = Path("/dev/full")
    if full.exists() and os.access(full, os.W_OK):
        target = tmp_path / "full"
        target.mkdir()
        with pytest.raises(OSError) as error:
            _save_on_a_full_disk(target / "rod.npz")
        assert error.value.errno == errno.ENOSPC
        assert list(target.iterdir()) == []
    assert path.read_bytes() == before


def _save_on_a_full_disk(path: Path) -> None:
    """Save to /dev/full, where each write fails with 'no space left'."""
    temporary_path(path).symlink_to("/dev/full")
    body().save(path)


def test_summary_contains_the_data_of_the_body() -> None:
    text = body().summary()
    for word in ("rod", "mass", "kg", "one", "two", "middle", "elastic 2", "20.00", "dolfinx"):
        assert word in text
