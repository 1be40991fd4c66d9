"""Joints with clearance: limit of the ideal joint, Flores' slider-crank, starts and errors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError

ALONG_X = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
STIFF = mbd.ContactLaw(1e8, 1.0, damping=2000.0)  # the pin does not rebound
RADIUS, LENGTH = 0.05, 0.2


def crank_mechanism(clearance: mbd.Clearance | None) -> mbd.System:
    """Return a driven slider-crank whose piston pin may have a clearance."""
    r, half = RADIUS, LENGTH / 2
    ground = mbd.Ground({"main": mbd.Frame(), "guide": mbd.Frame(axes=ALONG_X)})
    crank = mbd.RigidBody(
        "crank", 0.5, [1e-3] * 3, frames={"main": mbd.Frame(), "pin": mbd.Frame((r, 0, 0))}
    )
    ends = {"big": mbd.Frame((-half, 0, 0)), "small": mbd.Frame((half, 0, 0))}
    rod = mbd.RigidBody("rod", 0.2, [1e-3] * 3, frames=ends, position=(r + half, 0, 0))
    frames = {"pin": mbd.Frame(), "guide": mbd.Frame(axes=ALONG_X)}
    piston = mbd.RigidBody("piston", 0.3, [1e-4] * 3, frames=frames, position=(r + LENGTH, 0, 0))
    joints = [
        mbd.revolute("main", ground.frame("main"), crank.frame("main")),
        mbd.cylindrical("big end", rod.frame("big"), crank.frame("pin")),
        mbd.spherical("pin", rod.frame("small"), piston.frame("pin"), clearance),
        mbd.prismatic("guide", ground.frame("guide"), piston.frame("guide")),
    ]
    drive = mbd.Driver("drive", "main", mbd.constant_speed(20.0))
    return mbd.System([ground, crank, rod, piston], joints, drivers=[drive])


@pytest.mark.filterwarnings("ignore:contact:UserWarning")  # only the late forces matter
def test_a_clearance_joint_converges_to_the_ideal_joint() -> None:
    options = {"t_end": 0.012, "dt": 8e-6}
    ideal = mbd.simulate(crank_mechanism(None), **options)
    x, force = ideal.body("piston").position[:, 0], ideal.joint("pin").force
    errors, force_errors = [], []
    for c in (1e-4, 1e-5, 1e-6):
        run = mbd.simulate(crank_mechanism(mbd.Clearance(c, STIFF)), **options)
        history = run.joint("pin")
        # The pin falls by c with at most r ω² (1 + r/l) = 25 m/s², and the piston of 0.3 kg then
        # compresses the bore; 2e-7 m is a margin
        depth = np.sqrt(2 * 25.0 * c * 0.3 / STIFF.stiffness) + 2e-7
        assert np.linalg.norm(history.displacement, axis=1).max() < 1.05 * c + depth
        errors.append(np.abs(run.body("piston").position[:, 0] - x).max())
        assert 0.5 * c < errors[-1] < 1.05 * c + depth
        late = run.time > 0.008  # the pin has settled
        force_errors.append(np.abs(history.force[late, 0].mean() / force[late, 0].mean() - 1))
    assert errors[0] > 5 * errors[1] > 20 * errors[2]
    assert (np.array(force_errors) < [5e-4, 5e-5, 1e-5]).all()


@pytest.mark.filterwarnings("ignore:contact:UserWarning")
def test_forces_of_the_joint_contain_the_contact() -> None:
    """The history of the joint has the force on the piston, also as an element."""
    run = mbd.simulate(crank_mechanism(mbd.Clearance(1e-5, STIFF)), t_end=0.004, dt=4e-6)
    piston = run.body("piston")
    push = run.element("pin").force
    assert np.allclose(push[:, 0], 0.3 * piston.acceleration[:, 0], atol=1e-5 * np.abs(push).max())
    assert np.allclose(push, run.element("pin contact").force)
    assert np.allclose(run.joint("pin").force, run.element("pin", axes="first").force)
    assert np.allclose(run.element("pin").power, run.element("pin contact").power, atol=1e-9)
    assert run.system.ideal.joint("pin").clearance is None
    assert len(run.system.ideal.loads) == 0
    assert "pin contact" in run.system.summary()


def test_kinematic_analysis_names_the_ideal_mechanism() -> None:
    ground = mbd.Ground({"o": mbd.Frame()})
    arm = mbd.RigidBody("arm", 1.0, [0.01] * 3, (0.2, 0, 0), frames={"p": mbd.Frame()})
    play = mbd.Clearance(5e-5, mbd.ContactLaw(1e7))
    pin = mbd.revolute("pin", ground.frame("o"), arm.frame("p"), clearance=play)
    drive = mbd.Driver("drive", "pin", mbd.constant_speed(1.0))
    system = mbd.System([ground, arm], [pin], drivers=[drive])
    with pytest.raises(mbd.errors.Error, match=r"1 driver leaves 2 .* system\.ideal .*'pin'"):
        mbd.analyses.kinematic_analysis(system, [0.0, 0.1])
    motion = mbd.analyses.kinematic_analysis(system.ideal, [0.0, 0.1])
    assert motion.joint("pin").rotation[-1] == pytest.approx(0.1, rel=1e-9)


def test_the_start_is_that_of_the_ideal_mechanism() -> None:
    real = mbd.dynamics.consistent_state(crank_mechanism(mbd.Clearance(1e-4, STIFF)))
    ideal = mbd.dynamics.consistent_state(crank_mechanism(None))
    assert np.allclose(real.q, ideal.q, atol=1e-12)
    assert np.allclose(real.v, ideal.v, atol=1e-12)


def test_a_pin_may_start_anywhere_in_its_bore() -> None:
    """Initial velocities that contradict the ideal joint are kept."""
    ground = mbd.Ground({"bore": mbd.Frame()})
    motion = {"position": (2e-4, 0, 0), "velocity": (1.0, 0, 0)}
    pin = mbd.RigidBody("pin", 1.0, [1e-3] * 3, frames={"pin": mbd.Frame()}, **motion)
    law = mbd.ContactLaw(1e13, damping=0.2)
    clearance = mbd.Clearance(1e-3, law)
    joint = mbd.revolute("joint", ground.frame("bore"), pin.frame("pin"), clearance)
    run = mbd.simulate(mbd.System([ground, pin], [joint]), t_end=0.004, dt="adaptive")
    first, second = run.element("joint contact").impacts
    assert first.start == pytest.approx(0.8e-3, rel=1e-5)
    assert first.speed == pytest.approx(1.0, rel=1e-5)
    e = law.restitution(1.0)
    assert second.speed == pytest.approx(e, rel=1e-3)
    assert second.start - first.end == pytest.approx(2e-3 / e, rel=1e-3)


def test_slices_resist_misalignment() -> None:
    """A moment M tilts a pin of three slices until the outer slices carry M/(2 z)."""
    ground = mbd.Ground({"bore": mbd.Frame()})
    pin = mbd.RigidBody("pin", 1.0, [1e-2] * 3, frames={"pin": mbd.Frame()})
    c, length, K, moment = 1e-3, 0.3, 3e6, 20.0
    law = mbd.ContactLaw(K, 1.0, damping=50.0)
    clearance = mbd.Clearance(c, law, radius=0.02, length=length, slices=3)
    joint = mbd.cylindrical("joint", ground.frame("bore"), pin.frame("pin"), clearance)
    assert joint.rows == ()
    moment_load = mbd.torque("turn", pin.frame("pin"), (0.0, moment, 0.0))
    run = mbd.simulate(
        mbd.System([ground, pin], [joint], loads=[moment_load]), t_end=0.1, dt=2.5e-5
    )
    force = run.element("joint contact").normal_force[-1]
    assert force[1] == 0.0
    assert force[0] == pytest.approx(moment / (2 * length / 3), rel=2e-3)
    tilt = (c + force[0] / (K / 3)) / (length / 3)
    axis = mbd.results.histories.rotation_matrices(run.body("pin").rotation[-1:])[0]
    assert np.arcsin(axis[0, 2]) == pytest.approx(tilt, rel=1e-3)


# ---- slider-crank of Flores, Leine and Glocker (2010) --------------------------------------------
DATA = SimpleNamespace(
    l=(0.153, 0.306), a=0.05, b=0.025, c=0.001, m=(0.038, 0.038, 0.076), J=(7.4e-5, 5.9e-4, 2.7e-6)
)
"""Lengths l of crank and rod; half length a, half height b and clearance c of the slider, m; masses
m, kg, and moments of inertia J, kg m², of crank, rod and slider."""
LAW = mbd.ContactLaw(1e8, 1.5, damping=mbd.mechanism.contact_damping(0.4, 2.0))
G = 9.81


def flores_mechanism() -> mbd.System:
    """Return the slider-crank of Flores with a clearance between slider and guide."""
    (l1, l2), (m1, m2, m3), (J1, J2, J3) = DATA.l, DATA.m, DATA.J
    ground = mbd.Ground({"main": mbd.Frame(), "guide": mbd.Frame(axes=ALONG_X)})
    frames = {"main": mbd.Frame((-l1 / 2, 0, 0)), "pin": mbd.Frame((l1 / 2, 0, 0))}
    crank = mbd.RigidBody(
        "crank", m1, [J1] * 3, frames=frames, position=(l1 / 2, 0, 0), omega=(0, 0, 150.0)
    )
    frames = {"pin": mbd.Frame((-l2 / 2, 0, 0)), "slider": mbd.Frame((l2 / 2, 0, 0))}
    rod = mbd.RigidBody(
        "rod", m2, [J2] * 3, frames=frames, position=(l1 + l2 / 2, 0, 0), omega=(0, 0, -75.0)
    )
    frames = {"pin": mbd.Frame(), "guide": mbd.Frame(axes=ALONG_X)}
    slider = mbd.RigidBody(
        "slider", m3, [J3] * 3, frames=frames, position=(l1 + l2, 0, 0), omega=(0, 0, 0)
    )
    clearance = mbd.mechanism.GuideClearance(DATA.c, 2 * DATA.a, 2 * DATA.b, LAW)
    joints = [
        mbd.revolute("main", ground.frame("main"), crank.frame("main")),
        mbd.cylindrical("pin", rod.frame("pin"), crank.frame("pin")),
        mbd.spherical("slider pin", rod.frame("slider"), slider.frame("pin")),
        mbd.prismatic("guide", ground.frame("guide"), slider.frame("guide"), clearance),
    ]
    return mbd.System([ground, crank, rod, slider], joints, gravity=(0, -G, 0))


def corners(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gaps of the four corners and their derivatives (4, 3) by the angles."""
    (l1, l2), a, b = DATA.l, DATA.a, DATA.b
    y = l1 * np.sin(theta[0]) + l2 * np.sin(theta[1])
    gaps, rows = [], []
    for side in (-1, 1):
        for end in (-1, 1):
            corner = y + end * a * np.sin(theta[2]) + side * b * np.cos(theta[2])
            gaps.append(b + DATA.c - side * corner)
            lever = end * a * np.cos(theta[2]) - side * b * np.sin(theta[2])
            rows.append(
                [-side * l1 * np.cos(theta[0]), -side * l2 * np.cos(theta[1]), -side * lever]
            )
    return np.array(gaps), np.array(rows)


