"""Interfaces of a body: groups of facets with a reference point and axes, where joints meet it.

A *rigid* interface (RBE2) moves as one, u = d + θ×(x - x_k) on its facets. The motion of an
*averaged* one (RBE3) is a mean over its facets, which stay free to deform; see `averaged`.

In the plane facets are edges, points have z = 0, and the axes are those of the body: a bore's z is
the body's. In space, where they are not given, the point is the area centroid of the facets and the
z axis is the direction that the normals avoid: the eigenvector of ∫n⊗n with the smallest
eigenvalue, which is the axis of a bore or of a pin. Where there is no such direction (a flat face,
a sphere), the axes are those of the body. Where the corners of the facets are on a cylinder and go
all the way around it, point and z axis are on the axis of that cylinder, so that bores which are
parallel or of equal width in the geometry are so in every mesh, up to round-off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, names, refuse
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.facets import checked_key, facet_groups
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.surface_integrals import SurfaceMoments, body_size, surface_moments
from dolfinx_mbd.reduction.averaged import averaged_rows
from dolfinx_mbd.reduction.cylinders import facet_corners, fit_axis

__all__ = ["InterfaceSpec", "MeshInterface", "bore_axes", "mesh_interfaces"]

Array = NDArray[np.float64]

AXIS_GAP = 0.05
"""Least gap between the two smallest eigenvalues of the mean of n⊗n that makes an axis."""

LINE = 1e-3
"""Width over length of a group of facets below which it is a line."""

TINY = 1e-5
"""Size of a group of facets over that of the body below which it is a point."""

KINDS = ("rigid", "averaged")


@dataclass(frozen=True, eq=False)
class InterfaceSpec:
    """Facets, reference point, axes and kind of an interface.

    Attributes:
        facets: Group name, tag of facets, or array of local facets (each rank its own).
            None: the group of the interface's name.
        point: Reference point, shape (3,), m, body frame; of a plane body also (2,). None: the
            centre of the facets, or a point on the axis of their cylinder.
        axes: Columns are the axes in the body frame, a rotation matrix of shape (3, 3); or only the
            direction of z, shape (3,). None: the axis of the cylinder, or the body's axes.
        kind: ``rigid`` (RBE2: the facets move as one body) or ``averaged`` (RBE3: the motion is a
            mean over the facets, which stay free to deform).
    """

    facets: str | int | NDArray[np.int32] | None = None
    point: ArrayLike | None = None
    axes: ArrayLike | None = None
    kind: Literal["rigid", "averaged"] = "rigid"

    def __post_init__(self) -> None:
        choice("kind", self.kind, KINDS)
        if self.facets is not None:
            object.__setattr__(self, "facets", checked_key("facets", self.facets))
        for name, shapes in (("point", ((3,), (2,))), ("axes", ((3, 3), (3,)))):
            value = getattr(self, name)
            if value is None:
                continue
            expected = f"finite numbers of shape {' or '.join(map(str, shapes))}"
            numbers = array(name, value, expected=expected)
            if numbers.shape not in shapes:
                refuse(name, value, expected)
            if name == "axes":
                numbers = _checked_axes(numbers)
            numbers.flags.writeable = False
            object.__setattr__(self, name, numbers)

    @staticmethod
    def each(
        interfaces: Iterable[str] | Mapping[str, Any], kind: Literal["rigid", "averaged"]
    ) -> dict[str, InterfaceSpec]:
        """Return several interfaces of one kind.

        Args:
            interfaces: Names of groups, or a mapping from name to group, as in `reduce`.
            kind: ``rigid`` or ``averaged``.

        Example:
            >>> import dolfinx_mbd as mbd
            >>> specs = mbd.InterfaceSpec.each(["big_end", "small_end"], "averaged")
            >>> specs["big_end"].facets, specs["small_end"].kind
            ('big_end', 'averaged')
        """
        return {name: replace(spec, kind=kind) for name, spec in _specs(interfaces).items()}


@dataclass(frozen=True, eq=False)
class MeshInterface:
    """An interface on the mesh.

    Attributes:
        name: Its name.
        point: Reference point, shape (3,), m.
        axes: Columns are its axes, shape (3, 3).
        blocks: Owned blocks of the displacement space on its facets (local numbers).
        dim: Components of a displacement: 3, or 2 in the plane.
        kind: ``rigid`` or ``averaged``.
        facets: Its local facets.
        rows: Of an averaged one, shape (len(dofs), 6), in the plane (len(dofs), 3): the motion of
            the interface is the sum of rowsᵀ u[dofs] over all ranks. None of a rigid one.
    """

    name: str
    point: Array
    axes: Array
    blocks: NDArray[np.int32]
    dim: int = 3
    kind: str = "rigid"
    facets: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    rows: Array | None = None

    @property
    def dofs(self) -> NDArray[np.int32]:
        """Owned displacement degrees of freedom on its facets (local numbers)."""
        return (self.dim * self.blocks[:, None] + np.arange(self.dim, dtype=np.int32)).ravel()


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
        ValueError: Unknown or empty group, facets that lie in a line or in a point, or two
            interfaces that overlap or, where one is rigid, touch; the same error on every rank.

    Note: Collective.
    """
    specs = _specs(interfaces)
    groups = facet_groups(mesh, {name: spec.facets for name, spec in specs.items()}, facet_tags)
    found = []
    dim = space.mesh.topology.dim
    for name, spec in specs.items():
        facets = groups[name]
        point, axes = _given(name, spec, dim)
        area = surface_moments(space.mesh, facets)
        _check_surface(name, spec.kind, area, body_size(space.mesh), point is None or axes is None)
        if point is None or axes is None:
            fitted = _fitted(space.mesh, facets, area)
            point = fitted[0] if point is None else point
            axes = fitted[1] if axes is None else axes
        blocks = fem.locate_dofs_topological(space, dim - 1, facets)
        blocks = blocks[blocks < space.dofmap.index_map.size_local].astype(np.int32)
        found.append(MeshInterface(name, point, axes, blocks, dim, spec.kind, facets))
    _check_disjoint(space, found)
    return tuple(_with_rows(space, i) if i.kind == "averaged" else i for i in found)


