"""Laws that every force element, contact and oil film obeys, at random poses and velocities.

A new element needs one line in `CASES`, or in `JOINT_CASES` if it acts on a joint. hypothesis
chooses the motion, and simplifies it if an element violates a law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.bearings import Asperities, FiniteBearing, ShortBearing
from dolfinx_mbd.mechanism.bearings.film_bearing import FilmBearing
from dolfinx_mbd.mechanism.force_elements import FramePair, PairElement
from dolfinx_mbd.mechanism.loads import JointForce
from tests.mechanism.contact.test_contacts import CONTACTS

Array = np.ndarray
A, B = ("one", "a"), ("two", "b")


@dataclass(frozen=True)
class Case:
    """An element, and the relative poses at which it is tested.

    `place` is the relative position and `reach` the largest deviation, m; `turn` is the largest
    relative rotation, rad. `conservative` says that the wrenches at rest are the gradient of the
    energy. `accuracy` is the relative accuracy of the derivatives; those of laws that are Python
    functions are finite differences.
    """

    element: PairElement
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reach: float = 1.0
    turn: float = 1.0
    conservative: bool = True
    accuracy: float = 1e-9


def symmetric(seed: int) -> Array:
    """Return a random symmetric positive definite matrix."""
    factor = np.random.default_rng(seed).normal(size=(6, 6))
    return factor @ factor.T


def mixed(motion: mbd.mechanism.PairMotion) -> tuple[Array, Array]:
    """Return a force and a moment that depend on the whole motion."""
    _, d, R, v, w, _ = motion
    return -3.0 * d + d[0] * v + R[:, 1], np.cross(d, w) - motion.rotation_vector


TABLE = mbd.mechanism.BearingTable(
    speed=[-9.0, 9.0],
    stiffness=[k * symmetric(seed=3)[:3, :3] for k in (1, 3)],
    damping=[np.eye(3)] * 2,
)
NEUTRAL = (np.full(3, 0.2), exp_rotation(np.array([0.3, 0.1, -0.2])))
# numbers of teeth, module (m), stiffness (N/m)
WHEELS = mbd.mechanism.GearPair(
    "gears", A, B, (20, 31), 0.1, 1e4, damping=0.4, backlash=0.01, offset=0.3
)
# frames, radius (m), length (m), clearance (m), viscosity (Pa s)
FILM = A, B, 1.0, 0.4, 0.05, 2.0
ROUGH = Asperities(roughness=0.004, modulus=1e5, friction=0.1, sliding_speed=0.5)
FILMS: dict[str, FilmBearing] = {
    "short film": ShortBearing("e", *FILM, asperities=ROUGH),
    "finite film": FiniteBearing("e", *FILM, asperities=ROUGH, shape=(24, 6)),
}
CASES = {
    "spring": Case(mbd.SpringDamper("e", A, B, 3.0, 0.4, 0.3), (2, 0, 0)),
    "spring law": Case(
        mbd.SpringDamper("e", A, B, length=1.0, law=lambda s, w: s**3 - 1 + s * np.tanh(w)),
        (2, 0, 0),
        accuracy=1e-6,
    ),
    "bushing": Case(mbd.Bushing("e", A, B, symmetric(1), symmetric(2), NEUTRAL)),
    "bearing table": Case(
        mbd.mechanism.TabulatedBearing("e", A, B, TABLE, outside="nearest", neutral=(0.1, 0, 0)),
        conservative=False,
    ),
    "law": Case(mbd.PairLoad("e", A, B, mixed), conservative=False, accuracy=1e-6),
    # near the reference distance of the axes, 0.1 (20 + 31)/2 = 2.55
    "gears": Case(WHEELS, (2.552, 0.3, 0), reach=1e-2, turn=0.05),
    **{
        name: Case(contact, place, reach=0.02, turn=0.15)
        for name, (contact, place) in CONTACTS.items()
    },
    # The wrenches of a tilted film are those of its energy to first order in the tilt
    **{
        name: Case(film, reach=0.015, turn=0.02, conservative=False) for name, film in FILMS.items()
    },
    **{
        f"{name}, touching": Case(
            film, (0.02, -0.03, 0), reach=0.005, turn=0.02, conservative=False
        )
        for name, film in FILMS.items()
    },
}
STOP = mbd.ContactLaw(50.0, 1.5, 0.3)
JOINT_CASES: dict[str, JointForce] = {
    "spring": mbd.JointSpring("e", "hinge", 3.0, 0.4, 0.2),
    "spring law": mbd.JointSpring("e", "hinge", free=0.1, law=lambda s, w: s**3 + np.tanh(s * w)),
    "friction": mbd.mechanism.JointFriction("e", "hinge", 2.0, 0.3, static=3.0, viscous=0.4),
    "stop": mbd.mechanism.JointStop("e", "hinge", STOP, lower=-0.4, upper=0.3),
}

unit = st.floats(-1.0, 1.0, allow_subnormal=False)
vectors = st.tuples(unit, unit, unit).map(np.array)
motions = st.tuples(*[vectors] * 8)
few_examples = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much],
)


def pair_of(case: Case, motion: tuple[Array, ...]) -> FramePair:
    """Return poses and velocities of two frames for eight vectors with components from −1 to 1."""
    p1, theta, v1, w1, d, turn, v2, w2 = motion
    Q1 = exp_rotation(3.0 * theta)
    p2 = p1 + Q1 @ (np.array(case.place) + case.reach * d)
    Q2 = Q1 @ exp_rotation(case.turn * turn)
    return FramePair(p1, Q1, np.append(v1, w1), p2, Q2, np.append(v2, w2))


def moved(pair: FramePair, d: Array) -> FramePair:
    """Return the pair after increments (24,) of poses and velocities."""
    return FramePair(
        pair.p1 + d[:3],
        exp_rotation(d[3:6]) @ pair.Q1,
        pair.u1 + d[12:18],
        pair.p2 + d[6:9],
        exp_rotation(d[9:12]) @ pair.Q2,
        pair.u2 + d[18:],
    )


def slopes(function: Callable[[Array], Array], size: int, h: float = 1e-4) -> Array:
    """Return the derivatives at zero by differences of sixth order."""
    weights = {1: 0.75, 2: -0.15, 3: 1 / 60}
    columns = [
        sum(w * (function(k * h * e) - function(-k * h * e)) for k, w in weights.items()) / h
        for e in np.eye(size)
    ]
    return np.array(columns).T


@pytest.mark.parametrize("name", CASES)
@given(motion=motions)
@few_examples
def test_wrenches_balance(name: str, motion: tuple[Array, ...]) -> None:
    pair = pair_of(CASES[name], motion)
    w = CASES[name].element.wrenches(pair)
    size = np.abs(w).max()
    assert np.allclose(w[:3] + w[6:9], 0, atol=1e-12 * size)
    moments = w[3:6] + w[9:12] + np.cross(pair.p1, w[:3]) + np.cross(pair.p2, w[6:9])
    assert np.allclose(moments, 0, atol=1e-11 * size)


@pytest.mark.parametrize("name", CASES)
@given(motion=motions, rigid=st.tuples(*[vectors] * 4))
@few_examples
def test_wrenches_follow_a_rigid_motion(
    name: str, motion: tuple[Array, ...], rigid: tuple[Array, ...]
) -> None:
    """A motion of both bodies as one rigid body rotates the wrenches and changes nothing else."""
    case = CASES[name]
    pair, (theta, shift, speed, spin) = pair_of(case, motion), rigid
    Q = exp_rotation(3.0 * theta)

    def carried(p: Array, R: Array, u: Array) -> tuple[Array, Array, Array]:
        place = shift + Q @ p
        velocity = Q @ u[:3] + speed + np.cross(spin, place)
        return place, Q @ R, np.concatenate([velocity, Q @ u[3:] + spin])

    final = FramePair(*carried(pair.p1, pair.Q1, pair.u1), *carried(pair.p2, pair.Q2, pair.u2))
    expected = (case.element.wrenches(pair).reshape(4, 3) @ Q.T).ravel()
    # The round-off of positions, times the stiffness, adds to that of the wrenches.
    stiff = np.abs(case.element.derivatives(pair)[0]).max()
    atol = 1e-10 * np.abs(expected).max() + 1e-14 * stiff
    assert np.allclose(case.element.wrenches(final), expected, rtol=0, atol=atol)


def is_smooth(element: PairElement, pair: FramePair) -> bool:
    """Return whether the wrenches are smooth near a pair, so that differences are exact.

    Gaps of contacts must not change their signs in the steps of the differences. A film ruptures
    where it is not squeezed, so that its pressure has no derivative if its rates are zero; see
    `test_films_at_rest`.
    """
    if isinstance(element, FilmBearing):
        return bool(np.abs(element.pair_motion(pair)[4:9]).max() > 0.05)
    return bool((np.abs(element.contact_states(pair)[:, 0]) > 6e-3).all())


def full_nodes(element: PairElement) -> Array:
    """Return the nodes of a film that are not ruptured at the last pair; empty without a grid."""
    return element.grid.pressures[0] > 0 if isinstance(element, FiniteBearing) else np.zeros(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@given(motion=motions)
@few_examples
def test_derivatives_are_those_of_the_wrenches(name: str, motion: tuple[Array, ...]) -> None:
    case = CASES[name]
    pair = pair_of(case, motion)
    assume(is_smooth(case.element, pair))
    D, E = case.element.derivatives(pair)
    full = full_nodes(case.element)

    def wrenches(d: Array) -> Array:
        w = case.element.wrenches(moved(pair, d))
        # Where a node ruptures, its pressure has a kink
        assume(np.array_equal(full, full_nodes(case.element)))
        return w

    numerical = slopes(wrenches, 24)
    size = max(np.abs(D).max(), np.abs(E).max(), np.abs(case.element.wrenches(pair)).max())
    assert np.allclose(D, numerical[:, :12], rtol=0, atol=case.accuracy * size)
    assert np.allclose(E, numerical[:, 12:], rtol=0, atol=case.accuracy * size)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.conservative])
@given(motion=motions)
@few_examples
def test_wrenches_at_rest_are_the_gradient_of_the_energy(
    name: str, motion: tuple[Array, ...]
) -> None:
    case = CASES[name]
    pair = pair_of(case, motion)
    assume(is_smooth(case.element, pair))
    pair = pair._replace(u1=np.zeros(6), u2=np.zeros(6))
    gradient = slopes(
        lambda d: np.array(case.element.energy(moved(pair, np.append(d, np.zeros(12))))), 12
    )
    wrench = case.element.wrenches(pair)
    size = max(np.abs(wrench).max(), np.abs(case.element.derivatives(pair)[0]).max())
    assert np.allclose(wrench, -gradient, rtol=0, atol=1e-7 * size)


@pytest.mark.parametrize("name", FILMS)
@given(motion=motions)
@few_examples
def test_films_at_rest(name: str, motion: tuple[Array, ...]) -> None:
    """At rest the derivatives are the mean of those for opposite motions, for any past motion.

    For a film on a grid, this holds if the pressure is that of a full film where it is positive.
    This is nearly the case for a short bearing with a parallel journal that does not tilt.
    """
    film, short = FILMS[name], name == "short film"
    parallel = *motion[:5], np.zeros(3), *motion[6:]
    moving = pair_of(CASES[name], motion if short else parallel)
    pair = moving._replace(u1=np.zeros(6), u2=np.zeros(6))
    D, E = film.derivatives(pair)
    film.wrenches(moving)
    repeated = film.derivatives(pair)
    assert np.array_equal(D, repeated[0])
    assert np.array_equal(E, repeated[1])

    u1, u2 = 1e-3 * moving.u1, 1e-3 * moving.u2
    if not short:
        u2[3:] = u1[3:]
    forward, backward = (
        film.wrenches(pair._replace(u1=sign * u1, u2=sign * u2)) for sign in (1.0, -1.0)
    )
    u, accuracy = np.append(u1, u2), 1e-9 if short else 0.02
    atol = accuracy * np.abs(E).max() * max(np.abs(u).max(), 1e-6)
    assert np.allclose(E @ u, 0.5 * (forward - backward), rtol=0, atol=atol)


@pytest.mark.parametrize("name", FILMS)
@given(motion=motions)
@few_examples
def test_damping_of_films_at_rest(name: str, motion: tuple[Array, ...]) -> None:
    """The damping of a parallel journal at rest is symmetric and dissipates energy."""
    pair = pair_of(CASES[name], (*motion[:5], np.zeros(3), *motion[6:]))
    _, E = FILMS[name].derivatives(pair._replace(u1=np.zeros(6), u2=np.zeros(6)))
    size = np.abs(E).max()
    assert size > 100
    # On a grid, forces by the rotation and torques by the displacement differ by the discretization
    assert np.abs(E - E.T).max() < (1e-9 if name == "short film" else 1e-3) * size
    assert np.linalg.eigvalsh(0.5 * (E + E.T)).max() < 1e-9 * size


@pytest.mark.parametrize("name", JOINT_CASES)
@given(s=unit, rate=unit)
@few_examples
def test_derivatives_and_energy_of_joint_elements(name: str, s: float, rate: float) -> None:
    """The force at rest is minus the derivative of the energy; friction dissipates."""
    element = JOINT_CASES[name]
    gaps = element.contact_states(s, rate, np.zeros(0))[:, 0]
    if len(gaps) and np.abs(gaps).min() < 6e-3:
        return
    by_s, by_rate = element.derivatives(0.0, s, rate)
    table = slopes(
        lambda d: np.array(
            [element.magnitude(0.0, s + d[0], rate + d[1]), element.energy(s + d[0])]
        ),
        2,
    )
    size = max(abs(by_s), abs(by_rate), abs(element.magnitude(0.0, s, rate)), 1e-3)
    assert np.allclose(table[0], [by_s, by_rate], rtol=0, atol=1e-9 * size)
    at_rest = element.magnitude(0.0, s, 0.0)
    assert abs(table[1, 0] + at_rest) < 1e-9 * size
    if name != "spring law":  # whose tanh(s · rate) also drives the joint
        assert (element.magnitude(0.0, s, rate) - at_rest) * rate <= 1e-12


@pytest.mark.parametrize("name", JOINT_CASES)
@pytest.mark.parametrize("motion", ["rotation", "displacement"])
@given(motions=motions)
@few_examples
def test_forces_on_joints_balance(name: str, motion: str, motions: tuple[Array, ...]) -> None:
    """Action equals reaction, and the power is that on the coordinate of the joint."""
    one = mbd.RigidBody("one", 1.0, [0.1] * 3, frames={"a": mbd.Frame((0.3, 0.1, 0.2))})
    two = mbd.RigidBody("two", 1.0, [0.1] * 3, frames={"b": mbd.Frame((0.3, 0.1, 0.2))})
    hinge = mbd.cylindrical("hinge", one.frame("a"), two.frame("b"))
    load = replace(JOINT_CASES[name], motion=motion)  # type: ignore[type-var]
    system = mbd.System([one, two], [hinge], loads=[load])
    eqs = Assembler(system)
    eqs.q[:] = np.concatenate([body.initial_coordinates() for body in system.bodies])
    shift, turn, slide, lean = motions[4:]
    eqs.move(eqs.q.copy(), np.concatenate([shift, turn, shift + 0.1 * slide, turn + 0.1 * lean]))
    eqs.v[:] = np.concatenate(motions[:4])
    eqs.update_poses(0.0)
    eqs.frames.update_velocities()
    ((_, frames, w),) = eqs.loads.wrenches(0.0)
    p1, p2 = eqs.position[list(frames)]
    size = max(np.abs(w).max(), 1e-3)
    assert np.allclose(w[:3] + w[6:9], 0, atol=1e-12 * size)
    moments = w[3:6] + w[9:] + np.cross(p1, w[:3]) + np.cross(p2, w[6:9])
    assert np.allclose(moments, 0, atol=1e-11 * size)
    s, rate, _ = eqs.frames.axis_coordinates()
    column = int(motion == "displacement")  # 0: rotation
    force = load.magnitude(0.0, float(s[0, column]), float(rate[0, column]))
    power = w @ eqs.velocities[list(frames)].ravel()
    assert power == pytest.approx(force * rate[0, column], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_results_survive_files(name: str, tmp_path: Path) -> None:
    """All quantities of an element are the same after a run is saved and loaded."""
    case = CASES[name]

    def build() -> mbd.System:
        one = mbd.Ground({"a": mbd.Frame()}, name="one")
        place = np.array(case.place) + 0.3 * case.reach * np.array([0.5, -0.4, 0.2])
        two = mbd.RigidBody("two", 1e3, [1e3] * 3, position=place, frames={"b": mbd.Frame()})
        return mbd.System([one, two], loads=[case.element])

    run = mbd.simulate(build(), t_end=3e-3, dt=1e-3)
    run.save(tmp_path / "run.npz")
    loaded = mbd.results.Solution.load(tmp_path / "run.npz", build())
    element = case.element.name
    first, second = run.element(element), loaded.element(element)
    assert np.array_equal(first.force, second.force)
    assert np.array_equal(first.energy, second.energy)
    names = [key for key in run.to_xarray() if str(key).startswith(f"{element}.")]
    assert len(names) > 4
    assert loaded.to_xarray()[names].identical(run.to_xarray()[names])
