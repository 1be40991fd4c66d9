"""Journal bearings with oil films.

A bearing is a load between two frames, one on the bore and one on the journal:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ground = mbd.Ground({"bore": mbd.Frame()})
    >>> rotor = mbd.RigidBody("rotor", 5.0, [0.01] * 3, frames={"journal": mbd.Frame()})
    >>> ends = ground.frame("bore"), rotor.frame("journal")
    >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
    >>> film = mbd.bearings.ShortBearing("film", *ends, **size, viscosity=0.01)
    >>> mbd.System([ground, rotor], loads=[film], gravity=(0, -9.81, 0))
    <System: 2 bodies, 0 joints, 0 drivers, 1 loads; 6 velocities (0 elastic), 0 constraints>
"""

from dolfinx_mbd.mechanism.bearings.asperities import Asperities
from dolfinx_mbd.mechanism.bearings.coefficients import (
    BearingCoefficients,
    bearing_coefficients,
    whirl_threshold,
)
from dolfinx_mbd.mechanism.bearings.elastic_bearing import ElasticBearing
from dolfinx_mbd.mechanism.bearings.film_bearing import FilmBearing
from dolfinx_mbd.mechanism.bearings.finite_bearing import FiniteBearing
from dolfinx_mbd.mechanism.bearings.oil_film import OilFilm
from dolfinx_mbd.mechanism.bearings.results import FilmFields, film_fields, journal_motion
from dolfinx_mbd.mechanism.bearings.reynolds_grid import ReynoldsGrid
from dolfinx_mbd.mechanism.bearings.short_bearing import ShortBearing
from dolfinx_mbd.mechanism.bearings.supply import Oil, OilSupply, vogel

__all__ = [
    "Asperities",
    "BearingCoefficients",
    "ElasticBearing",
    "FilmBearing",
    "FilmFields",
    "FiniteBearing",
    "Oil",
    "OilFilm",
    "OilSupply",
    "ReynoldsGrid",
    "ShortBearing",
    "bearing_coefficients",
    "film_fields",
    "journal_motion",
    "vogel",
    "whirl_threshold",
]
