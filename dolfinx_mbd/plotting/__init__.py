"""Pictures of reduced bodies and mechanisms, animations, and charts.

    plot_modes(body)                        the first modes
    plot_system(engine)                     a mechanism before a simulation
    animate(run, "engine.gif", scale=50)    a simulated motion
    Report("engine")                        a page with checks, tables, pictures and scenes

Pictures need pyvista (`pip install pyvista`), charts need matplotlib; neither needs a mesh, DOLFINx
or a display. The functions raise `ImportError` if these packages are missing, and `OSError` if a
file cannot be written. Notebooks display the returned objects.

Note: Not collective; call these functions on one MPI rank.
"""

from dolfinx_mbd.plotting.charts import (
    campbell_diagram,
    plot_energies,
    plot_response,
    plot_spectrum,
    plot_waterfall,
)
from dolfinx_mbd.plotting.gltf_motion import write_gltf
from dolfinx_mbd.plotting.pictures.body_pictures import plot_body, plot_modes, plot_skin
from dolfinx_mbd.plotting.pictures.face_pictures import plot_faces
from dolfinx_mbd.plotting.pictures.mechanism_pictures import plot_system
from dolfinx_mbd.plotting.pictures.movie import Animation, animate
from dolfinx_mbd.plotting.pictures.output import Picture
from dolfinx_mbd.plotting.report import Report
from dolfinx_mbd.plotting.result_charts import (
    plot_film_pressure,
    plot_forces,
    plot_orbit,
    plot_polar_force,
    plot_work,
)
from dolfinx_mbd.plotting.scene.moving_surface import skin_displacement, skin_points
from dolfinx_mbd.plotting.viewer import notebook as notebook
from dolfinx_mbd.plotting.viewer.page import Player, player

__all__ = [
    "Animation",
    "Picture",
    "Player",
    "Report",
    "animate",
    "campbell_diagram",
    "player",
    "plot_body",
    "plot_energies",
    "plot_faces",
    "plot_film_pressure",
    "plot_forces",
    "plot_modes",
    "plot_orbit",
    "plot_polar_force",
    "plot_response",
    "plot_skin",
    "plot_spectrum",
    "plot_system",
    "plot_waterfall",
    "plot_work",
    "skin_displacement",
    "skin_points",
    "write_gltf",
]
