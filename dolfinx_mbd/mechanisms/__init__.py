"""Ready mechanisms: the slider-crank and the inline engine, with joints that are not redundant."""

from __future__ import annotations

from dolfinx_mbd.mechanisms.engines import (
    firing_angles,
    inline_engine,
    linear_torque,
    rigid_rod,
    rod_length,
    slider_crank,
)
from dolfinx_mbd.mechanisms.gas import FourStrokePressure
from dolfinx_mbd.mechanisms.kinematics import CrankMotion, SliderCrank

__all__ = [
    "CrankMotion",
    "FourStrokePressure",
    "SliderCrank",
    "firing_angles",
    "inline_engine",
    "linear_torque",
    "rigid_rod",
    "rod_length",
    "slider_crank",
]
