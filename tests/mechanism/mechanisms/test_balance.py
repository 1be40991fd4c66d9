"""Balance of inline and V engines against closed forms, and against the forces of a mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.mechanisms import (
    EngineDesign,
    engine_balance,
    inline_engine,
    rigid_rod,
)

RADIUS, ROD, PISTON, SPACING = 0.04, 0.137, 0.214, 0.08  # m, m, kg, m
RATIO = RADIUS / ROD
SECOND = RATIO + RATIO**3 / 4 + 15 * RATIO**5 / 128 + 35 * RATIO**7 / 512  # λ' of order 2


def a_rod(mass: float = 0.3, share: float = 0.3) -> Any:
    """Return a rod whose masses are at its ends, with a share of the mass at the small end."""
    return rigid_rod(ROD, mass, centre=share * ROD, inertia=mass * share * (1 - share) * ROD**2)


# Masses with the default rod of 0.3 kg: the piston and 30 % of the rod; the other 70 % of it, kg
OSCILLATING, ROTATING = PISTON + 0.3 * 0.3, 0.3 * 0.7


def balance(**arguments: Any) -> Any:
    """Return the balance of an engine with the rods `a_rod()`; the design has the arguments.

    The arguments `unbalance` and `couple` are those of `engine_balance`.
    """
    options = {key: arguments.pop(key) for key in ("unbalance", "couple") if key in arguments}
    return engine_balance(EngineDesign(**arguments), a_rod(), **options)


def test_one_cylinder() -> None:
    """Along the cylinder, the force is m r ω² of order 1 and m r λ' ω² of order 2.

    The report has forces and moments divided by ω².
    m is the oscillating mass; a rotating mass adds a constant rotating force.
    """
    report = balance(cylinders=1, bank_angles=[0.4], firing_angles=[0.0], spacing=0.0)
    axis = np.array([np.cos(0.4), np.sin(0.4)])
    np.testing.assert_allclose(report.static, ROTATING * RADIUS * axis, rtol=1e-12)
    along = report.force @ axis
    assert along[0] == pytest.approx(RADIUS * (OSCILLATING + ROTATING), rel=1e-10)
    assert along[1] == pytest.approx(RADIUS * OSCILLATING * SECOND, rel=1e-5)
    across = report.force @ [-axis[1], axis[0]]
    np.testing.assert_allclose(across, [-1j * ROTATING * RADIUS, 0], atol=1e-15)
    assert np.abs(report.moment).max() < 1e-15


@pytest.mark.parametrize("cylinders", [3, 5, 6])
def test_forces_of_inline_engines_that_cancel(cylinders: int) -> None:
    orders = {5: (1, 2, 4, 5, 3), 6: (1, 5, 3, 6, 2, 4)}
    report = balance(cylinders=cylinders, spacing=SPACING, firing_order=orders.get(cylinders))
    scale = OSCILLATING * RADIUS
    assert np.abs(report.force).max() < 1e-12 * scale
    assert (np.abs(report.moment).max() < 1e-12 * scale) == (cylinders == 6)


def test_inline_four() -> None:
    """Only order 2 remains: 4 m r λ' ω² along the cylinders."""
    report = balance(cylinders=4, spacing=0.09)
    expected = np.array([[0, 0], [4 * OSCILLATING * RADIUS * SECOND, 0]])
    np.testing.assert_allclose(report.force, expected, rtol=1e-5, atol=1e-14)
    assert np.abs(report.moment).max() < 1e-14


def test_inline_three() -> None:
    """The couples are √3 a m r ω² of order 1 and √3 a m r λ' ω² of order 2, a = `SPACING`."""
    report = balance(cylinders=3, spacing=SPACING)
    arm = np.sqrt(3) * SPACING * RADIUS
    first, second = report.moment
    # the oscillating part acts about y, the rotating part about both axes
    assert abs(first[1]) == pytest.approx(arm * (OSCILLATING + ROTATING), rel=1e-10)
    assert abs(first[0]) == pytest.approx(arm * ROTATING, rel=1e-10)
    assert abs(second[1]) == pytest.approx(arm * OSCILLATING * SECOND, rel=1e-5)
    assert np.linalg.norm(report.couple) == pytest.approx(arm * ROTATING, rel=1e-12)