def rates(t: float, z: np.ndarray) -> np.ndarray:
    """Return the rates of three angles, their velocities and the loss, by Lagrange's method."""
    (l1, l2), (m1, m2, m3), (J1, J2, J3) = DATA.l, DATA.m, DATA.J
    theta, w = z[:3], z[3:6]
    h, difference = (m2 / 2 + m3) * l1 * l2, theta[0] - theta[1]
    coupling = h * np.cos(difference)
    M = np.diag([J1 + m1 * l1**2 / 4 + (m2 + m3) * l1**2, J2 + m2 * l2**2 / 4 + m3 * l2**2, J3])
    M[0, 1] = M[1, 0] = coupling
    Q = np.array(
        [
            -h * np.sin(difference) * w[1] ** 2 - (m1 / 2 + m2 + m3) * G * l1 * np.cos(theta[0]),
            h * np.sin(difference) * w[0] ** 2 - (m2 / 2 + m3) * G * l2 * np.cos(theta[1]),
            0.0,
        ]
    )
    gaps, rows = corners(theta)
    speeds, loss = rows @ w, 0.0
    for gap, row, speed in zip(gaps, rows, speeds, strict=True):
        if gap < 0:
            elastic = LAW.stiffness * (-gap) ** LAW.exponent
            force = elastic * max(1 - LAW.damping * speed, 0.0)
            Q += force * row
            loss -= (force - elastic) * speed
    return np.concatenate([w, np.linalg.solve(M, Q), [loss]])


