"""Size of a page of the viewer, time to its first picture, and pictures per second.

    ./with-fenicsx python3 benchmarks/viewer_page.py [--nodes 50000] [--frames 200] [--folder pages]

The rod of a slider-crank is a thin wavy plate of one layer of hexahedra, so that all nodes are on
the surface. Its page has displacements and stress of a run. The plate is reduced, with 20
fixed-interface modes (`--kinds reduced`), or on its mesh (`--kinds mesh`, which simulates all its
nodes). `--kinds rod` takes a connecting rod of tetrahedra with an unstructured fine surface and a
coarse interior. Chromium opens the page, and draws in software if there is no graphics card;
without Chromium or playwright the last two columns are empty. The goal is 5 MB for 50,000 nodes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.plotting.viewer.page import asset

LENGTH, WIDTH, THICKNESS = 0.3, 0.15, 0.003  # m
ROD_AREA = 0.088  # surface of the rod that sets the element size for a number of nodes, m²
RADIUS, SPEED, STEP = 0.1, 150.0, 2e-4  # crank radius, m; speed, rad/s; time step, s

PICTURES = """async () => {
  let count = 0;
  const begin = performance.now();
  for (; performance.now() - begin < 5000; count++) await new Promise(requestAnimationFrame);
  return (1000 * count) / (performance.now() - begin);
}"""


def plate(nodes: int) -> tuple[Any, dict[str, Any]]:
    """Return the model of a wavy plate with about `nodes` nodes, and its interfaces.

    The interfaces are "left" at x = 0 and "right" at x = LENGTH.
    """
    from dolfinx import mesh as dmesh
    from mpi4py import MPI

    cells_x = max(4, round(nodes**0.5))
    cells_y = max(2, round(nodes / (2 * cells_x)) - 1)  # there are two layers of nodes
    corners = [
        np.array([0, -WIDTH / 2, -THICKNESS / 2]),
        np.array([LENGTH, WIDTH / 2, THICKNESS / 2]),
    ]
    mesh = dmesh.create_box(
        MPI.COMM_WORLD, corners, [cells_x, cells_y, 1], dmesh.CellType.hexahedron
    )
    ends = [
        dmesh.locate_entities_boundary(mesh, 2, lambda x, place=place: np.isclose(x[0], place))
        for place in (0.0, LENGTH)
    ]
    x = mesh.geometry.x
    x[:, 2] += 0.004 * np.sin(40 * x[:, 0]) * np.cos(60 * x[:, 1])
    facets = np.concatenate(ends).astype(np.int32)
    order = np.argsort(facets)
    values = np.repeat(np.array([1, 2], np.int32), [len(end) for end in ends])
    tags = dmesh.meshtags(mesh, 2, facets[order], values[order])
    interfaces = {
        name: mbd.InterfaceSpec(k, point=(place, 0, 0), axes=np.eye(3))
        for k, (name, place) in enumerate((("left", 0.0), ("right", LENGTH)), 1)
    }
    return mbd.ElasticModel(mesh, mbd.STEEL, facet_tags=tags, degree=1), interfaces


def fine_rod(nodes: int) -> tuple[Any, dict[str, Any]]:
    """Return the model of a rod with about `nodes` surface nodes, and its interfaces.

    The interface "left" is the big end, "right" the small end.
    """
    from mpi4py import MPI

    default = mbd.ConnectingRod()
    sizes = {name: value for name, value in asdict(default).items() if isinstance(value, float)}
    scale = LENGTH / default.length
    shape = mbd.ConnectingRod(**{name: scale * v for name, v in sizes.items()}, order=1)
    size = (2 * ROD_AREA / nodes / 3**0.5) ** 0.5  # of equilateral triangles, two for each node

    def builder(model: Any) -> None:
        shape(model)
        field = model.mesh.field
        near, fine = field.add("Distance"), field.add("Threshold")
        field.setNumbers(near, "SurfacesList", [tag for _, tag in model.getEntities(2)])
        values = {"SizeMin": size, "SizeMax": 0.01, "DistMin": 0.0, "DistMax": 0.01}
        for name, value in {"InField": near, **values}.items():
            field.setNumber(fine, name, value)
        field.setAsBackgroundMesh(fine)
        model.mesh.clear()
        model.mesh.generate(3)

    mesh = mbd.build_mesh(builder, MPI.COMM_SELF)
    interfaces = {
        "left": mbd.InterfaceSpec("big_end"),
        "right": mbd.InterfaceSpec("small_end"),
    }
    return mbd.ElasticModel(mesh, mbd.STEEL, degree=1), interfaces


def crank(rod: Any) -> mbd.System:
    """Return a slider-crank with a rod that has interfaces left and right."""
    ground = mbd.Ground({"origin": mbd.Frame(), "guide": mbd.Frame(axes=(1, 0, 0))})
    pin = {"main": mbd.Frame(), "pin": mbd.Frame((RADIUS, 0, 0))}
    wheel = mbd.RigidBody("crank", 1.0, [0.01] * 3, frames=pin)
    frames = {"pin": mbd.Frame(), "guide": mbd.Frame(axes=(1, 0, 0))}
    start = (RADIUS + LENGTH, 0, 0)
    slider = mbd.RigidBody("slider", 0.3, [1e-4] * 3, frames=frames, position=start)
    joints = [
        mbd.revolute("main", ground.frame("origin"), wheel.frame("main")),
        mbd.revolute("big_end", wheel.frame("pin"), rod.frame("left")),
        mbd.spherical("small_end", rod.frame("right"), slider.frame("pin")),
        mbd.prismatic("guide", ground.frame("guide"), slider.frame("guide")),
    ]
    drivers = [mbd.Driver("motor", "main", mbd.constant_speed(SPEED))]
    return mbd.System([ground, wheel, rod, slider], joints, drivers=drivers)


def simulated(kind: str, nodes: int, frames: int) -> Any:
    """Return a run with a reduced body or a mesh body."""
    model, interfaces = fine_rod(nodes) if kind == "rod" else plate(nodes)
    options: dict[str, Any] = {"position": (RADIUS, 0, 0)}
    if kind == "mesh":
        rod: Any = mbd.MeshBody("plate", model, interfaces, viscosity=1e-5, **options)
    else:
        reduction = mbd.reduce(model, interfaces=interfaces, num_modes=20)
        body = reduction.body.replace(stress=mbd.durability.skin_stress(reduction))
        rod = mbd.FlexibleBody("plate", body, **options)
    return mbd.simulate(crank(rod), t_end=STEP * (frames - 1), dt=STEP)


def watched(path: Path) -> tuple[str, str]:
    """Return the seconds to the first picture and pictures per second, as text."""
    program = shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        return "", ""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
    options += ["--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=options)
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        start = time.perf_counter()
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("#panel > *", state="attached", timeout=120_000)
        page.evaluate("new Promise((done) => requestAnimationFrame(done))")
        first = time.perf_counter() - start
        rate = page.evaluate(PICTURES)
        browser.close()
    return f"{first:.1f}", f"{rate:.1f}"


def main() -> None:
    """Print a row for each kind of body."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument(
        "--kinds", nargs="+", default=["reduced"], choices=["reduced", "mesh", "rod"]
    )
    parser.add_argument("--folder", type=Path, default=Path("results"))
    options = parser.parse_args()
    viewer = sum(len(asset(name)) for name in ("three.min.js", "player.js", "player.css"))
    columns = ["body", "nodes", "instants", "modes in the page", "MB", "bytes per node"]
    columns += ["writing, s", "first picture, s", "pictures per second"]
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for kind in options.kinds:
        run = simulated(kind, options.nodes, options.frames)
        path, start = options.folder / f"page_{kind}.html", time.perf_counter()
        mbd.plotting.player(run, path, quantity="von Mises")
        seconds, size = time.perf_counter() - start, path.stat().st_size
        scene = re.search(r'id="scene">(.*?)</script>', path.read_text(encoding="utf-8"))
        assert scene is not None
        page = json.loads(scene[1])
        (part,) = (part for part in page["parts"] if part["stress"])
        count = part["points"]["count"]
        first, rate = watched(path)
        modes, bytes_per_node = len(part["modes"]["scale"]), (size - viewer) / count
        row = [kind, f"{count:,}", len(run), modes, f"{size / 1e6:.2f}", f"{bytes_per_node:.0f}"]
        print(f"| {' | '.join(map(str, [*row, f'{seconds:.1f}', first, rate]))} |", flush=True)


if __name__ == "__main__":
    main()