def _with_rows(space: fem.FunctionSpace, interface: MeshInterface) -> MeshInterface:
    rows = averaged_rows(space, interface.facets, interface.point[: interface.dim])
    return replace(interface, rows=rows[interface.dofs])


def _check_surface(name: str, kind: str, area: SurfaceMoments, size: float, needed: bool) -> None:
    """Refuse facets of which no area, or no rotation, can be told."""
    if not area.area > 0:
        if kind == "averaged":
            raise InputError(
                f"interface {name!r} has no facets on the surface of the body, over which its "
                "motion could be averaged"
            )
        if needed:
            raise InputError(
                f"interface {name!r} has no facets on the surface of the body; "
                "give its point and axes"
            )
        return
    radii = area.radii
    if radii[-1] < TINY * size:
        raise InputError(
            f"interface {name!r} is tiny: its facets are {3.5 * radii[-1]:.2g} m long on a body of "
            f"{size:.2g} m; tag the whole surface that the joint holds"
        )
    if len(radii) == 3 and radii[1] < LINE * radii[-1]:
        raise InputError(
            f"interface {name!r} is degenerate: its facets lie in a line ({3.5 * radii[-1]:.2g} m "
            f"long, {3.5 * radii[1]:.2g} m wide), which does not tell the rotation about it"
        )


def _given(name: str, spec: InterfaceSpec, dim: int) -> tuple[Array | None, Array | None]:
    """Point and axes as far as they are known: in the plane the axes always are."""
    point = None if spec.point is None else np.asarray(spec.point)
    axes = None if spec.axes is None else np.asarray(spec.axes)
    if dim == 3:
        if point is not None and len(point) != 3:
            raise InputError(f"interface {name!r}: the point needs three coordinates, got {point}")
        return point, axes
    if point is not None and point[2:].any():
        raise InputError(f"interface {name!r}: the points of a plane body have z = 0, got {point}")
    if axes is not None and not np.allclose(axes[:, 2], [0, 0, 1]):
        raise InputError(f"interface {name!r}: in a plane body the z axis is (0, 0, 1)")
    return None if point is None else in_space(point), np.eye(3) if axes is None else axes


