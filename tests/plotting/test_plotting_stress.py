"""Pictures of values on the skin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from PIL import Image

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from dolfinx_mbd.body import ReducedBody, Skin, StressModes
from dolfinx_mbd.mechanism.mechanisms import slider_crank

pytest.importorskip("pyvista")

from dolfinx_mbd.plotting import animate, plot_skin
from dolfinx_mbd.plotting.pictures import canvas
from dolfinx_mbd.plotting.pictures.mechanism_pictures import drawing_of
from tests.body.test_stress_modes import one_mode_body
from tests.models.bodies import box
from tests.plotting.test_plotting import bar

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
SKIN = Skin(POINTS, FACES, np.zeros((2, 4, 3)))


@pytest.fixture
def body() -> ReducedBody:
    """Return a tetrahedron."""
    return one_mode_body().replace(skin=SKIN)


def test_colours_follow_the_values(body: ReducedBody, tmp_path: Path) -> None:
    """Colours change from blue to red, also in the file."""
    if MPI.COMM_WORLD.rank:
        return
    pictures = [
        plot_skin(body, values, tmp_path / "a.png", limits=(0, 100), view="iso", window=(300, 220))
        .image[60:150]
        .astype(int)
        for values in (np.full(4, 15e6), np.full(4, 85e6))
    ]
    redness = [np.sum(image[..., 0] - image[..., 2] > 60) for image in pictures]
    blueness = [np.sum(image[..., 2] - image[..., 0] > 60) for image in pictures]
    assert redness[1] > 1000 > redness[0]
    assert blueness[0] > 1000 > blueness[1]
    assert (tmp_path / "a.png").stat().st_size > 1000


@pytest.mark.parametrize(("sign", "node", "word"), [(1, 2, "maximum 80"), (-1, 2, "minimum -80")])
def test_the_maximum_is_marked(
    body: ReducedBody, monkeypatch: pytest.MonkeyPatch, sign: int, node: int, word: str
) -> None:
    """Label, caption and ring have the largest value, its unit and its node."""
    if MPI.COMM_WORLD.rank:
        pytest.skip("one rank draws")
    texts: dict[str, Any] = {}

    def complete(plotter: Any, caption: str, *rest: Any) -> None:
        labels = plotter.actors["labels-labels"].GetMapper().GetInputAlgorithm().GetInput()
        texts["label"] = labels.GetPointData().GetAbstractArray("labels").GetValue(0)
        texts["ring"] = plotter.actors["ring white"].GetPositionCoordinate().GetValue()
        texts["caption"] = caption
        plotter.close()

    monkeypatch.setattr(canvas, "complete", complete)
    plot_skin(body, sign * np.array([10e6, 20e6, 80e6, 30e6]), title="greatest stress")
    assert texts["label"] == f"{sign * 80} MPa"
    assert texts["ring"] == tuple(SKIN.points[node])
    assert texts["caption"] == f"greatest stress: {word} MPa at (0, 1000, 0) mm"
    plot_skin(body, sign * np.array([80e6, 0, 0, 0]), view=(1.0, 1.0, 1.0))  # behind a face
    assert texts["caption"].endswith("at (0, 0, 0) mm (behind the surface)")


def test_movie_in_colours_of_stress(tmp_path: Path) -> None:
    """From the least to the largest stress, blue becomes red at a fixed range of colours."""
    if MPI.COMM_WORLD.rank:
        pytest.skip("one rank draws")
    skin = bar().skin
    assert skin is not None
    stress = np.zeros((6, len(skin.points), 3))
    stress[0, :, 0] = 1e9  # uniform, per unit of the first elastic coordinate
    crank = {"crank_radius": 0.05, "crank_mass": 0.9, "piston_mass": 0.2}
    loaded = bar().replace(stress=StressModes(skin.points, stress))
    run = mbd.simulate(slider_crank(loaded, speed=200.0, **crank), t_end=0.01, dt=1e-4)
    eta = run.body("rod").eta[:, 0]
    k = int(np.argmax(np.abs(eta)))
    low = int(np.argmin(np.abs(eta)))
    options: dict[str, Any] = {"quantity": "von Mises", "scale": 1.0, "marks": ("joints",)}
    drawing = drawing_of(run, np.array([low, k]), view=None, **options)
    assert drawing.field.text == "von Mises stress, averaged over cells (MPa)"
    assert drawing.field.limits is not None
    # 1e9 Pa per unit of the coordinate, in MPa
    assert drawing.field.limits[1] == pytest.approx(1e3 * abs(eta[k]), rel=0.05)
    times = run.time[[low, k]]
    path = tmp_path / "run.gif"
    shown = animate(run, path, times=times, window=(640, 480), **options)
    np.testing.assert_allclose(shown.time, times)
    images = []
    with Image.open(path) as film:
        for frame in range(2):
            film.seek(frame)
            images.append(np.asarray(film.convert("RGB"), dtype=int)[40:380])
    red = [np.sum((im[..., 0] > 90) & (im[..., 1] < 60) & (im[..., 2] < 60)) for im in images]
    assert red[1] > 1000 > 100 > red[0]
    joints = [np.abs(im - [200, 85, 27]).max(axis=2) < 60 for im in images]
    assert min(mark.sum() for mark in joints) > 50


def test_bad_input(body: ReducedBody, tmp_path: Path) -> None:
    for values in (np.zeros(3), np.full(4, np.nan), "stress", None, np.zeros(4, complex)):
        with pytest.raises(errors.InputError) as error:
            plot_skin(body, values)
        assert error.value.argument == "values"
    with pytest.raises(errors.InputError) as error:
        plot_skin(body, np.zeros(4), tmp_path / "a.txt")
    assert error.value.argument == "path"
    with pytest.raises(errors.InputError) as error:
        plot_skin(body.replace(skin=None), np.zeros(4))
    assert (error.value.argument, error.value.expected) == ("body", "a body with a skin")


def test_a_function_of_the_mesh(comm: MPI.Intracomm, tmp_path: Path) -> None:
    """All ranks gather the values of a function at the skin, and one rank draws them."""
    from dolfinx import fem

    from dolfinx_mbd import STEEL, reduce
    from dolfinx_mbd.durability.recovery import skin_values

    reduction = reduce(
        mbd.ElasticModel(box(comm), STEEL, degree=1), interfaces=["left"], num_modes=2
    )
    body = reduction.body
    assert body.skin is not None
    for family, degree in (("Lagrange", 2), ("DG", 1)):
        linear = fem.Function(fem.functionspace(reduction.space.mesh, (family, degree)))
        linear.interpolate(lambda x: 3 * x[0] - 2 * x[1] + x[2])
        exact = body.skin.points @ [3.0, -2.0, 1.0]
        np.testing.assert_allclose(skin_values(linear), exact, atol=1e-12)
    # the mean of the cells of a node is that of the stress modes at the skin
    eta = np.array([[1e-6, 2e-6], [3e-6, -1e-6]])
    envelope = mbd.envelope(reduction, eta, "stress xx")
    skin = mbd.durability.skin_stress(reduction)
    assert skin is not None
    stress = mbd.recover(reduction, eta[:1], "stress xx")[0]
    values = skin.values("stress xx", eta[:1])[0]
    np.testing.assert_allclose(skin_values(stress), values, atol=1e-9 * np.abs(values).max())
    with pytest.raises(errors.InputTypeError):
        skin_values(fem.Function(reduction.space))
    if comm.size > 1:
        with pytest.raises(errors.InputError) as error:
            plot_skin(body, envelope.value)
        assert error.value.argument == "values"
        return
    drawn = plot_skin(body, envelope.value, tmp_path / "a.png", window=(300, 220))
    averages = plot_skin(body, skin_values(envelope.value), window=(300, 220))
    assert not np.array_equal(drawn.image, averages.image)  # the caption has the peak in a cell
    with pytest.raises(errors.InputError):  # another body's
        plot_skin(one_mode_body().replace(skin=SKIN), envelope.value)
