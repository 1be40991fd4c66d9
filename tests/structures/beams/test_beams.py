"""Beams through the analyses of a body: statics, modes, reduction, joints; against closed forms.

Reference cases: V5 (spin-up), V7 (closed forms), V9 (Craig-Bampton) at the level of beams; V6 is in
`tests/forms/test_beams.py`.

V5, V6, V7 and V9 are cases of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx import mesh as dmesh
from mpi4py import MPI
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.linalg import eigh

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.mechanism import FlexibleBody, Frame, Ground, fixed
from dolfinx_mbd.mechanism.loads import force
from dolfinx_mbd.structures.beams.beam_reduction import BeamReduction, reduce_beam
from dolfinx_mbd.structures.beams.model import BeamModel
from dolfinx_mbd.structures.beams.problem import beam_problem
from dolfinx_mbd.structures.beams.statics import beam_forces, beam_modes, beam_statics, held_dofs
from tests.forms.test_beams import SKEW, UNEVEN, chain
from tests.models import spin_up
from tests.models.statics import solve_held
from tests.reduction.test_fast_rotation import (
    DT,
    LENGTH,
    STEEL,
    beam_run,
    deflection,
    off,
    pin_force,
    rod_run,
)
from tests.structures.beams.test_beam_reduction import DIGITS, EXACT, TABLE

Array = NDArray[np.float64]
WORLD, SELF = MPI.COMM_WORLD, MPI.COMM_SELF

FLAT = Section.rectangle(0.02, 0.03)


def line(cells: int, length: float = 1.0, comm: MPI.Comm = WORLD) -> dmesh.Mesh:
    """Return a mesh of equal intervals along x."""
    return dmesh.create_interval(comm, cells, [0.0, length])


def at_end(model: BeamModel, q: fem.Function) -> Array:
    """Return (u, θ) of the node at the end of the beam."""
    owned = q.x.array[: 6 * len(model.positions), None]
    return model.gather(owned)[-1, :, 0]


# ---- statics


def test_loads_at_the_end() -> None:
    """The nodes are exact for each component of a wrench at the end of a cantilever."""
    model, L = BeamModel(line(5, 1.3), FLAT, STEEL), 1.3
    E, G, s = STEEL.young, STEEL.shear, FLAT
    P = np.array([3.0, 1.0, 2.0, 0.4, 0.5, 0.6])
    u = at_end(model, beam_statics(model, held=[0.0], wrenches={L: P}))
    EIzz, EIyy = E * s.Izz, E * s.Iyy
    assert u == pytest.approx(
        [
            P[0] * L / (E * s.area),
            P[1] * L**3 / (3 * EIzz) + P[5] * L**2 / (2 * EIzz),
            P[2] * L**3 / (3 * EIyy) - P[4] * L**2 / (2 * EIyy),
            P[3] * L / (G * s.torsion),
            -P[2] * L**2 / (2 * EIyy) + P[4] * L / EIyy,
            P[1] * L**2 / (2 * EIzz) + P[5] * L / EIzz,
        ],
        rel=1e-9,
    )


def test_section_forces() -> None:
    """A force, a moment and a torque act at the end of a cantilever of cells in any direction."""
    model = BeamModel(chain(UNEVEN, WORLD), FLAT, STEEL)
    end = UNEVEN[-1]
    q = beam_statics(model, held=[UNEVEN[0]], wrenches={end: [7.0, 2.0, 3.0, 0.5, 0.3, 0.2]})
    x, f = beam_forces(model, q)
    assert np.allclose(x[:, 0], UNEVEN[:-1]) and np.allclose(x[:, 1], UNEVEN[1:])
    arm = end - x
    exact = np.stack(
        [7 + 0 * x, 2 + 0 * x, 3 + 0 * x, 0.5 + 0 * x, 0.3 - 3 * arm, 0.2 + 2 * arm], axis=-1
    )
    assert np.allclose(f, exact, rtol=0, atol=1e-7)


@pytest.mark.parametrize("held", [[0.0], {0.5: ["ux", "uy", "uz", "rx", "ry", "rz"]}])
def test_centrifugal_stretch(held: Any) -> None:
    """V7: u(L) = ρΩ²L³/3E clamped at one end, ρΩ²L³/24E about the centre."""
    model, spin = BeamModel(line(8), FLAT, STEEL), 40.0
    origin = (0.0, 0.0, 0.0) if isinstance(held, list) else (0.5, 0.0, 0.0)
    load = model.beam.centrifugal_load(ufl.TestFunction(model.space), (0, 0, spin), origin=origin)
    u = at_end(model, beam_statics(model, load, held=held))
    exact = STEEL.density * spin**2 / STEEL.young / (3 if isinstance(held, list) else 24)
    assert u[0] == pytest.approx(exact, rel=1e-10)


def test_angular_acceleration() -> None:
    """V7: w(L) = 11ρAαL⁵/120EI; the Euler load of the sections adds αρI x to the moment."""
    model, alpha, s = BeamModel(line(8), FLAT, STEEL), 30.0, FLAT
    load = model.beam.euler_load(ufl.TestFunction(model.space), (0.0, 0.0, -alpha))
    u = at_end(model, beam_statics(model, load, held=[0.0]))
    bending = STEEL.density * alpha / STEEL.young * (11 * s.area / (120 * s.Izz) + 1 / 3)
    assert u[1] == pytest.approx(bending, rel=1e-10)


def test_a_solid_bends_like_the_beam_and_shears() -> None:
    """A cantilever under its weight: qL⁴/8EI for the beam; the solid has qL²/2κGA more."""
    material, L, h, b, g = mbd.Material(2e11, 0.0, 7850.0), 1.0, 0.1, 0.08, 9.81
    box = dmesh.create_box(
        SELF, [[0, -h / 2, -b / 2], [L, h / 2, b / 2]], [10, 2, 1], dmesh.CellType.hexahedron
    )
    space = fem.functionspace(box, ("Lagrange", 2, (3,)))
    weight = fem.Constant(box, np.array([0.0, -material.density * g, 0.0]))
    u = solve_held(space, material, {0.0: None}, weight)
    x = space.tabulate_dof_coordinates()
    tip = int(np.argmin(np.linalg.norm(x - [L, 0, 0], axis=1)))
    section = Section.rectangle(h, b)
    model = BeamModel(line(4, L, SELF), section, material)
    load = model.beam.gravity_load(ufl.TestFunction(model.space), (0.0, -g, 0.0))
    w = at_end(model, beam_statics(model, load, held=[0.0]))[1]
    q = material.density * g * section.area
    assert w == pytest.approx(-q * L**4 / (8 * material.young * section.Izz), rel=1e-9)
    shear = -q * L**2 / (2 * 5 / 6 * material.shear * section.area)
    solid = u.x.array.reshape(-1, 3)[tip, 1]
    assert solid == pytest.approx(w + shear, rel=1e-3)
    assert abs(solid / w - 1) > 5e-3  # (shear, which the beam does not have)


@pytest.mark.parametrize(
    ("wrench", "held", "exact"),
    [
        ((0, 0, 0, 0, 1, 0), "pins", np.pi),
        ((0, 0, 1, 0, 0, 0), "clamp", 4.0126),
    ],
    ids=["moment", "force"],
)
def test_a_flat_beam_buckles_sideways(wrench: tuple, held: str, exact: float) -> None:
    """Prandtl's and Michell's critical moment π√(EI GJ)/L and end load 4.0126√(EI GJ)/L²."""
    # no deflection before buckling
    stiff = Section(FLAT.area, 1e3 * FLAT.Izz, FLAT.Izz, FLAT.torsion)
    model = BeamModel(line(16, comm=SELF), stiff, STEEL)
    pins: Any = {0.0: ["ux", "uy", "uz", "rx"], 1.0: ["uy", "uz", "rx"]}
    supports = pins if held == "pins" else [0.0]
    ends = {0.0: -np.array(wrench), 1.0: wrench} if held == "pins" else {1.0: wrench}
    q = beam_statics(model, held=supports, wrenches=ends)
    mu = _stability(model, q, supports)
    scale = np.sqrt(STEEL.young * stiff.Izz * STEEL.shear * stiff.torsion)
    assert 1 / mu[-1] == pytest.approx(exact * scale, rel=2e-3)
    assert mu[0] == pytest.approx(-mu[-1], rel=1e-9)  # to either side


def test_a_shaft_buckles_under_torque() -> None:
    """The critical torque of a shaft with clamped ends is 8.9868 EI/L (Greenhill)."""
    shaft = Section.circle(0.01)
    model = BeamModel(line(16, comm=SELF), shaft, STEEL)
    q = beam_statics(model, held=[0.0], wrenches={1.0: (0, 0, 0, 1, 0, 0)})
    ends: Any = {0.0: ["ux", "uy", "uz", "rx", "ry", "rz"], 1.0: ["uy", "uz", "ry", "rz"]}
    mu = _stability(model, q, ends)
    assert 1 / mu[-1] == pytest.approx(8.9868 * STEEL.young * shaft.Izz, rel=1e-3)


def _stability(model: BeamModel, q: fem.Function, held: Any) -> Array:
    """Return μ of −K_σ ψ = μ K ψ, the inverses of the critical load factors."""
    (K, Kg), free = _held_matrices(model, q, held)
    grid = np.ix_(free, free)
    return eigh(-Kg[grid], K[grid], eigvals_only=True)


def _held_matrices(model: BeamModel, q: fem.Function, held: Any) -> tuple[list[Array], Array]:
    """Return K, K_σ of the stress of q, and the free degrees of freedom, on one rank."""
    u, v = ufl.TrialFunction(model.space), ufl.TestFunction(model.space)
    stiffness = model.beam.elastic_stiffness(u, v)
    geometric = model.beam.initial_stress_stiffness(u, v, q)
    both = [fem.assemble_matrix(fem.form(f)).to_dense() for f in (stiffness, geometric)]
    return both, np.setdiff1d(np.arange(len(both[0])), held_dofs(model, held))


# ---- natural modes


@pytest.mark.slow
def test_slender_beams() -> None:
    """βL of free and clamped Euler-Bernoulli beams in both planes, for any cells and axes.

    The discretization error is at most (βh)⁴/1440, from above; rotary inertia contributes 4e-5.
    Round-off adds ε(ω_max/ω)²/2: the fastest axial vibration of an element, √12 √(E/ρ)/h, is 1e5
    times as fast as the first bending mode.
    """
    thin = Section.rectangle(1e-3, 2e-3)
    fastest = np.sqrt(12 * STEEL.young / STEEL.density) / 0.03 / (2 * np.pi)
    c = np.sqrt(STEEL.young * thin.Izz / (STEEL.density * thin.area)) / (2 * np.pi)
    clamped = np.array([1.875104, 4.694091, 7.854757]) ** 2
    uneven = np.cumsum([0.0, *np.tile([0.03, 0.08, 0.06, 0.08], 4)])
    for mesh, axes, start in (
        (line(16), None, 0.0),
        (chain(uneven, WORLD), None, 0.0),
        (chain(uneven, WORLD, SKEW[:, 0]), SKEW, np.array([0.1, -0.2, 0.3])),
    ):
        model = BeamModel(mesh, thin, STEEL, axes)
        for squares, held, rigid in ((EXACT[:3], [], 6), (clamped, [start], 0)):
            planes = np.concatenate([squares, 2 * squares])  # twice as stiff in the other plane
            beta = np.sqrt(np.concatenate([squares, squares]))
            lowest = np.argsort(planes)[:4]
            modes = beam_modes(model, 4, held=held)
            assert modes.num_rigid == rigid
            error = modes.frequencies / (c * planes[lowest]) - 1
            rounding = np.finfo(float).eps * (fastest / modes.frequencies) ** 2 / 2
            assert (error < (0.08 * beta[lowest]) ** 4 / 1440 + rounding).all()
            assert (error > -6e-5).all()


def timoshenko(ratio: float, shear: float, terms: int = 24) -> Array:
    """Return (βL)² of the first bending modes of a free beam, by Ritz with Legendre polynomials.

    Args:
        ratio: Radius of gyration over the length, for the rotary inertia.
        shear: E/κG; zero means rigid in shear.
        terms: Number of polynomials.
    """
    x, w = legendre.leggauss(60)
    w = w / 2
    # P, D, DD: polynomials over the length, and their derivatives
    P = np.array([legendre.legval(x, e) for e in np.eye(terms)])
    D = np.array([2 * legendre.legval(x, legendre.legder(e)) for e in np.eye(terms)])
    DD = np.array([4 * legendre.legval(x, legendre.legder(e, 2)) for e in np.eye(terms)])
    if not shear:
        K, M = (DD * w) @ DD.T, (P * w) @ P.T + ratio**2 * (D * w) @ D.T
    else:
        zero = 0 * P
        gamma, turn = np.vstack([D, -P]), np.vstack([zero, P])
        bend, move = np.vstack([zero, D]), np.vstack([P, zero])
        K = (bend * w) @ bend.T + (gamma * w) @ gamma.T / (shear * ratio**2)
        M = (move * w) @ move.T + ratio**2 * (turn * w) @ turn.T
    return np.sqrt(np.abs(eigh(K, M, eigvals_only=True)[2:6]))


def test_a_stubby_solid_has_the_rotary_inertia_and_shears() -> None:
    """The beam is Rayleigh's to 1e-4; the solid is Timoshenko's: the difference is the shear."""
    L, h, b = 0.2, 0.02, 0.012
    section = Section.rectangle(h, b)
    r = np.sqrt(section.Izz / section.area) / L
    scale = np.sqrt(STEEL.young * section.Izz / STEEL.density / section.area) / (2 * np.pi * L**2)
    model = BeamModel(line(24, L, SELF), section, STEEL)
    modes = beam_modes(model, 10)
    in_plane = [
        f
        for f, mode in zip(modes.frequencies, modes.modes, strict=True)
        if np.abs(mode.x.array.reshape(-1, 6)[:, 1]).max() > 0.1
    ]
    rayleigh = scale * timoshenko(r, 0.0)[:2]
    assert in_plane[:2] == pytest.approx(rayleigh, rel=1e-4)
    assert (1 - rayleigh / (scale * EXACT[:2]) > [0.015, 0.04]).all()  # the rotary inertia

    box = dmesh.create_box(
        SELF, [[0, -h / 2, -b / 2], [L, h / 2, b / 2]], [12, 2, 1], dmesh.CellType.hexahedron
    )
    solid = mbd.modal_analysis(box, STEEL, num_modes=8).frequencies
    kappa = 10 * (1 + STEEL.poisson) / (12 + 11 * STEEL.poisson)
    shearing = scale * timoshenko(r, STEEL.young / (kappa * STEEL.shear))[:2]
    nearest = solid[np.argmin(np.abs(solid[:, None] - shearing), axis=0)]
    assert nearest == pytest.approx(shearing, rel=3e-3)
    assert (1 - nearest / rayleigh > [0.01, 0.04]).all()  # the shear


def test_axial_and_torsional_modes() -> None:
    """Free bar: n/2L √(E/ρ) and n/2L √(G/ρ), with the error (nπh)²/24 of linear elements."""
    round_ = Section.circle(0.05)
    model = BeamModel(line(32), round_, STEEL)
    frequencies = beam_modes(model, 14).frequencies
    for modulus in (STEEL.young, STEEL.shear):
        exact = 0.5 * np.sqrt(modulus / STEEL.density)
        nearest = frequencies[np.argmin(np.abs(frequencies - exact))]
        assert nearest == pytest.approx(exact * (1 + (np.pi / 32) ** 2 / 24), rel=1e-5)


# ---- reduction


@pytest.mark.filterwarnings("ignore:implausible")
@pytest.mark.parametrize("num_modes", TABLE)
def test_craig_bampton_table(num_modes: int) -> None:
    """V9: both ends are interfaces; the large stiffness in the second plane separates its modes."""
    cells, moment = 100, 1e-10
    section = Section(1.0, 1e4 * moment, moment, 1e4 * moment)
    model = BeamModel(line(cells), section, mbd.Material(1 / moment, 0.3, 1.0))
    body = reduce_beam(
        model,
        interfaces={"left": 0.0, "right": 1.0},
        num_modes=num_modes,
        stiffening=False,
        options=mbd.ReductionOptions(skin=False),
    ).body
    table = np.array(TABLE[num_modes])
    error = 2 * np.pi * body.frequencies[: len(table)] / EXACT[: len(table)] - 1
    assert (error > 0).all()
    last_digit = 10.0 ** (np.floor(np.log10(table)) - 1)
    mesh = EXACT[: len(table)] ** 2 / cells**4 / 1440
    assert (np.abs(error - table) < 0.5 * last_digit + mesh + DIGITS).all()


def test_all_modes_kept_is_the_full_model() -> None:
    model = BeamModel(chain(UNEVEN, WORLD), FLAT, STEEL)
    free = 6 * len(UNEVEN) - 12
    body = reduce_beam(model, interfaces={"a": UNEVEN[0], "b": UNEVEN[3]}, num_modes=free).body
    full = beam_modes(model, 12)
    assert body.num_modes == 6 * len(UNEVEN) - 6
    assert body.frequencies[:12] == pytest.approx(full.frequencies, rel=1e-8)
    assert reduce_beam(model, interfaces={}, num_modes=6).body.frequencies == pytest.approx(
        full.frequencies[:6], rel=1e-9
    )


def tapered(comm: MPI.Comm, skew: bool) -> BeamReduction:
    """Return the reduction of a tapered beam along x or in a skew direction."""
    mesh = chain(UNEVEN, comm, SKEW[:, 0] if skew else None)
    x = ufl.SpatialCoordinate(mesh)
    s = x[0]
    if skew:
        s = sum(
            float(e) * (x[i] - c)
            for i, (e, c) in enumerate(zip(SKEW[:, 0], [0.1, -0.2, 0.3], strict=True))
        )
    section = Section.rectangle(0.02 * (1 + 0.2 * s), 0.03 * (1 + 0.1 * s))
    shift = np.array([0.1, -0.2, 0.3]) if skew else np.zeros(3)
    axes = SKEW if skew else np.eye(3)
    place = lambda s: shift + axes[:, 0] * s  # noqa: E731
    return reduce_beam(
        BeamModel(mesh, section, STEEL, SKEW if skew else None),
        interfaces={"a": place(UNEVEN[0]), "b": place(UNEVEN[-1])},
        num_modes=6,
        points={"p": place(1.0) + axes[:, 1] * 0.01},
    )


@pytest.mark.slow
def test_axes_and_ranks_do_not_matter() -> None:
    """A tapered beam gives the same body along x, in a skew direction, and on one rank."""
    straight, skew, alone = tapered(WORLD, False), tapered(WORLD, True), tapered(SELF, False)
    reference = straight.body
    for compared in (skew.body, alone.body):
        assert compared.total_mass == pytest.approx(reference.total_mass, rel=1e-12)
        assert compared.frequencies == pytest.approx(reference.frequencies, rel=1e-8)
        assert np.linalg.eigvalsh(compared.central_inertia) == pytest.approx(
            np.linalg.eigvalsh(reference.central_inertia), rel=1e-9
        )
        for k in range(2):  # interfaces: the compliance that joints see, in the beam's axes
            axes = SKEW if compared is skew.body else np.eye(3)
            i, j = reference.interfaces[k], compared.interfaces[k]
            T = np.kron(np.eye(2), axes)
            expected, compliance = (
                m @ np.linalg.solve(body.stiffness, m.T)
                for body, m in ((reference, i.motion), (compared, T.T @ j.motion))
            )
            assert np.allclose(expected, compliance, rtol=0, atol=1e-8 * np.abs(expected).max())
        assert reference.stiffening is not None and compared.stiffening is not None
        trace = [
            np.trace(np.linalg.solve(b.stiffness, b.stiffening.spin[:3].sum(axis=0)))
            for b in (reference, compared)
        ]
        assert trace[1] == pytest.approx(trace[0], rel=1e-8)
    assert np.array_equal(reference.skin.triangles, skew.body.skin.triangles)


def test_moments_are_those_of_the_rigid_body_and_of_the_points() -> None:
    """S and H equal Gauss integrals of the displacement over the volume."""
    L, b, h = 1.0, 0.2, 0.3
    model = BeamModel(line(3, L), Section.rectangle(b, h), STEEL)
    x, w = legendre.leggauss(7)
    stations = np.concatenate([(k + 0.5 + x / 2) * L / 3 for k in range(3)])
    weights = np.tile(w, 3) * L / 6
    y, v = legendre.leggauss(2)
    places = np.array([[s, b / 2 * p, h / 2 * q] for s in stations for p in y for q in y])
    mass = STEEL.density * b * h / 4 * np.array([c * d * e for c in weights for d in v for e in v])
    names = {f"{k}": place for k, place in enumerate(places)}
    body = reduce_beam(
        model,
        interfaces={"a": 0.0, "b": L},
        num_modes=3,
        points=names,
        options=mbd.ReductionOptions(skin=False),
    ).body
    psi = np.stack([places, *np.array([p.modes for p in body.points]).transpose(1, 0, 2)])
    assert body.total_mass == pytest.approx(mass.sum(), rel=1e-12)
    assert np.allclose(np.einsum("p,kpa->ka", mass, psi), body.first_moments, atol=1e-9)
    H = np.einsum("p,kpa,lpb->klab", mass, psi, psi)
    assert np.allclose(H, body.second_moments, atol=1e-9 * np.abs(H).max())
    assert np.allclose(body.mass, np.einsum("klaa->kl", H[1:, 1:]), atol=1e-9)


def test_effective_mass_keeps_the_modes_that_matter() -> None:
    model = BeamModel(line(12), FLAT, STEEL)
    interfaces = {"a": 0.0, "b": 1.0}
    full, few = (
        reduce_beam(
            model,
            interfaces=interfaces,
            num_modes=20,
            options=mbd.ReductionOptions(effective_mass=share),
        ).body
        for share in (None, 0.5)
    )
    assert 6 < few.num_modes < full.num_modes
    assert few.frequencies[:2] == pytest.approx(full.frequencies[:2], rel=5e-3)


def test_attached_and_raw() -> None:
    model = BeamModel(line(8), FLAT, STEEL)
    body = reduce_beam(model, interfaces={"a": 0.0, "b": 1.0}, attached_to="a").body
    assert np.abs(body.interface("a").motion).max() == 0.0
    held = beam_modes(model, 4, held=[0.0])
    assert body.frequencies[:4] == pytest.approx(held.frequencies, rel=1e-3)
    raw = reduce_beam(
        model,
        interfaces={"a": 0.0, "b": 1.0},
        attached_to="a",
        num_modes=0,
        options=mbd.ReductionOptions(orthonormalize=False),
    ).body
    assert raw.interface("b").motion == pytest.approx(np.eye(6), abs=1e-12)
    assert np.diag(raw.stiffness)[[0, 1, 3]] == pytest.approx(
        [STEEL.young * FLAT.area, 12 * STEEL.young * FLAT.Izz, STEEL.shear * FLAT.torsion], rel=1e-8
    )


def test_geometric_stiffness_is_that_of_a_solid() -> None:
    """Unit products ω_iω_j, a force and a torque are compared on the first four modes of a bar.

    Shear and the rigid end faces of the solid cause a difference of at most 0.6 %.
    """
    from tests.reduction.test_fast_rotation import bar

    side = 0.008
    model = BeamModel(line(24, LENGTH, SELF), Section.rectangle(side, side), STEEL)
    beam = reduce_beam(
        model,
        interfaces={"big_end": 0.0, "small_end": LENGTH},
        num_modes=12,
        options=mbd.ReductionOptions(skin=False),
    ).body
    solid = bar(side)
    assert beam.stiffening is not None and solid.stiffening is not None
    for matrix_of in (
        lambda s: s.spin[0],
        lambda s: s.spin[2],
        lambda s: s.spin[4],
        lambda s: s.interfaces[1, 0],
        lambda s: s.interfaces[1, 3],
    ):
        of_beam, of_solid = (
            eigh(matrix_of(b.stiffening)[:4, :4], b.stiffness[:4, :4], eigvals_only=True)
            for b in (beam, solid)
        )
        size = np.abs(of_solid).max()
        assert np.allclose(of_beam, of_solid, rtol=0, atol=0.008 * size)


def test_skin() -> None:
    """The surface is closed, has the volume of the beam, and moves with the sections."""
    body = reduce_beam(
        BeamModel(line(8), FLAT, STEEL), interfaces={"a": 0.0, "b": 1.0}, num_modes=4
    ).body
    skin = body.skin
    assert skin is not None
    corners = skin.points[skin.triangles]
    volume = np.einsum("ti,ti->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6
    assert volume == pytest.approx(FLAT.area, rel=1e-12)
    end = np.isclose(skin.points[:, 0], 1.0)
    i = body.interface("b")
    expected = i.motion[:3].T[:, None] + np.cross(
        i.motion[3:].T[:, None], (skin.points[end] - i.point)[None]
    )
    assert np.allclose(skin.modes[:, end], expected, atol=1e-9)


def test_written_motion_and_displacement(tmp_path_factory: pytest.TempPathFactory) -> None:
    reduction = reduce_beam(BeamModel(line(6), FLAT, STEEL), interfaces={"a": 0.0, "b": 1.0})
    n = reduction.body.num_modes
    eta = np.random.default_rng(0).normal(size=n)
    q = reduction.displacement(eta)
    end = at_end(reduction.model, q)
    assert end == pytest.approx(reduction.body.interface("b").motion @ eta, abs=1e-9)
    assert reduction.space is q.function_space
    with pytest.raises(InputError) as error:
        reduction.displacement(np.zeros(n + 1))
    assert error.value.argument == "eta"

    class Motion:
        time = np.array([0.0, 1.0])
        position = np.zeros((2, 3))
        rotation = np.tile([1.0, 0, 0, 0], (2, 1))

    Motion.eta = np.stack([0 * eta, eta])  # type: ignore[attr-defined]
    directory = WORLD.bcast(str(tmp_path_factory.mktemp("beam")) if WORLD.rank == 0 else None)
    reduction.write(f"{directory}/beam.bp", Motion())  # type: ignore[arg-type]


# ---- in mechanisms


@cache
def rod(side: float) -> BeamReduction:
    """Return the reduction of a square rod."""
    model = BeamModel(line(20, LENGTH, SELF), Section.rectangle(side, side), STEEL)
    return reduce_beam(
        model,
        interfaces={"big_end": 0.0, "small_end": LENGTH},
        num_modes=12,
        points={"middle": LENGTH / 2},
        name="rod",
    )


def test_rod_of_a_slider_crank() -> None:
    """A deflection of 1 % of the length agrees with that of a geometrically exact beam."""
    run, exact = rod_run(rod(0.005).body, dt=2 * DT), beam_run(0.005, 60, 2 * DT)
    w = exact.deflection()
    assert np.abs(w).max() > 0.009 * LENGTH
    peak, history = off(deflection(run), w)
    assert peak < 1e-3
    assert history < 4e-3
    assert off(pin_force(run), np.linalg.norm(exact.pin_force, axis=1))[1] < 5e-4


def test_spin_up() -> None:
    """V5: Kane's cantilever, 1 % of the geometrically exact deflection."""
    time, across = spin_up.tip_deflection(14.0, 2e-2)
    deflections = np.interp(list(spin_up.EXACT), time, across)
    assert deflections == pytest.approx(list(spin_up.EXACT.values()), abs=0.01 * 0.5738)
    assert across.min() == pytest.approx(-0.5738, rel=0.01)


