"""Points and axes of interfaces, from their facets or from the user."""

from __future__ import annotations

import numpy as np
import pytest
from dolfinx import fem
from mpi4py import MPI

from dolfinx_mbd.fem.interfaces.interfaces import InterfaceSpec, bore_axes, mesh_interfaces
from dolfinx_mbd.fem.meshing import build_mesh
from dolfinx_mbd.geometry import ConnectingRod
from tests.models.bodies import HEIGHT, LENGTH, WIDTH, box


def test_bores_of_a_rod(comm: MPI.Intracomm) -> None:
    """Centres and axes of both bores are found on a curved mesh without symmetry."""
    mesh = build_mesh(ConnectingRod(size=0.012), comm)
    space = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    big, small = mesh_interfaces(mesh, space, ["big_end", "small_end"])
    assert big.point == pytest.approx([0, 0, 0], abs=1e-6)
    assert small.point == pytest.approx([0.137, 0, 0], abs=1e-6)
    assert np.allclose(big.axes, np.eye(3), atol=1e-6)
    assert np.allclose(small.axes, np.eye(3), atol=1e-6)
    assert len(set(comm.allgather(big.point.tobytes()))) == 1
    assert comm.allreduce(len(big.dofs)) == 3 * comm.allreduce(len(big.blocks)) > 0


def test_flat_faces_take_the_axes_of_the_body(comm: MPI.Intracomm) -> None:
    """A flat face does not determine an axis."""
    mesh = box(comm)
    space = fem.functionspace(mesh.mesh, ("Lagrange", 1, (3,)))
    (right,) = mesh_interfaces(mesh, space, ["right"])
    assert right.point == pytest.approx([LENGTH, HEIGHT / 2, WIDTH / 2], rel=1e-12)
    assert np.array_equal(right.axes, np.eye(3))


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0.6, 0, 0.8), (1, -2, -2)])
def test_axes_of_any_bore(axis: tuple[float, float, float]) -> None:
    """z is the axis of the bore, its sign follows a rule; x is close to the body's x axis."""
    z = np.array(axis) / np.linalg.norm(axis)
    axes = bore_axes((np.eye(3) - np.outer(z, z)) / 2)
    assert np.allclose(axes.T @ axes, np.eye(3))
    assert np.linalg.det(axes) == pytest.approx(1)
    assert abs(axes[:, 2] @ z) == pytest.approx(1)
    # The last of the components of largest magnitude is positive.
    assert axes[np.abs(z) > 0.99 * np.abs(z).max(), 2][-1] > 0
    assert np.array_equal(axes, bore_axes((np.eye(3) - np.outer(z, z)) / 2))


def test_point_and_axes_can_be_given(comm: MPI.Intracomm) -> None:
    """The direction of z alone is enough; the name may differ from that of the group."""
    mesh = box(comm)
    space = fem.functionspace(mesh.mesh, ("Lagrange", 1, (3,)))
    specs = {
        "pin": InterfaceSpec("left", point=(0, 0, 0), axes=(0, 2, 0)),
        "right": InterfaceSpec(),
    }
    pin, right = mesh_interfaces(mesh, space, specs)
    assert pin.name == "pin"
    assert not pin.point.any()
    assert np.allclose(pin.axes, np.column_stack([[1, 0, 0], [0, 0, -1], [0, 1, 0]]))
    assert right.point[0] == pytest.approx(LENGTH)


def test_invalid_axes() -> None:
    """The specification itself raises errors for left-handed or zero axes."""
    with pytest.raises(ValueError, match="right-handed"):
        InterfaceSpec(axes=np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="not zero"):
        InterfaceSpec(axes=(0, 0, 0))
    with pytest.raises(ValueError, match="shape"):
        InterfaceSpec(point=(0,))
