"""Pictures of values on the skin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from dolfinx_mbd.body import ReducedBody, Skin

pytest.importorskip("pyvista")

from dolfinx_mbd.plotting import plot_skin
from tests.body.test_stress_modes import one_mode_body
from tests.models.bodies import box

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
SKIN = Skin(POINTS, FACES, np.zeros((2, 4, 3)))


@pytest.fixture
def body() -> ReducedBody:
    """A tetrahedron."""
    return one_mode_body().replace(skin=SKIN)


def test_colours_follow_the_values(body: ReducedBody, tmp_path: Path) -> None:
    """From blue to red; the file is the picture."""
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
    """Values of functions at the skin; on several ranks all gather them, and one draws."""
    from dolfinx import fem

    from dolfinx_mbd import STEEL, reduce
    from dolfinx_mbd.recovery import skin_values

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
    kept = mbd.recovery.skin_stress(reduction)
    assert kept is not None
    one = mbd.recover(reduction, eta[:1], "stress xx")[0]
    values = kept.values("stress xx", eta[:1])[0]
    np.testing.assert_allclose(skin_values(one), values, atol=1e-9 * np.abs(values).max())
    with pytest.raises(errors.InputTypeError):
        skin_values(fem.Function(reduction.space))
    if comm.size > 1:
        with pytest.raises(errors.InputError) as error:
            plot_skin(body, envelope.value)
        assert error.value.argument == "values"
        return
    drawn = plot_skin(body, envelope.value, tmp_path / "a.png", window=(300, 220))
    same = plot_skin(body, skin_values(envelope.value), window=(300, 220))
    assert np.array_equal(drawn.image, same.image)
    with pytest.raises(errors.InputError):  # another body's
        plot_skin(one_mode_body().replace(skin=SKIN), envelope.value)
