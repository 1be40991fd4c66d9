"""Marks of mechanisms: they are where the forces act, and have the right sizes and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors, plotting
from dolfinx_mbd.body import LoadPattern, Skin
from dolfinx_mbd.forms import Cable
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from dolfinx_mbd.mechanism.mechanisms.gas import AMBIENT_PRESSURE
from dolfinx_mbd.plotting.pictures.drawing import Drawing
from dolfinx_mbd.plotting.pictures.mechanism_pictures import drawing_of as film_of
from dolfinx_mbd.plotting.scene.arrows import joint_arrows, load_arrows
from dolfinx_mbd.plotting.scene.description import Arrow, value_text
from dolfinx_mbd.plotting.scene.mechanism_scene import DRAWN
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.results import Solution
from dolfinx_mbd.structures.cables.cable_body import CableBody
from tests.plotting.test_plotting import bar

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank draws")
pv = pytest.importorskip("pyvista", reason="pictures need pyvista", exc_type=ImportError)

PRESSURE = 5e6
SMALL = (320, 240)


def at_rest(system: mbd.System) -> Solution:
    """Return a solution that has the initial state only."""
    return Solution(system, [mbd.dynamics.consistent_state(system, 0.0)])


@pytest.fixture(scope="module")
def hung() -> mbd.System:
    """Return a hinged bar with springs, dampers and loads of several kinds."""
    points = {
        "hinge": (0, 0, 0),
        "above": (0.5, 0.4, 0),
        "below": (0.8, -0.3, 0),
        "side": (1, 0.4, 0),
    }
    ground = mbd.Ground({name: mbd.Frame(p) for name, p in points.items()})
    ends = {"hinge": (0, 0, 0), "middle": (0.5, 0, 0), "late": (0.8, 0, 0), "tip": (1, 0, 0)}
    beam = mbd.RigidBody.box(
        "beam", (1.0, 0.05, 0.05), mass=2.0, centre=(0.5, 0, 0),
        frames={name: mbd.Frame(p) for name, p in ends.items()},
    )  # fmt: skip
    loads = [
        mbd.SpringDamper("spring", ground.frame("above"), beam.frame("middle"), 5e3),
        mbd.SpringDamper("damper", ground.frame("below"), beam.frame("late"), damping=30.0),
        mbd.SpringDamper("strut", ground.frame("side"), beam.frame("tip"), 4e3, 20.0),
        mbd.Bushing("bushing", ground.frame("hinge"), beam.frame("hinge"), [1e3] * 6),
        mbd.JointSpring("coil", "hinge", 50.0),
        mbd.force("push", beam.frame("tip"), (30.0, -40.0, 0.0), axes="frame"),
        mbd.torque("twist", beam.frame("middle"), (0.0, 0.0, 35.0)),
    ]
    hinge = mbd.revolute("hinge", ground.frame("hinge"), beam.frame("hinge"))
    return mbd.System([ground, beam], [hinge], loads=loads, gravity=(0, -9.81, 0))


def drawing_of(run: Solution, rows: list[int]) -> Drawing:
    """Return the drawing of some instants of a run."""
    options: dict[str, Any] = {"scale": 1.0, "quantity": "displacement", "view": None}
    return film_of(run, np.array(rows), marks=DRAWN, **options)


def actors(plotter: Any) -> dict[str, Any]:
    """Return the meshes of a plotter by the names of their actors."""
    meshes = {name: getattr(a, "mapper", None) for name, a in plotter.actors.items()}
    return {name: m.dataset for name, m in meshes.items() if hasattr(m, "dataset")}


def test_every_spring_load_and_support_is_drawn(hung: mbd.System) -> None:
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(hung, plotter=plotter)
    drawn = actors(plotter)
    names = {f"spring {name}" for name in ("spring", "damper", "strut", "bushing", "coil")}
    names |= {"joint hinge", "ground", "loads: push (N)", "loads: twist (N m)"}
    assert names <= set(drawn)
    for name, start, end in (
        ("spring", (0.5, 0.4, 0), (0.5, 0, 0)),
        ("damper", (0.8, -0.3, 0), (0.8, 0, 0)),
        ("strut", (1, 0.4, 0), (1, 0, 0)),
    ):
        points, axis = drawn[f"spring {name}"].points, np.subtract(end, start)
        share = (points - start) @ axis / (axis @ axis)
        assert share.min() == pytest.approx(0, abs=1e-5)
        assert share.max() == pytest.approx(1, abs=1e-5)
    radius = [
        np.abs(drawn[f"spring {k}"].points[:, 2]).max() for k in ("spring", "damper", "strut")
    ]
    assert radius[0] > 1.5 * radius[1] and radius[2] == pytest.approx(radius[0], rel=0.01)
    ground = drawn["ground"].points  # one cone with its tip at each fixed point
    for point in ((0, 0, 0), (0.5, 0.4, 0), (0.8, -0.3, 0), (1, 0.4, 0)):
        assert np.linalg.norm(ground - point, axis=1).min() < 1e-6
    plotter.close()
    bare = pv.Plotter(off_screen=True)
    plotting.plot_system(hung, marks=(), plotter=bare)
    assert not names & set(actors(bare))
    bare.close()


def test_arrows_have_the_directions_and_the_sizes_of_loads(hung: mbd.System) -> None:
    arrows = {a.name: a for a in load_arrows(at_rest(hung), np.array([0]))}
    assert arrows.keys() == {"push", "twist"}
    np.testing.assert_allclose(arrows["push"].vectors, [[30.0, -40.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(arrows["push"].points, [[1.0, 0.0, 0.0]], atol=1e-9)
    assert arrows["push"].text(0) == "push: 50 N" and arrows["twist"].text(0) == "twist: 35 N m"
    run = mbd.simulate(hung, t_end=0.2, dt=2e-3)
    push = next(a for a in load_arrows(run, np.array([0, 100])) if a.name == "push")
    A = mbd.results.histories.rotation_matrices(run.body("beam").rotation[100])
    np.testing.assert_allclose(push.vectors[1], A @ [30.0, -40.0, 0.0], atol=1e-9)
    drawing = drawing_of(at_rest(hung), [0])
    plotter = pv.Plotter(off_screen=True)
    drawing.add_to(plotter, cmap="turbo", opacity=0.5)
    distances = actors(plotter)["loads: push (N)"].points @ [0.6, -0.8, 0.0]
    assert np.ptp(distances) == pytest.approx(
        0.2 * drawing.scene.length, rel=0.02
    )  # it is the longest arrow
    plotter.close()


def test_gas_forces_and_the_moment_of_the_drive() -> None:
    design = EngineDesign(cylinders=1)
    engine = inline_engine(bar(), design, speed=300.0, pressure=lambda angle: PRESSURE)
    run = mbd.simulate(engine, t_end=2e-3, dt=1e-4)
    rows = np.array([0, 10, 20])
    (gas,) = load_arrows(run, rows)
    force = (PRESSURE - AMBIENT_PRESSURE) * np.pi * design.bore**2 / 4
    np.testing.assert_allclose(gas.vectors, [[-force, 0, 0]] * 3, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(gas.points, run.body("piston 1").position[rows], atol=1e-9)
    (drive,) = (a for a in joint_arrows(run, rows, drivers=True) if a.unit == "N m")
    np.testing.assert_allclose(drive.vectors, run.joint("drive").moment[rows], atol=1e-9)
    forces = {a.name: a for a in joint_arrows(run, rows) if a.unit == "N"}
    pin = forces["crank pin 1"]  # force of the crank on the rod, which balances that of the piston
    total = np.linalg.norm(pin.vectors, axis=1)
    np.testing.assert_allclose(total, np.linalg.norm(run.joint("crank pin 1").force[rows], axis=1))


def test_distributed_load_has_its_resultant_on_its_line_of_action() -> None:
    body = bar()
    force, place = np.array([0.0, -2.0, 0.0]), np.array([0.15, 0.0, 0.0])
    moments = np.zeros((3, 3))
    pattern = LoadPattern("wind", force, np.cross(place, force), np.zeros(3), moments)
    body = body.replace(loads=(pattern,))
    flexible = mbd.FlexibleBody("bar", body)
    system = mbd.System(
        [flexible], loads=[mbd.mechanism.PatternLoad("wind", flexible.pattern("wind"), 3.0)]
    )
    (arrow,) = load_arrows(at_rest(system), np.array([0]))
    origin = at_rest(system).body("bar").position[0]
    np.testing.assert_allclose(arrow.vectors, [3 * force], atol=1e-9)
    offset = arrow.points[0] - origin
    np.testing.assert_allclose(np.cross(offset, force), np.cross(place, force), atol=1e-12)
    assert arrow.frame == -1


def test_marks_move_with_the_mechanism(hung: mbd.System) -> None:
    run = mbd.simulate(hung, t_end=0.2, dt=2e-3)
    drawing = drawing_of(run, [0, 50])
    plotter = pv.Plotter(off_screen=True)
    drawing.add_to(plotter, cmap="turbo", opacity=0.5)
    for k, row in ((0, 0), (1, 50), (0, 0)):
        drawing.move(k)
        tip, upper = run.sensor("beam", "tip")[row], np.array([1.0, 0.4, 0.0])
        points, axis = actors(plotter)["spring strut"].points, tip - upper
        share = (points - upper) @ axis / (axis @ axis)
        assert (share.min(), share.max()) == pytest.approx((0, 1), abs=1e-4)
    assert "largest force 50 N, moment 35 N m" in drawing.largest_arrows
    plotter.close()


def test_small_arrows_are_hidden_and_labels_show_values(hung: mbd.System) -> None:
    beam = hung.body("beam")
    loads = [mbd.force(name, beam.frame("tip"), (0, -f, 0)) for name, f in (("a", 1e5), ("b", 1.0))]  # type: ignore[attr-defined]
    system = mbd.System(hung.bodies, hung.joints, loads=loads)
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(system, marks=("loads", "names"), plotter=plotter)
    assert plotter.actors["loads: a (N)"].visibility
    assert not plotter.actors["loads: b (N)"].visibility
    labels = plotter.actors["labels-labels"].GetMapper().GetInputAlgorithm().GetInput()
    texts = labels.GetPointData().GetAbstractArray("labels")
    shown = {texts.GetValue(i) for i in range(texts.GetNumberOfValues())}
    assert shown == {"a: 100 kN", "hinge"}
    plotter.close()


def test_arrow_units() -> None:
    texts = {
        0.02: "f: 20 mN",
        12.5: "f: 12.5 N",
        34190.0: "f: 34.2 kN",
        2e6: "f: 2 MN",
        0: "f: 0 N",
    }
    for value, text in texts.items():
        vectors = np.array([[0.0, value, 0.0]])
        assert Arrow("f", "loads", "N", 0, np.zeros((1, 3)), vectors).text(0) == text


def test_cables_are_drawn() -> None:
    ground = mbd.Ground({"top": mbd.Frame()})
    rope = CableBody(
        "rope",
        Cable(axial_stiffness=1e5, bending_stiffness=0.2, linear_density=0.1),
        (0, 0, 0),
        (1.0, 0, 0),
    )
    joint = mbd.spherical("knot", ground.frame("top"), rope.frame("start"))
    system = mbd.System([ground, rope], [joint], gravity=(0, -9.81, 0))
    run = mbd.simulate(system, t_end=0.2, dt=5e-3)
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(run, 0.2, plotter=plotter)
    line, points = rope.motion(run).position[-1], actors(plotter)["cable rope"].points
    gaps = np.linalg.norm(points[:, None] - line[None], axis=2).min(axis=0)
    assert gaps.max() < 0.01 and line[-1, 1] < -0.1
    plotter.close()


def test_spring_along_a_joint_and_marks_that_vanish() -> None:
    # The z axes of the frames, along which the block slides, are the global x axis.
    ground = mbd.Ground({"guide": mbd.Frame(axes=[(0, 0, 1), (1, 0, 0), (0, 1, 0)])})
    x_axis = {"guide": mbd.Frame(axes=[(0, 0, 1), (1, 0, 0), (0, 1, 0)])}
    block = mbd.RigidBody.box(
        "block", (0.1, 0.1, 0.1), mass=1.0, frames=x_axis, position=(0.4, 0, 0)
    )
    guide = mbd.prismatic("guide", ground.frame("guide"), block.frame("guide"))
    late = mbd.force("late", block.frame("guide"), lambda t, motion: (max(t - 0.05, 0.0), 0, 0))
    system = mbd.System(
        [ground, block], [guide], loads=[mbd.JointSpring("coil", "guide", 1e3), late]
    )
    run = mbd.simulate(system, t_end=0.1, dt=1e-3)
    plotter = pv.Plotter(off_screen=True)
    plotting.plot_system(system, plotter=plotter)
    coil = actors(plotter)["spring coil"].points
    z = np.asarray(x_axis["guide"].axes)[:, 2]
    assert ((coil @ z).min(), (coil @ z).max()) == pytest.approx((0.0, 0.4), abs=1e-5)
    plotter.close()
    picture = plotting.plot_system(run, 0.0, marks=("loads",), window=SMALL)  # no force yet
    assert picture.image.std() > 5
    drawing = drawing_of(run, [0, 100])
    plotter = pv.Plotter(off_screen=True)
    drawing.add_to(plotter, cmap="turbo", opacity=0.5)
    assert not plotter.actors["loads: late (N)"].visibility
    drawing.move(1)
    assert plotter.actors["loads: late (N)"].visibility
    plotter.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (25_600.0, "25.6 kN"),
        (999.4, "999 N"),
        (999.9, "1 kN"),
        (-999_900.0, "-1 MN"),
        (-25_600.0, "-25.6 kN"),
        (2.5e9, "2.5 GN"),
        (-0.02, "-20 mN"),
        (0.0, "0 N"),
        (2e-6, "2e-06 N"),
    ],
)
def test_numbers_with_units(value: float, text: str) -> None:
    assert value_text(value, "N") == text


def test_unknown_stress_of_a_surface_is_an_error() -> None:
    skin = Skin(np.eye(3), np.array([[0, 1, 2]]), np.ones((1, 3, 3)))
    surface = Surface("plate", skin, np.zeros((1, 3)), np.eye(1, 4), np.ones((1, 1)))
    assert surface.quantity(0, "displacement") == pytest.approx(3**0.5)
    for ask in (lambda: surface.quantity(0, "von Mises"), lambda: surface.limits("von Mises")):
        with pytest.raises(errors.InputError) as error:
            ask()
        assert error.value.argument == "quantity"