def test_first_impact_of_the_slider_crank_of_flores() -> None:
    def touch(t: float, z: np.ndarray) -> float:
        return float(corners(z[:3])[0].min())

    def separation(t: float, z: np.ndarray) -> float:
        return float(corners(z[:3])[0].min())

    touch.terminal, touch.direction = True, -1.0
    separation.terminal, separation.direction = True, 1.0
    start = np.array([0, 0, 0, 150.0, -75.0, 0, 0])  # −75 = −150 l1/l2; the last entry is the loss
    options = {"rtol": 1e-12, "atol": 1e-14, "method": "DOP853"}
    flight = solve_ivp(rates, (0, 0.1), start, events=touch, **options)
    t1, z1 = flight.t_events[0][0], flight.y_events[0][0]
    impact = solve_ivp(rates, (t1, t1 + 0.01), z1, events=separation, max_step=1e-6, **options)
    t2, z2 = impact.t_events[0][0], impact.y_events[0][0]
    gaps = np.array([corners(z)[0].min() for z in impact.y[:3].T])
    speed = float((corners(z1[:3])[1] @ z1[3:6])[np.argmin(corners(z1[:3])[0])])

    control = mbd.Adaptive(1e-8, largest=5e-6)
    run = mbd.simulate(flores_mechanism(), t_end=t2 + 2e-4, dt=control)
    first = run.element("guide contact").impacts[0]
    assert first.start == pytest.approx(t1, rel=1e-6)
    assert first.speed == pytest.approx(-speed, rel=1e-4)
    assert first.end == pytest.approx(t2, abs=1e-3 * (t2 - t1))
    assert first.depth == pytest.approx(-gaps.min(), rel=1e-3)
    assert first.loss == pytest.approx(z2[6], rel=1e-3)
    energy = run.energies().total
    assert energy[0] - energy[-1] == pytest.approx(
        run.element("guide contact").dissipated[-1], abs=1e-5 * energy[0]
    )


