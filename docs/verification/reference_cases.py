"""Compute the reference cases and compare them with published and independent numbers.

    ./with-fenicsx python3 docs/verification/reference_cases.py
    ./with-fenicsx python3 docs/verification/reference_cases.py V6 V9

Each case prints a table with the quantity, the reference and its source, the result of this
package, the deviation and its bound. A deviation is relative to the reference, or absolute ("abs").
The exit status is 1 if a deviation exceeds its bound. The models belong to the tests; a case is
left out, and the table says so, if its other program is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ufl
from dolfinx.mesh import create_interval
from mpi4py import MPI
from scipy.linalg import eigh
from scipy.optimize import bisect, brentq
from scipy.special import mathieu_a, mathieu_b

sys.path.insert(0, str(Path(__file__).parents[2]))  # for the models of the tests

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.mechanisms import inline_engine, rigid_rod, slider_crank
from tests.analyses import test_periodic, test_steady_whirl
from tests.models import (
    andrews,
    bodies,
    four_bars,
    planar_mechanisms,
    plates,
    sensitivities,
    spin_up,
)
from tests.models import ivp_slider_crank as ivp
from tests.structures.mesh_bodies import (
    test_conserving,
    test_materials_and_solvers,
    test_mesh_bodies,
    test_published_cases,
)

SELF = MPI.COMM_SELF
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """A number of this package next to its reference; `bound` limits the deviation."""

    quantity: str
    reference: float
    source: str
    value: float
    bound: float
    absolute: bool = False

    @property
    def deviation(self) -> float:
        """Difference from the reference, relative to it unless `absolute`."""
        difference = abs(self.value - self.reference)
        return float(difference if self.absolute else difference / abs(self.reference))

    @property
    def passed(self) -> bool:
        """Whether the deviation is a number within its bound."""
        return self.deviation <= self.bound


def rows(
    source: str, bound: float, values: Iterable[float], references: Numbers, absolute: bool = False
) -> Iterator[Row]:
    """Yield a row for each reference by name, with the values in the same order."""
    for (name, reference), value in zip(references.items(), values, strict=True):
        yield Row(name, float(reference), source, float(value), bound, absolute)


# ---- Mechanisms of rigid bodies

ODE = "independent ODE solution"


def planar_motion() -> Iterator[Row]:
    """Rigid planar mechanisms under torques that depend on the angle (Hać and Łazęcki)."""
    times = [0.2, 0.4, 0.6, 0.8, 1.0]
    run = mbd.simulate(planar_mechanisms.robotic_arm(), t_end=1.0, dt=1e-4, stride=2000)
    angles = run.joint("base").rotation[1:]
    exact = [0.033195, 0.133880, 0.305375, 0.553192, 0.884680]
    names = [f"arm, φ({t:g} s), rad" for t in times]
    # The bound contains the rounding of the references: 0.5e-6 of 0.033195 is 1.5e-5
    references = dict(zip(names, exact, strict=True))
    yield from rows(ODE, 1.6e-5, angles, references)
    yield from rows("Adams, in the paper", 3e-4, angles[-1:], {names[-1]: 0.884672})
    run = mbd.simulate(planar_mechanisms.crank_from_rest(), t_end=0.5, dt=1e-4, stride=1000)
    angles = run.joint("main").rotation[1:]
    exact = [0.245340903, 0.801813625, 1.463351621, 2.451874435, 4.211921311]
    names = [f"slider-crank, φ({k / 10:g} s), rad" for k in range(1, 6)]
    yield from rows(ODE, 1e-5, angles, dict(zip(names, exact, strict=True)))
    yield from rows("Adams, in the paper", 3e-4, angles[-1:], {names[-1]: 4.210979})
    references = {"the same by the paper's stick model": exact[-1]}
    yield from rows(ODE, 1e-5, [planar_mechanisms.stick_angle()], references)


def rigid_engine() -> Iterator[Row]:
    """Rigid slider-crank of the three-cylinder engine at 6000 rpm, r = 40 mm, l = 137 mm."""
    speed = 628.318
    engine = inline_engine(
        rigid_rod(length=0.137, mass=0.153, thickness=0.01), speed=speed, gas=False
    )
    run = mbd.simulate(engine, t_end=0.01, dt=5e-6).projected()
    piston, rod = run.body("piston 1"), run.body("rod 1")
    x, v, a = (h[:, 0] for h in (piston.position, piston.velocity, piston.acceleration))
    values = [np.ptp(x), np.abs(v).max(), a.min(), a[len(a) // 2]]  # the last after half a turn
    values += [np.abs(rod.omega[:, 2]).max(), np.abs(rod.alpha[:, 2]).max()]
    references = {
        "stroke, m": 0.080,
        "greatest speed of the piston, m/s": 26.18855,
        "acceleration at top dead centre, m/s²": -20401.95,
        "acceleration at bottom dead centre, m/s²": 11180.73,
        "greatest angular velocity of the rod, rad/s": 183.4505,
        "greatest angular acceleration of the rod, rad/s²": 120516.5,
    }
    yield from rows("closed form", 5e-6, values, references)


def spatial_crank_slider() -> Iterator[Row]:
    """Crank-slider with a rod of 17 m at π/10 rad/s, rigid (Wang et al. 2022)."""
    system = slider_crank(
        rigid_rod(length=17.0, mass=0.5),
        crank_radius=2.0,
        crank_mass=1.0,
        piston_mass=1.0,
        speed=-np.pi / 10,
    )
    run = mbd.simulate(system, t_end=20.0, dt=0.01).projected()
    piston = run.body("piston")
    x, v, a = (h[:, 0] for h in (piston.position, piston.velocity, piston.acceleration))
    references = {"least x of the slider, m": 15.0, "greatest x, m": 19.0}
    yield from rows("closed form", 1e-9, [x.min(), x.max()], references)
    references = {"greatest speed, m/s": 0.6327, "least acceleration, m/s²": -0.2206}
    references["greatest acceleration, m/s²"] = 0.1742
    values = [np.abs(v).max(), a.min(), a.max()]
    yield from rows("closed form, four digits", 5e-4, values, references)


def free_rotation() -> Iterator[Row]:
    """Free rotation of a rigid body near its unstable axis, I = (1, 2, 3) kg m²."""
    system = mbd.System([mbd.RigidBody("top", 1.0, [1.0, 2.0, 3.0])])
    start = mbd.dynamics.consistent_state(system, v=np.array([0, 0, 0, 0.01, 1.0, 0.01]))
    run = mbd.simulate(system, t_end=31.0, dt=1e-3, start=start, tolerance=1e-12)
    omega = run.body("top").omega
    k = np.flatnonzero(np.diff(np.sign(omega[:, 1])))
    # Times at which ω₂ is zero, twice in a period, by linear interpolation within a step of 1e-3 s
    zeros = run.time[k] - omega[k, 1] * 1e-3 / (omega[k + 1, 1] - omega[k, 1])
    references = {"period, s": 39.1057341973, "first change of sign of ω₂, s": 10.916913}
    yield from rows("elliptic functions", 1e-5, [2 * np.diff(zeros)[0], zeros[0]], references)
    exact = {"ω₁(20 s), rad/s": -0.00581384, "ω₂": -1.0000331, "ω₃": 0.008828}
    # Step 20000 ends at 20 s
    yield from rows("elliptic functions", 1e-6, omega[20000], exact, absolute=True)


def andrews_mechanism() -> Iterator[Row]:
    """Andrews' squeezing mechanism: seven bodies, one freedom, steps extrapolated to zero."""
    angles, speeds = andrews.extrapolated_end()
    source = "IVP test set, and a reduction to one freedom"
    references = {f"{key}(0.03 s), rad": value for key, value in andrews.AT_THE_END.items()}
    yield from rows(source, 1e-8, angles, references, absolute=True)
    names = ("rate of β, rad/s", "rate of β + Θ, rad/s")
    references = dict(zip(names, andrews.SPEEDS_AT_THE_END, strict=True))
    yield from rows(source, 1e-6, speeds, references)


