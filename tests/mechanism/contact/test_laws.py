"""Laws of contact: restitution, Hertz's constants and invalid arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError

RESTITUTION = {
    ("Lankarani-Nikravesh", 0.9): 0.913176678,
    ("Lankarani-Nikravesh", 0.7): 0.795972595,
    ("Lankarani-Nikravesh", 0.5): 0.725241114,
    ("Hunt-Crossley", 0.9): 0.909015741,
    ("Hunt-Crossley", 0.7): 0.767999789,
    ("Hunt-Crossley", 0.5): 0.662962200,
    ("Flores", 0.9): 0.893920693,
    ("Flores", 0.7): 0.683184200,
    ("Flores", 0.5): 0.470444779,
}
"""Coefficients of restitution that result from nominal coefficients, by model."""


@pytest.mark.parametrize(("case", "expected"), RESTITUTION.items(), ids=str)
def test_restitution_of_each_model(case: tuple, expected: float) -> None:
    model, nominal = case
    for speed in (0.01, 3.0):
        law = mbd.ContactLaw(1e6, damping=mbd.mechanism.contact_damping(nominal, speed, model))
        assert law.restitution(speed) == pytest.approx(expected, abs=2e-9)


def test_restitution_at_small_and_large_speeds() -> None:
    law = mbd.ContactLaw(1.0, damping=1.0)
    assert mbd.ContactLaw(1.0).restitution(1.0) == 1.0
    for beta in (9.9e-5, 1.01e-4):  # both sides of the change to the series
        assert law.restitution(beta) == pytest.approx(1 - 2 * beta / 3, abs=1e-8)
    e = law.restitution(10.0)
    # The energy balance of an impact with damping · speed = 10
    assert 10 - math.log(11) == pytest.approx(-10 * e - math.log(1 - 10 * e), rel=1e-6)


def test_force_slopes_and_energy_agree() -> None:
    law, h = mbd.ContactLaw(2.0, 1.7, 0.4), 1e-6
    by_depth, by_rate = law.slopes(0.3, -0.5)
    assert by_depth == pytest.approx((law.force(0.3 + h, -0.5) - law.force(0.3 - h, -0.5)) / 2 / h)
    assert by_rate == pytest.approx((law.force(0.3, -0.5 + h) - law.force(0.3, -0.5 - h)) / 2 / h)
    slope = (law.energy(0.3 + h) - law.energy(0.3 - h)) / 2 / h
    assert law.force(0.3, 0.0) == pytest.approx(slope)
    assert law.force(0.3, -10.0) == law.force(-0.1, 5.0) == 0.0  # the contact never pulls
    assert law.slopes(0.3, -10.0) == (0.0, 0.0)


def test_constants_of_hertz() -> None:
    E = mbd.STEEL.young / (1 - mbd.STEEL.poisson**2) / 2
    K = mbd.mechanism.hertz_stiffness
    assert K(0.02, None, mbd.STEEL) == pytest.approx(4 / 3 * E * math.sqrt(0.02))
    assert K(0.02, 0.02, mbd.STEEL) == pytest.approx(4 / 3 * E * 0.1)
    assert K(-0.03, 0.02, mbd.STEEL) == pytest.approx(4 / 3 * E * math.sqrt(0.06))
    soft = mbd.Material(young=1e3, poisson=0.0, density=1.0)
    assert K(0.01, None, soft, mbd.STEEL) == pytest.approx(4 / 3 * 1e3 * 0.1, rel=1e-6)
    assert mbd.mechanism.line_stiffness(0.1, mbd.STEEL) == pytest.approx(np.pi / 4 * E * 0.1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mbd.ContactLaw(0.0), "stiffness of a contact must be a positive"),
        (lambda: mbd.ContactLaw(1.0, 0.5), "exponent of a contact must be .* at least 1"),
        (lambda: mbd.ContactLaw(1.0, damping=-1), "damping of a contact"),
        (lambda: mbd.ContactLaw(1.0, friction=-1), "friction of a contact"),
        (lambda: mbd.mechanism.contact_damping(0.0, 1.0), "restitution must be a positive"),
        (lambda: mbd.mechanism.contact_damping(0.5, 0.0), "speed must be a positive"),
        (
            lambda: mbd.mechanism.contact_damping(0.5, 1.0, "Kelvin"),
            "model must be one of 'Flores'",
        ),
        (
            lambda: mbd.mechanism.hertz_stiffness(0.0, 1.0, mbd.STEEL),
            "first_radius must be a radius",
        ),
        (
            lambda: mbd.mechanism.hertz_stiffness(-0.01, 0.02, mbd.STEEL),
            "a socket is larger than its ball",
        ),
        (
            lambda: mbd.mechanism.hertz_stiffness(0.1, 0.1, 210e9),
            "material must be an object with young",
        ),
    ],
)
def test_invalid_arguments(call, text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()
