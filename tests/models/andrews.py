"""Andrews' squeezing mechanism of the IVP test set: seven bodies in a plane, one degree of freedom.

References:
    F. Mazzia, C. Magherini: Test Set for Initial Value Problem Solvers, release 2.4, 2008.
    E. Hairer, G. Wanner: Solving Ordinary Differential Equations II, section VII.7.
"""

from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd

# The letters are those of the test set: lengths and positions in m, angles in rad.
MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
INERTIAS = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
D, DA, E, EA, RR, RA = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
SS, SA, SB, SC, SD = 0.035, 0.01874, 0.01043, 0.018, 0.02
TA, TB, U, UA, UB, ZF, ZT, FA = 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
BETA, GAMMA, PHI = -0.0617138900142764496, 0.455279819163070380, 0.222668390165885885
DELTA, EPSILON = 0.487364979543842550, 1.23054744454982119
OMEGA = -PHI
ANGLES = (BETA, BETA, GAMMA, PHI + DELTA, DELTA, OMEGA + EPSILON, EPSILON)
"""Angles of the bodies at the start, rad."""

# The test set lists the angles β, Θ, γ, Φ, δ, Ω and ε, of which Θ, Φ and Ω are relative.
AT_THE_END = {
    "β": 15.810771195154,
    "β + Θ": 15.810771195154 - 15.756371058412,
    "γ": 0.040822240119645,
    "Φ + δ": -0.534730116342080 + 0.524409965879954,
    "δ": 0.524409965879954,
    "ε": 1.04808074104194,
}
SPEEDS_AT_THE_END = (1139.92030225911, 1139.92030225911 - 1424.37929517754)
"""Angles of six bodies (rad) and angular velocities of two (rad/s) at 0.03 s."""


def turned(angle: float, *point: float) -> np.ndarray:
    """Return a point of the plane that is turned about the origin, shape (3,)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1], 0.0])


def mechanism() -> mbd.System:
    """Return the mechanism at the start; the frames of each body are at its first joint."""
    # centre of mass and further points of each body, from its first joint and in its own axes
    parts = {
        "K1": ((RA, 0.0), {"end": (RR, 0.0)}),
        "K2": ((-DA, 0.0), {"end": (-D, 0.0)}),
        "K3": ((SB, -SA), {"end": (0.0, -SS), "spring": (SD, -SC)}),
        "K4": ((0.0, -(E - EA)), {"end": (0.0, -E)}),
        "K5": ((TA, TB), {"end": (ZT, 0.0)}),
        "K6": ((ZF - FA, 0.0), {"end": (ZF, 0.0)}),
        "K7": ((-UB, -UA), {"end": (0.0, -U)}),
    }
    places = dict.fromkeys(parts, np.zeros(3))
    places["K2"] = turned(BETA, RR, 0.0)
    places["K3"] = np.array([*B, 0.0])
    places["K5"] = places["K7"] = np.array([*A, 0.0])
    places["K4"] = places["K5"] + turned(DELTA, ZT, 0.0)
    places["K6"] = places["K7"] + turned(EPSILON, 0.0, -U)
    bodies = {}
    for (name, (centre, points)), m, inertia, angle in zip(
        parts.items(), MASSES, INERTIAS, ANGLES, strict=True
    ):
        frames = {"start": mbd.Frame()}
        frames |= {key: mbd.Frame((*point, 0.0)) for key, point in points.items()}
        bodies[name] = mbd.RigidBody(
            name,
            m,
            (inertia, inertia, inertia),
            centre=(*centre, 0.0),
            frames=frames,
            position=places[name],
            rotation=(np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)),
        )
    points = {"O": (0.0, 0.0), "A": A, "B": B, "C": C}
    ground = mbd.Ground({key: mbd.Frame((*point, 0.0)) for key, point in points.items()})
    joints = [
        mbd.point_on_line("pin 1", ground.frame("O"), bodies["K1"].frame("start")),
        mbd.point_on_line("pin 2", bodies["K1"].frame("end"), bodies["K2"].frame("start")),
        mbd.point_on_line("pin 3", ground.frame("B"), bodies["K3"].frame("start")),
        mbd.point_on_line("pin 4", bodies["K5"].frame("end"), bodies["K4"].frame("start")),
        mbd.point_on_line("pin 5", ground.frame("A"), bodies["K5"].frame("start")),
        mbd.point_on_line("pin 6", bodies["K7"].frame("end"), bodies["K6"].frame("start")),
        mbd.point_on_line("pin 7", ground.frame("A"), bodies["K7"].frame("start")),
    ]
    joints += [
        mbd.point_on_line(f"{k} at E", bodies["K2"].frame("end"), bodies[k].frame("end"))
        for k in ("K3", "K4", "K6")
    ]
    joints += [
        mbd.planar(f"plane of {name}", ground.frame("O"), body.frame("start"))
        for name, body in bodies.items()
    ]
    loads = [
        mbd.JointLoad("drive", "plane of K1", "rotation", 0.033),
        mbd.SpringDamper(
            "spring", ground.frame("C"), bodies["K3"].frame("spring"), 4530.0, length=0.07785
        ),
    ]
    return mbd.System([ground, *bodies.values()], joints, loads=loads)


def at_the_end(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the angles of six bodies and the speeds of two at 0.03 s, by steps of dt."""
    run = mbd.simulate(mechanism(), t_end=0.03, dt=dt, tolerance=1e-11)
    angles = [np.unwrap(2 * np.arctan2(h[:, 3], h[:, 0]))[-1] for h in rotations(run)]
    speeds = [run.body(name).omega[-1, 2] for name in ("K1", "K2")]
    return np.array(angles), np.array(speeds)


def rotations(run: mbd.results.Solution) -> list[np.ndarray]:
    """Return the quaternions of the bodies in the order of the table, with continuous signs."""
    histories = []
    for name in ("K1", "K2", "K3", "K4", "K5", "K7"):
        q = run.body(name).rotation
        signs = np.where(np.einsum("tk,tk->t", q[1:], q[:-1]) < 0, -1.0, 1.0)
        histories.append(q * np.cumprod(np.r_[1.0, signs])[:, None])
    return histories


def extrapolated_end() -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `at_the_end` for a step of zero, from errors of order two and three."""
    runs = [at_the_end(dt) for dt in (2e-5, 1e-5, 5e-6)]
    angles, speeds = (
        (8 * (4 * fine - middle) / 3 - (4 * middle - coarse) / 3) / 7
        for coarse, middle, fine in zip(*runs, strict=True)
    )
    return angles, speeds