def four_bar_chain() -> Iterator[Row]:
    """Two four-bars in a row that pass their singular position (IFToMM library)."""
    values = []
    for dt in (1e-3, 5e-4):
        run = mbd.simulate(four_bars.chain(2), t_end=10.0, dt=dt, start={"drive": -1.0})
        angle = run.joint("drive").rotation
        period = np.interp(2 * np.pi, angle[0] - angle, run.time)  # time of one turn
        pin = run.sensor("crank 0", "end")[:, :2]
        values.append([*pin[round(1 / dt)], *pin[-1], run.body("crank 0").omega[-1, 2], period])
    # Richardson extrapolation of a method of order two to a step of zero
    extrapolated = (4 * np.array(values[1]) - values[0]) / 3
    exact = {"x(1 s), m": -0.19502030195, "y(1 s), m": -0.98079920566, "x(10 s), m": 0.32845811153}
    exact |= {"y(10 s), m": 0.94451853818, "rate of φ at 10 s, rad/s": -1.50664218082}
    exact["period, s"] = 1.94251492261
    yield from rows("equivalent pendulum", 1e-6, extrapolated, exact, absolute=True)


# ---- Flexible bodies in motion


def flexible_slider_crank() -> Iterator[Row]:
    """Flexible slider-crank of the IVP test set, a rod of four shapes (Simeon)."""
    end, exact = ivp.components(ivp.precise_run()), ivp.END
    source = "IVP test set, problem 24"
    first = {"φ₂(0.1 s), rad": exact["phi"], "x₃, m": exact["x"]}
    yield from rows(source, 1e-9, [end["phi"], end["x"]], first)
    yield from rows(source, 2e-7, end["q"][:2], {"q₁, m": exact["q"][0], "q₂, m": exact["q"][1]})
    rates = {"rate of φ₂, rad/s": exact["omega"], "rate of x₃, m/s": exact["speed"]}
    yield from rows(source, 1e-6, [end["omega"], end["speed"]], rates)
    names = ("λ₁, N", "λ₂, N", "λ₃, N m")
    yield from rows(source, 1e-5, end["lam"], dict(zip(names, exact["lam"], strict=True)))


