"""Journal bearings with oil films."""

from dolfinx_mbd.bearings.asperities import Asperities
from dolfinx_mbd.bearings.film_bearing import FilmBearing
from dolfinx_mbd.bearings.oil_film import OilFilm
from dolfinx_mbd.bearings.short_bearing import ShortBearing

__all__ = ["Asperities", "FilmBearing", "OilFilm", "ShortBearing"]
