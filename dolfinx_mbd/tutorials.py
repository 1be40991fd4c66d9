"""Functions that the tutorials share: reports, checks, figures and simple meshes.

The tutorials run from any folder and in any notebook, because they import these functions from the
installed package. The functions do not check their arguments, and are not intended for other
programs.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from dolfinx import fem
from dolfinx.fem import petsc
from dolfinx.mesh import CellType, create_box, locate_entities_boundary, meshtags
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.fem import TaggedMesh, write_mesh
from dolfinx_mbd.forms import Section
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.geometry.gmsh_model import mesh_volumes
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from dolfinx_mbd.optional import optional_module
from dolfinx_mbd.plotting.report import Check, Report

__all__ = [
    "check",
    "check_close",
    "chord_displacement",
    "figure",
    "middle_acceleration",
    "plot_histories",
    "plot_orbits",
    "report",
    "report_page",
    "results_folder",
    "save_report",
    "shank_section",
    "show",
    "solve",
    "tagged_bar",
    "timed",
    "write_bracket",
]

root = MPI.COMM_WORLD.rank == 0
# Texts, checks, and pictures with their captions, in the order of the reports. Files are read only
# if a page is written
_entries: list[str | Check | tuple[Any, str]] = []
_pages: list[Path] = []  # pages that are written later, in which failed checks appear


def results_folder(name: str) -> Path:
    """Return the folder `results/name` in the current folder, and create it."""
    folder = Path("results") / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def report(text: object = "") -> None:
    """Print a text on rank 0, and keep it for `save_report`."""
    _entries.append(str(text))
    if root:
        print(text, flush=True)


def save_report(path: Path) -> None:
    """Write all texts and checks so far to a text file, on rank 0."""
    if root:
        texts = [entry for entry in _entries if not isinstance(entry, tuple)]
        path.write_text(f"{_report_of(texts).text}\n", encoding="utf-8")


def _report_of(entries: Iterable[str | Check | tuple[Any, str]], title: str = "") -> Report:
    """Return a report with the entries; files of pictures and pages become part of it."""
    result = Report(title)
    for entry in entries:
        if isinstance(entry, Check):
            result.check(entry.name, entry.value, entry.low, entry.high, entry.unit)
        else:
            result.add(*((entry,) if isinstance(entry, str) else entry))
    return result


@contextmanager
def report_page(path: Path, title: str) -> Iterator[None]:
    """Write a page with all that was reported and drawn, after the body of the `with` statement.

    Checks in the body that fail do not end it; they are in the page, which rank 0 writes.

    Args:
        path: File to write, with the suffix `.html`.
        title: Title of the page.

    Raises:
        AssertionError: A check of the body failed.
    """
    _pages.append(path)
    try:
        yield
    finally:
        _pages.remove(path)
        if root:
            print(f"page {_report_of(_entries, title).save(path)}", flush=True)
    checks = [entry for entry in _entries if isinstance(entry, Check)]
    failed = [str(entry) for entry in checks if not entry.passed]
    if failed:
        raise AssertionError("\n".join(failed))


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Report the wall-clock time that the body of the `with` statement takes."""
    start = time.perf_counter()
    yield
    report(f"{what:<24} {time.perf_counter() - start:6.1f} s")


def check(what: str, value: float, low: float, high: float, unit: str = "") -> None:
    """Report a number with its bounds.

    Args:
        what: Description of the number.
        value: The number.
        low: Lower bound.
        high: Upper bound.
        unit: Unit of the three numbers.

    Raises:
        AssertionError: The number is outside its bounds, or not a number.
    """
    result = Check(what, float(value), low, high, unit)
    _entries.append(result)
    if not result.passed and not _pages:
        raise AssertionError(str(result))
    if root:
        print(result, flush=True)


