"""Four-stroke inline and V engines with a rigid crank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import flag
from dolfinx_mbd.mechanism.joints import JointClearance
from dolfinx_mbd.mechanism.mechanisms.crank_parts import ENDS, Torque
from dolfinx_mbd.mechanism.mechanisms.engine import engine
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign
from dolfinx_mbd.mechanism.system import System


def inline_engine(
    rod: ReducedBody | Sequence[ReducedBody],
    design: EngineDesign | None = None,
    *,
    speed: float | None = None,
    torque: Torque | float | None = None,
    pressure: Callable[..., ArrayLike] | None = None,
    gas: bool = True,
    angle: float = 0.0,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    damping_ratio: float | None = None,
    stiffening: bool | None = None,
    ends: tuple[str, str] = ENDS,
    bearings: Mapping[str, JointClearance | Sequence[JointClearance | None]] | None = None,
) -> System:
    """Create a four-stroke inline or V engine with a rigid crank, a short form of `engine`.

    The bodies are ``crank`` and, for cylinder k, ``rod k`` and ``piston k``; the joints are
    ``main``, ``crank pin k``, ``piston pin k`` and ``guide k``; the loads are ``gas k``; the driver
    or torque is ``drive``. Crank angle 0 is the firing top dead centre of the first cylinder to
    fire; see `EngineDesign` for pistons with an offset.

    Args:
        rod: Reduced rod of all cylinders, or one reduced rod for each cylinder.
        design: Dimensions, masses and firing order; by default those of `EngineDesign()`, a
            three-cylinder engine.
        speed: Constant speed of the crank, rad/s.
        torque: Torque on the crank instead of a speed, N m: a number or a function
            ``torque(t, angle, speed)``.
        pressure: Absolute gas pressure (Pa) as a function of the crank angle (rad) from firing top
            dead centre, of period 4π, for example a `PressureTable`, or of angle and speed, such as
            a `PressureMap`; by default `FourStrokePressure` with a peak of 91 bar.
        gas: Whether gas forces act on the pistons.
        angle: Initial crank angle, rad.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².
        damping_ratio: Damping ratio of the modes of the rods; see `FlexibleBody`.
        stiffening: Whether geometric stiffening of the rods acts; see `FlexibleBody`.
        ends: Names of the interfaces of the rod at the crank and at the piston.
        bearings: Bearings of the ``big_end``, the ``small_end`` and ``main``, each a `Clearance` or
            a `bearings.OilFilm`, or a list with one for each cylinder; the others (None) are ideal.
            The first frame of ``crank pin k`` is then the bore of the rod. The elements are ``crank
            pin k contact`` and so on.

    Raises:
        InputError: An argument is invalid, the bores of the rod do not fit, or not exactly one of
            speed and torque is given.
    """
    gas = flag("gas", gas)
    return engine(
        rod,
        design,
        speed=speed,
        torque=torque,
        pressure=(True if pressure is None else pressure) if gas else False,
        angle=angle,
        gravity=gravity,
        damping_ratio=damping_ratio,
        stiffening=stiffening,
        ends=ends,
        bearings=bearings,
    )
