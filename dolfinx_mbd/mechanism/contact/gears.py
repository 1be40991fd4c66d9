"""Gear pairs: two wheels whose involute teeth push along the line of action.

With the distance a of the axes, the angle ψ of the line of centres and the angle β of the second
wheel, both in the first frame, the teeth overlap along the line of action by

    δ = ±u − b/2 − B (inv α − inv α₀),    u = −B ψ + r₂ β,    cos α = |B|/a,    B = r₁ + r₂

on the two flanks. r₁ and r₂ are the radii of the base circles (r₂ < 0 for a ring gear), b is the
backlash, and inv α = tan α − α. u is reduced by its value in the middle of the backlash, `offset`,
and by multiples of the base pitch, because all teeth are equal. The gradient of δ gives the line of
action, so that the force between the axes is exact, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, integer, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import DISPLACEMENT, MOMENT, ROTATION, SPIN, VELOCITY
from dolfinx_mbd.kernels.rotations import skew
from dolfinx_mbd.mechanism.force_elements import ContactElement, FramePair
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.law_elements import LawElement, PairMotion

__all__ = ["GearPair"]

_MAX_SINE = 1e-3  # sine of the angle between the axes of the wheels
# Parts of `_coordinates` in the plane of the first wheel: line of centres, x axis of the second one
_CENTRES, _X_AXIS = slice(0, 2), slice(3, 5)


class _Mesh(NamedTuple):
    """Overlaps of both flanks and the phase, with derivatives with respect to y = (d, x₂).

    d is the line of centres and x₂ the x axis of the second wheel, in the first frame.
    """

    overlap: tuple[float, float]
    gradients: tuple[Array, Array]  # (6,) each
    hessians: tuple[Array, Array]  # (6, 6) each
    phase: float  # in base pitches
    phase_gradient: Array  # (6,)


@dataclass(frozen=True, eq=False)
class GearPair(LawElement, ContactElement):
    """The mesh of two gear wheels with backlash and a stiffness that varies over a tooth.

    The wheels rotate about the z axes of their frames, which must be parallel. Joints hold the
    axes, for example on a planet carrier. Each flank pushes with the force k δ (1 + χ δ̇) and never
    pulls; see `ContactLaw`. A stiffness that varies over a tooth also does work on the wheels. This
    work is part of `dissipated` in the history, with the opposite sign.

    Attributes:
        name: Name in the system.
        first: Frame in the centre of the first wheel.
        second: Frame in the centre of the second wheel.
        teeth: Numbers of teeth, the first positive. For a ring gear around the first wheel, the
            second number is minus that of the ring, which has more teeth than the first wheel.
        module: Module, m; the reference diameter is the module times the number of teeth.
        stiffness: Stiffness k along the line of action, N/m: a number, or three or more values at
            equal distances over one tooth, repeated periodically.
        damping: Factor χ, s/m.
        backlash: Backlash b along the line of action at the reference distance of the axes, m.
        pressure_angle: Pressure angle α₀ at the reference distance, rad; by default 20°.
        offset: Value of −(r₁ + r₂) ψ + r₂ β in the middle of the backlash, m; by default the
            initial one. r₁ and r₂ are the base radii, ψ is the angle of the line of centres and β
            that of the x axis of the second frame, both measured in the first frame.

    Raises:
        InputError: An argument is invalid. `System` raises it if the axes are not parallel, or if
            their distance differs by two modules or more from the reference distance.

    Example:
        >>> ends = ground.frame("bearing"), rod.frame("left")
        >>> mesh = mbd.mechanism.GearPair("mesh", *ends, teeth=(20, 40), module=2e-3, stiffness=1e8)
        >>> mesh.ratio
        -0.5
    """

    kind: ClassVar[str] = "gear pair"
    name: str
    first: FrameRef
    second: FrameRef
    teeth: Sequence[int]
    module: float
    stiffness: float | ArrayLike
    damping: float = 0.0
    backlash: float = 0.0
    pressure_angle: float = math.radians(20.0)
    offset: float | None = None
    _base: tuple[float, float] = field(init=False, repr=False)  # base radii, m
    # Stiffness over the phase of the mesh of the teeth, from 0 to 1; None if it is constant
    _spline: scipy.interpolate.CubicSpline | None = field(init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self._check_ends()
        label = f"gear pair {self.name!r}"
        if not isinstance(self.teeth, Sequence) or len(self.teeth) != 2:
            reject(f"{label}: teeth", self.teeth, "two whole numbers")
        first = integer(f"{label}: teeth", self.teeth[0], low=1)
        second = integer(f"{label}: teeth", self.teeth[1])
        if second == 0 or (second < 0 and -second <= first):
            expected = "two whole numbers, the second negative and larger for a ring gear"
            reject(f"{label}: teeth", self.teeth, expected)
        module = number(f"{label}: module", self.module, positive=True, unit="m")
        number(f"{label}: damping", self.damping, low=0.0, unit="s/m")
        number(f"{label}: backlash", self.backlash, low=0.0, unit="m")
        angle = number(f"{label}: pressure_angle", self.pressure_angle, positive=True, high=1.0)
        if self.offset is not None:
            number(f"{label}: offset", self.offset, unit="m")
        per_tooth = 0.5 * module * math.cos(angle)
        base = per_tooth * first, per_tooth * second
        assign(self, _base=base, _spline=self._table(f"{label}: stiffness"))
        if not 2.0 * self.backlash < self._pitch:
            reject(f"{label}: backlash", self.backlash, "less than half the base pitch")

    def _table(self, label: str) -> scipy.interpolate.CubicSpline | None:
        """Return the spline of a stiffness table over one tooth, or None for a number."""
        values = array(label, self.stiffness, None)
        expected = "a positive number, or three or more positive numbers"
        if values.ndim > 1 or (0 < values.size < 3 and values.ndim) or not (values > 0.0).all():
            reject(label, self.stiffness, expected)
        if values.ndim == 0:
            return None
        if not values.size:
            reject(label, self.stiffness, expected)
        x = np.linspace(0.0, 1.0, len(values) + 1)
        return scipy.interpolate.CubicSpline(x, np.append(values, values[0]), bc_type="periodic")

    @property
    def ratio(self) -> float:
        """Speed of the second wheel over the speed of the first, if the axes are at rest."""
        return -self._base[0] / self._base[1]

    @property
    def _pitch(self) -> float:
        """Base pitch, m."""
        return math.pi * self.module * math.cos(self.pressure_angle)

    def placed(self, pair: FramePair) -> GearPair:
        """Return the gear pair with the teeth in the middle of the backlash.

        `pair` contains the initial poses of the frames. An `offset` of the user is not changed. An
        error is raised if the wheels do not mesh.
        """
        y = _coordinates(self.relative(pair))
        axes = pair.Q1[:, 2] @ pair.Q2[:, 2]
        if 1.0 - abs(axes) > 0.5 * _MAX_SINE**2:
            raise InputError(f"gear pair {self.name!r}: the z axes of its frames are not parallel")
        centre, _ = _in_plane(y)
        a, reference = math.hypot(*centre), 0.5 * self.module * abs(sum(self.teeth))
        if abs(a - reference) >= 2.0 * self.module:  # twice the addendum
            raise InputError(
                f"gear pair {self.name!r}: the axes are {a:.6g} m apart, but wheels of the module "
                f"{self.module:g} m with {self.teeth[0]} and {self.teeth[1]} teeth mesh at "
                f"{reference:.6g} m. Check the module (m), the teeth and the positions",
                argument="module",
                value=self.module,
                expected=f"axes about {reference:.6g} m apart",
            )
        if self.offset is not None:
            return self
        return replace(self, offset=self._rotation(y))

    def _rotation(self, y: Array) -> float:
        """Return −B ψ + r₂ β, m."""
        r1, r2 = self._base
        (cx, cy), (ax, ay) = _in_plane(y)
        psi, beta = math.atan2(cy, cx), math.atan2(ay, ax)
        return -(r1 + r2) * psi + r2 * beta

    def _mesh(self, y: Array) -> _Mesh:
        """Return the overlaps at coordinates y (6,)."""
        r1, r2 = self._base
        total = r1 + r2  # B
        (cx, cy), (ax, ay) = _in_plane(y)
        a, size = math.hypot(cx, cy), math.hypot(ax, ay)
        if a <= abs(total):
            raise InputError(
                f"gear pair {self.name!r}: the axes are {a:.6g} m apart, not more than the sum of "
                f"the base radii, {abs(total):.6g} m; their reference distance is "
                f"{abs(total) / math.cos(self.pressure_angle):.6g} m",
            )
        alpha, start = math.acos(abs(total) / a), self.pressure_angle
        # B (inv α − inv α₀), and its first and second derivative with respect to a
        opening = total * (math.tan(alpha) - alpha - math.tan(start) + start)
        slope = math.copysign(math.sin(alpha), total)
        curvature = math.copysign(math.cos(alpha) ** 2 / (a * math.sin(alpha)), total)
        u = self._rotation(y) - (self.offset or 0.0)
        u -= self._pitch * round(u / self._pitch)
        # Unit vectors along and across the line of centres, and the x axis of the second wheel
        c, t = np.array([cx, cy]) / a, np.array([-cy, cx]) / a
        x, n = np.array([ax, ay]) / size, np.array([-ay, ax]) / size
        u_gradient, u_hessian = np.zeros(6), np.zeros((6, 6))
        u_gradient[_CENTRES], u_gradient[_X_AXIS] = -total * t / a, r2 * n / size
        mixed = (np.outer(t, c) + np.outer(c, t)) / a**2
        u_hessian[_CENTRES, _CENTRES] = total * mixed
        u_hessian[_X_AXIS, _X_AXIS] = -r2 * (np.outer(n, x) + np.outer(x, n)) / size**2
        open_gradient, open_hessian = np.zeros(6), np.zeros((6, 6))
        open_gradient[_CENTRES] = slope * c
        open_hessian[_CENTRES, _CENTRES] = curvature * np.outer(c, c) + slope / a * np.outer(t, t)
        phase_gradient = np.zeros(6)
        phase_gradient[_CENTRES] = -r1 * t / (a * self._pitch)
        gap = 0.5 * self.backlash + opening
        return _Mesh(
            (u - gap, -u - gap),
            (u_gradient - open_gradient, -u_gradient - open_gradient),
            (u_hessian - open_hessian, -u_hessian - open_hessian),
            -r1 * math.atan2(cy, cx) / self._pitch,
            phase_gradient,
        )

    def _stiffness(self, phase: float) -> tuple[float, float]:
        """Return the stiffness k and its derivative with respect to the phase."""
        if self._spline is None:
            return float(np.asarray(self.stiffness)), 0.0
        return float(self._spline(phase % 1.0)), float(self._spline(phase % 1.0, 1))

    def _forces(self, motion: PairMotion) -> tuple[_Mesh, Array, Array, Array, Array]:
        """Return the mesh, y and its rates (6,), and the rates and forces of the flanks (2,)."""
        y = _coordinates(motion)
        rates = np.concatenate([motion.velocity, np.cross(motion.omega, y[3:])])
        mesh = self._mesh(y)
        k, _ = self._stiffness(mesh.phase)
        overlap, rate = np.array(mesh.overlap), np.array(mesh.gradients) @ rates
        force = np.where(
            overlap > 0.0, k * overlap * np.maximum(1.0 + self.damping * rate, 0.0), 0.0
        )
        return mesh, y, rates, rate, force

    @property
    def size(self) -> float:
        """Module of the gears, m."""
        return self.module

    def states(self, pair: FramePair, *time: Any) -> Array:
        """Return gap (m), gap rate (m/s) and force (N) of both flanks, shape (2, 3)."""
        return self._flanks(self.relative(pair, *time))

    def _flanks(self, motion: PairMotion) -> Array:
        """Return gap (m), gap rate (m/s) and force (N) of both flanks, shape (2, 3)."""
        mesh, _, _, rate, force = self._forces(motion)
        return np.column_stack([-np.array(mesh.overlap), -rate, force])

    def value(self, motion: PairMotion) -> Array:
        """Return force and moment on the second frame, shape (6,)."""
        mesh, y, _, _, force = self._forces(motion)
        g = -force @ np.array(mesh.gradients)
        return np.concatenate([g[:3], np.cross(y[3:], g[3:])])

    def slopes(self, motion: PairMotion) -> Array:
        """Return the derivatives of force and moment, shape (6, 12)."""
        mesh, y, rates, _, force = self._forces(motion)
        k, slope = self._stiffness(mesh.phase)
        g, by_y, by_rate = np.zeros(6), np.zeros((6, 6)), np.zeros((6, 6))
        flanks = zip(mesh.overlap, mesh.gradients, mesh.hessians, force, strict=True)
        for overlap, gradient, hessian, F in flanks:
            if F > 0.0:
                g -= F * gradient
                factor, c = 1.0 + self.damping * (gradient @ rates), k * overlap * self.damping
                elastic_gradient = k * gradient + slope * overlap * mesh.phase_gradient
                force_gradient = factor * elastic_gradient + c * hessian @ rates
                by_y -= np.outer(gradient, force_gradient) + F * hessian
                by_rate -= c * np.outer(gradient, gradient)
        X = skew(y[3:])
        y_by_motion, rate_by_motion = np.zeros((6, 12)), np.zeros((6, 12))
        y_by_motion[DISPLACEMENT, DISPLACEMENT] = rate_by_motion[DISPLACEMENT, VELOCITY] = np.eye(3)
        y_by_motion[ROTATION, ROTATION] = rate_by_motion[ROTATION, SPIN] = -X
        rate_by_motion[ROTATION, ROTATION] = -skew(motion.omega) @ X
        G = by_y @ y_by_motion + by_rate @ rate_by_motion
        G[3:] = X @ G[3:]
        G[MOMENT, ROTATION] += skew(g[3:]) @ X
        return G

    def stored_energy(self, motion: PairMotion) -> float:
        """Return the energy ½ k δ² of the flanks in contact, J."""
        mesh = self._mesh(_coordinates(motion))
        depth = np.maximum(mesh.overlap, 0.0)
        return float(0.5 * self._stiffness(mesh.phase)[0] * (depth @ depth))

    def quantities(self, motion: PairMotion) -> dict[str, ArrayLike]:
        """Return gaps, rates and forces of both flanks."""
        gap, gap_rate, normal_force = self._flanks(motion).T
        return {"gap": gap, "gap_rate": gap_rate, "normal_force": normal_force}


def _coordinates(motion: PairMotion) -> Array:
    """Return the line of centres and the x axis of the second frame in the first frame, (6,)."""
    return np.concatenate([motion.displacement, motion.rotation[:, 0]])


def _in_plane(y: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the line of centres, and the x axis of the second wheel, in the plane of the first."""
    return tuple(y[_CENTRES]), tuple(y[_X_AXIS])
