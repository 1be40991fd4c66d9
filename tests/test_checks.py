"""The checks of arguments: what they return, and the type and fields of what they raise."""

from __future__ import annotations

import datetime as dt
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import create_unit_interval
from mpi4py import MPI

from dolfinx_mbd import checks
from dolfinx_mbd.errors import Error, InputError, InputTypeError


class Unprintable:
    """An object whose representation fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no representation")


NO_NUMBERS = (
    None, True, np.True_, "1", b"1", 1j, np.complex128(1), [], [1.0], [[1.0], [2.0, 3.0]],
    {}, object(), float, np.ones(1), np.array("1"), np.array(None), Unprintable(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "number"),
    [(2, 2.0), (2.5, 2.5), (np.float32(0.5), 0.5), (np.int8(3), 3.0), (np.array(4.0), 4.0)],
)
def test_numbers(value: Any, number: float) -> None:
    checked = checks.number("mass", value)
    assert type(checked) is float
    assert checked == number


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("check", [checks.number, checks.integer])
def test_no_numbers(check: Callable[..., Any], value: Any) -> None:
    with pytest.raises(InputTypeError) as error:
        check("mass", value)
    assert error.value.argument == "mass"
    assert error.value.value is value or isinstance(value, np.ndarray)
    assert error.value.expected


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        (math.nan, {}), (math.inf, {}), (-math.inf, {}), (np.float64("nan"), {}), (10**400, {}),
        (0.0, {"positive": True}), (-1, {"low": 0.0}), (2, {"high": 1.0}),
    ],
)  # fmt: skip
def test_numbers_out_of_range(value: Any, limits: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        checks.number("mass", value, unit="kg", **limits)
    assert not isinstance(error.value, InputTypeError)
    assert error.value.argument == "mass"
    assert "kg" in str(error.value)


def test_whole_numbers() -> None:
    assert checks.integer("count", np.int64(3), low=0, high=3) == 3
    for value, kind in ((2.0, InputTypeError), (-1, InputError), (4, InputError)):
        with pytest.raises(kind) as error:
            checks.integer("count", value, low=0, high=3)
        assert error.value.argument == "count"


def test_flags() -> None:
    assert checks.flag("skin", np.True_) is True
    for value in (1, 0, None, "yes", [], math.nan):
        with pytest.raises(InputTypeError):
            checks.flag("skin", value)


def test_arrays() -> None:
    source = [[0, 1], [2, 3]]
    array = checks.array("eta", source, (None, 2))
    assert array.dtype == float and not array.flags.writeable
    assert np.array_equal(array, source)
    point = np.ones(3)
    assert checks.vector("point", point) is not point and point.flags.writeable
    assert np.isnan(checks.array("eta", [math.nan], finite=False)).all()


@pytest.mark.parametrize(
    "value",
    [
        None, "abc", b"abc", [1.0, "x", 2.0], [[1.0], [2.0, 3.0]], [1j, 0, 0], [True] * 3,
        ["1", "2", "3"], {}, {1, 2, 3}, object(), np.array([None] * 3), (x for x in (1, 2, 3)),
    ],
)  # fmt: skip
def test_no_vectors(value: Any) -> None:
    with pytest.raises(InputTypeError) as error:
        checks.vector("point", value)
    assert error.value.argument == "point"


@pytest.mark.parametrize(
    "value", [[], [1.0, 2.0], np.zeros((3, 3)), 1.0, [math.nan] * 3, [0.0, math.inf, 0.0]]
)
def test_vectors_that_do_not_fit(value: Any) -> None:
    with pytest.raises(InputError) as error:
        checks.vector("point", value)
    assert error.value.argument == "point"


def test_choices() -> None:
    assert checks.choice("plane", "strain", ("strain", "stress")) == "strain"
    assert checks.choice("plane", None, ("strain",), none=True) is None
    for value in (None, "Strain", 1, ["strain"], np.array(["strain", "stress"]), math.nan):
        with pytest.raises(InputError) as error:
            checks.choice("plane", value, ("strain", "stress"))
        assert error.value.argument == "plane"
    with pytest.raises(InputError):  # (True == 1)
        checks.choice("dim", True, (1, 2))


def test_names() -> None:
    assert checks.name("name", "rod") == "rod"
    assert checks.names("held", (name for name in ("a", "b"))) == ("a", "b")
    assert checks.names("held", {"a": 1}) == ("a",)
    for value, kind in ((None, InputTypeError), (1, InputTypeError), (" ", InputError)):
        with pytest.raises(kind):
            checks.name("name", value)
    for value, kind in (
        ("left", InputTypeError), (None, InputTypeError), ([1], InputTypeError),
        (["a", "a"], InputError), ([""], InputError),
    ):  # fmt: skip
        with pytest.raises(kind):
            checks.names("held", value)


def test_instances_and_functions() -> None:
    assert checks.instance("count", 1, (int, type(None))) == 1
    assert checks.function("law", math.sin) is math.sin
    with pytest.raises(InputTypeError) as error:
        checks.instance("count", "1", (int, type(None)), "a count")
    assert error.value.expected == "int or None (a count)"
    with pytest.raises(InputTypeError):
        checks.function("law", 3.0, "law(s, rate)")


def test_number_of_arguments_of_functions() -> None:
    accepted = (lambda s, rate: s, lambda *values: 0.0, lambda s, rate, scale=1.0: s, max)
    for law in accepted:
        assert checks.function("law", law, "law(s, rate), for example of a spring") is law
    for law in (lambda s: s, lambda s, rate, t: s, lambda s, *, rate: s):
        with pytest.raises(InputTypeError, match=r"called as law\(s, rate\)") as error:
            checks.function("law", law, "law(s, rate)")
        assert error.value.argument == "law"
    assert checks.function("law", lambda s: s, "a function of a solution")


def test_keywords_of_functions() -> None:
    def law(x: float, *, y: float = 0.0) -> float:
        return x + y

    for keywords in ({"x": 1}, {"x": 1, "y": 2}):
        assert checks.function("law", law, "law(x)", keywords) is law
    assert checks.function("law", law, "law(x)", {"x": 1}, {"y": 2}) is law
    assert checks.function("law", max, "max(x)", {"x": 1}) is max  # (it has no signature)
    for groups in (({"y": 1},), ({"x": 1, "z": 1},), ({"x": 1}, {"x": 2}), ({"x": 1, 2: 3},)):
        with pytest.raises(InputTypeError) as error:
            checks.function("law", law, "law(x)", *groups)
        assert error.value.argument == "law"


def test_paths() -> None:
    assert checks.file_path("path", "a/rod.NPZ", (".npz",)) == Path("a/rod.NPZ")
    for value, kind in (
        (None, InputTypeError), (1, InputTypeError), (b"rod", InputTypeError), ("", InputError),
        ("a\0b", InputError), ("rod.msh", InputError), ("rod", InputError),
    ):  # fmt: skip
        with pytest.raises(kind) as error:
            checks.file_path("path", value, (".npz",))
        assert error.value.argument == "path"


def test_messages_are_short() -> None:
    for value in ("x" * 10_000, list(range(10_000)), np.zeros(10_000), {"a": "b" * 9_999}):
        with pytest.raises(Error) as error:
            checks.number("mass", value)
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)


def test_paths_are_shown_as_strings() -> None:
    """The message contains the path as a user wrote it, also in a list."""
    for value, shown in (
        (Path("results/rod.txt"), "'results/rod.txt'"),
        ([Path("a.npz")], "['a.npz']"),
    ):
        with pytest.raises(Error, match=re.escape(shown)):
            checks.number("mass", value)


def expressions() -> list[Any]:
    """Return UFL expressions, alone and in lists."""
    mesh = create_unit_interval(MPI.COMM_SELF, 2)
    scalar = fem.Function(fem.functionspace(mesh, ("Lagrange", 1)))
    return [scalar, ufl.SpatialCoordinate(mesh), [scalar, 1.0], [[0.0], [scalar]]]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("k", range(4))
def test_expressions_are_refused_at_once(k: int) -> None:
    """UFL expressions are no numbers; NumPy's conversion of a `fem.Function` would not end."""
    value = expressions()[k]
    for check in (checks.array, checks.vector, checks.number):
        with pytest.raises(InputTypeError) as error:
            check("values", value)
        assert error.value.argument == "values"


