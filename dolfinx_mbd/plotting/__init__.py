"""Pictures of reduced bodies and mechanisms, and animations of their motion, from plain data.

    plot_modes(body)                        the first modes
    plot_system(engine, names=True)         a mechanism, before it is run
    animate(run, "engine.gif", scale=50)    its motion

No mesh, no DOLFINx and no display is needed; pyvista is (`pip install pyvista`).  A notebook shows
what these functions return; nothing waits for a window to be closed.

Note: Not collective; under MPI one rank draws.
"""

from __future__ import annotations

from dolfinx_mbd.plotting.charts import campbell_diagram, plot_energies
from dolfinx_mbd.plotting.geometry import skin_displacement, skin_points
from dolfinx_mbd.plotting.mechanism import plot_system
from dolfinx_mbd.plotting.movie import Animation, animate
from dolfinx_mbd.plotting.output import Picture
from dolfinx_mbd.plotting.pictures import plot_body, plot_modes
from dolfinx_mbd.plotting.response import plot_response, plot_spectrum
from dolfinx_mbd.plotting.stress import plot_skin

__all__ = [
    "Animation",
    "Picture",
    "animate",
    "campbell_diagram",
    "plot_body",
    "plot_energies",
    "plot_modes",
    "plot_response",
    "plot_skin",
    "plot_spectrum",
    "plot_system",
    "skin_displacement",
    "skin_points",
]