@pytest.mark.parametrize("part", [0.0, 0.6, -0.6])
def test_bending_loads_soften_a_body_sideways(part: float) -> None:
    """A clamped flat body under a part of its critical end load gives way to a small side load.

    The result is that of the full-order geometric stiffness, except for the rotation caused by the
    end load itself: Izz/Iyy = 4e-4 of the load.
    """
    blade = Section.rectangle(0.004, 0.2)
    model = BeamModel(line(16, comm=SELF), blade, STEEL)
    critical = 4.0126 * np.sqrt(STEEL.young * blade.Izz * STEEL.shear * blade.torsion)
    load, side = part * critical, 5e-4 * critical
    body = reduce_beam(
        model,
        interfaces={"root": 0.0, "tip": 1.0},
        num_modes=24,
        options=mbd.ReductionOptions(skin=False),
    ).body
    ground, beam = Ground({"o": Frame()}), FlexibleBody("beam", body, damping_ratio=0.0)
    clamp = fixed("clamp", ground.frame("o"), beam.frame("root"))
    system = System([ground, beam], [clamp], loads=[force("p", beam.frame("tip"), (0, side, load))])
    run = simulate(system, t_end=1e-5, dt=1e-5)  # starts in equilibrium
    q = beam_statics(model, held=[0.0], wrenches={1.0: (0, 0, load, 0, 0, 0)})
    K, free = _held_matrices(model, q, [0.0])
    f = np.zeros(len(K[0]))
    _, tip = model.node(1.0)
    f[6 * tip[0] + 1] = side
    v = np.zeros(len(f))
    v[free] = np.linalg.solve((K[0] + K[1])[np.ix_(free, free)], f[free])
    assert run.sensor("beam", "tip")[0, 1] == pytest.approx(v[6 * tip[0] + 1], rel=1e-3)
    plain = side / (3 * STEEL.young * blade.Izz)
    assert v[6 * tip[0] + 1] > (1.4 if part else 0.999) * plain


