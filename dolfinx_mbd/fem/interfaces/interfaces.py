"""Interfaces of a body, at which joints attach: groups of facets with a reference point and axes.

A *rigid* interface (RBE2) moves as one body. The motion of an *averaged* interface (RBE3) is a mean
over its facets; see `averaged`. Default points and axes do not depend on the mesh, up to round-off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd import checks
from dolfinx_mbd.arrays import Array, assign, axes_along
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.cylinders import cylinder_size, facet_corners, fit_axis
from dolfinx_mbd.fem.facets import checked_key, facet_groups
from dolfinx_mbd.fem.interfaces.averaged import averaged_rows
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.surface_integrals import SurfaceMoments, body_size, surface_moments
from dolfinx_mbd.html import short_repr

AXIS_GAP = 0.05  # an axis needs this difference of the two lowest eigenvalues of mean n⊗n
LINE_RATIO = 1e-3  # ratio of width to length below which a group of facets is rejected as a line
TINY_RATIO = 1e-5  # size relative to the body below which a group of facets is rejected as tiny


Interfaces = Iterable[str] | Mapping[str, Any]
"""Names of groups of facets, or `InterfaceSpec`, group or tag by the name of the interface."""


@dataclass(frozen=True, eq=False)
class InterfaceSpec:
    """Facets, reference point, axes and kind of an interface.

    If the corners of the facets lie all around a cylinder, such as a bore or a pin, the default
    point is on the cylinder axis and the default z axis is along it. Otherwise the point is the
    area centroid of the facets, and z is the direction that is closest to perpendicular to all
    normals, if this direction is unique.

    Attributes:
        facets: Group name, tag of facets, or array of this rank's local facets; by default the
            group with the name of the interface.
        point: Reference point in the body frame, shape (3,), or (2,) for a plane body, m; by
            default as described above.
        axes: Rotation matrix of shape (3, 3) whose columns are the axes in the body frame, or only
            the direction of z, shape (3,). By default z is as described above; if z is not unique,
            the axes of the body are used.
        kind: ``rigid`` (RBE2: the facets move as one body) or ``averaged`` (RBE3: the motion is a
            mean over the facets, which stay free to deform).
        pressure_modes: Tolerance of the pressure modes of an averaged bore, for an oil film in an
            elastic bore: largest relative error of the compliance under a test pressure,
            cos(3θ/2) over 120° and parabolic along the bore. 0.02 gives about 30 modes. By default
            the body gets no pressure modes.

    Raises:
        InputError: A value is invalid.

    Example:
        >>> mbd.InterfaceSpec("big_end", point=(0, 0, 0), axes=(0, 0, 2), kind="averaged").axes
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
    """

    facets: str | int | NDArray[np.int32] | None = None
    point: ArrayLike | None = None
    axes: ArrayLike | None = None
    kind: Literal["rigid", "averaged"] = "rigid"
    pressure_modes: float | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, ("rigid", "averaged"))
        if self.pressure_modes is not None:
            checks.number("pressure_modes", self.pressure_modes, positive=True)
            if self.kind == "rigid":
                raise InputError(
                    "pressure_modes needs kind='averaged': a rigid interface keeps the bore round",
                    argument="pressure_modes",
                )
        if self.facets is not None:
            assign(self, facets=checked_key("facets", self.facets))
        for name, shapes in (("point", ((3,), (2,))), ("axes", ((3, 3), (3,)))):
            value = getattr(self, name)
            value = checks.metres(value) if name == "point" else value
            if value is None:
                continue
            expected = f"finite numbers of shape {' or '.join(map(str, shapes))}"
            numbers = checks.array(name, value, expected=expected)
            if numbers.shape not in shapes:
                checks.reject(name, value, expected)
            if name == "axes":
                numbers = _checked_axes(numbers)
            numbers.flags.writeable = False
            assign(self, **{name: numbers})

    @staticmethod
    def each(
        interfaces: Iterable[str] | Mapping[str, Any], kind: Literal["rigid", "averaged"]
    ) -> dict[str, InterfaceSpec]:
        """Return several interfaces of the same kind.

        Args:
            interfaces: Names of groups, or a mapping from name to group, as in `reduce`.
            kind: ``rigid`` or ``averaged``.

        Example:
            >>> specs = mbd.InterfaceSpec.each(["big_end", "small_end"], "averaged")
            >>> specs["big_end"].facets, specs["small_end"].kind
            ('big_end', 'averaged')
        """
        return {name: replace(spec, kind=kind) for name, spec in _specs(interfaces).items()}


@dataclass(frozen=True, eq=False)
class MeshInterface:
    """An interface on the mesh.

    The motion of an averaged interface is the sum of rowsᵀ u[dofs] over all ranks.
    """

    name: str
    point: Array  # (3,), m
    axes: Array  # columns, (3, 3)
    blocks: NDArray[np.int32]  # local indices of owned displacement blocks on the facets
    dim: int = 3  # components of a displacement
    kind: str = "rigid"
    facets: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    rows: Array | None = None  # Cᵀ if averaged, (len(dofs), 6), in the plane (len(dofs), 3)
    pressure_modes: float | None = None  # tolerance of the pressure modes
    size: tuple[float, float] = (0.0, 0.0)  # radius and length of a bore or a journal, m

    @property
    def dofs(self) -> NDArray[np.int32]:
        """Return the local indices of owned displacement degrees of freedom on the facets."""
        return (self.dim * self.blocks[:, None] + np.arange(self.dim, dtype=np.int32)).ravel()


def mesh_interfaces(
    mesh: TaggedMesh | Mesh,
    space: fem.FunctionSpace,
    interfaces: Iterable[str] | Mapping[str, Any],
    facet_tags: MeshTags | None = None,
) -> tuple[MeshInterface, ...]:
    """Return the interfaces with facets, points, axes and degrees of freedom; see `reduce`.

    Note: Collective; errors are the same on every rank.
    """
    specs = _specs(interfaces)
    groups = facet_groups(mesh, {name: spec.facets for name, spec in specs.items()}, facet_tags)
    result = []
    dim = space.mesh.topology.dim
    for name, spec in specs.items():
        facets = groups[name]
        point, axes = _user_frame(name, spec, dim)
        surface, needs_area = surface_moments(space.mesh, facets), point is None or axes is None
        _check_surface(name, spec.kind, surface, body_size(space.mesh), needs_area)
        if point is None or axes is None:
            frame = _default_frame(space.mesh, facets, surface)
            point = frame[0] if point is None else point
            axes = frame[1] if axes is None else axes
        blocks = fem.locate_dofs_topological(space, dim - 1, facets)
        blocks = blocks[blocks < space.dofmap.index_map.size_local].astype(np.int32)
        interface = MeshInterface(name, point, axes, blocks, dim, spec.kind, facets)
        size = 0.0, 0.0
        if dim == 3:
            size = cylinder_size(facet_corners(space.mesh, facets), point, axes)
        result.append(replace(interface, pressure_modes=spec.pressure_modes, size=size))
    _check_disjoint(space, result)
    for k, i in enumerate(result):
        if i.kind == "averaged":
            result[k] = replace(i, rows=averaged_rows(space, i.facets, i.point[:dim])[i.dofs])
    return tuple(result)


def _check_surface(
    name: str, kind: str, surface: SurfaceMoments, size: float, needed: bool
) -> None:
    """Raise an error if a `needed` area is zero, or if the facets do not define rotations.

    The length of a uniform strip is √12 ≈ 3.5 times its radius of gyration.
    """
    radii, message = surface.radii, ""
    if not surface.area > 0:
        if kind == "averaged":
            message = "has no facets on the surface of the body, over which to average its motion"
        elif needed:
            message = "has no facets on the surface of the body; give its point and axes"
    elif radii[-1] < TINY_RATIO * size:
        message = (
            f"is tiny: its facets are {3.5 * radii[-1]:.2g} m long on a body of {size:.2g} m; tag "
            "the whole surface that the joint holds"
        )
    elif len(radii) == 3 and radii[1] < LINE_RATIO * radii[-1]:
        message = (
            f"is degenerate: its facets lie in a line ({3.5 * radii[-1]:.2g} m long, "
            f"{3.5 * radii[1]:.2g} m wide), which does not define the rotation about it"
        )
    if message:
        raise InputError(f"interface {name!r} {message}", argument="interfaces", value=name)


def _user_frame(name: str, spec: InterfaceSpec, dim: int) -> tuple[Array | None, Array | None]:
    """Return the user's point and axes, or None; in the plane the axes are always known."""
    point = None if spec.point is None else np.asarray(spec.point)
    axes = None if spec.axes is None else np.asarray(spec.axes)
    message = ""
    if dim == 3 and point is not None and len(point) != 3:
        message = f"the point needs three coordinates; got {point}"
    elif dim == 2 and point is not None and point[2:].any():
        message = f"the points of a plane body have z = 0; got {point}"
    elif dim == 2 and axes is not None and not np.allclose(axes[:, 2], [0, 0, 1]):
        message = "in a plane body the z axis is (0, 0, 1)"
    if message:
        raise InputError(f"interface {name!r}: {message}", argument="interfaces", value=spec)
    if dim == 2 and axes is None:
        axes = np.eye(3)
    return None if point is None else in_space(point), axes