def spinning_up() -> Iterator[Row]:
    """Spin-up of a cantilever to 6 rad/s, tip deflection of the reduced body (Kane et al. 1987)."""
    instants, across = spin_up.tip_deflection(14.0, 2e-2)  # until 14 s, with steps of 0.02 s
    values = np.interp(list(spin_up.EXACT), instants, across)
    references = {f"v({t} s), m": value for t, value in spin_up.EXACT.items()}
    bound, source = 0.01 * 0.5738, "geometrically exact beam"  # 1 % of the largest deflection
    yield from rows(source, bound, values, references, absolute=True)
    yield from rows(source, 0.01, [across.min()], {"least deflection, m": -0.5738})


# Dimensionless frequencies over the speed γ: first lag, first flap, second lag, second flap
WRIGHT = {
    1: (3.54324, 3.68165, 22.15846, 22.18101),
    3: (3.74351, 4.79728, 23.12649, 23.32026),
    5: (4.07390, 6.44954, 24.95001, 25.44608),
}


def rotating_cantilever() -> Iterator[Row]:
    """Frequencies ω√(ρAL⁴/EI) of a rotating cantilever at the speed γ (Wright et al. 1982)."""
    thin = mbd.forms.Section.rectangle(2e-3, 2e-3)
    material = mbd.Material(1.0 / thin.Iyy, 0.3, 1.0 / thin.area)  # EI = ρA = 1, and L = 1
    model = mbd.BeamModel(create_interval(SELF, 40, [0.0, 1.0]), thin, material)
    structure = mbd.structures.rotating_beam(model, held=[0.0])
    for gamma, frequencies in WRIGHT.items():
        omega = (
            2
            * np.pi
            * mbd.structures.rotating_modes(structure, float(gamma), num_modes=4).frequencies
        )
        names = [f"{name}, γ = {gamma}" for name in ("lag 1", "flap 1", "lag 2", "flap 2")]
        source = "Wright; spectral solution"
        yield from rows(source, 3e-4, omega, dict(zip(names, frequencies, strict=True)))
    critical = mbd.structures.critical_speed(structure, 6.0, stiffening=False)
    structure.destroy()
    name = "γ of the false loss of stability without geometric stiffness"
    yield from rows(
        "first frequency at rest", 1e-3, [critical.speed if critical else np.nan], {name: 3.51602}
    )
    # ω² of an oscillator of 10 Hz in both directions; it rotates at 4 Hz
    springs = plates.on_springs(SELF, ((20 * np.pi) ** 2,) * 2)
    modes = mbd.structures.rotating_modes(springs, 8 * np.pi, num_modes=3)
    springs.destroy()
    circles = modes.frequencies[np.abs(modes.whirl) > 0.5]  # modes with circular orbits
    exact = {"oscillator of 10 Hz at 4 Hz, forward, Hz": 6.0, "backward, Hz": 14.0}
    yield from rows("closed form", 1e-12, circles, exact)