@pytest.mark.parametrize("bank", [60.0, 72.0, 90.0])
def test_v_twin_on_one_pin(bank: float) -> None:
    """The half-axes of order 1 are m r ω² (1 ± cos V); at V = 90° the force rotates with the crank.

    V is the angle between the banks.
    """
    half = np.radians(bank) / 2
    arguments: dict[str, Any] = {
        "cylinders": 2,
        "spacing": 0.0,
        "bank_angles": [-half, half],
        "firing_angles": [4 * np.pi - half, half],
        "throw_angles": [0.0, 0.0],
    }
    report = balance(**arguments)
    # Without the part of the rotating masses
    x, y = report.force[0] - [2 * ROTATING * RADIUS, -2j * ROTATING * RADIUS]
    assert x == pytest.approx(OSCILLATING * RADIUS * (1 + np.cos(2 * half)), rel=1e-10)
    assert y == pytest.approx(-1j * OSCILLATING * RADIUS * (1 - np.cos(2 * half)), rel=1e-10)
    second = (
        2
        * OSCILLATING
        * RADIUS
        * SECOND
        * np.array([np.cos(half) * np.cos(2 * half), -1j * np.sin(half) * np.sin(2 * half)])
    )
    np.testing.assert_allclose(report.force[1], second, rtol=1e-5, atol=1e-14)
    mass, _ = report.counterweight
    np.testing.assert_allclose(mass, [-(2 * ROTATING + OSCILLATING) * RADIUS, 0], atol=1e-14)
    remaining = balance(**arguments, unbalance=mass).force[0]
    expected = OSCILLATING * RADIUS * abs(np.cos(2 * half))  # rotates backward
    np.testing.assert_allclose(np.abs(remaining), expected, rtol=1e-9, atol=1e-14)


def test_v8_with_a_cross_plane_crank() -> None:
    """A 90° V8 has no free forces; counterweights remove its rotating couple of order 1."""
    half = np.pi / 4
    throws = np.repeat(np.radians([0.0, 90.0, 270.0, 180.0]), 2)
    banks = np.tile([-half, half], 4)
    firing = np.mod(banks - throws, 2 * np.pi)
    firing[[2, 3, 6, 7]] += 2 * np.pi  # in the second turn of the cycle
    arguments = {
        "cylinders": 8,
        "spacing": 0.05,
        "bank_angles": banks,
        "firing_angles": firing,
        "throw_angles": throws,
    }
    design = EngineDesign(**arguments)
    report = balance(**arguments)
    scale = OSCILLATING * RADIUS
    assert np.abs(report.force).max() < 1e-12 * scale
    assert np.abs(report.moment[0]).max() > 0.1 * scale
    assert design.positions[1] - design.positions[0] == pytest.approx(0.05)
    _, couple = report.counterweight
    balanced = balance(**arguments, couple=couple)
    assert np.abs(balanced.moment[0]).max() < 0.4 * np.abs(report.moment[0]).max()


