"""A torsional vibration damper at the nose of a crank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import number
from dolfinx_mbd.mechanism.bodies import RigidBody
from dolfinx_mbd.mechanism.joints import FrameRef, Joint, fixed, revolute
from dolfinx_mbd.mechanism.protocol import Body, Frame
from dolfinx_mbd.mechanism.springs import JointSpring

_RADIUS_RATIO = 2.0  # default ratio of the radius of the ring to the crank radius
_HUB_RATIO = 0.8  # ratio of the radius of the hub to that of the ring


@dataclass(frozen=True)
class TorsionalDamper:
    """A torsional vibration damper of an engine: a ring on the rubber of a hub on the crank.

    It is at the interface ``nose`` of a reduced crank, or at the end of a rigid one. The ring turns
    about the axis of the shaft; the rubber is stiff in all other directions.

    Attributes:
        inertia: Moment of inertia of the ring about the shaft, kg m².
        stiffness: Stiffness of the rubber, N m/rad.
        damping: Viscous damping of the rubber, N m s/rad.
        hub_inertia: Moment of inertia of the hub about the shaft, kg m²; 0 omits the hub.
        radius: Radius of the ring, m, which determines its mass as that of a disc; by default twice
            the crank radius. The hub has 0.8 times this radius.

    Raises:
        InputError: A value is invalid.

    Example:
        >>> damper = mbd.mechanisms.TorsionalDamper.tuned(0.01, 300.0, 0.2, hub_inertia=0.004)
        >>> print(f"{damper.stiffness:.0f} N m/rad, {damper.damping:.2f} N m s/rad")
        35531 N m/rad, 7.54 N m s/rad
        >>> design = mbd.mechanisms.EngineDesign(damper=damper)
        >>> rod = mbd.mechanisms.rigid_rod(length=0.137, mass=0.2)
        >>> engine = mbd.mechanisms.engine(rod, design, speed=200.0)
        >>> engine.body("ring").name, engine.joint("damper").kind
        ('ring', 'revolute')
    """

    inertia: float
    stiffness: float
    damping: float = 0.0
    hub_inertia: float = 0.0
    radius: float | None = None

    def __post_init__(self) -> None:
        number("inertia", self.inertia, positive=True, unit="kg m²")
        number("stiffness", self.stiffness, positive=True, unit="N m/rad")
        number("damping", self.damping, low=0.0, unit="N m s/rad")
        number("hub_inertia", self.hub_inertia, low=0.0, unit="kg m²")
        if self.radius is not None:
            number("radius", self.radius, positive=True, unit="m")

    @classmethod
    def tuned(
        cls, inertia: float, frequency: float, damping_ratio: float, **options: float
    ) -> TorsionalDamper:
        """Create a damper from the natural frequency of its ring on a hub that is held.

        Args:
            inertia: Moment of inertia of the ring about the shaft, kg m².
            frequency: Natural frequency without damping, Hz.
            damping_ratio: Damping ratio at this frequency, from 0.
            **options: Other attributes, such as `hub_inertia`.

        Raises:
            InputError: A value is invalid.

        Example:
            >>> damper = mbd.mechanisms.TorsionalDamper.tuned(0.01, 300.0, 0.2)
            >>> round(damper.stiffness)
            35531
        """
        inertia = number("inertia", inertia, positive=True, unit="kg m²")
        omega = 2 * np.pi * number("frequency", frequency, positive=True, unit="Hz")
        ratio = number("damping_ratio", damping_ratio, low=0.0)
        return cls(inertia, inertia * omega**2, 2 * ratio * inertia * omega, **options)

    def parts(
        self,
        nose: FrameRef,
        axes: Array,
        crank_radius: float,
        pose: tuple[Array, Array],
        rate: float,
    ) -> tuple[list[Body], list[Joint], JointSpring]:
        """Return hub and ring, the joints ``nose`` and ``damper``, and the load ``rubber``.

        Args:
            nose: Frame of the crank that carries the damper.
            axes: Axes of this frame in the frame of the crank, shape (3, 3).
            crank_radius: Crank radius, m.
            pose: Initial position of the nose, shape (3,), m, and rotation of the crank as Euler
                parameters, shape (4,).
            rate: Initial speed, rad/s.
        """
        position, rotation = pose
        radius = _RADIUS_RATIO * crank_radius if self.radius is None else self.radius

        def disc(name: str, inertia: float, radius: float, width: float) -> RigidBody:
            return RigidBody.cylinder(
                name,
                radius,
                width * radius,
                mass=2 * inertia / radius**2,
                frames={"centre": Frame((0.0, 0.0, 0.0), axes)},
                position=position,
                rotation=rotation,
                velocity=np.zeros(3),
                omega=np.array([0.0, 0.0, rate]),
            )

        bodies: list[Body] = []
        joints: list[Joint] = []
        if self.hub_inertia:
            hub = disc("hub", self.hub_inertia, _HUB_RATIO * radius, 0.4)
            bodies.append(hub)
            joints.append(fixed("nose", nose, hub.frame("centre")))
            nose = hub.frame("centre")
        ring = disc("ring", self.inertia, radius, 0.25)
        joints.append(revolute("damper", nose, ring.frame("centre")))
        rubber = JointSpring("rubber", "damper", self.stiffness, self.damping)
        return [*bodies, ring], joints, rubber
