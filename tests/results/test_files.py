"""Files of solutions: numbers are saved and loaded exactly, tables, bad files."""

from __future__ import annotations

import csv
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import FileWarning, InputError
from dolfinx_mbd.mechanism import Driver, constant_speed
from dolfinx_mbd.mechanism.mechanisms import inline_engine, rigid_rod, slider_crank
from dolfinx_mbd.results import Solution
from dolfinx_mbd.results.files.fingerprint import differences, digest, fingerprint
from dolfinx_mbd.results.files.run_files import RunFileError
from tests.models.beams import slender_rod

SETTINGS = {"crank_radius": 0.15, "crank_mass": 0.36, "piston_mass": 0.0755}


def mechanism(speed: float = 150.0, crank_mass: float = 0.36) -> System:
    """Return a driven slider-crank with a flexible rod."""
    return slider_crank(slender_rod(), speed=speed, **SETTINGS | {"crank_mass": crank_mass})


@pytest.fixture(scope="module")
def run() -> Solution:
    """Return a short run of the slider-crank."""
    return simulate(mechanism(), t_end=0.002, dt=1e-4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path for each rank."""
    return tmp_path / f"run{MPI.COMM_WORLD.rank}.npz"


def test_saved_and_loaded(run: Solution, path: Path) -> None:
    assert run.save(path.with_suffix("")) == path
    loaded = Solution.load(path, mechanism())
    for key in ("time", "q", "v", "a", "lam", "angles"):
        assert np.array_equal(getattr(loaded, key), getattr(run, key))
    assert repr(loaded) == repr(run)
    assert np.array_equal(loaded.body("rod").eta, run.body("rod").eta)
    assert np.array_equal(loaded.joint("drive").moment, run.joint("drive").moment)
    later = [simulate(mechanism(), t_end=3e-3, dt=1e-4, start=r.final_state) for r in (loaded, run)]
    assert np.array_equal(later[0].q, later[1].q)


def test_no_pickles_and_a_version(run: Solution, path: Path) -> None:
    with np.load(run.save(path), allow_pickle=False) as file:
        header = json.loads(str(file["header"]))
    assert header["format"] == "dolfinx_mbd solution"
    assert header["version"] == 3


def test_a_table(run: Solution, path: Path) -> None:
    with run.to_csv(path.with_suffix(".csv")).open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    names, values = rows[0], np.array(rows[1:], dtype=float)
    assert len(values) == len(run)
    column = dict(zip(names, values.T, strict=True))
    assert np.array_equal(column["time [s]"], run.time)
    assert np.array_equal(column["rod.position.y [m]"], run.body("rod").position[:, 1])
    assert np.array_equal(column["rod.eta.2 [SI]"], run.body("rod").eta[:, 1])  # names count from 1
    assert np.array_equal(column["piston pin.force.x [N]"], run.joint("piston pin").force[:, 0])
    assert np.array_equal(column["main.rotation [rad]"], run.joint("main").rotation)
    assert run.to_csv(path.parent / "new" / "folder" / "run.csv").is_file()
    heads = run.to_csv(path.with_suffix(".csv"), names=["drive"]).read_text().splitlines()[0]
    assert heads.startswith("time [s],drive.force.x [N]") and "rod" not in heads
    with pytest.raises(InputError, match="wheel"):
        run.to_csv(path, names=["wheel"])


def test_of_another_system(run: Solution, path: Path) -> None:
    run.save(path)
    with pytest.raises(RunFileError, match="belongs to another system: body 'crank' differs"):
        Solution.load(path, mechanism(crank_mass=0.37))
    with pytest.raises(RunFileError, match="driver 'drive' differs"):
        Solution.load(path, mechanism(speed=151.0))


def test_damaged_or_newer(run: Solution, path: Path) -> None:
    data = run.save(path).read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(RunFileError, match="not a solution, or truncated or damaged"):
        Solution.load(path, mechanism())
    path.write_text("nonsense")
    with pytest.raises(RunFileError, match="not a solution"):
        Solution.load(path, mechanism())
    header = {"format": "dolfinx_mbd solution", "version": 4}
    np.savez(path, header=np.array(json.dumps(header)))
    with pytest.raises(RunFileError, match="written as format 4, this program reads up to 3"):
        Solution.load(path, mechanism())
    # An older format only gives a warning; the error is that the file is empty
    np.savez(path, header=np.array(json.dumps(header | {"version": 1})))
    with pytest.warns(FileWarning), pytest.raises(RunFileError) as error:
        Solution.load(path, mechanism())
    assert error.value.path == str(path)
    with pytest.raises(FileNotFoundError, match="no solution"):
        Solution.load(path.with_name("none.npz"), mechanism())


def test_errors_of_writing(run: Solution, path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="cannot write table"):
        run.to_csv(path.parent)
    before = run.save(path).read_bytes()
    for name in ("nothing.npz", "in/nothing.npz"):
        with pytest.raises(NotADirectoryError, match="cannot write solution"):
            run.save(path / name)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.glob("*.part")] == []


def test_files_of_earlier_versions(run: Solution, path: Path) -> None:
    """Only names and sizes of the system are compared, because format 1 has other digests."""
    run.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays.pop("header"))) | {"version": 1}
    header["system"] = dict.fromkeys(header["system"], "a digest with the code of functions")
    del header["arrays"], header["sha256"]
    np.savez(path, header=np.array(json.dumps(header)), **arrays)
    with pytest.warns(FileWarning):
        loaded = Solution.load(path, mechanism())
    assert np.array_equal(loaded.q, run.q)
    fewer = slider_crank(slender_rod(bending=1), speed=150.0, **SETTINGS)
    free = slider_crank(slender_rod(), torque=1.0, **SETTINGS)
    for system, text in ((fewer, "number of coordinates differs"), (free, "'drive' is missing")):
        with pytest.warns(FileWarning), pytest.raises(RunFileError) as error:
            Solution.load(path, system)
        assert text in str(error.value)


# ---- fingerprints -------------------------------------------------------------------------------


def test_a_system_built_anew_is_the_same() -> None:
    def engine(pressure_peak: float = 91e5) -> System:
        from dolfinx_mbd.mechanism.mechanisms.gas import FourStrokePressure

        gas = FourStrokePressure(0.07, 0.04, 0.137, peak_pressure=pressure_peak)
        return inline_engine(
            rigid_rod(length=0.137, mass=0.153, thickness=0.01), speed=100.0, pressure=gas
        )

    first, second = fingerprint(engine()), fingerprint(engine())
    assert first == second
    assert differences(first, fingerprint(engine(90e5))) == [
        f"load 'gas {k}' differs" for k in (1, 2, 3)
    ]


def test_functions_count_by_their_names_and_data() -> None:
    """A function counts by its name, closure, defaults and bound arguments, not by its code."""
    base = mechanism()

    def with_motion(motion) -> dict[str, str]:
        drive = Driver("drive", "main", motion)
        return fingerprint(System(base.bodies, base.joints, drivers=[drive]))

    def line(t, slope):
        return slope * t, slope, 0.0

    assert with_motion(constant_speed(3.0)) == with_motion(constant_speed(3.0))
    assert with_motion(constant_speed(3.0)) != with_motion(constant_speed(4.0))
    partial = [functools.partial(line, slope=s) for s in (3.0, 3.0, 4.0)]
    assert with_motion(partial[0]) == with_motion(partial[1]) != with_motion(partial[2])
    defaults = [lambda t, s=s: (s * t, s, 0.0) for s in (3.0, 3.0, 4.0)]
    assert with_motion(defaults[0]) == with_motion(defaults[1]) != with_motion(defaults[2])
    first, second = with_motion(lambda t: (t, 1.0, 0.0)), with_motion(lambda t: (2 * t, 2.0, 0.0))
    assert first == second  # documented: a change inside a function is not noticed
    assert differences(first, with_motion(rising)) == ["driver 'drive' differs"]

    class Motion:
        def __init__(self, speed: float) -> None:
            self.speed = speed
            self._asked = 0

        def __call__(self, t: float) -> tuple[float, float, float]:
            self._asked += 1
            return self.speed * t, self.speed, 0.0

    used = Motion(3.0)
    used(1.0)
    assert with_motion(used) == with_motion(Motion(3.0)) != with_motion(Motion(4.0))
    cached = [functools.lru_cache(maxsize=9)(constant_speed(s)) for s in (3.0, 3.0, 4.0)]
    assert with_motion(cached[0]) == with_motion(cached[1]) != with_motion(cached[2])


def rising(t: float) -> tuple[float, float, float]:
    """Return a motion with the speed 1, its rate and its acceleration."""
    return t, 1.0, 0.0


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        ([1, [2]], [[1], 2]),
        (["ab", "c"], ["a", "bc"]),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, dtype=int)),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (functools.partial(rising, 1.0), functools.partial(rising, t=1.0)),
        (len, max),
        (float, int),
        (np, json),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", str(value)),
)
def test_digests_tell_objects_apart(one: object, two: object) -> None:
    assert digest(one) != digest(two)


def test_digests_of_objects_that_contain_themselves() -> None:
    ring: list[object] = [1.0]
    ring.append(ring)
    other: list[object] = [1.0]
    other.append(other)
    assert digest(ring) == digest(other) != digest([1.0, [1.0]])
