"""The two-beam engine: its element matrices, modes, loads, quasi-static and limiting cases."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import create_interval
from mpi4py import MPI
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from demos.papers.models.two_beam_engine import PlanarBeam, TwoBeamEngine, undamped_response
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.beams.statics import beam_modes

Array = NDArray[np.float64]

# Length (m), area (m²), second moment (m⁴), Young's modulus (Pa), density (kg/m³)
ROD = PlanarBeam(0.137, 2.02e-4, 1.3e-8, 71.7e9, 5528.0)
CRANK = PlanarBeam(0.040, 1.01e-3, 8.5e-8, 2.1e11, 7850.0)
ENGINE = TwoBeamEngine(CRANK, ROD, 0.214, 628.318)  # mass of the piston, kg; speed, rad/s
W = np.array([[-3.0, -2.0], [2.0, -3.0]]) * 1e4  # the acceleration along a beam is a + W x
ANGLES = np.deg2rad([0.0, 33.0, 90.0, 180.0, 250.0])

PLANAR = [0, 1, 5, 6, 7, 11]
"""(u₁, v₁, θ₁, u₂, v₂, θ₂) among the six components of both nodes."""


def polynomials(h: float) -> list[tuple[Polynomial, Polynomial]]:
    """Return u and v of each coordinate as polynomials of x, eq. (44) of the paper."""
    x, zero = Polynomial([0, 1]), Polynomial([0])
    return [
        (1 - x / h, zero),
        (zero, 1 - 3 * (x / h) ** 2 + 2 * (x / h) ** 3),
        (zero, x - 2 * x**2 / h + x**3 / h**2),
        (x / h, zero),
        (zero, 3 * (x / h) ** 2 - 2 * (x / h) ** 3),
        (zero, x**3 / h**2 - x**2 / h),
    ]


def integral(p: Polynomial, h: float) -> float:
    """Return the integral of a polynomial from 0 to h."""
    return float(p.integ()(h))


def relative(values: Array, expected: Array) -> float:
    """Return the largest difference relative to the largest expected value."""
    return float(np.abs(values - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("rotary", [False, True])
def test_element_matrices_are_the_integrals(rotary: bool) -> None:
    beam = dataclasses.replace(ROD, rotary=rotary)
    h, N = beam.length, polynomials(beam.length)
    E, A, inertia, rho = beam.young, beam.area, beam.second_moment, beam.density
    K, G = np.zeros((2, 6, 6))
    f = np.zeros(6)
    a = np.array([1.0, -2.0]) * 1e4
    x = Polynomial([0, 1])
    for i, (u, v) in enumerate(N):
        f[i] = -rho * A * integral(u * (a[0] + W[0, 0] * x) + v * (a[1] + W[1, 0] * x), h)
        f[i] += rotary * rho * inertia * W[0, 1] * integral(v.deriv(), h)
        for j, (du, dv) in enumerate(N):
            K[i, j] = E * A * integral(u.deriv() * du.deriv(), h)
            K[i, j] += E * inertia * integral(v.deriv(2) * dv.deriv(2), h)
            terms = ((u, 0, du, 0), (u, 0, dv, 1), (v, 1, du, 0), (v, 1, dv, 1))
            G[i, j] = rho * A * sum(integral(p * q, h) * W[r, s] for p, r, q, s in terms)
            G[i, j] += rotary * rho * inertia * W[0, 0] * integral(v.deriv() * dv.deriv(), h)
    assert relative(beam.stiffness(), K) < 1e-13
    assert relative(beam.weighted_mass(W), G) < 1e-13
    assert relative(beam.load(a, W), f) < 1e-13
    points = np.linspace(0, h, 5)
    shapes = np.array([[[u(p), v(p)] for u, v in N] for p in points])
    assert np.abs(beam.shapes(points).transpose(0, 2, 1) - shapes).max() < 1e-14


def test_element_matrices_are_those_of_the_beam_forms() -> None:
    """The reference is one cell with the UFL forms of `BeamModel`, which have rotary inertia."""
    beam = dataclasses.replace(ROD, rotary=True)
    omega, alpha, a = 250.0, 8e4, np.array([1.0, -2.0]) * 1e4
    material = Material(beam.young, 0.3, beam.density)
    section = Section(beam.area, beam.second_moment, beam.second_moment, beam.second_moment)
    mesh = create_interval(MPI.COMM_SELF, 1, [0.0, beam.length])
    model = BeamModel(mesh, section, material)
    forms, V = model.beam, model.space
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    nodes = np.argsort(V.tabulate_dof_coordinates()[:, 0])
    dofs = (6 * nodes[:, None] + np.arange(6)).ravel()[PLANAR]
    spin, spin_rate = ufl.as_vector([0, 0, omega]), ufl.as_vector([0, 0, alpha])

    def matrix(form: ufl.Form) -> Array:
        return fem.assemble_matrix(fem.form(form)).to_dense()[np.ix_(dofs, dofs)]

    def vector(form: ufl.Form) -> Array:
        return fem.assemble_vector(fem.form(form)).array[dofs]

    dynamic = forms.centrifugal_stiffness(u, v, spin) + forms.euler_stiffness(u, v, spin_rate)
    load = forms.translational_load(v, ufl.as_vector([*a, 0.0]))
    load += forms.euler_load(v, spin_rate) + forms.centrifugal_load(v, spin)
    acceleration_gradient = np.array([[-(omega**2), -alpha], [alpha, -(omega**2)]])  # α̃ + ω̃ω̃
    assert relative(beam.stiffness(), matrix(forms.elastic_stiffness(u, v))) < 1e-12
    assert relative(beam.mass(), matrix(forms.mass(u, v))) < 1e-12
    assert relative(beam.dynamic_stiffness(omega, alpha), matrix(dynamic)) < 1e-12
    assert relative(beam.load(a, acceleration_gradient), vector(load)) < 1e-12


def refined(engine: TwoBeamEngine, angle: float, parts: int) -> tuple[Array, Array]:
    """Return the mass and static stiffness of the frame with several elements in crank and rod."""
    count = 2 * parts + 1
    K, M = np.zeros((2, 3 * count, 3 * count))
    for k in range(2 * parts):
        member = (engine.crank, engine.rod)[k // parts]
        beam = dataclasses.replace(member, length=member.length / parts)
        inclination = engine.angles(angle)[k // parts]
        c, s = np.cos(inclination), np.sin(inclination)
        T = np.kron(np.eye(2), np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]))
        dofs = slice(3 * k, 3 * k + 6)
        K[dofs, dofs] += T.T @ beam.stiffness() @ T
        M[dofs, dofs] += T.T @ beam.mass() @ T
    M[[-3, -2], [-3, -2]] += engine.piston_mass
    free = np.delete(np.arange(3 * count), [0, 1, 3 * count - 2])
    return M[np.ix_(free, free)], K[np.ix_(free, free)]


def frequencies(M: Array, K: Array) -> Array:
    """Return the natural frequencies of the matrices M and K, Hz."""
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)) / (2 * np.pi)


@pytest.mark.parametrize("angle", ANGLES)
def test_frame_is_the_coarsest_of_refined_ones(angle: float) -> None:
    """The matrices agree for one element per member, and more elements lower the frequencies."""
    mass, static, _ = ENGINE.matrices(angle)
    M, K = refined(ENGINE, angle, 1)
    assert relative(mass, M) < 1e-13 and relative(static, K) < 1e-13
    previous = ENGINE.modes(angle, dynamic=False).frequencies
    assert relative(previous, frequencies(M, K)) < 1e-9
    for parts in (2, 4, 8):
        finer = frequencies(*refined(ENGINE, angle, parts))[:6]
        assert (finer <= previous * (1 + 1e-9)).all()
        previous = finer


def test_straight_frame_is_a_beam_on_two_supports() -> None:
    """At top dead centre without piston, the first frequency is π²√(EI/ρA)/L²."""
    engine = TwoBeamEngine(dataclasses.replace(ROD, length=0.040), ROD, 0.0, 0.0)
    L = 0.177
    exact = np.pi / 2 * np.sqrt(ROD.young * ROD.second_moment / ROD.mass_per_length) / L**2
    error = engine.modes(0.0).frequencies[0] / exact - 1
    assert 0 < error < np.sqrt(120) / np.pi**2 - 1  # the error of a single element
    fine = frequencies(*refined(engine, 0.0, 8))
    assert abs(fine[0] / exact - 1) < 1e-5
    slim = dataclasses.replace(ROD, second_moment=1e-6 * ROD.second_moment)  # no rotary inertia
    section = Section(slim.area, 4 * slim.second_moment, slim.second_moment, slim.second_moment)
    mesh = create_interval(MPI.COMM_WORLD, 32, [0.0, L])
    held = {0.0: ["ux", "uy", "uz", "rx"], L: ["uy", "uz"]}
    model = BeamModel(mesh, section, Material(slim.young, 0.3, slim.density))
    modes = beam_modes(model, 1, held=held)
    assert abs(modes.frequencies[0] / (1e-3 * exact) - 1) < 1e-5


@pytest.mark.parametrize("angle", ANGLES)
def test_a_force_on_the_piston_bends_the_welded_frame(angle: float) -> None:
    """By the unit load theorem: the moment grows to F y at the pin and falls along the rod."""
    engine = dataclasses.replace(ENGINE, speed=0.0, gravity=(0.0, 0.0))
    force = 1e4
    Q = engine.quasi_static(angle, force)[0]
    crank_angle, rod_angle = engine.angles(angle)
    y = CRANK.length * np.sin(crank_angle)
    compliance = 0.0
    for beam, inclination in ((CRANK, crank_angle), (ROD, rod_angle)):
        compliance += y**2 * beam.length / (3 * beam.young * beam.second_moment)
        compliance += np.cos(inclination) ** 2 * beam.length / (beam.young * beam.area)
    assert Q[6] == pytest.approx(-force * compliance, rel=1e-10)
    assert not Q[[0, 1, 7]].any()


def test_a_pin_takes_the_bending_away() -> None:
    """The rod is a bar between two pins, the crank a cantilever under its force."""
    engine = dataclasses.replace(ENGINE, speed=0.0, gravity=(0.0, 0.0), pinned=True)
    angle, force = np.deg2rad(50.0), 1e4
    Q = engine.quasi_static(angle, force)[0]
    crank_angle, rod_angle = engine.angles(angle)
    N = force / np.cos(rod_angle)  # compression of the rod
    # Components of Q: 3 and 4 the pin, 5 the rotation of the crank there, 6 the piston along X, 8
    # and 9 the rotations of the rod at the piston and at the pin.
    across, along = N * np.sin(crank_angle - rod_angle), N * np.cos(crank_angle - rod_angle)
    c, s = np.cos(crank_angle), np.sin(crank_angle)
    deflection = across * CRANK.length**3 / (3 * CRANK.young * CRANK.second_moment)
    shortening = along * CRANK.length / (CRANK.young * CRANK.area)
    pin = deflection * np.array([-s, c]) - shortening * np.array([c, s])
    assert Q[3:5] == pytest.approx(pin, rel=1e-9)
    rod = np.array([np.cos(rod_angle), np.sin(rod_angle)])
    rod_shortening = N * ROD.length / (ROD.young * ROD.area)
    assert Q[6] == pytest.approx((rod @ pin - rod_shortening) / rod[0], rel=1e-9)
    rotation = (rod[0] * (0 - pin[1]) - rod[1] * (Q[6] - pin[0])) / ROD.length
    assert Q[[8, 9]] == pytest.approx([rotation, rotation], rel=1e-9)
    assert Q[5] == pytest.approx(3 * deflection / (2 * CRANK.length), rel=1e-9)
    displaced = engine.rod_displacement(angle, Q[None], [0.0, ROD.length / 2, ROD.length])[0]
    assert displaced[1] == pytest.approx((displaced[0] + displaced[2]) / 2, rel=1e-9)


def test_inertia_loads_of_a_rigid_rotation() -> None:
    """The loads sum to −m a at the centres of mass; the paper uses accelerations of the ends."""
    angle, speed = 0.7, ENGINE.speed
    _, complete = ENGINE.load(angle, 0.0)
    motion = ENGINE.mechanism.motion(angle, speed)
    pin = -CRANK.length * speed**2 * np.array([np.cos(angle), np.sin(angle)])
    piston = float(motion.slider_acceleration)
    # along X, without the force at the shaft; the crank has ∫ρA x/l · a x/l
    crank_x = -CRANK.mass_per_length * CRANK.length * pin[0] / 3
    rod_x = -ROD.mass_per_length * ROD.length * (pin[0] + piston) / 2
    assert complete[[1, 4]].sum() == pytest.approx(crank_x + rod_x - 0.214 * piston, rel=1e-12)
    _, printed = ENGINE.load(angle, 0.0, complete=False)
    ends = -CRANK.mass_per_length * CRANK.length * pin[0] / 2
    ends -= ROD.mass_per_length * ROD.length * piston
    assert printed[[1, 4]].sum() == pytest.approx(ends, rel=1e-12)


def test_the_pinned_rod_bends_under_its_inertia() -> None:
    """With one cubic, the deflection at half length is −ρA a l⁴/96EI for an acceleration a.

    The bound is spin softening, (ω² + |α|) ρA l⁴/π⁴EI.
    """
    engine = dataclasses.replace(ENGINE, gravity=(0.0, 0.0), pinned=True)
    angles = np.linspace(0.1, 6.2, 9)
    motion = engine.mechanism.motion(angles, engine.speed)
    pin = -CRANK.length * engine.speed**2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    middle = 0.5 * (pin + np.stack([motion.slider_acceleration, 0 * angles], axis=1))
    c, s = np.cos(motion.rod_angle), np.sin(motion.rod_angle)
    flexibility = ROD.mass_per_length * ROD.length**4 / (ROD.young * ROD.second_moment)
    expected = -flexibility / 96 * (c * middle[:, 1] - s * middle[:, 0])
    Q = engine.quasi_static(angles, 0 * angles)
    u = engine.rod_displacement(angles, Q, [0.0, ROD.length / 2, ROD.length])
    chord = u[:, 1] - (u[:, 0] + u[:, 2]) / 2
    rates = motion.rod_velocity**2 + np.abs(motion.rod_acceleration)
    assert (
        np.abs(chord[:, 1] - expected).max()
        < (flexibility * rates / np.pi**4).max() * np.abs(expected).max()
    )
    assert np.abs(chord[:, 0]).max() < 1e-12


def test_modal_superposition_solves_the_frozen_equations() -> None:
    """The modes of an unsymmetric K solve M q̈ + K q = F."""
    angle = np.deg2rad(60.0)
    mass, static, dynamic = ENGINE.matrices(angle)
    K = static + dynamic
    modes = ENGINE.modes(angle)
    assert relative(modes.left.T @ mass @ modes.modes, np.eye(6)) < 1e-9
    assert np.abs(K - K.T).max() > 1e-9 * np.abs(K).max()
    time = np.linspace(0, 2e-4, 2001)
    load = np.outer(1 + np.sin(2e4 * time), np.arange(1.0, 7.0))
    Q = ENGINE.modal_superposition(angle, time, load)[:, ENGINE.free]
    assert relative(Q[0], np.linalg.solve(K, load[0])) < 1e-8
    h = time[1]
    acceleration = (Q[2:] - 2 * Q[1:-1] + Q[:-2]) / h**2
    residual = acceleration @ mass.T + Q[1:-1] @ K.T - load[1:-1]
    fastest = 2 * np.pi * modes.frequencies[-1]
    # error of the second difference of the fastest mode
    bound = (fastest * h) ** 2 / 12 * np.abs(Q @ K.T).max(axis=0).max()
    assert np.abs(residual).max() < 2 * bound


def test_response_to_a_ramp_is_exact() -> None:
    """The solution of ä + ω²a = 1 + t from a(0) = 1/ω² at rest is exact."""
    w, t = np.array([3.0, 40.0]), np.linspace(0, 2, 7)
    a = undamped_response(w, t, np.outer(1 + t, [1.0, 1.0]))
    expected = (1 + t[:, None] - np.sin(t[:, None] * w) / w) / w**2
    assert np.abs(a - expected).max() < 1e-14


def test_invalid_arguments_are_errors() -> None:
    with pytest.raises(ValueError, match=r"^area must be"):
        dataclasses.replace(ROD, area=-1.0)
    with pytest.raises(ValueError, match="less than the rod length"):
        TwoBeamEngine(ROD, CRANK, 0.2, 1.0)
    with pytest.raises(ValueError, match=r"^piston_mass must be"):
        dataclasses.replace(ENGINE, piston_mass=-0.1)
    with pytest.raises(ValueError, match=r"^speed must be"):
        dataclasses.replace(ENGINE, speed=np.inf)
    with pytest.raises(ValueError, match="no six frequencies"):
        dataclasses.replace(ENGINE, speed=1e6).modes(0.5)
    with pytest.raises(ValueError, match=r"^load must be .*\(3, 6\); got .*\(2, 6\)"):
        ENGINE.modal_superposition(0.5, [0.0, 1e-5, 2e-5], np.zeros((2, 6)))
    with pytest.raises(ValueError, match="equally spaced"):
        undamped_response([1.0], [0.0, 1.0, 3.0], np.zeros((3, 1)))
    with pytest.raises(ValueError, match="omega must be positive"):
        undamped_response([0.0], [0.0, 1.0, 2.0], np.zeros((3, 1)))
