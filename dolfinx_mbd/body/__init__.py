"""The waist of the package: a reduced flexible body as plain NumPy data.

Everything that knows a mesh makes such a body, everything that knows a mechanism uses one, and
neither knows the other.  Nothing here imports DOLFINx.
"""

from __future__ import annotations

from dolfinx_mbd.body.files import BodyFileError, load_body, save_body
from dolfinx_mbd.body.parts import Interface, Mode, Skin, Station, Stiffening
from dolfinx_mbd.body.reduced_body import ReducedBody

__all__ = [
    "BodyFileError",
    "Interface",
    "Mode",
    "ReducedBody",
    "Skin",
    "Station",
    "Stiffening",
    "load_body",
    "save_body",
]
