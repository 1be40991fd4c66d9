"""Interfaces of a body: groups of facets with a reference point and axes, where joints meet it.

Where they are not given, the point is the area centroid of the facets and the z axis is the
direction that the normals avoid: the eigenvector of ∫n⊗n with the smallest eigenvalue, which is the
axis of a bore or of a pin. Where there is no such direction (a flat face, a sphere), the axes are
those of the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags, meshtags
from mpi4py import MPI
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analysis.assembly import facet_groups
from dolfinx_mbd.analysis.meshing import TaggedMesh

__all__ = ["InterfaceSpec", "MeshInterface", "bore_axes", "mesh_interfaces"]

Array = NDArray[np.float64]

AXIS_GAP = 0.05
"""Least gap between the two smallest eigenvalues of the mean of n⊗n that makes an axis."""


@dataclass(frozen=True, eq=False)
class InterfaceSpec:
    """What is known of an interface beyond its name; what is None is found from the facets.

    Attributes:
        facets: Group name, tag of facets, or array of local facets (each rank its own).
            None: the group of the interface's name.
        point: Reference point, shape (3,), m, body frame.
        axes: Columns are the axes in the body frame, a rotation matrix of shape (3, 3); or only the
            direction of z, shape (3,).
    """

    facets: str | int | NDArray[np.int32] | None = None
    point: ArrayLike | None = None
    axes: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name, shapes in (("point", ((3,),)), ("axes", ((3, 3), (3,)))):
            value = getattr(self, name)
            if value is None:
                continue
            array = np.array(value, dtype=float)
            if array.shape not in shapes or not np.isfinite(array).all():
                raise ValueError(
                    f"an interface's {name} must be finite numbers of shape "
                    f"{' or '.join(map(str, shapes))}; got {value!r}"
                )
            if name == "axes":
                array = _checked_axes(array)
            array.flags.writeable = False
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class MeshInterface:
    """An interface on the mesh.

    Attributes:
        name: Its name.
        point: Reference point, shape (3,), m.
        axes: Columns are its axes, shape (3, 3).
        blocks: Owned blocks of the displacement space on its facets (local numbers).
    """

    name: str
    point: Array
    axes: Array
    blocks: NDArray[np.int32]

    @property
    def dofs(self) -> NDArray[np.int32]:
        """Owned displacement degrees of freedom on its facets (local numbers)."""
        return (3 * self.blocks[:, None] + np.arange(3, dtype=np.int32)).ravel()


def mesh_interfaces(
    mesh: TaggedMesh | Mesh,
    space: fem.FunctionSpace,
    interfaces: Iterable[str] | Mapping[str, Any],
    facet_tags: MeshTags | None = None,
) -> tuple[MeshInterface, ...]:
    """Find facets, points, axes and degrees of freedom of the interfaces.

    Args:
        mesh: Where the groups are named.
        space: Displacement space.
        interfaces: Names of groups; or a mapping from name to group name, tag or `InterfaceSpec`.
        facet_tags: Tags of facets of a plain mesh.

    Raises:
        ValueError: Unknown or empty group, or two interfaces that share degrees of freedom; the
            same error on every rank.

    Note: Collective.
    """
    specs = _specs(interfaces)
    groups = facet_groups(mesh, {name: spec.facets for name, spec in specs.items()}, facet_tags)
    found = []
    for name, spec in specs.items():
        facets = groups[name]
        point, axes = spec.point, spec.axes
        if point is None or axes is None:
            area, centroid, normals = _surface(space.mesh, facets)
            if not area > 0:
                raise ValueError(
                    f"interface {name!r} has no facets on the surface of the body; "
                    "give its point and axes"
                )
            point = centroid if point is None else point
            axes = bore_axes(np.asarray(normals / area)) if axes is None else axes
        blocks = fem.locate_dofs_topological(space, 2, facets)
        blocks = blocks[blocks < space.dofmap.index_map.size_local].astype(np.int32)
        found.append(MeshInterface(name, np.asarray(point), np.asarray(axes), blocks))
    _check_disjoint(space.mesh.comm, found)
    return tuple(found)


def _specs(interfaces: Iterable[str] | Mapping[str, Any]) -> dict[str, InterfaceSpec]:
    if isinstance(interfaces, str):
        interfaces = [interfaces]
    if not isinstance(interfaces, Mapping):
        names = list(interfaces)
        twice = sorted({str(n) for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"interface {twice[0]!r} is given twice")
        interfaces = {name: name for name in names}
    specs = {}
    for name, value in interfaces.items():
        if not isinstance(name, str):
            raise ValueError(
                f"an interface needs a name (a string), got {name!r}; "
                "tags go as interfaces={'name': tag} with facet_tags"
            )
        spec = value if isinstance(value, InterfaceSpec) else InterfaceSpec(facets=value)
        if spec.facets is None:
            spec = InterfaceSpec(name, spec.point, spec.axes)
        specs[name] = spec
    return specs


def _check_disjoint(comm: MPI.Comm, interfaces: list[MeshInterface]) -> None:
    for i, a in enumerate(interfaces):
        for b in interfaces[:i]:
            shared = comm.allreduce(len(np.intersect1d(a.blocks, b.blocks)))
            if shared:
                raise ValueError(
                    f"interfaces {b.name!r} and {a.name!r} share {shared} nodes; "
                    "rigid interfaces must not touch"
                )


def _surface(mesh: Mesh, facets: NDArray[np.int32]) -> tuple[float, Array, Array]:
    """Area, centroid and ∫n⊗n of exterior facets, the same bits on every rank.

    One compiled form with constants as weights serves all of them and all interfaces.
    """
    tags = meshtags(mesh, 2, facets, np.ones(len(facets), dtype=np.int32))
    ds = ufl.Measure("ds", domain=mesh, subdomain_data=tags)(1)
    one = fem.Constant(mesh, np.float64(0.0))
    first = fem.Constant(mesh, np.zeros(3))
    second = fem.Constant(mesh, np.zeros((3, 3)))
    n, x = ufl.FacetNormal(mesh), ufl.SpatialCoordinate(mesh)
    form = fem.form((one + ufl.dot(first, x) + ufl.dot(n, second * n)) * ds)

    def integral() -> float:
        return mesh.comm.allreduce(fem.assemble_scalar(form))

    one.value = 1.0
    area = integral()
    one.value = 0.0
    moments = np.zeros(3)
    for i in range(3):
        first.value[:] = np.eye(3)[i]
        moments[i] = integral()
    first.value[:] = 0.0
    normals = np.zeros((3, 3))
    for i in range(3):
        for j in range(i + 1):
            second.value[:] = 0.0
            second.value[i, j] = 1.0
            normals[i, j] = normals[j, i] = integral()
    centroid = moments / area if area > 0 else moments
    result: tuple[float, Array, Array] = mesh.comm.bcast((area, centroid, normals), root=0)
    return result


def bore_axes(normals: Array) -> Array:
    """Axes of a surface from the mean of n⊗n: columns x, y, z, a rotation matrix.

    z is the eigenvector with the smallest eigenvalue, if that stands apart; its largest component
    is positive (of equal ones, the last). x is the body's x axis made orthogonal to z (the body's
    y axis where z is close to x). Components of z below 1e-6 count as zero. If no direction stands
    apart, the body's axes.

    Args:
        normals: Mean of n⊗n, shape (3, 3), trace 1.
    """
    values, vectors = np.linalg.eigh(normals)
    if values[1] - values[0] < AXIS_GAP:
        return np.eye(3)
    z = vectors[:, 0]
    largest = np.flatnonzero(np.abs(z) > (1 - 1e-6) * np.abs(z).max())[-1]
    z = z * np.sign(z[largest])
    z[np.abs(z) < 1e-6] = 0.0  # noise of the mesh
    return _triad(z)


def _triad(z: Array) -> Array:
    z = z / np.linalg.norm(z)
    start = np.eye(3)[1 if abs(z[0]) > 0.9 else 0]
    x = start - (start @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _checked_axes(axes: Array) -> Array:
    if axes.ndim == 1:
        if not np.linalg.norm(axes) > 0:
            raise ValueError("the z axis of an interface must not be zero")
        return _triad(axes)
    if not np.allclose(axes.T @ axes, np.eye(3), atol=1e-8) or np.linalg.det(axes) < 0:
        raise ValueError("an interface's axes must be a right-handed orthonormal triad (columns)")
    return axes
