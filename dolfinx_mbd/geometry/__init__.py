"""Builders of gmsh models and their meshes: parametric parts and parts from CAD files.

The examples of this folder assume the following lines:

    >>> import dolfinx_mbd as mbd
    >>> import gmsh
    >>> gmsh.initialize()
    >>> gmsh.option.setString("Geometry.OCCTargetUnit", "MM")
    >>> pin = gmsh.model.occ.addCylinder(0, 0, 0, 0, 0, 100, 10)  # length and radius in mm
    >>> gmsh.model.occ.synchronize()
    >>> gmsh.write("pin.step")
    >>> gmsh.finalize()
"""

from dolfinx_mbd.geometry.connecting_rod import ConnectingRod
from dolfinx_mbd.geometry.crankcase import Crankcase
from dolfinx_mbd.geometry.crankshaft import Crankshaft
from dolfinx_mbd.geometry.step import StepPart, step_surfaces

__all__ = ["ConnectingRod", "Crankcase", "Crankshaft", "StepPart", "step_surfaces"]