# ---- A single body


def closed_forms() -> Iterator[Row]:
    """Rotating and accelerated bars, resultants of inertia loads, buckling, an ellipsoid."""
    steel, spin, alpha = mbd.STEEL, 40.0, 30.0
    thin = mbd.forms.Section.rectangle(1e-3, 1e-3)
    model = mbd.BeamModel(create_interval(SELF, 8, [0.0, 1.0]), thin, steel)  # L = 1 m
    v = ufl.TestFunction(model.space)
    clamp: dict[float, list[str]] = {0.5: ["ux", "uy", "uz", "rx", "ry", "rz"]}
    tips = []
    for load, held in (
        (model.beam.centrifugal_load(v, (0, 0, spin)), [0.0]),
        (model.beam.centrifugal_load(v, (0, 0, spin), origin=(0.5, 0, 0)), clamp),
        (model.beam.euler_load(v, (0, 0, -alpha)), [0.0]),
    ):
        q = mbd.structures.beam_statics(model, load, held=held).x.array.reshape(-1, 6)
        tips.append(q[np.argmax(model.positions[:, 0])])
    stretch = steel.density * spin**2 / steel.young  # ρΩ²L³/E
    bend = 11 * steel.density * thin.area * alpha / (120 * steel.young * thin.Izz)
    exact = {
        "ρΩ²L³/3E, clamped bar, m": stretch / 3,
        "ρΩ²L³/24E, about the centre, m": stretch / 24,
    }
    yield from rows("closed form", 1e-9, [tips[0][0], tips[1][0]], exact)
    yield from rows("closed form", 1e-6, [tips[2][1]], {"11ρAαL⁵/120EI, m": bend})
    for bound, (values, exact) in (
        (1e-12, bodies.inertia_resultants(spin, alpha)),
        (1e-3, bodies.ellipsoid_inertia(0.006)),
    ):
        yield from rows("closed form", bound, values, exact)
    values, exact = bodies.buckling_load()
    yield from rows("Euler, with shear", 4e-3, values, exact)


def free_solids() -> Iterator[Row]:
    """Natural frequencies of a free cube (ωL√(ρ/G)) and of a free bar of steel, quadratic cells."""
    source, steel = "Rayleigh-Ritz", mbd.Material(2.1e11, 0.3, 7850.0)
    cube = mbd.modal_analysis(bodies.box(SELF, (1.0,) * 3, (4, 4, 4)), steel, num_modes=11)
    omega = 2 * np.pi * cube.frequencies * np.sqrt(steel.density / steel.shear)
    exact = {"cube, first pair": 2.85605, "first triple": 3.84598, "second triple": 3.91125}
    exact["Lamé's modes, π√2"] = np.pi * np.sqrt(2)
    yield from rows(source, 3e-3, omega[[0, 2, 5, 8]], exact)
    bar = mbd.modal_analysis(bodies.box(SELF, cells=(12, 4, 3)), steel, num_modes=6)
    frequencies = [3311.33, 5286.47, 8732.7, 9533.2, 13132.0, 16171.7]
    exact = {f"bar, mode {k}, Hz": value for k, value in enumerate(frequencies, 1)}
    yield from rows(source, 3e-3, bar.frequencies, exact)


