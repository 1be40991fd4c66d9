"""Numbers with units, expressions and their derivatives in model files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.models import (
    ExpressionMotion,
    Formula,
    ModelFileError,
    TableMotion,
    read_model,
)
from dolfinx_mbd.io.models.declarations import declared_fields
from dolfinx_mbd.io.models.kinds import SECTIONS, VALUES
from dolfinx_mbd.mechanism import differentiated
from dolfinx_mbd.mechanism.expressions.jets import FUNCTIONS, Jet
from dolfinx_mbd.mechanism.expressions.unit_expressions import (
    check_expression,
    number,
    parse_unit,
)

# r = 0.07 and m = 3 are parameters; after a number and a blank, m is the unit metre.
VALUES_OF_TEXTS = {
    "5mm": 5e-3,
    "-5 mm": -5e-3,
    "1e-3": 1e-3,
    "2.5e5 N/m": 2.5e5,
    "3 kN s/m": 3e3,
    "600rpm": 20 * math.pi,
    "90deg": math.pi / 2,
    "90°": math.pi / 2,
    "210 GPa": 210e9,
    "7850 kg/m3": 7850.0,
    "2 kg m²": 2.0,
    "9.81 m/s^2": 9.81,
    "1e-3 1/K": 1e-3,
    "2*r + 5mm": 0.145,
    "r^2": 0.07**2,
    "-r**2": -(0.07**2),
    "sin(30deg) * 1": 0.5,
    "max(r, 1cm, 2*r)": 0.14,
    "1 if r > 5cm else 2": 1.0,
    "1/4": 0.25,
    "2*m": 6.0,
    "2 m": 2.0,
}


@pytest.mark.parametrize("text", VALUES_OF_TEXTS)
def test_values_of_texts(text: str) -> None:
    assert number(text, {"r": 0.07, "m": 3.0}) == pytest.approx(VALUES_OF_TEXTS[text], rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "().__class__", "r.real", "[1][0]", "lambda: 1", "f'{r}'", "r = 1"),
        *("'a'", "eval('1')", "x", "5 parsec", "5parsec", "", "1/0", "log(-1)", "10**10**10**10"),
        "(-2)**0.5",
        *(
            "True",
            "sin",
            "sin(r, r)",
            "sin(x=r)",
            "(1).__add__(2)",
            "1e400",
            "nan",
            "1 and 2",
            "0 0",
        ),
        "9" * 3000,
    ],
)
def test_texts_without_a_value(text: str) -> None:
    with pytest.raises(InputError):
        number(text, {"r": 0.07})


@pytest.mark.parametrize(
    ("text", "unit", "fits"),
    [
        *(
            ("5mm", "m", True),
            ("5mm", "kg", False),
            ("5 N/m", "N/m", True),
            ("5 N m", "N/m", False),
        ),
        *(("3 N m", "N m/rad", True), ("50Hz", "rad/s", False), ("50Hz", "Hz", True)),
        *(("50 1/s", "rad/s", True), ("5mm", "rad|m", True), ("2 kg", "rad|m", False)),
        *(("60rpm", "rad/s|m/s", True), ("5 J", "N m", True), ("1 bar", "Pa", True)),
    ],
)
def test_units_must_fit(text: str, unit: str, fits: bool) -> None:
    if fits:
        assert math.isfinite(number(text, {}, unit))
    else:
        with pytest.raises(InputError, match="expected a value in"):
            number(text, {}, unit)


MASS, FORCE, LENGTH = (parse_unit(unit)[1] for unit in ("kg", "N", "mm"))  # type: ignore[index]
TIME, STIFFNESS = (parse_unit(unit)[1] for unit in ("s", "N/m"))  # type: ignore[index]
PARAMETERS, VARIABLES = {"m": MASS, "F": FORCE, "k": STIFFNESS}, {"x": LENGTH, "t": TIME}


@pytest.mark.parametrize(
    ("text", "unit", "fits"),
    [
        *(("F*sin(20*t)", "N", True), ("m*sin(20*t)", "N", False), ("sin(t)", "N", True)),
        *(("F - k*x", "N", True), ("F - k*x^2", "N", False), ("F + m", "", False)),
        *(("9.81*m", "N", True), ("q*m", "N", True), ("-m", "N", False), ("5mm", "N", False)),
        *(("F*(1 - exp(-t/10ms))", "N", True), ("F*t", "N", False), ("F*t/1s", "N", True)),
        *(("F if t < 10ms else 0", "N", True), ("max(0, m)", "N", False), ("m*pi", "N", False)),
        *(
            ("sqrt(k*m)/k", "s", True),
            ("sqrt(k/m)*t", "rad", True),
            ("t - x", "N", True),
            ("t*1mm", "m", False),
        ),
        *(("2 if t > 1s else 3mm", "kg", False), ("-" * 1900 + "m", "N", True), ("m", "", True)),
    ],
)
def test_dimensions_of_expressions(text: str, unit: str, fits: bool) -> None:
    """Plain numbers, names without a unit and expressions without any unit fit all."""
    if fits:
        check_expression(text, PARAMETERS, unit, VARIABLES)
    else:
        with pytest.raises(InputError, match=r"expected a value in|cannot be added"):
            check_expression(text, PARAMETERS, unit, VARIABLES)


PENDULUM = """\
model: 1
parameters: {F: 5 N, G: 2 N m, r: 70mm, w: 20 rad/s, t: 3 kg}
bodies:
  ground: {frames: {hinge: [0, 0, 0]}}
  bob: {type: box, size: [r, r, r], mass: 2kg, frames: {hinge: [-r/2, 0, 0]}}
