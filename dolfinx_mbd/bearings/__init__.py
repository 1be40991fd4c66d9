"""Journal bearings with oil films."""

from dolfinx_mbd.bearings.asperities import Asperities
from dolfinx_mbd.bearings.coefficients import (
    BearingCoefficients,
    bearing_coefficients,
    whirl_threshold,
)
from dolfinx_mbd.bearings.film_bearing import FilmBearing
from dolfinx_mbd.bearings.finite_bearing import FiniteBearing
from dolfinx_mbd.bearings.oil_film import OilFilm
from dolfinx_mbd.bearings.reynolds_grid import ReynoldsGrid
from dolfinx_mbd.bearings.short_bearing import ShortBearing
from dolfinx_mbd.bearings.supply import Oil, OilSupply, vogel

__all__ = [
    "Asperities",
    "BearingCoefficients",
    "FilmBearing",
    "FiniteBearing",
    "Oil",
    "OilSupply",
    "ReynoldsGrid",
    "ShortBearing",
    "bearing_coefficients",
    "vogel",
    "whirl_threshold",
]
__all__ = ["Asperities", "FilmBearing", "OilFilm", "ShortBearing"]
