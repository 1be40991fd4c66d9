"""Predefined mechanisms without redundant constraints: slider-crank and inline engine."""

from dolfinx_mbd.mechanism.mechanisms.crank_parts import (
    ALONG_X,
    linear_torque,
    rigid_rod,
    rod_length,
)
from dolfinx_mbd.mechanism.mechanisms.gas import AMBIENT_PRESSURE, FourStrokePressure, PressureTable
from dolfinx_mbd.mechanism.mechanisms.inline_engine import EngineDesign, inline_engine
from dolfinx_mbd.mechanism.mechanisms.kinematics import CrankMotion, SliderCrank
from dolfinx_mbd.mechanism.mechanisms.slider_crank import slider_crank

__all__ = [
    "ALONG_X",
    "AMBIENT_PRESSURE",
    "CrankMotion",
    "EngineDesign",
    "FourStrokePressure",
    "PressureTable",
    "SliderCrank",
    "inline_engine",
    "linear_torque",
    "rigid_rod",
    "rod_length",
    "slider_crank",
]
