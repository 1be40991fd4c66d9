"""Superelements have Craig-Bampton coordinates, whatever the coordinates of the body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd import STEEL, ElasticModel, reduce
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.export.superelement import superelement
from dolfinx_mbd.reduction import InterfaceSpec
from tests.io.export.rods import NUM_MODES, check_superelement, relative, rod
from tests.models.bodies import box
from tests.models.calls import flat


def test_the_body_in_other_coordinates() -> None:
    body = rod()
    element = superelement(body)
    assert element.names == ("left", "right é") and element.num_modes == NUM_MODES
    check_superelement(body, element.stiffness, element.mass, 1e-11)
    # The rows of T give the displacement, the rotation and the elastic coordinates of the body.
    T, n = element.transform, body.num_modes
    for matrix, modal in ((element.stiffness, body.stiffness), (element.damping, body.damping)):
        whole = np.zeros((6 + n, 6 + n))
        whole[6:, 6:] = modal
        assert relative(matrix, T.T @ whole @ T) < 1e-12
    motion = np.vstack([i.motion for i in body.interfaces]) @ T[6:]
    for k, i in enumerate(body.interfaces):
        d, theta = T[:3], T[3:6]
        motion[6 * k : 6 * k + 3] += d + np.cross(theta.T, i.point).T
        motion[6 * k + 3 : 6 * k + 6] += theta
    assert np.abs(motion - np.eye(12, 12 + NUM_MODES)).max() < 1e-11


@pytest.mark.parametrize("kinds", [("rigid", "rigid"), ("rigid", "averaged")], ids="-".join)
def test_they_are_those_of_the_constraint_and_fixed_modes(kinds: tuple[Any, Any]) -> None:
    """The blocks of "right" and of the modes are those of a reduction attached to "left".

    The same superelement follows from bodies attached to either end, up to the signs of modes.
    """
    mesh = box(MPI.COMM_SELF, cells=(4, 1, 1))
    ends = dict(zip(("left", "right"), (InterfaceSpec(kind=kind) for kind in kinds), strict=True))
    settings: dict[str, Any] = {"interfaces": ends, "num_modes": NUM_MODES, "skin": False}
    raw = flat(reduce, mesh, STEEL, attached_to="left", orthonormalize=False, **settings).body
    expected = superelement(flat(reduce, mesh, STEEL, **settings).body)
    right = slice(6, 12)
    assert relative(expected.stiffness[right, right], raw.stiffness[:6, :6]) < 1e-10
    assert relative(expected.mass[right, right], raw.mass[:6, :6]) < 1e-10
    fixed = np.diag(raw.stiffness)[6:] / np.diag(raw.mass)[6:]
    assert relative(np.diag(expected.stiffness)[12:], fixed) < 1e-9
    for end in ("left", "right"):
        element = superelement(flat(reduce, mesh, STEEL, attached_to=end, **settings).body)
        assert relative(element.stiffness, expected.stiffness) < 1e-10
        sign = np.sign(np.diag(element.mass[12:, :12] @ expected.mass[:12, 12:]))
        signs = np.concatenate([np.ones(12), sign])
        assert relative(element.mass * np.outer(signs, signs), expected.mass) < 1e-9


def test_one_interface_of_several() -> None:
    body = rod()
    element = superelement(body, ["right é"])
    body_of_one = body.replace(interfaces=body.interfaces[1:], stiffening=None)
    check_superelement(body_of_one, element.stiffness, element.mass, 1e-11)
    assert np.abs(element.stiffness[:6]).max() < 1e-9 * np.abs(element.stiffness).max()


def test_modes_left_out_leave_fewer_coordinates_and_a_stiffer_body() -> None:
    """With too few modes, the error names a dependent coordinate and a remedy."""
    body = rod()
    part = body.truncated(body.num_modes - 3)
    element, whole = superelement(part), superelement(body)
    check_superelement(part, element.stiffness, element.mass, 1e-11)
    rise = (element.stiffness[:12, :12] - whole.stiffness[:12, :12]) / np.abs(whole.stiffness).max()
    assert np.linalg.eigvalsh(rise).min() > -1e-12 and np.abs(rise).max() > 1e-3
    with pytest.raises(InputError, match=r"of '.*' depend on.*interfaces=\['left'\]") as error:
        superelement(body.truncated(5))
    assert error.value.argument == "interfaces"
    assert superelement(body.truncated(5), "left").num_modes == 5


def test_a_plane_body_keeps_one_interface() -> None:
    """Without elastic motion out of its plane, two interfaces have dependent motions there."""
    from dolfinx.mesh import create_rectangle, locate_entities_boundary, meshtags

    plain = create_rectangle(MPI.COMM_SELF, [[0.0, 0.0], [0.1, 0.02]], [6, 2])
    facets = locate_entities_boundary(
        plain, 1, lambda x: np.isclose(x[0], 0) | np.isclose(x[0], 0.1)
    )
    plain.topology.create_connectivity(1, 0)
    values = (plain.geometry.x[_vertices(plain, facets)[:, 0], 0] > 0.05).astype(np.int32)
    tags = meshtags(plain, 1, facets, 1 + values)
    model = ElasticModel(plain, STEEL, facet_tags=tags, plane="stress", thickness=0.01)
    body = reduce(model, interfaces={"left": 1, "right": 2}, num_modes=3).body
    with pytest.raises(InputError, match="plane body has none out of its plane"):
        superelement(body)
    element = superelement(body, ["left"])
    check_superelement(
        body.replace(interfaces=body.interfaces[:1], stiffening=None),
        element.stiffness,
        element.mass,
        1e-11,
    )


def _vertices(mesh: Any, facets: np.ndarray) -> np.ndarray:
    """Return the nodes of facets."""
    from dolfinx.mesh import entities_to_geometry

    mesh.topology.create_connectivity(1, mesh.topology.dim)
    return entities_to_geometry(mesh, 1, facets)


def test_bad_input() -> None:
    body = rod()
    with pytest.raises(InputError) as error:
        superelement(body.replace(interfaces=(), stiffening=None))
    assert error.value.expected == "at least one interface"
    with pytest.raises(InputError, match="middle"):
        superelement(body, ["middle"])
    with pytest.raises(InputError) as error:
        superelement(body, ["left", "left"])
    assert error.value.argument == "interfaces"
    loose = np.diag([0.0, *np.diag(body.stiffness)[1:]])
    with pytest.raises(InputError) as error:
        superelement(body.replace(stiffness=loose))
    assert error.value.argument == "body"


def test_a_rigid_body() -> None:
    """M is the rigid mass matrix about one interface; two interfaces are dependent."""
    body = rod().rigid()
    element = superelement(body, ["left"])
    assert element.stiffness.shape == (6, 6) and not element.stiffness.any()
    arm = body.centre - body.interface("left").point
    about = body.central_inertia + body.total_mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assert relative(element.mass[:3, :3], body.total_mass * np.eye(3)) < 1e-12
    assert relative(element.mass[3:, 3:], about) < 1e-12
    with pytest.raises(InputError) as error:
        superelement(body)
    assert error.value.argument == "interfaces"