def check_close(what: str, value: float, expected: float, tolerance: float, unit: str = "") -> None:
    """Report a number next to the expected one.

    Args:
        what: Description of the number.
        value: The number.
        expected: The expected number.
        tolerance: Bound of the relative difference.
        unit: Unit of both numbers.

    Raises:
        AssertionError: The relative difference exceeds the tolerance, or is not a number.
    """
    bound = tolerance * abs(expected)
    check(what, value, expected - bound, expected + bound, unit)


@contextmanager
def figure(
    path: Path, rows: int = 1, columns: int = 1, *, title: str = "", **options: Any
) -> Iterator[Any]:
    """Give the axes of a new figure to the body of the `with` statement, then write the figure.

    All ranks draw, and rank 0 writes the file. A notebook shows the figure below its cell.

    Args:
        path: File to write.
        rows: Number of rows of axes.
        columns: Number of columns of axes.
        title: Title above all axes.
        **options: Further arguments of `matplotlib.pyplot.subplots`, for example `figsize`.
    """
    plt = optional_module("matplotlib.pyplot", "figures")
    style: Any = {"axes.grid": True, "grid.alpha": 0.3, "axes.xmargin": 0, "lines.linewidth": 1.2}
    style |= {"figure.dpi": 110, "legend.fontsize": "small"}
    size = (9, max(3.6, 2.7 * rows)) if columns == 1 else (11, max(4.2, 3.2 * rows))
    with plt.rc_context(style):
        canvas, axes = plt.subplots(
            rows, columns, **{"figsize": size, "layout": "constrained", **options}
        )
        if title:
            canvas.suptitle(title)
        yield axes
        if root:
            canvas.savefig(path)
        if "inline" not in plt.get_backend():
            plt.close(canvas)
    if root:
        _entries.append((path, title or path.stem))
        print(f"figure {path}", flush=True)


def plot_histories(
    path: Path,
    x: tuple[str, np.ndarray],
    rows: Mapping[str, Mapping[str, np.ndarray]],
    *,
    title: str = "",
    levels: Mapping[str, Iterable[float]] | None = None,
    **axis: Any,
) -> None:
    """Draw histories over a common abscissa, one row of axes for each quantity.

    Args:
        path: File to write.
        x: Label and values of the abscissa.
        rows: For each row its label, and the curves by name. Curves whose names start with "rigid"
            are dotted.
        title: Title above all axes.
        levels: Values to mark by dashed lines, by the label of the row; by default none.
        **axis: Further properties of the lowest axes, for example `xticks`.
    """
    with figure(path, len(rows), title=title, sharex=True, squeeze=False) as axes:
        for ax, (label, curves) in zip(axes[:, 0], rows.items(), strict=True):
            for name, values in curves.items():
                ax.plot(x[1], values, "k:" if name.startswith("rigid") else "-", label=name)
            for level in (levels or {}).get(label, ()):
                ax.axhline(level, color="0.5", ls="--", lw=0.8)
            ax.set(ylabel=label)
            if len(curves) > 1:
                ax.legend(
                    loc="lower right", bbox_to_anchor=(1, 1), ncols=len(curves), frameon=False
                )
        axes[-1, 0].set(xlabel=x[0], **axis)


def plot_orbits(path: Path, orbits: Mapping[str, np.ndarray], clearance: float) -> None:
    """Draw orbits side by side, each with the circle of its clearance.

    Args:
        path: File to write.
        orbits: Displacements along x and y, shape (nt, 2) each, by label.
        clearance: Radial clearance in the unit of the displacements.
    """
    count, angle, limits = len(orbits), np.linspace(0.0, 2 * np.pi, 200), 1.05 * clearance
    with figure(path, 1, count, sharey=True, figsize=(2.3 * count, 2.8), squeeze=False) as axes:
        for ax, (name, orbit) in zip(axes[0], orbits.items(), strict=True):
            ax.plot(clearance * np.cos(angle), clearance * np.sin(angle), "0.5", ls="--", lw=0.8)
            ax.plot(*orbit.T)
            ax.set(title=name, xlabel="x", aspect="equal")
            ax.set(xlim=(-limits, limits), ylim=(-limits, limits))
        axes[0, 0].set(ylabel="y")