def craig_bampton() -> Iterator[Row]:
    """Error of Craig-Bampton frequencies of a free beam over the number n of fixed modes."""
    # Second moment of area; squared roots of cos x cosh x = 1: frequencies for EI = ρA = L = 1
    second, exact = 1e-10, np.array([4.730041, 7.853205, 10.995608, 14.137165]) ** 2
    section = mbd.forms.Section(1.0, 1e4 * second, second, 1e4 * second)  # the other plane is stiff
    line = create_interval(SELF, 100, [0.0, 1.0])
    model = mbd.BeamModel(line, section, mbd.Material(1 / second, 0.3, 1.0))
    # Relative errors of the frequencies for n fixed modes
    table = {2: (3.6e-3, 4.4e-3), 4: (4.1e-4, 9.2e-4, 4.3e-3, 3.9e-3)}
    table[8] = (2.6e-5, 9.6e-5, 4.7e-4, 6.4e-4)
    for n, errors in table.items():
        warnings.simplefilter("ignore", mbd.errors.UnitsWarning)  # EI = ρA = 1
        body = mbd.reduce_beam(
            model,
            interfaces={"left": 0.0, "right": 1.0},
            num_modes=n,
            stiffening=False,
            options=mbd.ReductionOptions(skin=False),
        ).body
        ratios = 2 * np.pi * body.frequencies[: len(errors)] / exact[: len(errors)] - 1
        names = [f"n = {n}: relative error of frequency {k}" for k in range(1, len(errors) + 1)]
        references = dict(zip(names, errors, strict=True))
        yield from rows("spectral solution, two digits", 0.03, ratios, references)


def same_body_in_exudyn() -> Iterator[Row]:
    """One mesh and one basis in two programs: frequencies, and a slider-crank's motion (Exudyn)."""
    if importlib.util.find_spec("exudyn") is None:
        return
    from tests.exudyn import models, test_motion

    model = test_motion.bar(test_motion.STEEL)
    reduction = model.reduction("mean axis")
    body = test_motion.damped(reduction.body)
    peer = models.peer_body(models.finite_elements(model, reduction.modes))  # in Exudyn
    squares = eigh(peer.stiffnessMatrixReduced, peer.massMatrixReduced, eigvals_only=True)[:4]
    exact = {f"frequency {k}, Hz": np.sqrt(s) / (2 * np.pi) for k, s in enumerate(squares, 1)}
    yield from rows("Exudyn", 1e-9, body.frequencies[:4], exact)
    exact = {"mass, kg": peer.totalMass, "Jzz, kg m²": peer.inertiaLocal[2, 2]}
    yield from rows("Exudyn", 1e-9, [body.total_mass, body.inertia[2, 2]], exact)
    system, method = test_motion.slider_crank_here(body), test_motion.METHOD
    options: dict[str, Any] = {"stride": 10, "method": method, "elastic_start": "undeformed"}
    run = mbd.simulate(system, t_end=0.05, dt=2e-5, **options)
    # End, step and interval of the saved times, s: every tenth step, as above
    theirs = test_motion.slider_crank_there(model, reduction.modes).run(0.05, 2e-5, 2e-4)
    path, eta = run.body("piston").position, run.body("rod").eta
    off = [test_motion.compare(path, theirs["piston"]), test_motion.compare(eta, theirs["rod eta"])]
    names = ("path of the slider, greatest difference, relative", "elastic coordinates, the same")
    yield from rows("Exudyn", 1e-5, off, dict.fromkeys(names, 0.0), absolute=True)


def derivatives() -> Iterator[Row]:
    """Derivatives of reduced bodies: laws of scaling, double modes, slender bars, remainder."""
    for model in (sensitivities.scaling_laws, sensitivities.axial_mode):
        values, exact = model()
        yield from rows("exact law", 1e-8, values, exact)
    values, exact = sensitivities.double_mode()
    yield from rows("exact law", 1e-8, values, exact, absolute=True)
    values, exact = sensitivities.slender_bar()
    yield from rows("beam without shear", 3e-3, values, exact)
    values, exact = sensitivities.taylor_slope()
    yield from rows("Taylor's theorem", 0.1, values, exact, absolute=True)


# ---- Mesh bodies


