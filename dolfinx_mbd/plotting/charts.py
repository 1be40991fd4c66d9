"""Time histories as matplotlib figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dolfinx_mbd.multibody.solution import Solution

__all__ = ["plot_energies"]


def plot_energies(solution: Solution, path: str | Path | None = None) -> Any:
    """Kinetic, elastic and gravitational energy and their sum over time.

    Args:
        solution: A run.
        path: File to write as well, in any format that matplotlib knows.

    Returns:
        A matplotlib figure with two axes: all energies, and the elastic one, which is far smaller.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If matplotlib does not know the file's suffix.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("energies are plotted with matplotlib: pip install matplotlib") from error
    energies = solution.energies()
    milliseconds = 1e3 * energies.time
    figure = Figure(figsize=(8, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    names = ("kinetic", "gravity", "total") if energies.gravity.any() else ("kinetic", "total")
    for name in names:
        upper.plot(
            milliseconds,
            getattr(energies, name),
            "k--" if name == "total" else "-",
            lw=1.2,
            label=name,
        )
    lower.plot(milliseconds, energies.elastic, "C2", lw=1.2, label="elastic")
    for axes in (upper, lower):
        axes.set(ylabel="energy (J)")
        axes.margins(x=0)
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
    lower.set(xlabel="time (ms)")
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    return figure
