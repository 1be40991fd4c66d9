"""Charts of a run with matplotlib: forces, polar plots of bearing forces, orbits, work diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.checks import array, choice, instance, names, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bearings import FiniteBearing
from dolfinx_mbd.plotting.charts import new_figure, saved
from dolfinx_mbd.results.solution import Solution

Axes = Literal["global", "first", "second"]


def plot_forces(
    solution: Solution,
    elements: Sequence[str],
    path: str | Path | None = None,
    *,
    over: str | None = None,
) -> Any:
    """Plot the magnitudes of the forces of elements over time or over the rotation of a joint.

    Args:
        solution: Result of a simulation.
        elements: Names of loads, springs, joints or drivers; see `Solution.element`.
        path: File to write, in the format of its suffix; by default no file is written.
        over: Name of the joint whose rotation (degrees) is the horizontal axis; by default time.

    Returns:
        A matplotlib figure with one axes.

    Raises:
        InputError: A name is unknown, or matplotlib does not know the suffix.

    Example:
        >>> figure = mbd.plotting.plot_forces(run, ["crank pin", "piston pin"], over="main")
        >>> figure.axes[0].get_xlabel()
        'rotation of main (°)'
    """
    instance("solution", solution, Solution)
    x, label = 1e3 * solution.time, "time (ms)"
    if over is not None:
        x, label = np.rad2deg(solution.joint(over).rotation), f"rotation of {over} (°)"
    figure = new_figure(8, 4)
    axes = figure.subplots()
    for name in names("elements", elements):
        axes.plot(x, np.linalg.norm(solution.element(name).force, axis=1), lw=1.2, label=name)
    axes.set(xlabel=label, ylabel="force (N)")
    axes.legend(loc="best", frameon=False)
    return saved(figure, path)


def plot_polar_force(
    solution: Solution, element: str, path: str | Path | None = None, *, axes: Axes = "first"
) -> Any:
    """Plot the force on the second body of an element in the x-y plane as a polar diagram.

    The polar diagram of a bearing shows where its load acts on the journal or on the shell.

    Args:
        solution: Result of a simulation.
        element: Name of a joint or a load; see `Solution.element`.
        path: File to write, in the format of its suffix; by default no file is written.
        axes: Axes whose x-y plane is shown: ``global``, or the ``first`` or ``second`` frame.

    Returns:
        A matplotlib figure with one polar axes.

    Raises:
        InputError: The name or the axes are unknown, or matplotlib does not know the suffix.

    Example:
        >>> figure = mbd.plotting.plot_polar_force(run, "crank pin", axes="second")
        >>> figure.axes[0].name
        'polar'
    """
    instance("solution", solution, Solution)
    force = solution.element(element, axes=axes).force
    figure = new_figure(5, 5)
    chart = figure.add_subplot(projection="polar")
    chart.plot(np.arctan2(force[:, 1], force[:, 0]), np.hypot(force[:, 0], force[:, 1]), lw=1.2)
    frame = "global axes" if axes == "global" else f"axes of the {axes} frame"
    chart.set_title(f"{element}: force (N) in x and y, {frame}", fontsize=10)
    return saved(figure, path)


def plot_orbit(
    solution: Solution,
    body: str,
    point: str | ArrayLike = (0.0, 0.0, 0.0),
    path: str | Path | None = None,
    *,
    plane: Literal["xy", "yz", "zx"] = "xy",
) -> Any:
    """Plot the path of a material point in a global plane, relative to its mean position.

    Args:
        solution: Result of a simulation.
        body: Name of the body.
        point: Point of the body; see `Solution.sensor`.
        path: File to write, in the format of its suffix; by default no file is written.
        plane: Plane of the plot: ``xy``, ``yz`` or ``zx``.

    Returns:
        A matplotlib figure with one axes, in mm.

    Raises:
        InputError: The body, the point or the plane is unknown, or matplotlib does not know the
            suffix.

    Example:
        >>> figure = mbd.plotting.plot_orbit(run, "rod", "left")
        >>> figure.axes[0].get_xlabel()
        'x (mm)'
    """
    instance("solution", solution, Solution)
    first, second = choice("plane", plane, ("xy", "yz", "zx"))
    position = solution.sensor(body, point)
    x, y = 1e3 * (position - position.mean(axis=0))[:, ["xyz".index(first), "xyz".index(second)]].T
    figure = new_figure(5, 5)
    axes = figure.subplots()
    axes.plot(x, y, lw=1.2)
    axes.set(xlabel=f"{first} (mm)", ylabel=f"{second} (mm)", aspect="equal", title=body)
    return saved(figure, path)


def plot_work(solution: Solution, element: str, path: str | Path | None = None) -> Any:
    """Plot the force of an element over its motion; the area is the work on the bodies.

    Args:
        solution: Result of a simulation.
        element: Name of a spring-damper, or of a load, friction or driver along a joint.
        path: File to write, in the format of its suffix; by default no file is written.

    Returns:
        A matplotlib figure with one axes: the force that lengthens a spring-damper over its
        length, or the force or torque on the second body over the coordinate of the joint.

    Raises:
        InputError: The name is unknown or the element has no such coordinate, or matplotlib does
            not know the suffix.

    Example:
        >>> mbd.plotting.plot_work(run, "drive").axes[0].get_ylabel()
        'torque (N m)'
    """
    instance("solution", solution, Solution)
    history = solution.element(element)
    if history.tension.size:
        x, y, labels = 1e3 * history.length, -history.tension, ("length (mm)", "force (N)")
    else:
        system = solution.system
        motions = {part.name: part.along for part in (*system.drivers, *system.loads)}
        motion = motions.get(element)
        if motion not in ("rotation", "displacement"):
            reject("element", element, "a spring-damper, or a load or driver along a joint")
        in_first_frame = solution.element(element, axes="first")
        if motion == "rotation":
            x, y = np.rad2deg(history.rotation), in_first_frame.moment[:, 2]
            labels = "rotation (°)", "torque (N m)"
        else:
            displacement = history.displacement.reshape(len(solution), -1)[:, -1]  # along z
            x, y, labels = (
                1e3 * displacement,
                in_first_frame.force[:, 2],
                ("displacement (mm)", "force (N)"),
            )
    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.plot(x, y, lw=1.2)
    axes.set(xlabel=labels[0], ylabel=labels[1], title=f"{element}: work {history.work[-1]:.4g} J")
    return saved(figure, path)


def plot_film_pressure(
    bearing: FiniteBearing,
    motion: ArrayLike,
    path: str | Path | None = None,
    *,
    surface: ArrayLike | None = None,
) -> Any:
    """Plot the pressure of an oil film over the angle and the axis of its bore.

    Args:
        bearing: The bearing.
        motion: Motion of the journal, (10,): a row of `bearings.journal_motion`, or the result of
            `bearing.motion_vector`.
        path: File to write, in the format of its suffix; by default no file is written.
        surface: Displacement of an elastic bore, (2, m): `bearing.surface @ eta` and
            `bearing.surface @ eta_rate` with the elastic coordinates of its body at the same time.

    Returns:
        A matplotlib figure with one pair of axes and a colour bar in MPa.

    Raises:
        InputError: The motion has a wrong shape, matplotlib does not know the suffix, or the bore
            is elastic and `surface` is missing.

    Example:
        >>> film = mbd.bearings.FiniteBearing(
        ...     "film", ("crank", "pin"), ("rod", "eye"), 0.02, 0.02, 2e-5, 0.01
        ... )
        >>> motion = film.motion_vector((1e-5, 0.0), speed=300.0)
        >>> figure = mbd.plotting.plot_film_pressure(film, motion)
        >>> figure.axes[0].get_xlabel()
        'angle (°)'
    """
    any_bearing: Any = instance("bearing", bearing, FiniteBearing)
    row = array("motion", motion, (10,))
    if any_bearing.surface is not None:
        if surface is None:
            raise InputError(
                f"bearing {bearing.name!r} has an elastic bore, whose displacement changes the "
                "pressure: give surface=[film.surface @ history.eta[n], film.surface @ "
                "history.eta_rate[n]] with history = run.body(...) of the body of the bore",
                argument="surface",
            )
        pressure = any_bearing.pressure(row, array("surface", surface, (2, None)))
    elif surface is not None:
        reject("surface", surface, "omitted for a bearing with a rigid bore")
    else:
        pressure = any_bearing.pressure(row)
    grid = bearing.grid
    figure = new_figure(8, 3.2)
    axes = figure.subplots()
    angles = np.degrees(np.append(grid.theta, 2 * np.pi))
    values = 1e-6 * np.vstack([pressure, pressure[:1]]).T
    levels = np.linspace(0.0, max(float(values.max()), 1e-9), 21)
    contours = axes.contourf(angles, 1e3 * grid.z, values, levels, cmap="viridis")
    figure.colorbar(contours, label="pressure (MPa)", format="%.3g")
    axes.set(xlabel="angle (°)", ylabel="z (mm)", title=bearing.name, xticks=range(0, 361, 60))
    return saved(figure, path)