def vee_six(half: float, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of a V6 with a pin for each cylinder and banks at ±`half`, rad."""
    places = np.repeat([-0.1, 0.0, 0.1], 2) + np.tile([-0.012, 0.012], 3)
    firing = {"firing_order": [1, 2, 3, 4, 5, 6]} | arguments
    return {
        "cylinders": 6,
        "bank_angles": np.tile([-half, half], 3),
        "cylinder_positions": places,
        **firing,
    }


BOXER = {
    "cylinders": 4,
    "bank_angles": np.array([0.0, np.pi, 0.0, np.pi]),
    "cylinder_positions": [-0.07, -0.03, 0.03, 0.07],
    "firing_order": [1, 4, 2, 3],
}


@pytest.mark.parametrize("bank", [60.0, 90.0])
def test_offset_pins_of_a_v6(bank: float) -> None:
    """Even firing of a V6 splits its pins by 120° minus the bank angle; inertia forces cancel."""
    design = EngineDesign(**vee_six(np.radians(0.5 * bank)))
    throws = np.degrees(np.asarray(design.throw_angles)).reshape(3, 2)
    apart = np.mod(throws[:, 0] - throws[:, 1] + 180.0, 360.0) - 180.0
    assert np.allclose(apart, 120.0 - bank)
    report = engine_balance(design, a_rod())
    assert np.abs(report.force).max() < 1e-12 * OSCILLATING * RADIUS


def test_boxer() -> None:
    """Opposite throws of both banks cancel all forces and order 1; the offset leaves a moment."""
    report, scale = balance(**BOXER), OSCILLATING * RADIUS
    assert np.abs(report.force).max() < 1e-12 * scale
    assert np.abs(report.moment[0]).max() < 1e-12 * scale
    # order 2 has the same phase in all cylinders; the series of SECOND has an error of 3e-6
    arm = abs(-0.07 - -0.03 + 0.03 - 0.07)
    assert np.abs(report.moment[1, 1]) == pytest.approx(scale * SECOND * arm, rel=1e-5)


def test_unbalanced_crank() -> None:
    """A reduced crank with masses at its pins equals the option `pin_mass`."""
    design, masses = EngineDesign(cylinders=3), np.array([0.4, 0.4, 0.4, 0.7])
    throws = np.asarray(design.throw_angles)
    pins = [np.cos(throws) * RADIUS, np.sin(throws) * RADIUS, design.positions]
    points = np.vstack([np.transpose(pins), [-0.03, 0.01, 0.05]])
    crank = mbd.ReducedBody.from_arrays(
        name="crank",
        total_mass=masses.sum(),
        first_moments=(masses @ points)[None],
        second_moments=np.einsum("k,ki,kj->ij", masses, points, points)[None, None],
        stiffness=np.zeros((0, 0)),
        reference="rigid",
    )
    weight = 0.7 * points[-1]
    with_crank = engine_balance(design, a_rod(), crank=crank)
    with_masses = engine_balance(
        design, a_rod(), pin_mass=0.4, unbalance=weight[:2], couple=weight[:2] * 0.05
    )
    for key in ("static", "couple", "force", "moment"):
        a, b = getattr(with_crank, key), getattr(with_masses, key)
        assert np.allclose(a, b, rtol=0, atol=1e-14), key
    # The masses at the pins are a part of the crank, or of the rotating mass of each pin
    assert with_crank.rotating_mass == pytest.approx(with_masses.rotating_mass - 0.4)


CASES = {
    "one": {"cylinders": 1, "pin_offset": 0.003},
    "three": {"cylinders": 3, "spacing": SPACING},
    "four": {"cylinders": 4, "spacing": 0.09, "pin_offset": -0.002},
    "vee": {"cylinders": 2, "spacing": 0.02, "bank_angles": np.radians([-36.0, 40.0])},
    "five": {"cylinders": 5, "spacing": SPACING, "firing_order": [1, 3, 5, 4, 2]},
    "vee six": vee_six(np.pi / 6),
    # Fires at unequal intervals
    "vee six, odd": vee_six(
        np.pi / 4,
        firing_order=None,
        firing_angles=np.radians([0.0, 90.0, 240.0, 330.0, 480.0, 570.0]),
    ),
    "boxer": BOXER,
    "VR six": {
        "cylinders": 6,
        "spacing": SPACING,
        "bank_angles": np.radians([-7.5, 7.5] * 3),
        "pin_offset": [0.012, -0.012] * 3,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_forces_of_a_mechanism(name: str) -> None:
    """Orders 1 and 2 of the forces of the rigid engine on the ground are those of the report."""
    design, speed, count = EngineDesign(**CASES[name]), 150.0, 400
    engine = inline_engine(a_rod(), design, speed=speed, gas=False)
    period = 2 * np.pi / speed
    run = mbd.simulate(engine, t_end=period, dt=period / count, elastic_start="undeformed")
    force, moment = np.zeros((2, count, 3))
    names = ["main", *(f"guide {k + 1}" for k in range(design.cylinders))]
    for joint in names:
        history = run.joint(joint)
        place, axes = engine.body("ground").frames[joint]
        on_ground = -np.asarray(history.force)[:-1] @ np.asarray(axes).T
        force += on_ground
        moment += np.cross(place, on_ground) - np.asarray(history.moment)[:-1] @ np.asarray(axes).T
    report, scale = engine_balance(design, a_rod()), OSCILLATING * RADIUS
    # Complex amplitudes of orders 1 and 2, divided by ω²
    for values, expected in ((force, report.force), (moment, report.moment)):
        lines = 2 * np.fft.rfft(values, axis=0)[1:3, :2] / count / speed**2
        np.testing.assert_allclose(lines, expected, rtol=0, atol=1e-3 * scale)


def test_summary_and_speeds() -> None:
    report = balance(cylinders=4, spacing=0.09)
    np.testing.assert_allclose(report.force_at(10.0), 100 * report.force)
    np.testing.assert_allclose(report.moment_at(10.0), 100 * report.moment)
    value = 4 * OSCILLATING * RADIUS * SECOND * 1e4  # (100 rad/s)²
    assert float(report.summary(100.0).splitlines()[2].split()[1]) == pytest.approx(value, rel=1e-4)


def test_invalid_arguments() -> None:
    with pytest.raises(InputError, match="centre of mass"):
        engine_balance(EngineDesign(), rigid_rod(ROD, 0.3, centre=-0.01))
    with pytest.raises(InputError, match="pin_mass"):
        engine_balance(EngineDesign(), a_rod(), pin_mass=-1.0)
    with pytest.raises(InputError, match="unbalance"):
        engine_balance(EngineDesign(), a_rod(), unbalance=[1.0])