def test_messages_contain_no_addresses() -> None:
    """Addresses would differ between ranks."""
    for value in (object(), lambda: None, [object()], {"load": test_messages_are_short}):
        assert "0x" in repr(value)
        with pytest.raises(InputError) as error:
            checks.number("value", value)
        assert "0x" not in str(error.value) and " at " not in str(error.value)


def test_increasing_numbers() -> None:
    for values in ([0, 1, 2], range(3), iter([0.0, 1.0, 2.0]), np.arange(3)):
        assert checks.increasing("times", values).tolist() == [0.0, 1.0, 2.0]
    for value in ([], [1.0, 1.0], [1.0, 0.0], [0.0, math.nan], [[0.0, 1.0]], 1.0, None, "times"):
        with pytest.raises(InputError) as error:
            checks.increasing("times", value)
        assert error.value.argument == "times"
    with pytest.raises(InputError):
        checks.increasing("times", [0.0, 1.0], least=3)


def test_objects_with_attributes() -> None:
    path = Path("rod.npz")
    assert checks.object_with("path", path, "name", "suffix") is path
    for value in (None, 1.0, "rod", Path):
        with pytest.raises(InputTypeError) as error:
            checks.object_with("path", value, "name", "suffix")
        assert error.value.argument == "path"


@pytest.mark.parametrize(
    ("value", "metres"),
    [
        (0.005, 5e-3),
        ("0.005", 5e-3),
        ("5mm", 5e-3),
        ("5e0 mm", 5e-3),
        ("mm", 1e-3),
        ("2in", 0.0508),
    ],
)
def test_lengths(value: float | str, metres: float) -> None:
    assert checks.length("size", value) == pytest.approx(metres, rel=1e-14)


