"""Export of reduced bodies to the file formats of other programs.

The examples of this folder assume the following lines:

    >>> import numpy as np
    >>> from dolfinx.mesh import create_box, locate_entities_boundary
    >>> from mpi4py import MPI
    >>> import dolfinx_mbd as mbd
    >>> from dolfinx_mbd.io.export import *
    >>> box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.02)], [2, 1, 1])
    >>> left = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    >>> right = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.2))
    >>> ends = {"left": left, "right": right}
    >>> body = mbd.reduce(box, mbd.STEEL, interfaces=ends, num_modes=2).body
"""

from dolfinx_mbd.io.export.common import FORMATS, OPTIONS, ExportReport, Format, export
from dolfinx_mbd.io.export.units import SI, UNITS, Units

__all__ = ["FORMATS", "OPTIONS", "SI", "UNITS", "ExportReport", "Format", "Units", "export"]
