"""Equilibrium, stiffness, damping and whirl of a journal under a constant load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, instance, number, reject
from dolfinx_mbd.csv_files import write_table
from dolfinx_mbd.errors import InputError, ModelRangeWarning, SolverError, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.bearings.film_bearing import FilmBearing

__all__ = ["BearingCoefficients", "bearing_coefficients", "whirl_threshold"]

# Rows of the loads of a film, and columns of their derivatives with respect to `motion_vector`
_FORCE, _POSITION, _VELOCITY = slice(0, 2), slice(0, 2), slice(4, 6)
_ENTRIES = ("xx", "xy", "yx", "yy")
_MAX_ITERATIONS, _MAX_HALVINGS = 200, 30  # iterations of Newton's method, halvings of a step
_TOLERANCE = 1e-10  # largest unbalanced force relative to the load


@dataclass(frozen=True, eq=False)
class BearingCoefficients:
    """Equilibrium of a journal and its linear coefficients at n pairs of speed and load.

    All vectors have components in the axes of the bore. The film exerts −K δe − C ė on a journal
    displaced by δe.

    Attributes:
        speed: Speeds of the journal relative to the bore, (n,), rad/s.
        load: Constant forces on the journal, (n, 2), N.
        position: Equilibrium positions of the journal, (n, 2), m.
        stiffness: K, (n, 2, 2), N/m.
        damping: C, (n, 2, 2), N s/m.
        clearance: Radial clearance, m.

    Example:
        >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
        >>> film = mbd.bearings.ShortBearing("film", *ends, **size, viscosity=0.01)
        >>> table = mbd.bearings.bearing_coefficients(film, [300.0, 600.0], (0.0, -50.0))
        >>> print(table.eccentricity.round(3), table.attitude.round(1))
        [0.328 0.194] [66.2 75.9]
        >>> print(table.critical_mass.round(1))  # kg
        [185.8  50.1]
    """

    speed: Array
    load: Array
    position: Array
    stiffness: Array
    damping: Array
    clearance: float

    __repr__ = short_repr

    @property
    def eccentricity(self) -> Array:
        """Eccentricity relative to the clearance, (n,)."""
        return np.asarray(np.linalg.norm(self.position, axis=1) / self.clearance)

    @property
    def attitude(self) -> Array:
        """Angle from the load to the displacement in the sense of the rotation, (n,), degrees."""
        (x, y), (u, v) = self.load.T, self.position.T
        angle = np.degrees(np.arctan2(x * v - y * u, x * u + y * v))
        return np.asarray(angle * np.where(self.speed < 0.0, -1.0, 1.0))

    @property
    def whirl_frequency(self) -> Array:
        """Whirl frequency at the critical mass, (n,), rad/s; NaN if no mass whirls."""
        return self._whirl()[1]

    @property
    def critical_mass(self) -> Array:
        """Mass per bearing above which a rigid rotor whirls, (n,), kg; infinite if none whirls."""
        return self._whirl()[0]

    def _whirl(self) -> tuple[Array, Array]:
        """Return the critical mass and its frequency, from det(K − mω² + iωC) = 0."""
        K, C = self.stiffness, self.damping
        cross = K[:, 0, 1] * C[:, 1, 0] + K[:, 1, 0] * C[:, 0, 1]
        direct = K[:, 0, 0] * C[:, 1, 1] + K[:, 1, 1] * C[:, 0, 0]
        stiffness = (direct - cross) / (C[:, 0, 0] + C[:, 1, 1])  # m ω², imaginary part
        remainder = (stiffness - K[:, 0, 0]) * (stiffness - K[:, 1, 1]) - K[:, 0, 1] * K[:, 1, 0]
        square = remainder / np.linalg.det(C)  # ω², real part
        can_whirl = square > 0.0
        square = np.where(can_whirl, square, 1.0)
        mass = np.where(can_whirl, np.maximum(stiffness, 0.0) / square, np.inf)
        return mass, np.where(can_whirl, np.sqrt(square), np.nan)

    def to_csv(self, path: str | Path) -> Path:
        """Write the coefficients as a table and return the path of the file.

        The columns are `speed` (rad/s), `kxx`, `kxy`, `kyx`, `kyy` (N/m), `cxx`, `cxy`, `cyx` and
        `cyy` (N s/m). `BearingTable.read` reads the file. ROSS reads this layout from a
        spreadsheet (`BearingElement.from_table`): convert the file with
        `pandas.read_csv(path).to_excel("bearing.xlsx", index=False)`.

        Args:
            path: Path of the file; missing directories are created.

        Raises:
            InputError: The speeds do not increase, so that the table would be ambiguous.
            OSError: The file cannot be written.

        Example:
            >>> film = mbd.bearings.ShortBearing(
            ...     "film", *ends, 0.02, 0.01, 2e-5, 0.01
            ... )
            >>> table = mbd.bearings.bearing_coefficients(film, [300.0, 600.0], (0.0, -50.0))
            >>> print(table.to_csv("film.csv").read_text().splitlines()[0])
            speed,kxx,kxy,kyx,kyy,cxx,cxy,cyx,cyy
        """
        if not (np.diff(self.speed) > 0.0).all():
            raise InputError(
                "a table of coefficients needs increasing speeds, one row for each",
                argument="speed",
                value=self.speed,
            )
        names = [letter + entry for letter in "kc" for entry in _ENTRIES]
        values = [matrix.reshape(-1, 4) for matrix in (self.stiffness, self.damping)]
        return write_table(path, ["speed", *names], np.column_stack([self.speed, *values]))


def bearing_coefficients(
    bearing: FilmBearing, speeds: ArrayLike, load: ArrayLike
) -> BearingCoefficients:
    """Return equilibrium positions, stiffness and damping of a journal over speed and load.

    Args:
        bearing: The bearing; its frames have no effect.
        speeds: Speeds of the journal relative to the bore, (n,), rad/s, not zero.
        load: Constant force on the journal in the axes of the bore, (2,), N, or one for each speed,
            (n, 2).

    Raises:
        InputError: A speed or a load is zero, or a shape is wrong.
        SolverError: No equilibrium was found, or the load presses the journal through the film, so
            that the eccentricity would reach the clearance.

    Warns:
        ModelRangeWarning: The film is thinner than the roughness.

    Example:
        >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
        >>> film = mbd.bearings.ShortBearing("film", *ends, **size, viscosity=0.01)
        >>> table = mbd.bearings.bearing_coefficients(film, [300.0], (0.0, -50.0))
        >>> print((table.stiffness[0] / 1e6).round(2))  # kN/mm
        [[  5.97   5.71]
         [-10.78   4.76]]
    """
    instance("bearing", bearing, FilmBearing)
    speed = array("speeds", speeds, (None,))
    if not speed.all() or not len(speed):
        raise InputError("speeds must be given and must not be zero", argument="speeds")
    forces = array("load", load)
    if forces.shape not in ((2,), (len(speed), 2)):
        reject("load", load, f"an array of shape (2,) or ({len(speed)}, 2)")
    loads = np.broadcast_to(forces, (len(speed), 2)).copy()
    if not np.linalg.norm(loads, axis=1).all():
        raise InputError("load must not be zero", argument="load", value=load)
    positions, stiffness, damping = [], [], []
    for omega, force in zip(speed, loads, strict=True):
        position, dg = _equilibrium(bearing, float(omega), force)
        _check_thickness(bearing, position, float(omega), force)
        positions.append(position)
        stiffness.append(-dg[_FORCE, _POSITION])
        damping.append(-dg[_FORCE, _VELOCITY])
    return BearingCoefficients(
        speed,
        loads,
        np.array(positions),
        np.array(stiffness),
        np.array(damping),
        bearing.clearance,
    )


def _check_thickness(bearing: FilmBearing, position: Array, speed: float, force: Array) -> None:
    """Raise an error if the surfaces overlap; warn if the film is thinner than the roughness."""
    gap, limit = bearing.clearance - float(np.linalg.norm(position)), bearing.least_thickness
    place = f"bearing {bearing.name!r} at {speed:g} rad/s under {float(np.linalg.norm(force)):g} N"
    if gap <= 0.0:
        raise SolverError(
            f"{place}: the load presses the journal through the film, to an eccentricity of "
            f"{1.0 - gap / bearing.clearance:.3f}. Decrease the load, or increase size, viscosity "
            "or speed"
        )
    if gap < limit:
        text = (
            f"{place}: the film is {gap:.3g} m thick, and the roughness is {limit:.3g} m. Contact "
            "carries a part of the load, and the coefficients are a rough estimate"
        )
        warn(ModelRangeWarning(text, quantity="film thickness", value=gap, limit=limit))


def _equilibrium(bearing: FilmBearing, speed: float, force: Array) -> tuple[Array, Array]:
    """Return the position e (2,) with F(e) + force = 0, and the derivatives (5, 9) there.

    Newton's method with steps that stay inside the clearance and reduce the unbalanced force.
    """
    c, size = bearing.clearance, float(np.linalg.norm(force))
    # Start at half of the clearance, 45° from the load in the sense of the rotation
    angle = np.sign(speed) * np.pi / 4
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    e = np.asarray(0.5 * c * rotation @ force / size, dtype=float)
    g, dg, _ = bearing.film_loads(bearing.motion_vector(e, speed=speed), derivatives=True)
    for _ in range(_MAX_ITERATIONS):
        unbalanced = g[_FORCE] + force
        if np.linalg.norm(unbalanced) < _TOLERANCE * size:
            return e, dg
        try:
            step = np.linalg.solve(dg[_FORCE, _POSITION], -unbalanced)
        except np.linalg.LinAlgError:  # the loads of the film are too small or too large
            break
        longest = 0.5 * max(c - float(np.linalg.norm(e)), 1e-3 * c)
        step *= min(1.0, longest / float(np.linalg.norm(step)))
        for _ in range(_MAX_HALVINGS):
            motion = bearing.motion_vector(e + step, speed=speed)
            trial, dg, _ = bearing.film_loads(motion, derivatives=True)
            if np.linalg.norm(trial[_FORCE] + force) < np.linalg.norm(unbalanced):
                break
            step *= 0.5
        e, g = e + step, trial
    raise SolverError(
        f"bearing {bearing.name!r}: no equilibrium at {speed:g} rad/s under {size:g} N; "
        f"{float(np.linalg.norm(g[_FORCE] + force)):.3g} N remain unbalanced"
    )


def whirl_threshold(
    bearing: FilmBearing, mass: float, load: ArrayLike, *, low: float, high: float
) -> float:
    """Return the speed above which a rigid rotor whirls in its bearings, rad/s.

    Args:
        bearing: One of the bearings.
        mass: Mass of the rotor that each bearing carries, kg.
        load: Constant force on the journal in the axes of the bore, (2,), N.
        low: A speed at which the rotor is stable, rad/s.
        high: A higher speed at which it whirls, rad/s.

    Raises:
        InputError: The rotor whirls at the low speed or is stable at the high speed.
        SolverError: No equilibrium was found.

    Example:
        >>> size = {"radius": 0.02, "length": 0.01, "clearance": 2e-5}  # m
        >>> film = mbd.bearings.ShortBearing("film", *ends, **size, viscosity=0.01)
        >>> speed = mbd.bearings.whirl_threshold(film, 5.0, (0.0, -50.0), low=100.0, high=3000.0)
        >>> print(f"{speed:.1f} rad/s")
        1947.6 rad/s
    """
    number("mass", mass, positive=True, unit="kg")
    number("low", low, positive=True, unit="rad/s")
    number("high", high, low=low, unit="rad/s")

    def margin(speed: float) -> float:
        critical = bearing_coefficients(bearing, [speed], load).critical_mass[0]
        return float(mass / critical - 1.0)

    for name, speed, stable in (("low", low, True), ("high", high, False)):
        if (margin(speed) < 0.0) != stable:
            state = "whirls" if stable else "is stable"
            raise InputError(
                f"the rotor {state} at {name} = {speed:g} rad/s; choose another speed",
                argument=name,
                value=speed,
            )
    return float(scipy.optimize.brentq(margin, low, high, rtol=1e-10))
