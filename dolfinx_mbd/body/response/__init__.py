"""Small motions of a reduced body: linearization, frequency response and resonance peaks."""

from dolfinx_mbd.body.response.frequency_response import FrequencyResponse, frequency_response
from dolfinx_mbd.body.response.linearized import LinearizedBody, linearize_body
from dolfinx_mbd.body.response.resonance import HalfPower, half_power

__all__ = [
    "FrequencyResponse",
    "HalfPower",
    "LinearizedBody",
    "frequency_response",
    "half_power",
    "linearize_body",
]
