"""A reduced engine block on mounts, which carries the main bearings and guides the pistons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body import Interface, ReducedBody
from dolfinx_mbd.checks import instance, names, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.bodies import FlexibleBody, Ground
from dolfinx_mbd.mechanism.bushings import Bushing
from dolfinx_mbd.mechanism.joint_relations import JointRelation
from dolfinx_mbd.mechanism.joints import FrameRef, Joint
from dolfinx_mbd.mechanism.mechanisms.crank_parts import guide_frame
from dolfinx_mbd.mechanism.mechanisms.engine_crank import MISFIT, numbered_interfaces
from dolfinx_mbd.mechanism.mechanisms.engine_design import EngineDesign
from dolfinx_mbd.mechanism.protocol import Frame

Mounts = Mapping[str, tuple[ArrayLike, ArrayLike]]
"""Stiffness and damping of each mount by the name of the interface of the block."""

_HINT = "for example {'mount_1': (stiffness, damping)}, six numbers each"


@dataclass(frozen=True, eq=False)
class EngineBlock:
    """A reduced crankcase or block of an engine, rigid or flexible.

    The body frame is that of the engine: the shaft is along z, the cylinders are where the design
    has them; `mbd.geometry.Crankcase` is such a block. Interfaces at main bearings need axes whose
    z axis is along the shaft; those at cylinders need a z axis along the cylinder, away from the
    shaft, for example `InterfaceSpec(axes=(1, 0, 0))`.

    Attributes:
        body: The block.
        mains: Names of the interfaces at the main bearings, along the shaft; by default
            ``main_1``, ``main_2``, ...
        cylinders: Names of the interfaces that guide the pistons, in the order of the cylinders; by
            default ``cylinder_1``, ``cylinder_2``, ...
        heads: Names of the interfaces on which the gas of each cylinder acts; by default the
            interfaces that guide the pistons. Their z axes are those of the cylinders.

    Raises:
        InputError: The body has no such interfaces, or the axes of main bearings are not along z.

    Example:
        >>> from dolfinx_mbd.body import Interface
        >>> places = {"main_1": (0, 0, 0), "cylinder_1": (0.15, 0, 0), "mount_1": (0, 0.1, 0)}
        >>> axes = {"cylinder_1": mbd.mechanisms.ALONG_X}
        >>> case = mbd.ReducedBody.from_arrays(
        ...     name="case",
        ...     total_mass=20.0,
        ...     first_moments=np.zeros((1, 3)),
        ...     second_moments=0.3 * np.eye(3)[None, None],
        ...     stiffness=np.zeros((0, 0)),
        ...     interfaces=[
        ...         Interface(
        ...             key, "rigid", np.array(point), axes.get(key, np.eye(3)), np.zeros((6, 0))
        ...         )
        ...         for key, point in places.items()
        ...     ],
        ...     reference="rigid",
        ... )
        >>> system = mbd.mechanisms.engine(
        ...     mbd.mechanisms.rigid_rod(length=0.137, mass=0.2),
        ...     mbd.mechanisms.EngineDesign(cylinders=1),
        ...     block=mbd.mechanisms.EngineBlock(case),
        ...     mounts={"mount_1": ([1e6, 1e6, 1e6, 1e5, 1e5, 1e5], np.zeros(6))},
        ...     speed=200.0,
        ... )
        >>> [body.name for body in system.bodies]
        ['ground', 'crank', 'block', 'rod 1', 'piston 1']
    """

    body: ReducedBody
    mains: Sequence[str] = ()
    cylinders: Sequence[str] = ()
    heads: Sequence[str] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        body = instance("body", self.body, ReducedBody, "reduce(...).body")
        for key, prefix in (("mains", "main"), ("cylinders", "cylinder")):
            listed = names(key, getattr(self, key)) or names(key, numbered_interfaces(body, prefix))
            if not listed:
                hint = f"names of interfaces of body {body.name!r}, or {prefix}_1, ..."
                reject(key, listed, hint)
            assign(self, **{key: listed})
        assign(self, heads=names("heads", self.heads))
        for name in (*self.mains, *self.cylinders, *self.heads):
            body.interface(name)
        for name in self.mains:
            _check_axis(body.interface(name), (0.0, 0.0, 1.0), "along the shaft")

    def check_places(self, design: EngineDesign, journals: Mapping[str, Interface | None]) -> None:
        """Raise an error if bearings, guides or heads are not where the engine needs them.

        Args:
            design: Dimensions of the engine.
            journals: Interface of the crank at each main journal, in the order along the shaft;
                None for a rigid crank.
        """
        limit = MISFIT * design.crank_radius
        if len(self.mains) != len(journals):
            raise InputError(
                f"the block has {len(self.mains)} main bearings, {', '.join(self.mains)}; the crank"
                f" has {len(journals)} main journals, {', '.join(journals)}",
                argument="mains",
                value=self.mains,
            )
        for name, (key, journal) in zip(self.mains, journals.items(), strict=True):
            bore = self.body.interface(name)
            place = np.array([0.0, 0.0, bore.point[2]]) if journal is None else journal.point
            if np.linalg.norm(bore.point - place) > limit:
                raise InputError(
                    f"main bearing {name!r} of the block is at {np.round(bore.point, 6)} m; journal"
                    f" {key!r} of the crank is at {np.round(place, 6)} m; give both reductions the "
                    "same InterfaceSpec(point=...)",
                    argument="block",
                    value=self.body,
                )
            axes = np.eye(3) if journal is None else journal.axes
            if np.linalg.norm(bore.axes - axes) > MISFIT:
                raise InputError(
                    f"the axes of main bearing {name!r} of the block and of journal {key!r} of the "
                    "crank differ; use InterfaceSpec(axes=(0, 0, 1)) for both"
                )
        for key in ("cylinders", "heads"):
            self._check_cylinders(key, design, limit)

    def _check_cylinders(self, key: str, design: EngineDesign, limit: float) -> None:
        """Raise an error if interfaces are not on the axes of the cylinders."""
        listed, count = getattr(self, key), design.cylinders
        if len(listed) != count and (listed or key == "cylinders"):
            raise InputError(
                f"the block has {len(listed)} {key}, {', '.join(listed)}; the engine has {count} "
                f"cylinders",
                argument=key,
                value=listed,
            )
        banks, offsets = np.asarray(design.bank_angles, dtype=float), design.pin_offsets
        for k, name in enumerate(listed):
            frame = guide_frame(float(offsets[k]), float(design.positions[k]), float(banks[k]))
            point, axes = np.asarray(frame.point), np.asarray(frame.axes)
            interface, axis = self.body.interface(name), axes[:, 2]
            distance = np.cross(axis, interface.point - point)
            if np.linalg.norm(distance) > limit:
                nearest = point + axis * float(axis @ (interface.point - point))
                raise InputError(
                    f"interface {name!r} of the block is at {np.round(interface.point, 6)} m, "
                    f"{np.linalg.norm(distance):.3g} m off the axis of cylinder {k + 1}, which "
                    f"passes through {np.round(point, 6)} m in the direction {np.round(axis, 6)}; "
                    f"a point on it is InterfaceSpec(point={tuple(map(float, nearest.round(6)))})",
                    argument="block",
                    value=self.body,
                )
            _check_axis(interface, axis, f"along cylinder {k + 1}, away from the shaft")

    def guide_axes(self, cylinder: int) -> Array:
        """Return the axes (3, 3) of the interface that guides a piston, counted from 0."""
        return np.asarray(self.body.interface(self.cylinders[cylinder]).axes)

    def checked_mounts(self, mounts: Mapping[str, Any] | None) -> dict[str, tuple[Any, Any]]:
        """Return the stiffness and damping of each mount."""
        checked = dict(instance("mounts", {} if mounts is None else mounts, Mapping, _HINT))
        if not checked:
            raise InputError(f"a block needs mounts, {_HINT}", argument="mounts", value=mounts)
        for name, pair in checked.items():
            self.body.interface(name)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                reject(f"mount {name!r}", pair, "stiffness and damping, six numbers each")
        return checked

    def bushings(
        self, ground: Ground, block: FlexibleBody, mounts: Mapping[str, tuple[Any, Any]]
    ) -> list[Bushing]:
        """Return the mounts between the ground and the block."""
        return [
            Bushing(key, ground.frame(key), block.frame(name), *mounts[name])
            for key, name in ((f"mount {name}", name) for name in mounts)
        ]

    def ground_frames(self, mounts: Mapping[str, Any]) -> dict[str, Frame]:
        """Return the frames of the mounts and of the drive on the ground."""
        frames = {f"mount {name}": Frame(self.body.interface(name).point) for name in mounts}
        return frames | {"output": Frame(axes=self.body.interface(self.mains[-1]).axes)}


def _check_axis(interface: Interface, axis: ArrayLike, where: str) -> None:
    """Raise an error if the z axis of an interface does not have a direction."""
    z, needed = np.asarray(interface.axes)[:, 2], np.asarray(axis)
    if np.linalg.norm(z - needed) > MISFIT:
        text = f"the axis z of interface {interface.name!r} must be {where}; it is {z}"
        hint = f"reduce the body with InterfaceSpec(axes={tuple(np.round(needed, 6).tolist())})"
        raise InputError(f"{text}; {hint}")


@dataclass(frozen=True)
class FreeMotion(JointRelation):
    """No constraints: loads and drivers act on the motions about and along z of two frames."""

    kind: ClassVar[str] = "free"
    rows: ClassVar[dict[int, str]] = {}
    motions: ClassVar[tuple[Literal["rotation", "displacement"], ...]] = (
        "rotation",
        "displacement",
    )

    def values(self, d: Array, R: Array) -> Array:
        """Return no constraints."""
        return np.zeros(0)

    def slopes(self, d: Array, R: Array) -> Array:
        """Return no derivatives."""
        return np.zeros((0, 6))

    def second(self, d: Array, R: Array) -> Array:
        """Return no derivatives."""
        return np.zeros((0, 6, 6))


def free_motion(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """Return a joint without constraints, whose motions about and along z carry loads.

    See `Joint` for the arguments.
    """
    return Joint(name, FreeMotion.kind, first, second, relation=FreeMotion())
