"""A rigid rotor with a constant speed in one oil film."""

from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.bearings import FilmBearing


def rigid_rotor(
    film: FilmBearing, mass: float, speed: float, load: float, place: np.ndarray
) -> mbd.System:
    """Return a rigid rotor at `place` (x, y) in an oil film, with a load along −y.

    The film is between the frames 'bore' of the ground and 'journal' of the rotor.
    """
    ground = mbd.Ground({"bore": mbd.Frame()})
    rotor = mbd.RigidBody(
        "rotor",
        mass,
        [1e-3 * mass] * 3,
        frames={"journal": mbd.Frame()},
        position=(*place, 0.0),
        omega=(0.0, 0.0, speed),
    )
    plane = mbd.mechanism.Joint("plane", "planar", ground.frame("bore"), rotor.frame("journal"))
    weight = mbd.force("weight", rotor.frame("journal"), (0.0, -load, 0.0))
    drive = mbd.Driver("drive", "plane", mbd.constant_speed(speed))
    return mbd.System([ground, rotor], [plane], drivers=[drive], loads=[film, weight])