def test_gaps_of_the_slider_crank_stay_bounded() -> None:
    """Impacts are chaotic, but the slider stays between the walls and each impact loses energy."""
    run = mbd.simulate(flores_mechanism(), t_end=0.02, dt=1e-5)
    history = run.element("guide contact")
    assert len(history.impacts) >= 2
    assert history.gap.min() > -2e-4
    assert all(impact.loss > 0 for impact in history.impacts)
    total = run.energies().total
    assert np.ptp(total + history.dissipated) < 1e-3 * total[0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: mbd.Clearance(0.0, STIFF), "radial clearance must be a positive"),
        (lambda: mbd.Clearance(1e-4, 1e9), "law of a clearance must be ContactLaw"),
        (lambda: mbd.Clearance(1e-4, mbd.ContactLaw(1e9, friction=0.1)), "needs the radius"),
        (lambda: mbd.mechanism.GuideClearance(1e-4, 0.0, 0.1, STIFF), "length of a slider"),
        (lambda: mbd.mechanism.GuideClearance(1e-4, 0.1, 0.1, STIFF, "z"), "direction of a guide"),
        (
            lambda: mbd.mechanism.Joint("j", "universal", ("a", "f"), ("b", "f"), None,
                              mbd.Clearance(1e-4, STIFF)),
            "kind of joint 'j' with a Clearance must be one of 'revolute'",
        ),
        (
            lambda: mbd.prismatic("j", ("a", "f"), ("b", "f"), mbd.Clearance(1e-4, STIFF)),
            "kind of joint 'j' with a Clearance",
        ),
        (
            lambda: mbd.revolute(
                "j", ("a", "f"), ("b", "f"), mbd.mechanism.GuideClearance(1e-4, 0.1, 0.1, STIFF)
            ),
            "kind of joint 'j' with a GuideClearance",
        ),
        (
            lambda: mbd.spherical(
                "j", ("a", "f"), ("b", "f"), mbd.Clearance(1e-4, STIFF, length=0.1)
            ),
            "spherical joint has no length",
        ),
        (lambda: mbd.revolute("j", ("a", "f"), ("b", "f"), 1e-4), "'j': clearance must be"),
    ],
)  # fmt: skip
def test_invalid_clearances(call, text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()


def test_tables_of_a_contact(tmp_path) -> None:
    system = crank_mechanism(mbd.Clearance(1e-4, STIFF))
    run = mbd.simulate(system, t_end=4e-5, dt=4e-6)
    data = run.to_xarray(["pin contact"])
    assert data["pin contact.gap"].dims == ("time", "pin contact point")
    assert run.to_csv(tmp_path / "run.csv", ["pin contact"]).exists()
    path = run.save(tmp_path / "run.npz")
    assert (mbd.results.Solution.load(path, system).q == run.q).all()
