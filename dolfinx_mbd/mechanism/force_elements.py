"""Base classes of force elements between two frames and about or along the axes of joints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import choice
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.joints import MOTIONS, AxisMotion, FrameRef, checked_frame
from dolfinx_mbd.mechanism.load_protocol import Load, Port
from dolfinx_mbd.mechanism.loads import JointForce
from dolfinx_mbd.mechanism.protocol import Body
from dolfinx_mbd.mechanism.run_quantities import LOAD, Quantities, RunQuantity

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.initial_poses import InitialPoses

__all__ = [
    "ContactElement",
    "FilmElement",
    "FramePair",
    "JointElement",
    "PairElement",
]

Array = NDArray[np.float64]


class FramePair(NamedTuple):
    """Positions p, axes Q as columns and velocities u (6,) of two frames in global components."""

    p1: Array
    Q1: Array
    u1: Array
    p2: Array
    Q2: Array
    u2: Array


class PairElement(Load):
    """Base class of force elements between two frames.

    An element whose `surface` is not None also acts on the elastic coordinates η of the body of the
    first frame. The second argument of its methods contains the surface coordinates s = W η and
    their rates, shape (2, m). Its wrenches contain the forces on s, shape (12 + m,), and its
    derivatives have the shape (12 + m, 12 + m).

    The second and third argument of the methods of a `timed` element are the time (s) and its
    states x, shape (m,), with the start values `initial_states`. Its wrenches contain the rates of
    the states, and its derivatives with respect to velocities contain those with respect to x.
    """

    first: FrameRef
    second: FrameRef
    port: ClassVar[Port] = "pair"
    stores_energy: ClassVar[bool] = True
    run_quantities: ClassVar[Quantities] = LOAD
    timed: ClassVar[bool] = False  # whether time and states are further arguments of its methods

    @property
    def location(self) -> str:
        """Frames on which the element acts, for tables."""
        return f"{_place(self.first)} to {_place(self.second)}"

    @property
    def mark(self) -> str:
        """Shape in pictures, a name in `SHAPES` of `plotting/scene/tubes.py`, or an empty text."""
        return "coil"

    @property
    def ends(self) -> tuple[tuple[str, FrameRef], ...]:
        """Both frames."""
        return ("first", self.first), ("second", self.second)

    @property
    def acts_on_modes(self) -> bool:
        """Whether the element acts on an elastic surface."""
        return self.surface is not None

    @property
    def surface(self) -> Array | None:
        """Matrix W of the surface coordinates, shape (m, n), or None."""
        return None

    def _check_ends(self) -> None:
        """Check the name and the frames of the element."""
        label = f"load {checked_name('name', self.name)!r}"
        for end in ("first", "second"):
            assign(self, **{end: checked_frame(f"{label}: {end}", getattr(self, end))})
        if self.first == self.second:
            raise InputError(
                f"{label} connects frame {self.first.frame!r} of body {self.first.body!r} with "
                "itself; specify two frames"
            )

    def placed_in(self, poses: InitialPoses) -> PairElement:
        """Return the element with unspecified lengths or poses measured at the initial poses."""
        body = poses.system.body(self.first.body)
        if self.second.body == body.name and not body.num_elastic:
            raise InputError(
                f"load {self.name!r} connects body {body.name!r}, which does not deform, with "
                "itself; specify frames of two bodies (or of the ground)"
            )
        if self.surface is not None:
            self._check_surface(body, self.surface)
        return self.placed(poses.pair(self))

    def _check_surface(self, body: Body, surface: Array) -> None:
        """Raise an error unless the elastic surface of the element belongs to its first frame."""
        reduced = getattr(body, "reduced", None)
        if reduced is not None:
            W = reduced.bore(self.first.frame).displacement
            if np.array_equal(W.reshape(-1, W.shape[2]), surface):
                return
        raise InputError(
            f"load {self.name!r}: its elastic bore is not that of frame {self.first.frame!r} of "
            f"body {body.name!r}; the first frame must be the interface of a flexible body, and "
            f"the bore body.bore({self.first.frame!r}) of the same reduced body",
            argument="bore",
        )

    def record(self, *arguments: Any) -> dict[str, ArrayLike]:
        """Return motion and energy."""
        return self.motion(*arguments) | {"energy": self.energy(*arguments)}

    @abstractmethod
    def placed(self, pair: FramePair) -> PairElement:
        """Return the element with unspecified lengths or poses measured at the initial poses."""

    @abstractmethod
    def wrenches(self, pair: FramePair) -> Array:
        """Return forces and moments on both frames in global components, shape (12,)."""

    @abstractmethod
    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Return the derivatives with respect to both poses and velocities, (12, 12) each."""

    def elastic_power(self, pair: FramePair, *arguments: Any) -> float:
        """Return the power of the forces that the element would exert at zero velocities, W."""
        p1, Q1, u1, p2, Q2, u2 = pair
        u, zeros = np.concatenate([u1, u2]), np.zeros(6)
        if self.surface is not None:
            s, rates = arguments[0]
            u, arguments = np.concatenate([u, rates]), (np.array([s, np.zeros_like(s)]),)
        wrenches = self.wrenches(FramePair(p1, Q1, zeros, p2, Q2, zeros), *arguments)
        return float(wrenches[: len(u)] @ u)

    @abstractmethod
    def energy(self, pair: FramePair) -> float:
        """Return the stored energy, J."""

    @abstractmethod
    def motion(self, pair: FramePair) -> dict[str, ArrayLike]:
        """Return relative motion and its rate by the names of `run_quantities`."""


