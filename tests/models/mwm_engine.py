"""Two models of the MWM six-cylinder engine (Mendes, Meirelles, Zampieri, IMechE K 222, 2008).

`chain` and `torques` are the nine-mass model in the package; `reference` is a program of its own in
NumPy that solves the same equations in the frequency domain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.mechanism.mechanisms import (
    CylinderTorque,
    PressureMap,
    SliderCrank,
    TorsionalChain,
)

DATA = Path(__file__).parents[2] / "demos" / "data"
RPM = np.pi / 30
# INERTIAS in kg m², STIFFNESSES in N m/rad, PHASES of cylinders in rad; RADIUS of the crank, length
# ROD and BORE in m, MASS: oscillating mass of a cylinder in kg, LOSS: loss factor of the shafts
INERTIAS = np.array([0.0170, 0.0090, 0.0467, 0.0327, 0.0467, 0.0467, 0.0327, 0.0487, 2.0750])
STIFFNESSES = 1e6 * np.array([1.106, 1.631, 1.253, 1.253, 1.678, 1.253, 1.253, 1.976])
PHASES = 2 * np.pi / 3 * np.array([0, 4, 2, 5, 1, 3])
RADIUS, ROD, BORE, MASS, LOSS = 0.0685, 0.207, 0.105, 2.521, 0.035
FREQUENCIES = [216.5836, 592.7405, 984.9230, 1171.017, 1415.995, 1660.044, 1794.388, 2993.474]
"""Natural frequencies of the undamped chain without the rigid rotation, Hz."""

CURVE_PEAK = 15.2
"""Peak of the pressure curve `mwm_pressure.csv`, whose scale is arbitrary."""

# Published values.
PEAKS = {
    1000.0: (2031.523, 564.242),
    1500.0: (3315.943, 828.200),
    2000.0: (4522.479, 2475.539),
    2150.0: (8609.589, 6118.327),
    2165.8: (8820.712, 6259.963),
    2200.0: (8004.373, 5462.653),
    2400.0: (3080.687, 1149.075),
}
"""Peak, and amplitude of order 6, of the elastic torque in shaft 8, N m, at speeds in rpm."""


def tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the tables of pressure over the angle and of peaks over the speed."""
    names = "mwm_pressure.csv", "mwm_peak_pressure.csv"
    curve, peaks = (np.loadtxt(DATA / name, delimiter=",") for name in names)
    return curve, peaks


def chain() -> TorsionalChain:
    """Return the chain of nine masses; 2 N m s/rad damp the six cranks of cylinders."""
    damping = np.array([0.0, 0.0, *[2.0] * 6, 0.0])
    return TorsionalChain(INERTIAS, STIFFNESSES, damping=damping, loss_factor=LOSS)


def gas() -> PressureMap:
    """Return the pressure; angle 0 is the firing top dead centre, at 360° of the table."""
    curve, peaks = tables()
    degrees = np.union1d(curve[:, 0], np.arange(0.0, 721.0, 10.0))
    shape = np.interp(degrees, *curve.T) / CURVE_PEAK
    return PressureMap(
        np.radians(degrees) - 2 * np.pi,
        peaks[:, 0] * RPM,
        1e6 * np.outer(peaks[:, 1], shape),
        interpolation="linear",
    )


def torques() -> dict[int, CylinderTorque]:
    """Return the torques of gas and oscillating masses, by inertias 3 to 8, the cranks.

    The kinematics are exact.
    """
    crank, pressure = SliderCrank(RADIUS, ROD), gas()
    return {
        k + 3: CylinderTorque(pressure, crank, BORE, MASS, 2 * np.pi - phase, ambient=0.0)
        for k, phase in enumerate(PHASES)
    }


def cylinder_torque(angle: Any, speed: float) -> np.ndarray:
    """Return the torque of a cylinder with the series of the inertia force in the reference."""
    curve, peaks = tables()
    a, ratio = np.mod(angle, 4 * np.pi), RADIUS / ROD
    peak = np.interp(speed / RPM, *peaks.T) * 1e6  # Pa
    p = np.interp(np.degrees(a), *curve.T) / CURVE_PEAK * peak
    # acceleration of the piston over r ω², without terms above order 6
    series = np.cos(a) + ratio * np.cos(2 * a)
    series += -(ratio**3) / 4 * np.cos(4 * a) + 9 * ratio**5 / 128 * np.cos(6 * a)
    force = p * np.pi * BORE**2 / 4 - MASS * RADIUS * speed**2 * series
    rod_angle = np.arcsin(ratio * np.sin(a))
    return np.asarray(force * RADIUS * np.sin(a + rod_angle) / np.cos(rod_angle))


def series_torques() -> dict[int, Any]:
    """Return the torques of the reference as functions of angle and speed."""
    return {
        k + 3: lambda angle, speed, phase=phase: cylinder_torque(angle + phase, speed)
        for k, phase in enumerate(PHASES)
    }


def reference(
    rpm: float, samples: int = 1440, loss_frequency: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the amplitudes of the 24 half orders of the torques in the shafts, and their orders.

    With a `loss_frequency` (Hz), viscous damping replaces the loss factor; both agree at it.

    Returns:
        Complex amplitudes, shape (24, 8), N m, and orders, shape (24,).
    """
    speed, n = rpm * RPM, len(INERTIAS)
    lines = np.fft.rfft(cylinder_torque(4 * np.pi * np.arange(samples) / samples, speed))
    K = np.zeros((n, n))
    for i, k in enumerate(STIFFNESSES):
        K[i : i + 2, i : i + 2] += k * np.array([[1.0, -1.0], [-1.0, 1.0]])
    C = np.diag([0.0, 0.0, *[2.0] * 6, 0.0])
    orders, result = 0.5 * np.arange(1, 25), np.zeros((24, 8), dtype=complex)
    for i, order in enumerate(orders):
        force = np.zeros(n, dtype=complex)
        force[2:8] = 2 * lines[i + 1] / samples * np.exp(1j * order * PHASES)
        w = order * speed
        ratio = 1.0 if loss_frequency is None else w / (2 * np.pi * loss_frequency)
        A = K * (1 + 1j * LOSS * ratio) + 1j * w * C - w * w * np.diag(INERTIAS)
        result[i] = STIFFNESSES * np.diff(np.linalg.solve(A, force))
    return result, orders
