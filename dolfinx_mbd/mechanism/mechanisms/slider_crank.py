"""Slider-crank mechanisms without redundant constraints.

The reduced body determines the dimensions of the rod. In space, a slider-crank has no redundant
constraints if it has a revolute main bearing, a cylindrical crank pin, a spherical piston pin and a
prismatic guide: 18 − 17 = 1 degree of freedom.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import number
from dolfinx_mbd.mechanism.bodies import Ground
from dolfinx_mbd.mechanism.joints import revolute
from dolfinx_mbd.mechanism.mechanisms.crank_parts import (
    ENDS,
    CylinderParts,
    Torque,
    create_crank,
    create_drive,
    guide_frame,
)
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign
from dolfinx_mbd.mechanism.protocol import Frame
from dolfinx_mbd.mechanism.system import System

_DIMENSIONS = ("crank_radius", "crank_mass", "crank_inertia", "piston_mass", "pin_offset")
"""Attributes of `EngineDesign` that a slider-crank has."""


def slider_crank(
    rod: ReducedBody,
    *,
    speed: float | None = None,
    torque: Torque | float | None = None,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    stiffening: bool | None = None,
    ends: tuple[str, str] = ENDS,
    **dimensions: Any,
) -> System:
    """Create a slider-crank.

    The bodies are ``crank``, ``rod`` and ``piston``; the joints are ``main``, ``crank pin``,
    ``piston pin`` and ``guide``. The crank rotates about z, and the piston moves along x.

    Args:
        rod: The rod. It is rigid if it has no elastic coordinates (`ReducedBody.rigid`).
        speed: Constant speed of the crank, rad/s; the driver is named ``drive``.
        torque: Torque on the crank instead of a speed, N m: a number or a function
            ``torque(t, angle, speed)``.
        angle: Initial crank angle, rad; at 0 the crank is along x, which is top dead centre if
            there is no offset.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².
        damping_ratio: Damping ratio of the modes of the rod; see `FlexibleBody`.
        stiffening: Whether geometric stiffening of the rod acts; see `FlexibleBody`.
        ends: Names of the interfaces of the rod at the crank and at the piston.
        **dimensions: `crank_radius`, `crank_mass`, `crank_inertia`, `piston_mass` and `pin_offset`
            of `EngineDesign`, with its definitions and defaults.

    Raises:
        InputError: An argument is invalid, the bores of the rod do not fit a planar mechanism, or
            not exactly one of speed and torque is given.
        TypeError: There is no such argument.
    """
    unknown = sorted(set(dimensions) - set(_DIMENSIONS))
    if unknown:
        raise TypeError(f"slider_crank() got an unexpected keyword argument {unknown[0]!r}")
    angle = number("angle", angle, unit="rad")
    drivers, loads = create_drive(speed, torque, angle)
    design = EngineDesign(cylinders=1, **dimensions)
    radius, offset = design.crank_radius, float(design.pin_offsets[0])
    parts = CylinderParts(
        rod, ends, damping_ratio, stiffening, radius, design.piston_mass, 0.6 * radius, offset
    )
    ground = Ground({"main": Frame(), "guide": guide_frame(offset)})
    inertia = design.crank_inertia, 0.0
    crank = create_crank(radius, design.crank_mass, inertia, {"pin": (0.0, 0.0)}, angle)
    bodies, joints = parts.create(ground.frame("guide"), crank.frame("pin"), "", angle, 0.0)
    main = revolute("main", ground.frame("main"), crank.frame("main"))
    return System(
        [ground, crank, *bodies], [main, *joints], drivers=drivers, loads=loads, gravity=gravity
    )
