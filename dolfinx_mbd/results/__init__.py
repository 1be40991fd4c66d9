"""Results of a run: histories, tables, sensors, checks and files."""

from dolfinx_mbd.results.files.run_files import (
    RunFileError,
)
from dolfinx_mbd.results.histories import (
    BodyHistory,
    ElementHistory,
    Energies,
    JointHistory,
)
from dolfinx_mbd.results.impacts import (
    Impact,
)
from dolfinx_mbd.results.run_comparison import (
    Difference,
)
from dolfinx_mbd.results.solution import (
    Solution,
)

__all__ = [
    "BodyHistory",
    "Difference",
    "ElementHistory",
    "Energies",
    "Impact",
    "JointHistory",
    "RunFileError",
    "Solution",
]
