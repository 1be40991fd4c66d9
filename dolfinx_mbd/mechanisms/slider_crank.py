"""Slider-crank mechanisms without redundant constraints.

The reduced body determines the dimensions of the rod. In space, a slider-crank has no redundant
constraints if it has a revolute main bearing, a cylindrical crank pin, a spherical piston pin and a
prismatic guide: 18 − 17 = 1 degree of freedom.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import number
from dolfinx_mbd.mechanisms.inline_engine import EngineDesign
from dolfinx_mbd.mechanisms.parts import (
    ALONG_X,
    ENDS,
    CylinderParts,
    Torque,
    create_crank,
    create_drive,
)
from dolfinx_mbd.multibody.model.bodies import Ground
from dolfinx_mbd.multibody.model.joints import revolute
from dolfinx_mbd.multibody.model.protocol import Frame
from dolfinx_mbd.multibody.system import System


def slider_crank(
    rod: ReducedBody,
    *,
    crank_radius: float = EngineDesign.crank_radius,
    crank_mass: float = EngineDesign.crank_mass,
    piston_mass: float = EngineDesign.piston_mass,
    crank_inertia: float | None = None,
    speed: float | None = None,
    torque: Torque | float | None = None,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    stiffening: bool | None = None,
    ends: tuple[str, str] = ENDS,
) -> System:
    """Create a slider-crank.

    The bodies are ``crank``, ``rod`` and ``piston``; the joints are ``main``, ``crank pin``,
    ``piston pin`` and ``guide``. The crank rotates about z, and the piston moves along x.

    Args:
        rod: The rod. It is rigid if it has no elastic coordinates (`ReducedBody.rigid`).
        crank_radius: Crank radius, m. The defaults of the radius and the masses are the defaults of
            `EngineDesign`.
        crank_mass: Mass of the crank, kg.
        piston_mass: Mass of the piston, kg.
        crank_inertia: Moment of inertia of the crank about the shaft, kg m²; by default the inertia
            of a disc with the crank radius.
        speed: Constant speed of the crank, rad/s; the driver is named ``drive``.
        torque: Torque on the crank instead of a speed, N m: a number or a function
            ``torque(t, angle, speed)``.
        angle: Initial crank angle, rad; 0 is top dead centre.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².
        damping_ratio: Damping ratio of the modes of the rod; see `FlexibleBody`.
        stiffening: Whether geometric stiffening of the rod acts; see `FlexibleBody`.
        ends: Names of the interfaces of the rod at the crank and at the piston.

    Raises:
        InputError: An argument is invalid, the bores of the rod do not fit a planar mechanism, or
            not exactly one of speed and torque is given.
    """
    angle = number("angle", angle, unit="rad")
    drivers, loads = create_drive(speed, torque, angle)
    radius = number("crank_radius", crank_radius, positive=True, unit="m")
    parts = CylinderParts(rod, ends, damping_ratio, stiffening, radius, piston_mass, 0.6 * radius)
    ground = Ground({"main": Frame(), "guide": Frame((0.0, 0.0, 0.0), ALONG_X)})
    crank = create_crank(radius, crank_mass, (crank_inertia, 0.0), {"pin": (0.0, 0.0)}, angle)
    bodies, joints = parts.create(ground, crank, "", angle, 0.0)
    main = revolute("main", ground.frame("main"), crank.frame("main"))
    return System(
        [ground, crank, *bodies], [main, *joints], drivers=drivers, loads=loads, gravity=gravity
    )
