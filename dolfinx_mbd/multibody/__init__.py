"""Mechanisms: rigid and reduced flexible bodies, joints, loads, and their motion over time.

The package uses plain NumPy, and numba if it is installed. It does not depend on meshes and
communicators.
"""

from dolfinx_mbd.multibody.analyses.equilibrium import equilibrium, quasi_static_motion
from dolfinx_mbd.multibody.analyses.kinematic_analysis import (
    InverseDynamics,
    KinematicError,
    inverse_dynamics,
    kinematic_analysis,
)
from dolfinx_mbd.multibody.analyses.linearization import LinearizedSystem, SteadyError, linearize
from dolfinx_mbd.multibody.analyses.load_identification import IdentifiedLoads, identify_loads
from dolfinx_mbd.multibody.analyses.run_up import Waterfall, waterfall
from dolfinx_mbd.multibody.analyses.simulation import resume, simulate
from dolfinx_mbd.multibody.analyses.simulator import Simulator
from dolfinx_mbd.multibody.analyses.spectra import Spectrum, spectrum
from dolfinx_mbd.multibody.assembly.assembler import AssemblyError
from dolfinx_mbd.multibody.assembly.redundancy import Redundancy
from dolfinx_mbd.multibody.contact.clearance import Clearance, GuideClearance
from dolfinx_mbd.multibody.contact.elements import (
    Contact,
    bore_contact,
    guide_contact,
    plane_contact,
    sphere_contact,
)
from dolfinx_mbd.multibody.contact.gears import GearPair
from dolfinx_mbd.multibody.contact.laws import (
    ContactLaw,
    contact_damping,
    hertz_stiffness,
    line_stiffness,
)
from dolfinx_mbd.multibody.contact.stops import JointStop
from dolfinx_mbd.multibody.files.run_files import RunFileError
from dolfinx_mbd.multibody.model.bearing_tables import BearingTable
from dolfinx_mbd.multibody.model.bodies import (
    DEFAULT_DAMPING_RATIO,
    FlexibleBody,
    Ground,
    RigidBody,
)
from dolfinx_mbd.multibody.model.bushings import Bushing, TabulatedBearing
from dolfinx_mbd.multibody.model.force_elements import JointFriction, JointSpring, SpringDamper
from dolfinx_mbd.multibody.model.joints import (
    JOINT_KINDS,
    Driver,
    FrameRef,
    Joint,
    constant_speed,
    cylindrical,
    distance,
    fixed,
    planar,
    point_on_line,
    point_on_plane,
    prismatic,
    revolute,
    spherical,
    universal,
)
from dolfinx_mbd.multibody.model.law_elements import PairMotion
from dolfinx_mbd.multibody.model.loads import (
    FrameLoad,
    FrameMotion,
    JointCoordinate,
    JointLoad,
    force,
    torque,
)
from dolfinx_mbd.multibody.model.motions import differentiated, integrated
from dolfinx_mbd.multibody.model.pair_loads import PairLoad
from dolfinx_mbd.multibody.model.pattern_loads import PatternLoad, PatternRef
from dolfinx_mbd.multibody.model.placement import place
from dolfinx_mbd.multibody.model.protocol import Body, BodyState, Frame
from dolfinx_mbd.multibody.model.shapes import Shape, box_shape, cylinder_shape
from dolfinx_mbd.multibody.model.system import STANDARD_GRAVITY, State
from dolfinx_mbd.multibody.results.comparison import Difference
from dolfinx_mbd.multibody.results.histories import (
    BodyHistory,
    ElementHistory,
    Energies,
    JointHistory,
)
from dolfinx_mbd.multibody.results.impacts import Impact
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.sensitivities.functionals import Functional
from dolfinx_mbd.multibody.sensitivities.linear_sensitivities import (
    LinearSensitivities,
    linear_sensitivities,
)
from dolfinx_mbd.multibody.sensitivities.run_gradient import RunGradient, run_gradient
from dolfinx_mbd.multibody.sensitivities.run_sensitivities import (
    RunSensitivities,
    run_sensitivities,
)
from dolfinx_mbd.multibody.start.consistent_state import consistent_state
from dolfinx_mbd.multibody.start.position_assembly import redundancies
from dolfinx_mbd.multibody.start.quasi_static import EquilibriumError
from dolfinx_mbd.multibody.stepping.implicit_euler import ImplicitEuler
from dolfinx_mbd.multibody.stepping.integrators import StepError, Stepper
from dolfinx_mbd.multibody.stepping.step_control import Adaptive
from dolfinx_mbd.multibody.studies.sweep import StudyError, sweep
from dolfinx_mbd.multibody.system import System
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = [
    "DEFAULT_DAMPING_RATIO",
    "JOINT_KINDS",
    "STANDARD_GRAVITY",
    "Adaptive",
    "AssemblyError",
    "BearingTable",
    "Body",
    "BodyHistory",
    "BodyState",
    "Bushing",
    "Clearance",
    "Contact",
    "ContactLaw",
    "Difference",
    "Driver",
    "ElementHistory",
    "Energies",
    "EquilibriumError",
    "FlexibleBody",
    "Frame",
    "FrameLoad",
    "FrameMotion",
    "FrameRef",
    "Functional",
    "GearPair",
    "GeneralizedAlpha",
    "Ground",
    "GuideClearance",
    "IdentifiedLoads",
    "Impact",
    "ImplicitEuler",
    "InverseDynamics",
    "Joint",
    "JointCoordinate",
    "JointFriction",
    "JointHistory",
    "JointLoad",
    "JointSpring",
    "JointStop",
    "KinematicError",
    "LinearSensitivities",
    "LinearizedSystem",
    "PairLoad",
    "PairMotion",
    "PatternLoad",
    "PatternRef",
    "Redundancy",
    "RigidBody",
    "RunFileError",
    "RunGradient",
    "RunSensitivities",
    "Shape",
    "Simulator",
    "Solution",
    "Spectrum",
    "SpringDamper",
    "State",
    "SteadyError",
    "StepError",
    "Stepper",
    "StudyError",
    "System",
    "TabulatedBearing",
    "Waterfall",
    "bore_contact",
    "box_shape",
    "consistent_state",
    "constant_speed",
    "contact_damping",
    "cylinder_shape",
    "cylindrical",
    "differentiated",
    "distance",
    "equilibrium",
    "fixed",
    "force",
    "guide_contact",
    "hertz_stiffness",
    "identify_loads",
    "integrated",
    "inverse_dynamics",
    "kinematic_analysis",
    "line_stiffness",
    "linear_sensitivities",
    "linearize",
    "place",
    "planar",
    "plane_contact",
    "point_on_line",
    "point_on_plane",
    "prismatic",
    "quasi_static_motion",
    "redundancies",
    "resume",
    "revolute",
    "run_gradient",
    "run_sensitivities",
    "simulate",
    "spectrum",
    "sphere_contact",
    "spherical",
    "sweep",
    "torque",
    "universal",
    "waterfall",
]