def _specs(interfaces: Iterable[str] | Mapping[str, Any]) -> dict[str, InterfaceSpec]:
    """Return the interfaces by name, each with its facets."""
    if isinstance(interfaces, str):
        interfaces = [interfaces]
    if isinstance(interfaces, np.ndarray):
        checks.reject("interfaces", interfaces, "names of groups, or a mapping from name to group")
    if not isinstance(interfaces, Mapping):
        if isinstance(interfaces, Iterable):
            interfaces = list(interfaces)
            if any(isinstance(item, InterfaceSpec) for item in interfaces):
                expected = "names of groups, or a dictionary: {'name': InterfaceSpec(...)}"
                checks.reject("interfaces", interfaces, expected, InputTypeError)
        interfaces = {name: name for name in checks.names("interfaces", interfaces)}
    specs = {}
    for name, value in interfaces.items():
        checks.name("every name in interfaces", name)
        spec = value if isinstance(value, InterfaceSpec) else InterfaceSpec(facets=value)
        specs[name] = replace(spec, facets=name) if spec.facets is None else spec
    return specs


def _check_disjoint(space: fem.FunctionSpace, interfaces: list[MeshInterface]) -> None:
    """Raise an error if a rigid interface touches another, or if averaged ones share facets."""
    comm, topology = space.mesh.comm, space.mesh.topology
    owned = topology.index_map(topology.dim - 1).size_local
    for i, a in enumerate(interfaces):
        for b in interfaces[:i]:
            if a.kind == b.kind == "averaged":
                common = np.intersect1d(a.facets, b.facets)
                count = comm.allreduce(int(np.sum(common < owned)))
                message = f"overlap: they share {count} facets"
            else:
                count = comm.allreduce(len(np.intersect1d(a.blocks, b.blocks)))
                message = f"share {count} nodes; a rigid interface must not touch another"
            if count:
                names = f"interfaces {b.name!r} and {a.name!r}"
                raise InputError(f"{names} {message}", argument="interfaces")


