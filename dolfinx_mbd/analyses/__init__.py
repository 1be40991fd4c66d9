"""Analyses of a mechanism: simulation, equilibrium, linearization, known motions, spectra.

The examples of this folder, `stepping` and `results` use a pendulum of length 1 m that starts
horizontally, the same pendulum with a driver, and a simulation:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ground = mbd.Ground({"pin": mbd.Frame()})
    >>> bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (1, 0, 0), frames={"pin": mbd.Frame()})
    >>> pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    >>> pendulum = mbd.System([ground, bob], [pin], gravity=(0, -9.81, 0))
    >>> drive = mbd.Driver("drive", "pin", mbd.constant_speed(2.0))
    >>> driven = mbd.System([ground, bob], [pin], drivers=[drive], gravity=(0, -9.81, 0))
    >>> run = mbd.simulate(pendulum, t_end=0.5, dt=1e-3)
"""

from dolfinx_mbd.analyses.closed_run import (
    ClosedRun,
)
from dolfinx_mbd.analyses.continuation import (
    EquilibriumCurve,
    continuation,
)
from dolfinx_mbd.analyses.equilibrium import (
    equilibrium,
    quasi_static_motion,
)
from dolfinx_mbd.analyses.harmonic_balance import (
    HarmonicMotion,
    harmonic_balance,
)
from dolfinx_mbd.analyses.harmonic_curve import (
    HarmonicCurve,
    harmonic_curve,
)
from dolfinx_mbd.analyses.kinematic_analysis import (
    InverseDynamics,
    KinematicError,
    inverse_dynamics,
    kinematic_analysis,
)
from dolfinx_mbd.analyses.linearization import SteadyError, linearize
from dolfinx_mbd.analyses.linearized_system import LinearizedSystem
from dolfinx_mbd.analyses.load_identification import (
    IdentifiedLoads,
    identify_loads,
)
from dolfinx_mbd.analyses.orders_of_cycles import (
    orders_of_cycles,
)
from dolfinx_mbd.analyses.periodic import (
    PeriodicError,
    PeriodicMotion,
    periodic,
)
from dolfinx_mbd.analyses.run_up import (
    Waterfall,
    waterfall,
)
from dolfinx_mbd.analyses.simulation import (
    resume,
    simulate,
)
from dolfinx_mbd.analyses.simulator import (
    Simulator,
)
from dolfinx_mbd.analyses.spectra import (
    Spectrum,
    spectrum,
)
from dolfinx_mbd.analyses.speed_poles import (
    SpeedPoles,
    poles_over_speed,
)
from dolfinx_mbd.analyses.studies.sweep import (
    StudyError,
    sweep,
)
from dolfinx_mbd.lazy import names_in

__all__ = [
    "ClosedRun",
    "EquilibriumCurve",
    "HarmonicCurve",
    "HarmonicMotion",
    "IdentifiedLoads",
    "InverseDynamics",
    "KinematicError",
    "LinearizedSystem",
    "PeriodicError",
    "PeriodicMotion",
    "Simulator",
    "Spectrum",
    "SpeedPoles",
    "SteadyError",
    "StudyError",
    "Waterfall",
    "continuation",
    "equilibrium",
    "harmonic_balance",
    "harmonic_curve",
    "identify_loads",
    "inverse_dynamics",
    "kinematic_analysis",
    "linearize",
    "orders_of_cycles",
    "periodic",
    "poles_over_speed",
    "quasi_static_motion",
    "resume",
    "simulate",
    "spectrum",
    "sweep",
    "waterfall",
]

__getattr__ = names_in(__name__, "studies")