def mesh_bodies_at_rest() -> Iterator[Row]:
    """Equilibria of mesh bodies with large rotations and strains."""
    for load, exact in ((1, (0.301720774, 0.056433236)), (10, (0.810609025, 0.554995598))):
        names = [f"W2, elastica, PL²/EI = {load}: {name}" for name in ("w/L", "u/L")]
        values = test_mesh_bodies.elastica(load)[0]
        references = dict(zip(names, exact, strict=True))
        yield from rows("elastica", 2e-3, values, references, absolute=True)
    tip = test_published_cases.princeton_beam(90)[2]
    name = "W3, Princeton beam at 90°: u_z, m"
    yield from rows("beam", 5e-3, [tip], {name: 0.146246})
    yield from rows("ANSYS, in the paper", 0.03, [tip], {name: 0.143848652})
    bend = dict(zip(("W4, 45° bend: x", "y", "z"), (-23.646, 13.721, 53.578), strict=True))
    source, tip = "converged beam", test_published_cases.bend_of_45_degrees()
    yield from rows(source, 0.54, tip, bend, absolute=True)  # 1 % of the largest coordinate
    values, exact = test_materials_and_solvers.twisted_cylinder(np.pi / 2, cells=4)
    names = [f"W6, torsion by 90°: {x}" for x in ("moment, N m", "end force, N")]
    yield from rows("Rivlin", 5e-3, values, dict(zip(names, exact, strict=True)))
    values, exact, difference = test_mesh_bodies.twisted_column(180)
    names = ["W10, column twisted by 180°: moment, N m", "end force, N"]
    yield from rows("plain DOLFINx", 1e-8, values, dict(zip(names, exact, strict=True)))
    name = "greatest difference of displacements, m"
    yield from rows("plain DOLFINx", 1e-8, [difference], {name: 0.0}, absolute=True)


def mesh_bodies_in_motion() -> Iterator[Row]:
    """Motion of mesh bodies: cranks, pendulum, tumbling L, column, spinning ring."""
    w = test_mesh_bodies.deflection(*test_mesh_bodies.crank_run())
    exact = {"W1, slider-crank: greatest deflection, m": 1.6371e-3, "least": -1.8659e-3}
    yield from rows("geometrically exact beam", 0.01, [w.max(), w.min()], exact)
    bar, system = test_mesh_bodies.rubber_pendulum()
    run = mbd.simulate(system, t_end=0.8, dt=0.004)
    # Steps 100 and 200 end at 0.4 and 0.8 s
    tip = bar.motion(run).position([(1, 0, 0)])[[100, 200], 0, :2].ravel()
    places = (0.44521, -0.89500, -0.98166, -0.18160)
    names = [f"W5, rubber pendulum: {x}({t} s), m" for t in (0.4, 0.8) for x in "xy"]
    references = dict(zip(names, places, strict=True))
    yield from rows("geometrically exact beam", 2e-3, tip, references, absolute=True)
    source, tumbling = "extrapolated, another program", test_published_cases.tumbling_run()
    exact = {"W7, tumbling L: kinetic energy at 2.5 s, J": 628.5, "energy after 5 s, J": 2433.0}
    yield from rows(source, 0.01, [tumbling.kinetic, tumbling.total[0]], exact)
    yield from rows(source, 0.05, [tumbling.elastic], {"elastic energy at 2.5 s, J": 209.0})
    names = [f"angular momentum {x} at 5 s, kg m²/s" for x in "xyz"]
    spin = dict(zip(names, (15486, 8690, -10955), strict=True))
    # The bound is 1 % of the magnitude, 20865 kg m²/s
    yield from rows(source, 209.0, tumbling.spin[1], spin, absolute=True)
    energy, angles = test_published_cases.twisting_column((6, 3, 3), 1e-3)
    yield from rows("closed form", 1e-4, [energy], {"W9, twisting column: energy, J": 3031875.0})
    for t, angle, exact, bound in zip(
        (0.04, 0.08, 0.12), angles, (3.59, 5.55, 4.46), (0.03, 0.06, 0.10), strict=True
    ):
        name = f"rotation of the tip at {t} s, rad"
        yield Row(name, exact, "another program", float(angle), bound, absolute=True)
    run, values, exact = test_conserving.breathing(
        0.3, 100, mbd.dynamics.GeneralizedAlpha.conserving()
    )
    name = "W11, spinning ring in free flight: greatest stretch"
    yield from rows("thin ring", 2e-3, [values.max()], {name: float(exact.max())})
    name = "change of energy, relative"
    yield from rows("law", 1e-8, [test_conserving.changes(run)[0]], {name: 0.0}, absolute=True)
    forces = test_mesh_bodies.forces_of_both_rods()
    name = "W13, slider-crank: greatest difference of joint forces, relative"
    off = np.abs(forces[0] - forces[1]).max() / np.abs(forces[0]).max()
    yield from rows("reduced body", 0.02, [off], {name: 0.0}, absolute=True)