def _default_frame(
    mesh: Mesh, facets: NDArray[np.int32], surface: SurfaceMoments
) -> tuple[Array, Array]:
    """Return the point and axes of the cylinder through the facets.

    If no cylinder fits, they follow from the centroid and the normals of the facets.
    """
    point = in_space(surface.centroid)
    if mesh.topology.dim == 2:
        return point, np.eye(3)
    axis, corners = _bore_axis(surface.mean_nn), facet_corners(mesh, facets)
    cylinder = None if axis is None else fit_axis(corners, point, axis)
    if cylinder is None:
        return point, bore_axes(surface.mean_nn)
    point, axis = cylinder
    return point, axes_along(_with_positive_sign(axis))


def bore_axes(mean_nn: Array) -> Array:
    """Return the axes of a surface, as columns, from its mean of n⊗n, shape (3, 3).

    z is the eigenvector of the smallest eigenvalue if this eigenvalue differs from the others;
    otherwise the axes of the body are returned.
    """
    axis = _bore_axis(mean_nn)
    return np.eye(3) if axis is None else axes_along(_with_positive_sign(axis))


def _bore_axis(mean_nn: Array) -> Array | None:
    """Return the direction normal to all normals n, from the mean of n⊗n, if it is unique."""
    values, vectors = np.linalg.eigh(mean_nn)
    return vectors[:, 0] if values[1] - values[0] >= AXIS_GAP else None


def _with_positive_sign(z: Array) -> Array:
    """Return z or -z, so that the largest component (the last of equal components) is positive.

    Components below 1e-6 are noise of the mesh and are set to zero.
    """
    largest = np.flatnonzero(np.abs(z) > (1 - 1e-6) * np.abs(z).max())[-1]
    z = z * np.sign(z[largest])
    z[np.abs(z) < 1e-6] = 0.0
    return z


def _checked_axes(axes: Array) -> Array:
    """Return a rotation matrix from itself or from the direction of its z axis."""
    if axes.ndim == 1:
        if not np.linalg.norm(axes) > 0:
            checks.reject("axes", axes, "a z axis that is not zero, or a rotation matrix")
        return axes_along(axes)
    return checks.rotation_matrix("axes", axes)