joints:
  hinge: {type: revolute, first: ground.hinge, second: bob.hinge}
drivers:
  drive: {joint: hinge, motion: w*t}
loads:
  push: {type: force, frame: bob.hinge, value: [0, 0, F*sin(20*t)]}
  brake: {type: joint_load, joint: hinge, motion: rotation, value: -G*rate/w}
"""


@pytest.mark.parametrize(
    ("old", "new", "entry"),
    [
        ("F: 5 N", "F: 5 kg", "loads.push.value: 'F*sin(20*t)': expected a value in N, not in kg"),
        ("F*sin(20*t)", "5mm", "loads.push.value: '5mm': expected a value in N, not in mm"),
        ("-G*rate/w", "5mm", "loads.brake.value: '5mm': expected a value in N or N m"),
        ("-G*rate/w", "-r", "loads.brake.value: '-r': expected a value in N or N m, not in m"),
        ("motion: w*t", "motion: r*w*t", "'r*w*t': expected a value in rad, not in m rad"),
        ("-r/2,", "r*r,", "'r*r': expected a value in m, not in m^2"),
    ],
)
def test_wrong_units_in_functions(tmp_path: Path, old: str, new: str, entry: str) -> None:
    """The variable t is a time although there is a parameter t."""
    path = tmp_path / "pendulum.yaml"
    path.write_text(PENDULUM)
    assert len(read_model(path).system.loads) == 2
    path.write_text(PENDULUM.replace(old, new))
    with pytest.raises(ModelFileError) as raised:
        read_model(path)
    assert entry in str(raised.value)
    if old == "F: 5 N":
        with pytest.raises(ModelFileError):
            path.write_text(PENDULUM)
            read_model(path, {"F": "3kg"})


def test_declared_units_are_known() -> None:
    """Units of common fields are read from docstrings, whose text must keep them."""
    expected = {
        ("bodies", "rigid", "mass"): "kg",
        ("bodies", "rigid", "position"): "m",
        ("bodies", "rigid", "omega"): "rad/s",
        ("loads", "spring_damper", "stiffness"): "N/m",
        ("loads", "spring_damper", "damping"): "N s/m",
        ("loads", "joint_spring", "stiffness"): "N m/rad|N/m",
        ("loads", "short_bearing", "clearance"): "m",
        ("joints", "screw", "pitch"): "m",
        ("joints", "revolute", "rate"): "rad/s|m/s",
    }
    units = {(s, k, n): declared_fields(SECTIONS[s][k])[n].units for s, k, n in expected}
    assert units == expected


def test_every_field_has_a_description() -> None:
    tables = {**SECTIONS, **VALUES}
    missing = [
        f"{section}.{kind}.{name}"
        for section, makers in tables.items()
        for kind, maker in makers.items()
        for name, field in declared_fields(maker).items()
        if not field.text and section != "PatternRef"
    ]
    assert missing == []


@pytest.mark.parametrize(
    "unit", ["N s/m", "N*s/m", "N·s/m", "kg m2/s2", "1/Pa", "m/s²", "N m s/rad"]
)
def test_units_are_products(unit: str) -> None:
    assert parse_unit(unit) is not None


@pytest.mark.parametrize(
    ("unit", "same"),
    [
        ("N/m/s", "kg s^-3"),
        ("m/s/s", "m s^-2"),
        ("N/(m s)", "kg s^-3"),
        ("N/(mm/s)", "kN s/m"),
        ("N m/(rad/s)", "N m s/rad"),
        ("1/(1/(m/s))", "m/s"),
        ("(N/mm)/ms", "MN/m/s"),
        ("kg/(m s)/s", "Pa"),
    ],
)
def test_slashes_and_parentheses(unit: str, same: str) -> None:
    """A slash divides by what follows in the same parentheses."""
    first, second = parse_unit(unit), parse_unit(same)
    assert first and second
    assert first[0] == pytest.approx(second[0], rel=1e-14) and first[1] == second[1]
    if unit[0].isalpha():  # not a parenthesis or number after the number
        assert number(f"3 {unit}", {}, same) == pytest.approx(3 * first[0], rel=1e-14)


@pytest.mark.parametrize("unit", ["N/", "/s", "N//m", "N/m)", "(N", "N/()", ")N(", "(m s)^2"])
def test_units_that_are_not_complete(unit: str) -> None:
    assert parse_unit(unit) is None
    with pytest.raises(InputError):
        number(f"3 {unit}", {}, "N")


ONE_ARGUMENT = [n for n in FUNCTIONS if n not in ("min", "max", "sign", "abs")]
numbers = st.floats(0.05, 0.95)


@settings(max_examples=60, deadline=None)
@given(
    x=numbers, first=st.floats(-2, 2), second=st.floats(-2, 2), name=st.sampled_from(ONE_ARGUMENT)
)
def test_derivatives_of_functions(x: float, first: float, second: float, name: str) -> None:
    """Derivatives agree with differences of f(x + x' h + x'' h²/2)."""
    function, h = FUNCTIONS[name], 1e-3
    jet = function(Jet(x, first, second))
    path = [function(x + first * s + 0.5 * second * s * s) for s in (-2 * h, -h, 0, h, 2 * h)]
    # central differences with five points for the first and the second derivative
    weights = np.array([[1, -8, 0, 8, -1], [-1, 16, -30, 16, -1]]) / [[12 * h], [12 * h * h]]
    size = 1 + abs(jet.second) + abs(jet.first) + abs(jet.value)
    assert jet.value == path[2]
    # The last factor bounds higher derivatives of functions with a singularity at 0 or 1.
    scale = 1e-5 * size * (1 + 1 / x**5 + 1 / (1 - x) ** 5)
    np.testing.assert_allclose([jet.first, jet.second], weights @ path, rtol=0, atol=scale)


TEXTS = ["0.1*sin(20*t)", "t**3 - t/2", "exp(-t)*cos(5*t)", "1/(1 + t^2)", "sqrt(1 + t)", "2**t"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("t", [0.0, 0.4, 1.3])
def test_motions_have_exact_derivatives(text: str, t: float) -> None:
    motion = ExpressionMotion(Formula(text))
    reference = differentiated(Formula(text), step=2e-3)(t)
    np.testing.assert_allclose(motion(t), reference, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("seed", [1, 2])
def test_table_motion_interpolates(seed: int) -> None:
    """A table of a polynomial of degree five is exact between its times."""
    rng = np.random.default_rng(seed)
    p = np.polynomial.Polynomial(rng.uniform(-1, 1, 6))
    times = np.sort(rng.uniform(0, 2, 4))
    motion = TableMotion(times, p(times), p.deriv()(times), p.deriv(2)(times))
    for t in rng.uniform(times[0], times[-1], 5):
        np.testing.assert_allclose(
            motion(t), [p(t), p.deriv()(t), p.deriv(2)(t)], rtol=1e-9, atol=1e-9
        )
    with pytest.raises(InputError, match="a time of the table"):
        motion(times[-1] + 0.1)


def test_powers_without_a_real_value_are_errors() -> None:
    root = Formula("(t - 2)**0.5")
    for function in (root, ExpressionMotion(root)):
        with pytest.raises(InputError):
            function(0.0)
    assert ExpressionMotion(root)(6.0) == (2.0, 0.25, -0.03125)