# ---- Steady and periodic motions


def steady_and_periodic_motions() -> Iterator[Row]:
    """Whirl of a rotor below and above its critical speed, folds, and cycles."""
    model, zeta = test_steady_whirl, 0.02
    # The critical damping is 2 m ω
    critical, half_critical = model.CRITICAL, model.MASS * model.CRITICAL
    for ratio in (0.5, 0.99, 1.5, 5.0):
        speed = ratio * critical
        state = mbd.equilibrium(model.jeffcott(speed, 2 * zeta * half_critical), spin=(speed, 0, 0))
        exact = ratio**2 / abs(1 - ratio**2 + 2j * zeta * ratio)
        name = f"rotor with 2 % damping: whirl over eccentricity at {ratio} of the critical speed"
        value = np.hypot(*state.q[1:3]) / model.OFFSET
        yield from rows("closed form", 1e-8, [value], {name: exact})
    damping, cubic = 2 * 0.04 * half_critical, 1e9  # N s/m, and N/m³ of the support
    curve = mbd.analyses.continuation(
        lambda speed: model.jeffcott(speed, damping, cubic),
        (0.9 * critical, 1.5 * critical),
        spin=lambda speed: (speed, 0, 0),
        longest=0.1,
    )
    names = [f"stiffening support: {end} fold of the whirl, rad/s" for end in ("lower", "upper")]
    folds = dict(zip(names, model.duffing_folds(damping, cubic), strict=True))
    yield from rows("closed form", 1e-6, np.sort(curve.parameter[curve.folds]), folds)
    mu, (period, multipliers) = 1.5, test_periodic.van_der_pol(1.5)
    cycle = test_periodic.van_der_pol_cycle(mu, 0.002)
    name = f"Van der Pol's oscillator, μ = {mu}: period, s"
    yield from rows("SciPy", 1e-5, [cycle.period], {name: period})
    name, value = "its multiplier", float(np.abs(cycle.multipliers).min())
    yield from rows("SciPy", 1e-3, [value], {name: multipliers[0]})
    speed, steps = 200.0, 300
    engine, period = test_periodic.crank(speed=speed), 4 * np.pi / speed
    options: Any = {"dt": period / steps, "tolerance": 1e-13}
    cycle = mbd.analyses.periodic(engine, period, closed=1e-11, **options)
    run = mbd.simulate(engine, t_end=20 * period, **options)
    forces = [[r.joint(j.name).force[-steps - 1 :] for j in engine.joints] for r in (cycle, run)]
    off = max(np.abs(x - y).max() / np.abs(y).max() for x, y in zip(*forces, strict=True))
    name = "engine with a flexible rod: greatest difference of joint forces, relative"
    yield from rows("the last of 20 cycles", 1e-7, [off], {name: 0.0}, absolute=True)


# ---- Stability of periodic motions


