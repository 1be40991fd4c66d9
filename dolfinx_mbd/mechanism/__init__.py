"""Data of a mechanism: bodies, joints, drivers, loads and the system that contains them.

The examples of this folder assume the following lines, and a reduced `body` with the interfaces
`left` and `right` and the distributed load `wind`:

    >>> import numpy as np
    >>> import dolfinx_mbd as mbd
    >>> ends = {"left": mbd.Frame((-0.5, 0, 0)), "right": mbd.Frame((0.5, 0, 0))}
    >>> ground = mbd.Ground({"bearing": mbd.Frame()})
    >>> rod = mbd.RigidBody.box(
    ...     "rod", (1.0, 0.04, 0.02), density=7850, frames=ends, position=(0.5, 0, 0)
    ... )
    >>> hinge = mbd.revolute("hinge", ground.frame("bearing"), rod.frame("left"))
"""

from dolfinx_mbd.lazy import names_in
from dolfinx_mbd.mechanism.bearing_tables import (
    BearingTable,
)
from dolfinx_mbd.mechanism.bodies import (
    DEFAULT_DAMPING_RATIO,
    FlexibleBody,
    Ground,
    RigidBody,
)
from dolfinx_mbd.mechanism.bushings import (
    Bushing,
    TabulatedBearing,
)
from dolfinx_mbd.mechanism.constant_velocity import (
    constant_velocity,
)
from dolfinx_mbd.mechanism.contact.clearance import (
    Clearance,
    GuideClearance,
)
from dolfinx_mbd.mechanism.contact.contact_laws import (
    ContactLaw,
    contact_damping,
    hertz_stiffness,
    line_stiffness,
)
from dolfinx_mbd.mechanism.contact.elements import (
    Contact,
    bore_contact,
    guide_contact,
    plane_contact,
    sphere_contact,
)
from dolfinx_mbd.mechanism.contact.gears import (
    GearPair,
)
from dolfinx_mbd.mechanism.contact.stops import (
    JointStop,
)
from dolfinx_mbd.mechanism.joint_relations import (
    JointRelation,
)
from dolfinx_mbd.mechanism.joints import (
    JOINT_KINDS,
    Driver,
    FrameRef,
    Joint,
    constant_speed,
    cylindrical,
    distance,
    fixed,
    planar,
    point_on_line,
    point_on_plane,
    prismatic,
    revolute,
    spherical,
    universal,
)
from dolfinx_mbd.mechanism.law_elements import (
    PairMotion,
)
from dolfinx_mbd.mechanism.loads import (
    FrameLoad,
    FrameMotion,
    JointCoordinate,
    JointLoad,
    force,
    torque,
)
from dolfinx_mbd.mechanism.motions import (
    differentiated,
    integrated,
)
from dolfinx_mbd.mechanism.pair_loads import (
    PairLoad,
)
from dolfinx_mbd.mechanism.pattern_loads import (
    PatternLoad,
    PatternRef,
)
from dolfinx_mbd.mechanism.placement import (
    place,
)
from dolfinx_mbd.mechanism.point_on_curve import (
    Curve,
    point_on_curve,
)
from dolfinx_mbd.mechanism.protocol import (
    Body,
    BodyState,
    Frame,
)
from dolfinx_mbd.mechanism.rack import (
    rack_and_pinion,
)
from dolfinx_mbd.mechanism.rolling import (
    knife_edge,
    rolling_ball,
    rolling_disc,
)
from dolfinx_mbd.mechanism.screw import (
    screw,
)
from dolfinx_mbd.mechanism.shapes import (
    Shape,
    box_shape,
    cylinder_shape,
)
from dolfinx_mbd.mechanism.springs import (
    JointFriction,
    JointSpring,
    SpringDamper,
)
from dolfinx_mbd.mechanism.system import (
    STANDARD_GRAVITY,
    State,
    System,
)

__all__ = [
    "DEFAULT_DAMPING_RATIO",
    "JOINT_KINDS",
    "STANDARD_GRAVITY",
    "BearingTable",
    "Body",
    "BodyState",
    "Bushing",
    "Clearance",
    "Contact",
    "ContactLaw",
    "Curve",
    "Driver",
    "FlexibleBody",
    "Frame",
    "FrameLoad",
    "FrameMotion",
    "FrameRef",
    "GearPair",
    "Ground",
    "GuideClearance",
    "Joint",
    "JointCoordinate",
    "JointFriction",
    "JointLoad",
    "JointRelation",
    "JointSpring",
    "JointStop",
    "PairLoad",
    "PairMotion",
    "PatternLoad",
    "PatternRef",
    "RigidBody",
    "Shape",
    "SpringDamper",
    "State",
    "System",
    "TabulatedBearing",
    "bore_contact",
    "box_shape",
    "constant_speed",
    "constant_velocity",
    "contact_damping",
    "cylinder_shape",
    "cylindrical",
    "differentiated",
    "distance",
    "fixed",
    "force",
    "guide_contact",
    "hertz_stiffness",
    "integrated",
    "knife_edge",
    "line_stiffness",
    "place",
    "planar",
    "plane_contact",
    "point_on_curve",
    "point_on_line",
    "point_on_plane",
    "prismatic",
    "rack_and_pinion",
    "revolute",
    "rolling_ball",
    "rolling_disc",
    "screw",
    "sphere_contact",
    "spherical",
    "torque",
    "universal",
]

__getattr__ = names_in(__name__, "bearings", "contact", "expressions", "mechanisms")