def show(draw: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Draw a picture or a page on rank 0; a notebook shows it, a script only writes its file.

    Args:
        draw: A function of `mbd.plotting`.
        *arguments: Its arguments.
        **options: Its further arguments.
    """
    if root:
        picture = draw(*arguments, **options)
        paths = [value for value in (*arguments, *options.values()) if isinstance(value, Path)]
        caption = options.get("title") or "".join(path.stem for path in paths[:1])
        _entries.append((paths[0] if paths else picture, caption))
        if hasattr(builtins, "get_ipython"):
            builtins.display(picture)  # type: ignore[attr-defined]


def chord_displacement(rod: ReducedBody, eta: np.ndarray) -> np.ndarray:
    """Return the displacement of the point "middle" of a rod from the chord between its ends.

    The chord connects the interfaces "big_end" and "small_end" of the deformed rod, so the result
    does not depend on the reference frame of the rod.

    Args:
        rod: Reduced rod with the point "middle" at half length.
        eta: Elastic coordinates, shape (nt, n).

    Returns:
        Displacement along the chord, across it and along z, shape (nt, 3), m.
    """
    big, small, middle = rod.interface("big_end"), rod.interface("small_end"), rod.point("middle")
    ends = [eta @ end.motion[:3].T for end in (big, small)]
    chord = (small.point + ends[1]) - (big.point + ends[0])
    along = chord / np.linalg.norm(chord, axis=1, keepdims=True)
    across = np.cross([0.0, 0.0, 1.0], along)
    normal = np.broadcast_to([0.0, 0.0, 1.0], along.shape)
    position = middle.position - 0.5 * (big.point + small.point)
    offset = position + eta @ middle.modes - 0.5 * (ends[0] + ends[1])
    return np.stack([np.sum(offset * axis, axis=1) for axis in (along, across, normal)], axis=1)


def shank_section(geometry: ConnectingRod, height: float | None = None) -> Section:
    """Return the I-section of the shank of the parametric rod.

    Args:
        geometry: Dimensions of the rod.
        height: Height of the section, m; by default that at half length.
    """
    if height is None:
        height = 0.5 * (geometry.shank_big + geometry.shank_small)
    width, flange, thin = geometry.flange_width, geometry.flange_thickness, geometry.web_thickness
    web = height - 2 * flange  # height of the web
    return Section(
        area=width * height - (width - thin) * web,
        Iyy=(2 * flange * width**3 + web * thin**3) / 12,
        Izz=(width * height**3 - (width - thin) * web**3) / 12,
        torsion=(2 * width * flange**3 + web * thin**3) / 3,
    )


def middle_acceleration(radius: float, length: float, speed: float, time: np.ndarray) -> np.ndarray:
    """Return the acceleration of the middle of a rigid rod in a slider-crank.

    Args:
        radius: Crank radius, m.
        length: Length of the rod, m.
        speed: Constant angular velocity of the crank, rad/s.
        time: Times since the top dead centre, shape (nt,), s.

    Returns:
        Acceleration along the rod and across it, shape (nt, 2), m/s².
    """
    rigid = SliderCrank(radius, length).motion(speed * time, speed)
    pin = -radius * speed**2 * np.stack([np.cos(speed * time), np.sin(speed * time)], axis=1)
    slider = np.stack([rigid.slider_acceleration, 0 * time], axis=1)
    middle = 0.5 * (pin + slider)  # accelerations along the global axes x and y
    cos, sin = np.cos(rigid.rod_angle), np.sin(rigid.rod_angle)
    return np.stack(
        [cos * middle[:, 0] + sin * middle[:, 1], cos * middle[:, 1] - sin * middle[:, 0]], axis=1
    )


def tagged_bar(
    lengths: tuple[float, float, float], cells: tuple[int, int, int], ends: tuple[str, str]
) -> TaggedMesh:
    """Return a mesh of hexahedra of a straight bar whose two end faces are tagged.

    Args:
        lengths: Lengths of the bar along x, y and z, m. It starts at x = 0, centred on the x axis.
        cells: Number of cells along x, y and z.
        ends: Names of the faces at x = 0 and at the other end.
    """
    low = np.array([0.0, -lengths[1] / 2, -lengths[2] / 2])
    corners = [low, low + np.array(lengths)]
    bar = create_box(MPI.COMM_WORLD, corners, list(cells), CellType.hexahedron)
    facets = [
        locate_entities_boundary(bar, 2, lambda x, at=at: np.isclose(x[0], at))
        for at in (0.0, lengths[0])
    ]
    tags = np.repeat(np.array([1, 2], dtype=np.int32), [len(f) for f in facets])
    order = np.argsort(np.concatenate(facets))
    facet_tags = meshtags(bar, 2, np.concatenate(facets)[order], tags[order])
    groups = {name: (2, tag) for tag, name in enumerate(ends, 1)}
    return TaggedMesh(bar, facet_tags=facet_tags, groups=groups)


def solve(V: Any, stiffness: Any, load: Any, bcs: list[Any]) -> Any:
    """Return the solution of a linear problem, by MUMPS.

    Args:
        V: Function space of the solution.
        stiffness: Compiled bilinear form.
        load: Compiled linear form.
        bcs: Dirichlet boundary conditions.
    """
    A = petsc.assemble_matrix(stiffness, bcs)
    A.assemble()
    b = petsc.assemble_vector(load)
    petsc.apply_lifting(b, [stiffness], [bcs])
    b.ghostUpdate(PETSc.InsertMode.ADD, PETSc.ScatterMode.REVERSE)
    petsc.set_bc(b, bcs)
    ksp = PETSc.KSP().create(V.mesh.comm)
    ksp.setErrorIfNotConverged(True)
    ksp.setOperators(A)
    ksp.setType("preonly")
    ksp.getPC().setType("lu")
    ksp.getPC().setFactorSolverType("mumps")
    ksp.getPC().setFactorSetUpSolverType()
    ksp.getPC().getFactorMatrix().setMumpsIcntl(14, 100)  # workspace for any number of ranks
    solution = fem.Function(V)
    ksp.solve(b, solution.x.petsc_vec)
    solution.x.scatter_forward()
    for thing in (ksp, A, b):
        thing.destroy()
    return solution


def write_bracket(path: Path) -> None:
    """Mesh a bracket with two bores and an ear with gmsh, and write it to a file; rank 0 writes.

    The bores "left" and "right" have a radius of 10 mm, and their centres are at x = 0 and 0.2 m.

    Args:
        path: File to write, in metres.
    """
    if root:
        write_mesh(_bracket, path, overwrite=True)
    MPI.COMM_WORLD.Barrier()


def _bracket(model: Any) -> None:
    """Add the bracket to a model of gmsh, and mesh it."""
    occ = model.occ
    plate = (3, occ.addBox(-0.025, -0.02, -0.006, 0.25, 0.04, 0.012))
    ear = (3, occ.addBox(0.085, 0.02, -0.006, 0.03, 0.045, 0.012))
    solid = occ.fuse([plate], [ear])[0]
    bores = [(3, occ.addCylinder(x, 0, -0.006, 0, 0, 0.012, 0.01)) for x in (0.0, 0.2)]
    volumes = [tag for _, tag in occ.cut(solid, bores)[0]]
    occ.synchronize()
    model.addPhysicalGroup(3, volumes, name="bracket")
    for name, x in (("left", 0.0), ("right", 0.2)):
        box = x - 0.011, -0.011, -0.007, x + 0.011, 0.011, 0.007
        faces = [tag for _, tag in model.getEntitiesInBoundingBox(*box, 2)]
        model.addPhysicalGroup(2, faces, name=name)
    mesh_volumes(model, volumes, size=0.007, order=1)
