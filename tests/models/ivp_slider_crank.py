"""V4: the flexible slider-crank of the Test Set for IVP Solvers (Simeon), a rod with four modes.

The frame of the rod is at the crank pin, along the chord. The deflection is q₁ sin(πx/l) + q₂
sin(2πx/l). The extension is a parabola with the values q₃ at half length and q₄ at the end. The
consistent longitudinal mass matrix of these shapes is ρAl/15 [[8, 1], [1, 2]]. That of the test set
is fifteen times larger; the published numbers were computed with it, and this rod has it, too. The
test set also defines a nonlinear stiffness, which makes the rod much too stiff in bending
(locking). It is omitted here, as in the reference solution.

References:
    B. Simeon, Modelling a flexible slider crank mechanism by a mixed system of DAEs and PDEs,
    Mathematical Modelling of Systems 2 (1996); Test Set for IVP Solvers, release 2.4, problem 24.

V4 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.dynamics import System, consistent_state
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.mechanism import State
from dolfinx_mbd.mechanism.mechanisms import slider_crank
from dolfinx_mbd.results import Solution

# Lengths of crank and rod and the side of its section (m), kg/m³, Pa, speed of the crank (rad/s);
# mass of the slider (kg), inertias of crank and rod (kg m²), as in the test set.
L1, L2, SIDE, DENSITY, YOUNG, SPEED = 0.15, 0.30, 0.008, 7870.0, 2e11, 150.0
M3, J1, J2 = 0.075552, 0.002727, 0.0045339259
MASS = DENSITY * SIDE**2 * L2
PI = np.pi

# Modal integrals over the rod, divided by the mass of the rod: ∫ρψ, ∫ρxψ (_X) and ∫ρψψ, of the
# longitudinal shapes (LONG, AXIAL) and of the transverse shapes (ACROSS)
LONG, LONG_X = np.array([0, 0, 2 / 3, 1 / 6]), L2 * np.array([0, 0, 1 / 3, 1 / 6])
ACROSS, ACROSS_X = np.array([2 / PI, 0, 0, 0]), L2 * np.array([1 / PI, -0.5 / PI, 0, 0])
MIXED = np.zeros((4, 4))  # transverse times longitudinal shapes, as a skew matrix
MIXED[0, 2:], MIXED[1, 3] = [-16 / PI**3, 8 / PI**3 - 1 / PI], 0.5 / PI
MIXED -= MIXED.T
AXIAL = np.array([[8.0, 1.0], [1.0, 2.0]])  # fifteen times the consistent one
STIFFNESS = np.zeros((4, 4))
STIFFNESS[0, 0] = YOUNG * SIDE**4 / 12 * PI**4 / (2 * L2**3)
STIFFNESS[1, 1] = 16 * STIFFNESS[0, 0]
STIFFNESS[2:, 2:] = YOUNG * SIDE**2 / (3 * L2) * np.array([[16.0, -8.0], [-8.0, 7.0]])

#: The test set's solution at t = 0.1 s.
END: dict[str, Any] = {
    "phi": -3.311734987910881e-1,
    "x": 1.697373326718410e-1,
    "q": [1.893192460247178e-4, 2.375751865617931e-5, -5.323907988763734e-6, -8.363283141616840e-6],
    "omega": 6.025346682645789e1,
    "speed": -8.753116989887888,
    "lam": [-6.232893262533717e1, -1.637910131687472e2, 2.529853213732781e1],
}


def rod(axial: float = 1.0) -> ReducedBody:
    """Return the rod from its integrals; ``axial`` scales the longitudinal mass."""
    S, H = np.zeros((5, 3)), np.zeros((5, 5, 3, 3))
    S[0, 0] = 0.5 * L2
    S[1:, 0], S[1:, 1] = LONG, ACROSS
    H[0, 0] = np.diag([L2**2 / 3, SIDE**2 / 12, SIDE**2 / 12])
    H[0, 1:, 0, 0] = H[1:, 0, 0, 0] = LONG_X
    H[0, 1:, 0, 1], H[1:, 0, 1, 0] = ACROSS_X, ACROSS_X
    H[1, 1, 1, 1] = H[2, 2, 1, 1] = 0.5
    H[3:, 3:, 0, 0] = axial * AXIAL
    H[1:3, 3:, 1, 0] = -MIXED[:2, 2:]
    H[3:, 1:3, 0, 1] = -MIXED[:2, 2:].T
    big, small = np.zeros((6, 4)), np.zeros((6, 4))
    big[5, :2], small[5, :2] = [PI / L2, 2 * PI / L2], [-PI / L2, 2 * PI / L2]
    small[0, 3] = 1.0
    return ReducedBody.from_arrays(
        name="rod",
        total_mass=MASS,
        first_moments=MASS * S,
        second_moments=MASS * H,
        stiffness=STIFFNESS,
        interfaces=(
            Interface("big_end", "rigid", np.zeros(3), np.eye(3), big),
            Interface("small_end", "rigid", np.array([L2, 0, 0]), np.eye(3), small),
        ),
        reference="attached to the chord",
    )


def mechanism(axial: float = 1.0) -> System:
    """Return the slider-crank of the IVP test set."""
    return slider_crank(
        rod(axial),
        crank_radius=L1,
        crank_mass=0.36,
        crank_inertia=J1,
        piston_mass=M3,
        speed=SPEED,
        damping_ratio=0.0,
    )


def start(system: System) -> State:
    """Return the consistent start of the IVP test set."""
    # Coordinates and velocities of the rod; the latter are those of the pin, ω and q̇.
    part, rates = system.q_slices[2], system.v_slices[2]
    q = np.concatenate([body.initial_coordinates() for body in system.bodies])
    v = np.zeros(system.num_velocities)
    q[part][7:] = [0, 0, 1.03339863e-5, 1.69327969e-5]
    v[rates] = [0, L1 * SPEED, 0, 0, 0, -74.9957670, 0.444896105, 0.463434311e-2, *([0.0] * 2)]
    v[rates][8:] = [-0.178591076e-5, -0.268938672e-5]
    return consistent_state(system, q=q, v=v, elastic_start="undeformed")


def multipliers(run: Solution) -> np.ndarray:
    """Return the multipliers with the signs of the IVP test set.

    They are the negative forces of the slider along y on the guide and along x on the rod, and the
    negative torque of the drive.
    """
    guide, piston = run.joint("guide").force[-1], run.body("piston").acceleration[-1]
    # x of the guide is the global y: the guide's force on the slider is also that on the rod
    return np.array([-guide[0], -M3 * piston[0], -run.joint("drive").moment[-1, 2]])


def components(run: Solution) -> dict[str, Any]:
    """Return the components of the last state with the names of the IVP test set."""
    rotation = rotation_matrix(run.body("rod").rotation[-1])
    return {
        "phi": np.arctan2(rotation[1, 0], rotation[0, 0]),
        "x": run.body("piston").position[-1, 0],
        "q": run.body("rod").eta[-1],
        "omega": run.body("rod").omega[-1, 2],
        "speed": run.body("piston").velocity[-1, 0],
        "lam": multipliers(run),
    }


def precise_run() -> Solution:
    """Return the state at 0.1 s from an explicit method of high order on the package's equations.

    (With the consistent longitudinal mass, `mechanism(1 / 15)`, q₁ is 1.893081693e-4, which takes
    this integrator four times as long.)
    """
    system = mechanism()
    state, n, m = start(system), system.num_coordinates, system.num_velocities
    eqs = Assembler(system)

    def accelerations(t: float, y: np.ndarray) -> None:
        eqs.q[:], eqs.v[:], eqs.a[:], eqs.lam[:] = y[:n], y[n:], 0.0, 0.0
        eqs.residual(t)
        derivatives, (_, bias) = eqs.tangent(t), eqs.constraint_rates(t)
        B = derivatives.B
        matrix = np.block([[derivatives.M, B.T], [B, np.zeros((len(B), len(B)))]])
        solved = np.linalg.solve(matrix, -np.concatenate([eqs.rows, bias]))
        eqs.a[:], eqs.lam[:] = solved[:m], solved[m:]

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        accelerations(t, y)
        change = np.zeros(n)
        for k in (1, 2, 3):
            qs, v = system.q_slices[k], eqs.v[system.v_slices[k]]
            w, x, y_, z = eqs.q[qs][3:7]
            # The rate of a quaternion is 0.5 E ω with ω in body axes.
            E = np.array([[-x, -y_, -z], [w, -z, y_], [z, w, -x], [-y_, x, w]])
            change[qs] = np.concatenate([v[:3], 0.5 * E @ v[3:6], v[6:]])
        return np.concatenate([change, eqs.a])

    begin = np.concatenate([state.q, state.v])
    y = solve_ivp(rates, (0, 0.1), begin, "DOP853", rtol=1e-7, atol=1e-11).y[:, -1]
    accelerations(0.1, y)
    return Solution(system, [State(0.1, y[:n], y[n:], eqs.a, eqs.lam, state.angles)])