@pytest.mark.parametrize(
    "value", [0.0, -1.0, "0mm", "-5mm", "5 parsec", "", " ", ".", "1e999m", None]
)
def test_no_lengths(value: Any) -> None:
    with pytest.raises(InputError) as error:
        checks.length("size", value)
    assert error.value.argument == "size"


def test_positions_with_units() -> None:
    values = checks.metres(("-5mm", "2.5e1 cm", ".5in", 3.0))
    assert values == pytest.approx([-5e-3, 0.25, 0.0127, 3.0], rel=1e-15)
    assert checks.metres("+2m") == 2.0
    position = (0.0, np.float64(1.0), 2)
    for value in (position, np.ones(3), 0.1, None, "mid", "5", "5 parsec", "mm", [["5mm"]]):
        assert checks.metres(value) is value
    with pytest.raises(InputTypeError):
        checks.vector("at", checks.metres(("5mmm", 0.0, 0.0)))


def _recursive() -> list[object]:
    """Return a list that contains itself."""
    value: list[object] = [1.0]
    value.append(value)
    return value


@pytest.mark.parametrize("dimensions", [(), (2,), (None, 3)])
def test_values_that_are_no_numbers(dimensions: tuple[int | None, ...]) -> None:
    """Lists that contain themselves, times and scalars of other kinds raise an InputError."""
    values = [_recursive(), [_recursive()], np.array("x"), np.array(object(), dtype=object)]
    values += [dt.timedelta(1), np.timedelta64(1, "s"), np.array([1, 2], "m8[s]"), io.StringIO()]
    for value in values:
        with pytest.raises(InputTypeError):
            checks.array("x", value, dimensions)
        for check in (checks.number, checks.integer, checks.names, checks.flag, checks.name):
            if check is checks.names and isinstance(value, list) and not dimensions:
                continue
            with pytest.raises(InputError):
                check("x", value)
    assert checks.metres(_recursive())[0] == 1.0
    for value in (["5mm", _recursive()], [_recursive(), "5mm"]):
        assert 5e-3 in checks.metres(value)


def test_collections() -> None:
    assert checks.entries("x", np.arange(2)) == (0, 1) and checks.entries("x", {"a": 1}) == ("a",)
    for value in (np.array(1.0), "text", b"text", 3, io.StringIO("a\nb"), np.float64(1.0)):
        for check in (checks.entries, checks.names):
            with pytest.raises(InputTypeError):
                check("x", value)
        with pytest.raises(InputTypeError):
            checks.items("x", value, object)
