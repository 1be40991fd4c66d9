"""Assembly of the equations of motion, consistent initial states, and time steps."""

from dolfinx_mbd.dynamics.assembly.assembler import (
    AssemblyError,
)
from dolfinx_mbd.dynamics.assembly.redundancy import (
    Redundancy,
)
from dolfinx_mbd.dynamics.start.consistent_state import (
    consistent_state,
)
from dolfinx_mbd.dynamics.start.position_assembly import (
    redundancies,
)
from dolfinx_mbd.dynamics.start.quasi_static import (
    EquilibriumError,
)
from dolfinx_mbd.dynamics.stepping.implicit_euler import (
    ImplicitEuler,
)
from dolfinx_mbd.dynamics.stepping.integrators import (
    StepError,
    Stepper,
)
from dolfinx_mbd.dynamics.stepping.step_control import (
    Adaptive,
)
from dolfinx_mbd.lazy import names_in
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.time_integration import (
    GeneralizedAlpha,
)

__all__ = [
    "Adaptive",
    "AssemblyError",
    "EquilibriumError",
    "GeneralizedAlpha",
    "ImplicitEuler",
    "Redundancy",
    "StepError",
    "Stepper",
    "System",
    "consistent_state",
    "redundancies",
]

__getattr__ = names_in(__name__, "assembly", "start", "stepping")
