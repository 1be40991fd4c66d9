"""Named points of flexible bodies, which become frames if joints and loads use them."""

from __future__ import annotations

from collections.abc import Sequence

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.joints import FrameRef, Joint
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.mechanism.protocol import Body

__all__ = ["with_named_points"]


def with_named_points(bodies: Sequence[Body], parts: Sequence[Joint | Load]) -> tuple[Body, ...]:
    """Return the bodies with frames at the named points that joints and loads use.

    Args:
        bodies: Bodies of the system.
        parts: Joints and loads of the system.

    Raises:
        InputError: A joint or load refers to an unknown body, or exerts a moment on a point.
    """
    points: dict[str, dict[str, None]] = {}  # names by body; unlike a set, a dict keeps the order
    by_name = {body.name: body for body in bodies}
    for part in parts:
        kind = getattr(part, "kind", type(part).__name__)
        for end, ref in _frame_references(part):
            body, frame = ref
            if body not in by_name:
                verb = "depends on" if end == "of" else "is attached to"
                raise InputError(
                    f"{kind} {part.name!r} {verb} body {body!r}, which is not one of "
                    f"the bodies {[*by_name]}: add it to the first argument of System",
                    argument="bodies",
                    value=body,
                )
            if frame not in getattr(by_name[body], "point_names", ()):
                continue
            if end != "of" and not _acts_by_a_force(part, end):
                raise InputError(
                    f"{kind} {part.name!r} exerts a moment on point {frame!r} of body "
                    f"{body!r}, but a named point transmits forces only: forces, spring-"
                    "dampers, spherical and distance joints may act at it, and it may slide on "
                    "a line, a plane or a curve. Make it an interface of the reduction",
                    argument=end,
                    value=ref,
                )
            points.setdefault(body, {})[frame] = None
    return tuple(
        item.with_points([*points[item.name]]) if item.name in points else item  # type: ignore[attr-defined]
        for item in bodies
    )


def _frame_references(part: Joint | Load) -> list[tuple[str, FrameRef]]:
    """Return the arguments and frames on which a joint or load acts or depends."""
    if isinstance(part, Joint):
        return [("first", part.first), ("second", part.second)]
    return [*part.ends, *(("of", ref) for ref in part.sources)]


def _acts_by_a_force(part: Joint | Load, end: str) -> bool:
    """Return whether a joint or load exerts a force, but no moment, on the frame at an end."""
    if isinstance(part, Joint):
        if part.constraint is not None:
            return end in part.constraint.point_ends
        slides = end == "second" and part.kind in ("point_on_line", "point_on_plane")
        return slides or part.kind == "spherical"
    return not part.exerts_moments