def _specs(interfaces: Iterable[str] | Mapping[str, Any]) -> dict[str, InterfaceSpec]:
    if isinstance(interfaces, str):
        interfaces = [interfaces]
    if isinstance(interfaces, np.ndarray):
        refuse("interfaces", interfaces, "names of groups, or a mapping from name to group")
    if not isinstance(interfaces, Mapping):
        interfaces = {name: name for name in names("interfaces", interfaces)}
    specs = {}
    for name, value in interfaces.items():
        checked_name("every name in interfaces", name)
        spec = value if isinstance(value, InterfaceSpec) else InterfaceSpec(facets=value)
        if spec.facets is None:
            spec = replace(spec, facets=name)
        specs[name] = spec
    return specs


def _check_disjoint(space: fem.FunctionSpace, interfaces: list[MeshInterface]) -> None:
    """Rigid interfaces share nodes with no other; averaged ones share no facets."""
    comm, topology = space.mesh.comm, space.mesh.topology
    owned = topology.index_map(topology.dim - 1).size_local
    for i, a in enumerate(interfaces):
        for b in interfaces[:i]:
            if a.kind == b.kind == "averaged":
                common = np.intersect1d(a.facets, b.facets)
                facets = comm.allreduce(int(np.sum(common < owned)))
                if facets:
                    raise InputError(
                        f"interfaces {b.name!r} and {a.name!r} overlap: they share {facets} facets"
                    )
                continue
            shared = comm.allreduce(len(np.intersect1d(a.blocks, b.blocks)))
            if shared:
                raise InputError(
                    f"interfaces {b.name!r} and {a.name!r} share {shared} nodes; "
                    "a rigid interface must not touch another"
                )


def _fitted(mesh: Mesh, facets: NDArray[np.int32], area: SurfaceMoments) -> tuple[Array, Array]:
    """Return point and axes from the facets: those of their cylinder, if they are on one."""
    point = in_space(area.centroid)
    if mesh.topology.dim == 2:
        return point, np.eye(3)
    axes, corners = bore_axes(area.normals), facet_corners(mesh, facets)
    cylinder = fit_axis(corners, point, axes[:, 2]) if _has_axis(area.normals) else None
    return (point, axes) if cylinder is None else (cylinder[0], _triad(_upwards(cylinder[1])))


def bore_axes(normals: Array) -> Array:
    """Axes of a surface from the mean of n⊗n: columns x, y, z, a rotation matrix.

    z is the eigenvector with the smallest eigenvalue, if that stands apart; its largest component
    is positive (of equal ones, the last). x is the body's x axis made orthogonal to z (the body's
    y axis where z is close to x). Components of z below 1e-6 count as zero. If no direction stands
    apart, the body's axes.

    Args:
        normals: Mean of n⊗n, shape (3, 3), trace 1.
    """
    if not _has_axis(normals):
        return np.eye(3)
    return _triad(_upwards(np.linalg.eigh(normals)[1][:, 0]))


def _has_axis(normals: Array) -> bool:
    values = np.linalg.eigvalsh(normals)
    return bool(values[1] - values[0] >= AXIS_GAP)


def _upwards(z: Array) -> Array:
    """Return the direction whose largest component is positive, without the noise of the mesh."""
    largest = np.flatnonzero(np.abs(z) > (1 - 1e-6) * np.abs(z).max())[-1]
    z = z * np.sign(z[largest])
    z[np.abs(z) < 1e-6] = 0.0
    return z


def _triad(z: Array) -> Array:
    z = z / np.linalg.norm(z)
    start = np.eye(3)[1 if abs(z[0]) > 0.9 else 0]
    x = start - (start @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _checked_axes(axes: Array) -> Array:
    if axes.ndim == 1:
        if not np.linalg.norm(axes) > 0:
            raise InputError("the z axis of an interface must not be zero")
        return _triad(axes)
    if not np.allclose(axes.T @ axes, np.eye(3), atol=1e-8) or np.linalg.det(axes) < 0:
        raise InputError("an interface's axes must be a right-handed orthonormal triad (columns)")
    return axes