# ---- what does not fit


def _bent() -> dmesh.Mesh:
    """Return a line with a corner."""
    import basix.ufl

    x = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0]])
    cells = np.array([[0, 1], [1, 2]])
    if WORLD.rank:
        x, cells = x[:0], cells[:0]
    element = basix.ufl.element("Lagrange", "interval", 1, shape=(3,))
    return dmesh.create_mesh(WORLD, cells=cells, e=element, x=x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BeamModel(dmesh.create_unit_square(WORLD, 2, 2), FLAT, STEEL), "intervals"),
        (lambda: BeamModel(_bent(), FLAT, STEEL), "not straight"),
        (lambda: BeamModel(chain(UNEVEN, WORLD, SKEW[:, 0]), FLAT, STEEL), "give the axes"),
        (lambda: BeamModel(line(4), 3.0, STEEL), "^section must be"),  # type: ignore[arg-type]
        (lambda: BeamModel(line(4), FLAT, "steel"), "^material must be"),  # type: ignore[arg-type]
        (lambda: _reduced({"a": 0.3}), "no node at 0.3; the nearest is at 0.25"),
        (lambda: _reduced({"a": (0.5, 0.1, 0.0)}), "no node"),
        (lambda: _reduced({"a": 0.0, "b": 0.0}), "same node"),
        (lambda: _reduced({"a": mbd.InterfaceSpec(kind="averaged")}), "rigid node"),
        (lambda: _reduced({"a": 0.0}, attached_to="b"), "must be one of 'a', None"),
        (lambda: _reduced({}, stiffening=True), "needs interfaces"),
        (lambda: _reduced({"a": 0.0}, num_modes=1000), "only 24 dofs"),
        (lambda: _reduced({"a": 0.0}, points={"p": 1.2}), "beyond the ends"),
        (lambda: beam_modes(BeamModel(line(4), FLAT, STEEL), held={0.0: ["x"]}), "^held must be"),
        (
            lambda: beam_statics(
                BeamModel(line(4), FLAT, STEEL), held=[0.0], wrenches={1.0: (1, 2, 3)}
            ),
            "^wrenches must be",
        ),
        (
            lambda: beam_statics(
                BeamModel(line(4), FLAT, STEEL), held={0.0: ["ux", "uy", "uz"], 1.0: ["uy", "uz"]}
            ),
            "1 rigid motions are free",
        ),
    ],
)
def test_refuses(make: Callable[[], Any], message: str) -> None:
    """Errors are the same on every rank."""
    with pytest.raises(ValueError, match=message):
        make()


def _reduced(interfaces: dict[str, Any], **options: Any) -> BeamReduction:
    """Return the reduction of a flat beam with interfaces."""
    return reduce_beam(BeamModel(line(4), FLAT, STEEL), interfaces=interfaces, **options)


def test_a_section_that_vanishes_is_refused() -> None:
    mesh = line(4)
    x = ufl.SpatialCoordinate(mesh)[0]
    with pytest.raises(ValueError, match="not positive everywhere"):
        beam_problem(BeamModel(mesh, Section(x - 0.5, 1e-8, 1e-8, 1e-8), STEEL))