class FilmElement(PairElement):
    """Base class of oil films, whose gap must stay open in the iterations of a step.

    The content of a film on a grid is the thickness of the oil at its nodes, or −1 where the oil
    fills the gap. `oil_thickness` is the thickness at all nodes.
    """

    kind: ClassVar[str] = "oil film"
    has_film: ClassVar[bool] = True
    halves_steps: ClassVar[bool] = True  # the film of a fast journal may need shorter steps
    run_quantities: ClassVar[Quantities] = {
        **LOAD,
        "film_thickness": RunQuantity("m"),
        "peak_pressure": RunQuantity("Pa"),
        "side_flow": RunQuantity("m³/s"),
        "supply_flow": RunQuantity("m³/s"),
        "content_rate": RunQuantity("m³/s"),
        "filled_part": RunQuantity("1"),
        "friction_power": RunQuantity("W"),
    }
    clearance: float

    @property
    def group_key(self) -> Hashable:
        """Equal for films that are evaluated together; None if the film is evaluated alone."""
        return None

    def for_run(self) -> FilmElement:
        """Return a copy of the film for one run, or the film if its solutions are not stored.

        Without `begin_step`, the content is that of a steady motion.
        """
        return self

    def follow(self, film: FilmElement) -> bool:
        """Renew a copy of `for_run` if the film has changed; return whether it has.

        The inputs of a simulation change a film.
        """
        return False

    def begin_step(self, content: Array, dt: float) -> None:
        """Begin a step of length `dt` (s): the next evaluations of the film are for its end.

        The argument `content` is the property `content` at the start of the step. If dt = 0, the
        film is again that of a steady motion.
        """

    @property
    def content(self) -> Array:
        """Thickness of the oil at the nodes after the last evaluation, m; −1 in full gaps."""
        return np.zeros(0)

    @property
    def oil_thickness(self) -> Array:
        """Thickness of the oil divided by the clearance, (nodes,), also where the gap is full."""
        return np.zeros(0)

    @property
    @abstractmethod
    def least_thickness(self) -> float:
        """Film thickness below which the loads of the film cannot be trusted, m."""

    def gap_stiffness(self, rate_factor: float, *, assembled: bool) -> Array:
        """Return the derivatives (m, m) of the forces on the coefficients of an elastic gap.

        They are the derivatives by these coefficients, plus `rate_factor` times those by the rates
        of the coefficients. If `assembled`, they are those of the last `derivatives`, otherwise
        those at the last evaluation of the forces.
        """
        raise NotImplementedError

    @property
    def moves_gap(self) -> NDArray[np.bool_]:
        """Whether poses of the frames change each coefficient of an elastic gap, (m,)."""
        raise NotImplementedError

    def write_gap_gradients(
        self, pair: FramePair, delay: float, gradients: Array, changes: Array
    ) -> None:
        """Write the derivatives of the coefficients of an elastic gap by the poses of both frames.

        See `kernels.films.frames.gap_gradients` for `delay` and the results (m, 12) and (m, 18).
        """
        raise NotImplementedError

    @abstractmethod
    def smallest_gap(self, pair: FramePair) -> float:
        """Return the smallest gap, m; the arguments are those of `wrenches`."""


class ContactElement(PairElement):
    """Base class of force elements that act while a gap is negative."""

    kind: ClassVar[str] = "contact"
    has_contacts: ClassVar[bool] = True
    run_quantities: ClassVar[Quantities] = {
        **LOAD,
        "gap": RunQuantity("m", counts="point"),
        "gap_rate": RunQuantity("m/s", counts="point"),
        "normal_force": RunQuantity("N", counts="point"),
        "dissipated": RunQuantity("J"),
    }

    @abstractmethod
    def states(self, pair: FramePair) -> Array:
        """Return gap (m), gap rate (m/s) and normal force (N) of contact points, (points, 3)."""

    def contact_states(self, *arguments: Any) -> Array:
        """Return `states`."""
        return self.states(*arguments)

    @property
    def size(self) -> float | None:
        """Smallest radius of the bodies in contact or a similar length, m; None if unknown."""
        return None


class JointElement(JointForce):
    """Base class of springs, friction and stops about or along the z axis of a joint."""

    is_elastic: ClassVar[bool] = True
    stores_energy: ClassVar[bool] = True
    run_quantities: ClassVar[Quantities] = LOAD

    @property
    def mark(self) -> str:
        """Shape in pictures as for `PairElement`; by default none."""
        return ""

    def _check_joint(self) -> str:
        """Check name, joint and motion, and return a label for messages."""
        label = f"load {checked_name('name', self.name)!r}"
        checked_name(f"{label}: joint", self.joint)
        choice(f"{label}: motion", self.motion, MOTIONS, none=True)
        return label

    def placed_in(self, poses: InitialPoses) -> JointElement:
        """Return the element with the motion of the joint, and unspecified angles measured."""
        joint = poses.system.joint(self.joint)
        motion = joint.free_motion(self.motion, f"load {self.name!r}")
        return self.placed(motion, poses.along(joint, motion))

    @abstractmethod
    def placed(self, motion: AxisMotion, s: float) -> JointElement:
        """Return the element with the given motion; s is the initial coordinate of the joint."""


def _place(frame: FrameRef) -> str:
    """Return the names of a frame and its body for tables."""
    body, name = frame
    return f"{body}: {name}"
