"""Loads from a law of relative motion, against other elements, differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.mechanism.force_elements import FramePair
from tests.kernels.test_floating_frame import differences
from tests.mechanism.test_force_elements import A, B, moved, random_pair

Array = np.ndarray


def mixed_law(motion: mbd.mechanism.PairMotion) -> tuple[Array, Array, Array]:
    """Return forces, moments and rates that depend on all arguments without any symmetry."""
    d, R, v, w, x = motion[1:]  # displacement, rotation, velocity, angular velocity and states
    force = np.array([d @ d, d[0] * R[1, 2], v[1] * w[2]]) + 0.3 * v + x[0] * d
    moment = np.cross(d, v) + 2.0 * motion.rotation_vector + w * x[1] ** 2 + np.sin(motion.time)
    return force, moment, np.array([x[1] - d[0] * x[0], v @ w])


@pytest.mark.parametrize("seed", range(6))
def test_derivatives_are_those_of_the_wrenches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load, pair, x = (
        mbd.PairLoad("load", A, B, mixed_law, states=[0, 0]),
        random_pair(rng),
        rng.normal(size=2),
    )
    # D: derivatives by the poses; E: by the velocities of both frames and the states
    D, E = load.derivatives(pair, 0.3, x)
    by_pose = differences(lambda d: load.wrenches(moved(pair, d), 0.3, x), 12)
    by_speed = differences(
        lambda d: load.wrenches(
            pair._replace(u1=pair.u1 + d[:6], u2=pair.u2 + d[6:12]), 0.3, x + d[12:]
        ),
        14,
    )
    assert np.allclose(D[:, :12], by_pose, atol=2e-8 * np.abs(D).max())
    assert not D[:, 12:].any()
    assert np.allclose(E, by_speed, atol=2e-8 * np.abs(E).max())


class ExactSpring:
    """A linear spring with a rotational damper, and their derivatives."""

    def __call__(self, motion: mbd.mechanism.PairMotion) -> tuple[Array, Array]:
        return -40.0 * motion.displacement, -3.0 * motion.omega

    def derivatives(self, motion: mbd.mechanism.PairMotion) -> Array:
        G = np.zeros((6, 12))
        G[:3, :3], G[3:, 9:] = -40.0 * np.eye(3), -3.0 * np.eye(3)
        return G


def test_exact_derivatives_of_a_law_replace_differences() -> None:
    law = ExactSpring()
    exact = mbd.PairLoad("exact", A, B, law)
    differenced = mbd.PairLoad("differenced", A, B, law.__call__)
    pair = random_pair(np.random.default_rng(1))
    pairs = zip(exact.derivatives(pair), differenced.derivatives(pair), strict=True)
    for by_law, by_differences in pairs:
        assert np.allclose(by_law, by_differences, atol=1e-7)
    motion = exact.relative(pair)
    assert np.array_equal(exact.slopes(motion), law.derivatives(motion))


@pytest.mark.parametrize("seed", range(4))
def test_forces_balance_and_rotate_with_the_mechanism(seed: int) -> None:
    """The wrenches have no resultant; a rigid motion of everything rotates them."""
    rng = np.random.default_rng(seed)
    load, pair = mbd.PairLoad("load", A, B, mixed_law, states=[0.2, -0.4]), random_pair(rng)
    w = load.wrenches(pair)
    assert np.allclose(w[:3], -w[6:9])
    assert np.allclose(w[3:6] + w[9:12] + np.cross(pair.p1, w[:3]) + np.cross(pair.p2, w[6:9]), 0)
    Q, shift, spin, speed = exp_rotation(rng.normal(size=3)), *rng.normal(size=(3, 3))

    def carried(p: Array, R: Array, u: Array) -> tuple[Array, Array, Array]:
        """Return a frame rotated by Q and shifted, with the velocity of a rigid motion added."""
        position = shift + Q @ p
        velocity = Q @ u[:3] + speed + np.cross(spin, position)
        return position, Q @ R, np.concatenate([velocity, Q @ u[3:] + spin])

    image = FramePair(*carried(pair.p1, pair.Q1, pair.u1), *carried(pair.p2, pair.Q2, pair.u2))
    rotated = (w[:12].reshape(4, 3) @ Q.T).ravel()
    assert np.allclose(load.wrenches(image), np.concatenate([rotated, w[12:]]), atol=1e-12)


def test_a_law_reproduces_a_spring_in_a_simulation() -> None:
    def law(motion: mbd.mechanism.PairMotion) -> tuple[Array, Array]:
        length = float(np.linalg.norm(motion.displacement))
        n = motion.displacement / length
        return -(200.0 * (length - 0.5) + 1.0 * (n @ motion.velocity)) * n, np.zeros(3)

    def potential(motion: mbd.mechanism.PairMotion) -> float:
        return 100.0 * (float(np.linalg.norm(motion.displacement)) - 0.5) ** 2

    ground = mbd.Ground({"o": mbd.Frame((0, 0, 0.1), (1, 2, 3))})
    frames = {"c": mbd.Frame((0.05, 0, 0))}
    bob = mbd.RigidBody("bob", 1.0, [0.01] * 3, position=(0.7, 0.1, 0), frames=frames)
    ends = ground.frame("o"), bob.frame("c")
    runs = []
    for load in (
        mbd.SpringDamper("spring", *ends, 200.0, 1.0, 0.5),
        mbd.PairLoad("spring", *ends, law, potential=potential),
    ):
        system = mbd.System([ground, bob], [], loads=[load], gravity=(0, -9.81, 0))
        runs.append(mbd.simulate(system, t_end=0.5, dt=1e-3, tolerance=1e-11))
    spring, pair = runs
    assert np.allclose(spring.body("bob").position, pair.body("bob").position, atol=1e-11)
    assert np.allclose(spring.element("spring").force, pair.element("spring").force, atol=1e-7)
    assert np.allclose(spring.element("spring").energy, pair.element("spring").energy, atol=1e-9)
    assert np.allclose(spring.energies().total, pair.energies().total, atol=1e-9)


# ---- states -------------------------------------------------------------------------------------
STIFFNESS, DAMPING, MASS, GUIDE = 2e3, 30.0, 2.0, 500.0  # N/m, N s/m, kg, N/m


def maxwell(motion: mbd.mechanism.PairMotion) -> tuple[Array, Array, Array]:
    """Return force, moment and rates of a spring in series with a damper, and a parallel spring.

    The states are the stretch of the first spring, m, shape (3,). The parallel spring acts along z.
    """
    stretch = motion.states
    force = -STIFFNESS * stretch - np.array([0, 0, GUIDE]) * motion.displacement
    return force, np.zeros(3), motion.velocity - STIFFNESS / DAMPING * stretch


def sliding_mass(stretch: float = 0.0) -> mbd.System:
    """Return a mass on a vertical guide with the load `maxwell`; its spring is stretched, m."""
    ground = mbd.Ground({"o": mbd.Frame()})
    bob = mbd.RigidBody("bob", MASS, [0.01] * 3, frames={"c": mbd.Frame()})
    guide = mbd.prismatic("guide", ground.frame("o"), bob.frame("c"))
    ends = ground.frame("o"), bob.frame("c")
    load = mbd.PairLoad("damper", *ends, maxwell, states=(0, 0, stretch))
    return mbd.System([ground, bob], [guide], loads=[load], gravity=(0, 0, -9.81))


# Matrix of the rates of the position z, its velocity and the stretch of the spring
MAXWELL = np.array([[0, 1, 0], [-GUIDE / MASS, 0, -STIFFNESS / MASS], [0, 1, -STIFFNESS / DAMPING]])


def test_maxwell_damper_against_an_integration_by_scipy() -> None:
    """The error of position and state is of second order in the step."""
    exact = scipy.integrate.solve_ivp(
        lambda t, y: MAXWELL @ y + [0, -9.81, 0], (0, 0.4), [0, 0, 0.02], rtol=1e-11, atol=1e-13
    ).y[:, -1]
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        run = mbd.simulate(sliding_mass(0.02), t_end=0.4, dt=dt)
        states = run.element("damper").states
        assert states[0] == pytest.approx([0, 0, 0.02])
        errors.append(np.abs([run.body("bob").position[-1, 2], states[-1, 2]] - exact[[0, 2]]))
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert (errors[-1] < 1e-5).all()
    assert ((ratios > 3.6) & (ratios < 4.4)).all()


def test_equilibrium_and_poles_of_a_maxwell_damper() -> None:
    system = sliding_mass(0.05)
    state = mbd.equilibrium(system)
    assert state.q[2] == pytest.approx(-MASS * 9.81 / GUIDE)
    assert np.allclose(state.v, 0.0, atol=1e-12)  # at rest, without stretch of the spring
    result = mbd.linearize(system, state, outputs=["damper.states.3", "bob.position.z"])
    poles = np.linalg.eigvals(MAXWELL)
    lateral = [-STIFFNESS / DAMPING] * 2  # the stretch decays without motion along x and y
    expected = np.concatenate([poles[poles.imag >= 0], lateral])
    assert np.allclose(np.sort_complex(result.poles), np.sort_complex(expected), rtol=1e-8)
    assert result.matrices[0].shape == (5, 5)
    assert "1 coordinate and 3 states" in result.summary()


def controlled_arm(gain: float = 1500.0) -> mbd.System:
    """Return an arm that a PI controller with damping holds at 1 rad against gravity."""

    def control(t: float, angle: float, rate: float, integral: Array) -> tuple[float, Array]:
        error = 1.0 - angle
        return 800.0 * error - 60.0 * rate + gain * integral[0], np.array([error])

    ground = mbd.Ground({"base": mbd.Frame()})
    arm = mbd.RigidBody.box(
        "arm", (1.0, 0.05, 0.05), density=2700.0, centre=(0.5, 0, 0), frames={"base": mbd.Frame()}
    )
    base = mbd.revolute("base", ground.frame("base"), arm.frame("base"))
    motor = mbd.JointLoad("motor", "base", "rotation", control, states=[0.0])
    return mbd.System([ground, arm], [base], loads=[motor], gravity=(0, -9.81, 0))


def test_a_pi_controller_has_no_error_in_equilibrium_and_the_poles_of_its_polynomial() -> None:
    system = controlled_arm()
    mass = 1.0 * 0.05**2 * 2700.0
    inertia, moment = mass * (1 / 3 + 0.05**2 / 12), mass * 9.81 * 0.5
    state = mbd.equilibrium(system)
    assert state.angles[0] == pytest.approx(1.0, abs=1e-9)
    assert state.v[-1] == pytest.approx(moment * np.cos(1.0) / 1500.0)  # the integral of the error
    poles = mbd.linearize(system, state).poles
    roots = np.roots([inertia, 60.0, 800.0 - moment * np.sin(1.0), 1500.0])
    expected = np.sort_complex(roots[roots.imag >= 0])
    assert np.allclose(np.sort_complex(poles), expected, rtol=1e-7)
    run = mbd.simulate(system, t_end=6.0, dt=5e-3)
    assert run.joint("base").rotation[-1] == pytest.approx(1.0, abs=1e-5)
    assert run.element("motor").states[-1, 0] == pytest.approx(state.v[-1], rel=1e-4)


def test_a_state_replaces_an_auxiliary_body() -> None:
    """A damped body on a rail integrates the same error, with the delay mass/damping."""
    gain = 1500.0
    ground = mbd.Ground({"base": mbd.Frame(), "rail": mbd.Frame()})
    arm = controlled_arm().body("arm")
    run = mbd.simulate(controlled_arm(gain), t_end=1.0, dt=1e-3)
    angle = mbd.mechanism.JointCoordinate("base", "rotation")
    shift = mbd.mechanism.JointCoordinate("rail", "displacement")
    loads = [
        mbd.JointLoad("pd", "base", "rotation", lambda t, s, w: 800.0 * (1 - s) - 60.0 * w),
        mbd.JointLoad("i", "base", "rotation", lambda t, s, w: gain * s, of=shift),
        mbd.JointLoad("error", "rail", "displacement", lambda t, s, w: 1.0 - s, of=angle),
        mbd.JointSpring("damper", "rail", damping=1.0),
    ]
    deviations = []
    for mass in (4e-3, 2e-3):
        memory = mbd.RigidBody("memory", mass, [mass] * 3, frames={"rail": mbd.Frame()})
        joints = [
            mbd.revolute("base", ground.frame("base"), arm.frame("base")),  # type: ignore[attr-defined]
            mbd.prismatic("rail", ground.frame("rail"), memory.frame("rail")),
        ]
        system = mbd.System([ground, arm, memory], joints, loads=loads, gravity=(0, -9.81, 0))
        with_body = mbd.simulate(system, t_end=1.0, dt=1e-3)
        deviations.append(run.joint("base").rotation - with_body.joint("base").rotation)
    largest = [np.abs(deviation).max() for deviation in deviations]
    assert largest[0] < 4e-3
    assert np.allclose(deviations[0], 2 * deviations[1], atol=0.05 * largest[0])


def test_states_have_exact_derivatives_with_respect_to_parameters() -> None:
    build = lambda p: controlled_arm(p["gain"])  # noqa: E731
    result = mbd.run_sensitivities(build, {"gain": 1500.0}, t_end=0.3, dt=2e-3)
    # The central difference is divided by 2 h = 1
    runs = [mbd.simulate(controlled_arm(1500.0 + h), t_end=0.3, dt=2e-3) for h in (0.5, -0.5)]
    for quantity in (
        lambda run: run.joint("base").rotation[-1],
        lambda run: run.element("motor").states[-1, 0],
    ):
        slope = quantity(runs[0]) - quantity(runs[1])
        assert result.derivative(quantity)["gain"] == pytest.approx(slope, rel=1e-5)


def test_states_are_saved_and_a_run_continues_equally(tmp_path: object) -> None:
    system = controlled_arm()
    whole = mbd.simulate(system, t_end=0.2, dt=1e-3)
    stored = mbd.simulate(system, t_end=0.2, dt=1e-3, path=f"{tmp_path}/run")
    whole.save(f"{tmp_path}/run.npz")
    loaded = mbd.results.Solution.load(f"{tmp_path}/run.npz", controlled_arm())
    for run in (stored, loaded):
        assert np.array_equal(run.element("motor").states, whole.element("motor").states)
    part = mbd.simulate(system, t_end=0.2, dt=1e-3, outputs=["motor.states.1"])
    assert np.array_equal(part.to_xarray()["motor.states.1"], whole.element("motor").states[:, 0])
    later = mbd.dynamics.consistent_state(system, v={"motor.states": [0.01]})
    assert later.v[-1] == 0.01
    assert "motor.states" not in whole.names()


@pytest.mark.parametrize(
    ("law", "states", "error"),
    [
        (lambda motion: np.zeros(3), (), InputTypeError),
        (lambda motion: (np.zeros(3), np.zeros(3)), (0.0,), InputTypeError),
        (lambda motion: (np.zeros(2), np.zeros(3)), (), InputError),
        (lambda motion: (np.zeros(3), np.zeros(3), np.zeros(3)), (0.0, 0.0), InputError),
        (lambda motion: (np.full(3, np.nan), np.zeros(3)), (), InputError),
    ],
)
def test_wrong_results_of_a_law(law: object, states: object, error: type[InputError]) -> None:
    load = mbd.PairLoad("load", A, B, law, states=states)  # type: ignore[arg-type]
    with pytest.raises(error) as exc_info:
        load.wrenches(random_pair(np.random.default_rng(0)))
    assert "load 'load'" in str(exc_info.value)


def test_wrong_arguments() -> None:
    with pytest.raises(InputTypeError):
        mbd.PairLoad("load", A, B, 3.0)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        mbd.PairLoad("load", A, B, maxwell, states=[[1.0]])
    with pytest.raises(InputError):
        mbd.JointLoad("motor", "base", "rotation", lambda t, s, rate: 0.0, states=[0.0])
    motor = mbd.JointLoad("motor", "base", "rotation", lambda t, s, rate, x: 0.0, states=[0.0])
    with pytest.raises(InputTypeError):
        motor.magnitude(0.0, 0.0, 0.0)


@pytest.mark.parametrize("analysis", ["kinematics", "inverse dynamics", "derivatives of poles"])
def test_analyses_that_do_not_support_states_say_so(analysis: str) -> None:
    system = controlled_arm()
    with pytest.raises(InputError) as error:
        if analysis == "kinematics":
            mbd.analyses.kinematic_analysis(system, [0.0, 0.1])
        elif analysis == "inverse dynamics":
            mbd.analyses.inverse_dynamics(system, mbd.simulate(system, t_end=0.01, dt=1e-3))
        else:
            mbd.design.linear_sensitivities(lambda p: controlled_arm(p["gain"]), {"gain": 1500.0})
    assert "'motor'" in str(error.value)
