"""Equivalent radiated power of a body: the sound power at a radiation efficiency of one.

    P(t) = ρ c ∫ v_n² dS

This is the power of a surface that is large compared with the wavelength of sound in the fluid. A
small or slowly vibrating surface radiates less. So does a surface whose parts move in opposite
directions within a wavelength. For most machines, the equivalent radiated power is therefore an
upper estimate. Use it to compare designs and to find the frequencies that matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import trapezoid

from dolfinx_mbd.analyses.run_up import Waterfall, waterfall
from dolfinx_mbd.analyses.spectra import spectrum
from dolfinx_mbd.arrays import freeze
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import array, flag, increasing, instance, number, object_with, reject
from dolfinx_mbd.durability.acoustics.radiating_surface import (
    RadiatingSurface,
    Where,
    radiating_surface,
)
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.results.histories import rotation_matrices

__all__ = ["PowerSpectrum", "RadiatedPower", "radiated_power"]

Array = NDArray[np.float64]

POWER_REFERENCE = 1e-12
"""Reference of sound power levels, W."""

VELOCITY_REFERENCE = 5e-8
"""Reference of velocity levels, m/s: in a fluid with ρc = 400 N s/m³, an area of 1 m² with this
velocity (RMS) has the power of `POWER_REFERENCE`."""


NEGLIGIBLE_ROOT = 1e-9
"""Smallest root of an eigenvalue of `RadiatingSurface.products` that is used / largest root."""


class PowerSpectrum(NamedTuple):
    """Radiated power by frequency.

    Attributes:
        frequencies: Frequencies, shape (nf,), Hz.
        power: Power of each line, averaged over time, shape (nf,), W.

    Example:
        >>> lines = mbd.durability.radiated_power(plate, run.body("plate")).spectrum()
        >>> lines.power.shape == lines.level.shape == lines.frequencies.shape
        True
    """

    frequencies: Array
    power: Array

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def level(self) -> Array:
        """Sound power level of each line, shape (nf,), dB re 1 pW."""
        return _level(self.power)


@dataclass(frozen=True, eq=False)
class RadiatedPower:
    """Equivalent radiated power of a body over time.

    Attributes:
        time: Times, shape (nt,), s.
        velocities: r velocities whose squares add up to ∫v_n² dS, shape (nt, r), m²/s; r is at
            most the number 6 + n of the motions of the body.
        area: Area of the radiating surface, m².
        impedance: Impedance ρc of the fluid, N s/m³.

    Example:
        >>> sound = mbd.durability.radiated_power(plate, run.body("plate"))
        >>> bool(sound.mean < sound.power.max())
        True
    """

    time: Array
    velocities: Array
    area: float
    impedance: float

    __repr__ = short_repr

    def __post_init__(self) -> None:
        increasing("time", self.time, unit="s")
        freeze(self, "radiated power", time=(-1,), velocities=(len(self.time), -1))
        for name in ("area", "impedance"):
            number(name, getattr(self, name), positive=True)

    @property
    def power(self) -> Array:
        """Power at each instant, shape (nt,), W."""
        return np.asarray(self.impedance * np.sum(self.velocities**2, axis=1), dtype=float)

    @property
    def mean(self) -> float:
        """Power averaged over time by the trapezoidal rule, W."""
        if len(self.time) == 1:
            return float(self.power[0])
        return float(trapezoid(self.power, self.time) / np.ptp(self.time))

    @property
    def level(self) -> float:
        """Level of the mean power, dB re 1 pW."""
        return float(_level(np.array(self.mean)))

    @property
    def velocity_level(self) -> float:
        """Level of the normal velocity, averaged over surface and time, dB re 50 nm/s (RMS)."""
        square = self.mean / self.impedance / self.area
        return float(_level(np.array(square), VELOCITY_REFERENCE**2))

    def spectrum(
        self, *, window: str | tuple[str, float] = "hann", resample: bool = False
    ) -> PowerSpectrum:
        """Return the power of each frequency, averaged over the whole run.

        A steady tone has its power in one line. The power of noise in a band is the sum of its
        lines, divided by the noise bandwidth of the window, which is 1.5 lines for `hann`.

        Args:
            window: A window of `scipy.signal.get_window`, or "closed" for the run over one period
                of `periodic`; see `spectrum`.
            resample: Whether a run with unequal steps is interpolated; by default, unequal steps
                raise an error.

        Raises:
            InputError: The steps are not equal, or the window is unknown.
        """
        lines = spectrum(self.time, self.velocities, window=window, trend="mean", resample=resample)
        squares = np.sum(lines.amplitudes**2, axis=1)
        return PowerSpectrum(lines.frequencies, 0.5 * self.impedance * squares)

    def waterfall(
        self,
        angle: ArrayLike,
        *,
        axis: Literal["frequency", "order"] = "frequency",
        length: float | None = None,
        overlap: float = 0.75,
        up_to: float | None = None,
        window: str | tuple[str, float] = "hann",
    ) -> Waterfall:
        """Return the power over speed and frequency or order; `mean_square` of the result is in W.

        Args:
            angle: Angle of the shaft at each time, shape (nt,), rad; see `waterfall`.
            axis: ``frequency`` or ``order``.
            length: Length of a block, s or revolutions.
            overlap: Share of a block that overlaps with the next one.
            up_to: Largest frequency (Hz) or order.
            window: A window of `scipy.signal.get_window`.

        Raises:
            InputError: See `waterfall`.
        """
        signal = np.sqrt(self.impedance) * self.velocities
        return waterfall(
            self.time,
            signal,
            angle,
            axis=axis,
            length=length,
            overlap=overlap,
            up_to=up_to,
            window=window,
        )


def radiated_power(
    source: Reduction | ReducedBody | RadiatingSurface,
    history: Any,
    *,
    where: Where | None = None,
    rigid_motion: bool = True,
    density: float = 1.204,
    sound_speed: float = 343.2,
) -> RadiatedPower:
    """Return the equivalent radiated power ρc ∫v_n² dS of a body over a run.

    Args:
        source: A reduction, a reduced body with a skin, or the result of `radiating_surface`.
        history: Motion of the body, such as ``run.body("housing")``, with `time` (nt,), s, and
            `eta_rate` (nt, n), m/s. The rigid motion needs `rotation` (nt, 4), `velocity` (nt, 3),
            m/s, and `omega` (nt, 3), rad/s; without these, the body frame is at rest.
        where: Function that marks the points of the radiating part; see `radiating_surface`.
        rigid_motion: Whether the motion of the body frame is included. Without it, the result is
            the power of the deformation, which depends on the reference condition of the body.
        density: Density of the fluid, kg/m³; by default of air at 20 °C.
        sound_speed: Speed of sound in the fluid, m/s; by default of air at 20 °C.

    Raises:
        InputError: The history does not belong to the body or has no velocities; see also
            `radiating_surface`.

    Note: Collective with a reduction.

    Example:
        >>> sound = mbd.durability.radiated_power(plate, run.body("plate"))
        >>> on_skin = mbd.durability.radiated_power(plate.body, run.body("plate"))
        >>> bool(abs(on_skin.level - sound.level) < 0.5)
        True
    """
    impedance = number("density", density, positive=True, unit="kg/m³")
    impedance *= number("sound_speed", sound_speed, positive=True, unit="m/s")
    flag("rigid_motion", rigid_motion)
    instance("source", source, (Reduction, ReducedBody, RadiatingSurface))
    if isinstance(source, RadiatingSurface):
        if where is not None:
            raise InputError("omit `where`, an argument of radiating_surface", argument="where")
        surface = source
    else:
        surface = radiating_surface(source, where)
    if not hasattr(history, "eta_rate") or not hasattr(history, "time"):
        expected = "a history with `time` and `eta_rate`, such as run.body(name)"
        reject("history", history, expected)
    time = increasing("history.time", history.time, unit="s")
    count = len(surface.products) - 6
    rates = array("history.eta_rate", history.eta_rate, (len(time), count))
    moving = rigid_motion and hasattr(history, "velocity")
    frame = _frame_velocity(history, len(time)) if moving else np.zeros((len(time), 6))
    # With B = `surface.products` = F Fᵀ and the generalized velocity w = (frame, rates), the
    # velocities wᵀF have the sum of squares |wᵀF|² = wᵀ B w = ∫ v_n² dS
    values, vectors = np.linalg.eigh(surface.products)
    roots = np.sqrt(np.maximum(values, 0.0))
    relevant = roots > NEGLIGIBLE_ROOT * roots.max(initial=0.0)
    factor = vectors[:, relevant] * roots[relevant]
    velocities = np.hstack([frame, rates]) @ factor
    return RadiatedPower(time, velocities, surface.area, impedance)


def _frame_velocity(history: Any, count: int) -> Array:
    """Return velocity and angular velocity of the body frame in body components, (nt, 6)."""
    object_with("history", history, "velocity", "rotation", "omega")
    velocity = array("history.velocity", history.velocity, (count, 3))
    omega = array("history.omega", history.omega, (count, 3))
    rotation = rotation_matrices(array("history.rotation", history.rotation, (count, 4)))
    return np.hstack([np.einsum("tji,tj->ti", rotation, velocity), omega])


def _level(values: Array, reference: float = POWER_REFERENCE) -> Array:
    """Return levels in dB; −∞ for zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(10 * np.log10(values / reference), dtype=float)
