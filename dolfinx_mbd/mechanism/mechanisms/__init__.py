"""Predefined mechanisms: slider-crank, engines, gas pressures and torsional chains."""

from dolfinx_mbd.mechanism.mechanisms.crank_parts import (
    ALONG_X,
    linear_torque,
    rigid_rod,
    rod_length,
)
from dolfinx_mbd.mechanism.mechanisms.cylinder_torque import (
    HALF_ORDERS,
    CylinderTorque,
    torque_orders,
)
from dolfinx_mbd.mechanism.mechanisms.engine import engine
from dolfinx_mbd.mechanism.mechanisms.engine_balance import EngineBalance, engine_balance
from dolfinx_mbd.mechanism.mechanisms.engine_block import EngineBlock
from dolfinx_mbd.mechanism.mechanisms.engine_crank import EngineCrank
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign
from dolfinx_mbd.mechanism.mechanisms.gas import AMBIENT_PRESSURE, FourStrokePressure, PressureTable
from dolfinx_mbd.mechanism.mechanisms.gas_map import PressureMap
from dolfinx_mbd.mechanism.mechanisms.inline_engine import inline_engine
from dolfinx_mbd.mechanism.mechanisms.kinematics import CrankMotion, SliderCrank
from dolfinx_mbd.mechanism.mechanisms.slider_crank import slider_crank
from dolfinx_mbd.mechanism.mechanisms.torsional import TorsionalChain, TorsionalResponse
from dolfinx_mbd.mechanism.mechanisms.torsional_damper import TorsionalDamper

__all__ = [
    "ALONG_X",
    "AMBIENT_PRESSURE",
    "HALF_ORDERS",
    "CrankMotion",
    "CylinderTorque",
    "EngineBalance",
    "EngineBlock",
    "EngineCrank",
    "EngineDesign",
    "FourStrokePressure",
    "PressureMap",
    "PressureTable",
    "SliderCrank",
    "TorsionalChain",
    "TorsionalDamper",
    "TorsionalResponse",
    "engine",
    "engine_balance",
    "inline_engine",
    "linear_torque",
    "rigid_rod",
    "rod_length",
    "slider_crank",
    "torque_orders",
]
