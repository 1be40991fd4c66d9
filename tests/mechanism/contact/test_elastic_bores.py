"""A pin in an elastic bore: derivatives, energy, balance, pattern of the pressure, equilibrium."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.contact.elastic_bores import ElasticContact
from tests.mechanism.bearings.test_elastic_bearing import (
    CLEARANCE,
    LENGTH,
    RADIUS,
    elastic_body,
    moved,
    pair,
)

LAW = mbd.ContactLaw(2e8, 1.5, damping=20.0)
ENDS = ("ring", "bore"), ("journal", "pin")
PATTERNS = 15  # number of patterns of the radial displacement w of the bore


def contact(law: mbd.ContactLaw = LAW, slices: int = 3) -> ElasticContact:
    """Return the contact of a pin in an elastic bore."""
    bore = elastic_body().bore("bore")
    sizes = {"clearance": 0.3 * CLEARANCE, "radius": 0.0, "slices": slices}
    result = mbd.mechanism.bore_contact("pin", *ENDS, law=law, bore=bore, **sizes)
    assert isinstance(result, ElasticContact)
    return result


def surface_motion(seed: int) -> np.ndarray:
    """Return random coefficients of the patterns of w, m, and their rates, m/s."""
    rng = np.random.default_rng(seed)
    return np.array([rng.normal(size=PATTERNS) * 1e-6, rng.normal(size=PATTERNS) * 1e-3])


def test_derivatives() -> None:
    """Derivatives by frames, by the coefficients of w and by all rates agree with differences."""
    element, at, s = contact(), pair(np.random.default_rng(3)), surface_motion(4)
    assert (element.states(at, s)[:, 2] > 0).all()  # columns: gap, its rate, force
    m = PATTERNS
    scale = np.abs(element.wrenches(at, s)).max()
    lengths = np.concatenate([np.tile([1e-9] * 3 + [1e-6] * 3, 2), np.full(m, 1e-9)])
    speeds = np.concatenate([np.tile([1e-5] * 3 + [1e-2] * 3, 2), np.full(m, 1e-6)])
    for number, (matrix, steps) in enumerate(
        zip(element.derivatives(at, s), (lengths, speeds), strict=True)
    ):
        for k, h in enumerate(steps):
            values = []
            for sign in (1, -1):
                unit = np.zeros(12 + m)
                unit[k] = sign * h
                change, t = [np.zeros(12), np.zeros(12)], s.copy()
                change[number] = unit[:12]
                t[number] += unit[12:]
                values.append(element.wrenches(moved(at, *change), t))
            difference = 0.5 * (values[0] - values[1])
            error = np.abs(matrix[:, k] * h - difference).max()
            assert error < 1e-6 * np.abs(difference).max() + 1e-10 * scale, (number, k)


def test_energy_gap_rates_and_balance() -> None:
    """Without damping, the power is the loss of stored energy; no moment turns the pin."""
    element, at, s = contact(mbd.ContactLaw(2e8)), pair(np.random.default_rng(5)), surface_motion(6)
    spin = at.Q1[:, 2] * 300.0  # the moments neglect squares of the slope of the pin
    at = at._replace(Q2=at.Q1, u2=np.concatenate([at.u2[:3], at.u1[3:] + spin]))
    at = at._replace(p1=np.zeros(3), p2=at.p2 - at.p1)
    dt, W = 1e-8, element.wrenches(at, s)
    states = []
    for sign in (1, -1):
        step = sign * dt * np.concatenate([at.u1, at.u2])
        surface = np.array([s[0] + sign * dt * s[1], s[1]])
        now = moved(at, step, np.zeros(12)), surface
        states.append((element.energy(*now), element.states(*now)[:, 0]))  # energy and gaps
    energy_rate, gap_rates = ((end - start) / (2 * dt) for end, start in zip(*states, strict=True))
    assert W @ np.concatenate([at.u1, at.u2, s[1]]) == pytest.approx(-energy_rate, rel=1e-6)
    assert element.states(at, s)[:, 1] == pytest.approx(gap_rates, rel=1e-6)
    assert W[:3] == pytest.approx(-W[6:9])
    moments = W[3:6] + W[9:12] + np.cross(at.p2 - at.p1, W[6:9])
    assert np.abs(moments).max() < 1e-9 * np.abs(W[:3]).max() * LENGTH
    assert abs(W[9:12] @ at.Q2[:, 2]) < 1e-9 * np.abs(W[:3]).max() * CLEARANCE


def test_forces_on_the_surface_are_those_of_a_cosine_pressure() -> None:
    """The forces are ∫ p φ dA with p ∝ cos(3δ/2) over 120°."""
    element, phi = contact(slices=1), 0.7
    e = np.array([np.cos(phi), np.sin(phi), 0.0]) * CLEARANCE
    still = np.zeros(3), np.eye(3), np.zeros(6)
    motion = mbd.mechanism.force_elements.FramePair(*still, e, *still[1:])
    W = element.wrenches(motion, np.zeros((2, PATTERNS)))  # 12 of both frames, then those on w
    theta = np.arange(720) * np.pi / 360
    delta = np.remainder(theta - phi + np.pi, 2 * np.pi) - np.pi  # angle from the contact
    p = np.where(np.abs(delta) < np.pi / 3, np.cos(1.5 * delta), 0.0)
    x, weights = np.polynomial.legendre.leggauss(4)
    around, along = element.bore.patterns(theta, 0.5 * LENGTH * x)
    forces = np.einsum("ta,t,zl,z->al", around, p, along, weights).ravel()
    resultant = 2.0 * (p * np.cos(delta)).sum()
    force = LAW.force(0.7 * CLEARANCE, 0.0)
    assert W[:2] == pytest.approx(force * e[:2] / CLEARANCE)
    assert W[12:] == pytest.approx(forces * force / resultant, abs=1e-4 * force)


def test_a_loaded_pin_opens_its_bore() -> None:
    """At rest, the pin moves by clearance, penetration and deformation of the bore."""
    body, load, c = elastic_body(), 3000.0, 5e-6
    law = mbd.ContactLaw(1e9, 1.0, damping=50.0)
    ring = mbd.FlexibleBody("ring", body, damping_ratio=0.3)
    ground = mbd.Ground({"centre": mbd.Frame()})
    frames = {"pin": mbd.Frame(), "end": mbd.Frame()}
    pin = mbd.RigidBody("pin", 0.5, [1.0] * 3, frames=frames)
    play = mbd.Clearance(c, law, bore=body.bore("bore"))
    joints = [
        mbd.fixed("held", ground.frame("centre"), ring.frame("bore")),
        mbd.revolute("joint", ring.frame("bore"), pin.frame("pin"), play),
    ]
    push = mbd.force("load", pin.frame("end"), (load, 0, 0))
    system = mbd.System([ground, ring, pin], joints, loads=[push])
    element = next(item for item in system.loads if isinstance(item, ElasticContact))
    state = mbd.equilibrium(system)
    run = mbd.simulate(system, t_end=1e-4, dt=1e-5, start=state)
    eta, history = run.body("ring").eta[-1], run.element("joint contact")
    e = history.displacement[-1]
    assert np.ptp(history.displacement, axis=0).max() < 1e-6 * c
    assert history.normal_force[-1] == pytest.approx([load])
    # parts[5][0]: derivatives of the mean deformation of the bore by the coefficients of w
    parts = element._slices(np.array([e[0], e[1], *np.zeros(8)]), np.zeros((2, 15)))
    static = np.linalg.solve(body.stiffness, element.surface.T @ parts[5][0] * load)
    np.testing.assert_allclose(eta, static, atol=1e-6 * np.abs(static).max())
    opening = float(parts[5][0] @ element.surface @ static)
    assert opening > 1e-6
    assert np.hypot(*e[:2]) == pytest.approx(c + load / law.stiffness + opening, rel=1e-6)


def test_invalid_arguments() -> None:
    bore = elastic_body().bore("bore")
    with pytest.raises(InputError, match="friction of the law"):
        contact(mbd.ContactLaw(1e8, friction=0.1))
    with pytest.raises(InputError, match="bore must be Bore"):
        mbd.mechanism.bore_contact("pin", *ENDS, clearance=1e-5, radius=RADIUS, law=LAW, bore=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="spherical joint has no bore"):
        mbd.spherical("pin", *ENDS, mbd.Clearance(1e-5, LAW, bore=bore))