def parametric_excitation() -> Iterator[Row]:
    """Boundaries of instability: Mathieu's equation and a shaft with two stiffnesses."""
    epsilon, q = 0.4, 0.8

    def trace(delta: float) -> float:
        """Return the sum of the multipliers, which is ±2 at a boundary."""
        system = test_periodic.oscillator(lambda t, x, v: -(delta + epsilon * np.cos(t)) * x)
        motion = mbd.analyses.harmonic_balance(system, 2 * np.pi, num_harmonics=4)
        return float(motion.multipliers.sum().real)

    for name, exact, limit in (
        ("a₀", mathieu_a(0, q) / 4, 2.0),
        ("b₁", mathieu_b(1, q) / 4, -2.0),
        ("a₁", mathieu_a(1, q) / 4, -2.0),
        ("b₂", mathieu_b(2, q) / 4, 2.0),
    ):
        bracket = exact - 0.03, exact + 0.03
        delta = brentq(lambda x, limit=limit: trace(x) - limit, *bracket, xtol=1e-10)
        name = f"Mathieu, ε = {epsilon}: δ at the boundary {name}"
        yield from rows("SciPy", 1e-7, [delta], {name: exact}, absolute=True)

    def growth(speed: float) -> float:
        """Return the largest multiplier of the shaft."""
        system = test_periodic.two_stiffnesses(speed)
        motion = mbd.analyses.harmonic_balance(system, 2 * np.pi / speed, num_harmonics=1)
        return float(np.abs(motion.multipliers).max())

    squares = test_periodic.SOFT / test_periodic.MASS, test_periodic.STIFF / test_periodic.MASS
    for name, exact in zip(("lower", "upper"), np.sqrt(squares), strict=True):
        # Stable multipliers have the magnitude 1; 1e-5 is above their numerical errors
        bracket = 0.97 * exact, 1.02 * exact
        speed = bisect(lambda x: growth(x) - 1 - 1e-5, *bracket, xtol=1e-7 * exact)
        name = f"shaft: {name} end of the unstable speeds, rad/s"
        yield from rows("closed form", 1e-6, [speed], {name: exact})
    speed = 1.1 * np.sqrt(squares[0])
    # Coefficients of λ² and of 1 in the characteristic polynomial of the shaft
    terms = sum(squares) + 2 * speed**2, np.prod([x - speed**2 for x in squares])
    exact = np.exp(np.roots([1, 0, terms[0], 0, terms[1]]).real.max() * 2 * np.pi / speed)
    name = "growth in a turn between them"
    yield from rows("closed form", 1e-6, [growth(speed)], {name: exact})


# ---- Tables

CASES: dict[str, Callable[[], Iterator[Row]]] = {
    "V1": planar_motion,
    "V2": rigid_engine,
    "V3": spatial_crank_slider,
    "V4": flexible_slider_crank,
    "V5": spinning_up,
    "V6": rotating_cantilever,
    "V7": closed_forms,
    "V8": free_solids,
    "V9": craig_bampton,
    "V10": free_rotation,
    "V11": same_body_in_exudyn,
    "V12": andrews_mechanism,
    "V13": four_bar_chain,
    "V17": derivatives,
    "V18": mesh_bodies_at_rest,
    "V19": mesh_bodies_in_motion,
    "V20": parametric_excitation,
    "V21": steady_and_periodic_motions,
}
"""Functions by the names of the cases; the first line of a docstring is the title."""


def table(results: Iterable[Row]) -> str:
    """Return rows as a table in Markdown."""
    head = ["quantity", "reference", "source", "dolfinx_mbd", "deviation", "bound"]
    lines = [head, ["---"] * len(head)]
    for row in results:
        kind = " abs" if row.absolute else ""
        mark = "" if row.passed else " **exceeded**"
        numbers = f"{row.reference:.10g}", row.source, f"{row.value:.10g}"
        limits = f"{row.deviation:.1e}{kind}{mark}", f"{row.bound:.1e}{kind}"
        lines.append([row.quantity, *numbers, *limits])
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    padded = (" | ".join(map(str.ljust, line, widths)) for line in lines)
    return "\n".join(f"| {line} |" for line in padded)


def markdown(name: str) -> str:
    """Return the table of a case for the documentation.

    Args:
        name: Name of the case, for example `V6`.

    Raises:
        AssertionError: A deviation exceeds its bound.
    """
    results = list(CASES[name]())
    text = table(results)
    if not all(row.passed for row in results):
        raise AssertionError(f"{name}:\n{text}")
    return text


def main() -> int:
    """Print the tables of the requested cases, and return 1 if a deviation exceeds its bound."""
    parser = argparse.ArgumentParser(description="Compute the reference cases.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"default: {' '.join(CASES)}")
    chosen = parser.parse_args().cases or list(CASES)
    if unknown := set(chosen) - set(CASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the cases are {', '.join(CASES)}")
    exceeded, count = [], 0
    for name in chosen:
        begin = time.perf_counter()
        results = list(CASES[name]())
        print(f"\n{name}: {CASES[name].__doc__}\n")
        print(table(results) if results else "left out: its other program is not installed")
        print(f"\n{time.perf_counter() - begin:.1f} s", flush=True)
        exceeded += [f"{name}: {row.quantity}" for row in results if not row.passed]
        count += len(results)
    print(f"\n{count} numbers, {len(exceeded)} beyond their bounds", *exceeded, sep="\n  ")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
